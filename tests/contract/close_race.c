/*
 * close_race.c - an epoch is closed while a team of threads allocates in it by its id. No
 * allocation that begins after the close has returned may succeed.
 *
 * Protocol: the closing thread sets `closed` (sequentially consistent) after the close returned; a
 * worker reads `closed` before it calls. A call made after reading it as set must be refused. An
 * allocation that overlaps the close may go either way.
 *
 * Between rounds the team meets at barriers, so that what a round left behind can be counted: in
 * release mode nothing it allocated is live, in drain mode all of it is, and after it is freed the
 * memory is gone.
 *
 * In the cases with stumbling threads a further thread sends signals to all others, the closing one
 * included; the handler sleeps for a moment. That stretches every window a few instructions wide.
 */
#include "kit/fixture.h"

#include <signal.h>

enum { TEAM = 3, MOST = 3000 };

typedef enum Way { BY_RING_ID, BY_DOMAIN_ID, BY_ERA, WAYS } Way;

/* ---- stumbling ---- */

typedef struct Stumbling {
    pthread_t target[TEAM + 1];
    size_t targets;
    _Atomic int over;
    pthread_t thread;
} Stumbling;

static void stumble(int sig) {
    (void)sig;
    static _Atomic unsigned turn;
    int saved = errno;
    unsigned n = atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
    struct timespec t = {0, (long)(n * 7919 % 150) * 1000};
    nanosleep(&t, NULL);
    errno = saved;
}

static void* stumbling_main(void* arg) {
    Stumbling* st = arg;
    uint64_t rng = 7;
    while (!atomic_load(&st->over)) {
        pthread_kill(st->target[kit_rand(&rng) % st->targets], SIGUSR1);
        kit_sleep_us((unsigned)(kit_rand(&rng) % 60));
    }
    return NULL;
}

/* The calling thread and `team` others stumble until stop_stumbling. */
static void start_stumbling(Stumbling* st, const pthread_t* team, size_t count) {
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = stumble;
    sa.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &sa, NULL);
    memcpy(st->target, team, count * sizeof *team);
    st->target[count] = pthread_self();
    st->targets = count + 1;
    atomic_store(&st->over, 0);
    st->thread = kit_thread(stumbling_main, st);
}

static void stop_stumbling(Stumbling* st) {
    atomic_store(&st->over, 1);
    pthread_join(st->thread, NULL);
}

/* ---- the team ---- */

typedef struct Shared {
    SlabAllocator* a;
    pthread_barrier_t meet;
    EpochId id;
    EpochCloseMode mode;
    _Atomic int closed, over;
} Shared;

typedef struct Worker {
    Shared* s;
    size_t count, calls, late;
    bool yields;
    void* kept[MOST];
} Worker;

static void worker_round(Worker* w) {
    Shared* s = w->s;
    w->count = 0;
    for (size_t i = 0;; i++) {
        if (w->yields && i % 1024 == 1023) {
            sched_yield(); /* fewer cores than threads: let the closing one in */
        }
        int was_closed = atomic_load(&s->closed);
        void* p = slab_malloc_epoch(s->a, i % 7 == 0 ? 3000 : 64 + (i % 5) * 64, s->id);
        if (p == NULL) {
            if (was_closed) {
                break; /* as it should be */
            }
            continue;
        }
        w->late += was_closed != 0;
        if (w->count == MOST || i % 4 == 3) {
            bool freed = slab_free_checked(s->a, p);
            CHECK(freed || s->mode == EPOCH_RELEASE);
        } else {
            w->kept[w->count++] = p;
        }
        w->calls++;
    }
}

static void* worker_main(void* arg) {
    Worker* w = arg;
    for (;;) {
        pthread_barrier_wait(&w->s->meet);
        if (atomic_load(&w->s->over)) {
            return NULL;
        }
        worker_round(w);
        pthread_barrier_wait(&w->s->meet);
    }
}

static void spin(size_t n) {
    for (volatile size_t i = 0; i < n; i++) {
    }
}

/* The epoch of the next round; d is its domain when it has one. */
static EpochId next_epoch(Shared* s, Way way, epoch_domain_t** d) {
    *d = NULL;
    if (way == BY_DOMAIN_ID) {
        *d = epoch_domain_create(s->a);
        return *d != NULL ? (*d)->epoch_id : 0;
    }
    return epoch_advance_id(s->a);
}

static void check_left_behind(Shared* s, Worker* workers, const EpochReceipt* r) {
    uint64_t left = 0;
    for (size_t t = 0; t < TEAM; t++) {
        left += workers[t].count;
        CHECK_EQ(workers[t].late, 0);
    }
    KIT_BALANCED(r);
    CHECK_EQ(kit_live(s->a), s->mode == EPOCH_RELEASE ? 0 : left);
    for (size_t t = 0; t < TEAM; t++) {
        for (size_t i = 0; i < workers[t].count; i++) {
            CHECK_EQ(slab_free_checked(s->a, workers[t].kept[i]), s->mode == EPOCH_DRAIN);
        }
    }
    CHECK_EQ(kit_live(s->a), 0);
    CHECK_EQ(kit_committed(s->a), 0);
    CHECK_EQ(kit_global(s->a).draining_phases, 0);
}

