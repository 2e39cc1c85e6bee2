/*
 * survivors.c - what few objects hold that outlive what was around them: a drained phase of which one object lives, and
 * a cache in a domain that stays open and shrinks.
 */
#include "kit/fixture.h"

enum { PHASES = 3000, OBJECTS = 40, SLAB_OF_A_SURVIVOR = 2048 };

static void* kept[PHASES];

static void* drain_but_one(SlabAllocator* a, uint64_t* random, size_t most) {
    void* p[OBJECTS];
    epoch_domain_t* d = epoch_domain_begin(a, "request");
    REQUIRE(d != NULL);
    for (size_t i = 0; i < OBJECTS; i++) {
        size_t size = 1 + (size_t)(kit_rand(random) % most);
        p[i] = slab_malloc(a, size);
        REQUIRE(p[i] != NULL);
        memset(p[i], 7, size);
    }
    for (size_t i = 0; i < OBJECTS; i++) {
        if (i != OBJECTS / 2) {
            CHECK(slab_free_checked(a, p[i]));
        }
    }
    EpochReceipt r = {.version = 0};
    epoch_domain_drain(d, &r);
    CHECK_EQ(r.objects_escaped, 1);
    return p[OBJECTS / 2];
}

/* Of 40 objects, 14 KB together, each phase leaves one. It holds half of a page of the system, as the first phases have
 * taught; a region for all of them would be 16 KiB. */
static void of_each_phase_one_object(void) {
    CHECK_NEEDS_OVERCOMMIT();
    SlabAllocator* a = kit_create();
    uint64_t random = 1;
    for (size_t i = 0; i < PHASES; i++) {
        kept[i] = drain_but_one(a, &random, 700);
    }
    CHECK_LE(kit_committed(a), (uint64_t)PHASES * SLAB_OF_A_SURVIVOR * 5 / 4 + (2u << 20));
    for (size_t i = 0; i < PHASES; i++) {
        CHECK_EQ(*(unsigned char*)kept[i], 7);
        CHECK(slab_free_checked(a, kept[i]));
    }
    slab_trim(a);
    CHECK_EQ(kit_committed(a), 0);
    CHECK_EQ(kit_global(a).draining_phases, 0);
    slab_allocator_free(a);
}

/* The slabs of a phase of 12 KB that is released. */
static uint32_t slabs_of_a_phase(SlabAllocator* a) {
    EpochReceipt r = {.version = 0};
    epoch_domain_t* d = epoch_domain_begin(a, "request");
    REQUIRE(d != NULL);
    for (size_t i = 0; i < 12; i++) {
        REQUIRE(slab_malloc(a, 1000) != NULL);
    }
    epoch_domain_end_ex(d, &r);
    return (uint32_t)r.slabs_returned;
}

/* Labels forget: when nothing outlives their phases any more, these take what they need in one piece again. */
static void labels_whose_phases_end_empty_forget(void) {
    CHECK_NEEDS_OVERCOMMIT();
    SlabAllocator* a = kit_create();
    uint64_t random = 1;
    for (size_t i = 0; i < 8; i++) {
        kept[i] = drain_but_one(a, &random, 700);
    }
    CHECK_GE(slabs_of_a_phase(a), 6);
    for (size_t i = 0; i < 20; i++) {
        (void)slabs_of_a_phase(a);
    }
    CHECK_EQ(slabs_of_a_phase(a), 1);
    for (size_t i = 0; i < 8; i++) {
        CHECK(slab_free_checked(a, kept[i]));
    }
    slab_allocator_free(a);
}

/* ---- a cache that shrinks ---- */

enum { ENTRIES = 40000, ENTRY_MAX = 1500 };
static void* cache[ENTRIES];

static uint64_t fill(epoch_domain_t* d, size_t n, uint64_t* random) {
    for (size_t i = 0; i < n; i++) {
        if (cache[i] != NULL) {
            continue;
        }
        size_t size = 100 + (size_t)(kit_rand(random) % (ENTRY_MAX - 100));
        cache[i] = epoch_domain_malloc(d, size);
        REQUIRE(cache[i] != NULL);
        memset(cache[i], 3, size);
    }
    return slab_rss_bytes();
}

/* One entry in a hundred stays, then half of the rest comes anew: pages of regions without an object go back as the
 * classes grow, so no more is resident than before. */
static void a_cache_in_an_open_domain(void) {
    if (CHECK_TSAN || CHECK_ASAN) {
        SKIP("resident size means nothing in an instrumented build");
    }
    memset(cache, 1, sizeof cache); /* touched before the first reading */
    memset(cache, 0, sizeof cache);
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create_labeled(a, "cache");
    uint64_t random = 5, before = slab_rss_bytes();
    if (before == 0) {
        SKIP("the system does not tell the resident size");
    }
    uint64_t full = fill(d, ENTRIES, &random) - before;
    for (size_t i = 0; i < ENTRIES; i++) {
        if (i % 100 != 0) {
            CHECK(slab_free_checked(a, cache[i]));
            cache[i] = NULL;
        }
    }
    uint64_t again = fill(d, ENTRIES / 2, &random) - before;
    CHECK_LE(again, full + full / 10);
    for (size_t i = 0; i < ENTRIES / 2; i++) {
        CHECK_EQ(*(unsigned char*)cache[i], 3);
    }
    epoch_domain_destroy(d);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(of_each_phase_one_object),
    CHECK_CASE(labels_whose_phases_end_empty_forget),
    CHECK_CASE(a_cache_in_an_open_domain),
};
CHECK_MAIN(cases)
