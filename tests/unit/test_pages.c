/*
 * test_pages.c - whole lives of allocators under pretended systems: pages of 16 and 64 KiB, a kernel that
 * charges what is writable, one without membarrier, and all of it together. Each system is a process
 * of its own, because the page size is fixed before the first allocator.
 */
#include "scenario.h"

#include "mem/parts.h"

static SlabOptions options;

static void whole_life(void** state) {
    (void)state;
    for (unsigned policy = 0; policy <= 2; policy++) {
        options = unit_options();
        options.purge_policy = policy;
        fake_os_clear();
        assert_false(scenario_run(&options));
        assert_int_equal(fake_os.misaligned, 0);
        if (policy == SLAB_PURGE_NEVER)
            assert_int_equal(fake_os.calls[FAKE_PURGE], 0);
        else
            assert_true(fake_os.calls[FAKE_PURGE] > 0);
    }
}

static void whole_life_cold_and_prefaulted(void** state) {
    (void)state;
    options = unit_options();
    options.warm_bytes = UINT64_MAX;
    options.prefault = 1;
    assert_false(scenario_run(&options));
    options.slab_bytes = 65536;
    assert_false(scenario_run(&options));
    options.slab_bytes = 4096;
    assert_false(scenario_run(&options));
    assert_int_equal(fake_os.misaligned, 0);
}

/* A slab is at least one page, whatever its class: a page never has two owners, but for parts of small ones. */
static void slabs_are_whole_pages(void** state) {
    (void)state;
    SlabAllocator* a = unit_create();
    for (unsigned cls = 1; cls < TSI_CLASSES; cls = unit_class_after(cls)) {
        const TsiClass* c = &tsi_arena(a)->space.classes->c[cls];
        if (!tsi_parts_share(&tsi_arena(a)->space, cls)) assert_int_equal(c->slab_bytes % tsi_os.page_bytes, 0);
        else assert_int_equal(2 * c->slab_bytes, tsi_os.page_bytes);
        assert_true((size_t)c->slab_bytes >= (size_t)1 << c->line_shift);
        assert_int_equal(c->slab_bytes >> c->lines_log2, 1u << c->line_shift);
    }
    assert_int_equal(slab_page_size(), tsi_os.page_bytes);
    slab_allocator_free(a);
}

/* The purges of one epoch do not touch the objects of its neighbour. */
static void neighbours_keep_their_contents(void** state) {
    (void)state;
    enum { N = 600 };
    static uint8_t *mine[N], *theirs[N];
    SlabAllocator* a = unit_create_cold();
    EpochId old = epoch_current(a);
    epoch_domain_t* d = epoch_domain_create(a);
    assert_non_null(d);
    for (unsigned n = 0; n < N; n++) {
        size_t bytes = 16 + n % 60 * 50;
        mine[n] = slab_malloc_epoch(a, bytes, old);
        theirs[n] = epoch_domain_malloc(d, bytes);
        assert_true(mine[n] != NULL && theirs[n] != NULL);
        memset(mine[n], (int)(n & 0xff), bytes);
        memset(theirs[n], 0xff, bytes);
    }
    epoch_domain_destroy(d);
    slab_trim(a);
    for (unsigned n = 0; n < N; n++) {
        size_t bytes = 16 + n % 60 * 50;
        for (size_t i = 0; i < bytes; i++) assert_int_equal(mine[n][i], n & 0xff);
        assert_int_equal(slab_usable_size(a, theirs[n]), 0);
    }
    assert_int_equal(unit_live(a), N);
    unit_check(a);
    slab_allocator_free(a);
}

/* Without membarrier the fast path is off; results are the same. */
static void brackets_are_as_the_system_allows(void** state) {
    (void)state;
    SlabAllocator* a = unit_create();
    assert_non_null(slab_malloc(a, 64));
    TsiBinding* b = unit_binding(a);
    if (tsi_os.has_membarrier)
        assert_int_equal(b->live_word, tsi_heap_word(b->index, TSI_HEAP_LIVE));
    else
        assert_true(b->live_word == TSI_FENCED);
    fake_os_clear();
    slab_trim(a);
    assert_int_equal(fake_os.barriers, 0); /* nobody else owns anything */
    slab_allocator_free(a);
}

/* What is given back under strict commit is not accessible, and is made so again before use. */
static void strict_commit_gives_back_the_charge(void** state) {
    (void)state;
    SlabAllocator* a = unit_create_cold();
    for (unsigned lap = 0; lap < 3; lap++) {
        fake_os_clear();
        EpochId id = epoch_current(a);
        for (unsigned n = 0; n < 50; n++) {
            void* p = slab_malloc(a, 5000);
            assert_non_null(p);
            memset(p, 1, 5000);
        }
        void* large = slab_malloc(a, 3 << 20);
        assert_non_null(large);
        memset(large, 1, 3 << 20);
        assert_true(epoch_close_ex(a, id, EPOCH_RELEASE, NULL));
        assert_true(fake_os.run_count > 0);
        size_t uncommitted = 0;
        for (unsigned i = 0; i < fake_os.run_count; i++)
            if (fake_os.runs[i].how == TSI_PURGE_UNCOMMIT) uncommitted += fake_os.runs[i].bytes;
        assert_true(uncommitted >= (3u << 20) + 50 * 5000);
        (void)epoch_advance_id(a);
    }
    unit_check(a);
    slab_allocator_free(a);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(whole_life),
    cmocka_unit_test(whole_life_cold_and_prefaulted),
    cmocka_unit_test(slabs_are_whole_pages),
    cmocka_unit_test(neighbours_keep_their_contents),
    cmocka_unit_test(brackets_are_as_the_system_allows),
};
static const struct CMUnitTest strict_tests[] = {cmocka_unit_test(strict_commit_gives_back_the_charge)};

static void system_16k(void** state) {
    (void)state;
    assert_int_equal(unit_rerun("16384"), 0);
}
static void system_64k(void** state) {
    (void)state;
    assert_int_equal(unit_rerun("65536"), 0);
}
static void system_strict(void** state) {
    (void)state;
    assert_int_equal(unit_rerun("0 strict"), 0);
}
static void system_fenced(void** state) {
    (void)state;
    assert_int_equal(unit_rerun("0 fenced"), 0);
}
static void system_64k_strict_fenced(void** state) {
    (void)state;
    assert_int_equal(unit_rerun("65536 strict fenced"), 0);
}

int main(int argc, char** argv) {
    const struct CMUnitTest systems[] = {
        cmocka_unit_test(system_16k),
        cmocka_unit_test(system_64k),
        cmocka_unit_test(system_strict),
        cmocka_unit_test(system_fenced),
        cmocka_unit_test(system_64k_strict_fenced),
    };
    const char* system = argc > 1 ? argv[1] : "0";
    fake_os_install(strtoul(system, NULL, 10), strstr(system, "strict") != NULL, strstr(system, "fenced") != NULL);
    int failed = cmocka_run_group_tests_name(system, tests, NULL, NULL);
    if (tsi_os.strict_commit) failed += cmocka_run_group_tests_name("strict", strict_tests, NULL, NULL);
    if (argc > 1) return failed;
    return failed + cmocka_run_group_tests_name("systems", systems, NULL, NULL);
}
