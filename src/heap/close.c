/*
 * close.c - the ends of incarnations: by a close, by the ring that moves on, and when nothing is left in them.
 *
 * An end sets the state under the stripe, sweeps, and fills the receipt before it gives the stripe back; what the
 * sweep has taken goes back after that. Invariants S2 and S4 of sweep.c are kept here: the state is set before the
 * sweep reads it, and a record is pinned from before the sweep until tsi_inc_unpin (records.h), which runs the cleanups
 * of an incarnation that has drained, with no lock held, and reuses its record.
 */
#include "heap/close.h"

#include "base/probes.h"
#include "account/charge.h"
#include "account/close_probes.h"
#include "heap/finish.h"
#include "threads/bank.h"
#include "heap/late_frees.h"
#include "observe/profile.h"
#include "heap/ready.h"
#include "heap/records.h"
#include "threads/registry.h"
#include "observe/stand_in.h"
#include "heap/sweep.h"
#include "heap/warm.h"
#include "phase/eras.h"

#include <string.h>

/* ---- ends: [no lock, no bracket] unless stated ---- */

static void sum_orphans_locked(TsiArena* a, TsiInc* i, TsiTotals* live) {
    TSI_HOLDS(tsi_inc_lock(i));
    for (uint32_t at = i->orphans; at != 0; at = tsi_slab(&a->space, at - 1)->next) {
        if (tsi_tag_state(tsi_load_seq(&tsi_slab(&a->space, at - 1)->tag)) == TSI_SLAB_PURGING) continue; /* empty */
        TsiSlabSum sum = tsi_slab_sum(&a->space, tsi_class_of_slab(&a->space, at - 1), at - 1);
        live->objects += sum.live.objects;
        live->bytes += sum.live.bytes;
    }
}

/* Adds what has escaped to the label, and with escape_stacks to the stacks that made it. live: what the label counts,
 * without objects in deferred slabs, which the profile has. */
static void post_escapes_locked(TsiSweep* w, TsiTotals live) {
    TSI_HOLDS(tsi_inc_lock(w->inc));
    if (live.objects != 0) tsi_post_escapes(w->arena, w->inc, live);
    if (w->arena->profile.escapes) tsi_profile_escaped(w->arena, tsi_ref(tsi_inc_era(w->inc), w->inc->index));
}

/* Sets `state`, sweeps and fills the receipt. now_ns: 0 where no clock was read. [stripe held, and given] */
static void end_swept(TsiSweep* w, unsigned state, EpochReceipt* out, uint64_t now_ns) {
    TsiInc* i = w->inc;
    unsigned was = tsi_inc_state(i);
    if (was < state) tsi_store_seq(&i->word, tsi_inc_era(i) << 2 | state);
    if (i->heaps != 0 || i->orphans != 0) tsi_sweep_locked(w, NULL);
    w->deferred += i->skipped; /* with those that an earlier end has skipped and nobody has settled yet */
    w->deferred_bytes += i->skipped_bytes;

    if (was == TSI_INC_ACTIVE && state != TSI_INC_ACTIVE) tsi_post_end_locked(w->arena, w->b, i, now_ns);
    tsi_post_locked(w->arena, w->b, i);
    /* after the ring has taken its id, too: nobody has looked at what lives there */
    bool drains = state == TSI_INC_CLOSED && was != TSI_INC_RELEASED && !i->escapes_posted;
    if (drains) i->escapes_posted = true;

    TsiTotals live = {0, 0};
    sum_orphans_locked(w->arena, i, &live);
    if (drains) w->escaped = live;
    if (drains && (live.objects | w->deferred) != 0) post_escapes_locked(w, live);
    tsi_receipt_fill_locked(i, live, out);
    tsi_late_note_locked(w->arena, i);

    tsi_sweep_uncharge(w);
    tsi_phase_unlock(i);
    tsi_banks_give(w->arena, w->banks);
    tsi_sweep_finish(w);
}

/* Adds the close's time to its classes, by the slabs that it looked at. */
static void count_close(TsiSweep* w, const TsiCloseTally* tally, uint64_t ns) {
    uint64_t all = 0;
    for (unsigned cls = 1; cls < TSI_CLASSES; cls++) all += tally->c[cls].scanned;
    for (unsigned cls = 1; cls < TSI_CLASSES && all != 0; cls++) {
        if (tally->c[cls].scanned == 0) continue;
        tsi_sweep_count(w, offsetof(TsiClassCounters, closes), cls, 1);
        tsi_sweep_count(w, offsetof(TsiClassCounters, close_ns), cls, tsi_share(ns, tally->c[cls].scanned, all));
    }
}

