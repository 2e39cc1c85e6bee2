/*
 * thread_exit.c - what runs while a thread exits, and uses the allocator: cleanups of phases that end with
 * the thread, and destructors of thread-specific data that come after the library's own. Whatever they take, each
 * cleanup runs once, and nothing of the thread stays behind.
 */
#include "kit/fixture.h"

enum { TEAM = 4 };

static SlabAllocator *first, *second;
static _Atomic size_t ran;

static void use_one(SlabAllocator* a) {
    void* p = slab_malloc(a, 100);
    CHECK(p != NULL);
    CHECK(slab_free_checked(a, p));
}

static void use_a_domain(SlabAllocator* a) {
    SlabHandle h = 0;
    epoch_domain_t* d = epoch_domain_begin(a, "inner");
    if (CHECK(d != NULL)) {
        CHECK_EQ(kit_era_of(a, slab_malloc(a, 5000)), d->epoch_era);
        CHECK(alloc_obj(a, 3000, &h) != NULL);
        CHECK(free_obj(a, h));
        epoch_domain_end(d);
    }
}

/* Little or much: what a call takes, a later one may give back by chance. */
static void use(size_t turn) {
    if (turn % 4 != 1) {
        use_one(first);
    }
    if (turn % 4 != 0) {
        use_one(second);
    }
    if (turn % 4 == 3) {
        use_a_domain(second);
    }
}

static void cleanup(void* own) {
    size_t turn = atomic_fetch_add(&ran, 1);
    CHECK(own == NULL || slab_free_checked(second, own));
    use(turn);
}

/* The fields of a pair whose binding two threads believe to be theirs do not survive this. */
static void* fill_and_look(void* arg) {
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    size_t rounds = check_count(3000);
    for (size_t i = 0; i < rounds; i++) {
        void* p = slab_malloc(first, 64);
        if (!CHECK(p != NULL)) {
            break;
        }
        kit_fill(p, 64, seed + i);
        CHECK(kit_intact(p, 64, seed + i));
        CHECK(slab_free_checked(first, p));
    }
    return NULL;
}

static void open_both(const SlabOptions* o) {
    first = kit_create_with(o);
    second = kit_create_with(o);
    atomic_store(&ran, 0);
}

/* Nothing lives, nothing drains, and new threads get along. */
static void close_both(void) {
    pthread_t threads[TEAM];
    SlabAllocator* each[] = {first, second};
    for (size_t t = 0; t < TEAM; t++) {
        threads[t] = kit_thread(fill_and_look, (void*)(uintptr_t)(t + 1));
    }
    for (size_t t = 0; t < TEAM; t++) {
        pthread_join(threads[t], NULL);
    }
    for (size_t i = 0; i < 2; i++) {
        slab_trim(each[i]);
        SlabGlobalStats g = kit_global(each[i]);
        CHECK_EQ(g.live_objects, 0);
        CHECK_EQ(g.draining_phases, 0);
        CHECK_EQ(g.committed_bytes, 0);
        CHECK_EQ(kit_refused_frees(each[i]), 0);
        CHECK_EQ(kit_refusals(each[i]).out_of_memory, 0);
        slab_allocator_free(each[i]);
    }
}

/* ---- cleanups ---- */

static void* leave_a_domain_open(void* arg) {
    epoch_domain_t* d = epoch_domain_begin(first, "left open");
    if (!CHECK(d != NULL)) {
        return NULL;
    }
    CHECK(slab_malloc(first, 50) != NULL);
    CHECK(slab_epoch_on_end(first, d->epoch_id, cleanup, slab_malloc(second, 100)));
    return arg;
}

static void a_domain_left_open(void) {
    size_t threads = check_count(200);
    open_both(NULL);
    for (size_t i = 0; i < threads; i++) {
        kit_on_thread(leave_a_domain_open, NULL);
        CHECK_EQ(atomic_load(&ran), i + 1);
    }
    close_both();
}

static pthread_barrier_t meet;

