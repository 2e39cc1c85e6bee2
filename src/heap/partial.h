/*
 * partial.h - orphans that still hold objects: pages in which nothing lives any more go back before the slab does.
 */
#ifndef TSI_HEAP_PARTIAL_H
#define TSI_HEAP_PARTIAL_H

#include "heap/sweep_totals.h"

/* Claims an ORPHAN for the sweep, if it has pages without an object that have not gone back: its tag says PARTIAL, and
 * it is at the head of sweep->partial, for tsi_sweep_finish to give these pages back. Otherwise, or if another thread
 * is first, does nothing. [stripe held] */
void tsi_partial_claim(TsiSweep* sweep, unsigned cls, uint32_t slab_id);
/* Returns the bytes of the slab's pages without an object that have not gone back, whether it is claimed or not.
 * [stripe held] */
size_t tsi_partial_dead_bytes(const TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Gives back to the system the pages without an object of the n claimed slabs, whose ids ascend, pages that adjoin
 * together; notes them as gone and counts their bytes in sweep->purged. [slabs claimed, no lock held] */
void tsi_partial_give(TsiSweep* sweep, uint32_t* ids, unsigned n);
/* Gives back to the system the pages without an object of a region in which its owner allocates nothing any more, and
 * notes them as gone. Does nothing for a region of one page, or where pages stay by policy. [owner, in bracket] */
void tsi_partial_thin(TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Makes a claimed (PARTIAL) slab an ORPHAN again. Returns its tag after that. While it was PARTIAL nobody else could
 * return it: the caller must look whether it was completed or released, and then call tsi_slab_complete.
 * [slab claimed] */
uint64_t tsi_partial_let_go(TsiSpace* s, uint32_t slab_id);
/* bytes of pages that late frees have left without a live object, until the phase's next orphans are looked at, eight
 * times as many bytes: an eighth of them at most has such pages, and no free looks at more */
enum { TSI_LATE_PAGES_BYTES = 64 << 10, TSI_LATE_LOOK_BYTES = 8 * TSI_LATE_PAGES_BYTES };
/* Adds the pages that a free in an orphan with `tag`, read after it, has left without a live slot to the phase's
 * late_bytes. Returns true, with *inc and *era naming the phase, once these are TSI_LATE_PAGES_BYTES, and begins again
 * at 0: tsi_inc_thin is due. Returns false otherwise; *inc and *era mean nothing then. [any thread, needs no lock] */
bool tsi_partial_page_freed(TsiArena* a, const TsiPlace* at, uint64_t tag, TsiInc** inc, uint64_t* era);

/* Returns the slots of a line that begin in the same page as `slot`: all of them where a page has several lines; 0
 * where objects lie in two pages. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_partial_slots(const TsiClass* shape, unsigned slot) {
    return shape->in_page << (slot & shape->page_first);
}

#endif
