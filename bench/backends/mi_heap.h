/* mi_heap.h - mimalloc: a phase is a heap of its own, destroyed with all that is in it. */
#include "backends/imported.h"

#define BK_PHASE_FREE 1
#define BK_HANDS_OVER 1
#define BK_REALLOC 1

IMPORT(void*, mi_heap_new, (void));
IMPORT(void*, mi_heap_malloc, (void*, size_t));
IMPORT(void*, mi_heap_realloc, (void*, void*, size_t));
IMPORT(void, mi_heap_destroy, (void*));
IMPORT(void, mi_free, (void*));

static inline void bk_start(void) {
    IMPORTED(mi_heap_new), IMPORTED(mi_heap_malloc), IMPORTED(mi_heap_destroy), IMPORTED(mi_free);
    IMPORTED(mi_heap_realloc);
}

struct bk_phase {
    void* heap;
};

static inline void bk_phase_open(struct bk_phase* ph, size_t hint) {
    (void)hint;
    if (!(ph->heap = mi_heap_new())) cannot("it makes no more heaps");
}

static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    return bk_kept(mi_heap_malloc(ph->heap, size), ref);
}

static inline void bk_phase_free(struct bk_phase* ph, bk_ref ref) {
    (void)ph;
    mi_free(ref);
}

static inline void* bk_scope_realloc(struct bk_phase* ph, bk_ref* ref, size_t old, size_t size) {
    (void)old;
    return *ref = mi_heap_realloc(ph->heap, *ref, size);
}

static inline void bk_phase_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    (void)list, (void)n;
    mi_heap_destroy(ph->heap);
}
