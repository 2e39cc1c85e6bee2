/*
 * safety.c - frees of what is no live object: refused, counted under their cause, harmless.
 */
#include "kit/fixture.h"

#include <sys/mman.h>

static const size_t sizes[] = {1, 16, 64, 96, 128, 384, 768, 2000, 5000, 40000, 200000, 300000, 3000000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static uint64_t again(SlabAllocator* a) {
    SlabRefusals r = kit_refusals(a);
    return r.double_free + r.stale_free;
}

static void null_is_nothing(void) {
    SlabAllocator* a = kit_create();
    slab_free(a, NULL);
    slab_free_sized(a, NULL, 10);
    CHECK(slab_free_checked(a, NULL));
    CHECK_EQ(kit_refused_frees(a), 0);
    slab_allocator_free(a);
}

static void doubled_on_one_thread(void) {
    SlabAllocator* a = kit_create();
    for (size_t s = 0; s < SIZES; s++) {
        void* other = slab_malloc(a, sizes[s]);
        void* p = slab_malloc(a, sizes[s]);
        REQUIRE(p != NULL && other != NULL);
        CHECK(slab_free_checked(a, p));
        for (uint64_t i = 0; i < 5; i++) {
            uint64_t before = again(a);
            CHECK(!slab_free_checked(a, kit_hide(p)));
            CHECK_EQ(again(a), before + 1);
        }
        slab_free_sized(a, kit_hide(p), sizes[s]);
        CHECK_EQ(kit_live(a), 1);
        CHECK_GE(slab_usable_size(a, other), sizes[s]);
        CHECK(slab_free_checked(a, other));
        CHECK(!slab_free_checked(a, kit_hide(other)));
        CHECK_EQ(kit_live(a), 0);
    }
    CHECK_EQ(again(a), SIZES * 7);
    CHECK_EQ(kit_refused_frees(a), SIZES * 7);
    slab_allocator_free(a);
}

/* Small objects of an open epoch stay in their slab: their second free is a double free, exactly. */
static void doubled_is_counted_as_double(void) {
    enum { COUNT = 5000 };
    static void* kept[COUNT];
    SlabAllocator* a = kit_create();
    void* anchor = slab_malloc(a, 100);
    for (size_t i = 0; i < COUNT; i++) {
        kept[i] = slab_malloc(a, 100);
    }
    for (size_t i = 0; i < COUNT; i++) {
        slab_free(a, kept[i]);
        slab_free(a, kit_hide(kept[i]));
    }
    for (size_t i = 0; i < COUNT; i++) {
        slab_free(a, kit_hide(kept[i]));
    }
    CHECK_EQ(kit_refusals(a).double_free, 2 * COUNT);
    CHECK_EQ(kit_live(a), 1);
    CHECK(slab_free_checked(a, anchor));
    slab_allocator_free(a);
}

/* ---- the same pointer freed by two threads, one after the other ---- */

typedef struct Job {
    SlabAllocator* a;
    void** p;
    size_t count, freed;
} Job;

static void* free_all(void* arg) {
    Job* j = arg;
    for (size_t i = 0; i < j->count; i++) {
        j->freed += slab_free_checked(j->a, kit_hide(j->p[i]));
    }
    return NULL;
}

typedef enum Who { OWNER, REMOTE } Who;

static size_t freed_by(Who who, SlabAllocator* a, void** p, size_t count) {
    Job j = {a, p, count, 0};
    if (who == OWNER) {
        free_all(&j);
    } else {
        kit_on_thread(free_all, &j);
    }
    return j.freed;
}

static void doubled_by(Who first, Who second) {
    enum { COUNT = 300 };
    void* kept[COUNT];
    for (size_t s = 0; s < SIZES; s++) {
        SlabAllocator* a = kit_create();
        size_t count = sizes[s] > 10000 ? 10 : COUNT;
        void* anchor = slab_malloc(a, sizes[s]);
        for (int round = 0; round < 3; round++) {
            for (size_t i = 0; i < count; i++) {
                kept[i] = slab_malloc(a, sizes[s]);
                REQUIRE(kept[i] != NULL);
            }
            size_t part = round == 0 ? count : count / 2; /* some lines stay partly live */
            uint64_t before = again(a);
            CHECK_EQ(freed_by(first, a, kept, part), part);
            CHECK_EQ(freed_by(second, a, kept, part), 0);
            CHECK_EQ(freed_by(first, a, kept, part), 0);
            CHECK_EQ(again(a), before + 2 * part);
            CHECK_EQ(kit_live(a), 1 + count - part);
            CHECK_EQ(freed_by(second, a, kept + part, count - part), count - part);
        }
        CHECK_EQ(kit_live(a), 1);
        CHECK_EQ(kit_refusals(a).late_double_free, 0);
        CHECK(slab_free_checked(a, anchor));
        slab_allocator_free(a);
    }
}

static void doubled_owner_then_remote(void) { doubled_by(OWNER, REMOTE); }
static void doubled_remote_then_owner(void) { doubled_by(REMOTE, OWNER); }
static void doubled_remote_then_remote(void) { doubled_by(REMOTE, REMOTE); }

static void interior_pointers(void) {
    SlabAllocator* a = kit_create();
    uint64_t expected = 0;
    for (size_t s = 0; s < SIZES; s++) {
        char* p = slab_malloc(a, sizes[s]);
        size_t usable = slab_usable_size(a, p);
        kit_fill(p, usable, s);
        size_t offsets[] = {1, 8, 15, usable / 2, usable - 1};
        for (size_t i = 0; i < 5; i++) {
            if (offsets[i] == 0 || offsets[i] >= usable) {
                continue;
            }
            CHECK(!slab_free_checked(a, kit_hide(p + offsets[i])));
            slab_free_sized(a, kit_hide(p + offsets[i]), 1);
            expected += 2;
        }
        CHECK_EQ(kit_refusals(a).interior_pointer, expected);
        CHECK(kit_intact(p, usable, s));
        CHECK_EQ(slab_usable_size(a, p), usable);
        CHECK(slab_free_checked(a, p));
    }
    CHECK_EQ(kit_refused_frees(a), expected);
    slab_allocator_free(a);
}

static void foreign_pointers(void) {
    static int global;
    SlabAllocator* a = kit_create();
    SlabAllocator* other = kit_create();
    int local = 0;
    char* heap = malloc(100);
    char* map = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char* gone = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(gone, 8192);
    char* theirs = slab_malloc(other, 100);
    char* theirs_large = slab_malloc(other, 3000000);
    void* const foreign[] = {&local,
                             &global,
                             heap,
                             heap + 16,
                             map,
                             map + 4096,
                             gone,
                             theirs,
                             theirs + 1,
                             theirs_large,
                             a,
                             (void*)(uintptr_t)1,
                             (void*)(uintptr_t)16,
                             (void*)(uintptr_t)4096,
                             (void*)UINTPTR_MAX,
                             (void*)(UINTPTR_MAX - 15),
                             (void*)(UINTPTR_MAX / 2),
                             (void*)(uintptr_t)((uint64_t)1 << 47),
                             (void*)(uintptr_t)((uint64_t)0xFFFF8000 << 32)};
    size_t count = sizeof foreign / sizeof foreign[0];
    for (int warm = 0; warm < 2; warm++) { /* before and after the allocator has memory */
        for (size_t i = 0; i < count; i++) {
            uint64_t before = kit_refusals(a).foreign_pointer;
            CHECK(!slab_free_checked(a, foreign[i]));
            slab_free(a, foreign[i]);
            CHECK_EQ(kit_refusals(a).foreign_pointer, before + 2);
            CHECK_EQ(slab_usable_size(a, foreign[i]), 0);
            CHECK_EQ(slab_ptr_handle(a, foreign[i]), 0);
        }
        CHECK(slab_malloc(a, 100) != NULL);
    }
    CHECK_EQ(kit_refused_frees(a), 4 * count);
    CHECK_EQ(kit_refused_frees(other), 0);
    CHECK_EQ(kit_live(a), 2);
    CHECK(slab_free_checked(other, theirs));
    CHECK(slab_free_checked(other, theirs_large));
    munmap(map, 8192);
    free(heap);
    slab_allocator_free(other);
    slab_allocator_free(a);
}

/* Every address near live objects: exactly the starts of live objects are objects. */
static void every_address_around_objects(void) {
    enum { COUNT = 200, SPAN = 256 * 1024 };
    static void* kept[COUNT];
    static unsigned char start[SPAN];
    static const size_t some[] = {16, 48, 64, 96, 128, 384, 768, 1500, 5000};
    for (size_t s = 0; s < sizeof some / sizeof some[0]; s++) {
        SlabAllocator* a = kit_create();
        size_t found = 0, live_here = 0;
        memset(start, 0, sizeof start);
        for (size_t i = 0; i < COUNT; i++) {
            kept[i] = slab_malloc(a, some[s]);
        }
        uintptr_t base = (uintptr_t)kept[COUNT / 2] & ~(uintptr_t)(SPAN - 1);
        for (size_t i = 0; i < COUNT; i++) {
            if (i % 3 == 0) {
                slab_free(a, kept[i]);
            } else if ((uintptr_t)kept[i] - base < SPAN) {
                start[(uintptr_t)kept[i] - base] = 1;
                live_here++;
            }
        }
        uint64_t live = kit_live(a);
        for (size_t i = 0; i < SPAN; i += i % 16 == 0 || i % 16 == 15 ? 1 : 14) {
            void* p = kit_hide((void*)(base + i));
            if (slab_usable_size(a, p) != 0) {
                CHECK_EQ(start[i], 1);
                found++;
            } else {
                CHECK_EQ(start[i], 0);
                CHECK(!slab_free_checked(a, p));
                CHECK(!slab_ptr_epoch(a, p, NULL, NULL));
            }
        }
        CHECK_EQ(found, live_here);
        CHECK_EQ(kit_live(a), live);
        slab_allocator_free(a);
    }
}

static void random_addresses(void) {
    SlabAllocator* a = kit_create();
    uint64_t rng = 99;
    uintptr_t p = (uintptr_t)slab_malloc(a, 64);
    CHECK(slab_malloc(a, 2000000) != NULL);
    size_t tries = check_count(300000);
    for (size_t i = 0; i < tries; i++) {
        uint64_t r = kit_rand(&rng);
        uintptr_t q = i % 4 == 0   ? (uintptr_t)r
                      : i % 4 == 1 ? p + (uintptr_t)(r & 0xFFFFFFF0u)
                      : i % 4 == 2 ? p - (uintptr_t)(r & 0xFFFFFFF0u)
                                   : p + (uintptr_t)(r % ((uint64_t)64 << 30));
        if (slab_usable_size(a, (void*)q) == 0) {
            CHECK(!slab_free_checked(a, (void*)q));
        }
    }
    CHECK_EQ(kit_live(a), 2);
    slab_allocator_free(a);
}

static void freed_after_release(void) {
    enum { COUNT = 3000 };
    static void* kept[COUNT];
    SlabAllocator* a = kit_create_cold();
    for (size_t i = 0; i < COUNT; i++) {
        kept[i] = slab_malloc_epoch(a, sizes[i % SIZES], 3);
        REQUIRE(kept[i] != NULL);
    }
    CHECK(epoch_close_ex(a, 3, EPOCH_RELEASE, NULL));
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(!slab_free_checked(a, kept[i]));
        CHECK_EQ(slab_usable_size(a, kept[i]), 0);
        CHECK_NULL(slab_realloc(a, kept[i], 100));
    }
    Job j = {a, kept, COUNT, 0};
    kit_on_thread(free_all, &j);
    CHECK_EQ(j.freed, 0);
    CHECK_GE(kit_refusals(a).stale_free, COUNT * (size_t)2);
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static void freed_after_drain_and_return(void) {
    SlabAllocator* a = kit_create_cold();
    for (size_t s = 0; s < SIZES; s++) {
        epoch_domain_t* d = epoch_domain_create(a);
        void* p = epoch_domain_malloc(d, sizes[s]);
        REQUIRE(p != NULL);
        CHECK(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, NULL));
        CHECK(slab_free_checked(a, p));
        uint64_t before = again(a);
        CHECK(!slab_free_checked(a, kit_hide(p)));
        CHECK_EQ(freed_by(REMOTE, a, &p, 1), 0);
        CHECK_EQ(again(a), before + 2);
        epoch_domain_destroy(d);
    }
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(null_is_nothing),
    CHECK_CASE(doubled_on_one_thread),
    CHECK_CASE(doubled_is_counted_as_double),
    CHECK_CASE(doubled_owner_then_remote),
    CHECK_CASE(doubled_remote_then_owner),
    CHECK_CASE(doubled_remote_then_remote),
    CHECK_CASE(interior_pointers),
    CHECK_CASE(foreign_pointers),
    CHECK_CASE(every_address_around_objects),
    CHECK_CASE(random_addresses),
    CHECK_CASE(freed_after_release),
    CHECK_CASE(freed_after_drain_and_return),
};
CHECK_MAIN(cases)
