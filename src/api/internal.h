/*
 * internal.h - what the public entry points share.
 */
#ifndef TSI_API_INTERNAL_H
#define TSI_API_INTERNAL_H

#include "heap/arena.h"
#include "heap/refuse.h"
#include "heap/registry.h"

#include <errno.h>

#define TSI_MAGIC 0x74736c6162303031ull

TSI_INLINE TsiPublic* tsi_public(SlabAllocator* a) { return (TsiPublic*)(void*)a; }
/* The arena behind an allocator; NULL for NULL, inert and never initialised ones. */
TSI_INLINE TsiArena* tsi_arena(SlabAllocator* a) {
    return a != NULL && tsi_public(a)->magic == TSI_MAGIC ? tsi_public(a)->arena : NULL;
}

/* A reference for an epoch id; 0 and a counted refusal with errno EINVAL when there is none. */
TsiRef tsi_resolve(TsiArena* a, EpochId id);
/* Allocates in an incarnation; NULL with errno. */
void* tsi_alloc_ref(SlabAllocator* s, size_t size, TsiRef ref);
/* Sets the sentence behind slab_last_error. */
void tsi_set_error(const char* format, ...) __attribute__((format(printf, 1, 2)));
/* Fills *out from *in (may be NULL) and the environment. False with tsi_set_error. */
bool tsi_options_read(SlabOptions* out, const SlabOptions* in, uint32_t* bad_environment);

#endif
