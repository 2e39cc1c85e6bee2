/*
 * test_barrier.c - membarriers that fail after the registration has succeeded.
 *
 * A sweep without one cannot see who is inside of a bracket that is not fenced: it takes nothing of such an owner, who lets go on
 * its own, or leaves it to a later sweep, and is fenced from its next slow path on. Objects of 1024 bytes, 16 to a slab.
 */
#define KIT_RING_BY_CLASS
#include "fake_os.h"
#include "kit/one.h"

#include "state/bracket.h"
#include "heap/thread_heaps.h"
#include "os/lock.h"

enum { SIZE = 1024, SLOTS = 16, SLAB = SLOTS * SIZE, OBJECTS = 2 * SLOTS };

static KitWorker worker;

static void open_with(uint8_t shared) {
    SlabOptions o = kit_options();
    o.warm_bytes = UINT64_MAX;
    o.shared = shared;
    tsi_store_seq(&tsi_barrier_failed, false); /* of the test before */
    kit_worker_start(&worker);
    kit_open_with(o);
    fake_os_clear();
}
static void open_owned(void) { open_with(0); }
static void open_shared(void) { open_with(1); }
static void close_allocator(void) {
    fake_os_heal();
    kit_worker_stop(&worker);
    kit_close();
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
    t->b = kit_binding(a);
    t->h = tsi_heap_cached(t->b, tsi_phases_resolve(&tsi_arena(a)->phases, t->id));
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
        for (unsigned n = 0; n < SIZE; n++) REQUIRE_EQ(t->p[i][n], 0x5a);
}

/* The close takes nothing that it could not prove untouched, and says so; the owner's next call gives it back. */
static void an_owner_who_was_not_seen_lets_go_itself(void) {
    Theirs t = {.id = 1, .n = OBJECTS};
    EpochReceipt r;
    kit_worker_run(&worker, take, &t);
    fake_os_fail(FAKE_BARRIER, 1, true);
    REQUIRE(epoch_close_ex(a, 1, EPOCH_RELEASE, &r));
    REQUIRE_EQ(r.slabs_returned, 0);
    REQUIRE_EQ(r.slabs_deferred, 2);
    REQUIRE_EQ(r.bytes_deferred, 2 * SLAB);
    REQUIRE_EQ(kit_committed_now(a), 2 * SLAB);
    all_are_whole(&t);
    kit_check(a);
    Theirs next = {.id = 1, .n = 1}; /* refused, and on its way it hands over */
    kit_worker_run(&worker, take, &next);
    REQUIRE_NULL(next.p[0]);
    REQUIRE_EQ(kit_committed_now(a), 0);
    r = kit_end(a, 1, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_released, OBJECTS);
    REQUIRE_EQ(r.slabs_deferred, 0);
}

