/*
 * phases.c - where phases begin and end.
 *
 * Ring: the allocator's current epoch is the phase, all workers allocate in it, and whoever completes the last request
 * of a phase advances and closes, one at a time. Requests that run meanwhile go on in the next phase, so with several
 * threads a request may belong to two. `version` tells whether a stretch of work saw one phase only: an object leaks
 * only then, and so always under the label of the route that leaks it.
 *
 * Domain: each worker has a domain for its phase, made with auto_close off, so that leaving it keeps the objects. A
 * phase in which nothing lives is released; another one is drained at once, and its domain destroyed when the last object
 * that a lagging free holds on to is gone. One with leaked objects is forgotten, as a program that leaks would. Unlike
 * the close of a ring's epoch these ends do not read the resident size, which takes longer than they do.
 */
#include "load/load.h"

bool has_own_phases(const struct run* r) { return r->s.phases == PHASES_DOMAIN; }

/* A run that leaks begins with the route that does, so that it leaks even when no second phase begins. */
static unsigned pick_route(const struct settings* s, const struct phase_log* log, uint64_t* random) {
    const struct pattern* p = s->pattern;
    unsigned n = next_random(random);
    if (s->free_policy == FREE_LEAK && log->begun == 0) return LEAKING_ROUTE;
    if (p->hot_percent == 0) return n % ROUTES;
    return n % 100 < p->hot_percent ? 0 : 1 + n / 100 % (ROUTES - 1);
}

static void log_end(struct phase_log* log, const EpochReceipt* receipt, uint64_t ns) {
    log->ended++;
    log->slabs_returned += receipt->slabs_returned;
    log->bytes_returned += receipt->bytes_returned;
    log->slabs_deferred += receipt->slabs_deferred;
    log->close_ns_sum += ns;
    if (ns > log->close_ns_max) log->close_ns_max = ns;
    hist_add(&log->close_ns, ns);
}

/* ---- the ring ---- */

static void ring_open(struct run* r) {
    unsigned route = pick_route(&r->s, &r->ring.log, &r->ring.random);
    if (r->a != NULL) slab_epoch_set_label(r->a, epoch_current(r->a), r->s.pattern->routes[route]);
    atomic_store_explicit(&r->ring.route, route, memory_order_relaxed);
    r->ring.log.begun++;
}

void ring_begin(struct run* r) {
    if (!has_own_phases(r)) ring_open(r);
}

void ring_turn(struct run* r) {
    struct ring* ring = &r->ring;
    pthread_mutex_lock(&ring->lock);
    EpochReceipt receipt = {0};
    EpochId old = r->a != NULL ? epoch_current(r->a) : 0;
    uint64_t from = now_ns();
    (void)atomic_fetch_add(&ring->version, 1); /* sequentially consistent, as its readers: before the advance */
    if (r->a != NULL && epoch_advance_id(r->a) == old) {
        ring->log.refused++; /* all records of epochs are in use: the phase goes on */
    } else {
        ring_open(r);
        if (r->a != NULL) (void)epoch_close_ex(r->a, old, EPOCH_DRAIN, &receipt);
        log_end(&ring->log, &receipt, now_ns() - from);
    }
    (void)atomic_fetch_add(&ring->version, 1);
    pthread_mutex_unlock(&ring->lock);
}

/* ---- domains ---- */

void phase_ensure(struct worker* w) {
    struct run* r = w->run;
    if (w->phase != NULL) return;
    struct phase* p = &w->phases[w->log.begun % w->phase_count]; /* the oldest: nothing of it lives any more */
    *p = (struct phase){.route = pick_route(&r->s, &w->log, &w->random)};
    w->phase = p;
    w->log.begun++;
    w->served_in_phase = 0;
    if (r->a == NULL) return;
    p->domain = epoch_domain_create_labeled(r->a, r->s.pattern->routes[p->route]);
    if (p->domain == NULL) {
        w->log.refused++;
        return;
    }
    p->domain->auto_close = false;
    epoch_domain_enter(p->domain);
}

void phase_end(struct worker* w) {
    struct phase* p = w->phase;
    EpochReceipt receipt = {0};
    if (p == NULL) return;
    uint64_t from = now_ns();
    if (p->domain != NULL) {
        epoch_domain_exit(p->domain);
        bool empty = p->leaked == 0 && p->live == 0;
        if (empty)
            epoch_domain_force_close(p->domain);
        else
            (void)epoch_close_ex(w->run->a, p->domain->epoch_id, EPOCH_DRAIN, NULL);
        (void)epoch_domain_receipt(p->domain, &receipt);
        if (empty) epoch_domain_destroy(p->domain);
    }
    log_end(&w->log, &receipt, now_ns() - from);
    p->ended = true;
    w->phase = NULL;
}

void phase_freed(struct phase* p, unsigned count) {
    p->live -= count;
    if (p->ended && p->live == 0 && p->leaked == 0 && p->domain != NULL) epoch_domain_destroy(p->domain);
}

/* ---- both ---- */

void phase_request_done(struct worker* w) {
    struct run* r = w->run;
    const struct settings* s = &r->s;
    unsigned after = s->epoch_policy == EPOCH_PER_REQ ? 1 : s->epoch_policy == EPOCH_BATCH ? s->batch : 0;
    if (!has_own_phases(r)) {
        uint64_t served = atomic_fetch_add_explicit(&r->ring.served, 1, memory_order_relaxed) + 1;
        if (after != 0 && served % after == 0) ring_turn(r);
        return;
    }
    uint64_t wanted = atomic_load_explicit(&r->phase_ends_wanted, memory_order_relaxed);
    if (++w->served_in_phase == after || wanted != w->phase_ends_seen) phase_end(w);
    w->phase_ends_seen = wanted;
}
