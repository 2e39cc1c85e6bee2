/*
 * applications - what memory takes in four kinds of programs, and the parts of a phase's cost.
 *
 * cold_start  a fresh process makes its state: objects that are written, hashed and entered in a table. The same again with memory
 *             that is there already: what it takes less is memory's share of the start, page faults included.
 * query       objects of a query, about 5.4 MB, and its end; tslab keeps nothing for the next one (warm_bytes = UINT64_MAX), so
 *             that the memory is back with the system when the end returns
 * batch       records of a batch and its end
 * frame       objects of a frame, all of them made and ended; the share of a frame of 1/60 s. scope: the same without objects
 * domain      tslab only: create, enter, exit, destroy; medians. Each call for sixteen domains in a row, so that the clock is read once
 *             for as many. whole: begin and end of one after the other, which takes what it needs from one call to the next.
 *
 * tslab ends objects in bulk, with their phase; malloc frees one by one. Objects are written and verified outside of the clock, but
 * for those of the cold start.
 */
#include <sys/wait.h>

#include "suite.h"

static uint64_t starts, state_objects, queries, query_objects, batches, records, frames, frame_objects, laps;

enum { FRAME_NS = 1000000000 / 60, OPEN = 16, PARTS = 4, MOST_STARTS = 1000 };

/* ---- cold start ---- */

struct cold {
    bool ready; /* memory is there already */
    char *at, *end;
    uint64_t ns, sum;
};

static size_t state_size(uint64_t i) { return 48 + i * 37 % 200; }

static void* cold_get(struct cold* c, size_t size) {
    if (!c->ready) return heap_need(size);
    void* p = c->at;
    c->at += (size + 15) & ~(size_t)15;
    if (c->at > c->end) abort();
    return p;
}

static uint64_t hash_of(const unsigned char* p, size_t size) {
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < size; i++) h = (h ^ p[i]) * 1099511628211u;
    return h;
}

static void make_state(struct cold* c, void** table) {
    for (uint64_t i = 0; i < state_objects; i++) {
        size_t size = state_size(i);
        char* p = cold_get(c, size);
        (void)snprintf(p, size, "setting %llu of so many", (unsigned long long)i);
        memset(p + 40, (int)i, size - 40);
        suite_fill(p, size, i);
        c->sum += hash_of((const unsigned char*)p, size);
        table[i] = p;
    }
}

/* In a child. */
static void start_cold(struct cold* c, void** table) {
    if (c->ready) memset(c->at, 1, (size_t)(c->end - c->at));
    memset(table, 1, state_objects * sizeof *table); /* its pages were the parent's */
    uint64_t start = now_ns();
    if (suite.tslab && !c->ready && !(suite.a = slab_allocator_create())) suite_out_of_memory(0);
    make_state(c, table);
    c->ns = now_ns() - start;
    for (uint64_t i = 0; i < state_objects; i++) suite_check(table[i], state_size(i), i);
}

static bool fork_cold(struct cold* shared, bool ready, char* memory, size_t bytes, void** table) {
    int status = 0;
    *shared = (struct cold){.ready = ready, .at = memory, .end = memory + bytes};
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        start_cold(shared, table);
        _exit(0);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child < 0 || (status != 0 && !suite_stopped())) exit(child < 0 ? 3 : WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    return status == 0;
}

static int by_value(const void* x, const void* y) {
    const double *a = x, *b = y;
    return (*a > *b) - (*a < *b);
}

static double median_of(double* v, uint64_t n) {
    if (n == 0) return NAN;
    qsort(v, n, sizeof *v, by_value);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

static void cold_start(void) {
    static double took[MOST_STARTS], rest[MOST_STARTS];
    size_t bytes = state_objects * 256;
    char* memory = harness_memory(bytes);
    void** table = harness_memory(state_objects * sizeof *table);
    struct cold* shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) suite_out_of_memory(sizeof *shared);
    uint64_t n = 0;
    for (; n < starts && !suite_stopped(); n++) {
        if (!fork_cold(shared, false, memory, bytes, table)) break;
        took[n] = (double)shared->ns / 1000;
        if (!fork_cold(shared, true, memory, bytes, table)) break;
        rest[n] = (double)shared->ns / 1000;
    }
    double all = median_of(took, n), without = median_of(rest, n);
    report_open("cold_start");
    report_count("starts", n);
    report_number("start_us", all);
    report_number("with_memory_there_us", without);
    report_number("memory_pct", n ? 100 * (all - without) / all : NAN);
    report_close();
}

