/* test_ready.c - heaps that wait for a phase with their region: what they keep, who takes it away, what is refused. */
#include "fake_os.h"
#include "unit.h"

#include "heap/ready.h"
#include "heap/waiting.h"
#include "heap/warm.h"
#include "mem/handle.h"
#include "mem/region.h"

enum { OBJECTS = 5, SIZE = 64 };

static SlabAllocator* a;
static void* object[OBJECTS];

static int open_allocator(void** state) {
    (void)state;
    SlabOptions o = unit_options();
    a = slab_allocator_create_with(&o);
    fake_os_clear();
    return a != NULL ? 0 : -1;
}
static int close_allocator(void** state) {
    (void)state;
    unit_check(a);
    slab_allocator_free(a);
    return 0;
}

static epoch_domain_t* begin(const char* label) {
    epoch_domain_t* d = epoch_domain_create_labeled(a, label);
    assert_non_null(d);
    for (unsigned n = 0; n < OBJECTS; n++) assert_non_null(object[n] = unit_hide(epoch_domain_malloc(d, SIZE)));
    return d;
}
static void phase(void* label) { epoch_domain_destroy(begin(label)); }

static unsigned waiting(TsiBinding* b) {
    unsigned n = 0;
    for (unsigned rank = 0; rank < TSI_READY_RANKS; rank++) n += b->ready_count[rank];
    return n;
}

/* An id of a phase that has ended leads to none of the heaps that other phases have by now. */
static void old_ids_are_refused(void** state) {
    (void)state;
    EpochId before = 0;
    for (unsigned n = 0; n < 40; n++) { /* more than the thread knows by id */
        epoch_domain_t* d = begin(NULL);
        EpochId id = d->epoch_id;
        TsiHeap* h = tsi_heap(tsi_arena(a), tsi_tag_index(unit_tag(a, object[0])));
        for (unsigned k = 0; k < 3; k++) {
            void* p = unit_hide(slab_malloc_epoch(a, SIZE, id));
            assert_non_null(p);
            assert_int_equal(tsi_tag_index(unit_tag(a, p)), h->index);
        }
        if (n != 0) assert_null(slab_malloc_epoch(a, SIZE, before));
        assert_int_equal(unit_live(a), OBJECTS + 3);
        epoch_domain_destroy(d);
        assert_null(slab_malloc_epoch(a, SIZE, id));
        before = id;
    }
}

/* A region is no use to a large object, and none would be charged for it. */
static void large_objects_leave_them(void** state) {
    (void)state;
    phase(NULL);
    assert_int_equal(waiting(unit_binding(a)), 1);
    epoch_domain_t* d = epoch_domain_create_labeled(a, NULL);
    assert_non_null(epoch_domain_malloc(d, 300000));
    assert_int_equal(waiting(unit_binding(a)), 1);
    epoch_domain_destroy(d);
    d = begin(NULL);
    assert_int_equal(waiting(unit_binding(a)), 0);
    epoch_domain_destroy(d);
}

static void the_next_phase_has_them(void** state) {
    (void)state;
    phase(NULL);
    void* first = object[0];
    uint64_t committed = unit_committed(a);
    assert_int_equal(waiting(unit_binding(a)), 1);
    fake_os_clear();
    for (unsigned n = 0; n < 300; n++) { /* generations of the region wrap */
        epoch_domain_t* d = begin(NULL);
        assert_ptr_equal(object[0], first);
        assert_int_equal(waiting(unit_binding(a)), 0);
        assert_int_equal(unit_live(a), OBJECTS);
        unit_check(a);
        epoch_domain_destroy(d);
        assert_int_equal(waiting(unit_binding(a)), 1);
        unit_check(a);
    }
    assert_int_equal(fake_os.calls[FAKE_PURGE] + fake_os.calls[FAKE_COMMIT], 0);
    assert_int_equal(unit_committed(a), committed);
}

