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

/* Returns the library's words of an allocator's record, which may be inert; a is not NULL.
 * [any thread, needs no lock] */
TSI_INLINE TsiPublic* tsi_public(SlabAllocator* a) { return (TsiPublic*)(void*)a; }
/* Returns the arena behind an allocator; NULL for NULL, inert and never initialised ones.
 * [any thread, needs no lock] */
TSI_INLINE TsiArena* tsi_arena(SlabAllocator* a) {
    return a != NULL && tsi_public(a)->magic == TSI_MAGIC ? tsi_public(a)->arena : NULL;
}

/* Returns tsi_tls.binding if the allocator is in shared mode without stand-ins and the thread used it last; fast paths
 * never use that binding. NULL otherwise: in owned mode, with stand-ins, after another allocator, and for a NULL or
 * inert one. [own thread, needs no lock] */
TSI_INLINE TsiBinding* tsi_sharer(SlabAllocator* allocator) {
    TsiArena* a = tsi_arena(allocator);
    bool shared = a != NULL && a->banks_at_hand && tsi_tls.serial == a->serial;
    return shared ? tsi_tls.binding : NULL;
}

/* Returns tsi_tls.binding if the allocator is hardened (a->hard_at_hand) and the thread used it last; fast paths never
 * use that binding. NULL otherwise, and for NULL or inert allocators. [own thread, needs no lock] */
TSI_INLINE TsiBinding* tsi_hardened(SlabAllocator* allocator) {
    TsiArena* a = tsi_arena(allocator);
    bool hard = a != NULL && a->hard_at_hand && tsi_tls.serial == a->serial;
    return hard ? tsi_tls.binding : NULL;
}

/* Makes this allocator the owner in tsi_tls.record, so that the thread's fast paths use its binding, where that is
 * another one or none. Returns true if it has, and the caller may try the fast path again; false if it was the owner
 * before, never can be (shared mode, stand-ins, hardened), there is no memory for a binding, or allocator is NULL or
 * inert. [own thread, no lock held, no bracket open] */
bool tsi_turn_to(SlabAllocator* allocator);

/* Gives the place from which the function that uses it was called, and that function a frame pointer, whatever the
 * compiler was told. */
#define TSI_CALLER()                                             \
    (TSI_DEFINED(__builtin_frame_address(0), sizeof(uintptr_t)), \
     (TsiCaller){(uintptr_t)__builtin_return_address(0), *(uintptr_t*)__builtin_frame_address(0)})

/* Publishes the statistics if that is due, and in debug builds checks the allocator by tsi_check_closed, after a phase
 * has ended, or the ring moved on, in a call that is about to return. [any thread, no lock held, no bracket open] */
TSI_INLINE void tsi_closed(TsiArena* a) {
#ifdef TSI_DEBUG
    tsi_check_closed(a->owner);
#endif
    tsi_segment_tick(a);
}
/* Returns the reference of the incarnation that an epoch id names; 0, counted as a refusal, with EINVAL if it names
 * none, or ESTALE if it was that of a domain's ended epoch. [any thread, no lock held, no bracket open] */
TsiRef tsi_resolve(TsiArena* a, EpochId id);
/* Allocates `size` bytes, any number, in the incarnation that ref, not 0, names. allocator may be NULL, which is
 * refused. Returns the object, or NULL with errno. [own thread, no lock held, no bracket open] */
void* tsi_alloc_ref(SlabAllocator* allocator, size_t size, TsiRef ref);
/* Allocates `size` bytes by all ways; refuses `a` NULL and a size of 0 (EINVAL) and one beyond PTRDIFF_MAX (ENOMEM).
 * align: a power of two in bytes, or TSI_ALIGN_GROWS for a block that may grow again. ref: the phase, 0: the ambient
 * one, TSI_REF_CURRENT: the ring's; prefer: true if the ambient phase takes it when ref accepts no more. Sets *handle
 * to the object's, or to 0; handle may be NULL. The profile's caller is that of the function that tail-calls this one.
 * Returns the object, or NULL with errno. [own thread, no lock held, no bracket open] */
void* tsi_alloc_any(TsiArena* a, size_t size, size_t align, TsiRef ref, bool prefer, SlabHandle* handle);
/* Allocates `size` bytes with an alignment in bytes, which is checked here: a power of two of at most 1 GiB (2^30),
 * otherwise EINVAL, counted as a bad size. ref: the phase, 0: the thread's ambient one. Sets *out to the object's
 * handle, or to 0; out may be NULL. Returns the object, or NULL with errno.
 * [own thread, no lock held, no bracket open] */
