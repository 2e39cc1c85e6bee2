/*
 * report_verdict.c - temporal-slab beside glibc in three lines, before any table.
 *
 * The n-th runs of the two make a pair: they follow each other, so a slow minute of the machine is in both. A ratio is
 * taken within each pair, temporal-slab to glibc, and the median over the pairs is told with its range. Within 5 % is
 * level. Runs that were interrupted make no pair.
 */
#include "compare.h"

#include "figures.h"

#include <math.h>

static const double LEVEL = 0.05;

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

static const char* word(double ratio, const char* less, const char* more) {
    return ratio < 1 - LEVEL ? less : ratio > 1 + LEVEL ? more : "level";
}

static void print_line(const Comparison* c, const char* head, const char* path, const char* less, const char* more,
                       const char* what, const char* other_path, const char* other) {
    double ratios[RUNS_MAX];
    int n = paired_ratios(c, path, ratios);
    double ratio = report_ratio(c, path);
    printf("  %-8s %-7s %.2f of glibc's %s (%.2f to %.2f); %s %.2f\n", head, word(ratio, less, more), ratio, what,
           ratios[0], ratios[n - 1], other, report_ratio(c, other_path));
}

void report_verdict(const Comparison* c) {
    double ratios[RUNS_MAX];
    int pairs = paired_ratios(c, "requests_per_second", ratios);
    if (pairs == 0) {
        printf("No pair of runs was completed: no verdict.\n\n");
        return;
    }
    printf("temporal-slab beside glibc malloc, median of %d pair%s of runs\n", pairs, pairs == 1 ? "" : "s");
    print_line(c, "Speed:", "requests_per_second", "slower", "faster", "requests per second", "latency_ns.p99",
               "latency p99");
    print_line(c, "Memory:", "rss.end", "less", "more", "resident size at the end", "rss.peak", "at the peak");
    print_line(c, "Kernel:", "page_faults", "less", "more", "page faults", "cpu_seconds", "processor time");
    printf("\n");
}
