/*
 * alloc.h - allocation: the fast path inline, the rest behind tsi_alloc_slow.
 */
#ifndef TSI_HEAP_ALLOC_H
#define TSI_HEAP_ALLOC_H

#include "heap/fast.h"

/* In place of a reference: the ring's current epoch, whatever scope the thread is in. */
#define TSI_REF_CURRENT (~(TsiRef)0)

/* Any class and size. ref 0: the thread's innermost scope of this arena, else the current epoch. prefer: the object
 * had better go to ref; when ref accepts no more, as with 0. handle: NULL, or where the object's handle goes. NULL
 * with errno. */
void* tsi_alloc_slow(TsiArena* a, size_t size, unsigned cls, size_t align, TsiRef ref, bool prefer, SlabHandle* handle);

/* Shared mode: what is ready in the thread's lane when that is free, or NULL. size <= TSI_LUT_MAX; ref as above. */
void* tsi_alloc_ready(TsiBinding* own, size_t size, TsiRef ref, SlabHandle* handle);

/* A ready slot of the current line in *out, unless MISSED. */
TSI_INLINE TsiFast tsi_alloc_fast(TsiBinding* b, TsiHeap* h, TsiLine* const* cur, unsigned cls, void** out) {
    uint64_t live = b->live_word;
    TsiLine* l = cur[cls];
    tsi_bracket_name(b, tsi_busy_line(l));
    uint64_t avail = tsi_load_relaxed(&l->avail);
    if (TSI_UNLIKELY(!tsi_word_is(&h->word, live) || avail == 0)) return TSI_FAST_MISSED;
    tsi_store_relaxed(&l->avail, avail & (avail - 1));
    *out = l->base + ((uint64_t)tsi_ctz64(avail) << l->shift);
    tsi_bracket_clear(b);
    return TSI_LIKELY(tsi_word_is(&h->word, live)) ? TSI_FAST_DONE : TSI_FAST_LEFT;
}

/* The commonest miss, still inside the bracket of the fast path: the line that busy names is used up and has enough
 * slots that its owner freed. NULL, and the bracket still open, when anything else is to be done. */
void* tsi_alloc_again(TsiBinding* b, TsiHeap* h, unsigned cls, SlabHandle* handle);
/* For the next most common misses, from the same bracket: other lines of the heap, a region or a slab. NULL when it
 * could not allocate; the bracket may be open or not then. */
void* tsi_alloc_more(TsiBinding* b, TsiHeap* h, size_t size, unsigned cls);

#endif
