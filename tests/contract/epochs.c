/*
 * epochs.c - the ring: what is open at the start, advance and wrap, who is refused when, eras,
 * labels, the program's own counts, and cleanups.
 */
#include "kit/fixture.h"

static void all_open_at_creation(void) {
    SlabAllocator* a = kit_create();
    uint64_t seen_min = UINT64_MAX;
    CHECK_EQ(epoch_current(a), 0);
    for (EpochId id = 0; id < 16; id++) {
        CHECK_EQ(epoch_state(a, id), EPOCH_ACTIVE);
        uint64_t era = epoch_era(a, id);
        seen_min = era < seen_min ? era : seen_min;
        for (EpochId before = 0; before < id; before++) {
            CHECK_NE(epoch_era(a, before), era);
        }
        void* p = slab_malloc_epoch(a, 128, id);
        CHECK_EQ(kit_era_of(a, p), era);
        CHECK_EQ(slab_epoch_get_refcount(a, id), 0);
        SlabEpochStats s = kit_epoch(a, 2, id);
        CHECK_EQ(s.epoch_id, id);
        CHECK_EQ(s.epoch_era, era);
        CHECK_EQ(s.state, EPOCH_ACTIVE);
        CHECK_EQ(s.alloc_count, 1);
        CHECK_STR(s.label, "");
    }
    CHECK_EQ(seen_min, 1);
    CHECK_EQ(epoch_era(a, 0), 1);
    CHECK_EQ(kit_epoch(a, 0, 0).open_since_ns, 0);
    SlabGlobalStats g = kit_global(a);
    CHECK_EQ(g.current_epoch, 0);
    CHECK_EQ(g.active_epoch_count, 16);
    CHECK_EQ(g.closing_epoch_count, 0);
    slab_allocator_free(a);
}

static void advance_moves_on(void) {
    SlabAllocator* a = kit_create();
    uint64_t largest = 0;
    for (EpochId id = 0; id < 16; id++) {
        largest = epoch_era(a, id) > largest ? epoch_era(a, id) : largest;
    }
    slab_epoch_set_label(a, 1, "before");
    slab_epoch_inc_refcount(a, 1);
    void* p = slab_malloc(a, 64);
    uint64_t old = epoch_era(a, 0);
    epoch_advance(a);
    CHECK_EQ(epoch_current(a), 1);
    CHECK_EQ(epoch_state(a, 0), EPOCH_CLOSING);
    CHECK_EQ(epoch_era(a, 0), old);
    CHECK_EQ(epoch_state(a, 1), EPOCH_ACTIVE);
    CHECK_GT(epoch_era(a, 1), largest);
    CHECK_STR(kit_epoch(a, 0, 1).label, "");
    CHECK_EQ(slab_epoch_get_refcount(a, 1), 0);
    errno = 0;
    CHECK_NULL(slab_malloc_epoch(a, 64, 0));
    CHECK_EQ(errno, ESTALE);
    CHECK_EQ(kit_refusals(a).closed_epoch, 1);
    CHECK_EQ(kit_era_of(a, p), old);
    void* q = slab_malloc(a, 64);
    CHECK_EQ(kit_era_of(a, q), epoch_era(a, 1));
    CHECK(slab_free_checked(a, p));
    CHECK(slab_free_checked(a, q));
    CHECK_EQ(epoch_advance_id(a), 2);
    CHECK_EQ(epoch_current(a), 2);
    slab_allocator_free(a);
}

static void ring_wraps_into_fresh_incarnations(void) {
    enum { KEPT = 200 };
    SlabAllocator* a = kit_create();
    void* kept[KEPT];
    uint64_t era[KEPT], last = 0;
    slab_epoch_set_label(a, 0, "first");
    for (size_t i = 0; i < KEPT; i++) {
        kept[i] = slab_malloc(a, 128);
        REQUIRE(kept[i] != NULL);
        era[i] = epoch_era(a, epoch_current(a));
        CHECK_GT(era[i], last);
        last = era[i];
        kit_fill(kept[i], 128, i);
        CHECK_EQ(epoch_advance_id(a), (i + 1) % 16);
    }
    for (size_t i = 0; i < KEPT; i++) {
        EpochId id = 99;
        uint64_t told = 0;
        CHECK(slab_ptr_epoch(a, kept[i], &id, &told));
        CHECK_EQ(id, i % 16);
        CHECK_EQ(told, era[i]);
        CHECK(kit_intact(kept[i], 128, i));
    }
    CHECK_STR(kit_epoch(a, 2, 0).label, "");
    for (size_t i = 0; i < KEPT; i++) {
        CHECK(slab_free_checked(a, kept[i]));
    }
    CHECK_EQ(kit_live(a), 0);
    CHECK_LE(kit_committed(a), KIT_WARM_BYTES);
    CHECK_EQ(kit_global(a).draining_phases, 0);
    slab_allocator_free(a);
}

