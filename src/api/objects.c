/*
 * objects.c - allocate, by pointer and by handle. The fast paths are inlined into the entry points, which leave them
 * only by tail calls, so that they need no stack frame.
 */
#include "api/alloc_paths.h"

#include "base/sanitize.h"
#include "heap/alloc.h"
#include "heap/bump.h"
#include "heap/handles.h"
#include "heap/hard.h"
#include "heap/heap.h"
#include "threads/bank.h"
#include "heap/ready.h"
#include "mem/purge.h"
#include "observe/stand_in.h"
#include "stats/segment.h"

#include <string.h>

/* ---- allocate ---- */

bool tsi_turn_to(SlabAllocator* allocator) {
    TsiArena* a = tsi_arena(allocator);
    if (a == NULL || a->none_at_hand) return false;
    return tsi_load_relaxed(&tsi_tls.record->owner) != allocator && tsi_binding_find(a, false) != NULL &&
           tsi_load_relaxed(&tsi_tls.record->owner) == allocator;
}

TSI_COLD void* tsi_alloc_refuse(TsiArena* a, SlabMisuse what, const void* where, int error) {
    if (a != NULL) tsi_refuse(a, what, where);
    else tsi_error_set(error);
    errno = error;
    return NULL;
}

/* Refuses an allocation for its size or alignment: counts it if a is not NULL, and sets errno to `error`. Returns NULL,
 * for callers to return. [any thread, no lock held, no bracket open] */
static TSI_COLD void* refuse_size(TsiArena* a, int error) {
    return tsi_alloc_refuse(a, SLAB_MISUSE_BAD_SIZE, NULL, error);
}

/* Returns the class for an object of `size` bytes that has grown and may grow again, in the phase ref (0: the ambient
 * one), where no region takes it: the class of one and a half times the size, or of the size if tsi_meets_limit
 * returns true. Returns 0, for a large object, which has room, beyond TSI_SOLO_MAX bytes.
 * [own thread, no lock held] */
static unsigned grown_class(TsiArena* a, size_t size, TsiRef ref) {
    if (size > TSI_SOLO_MAX) return 0;
    return tsi_class_of(tsi_meets_limit(a, ref) ? size : size + size / 2);
}

TSI_NOINLINE void* tsi_alloc_any(TsiArena* a, size_t size, size_t align, TsiRef ref, bool prefer, SlabHandle* handle) {
    tsi_tls.caller = TSI_CALLER();
    if (handle != NULL) *handle = 0;
    if (a == NULL || size == 0) return refuse_size(a, EINVAL);
    if (size > PTRDIFF_MAX) return refuse_size(a, ENOMEM);

    unsigned cls = align == TSI_ALIGN_GROWS ? grown_class(a, size, ref)
                   : align <= 16            ? tsi_class_of(size)
                                            : tsi_class_aligned(a->space.classes, size, align);
    TsiRequest request = {size, align, ref, cls, prefer, handle};
    void* p = tsi_alloc_slow(a, &request);
    tsi_segment_tick(a);
    return p;
}

TSI_NOINLINE void* tsi_alloc_first(TsiBinding* b, size_t size, TsiRef ref, bool prefer) {
    TsiHeap* h = b->by_inc[tsi_ref_index(ref) % TSI_HEAP_CACHE];
    if (TSI_UNLIKELY(tsi_word_is(&h->key, ref) && tsi_word_is(&h->word, b->live_word)))
        return tsi_alloc_in(b, h, size, ref, prefer);
    void* p = tsi_ready_first(b, ref, tsi_bump_bytes(size));
    if (TSI_UNLIKELY(p == NULL)) return tsi_alloc_any(b->arena, size, 1, ref, prefer, NULL);
    tsi_segment_tick(b->arena);
    return p;
}

/* Allocates the first object, of `size` bytes, 1 to TSI_SMALL_MAX, in the phase of the thread's innermost scope, from
 * a heap that waits for a phase; the phase's `heap` and b's ambient heap then lead to that, so that the next calls go
 * there. Returns the object; NULL, and changes nothing, if there is no scope, or no heap waits, or anything else is
 * left to do: try another way. [own thread, no lock held, no bracket open] */
static void* first_in_scope(TsiBinding* b, size_t size) {
    if (b->scope == 0) return NULL;
    TsiPhaseWords* phase = b->thread->scopes[b->scope - 1].phase;
    TsiRef ref = tsi_load_relaxed(&phase->ref);
    void* p = ref != 0 ? tsi_ready_first(b, ref, tsi_bump_bytes(size)) : NULL;
    if (p == NULL) return NULL;
    /* The phase had no heap before: nothing else leads to one. */
    TsiHeap* h = tsi_binding_led(b, tsi_binding_inc(b, ref));
    tsi_store_relaxed(&phase->heap, h);
    if (TSI_LIKELY(tsi_heap_is_at(b, h, ref))) tsi_binding_set_ambient(b, h);
    return p;
}

