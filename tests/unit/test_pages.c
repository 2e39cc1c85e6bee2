/*
 * test_pages.c - whole lives of allocators under pretended systems: pages of 16 and 64 KiB, a kernel that
 * charges what is writable, one without membarrier, and all of it together. Each system is a process
 * of its own, because the page size is fixed before the first allocator.
 */
#include "scenario.h"

#include "mem/chunk_pages.h"
#include "mem/parts.h"

static SlabOptions options;

static void whole_life(void) {
    for (unsigned policy = 0; policy <= 2; policy++) {
        options = kit_options();
        options.purge_policy = policy;
        fake_os_clear();
        REQUIRE(!scenario_run(&options));
        REQUIRE_EQ(fake_os.misaligned, 0);
        if (policy == SLAB_PURGE_NEVER)
            REQUIRE_EQ(fake_os.calls[FAKE_PURGE], 0);
        else
            REQUIRE(fake_os.calls[FAKE_PURGE] > 0);
    }
}

static void whole_life_cold_and_prefaulted(void) {
    options = kit_options();
    options.warm_bytes = UINT64_MAX;
    options.prefault = 1;
    REQUIRE(!scenario_run(&options));
    options.slab_bytes = 65536;
    REQUIRE(!scenario_run(&options));
    options.slab_bytes = 4096;
    REQUIRE(!scenario_run(&options));
    REQUIRE_EQ(fake_os.misaligned, 0);
}

/* A slab is at least one page, whatever its class: a page never has two owners, but for parts of small ones. */
static void slabs_are_whole_pages(void) {
    SlabAllocator* a = kit_create();
    for (unsigned cls = 1; cls < TSI_CLASSES; cls = kit_class_after(cls)) {
        const TsiClass* c = &tsi_arena(a)->space.classes->c[cls];
        if (!tsi_parts_share(&tsi_arena(a)->space, cls))
            REQUIRE_EQ(c->slab_bytes % tsi_os.page_bytes, 0);
        else
            REQUIRE_EQ(2 * c->slab_bytes, tsi_os.page_bytes);
        REQUIRE((size_t)c->slab_bytes >= (size_t)1 << c->line_shift);
        REQUIRE_EQ(c->slab_bytes >> c->lines_log2, 1u << c->line_shift);
    }
    REQUIRE_EQ(slab_page_size(), tsi_os.page_bytes);
    slab_allocator_free(a);
}

/* The purges of one epoch do not touch the objects of its neighbour. */
static void neighbours_keep_their_contents(void) {
    enum { N = 600 };
    static uint8_t *mine[N], *theirs[N];
    SlabAllocator* a = kit_create_cold();
    EpochId old = epoch_current(a);
    epoch_domain_t* d = epoch_domain_create(a);
    REQUIRE(d != NULL);
    for (unsigned n = 0; n < N; n++) {
        size_t bytes = 16 + n % 60 * 50;
        mine[n] = slab_malloc_epoch(a, bytes, old);
        theirs[n] = epoch_domain_malloc(d, bytes);
        REQUIRE(mine[n] != NULL && theirs[n] != NULL);
        memset(mine[n], (int)(n & 0xff), bytes);
        memset(theirs[n], 0xff, bytes);
    }
    epoch_domain_destroy(d);
    slab_trim(a);
    for (unsigned n = 0; n < N; n++) {
        size_t bytes = 16 + n % 60 * 50;
        for (size_t i = 0; i < bytes; i++) REQUIRE_EQ(mine[n][i], n & 0xff);
        REQUIRE_EQ(slab_usable_size(a, theirs[n]), 0);
    }
    REQUIRE_EQ(kit_live(a), N);
    kit_check(a);
    slab_allocator_free(a);
}

/* What the bookkeeping is said to cost is whole pages, each once, though small tables of several chunks share one; and
 * those go with the last chunk that needs them, not before. */
