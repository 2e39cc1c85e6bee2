/*
 * test_barrier.c - membarriers that fail after the registration has succeeded.
 *
 * A sweep without one cannot see who is inside of a bracket that is not fenced: it takes nothing of such an owner, who lets go on
 * its own, or leaves it to a later sweep, and is fenced from its next slow path on. Objects of 1024 bytes, 16 to a slab.
 */
#define UNIT_RING_BY_CLASS
#include "fake_os.h"
#include "unit.h"

#include "heap/bracket.h"
#include "os/lock.h"

enum { SIZE = 1024, SLOTS = 16, SLAB = SLOTS * SIZE, OBJECTS = 2 * SLOTS };

static SlabAllocator* a;
static UnitWorker worker;

static int open_with(uint8_t shared) {
    SlabOptions o = unit_options();
    o.warm_bytes = UINT64_MAX;
    o.shared = shared;
    tsi_store_seq(&tsi_barrier_failed, false); /* of the test before */
    unit_worker_start(&worker);
    a = slab_allocator_create_with(&o);
    fake_os_clear();
    return a != NULL ? 0 : -1;
}
static int open_owned(void** state) { return (void)state, open_with(0); }
static int open_shared(void** state) { return (void)state, open_with(1); }
static int close_allocator(void** state) {
    (void)state;
    fake_os_heal();
    unit_worker_stop(&worker);
    unit_check(a);
    slab_allocator_free(a);
    return 0;
}

typedef struct Theirs {
    EpochId id;
    uint8_t* p[OBJECTS];
    unsigned n;
    TsiBinding* b;
    TsiHeap* h;
    bool live;
} Theirs;

static void take(void* arg) {
    Theirs* t = arg;
    for (unsigned i = 0; i < t->n; i++) {
        t->p[i] = slab_malloc_epoch(a, SIZE, t->id);
        if (t->p[i] != NULL) memset(t->p[i], 0x5a, SIZE);
    }
    t->b = unit_binding(a);
    t->h = t->b->by_inc[tsi_ref_index(tsi_phases_resolve(&tsi_arena(a)->phases, t->id)) % TSI_HEAP_CACHE];
}
static void enter(void* arg) {
    Theirs* t = arg;
    t->live = tsi_bracket_enter(t->b, t->h, tsi_busy_all(t->h));
}
static void leave(void* arg) {
    Theirs* t = arg;
    tsi_bracket_leave(t->b, t->h);
}

static void all_are_whole(const Theirs* t) {
    for (unsigned i = 0; i < t->n; i++)
        for (unsigned n = 0; n < SIZE; n++) assert_int_equal(t->p[i][n], 0x5a);
}

/* The close takes nothing that it could not prove untouched, and says so; the owner's next call gives it back. */
static void an_owner_who_was_not_seen_lets_go_itself(void** state) {
    (void)state;
    Theirs t = {.id = 1, .n = OBJECTS};
    EpochReceipt r;
    unit_worker_run(&worker, take, &t);
    fake_os_fail(FAKE_BARRIER, 1, true);
    assert_true(epoch_close_ex(a, 1, EPOCH_RELEASE, &r));
    assert_int_equal(r.slabs_returned, 0);
    assert_int_equal(r.slabs_deferred, 2);
    assert_int_equal(r.bytes_deferred, 2 * SLAB);
    assert_int_equal(unit_committed(a), 2 * SLAB);
    all_are_whole(&t);
    unit_check(a);
    Theirs next = {.id = 1, .n = 1}; /* refused, and on its way it hands over */
    unit_worker_run(&worker, take, &next);
    assert_null(next.p[0]);
    assert_int_equal(unit_committed(a), 0);
    r = unit_end(a, 1, EPOCH_RELEASE);
    assert_int_equal(r.objects_released, OBJECTS);
    assert_int_equal(r.slabs_deferred, 0);
}

