/* options.c - the command line: a table of flags; what is wrong is said together with what is right. */
#include "runner/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runner/backends.h"

static const struct {
    const char *flag, *argument, *help;
} flags[] = {
    {"--quick", NULL, "3 repetitions of a fifth of the work"},
    {"--reps", "N", "repetitions, 1 to 99 (7, with --quick 3)"},
    {"--part", "N", "an Nth of the work, 1 to 1000 (1, with --quick 5)"},
    {"--row", "NAME", "only this row; may be repeated"},
    {"--backend", "NAME", "only this backend; may be repeated"},
    {"--seed", "N", "what work is drawn from in the 1st, 3rd, ... repetition (1)"},
    {"--second-seed", "N", "in the 2nd, 4th, ... (drawn at random, and said)"},
    {"--instructions", NULL, "count instructions, too (needs valgrind; rows that are short)"},
    {"--json", "FILE", "write the results, every repetition included"},
    {"--csv", "FILE", "the same, a line for each value"},
    {"--peers", "FILE", "the list of peers (build/peers/peers.tsv)"},
    {"--list", NULL, "print rows, metrics and backends"},
    {"--help", NULL, "print this"},
};

enum { FLAGS = sizeof flags / sizeof *flags };

static void print_usage(FILE* f) {
    fprintf(f, "usage: tslab_bench [FLAG]...\n");
    for (unsigned i = 0; i < FLAGS; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s%s%s", flags[i].flag, flags[i].argument ? " " : "",
                 flags[i].argument ? flags[i].argument : "");
        fprintf(f, "  %-17s %s\n", left, flags[i].help);
    }
}

static void print_names_of_rows(FILE* f) {
    for (unsigned i = 0; i < ROW_COUNT; i++) fprintf(f, "%s%s", i ? " " : "", rows[i].name);
    fprintf(f, "\n");
}

static void print_names_of_backends(FILE* f, const struct results* r) {
    for (unsigned b = 0; b < r->n_backends; b++) fprintf(f, "%s%s", b ? " " : "", r->backends[b].name);
    fprintf(f, "\n");
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

const char* options_peers(int argc, char** argv) {
    const char* peers = NULL;
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], "--peers") == 0) peers = argv[i + 1];
    return peers;
}

static bool take_number(const char* flag, const char* text, unsigned most, unsigned* out) {
    char* end;
    unsigned long n = strtoul(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || n < 1 || n > most) {
        fprintf(stderr, "tslab_bench: %s takes a number from 1 to %u, not '%s'\n", flag, most, text);
        return false;
    }
    *out = (unsigned)n;
    return true;
}

static bool take_seed(const char* flag, const char* text, uint64_t* out) {
    char* end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || n < 1 || n > MAX_SEED || errno) {
        fprintf(stderr, "tslab_bench: %s takes a number from 1 to %llu, not '%s'\n", flag, (unsigned long long)MAX_SEED,
                text);
        return false;
    }
    *out = n;
    return true;
}

static bool take_row(const char* text, struct results* r) {
    unsigned row = row_find(text);
    if (row < ROW_COUNT) return r->wanted[row] = true;
    fprintf(stderr, "tslab_bench: there is no row '%s'; the rows are: ", text);
    print_names_of_rows(stderr);
    return false;
}

static bool take_backend(const char* text, struct results* r) {
    int b = backend_find(r, text);
    if (b >= 0) return r->backends[b].wanted = true;
    fprintf(stderr, "tslab_bench: there is no backend '%s'; the backends are: ", text);
    print_names_of_backends(stderr, r);
    return false;
}

static bool take(const char* flag, const char* argument, struct options* o, struct results* r) {
    if (strcmp(flag, "--quick") == 0) return o->quick = true;
    if (strcmp(flag, "--instructions") == 0) return o->instructions = true;
    if (strcmp(flag, "--reps") == 0) return take_number(flag, argument, MAX_REPETITIONS, &o->repetitions);
    if (strcmp(flag, "--part") == 0) return take_number(flag, argument, 1000, &o->part);
    if (strcmp(flag, "--seed") == 0) return take_seed(flag, argument, &o->seeds[0]);
    if (strcmp(flag, "--second-seed") == 0) return take_seed(flag, argument, &o->seeds[1]);
    if (strcmp(flag, "--row") == 0) return take_row(argument, r);
    if (strcmp(flag, "--backend") == 0) return take_backend(argument, r);
    if (strcmp(flag, "--json") == 0) o->json = argument;
    if (strcmp(flag, "--csv") == 0) o->csv = argument;
    if (strcmp(flag, "--peers") == 0) o->peers = argument;
    return true;
}

static void want_all_if_none(struct results* r) {
    bool row = false, backend = false;
    for (unsigned i = 0; i < ROW_COUNT; i++) row |= r->wanted[i];
    for (unsigned b = 0; b < r->n_backends; b++) backend |= r->backends[b].wanted;
    for (unsigned i = 0; i < ROW_COUNT; i++) r->wanted[i] |= !row;
    for (unsigned b = 0; b < r->n_backends; b++) r->backends[b].wanted |= !backend;
}

int options_read(int argc, char** argv, struct options* o, struct results* r) {
    for (int i = 1; i < argc; i++) {
        unsigned f = 0;
        while (f < FLAGS && strcmp(flags[f].flag, argv[i]) != 0) f++;
        if (f == FLAGS) {
            fprintf(stderr, "tslab_bench: '%s' is not a flag\n", argv[i]);
            print_usage(stderr);
            return 2;
        }
        if (strcmp(argv[i], "--help") == 0) return print_usage(stdout), 0;
        if (strcmp(argv[i], "--list") == 0) return print_list(r), 0;
        const char* argument = NULL;
        if (flags[f].argument && !(argument = argv[++i])) {
            fprintf(stderr, "tslab_bench: %s needs a %s\n", flags[f].flag, flags[f].argument);
            return 2;
        }
        if (!take(flags[f].flag, argument, o, r)) return 2;
    }
    want_all_if_none(r);
    return -1;
}
