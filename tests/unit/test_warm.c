/*
 * test_warm.c - pages of no epoch: who may keep how many, and how they are used and given up again.
 *
 * Phases are of slabs of one class, all of one size; regions, whose sizes differ, are at the end.
 */
#include "fake_os.h"
#include "unit.h"

#include "heap/warm.h"
#include "mem/handle.h"
#include "mem/pool.h"

enum { SIZE = 1024, SLAB = 16384, BUDGET = 1 << 20, SLABS = 4 * BUDGET / SLAB };

static SlabAllocator* a;
static TsiArena* arena;

static int open_allocator(void** state) {
    (void)state;
    SlabOptions o = unit_options();
    o.warm_bytes = BUDGET;
    o.bump = 2;
    a = slab_allocator_create_with(&o);
    arena = tsi_arena(a);
    fake_os_clear();
    return a != NULL ? 0 : -1;
}
static int close_allocator(void** state) {
    (void)state;
    unit_check(a);
    slab_allocator_free(a);
    return 0;
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
        assert_true(tsi_load_relaxed(&b->warm.bytes) <= b->warm.quota);
        assert_true(b->ready_bytes <= tsi_load_relaxed(&b->warm.lent));
        assert_true(b->warm.quota + tsi_load_relaxed(&b->warm.lent) <= BUDGET / 2);
        sum += (int64_t)(b->warm.quota + tsi_load_relaxed(&b->warm.lent));
    }
    assert_int_equal(sum, BUDGET);
}

static void one_thread_keeps_half(void** state) {
    (void)state;
    unsigned slabs = SLABS;
    phase(&slabs);
    assert_int_equal(unit_committed(a), BUDGET / 2);
    assert_int_equal(tsi_load_relaxed(&unit_binding(a)->warm.bytes), BUDGET / 2);
    budget_is_whole();
    unit_check(a);
    phase(&slabs);
    assert_int_equal(unit_committed(a), BUDGET / 2);
    slab_thread_flush(a);
    assert_int_equal(unit_committed(a), 0);
    assert_int_equal(tsi_load_relaxed(&arena->space.stock.left), BUDGET);
}

/* Also the part of a grant in which nothing was kept. */
static void a_share_comes_back_whole(void** state) {
    (void)state;
    unsigned slabs = 1;
    phase(&slabs);
    assert_true(unit_binding(a)->warm.quota > SLAB);
    slab_thread_flush(a);
    assert_int_equal(tsi_load_relaxed(&arena->space.stock.left), BUDGET);
    budget_is_whole();
}

static void small_phases_never_reach_the_system(void** state) {
    (void)state;
    unsigned slabs = 4;
    phase(&slabs);
    fake_os_clear();
    for (unsigned n = 0; n < 200; n++) phase(&slabs);
    assert_int_equal(fake_os.calls[FAKE_PURGE], 0);
    assert_int_equal(fake_os.calls[FAKE_COMMIT], 0);
    PerfCounters c;
    get_perf_counters(a, 11, &c);
    assert_int_equal(c.empty_slab_recycled, 200 * 4);
    budget_is_whole();
}

/* More phases than fit, each of a slab: the oldest go to the system together, and what is kept stays within the budget. */
static void a_full_store_gives_back_in_bulk(void** state) {
    (void)state;
    enum { N = 512 };
    static epoch_domain_t* d[N];
    for (unsigned n = 0; n < N; n++) {
        assert_non_null(d[n] = epoch_domain_create(a));
        assert_non_null(epoch_domain_malloc(d[n], SIZE));
    }
    fake_os_clear();
    for (unsigned n = 0; n < N; n++) {
        epoch_domain_destroy(d[n]);
        budget_is_whole();
    }
    PerfCounters c;
    get_perf_counters(a, 11, &c);
    size_t kept = unit_committed(a) / SLAB;
    assert_true(kept <= BUDGET / 2 / SLAB && kept > BUDGET / 4 / SLAB);
    assert_int_equal(c.empty_slab_overflowed, N - kept);
    assert_true(fake_os.calls[FAKE_PURGE] * 3 < N - kept); /* four slabs each, and the words of chunks that fell empty */
    unit_check(a);
}

