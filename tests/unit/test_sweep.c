/*
 * test_sweep.c - what drain, release, trim and late frees return.
 *
 * Objects of 1024 bytes: 16 to a slab of four pages, so page n of a slab holds its slots 4n to 4n + 3. Sweeps that
 * meet other threads are in test_handover.
 */
#define KIT_RING_BY_CLASS
#include "fake_os.h"
#include "kit/one.h"

enum { SIZE = 1024, SLOTS = 16, SLAB = SLOTS * SIZE };

static void open_allocator(void) {
    kit_open_cold();
    fake_os_clear();
}
static void close_allocator(void) {
    kit_close();
    REQUIRE_EQ(fake_os.misaligned, 0);
}
static void take(void** p, unsigned n) { kit_take(a, SIZE, p, n); }
static EpochReceipt end(EpochId id, EpochCloseMode mode) { return kit_end(a, id, mode); }
static const char* pages(unsigned n) { return fake_os_pages(space->base, n); }

/* ---- drain ---- */

static void draining_what_is_all_free(void) {
    void* p[3 * SLOTS];
    take(p, 3 * SLOTS);
    for (unsigned i = 0; i < 3 * SLOTS; i++) slab_free(a, p[i]);
    fake_os_clear();
    EpochReceipt r = end(0, EPOCH_DRAIN);
    REQUIRE_EQ(r.objects_allocated, 3 * SLOTS);
    REQUIRE_EQ(r.objects_freed, 3 * SLOTS);
    REQUIRE_EQ(r.bytes_freed, 3 * SLOTS * SIZE);
    REQUIRE_EQ(r.slabs_returned, 3);
    REQUIRE_EQ(r.bytes_returned, 3 * SLAB);
    REQUIRE_EQ(kit_committed_now(a), 0);
    REQUIRE_STR(pages(14), "xxxxxxxxxxxx..");
    REQUIRE_STR(fake_os_runs(space->base, space->payload_bytes), "[0x0-0xb]");
    r = end(0, EPOCH_DRAIN); /* nothing more to say */
    REQUIRE_EQ(r.objects_freed, 3 * SLOTS);
    REQUIRE_EQ(r.slabs_returned, 0);
}

/* A survivor keeps its page, and the pages beside it go; each slab goes with its last object. */
static void survivors_keep_their_pages_only(void) {
    void* p[3 * SLOTS];
    take(p, 3 * SLOTS);
    for (unsigned i = 0; i < 3 * SLOTS; i++)
        if (i != 5 && i != SLOTS && i != SLOTS + 15) slab_free(a, p[i]);
    fake_os_clear();
    EpochReceipt r = end(0, EPOCH_DRAIN);
    REQUIRE_EQ(r.objects_escaped, 3);
    REQUIRE_EQ(r.bytes_escaped, 3 * SIZE);
    REQUIRE_EQ(r.slabs_returned, 1);
    REQUIRE_STR(pages(14), "x.xx.xx.xxxx..");
    REQUIRE_EQ(kit_committed_now(a), 2 * SLAB);
    for (unsigned i = 0; i < SIZE; i++) REQUIRE_EQ(((uint8_t*)p[5])[i], 5);
    for (unsigned i = 0; i < SIZE; i++) REQUIRE_EQ(((uint8_t*)p[SLOTS])[i], SLOTS);
    REQUIRE(slab_free_checked(a, p[5]));
    REQUIRE_EQ(kit_committed_now(a), SLAB);
    REQUIRE(slab_free_checked(a, p[SLOTS]));
    REQUIRE_EQ(kit_committed_now(a), SLAB);
    kit_check(a);
    REQUIRE(slab_free_checked(a, p[SLOTS + 15]));
    REQUIRE_EQ(kit_committed_now(a), 0);
    REQUIRE(!slab_free_checked(a, p[SLOTS + 15]));
    kit_check(a);
}

/* Runs of dead pages join across slabs of one sweep. */
static void dead_pages_of_neighbours_are_one_run(void) {
    void* p[4 * SLOTS];
    take(p, 4 * SLOTS);
    for (unsigned i = 0; i < 4 * SLOTS; i++)
        if (i % SLOTS != (i / SLOTS % 2 == 0 ? 0 : 15)) slab_free(a, p[i]);
    fake_os_clear();
    (void)end(0, EPOCH_DRAIN);
    REQUIRE_STR(fake_os_runs(space->base, space->payload_bytes), "[0x1-0x6][0x9-0xe]");
}

