/* test_handle.c - the bits of a handle, and what the allocator issues. */
#include "kit/inside.h"

#include "heap/free.h"
#include "mem/handle.h"

static uint64_t next(uint64_t* seed) {
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    return *seed ^ *seed >> 29;
}

static void fields(void) {
    uint64_t seed = 1;
    for (unsigned n = 0; n < 10000; n++) {
        uint64_t secret = next(&seed);
        uint32_t line = (uint32_t)next(&seed) & ((1u << 26) - 1), generation = (uint32_t)next(&seed) & TSI_GEN_MASK;
        unsigned slot = (unsigned)next(&seed) & 63;
        uint32_t place = tsi_handle_place(line, slot);
        uint64_t h = tsi_handle_make(secret, place, generation);
        REQUIRE_EQ(tsi_handle_place_of(h), place);
        REQUIRE_EQ(tsi_place_line(place), line);
        REQUIRE_EQ(tsi_place_slot(place), slot);
        REQUIRE_EQ(tsi_handle_stamp_of(h), tsi_handle_stamp(secret, place, generation));
        REQUIRE_EQ(h & 3, TSI_HANDLE_VERSION);
        REQUIRE_NE(h, 0);
        REQUIRE_EQ(tsi_handle_unscramble(tsi_handle_key(secret, place), tsi_handle_stamp_of(h)), generation);
    }
}

static void odd_numbers_have_inverses(void) {
    uint64_t seed = 2;
    for (unsigned n = 0; n < 10000; n++) {
        uint32_t m = (uint32_t)next(&seed) | 1;
        REQUIRE_EQ((uint32_t)(m * tsi_odd_inverse(m)), 1);
    }
}

/* All 2^30 generations of a key go to different bits: checked on a stretch, and by the inverse. */
static void scrambling_is_a_bijection(void) {
    enum { STRETCH = 1 << 20 };
    uint64_t seed = 3;
    uint8_t* seen = calloc(1, (TSI_GEN_MASK + 1u) / 8);
    REQUIRE(seen != NULL);
    for (unsigned lap = 0; lap < 3; lap++) {
        uint64_t key = lap == 0 ? 0 : next(&seed);
        memset(seen, 0, (TSI_GEN_MASK + 1u) / 8);
        for (uint32_t g = 0; g < STRETCH; g++) {
            uint32_t x = tsi_handle_scramble(key, g);
            REQUIRE(x <= TSI_GEN_MASK);
            if (seen[x / 8] >> x % 8 & 1) FAIL("key %llx: %u comes twice", (unsigned long long)key, x);
            seen[x / 8] |= (uint8_t)(1u << x % 8);
            if (g % 16 == 0) REQUIRE_EQ(tsi_handle_unscramble(key, x), g);
        }
        static const uint32_t ends[] = {TSI_GEN_MASK, TSI_GEN_MASK - 1, TSI_GEN_LIMIT, 1u << 29, 0x15555555};
        for (unsigned i = 0; i < 5; i++)
            REQUIRE_EQ(tsi_handle_unscramble(key, tsi_handle_scramble(key, ends[i])), ends[i]);
    }
    free(seen);
}

static int ascending(const void* x, const void* y) {
    uint64_t a = *(const uint64_t*)x, b = *(const uint64_t*)y;
    return a < b ? -1 : a > b;
}

/* One slot over and over, and many slots over many incarnations and classes: no value comes twice. */
static void handles_are_never_repeated(void) {
    enum { N = 60000 };
    static SlabHandle h[N];
    unsigned n = 0;
    SlabAllocator* a = kit_create_cold();
    while (n < 10000) {
        REQUIRE(alloc_obj(a, 100, &h[n]) != NULL);
        REQUIRE(free_obj(a, h[n]));
        REQUIRE(!free_obj(a, h[n++]));
    }
    static const uint32_t sizes[] = {64, 1000, 96, 5000, 16, 128, 70000, 192, 64, 3000};
    for (unsigned lap = 0; n < N; lap++) {
        epoch_domain_t* d = epoch_domain_create(a);
        REQUIRE(d != NULL);
        unsigned first = n;
        for (unsigned i = 0; i < 1000 && n < N; i++)
            REQUIRE(alloc_obj_epoch(a, sizes[lap % 10], d->epoch_id, &h[n++]) != NULL);
        epoch_domain_destroy(d);
        for (unsigned i = first; i < n; i += 97) REQUIRE_NULL(slab_handle_ptr(a, h[i]));
        if (lap % 3 == 0) slab_trim(a);
    }
    for (unsigned i = 0; i < N; i++) REQUIRE_NULL(slab_handle_ptr(a, h[i]));
    qsort(h, N, sizeof h[0], ascending);
    for (unsigned i = 1; i < N; i++) REQUIRE(h[i - 1] != h[i]);
    kit_check(a);
    slab_allocator_free(a);
}

