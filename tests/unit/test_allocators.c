/*
 * test_allocators.c - a thread knows the allocator that it used last by its address: one that has gone is nobody's, one
 * that comes in its place is another, and several are used in turn.
 */
#include "kit/inside.h"

#include "threads/registry.h"

#include <limits.h>
#include <pthread.h>

static SlabAllocator storage; /* of one allocator after the other */

typedef struct Use {
    SlabAllocator* a;
    void* p;
    bool freed;
} Use;

static void take_one(void* arg) {
    Use* u = arg;
    u->p = slab_malloc(u->a, 100);
}

static void free_one(void* arg) {
    Use* u = arg;
    u->freed = slab_free_checked(u->a, u->p);
}

static bool is_at_hand(const SlabAllocator* a) { return tsi_load_relaxed(&tsi_tls.record->owner) == a; }

static void an_allocator_in_the_place_of_another(void) {
    enum { LAPS = 4 };
    KitWorker w;
    Use here = {.a = &storage}, there = {.a = &storage};
    kit_worker_start(&w);
    for (unsigned lap = 0; lap < LAPS; lap++) {
        allocator_init(&storage);
        take_one(&here);
        kit_worker_run(&w, take_one, &there);
        REQUIRE(here.p != NULL && there.p != NULL && here.p != there.p);
        REQUIRE_EQ(kit_live(&storage), 2); /* by this one's own records */
        REQUIRE(is_at_hand(&storage));
        if (lap % 2 == 0) kit_worker_run(&w, free_one, &there);
        REQUIRE(lap % 2 != 0 || there.freed);
        kit_check(&storage);
        allocator_destroy(&storage);
        REQUIRE(!is_at_hand(&storage));
        kit_worker_run(&w, free_one, &there); /* of none */
        REQUIRE(!there.freed);
        kit_worker_run(&w, take_one, &there);
        REQUIRE_NULL(there.p);
    }
    kit_worker_stop(&w);
}

static void no_allocator_is_nobodys(void) {
    KitWorker w;
    Use none = {.a = NULL, .p = &none};
    kit_worker_start(&w); /* a thread that has used none */
    kit_worker_run(&w, take_one, &none);
    REQUIRE_NULL(none.p);
    none.p = &none;
    kit_worker_run(&w, free_one, &none);
    REQUIRE(!none.freed);
    kit_worker_stop(&w);
}

static pthread_key_t late_key; /* made after the library's: its destructors run behind */
static SlabAllocator* late_allocator;

static void late_use(void* arg) {
    unsigned* rounds = arg;
    if (++*rounds < PTHREAD_DESTRUCTOR_ITERATIONS) (void)pthread_setspecific(late_key, rounds);
    else slab_free(late_allocator, slab_malloc(late_allocator, 100)); /* the thread's first: nobody is told that it leaves */
}

static void* late_thread(void* arg) {
    (void)pthread_setspecific(late_key, arg);
    return NULL;
}

/* Threads that have gone without a word, and their storage with them. */
static void the_last_destructor_is_the_first_use(void) {
    unsigned rounds = 0;
    pthread_attr_t large;
    pthread_t t;
    late_allocator = kit_create_cold();
    REQUIRE_EQ(pthread_key_create(&late_key, late_use), 0);
    REQUIRE_EQ(pthread_attr_init(&large), 0);
    REQUIRE_EQ(pthread_attr_setstacksize(&large, (size_t)64 << 20), 0); /* not kept by libc for another thread */
    REQUIRE_EQ(pthread_create(&t, &large, late_thread, &rounds), 0);
    REQUIRE_EQ(pthread_join(t, NULL), 0);
    REQUIRE_EQ(rounds, PTHREAD_DESTRUCTOR_ITERATIONS);
    slab_allocator_free(late_allocator);
    (void)pthread_attr_destroy(&large);
    (void)pthread_key_delete(late_key);
}

/* Each turn is the fast path's: nothing of it is counted as slow. */
static void two_in_turn(void) {
    enum { TURNS = 1000 };
    SlabAllocator* a[2] = {kit_create_cold(), kit_create_cold()};
    PerfCounters before[2], after[2];
    SlabHandle h;
    for (unsigned k = 0; k < 2; k++) slab_free(a[k], slab_malloc(a[k], 1000));
    for (unsigned k = 0; k < 2; k++) get_perf_counters(a[k], 11, &before[k]);
    for (unsigned n = 0; n < TURNS; n++) {
        for (unsigned k = 0; k < 2; k++) {
            void* p = n % 3 != 0 ? slab_malloc(a[k], 1000) : slab_malloc_epoch(a[k], 1000, epoch_current(a[k]));
            REQUIRE(p != NULL);
            REQUIRE(is_at_hand(a[k]));
            REQUIRE(!slab_free_checked(a[1 - k], p)); /* the other's, which is at hand afterwards */
            REQUIRE(slab_free_checked(a[k], p));
        }
    }
    for (unsigned k = 0; k < 2; k++) {
        get_perf_counters(a[k], 11, &after[k]);
        REQUIRE(after[k].slow_path_hits - before[k].slow_path_hits <= TURNS / 8); /* refills: a line has 16 slots */
        REQUIRE(alloc_obj(a[k], 1000, &h) != NULL);
        REQUIRE(!free_obj(a[1 - k], h));
        REQUIRE(free_obj(a[k], h));
        kit_check(a[k]);
    }
    for (unsigned k = 0; k < 2; k++) slab_allocator_free(a[k]);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(an_allocator_in_the_place_of_another),
        CHECK_CASE(no_allocator_is_nobodys),
        CHECK_CASE(the_last_destructor_is_the_first_use),
        CHECK_CASE(two_in_turn),
    };
    return CHECK_RUN(argc, argv, tests);
}
