/*
 * orphan.h - slabs that no heap has: those that an incarnation holds, and those that are never used again.
 */
#ifndef TSI_HEAP_ORPHAN_H
#define TSI_HEAP_ORPHAN_H

#include "state/living.h"

/* Puts an orphan on its incarnation's list and adds `sum`, what it holds, to the figures of orphans. [stripe held] */
void tsi_orphan_link_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, const TsiSlabSum* sum);

/* Takes an orphan off the list; `issued`: what it was counted with. [stripe held] */
void tsi_orphan_unlink_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, TsiTotals issued);
/* Adds the slab to those that a sweep has left to their owner, or with n = -1 takes it away. [stripe held] */
void tsi_skipped_add_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, int n);
/* Retires a slab of no epoch: never used again, its pages go back. */
void tsi_slab_retire(TsiArena* a, uint32_t slab_id);

#endif
