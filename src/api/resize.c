/*
 * resize.c - resizing and moving of blocks, and questions about a block.
 */
#include "api/alloc_paths.h"

#include "base/sanitize.h"
#include "heap/alloc.h"
#include "account/charge.h"
#include "heap/free.h"
#include "observe/profile.h"
#include "heap/grow.h"
#include "observe/stand_in.h"

#include <errno.h>
#include <string.h>

/* ---- resize ---- */

/* Finds the place of a live object by the program's pointer p: sets *at to it. Returns true; false for any other
 * pointer, NULL included, which is not counted, and *at means nothing then. [any thread, no lock held] */
static bool live_place(TsiArena* a, const void* p, TsiPlace* at) {
    uint64_t tag;
    return tsi_space_locate(&a->space, tsi_slot_of(a, p), at) == TSI_PLACE_OK && tsi_place_is_live(a, at, &tag);
}

/* Finds a live object by the program's pointer p: sets *at to its place and *tag to its slab's tag. Returns true;
 * false with EINVAL, and counts a refusal, for any other pointer, and *at and *tag mean nothing then.
 * [any thread, no lock held, no bracket open] */
static bool find_live(TsiArena* a, const void* p, TsiPlace* at, uint64_t* tag) {
    TsiPlaceResult where = tsi_space_locate(&a->space, tsi_slot_of(a, p), at);
    int bad = where == TSI_PLACE_OK ? tsi_place_check(a, at, tag) : (int)tsi_misuse_of(a, where, at);
    return bad == TSI_FREE_OK || tsi_alloc_refuse(a, tsi_stand_in_misuse(a, p, (SlabMisuse)bad), p, EINVAL) != NULL;
}

bool tsi_meets_limit(TsiArena* a, TsiRef ref) {
    TsiBinding* b = tsi_binding_get(a, false);
    if (ref == 0) ref = b != NULL ? tsi_ambient_ref(b) : tsi_phases_current(&a->phases);
    if (ref == TSI_REF_CURRENT) ref = tsi_phases_current(&a->phases);
    return ref == 0 || tsi_is_limited(a, tsi_inc(&a->phases, tsi_ref_index(ref)));
}

/* Allocates `size` bytes, the new place of a block that has to move. ref: the phase, 0: the ambient one,
 * TSI_REF_CURRENT: the ring's current epoch; prefer: true, with a named phase only, if the ambient phase takes it when
 * ref accepts no more. Returns the object, or NULL with errno. [own thread, no lock held, no bracket open] */
static void* tsi_alloc_moved(SlabAllocator* allocator, TsiArena* a, size_t size, TsiRef ref, bool prefer) {
    TSI_KEEP_FRAME();
    if (ref == TSI_REF_CURRENT) return tsi_alloc_any(a, size, 1, ref, false, NULL);
    return ref != 0 ? tsi_alloc_there(allocator, size, ref, prefer) : slab_malloc(allocator, size);
}

/* Allocates for a block that has grown to `size` bytes, with room to grow on: objects up to TSI_BUMP_MAX bytes get all
 * that their class has, above 256 bytes the class of a quarter more, larger ones what TSI_ALIGN_GROWS asks, so that a
 * block that grows in steps moves a few times for each doubling. Under a limit they get no quarter more, or they would
 * be refused for bytes that nobody asked for; blocks of malloc have what was asked for. ref: the phase, 0: the ambient
 * one, TSI_REF_CURRENT: the ring's current epoch; prefer: true, with a named phase only, if the ambient phase takes it
 * when ref accepts no more. Returns the object, or NULL with errno. [own thread, no lock held, no bracket open] */
static void* tsi_alloc_grown(SlabAllocator* allocator, TsiArena* a, size_t size, TsiRef ref, bool prefer) {
    TSI_KEEP_FRAME();
    if (size > TSI_BUMP_MAX) return tsi_alloc_any(a, size, TSI_ALIGN_GROWS, ref, prefer, NULL);
    if (a->stand_ins == NULL || a->samples_guards) {
        if (!tsi_meets_limit(a, ref) && size > 256 && size <= TSI_BUMP_MAX / 5 * 4) size += size / 4;
        size = a->space.classes->c[tsi_class_of(size)].size;
    }
    return tsi_alloc_moved(allocator, a, size, ref, prefer);
}

/* Records in the profile, by tsi_profile_record, the bytes that the block p, at the place *at, has gained in its
 * place, where it had `had` usable bytes before, unless its phase has ended; sets b->profile_hit, which asked for it,
 * to false. from: the caller of the resizing. Returns p. [own thread, no lock held, no bracket open] */
