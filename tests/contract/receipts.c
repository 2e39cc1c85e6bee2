/*
 * receipts.c - what a close reports, to the object and the byte, and the cleanups that run when
 * an epoch has ended.
 */
#include "kit/fixture.h"

typedef struct Sum {
    uint64_t objects, bytes;
} Sum;

static void add(Sum* s, size_t usable) {
    s->objects++;
    s->bytes += usable;
}

/* Allocates `count` objects of all kinds of sizes in `id`, frees every third, and sums both. */
static bool churn(SlabAllocator* a, EpochId id, void** kept, size_t count, Sum* allocated, Sum* freed) {
    for (size_t i = 0; i < count; i++) {
        size_t size = i % 97 == 0 ? 200000 + i * 1000 : 1 + (i * 131) % 5000;
        kept[i] = slab_malloc_epoch(a, size, id);
        if (kept[i] == NULL) {
            return false;
        }
        add(allocated, slab_usable_size(a, kept[i]));
    }
    for (size_t i = 0; i < count; i += 3) {
        add(freed, slab_usable_size(a, kept[i]));
        slab_free(a, kept[i]);
        kept[i] = NULL;
    }
    return true;
}

static void check_terms(const EpochReceipt* r, Sum allocated, Sum freed, Sum released, Sum escaped) {
    KIT_BALANCED(r);
    CHECK_EQ(r->version, 2);
    CHECK_EQ(r->objects_allocated, allocated.objects);
    CHECK_EQ(r->bytes_allocated, allocated.bytes);
    CHECK_EQ(r->objects_freed, freed.objects);
    CHECK_EQ(r->bytes_freed, freed.bytes);
    CHECK_EQ(r->objects_released, released.objects);
    CHECK_EQ(r->bytes_released, released.bytes);
    CHECK_EQ(r->objects_escaped, escaped.objects);
    CHECK_EQ(r->bytes_escaped, escaped.bytes);
    CHECK_EQ(r->slabs_deferred, 0);
    CHECK_EQ(r->bytes_deferred, 0);
}

enum { COUNT = 1500 };
static void* kept[COUNT];

static void drain_then_release(void) {
    SlabAllocator* a = kit_create_cold();
    Sum allocated = {0, 0}, freed = {0, 0}, none = {0, 0};
    slab_epoch_set_label(a, 3, "batch");
    REQUIRE(churn(a, 3, kept, COUNT, &allocated, &freed));
    uint64_t committed = kit_committed(a);
    Sum rest = {allocated.objects - freed.objects, allocated.bytes - freed.bytes};
    EpochReceipt r;
    CHECK(epoch_close_ex(a, 3, EPOCH_DRAIN, &r));
    check_terms(&r, allocated, freed, none, rest);
    CHECK_EQ(r.epoch_id, 3);
    CHECK_EQ(r.epoch_era, epoch_era(a, 3));
    CHECK_STR(r.label, "batch");
    CHECK_LE(kit_committed(a), committed);
    CHECK_EQ(kit_live(a), rest.objects);
    for (size_t i = 0; i < COUNT; i++) {
        CHECK(kept[i] == NULL || slab_usable_size(a, kept[i]) != 0);
    }
    CHECK(epoch_close_ex(a, 3, EPOCH_RELEASE, &r));
    check_terms(&r, allocated, freed, rest, none);
    CHECK_GT(r.slabs_returned, 0);
    CHECK_GT(r.bytes_returned, rest.bytes - 1);
    CHECK_EQ(r.bytes_returned % slab_page_size(), 0);
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(kit_committed(a), 0);
    CHECK(epoch_close_ex(a, 3, EPOCH_RELEASE, &r));
    KIT_BALANCED(&r);
    CHECK_EQ(r.slabs_returned, 0);
    slab_allocator_free(a);
}

static void release_at_once(void) {
    SlabAllocator* a = kit_create_cold();
    Sum allocated = {0, 0}, freed = {0, 0}, none = {0, 0};
    REQUIRE(churn(a, 5, kept, COUNT, &allocated, &freed));
    Sum rest = {allocated.objects - freed.objects, allocated.bytes - freed.bytes};
    EpochReceipt r;
    CHECK(epoch_close_ex(a, 5, EPOCH_RELEASE, &r));
    check_terms(&r, allocated, freed, rest, none);
    CHECK_EQ(kit_committed(a), 0);
    uint64_t before = kit_refused_frees(a), refused = 0;
    for (size_t i = 0; i < COUNT; i++) {
        if (kept[i] != NULL) {
            CHECK(!slab_free_checked(a, kept[i]));
            refused++;
        }
    }
    CHECK_EQ(kit_refused_frees(a), before + refused);
    slab_allocator_free(a);
}

