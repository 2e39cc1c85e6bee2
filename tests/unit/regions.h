/*
 * regions.h - what the tests of regions share: an allocator that keeps nothing warm, and a domain that objects are made in.
 */
#ifndef TESTS_UNIT_REGIONS_H
#define TESTS_UNIT_REGIONS_H

#include "fake_os.h"
#include "unit.h"

#include "heap/bump.h"
#include "heap/heap.h"

enum { SIZE = 64, FIRST = 4096 / SIZE, SECOND = 16384 / SIZE, THIRD = 65536 / SIZE, ALL = FIRST + SECOND + THIRD };

static SlabAllocator* a;
static TsiSpace* space;
static epoch_domain_t* d;
static void* p[4 * ALL];

static inline int open_allocator(void** state) {
    (void)state;
    a = unit_create_cold();
    space = &tsi_arena(a)->space;
    d = epoch_domain_create(a);
    return d == NULL;
}
static inline int close_allocator(void** state) {
    (void)state;
    epoch_domain_destroy(d);
    unit_check(a);
    assert_int_equal(unit_committed(a), 0); /* retired slabs included: their pages have gone */
    slab_allocator_free(a);
    return 0;
}

static inline TsiRegion* region_of(const void* at) {
    TsiPlace place = unit_place(a, at);
    assert_true(tsi_class_is_region(place.cls));
    return tsi_region(space, place.slab_id);
}
static inline void* make(size_t bytes) {
    void* q = epoch_domain_malloc(d, bytes);
    assert_non_null(q);
    return unit_hide(q);
}
static inline void fill(void** q, unsigned n) {
    for (unsigned i = 0; i < n; i++) memset(q[i] = make(SIZE), (int)i, SIZE);
}
static inline void give(void** q, unsigned n) {
    for (unsigned i = 0; i < n; i++) assert_true(slab_free_checked(a, q[i]));
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
    unit_on_thread(give_batch, &b);
    assert_int_equal(b.freed, n);
}

/* Ends the domain's epoch; what the receipt must say. */
static inline EpochReceipt end(EpochCloseMode mode, uint64_t allocated, uint64_t freed, uint64_t bytes) {
    EpochReceipt r = unit_end(a, d->epoch_id, mode);
    assert_int_equal(r.objects_allocated, allocated);
    assert_int_equal(r.objects_freed, freed);
    assert_int_equal(r.bytes_allocated, bytes);
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
    SlabRefusals before = unit_refusals(a), after;
    uint64_t live = unit_live(a);
    pthread_t t;
    void* freed = q;
    assert_false(slab_free_checked(a, q));
    assert_int_equal(pthread_create(&t, NULL, refuse_elsewhere, q), 0);
    assert_int_equal(pthread_join(t, &freed), 0);
    assert_null(freed);
    after = unit_refusals(a);
    assert_int_equal(*cause(&after, misuse), *cause(&before, misuse) + 2);
    assert_int_equal(unit_live(a), live);
    assert_int_equal(slab_usable_size(a, q), 0);
    assert_true(slab_ptr_handle(a, q) == 0);
    unit_check(a);
}

#endif
