/*
 * domain_threads.c - one domain and several threads: all inside at once, handed from thread to
 * thread, ended elsewhere, left open by a thread that exits, and seen by a fork child.
 */
#include "kit/fixture.h"

enum { TEAM = 4, EACH = 400 };

typedef struct Visit {
    SlabAllocator* a;
    epoch_domain_t* d;
    pthread_barrier_t* meet;
    void* p;
    int stay; /* scopes left open at thread exit */
} Visit;

static void* visit_main(void* arg) {
    Visit* v = arg;
    epoch_domain_enter(v->d);
    if (v->meet != NULL) {
        pthread_barrier_wait(v->meet);
        CHECK_EQ(v->d->refcount, TEAM);
        pthread_barrier_wait(v->meet);
    }
    for (int i = 0; i < EACH; i++) {
        v->p = slab_malloc(v->a, 16 + (size_t)i);
        CHECK_EQ(kit_era_of(v->a, v->p), v->d->epoch_era);
    }
    CHECK_EQ(epoch_domain_current(), v->d);
    if (v->meet != NULL) {
        pthread_barrier_wait(v->meet);
    }
    epoch_domain_exit(v->d);
    CHECK_NULL(epoch_domain_current());
    return NULL;
}

static void several_inside(void) {
    for (int own = 0; own < 2; own++) {
        SlabAllocator* a = kit_create_cold();
        epoch_domain_t* d = own ? epoch_domain_create(a) : epoch_domain_wrap(a, 4, true);
        pthread_barrier_t meet;
        pthread_t threads[TEAM];
        Visit v = {a, d, &meet, NULL, 0};
        Visit each[TEAM];
        pthread_barrier_init(&meet, NULL, TEAM);
        for (int t = 0; t < TEAM; t++) {
            each[t] = v;
            threads[t] = kit_thread(visit_main, &each[t]);
        }
        for (int t = 0; t < TEAM; t++) {
            pthread_join(threads[t], NULL);
        }
        EpochReceipt r;
        CHECK_EQ(d->refcount, 0);
        CHECK(epoch_domain_receipt(d, &r));
        KIT_BALANCED(&r);
        CHECK_EQ(r.objects_allocated, TEAM * EACH);
        CHECK_EQ(own ? r.objects_released : r.objects_escaped, TEAM * EACH);
        CHECK_EQ(kit_live(a), own ? 0 : TEAM * EACH);
        CHECK(own || epoch_state(a, 4) == EPOCH_CLOSING);
        epoch_domain_destroy(d);
        CHECK(epoch_close_ex(a, 4, EPOCH_RELEASE, NULL));
        CHECK_EQ(kit_committed(a), 0);
        pthread_barrier_destroy(&meet);
        slab_allocator_free(a);
    }
}

static void* come_and_go(void* arg) {
    Visit* v = arg;
    size_t rounds = check_count(4000);
    for (size_t i = 0; i < rounds; i++) {
        epoch_domain_enter(v->d);
        void* p = slab_malloc(v->a, 64);
        CHECK(p != NULL);
        *(size_t*)p = i; /* the scope we are in keeps it alive */
        CHECK_EQ(*(size_t*)p, i);
        epoch_domain_exit(v->d);
    }
    return NULL;
}

/* The last exit of one thread races with the first enter of another: whoever is inside allocates. */
static void coming_and_going(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create_labeled(a, "door");
    pthread_t threads[TEAM];
    Visit v = {a, d, NULL, NULL, 0};
    for (int t = 0; t < TEAM; t++) {
        threads[t] = kit_thread(come_and_go, &v);
    }
    for (int t = 0; t < TEAM; t++) {
        pthread_join(threads[t], NULL);
    }
    CHECK_EQ(d->refcount, 0);
    CHECK_EQ(kit_live(a), 0);
    SlabRefusals r = kit_refusals(a);
    CHECK_EQ(r.closed_epoch, 0);
    CHECK_EQ(r.domain_order, 0);
    CHECK_EQ(r.domain_stale, 0);
    epoch_domain_destroy(d);
    slab_allocator_free(a);
}

static void* attach_and_end(void* arg) {
    Visit* v = arg;
    CHECK(epoch_domain_attach(v->d));
    CHECK(!epoch_domain_attach(v->d));
    CHECK_EQ(epoch_domain_current(), v->d);
    CHECK_EQ(v->d->refcount, 1);
    v->p = slab_malloc(v->a, 64);
    CHECK_EQ(kit_era_of(v->a, v->p), v->d->epoch_era);
    epoch_domain_end(v->d);
    CHECK_NULL(epoch_domain_current());
    return NULL;
}

static void* attach_and_pass_on(void* arg) {
    Visit* v = arg;
    CHECK(epoch_domain_attach(v->d));
    v->p = slab_malloc(v->a, 64);
    CHECK_EQ(kit_era_of(v->a, v->p), v->d->epoch_era);
    CHECK(epoch_domain_detach(v->d));
    return NULL;
}

