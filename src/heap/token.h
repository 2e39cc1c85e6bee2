/*
 * token.h - the token of a parked line (T1-T4 in line.c): the thread that takes it out tells the owner that there is
 * room. [any thread]
 */
#ifndef TSI_HEAP_TOKEN_H
#define TSI_HEAP_TOKEN_H

#include "state/arena.h"

/* Returns the free slots that the owner could have, freed and remote ones: a hint for other threads. */
TSI_INLINE uint64_t tsi_line_free_bits(const TsiSpace* s, TsiLine* l, uint32_t line_id) {
    _Atomic uint64_t* r = tsi_remote(s, line_id);
    uint64_t w0 = tsi_load_seq(&r[0]), w1 = tsi_load_seq(&r[1]); /* T4 */
    uint64_t freed = tsi_load_acquire(&l->freed);                /* invariant F: remote before freed */
    return tsi_remote_bits(w0, w1) | (freed & s->classes->c[tsi_class_of_line(s, line_id)].full);
}
/* Puts the token into the remote word. Returns false if the slab has left its incarnation. */
TSI_INLINE bool tsi_line_arm(TsiSpace* s, uint32_t line_id, uint32_t seq) {
    _Atomic uint64_t* r = tsi_remote(s, line_id);
    uint64_t w = tsi_load_seq(&r[0]);
    while (tsi_remote_is(0, w, seq)) {
        if (tsi_cas_seq(&r[0], &w, w | TSI_REMOTE_TOKEN)) return true; /* T4 */
    }
    return false; /* the slab has left its incarnation: the token is void */
}
/* Takes the token out of the word if `threshold` slots are free. Returns true if the caller has it. */
TSI_INLINE bool tsi_line_disarm(TsiSpace* s, uint32_t line_id, uint32_t seq, unsigned threshold) {
    _Atomic uint64_t* r = tsi_remote(s, line_id);
    uint64_t w = tsi_load_seq(&r[0]); /* T4 */
    while (tsi_remote_is(0, w, seq) && (w & TSI_REMOTE_TOKEN) != 0) {
        if (tsi_popcount(tsi_line_free_bits(s, tsi_line(s, line_id), line_id)) < threshold) return false;
        if (tsi_cas_seq(&r[0], &w, w & ~TSI_REMOTE_TOKEN)) return true;
    }
    return false;
}

#endif
