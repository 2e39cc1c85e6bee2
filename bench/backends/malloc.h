/*
 * malloc.h - whoever serves malloc in this process: the C library, or what was preloaded. It knows no
 * phases: the caller keeps a list, and the end of a phase frees it one by one.
 */
#include <gnu/libc-version.h>

typedef void* bk_ref;

#define BK_GENERAL 1
#define BK_PHASES 0
#define BK_PHASE_FREE 1
#define BK_BULK 0
#define BK_SCOPES 0
#define BK_OURS 0
#define BK_HANDS_OVER 1
#define BK_REALLOC 1

/* Its own version is only right where nobody else serves malloc. */
static const char* bk_version(void) {
    return strstr(identify_file_of("malloc"), "/libc.so") ? gnu_get_libc_version() : NULL;
}

static inline void bk_start(void) {}

static inline void* bk_ptr(bk_ref ref) { return ref; }

static inline void* bk_alloc(size_t size, bk_ref* ref) { return *ref = malloc(size); }

static inline void bk_free(bk_ref ref) { free(ref); }

struct bk_phase {
    char nothing;
};

static inline void bk_phase_open(struct bk_phase* ph, size_t hint) { (void)ph, (void)hint; }

static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size, bk_ref* ref) {
    (void)ph;
    return *ref = malloc(size);
}

static inline void bk_phase_free(struct bk_phase* ph, bk_ref ref) {
    (void)ph;
    free(ref);
}

static inline void* bk_scope_realloc(struct bk_phase* ph, bk_ref* ref, size_t old, size_t size) {
    (void)ph, (void)old;
    return *ref = realloc(*ref, size);
}

static inline void bk_phase_end(struct bk_phase* ph, bk_ref* list, size_t n) {
    (void)ph;
    for (size_t i = 0; i < n; i++) free(list[i]);
}

static inline uint64_t bk_held_bytes(void) { return resident_bytes(); }
