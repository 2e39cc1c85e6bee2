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
#include "os/clock.h"
#include "phase/eras.h"

#include <string.h>

/* ---- ends ---- */

/* Adds the objects and bytes that live in the incarnation's orphans to *live. O(slots of the orphans).
 * [stripe held] */
static void sum_orphans_locked(TsiArena* a, TsiInc* inc, TsiTotals* live) {
    TSI_HOLDS(tsi_inc_lock(inc));
    for (uint32_t at = inc->orphans; at != 0; at = tsi_slab(&a->space, at - 1)->next) {
        TsiSlabSum sum = tsi_slab_sum(&a->space, tsi_class_of_slab(&a->space, at - 1), at - 1);
        live->objects += sum.live.objects;
        live->bytes += sum.live.bytes;
    }
}

/* Adds what has escaped, `live`, to the label, unless that is 0 objects, and with escape_stacks to the stacks that made
 * it. live: what the label counts, without objects in deferred slabs, which the profile has. [stripe held] */
static void post_escapes_locked(TsiSweep* sweep, TsiTotals live) {
    TSI_HOLDS(tsi_inc_lock(sweep->inc));
    if (live.objects != 0) tsi_post_escapes(sweep->arena, sweep->inc, live);
    if (sweep->arena->profile.escapes)
        tsi_profile_escaped(sweep->arena, tsi_ref(tsi_inc_era(sweep->inc), sweep->inc->index));
}

/* Sets `state`, unless the incarnation's is as strong already, sweeps, posts its figures to its label, fills *out (not
 * NULL), but for what was returned and the time, and gives back what the sweep has taken. The first drain of a phase
 * that was not released posts what lives as escaped, also in sweep->escaped. now_ns: the time of the end; 0 where no
 * clock was read. Gives the stripe and the sweep's banks. [stripe held, and given] */
static void end_swept(TsiSweep* sweep, unsigned state, EpochReceipt* out, uint64_t now_ns) {
    TsiInc* inc = sweep->inc;
    unsigned was = tsi_inc_state(inc);
    if (was < state) tsi_store_seq(&inc->word, tsi_inc_era(inc) << 2 | state);
    if (inc->heaps != 0 || inc->orphans != 0) tsi_sweep_locked(sweep, NULL);
    sweep->deferred += inc->skipped; /* with those that an earlier end has skipped and nobody has settled yet */
    sweep->deferred_bytes += inc->skipped_bytes;

    if (was == TSI_INC_ACTIVE && state != TSI_INC_ACTIVE) tsi_post_end_locked(sweep->arena, sweep->b, inc, now_ns);
    tsi_post_swept_locked(sweep->arena, sweep->b, inc);
    /* after the ring has taken its id, too: nobody has looked at what lives there */
    bool drains = state == TSI_INC_CLOSED && was != TSI_INC_RELEASED && !inc->escapes_posted;
    if (drains) inc->escapes_posted = true;

    TsiTotals live = {0, 0};
    sum_orphans_locked(sweep->arena, inc, &live);
    if (drains) sweep->escaped = live;
    if (drains && (live.objects | sweep->deferred) != 0) post_escapes_locked(sweep, live);
    tsi_receipt_fill_locked(inc, live, out);
    tsi_late_note_locked(sweep->arena, inc);

    tsi_sweep_uncharge(sweep);
    tsi_phase_unlock(inc);
    tsi_banks_give(sweep->arena, sweep->banks);
    tsi_sweep_finish(sweep);
}

/* Adds the close's time, `ns`, to the classes of whose slabs it looked at some, by their numbers in *tally, and one
 * close to each of them. [own thread, needs no lock] */
static void count_close(TsiSweep* sweep, const TsiCloseTally* tally, uint64_t ns) {
    uint64_t all = 0;
    for (unsigned cls = 1; cls < TSI_CLASSES; cls++) all += tally->c[cls].scanned;
    for (unsigned cls = 1; cls < TSI_CLASSES && all != 0; cls++) {
        if (tally->c[cls].scanned == 0) continue;
        tsi_sweep_count(sweep, offsetof(TsiClassCounters, closes), cls, 1);
        tsi_sweep_count(sweep, offsetof(TsiClassCounters, close_ns), cls, tsi_share(ns, tally->c[cls].scanned, all));
    }
}

/* Adds an end to the close log, by the receipt, which is complete; does nothing for an ordinary one of a domain, that
 * is where no resident bytes were measured and nothing has escaped: those come too often. [own thread, no lock held] */
