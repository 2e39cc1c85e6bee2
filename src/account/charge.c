/* charge.c - see charge.h. */
#include "account/charge.h"

#include "os/clock.h"
#include "threads/registry.h"
#include "phase/draining.h"

#include <string.h>

enum { FAR_BYTES = 4 * TSI_PENDING_BYTES };

/* Returns the label, a record index, in a phase's word `charge`. [any thread, needs no lock] */
static uint32_t label_in(uint64_t charge) { return (uint32_t)(charge >> TSI_CHARGE_BITS); }
/* Returns the committed bytes in a phase's word `charge`. [any thread, needs no lock] */
static uint64_t bytes_in(uint64_t charge) { return charge & TSI_CHARGE_MASK; }

/* Raises a peak to `to` if it is lower; otherwise it stays. [any thread, needs no lock] */
static void rise(_Atomic uint64_t* peak, uint64_t to) {
    uint64_t seen = tsi_load_relaxed(peak);
    while (to > seen && !tsi_cas_seq(peak, &seen, to)) {} /* a maximum: it orders nothing */
}

/* ---- labels ---- */

/* Adds bytes, which may be negative, to a label's committed ones, and raises its peak if they are positive. Returns the
 * sum, without what threads have pending; 0 if that is negative. [any thread, needs no lock] */
static uint64_t label_now(TsiLabel* label, int64_t bytes) {
    uint64_t now = tsi_add_relaxed(&label->committed, (uint64_t)bytes) + (uint64_t)bytes;
    if ((int64_t)now < 0) return 0; /* others' pending bytes are missing */
    if (bytes > 0) rise(&label->peak, now);
    return now;
}

void tsi_pending_push(TsiArena* a, TsiPending* pending) {
    if (pending->bytes != 0) (void)label_now(tsi_label(&a->phases.labels, tsi_pending_label(pending)), pending->bytes);
    pending->bytes = 0;
}

/* Moves a sum from a thread's record, where it becomes 0, to its label. release, both: pair with the acquires in
 * report_labels.c. A reader that sees either sees that a move was begun, and one that sees the second sees the first.
 * [own thread, needs no lock] */
static void move_sum(_Atomic uint64_t* from, _Atomic uint64_t* to) {
    uint64_t n = tsi_load_relaxed(from);
    if (n == 0) return;
    tsi_store_release(from, 0);
    tsi_add_release(to, n);
}

/* Moves the TSI_LABEL_BUCKETS buckets of a histogram from a thread's record, where they become 0, to its label.
 * [own thread, needs no lock] */
static void move_histogram(_Atomic uint32_t* from, _Atomic uint64_t* to) {
    for (unsigned n = 0; n < TSI_LABEL_BUCKETS; n++) {
        uint32_t count = tsi_load_relaxed(&from[n]);
        if (count == 0) continue;
        tsi_store_release(&from[n], 0); /* as in move_sum */
        tsi_add_release(&to[n], count);
    }
}

/* Returns the bytes of a grant, a word of TsiPending, if it is from the budget of `label`, otherwise 0.
 * [any thread, needs no lock] */
static uint64_t granted(uint64_t grant, uint32_t label) {
    return grant >> TSI_BUDGET_SHIFT == label + 1 ? grant & TSI_BUDGET_BYTES : 0;
}

/* Sets the grant in a thread's record to 0 and takes its bytes off account->committed, if it is from the budget of
 * `label`, whose record is `account`; does nothing to another label's. [any thread, needs no lock] */
static void grant_back(TsiLabel* account, TsiPending* pending, uint32_t label) {
    uint64_t now = tsi_load_relaxed(&pending->grant);
    do {
        if (granted(now, label) == 0) return;
    } while (!tsi_cas_seq(&pending->grant, &now, 0)); /* as in tsi_budget_use; then its bytes are ours */
    (void)tsi_sub_relaxed(&account->committed, now & TSI_BUDGET_BYTES);
}

