/*
 * settle.h - one slab leaves its heap or its incarnation. Internal to sweeps and frees of others.
 */
#ifndef TSI_HEAP_SETTLE_H
#define TSI_HEAP_SETTLE_H

#include "heap/sweep_totals.h"
#include "state/liveness.h"

/* Claims an OWNED slab with all that lives in it, which counts as released, for the sweep to give back.
 * [stripe held, and the heap seized or the slab skipped] */
void tsi_settle_release(TsiSweep* sweep, uint32_t slab_id);
/* Claims an OWNED slab for the sweep to give back, if nothing lives in it; otherwise makes it an orphan.
 * [stripe held, and the heap seized or the slab skipped] */
void tsi_settle_drain(TsiSweep* sweep, uint32_t slab_id);
/* Claims an OWNED slab for the sweep to give back, if nothing lives in it. Returns true if it did.
 * [stripe held, heap seized] */
bool tsi_settle_if_empty(TsiSweep* sweep, uint32_t slab_id);
/* Looks at the incarnation's orphans, all or the next of them, and claims those with pages without an object for the
 * sweep to give these back. [stripe held] */
void tsi_settle_orphan_pages(TsiSweep* sweep);
/* Claims every orphan for the sweep to give back, with what lives in it, which counts as released. [stripe held] */
void tsi_settle_release_orphans(TsiSweep* sweep);
/* Makes an OWNED slab an orphan, on the list of its incarnation. [fork child, stripe held] */
void tsi_slab_to_orphan(TsiArena* a, TsiInc* inc, uint32_t slab_id);
/* Takes slabs that vanished threads had claimed off the incarnation's list of orphans. [fork child] */
void tsi_unlink_claimed(TsiArena* a, TsiInc* inc);
/* Returns a slab that a vanished thread had claimed to the pool. [fork child] */
void tsi_return_claimed(TsiArena* a, uint32_t slab_id);
/* Claims an ORPHAN slab with this tag that a freer found complete, or a sweep found released, for the sweep to give
 * back, and pins the incarnation. Returns false, and does nothing, if another thread was first.
 * [any thread, no lock held] */
bool tsi_settle_complete(TsiSweep* sweep, uint32_t slab_id, uint64_t tag);

/* ---- slabs that no heap has ---- */

/* Puts an orphan on its incarnation's list and adds `sum`, what it holds, to the figures of orphans. [stripe held] */
void tsi_orphan_link_locked(TsiArena* a, TsiInc* inc, uint32_t slab_id, const TsiSlabSum* sum);

/* Takes an orphan off its incarnation's list; `issued`: the objects and bytes it was counted with. [stripe held] */
void tsi_orphan_unlink_locked(TsiArena* a, TsiInc* inc, uint32_t slab_id, TsiTotals issued);
/* Adds the slab to those that a sweep has left to their owner, or with n = -1 takes it away. [stripe held] */
void tsi_skipped_add_locked(TsiArena* a, TsiInc* inc, uint32_t slab_id, int n);
/* Retires a slab of no epoch: never used again, its pages go back. [holder of the slab, no lock held] */
void tsi_slab_retire(TsiArena* a, uint32_t slab_id);

#endif
