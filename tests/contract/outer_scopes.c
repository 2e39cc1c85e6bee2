/*
 * outer_scopes.c - slab_scope_outer: where things go inside of it, and what may be left when.
 */
#include "kit/fixture.h"

#include <pthread.h>
#include <sys/wait.h>

static uint64_t era_of_new(SlabAllocator* a) {
    void* p = slab_malloc(a, 50);
    uint64_t era = kit_era_of(a, p);
    CHECK(slab_free_checked(a, p));
    return era;
}
static uint64_t ring_era(SlabAllocator* a) { return epoch_era(a, epoch_current(a)); }

static void out_of_a_phase_and_back(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_begin(a, "request");
    CHECK_EQ(era_of_new(a), d->epoch_era);
    CHECK(slab_scope_outer(a));
    CHECK_NULL(epoch_domain_current());
    CHECK_EQ(era_of_new(a), ring_era(a));
    epoch_advance(a); /* it follows the ring */
    CHECK_EQ(era_of_new(a), ring_era(a));
    void* kept = slab_malloc(a, 100);
    kit_fill(kept, 100, 1);
    void* named = epoch_domain_malloc(d, 100); /* by name all goes where it went */
    CHECK_EQ(kit_era_of(a, named), d->epoch_era);
    CHECK(slab_scope_outer_leave(a));
    CHECK(epoch_domain_current() == d);
    CHECK_EQ(era_of_new(a), d->epoch_era);
    CHECK(epoch_domain_end(d));
    CHECK(kit_intact(kept, 100, 1) && slab_free_checked(a, kept));
    slab_allocator_free(a);
}

static void nested(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t *d = epoch_domain_begin(a, "outer"), *inner;
    CHECK(slab_scope_outer(a));
    CHECK((inner = epoch_domain_begin(a, "inner")) != NULL);
    CHECK_EQ(era_of_new(a), inner->epoch_era);
    CHECK(slab_scope_outer(a) && slab_scope_outer(a));
    CHECK_EQ(era_of_new(a), ring_era(a));
    CHECK(slab_scope_outer_leave(a));
    CHECK_EQ(era_of_new(a), ring_era(a));
    CHECK(slab_scope_outer_leave(a));
    CHECK_EQ(era_of_new(a), inner->epoch_era);
    CHECK(epoch_domain_end(inner));
    CHECK_EQ(era_of_new(a), ring_era(a));
    CHECK(slab_scope_outer_leave(a));
    CHECK_EQ(era_of_new(a), d->epoch_era);
    CHECK(epoch_domain_end(d));
    slab_allocator_free(a);
}

static void refused(SlabAllocator* a, uint64_t before) {
    errno = 0;
    CHECK(!slab_scope_outer_leave(a));
    CHECK_EQ(errno, EINVAL);
    CHECK_EQ(slab_error(), SLAB_ERROR_ORDER);
    CHECK_EQ(kit_refusals(a).domain_order, before + 1);
}

static void in_the_wrong_order(void) {
    SlabAllocator *a = kit_create(), *other = kit_create();
    CHECK(!slab_scope_outer(NULL));
    CHECK_EQ(errno, EINVAL);
    CHECK(!slab_scope_outer_leave(NULL));
    refused(a, 0);
    epoch_domain_t* d = epoch_domain_begin(a, "request");
    refused(a, 1);
    CHECK(slab_scope_outer(a));
    refused(other, 0);
    CHECK(!epoch_domain_exit(d) && !epoch_domain_end(d) && !epoch_domain_detach(d));
    CHECK_EQ(d->refcount, 1);
    CHECK(slab_scope_outer(other)); /* each allocator has its own, on one stack */
    refused(a, 5);
    CHECK(slab_scope_outer_leave(other) && slab_scope_outer_leave(a));
    CHECK(epoch_domain_end(d));
    slab_allocator_free(a);
    slab_allocator_free(other);
}

/* It is no domain: a switch puts the task's scope on top of it, and takes it away again. */
static void beside_a_switch(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t *task = epoch_domain_create(a), *from = NULL;
    CHECK(slab_scope_outer(a));
    CHECK(epoch_domain_switch(task, &from));
    CHECK_NULL(from);
    CHECK_EQ(era_of_new(a), task->epoch_era);
    CHECK(epoch_domain_switch(NULL, &from));
    CHECK(from == task);
    CHECK_EQ(era_of_new(a), ring_era(a));
    CHECK(slab_scope_outer_leave(a));
    CHECK(epoch_domain_attach(task) && epoch_domain_end(task));
    slab_allocator_free(a);
}

/* A thread that exits inside, and an allocator that goes. */
static void* stays_inside(void* s) {
    epoch_domain_t* d = epoch_domain_begin(s, "request");
    CHECK(d != NULL && slab_scope_outer(s));
    return slab_malloc(s, 100);
}
static void left_behind(void) {
    SlabAllocator *a = kit_create(), *b = kit_create();
    pthread_t t;
    void* p;
    CHECK(pthread_create(&t, NULL, stays_inside, a) == 0 && pthread_join(t, &p) == 0);
    CHECK_EQ(kit_era_of(a, p), ring_era(a));
    CHECK_EQ(kit_live(a), 1);
    CHECK(slab_scope_outer(b));
    slab_allocator_free(b);
    CHECK_EQ(era_of_new(a), ring_era(a));
    refused(a, 0);
    slab_allocator_free(a);
}

static void in_a_child(void) {
    SlabAllocator* a = kit_create();
    epoch_domain_t* d = epoch_domain_begin(a, "request");
    CHECK(slab_scope_outer(a));
    pid_t child = fork();
    if (child == 0) {
        bool ok = era_of_new(a) == ring_era(a) && slab_scope_outer_leave(a) && epoch_domain_current() == d;
        _exit(ok && era_of_new(a) == d->epoch_era && epoch_domain_end(d) ? 0 : 1);
    }
    int status = 1;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(slab_scope_outer_leave(a) && epoch_domain_end(d));
    slab_allocator_free(a);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(out_of_a_phase_and_back), CHECK_CASE(nested),      CHECK_CASE(in_the_wrong_order),
        CHECK_CASE(beside_a_switch),         CHECK_CASE(left_behind), CHECK_CASE(in_a_child),
    };
    return CHECK_RUN(argc, argv, tests);
}
