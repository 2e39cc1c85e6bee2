/*
 * test_ended_steps.c - by which cause a handle or pointer of an ended phase is refused, at each instruction of the end.
 *
 * The processor traps after each instruction between kit_steps_begin and kit_steps_end. In one half an end is stepped, and the handler asks
 * about what the phase held: alive or ended, and never made up, interior or another allocator's. In the other half a free is
 * stepped, and at one instruction after the other (kit_stride) the phase ends beside it and the next one begins in the same
 * memory.
 */
#include "kit/one.h"
#include "kit/step.h"

#include "heap/free.h"
#include "state/names.h"

enum { SIZE = 64, OBJECTS = 8, LARGE = 400000, LATE_GEN = 1 << 21 };

static void open_with(unsigned bump) {
    SlabOptions o = kit_options();
    o.bump = (uint8_t)bump;
    kit_open_with(o);
}
static void open_bumped(void) { open_with(0); }
static void open_classes(void) { open_with(TSI_BUMP_OFF); }
static void open_cold(void) { kit_open_cold(); }

/* ---- an end, instruction by instruction ---- */

static SlabHandle handles[OBJECTS];
static void* pointers[OBJECTS];
static unsigned held;
static volatile uint64_t asked, alive, made_up, other_causes;

static void ask(int sig) {
    (void)sig;
    TsiArena* arena = tsi_arena(a);
    for (unsigned n = 0; n < held; n++) {
        TsiPlace at;
        uint64_t tag, word;
        int what = tsi_handle_decode(arena, handles[n], &at, &tag, &word);
        made_up += what != TSI_FREE_OK && what != SLAB_MISUSE_STALE_HANDLE;
        alive += what == TSI_FREE_OK;
        TsiPlaceResult where = tsi_space_locate(&arena->space, pointers[n], &at);
        what = where == TSI_PLACE_OK ? tsi_place_check(arena, &at, &tag) : (int)tsi_misuse_of(arena, where, &at);
        other_causes += what != TSI_FREE_OK && what != SLAB_MISUSE_STALE_FREE && what != SLAB_MISUSE_DOUBLE_FREE;
    }
    asked++;
}

static void make(size_t size, unsigned n) {
    held = n;
    asked = alive = made_up = other_causes = 0;
    for (unsigned i = 0; i < n; i++) REQUIRE((pointers[i] = alloc_obj(a, (uint32_t)size, &handles[i])) != NULL);
}
static void was_asked(void) {
    ask(0);
    REQUIRE_EQ(made_up, 0);
    REQUIRE_EQ(other_causes, 0);
    for (unsigned n = 0; n < held; n++) REQUIRE(!free_obj(a, handles[n]));
    REQUIRE_EQ(kit_refusals(a).bad_handle, 0);
#if CAN_STEP
    REQUIRE_BETWEEN(asked, 100, UINT64_MAX);
    REQUIRE_BETWEEN(alive, 1, UINT64_MAX);
#endif
}

/* Twice: in the first life of a slab nothing was issued before, later its generations may be high. */
static void ends_of(size_t size, unsigned n, bool swept) {
    for (unsigned turn = 0; turn < 2; turn++) {
        epoch_domain_t* d = epoch_domain_begin(a, "stepped");
        REQUIRE(d != NULL);
        if (turn == 1) {
            TsiPlace at = kit_place(a, kit_hide(slab_malloc(a, size)));
            tsi_store_relaxed(&tsi_slab(&tsi_arena(a)->space, at.slab_id)->gen_base, LATE_GEN);
        }
        make(size, n);
        if (swept) { /* through another one's name, so that the end is a sweep */
            kit_steps_begin(ask);
            (void)epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, NULL);
            kit_steps_end();
            was_asked();
            epoch_domain_end(d);
            continue;
        }
        kit_steps_begin(ask);
        epoch_domain_end(d);
        kit_steps_end();
        was_asked();
    }
}
static void straight_ends(void) { ends_of(SIZE, OBJECTS, false); }
static void swept_ends(void) { ends_of(SIZE, OBJECTS, true); }
static void ends_of_large_objects(void) { ends_of(LARGE, 1, true); }

/* The last free of a drained phase returns its slab. */
static void last_frees(void) {
    for (unsigned turn = 0; turn < 2; turn++) {
        epoch_domain_t* d = epoch_domain_begin(a, "drained");
        REQUIRE(d != NULL);
        make(SIZE, OBJECTS);
        REQUIRE(epoch_domain_drain(d, NULL));
        for (unsigned n = 1; n < OBJECTS; n++) REQUIRE(free_obj(a, handles[n]));
        kit_steps_begin(ask);
        bool freed = free_obj(a, handles[0]);
        kit_steps_end();
        REQUIRE(freed);
        was_asked();
    }
}

