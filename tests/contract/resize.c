/*
 * resize.c - realloc, aligned allocation, and what can be asked about a pointer: its usable size,
 * its epoch, its allocator.
 */
#include "kit/fixture.h"

static void realloc_keeps_contents(void) {
    static const size_t steps[] = {1, 64, 65, 4000, 4096, 100000, 3 * KIT_MIB, 200000, 700, 16, 5 * KIT_MIB, 1};
    SlabAllocator* a = kit_create();
    size_t old = 40;
    unsigned char* p = slab_realloc(a, NULL, old);
    REQUIRE(p != NULL);
    kit_fill(p, old, 9);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        p = slab_realloc(a, p, steps[i]);
        REQUIRE(p != NULL);
        CHECK_GE(slab_usable_size(a, p), steps[i]);
        CHECK(kit_intact(p, old < steps[i] ? old : steps[i], 9));
        kit_fill(p, steps[i], 9);
        old = steps[i];
        CHECK_EQ(kit_live(a), 1);
    }
    errno = 0;
    CHECK_NULL(slab_realloc(a, p, 0));
    CHECK_EQ(kit_live(a), 0);
    CHECK(!slab_free_checked(a, kit_hide(p)));
    slab_allocator_free(a);
}

static void realloc_random_walk(void) {
    SlabAllocator* a = kit_create();
    uint64_t rng = 42;
    size_t size = 1;
    unsigned char* p = slab_malloc(a, size);
    REQUIRE(p != NULL);
    kit_fill(p, size, 1);
    size_t rounds = check_count(3000);
    for (size_t i = 0; i < rounds; i++) {
        size_t next = kit_rand_size(&rng, 600000);
        p = slab_realloc(a, p, next);
        REQUIRE(p != NULL);
        CHECK(kit_intact(p, size < next ? size : next, 1));
        kit_fill(p, next, 1);
        size = next;
    }
    CHECK(slab_free_checked(a, p));
    slab_allocator_free(a);
}

/* What grew in the phase before is not taken for what lies there in this one. */
static void realloc_in_one_phase_after_the_other(void) {
    SlabAllocator* a = kit_create();
    for (unsigned n = 0; n < 200; n++) {
        epoch_domain_t* d = epoch_domain_begin(a, "grows");
        size_t step = 16 + 16 * (n % 5);
        unsigned char *p = slab_malloc(a, step), *q = NULL;
        REQUIRE(p != NULL);
        for (size_t size = 2 * step; size <= 160 && n % 2 == 0; size += step)
            REQUIRE((p = slab_realloc(a, p, size)) != NULL);
        if (n % 2 != 0) REQUIRE((q = slab_malloc(a, (n % 7 == 0 ? 240 : 160) - step)) != NULL);
        if (q != NULL) {
            kit_fill(p, step, n);
            kit_fill(q, 160 - step, n + 1);
            REQUIRE((p = slab_realloc(a, p, 120)) != NULL);
            CHECK_GE(slab_usable_size(a, p), 120);
            CHECK(kit_intact(p, step, n));
            memset(p, 0, 120);
            CHECK(kit_intact(q, 160 - step, n + 1));
        }
        epoch_domain_end(d);
    }
    slab_allocator_free(a);
}

static void realloc_follows_the_epoch(void) {
    SlabAllocator* a = kit_create();
    void* p = slab_malloc_epoch(a, 64, 3);
    uint64_t era = epoch_era(a, 3);
    p = slab_realloc(a, p, 5000);
    CHECK_EQ(kit_era_of(a, p), era);
    p = slab_realloc_epoch(a, p, 90000, 4);
    CHECK_EQ(kit_era_of(a, p), epoch_era(a, 4));
    epoch_close(a, 4);
    kit_fill(p, 90000, 2);
    p = slab_realloc(a, p, 400000);
    REQUIRE(p != NULL);
    CHECK_EQ(kit_era_of(a, p), epoch_era(a, epoch_current(a)));
    CHECK(kit_intact(p, 90000, 2));
    epoch_domain_t* d = epoch_domain_begin(a, "realloc");
    void* q = slab_malloc_epoch(a, 64, 5);
    epoch_close(a, 5);
    q = slab_realloc(a, q, 9000);
    CHECK_EQ(kit_era_of(a, q), d->epoch_era);
    epoch_domain_end(d);
    CHECK(!slab_free_checked(a, kit_hide(q)));
    CHECK(slab_free_checked(a, p));
    slab_allocator_free(a);
}

