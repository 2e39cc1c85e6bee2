/*
 * objects.c - what an object is: any size, its alignment, its contents, its size as told by the
 * allocator, and the rules of calloc and aligned allocation. Live objects never overlap: every
 * object is filled to its usable end with a pattern of its own and read back before it is freed.
 */
#include "kit/fixture.h"

static const uint32_t fixed_sizes[SLAB_FIXED_CLASSES] = {64, 96, 128, 192, 256, 384, 512, 768};

static bool is_power_of_two(size_t n) { return n != 0 && (n & (n - 1)) == 0; }

/* The alignment the header promises for an object of this usable size. */
static size_t promised_alignment(size_t usable) {
    if (usable > 256 * 1024) {
        return KIT_MIB;
    }
    return is_power_of_two(usable) && usable > 16 ? usable : 16;
}

static void check_one_size(SlabAllocator* a, size_t size) {
    void* p = slab_malloc(a, kit_size(size));
    if (!CHECK(p != NULL)) {
        return;
    }
    size_t usable = slab_usable_size(a, p);
    CHECK_GE(usable, size);
    CHECK_GE(usable, slab_good_size(a, size));
    CHECK_GE(slab_good_size(a, size), size);
    CHECK_EQ((uintptr_t)p % promised_alignment(usable), 0);
    kit_fill(p, usable, size);
    CHECK(kit_intact(p, usable, size));
    CHECK(slab_free_checked(a, p));
}

static void every_size(void) {
    SlabAllocator* a = kit_create_by_class();
    for (size_t size = 1; size <= 4200; size++) {
        check_one_size(a, size);
    }
    for (size_t base = 4096; base <= 5 * KIT_MIB; base += base / (CHECK_TSAN ? 1 : 8)) {
        for (size_t size = base - 2; size <= base + 2; size++) {
            check_one_size(a, size);
        }
    }
    for (size_t base = 8192; base <= 4 * KIT_MIB; base *= 2) {
        check_one_size(a, base - 1);
        check_one_size(a, base);
        check_one_size(a, base + 1);
    }
    check_one_size(a, 5 * KIT_MIB);
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(kit_refused_frees(a), 0);
    slab_allocator_free(a);
}

/* What a thread allocates first in an epoch of the ring: its size is rounded to 16, not to a class's. */
static void every_size_at_first(void) {
    SlabAllocator* a = kit_create();
    for (size_t size = 1; size <= 4200; size += size < 600 ? 1 : 7) {
        void* p[3];
        for (unsigned i = 0; i < 3; i++) {
            REQUIRE((p[i] = slab_malloc(a, kit_size(size))) != NULL);
            size_t usable = slab_usable_size(a, p[i]);
            CHECK_EQ(usable, size <= 4096 && !kit_by_class() ? (size + 15) / 16 * 16 : slab_good_size(a, size));
            CHECK_EQ((uintptr_t)p[i] % 16, 0);
            kit_fill(p[i], usable, size + i);
        }
        for (unsigned i = 0; i < 3; i++) {
            CHECK(kit_intact(p[i], slab_usable_size(a, p[i]), size + i));
            CHECK(slab_free_checked(a, p[i]));
            CHECK(!slab_free_checked(a, kit_hide(p[i])));
        }
        epoch_advance(a);
    }
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(kit_refusals(a).double_free + kit_refusals(a).stale_free, kit_refused_frees(a));
    slab_allocator_free(a);
}

static void fixed_classes_keep_index_and_size(void) {
    SlabAllocator* a = kit_create();
    for (uint32_t i = 0; i < SLAB_FIXED_CLASSES; i++) {
        SlabClassStats s;
        slab_stats_class(a, i, &s);
        CHECK_EQ(s.class_index, i);
        CHECK_EQ(s.object_size, fixed_sizes[i]);
        CHECK_GE(s.slab_bytes, slab_page_size());
        CHECK_GT(slab_object_count(fixed_sizes[i]), 0);
        CHECK_EQ(slab_good_size(a, fixed_sizes[i]), fixed_sizes[i]);
        void* p = slab_malloc(a, fixed_sizes[i]);
        CHECK_EQ(slab_usable_size(a, p), fixed_sizes[i]);
        slab_free(a, p);
    }
    CHECK_EQ(slab_object_count(0), 0);
    CHECK_EQ(slab_object_count(UINT32_MAX), 0);
    slab_allocator_free(a);
}