/* Logs an end, but not an ordinary one of a domain: those come too often. */
static void log_end(TsiSweep* w, const EpochReceipt* r) {
    if (r->rss_before == 0 && w->escaped.objects == 0) return;
    TsiCloseRow row = {tsi_os.now_ns(),    r->epoch_id,
                       r->epoch_era,       "",
                       r->objects_freed,   r->objects_released,
                       r->objects_escaped, r->bytes_freed,
                       r->bytes_released,  r->bytes_escaped,
                       r->slabs_returned,  r->bytes_returned,
                       r->slabs_deferred,  tsi_load_relaxed(&w->inc->purged),
                       r->rss_before,      r->rss_after,
                       r->close_ns};
    memcpy(row.label, r->label, sizeof row.label);
    tsi_closelog_end(&w->arena->closed_log, &row);
}

/* Logs what a measured end, begun at start_ns, has given back. */
static void log_measured(TsiSweep* w, EpochReceipt* r, uint64_t rss_before, uint64_t start_ns) {
    TsiInc* i = w->inc;
    uint64_t rss_after = tsi_os.rss_bytes();
    EpochReclamation row = {.epoch_id = r->epoch_id,
                            .epoch_era = r->epoch_era,
                            .rss_before = rss_before,
                            .rss_after = rss_after,
                            .rss_delta = (int64_t)(rss_before - rss_after),
                            .was_closed = true};
    memcpy(row.label, r->label, sizeof row.label);
    tsi_lock_take(tsi_inc_lock(i));
    i->rss_before = r->rss_before = rss_before;
    i->rss_after = r->rss_after = rss_after;
    tsi_lock_give_probed(tsi_inc_lock(i));
    tsi_closelog_note(&w->arena->closed_log, row, w->tally);
    count_close(w, w->tally, tsi_os.now_ns() - start_ns);
}

bool tsi_epoch_end(TsiArena* a, TsiRef ref, EpochCloseMode mode, TsiEnding how, EpochReceipt* out) {
    TsiInc* i = tsi_inc(&a->phases, tsi_ref_index(ref));
    bool asked = how == TSI_END_ASKED;
    TsiSweep w = {.arena = a, .b = tsi_binding_get(a, false), .inc = i, .at_once = asked, .learns = !asked};
    w.puts_off = !asked && w.b != NULL;
    bool holds = tsi_load_relaxed(&i->heap_count) != 0 || tsi_load_relaxed(&i->slab_count) != 0;
    uint64_t rss_before = holds && asked ? tsi_os.rss_bytes() : 0, start = 0;
    if (holds || tsi_inc_peak(i) != 0) start = asked ? tsi_os.now_ns() : tsi_os.quick_ns();

    TsiCloseTally tally;
    EpochReceipt unwanted;
    if (out == NULL) out = &unwanted;
    if (rss_before != 0) memset(w.tally = &tally, 0, sizeof tally);
    w.banks = tsi_banks_take(a);
    tsi_phase_lock(i);
    if (ref == 0 || tsi_inc_era(i) != tsi_ref_era(ref)) {
        tsi_phase_unlock(i);
        tsi_banks_give(a, w.banks);
        return false;
    }

    i->pins += how != TSI_END_OWN;
    memset(out, 0, sizeof *out);
    end_swept(&w, mode == EPOCH_RELEASE ? TSI_INC_RELEASED : TSI_INC_CLOSED, out, start);

    uint64_t end = start == 0 ? 0 : asked ? tsi_os.now_ns() : tsi_os.quick_ns();
    out->close_ns = end > start ? end - start : 0;
    if (rss_before != 0) log_measured(&w, out, rss_before, start);

    tsi_receipt_returned(&w, out);
    tsi_tell_close(a, mode, out, w.escaped);
    log_end(&w, out);
    if (TSI_UNLIKELY(a->stand_ins != NULL))
        mode == EPOCH_RELEASE ? tsi_stand_ins_end(a, ref) : tsi_stand_ins_drained(a, ref);
    tsi_inc_unpin(a, w.b, i);
    return true;
}

/* Returns true if the record is as tsi_inc_open makes it. Changes of fields not tested here take the stripe and are
 * counted. */
