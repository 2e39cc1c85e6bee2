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

/* Takes the pool's lock, waiting for it, and adds 1 to lock_fast or lock_contended, by whether it was free at once, of
 * class cls and `column`, a kind of caller below TSI_COLUMNS. Give it back by tsi_lock_give_probed.
 * [any thread, no pool lock held] */
void tsi_space_lock_counted(TsiSpace* s, unsigned cls, unsigned column);

/* Returns true if pages of the chunk are in the stock. [pool lock held] */
TSI_INLINE bool tsi_chunk_has_stock(const TsiChunk* chunk) {
    return (chunk->stock[0] | chunk->stock[1] | chunk->stock[2] | chunk->stock[3]) != 0;
}
/* Marks the chunk as used or free: its bit, chunks_used if that changes, used_hint as it gets free, and chunk_high as
 * the highest chunk ever used, + 1. Class, lists and bookkeeping are the caller's. [pool lock held, or fork child] */
void tsi_chunk_set_used(TsiSpace* s, uint32_t chunk, bool used);
/* Returns the lowest free chunk on the side of small pages, or of either side if that is full; chunk_count if there is
 * none. Takes none; moves used_hint. [pool lock held] */
uint32_t tsi_chunk_find(TsiSpace* s);

/* Where the system has huge pages on request, small pages and huge ones keep to sides of their own, or each pair of
 * chunks would be a mapping: of the chunks from 2^k to 2^(k+1), from 16 on, the upper half is for huge pages. When a
 * side is full the other is used.
 *
 * Returns the chunks of a word of 64 that are on the side of huge pages, a bit each. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_chunk_huge_side(uint32_t word) {
    if (word < 2) return word == 0 ? 0xffff0000ff000000u : 0xffffffff00000000u;
    return (word & (1u << tsi_log2(word) >> 1)) != 0 ? ~0ull : 0;
}

/* ---- memory of chunks; false leaves it unchanged ---- */

/* Makes the bookkeeping of a chunk usable, once (meta_committed), and, where the system does not charge writable
 * memory, its payload. Returns true if they are; false if refused, and then the payload alone may be.
 * [pool lock held] */
bool tsi_chunk_commit(TsiSpace* s, uint32_t chunk);
/* Asks the system for memory of the node for n chunks from `first` on, once for as long as the chunks stay with it, and
 * files them under it. Does nothing unless the allocator tells nodes apart. Called before they are touched.
 * [pool lock held] */
void tsi_chunks_prefer_node(TsiSpace* s, uint32_t first, uint32_t n, unsigned node);

/* ---- a chunk that serves a class of slabs ---- */

/* Resets the record of a free chunk, whose bookkeeping is usable, for the class: `slabs` slabs in the pool, none of
 * them used before; marks it as used and adds 1 to open_chunks. The chunk has no class yet: others see it when
 * tsi_chunk_set_class is called. [pool lock held] */
void tsi_chunk_begin(TsiSpace* s, uint32_t chunk, unsigned cls, unsigned slabs);
/* Publishes the class that the chunk serves, 0 for none. Fills its entries first if the class has slots or regions; for
 * 0, LARGE and CONT they stay as they are. Its bookkeeping is committed. Lists and `used` are the caller's.
 * [pool lock held, or fork child] */
void tsi_chunk_set_class(TsiSpace* s, uint32_t chunk, unsigned cls);
/* Puts the chunk, which is in no list and has its `node`, at the head of the list of chunks of the class and node that
 * have slabs in the pool, and sets `listed`. [pool lock held, or fork child] */
void tsi_chunk_link(TsiSpace* s, uint32_t chunk, unsigned cls);
/* Takes the chunk, which is in it, out of the list of chunks of the class and node that have slabs in the pool, and
 * clears `listed`. Its slabs stay in the chunk's own list. [pool lock held, or fork child] */
void tsi_chunk_unlink(TsiSpace* s, uint32_t chunk, unsigned cls);
/* Raises the chunk's seq_floor and gen_floor to the highest seq and gen_base that its first `slabs` slabs have, as far
 * as they are higher. Lowers neither. [pool lock held, or fork child] */
void tsi_floors_raise(TsiSpace* s, uint32_t chunk, uint32_t slabs);
/* Raises a slab that is fresh in its class, tag POOL, to the chunk's floors, if its seq or gen_base is below them, and
 * marks the pages of its words and its lines' or region's as written. [pool lock held] */
void tsi_floors_apply(TsiSpace* s, unsigned cls, uint32_t slab_id);
/* Adds a slab of the chunk, by its number there, to those in the pool. Its tag says so already.
 * [pool lock held, or fork child] */
void tsi_chunk_add(TsiSpace* s, uint32_t chunk, unsigned cls, unsigned slab);
/* Returns a slab to the pool: sets its tag to POOL, adds it to its chunk, and settles that (tsi_chunk_settle), which
 * may close it. first: the chunk goes to the head of its list, so that it is taken from before others. Pages and
 * committed_bytes are the caller's to change. [pool lock held] */
void tsi_chunk_put_locked(TsiSpace* s, uint32_t slab_id, bool first);
/* Lists the chunk if some of its slabs are in the pool, takes it out of the list if none is, and closes it if all are:
 * raises its floors, takes its class, gives back its bookkeeping (tsi_chunk_give_words) and marks it as free. Does
 * nothing while it is held. [pool lock held, or fork child] */
void tsi_chunk_settle(TsiSpace* s, uint32_t chunk, unsigned cls);
/* Sets `held`, so that nobody takes the chunk or slabs of it while its pages are on their way to the system (stock.h,
 * K3): a chunk without a class counts as used, another one leaves its list. tsi_chunk_unhold_locked ends it.
 * [pool lock held] */
void tsi_chunk_hold_locked(TsiSpace* s, uint32_t chunk);
/* Clears `held`, which tsi_chunk_hold_locked has set. A chunk without a class is free again, without its bookkeeping;
 * one of slabs is settled (tsi_chunk_settle); one of large objects stays as it is. [pool lock held] */
void tsi_chunk_unhold_locked(TsiSpace* s, uint32_t chunk);
/* Gives back the bookkeeping of a chunk that has lost its class, unless the chunk has pages in the stock and
 * s->words_kept is below twice the chunks that the stock would fill and WORDS_KEPT: then sets meta_kept and keeps it.
 * Floors judge old words and handles. [pool lock held, or fork child] */
void tsi_chunk_give_words(TsiSpace* s, uint32_t chunk);
/* Gives back the bookkeeping (tsi_chunk_release_metadata) of all chunks that nobody uses and that keep no pages, if
 * more than `most` of these have some; otherwise none. Takes the pool lock for each chunk anew. O(chunks)
 * [any thread, no pool lock held] */
void tsi_chunks_leave(TsiSpace* s, uint32_t most);

#endif
