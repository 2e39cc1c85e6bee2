/* test_ready.c - heaps that wait for a phase with their region: what they keep, who takes it away, what is refused. */
#include "fake_os.h"
#include "kit/one.h"

#include "heap/ready.h"
#include "heap/warm.h"
#include "mem/handle.h"
#include "mem/region.h"

enum { OBJECTS = 5, SIZE = 64 };

static void* object[OBJECTS];

static void open_allocator(void) {
    kit_open_with(kit_options());
    fake_os_clear();
}

static epoch_domain_t* begin(const char* label) {
    epoch_domain_t* d = epoch_domain_create_labeled(a, label);
    REQUIRE(d != NULL);
    for (unsigned n = 0; n < OBJECTS; n++) REQUIRE((object[n] = kit_hide(epoch_domain_malloc(d, SIZE))) != NULL);
    return d;
}
static void phase(void* label) { epoch_domain_destroy(begin(label)); }

static unsigned waiting(TsiBinding* b) {
    unsigned n = 0;
    for (unsigned rank = 0; rank < TSI_READY_RANKS; rank++) n += b->ready_count[rank];
    return n;
}

/* An id of a phase that has ended leads to none of the heaps that other phases have by now. */
static void old_ids_are_refused(void) {
    EpochId before = 0;
    for (unsigned n = 0; n < 40; n++) { /* more than the thread knows by id */
        epoch_domain_t* d = begin(NULL);
        EpochId id = d->epoch_id;
        TsiHeap* h = tsi_heap(tsi_arena(a), tsi_tag_index(kit_tag(a, object[0])));
        for (unsigned k = 0; k < 3; k++) {
            void* p = kit_hide(slab_malloc_epoch(a, SIZE, id));
            REQUIRE(p != NULL);
            REQUIRE_EQ(tsi_tag_index(kit_tag(a, p)), h->index);
        }
        if (n != 0) REQUIRE_NULL(slab_malloc_epoch(a, SIZE, before));
        REQUIRE_EQ(kit_live(a), OBJECTS + 3);
        epoch_domain_destroy(d);
        REQUIRE_NULL(slab_malloc_epoch(a, SIZE, id));
        before = id;
    }
}

/* A region is no use to a large object, and none would be charged for it. */
static void large_objects_leave_them(void) {
    phase(NULL);
    REQUIRE_EQ(waiting(kit_binding(a)), 1);
    epoch_domain_t* d = epoch_domain_create_labeled(a, NULL);
    REQUIRE(epoch_domain_malloc(d, 300000) != NULL);
    REQUIRE_EQ(waiting(kit_binding(a)), 1);
    epoch_domain_destroy(d);
    d = begin(NULL);
    REQUIRE_EQ(waiting(kit_binding(a)), 0);
    epoch_domain_destroy(d);
}

static void the_next_phase_has_them(void) {
    phase(NULL);
    void* first = object[0];
    uint64_t committed = kit_committed_now(a);
    REQUIRE_EQ(waiting(kit_binding(a)), 1);
    fake_os_clear();
    for (unsigned n = 0; n < 300; n++) { /* generations of the region wrap */
        epoch_domain_t* d = begin(NULL);
        REQUIRE_EQ(object[0], first);
        REQUIRE_EQ(waiting(kit_binding(a)), 0);
        REQUIRE_EQ(kit_live(a), OBJECTS);
        kit_check(a);
        epoch_domain_destroy(d);
        REQUIRE_EQ(waiting(kit_binding(a)), 1);
        kit_check(a);
    }
    REQUIRE_EQ(fake_os.calls[FAKE_PURGE] + fake_os.calls[FAKE_COMMIT], 0);
    REQUIRE_EQ(kit_committed_now(a), committed);
}

static void as_many_as_there_is_room_for(void) {
    enum { OPEN = 40 };
    epoch_domain_t* d[OPEN];
    for (unsigned turn = 0; turn < 3; turn++) {
        for (unsigned n = 0; n < OPEN; n++) d[n] = begin(NULL);
        REQUIRE_EQ(waiting(kit_binding(a)), 0);
        for (unsigned n = 0; n < OPEN; n++) epoch_domain_destroy(d[n]);
        /* The first was made while nothing was known of the label: its region is a page. Those of the others are parts. */
        REQUIRE_EQ(kit_binding(a)->ready_count[TSI_RANK_PART], TSI_READY_HEAPS);
        REQUIRE_EQ(kit_binding(a)->ready_count[TSI_RANK_PAGE], 1);
        REQUIRE_EQ(waiting(kit_binding(a)), TSI_READY_HEAPS + 1);
        kit_check(a);
    }
}

