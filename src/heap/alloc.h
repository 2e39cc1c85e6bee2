/*
 * alloc.h - allocation: the fast path inline, the rest behind tsi_alloc_slow.
 */
#ifndef TSI_HEAP_ALLOC_H
#define TSI_HEAP_ALLOC_H

#include "heap/bracket.h"

/* Any class and size. ref 0: the thread's innermost scope of this arena, else the current epoch. prefer: ref is where
 * the object had better go; when that accepts no more, as with 0. handle: NULL, or where its handle goes. NULL with errno. */
void* tsi_alloc_slow(TsiArena* a, size_t size, unsigned cls, size_t align, TsiRef ref, bool prefer, SlabHandle* handle);

/* How a fast path ends. */
typedef enum TsiFast {
    TSI_FAST_DONE,
    TSI_FAST_LEFT,   /* done; the caller tail-calls what hands over */
    TSI_FAST_MISSED, /* busy still names the line: the caller tail-calls what starts with tsi_bracket_missed */
    TSI_FAST_NEVER,  /* nothing was entered */
    TSI_FAST_SPECIAL /* busy names the line, which is the thread's: the caller tail-calls what goes on by its `special` */
} TsiFast;

/* A ready slot of the current line in *out, unless MISSED. */
TSI_INLINE TsiFast tsi_alloc_fast(TsiBinding* b, TsiHeap* h, TsiLine* const* cur, unsigned cls, void** out) {
    uint64_t live = b->live_word;
    TsiLine* l = cur[cls];
    tsi_bracket_name(b, tsi_busy_line(l));
    uint64_t avail = tsi_load_relaxed(&l->avail);
    if (TSI_UNLIKELY(tsi_load_relaxed(&h->word) != live || avail == 0)) return TSI_FAST_MISSED;
    tsi_store_relaxed(&l->avail, avail & (avail - 1));
    *out = l->base + tsi_class_offset(&b->classes->c[cls], tsi_ctz64(avail));
    tsi_bracket_clear(b);
    return TSI_LIKELY(tsi_load_relaxed(&h->word) == live) ? TSI_FAST_DONE : TSI_FAST_LEFT;
}

/* The commonest miss, still inside the bracket of the fast path: the line that busy names is used up and has enough
 * slots that its owner freed. NULL, and the bracket still open, when anything else is to be done. */
void* tsi_alloc_again(TsiBinding* b, TsiHeap* h, unsigned cls, SlabHandle* handle);
/* The next granules of a mixed line; NULL when too few are left. In the owner's bracket. */
TSI_INLINE void* tsi_mixed_bump(TsiLine* l, const TsiClass* c) {
    uint64_t avail = tsi_load_relaxed(&l->avail);
    unsigned from = avail == 0 ? TSI_LINE_SLOTS : tsi_ctz64(avail);
    unsigned slot = (from + c->granule_align - 1u) & ~(c->granule_align - 1u), end = slot + c->granules;
    if (TSI_UNLIKELY(end > TSI_LINE_SLOTS)) return NULL;
    TsiMixed* m = tsi_mixed_of(l);
    tsi_store_relaxed(&m->ends, tsi_load_relaxed(&m->ends) | 1ull << (end - 1));
    tsi_store_release(&m->starts, tsi_load_relaxed(&m->starts) | 1ull << slot); /* pairs with line_state: ends first */
    tsi_store_release(&l->avail, ~1ull << (end - 1));
    tsi_store_release(&l->issued, tsi_load_relaxed(&l->issued) + 1); /* last: pairs with handed_out in settle.c */
    return l->base + slot * TSI_GRANULE;
}

/* The commonest miss of a young domain, in a bracket that names no line: an object in its mixed slab. MISSED, and the bracket
 * as it was, when there is none or it is full. */
TSI_INLINE TsiFast tsi_alloc_mixed(TsiBinding* b, TsiHeap* h, unsigned cls, void** out) {
    const TsiClass* c = &b->classes->c[cls];
    if (c->granules == 0 || tsi_load_relaxed(&h->word) != b->live_word || b->cuts) return TSI_FAST_MISSED;
    uint64_t no_line = tsi_load_relaxed(&b->busy);
    tsi_bracket_name(b, tsi_busy_all(h)); /* B4: what is named so far is nothing that a sweep looks for */
    bool live = TSI_LIKELY(tsi_load_relaxed(&h->word) == b->live_word);
    *out = live && h->mixed != NULL ? tsi_mixed_bump(h->mixed, c) : NULL;
    if (TSI_UNLIKELY(*out == NULL)) {
        tsi_bracket_clear(b);
        tsi_bracket_name(b, no_line);
        return TSI_FAST_MISSED;
    }
    tsi_bracket_clear(b);
    return TSI_LIKELY(tsi_load_relaxed(&h->word) == b->live_word) ? TSI_FAST_DONE : TSI_FAST_LEFT;
}

/* The next commonest, from the same bracket: other lines of the heap, or a slab. NULL when it did not, be the bracket open or not. */
void* tsi_alloc_more(TsiBinding* b, TsiHeap* h, unsigned cls);
/* Hands over after a successful allocation; returns p. */
void* tsi_alloc_left(TsiBinding* b, TsiHeap* h, void* p);

#endif
