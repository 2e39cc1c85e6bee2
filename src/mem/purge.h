/*
 * purge.h - memory that goes back to the system, and what is known of memory that did.
 */
#ifndef TSI_MEM_PURGE_H
#define TSI_MEM_PURGE_H

#include "mem/space.h"

/* Ascending. */
void tsi_sort_ids(uint32_t* ids, unsigned n);
/* Gives back [p, p + bytes) of slabs that stay in use. */
void tsi_space_purge_pages(TsiSpace* s, void* p, size_t bytes);
/* Gives back a range that begins in slabs of the class, for its counters. Of whole slabs, which will be committed
 * anew, also what the system has committed for them. No lock needed; nobody else uses the range. */
void tsi_space_purge_range(TsiSpace* s, unsigned cls, void* p, size_t bytes, bool whole_slabs);
/* A chunk has pages in the stock, which are not zero; it has none any more, and no slab. Lock held. */
void tsi_space_mark_kept(TsiChunk* k);
void tsi_space_mark_gone(TsiChunk* k);
/* Zeroes a large object that was just taken. Pages that are zero already, fresh ones or purged ones, are not
 * touched. */
void tsi_space_zero_large(TsiSpace* s, void* p, size_t bytes);
/* The chunk is not to be made of huge pages any more. No lock needed by who has its only slab. */
void tsi_space_avoid_huge(TsiSpace* s, uint32_t chunk);

#endif
