/*
 * tslab_handle.h - temporal-slab by handle: alloc_obj and free_obj. What the caller keeps of an object is its handle.
 */
#include "epoch_domain.h"
#include "slab_alloc.h"
#include "slab_stats.h"

typedef SlabHandle bk_ref;

#define BK_GENERAL 1
#define BK_PHASES 1
#define BK_PHASE_FREE 1
#define BK_BULK 1
#define BK_SCOPES 1
#define BK_OURS 1

static SlabAllocator* bk_allocator;

static const char* bk_version(void) { return slab_version(); }

static inline void bk_start(void) {
    if (!(bk_allocator = slab_allocator_create())) cannot(slab_last_error());
}

static inline void* bk_ptr(bk_ref ref) { return slab_handle_ptr(bk_allocator, ref); }

static inline void* bk_alloc(size_t size, bk_ref* ref) { return alloc_obj(bk_allocator, (uint32_t)size, ref); }

static inline void bk_free(bk_ref ref) {
    if (!free_obj(bk_allocator, ref)) corrupt("a handle that is valid was refused");
}

struct bk_phase {
    epoch_domain_t* domain;
};

static inline void bk_phase_open(struct bk_phase* ph, size_t hint) {
    (void)hint;
    if (!(ph->domain = epoch_domain_create(bk_allocator))) cannot("no domain");
}

/* A handle is made even where nobody keeps it: it is what this backend is about. */
static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    SlabHandle own;
    return alloc_obj_epoch(bk_allocator, (uint32_t)size, ph->domain->epoch_id, ref ? ref : &own);
}

static inline void bk_phase_free(struct bk_phase* ph, bk_ref ref) {
    (void)ph;
    bk_free(ref);
}

static inline void bk_phase_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    (void)list, (void)n;
    epoch_domain_destroy(ph->domain);
}

static inline void bk_scope_begin(struct bk_phase* ph, size_t hint) {
    (void)hint;
    if (!(ph->domain = epoch_domain_begin(bk_allocator, NULL))) cannot("no domain");
}

static inline void* bk_scope_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    SlabHandle own;
    (void)ph;
    return alloc_obj(bk_allocator, (uint32_t)size, ref ? ref : &own);
}

#define bk_scope_free bk_phase_free

static inline void bk_scope_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    (void)list, (void)n;
    epoch_domain_end(ph->domain);
}

static inline uint64_t bk_held_bytes(void) {
    SlabGlobalStats g;
    slab_stats_global(bk_allocator, &g);
    return g.committed_bytes;
}