/* Also one who stands in the middle of a call. */
static void an_owner_inside_keeps_what_it_has(void** state) {
    (void)state;
    Theirs t = {.id = 1, .n = OBJECTS};
    EpochReceipt r;
    unit_worker_run(&worker, take, &t);
    unit_worker_run(&worker, enter, &t);
    assert_true(t.live);
    fake_os_fail(FAKE_BARRIER, 1, false);
    assert_true(epoch_close_ex(a, 1, EPOCH_RELEASE, &r));
    assert_int_equal(r.slabs_returned, 0);
    assert_true(epoch_close_ex(a, 1, EPOCH_RELEASE, &r)); /* with a membarrier: it is seen inside */
    assert_int_equal(r.slabs_returned, 0);
    assert_int_equal(r.slabs_deferred, 2);
    all_are_whole(&t);
    unit_worker_run(&worker, leave, &t);
    assert_int_equal(unit_committed(a), 0);
}

/* What one sweep could not take the next one can, if its membarrier succeeds. */
static void a_later_sweep_takes_what_was_left(void** state) {
    (void)state;
    Theirs t = {.id = 1, .n = OBJECTS};
    unit_worker_run(&worker, take, &t);
    fake_os_fail(FAKE_BARRIER, 1, false);
    EpochReceipt r = unit_end(a, 1, EPOCH_RELEASE);
    assert_int_equal(r.slabs_deferred, 2);
    slab_trim(a);
    assert_int_equal(unit_committed(a), 0);
    r = unit_end(a, 1, EPOCH_RELEASE);
    assert_int_equal(r.objects_released, OBJECTS);
}

/* From its next slow path on an owner is fenced, in all of its epochs: sweeps need no membarrier for it any more. */
static void an_owner_goes_over_to_fences(void** state) {
    (void)state;
    Theirs t = {.id = 1, .n = OBJECTS}, u = {.id = 2, .n = OBJECTS}, v = {.id = 3, .n = OBJECTS};
    unit_worker_run(&worker, take, &t);
    unit_worker_run(&worker, take, &u);
    assert_false(tsi_binding_is_fenced(t.b));
    fake_os_fail(FAKE_BARRIER, 1, true);
    EpochReceipt r = unit_end(a, 1, EPOCH_RELEASE);
    assert_int_equal(r.slabs_deferred, 2);
    uint64_t before = unit_committed(a);
    unit_worker_run(&worker, take, &v);
    assert_int_equal(unit_committed(a), before); /* it has let go of the first as it took the third */
    assert_true(tsi_binding_is_fenced(t.b));
    r = unit_end(a, 2, EPOCH_RELEASE); /* an epoch of before, whose slabs it did not touch since */
    assert_int_equal(r.slabs_deferred, 0);
    assert_int_equal(r.objects_released, OBJECTS);
    r = unit_end(a, 3, EPOCH_DRAIN);
    assert_int_equal(r.slabs_deferred, 0);
    assert_int_equal(r.objects_escaped, OBJECTS);
    all_are_whole(&v);
    unit_worker_run(&worker, enter, &v); /* and is seen where it is inside */
    assert_false(v.live);
    for (unsigned i = 0; i < OBJECTS; i++) assert_true(slab_free_checked(a, v.p[i]));
    slab_trim(a);
    assert_int_equal(unit_committed(a), 0);
    void* mine = slab_malloc_epoch(a, SIZE, 4); /* who comes later is fenced from the first call on */
    assert_true(mine != NULL && tsi_binding_is_fenced(unit_binding(a)));
}

static void a_fenced_owner_inside_is_seen(void** state) {
    (void)state;
    Theirs t = {.id = 1, .n = OBJECTS};
    EpochReceipt r;
    tsi_store_seq(&tsi_barrier_failed, true);
    unit_worker_run(&worker, take, &t);
    assert_true(tsi_binding_is_fenced(t.b));
    unit_worker_run(&worker, enter, &t);
    assert_true(t.live);
    fake_os_fail(FAKE_BARRIER, 1, true);
    assert_true(epoch_close_ex(a, 1, EPOCH_RELEASE, &r));
    assert_int_equal(r.slabs_deferred, 2);
    all_are_whole(&t);
    unit_worker_run(&worker, leave, &t);
    assert_int_equal(unit_committed(a), 0);
}

