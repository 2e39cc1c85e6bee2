/*
 * units.h - the addresses of large objects.
 *
 * A large object lies in units of 64 KiB (of a page, if that is larger), so it wastes less than a quarter of its
 * addresses. Its first unit has the words of its slab and of its line. An object may begin in one chunk and end in
 * another:
 *
 *   chunk LARGE: [ object | object .. ]   CONT: [ ........... ]   LARGE: [ ..... | free | object ]
 *
 * A chunk is LARGE where objects begin or end, and CONT where one of them fills it. Units of a LARGE chunk in which no
 * object begins have the tag INSIDE, so an address there is an interior one.
 *
 * An object that has grown is likely to grow on: it gets addresses for sixteen times its size, without memory. They are
 * taken back when addresses run short.
 *
 * A position is the number of a unit in the payload. Everything here changes under the pool's lock; others read the
 * tags.
 *
 * Invariants
 *   V1  A unit of a LARGE chunk has its bit in `units` exactly while an object has it. Such a unit is the object's
 *       first, or INSIDE.
 *   V2  The units of an object adjoin: its first one, then units INSIDE and CONT chunks.
 *   V3  `set_aside` counts the units that objects have in chunks behind those that their bytes reach, all of which can
 *       be taken back. So a search that finds no addresses looks at objects only where it gains some.
 */
#ifndef TSI_MEM_UNITS_H
#define TSI_MEM_UNITS_H

#include "mem/space.h"

#define TSI_NOWHERE UINT32_MAX /* no position */

/* Returns the log2 of the bytes of a unit. [any thread, needs no lock] */
unsigned tsi_unit_shift(const TsiSpace* s);
/* Returns the log2 of the units of a chunk. [any thread, needs no lock] */
unsigned tsi_units_log2(const TsiSpace* s);
/* Returns the position of a large object's first unit, or of any unit by its slab id. [any thread, needs no lock] */
uint32_t tsi_unit_position(const TsiSpace* s, uint32_t slab_id);
/* Returns the slab id of the unit at a position. [any thread, needs no lock] */
uint32_t tsi_unit_slab(const TsiSpace* s, uint32_t position);
/* Returns the number of units that `bytes` need, rounded up, without room to grow; 0 for 0.
 * [any thread, needs no lock] */
uint32_t tsi_large_units(const TsiSpace* s, size_t bytes);
/* Returns the number of units that an object has, those to grow into included. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_large_span(const TsiSpace* s, uint32_t slab_id) {
    return tsi_load_relaxed(&tsi_slab(s, slab_id)->gone) >> TSI_LARGE_UNITS_SHIFT;
}
/* Returns the place of a large object. [any thread, needs no lock] */
TSI_INLINE TsiPlace tsi_large_place(uint32_t slab_id) {
    return (TsiPlace){tsi_line_at(tsi_slab_chunk(slab_id), tsi_slab_number(slab_id)), slab_id, TSI_CLASS_LARGE, 0};
}

/* ---- the units of objects ---- */

/* Returns true if an object has the unit, by its bit in a LARGE chunk. [pool lock held, or fork child] */
TSI_INLINE bool tsi_large_is_used(const TsiSpace* s, uint32_t slab_id) {
    return s->chunks[tsi_slab_chunk(slab_id)].units >> tsi_slab_number(slab_id) & 1;
}
/* Returns the payload bytes, whole pages, of the objects that begin in a LARGE chunk, those that reach into others
 * included. [pool lock held, or fork child] */
uint64_t tsi_large_bytes(const TsiSpace* s, uint32_t chunk);
/* Finds the first n free units in a row whose address is aligned to `align`; `anywhere`: also on the side of huge
 * pages. Returns their position, or TSI_NOWHERE. O(chunks / 64), and O(units) of the open chunks. n is not 0, align a
 * power of two. Takes none. [pool lock held] */
uint32_t tsi_units_find(const TsiSpace* s, uint32_t n, size_t align, bool anywhere);
/* Returns the number of free units in a row from `position` on, over chunks, at most `most`; 0 if the first is taken or
 * lies behind the last chunk. Takes none. [pool lock held] */
uint32_t tsi_units_free_from(const TsiSpace* s, uint32_t position, uint32_t most);
/* Returns the number of units that an object of n gets as it grows: n * ROOM_FACTOR, but at most a ROOM_PARTth of the
 * free chunks' units; n if that is less or writable memory is charged. Takes none. [pool lock held] */
uint32_t tsi_units_room(const TsiSpace* s, uint32_t n);
/* Returns the number of units that can be taken back from an object of n units at `from` which has `span` (V3).
 * [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_units_aside(const TsiSpace* s, uint32_t from, uint32_t n, uint32_t span) {
    uint32_t to = (uint32_t)tsi_align_up(from + n, 1u << tsi_units_log2(s)), end = from + span;
    return end > to ? end - to : 0;
}
/* Sets the number of units that an object has, those to grow into included, in `gone` of its first; its flags there
 * stay. Neither units nor set_aside change. [pool lock held] */
void tsi_units_set_span(TsiSpace* s, uint32_t slab_id, uint32_t units);
/* Gives free units [from, end) to an object, which begins at `from` if `starts`; otherwise all get the tag INSIDE, as
 * the units behind a beginning do. Chunks that it fills become CONT, which need no writes, except the one where it
 * begins. Their words are committed; committed_bytes and the object's size and span are the caller's to set.
 * [pool lock held] */
void tsi_units_place(TsiSpace* s, uint32_t from, uint32_t end, bool starts);
/* Takes units [from, end) from an object: their tags become POOL, and chunks without an object lose their class and are
 * free, unless held. The object's span, committed_bytes and pages are the caller's to change. [pool lock held] */
void tsi_units_leave(TsiSpace* s, uint32_t from, uint32_t end);
/* Frees addresses that objects were given to grow into, where these fill whole chunks: shortens each object's span, and
 * lowers set_aside by the units. Returns true if any were freed; false if there were none. O(chunks ever used) at
 * worst. [pool lock held] */
bool tsi_units_reclaim_locked(TsiSpace* s);

#endif
