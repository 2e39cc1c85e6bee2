/*
 * arena_bump.h - the bump arena that arena.c calls and arena_inlined.h inlines.
 *
 * A chunk is 4 KiB, or 64 KiB for phases that say they are larger than that; a thread keeps those of ended phases in a
 * list for each size, so ending a phase is putting its chunks on the list. Objects are 16-byte aligned.
 */
#ifndef BENCH_ARENA_BUMP_H
#define BENCH_ARENA_BUMP_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

struct arena_chunk {
    struct arena_chunk* next;
    size_t bytes;
};

struct bk_phase {
    char *at, *end;
    struct arena_chunk* chunks;
};

enum { SMALL = 4096, LARGE = 65536 };

static _Thread_local struct arena_chunk* kept_chunks[2];
static _Thread_local char *fresh, *fresh_end; /* from the kernel, in large pieces */

static void __attribute__((noinline)) take_chunk(struct bk_phase* ph, size_t bytes) {
    struct arena_chunk* c = kept_chunks[bytes == LARGE];
    if (c) {
        kept_chunks[bytes == LARGE] = c->next;
    } else {
        if ((size_t)(fresh_end - fresh) < bytes) {
            fresh = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (fresh == MAP_FAILED) abort();
            madvise(fresh, 64 << 20, MADV_NOHUGEPAGE);
            fresh_end = fresh + (64 << 20);
        }
        c = (struct arena_chunk*)(void*)fresh;
        c->bytes = bytes;
        fresh += bytes;
    }
    c->next = ph->chunks;
    ph->chunks = c;
    ph->at = (char*)(c + 1);
    ph->end = (char*)c + c->bytes;
}

/* Small phases take their chunk at the first allocation. */
static inline void bump_open(struct bk_phase* ph, size_t hint) {
    ph->chunks = NULL;
    ph->at = ph->end = NULL;
    if (hint > SMALL) take_chunk(ph, LARGE);
}

static inline void* bump_take(struct bk_phase* ph, size_t size) {
    size = (size + 15) & ~(size_t)15;
    if ((size_t)(ph->end - ph->at) < size) take_chunk(ph, ph->chunks ? ph->chunks->bytes : SMALL);
    char* p = ph->at;
    ph->at = p + size;
    return p;
}

static inline void bump_end(struct bk_phase* ph) {
    for (struct arena_chunk* c = ph->chunks; c;) {
        struct arena_chunk* next = c->next;
        c->next = kept_chunks[c->bytes == LARGE];
        kept_chunks[c->bytes == LARGE] = c;
        c = next;
    }
}

#endif
