/*
 * backend_tslab.h - temporal-slab through its public calls: one allocator with default options,
 * plain objects in the current epoch, a phase is a domain that is ended in bulk. With BK_SAMPLING_PERIOD defined one
 * allocation in so many is timed by the library (option sampling_period).
 */
#ifndef BACKEND_TSLAB_H
#define BACKEND_TSLAB_H

#include <stdlib.h>

#include "epoch_domain.h"
#include "slab_alloc.h"
#include "slab_stats.h"

#ifdef BK_SAMPLING_PERIOD
#define BACKEND backend_tslab_sampled
#define BACKEND_NAME "tslab-sampled"
#else
#define BACKEND backend_tslab
#define BACKEND_NAME "temporal-slab"
#define BK_SAMPLING_PERIOD 0
#endif

static SlabAllocator* bk_allocator;

static const char* bk_version(void) { return slab_version(); }

static inline void bk_start(void) {
    SlabOptions options = {.struct_size = sizeof options, .sampling_period = BK_SAMPLING_PERIOD};
    bk_allocator = slab_allocator_create_with(&options);
    if (!bk_allocator) abort();
}

static inline void* bk_alloc(size_t size) { return slab_malloc(bk_allocator, size); }

static inline void bk_free(void* p) { slab_free(bk_allocator, p); }

struct bk_phase {
    epoch_domain_t* domain;
};

static inline void bk_phase_open(struct bk_phase* ph, void** list) {
    (void)list;
    ph->domain = epoch_domain_create(bk_allocator);
}

static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size) { return epoch_domain_malloc(ph->domain, size); }

static inline void bk_phase_end(struct bk_phase* ph) { epoch_domain_destroy(ph->domain); }

/* A phase that is the thread's scope while it lasts: allocations need not name it. */
static inline void bk_scope_begin(struct bk_phase* ph, void** list) {
    (void)list;
    ph->domain = epoch_domain_begin(bk_allocator, NULL);
}

static inline void* bk_scope_alloc(struct bk_phase* ph, size_t size) {
    (void)ph;
    return slab_malloc(bk_allocator, size);
}

static inline void bk_scope_end(struct bk_phase* ph) { epoch_domain_end(ph->domain); }

static inline uint64_t bk_held_bytes(void) {
    SlabGlobalStats g;
    slab_stats_global(bk_allocator, &g);
    return g.committed_bytes;
}

#endif
