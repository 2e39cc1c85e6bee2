/*
 * test_pieces.c - what a call does of somebody else's end, and memory that another thread has in its hands.
 *
 * Objects of 1024 bytes, 16 to a slab; a large heap has four times as many slabs as a piece.
 */
#define KIT_RING_BY_CLASS
#include "fake_os.h"
#include "kit/one.h"

#include "state/bracket.h"
#include "heap/finish.h"
#include "heap/partial.h"
#include "mem/pool.h"
#include "mem/rest.h"

#include <errno.h>

enum { SIZE = 1024, SLOTS = 16, SLAB = SLOTS * SIZE, PIECE = TSI_PIECE_BYTES / SLAB, SLABS = 4 * PIECE };

static KitWorker worker;
static void* held[SLABS * SLOTS];
static TsiBinding* its;
static TsiHeap* its_heap;

static void open_allocator(void) {
    kit_worker_start(&worker);
    kit_open_cold();
    fake_os_clear();
}
static void close_allocator(void) {
    kit_worker_stop(&worker);
    kit_close();
}

/* ---- a large heap of another thread ---- */

static void fill(void* unused) {
    (void)unused;
    kit_take(a, SIZE, held, SLABS * SLOTS);
    its = kit_binding(a);
    its_heap = its->heap;
}
static void enter_all(void* unused) {
    (void)unused;
    REQUIRE(tsi_bracket_enter(its, its_heap, tsi_busy_all(its_heap)));
}
static void leave_all(void* unused) {
    (void)unused;
    tsi_bracket_leave(its, its_heap);
}

static TsiInc* inc_of(EpochId id) {
    return tsi_inc(&arena->phases, tsi_ref_index(tsi_phases_resolve(&arena->phases, id)));
}
/* Slabs of a phase that no sweep has settled yet. */
static uint32_t unsettled(TsiInc* i) {
    uint32_t n = 0;
    tsi_lock_take(tsi_inc_lock(i));
    for (uint32_t at = i->heaps; at != 0; at = tsi_heap(arena, at - 1)->inc_next)
        n += tsi_load_relaxed(&tsi_heap(arena, at - 1)->slab_count);
    tsi_lock_give(tsi_inc_lock(i));
    return n;
}
/* Allocates until nothing is left to sweep. Each allocation takes a piece at most; returns how many did take some. */
static unsigned misses_until_swept(TsiInc* i) {
    unsigned sweeps = 0;
    uint32_t before = unsettled(i);
    for (unsigned n = 0; tsi_load_relaxed(&arena->has_unswept); n++) {
        REQUIRE(n < 4 * SLABS * SLOTS);
        REQUIRE(slab_malloc(a, SIZE) != NULL);
        uint32_t after = unsettled(i);
        REQUIRE(before - after <= PIECE);
        sweeps += after != before;
        before = after;
    }
    return sweeps;
}

static void a_late_free_sweeps_a_piece(void) {
    kit_worker_run(&worker, fill, NULL);
    TsiInc* i = inc_of(0);
    (void)epoch_advance_id(a);
    REQUIRE_EQ(unsettled(i), SLABS);
    for (unsigned n = 0; n < SLOTS; n++)
        REQUIRE(slab_free_checked(a, held[n])); /* of the slab taken first: it is last */
    REQUIRE_EQ(unsettled(i), SLABS - PIECE);
    kit_check(a);
    REQUIRE(misses_until_swept(i) >= SLABS / PIECE - 1);
    REQUIRE_EQ(unsettled(i), 0);
    REQUIRE_EQ(tsi_load_relaxed(&i->slab_count), SLABS - 1); /* what is empty has gone, the rest are orphans */
    EpochReceipt r = kit_end(a, 0, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_freed, SLOTS);
    REQUIRE_EQ(r.objects_released, SLABS * SLOTS - SLOTS);
}

