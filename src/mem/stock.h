/*
 * stock.h - pages of no slab that are kept rather than given back, so that the next thread that needs pages need not
 * have the system fill them again.
 *
 * The stock belongs to nobody. Its pages lie in slabs of the pool and in chunks without a class, a bit for each 4 KiB:
 * any thread and any class may take them, including regions of every size and large objects. A chunk that has some is
 * opened before any other. While a chunk holds a slab of a class, its other pages serve that class alone.
 *
 * The budget bounds what is kept, here and in the stores of threads (heap/warm.h), which are granted parts of it.
 * Learning starts at `start` and ends at `limit`: bytes that ends give back for want of budget, and that are taken from
 * the system again within about 100 ms, are regretted, and the budget rises by them: to a third of the bytes regretted
 * within that time, unless a large object takes them (decisions 0031, 0066). For each second in which less than half of
 * it was needed it falls by half, never below its start. A limit that is not above the start switches learning off, and
 * with it the stock.
 *
 * A heap that goes on and has emptied slabs may need them again in a moment, or never. Room for these pages is lent
 * beyond the budget, until a look finds them untouched since the look before (heap/decay.h), and as long as the
 * allocator does not grow beyond the most that it had as pages were emptied: before it does, kept pages go. So lent
 * room costs no memory at the peak. But where all of it would go that way within 100 ms, as in a program that empties
 * one class and fills another in turn, the allocator grows instead.
 *
 * Invariants
 *   K1  A page in the stock is in no slab that is out of the pool: taking a slab takes its pages out. Under the lock.
 *   K2  left + stock + grants of threads = budget. A thread that gives pages has taken their room from `left` before.
 *   K3  A chunk whose pages are on their way to the system is held: it is in no list and counts as used, so nobody
 *       takes a slab of it or opens it until they have gone. Slabs may come back to it.
 *   K4  While it learns, start + lent <= budget <= limit. Pages that leave the stock take their part of `lent` along.
 */
#ifndef TSI_MEM_STOCK_H
#define TSI_MEM_STOCK_H

#include "mem/space.h"

enum { TSI_STOCK_SECOND = 1000000000 };
#define TSI_STOCK_NONE UINT32_MAX

/* Returns true if the allocator keeps pages in the stock at all: its budget may rise. [any thread, needs no lock] */
TSI_INLINE bool tsi_stock_learns(const TsiSpace* s) { return s->stock.limit > s->stock.start; }

/* ---- taking and keeping ---- */
/* Takes a range of whole pages that becomes part of a slab or, with `large`, of a large object out of the stock: clears
 * its bits, lowers stock.bytes and gives the room back to the budget. Returns the bytes of it that were kept; the
 * system fills the rest, which counts as regret as far as as much went back within the last ticks. [pool lock held] */
size_t tsi_stock_take_locked(TsiSpace* s, const uint8_t* p, size_t bytes, bool large);
/* Adds a range of whole pages, none of which is in it, to the stock: sets their bits and raises stock.bytes. Its room
 * was taken from the budget before (tsi_stock_reserve, tsi_stock_room); committed_bytes stays. [pool lock held] */
void tsi_stock_put_locked(TsiSpace* s, const uint8_t* p, size_t bytes);
/* Returns the lowest free chunk with pages in the stock that the class may open for threads of the node; one with
 * region maps of another class only if no other is there. TSI_STOCK_NONE if there is none. Changes nothing.
 * [pool lock held] */
uint32_t tsi_stock_chunk_locked(const TsiSpace* s, unsigned cls, unsigned node);
/* ---- the budget ---- */
/* Takes room from the budget: lowers stock.left. Returns how many bytes it got: all of `bytes`, or the most that is
 * left in whole steps of `step` (not 0), or 0. tsi_stock_unreserve, or pages that leave the stock, give it back.
 * [any thread, needs no lock] */
uint64_t tsi_stock_reserve(TsiSpace* s, uint64_t bytes, uint64_t step);
/* Gives `bytes` of room, of tsi_stock_reserve or tsi_stock_room, back to the budget: raises stock.left. No page moves.
 * [any thread, needs no lock] */
