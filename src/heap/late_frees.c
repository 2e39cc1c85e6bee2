/* late_frees.c - see late_frees.h. */
#include "heap/late_frees.h"

#include "account/charge.h"
#include "state/liveness.h"
#include "mem/region.h"
#include "phase/draining.h"

/* An orphan's counts stand in its first line's link, which is free since an orphan is in no room, and a region's in
 * `lim`, since nobody bumps in it. Objects of a region have sizes of their own, so their granules are kept beside their
 * number. */
enum { GRANULES_SHIFT = 16 };
_Static_assert((TSI_REGION_MAX - TSI_GRANULE) >> TSI_GRANULE_SHIFT < 1 << GRANULES_SHIFT, "a region's counts fit");

/* Returns where the count of an orphan's live objects stands: the link of its first line. cls: a class with lines.
 * [stripe held] */
static uint32_t* link_of(TsiArena* a, unsigned cls, uint32_t slab_id) {
    return &tsi_line(&a->space, tsi_first_line(&a->space.classes->c[cls], slab_id))->link;
}

/* Adds the counts that stand in an orphan, and its bytes, to its incarnation's (inc->holding; sign 1), or takes them
 * away (-1). [stripe held] */
TSI_INLINE void holding_add_locked(TsiArena* a, TsiInc* inc, uint32_t slab_id, int sign) {
    TSI_HOLDS(tsi_inc_lock(inc));
    unsigned cls = tsi_class_of_slab(&a->space, slab_id);
    uint64_t objects, live_bytes, slab_bytes = tsi_slab_bytes(&a->space, cls, slab_id);
    if (tsi_class_is_region(cls)) {
        uint32_t word = tsi_load_relaxed(&tsi_region(&a->space, slab_id)->lim);
        objects = word & ((1u << GRANULES_SHIFT) - 1);
        live_bytes = (uint64_t)(word >> GRANULES_SHIFT) * TSI_GRANULE;
    } else {
        objects = *link_of(a, cls, slab_id);
        live_bytes = objects * (cls == TSI_CLASS_LARGE ? slab_bytes : a->space.classes->c[cls].size);
    }
    inc->holding.objects += sign * objects;
    inc->holding.live_bytes += sign * live_bytes;
    inc->holding.slab_bytes += sign * slab_bytes;
}

void tsi_late_join_locked(TsiArena* a, TsiInc* inc, uint32_t slab_id, TsiTotals live) {
    TSI_HOLDS(tsi_inc_lock(inc));
    unsigned cls = tsi_class_of_slab(&a->space, slab_id);
    uint32_t word = (uint32_t)(live.objects | live.bytes / TSI_GRANULE << GRANULES_SHIFT);
    if (tsi_class_is_region(cls)) tsi_store_relaxed(&tsi_region(&a->space, slab_id)->lim, word);
    else *link_of(a, cls, slab_id) = (uint32_t)live.objects;
    holding_add_locked(a, inc, slab_id, 1);
}

void tsi_late_leave_locked(TsiArena* a, TsiInc* inc, uint32_t slab_id) {
    TSI_HOLDS(tsi_inc_lock(inc));
    holding_add_locked(a, inc, slab_id, -1);
}

void tsi_late_post_locked(TsiArena* a, TsiInc* inc) {
    TSI_HOLDS(tsi_inc_lock(inc));
    unsigned state = tsi_inc_state(inc);
    bool drains = state == TSI_INC_ADVANCED || state == TSI_INC_CLOSED;
    if (state != TSI_INC_ACTIVE && (inc->heaps | inc->skipped) == 0) tsi_post_settled_locked(a, NULL, inc);
    tsi_draining_set_locked(&a->phases, inc, tsi_inc_since(a, inc), drains ? inc->holding : (TsiHolding){0, 0, 0});
}

/* Returns true if the slab is an ORPHAN or PARTIAL, with its incarnation in *inc, which stays as it was otherwise.
 * Final only under that one's stripe. [any thread, needs no lock] */
static bool is_orphan(TsiArena* a, uint32_t slab_id, TsiInc** inc) {
    uint64_t tag = tsi_load_seq(&tsi_slab(&a->space, slab_id)->tag);
    unsigned state = tsi_tag_state(tag);
    if (state != TSI_SLAB_ORPHAN && state != TSI_SLAB_PARTIAL) return false;
    *inc = tsi_inc(&a->phases, tsi_tag_index(tag));
    return true;
}

/* Counts anew what lives in the slab, if it is an orphan of class cls, in its incarnation's figures, and tells the
 * label. Takes that one's stripe. [any thread, no stripe held] */
static void count_slab(TsiArena* a, uint32_t slab_id, unsigned cls) {
    TsiInc *inc, *now;
    if (!is_orphan(a, slab_id, &inc)) return;
    tsi_lock_take(tsi_inc_lock(inc)); /* not counted for the phase: it is ours */
    /* Orphans are claimed under the stripe, so an orphan seen now stays while it is held. */
    if (tsi_class_of_slab(&a->space, slab_id) == cls && is_orphan(a, slab_id, &now) && now == inc) {
        tsi_late_leave_locked(a, inc, slab_id);
        tsi_late_join_locked(a, inc, slab_id, tsi_slab_sum(&a->space, cls, slab_id).live);
        tsi_late_note_locked(a, inc);
    }
    tsi_lock_give(tsi_inc_lock(inc));
}

void tsi_late_count(TsiArena* a) {
    TsiSpace* s = &a->space;
    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        _Atomic uint64_t* marks = &s->chunks[chunk].late;
        unsigned cls = tsi_load_relaxed(marks) != 0 ? tsi_chunk_class(s, chunk) : 0;
        if (cls == 0 || cls == TSI_CLASS_CONT) continue;
        uint32_t slabs = tsi_chunk_slab_count(s, cls);
        for (uint64_t left = tsi_swap_seq(marks, 0); left != 0; left &= left - 1) { /* pairs with tsi_late_mark */
            uint32_t first = (uint32_t)tsi_ctz64(left) << TSI_LATE_SLABS_LOG2;
            for (uint32_t k = first; k < first + (1u << TSI_LATE_SLABS_LOG2) && k < slabs; k++)
                count_slab(a, tsi_slab_id(chunk, k), cls);
        }
    }
}

void tsi_late_child(TsiArena* a) {
    TsiLabels* labels = &a->phases.labels;
    TsiSpace* s = &a->space;
    for (uint32_t at = 0; at < tsi_table_used(&labels->records); at++)
        tsi_lock_reset(&tsi_label(labels, at)->drain_lock);
    for (uint32_t n = 1; n < tsi_table_used(&a->phases.incs); n++) {
        TsiInc* inc = tsi_inc(&a->phases, n);
        if (tsi_inc_era(inc) == 0) continue;
        tsi_lock_take(tsi_inc_lock(inc));
        inc->holding = (TsiHolding){0, 0, 0};
        for (uint32_t at = inc->orphans; at != 0; at = tsi_slab(s, at - 1)->next)
            tsi_late_join_locked(a, inc, at - 1, tsi_slab_sum(s, tsi_class_of_slab(s, at - 1), at - 1).live);
        tsi_late_note_locked(a, inc);
        tsi_lock_give(tsi_inc_lock(inc));
    }
}
