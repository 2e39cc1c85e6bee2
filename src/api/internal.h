/*
 * internal.h - what the public entry points share.
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

TSI_INLINE TsiPublic* tsi_public(SlabAllocator* a) { return (TsiPublic*)(void*)a; }
/* The arena behind an allocator; NULL for NULL, inert and never initialised ones. */
TSI_INLINE TsiArena* tsi_arena(SlabAllocator* a) {
    return a != NULL && tsi_public(a)->magic == TSI_MAGIC ? tsi_public(a)->arena : NULL;
}

/* Shared mode: the thread's binding there, which is never at hand for a fast path; else NULL. */
TSI_INLINE TsiBinding* tsi_sharer(SlabAllocator* s) {
    TsiArena* a = tsi_arena(s);
    bool shared = a != NULL && a->banks_at_hand && tsi_tls.serial == a->serial;
    return shared ? tsi_tls.binding : NULL;
}

/* The allocator that the thread used last is another: true when this one is at hand now. */
bool tsi_turn_to(SlabAllocator* s);

/* Where the function it is used in was called from. It has a frame pointer then, whatever the compiler was told. */
#define TSI_CALLER()                                             \
    (TSI_DEFINED(__builtin_frame_address(0), sizeof(uintptr_t)), \
     (TsiCaller){(uintptr_t)__builtin_return_address(0), *(uintptr_t*)__builtin_frame_address(0)})

/* A phase has ended, or the ring moved on, in a call that is about to return: no lock held, no bracket open. */
TSI_INLINE void tsi_closed(TsiArena* a) {
#ifdef TSI_DEBUG
    tsi_check_closed(a->owner);
#endif
    tsi_segment_tick(a);
}
/* A reference for an epoch id; 0 and a counted refusal with errno EINVAL when there is none. */
TsiRef tsi_resolve(TsiArena* a, EpochId id);
/* Allocates in an incarnation; NULL with errno. */
void* tsi_alloc_ref(SlabAllocator* s, size_t size, TsiRef ref);
/* Everything a fast path turns down: NULL and inert allocators, sizes, first use, used-up lines. ref, prefer and handle
 * as in TsiRequest; the caller of whoever tail-calls it is who asks. */
void* tsi_alloc_any(TsiArena* a, size_t size, size_t align, TsiRef ref, bool prefer, SlabHandle* handle);
/* Allocates with an alignment, which is checked here, and with a handle where out is not NULL. ref 0: where the thread
 * is. */
void* tsi_alloc_aligned(SlabAllocator* s, size_t alignment, size_t size, TsiRef ref, SlabHandle* out);
/* Allocates with a handle where out is not NULL. ref 0: where the thread is. */
void* tsi_alloc_obj(SlabAllocator* s, size_t size, TsiRef ref, SlabHandle* out);
/* A zeroed array; ref 0: where the thread is. */
void* tsi_alloc_zeroed(SlabAllocator* s, size_t n, size_t size, TsiRef ref);
/* True if a limit may refuse what is allocated there; ref 0: by slab_malloc; TSI_REF_CURRENT: in the ring. */
bool tsi_meets_limit(TsiArena* a, TsiRef ref);
/* ref: where a block that moves goes; 0 = the block's own incarnation if it is ACTIVE, else the ambient one;
 * TSI_REF_CURRENT = the ring's current epoch. */
void* tsi_resize(SlabAllocator* s, void* p, size_t size, TsiRef ref);
/* Copies a live object to the phase that ref names, or ref TSI_REF_CURRENT the ring's current epoch, and frees it there
 * where it was. Returns p where it is in that phase already; NULL with errno, and p as it was. */
void* tsi_move(SlabAllocator* s, void* p, TsiRef ref);
enum { TSI_SENTENCE_BYTES = 160 };
/* Takes the sentence of slab_last_error away. [any thread] */
void tsi_clear_error(void);
/* Makes the thread's text the sentence of slab_last_error. Returns it, empty if it was not the sentence before, for the
 * caller to write TSI_SENTENCE_BYTES at most; NULL without memory, which the sentence then says. Leaves errno alone.
 * [no lock] */
char* tsi_error_text(void);
/* Writes the sentence of slab_last_error. Returns false. [no lock] */
bool tsi_set_error(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* Makes a literal the sentence of slab_last_error, and sets errno and slab_error. Returns NULL. [any thread] */
TSI_COLD void* tsi_failed(int error, const char* literal);
/* Like tsi_failed, but returns false. */
TSI_COLD bool tsi_failed_bool(int error, const char* literal);
/* Fills *out from *in (may be NULL) and the environment. False with tsi_set_error. True: the sentence of
 * slab_last_error explains the words of the environment that are ignored, and is empty when there are none. */
bool tsi_options_read(SlabOptions* out, const SlabOptions* in, uint32_t* bad_environment);
/* Writes that sentence to standard error: once a process, and not for an allocator that is quiet or tells of misuse. */
void tsi_options_complain(const SlabOptions* o);

#endif