static void threads_share_the_budget(void** state) {
    (void)state;
    UnitWorker w[3];
    unsigned slabs = SLABS;
    for (unsigned i = 0; i < 3; i++) {
        unit_worker_start(&w[i]);
        unit_worker_run(&w[i], phase, &slabs);
        assert_int_equal(unit_committed(a), i == 0 ? BUDGET / 2 : BUDGET);
        budget_is_whole();
    }
    unit_worker_run(&w[0], flush, NULL);
    assert_int_equal(unit_committed(a), BUDGET / 2);
    unit_worker_run(&w[2], phase, &slabs); /* finds what the first has given up */
    assert_int_equal(unit_committed(a), BUDGET);
    budget_is_whole();
    unit_worker_stop(&w[2]); /* and gives it up as it leaves */
    assert_int_equal(unit_committed(a), BUDGET / 2);
    assert_int_equal(tsi_load_relaxed(&arena->space.stock.left), BUDGET / 2);
    slab_trim(a); /* an idle thread's pages are within reach */
    assert_int_equal(unit_committed(a), 0);
    assert_int_equal(tsi_load_relaxed(&arena->space.stock.left), BUDGET);
    budget_is_whole();
    unit_worker_stop(&w[0]);
    unit_worker_stop(&w[1]);
}

/* A store that is being emptied is passed by: nobody waits. */
static void a_busy_store_is_passed_by(void** state) {
    (void)state;
    unsigned slabs = 4;
    uint32_t id;
    phase(&slabs);
    TsiBinding* b = unit_binding(a);
    uint64_t kept = tsi_load_relaxed(&b->warm.bytes);
    assert_true(kept >= 4 * SLAB);
    tsi_store_relaxed(&b->warm.busy, 1);
    assert_false(tsi_warm_take(b, 12, &id));
    assert_false(tsi_warm_flush(b));
    assert_int_equal(tsi_warm_put(arena, b, 5, true), 5);
    assert_int_equal(tsi_warm_put(arena, NULL, 5, true), 5);
    phase(&slabs); /* from the pool and back to it */
    assert_int_equal(unit_committed(a), kept);
    tsi_store_relaxed(&b->warm.busy, 0);
    assert_true(tsi_warm_flush(b));
    assert_int_equal(unit_committed(a), 0);
}

/* Last in, first out, by class. */
static void taking_is_by_class(void** state) {
    (void)state;
    uint32_t ids[3], got;
    for (unsigned i = 0; i < 3; i++) assert_true(tsi_space_take(&arena->space, i == 1 ? 1 : 12, 0, &ids[i]));
    assert_non_null(slab_malloc(a, 64));
    TsiBinding* b = unit_binding(a);
    for (unsigned i = 0; i < 3; i++) {
        tsi_slab(&arena->space, ids[i])->next = 0;
        assert_int_equal(tsi_warm_put(arena, b, ids[i] + 1, true), 0);
        assert_int_equal(tsi_tag_state(tsi_load_relaxed(&tsi_slab(&arena->space, ids[i])->tag)), TSI_SLAB_WARM);
    }
    assert_false(tsi_warm_take(b, 5, &got));
    assert_true(tsi_warm_take(b, 12, &got));
    assert_int_equal(got, ids[2]);
    assert_true(tsi_warm_take(b, 12, &got));
    assert_int_equal(got, ids[0]);
    assert_false(tsi_warm_take(b, 12, &got));
    assert_true(tsi_warm_take(b, 1, &got));
    assert_int_equal(got, ids[1]);
    assert_int_equal(tsi_load_relaxed(&b->warm.bytes), 0);
    tsi_space_purge(&arena->space, ids, 3);
}

static void no_budget_keeps_nothing(void** state) {
    (void)state;
    SlabAllocator* was = a;
    unsigned slabs = 20;
    a = unit_create_cold();
    phase(&slabs);
    assert_int_equal(unit_committed(a), 0);
    unit_check(a);
    slab_allocator_free(a);
    a = was;
}

enum { PAGE_OBJECTS = 85, MANY = 1100 };

/* Slabs of a class in the calling thread's store. */
static uint32_t stored(unsigned cls, uint32_t* oldest) {
    uint32_t n = 0;
    for (uint32_t at = unit_binding(a)->warm.head[cls]; at != 0; at = tsi_slab(&arena->space, at - 1)->next, n++) *oldest = at;
    return n;
}

