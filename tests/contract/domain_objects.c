/*
 * domain_objects.c - objects that go elsewhere than where the thread is: into a domain that is named, or outside of every scope; and
 * what slab_last_error says of a domain that could not be made.
 */
#include "kit/fixture.h"

static const size_t sizes[] = {1, 64, 100, 1000, 4096, 5000, 70000, 300000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static uint64_t slow_paths(SlabAllocator* a) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < SLAB_FIXED_CLASSES; i++) {
        PerfCounters p;
        get_perf_counters(a, i, &p);
        n += p.slow_path_hits;
    }
    return n;
}

/* For objects of all sizes: the thread's next call finds the ring's new epoch at hand. */
static void outside_of_no_scope_is_slab_malloc(void) {
    if (kit_shared()) return; /* what is at hand there is a bank's */
    SlabOptions o = kit_options();
    o.bump = KIT_BY_CLASS;
    SlabAllocator* a = kit_create_with(&o);
    CHECK(slab_malloc(a, 64) != NULL); /* the allocator is the thread's last one */
    for (int large = 0; large <= 1; large++) {
        epoch_advance(a);
        CHECK(slab_malloc_outside(a, large ? 2000 : 64) != NULL);
        CHECK(slab_malloc_epoch(a, 64, epoch_current(a)) != NULL); /* the class has a line from here on */
        uint64_t before = slow_paths(a);
        CHECK(slab_malloc(a, 64) != NULL);
        CHECK_EQ(slow_paths(a), before);
    }
    slab_allocator_free(a);
}

static void outside_of_every_scope(void) {
    SlabAllocator* a = kit_create();
    SlabAllocator* second = kit_create();
    CHECK_EQ(kit_era_of(a, slab_malloc_outside(a, 100)), epoch_era(a, 0)); /* without a scope it is slab_malloc */
    epoch_domain_t* outer = epoch_domain_begin(a, "outer");
    epoch_domain_t* other = epoch_domain_begin(second, "another allocator's");
    epoch_domain_t* inner = epoch_domain_begin(a, "inner");
    void* kept[2][SIZES];
    for (int round = 0; round < 2; round++) {
        EpochId now = epoch_current(a);
        for (size_t i = 0; i < SIZES; i++) {
            kept[round][i] = slab_malloc_outside(a, sizes[i]);
            REQUIRE(kept[round][i] != NULL);
            CHECK_EQ(kit_era_of(a, kept[round][i]), epoch_era(a, now));
            CHECK_GE(slab_usable_size(a, kept[round][i]), sizes[i]);
            kit_fill(kept[round][i], sizes[i], i);
            CHECK_EQ(kit_era_of(a, slab_malloc(a, sizes[i])), inner->epoch_era); /* the scope is as it was */
            CHECK_EQ(kit_era_of(second, slab_malloc(second, sizes[i])), other->epoch_era);
        }
        epoch_advance(a);
    }
    for (int i = 0; i < 1000; i++) CHECK_EQ(kit_era_of(a, slab_malloc_outside(a, 64)), epoch_era(a, 2));
    CHECK(epoch_domain_end(inner) && epoch_domain_end(other) && epoch_domain_end(outer));
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < SIZES; i++) {
            CHECK(kit_intact(kept[round][i], sizes[i], i));
            CHECK(slab_free_checked(a, kept[round][i]));
        }
    }
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    CHECK(epoch_close_ex(a, epoch_current(a), EPOCH_DRAIN, NULL));
    bool goes_on = slab_malloc_outside(a, 100) != NULL;
    CHECK(epoch_domain_exit(d));
    CHECK_EQ(slab_malloc(a, 100) != NULL, goes_on); /* the same as without a scope */
    CHECK(epoch_domain_enter(d));
    epoch_advance(a);
    CHECK(slab_malloc_outside(a, 100) != NULL);
    uint64_t closed = kit_refusals(a).closed_epoch;
    errno = 0;
    CHECK_NULL(slab_malloc_outside(a, kit_size(0)));
    CHECK_EQ(errno, EINVAL);
    errno = 0;
    CHECK_NULL(slab_malloc_outside(a, kit_size(SIZE_MAX)));
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_NULL(slab_malloc_outside(NULL, 10));
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(kit_refusals(a).bad_size, 2);
    CHECK_EQ(kit_refusals(a).closed_epoch, closed);
    CHECK(epoch_domain_end(d));
    slab_allocator_free(second);
    slab_allocator_free(a);
}

