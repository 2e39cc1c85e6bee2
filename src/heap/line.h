/*
 * line.h - lines of a heap: refill, park, inbox.
 */
#ifndef TSI_HEAP_LINE_H
#define TSI_HEAP_LINE_H

#include "heap/token.h"

/* ---- lines; all inside the owner's bracket unless stated ---- */

/* Hands out n free slots of a used-up line; rest: what is free from then on. All refills end here. */
TSI_INLINE void tsi_line_hand_out(TsiLine* l, uint64_t out, uint64_t rest, unsigned n) {
    tsi_store_release(&l->avail, out);  /* invariant F: before the bits leave freed */
    tsi_store_release(&l->freed, rest); /* pairs with the acquire of whoever asks "is it free?" */
    tsi_store_release(&l->issued, tsi_load_relaxed(&l->issued) + n); /* last: pairs with tsi_line_handed_out */
}
/* Moves remote and freed slots to avail if there are at least `least`; returns how many avail has. */
unsigned tsi_line_refill(TsiBinding* b, TsiLine* l, const TsiClass* c, unsigned least);
/* Puts a used-up line where its free slots will be found: at the back of the room's queue when it has some free
 * slots, otherwise it is parked. False when it has enough for a refill. */
bool tsi_line_leave(TsiBinding* b, unsigned cls, TsiLine* l);
/* Where slots of a line are handed out in whose slab a handle may have been issued: their counts become even again. */
void tsi_line_counts_even(TsiSpace* s, TsiLine* l, const TsiClass* c, uint64_t slots);
/* The owner's free of a slot: its bit, and a parked line goes into its room. */
void tsi_line_freed(TsiBinding* b, TsiLine* l, unsigned slot);
/* A thread that freed slots of a parked line tells its owner; any thread. `seq` is the slab's when freed. */
void tsi_line_notify(TsiArena* a, uint32_t line_id, uint32_t slab_id, uint32_t seq);
/* The token of a line of the owner's heap may have come home: looks whether the line has room. `seq` is the slab's. */
void tsi_line_take_in(TsiBinding* b, const TsiHeap* h, unsigned cls, uint32_t line_id, uint32_t seq);
/* The owner takes in slabs others have told it of. */
void tsi_inbox_drain(TsiBinding* b);
void tsi_inbox_close(TsiBinding* b);

#endif
