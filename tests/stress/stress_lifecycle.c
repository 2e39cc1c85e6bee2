/*
 * stress_lifecycle.c - allocators come and go under threads that come and go.
 *
 * A few berths hold one allocator each, in storage that is used again and again, so that a thread
 * meets a new allocator at the address of one it knew. Users hold a berth for reading; whoever gets
 * it for writing destroys the allocator and starts another, with everything in it still live or
 * not. Threads end while allocators they used live on, and the other way round. Handles of a dead
 * allocator must mean nothing to its successor. At the end many allocators live side by side.
 */
#include "stress.h"

enum { THREADS = 8, BERTHS = 6, KEPT = 128, CROWD = 1000, RING = 16 };

struct berth {
    pthread_rwlock_t lock;
    SlabAllocator storage;
    SlabAllocator* a; /* &storage, or one from slab_allocator_create */
    uint32_t ring_size;
    _Atomic uint64_t generation;
    _Atomic(struct parcel*) kept[KEPT];
    SlabHandle last_handle; /* of the allocator before */
};

static struct berth berths[BERTHS];

static void berth_fill(struct berth* b, struct dice* d) {
    static const uint32_t rings[] = {0, 2, 16, 100};
    SlabOptions o = {.struct_size = sizeof o, .ring_size = rings[below(d, 4)], .reserve_bytes = (uint64_t)1 << 30};
    if (chance(d, 3)) {
        b->a = slab_allocator_create_with(&o);
    } else {
        b->a = &b->storage;
        REQUIRE_OR(allocator_init_with(b->a, &o), "no allocator: %s", slab_last_error());
    }
    REQUIRE_OR(b->a, "no allocator: %s", slab_last_error());
    b->ring_size = o.ring_size;
    atomic_fetch_add(&b->generation, 1);
}

/* With the lock held for writing: nobody is inside a call. */
static void berth_replace(struct berth* b, struct dice* d) {
    bool empty = chance(d, 2);
    for (unsigned i = 0; i < KEPT; i++) {
        struct parcel* parcel = atomic_exchange(&b->kept[i], NULL);
        if (!parcel) continue;
        parcel_check(parcel);
        b->last_handle = slab_ptr_handle(b->a, parcel);
        REQUIRE_OR(slab_handle_ptr(b->a, b->last_handle) == parcel, "the handle of %p leads elsewhere", (void*)parcel);
        REQUIRE_OR(!empty || slab_free_checked(b->a, parcel), "free of live %p refused", (void*)parcel);
    }
    /* No check of the allocator's invariants here: threads that used it may be leaving it. */
    SlabGlobalStats g;
    slab_stats_global(b->a, &g);
    REQUIRE_OR(!empty || g.live_objects == 0,
               "%llu objects live, none should be (ring of %u, %llu open, %llu draining)",
               (unsigned long long)g.live_objects, b->ring_size, (unsigned long long)g.open_phases,
               (unsigned long long)g.draining_phases);
    if (b->a == &b->storage)
        allocator_destroy(b->a);
    else
        slab_allocator_free(b->a);
    berth_fill(b, d);
    REQUIRE_OR(!free_obj(b->a, b->last_handle) && !slab_handle_ptr(b->a, b->last_handle),
               "a dead allocator's handle means something to its successor");
    slab_stats_global(b->a, &g);
    REQUIRE_OR(g.live_objects == 0 && g.current_epoch == 0, "a new allocator is not fresh");
}

static void in_domain(struct berth* b, struct dice* d) {
    epoch_domain_t* domain = epoch_domain_begin(b->a, "visit");
    REQUIRE_OR(domain, "no domain");
    void* things[20];
    size_t sizes[20];
    unsigned n = 1 + (unsigned)below(d, 20);
    for (unsigned i = 0; i < n; i++) {
        sizes[i] = small_size(d);
        things[i] = slab_malloc(b->a, sizes[i]);
        REQUIRE_OR(things[i], "no memory");
        cookie_write(things[i], sizes[i], roll(d));
    }
    for (unsigned i = 0; i < n; i++) cookie_check(things[i], sizes[i]);
    epoch_domain_end(domain);
}

static void visit(struct berth* b, struct dice* d) {
    for (uint64_t n = 1 + below(d, 60); n > 0; n--) {
        size_t size = parcel_size(d);
        struct parcel* parcel = chance(d, 3) ? NULL : parcel_make(slab_malloc(b->a, size), size, roll(d));
        parcel = atomic_exchange(&b->kept[below(d, KEPT)], parcel);
        if (!parcel) continue;
        parcel_check(parcel);
        REQUIRE_OR(slab_free_checked(b->a, parcel), "free of live %p refused", (void*)parcel);
    }
    if (chance(d, 4)) in_domain(b, d);
    if (chance(d, 10)) epoch_advance(b->a);
    if (chance(d, 10)) slab_thread_flush(b->a);
    if (chance(d, 30)) slab_trim(b->a);
}

static void live(struct slot* self) {
    struct dice* d = &self->dice;
    for (uint64_t i = 0; i < self->ops_per_life; i++) {
        struct berth* b = &berths[below(d, BERTHS)];
        if (chance(d, 25)) {
            pthread_rwlock_wrlock(&b->lock);
            berth_replace(b, d);
        } else {
            pthread_rwlock_rdlock(&b->lock);
            visit(b, d);
        }
        pthread_rwlock_unlock(&b->lock);
    }
}

/* A thousand allocators at once, each with something in it; ended in another order. */
static void many_at_once(void) {
    static SlabAllocator* all[CROWD];
    static void* things[CROWD];
    SlabOptions o = {.struct_size = sizeof o, .reserve_bytes = (uint64_t)16 << 20};
    for (unsigned i = 0; i < CROWD; i++) {
        all[i] = slab_allocator_create_with(&o);
        REQUIRE_OR(all[i], "allocator %u: %s", i, slab_last_error());
        things[i] = slab_malloc(all[i], 100);
        REQUIRE_OR(things[i], "no memory in allocator %u", i);
        cookie_write(things[i], 100, i);
    }
    for (unsigned i = 0; i < CROWD; i++) {
        unsigned k = (i * 7) % CROWD;
        cookie_check(things[k], 100);
        REQUIRE_OR(!slab_free_checked(all[(k + 1) % CROWD] ? all[(k + 1) % CROWD] : NULL, things[k]),
                   "freed by a stranger");
        if (k % 3) slab_free(all[k], things[k]);
        slab_allocator_free(all[k]);
        all[k] = NULL;
    }
}

int main(void) {
    struct dice d = {7};
    for (unsigned i = 0; i < BERTHS; i++) {
        pthread_rwlock_init(&berths[i].lock, NULL);
        berth_fill(&berths[i], &d);
    }
    run_slots(THREADS, 50, check_count(120000) / THREADS / 50, 8, live, NULL);
    for (unsigned i = 0; i < BERTHS; i++) {
        berth_replace(&berths[i], &d);
        check_all_gone(berths[i].a, 2);
        if (berths[i].a == &berths[i].storage)
            allocator_destroy(berths[i].a);
        else
            slab_allocator_free(berths[i].a);
        pthread_rwlock_destroy(&berths[i].lock);
    }
    many_at_once();
    puts("stress_lifecycle: ok");
    return 0;
}
