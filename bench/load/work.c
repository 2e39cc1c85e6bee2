/*
 * work.c - a worker: when the next request is due, and what it does.
 *
 * Arrivals do not wait for completions: request k of a worker is due at a fixed time, and one that begins late begins
 * at once. `service` counts from its beginning, `response` from when it was due, so that a stall shows in every
 * request it delayed.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "load/load.h"

enum { CACHE_LINE = 64, SLEEP_MOST_NS = 20000000 }; /* a longer sleep looks in between whether the run is over */
#define KEY 0x9e3779b97f4a7c15u

static const unsigned mixed_sizes[8] = {64, 96, 128, 192, 256, 384, 512, 768};

void* map_memory(size_t bytes) {
    void* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

bool worker_prepare(struct worker* w, struct run* r, unsigned number) {
    const struct settings* s = &r->s;
    w->run = r;
    w->number = number;
    w->random = (s->seed * 1000003u + number + 1) * KEY;
    w->random += w->random == 0;
    w->due_requests = s->requests / s->threads + (number < s->requests % s->threads);
    w->slot_count = s->free_policy == FREE_LAG ? s->lag : 1;
    w->phase_count = w->slot_count + 1;
    size_t list = s->objs_max * sizeof(void*);
    w->slots = map_memory(w->slot_count * sizeof *w->slots);
    w->phases = map_memory(w->phase_count * sizeof *w->phases);
    char* lists = map_memory(w->slot_count * list);
    if (w->slots == NULL || w->phases == NULL || lists == NULL) return false;
    for (unsigned n = 0; n < w->slot_count; n++) w->slots[n].objects = (void**)(void*)(lists + n * list);
    return true;
}

static uint64_t draw(struct worker* w) { return next_random(&w->random); }

static void add(_Atomic uint64_t* counter, uint64_t n) { /* of the worker's own */
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n, memory_order_release);
}

/* ---- objects ---- */

static uint64_t stamp(const void* p) { return (uint64_t)(uintptr_t)p ^ KEY; }

static void* take(struct worker* w, unsigned size) {
    char* p = w->run->a != NULL ? slab_malloc(w->run->a, size) : malloc(size);
    if (p == NULL) return NULL;
    for (unsigned at = 0; at + sizeof(uint64_t) <= size; at += CACHE_LINE) *(uint64_t*)(void*)(p + at) = stamp(p);
    return p;
}

static void give(struct worker* w, void* p) {
    if (*(uint64_t*)p != stamp(p)) add(&w->damaged, 1);
    if (w->run->a != NULL)
        slab_free(w->run->a, p);
    else
        free(p);
}

static void free_slot(struct worker* w, struct slot* slot) {
    unsigned count = slot->count;
    if (count == 0) return;
    for (unsigned n = 0; n < count; n++) give(w, slot->objects[n]);
    slot->count = 0;
    w->route_freed[slot->route] += count;
    add(&w->freed, count);
    if (slot->phase != NULL) phase_freed(slot->phase, count);
}

void worker_free_live(struct worker* w) {
    for (unsigned n = 0; n < w->slot_count; n++) free_slot(w, &w->slots[(w->next_slot + n) % w->slot_count]);
}

void worker_forgive(struct worker* w) {
    for (void **p = w->leaked_list, **next; p != NULL; p = next) {
        next = *p;
        free(p);
    }
    w->leaked_list = NULL;
}

uint64_t worker_live(const struct worker* w) {
    uint64_t live = 0;
    for (unsigned n = 0; n < w->slot_count; n++) live += w->slots[n].count;
    return live;
}

