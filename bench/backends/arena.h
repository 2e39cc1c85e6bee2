/*
 * arena.h - the physical limit: a bump pointer over chunks of 4 KiB (larger for phases that say so), which are kept for
 * the next phase. It frees nothing singly and gives nothing back. Behind calls (arena.c), which is the limit for a library; with
 * ARENA_INLINED in its caller, which is the limit for a program that has its own.
 */
#include "backends/imported.h"

#define BK_PHASE_FREE 0
#define BK_HANDS_OVER 0 /* chunks go to the thread that ends the phase, and never back */

#ifdef ARENA_INLINED
#include "backends/arena_bump.h"

#define arena_open bump_open
#define arena_take bump_take
#define arena_end bump_end
#else
struct arena_chunk;

struct bk_phase {
    char *at, *end;
    struct arena_chunk* chunks;
};

void arena_open(struct bk_phase* ph, size_t hint);
void* arena_take(struct bk_phase* ph, size_t size);
void arena_end(struct bk_phase* ph);
#endif

static inline void bk_start(void) {}

static inline void bk_phase_open(struct bk_phase* ph, size_t hint) { arena_open(ph, hint); }

static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    return bk_kept(arena_take(ph, size), ref);
}

static inline void bk_phase_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    (void)list, (void)n;
    arena_end(ph);
}
