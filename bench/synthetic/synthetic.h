/*
 * synthetic.h - the vocabulary of synthetic_bench: a server's shape of allocations, without the server.
 *
 *   settings   what the command line asks for: a pattern's preset with single flags on top
 *   worker     a thread that serves requests: allocates objects, writes them, frees them by the free policy
 *   slot       what one request holds on to; a worker keeps as many slots as requests may lag, and one
 *   phase      requests that end together: of the ring, shared by all workers, or a domain of one worker. A phase
 *              serves one route, and carries the route as its label
 *   outcome    the sums of all workers when nothing runs any more, the library's own numbers, and whether they agree
 *
 * With malloc everything is the same but the calls of the library: the same requests, the same lists of objects. What
 * the program itself keeps is mapped, not allocated, so that it is not part of what is measured.
 */
#ifndef SYNTHETIC_H
#define SYNTHETIC_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <epoch_domain.h>
#include <slab_alloc.h>

#include "measure.h"

enum { ROUTES = 4, LEAKING_ROUTE = 2, WORKERS_MAX = 256, LAG_MAX = 100000, EVERY_ROUTE_LEAKS_ABOVE = 20 };

enum epoch_policy { EPOCH_PER_REQ, EPOCH_BATCH, EPOCH_MANUAL };
enum free_policy { FREE_WITHIN_REQ, FREE_LAG, FREE_LEAK };
enum phase_kind { PHASES_RING, PHASES_DOMAIN, PHASES_BY_POLICY };

struct pattern {
    const char *name, *what;
    const char* routes[ROUTES];
    unsigned hot_percent;                       /* share of the first route; 0: all routes alike */
    bool keep_nothing_warm;                     /* every page of an ended phase goes back to the system */
    unsigned threads, objs_min, objs_max, size; /* size 0: mixed */
    double req_rate;
    enum epoch_policy epoch_policy;
    unsigned batch;
    enum free_policy free_policy;
    unsigned lag;
    double leak_pct;
};

struct settings {
    bool use_malloc;
    const struct pattern* pattern;
    double duration_s, req_rate, stats_s, progress_s;
    uint64_t requests; /* 0: until the time is over */
    unsigned threads, objs_min, objs_max, size;
    enum epoch_policy epoch_policy;
    unsigned batch;
    enum free_policy free_policy;
    unsigned lag;
    double leak_pct;
    enum phase_kind phases;
    unsigned rss_sample_ms, leak_threshold_s;
    uint64_t seed;
    const char *stats_file, *json_file;
    bool doctor;
};

/* -1 to go on, else the exit status. */
int settings_read(struct settings* s, int argc, char** argv);
const char* settings_epoch_policy(const struct settings* s); /* as it would be written; storage of the thread */
const char* settings_free_policy(const struct settings* s);

/* ---- phases ---- */

struct phase {              /* of a domain */
    epoch_domain_t* domain; /* NULL with malloc, or when there was none to be had */
    unsigned route;
    uint64_t live, leaked; /* objects of requests served in it */
    bool ended;
};

struct phase_log { /* what ends of phases took: written under the ring's lock, or by one worker */
    uint64_t begun, ended, refused, slabs_returned, bytes_returned, slabs_deferred, close_ns_sum, close_ns_max;
    struct histogram close_ns;
};

struct ring {
    pthread_mutex_t lock;     /* ends of phases come one after the other */
    _Atomic uint64_t version; /* odd while one phase gives way to the next */
    _Atomic unsigned route;
    _Atomic uint64_t served; /* requests completed since the run began */
    uint64_t random;
    struct phase_log log;
};

/* ---- workers ---- */

struct slot {
    unsigned count, route;
    struct phase* phase; /* NULL in ring phases */
    void** objects;
};

