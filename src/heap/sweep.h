/*
 * sweep.h - taking heaps from their owners, for an end or a trim.
 */
#ifndef TSI_HEAP_SWEEP_H
#define TSI_HEAP_SWEEP_H

#include "heap/settle.h"

/* Both holds of the stripe, which is held on entry and on return; of one binding's heaps only when `only` is not NULL.
 * The incarnation is pinned. What was taken waits for tsi_sweep_finish. */
void tsi_sweep_locked(TsiSweep* w, TsiBinding* only);
/* Settles the only heap of an incarnation that has just been released; it is the caller's, which is inside no bracket.
 * Stripe held. */
void tsi_sweep_own_locked(TsiSweep* w, TsiHeap* h);
/* Returns the empty slabs of one incarnation. */
void tsi_trim_inc(TsiArena* a, TsiBinding* b, TsiInc* i);
/* Returns empty slabs of every incarnation; of one binding only when `only` is not NULL. */
void tsi_trim(TsiArena* a, TsiBinding* b, TsiBinding* only);
/* tsi_trim of everything, and the warm stores of all threads. */
void tsi_trim_all(TsiArena* a, TsiBinding* b);
/* The same where max_bytes is in the way: incarnations that only drain are passed over. Their slabs go back as they
 * empty, and single pages of them count as committed until then, so nothing is to be had there. O(heaps). */
void tsi_trim_for_room(TsiArena* a, TsiBinding* b);
/* Own thread, outside brackets: returns the empty slabs this thread has in the heap's incarnation. The
 * heap is DETACHED afterwards and found again by its next use. */
void tsi_heap_scavenge(TsiBinding* b, TsiHeap* h);

#endif