/* `head_start` is how long the team has been at it when the close comes: 0 lets the close meet
 * heaps that are just being made. */
static void race(Way way, EpochCloseMode mode, size_t head_start, size_t rounds, bool stumbling) {
    static Worker workers[TEAM];
    static Shared s;
    Stumbling st;
    pthread_t threads[TEAM];
    uint64_t deferred = 0, calls = 0;
    s.a = kit_create_cold();
    s.mode = mode;
    atomic_store(&s.over, 0);
    pthread_barrier_init(&s.meet, NULL, TEAM + 1);
    for (size_t t = 0; t < TEAM; t++) {
        workers[t].s = &s;
        workers[t].yields = t > 0;
        workers[t].calls = workers[t].late = 0;
        threads[t] = kit_thread(worker_main, &workers[t]);
    }
    if (stumbling) {
        start_stumbling(&st, threads, TEAM);
    }
    for (size_t round = 0; round < rounds; round++) {
        epoch_domain_t* d;
        EpochReceipt r;
        s.id = next_epoch(&s, way, &d);
        uint64_t era = epoch_era(s.a, s.id);
        atomic_store(&s.closed, 0);
        pthread_barrier_wait(&s.meet);
        spin(head_start + (round * 61) % 1500);
        CHECK(way == BY_ERA ? epoch_close_era(s.a, era, mode, &r) : epoch_close_ex(s.a, s.id, mode, &r));
        atomic_store(&s.closed, 1);
        pthread_barrier_wait(&s.meet);
        deferred += r.slabs_deferred;
        check_left_behind(&s, workers, &r);
        epoch_domain_destroy(d);
    }
    if (stumbling) {
        stop_stumbling(&st);
    }
    atomic_store(&s.over, 1);
    pthread_barrier_wait(&s.meet);
    for (size_t t = 0; t < TEAM; t++) {
        calls += workers[t].calls;
        pthread_join(threads[t], NULL);
    }
    NOTE("%zu rounds, %" PRIu64 " allocations, %" PRIu64 " slabs deferred", rounds, calls, deferred);
    pthread_barrier_destroy(&s.meet);
    slab_allocator_free(s.a);
}

static void drain_of_a_busy_epoch(void) {
    for (int way = 0; way < WAYS; way++) {
        race((Way)way, EPOCH_DRAIN, 20000, check_count(150), false);
    }
}

static void release_of_a_busy_epoch(void) {
    for (int way = 0; way < WAYS; way++) {
        race((Way)way, EPOCH_RELEASE, 20000, check_count(150), false);
    }
}

static void drain_of_a_newborn_epoch(void) {
    for (int way = 0; way < WAYS; way++) {
        race((Way)way, EPOCH_DRAIN, 0, check_count(300), false);
    }
}

static void release_of_a_newborn_epoch(void) {
    for (int way = 0; way < WAYS; way++) {
        race((Way)way, EPOCH_RELEASE, 0, check_count(300), false);
    }
}

#define NEEDS_SIGNALS()                                                                  \
    do {                                                                                 \
        if (CHECK_TSAN) {                                                                \
            SKIP("the thread sanitizer delays signals to points outside the allocator"); \
        }                                                                                \
    } while (0)

static void drain_with_stumbling_threads(void) {
    NEEDS_SIGNALS();
    race(BY_DOMAIN_ID, EPOCH_DRAIN, 3000, check_count(250), true);
}

static void release_with_stumbling_threads(void) {
    NEEDS_SIGNALS();
    race(BY_RING_ID, EPOCH_RELEASE, 3000, check_count(250), true);
}

/* ---- several threads close the same epoch in both modes while others allocate and free ---- */

typedef struct Closer {
    Shared* s;
    EpochCloseMode mode;
} Closer;

static void* closer_main(void* arg) {
    Closer* c = arg;
    EpochReceipt r;
    pthread_barrier_wait(&c->s->meet);
    CHECK(epoch_close_ex(c->s->a, c->s->id, c->mode, &r));
    KIT_BALANCED(&r);
    CHECK_NULL(slab_malloc_epoch(c->s->a, 64, c->s->id));
    CHECK(epoch_close_ex(c->s->a, c->s->id, c->mode, &r));
    KIT_BALANCED(&r);
    return NULL;
}

static void several_closers(void) {
    enum { CLOSERS = 4, COUNT = 300 };
    static void* kept[COUNT];
    Shared s;
    size_t rounds = check_count(300);
    s.a = kit_create_cold();
    pthread_barrier_init(&s.meet, NULL, CLOSERS + 1);
    for (size_t round = 0; round < rounds; round++) {
        pthread_t threads[CLOSERS];
        Closer closers[CLOSERS];
        s.id = epoch_advance_id(s.a);
        for (size_t i = 0; i < COUNT; i++) {
            kept[i] = slab_malloc_epoch(s.a, 500, s.id);
        }
        for (size_t i = 0; i < CLOSERS; i++) {
            closers[i] = (Closer){&s, (round + i) % 3 == 0 ? EPOCH_RELEASE : EPOCH_DRAIN};
            threads[i] = kit_thread(closer_main, &closers[i]);
        }
        pthread_barrier_wait(&s.meet);
        for (size_t i = 0; i < COUNT; i++) {
            (void)slab_free_checked(s.a, kept[i]);
        }
        for (size_t i = 0; i < CLOSERS; i++) {
            pthread_join(threads[i], NULL);
        }
        CHECK_EQ(kit_live(s.a), 0);
        CHECK_EQ(kit_committed(s.a), 0);
    }
    CHECK_EQ(kit_refusals(s.a).double_free, 0);
    pthread_barrier_destroy(&s.meet);
    slab_allocator_free(s.a);
}