static void as_many_as_there_is_room_for(void** state) {
    (void)state;
    enum { OPEN = 40 };
    epoch_domain_t* d[OPEN];
    for (unsigned turn = 0; turn < 3; turn++) {
        for (unsigned n = 0; n < OPEN; n++) d[n] = begin(NULL);
        assert_int_equal(waiting(unit_binding(a)), 0);
        for (unsigned n = 0; n < OPEN; n++) epoch_domain_destroy(d[n]);
        /* The first was made while nothing was known of the label: its region is a page. Those of the others are parts. */
        assert_int_equal(unit_binding(a)->ready_count[TSI_RANK_PART], TSI_READY_HEAPS);
        assert_int_equal(unit_binding(a)->ready_count[TSI_RANK_PAGE], 1);
        assert_int_equal(waiting(unit_binding(a)), TSI_READY_HEAPS + 1);
        unit_check(a);
    }
}

static void a_trim_takes_the_memory(void** state) {
    (void)state;
    UnitWorker w;
    unit_worker_start(&w);
    unit_worker_run(&w, phase, NULL);
    assert_true(unit_committed(a) != 0);
    slab_trim(a); /* of an idle thread */
    assert_int_equal(unit_committed(a), 0);
    unit_check(a);
    unit_worker_run(&w, phase, NULL);
    unit_worker_run(&w, phase, NULL);
    assert_true(unit_committed(a) != 0);
    unit_worker_stop(&w);
    slab_trim(a);
    assert_int_equal(unit_committed(a), 0);
    phase(NULL);
    slab_thread_flush(a);
    assert_int_equal(unit_committed(a), 0);
}

static void stale_pointers_and_handles_are_refused(void** state) {
    (void)state;
    for (unsigned turn = 0; turn < 3; turn++) {
        SlabHandle h = 0, again = 0;
        epoch_domain_t* d = epoch_domain_create(a);
        void* p = unit_hide(alloc_obj_epoch(a, SIZE, d->epoch_id, &h));
        assert_non_null(p);
        epoch_domain_destroy(d);
        assert_int_equal(waiting(unit_binding(a)), 1);
        assert_false(slab_free_checked(a, p));
        assert_false(free_obj(a, h));
        d = epoch_domain_create(a);
        assert_ptr_equal(unit_hide(alloc_obj_epoch(a, SIZE, d->epoch_id, &again)), p);
        assert_true(again != h);
        assert_false(free_obj(a, h));
        assert_ptr_equal(slab_handle_ptr(a, again), p);
        assert_true(free_obj(a, again));
        assert_false(slab_free_checked(a, p));
        epoch_domain_destroy(d);
    }
}

/* A flush calls in what is lent, an end that had asked before it keeps a heap: the next trim finds that. */
static void a_heap_that_was_kept_after_a_call_is_found(void** state) {
    (void)state;
    phase(NULL);
    assert_int_equal(waiting(unit_binding(a)), 1);
    tsi_warm_call_in(unit_binding(a));
    slab_trim(a);
    assert_int_equal(unit_committed(a), 0);
}

/* Its last generation of handles is used: the region goes to nobody. */
static void a_region_whose_handles_run_out_is_not_kept(void** state) {
    (void)state;
    phase(NULL);
    epoch_domain_t* d = begin(NULL);
    TsiSlab* slab = tsi_slab(&tsi_arena(a)->space, unit_place(a, object[0]).slab_id);
    tsi_store_relaxed(&slab->gen_base, TSI_GEN_LIMIT - 1);
    assert_true(slab_ptr_handle(a, object[0]) != 0);
    epoch_domain_destroy(d);
    assert_int_equal(waiting(unit_binding(a)), 0);
    assert_int_equal(tsi_load_relaxed(&tsi_arena(a)->retired_slabs), 1);
    phase(NULL);
    assert_int_equal(waiting(unit_binding(a)), 1);
}