static void a_trim_takes_the_memory(void) {
    KitWorker w;
    kit_worker_start(&w);
    kit_worker_run(&w, phase, NULL);
    REQUIRE(kit_committed_now(a) != 0);
    slab_trim(a); /* of an idle thread */
    REQUIRE_EQ(kit_committed_now(a), 0);
    kit_check(a);
    kit_worker_run(&w, phase, NULL);
    kit_worker_run(&w, phase, NULL);
    REQUIRE(kit_committed_now(a) != 0);
    kit_worker_stop(&w);
    slab_trim(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
    phase(NULL);
    slab_thread_flush(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

static void stale_pointers_and_handles_are_refused(void) {
    for (unsigned turn = 0; turn < 3; turn++) {
        SlabHandle h = 0, again = 0;
        epoch_domain_t* d = epoch_domain_create(a);
        void* p = kit_hide(alloc_obj_epoch(a, SIZE, d->epoch_id, &h));
        REQUIRE(p != NULL);
        epoch_domain_destroy(d);
        REQUIRE_EQ(waiting(kit_binding(a)), 1);
        REQUIRE(!slab_free_checked(a, p));
        REQUIRE(!free_obj(a, h));
        d = epoch_domain_create(a);
        REQUIRE_EQ(kit_hide(alloc_obj_epoch(a, SIZE, d->epoch_id, &again)), p);
        REQUIRE(again != h);
        REQUIRE(!free_obj(a, h));
        REQUIRE_EQ(slab_handle_ptr(a, again), p);
        REQUIRE(free_obj(a, again));
        REQUIRE(!slab_free_checked(a, p));
        epoch_domain_destroy(d);
    }
}

/* A flush calls in what is lent, an end that had asked before it keeps a heap: the next trim finds that. */
static void a_heap_that_was_kept_after_a_call_is_found(void) {
    phase(NULL);
    REQUIRE_EQ(waiting(kit_binding(a)), 1);
    tsi_warm_call_in(kit_binding(a)->arena, kit_binding(a));
    slab_trim(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* Its last generation of handles is used: the region goes to nobody. */
static void a_region_whose_handles_run_out_is_not_kept(void) {
    phase(NULL);
    epoch_domain_t* d = begin(NULL);
    TsiSlab* slab = tsi_slab(&tsi_arena(a)->space, kit_place(a, object[0]).slab_id);
    tsi_store_relaxed(&slab->gen_base, TSI_GEN_LIMIT - 1);
    REQUIRE(slab_ptr_handle(a, object[0]) != 0);
    epoch_domain_destroy(d);
    REQUIRE_EQ(waiting(kit_binding(a)), 0);
    REQUIRE_EQ(tsi_load_relaxed(&tsi_arena(a)->retired_slabs), 1);
    phase(NULL);
    REQUIRE_EQ(waiting(kit_binding(a)), 1);
}

static void others_free_late(void* p) {
    for (unsigned n = 0; n < OBJECTS; n++) REQUIRE(!slab_free_checked(a, ((void**)p)[n]));
}

static void receipts_are_exact(void) {
    KitWorker w;
    kit_worker_start(&w);
    for (unsigned freed = 0; freed <= OBJECTS; freed++) {
        epoch_domain_t* d = begin("receipts");
        epoch_domain_enter(d);
        for (unsigned n = 0; n < freed; n++) REQUIRE(slab_free_checked(a, object[n]));
        epoch_domain_exit(d);
        EpochReceipt r;
        REQUIRE(epoch_domain_receipt(d, &r));
        REQUIRE_EQ(r.objects_allocated, OBJECTS);
        REQUIRE_EQ(r.objects_freed, freed);
        REQUIRE_EQ(r.objects_released, OBJECTS - freed);
        REQUIRE_EQ(r.bytes_released, (OBJECTS - freed) * SIZE);
        REQUIRE_EQ(r.slabs_returned, 1);
        kit_worker_run(&w, others_free_late, object);
        epoch_domain_destroy(d);
    }
    kit_worker_stop(&w);
}

static epoch_domain_t* handed;
static void begin_and_detach(void* label) {
    handed = epoch_domain_begin(a, label);
    for (unsigned n = 0; n < OBJECTS; n++) object[n] = slab_malloc(a, SIZE);
    (void)epoch_domain_detach(handed);
}

/* Who hands a phase on lets go of its heap: its end interrupts nobody, and the objects are freeable all the while. */
static void a_phase_handed_on_interrupts_nobody(void) {
    KitWorker w;
    kit_worker_start(&w);
    for (unsigned turn = 0; turn < 100; turn++) {
        kit_worker_run(&w, begin_and_detach, NULL);
        REQUIRE(epoch_domain_attach(handed));
        unsigned freed = turn % OBJECTS, more = turn % 3;
        for (unsigned n = 0; n < freed; n++) REQUIRE(slab_free_checked(a, object[n]));
        for (unsigned n = 0; n < more; n++) REQUIRE(slab_malloc(a, SIZE) != NULL);
        kit_check(a);
        epoch_domain_exit(handed);
        EpochReceipt r;
        REQUIRE(epoch_domain_receipt(handed, &r));
        KIT_BALANCED(&r);
        REQUIRE_EQ(r.objects_allocated, OBJECTS + more);
        REQUIRE_EQ(r.objects_freed, freed);
        REQUIRE_EQ(r.slabs_deferred, 0);
        epoch_domain_destroy(handed);
    }
    REQUIRE_EQ(tsi_load_relaxed(&tsi_arena(a)->barriers), 0);
    kit_worker_stop(&w);
}

static bool beside_slabs;
static void begin_large_and_detach(void* label) {
    handed = epoch_domain_begin(a, label);
    for (unsigned n = 0; n < 5000 / SIZE; n++) (void)slab_malloc(a, SIZE); /* more than a page */
    if (beside_slabs) (void)slab_malloc(a, 16000);                         /* a heap with slabs is not lent */
    (void)epoch_domain_detach(handed);
}

/* Who hands phases on, and ends none, begins the next one with a region that is large enough. */
static void who_hands_on_learns(void) {
    KitWorker w;
    kit_worker_start(&w);
    for (unsigned turn = 0; turn < 8; turn++) {
        beside_slabs = turn >= 4;
        kit_worker_run(&w, begin_large_and_detach, beside_slabs ? "handed on with slabs" : "handed on");
        REQUIRE(epoch_domain_attach(handed));
        EpochReceipt r;
        REQUIRE(epoch_domain_end_ex(handed, &r));
        REQUIRE_EQ(r.regions_returned, turn % 4 == 0 ? 2 : 1);
    }
    kit_worker_stop(&w);
}

static unsigned ended;
static void note_end(void* arg) {
    (void)arg;
    ended++;
}
static TsiInc* inc_of(const epoch_domain_t* d) { return tsi_inc(&tsi_arena(a)->phases, d->epoch_id & TSI_INC_MAX); }
static uint64_t began(const epoch_domain_t* d) { return tsi_load_relaxed(&inc_of(d)->open_since_ns); }

/* Something is done to a phase before it ends: that counts, and no later phase in its record has any of it. */
static void touch(epoch_domain_t* d, unsigned how) {
    switch (how) {
    case 0:
        REQUIRE(slab_epoch_on_end(a, d->epoch_id, note_end, NULL));
        break;
    case 1:
        REQUIRE(slab_epoch_set_budget(a, d->epoch_id, 0, 1, NULL, NULL));
        break;
    case 2:
        slab_epoch_inc_refcount(a, d->epoch_id);
        break;
    case 3:
        slab_epoch_set_label(a, d->epoch_id, "touched");
        break;
    case 4:
        REQUIRE(kit_hide(slab_malloc_epoch(a, 300000, d->epoch_id)) != NULL);
        break;
    case 5:
        REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, NULL));
        break;
    case 6:
        REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, NULL));
        break;
    case 7:
        slab_trim(a);
        break;
    default:
        break;
    }
}

static void what_was_done_to_a_phase_ends_with_it(void) {
    enum { WAYS = 9, LAPS = 3 * TSI_RECORD_CACHE };
    for (unsigned how = 0; how < WAYS; how++) {
        ended = 0;
        uint64_t before = slab_now_ns(), early = 0;
        epoch_domain_t* d = begin("straight");
        early = began(d);
        REQUIRE(early >= before && early <= slab_now_ns());
        touch(d, how);
        epoch_domain_destroy(d);
        REQUIRE_EQ(ended, how == 0);
        kit_check(a);
        for (unsigned n = 0; n < LAPS; n++) {
            uint64_t from = slab_now_ns();
            d = epoch_domain_create_labeled(a, "straight");
            TsiInc* i = inc_of(d);
            REQUIRE_EQ(tsi_inc_peak(i) | began(d) | i->slow | i->closed_slabs | i->ends | i->orphans, 0);
            REQUIRE_EQ(slab_epoch_get_refcount(a, d->epoch_id), 0);
            for (unsigned k = 0; k < OBJECTS; k++)
                REQUIRE((object[k] = kit_hide(epoch_domain_malloc(d, 1000))) != NULL);
            REQUIRE(began(d) >= from && began(d) <= slab_now_ns());
            REQUIRE_STR(i->label, "straight");
            epoch_domain_enter(d);
            epoch_domain_exit(d);
            EpochReceipt r;
            REQUIRE(epoch_domain_receipt(d, &r));
            REQUIRE_EQ(r.objects_allocated, OBJECTS);
            REQUIRE_EQ(r.bytes_released, OBJECTS * 1008);
            REQUIRE_EQ(r.objects_freed | r.objects_escaped, 0);
            epoch_domain_destroy(d);
        }
        REQUIRE_EQ(ended, how == 0);
        kit_check(a);
    }
}

/* Records come back as they were before they were used, without being cleared. */
static void an_untouched_phase_leaves_its_record_clean(void) {
    for (unsigned n = 0; n < 3 * TSI_RECORD_CACHE; n++) {
        epoch_domain_t* d = begin(NULL);
        TsiInc* i = inc_of(d);
        epoch_domain_destroy(d);
        if (n != 0) REQUIRE(i->clean); /* the first one had no heap that waited */
    }
}

static void budgets_count(void) {
    phase("tight");
    REQUIRE_EQ(waiting(kit_binding(a)), 1);
    REQUIRE(slab_label_set_budget(a, "tight", 0, 1024, NULL, NULL));
    epoch_domain_t* d = epoch_domain_create_labeled(a, "tight");
    REQUIRE_NULL(epoch_domain_malloc(d, SIZE)); /* what waits is charged like any other */
    REQUIRE_EQ(errno, EDQUOT);
    epoch_domain_destroy(d);
    phase("other");
}

static void a_child_goes_on(void) {
    KitWorker w;
    kit_worker_start(&w);
    kit_worker_run(&w, phase, NULL);
    phase(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        char why[160];
        bool ok = tsi_check_allocator(a, why, sizeof why);
        for (unsigned n = 0; n < 40; n++) phase(NULL);
        ok = ok && tsi_check_allocator(a, why, sizeof why) && waiting(kit_binding(a)) == 1;
        slab_trim(a);
        _exit(ok && kit_committed_now(a) == 0 ? 0 : 1);
    }
    int status;
    REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    REQUIRE_EQ(WEXITSTATUS(status), 0);
    kit_worker_run(&w, phase, NULL);
    kit_worker_stop(&w);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, kit_close)
        TEST(old_ids_are_refused),
        TEST(large_objects_leave_them),
        TEST(the_next_phase_has_them),
        TEST(as_many_as_there_is_room_for),
        TEST(a_trim_takes_the_memory),
        TEST(stale_pointers_and_handles_are_refused),
        TEST(a_heap_that_was_kept_after_a_call_is_found),
        TEST(a_region_whose_handles_run_out_is_not_kept),
        TEST(receipts_are_exact),
        TEST(a_phase_handed_on_interrupts_nobody),
        TEST(who_hands_on_learns),
        TEST(what_was_done_to_a_phase_ends_with_it),
        TEST(an_untouched_phase_leaves_its_record_clean),
        TEST(budgets_count),
        TEST(a_child_goes_on),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