static void all_freed_before(void) {
    for (int mode = 0; mode < 2; mode++) {
        SlabAllocator* a = kit_create_cold();
        Sum none = {0, 0}, allocated = {0, 0};
        for (size_t i = 0; i < COUNT; i++) {
            kept[i] = slab_malloc_epoch(a, 1 + i, 1);
            REQUIRE(kept[i] != NULL);
            add(&allocated, slab_usable_size(a, kept[i]));
        }
        for (size_t i = 0; i < COUNT; i++) {
            slab_free(a, kept[i]);
        }
        EpochReceipt r;
        CHECK(epoch_close_ex(a, 1, (EpochCloseMode)mode, &r));
        check_terms(&r, allocated, allocated, none, none);
        CHECK_EQ(kit_committed(a), 0);
        slab_allocator_free(a);
    }
}

/* One slot allocated and freed over and over leaves as many objects in the receipt. */
static void hot_pair(void) {
    SlabAllocator* a = kit_create();
    for (size_t i = 0; i < 10000; i++) {
        void* p = slab_malloc_epoch(a, 128, 2);
        REQUIRE(p != NULL);
        slab_free(a, p);
    }
    for (size_t i = 0; i < 5000; i++) {
        SlabHandle h;
        REQUIRE(alloc_obj_epoch(a, 128, 2, &h) != NULL);
        CHECK(free_obj(a, h));
    }
    EpochReceipt r;
    CHECK(epoch_close_ex(a, 2, EPOCH_DRAIN, &r));
    check_terms(&r, (Sum){15000, 15000 * 128}, (Sum){15000, 15000 * 128}, (Sum){0, 0}, (Sum){0, 0});
    slab_allocator_free(a);
}

typedef struct Part {
    SlabAllocator* a;
    EpochId id;
    size_t index;
    void* mine[COUNT];
    struct Part* other;
    pthread_barrier_t* meet;
    Sum allocated, freed;
} Part;

static void* part_main(void* arg) {
    Part* part = arg;
    for (size_t i = 0; i < COUNT; i++) {
        part->mine[i] = slab_malloc_epoch(part->a, 16 + (i * 7 + part->index) % 1500, part->id);
        if (!CHECK(part->mine[i] != NULL)) {
            return NULL;
        }
        add(&part->allocated, slab_usable_size(part->a, part->mine[i]));
    }
    pthread_barrier_wait(part->meet);
    for (size_t i = part->index; i < COUNT; i += 4) { /* another thread's objects */
        add(&part->freed, slab_usable_size(part->a, part->other->mine[i]));
        CHECK(slab_free_checked(part->a, part->other->mine[i]));
    }
    pthread_barrier_wait(part->meet);
    pthread_barrier_wait(part->meet); /* idle, still owning slabs, while the epoch is closed */
    return NULL;
}

static void several_threads(void) {
    enum { THREADS = 4 };
    static Part parts[THREADS];
    for (int mode = 0; mode < 2; mode++) {
        SlabAllocator* a = kit_create_cold();
        pthread_barrier_t meet;
        pthread_t threads[THREADS];
        pthread_barrier_init(&meet, NULL, THREADS + 1);
        Sum allocated = {0, 0}, freed = {0, 0}, none = {0, 0};
        for (size_t i = 0; i < THREADS; i++) {
            memset(&parts[i], 0, sizeof parts[i]);
            parts[i].a = a;
            parts[i].id = 6;
            parts[i].index = i;
            parts[i].other = &parts[(i + 1) % THREADS];
            parts[i].meet = &meet;
            threads[i] = kit_thread(part_main, &parts[i]);
        }
        pthread_barrier_wait(&meet);
        pthread_barrier_wait(&meet);
        for (size_t i = 0; i < THREADS; i++) {
            allocated.objects += parts[i].allocated.objects;
            allocated.bytes += parts[i].allocated.bytes;
            freed.objects += parts[i].freed.objects;
            freed.bytes += parts[i].freed.bytes;
        }
        Sum rest = {allocated.objects - freed.objects, allocated.bytes - freed.bytes};
        EpochReceipt r;
        CHECK(epoch_close_ex(a, 6, (EpochCloseMode)mode, &r));
        check_terms(&r, allocated, freed, mode == EPOCH_RELEASE ? rest : none, mode == EPOCH_DRAIN ? rest : none);
        CHECK_EQ(kit_live(a), mode == EPOCH_DRAIN ? rest.objects : 0);
        pthread_barrier_wait(&meet);
        for (size_t i = 0; i < THREADS; i++) {
            pthread_join(threads[i], NULL);
        }
        CHECK(epoch_close_ex(a, 6, EPOCH_RELEASE, &r));
        KIT_BALANCED(&r);
        CHECK_EQ(kit_committed(a), 0);
        pthread_barrier_destroy(&meet);
        slab_allocator_free(a);
    }
}

