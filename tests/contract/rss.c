/*
 * rss.c - memory that is gone when a phase ends: what the system says is resident, and what the
 * allocator says is committed. Resident sizes are only looked at in builds without a sanitizer;
 * every array of the test is touched before the first reading.
 */
#include "kit/fixture.h"

#include <sys/mman.h>

enum { OBJECTS = 300000, SIZE = 128 };

static void* kept[OBJECTS];
static SlabHandle handles[OBJECTS];

#define NEEDS_RSS()                                                       \
    do {                                                                  \
        if (CHECK_TSAN || CHECK_ASAN) {                                   \
            SKIP("resident size means nothing in an instrumented build"); \
        }                                                                 \
        memset(kept, 1, sizeof kept);                                     \
        memset(handles, 1, sizeof handles);                               \
        if (slab_rss_bytes() == 0) {                                      \
            SKIP("the system does not tell the resident size");           \
        }                                                                 \
    } while (0)

static long long grown_kib(uint64_t before, uint64_t after) { return ((long long)after - (long long)before) / 1024; }

static void phase_by_pointer(void* arg) {
    EpochCloseMode mode = *(EpochCloseMode*)arg;
    NEEDS_RSS();
    SlabAllocator* a = kit_create();
    slab_free(a, slab_malloc(a, SIZE));
    uint64_t before = slab_rss_bytes();
    for (size_t i = 0; i < OBJECTS; i++) {
        kept[i] = slab_malloc_epoch(a, SIZE, 1);
        REQUIRE(kept[i] != NULL);
        memset(kept[i], 2, SIZE);
    }
    uint64_t full = slab_rss_bytes();
    CHECK_GE(full, before + (uint64_t)OBJECTS * SIZE);
    for (size_t i = 0; i < OBJECTS && mode == EPOCH_DRAIN; i++) {
        slab_free(a, kept[i]);
    }
    EpochReceipt r;
    CHECK(epoch_close_ex(a, 1, mode, &r));
    uint64_t after = slab_rss_bytes();
    NOTE("%s: full +%lld KiB, after +%lld KiB, metadata %" PRIu64 " KiB", mode == EPOCH_DRAIN ? "drain" : "release",
         grown_kib(before, full), grown_kib(before, after), kit_global(a).metadata_bytes >> 10);
    CHECK_LE(after, before + KIT_MIB);
    CHECK_LE(kit_committed(a), KIT_WARM_BYTES + 64 * 1024);
    CHECK_GT(r.rss_before, 0);
    CHECK_LE(r.rss_after, r.rss_before);
    slab_allocator_free(a);
}

static void a_phase_leaves_nothing_resident(void) {
    EpochCloseMode modes[] = {EPOCH_DRAIN, EPOCH_RELEASE};
    check_child(phase_by_pointer, &modes[0]);
    check_child(phase_by_pointer, &modes[1]);
}

static void phase_by_handle(void* arg) {
    (void)arg;
    NEEDS_RSS();
    SlabAllocator* a = kit_create();
    slab_free(a, slab_malloc(a, SIZE));
    uint64_t before = slab_rss_bytes();
    for (size_t i = 0; i < OBJECTS; i++) {
        void* p = alloc_obj_epoch(a, SIZE, 1, &handles[i]);
        REQUIRE(p != NULL);
        memset(p, 2, SIZE);
    }
    uint64_t full = slab_rss_bytes();
    SlabGlobalStats g = kit_global(a);
    CHECK(epoch_close_ex(a, 1, EPOCH_RELEASE, NULL));
    uint64_t after = slab_rss_bytes();
    NOTE("handles: full +%lld KiB (metadata %" PRIu64 " KiB), after +%lld KiB", grown_kib(before, full),
         g.metadata_bytes >> 10, grown_kib(before, after));
    CHECK_LE(after, full - (uint64_t)OBJECTS * SIZE * 9 / 10);
    for (size_t i = 0; i < OBJECTS; i += 97) {
        CHECK(!free_obj(a, handles[i]));
    }
    slab_allocator_free(a);
}