static void log_end(TsiSweep* sweep, const EpochReceipt* receipt) {
    if (receipt->rss_before == 0 && sweep->escaped.objects == 0) return;
    TsiCloseRow row = {tsi_os.now_ns(),          receipt->epoch_id,
                       receipt->epoch_era,       "",
                       receipt->objects_freed,   receipt->objects_released,
                       receipt->objects_escaped, receipt->bytes_freed,
                       receipt->bytes_released,  receipt->bytes_escaped,
                       receipt->slabs_returned,  receipt->bytes_returned,
                       receipt->slabs_deferred,  tsi_load_relaxed(&sweep->inc->purged),
                       receipt->rss_before,      receipt->rss_after,
                       receipt->close_ns};
    memcpy(row.label, receipt->label, sizeof row.label);
    tsi_closelog_end(&sweep->arena->closed_log, &row);
}

/* Logs what a measured end (sweep->tally is not NULL), begun at start_ns, has given back: reads the resident bytes
 * again, sets rss_before and rss_after in the receipt and the incarnation, adds a row to the close log, and counts the
 * time for the classes. Takes the stripe. [own thread, no lock held] */
static void log_measured(TsiSweep* sweep, EpochReceipt* receipt, uint64_t rss_before, uint64_t start_ns) {
    TsiInc* inc = sweep->inc;
    uint64_t rss_after = tsi_os.rss_bytes();
    EpochReclamation row = {.epoch_id = receipt->epoch_id,
                            .epoch_era = receipt->epoch_era,
                            .rss_before = rss_before,
                            .rss_after = rss_after,
                            .rss_delta = (int64_t)(rss_before - rss_after),
                            .was_closed = true};
    memcpy(row.label, receipt->label, sizeof row.label);
    tsi_lock_take(tsi_inc_lock(inc));
    inc->rss_before = receipt->rss_before = rss_before;
    inc->rss_after = receipt->rss_after = rss_after;
    tsi_lock_give_probed(tsi_inc_lock(inc));
    tsi_closelog_note(&sweep->arena->closed_log, row, sweep->tally);
    count_close(sweep, sweep->tally, tsi_clock_between(start_ns, tsi_os.now_ns()));
}

bool tsi_epoch_end(TsiArena* a, TsiRef ref, EpochCloseMode mode, TsiEnding how, EpochReceipt* out) {
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    bool asked = how == TSI_END_ASKED;
    TsiSweep sweep = {.arena = a, .b = tsi_binding_get(a, false), .inc = inc, .at_once = asked, .learns = !asked};
    sweep.puts_off = !asked && sweep.b != NULL;
    bool holds = tsi_load_relaxed(&inc->heap_count) != 0 || tsi_load_relaxed(&inc->slab_count) != 0;
    uint64_t rss_before = holds && asked ? tsi_os.rss_bytes() : 0, start = 0;
    if (holds || tsi_inc_peak(inc) != 0) start = asked ? tsi_os.now_ns() : tsi_os.quick_ns();

    TsiCloseTally tally;
    EpochReceipt unwanted;
    if (out == NULL) out = &unwanted;
    if (rss_before != 0) memset(sweep.tally = &tally, 0, sizeof tally);
    sweep.banks = tsi_banks_take(a);
    tsi_phase_lock(inc);
    if (ref == 0 || tsi_inc_era(inc) != tsi_ref_era(ref)) {
        tsi_phase_unlock(inc);
        tsi_banks_give(a, sweep.banks);
        return false;
    }

    inc->pins += how != TSI_END_OWN;
    memset(out, 0, sizeof *out);
    end_swept(&sweep, mode == EPOCH_RELEASE ? TSI_INC_RELEASED : TSI_INC_CLOSED, out, start);

    uint64_t end = start == 0 ? 0 : asked ? tsi_os.now_ns() : tsi_os.quick_ns();
    out->close_ns = tsi_clock_between(start, end);
    if (rss_before != 0) log_measured(&sweep, out, rss_before, start);

    tsi_receipt_returned(&sweep, out);
    tsi_tell_close(a, mode, out, sweep.escaped);
    log_end(&sweep, out);
    if (TSI_UNLIKELY(a->stand_ins != NULL))
        mode == EPOCH_RELEASE ? tsi_stand_ins_end(a, ref) : tsi_stand_ins_drained(a, ref);
    tsi_inc_unpin(a, sweep.b, inc);
    return true;
}

/* Returns true if the record is as tsi_inc_open makes it. Changes of fields not tested here take the stripe and are
 * counted. [stripe held] */
static bool is_clean_locked(TsiInc* inc) {
    TSI_HOLDS(tsi_inc_lock(inc));
    return (inc->lock_fast | inc->lock_contended | tsi_load_relaxed(&inc->user_refs) | tsi_inc_peak(inc) |
            (uint64_t)inc->owned | tsi_load_relaxed(&inc->open_since_ns) | tsi_load_relaxed(&inc->budget.soft) |
            tsi_load_relaxed(&inc->budget.hard)) == 0;
}

