/*
 * domains.c - scopes on one thread: domains of their own, borrowed ones, nesting, ending, reset,
 * and what is refused. domain_threads.c has several threads, thread exit and fork.
 */
#include "kit/fixture.h"

static void a_domain_of_its_own(void) {
    SlabAllocator* a = kit_create_cold();
    epoch_domain_t* d = epoch_domain_create_labeled(a, "request");
    REQUIRE(d != NULL);
    CHECK_EQ(d->alloc, a);
    CHECK_EQ(d->epoch_id >> 31, 1);
    CHECK_GT(d->epoch_era, 0);
    CHECK_EQ(d->epoch_era, epoch_era(a, d->epoch_id));
    CHECK_EQ(d->refcount, 0);
    CHECK(d->auto_close);
    CHECK_EQ(epoch_state(a, d->epoch_id), EPOCH_ACTIVE);
    CHECK_STR(kit_epoch(a, 0, d->epoch_id).label, "request");
    EpochReceipt r;
    CHECK(!epoch_domain_receipt(d, &r));
    void* by_id = slab_malloc_epoch(d->alloc, 100, d->epoch_id);
    void* by_domain = epoch_domain_malloc(d, 100);
    CHECK_EQ(kit_era_of(a, by_id), d->epoch_era);
    CHECK_EQ(kit_era_of(a, by_domain), d->epoch_era);
    CHECK_NULL(epoch_domain_current());
    epoch_domain_enter(d);
    CHECK_EQ(d->refcount, 1);
    CHECK_EQ(epoch_domain_current(), d);
    CHECK_EQ(epoch_domain_allocator(), a);
    void* p = slab_malloc(a, 100);
    CHECK_EQ(kit_era_of(a, p), d->epoch_era);
    SlabHandle h = 0;
    CHECK(alloc_obj(a, 100, &h) != NULL);
    CHECK(slab_calloc(a, 3, 3) != NULL);
    CHECK(slab_aligned_alloc(a, 4096, 10) != NULL);
    epoch_domain_exit(d);
    CHECK_EQ(d->refcount, 0);
    CHECK_NULL(epoch_domain_current());
    CHECK_NULL(epoch_domain_allocator());
    CHECK_EQ(epoch_state(a, d->epoch_id), EPOCH_CLOSING);
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(kit_committed(a), 0);
    CHECK(epoch_domain_receipt(d, &r));
    KIT_BALANCED(&r);
    CHECK_EQ(r.objects_allocated, 6);
    CHECK_EQ(r.objects_released, 6);
    CHECK_STR(r.label, "request");
    CHECK_EQ(r.epoch_id, d->epoch_id);
    CHECK(!slab_free_checked(a, kit_hide(p)));
    CHECK(!free_obj(a, h));
    epoch_domain_destroy(d);
    CHECK_NE(kit_era_of(a, slab_malloc(a, 10)), 0);
    slab_allocator_free(a);
}