static TSI_COLD void* record_gain(TsiBinding* b, TsiPlace* at, void* p, size_t had, TsiCaller from) {
    TsiRef ref;
    b->profile_hit = false;
    if (tsi_place_ref(b->arena, at, &ref))
        tsi_profile_record(b, p, tsi_place_bytes(&b->arena->space, at) - had, ref, 0, from);
    return p;
}

/* Returns a number for the life of the slab that the place *at is in: another one once the slab has left its
 * incarnation or, for a region, has been empty. tag: the slab's tag. [any thread, needs no lock] */
static uint64_t life_of(TsiArena* a, const TsiPlace* at, uint64_t tag) {
    unsigned gen = tsi_class_is_region(at->cls)
                       ? tsi_region_gen(tsi_load_seq(&tsi_region(&a->space, at->slab_id)->word)) /* as tsi_byte_check */
                       : 0;
    return (uint64_t)tsi_tag_seq(tag) << 8 | gen;
}

/* Returns true if the phase `ref` is another thread's alone. [any thread, needs no lock] */
static bool is_anothers(const TsiArena* a, TsiRef ref) {
    return tsi_ref_is_anothers(&a->phases, ref, tsi_tls.thread != NULL ? tsi_tls.thread->index + 1 : 0);
}

/* Returns true if ref is not 0, and an allocation in the phase `target`, to which it leads, would not be refused: that
 * is active, and not another thread's alone. False if ref is 0: no phase is named. [own thread, needs no lock] */
static bool may_move_to(const TsiArena* a, TsiRef ref, TsiRef target) {
    return ref != 0 && tsi_ref_is_active(&a->phases, target) && !is_anothers(a, target);
}

/* Grows a large object at the place *at where it is, to at least `size` bytes, and calls the function of a budget that
 * this exceeds. Returns the thread's binding if it has grown, else NULL, also on an exiting thread. Sets *lost in any
 * case: true if it has grown, and that function has ended the object, whose bytes are not to be touched then.
 * [own thread, no lock held, no bracket open] */
static TsiBinding* grown_large(TsiArena* a, const TsiPlace* at, size_t size, bool* lost) {
    TsiBinding* b = !tsi_tls.exiting ? tsi_binding_get(a, true) : NULL;
    *lost = false;
    if (b == NULL || !tsi_large_grow(b, at, size)) return NULL;
    if (TSI_UNLIKELY(b->budget.soft != 0)) {
        TsiBudgetEvents events = b->budget; /* the function may allocate */
        uint64_t seq = tsi_tag_seq(tsi_load_seq(&tsi_slab(&a->space, at->slab_id)->tag)), tag;
        tsi_budget_notify(a, &events, 0);
        *lost = !tsi_place_is_live(a, at, &tag) || tsi_tag_seq(tag) != seq;
    }
    return b;
}

/* Moves pages of the large object p, at the place *at, to q, as far as they hold the first `bytes`, where both are
 * large and the system can, which is twenty times as fast as a copy (decision 0064). Returns the bytes, from the first
 * on, that are at q then, and no longer at p, which is to be freed; 0, with p as it was, if it cannot.
 * [own thread, no lock held, no bracket open] */
static size_t pages_moved(TsiArena* a, const TsiPlace* at, const void* p, void* q, size_t bytes) {
    enum { LEAST = 512 << 10 }; /* objects of that size are large in both places */
    uintptr_t either = (uintptr_t)p | (uintptr_t)q;
    bool large = bytes >= LEAST && at->cls == TSI_CLASS_LARGE, aligned = (either & (tsi_os.page_bytes - 1)) == 0;
    if (!large || !aligned || tsi_is_stand_in(a, p) || tsi_is_stand_in(a, q)) return 0;
    if (TSI_WATCHED_VALUES) return 0; /* their shadow would stay behind */
    TsiBinding* b = !tsi_tls.exiting ? tsi_binding_get(a, false) : NULL;
    return b != NULL ? tsi_large_move(b, at, q, bytes) : 0;
}

/* Moves or copies the first `bytes` bytes of p, whose place is *at, to q, which was made for it and has room for them,
 * and frees p. Returns q; NULL with ESTALE, after freeing q and leaving p alone, if p no longer has the life `life`,
 * what life_of returned before q was made: the function of a budget may have released its phase, or a thread that the
 * program does not order. Then q may lie where p lay. [own thread, no lock held, no bracket open] */