/* What a late free has begun is finished by the next end or trim as well, whole. */
static void an_end_sweeps_what_is_left(void) {
    for (unsigned trims = 0; trims < 2; trims++) {
        EpochId id = epoch_current(a);
        kit_worker_run(&worker, fill, NULL);
        TsiInc* i = inc_of(id);
        (void)epoch_advance_id(a);
        for (unsigned n = 0; n < SLOTS; n++) REQUIRE(slab_free_checked(a, held[n]));
        REQUIRE_EQ(unsettled(i), SLABS - PIECE);
        if (trims) slab_trim(a);
        else epoch_close(a, epoch_current(a));
        REQUIRE_EQ(unsettled(i), 0);
        REQUIRE(!tsi_load_relaxed(&arena->has_unswept));
        (void)kit_end(a, id, EPOCH_RELEASE);
        (void)epoch_advance_id(a);
    }
}

static void free_a_slab(void* unused) {
    (void)unused;
    TsiInc* inc = inc_of(0);
    uint32_t before = unsettled(inc);
    uint64_t holds = inc->lock_fast + inc->lock_contended;
    for (unsigned n = 0; n < SLOTS; n++) REQUIRE(slab_free_checked(a, held[n]));
    REQUIRE_EQ(inc->lock_fast + inc->lock_contended, holds); /* the closer does that */
    REQUIRE_EQ(unsettled(inc), before);
}
static void* free_on_thread(void* unused) {
    free_a_slab(unused);
    return NULL;
}
static void free_meanwhile(void* unused) { kit_on_thread(free_on_thread, unused); }

/* A close has begun, its thread stands between its two holds of the stripe: a free leaves the sweep to it. */
static void a_closer_finishes_its_sweep(void) {
    kit_worker_run(&worker, fill, NULL);
    fake_os_interrupt(free_meanwhile, NULL);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, 0, EPOCH_DRAIN, &r));
    REQUIRE_EQ(r.slabs_returned, 1);
    REQUIRE_EQ(r.objects_freed, SLOTS);
    REQUIRE_EQ(kit_committed_now(a), (uint64_t)(SLABS - 1) * SLAB);
    (void)kit_end(a, 0, EPOCH_RELEASE);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* A late free stands between the two holds of the stripe as a close begins: the close takes what the free has revoked,
 * for the free stops after a piece. */
static atomic_bool close_waits, piece_is_over;
static pthread_t closing;
static EpochReceipt its_receipt;
static void wait_for_the_piece(void* unused) {
    (void)unused;
    atomic_store(&close_waits, true);
    while (!atomic_load(&piece_is_over)) kit_sleep_us(100);
}
static void* close_on_thread(void* unused) {
    (void)unused;
    fake_os_interrupt(wait_for_the_piece, NULL);
    REQUIRE(epoch_close_ex(a, 0, EPOCH_DRAIN, &its_receipt));
    return NULL;
}
static void close_meanwhile(void* unused) {
    closing = kit_thread(close_on_thread, unused);
    while (!atomic_load(&close_waits)) kit_sleep_us(100);
}
static void a_close_takes_over_from_a_piece(void) {
    kit_worker_run(&worker, fill, NULL);
    TsiInc* i = inc_of(0);
    (void)epoch_advance_id(a);
    fake_os_interrupt(close_meanwhile, NULL);
    for (unsigned n = 0; n < SLOTS; n++) REQUIRE(slab_free_checked(a, held[n]));
    atomic_store(&piece_is_over, true);
    pthread_join(closing, NULL);
    REQUIRE_EQ(unsettled(i), 0);
    REQUIRE_EQ(its_receipt.slabs_deferred, 0);
    REQUIRE_EQ(its_receipt.objects_allocated, SLABS * SLOTS);
    REQUIRE_EQ(its_receipt.objects_freed, SLOTS);
    REQUIRE_EQ(its_receipt.objects_escaped, SLABS * SLOTS - SLOTS);
    kit_check(a);
    (void)kit_end(a, 0, EPOCH_RELEASE);
}

/* The owner is inside of a call as its phase ends: it settles all that it had there as it leaves, so that nothing waits
 * for another call. */
