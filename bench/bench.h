/*
 * bench.h - the vocabulary of tslab_bench.
 *
 * A *row* is a workload that can be asked for by name; it yields one or several *metrics*, each a
 * line of the table. A *backend* is an allocator under test: a table of functions, one per row,
 * produced by compiling workloads.h and phases.h against the backend's inline interface
 * (backend_*.h), so that the hot loops call the allocator directly. A row a backend cannot do is
 * NULL and is shown as such.
 *
 * Every (row, backend, repetition) runs in a child process of its own: heaps do not disturb each
 * other, a crash costs one cell, and each child starts from the same address space.
 */
#ifndef BENCH_H
#define BENCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_METRICS = 12, MAX_BACKENDS = 16, MAX_REPETITIONS = 99 };

enum row_id {
    ROW_PAIR,
    ROW_BATCH,
    ROW_BATCH_TAIL,
    ROW_MIXED,
    ROW_REQUEST,
    ROW_REQUEST_BULK,
    ROW_HANDLE_PAIR,
    ROW_THREADS,
    ROW_XTHREAD,
    ROW_CLOSE_EMPTY,
    ROW_CLOSE_SLABS,
    ROW_DOMAIN,
    ROW_DOMAIN_SHARED,
    ROW_RSS_POINTER,
    ROW_RSS_HANDLE,
    ROW_DRIFT,
    ROW_OPEN_PHASES,
    ROW_COUNT
};

struct plan {
    unsigned divisor; /* 1, or more for --quick: repetitions inside a row are divided by it */
};

/* Fills out[], one number per metric of the row, in the order of the row's table entry. */
typedef void (*work_fn)(const struct plan* plan, double* out);

struct backend {
    const char* name;
    const char* (*version)(void);
    work_fn work[ROW_COUNT];
};

struct metric {
    const char* name;
    const char* unit;
    bool higher_is_better;
};

struct row {
    const char* name;
    const char* what;
    unsigned n_metrics;
    struct metric metrics[MAX_METRICS];
};

extern const struct row rows[ROW_COUNT];
extern const struct backend backend_glibc, backend_tslab, backend_tslab_sampled;

/* Results: value[repetition], NAN where the child failed. */
struct cell {
    bool supported;
    unsigned failures;
    double value[MAX_METRICS][MAX_REPETITIONS];
};

struct results {
    unsigned repetitions, n_backends;
    const struct backend* backends[MAX_BACKENDS];
    bool wanted[ROW_COUNT];
    struct cell cells[ROW_COUNT][MAX_BACKENDS];
    const char* command;
};

void report_table(const struct results* r);
bool report_json(const struct results* r, const char* path);

#endif
