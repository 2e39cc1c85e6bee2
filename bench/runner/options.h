/* options.h - the command line. */
#ifndef BENCH_OPTIONS_H
#define BENCH_OPTIONS_H

#include "runner/results.h"

#define MAX_SEED UINT32_MAX

struct options {
    bool quick, instructions;
    unsigned repetitions, part; /* 0: not given */
    uint64_t seeds[2];          /* 0: not given */
    const char *json, *csv, *peers;
};

/*
 * Fills options, r->wanted and the `wanted` of the backends (which must have been read already, see
 * options_peers). -1: go on; else the exit code, everything having been said.
 */
int options_read(int argc, char** argv, struct options* o, struct results* r);

/* The manifest named by --peers, NULL for none; needed before the rest can be read. */
const char* options_peers(int argc, char** argv);

#endif