TSI_NOINLINE void* tsi_alloc_missed(TsiBinding* b, size_t size, TsiRef ref, bool prefer, TsiHeap* h,
                                    SlabHandle* handle) {
    TsiArena* a = b->arena;
    bool no_line = tsi_load_relaxed(&b->busy) == tsi_busy_line(tsi_no_cur[0]);
    /* No thread owns what busy names, so none waits for this thread to leave it. */
    if (h == &tsi_no_heap && no_line && handle == NULL) {
        tsi_bracket_clear(b);
        void* p = first_in_scope(b, size);
        if (p == NULL) return tsi_alloc_any(a, size, 1, ref, prefer, NULL);
        tsi_segment_tick(a);
        return p;
    }
    void* p = tsi_alloc_nearby(b, h, size, handle);
    if (p == NULL) return tsi_leave_and_alloc(b, size, ref, prefer, h, handle);
    tsi_segment_tick(a);
    return p;
}

TSI_NOINLINE void* tsi_leave_and_alloc(TsiBinding* b, size_t size, TsiRef ref, bool prefer, TsiHeap* h,
                                       SlabHandle* handle) {
    TsiArena* a = b->arena;
    tsi_fast_leave(b, h);
    return tsi_alloc_any(a, size, 1, ref, prefer, handle);
}

/* Takes an object of `size` bytes that is ready in the thread's bank, in the phase ref (0: the ambient one), with its
 * handle in *handle, which may be NULL. Returns it, or NULL if none is or `size` is 0 or more than TSI_LUT_MAX: try
 * another way. [own thread, no lock held, no bracket open] */
static void* in_bank(TsiBinding* b, size_t size, TsiRef ref, SlabHandle* handle) {
    void* p = size - 1 < TSI_LUT_MAX ? tsi_alloc_ready(b, size, ref, handle) : NULL;
    if (p != NULL) tsi_segment_tick(b->arena);
    return p;
}

void* slab_malloc(SlabAllocator* allocator, size_t size) {
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, allocator) || size - 1 >= TSI_LUT_MAX))
        return tsi_alloc_far(allocator, size, 0, false, NULL);
    TsiBinding* b = tsi_tls.binding;
    TsiRegion* r = b->region;
    uint32_t rel, bytes = tsi_bump_bytes(size);
    if (r != NULL && tsi_bump_fits(r, bytes, &rel)) return tsi_bump_there(b, b->heap, r, rel, size, 0, false);
    return tsi_line_there(b, b->heap, b->cur, tsi_class_near(size), size, 0, false);
}

void* slab_malloc0(SlabAllocator* allocator, size_t size) { return slab_malloc(allocator, size + (size == 0)); }

TsiRef tsi_resolve_for_alloc(SlabAllocator* allocator, EpochId epoch) {
    TsiArena* a = tsi_arena(allocator);
    if (a != NULL) return tsi_resolve(a, epoch);
    tsi_error_set(EINVAL);
    return 0;
}

/* Allocates `size` bytes by the fast paths in the phase that ref names, 0: the ambient one; prefer: true if the ambient
 * phase takes it when ref, not 0, accepts no more. Returns the object, or NULL with errno.
 * [own thread, no lock held, no bracket open] */
static TSI_NOINLINE void* alloc_near(SlabAllocator* allocator, size_t size, TsiRef ref, bool prefer) {
    return ref != 0 ? tsi_alloc_there(allocator, size, ref, prefer) : slab_malloc(allocator, size);
}

/* Allocates a size that has a class but is not in the table, TSI_LUT_MAX + 1 to TSI_SMALL_MAX, from a heap of the
 * thread if there is one in the phase ref, 0: the ambient one; otherwise by tsi_alloc_any. b: tsi_tls.binding. prefer:
 * true if the ambient phase takes it when ref accepts no more. Returns the object, or NULL with errno.
 * [own thread, no lock held, no bracket open] */
static TSI_NOINLINE void* alloc_wide(TsiBinding* b, size_t size, TsiRef ref, bool prefer) {
    TsiHeap* h = ref != 0 ? tsi_heap_cached(b, ref) : b->heap;
    if (h == NULL || h == &tsi_no_heap) return tsi_alloc_any(b->arena, size, 1, ref, prefer, NULL);
    TsiRegion* r = tsi_load_relaxed(&h->region);
    uint32_t rel;
    if (size <= TSI_BUMP_MAX && tsi_bump_fits(r, tsi_bump_bytes(size), &rel))
        return tsi_bump_there(b, h, r, rel, size, ref, prefer);
    return tsi_line_there(b, h, tsi_cur_of(h), tsi_class_of(size), size, ref, prefer);
}

