/*
 * main.c - tslab_bench: which rows, how often, in which order; the children.
 *
 * For every repetition, for every row, every backend runs once, in a child process; the order of
 * the backends turns with the repetition. A child sends its numbers through a pipe; one that
 * crashes or takes over a minute is reported as failed.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"
#include "machine.h"

enum { CHILD_SECONDS = 60, DEFAULT_REPETITIONS = 7, QUICK_REPETITIONS = 3, QUICK_DIVISOR = 5 };

/* glibc first: ratios are taken to the first. */
static const struct backend* const all_backends[] = {&backend_glibc, &backend_tslab, &backend_tslab_sampled};
enum { BACKENDS = sizeof all_backends / sizeof *all_backends };

const struct row rows[ROW_COUNT] = {
    [ROW_PAIR] = {"pair", "allocate and free one 128 B object, hot", 1, {{"alloc + free", "ns", false}}},
    [ROW_BATCH] = {"batch",
                   "100,000 x 128 B allocated, then all freed; per object, steady state",
                   2,
                   {{"alloc + free", "ns", false}, {"the first cycle", "ns", false}}},
    [ROW_BATCH_TAIL] = {"batch_tail",
                        "latency of each call in such batches, steady state, timer subtracted",
                        9,
                        {{"alloc p50", "ns", false},
                         {"alloc p99", "ns", false},
                         {"alloc p99.9", "ns", false},
                         {"alloc p99.99", "ns", false},
                         {"free p50", "ns", false},
                         {"free p99", "ns", false},
                         {"free p99.9", "ns", false},
                         {"free p99.99", "ns", false},
                         {"resident before use", "MiB", false}}},
    [ROW_MIXED] = {"mixed",
                   "replace a random one of 100,000 objects of eight sizes",
                   1,
                   {{"free + alloc", "ns", false}}},
    [ROW_REQUEST] = {"request",
                     "225 objects, 52 KB, written line by line, every one freed",
                     1,
                     {{"request", "us", false}}},
    [ROW_REQUEST_BULK] = {"request_bulk",
                          "the same in a domain that ends in bulk (glibc: freed singly)",
                          1,
                          {{"request", "us", false}}},
    [ROW_HANDLE_PAIR] = {"handle_pair",
                         "allocate and free one 128 B object by handle (glibc: by pointer)",
                         1,
                         {{"alloc + free", "ns", false}}},
    [ROW_THREADS] = {"threads",
                     "batches of 1000 x 128 B on 1, 2, 4 threads; an alloc and a free are two operations",
                     3,
                     {{"1 thread", "Mops/s", true}, {"2 threads", "Mops/s", true}, {"4 threads", "Mops/s", true}}},
    [ROW_XTHREAD] = {"xthread",
                     "2 producers allocate 128 B, 2 consumers free them",
                     1,
                     {{"4 threads", "Mops/s", true}}},
    [ROW_CLOSE_EMPTY] = {"close_empty",
                         "epoch_close of an epoch that was never used",
                         2,
                         {{"close p50", "ns", false}, {"close p99", "ns", false}}},
    [ROW_CLOSE_SLABS] = {"close_slabs",
                         "epoch_close of an epoch with 10,000 empty slabs",
                         5,
                         {{"close", "ms", false},
                          {"one madvise of as many bytes", "ms", false},
                          {"close without the kernel's part", "ms", false},
                          {"slabs returned", "slabs", true},
                          {"bytes returned", "MiB", true}}},
    [ROW_DOMAIN] = {"domain",
                    "create + enter + exit + destroy of an empty domain",
                    2,
                    {{"without a label", "ns", false}, {"with a label", "ns", false}}},
    [ROW_DOMAIN_SHARED] = {"domain_shared",
                           "end of a domain in which another, running thread holds objects",
                           2,
                           {{"end p50", "us", false}, {"end p99", "us", false}}},
    [ROW_RSS_POINTER] = {"rss_pointer",
                         "a phase of 300,000 x 128 B: resident memory above the start",
                         2,
                         {{"before the end", "MiB", false}, {"after the end", "MiB", false}}},
    [ROW_RSS_HANDLE] = {"rss_handle",
                        "the same, allocated by handle (glibc: by pointer)",
                        2,
                        {{"before the end", "MiB", false}, {"after the end", "MiB", false}}},
    [ROW_DRIFT] = {"drift",
                   "2000 phases of 5000 x 128 B: bytes held after a phase (glibc: resident)",
                   3,
                   {{"after 5 % of the phases", "KiB", false}, {"after all", "KiB", false}, {"drift", "%", false}}},
    [ROW_OPEN_PHASES] = {"open_phases",
                         "10,000 phases open at once, 10 objects (1760 B) in each",
                         4,
                         {{"resident bytes per phase", "B", false},
                          {"first lap, open to end", "ns", false},
                          {"second lap, open and fill", "ns", false},
                          {"second lap, end", "ns", false}}},
};

