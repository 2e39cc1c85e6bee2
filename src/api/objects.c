/*
 * objects.c - allocate and free. The fast paths are inlined into the entry points, which leave them only
 * by tail calls, so that they need no stack frame.
 */
#include "api/internal.h"

#include "base/sanitize.h"
#include "heap/alloc.h"
#include "heap/bump.h"
#include "heap/free.h"
#include "heap/handles.h"
#include "heap/heap.h"
#include "heap/lane.h"
#include "heap/profile.h"
#include "heap/ready.h"
#include "mem/purge.h"
#include "stats/segment.h"

#include <string.h>

/* ---- allocate ---- */

static TSI_COLD void* refuse_at(TsiArena* a, SlabMisuse what, const void* where, int error) {
    if (a != NULL) tsi_refuse(a, what, where);
    errno = error;
    return NULL;
}

static TSI_COLD void* refuse_null(TsiArena* a, SlabMisuse what, int error) { return refuse_at(a, what, NULL, error); }

TSI_NOINLINE void* tsi_alloc_any(TsiArena* a, size_t size, size_t align, TsiRef ref, bool prefer, SlabHandle* handle) {
    tsi_tls.caller = TSI_CALLER();
    if (a == NULL || size == 0) return refuse_null(a, SLAB_MISUSE_BAD_SIZE, EINVAL);
    if (size > PTRDIFF_MAX) return refuse_null(a, SLAB_MISUSE_BAD_SIZE, ENOMEM);
    unsigned cls = align <= 16 ? tsi_class_of(size) : tsi_class_aligned(a->space.classes, size, align);
    if (TSI_LIKELY(a->options.segment == 0)) return tsi_alloc_slow(a, size, cls, align, ref, prefer, handle);
    void* p = tsi_alloc_slow(a, size, cls, align, ref, prefer, handle);
    tsi_segment_tick(a);
    return p;
}

TSI_NOINLINE void* tsi_alloc_first(TsiBinding* b, size_t size, TsiRef ref, bool prefer) {
    void* p = tsi_ready_first(b, ref, tsi_bump_bytes(size));
    if (TSI_UNLIKELY(p == NULL)) return tsi_alloc_any(b->arena, size, 1, ref, prefer, NULL);
    tsi_segment_tick(b->arena);
    return p;
}

/* As tsi_alloc_first, in the thread's innermost scope, which the next calls go to. NULL when there is no scope, or when
 * there is anything else to do. */
static void* first_in_scope(TsiBinding* b, size_t size) {
    if (b->scope == 0) return NULL;
    TsiRef ref = tsi_load_relaxed(b->thread->scopes[b->scope - 1].ref);
    void* p = ref != 0 ? tsi_ready_first(b, ref, tsi_bump_bytes(size)) : NULL;
    if (p == NULL) return NULL;
    TsiHeap* h = tsi_heap_cached(b, ref);
    if (h != NULL) tsi_binding_set_ambient(b, h);
    return p;
}

static TSI_NOINLINE void* missed(TsiBinding* b, size_t size, TsiRef ref, bool prefer, TsiHeap* h, SlabHandle* handle) {
    TsiArena* a = b->arena;
    unsigned cls = tsi_size_lut[((size - 1) >> 4) + 1];
    bool no_line = tsi_load_relaxed(&b->busy) == tsi_busy_line(tsi_no_cur[0]);
    /* What busy names is nobody's: nobody waits for the thread to leave it. */
    if (h == &tsi_no_heap && no_line && handle == NULL) {
        tsi_bracket_clear(b);
        void* p = first_in_scope(b, size);
        if (p == NULL) return tsi_alloc_any(a, size, 1, ref, prefer, NULL);
        tsi_segment_tick(a);
        return p;
    }
    void* p = no_line ? NULL : tsi_alloc_again(b, h, cls, handle);
    if (p == NULL && handle == NULL) p = tsi_alloc_more(b, h, size, cls);
    if (p != NULL) {
        tsi_segment_tick(a);
        return p;
    }
    tsi_bracket_missed(b);
    if (!tsi_heap_is_live(b, h)) tsi_handover(b, h); /* whatever line was named: h was asked for */
    return tsi_alloc_any(a, size, 1, ref, prefer, handle);
}

