/*
 * load.h - a server's shape of allocations, without the server. synthetic_bench measures it, tslabd shows it.
 *
 *   settings   a pattern's preset with single flags on top
 *   run        the allocator, the workers and the phase they share
 *   worker     a thread that serves requests: allocates objects, writes them, frees them by the free policy
 *   slot       what one request holds on to; a worker keeps as many slots as requests may lag, and one
 *   phase      requests that end together: of the ring, shared by all workers, or a domain of one worker. A phase
 *              serves one route, and carries the route as its label
 *
 * With malloc everything is the same but the calls of the library: the same requests, the same lists of objects. What
 * the program itself keeps is mapped, not allocated, so that it is not part of what is measured.
 */
#ifndef LOAD_H
#define LOAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <epoch_domain.h>
#include <slab_alloc.h>

#include "load/settings.h"
#include "measure.h"

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
    pthread_t controller; /* gets SIGUSR2 when the last worker has ended; it has to have it blocked */
    pthread_barrier_t start;
    _Atomic bool stop;
    _Atomic unsigned running;
    _Atomic uint64_t phase_ends_wanted;
    uint64_t begin_ns, end_ns;
};

/* ---- a run, in this order; false after a complaint on standard error ---- */

/* Makes what the program itself keeps; `s` is set. The caller makes the allocator, or leaves it NULL. */
bool run_prepare(struct run* r);
/* The first phase and the threads. When it fails the threads that began wait for ever: the caller exits. */
bool run_start(struct run* r);
/* Ends the phase, by whoever has one. Any thread, between start and stop. */
void run_end_phase(struct run* r);
/* Ends the workers and waits for them. */
void run_stop(struct run* r);

struct totals {
    uint64_t requests, allocated, freed, leaked, failed, damaged, live;
    struct {
        uint64_t allocated, freed, leaked;
    } route[ROUTES]; /* filled in by who may look at workers that have ended */
};

/* Any time; `live` is what is left over. */
struct totals totals_now(const struct run* r);

/* ---- pieces ---- */

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

#endif
