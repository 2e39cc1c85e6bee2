/*
 * stress_records.c - bookkeeping that goes back to the system while others still hold what leads to it.
 *
 * Openers begin domains by the dozen, put objects into them, offer some to everybody, end the domains and trim, so that
 * records, chunks and regions go back and are used again all the time. Freers take what was offered, whether its phase
 * lives or not, keep handles and ids for long, and try them again and again. The reference is one word
 * an object and one flag a phase:
 *
 *   an object is freed by the one who takes it, if its phase did not begin to end before the call returned; a free by
 *   handle of a phase that had ended before the call is refused
 *   an id of a phase that had ended before the call allocates nothing
 */
#include "stress.h"

enum { OPENERS = 3, FREERS = 3, PHASES = 40, EACH = 24, CELLS = 256, KEPT = 128 };

enum { OPEN, ENDING, ENDED };
struct phase {
    _Atomic int state;
    _Atomic int users;  /* offers that were not dropped yet */
    _Atomic int inside; /* frees by pointer */
    EpochId id;
};

struct offer {
    struct phase* phase;
    void* p;
    SlabHandle handle;
    EpochId id;
};

static SlabAllocator* a;
static _Atomic(struct offer*) cells[CELLS];
static _Atomic int openers_left;
static _Atomic uint64_t freed, late, refused;

static struct phase* phase_new(void) {
    struct phase* ph = calloc(1, sizeof *ph);
    REQUIRE_OR(ph != NULL, "no memory");
    atomic_store(&ph->users, 1);
    return ph;
}
static void phase_drop(struct phase* ph) {
    if (atomic_fetch_sub(&ph->users, 1) == 1) free(ph);
}

/* ---- freers ---- */

/* Frees what was offered: the caller alone has the object. */
static void free_first(struct offer* o, struct dice* d) {
    struct phase* ph = o->phase;
    bool by_pointer = o->handle == 0 || chance(d, 2), ok;
    if (by_pointer) { /* not once the phase may end: the address may be another object's then */
        atomic_fetch_add(&ph->inside, 1);
        ok = atomic_load(&ph->state) == OPEN;
        if (ok) REQUIRE_OR(slab_free_checked(a, o->p), "a live object was not freed");
        atomic_fetch_sub(&ph->inside, 1);
    } else {
        bool ended = atomic_load(&ph->state) == ENDED;
        ok = free_obj(a, o->handle);
        if (atomic_load(&ph->state) == OPEN) REQUIRE_OR(ok, "a live object was not freed by its handle");
        if (ended) REQUIRE_OR(!ok, "an object of a phase that had ended was freed");
    }
    atomic_fetch_add(ok ? &freed : &late, 1);
}

/* Of a phase that has ended. */
static void try_again(struct offer* o) {
    if (o->handle != 0) {
        REQUIRE_OR(slab_handle_ptr(a, o->handle) == NULL, "a handle of what was freed leads somewhere");
        REQUIRE_OR(!free_obj(a, o->handle), "a handle freed twice");
    }
    REQUIRE_OR(slab_malloc_epoch(a, 32, o->id) == NULL, "an id of a phase that has ended allocates");
    atomic_fetch_add(&refused, 1);
}

static void* freer(void* arg) {
    static _Thread_local struct offer* kept[KEPT];
    struct dice d = {0};
    d.state = 77 + (uint64_t)(uintptr_t)arg;
    while (atomic_load(&openers_left) != 0) {
        struct offer* o = atomic_exchange(&cells[below(&d, CELLS)], NULL);
        if (o != NULL) {
            free_first(o, &d);
            size_t at = below(&d, KEPT);
            if (kept[at] != NULL) {
                phase_drop(kept[at]->phase);
                free(kept[at]);
            }
            kept[at] = o;
        }
        struct offer* old = kept[below(&d, KEPT)];
        if (old != NULL && atomic_load(&old->phase->state) == ENDED) try_again(old);
    }
    for (size_t i = 0; i < KEPT; i++) {
        if (kept[i] == NULL) continue;
        try_again(kept[i]);
        phase_drop(kept[i]->phase);
        free(kept[i]);
    }
    return NULL;
}

/* ---- openers ---- */

static void offer(struct phase* ph, void* p, SlabHandle h, struct dice* d) {
    struct offer* o = malloc(sizeof *o);
    REQUIRE_OR(o != NULL, "no memory");
    *o = (struct offer){ph, p, h, ph->id};
    atomic_fetch_add(&ph->users, 1);
    o = atomic_exchange(&cells[below(d, CELLS)], o);
    if (o == NULL) return;
    phase_drop(o->phase); /* nobody took it: it ends with its phase */
    free(o);
}

static void lap(struct dice* d) {
    epoch_domain_t* domains[PHASES];
    struct phase* phases[PHASES];
    for (int i = 0; i < PHASES; i++) {
        domains[i] = epoch_domain_create(a);
        REQUIRE_OR(domains[i] != NULL, "no domain");
        phases[i] = phase_new();
        phases[i]->id = domains[i]->epoch_id;
        for (int k = 0; k < EACH; k++) {
            SlabHandle h = 0;
            uint32_t size = (uint32_t)(chance(d, 8) ? 1 + below(d, 4000) : 16 + below(d, 200));
            bool by_handle = chance(d, 2);
            void* p = by_handle ? alloc_obj_epoch(a, size, phases[i]->id, &h) : epoch_domain_malloc(domains[i], size);
            REQUIRE_OR(p != NULL, "no memory");
            *(volatile char*)p = 1;
            if (chance(d, 3)) offer(phases[i], p, h, d);
        }
    }
    for (int i = 0; i < PHASES; i++) {
        atomic_store(&phases[i]->state, ENDING);
        while (atomic_load(&phases[i]->inside) != 0) sched_yield();
        epoch_domain_destroy(domains[i]);
        atomic_store(&phases[i]->state, ENDED);
        phase_drop(phases[i]);
    }
    if (chance(d, 4)) slab_trim(a);
}

static void* opener(void* arg) {
    struct dice d = {0};
    d.state = 7 + (uint64_t)(uintptr_t)arg;
    for (uint64_t n = check_count(600); n != 0; n--) lap(&d);
    atomic_fetch_sub(&openers_left, 1);
    return NULL;
}

int main(void) {
    pthread_t t[OPENERS + FREERS];
    SlabOptions o;
    memset(&o, 0, sizeof o);
    o.struct_size = sizeof o;
    o.warm_bytes = UINT64_MAX; /* none: chunks empty again and again */
    a = slab_allocator_create_with(&o);
    REQUIRE_OR(a != NULL, "no allocator");
    atomic_store(&openers_left, OPENERS);
    for (uintptr_t i = 0; i < OPENERS; i++) pthread_create(&t[i], NULL, opener, (void*)(i + 1));
    for (uintptr_t i = 0; i < FREERS; i++) pthread_create(&t[OPENERS + i], NULL, freer, (void*)(i + 1));
    for (int i = 0; i < OPENERS + FREERS; i++) pthread_join(t[i], NULL);
    for (int i = 0; i < CELLS; i++) {
        struct offer* last = atomic_load(&cells[i]);
        if (last == NULL) continue;
        try_again(last);
        phase_drop(last->phase);
        free(last);
    }
    REQUIRE_OR(atomic_load(&freed) > 0 && atomic_load(&refused) > 0, "nothing was freed, or nothing refused");
    kit_check(a);
    slab_trim(a);
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    REQUIRE_OR(g.live_objects == 0 && g.committed_bytes == 0, "%llu objects are left",
               (unsigned long long)g.live_objects);
    slab_allocator_free(a);
    return 0;
}