TSI_INLINE void tsi_stock_unreserve(TsiSpace* s, uint64_t bytes) {
    (void)tsi_add_relaxed(&s->stock.left, (int64_t)bytes);
}
/* Sorts the ids in ascending order and takes room in the budget for those slabs that may stay, which then come first;
 * slabs that share pages come last, and are not counted here. Returns the number that may stay, for which the caller
 * calls tsi_space_keep, or tsi_stock_unreserve with their bytes; 0, with the ids as they were, if the allocator keeps
 * no pages. All others are for tsi_space_release, with the same `learn`. With `learn`, where room is short, other
 * pages of the stock go first: cold ones, or for a small need the coldest there are; these bytes, and those of slabs
 * without room, count as gone for want of budget. [holder of the slabs, no pool lock held] */
unsigned tsi_stock_choose(TsiSpace* s, uint32_t* slab_ids, unsigned n, bool learn);
/* Takes room in the budget for `bytes`, or as many whole pages less as there is; with `learn`, if that is not all,
 * evicts pages (make_room) and tries again. Returns the bytes of room that it got, which tsi_stock_unreserve gives
 * back; 0 if the allocator keeps no pages. [any thread, no pool lock held] */
uint64_t tsi_stock_room(TsiSpace* s, uint64_t bytes, bool learn);
/* Records that the caller gives `bytes` back now for want of budget: taken again within the next ticks, they are
 * regret. [any thread, no pool lock held] */
void tsi_stock_note_gone(TsiSpace* s, uint64_t bytes);
/* Halves the budget, but not below its start, for each whole second since it was last needed, and gives back pages that
 * are beyond it then. Returns at once if the budget is at its start or no second has passed. now_ns (ns): coarse clock.
 * [any thread, no pool lock held] */
void tsi_stock_poll(TsiSpace* s, uint64_t now_ns);
/* Raises the budget, and stock->lent, until `bytes`, which phases that go on have emptied, have room in it, but not
 * above its limit. Raises stock.high to what is committed. Does nothing if the allocator keeps no pages. O(1)
 * [any thread, no pool lock held] */
void tsi_stock_lend(TsiSpace* s, uint64_t bytes);
/* If more is committed than stock.high, gives kept pages back, as many bytes as that is more but at least 64 KiB; not
 * if more than stock.high bytes went so within a tenth of a second, nor if no more than 64 KiB are kept. Lent room
 * falls by them. Then stock.high rises to what is committed. [any thread, no pool lock held] */
void tsi_stock_grown_now(TsiSpace* s);
/* Calls tsi_stock_grown_now if room was lent, so that stock.high is not 0, and more is committed than that. Called
 * after pages were taken from the system. [any thread, no pool lock held] */
TSI_INLINE void tsi_stock_grown(TsiSpace* s) {
    uint64_t high = tsi_load_relaxed(&s->stock.high);
    if (TSI_UNLIKELY(high != 0) && tsi_load_relaxed(&s->committed_bytes) > high) tsi_stock_grown_now(s);
}
/* Takes back lent room that has no page, and for the rest gives pages of chunks back to the system where nothing has
 * joined or left the stock since the last tsi_stock_looked, as many as room was lent. Drops the pool lock meanwhile.
 * O(chunks) [any thread, no pool lock held] */
void tsi_stock_settle(TsiSpace* s);
/* Sets stock.looked_tick to now: the next tsi_stock_settle takes pages of chunks that have not changed since then.
 * [any thread, no pool lock held] */
void tsi_stock_looked(TsiSpace* s);
/* Gives `bytes` of the stock, the coldest chunks' first, or all there is, back to the system, because the caller asked:
 * they do not count as gone for want of budget, so they are never regretted. Returns the bytes that went.
 * [any thread, no pool lock held] */
uint64_t tsi_stock_give_back(TsiSpace* s, uint64_t bytes);

#endif
