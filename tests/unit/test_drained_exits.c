/*
 * test_drained_exits.c - phases of a preloaded malloc: an exit drains them, that of a thread, too, and which of a thread's
 * scopes are such a phase.
 */
#include "kit/one.h"

#include "api/as_malloc.h"

static void* exits_inside(void* at) {
    void** made = at;
    epoch_domain_t* d = tsi_malloc_begin(a, "left");
    REQUIRE(d != NULL);
    REQUIRE((made[0] = slab_malloc(a, 100)) != NULL);
    REQUIRE(tsi_malloc_begin(a, "left, too") != NULL);
    REQUIRE((made[1] = slab_malloc(a, 100)) != NULL);
    return NULL;
}

static void a_thread_that_exits(void) {
    void* made[2];
    pthread_t t;
    REQUIRE_EQ(pthread_create(&t, NULL, exits_inside, made), 0);
    REQUIRE_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(kit_global(a).draining_phases, 2);
    CHECK_GE(slab_usable_size(a, made[0]), 100);
    CHECK(slab_free_checked(a, made[0]));
    CHECK(slab_free_checked(a, made[1]));
    CHECK_EQ(kit_global(a).draining_phases, 0);
    kit_check(a);
}

/* A phase that another thread has entered last. */
static void* resumes(void* d) {
    REQUIRE(epoch_domain_attach(d));
    return NULL;
}
static void another_thread(void) {
    epoch_domain_t* d = tsi_malloc_begin(a, "phase");
    void* p = slab_malloc(a, 100);
    pthread_t t;
    CHECK(epoch_domain_detach(d));
    REQUIRE_EQ(pthread_create(&t, NULL, resumes, d), 0);
    REQUIRE_EQ(pthread_join(t, NULL), 0);
    CHECK_EQ(kit_global(a).draining_phases, 1);
    CHECK(!epoch_domain_attach(d)); /* it is gone */
    CHECK(slab_free_checked(a, p));
}

static void an_exit(void) {
    epoch_domain_t* d = tsi_malloc_begin(a, "phase");
    void* p = slab_malloc(a, 100);
    EpochReceipt r;
    CHECK(epoch_domain_exit(d));
    CHECK(epoch_domain_drain(d, &r));
    CHECK_EQ(r.objects_escaped, 1);
    CHECK(slab_free_checked(a, p));
    /* The record's next domain is one like others. */
    d = epoch_domain_begin(a, "phase");
    p = slab_malloc(a, 100);
    CHECK(epoch_domain_exit(d));
    CHECK(epoch_domain_receipt(d, &r));
    CHECK_EQ(r.objects_released, 1);
    CHECK(!slab_free_checked(a, p));
    CHECK(epoch_domain_destroy(d));
}

static void inside_and_outside(void) {
    CHECK(!tsi_malloc_in_phase(a));
    epoch_domain_t* d = tsi_malloc_begin(a, "phase");
    CHECK(tsi_malloc_in_phase(a));
    CHECK(slab_scope_outer(a));
    CHECK(!tsi_malloc_in_phase(a));
    epoch_domain_t* inner = tsi_malloc_begin(a, "inner");
    CHECK(tsi_malloc_in_phase(a));
    CHECK(epoch_domain_drain(inner, NULL));
    CHECK(!tsi_malloc_in_phase(a));
    CHECK(slab_scope_outer_leave(a));
    CHECK(tsi_malloc_in_phase(a));
    CHECK(epoch_domain_detach(d));
    CHECK(!tsi_malloc_in_phase(a));
    CHECK(epoch_domain_drain(d, NULL) || (epoch_domain_attach(d) && epoch_domain_drain(d, NULL)));
}

int main(int argc, char** argv) {
    static const CheckCase tests[] = {CHECK_CASE_WITH(a_thread_that_exits, kit_open_cold, kit_close),
                                      CHECK_CASE_WITH(another_thread, kit_open_cold, kit_close),
                                      CHECK_CASE_WITH(an_exit, kit_open_cold, kit_close),
                                      CHECK_CASE_WITH(inside_and_outside, kit_open_cold, kit_close)};
    return CHECK_RUN(argc, argv, tests);
}
