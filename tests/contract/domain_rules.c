/*
 * domain_rules.c - borrowed domains, forced ends, and every refusal: misuse of a domain is counted
 * and changes nothing.
 */
#include "kit/fixture.h"

static void borrowed_with_auto_close_drains(void) {
    SlabAllocator* a = kit_create_cold();
    epoch_domain_t* d = epoch_domain_wrap(a, 3, true);
    REQUIRE(d != NULL);
    CHECK_EQ(d->epoch_id, 3);
    CHECK_EQ(d->epoch_era, epoch_era(a, 3));
    CHECK(d->auto_close);
    epoch_domain_enter(d);
    void* p = slab_malloc(a, 128);
    CHECK_EQ(kit_era_of(a, p), d->epoch_era);
    epoch_domain_enter(d);
    epoch_domain_exit(d);
    CHECK_EQ(epoch_state(a, 3), EPOCH_ACTIVE);
    epoch_domain_exit(d);
    CHECK_EQ(epoch_state(a, 3), EPOCH_CLOSING);
    CHECK_NULL(slab_malloc_epoch(a, 100, 3));
    CHECK_EQ(slab_usable_size(a, p), 128);
    EpochReceipt r;
    CHECK(epoch_domain_receipt(d, &r));
    CHECK_EQ(r.objects_escaped, 1);
    CHECK_EQ(r.objects_released, 0);
    CHECK(slab_free_checked(a, p));
    CHECK_EQ(kit_committed(a), 0);
    epoch_domain_destroy(d);
    slab_allocator_free(a);
}

static void borrowed_without_auto_close_leaves_it(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_wrap(a, 0, false);
    CHECK(!d->auto_close);
    epoch_domain_enter(d);
    void* p = slab_malloc(a, 100);
    epoch_domain_exit(d);
    CHECK_EQ(epoch_state(a, 0), EPOCH_ACTIVE);
    epoch_domain_destroy(d);
    CHECK_EQ(epoch_state(a, 0), EPOCH_ACTIVE);
    CHECK(slab_free_checked(a, p));
    slab_allocator_free(a);
}

static void turn_the_ring(SlabAllocator* a) {
    for (int i = 0; i < 16; i++) {
        epoch_advance(a);
    }
}

static void a_moved_on_epoch_is_not_closed(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_wrap(a, 3, true);
    uint64_t era = d->epoch_era;
    epoch_domain_enter(d);
    void* p = slab_malloc(a, 64);
    turn_the_ring(a);
    CHECK_NE(epoch_era(a, 3), era);
    EpochLifecycleState state = epoch_state(a, 3);
    while (epoch_current(a) != 3) {
        epoch_advance(a);
    }
    epoch_domain_exit(d);
    CHECK_EQ(epoch_state(a, 3), EPOCH_ACTIVE);
    CHECK_NULL(epoch_domain_current());
    void* q = slab_malloc(a, 64);
    epoch_domain_force_close(d);
    CHECK_EQ(epoch_state(a, 3), EPOCH_ACTIVE);
    CHECK_EQ(slab_usable_size(a, q), 64);
    CHECK_GE(kit_refusals(a).domain_stale, 1);
    uint64_t before = kit_refusals(a).domain_stale;
    epoch_domain_enter(d); /* refused: its epoch is gone */
    CHECK_NULL(epoch_domain_current());
    CHECK_EQ(d->refcount, 0);
    CHECK_EQ(kit_refusals(a).domain_stale, before + 1);
    errno = 0;
    CHECK_NULL(epoch_domain_malloc(d, 64));
    CHECK_EQ(errno, ESTALE);
    epoch_domain_destroy(d);
    CHECK_EQ(epoch_state(a, 3), EPOCH_ACTIVE);
    CHECK_EQ(slab_usable_size(a, q), 64);
    CHECK(slab_free_checked(a, p));
    CHECK(slab_free_checked(a, q));
    CHECK_EQ(state, EPOCH_CLOSING);
    slab_allocator_free(a);
}

