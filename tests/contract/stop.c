/*
 * stop.c - threads that stand still. A thread is stopped by a signal at an arbitrary point, also
 * inside an allocator call, and stays there while others close its epoch, trim, free and read the
 * statistics: nobody waits for it, and what it held is returned as it leaves its call. A whole
 * process is stopped and continued, and goes on as if nothing had happened.
 */
#include "kit/fixture.h"

#include <signal.h>
#include <sys/syscall.h>

enum { STAND_SIGNAL = SIGUSR1, MOST = 2000 };

static _Atomic int standing, may_go;

static void stand_still(int sig) {
    (void)sig;
    int saved = errno;
    atomic_store(&standing, 1);
    while (atomic_load(&may_go) == 0) {
        struct timespec t = {0, 20000};
        nanosleep(&t, NULL);
    }
    errno = saved;
}

static void install(void) {
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = stand_still;
    sigaction(STAND_SIGNAL, &sa, NULL);
}

typedef struct Actor {
    SlabAllocator* a;
    EpochId id;
    uint64_t rng;
    _Atomic int phase;  /* 0 wait, 1 work, 2 has seen the refusal, 3 end */
    _Atomic int closed; /* its pointers may be somebody else's by now: no more frees */
    size_t count;
    void* kept[MOST];
} Actor;

static void act(Actor* x) {
    x->count = 0;
    for (;;) {
        uint64_t r = kit_rand(&x->rng);
        if (x->count > 0 && (x->count == MOST || r % 3 == 0) && !atomic_load(&x->closed)) {
            slab_free(x->a, x->kept[--x->count]);
            continue;
        }
        if (x->count == MOST) { /* and closed */
            CHECK_NULL(slab_malloc_epoch(x->a, 64, x->id));
            return;
        }
        void* p = slab_malloc_epoch(x->a, r % 32 == 0 ? 20000 : 1 + r % 1000, x->id);
        if (p == NULL) {
            return;
        }
        x->kept[x->count++] = p;
    }
}

static void* actor_main(void* arg) {
    Actor* x = arg;
    for (;;) {
        int phase = atomic_load(&x->phase);
        if (phase == 3) {
            return NULL;
        }
        if (phase == 1) {
            act(x);
            atomic_store(&x->phase, 2);
        }
        kit_sleep_us(20);
    }
}

static void stop_actor(pthread_t t) {
    atomic_store(&standing, 0);
    atomic_store(&may_go, 0);
    pthread_kill(t, STAND_SIGNAL);
    kit_await(&standing, 1);
}

/* What others do while the actor stands still: everything but use its half-made list. */
static void use_allocator(SlabAllocator* a) {
    void* p = slab_malloc(a, 300);
    CHECK(p != NULL);
    slab_trim(a);
    SlabGlobalStats g = kit_global(a);
    CHECK_LE(g.live_bytes, g.reserved_bytes); /* never negative */
    CHECK(slab_free_checked(a, p));
    epoch_domain_t* d = epoch_domain_begin(a, "beside");
    CHECK(slab_malloc(a, 5000) != NULL);
    epoch_domain_end(d);
}

typedef struct Bystander {
    SlabAllocator* a;
    EpochId id;
    EpochCloseMode mode;
    EpochReceipt receipt;
    Actor* actor;
    _Atomic int phase; /* 0 wait, 1 act, 2 done, 3 end */
    _Atomic int tid;
} Bystander;

static void* bystander_main(void* arg) {
    Bystander* y = arg;
    atomic_store(&y->tid, (int)syscall(SYS_gettid));
    for (;;) {
        int phase = atomic_load(&y->phase);
        if (phase == 3) {
            return NULL;
        }
        if (phase == 1) {
            CHECK(epoch_close_ex(y->a, y->id, y->mode, &y->receipt));
            atomic_store(&y->actor->closed, 1);
            use_allocator(y->a);
            CHECK_NULL(slab_malloc_epoch(y->a, 64, y->id));
            atomic_store(&y->phase, 2);
        }
        kit_sleep_us(20);
    }
}

