/*
 * chunk.h - chunks: which are free, what of them is committed, the class that they serve, and when they lose it.
 *
 * Everything here runs under the pool's lock, unless its tag says otherwise.
 *
 * Tags and generations belong to slab ids, remote words and counts to lines, and a class decides which slab a line is
 * part of. So when a chunk changes its class every slab starts above the values that any slab of the chunk has used,
 * its floors: no old word and no old handle can match a new one.
 */
#ifndef TSI_MEM_CHUNK_H
#define TSI_MEM_CHUNK_H

#include "mem/space.h"

/* Takes the pool's lock, and counts whether it had to wait. column: kind of caller. [no pool lock] */
void tsi_space_lock_counted(TsiSpace* s, unsigned cls, unsigned column);

/* Returns true if pages of the chunk are in the stock. */
TSI_INLINE bool tsi_chunk_has_stock(const TsiChunk* chunk) {
    return (chunk->stock[0] | chunk->stock[1] | chunk->stock[2] | chunk->stock[3]) != 0;
}
/* Marks the chunk as used or free. */
void tsi_chunk_set_used(TsiSpace* s, uint32_t chunk, bool used);
/* Returns the first free chunk, or chunk_count if there is none. */
uint32_t tsi_chunk_find(TsiSpace* s);

/*
 * Where the system has huge pages on request, small pages and huge ones keep to sides of their own, or each pair of
 * chunks would be a mapping: of the chunks from 2^k to 2^(k+1), from 16 on, the upper half is for huge pages. When a
 * side is full the other is used.
 *
 * Returns the chunks of a word of 64 that are on the side of huge pages, a bit each. [any thread]
 */
TSI_INLINE uint64_t tsi_chunk_huge_side(uint32_t word) {
    if (word < 2) return word == 0 ? 0xffff0000ff000000u : 0xffffffff00000000u;
    return (word & (1u << tsi_log2(word) >> 1)) != 0 ? ~0ull : 0;
}

/* ---- memory of chunks; false leaves it unchanged ---- */

/* Makes the bookkeeping of a chunk usable and, where the system does not charge that, all of its payload. Returns false
 * if refused. */
bool tsi_chunk_commit(TsiSpace* s, uint32_t chunk);
/* Asks the system for memory of the node, once for as long as the chunks stay with it. Called before they are
 * touched. */
void tsi_chunks_prefer_node(TsiSpace* s, uint32_t first, uint32_t n, unsigned node);

/* ---- a chunk that serves a class of slabs ---- */

/* Prepares a free chunk for the class, with `slabs` fresh slabs in the pool. Others see it when its class is set. */
void tsi_chunk_begin(TsiSpace* s, uint32_t chunk, unsigned cls, unsigned slabs);
/* Publishes the class, after filling the chunk's entries. */
void tsi_chunk_set_class(TsiSpace* s, uint32_t chunk, unsigned cls);
/* Add it to and remove it from the list of chunks of its class and node that have slabs in the pool. */
void tsi_chunk_link(TsiSpace* s, uint32_t chunk, unsigned cls);
void tsi_chunk_unlink(TsiSpace* s, uint32_t chunk, unsigned cls);
/* Raises the floors to the values that the chunk's first `slabs` slabs have used. */
void tsi_floors_raise(TsiSpace* s, uint32_t chunk, uint32_t slabs);
/* Starts a fresh slab of the class above the floors; its words are about to be written. */
void tsi_floors_apply(TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Adds a slab of the chunk to those in the pool. [pool lock, or fork child] */
void tsi_chunk_add(TsiSpace* s, uint32_t chunk, unsigned cls, unsigned slab);
/* Returns a slab to the pool: tag, list, tsi_chunk_settle. first: before slabs of other chunks. */
void tsi_chunk_put_locked(TsiSpace* s, uint32_t slab_id, bool first);
/* Lists the chunk if it has free slabs, or takes its class away if all are free, but not while it is held.
 * [pool lock, or fork child] */
void tsi_chunk_settle(TsiSpace* s, uint32_t chunk, unsigned cls);
/* Keep others from taking the chunk or slabs of it (stock.h, K3), and let them again. */
void tsi_chunk_hold_locked(TsiSpace* s, uint32_t chunk);
void tsi_chunk_unhold_locked(TsiSpace* s, uint32_t chunk);
/* Gives back the bookkeeping of a chunk without a class, unless its words are kept. Floors judge old words and
 * handles. */
void tsi_chunk_give_words(TsiSpace* s, uint32_t chunk);
/* Gives back the bookkeeping of chunks that nobody uses and that keep no pages, if more than `most` have some.
 * [no pool lock] */
void tsi_chunks_leave(TsiSpace* s, uint32_t most);

#endif
