/*
 * test_stock.c - warm memory that learns: how the budget rises and falls, who may take what is kept, and when it goes.
 *
 * The clock is the test's. Phases without regions are of slabs of one size, so that bytes can be told.
 */
#include "fake_os.h"
#include "kit/one.h"

#include "heap/warm.h"
#include "mem/stock.h"

#include <semaphore.h>

#define MIB ((uint64_t)1 << 20)
#define MS ((uint64_t)1000000)
enum { SIZE = 1024, SLAB = 16384, START = 1 << 20 };

static uint64_t clock_ns;

static uint64_t told_time(void) { return clock_ns; }

static void open_with(SlabOptions o) {
    tsi_os.coarse_ns = told_time;
    clock_ns = 1000 * MS;
    kit_open_with(o);
    fake_os_clear();
}

static SlabOptions by_class(void) {
    SlabOptions o = kit_options();
    o.bump = TSI_BUMP_OFF;
    return o;
}

static void open_allocator(void) { open_with(by_class()); }

static uint64_t budget(void) { return tsi_load_relaxed(&space->stock.budget); }
static uint64_t stock(void) { return tsi_load_relaxed(&space->stock.bytes); }
static uint64_t regretted(void) { return tsi_load_relaxed(&space->stock.regretted); }
static SlabGlobalStats stats(void) {
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    return g;
}

/* A phase that holds so many bytes in objects of a size. */
static epoch_domain_t* begin(uint64_t bytes, size_t size) {
    epoch_domain_t* d = epoch_domain_create(a);
    REQUIRE(d != NULL);
    for (uint64_t n = 0; n < bytes / size; n++) {
        void* p = epoch_domain_malloc(d, size);
        REQUIRE(p != NULL);
        memset(p, 0xd1, size);
    }
    return d;
}
static void phase(uint64_t bytes) { epoch_domain_destroy(begin(bytes, SIZE)); }

/* ---- the budget ---- */

static void what_was_given_back_in_vain_raises_it(void) {
    phase(7 * MIB);
    REQUIRE_EQ(budget(), START);
    REQUIRE_EQ(kit_committed_now(a), START);
    REQUIRE_EQ(stats().warm_bytes, START);
    clock_ns += 20 * MS;
    phase(7 * MIB); /* six MiB of it come from the system again */
    REQUIRE_EQ(regretted(), 6 * MIB);
    REQUIRE_EQ(budget(), 2 * MIB);
    kit_check(a);
    for (unsigned n = 0; n < 100 && budget() < 7 * MIB; n++) phase(7 * MIB);
    uint64_t learned = budget(), regrets = regretted();
    fake_os_clear();
    for (unsigned n = 0; n < 20; n++) {
        clock_ns += 20 * MS;
        phase(7 * MIB);
    }
    REQUIRE_EQ(fake_os.calls[FAKE_PURGE], 0);
    SlabGlobalStats g = stats();
    REQUIRE_BETWEEN(learned, 7 * MIB, 7 * MIB + SLAB);
    REQUIRE_EQ(g.warm_budget_bytes, learned);
    REQUIRE_EQ(g.warm_bytes, 7 * MIB);
    REQUIRE_EQ(g.committed_bytes, 7 * MIB);
    REQUIRE_EQ(g.warm_stock_bytes, 7 * MIB - START / 2); /* half of the start is the thread's own */
    REQUIRE_EQ(g.warm_regretted_bytes, regrets);
}

/* Until no more is given back in vain within the time than three times what is kept: of two phases each has two fifths of its bytes kept. */
static void it_rises_to_a_balance(void) {
    for (unsigned n = 0; n < 40; n++) {
        clock_ns += 60 * MS;
        phase(6 * MIB);
    }
    REQUIRE_BETWEEN(budget(), 12 * MIB / 5 - SLAB, 4 * MIB); /* more at first, when little was kept */
}

