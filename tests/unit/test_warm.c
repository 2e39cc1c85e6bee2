/*
 * test_warm.c - pages of no epoch: who may keep how many, and how they are used and given up again.
 *
 * Phases are of slabs of one class, all of one size; regions, whose sizes differ, are at the end.
 */
#include "fake_os.h"
#include "kit/one.h"

#include "heap/warm.h"
#include "mem/handle.h"
#include "mem/pool.h"

enum { SIZE = 1024, SLAB = 16384, BUDGET = 1 << 20, SLABS = 4 * BUDGET / SLAB };

static void open_allocator(void) {
    SlabOptions o = kit_options();
    o.warm_bytes = BUDGET;
    o.bump = 2;
    kit_open_with(o);
    fake_os_clear();
}

/* A phase of so many slabs, on the calling thread. */
static void phase(void* arg) {
    unsigned slabs = *(unsigned*)arg;
    epoch_domain_t* d = epoch_domain_create(a);
    for (unsigned n = 0; n < slabs * (SLAB / SIZE); n++) (void)epoch_domain_malloc(d, SIZE);
    epoch_domain_destroy(d);
}
static void flush(void* arg) {
    (void)arg;
    slab_thread_flush(a);
}

/* What is granted and what is not is the whole budget; what is kept is within the grant. */
static void budget_is_whole(void) {
    int64_t sum = tsi_load_relaxed(&arena->space.stock.left);
    for (uint32_t n = 0; n < tsi_table_used(&arena->bindings); n++) {
        TsiBinding* b = tsi_table_at(&arena->bindings, n);
        if (!tsi_load_relaxed(&b->in_use)) continue;
        REQUIRE(tsi_load_relaxed(&b->warm.bytes) <= b->warm.quota);
        REQUIRE(b->ready_bytes <= tsi_load_relaxed(&b->warm.lent));
        REQUIRE(b->warm.quota + tsi_load_relaxed(&b->warm.lent) <= BUDGET / 2);
        sum += (int64_t)(b->warm.quota + tsi_load_relaxed(&b->warm.lent));
    }
    REQUIRE_EQ(sum, BUDGET);
}

