/*
 * stress_trim.c - memory is taken back while it is in use.
 *
 * Workers hold private sets of objects and pass parcels to each other; meanwhile one thread trims,
 * one advances and closes every epoch it can name, and one reads statistics. Nothing live may be
 * lost, no figure may be negative, and no close or trim may wait for a worker.
 */
#include "stress.h"

enum { WORKERS = 6, HOUSEKEEPERS = 3, HELD = 600, PASSED = 256, RING = 16 };

static SlabAllocator* a;
static _Atomic(struct parcel*) passed[PASSED];
static _Atomic int working;
static _Atomic uint64_t allocated, trims, closes;

struct held {
    void* p;
    size_t size;
};

static void renew(struct held* h, struct dice* d) {
    if (h->p) {
        cookie_check(h->p, h->size);
        REQUIRE_OR(slab_free_checked(a, h->p), "free of live %p refused", h->p);
        h->p = NULL;
    }
    h->size = chance(d, 500) ? 1 + below(d, 200000) : small_size(d);
    if (h->size < LEAST) h->size = LEAST;
    h->p = slab_malloc(a, h->size);
    if (!h->p) return; /* the current epoch was closed this moment */
    cookie_write(h->p, h->size, roll(d));
    atomic_fetch_add_explicit(&allocated, 1, memory_order_relaxed);
}

static void pass_on(struct dice* d) {
    size_t size = parcel_size(d);
    struct parcel* parcel = parcel_make(slab_malloc(a, size), size, roll(d));
    if (parcel) atomic_fetch_add_explicit(&allocated, 1, memory_order_relaxed);
    parcel = atomic_exchange(&passed[below(d, PASSED)], parcel);
    if (!parcel) return;
    parcel_check(parcel);
    REQUIRE_OR(slab_free_checked(a, parcel), "free of live %p refused", (void*)parcel);
}

static void work(struct slot* self) {
    struct dice* d = &self->dice;
    struct held* held = calloc(HELD, sizeof *held);
    REQUIRE_OR(held, "out of memory");
    unsigned most = HELD;
    for (uint64_t i = 0; i < self->ops_per_life; i++) {
        if (chance(d, 3000)) { /* a burst is over: much becomes empty */
            for (unsigned k = 0; k < HELD; k++) {
                if (!held[k].p || chance(d, 10)) continue;
                cookie_check(held[k].p, held[k].size);
                slab_free(a, held[k].p);
                held[k].p = NULL;
            }
            most = 1 + (unsigned)below(d, HELD);
        }
        if (chance(d, 4))
            pass_on(d);
        else
            renew(&held[below(d, most)], d);
        if (chance(d, 5000)) slab_thread_flush(a);
    }
    for (unsigned k = 0; k < HELD; k++) {
        if (!held[k].p) continue;
        cookie_check(held[k].p, held[k].size);
        slab_free(a, held[k].p);
    }
    free(held);
    atomic_fetch_sub(&working, 1);
}

static void close_all(struct dice* d) {
    EpochReceipt r;
    epoch_advance(a);
    EpochId current = epoch_current(a);
    for (EpochId id = 0; id < RING; id++) {
        if (id == current && !chance(d, 50)) continue;
        REQUIRE_OR(epoch_close_ex(a, id, EPOCH_DRAIN, &r), "close refused");
        REQUIRE_OR(r.objects_allocated == r.objects_freed + r.objects_released + r.objects_escaped &&
                       r.objects_released == 0 && r.bytes_allocated == r.bytes_freed + r.bytes_escaped,
                   "receipt does not balance");
        atomic_fetch_add(&closes, 1);
    }
    if (epoch_state(a, epoch_current(a)) == EPOCH_CLOSING) epoch_advance(a);
}

static void read_figures(void) {
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    uint64_t ever = atomic_load(&allocated) + 2 * WORKERS; /* some have allocated and not counted yet */
    REQUIRE_OR(g.live_objects <= ever, "%llu objects live, %llu ever allocated", (unsigned long long)g.live_objects,
               (unsigned long long)ever);
    REQUIRE_OR(g.live_bytes < (uint64_t)1 << 40 && g.committed_bytes < (uint64_t)1 << 40, "negative figures");
    for (unsigned c = 0; c < SLAB_FIXED_CLASSES; c++) {
        SlabClassStats k;
        slab_stats_class(a, c, &k);
        REQUIRE_OR(k.live_bytes < (uint64_t)1 << 40, "negative figures");
    }
}

static void keep_house(struct slot* self) {
    while (atomic_load(&working) > 0) {
        switch (self->index - WORKERS) {
        case 0:
            slab_trim(a);
            atomic_fetch_add(&trims, 1);
            break;
        case 1:
            close_all(&self->dice);
            break;
        default:
            read_figures();
            break;
        }
        for (uint64_t n = below(&self->dice, 20); n > 0; n--) sched_yield();
    }
}

static void live(struct slot* self) {
    if (self->index < WORKERS)
        work(self);
    else
        keep_house(self);
}

int main(void) {
    a = kit_create();
    for (uint64_t lap = 0; lap < 4; lap++) {
        atomic_store(&working, WORKERS);
        run_slots(WORKERS + HOUSEKEEPERS, 1, check_count(16000000) / WORKERS / 4, 6 + lap, live, NULL);
        kit_check(a);
    }
    for (unsigned i = 0; i < PASSED; i++) {
        struct parcel* parcel = atomic_exchange(&passed[i], NULL);
        if (!parcel) continue;
        parcel_check(parcel);
        slab_free(a, parcel);
    }
    check_no_misuse(a);
    check_all_gone(a, RING);
    slab_allocator_free(a);
    REQUIRE_OR(trims > 0 && closes > 0, "nothing was trimmed or closed");
    puts("stress_trim: ok");
    return 0;
}
