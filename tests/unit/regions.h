/*
 * regions.h - what the tests of regions share: an allocator that keeps nothing warm, and a domain that objects are made in.
 */
#ifndef TESTS_UNIT_REGIONS_H
#define TESTS_UNIT_REGIONS_H

#include "fake_os.h"
#include "kit/one.h"

#include "heap/bump.h"
#include "heap/heap.h"

enum { SIZE = 64, FIRST = 4096 / SIZE, SECOND = 16384 / SIZE, THIRD = 65536 / SIZE, ALL = FIRST + SECOND + THIRD };

static epoch_domain_t* d;
static void* p[4 * ALL];

static inline void open_allocator(void) {
    kit_open_cold();
    d = epoch_domain_create(a);
    REQUIRE(d != NULL);
}
static inline void close_allocator(void) {
    epoch_domain_destroy(d);
    kit_check(a);
    REQUIRE_EQ(kit_committed_now(a), 0); /* retired slabs included: their pages have gone */
    slab_allocator_free(a);
}

static inline TsiRegion* region_of(const void* at) {
    TsiPlace place = kit_place(a, at);
    REQUIRE(tsi_class_is_region(place.cls));
    return tsi_region(space, place.slab_id);
}
static inline void* make(size_t bytes) {
    void* q = epoch_domain_malloc(d, bytes);
    REQUIRE(q != NULL);
    return kit_hide(q);
}
static inline void fill(void** q, unsigned n) {
    for (unsigned i = 0; i < n; i++) memset(q[i] = make(SIZE), (int)i, SIZE);
}
static inline void give(void** q, unsigned n) {
    for (unsigned i = 0; i < n; i++) REQUIRE(slab_free_checked(a, q[i]));
}

typedef struct Batch {
    void** q;
    unsigned n, freed;
} Batch;
static inline void* give_batch(void* arg) {
    Batch* b = arg;
    for (unsigned i = 0; i < b->n; i++) b->freed += slab_free_checked(a, b->q[i]);
    return NULL;
}
static inline void give_elsewhere(void** q, unsigned n) {
    Batch b = {q, n, 0};
    kit_on_thread(give_batch, &b);
    REQUIRE_EQ(b.freed, n);
}

/* Ends the domain's epoch; what the receipt must say. */
static inline EpochReceipt end(EpochCloseMode mode, uint64_t allocated, uint64_t freed, uint64_t bytes) {
    EpochReceipt r = kit_end(a, d->epoch_id, mode);
    REQUIRE_EQ(r.objects_allocated, allocated);
    REQUIRE_EQ(r.objects_freed, freed);
    REQUIRE_EQ(r.bytes_allocated, bytes);
    return r;
}

static inline uint64_t* cause(SlabRefusals* r, int misuse) {
    return misuse == SLAB_MISUSE_STALE_FREE         ? &r->stale_free
           : misuse == SLAB_MISUSE_DOUBLE_FREE      ? &r->double_free
           : misuse == SLAB_MISUSE_INTERIOR_POINTER ? &r->interior_pointer
                                                    : &r->foreign_pointer;
}
static inline void* refuse_elsewhere(void* q) { return slab_free_checked(a, q) ? q : NULL; }
/* Refused as that, by its owner and by another thread; nothing is changed by it. */
static inline void refused(void* q, int misuse) {
    SlabRefusals before = kit_refusals(a), after;
    uint64_t live = kit_live(a);
    pthread_t t;
    void* freed = q;
    REQUIRE(!slab_free_checked(a, q));
    REQUIRE_EQ(pthread_create(&t, NULL, refuse_elsewhere, q), 0);
    REQUIRE_EQ(pthread_join(t, &freed), 0);
    REQUIRE_NULL(freed);
    after = kit_refusals(a);
    REQUIRE_EQ(*cause(&after, misuse), *cause(&before, misuse) + 2);
    REQUIRE_EQ(kit_live(a), live);
    REQUIRE_EQ(slab_usable_size(a, q), 0);
    REQUIRE(slab_ptr_handle(a, q) == 0);
    kit_check(a);
}

#endif
