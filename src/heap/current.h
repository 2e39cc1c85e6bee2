/*
 * current.h - the region in which a heap bumps.
 */
#ifndef TSI_HEAP_CURRENT_H
#define TSI_HEAP_CURRENT_H

#include "state/arena.h"
#include "mem/region.h"

/* Returns the slab whose record r is. [any thread] */
TSI_INLINE uint32_t tsi_region_id(const TsiSpace* s, const TsiRegion* r) {
    size_t at = (size_t)((const uint8_t*)r - s->regions);
    uint32_t in_chunk = (uint32_t)(at & ((1u << TSI_REGIONS_SHIFT) - 1)) - TSI_REGIONS_MAP;
    return tsi_slab_id((uint32_t)(at >> TSI_REGIONS_SHIFT), in_chunk / (uint32_t)sizeof(TsiRegion));
}
/* Makes the heap bump in r; tsi_no_region: in none. b as in tsi_bump_drop. [owner, or heap seized] */
TSI_INLINE void tsi_heap_set_region(TsiBinding* b, TsiHeap* h, TsiRegion* r) {
    tsi_store_relaxed(&h->region, r);
    tsi_store_relaxed(&h->last, NULL);
    if (b != NULL && b->heap == h) b->region = r != &tsi_no_region ? r : NULL;
}
/* Makes the heap bump in no region, until it takes one. b: the owner, or NULL if that is not the caller. [owner, or
 * heap seized] */
void tsi_bump_drop(TsiBinding* b, TsiHeap* h);

#endif
