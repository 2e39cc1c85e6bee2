/*
 * imported.h - functions of a preloaded library, found by name when the worker starts. Workers are compiled without the
 * library's headers and run wherever the library is; the call is one through a pointer in memory, as with
 * -fno-plt everywhere else.
 */
#ifndef BENCH_IMPORTED_H
#define BENCH_IMPORTED_H

/* A pointer of the function's type under its own name. */
#define IMPORT(type, name, parameters) static type(*name) parameters
#define IMPORTED(name) imported((void**)&(name), #name)

static inline void imported(void** place, const char* name) {
    char why[128];
    if ((*place = dlsym(RTLD_DEFAULT, name))) return;
    snprintf(why, sizeof why, "the library has no %s", name);
    cannot(why);
}

/* What phase peers have in common: pointers are what is kept, and all ends in bulk. */
typedef void* bk_ref;

#define BK_GENERAL 0
#define BK_PHASES 1
#define BK_BULK 1
#define BK_SCOPES 0
#define BK_OURS 0

static const char* bk_version(void) { return NULL; }

static inline void* bk_ptr(bk_ref ref) { return ref; }

static inline uint64_t bk_held_bytes(void) { return resident_bytes(); }

static inline void* bk_kept(void* p, bk_ref* ref) {
    if (ref) *ref = p;
    return p;
}

#endif
