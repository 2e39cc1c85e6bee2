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

/* Slots of a line in the page that a slot lies in: all of them where a page has several lines; 0 where objects lie in
 * two pages. */
TSI_INLINE uint64_t tsi_partial_slots(const TsiClass* c, unsigned slot) {
    uint32_t page = (uint32_t)tsi_os.page_bytes, units = page >> c->unit_shift;
    if (TSI_UNLIKELY(c->size > TSI_KIB(1) || page > TSI_KIB(4))) return 0;
    if (units >= TSI_LINE_SLOTS) return ~0ull;
    return ((1ull << units) - 1) << (slot & ~(units - 1));
}

#endif