static TSI_NOINLINE void* bump_missed(TsiBinding* b, size_t size, TsiRef ref, bool prefer, TsiHeap* h,
                                      SlabHandle* handle) {
    TsiArena* a = b->arena;
    tsi_bracket_missed(b);
    if (!tsi_heap_is_live(b, h)) tsi_handover(b, h);
    return tsi_alloc_any(a, size, 1, ref, prefer, handle);
}

/* Shared mode: the thread's binding there, which is never at hand for a fast path; else NULL. */
TSI_INLINE TsiBinding* sharer(SlabAllocator* s) {
    TsiArena* a = tsi_arena(s);
    bool shared = a != NULL && a->options.shared && tsi_tls.serial == a->serial;
    return shared ? tsi_tls.binding : NULL;
}

/* What is ready in the thread's lane, or NULL. */
static void* in_lane(TsiBinding* b, size_t size, TsiRef ref, SlabHandle* handle) {
    void* p = size - 1 < TSI_LUT_MAX ? tsi_alloc_ready(b, size, ref, handle) : NULL;
    if (p != NULL) tsi_segment_tick(b->arena);
    return p;
}

/* The allocator that the thread used last is another: true when this one is at hand now. */
static bool turn_to(SlabAllocator* s) {
    TsiArena* a = tsi_arena(s);
    if (a == NULL || a->options.shared) return false;
    return tsi_load_relaxed(&tsi_tls.record->owner) != s && tsi_binding_find(a, false) != NULL &&
           tsi_load_relaxed(&tsi_tls.record->owner) == s;
}

static TSI_NOINLINE void* alloc_ambient(SlabAllocator* s, size_t size) {
    TsiBinding* b = sharer(s);
    void* p = b != NULL ? in_lane(b, size, 0, NULL) : NULL;
    if (p != NULL) return p;
    return turn_to(s) ? slab_malloc(s, size) : tsi_alloc_any(tsi_arena(s), size, 1, 0, false, NULL);
}

void* slab_malloc(SlabAllocator* s, size_t size) {
    void* p;
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, s) || size - 1 >= TSI_LUT_MAX)) return alloc_ambient(s, size);
    TsiBinding* b = tsi_tls.binding;
    TsiHeap* h = b->heap;
    TsiRegion* r = b->region;
    if (r != NULL && tsi_bump_fits(r, tsi_bump_bytes(size))) {
        TsiFast f = tsi_bump_fast(b, h, r, tsi_bump_bytes(size), &p);
        if (TSI_LIKELY(f == TSI_FAST_DONE)) return p;
        return f == TSI_FAST_LEFT ? tsi_alloc_left(b, h, p) : bump_missed(b, size, 0, false, h, NULL);
    }
    TsiFast f = tsi_alloc_fast(b, h, b->cur, tsi_size_lut[((size - 1) >> 4) + 1], &p);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return p;
    return f == TSI_FAST_LEFT ? tsi_alloc_left(b, h, p) : missed(b, size, 0, false, h, NULL);
}

static TsiRef resolve_for_alloc(SlabAllocator* s, EpochId epoch) {
    TsiArena* a = tsi_arena(s);
    if (a != NULL) return tsi_resolve(a, epoch);
    errno = EINVAL;
    return 0;
}

TSI_INLINE TsiLine* const* cur_of(const TsiHeap* h) { return h->room != NULL ? h->room->cur : tsi_no_cur; }

static void* alloc_near(SlabAllocator* s, size_t size, TsiRef ref, bool prefer);
static TSI_NOINLINE void* alloc_far(SlabAllocator* s, size_t size, TsiRef ref, bool prefer) {
    TsiBinding* b = sharer(s);
    void* p = b != NULL ? in_lane(b, size, ref, NULL) : NULL;
    if (p != NULL) return p;
    return turn_to(s) ? alloc_near(s, size, ref, prefer) : tsi_alloc_any(tsi_arena(s), size, 1, ref, prefer, NULL);
}

