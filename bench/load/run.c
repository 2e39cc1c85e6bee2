/*
 * run.c - a run from its beginning to its end.
 */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/flags.h"
#include "load/load.h"

bool run_prepare(struct run* r) {
    pthread_mutex_init(&r->ring.lock, NULL);
    r->ring.random = r->s.seed + 1;
    r->controller = pthread_self();
    r->workers = map_memory(r->s.threads * sizeof *r->workers);
    bool ok = r->workers != NULL;
    for (unsigned n = 0; ok && n < r->s.threads; n++) ok = worker_prepare(&r->workers[n], r, n);
    if (!ok) fprintf(stderr, "%s: no memory for the lists of objects\n", program_name);
    return ok;
}

bool run_start(struct run* r) {
    atomic_store(&r->running, r->s.threads);
    pthread_barrier_init(&r->start, NULL, r->s.threads + 1);
    ring_begin(r);
    for (unsigned n = 0; n < r->s.threads; n++) {
        int error = pthread_create(&r->workers[n].thread, NULL, worker_main, &r->workers[n]);
        if (error == 0) continue;
        fprintf(stderr, "%s: thread %u of %u: %s\n", program_name, n + 1, r->s.threads, strerror(error));
        return false;
    }
    r->begin_ns = now_ns();
    pthread_barrier_wait(&r->start);
    return true;
}

void run_end_phase(struct run* r) {
    atomic_fetch_add(&r->phase_ends_wanted, 1);
    if (!has_own_phases(r)) ring_turn(r);
}

void run_stop(struct run* r) {
    atomic_store(&r->stop, true);
    for (unsigned n = 0; n < r->s.threads; n++) pthread_join(r->workers[n].thread, NULL);
    r->end_ns = now_ns();
}

static uint64_t read_counter(const _Atomic uint64_t* c) { return atomic_load_explicit(c, memory_order_acquire); }

struct totals totals_now(const struct run* r) {
    struct totals t = {0};
    for (unsigned n = 0; n < r->s.threads; n++) {
        const struct worker* w = &r->workers[n];
        t.requests += read_counter(&w->requests);
        t.freed += read_counter(&w->freed);
        t.leaked += read_counter(&w->leaked);
        t.allocated += read_counter(&w->allocated);
        t.failed += read_counter(&w->failed);
        t.damaged += read_counter(&w->damaged);
    }
    t.live = t.allocated - t.freed - t.leaked;
    return t;
}