/* From 65 to 640 bytes a quarter more at most, and nothing that is larger than another that would do. */
static void sizes_between_have_classes(void) {
    SlabAllocator* a = kit_create();
    for (uint32_t size = 65; size <= 640; size++) {
        size_t good = slab_good_size(a, size);
        CHECK_LE(good, size + (size - 1) / 4);
        CHECK_EQ(slab_good_size(a, good), good);
        CHECK_GT(slab_object_count((uint32_t)good), 0);
    }
    slab_allocator_free(a);
}

static void many_of_each_class_are_aligned(void) {
    enum { COUNT = 300 };
    SlabAllocator* a = kit_create_by_class();
    void* kept[COUNT];
    for (size_t size = 16; size <= 256 * 1024; size = slab_good_size(a, size + 1)) {
        size_t count = size <= 8192 ? COUNT : 20;
        for (size_t i = 0; i < count; i++) {
            kept[i] = slab_malloc(a, size);
            REQUIRE(kept[i] != NULL);
            CHECK_EQ((uintptr_t)kept[i] % promised_alignment(slab_usable_size(a, kept[i])), 0);
            kit_fill(kept[i], size, i + size);
        }
        for (size_t i = 0; i < count; i++) {
            CHECK(kit_intact(kept[i], size, i + size));
            CHECK(slab_free_checked(a, kept[i]));
        }
    }
    slab_allocator_free(a);
}

static void contents_survive_random_churn(void) {
    enum { SLOTS = 2000 };
    static struct {
        unsigned char* p;
        size_t usable;
        uint64_t seed;
    } slot[SLOTS];
    SlabAllocator* a = kit_create();
    uint64_t rng = 0x1234567;
    uint64_t seed = 0;
    size_t rounds = check_count(150000);
    memset(slot, 0, sizeof slot);
    for (size_t i = 0; i < rounds; i++) {
        size_t k = kit_rand(&rng) % SLOTS;
        if (slot[k].p != NULL) {
            size_t shown = slot[k].usable < 256 ? slot[k].usable : 256;
            CHECK(kit_intact(slot[k].p, shown, slot[k].seed));
            CHECK(kit_intact(slot[k].p + slot[k].usable - shown, shown, slot[k].seed + slot[k].usable - shown));
            CHECK(slab_free_checked(a, slot[k].p));
        }
        slot[k].p = slab_malloc(a, kit_rand_size(&rng, i % 64 == 0 ? 300000 : 3000));
        REQUIRE(slot[k].p != NULL);
        slot[k].usable = slab_usable_size(a, slot[k].p);
        slot[k].seed = ++seed;
        kit_fill(slot[k].p, slot[k].usable, slot[k].seed);
    }
    for (size_t k = 0; k < SLOTS; k++) {
        if (slot[k].p != NULL) {
            CHECK(kit_intact(slot[k].p, slot[k].usable, slot[k].seed));
            CHECK(slab_free_checked(a, slot[k].p));
        }
    }
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(kit_global(a).live_bytes, 0);
    slab_allocator_free(a);
}