static void one_thread_keeps_half(void) {
    unsigned slabs = SLABS;
    phase(&slabs);
    REQUIRE_EQ(kit_committed_now(a), BUDGET / 2);
    REQUIRE_EQ(tsi_load_relaxed(&kit_binding(a)->warm.bytes), BUDGET / 2);
    budget_is_whole();
    kit_check(a);
    phase(&slabs);
    REQUIRE_EQ(kit_committed_now(a), BUDGET / 2);
    slab_thread_flush(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
    REQUIRE_EQ(tsi_load_relaxed(&arena->space.stock.left), BUDGET);
}

/* Also the part of a grant in which nothing was kept. */
static void a_share_comes_back_whole(void) {
    unsigned slabs = 1;
    phase(&slabs);
    REQUIRE(kit_binding(a)->warm.quota > SLAB);
    slab_thread_flush(a);
    REQUIRE_EQ(tsi_load_relaxed(&arena->space.stock.left), BUDGET);
    budget_is_whole();
}

static void small_phases_never_reach_the_system(void) {
    unsigned slabs = 4;
    phase(&slabs);
    fake_os_clear();
    for (unsigned n = 0; n < 200; n++) phase(&slabs);
    REQUIRE_EQ(fake_os.calls[FAKE_PURGE], 0);
    REQUIRE_EQ(fake_os.calls[FAKE_COMMIT], 0);
    PerfCounters c;
    get_perf_counters(a, 11, &c);
    REQUIRE_EQ(c.empty_slab_recycled, 200 * 4);
    budget_is_whole();
}

/* More phases than fit, each of a slab: the oldest go to the system together, and what is kept stays within the budget. */
static void a_full_store_gives_back_in_bulk(void) {
    enum { N = 512 };
    static epoch_domain_t* d[N];
    for (unsigned n = 0; n < N; n++) {
        REQUIRE((d[n] = epoch_domain_create(a)) != NULL);
        REQUIRE(epoch_domain_malloc(d[n], SIZE) != NULL);
    }
    fake_os_clear();
    for (unsigned n = 0; n < N; n++) {
        epoch_domain_destroy(d[n]);
        budget_is_whole();
    }
    PerfCounters c;
    get_perf_counters(a, 11, &c);
    size_t kept = kit_committed_now(a) / SLAB;
    REQUIRE(kept <= BUDGET / 2 / SLAB && kept > BUDGET / 4 / SLAB);
    REQUIRE_EQ(c.empty_slab_overflowed, N - kept);
    REQUIRE(fake_os.calls[FAKE_PURGE] * 3 < N - kept); /* four slabs each, and the words of chunks that fell empty */
    kit_check(a);
}

static void threads_share_the_budget(void) {
    KitWorker w[3];
    unsigned slabs = SLABS;
    for (unsigned i = 0; i < 3; i++) {
        kit_worker_start(&w[i]);
        kit_worker_run(&w[i], phase, &slabs);
        REQUIRE_EQ(kit_committed_now(a), i == 0 ? BUDGET / 2 : BUDGET);
        budget_is_whole();
    }
    kit_worker_run(&w[0], flush, NULL);
    REQUIRE_EQ(kit_committed_now(a), BUDGET / 2);
    kit_worker_run(&w[2], phase, &slabs); /* finds what the first has given up */
    REQUIRE_EQ(kit_committed_now(a), BUDGET);
    budget_is_whole();
    kit_worker_stop(&w[2]); /* and gives it up as it leaves */
    REQUIRE_EQ(kit_committed_now(a), BUDGET / 2);
    REQUIRE_EQ(tsi_load_relaxed(&arena->space.stock.left), BUDGET / 2);
    slab_trim(a); /* an idle thread's pages are within reach */
    REQUIRE_EQ(kit_committed_now(a), 0);
    REQUIRE_EQ(tsi_load_relaxed(&arena->space.stock.left), BUDGET);
    budget_is_whole();
    kit_worker_stop(&w[0]);
    kit_worker_stop(&w[1]);
}

/* A store that is being emptied is passed by: nobody waits. */
static void a_busy_store_is_passed_by(void) {
    unsigned slabs = 4;
    uint32_t id;
    phase(&slabs);
    TsiBinding* b = kit_binding(a);
    uint64_t kept = tsi_load_relaxed(&b->warm.bytes);
    REQUIRE(kept >= 4 * SLAB);
    tsi_store_relaxed(&b->warm.busy, 1);
    REQUIRE(!tsi_warm_take(b, 12, &id));
    REQUIRE(!tsi_warm_flush(b->arena, b));
    REQUIRE_EQ(tsi_warm_put(arena, b, 5, true), 5);
    REQUIRE_EQ(tsi_warm_put(arena, NULL, 5, true), 5);
    phase(&slabs); /* from the pool and back to it */
    REQUIRE_EQ(kit_committed_now(a), kept);
    tsi_store_relaxed(&b->warm.busy, 0);
    REQUIRE(tsi_warm_flush(b->arena, b));
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* Last in, first out, by class. */
static void taking_is_by_class(void) {
    uint32_t ids[3], got;
    for (unsigned i = 0; i < 3; i++) REQUIRE(tsi_space_take(&arena->space, i == 1 ? 1 : 12, 0, &ids[i]));
    REQUIRE(slab_malloc(a, 64) != NULL);
    TsiBinding* b = kit_binding(a);
    for (unsigned i = 0; i < 3; i++) {
        tsi_slab(&arena->space, ids[i])->next = 0;
        REQUIRE_EQ(tsi_warm_put(arena, b, ids[i] + 1, true), 0);
        REQUIRE_EQ(tsi_tag_state(tsi_load_relaxed(&tsi_slab(&arena->space, ids[i])->tag)), TSI_SLAB_WARM);
    }
    REQUIRE(!tsi_warm_take(b, 5, &got));
    REQUIRE(tsi_warm_take(b, 12, &got));
    REQUIRE_EQ(got, ids[2]);
    REQUIRE(tsi_warm_take(b, 12, &got));
    REQUIRE_EQ(got, ids[0]);
    REQUIRE(!tsi_warm_take(b, 12, &got));
    REQUIRE(tsi_warm_take(b, 1, &got));
    REQUIRE_EQ(got, ids[1]);
    REQUIRE_EQ(tsi_load_relaxed(&b->warm.bytes), 0);
    tsi_space_purge(&arena->space, ids, 3);
}

static void no_budget_keeps_nothing(void) {
    SlabAllocator* was = a;
    unsigned slabs = 20;
    a = kit_create_cold();
    phase(&slabs);
    REQUIRE_EQ(kit_committed_now(a), 0);
    kit_check(a);
    slab_allocator_free(a);
    a = was;
}

enum { PAGE_OBJECTS = 85, MANY = 1100 };

/* Slabs of a class in the calling thread's store. */
static uint32_t stored(unsigned cls, uint32_t* oldest) {
    uint32_t n = 0;
    for (uint32_t at = kit_binding(a)->warm.head[cls]; at != 0; at = tsi_slab(&arena->space, at - 1)->next, n++)
        *oldest = at;
    return n;
}

/* A full store gives some slabs up for what comes, without a walk to the end of a long list; none gets lost. */
static void a_long_list_is_cut_within_reach(void) {
    SlabAllocator* was = a;
    SlabOptions o = kit_options();
    uint32_t oldest = 0, still = 0;
    o.warm_bytes = 2 * 1024 * tsi_os.page_bytes;
    o.bump = 2;
    a = kit_create_with(&o);
    arena = tsi_arena(a);
    epoch_domain_t* small[4];
    for (unsigned n = 0; n < 4; n++) {
        small[n] = epoch_domain_create(a);
        REQUIRE(epoch_domain_malloc(small[n], SIZE) != NULL);
    }
    epoch_domain_t* big = epoch_domain_create(a);
    for (unsigned n = 0; n < MANY * PAGE_OBJECTS; n++) REQUIRE(epoch_domain_malloc(big, 48) != NULL);
    epoch_domain_destroy(big);
    unsigned cls = tsi_class_of(48);
    uint32_t had = stored(cls, &oldest);
    REQUIRE(had > 1000);
    for (unsigned n = 0; n < 4; n++) epoch_domain_destroy(small[n]);
    REQUIRE_EQ(stored(tsi_class_of(SIZE), &still), 4);
    REQUIRE_EQ(stored(cls, &still), had - 16);
    REQUIRE_EQ(still, oldest);
    REQUIRE_EQ(kit_committed_now(a), tsi_load_relaxed(&kit_binding(a)->warm.bytes));
    slab_thread_flush(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
    kit_check(a);
    slab_allocator_free(a);
    a = was;
    arena = tsi_arena(a);
}

/* Regions that a phase leaves serve the next one, and a full store of them is within the budget as any. */
static void regions_stay_warm(void) {
    SlabAllocator* was = a;
    SlabOptions o = kit_options();
    unsigned slabs = SLABS, few = 4;
    o.warm_bytes = BUDGET;
    a = kit_create_with(&o);
    arena = tsi_arena(a);
    phase(&few);
    phase(&few); /* the first region is now as large as the phase */
    fake_os_clear();
    PerfCounters was_here, c;
    get_perf_counters(a, TSI_CLASS_REGION - 1, &was_here);
    for (unsigned n = 0; n < 200; n++) phase(&few);
    REQUIRE_EQ(fake_os.calls[FAKE_PURGE], 0);
    REQUIRE_EQ(fake_os.calls[FAKE_COMMIT], 0);
    get_perf_counters(a, TSI_CLASS_REGION - 1, &c);
    REQUIRE_EQ(c.empty_slab_recycled - was_here.empty_slab_recycled, 200);
    budget_is_whole();
    phase(&slabs);
    REQUIRE_BETWEEN(kit_committed_now(a), BUDGET / 4, BUDGET / 2);
    REQUIRE_EQ(kit_committed_now(a), tsi_load_relaxed(&kit_binding(a)->warm.bytes) + kit_binding(a)->ready_bytes);
    budget_is_whole();
    kit_check(a);
    slab_thread_flush(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
    REQUIRE_EQ(tsi_load_relaxed(&arena->space.stock.left), BUDGET);
    slab_allocator_free(a);
    a = was;
    arena = tsi_arena(a);
}

/* A slab whose handles have run out goes to nobody: there is no reason to make room for it. */
static void a_spent_slab_displaces_nothing(void) {
    unsigned slabs = 4;
    phase(&slabs);
    uint64_t kept = tsi_load_relaxed(&kit_binding(a)->warm.bytes);
    epoch_domain_t* d = epoch_domain_create(a);
    void* p = epoch_domain_malloc(d, SIZE);
    tsi_store_relaxed(&tsi_slab(&arena->space, kit_place(a, p).slab_id)->gen_base, TSI_GEN_LIMIT);
    epoch_domain_destroy(d);
    REQUIRE_EQ(tsi_load_relaxed(&kit_binding(a)->warm.bytes), kept - SLAB);
    REQUIRE_EQ(tsi_load_relaxed(&arena->retired_slabs), 1);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, kit_close)
        TEST(one_thread_keeps_half),
        TEST(small_phases_never_reach_the_system),
        TEST(a_share_comes_back_whole),
        TEST(a_full_store_gives_back_in_bulk),
        TEST(threads_share_the_budget),
        TEST(a_busy_store_is_passed_by),
        TEST(taking_is_by_class),
        TEST(no_budget_keeps_nothing),
        TEST(a_long_list_is_cut_within_reach),
        TEST(a_spent_slab_displaces_nothing),
        TEST(regions_stay_warm),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