typedef struct Race {
    SlabAllocator* a;
    _Atomic int over;
} Race;

static void* advances(void* arg) {
    Race* r = arg;
    while (atomic_load(&r->over) == 0) {
        epoch_advance(r->a);
        sched_yield();
    }
    return NULL;
}

static void never_refused_because_of_an_advance(void) {
    Race r = {.a = kit_create()};
    pthread_t t = kit_thread(advances, &r);
    epoch_domain_t* d = epoch_domain_begin(r.a, "request");
    for (size_t n = check_count(100000); n != 0; n--) {
        void* p = slab_malloc_outside(r.a, 64);
        CHECK(p != NULL && slab_free_checked(r.a, p));
    }
    atomic_store(&r.over, 1);
    pthread_join(t, NULL);
    CHECK(epoch_domain_end(d));
    CHECK_EQ(kit_refusals(r.a).closed_epoch, 0);
    CHECK_EQ(kit_live(r.a), 0);
    slab_allocator_free(r.a);
}

static void outside_a_budget(void) {
    SlabOptions o = kit_options();
    o.max_bytes = 1 << 20;
    SlabAllocator* a = kit_create_with(&o);
    epoch_domain_t* d = epoch_domain_begin(a, "bounded");
    size_t n = 0;
    errno = 0;
    while (n < 100000 && slab_malloc_outside(a, 1000) != NULL) n++;
    CHECK_EQ(errno, EDQUOT);
    CHECK_GT(n, 100);
    CHECK_GT(100000, n);
    errno = 0;
    CHECK_NULL(epoch_domain_calloc(d, 10, 10000));
    CHECK_EQ(errno, EDQUOT);
    CHECK(epoch_close_ex(a, epoch_current(a), EPOCH_RELEASE, NULL));
    unsigned char* p = epoch_domain_calloc(d, 10, 1000);
    REQUIRE(p != NULL);
    kit_fill(p, 10000, 1);
    errno = 0;
    CHECK_NULL(epoch_domain_realloc(d, p, 2 << 20));
    CHECK_EQ(errno, EDQUOT);
    CHECK(kit_intact(p, 10000, 1));
    CHECK(epoch_domain_end(d));
    slab_allocator_free(a);
}

static void arrays_and_blocks_in_a_named_domain(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create_labeled(a, "named");
    epoch_domain_t* inside = epoch_domain_begin(a, "inside");
    for (size_t i = 0; i < SIZES; i++) {
        unsigned char* p = epoch_domain_malloc(d, sizes[i]);
        REQUIRE(p != NULL);
        memset(p, 0xEE, sizes[i]);
        slab_free(a, p);
        p = epoch_domain_calloc(d, 1, sizes[i]);
        REQUIRE(p != NULL);
        CHECK(kit_all_zero(p, sizes[i]));
        CHECK_EQ(kit_era_of(a, p), d->epoch_era);
        kit_fill(p, sizes[i], i);
        p = epoch_domain_realloc(d, p, 3 * sizes[i]);
        REQUIRE(p != NULL);
        CHECK(kit_intact(p, sizes[i], i));
        CHECK_EQ(kit_era_of(a, p), d->epoch_era);
        CHECK_NULL(epoch_domain_realloc(d, p, 0));
    }
    CHECK_EQ(kit_live(a), 0);
    void* from_inside = slab_malloc(a, 100);
    void* moved = epoch_domain_realloc(d, from_inside, 100000); /* what has to move goes to the domain that is named */
    CHECK_EQ(kit_era_of(a, moved), d->epoch_era);
    void* fresh = epoch_domain_realloc(d, NULL, 100);
    CHECK_EQ(kit_era_of(a, fresh), d->epoch_era);
    errno = 0;
    CHECK_NULL(epoch_domain_calloc(d, kit_size(SIZE_MAX / 2), 3));
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_NULL(epoch_domain_calloc(d, kit_size(0), 3));
    CHECK_EQ(errno, EINVAL);
    int local = 0;
    errno = 0;
    CHECK_NULL(epoch_domain_realloc(d, &local, 100));
    CHECK_EQ(errno, EINVAL);
    CHECK(epoch_domain_end(inside));
    CHECK(epoch_domain_destroy(d));
    slab_allocator_free(a);
}

static char order[8];
static void note_end(void* arg) { strncat(order, arg, 1); }