static void ended_domains(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_begin(a, "again");
    CHECK(slab_malloc(a, 100) != NULL);
    epoch_domain_exit(d);
    uint64_t era = d->epoch_era;
    errno = 0;
    CHECK_NULL(epoch_domain_malloc(d, 100));
    CHECK_EQ(errno, ESTALE);
    errno = 0;
    CHECK_NULL(slab_malloc_epoch(a, 100, d->epoch_id));
    CHECK(errno == ESTALE);
    epoch_domain_enter(d);
    CHECK_GT(d->epoch_era, era);
    CHECK_STR(kit_epoch(a, 0, d->epoch_id).label, "again");
    void* p = slab_malloc(a, 100);
    CHECK_EQ(kit_era_of(a, p), d->epoch_era);
    CHECK_NE(epoch_domain_malloc(d, 100), NULL);
    EpochReceipt r;
    CHECK(epoch_domain_receipt(d, &r)); /* of the incarnation that ended last */
    CHECK_EQ(r.epoch_era, era);
    CHECK_EQ(r.objects_allocated, 1);
    epoch_domain_end(d);
    CHECK(!slab_free_checked(a, kit_hide(p)));
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static void query_ends_before_transaction(void) {
    SlabAllocator* a = kit_create_cold();
    epoch_domain_t* tx = epoch_domain_begin(a, "tx");
    unsigned char* row = slab_malloc(a, 500);
    kit_fill(row, 500, 1);
    uint64_t base = kit_committed(a);
    for (int q = 0; q < 50; q++) {
        epoch_domain_t* query = epoch_domain_begin(a, "query");
        for (int i = 0; i < 1000; i++) {
            void* p = slab_malloc(a, 300);
            CHECK_EQ(kit_era_of(a, p), query->epoch_era);
        }
        CHECK_GT(kit_committed(a), base + 250000);
        epoch_domain_end(query);
        CHECK_EQ(kit_committed(a), base);
        CHECK_EQ(kit_live(a), 1);
        CHECK_EQ(epoch_domain_current(), tx);
        CHECK(kit_intact(row, 500, 1));
    }
    epoch_domain_end(tx);
    CHECK_EQ(kit_committed(a), 0);
    slab_allocator_free(a);
}

static void fifty_thousand_at_once(void) {
    enum { DOMAINS = 50000 };
    static epoch_domain_t* open[DOMAINS];
    static void* kept[DOMAINS];
    SlabAllocator* a = kit_create_cold();
    for (size_t i = 0; i < DOMAINS; i++) {
        open[i] = epoch_domain_create(a);
        REQUIRE(open[i] != NULL);
        kept[i] = epoch_domain_malloc(open[i], 64);
        REQUIRE(kept[i] != NULL);
        *(uint64_t*)kept[i] = i;
    }
    CHECK_EQ(kit_live(a), DOMAINS);
    CHECK_EQ(kit_global(a).open_phases, DOMAINS + 16);
    for (size_t i = 0; i < DOMAINS; i += 7) {
        EpochId id = 0;
        uint64_t era = 0;
        CHECK(slab_ptr_epoch(a, kept[i], &id, &era));
        CHECK_EQ(id, open[i]->epoch_id);
        CHECK_EQ(era, open[i]->epoch_era);
        CHECK_EQ(*(uint64_t*)kept[i], i);
    }
    for (size_t i = 0; i < DOMAINS; i++) {
        size_t k = (i * 7919) % DOMAINS;
        if (i % 2 == 0) {
            CHECK(slab_free_checked(a, kept[k]));
        }
        epoch_domain_destroy(open[k]);
    }
    CHECK_EQ(kit_live(a), 0);
    CHECK_EQ(kit_committed(a), 0);
    CHECK_EQ(kit_global(a).open_phases, 16);
    slab_allocator_free(a);
}

static void a_thousand_deep(void) {
    enum { DEPTH = 1000 };
    static epoch_domain_t* nest[DEPTH];
    SlabAllocator* a = kit_create_cold();
    for (size_t i = 0; i < DEPTH; i++) {
        nest[i] = epoch_domain_begin(a, NULL);
        REQUIRE(nest[i] != NULL);
        CHECK_EQ(kit_era_of(a, slab_malloc(a, 64)), nest[i]->epoch_era);
    }
    CHECK_EQ(kit_live(a), DEPTH);
    for (size_t i = DEPTH; i-- > 0;) {
        CHECK_EQ(epoch_domain_current(), nest[i]);
        CHECK_EQ(kit_era_of(a, slab_malloc(a, 64)), nest[i]->epoch_era);
        epoch_domain_end(nest[i]);
        CHECK_EQ(kit_live(a), i);
    }
    CHECK_NULL(epoch_domain_current());
    CHECK_EQ(kit_committed(a), 0);
    epoch_domain_t* same = epoch_domain_create(a); /* one domain, entered again and again */
    for (size_t i = 1; i <= DEPTH; i++) {
        epoch_domain_enter(same);
        CHECK_EQ(same->refcount, i);
    }
    void* p = slab_malloc(a, 64);
    for (size_t i = DEPTH; i > 1; i--) {
        epoch_domain_exit(same);
        CHECK_EQ(same->refcount, i - 1);
        CHECK_EQ(slab_usable_size(a, p), 64);
    }
    epoch_domain_exit(same);
    CHECK_EQ(kit_live(a), 0);
    epoch_domain_destroy(same);
    slab_allocator_free(a);
}

static void scopes_of_several_allocators(void) {
    SlabAllocator* a = kit_create();
    SlabAllocator* b = kit_create();
    epoch_domain_t* a1 = epoch_domain_begin(a, NULL);
    epoch_domain_t* b1 = epoch_domain_begin(b, NULL);
    CHECK_EQ(epoch_domain_current(), b1);
    CHECK_EQ(epoch_domain_allocator(), b);
    CHECK_EQ(kit_era_of(a, slab_malloc(a, 64)), a1->epoch_era);
    CHECK_EQ(kit_era_of(b, slab_malloc(b, 64)), b1->epoch_era);
    epoch_domain_t* a2 = epoch_domain_begin(a, NULL);
    CHECK_EQ(kit_era_of(a, slab_malloc(a, 64)), a2->epoch_era);
    CHECK_EQ(kit_era_of(b, slab_malloc(b, 64)), b1->epoch_era);
    epoch_domain_exit(b1); /* not on top */
    CHECK_EQ(kit_refusals(b).domain_order, 1);
    CHECK_EQ(b1->refcount, 1);
    epoch_domain_end(a2);
    CHECK_EQ(kit_era_of(a, slab_malloc(a, 64)), a1->epoch_era);
    epoch_domain_end(b1);
    CHECK_EQ(kit_era_of(b, slab_malloc(b, 64)), epoch_era(b, 0));
    CHECK_EQ(kit_era_of(a, slab_malloc(a, 64)), a1->epoch_era);
    epoch_domain_end(a1);
    CHECK_EQ(kit_era_of(a, slab_malloc(a, 64)), epoch_era(a, 0));
    slab_allocator_free(b);
    slab_allocator_free(a);
}

static void without_auto_close(void) {
    for (int by_force = 0; by_force < 2; by_force++) {
        SlabAllocator* a = kit_create();
        epoch_domain_t* d = epoch_domain_create(a);
        d->auto_close = false;
        uint64_t era = d->epoch_era;
        for (int i = 1; i <= 3; i++) {
            epoch_domain_enter(d);
            CHECK_EQ(d->epoch_era, era);
            CHECK_EQ(kit_era_of(a, slab_malloc(a, 64)), era);
            epoch_domain_exit(d);
            CHECK_EQ(kit_live(a), i);
            CHECK_EQ(epoch_state(a, d->epoch_id), EPOCH_ACTIVE);
        }
        if (by_force) {
            epoch_domain_force_close(d);
            CHECK_EQ(kit_live(a), 0);
            EpochReceipt r;
            CHECK(epoch_domain_receipt(d, &r));
            CHECK_EQ(r.objects_released, 3);
        }
        epoch_domain_destroy(d);
        CHECK_EQ(kit_live(a), 0);
        slab_allocator_free(a);
    }
}

static void never_entered(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* own = epoch_domain_create(a);
    void* p = epoch_domain_malloc(own, 64);
    EpochId id = own->epoch_id;
    epoch_domain_destroy(own);
    CHECK(!slab_free_checked(a, kit_hide(p)));
    CHECK_NULL(slab_malloc_epoch(a, 64, id));
    epoch_domain_t* borrowed = epoch_domain_wrap(a, 3, true);
    p = epoch_domain_malloc(borrowed, 64);
    epoch_domain_destroy(borrowed);
    CHECK_EQ(epoch_state(a, 3), EPOCH_ACTIVE);
    CHECK_EQ(slab_usable_size(a, p), 64);
    slab_allocator_free(a);
}

static void old_ids_match_no_stranger(void) {
    enum { COUNT = 3000 };
    static EpochId old[COUNT];
    static epoch_domain_t* now[COUNT];
    SlabAllocator* a = kit_create();
    for (size_t i = 0; i < COUNT; i++) {
        epoch_domain_t* d = epoch_domain_begin(a, NULL);
        REQUIRE(d != NULL);
        old[i] = d->epoch_id;
        epoch_domain_end(d);
    }
    for (size_t i = 0; i < COUNT; i++) {
        now[i] = epoch_domain_create(a);
        REQUIRE(now[i] != NULL);
    }
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_NULL(slab_malloc_epoch(a, 64, old[i]));
        CHECK(errno == EINVAL || errno == ESTALE);
    }
    for (size_t i = 0; i < COUNT; i++) {
        (void)epoch_close_ex(a, old[i], EPOCH_RELEASE, NULL);
    }
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQ(epoch_state(a, now[i]->epoch_id), EPOCH_ACTIVE);
        epoch_domain_destroy(now[i]);
    }
    slab_allocator_free(a);
}

