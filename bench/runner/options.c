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
           "       tslab_bench suite [FLAG]...   the comparison suite: whole programs, allocator by allocator\n"
           "       tslab_bench limit [FLAG]...   who survives inside a memory limit\n");
    flags_print(c, c->tables[0]);
    printf("  --help            print this\n");
}

int options_read(int argc, char** argv, struct options* o, struct results* r) {
    static const char *row_names[ROW_COUNT + 1], *backend_names[MAX_BACKENDS + 1];
    bool list = false, machine = false;
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
        {"--machine", FLAG_SWITCH, &machine, .help = "print where results come from, as JSON"},
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