static void others_free_late(void* p) {
    for (unsigned n = 0; n < OBJECTS; n++) assert_false(slab_free_checked(a, ((void**)p)[n]));
}

static void receipts_are_exact(void** state) {
    (void)state;
    UnitWorker w;
    unit_worker_start(&w);
    for (unsigned freed = 0; freed <= OBJECTS; freed++) {
        epoch_domain_t* d = begin("receipts");
        epoch_domain_enter(d);
        for (unsigned n = 0; n < freed; n++) assert_true(slab_free_checked(a, object[n]));
        epoch_domain_exit(d);
        EpochReceipt r;
        assert_true(epoch_domain_receipt(d, &r));
        assert_int_equal(r.objects_allocated, OBJECTS);
        assert_int_equal(r.objects_freed, freed);
        assert_int_equal(r.objects_released, OBJECTS - freed);
        assert_int_equal(r.bytes_released, (OBJECTS - freed) * SIZE);
        assert_int_equal(r.slabs_returned, 1);
        unit_worker_run(&w, others_free_late, object);
        epoch_domain_destroy(d);
    }
    unit_worker_stop(&w);
}

static epoch_domain_t* handed;
static void begin_and_detach(void* label) {
    handed = epoch_domain_begin(a, label);
    for (unsigned n = 0; n < OBJECTS; n++) object[n] = slab_malloc(a, SIZE);
    (void)epoch_domain_detach(handed);
}

/* Who hands a phase on lets go of its heap: its end interrupts nobody, and the objects are freeable all the while. */
static void a_phase_handed_on_interrupts_nobody(void** state) {
    (void)state;
    UnitWorker w;
    unit_worker_start(&w);
    for (unsigned turn = 0; turn < 100; turn++) {
        unit_worker_run(&w, begin_and_detach, NULL);
        assert_true(epoch_domain_attach(handed));
        unsigned freed = turn % OBJECTS, more = turn % 3;
        for (unsigned n = 0; n < freed; n++) assert_true(slab_free_checked(a, object[n]));
        for (unsigned n = 0; n < more; n++) assert_non_null(slab_malloc(a, SIZE));
        unit_check(a);
        epoch_domain_exit(handed);
        EpochReceipt r;
        assert_true(epoch_domain_receipt(handed, &r));
        unit_balanced(&r);
        assert_int_equal(r.objects_allocated, OBJECTS + more);
        assert_int_equal(r.objects_freed, freed);
        assert_int_equal(r.slabs_deferred, 0);
        epoch_domain_destroy(handed);
    }
    assert_int_equal(tsi_load_relaxed(&tsi_arena(a)->barriers), 0);
    unit_worker_stop(&w);
}

static void begin_large_and_detach(void* label) {
    handed = epoch_domain_begin(a, label);
    for (unsigned n = 0; n < 5000 / SIZE; n++) (void)slab_malloc(a, SIZE); /* more than a page */
    (void)epoch_domain_detach(handed);
}

/* Who hands phases on, and ends none, begins the next one with a region that is large enough. */
static void who_hands_on_learns(void** state) {
    (void)state;
    UnitWorker w;
    unit_worker_start(&w);
    for (unsigned turn = 0; turn < 4; turn++) {
        unit_worker_run(&w, begin_large_and_detach, "handed on");
        assert_true(epoch_domain_attach(handed));
        EpochReceipt r;
        assert_true(epoch_domain_end_ex(handed, &r));
        assert_int_equal(r.regions_returned, turn == 0 ? 2 : 1);
    }
    unit_worker_stop(&w);
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
    case 0: assert_true(slab_epoch_on_end(a, d->epoch_id, note_end, NULL)); break;
    case 1: assert_true(slab_epoch_set_budget(a, d->epoch_id, 0, 1, NULL, NULL)); break;
    case 2: slab_epoch_inc_refcount(a, d->epoch_id); break;
    case 3: slab_epoch_set_label(a, d->epoch_id, "touched"); break;
    case 4: assert_non_null(unit_hide(slab_malloc_epoch(a, 300000, d->epoch_id))); break;
    case 5: assert_true(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, NULL)); break;
    case 6: assert_true(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, NULL)); break;
    case 7: slab_trim(a); break;
    default: break;
    }
}

