/*
 * chunk_pages.h - which pages of a chunk's bookkeeping the system has had to fill, and giving them back where the chunk
 * has no slab in use.
 *
 * Bookkeeping is reserved for the worst case and written as slabs are handed out, so its cost is the pages that were
 * written. A page's bit is set where slabs leave the pool for the first time in their class, and where a slab issues
 * its first handle; it is cleared when the page goes back. Allocating and freeing objects records nothing.
 *
 * Counts of handles are written by the first free of a slot; their pages are counted from the slab's first handle on.
 */
#ifndef TSI_MEM_CHUNK_PAGES_H
#define TSI_MEM_CHUNK_PAGES_H

#include "mem/space.h"

/* Marks the pages of the bookkeeping of a slab of class cls, and of its lines or its region, in the chunk's meta_pages
 * and region_pages as written, before they are. Clears no mark. [pool lock held] */
void tsi_written_slab(TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Marks the pages of the counts of the slab's lines in the chunk's counts_pages as written, before handles of it are
 * issued. Clears no mark. The slab's chunk has its class. [any thread, needs no lock] */
void tsi_written_counts(TsiSpace* s, uint32_t slab_id);
/* Returns the bytes of the filled pages of the chunk's bookkeeping, of words, regions and counts, by their marks,
 * without those of its entries. A moment old without the pool's lock. [any thread, needs no lock] */
size_t tsi_written_bytes(const TsiSpace* s, uint32_t chunk);
/* Returns the bytes of the filled pages of the first `chunks` chunks' entries; a page above 4 KiB has those of several
 * chunks. [any thread, needs no lock] */
uint64_t tsi_written_entries(const TsiSpace* s, uint32_t chunks);
/* Gives back the pages of the bookkeeping (words, regions, entries, counts) of a chunk without a class, all of whose
 * slabs are in the pool. Pages that cannot go now, as a slab is in an inbox or a freer in a region, stay marked and go
 * at the next call. Does nothing if the allocator gives no memory back. [pool lock held] */
void tsi_chunk_release_metadata(TsiSpace* s, uint32_t chunk);

#endif
