/*
 * forks.c - fork at any moment while other threads allocate, free, close phases and use domains.
 * The child has one thread and must be able to do all of that; what the other threads were in the
 * middle of is theirs to lose, at most one operation each.
 *
 * Objects that no thread touches after they were made ("kept", made by the workers) must be whole
 * in the child: their contents, their epoch, one free each, and an exact release.
 */
#include "kit/fixture.h"

enum { WORKERS = 4, KEPT = 200 };

typedef struct World {
    SlabAllocator* a;
    epoch_domain_t* kept_in; /* epoch of the kept objects */
    void* kept[WORKERS][KEPT];
    _Atomic(void*) table[256];
    _Atomic int ready, over;
} World;

typedef struct Worker {
    World* w;
    size_t index;
} Worker;

static void one_phase(SlabAllocator* a, uint64_t* rng) {
    epoch_domain_t* d = epoch_domain_begin(a, "phase");
    for (int i = 0; i < 20; i++) {
        SlabHandle h = 0;
        if (alloc_obj(a, (uint32_t)kit_rand_size(rng, 3000), &h) != NULL && i % 3 == 0) {
            (void)free_obj(a, h);
        }
    }
    epoch_domain_end(d);
}

static void* worker_main(void* arg) {
    Worker* me = arg;
    World* w = me->w;
    uint64_t rng = 31 + me->index;
    for (size_t i = 0; i < KEPT; i++) {
        w->kept[me->index][i] = slab_malloc_epoch(w->a, 100, w->kept_in->epoch_id);
        kit_fill(w->kept[me->index][i], 100, me->index * KEPT + i);
    }
    atomic_fetch_add(&w->ready, 1);
    for (size_t i = 0; !atomic_load(&w->over); i++) {
        void* p = slab_malloc(w->a, kit_rand_size(&rng, 2000));
        slab_free(w->a, atomic_exchange(&w->table[kit_rand(&rng) % 256], p));
        if (i % 32 == me->index) {
            one_phase(w->a, &rng);
        }
        if (i % 64 == 17 && me->index == 0) {
            EpochId old = epoch_current(w->a);
            epoch_advance(w->a);
            epoch_close(w->a, old);
        }
        if (i % 256 == 99) {
            slab_trim(w->a);
        }
    }
    return NULL;
}

static void start(World* w, Worker* workers, pthread_t* threads) {
    memset(w, 0, sizeof *w);
    w->a = kit_create();
    w->kept_in = epoch_domain_create_labeled(w->a, "kept");
    for (size_t i = 0; i < WORKERS; i++) {
        workers[i] = (Worker){w, i};
        threads[i] = kit_thread(worker_main, &workers[i]);
    }
    kit_await(&w->ready, WORKERS);
}

static void use_everything(SlabAllocator* a) {
    enum { COUNT = 500 };
    void* mine[COUNT];
    uint64_t rng = 5;
    epoch_advance(a);
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = 16 + (i * 37) % 1500;
        mine[i] = slab_malloc(a, size);
        REQUIRE(mine[i] != NULL);
        kit_fill(mine[i], size, i);
    }
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(kit_intact(mine[i], 16 + (i * 37) % 1500, i));
        CHECK(slab_free_checked(a, mine[i]));
        CHECK(!slab_free_checked(a, kit_hide(mine[i])));
    }
    for (int i = 0; i < 20; i++) {
        one_phase(a, &rng);
    }
    EpochReceipt r;
    EpochId id = epoch_current(a);
    CHECK(slab_malloc(a, 64) != NULL);
    CHECK(epoch_close_ex(a, id, EPOCH_RELEASE, &r));
    CHECK_EQ(r.objects_released, 1);
    CHECK_NULL(slab_malloc_epoch(a, 64, id));
    epoch_advance(a);
    CHECK(slab_malloc(a, 64) != NULL);
    slab_trim(a);
    slab_thread_flush(a);
    CHECK_GT(kit_global(a).reserved_bytes, 0);
}

static void stop(World* w, pthread_t* threads) {
    atomic_store(&w->over, 1);
    for (size_t i = 0; i < WORKERS; i++) {
        pthread_join(threads[i], NULL);
    }
    CHECK_EQ(kit_refused_frees(w->a), 0);
    use_everything(w->a); /* the parent is none the worse for its children */
    slab_allocator_free(w->a);
}

