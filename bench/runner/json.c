/* json.c - the results with every repetition. bench/README.md documents the format. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "machine.h"
#include "runner/results.h"

/* "name": "text", or null for an absent text. */
static void put_text(FILE* f, const char* name, const char* text, const char* after) {
    fprintf(f, "\"%s\": ", name);
    if (text && text[0])
        json_string(f, text);
    else
        fputs("null", f);
    fputs(after, f);
}

static void put_number(FILE* f, const char* name, double v, const char* after) {
    if (name) fprintf(f, "\"%s\": ", name);
    if (isnan(v) || isinf(v))
        fputs("null", f);
    else
        fprintf(f, "%.6g", v);
    fputs(after, f);
}

static void put_head(FILE* f, const struct results* r) {
    struct machine m = machine_read();
    fputs("{\n  \"program\": \"tslab_bench\",\n  \"format\": 2,\n  ", f);
    put_text(f, "date", date_text(), ",\n  ");
    put_text(f, "form", r->quick ? "quick" : "full", ",\n  ");
    fprintf(f, "\"part\": %u,\n  ", r->part);
    fprintf(f, "\"complete\": %s,\n  ", r->complete ? "true" : "false");
    put_text(f, "cpu", m.cpu, ",\n  ");
    fprintf(f, "\"cpus\": %ld,\n  \"memory_mb\": %ld,\n  ", m.cpus, m.memory_mb);
    put_text(f, "kernel", m.kernel, ",\n  ");
    put_text(f, "compiler", compiler_text(), ",\n  ");
    put_text(f, "commit", commit_text(), ",\n  ");
    put_text(f, "command", r->command, ",\n  ");
    fprintf(f, "\"seeds\": [");
    for (unsigned i = 0; i < r->repetitions; i++) fprintf(f, "%s%" PRIu64, i ? ", " : "", r->seeds[i % 2]);
    fputs("],\n  ", f);
    fprintf(f, "\"repetitions\": %u,\n  \"seconds\": %ld,\n  \"backends\": [", r->repetitions, r->seconds);
}

/* Without its folder: where a machine keeps its files is nobody's business. */
static const char* file_name(const char* path) { return strrchr(path, '/') ? strrchr(path, '/') + 1 : path; }

static void put_backends(FILE* f, const struct results* r) {
    bool first = true;
    for (unsigned i = 0; i < r->n_backends; i++) {
        const struct backend* b = &r->backends[i];
        if (!b->wanted) continue;
        fputs(first ? "\n    {" : ",\n    {", f);
        first = false;
        put_text(f, "name", b->name, ", ");
        put_text(f, "group", group_name(b->group), ", ");
        put_text(f, "version", strcmp(b->version, "-") == 0 ? "" : b->version, ", ");
        fprintf(f, "\"available\": %s, ", b->available ? "true" : "false");
        put_text(f, "reason", b->reason, ", ");
        put_text(f, "library", file_name(b->library), ", ");
        put_text(f, "malloc_from", file_name(b->malloc_from), ", ");
        put_text(f, "off", b->off >= 0 ? r->backends[b->off].name : "", ", ");
        put_text(f, "profiler", b->profiler, "}");
    }
}

static void put_result(FILE* f, const struct results* r, unsigned row, unsigned backend, unsigned metric) {
    const struct cell* cell = &r->cells[row][backend];
    struct summary s = summarise(r, row, backend, metric);
    bool has_values = cell->state == STATE_OK || cell->state == STATE_FAILED;
    bool none = cell->state == STATE_OK && s.n == 0; /* the row has no such number here */
    fputs("        {", f);
    put_text(f, "backend", r->backends[backend].name, ", ");
    put_text(f, "state", state_name(none ? STATE_NONE : cell->state), ", ");
    put_text(f, "reason", cell->reason, ", ");
    fprintf(f, "\"failures\": %u, ", cell->failures);
    put_number(f, "median", s.median, ", ");
    put_number(f, "min", s.least, ", ");
    put_number(f, "max", s.most, ", ");
    put_number(f, "spread", s.spread, ", ");
    put_number(f, "ratio_glibc", s.to_glibc, ", ");
    put_number(f, "ratio_best", s.to_best, ", ");
    put_number(f, "ratio_limit", s.to_limit, ", ");
    put_number(f, "ratio_off", s.to_off, ", ");
    put_number(f, "instructions", cell->instructions, ", \"values\": [");
    for (unsigned i = 0; has_values && !none && i < r->repetitions; i++)
        put_number(f, NULL, cell->value[metric][i], i + 1 < r->repetitions ? ", " : "");
    fputs("]}", f);
}

static void put_metric(FILE* f, const struct results* r, unsigned row, unsigned metric) {
    const struct metric* m = &rows[row].metrics[metric];
    int peer = best_peer(r, row, metric), best = winner(r, row, metric);
    fputs("\n    {", f);
    put_text(f, "row", rows[row].name, ",\n     ");
    put_text(f, "what", rows[row].what, ",\n     ");
    put_text(f, "metric", m->name, ",\n     ");
    put_text(f, "unit", m->unit, ", ");
    put_text(f, "better", m->sense == MORE ? "higher" : "lower", ", ");
    fprintf(f, "\"plain\": %s, \"drawn\": %s, ", m->sense == PLAIN ? "true" : "false",
            rows[row].drawn ? "true" : "false");
    put_text(f, "best_peer", peer >= 0 ? r->backends[peer].name : "", ", ");
    put_text(f, "winner", best >= 0 ? r->backends[best].name : "", ",\n     \"results\": [\n");
    bool first = true;
    for (unsigned b = 0; b < r->n_backends; b++) {
        if (!r->backends[b].wanted) continue;
        fputs(first ? "" : ",\n", f);
        first = false;
        put_result(f, r, row, b, metric);
    }
    fputs("]}", f);
}

bool report_json(const struct results* r, const char* path) {
    FILE* f = fopen(path, "w");
    if (!f) return false;
    put_head(f, r);
    put_backends(f, r);
    fputs("],\n  \"rows\": [", f);
    bool first = true;
    for (unsigned row = 0; row < ROW_COUNT; row++)
        for (unsigned k = 0; r->wanted[row] && k < row_metrics(&rows[row]); k++) {
            fputs(first ? "" : ",", f);
            first = false;
            put_metric(f, r, row, k);
        }
    fputs("\n  ]\n}\n", f);
    bool ok = !ferror(f);
    return fclose(f) == 0 && ok;
}