/* Large objects that are freed one by one: all that is given back in vain is worth keeping, not a part of it. */
static void for_large_objects_it_rises_to_all(void) {
    for (unsigned n = 0; n < 10; n++) {
        clock_ns += 60 * MS;
        slab_free(a, slab_malloc(a, 6 * MIB));
    }
    REQUIRE_EQ(budget(), 6 * MIB);
    fake_os_clear();
    for (unsigned n = 0; n < 10; n++) {
        clock_ns += 60 * MS;
        slab_free(a, slab_malloc(a, 6 * MIB));
    }
    REQUIRE_EQ(fake_os.calls[FAKE_PURGE], 0);
}

/* However little of it falls together: on a busy machine a program gets little done within the time. */
static void for_large_objects_it_rises_step_by_step(void) {
    enum { COUNT = 8 };
    void* p[COUNT];
    for (unsigned i = 0; i < COUNT; i++) p[i] = slab_malloc(a, MIB);
    for (unsigned n = 2; n <= COUNT; n++) {
        for (unsigned i = 0; i < n; i++) slab_free(a, p[i]);
        REQUIRE_EQ(stock(), (n - 1) * MIB);
        clock_ns += 60 * MS;
        for (unsigned i = 0; i < n; i++) p[i] = slab_malloc(a, MIB);
        REQUIRE_EQ(budget(), n * MIB);
        clock_ns += 60 * MS;
    }
    REQUIRE_EQ(regretted(), (COUNT - 1) * MIB);
}

/* Bytes that grow for the first time were never given back, and those of long ago were not in vain. */
static void nothing_else_does(void) {
    phase(4 * MIB);
    clock_ns += 150 * MS;
    phase(4 * MIB);
    REQUIRE_EQ(regretted(), 0);
    clock_ns += 150 * MS;
    phase(16 * MIB);
    REQUIRE_EQ(regretted(), 0);
    clock_ns += 150 * MS;
    slab_trim(a); /* as was asked for */
    phase(MIB);
    slab_thread_flush(a);
    phase(MIB);
    REQUIRE_EQ(regretted(), 0);
    REQUIRE_EQ(budget(), START);
}

static void it_has_a_limit(void) {
    slab_allocator_free(a);
    SlabOptions o = by_class();
    o.warm_limit_bytes = 3 * MIB;
    open_with(o);
    for (unsigned n = 0; n < 20; n++) phase(8 * MIB);
    REQUIRE_EQ(budget(), 3 * MIB);
    REQUIRE_EQ(kit_committed_now(a), 3 * MIB);
}

static void learn(uint64_t bytes) {
    for (unsigned n = 0; n < 100 && budget() < bytes; n++) phase(bytes);
    REQUIRE_BETWEEN(budget(), bytes,
                    bytes + MIB); /* more by what regions are rounded to, and the stores of other threads */
    REQUIRE_BETWEEN(kit_committed_now(a), bytes - MIB / 2, budget());
}

/* For each second, not for each look; at calls of any kind. */
static void it_halves_for_each_second_unused(void) {
    learn(32 * MIB);
    uint64_t most = budget();
    clock_ns += 900 * MS;
    (void)stats();
    REQUIRE_EQ(budget(), most);
    for (unsigned n = 0; n < 100; n++) { /* looks in a row count once */
        clock_ns += 2 * MS;
        (void)stats();
    }
    REQUIRE_EQ(budget(), most / 2);
    REQUIRE_BETWEEN(kit_committed_now(a), 16 * MIB - SLAB, most / 2);
    kit_check(a);
    clock_ns += 2000 * MS; /* two passed, and nobody looked */
    phase(SLAB);
    REQUIRE_EQ(budget(), most / 8);
    REQUIRE_BETWEEN(kit_committed_now(a), 4 * MIB - START / 2 - SLAB, most / 8); /* the thread's store was idle */
    clock_ns += 1000 * MS;
    REQUIRE(slab_malloc(a, 100) != NULL); /* a slow path */
    REQUIRE_EQ(budget(), most / 16);
    clock_ns += 100000 * MS;
    (void)stats();
    REQUIRE_EQ(budget(), START);
    REQUIRE(stats().warm_bytes <= START);
    kit_check(a);
}

