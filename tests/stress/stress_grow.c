/*
 * stress_grow.c - large objects grow while others free them and end their phases.
 *
 * Each worker has a phase of its own in which large objects grow in steps; one thread ends phases by era in the middle
 * of that, and one frees what workers show. A realloc that is refused because its phase is over, or because its object
 * was freed, is fine; a crash, a receipt that does not balance and memory that stays are not.
 */
#include "stress.h"

enum { WORKERS = 3, SHOWN = 8, OBJECTS = 4 };

static SlabAllocator* a;
static _Atomic(void*) shown[WORKERS][SHOWN];
static _Atomic uint64_t era_of[WORKERS];
static _Atomic int working;
static _Atomic uint64_t grown, ended, freed;

static void work(struct slot* self) {
    struct dice* d = &self->dice;
    unsigned me = (unsigned)self->index;
    for (uint64_t i = 0; i < self->ops_per_life; i++) {
        epoch_domain_t* q = epoch_domain_create_labeled(a, "grows");
        REQUIRE_OR(q, "no domain");
        atomic_store(&era_of[me], q->epoch_era);
        void* p[OBJECTS] = {NULL};
        size_t size[OBJECTS];
        for (unsigned n = 0; n < OBJECTS; n++) {
            size[n] = 270000 + below(d, 300000);
            p[n] = epoch_domain_malloc(q, size[n]);
            if (p[n] && chance(d, 2)) atomic_store(&shown[me][below(d, SHOWN)], p[n]);
        }
        for (unsigned step = 0; step < 20; step++) {
            unsigned n = (unsigned)below(d, OBJECTS);
            size[n] += below(d, 200000);
            void* more = p[n] ? epoch_domain_realloc(q, p[n], size[n]) : NULL;
            if (more) atomic_fetch_add_explicit(&grown, 1, memory_order_relaxed);
            p[n] = more; /* refused: ended, or freed by the other thread */
        }
        atomic_store(&era_of[me], 0);
        epoch_domain_destroy(q);
    }
    atomic_fetch_sub(&working, 1);
}

static void keep_house(struct slot* self) {
    struct dice* d = &self->dice;
    while (atomic_load(&working) > 0) {
        unsigned of = (unsigned)below(d, WORKERS);
        uint64_t era = atomic_load(&era_of[of]);
        EpochReceipt r;
        /* A release and a free give memory to others that its user still copies: a race of the program's, by intent. */
        bool release = !CHECK_TSAN && chance(d, 2);
        if (era != 0 && chance(d, 20) && epoch_close_era(a, era, release ? EPOCH_RELEASE : EPOCH_DRAIN, &r)) {
            REQUIRE_OR(r.objects_allocated == r.objects_freed + r.objects_released + r.objects_escaped &&
                           r.bytes_allocated == r.bytes_freed + r.bytes_released + r.bytes_escaped,
                       "receipt does not balance");
            atomic_fetch_add(&ended, 1);
        }
        void* p = atomic_exchange(&shown[of][below(d, SHOWN)], NULL);
        if (p && !CHECK_TSAN && slab_free_checked(a, p)) atomic_fetch_add(&freed, 1);
        sched_yield();
    }
}

static void live(struct slot* self) {
    if (self->index < WORKERS) work(self);
    else keep_house(self);
}

int main(void) {
    if (check_charges_writable()) { /* a realloc writes an object whose phase may be over: docs/limits.md */
        puts("skipped: the kernel charges what may be written");
        return 77;
    }
    a = kit_create();
    for (uint64_t lap = 0; lap < 2; lap++) {
        atomic_store(&working, WORKERS);
        run_slots(WORKERS + 1, 1, check_count(6000) / WORKERS / 2, 3 + lap, live, NULL);
        kit_check(a);
    }
    slab_trim(a);
    kit_check(a);
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    REQUIRE_OR(g.live_objects == 0 && g.committed_bytes == 0, "%llu objects, %llu bytes committed are left",
               (unsigned long long)g.live_objects, (unsigned long long)g.committed_bytes);
    slab_allocator_free(a);
    REQUIRE_OR(grown > 0, "nothing has grown");
    puts("stress_grow: ok");
    return 0;
}
