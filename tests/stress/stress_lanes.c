/*
 * stress_lanes.c - lanes beside whoever ends, trims and frees what they allocate.
 *
 * Each worker begins phases and allocates there by two lanes and by calls. A closer ends phases by their era at any moment, in the
 * middle of allocations, too; one thread trims, one frees what workers have passed on; and some phases go on on another worker,
 * with the lane of the one before. In the end the labels' accounts have exactly what was handed out.
 *
 *   kept      its objects are written and checked, so it is drained, whoever ends it, and each object is freed
 *   counted   nobody touches its objects, so it may be released at any moment
 */
#include "stress.h"

#include <slab_lane.h>

enum { WORKERS = 4, HOUSEKEEPERS = 3, MOST = 400, PASSED = 256, RELAYS = 8, OPEN = 16, RING = 16 };

static SlabAllocator* a;
static _Atomic(struct parcel*) passed[PASSED];
static _Atomic uint64_t open_eras[OPEN]; /* era << 1 | it is kept */
static _Atomic int working;
static _Atomic uint64_t made[2], refused, closed, relayed, trims, freed_for_others;

struct phase {
    epoch_domain_t* domain;
    SlabLane lanes[2];
    bool kept;
};
static _Atomic(struct phase*) relays[RELAYS];

static void free_parcel(struct parcel* parcel) {
    if (parcel == NULL) return;
    parcel_check(parcel);
    REQUIRE_OR(slab_free_checked(a, parcel), "free of live %p refused", (void*)parcel);
}

static void* take(struct phase* ph, struct dice* d, size_t size) {
    switch (below(d, 8)) {
    case 0: return epoch_domain_malloc(ph->domain, size);
    case 1: return slab_malloc(a, size); /* the phase is the innermost scope */
    default: return slab_lane_malloc(&ph->lanes[below(d, 2)], size);
    }
}

/* Allocates until the phase has ended, or enough. Returns false if it has ended. */
static bool work_in(struct phase* ph, struct dice* d) {
    uint64_t n = 0;
    bool open = true;
    struct parcel* mine[32] = {NULL};
    for (unsigned most = 1 + (unsigned)below(d, chance(d, 4) ? MOST : 20); most > 0; most--) {
        size_t size = parcel_size(d);
        void* p = take(ph, d, size);
        if (p == NULL) {
            atomic_fetch_add_explicit(&refused, 1, memory_order_relaxed);
            open = false;
            break;
        }
        n++;
        if (!ph->kept) continue;
        struct parcel* parcel = parcel_make(p, size, roll(d));
        if (chance(d, 3)) free_parcel(atomic_exchange(&passed[below(d, PASSED)], parcel));
        else {
            unsigned at = (unsigned)below(d, 32);
            free_parcel(mine[at]);
            mine[at] = parcel;
        }
    }
    for (unsigned i = 0; i < 32; i++) free_parcel(mine[i]);
    atomic_fetch_add_explicit(&made[ph->kept], n, memory_order_relaxed);
    return open;
}

static void end(struct phase* ph) {
    if (ph->kept) REQUIRE_OR(epoch_domain_drain(ph->domain, NULL), "drain refused: %s", slab_last_error());
    else REQUIRE_OR(epoch_domain_end(ph->domain), "end refused: %s", slab_last_error());
}

/* A phase of another worker, by its lane and by one of ours. */
static void go_on(struct phase* ph, struct dice* d) {
    if (ph == NULL) return;
    REQUIRE_OR(epoch_domain_attach(ph->domain), "attach refused: %s", slab_last_error());
    (void)slab_lane_open(&ph->lanes[1], ph->domain);
    (void)work_in(ph, d);
    end(ph);
    free(ph);
    atomic_fetch_add(&relayed, 1);
}

