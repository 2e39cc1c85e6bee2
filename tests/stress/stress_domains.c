/*
 * stress_domains.c - phases the way servers use them, on many threads.
 *
 *   request   begin, objects, some freed, a nested query, end; the receipt must be exact
 *   frames    one domain entered once and reset after every frame
 *   relay     a domain detached with its objects, finished by whichever thread finds it; tasks wait on their thread, too
 *   crowd     one domain that all threads enter and leave at will: the last one out releases it,
 *             the next one in opens it afresh, and nobody's objects end while it is inside
 *   borrowed  a domain over a ring epoch, drained by its last exit while objects live on
 *   deserter  a thread that ends inside its domains
 */
#include "stress.h"

enum { THREADS = 8, RELAYS = 64, MOST = 200, RING = 16 };

static SlabAllocator* a;
static epoch_domain_t* crowd;

struct thing {
    void* p;
    size_t size;
};

struct phase {
    struct thing things[MOST];
    unsigned n, allocated, freed;
};

/* ---- a phase's objects ------------------------------------------------------------------ */

static void phase_alloc(struct phase* ph, struct dice* d, unsigned n) {
    for (; n > 0 && ph->n < MOST; n--) {
        size_t size = small_size(d);
        SlabHandle h = 0;
        void* p = chance(d, 6) ? alloc_obj(a, (uint32_t)size, &h) : slab_malloc(a, size);
        REQUIRE_OR(p, "no memory in an open domain");
        cookie_write(p, size, roll(d));
        ph->things[ph->n++] = (struct thing){p, size};
        ph->allocated++;
    }
}

static void phase_free(struct phase* ph, struct dice* d, unsigned n) {
    for (; n > 0 && ph->n > 0; n--) {
        unsigned at = (unsigned)below(d, ph->n);
        struct thing t = ph->things[at];
        ph->things[at] = ph->things[--ph->n];
        cookie_check(t.p, t.size);
        REQUIRE_OR(slab_free_checked(a, t.p), "free of live %p refused", t.p);
        ph->freed++;
    }
}

static void phase_check(const struct phase* ph) {
    for (unsigned i = 0; i < ph->n; i++) cookie_check(ph->things[i].p, ph->things[i].size);
}

/* The receipt of a phase that ended with the objects of `ph` still live. */
static void receipt_check(epoch_domain_t* d, const struct phase* ph, const char* label) {
    EpochReceipt r;
    REQUIRE_OR(epoch_domain_receipt(d, &r), "an ended domain has no receipt");
    REQUIRE_OR(strcmp(r.label, label) == 0, "receipt of '%s', due '%s'", r.label, label);
    REQUIRE_OR(r.objects_allocated == r.objects_freed + r.objects_released + r.objects_escaped &&
                   r.bytes_allocated == r.bytes_freed + r.bytes_released + r.bytes_escaped,
               "receipt does not balance");
    if (r.slabs_deferred > 0) return;
    REQUIRE_OR(r.objects_allocated == ph->allocated && r.objects_freed == ph->freed && r.objects_released == ph->n &&
                   r.objects_escaped == 0,
               "receipt: %llu allocated %llu freed %llu released %llu escaped; due %u %u %u 0",
               (unsigned long long)r.objects_allocated, (unsigned long long)r.objects_freed,
               (unsigned long long)r.objects_released, (unsigned long long)r.objects_escaped, ph->allocated, ph->freed,
               ph->n);
}

/* ---- request ---------------------------------------------------------------------------- */

static void request(struct dice* d, unsigned depth) {
    static const char* const routes[] = {"GET /", "GET /item", "POST /item", "query"};
    const char* label = routes[below(d, 4)];
    struct phase ph = {.n = 0};
    epoch_domain_t* domain = epoch_domain_begin(a, label);
    REQUIRE_OR(domain && epoch_domain_current() == domain, "begin failed");
    phase_alloc(&ph, d, 1 + (unsigned)below(d, chance(d, 3) ? MOST : 20));
    if (depth < 40 && chance(d, 3)) request(d, depth + 1);
    phase_free(&ph, d, (unsigned)below(d, ph.n + 1));
    phase_alloc(&ph, d, (unsigned)below(d, 30));
    phase_check(&ph);
    REQUIRE_OR(epoch_domain_current() == domain, "the innermost domain is another one");
    if (chance(d, 2)) {
        epoch_domain_end(domain);
        return;
    }
    epoch_domain_exit(domain);
    receipt_check(domain, &ph, label);
    epoch_domain_destroy(domain);
}

static void frames(struct dice* d) {
    epoch_domain_t* domain = epoch_domain_begin(a, "frame");
    for (unsigned n = 1 + (unsigned)below(d, 12); n > 0; n--) {
        struct phase ph = {.n = 0};
        phase_alloc(&ph, d, (unsigned)below(d, 120));
        phase_free(&ph, d, (unsigned)below(d, ph.n + 1));
        phase_check(&ph);
        REQUIRE_OR(epoch_domain_reset(domain), "reset refused");
        receipt_check(domain, &ph, "frame");
    }
    epoch_domain_end(domain);
}

/* ---- relay ------------------------------------------------------------------------------ */

struct relay {
    epoch_domain_t* domain;
    struct phase ph;
    unsigned hops;
};

static _Atomic(struct relay*) relays[RELAYS];

/* A task that waits and goes on, on its thread. A trim of any thread's takes the heap that it has lent meanwhile. */
static void wait_and_go_on(struct relay* r, struct dice* d) {
    for (unsigned n = (unsigned)below(d, 4); n > 0; n--) {
        REQUIRE_OR(epoch_domain_detach(r->domain), "detach refused");
        if (chance(d, 3)) phase_free(&r->ph, d, 1);
        if (chance(d, 64)) slab_trim(a);
        REQUIRE_OR(epoch_domain_attach(r->domain), "attach of a detached scope refused");
        phase_alloc(&r->ph, d, 1 + (unsigned)below(d, 3));
    }
}

