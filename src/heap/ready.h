/*
 * ready.h - heaps that wait for a phase, each with the empty region of the phase that had it last.
 *
 * A thread that ends a small phase and begins another needs a heap and a region again. So the end keeps the two
 * together: the region's next life has begun, its tag says WARM, the heap is in no incarnation and stays in its
 * thread's chain. The first allocation of a phase puts both into its incarnation.
 *
 *   STANDBY(b) -> LIVE(b)            by b's thread, under the stripe of the phase that begins
 *      ^  |         |
 *      |  |         +-> STANDBY(b)   by b's thread, under the stripe of the phase that ends, which only it has touched
 *      |  +-> STANDBY_EMPTY(b)       by any thread that wants the memory: the region goes back, the heap stays
 *   STANDBY_EMPTY(b) -> FREE         by b's thread, when it meets the heap
 *
 * A STANDBY word names the region, so the compare-exchange that changes the word decides who gets which; nobody waits.
 * A thread that looks at another thread's list may find old entries: the words of their heaps tell.
 *
 * A phase that only its own thread touches ends by a short way, the straight end, however it began. Its stripe has been
 * taken twice then: as its heap entered, and as it ends. Every other change of a phase under its stripe takes the
 * stripe through tsi_phase_lock, which counts. A new way to change an incarnation must do so, too, or
 * is_untouched_locked must test for it. (Reading, an end that finds nothing, which changes the word, and
 * slab_epoch_inc_refcount are not counted.)
 *
 * Models: tests/models/ready.pml, straight_end.pml.
 *
 * The bytes that wait are part of the budget of the warm store (warm.h); a thread may have up to a quarter of that.
 */
#ifndef TSI_HEAP_READY_H
#define TSI_HEAP_READY_H

#include "heap/heap.h"

/* Finds, adopts or makes the binding's heap in an incarnation, in *out, LIVE, and frees heaps that others have swept.
 * With `bumps`, for an object of a region, a domain's phase without a heap gets a waiting one, if there is one, with a
 * region of the size that the phase's label needed last. Returns TSI_BIRTH_OK, or like tsi_heap_make, with *out NULL.
 * [own thread, no lock held, no bracket open] */
TsiBirth tsi_ready_heap(TsiBinding* b, TsiRef ref, bool bumps, TsiHeap** out);
/* Allocates the first object of a phase, the first `bytes` of a waiting heap's region, by the shortest way. bytes: of
 * tsi_bump_bytes, for a size up to TSI_LUT_MAX. Returns the object; the heap is LIVE in the phase then. Returns NULL if
 * no heap waits, the phase has had one, or anything else must be done first: the slow path does all of it then; a heap
 * that has just entered the phase stays there. [own thread, no lock held, no bracket open] */
void* tsi_ready_first(TsiBinding* b, TsiRef ref, uint32_t bytes);
/* Ends a phase straight, if its one heap is the caller's and nobody else has touched it: ends all objects, posts the
 * account, fills *out, unless NULL, frees the record, and keeps the heap waiting, if one region is all that it has and
 * there is room; otherwise its slabs go as from a sweep. Returns true if the phase has ended. Returns false, with *out
 * as it was, if it is not so: nothing was done, or the objects have ended and are counted, and in both cases the common
 * way must follow. [own thread, no lock held, no bracket open] */
bool tsi_ready_end(TsiBinding* b, TsiRef ref, EpochReceipt* out);
/* Takes the region from a waiting heap, since regions are found by their tags: STANDBY_EMPTY if `own`, the heap's
 * thread has forked; otherwise its record stays unused. [fork child] */
void tsi_ready_child(TsiArena* a, TsiHeap* h, bool own);

#endif
