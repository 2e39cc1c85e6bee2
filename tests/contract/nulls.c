/*
 * nulls.c - NULL allocators, inert allocators, NULL results and numbers that name nothing: every
 * entry point answers NULL, false, 0 or a zeroed structure, and nothing crashes.
 */
#include "kit/fixture.h"

static int ended;
static void count_end(void* arg) {
    (void)arg;
    ended++;
}

static void probe_objects(SlabAllocator* a, bool check_errno) {
    SlabHandle h = 5;
    EpochId id = 0;
    uint64_t era = 0;
    int local = 0;
    errno = 0;
    CHECK_NULL(slab_malloc(a, 10));
    CHECK(!check_errno || errno == EINVAL);
    errno = 0;
    CHECK_NULL(slab_malloc_epoch(a, 10, 0));
    CHECK(!check_errno || errno == EINVAL);
    CHECK_NULL(alloc_obj(a, 10, &h));
    CHECK_EQ(h, 0);
    h = 5;
    CHECK_NULL(alloc_obj_epoch(a, 10, 0, &h));
    CHECK_EQ(h, 0);
    CHECK_NULL(alloc_obj_epoch(a, 10, 0, NULL));
    CHECK_NULL(slab_calloc(a, 2, 10));
    CHECK_NULL(slab_calloc_epoch(a, 2, 10, 0));
    CHECK_NULL(slab_realloc(a, NULL, 10));
    CHECK_NULL(slab_realloc(a, &local, 10));
    CHECK_NULL(slab_realloc_epoch(a, NULL, 10, 0));
    CHECK_NULL(slab_aligned_alloc(a, 64, 10));
    CHECK_NULL(slab_aligned_alloc_epoch(a, 64, 10, 0));
    CHECK(!free_obj(a, 0));
    CHECK(!free_obj(a, 12345678));
    slab_free(a, NULL);
    slab_free(a, &local);
    slab_free_sized(a, &local, 4);
    CHECK(!slab_free_sized_checked(a, &local, 4));
    CHECK_NULL(slab_move_outside(a, &local));
    CHECK_NULL(slab_malloc0(a, 10));
    CHECK_NULL(slab_realloc_outside(a, NULL, 10));
    CHECK_NULL(slab_strdup_outside(a, "x"));
    CHECK_NULL(slab_asprintf_outside(a, "x"));
    CHECK(!slab_free_checked(a, &local));
    CHECK_EQ(slab_usable_size(a, &local), 0);
    CHECK(!slab_owns(a, &local));
    CHECK(!slab_ptr_epoch(a, &local, &id, &era));
    CHECK_NULL(slab_handle_ptr(a, 12345678));
    CHECK_EQ(slab_ptr_handle(a, &local), 0);
    slab_trim(a);
    slab_thread_flush(a);
}

static void probe_epochs(SlabAllocator* a) {
    EpochReceipt r;
    epoch_advance(a);
    (void)epoch_advance_id(a);
    (void)epoch_current(a);
    epoch_close(a, 0);
    CHECK(!epoch_close_ex(a, 0, EPOCH_RELEASE, &r));
    CHECK(!epoch_close_ex(a, 0, EPOCH_DRAIN, NULL));
    CHECK(!epoch_close_era(a, 1, EPOCH_RELEASE, &r));
    CHECK_EQ(epoch_era(a, 0), 0);
    CHECK_EQ(epoch_state(a, 0), EPOCH_CLOSING);
    slab_epoch_set_label(a, 0, "x");
    slab_epoch_inc_refcount(a, 0);
    slab_epoch_dec_refcount(a, 0);
    CHECK_EQ(slab_epoch_get_refcount(a, 0), 0);
    CHECK(!slab_epoch_on_end(a, 0, count_end, NULL));
    CHECK_EQ(ended, 0);
    CHECK_NULL(epoch_domain_create(a));
    CHECK_NULL(epoch_domain_create_labeled(a, "x"));
    CHECK_NULL(epoch_domain_wrap(a, 0, true));
    CHECK_NULL(epoch_domain_begin(a, "x"));
}

static void probe_numbers(SlabAllocator* a) {
    SlabGlobalStats g;
    SlabClassStats c;
    SlabEpochStats e;
    SlabRefusals r;
    PerfCounters p;
    memset(&g, 0xFF, sizeof g);
    memset(&c, 0xFF, sizeof c);
    memset(&e, 0xFF, sizeof e);
    memset(&r, 0xFF, sizeof r);
    memset(&p, 0xFF, sizeof p);
    slab_stats_global(a, &g);
    slab_stats_class(a, 0, &c);
    slab_stats_epoch(a, 0, 0, &e);
    slab_stats_refusals(a, &r);
    get_perf_counters(a, 0, &p);
    CHECK_EQ(g.committed_bytes, 0);
    CHECK_EQ(g.live_objects, 0);
    CHECK_EQ(g.total_slabs_allocated, 0);
    CHECK_EQ(c.slow_path_hits, 0);
    CHECK_EQ(c.committed_bytes, 0);
    CHECK_EQ(e.alloc_count, 0);
    CHECK_EQ(e.estimated_rss_bytes, 0);
    CHECK_EQ(r.foreign_pointer, 0);
    CHECK(kit_all_zero(&p, sizeof p));
    slab_stats_global(a, NULL);
    slab_stats_class(a, 0, NULL);
    slab_stats_epoch(a, 0, 0, NULL);
    slab_stats_refusals(a, NULL);
    get_perf_counters(a, 0, NULL);
}

static void null_allocator(void) {
    probe_objects(NULL, true);
    probe_epochs(NULL);
    probe_numbers(NULL);
    slab_allocator_free(NULL);
    allocator_init(NULL);
    CHECK(!allocator_init_with(NULL, NULL));
    allocator_destroy(NULL);
    CHECK_EQ(slab_good_size(NULL, 0), 0);
}

