/*
 * observed.c - what being observed costs: each backend that is observed beside the same one when nobody looks, as a
 * ratio within the repetition. Part of the table.
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