/* Objects of different eras never lie on one page, whatever their class. */
static void eras_share_no_slab(void) {
    enum { COUNT = 4000 };
    static struct {
        uintptr_t page;
        uint64_t era;
    } seen[COUNT];
    SlabAllocator* a = kit_create();
    size_t page = slab_page_size();
    for (size_t i = 0; i < COUNT; i++) {
        void* p = slab_malloc_epoch(a, 16 + i % 3 * 40, (EpochId)(epoch_current(a) + i % 5) % 16);
        REQUIRE(p != NULL);
        seen[i].page = (uintptr_t)p / page;
        seen[i].era = kit_era_of(a, p);
        if (i % 3 == 0) {
            slab_free(a, p);
            seen[i].era = 0;
        }
        if (i % 500 == 499) {
            epoch_advance(a);
        }
    }
    for (size_t i = 0; i < COUNT; i++) {
        for (size_t k = i + 1; k < COUNT; k++) {
            if (seen[i].page == seen[k].page && seen[i].era != 0 && seen[k].era != 0) {
                CHECK_EQ(seen[i].era, seen[k].era);
            }
        }
    }
    slab_allocator_free(a);
}

/* The ring moves on first: who names no epoch goes on, who names this one is refused. */
static void closing_the_current_epoch(void) {
    for (int mode = 0; mode < 2; mode++) {
        SlabAllocator* a = kit_create();
        EpochReceipt r;
        void* p = slab_malloc(a, 200);
        uint64_t era = epoch_era(a, 0);
        CHECK(epoch_close_ex(a, 0, (EpochCloseMode)mode, &r));
        CHECK_EQ(r.epoch_id, 0);
        CHECK_EQ(r.epoch_era, era);
        CHECK_EQ(epoch_current(a), 1);
        CHECK_EQ(epoch_state(a, 0), EPOCH_CLOSING);
        CHECK_EQ(epoch_state(a, 1), EPOCH_ACTIVE);
        CHECK_GT(epoch_era(a, 1), era);
        CHECK_EQ(slab_free_checked(a, p), mode == EPOCH_DRAIN); /* before its address is issued again */
        for (int i = 0; i < 5; i++) {
            errno = 0;
            CHECK_NULL(slab_malloc_epoch(a, 200, 0));
            CHECK_EQ(errno, ESTALE);
            void* q = slab_malloc(a, 200);
            CHECK_EQ(kit_era_of(a, q), epoch_era(a, 1));
        }
        CHECK_EQ(kit_refusals(a).closed_epoch, 5);
        epoch_close(a, 0); /* not the current one any more */
        CHECK_EQ(epoch_current(a), 1);
        SlabGlobalStats g = kit_global(a);
        CHECK_EQ(g.active_epoch_count, 15);
        CHECK_EQ(g.closing_epoch_count, 1);
        CHECK(epoch_close_era(a, epoch_era(a, 1), (EpochCloseMode)mode, &r));
        CHECK_EQ(r.objects_escaped + r.objects_released, 5);
        CHECK_EQ(epoch_current(a), 2);
        slab_allocator_free(a);
    }
}

