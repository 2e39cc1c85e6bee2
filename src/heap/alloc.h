/*
 * alloc.h - allocation: the fast path inline, the rest behind tsi_alloc_slow.
 */
#ifndef TSI_HEAP_ALLOC_H
#define TSI_HEAP_ALLOC_H

#include "heap/bracket.h"

/* Any class and size. ref 0: the thread's innermost scope of this arena, else the current epoch.
 * NULL with errno. *at (may be NULL) receives the place. */
void* tsi_alloc_slow(TsiArena* a, size_t size, unsigned cls, size_t align, TsiRef ref, TsiPlace* at);

/* Takes a ready slot of the heap's current line; NULL sends the caller to the slow path. */
TSI_INLINE void* tsi_alloc_fast(TsiBinding* b, TsiHeap* h, TsiLine* const* cur, unsigned cls) {
    TsiLine* l = cur[cls];
    tsi_bracket_name(b, tsi_busy_line(l));
    if (TSI_UNLIKELY(tsi_load_relaxed(&h->word) != b->live_word)) goto out;
    uint64_t avail = tsi_load_relaxed(&l->avail);
    if (TSI_UNLIKELY(avail == 0)) goto out;
    tsi_store_relaxed(&l->avail, avail & (avail - 1));
    uint64_t where = tsi_load_relaxed(&l->where) & ~(uint32_t)TSI_LINE_FLAGS;
    void* p = b->base + (where << 4) + b->classes->c[cls].offs[tsi_ctz64(avail)];
    tsi_bracket_clear(b);
    if (TSI_UNLIKELY(tsi_load_relaxed(&h->word) != b->live_word)) tsi_handover(b, h);
    return p;
out:
    tsi_bracket_clear(b);
    if (tsi_load_relaxed(&h->word) != b->live_word) tsi_handover(b, h);
    return NULL;
}

#endif
