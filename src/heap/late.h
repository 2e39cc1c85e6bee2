/*
 * late.h - how many objects live in the slabs that ended phases hold, without a count in any free.
 *
 * An orphan is counted when it joins its incarnation's list, and leaves with what it was counted for. In between only
 * late frees change it. A late free leaves a mark by its slab's chunk, one for a few slabs, which is there already
 * mostly; whoever wants the figures takes the marks and counts those slabs anew:
 *
 *   late free                             count
 *   bit in the remote word   (seq_cst)    marks = exchange 0     (seq_cst)
 *   mark set ? else set it   (seq_cst)    read the remote words  (seq_cst)
 *
 * One sees the other: the count has the bit, or the mark is set for the next one. So figures that are told after
 * tsi_late_count are exact but for frees that are under way, and what they cost is in proportion to slabs in which
 * something was freed late since.
 */
#ifndef TSI_HEAP_LATE_H
#define TSI_HEAP_LATE_H

#include "state/arena.h"

enum { TSI_LATE_SLABS_LOG2 = 2 }; /* slabs to a mark */

/* After a free in a slab of no heap, by its chunk and its number there. */
TSI_INLINE void tsi_late_mark_in(TsiArena* a, uint32_t chunk, uint32_t number) {
    _Atomic uint64_t* marks = &a->space.chunks[chunk].late;
    uint64_t bit = 1ull << (number >> TSI_LATE_SLABS_LOG2);
    /* seq_cst, after the bit in the remote word: pairs with the exchange in tsi_late_count */
    if ((tsi_load_seq(marks) & bit) == 0) (void)tsi_or_seq(marks, bit);
}
TSI_INLINE void tsi_late_mark(TsiArena* a, uint32_t slab_id) {
    tsi_late_mark_in(a, tsi_slab_chunk(slab_id), tsi_slab_number(slab_id));
}
/* Counts anew where something was freed late. No lock held. */
void tsi_late_count(TsiArena* a);

/* A slab joins the orphans of its incarnation with what lives in it, and leaves them. Stripe held. */
void tsi_late_join_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, TsiTotals live);
void tsi_late_leave_locked(TsiArena* a, TsiInc* i, uint32_t slab_id);
/* What the label is told of the incarnation, once its state, label or orphans have changed. Stripe held. */
void tsi_late_post_locked(TsiArena* a, TsiInc* i);
TSI_INLINE void tsi_late_note_locked(TsiArena* a, TsiInc* i) {
    TSI_HOLDS(tsi_inc_lock(i));
    if (TSI_UNLIKELY((i->holding.objects | i->draining.label) != 0)) tsi_late_post_locked(a, i);
}
/* The first incarnation of id 0 was open before its first slab, but not before its allocator. */
TSI_INLINE uint64_t tsi_inc_since(const TsiArena* a, TsiInc* i) {
    uint64_t since = tsi_load_relaxed(&i->open_since_ns);
    return since < a->born_ns ? a->born_ns : since;
}

/* In a fork child: every orphan counted anew, and no lock of a label held. */
void tsi_late_child(TsiArena* a);

#endif