static void a_phase_with_handles(void) { check_child(phase_by_handle, NULL); }

static void side_tables_are_small(void) {
    SlabAllocator* a = kit_create();
    static const size_t sizes[] = {64, 96, 128, 192, 256, 384, 512, 768};
    for (size_t i = 0; i < OBJECTS; i++) {
        REQUIRE(slab_malloc(a, sizes[i % 8]) != NULL);
    }
    SlabGlobalStats g = kit_global(a);
    NOTE("committed %" PRIu64 " KiB, metadata %" PRIu64 " KiB: %.2f %%", g.committed_bytes >> 10,
         g.metadata_bytes >> 10, 100.0 * (double)g.metadata_bytes / (double)g.committed_bytes);
    CHECK_LE(g.metadata_bytes * 50, g.committed_bytes);
    CHECK_LE(g.committed_bytes, g.live_bytes + g.live_bytes / 8);
    slab_allocator_free(a);
}

static size_t one_cycle(SlabAllocator* a, uint64_t cycle) {
    size_t live = 0;
    EpochId id = epoch_current(a);
    for (size_t i = 0; i < 500; i++) {
        void* p = slab_malloc(a, 32 + (i * 17) % 700);
        CHECK(p != NULL);
        if (i % 2 == 0) {
            slab_free(a, p);
        } else {
            live++;
        }
    }
    epoch_advance(a);
    CHECK(epoch_close_ex(a, id, cycle % 2 == 0 ? EPOCH_RELEASE : EPOCH_DRAIN, NULL));
    CHECK(cycle % 2 == 0 || epoch_close_ex(a, id, EPOCH_RELEASE, NULL));
    return live;
}

static void phase_cycles_do_not_drift(void) {
    for (int cold = 0; cold < 2; cold++) {
        SlabAllocator* a = cold ? kit_create_cold() : kit_create();
        size_t cycles = check_count_whole(2000);
        uint64_t early = 0, metadata = 0, rss = 0;
        for (size_t c = 0; c < cycles; c++) {
            CHECK_EQ(one_cycle(a, c), 250);
            if (c == cycles / 2) { /* records of epochs may be reused late, but they are */
                early = kit_committed(a);
                metadata = kit_global(a).metadata_bytes;
                rss = slab_rss_bytes();
            }
        }
        CHECK_EQ(kit_live(a), 0);
        CHECK_EQ(kit_committed(a), early);
        CHECK_LE(early, cold ? 0 : KIT_WARM_BYTES);
        CHECK_LE(kit_global(a).metadata_bytes, metadata);
        if (!CHECK_TSAN && !CHECK_ASAN) {
            CHECK_LE(slab_rss_bytes(), rss + rss / 100 + 65536);
        }
        slab_allocator_free(a);
    }
}

static void domain_cycles_do_not_drift(void) {
    SlabAllocator* a = kit_create();
    size_t cycles = check_count_whole(20000);
    uint64_t early = 0, metadata = 0;
    for (size_t c = 0; c < cycles; c++) {
        epoch_domain_t* d = epoch_domain_begin(a, c % 2 == 0 ? "even" : "odd");
        for (size_t i = 0; i < 20; i++) {
            CHECK(slab_malloc(a, 32 + (i * 117) % 700) != NULL);
        }
        epoch_domain_end(d);
        if (c == cycles / 2) {
            early = kit_committed(a);
            metadata = kit_global(a).metadata_bytes;
        }
    }
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(kit_committed(a), early);
    CHECK_LE(kit_global(a).metadata_bytes, metadata);
    slab_allocator_free(a);
}

