/*
 * ownerless.h - heaps that no thread owns, in a phase that goes on: gives back what is emptied there, and finds room.
 *
 * A thread that exits gives back its empty slabs. The others stay in a heap without an owner (DETACHED), until a thread
 * that needs a heap, or free slots of a class that the heap has, adopts it. Until then other threads free there, and
 * nobody allocates, so a slab that one of them empties would wait for a trim. Instead the freers add up what they have
 * emptied, and the one that makes it an eighth of the heap takes all empty slabs out. A heap that has none left is
 * freed.
 *
 *   freer                                       whoever walks the heap, under the stripe
 *   bit, or mark and count       (seq_cst)      emptied = roomy = 0            (seq_cst)
 *   slab is empty? emptied += n  (seq_cst)      take the empty slabs, note the room of the others
 *   word is DETACHED? walk       (seq_cst)      word = DETACHED                (seq_cst)
 *                                               emptied is enough? walk again  (seq_cst)
 *
 * Invariants
 *   O1  While a heap is DETACHED in an ACTIVE incarnation, its empty slabs are fewer than an eighth of its bytes, but
 *       for frees that are under way: either the freer sees DETACHED, or the thread that stored it sees `emptied`. A
 *       freer that sees LIVE is done: each thread that changes the word looks at the slabs afterwards.
 *   O2  A class for which a DETACHED heap has a line to allocate from is in `roomy` of the heap, and then in that of
 *       its incarnation, but for frees that are under way. Both may have more. A search takes the class out of the
 *       incarnation's before it looks at the heaps, so each search that finds nothing was asked for by a free or a
 *       heap.
 */
#ifndef TSI_HEAP_OWNERLESS_H
#define TSI_HEAP_OWNERLESS_H

#include "state/arena.h"

/* Completes a free in a slab of heap h, which was not LIVE, in an ACTIVE incarnation that `ref` names: notes in h and
 * the incarnation (`roomy`) that the slab's class has room, adds an empty slab to h->emptied, and, where nobody owns h
 * and these are an eighth of its bytes, takes its empty slabs out, after which h may be gone. b: the calling thread's
 * binding, or NULL. [any thread, no lock held, no bracket open] */
void tsi_ownerless_freed(TsiArena* a, TsiBinding* b, const TsiPlace* at, TsiHeap* h, TsiRef ref);
/* Counts a free in a heap that nobody owns, in the phase `ref`, and at each 64th adopts or makes a heap there, if the
 * phase is of the ring and the thread has none: a look or a trim has taken it. Does no more than count in shared mode,
 * without looks (decay_ms), or as the thread exits. [own thread, no lock held, no bracket open] */
void tsi_ownerless_again(TsiBinding* b, TsiRef ref);

#endif
