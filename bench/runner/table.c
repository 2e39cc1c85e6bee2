/*
 * table.c - the results for a reader.
 *
 * First every row with all backends, the best first; then the summary, one line a metric, which ends
 * on the screen: ours beside glibc and the best peer, and who wins by how much.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine.h"
#include "runner/results.h"

enum { WIDTH = 118 };

static const double level = 0.05;

/* Four significant digits, as short as possible. */
static const char* number(double v, char out[32]) {
    if (isnan(v))
        strcpy(out, "-");
    else if (fabs(v) >= 1000)
        snprintf(out, 32, "%.0f", v);
    else
        snprintf(out, 32, fabs(v) >= 100 ? "%.1f" : fabs(v) >= 10 ? "%.2f" : "%.3f", v);
    return out;
}

static void print_head(const struct results* r) {
    struct machine m = machine_read();
    printf(
        "tslab_bench, %s form, 1/%u of the work: %u repetitions, interleaved; medians; +- is (max - min) / median%s\n",
        r->quick ? "quick" : "full", r->part, r->repetitions,
        r->complete ? "" : "; INTERRUPTED, this is what was done");
    printf("seeds     %" PRIu64 " and %" PRIu64 ", in turn by repetition\n", r->seeds[0], r->seeds[1]);
    printf("machine   %s, %ld cpus, %ld MiB\nkernel    %s\ncompiler  %s\ncommit    %s\ndate      %s\ncommand   %s\n",
           m.cpu, m.cpus, m.memory_mb, m.kernel, compiler_text(), commit_text(), date_text(), r->command);
    printf("backends ");
    for (unsigned b = 0; b < r->n_backends; b++)
        if (r->backends[b].wanted && r->backends[b].available)
            printf(" %s%s%s", r->backends[b].name, r->backends[b].version[0] ? " " : "", r->backends[b].version);
    printf("\n");
    for (unsigned b = 0; b < r->n_backends; b++)
        if (r->backends[b].wanted && !r->backends[b].available)
            printf("missing   %s: %s\n", r->backends[b].name, r->backends[b].reason);
    printf("checked   refuse doubled frees, as ours do, and are no best peer:");
    for (unsigned b = 0; b < r->n_backends; b++)
        if (r->backends[b].group == GROUP_CHECKED) printf(" %s", r->backends[b].name);
    printf("\n");
}

/* ---- every backend ------------------------------------------------------------------------ */

static const struct results* sorting;
static unsigned sorting_row, sorting_metric;

static int by_median(const void* a, const void* b) {
    double x = summarise(sorting, sorting_row, *(const unsigned*)a, sorting_metric).median;
    double y = summarise(sorting, sorting_row, *(const unsigned*)b, sorting_metric).median;
    int order = x < y ? -1 : x > y;
    return rows[sorting_row].metrics[sorting_metric].sense == MORE ? -order : order;
}

static void print_ranking(const struct results* r, unsigned row, unsigned metric) {
    const struct metric* m = &rows[row].metrics[metric];
    unsigned order[MAX_BACKENDS], n = 0;
    for (unsigned b = 0; b < r->n_backends; b++)
        if (summarise(r, row, b, metric).n) order[n++] = b;
    if (n == 0) return;
    sorting = r, sorting_row = row, sorting_metric = metric;
    qsort(order, n, sizeof *order, by_median);
    int column = printf("  %s, %s%s:", m->name, m->unit, m->sense == MORE ? ", more is better" : "");
    for (unsigned i = 0; i < n; i++) {
        char item[128], value[32], spread[32] = "";
        const struct backend* b = &r->backends[order[i]];
        struct summary s = summarise(r, row, order[i], metric);
        if (s.n > 1 && !isnan(s.spread)) snprintf(spread, sizeof spread, " +-%.0f%%", 100 * s.spread);
        int length = snprintf(item, sizeof item, "  %s%s %s%s", b->group == GROUP_OURS ? "*" : "", b->name,
                              number(s.median, value), spread);
        if (column + length > WIDTH) column = printf("\n     ");
        column += printf("%s", item);
    }
    printf("\n");
}

static void print_instructions(const struct results* r, unsigned row) {
    char value[32];
    bool any = false;
    for (unsigned b = 0; b < r->n_backends; b++)
        if (r->cells[row][b].uncountable) printf("  - %s does not run under callgrind\n", r->backends[b].name);
    for (unsigned b = 0; b < r->n_backends; b++) {
        double n = r->cells[row][b].instructions;
        if (isnan(n)) continue;
        if (!any) printf("  instructions per operation:");
        any = true;
        printf("  %s%s %s", r->backends[b].group == GROUP_OURS ? "*" : "", r->backends[b].name, number(n, value));
    }
    if (any) printf("\n");
}

