/*
 * trim.h - empty slabs go back though their phases go on; and an owner hands over what was asked of it (bracket.h).
 */
#ifndef TSI_HEAP_TRIM_H
#define TSI_HEAP_TRIM_H

#include "state/arena.h"

/* All of them: true if slabs were left to threads that were inside of them, or to another sweep. */

/* Returns the empty slabs of one incarnation. */
bool tsi_trim_inc(TsiArena* a, TsiBinding* b, TsiInc* i);
/* Returns empty slabs of every incarnation; of one binding only when `only` is not NULL. */
bool tsi_trim(TsiArena* a, TsiBinding* b, TsiBinding* only);
/* Returns the empty slabs of one incarnation that goes on, but for heaps of threads that are not idle (decay.h), other
 * than the caller. What goes for want of budget and is missed raises the budget. */
void tsi_trim_idle(TsiArena* a, TsiBinding* b, TsiInc* i);
/* Shared mode: a thread leaves, and no heap goes with it. Returns the empty slabs of the ring's current epoch if half
 * of its slabs may be empty, by the full lines that were freed in since the last time. */
void tsi_trim_banks(TsiArena* a, TsiBinding* b);
/* tsi_trim of everything, and the warm stores of all threads. */
bool tsi_trim_all(TsiArena* a, TsiBinding* b);
/* The same where max_bytes is in the way: incarnations that only drain are passed over. Their slabs go back as they
 * empty, and single pages of them count as committed until then, so nothing is to be had there. O(heaps). */
bool tsi_trim_for_room(TsiArena* a, TsiBinding* b);
/* Own thread, outside brackets: returns the empty slabs this thread has in the heap's incarnation. The
 * heap is DETACHED afterwards and found again by its next use. */
void tsi_heap_scavenge(TsiBinding* b, TsiHeap* h);

#endif
