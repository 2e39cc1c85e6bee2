/*
 * stress_threads.c - many threads, one ring: everything at once.
 *
 * Two allocators. In the *drained* one objects of all ring epochs travel between threads through
 * an exchange array while anybody advances the ring and closes epochs by drain: objects stay valid
 * until they are freed, and once a close has returned no allocation may land in what it closed.
 * In the *released* one every epoch has a gate: objects are touched only by threads inside the
 * gate; the releaser shuts the gate, waits for it to empty, releases, compares the receipt with
 * the gate's own count and opens the gate on a fresh epoch. Threads die and are born throughout.
 */
#include "stress.h"

enum { EXCHANGE = 2048, GATES = 4, GATE_SLOTS = 256, RING = 16, STALE = 32 };

static SlabAllocator* drained;
static SlabAllocator* released;
static _Atomic(struct parcel*) exchange[EXCHANGE];
static _Atomic uint64_t closed_era[RING]; /* the largest era of the id whose close has returned */

/* ---- drained ---------------------------------------------------------------------------- */

static struct parcel* alloc_drained(struct slot* self) {
    struct dice* d = &self->dice;
    size_t size = parcel_size(d);
    void* p;
    if (chance(d, 2)) {
        p = slab_malloc(drained, size); /* NULL while the current epoch is closed by hand */
    } else if (chance(d, 4)) {
        SlabHandle h;
        p = alloc_obj(drained, (uint32_t)size, &h);
        REQUIRE_OR(!p == !h, "pointer %p with handle %#llx", p, (unsigned long long)h);
    } else {
        EpochId id = chance(d, 4) ? (EpochId)below(d, RING) : epoch_current(drained);
        uint64_t before = atomic_load(&closed_era[id]);
        p = slab_malloc_epoch(drained, size, id);
        EpochId in = 0;
        uint64_t era = 0;
        if (p) {
            REQUIRE_OR(slab_ptr_epoch(drained, p, &in, &era), "no epoch for a live object");
            REQUIRE_OR(in == id && era > before, "allocated in epoch %u era %llu; asked epoch %u, era %llu is closed",
                       in, (unsigned long long)era, id, (unsigned long long)before);
        }
    }
    return parcel_make(p, size, roll(d));
}

static void free_drained(struct slot* self, struct parcel* parcel) {
    parcel_check(parcel);
    uint64_t size = parcel->size;
    switch (below(&self->dice, 8)) {
    case 0:
        slab_free_sized(drained, parcel, size);
        break;
    case 1:
        REQUIRE_OR(free_obj(drained, slab_ptr_handle(drained, parcel)), "handle of a live object refused");
        break;
    default:
        REQUIRE_OR(slab_free_checked(drained, parcel), "free of live %p refused", (void*)parcel);
        break;
    }
}

static void resize_drained(struct slot* self, struct parcel* parcel) {
    struct dice* d = &self->dice;
    parcel_check(parcel);
    size_t size = parcel_size(d);
    void* p = slab_realloc(drained, parcel, size);
    if (!p) { /* its epoch is closed and so is the current one: the block stays */
        free_drained(self, parcel);
        return;
    }
    parcel = parcel_make(p, size, roll(d));
    parcel = atomic_exchange(&exchange[below(d, EXCHANGE)], parcel);
    if (parcel) free_drained(self, parcel);
}

static void close_drained(struct slot* self) {
    EpochId id = (EpochId)below(&self->dice, RING);
    EpochReceipt r;
    REQUIRE_OR(epoch_close_ex(drained, id, EPOCH_DRAIN, &r), "close of epoch %u refused", id);
    REQUIRE_OR(r.objects_allocated == r.objects_freed + r.objects_released + r.objects_escaped &&
                   r.objects_released == 0,
               "receipt of epoch %u does not balance", id);
    uint64_t seen = atomic_load(&closed_era[id]);
    while (seen < r.epoch_era && !atomic_compare_exchange_weak(&closed_era[id], &seen, r.epoch_era)) {
    }
    if (epoch_state(drained, epoch_current(drained)) == EPOCH_CLOSING) epoch_advance(drained);
}

static void work_drained(struct slot* self) {
    struct dice* d = &self->dice;
    struct parcel* parcel = NULL;
    if (!chance(d, 3)) parcel = alloc_drained(self);
    parcel = atomic_exchange(&exchange[below(d, EXCHANGE)], parcel);
    if (parcel && chance(d, 10))
        resize_drained(self, parcel);
    else if (parcel)
        free_drained(self, parcel);
    if (chance(d, 1500)) epoch_advance(drained);
    if (chance(d, 2000)) close_drained(self);
}

/* ---- released --------------------------------------------------------------------------- */

struct gate {
    _Atomic uint32_t users;
    _Atomic bool shut;
    epoch_domain_t* domain; /* NULL: the gate on the ring */
    EpochId id;
    uint64_t era;
    _Atomic uint64_t allocated, freed;
    _Atomic(struct parcel*) slots[GATE_SLOTS];
    SlabHandle stale[STALE];
};

static struct gate gates[GATES];

