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

/* Allocates `size` bytes, 1 to TSI_LUT_MAX, in the phase `ref`, not 0, that leads to no heap of the thread: normally
 * the thread's first time there. A heap that waits for a phase becomes the thread's there, if there is one. prefer:
 * true if the ambient phase takes it when ref accepts no more. b: tsi_tls.binding, whose allocator the thread used
 * last. Returns the object, or NULL with errno. [own thread, no lock held, no bracket open] */
void* tsi_alloc_first(TsiBinding* b, size_t size, TsiRef ref, bool prefer);
/* Allocates `size` bytes, 1 to TSI_SMALL_MAX, after a fast path of a line has missed in h, whose bracket is open, and
 * closes it. ref: the phase of h, 0: the ambient one; prefer: true if the ambient phase takes it when ref accepts no
 * more. Sets *handle to the object's, or to 0; handle may be NULL. Returns the object, or NULL with errno.
 * [owner, in bracket, no lock held] */
void* tsi_alloc_missed(TsiBinding* b, size_t size, TsiRef ref, bool prefer, TsiHeap* h, SlabHandle* handle);
/* Closes the bracket of a fast path that has missed in h, if it is open, then allocates `size` bytes by all ways. ref:
 * the phase, 0: the ambient one; prefer: true if the ambient phase takes it when ref accepts no more. Sets *handle to
 * the object's, or to 0; handle may be NULL. Returns the object, or NULL with errno.
 * [own thread, in bracket or not, no lock held] */
void* tsi_leave_and_alloc(TsiBinding* b, size_t size, TsiRef ref, bool prefer, TsiHeap* h, SlabHandle* handle);
/* Allocates `size` bytes where fast paths turn down at once: the thread used another allocator last, shared mode, 0 and
 * more than TSI_LUT_MAX bytes. allocator may be NULL, which is refused. ref: the phase, 0: the ambient one; prefer:
 * true if the ambient phase takes it when ref accepts no more. Sets *handle to the object's, or to 0; handle may be
 * NULL. Returns the object, or NULL with errno. [own thread, no lock held, no bracket open] */
void* tsi_alloc_far(SlabAllocator* allocator, size_t size, TsiRef ref, bool prefer, SlabHandle* handle);
/* Returns the reference of the incarnation that an epoch id names; 0 with EINVAL without an allocator, and with EINVAL
 * or ESTALE, and counted, if the id names none, or is that of a domain's ended epoch.
 * [any thread, no lock held, no bracket open] */
TsiRef tsi_resolve_for_alloc(SlabAllocator* allocator, EpochId epoch);
/* Refuses an allocation: counts the misuse `what` at the address `where` (may be NULL) if a is not NULL, and sets
 * errno to `error`, and slab_error to what belongs to the misuse or, without an allocator, to the errno. Returns NULL,
 * for callers to return. [any thread, no lock held, no bracket open] */
TSI_COLD void* tsi_alloc_refuse(TsiArena* a, SlabMisuse what, const void* where, int error);

/* Allocates `size` bytes, up to TSI_BUMP_MAX, from h's current region r, at rel, which tsi_bump_fits has set as it
 * returned true. If the fast path misses, allocates by all ways: ref: the phase, 0: the ambient one; prefer: true if
 * the ambient phase takes it when ref accepts no more. Returns the object, or NULL with errno.
 * [owner, no lock held, no bracket open] */
TSI_INLINE void* tsi_bump_there(TsiBinding* b, TsiHeap* h, TsiRegion* r, uint32_t rel, size_t size, TsiRef ref,
                                bool prefer) {
    void* p;
    TsiFast fast = tsi_bump_fast(b, h, r, rel, tsi_bump_bytes(size), &p);
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return p;
    return fast == TSI_FAST_HANDOVER ? tsi_alloc_left(b, h, p) : tsi_leave_and_alloc(b, size, ref, prefer, h, NULL);
}

/* Allocates `size` bytes, 1 to TSI_SMALL_MAX, from h's current line of the class `cls`, cur[cls]. cur: tsi_cur_of(h).
 * If the line has no slot ready, allocates by tsi_alloc_missed: ref: the phase of h, 0: the ambient one; prefer: true
 * if the ambient phase takes it when ref accepts no more. Returns the object, or NULL with errno.
 * [owner, no lock held, no bracket open] */
TSI_INLINE void* tsi_line_there(TsiBinding* b, TsiHeap* h, TsiLine* const* cur, unsigned cls, size_t size, TsiRef ref,
                                bool prefer) {
    void* p;
    TsiFast fast = tsi_alloc_fast(b, h, cur, cls, &p);
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return p;
    return fast == TSI_FAST_HANDOVER ? tsi_alloc_left(b, h, p) : tsi_alloc_missed(b, size, ref, prefer, h, NULL);
}

/* Allocates `size` bytes, 1 to TSI_LUT_MAX, in h, of which tsi_heap_is_at returned true, from its region if they fit
 * there, otherwise from its line. If neither has room, allocates by other ways: ref: the phase of h, 0: the ambient
 * one; prefer: true if the ambient phase takes it when ref accepts no more. Returns the object, or NULL with errno.
 * [owner, no lock held, no bracket open] */
TSI_INLINE void* tsi_alloc_in(TsiBinding* b, TsiHeap* h, size_t size, TsiRef ref, bool prefer) {
    TsiRegion* r = tsi_load_relaxed(&h->region);
    uint32_t rel;
    if (tsi_bump_fits(r, tsi_bump_bytes(size), &rel)) return tsi_bump_there(b, h, r, rel, size, ref, prefer);
    return tsi_line_there(b, h, tsi_cur_of(h), tsi_class_near(size), size, ref, prefer);
}

/* Allocates `size` bytes, 1 to TSI_LUT_MAX, in the phase that ref, not 0, names. b: tsi_tls.binding, whose allocator
 * the thread used last. prefer: true if the ambient phase takes it when ref accepts no more. Returns the object, or
 * NULL with errno. [own thread, no lock held, no bracket open] */
TSI_INLINE void* tsi_alloc_at(TsiBinding* b, size_t size, TsiRef ref, bool prefer) {
    TsiHeap* h = tsi_binding_led(b, tsi_binding_inc(b, ref));
    if (tsi_heap_is_at(b, h, ref)) return tsi_alloc_in(b, h, size, ref, prefer);
    return tsi_alloc_first(b, size, ref, prefer);
}

/* Allocates `size` bytes, any number, in the phase that ref, not 0, names. allocator may be NULL, which is refused.
 * prefer: true if the ambient phase takes it when ref accepts no more. Returns the object, or NULL with errno.
 * [own thread, no lock held, no bracket open] */
TSI_INLINE void* tsi_alloc_there(SlabAllocator* allocator, size_t size, TsiRef ref, bool prefer) {
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, allocator) || size - 1 >= TSI_LUT_MAX))
        return tsi_alloc_far(allocator, size, ref, prefer, NULL);
    return tsi_alloc_at(tsi_tls.binding, size, ref, prefer);
}

#endif
