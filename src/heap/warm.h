/*
 * warm.h - slabs of no epoch that keep their pages, so that the next phase need not fault them in.
 *
 * Each binding has a store of its own: up to a share, half of what the budget of the allocator starts with, which it is
 * granted in blocks. Slabs beyond that go to the stock (mem/stock.h), which belongs to nobody, as far as the budget has
 * learned to allow it, or to the system. With a fixed budget there is no stock, and when a store is full and little is
 * put, the oldest slabs go to the system together.
 *
 * A store is behind a try-lock: a thread that does not get it goes to the pool instead, so a trim, or a look, can empty
 * the stores of idle threads.
 */
#ifndef TSI_HEAP_WARM_H
#define TSI_HEAP_WARM_H

#include "state/arena.h"

enum { TSI_STANDBY_SLAB_SHIFT = 40 }; /* of a STANDBY word: its region's slab, whose ids have 24 bits */
_Static_assert((uint64_t)TSI_BINDINGS_MAX << 8 <= 1ull << TSI_STANDBY_SLAB_SHIFT, "the binding lies below the slab");
_Static_assert((uint64_t)TSI_CHUNKS_MAX* TSI_CHUNK_SLABS <= 1ull << (64 - TSI_STANDBY_SLAB_SHIFT), "every slab fits");

/* Puts a chain of returned slabs (by `next`, the first's id + 1; 0: none) into the binding's store, in shared mode into
 * the first bank's, as WARM; where a little does not fit, first moves some of the oldest out. Returns the chain of
 * those that it did not keep: huge ones, those without generations, and all beyond its share; all of them if b is NULL
 * or the store is busy. learn: as in TsiSweep. [holder of the slabs, no pool lock held] */
uint32_t tsi_warm_put(TsiArena* a, TsiBinding* b, uint32_t chain, bool learn);
/* Takes a slab of the class, with its pages, from the binding's store, the one put last: *slab_id, still WARM. Returns
 * false, with *slab_id as it was, if the store has none or is busy. [own thread, needs no lock] */
bool tsi_warm_take(TsiBinding* b, unsigned cls, uint32_t* slab_id);
/* Gives the pages back to the system that a binding keeps in its store and with heaps that wait, and its share of the
 * budget. Returns false if the store is busy: then only the regions of heaps that wait have gone.
 * [any thread, no lock held but the segment's] */
bool tsi_warm_flush(TsiArena* a, TsiBinding* b);
/* Gives back to the system what all threads keep in stores and with heaps that wait, the quarantine, and the stock.
 * Returns false if a store was busy: that one is left. [any thread, no lock held] */
bool tsi_warm_give_up(TsiArena* a);
/* Lends `bytes`, or 64 KiB if that is more, of the binding's share for what it keeps elsewhere (ready.h): b->warm.lent
 * rises by that; where the share is used up some of the store's oldest slabs go. Returns false, with `lent` as it was,
 * if it would pass a quarter of the first budget, the share is too small or the store is busy.
 * [own thread, no pool lock held] */
bool tsi_warm_lend(TsiBinding* b, size_t bytes);
/* Empties the store as its thread exits, and gives its share and the regions that wait back: into the stock as far as
 * there is room, where the budget learns, otherwise to the system. Waits for a thread that is at it.
 * [own thread, no lock held] */
void tsi_warm_leave(TsiBinding* b);
/* Does tsi_warm_poll's look whether or not the budget has risen or tables have learned; still once a second at most,
 * but for the budget's fall and where more is kept than the budget.
 * [any thread, no lock held but the segment's, no bracket open] */
void tsi_warm_look_now(TsiArena* a);
/* Looks once a second, where the budget has risen or tables of records have learned: either falls by half for each
 * second it was not needed, and stores that nobody has used go back. Called at ends, slow paths and statistics.
 * [any thread, no lock held but the segment's, no bracket open] */
TSI_INLINE void tsi_warm_poll(TsiArena* a) {
    bool risen = tsi_load_relaxed(&a->space.stock.budget) > a->space.stock.start;
    if (TSI_UNLIKELY(risen || tsi_load_relaxed(&a->records_learned))) tsi_warm_look_now(a);
}
/* Looks like tsi_warm_poll as part of a look of decay.h, whether or not the budget has risen.
 * [any thread, no lock held, no bracket open] */
void tsi_warm_decay(TsiArena* a);
/* Returns the bytes of all stores, and of regions that wait with heaps. [any thread, needs no lock] */
uint64_t tsi_warm_bytes(TsiArena* a);

/* ---- the memory of heaps that wait for a phase (ready.h), as others may see and take it ---- */

/* Returns the bytes of the regions that wait with heaps of a binding, by its index, below tsi_table_used of
 * a->bindings: a hint for others. [any thread, needs no lock] */
uint64_t tsi_ready_bytes(const TsiArena* a, uint32_t binding);
/* Gives back to the system the regions that wait with heaps of the binding, which are STANDBY_EMPTY then and stay in
 * its lists, and to the budget what is lent for them (b->warm.lent is 0).
 * [any thread, no lock held but the segment's] */
void tsi_ready_flush(TsiArena* a, TsiBinding* b);
/* Takes the region of h, a heap that waits in b's lists: h is STANDBY_EMPTY then, and the slab the caller's, still
 * WARM. Returns its slab id + 1, or 0, changing nothing, if the heap had none or another thread was first.
 * [any thread, needs no lock] */
uint32_t tsi_ready_seize(TsiBinding* b, TsiHeap* h);
/* Gives all that the binding's share has lent (b->warm.lent, which is 0 then) back to the budget; heaps that wait keep
 * their regions. [any thread, needs no lock] */
void tsi_warm_call_in(TsiArena* a, TsiBinding* b);
/* Empties a store, of the forking thread or a vanished one, without giving anything back, and frees its lock; its slabs
 * are found by their tags. [fork child] */
void tsi_warm_forget(TsiBinding* b);

#endif
