/*
 * misuse.h - frame of the one-misuse programs. Each defines
 *
 *     static bool misuse(SlabAllocator* a)        commits the misuse, true when it was refused
 *     CAUSES(r, sum of fields of SlabRefusals *r, number of times it must have been counted)
 *
 * and exits with 0 iff the library refused the misuse, counted it under its cause and under no
 * other, and is usable afterwards: what was live before is whole, and objects, handles, domains
 * and epochs work.
 */
#ifndef TESTS_MISUSE_H
#define TESTS_MISUSE_H

#include "kit/fixture.h"

static bool misuse(SlabAllocator* a);
static uint64_t counted(const SlabRefusals* r);
static uint64_t expected_count(void);

#define CAUSES(r, sum, times)                                      \
    static uint64_t counted(const SlabRefusals* r) { return sum; } \
    static uint64_t expected_count(void) { return times; }

typedef struct RemoteFree {
    SlabAllocator* a;
    void* p;
    bool freed;
} RemoteFree;

static void* remote_free_main(void* arg) {
    RemoteFree* f = arg;
    f->freed = slab_free_checked(f->a, f->p);
    return NULL;
}

/* slab_free_checked on a thread of its own. */
__attribute__((unused)) static bool free_elsewhere(SlabAllocator* a, void* p) {
    RemoteFree f = {a, p, false};
    kit_on_thread(remote_free_main, &f);
    return f.freed;
}

static uint64_t all_causes(const SlabRefusals* r) {
    return r->stale_handle + r->bad_handle + r->double_free + r->stale_free + r->interior_pointer + r->foreign_pointer +
           r->size_mismatch + r->bad_epoch + r->closed_epoch + r->bad_size + r->domain_order + r->domain_stale +
           r->late_double_free + r->write_after_end;
}

static void check_usable(SlabAllocator* a) {
    SlabHandle h = 0;
    while (epoch_domain_current() != NULL) {
        epoch_domain_exit(epoch_domain_current());
    }
    epoch_advance(a);
    for (size_t size = 1; size < 400000; size = size * 3 + 1) {
        char* p = slab_malloc(a, size);
        if (CHECK(p != NULL)) {
            memset(p, 1, size);
            CHECK(slab_free_checked(a, p));
        }
    }
    CHECK(alloc_obj(a, 100, &h) != NULL && free_obj(a, h));
    epoch_domain_t* d = epoch_domain_begin(a, "afterwards");
    CHECK(d != NULL && slab_malloc(a, 100) != NULL);
    epoch_domain_end(d);
    EpochReceipt r = {0};
    CHECK(slab_malloc(a, 100) != NULL);
    CHECK(epoch_close_ex(a, epoch_current(a), EPOCH_RELEASE, &r));
    CHECK_EQ(r.objects_released, 1);
}

/* A program may define MISUSE_FILLS: its allocator has the option fill_freed, without which the misuse is not seen. Objects
 * must not be blocks of malloc then. */
static SlabAllocator* made(void) {
    SlabOptions o = kit_options();
#ifdef MISUSE_FILLS
    o.fill_freed = 1;
    o.by_malloc = 2;
#endif
    return kit_create_with(&o);
}

int main(void) {
    SlabAllocator* a = made();
    unsigned char* bystander = slab_malloc(a, 128);
    memset(bystander, 0x5C, 128);
    SlabRefusals before = kit_refusals(a);
    CHECK(misuse(a));
    SlabRefusals after = kit_refusals(a);
    CHECK_EQ(counted(&after) - counted(&before), expected_count());
    CHECK_EQ(all_causes(&after) - all_causes(&before), expected_count());
    for (size_t i = 0; i < 128; i++) {
        CHECK_EQ(bystander[i], 0x5C);
    }
    CHECK_EQ(slab_usable_size(a, bystander), 128);
    check_usable(a);
    CHECK(slab_free_checked(a, bystander));
    slab_allocator_free(a);
    return check_failures() != 0;
}

#endif