static bool is_clean_locked(TsiInc* i) {
    TSI_HOLDS(tsi_inc_lock(i));
    return (i->lock_fast | i->lock_contended | tsi_load_relaxed(&i->user_refs) | tsi_inc_peak(i) | (uint64_t)i->owned |
            tsi_load_relaxed(&i->open_since_ns) | tsi_load_relaxed(&i->budget.soft) |
            tsi_load_relaxed(&i->budget.hard)) == 0;
}

bool tsi_inc_end_empty(TsiArena* a, TsiBinding* b, TsiRef ref, EpochId* id, char label[TSI_LABEL_BYTES]) {
    TsiInc* i = tsi_inc(&a->phases, tsi_ref_index(ref));
    if (tsi_load_relaxed(&i->heap_count) != 0) return false;
    tsi_lock_take(tsi_inc_lock(i)); /* not counted: there would be nothing else to post */
    uint64_t word = tsi_load_relaxed(&i->word);
    bool empty = word >> 2 == tsi_ref_era(ref) && i->heaps == 0 && i->ends == 0 && i->pins == 1 && i->slow == 0 &&
                 tsi_load_relaxed(&i->slab_count) == 0 && i->allocated.objects == 0;
    if (empty) {
        *id = tsi_load_relaxed(&i->id);
        memcpy(label, i->label, TSI_LABEL_BYTES);
        i->clean = is_clean_locked(i);
        /* otherwise it was ended by its id before */
        if ((word & TSI_INC_STATE) == TSI_INC_ACTIVE) tsi_post_end_locked(a, b, i, 0);
        tsi_store_release(&i->word, TSI_INC_RELEASED); /* era 0: matches no reference */
    }

    tsi_lock_give(tsi_inc_lock(i));
    if (!empty) return false;
    if (TSI_UNLIKELY(tsi_closes_are_watched())) /* the record is still ours */
        tsi_tell_empty_close(a, *id, tsi_ref_era(ref), label);
    tsi_record_give_inc(a, b, i->index);
    return true;
}

/* Ends a phase straight where somebody watches, and in shared mode in the thread's bank. */
static bool end_straight(TsiBinding* b, TsiRef ref, EpochReceipt* out) {
    EpochReceipt told;
    bool watched = TSI_UNLIKELY(tsi_closes_are_watched());
    if (!watched && !b->arena->options.shared) return false; /* tried before */
    if (watched && out == NULL) out = &told;
    if (!tsi_ready_end(b, ref, out)) return false;
    if (watched) tsi_tell_close(b->arena, EPOCH_RELEASE, out, (TsiTotals){0, 0});
    return true;
}

/* Tries end_straight, in shared mode as the thread's bank if that is free. */
static bool end_alone(TsiBinding* b, TsiRef ref, EpochReceipt* out) {
    TsiBank* bank;
    if (TSI_LIKELY(!b->arena->none_at_hand)) return end_straight(b, ref, out);
    if (!b->arena->banks_at_hand || !tsi_bank_try(b, &bank)) return false;
    TsiBinding* as = tsi_bank_binding(bank);
    bool ended = end_straight(as, ref, out);
    uint32_t record; /* of an incarnation: banks get them, and threads take them */
    if (ended && as->inc_count >= TSI_RECORD_CACHE / 2 && tsi_record_take_inc(b->arena, as, &record))
        tsi_record_give_inc(b->arena, b, record);
    tsi_bank_leave(bank);
    return ended;
}

bool tsi_inc_end_common(TsiArena* a, TsiBinding* b, TsiRef ref, EpochCloseMode mode, EpochReceipt* out) {
    TsiInc* i = tsi_inc(&a->phases, tsi_ref_index(ref));
    EpochId id;
    char label[TSI_LABEL_BYTES];
    if (tsi_inc_end_empty(a, b, ref, &id, label)) {
        if (out != NULL) tsi_receipt_blank(out, id, tsi_ref_era(ref), label);
        return false;
    }
    if (tsi_load_relaxed(&i->heap_count) == 1 /* a hint */ && b != NULL && mode == EPOCH_RELEASE &&
        end_alone(b, ref, out))
        return true;
    if (tsi_epoch_end(a, ref, mode, TSI_END_OWN, out)) return true;
    if (out != NULL) tsi_receipt_blank(out, 0, 0, tsi_no_label);
    return false;
}

/* ---- advance ---- */

