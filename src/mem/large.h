/*
 * large.h - large objects, which have chunks of their own, and pairs of chunks that are a huge page.
 */
#ifndef TSI_MEM_LARGE_H
#define TSI_MEM_LARGE_H

#include "mem/pool.h"

/* Takes chunks for one large object of `bytes` at `align` (a power of two); tag POOL. Fails as tsi_space_take. */
bool tsi_space_take_large(TsiSpace* s, size_t bytes, size_t align, unsigned lane, uint32_t* slab_id);
/* Gives a large object's chunks back, and its pages. With `keep`, as many pages as the budget allows go to the stock.
 * Returns how many bytes went to the system. */
uint64_t tsi_space_give_large(TsiSpace* s, uint32_t slab_id, bool keep);
/* Takes two slabs of TSI_CLASS_HUGE that are the halves of a huge page. As tsi_space_take. */
bool tsi_space_take_huge(TsiSpace* s, unsigned lane, uint32_t slab_ids[2]);

#endif