static void frame_loop(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* frame = epoch_domain_begin(a, "frame");
    size_t frames = check_count(3000);
    uint64_t steady = 0, era = 0;
    for (size_t f = 0; f < frames; f++) {
        CHECK_GT(frame->epoch_era, era);
        era = frame->epoch_era;
        void* p = NULL;
        for (size_t i = 0; i < 200; i++) {
            p = slab_malloc(a, 16 + i * 9);
            CHECK(p != NULL);
        }
        CHECK_EQ(kit_era_of(a, p), era);
        uint64_t committed = f % 64 == 20 || f + 1 == frames ? kit_committed(a) : 0;
        if (f == 20) {
            steady = committed;
        } else if (committed != 0 && f > 20) {
            CHECK_EQ(committed, steady);
        }
        CHECK(epoch_domain_reset(frame));
        CHECK_EQ(slab_usable_size(a, kit_hide(p)), 0);
        CHECK_EQ(frame->refcount, 1);
        CHECK_EQ(epoch_domain_current(), frame);
    }
    EpochReceipt r;
    CHECK(epoch_domain_receipt(frame, &r));
    CHECK_EQ(r.objects_released, 200);
    CHECK_STR(r.label, "frame");
    CHECK_STR(kit_epoch(a, 0, frame->epoch_id).label, "frame");
    CHECK_EQ(kit_live(a), 0);
    epoch_domain_end(frame);
    slab_allocator_free(a);
}

