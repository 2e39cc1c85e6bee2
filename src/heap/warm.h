/*
 * warm.h - slabs of no epoch that keep their pages, so that the next phase need not fault them in.
 *
 * Each binding has a store of its own, without a lock that is waited for: up to a share, half of what the budget of the
 * allocator starts with, which it is granted in blocks. What its ends return beyond that goes to the stock
 * (mem/stock.h), which belongs to nobody, as far as the budget has learned to allow it; the rest goes to the system.
 * With a fixed budget there is no stock, and when a store is full and little is to be put, the oldest slabs go to the
 * system together.
 *
 * A store is behind a try-lock: a thread that does not get it goes to the pool instead, so a trim, or a look, can empty
 * the stores of idle threads.
 */
#ifndef TSI_HEAP_WARM_H
#define TSI_HEAP_WARM_H

#include "state/arena.h"

enum { TSI_READY_SLAB_SHIFT = 40 }; /* of a READY word: its region's slab, whose ids have 24 bits */
_Static_assert((uint64_t)TSI_BINDINGS_MAX << 8 <= 1ull << TSI_READY_SLAB_SHIFT, "the binding lies below the slab");
_Static_assert((uint64_t)TSI_CHUNKS_MAX* TSI_CHUNK_SLABS <= 1ull << (64 - TSI_READY_SLAB_SHIFT), "every slab fits");

/* Takes a chain of returned slabs (by `next`) and gives back what it did not keep. b may be NULL. learn: as in
 * TsiSweep. */
uint32_t tsi_warm_put(TsiArena* a, TsiBinding* b, uint32_t chain, bool learn);
bool tsi_warm_take(TsiBinding* b, unsigned cls, uint32_t* slab_id);
/* Purges what a binding keeps and returns its share of the budget. Any thread; false when busy. */
bool tsi_warm_flush(TsiArena* a, TsiBinding* b);
/* What all threads keep, and the stock. Returns false if a store was busy. No lock held. */
bool tsi_warm_give_up(TsiArena* a);
/* Some of the binding's share, at least so much, for what it keeps elsewhere (ready.h): b->warm.lent rises. Own
 * thread. */
bool tsi_warm_lend(TsiBinding* b, size_t bytes);
/* As tsi_warm_flush, as its thread leaves: to the stock as far as there is room. */
void tsi_warm_leave(TsiBinding* b);
/* Once a second, where the budget has risen or tables of records have learned: either falls by half for each second it
 * was not needed, and stores that nobody has used go back. At ends, slow paths and statistics; no bracket open and no
 * lock held. */
void tsi_warm_look_now(TsiArena* a);
TSI_INLINE void tsi_warm_look(TsiArena* a) {
    bool risen = tsi_load_relaxed(&a->space.stock.budget) > a->space.stock.start;
    if (TSI_UNLIKELY(risen || tsi_load_relaxed(&a->records_learned))) tsi_warm_look_now(a);
}
/* The same at any time, and whether or not the budget has risen, as part of a look of decay.h. */
void tsi_warm_decay(TsiArena* a);
/* Bytes of all stores. */
uint64_t tsi_warm_bytes(TsiArena* a);

/* ---- the memory of heaps that wait for a phase (ready.h), as others may see and take it ---- */

/* Bytes of the regions that wait with heaps of a binding, by its index. Any thread; a hint for others. */
uint64_t tsi_ready_bytes(const TsiArena* a, uint32_t binding);
/* Gives the memory back. Any thread. */
void tsi_ready_flush(TsiArena* a, TsiBinding* b);
/* The region of a heap that waits; slab id + 1, or 0. The heap is BARE after that. */
uint32_t tsi_ready_seize(TsiBinding* b, TsiHeap* h);
/* All that is lent goes back to the budget. Any thread. */
void tsi_warm_call_in(TsiArena* a, TsiBinding* b);
/* In a fork child: a vanished thread's store is empty; its slabs are found by their tags. */
void tsi_warm_forget(TsiBinding* b);

#endif
