/*
 * large.h - large objects, which lie in units of their own (units.h), and pairs of chunks that are a huge page.
 */
#ifndef TSI_MEM_LARGE_H
#define TSI_MEM_LARGE_H

#include "mem/pool.h"
#include "mem/units.h"

/* Takes units for a large object of `bytes` at `align` (a power of two), committed, with the tag POOL: *slab_id. grows:
 * adds room behind it. Returns false if the system or the reservation allows no more, or if max_bytes does not, which
 * makes *slab_id TSI_SPACE_OVER. O(chunks / 64), and O(units) of the open chunks. [any thread, no pool lock held] */
bool tsi_space_take_large(TsiSpace* s, size_t bytes, size_t align, bool grows, unsigned column, uint32_t* slab_id);
/* Grows a large object where it is, to `bytes`. Returns false, and changes nothing, if other objects lie behind it, or
 * max_bytes or the system allows no more. [slab claimed, no pool lock held] */
bool tsi_space_grow_large(TsiSpace* s, uint32_t slab_id, size_t bytes);
/* Gives a large object's units and pages back. With `keep`, as many pages as the budget allows go to the stock. Returns
 * how many bytes went to the system. [slab claimed, no pool lock held] */
uint64_t tsi_space_give_large(TsiSpace* s, uint32_t slab_id, bool keep);

/* Takes two slabs of TSI_CLASS_HUGE that are the halves of a huge page, committed, tags POOL: slab_ids. Returns false
 * if the system or the reservation allows no more, or if max_bytes does not, which makes slab_ids[0] TSI_SPACE_OVER.
 * [any thread, no pool lock held] */
bool tsi_space_take_huge(TsiSpace* s, unsigned column, uint32_t slab_ids[2]);

#endif
