/*
 * large.h - large objects, which have no slab of a class, and pairs of chunks that are a huge page.
 *
 * A large object lies in units of 64 KiB (of a page, if that is larger), so it wastes less than a quarter of its
 * addresses. Its first unit has the words of its slab and of its line; it may begin in one chunk and end in another:
 *
 *   chunk LARGE: [ object | object ..]  CONT: [ .......... ]  LARGE: [ .... | free | object ]
 *
 * A chunk is LARGE where objects begin or end and CONT where one of them fills it. Units of a LARGE chunk in which no
 * object begins have the tag INSIDE, so an address there is an interior one.
 *
 * Invariants
 *   V1  A unit of a LARGE chunk has its bit in `units` exactly while an object has it. It is the object's first, or INSIDE.
 *   V2  The units of an object adjoin: its first one, then units INSIDE and CONT chunks.
 *   V3  `set_aside` counts the units that objects have beyond their bytes.
 * All of it changes under the pool's lock. Others read the tags alone.
 *
 * An object that has grown is likely to grow on: it gets addresses for sixteen times its size, which are nobody's
 * memory. They are taken back when addresses run short.
 */
#ifndef TSI_MEM_LARGE_H
#define TSI_MEM_LARGE_H

#include "mem/pool.h"

/* Units that so many bytes need. */
uint32_t tsi_large_units(const TsiSpace* s, size_t bytes);
/* Units that an object has, those that it may grow into included. */
TSI_INLINE uint32_t tsi_large_span(const TsiSpace* s, uint32_t slab_id) {
    return tsi_load_relaxed(&tsi_slab(s, slab_id)->gone) >> TSI_LARGE_UNITS_SHIFT;
}
/* A unit is an object's, by its bit. Pool lock held, or in a fork child. */
TSI_INLINE bool tsi_large_is_used(const TsiSpace* s, uint32_t slab_id) {
    return s->chunks[tsi_slab_chunk(slab_id)].units >> tsi_slab_number(slab_id) & 1;
}
/* The place of a large object. */
TSI_INLINE TsiPlace tsi_large_place(uint32_t slab_id) {
    return (TsiPlace){tsi_line_at(tsi_slab_chunk(slab_id), tsi_slab_number(slab_id)), slab_id, TSI_CLASS_LARGE, 0};
}

/* Takes units for a large object of `bytes` at `align` (a power of two); tag POOL. `grows`: with room behind it. Returns
 * false like tsi_space_take. */
bool tsi_space_take_large(TsiSpace* s, size_t bytes, size_t align, bool grows, unsigned lane, uint32_t* slab_id);

/* Makes a large object larger where it is, to `bytes`. Returns false, and has changed nothing, where others lie behind
 * it, or max_bytes or the system allows no more. [the caller has claimed the slab] */
bool tsi_space_grow_large(TsiSpace* s, uint32_t slab_id, size_t bytes);
/* Gives a large object's units back, and its pages. With `keep`, as many pages as the budget allows go to the stock.
 * Returns how many bytes went to the system. */
uint64_t tsi_space_give_large(TsiSpace* s, uint32_t slab_id, bool keep);
/* Takes back addresses that objects were given to grow into, where they fill chunks. Returns false if there were none.
 * O(chunks ever used). */
bool tsi_large_reclaim_locked(TsiSpace* s);

/* Bytes of the objects that begin in a LARGE chunk. [fork child] */
uint64_t tsi_large_bytes(const TsiSpace* s, uint32_t chunk);

/* Takes two slabs of TSI_CLASS_HUGE that are the halves of a huge page. As tsi_space_take. */
bool tsi_space_take_huge(TsiSpace* s, unsigned lane, uint32_t slab_ids[2]);

#endif
