/*
 * stress_runs.c - what is told of phases with runs, while others give the phases other labels.
 *
 * Workers have phases of their own, in which they bump, align, begin and end runs, with objects and without, let objects grow and
 * free them. A thread gives one of the open phases another label again and again, and so posts what it sees of it; another reads.
 * At rest the labels have heard of each object and each byte once.
 */
#include "stress.h"

#include <slab_lane.h>

enum { WORKERS = 2, LABELS = 4, KEPT = 16 };

static SlabAllocator* a;
static _Atomic uint32_t open_ids[WORKERS];
static _Atomic int working;
static _Atomic uint64_t relabelled, grown, readings;
static const char* const names[] = {"one", "two", "three"};

struct known {
    uint64_t objects, bytes, freed, freed_bytes;
};
static struct known known[WORKERS];

struct phase {
    epoch_domain_t* domain;
    void* kept[KEPT]; /* some of its objects */
    struct known* known;
};

static void put(struct phase* ph, struct dice* d, void* p) {
    REQUIRE_OR(p != NULL, "no object: %s", slab_last_error());
    ph->known->objects++;
    ph->known->bytes += slab_usable_size(a, p);
    void** at = &ph->kept[below(d, KEPT)];
    if (*at != NULL && chance(d, 2)) {
        ph->known->freed++;
        ph->known->freed_bytes += slab_usable_size(a, *at);
        REQUIRE_OR(slab_free_checked(a, *at), "free of a live object refused");
    }
    *at = p;
}

/* Where it is, or elsewhere. */
static void grow(struct phase* ph, struct dice* d, unsigned n) {
    if (ph->kept[n] == NULL) return;
    size_t before = slab_usable_size(a, ph->kept[n]);
    void* p = slab_realloc(a, ph->kept[n], before + 16 + below(d, 300));
    REQUIRE_OR(p != NULL, "no growth: %s", slab_last_error());
    size_t after = slab_usable_size(a, p);
    if (p == ph->kept[n]) {
        ph->known->bytes += after - before;
    } else {
        ph->known->objects++;
        ph->known->bytes += after;
        ph->known->freed++;
        ph->known->freed_bytes += before;
    }
    ph->kept[n] = p;
    atomic_fetch_add_explicit(&grown, 1, memory_order_relaxed);
}

static void one_run(struct phase* ph, struct dice* d) {
    SlabRun run;
    REQUIRE_OR(slab_run_begin(&run, ph->domain), "no run: %s", slab_last_error());
    for (unsigned n = chance(d, 3) ? 0 : (unsigned)below(d, 40); n != 0; n--)
        put(ph, d, slab_run_malloc(&run, 16 + below(d, 190)));
    if (chance(d, 4)) grow(ph, d, (unsigned)below(d, KEPT));
    REQUIRE_OR(slab_run_end(&run), "run's end refused: %s", slab_last_error());
}

/* The last object before runs, most of them empty. */
static void grow_between_runs(struct phase* ph, struct dice* d) {
    unsigned n = (unsigned)below(d, KEPT);
    ph->kept[n] = NULL;
    while (ph->kept[n] == NULL) put(ph, d, epoch_domain_malloc(ph->domain, 48));
    for (unsigned times = 20; times != 0; times--) {
        SlabRun run;
        REQUIRE_OR(slab_run_begin(&run, ph->domain), "no run: %s", slab_last_error());
        if (chance(d, 8)) put(ph, d, slab_run_malloc(&run, 16));
        REQUIRE_OR(slab_run_end(&run), "run's end refused: %s", slab_last_error());
        grow(ph, d, n);
    }
}

static void one_phase(struct slot* self) {
    SlabDomainOptions o = {.struct_size = sizeof o, .label = names[0], .flags = SLAB_DOMAIN_OWNER_ONLY};
    struct phase ph = {.domain = epoch_domain_create_ex(a, &o), .known = &known[self->index]};
    struct dice* d = &self->dice;
    REQUIRE_OR(ph.domain != NULL, "no domain: %s", slab_last_error());
    atomic_store(&open_ids[self->index], ph.domain->epoch_id);
    for (unsigned n = 1 + (unsigned)below(d, 40); n != 0; n--) {
        switch (below(d, 5)) {
        case 0:
            put(&ph, d, epoch_domain_malloc(ph.domain, 16 + below(d, 500)));
            break;
        case 1:
            put(&ph, d, epoch_domain_aligned_alloc(ph.domain, (size_t)64 << below(d, 4), 48));
            break;
        case 2:
            grow_between_runs(&ph, d);
            break;
        default:
            one_run(&ph, d);
        }
    }
    atomic_store(&open_ids[self->index], 0);
    REQUIRE_OR(epoch_domain_destroy(ph.domain), "end refused: %s", slab_last_error());
}