void* tsi_alloc_aligned(SlabAllocator* allocator, size_t alignment, size_t size, TsiRef ref, SlabHandle* out);
/* Allocates `size` bytes. ref: the phase, 0: the thread's ambient one. Sets *out to the object's handle, or to 0; out
 * may be NULL. Returns the object, or NULL with errno. [own thread, no lock held, no bracket open] */
void* tsi_alloc_obj(SlabAllocator* allocator, size_t size, TsiRef ref, SlabHandle* out);
/* Allocates a zeroed array of n elements of `size` bytes. ref: the phase, 0: the thread's ambient one. Returns it, or
 * NULL with errno: ENOMEM if the product overflows, or without memory; EINVAL if it is 0, or allocator is NULL. Pages
 * of a large one that are zero already are not touched. [own thread, no lock held, no bracket open] */
void* tsi_alloc_zeroed(SlabAllocator* allocator, size_t n, size_t size, TsiRef ref);
/* Returns true if a limit may refuse an allocation in the phase ref; 0: where slab_malloc allocates; TSI_REF_CURRENT:
 * in the ring's current epoch. [own thread, no lock held] */
bool tsi_meets_limit(TsiArena* a, TsiRef ref);
/* Resizes the block at p (NULL: allocates one) to at least `size` bytes. ref names the phase for a block that moves; 0
 * = the block's own incarnation if it is ACTIVE, else the ambient one; TSI_REF_CURRENT = the ring's current epoch. The
 * block stays where it is, unless it is a stand-in, if `size` is at least half of its bytes and no more than these, or
 * if it can grow there; a block that moves keeps its first bytes, and the old one is freed. Returns the block, which
 * is p if one that shrinks cannot move; NULL for size 0, which frees it; otherwise NULL with errno, and leaves the
 * block as it was (EINVAL: p is no live object of the allocator; ESTALE: it has ended meanwhile).
 * [own thread, no lock held, no bracket open] */
void* tsi_resize(SlabAllocator* allocator, void* p, size_t size, TsiRef ref);
/* Copies a live object to the phase that ref names, or for TSI_REF_CURRENT to the ring's current epoch, and frees the
 * old one. Returns the copy, or p if it is in that phase already and that is active; NULL with errno, and leaves p as
 * it was, if it failed (ESTALE: it has ended). [own thread, no lock held, no bracket open] */
void* tsi_move(SlabAllocator* allocator, void* p, TsiRef ref);
enum { TSI_SENTENCE_BYTES = 160 };
/* Clears the thread's sentence of slab_last_error: it is empty then. Leaves errno and slab_error alone.
 * [any thread, needs no lock] */
void tsi_clear_error(void);
/* Makes the thread's text the sentence of slab_last_error. Returns it, for the caller to write TSI_SENTENCE_BYTES at
 * most with the 0: with its content if it is the sentence already, otherwise empty; NULL without memory, which the
 * sentence then says. Leaves errno alone. [any thread, no lock held] */
char* tsi_error_text(void);
/* Sets the thread's sentence of slab_last_error to a text by a format of printf, cut to TSI_SENTENCE_BYTES with the 0;
 * without memory the sentence says that. Returns false, for callers to return. [any thread, no lock held] */
bool tsi_set_error(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* Makes a literal, which must stay, the thread's sentence of slab_last_error, and sets errno to `error` and slab_error
 * to the SlabError that belongs to that. Returns NULL, for callers to return. [any thread, needs no lock] */
TSI_COLD void* tsi_failed(int error, const char* literal);
/* Makes a literal, which must stay, the thread's sentence of slab_last_error, and sets errno to `error` and slab_error
 * to the SlabError that belongs to that. Returns false, for callers to return. [any thread, needs no lock] */
TSI_COLD bool tsi_failed_bool(int error, const char* literal);
/* Fills *out from *in (NULL: all defaults), then from TSLAB_OPTIONS, and sets *bad_environment to the number of ignored
 * words there. Returns true; the sentence of slab_last_error then explains these words, and is empty if there are none.
 * Returns false, with the sentence that says why, if *in is bad: *out means nothing then, *bad_environment is left
 * alone. [any thread, no lock held] */
bool tsi_options_read(SlabOptions* out, const SlabOptions* in, uint32_t* bad_environment);
/* Writes the sentence of slab_last_error, as "temporal-slab: ..." and a newline, to standard error: at the first call
 * of the process whose allocator's options do not say quiet and have no misuse_fn; otherwise does nothing.
 * [any thread, needs no lock] */
void tsi_options_complain(const SlabOptions* options);

#endif