/* ---- phases that are made and ended ---- */

struct phase_times {
    struct latency make, end;
};

static size_t object_size(uint64_t i) { return 32 + i * 7 % 480; }

/* Every object of one phase; the time of the calls that make them, and of the end. `made` runs before the end. */
static void play_phase(SlabAllocator* a, void** list, uint64_t n, struct phase_times* out, void (*made)(epoch_domain_t*)) {
    uint64_t t0 = ticks(), t1, t2;
    epoch_domain_t* d = a ? epoch_domain_begin(a, "phase") : NULL;
    for (uint64_t i = 0; i < n; i++) {
        list[i] = a ? slab_malloc(a, object_size(i)) : malloc(object_size(i));
        if (!list[i]) suite_out_of_memory(object_size(i));
    }
    t1 = ticks();
    latency_add(&out->make, t0, t1);
    for (uint64_t i = 0; i < n; i++) suite_fill(list[i], object_size(i), i);
    for (uint64_t i = 0; i < n; i++) suite_check(list[i], object_size(i), i);
    if (made) made(d);
    t1 = ticks();
    if (a) suite.failed |= !epoch_domain_end(d);
    else
        for (uint64_t i = 0; i < n; i++) free(list[i]);
    t2 = ticks();
    latency_add(&out->end, t1, t2);
}

static uint64_t query_era;

static void see_era(epoch_domain_t* d) { query_era = d ? d->epoch_era : 0; }

/* Committed bytes of the query's epoch: what of it is not back. */
static uint64_t committed_of(SlabAllocator* a, uint64_t era) {
    SlabPhaseStats rows[8];
    size_t n = slab_stats_phases(a, rows, 8);
    for (size_t i = 0; i < n && i < 8; i++)
        if (rows[i].epoch_era == era) return rows[i].committed_bytes;
    return 0;
}

static void query(void** list) {
    static struct phase_times times;
    static double grown[MOST_STARTS];
    SlabOptions options = {.struct_size = sizeof options, .warm_bytes = UINT64_MAX};
    SlabAllocator* a = suite.tslab ? slab_allocator_create_with(&options) : NULL;
    if (suite.tslab && !a) suite_out_of_memory(0);
    uint64_t n = 0, committed = 0;
    for (; n < queries && !suite_stopped(); n++) {
        uint64_t before = rss_now().total, after;
        play_phase(a, list, query_objects, &times, see_era);
        after = rss_now().total;
        grown[n] = after > before ? (double)(after - before) : 0;
        if (a) committed += committed_of(a, query_era);
    }
    report_open("query");
    report_count("queries", n);
    report_number("end_p50_us", latency_at(&times.end, 50) / 1000);
    report_number("end_p99_us", latency_at(&times.end, 99) / 1000);
    report_number("first_grown_kb", n ? grown[0] : NAN);
    report_number("committed_after_kb", a ? (double)committed / 1024 : NAN);
    report_close();
    csv_latency(1, 0, "query_end", &times.end);
    if (a) slab_allocator_free(a);
}

static void batch(void** list) {
    static struct phase_times times;
    uint64_t n = 0;
    for (; n < batches && !suite_stopped(); n++) play_phase(suite.a, list, records, &times, NULL);
    report_open("batch");
    report_count("batches", n);
    report_number("end_p50_us", latency_at(&times.end, 50) / 1000);
    report_number("end_p99_us", latency_at(&times.end, 99) / 1000);
    report_number("make_p50_us", latency_at(&times.make, 50) / 1000);
    report_close();
    csv_latency(1, 0, "batch_end", &times.end);
}

static void frame(void** list) {
    static struct phase_times times, empty;
    uint64_t n = 0;
    for (; n < frames && !suite_stopped(); n++) {
        play_phase(suite.a, list, frame_objects, &times, NULL);
        play_phase(suite.a, list, 0, &empty, NULL);
    }
    double make = latency_at(&times.make, 50), end = latency_at(&times.end, 50);
    report_open("frame");
    report_count("frames", n);
    report_number("make_p50_us", make / 1000);
    report_number("end_p50_us", end / 1000);
    report_number("end_p99_us", latency_at(&times.end, 99) / 1000);
    report_number("memory_pct_of_frame", 100 * (make + end) / FRAME_NS);
    report_number("scope_pct_of_frame", suite.tslab ? 100 * (latency_avg(&empty.make) + latency_avg(&empty.end)) / FRAME_NS : NAN);
    report_close();
    csv_latency(1, 0, "frame_end", &times.end);
}

