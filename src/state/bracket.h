/*
 * bracket.h - how an owner touches its slabs without atomic read-modify-writes.
 *
 *   owner                                  sweeper
 *   busy = name          (release)         heap word LIVE -> REVOKED   (seq_cst)
 *   -- compiler fence --                   membarrier
 *   word == LIVE ? else leave              read busy                   (acquire)
 *   ... plain stores to the words ...      names nothing here: take the heap
 *   busy = 0             (release)         names slab X: take all but X
 *   -- compiler fence --                   names the heap: leave it to the owner
 *   word == LIVE ? else hand over
 *
 * Invariants
 *   B1  The owner writes words of a slab only between a check that saw LIVE and busy = 0.
 *   B2  After the membarrier every later check of that owner sees REVOKED, and every bracket that
 *       saw LIVE is visible in busy until it ends. So what busy does not name is the sweeper's.
 *   B3  Every bracket that named a line or heap of the thread and whose first or last check does not
 *       see LIVE ends in tsi_handover *of the heap that the line is in*, so what busy named is settled by its owner
 *       before its call returns. A fast path may name a line of another heap than it checks: a room outlives
 *       the heap's last sweep, a pointer may be stale.
 *   B4  Renaming goes through busy = 0 and a check, never X -> Y directly. The name of no line is as good as 0.
 *   B5  None of a thread's heaps becomes LIVE in an incarnation where the thread has one that it was asked for, except
 *       inside a bracket of that one (tsi_heap_make, tsi_heap_adopt_more). So when a sweep leaves a heap to an owner
 *       that names the whole incarnation, what the owner checks as it leaves is a heap that the sweep has revoked, too.
 *
 * busy = name and busy = 0 are releases so that the sweeper's acquire orders the owner's plain
 * stores before its own (on arm64 it would otherwise read stale words). Where the kernel has no
 * membarrier, live_word is TSI_FENCED, every call takes the slow path, and there the stores to busy are
 * seq_cst exchanges, which pair with the sweeper's seq_cst compare-exchange of the heap word. A fast path names its
 * line before it finds that out, by a release; a sweep that has seen the name leaves the slab to the thread, which
 * therefore takes the name back by an exchange, and then looks at the heap's word (tsi_bracket_missed).
 *
 * A membarrier that fails later proves nothing about owners whose brackets are not fenced: the sweeper leaves such a
 * heap REVOKED to its owner, or to a sweep that can prove more (TSI_NO_TICKET). From then on every owner changes to the
 * fenced form, on its next slow path outside of brackets, and sets `fenced`, so that sweeps without a membarrier can
 * take its heaps.
 */
#ifndef TSI_STATE_BRACKET_H
#define TSI_STATE_BRACKET_H

#include "state/arena.h"

/* Hands over the thread's heaps of h's incarnation whose word is RETIRE or REVOKED: settles what sweeps have left to it
 * of them, the slab that it was busy with, and gives them up, so that h may be free or another's afterwards. Takes the
 * stripe, and fences the binding if a membarrier has failed. Does nothing more if h is in no incarnation; b->busy is 0
 * (B3). In trim.c. [own thread, no lock held, no bracket open] */
void tsi_handover(TsiBinding* b, TsiHeap* h);
/* Does what tsi_handover does, but gives the heaps' empty slabs back, too: the thread lets go of them for long. In
 * trim.c. [own thread, no lock held, no bracket open] */
void tsi_handover_last(TsiBinding* b, TsiHeap* h);
/* Returns the heap that owns the slab of the line or region in `busy`, by the slab's tag, or NULL if none does; sets
 * *slab_id to that slab. The line may be any of the arena: a stale pointer's, or one that a room still names though its
 * slab has gone elsewhere. Its owner and a sweeper may both ask, and get one answer for as long as that heap owns the
 * slab. In sweep.c. [any thread, needs no lock] */
TsiHeap* tsi_busy_heap(TsiArena* a, uint64_t busy, uint32_t* slab_id);
/* Leaves a bracket of a fast path whose first check failed: sets b->busy to 0, and hands over the heap that the line
 * named there belongs to, if that is b's and was asked for (B3). Does nothing if b->busy is 0 already. In sweep.c.
 * [own thread, no lock held] */
void tsi_bracket_missed(TsiBinding* b);