/* A trim that fails takes nothing, and the owner goes on. */
static void a_trim_that_fails_takes_nothing(void** state) {
    (void)state;
    Theirs t = {.id = 1, .n = OBJECTS};
    unit_worker_run(&worker, take, &t);
    for (unsigned i = 0; i < OBJECTS; i++) assert_true(slab_free_checked(a, t.p[i]));
    fake_os_fail(FAKE_BARRIER, 1, false);
    slab_trim(a);
    assert_int_equal(unit_committed(a), 2 * SLAB);
    unit_check(a);
    unit_worker_run(&worker, take, &t);
    all_are_whole(&t);
    (void)unit_end(a, 1, EPOCH_RELEASE);
    slab_trim(a);
    assert_int_equal(unit_committed(a), 0);
}

/* The handle of another thread's object waits for its owner to be fenced. */
static void a_handle_of_anothers_object(void** state) {
    (void)state;
    Theirs t = {.id = 1, .n = OBJECTS}, more = {.id = 2, .n = 1};
    unit_worker_run(&worker, take, &t);
    fake_os_fail(FAKE_BARRIER, 1, true);
    assert_int_equal(slab_ptr_handle(a, t.p[0]), 0);
    unit_worker_run(&worker, take, &more);
    SlabHandle h = slab_ptr_handle(a, t.p[0]);
    assert_true(h != 0);
    assert_ptr_equal(slab_handle_ptr(a, h), t.p[0]);
    assert_true(free_obj(a, h));
    assert_false(free_obj(a, h));
}

/* ---- shared mode ---- */

/* Who holds the lanes needs no membarrier. One that cannot be had is as another owner without one. */
static void a_lane_that_is_held_is_left_to_its_holder(void** state) {
    (void)state;
    Theirs t = {.id = 1, .n = OBJECTS};
    TsiLane* lane = &tsi_arena(a)->lane[0];
    assert_non_null(slab_malloc_epoch(a, SIZE, 1)); /* two users */
    unit_worker_run(&worker, take, &t);
    fake_os_fail(FAKE_BARRIER, 1, true);
    assert_true(tsi_lock_try(&lane->lock));
    EpochReceipt r;
    assert_true(epoch_close_ex(a, 1, EPOCH_RELEASE, &r));
    assert_int_equal(r.slabs_returned, 0);
    assert_true(r.slabs_deferred > 0);
    all_are_whole(&t);
    tsi_lock_give(&lane->lock);
    r = unit_end(a, 1, EPOCH_RELEASE);
    assert_int_equal(r.objects_released, OBJECTS + 1);
    assert_int_equal(r.slabs_deferred, 0);
}

/* ---- locks ---- */

static TsiLock lock;

static void* wait_for_it(void* arg) {
    (void)arg;
    tsi_lock_take(&lock);
    tsi_lock_give(&lock);
    return NULL;
}

/* A waiter whose membarrier has failed may have been missed by who gave the lock: it looks by itself. */
static void a_waiter_who_was_missed(void** state) {
    (void)state;
    pthread_t t;
    tsi_lock_take(&lock);
    fake_os_fail(FAKE_BARRIER, 1, true);
    assert_int_equal(pthread_create(&t, NULL, wait_for_it, NULL), 0);
    while (tsi_load_relaxed(&lock.waiters) == 0) (void)usleep(100);
    (void)usleep(20000); /* most likely it sleeps now; the test holds either way */
    tsi_store_release(&lock.word, 0); /* given by somebody who has seen no waiter */
    assert_int_equal(pthread_join(t, NULL), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define OWNED(name) cmocka_unit_test_setup_teardown(name, open_owned, close_allocator)
        OWNED(an_owner_who_was_not_seen_lets_go_itself),
        OWNED(an_owner_inside_keeps_what_it_has),
        OWNED(a_later_sweep_takes_what_was_left),
        OWNED(an_owner_goes_over_to_fences),
        OWNED(a_fenced_owner_inside_is_seen),
        OWNED(a_trim_that_fails_takes_nothing),
        OWNED(a_handle_of_anothers_object),
        cmocka_unit_test_setup_teardown(a_lane_that_is_held_is_left_to_its_holder, open_shared, close_allocator),
        OWNED(a_waiter_who_was_missed),
    };
    fake_os_install(0, false, false);
    if (!tsi_os.has_membarrier) {
        puts("skipped: the kernel has no membarrier that could fail");
        return 77;
    }
    (void)slab_page_size(); /* the process's own tables */
    alarm(60); /* a waiter that is never woken ends the program */
    return cmocka_run_group_tests_name("barrier", tests, NULL, NULL);
}
