/*
 * labels.c - accounts of labels, rows of phases, budgets and samples.
 *
 * When the world stands still every figure is compared with the program's own count. While it runs, sums must not go
 * back and rows must stay plausible.
 */
#include "kit/fixture.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 300 };

static SlabLabelStats rows[ROWS];

static const SlabLabelStats* row_of(SlabAllocator* a, const char* label) {
    size_t n = slab_stats_labels(a, rows, ROWS);
    for (size_t i = 0; i < n && i < ROWS; i++)
        if (strcmp(rows[i].label, label) == 0) return &rows[i];
    return NULL;
}

static uint64_t histogram_sum(const uint64_t* h) {
    uint64_t n = 0;
    for (int i = 0; i < SLAB_HISTOGRAM_BUCKETS; i++) n += h[i];
    return n;
}

static void phases_of_two_labels(void) {
    SlabAllocator* a = slab_allocator_create();
    uint64_t objects[2] = {0, 0}, bytes[2] = {0, 0}, freed[2] = {0, 0};
    for (unsigned i = 0; i < 20; i++) {
        unsigned k = i % 2;
        epoch_domain_t* d = epoch_domain_begin(a, k ? "GET /a" : "GET /b");
        for (unsigned n = 0; n < 100 + i; n++) {
            char* p = slab_malloc(a, 1 + n * 7 % 3000);
            objects[k]++;
            bytes[k] += slab_usable_size(a, p);
            if (n % 3 == 0) {
                CHECK(slab_free_checked(a, p));
                freed[k]++;
            }
        }
        epoch_domain_end(d);
    }
    for (unsigned i = 0; i < 5; i++) epoch_domain_end(epoch_domain_begin(a, "GET /b")); /* empty ones */
    for (unsigned k = 0; k < 2; k++) {
        const SlabLabelStats* r = row_of(a, k ? "GET /a" : "GET /b");
        REQUIRE(r != NULL);
        CHECK_EQ(r->phases_opened, k ? 10 : 15);
        CHECK_EQ(r->phases_ended, k ? 10 : 15);
        CHECK_EQ(r->phases_open + r->phases_draining, 0);
        CHECK_EQ(r->objects_allocated, objects[k]);
        CHECK_EQ(r->bytes_allocated, bytes[k]);
        CHECK_EQ(r->objects_freed, freed[k]);
        CHECK_EQ(r->objects_released, objects[k] - freed[k]);
        CHECK_EQ(r->objects_allocated, r->objects_freed + r->objects_released + r->live_objects);
        CHECK_EQ(r->bytes_allocated, r->bytes_freed + r->bytes_released + r->live_bytes);
        CHECK_EQ(r->objects_escaped + r->live_objects + r->committed_bytes, 0);
        CHECK_EQ(histogram_sum(r->duration_ns), 10);
        CHECK_EQ(histogram_sum(r->peak_bytes_hist), 10);
        CHECK(r->slow_path_hits != 0 && r->closed_slabs != 0 && r->pinned_slabs == 0);
        CHECK(r->drainability == 1.0);
    }
    slab_allocator_free(a);
}