struct worker {
    /* Read by anybody, written by the worker alone: frees and leaks are read before allocations, so what is live is
     * never negative. */
    _Alignas(64) _Atomic uint64_t requests;
    _Atomic uint64_t allocated, freed, leaked, failed, damaged;
    /* Private from here on, until the thread has ended. */
    _Alignas(64) struct run* run;
    pthread_t thread;
    unsigned number;
    uint64_t random, due_requests, served_in_phase, phase_ends_seen;
    uint64_t route_allocated[ROUTES], route_freed[ROUTES], route_leaked[ROUTES];
    double leak_debt;
    void* leaked_list; /* through the first word of the objects, newest first */
    struct slot* slots;
    unsigned slot_count, next_slot;
    struct phase *phases, *phase; /* of domains: the records, and the one in use */
    unsigned phase_count;
    struct phase_log log;
    struct histogram service, response; /* from the request's start, and from when it was due */
    uint64_t service_max, response_max;
};

struct run {
    struct settings s;
    SlabAllocator* a; /* NULL with malloc */
    struct ring ring;
    struct worker* workers;
    pthread_t controller;
    pthread_barrier_t start;
    _Atomic bool stop;
    _Atomic unsigned running;
    _Atomic uint64_t phase_ends_wanted; /* by SIGUSR1 */
    uint64_t begin_ns, end_ns;
    bool interrupted;
    uint64_t rss_start, rss_peak, rss_end, rss_samples;
    double leak_named_s; /* below 0: not */
    char leak_named[32];
    uint64_t stats_written, stats_failed;
};

/* Memory of the program's own, zeroed and present; NULL without. */
void* map_memory(size_t bytes);
bool worker_prepare(struct worker* w, struct run* r, unsigned number);
void* worker_main(void* worker);
/* Frees everything that requests hold on to; from any thread, when the worker has ended. */
void worker_free_live(struct worker* w);
/* With malloc: gives leaked objects back, for checkers of leaks at exit. With tslab they end with the allocator. */
void worker_forgive(struct worker* w);
uint64_t worker_live(const struct worker* w);

/* Begins the first phase of the ring. */
void ring_begin(struct run* r);
/* Ends the ring's phase and begins the next. */
void ring_turn(struct run* r);
/* A request is over: ends the phase when it was the last of it. */
void phase_request_done(struct worker* w);
/* Begins the worker's phase where it has none. */
void phase_ensure(struct worker* w);
void phase_end(struct worker* w);
/* Objects of an ended phase were freed: the last of them ends the domain. */
void phase_freed(struct phase* p, unsigned count);
bool has_own_phases(const struct run* r);

/* ---- what came out ---- */

struct totals {
    uint64_t requests, allocated, freed, leaked, failed, damaged, live;
    struct {
        uint64_t allocated, freed, leaked;
    } route[ROUTES]; /* of outcome_check only */
};

struct last_close { /* after the run: what lived is freed, and the ring's phase closed */
    uint64_t freed, bytes_returned, close_ns, rss_before, rss_after, drop_ns; /* drop_ns 0: not seen within a second */
};

/* Any time; without `live`, which is what is left over. */
struct totals totals_now(const struct run* r);
/* When nothing runs: live objects are counted where they are kept. Complains on standard error of what does not agree;
 * the number of complaints. */
unsigned outcome_check(const struct run* r, struct totals* t);
struct last_close outcome_close(struct run* r, unsigned* complaints);
void report_text(const struct run* r, const struct totals* t, const struct last_close* last, FILE* f);
bool report_json(const struct run* r, const struct totals* t, const struct last_close* last, unsigned complaints,
                 FILE* f);

/* ---- files ---- */

/* A file that appears under its name complete: a regular file is written beside it and renamed. */
struct out_file {
    FILE* f;
    const char* name;
    char* temporary; /* NULL: written in place (a pipe, a device) */
};
bool out_open(struct out_file* o, const char* name); /* false: errno */
bool out_close(struct out_file* o, bool keep);       /* false: errno, and nothing changed under the name */
/* The library's document with members benchmark_*; errno when false. */
bool stats_write(const struct run* r, const char* name);

#endif