static void bookkeeping_is_whole_pages(void) {
    enum { OBJECTS = 100 };
    static void* p[OBJECTS];
    SlabAllocator* a = kit_create_cold();
    TsiSpace* s = &tsi_arena(a)->space;
    REQUIRE_EQ(kit_global(a).metadata_bytes % tsi_os.page_bytes, 0);
    for (unsigned n = 0; n < OBJECTS; n++) REQUIRE((p[n] = slab_malloc(a, 200 << 10)) != NULL);

    uint32_t chunks = tsi_load_relaxed(&s->chunk_high), per_page = (uint32_t)(tsi_os.page_bytes >> TSI_ENTRIES_SHIFT);
    uint64_t all = (uint64_t)(chunks + per_page - 1) / per_page * tsi_os.page_bytes;
    REQUIRE_GE(chunks, 20);
    REQUIRE_EQ(tsi_written_entries(s, chunks), all);
    REQUIRE_EQ(kit_global(a).metadata_bytes % tsi_os.page_bytes, 0);

    for (unsigned n = 1; n < OBJECTS; n++) REQUIRE(slab_free_checked(a, p[n]));
    slab_trim(a);
    REQUIRE_EQ(tsi_written_entries(s, chunks), tsi_os.page_bytes); /* of the chunk where the first one lives */
    REQUIRE_EQ(slab_usable_size(a, p[0]), slab_good_size(a, 200 << 10));
    REQUIRE(slab_free_checked(a, p[0]));
    slab_trim(a);
    REQUIRE_EQ(tsi_written_entries(s, chunks), 0);
    REQUIRE(!slab_free_checked(a, p[0]));
    kit_check(a);
    slab_allocator_free(a);
}

/* A guard page is behind an object whatever a page is: the object ends there, and the page cannot be read. */
static void guards_have_a_page(void) {
    enum { SIZE = 48 };
    options = kit_options();
    options.guard_period = 1;
    SlabAllocator* a = kit_create_with(&options);
    for (unsigned n = 0; n < 10; n++) {
        uint8_t* p = slab_malloc(a, SIZE);
        REQUIRE(p != NULL);
        memset(p, 1, SIZE);
        REQUIRE_EQ((uintptr_t)(p + SIZE) % tsi_os.page_bytes, 0);
        REQUIRE(tsi_os.is_readable(p + SIZE - sizeof(uint64_t)) && !tsi_os.is_readable(p + SIZE));
        if (n % 2 == 0) REQUIRE(slab_free_checked(a, p));
    }
    slab_allocator_free(a);
}

/* Without membarrier the fast path is off; results are the same. */
static void brackets_are_as_the_system_allows(void) {
    SlabAllocator* a = kit_create();
    REQUIRE(slab_malloc(a, 64) != NULL);
    TsiBinding* b = kit_binding(a);
    if (tsi_os.has_membarrier)
        REQUIRE_EQ(b->live_word, tsi_heap_word(b->index, TSI_HEAP_LIVE));
    else
        REQUIRE(b->live_word == TSI_FENCED);
    fake_os_clear();
    slab_trim(a);
    REQUIRE_EQ(fake_os.barriers, 0); /* nobody else owns anything */
    slab_allocator_free(a);
}

/* What is given back under strict commit is not accessible, and is made so again before use. */
static void strict_commit_gives_back_the_charge(void) {
    SlabAllocator* a = kit_create_cold();
    for (unsigned lap = 0; lap < 3; lap++) {
        fake_os_clear();
        EpochId id = epoch_current(a);
        for (unsigned n = 0; n < 50; n++) {
            void* p = slab_malloc(a, 5000);
            REQUIRE(p != NULL);
            memset(p, 1, 5000);
        }
        void* large = slab_malloc(a, 3 << 20);
        REQUIRE(large != NULL);
        memset(large, 1, 3 << 20);
        REQUIRE(epoch_close_ex(a, id, EPOCH_RELEASE, NULL));
        REQUIRE(fake_os.run_count > 0);
        size_t uncommitted = 0;
        for (unsigned i = 0; i < fake_os.run_count; i++)
            if (fake_os.runs[i].how == TSI_PURGE_UNCHARGE) uncommitted += fake_os.runs[i].bytes;
        REQUIRE(uncommitted >= (3u << 20) + 50 * 5000);
        (void)epoch_advance_id(a);
    }
    kit_check(a);
    slab_allocator_free(a);
}