static void* sleep_over_the_end(void* arg) {
    void* p = slab_malloc(first, 50);
    CHECK(slab_epoch_on_end(first, epoch_current(first), cleanup, slab_malloc(second, 100)));
    CHECK(slab_free_checked(first, p));
    pthread_barrier_wait(&meet);
    pthread_barrier_wait(&meet);
    return arg;
}

/* The ring moves past the only epoch the thread has a heap in: as it exits it lets go of the last of it. */
static void an_epoch_the_ring_has_left(void) {
    SlabOptions o = kit_options();
    size_t threads = check_count(200);
    o.ring_size = 2;
    open_both(&o);
    pthread_barrier_init(&meet, NULL, 2);
    for (size_t i = 0; i < threads; i++) {
        pthread_t t = kit_thread(sleep_over_the_end, NULL);
        pthread_barrier_wait(&meet);
        epoch_advance(first);
        epoch_advance(first);
        pthread_barrier_wait(&meet);
        pthread_join(t, NULL);
        CHECK_EQ(atomic_load(&ran), i + 1); /* nor does what the cleanup before has used keep it waiting */
    }
    pthread_barrier_destroy(&meet);
    close_both();
}

/* ---- destructors after the library's own ---- */

static pthread_key_t late_key;

/* A domain, ended or left open. What it takes is given back after it: the library's destructor comes once more. */
static void late(void* arg) {
    size_t turn = (size_t)(uintptr_t)arg;
    atomic_fetch_add(&ran, 1);
    use(turn / 2);
    epoch_domain_t* d = epoch_domain_begin(first, "late");
    if (CHECK(d != NULL)) {
        CHECK_EQ(kit_era_of(first, slab_malloc(first, 100)), d->epoch_era);
        if (turn % 2 == 0) {
            epoch_domain_end(d);
        }
    }
}

static void* thread_with_late_destructor(void* arg) {
    void* p = slab_malloc(first, 64); /* the library's destructor has its turn, too */
    CHECK(p != NULL);
    CHECK(slab_free_checked(first, p));
    CHECK_EQ(pthread_setspecific(late_key, arg), 0);
    return NULL;
}

/* More threads than so small an allocator knows at a time. */
static void late_destructors_with_domains(void) {
    SlabOptions o = kit_options();
    size_t threads = (size_t)(600 * (check_scale() > 1 ? check_scale() : 1));
    o.reserve_bytes = 16 * KIT_MIB;
    open_both(&o);
    CHECK_EQ(pthread_key_create(&late_key, late), 0); /* younger than the library's */
    for (size_t i = 0; i < threads && check_failures() == 0; i++) {
        kit_on_thread(thread_with_late_destructor, (void*)(uintptr_t)(i + 1));
        CHECK_EQ(kit_live(first), 0);
    }
    CHECK_EQ(atomic_load(&ran), threads);
    pthread_key_delete(late_key);
    close_both();
}

static void* sleep_then_run_late(void* arg) {
    thread_with_late_destructor(arg);
    pthread_barrier_wait(&meet);
    pthread_barrier_wait(&meet);
    return NULL;
}

/* The first call of a late destructor sweeps an epoch the ring has left, whose cleanup calls in turn. */
static void late_destructors_with_cleanups(void) {
    SlabOptions o = kit_options();
    size_t threads = check_count(200);
    o.ring_size = 2;
    open_both(&o);
    CHECK_EQ(pthread_key_create(&late_key, late), 0);
    pthread_barrier_init(&meet, NULL, 2);
    for (size_t i = 0; i < threads; i++) {
        pthread_t t = kit_thread(sleep_then_run_late, (void*)(uintptr_t)(i + 1));
        pthread_barrier_wait(&meet);
        void* p = slab_malloc(first, 100);
        CHECK(slab_epoch_on_end(first, epoch_current(first), cleanup, slab_malloc(second, 100)));
        CHECK(slab_free_checked(first, p));
        epoch_advance(first);
        epoch_advance(first);
        pthread_barrier_wait(&meet);
        pthread_join(t, NULL);
    }
    slab_trim(first);
    CHECK_EQ(atomic_load(&ran), 2 * threads);
    pthread_barrier_destroy(&meet);
    pthread_key_delete(late_key);
    close_both();
}

