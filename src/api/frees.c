/*
 * frees.c - free, by pointer and by handle. Fast paths are inlined and left by tail calls, as in objects.c.
 */
#include "api/as_malloc.h"

#include "heap/bump.h"
#include "heap/free.h"
#include "heap/handles.h"
#include "heap/hard.h"
#include "threads/bank.h"
#include "observe/stand_in.h"

/* ---- by handle ---- */

/* Frees by handle, whoever owns the object. a may be NULL. Returns true if it was freed; false for no allocator and a
 * handle of 0, which count nothing, or after a refusal, which is counted.
 * [any thread, no lock held, no bracket open] */
static bool free_obj_in(TsiArena* a, SlabHandle handle) {
    return a != NULL && handle != 0 && tsi_free_handle(a, handle);
}

/* Frees by handle after tsi_bump_handle_free or tsi_free_handle_fast has returned `fast`, which is not DONE; with
 * MISSED closes the bracket that they left open, otherwise and unless HANDOVER sets b->covered anew. h: the heap to
 * hand over with HANDOVER, where the object is freed already; otherwise not read. Returns true if it was freed; false
 * if it was refused, which is counted. [own thread, no lock held; in bracket if fast is MISSED] */
static TSI_NOINLINE bool free_obj_more(TsiBinding* b, SlabHandle handle, TsiFast fast, TsiHeap* h) {
    TsiArena* a = b->arena;
    if (fast == TSI_FAST_HANDOVER) return tsi_free_left(b, h);
    if (fast == TSI_FAST_MISSED) tsi_bracket_missed(b);
    else b->covered = tsi_load_acquire(&a->space.covered); /* as in free_never: the next one finds its entry */
    return free_obj_in(a, handle);
}

/* Frees an object by its handle, of which tsi_handle_is_bumped returned true: it names an object in a region. b: as in
 * free_obj_of. Returns true if it was freed; false if it was refused, which is counted.
 * [own thread, no lock held, no bracket open] */
static TSI_NOINLINE bool free_obj_bumped(TsiBinding* b, SlabHandle handle) {
    TsiHeap* h = NULL;
    TsiFast fast = tsi_bump_handle_free(b, handle, &h);
    return TSI_LIKELY(fast == TSI_FAST_DONE) || free_obj_more(b, handle, fast, h);
}

/* Frees an object by its handle, of which tsi_handle_is_bumped returned false: it names a slot, or nothing. b: as in
 * free_obj_of. Returns true if it was freed; false if it was refused, which is counted.
 * [own thread, no lock held, no bracket open] */
static TSI_NOINLINE bool free_obj_line(TsiBinding* b, SlabHandle handle) {
    TsiHeap* h = NULL;
    TsiFast fast = tsi_free_handle_fast(b, handle, &h);
    return TSI_LIKELY(fast == TSI_FAST_DONE) || free_obj_more(b, handle, fast, h);
}

/* Frees by handle through the binding b: tsi_tls.binding, whose allocator the thread used last, or that of a bank
 * whose lock the thread holds. Returns true if it was freed; false if it was refused, which is counted.
 * [own thread, no lock held, no bracket open] */
TSI_INLINE bool free_obj_of(TsiBinding* b, SlabHandle handle) {
    return tsi_handle_is_bumped(b, handle) ? free_obj_bumped(b, handle) : free_obj_line(b, handle);
}

/* Frees by handle through the thread's bank, which may own the object, if the bank's lock is free and the bank was
 * used before; otherwise through `own`, the thread's binding, which owns nothing. The bank's lock is given back.
 * Returns true if it was freed; false if it was refused, which is counted.
 * [own thread, no lock held, no bracket open] */
static TSI_NOINLINE bool free_obj_in_bank(TsiBinding* own, SlabHandle handle) {
    TsiBank* bank;
    if (!tsi_bank_try(own, &bank)) return free_obj_of(own, handle);
    bool freed = free_obj_of(tsi_bank_binding(bank), handle);
    tsi_bank_leave(bank);
    return freed;
}