static void ends_of_a_named_domain(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_begin(a, "ends");
    order[0] = 0;
    CHECK(epoch_domain_on_end(d, note_end, "1"));
    CHECK(epoch_domain_on_end(d, note_end, "2"));
    CHECK(!epoch_domain_on_end(d, NULL, NULL));
    CHECK(epoch_domain_reset(d));
    CHECK_STR(order, "21");
    CHECK(epoch_domain_on_end(d, note_end, "3")); /* the incarnation it has now */
    void* p = slab_malloc(a, 100);
    CHECK(epoch_domain_exit(d));
    CHECK_STR(order, "213");
    uint64_t closed = kit_refusals(a).closed_epoch;
    errno = 0;
    CHECK(!epoch_domain_on_end(d, note_end, "4")); /* it has ended */
    CHECK_EQ(errno, ESTALE);
    errno = 0;
    CHECK_NULL(epoch_domain_calloc(d, 1, 10));
    CHECK_EQ(errno, ESTALE);
    errno = 0;
    CHECK_NULL(epoch_domain_realloc(d, NULL, 10));
    CHECK_EQ(errno, ESTALE);
    CHECK_EQ(kit_refusals(a).closed_epoch, closed + 3);
    CHECK(!slab_free_checked(a, kit_hide(p)));
    p = slab_malloc(a, 100);
    memset(p, 7, 100);
    CHECK_NULL(epoch_domain_realloc(d, p, 100000)); /* nowhere to go: the block stays */
    CHECK_EQ(((unsigned char*)p)[99], 7);
    CHECK_NULL(epoch_domain_realloc(d, p, 0));
    CHECK_EQ(kit_live(a), 0);
    CHECK(epoch_domain_destroy(d));
    for (unsigned call = 0; call < 4; call++) { /* gone */
        errno = 0;
        if (call == 0) CHECK_NULL(epoch_domain_calloc(d, 1, 10));
        else if (call == 1) CHECK_NULL(epoch_domain_realloc(d, NULL, 10));
        else if (call == 2) CHECK_NULL(epoch_domain_malloc(d, 10));
        else CHECK(!epoch_domain_on_end(d, note_end, "5"));
        CHECK_EQ(errno, ESTALE);
        CHECK_STR(slab_last_error(), "the domain was destroyed");
    }
    errno = 0;
    CHECK_NULL(epoch_domain_calloc(NULL, 1, 10));
    CHECK_EQ(errno, EINVAL);
    CHECK_NULL(epoch_domain_realloc(NULL, NULL, 10));
    CHECK(!epoch_domain_on_end(NULL, note_end, "6"));
    CHECK_STR(order, "213");
    slab_allocator_free(a);
}

static void says_why_there_is_no_domain(void) {
    SlabOptions o = kit_options();
    o.reserve_bytes = 16 << 20;
    SlabAllocator* a = kit_create_with(&o);
    CHECK_STR(slab_last_error(), "");
    CHECK_NULL(epoch_domain_begin(NULL, "x"));
    CHECK_HAS(slab_last_error(), "NULL");
    CHECK_NULL(epoch_domain_wrap(NULL, 0, true));
    CHECK_HAS(slab_last_error(), "NULL");
    CHECK_NULL(epoch_domain_wrap(a, 77, true));
    CHECK_HAS(slab_last_error(), "77");
    static epoch_domain_t* open[100000];
    size_t n = 0;
    errno = 0;
    while (n < 100000 && (open[n] = epoch_domain_create(a)) != NULL) n++;
    CHECK_EQ(errno, ENOMEM);
    CHECK_GT(100000, n);
    CHECK_HAS(slab_last_error(), "one more");
    errno = 0;
    CHECK_NULL(epoch_domain_begin(a, "one too many"));
    CHECK_EQ(errno, ENOMEM);
    CHECK_HAS(slab_last_error(), "one more");
    CHECK_NULL(epoch_domain_current());
    while (n != 0) CHECK(epoch_domain_drain(open[--n], NULL));
    SlabAllocator* works = kit_create();
    CHECK_STR(slab_last_error(), ""); /* of the last call that says anything */
    slab_allocator_free(works);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(outside_of_every_scope),
    CHECK_CASE(outside_of_no_scope_is_slab_malloc),
    CHECK_CASE(never_refused_because_of_an_advance),
    CHECK_CASE(outside_a_budget),
    CHECK_CASE(arrays_and_blocks_in_a_named_domain),
    CHECK_CASE(ends_of_a_named_domain),
    CHECK_CASE(says_why_there_is_no_domain),
};
CHECK_MAIN(cases)
