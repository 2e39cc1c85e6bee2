/*
 * workloads.h - general work: what any allocator can do. Compiled once per backend.
 *
 * Every object is written before it is freed (its first byte; in requests one byte a cache line).
 * Arrays that hold pointers are touched before anything is timed.
 */
#ifndef WORKLOADS_H
#define WORKLOADS_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "bench.h"
#include "measure.h"

/* The eight fixed classes' sizes. */
static const uint16_t eight_sizes[8] = {64, 96, 128, 192, 256, 384, 512, 768};

enum { BATCH = 100000, HOT_SIZE = 128 };

static inline void* touched(size_t bytes) {
    void* p = malloc(bytes);
    if (!p) abort();
    memset(p, 1, bytes);
    return p;
}

static void work_pair(const struct plan* plan, double* out) {
    bk_start();
    uint64_t n = 10000000 / plan->divisor;
    for (int i = 0; i < 10000; i++) bk_free(bk_alloc(HOT_SIZE));
    uint64_t start = now_ns();
    for (uint64_t i = 0; i < n; i++) {
        void* p = bk_alloc(HOT_SIZE);
        touch(p);
        bk_free(p);
    }
    out[0] = (double)(now_ns() - start) / (double)n;
}

/* ---- batches ---------------------------------------------------------------------------- */

static void batch_cycle(void** list) {
    for (int i = 0; i < BATCH; i++) {
        list[i] = bk_alloc(HOT_SIZE);
        touch(list[i]);
    }
    for (int i = 0; i < BATCH; i++) bk_free(list[i]);
}

static void work_batch(const struct plan* plan, double* out) {
    void** list = touched(BATCH * sizeof *list);
    int cycles = 20 / (int)plan->divisor;
    bk_start();
    uint64_t start = now_ns();
    batch_cycle(list);
    out[1] = (double)(now_ns() - start) / BATCH;
    start = now_ns();
    for (int c = 0; c < cycles; c++) batch_cycle(list);
    out[0] = (double)(now_ns() - start) / BATCH / cycles;
}

/* Each allocation and each free timed by itself; memory is in the steady state, the first cycle is not counted. */
static void work_batch_tail(const struct plan* plan, double* out) {
    static struct histogram allocs, frees;
    void** list = touched(BATCH * sizeof *list);
    memset(&allocs, 0, sizeof allocs);
    memset(&frees, 0, sizeof frees);
    struct timer timer = timer_calibrate();
    bk_start();
    out[8] = (double)resident_bytes() / 1048576.0;
    batch_cycle(list);
    for (int c = 0; c < 20 / (int)plan->divisor; c++) {
        for (int i = 0; i < BATCH; i++) {
            uint64_t t = ticks();
            void* p = bk_alloc(HOT_SIZE);
            hist_add(&allocs, timer_net(&timer, t, ticks()));
            touch(p);
            list[i] = p;
        }
        for (int i = 0; i < BATCH; i++) {
            uint64_t t = ticks();
            bk_free(list[i]);
            hist_add(&frees, timer_net(&timer, t, ticks()));
        }
    }
    static const double percents[4] = {50, 99, 99.9, 99.99};
    for (int k = 0; k < 4; k++) {
        out[k] = timer_ns(&timer, &allocs, percents[k]);
        out[4 + k] = timer_ns(&timer, &frees, percents[k]);
    }
}

/* ---- mixed ------------------------------------------------------------------------------ */

static void work_mixed(const struct plan* plan, double* out) {
    enum { SLOTS = 100000 };
    void** list = touched(SLOTS * sizeof *list);
    uint64_t random = 1, n = 4000000 / plan->divisor;
    bk_start();
    for (int i = 0; i < SLOTS; i++) {
        list[i] = bk_alloc(eight_sizes[next_random(&random) & 7]);
        touch(list[i]);
    }
    for (int lap = 0; lap < 2; lap++) { /* the first lap brings the heap into its steady state */
        uint64_t due = lap ? n : n / 4, start = now_ns();
        for (uint64_t k = 0; k < due; k++) {
            uint32_t i = next_random(&random) % SLOTS;
            bk_free(list[i]);
            list[i] = bk_alloc(eight_sizes[next_random(&random) & 7]);
            touch(list[i]);
        }
        out[0] = (double)(now_ns() - start) / (double)due;
    }
}

/* ---- requests --------------------------------------------------------------------------- */

enum { REQUEST_OBJECTS = 225 };

