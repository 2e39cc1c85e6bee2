/*
 * names.h - what a handle names: generations, counts, and the flag of slabs that have issued some. The rules are those
 * of handles.h.
 *
 *   N1  A handle that was issued is never taken for made up, at no moment of its slab's leaving. From the claim until
 *       the slab's base is raised the tag says PURGING and keeps the flag of handles; the handle is judged by the
 *       incarnation that the slab leaves. Afterwards the base is above it, and later, where the base's page may go, so
 *       is the chunk's floor, which is raised before the chunk loses its class. Each is written before the tag or class
 *       that sends a reader there.
 */
#ifndef TSI_STATE_NAMES_H
#define TSI_STATE_NAMES_H

#include "state/living.h"
#include "mem/handle.h"

/* A count word as it reads in the incarnation seq. */
TSI_INLINE uint64_t tsi_count_now(uint64_t word, uint32_t seq) {
    uint64_t none = (uint64_t)(seq & TSI_INC_MASK) << 32;
    return TSI_LIKELY(word >> 32 == none >> 32) ? word : none;
}
TSI_INLINE uint32_t tsi_count_of(uint64_t word, uint32_t seq) { return (uint32_t)tsi_count_now(word, seq); }

/* Makes a slot's count odd, from the even value `word` had; true for exactly one caller. */
TSI_INLINE bool tsi_count_move(_Atomic uint64_t* at, uint32_t seq, uint64_t word) {
    uint64_t now = tsi_count_now(word, seq);
    while ((now & 1) == 0) {
        if (tsi_cas_seq(at, &word, now + 1)) return true;  /* decides among racing frees */
        if (tsi_count_now(word, seq) != now) return false; /* else a free of an earlier incarnation had slept */
    }
    return false;
}

/* Owner, at a refill of a line of a slab that has issued handles: the slots that it takes in get the next even counts,
 * and the line is marked. A count may be even still, where a plain free had not seen the first handle: that ends the
 * handle, too. Counts stop below their limit, where no generation matches. */
void tsi_counts_even(TsiSpace* s, TsiLine* l, uint32_t line_id, uint32_t seq, uint64_t slots);

/* Generation of the slot now, and its count word; false when its counts are not there. */
bool tsi_generation_of(TsiArena* a, const TsiPlace* at, uint64_t tag, uint64_t* generation, uint64_t* word);
/* Sets the flag in the tag of the incarnation seq, before a handle is known; false when that has passed. */
bool tsi_handle_flag_slab(TsiSpace* s, uint32_t slab_id, uint32_t seq);
/* Handle of an object, for any thread; 0 when it does not live, its generations ran out, or memory is short. */
SlabHandle tsi_handle_of(TsiArena* a, TsiBinding* b, const TsiPlace* at);
/* Place of the object a handle names; false when it has ended. */
bool tsi_handle_find(TsiArena* a, SlabHandle h, TsiPlace* at);
/* Decodes; returns TSI_FREE_OK when the handle names a live object. */
int tsi_handle_decode(TsiArena* a, SlabHandle h, TsiPlace* at, uint64_t* tag, uint64_t* word);

#endif