/* Returns true if the incarnation never held anything, has no cleanups, and nobody but the caller pins it.
 * [stripe held] */
static bool holds_nothing_locked(TsiInc* inc) {
    TSI_HOLDS(tsi_inc_lock(inc));
    if (inc->heaps != 0 || inc->ends != 0 || inc->pins != 1) return false;
    return inc->slow == 0 && tsi_load_relaxed(&inc->slab_count) == 0 && inc->allocated.objects == 0;
}

bool tsi_inc_end_empty(TsiArena* a, TsiBinding* b, TsiRef ref, EpochId* id, char label[TSI_LABEL_BYTES]) {
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    if (tsi_load_relaxed(&inc->heap_count) != 0) return false;
    tsi_lock_take(tsi_inc_lock(inc)); /* not counted: there would be nothing else to post */
    uint64_t word = tsi_load_relaxed(&inc->word);
    bool empty = word >> 2 == tsi_ref_era(ref) && holds_nothing_locked(inc);
    if (empty) {
        *id = tsi_load_relaxed(&inc->id);
        memcpy(label, inc->label, TSI_LABEL_BYTES);
        inc->clean = is_clean_locked(inc);
        /* otherwise it was ended by its id before */
        if ((word & TSI_INC_STATE) == TSI_INC_ACTIVE) tsi_post_end_locked(a, b, inc, 0);
        tsi_store_release(&inc->word, TSI_INC_RELEASED); /* era 0: matches no reference */
    }

    tsi_lock_give(tsi_inc_lock(inc));
    if (!empty) return false;
    if (TSI_UNLIKELY(tsi_closes_are_watched())) /* the record is still ours */
        tsi_tell_empty_close(a, *id, tsi_ref_era(ref), label);
    tsi_record_give_inc(a, b, inc->index);
    return true;
}

/* Releases a phase straight (ready.h) where tsi_inc_end_own has not tried it: tools watch closes, and are told; or in
 * shared mode, where b is the binding of a bank that the thread holds. out may be NULL. Returns false in all other
 * cases, with nothing done, and like tsi_ready_end, perhaps with the objects ended: then the common way must follow.
 * [own thread, no lock held but the bank's, no bracket open] */
static bool end_straight(TsiBinding* b, TsiRef ref, EpochReceipt* out) {
    EpochReceipt told;
    bool watched = TSI_UNLIKELY(tsi_closes_are_watched());
    if (!watched && !b->arena->options.shared) return false; /* tried before */
    if (watched && out == NULL) out = &told;
    if (!tsi_ready_end(b, ref, out)) return false;
    if (watched) tsi_tell_close(b->arena, EPOCH_RELEASE, out, (TsiTotals){0, 0});
    return true;
}

/* Tries end_straight; in shared mode without stand-ins (a->banks_at_hand) as the thread's bank if that is free, b being
 * the thread's own binding. Returns true if the phase was ended so; otherwise false, like end_straight.
 * [own thread, no lock held, no bracket open] */
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
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    EpochId id;
    char label[TSI_LABEL_BYTES];
    if (tsi_inc_end_empty(a, b, ref, &id, label)) {
        if (out != NULL) tsi_receipt_blank(out, id, tsi_ref_era(ref), label);
        return false;
    }
    bool straight = tsi_load_relaxed(&inc->heap_count) == 1 /* a hint */ && b != NULL && mode == EPOCH_RELEASE;
    if (straight && end_alone(b, ref, out)) return true;
    if (tsi_epoch_end(a, ref, mode, TSI_END_OWN, out)) return true;
    if (out != NULL) tsi_receipt_blank(out, 0, 0, tsi_no_label);
    return false;
}

/* ---- advance ---- */

/* Asks owners of the incarnation's heaps to let go when they next come by: each LIVE heap becomes RETIRE, unless it
 * changes meanwhile. Waits for nobody. [stripe held] */
static void ask_locked(TsiArena* a, TsiInc* inc) {
    TSI_HOLDS(tsi_inc_lock(inc));
    for (uint32_t at = inc->heaps; at != 0; at = tsi_heap(a, at - 1)->inc_next) {
        TsiHeap* h = tsi_heap(a, at - 1);
        uint64_t word = tsi_load_seq(&h->word);
        if (tsi_heap_state(word) == TSI_HEAP_LIVE)
            (void)tsi_cas_seq(&h->word, &word, tsi_heap_word(tsi_heap_binding(word), TSI_HEAP_RETIRE));
    }
}

/* Moves an incarnation that the ring has passed to `state`, unless it is there or beyond; counts its end if it was
 * ACTIVE, asks its owners to let go (ask_locked), posts its figures, and tells the label what it holds.
 * [stripe held] */