/* Random replacement of a constant number of objects in one epoch that never closes. */
static void steady_churn(SlabAllocator* a, size_t settled) {
    enum { LIVE = 20000 };
    uint64_t rng = 1, early = 0;
    size_t cycles = settled + check_count_whole(150);
    for (size_t i = 0; i < LIVE; i++) {
        kept[i] = slab_malloc(a, SIZE);
    }
    for (size_t c = 0; c < cycles; c++) {
        for (size_t i = 0; i < LIVE / 10; i++) {
            size_t k = kit_rand(&rng) % LIVE;
            slab_free(a, kept[k]);
            kept[k] = slab_malloc(a, SIZE);
            REQUIRE(kept[k] != NULL);
        }
        if (c == settled) {
            early = kit_committed(a);
        }
    }
    CHECK_EQ(kit_live(a), LIVE);
    CHECK_EQ(kit_committed(a), early);
    CHECK_LE(kit_committed(a), (uint64_t)LIVE * SIZE * 5 / 4);
    slab_allocator_free(a);
}
static void steady_churn_does_not_drift(void) { steady_churn(kit_create_by_class(), 5); }
/* The same once the classes have what was in the regions that the thread began with. */
static void steady_churn_after_regions_does_not_drift(void) { steady_churn(kit_create(), 50); }

/* One object in so many survives its phase: only its page may stay, not its slab. */
typedef struct Survivors {
    size_t size, count, every;
    bool after_close; /* freed only after the close */
} Survivors;

/* Bytes of the pages in which survivors lie. Neighbours share a page; one that two others share may count twice. */
static uint64_t survivors_pages(const Survivors* s) {
    size_t page = slab_page_size(), pages = 0;
    uintptr_t last = 0;
    for (size_t i = 0; i < s->count; i += s->every) {
        uintptr_t at = (uintptr_t)kept[i] / page, end = ((uintptr_t)kept[i] + s->size - 1) / page;
        for (; at <= end; last = at++) pages += at != last;
    }
    return (uint64_t)pages * page;
}

static void survivors(void* arg) {
    Survivors* s = arg;
    NEEDS_RSS();
    SlabAllocator* a = kit_create_cold();
    slab_free(a, slab_malloc(a, s->size));
    uint64_t before = slab_rss_bytes(), base = kit_committed(a);
    for (size_t i = 0; i < s->count; i++) {
        kept[i] = slab_malloc_epoch(a, s->size, 1);
        REQUIRE(kept[i] != NULL);
        memset(kept[i], 3, s->size);
    }
    for (int pass = 0; pass < 2; pass++) {
        if (pass == (s->after_close ? 0 : 1)) {
            epoch_close(a, 1);
        } else {
            for (size_t i = 0; i < s->count; i++) {
                if (i % s->every != 0) {
                    slab_free(a, kept[i]);
                }
            }
        }
    }
    uint64_t untrimmed = slab_rss_bytes();
    if (s->after_close) {
        slab_trim(a); /* slabs return at once, single pages of others at the latest here */
        base = 0;
    }
    size_t left = (s->count + s->every - 1) / s->every;
    uint64_t after = slab_rss_bytes();
    uint64_t tables = (uint64_t)s->count * s->size / 64; /* of all that was there */
    NOTE("%zu of %zu x %zu B survive, freed %s the close: +%lld KiB resident, +%lld trimmed, %" PRIu64 " KiB committed",
         left, s->count, s->size, s->after_close ? "after" : "before", grown_kib(before, untrimmed),
         grown_kib(before, after), kit_committed(a) >> 10);
    size_t page = slab_page_size();
    uint64_t pages = left * ((s->size + page - 1) / page + (s->size % page != 0 && s->size > page / 8 ? 1 : 0));
    CHECK_LE(after, before + (page == 4096 ? pages * page : survivors_pages(s) + tables) + KIT_MIB);
    for (size_t i = 0; i < s->count; i += s->every) {
        CHECK_EQ(*(unsigned char*)kept[i], 3);
        CHECK_EQ(((unsigned char*)kept[i])[s->size - 1], 3);
        CHECK(slab_free_checked(a, kept[i]));
    }
    CHECK_EQ(kit_committed(a), base);
    slab_allocator_free(a);
}

static void pages_without_a_survivor_go_back(void) {
    Survivors plans[] = {{128, 300000, 1000, false}, {128, 300000, 1000, true}, {768, 100000, 200, false},
                         {1000, 60000, 61, false},   {2000, 30000, 31, false},  {2000, 30000, 31, true},
                         {4096, 16000, 16, false},   {8000, 8000, 8, false},    {16, 300000, 5000, false}};
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        check_child(survivors, &plans[i]);
    }
}