/* Not one that would run if the machine were not busy. */
static bool is_asleep(const Bystander* y) {
    char name[64], state = 'R';
    snprintf(name, sizeof name, "/proc/self/task/%d/stat", atomic_load(&y->tid));
    FILE* f = fopen(name, "r");
    if (f == NULL) return true; /* no /proc: every look counts */
    if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1) state = 'S';
    fclose(f);
    return state == 'S';
}

/* The bystander normally gets through while the actor stands still. Where the actor was stopped
 * inside one of the short locks of the slow path, it has to wait for it; after a while the actor
 * may go, and the round is counted as waited. A bystander that waits for a processor is given longer. */
static bool gets_through(Bystander* y) {
    for (int asleep = 0, looks = 0; asleep < 2000 && looks < 50000 && atomic_load(&y->phase) != 2; looks++) {
        kit_sleep_us(20);
        asleep += is_asleep(y);
    }
    bool through = atomic_load(&y->phase) == 2;
    atomic_store(&may_go, 1);
    kit_await(&y->phase, 2);
    return through;
}

static void check_nothing_left(Actor* x, EpochCloseMode mode) {
    CHECK_EQ(kit_live(x->a), mode == EPOCH_DRAIN ? x->count : 0);
    for (size_t i = 0; i < x->count; i++) {
        CHECK_EQ(slab_free_checked(x->a, x->kept[i]), mode == EPOCH_DRAIN);
    }
    CHECK_EQ(kit_live(x->a), 0);
    slab_trim(x->a); /* what epoch 0 keeps for the bystander */
    CHECK_EQ(kit_committed(x->a), 0);
    CHECK_EQ(kit_global(x->a).draining_phases, 0);
}

/* One stop in three is early, while the actor opens one chunk after the other, under a lock: where page faults are slow, half of those stops
 * meet it. The rest are spread over what follows. */
static void stopped_inside_calls(EpochCloseMode mode, size_t rounds) {
    static Actor x;
    static Bystander y;
    uint64_t deferred = 0, waited = 0;
    memset(&x, 0, sizeof x);
    memset(&y, 0, sizeof y);
    x.a = y.a = kit_create_cold();
    x.rng = 77 + (uint64_t)mode;
    y.mode = mode;
    y.actor = &x;
    install();
    pthread_t actor = kit_thread(actor_main, &x), bystander = kit_thread(bystander_main, &y);
    for (size_t round = 0; round < rounds; round++) {
        epoch_domain_t* d = epoch_domain_create(x.a);
        REQUIRE(d != NULL);
        x.id = y.id = d->epoch_id;
        atomic_store(&x.closed, 0);
        atomic_store(&x.phase, 1);
        kit_sleep_us(30 + (round % 3 == 0 ? (unsigned)(round * 13) % 200 : (unsigned)(round * 137) % 3000));
        stop_actor(actor);
        atomic_store(&y.phase, 1);
        waited += !gets_through(&y);
        KIT_BALANCED(&y.receipt);
        deferred += y.receipt.slabs_deferred;
        kit_await(&x.phase, 2); /* the actor has left its call: everything is handed over */
        check_nothing_left(&x, mode);
        epoch_domain_destroy(d);
    }
    NOTE("%zu stops, %" PRIu64 " slabs were in use and deferred, %" PRIu64 " times a lock was held", rounds, deferred,
         waited);
    CHECK_LE(waited * 2, rounds + 16); /* of few rounds, more than half may be early by chance */
    atomic_store(&x.phase, 3);
    atomic_store(&y.phase, 3);
    pthread_join(actor, NULL);
    pthread_join(bystander, NULL);
    slab_allocator_free(x.a);
}

/* So many that waiting each time is told from waiting often. */
static size_t stops(void) { return CHECK_ASAN ? check_count_whole(350) : check_count(350); }

static void stopped_inside_calls_then_drained(void) {
    if (CHECK_TSAN) {
        SKIP("the thread sanitizer delays signals to points outside the allocator");
    }
    stopped_inside_calls(EPOCH_DRAIN, stops());
}

static void stopped_inside_calls_then_released(void) {
    if (CHECK_TSAN) {
        SKIP("the thread sanitizer delays signals to points outside the allocator");
    }
    stopped_inside_calls(EPOCH_RELEASE, stops());
}

