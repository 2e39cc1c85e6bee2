/*
 * there.h - allocations: the fast paths of a heap, which entry points inline and leave by tail calls only, and what is
 * behind them, in the order in which it is tried.
 *
 *   tsi_bump_there, tsi_line_there    the next bytes of the region, or a slot of the line (heap/bump.h, heap/alloc.h)
 *   tsi_alloc_missed                  the line again, else another one, a region or a slab of this heap
 *   tsi_alloc_first                   the phase's first object: a heap that waits for a phase (heap/ready.h)
 *   tsi_alloc_any                     everything: tsi_alloc_slow of heap/alloc.c
 */
#ifndef TSI_API_THERE_H
#define TSI_API_THERE_H

#include "api/internal.h"
#include "heap/alloc.h"
#include "heap/bump.h"
#include "heap/heap.h"

/* The thread has no heap in this phase at hand: mostly it allocates there for the first time. size <= TSI_LUT_MAX. */
void* tsi_alloc_first(TsiBinding* b, size_t size, TsiRef ref, bool prefer);
/* A fast path of a line has missed, and its bracket is open. size <= TSI_LUT_MAX. */
void* tsi_alloc_missed(TsiBinding* b, size_t size, TsiRef ref, bool prefer, TsiHeap* h, SlabHandle* handle);
/* Leaves any bracket of a fast path that has missed in h; then as tsi_alloc_any. */
void* tsi_leave_and_alloc(TsiBinding* b, size_t size, TsiRef ref, bool prefer, TsiHeap* h, SlabHandle* handle);
/* What tsi_alloc_there turns down: another allocator than the last one, shared mode, large sizes. */
void* tsi_alloc_far(SlabAllocator* s, size_t size, TsiRef ref, bool prefer);
/* A reference for an epoch id, as tsi_resolve; 0 with errno EINVAL without an allocator, too. */
TsiRef tsi_resolve_for_alloc(SlabAllocator* s, EpochId epoch);
/* Counts a refusal where there is an allocator. NULL with errno. */
TSI_COLD void* tsi_alloc_refuse(TsiArena* a, SlabMisuse what, const void* where, int error);

/* Bumps in the heap's region, where the object fits at rel. */
TSI_INLINE void* tsi_bump_there(TsiBinding* b, TsiHeap* h, TsiRegion* r, uint32_t rel, size_t size, TsiRef ref,
                                bool prefer) {
    void* p;
    TsiFast f = tsi_bump_fast(b, h, r, rel, tsi_bump_bytes(size), &p);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return p;
    return f == TSI_FAST_LEFT ? tsi_alloc_left(b, h, p) : tsi_leave_and_alloc(b, size, ref, prefer, h, NULL);
}

/* From the heap's current line of the size. */
TSI_INLINE void* tsi_line_there(TsiBinding* b, TsiHeap* h, TsiLine* const* cur, size_t size, TsiRef ref, bool prefer) {
    void* p;
    TsiFast f = tsi_alloc_fast(b, h, cur, tsi_size_lut[((size - 1) >> 4) + 1], &p);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return p;
    return f == TSI_FAST_LEFT ? tsi_alloc_left(b, h, p) : tsi_alloc_missed(b, size, ref, prefer, h, NULL);
}

/* In a phase that is named. */
TSI_INLINE void* tsi_alloc_there(SlabAllocator* s, size_t size, TsiRef ref, bool prefer) {
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, s) || size - 1 >= TSI_LUT_MAX))
        return tsi_alloc_far(s, size, ref, prefer);
    TsiBinding* b = tsi_tls.binding;
    TsiHeap* h = b->by_inc[tsi_ref_index(ref) % TSI_HEAP_CACHE];
    /* Of a heap that is not the thread's the record's page may have gone, and with it what the next lines read. */
    if (TSI_UNLIKELY(!tsi_word_is(&h->ref, ref) || !tsi_word_is(&h->word, b->live_word)))
        return tsi_alloc_first(b, size, ref, prefer);
    TsiRegion* r = tsi_load_relaxed(&h->region);
    uint32_t rel;
    if (tsi_bump_fits(r, tsi_bump_bytes(size), &rel)) return tsi_bump_there(b, h, r, rel, size, ref, prefer);
    return tsi_line_there(b, h, tsi_cur_of(h), size, ref, prefer);
}

#endif
