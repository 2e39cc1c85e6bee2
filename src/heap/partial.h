/*
 * partial.h - orphans that still hold objects: pages in which nothing lives any more go back before the slab does.
 */
#ifndef TSI_HEAP_PARTIAL_H
#define TSI_HEAP_PARTIAL_H

#include "heap/settle.h"

/* Claims an orphan for the sweep if it has such pages; else does nothing. Stripe held. */
void tsi_partial_claim(TsiSweep* w, unsigned cls, uint32_t slab_id);
/* Gives back pages of claimed slabs, whose ids ascend, and lets go of the slabs. No lock held. */
void tsi_partial_give(TsiSweep* w, uint32_t* ids, unsigned n);
/* A free has left a page of an orphan without a live slot, perhaps: enough of them start a sweep. */
void tsi_partial_page_freed(TsiArena* a, TsiBinding* b, const TsiPlace* at, uint64_t tag);

#endif
