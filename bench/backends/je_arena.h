/*
 * je_arena.h - jemalloc: a phase is an arena, used without thread caches and reset at the end. Arenas are
 * made once and used again, which costs a tenth of making them; there are 4,086 at most.
 */
#include "backends/imported.h"

#define BK_PHASE_FREE 1
#define BK_HANDS_OVER 1
#define BK_REALLOC 1

enum { ARENAS = 4096, NO_CACHE = 1 << 8 }; /* MALLOCX_TCACHE_NONE */

IMPORT(int, mallctl, (const char*, void*, size_t*, void*, size_t));
IMPORT(int, mallctlbymib, (const size_t*, size_t, void*, size_t*, void*, size_t));
IMPORT(int, mallctlnametomib, (const char*, size_t*, size_t*));
IMPORT(void*, mallocx, (size_t, int));
IMPORT(void*, rallocx, (void*, size_t, int));
IMPORT(void, dallocx, (void*, int));

static size_t reset_mib[3];
static unsigned idle_arenas[ARENAS], n_idle;
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;

static inline void bk_start(void) {
    size_t length = 3;
    IMPORTED(mallctl), IMPORTED(mallctlbymib), IMPORTED(mallctlnametomib), IMPORTED(mallocx), IMPORTED(dallocx);
    IMPORTED(rallocx);
    if (mallctlnametomib("arena.0.reset", reset_mib, &length) != 0) cannot("it resets no arenas");
}

struct bk_phase {
    unsigned arena;
};

static inline void bk_phase_open(struct bk_phase* ph, size_t hint) {
    size_t size = sizeof ph->arena;
    (void)hint;
    pthread_mutex_lock(&idle_lock);
    bool idle = n_idle > 0;
    if (idle) ph->arena = idle_arenas[--n_idle];
    pthread_mutex_unlock(&idle_lock);
    if (!idle && mallctl("arenas.create", &ph->arena, &size, NULL, 0) != 0) cannot("it makes no more arenas");
}

static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    return bk_kept(mallocx(size, (int)((ph->arena + 1) << 20) | NO_CACHE), ref);
}

static inline void bk_phase_free(struct bk_phase* ph, bk_ref ref) {
    (void)ph;
    dallocx(ref, NO_CACHE);
}

static inline void* bk_scope_realloc(struct bk_phase* ph, bk_ref* ref, size_t old, size_t size) {
    (void)old;
    return *ref = rallocx(*ref, size, (int)((ph->arena + 1) << 20) | NO_CACHE);
}

static inline void bk_phase_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    size_t mib[3] = {reset_mib[0], ph->arena, reset_mib[2]};
    (void)list, (void)n;
    if (mallctlbymib(mib, 3, NULL, NULL, NULL, 0) != 0) cannot("it does not reset the arena");
    pthread_mutex_lock(&idle_lock);
    if (n_idle < ARENAS) idle_arenas[n_idle++] = ph->arena;
    pthread_mutex_unlock(&idle_lock);
}
