/*
 * sweep.h - taking heaps from their owners, for an end or a trim.
 */
#ifndef TSI_HEAP_SWEEP_H
#define TSI_HEAP_SWEEP_H

#include "heap/taken.h"

/* Both holds of the stripe, which is held on entry and on return; of one binding's heaps only when `only` is not NULL.
 * The incarnation is pinned. What was taken waits for tsi_sweep_finish. */
void tsi_sweep_locked(TsiSweep* w, TsiBinding* only);
/* Settles the only heap of an incarnation that has just been released; it is the caller's, which is inside no bracket.
 * Stripe held. */
void tsi_sweep_own_locked(TsiSweep* w, TsiHeap* h);
/* What handover does for each heap of the calling thread that somebody has asked for. Stripe held. */
void tsi_sweep_handed_locked(TsiSweep* w, TsiBinding* b);
/* Takes what freers have emptied of a heap without an owner since it was walked, and tells its incarnation which
 * classes have room there; a heap without slabs is freed. Stripe held. */
void tsi_sweep_ownerless_locked(TsiSweep* w, TsiHeap* h);
/* The slab that a sweep left to this thread, b's: in `h`, or in a heap that h's room serves as well. Stripe held. */
void tsi_sweep_skipped_locked(TsiSweep* w, TsiBinding* b, TsiRef ref);

#endif