static void inert_allocator(void) {
    static SlabAllocator storage;
    memset(&storage, 0xEE, sizeof storage);
    SlabOptions bad = kit_options();
    bad.ring_size = 1;
    errno = 0;
    CHECK(!allocator_init_with(&storage, &bad));
    CHECK_EQ(errno, EINVAL);
    CHECK(slab_last_error()[0] != '\0');
    probe_objects(&storage, false);
    probe_epochs(&storage);
    probe_numbers(&storage);
    allocator_destroy(&storage);
    CHECK(allocator_init_with(&storage, NULL));
    void* p = slab_malloc(&storage, 10);
    CHECK(p != NULL);
    CHECK(slab_free_checked(&storage, p));
    allocator_destroy(&storage);
    probe_objects(&storage, false);
}

static void null_domains(void) {
    EpochReceipt r;
    epoch_domain_enter(NULL);
    epoch_domain_exit(NULL);
    epoch_domain_destroy(NULL);
    epoch_domain_force_close(NULL);
    epoch_domain_end(NULL);
    CHECK_NULL(epoch_domain_current());
    CHECK_NULL(epoch_domain_allocator());
    errno = 0;
    CHECK_NULL(epoch_domain_malloc(NULL, 10));
    CHECK_EQ(errno, EINVAL);
    CHECK(!epoch_domain_receipt(NULL, &r));
    CHECK(!epoch_domain_reset(NULL));
    CHECK(!epoch_domain_detach(NULL));
    CHECK(!epoch_domain_attach(NULL));
    CHECK(!epoch_domain_destroy_ex(NULL, NULL));
    CHECK_EQ(epoch_domain_era(NULL), 0);
    CHECK(!epoch_domain_stats(NULL, NULL));
    CHECK(epoch_domain_switch(NULL, NULL)); /* from no scope to none */
}

static void numbers_that_name_nothing(void) {
    SlabAllocator* a = kit_create();
    SlabClassStats c;
    SlabEpochStats e;
    PerfCounters p;
    void* q = slab_malloc(a, 64);
    static const uint32_t bad_classes[] = {4096, 0x7FFFFFFF, UINT32_MAX};
    for (size_t i = 0; i < 3; i++) {
        memset(&c, 0xFF, sizeof c);
        memset(&e, 0xFF, sizeof e);
        memset(&p, 0xFF, sizeof p);
        slab_stats_class(a, bad_classes[i], &c);
        slab_stats_epoch(a, bad_classes[i], 0, &e);
        get_perf_counters(a, bad_classes[i], &p);
        CHECK_EQ(c.object_size, 0);
        CHECK_EQ(c.committed_bytes, 0);
        CHECK_EQ(e.epoch_era, 0);
        CHECK_EQ(e.alloc_count, 0);
        CHECK(kit_all_zero(&p, sizeof p));
    }
    slab_stats_epoch(a, 0, 16, &e);
    CHECK_EQ(e.epoch_era, 0);
    slab_stats_epoch(a, 0, 0x80000005u, &e);
    CHECK_EQ(e.epoch_era, 0);
    slab_free(a, q);
    slab_allocator_free(a);
}

static void bad_epoch_ids(void) {
    /* With the top bit set an id may be taken for a domain's that has ended. */
    static const EpochId bad[] = {16, 17, 1024, 0x7FFFFFFF, 0x80000000u, 0x80000001u, 0xC0000000u, UINT32_MAX};
    SlabAllocator* a = kit_create();
    EpochReceipt r;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bool like_a_domain = bad[i] >> 31 != 0;
        SlabRefusals before = kit_refusals(a);
        errno = 0;
        CHECK_NULL(slab_malloc_epoch(a, 64, bad[i]));
        CHECK(errno == EINVAL || (like_a_domain && errno == ESTALE));
        SlabRefusals now = kit_refusals(a);
        CHECK_EQ(now.bad_epoch + now.closed_epoch, before.bad_epoch + before.closed_epoch + 1);
        CHECK(like_a_domain || now.bad_epoch == before.bad_epoch + 1);
        CHECK(!epoch_close_ex(a, bad[i], EPOCH_DRAIN, &r));
        CHECK(!epoch_close_ex(a, bad[i], EPOCH_RELEASE, NULL));
        epoch_close(a, bad[i]);
        CHECK_EQ(epoch_era(a, bad[i]), 0);
        CHECK_EQ(epoch_state(a, bad[i]), EPOCH_CLOSING);
        slab_epoch_set_label(a, bad[i], "nobody");
        slab_epoch_inc_refcount(a, bad[i]);
        CHECK_EQ(slab_epoch_get_refcount(a, bad[i]), 0);
        slab_epoch_dec_refcount(a, bad[i]);
        CHECK(!slab_epoch_on_end(a, bad[i], count_end, NULL));
        errno = 0;
        CHECK_NULL(epoch_domain_wrap(a, bad[i], true));
        CHECK(errno == EINVAL || (like_a_domain && errno == ESTALE));
    }
    CHECK(!epoch_close_era(a, 0, EPOCH_RELEASE, NULL));
    CHECK(!epoch_close_era(a, 1000000, EPOCH_RELEASE, NULL));
    CHECK(!epoch_close_era(a, UINT64_MAX, EPOCH_DRAIN, NULL));
    CHECK_EQ(ended, 0);
    CHECK_EQ(kit_global(a).active_epoch_count, 16);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(null_allocator), CHECK_CASE(inert_allocator),
    CHECK_CASE(null_domains),   CHECK_CASE(numbers_that_name_nothing),
    CHECK_CASE(bad_epoch_ids),
};
CHECK_MAIN(cases)
