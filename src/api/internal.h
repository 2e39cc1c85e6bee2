/*
 * internal.h - helpers that the public entry points share.
 */
#ifndef TSI_API_INTERNAL_H
#define TSI_API_INTERNAL_H

#include "base/sanitize.h"
#include "state/arena.h"
#include "heap/leave.h"
#include "account/refuse.h"
#include "threads/registry.h"
#include "os/stack.h"
#include "stats/check.h"
#include "stats/segment.h"

#include <errno.h>

#define TSI_MAGIC 0x74736c6162303031ull

/* Returns the library's words of an allocator's record. [any thread] */
TSI_INLINE TsiPublic* tsi_public(SlabAllocator* a) { return (TsiPublic*)(void*)a; }
/* Returns the arena behind an allocator; NULL for NULL, inert and never initialised ones.
 * [any thread] */
TSI_INLINE TsiArena* tsi_arena(SlabAllocator* a) {
    return a != NULL && tsi_public(a)->magic == TSI_MAGIC ? tsi_public(a)->arena : NULL;
}

/* Returns the calling thread's binding in shared mode, where fast paths never find it; NULL otherwise, and if the
 * thread used another allocator last. [own thread] */
TSI_INLINE TsiBinding* tsi_sharer(SlabAllocator* allocator) {
    TsiArena* a = tsi_arena(allocator);
    bool shared = a != NULL && a->banks_at_hand && tsi_tls.serial == a->serial;
    return shared ? tsi_tls.binding : NULL;
}

/* Makes this allocator the one that the thread's fast paths find, where it has used another one last. Returns true if
 * it has; false if fast paths found it before, or never can. [own thread, no lock, no bracket] */
bool tsi_turn_to(SlabAllocator* allocator);

/* Gives the place from which the function that uses it was called, and that function a frame pointer, whatever the
 * compiler was told. */
#define TSI_CALLER()                                             \
    (TSI_DEFINED(__builtin_frame_address(0), sizeof(uintptr_t)), \
     (TsiCaller){(uintptr_t)__builtin_return_address(0), *(uintptr_t*)__builtin_frame_address(0)})

/* Checks and publishes after a phase has ended, or the ring moved on, in a call that is about to return.
 * [no lock, no bracket] */
TSI_INLINE void tsi_closed(TsiArena* a) {
#ifdef TSI_DEBUG
    tsi_check_closed(a->owner);
#endif
    tsi_segment_tick(a);
}
/* Returns a reference for an epoch id; 0, counted, with EINVAL, or ESTALE for the id of a domain's ended epoch.
 * [no lock, no bracket] */
TsiRef tsi_resolve(TsiArena* a, EpochId id);
/* Allocates in the incarnation that ref names, not 0. Returns the object, or NULL with errno.
 * [own thread, no lock, no bracket] */
void* tsi_alloc_ref(SlabAllocator* allocator, size_t size, TsiRef ref);
/* Allocates whatever a fast path turns down: NULL and inert allocators, sizes, first use, used-up lines. ref: the
 * phase, 0 the ambient one; prefer: the ambient one too if ref accepts no more. handle receives the object's, or is
 * NULL. Records as caller of the allocation the caller of the function that tail-calls this one. Returns the object, or
 * NULL with errno. [own thread, no lock, no bracket] */
void* tsi_alloc_any(TsiArena* a, size_t size, size_t align, TsiRef ref, bool prefer, SlabHandle* handle);
/* Allocates with an alignment in bytes, which is checked here, and with a handle if out is not NULL. ref 0: in the
 * thread's ambient phase. Returns the object, or NULL with errno and *out 0.
 * [own thread, no lock, no bracket] */
void* tsi_alloc_aligned(SlabAllocator* allocator, size_t alignment, size_t size, TsiRef ref, SlabHandle* out);
/* Allocates with a handle if out is not NULL. ref 0: in the thread's ambient phase. Returns the object, or NULL with
 * errno and *out 0. [own thread, no lock, no bracket] */
void* tsi_alloc_obj(SlabAllocator* allocator, size_t size, TsiRef ref, SlabHandle* out);
/* Allocates a zeroed array of n elements of `size` bytes. ref 0: in the thread's ambient phase. Returns it, or NULL
 * with errno, ENOMEM if the product overflows. [own thread, no lock, no bracket] */
void* tsi_alloc_zeroed(SlabAllocator* allocator, size_t n, size_t size, TsiRef ref);
/* Returns true if a limit may refuse an allocation in ref; 0: by slab_malloc; TSI_REF_CURRENT: in the ring.
 * [own thread, no lock] */
bool tsi_meets_limit(TsiArena* a, TsiRef ref);
/* Resizes the block at p to `size` bytes. ref names the phase for a block that moves; 0 = the block's own incarnation
 * if it is ACTIVE, else the ambient one; TSI_REF_CURRENT = the ring's current epoch. Returns the block; NULL for size
 * 0, which frees it; otherwise NULL with errno, and leaves the block as it was (ESTALE: it has ended).
 * [own thread, no lock, no bracket] */
void* tsi_resize(SlabAllocator* allocator, void* p, size_t size, TsiRef ref);
/* Copies a live object to the phase that ref names, or for TSI_REF_CURRENT to the ring's current epoch, and frees the
 * old one. Returns the copy, or p if it is in that phase already; NULL with errno, and leaves p as it was, if it
 * failed. [own thread, no lock, no bracket] */
void* tsi_move(SlabAllocator* allocator, void* p, TsiRef ref);
enum { TSI_SENTENCE_BYTES = 160 };
/* Clears the thread's sentence of slab_last_error. [any thread] */
void tsi_clear_error(void);
/* Makes the thread's text the sentence of slab_last_error. Returns it, empty if it was not the sentence before, for the
 * caller to write TSI_SENTENCE_BYTES at most; NULL without memory, which the sentence then says. Leaves errno alone.
 * [any thread, no lock] */
char* tsi_error_text(void);
/* Writes the thread's sentence of slab_last_error, by a format of printf. Returns false, for callers to return.
 * [any thread, no lock] */
bool tsi_set_error(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* Makes a literal the thread's sentence of slab_last_error, and sets errno and slab_error. Returns NULL, for callers to
 * return. [any thread] */
TSI_COLD void* tsi_failed(int error, const char* literal);
/* Makes a literal the sentence, and sets errno and slab_error, like tsi_failed. Returns false, for callers to return.
 * [any thread] */
TSI_COLD bool tsi_failed_bool(int error, const char* literal);
/* Fills *out from *in (may be NULL) and the environment; *bad_environment counts the ignored words of the latter.
 * Returns true; the sentence of slab_last_error then explains these words, and is empty if there are none. Returns
 * false with tsi_set_error if *in is bad. [any thread, no lock] */
bool tsi_options_read(SlabOptions* out, const SlabOptions* in, uint32_t* bad_environment);
/* Writes the sentence of slab_last_error to standard error: once a process, and not for an allocator that is quiet or
 * has a misuse_fn. [any thread] */
void tsi_options_complain(const SlabOptions* options);

#endif