TSI_NOINLINE void* tsi_alloc_far(SlabAllocator* allocator, size_t size, TsiRef ref, bool prefer, SlabHandle* handle) {
    if (TSI_LIKELY(tsi_word_is(&tsi_tls.record->owner, allocator) && handle == NULL)) {
        TsiBinding* own = tsi_tls.binding;
        if (TSI_LIKELY(size - 1 < TSI_SMALL_MAX)) return alloc_wide(own, size, ref, prefer);
        return tsi_alloc_any(own->arena, size, 1, ref, prefer, NULL);
    }
    TsiBinding* b = tsi_sharer(allocator);
    void* p = b != NULL ? in_bank(b, size, ref, handle) : NULL;
    if (p != NULL) return p;
    if (size - 1 < TSI_SMALL_MAX && handle == NULL && (b = tsi_hardened(allocator)) != NULL) {
        p = tsi_hard_alloc(b, size, ref);
        return p != NULL ? p : tsi_alloc_any(b->arena, size, 1, ref, prefer, NULL);
    }
    if (!tsi_turn_to(allocator)) return tsi_alloc_any(tsi_arena(allocator), size, 1, ref, prefer, handle);
    return handle != NULL ? tsi_alloc_obj(allocator, size, ref, handle) : alloc_near(allocator, size, ref, prefer);
}

void* tsi_alloc_ref(SlabAllocator* allocator, size_t size, TsiRef ref) {
    return tsi_alloc_there(allocator, size, ref, false);
}

/* Allocates `size` bytes, any number, in the phase that the id `epoch` names; allocator may be NULL, which is refused.
 * Callers tail-call it, so that the profile finds the program's frame. Returns the object; NULL with errno, EINVAL or
 * ESTALE if the id names none, which is counted. [own thread, no lock held, no bracket open] */
static TSI_NOINLINE void* alloc_by_id(SlabAllocator* allocator, size_t size, EpochId epoch) {
    TsiRef ref = tsi_resolve_for_alloc(allocator, epoch);
    if (ref == 0) return NULL;
    if (tsi_load_relaxed(&tsi_tls.record->owner) == allocator) return alloc_near(allocator, size, ref, false);
    return tsi_alloc_far(allocator, size, ref, false, NULL);
}

/* Allocates `size` bytes, 1 to TSI_LUT_MAX, under `epoch`, an id of the ring, or one that is no domain's. b:
 * tsi_tls.binding, whose allocator, `allocator`, the thread used last. Returns the object; NULL with errno, also if
 * the id names none, which is counted. [own thread, no lock held, no bracket open] */
static TSI_NOINLINE void* alloc_in_ring(SlabAllocator* allocator, TsiBinding* b, size_t size, EpochId epoch) {
    TsiRef ref = tsi_phases_resolve(&b->arena->phases, epoch);
    return TSI_LIKELY(ref != 0) ? tsi_alloc_at(b, size, ref, false) : alloc_by_id(allocator, size, epoch);
}

void* slab_malloc_epoch(SlabAllocator* allocator, size_t size, EpochId epoch) {
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, allocator) || size - 1 >= TSI_LUT_MAX))
        return alloc_by_id(allocator, size, epoch);

    TsiBinding* b = tsi_tls.binding;
    const TsiPhases* phases = &b->arena->phases;
    if (TSI_UNLIKELY((epoch & TSI_DOMAIN_ID_BIT) == 0 || (epoch & TSI_INC_MAX) >= tsi_table_used(&phases->incs)))
        return alloc_in_ring(allocator, b, size, epoch);

    /* While the thread has a LIVE heap in the record's incarnation the record is that incarnation's, and so is its id.
     * Only the thread makes its heap LIVE: it has been so since before the id was read. Record 0 has no id. */
    TsiInc* inc = tsi_binding_inc(b, epoch);
    TsiHeap* h = tsi_binding_led(b, inc);
    TsiRef ref = tsi_load_relaxed(&h->key);
    if (TSI_UNLIKELY(tsi_load_relaxed(&inc->id) != epoch || ((ref ^ epoch) & TSI_INC_MAX) != 0))
        return alloc_by_id(allocator, size, epoch);
    if (TSI_UNLIKELY(!tsi_word_is(&h->word, b->live_word))) return alloc_by_id(allocator, size, epoch);
    return tsi_alloc_in(b, h, size, ref, false);
}

