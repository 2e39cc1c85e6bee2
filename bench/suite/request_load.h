/*
 * request_load.h - one request: 225 objects of eight sizes, about 52 KB, each written and verified; and the two arms of
 * recycling.
 *
 * continuous   objects are freed as the request ends; their slots are free at once
 * deferred     objects are held back when the request ends and freed by whoever closes the phase they ended in, so no memory
 *              is used again before that. This stands for allocators that recycle only at close; the library has no such
 *              mode, and needs none: what is not freed is not reused. The frees are part of the closing request's time.
 *
 * Policies: `never` closes nothing; `per-request` opens a domain for each request and ends it; `batch-N` advances the ring
 * and drains the epoch that was left after every N requests, while other threads may be in the middle of theirs.
 */
#ifndef SUITE_REQUEST_LOAD_H
#define SUITE_REQUEST_LOAD_H

#include "suite.h"

enum { REQUEST_OBJECTS = 225, MOST_REQUESTS = 1000000, MOST_THREADS = 64 };
enum { REQUEST_NEW, REQUEST_HELD, REQUEST_DONE };
enum { POLICY_NEVER, POLICY_PER_REQUEST, POLICY_BATCH_100, POLICY_BATCH_1000, POLICIES };

static const char* const policy_names[POLICIES] = {"never", "per-request", "batch-100", "batch-1000"};

struct request {
    void* object[REQUEST_OBJECTS];
    uint16_t size[REQUEST_OBJECTS];
    _Atomic uint8_t state;
};

static struct {
    struct request* request;
    uint64_t n, batch; /* batch 0: no closes between requests */
    bool deferred, per_request;
    _Atomic uint64_t taken, finished, phases_closed;
    pthread_mutex_t closing;
} load = {.closing = PTHREAD_MUTEX_INITIALIZER};

static void load_draw_sizes(void) {
    static const uint16_t sizes[8] = {64, 96, 128, 192, 256, 384, 512, 768};
    static const uint8_t weight[8] = {5, 4, 5, 3, 3, 2, 2, 2}; /* of 26; 231 bytes on average */
    uint64_t random = suite.seed;
    for (uint64_t r = 0; r < load.n; r++) {
        for (int i = 0; i < REQUEST_OBJECTS; i++) {
            unsigned card = next_random(&random) % 26, c = 0;
            while (card >= weight[c]) card -= weight[c++];
            load.request[r].size[i] = sizes[c];
        }
    }
}

static void load_prepare(uint64_t requests) {
    load.n = requests;
    load.request = harness_memory(requests * sizeof *load.request);
    load_draw_sizes();
}

static void load_begin(unsigned policy, bool deferred) {
    load.per_request = policy == POLICY_PER_REQUEST;
    load.batch = policy == POLICY_BATCH_100 ? 100 : policy == POLICY_BATCH_1000 ? 1000 : 0;
    load.deferred = deferred;
}

static uint64_t load_number(const struct request* q, int i) {
    return (uint64_t)(q - load.request) * REQUEST_OBJECTS + (uint64_t)i;
}

static void load_free(struct request* q) {
    for (int i = 0; i < REQUEST_OBJECTS; i++) heap_free(q->object[i]);
}

/* Frees what requests that have ended were holding. */
static void load_free_held(void) {
    for (uint64_t r = 0; r < load.n; r++) {
        uint8_t held = REQUEST_HELD;
        if (atomic_compare_exchange_strong(&load.request[r].state, &held, REQUEST_DONE)) load_free(&load.request[r]);
    }
}

static void load_close_phase(void) {
    pthread_mutex_lock(&load.closing); /* one batch after the other */
    heap_next_phase();
    if (load.deferred) load_free_held();
    load.phases_closed++;
    pthread_mutex_unlock(&load.closing);
}

/* Takes the next request; false when there is none. */
static bool load_take(uint64_t* r) {
    *r = load.taken++;
    return *r < load.n && !suite_stopped();
}

/* Serves request r: allocates, writes, verifies, ends. Returns a sum over its sizes and number. */
static uint64_t load_serve(uint64_t r) {
    struct request* q = &load.request[r];
    epoch_domain_t* domain = load.per_request && suite.tslab ? epoch_domain_begin(suite.a, "request") : NULL;
    uint64_t sum = r;
    for (int i = 0; i < REQUEST_OBJECTS; i++) {
        q->object[i] = heap_need(q->size[i]);
        suite_fill(q->object[i], q->size[i], load_number(q, i));
        sum += q->size[i];
    }
    for (int i = 0; i < REQUEST_OBJECTS; i++) suite_check(q->object[i], q->size[i], load_number(q, i));
    if (!load.deferred || (load.per_request && !suite.tslab)) {
        load_free(q);
        q->state = REQUEST_DONE;
    } else if (domain) {
        q->state = REQUEST_DONE; /* its objects end with the domain */
    } else {
        q->state = REQUEST_HELD;
    }
    if (domain) {
        epoch_domain_end(domain);
        load.phases_closed++;
    }
    uint64_t finished = ++load.finished;
    if (load.batch && finished % load.batch == 0) load_close_phase();
    return sum;
}

#endif
