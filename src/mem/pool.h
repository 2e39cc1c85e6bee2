/*
 * pool.h - slabs of no epoch: taking them, giving them back, and their pages with them.
 */
#ifndef TSI_MEM_POOL_H
#define TSI_MEM_POOL_H

#include "mem/space.h"

/* No slab's id: that max_bytes allows no more. */
#define TSI_SPACE_OVER UINT32_MAX
/* What a slab that was taken is made of. */
/* KEPT: half of it at least comes from the stock. */
typedef enum TsiTaken { TSI_TAKEN_NOT, TSI_TAKEN_FRESH, TSI_TAKEN_KEPT } TsiTaken;
/* Takes a slab of a class out of the pool, committed, tag POOL. TSI_TAKEN_NOT when the system or the reservation
 * allows no more, which leaves *slab_id as it is, or when max_bytes does not, which makes it TSI_SPACE_OVER. `column`:
 * which lock counters the call goes to. */
TsiTaken tsi_space_take(TsiSpace* s, unsigned cls, unsigned column, uint32_t* slab_id);
/* Puts slabs back; their pages are with the system already. Tags become POOL. */
void tsi_space_give(TsiSpace* s, const uint32_t* slab_ids, unsigned n);
/* The same of slabs that tsi_stock_choose has let stay: their pages go to the stock. */
void tsi_space_keep(TsiSpace* s, const uint32_t* slab_ids, unsigned n);
/* Gives the pages of slabs back, adjoining ones in one call and without the lock, and puts the slabs
 * into the pool. Sorts ids. How many bytes of pages went that slabs had shared. */
size_t tsi_space_purge(TsiSpace* s, uint32_t* slab_ids, unsigned n);
/* The same of those that tsi_stock_choose has not let stay: pages that slabs share may be kept yet. */
size_t tsi_space_leave(TsiSpace* s, uint32_t* slab_ids, unsigned n, bool learn);
/* In a fork child: makes sums anew from the tags, and lists where a vanished thread had slabs that are tagged POOL in
 * its hands, or pages of a chunk: these come back. Otherwise the lists are whole, and their pages the parent's. */
void tsi_space_rebuild(TsiSpace* s);

#endif
