/*
 * handles.c - a handle is good for exactly one object and exactly one free. Everything else is
 * refused and counted: nothing, stale, doubled, forged in any bit, another allocator's.
 */
#include "kit/fixture.h"

static uint64_t refused_handles(SlabAllocator* a) {
    SlabRefusals r = kit_refusals(a);
    return r.stale_handle + r.bad_handle + r.double_free + r.stale_free;
}

static void valid_once(void) {
    static const uint32_t sizes[] = {1, 16, 64, 100, 128, 700, 768, 1000, 5000, 70000, 300000, 3000000};
    SlabAllocator* a = kit_create();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        SlabHandle h = 0;
        void* p = alloc_obj(a, sizes[i], &h);
        REQUIRE(p != NULL);
        CHECK_NE(h, 0);
        CHECK_EQ(slab_handle_ptr(a, h), p);
        kit_fill(p, sizes[i], i);
        CHECK_GE(slab_usable_size(a, p), sizes[i]);
        CHECK(kit_intact(p, sizes[i], i));
        uint64_t before = refused_handles(a);
        CHECK(free_obj(a, h));
        CHECK(!free_obj(a, h));
        CHECK(!free_obj(a, h));
        CHECK_EQ(refused_handles(a), before + 2);
        CHECK_NULL(slab_handle_ptr(a, h));
        CHECK(!slab_free_checked(a, kit_hide(p)));
    }
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static void zero_is_nothing(void) {
    SlabAllocator* a = kit_create();
    CHECK(!free_obj(a, 0));
    CHECK_NULL(slab_handle_ptr(a, 0));
    CHECK(alloc_obj(a, 64, NULL) != NULL);
    CHECK(!free_obj(a, 0));
    CHECK_EQ(kit_live(a), 1);
    slab_allocator_free(a);
}

static void many_handles_are_distinct(void) {
    enum { COUNT = 20000 };
    static SlabHandle handles[COUNT];
    static void* objects[COUNT];
    SlabAllocator* a = kit_create();
    for (size_t i = 0; i < COUNT; i++) {
        objects[i] = alloc_obj(a, 16 + (uint32_t)(i % 700), &handles[i]);
        REQUIRE(objects[i] != NULL);
        CHECK_NE(handles[i], 0);
    }
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(slab_handle_ptr(a, handles[i]), objects[i]);
        CHECK_EQ(slab_ptr_handle(a, objects[i]), handles[i]);
    }
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(free_obj(a, handles[(i * 7919) % COUNT]));
    }
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(refused_handles(a), 0);
    slab_allocator_free(a);
}

static void stale_after_the_slot_is_reused(void) {
    enum { KEPT = 4096 };
    static SlabHandle old[KEPT];
    SlabAllocator* a = kit_create();
    void* first = NULL;
    size_t kept = 0, reused = 0;
    for (size_t i = 0; i < KEPT * 4; i++) {
        SlabHandle h = 0;
        void* p = alloc_obj(a, 128, &h);
        REQUIRE(p != NULL);
        if (first == NULL) {
            first = p;
        }
        reused += kit_hide(p) == kit_hide(first);
        for (size_t k = kept > 16 ? kept - 16 : 0; k < kept; k++) {
            CHECK_NULL(slab_handle_ptr(a, old[k]));
            CHECK(!free_obj(a, old[k]));
        }
        CHECK_EQ(slab_usable_size(a, p), 128);
        CHECK(free_obj(a, h));
        if (kept < KEPT) {
            old[kept++] = h;
        }
    }
    CHECK_GT(reused, 0);
    void* last = alloc_obj(a, 128, NULL);
    uint64_t before = refused_handles(a);
    for (size_t k = 0; k < kept; k++) {
        CHECK(!free_obj(a, old[k]));
    }
    CHECK_EQ(refused_handles(a), before + kept);
    CHECK(slab_free_checked(a, last));
    slab_allocator_free(a);
}

/* The object named by the handle is freed by pointer and its address issued again by the pointer
 * API: the handle must not reach the new object. */
static void stale_after_pointer_reuse(void) {
    SlabAllocator* a = kit_create();
    size_t same = 0;
    for (size_t round = 0; round < 500; round++) {
        SlabHandle h = 0;
        void* p = alloc_obj(a, 96, &h);
        REQUIRE(p != NULL);
        slab_free(a, p);
        CHECK(!free_obj(a, h));
        void* kept[300];
        size_t n = 0;
        bool again = false;
        while (n < 300 && !again) {
            kept[n] = slab_malloc(a, 96);
            again = kit_hide(kept[n++]) == kit_hide(p);
        }
        same += again;
        CHECK_NULL(slab_handle_ptr(a, h));
        CHECK(!free_obj(a, h));
        CHECK_EQ(kit_live(a), n);
        while (n > 0) {
            CHECK(slab_free_checked(a, kept[--n]));
        }
    }
    CHECK_GT(same, 0);
    slab_allocator_free(a);
}

