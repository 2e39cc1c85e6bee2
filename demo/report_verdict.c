/*
 * report_verdict.c - temporal-slab beside glibc: what can be judged, before any other table.
 *
 * The n-th runs of the two make a pair: they follow each other, so a slow minute of the machine is in both. A ratio is
 * taken within each pair, temporal-slab to glibc; the median over the pairs is shown with its range. Runs that were
 * interrupted make no pair.
 *
 * Processor time, page faults and resident size belong to the program. Rate and latency also measure whatever else the
 * machine does, so they are judged only with JUDGED_PAIRS pairs that agree on which allocator is ahead.
 */
#include "compare.h"

#include "figures.h"

#include <math.h>

/* Runs of the same allocator differ by up to a tenth in their resident peak. */
static const double LEVEL = 0.10;
enum { JUDGED_PAIRS = 5 };

typedef struct Row {
    const char *name, *path;
    Unit unit;
    bool more_is_better;
    bool of_the_machine; /* measures other work of the machine, too */
} Row;

static const Row ROWS[] = {
    {"processor time", "cpu_seconds", UNIT_SECONDS, false, false},
    {"page faults", "page_faults", UNIT_COUNT, false, false},
    {"resident after the last phase", "rss.end", UNIT_SIZE, false, false},
    {"resident at the peak", "rss.peak", UNIT_SIZE, false, false},
    {"requests per second", "requests_per_second", UNIT_COUNT, true, true},
    {"latency, p99", "latency_ns.p99", UNIT_TIME, false, true},
};

/* Of the figure at that path, in ascending order; returns how many pairs have one. */
static int paired_ratios(const Comparison* c, const char* path, double out[RUNS_MAX]) {
    int n = 0;
    for (int r = 0; r < c->run_count[BACKEND_GLIBC] && r < c->run_count[BACKEND_TSLAB]; r++) {
        const cJSON *glibc = c->runs[BACKEND_GLIBC][r], *tslab = c->runs[BACKEND_TSLAB][r];
        if (!run_complete(glibc) || !run_complete(tslab)) continue;
        double ratio = figure(tslab, path) / figure(glibc, path);
        if (isfinite(ratio)) out[n++] = ratio;
    }
    figures_sort(out, n);
    return n;
}

double report_ratio(const Comparison* c, const char* path) {
    double ratios[RUNS_MAX];
    int n = paired_ratios(c, path, ratios);
    return figures_median(ratios, n);
}

/* The verdict on a row, from its ratios in ascending order. Takes the median as it is shown, with two digits. */
static const char* judged(const Row* row, const double* ratios, int pairs) {
    double from_one = round(100 * figures_median(ratios, pairs)) - 100;
    bool disagree = ratios[0] <= 1 && ratios[pairs - 1] >= 1;
    if (row->of_the_machine && (pairs < JUDGED_PAIRS || disagree)) return "not judged";
    if (fabs(from_one) <= 100 * LEVEL) return "level";
    if (disagree) return "not judged";
    return (from_one > 0) == row->more_is_better ? "better" : "worse";
}

static void print_row(const Comparison* c, const Row* row) {
    double ratios[RUNS_MAX];
    char glibc[32], tslab[32];
    int pairs = paired_ratios(c, row->path, ratios);
    if (pairs == 0) return;
    printf("  %-31s %12s %14s   %6.2f  (%.2f to %.2f)   %s\n", row->name,
           shown(report_median(c, BACKEND_GLIBC, row->path), row->unit, glibc),
           shown(report_median(c, BACKEND_TSLAB, row->path), row->unit, tslab), figures_median(ratios, pairs),
           ratios[0], ratios[pairs - 1], judged(row, ratios, pairs));
}

void report_verdict(const Comparison* c) {
    double ratios[RUNS_MAX];
    int pairs = paired_ratios(c, "cpu_seconds", ratios);
    if (pairs == 0) {
        printf("No pair of runs was completed: no verdict.\n");
        return;
    }
    printf("  %d pair%-26s %12s %14s   ratio of a pair: median (range)\n", pairs, pairs == 1 ? " of runs" : "s of runs",
           "glibc malloc", "temporal-slab");
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) print_row(c, &ROWS[i]);
    printf("  level: within %.0f %%; not judged: the pairs disagree on which is ahead, or, for rate and latency,\n"
           "  there are fewer than %d\n",
           100 * LEVEL, JUDGED_PAIRS);
}
