/*
 * test_ownerless.c - heaps that nobody owns: what frees empty there goes back by itself, what has room is taken over,
 * and what has none is not.
 */
#include "heap/heap.h"
#include "heap/ownerless.h"
#include "state/liveness.h"
#include "kit/fixture.h"
#include "kit/inside.h"

enum { SIZE = 512, OTHER = 3000, N = 600, MANY = 10 * N };

static SlabAllocator* a;
static void *left[N], *all[MANY];

static void* leave_all(void* n) {
    for (size_t i = 0; i < (size_t)(uintptr_t)n; i++) {
        left[i] = slab_malloc(a, SIZE);
        REQUIRE(left[i] != NULL);
    }
    return NULL;
}

static TsiHeap* heap_of(const void* p) { return tsi_heap(tsi_arena(a), tsi_tag_index(kit_tag(a, p))); }
static unsigned state_of(const TsiHeap* h) { return tsi_heap_state(tsi_load_seq(&h->word)); }

static void open_cold(void) {
    SlabOptions o = kit_options();
    o.warm_bytes = UINT64_MAX;
    o.bump = TSI_BUMP_OFF;
    o.shared = 0;
    a = kit_create_with(&o);
}

static void close_it(void) {
    kit_check(a);
    slab_allocator_free(a);
}

/* An eighth of the heap at a time, and all of it with the last object; then the heap is freed. */
static void the_last_free_returns_a_slab(void) {
    open_cold();
    kit_on_thread(leave_all, (void*)(uintptr_t)N);
    TsiHeap* h = heap_of(left[0]);
    uint64_t full = kit_committed_now(a);
    REQUIRE_EQ(state_of(h), TSI_HEAP_DETACHED);
    for (size_t i = 0; i < N; i++) {
        REQUIRE(slab_free_checked(a, left[i]));
        REQUIRE_LE(tsi_load_relaxed(&h->emptied), full / 8 + 1);
        if (i == N / 2) {
            REQUIRE_LE(kit_committed_now(a), full * 3 / 4);
            kit_check(a);
        }
    }
    REQUIRE_EQ(kit_committed_now(a), 0);
    REQUIRE_EQ(state_of(h), TSI_HEAP_FREE);
    close_it();
}

/* The thread that exits has freed all: its heap goes with it. */
static void* leave_nothing(void* arg) {
    (void)leave_all((void*)(uintptr_t)N);
    for (size_t i = 0; i < N; i++) {
        REQUIRE(slab_free_checked(a, left[i]));
    }
    return arg;
}
static void an_exit_returns_what_is_empty(void) {
    open_cold();
    kit_on_thread(leave_nothing, NULL);
    REQUIRE_EQ(kit_committed_now(a), 0);
    REQUIRE_EQ(tsi_load_relaxed(&tsi_inc(&tsi_arena(a)->phases, 1)->heap_count), 0);
    close_it();
}

/* A heap without room for the class stays as it is; a free there makes room, and it is found. */
static void only_room_is_taken_over(void) {
    open_cold();
    void* mine = slab_malloc(a, OTHER);
    REQUIRE(mine != NULL);
    kit_on_thread(leave_all, (void*)(uintptr_t)N);
    TsiHeap* h = heap_of(left[0]);
    for (size_t i = 0; i < 100; i++) {
        REQUIRE(slab_malloc(a, OTHER) != NULL);
    }
    REQUIRE_EQ(state_of(h), TSI_HEAP_DETACHED);
    REQUIRE_NE(tsi_load_relaxed(&h->slab_count), 0);
    for (size_t i = 0; i < 64; i++) {
        REQUIRE(slab_free_checked(a, left[i]));
    }
    REQUIRE_NE(tsi_load_relaxed(&h->roomy) & tsi_class_bit(tsi_class_of(SIZE)), 0);
    for (size_t i = 0; i < N && state_of(h) == TSI_HEAP_DETACHED; i++) {
        REQUIRE(slab_malloc(a, SIZE) != NULL);
    }
    REQUIRE_EQ(state_of(h), TSI_HEAP_LIVE);
    REQUIRE_NE(heap_of(mine), h);
    close_it();
}

/* The same of a heap that was full as its thread left, after others have looked there in vain. */
static void* leave_full(void* unused) {
    (void)unused;
    size_t n = 0;
    TsiSpace* s = &tsi_arena(a)->space;
    do {
        REQUIRE(n < MANY);
        all[n] = slab_malloc(a, SIZE);
        REQUIRE(all[n] != NULL);
    } while (++n < N || tsi_slab_has_room(s, tsi_class_of(SIZE), kit_place(a, all[n - 1]).slab_id));
    return NULL;
}
static void room_in_a_full_heap_is_found(void) {
    open_cold();
    REQUIRE(slab_malloc(a, OTHER) != NULL);
    kit_on_thread(leave_full, NULL);
    TsiHeap* h = heap_of(all[0]);
    REQUIRE(slab_malloc(a, SIZE) != NULL);
    REQUIRE_EQ(state_of(h), TSI_HEAP_DETACHED);
    for (size_t i = 0; i < 64; i++) REQUIRE(slab_free_checked(a, all[i]));
    for (size_t i = 0; i < N && state_of(h) == TSI_HEAP_DETACHED; i++) REQUIRE(slab_malloc(a, SIZE) != NULL);
    REQUIRE_EQ(state_of(h), TSI_HEAP_LIVE);
    close_it();
}

