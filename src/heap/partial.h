/*
 * partial.h - orphans that still hold objects: pages in which nothing lives any more go back before the slab does.
 */
#ifndef TSI_HEAP_PARTIAL_H
#define TSI_HEAP_PARTIAL_H

#include "heap/taken.h"

/* Claims an orphan for the sweep if it has such pages; else does nothing. Stripe held. */
void tsi_partial_claim(TsiSweep* w, unsigned cls, uint32_t slab_id);
/* Bytes of such pages, whoever has the orphan. Stripe held. */
size_t tsi_partial_dead_bytes(const TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Gives back pages of claimed slabs, whose ids ascend. No lock held. */
void tsi_partial_give(TsiSweep* w, uint32_t* ids, unsigned n);
/* Gives back such pages of a region that its owner allocates nothing in any more. Owner, in the heap's bracket. */
void tsi_partial_thin(TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Lets go of one of them; its tag. While it was PARTIAL nobody else could return it: was it completed, or released? */
uint64_t tsi_partial_let_go(TsiSpace* s, uint32_t slab_id);
/* So much without a live object, by late frees, for a look at eight times as much of the phase's orphans, one after the
 * other: an eighth of them at most has such pages, and no free looks at more. */
enum { TSI_LATE_PAGES_BYTES = 64 << 10, TSI_LATE_LOOK_BYTES = 8 * TSI_LATE_PAGES_BYTES };
/* Counts a page of an orphan that a free has left without a live slot, perhaps. Returns true if there were enough of
 * them for tsi_inc_thin of *inc in *era. */
bool tsi_partial_page_freed(TsiArena* a, const TsiPlace* at, uint64_t tag, TsiInc** inc, uint64_t* era);

/* Slots of a line in the page that a slot lies in: all of them where a page has several lines; 0 where objects lie in
 * two pages. */
TSI_INLINE uint64_t tsi_partial_slots(const TsiClass* c, unsigned slot) { return c->in_page << (slot & c->page_first); }

#endif
