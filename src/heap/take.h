/*
 * take.h - what a heap takes from the space: slabs, regions among them, and large objects.
 */
#ifndef TSI_HEAP_TAKE_H
#define TSI_HEAP_TAKE_H

#include "base/probes.h"
#include "heap/fast.h"
#include "heap/issue.h"

/* A slab for the heap, charged to its incarnation and in its chain; false without memory or against a budget (b->budget
 * says). In the owner's bracket. */
bool tsi_slab_take(TsiBinding* b, TsiHeap* h, unsigned cls, uint32_t* slab_id);
/* The same of two regions that are the halves of a huge page. */
bool tsi_huge_take(TsiBinding* b, TsiHeap* h, uint32_t slab_ids[2]);
/* A large object in an incarnation; NULL without memory, against a budget, or when ref is not ACTIVE any more. The
 * caller keeps the record from being reused; no stripe is held. */
void* tsi_large_alloc(TsiBinding* b, TsiRef ref, size_t size, size_t align, TsiIssue* issue);
/* Which of a class's counters by label an incarnation counts in. */
unsigned tsi_column_of(TsiArena* a, TsiInc* i);

/* An allocation that left the fast path, and why. As tsi_slab_take. */
TSI_INLINE void tsi_count_slow(TsiBinding* b, TsiHeap* h, unsigned cls, unsigned cause) {
    TsiClassCounters* n = &b->counters[cls];
    tsi_count(&n->slow);
    tsi_count(&h->slow);
    tsi_count(&n->slow_by[cause]);
    tsi_probe_slow_path(b->arena->owner, cls - 1, b->classes->c[cls].size, cause);
}

#endif