static void escapes_and_relabelling(void) {
    SlabAllocator* a = slab_allocator_create();
    char* p[300];
    slab_epoch_set_label(a, 0, "first");
    for (unsigned i = 0; i < 200; i++) p[i] = slab_malloc(a, 100);
    slab_epoch_set_label(a, 0, "second"); /* what is past stays, what lives moves */
    for (unsigned i = 200; i < 300; i++) p[i] = slab_malloc(a, 100);
    for (unsigned i = 0; i < 150; i++) CHECK(slab_free_checked(a, p[i]));
    const SlabLabelStats* r = row_of(a, "first");
    REQUIRE(r != NULL);
    CHECK_EQ(r->objects_allocated, 200);
    CHECK_EQ(r->live_objects + r->phases_open + r->committed_bytes, 0);
    r = row_of(a, "second");
    REQUIRE(r != NULL);
    CHECK_EQ(r->objects_allocated, 100);
    CHECK_EQ(r->live_objects, 150);
    CHECK_EQ(r->phases_open, 1);
    epoch_close(a, 0);
    r = row_of(a, "second");
    REQUIRE(r != NULL);
    CHECK_EQ(r->objects_escaped, 150);
    CHECK_EQ(r->bytes_escaped, 150 * slab_usable_size(a, p[200]));
    CHECK_EQ(r->phases_draining, 1);
    CHECK_EQ(r->phases_ended, 1);
    CHECK(r->pinned_slabs != 0 && r->drainability < 1.0);
    SlabPhaseStats phase[4];
    CHECK_EQ(slab_stats_phases(a, phase, 4), 1);
    CHECK_STR(phase[0].label, "second");
    CHECK_EQ(phase[0].state, EPOCH_CLOSING);
    CHECK_EQ(phase[0].live_objects, 150);
    CHECK_EQ(phase[0].objects_allocated, 300);
    for (unsigned i = 150; i < 300; i++) CHECK(slab_free_checked(a, p[i]));
    r = row_of(a, "second");
    REQUIRE(r != NULL);
    CHECK_EQ(r->phases_draining + r->live_objects + r->committed_bytes, 0);
    CHECK_EQ(r->objects_escaped, 150); /* counted at the close */
    slab_allocator_free(a);
}

static void more_labels_than_room(void) {
    SlabOptions o = {.struct_size = sizeof o, .max_labels = 8};
    SlabAllocator* a = slab_allocator_create_with(&o);
    char name[64];
    for (unsigned i = 0; i < 20; i++) {
        (void)snprintf(name, sizeof name, "route %u with a name longer than a label can be", i);
        epoch_domain_t* d = epoch_domain_begin(a, name);
        CHECK(slab_malloc(a, 10) != NULL);
        epoch_domain_end(d);
    }
    CHECK_EQ(slab_stats_labels(a, rows, ROWS), 8);
    CHECK_STR(rows[0].label, "(unlabeled)");
    CHECK_STR(rows[7].label, "(other)");
    for (unsigned i = 0; i < 8; i++) CHECK_EQ(rows[i].label_id, i);
    CHECK_EQ(rows[7].swallowed, 14);
    CHECK_EQ(rows[7].phases_opened, 14);
    CHECK_EQ(rows[7].objects_released, 14);
    for (unsigned i = 1; i < 7; i++) CHECK_EQ(rows[i].objects_released, 1);
    CHECK(!slab_label_set_budget(a, "one more", 0, 1 << 20, NULL, NULL) && errno == ENOMEM);
    slab_allocator_free(a);
}

/* ---- budgets ---- */

typedef struct Told {
    unsigned soft, hard;
    uint64_t bytes;
    void* victim; /* freed when told of a hard limit */
} Told;

static void told(SlabAllocator* a, EpochId epoch, uint64_t bytes, bool hard, void* ctx) {
    Told* t = ctx;
    (void)epoch;
    if (hard) t->hard++;
    else t->soft++;
    t->bytes = bytes;
    if (hard && t->victim != NULL) CHECK(slab_free_checked(a, t->victim));
    t->victim = NULL;
}

static unsigned fill(SlabAllocator* a, EpochId id, size_t size) {
    unsigned n = 0;
    errno = 0;
    while (slab_malloc_epoch(a, size, id) != NULL) n++;
    return n;
}

static void budget_of_an_epoch(void) {
    SlabAllocator* a = slab_allocator_create();
    Told t = {0, 0, 0, NULL};
    enum { SOFT = 100000, HARD = 1000000 };
    CHECK(!slab_epoch_set_budget(a, 99, 0, 1, NULL, NULL) && errno == EINVAL);
    CHECK(!slab_epoch_set_budget(a, 1, 2, 1, NULL, NULL) && errno == EINVAL);
    CHECK(slab_epoch_set_budget(a, 1, SOFT, HARD, told, &t));
    unsigned n = fill(a, 1, 1000);
    CHECK_EQ(errno, EDQUOT);
    CHECK_EQ(t.soft, 1);
    CHECK_EQ(t.hard, 1);
    SlabPhaseStats phase;
    CHECK_EQ(slab_stats_phases(a, &phase, 1), 1);
    CHECK(phase.committed_bytes <= HARD && phase.committed_bytes + 65536 > HARD && phase.peak_bytes <= HARD);
    CHECK_EQ(phase.budget_soft_bytes, SOFT);
    CHECK(n * 1000 > HARD / 2);
    CHECK(slab_malloc_epoch(a, 400000, 1) == NULL && errno == EDQUOT);
    CHECK(slab_malloc_epoch(a, 1000, 2) != NULL); /* others go on */
    SlabRefusals refused;
    slab_stats_refusals(a, &refused);
    CHECK_EQ(refused.over_budget, 2);
    CHECK_EQ(refused.out_of_memory, 0);
    CHECK(slab_epoch_set_budget(a, 1, 0, 0, NULL, NULL)); /* no limit any more */
    CHECK(slab_malloc_epoch(a, 400000, 1) != NULL);
    slab_allocator_free(a);
}

