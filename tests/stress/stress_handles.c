/*
 * stress_handles.c - one object, many who would end it: exactly one succeeds.
 *
 * Rounds between barriers, so that every success can be counted. In a round all threads race over
 * one shared table of objects while nothing is allocated:
 *
 *   handles    free_obj by several threads: one true per object
 *   mixed      free_obj against slab_free_checked: one true per object
 *   pointers   slab_free_checked against itself: at least one true per object, and whatever is
 *              accepted beyond that turns up in late_double_free once the slabs are merged
 *   release    free_obj against the release of the epoch: freed + released = allocated, and the
 *              winners are as many as the receipt's freed
 *   churn      allocation and free_obj through shared cells; stale handles stay stale although
 *              their slots are in use again
 */
#include "stress.h"

enum { THREADS = 6, OBJECTS = 3000, CELLS = 512, RING = 16 };

static SlabAllocator* a;
static pthread_barrier_t barrier;
static void* pointers[OBJECTS];
static SlabHandle handles[OBJECTS];
static _Atomic uint8_t wins[OBJECTS];
static _Atomic uint64_t cells[CELLS], churn_made, churn_freed;
static epoch_domain_t* doomed;
static uint64_t rounds;

static bool wait_all(void) { return pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD; }

/* Every thread fills its share of the table, in its own slabs. */
static void fill(struct slot* self, bool with_handles) {
    struct dice* d = &self->dice;
    for (int i = self->index; i < OBJECTS; i += THREADS) {
        size_t size = small_size(d);
        if (doomed) pointers[i] = alloc_obj_epoch(a, (uint32_t)size, doomed->epoch_id, &handles[i]);
        else pointers[i] = with_handles ? alloc_obj(a, (uint32_t)size, &handles[i]) : slab_malloc(a, size);
        REQUIRE_OR(pointers[i], "no memory");
        cookie_write(pointers[i], size, roll(d));
        cookie_check(pointers[i], size);
        atomic_store(&wins[i], 0);
    }
    wait_all();
}

/* Goes over the table from a place of its own, so that threads meet everywhere. */
static uint64_t race(struct slot* self, int pointer_percent) {
    uint64_t won = 0;
    int start = (int)below(&self->dice, OBJECTS), step = chance(&self->dice, 2) ? 1 : OBJECTS - 1;
    for (int n = 0, i = start; n < OBJECTS; n++, i = (i + step) % OBJECTS) {
        bool by_pointer = (int)below(&self->dice, 100) < pointer_percent;
        bool ok = by_pointer ? slab_free_checked(a, pointers[i]) : free_obj(a, handles[i]);
        if (!ok) continue;
        atomic_fetch_add(&wins[i], 1);
        won++;
    }
    wait_all();
    return won;
}

static void check_wins(struct slot* self, bool exactly) {
    for (int i = self->index; i < OBJECTS; i += THREADS) {
        unsigned n = atomic_load(&wins[i]);
        REQUIRE_OR(n >= 1 && (n == 1 || !exactly), "object %d (%p) was freed %u times", i, pointers[i], n);
        if (exactly) REQUIRE_OR(!free_obj(a, handles[i]) && !slab_handle_ptr(a, handles[i]), "a dead handle is alive");
    }
    wait_all();
}

/* Threads that free one pointer at the same moment both zero the object in the hardened form. That is the program's race,
 * which ThreadSanitizer reports; by handle one of them frees. */
static bool fill_races;

static _Atomic uint64_t pointer_wins;

static void round_pointers(struct slot* self) {
    SlabRefusals before, after;
    fill(self, false);
    slab_stats_refusals(a, &before);
    atomic_store(&pointer_wins, 0);
    wait_all();
    atomic_fetch_add(&pointer_wins, race(self, 100));
    check_wins(self, false);
    slab_thread_flush(a); /* merges what this thread owns */
    if (!wait_all()) {
        wait_all();
        return;
    }
    slab_trim(a);
    slab_stats_refusals(a, &after);
    uint64_t late = after.late_double_free - before.late_double_free;
    REQUIRE_OR(atomic_load(&pointer_wins) == OBJECTS + late, "%llu frees of %u objects were accepted, %llu found late",
               (unsigned long long)atomic_load(&pointer_wins), (unsigned)OBJECTS, (unsigned long long)late);
    wait_all();
}

static _Atomic uint64_t release_wins;

