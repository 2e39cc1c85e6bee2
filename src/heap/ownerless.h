/*
 * ownerless.h - heaps that nobody owns in a phase that goes on: what is emptied there goes back, and room is found.
 *
 * A thread that exits gives back its empty slabs. What still holds objects stays in a heap without an owner (DETACHED),
 * which the next thread that needs a heap, or free slots of a class that the heap has, takes over. Until then other
 * threads free there. Nobody allocates, so a slab that one of them empties would wait for a trim: instead the freers
 * add up what they have emptied, and the one that makes it an eighth of the heap takes all empty slabs out. A heap
 * that has none left is freed.
 *
 *   freer                                       whoever walks the heap, under the stripe
 *   bit, or mark and count       (seq_cst)      emptied = roomy = 0            (seq_cst)
 *   slab is empty? emptied += n  (seq_cst)      take the empty slabs, note the room of the others
 *   word is DETACHED? walk       (seq_cst)      word = DETACHED                (seq_cst)
 *                                               emptied is enough? walk again  (seq_cst)
 *
 * Invariants
 *   O1  While a heap is DETACHED in an ACTIVE incarnation, its empty slabs are fewer than an eighth of its bytes, but
 *       for frees that are under way: the freer sees DETACHED, or who has stored that sees `emptied`. A freer that sees
 *       LIVE is done: whoever changes the word looks at the slabs afterwards.
 *   O2  A class for which a DETACHED heap has a line to allocate from is in `roomy` of the heap, and then in that of
 *       its incarnation, but for frees that are under way. Both may have more. A search takes the class out of the
 *       incarnation's before it looks at the heaps, so each vain search was asked for by a free or a heap.
 */
#ifndef TSI_HEAP_OWNERLESS_H
#define TSI_HEAP_OWNERLESS_H

#include "state/arena.h"

/* After a free in a slab of a heap that was not LIVE, in incarnation i, which `ref` names and which is ACTIVE. Notes
 * that the slab's class has room, and takes the heap's empty slabs if enough of it is empty. b may be NULL. No lock
 * held, no bracket open. */
void tsi_ownerless_freed(TsiArena* a, TsiBinding* b, const TsiPlace* at, TsiHeap* h, TsiRef ref);
/* After each free in such a heap. A thread whose heap a look or a trim has taken frees there as in another thread's
 * until it allocates. One that goes on freeing in the ring without a heap takes one that is nobody's, where looks give
 * back what it empties (decay_ms); elsewhere O1 has to. [own thread, no lock held, no bracket open] */
void tsi_ownerless_again(TsiBinding* b, TsiRef ref);

#endif