/* The fast path of an epoch that is not the thread's ambient one. */
TSI_INLINE void* alloc_ref(SlabAllocator* s, size_t size, TsiRef ref, bool prefer) {
    void* p;
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, s) || size - 1 >= TSI_LUT_MAX))
        return alloc_far(s, size, ref, prefer);
    TsiBinding* b = tsi_tls.binding;
    TsiHeap* h = tsi_heap_of_ref(b, ref);
    /* Of a heap that is not the thread's the record's page may have gone, and with it what the next lines read. */
    if (TSI_UNLIKELY(h == NULL || !tsi_word_is(&h->word, b->live_word))) return tsi_alloc_first(b, size, ref, prefer);
    TsiRegion* r = tsi_load_relaxed(&h->region);
    if (tsi_bump_fits(r, tsi_bump_bytes(size))) {
        TsiFast f = tsi_bump_fast(b, h, r, tsi_bump_bytes(size), &p);
        if (TSI_LIKELY(f == TSI_FAST_DONE)) return p;
        return f == TSI_FAST_LEFT ? tsi_alloc_left(b, h, p) : bump_missed(b, size, ref, prefer, h, NULL);
    }
    TsiFast f = tsi_alloc_fast(b, h, cur_of(h), tsi_size_lut[((size - 1) >> 4) + 1], &p);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return p;
    return f == TSI_FAST_LEFT ? tsi_alloc_left(b, h, p) : missed(b, size, ref, prefer, h, NULL);
}

static void* alloc_near(SlabAllocator* s, size_t size, TsiRef ref, bool prefer) {
    return alloc_ref(s, size, ref, prefer);
}

void* tsi_alloc_ref(SlabAllocator* s, size_t size, TsiRef ref) { return alloc_ref(s, size, ref, false); }

/* Looks up what the id names. The thread's heap there, if it has one, is at hand for the next call. Callers reach it
 * by a tail call, so that the profile finds the program's frame. */
static TSI_NOINLINE void* alloc_by_id(SlabAllocator* s, size_t size, EpochId epoch) {
    TsiRef ref = resolve_for_alloc(s, epoch);
    if (ref == 0) return NULL;
    if (tsi_load_relaxed(&tsi_tls.record->owner) == s) {
        TsiBinding* b = tsi_tls.binding;
        TsiHeap* h = tsi_heap_cached(b, ref);
        if (h != NULL) b->by_id[epoch % TSI_ID_CACHE] = h;
        return alloc_near(s, size, ref, false);
    }
    return alloc_far(s, size, ref, false);
}

static TSI_NOINLINE void* missed_by_id(TsiBinding* b, size_t size, EpochId epoch, TsiHeap* h, bool bumped) {
    SlabAllocator* s = b->arena->owner;
    if (tsi_heap_is_live(b, h)) {
        TsiRef ref = tsi_load_relaxed(&h->ref);
        return bumped ? bump_missed(b, size, ref, false, h, NULL) : missed(b, size, ref, false, h, NULL);
    }
    tsi_bracket_missed(b);
    tsi_handover(b, h);
    return alloc_by_id(s, size, epoch);
}

/* A heap whose id this is, and that is LIVE and the thread's, is in the incarnation which the id names: an advance, or
 * an end, takes the heap's word out of LIVE before the id can name another. */