void tsi_pending_empty(TsiBinding* b, TsiPending* pending) {
    if ((uint32_t)tsi_load_relaxed(&pending->whose) == 0) return;
    TsiLabel* label = tsi_label(&b->arena->phases.labels, tsi_pending_label(pending));
    grant_back(label, pending, tsi_pending_label(pending));
    TsiLabelShard* shard = &label->shard[b->index % TSI_LABEL_SHARDS];
    tsi_pending_push(b->arena, pending);

    tsi_add_relaxed(&label->moves_begun, 1); /* before the first move, whose stores release it */
    for (unsigned n = 0; n < TSI_LABEL_SUMS; n++)
        move_sum((_Atomic uint64_t*)&pending->sums + n, (_Atomic uint64_t*)&shard->sums + n);
    move_histogram(pending->duration, shard->duration);
    move_histogram(pending->peaks, shard->peaks);
    tsi_add_release(&label->moves_ended, 1); /* pairs with label_read in report_labels.c: all has moved */
}

void tsi_pending_turn(TsiBinding* b, TsiPending* pending, uint32_t label) {
    uint64_t whose = tsi_load_relaxed(&pending->whose);
    tsi_pending_empty(b, pending);
    /* Before the sums, see tsi_pending_sum. release: pairs with pending_add in report_labels.c: a reader that sees the
     * new label sees sums of 0, and none of the old label's. */
    tsi_store_release(&pending->whose, ((whose >> 32) + 1) << 32 | (label + 1));
}

/* ---- budgets of labels ---- */

/* Returns true if a charge that takes committed bytes from `was` to `now` passes the soft budget; soft 0: none.
 * [any thread, needs no lock] */
static bool passes(uint64_t soft, uint64_t was, uint64_t now) {
    bool above = (int64_t)now > 0 && now > soft;
    return soft != 0 && above && (int64_t)was <= (int64_t)soft;
}

/* Returns true if a thread may be granted more: `committed`, the bytes of the label with all grants, is FAR_BYTES or
 * more below the lower of its limits (0: none), and no thread charges it exactly (`exact` is 0).
 * [any thread, needs no lock] */
static bool is_far(TsiLabel* label, uint64_t committed) {
    uint64_t soft = tsi_load_relaxed(&label->budget.soft), hard = tsi_load_relaxed(&label->budget.hard);
    uint64_t most = soft != 0 && (hard == 0 || soft < hard) ? soft : hard;
    /* seq_cst: pairs with the count in budget_charge */
    return (int64_t)committed >= 0 && committed + FAR_BYTES <= most && tsi_load_seq(&label->exact) == 0;
}

/* Gives the grants that any thread has from the label's budget back to it (C2), as grant_back does. A thread may be
 * granted more afterwards, unless account->exact is not 0. [labels lock held] */
static void grants_back_locked(TsiArena* a, TsiLabel* account, uint32_t label) {
    TSI_HOLDS(&a->phases.labels.lock);
    for (uint32_t n = 0; n < tsi_table_used(&a->bindings); n++) {
        TsiBinding* b = tsi_table_at(&a->bindings, n);
        grant_back(account, &b->pending[label % TSI_PENDING_LABELS], label);
    }
}

/* Returns the bytes that all threads have as grants from the budget of `label`; they count as committed there.
 * [labels lock held] */
static uint64_t granted_locked(TsiArena* a, uint32_t label) {
    TSI_HOLDS(&a->phases.labels.lock);
    uint64_t sum = 0;
    for (uint32_t n = 0; n < tsi_table_used(&a->bindings); n++) {
        const TsiBinding* b = tsi_table_at(&a->bindings, n);
        sum += granted(tsi_load_relaxed(&b->pending[label % TSI_PENDING_LABELS].grant), label);
    }
    return sum;
}

void tsi_budget_change_locked(TsiArena* a, uint32_t label, uint64_t soft, uint64_t hard, SlabBudgetFn fn, void* ctx) {
    TSI_HOLDS(&a->phases.labels.lock);
    TsiLabel* account = tsi_label(&a->phases.labels, label);
    tsi_add_seq(&account->exact, 1); /* as in budget_charge: no grant under the old limits from here on */
    tsi_budget_write(&account->budget, soft, hard, fn, ctx);
    grants_back_locked(a, account, label);
    (void)tsi_sub_relaxed(&account->exact, 1);
}

/* Adds charge->bytes to label->committed of a label with a budget, and TSI_PENDING_BYTES more, as pending->grant, if
 * the label is far from its limits then. Sets charge->of_label to what was committed before. Gives pending's own grant
 * back first; at a limit, all threads' grants for the label, under the labels lock. Returns false if the hard budget
 * forbids it: then nothing is charged, but the grants have gone back. [own thread, no labels lock held] */