/* By a domain that borrows it, too: at its last exit, when it is destroyed or drained, and by force. */
static void closing_the_current_epoch_by_a_domain(void) {
    SlabAllocator* a = kit_create();
    for (EpochId id = 0; id < 40; id++) {
        CHECK_EQ(epoch_current(a), id % 16);
        epoch_domain_t* d = epoch_domain_wrap(a, id % 16, true);
        REQUIRE(d != NULL);
        CHECK(epoch_domain_malloc(d, 64) != NULL);
        if (id % 4 == 0) {
            epoch_domain_enter(d);
            epoch_domain_exit(d);
        } else if (id % 4 == 1) {
            epoch_domain_force_close(d);
        } else if (id % 4 == 2) {
            CHECK(epoch_domain_drain(d, NULL));
        } else {
            EpochReceipt r;
            epoch_domain_enter(d);
            CHECK(epoch_domain_end_ex(d, &r));
            CHECK_EQ(r.objects_escaped, 2);
        }
        CHECK_EQ(epoch_current(a), (id + 1) % 16);
        CHECK_EQ(epoch_state(a, id % 16), EPOCH_CLOSING);
        if (id % 4 < 2) epoch_domain_destroy(d);
        CHECK_EQ(epoch_current(a), (id + 1) % 16);
        CHECK(slab_malloc(a, 64) != NULL);
    }
    slab_allocator_free(a);
}

enum { CLOSERS = 4 };
static SlabAllocator* closed_by_all;
static pthread_barrier_t closers_meet;
static _Atomic unsigned refused_without_id;

/* All close the id that was current as they met; and nobody who names no epoch is refused. */
static void* one_of_the_closers(void* arg) {
    for (size_t turn = check_count(300); turn-- > 0;) {
        (void)pthread_barrier_wait(&closers_meet);
        EpochId id = epoch_current(closed_by_all);
        (void)pthread_barrier_wait(&closers_meet);
        void* p = slab_malloc(closed_by_all, 48);
        CHECK(epoch_close_ex(closed_by_all, id, turn % 3 == 0 ? EPOCH_RELEASE : EPOCH_DRAIN, NULL));
        void* q = slab_malloc(closed_by_all, 48);
        if (p == NULL || q == NULL) atomic_fetch_add(&refused_without_id, 1);
        (void)pthread_barrier_wait(&closers_meet);
        CHECK_EQ(epoch_current(closed_by_all), (id + 1) % 16);
    }
    return arg;
}

static void closers_of_one_id_advance_once(void) {
    pthread_t t[CLOSERS];
    closed_by_all = kit_create();
    REQUIRE(pthread_barrier_init(&closers_meet, NULL, CLOSERS) == 0);
    for (int n = 0; n < CLOSERS; n++) REQUIRE(pthread_create(&t[n], NULL, one_of_the_closers, NULL) == 0);
    for (int n = 0; n < CLOSERS; n++) REQUIRE(pthread_join(t[n], NULL) == 0);
    CHECK_EQ(atomic_load(&refused_without_id), 0);
    CHECK_EQ(kit_refusals(closed_by_all).closed_epoch, 0);
    CHECK_EQ(epoch_current(closed_by_all), check_count(300) % 16);
    (void)pthread_barrier_destroy(&closers_meet);
    slab_allocator_free(closed_by_all);
}

static void closing_unused_and_twice(void) {
    SlabAllocator* a = kit_create();
    EpochReceipt r;
    for (int mode = 0; mode < 2; mode++) {
        EpochId id = (EpochId)(3 + mode);
        for (int times = 0; times < 3; times++) {
            memset(&r, 0xFF, sizeof r);
            CHECK(epoch_close_ex(a, id, (EpochCloseMode)mode, &r));
            CHECK_EQ(r.version, 2);
            CHECK_EQ(r.epoch_id, id);
            CHECK_EQ(r.epoch_era, epoch_era(a, id));
            CHECK_EQ(r.objects_allocated, 0);
            CHECK_EQ(r.bytes_allocated, 0);
            CHECK_EQ(r.slabs_returned, 0);
            CHECK_EQ(r.slabs_deferred, 0);
            KIT_BALANCED(&r);
        }
        CHECK_EQ(epoch_state(a, id), EPOCH_CLOSING);
        CHECK_NULL(slab_malloc_epoch(a, 10, id));
    }
    slab_allocator_free(a);
}

