/*
 * trim.h - empty slabs go back though their phases go on; owners hand over what was asked of them (bracket.h).
 */
#ifndef TSI_HEAP_TRIM_H
#define TSI_HEAP_TRIM_H

#include "state/arena.h"

/* A bool is true if slabs were left to threads that were inside of them, or to another sweep. [no lock, no bracket] */

/* Returns the empty slabs of one incarnation. */
bool tsi_trim_inc(TsiArena* a, TsiBinding* b, TsiInc* inc);
/* Returns empty slabs of every incarnation; of one binding only when `only` is not NULL. */
bool tsi_trim(TsiArena* a, TsiBinding* b, TsiBinding* only);
/* Returns the empty slabs of one incarnation that goes on, except in heaps of other threads that are not idle
 * (decay.h). If memory that goes for want of budget is missed, the budget rises. */
void tsi_trim_idle(TsiArena* a, TsiBinding* b, TsiInc* inc);
/* Returns the empty slabs of the ring's current epoch as a thread exits in shared mode, where no heap goes with it;
 * only if half of the slabs may be empty, by the full lines that were freed in since the last time. */
void tsi_trim_banks(TsiArena* a, TsiBinding* b);
/* Returns empty slabs of every incarnation, at once, and the warm stores of all threads. */
bool tsi_trim_all(TsiArena* a, TsiBinding* b);
/* Returns what tsi_trim_all does, where max_bytes is in the way, but passes over incarnations that only drain: their
 * slabs go back as they empty, and single pages count as committed until then. O(heaps). */
bool tsi_trim_for_room(TsiArena* a, TsiBinding* b);
/* Returns the empty slabs that this thread has in the heap's incarnation. The heap is DETACHED afterwards and found
 * again by its next use. */
void tsi_heap_scavenge(TsiBinding* b, TsiHeap* h);

#endif
