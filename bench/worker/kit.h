/*
 * kit.h - what every row needs: giving up with a reason, how many laps, processors, arrays.
 */
#ifndef BENCH_KIT_H
#define BENCH_KIT_H

typedef void (*work_fn)(const struct plan* plan, double* out);

enum { HOT_SIZE = 128, GUARD_MIB = 6144 };

/* The eight fixed classes' sizes. */
static const uint16_t eight_sizes[8] = {64, 96, 128, 192, 256, 384, 512, 768};

static inline _Noreturn void cannot(const char* why) {
    printf("cannot %s\n", why);
    fflush(stdout);
    _exit(0);
}

static inline _Noreturn void corrupt(const char* what) {
    printf("corrupt %s\n", what);
    fflush(stdout);
    _exit(1);
}

/* Laps of the timed loop. A checked pass does few. */
static inline uint64_t laps_of(const struct plan* plan, uint64_t n) {
    if (plan->mode == PLAN_COUNTED) return plan->laps;
    uint64_t laps = plan->mode == PLAN_CHECKED ? n / 5000 : n / plan->divisor;
    return laps ? laps : 1;
}

/* Objects of a memory row, the same in every form; a checked pass has a few. */
static inline unsigned objects_of(const struct plan* plan, unsigned n) {
    return plan->mode == PLAN_CHECKED ? n / 20 : n;
}

/* Ends the row when a peer takes more memory than a shared machine can give. */
static inline void guard_memory(const char* when) {
    char why[128];
    uint64_t now = resident_bytes();
    if (now < (uint64_t)GUARD_MIB << 20) return;
    snprintf(why, sizeof why, "over %d MiB resident %s", GUARD_MIB, when);
    cannot(why);
}

static inline uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* ---- processors ------------------------------------------------------------------------- */

/* The k-th processor this process may use, from 0; -1 when it has not so many. */
static inline int processor(unsigned k) {
    static cpu_set_t may;
    static bool known;
    if (!known) known = true, sched_getaffinity(0, sizeof may, &may);
    for (int c = 0; c < CPU_SETSIZE; c++)
        if (CPU_ISSET(c, &may) && k-- == 0) return c;
    return -1;
}

static inline unsigned processors(void) {
    unsigned n = 0;
    while (processor(n) >= 0) n++;
    return n;
}

static inline void pin_to(int c) {
    cpu_set_t one;
    if (c < 0) return;
    CPU_ZERO(&one);
    CPU_SET(c, &one);
    sched_setaffinity(0, sizeof one, &one);
}

static inline void pin_to_last(void) { pin_to(processor(processors() - 1)); }

/* A thread inherits its maker's processor: each is given its own, or all of them where there are too few. */
static inline void pin_member(unsigned index, unsigned threads) {
    cpu_set_t all;
    if (threads <= processors()) {
        pin_to(processor(index));
        return;
    }
    CPU_ZERO(&all);
    for (unsigned k = 0; processor(k) >= 0; k++) CPU_SET(processor(k), &all);
    sched_setaffinity(0, sizeof all, &all);
}

/* ---- arrays, from the kernel and resident before anything is measured ------------------- */

static inline void* touched(size_t bytes) {
    void* p = mmap(NULL, bytes ? bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) cannot("no memory for the row's own arrays");
    memset(p, 1, bytes);
    return p;
}

/* Start of the k-th sequence of random numbers of this run's seed. */
static uint64_t work_seed;

static inline uint64_t seeded(uint64_t k) {
    uint64_t x = (work_seed << 8 | k) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
    return x ^ x >> 29;
}

/* Random numbers below `limit`, drawn beforehand. */
static inline uint32_t* drawn(size_t n, uint32_t limit, uint64_t sequence) {
    uint32_t* list = touched(n * sizeof *list);
    uint64_t seed = seeded(sequence);
    for (size_t i = 0; i < n; i++) list[i] = next_random(&seed) % limit;
    return list;
}

/* The numbers 0..n-1 in random order. */
static inline uint32_t* shuffled(uint32_t n, uint64_t sequence) {
    uint32_t* list = touched(n * sizeof *list);
    uint64_t seed = seeded(sequence);
    for (uint32_t i = 0; i < n; i++) list[i] = i;
    for (uint32_t i = n; i-- > 1;) {
        uint32_t j = next_random(&seed) % (i + 1), other = list[j];
        list[j] = list[i];
        list[i] = other;
    }
    return list;
}

/* ---- threads ---------------------------------------------------------------------------- */

/* Runs body(index, arg) on so many threads, started together; nanoseconds from the start to the last end. */
static void (*thread_begins)(void), (*thread_ends)(void); /* of a backend that threads have to enter; else NULL */

struct crew {
    pthread_barrier_t ready, start;
    unsigned threads;
    void (*warm)(unsigned index, void* arg); /* before the start, may be NULL */
    void (*body)(unsigned index, void* arg);
    void* arg;
    _Atomic unsigned next;
};

static inline void* crew_member(void* arg) {
    struct crew* crew = arg;
    unsigned index = atomic_fetch_add(&crew->next, 1);
    pin_member(index, crew->threads);
    if (thread_begins) thread_begins();
    if (crew->warm) crew->warm(index, crew->arg);
    pthread_barrier_wait(&crew->ready);
    pthread_barrier_wait(&crew->start);
    crew->body(index, crew->arg);
    if (thread_ends) thread_ends();
    return NULL;
}

static inline double crew_run(struct crew* crew) {
    pthread_t ids[16];
    pthread_barrier_init(&crew->ready, NULL, crew->threads + 1);
    pthread_barrier_init(&crew->start, NULL, crew->threads + 1);
    for (unsigned i = 0; i < crew->threads; i++)
        if (pthread_create(&ids[i], NULL, crew_member, crew) != 0) cannot("no threads");
    pthread_barrier_wait(&crew->ready);
    uint64_t start = now_ns();
    pthread_barrier_wait(&crew->start);
    for (unsigned i = 0; i < crew->threads; i++) pthread_join(ids[i], NULL);
    double ns = (double)(now_ns() - start);
    pthread_barrier_destroy(&crew->ready);
    pthread_barrier_destroy(&crew->start);
    return ns;
}

#endif
