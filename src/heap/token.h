/*
 * token.h - the token of a line that its owner has left: who takes it out tells the owner that there is room.
 */
#ifndef TSI_HEAP_TOKEN_H
#define TSI_HEAP_TOKEN_H

#include "heap/arena.h"

/* Free slots that the owner could have: freed and remote ones. Anyone; a hint for others. */
uint64_t tsi_line_free_bits(const TsiSpace* s, TsiLine* l, uint32_t line_id);
/* Puts the token into the remote word, see line.c; false when the slab has left its incarnation. Any thread. */
bool tsi_line_arm(TsiSpace* s, uint32_t line_id, uint32_t seq);
/* Takes the token out of the word if enough slots are free; true: the caller has it. Any thread. */
bool tsi_line_disarm(TsiSpace* s, uint32_t line_id, uint32_t seq, unsigned threshold);

#endif