static void what_is_needed_each_second_stays(void) {
    learn(8 * MIB);
    uint64_t most = budget();
    for (unsigned n = 0; n < 20; n++) {
        clock_ns += 700 * MS;
        phase(5 * MIB); /* more than half */
    }
    REQUIRE_EQ(budget(), most);
    REQUIRE_EQ(kit_committed_now(a), 8 * MIB);
    for (unsigned n = 0; n < 4; n++) {
        clock_ns += 700 * MS;
        phase(2 * MIB); /* half of it would have done */
    }
    REQUIRE_EQ(budget(), most / 4);
}

static void a_fixed_budget_learns_nothing(void) {
    slab_allocator_free(a);
    SlabOptions o = by_class();
    o.warm_bytes = 2 * MIB;
    o.warm_limit_bytes = 32 * MIB;
    open_with(o);
    for (unsigned n = 0; n < 10; n++) phase(8 * MIB);
    SlabGlobalStats g = stats();
    REQUIRE_EQ(g.warm_budget_bytes, 2 * MIB);
    REQUIRE_EQ(g.warm_bytes, MIB); /* half to one thread */
    REQUIRE_EQ(g.warm_stock_bytes, 0);
    REQUIRE_EQ(g.warm_regretted_bytes, 0);
    clock_ns += 5000 * MS;
    REQUIRE_EQ(stats().warm_bytes, MIB);
}

/* ---- who takes it ---- */

static void any_class_takes_it(void) {
    static const size_t sizes[] = {16, 64, 200, 700, 3000, 9000, 40000, 100000, 200000};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        learn(8 * MIB);
        uint64_t kept = stock(), regrets = regretted();
        fake_os_clear();
        epoch_domain_t* d = begin(3 * MIB, sizes[i]); /* a chunk or two serve the class of what is in the store */
        REQUIRE(stock() <= kept - 2 * MIB);
        epoch_domain_destroy(d);
        kit_check(a);
        REQUIRE_EQ(regretted(), regrets);
        REQUIRE_EQ(fake_os.calls[FAKE_PURGE], 0);
        slab_trim(a); /* the thread's store holds chunks for its classes */
        clock_ns += 200 * MS;
        phase(8 * MIB);
    }
}

