/*
 * test_culprits.c - who made allocations slow: sampling under a crowd on one processor, and under a lock held long.
 *
 * The only timings that a test asserts, and they are ratios: four busy threads on one processor wait about three
 * times as long as they run, so waiting has to come out above running; a lock that is held for milliseconds is slept
 * for, which is neither. Load from outside adds waiting for the processor: to the first, which it only makes
 * clearer, and to the second, where the holds are long enough to stay above it.
 */
#define _GNU_SOURCE
#include "kit/inside.h"

#include <sched.h>
#include <slab_diagnostics.h>
#include <time.h>

enum {
    THREADS = 4,
    PERIOD = 16,
    HOLD_US = 50000, /* so long that whoever was woken has waited less for a processor, however many want it */
    HOLDS = 10,      /* to have met in samples */
    ENOUGH = 100,    /* samples */
    LOOK_US = 10000,
    LOOKS = 200,      /* at the crowd, at least */
    PATIENCE = 12000, /* looks, until what has to be seen is given up */
};

static SlabAllocator* allocator;
static _Atomic bool stop;

static uint64_t scale(void) {
    const char* s = getenv("TSLAB_TEST_SCALE");
    uint64_t n = s != NULL ? strtoull(s, NULL, 10) : 1;
    return n != 0 ? n : 1;
}

static void setup(void) {
    SlabOptions o = kit_options();
    o.warm_bytes = UINT64_MAX;
    o.sampling_period = PERIOD;
    allocator = kit_create_with(&o);
    atomic_store(&stop, false);
}

static SlabSamplingStats sampled(void) {
    SlabSamplingStats s;
    slab_stats_sampling(allocator, &s);
    return s;
}

static bool append(void* ctx, const char* bytes, size_t n) {
    char* text = ctx;
    size_t at = strlen(text);
    memcpy(text + at, bytes, n < 65535 - at ? n : 65535 - at);
    return true;
}

/* What the doctor says. */
static void expect_verdict(const char* words) {
    static char text[65536];
    memset(text, 0, sizeof text);
    REQUIRE(slab_doctor(allocator, append, text));
    REQUIRE_HAS(text, words);
}

static uint64_t slept(const SlabSamplingStats* s) {
    return s->sum.alloc_wall_ns_sum - s->sum.alloc_cpu_ns_sum - s->sum.alloc_wait_ns_sum;
}

static void print_sums(const SlabSamplingStats* s) {
    const ThreadStats* t = &s->sum;
    printf("%llu samples: cpu %llu us, wait %llu us, locks %llu us\n", (unsigned long long)t->alloc_samples,
           (unsigned long long)(t->alloc_cpu_ns_sum / 1000), (unsigned long long)(t->alloc_wait_ns_sum / 1000),
           (unsigned long long)(slept(s) / 1000));
}

/* ---- the scheduler ---- */

static void* busy(void* arg) {
    (void)arg;
    while (!atomic_load(&stop)) slab_free(allocator, slab_malloc(allocator, 60000));
    return NULL;
}

static void on_one_processor(cpu_set_t* before) {
    cpu_set_t one;
    REQUIRE_EQ(sched_getaffinity(0, sizeof *before, before), 0);
    int first = 0;
    while (!CPU_ISSET(first, before)) first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    REQUIRE_EQ(sched_setaffinity(0, sizeof one, &one), 0); /* threads born from here on inherit it */
}

static void a_crowd_on_one_processor(void) {
    cpu_set_t before;
    pthread_t t[THREADS];
    setup();
    on_one_processor(&before);
    for (unsigned n = 0; n < THREADS; n++) REQUIRE_EQ(pthread_create(&t[n], NULL, busy, NULL), 0);
    REQUIRE_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    SlabSamplingStats s = sampled();
    for (uint64_t n = 0; n < PATIENCE && (n < LOOKS * (scale() < 5 ? scale() : 5) || s.sum.alloc_samples < ENOUGH ||
                                          s.sum.alloc_wait_ns_sum <= s.sum.alloc_cpu_ns_sum);
         n++) {
        (void)usleep(LOOK_US);
        s = sampled();
    }
    atomic_store(&stop, true);
    for (unsigned n = 0; n < THREADS; n++) (void)pthread_join(t[n], NULL);
    print_sums(&s);
    REQUIRE(s.sum.alloc_samples >= ENOUGH);
    REQUIRE(s.sum.alloc_wait_ns_sum > s.sum.alloc_cpu_ns_sum);
    REQUIRE(s.sum.alloc_wall_ns_sum >= s.sum.alloc_wait_ns_sum + s.sum.alloc_cpu_ns_sum);
    REQUIRE(s.sum.alloc_wait_ns_max > 0);
    expect_verdict("Verdict: scheduler");
    slab_allocator_free(allocator);
}

/* ---- the allocator ---- */

/* An injected fault: the pool's lock is held for milliseconds, again and again. */
static void* hold(void* arg) {
    TsiLock* pool = &tsi_arena(arg)->space.lock;
    while (!atomic_load(&stop)) {
        tsi_lock_take(pool);
        (void)usleep(HOLD_US);
        tsi_lock_give(pool);
        (void)usleep(HOLD_US / 10);
    }
    return NULL;
}

/* Each allocation needs a slab from the pool. */
static void* needy(void* arg) {
    (void)arg;
    while (!atomic_load(&stop)) {
        epoch_domain_t* d = epoch_domain_create(allocator);
        epoch_domain_enter(d);
        (void)slab_malloc(allocator, 3000);
        epoch_domain_exit(d);
        epoch_domain_destroy(d);
    }
    return NULL;
}

/* Takes of locks are sampled apart from allocations, one in PERIOD of each thread: which of them waits is chance, that
 * one will is not. */
static bool met_the_lock(const SlabSamplingStats* s) {
    return s->sum.alloc_samples >= ENOUGH && slept(s) >= HOLDS * HOLD_US * UINT64_C(1000) &&
           slept(s) > s->sum.alloc_cpu_ns_sum && slept(s) > s->sum.alloc_wait_ns_sum &&
           s->lock_wait_ns_max >= HOLD_US * UINT64_C(500);
}

static void a_lock_held_long(void) {
    pthread_t holder, t[THREADS];
    setup();
    REQUIRE_EQ(pthread_create(&holder, NULL, hold, allocator), 0);
    for (unsigned n = 0; n < THREADS; n++) REQUIRE_EQ(pthread_create(&t[n], NULL, needy, NULL), 0);
    SlabSamplingStats s = sampled();
    for (unsigned n = 0; n < PATIENCE && !met_the_lock(&s); n++) {
        (void)usleep(LOOK_US);
        s = sampled();
    }
    atomic_store(&stop, true);
    for (unsigned n = 0; n < THREADS; n++) (void)pthread_join(t[n], NULL);
    (void)pthread_join(holder, NULL);
    print_sums(&s);
    REQUIRE(met_the_lock(&s));
    expect_verdict("Verdict: allocator: threads wait for its locks");
    slab_allocator_free(allocator);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(a_crowd_on_one_processor),
        CHECK_CASE(a_lock_held_long),
    };
    return CHECK_RUN(argc, argv, tests);
}
