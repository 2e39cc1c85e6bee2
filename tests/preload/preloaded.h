/*
 * preloaded.h - what programs under libtemporal_slab_preload.so share: where a pointer comes from.
 *
 * They are ordinary programs and are not linked with the library; without it each case is refused.
 */
#ifndef TESTS_PRELOAD_PRELOADED_H
#define TESTS_PRELOAD_PRELOADED_H

#include "kit/check.h"

#include <dlfcn.h>
#include <malloc.h>

extern void* __libc_malloc(size_t size);
extern void* __libc_memalign(size_t align, size_t size);

/* The file that defines a function. */
static inline const char* pre_file_of(const char* name) {
    Dl_info of;
    void* at = dlsym(RTLD_DEFAULT, name);
    return at != NULL && dladdr(at, &of) != 0 ? of.dli_fname : "";
}

/* By how far it is from an object of ours, whose allocator has 64 GiB, and from one in libc's heap, which grows from
 * the program's end. */
static inline bool pre_is_ours(const void* p) {
    static uintptr_t some;
    if (some == 0) some = (uintptr_t)malloc(64); /* kept */
    uintptr_t apart = (uintptr_t)p > some ? (uintptr_t)p - some : some - (uintptr_t)p;
    void* libc = __libc_malloc(64);
    uintptr_t from_libc =
        (uintptr_t)p > (uintptr_t)libc ? (uintptr_t)p - (uintptr_t)libc : (uintptr_t)libc - (uintptr_t)p;
    free(libc);
    return apart < (uintptr_t)1 << 36 && from_libc > apart;
}

static inline void pre_require(void) { REQUIRE_HAS(pre_file_of("malloc"), "libtemporal_slab_preload"); }

/* Fills with a pattern and looks at it. */
static inline void pre_fill(void* p, size_t n, unsigned seed) {
    for (size_t i = 0; i < n; i++) ((unsigned char*)p)[i] = (unsigned char)(i * 7 + seed);
}
static inline bool pre_is_filled(const void* p, size_t n, unsigned seed) {
    for (size_t i = 0; i < n; i++)
        if (((const unsigned char*)p)[i] != (unsigned char)(i * 7 + seed)) return false;
    return true;
}

#endif