static void handed_from_thread_to_thread(void) {
    SlabAllocator* a = kit_create_cold();
    for (int round = 0; round < 50; round++) {
        epoch_domain_t* d = epoch_domain_begin(a, "relay");
        void* p = slab_malloc(a, 64);
        Visit v = {a, d, NULL, NULL, 0};
        CHECK(epoch_domain_detach(d));
        for (int i = 0; i < 5; i++) {
            kit_on_thread(attach_and_pass_on, &v);
        }
        CHECK_EQ(kit_live(a), 6);
        CHECK_EQ(slab_usable_size(a, p), 64);
        kit_on_thread(attach_and_end, &v);
        CHECK_EQ(kit_live(a), 0);
        CHECK(!slab_free_checked(a, kit_hide(p)));
    }
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

static void* exit_of_strangers_scope(void* arg) {
    Visit* v = arg;
    epoch_domain_exit(v->d);
    epoch_domain_destroy(v->d);
    CHECK(!epoch_domain_detach(v->d));
    CHECK(!epoch_domain_reset(v->d));
    return NULL;
}

static void a_strangers_scope_is_left_alone(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    void* p = slab_malloc(a, 64);
    Visit v = {a, d, NULL, NULL, 0};
    kit_on_thread(exit_of_strangers_scope, &v);
    CHECK_GE(kit_refusals(a).domain_order, 2);
    CHECK_EQ(d->refcount, 1);
    CHECK_EQ(slab_usable_size(a, p), 64);
    CHECK_EQ(epoch_domain_current(), d);
    epoch_domain_end(d);
    slab_allocator_free(a);
}

/* Made here, entered and left there, destroyed here. */
static void ends_on_another_thread(void) {
    SlabAllocator* a = kit_create_cold();
    for (int round = 0; round < 100; round++) {
        epoch_domain_t* d = epoch_domain_create(a);
        Visit v = {a, d, NULL, NULL, 0};
        kit_on_thread(visit_main, &v);
        CHECK_EQ(kit_live(a), 0);
        CHECK(!slab_free_checked(a, v.p));
        epoch_domain_destroy(d);
    }
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

static void* leave_open(void* arg) {
    Visit* v = arg;
    epoch_domain_enter(v->d);
    epoch_domain_t* inner = epoch_domain_begin(v->a, "inner");
    CHECK(inner != NULL);
    for (int i = 0; i < v->stay; i++) {
        epoch_domain_enter(v->d);
    }
    v->p = slab_malloc(v->a, 64);
    return NULL; /* with everything open */
}

static void thread_exit_leaves_its_scopes(void) {
    SlabAllocator* a = kit_create_cold();
    for (int round = 0; round < 100; round++) {
        epoch_domain_t* d = epoch_domain_create(a);
        Visit v = {a, d, NULL, NULL, round % 5};
        kit_on_thread(leave_open, &v);
        CHECK_EQ(d->refcount, 0);
        CHECK_EQ(kit_live(a), 0);
        CHECK(!slab_free_checked(a, v.p));
        EpochReceipt r;
        CHECK(epoch_domain_receipt(d, &r));
        KIT_BALANCED(&r);
        CHECK_EQ(kit_refusals(a).domain_order, 0);
        epoch_domain_destroy(d);
    }
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

typedef struct Fork {
    SlabAllocator* a;
    epoch_domain_t *mine, *theirs;
    void* p;
    _Atomic int step;
} Fork;

static void* sit_inside(void* arg) {
    Fork* f = arg;
    epoch_domain_enter(f->theirs);
    CHECK(slab_malloc(f->a, 100) != NULL);
    atomic_store(&f->step, 1);
    while (atomic_load(&f->step) != 2) {
        kit_sleep_us(200);
    }
    epoch_domain_exit(f->theirs);
    return NULL;
}

static void child_of_fork(void* arg) {
    Fork* f = arg;
    CHECK_EQ(epoch_domain_current(), f->mine);
    CHECK_EQ(f->mine->refcount, 1);
    CHECK_EQ(f->theirs->refcount, 0);
    CHECK_EQ(slab_usable_size(f->a, f->p), 64);
    void* p = slab_malloc(f->a, 64);
    CHECK_EQ(kit_era_of(f->a, p), f->mine->epoch_era);
    epoch_domain_end(f->mine);
    epoch_domain_enter(f->theirs);
    CHECK(slab_malloc(f->a, 64) != NULL);
    epoch_domain_exit(f->theirs);
    epoch_domain_destroy(f->theirs);
    CHECK_EQ(kit_live(f->a), 0);
    CHECK_EQ(kit_refusals(f->a).domain_order, 0);
    slab_allocator_free(f->a);
}

static void a_child_drops_the_other_threads_scopes(void) {
    for (int round = 0; round < 10; round++) {
        Fork f;
        f.a = kit_create();
        f.mine = epoch_domain_begin(f.a, "mine");
        f.theirs = epoch_domain_create_labeled(f.a, "theirs");
        f.p = slab_malloc(f.a, 64);
        atomic_store(&f.step, 0);
        pthread_t t = kit_thread(sit_inside, &f);
        kit_await(&f.step, 1);
        CHECK_EQ(f.theirs->refcount, 1);
        check_child(child_of_fork, &f);
        CHECK_EQ(f.theirs->refcount, 1);
        atomic_store(&f.step, 2);
        pthread_join(t, NULL);
        epoch_domain_destroy(f.theirs);
        epoch_domain_end(f.mine);
        CHECK_EQ(kit_live(f.a), 0);
        slab_allocator_free(f.a);
    }
}

static const CheckCase cases[] = {
    CHECK_CASE(several_inside),
    CHECK_CASE(coming_and_going),
    CHECK_CASE(handed_from_thread_to_thread),
    CHECK_CASE(a_strangers_scope_is_left_alone),
    CHECK_CASE(ends_on_another_thread),
    CHECK_CASE(thread_exit_leaves_its_scopes),
    CHECK_CASE(a_child_drops_the_other_threads_scopes),
};
CHECK_MAIN(cases)
