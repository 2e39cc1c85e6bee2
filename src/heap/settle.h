/*
 * settle.h - one slab leaves its heap or its incarnation. Internal to sweeps and frees of others.
 */
#ifndef TSI_HEAP_SETTLE_H
#define TSI_HEAP_SETTLE_H

#include "heap/sweep_totals.h"
#include "state/liveness.h"

/* Claims an OWNED slab with all that lives in it: its tag says PURGING under the next seq, what was issued and what
 * lived is added to the incarnation's `allocated` and `released`, and it is in the sweep's hands, to be given back by
 * tsi_sweep_finish. [stripe held, and the heap seized or the slab skipped] */
void tsi_settle_release(TsiSweep* sweep, uint32_t slab_id);
/* Claims an OWNED slab for the sweep to give back, like tsi_settle_if_empty, if nothing lives in it. Otherwise makes it
 * an orphan, on its incarnation's list and counted in pinned_slabs, and, unless sweep->puts_off, claims it for its
 * pages without an object. [stripe held, and the heap seized or the slab skipped] */
void tsi_settle_drain(TsiSweep* sweep, uint32_t slab_id);
/* Claims an OWNED slab, if nothing lives in it: its tag says PURGING under the next seq, what was issued is added to
 * the incarnation's `allocated`, and it is in the sweep's hands, to be given back by tsi_sweep_finish. Returns true if
 * it did; false, changing nothing, otherwise. [stripe held, heap seized] */
bool tsi_settle_if_empty(TsiSweep* sweep, uint32_t slab_id);
/* Looks at the incarnation's orphans, all or with sweep->most the next ones of as many bytes (from inc->thin_next on),
 * and claims those with pages without an object (PARTIAL, in sweep->partial) for the sweep to give these back; with
 * sweep->puts_off, where these pages are few, only sets sweep->put_off to their bytes. Counts large objects as looked
 * at, once. [stripe held] */
void tsi_settle_orphan_pages(TsiSweep* sweep);
/* Claims every orphan for the sweep to give back, takes it off the incarnation's list and adds what lives in it to
 * `released`. An orphan whose pages another thread is giving back (PARTIAL) stays, counted in sweep->deferred and
 * deferred_bytes.
 * [stripe held] */
void tsi_settle_release_orphans(TsiSweep* sweep);
/* Makes an OWNED slab an orphan, on the list of its incarnation. [fork child, stripe held] */
void tsi_slab_to_orphan(TsiArena* a, TsiInc* inc, uint32_t slab_id);
/* Returns a slab that a vanished thread had claimed (PURGING) to the pool, with its pages to the system; ends its
 * region's life, or raises its generations, if that was left to do. [fork child] */
void tsi_return_claimed(TsiArena* a, uint32_t slab_id);
/* Claims an ORPHAN slab with this tag that a freer found complete, or a sweep found released, takes it off the list of
 * sweep->inc, whose index the tag has, and its bytes off the charges, and pins that record: tsi_sweep_finish and
 * tsi_inc_unpin must follow. Takes the stripe and gives it back. Returns false, and does nothing, if another thread was
 * first. [any thread, no lock held] */
bool tsi_settle_complete(TsiSweep* sweep, uint32_t slab_id, uint64_t tag);

/* ---- slabs that no heap has ---- */

/* Puts an orphan at the head of its incarnation's list, raises the incarnation's slab_count, and adds `sum`, what it
 * holds, to the figures of orphans: issued to inc->orphaned, live to inc->holding. [stripe held] */
void tsi_orphan_link_locked(TsiArena* a, TsiInc* inc, uint32_t slab_id, const TsiSlabSum* sum);

/* Takes an orphan off its incarnation's list, its slab_count and its figures of orphans; `issued`: the objects and
 * bytes that tsi_orphan_link_locked counted it with. [stripe held] */
void tsi_orphan_unlink_locked(TsiArena* a, TsiInc* inc, uint32_t slab_id, TsiTotals issued);
/* Adds the slab to those that a sweep has left to their owner (inc->skipped, skipped_bytes and slab_count), n = 1, or
 * takes it away, n = -1. [stripe held] */
void tsi_skipped_add_locked(TsiArena* a, TsiInc* inc, uint32_t slab_id, int n);
/* Retires a slab of no epoch: it is never used again (RETIRED, or its part of a page), its pages go back, and
 * a->retired_slabs rises. [holder of the slab, no lock held] */
void tsi_slab_retire(TsiArena* a, uint32_t slab_id);

#endif
