/*
 * accounts.c - who is charged: figures by label, phase and class where they are easily booked twice, never, or to
 * somebody else. The model test compares all of them at random; here are the single cases.
 */
#include "kit/fixture.h"

enum { ROWS = 64 };

static SlabLabelStats label_row(SlabAllocator* a, const char* label) {
    static SlabLabelStats rows[ROWS];
    static const SlabLabelStats none;
    size_t n = slab_stats_labels(a, rows, ROWS);
    for (size_t i = 0; i < n && i < ROWS; i++)
        if (strcmp(rows[i].label, label) == 0) return rows[i];
    return none;
}

static SlabPhaseStats phase_row(SlabAllocator* a, uint64_t era) {
    static SlabPhaseStats rows[ROWS];
    static const SlabPhaseStats none;
    size_t n = slab_stats_phases(a, rows, ROWS);
    for (size_t i = 0; i < n && i < ROWS; i++)
        if (rows[i].epoch_era == era) return rows[i];
    return none;
}

static SlabClassStats class_row(SlabAllocator* a, uint32_t index) {
    SlabClassStats c;
    slab_stats_class(a, index, &c);
    return c;
}

enum { LARGE = 54 }; /* as docs/semantics.md has it */

static void must(const void* p) {
    if (p == NULL) {
        fprintf(stderr, "no memory\n");
        exit(3);
    }
}

static void* object(SlabAllocator* a, size_t size, EpochId id) {
    void* p = slab_malloc_epoch(a, size, id);
    must(p);
    return p;
}

/* ---- labels ----------------------------------------------------------------------------- */

static void frees_count_for_the_label_of_the_moment(void) {
    SlabAllocator* a = kit_create();
    void* p[200];
    slab_epoch_set_label(a, 0, "first");
    for (unsigned i = 0; i < 200; i++) p[i] = object(a, 100, 0);
    for (unsigned i = 0; i < 20; i++) slab_free(a, p[i]);
    slab_epoch_set_label(a, 0, "second");
    CHECK_EQ(label_row(a, "first").objects_freed, 20); /* what lives was not freed, it moved */
    CHECK_EQ(label_row(a, "second").objects_freed, 0);
    for (unsigned i = 20; i < 50; i++) slab_free(a, p[i]);
    CHECK(epoch_close_ex(a, 0, EPOCH_RELEASE, NULL));
    CHECK_EQ(label_row(a, "first").objects_freed, 20);
    CHECK_EQ(label_row(a, "second").objects_freed, 30);
    CHECK_EQ(label_row(a, "second").objects_released, 150);
    slab_allocator_free(a);
}

static void what_outlives_a_taken_over_epoch_escapes(void) {
    SlabOptions o = kit_options();
    o.ring_size = 2;
    SlabAllocator* a = kit_create_with(&o);
    uint64_t era = epoch_era(a, 0);
    slab_epoch_set_label(a, 0, "kept");
    void* p = object(a, 100, 0);
    epoch_advance(a);
    epoch_advance(a); /* id 0 names another incarnation now */
    CHECK_EQ(label_row(a, "kept").objects_escaped, 0);
    CHECK(epoch_close_era(a, era, EPOCH_DRAIN, NULL));
    CHECK(epoch_close_era(a, era, EPOCH_DRAIN, NULL));
    CHECK_EQ(label_row(a, "kept").objects_escaped, 1); /* once, however often it is closed */
    slab_free(a, p);
    slab_allocator_free(a);
}

static void an_empty_phase_ends_once(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_begin(a, "empty");
    CHECK(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, NULL));
    epoch_domain_end(d);
    CHECK_EQ(label_row(a, "empty").phases_ended, 1);
    CHECK_EQ(label_row(a, "empty").phases_opened, 1);
    slab_allocator_free(a);
}

static void empty_slabs_do_not_drain(void) {
    SlabAllocator* a = kit_create();
    slab_epoch_set_label(a, 0, "idle");
    slab_free(a, object(a, 100, 0));
    epoch_advance(a); /* returns nothing: the slab is still there */
    CHECK_EQ(phase_row(a, 1).slabs, 1);
    CHECK_EQ(label_row(a, "idle").phases_draining, 0);
    slab_allocator_free(a);
}

