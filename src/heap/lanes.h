/*
 * lanes.h - the lines of a shared heap (shared.h): which have room, and who waits for whom.
 */
#ifndef TSI_HEAP_LANES_H
#define TSI_HEAP_LANES_H

#include "heap/arena.h"

/* Waits until no thread is inside a claim on the heap, which is HELD. proven: a membarrier has passed; else false when
 * some thread but b's may be inside unseen. No lock held. */
bool tsi_shared_wait(TsiArena* a, const TsiHeap* h, const TsiBinding* b, bool proven);
/* Makes the lists of a heap anew that nobody claims in: after a trim, in a fork child. Stripe held. */
void tsi_shared_rebuild(TsiArena* a, TsiHeap* h);
/* A freer that has a line's token: the line has room again. Any thread. */
void tsi_shared_unpark(TsiArena* a, uint32_t line_id, uint32_t slab_id, uint32_t seq);
/* The heap's lanes go back, if it has some. */
void tsi_lanes_give(TsiArena* a, TsiHeap* h);
/* Is the slab in a shared heap, in this incarnation of it? Then that is *h. */
bool tsi_lanes_heap_of(TsiArena* a, uint32_t slab_id, uint32_t seq, TsiHeap** h);
/* ---- the stripe is held, and the word SHARED ---- */
/* False when it is listed already, or retired. */
bool tsi_lanes_list(TsiArena* a, TsiLanes* lanes, unsigned cls, TsiLine* l);
/* Leaves a used-up line to whoever frees there; false when enough has been freed there meanwhile. */
bool tsi_lanes_put_aside(TsiArena* a, TsiLanes* lanes, unsigned cls, uint32_t line_id);

#endif