static void budget_function_makes_room(void) {
    SlabAllocator* a = slab_allocator_create();
    Told t = {0, 0, 0, slab_malloc_epoch(a, 600000, 1)};
    CHECK(slab_epoch_set_budget(a, 1, 0, 1000000, told, &t));
    CHECK(slab_malloc_epoch(a, 600000, 1) != NULL); /* the first goes, the second comes */
    CHECK_EQ(t.hard, 1);
    CHECK(t.victim == NULL);
    slab_allocator_free(a);
}

static void budget_of_a_label(void) {
    SlabAllocator* a = slab_allocator_create();
    Told t = {0, 0, 0, NULL};
    enum { HARD = 500000 };
    CHECK(!slab_label_set_budget(a, NULL, 0, 1, NULL, NULL) && !slab_label_set_budget(NULL, "x", 0, 1, NULL, NULL));
    CHECK(slab_label_set_budget(a, "GET /big", HARD / 2, HARD, told, &t));
    epoch_domain_t* d[3];
    unsigned n[3];
    for (unsigned i = 0; i < 3; i++) { /* three phases share it */
        d[i] = epoch_domain_create_labeled(a, "GET /big");
        n[i] = fill(a, d[i]->epoch_id, 5000);
        CHECK_EQ(errno, EDQUOT);
    }
    CHECK(n[0] != 0 && n[2] == 0);
    CHECK(t.soft == 1 && t.hard >= 3);
    const SlabLabelStats* r = row_of(a, "GET /big");
    REQUIRE(r != NULL);
    CHECK(r->committed_bytes <= HARD && r->peak_bytes <= HARD);
    CHECK(r->budget_refusals >= 3 && r->budget_warnings == 1);
    epoch_domain_destroy(d[0]);
    CHECK(fill(a, d[1]->epoch_id, 5000) != 0); /* room again */
    for (unsigned i = 1; i < 3; i++) epoch_domain_destroy(d[i]);
    slab_allocator_free(a);
}

