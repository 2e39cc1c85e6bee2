/*
 * alloc_paths.h - the ways of an allocation: the fast paths of a heap, which entry points inline and leave by tail
 * calls only, and the slow paths behind them, in the order in which they are tried.
 *
 *   tsi_alloc_in                      the next bytes of the region, or a slot of the line (heap/bump.h, heap/alloc.h)
 *   tsi_alloc_missed                  the line again, then another one, a region or a slab of this heap
 *   tsi_alloc_first                   the phase's first object: a heap that waits for a phase (heap/ready.h)
 *   tsi_alloc_any                     all cases: tsi_alloc_slow of heap/alloc.c
 */
#ifndef TSI_API_ALLOC_PATHS_H
#define TSI_API_ALLOC_PATHS_H

#include "api/internal.h"
#include "heap/alloc.h"
#include "heap/bump.h"
#include "heap/heap.h"

/* Allocates in a phase that leads to no heap of the thread, normally the thread's first time there. size <=
 * TSI_LUT_MAX. Returns the object, or NULL with errno. ref: the phase; prefer: in the ambient one if that accepts no
 * more. [own thread, no lock, no bracket] */
void* tsi_alloc_first(TsiBinding* b, size_t size, TsiRef ref, bool prefer);
/* Allocates after a fast path of a line has missed in h, whose bracket is open, and closes it. size <= TSI_SMALL_MAX.
 * Returns the object, or NULL with errno. ref: the phase, 0 the ambient one; prefer: the ambient one too if ref accepts
 * no more. handle receives the object's, or is NULL. [owner, in bracket, no lock] */
void* tsi_alloc_missed(TsiBinding* b, size_t size, TsiRef ref, bool prefer, TsiHeap* h, SlabHandle* handle);
/* Closes any bracket of a fast path that has missed in h; then allocates like tsi_alloc_any. Returns the object, or
 * NULL with errno. ref: the phase, 0 the ambient one; prefer: the ambient one too if ref accepts no more. handle
 * receives the object's, or is NULL. [own thread, in bracket or not, no lock] */
void* tsi_leave_and_alloc(TsiBinding* b, size_t size, TsiRef ref, bool prefer, TsiHeap* h, SlabHandle* handle);
/* Allocates where fast paths turn down at once: another allocator than the last one, shared mode, sizes beyond
 * TSI_LUT_MAX. ref 0: in the thread's ambient phase. handle may be NULL. Returns the object, or NULL with errno.
 * prefer: in the ambient one if ref accepts no more. [own thread, no lock, no bracket] */
void* tsi_alloc_far(SlabAllocator* allocator, size_t size, TsiRef ref, bool prefer, SlabHandle* handle);
/* Returns a reference for an epoch id like tsi_resolve; 0 with EINVAL also without an allocator.
 * [no lock, no bracket] */
TsiRef tsi_resolve_for_alloc(SlabAllocator* allocator, EpochId epoch);
/* Refuses an allocation: counts it if there is an allocator, and sets errno. Returns NULL, for callers to return.
 * [no lock, no bracket] */
TSI_COLD void* tsi_alloc_refuse(TsiArena* a, SlabMisuse what, const void* where, int error);

/* Allocates from the heap's region, where the object fits at rel. Returns the object, or NULL with errno. If the region
 * turns out not to do, ref: the phase, 0 the ambient one; prefer: the ambient one too if ref accepts no more.
 * [owner, no lock, no bracket] */
TSI_INLINE void* tsi_bump_there(TsiBinding* b, TsiHeap* h, TsiRegion* r, uint32_t rel, size_t size, TsiRef ref,
                                bool prefer) {
    void* p;
    TsiFast fast = tsi_bump_fast(b, h, r, rel, tsi_bump_bytes(size), &p);
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return p;
    return fast == TSI_FAST_HANDOVER ? tsi_alloc_left(b, h, p) : tsi_leave_and_alloc(b, size, ref, prefer, h, NULL);
}

/* Allocates from the heap's current line of the class. Returns the object, or NULL with errno. cur: the heap's current
 * lines; if the line turns out not to do, ref: the phase, 0 the ambient one; prefer: the ambient one too if ref accepts
 * no more. [owner, no lock, no bracket] */
TSI_INLINE void* tsi_line_there(TsiBinding* b, TsiHeap* h, TsiLine* const* cur, unsigned cls, size_t size, TsiRef ref,
                                bool prefer) {
    void* p;
    TsiFast fast = tsi_alloc_fast(b, h, cur, cls, &p);
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return p;
    return fast == TSI_FAST_HANDOVER ? tsi_alloc_left(b, h, p) : tsi_alloc_missed(b, size, ref, prefer, h, NULL);
}

/* Allocates in a heap of the thread, from the region or the line. size <= TSI_LUT_MAX. Returns the object, or NULL with
 * errno. If neither turns out to do, ref: the phase, 0 the ambient one; prefer: the ambient one too if ref accepts no
 * more. [owner, no lock, no bracket] */
TSI_INLINE void* tsi_alloc_in(TsiBinding* b, TsiHeap* h, size_t size, TsiRef ref, bool prefer) {
    TsiRegion* r = tsi_load_relaxed(&h->region);
    uint32_t rel;
    if (tsi_bump_fits(r, tsi_bump_bytes(size), &rel)) return tsi_bump_there(b, h, r, rel, size, ref, prefer);
    return tsi_line_there(b, h, tsi_cur_of(h), tsi_class_near(size), size, ref, prefer);
}

/* Allocates in the phase that ref names, of the allocator that the thread used last. size <= TSI_LUT_MAX. Returns the
 * object, or NULL with errno. prefer: in the ambient one if that accepts no more.
 * [own thread, no lock, no bracket] */
TSI_INLINE void* tsi_alloc_at(TsiBinding* b, size_t size, TsiRef ref, bool prefer) {
    TsiHeap* h = tsi_binding_led(b, tsi_binding_inc(b, ref));
    if (tsi_heap_is_at(b, h, ref)) return tsi_alloc_in(b, h, size, ref, prefer);
    return tsi_alloc_first(b, size, ref, prefer);
}

/* Allocates in the phase that ref names. Returns the object, or NULL with errno. prefer: in the ambient one if that
 * accepts no more. [own thread, no lock, no bracket] */
TSI_INLINE void* tsi_alloc_there(SlabAllocator* allocator, size_t size, TsiRef ref, bool prefer) {
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, allocator) || size - 1 >= TSI_LUT_MAX))
        return tsi_alloc_far(allocator, size, ref, prefer, NULL);
    return tsi_alloc_at(tsi_tls.binding, size, ref, prefer);
}

#endif