static void child_main(void* arg) {
    World* w = arg;
    EpochReceipt r;
    use_everything(w->a);
    for (size_t t = 0; t < WORKERS; t++) {
        for (size_t i = 0; i < KEPT; i++) {
            void* p = w->kept[t][i];
            CHECK(kit_intact(p, 100, t * KEPT + i));
            CHECK_EQ(kit_era_of(w->a, p), w->kept_in->epoch_era);
            if (i % 4 == 0) {
                CHECK(slab_free_checked(w->a, p));
                CHECK(!slab_free_checked(w->a, kit_hide(p)));
            }
        }
    }
    void* more = epoch_domain_malloc(w->kept_in, 100);
    CHECK(more != NULL);
    CHECK(epoch_close_ex(w->a, w->kept_in->epoch_id, EPOCH_RELEASE, &r));
    KIT_BALANCED(&r);
    CHECK_EQ(r.objects_allocated, WORKERS * KEPT + 1);
    CHECK_EQ(r.objects_freed, WORKERS * KEPT / 4);
    CHECK_EQ(r.objects_released, WORKERS * KEPT * 3 / 4 + 1);
    CHECK_EQ(r.slabs_deferred, 0);
    for (size_t i = 0; i < KEPT; i++) {
        CHECK(!slab_free_checked(w->a, w->kept[1][i]));
    }
    for (int i = 0; i < 16; i++) { /* whatever the ring still holds goes, too */
        CHECK(epoch_close_ex(w->a, (EpochId)i, EPOCH_RELEASE, NULL));
    }
    epoch_advance(w->a);
    use_everything(w->a);
}

static void child_at_any_moment(void) {
    static World w;
    Worker workers[WORKERS];
    pthread_t threads[WORKERS];
    if (CHECK_TSAN) {
        SKIP("the thread sanitizer does not follow a child of a threaded process");
    }
    start(&w, workers, threads);
    size_t rounds = check_count(200);
    for (size_t i = 0; i < rounds && check_failures() == 0; i++) {
        kit_sleep_us((unsigned)(i * 37) % 500);
        check_child(child_main, &w);
    }
    stop(&w, threads);
}

/* ---- children with threads, children of children, children that destroy ---- */

static void* thread_in_child(void* arg) {
    use_everything(((World*)arg)->a);
    return NULL;
}

static void threaded_child(void* arg) {
    World* w = arg;
    kit_on_thread(thread_in_child, w);
    kit_on_thread(thread_in_child, w);
    use_everything(w->a);
}

static void child_with_threads(void) {
    static World w;
    Worker workers[WORKERS];
    pthread_t threads[WORKERS];
    if (CHECK_TSAN) {
        SKIP("the thread sanitizer does not follow a child of a threaded process");
    }
    start(&w, workers, threads);
    size_t rounds = check_count(25);
    for (size_t i = 0; i < rounds && check_failures() == 0; i++) {
        check_child(threaded_child, &w);
    }
    stop(&w, threads);
}

static void grandchild(void* arg) { child_main(arg); }

static void child_that_forks(void* arg) {
    World* w = arg;
    CHECK(slab_malloc(w->a, 10) != NULL);
    check_child(grandchild, w);
    use_everything(w->a);
    SlabAllocator* fresh = kit_create();
    use_everything(fresh);
    slab_allocator_free(fresh);
    slab_allocator_free(w->a);
}

static void grandchildren_and_destroy(void) {
    static World w;
    Worker workers[WORKERS];
    pthread_t threads[WORKERS];
    if (CHECK_TSAN) {
        SKIP("the thread sanitizer does not follow a child of a threaded process");
    }
    start(&w, workers, threads);
    size_t rounds = check_count(25);
    for (size_t i = 0; i < rounds && check_failures() == 0; i++) {
        check_child(child_that_forks, &w);
    }
    stop(&w, threads);
}

/* ---- a domain that another thread enters and leaves, and one that it ends ---- */

typedef struct Doors {
    SlabAllocator* a;
    epoch_domain_t *shared, *theirs;
    uint64_t open_phases;
    _Atomic int ready, over;
} Doors;

static void* through_the_doors(void* arg) {
    Doors* w = arg;
    while (!atomic_load(&w->over)) {
        epoch_domain_enter(w->shared); /* the main thread is inside */
        slab_free(w->a, slab_malloc(w->a, 64));
        epoch_domain_exit(w->shared);
        epoch_domain_enter(w->theirs); /* nobody else is: it ends as we leave */
        CHECK(slab_malloc(w->a, 100) != NULL);
        epoch_domain_exit(w->theirs);
        atomic_store(&w->ready, 1);
    }
    return NULL;
}

