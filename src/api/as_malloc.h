/*
 * as_malloc.h - the internal interface for a malloc that is this library: all that preload/ uses besides the public
 * headers.
 *
 * A single allocator stands for the process's malloc, and lies at an address that the linker knows. Its fast paths are
 * inlined into malloc and free, which do two things more than slab_malloc and slab_free: they serve sizes and report
 * errors as C says, and pass foreign pointers on to their maker. Both happen off the fast paths, in functions of the
 * caller, which the functions here tail-call.
 */
#ifndef TSI_API_AS_MALLOC_H
#define TSI_API_AS_MALLOC_H

#include "api/alloc_paths.h"
#include "heap/decay.h"
#include "heap/free.h"
#include "observe/sheets.h"
#include "observe/stand_in.h"

/* Allocates `size` bytes, any number, where malloc's fast path does not. b NULL: no bracket was opened; otherwise b has
 * a bracket open, which tsi_malloc_missed or tsi_malloc_leave closes. Returns the object, or NULL. */
typedef void* TsiMallocMore(size_t size, TsiBinding* b);
/* Frees a pointer that free's fast path knows nothing of, NULL among them; or, as `look`, one that it has not looked
 * at. */
typedef void TsiFreeMore(void* p);

/* Allocates `size` bytes, any number, by the fast path if the thread used the allocator last and the size is 1 to
 * TSI_LUT_MAX; otherwise returns more(size, NULL), and where the fast path misses more(size, b), with the bracket of
 * the binding b open, which `more` closes by tsi_malloc_missed or tsi_malloc_leave. Returns the object, or what `more`
 * returns. [own thread, no lock held, no bracket open] */
TSI_INLINE void* tsi_malloc_quick(SlabAllocator* allocator, size_t size, TsiMallocMore* more) {
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, allocator) || size - 1 >= TSI_LUT_MAX))
        return more(size, NULL);
    TsiBinding* b = tsi_tls.binding;
    TsiHeap* h = b->heap;
    TsiRegion* r = b->region;
    uint32_t rel, bytes = tsi_bump_bytes(size);
    void* p;
    bool bumps = r != NULL && tsi_bump_fits(r, bytes, &rel);
    TsiFast fast =
        bumps ? tsi_bump_fast(b, h, r, rel, bytes, &p) : tsi_alloc_fast(b, h, b->cur, tsi_class_near(size), &p);
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return p;
    return fast == TSI_FAST_HANDOVER ? tsi_alloc_left(b, h, p) : more(size, b);
}

/* Allocates `size` bytes, not 0, in the ambient phase, for the function that tsi_malloc_quick calls as `more`. b: what
 * that was given: the binding whose bracket is open, which is closed, or NULL if none is open. Returns the object, or
 * NULL with errno. [own thread, no lock held] */
TSI_INLINE void* tsi_malloc_missed(SlabAllocator* allocator, size_t size, TsiBinding* b) {
    bool line = b != NULL && (b->region == NULL || tsi_load_relaxed(&b->busy) != tsi_busy_region(b->region));
    if (TSI_LIKELY(line)) return tsi_alloc_missed(b, size, 0, false, b->heap, NULL);
    if (b != NULL) tsi_fast_leave(b, b->heap);
    return tsi_alloc_far(allocator, size, 0, false, NULL);
}

/* Tells the profile that the third function on the stack of a call of tsi_malloc_missed, counting its caller, keeps no
 * frame, and was called from pc, a return address; until a call with pc 0. Does nothing in an allocator that watches no
 * allocations. [own thread, needs no lock] */
TSI_INLINE void tsi_malloc_past(uintptr_t pc) {
    TsiBinding* b = tsi_tls.binding;
    if (b != NULL && TSI_UNLIKELY(b->watched)) b->past = pc;
}

/* Closes the open bracket of b, which `more` has got, without allocating, in place of tsi_malloc_missed; hands its heap
 * over if another thread has asked for it. [owner, in bracket, no lock held] */
TSI_INLINE void tsi_malloc_leave(TsiBinding* b) { tsi_fast_leave(b, b->heap); }

