/*
 * waiting.h - the memory of heaps that wait for a phase (ready.h), as others may see and take it.
 */
#ifndef TSI_HEAP_WAITING_H
#define TSI_HEAP_WAITING_H

#include "heap/arena.h"

enum { TSI_READY_SLAB_SHIFT = 40 }; /* of a READY word: its region's slab, whose ids have 24 bits */

/* Bytes of the regions that wait with heaps of a binding, by its index. Any thread; a hint for others. */
uint64_t tsi_ready_bytes(const TsiArena* a, uint32_t binding);
/* Gives the memory back. Any thread. */
void tsi_ready_flush(TsiBinding* b);
/* The region of a heap that waits; slab id + 1, or 0. The heap is BARE after that. */
uint32_t tsi_ready_seize(TsiBinding* b, TsiHeap* h);
/* All that is lent goes back to the budget. Any thread. */
void tsi_warm_call_in(TsiBinding* b);

#endif
