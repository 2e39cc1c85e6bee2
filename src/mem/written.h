/*
 * written.h - which pages of a chunk's bookkeeping the system has had to fill.
 *
 * Bookkeeping is reserved for the worst case and written as slabs are handed out, so its cost is the pages that were
 * written. A bit for each is set where slabs leave the pool for the first time in their class, and where a slab issues
 * its first handle; the bits go when the pages go back. Nothing is noted where objects are allocated or freed.
 *
 * Counts of handles are written by the first free of a slot; their pages are counted from the slab's first handle on.
 */
#ifndef TSI_MEM_WRITTEN_H
#define TSI_MEM_WRITTEN_H

#include "mem/space.h"

/* The words of a slab and its lines are about to be written. Pool lock held. */
void tsi_written_slab(TsiSpace* s, unsigned cls, uint32_t slab_id);
/* The slab issues handles. Any thread. */
void tsi_written_counts(TsiSpace* s, uint32_t slab_id);
/* The pages of the lines, the maps of regions, or the counts, were given back. Pool lock held. */
void tsi_written_forget_lines(TsiChunk* k);
void tsi_written_forget_maps(TsiChunk* k);
void tsi_written_forget_counts(TsiChunk* k);
/* Those of slabs and lines; all of regions. */
void tsi_written_forget_meta(TsiChunk* k);
void tsi_written_forget_regions(TsiChunk* k);
/* Bytes of the pages. */
size_t tsi_written_bytes(const TsiSpace* s, uint32_t chunk);

#endif