static void numbers_follow_objects(void) {
    enum { COUNT = 1000 };
    SlabAllocator* a = kit_create();
    void* kept[COUNT];
    uint64_t bytes = 0;
    for (size_t i = 0; i < COUNT; i++) {
        kept[i] = slab_malloc(a, 1 + i * 37);
        bytes += slab_usable_size(a, kept[i]);
    }
    SlabGlobalStats g = kit_global(a);
    CHECK_EQ(g.version, SLAB_STATS_VERSION);
    CHECK_EQ(g.live_objects, COUNT);
    CHECK_EQ(g.live_bytes, bytes);
    CHECK_GE(g.committed_bytes, bytes);
    CHECK_GE(g.reserved_bytes, g.committed_bytes);
    CHECK_GT(g.metadata_bytes, 0);
    CHECK_GT(g.net_slabs, 0);
    for (size_t i = 0; i < COUNT; i += 2) {
        bytes -= slab_usable_size(a, kept[i]);
        slab_free(a, kept[i]);
    }
    g = kit_global(a);
    CHECK_EQ(g.live_objects, COUNT / 2);
    CHECK_EQ(g.live_bytes, bytes);
    slab_allocator_free(a);
}

static void calloc_is_zero_where_dirt_was(void) {
    static const size_t sizes[] = {1, 15, 16, 33, 64, 100, 128, 700, 768, 1000, 4096, 5000, 40000, 300000, 2000000};
    enum { COUNT = 40 };
    SlabAllocator* a = kit_create();
    void* kept[COUNT];
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        size_t count = sizes[s] > 100000 ? 4 : COUNT;
        for (int round = 0; round < 3; round++) {
            for (size_t i = 0; i < count; i++) {
                kept[i] = round == 0 ? slab_malloc(a, sizes[s]) : slab_calloc(a, 1, sizes[s]);
                REQUIRE(kept[i] != NULL);
                CHECK(round == 0 || kit_all_zero(kept[i], sizes[s]));
                memset(kept[i], 0xA5, sizes[s]);
            }
            for (size_t i = 0; i < count; i++) {
                slab_free(a, kept[i]);
            }
        }
    }
    unsigned char* grid = slab_calloc(a, 17, 23);
    CHECK(grid != NULL && kit_all_zero(grid, (size_t)17 * 23));
    EpochId side = 5;
    unsigned char* other = slab_calloc_epoch(a, 3, 1000, side);
    EpochId told = 0;
    CHECK(other != NULL && kit_all_zero(other, 3000));
    CHECK(slab_ptr_epoch(a, other, &told, NULL));
    CHECK_EQ(told, side);
    slab_allocator_free(a);
}

