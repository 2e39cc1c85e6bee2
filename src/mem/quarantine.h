/*
 * quarantine.h - option quarantine_bytes: slabs of phases that have ended, and that nobody uses again before as many
 * bytes have ended after them.
 *
 * A pointer that is kept beyond the end of its phase leads to memory of no object for as long: it harms no later
 * request, and what is written there is found when the slab is used again, with fill_freed. Slabs come in as sweeps
 * return them, and leave in the same order, to where they would have gone at once: a thread's store, the stock, the
 * system (heap/finish.c).
 *
 *   K5  A slab in the quarantine is in no heap, store, stock or pool, its tag says WARM, and its pages count as
 *       committed, like those that rest (rest.h). `bytes` is the sum of them.
 *   K6  There are at most `most` bytes after each return. A trim, and a request that finds no room, empties it.
 *
 * Large objects do not come here, nor slots and regions that are used again inside of their phase.
 */
#ifndef TSI_MEM_QUARANTINE_H
#define TSI_MEM_QUARANTINE_H

#include "mem/space.h"

/* Puts a chain of returned slabs (slab id + 1, by `next`; 0: none) at the end of the quarantine, with the tag WARM,
 * except those without a generation left. Takes slabs off its beginning: all, with `all`, otherwise as many as leave at
 * most quarantine.most bytes. Returns the chain of those, the oldest first, and behind them those without a generation,
 * which are never used again; 0 if there are none. The caller gives them on. [no pool lock] */
uint32_t tsi_quarantine_pass(TsiSpace* s, uint32_t chain, bool all);
/* Returns the bytes in it. [any thread] */
TSI_INLINE uint64_t tsi_quarantine_bytes(const TsiSpace* s) { return tsi_load_relaxed(&s->quarantine.bytes); }

#endif
