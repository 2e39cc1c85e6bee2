/*
 * names.h - which object a handle names: generations, counts, and the flag of slabs that have issued handles. Rules:
 * handles.h.
 *
 *   N1  A handle that was issued is never taken for a made-up one, at any moment of its slab's leaving. From the claim
 *       until the slab's base is raised the tag says PURGING and keeps the flag of handles; the handle is judged by the
 *       incarnation that the slab leaves. Afterwards the base is above it, and later, where the base's page may go, so
 *       is the chunk's floor, which is raised before the chunk loses its class. Each is written before the tag or class
 *       that sends a reader there.
 *   N2  A handle is never taken for the next object of its place. Before that one begins, the slot's count is raised,
 *       or in a region, whose objects of one life share a generation, the slab's base; and a look reads it again after
 *       it has seen an object there.
 */
#ifndef TSI_STATE_NAMES_H
#define TSI_STATE_NAMES_H

#include "state/liveness.h"
#include "mem/handle.h"

/* Returns a count word as it reads in the incarnation seq: 0 if it was written in another.
 * [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_count_now(uint64_t word, uint32_t seq) {
    uint64_t none = (uint64_t)(seq & TSI_INC_MASK) << 32;
    return TSI_LIKELY(word >> 32 == none >> 32) ? word : none;
}
/* Returns the count, 32 bits, of a count word as it reads in the incarnation seq: 0 if it was written in another.
 * [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_count_of(uint64_t word, uint32_t seq) { return (uint32_t)tsi_count_now(word, seq); }

/* Makes a slot's count odd in the incarnation seq, from the even count in `word`, as read before: that decides which
 * thread frees the slot. Returns true for exactly one caller; false, with *at unchanged, if the count is odd or no
 * longer that one. [any thread, needs no lock] */
TSI_INLINE bool tsi_count_move(_Atomic uint64_t* at, uint32_t seq, uint64_t word) {
    uint64_t now = tsi_count_now(word, seq);
    while ((now & 1) == 0) {
        if (tsi_cas_seq(at, &word, now + 1)) return true;  /* decides among racing frees */
        if (tsi_count_now(word, seq) != now) return false; /* otherwise a free of an earlier incarnation had slept */
    }
    return false;
}

/* Gives `slots` of a line the next even counts and marks the line, at a refill in a slab that has issued handles. A
 * count may be even still, where a plain free had not seen the first handle: that ends the handle, too. Counts stop
 * below their limit, where no generation matches. [owner, in bracket] */
void tsi_counts_even(TsiSpace* s, TsiLine* l, uint32_t line_id, uint32_t seq, uint64_t slots);

/* Sets *generation to the generation that the place has now, of a free slot the next one, which was not issued yet, and
 * *word to its count word, 0 in a region; by `tag`, its slab's. Returns true; false, and sets neither, if the tag lacks
 * TSI_SLAB_HANDLED: the slab has issued no handle. [any thread, needs no lock] */
bool tsi_generation_of(TsiArena* a, const TsiPlace* at, uint64_t tag, uint64_t* generation, uint64_t* word);
/* Sets TSI_SLAB_HANDLED in the slab's tag, before a handle is made; in a slab with lines also s->counted, and marks the
 * counts' pages as written. Returns true if the flag is set; false, with the tag unchanged, if it holds no objects or
 * its seq is not `seq` any more. [any thread, needs no lock] */
bool tsi_handle_flag_slab(TsiSpace* s, uint32_t slab_id, uint32_t seq);
/* Returns the handle of the object at *at; 0 if it does not live, its generations ran out, or memory is short. Marks
 * its slab TSI_SLAB_HANDLED and its line or region as one with handles, and makes the counts of its chunk usable, which
 * all stays after 0 too. b: the calling thread's binding in a, or NULL: then a membarrier is used if the mark is new.
 * [any thread, no lock held, no bracket open] */
SlabHandle tsi_handle_of(TsiArena* a, TsiBinding* b, const TsiPlace* at);
/* Sets *at to the place of the live object that a handle names. Returns true; false if the object has ended or the
 * handle was never issued: *at means nothing then. Tells and counts no misuse. [any thread, needs no lock] */
bool tsi_handle_find(TsiArena* a, SlabHandle handle, TsiPlace* at);
/* Decodes a handle. Returns TSI_FREE_OK if it names a live object; then *at is its place, *tag its slab's tag, and
 * *word its slot's count word, 0 in a region. Otherwise returns SLAB_MISUSE_STALE_HANDLE for what looks like an object
 * that has ended or SLAB_MISUSE_BAD_HANDLE for a handle never issued; then some of *at, *tag and *word may be set and
 * none is to be read. Counts and tells nothing. [any thread, needs no lock] */
int tsi_handle_decode(TsiArena* a, SlabHandle handle, TsiPlace* at, uint64_t* tag, uint64_t* word);

#endif