/* Every id in turn, wherever the ring is: nothing that was empty is kept by the epoch, though each close may move the ring. */
static void closing_all_ids_leaves_nothing(void) {
    for (EpochId current = 0; current < 16; current++) {
        SlabAllocator* a = kit_create_cold();
        for (EpochId n = 0; n < current; n++) epoch_advance(a);
        for (EpochId id = 0; id < 16; id++) slab_free(a, slab_malloc_epoch(a, 700, id));
        for (EpochId id = 0; id < 16; id++) epoch_close(a, id);
        CHECK_EQ(kit_committed(a), 0);
        slab_allocator_free(a);
    }
}

static void closed_epochs_open_again_in_turn(void) {
    SlabAllocator* a = kit_create();
    for (EpochId id = 0; id < 16; id++) {
        epoch_close(a, id);
    }
    CHECK_EQ(epoch_current(a), 0); /* each was the current one, and the last opened the first anew */
    CHECK_EQ(kit_global(a).closing_epoch_count, 15);
    CHECK(slab_malloc(a, 10) != NULL);
    for (int i = 1; i <= 40; i++) {
        EpochId id = epoch_advance_id(a);
        CHECK_EQ(id, i % 16);
        CHECK_EQ(epoch_state(a, id), EPOCH_ACTIVE);
        void* p = slab_malloc(a, 10);
        CHECK_EQ(kit_era_of(a, p), epoch_era(a, id));
    }
    slab_allocator_free(a);
}

static void rings_from_2_to_1024(void) {
    static const uint32_t sizes[] = {2, 3, 7, 64, 1000, 1024};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        SlabOptions o = kit_options();
        o.ring_size = sizes[i];
        SlabAllocator* a = kit_create_with(&o);
        CHECK_EQ(kit_global(a).active_epoch_count, sizes[i]);
        CHECK_EQ(epoch_state(a, sizes[i] - 1), EPOCH_ACTIVE);
        CHECK_EQ(epoch_era(a, sizes[i]), 0);
        CHECK(slab_malloc_epoch(a, 10, sizes[i] - 1) != NULL);
        CHECK_NULL(slab_malloc_epoch(a, 10, sizes[i]));
        uint64_t last = 0;
        for (uint32_t turn = 1; turn <= 3 * sizes[i]; turn++) {
            CHECK_EQ(epoch_advance_id(a), turn % sizes[i]);
            uint64_t era = epoch_era(a, turn % sizes[i]);
            CHECK_GT(era, last);
            last = era;
            CHECK(slab_malloc(a, 64) != NULL);
        }
        slab_allocator_free(a);
    }
}

static void check_label(SlabAllocator* a, const char* given, const char* shown) {
    slab_epoch_set_label(a, 3, given);
    CHECK_STR(kit_epoch(a, 0, 3).label, shown);
    epoch_domain_t* d = epoch_domain_create_labeled(a, given);
    REQUIRE(d != NULL);
    CHECK_STR(kit_epoch(a, 0, d->epoch_id).label, shown);
    EpochReceipt r;
    CHECK(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, &r));
    CHECK_STR(r.label, shown);
    epoch_domain_destroy(d);
}

static void labels_end_at_a_character(void) {
    SlabAllocator* a = kit_create();
    check_label(a, "GET /users", "GET /users");
    check_label(a, "", "");
    check_label(a, NULL, "");
    check_label(a, "1234567890123456789012345678901", "1234567890123456789012345678901");
    check_label(a, "12345678901234567890123456789012", "1234567890123456789012345678901");
    check_label(a, "123456789012345678901234567890\xC3\xA9", "123456789012345678901234567890");
    check_label(a, "12345678901234567890123456789\xC3\xA9", "12345678901234567890123456789\xC3\xA9");
    check_label(a, "1234567890123456789012345678\xE2\x82\xAC", "1234567890123456789012345678\xE2\x82\xAC");
    check_label(a, "12345678901234567890123456789\xE2\x82\xAC", "12345678901234567890123456789");
    check_label(a, "1234567890123456789012345678\xF0\x9F\x98\x80", "1234567890123456789012345678");
    check_label(a, "123456789012345678901234567\xF0\x9F\x98\x80", "123456789012345678901234567\xF0\x9F\x98\x80");
    char noise[64];
    memset(noise, 0x80, sizeof noise - 1);
    noise[sizeof noise - 1] = '\0';
    slab_epoch_set_label(a, 3, noise);
    CHECK_LE(strlen(kit_epoch(a, 0, 3).label), 31);
    char local[] = "copied";
    slab_epoch_set_label(a, 3, local);
    local[0] = 'X';
    CHECK_STR(kit_epoch(a, 0, 3).label, "copied");
    slab_epoch_set_label(a, 3, NULL);
    CHECK_STR(kit_epoch(a, 0, 3).label, "");
    slab_allocator_free(a);
}

