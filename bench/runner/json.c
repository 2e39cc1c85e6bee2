/* json.c - the results with every repetition. bench/README.md documents the format. */
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "machine.h"
#include "runner/results.h"

/* Null for an absent text. */
static void put_text(struct json* j, const char* key, const char* text) {
    json_text(j, key, text && text[0] ? text : NULL);
}

static void put_number(struct json* j, const char* key, double v) { json_short(j, key, v, 6); }

static void put_head(struct json* j, const struct results* r) {
    json_text(j, "program", "tslab_bench");
    json_count(j, "format", 2);
    put_text(j, "date", date_text());
    put_text(j, "form", r->quick ? "quick" : "full");
    json_count(j, "part", r->part);
    json_bool(j, "complete", r->complete);
    machine_json(j);
    put_text(j, "command", r->command);
    json_array(j, "seeds");
    for (unsigned i = 0; i < r->repetitions; i++) json_count(j, NULL, r->seeds[i % 2]);
    json_close(j);
    json_count(j, "repetitions", r->repetitions);
    json_count(j, "seconds", (uint64_t)r->seconds);
}

/* Without its folder: where a machine keeps its files is nobody's business. */
static const char* file_name(const char* path) { return strrchr(path, '/') ? strrchr(path, '/') + 1 : path; }

static void put_backend(struct json* j, const struct results* r, const struct backend* b) {
    json_line(j, 4);
    json_object(j, NULL);
    put_text(j, "name", b->name);
    put_text(j, "group", group_name(b->group));
    put_text(j, "version", strcmp(b->version, "-") == 0 ? "" : b->version);
    json_bool(j, "available", b->available);
    put_text(j, "reason", b->reason);
    put_text(j, "library", file_name(b->library));
    put_text(j, "malloc_from", file_name(b->malloc_from));
    put_text(j, "off", b->off >= 0 ? r->backends[b->off].name : "");
    put_text(j, "profiler", b->profiler);
    json_close(j);
}

static void put_result(struct json* j, const struct results* r, unsigned row, unsigned backend, unsigned metric) {
    const struct cell* cell = &r->cells[row][backend];
    struct summary s = summarise(r, row, backend, metric);
    bool has_values = cell->state == STATE_OK || cell->state == STATE_FAILED;
    bool none = cell->state == STATE_OK && s.n == 0; /* the row has no such number here */
    json_line(j, 8);
    json_object(j, NULL);
    put_text(j, "backend", r->backends[backend].name);
    put_text(j, "state", state_name(none ? STATE_NONE : cell->state));
    put_text(j, "reason", cell->reason);
    json_count(j, "failures", cell->failures);
    put_number(j, "median", s.median);
    put_number(j, "min", s.least);
    put_number(j, "max", s.most);
    put_number(j, "spread", s.spread);
    put_number(j, "ratio_glibc", s.to_glibc);
    put_number(j, "ratio_best", s.to_best);
    put_number(j, "ratio_limit", s.to_limit);
    put_number(j, "ratio_off", s.to_off);
    put_number(j, "instructions", cell->instructions);
    json_array(j, "values");
    for (unsigned i = 0; has_values && !none && i < r->repetitions; i++)
        put_number(j, NULL, cell->value[metric][i]);
    json_close(j);
    json_close(j);
}

static void put_metric(struct json* j, const struct results* r, unsigned row, unsigned metric) {
    const struct metric* m = &rows[row].metrics[metric];
    int peer = best_peer(r, row, metric), best = winner(r, row, metric);
    json_line(j, 4);
    json_object(j, NULL);
    put_text(j, "row", rows[row].name);
    json_line(j, 5);
    put_text(j, "what", rows[row].what);
    json_line(j, 5);
    put_text(j, "metric", m->name);
    json_line(j, 5);
    put_text(j, "unit", m->unit);
    put_text(j, "better", m->sense == MORE ? "higher" : "lower");
    json_bool(j, "plain", m->sense == PLAIN);
    json_bool(j, "drawn", rows[row].drawn);
    put_text(j, "best_peer", peer >= 0 ? r->backends[peer].name : "");
    put_text(j, "winner", best >= 0 ? r->backends[best].name : "");
    json_line(j, 5);
    json_array(j, "results");
    for (unsigned b = 0; b < r->n_backends; b++)
        if (r->backends[b].wanted) put_result(j, r, row, b, metric);
    json_close(j);
    json_close(j);
}

bool report_json(const struct results* r, const char* path) {
    FILE* f = fopen(path, "w");
    if (!f) return false;
    struct json j = {.write = json_file, .ctx = f, .lines = 1, .indent = 2};
    json_object(&j, NULL);
    put_head(&j, r);
    json_array(&j, "backends");
    for (unsigned b = 0; b < r->n_backends; b++)
        if (r->backends[b].wanted) put_backend(&j, r, &r->backends[b]);
    json_close(&j);
    json_array(&j, "rows");
    for (unsigned row = 0; row < ROW_COUNT; row++)
        for (unsigned k = 0; r->wanted[row] && k < row_metrics(&rows[row]); k++) put_metric(&j, r, row, k);
    json_line(&j, 2);
    json_close(&j);
    json_close(&j);
    fputc('\n', f);
    bool ok = !ferror(f);
    return fclose(f) == 0 && ok;
}
