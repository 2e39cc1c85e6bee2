/*
 * lanes.c - slab_lane.h by its public face: an object of a lane is an object of its domain. C++ has the same header, in
 * tests/cpp/objects.cpp.
 */
#include "kit/fixture.h"

#include <slab_lane.h>

static const size_t sizes[] = {1, 15, 16, 17, 64, 100, 1000, 1024, 1025, 4095, 4096, 4097, 5000, 70000, 300000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void objects_of_the_domain(void) {
    SlabAllocator* a = kit_create();
    SlabLane lane;
    REQUIRE(slab_lane_begin(&lane, a, "lane"));
    epoch_domain_t* d = lane.domain;
    CHECK_EQ((uintptr_t)epoch_domain_current(), (uintptr_t)d);
    CHECK_STR(d->alloc == a ? "its" : "another's", "its");
    void* p[4][SIZES];
    for (unsigned round = 0; round < 4; round++) {
        for (unsigned i = 0; i < SIZES; i++) {
            REQUIRE((p[round][i] = slab_lane_malloc(&lane, sizes[i])) != NULL);
            CHECK_EQ((uintptr_t)p[round][i] % 16, 0);
            CHECK_GE(slab_usable_size(a, p[round][i]), sizes[i]);
            CHECK(slab_owns(a, p[round][i]));
            CHECK_EQ(kit_era_of(a, p[round][i]), d->epoch_era);
            kit_fill(p[round][i], sizes[i], round * SIZES + i);
        }
    }
    for (unsigned round = 0; round < 4; round++)
        for (unsigned i = 0; i < SIZES; i++) CHECK(kit_intact(p[round][i], sizes[i], round * SIZES + i));
    for (unsigned i = 0; i < SIZES; i++) { /* it grows, has a handle, is freed, and is not freed twice */
        void* q = slab_realloc(a, p[0][i], 2 * sizes[i]);
        REQUIRE(q != NULL);
        CHECK(kit_intact(q, sizes[i], i));
        CHECK(slab_free_checked(a, q));
        CHECK(!slab_free_checked(a, q));
        SlabHandle h = slab_ptr_handle(a, p[1][i]);
        CHECK(h != 0 && free_obj(a, h) && !free_obj(a, h));
    }
    EpochReceipt r;
    CHECK(epoch_domain_end_ex(d, &r));
    CHECK_EQ(r.objects_released, 2 * SIZES);
    CHECK_EQ(r.objects_allocated, r.objects_freed + r.objects_released);
    for (unsigned i = 0; i < SIZES; i++) CHECK(!slab_free_checked(a, p[2][i]));
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static void what_is_refused(void) {
    SlabAllocator* a = kit_create();
    SlabLane lane, none;
    memset(&none, 0, sizeof none);
    errno = 0;
    CHECK_NULL(slab_lane_malloc(&none, 64));
    CHECK_EQ(errno, EINVAL);
    CHECK(!slab_lane_begin(&none, NULL, "lane"));
    CHECK(!slab_lane_open(&none, NULL));
    CHECK_NULL(none.domain);
    REQUIRE(slab_lane_begin(&lane, a, "lane"));
    errno = 0;
    CHECK_NULL(slab_lane_malloc(&lane, kit_size(0)));
    CHECK_EQ(errno, EINVAL);
    errno = 0;
    CHECK_NULL(slab_lane_malloc(&lane, kit_size(SIZE_MAX)));
    CHECK_EQ(errno, ENOMEM);
    for (unsigned i = 0; i < 100; i++) CHECK(slab_lane_malloc(&lane, 64) != NULL);
    CHECK(epoch_domain_reset(lane.domain));
    errno = 0;
    CHECK_NULL(slab_lane_malloc(&lane, 64));
    CHECK_EQ(errno, ESTALE);
    CHECK_HAS(slab_last_error(), "ended");
    CHECK(slab_lane_open(&lane, lane.domain));
    CHECK(slab_lane_malloc(&lane, 64) != NULL);
    CHECK(epoch_close_era(a, lane.domain->epoch_era, EPOCH_RELEASE, NULL));
    errno = 0;
    CHECK_NULL(slab_lane_malloc(&lane, 64));
    CHECK_EQ(errno, ESTALE);
    CHECK_EQ(kit_refusals(a).closed_epoch, 2);
    epoch_domain_t* d = lane.domain;
    CHECK(epoch_domain_end(d));
    errno = 0;
    CHECK_NULL(slab_lane_malloc(&lane, 64));
    CHECK_EQ(errno, ESTALE);
    CHECK(!slab_lane_open(&none, d));
    CHECK_EQ(errno, ESTALE);
    slab_allocator_free(a);
}

static void a_budget_holds(void) {
    SlabAllocator* a = kit_create();
    SlabDomainOptions o = {.struct_size = sizeof o, .hard_bytes = 64 << 10};
    epoch_domain_t* d = epoch_domain_create_ex(a, &o);
    SlabLane lane;
    REQUIRE(d != NULL && slab_lane_open(&lane, d));
    size_t n = 0;
    errno = 0;
    while (n < 100000 && slab_lane_malloc(&lane, 64) != NULL) n++;
    CHECK_EQ(errno, EDQUOT);
    CHECK_BETWEEN(n, 100, 1024);
    EpochReceipt r;
    CHECK(epoch_domain_destroy_ex(d, &r));
    CHECK_EQ(r.objects_released, n);
    slab_allocator_free(a);
}

typedef struct Shared {
    SlabAllocator* a;
    epoch_domain_t* d;
    SlabLane lane;
} Shared;

enum { EACH = 20000, SHARERS = 4 };
static void* own_lane(void* arg) {
    Shared* s = arg;
    SlabLane mine;
    REQUIRE(slab_lane_open(&mine, s->d));
    for (unsigned i = 0; i < EACH; i++) REQUIRE(slab_lane_malloc(&mine, 1 + i % 100) != NULL);
    return NULL;
}
static void* anothers_lane(void* arg) {
    Shared* s = arg;
    for (unsigned i = 0; i < EACH; i++) REQUIRE(slab_lane_malloc(&s->lane, 1 + i % 100) != NULL);
    return NULL;
}

static void threads(void) {
    Shared s = {.a = kit_create()};
    REQUIRE(slab_lane_begin(&s.lane, s.a, "lane"));
    s.d = s.lane.domain;
    REQUIRE(slab_lane_malloc(&s.lane, 64) != NULL);
    pthread_t t[SHARERS];
    for (unsigned i = 0; i < SHARERS; i++) t[i] = kit_thread(own_lane, &s);
    for (unsigned i = 0; i < SHARERS; i++) pthread_join(t[i], NULL);
    kit_on_thread(anothers_lane, &s);
    for (unsigned i = 0; i < EACH; i++) REQUIRE(slab_lane_malloc(&s.lane, 1 + i % 100) != NULL);
    EpochReceipt r;
    CHECK(epoch_domain_end_ex(s.d, &r));
    CHECK_EQ(r.objects_released, 1 + (SHARERS + 2) * EACH);
    slab_allocator_free(s.a);
}

static void* refused_there(void* arg) {
    Shared* s = arg;
    SlabLane mine;
    errno = 0;
    CHECK_NULL(slab_lane_malloc(&s->lane, 64));
    CHECK_EQ(errno, EBUSY);
    errno = 0;
    CHECK(!slab_lane_open(&mine, s->d) || slab_lane_malloc(&mine, 64) == NULL);
    CHECK_EQ(errno, EBUSY);
    return NULL;
}

/* In a domain of one thread, by its lane and by others'. */
static void one_owner(void) {
    Shared s = {.a = kit_create()};
    SlabDomainOptions o = {.struct_size = sizeof o, .flags = SLAB_DOMAIN_OWNER_ONLY};
    REQUIRE((s.d = epoch_domain_create_ex(s.a, &o)) != NULL);
    REQUIRE(slab_lane_open(&s.lane, s.d));
    for (unsigned i = 0; i < 1000; i++) CHECK(slab_lane_malloc(&s.lane, 64) != NULL);
    kit_on_thread(refused_there, &s);
    for (unsigned i = 0; i < 1000; i++) CHECK(slab_lane_malloc(&s.lane, 64) != NULL);
    EpochReceipt r;
    CHECK(epoch_domain_destroy_ex(s.d, &r));
    CHECK_EQ(r.objects_released, 2000);
    slab_allocator_free(s.a);
}

static void several_allocators(void) {
    SlabAllocator* a[3];
    SlabLane lane[3];
    for (unsigned i = 0; i < 3; i++) {
        a[i] = kit_create();
        REQUIRE(slab_lane_begin(&lane[i], a[i], "lane"));
    }
    for (unsigned n = 0; n < 3000; n++) {
        void* p = slab_lane_malloc(&lane[n % 3], 64);
        REQUIRE(p != NULL);
        if (n % 100 < 3) CHECK(slab_owns(a[n % 3], p));
    }
    for (unsigned i = 3; i-- > 0;) {
        EpochReceipt r;
        CHECK(epoch_domain_end_ex(lane[i].domain, &r));
        CHECK_EQ(r.objects_released, 1000);
        slab_allocator_free(a[i]);
    }
}

static const CheckCase cases[] = {
    CHECK_CASE(objects_of_the_domain), CHECK_CASE(what_is_refused),   CHECK_CASE(a_budget_holds),
    CHECK_CASE(threads),               CHECK_CASE(one_owner),         CHECK_CASE(several_allocators),
};
CHECK_MAIN(cases)
