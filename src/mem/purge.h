/*
 * purge.h - memory that goes back to the system, and what is known of memory that did.
 */
#ifndef TSI_MEM_PURGE_H
#define TSI_MEM_PURGE_H

#include "mem/space.h"

/* Sorts n ids in ascending order, in place. [any thread, needs no lock] */
void tsi_sort_ids(uint32_t* ids, unsigned n);
/* Gives [p, p + bytes), whole pages of slabs that stay in use and of one chunk's class, back to the system, under the
 * purge policy; their commitment stays (tsi_space_purge_range). [no other user of the bytes] */
void tsi_space_purge_pages(TsiSpace* s, void* p, size_t bytes);
/* Gives a range of whole pages, which begins in slabs of class cls, back to the system under the purge policy, with its
 * commitment too if whole_slabs, which will be committed anew, and the system charges that. Marks wholly purged chunks
 * as zero, the others as dirty; all as dirty if the allocator gives nothing back or the system refuses. Returns true if
 * the content is gone: the pages read as zero, and may be read-only; false if the pages stay, or may stay for a while.
 * [no other user of the bytes] */
bool tsi_space_purge_range(TsiSpace* s, unsigned cls, void* p, size_t bytes, bool whole_slabs);
/* Records that a chunk has pages in the stock, which are not zero. [pool lock held] */
void tsi_space_mark_kept(TsiChunk* chunk);
/* Records that a chunk has neither slabs nor pages in the stock any more, so that all of it is zero, unless memory of
 * it went back dirty. [pool lock held, or fork child] */
void tsi_space_mark_gone(TsiChunk* chunk);
/* Zeroes `bytes` at p, rounded up to pages, of a large object that was just taken. Leaves chunks alone that are not
 * dirty, whose pages are zero; gives dirty pages back to the system where it may, which counts as a purge, and
 * otherwise writes them. [its only holder, no pool lock held] */
void tsi_space_zero_large(TsiSpace* s, void* p, size_t bytes);
/* Makes the chunk one of small pages: clears its `huge` and withdraws the request for huge pages from the system,
 * unless the allocator wants them everywhere. Its content stays. [pool lock held, or holder of its only slab] */
void tsi_space_avoid_huge(TsiSpace* s, uint32_t chunk);

#endif
