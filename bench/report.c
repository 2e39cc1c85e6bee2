/*
 * report.c - the results as a table and as JSON.
 *
 * A line gives, per backend, the median over the repetitions and the spread (largest minus
 * smallest, in percent of the median). The ratio is the median of the ratios to the first backend
 * taken repetition by repetition, so that a slow minute of the machine weighs on both sides.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "machine.h"

struct summary {
    unsigned n;
    double median, least, most, ratio; /* ratio: NAN when there is nothing to compare with */
};

static int by_value(const void* a, const void* b) {
    double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

static double median_of(double* values, unsigned n) {
    if (n == 0) return NAN;
    qsort(values, n, sizeof *values, by_value);
    return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static struct summary summarise(const struct results* r, unsigned row, unsigned backend, unsigned metric) {
    const struct cell* cell = &r->cells[row][backend];
    const struct cell* first = &r->cells[row][0];
    double values[MAX_REPETITIONS], ratios[MAX_REPETITIONS];
    unsigned n = 0, n_ratios = 0;
    if (cell->supported)
        for (unsigned i = 0; i < r->repetitions; i++) {
            double v = cell->value[metric][i], base = first->supported ? first->value[metric][i] : NAN;
            if (isnan(v)) continue;
            values[n++] = v;
            if (backend > 0 && base > 0) ratios[n_ratios++] = v / base; /* false for NAN too */
        }
    struct summary s = {.n = n};
    s.median = median_of(values, n);
    s.least = n ? values[0] : NAN;
    s.most = n ? values[n - 1] : NAN;
    s.ratio = median_of(ratios, n_ratios);
    return s;
}

/* ---- table ------------------------------------------------------------------------------ */

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

static void table_head(const struct results* r) {
    struct machine m = machine_read();
    printf("tslab_bench: %u repetitions, interleaved; median, spread = (max - min) / median\n", r->repetitions);
    printf("machine   %s, %ld cpus, %ld MiB\nkernel    %s\ncompiler  %s\ncommit    %s\ncommand   %s\nversions ", m.cpu,
           m.cpus, m.memory_mb, m.kernel, compiler_text(), commit_text(), r->command);
    for (unsigned b = 0; b < r->n_backends; b++) printf(" %s %s", r->backends[b]->name, r->backends[b]->version());
    printf("\n\n%-16s %-30s %-7s", "row", "metric", "unit");
    for (unsigned b = 0; b < r->n_backends; b++) {
        printf(" %14s %7s", r->backends[b]->name, "spread");
        if (b > 0) printf(" %8s", "ratio");
    }
    printf("\n");
}

static void table_cell(const struct results* r, unsigned row, unsigned backend, unsigned metric) {
    char text[32];
    struct summary s = summarise(r, row, backend, metric);
    printf(" %14s", s.n ? number(s.median, text) : r->cells[row][backend].supported ? "failed" : "-");
    if (s.n && s.median != 0)
        printf(" %6.0f%%", 100.0 * (s.most - s.least) / fabs(s.median));
    else
        printf(" %7s", "");
    if (backend == 0) return;
    if (isnan(s.ratio))
        printf(" %8s", "");
    else
        printf(" %7.3fx", s.ratio);
}

void report_table(const struct results* r) {
    table_head(r);
    for (unsigned row = 0; row < ROW_COUNT; row++) {
        if (!r->wanted[row]) continue;
        for (unsigned k = 0; k < rows[row].n_metrics; k++) {
            const struct metric* metric = &rows[row].metrics[k];
            printf("%-16s %-30s %-7s", k == 0 ? rows[row].name : "", metric->name, metric->unit);
            for (unsigned b = 0; b < r->n_backends; b++) table_cell(r, row, b, k);
            printf("%s\n", metric->higher_is_better ? "  (higher is better)" : "");
        }
    }
    for (unsigned row = 0; row < ROW_COUNT; row++)
        for (unsigned b = 0; b < r->n_backends; b++)
            if (r->cells[row][b].failures)
                printf("! %s: %s failed in %u of %u repetitions\n", rows[row].name, r->backends[b]->name,
                       r->cells[row][b].failures, r->repetitions);
}

/* ---- JSON ------------------------------------------------------------------------------- */

static void json_number(FILE* f, double v) {
    if (isnan(v) || isinf(v))
        fputs("null", f);
    else
        fprintf(f, "%.6g", v);
}

static void json_result(FILE* f, const struct results* r, unsigned row, unsigned backend, unsigned metric) {
    const struct cell* cell = &r->cells[row][backend];
    struct summary s = summarise(r, row, backend, metric);
    fputs("        {\"backend\": ", f);
    json_string(f, r->backends[backend]->name);
    fprintf(f, ", \"supported\": %s, \"failures\": %u, \"median\": ", cell->supported ? "true" : "false",
            cell->failures);
    json_number(f, s.median);
    fputs(", \"min\": ", f);
    json_number(f, s.least);
    fputs(", \"max\": ", f);
    json_number(f, s.most);
    fputs(", \"ratio\": ", f);
    json_number(f, s.ratio);
    fputs(", \"values\": [", f);
    for (unsigned i = 0; cell->supported && i < r->repetitions; i++) {
        if (i) fputs(", ", f);
        json_number(f, cell->value[metric][i]);
    }
    fputs("]}", f);
}

static void json_rows(FILE* f, const struct results* r) {
    bool first = true;
    for (unsigned row = 0; row < ROW_COUNT; row++)
        for (unsigned k = 0; r->wanted[row] && k < rows[row].n_metrics; k++) {
            const struct metric* metric = &rows[row].metrics[k];
            fputs(first ? "\n    {" : ",\n    {", f);
            first = false;
            json_member(f, "row", rows[row].name);
            fputs("     ", f);
            json_member(f, "metric", metric->name);
            fputs("     ", f);
            json_member(f, "unit", metric->unit);
            fprintf(f, "     \"better\": \"%s\",\n     \"results\": [\n",
                    metric->higher_is_better ? "higher" : "lower");
            for (unsigned b = 0; b < r->n_backends; b++) {
                json_result(f, r, row, b, k);
                fputs(b + 1 < r->n_backends ? ",\n" : "]}", f);
            }
        }
}

bool report_json(const struct results* r, const char* path) {
    FILE* f = fopen(path, "w");
    if (!f) return false;
    struct machine m = machine_read();
    fputs("{\n  ", f);
    json_member(f, "program", "tslab_bench");
    fputs("  ", f);
    json_member(f, "cpu", m.cpu);
    fprintf(f, "  \"cpus\": %ld,\n  \"memory_mb\": %ld,\n  ", m.cpus, m.memory_mb);
    json_member(f, "kernel", m.kernel);
    fputs("  ", f);
    json_member(f, "compiler", compiler_text());
    fputs("  ", f);
    json_member(f, "commit", commit_text());
    fputs("  ", f);
    json_member(f, "command", r->command);
    fprintf(f, "  \"repetitions\": %u,\n  \"versions\": {", r->repetitions);
    for (unsigned b = 0; b < r->n_backends; b++) {
        fputs(b ? ", " : "", f);
        json_string(f, r->backends[b]->name);
        fputs(": ", f);
        json_string(f, r->backends[b]->version());
    }
    fputs("},\n  \"rows\": [", f);
    json_rows(f, r);
    fputs("\n  ]\n}\n", f);
    bool ok = !ferror(f);
    return fclose(f) == 0 && ok;
}
