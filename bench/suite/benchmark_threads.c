/*
 * benchmark_threads - throughput of 1, 2, 4, 8, 16 threads, part of whose objects other threads free.
 *
 * In a trial every thread allocates its objects (timed), all are verified, then each thread frees its own but for
 * --cross-pct %, and that part of its neighbour's (timed). An allocation and a free are two operations; throughput is all
 * of them over the time of the two timed stretches, each from the first thread's start to the last one's end. One operation in 31 is
 * timed by itself, so that it falls on every place of a group of 32 or 64 slots. Trials give a median and a coefficient of variation. With tslab the locks taken meanwhile are counted.
 *
 * What an operation takes of a thread's time is told in two parts: processor, and waiting (for a processor, a lock, the kernel), which is
 * the rest. With the option sampling_period tslab tells the same of the allocations that it has timed itself.
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
        uint64_t wall, cpu;                   /* of both, of this thread, all trials */
    } at[MOST];
} run;

struct contention {
    uint64_t acquired, contended, retries, slow, scan_checks, scan_switches;
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
        c.acquired += s.bitmap_alloc_attempts - s.bitmap_alloc_cas_retries; /* of banks, in shared mode */
        c.contended += s.bitmap_alloc_cas_retries;
        c.scan_checks = s.scan_adapt_checks; /* the allocator's, in each class */
        c.scan_switches = s.scan_adapt_switches;
    }
    slab_stats_global(suite.a, &g);
    c.retries = g.total_bitmap_free_cas_retries; /* allocations have none: in shared mode they wait for a bank */
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

static uint64_t cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void begin_stretch(struct stretches* at, int stretch) {
    at->from[stretch] = now_ns();
    at->cpu -= cpu_ns();
}

static void end_stretch(struct stretches* at, int stretch) {
    at->cpu += cpu_ns();
    at->to[stretch] = now_ns();
    at->wall += at->to[stretch] - at->from[stretch];
}