static void forged_handles_are_refused(void) {
    SlabAllocator* a = kit_create();
    SlabHandle h;
    uint64_t seed = 4;
    void* p = alloc_obj(a, 64, &h);
    REQUIRE(p != NULL);
    for (unsigned bit = 0; bit < 64; bit++) {
        REQUIRE_NULL(slab_handle_ptr(a, h ^ 1ull << bit));
        REQUIRE(!free_obj(a, h ^ 1ull << bit));
    }
    for (unsigned n = 0; n < 100000; n++) REQUIRE_NULL(slab_handle_ptr(a, (next(&seed) & ~3ull) | TSI_HANDLE_VERSION));
    REQUIRE_EQ(slab_handle_ptr(a, h), p);
    REQUIRE(slab_ptr_handle(a, p) == h);
    REQUIRE(free_obj(a, h));
    slab_allocator_free(a);
}

/* Generations that run out: the slot's line and then its slab are not used again, and are counted. */
static void spent_generations(void) {
    SlabAllocator* a = kit_create_cold();
    SlabHandle h;
    void* p = slab_malloc(a, 1000);
    TsiPlace at = kit_place(a, p);
    TsiSlab* slab = tsi_slab(&tsi_arena(a)->space, at.slab_id);
    slab_free(a, p);
    tsi_store_relaxed(&slab->gen_base, TSI_GEN_LIMIT - 2); /* as after some 2^30 reuses */
    for (unsigned n = 0; n < 200; n++) {                   /* goes on, elsewhere in the end */
        REQUIRE((p = alloc_obj(a, 1000, &h)) != NULL);
        REQUIRE_EQ(slab_handle_ptr(a, h), p);
        REQUIRE(free_obj(a, h));
    }
    REQUIRE_NE(kit_place(a, p).slab_id, at.slab_id);
    kit_check(a);
    REQUIRE(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
    REQUIRE_EQ(kit_refusals(a).retired_slabs, 1);
    REQUIRE_EQ(tsi_tag_state(tsi_load_relaxed(&slab->tag)), TSI_SLAB_RETIRED);
    kit_check(a);
    (void)epoch_advance_id(a);
    for (unsigned n = 0; n < 200; n++) {
        REQUIRE((p = alloc_obj(a, 1000, &h)) != NULL);
        REQUIRE_NE(kit_place(a, p).slab_id, at.slab_id);
    }
    slab_allocator_free(a);
}

static _Atomic uint64_t* count_at(SlabAllocator* a, void* p) {
    TsiPlace at = kit_place(a, p);
    return &tsi_counts(&tsi_arena(a)->space, at.line_id)[at.slot];
}

/* Frees and allocations by pointer move counts, too, and without end: neither does an old handle match again after 2^30 of
 * them, nor does the base of the slab fall back. Counts are put forward here. */
static void counts_that_run_out(void) {
    enum { SIZE = 30000 };
    SlabAllocator* a = kit_create_cold();
    SlabHandle h, other;
    void* p = alloc_obj(a, SIZE, &h);
    TsiSlab* slab = tsi_slab(&tsi_arena(a)->space, kit_place(a, p).slab_id);
    REQUIRE(free_obj(a, h));
    uint64_t word = tsi_load_relaxed(count_at(a, p)); /* odd: freed; as 2^30 pairs later: */
    tsi_store_relaxed(count_at(a, p), word + (UINT64_C(1) << (TSI_GEN_BITS + 1)) - 2);
    void* q = NULL;
    for (unsigned n = 0; n < 64 && q != p; n++) q = slab_malloc(a, SIZE);
    REQUIRE_EQ(q, p);
    REQUIRE_NULL(slab_handle_ptr(a, h));
    REQUIRE(!free_obj(a, h));
    REQUIRE(slab_ptr_handle(a, p) == 0); /* no generation is left */
    tsi_store_relaxed(count_at(a, p), (word & ~(uint64_t)UINT32_MAX) | (TSI_COUNT_MAX - 4));
    for (unsigned n = 0; n < 1000; n++) {
        REQUIRE(slab_free_checked(a, q));
        REQUIRE((q = slab_malloc(a, SIZE)) != NULL);
        REQUIRE_NULL(slab_handle_ptr(a, h));
    }
    REQUIRE((uint32_t)tsi_load_relaxed(count_at(a, p)) <= TSI_COUNT_MAX + 1);
    kit_check(a);
    REQUIRE(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
    REQUIRE_EQ(tsi_tag_state(tsi_load_relaxed(&slab->tag)), TSI_SLAB_RETIRED);
    (void)epoch_advance_id(a);
    REQUIRE((q = alloc_obj(a, SIZE, &other)) != NULL);
    REQUIRE(other != h);
    kit_check(a);
    slab_allocator_free(a);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(fields),
        CHECK_CASE(odd_numbers_have_inverses),
        CHECK_CASE(scrambling_is_a_bijection),
        CHECK_CASE(handles_are_never_repeated),
        CHECK_CASE(forged_handles_are_refused),
        CHECK_CASE(spent_generations),
        CHECK_CASE(counts_that_run_out),
    };
    return CHECK_RUN(argc, argv, tests);
}
