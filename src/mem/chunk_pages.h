/*
 * chunk_pages.h - which pages of a chunk's bookkeeping the system has had to fill, and giving them back where the chunk
 * has no slab in use.
 *
 * Bookkeeping is reserved for the worst case and written as slabs are handed out, so its cost is the pages that were
 * written. A bit for each is set where slabs leave the pool for the first time in their class, and where a slab issues
 * its first handle; the bits go when the pages go back. Nothing is noted where objects are allocated or freed.
 *
 * Counts of handles are written by the first free of a slot; their pages are counted from the slab's first handle on.
 */
#ifndef TSI_MEM_CHUNK_PAGES_H
#define TSI_MEM_CHUNK_PAGES_H

#include "mem/space.h"

/* The words of a slab and its lines are about to be written. Pool lock held. */
void tsi_written_slab(TsiSpace* s, unsigned cls, uint32_t slab_id);
/* The slab issues handles. Any thread. */
void tsi_written_counts(TsiSpace* s, uint32_t slab_id);
/* Bytes of the pages. */
size_t tsi_written_bytes(const TsiSpace* s, uint32_t chunk);
/* The chunk serves no class, and all of its slabs are in the pool. What cannot go now goes when the chunk is left
 * again, or at a trim. Pool lock held. */
void tsi_chunk_leave(TsiSpace* s, uint32_t chunk);

#endif