static bool budget_charge(TsiArena* a, TsiLabel* label, TsiPending* pending, TsiCharge* charge) {
    uint64_t soft = tsi_load_relaxed(&label->budget.soft), hard = tsi_load_relaxed(&label->budget.hard), now, more;
    bool exact = false, over;
    grant_back(label, pending, charge->label); /* it was not enough */
    charge->of_label = tsi_load_relaxed(&label->committed);

    for (;;) {
        now = charge->of_label + charge->bytes;
        over = hard != 0 && (int64_t)now > 0 && now > hard;
        if (over || passes(soft, charge->of_label, now)) {
            /* seq_cst, before grants are searched for: a thread that takes one later sees it */
            if (!exact) tsi_add_seq(&label->exact, 1);
            exact = true;
            /* Try again if that is less, whichever thread has returned the grants. */
            tsi_lock_take(&a->phases.labels.lock);
            grants_back_locked(a, label, charge->label);
            uint64_t again = tsi_load_relaxed(&label->committed);
            tsi_lock_give(&a->phases.labels.lock);
            if (again < charge->of_label) {
                charge->of_label = again;
                continue;
            }
            if (over) break;
        }

        more = is_far(label, now) ? TSI_PENDING_BYTES : 0;
        /* a sum with a limit: nothing else is ordered by it */
        if (!tsi_cas_seq(&label->committed, &charge->of_label, now + more)) continue;
        /* empty since grant_back above: only its thread fills it */
        if (more != 0) tsi_store_seq(&pending->grant, (uint64_t)(charge->label + 1) << TSI_BUDGET_SHIFT | more);
        break;
    }

    if (exact) (void)tsi_sub_relaxed(&label->exact, 1);
    return !over;
}

void tsi_budget_give(TsiArena* a, TsiPending* pending, uint32_t label, uint64_t bytes) {
    TsiLabel* account = tsi_label(&a->phases.labels, label);
    uint64_t now = tsi_load_relaxed(&pending->grant), to;
    tsi_pending_push(a, pending); /* from before there was a budget */
    do {
        to = (now & TSI_BUDGET_BYTES) + bytes;
        if (to > TSI_PENDING_BYTES || !is_far(account, tsi_load_relaxed(&account->committed))) {
            (void)label_now(account, -(int64_t)bytes);
            return;
        }
    } while (
        !tsi_cas_seq(&pending->grant, &now, (uint64_t)(label + 1) << TSI_BUDGET_SHIFT | to)); /* as in tsi_budget_use */
}

/* Charges charge->bytes to the label charge->label: without a budget to the thread's store, otherwise to its grant or,
 * by budget_charge, to the label itself. Sets charge->pending to false in that last case, otherwise to true. Returns
 * false, with nothing charged, if its hard budget forbids it. [own thread, no labels lock held] */
static bool label_charge(TsiArena* a, TsiBinding* b, TsiCharge* charge) {
    TsiLabel* label = tsi_label(&a->phases.labels, charge->label);
    TsiPending* pending = tsi_pending_of(b, charge->label);
    charge->pending = !tsi_label_has_budget(label);
    if (charge->pending) {
        pending->bytes += (int64_t)charge->bytes;
        return true;
    }
    tsi_pending_push(a, pending);
    charge->pending = tsi_budget_use(pending, charge->label, charge->bytes);
    return charge->pending || budget_charge(a, label, pending, charge);
}

/* Takes committed bytes off the label with record index `at`: with b, the calling thread's binding, through its store
 * or its grant (tsi_label_less); off the label at once if b is NULL. The peak stays. [any thread, needs no lock] */
static void label_uncharge(TsiArena* a, TsiBinding* b, uint32_t at, uint64_t bytes) {
    if (b != NULL) tsi_label_less(b, tsi_pending_of(b, at), at, bytes);
    else (void)label_now(tsi_label(&a->phases.labels, at), -(int64_t)bytes);
}

/* ---- phases ---- */

void tsi_uncharge(TsiArena* a, TsiBinding* b, TsiInc* inc, uint64_t bytes) {
    if (bytes == 0) return;
    rise(&inc->peak, bytes_in(tsi_load_relaxed(&inc->charge)));
    /* release: pairs with tsi_inc_peak: the peak is there before the bytes have gone */
    uint64_t was = atomic_fetch_sub_explicit(&inc->charge, bytes, memory_order_release);
    rise(&inc->peak, bytes_in(was));
    label_uncharge(a, b, label_in(was), bytes);
}