/* A full store gives some slabs up for what comes, without a walk to the end of a long list; none gets lost. */
static void a_long_list_is_cut_within_reach(void** state) {
    (void)state;
    SlabAllocator* was = a;
    SlabOptions o = unit_options();
    uint32_t oldest = 0, still = 0;
    o.warm_bytes = 2 * 1024 * tsi_os.page_bytes;
    o.bump = 2;
    assert_non_null(a = slab_allocator_create_with(&o));
    arena = tsi_arena(a);
    epoch_domain_t* small[4];
    for (unsigned n = 0; n < 4; n++) {
        small[n] = epoch_domain_create(a);
        assert_non_null(epoch_domain_malloc(small[n], SIZE));
    }
    epoch_domain_t* big = epoch_domain_create(a);
    for (unsigned n = 0; n < MANY * PAGE_OBJECTS; n++) assert_non_null(epoch_domain_malloc(big, 48));
    epoch_domain_destroy(big);
    unsigned cls = tsi_class_of(48);
    uint32_t had = stored(cls, &oldest);
    assert_true(had > 1000);
    for (unsigned n = 0; n < 4; n++) epoch_domain_destroy(small[n]);
    assert_int_equal(stored(tsi_class_of(SIZE), &still), 4);
    assert_int_equal(stored(cls, &still), had - 16);
    assert_int_equal(still, oldest);
    assert_int_equal(unit_committed(a), tsi_load_relaxed(&unit_binding(a)->warm.bytes));
    slab_thread_flush(a);
    assert_int_equal(unit_committed(a), 0);
    unit_check(a);
    slab_allocator_free(a);
    a = was;
    arena = tsi_arena(a);
}

/* Regions that a phase leaves serve the next one, and a full store of them is within the budget as any. */
static void regions_stay_warm(void** state) {
    (void)state;
    SlabAllocator* was = a;
    SlabOptions o = unit_options();
    unsigned slabs = SLABS, few = 4;
    o.warm_bytes = BUDGET;
    assert_non_null(a = slab_allocator_create_with(&o));
    arena = tsi_arena(a);
    phase(&few);
    phase(&few); /* the first region is now as large as the phase */
    fake_os_clear();
    PerfCounters was_here, c;
    get_perf_counters(a, TSI_CLASS_REGION - 1, &was_here);
    for (unsigned n = 0; n < 200; n++) phase(&few);
    assert_int_equal(fake_os.calls[FAKE_PURGE], 0);
    assert_int_equal(fake_os.calls[FAKE_COMMIT], 0);
    get_perf_counters(a, TSI_CLASS_REGION - 1, &c);
    assert_int_equal(c.empty_slab_recycled - was_here.empty_slab_recycled, 200);
    budget_is_whole();
    phase(&slabs);
    assert_in_range(unit_committed(a), BUDGET / 4, BUDGET / 2);
    assert_int_equal(unit_committed(a), tsi_load_relaxed(&unit_binding(a)->warm.bytes) + unit_binding(a)->ready_bytes);
    budget_is_whole();
    unit_check(a);
    slab_thread_flush(a);
    assert_int_equal(unit_committed(a), 0);
    assert_int_equal(tsi_load_relaxed(&arena->space.stock.left), BUDGET);
    slab_allocator_free(a);
    a = was;
    arena = tsi_arena(a);
}

/* A slab whose handles have run out goes to nobody: there is no reason to make room for it. */
static void a_spent_slab_displaces_nothing(void** state) {
    (void)state;
    unsigned slabs = 4;
    phase(&slabs);
    uint64_t kept = tsi_load_relaxed(&unit_binding(a)->warm.bytes);
    epoch_domain_t* d = epoch_domain_create(a);
    void* p = epoch_domain_malloc(d, SIZE);
    tsi_store_relaxed(&tsi_slab(&arena->space, unit_place(a, p).slab_id)->gen_base, TSI_GEN_LIMIT);
    epoch_domain_destroy(d);
    assert_int_equal(tsi_load_relaxed(&unit_binding(a)->warm.bytes), kept - SLAB);
    assert_int_equal(tsi_load_relaxed(&arena->retired_slabs), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_allocator, close_allocator)
        TEST(one_thread_keeps_half),    TEST(small_phases_never_reach_the_system),
        TEST(a_share_comes_back_whole),
        TEST(a_full_store_gives_back_in_bulk),
        TEST(threads_share_the_budget), TEST(a_busy_store_is_passed_by),
        TEST(taking_is_by_class),       TEST(no_budget_keeps_nothing),
        TEST(a_long_list_is_cut_within_reach), TEST(a_spent_slab_displaces_nothing),
        TEST(regions_stay_warm),
    };
    fake_os_install(0, false, false);
    return cmocka_run_group_tests_name("warm", tests, NULL, NULL);
}
