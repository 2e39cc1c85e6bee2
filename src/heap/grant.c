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
    if (b->period == 0 || h->lanes != NULL) return false;
    if (issued >= TELLING) b->usual = tsi_load_relaxed(&r->rel) / issued;
    if (tsi_load_relaxed(&b->bumped_elsewhere) != 0) n += atomic_exchange_explicit(&b->bumped_elsewhere, 0, memory_order_relaxed);
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
    uint32_t rel = tsi_load_relaxed(&r->rel), start = rel - bytes, lim = 1u << r->size_log2;
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
    h->granter = b->period != 0 && h->lanes == NULL ? b : NULL;
    tsi_store_relaxed(&r->lim, lim);
}

uint32_t tsi_grant_reach(const TsiBinding* b, const TsiHeap* h) {
    uint32_t end = 1u << tsi_load_relaxed(&h->region)->size_log2;
    return b->profile_mean != 0 && h->mark < end ? h->mark & ~(TSI_GRANULE - 1u) : end;
}
