/*
 * stress_rows.c - rows of phases and labels that are read while threads work do not contradict themselves.
 *
 * Workers allocate in a ring and in domains under a few labels, free late and each other's objects, end phases in both ways and,
 * in every other lap, give them other labels. Readers look at each row: nobody has more live, freed or released than
 * allocated, the sums of a label leave what is live, and nothing that was told of a label is taken back. At rest all of it is
 * exact.
 */
#include "stress.h"

enum { WORKERS = 3, READERS = 2, RING = 8, EXCHANGE = 64, LABELS = 8, PHASES = 512 };

static SlabAllocator* a;
static bool relabel;
static _Atomic int working;
static _Atomic(void*) exchange[EXCHANGE];
static _Atomic uint64_t readings, rows_seen;

static const char* const names[] = {"one", "two", "three", "four"};

/* ---- what every row must be ---------------------------------------------------------------- */

static void phase_is_sound(const SlabPhaseStats* p) {
    REQUIRE_OR(p->live_objects <= p->objects_allocated && p->live_bytes <= p->bytes_allocated,
               "phase %llu: %llu objects, %llu bytes live of %llu, %llu allocated", (unsigned long long)p->epoch_era,
               (unsigned long long)p->live_objects, (unsigned long long)p->live_bytes,
               (unsigned long long)p->objects_allocated, (unsigned long long)p->bytes_allocated);
    REQUIRE_OR(p->live_bytes <= p->committed_bytes && p->committed_bytes <= p->peak_bytes && p->empty_slabs <= p->slabs,
               "phase %llu: %llu bytes live, %llu committed, peak %llu", (unsigned long long)p->epoch_era,
               (unsigned long long)p->live_bytes, (unsigned long long)p->committed_bytes,
               (unsigned long long)p->peak_bytes);
}

static void sums_are_sound(const char* label, const char* what, uint64_t allocated, uint64_t freed, uint64_t released, uint64_t live) {
    if (relabel) { /* objects that a relabelled phase has brought along were allocated under another label */
        REQUIRE_OR(live < 1u << 30, "label '%s': %llu %s live", label, (unsigned long long)live, what);
        return;
    }
    REQUIRE_OR(freed <= allocated && released <= allocated && live <= allocated && allocated == freed + released + live,
               "label '%s': %llu %s allocated, %llu freed, %llu released, %llu live", label,
               (unsigned long long)allocated, what, (unsigned long long)freed, (unsigned long long)released,
               (unsigned long long)live);
}

static void label_is_sound(const SlabLabelStats* l) {
    sums_are_sound(l->label, "objects", l->objects_allocated, l->objects_freed, l->objects_released, l->live_objects);
    sums_are_sound(l->label, "bytes", l->bytes_allocated, l->bytes_freed, l->bytes_released, l->live_bytes);
    REQUIRE_OR(l->live_bytes <= l->committed_bytes && l->committed_bytes <= l->peak_bytes,
               "label '%s': %llu bytes live, %llu committed, peak %llu", l->label, (unsigned long long)l->live_bytes,
               (unsigned long long)l->committed_bytes, (unsigned long long)l->peak_bytes);
    REQUIRE_OR(l->pinned_slabs <= l->closed_slabs && l->drainability >= 0 && l->drainability <= 1,
               "label '%s': %llu of %llu slabs pinned", l->label, (unsigned long long)l->pinned_slabs,
               (unsigned long long)l->closed_slabs);
}

static void nothing_is_taken_back(const SlabLabelStats* was, const SlabLabelStats* now) {
    REQUIRE_OR(was->objects_allocated <= now->objects_allocated && was->bytes_allocated <= now->bytes_allocated &&
                   was->objects_freed <= now->objects_freed && was->bytes_freed <= now->bytes_freed &&
                   was->objects_released <= now->objects_released && was->bytes_released <= now->bytes_released,
               "label '%s' takes something back", now->label);
}

/* ---- threads ------------------------------------------------------------------------------- */

static void put(struct dice* d, void* p) {
    void* other = atomic_exchange(&exchange[below(d, EXCHANGE)], p);
    slab_free(a, other); /* refused where its phase was released meanwhile */
}

