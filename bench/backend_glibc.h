/*
 * backend_glibc.h - the C library's malloc. It knows no phases: a phase is a list of pointers, kept
 * by the caller, that are freed one by one.
 */
#ifndef BACKEND_GLIBC_H
#define BACKEND_GLIBC_H

#include <gnu/libc-version.h>
#include <stdlib.h>

#define BACKEND backend_glibc
#define BACKEND_NAME "glibc"

static const char* bk_version(void) { return gnu_get_libc_version(); }

static inline void bk_start(void) {}

static inline void* bk_alloc(size_t size) { return malloc(size); }

static inline void bk_free(void* p) { free(p); }

struct bk_phase {
    void** list; /* room for all objects of the phase, given by the caller */
    size_t n;
};

static inline void bk_phase_open(struct bk_phase* ph, void** list) {
    ph->list = list;
    ph->n = 0;
}

static inline void* bk_phase_alloc(struct bk_phase* ph, size_t size) { return ph->list[ph->n++] = malloc(size); }

static inline void bk_phase_end(struct bk_phase* ph) {
    for (size_t i = 0; i < ph->n; i++) free(ph->list[i]);
}

/* A phase that is the thread's scope while it lasts: nothing else here. */
#define bk_scope_begin bk_phase_open
#define bk_scope_alloc bk_phase_alloc
#define bk_scope_end bk_phase_end

/* Bytes the allocator holds, as far as can be told: resident memory. */
static inline uint64_t bk_held_bytes(void) { return resident_bytes(); }

#endif
