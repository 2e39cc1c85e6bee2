/*
 * close.h - the end of incarnations, and what their records go through afterwards.
 */
#ifndef TSI_HEAP_CLOSE_H
#define TSI_HEAP_CLOSE_H

#include "heap/arena.h"

/* SCOPE: the end of a scope. OWN: the same, and the caller's pin goes with it. ASKED: the program asks for it by the
 * epoch's id; then everything goes back at once, and resident size and time are measured, where the incarnation holds
 * something: both cost more than an empty close. */
typedef enum TsiEnding { TSI_END_SCOPE, TSI_END_OWN, TSI_END_ASKED } TsiEnding;
/* Ends an incarnation; false, and nothing done, when the reference is stale. Fills *out when not NULL. */
bool tsi_epoch_end(TsiArena* a, TsiRef ref, EpochCloseMode mode, TsiEnding how, EpochReceipt* out);
/* As tsi_epoch_end, of one that may be the ring's current: the ring moves on first, so that calls without an epoch
 * find the next. */
bool tsi_epoch_close(TsiArena* a, TsiRef ref, EpochCloseMode mode, TsiEnding how, EpochReceipt* out);
/* Ends an incarnation that never held anything, has no cleanups and is pinned by the caller alone; its record is free
 * afterwards. *renamed when its label is another than `label`, which then has it. False, and nothing done, when it is
 * not so. */
bool tsi_inc_end_empty(TsiArena* a, TsiBinding* b, TsiRef ref, char label[TSI_LABEL_BYTES], bool* renamed);
/* The straight end of heap/ready.h; in shared mode of a phase in the thread's lane, where that is free. The record is
 * free afterwards. False when another end is due. out: NULL when nobody will ask; then the caller has tried
 * tsi_ready_end, where nobody listens to ends. */
bool tsi_inc_end_alone(TsiBinding* b, TsiRef ref, EpochReceipt* out);
/* Moves the ring on; where `from` is not 0, only while that is current. Returns the current id afterwards. */
EpochId tsi_epoch_advance(TsiArena* a, TsiRef from);

#endif
