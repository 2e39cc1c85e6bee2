/*
 * stress_turns.c - the ring turns as fast as it can while everybody allocates in it.
 *
 * Every thread allocates, frees, and every few operations labels, advances and closes, so that records of incarnations
 * are opened again while threads still come by with a reference to what they were. Nothing is lost, nothing is counted
 * as misuse, and every object is in the account of one label, although somebody reads them all the time: what is told of
 * a label never falls, so a reading that gave it another's objects would show at the end. Races on the records themselves are
 * ThreadSanitizer's to see.
 */
#include "stress.h"

enum { THREADS = 8, OBJECTS = 6, RING = 16 };

static SlabAllocator* a;
static _Atomic uint64_t allocated;
static _Atomic int working;
static int threads;
static unsigned requests_of_phase;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void read_accounts(void) {
    SlabLabelStats rows[8];
    while (atomic_load(&working) != 0) (void)slab_stats_labels(a, rows, 8);
}

static void end_phase(struct dice* d) {
    static const char* const labels[] = {"one", "two", "three", "four"};
    pthread_mutex_lock(&turn); /* one at a time, or an id could name the epoch after next */
    EpochId old = epoch_current(a), now = epoch_advance_id(a);
    slab_epoch_set_label(a, now, labels[below(d, 4)]);
    REQUIRE_OR(epoch_close_ex(a, old, EPOCH_DRAIN, NULL), "the ring's own id is refused");
    pthread_mutex_unlock(&turn);
}

static void live(struct slot* self) {
    struct dice* d = &self->dice;
    void* held[OBJECTS];
    if (self->index == threads) {
        read_accounts();
        return;
    }
    for (uint64_t n = 0; n < self->ops_per_life; n++) {
        for (unsigned k = 0; k < OBJECTS; k++) {
            held[k] = slab_malloc(a, 128);
            REQUIRE_OR(held[k] != NULL, "no memory");
            cookie_write(held[k], 128, roll(d));
        }
        for (unsigned k = 0; k < OBJECTS; k++) {
            cookie_check(held[k], 128);
            if (chance(d, 40)) continue; /* lives on in an epoch that has ended */
            REQUIRE_OR(slab_free_checked(a, held[k]), "free of live %p refused", held[k]);
            held[k] = NULL;
        }
        atomic_fetch_add_explicit(&allocated, OBJECTS, memory_order_relaxed);
        if (n % requests_of_phase == 0) end_phase(d);
        for (unsigned k = 0; k < OBJECTS; k++) slab_free(a, held[k]);
    }
    atomic_fetch_sub(&working, 1);
}

/* Some threads, phases of so many requests, and one that reads. */
static void lap(int n, unsigned requests, uint64_t turns) {
    a = kit_create();
    threads = n;
    requests_of_phase = requests;
    atomic_store(&working, n);
    atomic_store(&allocated, 0);
    run_slots(n + 1, 1, check_count(turns * requests) / (uint64_t)n, 11, live, NULL);
    SlabLabelStats rows[8];
    size_t count = slab_stats_labels(a, rows, 8);
    uint64_t seen = 0, ended = 0; /* what a phase holds when it gets its label is allocated under one, freed under the other */
    for (size_t r = 0; r < count; r++) {
        seen += rows[r].objects_allocated;
        ended += rows[r].objects_freed + rows[r].objects_released;
    }
    REQUIRE_OR(ended == seen, "%llu objects ended under all labels, %llu were allocated", (unsigned long long)ended,
               (unsigned long long)seen);
    REQUIRE_OR(seen == allocated, "%llu objects under all labels, %llu were allocated", (unsigned long long)seen,
               (unsigned long long)allocated);
    check_no_misuse(a);
    check_all_gone(a, RING);
    slab_allocator_free(a);
}

int main(void) {
    lap(THREADS, 1, CHECK_DIVISOR > 4 ? 640000 : 60000); /* the race is for the slow ones to see */
    lap(1, 100, 20000);                                       /* labelled, and a moment later full of objects */
    puts("stress_turns: ok");
    return 0;
}