/* A membarrier has failed in this process. */
extern _Atomic bool tsi_barrier_failed;
/* Makes all brackets that other threads were inside of visible, by a membarrier. Returns true if it was done; false if
 * the system has none, or has refused, which sets tsi_barrier_failed: then what was seen of `busy` holds for fenced
 * owners only. [any thread, needs no lock] */
bool tsi_barrier(void);
/* Turns the binding's brackets to the fenced form for good: sets live_word to TSI_FENCED and `fenced`, and takes its
 * lanes' fast paths (tsi_tls.number 0). Then hands over its heaps that were asked for. Does nothing if it is fenced.
 * [own thread, no lock held, no bracket open] */
TSI_COLD void tsi_binding_fence(TsiBinding* b);
/* Calls tsi_binding_fence if tsi_barrier_failed is set: a membarrier has failed in this process. Called on slow paths.
 * [own thread, no lock held, no bracket open] */
TSI_INLINE void tsi_binding_apply_fence(TsiBinding* b) {
    if (TSI_UNLIKELY(tsi_load_relaxed(&tsi_barrier_failed))) tsi_binding_fence(b);
}
/* Returns true if the binding's brackets are fenced. acquire: pairs with tsi_binding_fence: its unfenced brackets are
 * over, and visible. [any thread, needs no lock] */
TSI_INLINE bool tsi_binding_is_fenced(TsiBinding* b) { return tsi_load_seq(&b->fenced); }

/* Returns the name of a line, or of a region passed as one, for a bracket. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_busy_line(const TsiLine* l) { return (uint64_t)(uintptr_t)l; }
/* Returns the name, for a bracket, of all heaps that the thread has in the heap's incarnation.
 * [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_busy_all(const TsiHeap* h) { return (uint64_t)(uintptr_t)h | 1; }

/* Opens a bracket on what `name` names (of tsi_busy_line or tsi_busy_all), fast form: sets b->busy, without a fence.
 * Then the caller compares the heap's word with b->live_word itself, which never matches in a fenced binding, and
 * clears the name if they differ. [own thread, no bracket open] */
TSI_INLINE void tsi_bracket_name(TsiBinding* b, uint64_t name) {
    tsi_store_release(&b->busy, name); /* pairs with the acquire in sweep.c */
    tsi_compiler_fence();              /* pairs with the sweeper's membarrier */
}
/* Ends a bracket, fast form: sets b->busy to 0. Then the caller reads the heap's word again, and calls tsi_handover if
 * that is not b->live_word. [own thread, in the open bracket] */
TSI_INLINE void tsi_bracket_clear(TsiBinding* b) {
    tsi_store_release(&b->busy, 0); /* pairs with the acquire in sweep.c */
    tsi_compiler_fence();           /* pairs with the sweeper's membarrier */
}

/* Returns true if the heap's word is LIVE with b as its owner. [any thread, needs no lock] */
TSI_INLINE bool tsi_heap_is_live(TsiBinding* b, TsiHeap* h) {
    /* seq_cst: with the fenced form, pairs with the sweeper's compare-exchange */
    return tsi_load_seq(&h->word) == tsi_heap_word(b->index, TSI_HEAP_LIVE);
}

/* Opens a bracket on what `name` names (of tsi_busy_line or tsi_busy_all): sets b->busy, with a fence if the binding is
 * fenced. Returns true with it open; false, with none open, if the heap's word is not LIVE and b's, and then hands over
 * the heap if it was asked for. [own thread, no lock held, no bracket open] */
TSI_INLINE bool tsi_bracket_enter(TsiBinding* b, TsiHeap* h, uint64_t name) {
    if (b->live_word == TSI_FENCED) (void)tsi_swap_seq(&b->busy, name);
    else tsi_bracket_name(b, name);
    if (TSI_LIKELY(tsi_heap_is_live(b, h))) return true;
    tsi_store_release(&b->busy, 0);
    tsi_handover(b, h);
    return false;
}
/* Ends a bracket, which tsi_bracket_enter has opened on h: sets b->busy to 0, and hands the heap over if its word is
 * not LIVE and b's any more. [own thread, no lock held, in the open bracket] */
TSI_INLINE void tsi_bracket_leave(TsiBinding* b, TsiHeap* h) {
    if (b->live_word == TSI_FENCED) (void)tsi_swap_seq(&b->busy, 0);
    else tsi_bracket_clear(b);
    if (TSI_UNLIKELY(!tsi_heap_is_live(b, h))) tsi_handover(b, h);
}

#endif
