/*
 * moves.c - objects that leave their phase alive: to the ring, or to a domain that is named; and the other calls that
 * make something outside of every scope.
 */
#include "kit/fixture.h"

#include <stdatomic.h>

static const size_t sizes[] = {1, 16, 40, 100, 700, 4096, 5000, 70000, 300000, 2000000};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static uint64_t current_era(SlabAllocator* a) { return epoch_era(a, epoch_current(a)); }

static void out_of_a_phase(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_begin(a, "request");
    void* moved[SIZES];
    for (size_t i = 0; i < SIZES; i++) {
        void* p = slab_malloc(a, sizes[i]);
        kit_fill(p, sizes[i], i);
        CHECK((moved[i] = slab_move_outside(a, p)) != NULL);
        CHECK(moved[i] != kit_hide(p));
        CHECK_EQ(kit_era_of(a, moved[i]), current_era(a));
        CHECK(kit_intact(moved[i], sizes[i], i));
        CHECK(!slab_free_checked(a, kit_hide(p))); /* it is gone from where it was */
        CHECK_GE(slab_usable_size(a, moved[i]), sizes[i]);
    }
    CHECK(epoch_domain_end(d));
    for (size_t i = 0; i < SIZES; i++) {
        CHECK(kit_intact(moved[i], sizes[i], i));
        CHECK(slab_free_checked(a, moved[i]));
    }
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

/* What is in the target already stays where it is. */
static void nowhere(void) {
    SlabAllocator* a = kit_create();
    void* p = slab_malloc(a, 100);
    CHECK(slab_move_outside(a, p) == p);
    epoch_advance(a);
    void* q = slab_move_outside(a, p);
    CHECK(q != NULL && q != kit_hide(p));
    CHECK_EQ(kit_era_of(a, q), current_era(a));
    epoch_domain_t* d = epoch_domain_create(a);
    void* in = epoch_domain_malloc(d, 100);
    CHECK(epoch_domain_move(d, in) == in);
    CHECK_EQ(kit_live(a), 2);
    CHECK(epoch_domain_destroy(d));
    slab_allocator_free(a);
}

static void into_another_phase(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* transaction = epoch_domain_create_labeled(a, "transaction");
    epoch_domain_t* query = epoch_domain_begin(a, "query");
    void* moved[SIZES];
    for (size_t i = 0; i < SIZES; i++) {
        void* p = slab_malloc(a, sizes[i]);
        kit_fill(p, sizes[i], i);
        SlabHandle h = slab_ptr_handle(a, p);
        CHECK(h != 0);
        CHECK((moved[i] = epoch_domain_move(transaction, p)) != NULL);
        CHECK_NULL(slab_handle_ptr(a, h));
        CHECK_EQ(kit_era_of(a, moved[i]), transaction->epoch_era);
    }
    EpochReceipt r;
    CHECK(epoch_domain_end_ex(query, &r));
    CHECK_EQ(r.objects_freed, SIZES);
    KIT_BALANCED(&r);
    for (size_t i = 0; i < SIZES; i++) CHECK(kit_intact(moved[i], sizes[i], i));
    CHECK(epoch_domain_destroy(transaction));
    CHECK_EQ(kit_live(a), 0);
    slab_allocator_free(a);
}

/* A survivor that is moved holds nothing of a phase that has drained. */
static void out_of_a_drained_phase(void) {
    SlabAllocator* a = kit_create_cold();
    epoch_domain_t* d = epoch_domain_begin(a, "drained");
    char* p = NULL;
    for (int i = 0; i < 1000; i++) p = slab_malloc(a, 100);
    kit_fill(p, 100, 7);
    uint64_t era = d->epoch_era;
    CHECK(epoch_domain_drain(d, NULL));
    char* q = slab_move_outside(a, p);
    CHECK(q != NULL && kit_intact(q, 100, 7));
    CHECK(epoch_close_era(a, era, EPOCH_RELEASE, NULL));
    CHECK(kit_intact(q, 100, 7));
    CHECK_EQ(kit_live(a), 1);
    slab_allocator_free(a);
}

static void refused(void) {
    SlabOptions o = kit_options();
    o.max_bytes = 4 << 20;
    SlabAllocator* a = kit_create_with(&o);
    SlabAllocator* other = kit_create();
    epoch_domain_t* d = epoch_domain_create(a);
    char* p = slab_malloc(a, 3 << 20);
    kit_fill(p, 3 << 20, 1);
    errno = 0;
    CHECK_NULL(epoch_domain_move(d, p)); /* no room for both */
    CHECK_EQ(errno, EDQUOT);
    CHECK_EQ(slab_error(), SLAB_ERROR_BUDGET);
    CHECK(kit_intact(p, 3 << 20, 1));
    char local[64];
    void* const none[] = {NULL, local, p + 16, slab_malloc(other, 10)};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        errno = 0;
        CHECK_NULL(slab_move_outside(a, none[i]));
        CHECK_EQ(errno, EINVAL);
        CHECK_EQ(slab_error(), SLAB_ERROR_OBJECT);
    }
    CHECK_EQ(kit_live(other), 1);
    slab_free(a, p);
    errno = 0;
    CHECK_NULL(slab_move_outside(a, kit_hide(p)));
    CHECK_EQ(errno, EINVAL);
    p = slab_malloc(a, 100);
    CHECK(epoch_domain_force_close(d));
    errno = 0;
    CHECK_NULL(epoch_domain_move(d, p));
    CHECK_EQ(errno, ESTALE);
    CHECK_EQ(slab_error(), SLAB_ERROR_ENDED);
    CHECK(slab_free_checked(a, p));
    CHECK(epoch_domain_destroy(d));
    slab_allocator_free(other);
    slab_allocator_free(a);
}