static void live(struct slot* self) {
    if (self->index < WORKERS) {
        for (uint64_t n = 0; n < self->ops_per_life; n++) one_phase(self);
        atomic_fetch_sub(&working, 1);
        return;
    }
    while (atomic_load(&working) != 0) {
        SlabLabelStats rows[LABELS];
        uint32_t id = atomic_load(&open_ids[below(&self->dice, WORKERS)]);
        if (self->index > WORKERS) {
            (void)slab_stats_labels(a, rows, LABELS);
            atomic_fetch_add_explicit(&readings, 1, memory_order_relaxed);
        } else if (id != 0) { /* or it has ended by now */
            slab_epoch_set_label(a, id, names[below(&self->dice, 3)]);
            atomic_fetch_add_explicit(&relabelled, 1, memory_order_relaxed);
        }
    }
}

/* A guarded object counts with its slot's bytes, and a block of malloc with those that were asked for. */
static bool by_usable_bytes(void) {
    const char* options = getenv("TSLAB_OPTIONS");
    if (options == NULL || (strstr(options, "hardened=1") == NULL && strstr(options, "by_malloc=1") == NULL)) return true;
    puts("left out: bytes, where some objects count with others than slab_usable_size tells");
    return false;
}

static void exact_at_rest(void) {
    SlabLabelStats rows[LABELS];
    struct known want = {0, 0, 0, 0}, got = {0, 0, 0, 0};
    uint64_t released = 0, released_bytes = 0;
    for (unsigned n = 0; n < WORKERS; n++) {
        want.objects += known[n].objects;
        want.bytes += known[n].bytes;
        want.freed += known[n].freed;
        want.freed_bytes += known[n].freed_bytes;
    }
    for (size_t n = slab_stats_labels(a, rows, LABELS); n != 0; n--) {
        const SlabLabelStats* l = &rows[n - 1];
        got.objects += l->objects_allocated;
        got.bytes += l->bytes_allocated;
        got.freed += l->objects_freed;
        got.freed_bytes += l->bytes_freed;
        released += l->objects_released;
        released_bytes += l->bytes_released;
        REQUIRE_OR(l->live_objects == 0 && l->live_bytes == 0, "label '%s': %llu objects of %llu bytes live", l->label,
                   (unsigned long long)l->live_objects, (unsigned long long)l->live_bytes);
    }
    REQUIRE_OR(got.objects == want.objects && got.freed == want.freed && released == want.objects - want.freed,
               "objects: %llu allocated, %llu freed, %llu released; %llu and %llu were",
               (unsigned long long)got.objects, (unsigned long long)got.freed, (unsigned long long)released,
               (unsigned long long)want.objects, (unsigned long long)want.freed);
    if (!by_usable_bytes()) return;
    REQUIRE_OR(got.bytes == want.bytes && got.freed_bytes == want.freed_bytes &&
                   released_bytes == want.bytes - want.freed_bytes,
               "bytes: %llu allocated, %llu freed, %llu released; %llu and %llu were", (unsigned long long)got.bytes,
               (unsigned long long)got.freed_bytes, (unsigned long long)released_bytes, (unsigned long long)want.bytes,
               (unsigned long long)want.freed_bytes);
}

int main(void) {
    SlabOptions o = {.struct_size = sizeof o, .max_labels = LABELS};
    a = kit_create_with(&o);
    atomic_store(&working, WORKERS);
    run_slots(WORKERS + 2, 1, check_count(8000), 1, live, NULL);
    exact_at_rest();
    check_all_gone(a, 0);
    check_no_misuse(a);
    slab_allocator_free(a);
    printf("stress_runs: ok, %llu other labels, %llu objects grown, %llu readings\n", (unsigned long long)relabelled,
           (unsigned long long)grown, (unsigned long long)readings);
    return 0;
}
