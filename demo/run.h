/*
 * run.h - one run: one backend, one process, all requests.
 */
#ifndef DEMO_RUN_H
#define DEMO_RUN_H

#include "accounts.h"
#include "backend.h"
#include "options.h"
#include "routes.h"
#include "sessions.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

/* What the phases of a route held, from their receipts, and how its requests fared. */
struct RouteFigures {
    uint64_t requests, failed, answer_bytes, leaked;
    uint64_t phases, objects, bytes, objects_freed, bytes_freed, objects_released, bytes_released, escaped,
        bytes_escaped;
    uint64_t held_bytes, close_ns, deferred_slabs;
    uint64_t max_objects, max_bytes, max_held_bytes; /* of one phase */
};

typedef struct Latency {
    double mean_ns;
    uint32_t p50_ns, p99_ns, p999_ns, max_ns;
} Latency;

typedef struct RssFigures {
    uint64_t start, loaded, peak, end;
} RssFigures;

typedef struct RunFigures {
    BackendKind backend;
    bool interrupted;
    uint64_t requests, done, threads;
    double seconds, cpu_seconds;
    uint64_t page_faults, live_bytes, refusals;
    Accounts accounts;
    unsigned accounts_differing;
    uint64_t accounts_compared; /* receipts */
    char leak_label[32];        /* with --leak: what was named first, "" when nothing was */
    double leak_named_seconds;  /* after the first request */
    RssFigures rss;
    SessionCounts sessions;
    Latency all, route[ROUTE_COUNT];
    RouteFigures figures[ROUTE_COUNT];
    bool has_receipt;
    uint64_t receipt_request; /* index of the request whose receipt is kept whole */
    EpochReceipt receipt;
} RunFigures;

/* Serves all requests and writes the figures as one line of JSON to o->result_fd. An exit status. */
int run_backend(const Options* o);
/* result.c */
void result_write(FILE* out, const RunFigures* run);
/* Set by the first SIGINT or SIGTERM. */
extern atomic_bool run_stop;

#endif
