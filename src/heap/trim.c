/* trim.c - see trim.h. */
#include "heap/trim.h"

#include "account/charge.h"
#include "state/bracket.h"
#include "heap/finish.h"
#include "threads/bank.h"
#include "heap/late_frees.h"
#include "heap/records.h"
#include "heap/sweep.h"
#include "heap/warm.h"

enum { BANKS_LEAST = 16 /* lines that were freed in: fewer are not worth a trim */ };

/* ---- handover ---- */

/* Hands over the thread's heaps of h's incarnation that were asked for (tsi_sweep_handed_locked), settles slabs that
 * sweeps have left to it there, and fences the thread's brackets first if that is due. `leaves`: it lets go of them for
 * long, with their empty slabs. Cleanups may run, and h may be gone afterwards. Does nothing more if h is in no
 * incarnation. [own thread, no lock held, no bracket open] */
static void hand_over(TsiBinding* b, TsiHeap* h, bool leaves) {
    TsiArena* a = b->arena;
    TsiRef ref = tsi_load_relaxed(&h->ref);
    tsi_binding_apply_fence(b);
    if (ref == 0 || h == &tsi_no_heap) return;
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    TsiSweep sweep = {.arena = a, .b = b, .inc = inc, .leaves = leaves, .learns = leaves};
    tsi_phase_lock(inc);
    bool current = tsi_inc_era(inc) == tsi_ref_era(ref);
    if (current) {
        inc->pins++;
        if (tsi_load_relaxed(&b->dead_heaps) != 0) tsi_sweep_skipped_locked(&sweep, b, ref);
        tsi_sweep_handed_locked(&sweep, b);
        if (tsi_inc_state(inc) != TSI_INC_ACTIVE) tsi_post_swept_locked(a, b, inc);
        tsi_late_note_locked(a, inc);
        tsi_sweep_uncharge(&sweep);
    }

    tsi_phase_unlock(inc);
    if (!current) return;
    tsi_sweep_finish(&sweep);
    tsi_inc_unpin(a, b, inc);
}

void tsi_handover(TsiBinding* b, TsiHeap* h) { hand_over(b, h, false); }
void tsi_handover_last(TsiBinding* b, TsiHeap* h) { hand_over(b, h, true); }

/* Returns a heap of the thread that somebody has asked for, or NULL. [own thread, needs no lock] */
static TsiHeap* asked_for(TsiBinding* b) {
    for (uint32_t at = b->own_heaps; at != 0; at = tsi_heap(b->arena, at - 1)->own_next) {
        unsigned state = tsi_heap_state(tsi_load_seq(&tsi_heap(b->arena, at - 1)->word));
        if (state == TSI_HEAP_RETIRE || state == TSI_HEAP_REVOKED) return tsi_heap(b->arena, at - 1);
    }
    return NULL;
}

/* Fences the thread's brackets. Hands over heaps that sweeps have left to it because they could not see it, too: it
 * might never use those again. */
void tsi_binding_fence(TsiBinding* b) {
    if (b->live_word == TSI_FENCED) return;
    b->live_word = TSI_FENCED;
    tsi_tls.number = 0;              /* its lanes call from here on: Y2 in api/lane.c */
    tsi_store_seq(&b->fenced, true); /* pairs with tsi_binding_is_fenced */
    for (TsiHeap* h; (h = asked_for(b)) != NULL;) tsi_handover(b, h);
}

/* ---- trim ---- */

/* Returns true if the phase is another thread's alone, and so left to that. Asked under its stripe, since the record
 * may be about to be opened. [stripe held] */
static bool is_anothers_locked(TsiInc* inc) {
    TSI_HOLDS(tsi_inc_lock(inc));
    if (tsi_inc_state(inc) != TSI_INC_ACTIVE) return false; /* first: a thread that sees it open sees its owner */
    uint32_t owner = tsi_load_relaxed(&inc->owner);
    return TSI_UNLIKELY(owner != 0) && (tsi_tls.thread == NULL || owner != tsi_tls.thread->index + 1);
}

/* Gives the stripe and the banks of a trim that passes the incarnation by. Returns false: nothing is left to others.
 * [stripe held, and given] */
