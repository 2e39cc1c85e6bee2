/*
 * large.h - large objects, which lie in units of their own (units.h), and pairs of chunks that are a huge page.
 */
#ifndef TSI_MEM_LARGE_H
#define TSI_MEM_LARGE_H

#include "mem/pool.h"
#include "mem/units.h"

/* Takes units for a large object of `bytes` (not 0) at `align` (a power of two), committed up to the next page, with
 * the tag POOL, and sets *slab_id to the first. grows: takes free units behind it too, for growth, if there are some;
 * they are no failure. column: as in tsi_space_take. Returns false, with *slab_id unchanged if the system or the
 * reservation allows no more, or TSI_SPACE_OVER if max_bytes does not. O(chunks / 64), and O(units) of the open chunks.
 * [any thread, no pool lock held] */
bool tsi_space_take_large(TsiSpace* s, size_t bytes, size_t align, bool grows, unsigned column, uint32_t* slab_id);
/* Grows a large object where it is, to `bytes`, more than it has, rounded up to pages: into the room that it was given,
 * and into free units behind that, of which it takes some more for later growth. Sets its size and span and raises
 * committed_bytes by what was not in the stock. Returns false, and changes nothing, if other objects or pages that are
 * being given back lie behind it, or max_bytes, the reservation or the system allows no more.
 * [slab claimed, no pool lock held] */
bool tsi_space_grow_large(TsiSpace* s, uint32_t slab_id, size_t bytes);
/* Gives a large object's units and the room behind it back to the pool, and its pages to the system; with `keep`, as
 * many of the first as the budget allows go to the stock, and the others count as gone for want of budget. No page is
 * kept if the space's fill is on or the pages have moved away. At each LARGE_LEFT-th call, chunks that nobody uses lose
 * their bookkeeping. Returns the bytes that went to the system. [slab claimed, no pool lock held] */
uint64_t tsi_space_give_large(TsiSpace* s, uint32_t slab_id, bool keep);

/* Takes two slabs of TSI_CLASS_HUGE that are the halves of a huge page, committed, with the tag POOL, in ascending
 * order: slab_ids. column: as in tsi_space_take. Returns false, with slab_ids unchanged if the system or the
 * reservation allows no more, or with slab_ids[0] TSI_SPACE_OVER if max_bytes does not.
 * [any thread, no pool lock held] */
bool tsi_space_take_huge(TsiSpace* s, unsigned column, uint32_t slab_ids[2]);

#endif
