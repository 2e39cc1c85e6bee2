/* grant.c - see grant.h. */
#include "heap/grant.h"

#include "heap/profile.h"
#include "heap/sample.h"
#include "mem/region.h"

enum { TELLING = 8 }; /* objects of a region whose mean size is worth knowing */

static uint32_t not_counted(const TsiHeap* h, uint32_t issued) { return issued > h->noted ? issued - h->noted : 0; }

bool tsi_grant_settle(TsiBinding* b, TsiHeap* h) {
    const TsiRegion* r = tsi_load_relaxed(&h->region);
    uint32_t issued = tsi_load_relaxed(&r->issued), n = not_counted(h, issued);
    h->noted = issued;
    if (b->period == 0) return false;
    if (issued >= TELLING) b->usual = tsi_load_relaxed(&r->rel) / issued;
    if (tsi_load_relaxed(&b->bumped_elsewhere) != 0)
        n += atomic_exchange_explicit(&b->bumped_elsewhere, 0, memory_order_relaxed);
    return tsi_sample_pass(b, n);
}

void tsi_grant_end(TsiHeap* h, const TsiRegion* was) {
    uint32_t n = not_counted(h, tsi_load_relaxed(&was->issued));
    if (n != 0) tsi_add_relaxed(&h->granter->bumped_elsewhere, n);
    h->granter = NULL;
    h->noted = 0;
}

/* The first mark at or behind `from`, of places that have had none before. */
static uint32_t next_mark(TsiBinding* b, uint32_t from, uint32_t end) {
    uint64_t distance = tsi_profile_distance(b, end - from);
    return distance < end - from ? from + (uint32_t)distance : end;
}

void tsi_grant_open(TsiBinding* b, TsiHeap* h, uint32_t bytes, bool fresh) {
    TsiRegion* r = tsi_load_relaxed(&h->region);
    uint32_t rel = tsi_load_relaxed(&r->rel), start = rel - bytes, lim = tsi_region_room(r);
    if (b->profile_mean != 0) {
        if (fresh || h->mark < start) h->mark = next_mark(b, start, lim); /* or it lay in a gap */
        if (h->mark < rel) {
            b->profile_hit = true;
            h->mark = next_mark(b, rel, lim);
        }
        lim = h->mark & ~(TSI_GRANULE - 1u);
    }
    if (b->period != 0) {
        uint64_t some = (uint64_t)(b->sample_left / 4) * 3 * b->usual & ~(TSI_GRANULE - 1ull);
        if (some < lim - rel) lim = rel + (uint32_t)some;
    }
    h->noted = tsi_load_relaxed(&r->issued);
    h->granter = b->period != 0 ? b : NULL;
    tsi_store_relaxed(&r->lim, lim);
}

void tsi_grant_alone(TsiBinding* b, TsiRegion* r, uint32_t bytes) {
    tsi_profile_one(b, bytes);
    if (b->profile_mean != 0) tsi_store_relaxed(&r->lim, next_mark(b, bytes, tsi_region_room(r)) & ~(TSI_GRANULE - 1u));
}

void tsi_grant_grown(TsiBinding* b, TsiHeap* h, TsiRegion* r, uint32_t end) {
    bool current = r == tsi_load_relaxed(&h->region);
    uint32_t size = tsi_region_room(r), lim = tsi_load_relaxed(&r->lim),
             mark = b->profile_mean == 0 ? size
                    : current            ? h->mark
                                         : lim;
    if (mark < end) {
        b->profile_hit = true;
        mark = next_mark(b, end, size);
    }
    if (current) h->mark = mark;
    if (!current || b->period == 0) lim = mark & ~(TSI_GRANULE - 1u);
    else if (lim < end) lim = end; /* an allocation comes by before the next sample */
    tsi_store_relaxed(&r->lim, lim);
}