/* Frees the object p in a region, after tsi_free_fast said IS_REGION. entry: the one that tsi_free_fast has set, which
 * leads to the region. Returns true if it was freed; false if it was refused, which is counted.
 * [own thread, no lock held, no bracket open] */
bool tsi_free_at_entry(TsiBinding* b, void* p, uint32_t entry);

/* Reads the clock, and searches for empty slabs of the allocator that the thread used last if that is due; sets
 * look_in of its binding to the calls until the next time. For the function that tsi_free_quick calls as `look`, which
 * frees afterwards. [own thread, no lock held, no bracket open] */
TSI_INLINE void tsi_malloc_poll(void) { tsi_decay_now(tsi_tls.binding); }

/* Frees p, an object of allocator, by the fast path; calls more(p) instead for any pointer that this knows nothing of,
 * and if the thread used another allocator last. When look_in of the thread's binding reaches 0, calls look(p)
 * instead, which calls tsi_malloc_poll and frees p. A refusal is counted, and nothing tells the caller.
 * [own thread, no lock held, no bracket open] */
TSI_INLINE void tsi_free_quick(SlabAllocator* allocator, void* p, TsiFreeMore* more, TsiFreeMore* look) {
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, allocator))) {
        more(p);
        return;
    }

    TsiBinding* b = tsi_tls.binding;
    if (TSI_UNLIKELY(tsi_count_down(&b->look_in))) {
        look(p);
        return;
    }

    TsiHeap* h;
    unsigned at;
    TsiFast fast = tsi_free_fast(b, p, &h, &at);
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return;
    if (fast == TSI_FAST_IS_REGION) (void)tsi_free_at_entry(b, p, at);
    else if (fast == TSI_FAST_MISSED) (void)tsi_free_missed(b, p);
    else if (fast == TSI_FAST_HANDOVER) (void)tsi_free_left(b, h);
    else more(p);
}

/* Returns true if p is in the address space of allocator, whether or not an object lives there; false for NULL.
 * allocator was made. [any thread, needs no lock] */
TSI_INLINE bool tsi_malloc_owns(SlabAllocator* allocator, const void* p) {
    const TsiSpace* space = &tsi_public(allocator)->arena->space;
    if (TSI_LIKELY((uint64_t)((uintptr_t)p - (uintptr_t)space->base) < space->payload_bytes)) return true;
    const struct TsiSheets* sheets = tsi_stand_in_sheets(tsi_public(allocator)->arena);
    return TSI_UNLIKELY(sheets != NULL) && tsi_sheets_own(sheets, p);
}

/* Returns true if the calling thread has no record yet: making one may call malloc, by way of libc.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_malloc_is_new_here(void) { return tsi_tls.thread == NULL; }

/* Returns true if objects of allocator, which was made, are blocks of malloc (option by_malloc, or a tool is present),
 * so that it cannot be malloc. [any thread, needs no lock] */
TSI_INLINE bool tsi_malloc_is_circular(SlabAllocator* allocator) {
    return tsi_public(allocator)->arena->stand_ins != NULL && tsi_stand_in_sheets(tsi_public(allocator)->arena) == NULL;
}

/* Sets tsi_os_lean: makes the process's start ask the system for as little as it can. [before the first allocator] */
TSI_INLINE void tsi_malloc_start_lean(void) { tsi_os_lean = true; }

/* Begins a phase with the label (NULL: none): makes a domain with an epoch of its own, which the thread enters. No exit
 * ends it, and it is drained when its last thread exits inside: the objects of a program that frees them itself must
 * not end with a thread. Returns its domain, or NULL with errno. [own thread, no lock held, no bracket open] */
epoch_domain_t* tsi_malloc_begin(SlabAllocator* allocator, const char* label);
/* Returns true if the calling thread's allocations from the allocator, which was made, go to the phase of a domain:
 * its innermost scope there is a domain's, not an outer one. False on an exiting thread, and on one without a record.
 * [own thread, no lock held, no bracket open] */
bool tsi_malloc_in_phase(SlabAllocator* allocator);

/* Returns the bytes of slabs and large objects that allocator, which was made, has from the system.
 * [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_malloc_committed(SlabAllocator* allocator) {
    return tsi_load_relaxed(&tsi_public(allocator)->arena->space.committed_bytes);
}

#endif