/* Past the library's destructor each call makes a binding and gives it back, whose page a trim may take at once. */
static _Atomic bool calling;
static void call_late(void* calls) {
    for (size_t i = 0; i < (size_t)(uintptr_t)calls; i++) {
        char* p = slab_malloc(first, 100);
        if (!CHECK(p != NULL)) break;
        memset(p, 7, 100);
        CHECK(slab_free_checked(first, p));
    }
    atomic_store(&calling, false);
}

static void late_calls_beside_trims(void) {
    SlabOptions o = kit_options();
    o.guard_sampling = 16;
    open_both(&o);
    CHECK_EQ(pthread_key_create(&late_key, call_late), 0);
    for (int i = 0; i < 3; i++) {
        atomic_store(&calling, true);
        pthread_t t = kit_thread(thread_with_late_destructor, (void*)(uintptr_t)check_count(3000));
        while (atomic_load(&calling)) slab_trim(first);
        pthread_join(t, NULL);
    }
    CHECK_EQ(kit_live(first), 0);
    pthread_key_delete(late_key);
    close_both();
}

/* ---- the last destructors, after which none of the library's comes ---- */

enum { ROUNDS = 4 }; /* PTHREAD_DESTRUCTOR_ITERATIONS */
static epoch_domain_t *ours, *passed;
static void (*last_call)(void);

static void in_the_last_round(void* left) {
    if ((uintptr_t)left > 1) CHECK_EQ(pthread_setspecific(late_key, (void*)((uintptr_t)left - 1)), 0);
    else last_call();
}
static void* exits(void* arg) {
    use_one(first);
    CHECK_EQ(pthread_setspecific(late_key, (void*)(uintptr_t)ROUNDS), 0);
    return arg;
}

static void attach_and_detach(void) { CHECK(epoch_domain_attach(ours) && epoch_domain_detach(ours)); }
static void reset_ours(void) { CHECK(epoch_domain_reset(ours)); }
static void borrow(void) { CHECK(epoch_domain_wrap(first, epoch_current(first), false) != NULL); }
static void fail_to_switch(void) {
    epoch_domain_t *inside = epoch_domain_begin(first, "stays"), *from = passed;
    CHECK(!epoch_domain_switch(passed, &from));
    CHECK_EQ(from, passed);
    CHECK_EQ(epoch_domain_current(), inside);
    CHECK_EQ(kit_era_of(first, slab_malloc(first, 100)), inside->epoch_era);
    CHECK(epoch_domain_end(inside));
}

/* Threads in number beyond what so small an allocator knows at a time: each gives back what its last call has taken. */
static void last_calls(void (*call)(void)) {
    size_t threads = (size_t)(400 * (check_scale() > 1 ? check_scale() : 1));
    last_call = call;
    for (size_t i = 0; i < threads && check_failures() == 0; i++) kit_on_thread(exits, NULL);
}
static void calls_of_the_last_destructors(void) {
    SlabOptions o = kit_options();
    o.reserve_bytes = 16 * KIT_MIB;
    open_both(&o);
    CHECK_EQ(pthread_key_create(&late_key, in_the_last_round), 0);
    ours = epoch_domain_begin(first, "ours");
    CHECK(epoch_domain_detach(ours));
    last_calls(attach_and_detach);
    CHECK(epoch_domain_attach(ours) && epoch_domain_end(ours));

    last_calls(borrow);
    ours = epoch_domain_create(first);
    last_calls(reset_ours);
    CHECK(epoch_domain_destroy(ours));

    passed = epoch_domain_wrap(first, epoch_current(first), false);
    for (int i = 0; i < 20; i++) epoch_advance(first);
    last_calls(fail_to_switch);
    pthread_key_delete(late_key);
    close_both();
}

static const CheckCase cases[] = {
    CHECK_CASE(a_domain_left_open),
    CHECK_CASE(an_epoch_the_ring_has_left),
    CHECK_CASE(late_destructors_with_domains),
    CHECK_CASE(late_destructors_with_cleanups),
    CHECK_CASE(late_calls_beside_trims),
    CHECK_CASE(calls_of_the_last_destructors),
};
CHECK_MAIN(cases)
