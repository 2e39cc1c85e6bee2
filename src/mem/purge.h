/*
 * purge.h - memory that goes back to the system, and what is known of memory that did.
 */
#ifndef TSI_MEM_PURGE_H
#define TSI_MEM_PURGE_H

#include "mem/space.h"

/* Sorts ids in ascending order. */
void tsi_sort_ids(uint32_t* ids, unsigned n);
/* Gives back [p, p + bytes) of slabs that stay in use. [no other user] */
void tsi_space_purge_pages(TsiSpace* s, void* p, size_t bytes);
/* Gives back a range that begins in slabs of class cls, whose counters record it. With whole_slabs, which will be
 * committed anew, gives back their commitment too. [no other user] */
void tsi_space_purge_range(TsiSpace* s, unsigned cls, void* p, size_t bytes, bool whole_slabs);
/* Record that a chunk has pages in the stock, which are not zero, and that it has neither those nor slabs any more.
 * [pool lock] */
void tsi_space_mark_kept(TsiChunk* chunk);
void tsi_space_mark_gone(TsiChunk* chunk);
/* Zeroes a large object that was just taken; leaves pages alone that are zero already, because they are fresh or
 * purged. */
void tsi_space_zero_large(TsiSpace* s, void* p, size_t bytes);
/* Stops the system from making the chunk of huge pages. [pool lock, or holder of its only slab] */
void tsi_space_avoid_huge(TsiSpace* s, uint32_t chunk);

#endif
