/* options.c - the command line. */
#include "runner/options.h"

#include <stdio.h>

#include "common/flags.h"
#include "runner/backends.h"

static void print_list(const struct results* r) {
    printf("rows:\n");
    for (unsigned i = 0; i < ROW_COUNT; i++) {
        printf("  %-14s %s\n", rows[i].name, rows[i].what);
        for (unsigned k = 0; k < row_metrics(&rows[i]); k++)
            printf("  %-14s   %s (%s%s)\n", "", rows[i].metrics[k].name, rows[i].metrics[k].unit,
                   rows[i].metrics[k].sense == MORE ? ", more is better" : "");
    }
    printf("backends:\n");
    for (unsigned b = 0; b < r->n_backends; b++) {
        const struct backend* backend = &r->backends[b];
        printf("  %-14s %-8s %s%s\n", backend->name, group_name(backend->group),
               backend->available ? backend->version : "missing: ", backend->available ? "" : backend->reason);
    }
}

static bool want_row(void* wanted, const char* name) { return ((bool*)wanted)[row_find(name)] = true; }

static bool want_backend(void* results, const char* name) {
    struct results* r = results;
    return r->backends[backend_find(r, name)].wanted = true;
}

static void want_all_if_none(struct results* r) {
    bool row = false, backend = false;
    for (unsigned i = 0; i < ROW_COUNT; i++) row |= r->wanted[i];
    for (unsigned b = 0; b < r->n_backends; b++) backend |= r->backends[b].wanted;
    for (unsigned i = 0; i < ROW_COUNT; i++) r->wanted[i] |= !row;
    for (unsigned b = 0; b < r->n_backends; b++) r->backends[b].wanted |= !backend;
}

static void print_help(const struct command_line* c) {
    printf("usage: tslab_bench [FLAG]...\n");
    flags_print(c, c->tables[0]);
    printf("  --help            print this\n");
}

int options_read(int argc, char** argv, struct options* o, struct results* r) {
    static const char *row_names[ROW_COUNT + 1], *backend_names[MAX_BACKENDS + 1];
    bool list = false;
    const char* peers;
    struct flag flags[] = {
        {"--quick", FLAG_SWITCH, &o->quick, .help = "3 repetitions of a fifth of the work"},
        {"--reps", FLAG_UNSIGNED, &o->repetitions, .least = 1, .most = MAX_REPETITIONS,
         .help = "repetitions, 1 to 99 (7, with --quick 3)"},
        {"--part", FLAG_UNSIGNED, &o->part, .least = 1, .most = 1000,
         .help = "an Nth of the work, 1 to 1000 (1, with --quick 5)"},
        {"--row", FLAG_WORD, r->wanted, want_row, .words = row_names, .argument = "NAME",
         .help = "only this row; may be repeated"},
        {"--backend", FLAG_WORD, r, want_backend, .words = backend_names, .argument = "NAME",
         .help = "only this backend; may be repeated"},
        {"--seed", FLAG_COUNT, &o->seeds[0], .least = 1, .most = MAX_SEED,
         .help = "what work is drawn from in the 1st, 3rd, ... repetition (1)"},
        {"--second-seed", FLAG_COUNT, &o->seeds[1], .least = 1, .most = MAX_SEED,
         .help = "in the 2nd, 4th, ... (drawn at random, and said)"},
        {"--instructions", FLAG_SWITCH, &o->instructions,
         .help = "count instructions, too (needs valgrind; rows that are short)"},
        {"--json", FLAG_TEXT, &o->json, .argument = "FILE", .help = "write the results, every repetition included"},
        {"--csv", FLAG_TEXT, &o->csv, .argument = "FILE", .help = "the same, a line for each value"},
        {"--peers", FLAG_TEXT, &peers, .argument = "FILE", .help = "the list of peers (build/peers/peers.tsv)"},
        {"--list", FLAG_SWITCH, &list, .help = "print rows, metrics and backends"},
        {.name = NULL},
    };
    const struct command_line c = {"tslab_bench", NULL, print_help, 20, ' ', {flags}, argc, argv};
    backends_read(r, flags_value(&c, "--peers"));
    for (unsigned i = 0; i < ROW_COUNT; i++) row_names[i] = rows[i].name;
    for (unsigned b = 0; b < r->n_backends; b++) backend_names[b] = r->backends[b].name;
    int code = flags_read(&c);
    if (code < 0 && list) return print_list(r), 0;
    want_all_if_none(r);
    return code;
}