/* Pages that frees after the close leave without a live object go at the latest with a trim, once. */
static void late_frees_leave_pages_for_a_trim(void) {
    void* p[2 * SLOTS];
    take(p, 2 * SLOTS);
    (void)end(0, EPOCH_DRAIN);
    for (unsigned i = 0; i < 12; i++) slab_free(a, p[i]);
    fake_os_clear();
    slab_trim(a);
    REQUIRE_STR(pages(8), "xxx.....");
    kit_check(a);
    fake_os_clear();
    slab_trim(a);
    REQUIRE_STR(pages(8), "........");
    for (unsigned i = 12; i < 16; i++) slab_free(a, p[i]);
    REQUIRE_EQ(kit_committed_now(a), SLAB);
    REQUIRE_EQ(kit_live(a), SLOTS);
}

/* ... or without one when there are enough of them. */
static void many_late_frees_return_pages_by_themselves(void) {
    enum { SLABS = 400 };
    static void* p[SLABS * SLOTS];
    take(p, SLABS * SLOTS);
    (void)end(0, EPOCH_DRAIN);
    fake_os_clear();
    for (unsigned i = 0; i < SLABS * SLOTS; i++)
        if (i % SLOTS != 7) REQUIRE(slab_free_checked(a, p[i]));
    REQUIRE(tsi_load_relaxed(&space->purge_bytes) > (uint64_t)SLABS * SLAB / 2);
    REQUIRE_EQ(kit_live(a), SLABS);
    kit_check(a);
    for (unsigned i = 7; i < SLABS * SLOTS; i += SLOTS) REQUIRE(slab_free_checked(a, p[i]));
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* Bytes of dead pages that late frees note when a full slab of a drained epoch loses all of its page n. */
static uint64_t late_bytes_without_page(size_t size, unsigned n) {
    static void* at[1024];
    const TsiClass* c = &space->classes->c[tsi_class_of(size)];
    unsigned count = (unsigned)c->slots << c->lines_log2;
    REQUIRE(count <= 1024);
    for (unsigned i = 0; i < count; i++) REQUIRE((at[i] = slab_malloc(a, size)) != NULL);
    EpochId id = epoch_current(a);
    TsiInc* inc = tsi_inc(&tsi_arena(a)->phases, tsi_ref_index(tsi_phases_current(&tsi_arena(a)->phases)));
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, id, EPOCH_DRAIN, &r));
    uint64_t before = tsi_load_relaxed(&inc->late_bytes);
    uintptr_t slab = (uintptr_t)at[0] & ~(uintptr_t)(c->slab_bytes - 1);
    for (unsigned i = 0; i < count; i++) {
        if (((uintptr_t)at[i] - slab) / tsi_os.page_bytes != n) continue;
        REQUIRE(slab_free_checked(a, at[i]));
        at[i] = NULL;
    }
    uint64_t noted = tsi_load_relaxed(&inc->late_bytes) - before;
    for (unsigned i = 0; i < count; i++) slab_free(a, at[i]);
    REQUIRE_NE(epoch_advance_id(a), id);
    return noted;
}

/* The last object of a page is noticed in any page of a slab, and once, for every class whose slabs have several. */
static void each_page_that_dies_late_is_noticed(void) {
    unsigned tried = 0;
    for (unsigned cls = 1; cls <= TSI_SMALL_CLASSES; cls++) {
        const TsiClass* c = &space->classes->c[cls];
        if (c->size > 1024) continue;
        for (unsigned n = 0; n < c->slab_bytes / tsi_os.page_bytes && c->slab_bytes > tsi_os.page_bytes; n++, tried++)
            REQUIRE_EQ(late_bytes_without_page(c->size, n), tsi_os.page_bytes);
    }
    REQUIRE(tried >= 20);
}

