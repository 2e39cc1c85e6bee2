/*
 * measure.h - clock, ticks, latency histogram, resident memory, cheap random numbers.
 *
 * Single operations are timed with the time-stamp counter behind a load fence (the clock elsewhere);
 * what an empty pair of readings costs is measured in the same process and subtracted. Ticks go into
 * a log-linear histogram: exact below 256, within 1 % above.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t ticks(void) {
#if defined(__x86_64__)
    uint32_t low, high;
    __asm__ volatile("lfence\n\trdtsc" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
#else
    return now_ns();
#endif
}

/* Makes the compiler believe that the object is looked at: nothing may be elided. */
static inline void keep(void* p) { __asm__ volatile("" : : "r"(p) : "memory"); }

static inline void touch(void* p) {
    *(volatile char*)p = 1;
    keep(p);
}

/* One byte a cache line. */
static inline void touch_lines(void* p, size_t size) {
    for (size_t i = 0; i < size; i += 64) ((volatile char*)p)[i] = 1;
    keep(p);
}

static inline uint32_t next_random(uint64_t* state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

/* Resident bytes of this process. smaps_rollup is exact; statm may be some dozens of pages behind. */
static inline uint64_t resident_bytes(void) {
    char text[2048];
    unsigned long long total = 0, resident = 0;
    int fd = open("/proc/self/smaps_rollup", O_RDONLY | O_CLOEXEC);
    bool exact = fd >= 0;
    if (!exact && (fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) < 0) return 0;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    const char* line = exact ? strstr(text, "Rss:") : NULL;
    if (line) return sscanf(line, "Rss: %llu", &resident) == 1 ? resident * 1024 : 0;
    if (sscanf(text, "%llu %llu", &total, &resident) != 2) return 0;
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}

static inline double mib(double bytes) { return bytes / 1048576.0; }

static inline double mib_over(uint64_t now, uint64_t start) { return mib((double)now - (double)start); }

/* ---- histogram -------------------------------------------------------------------------- */

enum { HIST_EXACT = 256, HIST_STEPS = 128, HIST_OCTAVES = 32, HIST_SIZE = HIST_EXACT + HIST_OCTAVES * HIST_STEPS };

struct histogram {
    uint64_t total;
    uint32_t count[HIST_SIZE];
};

static inline unsigned hist_index(uint64_t v) {
    if (v < HIST_EXACT) return (unsigned)v;
    unsigned top = 63 - (unsigned)__builtin_clzll(v); /* 8 or more */
    unsigned i = HIST_EXACT + (top - 8) * HIST_STEPS + (unsigned)((v >> (top - 7)) - HIST_STEPS);
    return i < HIST_SIZE ? i : HIST_SIZE - 1;
}

/* Upper end of what the index stands for. */
static inline uint64_t hist_value(unsigned i) {
    if (i < HIST_EXACT) return i;
    unsigned octave = (i - HIST_EXACT) / HIST_STEPS, step = (i - HIST_EXACT) % HIST_STEPS;
    return ((uint64_t)(HIST_STEPS + step + 1) << (octave + 1)) - 1;
}

static inline void hist_add(struct histogram* h, uint64_t v) {
    h->total++;
    h->count[hist_index(v)]++;
}

static inline void hist_merge(struct histogram* into, const struct histogram* from) {
    into->total += from->total;
    for (unsigned i = 0; i < HIST_SIZE; i++) into->count[i] += from->count[i];
}

static inline double hist_percentile(const struct histogram* h, double percent) {
    uint64_t due = (uint64_t)((double)h->total * percent / 100.0), seen = 0;
    for (unsigned i = 0; i < HIST_SIZE; i++) {
        seen += h->count[i];
        if (seen > due) return (double)hist_value(i);
    }
    return (double)hist_value(HIST_SIZE - 1);
}

/* ---- calibration ------------------------------------------------------------------------ */

struct timer {
    uint64_t overhead; /* ticks of an empty pair of readings, median */
    double ns_per_tick;
};

static inline struct timer timer_calibrate(void) {
    static struct histogram h;
    memset(&h, 0, sizeof h);
    for (int i = 0; i < 50000; i++) {
        uint64_t t = ticks();
        hist_add(&h, ticks() - t);
    }
    uint64_t ns = now_ns(), t = ticks();
    while (now_ns() - ns < 20000000) {
    }
    double elapsed_ticks = (double)(ticks() - t), elapsed_ns = (double)(now_ns() - ns);
    return (struct timer){.overhead = (uint64_t)hist_percentile(&h, 50), .ns_per_tick = elapsed_ns / elapsed_ticks};
}

static inline uint64_t timer_net(const struct timer* t, uint64_t from, uint64_t to) {
    return to - from > t->overhead ? to - from - t->overhead : 0;
}

static inline double timer_ns(const struct timer* t, const struct histogram* h, double percent) {
    return hist_percentile(h, percent) * t->ns_per_tick;
}

#endif
