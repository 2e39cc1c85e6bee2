/*
 * observed.c - two parts of the table. What being observed costs: each backend that is observed beside the same one when
 * nobody looks, as a ratio within the repetition. And what the second seed says: one that suits the first only is tuned to it.
 */
#include <stdio.h>
#include <string.h>

#include "runner/results.h"

static bool is_observed(const struct results* r, unsigned b) {
    const struct backend *on = &r->backends[b], *off = on->off >= 0 ? &r->backends[on->off] : NULL;
    return off && on->wanted && on->available && off->wanted && off->available;
}

static bool has_ratio(const struct results* r, unsigned row, unsigned metric) {
    for (unsigned b = 0; b < r->n_backends; b++)
        if (!isnan(summarise(r, row, b, metric).to_off)) return true;
    return false;
}

static void print_head(const struct results* r) {
    printf("\nObserved. Costs relative to the same backend that is not observed, repetition by repetition.\n%-45s", "");
    for (unsigned b = 0; b < r->n_backends; b++)
        if (is_observed(r, b)) printf("  %s", r->backends[b].name);
    printf("\n");
}

static void print_line(const struct results* r, unsigned row, unsigned metric) {
    printf("%-13s %-31s", rows[row].name, rows[row].metrics[metric].name);
    for (unsigned b = 0; b < r->n_backends; b++) {
        if (!is_observed(r, b)) continue;
        char text[32] = "-";
        double ratio = summarise(r, row, b, metric).to_off;
        if (!isnan(ratio)) snprintf(text, sizeof text, "%.2f", ratio);
        printf("  %*s", (int)strlen(r->backends[b].name), text);
    }
    printf("\n");
}

void report_observed(const struct results* r) {
    bool begun = false;
    for (unsigned row = 0; row < ROW_COUNT; row++)
        for (unsigned k = 0; r->wanted[row] && k < row_metrics(&rows[row]); k++) {
            if (rows[row].metrics[k].sense == PLAIN || !has_ratio(r, row, k)) continue;
            if (!begun) print_head(r);
            begun = true;
            print_line(r, row, k);
        }
}

/* ---- seeds -------------------------------------------------------------------------------- */

void report_seeds(const struct results* r) {
    bool begun = false;
    for (unsigned row = 0; row < ROW_COUNT; row++)
        for (unsigned k = 0; r->wanted[row] && rows[row].drawn && k < row_metrics(&rows[row]); k++) {
            int own = our_entry(r, row, k);
            if (own < 0 || rows[row].metrics[k].sense == PLAIN) continue;
            double first = best_ratio_of_seed(r, row, (unsigned)own, k, 0);
            double second = best_ratio_of_seed(r, row, (unsigned)own, k, 1);
            if (isnan(first) || isnan(second)) continue;
            if (!begun)
                printf("\nSeeds. Our cost relative to the best peer, by the seed that the work was drawn from.\n%-45s  "
                       "%10s  "
                       "%10s  second / first\n",
                       "", "first", "second");
            begun = true;
            printf("%-13s %-31s  %10.2f  %10.2f  %14.2f\n", rows[row].name, rows[row].metrics[k].name, first, second,
                   second / first);
        }
}