void* slab_malloc_epoch(SlabAllocator* s, size_t size, EpochId epoch) {
    void* p;
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, s) || size - 1 >= TSI_LUT_MAX))
        return alloc_by_id(s, size, epoch);
    TsiBinding* b = tsi_tls.binding;
    TsiHeap* h = b->by_id[epoch % TSI_ID_CACHE];
    /* As in alloc_ref. */
    if (TSI_UNLIKELY(!tsi_word_is(&h->named, tsi_named(epoch)) || !tsi_word_is(&h->word, b->live_word)))
        return alloc_by_id(s, size, epoch);
    TsiRegion* r = tsi_load_relaxed(&h->region);
    if (tsi_bump_fits(r, tsi_bump_bytes(size))) {
        TsiFast f = tsi_bump_fast(b, h, r, tsi_bump_bytes(size), &p);
        if (TSI_LIKELY(f == TSI_FAST_DONE)) return p;
        return f == TSI_FAST_LEFT ? tsi_alloc_left(b, h, p) : missed_by_id(b, size, epoch, h, true);
    }
    TsiFast f = tsi_alloc_fast(b, h, cur_of(h), tsi_size_lut[((size - 1) >> 4) + 1], &p);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return p;
    return f == TSI_FAST_LEFT ? tsi_alloc_left(b, h, p) : missed_by_id(b, size, epoch, h, false);
}

void* tsi_alloc_zeroed(SlabAllocator* s, size_t n, size_t size, TsiRef ref) {
    TSI_KEEP_FRAME();
    size_t bytes;
    TsiArena* a = tsi_arena(s);
    if (__builtin_mul_overflow(n, size, &bytes)) return refuse_null(a, SLAB_MISUSE_BAD_SIZE, ENOMEM);
    void* p = ref != 0 ? tsi_alloc_ref(s, bytes, ref) : slab_malloc(s, bytes);
    if (p == NULL) return NULL;
    if (TSI_LIKELY(bytes <= TSI_SMALL_MAX)) return memset(p, 0, bytes);
    tsi_space_zero_large(&a->space, p, bytes);
    return p;
}

void* slab_calloc(SlabAllocator* s, size_t n, size_t size) { return tsi_alloc_zeroed(s, n, size, 0); }

void* slab_calloc_epoch(SlabAllocator* s, size_t n, size_t size, EpochId epoch) {
    TsiRef ref = resolve_for_alloc(s, epoch);
    return ref != 0 ? tsi_alloc_zeroed(s, n, size, ref) : NULL;
}

static void* aligned(SlabAllocator* s, size_t alignment, size_t size, TsiRef ref) {
    if (!tsi_is_pow2(alignment) || alignment > TSI_GIB(1))
        return refuse_null(tsi_arena(s), SLAB_MISUSE_BAD_SIZE, EINVAL);
    return tsi_alloc_any(tsi_arena(s), size, alignment, ref, false, NULL);
}

void* slab_aligned_alloc(SlabAllocator* s, size_t alignment, size_t size) { return aligned(s, alignment, size, 0); }

void* slab_aligned_alloc_epoch(SlabAllocator* s, size_t alignment, size_t size, EpochId epoch) {
    TsiRef ref = resolve_for_alloc(s, epoch);
    return ref != 0 ? aligned(s, alignment, size, ref) : NULL;
}

/* ---- handles ---- */

static void* obj_near(SlabAllocator* s, uint32_t size, TsiRef ref, SlabHandle* out);
static TSI_NOINLINE void* obj_any(SlabAllocator* s, size_t size, TsiRef ref, SlabHandle* out) {
    TsiBinding* b = sharer(s);
    void* p = b != NULL ? in_lane(b, size, ref, out) : NULL;
    if (p != NULL) return p;
    *out = 0;
    if (turn_to(s)) return obj_near(s, (uint32_t)size, ref, out);
    return tsi_alloc_any(tsi_arena(s), size, 1, ref, false, out);
}

