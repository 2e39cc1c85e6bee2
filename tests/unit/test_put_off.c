/*
 * test_put_off.c - drains of small phases: which pages without an object stay for a while, and what gives them back.
 *
 * Phases are of slabs of one size, 16 objects each, so that a slab with one object has three pages without. What goes is
 * counted in calls and bytes.
 */
#include "fake_os.h"
#include "kit/one.h"

#include "heap/partial.h"
#include "heap/put_off.h"

enum { SIZE = 1024, SLOTS = 16, PAGE = 4096, DEAD = 3 * PAGE, SMALL = 2, LARGE = TSI_PUT_OFF_PHASE_BYTES / DEAD + 1 };

static void open_allocator(void) {
    SlabOptions o = kit_options();
    o.bump = TSI_BUMP_OFF;
    kit_open_with(o);
    if (tsi_os.page_bytes != PAGE) SKIP("pages are not of 4 KiB");
}

/* Drains a phase of so many slabs, in each of which one object lives on. */
static void drain(unsigned slabs, void** lives) {
    void* p[LARGE * SLOTS];
    epoch_domain_t* d = epoch_domain_create(a);
    REQUIRE(slabs <= LARGE);
    for (unsigned n = 0; n < slabs * SLOTS; n++) REQUIRE((p[n] = epoch_domain_malloc(d, SIZE)) != NULL);
    for (unsigned n = 0; n < slabs * SLOTS; n++) {
        if (n % SLOTS != 0) REQUIRE(slab_free_checked(a, p[n]));
        else kit_fill(lives[n / SLOTS] = p[n], SIZE, (uint8_t)n);
    }
    fake_os_clear();
    REQUIRE(epoch_domain_drain(d, NULL));
    epoch_domain_destroy(d);
}
static void end(unsigned slabs, void** lives) {
    for (unsigned n = 0; n < slabs; n++) {
        REQUIRE(kit_intact(lives[n], SIZE, (uint8_t)(n * SLOTS)));
        REQUIRE(slab_free_checked(a, lives[n]));
    }
}
static uint64_t gone(void) { return tsi_load_relaxed(&space->purge_bytes); }
static unsigned remembered(void) { return kit_binding(a)->put_off_count; }

/* What outlives each phase a little costs no call at all. */
static void what_is_freed_soon_costs_no_call(void) {
    void* lives[2][SMALL];
    drain(SMALL, lives[1]);
    REQUIRE_EQ(fake_os.calls[FAKE_PURGE], 0);
    for (unsigned n = 0; n < 100; n++) {
        drain(SMALL, lives[n % 2]);
        REQUIRE_EQ(fake_os.calls[FAKE_PURGE], 0);
        end(SMALL, lives[(n + 1) % 2]);
        REQUIRE_EQ(fake_os.calls[FAKE_PURGE], 0);
        kit_check(a);
    }
    end(SMALL, lives[1]);
}

/* Of what lives for long the pages go, those of the phase that was drained first before others. */
static void what_stays_goes_in_turn(void) {
    enum { N = 100 };
    static void* lives[N][SMALL];
    uint64_t before = gone();
    for (unsigned n = 0; n < N; n++) {
        drain(SMALL, lives[n]);
        uint64_t left = (uint64_t)(n + 1) * SMALL * DEAD - (gone() - before);
        REQUIRE_LE(left, TSI_PUT_OFF_BYTES);
        REQUIRE_GE(left, n < 5 ? (uint64_t)(n + 1) * SMALL * DEAD : 5u * SMALL * DEAD);
        kit_check(a);
    }
    for (unsigned n = 0; n < N; n++) end(SMALL, lives[n]);
}

static void large_phases_give_at_once(void) {
    void* lives[LARGE];
    uint64_t before = gone();
    drain(LARGE, lives);
    REQUIRE_EQ(gone() - before, (uint64_t)LARGE * DEAD);
    REQUIRE_EQ(remembered(), 0);
    end(LARGE, lives);
}

static void a_trim_gives(void) {
    void* lives[SMALL];
    uint64_t before = gone();
    drain(SMALL, lives);
    REQUIRE_EQ(gone(), before);
    REQUIRE_EQ(remembered(), 1);
    slab_trim(a);
    REQUIRE_GE(gone() - before, SMALL * DEAD);
    end(SMALL, lives);
}

/* Ends by id are moments that the program has chosen. */
static void a_close_gives_at_once(void) {
    void* p[SMALL * SLOTS];
    EpochId id = epoch_current(a);
    for (unsigned n = 0; n < SMALL * SLOTS; n++) REQUIRE((p[n] = slab_malloc_epoch(a, SIZE, id)) != NULL);
    for (unsigned n = 0; n < SMALL * SLOTS; n++)
        if (n % SLOTS != 0) REQUIRE(slab_free_checked(a, p[n]));
    uint64_t before = gone();
    REQUIRE(epoch_close_ex(a, id, EPOCH_DRAIN, NULL));
    REQUIRE_EQ(gone() - before, SMALL * DEAD);
    for (unsigned n = 0; n < SMALL; n++) REQUIRE(slab_free_checked(a, p[n * SLOTS]));
}

static void* left_behind[SMALL];
static void drain_here(void* unused) {
    (void)unused;
    drain(SMALL, left_behind);
}
static void a_thread_that_leaves_gives(void) {
    KitWorker w;
    uint64_t before = gone();
    kit_worker_start(&w);
    kit_worker_run(&w, drain_here, NULL);
    REQUIRE_EQ(gone(), before);
    kit_worker_stop(&w);
    REQUIRE_GE(gone() - before, SMALL * DEAD);
    end(SMALL, left_behind);
}

/* An entry whose phase has gone leads to no other phase that has its record. */
static void records_are_others_by_then(void) {
    void *lives[SMALL], *others[SMALL];
    for (unsigned n = 0; n < 3 * TSI_PUT_OFF_PHASES; n++) {
        drain(SMALL, lives);
        end(SMALL, lives);
    }
    REQUIRE_EQ(remembered(), TSI_PUT_OFF_BYTES / (SMALL * DEAD));
    drain(SMALL, others);
    uint64_t before = gone();
    tsi_put_off_no_more(kit_binding(a));
    REQUIRE_EQ(gone() - before, SMALL * DEAD); /* of the one that holds something */
    REQUIRE_EQ(remembered(), 0);
    end(SMALL, others);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, kit_close)
        TEST(what_is_freed_soon_costs_no_call),
        TEST(what_stays_goes_in_turn),
        TEST(large_phases_give_at_once),
        TEST(a_trim_gives),
        TEST(a_close_gives_at_once),
        TEST(a_thread_that_leaves_gives),
        TEST(records_are_others_by_then),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