/* ---- children --------------------------------------------------------------------------- */

static void run_child(int to, work_fn work, const struct plan* plan, unsigned n_metrics) {
    double out[MAX_METRICS] = {0};
    alarm(CHILD_SECONDS);
    work(plan, out);
    size_t due = n_metrics * sizeof *out;
    _exit(write(to, out, due) == (ssize_t)due ? 0 : 1);
}

/* True when the child delivered its numbers. */
static bool run_one(const struct backend* backend, unsigned row, const struct plan* plan, double* out) {
    int ends[2];
    if (pipe(ends) != 0) return false;
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        close(ends[0]), close(ends[1]);
        return false;
    }
    if (child == 0) {
        close(ends[0]);
        run_child(ends[1], backend->work[row], plan, rows[row].n_metrics);
    }
    close(ends[1]);
    size_t due = rows[row].n_metrics * sizeof *out, got = 0;
    for (;;) {
        ssize_t n = read(ends[0], (char*)out + got, due - got);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0 || (got += (size_t)n) == due) break;
    }
    close(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status))
        fprintf(stderr, "\n%s in row %s: signal %d%s\n", backend->name, rows[row].name, WTERMSIG(status),
                WTERMSIG(status) == SIGALRM ? " (too slow)" : "");
    return got == due && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void run_repetition(struct results* r, unsigned repetition, const struct plan* plan) {
    if (!isatty(2)) fprintf(stderr, "repetition %u of %u\n", repetition + 1, r->repetitions);
    for (unsigned row = 0; row < ROW_COUNT; row++) {
        if (!r->wanted[row]) continue;
        for (unsigned k = 0; k < r->n_backends; k++) {
            unsigned b = (k + repetition) % r->n_backends;
            struct cell* cell = &r->cells[row][b];
            double out[MAX_METRICS];
            if (!cell->supported) continue;
            if (isatty(2))
                fprintf(stderr, "\r\033[K[%u/%u] %s %s", repetition + 1, r->repetitions, rows[row].name,
                        r->backends[b]->name);
            bool ok = run_one(r->backends[b], row, plan, out);
            cell->failures += !ok;
            for (unsigned m = 0; m < rows[row].n_metrics; m++) cell->value[m][repetition] = ok ? out[m] : NAN;
        }
    }
}

/* ---- command line ----------------------------------------------------------------------- */

struct arguments {
    bool quick, list;
    unsigned repetitions;
    const char* json;
    bool some_rows, row[ROW_COUNT];
};

static void print_usage(FILE* f) {
    fprintf(f,
            "usage: tslab_bench [--quick] [--reps N] [--row NAME]... [--json FILE] [--list] [--help]\n"
            "  --quick      3 repetitions of a fifth of the work\n"
            "  --reps N     repetitions, 1..%d (default %d)\n"
            "  --row NAME   only this row; may be repeated\n"
            "  --json FILE  writes the results, every repetition included\n"
            "  --list       prints the rows and what they do\n"
            "What long-lived objects in short epochs cost is another program: tslab_drainability.\n",
            MAX_REPETITIONS, DEFAULT_REPETITIONS);
}