static void by_era(void) {
    SlabAllocator* a = kit_create();
    EpochReceipt r;
    for (size_t i = 0; i < 100; i++) {
        kept[i] = slab_malloc(a, 128);
    }
    uint64_t era = epoch_era(a, 0), unused = epoch_era(a, 1);
    slab_epoch_set_label(a, 0, "long ago");
    for (int i = 0; i < 40; i++) {
        epoch_advance(a);
    }
    slab_free(a, kept[0]);
    CHECK(epoch_close_era(a, era, EPOCH_DRAIN, &r));
    check_terms(&r, (Sum){100, 12800}, (Sum){1, 128}, (Sum){0, 0}, (Sum){99, 99 * 128});
    CHECK_STR(r.label, "long ago");
    CHECK_EQ(r.epoch_era, era);
    CHECK_EQ(r.epoch_id, 0);
    CHECK_EQ(epoch_state(a, 0), EPOCH_CLOSING);
    CHECK_EQ(epoch_state(a, epoch_current(a)), EPOCH_ACTIVE);
    CHECK(epoch_close_era(a, era, EPOCH_RELEASE, &r));
    check_terms(&r, (Sum){100, 12800}, (Sum){1, 128}, (Sum){99, 99 * 128}, (Sum){0, 0});
    CHECK(!slab_free_checked(a, kept[1]));
    CHECK(!epoch_close_era(a, era, EPOCH_RELEASE, &r));
    CHECK(!epoch_close_era(a, unused, EPOCH_DRAIN, &r)); /* empty, taken over */
    EpochId was = epoch_current(a);
    uint64_t now = epoch_era(a, was);
    CHECK(slab_malloc(a, 64) != NULL);
    CHECK(epoch_close_era(a, now, EPOCH_RELEASE, &r));
    CHECK_EQ(r.objects_released, 1);
    CHECK_EQ(r.epoch_id, was);
    CHECK_EQ(epoch_state(a, was), EPOCH_CLOSING);
    CHECK_EQ(epoch_current(a), was + 1);
    epoch_domain_t* d = epoch_domain_create(a);
    CHECK(epoch_domain_malloc(d, 64) != NULL);
    CHECK(epoch_close_era(a, d->epoch_era, EPOCH_RELEASE, &r));
    CHECK_EQ(r.epoch_id, d->epoch_id);
    CHECK_EQ(r.objects_released, 1);
    epoch_domain_destroy(d);
    slab_allocator_free(a);
}

/* ---- cleanups ---- */

static int order[16];
static int ended;

static void note_end(void* arg) { order[ended++ & 15] = *(int*)arg; }

static int names[] = {10, 11, 12, 13};

static void register_four(SlabAllocator* a, EpochId id) {
    ended = 0;
    for (int i = 0; i < 4; i++) {
        CHECK(slab_epoch_on_end(a, id, note_end, &names[i]));
    }
}

static void check_four_ran_backwards(void) {
    CHECK_EQ(ended, 4);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(order[i], names[3 - i]);
    }
}

