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

/* Allocates what is ready in the thread's heap of the phase, in its region or current line, where the object is then
 * zero with fill_freed, and its slot drawn by chance if the order is random; ref as in TsiRequest, but TSI_REF_CURRENT
 * finds nothing. size: 1 to TSI_SMALL_MAX. Returns the object, or NULL if nothing is ready or the next object needs a
 * guard; h is handed over if it was asked for. [own thread, no bracket] */
void* tsi_hard_alloc(TsiBinding* b, size_t size, TsiRef ref);
/* Prepares the end of the object at p in one of the thread's heaps: zeroes it, with fill_freed; without that does
 * nothing. Returns true if the quick free may follow; false, with nothing zeroed, if p must be freed the common way: no
 * object of the thread's own starts there. A heap that was asked for is handed over. [own thread, no bracket] */
bool tsi_hard_end(TsiBinding* b, void* p);

#endif
