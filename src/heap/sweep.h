/*
 * sweep.h - taking heaps from their owners, for an end or a trim.
 */
#ifndef TSI_HEAP_SWEEP_H
#define TSI_HEAP_SWEEP_H

#include "heap/sweep_totals.h"

/* Takes the pinned incarnation's heaps, or only those of the binding `only`, in two holds of the stripe, and settles
 * their slabs, and the orphans; what it takes waits for tsi_sweep_finish. [stripe held, and given in between] */
void tsi_sweep_locked(TsiSweep* sweep, TsiBinding* only);
/* Settles the caller's heap h, the only one of an incarnation that has just been released.
 * [own thread, stripe held, no bracket open] */
void tsi_sweep_own_locked(TsiSweep* sweep, TsiHeap* h);
/* Hands over each heap of the calling thread, b's, in the incarnation that somebody has asked for.
 * [own thread, stripe held, no bracket open] */
void tsi_sweep_handed_locked(TsiSweep* sweep, TsiBinding* b);
/* Takes the slabs that freers have emptied in a heap without an owner since it was walked, and tells its incarnation
 * which classes have room there. Frees a heap without slabs. [stripe held] */
void tsi_sweep_ownerless_locked(TsiSweep* sweep, TsiHeap* h);
/* Settles the slab that a sweep left to this thread, b's, in its heaps in the incarnation of `ref`.
 * [own thread, stripe held, no bracket open] */
void tsi_sweep_skipped_locked(TsiSweep* sweep, TsiBinding* b, TsiRef ref);

#endif
