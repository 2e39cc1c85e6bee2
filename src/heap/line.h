/*
 * line.h - lines of a heap: refill, parking, and the inbox that tells of frees by others.
 */
#ifndef TSI_HEAP_LINE_H
#define TSI_HEAP_LINE_H

#include "state/arena.h"

/* ---- lines ---- */

/* Hands out the n free slots `out`, a bit each, of a used-up line; `rest` stays freed. All refills end here.
 * [owner, in bracket] */
TSI_INLINE void tsi_line_hand_out(TsiLine* l, uint64_t out, uint64_t rest, unsigned n) {
    tsi_store_release(&l->avail, out);  /* invariant F: before the bits leave freed */
    tsi_store_release(&l->freed, rest); /* pairs with the acquires of tests whether a slot is free */
    tsi_store_release(&l->issued, tsi_load_relaxed(&l->issued) + n); /* last: pairs with tsi_line_handed_out */
}
/* Moves slots that the owner or others have freed to avail if there are at least `least`. Returns the number that avail
 * has then, or 0. The line is used up. [owner, in bracket] */
unsigned tsi_line_refill(TsiBinding* b, TsiLine* l, const TsiClass* shape, unsigned least);
/* Puts a used-up line, which is in no queue, where its free slots will be found: at the back of the room's queue if it
 * has a few, otherwise it is parked. Returns false, and does neither, if it has enough for a refill.
 * [owner, in bracket] */
bool tsi_line_leave(TsiBinding* b, unsigned cls, TsiLine* l);
/* Makes the counts of `slots` even, as they are handed out, if a handle may have been issued in their slab.
 * [owner, in bracket] */
void tsi_line_counts_even(TsiSpace* s, TsiLine* l, const TsiClass* shape, uint64_t slots);
/* Frees a slot, which the caller has checked: sets its bit, and files a parked line in its room. [owner, in bracket] */
void tsi_line_freed(TsiBinding* b, TsiLine* l, unsigned slot);
/* Tells the owner of a parked line that slots were freed there, if it waits for that; `seq` is the slab's when they
 * were. [any thread, no lock held] */
void tsi_line_notify(TsiArena* a, uint32_t line_id, uint32_t slab_id, uint32_t seq);
/* Takes back the token of a line of h, the owner's, if it has come home, and files the line if it has room. `seq` is
 * the slab's. [owner, in bracket, or fork child] */
void tsi_line_take_in(TsiBinding* b, const TsiHeap* h, unsigned cls, uint32_t line_id, uint32_t seq);
/* Takes in the slabs that others have told the owner of. [own thread, no lock held, no bracket open] */
void tsi_inbox_drain(TsiBinding* b);
/* Takes in the inbox and closes it: nothing is pushed there from now on. [own thread, no lock held, no bracket open] */
void tsi_inbox_close(TsiBinding* b);

/* ---- the token of a parked line (T1-T4 in line.c): the thread that takes it out tells the owner of room ---- */

/* Returns the slots, a bit each, that the owner could have, freed by itself or by others: a hint for other threads.
 * [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_line_free_bits(const TsiSpace* s, TsiLine* l, uint32_t line_id) {
    _Atomic uint64_t* r = tsi_remote(s, line_id);
    uint64_t w0 = tsi_load_seq(&r[0]), w1 = tsi_load_seq(&r[1]); /* T4 */
    uint64_t freed = tsi_load_acquire(&l->freed);                /* invariant F: remote before freed */
    return tsi_remote_bits(w0, w1) | (freed & s->classes->c[tsi_class_of_line(s, line_id)].full);
}
/* Puts the token into the line's remote word. Returns false if the slab has left the incarnation `seq`: the token is
 * void. [any thread that has the token] */
TSI_INLINE bool tsi_line_arm(TsiSpace* s, uint32_t line_id, uint32_t seq) {
    _Atomic uint64_t* r = tsi_remote(s, line_id);
    uint64_t w = tsi_load_seq(&r[0]);
    while (tsi_remote_is(0, w, seq)) {
        if (tsi_cas_seq(&r[0], &w, w | TSI_REMOTE_TOKEN)) return true; /* T4 */
    }
    return false; /* the slab has left its incarnation: the token is void */
}
/* Takes the token out of the line's remote word if `threshold` slots are free, in the slab incarnation `seq`. Returns
 * true if the caller has it. [any thread, needs no lock] */
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