/* Objects of the stopped thread are freed by others meanwhile, in an open epoch. */
static void others_free_for_a_stopped_thread(void) {
    enum { COUNT = 3000 };
    static void* kept[COUNT];
    static Actor x;
    if (CHECK_TSAN) {
        SKIP("the thread sanitizer delays signals to points outside the allocator");
    }
    if (kit_shared()) {
        SKIP("in shared mode a free lists a line that comes back, under the lock that the stopped thread may hold");
    }
    memset(&x, 0, sizeof x);
    x.a = kit_create_cold();
    x.rng = 5;
    install();
    pthread_t t = kit_thread(actor_main, &x);
    size_t rounds = check_count(100);
    for (size_t round = 0; round < rounds; round++) {
        x.id = epoch_advance_id(x.a);
        for (size_t i = 0; i < COUNT; i++) {
            kept[i] = slab_malloc(x.a, 200);
        }
        atomic_store(&x.phase, 1);
        kit_sleep_us(100);
        stop_actor(t);
        for (size_t i = 0; i < COUNT; i++) {
            CHECK(slab_free_checked(x.a, kept[i]));
        }
        atomic_store(&may_go, 1);
        epoch_advance(x.a);
        epoch_close(x.a, x.id);
        kit_await(&x.phase, 2);
        for (size_t i = 0; i < x.count; i++) {
            CHECK(slab_free_checked(x.a, x.kept[i]));
        }
        CHECK_EQ(kit_live(x.a), 0);
        CHECK_EQ(kit_committed(x.a), 0);
    }
    atomic_store(&x.phase, 3);
    pthread_join(t, NULL);
    slab_allocator_free(x.a);
}

/* ---- the whole process ---- */

static _Atomic int over;

static void* work_main(void* arg) {
    SlabAllocator* a = arg;
    void* ring[64] = {NULL};
    for (size_t i = 0; !atomic_load(&over); i++) {
        slab_free(a, ring[i % 64]);
        ring[i % 64] = slab_malloc(a, 1 + (i * 37) % 3000);
        CHECK(ring[i % 64] != NULL);
        if (i % 512 == 0) {
            epoch_domain_t* d = epoch_domain_begin(a, NULL);
            CHECK(slab_malloc(a, 100) != NULL);
            epoch_domain_end(d);
        }
    }
    for (size_t i = 0; i < 64; i++) {
        slab_free(a, ring[i]);
    }
    return NULL;
}

static void working_child(void* arg) {
    int ready = *(int*)arg;
    SlabAllocator* a = kit_create();
    pthread_t threads[3];
    for (int t = 0; t < 3; t++) {
        threads[t] = kit_thread(work_main, a);
    }
    CHECK(write(ready, "r", 1) == 1);
    for (int i = 0; i < 40; i++) { /* goes on for two seconds of its own */
        epoch_advance(a);
        slab_trim(a);
        kit_sleep_us(50000);
    }
    atomic_store(&over, 1);
    for (int t = 0; t < 3; t++) {
        pthread_join(threads[t], NULL);
    }
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(kit_refused_frees(a), 0);
    CHECK_EQ(kit_refusals(a).closed_epoch, 0);
    slab_allocator_free(a);
}

static void stopped_process(void) {
    unsigned seconds = check_scale() > 1 ? 60 : 2;
    int pipe_ends[2];
    REQUIRE(pipe(pipe_ends) == 0);
    fflush(NULL);
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        alarm(seconds + 300);
        working_child(&pipe_ends[1]);
        fflush(NULL);
        _exit(check_failures() != 0);
    }
    char byte;
    CHECK(read(pipe_ends[0], &byte, 1) == 1);
    for (int i = 0; i < 20; i++) { /* many short stops, then a long one */
        kit_sleep_us(10000);
        kill(pid, SIGSTOP);
        kit_sleep_us(5000);
        kill(pid, SIGCONT);
    }
    kill(pid, SIGSTOP);
    sleep(seconds);
    kill(pid, SIGCONT);
    int status = -1;
    CHECK_EQ(waitpid(pid, &status, 0), pid);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
}

static const CheckCase cases[] = {
    CHECK_CASE(stopped_inside_calls_then_drained),
    CHECK_CASE(stopped_inside_calls_then_released),
    CHECK_CASE(others_free_for_a_stopped_thread),
    CHECK_CASE(stopped_process),
};
CHECK_MAIN(cases)