static void work(struct slot* self) {
    struct dice* d = &self->dice;
    size_t size = chance(d, 200) ? 300000 + below(d, 400000) : 1 + below(d, chance(d, 8) ? 20000 : 600);
    put(d, chance(d, 4) ? NULL : slab_malloc(a, size));
    if (chance(d, 300)) {
        EpochId id = (EpochId)below(d, RING);
        epoch_close_ex(a, id, chance(d, 2) ? EPOCH_DRAIN : EPOCH_RELEASE, NULL);
        if (epoch_state(a, epoch_current(a)) == EPOCH_CLOSING) epoch_advance(a);
    }
    if (relabel && chance(d, 200)) slab_epoch_set_label(a, (EpochId)below(d, RING), names[below(d, 4)]);
    if (chance(d, 100)) {
        epoch_domain_t* domain = epoch_domain_begin(a, names[below(d, 4)]);
        for (uint64_t n = below(d, 300); n != 0; n--) {
            void* p = slab_malloc(a, 1 + below(d, 500));
            if (chance(d, 2)) slab_free(a, p);
        }
        epoch_domain_end(domain);
    }
    if (chance(d, 2000)) slab_trim(a);
}

static void read_rows(void) {
    static _Thread_local SlabLabelStats before[LABELS], labels[LABELS];
    static _Thread_local SlabPhaseStats phases[PHASES];
    memset(before, 0, sizeof before);
    while (atomic_load(&working) != 0) {
        size_t n = slab_stats_phases(a, phases, PHASES);
        for (size_t i = 0; i < n && i < PHASES; i++) phase_is_sound(&phases[i]);
        atomic_fetch_add(&rows_seen, n);
        n = slab_stats_labels(a, labels, LABELS);
        for (size_t i = 0; i < n && i < LABELS; i++) {
            label_is_sound(&labels[i]);
            if (strcmp(before[i].label, labels[i].label) == 0) nothing_is_taken_back(&before[i], &labels[i]);
            before[i] = labels[i];
        }
        atomic_fetch_add(&readings, 1);
    }
}

static void live(struct slot* self) {
    if (self->index >= WORKERS) {
        read_rows();
        return;
    }
    for (uint64_t n = 0; n < self->ops_per_life; n++) work(self);
    atomic_fetch_sub(&working, 1);
}

static void exact_at_rest(void) {
    SlabLabelStats labels[LABELS];
    SlabPhaseStats phases[PHASES];
    SlabGlobalStats g;
    uint64_t by_label = 0, by_phase = 0, allocated = 0, gone = 0;
    size_t rows = slab_stats_phases(a, phases, PHASES), n = slab_stats_labels(a, labels, LABELS);
    slab_stats_global(a, &g);
    for (size_t i = 0; i < n; i++) {
        label_is_sound(&labels[i]);
        by_label += labels[i].live_objects;
        allocated += labels[i].objects_allocated;
        gone += labels[i].objects_freed + labels[i].objects_released;
    }
    for (size_t i = 0; i < rows && i < PHASES; i++) by_phase += phases[i].live_objects;
    REQUIRE_OR(by_label == g.live_objects && by_phase == g.live_objects && allocated == gone + g.live_objects,
               "%llu live, %llu by labels, %llu by phases, %llu allocated, %llu gone",
               (unsigned long long)g.live_objects, (unsigned long long)by_label, (unsigned long long)by_phase,
               (unsigned long long)allocated, (unsigned long long)gone);
}

int main(void) {
    for (uint64_t lap = 0; lap < 4; lap++) {
        SlabOptions o = {.struct_size = sizeof o, .max_labels = LABELS, .ring_size = RING, .shared = lap >= 2};
        a = kit_create_with(&o);
        relabel = lap % 2 != 0;
        for (EpochId id = 0; id < RING; id++) slab_epoch_set_label(a, id, names[id % 4]);
        atomic_store(&working, WORKERS);
        run_slots(WORKERS + READERS, 1, check_count(600000), lap, live, NULL);
        exact_at_rest();
        for (size_t n = 0; n < EXCHANGE; n++) slab_free(a, atomic_exchange(&exchange[n], NULL));
        exact_at_rest();
        kit_check(a);
        slab_allocator_free(a);
    }
    printf("stress_rows: ok, %llu readings, %llu rows of phases\n", (unsigned long long)readings, (unsigned long long)rows_seen);
    return 0;
}