static void the_programs_own_counts(void) {
    SlabAllocator* a = kit_create();
    slab_epoch_dec_refcount(a, 2);
    CHECK_EQ(slab_epoch_get_refcount(a, 2), 0);
    for (uint64_t i = 1; i <= 1000; i++) {
        slab_epoch_inc_refcount(a, 2);
        CHECK_EQ(slab_epoch_get_refcount(a, 2), i);
    }
    for (uint64_t i = 999; i < 1000; i--) {
        slab_epoch_dec_refcount(a, 2);
        CHECK_EQ(slab_epoch_get_refcount(a, 2), i);
    }
    slab_epoch_dec_refcount(a, 2);
    CHECK_EQ(slab_epoch_get_refcount(a, 2), 0);
    slab_epoch_inc_refcount(a, 2);
    slab_epoch_set_label(a, 2, "mine");
    for (int i = 0; i < 16; i++) {
        epoch_advance(a);
    }
    CHECK_EQ(slab_epoch_get_refcount(a, 2), 0);
    CHECK_STR(kit_epoch(a, 0, 2).label, "");
    slab_allocator_free(a);
}

static void* allocate_until_told(void* arg) {
    SlabAllocator* a = ((void**)arg)[0];
    _Atomic bool* over = ((void**)arg)[1];
    while (!atomic_load(over)) {
        void* p = slab_malloc(a, 64);
        CHECK(p != NULL);
        SlabHandle h = 0;
        CHECK(alloc_obj(a, 500, &h) != NULL);
        void* q = slab_malloc(a, 40000);
        CHECK(q != NULL);
        CHECK(slab_free_checked(a, p));
        CHECK(free_obj(a, h));
        CHECK(slab_free_checked(a, q));
    }
    return NULL;
}

/* An allocation without an epoch is never refused because the epoch was advanced meanwhile. */
static void advance_refuses_nobody(void) {
    static const uint32_t rings[] = {2, 16};
    for (size_t i = 0; i < 2; i++) {
        SlabOptions o = kit_options();
        o.ring_size = rings[i];
        SlabAllocator* a = kit_create_with(&o);
        _Atomic bool over = false;
        void* shared[] = {a, &over};
        pthread_t threads[3];
        for (int t = 0; t < 3; t++) {
            threads[t] = kit_thread(allocate_until_told, shared);
        }
        size_t turns = check_count(30000);
        for (size_t t = 0; t < turns; t++) {
            epoch_advance(a);
            if (t % 64 == 0) {
                kit_sleep_us(20);
            }
        }
        atomic_store(&over, true);
        for (int t = 0; t < 3; t++) {
            pthread_join(threads[t], NULL);
        }
        CHECK_EQ(kit_refusals(a).closed_epoch, 0);
        CHECK_EQ(kit_live(a), 0);
        slab_allocator_free(a);
    }
}

static const CheckCase cases[] = {
    CHECK_CASE(all_open_at_creation),
    CHECK_CASE(advance_moves_on),
    CHECK_CASE(ring_wraps_into_fresh_incarnations),
    CHECK_CASE(eras_share_no_slab),
    CHECK_CASE(closing_the_current_epoch),
    CHECK_CASE(closing_the_current_epoch_by_a_domain),
    CHECK_CASE(closers_of_one_id_advance_once),
    CHECK_CASE(closing_unused_and_twice),
    CHECK_CASE(closing_all_ids_leaves_nothing),
    CHECK_CASE(closed_epochs_open_again_in_turn),
    CHECK_CASE(rings_from_2_to_1024),
    CHECK_CASE(labels_end_at_a_character),
    CHECK_CASE(the_programs_own_counts),
    CHECK_CASE(advance_refuses_nobody),
};
CHECK_MAIN(cases)
