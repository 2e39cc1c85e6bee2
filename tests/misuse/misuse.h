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

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <epoch_domain.h>
#include <slab_alloc.h>
#include <slab_stats.h>

static bool misuse(SlabAllocator* a);
static uint64_t counted(const SlabRefusals* r);
static uint64_t expected_count(void);

#define CAUSES(r, sum, times)                                      \
    static uint64_t counted(const SlabRefusals* r) { return sum; } \
    static uint64_t expected_count(void) { return times; }

/* The compiler must not conclude that a fresh object differs from every earlier pointer, nor that
 * a pointer is not used after its free. */
__attribute__((unused)) static void* hide(const void* p) {
    uintptr_t v = (uintptr_t)p;
    __asm__ volatile("" : "+r"(v));
    return (void*)v;
}

__attribute__((unused)) static size_t hide_size(size_t n) {
    __asm__ volatile("" : "+r"(n));
    return n;
}

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
    pthread_t t;
    if (pthread_create(&t, NULL, remote_free_main, &f) != 0) {
        fputs("no thread\n", stderr);
        exit(3);
    }
    pthread_join(t, NULL);
    return f.freed;
}

static uint64_t all_causes(const SlabRefusals* r) {
    return r->stale_handle + r->bad_handle + r->double_free + r->stale_free + r->interior_pointer + r->foreign_pointer +
           r->size_mismatch + r->bad_epoch + r->closed_epoch + r->bad_size + r->domain_order + r->domain_stale +
           r->late_double_free;
}

static bool say(bool ok, const char* what) {
    if (!ok) {
        fprintf(stderr, "failed: %s\n", what);
    }
    return ok;
}

static bool usable_after(SlabAllocator* a) {
    bool ok = true;
    SlabHandle h = 0;
    while (epoch_domain_current() != NULL) {
        epoch_domain_exit(epoch_domain_current());
    }
    epoch_advance(a);
    for (size_t size = 1; size < 400000; size = size * 3 + 1) {
        char* p = slab_malloc(a, size);
        ok = say(p != NULL, "an object afterwards") && ok;
        if (p != NULL) {
            memset(p, 1, size);
            ok = say(slab_free_checked(a, p), "its free") && ok;
        }
    }
    ok = say(alloc_obj(a, 100, &h) != NULL && free_obj(a, h), "a handle afterwards") && ok;
    epoch_domain_t* d = epoch_domain_begin(a, "afterwards");
    ok = say(d != NULL && slab_malloc(a, 100) != NULL, "a domain afterwards") && ok;
    epoch_domain_end(d);
    EpochReceipt r;
    ok = say(slab_malloc(a, 100) != NULL, "an epoch afterwards") && ok;
    ok = say(epoch_close_ex(a, epoch_current(a), EPOCH_RELEASE, &r), "a close afterwards") && ok;
    ok = say(r.objects_released == 1, "its receipt") && ok;
    return ok;
}

int main(void) {
    SlabAllocator* a = slab_allocator_create();
    if (a == NULL) {
        fprintf(stderr, "no allocator: %s\n", slab_last_error());
        return 3;
    }
    unsigned char* bystander = slab_malloc(a, 128);
    memset(bystander, 0x5C, 128);
    SlabRefusals before, after;
    slab_stats_refusals(a, &before);
    bool ok = say(misuse(a), "refused");
    slab_stats_refusals(a, &after);
    uint64_t right = counted(&after) - counted(&before), all = all_causes(&after) - all_causes(&before);
    if (right != expected_count() || all != expected_count()) {
        fprintf(stderr, "failed: counted %" PRIu64 " times under its cause and %" PRIu64 " in all, not %" PRIu64 "\n",
                right, all, expected_count());
        ok = false;
    }
    for (size_t i = 0; i < 128; i++) {
        ok = bystander[i] == 0x5C && ok;
    }
    ok = say(slab_usable_size(a, bystander) == 128, "the bystander is live") && ok;
    ok = usable_after(a) && ok;
    ok = say(slab_free_checked(a, bystander), "the bystander's free") && ok;
    slab_allocator_free(a);
    return ok ? 0 : 1;
}

#endif
