/* rest.c - see rest.h. */
#include "mem/rest.h"

#include "mem/pool.h"
#include "mem/purge.h"
#include "mem/region.h"

enum { BATCH = 64 };

void tsi_rest(TsiSpace* s, uint32_t slab_id) {
    TsiSlab* slab = tsi_slab(s, slab_id);
    tsi_lock_take(&s->lock);
    tsi_slab_turn(slab, TSI_SLAB_WARM);
    slab->next = tsi_load_relaxed(&s->resting);
    tsi_store_relaxed(&s->resting, slab_id + 1);
    tsi_lock_give(&s->lock);
}

/* Takes regions whose `late` is 0, so that no freer is left inside, off the list at s->resting, and sets ids to their
 * slab ids: at most BATCH. The others stay there, in the opposite order. Returns the number of ids, 0 to BATCH.
 * [pool lock held] */
static unsigned wake_locked(TsiSpace* s, uint32_t ids[BATCH]) {
    TSI_HOLDS(&s->lock);
    unsigned n = 0;
    uint32_t at = tsi_load_relaxed(&s->resting), kept = 0;

    for (uint32_t next; at != 0; at = next) {
        TsiSlab* slab = tsi_slab(s, at - 1);
        next = slab->next;
        /* acquire: pairs with the last freer's release, see tsi_region_open */
        if (n < BATCH && tsi_load_acquire(&tsi_region(s, at - 1)->late) == 0) {
            ids[n++] = at - 1;
        } else {
            slab->next = kept;
            kept = at;
        }
    }

    tsi_store_relaxed(&s->resting, kept);
    return n;
}

void tsi_rest_look_slow(TsiSpace* s) {
    uint32_t ids[BATCH];
    unsigned n;
    do {
        tsi_lock_take(&s->lock);
        n = wake_locked(s, ids);
        if (n != 0) tsi_space_give_begin(s); /* before others can find them missing */
        tsi_lock_give(&s->lock);
        for (unsigned i = 0; i < n; i++) { /* like give_huge in heap/finish.c: half of a huge page goes */
            uint32_t chunk = tsi_slab_chunk(ids[i]);
            if (s->chunks[chunk].huge) tsi_space_avoid_huge(s, chunk);
        }
        if (n == 0) break;
        (void)tsi_space_purge(s, ids, n);
        tsi_space_give_end(s);
    } while (n == BATCH);
}