static void* replace(SlabAllocator* allocator, const TsiPlace* at, uint64_t life, void* p, void* q, size_t bytes) {
    TsiArena* a = tsi_arena(allocator);
    uint64_t tag;
    if (TSI_UNLIKELY(q == p || !tsi_place_is_live(a, at, &tag) || life_of(a, at, tag) != life)) {
        (void)slab_free_checked(allocator, q);
        return tsi_error_set(ESTALE), NULL;
    }
    size_t moved = pages_moved(a, at, p, q, bytes);
    memmove((char*)q + moved, (char*)p + moved, bytes - moved); /* they overlap where the phase ends in this moment */
    (void)slab_free_checked(allocator, p);
    return q;
}

TSI_NOINLINE void* tsi_resize(SlabAllocator* allocator, void* p, size_t size, TsiRef ref) {
    TSI_KEEP_FRAME();
    TsiArena* a = tsi_arena(allocator);
    TsiPlace at;
    if (p == NULL) return ref != 0 ? tsi_alloc_ref(allocator, size, ref) : slab_malloc(allocator, size);
    if (a == NULL) return tsi_alloc_refuse(NULL, SLAB_MISUSE_BAD_SIZE, NULL, EINVAL);
    if (size == 0) {
        (void)tsi_free_pointer(a, p, 0);
        return NULL;
    }

    uint64_t tag;
    if (!find_live(a, p, &at, &tag)) return NULL;
    size_t usable = tsi_object_bytes(a, &at);
    bool moves = tsi_is_stand_in(a, p); /* always: its stand-in is as large as was asked for */
    if (size <= usable && size >= usable / 2 && !moves) return p;

    TsiRef own, to = ref == TSI_REF_CURRENT ? tsi_phases_current(&a->phases) : ref;
    bool stays = ref == 0 || (tsi_place_ref(a, &at, &own) && own == to);
    bool grows = size > usable && stays && !moves;
    if (grows && tsi_class_is_region(at.cls)) {
        TsiBinding* b = tsi_binding_get(a, false);
        bool grew = b != NULL && tsi_bump_grow(b, &at, size);
        if (grew) return TSI_LIKELY(!b->profile_hit) ? p : record_gain(b, &at, p, usable, TSI_CALLER());
    }

    bool theirs = tsi_place_ref(a, &at, &own) && is_anothers(a, own); /* only its thread may allocate there */
    if (grows && at.cls == TSI_CLASS_LARGE && !theirs) {
        bool lost;
        TsiBinding* b = grown_large(a, &at, size, &lost);
        if (TSI_UNLIKELY(lost)) return tsi_error_set(ESTALE), NULL;
        if (b != NULL) return TSI_LIKELY(!b->profile_hit) ? p : record_gain(b, &at, p, usable, TSI_CALLER());
    }

    bool prefer = ref == 0 && tsi_place_ref(a, &at, &own) && tsi_ref_is_active(&a->phases, own);
    if (prefer) ref = own;
    /* A block that shrinks need not move: it moves only where that succeeds without a refusal. */
    TsiRef target = prefer ? ref : to;
    if (size <= usable && !may_move_to(a, ref, target)) return p;

    uint64_t life = life_of(a, &at, tag);
    void* q = size > usable ? tsi_alloc_grown(allocator, a, size, ref, prefer)
                            : tsi_alloc_moved(allocator, a, size, ref, prefer);
    if (q == NULL) return size <= usable ? p : NULL;
    return replace(allocator, &at, life, p, q, size < usable ? size : usable);
}

void* tsi_move(SlabAllocator* allocator, void* p, TsiRef ref) {
    TSI_KEEP_FRAME();
    TsiArena* a = tsi_arena(allocator);
    TsiPlace at;
    TsiRef own;
    uint64_t tag;
    if (a == NULL) return tsi_alloc_refuse(NULL, SLAB_MISUSE_BAD_SIZE, NULL, EINVAL);
    if (!find_live(a, p, &at, &tag)) return NULL;
    TsiRef to = ref == TSI_REF_CURRENT ? tsi_phases_current(&a->phases) : ref;
    if (tsi_place_ref(a, &at, &own) && own == to && tsi_ref_is_active(&a->phases, to)) return p;

    size_t bytes = tsi_object_bytes(a, &at);
    uint64_t life = life_of(a, &at, tag);
    void* q = tsi_alloc_any(a, bytes, 1, ref, false, NULL);
    return q != NULL ? replace(allocator, &at, life, p, q, bytes) : NULL;
}

/* Resizes the block p to at least `size` bytes after a fast path has missed, and closes its bracket: in place if the
 * region allows, otherwise by tsi_resize. Returns the block; NULL for size 0, which frees it; otherwise NULL with
 * errno, with the block as it was. [owner, in bracket, no lock held] */
