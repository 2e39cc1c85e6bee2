/*
 * results.h - what the runner knows: backends, cells, and how they are summed up.
 *
 * A cell is one row on one backend. Its state says why there are no numbers; values are NAN where a
 * repetition failed or the row has no such number in this form.
 */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include "rows.h"

enum { MAX_BACKENDS = 48, MAX_REPETITIONS = 99, TEXT = 160 };

/*
 * Checked: a general peer that refuses doubled frees, as ours do; a kind of its own, never the best peer. Observed: a
 * general peer with a profiler, on or off; compared with itself, never the best peer.
 */
enum group { GROUP_GENERAL, GROUP_CHECKED, GROUP_PHASE, GROUP_LIMIT, GROUP_OURS, GROUP_OBSERVED };

struct backend {
    const char* name;
    enum group group;
    const char* worker;             /* program in bench_workers/, without its prefix */
    const char* peer;               /* its line in the manifest */
    const char* environment;        /* "NAME=VALUE ..." of its worker; NULL for none */
    const char* profiler;           /* what its profiler must say of itself; NULL: anything */
    int off;                        /* the same without being observed; -1 for none */
    unsigned slower;                /* it does so much less of the work: single calls take microseconds */
    bool only[ROW_COUNT], has_only; /* rows it is asked for; all when has_only is false */
    bool wanted, available;
    char version[64], reason[TEXT]; /* reason: why it is not available */
    char library[1024];             /* LD_PRELOAD; "" for none */
    char malloc_from[512];          /* file that serves malloc in its worker */
};

enum state { STATE_NONE, STATE_OK, STATE_FAILED, STATE_CORRUPT, STATE_CANNOT, STATE_MISSING };

struct cell {
    enum state state;
    unsigned failures;
    char reason[TEXT];
    double value[MAX_METRICS][MAX_REPETITIONS];
    double instructions; /* per operation; NAN when not counted */
    bool uncountable;    /* it does not run under callgrind */
};

struct results {
    unsigned repetitions; /* asked for */
    unsigned part;        /* laps are divided by it */
    uint64_t seeds[2];    /* of the 1st, 3rd, ... repetition, and of the 2nd, 4th, ... */
    unsigned n_backends;
    bool quick, complete, instructions;
    long seconds;
    const char* command;
    bool wanted[ROW_COUNT];
    struct backend backends[MAX_BACKENDS];
    struct cell cells[ROW_COUNT][MAX_BACKENDS];
};

/* ---- summing up (summary.c) --------------------------------------------------------------- */

struct summary {
    unsigned n;
    double median, least, most, spread; /* NAN without values; spread: (most - least) / median */
    double to_glibc, to_best, to_limit; /* cost relative to, median over the repetitions; below 1 is better */
    double to_off;                      /* the same, relative to the backend's own `off` */
};

struct summary summarise(const struct results* r, unsigned row, unsigned backend, unsigned metric);

/* The median of the cost relative to the best peer over the repetitions of one of the two seeds. */
double best_ratio_of_seed(const struct results* r, unsigned row, unsigned backend, unsigned metric, unsigned which);

/* The peer with the best median, and the best of all but limit, checked and observed; -1 when nobody has one. */
int best_peer(const struct results* r, unsigned row, unsigned metric);
int winner(const struct results* r, unsigned row, unsigned metric);

/* Ours that is compared with the others: "tslab", or the first of ours that has the number; -1. */
int our_entry(const struct results* r, unsigned row, unsigned metric);

bool metric_has_values(const struct results* r, unsigned row, unsigned metric);

/* The rows that fill much memory are done once in the quick form: resident size hardly varies. */
unsigned repetitions_of(const struct results* r, unsigned row);

const char* state_name(enum state state);
const char* group_name(enum group group);

/* ---- output ------------------------------------------------------------------------------- */

void report_table(const struct results* r);
void report_observed(const struct results* r); /* a part of the table: what being observed costs */
void report_seeds(const struct results* r);    /* another: what the second seed says */
bool report_json(const struct results* r, const char* path);
bool report_csv(const struct results* r, const char* path);

#endif
