/*
 * ready.h - heaps that wait for a phase, each with the empty region of the phase that had it last.
 *
 * A thread that ends a small phase and begins another needs a heap and a region again, as the first one had them. So
 * the end leaves them together: the region's next life has begun, its tag says WARM, the heap is in no incarnation and
 * stays in its thread's chain. The first allocation of a phase puts the two into its incarnation.
 *
 *   READY(b)  -> LIVE(b)            by b's thread, under the stripe of the phase that begins
 *      ^  |         |
 *      |  |         +-> READY(b)    by b's thread, under the stripe of the phase that ends; it has the phase alone
 *      |  +-> BARE(b)               by anybody who wants the memory: the region goes back, the heap stays without
 *   BARE(b) -> FREE                 by b's thread, as it meets it
 *
 * A READY word names the region, so the compare-exchange that changes it decides who has which; nobody waits. A thread
 * that looks at another thread's list may find old entries: the words of their heaps tell.
 *
 * A phase that nobody but its thread touches ends by a straight way, however it began. Its stripe has been taken twice
 * then: as its heap entered, and as it ends. Whoever does anything else to a phase under its stripe takes the stripe
 * through tsi_inc_take, which counts. A new way to change an incarnation must do so, too, or is_untouched_locked must
 * ask for it. (Reading, an end that finds nothing, which changes the word, and slab_epoch_inc_refcount are not
 * counted.)
 *
 * Models: tests/models/ready.pml, straight_end.pml.
 *
 * The bytes are part of the budget of the warm store (warm.h), up to a quarter of it to a thread.
 */
#ifndef TSI_HEAP_READY_H
#define TSI_HEAP_READY_H

#include "heap/heap.h"

/* The binding's heap in an incarnation: one that it has; where bumps, for an object of a region, one that waits with a
 * region of the size that the phase's label had need of last, when a domain's phase has none; one that is adopted or
 * made. Outside of brackets. */
TsiBirth tsi_ready_heap(TsiBinding* b, TsiRef ref, bool bumps, TsiHeap** out);
/* The first object of a phase in such a heap, of `bytes` of its region, by the shortest way. NULL when there is no
 * heap, or anything else to do first: then the slow path does all of it. Outside of brackets. */
void* tsi_ready_first(TsiBinding* b, TsiRef ref, uint32_t bytes);
/* The straight end of a phase whose one heap is the caller's, and that nobody else has touched: its record is free, its
 * account is posted, and its heap waits, if one region is all that it has and there is room; else its slabs go as from
 * a sweep. False when it is not so; then nothing was done, or its objects have ended and are counted, and the common
 * way follows. out: may be NULL. */
bool tsi_ready_end(TsiBinding* b, TsiRef ref, EpochReceipt* out);
/* In a fork child: the regions are found by their tags; own: the heaps' thread is the one that has forked. */
void tsi_ready_child(TsiArena* a, TsiHeap* h, bool own);

#endif
