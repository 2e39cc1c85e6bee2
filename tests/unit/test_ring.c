/*
 * test_ring.c - epochs of the ring that begin with regions: what a heap bumps, when the classes take over, and that all that is
 * promised of objects holds for those that lie there.
 */
#include "regions.h"

#include "threads/registry.h"

enum { OURS = TSI_RING_BYTES / SIZE /* objects until the classes take over */, MORE = 100 };

static bool bumped(const void* q) { return tsi_class_is_region(kit_place(a, q).cls); }
static TsiHeap* heap_of(const void* q) { return tsi_heap(tsi_arena(a), tsi_tag_index(kit_tag(a, q))); }
static unsigned regions_among(void** q, unsigned n) {
    unsigned regions = 0;
    for (unsigned i = 0; i < n; i++) regions += bumped(q[i]);
    return regions;
}
static EpochReceipt end_current(EpochCloseMode mode) {
    EpochId old = epoch_current(a);
    epoch_advance(a);
    return kit_end(a, old, mode);
}
static uint64_t rest_of(unsigned regions) { return (uint64_t)regions * space->classes->c[TSI_CLASS_REGION].slab_bytes; }

/* ---- how far ---- */

static void the_first_bytes(void) {
    kit_take(a, SIZE, p, OURS + MORE);
    for (unsigned i = 0; i < OURS + MORE; i++) REQUIRE_EQ(bumped(p[i]), i < OURS);
    for (unsigned i = 1; i < OURS; i++) /* one behind the other, a page at a time */
        REQUIRE(i % FIRST == 0 || (uint8_t*)p[i] == (uint8_t*)p[i - 1] + SIZE);
    TsiBinding* b = kit_binding(a);
    REQUIRE_NULL(b->region); /* the fast path is that of the classes */
    REQUIRE_EQ(tsi_load_relaxed(&b->heap->region), &tsi_no_region);
    REQUIRE(!b->heap->bumps);
    uint64_t all = kit_committed_now(a);
    give(p, OURS);
    kit_take(a, SIZE, p, OURS); /* for good, whatever is empty */
    REQUIRE_EQ(regions_among(p, OURS), 0);
    kit_check(a);
    slab_trim(a);
    REQUIRE_EQ(regions_among(p, OURS + MORE), 0);
    REQUIRE(kit_committed_now(a) > all - rest_of(3));
    SlabClassStats c;
    slab_stats_class(a, TSI_CLASS_REGION - 1, &c);
    REQUIRE_EQ(c.new_slab_count, 3);
    REQUIRE_EQ(c.net_slabs, 0); /* the trim has given them back */
    EpochReceipt r = end_current(EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_allocated, 2 * OURS + MORE);
    REQUIRE_EQ(r.objects_freed, OURS);
    REQUIRE_EQ(r.bytes_allocated, (2 * OURS + MORE) * SIZE);
    REQUIRE_EQ(r.objects_released, OURS + MORE);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

/* What a trim has given back counts no more. */
static void as_far_after_a_trim(void) {
    kit_take(a, SIZE, p, FIRST);
    for (unsigned lap = 0; lap < 5; lap++) {
        kit_take(a, SIZE, p + FIRST, FIRST);
        REQUIRE_EQ(regions_among(p, 2 * FIRST), 2 * FIRST);
        give(p + FIRST, FIRST);
        slab_trim(a);
        REQUIRE_EQ(kit_committed_now(a), rest_of(1));
    }
    kit_take(a, SIZE, p + FIRST, OURS);
    REQUIRE_EQ(regions_among(p, FIRST + OURS), OURS);
    kit_check(a);
    (void)end_current(EPOCH_RELEASE);
}

/* Each thread and each epoch begins anew. */
static KitWorker worker;
static void take_theirs(void* n) { kit_take(a, SIZE, p + 2 * FIRST, *(unsigned*)n); }
static void each_heap_has_its_own(void) {
    unsigned n = OURS + 1;
    kit_worker_start(&worker);
    kit_worker_run(&worker, take_theirs, &n);
    REQUIRE_EQ(regions_among(p + 2 * FIRST, n), OURS);
    kit_take(a, SIZE, p, 2 * FIRST);
    REQUIRE_EQ(regions_among(p, 2 * FIRST), 2 * FIRST);
    epoch_advance(a);
    kit_take(a, SIZE, p, OURS);
    REQUIRE_EQ(regions_among(p, OURS), OURS);
    n = 1;
    kit_worker_run(&worker, take_theirs, &n);
    REQUIRE(bumped(p[2 * FIRST]));
    n = OURS + 1;
    kit_worker_run(&worker, take_theirs, &n);
    kit_worker_stop(&worker);
    epoch_advance(a);
    kit_take(a, SIZE, p, 1);
    REQUIRE(bumped(p[0]));
    for (EpochId id = 0; id < 3; id++) REQUIRE(epoch_close_ex(a, id, EPOCH_RELEASE, NULL));
    REQUIRE_EQ(kit_committed_now(a), 0);
}

static void too_large_for_it(void) {
    void* large = slab_malloc(a, TSI_BUMP_MAX + 1);
    REQUIRE(!bumped(large));
    void* whole = slab_malloc(a, TSI_BUMP_MAX);
    REQUIRE(bumped(whole));
    void* apart = slab_aligned_alloc(a, 2 * TSI_BUMP_ALIGN_MAX, 32);
    REQUIRE(!bumped(apart));
    void* aligned = slab_aligned_alloc(a, TSI_BUMP_ALIGN_MAX, 32);
    REQUIRE(bumped(aligned));
    REQUIRE_EQ((uintptr_t)aligned % TSI_BUMP_ALIGN_MAX, 0);
    void* odd = slab_malloc(a, 65);
    REQUIRE_EQ(slab_usable_size(a, odd), 80);
    kit_check(a);
    REQUIRE_EQ(end_current(EPOCH_RELEASE).objects_released, 5);
}

/* Options: as before, and nowhere. */
static void by_class_from_the_first(void) {
    for (uint8_t bump = 0; bump <= TSI_BUMP_DOMAINS; bump++) {
        for (uint8_t shared = 0; shared < 2; shared++) {
            SlabOptions o = kit_options();
            o.bump = bump;
            o.shared = shared;
            SlabAllocator *mine = a, *other = slab_allocator_create_with(&o);
            REQUIRE((a = other) != NULL);
            epoch_domain_t* phase = epoch_domain_create(a);
            REQUIRE_EQ(bumped(slab_malloc(a, SIZE)), bump < TSI_BUMP_OFF && !shared);
            REQUIRE_EQ(bumped(epoch_domain_malloc(phase, SIZE)), bump != TSI_BUMP_OFF);
            epoch_domain_destroy(phase);
            slab_allocator_free(a);
            a = mine;
        }
    }
}

/* ---- again ---- */

/* What is empty is used first, and counts once; but who uses it over and over is better off with the classes. */
static void an_empty_region_is_used_again(void) {
    unsigned laps = 0, all = 0;
    bool there = true;
    while (there) {
        kit_take(a, SIZE, p, FIRST);
        there = regions_among(p, FIRST) == FIRST;
        REQUIRE(!there || kit_committed_now(a) == rest_of(1));
        give(p, FIRST);
        laps += there;
        all += FIRST;
    }
    REQUIRE_EQ(laps, (64 << 10) / 4096);
    kit_take(a, SIZE, p, FIRST);
    REQUIRE_EQ(regions_among(p, FIRST), 0);
    kit_check(a);
    EpochReceipt r = end_current(EPOCH_DRAIN);
    REQUIRE_EQ(r.objects_allocated, all + FIRST);
    REQUIRE_EQ(r.objects_escaped, FIRST);
    give(p, FIRST);
    REQUIRE_EQ(kit_committed_now(a), 0);
}

static void one_that_others_have_emptied(void) {
    kit_take(a, SIZE, p, 3 * FIRST);
    give_elsewhere(p, FIRST);             /* the first */
    give(p + FIRST, FIRST);               /* the second: a spare */
    kit_take(a, SIZE, p, 2 * FIRST);
    REQUIRE_EQ(regions_among(p, 2 * FIRST), 2 * FIRST);
    REQUIRE_EQ(kit_committed_now(a), rest_of(3));
    kit_take(a, SIZE, p + 3 * FIRST, 1);
    REQUIRE(!bumped(p[3 * FIRST]));
    kit_check(a);
    REQUIRE_EQ(end_current(EPOCH_RELEASE).objects_released, 3 * FIRST + 1);
}

/* What a trim gives back can be taken anew. */
static void a_trim_while_it_bumps(void) {
    for (unsigned lap = 0; lap < 5; lap++) {
        kit_take(a, SIZE, p, FIRST + 1);
        REQUIRE_EQ(regions_among(p, FIRST + 1), FIRST + 1);
        give(p, FIRST);
        slab_trim(a);
        REQUIRE_EQ(kit_committed_now(a), rest_of(1));
        kit_check(a);
        give(p + FIRST, 1);
        slab_trim(a);
        REQUIRE_EQ(kit_committed_now(a), 0);
        REQUIRE(heap_of(kit_hide(slab_malloc(a, SIZE)))->bumps);
        slab_trim(a);
        REQUIRE_EQ(end_current(EPOCH_RELEASE).objects_released, 1);
    }
}

/* ---- what is promised of objects ---- */

static void refusals(void) {
    kit_take(a, SIZE, p, 4);
    refused((uint8_t*)p[1] + 16, SLAB_MISUSE_INTERIOR_POINTER);
    give(p, 1);
    refused(p[0], SLAB_MISUSE_DOUBLE_FREE);
    give_elsewhere(p + 1, 1);
    refused(p[1], SLAB_MISUSE_DOUBLE_FREE);
    refused((uint8_t*)p[3] + SIZE, SLAB_MISUSE_STALE_FREE); /* nothing has been there */
    EpochReceipt r = end_current(EPOCH_RELEASE);
    REQUIRE_EQ(r.objects_allocated, 4);
    REQUIRE_EQ(r.objects_freed, 2);
    REQUIRE_EQ(r.objects_released, 2);
    REQUIRE_EQ(r.bytes_released, 2 * SIZE);
    REQUIRE_EQ(r.regions_returned, 1);
    refused(p[2], SLAB_MISUSE_STALE_FREE);
    kit_take(a, SIZE, p, 1);
    refused(p[2], SLAB_MISUSE_STALE_FREE);
    REQUIRE_EQ(end_current(EPOCH_RELEASE).objects_released, 1);
}

static void late_frees(void) {
    for (unsigned theirs = 0; theirs < 2; theirs++) {
        kit_take(a, SIZE, p, OURS);
        EpochReceipt r = end_current(EPOCH_DRAIN);
        REQUIRE_EQ(r.objects_escaped, OURS);
        REQUIRE_EQ(kit_committed_now(a), rest_of(3));
        for (unsigned k = 0; k < 3; k++) {
            if (theirs) give_elsewhere(p + k * FIRST, FIRST);
            else give(p + k * FIRST, FIRST);
            REQUIRE_EQ(kit_committed_now(a), rest_of(2 - k));
            kit_check(a);
        }
    }
}

/* The ring has moved on, and the epoch is not closed: a region that becomes empty goes, whoever was the last. */
static void an_advanced_epoch(void) {
    for (unsigned theirs = 0; theirs < 2; theirs++) {
        kit_take(a, SIZE, p, FIRST + 1);
        EpochId old = epoch_current(a);
        epoch_advance(a);
        kit_take(a, SIZE, p + FIRST + 1, 1); /* the thread lets go of the other */
        if (theirs) give_elsewhere(p, FIRST + 1);
        else give(p, FIRST + 1);
        REQUIRE_EQ(kit_committed_now(a), rest_of(1));
        kit_check(a);
        EpochReceipt r = kit_end(a, old, EPOCH_RELEASE);
        REQUIRE_EQ(r.objects_allocated, FIRST + 1);
        REQUIRE_EQ(r.objects_freed, FIRST + 1);
        REQUIRE_EQ(end_current(EPOCH_RELEASE).objects_released, 1);
    }
}

static void* close_it(void* r) { return epoch_close_ex(a, 0, EPOCH_RELEASE, r) ? r : NULL; }
static void another_thread_closes(void) {
    EpochReceipt r;
    kit_take(a, SIZE, p, FIRST + 2);
    give(p, 2);
    kit_on_thread(close_it, &r);
    KIT_BALANCED(&r);
    REQUIRE_EQ(r.objects_released, FIRST);
    REQUIRE_EQ(r.regions_returned, 2);
    REQUIRE_EQ(kit_committed_now(a), 0);
    refused(p[FIRST], SLAB_MISUSE_STALE_FREE);
    kit_take(a, SIZE, p, 1);
    REQUIRE(bumped(p[0]));
    REQUIRE_EQ(end_current(EPOCH_RELEASE).objects_released, 1);
}

static void handles(void) {
    SlabHandle h[OURS + 1], second;
    for (unsigned i = 0; i <= OURS; i++) {
        REQUIRE((p[i] = alloc_obj(a, SIZE, &h[i])) != NULL);
        REQUIRE_EQ(bumped(p[i]), i < OURS);
        REQUIRE_EQ(slab_handle_ptr(a, h[i]), p[i]);
    }
    REQUIRE(free_obj(a, h[0]));
    REQUIRE(!free_obj(a, h[0]));
    REQUIRE(!slab_free_checked(a, p[0]));
    REQUIRE(slab_free_checked(a, p[1]));
    REQUIRE_NULL(slab_handle_ptr(a, h[1]));
    second = slab_ptr_handle(a, p[2]);
    REQUIRE(second != 0 && slab_handle_ptr(a, second) == p[2]);
    kit_check(a);
    REQUIRE_EQ(end_current(EPOCH_RELEASE).objects_released, OURS - 1);
    for (unsigned i = 0; i <= OURS; i++) REQUIRE_NULL(slab_handle_ptr(a, h[i]));
    REQUIRE(!free_obj(a, h[OURS - 1]));
}

/* Where it is in its region; it gets none alone. */
static void growth(void) {
    void* q = slab_malloc(a, 100);
    memset(q, 7, 100);
    REQUIRE_EQ(kit_hide(slab_realloc(a, q, 1000)), q);
    REQUIRE_EQ(kit_hide(slab_realloc(a, q, 4000)), q);
    REQUIRE_EQ(slab_usable_size(a, q), 4000);
    q = slab_realloc(a, q, 20000);
    REQUIRE(!bumped(q));
    for (unsigned i = 0; i < 100; i++) REQUIRE_EQ(((uint8_t*)q)[i], 7);
    kit_check(a);
    REQUIRE_EQ(end_current(EPOCH_RELEASE).objects_released, 1);
}

/* ---- figures ---- */

static void figures(void) {
    SlabClassStats c;
    kit_take(a, 100, p, 30);
    give(p, 10);
    slab_stats_class(a, (uint32_t)tsi_class_of(112) - 1, &c);
    REQUIRE_EQ(c.live_bytes, 20 * 112);
    REQUIRE_EQ(c.net_slabs, 0);
    slab_stats_class(a, TSI_CLASS_REGION - 1, &c);
    REQUIRE_EQ(c.net_slabs, 1);
    REQUIRE_EQ(c.committed_bytes, rest_of(1));
    SlabEpochStats e;
    slab_stats_epoch(a, (uint32_t)tsi_class_of(112) - 1, 0, &e);
    REQUIRE_EQ(e.alloc_count, 20);
    REQUIRE_EQ(kit_live(a), 20);
    SlabPhaseStats row[4];
    REQUIRE_EQ(slab_stats_phases(a, row, 4) >= 1, 1);
    REQUIRE_EQ(end_current(EPOCH_RELEASE).objects_released, 20);
}

/* A label's phases begin with what a domain of it has needed; epochs of the ring say nothing of that. */
static void nothing_is_learned(void) {
    epoch_domain_t* phase;
    slab_epoch_set_label(a, epoch_current(a), "much");
    kit_take(a, SIZE, p, OURS + MORE);
    REQUIRE_EQ(end_current(EPOCH_RELEASE).objects_released, OURS + MORE);
    REQUIRE((phase = epoch_domain_create_labeled(a, "much")) != NULL);
    TsiRegion* r = region_of(epoch_domain_malloc(phase, SIZE));
    REQUIRE_EQ(tsi_region_room(r), 4096);
    epoch_domain_destroy(phase);
}

/* What is slow counts for the samples, what is large for the profile, wherever it lies. */
static void samples_and_profile(void) {
    SlabOptions o = kit_options();
    o.sampling_period = 16;
    o.profile_bytes = 512;
    SlabAllocator* mine = a;
    a = kit_create_with(&o);
    space = &tsi_arena(a)->space;
    for (unsigned lap = 0; lap < 20; lap++) {
        kit_take(a, SIZE, p, OURS + MORE);
        REQUIRE_EQ(regions_among(p, OURS + MORE), OURS);
        give(p, OURS);
        (void)end_current(EPOCH_RELEASE);
    }
    TsiBinding* b = kit_binding(a);
    uint64_t due = kit_global(a).total_slow_path_hits / 16, sampled = tsi_load_relaxed(&b->samples.sum[TSI_SAMPLE_ALLOC]);
    REQUIRE(due != 0 && sampled + 1 >= due && sampled < 20 * (OURS + MORE) / 16);
    kit_check(a);
    slab_allocator_free(a);
    a = mine;
    space = &tsi_arena(a)->space;
}

/* ---- threads and processes ---- */

static void* leave_some(void* keep) {
    void* q[FIRST];
    kit_take(a, SIZE, q, FIRST / 2);
    give(q + 1, FIRST / 2 - 1);
    if (*(void**)keep != NULL) *(void**)keep = q[0];
    else give(q, 1);
    return NULL;
}
/* A thread that had little and kept nothing leaves nothing; else who comes goes on in its region. */
static void a_thread_that_leaves(void) {
    void* kept = NULL;
    for (unsigned i = 0; i < 5; i++) kit_on_thread(leave_some, &kept);
    REQUIRE_EQ(kit_committed_now(a), 0);
    kept = &kept;
    kit_on_thread(leave_some, &kept);
    REQUIRE_EQ(kit_committed_now(a), rest_of(1));
    kit_take(a, SIZE, p, FIRST / 2);
    REQUIRE_EQ(kit_committed_now(a), rest_of(1));
    REQUIRE_EQ(kit_place(a, p[0]).slab_id, kit_place(a, kept).slab_id);
    kit_check(a);
    REQUIRE(slab_free_checked(a, kept));
    REQUIRE_EQ(end_current(EPOCH_RELEASE).objects_released, FIRST / 2);
}

/* A child frees and allocates in its own region, and what it finds of a thread that is not there any more. */
static void a_child(void) {
    unsigned n = FIRST / 2;
    int status;
    kit_take(a, SIZE, p, n);
    kit_worker_start(&worker);
    kit_worker_run(&worker, take_theirs, &n);
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        char why[160];
        bool ok = tsi_check_allocator(a, why, sizeof why);
        for (unsigned i = 0; i < n; i++) ok &= slab_free_checked(a, p[i]) && slab_free_checked(a, p[2 * FIRST + i]);
        for (unsigned i = 0; i < OURS + MORE; i++) ok &= (p[i] = slab_malloc(a, SIZE)) != NULL;
        EpochReceipt r;
        ok &= epoch_close_ex(a, 0, EPOCH_RELEASE, &r) && r.objects_released == OURS + MORE;
        ok &= tsi_check_allocator(a, why, sizeof why) && kit_committed_now(a) == 0;
        _exit(ok ? 0 : 1);
    }
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    kit_worker_stop(&worker);
    REQUIRE_EQ(end_current(EPOCH_RELEASE).objects_released, 2 * n);
}

#define TEST(f) CHECK_CASE_WITH(f, open_allocator, close_allocator)
int main(int argc, char** argv) {
    const CheckCase tests[] = {
        TEST(the_first_bytes),
        TEST(as_far_after_a_trim),
        TEST(each_heap_has_its_own),
        TEST(too_large_for_it),
        TEST(by_class_from_the_first),
        TEST(an_empty_region_is_used_again),
        TEST(one_that_others_have_emptied),
        TEST(a_trim_while_it_bumps),
        TEST(refusals),
        TEST(late_frees),
        TEST(an_advanced_epoch),
        TEST(another_thread_closes),
        TEST(handles),
        TEST(growth),
        TEST(figures),
        TEST(nothing_is_learned),
        TEST(samples_and_profile),
        TEST(a_thread_that_leaves),
        TEST(a_child),
    };
    return CHECK_RUN(argc, argv, tests);
}
