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

/* Puts a chain of returned slabs (by `next`) at the end. Returns the chain of those that leave, the oldest first: all,
 * with `all`, otherwise those beyond `most` bytes; and those of the chain that are never used again. [no pool lock] */
uint32_t tsi_quarantine_pass(TsiSpace* s, uint32_t chain, bool all);
/* Returns the bytes in it. [any thread] */
TSI_INLINE uint64_t tsi_quarantine_bytes(const TsiSpace* s) { return tsi_load_relaxed(&s->quarantine.bytes); }

#endif