static void a_peak_that_was_told_stays(void) {
    SlabAllocator* a = kit_create();
    slab_epoch_set_label(a, 0, "peak");
    void* p = object(a, 100, 0); /* its slab is less than a thread keeps to itself */
    uint64_t peak = label_row(a, "peak").peak_bytes;
    CHECK_GE(peak, slab_page_size());
    slab_free(a, p);
    slab_trim(a);
    CHECK_EQ(label_row(a, "peak").committed_bytes, 0);
    CHECK_EQ(label_row(a, "peak").peak_bytes, peak);
    slab_allocator_free(a);
}

static void refused_pointers_count_where_they_lead(void) {
    SlabAllocator* a = kit_create();
    slab_epoch_set_label(a, 0, "victim");
    char *p = object(a, 256, 0), *large = object(a, 1 << 20, 0);
    CHECK(!slab_free_checked(a, p + 16));
    CHECK(!slab_free_checked(a, large + 4096));
    CHECK_NULL(slab_realloc(a, p + 32, 10));
    slab_free_sized(a, p, 5000);
    CHECK_EQ(label_row(a, "victim").refusals, 4);
    CHECK_EQ(label_row(a, "(unlabeled)").refusals, 0);
    slab_allocator_free(a);
}

/* ---- slabs and large objects ------------------------------------------------------------ */

static void ends_look_at_large_objects(void) {
    SlabAllocator* a = kit_create();
    slab_epoch_set_label(a, 1, "kept");
    slab_epoch_set_label(a, 2, "gone");
    for (int i = 0; i < 3; i++) {
        (void)object(a, 1 << 20, 1);
        (void)object(a, 1 << 20, 2);
    }
    CHECK(epoch_close_ex(a, 1, EPOCH_DRAIN, NULL));
    CHECK(epoch_close_ex(a, 2, EPOCH_RELEASE, NULL));
    CHECK_EQ(label_row(a, "kept").closed_slabs, 3);
    CHECK_EQ(label_row(a, "kept").pinned_slabs, 3);
    CHECK_EQ(label_row(a, "gone").closed_slabs, 3);
    CHECK_EQ(label_row(a, "gone").pinned_slabs, 0);
    CHECK_EQ(class_row(a, LARGE).epoch_close_scanned_slabs, 6);
    CHECK_EQ(class_row(a, LARGE).epoch_close_recycled_slabs, 3);
    CHECK_EQ(class_row(a, LARGE).epoch_close_calls, 2);
    slab_allocator_free(a);
}

static void large_objects_take_locks_for_their_label(void) {
    SlabAllocator* a = kit_create();
    slab_epoch_set_label(a, 1, "large");
    (void)object(a, 1 << 20, 1);
    (void)object(a, 1 << 20, 2);
    SlabClassStats c = class_row(a, LARGE);
    CHECK_EQ(c.lock_fast_acquire_by_label[0], 1);
    CHECK_EQ(c.lock_fast_acquire_by_label[1], 1);
    CHECK_EQ(c.object_size, 0); /* each has its own */
    slab_allocator_free(a);
}

static void slabs_that_were_not_there_are_not_taken(void) {
    SlabOptions o = kit_options();
    o.max_bytes = 1 << 20;
    SlabAllocator* a = kit_create_with(&o);
    uint64_t taken = 0;
    while (slab_malloc(a, 3000) != NULL) {
    }
    CHECK_EQ(errno, EDQUOT);
    for (uint32_t n = 0; n <= LARGE; n++) taken += class_row(a, n).new_slab_count;
    CHECK_EQ(taken, kit_global(a).net_slabs);
    CHECK_EQ(taken, kit_global(a).total_slabs_allocated);
    slab_allocator_free(a);
}