/* Forgets objects of the slot, as many as are due, if its route leaks. */
static void leak(struct worker* w, struct slot* slot, bool one_phase) {
    const struct settings* s = &w->run->s;
    unsigned count = 0;
    w->leak_debt += slot->count * s->leak_pct / 100;
    if (!one_phase || (slot->route != LEAKING_ROUTE && s->leak_pct <= EVERY_ROUTE_LEAKS_ABOVE)) return;
    while (count < slot->count && w->leak_debt >= 1) {
        void** p = slot->objects[slot->count - ++count];
        *p = w->leaked_list;
        w->leaked_list = p;
        w->leak_debt -= 1;
    }
    slot->count -= count;
    w->route_leaked[slot->route] += count;
    add(&w->leaked, count);
    if (slot->phase == NULL) return;
    slot->phase->leaked += count;
    slot->phase->live -= count;
}

/* ---- requests ---- */

static void allocate(struct worker* w, struct slot* slot) {
    const struct settings* s = &w->run->s;
    unsigned wanted = s->objs_min + (unsigned)(draw(w) % (s->objs_max - s->objs_min + 1)), count = 0;
    for (unsigned n = 0; n < wanted; n++) {
        uint64_t dice = s->size == 0 ? draw(w) : 0;
        unsigned size = s->size != 0 ? s->size : dice & 8 ? 128 : mixed_sizes[dice & 7];
        slot->objects[count] = take(w, size);
        count += slot->objects[count] != NULL;
    }
    slot->count = count;
    w->route_allocated[slot->route] += count;
    if (slot->phase != NULL) slot->phase->live += count;
    add(&w->allocated, count);
    if (count != wanted) add(&w->failed, wanted - count);
}

static void serve(struct worker* w) {
    struct run* r = w->run;
    struct slot* slot = &w->slots[w->next_slot];
    w->next_slot = (w->next_slot + 1) % w->slot_count;
    free_slot(w, slot); /* what the request held that lags behind this one */
    if (has_own_phases(r)) phase_ensure(w);
    uint64_t version = atomic_load(&r->ring.version);
    slot->phase = w->phase;
    slot->route = slot->phase != NULL ? slot->phase->route : atomic_load_explicit(&r->ring.route, memory_order_relaxed);
    allocate(w, slot);
    if (r->s.free_policy == FREE_LEAK)
        leak(w, slot, slot->phase != NULL || (version % 2 == 0 && atomic_load(&r->ring.version) == version));
    if (r->s.free_policy != FREE_LAG) free_slot(w, slot);
    phase_request_done(w);
    add(&w->requests, 1);
}

static bool stopped(const struct worker* w) { return atomic_load_explicit(&w->run->stop, memory_order_relaxed); }

/* False when the run ended meanwhile. */
static bool sleep_until(const struct worker* w, uint64_t due) {
    for (uint64_t now = now_ns(); now < due && !stopped(w); now = now_ns()) {
        uint64_t ns = due - now < SLEEP_MOST_NS ? due - now : SLEEP_MOST_NS;
        (void)nanosleep(&(struct timespec){0, (long)ns}, NULL);
    }
    return !stopped(w);
}

static void timed(struct histogram* h, uint64_t* max, uint64_t ns) {
    hist_add(h, ns);
    if (ns > *max) *max = ns;
}

void* worker_main(void* worker) {
    struct worker* w = worker;
    struct run* r = w->run;
    double interval = r->s.req_rate > 0 ? 1e9 * r->s.threads / r->s.req_rate : 0;
    pthread_barrier_wait(&r->start);
    for (uint64_t n = 0; (r->s.requests == 0 || n < w->due_requests) && !stopped(w); n++) {
        /* Workers take turns. */
        uint64_t due = r->begin_ns + (uint64_t)(((double)n + (double)w->number / r->s.threads) * interval);
        if (interval > 0 && !sleep_until(w, due)) break;
        uint64_t from = now_ns();
        serve(w);
        uint64_t to = now_ns();
        timed(&w->service, &w->service_max, to - from);
        timed(&w->response, &w->response_max, to - (interval > 0 ? due : from));
    }
    if (has_own_phases(r)) phase_end(w);
    if (atomic_fetch_sub(&r->running, 1) == 1) (void)pthread_kill(r->controller, SIGUSR2);
    return NULL;
}