/* ref 0: where the thread is. */
TSI_INLINE void* obj(SlabAllocator* s, uint32_t size, TsiRef ref, SlabHandle* out) {
    void* p;
    if (out == NULL) return ref != 0 ? alloc_ref(s, size, ref, false) : slab_malloc(s, size);
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, s) || size - 1 >= TSI_LUT_MAX))
        return obj_any(s, size, ref, out);
    TsiBinding* b = tsi_tls.binding;
    TsiHeap* h = ref != 0 ? tsi_heap_cached(b, ref) : b->heap;
    if (TSI_UNLIKELY(ref != 0 && h == NULL)) return obj_any(s, size, ref, out);
    TsiRegion* r = tsi_load_relaxed(&h->region);
    *out = 0;
    if (tsi_bump_fits(r, tsi_bump_bytes(size)) && tsi_load_relaxed(&r->heap_at) == 0) {
        TsiFast f = tsi_bump_handle_fast(b, h, r, tsi_bump_bytes(size), &p, out);
        if (TSI_LIKELY(f == TSI_FAST_DONE)) return p;
        return f == TSI_FAST_LEFT ? tsi_alloc_left(b, h, p) : bump_missed(b, size, ref, false, h, out);
    }
    TsiFast f = tsi_obj_fast(b, h, ref != 0 ? cur_of(h) : b->cur, tsi_size_lut[((size - 1) >> 4) + 1], &p, out);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return p;
    return f == TSI_FAST_LEFT ? tsi_alloc_left(b, h, p) : missed(b, size, ref, false, h, out);
}

static void* obj_near(SlabAllocator* s, uint32_t size, TsiRef ref, SlabHandle* out) { return obj(s, size, ref, out); }

void* alloc_obj(SlabAllocator* s, uint32_t size, SlabHandle* out) { return obj(s, size, 0, out); }

void* alloc_obj_epoch(SlabAllocator* s, uint32_t size, EpochId epoch, SlabHandle* out) {
    if (out != NULL) *out = 0;
    TsiRef ref = resolve_for_alloc(s, epoch);
    return ref != 0 ? obj(s, size, ref, out) : NULL;
}

static bool free_obj_in(TsiArena* a, SlabHandle h) { return a != NULL && h != 0 && tsi_free_handle(a, h); }
static TSI_NOINLINE bool free_obj_never(TsiBinding* b, SlabHandle h) {
    b->covered = tsi_load_acquire(&b->arena->space.covered); /* as in free_never: the next one finds its entry */
    return free_obj_in(b->arena, h);
}
static TSI_NOINLINE bool free_obj_missed(TsiBinding* b, SlabHandle h) {
    TsiArena* a = b->arena;
    tsi_bracket_missed(b);
    return free_obj_in(a, h);
}

static TSI_NOINLINE bool free_left(TsiBinding* b, TsiHeap* h) {
    tsi_handover(b, h);
    return true;
}

static TSI_NOINLINE bool free_obj_elsewhere(TsiBinding* b, SlabHandle h) {
    TsiArena* a = b->arena;
    return tsi_free_handle_bumped(a, b, h) || free_obj_in(a, h);
}
static TSI_NOINLINE bool free_obj_bumped_missed(TsiBinding* b, SlabHandle h) {
    TsiArena* a = b->arena;
    tsi_bracket_missed(b);
    return tsi_free_handle_bumped(a, b, h) || free_obj_in(a, h);
}
/* In a region. */
static TSI_NOINLINE bool free_obj_bumped(TsiBinding* b, SlabHandle handle) {
    TsiHeap* h;
    TsiFast f = tsi_bump_handle_free(b, handle, &h);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return true;
    if (f == TSI_FAST_BUMPED) return free_obj_elsewhere(b, handle);
    if (f == TSI_FAST_MISSED) return free_obj_bumped_missed(b, handle);
    return f == TSI_FAST_LEFT ? free_left(b, h) : free_obj_never(b, handle);
}

static TSI_NOINLINE bool free_obj_line(TsiBinding* b, SlabHandle handle) {
    TsiHeap* h;
    TsiFast f = tsi_free_handle_fast(b, handle, &h);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return true;
    if (f == TSI_FAST_MISSED) return free_obj_missed(b, handle);
    return f == TSI_FAST_LEFT ? free_left(b, h) : free_obj_never(b, handle);
}
TSI_INLINE bool free_obj_of(TsiBinding* b, SlabHandle handle) {
    return tsi_handle_is_bumped(b, handle) ? free_obj_bumped(b, handle) : free_obj_line(b, handle);
}