static void an_owner_hands_all_over(void) {
    for (unsigned mode = 0; mode < 2; mode++) {
        EpochId id = epoch_current(a);
        kit_worker_run(&worker, fill, NULL);
        TsiInc* i = inc_of(id);
        kit_worker_run(&worker, enter_all, NULL);
        EpochReceipt r;
        REQUIRE(epoch_close_ex(a, id, mode == 0 ? EPOCH_DRAIN : EPOCH_RELEASE, &r));
        REQUIRE_EQ(r.slabs_deferred, SLABS);
        kit_worker_run(&worker, leave_all, NULL);
        REQUIRE_EQ(unsettled(i), 0);
        kit_check(a);
        REQUIRE_EQ(tsi_load_relaxed(&i->slab_count), mode == 0 ? SLABS : 0);
        r = kit_end(a, id, EPOCH_RELEASE);
        REQUIRE_EQ(r.objects_released, SLABS * SLOTS);
        (void)kit_end(a, epoch_current(a), EPOCH_RELEASE);
    }
}

/* The ring has taken the id from a phase that holds much: allocations sweep it in pieces. */
static void a_displaced_phase_goes_in_pieces(void) {
    kit_worker_run(&worker, fill, NULL);
    TsiInc* i = inc_of(0);
    for (EpochId id = 1; id != 0;) id = epoch_advance_id(a);
    REQUIRE(tsi_load_relaxed(&arena->has_unswept));
    REQUIRE_EQ(unsettled(i), SLABS);
    REQUIRE(misses_until_swept(i) >= SLABS / PIECE);
    REQUIRE_EQ(tsi_load_relaxed(&i->slab_count), SLABS);
    for (unsigned n = 0; n < SLABS * SLOTS; n++) REQUIRE(slab_free_checked(a, held[n]));
    REQUIRE_EQ(tsi_load_relaxed(&i->slab_count), 0);
    kit_check(a);
}

/* ---- pages of orphans ---- */

enum { SMALL = 128, PER_PAGE = 4096 / SMALL, PAGES = 4096 };

/* Late frees that leave page after page without an object: each has a bounded part of the phase looked at, and all but
 * an eighth of these pages go. */
static void late_frees_look_at_a_part(void) {
    static void* p[PAGES * PER_PAGE];
    if (tsi_os.page_bytes != 4096) SKIP("pages are not of 4 KiB");
    kit_take(a, SMALL, p, PAGES * PER_PAGE);
    TsiInc* i = inc_of(0);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, 0, EPOCH_DRAIN, &r));
    uint64_t slabs = r.bytes_escaped / (PER_PAGE * SMALL), most = 0, all = 0;
    REQUIRE_EQ(tsi_load_relaxed(&i->slab_count),
               PAGES * 4096 / tsi_slab_class(space, kit_place(a, p[0]).slab_id)->slab_bytes);
    fake_os_clear();
    for (unsigned n = 0; n < PAGES * PER_PAGE; n++) {
        if (((uintptr_t)p[n] & 4096) != 0) continue; /* the other page of each slab keeps its objects */
        uint64_t before = fake_os.calls[FAKE_PURGE];
        REQUIRE(slab_free_checked(a, p[n]));
        uint64_t calls = fake_os.calls[FAKE_PURGE] - before;
        if (calls > most) most = calls;
        all += calls;
    }
    REQUIRE(most <= TSI_LATE_LOOK_BYTES / 4096);
    REQUIRE(all >= slabs / 2 - slabs / 8 - TSI_LATE_LOOK_BYTES / 4096);
    (void)kit_end(a, 0, EPOCH_RELEASE);
}

/* ---- memory in another thread's hands ---- */

enum { LIMIT_SLABS = 64 };
static void* got;
static int why;

static void open_limited(void) {
    SlabOptions o = kit_options();
    o.warm_bytes = UINT64_MAX;
    o.max_bytes = LIMIT_SLABS * SLAB;
    kit_worker_start(&worker);
    kit_open_with(o);
    fake_os_clear();
}