static void relay_on(struct dice* d, struct relay* r) {
    if (r) {
        REQUIRE_OR(epoch_domain_attach(r->domain), "attach of a detached scope refused");
    } else {
        r = calloc(1, sizeof *r);
        REQUIRE_OR(r, "out of memory");
        r->domain = epoch_domain_begin(a, "relay");
        r->hops = 1 + (unsigned)below(d, 6);
    }
    phase_check(&r->ph);
    phase_free(&r->ph, d, (unsigned)below(d, r->ph.n / 2 + 1));
    phase_alloc(&r->ph, d, (unsigned)below(d, 40));
    wait_and_go_on(r, d);
    if (--r->hops > 0) {
        REQUIRE_OR(epoch_domain_detach(r->domain), "detach refused");
        struct relay* old = atomic_exchange(&relays[below(d, RELAYS)], r);
        if (old) {
            old->hops = 1;
            relay_on(d, old);
        }
        return;
    }
    epoch_domain_exit(r->domain);
    receipt_check(r->domain, &r->ph, "relay");
    epoch_domain_destroy(r->domain);
    free(r);
}

/* ---- crowd, borrowed -------------------------------------------------------------------- */

static void in_crowd(struct dice* d) {
    struct phase ph = {.n = 0};
    epoch_domain_enter(crowd);
    phase_alloc(&ph, d, 1 + (unsigned)below(d, 30));
    phase_free(&ph, d, (unsigned)below(d, ph.n + 1));
    if (chance(d, 4)) sched_yield();
    phase_alloc(&ph, d, (unsigned)below(d, 10));
    phase_check(&ph);
    epoch_domain_exit(crowd);
}

/* Objects of a borrowed epoch outlive the drain; the ring may be advanced under our feet. */
static void borrowed(struct dice* d) {
    struct phase ph = {.n = 0};
    epoch_domain_t* domain = epoch_domain_wrap(a, epoch_current(a), chance(d, 2));
    if (!domain) return; /* closed meanwhile */
    epoch_domain_enter(domain);
    bool inside = epoch_domain_current() == domain;
    for (unsigned n = (unsigned)below(d, 30); inside && n > 0; n--) {
        size_t size = small_size(d);
        void* p = slab_malloc(a, size);
        if (!p) break; /* advanced or drained meanwhile */
        cookie_write(p, size, roll(d));
        ph.things[ph.n++] = (struct thing){p, size};
    }
    if (inside) epoch_domain_exit(domain);
    phase_check(&ph);
    phase_free(&ph, d, MOST);
    epoch_domain_destroy(domain);
    if (chance(d, 3)) epoch_advance(a);
}

/* ---- deserter --------------------------------------------------------------------------- */

struct left_behind {
    epoch_domain_t* domains[8];
    struct phase ph[8];
    unsigned n;
};

/* Ends a life inside one to eight domains; the keeper looks at what became of them. */
static void desert(struct slot* self) {
    struct left_behind* left = calloc(1, sizeof *left);
    REQUIRE_OR(left, "out of memory");
    left->n = 1 + (unsigned)below(&self->dice, 8);
    for (unsigned i = 0; i < left->n; i++) {
        left->domains[i] = epoch_domain_begin(a, "deserted");
        phase_alloc(&left->ph[i], &self->dice, (unsigned)below(&self->dice, 60));
        phase_check(&left->ph[i]);
    }
    self->own = left;
}

static void find_deserted(struct slot* self) {
    struct left_behind* left = self->own;
    self->own = NULL;
    for (unsigned i = 0; left && i < left->n; i++) {
        REQUIRE_OR(left->domains[i]->refcount == 0, "a dead thread is still inside its domain");
        receipt_check(left->domains[i], &left->ph[i], "deserted");
        epoch_domain_destroy(left->domains[i]);
    }
    free(left);
}

/* ---- the run ---------------------------------------------------------------------------- */

static void live(struct slot* self) {
    struct dice* d = &self->dice;
    for (uint64_t i = 0; i < self->ops_per_life; i++) {
        switch (below(d, 8)) {
        case 0:
        case 1:
            request(d, 0);
            break;
        case 2:
            frames(d);
            break;
        case 3:
            relay_on(d, atomic_exchange(&relays[below(d, RELAYS)], NULL));
            break;
        case 4:
            borrowed(d);
            break;
        default:
            in_crowd(d);
            break;
        }
    }
    REQUIRE_OR(epoch_domain_current() == NULL, "a scope was left on the stack");
    if (chance(d, 2)) desert(self);
}

int main(void) {
    a = kit_create();
    crowd = epoch_domain_create_labeled(a, "crowd");
    REQUIRE_OR(crowd, "no domain");
    run_slots(THREADS, 20, check_count(150000) / THREADS / 20, 3, live, find_deserted);

    struct dice d = {4};
    for (unsigned i = 0; i < RELAYS; i++) {
        struct relay* r = atomic_exchange(&relays[i], NULL);
        if (!r) continue;
        r->hops = 1;
        relay_on(&d, r);
    }
    REQUIRE_OR(crowd->refcount == 0, "%u scopes are left in the crowd", crowd->refcount);
    epoch_domain_destroy(crowd);
    check_no_misuse(a);
    SlabRefusals r;
    slab_stats_refusals(a, &r);
    REQUIRE_OR(r.domain_order == 0, "%llu scopes out of order", (unsigned long long)r.domain_order);
    check_all_gone(a, RING);
    slab_allocator_free(a);
    puts("stress_domains: ok");
    return 0;
}