static void realloc_failure_keeps_the_block(void) {
    SlabAllocator* a = kit_create();
    void* p = slab_malloc_epoch(a, 64, 3);
    kit_fill(p, 64, 5);
    CHECK_NULL(slab_realloc(a, p, kit_size(SIZE_MAX)));
    CHECK_NULL(slab_realloc(a, p, kit_size((size_t)PTRDIFF_MAX - 4096)));
    epoch_close(a, 6);
    errno = 0;
    CHECK_NULL(slab_realloc_epoch(a, p, 5000, 6));
    CHECK_EQ(errno, ESTALE);
    errno = 0;
    CHECK_NULL(slab_realloc_epoch(a, p, 5000, 999));
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(slab_usable_size(a, p), 64);
    CHECK(kit_intact(p, 64, 5));
    CHECK_EQ(kit_live(a), 1);
    CHECK(slab_free_checked(a, p));
    slab_allocator_free(a);
}

static void realloc_of_no_object_touches_nothing(void) {
    SlabAllocator* a = kit_create();
    SlabAllocator* other = kit_create();
    unsigned char* p = slab_malloc(a, 256);
    unsigned char* foreign = slab_malloc(other, 256);
    unsigned char local[64];
    kit_fill(p, 256, 1);
    kit_fill(foreign, 256, 2);
    kit_fill(local, sizeof local, 3);
    void* const bad[] = {kit_hide(p + 16), kit_hide(local + 16), kit_hide(foreign), kit_hide((void*)1)};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        errno = 0;
        CHECK_NULL(slab_realloc(a, bad[i], 1000));
        CHECK_EQ(errno, EINVAL);
        errno = 0;
        CHECK_NULL(slab_realloc_epoch(a, bad[i], 1000, 2));
        CHECK_EQ(errno, EINVAL);
    }
    CHECK(kit_intact(p, 256, 1));
    CHECK(kit_intact(foreign, 256, 2));
    CHECK(kit_intact(local, sizeof local, 3));
    CHECK_EQ(kit_live(a), 1);
    CHECK(slab_free_checked(a, p));
    errno = 0;
    CHECK_NULL(slab_realloc(a, kit_hide(p), 1000));
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(kit_live(a), 0);
    slab_free(other, foreign);
    slab_allocator_free(other);
    slab_allocator_free(a);
}

