/*
 * options.c - the command line. `tslab_bench suite` and `tslab_bench limit` are scripts of bench/suite, which are beside
 * the programs that they run; they get this build, and everything that follows.
 */
#include "runner/options.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/flags.h"
#include "machine.h"
#include "runner/backends.h"

enum { MOST_WORDS = 64 };

/* What a first word means, and -1 when it means nothing; a script that can be run does not come back. */
static int run_script(int argc, char** argv) {
    static const char* const scripts[][2] = {{"suite", "suite/run.py"}, {"limit", "suite/memory_limit.sh"}};
    char script[1200], folder[1200];
    char* words[MOST_WORDS + 4] = {script, "--build", folder};
    for (unsigned i = 0; argc > 1 && i < sizeof scripts / sizeof *scripts; i++) {
        if (strcmp(argv[1], scripts[i][0]) != 0) continue;
        if (argc - 2 > MOST_WORDS) return fprintf(stderr, "tslab_bench: too many words\n"), 2;
        snprintf(script, sizeof script, "%s", beside(scripts[i][1]));
        snprintf(folder, sizeof folder, "%s", beside("."));
        memcpy(&words[3], &argv[2], (size_t)(argc - 2) * sizeof *words);
        execv(script, words);
        fprintf(stderr, "tslab_bench: cannot run '%s': %s\n", scripts[i][1], strerror(errno));
        return 1;
    }
    return -1;
}

static int print_machine(void) {
    struct json j = {.write = json_file, .ctx = stdout, .lines = 1, .indent = 2};
    json_object(&j, NULL);
    machine_json(&j);
    json_close(&j);
    return putchar('\n') == EOF || fflush(stdout) != 0;
}

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
    printf("usage: tslab_bench [FLAG]...\n"
           "       tslab_bench suite [FLAG]...   run the comparison suite: whole programs on each allocator\n"
           "       tslab_bench limit [FLAG]...   find out which allocators survive within a memory limit\n");
    flags_print(c, c->tables[0]);
    printf("  --help            print this help\n");
}

int options_read(int argc, char** argv, struct options* o, struct results* r) {
    static const char *row_names[ROW_COUNT + 1], *backend_names[MAX_BACKENDS + 1];
    bool list = false, machine = false;
    const char* peers;
    struct flag flags[] = {
        {"--quick", FLAG_SWITCH, &o->quick, .help = "run 3 repetitions with a fifth of the work"},
        {"--reps", FLAG_UNSIGNED, &o->repetitions, .least = 1, .most = MAX_REPETITIONS,
         .help = "run N repetitions, 1 to 99 (default: 7; with --quick: 3)"},
        {"--part", FLAG_UNSIGNED, &o->part, .least = 1, .most = 1000,
         .help = "do 1/N of the work, N from 1 to 1000 (default: 1; with --quick: 5)"},
        {"--row", FLAG_WORD, r->wanted, want_row, .words = row_names, .argument = "NAME",
         .help = "run only this row; can be given several times"},
        {"--backend", FLAG_WORD, r, want_backend, .words = backend_names, .argument = "NAME",
         .help = "run only this backend; can be given several times"},
        {"--seed", FLAG_COUNT, &o->seeds[0], .least = 1, .most = MAX_SEED,
         .help = "random seed of the work in repetitions 1, 3, ... (default: 1)"},
        {"--second-seed", FLAG_COUNT, &o->seeds[1], .least = 1, .most = MAX_SEED,
         .help = "random seed in repetitions 2, 4, ... (default: random, and printed)"},
        {"--instructions", FLAG_SWITCH, &o->instructions,
         .help = "also count instructions (only in short rows; needs valgrind)"},
        {"--json", FLAG_TEXT, &o->json, .argument = "FILE",
         .help = "write the results as JSON, including each repetition"},
        {"--csv", FLAG_TEXT, &o->csv, .argument = "FILE", .help = "write the results as CSV, one value per line"},
        {"--peers", FLAG_TEXT, &peers, .argument = "FILE",
         .help = "read the list of peers from this file (default: build/peers/peers.tsv)"},
        {"--machine", FLAG_SWITCH, &machine, .help = "print a description of this machine as JSON"},
        {"--list", FLAG_SWITCH, &list, .help = "print rows, metrics and backends"},
        {.name = NULL},
    };
    const struct command_line c = {"tslab_bench", NULL, print_help, 20, ' ', {flags}, argc, argv};
    int code = run_script(argc, argv);
    if (code >= 0) return code;
    backends_read(r, flags_value(&c, "--peers"));
    for (unsigned i = 0; i < ROW_COUNT; i++) row_names[i] = rows[i].name;
    for (unsigned b = 0; b < r->n_backends; b++) backend_names[b] = r->backends[b].name;
    code = flags_read(&c);
    if (code < 0 && machine) return print_machine();
    if (code < 0 && list) return print_list(r), 0;
    want_all_if_none(r);
    return code;
}
