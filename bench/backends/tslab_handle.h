/*
 * tslab_handle.h - temporal-slab by handle: alloc_obj and free_obj. What the caller keeps of an object is its handle.
 */
#include "slab_alloc.h"

typedef SlabHandle bk_ref;

#define BK_GENERAL 1
#define BK_BULK 1

#include "backends/ours.h"

static inline void bk_start(void) { bk_allocator = bk_new_allocator(); }

static inline void* bk_ptr(bk_ref ref) { return slab_handle_ptr(bk_allocator, ref); }

static inline void* bk_alloc(size_t size, bk_ref* ref) { return alloc_obj(bk_allocator, (uint32_t)size, ref); }

static inline void bk_free(bk_ref ref) {
    if (!free_obj(bk_allocator, ref)) corrupt("a handle that is valid was refused");
}

/* A handle is made even where nobody keeps it: it is what this backend is about. */
static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    SlabHandle own;
    return alloc_obj_epoch(bk_allocator, (uint32_t)size, ph->domain->epoch_id, ref ? ref : &own);
}

#define bk_phase_alloc_id bk_phase_alloc

static inline void bk_phase_free(struct bk_phase* ph, bk_ref ref) {
    (void)ph;
    bk_free(ref);
}

static inline void bk_phase_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    (void)list, (void)n;
    epoch_domain_destroy(ph->domain);
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
