/* obstack.h - the C library's object stack: a phase is an obstack of default chunks. */
#include <gnu/libc-version.h>
#include <obstack.h>

#include "backends/imported.h"

#define BK_PHASE_FREE 0
#define BK_HANDS_OVER 1

#define obstack_chunk_alloc malloc
#define obstack_chunk_free free

static inline void bk_start(void) {}

struct bk_phase {
    struct obstack stack;
};

static inline void bk_phase_open(struct bk_phase* ph, size_t hint) {
    (void)hint;
    obstack_init(&ph->stack);
}

static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    return bk_kept(obstack_alloc(&ph->stack, size), ref);
}

static inline void bk_phase_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    (void)list, (void)n;
    obstack_free(&ph->stack, NULL);
}
