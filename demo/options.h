/*
 * options.h - the flags of tslab_demo.
 */
#ifndef DEMO_OPTIONS_H
#define DEMO_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct Options {
    uint64_t requests, threads, sessions, seed, rounds;
    const char* data_dir;
    const char* handlers_dir;
    bool leak, tables;
    const char* json_file;    /* for the statistics of a run on temporal-slab; "-": stdout; NULL: none */
    const char* figures_file; /* for the figures of all runs; NULL: none */
    const char* backend;      /* NULL: compare both */
    uint64_t result_fd;       /* with backend: where the result goes, default stdout */
    uint64_t snapshot_fd;     /* with backend: takes the place of json_file; 0: none */
    uint64_t sums_fd;         /* with backend: file for the checksums of all requests; 0: none */
} Options;

/* Fills *o. -1 to go on, else the exit status. */
int options_read(int argc, char** argv, Options* o);

#endif
