/*
 * compare.h - runs both backends in child processes and shows what they did.
 */
#ifndef DEMO_COMPARE_H
#define DEMO_COMPARE_H

#include "backend.h"
#include "leak.h"
#include "options.h"

#include <cJSON.h>
#include <stdio.h>

enum { RUNS_MAX = 99 };

/* Everything the report is made from. */
typedef struct Comparison {
    const Options* options;
    cJSON* runs[BACKEND_COUNT][RUNS_MAX]; /* as written by result.c */
    int run_count[BACKEND_COUNT];
    bool interrupted, out_of_time;
    uint64_t compared;  /* answers checked against the first run's */
    uint64_t differing; /* of those */
    uint64_t first_differing;
    const cJSON* shown; /* the run on temporal-slab that is told of alone: the last complete one, else the last one */
    int snapshot_fd;    /* its statistics, as it wrote them */
    bool unsound;       /* a request failed, the allocator refused a call, or its accounts are not the server's */
} Comparison;

/* An exit status. */
int compare_backends(const Options* o);
/* report_verdict.c: the table of what can be judged, and the median of a figure's ratios over pairs of runs (NAN without a
 * pair) */
void report_verdict(const Comparison* c);
double report_ratio(const Comparison* c, const char* path);
/* report.c; the first sets c->unsound, the other is the median of a figure over a backend's runs */
void report_print(Comparison* c);
double report_median(const Comparison* c, BackendKind kind, const char* path);
/* report_accounts.c: what the allocator says of a run on temporal-slab */
void report_labels(const cJSON* run);
void report_labels_briefly(const cJSON* run);
void report_doctor(const cJSON* run);
void report_doctor_briefly(const cJSON* run, bool leaks); /* its section on leaks, or its verdict and actions */
/* on_glibc: a run with the same leak, or NULL */
void report_leak(const cJSON* run, const cJSON* on_glibc);
/* The figures of all runs; a fill function of output_write, ctx is the Comparison. */
bool report_write_json(FILE* out, const void* ctx);

#endif