static void no_flipped_bit_is_accepted(void) {
    enum { COUNT = 3000 };
    static SlabHandle handles[COUNT];
    SlabAllocator* a = kit_create();
    for (size_t i = 0; i < COUNT; i++) {
        REQUIRE(alloc_obj(a, 64 + (uint32_t)(i % 8) * 90, &handles[i]) != NULL);
    }
    for (size_t i = 0; i < COUNT; i += 10) {
        uint64_t before = refused_handles(a);
        for (unsigned bit = 0; bit < 64; bit++) {
            SlabHandle forged = handles[i] ^ ((SlabHandle)1 << bit);
            CHECK_NULL(slab_handle_ptr(a, forged));
            CHECK(!free_obj(a, forged));
        }
        CHECK_EQ(refused_handles(a), before + 64);
    }
    CHECK_EQ(kit_live(a), COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(free_obj(a, handles[i]));
    }
    slab_allocator_free(a);
}

static void no_random_number_is_accepted(void) {
    SlabAllocator* a = kit_create();
    uint64_t rng = 0xF00D;
    SlabHandle h = 0;
    for (size_t i = 0; i < 1000; i++) {
        REQUIRE(alloc_obj(a, 100, &h) != NULL);
    }
    size_t tries = check_count(200000);
    for (size_t i = 0; i < tries; i++) {
        SlabHandle forged = kit_rand(&rng);
        if (i % 2 == 0) { /* near a real one: half of its bits kept */
            uint64_t mask = kit_rand(&rng);
            forged = (h & mask) | (forged & ~mask);
        }
        if (forged != h) {
            CHECK(!free_obj(a, forged));
        }
    }
    CHECK_EQ(kit_live(a), 1000);
    CHECK(free_obj(a, h));
    slab_allocator_free(a);
}

static void another_allocators_handle(void) {
    enum { COUNT = 1000 };
    static SlabHandle in_a[COUNT], in_b[COUNT];
    SlabAllocator* a = kit_create();
    SlabAllocator* b = kit_create();
    for (size_t i = 0; i < COUNT; i++) {
        REQUIRE(alloc_obj(a, 128, &in_a[i]) != NULL);
        REQUIRE(alloc_obj(b, 128, &in_b[i]) != NULL);
    }
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_NE(in_a[i], in_b[i]);
        CHECK(!free_obj(a, in_b[i]));
        CHECK(!free_obj(b, in_a[i]));
        CHECK_NULL(slab_handle_ptr(a, in_b[i]));
    }
    SlabRefusals r = kit_refusals(a);
    CHECK_EQ(r.bad_handle + r.stale_handle, COUNT);
    CHECK_GE(r.bad_handle, COUNT * 9 / 10); /* a few may look like handles this allocator once issued */
    CHECK_EQ(kit_live(a), COUNT);
    CHECK_EQ(kit_live(b), COUNT);
    slab_allocator_free(b);
    slab_allocator_free(a);
}

static void fresh_allocators_issue_different_handles(void) {
    enum { ALLOCATORS = 8, EACH = 64 };
    SlabAllocator* set[ALLOCATORS];
    SlabHandle issued[ALLOCATORS * EACH];
    size_t n = 0;
    for (size_t k = 0; k < ALLOCATORS; k++) {
        set[k] = kit_create();
        for (size_t i = 0; i < EACH; i++) {
            REQUIRE(alloc_obj(set[k], 64, &issued[n++]) != NULL);
        }
    }
    for (size_t i = 0; i < n; i++) {
        for (size_t k = i + 1; k < n; k++) {
            CHECK_NE(issued[i], issued[k]);
        }
    }
    for (size_t k = 0; k < ALLOCATORS; k++) {
        slab_allocator_free(set[k]);
    }
}

/* An allocator made in the storage of a destroyed one refuses the old one's handles. */
static void handles_do_not_outlive_their_allocator(void) {
    static SlabAllocator storage;
    SlabHandle old[64], now[64];
    for (int round = 0; round < 20; round++) {
        REQUIRE(allocator_init_with(&storage, NULL));
        for (size_t i = 0; i < 64; i++) {
            REQUIRE(alloc_obj(&storage, 64, &now[i]) != NULL);
        }
        for (size_t i = 0; i < 64 && round > 0; i++) {
            CHECK(!free_obj(&storage, old[i]));
        }
        CHECK_EQ(kit_live(&storage), 64);
        memcpy(old, now, sizeof old);
        allocator_destroy(&storage);
    }
}