static void another_domain_inside_keeps_it_open(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* first = epoch_domain_wrap(a, 5, true);
    epoch_domain_t* second = epoch_domain_wrap(a, 5, true);
    epoch_domain_enter(first);
    epoch_domain_enter(second);
    epoch_domain_exit(second); /* first is inside */
    CHECK_EQ(epoch_state(a, 5), EPOCH_ACTIVE);
    epoch_domain_destroy(second);
    CHECK_EQ(epoch_state(a, 5), EPOCH_ACTIVE);
    CHECK(slab_malloc(a, 64) != NULL);
    epoch_domain_exit(first);
    CHECK_EQ(epoch_state(a, 5), EPOCH_CLOSING);
    epoch_domain_destroy(first);

    epoch_domain_t* keeper = epoch_domain_wrap(a, 6, false);
    epoch_domain_t* closer = epoch_domain_wrap(a, 6, true);
    epoch_domain_enter(keeper);
    epoch_domain_enter(closer);
    epoch_domain_exit(closer);
    epoch_domain_destroy(closer);
    epoch_domain_exit(keeper);
    CHECK_EQ(epoch_state(a, 6), EPOCH_ACTIVE);
    epoch_domain_destroy(keeper);
    slab_allocator_free(a);
}

static void force_close_rules(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* own = epoch_domain_create(a);
    epoch_domain_t* borrowed = epoch_domain_wrap(a, 7, false);
    epoch_domain_t* both[] = {own, borrowed};
    for (int i = 0; i < 2; i++) {
        epoch_domain_t* d = both[i];
        d->auto_close = false;
        epoch_domain_enter(d);
        void* p = slab_malloc(a, 64);
        uint64_t before = kit_refusals(a).domain_order;
        epoch_domain_force_close(d); /* somebody is inside */
        CHECK_EQ(kit_refusals(a).domain_order, before + 1);
        CHECK_EQ(slab_usable_size(a, p), 64);
        CHECK_EQ(epoch_state(a, d->epoch_id), EPOCH_ACTIVE);
        epoch_domain_exit(d);
    }
    void* p = slab_malloc_epoch(a, 64, 7);
    epoch_domain_force_close(borrowed);
    CHECK_EQ(epoch_state(a, 7), EPOCH_CLOSING);
    CHECK(!slab_free_checked(a, kit_hide(p)));
    EpochReceipt r;
    CHECK(epoch_domain_receipt(borrowed, &r));
    CHECK_EQ(r.objects_released, 2);
    epoch_domain_destroy(borrowed);
    epoch_domain_destroy(own);
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

/* epoch_close_ex does not ask who is inside. */
static void released_around_a_scope(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_begin(a, NULL);
    void* p = slab_malloc(a, 64);
    EpochReceipt r;
    CHECK(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, &r));
    CHECK_EQ(r.objects_released, 1);
    CHECK(!slab_free_checked(a, kit_hide(p)));
    errno = 0;
    CHECK_NULL(slab_malloc(a, 64));
    CHECK_EQ(errno, ESTALE);
    CHECK_NULL(epoch_domain_malloc(d, 64));
    CHECK_EQ(epoch_domain_current(), d);
    CHECK_EQ(d->refcount, 1);
    epoch_domain_end(d);
    CHECK_NULL(epoch_domain_current());
    CHECK(slab_malloc(a, 64) != NULL);
    slab_allocator_free(a);
}

