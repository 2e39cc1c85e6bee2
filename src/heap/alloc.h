/*
 * alloc.h - allocation: the fast path inline, the rest behind tsi_alloc_slow.
 */
#ifndef TSI_HEAP_ALLOC_H
#define TSI_HEAP_ALLOC_H

#include "heap/fast.h"

/* In place of a reference: the ring's current epoch, whatever scope the thread is in. */
#define TSI_REF_CURRENT (~(TsiRef)0)

/* What is asked for: any class and size. */
typedef struct TsiRequest {
    size_t size, align; /* align: 1 where it is the size's; or TSI_ALIGN_GROWS */
    TsiRef ref;         /* where; 0: the thread's innermost scope of this arena, else the current epoch */
    unsigned cls;       /* of size and align; 0: a large object */
    bool prefer;        /* had better go to ref; when that accepts no more, as with 0 */
    SlabHandle* handle; /* where the object's handle goes; NULL: none is asked for */
} TsiRequest;

/* The whole slow path, NULL with errno: binding, what waits for the thread, the phase's heap, and in that a region, a
 * line or a slab; then what is in the way of it. Changes *q; afterwards q->ref is the incarnation of the object. */
void* tsi_alloc_slow(TsiArena* a, TsiRequest* q);

/* Shared mode: what is ready in the thread's bank when that is free, or NULL. size <= TSI_LUT_MAX; ref as above. */
void* tsi_alloc_ready(TsiBinding* own, size_t size, TsiRef ref, SlabHandle* handle);

/* A ready slot of the current line in *out, unless MISSED. */
TSI_INLINE TsiFast tsi_alloc_fast(TsiBinding* b, TsiHeap* h, TsiLine* const* cur, unsigned cls, void** out) {
    uint64_t live = b->live_word;
    TsiLine* l = cur[cls];
    tsi_bracket_name(b, tsi_busy_line(l));
    uint64_t avail = tsi_load_relaxed(&l->avail);
    if (TSI_UNLIKELY(avail == 0)) return TSI_FAST_MISSED;
    if (TSI_UNLIKELY(!tsi_word_is(&h->word, live))) return TSI_FAST_MISSED;
    tsi_store_relaxed(&l->avail, avail & (avail - 1));
    *out = l->base + (tsi_ctz64_wide(avail) << l->shift);
    tsi_bracket_clear(b);
    return TSI_LIKELY(tsi_word_is(&h->word, live)) ? TSI_FAST_DONE : TSI_FAST_LEFT;
}

/* The heap's current lines. */
TSI_INLINE TsiLine* const* tsi_cur_of(const TsiHeap* h) { return h->room != NULL ? h->room->cur : tsi_no_cur; }

/* Where the thread's plain allocations go: its innermost scope's phase, or the current epoch; 0: nowhere. */
TsiRef tsi_ambient_ref(const TsiBinding* b);

/* The short slow path, from the bracket of tsi_alloc_fast that has missed: the line again, else another one, a region
 * or a slab of the heap. size <= TSI_SMALL_MAX. NULL when it could not allocate; the bracket may be open or not. */
void* tsi_alloc_nearby(TsiBinding* b, TsiHeap* h, size_t size, SlabHandle* handle);

#endif