/* As free_in_lane. */
static TSI_NOINLINE bool free_obj_in_lane(TsiBinding* own, SlabHandle h) {
    TsiLane* lane;
    if (!tsi_lane_try(own, &lane)) return free_obj_of(own, h);
    bool freed = free_obj_of(tsi_lane_binding(lane), h);
    tsi_lane_leave(lane);
    return freed;
}

static TSI_NOINLINE bool free_obj_any(SlabAllocator* s, SlabHandle h) {
    TsiBinding* b = sharer(s);
    if (b != NULL) return free_obj_in_lane(b, h);
    return turn_to(s) ? free_obj(s, h) : free_obj_in(tsi_arena(s), h);
}

bool free_obj(SlabAllocator* s, SlabHandle handle) {
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, s))) return free_obj_any(s, handle);
    return free_obj_of(tsi_tls.binding, handle);
}

void* slab_handle_ptr(SlabAllocator* s, SlabHandle h) {
    TsiArena* a = tsi_arena(s);
    TsiPlace at;
    return a != NULL && h != 0 && tsi_handle_find(a, h, &at) ? tsi_place_address(&a->space, &at) : NULL;
}

SlabHandle slab_ptr_handle(SlabAllocator* s, const void* p) {
    TsiArena* a = tsi_arena(s);
    TsiPlace at;
    if (a == NULL || tsi_space_locate(&a->space, p, &at) != TSI_PLACE_OK) return 0;
    TsiBinding* b = tsi_binding_get(a, false);
    TsiLane* lane;
    if (TSI_LIKELY(!a->options.shared) || b == NULL || !tsi_lane_try(b, &lane)) return tsi_handle_of(a, b, &at);
    SlabHandle h = tsi_handle_of(a, tsi_lane_binding(lane), &at); /* the owner marks its line itself */
    tsi_lane_leave(lane);
    return h;
}

/* ---- free ---- */

static TSI_NOINLINE bool free_any(TsiArena* a, void* p, size_t least) {
    if (p == NULL) return true;
    return a != NULL && tsi_free_pointer(a, p, least);
}

static TSI_NOINLINE bool free_bumped(TsiBinding* b, void* p, uint32_t entry) {
    TsiHeap* h;
    TsiRegion* r;
    TsiFast f = tsi_bump_free(b, p, entry, &h, &r);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return true;
    if (f == TSI_FAST_MISSED) return tsi_free_bumped(b, p);
    return f == TSI_FAST_LEFT ? free_left(b, h) : tsi_bump_spare(b, h, r);
}

static TSI_NOINLINE bool free_never(TsiBinding* b, void* p) {
    b->covered = tsi_load_acquire(&b->arena->space.covered); /* pairs with cover in space.c */
    return free_any(b->arena, p, 0);
}

TSI_INLINE bool free_inline(TsiBinding* b, void* p) {
    TsiHeap* h;
    unsigned at;
    TsiFast f = tsi_free_fast(b, p, &h, &at);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return true;
    if (f == TSI_FAST_BUMPED) return free_bumped(b, p, at);
    if (f == TSI_FAST_MISSED) return tsi_free_missed(b, p);
    return f == TSI_FAST_LEFT ? free_left(b, h) : free_never(b, p);
}

/* In the thread's lane where that is free: the object may be there, as owner's. Else as another thread. */
static TSI_NOINLINE bool free_in_lane(TsiBinding* own, void* p) {
    TsiLane* lane;
    if (!tsi_lane_try(own, &lane)) return free_inline(own, p);
    bool freed = free_inline(tsi_lane_binding(lane), p);
    tsi_lane_leave(lane);
    return freed;
}

static TSI_NOINLINE bool free_bound(SlabAllocator* s, void* p) {
    TsiBinding* b = sharer(s);
    if (b != NULL) return free_in_lane(b, p);
    return turn_to(s) ? slab_free_checked(s, p) : free_any(tsi_arena(s), p, 0);
}

static TSI_NOINLINE bool free_whole(SlabAllocator* s, void* p) {
    TsiArena* a = tsi_arena(s);
    if (tsi_tls.thread == NULL && a != NULL && p != NULL) return tsi_free_unbound(a, p);
    return free_bound(s, p);
}