static void cleanups_run_once_last_first(void) {
    SlabAllocator* a = kit_create();
    register_four(a, 1); /* released with live objects */
    CHECK(slab_malloc_epoch(a, 64, 1) != NULL);
    CHECK_EQ(ended, 0);
    CHECK(epoch_close_ex(a, 1, EPOCH_RELEASE, NULL));
    check_four_ran_backwards();
    CHECK(epoch_close_ex(a, 1, EPOCH_RELEASE, NULL));
    CHECK_EQ(ended, 4);
    CHECK(!slab_epoch_on_end(a, 1, note_end, &names[0]));

    register_four(a, 2); /* closed while empty, never used */
    epoch_close(a, 2);
    check_four_ran_backwards();

    register_four(a, 3); /* drained by the last of several frees */
    for (size_t i = 0; i < 300; i++) {
        kept[i] = slab_malloc_epoch(a, 200, 3);
    }
    epoch_close(a, 3);
    for (size_t i = 0; i < 300; i++) {
        CHECK_EQ(ended, 0);
        CHECK(slab_free_checked(a, kept[i]));
    }
    check_four_ran_backwards();
    epoch_close(a, 3);
    CHECK_EQ(ended, 4);

    register_four(a, 4); /* drained, then released */
    CHECK(slab_malloc_epoch(a, 64, 4) != NULL);
    epoch_close(a, 4);
    CHECK_EQ(ended, 0);
    CHECK(epoch_close_ex(a, 4, EPOCH_RELEASE, NULL));
    check_four_ran_backwards();
    slab_allocator_free(a);
}

static void cleanups_of_a_phase_taken_over(void) {
    SlabAllocator* a = kit_create();
    register_four(a, 0); /* empty */
    for (int i = 0; i < 16; i++) {
        epoch_advance(a);
    }
    check_four_ran_backwards();
    register_four(a, epoch_current(a)); /* with a live object */
    void* p = slab_malloc(a, 64);
    for (int i = 0; i < 16; i++) {
        epoch_advance(a);
    }
    CHECK(slab_free_checked(a, p));
    check_four_ran_backwards();
    for (int i = 0; i < 16; i++) {
        epoch_advance(a);
    }
    CHECK_EQ(ended, 4);
    slab_allocator_free(a);
}

static void* free_one(void* arg) {
    CHECK(slab_free_checked(((void**)arg)[0], ((void**)arg)[1]));
    return NULL;
}

static void free_another(void* arg) {
    ended++;
    CHECK(slab_free_checked(((void**)arg)[0], ((void**)arg)[1]));
}

static void cleanups_on_other_threads_and_nested(void) {
    SlabAllocator* a = kit_create();
    void* elsewhere[] = {a, slab_malloc(a, 64)};
    void* last[] = {a, slab_malloc_epoch(a, 64, 1)};
    ended = 0;
    CHECK(slab_epoch_on_end(a, 1, free_another, elsewhere));
    epoch_close(a, 1);
    CHECK_EQ(ended, 0);
    kit_on_thread(free_one, last); /* a remote free drains the epoch and runs the cleanup there */
    CHECK_EQ(ended, 1);
    CHECK_EQ(kit_live(a), 0);
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    ended = 0;
    CHECK(slab_epoch_on_end(a, d->epoch_id, note_end, &names[0]));
    CHECK(slab_malloc(a, 64) != NULL);
    CHECK(epoch_domain_reset(d));
    CHECK_EQ(ended, 1);
    CHECK(slab_epoch_on_end(a, d->epoch_id, note_end, &names[1]));
    epoch_domain_end(d);
    CHECK_EQ(ended, 2);
    slab_allocator_free(a);
}

/* Its domain was closed by the id while empty: of that nothing clings to the record, which the next ones use again. */
static void cleanups_after_an_empty_one_was_closed(void) {
    SlabAllocator* a = kit_create();
    for (unsigned i = 0; i < 100; i++) {
        epoch_domain_t* empty = epoch_domain_create(a);
        epoch_close(a, empty->epoch_id);
        epoch_domain_destroy(empty);
        epoch_domain_t* d = epoch_domain_create(a);
        ended = 0;
        CHECK(slab_epoch_on_end(a, d->epoch_id, note_end, &names[0]));
        CHECK(epoch_domain_malloc(d, 64) != NULL);
        epoch_domain_destroy(d);
        CHECK_EQ(ended, 1);
    }
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(drain_then_release),
    CHECK_CASE(release_at_once),
    CHECK_CASE(all_freed_before),
    CHECK_CASE(hot_pair),
    CHECK_CASE(several_threads),
    CHECK_CASE(by_era),
    CHECK_CASE(cleanups_run_once_last_first),
    CHECK_CASE(cleanups_after_an_empty_one_was_closed),
    CHECK_CASE(cleanups_of_a_phase_taken_over),
    CHECK_CASE(cleanups_on_other_threads_and_nested),
};
CHECK_MAIN(cases)