void tsi_charge_undo(TsiArena* a, TsiBinding* b, TsiInc* inc, uint64_t bytes) {
    label_uncharge(a, b, label_in(tsi_sub_relaxed(&inc->charge, bytes)), bytes);
}

void tsi_uncharge_all_locked(TsiArena* a, TsiBinding* b, TsiInc* inc) {
    TSI_HOLDS(tsi_inc_lock(inc));
    uint64_t was = tsi_load_relaxed(&inc->charge);
    if (bytes_in(was) != 0) label_uncharge(a, b, label_in(was), bytes_in(was));
    tsi_store_relaxed(&inc->charge, (uint64_t)label_in(was) << TSI_CHARGE_BITS);
}

/* Takes `bytes` that the label refused off the phase again; `was` is the phase's word `charge` before they were
 * charged. If it has been given another label in between, corrects both labels' committed bytes too.
 * [any thread, needs no lock] */
static void charge_back(TsiArena* a, TsiInc* inc, uint64_t was, uint64_t bytes) {
    uint64_t undone = tsi_sub_relaxed(&inc->charge, bytes);
    if (label_in(undone) == label_in(was)) return;
    /* Relabelled in between: the bytes, which no label had, moved with the rest. */
    (void)label_now(tsi_label(&a->phases.labels, label_in(was)), (int64_t)bytes);
    (void)label_now(tsi_label(&a->phases.labels, label_in(undone)), -(int64_t)bytes);
}

bool tsi_charge(TsiBinding* b, TsiInc* inc, uint64_t bytes, TsiCharge* charge) {
    uint64_t hard = tsi_load_relaxed(&inc->budget.hard), was = tsi_load_relaxed(&inc->charge);
    b->budget.hard = 0;
    b->budget.ref = tsi_ref(tsi_inc_era(inc), inc->index);
    b->budget.id = tsi_load_relaxed(&inc->id);

    do {
        if (hard != 0 && bytes_in(was) + bytes > hard) {
            b->budget.hard = TSI_BUDGET_PHASE;
            b->budget.label = label_in(was);
            return false;
        }
    } while (!tsi_cas_seq(&inc->charge, &was, was + bytes)); /* a sum with a limit: nothing else is ordered by it */

    *charge = (TsiCharge){bytes, bytes_in(was), 0, label_in(was), false};
    b->budget.label = charge->label;
    if (label_charge(b->arena, b, charge)) return true;
    b->budget.hard = TSI_BUDGET_LABEL;
    charge_back(b->arena, inc, was, bytes);
    return false;
}

void tsi_charge_keep(TsiBinding* b, TsiInc* inc, const TsiCharge* charge) {
    TsiLabel* label = tsi_label(&b->arena->phases.labels, charge->label);
    uint64_t now = charge->phase + charge->bytes;
    if (passes(tsi_load_relaxed(&inc->budget.soft), charge->phase, now)) {
        b->budget.soft |= TSI_BUDGET_PHASE;
        b->budget.phase_bytes = now;
    }

    if (charge->pending) {
        tsi_pending_add(b->arena, tsi_pending_of(b, charge->label), 0);
        return;
    }

    now = charge->of_label + charge->bytes;
    if ((int64_t)now > 0) rise(&label->peak, now);
    if (passes(tsi_load_relaxed(&label->budget.soft), charge->of_label, now)) {
        tsi_add_relaxed(&label->warnings, 1);
        b->budget.soft |= TSI_BUDGET_LABEL;
        b->budget.label_bytes = now;
    }
}