static void gate_open(struct gate* g, bool on_ring) {
    if (on_ring) {
        g->id = epoch_advance_id(released);
        g->era = epoch_era(released, g->id);
    } else {
        g->domain = epoch_domain_create_labeled(released, "gate");
        REQUIRE_OR(g->domain, "no domain");
        g->id = g->domain->epoch_id;
        g->era = g->domain->epoch_era;
    }
    atomic_store(&g->allocated, 0);
    atomic_store(&g->freed, 0);
    atomic_store(&g->shut, false);
}

static bool gate_enter(struct gate* g) {
    atomic_fetch_add(&g->users, 1);
    if (!atomic_load(&g->shut)) return true;
    atomic_fetch_sub(&g->users, 1);
    return false;
}

/* Ends the gate's epoch: nobody is inside, and nobody will look at its objects again. */
static void gate_release(struct gate* g) {
    uint64_t allocated = atomic_load(&g->allocated), freed = atomic_load(&g->freed);
    unsigned n = 0;
    for (unsigned i = 0; i < GATE_SLOTS; i++) {
        struct parcel* parcel = atomic_exchange(&g->slots[i], NULL);
        if (!parcel) continue;
        parcel_check(parcel);
        if (n < STALE && i % 4 == 0) g->stale[n++] = slab_ptr_handle(released, parcel);
    }
    EpochReceipt r;
    REQUIRE_OR(epoch_close_era(released, g->era, EPOCH_RELEASE, &r), "release of era %llu refused",
               (unsigned long long)g->era);
    REQUIRE_OR(r.objects_allocated == r.objects_freed + r.objects_released + r.objects_escaped,
               "receipt does not balance");
    if (r.slabs_deferred == 0)
        REQUIRE_OR(r.objects_allocated == allocated && r.objects_freed == freed && r.objects_escaped == 0,
                   "receipt: %llu allocated, %llu freed, %llu escaped; counted %llu and %llu",
                   (unsigned long long)r.objects_allocated, (unsigned long long)r.objects_freed,
                   (unsigned long long)r.objects_escaped, (unsigned long long)allocated, (unsigned long long)freed);
    for (unsigned i = 0; i < n; i++) {
        REQUIRE_OR(g->stale[i] && !slab_handle_ptr(released, g->stale[i]),
                   "a released object's handle leads somewhere");
        REQUIRE_OR(!free_obj(released, g->stale[i]), "a released object's handle was freed");
    }
    if (g->domain) epoch_domain_destroy(g->domain);
    g->domain = NULL;
}

static void gate_renew(struct gate* g) {
    if (atomic_exchange(&g->shut, true)) return; /* somebody else is at it */
    while (atomic_load(&g->users) > 0) sched_yield();
    gate_release(g);
    gate_open(g, g == &gates[0]);
}

static void work_released(struct slot* self) {
    struct dice* d = &self->dice;
    struct gate* g = &gates[below(d, GATES)];
    if (!gate_enter(g)) return;
    for (uint64_t n = 1 + below(d, 16); n > 0; n--) {
        size_t size = parcel_size(d);
        void* p = NULL;
        if (!chance(d, 3)) {
            SlabHandle h;
            p = chance(d, 5) ? alloc_obj_epoch(released, (uint32_t)size, g->id, &h)
                             : slab_malloc_epoch(released, size, g->id);
            REQUIRE_OR(p, "no memory in open epoch %#x era %llu", g->id, (unsigned long long)g->era);
            atomic_fetch_add(&g->allocated, 1);
        }
        struct parcel* old = atomic_exchange(&g->slots[below(d, GATE_SLOTS)], parcel_make(p, size, roll(d)));
        if (!old) continue;
        parcel_check(old);
        REQUIRE_OR(slab_free_checked(released, old), "free of live %p refused", (void*)old);
        atomic_fetch_add(&g->freed, 1);
    }
    atomic_fetch_sub(&g->users, 1);
    if (chance(d, 60)) gate_renew(g);
}

/* ---- the run ---------------------------------------------------------------------------- */

static void live(struct slot* self) {
    for (uint64_t i = 0; i < self->ops_per_life; i++) {
        if (chance(&self->dice, 8))
            work_released(self);
        else
            work_drained(self);
    }
}

static void run(int threads, uint64_t ops, uint64_t seed) {
    drained = kit_create();
    released = kit_create();
    for (unsigned i = 0; i < RING; i++) atomic_store(&closed_era[i], 0);
    for (unsigned i = 0; i < GATES; i++) gate_open(&gates[i], i == 0);
    run_slots(threads, 12, ops / (uint64_t)threads / 12, seed, live, NULL);

    struct slot self = {.dice = {seed}};
    for (unsigned i = 0; i < EXCHANGE; i++) {
        struct parcel* parcel = atomic_exchange(&exchange[i], NULL);
        if (parcel) free_drained(&self, parcel);
    }
    for (unsigned i = 0; i < GATES; i++) gate_release(&gates[i]);
    check_no_misuse(drained);
    check_no_misuse(released);
    check_all_gone(drained, RING);
    check_all_gone(released, RING);
    slab_allocator_free(drained);
    slab_allocator_free(released);
}

int main(void) {
    run(8, check_count(6000000), 1);
    run(16, check_count(6000000), 2);
    puts("stress_threads: ok");
    return 0;
}
