/*
 * orphan.h - slabs that no heap has: those of an incarnation, and those that are never used again.
 */
#ifndef TSI_HEAP_ORPHAN_H
#define TSI_HEAP_ORPHAN_H

#include "state/living.h"

/* Puts an orphan on its incarnation's list; sum: what it holds, and adds to the totals, which have it. Stripe held. */
void tsi_orphan_link_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, const TsiSlabSum* sum);

/* And takes it off; issued: what it had issued. Stripe held. */
void tsi_orphan_unlink_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, TsiTotals issued);
/* The slab joins, or with n = -1 leaves, those that a sweep has left to their owner. Stripe held. */
void tsi_skipped_add_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, int n);
/* A slab of no epoch is never used again; its pages go back. */
void tsi_slab_retire(TsiArena* a, uint32_t slab_id);

#endif
