/* rp_heap.h - rpmalloc: a phase is a first-class heap, emptied in one call and given back. */
#include "backends/imported.h"

#define BK_PHASE_FREE 1
#define BK_HANDS_OVER 1
#define BK_REALLOC 1

IMPORT(int, rpmalloc_initialize, (void));
IMPORT(void*, rpmalloc_heap_acquire, (void));
IMPORT(void*, rpmalloc_heap_alloc, (void*, size_t));
IMPORT(void*, rpmalloc_heap_realloc, (void*, void*, size_t, unsigned));
IMPORT(void, rpmalloc_heap_free, (void*, void*));
IMPORT(void, rpmalloc_heap_free_all, (void*));
IMPORT(void, rpmalloc_heap_release, (void*));

static inline void bk_start(void) {
    IMPORTED(rpmalloc_initialize), IMPORTED(rpmalloc_heap_acquire), IMPORTED(rpmalloc_heap_alloc);
    IMPORTED(rpmalloc_heap_free), IMPORTED(rpmalloc_heap_free_all), IMPORTED(rpmalloc_heap_release);
    IMPORTED(rpmalloc_heap_realloc);
    rpmalloc_initialize();
}

struct bk_phase {
    void* heap;
};

static inline void bk_phase_open(struct bk_phase* ph, size_t hint) {
    (void)hint;
    if (!(ph->heap = rpmalloc_heap_acquire())) cannot("it makes no more heaps");
}

static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    return bk_kept(rpmalloc_heap_alloc(ph->heap, size), ref);
}

static inline void bk_phase_free(struct bk_phase* ph, bk_ref ref) { rpmalloc_heap_free(ph->heap, ref); }

static inline void* bk_scope_realloc(struct bk_phase* ph, bk_ref* ref, size_t old, size_t size) {
    (void)old;
    return *ref = rpmalloc_heap_realloc(ph->heap, *ref, size, 0);
}

static inline void bk_phase_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    (void)list, (void)n;
    rpmalloc_heap_free_all(ph->heap);
    rpmalloc_heap_release(ph->heap);
}
