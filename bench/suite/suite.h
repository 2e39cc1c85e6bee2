/*
 * suite.h - what the programs of the comparison suite share: start and finish, the allocator switch, objects that can be
 * verified, latencies, CSV rows.
 *
 * A program calls suite_start with its table of flags, works until suite_stopped(), puts what it found between the
 * report_* calls, and returns suite_finish(). `--allocator malloc` is whatever answers malloc in the process: the C
 * library, or a peer that was preloaded. The switch is one branch that is always taken the same way.
 *
 * Every object is written, its first and last eight bytes with a stamp made of its number; suite_check compares before
 * an object is freed. A mismatch ends the program with status 1.
 */
#ifndef SUITE_H
#define SUITE_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>

#include "../measure.h"
#include "common/flags.h"
#include "epoch_domain.h"
#include "proc.h"
#include "report.h"
#include "slab_alloc.h"
#include "slab_stats.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Headers of the CSV files; scripts read these columns. */
#define CSV_LATENCY "allocator,threads,size_class,op,avg_ns,p50_ns,p95_ns,p99_ns,p999_ns"
#define CSV_FRAGMENTATION "allocator,size_class,requested,rounded,wasted,efficiency_pct"
#define CSV_SCALING "allocator,threads,throughput_ops_sec,avg_ns,p50_ns,p95_ns,p99_ns"
#define CSV_RSS "allocator,cycle,rss_mib,slabs_allocated,slabs_recycled,slabs_overflowed"

static struct {
    const char *program, *what;
    const char* allocator; /* the word of --allocator */
    bool tslab, quick, inject;
    uint64_t seed;
    struct flag_file json, csv;
    FILE* csv_to;
    SlabAllocator* a;
    struct timer timer;
    bool finished;
    bool failed; /* a check of the program's own */
} suite;

static volatile sig_atomic_t suite_signal;

static void suite_on_signal(int number) { suite_signal = number; }

/* Somebody pressed ctrl-C: stop working, report what is done. */
static inline bool suite_stopped(void) { return suite_signal != 0; }

/* ---- start ------------------------------------------------------------------------------ */

static FILE* suite_file(const struct flag_file* f) {
    FILE* to = f->path ? fopen(f->path, "w") : stdout;
    if (to) return to;
    fprintf(stderr, "%s: cannot write '%s': %s\n", suite.program, f->path, strerror(errno));
    exit(1);
}

static void suite_streams(void) {
    if (suite.json.asked && suite.csv.asked && !suite.json.path && !suite.csv.path) {
        (void)flags_wrong("only one of --json and --csv can go to standard output; give the other a FILE");
        exit(2);
    }
    if (suite.json.asked && suite.json.path) fclose(suite_file(&suite.json)); /* fail now, not after the work */
    if (suite.csv.asked) suite.csv_to = suite_file(&suite.csv);
}

static void suite_allocator(void) {
    suite.tslab = !strcmp(suite.allocator, "tslab") || !strcmp(suite.allocator, "temporal_slab");
    if (!suite.tslab) return;
    suite.a = slab_allocator_create();
    if (suite.a) return;
    fprintf(stderr, "%s: no allocator: %s\n", suite.program, slab_last_error());
    exit(3);
}

/* The head of the report: what was run. */
static void suite_head(const struct flag* args) {
    const char* preload = getenv("LD_PRELOAD");
    report_open(NULL);
    report_word("program", suite.program);
    report_word("allocator", suite.tslab ? "tslab" : "malloc");
    report_word("tslab_version", suite.tslab ? slab_version() : NULL);
    report_word("preload", preload && *preload ? strrchr(preload, '/') ? strrchr(preload, '/') + 1 : preload : NULL);
    report_count("seed", suite.seed);
    report_bool("quick", suite.quick);
    report_open("arguments");
    for (const struct flag* f = args; f->name; f++) {
        const char* key = f->name + (f->name[0] == '-' ? 2 : 0);
        if (f->kind == FLAG_COUNT) report_count(key, *(uint64_t*)f->to);
        if (f->kind == FLAG_WORD) report_word(key, *(const char**)f->to);
        if (f->kind == FLAG_SWITCH) report_bool(key, *(bool*)f->to);
    }
    report_close();
}

static void suite_help(const struct command_line* c) {
    printf("usage: %s [options]", c->program);
    for (const struct flag* f = c->tables[0]; f->name; f++)
        if (f->name[0] != '-') printf(" [%s]", f->name);
    printf("\n%s\n\n", suite.what);
    flags_print(c, c->tables[0]);
    flags_print(c, c->tables[1]);
    printf("  --help                 this text\n  --version              the version of temporal-slab\n"
           "Exit status: 0; 1 contents were damaged or output failed; 2 wrong arguments; 3 out of memory; 130 interrupted.\n");
}