/* Asks owners to let go when they next come by. */
static void ask_locked(TsiArena* a, TsiInc* i) {
    TSI_HOLDS(tsi_inc_lock(i));
    for (uint32_t at = i->heaps; at != 0; at = tsi_heap(a, at - 1)->inc_next) {
        TsiHeap* h = tsi_heap(a, at - 1);
        uint64_t word = tsi_load_seq(&h->word);
        if (tsi_heap_state(word) == TSI_HEAP_LIVE)
            (void)tsi_cas_seq(&h->word, &word, tsi_heap_word(tsi_heap_binding(word), TSI_HEAP_RETIRE));
    }
}

/* Moves a passed incarnation to `state` and asks its owners. */
static void retire_locked(TsiArena* a, TsiInc* i, unsigned state) {
    TSI_HOLDS(tsi_inc_lock(i));
    uint64_t now_ns = tsi_inc_peak(i) != 0 ? tsi_os.now_ns() : 0;
    if (tsi_inc_state(i) == TSI_INC_ACTIVE) tsi_post_end_locked(a, NULL, i, now_ns);
    if (tsi_inc_state(i) < state) tsi_store_seq(&i->word, tsi_inc_era(i) << 2 | state);
    ask_locked(a, i);
    tsi_late_note_locked(a, i);
}

EpochId tsi_epoch_advance(TsiArena* a, TsiRef from) {
    TsiPhases* p = &a->phases;
    TsiRef was = 0, displaced = 0;
    tsi_lock_take(&p->ring_lock);
    if (from != 0 && tsi_phases_current(p) != from) { /* another thread moved it on */
        tsi_lock_give(&p->ring_lock);
        return tsi_load_relaxed(&p->current);
    }

    uint32_t next = tsi_load_relaxed(&p->current) + 1;
    TsiRef before = tsi_load_relaxed(&p->ring[next == p->ring_size ? 0 : next]);
    TsiInc* gone = before != 0 ? tsi_inc(p, tsi_ref_index(before)) : NULL;
    if (gone != NULL && tsi_inc_peak(gone) != 0) tsi_eras_add(p, gone->index); /* E1; else nothing lives there */
    /* none of its heaps may be LIVE as its id goes to another: slab_malloc_epoch asks the heaps alone */
    if (gone != NULL) {
        tsi_phase_lock(gone);
        ask_locked(a, gone);
    }

    bool moved = tsi_phases_step_locked(p, &was, &displaced), unpin = false;
    if (gone != NULL) {
        if (moved) retire_locked(a, gone, TSI_INC_CLOSED);
        unpin = moved && gone->heaps == 0;
        tsi_phase_unlock(gone);
    }

    EpochId now = tsi_load_relaxed(&p->current);
    char label[TSI_LABEL_BYTES]; /* of the one that was current */
    if (moved) {
        TsiInc* old = tsi_inc(p, tsi_ref_index(was));
        tsi_phase_lock(old);
        retire_locked(a, old, TSI_INC_ADVANCED);
        memcpy(label, old->label, sizeof label);
        tsi_phase_unlock(old);
    }

    TsiRef ref = tsi_load_relaxed(&p->ring[now]);
    if (moved && gone != NULL) {
        /* its empty slabs are returned by the next slow paths that look, not here */
        if (!unpin && !tsi_unswept_put_locked(a, gone)) unpin = true;
    }

    tsi_lock_give(&p->ring_lock);
    if (unpin) tsi_inc_unpin(a, NULL, tsi_inc(p, tsi_ref_index(displaced)));
    if (moved) {
        tsi_probe_epoch_open(a->owner, now, tsi_ref_era(ref), &tsi_inc(p, tsi_ref_index(ref))->label[0]);
        tsi_probe_epoch_advance(a->owner, now != 0 ? now - 1 : p->ring_size - 1, tsi_ref_era(was), &label[0], now,
                                tsi_ref_era(ref));
    }
    return now;
}

bool tsi_epoch_close(TsiArena* a, TsiRef ref, EpochCloseMode mode, TsiEnding how, EpochReceipt* out) {
    bool moves = ref != 0 && tsi_phases_current(&a->phases) == ref;
    if (moves) (void)tsi_epoch_advance(a, ref);
    bool ended = tsi_epoch_end(a, ref, mode, how, out);
    /* A program that closes one id after the other closes all: incarnations that lose their id by that would be left
     * out. Afterwards, for this one may be among them. */
    unsigned interrupts = moves ? tsi_sweep_unswept(a, tsi_binding_get(a, false)) : 0;
    if (ended && out != NULL) out->interrupts += interrupts;
    return ended;
}
