/* sample.c - see sample.h. */
#include "observe/sample.h"

#include "os/clock.h"

#include <pthread.h>
#include <string.h>

enum { SKEW_NS = 50000, ROUNDS = 256 };

/* Times between two readings, or the cost of the readings themselves. */
typedef struct Elapsed {
    uint64_t cpu, wall, whole; /* whole: wall clock, with the second reading of the processor clock */
    uint64_t slept;
} Elapsed;

static Elapsed cost;
static pthread_once_t calibrated = PTHREAD_ONCE_INIT;

TsiStopwatch tsi_sample_start(void) {
    TsiStopwatch watch = {tsi_os.thread_ns(), 0, tsi_lock_slept_ns};
    watch.wall = tsi_os.now_ns();
    return watch;
}

/* Returns the ns since the readings `since`: processor time, wall clock before and after the second reading of the
 * processor time, and sleep for our locks. [own thread, needs no lock] */
static Elapsed elapsed(TsiStopwatch since) {
    uint64_t wall = tsi_clock_between(since.wall, tsi_os.now_ns()), cpu = tsi_os.thread_ns() - since.cpu;
    return (Elapsed){cpu, wall, tsi_clock_between(since.wall, tsi_os.now_ns()), tsi_lock_slept_ns - since.slept};
}

/* Returns the smaller one of a and b. [any thread, needs no lock] */
static uint64_t least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Sets each time of `cost` to the least of ROUNDS (256) samples of nothing, which begin and end at once, and its sleep
 * to 0. [pthread_once] */
static void calibrate(void) {
    cost = (Elapsed){UINT64_MAX, UINT64_MAX, UINT64_MAX, 0};
    for (unsigned n = 0; n < ROUNDS; n++) {
        Elapsed e = elapsed(tsi_sample_start());
        cost = (Elapsed){least(cost.cpu, e.cpu), least(cost.wall, e.wall), least(cost.whole, e.whole), 0};
    }
}

void tsi_sample_calibrate(void) { (void)pthread_once(&calibrated, calibrate); }

/* Returns a - b, or 0 if b is larger. [any thread, needs no lock] */
static uint64_t less(uint64_t a, uint64_t b) { return a > b ? a - b : 0; }

/* Adds v to *sum. If v is 0 nothing is written: that would fetch a page. [the one writer of *sum] */
static void add(_Atomic uint64_t* sum, uint64_t v) {
    if (v != 0) tsi_store_relaxed(sum, tsi_load_relaxed(sum) + v);
}

/* Raises *max to v if it is less; otherwise writes nothing. [the one writer of *max] */
static void rise(_Atomic uint64_t* max, uint64_t v) {
    if (v > tsi_load_relaxed(max)) tsi_store_relaxed(max, v);
}

/* Ends a sample that began with the readings `since`: adds its wall, cpu and wait time in ns to samples->sum[at] and
 * the two behind, raises the maxima from sum[at + 3] on, and sets `out` to the three times. Returns true; false if the
 * clocks contradict each other: it is counted as dropped, and `out` is left alone. at: TSI_SAMPLE_ALLOC + 1 or
 * TSI_SAMPLE_REPAIR + 1. [own thread, needs no lock] */
static bool book(TsiSamples* samples, unsigned at, TsiStopwatch since, uint64_t out[3]) {
    Elapsed e = elapsed(since);
    uint64_t wall = less(e.wall, cost.wall), ran = less(e.cpu, cost.cpu), whole = less(e.whole, cost.whole);
    if (ran > whole + SKEW_NS) {
        add(&samples->dropped, 1);
        return false;
    }

    uint64_t cpu = least(ran, wall), wait = less(wall, cpu + e.slept), late = less(whole, ran + e.slept + wait);

    _Atomic uint64_t* read = &samples->read[at > TSI_SAMPLE_REPAIR];
    add(read, e.cpu);
    uint64_t all = tsi_load_relaxed(read); /* 0 while a coarse clock has not moved */
    uint64_t its = all != 0 ? tsi_share(late, tsi_load_relaxed(&samples->sum[at + 1]) + cpu, all) : 0;
    wait += its;

    uint64_t v[3] = {wall + its, cpu, wait};
    for (unsigned n = 0; n < 3; n++) {
        add(&samples->sum[at + n], v[n]);
        rise(&samples->sum[at + 3 + n], v[n]);
    }
    memcpy(out, v, sizeof v);
    return true;
}

bool tsi_sample_stop_alloc(TsiBinding* b, TsiStopwatch since, uint64_t ns[3]) {
    if (!book(&b->samples, TSI_SAMPLE_ALLOC + 1, since, ns)) return false;
    add(&b->samples.sum[TSI_SAMPLE_ALLOC], 1);
    add(&b->samples.alloc_wall[tsi_latency_bucket(ns[0])], 1);
    return true;
}

void tsi_sample_label(TsiBinding* b, TsiRef of, const uint64_t ns[3]) {
    const TsiPhases* phases = &b->arena->phases;
    uint32_t at = tsi_ref_is_current(phases, of) ? tsi_inc_label(tsi_inc(phases, tsi_ref_index(of))) : TSI_LABEL_NONE;
    TsiLabelShard* shard = &tsi_label(&phases->labels, at)->shard[b->index % TSI_LABEL_SHARDS];
    tsi_add_relaxed(&shard->samples, 1);
    for (unsigned n = 0; n < 3; n++) tsi_add_relaxed(&shard->sample_ns[n], ns[n]);
}

void tsi_sample_repair(TsiBinding* b, unsigned why, TsiStopwatch since) {
    uint64_t ns[3];
    add(&b->samples.sum[TSI_SAMPLE_REPAIR], 1);
    add(&b->samples.sum[TSI_SAMPLE_REASON + why], 1);
    if (b->period != 0) (void)book(&b->samples, TSI_SAMPLE_REPAIR + 1, since, ns);
}

bool tsi_sample_due(TsiBinding* b) {
    if (--b->slow_left != 0) return false;
    /* Within a quarter either way, so that no loop of the program keeps step with it. */
    b->dice = b->dice * 1664525u + 1013904223u;
    uint32_t span = b->period / 2 + 1;
    b->slow_left = b->period - b->period / 4 + (uint32_t)(((uint64_t)b->dice * span) >> 32);
    return true;
}

void tsi_samples_fold(TsiSamples* to, TsiSamples* from) {
    for (unsigned n = 0; n < TSI_SAMPLE_SUMS; n++) {
        bool max_of_allocs = n >= TSI_SAMPLE_ALLOC + 4 && n < TSI_SAMPLE_REPAIR;
        bool max_of_repairs = n >= TSI_SAMPLE_REPAIR + 4 && n < TSI_SAMPLE_REASON;
        if (max_of_allocs || max_of_repairs) rise(&to->sum[n], tsi_load_relaxed(&from->sum[n]));
        else add(&to->sum[n], tsi_load_relaxed(&from->sum[n]));
    }
    add(&to->dropped, tsi_load_relaxed(&from->dropped));
    tsi_lock_stats_fold(&to->locks, &from->locks);
    for (unsigned n = 0; n < TSI_LATENCY_BUCKETS; n++) add(&to->alloc_wall[n], tsi_load_relaxed(&from->alloc_wall[n]));
}