static TSI_NOINLINE void* tsi_resize_missed(TsiBinding* b, SlabAllocator* allocator, void* p, size_t size) {
    TSI_KEEP_FRAME();
    TsiHeap* h;
    TsiFast fast = tsi_bump_grow_missed(b, p, size, &h);
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return p;
    if (fast == TSI_FAST_HANDOVER) return tsi_alloc_left(b, h, p);
    tsi_bracket_missed(b);
    return tsi_resize(allocator, p, size, 0);
}

/* Resizes the block p (may be NULL, or no object) to at least `size` bytes, where it is not the last one of the
 * thread's ambient heap: in place if its region allows, otherwise by tsi_resize. b: tsi_tls.binding, whose allocator,
 * `allocator`, the thread used last. Returns the block; NULL for size 0, which frees it; NULL with errno, with the
 * block as it was. [own thread, no lock held, no bracket open] */
static TSI_NOINLINE void* tsi_resize_any(TsiBinding* b, SlabAllocator* allocator, void* p, size_t size) {
    TSI_KEEP_FRAME();
    TsiHeap* h;
    TsiFast fast = tsi_bump_grow_fast(b, p, size, &h);
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return p;
    if (fast == TSI_FAST_HANDOVER) return tsi_alloc_left(b, h, p);
    return fast == TSI_FAST_MISSED ? tsi_resize_missed(b, allocator, p, size) : tsi_resize(allocator, p, size, 0);
}

void* slab_realloc(SlabAllocator* allocator, void* p, size_t size) {
    if (TSI_UNLIKELY(allocator == NULL || tsi_tls.serial != tsi_public(allocator)->serial))
        return tsi_resize(allocator, p, size, 0);
    TsiBinding* b = tsi_tls.binding;
    TsiHeap* h = b->heap;
    if (TSI_UNLIKELY(p != tsi_load_relaxed(&h->last) || size - 1 >= TSI_SMALL_MAX || p == NULL))
        return tsi_resize_any(b, allocator, p, size);
    TsiFast fast = tsi_bump_grow_last(b, h, p, size);
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return p;
    return fast == TSI_FAST_HANDOVER ? tsi_alloc_left(b, h, p) : tsi_resize_missed(b, allocator, p, size);
}

void* slab_realloc_epoch(SlabAllocator* allocator, void* p, size_t size, EpochId epoch) {
    if (p != NULL && size == 0) return tsi_resize(allocator, p, 0, 0);
    TsiRef ref = tsi_resolve_for_alloc(allocator, epoch);
    return ref != 0 ? tsi_resize(allocator, p, size, ref) : NULL;
}

size_t slab_usable_size(SlabAllocator* allocator, const void* p) {
    TsiArena* a = tsi_arena(allocator);
    TsiPlace at;
    return a != NULL && live_place(a, p, &at) ? tsi_object_bytes(a, &at) : 0;
}

size_t slab_good_size(SlabAllocator* allocator, size_t size) {
    TsiArena* a = tsi_arena(allocator);
    if (a == NULL || size == 0 || size > a->space.payload_bytes) return 0;
    unsigned cls = tsi_class_of(size);
    return cls != 0 ? a->space.classes->c[cls].size : tsi_align_up(size, tsi_os.page_bytes);
}

bool slab_owns(SlabAllocator* allocator, const void* p) {
    TsiArena* a = tsi_arena(allocator);
    TsiPlace at;
    if (a != NULL && a->samples_guards && tsi_is_stand_in(a, p)) return true;
    return a != NULL && tsi_space_locate(&a->space, tsi_slot_of(a, p), &at) != TSI_PLACE_FOREIGN;
}

bool slab_ptr_epoch(SlabAllocator* allocator, const void* p, EpochId* id, uint64_t* era) {
    TsiArena* a = tsi_arena(allocator);
    TsiPlace at;
    TsiRef ref;
    bool there = a != NULL && tsi_space_locate(&a->space, tsi_slot_of(a, p), &at) == TSI_PLACE_OK;
    if (!there || !tsi_place_ref(a, &at, &ref)) return false;
    if (id != NULL) *id = tsi_load_relaxed(&tsi_inc(&a->phases, tsi_ref_index(ref))->id);
    if (era != NULL) *era = tsi_ref_era(ref);
    return true;
}

uint32_t slab_object_count(uint32_t size) {
    tsi_process_init();
    unsigned cls = tsi_class_of(size);
    const TsiClass* shape = &tsi_space_default_classes()->c[cls];
    return cls != 0 ? (uint32_t)shape->slots << shape->lines_log2 : 0;
}
