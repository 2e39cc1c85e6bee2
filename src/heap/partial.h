/*
 * partial.h - orphans that still hold objects: pages in which nothing lives any more go back before the slab does.
 */
#ifndef TSI_HEAP_PARTIAL_H
#define TSI_HEAP_PARTIAL_H

#include "heap/taken.h"

/* Claims an orphan for the sweep if it has such pages; else does nothing. Stripe held. */
void tsi_partial_claim(TsiSweep* w, unsigned cls, uint32_t slab_id);
/* Gives back pages of claimed slabs, whose ids ascend. No lock held. */
void tsi_partial_give(TsiSweep* w, uint32_t* ids, unsigned n);
/* Gives back such pages of a region that its owner allocates nothing in any more. Owner, in the heap's bracket. */
void tsi_partial_thin(TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Lets go of one of them; its tag. While it was PARTIAL nobody else could return it: was it completed, or released? */
uint64_t tsi_partial_let_go(TsiSpace* s, uint32_t slab_id);
/* A free has left a page of an orphan without a live slot, perhaps. True when that were enough for a sweep of its
 * incarnation, *inc in *era. */
bool tsi_partial_page_freed(TsiArena* a, const TsiPlace* at, uint64_t tag, TsiInc** inc, uint64_t* era);

/* Slots of a line in the page that a slot lies in: all of them where a page has several lines; 0 where objects lie in
 * two pages. */
TSI_INLINE uint64_t tsi_partial_slots(const TsiClass* c, unsigned slot) { return c->in_page << (slot & c->page_first); }

#endif
