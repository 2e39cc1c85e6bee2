/*
 * arena.h - the physical limit: a bump pointer over chunks of 4 KiB (larger for phases that say so), which are kept for
 * the next phase. It frees nothing singly and gives nothing back.
 */
#include "backends/imported.h"

#define BK_PHASE_FREE 0

struct bk_phase {
    char *at, *end;
    struct arena_chunk* chunks;
};

void arena_open(struct bk_phase* ph, size_t hint);
void* arena_take(struct bk_phase* ph, size_t size);
void arena_end(struct bk_phase* ph);

static inline void bk_start(void) {}

static inline void bk_phase_open(struct bk_phase* ph, size_t hint) { arena_open(ph, hint); }

static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    return bk_kept(arena_take(ph, size), ref);
}

static inline void bk_phase_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    (void)list, (void)n;
    arena_end(ph);
}