static void retire_locked(TsiArena* a, TsiInc* inc, unsigned state) {
    TSI_HOLDS(tsi_inc_lock(inc));
    uint64_t now_ns = tsi_inc_peak(inc) != 0 ? tsi_os.now_ns() : 0;
    if (tsi_inc_state(inc) == TSI_INC_ACTIVE) tsi_post_end_locked(a, NULL, inc, now_ns);
    if (tsi_inc_state(inc) < state) tsi_store_seq(&inc->word, tsi_inc_era(inc) << 2 | state);
    ask_locked(a, inc);
    tsi_post_swept_locked(a, NULL, inc);
    tsi_late_note_locked(a, inc);
}

EpochId tsi_epoch_advance(TsiArena* a, TsiRef from) {
    TsiPhases* phases = &a->phases;
    TsiRef was = 0, displaced = 0;
    tsi_lock_take(&phases->ring_lock);
    if (from != 0 && tsi_phases_current(phases) != from) { /* another thread moved it on */
        tsi_lock_give(&phases->ring_lock);
        return tsi_load_relaxed(&phases->current);
    }

    uint32_t next = tsi_load_relaxed(&phases->current) + 1;
    TsiRef before = tsi_load_relaxed(&phases->ring[next == phases->ring_size ? 0 : next]);
    TsiInc* gone = before != 0 ? tsi_inc(phases, tsi_ref_index(before)) : NULL;
    if (gone != NULL && tsi_inc_peak(gone) != 0) tsi_eras_add(phases, gone->index); /* E1; else nothing lives there */
    /* none of its heaps may be LIVE as its id goes to another: slab_malloc_epoch asks the heaps alone */
    if (gone != NULL) {
        tsi_phase_lock(gone);
        ask_locked(a, gone);
    }

    bool moved = tsi_phases_step_locked(phases, &was, &displaced), unpin = false;
    if (gone != NULL) {
        if (moved) retire_locked(a, gone, TSI_INC_CLOSED);
        unpin = moved && gone->heaps == 0;
        tsi_phase_unlock(gone);
    }

    EpochId now = tsi_load_relaxed(&phases->current);
    char label[TSI_LABEL_BYTES]; /* of the one that was current */
    if (moved) {
        TsiInc* old = tsi_inc(phases, tsi_ref_index(was));
        tsi_phase_lock(old);
        retire_locked(a, old, TSI_INC_ADVANCED);
        memcpy(label, old->label, sizeof label);
        tsi_phase_unlock(old);
    }

    TsiRef ref = tsi_load_relaxed(&phases->ring[now]);
    if (moved && gone != NULL) {
        /* its empty slabs are returned by the next slow paths that look, not here */
        if (!unpin && !tsi_unswept_put_locked(a, gone)) unpin = true;
    }

    tsi_lock_give(&phases->ring_lock);
    if (unpin) tsi_inc_unpin(a, NULL, tsi_inc(phases, tsi_ref_index(displaced)));
    if (moved) {
        tsi_probe_epoch_open(a->owner, now, tsi_ref_era(ref), &tsi_inc(phases, tsi_ref_index(ref))->label[0]);
        tsi_probe_epoch_advance(a->owner, now != 0 ? now - 1 : phases->ring_size - 1, tsi_ref_era(was), &label[0], now,
                                tsi_ref_era(ref));
    }
    return now;
}

/* Returns true if the incarnation `ref` is the ring's current one. If false, it never will be: an advance gives it its
 * id before it makes it current, so one that may be under way is waited for. ref may be 0. Takes the ring lock, unless
 * it is current, or a domain's. [any thread, no lock held] */
static bool is_current(TsiPhases* phases, TsiRef ref) {
    if (ref == 0 || tsi_phases_current(phases) == ref) return ref != 0;
    if ((tsi_load_relaxed(&tsi_inc(phases, tsi_ref_index(ref))->id) & TSI_DOMAIN_ID_BIT) != 0) return false;
    tsi_lock_take(&phases->ring_lock);
    bool is = tsi_phases_current(phases) == ref;
    tsi_lock_give(&phases->ring_lock);
    return is;
}

bool tsi_epoch_close(TsiArena* a, TsiRef ref, EpochCloseMode mode, TsiEnding how, EpochReceipt* out) {
    bool moves = is_current(&a->phases, ref);
    if (moves) (void)tsi_epoch_advance(a, ref);
    bool ended = tsi_epoch_end(a, ref, mode, how, out);
    /* A program that closes one id after the other closes all: incarnations that lose their id by that would be left
     * out. Afterwards, for this one may be among them. */
    unsigned interrupts = moves ? tsi_sweep_unswept(a, tsi_binding_get(a, false)) : 0;
    if (ended && out != NULL) out->interrupts += interrupts;
    return ended;
}