static void budget_ends_it(SlabAllocator* a, EpochId id, uint64_t bytes, bool hard, void* ctx) {
    (void)a, (void)id, (void)bytes, (void)hard;
    epoch_domain_t* d = ctx;
    (void)epoch_domain_force_close(d);
}

/* The function of the target's budget ends the phase that p is in. */
static void its_phase_ends_meanwhile(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* from = epoch_domain_create(a);
    epoch_domain_t* to = epoch_domain_create(a);
    void* p = epoch_domain_malloc(from, 100000);
    CHECK(slab_epoch_set_budget(a, to->epoch_id, 1, 0, budget_ends_it, from));
    errno = 0;
    CHECK_NULL(epoch_domain_move(to, p));
    CHECK_EQ(errno, ESTALE);
    CHECK_EQ(slab_error(), SLAB_ERROR_ENDED);
    CHECK_EQ(kit_live(a), 0);
    CHECK(epoch_domain_destroy(from));
    CHECK(epoch_domain_destroy(to));
    slab_allocator_free(a);
}

/* Grows and shrinks blocks outside, from inside of a scope and from the ring, by steps of every kind. */
static void realloc_outside_in_steps(void) {
    static const size_t steps[] = {1, 2, 100, 90, 5000, 10, 300000, 200, 1 << 20, 1000, 1, 64, 63};
    SlabAllocator* a = kit_create();
    for (int inside = 0; inside < 2; inside++) {
        epoch_domain_t* d = inside ? epoch_domain_begin(a, "request") : NULL;
        char* p = slab_malloc(a, 40);
        size_t had = 40;
        kit_fill(p, had, 5);
        for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
            if (i % 4 == 3) epoch_advance(a);
            char* q = slab_realloc_outside(a, p, steps[i]);
            CHECK(q != NULL);
            CHECK(kit_intact(q, had < steps[i] ? had : steps[i], 5));
            CHECK_GE(slab_usable_size(a, q), steps[i]);
            if (q != p) CHECK_EQ(kit_era_of(a, q), current_era(a));
            p = q;
            had = steps[i];
            kit_fill(p, had, 5);
        }
        if (d != NULL) CHECK(epoch_domain_end(d));
        CHECK(kit_intact(p, had, 5));
        CHECK(slab_free_checked(a, p));
        CHECK_EQ(kit_live(a), 0);
    }
    slab_allocator_free(a);
}

static void other_ways_outside(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_begin(a, "request");
    char* text = slab_strdup_outside(a, "kept");
    char* printed = slab_asprintf_outside(a, "%s %d", "number", 7);
    CHECK_EQ(kit_era_of(a, text), current_era(a));
    CHECK_EQ(kit_era_of(a, printed), current_era(a));
    char* grown = slab_realloc_outside(a, NULL, 10);
    CHECK_EQ(kit_era_of(a, grown), current_era(a));
    char* inside = slab_malloc(a, 100);
    kit_fill(inside, 100, 3);
    inside = slab_realloc_outside(a, inside, 5000);
    CHECK_EQ(kit_era_of(a, inside), current_era(a));
    CHECK(kit_intact(inside, 100, 3));
    char* gone = slab_malloc(a, 100);
    CHECK_NULL(slab_realloc_outside(a, gone, 0));
    CHECK(!slab_free_checked(a, kit_hide(gone)));
    SlabLabelStats rows[8];
    uint64_t made = 0;
    for (size_t n = slab_stats_labels(a, rows, 8); n != 0; n--)
        if (strcmp(rows[n - 1].label, "request") == 0) made = rows[n - 1].outside_objects;
    CHECK_EQ(made, 4);
    const char* volatile none = NULL;
    errno = 0;
    CHECK_NULL(slab_strdup_outside(a, none));
    CHECK_EQ(errno, EINVAL);
    CHECK(epoch_domain_end(d));
    CHECK_STR(text, "kept");
    CHECK_STR(printed, "number 7");
    CHECK_EQ(kit_live(a), 4);
    slab_allocator_free(a);
}

static SlabAllocator* shared;
static _Atomic(void*) box;
enum { TURNS = 20000 };

static void* taker(void* arg) {
    (void)arg;
    for (int got = 0; got < TURNS;) {
        char* p = atomic_exchange(&box, NULL);
        if (p == NULL) {
            sched_yield();
            continue;
        }
        char* q = slab_move_outside(shared, p);
        CHECK(q != NULL && kit_intact(q, 48, (uint64_t)got));
        CHECK(slab_free_checked(shared, q));
        got++;
    }
    return NULL;
}

/* By another thread than the one whose phase it is. */
static void by_another_thread(void) {
    shared = kit_create();
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, taker, NULL) == 0);
    epoch_domain_t* d = epoch_domain_begin(shared, "phase");
    for (int i = 0; i < TURNS; i++) {
        char* p = slab_malloc(shared, 48);
        kit_fill(p, 48, (uint64_t)i);
        void* none = NULL;
        while (!atomic_compare_exchange_weak(&box, &none, p)) {
            none = NULL;
            sched_yield();
        }
    }
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK(epoch_domain_end(d));
    CHECK_EQ(kit_live(shared), 0);
    slab_allocator_free(shared);
}

static const CheckCase cases[] = {
    CHECK_CASE(out_of_a_phase),
    CHECK_CASE(nowhere),
    CHECK_CASE(into_another_phase),
    CHECK_CASE(out_of_a_drained_phase),
    CHECK_CASE(refused),
    CHECK_CASE(its_phase_ends_meanwhile),
    CHECK_CASE(other_ways_outside),
    CHECK_CASE(realloc_outside_in_steps),
    CHECK_CASE(by_another_thread),
};
CHECK_MAIN(cases)