/* Also one who stands in the middle of a call. */
static void an_owner_inside_keeps_what_it_has(void) {
    Theirs t = {.id = 1, .n = OBJECTS};
    EpochReceipt r;
    kit_worker_run(&worker, take, &t);
    kit_worker_run(&worker, enter, &t);
    REQUIRE(t.live);
    fake_os_fail(FAKE_BARRIER, 1, false);
    REQUIRE(epoch_close_ex(a, 1, EPOCH_RELEASE, &r));
    REQUIRE_EQ(r.slabs_returned, 0);
    REQUIRE(epoch_close_ex(a, 1, EPOCH_RELEASE, &r)); /* with a membarrier: it is seen inside */
    REQUIRE_EQ(r.slabs_returned, 0);
    REQUIRE_EQ(r.slabs_deferred, 2);
    all_are_whole(&t);
    kit_worker_run(&worker, leave, &t);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* What one sweep could not take the next one can, if its membarrier succeeds. */
static void a_later_sweep_takes_what_was_left(void) {
    Theirs t = {.id = 1, .n = OBJECTS};
    kit_worker_run(&worker, take, &t);
    fake_os_fail(FAKE_BARRIER, 1, false);
    EpochReceipt r = kit_end(a, 1, EPOCH_RELEASE);
    REQUIRE_EQ(r.slabs_deferred, 2);
    slab_trim(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
    r = kit_end(a, 1, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_released, OBJECTS);
}

/* From its next slow path on an owner is fenced, in all of its epochs: sweeps need no membarrier for it any more. */
static void an_owner_goes_over_to_fences(void) {
    Theirs t = {.id = 1, .n = OBJECTS}, u = {.id = 2, .n = OBJECTS}, v = {.id = 3, .n = OBJECTS};
    kit_worker_run(&worker, take, &t);
    kit_worker_run(&worker, take, &u);
    REQUIRE(!tsi_binding_is_fenced(t.b));
    fake_os_fail(FAKE_BARRIER, 1, true);
    EpochReceipt r = kit_end(a, 1, EPOCH_RELEASE);
    REQUIRE_EQ(r.slabs_deferred, 2);
    uint64_t before = kit_committed_now(a);
    kit_worker_run(&worker, take, &v);
    REQUIRE_EQ(kit_committed_now(a), before); /* it has let go of the first as it took the third */
    REQUIRE(tsi_binding_is_fenced(t.b));
    r = kit_end(a, 2, EPOCH_RELEASE); /* an epoch of before, whose slabs it did not touch since */
    REQUIRE_EQ(r.slabs_deferred, 0);
    REQUIRE_EQ(r.objects_released, OBJECTS);
    r = kit_end(a, 3, EPOCH_DRAIN);
    REQUIRE_EQ(r.slabs_deferred, 0);
    REQUIRE_EQ(r.objects_escaped, OBJECTS);
    all_are_whole(&v);
    kit_worker_run(&worker, enter, &v); /* and is seen where it is inside */
    REQUIRE(!v.live);
    for (unsigned i = 0; i < OBJECTS; i++) REQUIRE(slab_free_checked(a, v.p[i]));
    slab_trim(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
    void* mine = slab_malloc_epoch(a, SIZE, 4); /* who comes later is fenced from the first call on */
    REQUIRE(mine != NULL && tsi_binding_is_fenced(kit_binding(a)));
}

static void a_fenced_owner_inside_is_seen(void) {
    Theirs t = {.id = 1, .n = OBJECTS};
    EpochReceipt r;
    tsi_store_seq(&tsi_barrier_failed, true);
    kit_worker_run(&worker, take, &t);
    REQUIRE(tsi_binding_is_fenced(t.b));
    kit_worker_run(&worker, enter, &t);
    REQUIRE(t.live);
    fake_os_fail(FAKE_BARRIER, 1, true);
    REQUIRE(epoch_close_ex(a, 1, EPOCH_RELEASE, &r));
    REQUIRE_EQ(r.slabs_deferred, 2);
    all_are_whole(&t);
    kit_worker_run(&worker, leave, &t);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* A trim that fails takes nothing, and the owner goes on. */
static void a_trim_that_fails_takes_nothing(void) {
    Theirs t = {.id = 1, .n = OBJECTS};
    kit_worker_run(&worker, take, &t);
    for (unsigned i = 0; i < OBJECTS; i++) REQUIRE(slab_free_checked(a, t.p[i]));
    fake_os_fail(FAKE_BARRIER, 1, false);
    slab_trim(a);
    REQUIRE_EQ(kit_committed_now(a), 2 * SLAB);
    kit_check(a);
    kit_worker_run(&worker, take, &t);
    all_are_whole(&t);
    (void)kit_end(a, 1, EPOCH_RELEASE);
    slab_trim(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* The handle of another thread's object waits for its owner to be fenced. */
static void a_handle_of_anothers_object(void) {
    Theirs t = {.id = 1, .n = OBJECTS}, more = {.id = 2, .n = 1};
    kit_worker_run(&worker, take, &t);
    fake_os_fail(FAKE_BARRIER, 1, true);
    REQUIRE_EQ(slab_ptr_handle(a, t.p[0]), 0);
    kit_worker_run(&worker, take, &more);
    SlabHandle h = slab_ptr_handle(a, t.p[0]);
    REQUIRE(h != 0);
    REQUIRE_EQ(slab_handle_ptr(a, h), t.p[0]);
    REQUIRE(free_obj(a, h));
    REQUIRE(!free_obj(a, h));
}

/* ---- shared mode ---- */

static void hold(void* lock) { REQUIRE(tsi_lock_try(lock)); }

static void let_go(void* lock) { tsi_lock_give(lock); }

/* Who holds the banks needs no membarrier. One that cannot be had is as another owner without one. */
static void a_bank_that_is_held_is_left_to_its_holder(void) {
    Theirs t = {.id = 1, .n = OBJECTS};
    TsiBank* bank = &tsi_arena(a)->bank[0];
    REQUIRE(slab_malloc_epoch(a, SIZE, 1) != NULL); /* two users */
    kit_worker_run(&worker, take, &t);
    fake_os_fail(FAKE_BARRIER, 1, true);
    kit_worker_run(&worker, hold, &bank->lock);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, 1, EPOCH_RELEASE, &r));
    REQUIRE_EQ(r.slabs_returned, 0);
    REQUIRE(r.slabs_deferred > 0);
    all_are_whole(&t);
    kit_worker_run(&worker, let_go, &bank->lock);
    r = kit_end(a, 1, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_released, OBJECTS + 1);
    REQUIRE_EQ(r.slabs_deferred, 0);
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
static void a_waiter_who_was_missed(void) {
    pthread_t t;
    tsi_lock_take(&lock);
    fake_os_fail(FAKE_BARRIER, 1, true);
    REQUIRE_EQ(pthread_create(&t, NULL, wait_for_it, NULL), 0);
    while (tsi_load_relaxed(&lock.waiters) == 0) (void)usleep(100);
    (void)usleep(20000);              /* most likely it sleeps now; the test holds either way */
    tsi_store_release(&lock.word, 0); /* given by somebody who has seen no waiter */
    REQUIRE_EQ(pthread_join(t, NULL), 0);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define OWNED(name) CHECK_CASE_WITH(name, open_owned, close_allocator)
        OWNED(an_owner_who_was_not_seen_lets_go_itself),
        OWNED(an_owner_inside_keeps_what_it_has),
        OWNED(a_later_sweep_takes_what_was_left),
        OWNED(an_owner_goes_over_to_fences),
        OWNED(a_fenced_owner_inside_is_seen),
        OWNED(a_trim_that_fails_takes_nothing),
        OWNED(a_handle_of_anothers_object),
        CHECK_CASE_WITH(a_bank_that_is_held_is_left_to_its_holder, open_shared, close_allocator),
        OWNED(a_waiter_who_was_missed),
    };
    fake_os_install(0, false, false);
    if (!tsi_os.has_membarrier) {
        puts("skipped: the kernel has no membarrier that could fail");
        return 77;
    }
    (void)slab_page_size(); /* the process's own tables */
    alarm(300);             /* a waiter that is never woken ends the program */
    return CHECK_RUN(argc, argv, tests);
}
