/*
 * benchmark_accurate - three plain numbers, each by itself: resident bytes per object, latency of a call, bytes lost inside
 * objects.
 *
 * Latency is taken in the second of two identical rounds, so that faults of fresh memory are in neither. Resident memory is
 * taken in a child process that does nothing else. The third is a table: what 25 sizes are rounded to, by what the
 * allocator itself calls usable. (For glibc that leaves out its 8 byte header, which resident memory includes.)
 */
#include <malloc.h>
#include <sys/wait.h>

#include "suite.h"

static uint64_t rss_objects, ops, size;
static struct flag_file fragmentation_csv;

static const uint16_t requested[25] = {16,  24,  32,  48,  56,  64,  72,  80,  96,  100, 112, 128, 144,
                                       160, 192, 200, 224, 256, 300, 320, 384, 400, 512, 600, 768};

/* ---- resident memory ---- */

struct resident {
    uint64_t before_kb, full_kb, freed_kb, closed_kb;
};

static void fill_and_free(struct resident* out) {
    void** list = harness_memory(rss_objects * sizeof *list);
    if (suite.tslab && !(suite.a = slab_allocator_create())) suite_out_of_memory(0);
    out->before_kb = rss_now().total;
    for (uint64_t i = 0; i < rss_objects; i++) {
        list[i] = heap_need(size);
        suite_fill(list[i], size, i);
    }
    out->full_kb = rss_now().total;
    for (uint64_t i = 0; i < rss_objects; i++) {
        suite_check(list[i], size, i);
        heap_free(list[i]);
    }
    out->freed_kb = rss_now().total;
    heap_next_phase();
    out->closed_kb = rss_now().total;
}

static void measure_resident(void) {
    struct resident* r = mmap(NULL, sizeof *r, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status = 0;
    if (r == MAP_FAILED) suite_out_of_memory(sizeof *r);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        fill_and_free(r);
        _exit(suite.tslab && suite_refusals() ? 1 : 0);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child < 0 || status != 0) {
        fprintf(stderr, "%s: the measurement of resident memory failed\n", suite.program);
        exit(WIFEXITED(status) && WEXITSTATUS(status) == 3 ? 3 : 1);
    }
    double payload = (double)(rss_objects * size) / 1024, used = (double)r->full_kb - (double)r->before_kb;
    report_open("rss");
    report_count("objects", rss_objects);
    report_count("before_kb", r->before_kb);
    report_count("full_kb", r->full_kb);
    report_count("freed_kb", r->freed_kb);
    report_count("closed_kb", r->closed_kb);
    report_number("bytes_per_object", used * 1024 / (double)rss_objects);
    report_number("overhead_pct", 100 * (used / payload - 1));
    report_close();
}

/* ---- latency ---- */

static void round_of_calls(void** list, struct latency* a, struct latency* f) {
    for (uint64_t i = 0; i < ops && !suite_stopped(); i++) {
        uint64_t t = ticks();
        void* p = heap_alloc(size);
        latency_add(a, t, ticks());
        if (!p) suite_out_of_memory(size);
        suite_fill(p, size, i);
        list[i] = p;
    }
    for (uint64_t i = 0; i < a->h.total; i++) {
        suite_check(list[i], size, i);
        uint64_t t = ticks();
        heap_free(list[i]);
        latency_add(f, t, ticks());
    }
}

static void measure_latency(void) {
    static struct latency a, f;
    void** list = harness_memory(ops * sizeof *list);
    round_of_calls(list, &a, &f);
    memset(&a, 0, sizeof a);
    memset(&f, 0, sizeof f);
    round_of_calls(list, &a, &f);
    report_open("latency");
    report_latency("alloc", &a);
    report_latency("free", &f);
    report_histograms(&a, &f);
    report_close();
    csv_latency(1, size, "alloc", &a);
    csv_latency(1, size, "free", &f);
}

/* ---- internal fragmentation ---- */

static size_t rounded_size(size_t n) {
    void* p = heap_need(n);
    size_t usable = suite.tslab ? slab_usable_size(suite.a, p) : malloc_usable_size(p);
    heap_free(p);
    return usable;
}

static void measure_fragmentation(void) {
    FILE* to = fragmentation_csv.asked ? suite_file(&fragmentation_csv) : NULL;
    uint64_t asked = 0, got = 0, asked_eight = 0, got_eight = 0;
    if (to) fprintf(to, "%s\n", CSV_FRAGMENTATION);
    report_list("fragmentation");
    for (size_t i = 0; i < COUNT_OF(requested); i++) {
        uint64_t n = requested[i], rounded = rounded_size(n);
        double efficiency = 100.0 * (double)n / (double)rounded;
        asked += n;
        got += rounded;
        asked_eight += n > 48 ? n : 0;
        got_eight += n > 48 ? rounded : 0;
        report_open(NULL);
        report_count("requested", n);
        report_count("rounded", rounded);
        report_count("wasted", rounded - n);
        report_number("efficiency_pct", efficiency);
        report_close();
        if (to)
            fprintf(to, "%s,%llu,%llu,%llu,%llu,%.2f\n", csv_name(), (unsigned long long)rounded, (unsigned long long)n,
                    (unsigned long long)rounded, (unsigned long long)(rounded - n), efficiency);
    }
    report_close();
    report_open("efficiency");
    report_number("all_sizes_pct", 100.0 * (double)asked / (double)got);
    report_number("above_48_bytes_pct", 100.0 * (double)asked_eight / (double)got_eight);
    report_close();
    if (to && to != stdout && fclose(to) != 0) suite.failed = true;
}

int main(int argc, char** argv) {
    struct flag args[] = {
        {.name = "--objects", .kind = FLAG_COUNT, .to = &rss_objects, .least = 1, .most = 100000000, .preset = 2000000, .quick = 100000, .help = "objects whose resident memory is measured"},
        {.name = "--ops", .kind = FLAG_COUNT, .to = &ops, .least = 1, .most = 100000000, .preset = 1000000, .quick = 100000, .help = "timed allocations, and as many frees"},
        {.name = "--size", .kind = FLAG_COUNT, .to = &size, .least = 16, .most = 1 << 20, .preset = 128, .help = "bytes of an object"},
        {.name = "--fragmentation-csv", .kind = FLAG_FILE, .to = &fragmentation_csv, .help = "the table of sizes as CSV"},
        {.name = NULL},
    };
    suite_start(argc, argv, "Measures resident bytes per object, latency of calls, and internal fragmentation.", args);
    if (fragmentation_csv.asked && !fragmentation_csv.path) return flags_wrong("--fragmentation-csv needs a FILE"), 2;
    csv_header(CSV_LATENCY);
    measure_resident();
    measure_latency();
    measure_fragmentation();
    return suite_finish();
}
