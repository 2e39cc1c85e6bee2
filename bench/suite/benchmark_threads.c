/*
 * benchmark_threads - throughput of 1, 2, 4, 8, 16 threads, part of whose objects other threads free.
 *
 * In a trial every thread allocates its objects (timed), all are verified, then each thread frees its own but for
 * --cross-pct %, and that part of its neighbour's (timed). An allocation and a free are two operations; throughput is all
 * of them over the time of the two timed stretches, each from the first thread's start to the last one's end. One operation in 31 is
 * timed by itself, so that it falls on every place of a group of 32 or 64 slots. Trials give a median and a coefficient of variation. With tslab the locks taken meanwhile are counted.
 */
#include "suite.h"

static uint64_t most_threads, objects, size, trials, cross_pct;

enum { MOST = 64, MOST_TRIALS = 100, SAMPLE = 31 };

static struct {
    pthread_barrier_t gate;
    void** list[MOST];
    struct latency* latency; /* alloc and free of each thread */
    uint64_t threads;
    struct stretches {
        _Alignas(64) uint64_t from[2], to[2]; /* allocating, freeing */
    } at[MOST];
} run;

struct contention {
    uint64_t acquired, contended, retries, slow;
};

static struct contention contention_now(void) {
    struct contention c = {0};
    SlabClassStats s;
    SlabGlobalStats g;
    if (!suite.tslab) return c;
    for (uint32_t i = 0;; i++) {
        slab_stats_class(suite.a, i, &s);
        if (s.version == 0) break;
        c.acquired += s.lock_fast_acquire;
        c.contended += s.lock_contended;
    }
    slab_stats_global(suite.a, &g);
    c.retries = g.total_bitmap_alloc_cas_retries + g.total_bitmap_free_cas_retries;
    c.slow = g.total_slow_path_hits;
    return c;
}

static void allocate(uint64_t t, struct latency* l) {
    void** list = run.list[t];
    for (uint64_t i = 0; i < objects; i++) {
        if (i % SAMPLE == 0) {
            uint64_t from = ticks();
            list[i] = heap_alloc(size);
            latency_add(l, from, ticks());
        } else {
            list[i] = heap_alloc(size);
        }
        if (!list[i]) suite_out_of_memory(size);
        touch(list[i]);
    }
}

static void give_back(void** list, uint64_t from, uint64_t to, struct latency* l) {
    for (uint64_t i = from; i < to; i++) {
        if (i % SAMPLE == 0) {
            uint64_t t = ticks();
            heap_free(list[i]);
            latency_add(l, t, ticks());
        } else {
            heap_free(list[i]);
        }
    }
}

static void* work(void* arg) {
    uint64_t t = (uint64_t)(uintptr_t)arg, neighbour = (t + 1) % run.threads, own = objects - objects * cross_pct / 100;
    struct latency *a = &run.latency[2 * t], *f = a + 1;
    struct stretches* at = &run.at[t];
    pthread_barrier_wait(&run.gate);
    at->from[0] = now_ns();
    allocate(t, a);
    at->to[0] = now_ns();
    pthread_barrier_wait(&run.gate);
    for (uint64_t i = 0; i < objects; i++) suite_fill(run.list[t][i], size, t * objects + i);
    for (uint64_t i = 0; i < objects; i++) suite_check(run.list[t][i], size, t * objects + i);
    pthread_barrier_wait(&run.gate); /* the neighbour's are verified */
    at->from[1] = now_ns();
    give_back(run.list[t], 0, own, f);
    give_back(run.list[neighbour], own, objects, f);
    at->to[1] = now_ns();
    return NULL;
}

static uint64_t timed_ns(int stretch) {
    uint64_t from = UINT64_MAX, to = 0;
    for (uint64_t t = 0; t < run.threads; t++) {
        if (run.at[t].from[stretch] < from) from = run.at[t].from[stretch];
        if (run.at[t].to[stretch] > to) to = run.at[t].to[stretch];
    }
    return to - from;
}

/* Operations a second. */
static double trial(void) {
    pthread_t ids[MOST];
    pthread_barrier_init(&run.gate, NULL, (unsigned)run.threads);
    for (uint64_t t = 0; t < run.threads; t++) ids[t] = suite_thread(work, (void*)(uintptr_t)t);
    for (uint64_t t = 0; t < run.threads; t++) pthread_join(ids[t], NULL);
    pthread_barrier_destroy(&run.gate);
    return 2.0 * (double)objects * (double)run.threads * 1e9 / (double)(timed_ns(0) + timed_ns(1));
}