/* Frees by handle where the allocator, which may be NULL, is not the owner in tsi_tls.record: by its bank, or after
 * making it the owner. Returns true if it was freed; false if it was refused, which is counted, and for a NULL or
 * inert allocator. [own thread, no lock held, no bracket open] */
static TSI_NOINLINE bool free_obj_any(SlabAllocator* allocator, SlabHandle handle) {
    TsiBinding* b = tsi_sharer(allocator);
    if (b != NULL) return free_obj_in_bank(b, handle);
    return tsi_turn_to(allocator) ? free_obj(allocator, handle) : free_obj_in(tsi_arena(allocator), handle);
}

bool free_obj(SlabAllocator* allocator, SlabHandle handle) {
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, allocator))) return free_obj_any(allocator, handle);
    return free_obj_of(tsi_tls.binding, handle);
}

void* slab_handle_ptr(SlabAllocator* allocator, SlabHandle handle) {
    TsiArena* a = tsi_arena(allocator);
    TsiPlace at;
    return a != NULL && handle != 0 && tsi_handle_find(a, handle, &at) ? tsi_object_at(a, &at) : NULL;
}

SlabHandle slab_ptr_handle(SlabAllocator* allocator, const void* p) {
    TsiArena* a = tsi_arena(allocator);
    TsiPlace at;
    if (a == NULL || tsi_space_locate(&a->space, tsi_slot_of(a, p), &at) != TSI_PLACE_OK) return 0;
    TsiBinding* b = tsi_binding_get(a, false);
    TsiBank* bank;
    if (TSI_LIKELY(!a->options.shared) || b == NULL || !tsi_bank_try(b, &bank)) return tsi_handle_of(a, b, &at);
    SlabHandle handle = tsi_handle_of(a, tsi_bank_binding(bank), &at); /* the owner marks its line itself */
    tsi_bank_leave(bank);
    return handle;
}

/* ---- free ---- */

/* Frees a pointer, whoever owns the object, which must have at least `least` usable bytes. a may be NULL. Returns true
 * if it was freed, or is NULL; false for no allocator, or after a refusal, which is counted.
 * [any thread, no lock held, no bracket open] */
static TSI_NOINLINE bool free_any(TsiArena* a, void* p, size_t least) {
    if (p == NULL) return true;
    return a != NULL && tsi_free_pointer(a, p, least);
}

TSI_NOINLINE bool tsi_free_at_entry(TsiBinding* b, void* p, uint32_t entry) {
    TsiHeap* h;
    TsiRegion* r;
    TsiFast fast = tsi_bump_free(b, p, entry, false, 0, &h, &r);
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return true;
    if (fast == TSI_FAST_MISSED) return tsi_free_bumped(b, p);
    return fast == TSI_FAST_HANDOVER ? tsi_free_left(b, h) : tsi_bump_keep_empty(b, h, r);
}

/* Frees a pointer that the fast path knows nothing of, after b->covered was set to how much of the payload has entries
 * by now, so that the next one finds its entry. Returns true if it was freed, or is NULL; false if it was refused,
 * which is counted. [own thread, no lock held, no bracket open] */
static TSI_NOINLINE bool free_never(TsiBinding* b, void* p) {
    b->covered = tsi_load_acquire(&b->arena->space.covered); /* pairs with cover in space.c */
    return free_any(b->arena, p, 0);
}

/* Frees p, by the fast path or by a tail call. b: tsi_tls.binding, whose allocator the thread used last, or the
 * binding of a bank whose lock the thread holds. Returns true if it was freed, or is NULL; false if it was refused,
 * which is counted. [own thread, no lock held, no bracket open] */
TSI_INLINE bool free_inline(TsiBinding* b, void* p) {
    TsiHeap* h;
    unsigned at;
    TsiFast fast = tsi_free_fast(b, p, &h, &at);
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return true;
    if (fast == TSI_FAST_IS_REGION) return tsi_free_at_entry(b, p, at);
    if (fast == TSI_FAST_MISSED) return tsi_free_missed(b, p);
    return fast == TSI_FAST_HANDOVER ? tsi_free_left(b, h) : free_never(b, p);
}