static void trim_returns_what_an_open_epoch_keeps(void* arg) {
    (void)arg;
    NEEDS_RSS();
    SlabAllocator* a = kit_create();
    slab_free(a, slab_malloc(a, SIZE));
    uint64_t before = slab_rss_bytes();
    for (size_t i = 0; i < OBJECTS; i++) {
        kept[i] = slab_malloc(a, SIZE);
        memset(kept[i], 2, SIZE);
    }
    for (size_t i = 0; i < OBJECTS; i++) {
        slab_free(a, kept[i]);
    }
    uint64_t kept_bytes = kit_committed(a);
    CHECK_GE(kept_bytes, (uint64_t)OBJECTS * SIZE); /* an open epoch keeps its empties */
    slab_trim(a);
    uint64_t after = slab_rss_bytes();
    NOTE("trim: %" PRIu64 " KiB kept, +%lld KiB after", kept_bytes >> 10, grown_kib(before, after));
    CHECK_EQ(kit_committed(a), 0);
    CHECK_LE(after, before + KIT_MIB);
    slab_allocator_free(a);
}

static void trim_gives_back_empties(void) { check_child(trim_returns_what_an_open_epoch_keeps, NULL); }

typedef struct Neighbour {
    SlabAllocator* a;
    _Atomic int step;
} Neighbour;

static void* keep_empties(void* arg) {
    Neighbour* n = arg;
    for (int i = 0; i < 2; i++) {
        void* p[100];
        for (size_t k = 0; k < 100; k++) {
            p[k] = slab_malloc(n->a, 5000);
        }
        for (size_t k = 0; k < 100; k++) {
            slab_free(n->a, p[k]);
        }
    }
    atomic_store(&n->step, 1);
    while (atomic_load(&n->step) != 2) {
        kit_sleep_us(200);
    }
    return NULL;
}

/* A flush gives back what this thread keeps and leaves the other thread's alone. */
static void flush_is_for_one_thread(void) {
    if (kit_shared()) SKIP("in shared mode no thread has slabs of its own in an epoch");
    Neighbour n = {kit_create(), 0};
    pthread_t t = kit_thread(keep_empties, &n);
    kit_await(&n.step, 1);
    uint64_t theirs = kit_committed(n.a);
    CHECK_GE(theirs, 100 * 5000);
    for (size_t i = 0; i < 10000; i++) {
        kept[i] = slab_malloc(n.a, SIZE);
    }
    for (size_t i = 0; i < 10000; i++) {
        slab_free(n.a, kept[i]);
    }
    CHECK_GE(kit_committed(n.a), theirs + 10000 * SIZE);
    slab_thread_flush(n.a);
    CHECK_EQ(kit_committed(n.a), theirs);
    slab_trim(n.a);
    CHECK_EQ(kit_committed(n.a), 0);
    atomic_store(&n.step, 2);
    pthread_join(t, NULL);
    slab_allocator_free(n.a);
}

/* ---- large objects of zeros ---- */

/* Pages of [p, p + bytes) that the process has. */
static size_t resident_pages(const void* p, size_t bytes) {
    size_t page = slab_page_size(), pages = (bytes + page - 1) / page, n = 0;
    unsigned char* has = malloc(pages);
    if (has == NULL || mincore((void*)(uintptr_t)p, bytes, has) != 0) exit(3);
    for (size_t i = 0; i < pages; i++) n += has[i] & 1;
    free(has);
    return n;
}