/* Where looks give back what is empty, a thread that only frees takes its heap again after a trim; else nobody does. */
static void free_after_a_trim(uint64_t decay_ms, uint32_t purge_policy, unsigned state) {
    SlabOptions o = kit_options();
    o.bump = TSI_BUMP_OFF;
    o.shared = 0;
    o.decay_ms = decay_ms;
    o.purge_policy = purge_policy;
    a = kit_create_with(&o);
    (void)leave_all((void*)(uintptr_t)N);
    TsiHeap* h = heap_of(left[0]);
    REQUIRE_EQ(state_of(h), TSI_HEAP_LIVE);
    slab_trim(a);
    REQUIRE_EQ(state_of(h), TSI_HEAP_DETACHED);
    for (size_t i = 0; i < 64; i++) {
        REQUIRE_EQ(state_of(h), TSI_HEAP_DETACHED);
        slab_free(a, left[i]);
    }
    REQUIRE_EQ(state_of(h), state);
    for (size_t i = 64; i < N; i++) slab_free(a, left[i]);
    REQUIRE_EQ(kit_live(a), 0);
    close_it();
}
static void who_only_frees_has_its_heap_again(void) {
    free_after_a_trim(3600000, SLAB_PURGE_DONTNEED, TSI_HEAP_LIVE);
    free_after_a_trim(0, SLAB_PURGE_DONTNEED, TSI_HEAP_DETACHED);
    free_after_a_trim(3600000, SLAB_PURGE_NEVER, TSI_HEAP_DETACHED); /* nothing goes back, so there are no looks */
}

/* The first thread's binding has the number 0, as any other has one of its own: no word of a heap that is nobody's
 * looks like its. */
static void nobodys_is_not_the_first_threads(void) {
    open_cold();
    (void)leave_all((void*)(uintptr_t)N);
    REQUIRE_EQ(tsi_heap_binding(tsi_load_relaxed(&heap_of(left[0])->word)), 0);
    TsiHeap* h = heap_of(left[0]);
    slab_trim(a);
    REQUIRE_EQ(state_of(h), TSI_HEAP_DETACHED);
    REQUIRE_EQ(tsi_heap_binding(tsi_load_relaxed(&h->word)), TSI_BINDINGS_MAX);
    close_it();
}

static uint64_t still_ns, purged;
static uint64_t standing_clock(void) { return still_ns; }
static int (*real_purge)(void*, size_t, TsiPurgeHow);
static int counting_purge(void* p, size_t bytes, TsiPurgeHow how) {
    purged += bytes;
    return real_purge(p, bytes, how);
}

/* What goes from nobody's heaps and is missed at once raises the budget, as what an end gives back does: a request that one thread
 * fills and another frees finds its pages again. */
static void what_is_missed_again_is_kept(void) {
    SlabOptions o = kit_options();
    o.warm_bytes = 0; /* learned */
    o.bump = TSI_BUMP_OFF;
    o.shared = 0;
    a = kit_create_with(&o);
    uint64_t (*coarse_ns)(void) = tsi_os.coarse_ns;
    still_ns = coarse_ns();
    tsi_os.coarse_ns = standing_clock;
    real_purge = tsi_os.purge;
    tsi_os.purge = counting_purge;
    for (unsigned round = 0; round < 12; round++) {
        if (round == 6) purged = 0;
        for (unsigned n = 0; n < MANY / N; n++) {
            kit_on_thread(leave_all, (void*)(uintptr_t)N);
            memcpy(&all[n * N], left, sizeof left);
        }
        for (size_t i = 0; i < MANY; i++) REQUIRE(slab_free_checked(a, all[i]));
    }
    REQUIRE_LE(purged, (uint64_t)MANY * SIZE * 6 / 8); /* of what the last six rounds have emptied */
    tsi_os.purge = real_purge;
    tsi_os.coarse_ns = coarse_ns;
    close_it();
}

static const CheckCase cases[] = {
    CHECK_CASE(the_last_free_returns_a_slab),
    CHECK_CASE(an_exit_returns_what_is_empty),
    CHECK_CASE(only_room_is_taken_over),
    CHECK_CASE(room_in_a_full_heap_is_found),
    CHECK_CASE(who_only_frees_has_its_heap_again),
    CHECK_CASE(nobodys_is_not_the_first_threads),
    CHECK_CASE(what_is_missed_again_is_kept),
};
CHECK_MAIN(cases)
