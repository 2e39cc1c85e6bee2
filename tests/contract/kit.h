/*
 * kit.h - what several contract programs need besides check.h: readings of the allocator's own
 * numbers, contents patterns, a generator of repeatable pseudo-random numbers, and threads.
 *
 * kit_hide launders a pointer: the compiler may assume that a fresh object equals no earlier
 * pointer, and these programs compare exactly such pointers.
 */
#ifndef TESTS_KIT_H
#define TESTS_KIT_H

#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

#include <epoch_domain.h>
#include <slab_alloc.h>
#include <slab_stats.h>

#define KIT_MIB ((size_t)1 << 20)
/* Warm pages an allocator with default options may keep. */
#define KIT_WARM_BYTES KIT_MIB

static inline void* kit_hide(const void* p) {
    uintptr_t v = (uintptr_t)p;
    __asm__ volatile("" : "+r"(v));
    return (void*)v;
}

static inline size_t kit_size(size_t n) {
    __asm__ volatile("" : "+r"(n));
    return n;
}

static inline uint64_t kit_rand(uint64_t* state) {
    uint64_t x = *state;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    *state = x;
    return x * 0x2545F4914F6CDD1Dull;
}

/* A size between 1 and max, small ones likelier. */
static inline size_t kit_rand_size(uint64_t* state, size_t max) {
    size_t top = (size_t)1 << (4 + kit_rand(state) % 17);
    if (top > max) {
        top = max;
    }
    return 1 + (size_t)(kit_rand(state) % top);
}

static inline unsigned char kit_byte(uint64_t seed, size_t i) {
    uint64_t x = (seed + i) * 0x9E3779B97F4A7C15ull;
    return (unsigned char)(x >> 56);
}

__attribute__((noinline, unused)) static void kit_fill(void* p, size_t n, uint64_t seed) {
    unsigned char* bytes = p;
    for (size_t i = 0; i < n; i++) {
        bytes[i] = kit_byte(seed, i);
    }
}

__attribute__((noinline, unused)) static bool kit_intact(const void* p, size_t n, uint64_t seed) {
    const unsigned char* bytes = p;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != kit_byte(seed, i)) {
            return false;
        }
    }
    return true;
}

__attribute__((noinline, unused)) static bool kit_all_zero(const void* p, size_t n) {
    const unsigned char* bytes = p;
    for (size_t i = 0; i < n; i++) {
        if (bytes[i] != 0) {
            return false;
        }
    }
    return true;
}

/* Allocators are created with this: a program cannot go on without one. */
static inline SlabAllocator* kit_create_with(const SlabOptions* options) {
    SlabAllocator* a = slab_allocator_create_with(options);
    if (a == NULL) {
        fprintf(stderr, "no allocator: %s\n", slab_last_error());
        exit(3);
    }
    return a;
}

static inline SlabAllocator* kit_create(void) { return kit_create_with(NULL); }

static inline SlabOptions kit_options(void) {
    SlabOptions o;
    memset(&o, 0, sizeof o);
    o.struct_size = sizeof o;
    return o;
}

/* Objects of the ring's epochs by size class from the first one on, where otherwise those of a thread's first 12 KiB lie in regions:
 * for cases that know how slabs of classes lie. */
static inline SlabAllocator* kit_create_by_class(void) {
    SlabOptions o = kit_options();
    o.bump = 3;
    return kit_create_with(&o);
}

/* Without warm pages, so that what is committed is what epochs hold. */
static inline SlabAllocator* kit_create_cold(void) {
    SlabOptions o = kit_options();
    o.warm_bytes = UINT64_MAX;
    return kit_create_with(&o);
}

static inline SlabGlobalStats kit_global(SlabAllocator* a) {
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    return g;
}

/* TSLAB_OPTIONS says that the ring's epochs allocate by size class from the first object on. */
static inline bool kit_by_class(void) {
    const char* text = getenv("TSLAB_OPTIONS");
    return text != NULL && (strstr(text, "shared=1") != NULL || strstr(text, "bump=3") != NULL);
}
/* The program runs with TSLAB_OPTIONS=shared=1. */
static inline bool kit_shared(void) {
    const char* text = getenv("TSLAB_OPTIONS");
    return text != NULL && strstr(text, "shared=1") != NULL;
}

static inline uint64_t kit_committed(SlabAllocator* a) { return kit_global(a).committed_bytes; }
static inline uint64_t kit_live(SlabAllocator* a) { return kit_global(a).live_objects; }

static inline SlabRefusals kit_refusals(SlabAllocator* a) {
    SlabRefusals r;
    slab_stats_refusals(a, &r);
    return r;
}

/* Refused frees of either kind, all causes. */
static inline uint64_t kit_refused_frees(SlabAllocator* a) {
    SlabRefusals r = kit_refusals(a);
    return r.stale_handle + r.bad_handle + r.double_free + r.stale_free + r.interior_pointer + r.foreign_pointer +
           r.size_mismatch;
}

static inline SlabEpochStats kit_epoch(SlabAllocator* a, uint32_t size_class, EpochId id) {
    SlabEpochStats s;
    slab_stats_epoch(a, size_class, id, &s);
    return s;
}

static inline uint64_t kit_era_of(SlabAllocator* a, const void* p) {
    uint64_t era = 0;
    return slab_ptr_epoch(a, p, NULL, &era) ? era : 0;
}

static inline void kit_check_balance(const EpochReceipt* r, const char* file, int line) {
    check_compare(CHECK_OP_EQ, file, line, "objects allocated", "freed + released + escaped", r->objects_allocated,
                  r->objects_freed + r->objects_released + r->objects_escaped);
    check_compare(CHECK_OP_EQ, file, line, "bytes allocated", "freed + released + escaped", r->bytes_allocated,
                  r->bytes_freed + r->bytes_released + r->bytes_escaped);
}
#define KIT_BALANCED(r) kit_check_balance((r), __FILE__, __LINE__)

static inline pthread_t kit_thread(void* (*fn)(void*), void* arg) {
    pthread_t t;
    int rc = pthread_create(&t, NULL, fn, arg);
    if (rc != 0) {
        fprintf(stderr, "pthread_create: %s\n", strerror(rc));
        exit(3);
    }
    return t;
}

/* Runs fn(arg) on a thread of its own, to its end. */
static inline void kit_on_thread(void* (*fn)(void*), void* arg) { pthread_join(kit_thread(fn, arg), NULL); }

static inline void kit_sleep_us(unsigned us) {
    struct timespec t = {.tv_sec = us / 1000000u, .tv_nsec = (long)(us % 1000000u) * 1000};
    nanosleep(&t, NULL);
}

static inline void kit_await(const _Atomic int* flag, int value) {
    while (atomic_load(flag) != value) {
        sched_yield();
    }
}

#endif
