/*
 * stress_stopped.c - a thread is stopped at any instruction of its calls while its domain ends, and looked at when
 * the call that it was stopped in has returned.
 *
 * A signal stops the worker; meanwhile another thread releases, drains or trims. What the worker was inside of is its own
 * to settle, and it has to do so before its call returns: it makes no other call afterwards, so that nothing mends what
 * was left undone, and then the allocator has to be whole,
 * and an object that was just coming has to live. A mutex that the worker held would keep the other one
 * waiting: the stop is short then.
 */
#include "stress.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

enum { MIXED = 48, PLAIN = 40, PLAIN_BYTES = 1024, ROUNDS = 1500 };
enum { RUNS, STOPPED, GOES_ON };

static SlabAllocator* a;
static _Atomic int state = RUNS;
static _Atomic bool over;
static _Atomic EpochId current_id;
static void* last; /* what the worker's last call has allocated */
static pthread_barrier_t round_begins, round_ends;

static void nap(long us) {
    struct timespec t = {0, us * 1000};
    nanosleep(&t, NULL);
}

static void stop(int sig) {
    (void)sig;
    int saved = errno;
    atomic_store(&state, STOPPED);
    for (unsigned n = 0; n < 40 && atomic_load(&state) == STOPPED; n++) nap(50);
    errno = saved;
}

static bool was_stopped(void) { return atomic_load(&state) != RUNS; }

/* One domain's life; gives up after the call in which it was stopped. */
static void live(void) {
    static void *few[MIXED], *many[PLAIN];
    last = NULL;
    epoch_domain_t* d = epoch_domain_create(a);
    if (was_stopped()) return;
    atomic_store(&current_id, d->epoch_id);
    if (was_stopped()) return;
    for (unsigned n = 0; n < MIXED; n++) {
        last = few[n] = epoch_domain_malloc(d, 16 + n % 4 * 16);
        if (was_stopped()) return;
    }
    last = NULL;
    for (unsigned n = 0; n < MIXED; n++) {
        (void)slab_free_checked(a, few[n]);
        if (was_stopped()) return;
    }
    for (unsigned n = 0; n < PLAIN; n++) {
        last = many[n] = epoch_domain_malloc(d, PLAIN_BYTES);
        if (was_stopped()) return;
    }
    last = NULL;
    for (unsigned n = 0; n < PLAIN; n++) { /* full lines come back */
        (void)slab_free_checked(a, many[n]);
        if (was_stopped()) return;
    }
    epoch_domain_destroy(d);
}

static void* worker(void* arg) {
    (void)arg;
    for (;;) {
        pthread_barrier_wait(&round_begins);
        if (atomic_load(&over)) return NULL;
        while (!was_stopped()) live();
        pthread_barrier_wait(&round_ends);
    }
}

static void end_something(unsigned way) {
    EpochReceipt r;
    EpochId id = atomic_load(&current_id);
    if (way == 0) (void)epoch_close_ex(a, id, EPOCH_RELEASE, &r);
    else if (way == 1) (void)epoch_close_ex(a, id, EPOCH_DRAIN, &r);
    else slab_trim(a);
}

int main(void) {
    struct dice d = {11};
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = stop;
    sigaction(SIGUSR1, &sa, NULL);
    REQUIRE_OR((a = slab_allocator_create()) != NULL, "no allocator");
    pthread_barrier_init(&round_begins, NULL, 2);
    pthread_barrier_init(&round_ends, NULL, 2);
    pthread_t thread;
    REQUIRE_OR(pthread_create(&thread, NULL, worker, NULL) == 0, "no thread");
    uint64_t rounds = check_count(ROUNDS);
    for (uint64_t n = 0; n < rounds; n++) {
        if (n > 0 && n % ROUNDS == 0) { /* each check takes as long as what rounds have left behind */
            slab_allocator_free(a);
            REQUIRE_OR((a = slab_allocator_create()) != NULL, "no allocator");
        }
        atomic_store(&state, RUNS);
        last = NULL; /* the worker may be stopped before its first call */
        pthread_barrier_wait(&round_begins);
        nap((long)below(&d, 30));
        pthread_kill(thread, SIGUSR1);
        while (atomic_load(&state) != STOPPED) sched_yield();
        end_something((unsigned)(n % 3));
        atomic_store(&state, GOES_ON);
        pthread_barrier_wait(&round_ends);
        char why[160] = "";
        REQUIRE_OR(tsi_check_allocator(a, why, sizeof why), "round %llu: %s", (unsigned long long)n, why);
        /* A drain and a trim end no object: not the one that was just coming, either. */
        if (n % 3 != 0 && last != NULL)
            REQUIRE_OR(slab_free_checked(a, last), "round %llu: a live object is gone", (unsigned long long)n);
    }
    atomic_store(&over, true);
    pthread_barrier_wait(&round_begins);
    pthread_join(thread, NULL);
    slab_allocator_free(a);
    printf("stress_stopped: %llu rounds\n", (unsigned long long)rounds);
    return 0;
}
