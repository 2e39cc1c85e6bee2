/*
 * talloc.h - Samba's hierarchical allocator: a phase is a pool of about the size that it will need (each
 * object has a header of 96 bytes), its objects are children.
 */
#include "backends/imported.h"

#define BK_PHASE_FREE 1
#define BK_HANDS_OVER 1
#define BK_REALLOC 1

IMPORT(void*, talloc_pool, (const void*, size_t));
IMPORT(void*, talloc_named_const, (const void*, size_t, const char*));
IMPORT(void*, _talloc_realloc, (const void*, void*, size_t, const char*));
IMPORT(int, _talloc_free, (void*, const char*));

static inline void bk_start(void) {
    IMPORTED(talloc_pool), IMPORTED(talloc_named_const), IMPORTED(_talloc_realloc), IMPORTED(_talloc_free);
}

struct bk_phase {
    void* pool;
};

static inline void bk_phase_open(struct bk_phase* ph, size_t hint) {
    size_t size = hint + hint * 3 / 2;
    if (!(ph->pool = talloc_pool(NULL, size < 1 << 20 ? size : 1 << 20))) cannot("it makes no more pools");
}

static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    return bk_kept(talloc_named_const(ph->pool, size, "object"), ref);
}

static inline void bk_phase_free(struct bk_phase* ph, bk_ref ref) {
    (void)ph;
    _talloc_free(ref, "bench");
}

static inline void* bk_scope_realloc(struct bk_phase* ph, bk_ref* ref, size_t old, size_t size) {
    (void)old;
    return *ref = _talloc_realloc(ph->pool, *ref, size, "object");
}

static inline void bk_phase_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    (void)list, (void)n;
    _talloc_free(ph->pool, "bench");
}
