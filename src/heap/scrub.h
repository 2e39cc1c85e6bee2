/*
 * scrub.h - option fill_freed: objects are zeroed as they end, and their memory is looked at before it is an object
 * again.
 *
 * The contents of an object are gone with it, so neither a pointer that is used too late nor the next object
 * there shows it. And a byte that is not 0 where an object begins was written after an earlier object's end: that is
 * counted and told as a misuse, and the new object is zeroed.
 *
 * A slot that was freed may be another object at once, and the memory of a phase another phase's. So zeros are written
 * where that cannot happen yet: by the owner in its bracket, before the slot's bit is set; by other threads under the
 * stripe of the phase, after they have found the object there, and where handles were issued after they have won its
 * count or its mark; by the end of a phase as it claims slabs, for what lives there.
 *
 * Invariants
 *   X1  Payload that is no object's is zero, but for what a program has written there since, or its page is with the
 *       system and reads as zero. Pages that the system may keep (the purge policies, locked pages) are zero as well.
 *   X2  A thread writes zeros into an object while its slab cannot be given to anybody: in a bracket that has seen the
 *       object there, or holding the stripe of the phase that the slab's tag names. All claims of slabs take the stripe
 *       before the slab is given on.
 *   X3  Two threads that free one object through a handle are told apart before either writes. Two that free a pointer
 *       at once, a mistake that is not always refused, may zero the object that has come after it.
 *
 * Large objects are not written: their pages go to the system. Where objects are blocks of malloc or lie on sheets
 * (stand_in.h) nothing is filled.
 */
#ifndef TSI_HEAP_SCRUB_H
#define TSI_HEAP_SCRUB_H

#include "state/arena.h"

#include <string.h>

/* Zeroes n bytes of an object that is about to end (X2). [owner, in bracket, or stripe held] */
TSI_INLINE void tsi_scrub(void* p, size_t n) { memset(p, 0, n); }
/* Takes the stripe of the phase whose heap or orphan the slab is, as its tag says. Returns the phase's record, for
 * tsi_scrub_let_go, or NULL, and takes nothing, if the slab has left its incarnation `seq`. [no lock, no bracket] */
TsiInc* tsi_scrub_hold(TsiArena* a, uint32_t slab_id, uint32_t seq);
/* Gives the stripe back that tsi_scrub_hold has taken; held: what that returned, not NULL. [stripe held] */
void tsi_scrub_let_go(TsiInc* held);
/* Zeroes the live objects of a slab that has been claimed, each to its usable size; of a region before its life ends.
 * Does nothing for a large object. [stripe held, or X2] */
void tsi_scrub_live(TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Looks whether the memory of the new object at p, all of its usable size, is zero; if not, zeroes it and counts and
 * tells the misuse. Does nothing for a large object, or one that has ended meanwhile. [no lock, no bracket] */
void tsi_scrub_given(TsiArena* a, void* p);
/* Returns true if n bytes are zero; p and n are multiples of 16. [any thread] */
bool tsi_scrub_is_zero(const void* p, size_t n);

#endif