static void child_at_the_doors(void* arg) {
    Doors* w = arg;
    CHECK_EQ(w->shared->refcount, 1);
    CHECK_EQ(w->theirs->refcount, 0);
    epoch_domain_enter(w->shared);
    epoch_domain_exit(w->shared);
    epoch_domain_enter(w->theirs);
    CHECK_EQ(kit_era_of(w->a, slab_malloc(w->a, 100)), w->theirs->epoch_era);
    epoch_domain_exit(w->theirs);
    epoch_domain_destroy(w->theirs);
    CHECK_EQ(w->shared->refcount, 1);
    epoch_domain_exit(w->shared);
    CHECK_EQ(w->shared->refcount, 0);
    epoch_domain_destroy(w->shared);
    slab_trim(w->a);
    SlabGlobalStats g = kit_global(w->a);
    CHECK_EQ(g.live_objects, 0); /* whatever the other thread was making or ending */
    CHECK_EQ(g.draining_phases, 0);
    CHECK_EQ(g.open_phases, w->open_phases);
    CHECK_EQ(kit_refusals(w->a).domain_order, 0);
    slab_allocator_free(w->a);
}

static void child_while_domains_end(void) {
    static Doors w;
    if (CHECK_TSAN) {
        SKIP("the thread sanitizer does not follow a child of a threaded process");
    }
    memset(&w, 0, sizeof w);
    w.a = kit_create();
    w.open_phases = kit_global(w.a).open_phases;
    w.theirs = epoch_domain_create_labeled(w.a, "theirs");
    w.shared = epoch_domain_begin(w.a, "shared");
    pthread_t t = kit_thread(through_the_doors, &w);
    kit_await(&w.ready, 1);
    size_t rounds = check_count(400);
    for (size_t i = 0; i < rounds && check_failures() == 0; i++) {
        check_child(child_at_the_doors, &w);
    }
    atomic_store(&w.over, 1);
    pthread_join(t, NULL);
    epoch_domain_destroy(w.theirs);
    epoch_domain_end(w.shared);
    CHECK_EQ(kit_live(w.a), 0);
    slab_allocator_free(w.a);
}

/* ---- threads that exit ---- */

static void* live_shortly(void* arg) {
    enum { COUNT = 100 };
    void* mine[COUNT];
    SlabAllocator* a = arg;
    for (size_t i = 0; i < COUNT; i++) {
        mine[i] = slab_malloc(a, 64 + i * 30);
    }
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(slab_free_checked(a, mine[i]));
    }
    return NULL;
}

static void* keep_exiting(void* arg) {
    Doors* w = arg;
    while (!atomic_load(&w->over)) {
        kit_on_thread(live_shortly, w->a);
        atomic_store(&w->ready, 1);
    }
    return NULL;
}

static void child_that_destroys(void* arg) {
    SlabAllocator* a = ((Doors*)arg)->a;
    CHECK(slab_free_checked(a, slab_malloc(a, 100)));
    slab_allocator_free(a); /* waits for threads that are leaving: none of them is here */
}

static void child_while_threads_exit(void) {
    static Doors w;
    if (CHECK_TSAN) {
        SKIP("the thread sanitizer does not follow a child of a threaded process");
    }
    memset(&w, 0, sizeof w);
    w.a = kit_create();
    pthread_t t = kit_thread(keep_exiting, &w);
    kit_await(&w.ready, 1);
    size_t rounds = check_count(400);
    for (size_t i = 0; i < rounds && check_failures() == 0; i++) {
        check_child(child_that_destroys, &w);
    }
    atomic_store(&w.over, 1);
    pthread_join(t, NULL);
    CHECK_EQ(kit_live(w.a), 0);
    slab_allocator_free(w.a);
}

/* A cleanup forks while its thread exits: in the child that thread is the one that is left, and goes on exiting. */
static pthread_t leaver;

static void* destroy_after_it(void* a) {
    pthread_join(leaver, NULL);
    CHECK(slab_free_checked(a, slab_malloc(a, 100)));
    slab_allocator_free(a); /* waits for threads that are leaving: this one has left */
    _exit(check_failures() != 0);
}

static void fork_in_cleanup(void* a) {
    int status = -1;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(300);
        leaver = pthread_self();
        (void)kit_thread(destroy_after_it, a);
        return;
    }
    CHECK(waitpid(pid, &status, 0) == pid);
    CHECK_EQ(status, 0);
}