static void reset_rules(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* borrowed = epoch_domain_wrap(a, 2, false);
    void* p = epoch_domain_malloc(borrowed, 64);
    CHECK(!epoch_domain_reset(borrowed));
    CHECK_EQ(slab_usable_size(a, p), 64);
    epoch_domain_destroy(borrowed);
    epoch_domain_t* idle = epoch_domain_create_labeled(a, "idle");
    p = epoch_domain_malloc(idle, 64);
    uint64_t era = idle->epoch_era;
    CHECK(epoch_domain_reset(idle)); /* nobody inside */
    CHECK_GT(idle->epoch_era, era);
    CHECK(!slab_free_checked(a, kit_hide(p)));
    CHECK(epoch_domain_malloc(idle, 64) != NULL);
    epoch_domain_destroy(idle);
    CHECK_EQ(kit_live(a), 1);
    slab_allocator_free(a);
}

static const CheckCase cases[] = {
    CHECK_CASE(a_domain_of_its_own),
    CHECK_CASE(ended_domains),
    CHECK_CASE(query_ends_before_transaction),
    CHECK_CASE(fifty_thousand_at_once),
    CHECK_CASE(a_thousand_deep),
    CHECK_CASE(scopes_of_several_allocators),
    CHECK_CASE(without_auto_close),
    CHECK_CASE(never_entered),
    CHECK_CASE(old_ids_match_no_stranger),
    CHECK_CASE(frame_loop),
    CHECK_CASE(reset_rules),
};
CHECK_MAIN(cases)
