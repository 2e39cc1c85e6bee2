/*
 * hard.h - the quick ways of a hardened allocator: what a thread allocates and frees in its own heaps.
 *
 * A hardened allocator is never at hand for the fast paths of programs, so without its options none of them has an
 * instruction for it. Its calls come by here, do what the options ask for, and go on by the same fast paths. All that
 * these leave out goes by tsi_alloc_slow and tsi_free_pointer, which do the same.
 */
#ifndef TSI_HEAP_HARD_H
#define TSI_HEAP_HARD_H

#include "state/arena.h"

/* Allocates what is ready in the thread's heap of the phase; ref as in TsiRequest. size <= TSI_SMALL_MAX. Returns NULL
 * if nothing is. [own thread, no bracket] */
void* tsi_hard_alloc(TsiBinding* b, size_t size, TsiRef ref);
/* Prepares the end of an object in one of the thread's heaps: zeroes it, with fill_freed. Returns true if the quick
 * free may follow; false, and does nothing, if p must be freed the common way. [own thread, no bracket] */
bool tsi_hard_end(TsiBinding* b, void* p);

#endif
