/*
 * outside.c - who has made what outlives every phase, and who was refused: each by its label. What is refused is no slow
 * path.
 */
#include "kit/fixture.h"

enum { MOST_LABELS = 64 };

static SlabLabelStats row_of(SlabAllocator* a, const char* label) {
    static SlabLabelStats rows[MOST_LABELS];
    size_t n = slab_stats_labels(a, rows, MOST_LABELS);
    for (size_t k = 0; k < n; k++)
        if (strcmp(rows[k].label, label) == 0) return rows[k];
    REQUIRE_OR(false, "no label %s", label);
    return rows[0];
}

static uint64_t outside_in_all(SlabAllocator* a) {
    static SlabLabelStats rows[MOST_LABELS];
    uint64_t sum = 0;
    for (size_t n = slab_stats_labels(a, rows, MOST_LABELS); n != 0; n--) sum += rows[n - 1].outside_objects;
    return sum;
}

/* ---- made outside ---- */

static const size_t sizes[] = {1, 100, 1000, 5000, 70000, 300000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static uint64_t make_all(SlabAllocator* a) {
    uint64_t bytes = 0;
    for (size_t n = 0; n < SIZES; n++) {
        CHECK(slab_malloc_outside(a, sizes[n]) != NULL);
        bytes += sizes[n];
    }
    return bytes;
}

static void counted_by_the_label_of_the_scope(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* request = epoch_domain_begin(a, "request");
    uint64_t bytes = make_all(a);
    epoch_domain_t* inner = epoch_domain_begin(a, "inner");
    bytes += make_all(a);
    CHECK(epoch_domain_end(inner));
    CHECK(slab_malloc(a, 100) != NULL); /* inside */
    CHECK_EQ(row_of(a, "request").outside_objects, SIZES);
    CHECK_EQ(row_of(a, "request").open_objects, 1);
    CHECK(epoch_domain_end(request));
    CHECK_EQ(row_of(a, "request").outside_bytes + row_of(a, "inner").outside_bytes, bytes);
    CHECK_EQ(row_of(a, "inner").outside_objects, SIZES);
    CHECK_EQ(row_of(a, "(unlabeled)").outside_objects, 0);
    CHECK_EQ(row_of(a, "(unlabeled)").open_objects, 2 * SIZES); /* where they live */
    CHECK_EQ(row_of(a, "request").open_objects, 0);
    slab_allocator_free(a);
}

static void not_outside(void) {
    SlabOptions o = kit_options();
    o.max_bytes = 1 << 20;
    SlabAllocator* a = kit_create_with(&o);
    CHECK(slab_malloc_outside(a, 100) != NULL); /* of no scope */
    epoch_domain_t* d = epoch_domain_begin(a, "request");
    CHECK(slab_malloc(a, 100) != NULL);
    CHECK_NULL(slab_malloc_outside(a, 2 << 20)); /* refused */
    CHECK_NULL(slab_malloc_outside(a, 0));
    CHECK(epoch_domain_end(d));
    epoch_domain_t* ring = epoch_domain_wrap(a, epoch_current(a), false);
    CHECK(epoch_domain_enter(ring));
    CHECK(slab_malloc_outside(a, 100) != NULL); /* where the scope is, too */
    CHECK(epoch_domain_exit(ring));
    CHECK(epoch_domain_destroy(ring));
    CHECK_EQ(outside_in_all(a), 0);
    slab_allocator_free(a);
}

/* More labels than a thread has records for; and another allocator in between. */
static void of_many_labels(void) {
    enum { LABELS = 40, ROUNDS = 3 };
    SlabAllocator *a = kit_create(), *other = kit_create();
    char name[32];
    for (int round = 0; round < ROUNDS; round++) {
        for (int n = 0; n < LABELS; n++) {
            (void)snprintf(name, sizeof name, "route %d", n);
            epoch_domain_t* d = epoch_domain_begin(a, name);
            CHECK(slab_malloc(other, 10) != NULL);
            for (int k = 0; k <= n; k++) CHECK(slab_malloc_outside(a, 64) != NULL);
            CHECK(epoch_domain_end(d));
        }
        CHECK_EQ(outside_in_all(a), (round + 1) * LABELS * (LABELS + 1) / 2);
    }
    CHECK_EQ(row_of(a, "route 7").outside_objects, ROUNDS * 8);
    CHECK_EQ(row_of(a, "route 7").outside_bytes, ROUNDS * 8 * 64);
    CHECK_EQ(outside_in_all(other), 0);
    slab_allocator_free(a);
    slab_allocator_free(other);
}

static void* worker_main(void* a) {
    for (int n = 0; n < 1000; n++) {
        epoch_domain_t* d = epoch_domain_begin(a, n % 2 ? "odd" : "even");
        CHECK(slab_malloc_outside(a, 100) != NULL);
        CHECK(epoch_domain_end(d));
    }
    return NULL;
}

static void by_threads_that_have_gone(void) {
    SlabAllocator* a = kit_create();
    pthread_t threads[4];
    for (int n = 0; n < 4; n++) threads[n] = kit_thread(worker_main, a);
    uint64_t seen = 0;
    for (int n = 0; n < 100; n++) { /* never goes back, never more than there will be */
        uint64_t now = outside_in_all(a);
        CHECK_LE(seen, now);
        CHECK_LE(now, 4000);
        seen = now;
    }
    for (int n = 0; n < 4; n++) pthread_join(threads[n], NULL);
    CHECK_EQ(row_of(a, "odd").outside_objects, 2000);
    CHECK_EQ(row_of(a, "even").outside_bytes, 2000 * 100);
    slab_allocator_free(a);
}

/* ---- refused ---- */

/* Fills the domain with objects of a size until they are refused, and then some: none of these is a slow path. Returns
 * how many were refused. */
static uint64_t refuse(SlabAllocator* a, epoch_domain_t* d, size_t size, int error) {
    enum { MORE = 50 };
    for (int n = 0; n < 1000000 && epoch_domain_malloc(d, size) != NULL; n++) {}
    CHECK_EQ(errno, error);
    SlabGlobalStats before = kit_global(a);
    uint64_t hits = row_of(a, "greedy").slow_path_hits;
    for (int n = 0; n < MORE; n++) CHECK_NULL(epoch_domain_malloc(d, size));
    CHECK_EQ(kit_global(a).total_slow_path_hits, before.total_slow_path_hits);
    CHECK_EQ(kit_global(a).total_slow_cache_miss, before.total_slow_cache_miss);
    CHECK_EQ(row_of(a, "greedy").slow_path_hits, hits);
    return MORE + 1;
}

enum limit { BY_LABEL, BY_PHASE, BY_MAX_BYTES, BY_SPACE, LIMITS };

static void refusals_have_a_label_and_are_no_slow_paths(void) {
    static const size_t of[] = {100, 1000, 5000, 70000, 400000};
    for (size_t n = 0; n < LIMITS * sizeof of / sizeof *of; n++) {
        enum limit limit = (enum limit)(n % LIMITS);
        SlabOptions o = kit_options();
        if (limit == BY_MAX_BYTES) o.max_bytes = 2 << 20;
        if (limit == BY_SPACE) o.reserve_bytes = 16 << 20;
        SlabAllocator* a = kit_create_with(&o);
        epoch_domain_t* d = epoch_domain_create_labeled(a, "greedy");
        if (limit == BY_LABEL) CHECK(slab_label_set_budget(a, "greedy", 0, 2 << 20, NULL, NULL));
        if (limit == BY_PHASE) CHECK(slab_epoch_set_budget(a, d->epoch_id, 0, 2 << 20, NULL, NULL));
        uint64_t refused = refuse(a, d, of[n / LIMITS], limit == BY_SPACE ? ENOMEM : EDQUOT);
        CHECK_EQ(row_of(a, "greedy").budget_refusals, limit == BY_SPACE ? 0 : refused);
        CHECK_EQ(kit_refusals(a).over_budget, limit == BY_SPACE ? 0 : refused);
        CHECK_EQ(row_of(a, "(unlabeled)").budget_refusals, 0);
        CHECK_EQ(row_of(a, "greedy").limit_bytes, limit == BY_LABEL || limit == BY_PHASE ? 2 << 20 : 0);
        SlabGlobalStats g = kit_global(a);
        CHECK_STR(g.limit_name, limit == BY_MAX_BYTES ? "max_bytes" : "reserve_bytes");
        CHECK_EQ(g.limit_used_bytes, g.committed_bytes - g.warm_bytes);
        CHECK(epoch_domain_destroy(d));
        slab_allocator_free(a);
    }
}

/* More than there is room for at all, at once. */
static void larger_than_everything(void) {
    SlabOptions o = kit_options();
    o.max_bytes = 1 << 20;
    SlabAllocator* a = kit_create_with(&o);
    epoch_domain_t* d = epoch_domain_create_labeled(a, "greedy");
    CHECK_NULL(epoch_domain_malloc(d, (size_t)1 << 46));
    CHECK_EQ(errno, EDQUOT);
    CHECK_EQ(row_of(a, "greedy").budget_refusals, 1);
    CHECK(epoch_domain_destroy(d));
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(counted_by_the_label_of_the_scope),
    CHECK_CASE(not_outside),
    CHECK_CASE(of_many_labels),
    CHECK_CASE(by_threads_that_have_gone),
    CHECK_CASE(refusals_have_a_label_and_are_no_slow_paths),
    CHECK_CASE(larger_than_everything),
};
CHECK_MAIN(cases)
