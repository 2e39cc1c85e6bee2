/*
 * chunk.h - chunks: which are free, what of them is committed, the class that they serve, and when they lose it.
 *
 * All of it under the lock of the space, but where it is said otherwise.
 *
 * Tags and generations belong to slab ids, remote words and counts to lines, and a class decides which slab a line is
 * part of. So when a chunk changes its class every slab starts above whatever any slab of the chunk has used, its
 * floors: no old word and no old handle can match a new one.
 */
#ifndef TSI_MEM_CHUNK_H
#define TSI_MEM_CHUNK_H

#include "mem/space.h"

/* Takes the lock, and counts how. `column`: where. */
void tsi_space_lock_counted(TsiSpace* s, unsigned cls, unsigned column);

TSI_INLINE bool tsi_chunk_has_stock(const TsiChunk* k) {
    return (k->stock[0] | k->stock[1] | k->stock[2] | k->stock[3]) != 0;
}
void tsi_chunk_set_used(TsiSpace* s, uint32_t chunk, bool used);
/* The first free chunk; chunk_count when there is none. */
uint32_t tsi_chunk_find(TsiSpace* s);

/*
 * Where the system has huge pages for those who ask, small pages and huge ones keep to sides of their own, or each pair
 * of chunks would be a mapping: of the chunks from 2^k to 2^(k+1), from 16 on, the upper half is for huge pages. A side
 * that is full goes on in the other.
 *
 * Chunks of a word of 64 that are on the side of huge pages, a bit each.
 */
TSI_INLINE uint64_t tsi_chunk_huge_side(uint32_t word) {
    if (word < 2) return word == 0 ? 0xffff0000ff000000u : 0xffffffff00000000u;
    return (word & (1u << tsi_log2(word) >> 1)) != 0 ? ~0ull : 0;
}

/* ---- memory of chunks; false leaves it as it was ---- */

/* Makes the bookkeeping of a chunk usable and, where the system does not charge that, all of its payload. */
bool tsi_chunk_commit(TsiSpace* s, uint32_t chunk);
/* A wish, once for as long as the chunks stay with the node; before they are touched. */
void tsi_chunks_prefer_node(TsiSpace* s, uint32_t first, uint32_t n, unsigned node);

/* ---- a chunk that serves a class of slabs ---- */

/* A free chunk is about to serve the class, with so many slabs in the pool, all of them fresh. It shows to others
 * when it gets its class. */
void tsi_chunk_begin(TsiSpace* s, uint32_t chunk, unsigned cls, unsigned slabs);
void tsi_chunk_set_class(TsiSpace* s, uint32_t chunk, unsigned cls);
/* In and out of the list of chunks of its class and node that have slabs in the pool. */
void tsi_chunk_link(TsiSpace* s, uint32_t chunk, unsigned cls);
void tsi_chunk_unlink(TsiSpace* s, uint32_t chunk, unsigned cls);
/* The floors rise to what the first so many slabs have used. */
void tsi_floors_raise(TsiSpace* s, uint32_t chunk, uint32_t slabs);
/* A slab of the class that is fresh starts above them, and its words are about to be written. */
void tsi_floors_apply(TsiSpace* s, unsigned cls, uint32_t slab_id);
/* A slab of the chunk is in the pool; so many more are. Also in a fork child, without the lock. */
void tsi_chunk_add(TsiSpace* s, uint32_t chunk, unsigned cls, unsigned slab);
/* The same of one that comes back: its tag, and what follows for the chunk. first: it is taken before slabs of other
 * chunks. Lock held. */
void tsi_chunk_put_locked(TsiSpace* s, uint32_t slab_id, bool first);
/* The chunk's count of free slabs has changed: it goes into the list of chunks that have some, or loses its class if
 * all are free; one that is held does so later. Also in a fork child, without the lock. */
void tsi_chunk_settle(TsiSpace* s, uint32_t chunk, unsigned cls);
/* Nobody takes slabs of the chunk, or the chunk, from here on (stock.h, K3), until it is given free. Lock held. */
void tsi_chunk_hold_locked(TsiSpace* s, uint32_t chunk);
void tsi_chunk_unhold_locked(TsiSpace* s, uint32_t chunk);
/* Gives the bookkeeping of a chunk without a class back, unless its pages are kept. Old words and handles are judged by
 * the floors. */
void tsi_chunk_give_words(TsiSpace* s, uint32_t chunk);
/* Gives back the bookkeeping of chunks that nobody uses and that keep no pages, where more than `most` of them have
 * some. Takes the lock. */
void tsi_chunks_leave(TsiSpace* s, uint32_t most);

#endif
