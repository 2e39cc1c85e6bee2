/*
 * trim.h - empty slabs go back though their phases go on; owners hand over what was asked of them (bracket.h).
 */
#ifndef TSI_HEAP_TRIM_H
#define TSI_HEAP_TRIM_H

#include "state/arena.h"

/* Gives the empty slabs of one incarnation back, to stores, the stock or the system; of the heaps that it walks those
 * of other threads are RETIRE afterwards, the caller's own DETACHED, or freed without slabs. Passes over a phase that
 * is another thread's alone. Returns true if slabs were left to threads that were inside of them, or to another sweep.
 * b: the thread's binding, or NULL. [any thread, no lock held, no bracket open] */
bool tsi_trim_inc(TsiArena* a, TsiBinding* b, TsiInc* inc);
/* Gives empty slabs of every incarnation back to the system at once, also those that wait for a sweep; of the heaps of
 * one binding only when `only` is not NULL. Returns like tsi_trim_inc. O(incarnations, and slabs of their heaps)
 * [any thread, no lock held, no bracket open] */
bool tsi_trim(TsiArena* a, TsiBinding* b, TsiBinding* only);
/* Gives the empty slabs of one incarnation that goes on back, except in heaps of other threads that are not idle
 * (decay.h). If memory that goes for want of budget is missed, the budget rises.
 * [any thread, no lock held, no bracket open] */
void tsi_trim_idle(TsiArena* a, TsiBinding* b, TsiInc* inc);
/* Gives the empty slabs of the ring's current epoch back as a thread exits in shared mode, where no heap goes with it;
 * only if the full lines that were freed in since the last time are 16 or more, and more than half as many as the slabs
 * there. [own thread, no lock held, no bracket open] */
void tsi_trim_banks(TsiArena* a, TsiBinding* b);
/* Gives empty slabs of every incarnation back, at once, and the warm stores of all threads. Returns like tsi_trim_inc;
 * true also if a store was busy. [any thread, no lock held, no bracket open] */
bool tsi_trim_all(TsiArena* a, TsiBinding* b);
/* Gives back what tsi_trim_all does, where max_bytes is in the way, but trims only incarnations that have heaps: those
 * that only drain are passed over, since their slabs go back as they empty, and single pages count as committed until
 * then. Returns like that. O(heaps) [any thread, no lock held, no bracket open] */
bool tsi_trim_for_room(TsiArena* a, TsiBinding* b);
/* Gives the empty slabs back that this thread has in the incarnation of h, one of its heaps: to stores or the stock,
 * lent to that with decay_ms. All heaps of the thread there are DETACHED afterwards, or freed, and found again by the
 * next use. [own thread, no lock held, no bracket open] */
void tsi_heap_scavenge(TsiBinding* b, TsiHeap* h);

#endif