static void what_was_done_to_a_phase_ends_with_it(void** state) {
    (void)state;
    enum { WAYS = 9, LAPS = 3 * TSI_RECORD_CACHE };
    for (unsigned how = 0; how < WAYS; how++) {
        ended = 0;
        uint64_t before = slab_now_ns(), early = 0;
        epoch_domain_t* d = begin("straight");
        early = began(d);
        assert_true(early >= before && early <= slab_now_ns());
        touch(d, how);
        epoch_domain_destroy(d);
        assert_int_equal(ended, how == 0);
        unit_check(a);
        for (unsigned n = 0; n < LAPS; n++) {
            uint64_t from = slab_now_ns();
            d = epoch_domain_create_labeled(a, "straight");
            TsiInc* i = inc_of(d);
            assert_int_equal(tsi_inc_peak(i) | began(d) | i->slow | i->closed_slabs | i->ends | i->orphans, 0);
            assert_int_equal(slab_epoch_get_refcount(a, d->epoch_id), 0);
            for (unsigned k = 0; k < OBJECTS; k++) assert_non_null(object[k] = unit_hide(epoch_domain_malloc(d, 1000)));
            assert_true(began(d) >= from && began(d) <= slab_now_ns());
            assert_string_equal(i->label, "straight");
            epoch_domain_enter(d);
            epoch_domain_exit(d);
            EpochReceipt r;
            assert_true(epoch_domain_receipt(d, &r));
            assert_int_equal(r.objects_allocated, OBJECTS);
            assert_int_equal(r.bytes_released, OBJECTS * 1008);
            assert_int_equal(r.objects_freed | r.objects_escaped, 0);
            epoch_domain_destroy(d);
        }
        assert_int_equal(ended, how == 0);
        unit_check(a);
    }
}

/* Records come back as they were before they were used, without being cleared. */
static void an_untouched_phase_leaves_its_record_clean(void** state) {
    (void)state;
    for (unsigned n = 0; n < 3 * TSI_RECORD_CACHE; n++) {
        epoch_domain_t* d = begin(NULL);
        TsiInc* i = inc_of(d);
        epoch_domain_destroy(d);
        if (n != 0) assert_true(i->clean); /* the first one had no heap that waited */
    }
}

static void budgets_count(void** state) {
    (void)state;
    phase("tight");
    assert_int_equal(waiting(unit_binding(a)), 1);
    assert_true(slab_label_set_budget(a, "tight", 0, 1024, NULL, NULL));
    epoch_domain_t* d = epoch_domain_create_labeled(a, "tight");
    assert_null(epoch_domain_malloc(d, SIZE)); /* what waits is charged like any other */
    assert_int_equal(errno, EDQUOT);
    epoch_domain_destroy(d);
    phase("other");
}

static void a_child_goes_on(void** state) {
    (void)state;
    UnitWorker w;
    unit_worker_start(&w);
    unit_worker_run(&w, phase, NULL);
    phase(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        char why[160];
        bool ok = tsi_check_allocator(a, why, sizeof why);
        for (unsigned n = 0; n < 40; n++) phase(NULL);
        ok = ok && tsi_check_allocator(a, why, sizeof why) && waiting(unit_binding(a)) == 1;
        slab_trim(a);
        _exit(ok && unit_committed(a) == 0 ? 0 : 1);
    }
    int status;
    assert_true(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    unit_worker_run(&w, phase, NULL);
    unit_worker_stop(&w);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_allocator, close_allocator)
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
    return cmocka_run_group_tests_name("ready", tests, NULL, NULL);
}
