/*
 * domain_switch.c - executors: a thread that goes from one task's domain to another's in one call; the era of a domain;
 * a destroy with its receipt.
 */
#include "kit/fixture.h"

enum { TASKS = 300, TURNS = 5 };

static void from_task_to_task(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t *task[TASKS], *from = NULL;
    for (int i = 0; i < TASKS; i++) REQUIRE((task[i] = epoch_domain_create_labeled(a, "task")) != NULL);
    for (int turn = 0; turn < TURNS; turn++)
        for (int i = 0; i < TASKS; i++) {
            REQUIRE(epoch_domain_switch(task[i], &from)); /* entered in the first turn, attached afterwards */
            CHECK(from == (i > 0 ? task[i - 1] : turn > 0 ? task[TASKS - 1] : NULL));
            CHECK(epoch_domain_current() == task[i]);
            CHECK_EQ(task[i]->refcount, 1);
            REQUIRE(slab_malloc(a, 100) != NULL);
        }
    CHECK(epoch_domain_switch(task[TASKS - 1], &from)); /* it is there */
    CHECK(from == task[TASKS - 1]);
    CHECK(epoch_domain_switch(NULL, &from));
    CHECK(from == task[TASKS - 1]);
    CHECK_NULL(epoch_domain_current());
    CHECK(epoch_domain_switch(NULL, &from));
    CHECK_NULL(from);
    for (int i = 0; i < TASKS; i++) {
        EpochReceipt r;
        CHECK(!epoch_domain_destroy_ex(task[i], &r)); /* a scope is detached */
        REQUIRE(epoch_domain_switch(task[i], NULL));
        REQUIRE(epoch_domain_end_ex(task[i], &r));
        CHECK_EQ(r.objects_released, TURNS);
    }
    CHECK_EQ(kit_refusals(a).domain_order, TASKS);
    slab_allocator_free(a);
}

static void what_is_below_stays(void) {
    SlabAllocator *a = kit_create(), *b = kit_create();
    epoch_domain_t *outer = epoch_domain_begin(a, "outer"), *x = epoch_domain_begin(b, "x"),
                   *y = epoch_domain_create(a), *from;
    REQUIRE(epoch_domain_switch(y, &from));
    CHECK(from == x);
    CHECK(epoch_domain_current() == y);
    CHECK(epoch_domain_exit(y)); /* y has ended */
    CHECK(epoch_domain_current() == outer);
    CHECK(epoch_domain_attach(x));
    CHECK(epoch_domain_end(x));
    CHECK(epoch_domain_end(outer));
    CHECK(epoch_domain_destroy(y));
    slab_allocator_free(b);
    slab_allocator_free(a);
}

static epoch_domain_t* shared;

static void* stays_inside(void* unused) {
    CHECK(epoch_domain_switch(shared, NULL)); /* attached */
    return unused;                            /* and left, as the thread exits: it ends */
}

static void refusals_change_nothing(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t *here = epoch_domain_begin(a, "here"), *busy = epoch_domain_begin(a, "busy"), *from = busy;
    CHECK(!epoch_domain_switch(here, &from)); /* inside, further down, and not detached */
    CHECK_EQ(errno, EINVAL);
    CHECK(from == busy);
    CHECK(epoch_domain_current() == busy);
    CHECK_EQ(busy->refcount, 1);
    REQUIRE(slab_malloc(a, 100) != NULL);
    CHECK(epoch_domain_end(busy));
    CHECK(!epoch_domain_switch(busy, NULL)); /* gone */
    CHECK_EQ(errno, ESTALE);
    epoch_domain_t* old = epoch_domain_wrap(a, epoch_current(a), true);
    for (int i = 0; i < 20; i++) epoch_advance(a);
    CHECK(!epoch_domain_switch(old, NULL));
    CHECK_EQ(errno, ESTALE);
    CHECK(epoch_domain_current() == here);
    CHECK_EQ(here->refcount, 1);
    REQUIRE(slab_malloc(a, 100) != NULL);
    EpochReceipt r;
    REQUIRE(epoch_domain_end_ex(here, &r));
    CHECK_EQ(r.objects_released, 1);
    CHECK(epoch_domain_destroy(old));
    shared = epoch_domain_begin(a, "shared");
    REQUIRE(slab_malloc(a, 100) != NULL);
    CHECK(epoch_domain_switch(NULL, NULL));
    kit_on_thread(stays_inside, NULL);
    CHECK_EQ(shared->refcount, 0);
    CHECK(epoch_domain_destroy(shared));
    slab_allocator_free(a);
}

static void an_era_and_a_receipt(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_create_labeled(a, "kept");
    uint64_t era = epoch_domain_era(d);
    EpochReceipt r;
    CHECK_EQ(era, d->epoch_era);
    CHECK(epoch_domain_enter(d));
    CHECK(!epoch_domain_destroy_ex(d, NULL));
    CHECK_EQ(errno, EBUSY);
    REQUIRE(slab_malloc(a, 100) != NULL);
    CHECK(epoch_domain_reset(d));
    CHECK(epoch_domain_era(d) > era);
    era = epoch_domain_era(d);
    REQUIRE(slab_malloc(a, 100) != NULL);
    CHECK(epoch_domain_exit(d));
    CHECK_EQ(epoch_domain_era(d), era); /* it has ended */
    CHECK(epoch_domain_destroy_ex(d, &r));
    CHECK_EQ(r.epoch_era, era); /* of the end before */
    CHECK_EQ(r.objects_released, 1);
    CHECK_EQ(epoch_domain_era(d), 0);
    CHECK_EQ(epoch_domain_era(NULL), 0);
    CHECK(!epoch_domain_destroy_ex(d, &r));
    CHECK(!epoch_domain_destroy_ex(NULL, &r));
    d = epoch_domain_create_labeled(a, "kept");
    for (int i = 0; i < 3; i++) REQUIRE(epoch_domain_malloc(d, 100) != NULL);
    era = epoch_domain_era(d);
    CHECK(epoch_domain_destroy_ex(d, &r));
    CHECK_EQ(r.epoch_era, era);
    CHECK_EQ(r.objects_released, 3);
    CHECK_HAS(r.label, "kept");
    slab_allocator_free(a);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(from_task_to_task),
        CHECK_CASE(what_is_below_stays),
        CHECK_CASE(refusals_change_nothing),
        CHECK_CASE(an_era_and_a_receipt),
    };
    return CHECK_RUN(argc, argv, tests);
}
