/*
 * pool.h - slabs of no epoch: taking them, and giving them back with their pages.
 */
#ifndef TSI_MEM_POOL_H
#define TSI_MEM_POOL_H

#include "mem/space.h"

/* Instead of a slab's id: max_bytes allows no more. */
#define TSI_SPACE_OVER UINT32_MAX
/* Pages of a slab that was taken. */
/* KEPT: at least half of them come from the stock. */
typedef enum TsiTaken { TSI_TAKEN_NOT, TSI_TAKEN_FRESH, TSI_TAKEN_KEPT } TsiTaken;
/* Takes a slab of a class out of the pool, committed, with the tag POOL, and sets *slab_id to it; opens a chunk if none
 * of the class has one. Returns TSI_TAKEN_KEPT if at least half of its bytes were in the stock, otherwise
 * TSI_TAKEN_FRESH; or TSI_TAKEN_NOT if the system or the reservation allows no more, which leaves *slab_id unchanged,
 * or if max_bytes does not, which makes it TSI_SPACE_OVER. Adds the bytes that were not in the stock to
 * committed_bytes. column: lock counters that the call goes to. [any thread, no pool lock held] */
TsiTaken tsi_space_take(TsiSpace* s, unsigned cls, unsigned column, uint32_t* slab_id);
/* Puts n slabs, whose pages are with the system already, into the pool: their tags become POOL, and their bytes leave
 * committed_bytes. Chunks all of whose slabs are there lose their class. [holder of the slabs, no pool lock held] */
void tsi_space_give(TsiSpace* s, const uint32_t* slab_ids, unsigned n);
/* Puts n slabs that tsi_stock_choose has let stay into the pool, with the tag POOL, and their pages into the stock; the
 * first is taken first. committed_bytes stays. [holder of the slabs, no pool lock held] */
void tsi_space_keep(TsiSpace* s, const uint32_t* slab_ids, unsigned n);
/* Gives the pages of n slabs back to the system, adjoining ones in one call, and puts the slabs into the pool. Sorts
 * the ids. Returns the bytes that went of pages that slabs shared, which can be less or more than those slabs have;
 * those of other slabs go whole, and are not in it. [holder of the slabs, no pool lock held] */
size_t tsi_space_purge(TsiSpace* s, uint32_t* slab_ids, unsigned n);
/* Gives slabs that tsi_stock_choose has not let stay back as tsi_space_purge does, but keeps pages that they share as
 * far as the budget has room; `learn` as there. Sorts the ids. Returns the bytes that went to the system of pages that
 * slabs shared. [holder of the slabs, no pool lock held] */
size_t tsi_space_release(TsiSpace* s, uint32_t* slab_ids, unsigned n, bool learn);
/* Sets committed_bytes and the stock's room anew from tags and stock; empties quarantine and list of resting regions,
 * and clears `giving`, as all of these hold nothing of the child's. Makes the pool's lists anew if a vanished thread
 * held slabs tagged POOL, or pages of a chunk, which come back; otherwise they are whole, and their pages the parent's.
 * [fork child] */
void tsi_space_rebuild(TsiSpace* s);

#endif