/* Where memory is filled a large object leaves zeros, whether the system takes its pages or not: what lies there next
 * finds no write after an end. */
static void large_objects_leave_zeros(void) {
    enum { LARGE = 3 << 20, SIZE = 1000, OBJECTS = 4000 };
    for (unsigned policy = 0; policy <= 3; policy++) { /* 3: as 0, but the system refuses */
        options = kit_options();
        options.purge_policy = policy % 3;
        options.fill_freed = 1;
        options.bump = TSI_BUMP_OFF;
        SlabAllocator* a = kit_create_with(&options);
        for (unsigned lap = 0; lap < 2; lap++) {
            EpochId id = epoch_current(a);
            void* large = slab_malloc(a, LARGE);
            REQUIRE(large != NULL);
            memset(large, 7, LARGE);
            fake_os_clear();
            if (policy == 3) fake_os_fail(FAKE_PURGE, 1, true);
            REQUIRE(slab_free_checked(a, large));
            fake_os_heal();
            for (unsigned n = 0; n < OBJECTS; n++) {
                uint8_t* p = slab_malloc(a, SIZE);
                REQUIRE(p != NULL && p[0] == 0 && p[SIZE - 1] == 0);
                memset(p, 9, SIZE);
            }
            REQUIRE_EQ(kit_refusals(a).write_after_end, 0);
            REQUIRE(epoch_close_ex(a, id, EPOCH_RELEASE, NULL));
            slab_trim(a);
        }
        kit_check(a);
        slab_allocator_free(a);
    }
}

static const CheckCase tests[] = {
    CHECK_CASE(whole_life),
    CHECK_CASE(whole_life_cold_and_prefaulted),
    CHECK_CASE(slabs_are_whole_pages),
    CHECK_CASE(neighbours_keep_their_contents),
    CHECK_CASE(bookkeeping_is_whole_pages),
    CHECK_CASE(guards_have_a_page),
    CHECK_CASE(large_objects_leave_zeros),
    CHECK_CASE(brackets_are_as_the_system_allows),
};
static const CheckCase strict_tests[] = {CHECK_CASE(strict_commit_gives_back_the_charge)};

static void system_16k(void) { REQUIRE_EQ(kit_rerun("16384"), 0); }
static void system_64k(void) { REQUIRE_EQ(kit_rerun("65536"), 0); }
static void system_strict(void) { REQUIRE_EQ(kit_rerun("0 strict"), 0); }
static void system_fenced(void) { REQUIRE_EQ(kit_rerun("0 fenced"), 0); }
static void system_64k_strict_fenced(void) { REQUIRE_EQ(kit_rerun("65536 strict fenced"), 0); }

int main(int argc, char** argv) {
    const CheckCase systems[] = {
        CHECK_CASE(system_16k),
        CHECK_CASE(system_64k),
        CHECK_CASE(system_strict),
        CHECK_CASE(system_fenced),
        CHECK_CASE(system_64k_strict_fenced),
    };
    const char* system = argc > 1 ? argv[1] : "0";
    fake_os_install(strtoul(system, NULL, 10), strstr(system, "strict") != NULL, strstr(system, "fenced") != NULL);
    int failed = CHECK_RUN(0, NULL, tests);
    if (tsi_os.strict_commit) failed += CHECK_RUN(0, NULL, strict_tests);
    if (argc > 1) return failed;
    return failed + CHECK_RUN(0, NULL, systems);
}
