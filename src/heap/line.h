/*
 * line.h - lines of a heap: refill, parking, and the inbox that tells of frees by others.
 */
#ifndef TSI_HEAP_LINE_H
#define TSI_HEAP_LINE_H

#include "state/arena.h"

/* ---- lines ---- */

/* Hands out the n free slots `out`, a bit each, of a line whose avail is empty: they are its avail, `rest` its freed
 * word, and its issued count rises by n. All refills end here. [owner, in bracket] */
TSI_INLINE void tsi_line_hand_out(TsiLine* l, uint64_t out, uint64_t rest, unsigned n) {
    tsi_store_release(&l->avail, out);  /* invariant F: before the bits leave freed */
    tsi_store_release(&l->freed, rest); /* pairs with the acquires of tests whether a slot is free */
    tsi_store_release(&l->issued, tsi_load_relaxed(&l->issued) + n); /* last: pairs with tsi_line_handed_out */
}
/* Refills a line whose avail is empty, if its owner and others have freed at least `least` slots there: moves the
 * lowest of them, at most tsi_line_batch, to avail, with their counts of handles made even; the rest stays freed. With
 * a profile it moves no more than up to the next sampled slot, and sets b->profile_hit if the first is that
 * (tsi_profile_cut). Slots that both had freed are counted as refused. Returns the number that avail has then, or 0,
 * changing nothing. [owner, in bracket] */
unsigned tsi_line_refill(TsiBinding* b, TsiLine* l, const TsiClass* shape, unsigned least);
/* Puts a line whose avail is empty, and which is in no queue, where its free slots will be found: at the back of the
 * queue in its primary's room if it has fewer than the class's threshold; parked, with its token in the word, if it has
 * none. Returns false, and does neither, if it has enough for a refill; the token may be in the word then.
 * [owner, in bracket] */
bool tsi_line_leave(TsiBinding* b, unsigned cls, TsiLine* l);
/* Makes the counts of `slots`, a bit each, even, as they are handed out, if a handle may have been issued in their slab
 * (its tag has TSI_SLAB_HANDLED); the line is marked as handled then. [owner, in bracket] */
void tsi_line_counts_even(TsiSpace* s, TsiLine* l, const TsiClass* shape, uint64_t slots);
/* Frees a slot, which the caller has checked, in l, a line of one of b's heaps: sets its bit in `freed`, and puts a
 * parked line at the back of its queue in the primary's room, if that has a room. [owner, in bracket] */
void tsi_line_freed(TsiBinding* b, TsiLine* l, unsigned slot);
/* Tells the owner of an armed line, by its inbox, that slots were freed there, if `threshold` are free and its slab is
 * in no inbox yet; `seq` is the slab's when they were freed. Where nobody owns the heap the token goes back into the
 * word. The owner looks in its next slow path. [any thread, no lock held] */
void tsi_line_notify(TsiArena* a, uint32_t line_id, uint32_t slab_id, uint32_t seq);
/* Takes back the token of a line of h, the owner's, if it has come home or `threshold` slots are free, and files a
 * parked line that has free slots in the room of h's primary, if there is one, counted as unparked. `seq` is the
 * slab's. [owner, in bracket, or fork child] */
void tsi_line_take_in(TsiBinding* b, const TsiHeap* h, unsigned cls, uint32_t line_id, uint32_t seq);
/* Empties b's inbox: takes in the tokens of each slab that others have told the owner of, hands over a heap of b's that
 * was asked for, and sends the tokens of slabs that are no more b's on to their owners. Cleanups may run.
 * [own thread, no lock held, no bracket open] */
void tsi_inbox_drain(TsiBinding* b);
/* Takes in b's inbox like tsi_inbox_drain and closes it (TSI_INBOX_CLOSED): pushes fail from now on, until the binding
 * is made again. [own thread, no lock held, no bracket open] */
void tsi_inbox_close(TsiBinding* b);

/* ---- the token of a parked line (T1-T4 in line.c): the thread that takes it out tells the owner of room ---- */

/* Returns the slots that a refill could hand out, a bit each: those that the owner or others have freed, without those
 * in avail and without holes. line_id is that of l. A hint for threads other than the owner.
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
/* Takes the token out of the line's remote word, if it is there and `threshold` slots or more are free, in the slab
 * incarnation `seq`. Returns true if the caller has the token, and must deliver it or put it back (T2); false, changing
 * nothing, otherwise. [any thread, needs no lock] */
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