static void* work(void* arg) {
    uint64_t t = (uint64_t)(uintptr_t)arg, neighbour = (t + 1) % run.threads, own = objects - objects * cross_pct / 100;
    struct latency *a = &run.latency[2 * t], *f = a + 1;
    struct stretches* at = &run.at[t];
    pthread_barrier_wait(&run.gate);
    begin_stretch(at, 0);
    allocate(t, a);
    end_stretch(at, 0);
    pthread_barrier_wait(&run.gate);
    for (uint64_t i = 0; i < objects; i++) suite_fill(run.list[t][i], size, t * objects + i);
    for (uint64_t i = 0; i < objects; i++) suite_check(run.list[t][i], size, t * objects + i);
    pthread_barrier_wait(&run.gate); /* the neighbour's are verified */
    begin_stretch(at, 1);
    give_back(run.list[t], 0, own, f);
    give_back(run.list[neighbour], own, objects, f);
    end_stretch(at, 1);
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

static uint64_t taken_between(struct contention a, struct contention b) {
    return b.acquired - a.acquired + b.contended - a.contended;
}

/* Of all locks taken in between, in per cent. */
static double contended_pct(struct contention a, struct contention b) {
    uint64_t taken = taken_between(a, b);
    return taken ? 100.0 * (double)(b.contended - a.contended) / (double)taken : 0;
}

/* at[]: before the first trial and after each. */
static void report_contention(const struct contention* at, uint64_t n, uint64_t ops) {
    struct contention before = at[0], now = at[n];
    bool known = suite.tslab && ops;
    report_open("contention");
    report_number("lock_contention_pct", known ? contended_pct(before, now) : NAN);
    double sum = 0, squares = 0;
    for (uint64_t i = 0; i < n; i++) sum += contended_pct(at[i], at[i + 1]);
    double mean = n ? sum / (double)n : 0;
    for (uint64_t i = 0; i < n; i++) squares += pow(contended_pct(at[i], at[i + 1]) - mean, 2);
    report_number("lock_contention_cov_pct",
                  known && n > 1 && mean > 0 ? 100 * sqrt(squares / (double)(n - 1)) / mean : NAN);
    report_number("locks_per_op", known ? (double)taken_between(before, now) / (double)ops : NAN);
    report_number("cas_retries_per_op", known ? (double)(now.retries - before.retries) / (double)ops : NAN);
    report_number("slow_path_pct", known ? 200.0 * (double)(now.slow - before.slow) / (double)ops : NAN);
    report_count("scan_checks", now.scan_checks - before.scan_checks);
    report_count("scan_switches", now.scan_switches - before.scan_switches);
    report_close();
}

static void report_time(uint64_t ops) {
    uint64_t wall = 0, cpu = 0;
    for (uint64_t t = 0; t < run.threads; t++) {
        wall += run.at[t].wall;
        cpu += run.at[t].cpu;
    }
    report_open("time");
    report_number("cpu_ns_per_op", ops ? (double)cpu / (double)ops : NAN);
    report_number("waiting_ns_per_op", ops ? (double)(wall > cpu ? wall - cpu : 0) / (double)ops : NAN);
    report_number("waiting_pct", wall ? 100 * (double)(wall > cpu ? wall - cpu : 0) / (double)wall : NAN);
    report_close();
}

static void report_sampling(const SlabSamplingStats* before) {
    SlabSamplingStats s = {0};
    if (suite.tslab) slab_stats_sampling(suite.a, &s);
    if (s.period == 0) return;
    double n = (double)(s.sum.alloc_samples - before->sum.alloc_samples);
    uint64_t locks = s.lock_samples - before->lock_samples;
    report_open("sampling");
    report_count("allocations", s.sum.alloc_samples - before->sum.alloc_samples);
    report_number("cpu_ns", n > 0 ? (double)(s.sum.alloc_cpu_ns_sum - before->sum.alloc_cpu_ns_sum) / n : NAN);
    report_number("waiting_ns", n > 0 ? (double)(s.sum.alloc_wait_ns_sum - before->sum.alloc_wait_ns_sum) / n : NAN);
    report_count("locks", locks);
    report_number("lock_wait_ns",
                  locks ? (double)(s.lock_wait_ns_sum - before->lock_wait_ns_sum) / (double)locks : NAN);
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
    for (uint64_t t = 0; t < threads; t++) run.at[t].wall = run.at[t].cpu = 0;
    static struct contention contended[MOST_TRIALS + 1];
    SlabSamplingStats sampled = {0};
    if (suite.tslab) slab_stats_sampling(suite.a, &sampled);
    contended[0] = contention_now();
    while (n < trials && !suite_stopped()) {
        throughput[n++] = trial();
        contended[n] = contention_now();
    }
    report_open(NULL);
    report_count("threads", threads);
    report_trials(throughput, n, &median);
    report_contention(contended, n, 2 * objects * threads * n);
    report_time(2 * objects * threads * n);
    report_sampling(&sampled);
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
    struct flag args[] = {
        {.name = "--threads",
         .kind = FLAG_COUNT,
         .to = &most_threads,
         .least = 1,
         .most = MOST,
         .preset = 16,
         .help = "the most threads; runs 1, 2, 4, ... up to it"},
        {.name = "--objects",
         .kind = FLAG_COUNT,
         .to = &objects,
         .least = 1,
         .most = 10000000,
         .preset = 100000,
         .quick = 10000,
         .help = "objects of a thread"},
        {.name = "--size",
         .kind = FLAG_COUNT,
         .to = &size,
         .least = 16,
         .most = 1 << 20,
         .preset = 128,
         .help = "bytes of an object"},
        {.name = "--trials",
         .kind = FLAG_COUNT,
         .to = &trials,
         .least = 1,
         .most = MOST_TRIALS,
         .preset = 10,
         .quick = 3,
         .help = "trials"},
        {.name = "--cross-pct",
         .kind = FLAG_COUNT,
         .to = &cross_pct,
         .most = 100,
         .preset = 50,
         .help = "part of its objects that another thread frees, %"},
        {.name = NULL},
    };
    suite_start(argc, argv, "Scales allocation and freeing, also by other threads, over threads.", args);
    for (uint64_t t = 0; t < most_threads; t++) run.list[t] = harness_memory(objects * sizeof(void*));
    run.latency = harness_memory(2 * MOST * sizeof *run.latency);
    csv_header(CSV_SCALING);
    report_list("scaling");
    for (uint64_t n = 1; n <= most_threads && !suite_stopped(); n *= 2) run_threads(n);
    report_close();
    return suite_finish();
}
