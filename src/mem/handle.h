/*
 * handle.h - 64 bits that name an object and stop matching when it ends.
 *
 *   generation:30 | line id:26 | slot:6 | version:2 (= 2)
 *
 * The generation is a keyed bijection of (gen_base of the slab + count of the slot / 2). The count is
 * even while the slot can be in use and odd from a free until the owner takes the slot in again; when
 * the slab leaves its incarnation the base rises past every count used. A value is therefore never issued twice for a
 * slot, and two allocators, having different keys, issue different handles for their first objects.
 * Count words are {0:1, seq:31, count:32}, seq as in remote words: a word of another incarnation reads as count 0, so
 * nothing has to be cleared, and a compare-exchange by a thread that slept through a release fails to
 * matter. The bijection is one xorshift-multiply step (e.g. M. E. O'Neill, "PCG", 2014) on 30 bits: it keeps mistakes
 * from matching, not attackers.
 */
#ifndef TSI_MEM_HANDLE_H
#define TSI_MEM_HANDLE_H

#include "base/bits.h"

enum { TSI_HANDLE_VERSION = 2, TSI_GEN_BITS = 30 };
#define TSI_GEN_MASK ((1u << TSI_GEN_BITS) - 1)
/* Generations are issued below this; the rest is room for counts that still rise. */
#define TSI_GEN_LIMIT (TSI_GEN_MASK - 64)
/* Counts stop here: even, and beyond the generations of any slab. */
#define TSI_COUNT_MAX 0xfffffff0u

/* Returns the place of a slot, line id << 6 | slot: bits 2 to 33 of its handles, and the index of its count.
 * [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_handle_place(uint32_t line_id, unsigned slot) { return line_id << 6 | slot; }
/* Returns the place that a handle names, whether it exists or not. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_handle_place_of(uint64_t h) { return (uint32_t)(h >> 2); }
/* Returns the line id of a place. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_place_line(uint32_t place) { return place >> 6; }
/* Returns the slot of a place, 0..63. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_place_slot(uint32_t place) { return place & 63; }

/* Returns the key of a place's generations, from the allocator's secret. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_handle_key(uint64_t secret, uint32_t place) {
    uint64_t x = (secret ^ place) * 0x9e3779b97f4a7c15ull;
    return x ^ x >> 32;
}

/* Returns a generation of 30 bits mapped to 30 others, one to one, by the place's key; tsi_handle_unscramble inverts
 * it. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_handle_scramble(uint64_t key, uint32_t generation) {
    uint32_t x = (generation ^ (uint32_t)key) & TSI_GEN_MASK;
    x = (x * (uint32_t)(key >> 31 | 1)) & TSI_GEN_MASK;
    return x ^ x >> 15;
}

/* Returns the inverse of an odd number m modulo 2^32 (Newton's iteration). [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_odd_inverse(uint32_t m) {
    uint32_t x = m;
    for (int i = 0; i < 4; i++) x *= 2 - m * x;
    return x;
}

/* Returns the generation that tsi_handle_scramble has mapped to x by the same key. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_handle_unscramble(uint64_t key, uint32_t x) {
    x ^= x >> 15;
    x = (x * tsi_odd_inverse((uint32_t)(key >> 31 | 1))) & TSI_GEN_MASK;
    return (x ^ (uint32_t)key) & TSI_GEN_MASK;
}

/* Returns the upper 30 bits of the handle of a place's generation: the generation, scrambled.
 * [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_handle_stamp(uint64_t secret, uint32_t place, uint32_t generation) {
    return tsi_handle_scramble(tsi_handle_key(secret, place), generation);
}
/* Returns the upper 30 bits of a handle, the scrambled generation. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_handle_stamp_of(uint64_t h) { return (uint32_t)(h >> 34); }
/* Returns the handle of a place's generation, which is below TSI_GEN_LIMIT, under the allocator's secret. Never 0.
 * [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_handle_make(uint64_t secret, uint32_t place, uint32_t generation) {
    return (uint64_t)tsi_handle_stamp(secret, place, generation) << 34 | (uint64_t)place << 2 | TSI_HANDLE_VERSION;
}

#endif
