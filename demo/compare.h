/*
 * compare.h - runs both backends in child processes and shows what they did.
 */
#ifndef DEMO_COMPARE_H
#define DEMO_COMPARE_H

#include "backend.h"
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
    bool unsound; /* a request failed, or the allocator refused a call */
} Comparison;

/* An exit status. */
int compare_backends(const Options* o);
/* report.c; sets c->unsound */
void report_print(Comparison* c);
bool report_write_json(const Comparison* c, FILE* out);

#endif