static void print_rows(FILE* f) {
    for (unsigned i = 0; i < ROW_COUNT; i++) fprintf(f, "  %-14s %s\n", rows[i].name, rows[i].what);
}

static bool take_row(struct arguments* args, const char* name) {
    for (unsigned i = 0; i < ROW_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0) return args->some_rows = args->row[i] = true;
    fprintf(stderr, "tslab_bench: there is no row '%s'; the rows are\n", name);
    print_rows(stderr);
    return false;
}

/* 0: go on, 1: done, 2: wrong usage. */
static int parse(int argc, char** argv, struct arguments* args) {
    for (int i = 1; i < argc; i++) {
        const char* flag = argv[i];
        bool takes_value = !strcmp(flag, "--row") || !strcmp(flag, "--json") || !strcmp(flag, "--reps");
        const char* value = takes_value && i + 1 < argc ? argv[++i] : NULL;
        if (takes_value && !value) {
            fprintf(stderr, "tslab_bench: %s needs a value\n", flag);
            print_usage(stderr);
            return 2;
        }
        if (!strcmp(flag, "--help")) return print_usage(stdout), 1;
        if (!strcmp(flag, "--list")) return print_rows(stdout), 1;
        if (!strcmp(flag, "--quick"))
            args->quick = true;
        else if (!strcmp(flag, "--json"))
            args->json = value;
        else if (!strcmp(flag, "--row")) {
            if (!take_row(args, value)) return 2;
        } else if (!strcmp(flag, "--reps")) {
            char* end;
            unsigned long n = strtoul(value, &end, 10);
            if (*end || n < 1 || n > MAX_REPETITIONS) {
                fprintf(stderr, "tslab_bench: --reps takes a number from 1 to %d, not '%s'\n", MAX_REPETITIONS, value);
                return 2;
            }
            args->repetitions = (unsigned)n;
        } else {
            fprintf(stderr, "tslab_bench: '%s' is not a flag\n", flag);
            print_usage(stderr);
            return 2;
        }
    }
    return 0;
}

int main(int argc, char** argv) {
    struct arguments args = {0};
    int verdict = parse(argc, argv, &args);
    if (verdict) return verdict == 2 ? 2 : 0;

    static struct results r;
    struct plan plan = {.divisor = args.quick ? QUICK_DIVISOR : 1};
    r.repetitions = args.repetitions ? args.repetitions : args.quick ? QUICK_REPETITIONS : DEFAULT_REPETITIONS;
    r.n_backends = BACKENDS;
    r.command = command_text(argc, argv);
    for (unsigned b = 0; b < BACKENDS; b++) r.backends[b] = all_backends[b];
    for (unsigned row = 0; row < ROW_COUNT; row++) {
        r.wanted[row] = !args.some_rows || args.row[row];
        for (unsigned b = 0; b < BACKENDS; b++) r.cells[row][b].supported = all_backends[b]->work[row] != NULL;
    }
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (unsigned i = 0; i < r.repetitions; i++) run_repetition(&r, i, &plan);
    clock_gettime(CLOCK_MONOTONIC, &to);
    fprintf(stderr, "%sdone in %ld s\n", isatty(2) ? "\r\033[K" : "", (long)(to.tv_sec - from.tv_sec));
    report_table(&r);
    if (args.json && !report_json(&r, args.json)) {
        fprintf(stderr, "tslab_bench: cannot write '%s': %s\n", args.json, strerror(errno));
        return 1;
    }
    unsigned failures = 0;
    for (unsigned row = 0; row < ROW_COUNT; row++)
        for (unsigned b = 0; b < BACKENDS; b++) failures += r.cells[row][b].failures;
    return failures ? 1 : 0;
}