/* ---- trim, flush and readings while threads work: nothing is lost, nothing is refused ---- */

static void* churn_main(void* arg) {
    Shared* s = arg;
    enum { SLOTS = 200 };
    struct {
        unsigned char* p;
        size_t n;
    } slot[SLOTS] = {{NULL, 0}};
    uint64_t rng = (uint64_t)(uintptr_t)&rng;
    for (size_t i = 0; !atomic_load(&s->over); i++) {
        size_t k = kit_rand(&rng) % SLOTS;
        if (slot[k].p != NULL) {
            CHECK(kit_intact(slot[k].p, slot[k].n, k));
            CHECK(slab_free_checked(s->a, slot[k].p));
        }
        slot[k].n = kit_rand_size(&rng, 2000);
        slot[k].p = slab_malloc(s->a, slot[k].n);
        if (!CHECK(slot[k].p != NULL)) {
            continue;
        }
        kit_fill(slot[k].p, slot[k].n, k);
        if (i % 1024 == 0) {
            slab_thread_flush(s->a);
        }
        if (i % 64 == 0) {
            epoch_domain_t* d = epoch_domain_begin(s->a, "inner");
            CHECK(slab_malloc(s->a, 700) != NULL);
            epoch_domain_end(d);
        }
    }
    for (size_t k = 0; k < SLOTS; k++) {
        CHECK(slab_free_checked(s->a, slot[k].p));
    }
    return NULL;
}

/* Readings among running threads are never negative. */
static void read_everything(SlabAllocator* a, uint32_t turn) {
    const uint64_t absurd = (uint64_t)1 << 40;
    SlabClassStats c;
    PerfCounters p;
    SlabGlobalStats g = kit_global(a);
    CHECK_LE(g.live_objects, absurd);
    CHECK_LE(g.live_bytes, absurd);
    CHECK_LE(g.committed_bytes, g.reserved_bytes);
    slab_stats_class(a, turn % 16, &c);
    CHECK_LE(c.live_bytes, absurd);
    CHECK_LE(c.committed_bytes, absurd);
    get_perf_counters(a, turn % 16, &p);
    CHECK_LE(kit_epoch(a, turn % 8, turn % 16).alloc_count, absurd);
    CHECK_EQ(kit_refusals(a).bad_epoch, 0);
}

static void trim_beside(size_t rounds, bool stumbling) {
    Shared s;
    Stumbling st;
    pthread_t threads[TEAM];
    s.a = kit_create();
    atomic_store(&s.over, 0);
    for (size_t t = 0; t < TEAM; t++) {
        threads[t] = kit_thread(churn_main, &s);
    }
    if (stumbling) {
        start_stumbling(&st, threads, TEAM);
    }
    for (size_t i = 0; i < rounds; i++) {
        slab_trim(s.a);
        read_everything(s.a, (uint32_t)i);
        if (i % 16 == 0) {
            epoch_advance(s.a);
        }
        spin(5000);
    }
    if (stumbling) {
        stop_stumbling(&st);
    }
    atomic_store(&s.over, 1);
    for (size_t t = 0; t < TEAM; t++) {
        pthread_join(threads[t], NULL);
    }
    CHECK_EQ(kit_live(s.a), 0);
    slab_trim(s.a);
    CHECK_EQ(kit_committed(s.a), 0);
    CHECK_EQ(kit_global(s.a).draining_phases, 0);
    CHECK_EQ(kit_refused_frees(s.a), 0);
    CHECK_EQ(kit_refusals(s.a).closed_epoch, 0);
    slab_allocator_free(s.a);
}

static void trim_beside_working_threads(void) { trim_beside(check_count(1000), false); }

static void trim_beside_stumbling_threads(void) {
    NEEDS_SIGNALS();
    trim_beside(check_count(1000), true);
}

static const CheckCase cases[] = {
    CHECK_CASE(drain_of_a_busy_epoch),
    CHECK_CASE(release_of_a_busy_epoch),
    CHECK_CASE(drain_of_a_newborn_epoch),
    CHECK_CASE(release_of_a_newborn_epoch),
    CHECK_CASE(drain_with_stumbling_threads),
    CHECK_CASE(release_with_stumbling_threads),
    CHECK_CASE(several_closers),
    CHECK_CASE(trim_beside_working_threads),
    CHECK_CASE(trim_beside_stumbling_threads),
};
CHECK_MAIN(cases)
