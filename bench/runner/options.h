/* options.h - the command line. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "runner/results.h"

#define MAX_SEED UINT32_MAX

struct options {
    bool quick, instructions;
    unsigned repetitions, part; /* 0: not given */
    uint64_t seeds[2];          /* 0: not given */
    const char *json, *csv;
};

/* Fills options, r->backends and what is wanted of rows and backends. -1: go on; else the exit code. */
int options_read(int argc, char** argv, struct options* o, struct results* r);

#endif