static void round_release(struct slot* self) {
    if (wait_all()) {
        doomed = epoch_domain_create_labeled(a, "doomed");
        REQUIRE_OR(doomed, "no domain");
        atomic_store(&release_wins, 0);
    }
    wait_all();
    fill(self, true);
    EpochReceipt r;
    if (self->index == 0) {
        for (uint64_t n = below(&self->dice, 2000); n > 0; n--) atomic_fetch_add(&churn_made, 0); /* a random moment */
        REQUIRE_OR(epoch_close_ex(a, doomed->epoch_id, EPOCH_RELEASE, &r), "release refused");
        REQUIRE_OR(r.objects_allocated == r.objects_freed + r.objects_released + r.objects_escaped,
                   "receipt does not balance");
        wait_all();
    } else {
        atomic_fetch_add(&release_wins, race(self, 0));
    }
    for (int i = self->index; i < OBJECTS; i += THREADS) {
        REQUIRE_OR(atomic_load(&wins[i]) <= 1, "object %d was freed %u times", i, atomic_load(&wins[i]));
        REQUIRE_OR(!free_obj(a, handles[i]), "the handle of an ended object was freed");
    }
    wait_all();
    if (self->index == 0) {
        REQUIRE_OR(epoch_close_ex(a, doomed->epoch_id, EPOCH_RELEASE, &r), "second release refused");
        uint64_t won = atomic_load(&release_wins);
        REQUIRE_OR(r.objects_allocated == OBJECTS && r.objects_freed == won && r.objects_released == OBJECTS - won,
                   "settled receipt: %llu allocated %llu freed %llu released, %llu frees succeeded",
                   (unsigned long long)r.objects_allocated, (unsigned long long)r.objects_freed,
                   (unsigned long long)r.objects_released, (unsigned long long)won);
        epoch_domain_destroy(doomed);
        doomed = NULL;
    }
    wait_all();
}

static void round_churn(struct slot* self) {
    struct dice* d = &self->dice;
    SlabHandle old[16] = {0};
    for (unsigned i = 0; i < 4000; i++) {
        SlabHandle h = 0;
        if (chance(d, 2)) {
            REQUIRE_OR(alloc_obj(a, (uint32_t)small_size(d), &h) && h, "no memory");
            atomic_fetch_add(&churn_made, 1);
        }
        _Atomic uint64_t* cell = &cells[below(d, CELLS)];
        /* Half of the time the handle stays in the cell while it is freed: others try it as well. */
        SlabHandle found = h ? atomic_exchange(cell, h) : atomic_load(cell);
        if (found && free_obj(a, found)) {
            atomic_fetch_add(&churn_freed, 1);
            old[i % 16] = found;
        }
        SlabHandle dead = old[below(d, 16)];
        if (dead) REQUIRE_OR(!free_obj(a, dead) && !slab_handle_ptr(a, dead), "a stale handle was honoured");
    }
    if (!wait_all()) {
        wait_all();
        return;
    }
    for (unsigned i = 0; i < CELLS; i++) {
        SlabHandle h = atomic_exchange(&cells[i], 0);
        if (h && free_obj(a, h)) atomic_fetch_add(&churn_freed, 1);
    }
    REQUIRE_OR(atomic_load(&churn_made) == atomic_load(&churn_freed), "%llu objects made, %llu freed",
               (unsigned long long)churn_made, (unsigned long long)churn_freed);
    wait_all();
}

static void live(struct slot* self) {
    for (uint64_t i = 0; i < rounds; i++) {
        fill(self, true);
        race(self, 0);
        check_wins(self, true);
        fill(self, true);
        race(self, 50);
        check_wins(self, true);
        if (!fill_races) round_pointers(self);
        round_release(self);
        round_churn(self);
        if (self->index == 0) {
            kit_check(a);
            epoch_advance(a);
            epoch_close(a, (epoch_current(a) + RING - 1) % RING);
        }
        wait_all();
    }
}

int main(void) {
    a = kit_create();
    rounds = check_count(500);
    const char* options = getenv("TSLAB_OPTIONS");
    bool fills = options != NULL && (strstr(options, "hardened=1") != NULL || strstr(options, "fill_freed=1") != NULL);
    fill_races = CHECK_TSAN && fills;
    if (fill_races) puts("left out: frees of one pointer by several threads at once, which all zero the object");
    pthread_barrier_init(&barrier, NULL, THREADS);
    run_slots(THREADS, 1, 0, 5, live, NULL);
    pthread_barrier_destroy(&barrier);
    check_all_gone(a, RING);
    slab_allocator_free(a);
    puts("stress_handles: ok");
    return 0;
}