void tsi_charges_forget(TsiArena* a) {
    for (uint32_t n = 0; n < tsi_table_used(&a->phases.incs); n++) {
        _Atomic uint64_t* charge = &tsi_inc(&a->phases, n)->charge;
        uint64_t now = tsi_load_relaxed(charge);
        /* if 0, its page may be with the system */
        if ((now & TSI_CHARGE_MASK) != 0) tsi_store_relaxed(charge, now & ~TSI_CHARGE_MASK);
    }

    for (uint32_t at = 0; at < tsi_table_used(&a->phases.labels.records); at++) {
        TsiLabel* label = tsi_label(&a->phases.labels, at);
        tsi_store_relaxed(&label->committed, 0);
        tsi_store_relaxed(&label->exact, 0);
        /* a thread that is gone may have been between the two */
        tsi_store_relaxed(&label->moves_ended, tsi_load_relaxed(&label->moves_begun));
    }

    for (uint32_t n = 0; n < tsi_table_used(&a->bindings); n++) {
        TsiBinding* b = tsi_table_at(&a->bindings, n);
        for (unsigned k = 0; k < TSI_PENDING_LABELS; k++) {
            if (b->pending[k].bytes != 0) b->pending[k].bytes = 0;
            if (tsi_load_relaxed(&b->pending[k].grant) != 0) tsi_store_relaxed(&b->pending[k].grant, 0);
        }
    }
}

void tsi_charge_again(TsiArena* a, TsiInc* inc, uint64_t bytes) {
    (void)label_now(tsi_label(&a->phases.labels, label_in(tsi_add_relaxed(&inc->charge, bytes))), (int64_t)bytes);
}

/* Returns the sums that posts for the phase's label go to: the thread's own, by plain stores, if b, its binding, is not
 * NULL. [stripe held] */
static TsiLabelSums* books_of(TsiArena* a, TsiBinding* b, TsiInc* inc) {
    return b != NULL ? &tsi_pending_of(b, tsi_inc_label(inc))->sums : &tsi_label_of(a, inc)->shard[0].sums;
}

/* Adds to the sum *account the part of `now` that *posted lacks, and sets *posted to `now`; does nothing if *posted is
 * ahead, by a relabelling. b: as in tsi_sum_add. [stripe held] */
static void post(const TsiBinding* b, _Atomic uint64_t* account, uint64_t* posted, uint64_t now) {
    uint64_t more = now - *posted;
    if ((int64_t)more <= 0) return; /* negative: posted ahead, by a relabelling */
    *posted = now;                  /* before the account has it, see label.h */
    tsi_sum_add(b, account, more);
}

/* Posts to the label the objects and bytes freed one by one: those issued that neither live nor were released. *held:
 * what slabs that are not settled have issued and hold; all 0 if there are none. b: the calling thread's binding, or
 * NULL. [stripe held] */
static void post_freed_locked(TsiArena* a, TsiBinding* b, TsiInc* inc, const TsiHeld* held) {
    TSI_HOLDS(tsi_inc_lock(inc));
    TsiLabelSums* sums = books_of(a, b, inc);
    post(b, &sums->objects_freed, &inc->posted.objects_freed,
         inc->allocated.objects + held->issued.objects - inc->released.objects - held->live.objects);
    post(b, &sums->bytes_freed, &inc->posted.bytes_freed,
         inc->allocated.bytes + held->issued.bytes - inc->released.bytes - held->live.bytes);
}

/* Posts what the phase has allocated and freed, and its heaps' slow paths, to its label's account, before its slabs are
 * settled: with what these have issued and hold, *held. b: the calling thread's binding, or NULL. [stripe held] */
static void post_held_locked(TsiArena* a, TsiBinding* b, TsiInc* inc, const TsiHeld* held) {
    TSI_HOLDS(tsi_inc_lock(inc));
    TsiLabelSums* sums = books_of(a, b, inc);
    uint64_t slow = inc->slow;
    for (uint32_t at = inc->heaps; at != 0; at = tsi_heap(a, at - 1)->inc_next)
        slow += tsi_load_relaxed(&tsi_heap(a, at - 1)->slow);
    post(b, &sums->objects_allocated, &inc->posted.objects_allocated, inc->allocated.objects + held->issued.objects);
    post(b, &sums->bytes_allocated, &inc->posted.bytes_allocated, inc->allocated.bytes + held->issued.bytes);
    post(b, &sums->slow, &inc->posted.slow, slow);
    post_freed_locked(a, b, inc, held);
}

