/*
 * settle.h - one slab leaves its heap or its incarnation. Internal to the sweep and the remote free.
 */
#ifndef TSI_HEAP_SETTLE_H
#define TSI_HEAP_SETTLE_H

#include "heap/taken.h"

/* The slab's heap is SEIZED, the stripe held. Adds to the incarnation's totals. */
void tsi_settle_release(TsiSweep* w, uint32_t slab_id);
void tsi_settle_drain(TsiSweep* w, uint32_t slab_id);
/* Takes the slab if it is empty; true then. */
bool tsi_settle_if_empty(TsiSweep* w, uint32_t slab_id);
/* Looks at the orphans, all or the next of them, and claims those that have pages without a live slot; the stripe is
 * held. */
void tsi_settle_orphan_pages(TsiSweep* w);
/* Ends every orphan; the stripe is held. */
void tsi_settle_release_orphans(TsiSweep* w);
/* In a fork child: an OWNED slab joins the orphans. Stripe held. */
void tsi_slab_to_orphan(TsiArena* a, TsiInc* i, uint32_t slab_id);
/* In a fork child: a claimed slab leaves its orphan list, then goes back to the pool. */
void tsi_unlink_claimed(TsiArena* a, TsiInc* i);
void tsi_return_claimed(TsiArena* a, uint32_t slab_id);
/* A freer found an ORPHAN slab complete, or a sweep found its incarnation released, under this tag: takes it and pins
 * the incarnation, unless another was first; false then. */
bool tsi_settle_complete(TsiSweep* w, uint32_t slab_id, uint64_t tag);

#endif