/* Frees p through the thread's bank, which may own the object, if the bank's lock is free and the bank was used
 * before; otherwise through `own`, the thread's binding, which owns nothing. The bank's lock is given back. Returns
 * true if it was freed, or is NULL; false if it was refused, which is counted.
 * [own thread, no lock held, no bracket open] */
static TSI_NOINLINE bool free_in_bank(TsiBinding* own, void* p) {
    TsiBank* bank;
    if (!tsi_bank_try(own, &bank)) return free_inline(own, p);
    bool freed = free_inline(tsi_bank_binding(bank), p);
    tsi_bank_leave(bank);
    return freed;
}

/* Frees p in a hardened allocator: through the thread's own heaps if the object is there. Returns true if it was freed,
 * or is NULL; false if it was refused, which is counted. [own thread, no lock held, no bracket open] */
static TSI_NOINLINE bool free_hardened(TsiBinding* b, void* p) {
    return tsi_hard_end(b, p) ? free_inline(b, p) : free_any(b->arena, p, 0);
}

/* Frees p where the allocator, which may be NULL, is not the owner in tsi_tls.record: by its bank, by the ways of a
 * hardened one, or after making it the owner. Returns true if it was freed, or is NULL; false if it was refused, which
 * is counted, and for a NULL or inert allocator. [own thread, no lock held, no bracket open] */
static TSI_NOINLINE bool free_bound(SlabAllocator* allocator, void* p) {
    TsiBinding* b = tsi_sharer(allocator);
    if (b != NULL) return free_in_bank(b, p);
    b = tsi_hardened(allocator);
    if (b != NULL) return free_hardened(b, p);
    return tsi_turn_to(allocator) ? slab_free_checked(allocator, p) : free_any(tsi_arena(allocator), p, 0);
}

/* Frees p where the allocator, which may be NULL, is not the owner in tsi_tls.record; on a thread without a record
 * without making one, unless freed memory is filled. Returns true if it was freed, or is NULL; false if it was
 * refused, which is counted, and for a NULL or inert allocator. [any thread, no lock held, no bracket open] */
static TSI_NOINLINE bool free_whole(SlabAllocator* allocator, void* p) {
    TsiArena* a = tsi_arena(allocator);
    if (tsi_tls.thread == NULL && a != NULL && !a->fill) return tsi_free_unbound(a, p);
    return free_bound(allocator, p);
}

/* Frees p by the fast path, or by a tail call; allocator may be NULL. Returns true if it was freed, or is NULL; false
 * if it was refused, which is counted, and for a NULL or inert allocator.
 * [any thread, no lock held, no bracket open] */
TSI_INLINE bool free_at(SlabAllocator* allocator, void* p) {
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, allocator))) return free_whole(allocator, p);
    return free_inline(tsi_tls.binding, p);
}

bool slab_free_checked(SlabAllocator* allocator, void* p) { return free_at(allocator, p); }

void slab_free(SlabAllocator* allocator, void* p) { (void)free_at(allocator, p); }

/* Frees p where tsi_bump_free has missed, and closes its bracket: normally the region is another thread's, or the
 * object is larger than the quick check sees. The object must have at least `size` usable bytes. Returns true if it
 * was freed; false if it was refused, which is counted: its object is smaller, or the pointer is bad.
 * [owner, in bracket, no lock held] */
static TSI_NOINLINE bool free_sized_missed(TsiBinding* b, void* p, size_t size) {
    const TsiRegion* r = (const TsiRegion*)(uintptr_t)tsi_load_relaxed(&b->busy); /* as tsi_busy_region names it */
    uint64_t at = (uint64_t)((uintptr_t)p - (uintptr_t)tsi_load_relaxed(&r->base));
    uint8_t byte = at < tsi_load_relaxed(&r->rel) ? tsi_load_relaxed(&tsi_region_map(r)[at >> TSI_GRANULE_SHIFT]) : 0;
    if (byte != 0 && tsi_bump_holds_any(r, at, size, byte & TSI_GEN_BYTE))
        return tsi_free_at_entry(b, p, (uint32_t)(r - (const TsiRegion*)(const void*)b->words));
    tsi_bracket_missed(b);
    return free_any(b->arena, p, size);
}

