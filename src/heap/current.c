/* current.c - see current.h. */
#include "heap/current.h"

TsiRegion tsi_no_region;

void tsi_bump_drop(TsiBinding* b, TsiHeap* h) {
    TsiRegion* r = tsi_load_relaxed(&h->region);
    h->bumped += tsi_load_relaxed(&r->rel);
    h->spare = h->looked = h->alone = 0;
    tsi_heap_set_region(b, h, &tsi_no_region);
}