/* Sizes of one request: 225 objects, 52 KB together; small ones are more frequent. */
static size_t request_sizes(uint16_t sizes[REQUEST_OBJECTS]) {
    static const uint8_t weight[8] = {5, 4, 5, 3, 3, 2, 2, 2};
    uint8_t deck[26];
    unsigned n = 0;
    for (unsigned c = 0; c < 8; c++)
        for (unsigned k = 0; k < weight[c]; k++) deck[n++] = (uint8_t)c;
    size_t total = 0;
    uint64_t random = 12345;
    for (unsigned i = 0; i < REQUEST_OBJECTS; i++) {
        if (i % 26 == 0)
            for (unsigned k = 25; k > 0; k--) {
                unsigned j = next_random(&random) % (k + 1);
                uint8_t card = deck[k];
                deck[k] = deck[j], deck[j] = card;
            }
        sizes[i] = eight_sizes[deck[i % 26]];
        total += sizes[i];
    }
    return total;
}

static void work_request(const struct plan* plan, double* out) {
    uint16_t sizes[REQUEST_OBJECTS];
    void* list[REQUEST_OBJECTS];
    unsigned n = 30000 / plan->divisor;
    request_sizes(sizes);
    bk_start();
    uint64_t start = 0;
    for (unsigned r = 0; r < n + n / 10; r++) {
        if (r == n / 10) start = now_ns();
        for (unsigned i = 0; i < REQUEST_OBJECTS; i++) {
            list[i] = bk_alloc(sizes[i]);
            touch_lines(list[i], sizes[i]);
        }
        for (unsigned i = 0; i < REQUEST_OBJECTS; i++) bk_free(list[i]);
    }
    out[0] = (double)(now_ns() - start) / n / 1000.0;
}

/* ---- threads ---------------------------------------------------------------------------- */

struct crew {
    pthread_barrier_t start;
    uint64_t laps;
};

static void* crew_member(void* arg) {
    struct crew* crew = arg;
    void* list[1000];
    for (int i = 0; i < 1000; i++) list[i] = bk_alloc(HOT_SIZE);
    for (int i = 0; i < 1000; i++) bk_free(list[i]);
    pthread_barrier_wait(&crew->start);
    for (uint64_t lap = 0; lap < crew->laps; lap++) {
        for (int i = 0; i < 1000; i++) {
            list[i] = bk_alloc(HOT_SIZE);
            touch(list[i]);
        }
        for (int i = 0; i < 1000; i++) bk_free(list[i]);
    }
    return NULL;
}

static double crew_mops(unsigned threads, uint64_t laps) {
    struct crew crew = {.laps = laps};
    pthread_t ids[16];
    pthread_barrier_init(&crew.start, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++)
        if (pthread_create(&ids[i], NULL, crew_member, &crew) != 0) abort();
    pthread_barrier_wait(&crew.start);
    uint64_t start = now_ns();
    for (unsigned i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    double ns = (double)(now_ns() - start);
    pthread_barrier_destroy(&crew.start);
    return (double)threads * (double)laps * 2000.0 * 1000.0 / ns;
}

static void work_threads(const struct plan* plan, double* out) {
    bk_start();
    for (unsigned k = 0; k < 3; k++) out[k] = crew_mops(1u << k, 6000u / plan->divisor >> k);
}

/* Two producers allocate and write, two consumers read and free; a ring of pointers for each pair. */
enum { PIPE = 4096 };

struct pipe_line {
    _Alignas(64) _Atomic uint64_t head;
    _Alignas(64) _Atomic uint64_t tail;
    _Alignas(64) void* cell[PIPE];
    uint64_t n;
};

static void* produce(void* arg) {
    struct pipe_line* line = arg;
    for (uint64_t i = 0; i < line->n; i++) {
        while (i - atomic_load_explicit(&line->tail, memory_order_acquire) == PIPE) sched_yield();
        void* p = bk_alloc(HOT_SIZE);
        touch(p);
        line->cell[i % PIPE] = p;
        atomic_store_explicit(&line->head, i + 1, memory_order_release);
    }
    return NULL;
}

static void* consume(void* arg) {
    struct pipe_line* line = arg;
    for (uint64_t i = 0; i < line->n; i++) {
        while (atomic_load_explicit(&line->head, memory_order_acquire) == i) sched_yield();
        void* p = line->cell[i % PIPE];
        if (*(volatile char*)p != 1) abort();
        bk_free(p);
        atomic_store_explicit(&line->tail, i + 1, memory_order_release);
    }
    return NULL;
}

static void work_xthread(const struct plan* plan, double* out) {
    static struct pipe_line lines[2];
    pthread_t ids[4];
    bk_start();
    uint64_t start = now_ns();
    for (int i = 0; i < 2; i++) {
        lines[i].n = 2000000 / plan->divisor;
        if (pthread_create(&ids[2 * i], NULL, produce, &lines[i]) != 0) abort();
        if (pthread_create(&ids[2 * i + 1], NULL, consume, &lines[i]) != 0) abort();
    }
    for (int i = 0; i < 4; i++) pthread_join(ids[i], NULL);
    out[0] = 4.0 * (double)lines[0].n * 1000.0 / (double)(now_ns() - start);
}

#endif