/* Frees p, an address of the payload that is in no region and whose object must have at least `size` usable bytes. b:
 * tsi_tls.binding. Returns true if it was freed; false if it was refused, which is counted: its object is smaller, or
 * the pointer is bad. [own thread, no lock held, no bracket open] */
static TSI_NOINLINE bool free_sized_in_class(TsiBinding* b, void* p, size_t size) {
    uint64_t off = (uint64_t)((uintptr_t)p - (uintptr_t)b->base);
    TsiChunkKey key = tsi_load_acquire(&b->keys[off >> TSI_CHUNK_SHIFT]);       /* as in tsi_chunk_class */
    bool small = key - sizeof(TsiClass) < TSI_SMALL_CLASSES * sizeof(TsiClass); /* as in spot_find, free.c */
    bool holds = small && size <= tsi_key_class(b->classes, key)->size;
    return TSI_LIKELY(holds) ? free_inline(b, p) : free_any(b->arena, p, size);
}

/* Frees p, which is outside of the payload that b has entries for (b->covered), and whose object must have at least
 * `size` usable bytes. Returns true if it was freed, or is NULL; false if it was refused, which is counted.
 * [own thread, no lock held, no bracket open] */
static TSI_NOINLINE bool free_sized_never(TsiBinding* b, void* p, size_t size) { return free_any(b->arena, p, size); }

/* Frees p, whose object must have at least `size` usable bytes. b: tsi_tls.binding, whose allocator the thread used
 * last. Each way out is a tail call, so that the function needs no frame. Returns true if it was freed, or is NULL;
 * false if it was refused, which is counted: its object is smaller, or p leads to no live object.
 * [own thread, no lock held, no bracket open] */
TSI_INLINE bool free_near_sized(TsiBinding* b, void* p, size_t size) {
    TsiHeap* h;
    TsiRegion* r;
    uint64_t off = (uint64_t)((uintptr_t)p - (uintptr_t)b->base);
    if (TSI_UNLIKELY(off >= b->covered)) return free_sized_never(b, p, size);
    uint32_t entry = tsi_load_acquire(&b->entries[off >> TSI_LINE_MIN_SHIFT]); /* as in tsi_free_fast */
    if ((entry & TSI_ENTRY_REGION) == 0) return free_sized_in_class(b, p, size);
    TsiFast fast = tsi_bump_free(b, p, entry, true, size, &h, &r);
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return true;
    if (fast == TSI_FAST_MISSED) return free_sized_missed(b, p, size);
    return fast == TSI_FAST_HANDOVER ? tsi_free_left(b, h) : tsi_bump_keep_empty(b, h, r);
}

/* Frees p, whose object must have at least `size` usable bytes, where the allocator, which may be NULL, is not the
 * owner in tsi_tls.record, and does not make it that. Returns true if it was freed, or is NULL; false if it was
 * refused, which is counted, and for a NULL or inert allocator. [any thread, no lock held, no bracket open] */
static TSI_NOINLINE bool free_sized_whole(SlabAllocator* allocator, void* p, size_t size) {
    return free_any(tsi_arena(allocator), p, size);
}

/* Frees p, whose object must have at least `size` usable bytes, by the fast path or by a tail call; allocator may be
 * NULL. Returns true if it was freed, or is NULL; false if it was refused, which is counted, and for a NULL or inert
 * allocator. [any thread, no lock held, no bracket open] */
TSI_INLINE bool free_sized(SlabAllocator* allocator, void* p, size_t size) {
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, allocator))) return free_sized_whole(allocator, p, size);
    return free_near_sized(tsi_tls.binding, p, size);
}

bool slab_free_sized_checked(SlabAllocator* allocator, void* p, size_t size) { return free_sized(allocator, p, size); }

void slab_free_sized(SlabAllocator* allocator, void* p, size_t size) { (void)free_sized(allocator, p, size); }