void* tsi_alloc_zeroed(SlabAllocator* allocator, size_t n, size_t size, TsiRef ref) {
    TSI_KEEP_FRAME();
    size_t bytes;
    TsiArena* a = tsi_arena(allocator);
    if (__builtin_mul_overflow(n, size, &bytes)) return refuse_size(a, ENOMEM);
    void* p = ref != 0 ? tsi_alloc_ref(allocator, bytes, ref) : slab_malloc(allocator, bytes);
    if (p == NULL) return NULL;
    if (TSI_LIKELY(bytes <= TSI_SMALL_MAX) || tsi_is_stand_in(a, p)) return memset(p, 0, bytes);
    tsi_space_zero_large(&a->space, p, bytes);
    return p;
}

void* slab_calloc(SlabAllocator* allocator, size_t n, size_t size) { return tsi_alloc_zeroed(allocator, n, size, 0); }

void* slab_calloc_epoch(SlabAllocator* allocator, size_t n, size_t size, EpochId epoch) {
    TsiRef ref = tsi_resolve_for_alloc(allocator, epoch);
    return ref != 0 ? tsi_alloc_zeroed(allocator, n, size, ref) : NULL;
}

void* tsi_alloc_aligned(SlabAllocator* allocator, size_t alignment, size_t size, TsiRef ref, SlabHandle* out) {
    TSI_KEEP_FRAME();
    if (out != NULL) *out = 0;
    if (!tsi_is_pow2(alignment) || alignment > TSI_GIB(1)) return refuse_size(tsi_arena(allocator), EINVAL);
    return tsi_alloc_any(tsi_arena(allocator), size, alignment, ref, false, out);
}

void* slab_aligned_alloc(SlabAllocator* allocator, size_t alignment, size_t size) {
    return tsi_alloc_aligned(allocator, alignment, size, 0, NULL);
}

void* slab_aligned_alloc_epoch(SlabAllocator* allocator, size_t alignment, size_t size, EpochId epoch) {
    TsiRef ref = tsi_resolve_for_alloc(allocator, epoch);
    return ref != 0 ? tsi_alloc_aligned(allocator, alignment, size, ref, NULL) : NULL;
}

/* ---- handles ---- */

/* Allocates `size` bytes, any number, inlined. ref: the phase, 0: the thread's ambient one. Sets *out to the object's
 * handle, or to 0 if there is no object; out may be NULL. allocator may be NULL, which is refused. Returns the object,
 * or NULL with errno. [own thread, no lock held, no bracket open] */
TSI_INLINE void* obj(SlabAllocator* allocator, size_t size, TsiRef ref, SlabHandle* out) {
    void* p;
    if (out == NULL) return ref != 0 ? tsi_alloc_there(allocator, size, ref, false) : slab_malloc(allocator, size);
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, allocator) || size - 1 >= TSI_LUT_MAX))
        return tsi_alloc_far(allocator, size, ref, false, out);

    TsiBinding* b = tsi_tls.binding;
    TsiHeap* h = ref != 0 ? tsi_heap_cached(b, ref) : b->heap;
    if (TSI_UNLIKELY(ref != 0 && h == NULL)) return tsi_alloc_any(b->arena, size, 1, ref, false, out);
    TsiRegion* r = tsi_load_relaxed(&h->region);
    *out = 0;
    uint32_t rel, bytes = tsi_bump_bytes(size);
    if (tsi_bump_fits(r, bytes, &rel) && tsi_load_relaxed(&r->heap_at) == 0) {
        TsiFast fast = tsi_bump_handle_fast(b, h, r, rel, bytes, &p, out);
        if (TSI_LIKELY(fast == TSI_FAST_DONE)) return p;
        return fast == TSI_FAST_HANDOVER ? tsi_alloc_left(b, h, p) : tsi_leave_and_alloc(b, size, ref, false, h, out);
    }

    TsiFast fast = tsi_obj_fast(b, h, ref != 0 ? tsi_cur_of(h) : b->cur, tsi_class_near(size), &p, out);
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return p;
    return fast == TSI_FAST_HANDOVER ? tsi_alloc_left(b, h, p) : tsi_alloc_missed(b, size, ref, false, h, out);
}

TSI_NOINLINE void* tsi_alloc_obj(SlabAllocator* allocator, size_t size, TsiRef ref, SlabHandle* out) {
    return obj(allocator, size, ref, out);
}

void* alloc_obj(SlabAllocator* allocator, uint32_t size, SlabHandle* out) { return obj(allocator, size, 0, out); }

void* alloc_obj_epoch(SlabAllocator* allocator, uint32_t size, EpochId epoch, SlabHandle* out) {
    if (out != NULL) *out = 0;
    TsiRef ref = tsi_resolve_for_alloc(allocator, epoch);
    return ref != 0 ? obj(allocator, size, ref, out) : NULL;
}