/* ---- the parts of a phase's cost ---- */

static void time_parts(struct latency* parts, struct latency* whole) {
    epoch_domain_t* d[OPEN];
    uint64_t t[PARTS + 2];
    t[0] = ticks();
    for (int k = 0; k < OPEN; k++)
        if (!(d[k] = epoch_domain_create_labeled(suite.a, "parts"))) suite_out_of_memory(0);
    t[1] = ticks();
    for (int k = 0; k < OPEN; k++) epoch_domain_enter(d[k]);
    t[2] = ticks();
    for (int k = OPEN - 1; k >= 0; k--) epoch_domain_exit(d[k]);
    t[3] = ticks();
    for (int k = 0; k < OPEN; k++) epoch_domain_destroy(d[k]);
    t[4] = ticks();
    for (int k = 0; k < OPEN; k++) epoch_domain_end(epoch_domain_begin(suite.a, "parts"));
    t[5] = ticks();
    for (int k = 0; k < PARTS; k++) latency_add(&parts[k], t[k], t[k + 1]);
    latency_add(whole, t[4], t[5]);
}

static void domain(void) {
    static const char* const names[PARTS] = {"create_ns", "enter_ns", "exit_ns", "destroy_ns"};
    static struct latency parts[PARTS], whole;
    double sum = 0;
    if (!suite.tslab) return;
    for (uint64_t i = 0; i < laps && !suite_stopped(); i++) time_parts(parts, &whole);
    report_open("domain");
    for (int k = 0; k < PARTS; k++) {
        double ns = latency_at(&parts[k], 50) / OPEN;
        sum += ns;
        report_number(names[k], ns);
    }
    report_number("sum_ns", sum);
    report_number("whole_ns", latency_at(&whole, 50) / OPEN);
    report_close();
}

int main(int argc, char** argv) {
    struct flag args[] = {
        {.name = "--starts", .kind = FLAG_COUNT, .to = &starts, .least = 1, .most = MOST_STARTS, .preset = 50, .quick = 10, .help = "cold starts"},
        {.name = "--state", .kind = FLAG_COUNT, .to = &state_objects, .least = 1, .most = 10000000, .preset = 20000, .help = "objects that a start makes"},
        {.name = "--queries", .kind = FLAG_COUNT, .to = &queries, .least = 1, .most = MOST_STARTS, .preset = 100, .quick = 20, .help = "queries"},
        {.name = "--query-objects", .kind = FLAG_COUNT, .to = &query_objects, .least = 1, .most = 10000000, .preset = 20000, .help = "objects of a query"},
        {.name = "--batches", .kind = FLAG_COUNT, .to = &batches, .least = 1, .most = 100000, .preset = 50, .quick = 10, .help = "batches"},
        {.name = "--records", .kind = FLAG_COUNT, .to = &records, .least = 1, .most = 10000000, .preset = 100000, .help = "records of a batch"},
        {.name = "--frames", .kind = FLAG_COUNT, .to = &frames, .least = 1, .most = 1000000, .preset = 600, .quick = 120, .help = "frames"},
        {.name = "--frame-objects", .kind = FLAG_COUNT, .to = &frame_objects, .least = 1, .most = 10000000, .preset = 3000, .help = "objects of a frame"},
        {.name = "--laps", .kind = FLAG_COUNT, .to = &laps, .least = 1, .most = 10000000, .preset = 50000, .quick = 5000, .help = "of sixteen domains"},
        {.name = NULL},
    };
    suite_start(argc, argv, "Shows what memory takes in a cold start, a query, a batch and a frame.", args);
    uint64_t most = records > query_objects ? records : query_objects;
    void** list = harness_memory((most > frame_objects ? most : frame_objects) * sizeof *list);
    csv_header(CSV_LATENCY);
    cold_start();
    query(list);
    batch(list);
    frame(list);
    domain();
    return suite_finish();
}