static void handle_of_a_pointer(void) {
    static const size_t sizes[] = {64, 500, 20000, 2000000};
    SlabAllocator* a = kit_create();
    int local = 0;
    for (size_t i = 0; i < 4; i++) {
        char* p = slab_malloc(a, sizes[i]);
        SlabHandle h = slab_ptr_handle(a, p);
        CHECK_NE(h, 0);
        CHECK_EQ(slab_ptr_handle(a, p), h);
        CHECK_EQ(slab_handle_ptr(a, h), (void*)p);
        CHECK_EQ(slab_ptr_handle(a, p + 16), 0);
        CHECK(free_obj(a, h));
        CHECK(!free_obj(a, h));
        CHECK_EQ(slab_ptr_handle(a, kit_hide(p)), 0);
        p = slab_malloc(a, sizes[i]);
        h = slab_ptr_handle(a, p);
        slab_free(a, p);
        CHECK(!free_obj(a, h));
        CHECK_NULL(slab_handle_ptr(a, h));
    }
    CHECK_EQ(slab_ptr_handle(a, NULL), 0);
    CHECK_EQ(slab_ptr_handle(a, &local), 0);
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

/* Handle of an object whose slab already holds pointer objects, some of them freed before. */
static void late_handles_in_a_pointer_slab(void) {
    enum { COUNT = 500 };
    SlabAllocator* a = kit_create();
    void* kept[COUNT];
    SlabHandle h[COUNT];
    for (int round = 0; round < 30; round++) {
        for (size_t i = 0; i < COUNT; i++) {
            kept[i] = slab_malloc(a, 192);
            REQUIRE(kept[i] != NULL);
        }
        for (size_t i = 0; i < COUNT; i++) {
            h[i] = i % 3 == 0 ? slab_ptr_handle(a, kept[i]) : 0;
        }
        for (size_t i = 0; i < COUNT; i++) {
            if (i % 6 == 0) {
                CHECK(free_obj(a, h[i]));
                CHECK(!slab_free_checked(a, kit_hide(kept[i])));
            } else {
                CHECK(slab_free_checked(a, kept[i]));
            }
        }
        for (size_t i = 0; i < COUNT; i += 3) {
            CHECK(!free_obj(a, h[i]));
        }
        CHECK_EQ(kit_live(a), 0);
    }
    slab_allocator_free(a);
}

static void stale_after_release_exactly(void) {
    enum { COUNT = 5000 };
    static SlabHandle h[COUNT];
    SlabAllocator* a = kit_create();
    for (int round = 0; round < 4; round++) {
        epoch_domain_t* d = epoch_domain_create(a);
        for (size_t i = 0; i < COUNT; i++) {
            REQUIRE(alloc_obj_epoch(a, 16 + (uint32_t)i % 2000, d->epoch_id, &h[i]) != NULL);
        }
        for (size_t i = 0; i < COUNT; i += 5) {
            CHECK(free_obj(a, h[i]));
        }
        EpochReceipt r;
        CHECK(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, &r));
        CHECK_EQ(r.objects_allocated, COUNT);
        CHECK_EQ(r.objects_released, COUNT - COUNT / 5);
        uint64_t before = refused_handles(a);
        for (size_t i = 0; i < COUNT; i++) {
            CHECK_NULL(slab_handle_ptr(a, h[i]));
            CHECK(!free_obj(a, h[i]));
        }
        CHECK_EQ(refused_handles(a), before + COUNT);
        epoch_domain_destroy(d);
        for (size_t i = 0; i < COUNT; i++) { /* the same memory, a new phase */
            REQUIRE(slab_malloc(a, 16 + i % 2000) != NULL);
        }
        for (size_t i = 0; i < COUNT; i++) {
            CHECK(!free_obj(a, h[i]));
        }
        CHECK_EQ(kit_live(a), COUNT * (size_t)(round + 1));
    }
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(valid_once),
    CHECK_CASE(zero_is_nothing),
    CHECK_CASE(many_handles_are_distinct),
    CHECK_CASE(stale_after_the_slot_is_reused),
    CHECK_CASE(stale_after_pointer_reuse),
    CHECK_CASE(no_flipped_bit_is_accepted),
    CHECK_CASE(no_random_number_is_accepted),
    CHECK_CASE(another_allocators_handle),
    CHECK_CASE(fresh_allocators_issue_different_handles),
    CHECK_CASE(handles_do_not_outlive_their_allocator),
    CHECK_CASE(handle_of_a_pointer),
    CHECK_CASE(late_handles_in_a_pointer_slab),
    CHECK_CASE(stale_after_release_exactly),
};
CHECK_MAIN(cases)
