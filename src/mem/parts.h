/*
 * parts.h - small regions that share a page of the system, two to a page.
 *
 * A phase of a few objects needs less than a page. Its region is a slab of TSI_PART_BYTES, half of a page; the other
 * half is a region of any other thread and phase. Parts are slabs like others in tags, lives, orphans, charges and the
 * store of a thread. Only the handling of pages differs: a page goes back as a whole, when neither half is used.
 *
 *   parts of a chunk   a bit for each slab: it is in the pool, and free to be taken. 256 slabs of 2 KiB use half of the
 *                      chunk's addresses; there is nothing in the other half, and entries there are nobody's.
 *   a page             is with the system, or about to be, while both its bits are set; or in the stock.
 *
 * Invariants
 *   Q1  A half is used from when it is taken out of the pool until it is given. The thread that gives the second half
 *       purges the page, with neither bit set meanwhile, so nobody takes a half of it: a claim. All of that is decided
 *       under the pool's lock.
 *   Q2  The tag of a half that completes its page stays PURGING until the page has gone. So a fork child, where the
 *       thread that claimed the page has vanished, finds one of the halves to give again, and takes the other for one
 *       in the pool.
 *   Q3  A chunk leaves its class only with all bits set, so all of its pages have gone, or are in the stock.
 *   Q4  A retired half counts as unused, and is never in the pool.
 *
 * A half is charged to its phase, and counted as committed, by its own bytes. If the other half is in the pool, the
 * page is resident for half of that. To keep this rare, halves of pages in use are taken first.
 */
#ifndef TSI_MEM_PARTS_H
#define TSI_MEM_PARTS_H

#include "mem/space.h"

/* Returns true if phases may begin with a part: two regions share a page, and pages need not be committed one by one.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_parts_allowed(const TsiSpace* s) {
    return tsi_parts_share(s, TSI_CLASS_PART) && !tsi_os.strict_commit;
}

/* ---- taking ---- */
/* Returns the number, in its chunk, of the slab to take next: the lowest in the pool whose page's other half is not;
 * otherwise the lowest in the pool, where at least one is. Takes none (tsi_parts_take_locked). [pool lock held] */
unsigned tsi_parts_next(const TsiChunk* chunk);
/* Clears the bit of the slab in its chunk's parts, so that it is out of the pool; free_count is the caller's. If the
 * page's other half is still there, takes the page out of the stock too. Returns the bytes of the page that were kept
 * there; otherwise 0. [pool lock held] */
size_t tsi_parts_take_locked(TsiSpace* s, uint32_t slab_id);

/* ---- giving ---- */
/* Where pages with both halves unused go: to the system, or as far as there is room to the stock; LEARN as in
 * tsi_stock_choose. */
typedef enum TsiPartsHow { TSI_PARTS_GO, TSI_PARTS_KEEP, TSI_PARTS_LEARN } TsiPartsHow;
/* Puts n slabs of TSI_CLASS_PART, in ascending order, into the pool. A page with both halves unused goes to the stock
 * as far as there is room, otherwise to the system; always to the system with TSI_PARTS_GO, or if tsi_stock_learns is
 * false. Lowers committed_bytes by all that is not in the stock. Overwrites the ids. Returns the bytes that have gone
 * to the system. [holder of the slabs, no pool lock held] */
size_t tsi_parts_give(TsiSpace* s, uint32_t* slab_ids, unsigned n, TsiPartsHow how);
/* Sets the slab's tag to RETIRED, so that it is never used again, and takes its bytes off committed_bytes; gives its
 * page back to the system if the other half is unused, which then is in the pool again.
 * [holder of the slab, no pool lock held] */
void tsi_parts_retire(TsiSpace* s, uint32_t slab_id);
/* Puts those regions that share pages into the pool which are there by their tags, before others are given.
 * [fork child] */
void tsi_parts_child(TsiSpace* s);

#endif