static int by_value(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return (x > y) - (x < y);
}

static void report_trials(double* throughput, uint64_t n, double* median) {
    double sum = 0, squares = 0;
    report_list("trials_ops_per_second");
    for (uint64_t i = 0; i < n; i++) {
        report_number(NULL, throughput[i]);
        sum += throughput[i];
    }
    report_close();
    double mean = n ? sum / (double)n : NAN;
    for (uint64_t i = 0; i < n; i++) squares += (throughput[i] - mean) * (throughput[i] - mean);
    qsort(throughput, n, sizeof *throughput, by_value);
    *median = n ? (throughput[n / 2] + throughput[(n - 1) / 2]) / 2 : NAN;
    report_number("median_ops_per_second", *median);
    report_number("cov_pct", n > 1 ? 100 * sqrt(squares / (double)(n - 1)) / mean : NAN);
}

static void report_contention(struct contention before, uint64_t ops) {
    struct contention now = contention_now();
    uint64_t taken = now.acquired - before.acquired + now.contended - before.contended;
    bool known = suite.tslab && ops;
    report_open("contention");
    report_number("lock_contention_pct", known && taken ? 100.0 * (double)(now.contended - before.contended) / (double)taken : known ? 0 : NAN);
    report_number("locks_per_op", known ? (double)taken / (double)ops : NAN);
    report_number("cas_retries_per_op", known ? (double)(now.retries - before.retries) / (double)ops : NAN);
    report_number("slow_path_pct", known ? 200.0 * (double)(now.slow - before.slow) / (double)ops : NAN);
    report_close();
}

static void run_threads(uint64_t threads) {
    static struct latency merged;
    double throughput[MOST_TRIALS], median;
    uint64_t n = 0;
    run.threads = threads;
    memset(run.latency, 0, 2 * MOST * sizeof *run.latency);
    memset(&merged, 0, sizeof merged);
    (void)trial(); /* brings memory into its steady state */
    memset(run.latency, 0, 2 * MOST * sizeof *run.latency);
    struct contention before = contention_now();
    while (n < trials && !suite_stopped()) throughput[n++] = trial();
    report_open(NULL);
    report_count("threads", threads);
    report_trials(throughput, n, &median);
    report_contention(before, 2 * objects * threads * n);
    report_open("latency");
    for (uint64_t t = 0; t < threads; t++) latency_merge(&merged, &run.latency[2 * t]);
    report_latency("alloc", &merged);
    for (uint64_t t = 0; t < threads; t++) latency_merge(&merged, &run.latency[2 * t + 1]);
    report_latency("both", &merged);
    report_close();
    report_close();
    if (suite.csv_to && n)
        fprintf(suite.csv_to, "%s,%llu,%.0f,%.2f,%.2f,%.2f,%.2f\n", csv_name(), (unsigned long long)threads, median,
                latency_avg(&merged), latency_at(&merged, 50), latency_at(&merged, 95), latency_at(&merged, 99));
}

int main(int argc, char** argv) {
    const struct arg args[] = {
        {.name = "--threads", .kind = ARG_NUMBER, .to = &most_threads, .least = 1, .most = MOST, .preset = 16, .help = "the most threads; runs 1, 2, 4, ... up to it"},
        {.name = "--objects", .kind = ARG_NUMBER, .to = &objects, .least = 1, .most = 10000000, .preset = 100000, .quick = 10000, .help = "objects of a thread"},
        {.name = "--size", .kind = ARG_NUMBER, .to = &size, .least = 16, .most = 1 << 20, .preset = 128, .help = "bytes of an object"},
        {.name = "--trials", .kind = ARG_NUMBER, .to = &trials, .least = 1, .most = MOST_TRIALS, .preset = 10, .quick = 3, .help = "trials"},
        {.name = "--cross-pct", .kind = ARG_NUMBER, .to = &cross_pct, .most = 100, .preset = 50, .help = "part of its objects that another thread frees, %"},
    };
    suite_start(argc, argv, "Scales allocation and freeing, also by other threads, over threads.", args, COUNT_OF(args));
    for (uint64_t t = 0; t < most_threads; t++) run.list[t] = harness_memory(objects * sizeof(void*));
    run.latency = harness_memory(2 * MOST * sizeof *run.latency);
    csv_header(CSV_SCALING);
    report_list("scaling");
    for (uint64_t n = 1; n <= most_threads && !suite_stopped(); n *= 2) run_threads(n);
    report_close();
    return suite_finish();
}