static void one_phase(struct dice* d) {
    struct phase ph = {.kept = chance(d, 2)};
    REQUIRE_OR(slab_lane_begin(&ph.lanes[0], a, ph.kept ? "kept" : "counted"), "begin refused: %s", slab_last_error());
    ph.domain = ph.lanes[0].domain;
    REQUIRE_OR(slab_lane_open(&ph.lanes[1], ph.domain), "open refused: %s", slab_last_error());
    atomic_store(&open_eras[below(d, OPEN)], ph.domain->epoch_era << 1 | ph.kept);
    unsigned laps = chance(d, 8) ? 200 : 1; /* long enough to be ended by the closer */
    while (work_in(&ph, d) && --laps > 0) {}
    if (chance(d, 8)) {
        struct phase* on = malloc(sizeof *on);
        REQUIRE_OR(on && epoch_domain_detach(ph.domain), "detach refused: %s", slab_last_error());
        *on = ph;
        go_on(atomic_exchange(&relays[below(d, RELAYS)], on), d);
    } else {
        if (chance(d, 2)) {
            REQUIRE_OR(epoch_domain_detach(ph.domain) && epoch_domain_attach(ph.domain), "detach refused");
            (void)work_in(&ph, d);
        }
        end(&ph);
    }
}

static void work(struct slot* self) {
    for (uint64_t n = 0; n < self->ops_per_life; n++) one_phase(&self->dice);
    atomic_fetch_sub(&working, 1);
}

static void close_some(struct dice* d) {
    uint64_t open = atomic_exchange(&open_eras[below(d, OPEN)], 0);
    if (open == 0) return;
    bool drains = (open & 1) != 0;
    closed += epoch_close_era(a, open >> 1, drains ? EPOCH_DRAIN : EPOCH_RELEASE, NULL);
}

static void keep_house(struct slot* self) {
    while (atomic_load(&working) > 0) {
        struct parcel* parcel;
        switch (self->index - WORKERS) {
        case 0:
            slab_trim(a);
            trims++;
            break;
        case 1: close_some(&self->dice); break;
        default:
            parcel = atomic_exchange(&passed[below(&self->dice, PASSED)], NULL);
            freed_for_others += parcel != NULL;
            free_parcel(parcel);
        }
        if (chance(&self->dice, 4)) sched_yield();
    }
}

static void live(struct slot* self) {
    if (self->index < WORKERS) work(self);
    else keep_house(self);
}

static void check_label(const char* name, bool kept) {
    static SlabLabelStats all[16];
    size_t n = slab_stats_labels(a, all, 16), at = 0;
    while (at < n && at < 16 && strcmp(all[at].label, name) != 0) at++;
    REQUIRE_OR(at < n, "no label '%s'", name);
    const SlabLabelStats* l = &all[at];
    uint64_t due = atomic_load(&made[kept]), gone = kept ? l->objects_freed : l->objects_released;
    REQUIRE_OR(l->objects_allocated == due && gone == due && l->live_objects == 0 && l->phases_open == 0,
               "'%s': %llu allocated, %llu freed, %llu released, %llu live; %llu were handed out", name,
               (unsigned long long)l->objects_allocated, (unsigned long long)l->objects_freed,
               (unsigned long long)l->objects_released, (unsigned long long)l->live_objects, (unsigned long long)due);
}

int main(void) {
    a = kit_create();
    for (uint64_t lap = 0; lap < 4; lap++) {
        atomic_store(&working, WORKERS);
        run_slots(WORKERS + HOUSEKEEPERS, 1, check_count(30000) / WORKERS / 4, 73 + lap, live, NULL);
        kit_check(a);
    }
    struct dice d = {.state = 73};
    for (unsigned i = 0; i < RELAYS; i++) go_on(atomic_exchange(&relays[i], NULL), &d);
    for (unsigned i = 0; i < PASSED; i++) free_parcel(atomic_exchange(&passed[i], NULL));
    check_label("kept", true);
    check_label("counted", false);
    check_no_misuse(a);
    check_all_gone(a, RING);
    slab_allocator_free(a);
    REQUIRE_OR(trims > 0 && closed > 0 && relayed > 0, "nothing was trimmed, closed or relayed");
    printf("stress_lanes: ok; %llu objects, %llu refused, %llu phases closed by others, %llu relayed, %llu freed by others\n",
           (unsigned long long)(made[0] + made[1]), (unsigned long long)refused, (unsigned long long)closed,
           (unsigned long long)relayed, (unsigned long long)freed_for_others);
    return 0;
}