bool tsi_relabel_locked(TsiArena* a, TsiBinding* b, TsiInc* inc, const char name[TSI_LABEL_BYTES],
                        const TsiHeld* held) {
    TSI_HOLDS(tsi_inc_lock(inc));
    uint32_t to = tsi_label_find(&a->phases.labels, name);
    memcpy(inc->label, name, TSI_LABEL_BYTES);
    tsi_post_locked(a, b, inc);
    post_held_locked(a, b, inc, held);

    uint64_t was = tsi_load_relaxed(&inc->charge);
    while (!tsi_cas_seq(&inc->charge, &was, (uint64_t)to << TSI_CHARGE_BITS | bytes_in(was))) {} /* see charge.h */
    if (label_in(was) == to) return false;

    /* Moves the phase's live objects, as posted so far, from the old label's account to the new one's. */
    TsiLabel *from = tsi_label(&a->phases.labels, label_in(was)), *l = tsi_label(&a->phases.labels, to);
    int64_t objects =
        (int64_t)(inc->posted.objects_allocated - inc->posted.objects_freed - inc->posted.objects_released);
    int64_t bytes = (int64_t)(inc->posted.bytes_allocated - inc->posted.bytes_freed - inc->posted.bytes_released);
    tsi_sub_relaxed(&from->moved_objects, objects);
    tsi_sub_relaxed(&from->moved_bytes, bytes);
    tsi_add_relaxed(&l->moved_objects, objects);
    tsi_add_relaxed(&l->moved_bytes, bytes);

    if (to == TSI_LABEL_OTHER) tsi_add_relaxed(&l->swallowed, 1);
    label_uncharge(a, b, label_in(was), bytes_in(was));

    /* The memory exists: no budget can refuse it. Near a limit there are no grants (C2): otherwise earlier grants of
     * threads would pass it unnoticed. */
    uint64_t now = label_now(l, (int64_t)bytes_in(was));
    if (tsi_label_has_budget(l) && !is_far(l, now)) {
        tsi_lock_take(&a->phases.labels.lock);
        grants_back_locked(a, l, to);
        tsi_lock_give(&a->phases.labels.lock);
    }
    return true;
}

/* ---- accounts ---- */

void tsi_post_locked(TsiArena* a, TsiBinding* b, TsiInc* inc) {
    TSI_HOLDS(tsi_inc_lock(inc));
    TsiLabelSums* sums = books_of(a, b, inc);
    post(b, &sums->objects_allocated, &inc->posted.objects_allocated, inc->allocated.objects);
    post(b, &sums->bytes_allocated, &inc->posted.bytes_allocated, inc->allocated.bytes);
    post(b, &sums->objects_released, &inc->posted.objects_released, inc->released.objects);
    post(b, &sums->bytes_released, &inc->posted.bytes_released, inc->released.bytes);
    post(b, &sums->closed_slabs, &inc->posted.closed_slabs, inc->closed_slabs);
    post(b, &sums->pinned_slabs, &inc->posted.pinned_slabs, inc->pinned_slabs);
    post(b, &sums->slow, &inc->posted.slow, inc->slow);
    post(b, &sums->lock_fast, &inc->posted.lock_fast, inc->lock_fast);
    post(b, &sums->lock_contended, &inc->posted.lock_contended, inc->lock_contended);
}

void tsi_post_settled_locked(TsiArena* a, TsiBinding* b, TsiInc* inc) {
    TSI_HOLDS(tsi_inc_lock(inc));
    TsiHeld held = {.live = {inc->holding.objects, inc->holding.live_bytes}};
    tsi_post_locked(a, b, inc);
    post_freed_locked(a, b, inc, &held);
}

void tsi_post_swept_locked(TsiArena* a, TsiBinding* b, TsiInc* inc) {
    TSI_HOLDS(tsi_inc_lock(inc));
    if ((inc->heaps | inc->skipped) != 0) tsi_post_locked(a, b, inc);
    else tsi_post_settled_locked(a, b, inc);
}

void tsi_charges_flush(TsiBinding* b) {
    for (unsigned n = 0; n < TSI_PENDING_LABELS; n++) {
        TsiPending* pending = &b->pending[n];
        tsi_pending_empty(b, pending);
        /* A used record keeps its count, which tells its page from one never used (tsi_snapshot_metadata_bytes). */
        if (tsi_load_relaxed(&pending->whose) != 0)
            tsi_store_relaxed(&pending->whose, tsi_load_relaxed(&pending->whose) >> 32 << 32);
    }
}