/* A region that is used again within its phase. */
static void renewals(void) {
    epoch_domain_t* d = epoch_domain_begin(a, "renewed");
    make(SIZE, OBJECTS);
    TsiPlace at = kit_place(a, pointers[0]);
    for (unsigned n = 1; n < OBJECTS; n++) REQUIRE(free_obj(a, handles[n]));
    while (slab_malloc(a, 1024) != NULL && kit_place(a, kit_hide(slab_malloc(a, SIZE))).slab_id == at.slab_id) {}
    REQUIRE(free_obj(a, handles[0]));
    kit_steps_begin(ask);
    epoch_domain_end(d);
    kit_steps_end();
    ask(0);
    REQUIRE_EQ(made_up, 0);
}

/* ---- a free, and an end at each of its instructions ---- */

static KitWorker owner;
static epoch_domain_t* phase;
static void* victim;
static SlabHandle victims_handle;
static volatile unsigned count, at_count;

static void end_phase(void* unused) {
    (void)unused;
    if (phase != NULL) epoch_domain_end(phase);
    phase = NULL;
}
static void begin_phase(void* with_handle) {
    end_phase(NULL);
    phase = epoch_domain_begin(a, "raced");
    void* first = slab_malloc(a, SIZE); /* the next phase has a smaller object there */
    victim = with_handle != NULL ? alloc_obj(a, SIZE, &victims_handle) : slab_malloc(a, SIZE);
    (void)first;
}
static void next_phase(void* unused) {
    end_phase(unused);
    phase = epoch_domain_begin(a, "raced");
    (void)kit_hide(slab_malloc(a, 16));
}
static void end_at(int sig) {
    (void)sig;
    if (++count == at_count) kit_worker_run(&owner, next_phase, NULL);
}

typedef enum How { POINTER, SIZED, HANDLE } How;
static void free_at_each(How how) {
    uint64_t freed = 0;
    phase = NULL;
    kit_worker_start(&owner);
    unsigned stride = kit_stride(1);
    for (at_count = 1 + kit_first(stride, how);; at_count += stride) {
        kit_worker_run(&owner, begin_phase, how == HANDLE ? a : NULL);
        count = 0;
        kit_steps_begin(end_at);
        bool ok = false;
        if (how == POINTER) ok = slab_free_checked(a, victim);
        else if (how == HANDLE) ok = free_obj(a, victims_handle);
        else slab_free_sized(a, victim, SIZE);
        kit_steps_end();
        freed += ok;
        if (count < at_count) break; /* the free was over before */
    }
    kit_worker_run(&owner, end_phase, NULL);
    kit_worker_stop(&owner);
    SlabRefusals r = kit_refusals(a);
    REQUIRE_EQ(r.interior_pointer, 0);
    REQUIRE_EQ(r.foreign_pointer, 0);
    REQUIRE_EQ(r.size_mismatch, 0);
    REQUIRE_EQ(r.bad_handle, 0);
    REQUIRE_EQ(r.double_free, 0);
#if CAN_STEP
    REQUIRE_BETWEEN(at_count, 20, UINT64_MAX);
    REQUIRE_BETWEEN(r.stale_free + r.stale_handle, 1, at_count);
    if (how != SIZED) REQUIRE_BETWEEN(freed, 1, at_count);
#endif
}
static void frees_by_pointer(void) { free_at_each(POINTER); }
static void sized_frees(void) { free_at_each(SIZED); }
static void frees_by_handle(void) { free_at_each(HANDLE); }

static const CheckCase tests[] = {
    CHECK_CASE_WITH(straight_ends, open_bumped, kit_close),
    CHECK_CASE_WITH(swept_ends, open_bumped, kit_close),
    {"ends_of_classes", swept_ends, open_classes, kit_close},
    {"ends_of_chunks", swept_ends, open_cold, kit_close},
    CHECK_CASE_WITH(ends_of_large_objects, open_cold, kit_close),
    CHECK_CASE_WITH(last_frees, open_bumped, kit_close),
    {"last_frees_of_classes", last_frees, open_classes, kit_close},
    CHECK_CASE_WITH(renewals, open_bumped, kit_close),
    CHECK_CASE_WITH(frees_by_pointer, open_bumped, kit_close),
    {"frees_by_pointer_in_classes", frees_by_pointer, open_classes, kit_close},
    CHECK_CASE_WITH(sized_frees, open_bumped, kit_close),
    {"sized_frees_in_classes", sized_frees, open_classes, kit_close},
    CHECK_CASE_WITH(frees_by_handle, open_bumped, kit_close),
};

int main(int argc, char** argv) {
    if (!CAN_STEP) puts("no trap after each instruction here: ends and frees are made, and asked about at once");
    return CHECK_RUN(argc, argv, tests);
}