static void calloc_refuses_nothing_and_too_much(void) {
    SlabAllocator* a = kit_create();
    errno = 0;
    CHECK_NULL(slab_calloc(a, 0, 10));
    CHECK_EQ(errno, EINVAL);
    errno = 0;
    CHECK_NULL(slab_calloc(a, 10, 0));
    CHECK_EQ(errno, EINVAL);
    errno = 0;
    CHECK_NULL(slab_calloc(a, kit_size(SIZE_MAX), 2));
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_NULL(slab_calloc(a, kit_size(SIZE_MAX / 4), kit_size(SIZE_MAX / 4)));
    CHECK_EQ(errno, ENOMEM);
    errno = 0;
    CHECK_NULL(slab_calloc_epoch(a, kit_size(SIZE_MAX / 2), 3, 0));
    CHECK_EQ(errno, ENOMEM);
    CHECK_EQ(kit_refusals(a).bad_size, 5);
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static void bad_sizes_are_refused(void) {
    SlabAllocator* a = kit_create();
    errno = 0;
    CHECK_NULL(slab_malloc(a, 0));
    CHECK_EQ(errno, EINVAL);
    errno = 0;
    CHECK_NULL(slab_malloc_epoch(a, 0, 3));
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(kit_refusals(a).bad_size, 2);
    CHECK_NULL(slab_malloc(a, kit_size(SIZE_MAX)));
    CHECK(errno == ENOMEM || errno == EINVAL);
    CHECK_NULL(slab_malloc(a, kit_size((size_t)PTRDIFF_MAX + 1)));
    CHECK(errno == ENOMEM || errno == EINVAL);
    CHECK_EQ(kit_refusals(a).bad_size, 4);
    errno = 0;
    CHECK_NULL(slab_malloc(a, kit_size((size_t)PTRDIFF_MAX - 4096)));
    CHECK_EQ(errno, ENOMEM);
    CHECK_EQ(slab_good_size(a, 0), 0);
    CHECK_EQ(slab_good_size(a, kit_size(SIZE_MAX)), 0);
    void* p = slab_malloc(a, 100);
    CHECK(p != NULL);
    CHECK(slab_free_checked(a, p));
    slab_allocator_free(a);
}

static void handles_out_is_zero_on_failure(void) {
    SlabAllocator* a = kit_create();
    SlabHandle h = 77;
    CHECK_NULL(alloc_obj(a, 0, &h));
    CHECK_EQ(h, 0);
    h = 77;
    CHECK_NULL(alloc_obj_epoch(a, 100, 9999, &h));
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(h, 0);
    epoch_close(a, 7);
    h = 77;
    CHECK_NULL(alloc_obj_epoch(a, 100, 7, &h));
    CHECK_EQ(errno, ESTALE);
    CHECK_EQ(h, 0);
    CHECK_NULL(alloc_obj(a, 0, NULL));
    CHECK_NULL(alloc_obj_epoch(a, 100, 7, NULL));
    void* p = alloc_obj(a, 100, NULL);
    CHECK(p != NULL);
    CHECK(slab_free_checked(a, p));
    p = alloc_obj_epoch(a, 5 * 1024 * 1024, 2, &h);
    CHECK(p != NULL);
    CHECK_NE(h, 0);
    CHECK(free_obj(a, h));
    SlabRefusals r = kit_refusals(a);
    CHECK_EQ(r.bad_size, 2);
    CHECK_EQ(r.bad_epoch, 1);
    CHECK_EQ(r.closed_epoch, 2);
    slab_allocator_free(a);
}

static void frees_leave_errno_alone(void) {
    SlabAllocator* a = kit_create();
    SlabHandle h = 0;
    char stack_byte = 0;
    void* p = slab_malloc(a, 64);
    void* big = slab_malloc(a, 3 * KIT_MIB);
    CHECK(alloc_obj(a, 64, &h) != NULL);
    errno = 4321;
    slab_free(a, NULL);
    slab_free(a, p);
    slab_free(a, p);
    slab_free(a, big);
    slab_free(a, big);
    slab_free(a, &stack_byte);
    slab_free_sized(a, &stack_byte, 10);
    CHECK(!slab_free_checked(a, &stack_byte));
    CHECK(slab_free_checked(a, NULL));
    CHECK(free_obj(a, h));
    CHECK(!free_obj(a, h));
    CHECK(!free_obj(a, 0));
    CHECK(!free_obj(a, ~(SlabHandle)0));
    slab_free(NULL, p);
    CHECK(!free_obj(NULL, h));
    CHECK_EQ(errno, 4321);
    slab_allocator_free(a);
}

static void small_tools_tell_the_truth(void) {
    CHECK_EQ(slab_page_size(), (size_t)sysconf(_SC_PAGESIZE));
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t before = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    uint64_t now = slab_now_ns();
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t after = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
    CHECK(before <= now && now <= after);
    CHECK_GT(slab_rss_bytes(), 0);
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", TSLAB_VERSION_MAJOR, TSLAB_VERSION_MINOR, TSLAB_VERSION_PATCH);
    CHECK_STR(slab_version(), version);
}

static const CheckCase cases[] = {
    CHECK_CASE(every_size),
    CHECK_CASE(every_size_at_first),
    CHECK_CASE(fixed_classes_keep_index_and_size),
    CHECK_CASE(sizes_between_have_classes),
    CHECK_CASE(many_of_each_class_are_aligned),
    CHECK_CASE(contents_survive_random_churn),
    CHECK_CASE(numbers_follow_objects),
    CHECK_CASE(calloc_is_zero_where_dirt_was),
    CHECK_CASE(calloc_refuses_nothing_and_too_much),
    CHECK_CASE(bad_sizes_are_refused),
    CHECK_CASE(handles_out_is_zero_on_failure),
    CHECK_CASE(frees_leave_errno_alone),
    CHECK_CASE(small_tools_tell_the_truth),
};
CHECK_MAIN(cases)