void tsi_post_end_locked(TsiArena* a, TsiBinding* b, TsiInc* inc, uint64_t now_ns) {
    TSI_HOLDS(tsi_inc_lock(inc));
    uint64_t peak = tsi_inc_peak(inc), since = tsi_load_relaxed(&inc->open_since_ns);
    tsi_sum_add(b, &books_of(a, b, inc)->ended, 1);
    if (peak == 0) return;

    if (since == TSI_UNTIMED) now_ns = 0;
    if (since < a->born_ns) since = a->born_ns; /* the first incarnation of id 0 was always open */
    unsigned size = tsi_label_bucket(peak), age = tsi_label_bucket(tsi_clock_between(since, now_ns));
    if (b != NULL) {
        TsiPending* pending = tsi_pending_of(b, tsi_inc_label(inc));
        tsi_pending_count(b, pending, &pending->peaks[size]);
        if (now_ns != 0) tsi_pending_count(b, pending, &pending->duration[age]);
        return;
    }

    TsiLabelShard* shard = &tsi_label_of(a, inc)->shard[0];
    tsi_add_relaxed(&shard->peaks[size], 1);
    if (now_ns != 0) tsi_add_relaxed(&shard->duration[age], 1);
}

void tsi_post_escapes(TsiArena* a, TsiInc* inc, TsiTotals live) {
    TsiLabel* label = tsi_label_of(a, inc);
    tsi_add_relaxed(&label->objects_escaped, live.objects);
    tsi_add_relaxed(&label->bytes_escaped, live.bytes);
    tsi_draining_judge(label, live);
}

/* ---- telling ---- */

/* Reads the budget of the phase, or of the label, that *events names; whose: TSI_BUDGET_PHASE or TSI_BUDGET_LABEL. Sets
 * *ctx to its ctx and *now to its committed bytes, without grants, at least 0. Returns its function; NULL if there is
 * none or the phase has gone, and then *ctx and *now are not to be used. [any thread, no lock held] */
static SlabBudgetFn budget_read(TsiArena* a, const TsiBudgetEvents* events, unsigned whose, void** ctx, uint64_t* now) {
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(events->ref));
    TsiLabel* label = tsi_label(&a->phases.labels, events->label);
    bool of_label = whose == TSI_BUDGET_LABEL;
    TsiLock* lock = of_label ? &a->phases.labels.lock : tsi_inc_lock(inc);
    TsiBudget* budget = of_label ? &label->budget : &inc->budget;

    tsi_lock_take(lock);
    bool there = of_label || tsi_inc_era(inc) == tsi_ref_era(events->ref);
    SlabBudgetFn fn = there ? (SlabBudgetFn)budget->fn : NULL;
    *ctx = budget->ctx;
    *now = of_label ? tsi_load_relaxed(&label->committed) - granted_locked(a, events->label)
                    : bytes_in(tsi_load_relaxed(&inc->charge));

    tsi_lock_give(lock);
    if ((int64_t)*now < 0) *now = 0; /* others' pending bytes are missing */
    return fn;
}

/* Calls a budget's function, if it has one: `whose` is TSI_BUDGET_PHASE or TSI_BUDGET_LABEL. Tells it the committed
 * bytes: for a hard budget those of now, for a soft one those in *events that passed it. Each call reads the budget
 * again: the function called before may have replaced it, and freed its ctx.
 * [own thread, no lock held, no bracket open] */
static void tell(TsiArena* a, const TsiBudgetEvents* events, unsigned whose, bool hard) {
    void* ctx;
    uint64_t now;
    SlabBudgetFn fn = budget_read(a, events, whose, &ctx, &now);
    if (!hard) now = whose == TSI_BUDGET_LABEL ? events->label_bytes : events->phase_bytes;
    if (fn != NULL) fn(a->owner, events->id, now, hard, ctx);
}

void tsi_budget_notify(TsiArena* a, const TsiBudgetEvents* events, unsigned hard) {
    if ((tsi_tls.telling & TSI_TELLS_BUDGET) != 0) return;
    tsi_tls.telling |= TSI_TELLS_BUDGET;
    for (unsigned whose = TSI_BUDGET_PHASE; whose <= TSI_BUDGET_LABEL; whose *= 2) {
        if ((events->soft & whose) != 0) tell(a, events, whose, false);
        if ((hard & whose) != 0) tell(a, events, whose, true);
    }
    tsi_tls.telling &= (uint8_t)~TSI_TELLS_BUDGET;
}
