/*
 * sweep.h - taking heaps from their owners, for an end or a trim.
 */
#ifndef TSI_HEAP_SWEEP_H
#define TSI_HEAP_SWEEP_H

#include "heap/sweep_totals.h"

/* Takes the heaps of sweep->inc, which the caller has pinned, or only those of the binding `only` (NULL: all), in two
 * holds of the stripe, and settles their slabs as the incarnation's state asks; without sweep->most its orphans, too.
 * Between the holds the stripe is free, with a membarrier, if other threads own heaps there. The slabs taken wait in
 * sweep->out, large and partial for tsi_sweep_finish; those left to others are in sweep->deferred, and sweep->more says
 * that it stopped at `most`. [stripe held, and given in between] */
void tsi_sweep_locked(TsiSweep* sweep, TsiBinding* only);
/* Settles h, a LIVE heap of sweep->b's and the only one of sweep->inc, whose state has just become RELEASED: all its
 * slabs go into the sweep's hands, and h is freed. Does nothing if h is no longer LIVE.
 * [own thread, stripe held, no bracket open] */
void tsi_sweep_own_locked(TsiSweep* sweep, TsiHeap* h);
/* Lets go of all heaps of the calling thread, b's, in sweep->inc, if one of them is RETIRE or REVOKED: in a phase that
 * goes on they are DETACHED afterwards, or freed if they have no slabs; with sweep->leaves, or where the thread has had
 * little, without their empty slabs. Otherwise their slabs are settled, and they are freed.
 * [own thread, stripe held, no bracket open] */
void tsi_sweep_handed_locked(TsiSweep* sweep, TsiBinding* b);
/* Takes the empty slabs of h, DETACHED in sweep->inc, into the sweep's hands, as long as freers have emptied enough
 * since it was walked (tsi_ownerless_is_due), and adds the classes for which h has room to the incarnation's `roomy`.
 * Frees a heap without slabs: h is gone then. Does nothing where another thread has the heap by now. [stripe held] */
void tsi_sweep_ownerless_locked(TsiSweep* sweep, TsiHeap* h);
/* Settles the slabs that sweeps left to this thread, b's, in its DEAD heaps in the incarnation of `ref`, sweep->inc:
 * claims each for the sweep, or where the phase drains and objects live there makes it an orphan.
 * [own thread, stripe held, no bracket open] */
void tsi_sweep_skipped_locked(TsiSweep* sweep, TsiBinding* b, TsiRef ref);

#endif