/* Words are the first of theirs, numbers what --quick has, where nothing is given. */
static void suite_presets(struct flag* args) {
    for (struct flag* f = args; f->name; f++) {
        if (f->kind == FLAG_WORD && !f->given) *(const char**)f->to = f->words[0];
        if (f->kind == FLAG_COUNT && !f->given && suite.quick && f->quick) *(uint64_t*)f->to = f->quick;
    }
}

/* What a program has, beside what all have: its arguments are words that may be left out from the right, and flags. */
static void suite_start(int argc, char** argv, const char* what, struct flag* args) {
    struct flag common[] = {
        {.name = "--allocator", .kind = FLAG_WORD, .to = &suite.allocator, .words = FLAG_WORDS("tslab", "malloc", "temporal_slab", "system_malloc"), .help = "allocator under test"},
        {.name = "--seed", .kind = FLAG_COUNT, .to = &suite.seed, .preset = 1, .help = "of the random numbers"},
        {.name = "--json", .kind = FLAG_FILE, .to = &suite.json, .help = "results as JSON"},
        {.name = "--csv", .kind = FLAG_FILE, .to = &suite.csv, .help = "rows as CSV"},
        {.name = "--quick", .kind = FLAG_SWITCH, .to = &suite.quick, .help = "little work: whether it runs, not how fast"},
        {.name = "--inject-corruption", .kind = FLAG_SWITCH, .to = &suite.inject, .help = "damage one object, which has to be found"},
        {.name = NULL},
    };
    suite.program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
    suite.what = what;
    int status = flags_read(&(struct command_line){suite.program, slab_version(), suite_help, 25, ' ', {args, common}, argc, argv});
    if (status >= 0) exit(status);
    suite_presets(args);
    suite_presets(common);
    suite_streams();
    struct sigaction action = {.sa_handler = suite_on_signal, .sa_flags = (int)SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    suite.timer = timer_calibrate();
    suite_allocator();
    suite_head(args);
}

/* ---- the allocator ---------------------------------------------------------------------- */

static inline void* heap_alloc(size_t size) { return suite.tslab ? slab_malloc(suite.a, size) : malloc(size); }

static inline void heap_free(void* p) {
    if (suite.tslab) slab_free(suite.a, p);
    else free(p);
}

static _Noreturn __attribute__((cold, noinline)) void suite_out_of_memory(size_t size) {
    fprintf(stderr, "%s: out of memory (%zu bytes)\n", suite.program, size);
    exit(3);
}

static inline void* heap_need(size_t size) {
    void* p = heap_alloc(size);
    if (__builtin_expect(p == NULL, 0)) suite_out_of_memory(size);
    return p;
}

/* Ends the phase that slab_malloc fills by itself and begins the next. malloc has no phases. */
static inline void heap_next_phase(void) {
    if (!suite.tslab) return;
    EpochId ended = epoch_current(suite.a);
    epoch_advance(suite.a);
    epoch_close(suite.a, ended);
}

/* What the allocator holds, KiB: committed bytes, or for malloc what is anonymous and not the harness. */
static inline uint64_t heap_committed_kb(void) {
    SlabGlobalStats g;
    uint64_t anon = rss_now().anon, harness = harness_bytes / 1024;
    if (!suite.tslab) return anon > harness ? anon - harness : 0;
    slab_stats_global(suite.a, &g);
    return g.committed_bytes / 1024;
}

static inline const char* heap_committed_is(void) {
    return suite.tslab ? "slabs and large objects held by the allocator" : "anonymous resident memory less the harness";
}

/* ---- objects that can be verified -------------------------------------------------------- */

static inline uint64_t suite_stamp_of(uint64_t number) { return (number + suite.seed) * 0x9e3779b97f4a7c15u + 1; }

/* Writes one byte a cache line and the stamp; size 16 at least. */
static inline void suite_fill(void* p, size_t size, uint64_t number) {
    uint64_t stamp = suite_stamp_of(number);
    touch_lines(p, size);
    memcpy(p, &stamp, 8);
    memcpy((char*)p + size - 8, &stamp, 8);
    keep(p);
}

static inline void suite_check(void* p, size_t size, uint64_t number) {
    static _Atomic bool injected;
    uint64_t stamp = suite_stamp_of(number), first, last;
    if (__builtin_expect(suite.inject, 0) && !atomic_exchange(&injected, true)) ((volatile char*)p)[size - 1] ^= 1;
    memcpy(&first, p, 8);
    memcpy(&last, (char*)p + size - 8, 8);
    if (__builtin_expect(first == stamp && last == stamp, 1)) return;
    fprintf(stderr, "%s: object %llu of %zu bytes at %p was damaged\n", suite.program, (unsigned long long)number, size, p);
    exit(1);
}

/* ---- latencies --------------------------------------------------------------------------- */

struct latency {
    struct histogram h;
    uint64_t sum, max; /* ticks */
};

static inline void latency_add(struct latency* l, uint64_t from, uint64_t to) {
    uint64_t net = timer_net(&suite.timer, from, to);
    hist_add(&l->h, net);
    l->sum += net;
    if (net > l->max) l->max = net;
}

static inline void latency_merge(struct latency* to, const struct latency* from) {
    for (unsigned i = 0; i < HIST_SIZE; i++) to->h.count[i] += from->h.count[i];
    to->h.total += from->h.total;
    to->sum += from->sum;
    if (from->max > to->max) to->max = from->max;
}

static inline double latency_avg(const struct latency* l) {
    return l->h.total ? (double)l->sum * suite.timer.ns_per_tick / (double)l->h.total : NAN;
}

static inline double latency_at(const struct latency* l, double percent) {
    return l->h.total ? timer_ns(&suite.timer, &l->h, percent) : NAN;
}

static inline double latency_max(const struct latency* l) { return (double)l->max * suite.timer.ns_per_tick; }

/* prefix_avg_ns, prefix_p50_ns, ... into the object that is open. */
static inline void report_latency(const char* prefix, const struct latency* l) {
    static const struct {
        const char* name;
        double percent;
    } points[] = {{"p50", 50}, {"p95", 95}, {"p99", 99}, {"p999", 99.9}, {"p9999", 99.99}};
    char key[64];
    (void)snprintf(key, sizeof key, "%s_count", prefix);
    report_count(key, l->h.total);
    (void)snprintf(key, sizeof key, "%s_avg_ns", prefix);
    report_number(key, latency_avg(l));
    for (size_t i = 0; i < COUNT_OF(points); i++) {
        (void)snprintf(key, sizeof key, "%s_%s_ns", prefix, points[i].name);
        report_number(key, latency_at(l, points[i].percent));
    }
    (void)snprintf(key, sizeof key, "%s_max_ns", prefix);
    report_number(key, latency_max(l));
}

/* The bound after this one: steps of 1 below 16, then eight to each doubling. The same in every run, so that they add up. */
static inline uint64_t bound_after(uint64_t bound) {
    return bound < 16 ? bound + 1 : bound + ((uint64_t)1 << (60 - (unsigned)__builtin_clzll(bound)));
}

/* What is below each bound and not below the one before. As text only one line for each doubling. */
static inline void report_histogram(const char* key, const struct latency* l) {
    uint64_t line = 0;
    report_list(key);
    for (uint64_t bound = 1, i = 0; i < HIST_SIZE; bound = bound_after(bound)) {
        uint64_t n = 0;
        for (; i < HIST_SIZE && (double)hist_value((unsigned)i) * suite.timer.ns_per_tick < (double)bound; i++)
            n += l->h.count[i];
        line += n;
        if (line && ((bound & (bound - 1)) == 0 || i == HIST_SIZE)) {
            report_print("%*sbelow %llu ns: %llu\n", (int)(2 * report.writer.depth - 2), "",
                         (unsigned long long)bound, (unsigned long long)line);
            line = 0;
        }
        if (n == 0) continue;
        report.json_only = true;
        report_open(NULL);
        report_count("below_ns", bound);
        report_count("count", n);
        report_close();
        report.json_only = false;
    }
    report_close();
}

/* "histogram": one list for each kind of call. */
static inline void report_histograms(const struct latency* alloc, const struct latency* release) {
    report_open("histogram");
    report_histogram("alloc", alloc);
    report_histogram("free", release);
    report_close();
}

/* ---- CSV --------------------------------------------------------------------------------- */

static inline void csv_header(const char* header) {
    if (suite.csv_to) fprintf(suite.csv_to, "%s\n", header), fflush(suite.csv_to);
}

static inline const char* csv_name(void) { return suite.tslab ? "tslab" : "malloc"; }

/* Cells of numbers that do not exist are empty. */
static inline void csv_latency(uint64_t threads, uint64_t size, const char* op, const struct latency* l) {
    if (!suite.csv_to || l->h.total == 0) return;
    fprintf(suite.csv_to, "%s,%llu,%llu,%s,%.2f,%.2f,%.2f,%.2f,%.2f\n", csv_name(), (unsigned long long)threads,
            (unsigned long long)size, op, latency_avg(l), latency_at(l, 50), latency_at(l, 95), latency_at(l, 99),
            latency_at(l, 99.9));
}

/* One row of resident memory over time; malloc has no slabs to count. */
static inline void csv_rss(uint64_t cycle) {
    SlabGlobalStats g;
    if (!suite.csv_to) return;
    fprintf(suite.csv_to, "%s,%llu,%.3f,", csv_name(), (unsigned long long)cycle, (double)rss_now().total / 1024.0);
    if (suite.tslab) {
        slab_stats_global(suite.a, &g);
        fprintf(suite.csv_to, "%llu,%llu,%llu\n", (unsigned long long)g.total_slabs_allocated,
                (unsigned long long)g.total_slabs_recycled, (unsigned long long)g.total_cache_overflows);
    } else {
        fprintf(suite.csv_to, ",,\n");
    }
    fflush(suite.csv_to);
}

/* ---- finish ------------------------------------------------------------------------------ */

static inline double growth_pct(double from, double to) { return from > 0 ? 100.0 * (to - from) / from : NAN; }

/* Refusals mean that a program gave back what it did not have, or the allocator thought so: none may occur. */
static uint64_t suite_refusals(void) {
    SlabRefusals r;
    slab_stats_refusals(suite.a, &r);
    return r.stale_handle + r.bad_handle + r.double_free + r.stale_free + r.interior_pointer + r.foreign_pointer +
           r.size_mismatch + r.bad_epoch + r.closed_epoch + r.bad_size + r.domain_order + r.domain_stale +
           r.late_double_free + r.out_of_memory + r.over_budget;
}

static void suite_footer(void) {
    struct rss r = rss_now();
    uint64_t refused = suite.tslab ? suite_refusals() : 0;
    report_open("process");
    report_count("rss_kb", r.total);
    report_count("rss_anon_kb", r.anon);
    report_count("rss_file_kb", r.file);
    report_count("rss_shmem_kb", r.shmem);
    report_count("peak_kb", r.peak);
    report_count("harness_kb", harness_bytes / 1024);
    report_number("timer_overhead_ns", (double)suite.timer.overhead * suite.timer.ns_per_tick);
    report_close();
    if (suite.tslab) report_count("refusals", refused);
    report_bool("verified", true); /* a damaged object would have ended the program */
    report_bool("complete", !suite_stopped());
    report_close();
    if (refused != 0) {
        fprintf(stderr, "%s: the allocator refused %llu calls\n", suite.program, (unsigned long long)refused);
        suite.failed = true;
    }
}

static bool suite_write(void) {
    bool quiet = (suite.csv.asked && !suite.csv.path) || (suite.json.asked && !suite.json.path), ok = true;
    if (suite.json.asked) {
        FILE* to = suite_file(&suite.json);
        ok = fwrite(report.json.bytes, 1, report.json.n, to) == report.json.n && fputc('\n', to) != EOF;
        if (to != stdout) ok = fclose(to) == 0 && ok;
    }
    if (suite.csv.asked && suite.csv.path) ok = fclose(suite.csv_to) == 0 && ok;
    if (!quiet) ok = fwrite(report.text.bytes, 1, report.text.n, stdout) == report.text.n && ok;
    ok = fflush(stdout) == 0 && !ferror(stdout) && ok;
    if (!ok) fprintf(stderr, "%s: cannot write the results: %s\n", suite.program, strerror(errno));
    return ok;
}

/* Closes the report and writes it; the program's exit status. */
static int suite_finish(void) {
    suite_footer();
    bool ok = suite_write();
    if (suite.tslab) slab_allocator_free(suite.a);
    return !ok || suite.failed ? 1 : suite_stopped() ? 130 : 0;
}

/* ---- threads ----------------------------------------------------------------------------- */

static inline pthread_t suite_thread(void* (*body)(void*), void* arg) {
    pthread_t id;
    if (pthread_create(&id, NULL, body, arg) == 0) return id;
    fprintf(stderr, "%s: cannot start a thread\n", suite.program);
    exit(3);
}

static inline size_t random_between(uint64_t* state, size_t least, size_t most) {
    return least + next_random(state) % (most - least + 1);
}

#endif