static void misuse_is_counted_and_changes_nothing(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create(a);
    epoch_domain_t* e = epoch_domain_create(a);
    uint64_t expected = 0;
    epoch_domain_exit(d); /* without enter */
    CHECK_EQ(kit_refusals(a).domain_order, ++expected);
    CHECK_EQ(d->refcount, 0);
    CHECK_EQ(epoch_state(a, d->epoch_id), EPOCH_ACTIVE);
    epoch_domain_enter(d);
    epoch_domain_enter(e);
    void* p = slab_malloc(a, 64);
    epoch_domain_exit(d); /* out of order */
    CHECK_EQ(kit_refusals(a).domain_order, ++expected);
    CHECK_EQ(epoch_domain_current(), e);
    CHECK_EQ(d->refcount, 1);
    epoch_domain_destroy(e); /* while entered */
    CHECK_EQ(kit_refusals(a).domain_order, ++expected);
    epoch_domain_destroy(d);
    CHECK_EQ(kit_refusals(a).domain_order, ++expected);
    CHECK_EQ(slab_usable_size(a, p), 64);
    CHECK(!epoch_domain_detach(d)); /* not on top */
    CHECK(!epoch_domain_attach(d)); /* not detached */
    CHECK_EQ(epoch_domain_current(), e);
    epoch_domain_exit(e);
    epoch_domain_exit(d);
    CHECK_NULL(epoch_domain_current());
    CHECK_EQ(d->refcount, 0);
    CHECK_EQ(e->refcount, 0);
    epoch_domain_destroy(e);
    epoch_domain_destroy(d);
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

static void detached_and_attached(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create(a);
    CHECK(!epoch_domain_detach(d));
    CHECK(!epoch_domain_attach(d));
    epoch_domain_enter(d);
    void* p = slab_malloc(a, 64);
    CHECK(epoch_domain_detach(d));
    CHECK_EQ(d->refcount, 1);
    CHECK_NULL(epoch_domain_current());
    CHECK(!epoch_domain_detach(d));
    CHECK_EQ(kit_era_of(a, slab_malloc(a, 64)), epoch_era(a, 0));
    epoch_domain_destroy(d); /* a detached scope is a scope inside */
    CHECK_EQ(slab_usable_size(a, p), 64);
    CHECK(epoch_domain_attach(d));
    CHECK(!epoch_domain_attach(d));
    CHECK_EQ(epoch_domain_current(), d);
    CHECK_EQ(d->refcount, 1);
    CHECK_EQ(kit_era_of(a, slab_malloc(a, 64)), d->epoch_era);
    epoch_domain_end(d);
    CHECK(!slab_free_checked(a, kit_hide(p)));
    CHECK_EQ(kit_live(a), 1);
    slab_allocator_free(a);
}

/* An allocator that goes while one of its scopes is on the stack takes the scope along. */
static void allocator_destroyed_inside_a_scope(void) {
    SlabAllocator* a = kit_create();
    SlabAllocator* b = kit_create();
    epoch_domain_t* outer = epoch_domain_begin(b, NULL);
    epoch_domain_t* inner = epoch_domain_begin(a, NULL);
    CHECK(inner != NULL && slab_malloc(a, 64) != NULL);
    slab_allocator_free(a);
    CHECK_EQ(epoch_domain_current(), outer);
    CHECK_EQ(kit_era_of(b, slab_malloc(b, 64)), outer->epoch_era);
    epoch_domain_end(outer);
    CHECK_NULL(epoch_domain_current());
    CHECK_EQ(kit_live(b), 0);
    slab_allocator_free(b);
}

/* As above, but the scope that goes lies under one that stays, and comes to the top later. */
static void allocator_destroyed_under_a_scope(void) {
    for (int look = 0; look < 2; look++) {
        SlabAllocator* gone = kit_create();
        SlabAllocator* b = kit_create();
        epoch_domain_t* outer = epoch_domain_begin(gone, NULL);
        epoch_domain_t* inner = epoch_domain_begin(b, NULL);
        CHECK(outer != NULL && slab_malloc(gone, 64) != NULL);
        slab_allocator_free(gone);
        if (look != 0) {
            CHECK_EQ(epoch_domain_current(), inner);
            CHECK_EQ(kit_era_of(b, slab_malloc(b, 64)), inner->epoch_era);
        }
        epoch_domain_end(inner);
        if (look != 0) {
            CHECK_NULL(epoch_domain_current());
            CHECK_NULL(epoch_domain_allocator());
        }
        SlabAllocator* next = kit_create(); /* may well be where the dead one was, domains and all */
        epoch_domain_t* d = epoch_domain_create(next);
        CHECK_NULL(epoch_domain_current());
        CHECK(slab_malloc(next, 64) != NULL);
        epoch_domain_exit(d); /* this thread is not inside */
        CHECK_EQ(kit_refusals(next).domain_order, 1);
        CHECK_EQ(d->refcount, 0);
        epoch_domain_enter(d);
        CHECK_EQ(epoch_domain_current(), d);
        CHECK_EQ(kit_era_of(next, slab_malloc(next, 64)), d->epoch_era);
        epoch_domain_exit(d);
        epoch_domain_destroy(d);
        CHECK_EQ(kit_live(b), 0);
        slab_allocator_free(next);
        slab_allocator_free(b);
    }
}

static void records_run_out_politely(void) {
    enum { MOST = 262143 };
    if (CHECK_TSAN || CHECK_ASAN) {
        SKIP("a quarter of a million domains under a sanitizer");
    }
    static epoch_domain_t* open[MOST + 1000];
    SlabAllocator* a = kit_create();
    size_t n = 0;
    errno = 0;
    while (n < MOST + 1000 && (open[n] = epoch_domain_create(a)) != NULL) {
        n++;
    }
    CHECK_EQ(errno, ENOMEM);
    CHECK_GE(n, 200000);
    CHECK_LE(n, MOST);
    CHECK_NULL(epoch_domain_begin(a, "one more"));
    CHECK_NULL(epoch_domain_current());
    epoch_domain_destroy(open[--n]);
    open[n] = epoch_domain_begin(a, "fits again");
    CHECK(open[n] != NULL);
    epoch_domain_exit(open[n++]);
    for (EpochId turn = 1; turn <= 40; turn++) { /* never fails, whatever domains took */
        CHECK_EQ(epoch_advance_id(a), turn % 16);
        slab_free(a, slab_malloc(a, 64));
    }
    while (n > 0) {
        epoch_domain_destroy(open[--n]);
    }
    slab_allocator_free(a);
}

/* A scope of a destroyed allocator stays on the stack, and the next allocator, in the same storage, has its domain at the
 * same record: under every call it counts for nobody. */
static void a_dead_scope_is_no_later_domains(void) {
    static SlabAllocator storage;
    SlabAllocator* outer = kit_create();
    for (int living = 0; living < 2; living++) { /* with a scope that lives above the dead one */
        for (int detached = 0; detached < 2; detached++) {
            allocator_init(&storage);
            epoch_domain_t* dead = epoch_domain_begin(&storage, "dead");
            epoch_domain_t* above = living ? epoch_domain_begin(outer, "above") : NULL;
            CHECK_EQ(above != NULL, living);
            allocator_destroy(&storage);
            allocator_init(&storage);
            epoch_domain_t* d = epoch_domain_create_labeled(&storage, "new");
            REQUIRE(d != NULL);
            if (d != dead) printf("skipped: the record lies elsewhere\n");
            CHECK_EQ(epoch_domain_current(), above);
            CHECK(!epoch_domain_exit(d));
            CHECK(!epoch_domain_end(d));
            CHECK(!epoch_domain_detach(d));
            CHECK(!epoch_domain_attach(d));
            CHECK_EQ(kit_refusals(&storage).domain_order, 4);
            CHECK(epoch_domain_enter(d));
            char* p = epoch_domain_malloc(d, 100);
            strcpy(p, "theirs");
            if (detached) CHECK(epoch_domain_detach(d));
            CHECK_EQ(epoch_domain_reset(d), !detached); /* what a detached scope holds stays */
            if (detached) CHECK_STR(p, "theirs");
            CHECK_EQ(slab_usable_size(&storage, kit_hide(p)) != 0, detached);
            CHECK(!epoch_domain_force_close(d) && !epoch_domain_destroy(d)); /* somebody is inside */
            if (detached) CHECK(epoch_domain_attach(d));
            CHECK(epoch_domain_enter(d) && epoch_domain_reset(d)); /* twice */
            CHECK(epoch_domain_exit(d) && epoch_domain_end(d));
            CHECK_EQ(epoch_domain_current(), above);
            if (living) CHECK(epoch_domain_end(above));
            CHECK_NULL(epoch_domain_current());
            allocator_destroy(&storage);
        }
    }
    slab_allocator_free(outer);
}

/* Many of them one above the other are in nobody's way. */
static void dead_scopes_do_not_pile_up(void) {
    for (int i = 0; i < 300; i++) {
        SlabAllocator* a = kit_create();
        CHECK(epoch_domain_begin(a, NULL) != NULL);
        slab_allocator_free(a);
    }
    CHECK_NULL(epoch_domain_current());
}

static const CheckCase cases[] = {
    CHECK_CASE(borrowed_with_auto_close_drains),
    CHECK_CASE(borrowed_without_auto_close_leaves_it),
    CHECK_CASE(a_moved_on_epoch_is_not_closed),
    CHECK_CASE(another_domain_inside_keeps_it_open),
    CHECK_CASE(force_close_rules),
    CHECK_CASE(released_around_a_scope),
    CHECK_CASE(misuse_is_counted_and_changes_nothing),
    CHECK_CASE(detached_and_attached),
    CHECK_CASE(allocator_destroyed_inside_a_scope),
    CHECK_CASE(allocator_destroyed_under_a_scope),
    CHECK_CASE(a_dead_scope_is_no_later_domains),
    CHECK_CASE(dead_scopes_do_not_pile_up),
    CHECK_CASE(records_run_out_politely),
};
CHECK_MAIN(cases)