static void a_failed_purge_of_pages_keeps_the_objects(void) {
    void* p[SLOTS];
    take(p, SLOTS);
    for (unsigned i = 0; i < SLOTS - 1; i++) slab_free(a, p[i]);
    fake_os_fail(FAKE_PURGE, 1, true);
    EpochReceipt r = end(0, EPOCH_DRAIN);
    REQUIRE_EQ(r.objects_escaped, 1);
    for (unsigned i = 0; i < SIZE; i++) REQUIRE_EQ(((uint8_t*)p[SLOTS - 1])[i], SLOTS - 1);
    fake_os_heal();
    REQUIRE(slab_free_checked(a, p[SLOTS - 1]));
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* ---- release ---- */

static void releasing_ends_what_is_live(void) {
    void *p[2 * SLOTS], *large = slab_malloc(a, 3 << 20);
    REQUIRE(large != NULL);
    take(p, 2 * SLOTS);
    for (unsigned i = 0; i < 10; i++) slab_free(a, p[i]);
    fake_os_clear();
    EpochReceipt r = end(0, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_allocated, 2 * SLOTS + 1);
    REQUIRE_EQ(r.objects_freed, 10);
    REQUIRE_EQ(r.objects_released, 2 * SLOTS + 1 - 10);
    REQUIRE_EQ(r.bytes_released, (2 * SLOTS - 10) * SIZE + (3 << 20));
    REQUIRE_EQ(r.objects_escaped, 0);
    REQUIRE_EQ(r.slabs_returned, 3);
    REQUIRE_EQ(kit_committed_now(a), 0);
    uint64_t stale = kit_refusals(a).stale_free;
    for (unsigned i = 0; i < 2 * SLOTS; i++) REQUIRE(!slab_free_checked(a, p[i]));
    REQUIRE(!slab_free_checked(a, large));
    REQUIRE_EQ(kit_refusals(a).stale_free, stale + 2 * SLOTS + 1);
}

static void a_release_ends_what_a_drain_left(void) {
    void* p[2 * SLOTS];
    take(p, 2 * SLOTS);
    (void)end(0, EPOCH_DRAIN);
    for (unsigned i = 0; i < 20; i++) slab_free(a, p[i]);
    REQUIRE_EQ(kit_committed_now(a), SLAB);
    EpochReceipt r = end(0, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_freed, 20);
    REQUIRE_EQ(r.objects_released, 12);
    REQUIRE_EQ(r.slabs_returned, 1);
    REQUIRE_EQ(kit_committed_now(a), 0);
    r = end(0, EPOCH_DRAIN); /* a weaker close changes nothing */
    REQUIRE_EQ(r.objects_released, 12);
    REQUIRE_EQ(epoch_state(a, 0), EPOCH_CLOSING);
    errno = 0;
    REQUIRE_NULL(slab_malloc_epoch(a, 64, 0));
    REQUIRE_EQ(errno, ESTALE);
}

/* The ring moving past an epoch with survivors keeps them; their frees return the memory. */
static void the_ring_moves_past(void) {
    void* p[SLOTS];
    take(p, SLOTS);
    uint64_t era = epoch_era(a, 0);
    for (unsigned i = 0; i < tsi_arena(a)->phases.ring_size; i++) (void)epoch_advance_id(a);
    REQUIRE(epoch_era(a, 0) > era);
    void* q = slab_malloc(a, SIZE); /* sweeps what the ring has displaced */
    uint64_t now = 0;
    REQUIRE(slab_ptr_epoch(a, p[0], NULL, &now));
    REQUIRE_EQ(now, era);
    kit_check(a);
    for (unsigned i = 0; i < SLOTS; i++) REQUIRE(slab_free_checked(a, p[i]));
    REQUIRE_EQ(kit_committed_now(a), SLAB);
    slab_free(a, q);
    slab_trim(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* ---- trim ---- */

static void trim_takes_empties_of_active_epochs(void) {
    void *p[3 * SLOTS], *q[SLOTS];
    take(p, 3 * SLOTS);
    for (unsigned i = 0; i < 2 * SLOTS; i++) slab_free(a, p[i]);
    REQUIRE_EQ(kit_committed_now(a), 3 * SLAB); /* an active epoch keeps its empties */
    fake_os_clear();
    slab_trim(a);
    REQUIRE_STR(pages(12), "xxxxxxxx....");
    REQUIRE_EQ(kit_committed_now(a), SLAB);
    REQUIRE_EQ(kit_live(a), SLOTS);
    REQUIRE_EQ(epoch_state(a, 0), EPOCH_ACTIVE);
    take(q, SLOTS);
    kit_check(a);
    EpochReceipt r = end(0, EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_allocated, 4 * SLOTS); /* what was trimmed is not forgotten */
    REQUIRE_EQ(r.objects_freed, 2 * SLOTS);
}

/* Cleanups run once, when the last object has gone, last registered first. */
static char order[8];
static void note(void* arg) { strcat(order, arg); }

static void cleanups_run_when_the_epoch_has_drained(void) {
    void* p[2];
    order[0] = 0;
    take(p, 2);
    REQUIRE(slab_epoch_on_end(a, 0, note, "1"));
    REQUIRE(slab_epoch_on_end(a, 0, note, "2"));
    (void)end(0, EPOCH_DRAIN);
    REQUIRE(!slab_epoch_on_end(a, 0, note, "3"));
    slab_free(a, p[0]);
    REQUIRE_STR(order, "");
    slab_free(a, p[1]);
    REQUIRE_STR(order, "21");
    (void)end(0, EPOCH_RELEASE);
    REQUIRE_STR(order, "21");
}

/* One that comes too late leaves nothing behind. */
static void a_refused_cleanup_keeps_no_record(void) {
    (void)end(0, EPOCH_DRAIN);
    for (unsigned i = 0; i < 500; i++) REQUIRE(!slab_epoch_on_end(a, 0, note, "x"));
    REQUIRE(tsi_table_used(&tsi_arena(a)->phases.ends) <= 200);
}

/* ---- fork ---- */

/* Threads that vanish may have been between a charge and its slab, with or without the label's part, or have bytes pending. */
static void a_child_is_charged_for_what_it_has(void) {
    TsiArena* arena = tsi_arena(a);
    void *p[3 * SLOTS], *large = slab_malloc(a, 500000);
    int status;
    KitWorker other; /* so that the process is not alone, and its child looks */
    kit_worker_start(&other);
    take(p, 3 * SLOTS);
    REQUIRE(large != NULL);
    REQUIRE(slab_malloc_epoch(a, SIZE, 1) != NULL);
    (void)end(1, EPOCH_DRAIN); /* an orphan */
    TsiInc* i = tsi_inc(&arena->phases, tsi_ref_index(tsi_phases_resolve(&arena->phases, 0)));
    _Atomic uint64_t* of_label = &tsi_label(&arena->phases.labels, TSI_LABEL_NONE)->committed;
    tsi_add_relaxed(&i->charge, 2 * SLAB);
    tsi_add_relaxed(of_label, SLAB);
    pid_t child = fork();
    REQUIRE_NE(child, -1);
    if (child == 0) {
        char why[256];
        bool right = tsi_check_allocator(a, why, sizeof why);
        uint64_t bytes = tsi_load_relaxed(&i->charge) & TSI_CHARGE_MASK;
        _exit(right && bytes == 3 * SLAB + tsi_align_up(500000, tsi_os.page_bytes) && tsi_load_relaxed(of_label) == bytes + SLAB ? 0 : 1);
    }
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE_EQ(status, 0);
    tsi_sub_relaxed(of_label, SLAB);
    tsi_sub_relaxed(&i->charge, 2 * SLAB);
    kit_worker_stop(&other);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, close_allocator)
        TEST(draining_what_is_all_free),
        TEST(survivors_keep_their_pages_only),
        TEST(dead_pages_of_neighbours_are_one_run),
        TEST(late_frees_leave_pages_for_a_trim),
        TEST(many_late_frees_return_pages_by_themselves),
        TEST(each_page_that_dies_late_is_noticed),
        TEST(a_failed_purge_of_pages_keeps_the_objects),
        TEST(releasing_ends_what_is_live),
        TEST(a_release_ends_what_a_drain_left),
        TEST(the_ring_moves_past),
        TEST(trim_takes_empties_of_active_epochs),
        TEST(cleanups_run_when_the_epoch_has_drained),
        TEST(a_refused_cleanup_keeps_no_record),
        TEST(a_child_is_charged_for_what_it_has),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