/* And regions of all sizes, and large objects; zeros are zero. */
static void regions_and_large_objects_take_it(void) {
    slab_allocator_free(a);
    open_with(kit_options());
    tsi_os.has_huge = false;
    learn(8 * MIB);
    fake_os_clear();
    for (unsigned n = 0; n < 4; n++) {
        uint64_t kept = stock();
        epoch_domain_t* d = epoch_domain_create(a);
        for (unsigned i = 0; i < 6; i++) {
            uint8_t* p = epoch_domain_malloc(d, 600000);
            REQUIRE(p != NULL);
            memset(p, 0xe1, 600000);
        }
        REQUIRE(stock() < kept - 3 * MIB);
        epoch_domain_destroy(d);
        kit_check(a);
        phase(4 * MIB);
        kit_check(a);
    }
    REQUIRE_EQ(fake_os.calls[FAKE_PURGE], 0);
    uint8_t* p = slab_calloc(a, 1, 3000000);
    REQUIRE(p != NULL);
    for (unsigned i = 0; i < 3000000; i++) REQUIRE_EQ(p[i], 0);
    slab_free(a, p);
    slab_trim(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
    p = slab_calloc(a, 1, 3000000); /* all went: nothing is to be cleared */
    fake_os_clear();
    slab_free(a, p);
    REQUIRE_EQ(fake_os.calls[FAKE_PURGE], 0); /* freed singly: kept under what the budget has learned */
}

static void make_phase(void* bytes) { phase(*(uint64_t*)bytes); }

static void any_thread_takes_it(void) {
    KitWorker w;
    uint64_t bytes = 6 * MIB;
    learn(8 * MIB);
    uint64_t regrets = regretted();
    fake_os_clear();
    kit_worker_start(&w);
    kit_worker_run(&w, make_phase, &bytes);
    REQUIRE_EQ(regretted(), regrets);
    REQUIRE_EQ(fake_os.calls[FAKE_PURGE], 0);
    kit_check(a);
    uint64_t was = kit_committed_now(a);
    REQUIRE_EQ(tsi_warm_bytes(tsi_arena(a)), START);
    kit_worker_stop(&w); /* what it had is nobody's now */
    REQUIRE_EQ(kit_committed_now(a), was);
    REQUIRE_EQ(tsi_warm_bytes(tsi_arena(a)), START / 2);
}

/* A store that nobody has used for a second is not kept for its thread. */
static void idle_stores_go_back(void) {
    KitWorker w;
    uint64_t bytes = START / 2;
    kit_worker_start(&w);
    kit_worker_run(&w, make_phase, &bytes);
    learn(8 * MIB);
    REQUIRE_EQ(tsi_warm_bytes(tsi_arena(a)), START);
    for (unsigned n = 0; n < 6; n++) {
        clock_ns += 500 * MS;
        phase(7 * MIB);
    }
    REQUIRE(budget() >= 8 * MIB);
    REQUIRE_EQ(tsi_warm_bytes(tsi_arena(a)), START / 2);
    kit_check(a);
    kit_worker_stop(&w);
}

/* ---- when it goes ---- */

static void trim_and_flush_empty_it(void) {
    learn(4 * MIB);
    slab_trim(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
    clock_ns += 200 * MS;
    phase(4 * MIB);
    REQUIRE_EQ(kit_committed_now(a), 4 * MIB);
    slab_thread_flush(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
    REQUIRE_EQ(stats().warm_bytes, 0);
}

/* By whatever call: the program has chosen the moment. */
static void a_close_by_id_returns_everything(void) {
    learn(4 * MIB);
    slab_trim(a);
    for (unsigned n = 0; n < 3; n++) {
        EpochId id = epoch_current(a);
        for (unsigned i = 0; i < 2 * MIB / SIZE; i++) REQUIRE(slab_malloc_epoch(a, SIZE, id) != NULL);
        REQUIRE(slab_malloc_epoch(a, 700000, id) != NULL);
        epoch_advance(a);
        if (n == 0) epoch_close_ex(a, id, EPOCH_RELEASE, NULL);
        else if (n == 1)
            REQUIRE(epoch_close_era(a, epoch_era(a, id), EPOCH_RELEASE, NULL));
        else {
            epoch_domain_t* d = begin(2 * MIB, SIZE);
            epoch_domain_exit(d); /* refused: never entered */
            REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, NULL));
            epoch_domain_destroy(d);
            epoch_close_ex(a, id, EPOCH_RELEASE, NULL);
        }
        REQUIRE_EQ(kit_committed_now(a), 0);
    }
}

/* What max_bytes has no room for beside the stock, it has when the stock goes; and the stock is in no phase's account. */
static void limits_are_what_they_were(void) {
    slab_allocator_free(a);
    SlabOptions o = by_class();
    o.max_bytes = 10 * MIB;
    open_with(o);
    learn(8 * MIB);
    epoch_domain_t* d = epoch_domain_create(a);
    REQUIRE(slab_epoch_set_budget(a, d->epoch_id, 0, MIB, NULL, NULL));
    unsigned n = 0;
    while (epoch_domain_malloc(d, SIZE) != NULL) n++;
    REQUIRE_EQ(n, MIB / SIZE);
    epoch_domain_destroy(d);
    REQUIRE(slab_malloc(a, 4 * MIB) != NULL); /* its addresses are not those of the stock */
    REQUIRE(kit_committed_now(a) <= 10 * MIB);
    kit_check(a);
    d = begin(6 * MIB - SLAB, SIZE);
    REQUIRE(kit_committed_now(a) <= 10 * MIB);
    epoch_domain_destroy(d);
    kit_check(a);
}

/* Between the bits and the system call the pages are nobody's: who allocates then gets others. */
static void* taken[64];
static void take_meanwhile(void* unused) {
    (void)unused;
    for (unsigned i = 0; i < 64; i++) {
        taken[i] = slab_malloc(a, 100000);
        if (taken[i] != NULL) memset(taken[i], 0x77, 100000);
    }
}

static void pages_on_their_way_are_not_taken(void) {
    learn(4 * MIB);
    for (unsigned n = 1; n < 4; n++) {
        phase(4 * MIB);
        fake_os_clear();
        fake_os_interrupt_call(FAKE_PURGE, take_meanwhile, NULL);
        (void)tsi_stock_give_back(space, n == 3 ? UINT64_MAX : n * MIB);
        REQUIRE(fake_os.calls[FAKE_PURGE] != 0);
        for (unsigned i = 0; i < 64; i++) {
            const uint8_t* p = taken[i];
            REQUIRE(p != NULL);
            REQUIRE_EQ(p[0] + p[50000] + p[99999], 3 * 0x77);
            slab_free(a, taken[i]);
        }
        kit_check(a);
    }
}

/* Pages that the system does not take back are no zeros. */
static void a_refused_purge_is_remembered(void) {
    learn(4 * MIB);
    fake_os_fail(FAKE_PURGE, 1, true);
    slab_trim(a);
    REQUIRE(fake_os_heal());
    uint8_t* p = slab_calloc(a, 1, 8 * MIB);
    REQUIRE(p != NULL);
    for (unsigned i = 0; i < 8 * MIB; i++) REQUIRE_EQ(p[i], 0);
    slab_free(a, p);
}

static int in_a_child(void) {
    char why[160];
    if (!tsi_check_allocator(a, why, sizeof why)) return 1;
    for (unsigned n = 0; n < 3; n++) phase(4 * MIB);
    uint8_t* p = slab_calloc(a, 1, 6 * MIB);
    for (unsigned i = 0; i < 6 * MIB; i++)
        if (p[i] != 0) return 2;
    slab_free(a, p);
    slab_trim(a);
    return !tsi_check_allocator(a, why, sizeof why) ? 3 : kit_committed_now(a) != 0 ? 4 : 0;
}

static void fork_meanwhile(void* status) {
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(300);
        _exit(in_a_child());
    }
    (void)waitpid(child, status, 0);
}