static void what_stays_was_not_given_back(void) {
    SlabOptions o = kit_options();
    o.purge_policy = SLAB_PURGE_NEVER;
    o.warm_bytes = UINT64_MAX;
    SlabAllocator* a = kit_create_with(&o);
    EpochReceipt r;
    void* p[500];
    for (int i = 0; i < 500; i++) p[i] = object(a, 1024, 1);
    for (int i = 1; i < 500; i++) slab_free(a, p[i]);
    CHECK(epoch_close_ex(a, 1, EPOCH_DRAIN, &r)); /* one object keeps its slab; all others leave the phase */
    CHECK_GT(r.bytes_returned, 0);
    CHECK_EQ(phase_row(a, epoch_era(a, 1)).slabs, 1);
    CHECK_EQ(phase_row(a, epoch_era(a, 1)).purged_bytes, 0);
    CHECK_EQ(kit_global(a).total_madvise_bytes, 0);
    CHECK(epoch_close_ex(a, 1, EPOCH_DRAIN, &r));
    CHECK_EQ(r.bytes_returned, 0);
    slab_allocator_free(a);
}

/* ---- phases ----------------------------------------------------------------------------- */

static void scopes_of_a_domain_are_references(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_begin(a, "inside");
    must(slab_malloc(a, 10));
    epoch_domain_enter(d);
    slab_epoch_inc_refcount(a, d->epoch_id);
    CHECK_EQ(phase_row(a, d->epoch_era).refcount, 3);
    epoch_domain_exit(d);
    CHECK_EQ(phase_row(a, d->epoch_era).refcount, 2);
    CHECK(epoch_domain_reset(d));
    must(slab_malloc(a, 10));
    CHECK_EQ(phase_row(a, d->epoch_era).refcount, 1); /* the count was the old incarnation's */
    CHECK(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, NULL));
    CHECK_EQ(phase_row(a, d->epoch_era).refcount, 1); /* closed, and somebody is inside */
    epoch_domain_end(d);
    slab_allocator_free(a);
}

static pthread_barrier_t all_there;

static void fill_a_slab(SlabAllocator* a) {
    for (uint32_t n = slab_object_count(64); n > 0; n--) must(slab_malloc_epoch(a, 64, 1));
}

/* Leaves when all have a heap of their own. */
static void* worker(void* arg) {
    fill_a_slab(arg);
    pthread_barrier_wait(&all_there);
    pthread_barrier_wait(&all_there);
    return NULL;
}

static void a_thread_is_one_thread(void) {
    if (kit_shared()) SKIP("in shared mode no thread has slabs of its own in an epoch");
    SlabAllocator* a = kit_create();
    pthread_t t[3];
    REQUIRE(pthread_barrier_init(&all_there, NULL, 4) == 0);
    for (int i = 0; i < 3; i++) t[i] = kit_thread(worker, a);
    pthread_barrier_wait(&all_there);
    CHECK_EQ(phase_row(a, epoch_era(a, 1)).threads, 3);
    pthread_barrier_wait(&all_there);
    for (int i = 0; i < 3; i++) pthread_join(t[i], NULL);
    CHECK_EQ(phase_row(a, epoch_era(a, 1)).threads, 0); /* they have left */
    for (int i = 0; i < 10; i++) fill_a_slab(a);        /* and their heaps are ours now */
    CHECK_EQ(phase_row(a, epoch_era(a, 1)).threads, 1);
    slab_allocator_free(a);
    pthread_barrier_destroy(&all_there);
}

static const CheckCase cases[] = {
    CHECK_CASE(frees_count_for_the_label_of_the_moment),
    CHECK_CASE(what_outlives_a_taken_over_epoch_escapes),
    CHECK_CASE(an_empty_phase_ends_once),
    CHECK_CASE(empty_slabs_do_not_drain),
    CHECK_CASE(a_peak_that_was_told_stays),
    CHECK_CASE(refused_pointers_count_where_they_lead),
    CHECK_CASE(ends_look_at_large_objects),
    CHECK_CASE(large_objects_take_locks_for_their_label),
    CHECK_CASE(slabs_that_were_not_there_are_not_taken),
    CHECK_CASE(what_stays_was_not_given_back),
    CHECK_CASE(scopes_of_a_domain_are_references),
    CHECK_CASE(a_thread_is_one_thread),
};
CHECK_MAIN(cases)