static void* leave_with_a_fork(void* a) {
    epoch_domain_t* d = epoch_domain_begin(a, "left open");
    CHECK(slab_malloc(a, 100) != NULL);
    CHECK(slab_epoch_on_end(a, d->epoch_id, fork_in_cleanup, a));
    return NULL;
}

static void child_of_a_thread_that_exits(void) {
    if (CHECK_TSAN) {
        SKIP("the thread sanitizer does not follow a child of a threaded process");
    }
    SlabAllocator* a = kit_create();
    size_t rounds = check_count(20);
    for (size_t i = 0; i < rounds && check_failures() == 0; i++) {
        kit_on_thread(leave_with_a_fork, a);
    }
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

/* A misuse function forks to report a call on a destroyed domain: the child returns from it, and destroys the allocator. */
static pid_t reporter;

static void fork_to_report(SlabAllocator* a, SlabMisuse what, const void* where, void* ctx) {
    (void)a, (void)what, (void)where, (void)ctx;
    fflush(NULL);
    reporter = fork();
    if (reporter == 0) alarm(300);
}

static void* wait_for_it(void* over) {
    while (!atomic_load((_Atomic int*)over)) kit_sleep_us(1000);
    return NULL;
}

static void child_of_a_report(void) {
    static _Atomic int over;
    if (CHECK_TSAN) {
        SKIP("the thread sanitizer does not follow a child of a threaded process");
    }
    SlabOptions o = kit_options();
    o.misuse_fn = fork_to_report;
    SlabAllocator* a = kit_create_with(&o);
    pthread_t other = kit_thread(wait_for_it, &over);
    size_t rounds = check_count(20);
    for (size_t i = 0; i < rounds && check_failures() == 0; i++) {
        epoch_domain_t* d = epoch_domain_create_labeled(a, "gone");
        CHECK(epoch_domain_destroy(d));
        reporter = -1;
        CHECK(!epoch_domain_enter(d));
        CHECK_EQ(errno, ESTALE);
        if (reporter == 0) {
            CHECK(slab_free_checked(a, slab_malloc(a, 100)));
            slab_allocator_free(a); /* waits for threads that hold it: none does here */
            _exit(check_failures() != 0);
        }
        int status = -1;
        CHECK(waitpid(reporter, &status, 0) == reporter);
        CHECK_EQ(status, 0);
    }
    atomic_store(&over, 1);
    pthread_join(other, NULL);
    slab_allocator_free(a);
}

/* ---- a quiet parent: the child's copy is exact ---- */

typedef struct Quiet {
    SlabAllocator* a;
    void* p[1000];
    SlabHandle h[1000];
} Quiet;

static void quiet_child(void* arg) {
    Quiet* q = arg;
    CHECK_EQ(kit_live(q->a), 2000);
    for (size_t i = 0; i < 1000; i++) {
        CHECK(kit_intact(q->p[i], 128, i));
        CHECK(slab_free_checked(q->a, q->p[i]));
        CHECK(free_obj(q->a, q->h[i]));
        CHECK(!free_obj(q->a, q->h[i]));
    }
    CHECK_EQ(kit_live(q->a), 0);
    epoch_close(q->a, 0);
    CHECK_EQ(kit_committed(q->a), 0);
}

static void exact_copy_of_a_quiet_parent(void) {
    static Quiet q;
    q.a = kit_create_cold();
    for (size_t i = 0; i < 1000; i++) {
        q.p[i] = slab_malloc(q.a, 128);
        REQUIRE(q.p[i] != NULL);
        REQUIRE(alloc_obj(q.a, 300, &q.h[i]) != NULL);
        kit_fill(q.p[i], 128, i);
    }
    check_child(quiet_child, &q);
    for (size_t i = 0; i < 1000; i++) { /* the child's frees are its own */
        CHECK(kit_intact(q.p[i], 128, i));
        CHECK(slab_free_checked(q.a, q.p[i]));
        CHECK(free_obj(q.a, q.h[i]));
    }
    CHECK_EQ(kit_live(q.a), 0);
    slab_allocator_free(q.a);
}

static const CheckCase cases[] = {
    CHECK_CASE(child_at_any_moment),
    CHECK_CASE(child_with_threads),
    CHECK_CASE(grandchildren_and_destroy),
    CHECK_CASE(child_while_domains_end),
    CHECK_CASE(child_while_threads_exit),
    CHECK_CASE(child_of_a_thread_that_exits),
    CHECK_CASE(child_of_a_report),
    CHECK_CASE(exact_copy_of_a_quiet_parent),
};
CHECK_MAIN(cases)