static void print_row(const struct results* r, unsigned row) {
    printf("\n%s: %s\n", rows[row].name, rows[row].what);
    for (unsigned k = 0; k < row_metrics(&rows[row]); k++) print_ranking(r, row, k);
    print_instructions(r, row);
    for (unsigned b = 0; b < r->n_backends; b++) {
        const struct cell* cell = &r->cells[row][b];
        if (cell->state == STATE_FAILED)
            printf("  ! %s failed in %u of %u repetitions: %s\n", r->backends[b].name, cell->failures,
                   repetitions_of(r, row), cell->reason);
        else if (cell->state == STATE_CORRUPT)
            printf("  ! %s is not timed, its contents are corrupt: %s\n", r->backends[b].name, cell->reason);
        else if (cell->state == STATE_CANNOT && strcmp(cell->reason, "it has no such thing") != 0)
            printf("  - %s cannot: %s\n", r->backends[b].name, cell->reason);
    }
}

/* ---- summary ------------------------------------------------------------------------------ */

enum verdict { NOTHING, WIN, LEVEL, BEHIND };

static enum verdict judge(const struct results* r, unsigned row, unsigned metric, int own, int peer) {
    const struct metric* m = &rows[row].metrics[metric];
    if (m->sense == PLAIN || own < 0 || peer < 0) return NOTHING;
    struct summary s = summarise(r, row, (unsigned)own, metric);
    if (!isnan(s.to_best)) return s.to_best < 1 - level ? WIN : s.to_best <= 1 + level ? LEVEL : BEHIND;
    double other = summarise(r, row, (unsigned)peer, metric).median; /* one of them is 0 or less */
    if (s.median == other) return LEVEL;
    return (s.median < other) != (m->sense == MORE) ? WIN : BEHIND;
}

static void print_verdict(enum verdict v, double ratio, const char* own, const char* peer) {
    static const char* const colour[] = {"", "\033[32m", "\033[33m", "\033[31m"};
    bool tty = isatty(1);
    printf("  %s", tty ? colour[v] : "");
    if (v == LEVEL) printf("= level");
    if (v == WIN || v == BEHIND) {
        printf("%s %s wins", v == WIN ? "+" : "-", v == WIN ? own : peer);
        if (!isnan(ratio)) printf(", %.2fx", v == WIN ? 1 / ratio : ratio);
    }
    printf("%s\n", tty ? "\033[0m" : "");
}

static void print_summary_line(const struct results* r, unsigned row, unsigned metric, bool first, unsigned tally[4]) {
    const struct metric* m = &rows[row].metrics[metric];
    int own = our_entry(r, row, metric), peer = best_peer(r, row, metric);
    char text[4][32], spread[32] = "-";
    struct summary none = {
        .median = NAN, .to_glibc = NAN, .to_best = NAN, .to_limit = NAN, .to_off = NAN, .spread = NAN};
    struct summary ours = own >= 0 ? summarise(r, row, (unsigned)own, metric) : none;
    struct summary theirs = peer >= 0 ? summarise(r, row, (unsigned)peer, metric) : none;
    if (ours.n > 1 && !isnan(ours.spread)) snprintf(spread, sizeof spread, "%.0f%%", 100 * ours.spread);
    printf("%-13s %-31s %-6s %9s %6s", first ? rows[row].name : "", m->name, m->unit, number(ours.median, text[0]),
           spread);
    printf(" %8s %8s %8s", number(ours.to_glibc, text[1]), number(ours.to_best, text[2]),
           number(ours.to_limit, text[3]));
    printf("  %9s %-10s", number(theirs.median, text[0]), peer >= 0 ? r->backends[peer].name : "");
    enum verdict v = judge(r, row, metric, own, peer);
    tally[v]++;
    print_verdict(v, ours.to_best, own >= 0 ? r->backends[own].name : "", peer >= 0 ? r->backends[peer].name : "");
}

static void print_summary(const struct results* r) {
    unsigned tally[4] = {0};
    printf("\nSummary. Ratios are costs relative to, repetition by repetition: below 1 is better for us.\n");
    printf("%-13s %-31s %-6s %9s %6s %8s %8s %8s  %9s %-10s\n", "row", "metric", "unit", "tslab", "+-", "x glibc",
           "x best", "x arena", "best peer", "");
    for (unsigned row = 0; row < ROW_COUNT; row++) {
        bool first = true;
        for (unsigned k = 0; r->wanted[row] && k < row_metrics(&rows[row]); k++)
            if (metric_has_values(r, row, k)) print_summary_line(r, row, k, first, tally), first = false;
    }
    printf("\n%u won, %u level (within %.0f %%), %u behind the best peer\n", tally[WIN], tally[LEVEL], 100 * level,
           tally[BEHIND]);
}

void report_table(const struct results* r) {
    print_head(r);
    for (unsigned row = 0; row < ROW_COUNT; row++)
        if (r->wanted[row]) print_row(r, row);
    report_observed(r);
    report_seeds(r);
    print_summary(r);
    printf("took %ld s\n", r->seconds);
}
