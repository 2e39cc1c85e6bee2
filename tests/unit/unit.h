/*
 * unit.h - cmocka, and the few steps that most unit tests share: looking inside an allocator, running a
 * piece on another thread, running the program again under another pretended system.
 *
 * Assertions belong on the main thread: cmocka leaves a failed test by longjmp.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/internal.h"
#include "epoch_domain.h"
#include "slab_alloc.h"
#include "slab_stats.h"
#include "stats/check.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* The compiler may assume that a fresh object equals no earlier pointer; tests compare exactly such pointers. */
static inline void* unit_hide(void* p) {
    __asm__ volatile("" : "+r"(p));
    return p;
}

/* A test that knows how lines and slabs of classes lie defines UNIT_RING_BY_CLASS: its epochs of the ring allocate by class from
 * the first object on, not only from behind the first 12 KiB. */
#ifdef UNIT_RING_BY_CLASS
enum { UNIT_BUMP = TSI_BUMP_DOMAINS };
#else
enum { UNIT_BUMP = 0 };
#endif

static inline SlabOptions unit_options(void) {
    SlabOptions o;
    memset(&o, 0, sizeof o);
    o.struct_size = sizeof o;
    o.reserve_bytes = TSI_RESERVE_MIN * 16;
    o.bump = UNIT_BUMP;
    return o;
}

/* Without warm pages, so that what an epoch returns goes to the system. */
static inline SlabAllocator* unit_create_cold(void) {
    SlabOptions o = unit_options();
    o.warm_bytes = UINT64_MAX;
    SlabAllocator* a = slab_allocator_create_with(&o);
    assert_non_null(a);
    return a;
}

static inline SlabAllocator* unit_create(void) {
    SlabOptions o = unit_options();
    SlabAllocator* a = slab_allocator_create_with(&o);
    assert_non_null(a);
    return a;
}

static inline void unit_check_at(SlabAllocator* a, const char* file, int line) {
    char why[160] = "";
    if (!tsi_check_allocator(a, why, sizeof why)) {
        print_error("%s:%d: %s\n", file, line, why);
        fail();
    }
}
#define unit_check(a) unit_check_at((a), __FILE__, __LINE__)

static inline uint64_t unit_committed(SlabAllocator* a) {
    return tsi_load_relaxed(&tsi_arena(a)->space.committed_bytes);
}

static inline SlabRefusals unit_refusals(SlabAllocator* a) {
    SlabRefusals r;
    slab_stats_refusals(a, &r);
    return r;
}

static inline uint64_t unit_live(SlabAllocator* a) {
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    return g.live_objects;
}

static inline void unit_balanced(const EpochReceipt* r) {
    assert_int_equal(r->objects_allocated, r->objects_freed + r->objects_released + r->objects_escaped);
    assert_int_equal(r->bytes_allocated, r->bytes_freed + r->bytes_released + r->bytes_escaped);
}

/* n objects of `size` bytes, each filled with its number. */
static inline void unit_take(SlabAllocator* a, size_t size, void** p, unsigned n) {
    for (unsigned i = 0; i < n; i++) {
        assert_non_null(p[i] = slab_malloc(a, size));
        memset(p[i], (int)i, size);
    }
}
static inline EpochReceipt unit_end(SlabAllocator* a, EpochId id, EpochCloseMode mode) {
    EpochReceipt r;
    assert_true(epoch_close_ex(a, id, mode, &r));
    unit_balanced(&r);
    assert_int_equal(r.epoch_id, id);
    unit_check(a);
    return r;
}

/* The classes that have slabs, one after the other: those of sizes, then those of regions. */
static inline unsigned unit_class_after(unsigned cls) { return cls == TSI_CLASS_REGION ? TSI_CLASS_CONT + 1 : cls + 1; }

/* Where an object lies. */
static inline TsiPlace unit_place(SlabAllocator* a, const void* p) {
    TsiPlace at = {0, 0, 0, 0};
    assert_int_equal(tsi_space_locate(&tsi_arena(a)->space, p, &at), TSI_PLACE_OK);
    return at;
}
static inline uint64_t unit_tag(SlabAllocator* a, const void* p) {
    return tsi_load_seq(&tsi_slab(&tsi_arena(a)->space, unit_place(a, p).slab_id)->tag);
}
static inline TsiBinding* unit_binding(SlabAllocator* a) { return tsi_binding_get(tsi_arena(a), false); }

/* Runs fn(arg) on a thread of its own, to its end. */
static inline void unit_on_thread(void* (*fn)(void*), void* arg) {
    pthread_t t;
    assert_int_equal(pthread_create(&t, NULL, fn, arg), 0);
    assert_int_equal(pthread_join(t, NULL), 0);
}

/* A thread that stays and runs one piece at a time while the caller waits. */
typedef struct UnitWorker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    void (*fn)(void*); /* NULL = idle */
    void* arg;
    bool stop;
} UnitWorker;

static void* unit_worker_main(void* arg) {
    UnitWorker* w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->stop) {
        if (w->fn != NULL) {
            w->fn(w->arg);
            w->fn = NULL;
            pthread_cond_broadcast(&w->changed);
        }
        if (!w->stop && w->fn == NULL) pthread_cond_wait(&w->changed, &w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static inline void unit_worker_start(UnitWorker* w) {
    memset(w, 0, sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    assert_int_equal(pthread_create(&w->thread, NULL, unit_worker_main, w), 0);
}

static inline void unit_worker_run(UnitWorker* w, void (*fn)(void*), void* arg) {
    pthread_mutex_lock(&w->lock);
    w->arg = arg;
    w->fn = fn;
    pthread_cond_broadcast(&w->changed);
    while (w->fn != NULL) pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

static inline void unit_worker_stop(UnitWorker* w) {
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_broadcast(&w->changed);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
}

/* Runs this program again with one argument and returns its exit code, or 128 + the signal that ended it. */
static inline int unit_rerun(const char* argument) {
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "unit", argument, (char*)NULL);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) return 126;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