static void realloc_of_nothing(void) {
    SlabAllocator* a = kit_create();
    errno = 0;
    CHECK_NULL(slab_realloc(a, NULL, 0));
    CHECK_EQ(errno, EINVAL);
    void* p = slab_realloc_epoch(a, NULL, 100, 9);
    CHECK_EQ(kit_era_of(a, p), epoch_era(a, 9));
    CHECK_NULL(slab_realloc_epoch(a, p, 0, 9));
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static void aligned_small(void) {
    SlabAllocator* a = kit_create();
    static const size_t sizes[] = {1, 16, 100, 1000, 4096, 5000, 70000, 2 * KIT_MIB};
    for (size_t alignment = 1; alignment <= 8 * KIT_MIB; alignment *= 2) {
        void* kept[8];
        for (size_t s = 0; s < 8; s++) {
            kept[s] = slab_aligned_alloc(a, alignment, sizes[s]);
            REQUIRE(kept[s] != NULL);
            CHECK_EQ((uintptr_t)kept[s] % alignment, 0);
            CHECK_EQ((uintptr_t)kept[s] % 16, 0);
            CHECK_GE(slab_usable_size(a, kept[s]), sizes[s]);
            kit_fill(kept[s], sizes[s], s);
        }
        for (size_t s = 0; s < 8; s++) {
            CHECK(kit_intact(kept[s], sizes[s], s));
            CHECK(slab_free_checked(a, kept[s]));
            CHECK(!slab_free_checked(a, kit_hide(kept[s])));
        }
    }
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static void aligned_up_to_a_gib(void) {
    SlabAllocator* a = kit_create();
    for (size_t alignment = 16 * KIT_MIB; alignment <= 1024 * KIT_MIB; alignment *= 2) {
        errno = 0;
        unsigned char* p = slab_aligned_alloc_epoch(a, alignment, 3 * KIT_MIB, 2);
        if (p == NULL && errno == ENOMEM) {
            NOTE("no address space for an alignment of %zu MiB in a reservation of %" PRIu64 " MiB",
                 alignment / KIT_MIB, kit_global(a).reserved_bytes / KIT_MIB);
            slab_allocator_free(a);
            SKIP("larger alignments");
        }
        REQUIRE(p != NULL);
        CHECK_EQ((uintptr_t)p % alignment, 0);
        p[0] = 1;
        p[3 * KIT_MIB - 1] = 1;
        CHECK_EQ(kit_era_of(a, p), epoch_era(a, 2));
        unsigned char* q = slab_aligned_alloc(a, alignment, 1);
        CHECK(q == NULL || (uintptr_t)q % alignment == 0);
        slab_free(a, q);
        CHECK(slab_free_checked(a, p));
    }
    slab_allocator_free(a);
}

static void bad_alignments_are_refused(void) {
    SlabAllocator* a = kit_create();
    static const size_t bad[] = {0, 3, 24, 1000, ((size_t)1 << 30) + 1, (size_t)1 << 31, SIZE_MAX / 2 + 1, SIZE_MAX};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        errno = 0;
        CHECK_NULL(slab_aligned_alloc(a, kit_size(bad[i]), 100));
        CHECK_EQ(errno, EINVAL);
        errno = 0;
        CHECK_NULL(slab_aligned_alloc_epoch(a, kit_size(bad[i]), 100, 1));
        CHECK_EQ(errno, EINVAL);
    }
    errno = 0;
    CHECK_NULL(slab_aligned_alloc(a, 64, 0));
    CHECK_EQ(errno, EINVAL);
    CHECK_NULL(slab_aligned_alloc(a, (size_t)1 << 30, kit_size(SIZE_MAX - 4096)));
    CHECK_NULL(slab_aligned_alloc(a, (size_t)1 << 30, kit_size((size_t)PTRDIFF_MAX)));
    errno = 0;
    CHECK_NULL(slab_aligned_alloc_epoch(a, 64, 100, 77777));
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static void aligned_blocks_resize(void) {
    SlabAllocator* a = kit_create();
    for (size_t alignment = 32; alignment <= 65536; alignment *= 4) {
        unsigned char* p = slab_aligned_alloc(a, alignment, 200);
        REQUIRE(p != NULL);
        kit_fill(p, 200, alignment);
        p = slab_realloc(a, p, 300000);
        REQUIRE(p != NULL);
        CHECK(kit_intact(p, 200, alignment));
        CHECK(slab_free_checked(a, p));
    }
    slab_allocator_free(a);
}

static void usable_size_only_of_live_objects(void) {
    SlabAllocator* a = kit_create();
    static const size_t sizes[] = {10, 64, 500, 3000, 70000, 4 * KIT_MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char* p = slab_malloc(a, sizes[i]);
        REQUIRE(p != NULL);
        CHECK_GE(slab_usable_size(a, p), sizes[i]);
        CHECK_EQ(slab_usable_size(a, p + 1), 0);
        CHECK_EQ(slab_usable_size(a, p + sizes[i] / 2), 0);
        slab_free(a, p);
        CHECK_EQ(slab_usable_size(a, kit_hide(p)), 0);
    }
    int local = 0;
    CHECK_EQ(slab_usable_size(a, &local), 0);
    CHECK_EQ(slab_usable_size(a, NULL), 0);
    CHECK_EQ(kit_refused_frees(a), 0);
    slab_allocator_free(a);
}

static void owns_tells_allocators_apart(void) {
    SlabAllocator* a = kit_create();
    SlabAllocator* b = kit_create();
    int local = 0;
    void* heap = malloc(100);
    static const size_t sizes[] = {10, 64, 700, 3000, 70000, 4 * KIT_MIB};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void* p = slab_malloc(a, sizes[i]);
        CHECK(slab_owns(a, p));
        CHECK(!slab_owns(b, p));
        slab_free(a, p);
        CHECK(slab_owns(a, kit_hide(p)));
        CHECK(!slab_owns(b, kit_hide(p)));
    }
    CHECK(!slab_owns(a, &local));
    CHECK(!slab_owns(a, heap));
    CHECK(!slab_owns(a, NULL));
    CHECK(!slab_owns(a, (void*)(uintptr_t)1));
    CHECK(!slab_owns(a, (void*)UINTPTR_MAX));
    free(heap);
    slab_allocator_free(b);
    slab_allocator_free(a);
}

static void ptr_epoch_of_live_objects(void) {
    SlabAllocator* a = kit_create();
    EpochId id = 99;
    uint64_t era = 99;
    void* p = slab_malloc_epoch(a, 100, 11);
    CHECK(slab_ptr_epoch(a, p, &id, &era));
    CHECK_EQ(id, 11);
    CHECK_EQ(era, epoch_era(a, 11));
    CHECK(slab_ptr_epoch(a, p, NULL, NULL));
    CHECK(slab_ptr_epoch(a, p, &id, NULL));
    CHECK(slab_ptr_epoch(a, p, NULL, &era));
    CHECK(!slab_ptr_epoch(a, (char*)p + 16, &id, &era));
    slab_free(a, p);
    CHECK(!slab_ptr_epoch(a, kit_hide(p), &id, &era));
    CHECK(!slab_ptr_epoch(a, NULL, &id, &era));
    CHECK(!slab_ptr_epoch(a, &id, &id, &era));
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    p = slab_malloc(a, 2 * KIT_MIB);
    CHECK(slab_ptr_epoch(a, p, &id, &era));
    CHECK_EQ(id, d->epoch_id);
    CHECK_EQ(era, d->epoch_era);
    epoch_domain_end(d);
    slab_allocator_free(a);
}

static void sized_free(void) {
    SlabAllocator* a = kit_create();
    void* p = slab_malloc(a, 100);
    size_t usable = slab_usable_size(a, p);
    slab_free_sized(a, p, usable + 1);
    slab_free_sized(a, p, kit_size(SIZE_MAX));
    CHECK_EQ(kit_refusals(a).size_mismatch, 2);
    CHECK_EQ(slab_usable_size(a, p), usable);
    slab_free_sized(a, p, 100);
    CHECK_EQ(slab_usable_size(a, kit_hide(p)), 0);
    p = slab_malloc(a, 100);
    slab_free_sized(a, p, usable);
    p = slab_malloc(a, 3 * KIT_MIB);
    slab_free_sized(a, p, 3 * KIT_MIB);
    slab_free_sized(a, NULL, 100);
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(kit_refused_frees(a), 2);
    slab_allocator_free(a);
}

static SlabAllocator* turning;
static _Atomic int turned_enough;

static void* turn_the_ring(void* arg) {
    while (!atomic_load(&turned_enough)) {
        epoch_advance(turning);
    }
    return arg;
}

/* The block's epoch may be left behind at any moment: then it moves to the present one. */
static void realloc_beside_advances(void) {
    size_t rounds = check_count(500000), failed = 0;
    turning = kit_create();
    atomic_store(&turned_enough, 0);
    pthread_t t = kit_thread(turn_the_ring, NULL);
    for (size_t i = 0; i < rounds; i++) {
        unsigned char* p = slab_malloc(turning, 64);
        if (!CHECK(p != NULL)) {
            break;
        }
        p[0] = (unsigned char)i;
        unsigned char* q = slab_realloc(turning, p, i % 2 == 0 ? 200 : 20);
        failed += q == NULL;
        CHECK(q == NULL || q[0] == (unsigned char)i);
        CHECK(slab_free_checked(turning, q != NULL ? q : p));
    }
    atomic_store(&turned_enough, 1);
    pthread_join(t, NULL);
    CHECK_EQ(failed, 0);
    CHECK_EQ(kit_refusals(turning).closed_epoch, 0);
    CHECK_EQ(kit_live(turning), 0);
    slab_allocator_free(turning);
}

/* ---- blocks that grow ---- */

typedef struct Grower {
    unsigned char* p;
    size_t size;
    unsigned moves;
    unsigned char seed;
} Grower;

static void grow_by(SlabAllocator* a, Grower* g, size_t step) {
    unsigned char* q = slab_realloc(a, g->p, g->size + step);
    REQUIRE(q != NULL);
    g->moves += q != g->p && g->p != NULL;
    g->p = q;
    memset(q + g->size, g->seed, step);
    g->size += step;
}

static bool is_whole(const Grower* g) {
    for (size_t i = 0; i < g->size; i++)
        if (g->p[i] != g->seed) return false;
    return true;
}

/* Some blocks grow in turn by the same step: none of them moves often, and all that was written is there. */
static void grow_together(SlabAllocator* a, unsigned blocks, size_t step, size_t most) {
    Grower g[4] = {{NULL, 0, 0, 0}};
    for (unsigned i = 0; i < blocks; i++) g[i].seed = (unsigned char)(17 + i);
    while (g[0].size + step <= most)
        for (unsigned i = 0; i < blocks; i++) grow_by(a, &g[i], step);
    for (unsigned i = 0; i < blocks; i++) {
        CHECK_LE(g[i].moves, 30);
        CHECK(is_whole(&g[i]));
        CHECK(slab_free_checked(a, g[i].p));
    }
}

static void blocks_that_grow_in_steps(void) {
    CHECK_NEEDS_OVERCOMMIT();
    static const struct {
        size_t step, most;
    } cases[] = {{8, KIT_MIB}, {100, KIT_MIB}, {4096, 8 * KIT_MIB}, {65536, 32 * KIT_MIB}, {300000, 32 * KIT_MIB}};
    SlabAllocator* a = kit_create();
    for (unsigned where = 0; where < 2; where++) {
        for (unsigned n = 0; n < sizeof cases / sizeof *cases; n++) {
            for (unsigned blocks = 1; blocks <= 4; blocks += blocks) {
                epoch_domain_t* d = where == 1 ? epoch_domain_begin(a, "grows") : NULL;
                grow_together(a, blocks, cases[n].step, cases[n].most);
                EpochReceipt r;
                if (d != NULL) {
                    CHECK(epoch_domain_end_ex(d, &r));
                    CHECK_EQ(r.objects_freed, r.objects_allocated);
                    CHECK_EQ(r.bytes_freed, r.bytes_allocated);
                }
            }
        }
    }
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

/* What a large block gains is in the account of its phase, and a budget is in the way of it. */
static void growth_is_accounted(void) {
    SlabAllocator* a = kit_create();
    CHECK(slab_label_set_budget(a, "grows", 0, 4 * KIT_MIB, NULL, NULL));
    epoch_domain_t* d = epoch_domain_begin(a, "grows");
    unsigned char* p = slab_malloc(a, 300000);
    REQUIRE(p != NULL);
    kit_fill(p, 300000, 3);
    SlabHandle h = slab_ptr_handle(a, p);
    CHECK_NE(h, 0);
    unsigned char* q = slab_realloc(a, p, 3 * KIT_MIB);
    CHECK(q == p);
    CHECK_EQ(slab_usable_size(a, p), 3 * KIT_MIB);
    CHECK(slab_handle_ptr(a, h) == p);
    CHECK_EQ(kit_global(a).live_bytes, 3 * KIT_MIB);
    errno = 0;
    CHECK_NULL(slab_realloc(a, p, 5 * KIT_MIB));
    CHECK_EQ(errno, EDQUOT);
    CHECK_EQ(slab_usable_size(a, p), 3 * KIT_MIB);
    CHECK(kit_intact(p, 300000, 3));
    CHECK(!slab_free_checked(a, kit_hide(p + 300000)));
    CHECK(!slab_free_checked(a, kit_hide(p + 2 * KIT_MIB)));
    EpochReceipt r;
    CHECK(epoch_domain_end_ex(d, &r));
    CHECK_EQ(r.objects_allocated, 1);
    CHECK_EQ(r.bytes_allocated, 3 * KIT_MIB);
    CHECK_EQ(r.bytes_released, 3 * KIT_MIB);
    slab_allocator_free(a);
}

/* A phase that has ended takes nothing more, and so a block of it does not grow there. */
static void growth_after_an_end(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_begin(a, "over");
    unsigned char* p = slab_malloc(a, 300000);
    REQUIRE(p != NULL);
    kit_fill(p, 300000, 5);
    CHECK(epoch_domain_drain(d, NULL));
    unsigned char* q = slab_realloc(a, p, KIT_MIB);
    REQUIRE(q != NULL);
    CHECK(q != p);
    CHECK(kit_intact(q, 300000, 5));
    CHECK(slab_free_checked(a, q));
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static void release_it(SlabAllocator* a, EpochId id, uint64_t bytes, bool hard, void* told) {
    (void)bytes, (void)hard;
    ++*(int*)told;
    CHECK(epoch_close_ex(a, id, EPOCH_RELEASE, NULL));
}

/* The function of a soft budget releases the phase of the block that grows: what realloc gives is a live block that is
 * nobody else's, or NULL and ESTALE. */
static void growth_that_ends_its_phase(void) {
    static const size_t sizes[][2] = {{2000, 40000}, {100000, 300000}, {300000, 900000}, {300000, 8 * KIT_MIB}};
    int told = 0;
    for (unsigned n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        if (sizes[n][1] < slab_page_size()) continue; /* it grows in its page */
        SlabAllocator* a = kit_create();
        EpochId id = epoch_current(a);
        void* p = slab_malloc_epoch(a, sizes[n][0], id);
        REQUIRE(p != NULL);
        CHECK(slab_epoch_set_budget(a, id, (size_t)kit_committed(a) + 1, 0, release_it, &told));
        errno = 0;
        void *q = slab_realloc(a, p, sizes[n][1]), *other = slab_malloc(a, sizes[n][1]);
        CHECK(q != NULL || errno == ESTALE);
        CHECK(q == NULL || slab_usable_size(a, q) >= sizes[n][1]);
        CHECK(other != NULL && other != q);
        CHECK_EQ(kit_live(a), q != NULL ? 2 : 1);
        if (q != NULL) CHECK(slab_free_checked(a, q));
        CHECK(slab_free_checked(a, other));
        slab_allocator_free(a);
    }
    CHECK_GT(told, 0);
}

/* Objects above the classes waste less than a quarter of the addresses, whatever their size. */
static void large_objects_lie_close(void) {
    SlabOptions o = kit_options();
    o.reserve_bytes = 64 * KIT_MIB;
    static const size_t sizes[] = {262145, 300000, 500000, 700000, 1100000, 2200000};
    for (unsigned n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        SlabAllocator* a = kit_create_with(&o);
        size_t count = 0;
        while (slab_malloc(a, sizes[n]) != NULL) count++;
        CHECK_GE(count * sizes[n], 64 * KIT_MIB / 4 * 3);
        slab_allocator_free(a);
    }
}

static const CheckCase cases[] = {
    CHECK_CASE(blocks_that_grow_in_steps),
    CHECK_CASE(growth_is_accounted),
    CHECK_CASE(growth_after_an_end),
    CHECK_CASE(growth_that_ends_its_phase),
    CHECK_CASE(large_objects_lie_close),
    CHECK_CASE(realloc_keeps_contents),
    CHECK_CASE(realloc_random_walk),
    CHECK_CASE(realloc_in_one_phase_after_the_other),
    CHECK_CASE(realloc_follows_the_epoch),
    CHECK_CASE(realloc_failure_keeps_the_block),
    CHECK_CASE(realloc_of_no_object_touches_nothing),
    CHECK_CASE(realloc_of_nothing),
    CHECK_CASE(aligned_small),
    CHECK_CASE(aligned_up_to_a_gib),
    CHECK_CASE(bad_alignments_are_refused),
    CHECK_CASE(aligned_blocks_resize),
    CHECK_CASE(usable_size_only_of_live_objects),
    CHECK_CASE(owns_tells_allocators_apart),
    CHECK_CASE(ptr_epoch_of_live_objects),
    CHECK_CASE(sized_free),
    CHECK_CASE(realloc_beside_advances),
};
CHECK_MAIN(cases)