static void fresh_zeros(void* arg) {
    static const size_t sizes[] = {(size_t)32 << 30, 1024 * KIT_MIB, 5 * KIT_MIB / 2, 300000};
    SlabOptions o = kit_options();
    NEEDS_RSS();
    (void)arg;
    for (uint32_t huge = 0; huge < 2; huge++) {
        o.huge_pages = (uint8_t)huge;
        SlabAllocator* a = kit_create_with(&o);
        slab_free(a, slab_calloc(a, 300000, 1)); /* code and tables that any first one needs */
        for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
            uint64_t before = slab_rss_bytes();
            unsigned char* p = slab_calloc(a, sizes[n] / 4, 4);
            if (p == NULL && n == 0) {
                NOTE("the system grants no address space for %zu GiB", sizes[n] >> 30);
                continue;
            }
            REQUIRE(p != NULL);
            CHECK_LE(slab_rss_bytes(), before + KIT_MIB + sizes[n] / 8192); /* bookkeeping, by the chunk */
            CHECK_EQ(n == 0 ? 0 : resident_pages(p, sizes[n]), 0);
            CHECK_EQ(p[0] | p[sizes[n] / 2] | p[sizes[n] - 1], 0);
            p[sizes[n] / 2] = 1;
            CHECK(slab_free_checked(a, p));
        }
        slab_allocator_free(a);
    }
}

static void large_zeros_take_no_memory(void) { check_child(fresh_zeros, NULL); }

/* Where memory was in use before, by large objects or by small ones, under each policy; some pages of it. */
static void used_zeros(void* arg) {
    enum { SIZE_MIB = 24, DIRTY_MIB = 3 };
    NEEDS_RSS();
    for (uint32_t policy = 0; policy <= SLAB_PURGE_NEVER; policy++) {
        SlabOptions o = kit_options();
        o.purge_policy = policy;
        o.reserve_bytes = 32 * KIT_MIB;
        o.warm_bytes = UINT64_MAX;
        SlabAllocator* a = kit_create_with(&o);
        unsigned char* p = slab_malloc(a, SIZE_MIB * KIT_MIB);
        REQUIRE(p != NULL);
        memset(p + KIT_MIB, 0xEE, DIRTY_MIB * KIT_MIB);
        slab_free(a, p);
        uint64_t before = slab_rss_bytes();
        unsigned char* q = slab_calloc(a, SIZE_MIB, KIT_MIB);
        CHECK(q == p);
        CHECK_LE(slab_rss_bytes(), before + KIT_MIB);
        CHECK(kit_all_zero(q, SIZE_MIB * KIT_MIB));
        q = slab_realloc(a, q, KIT_MIB); /* and from what it leaves, one that has grown */
        memset(q, 0xDD, KIT_MIB);
        slab_free(a, slab_realloc(a, q, 2 * KIT_MIB));
        epoch_domain_t* d = epoch_domain_begin(a, "dirt");
        for (size_t i = 0; i < 4 * KIT_MIB / 512; i++) memset(slab_malloc(a, 500), 0xCC, 500);
        epoch_domain_end(d);
        slab_trim(a);
        q = slab_calloc(a, SIZE_MIB, KIT_MIB);
        REQUIRE(q != NULL);
        CHECK(kit_all_zero(q, SIZE_MIB * KIT_MIB));
        slab_free(a, q);
        CHECK(policy != SLAB_PURGE_NEVER || kit_global(a).total_madvise_calls == 0);
        slab_allocator_free(a);
    }
    (void)arg;
}

static void large_zeros_where_dirt_was(void) { check_child(used_zeros, NULL); }

static const CheckCase cases[] = {
    CHECK_CASE(a_phase_leaves_nothing_resident),
    CHECK_CASE(a_phase_with_handles),
    CHECK_CASE(side_tables_are_small),
    CHECK_CASE(phase_cycles_do_not_drift),
    CHECK_CASE(domain_cycles_do_not_drift),
    CHECK_CASE(steady_churn_does_not_drift),
    CHECK_CASE(steady_churn_after_regions_does_not_drift),
    CHECK_CASE(pages_without_a_survivor_go_back),
    CHECK_CASE(trim_gives_back_empties),
    CHECK_CASE(flush_is_for_one_thread),
    CHECK_CASE(large_zeros_take_no_memory),
    CHECK_CASE(large_zeros_where_dirt_was),
};
CHECK_MAIN(cases)