/* Also while a chunk is held, whose pages are still there in the child. */
static void a_child_goes_on(void) {
    int status = -1;
    learn(4 * MIB);
    fork_meanwhile(&status);
    REQUIRE_EQ(status, 0);
    kit_check(a);
    status = -1;
    fake_os_interrupt_call(FAKE_PURGE, fork_meanwhile, &status);
    (void)tsi_stock_give_back(space, UINT64_MAX);
    REQUIRE_EQ(status, 0);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, kit_close)
        TEST(what_was_given_back_in_vain_raises_it),
        TEST(it_rises_to_a_balance),
        TEST(for_large_objects_it_rises_to_all),
        TEST(for_large_objects_it_rises_step_by_step),
        TEST(nothing_else_does),
        TEST(it_has_a_limit),
        TEST(it_halves_for_each_second_unused),
        TEST(what_is_needed_each_second_stays),
        TEST(a_fixed_budget_learns_nothing),
        TEST(any_class_takes_it),
        TEST(regions_and_large_objects_take_it),
        TEST(any_thread_takes_it),
        TEST(idle_stores_go_back),
        TEST(trim_and_flush_empty_it),
        TEST(a_close_by_id_returns_everything),
        TEST(limits_are_what_they_were),
        TEST(pages_on_their_way_are_not_taken),
        TEST(a_refused_purge_is_remembered),
        TEST(a_child_goes_on),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