TSI_INLINE bool free_at(SlabAllocator* s, void* p) {
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, s))) return free_whole(s, p);
    return free_inline(tsi_tls.binding, p);
}

bool slab_free_checked(SlabAllocator* s, void* p) { return free_at(s, p); }

void slab_free(SlabAllocator* s, void* p) { (void)free_at(s, p); }

void slab_free_sized(SlabAllocator* s, void* p, size_t size) { (void)free_any(tsi_arena(s), p, size); }

/* ---- resize and ask ---- */

static bool live_place(TsiArena* a, const void* p, TsiPlace* at) {
    uint64_t tag;
    return tsi_space_locate(&a->space, p, at) == TSI_PLACE_OK && tsi_place_is_live(a, at, &tag);
}

/* Where a block goes that has grown. A smaller one goes where it has as much room as a class would give it; a large
 * one goes where it can grow on. */
static void* alloc_grown(SlabAllocator* s, TsiArena* a, size_t size, TsiRef ref, bool prefer) {
    TSI_KEEP_FRAME();
    if (size > TSI_BUMP_MAX && size <= TSI_ALONE_MAX) return tsi_alloc_any(a, size, TSI_ALIGN_GROWS, ref, prefer, NULL);
    if (size <= TSI_BUMP_MAX) size = a->space.classes->c[tsi_class_of(size)].size;
    return ref != 0 ? alloc_ref(s, size, ref, prefer) : slab_malloc(s, size);
}

/* What a block has gained where it is, when the profile samples that. */
static TSI_COLD void* record_gain(TsiBinding* b, TsiPlace* at, void* p, size_t had, TsiCaller from) {
    TsiRef ref;
    b->profile_hit = false;
    if (tsi_place_ref(b->arena, at, &ref))
        tsi_profile_record(b, p, tsi_place_bytes(&b->arena->space, at) - had, ref, from);
    return p;
}

TSI_NOINLINE void* tsi_resize(SlabAllocator* s, void* p, size_t size, TsiRef ref) {
    TSI_KEEP_FRAME();
    TsiArena* a = tsi_arena(s);
    TsiPlace at;
    if (p == NULL) return ref != 0 ? tsi_alloc_ref(s, size, ref) : slab_malloc(s, size);
    if (a == NULL) return refuse_null(NULL, SLAB_MISUSE_BAD_SIZE, EINVAL);
    if (size == 0) {
        (void)free_any(a, p, 0);
        return NULL;
    }
    uint64_t tag;
    TsiPlaceResult where = tsi_space_locate(&a->space, p, &at);
    int bad = where == TSI_PLACE_OK ? tsi_place_check(a, &at, &tag) : (int)tsi_misuse_of(where);
    if (bad != TSI_FREE_OK) return refuse_at(a, (SlabMisuse)bad, p, EINVAL);
    size_t usable = tsi_place_bytes(&a->space, &at);
    if (size <= usable && size >= usable / 2) return p;
    TsiRef own;
    bool stays = ref == 0 || (tsi_place_ref(a, &at, &own) && own == ref);
    if (size > usable && stays && tsi_class_is_region(at.cls)) {
        TsiBinding* b = tsi_binding_get(a, false);
        bool grew = b != NULL && tsi_bump_grow(b, &at, size);
        if (grew) return TSI_LIKELY(!b->profile_hit) ? p : record_gain(b, &at, p, usable, TSI_CALLER());
    }
    bool prefer = ref == 0 && tsi_place_ref(a, &at, &own) && tsi_ref_is_active(&a->phases, own);
    if (prefer) ref = own;
    /* A block that shrinks need not move: only where that succeeds without a refusal. */
    if (size <= usable && (ref == 0 || !tsi_ref_is_active(&a->phases, ref))) return p;
    void* q = size > usable ? alloc_grown(s, a, size, ref, prefer)
              : ref != 0    ? alloc_ref(s, size, ref, prefer)
                            : slab_malloc(s, size);
    if (q == NULL) return size <= usable ? p : NULL;
    /* The two may overlap where another thread ends this block's phase meanwhile: then its memory is used again. */
    memmove(q, p, size < usable ? size : usable);
    (void)free_at(s, p);
    return q;
}

