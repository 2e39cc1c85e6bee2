/*
 * late_frees.h - counts the objects that live in slabs of ended phases, without a count in any free.
 *
 * An orphan is counted when it joins its incarnation's list, and leaves with that count. In between only late frees
 * change it. A late free sets a mark by its slab's chunk, one for a few slabs, normally there already; a thread that
 * needs the figures takes the marks and counts those slabs anew:
 *
 *   late free                             count
 *   bit in the remote word   (seq_cst)    marks = exchange 0     (seq_cst)
 *   mark set ? else set it   (seq_cst)    read the remote words  (seq_cst)
 *
 * At least one sees the other: the count has the bit, or the mark is set for the next count. So figures reported after
 * tsi_late_count are exact but for frees that are under way, and cost in proportion to slabs in which something was
 * freed late since.
 */
#ifndef TSI_HEAP_LATE_FREES_H
#define TSI_HEAP_LATE_FREES_H

#include "state/arena.h"

enum { TSI_LATE_SLABS_LOG2 = 2 }; /* slabs to a mark */

/* Marks a slab of no heap after a free in it, by its chunk and its number there. [any thread, needs no lock] */
TSI_INLINE void tsi_late_mark_in(TsiArena* a, uint32_t chunk, uint32_t number) {
    _Atomic uint64_t* marks = &a->space.chunks[chunk].late;
    uint64_t bit = 1ull << (number >> TSI_LATE_SLABS_LOG2);
    /* seq_cst, after the bit in the remote word: pairs with the exchange in tsi_late_count */
    if ((tsi_load_seq(marks) & bit) == 0) (void)tsi_or_seq(marks, bit);
}
/* Marks a slab of no heap after a free in it, by the slab's id. [any thread, needs no lock] */
TSI_INLINE void tsi_late_mark(TsiArena* a, uint32_t slab_id) {
    tsi_late_mark_in(a, tsi_slab_chunk(slab_id), tsi_slab_number(slab_id));
}
/* Counts anew what lives in orphans where something was freed late since the last count, tells their labels, and takes
 * the marks away. Takes their stripes, one after the other. O(chunks), and O(slabs) of those marked.
 * [any thread, no lock held but the segment's] */
void tsi_late_count(TsiArena* a);

/* Adds a slab, `live` of which lives, to the figures of its incarnation's orphans (inc->holding), and notes these
 * counts in the slab, in its first line's link or its region's `lim`, for tsi_late_leave_locked. [stripe held] */
void tsi_late_join_locked(TsiArena* a, TsiInc* inc, uint32_t slab_id, TsiTotals live);
/* Takes a slab away from the figures of its incarnation's orphans (inc->holding), with what tsi_late_join_locked
 * counted it with; the counts in the slab stay. [stripe held] */
void tsi_late_leave_locked(TsiArena* a, TsiInc* inc, uint32_t slab_id);
/* Sets what the label reports of the incarnation as draining, once its state, label or orphans have changed, and, once
 * it has ended, posts its freed objects where no heap holds slabs of it. [stripe held] */
void tsi_late_post_locked(TsiArena* a, TsiInc* inc);
/* Tells the label what the incarnation holds, like tsi_late_post_locked, if the label may have to be told.
 * [stripe held] */
TSI_INLINE void tsi_late_note_locked(TsiArena* a, TsiInc* inc) {
    TSI_HOLDS(tsi_inc_lock(inc));
    if (TSI_UNLIKELY((inc->holding.objects | inc->draining.label) != 0)) tsi_late_post_locked(a, inc);
}
/* Returns the time, in nanoseconds, since which the incarnation is open. The first one of id 0 is as old as its
 * allocator. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_inc_since(const TsiArena* a, TsiInc* inc) {
    uint64_t since = tsi_load_relaxed(&inc->open_since_ns);
    return since < a->born_ns ? a->born_ns : since;
}

/* Counts every orphan of open incarnations anew (inc->holding), tells the labels, and frees the labels' drain locks.
 * [fork child] */
void tsi_late_child(TsiArena* a);

#endif