static void limit_of_an_allocator(void) {
    SlabOptions o = {.struct_size = sizeof o, .max_bytes = 1 << 20};
    SlabAllocator* a = slab_allocator_create_with(&o);
    SlabGlobalStats g;
    for (EpochId id = 0; id < 3; id++) {
        (void)fill(a, id, 3000);
        CHECK_EQ(errno, EDQUOT);
        slab_stats_global(a, &g);
        CHECK(g.committed_bytes <= o.max_bytes);
    }
    CHECK(slab_malloc(a, 2 << 20) == NULL && errno == EDQUOT);
    CHECK(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
    CHECK(fill(a, 1, 3000) != 0);
    slab_allocator_free(a);
}

/* ---- beside running threads ---- */

static SlabAllocator* shared;
static _Atomic bool stop;

static void* phases(void* arg) {
    unsigned dice = (unsigned)(uintptr_t)arg;
    while (!atomic_load(&stop)) {
        dice = dice * 1664525u + 1013904223u;
        epoch_domain_t* d = epoch_domain_begin(shared, dice >> 31 ? "GET /a" : "GET /b");
        for (unsigned n = dice >> 24 & 63; n != 0; n--) {
            void* p = slab_malloc(shared, 1 + (dice >> 8) % 900);
            if (n % 2) slab_free(shared, p);
        }
        epoch_domain_end(d);
    }
    return NULL;
}

static void sums_never_go_back(void) {
    enum { THREADS = 3, LAPS = 300 };
    pthread_t t[THREADS];
    SlabLabelStats last = {.version = 0};
    shared = slab_allocator_create();
    atomic_store(&stop, false);
    for (uintptr_t i = 0; i < THREADS; i++) REQUIRE(pthread_create(&t[i], NULL, phases, (void*)(i + 1)) == 0);
    for (unsigned long n = 0; n < check_count(LAPS) || last.version == 0; n++) {
        const SlabLabelStats* r = row_of(shared, "GET /a");
        if (r == NULL) continue; /* none of the threads has run so far */
        CHECK_LE(last.phases_opened, r->phases_opened);
        CHECK_LE(last.phases_ended, r->phases_ended);
        CHECK_LE(last.objects_allocated, r->objects_allocated);
        CHECK_LE(last.bytes_allocated, r->bytes_allocated);
        CHECK_LE(last.objects_freed, r->objects_freed);
        CHECK_LE(last.objects_released, r->objects_released);
        CHECK_LE(last.slow_path_hits, r->slow_path_hits);
        CHECK_LE(r->phases_ended, r->phases_opened);
        CHECK_LE(r->live_objects, 64 * THREADS);
        CHECK_LE(r->objects_released, r->objects_allocated);
        last = *r;
    }
    atomic_store(&stop, true);
    for (unsigned i = 0; i < THREADS; i++) (void)pthread_join(t[i], NULL);
    const SlabLabelStats* r = row_of(shared, "GET /a");
    REQUIRE(r != NULL);
    CHECK_EQ(r->phases_opened, r->phases_ended);
    CHECK_EQ(r->objects_allocated, r->objects_freed + r->objects_released);
    CHECK_EQ(r->live_objects + r->committed_bytes, 0);
    slab_allocator_free(shared);
}

/* ---- phases that hold nothing ---- */

static void ignore_budget(SlabAllocator* of, EpochId id, uint64_t bytes, bool hard, void* ctx) {
    (void)of, (void)id, (void)bytes, (void)hard, (void)ctx;
}

/* Their records are used again soon: nothing of what was set in them may come back. */
static void nothing_comes_back(void) {
    enum { PHASES = 200 };
    SlabAllocator* a = slab_allocator_create();
    for (unsigned n = 0; n < PHASES; n++) {
        epoch_domain_t* d = epoch_domain_create_labeled(a, "kept");
        switch (n % 4) {
        case 0: slab_epoch_set_label(a, d->epoch_id, "changed"); break;
        case 1: slab_epoch_inc_refcount(a, d->epoch_id); break;
        case 2: CHECK(slab_epoch_set_budget(a, d->epoch_id, 4096, 8192, ignore_budget, NULL)); break;
        default: slab_free(a, slab_malloc_epoch(a, 100, d->epoch_id));
        }
        epoch_domain_enter(d);
        epoch_domain_exit(d);
        EpochReceipt r;
        REQUIRE(epoch_domain_receipt(d, &r));
        CHECK_STR(r.label, n % 4 == 0 ? "changed" : "kept");
        CHECK_EQ(r.objects_allocated, n % 4 == 3);
        epoch_domain_destroy(d);
    }
    for (unsigned n = 0; n < PHASES; n++) {
        epoch_domain_t* d = n % 2 ? epoch_domain_create(a) : epoch_domain_create_labeled(a, "fresh");
        SlabEpochStats s;
        slab_stats_epoch(a, 0, d->epoch_id, &s);
        CHECK_STR(s.label, n % 2 ? "" : "fresh");
        CHECK_EQ(slab_epoch_get_refcount(a, d->epoch_id), 0);
        void* p = slab_malloc_epoch(a, 200000, d->epoch_id);
        CHECK(p != NULL);
        slab_free(a, p);
        for (unsigned lap = 0; lap < 3; lap++) { /* the first has held something */
            slab_epoch_set_label(a, d->epoch_id, "changed"); /* the epoch's; the domain's own stays for the next one */
            CHECK(epoch_domain_reset(d));
            slab_stats_epoch(a, 0, d->epoch_id, &s);
            CHECK_STR(s.label, n % 2 ? "" : "fresh");
        }
        epoch_domain_destroy(d);
    }
    slab_allocator_free(a);
}

/* ---- samples ---- */

/* One in `period` slow paths, as the allocator counts these. */
static void check_share(uint64_t taken, uint64_t slow, uint64_t period) {
    CHECK_GE(20 * taken + 40, 19 * slow / period);
    CHECK_LE(19 * taken, 20 * slow / period + 40);
}

static void one_in_so_many(void) {
    SlabOptions o = {.struct_size = sizeof o, .sampling_period = 64};
    SlabAllocator* a = slab_allocator_create_with(&o);
    enum { OBJECTS = 200000 };
    ThreadStats before = slab_stats_thread();
    void* p[64] = {NULL};
    for (unsigned n = 0; n < OBJECTS; n++) {
        if (p[n % 64] != NULL) slab_free(a, p[n % 64]);
        p[n % 64] = slab_malloc(a, 64 + n % 7 * 100);
    }
    SlabSamplingStats s;
    slab_stats_sampling(a, &s);
    ThreadStats after = slab_stats_thread();
    CHECK_EQ(s.period, 64);
    CHECK_EQ(after.alloc_samples - before.alloc_samples, s.sum.alloc_samples);
    uint64_t taken = s.sum.alloc_samples + s.dropped;
    CHECK_GE(kit_global(a).total_slow_path_hits, OBJECTS / 100);
    check_share(taken, kit_global(a).total_slow_path_hits, 64);
    CHECK_LE(s.sum.alloc_wall_ns_max, s.sum.alloc_wall_ns_sum);
    CHECK_EQ(s.sum.repair_count, 0);
    uint64_t in_buckets = 0;
    for (int i = 0; i < SLAB_LATENCY_BUCKETS; i++) in_buckets += s.alloc_wall_ns[i];
    CHECK_EQ(in_buckets, s.sum.alloc_samples);
    slab_allocator_free(a);
    a = slab_allocator_create();
    CHECK(slab_malloc(a, 10) != NULL);
    slab_stats_sampling(a, &s);
    CHECK_EQ(s.period + s.version + s.sum.alloc_samples, 0);
    slab_allocator_free(a);
}

/* A phase of one object: every allocation is slow. */
static void one_in_so_many_phases(void) {
    SlabOptions o = {.struct_size = sizeof o, .sampling_period = 64};
    SlabAllocator* a = slab_allocator_create_with(&o);
    enum { PHASES = 20000 };
    for (unsigned n = 0; n < PHASES; n++) {
        epoch_domain_t* d = epoch_domain_create(a);
        epoch_domain_enter(d);
        CHECK(slab_malloc(a, 100) != NULL);
        epoch_domain_exit(d);
        epoch_domain_destroy(d);
    }
    SlabSamplingStats s;
    slab_stats_sampling(a, &s);
    uint64_t taken = s.sum.alloc_samples + s.dropped;
    check_share(taken, PHASES, 64);
    slab_allocator_free(a);
}

enum { MANY_OPEN = 32, OBJECTS_EACH = 45 };

static void* destroy_all(void* arg) {
    epoch_domain_t** d = arg;
    for (unsigned n = 0; n < MANY_OPEN; n++) epoch_domain_destroy(d[n]);
    return NULL;
}

/* In regions, of phases that end long before the next sample, by this thread or by another one; in turn in two that are
 * open, of which one is always looked for; then objects become small at once. */
static void one_in_so_many_of_regions(void) {
    enum { PERIOD = 16, ROUNDS = 400, SMALL = 200000 };
    SlabOptions o = {.struct_size = sizeof o, .sampling_period = PERIOD};
    SlabAllocator* a = slab_allocator_create_with(&o);
    SlabSamplingStats s;
    uint64_t dice = 88172645463325252u, slow = 0, objects = 0, before = 0;
    for (unsigned way = 0; way < 4; way++) {
        uint64_t slow_before = slow, objects_before = objects;
        for (unsigned round = 0; round < ROUNDS; round++) {
            epoch_domain_t* d[MANY_OPEN];
            pthread_t t;
            for (unsigned n = 0; n < MANY_OPEN; n++) {
                REQUIRE((d[n] = epoch_domain_create(a)) != NULL);
                epoch_domain_t* in[2] = {d[n], d[way == 2 ? n & ~1u : n]};
                for (unsigned k = 0; k < OBJECTS_EACH && way < 3; k++) {
                    dice = dice * 6364136223846793005u + 1442695040888963407u;
                    CHECK(slab_malloc_epoch(a, 1 + (size_t)(dice >> 33) % (n % 2 != 0 ? 2000 : 100), in[k % 2]->epoch_id) != NULL);
                }
                objects += way < 3 ? OBJECTS_EACH : 0;
            }
            for (unsigned k = 0; way == 3 && round == 0 && k < SMALL; k++, objects++)
                CHECK(slab_malloc_epoch(a, k % 32768 < 100 ? 4000 : 16, d[0]->epoch_id) != NULL);
            if (way == 1) CHECK(pthread_create(&t, NULL, destroy_all, d) == 0 && pthread_join(t, NULL) == 0);
            else (void)destroy_all(d);
        }
        slab_stats_sampling(a, &s);
        uint64_t taken = s.sum.alloc_samples + s.dropped - before;
        slow = kit_global(a).total_slow_path_hits;
        CHECK_GE(20 * taken + 40, 19 * (slow - slow_before) / PERIOD);
        CHECK_LE(19 * taken, 20 * (objects - objects_before) / PERIOD);
        before += taken;
    }
    slab_allocator_free(a);
}

/* Each sample counts under the label of the phase it was taken in: slow allocations, large ones, those that are
 * refused. */
static void samples_by_label(void) {
    SlabOptions o = {.struct_size = sizeof o, .sampling_period = 16};
    SlabAllocator* a = slab_allocator_create_with(&o);
    SlabSamplingStats s;
    uint64_t sums[4] = {0, 0, 0, 0};
    for (unsigned i = 0; i < 40; i++) { /* the same work, three phases of one label to one of the other */
        epoch_domain_t* d = epoch_domain_begin(a, i % 4 == 0 ? "a quarter" : "three");
        for (unsigned n = 0; n < 200; n++) CHECK(slab_malloc(a, 300000) != NULL);
        if (i == 39) CHECK_EQ(row_of(a, "three")->phases_open, 1); /* samples of open phases are there already */
        epoch_domain_end(d);
    }
    const SlabLabelStats *quarter = row_of(a, "a quarter"), *three = &rows[2];
    REQUIRE(quarter == &rows[1]);
    CHECK_STR(three->label, "three");
    CHECK(quarter->alloc_samples > 40 && three->alloc_samples > 2 * quarter->alloc_samples);
    CHECK_EQ(rows[0].alloc_samples, 0);
    for (unsigned n = 0; n < 40; n++) CHECK(slab_malloc_epoch(a, 400000, 3) != NULL);
    CHECK(row_of(a, "(unlabeled)")->alloc_samples != 0);
    slab_epoch_set_label(a, 3, "three");
    uint64_t before = row_of(a, "three")->alloc_samples;
    CHECK(slab_label_set_budget(a, "three", 0, 1, NULL, NULL));
    for (unsigned n = 0; n < 40; n++) CHECK(slab_malloc_epoch(a, 400000, 3) == NULL);
    CHECK(row_of(a, "three")->alloc_samples > before);
    slab_stats_sampling(a, &s);
    size_t labels = slab_stats_labels(a, rows, ROWS);
    for (size_t i = 0; i < labels; i++) {
        CHECK_EQ(rows[i].alloc_wall_ns_sum == 0, rows[i].alloc_samples == 0);
        sums[0] += rows[i].alloc_samples;
        sums[1] += rows[i].alloc_wall_ns_sum;
        sums[2] += rows[i].alloc_cpu_ns_sum;
        sums[3] += rows[i].alloc_wait_ns_sum;
    }
    CHECK_EQ(sums[0], s.sum.alloc_samples);
    CHECK_EQ(sums[1], s.sum.alloc_wall_ns_sum);
    CHECK_EQ(sums[2], s.sum.alloc_cpu_ns_sum);
    CHECK_EQ(sums[3], s.sum.alloc_wait_ns_sum);
    slab_allocator_free(a);
}

typedef struct Growing {
    SlabAllocator* a;
    EpochId id;
    _Atomic int done;
} Growing;

static void* grow(void* arg) {
    Growing* g = arg;
    for (unsigned n = 0; n < 3000; n++) CHECK(slab_malloc_epoch(g->a, 64, g->id) != NULL);
    atomic_store(&g->done, 1);
    return NULL;
}

/* What is handed out while a phase changes its label was not freed. */
static void relabelled_beside_allocations(void) {
    SlabAllocator* a = slab_allocator_create();
    uint64_t freed = 0, released = 0;
    for (size_t k = 0; k < check_count(400); k++) {
        epoch_domain_t* d = epoch_domain_create(a);
        REQUIRE(d != NULL);
        Growing g = {a, d->epoch_id, 0};
        pthread_t t;
        REQUIRE(pthread_create(&t, NULL, grow, &g) == 0);
        for (unsigned n = 0; atomic_load(&g.done) == 0; n++) slab_epoch_set_label(a, g.id, n % 2 == 0 ? "one" : "two");
        pthread_join(t, NULL);
        CHECK(epoch_close_ex(a, g.id, EPOCH_RELEASE, NULL));
        epoch_domain_destroy(d);
    }
    for (size_t i = 0, n = slab_stats_labels(a, rows, ROWS); i < n; i++) {
        freed += rows[i].objects_freed;
        released += rows[i].objects_released;
    }
    CHECK_EQ(freed, 0);
    CHECK_EQ(released, 3000 * check_count(400));
    slab_allocator_free(a);
}

/* Relabelled and closed while somebody reads: what a label has been told of is in no sum twice, and none falls below 0. */
static _Atomic unsigned reports, impossible;
static _Atomic int over;
static void* read_labels(void* a) {
    static SlabLabelStats mine[ROWS];
    while (!atomic_load(&over)) {
        for (size_t i = 0, n = slab_stats_labels(a, mine, ROWS); i < n && i < ROWS; i++)
            if (mine[i].objects_allocated >> 60 != 0 || mine[i].bytes_allocated >> 60 != 0 || mine[i].objects_freed >> 60 != 0)
                atomic_fetch_add(&impossible, 1);
        atomic_fetch_add(&reports, 1);
    }
    return NULL;
}
static void closed_beside_reports(void) {
    SlabAllocator* a = slab_allocator_create();
    pthread_t t;
    REQUIRE(pthread_create(&t, NULL, read_labels, a) == 0);
    for (size_t k = 0; k < check_count(60); k++) {
        epoch_domain_t* d = epoch_domain_begin(a, "accepting");
        REQUIRE(d != NULL);
        for (unsigned n = 0; n < 60000; n++) (void)slab_malloc(a, 64);
        char name[32];
        snprintf(name, sizeof name, "GET /%zu", k % 200);
        slab_epoch_set_label(a, d->epoch_id, name);
        unsigned was = atomic_load(&reports);
        while (atomic_load(&reports) == was) {} /* and the next one has begun */
        epoch_close(a, d->epoch_id);
        epoch_domain_end(d);
    }
    atomic_store(&over, 1);
    pthread_join(t, NULL);
    CHECK_EQ(atomic_load(&impossible), 0);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(closed_beside_reports),
    CHECK_CASE(relabelled_beside_allocations),
    CHECK_CASE(phases_of_two_labels), CHECK_CASE(escapes_and_relabelling),    CHECK_CASE(more_labels_than_room),
    CHECK_CASE(budget_of_an_epoch),   CHECK_CASE(budget_function_makes_room), CHECK_CASE(budget_of_a_label),
    CHECK_CASE(limit_of_an_allocator), CHECK_CASE(sums_never_go_back),        CHECK_CASE(one_in_so_many),
    CHECK_CASE(one_in_so_many_phases), CHECK_CASE(one_in_so_many_of_regions), CHECK_CASE(samples_by_label),  CHECK_CASE(nothing_comes_back),
};
CHECK_MAIN(cases)
