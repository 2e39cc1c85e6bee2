/* apr.h - Apache Portable Runtime: a phase is a pool, under a root with an allocator of its own for each thread. */
#include "backends/imported.h"

#define BK_PHASE_FREE 0
#define BK_HANDS_OVER 0 /* a pool belongs to the root of its thread */
#define BK_ALIGN 8      /* all that pools promise */

IMPORT(int, apr_initialize, (void));
IMPORT(int, apr_allocator_create, (void**));
IMPORT(int, apr_pool_create_ex, (void**, void*, void*, void*));
IMPORT(void*, apr_palloc, (void*, size_t));
IMPORT(void, apr_pool_destroy, (void*));

static _Thread_local void* apr_root;

static inline void bk_start(void) {
    IMPORTED(apr_initialize), IMPORTED(apr_allocator_create), IMPORTED(apr_pool_create_ex);
    IMPORTED(apr_palloc), IMPORTED(apr_pool_destroy);
    if (apr_initialize() != 0) cannot("it does not start");
}

struct bk_phase {
    void* pool;
};

static void __attribute__((noinline)) apr_make_root(void) {
    void* allocator;
    if (apr_allocator_create(&allocator) != 0 || apr_pool_create_ex(&apr_root, NULL, NULL, allocator) != 0)
        cannot("it makes no pools");
}

static inline void bk_phase_open(struct bk_phase* ph, size_t hint) {
    (void)hint;
    if (!apr_root) apr_make_root();
    if (apr_pool_create_ex(&ph->pool, apr_root, NULL, NULL) != 0) cannot("it makes no more pools");
}

static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    return bk_kept(apr_palloc(ph->pool, size), ref);
}

static inline void bk_phase_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    (void)list, (void)n;
    apr_pool_destroy(ph->pool);
}