static void* want(void* unused) {
    (void)unused;
    got = slab_malloc(a, SIZE);
    why = errno;
    return NULL;
}
static pthread_t wanting;
/* Everything is in the hands of the trim that this interrupts. */
static void want_meanwhile(void* unused) {
    uint32_t looks = tsi_load_relaxed(&arena->room_looks);
    REQUIRE_EQ(kit_committed_now(a), (uint64_t)LIMIT_SLABS * SLAB);
    wanting = kit_thread(want, unused);
    while (tsi_load_relaxed(&arena->room_looks) == looks) kit_sleep_us(100); /* it has found no room */
}
static void want_and_wait(void* unused) {
    kit_on_thread(want, unused);
    REQUIRE_NULL(got);
    REQUIRE_EQ(why, EDQUOT);
    kit_on_thread(want, unused); /* nothing has moved since: not waited for once more */
    REQUIRE_NULL(got);
}

static void fill_and_free(void) {
    kit_take(a, SIZE, held, LIMIT_SLABS * SLOTS);
    REQUIRE_NULL(slab_malloc(a, SIZE));
    REQUIRE_EQ(errno, EDQUOT);
    for (unsigned n = 0; n < LIMIT_SLABS * SLOTS; n++) REQUIRE(slab_free_checked(a, held[n]));
}

static void a_request_waits_for_what_goes_back(void) {
    fill_and_free();
    fake_os_interrupt_call(FAKE_PURGE, want_meanwhile, NULL);
    slab_trim(a);
    pthread_join(wanting, NULL);
    REQUIRE(got != NULL);
}

/* A region that nobody could use has been woken, and its pages are on their way. */
static void a_request_waits_for_what_has_rested(void) {
    unsigned cls = TSI_CLASS_REGION;
    uint32_t id;
    while (space->classes->c[cls].slab_bytes != SLAB) cls = kit_class_after(cls);
    kit_take(a, SIZE, held, (LIMIT_SLABS - 1) * SLOTS);
    REQUIRE(tsi_space_take(space, cls, 0, &id) != TSI_TAKEN_NOT);
    tsi_rest(space, id);
    fake_os_interrupt_call(FAKE_PURGE, want_meanwhile, NULL);
    tsi_rest_poll(space);
    pthread_join(wanting, NULL);
    REQUIRE(got != NULL);
}

static void a_request_does_not_wait_for_ever(void) {
    fill_and_free();
    fake_os_interrupt_call(FAKE_PURGE, want_and_wait, NULL);
    slab_trim(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
    kit_on_thread(want, NULL);
    REQUIRE(got != NULL);
}

/* A thread inside of a call has the only memory that could go. */
static void want_until_it_leaves(void* unused) {
    uint32_t looks = tsi_load_relaxed(&arena->room_looks);
    wanting = kit_thread(want, unused);
    while (tsi_load_relaxed(&arena->room_looks) == looks) kit_sleep_us(100);
    kit_worker_run(&worker, leave_all, NULL);
    pthread_join(wanting, NULL);
    REQUIRE(got != NULL);
}
static void fill_to_the_limit(void* unused) {
    (void)unused;
    kit_take(a, SIZE, held, LIMIT_SLABS * SLOTS);
    its = kit_binding(a);
    its_heap = its->heap;
}
static void a_request_waits_for_who_is_inside(void) {
    kit_worker_run(&worker, fill_to_the_limit, NULL);
    for (unsigned n = 0; n < LIMIT_SLABS * SLOTS; n++) REQUIRE(slab_free_checked(a, held[n]));
    kit_worker_run(&worker, enter_all, NULL);
    want_until_it_leaves(NULL);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, close_allocator)
#define LIMITED(name) CHECK_CASE_WITH(name, open_limited, close_allocator)
        TEST(a_late_free_sweeps_a_piece),
        TEST(an_end_sweeps_what_is_left),
        TEST(a_closer_finishes_its_sweep),
        TEST(a_close_takes_over_from_a_piece),
        TEST(an_owner_hands_all_over),
        TEST(a_displaced_phase_goes_in_pieces),
        TEST(late_frees_look_at_a_part),
        LIMITED(a_request_waits_for_what_goes_back),
        LIMITED(a_request_waits_for_what_has_rested),
        LIMITED(a_request_does_not_wait_for_ever),
        LIMITED(a_request_waits_for_who_is_inside),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
