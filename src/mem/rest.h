/*
 * rest.h - regions that nobody can use yet.
 *
 * A region that has used up its generations begins again when no freer sleeps in it (region.h, R2). Freers leave within
 * moments, unless they are preempted or stopped by a signal. A thread that takes such a region before sets it aside
 * here and takes another. The next thread that takes slabs, or trims, gives the region to the pool once its freers have
 * left.
 *
 *   W1  A region rests after it was taken and could not be opened. Then it is in no heap, store or pool,
 *       its tag says WARM, and its pages count as committed. Its word has generation 0, which nobody enters, so `late`
 *       only falls.
 *   W2  A freer sleeps in one region, so no more regions rest than threads are inside of a free.
 *   W3  A region rests no longer than until the first taking or trim after its last freer has left. So with no free
 *       under way a trim leaves none.
 *
 * Chunks are passed over for the same reason (pool.c) where the size of their regions would change. They stay free, and
 * each search looks at them again.
 *
 * Model: tests/models/region.pml, RESTING.
 */
#ifndef TSI_MEM_REST_H
#define TSI_MEM_REST_H

#include "mem/space.h"

/* Puts a region, which tsi_region_open has refused, at the head of the list s->resting; its tag becomes WARM. The
 * region stays committed, and only tsi_rest_look_slow takes it out. [holder of the slab, no pool lock held] */
void tsi_rest(TsiSpace* s, uint32_t slab_id);
/* Gives all resting regions whose freers have left (`late` is 0) to the pool, BATCH at a time, and their pages to the
 * system; half of a huge page makes its chunk one of small pages. The others rest on.
 * [any thread, no pool lock held] */
void tsi_rest_look_slow(TsiSpace* s);
/* Calls tsi_rest_look_slow, which gives regions whose freers have left to the pool, if any region rests; otherwise one
 * load. [any thread, no pool lock held] */
TSI_INLINE void tsi_rest_poll(TsiSpace* s) {
    if (TSI_UNLIKELY(tsi_load_relaxed(&s->resting) != 0)) tsi_rest_look_slow(s);
}

#endif