static TSI_NOINLINE void* resize_missed(TsiBinding* b, SlabAllocator* s, void* p, size_t size) {
    TSI_KEEP_FRAME();
    TsiHeap* h;
    TsiFast f = tsi_bump_grow_missed(b, p, size, &h);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return p;
    if (f == TSI_FAST_LEFT) return tsi_alloc_left(b, h, p);
    tsi_bracket_missed(b);
    return tsi_resize(s, p, size, 0);
}

static TSI_NOINLINE void* resize_any(TsiBinding* b, SlabAllocator* s, void* p, size_t size) {
    TSI_KEEP_FRAME();
    TsiHeap* h;
    TsiFast f = tsi_bump_grow_fast(b, p, size, &h);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return p;
    if (f == TSI_FAST_LEFT) return tsi_alloc_left(b, h, p);
    return f == TSI_FAST_MISSED ? resize_missed(b, s, p, size) : tsi_resize(s, p, size, 0);
}

void* slab_realloc(SlabAllocator* s, void* p, size_t size) {
    if (TSI_UNLIKELY(s == NULL || tsi_tls.serial != tsi_public(s)->serial)) return tsi_resize(s, p, size, 0);
    TsiBinding* b = tsi_tls.binding;
    TsiHeap* h = b->heap;
    if (TSI_UNLIKELY(p != tsi_load_relaxed(&h->last) || size - 1 >= TSI_SMALL_MAX || p == NULL))
        return resize_any(b, s, p, size);
    TsiFast f = tsi_bump_grow_last(b, h, p, size);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return p;
    return f == TSI_FAST_LEFT ? tsi_alloc_left(b, h, p) : resize_missed(b, s, p, size);
}

void* slab_realloc_epoch(SlabAllocator* s, void* p, size_t size, EpochId epoch) {
    if (p != NULL && size == 0) return tsi_resize(s, p, 0, 0);
    TsiRef ref = resolve_for_alloc(s, epoch);
    return ref != 0 ? tsi_resize(s, p, size, ref) : NULL;
}

size_t slab_usable_size(SlabAllocator* s, const void* p) {
    TsiArena* a = tsi_arena(s);
    TsiPlace at;
    return a != NULL && live_place(a, p, &at) ? tsi_place_bytes(&a->space, &at) : 0;
}

size_t slab_good_size(SlabAllocator* s, size_t size) {
    TsiArena* a = tsi_arena(s);
    if (a == NULL || size == 0 || size > a->space.payload_bytes) return 0;
    unsigned cls = tsi_class_of(size);
    return cls != 0 ? a->space.classes->c[cls].size : tsi_align_up(size, tsi_os.page_bytes);
}

bool slab_owns(SlabAllocator* s, const void* p) {
    TsiArena* a = tsi_arena(s);
    TsiPlace at;
    return a != NULL && tsi_space_locate(&a->space, p, &at) != TSI_PLACE_FOREIGN;
}

bool slab_ptr_epoch(SlabAllocator* s, const void* p, EpochId* id, uint64_t* era) {
    TsiArena* a = tsi_arena(s);
    TsiPlace at;
    TsiRef ref;
    if (a == NULL || tsi_space_locate(&a->space, p, &at) != TSI_PLACE_OK || !tsi_place_ref(a, &at, &ref)) return false;
    if (id != NULL) *id = tsi_load_relaxed(&tsi_inc(&a->phases, tsi_ref_index(ref))->id);
    if (era != NULL) *era = tsi_ref_era(ref);
    return true;
}

uint32_t slab_object_count(uint32_t size) {
    tsi_process_init();
    unsigned cls = tsi_class_of(size);
    const TsiClass* c = &tsi_space_default_classes()->c[cls];
    return cls != 0 ? (uint32_t)c->slots << c->lines_log2 : 0;
}
