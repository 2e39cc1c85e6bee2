/* csv.c - the results, a line for each value. bench/README.md documents the columns. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "runner/results.h"

static void put_field(FILE* f, const char* text, char after) {
    if (text[strcspn(text, ",\"\n")] == 0) {
        fputs(text, f);
    } else {
        fputc('"', f);
        for (; *text; text++) {
            if (*text == '"') fputc('"', f);
            fputc(*text, f);
        }
        fputc('"', f);
    }
    fputc(after, f);
}

static void put_line(FILE* f, const struct results* r, unsigned row, unsigned backend, unsigned metric,
                     unsigned repetition, double value) {
    const struct metric* m = &rows[row].metrics[metric];
    const struct backend* b = &r->backends[backend];
    const struct cell* cell = &r->cells[row][backend];
    put_field(f, rows[row].name, ',');
    put_field(f, m->name, ',');
    put_field(f, m->unit, ',');
    put_field(f, m->sense == MORE ? "higher" : "lower", ',');
    put_field(f, b->name, ',');
    put_field(f, group_name(b->group), ',');
    put_field(f, b->version, ',');
    fprintf(f, "%u,", repetition);
    if (!isnan(value)) fprintf(f, "%.6g", value);
    fputc(',', f);
    bool none = cell->state == STATE_OK && summarise(r, row, backend, metric).n == 0;
    put_field(f, state_name(none ? STATE_NONE : cell->state), ',');
    put_field(f, cell->reason, ',');
    if (repetition) fprintf(f, "%" PRIu64, r->seeds[(repetition - 1) % 2]);
    fputc('\n', f);
}

static void put_cell(FILE* f, const struct results* r, unsigned row, unsigned backend, unsigned metric) {
    if (summarise(r, row, backend, metric).n == 0) {
        put_line(f, r, row, backend, metric, 0, NAN);
        return;
    }
    for (unsigned i = 0; i < r->repetitions; i++)
        put_line(f, r, row, backend, metric, i + 1, r->cells[row][backend].value[metric][i]);
}

bool report_csv(const struct results* r, const char* path) {
    FILE* f = fopen(path, "w");
    if (!f) return false;
    fputs("row,metric,unit,better,backend,group,version,repetition,value,state,reason,seed\n", f);
    for (unsigned row = 0; row < ROW_COUNT; row++)
        for (unsigned k = 0; r->wanted[row] && k < row_metrics(&rows[row]); k++)
            for (unsigned b = 0; b < r->n_backends; b++)
                if (r->backends[b].wanted) put_cell(f, r, row, b, k);
    bool ok = !ferror(f);
    return fclose(f) == 0 && ok;
}