static bool pass_by(TsiArena* a, TsiInc* inc, unsigned banks) {
    tsi_phase_unlock(inc);
    tsi_banks_give(a, banks);
    return false;
}

/* Gives the empty slabs of one incarnation back, or of the heaps of one binding there if `only` is not NULL; passes
 * over another thread's own. at_once: nothing is kept. Returns like tsi_trim_inc.
 * [any thread, no lock held, no bracket open] */
static bool trim_inc(TsiArena* a, TsiBinding* b, TsiInc* inc, TsiBinding* only, bool at_once) {
    TsiSweep sweep = {.arena = a, .b = b, .inc = inc, .at_once = at_once};
    sweep.banks = only == NULL ? tsi_banks_take(a) : 0;
    tsi_phase_lock(inc);
    if (only == NULL && is_anothers_locked(inc)) return pass_by(a, inc, sweep.banks);
    tsi_sweep_whole(&sweep, only);
    return sweep.deferred_bytes != 0;
}

bool tsi_trim_inc(TsiArena* a, TsiBinding* b, TsiInc* inc) { return trim_inc(a, b, inc, NULL, false); }

void tsi_trim_idle(TsiArena* a, TsiBinding* b, TsiInc* inc) {
    TsiSweep sweep = {.arena = a, .b = b, .inc = inc, .idle = true, .lends = true, .learns = true};
    sweep.banks = tsi_banks_take(a);
    tsi_phase_lock(inc);
    if (is_anothers_locked(inc)) (void)pass_by(a, inc, sweep.banks);
    else tsi_sweep_whole(&sweep, NULL);
}

bool tsi_trim(TsiArena* a, TsiBinding* b, TsiBinding* only) {
    bool left = false;
    tsi_sweep_unswept(a, b);
    for (uint32_t index = 1; index < tsi_table_used(&a->phases.incs); index++) {
        TsiInc* inc = tsi_inc(&a->phases, index);
        if (tsi_load_relaxed(&inc->heap_count) != 0 || tsi_load_relaxed(&inc->slab_count) != 0)
            left |= trim_inc(a, b, inc, only, true);
    }
    return left;
}

void tsi_heap_scavenge(TsiBinding* b, TsiHeap* h) {
    TsiArena* a = b->arena;
    TsiSweep sweep = {.arena = a, .b = b, .inc = tsi_heap_inc(a, h), .lends = a->options.decay_ms != 0};
    tsi_phase_lock(sweep.inc);
    tsi_sweep_whole(&sweep, b);
}

void tsi_trim_banks(TsiArena* a, TsiBinding* b) {
    TsiRef ref = tsi_phases_current(&a->phases);
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    uint64_t opened = tsi_banks_opened(a), before = tsi_load_relaxed(&a->opened), slabs = 0;
    if (opened - before < BANKS_LEAST) return;
    tsi_phase_lock(inc);
    for (uint32_t at = tsi_inc_era(inc) == tsi_ref_era(ref) ? inc->heaps : 0; at != 0;
         at = tsi_heap(a, at - 1)->inc_next)
        slabs += tsi_load_relaxed(&tsi_heap(a, at - 1)->slab_count);
    tsi_phase_unlock(inc);
    if (opened - before <= slabs / 2) return;
    tsi_store_relaxed(&a->opened, opened);
    (void)trim_inc(a, b, inc, NULL, false);
}

bool tsi_trim_all(TsiArena* a, TsiBinding* b) {
    bool left = tsi_trim(a, b, NULL);
    return !tsi_warm_give_up(a) || left;
}

bool tsi_trim_for_room(TsiArena* a, TsiBinding* b) {
    bool left = false;
    tsi_sweep_unswept(a, b);
    uint32_t look = tsi_add_relaxed(&a->room_looks, 1) + 1;
    for (uint32_t n = 0; n < tsi_table_used(&a->heaps); n++) {
        TsiRef ref = tsi_load_relaxed(&tsi_heap(a, n)->ref);
        if (ref == 0) continue;
        TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
        if (tsi_load_relaxed(&inc->room_look) == look) continue; /* another of its heaps */
        tsi_store_relaxed(&inc->room_look, look);
        left |= trim_inc(a, b, inc, NULL, true);
    }
    return !tsi_warm_give_up(a) || left;
}
