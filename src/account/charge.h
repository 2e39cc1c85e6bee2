/*
 * charge.h - committed bytes by phase and by label, budgets, and the sums that phases post to their label's account.
 *
 * A phase's word `charge` holds its label and its committed bytes, so a charge and a relabelling that race agree about
 * which label has the bytes. A thread charges a label without a budget through a small store of its own, up to 64 KiB
 * either way, so that threads that serve one route do not contend for its counter; `peak` of a label is exact except
 * for that.
 *
 * A label with a budget is charged before its phases are, in grants: a thread that has to go to the label takes up to
 * 64 KiB in advance, and keeps as much of the bytes that its phases give back, as long as the label is far from both
 * limits.
 *
 *   C1  The charge of a label = the charges of its phases + the grants of all threads (and what is pending). A move
 *       between the two takes from one after it has given to the other, so a hard budget is never exceeded.
 *   C2  Before a charge is refused, or passes the soft budget, the grants of all threads go back to the label, under
 *       the labels' lock: of two threads that do so at a time the second finds what the first has returned. From before
 *       that until the charge is made no grant is given (`exact`). So only calls that are under way are missed, and
 *       near its limits a budget acts by exact figures. A change of a budget gives the grants back, too.
 *
 * Model: tests/models/grants.pml.
 *
 * Sums that phases post when they end stay with the thread as well, in a record for each of the labels that it used
 * last, written by plain stores. A reader that finds, after reading, that the record has become another label's skips
 * it this time. Model: tests/models/pending.pml.
 *
 * Budgets are tested where a slab is taken: never in a fast path.
 */
#ifndef TSI_ACCOUNT_CHARGE_H
#define TSI_ACCOUNT_CHARGE_H

#include "state/arena.h"
#include "mem/region.h"

enum { TSI_PENDING_BYTES = 64 << 10 };

/* Returns true if a hard budget of the phase or its label, or max_bytes, may refuse memory. A hint.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_is_limited(TsiArena* a, TsiInc* inc) {
    return (tsi_load_relaxed(&inc->budget.hard) | tsi_load_relaxed(&tsi_label_of(a, inc)->budget.hard) |
            a->space.config.max_bytes) != 0;
}

/* A charge: its bytes, and the committed bytes before it of the phase and, unless they are pending, of its label. */
typedef struct TsiCharge {
    uint64_t bytes, phase, of_label;
    uint32_t label;
    bool pending; /* or from a grant: the label has the bytes later, or had them before */
} TsiCharge;

/* Adds `bytes`, of a slab that is about to be taken, to what the phase and its label have committed, and fills *charge
 * for tsi_charge_keep; tsi_charge_undo takes it back. Sets b->budget.ref, .id and .label to the phase's. Returns false
 * if a hard budget forbids it: then nothing is charged, *charge is not to be used, and b->budget.hard is
 * TSI_BUDGET_PHASE or TSI_BUDGET_LABEL. Otherwise returns true, with b->budget.hard 0.
 * [own thread, no labels lock held] */
bool tsi_charge(TsiBinding* b, TsiInc* inc, uint64_t bytes, TsiCharge* charge);
/* Keeps a charge, of tsi_charge, whose slab was taken: raises the label's peak. For each soft budget that it passed
 * adds TSI_BUDGET_PHASE or TSI_BUDGET_LABEL to b->budget.soft and sets phase_bytes or label_bytes there; the label's
 * also adds 1 to its warnings. A charge that is pending in the thread's store is left there, or pushed if that has
 * become full. [own thread, needs no lock] */
void tsi_charge_keep(TsiBinding* b, TsiInc* inc, const TsiCharge* charge);
/* Takes a charge of `bytes`, of tsi_charge, whose slab was not taken, off the phase and the label that it has now. No
 * peak has its bytes. The soft budgets that it would have passed tell nothing. [own thread, needs no lock] */
void tsi_charge_undo(TsiArena* a, TsiBinding* b, TsiInc* inc, uint64_t bytes);
/* Takes `bytes`, of slabs that have left the phase, off it and its label, after raising the phase's peak; 0 does
 * nothing. The caller has it pinned. b: the calling thread's binding, through whose store or grant the label's go, or
 * NULL. [any thread, needs no lock] */
void tsi_uncharge(TsiArena* a, TsiBinding* b, TsiInc* inc, uint64_t bytes);
/* Takes all bytes of a phase that is over, and that nobody else charges, off it and its label; the phase keeps the
 * label, and its peak is not raised. b: the calling thread's binding, through whose store or grant the label's go, or
 * NULL. [stripe held] */
void tsi_uncharge_all_locked(TsiArena* a, TsiBinding* b, TsiInc* inc);
/* Moves everything that the exiting thread has pending to the labels, like tsi_pending_empty, and makes its records
 * nobody's: they have no label until tsi_pending_of gives them one. [own thread, needs no lock] */
void tsi_charges_flush(TsiBinding* b);

/* Sets the committed bytes of all phases and labels to 0, and all threads' pending bytes and grants: vanished threads
 * may have been between a charge and its slab. Ends moves of sums that they had begun. The caller charges what exists
 * anew. [fork child] */
void tsi_charges_forget(TsiArena* a);
/* Adds `bytes`, of a slab that the phase has, to what it and its label have committed, after tsi_charges_forget; raises
 * the label's peak. No budget refuses or tells it. [fork child] */
void tsi_charge_again(TsiArena* a, TsiInc* inc, uint64_t bytes);

/* The counts of a phase's slabs: objects issued by those that heaps still hold, and live ones of all. */
typedef struct TsiHeld {
    TsiTotals issued, live;
} TsiHeld;
/* Gives the phase the label `name`, which tsi_label_copy has made; the record is made too, or is TSI_LABEL_OTHER
 * without room. First posts its sums and *held, what its slabs have issued and hold now, to the old label; then moves
 * its live objects and committed bytes to the new one, over its budget too. b: the calling thread's binding, or NULL.
 * Returns true if the record changed: then tsi_late_note_locked is due; false if only the text may have.
 * [stripe held, no labels lock held] */
bool tsi_relabel_locked(TsiArena* a, TsiBinding* b, TsiInc* inc, const char name[TSI_LABEL_BYTES], const TsiHeld* held);
/* Adds to the label's account what the phase's sums, of settled slabs and its stripe, have grown by since they were
 * last posted, and sets inc->posted to them: all but the objects freed one by one, which tsi_post_settled_locked posts.
 * b: the calling thread's binding, whose store is used, or NULL: the label's. [stripe held] */
void tsi_post_locked(TsiArena* a, TsiBinding* b, TsiInc* inc);
/* Posts like tsi_post_locked, and the objects freed one by one too: those issued that were neither released nor are in
 * inc->holding. No heap holds slabs of the phase, or it is over, has no orphans either, and its record is about to be
 * used again. [stripe held] */
void tsi_post_settled_locked(TsiArena* a, TsiBinding* b, TsiInc* inc);
/* Posts like tsi_post_settled_locked if no heap holds slabs of the phase, otherwise like tsi_post_locked.
 * [stripe held] */
void tsi_post_swept_locked(TsiArena* a, TsiBinding* b, TsiInc* inc);
/* Counts the phase, which leaves ACTIVE, as ended under its label; if it ever held memory, also its peak and, unless it
 * is TSI_UNTIMED, its age at now_ns in the label's histograms. b: the calling thread's binding, whose store is used, or
 * NULL. now_ns may be 0 if the phase never held anything. [stripe held] */
void tsi_post_end_locked(TsiArena* a, TsiBinding* b, TsiInc* inc, uint64_t now_ns);

/* Adds `live`, the objects that are left at the first close of the phase that drains, to its label's escaped ones; adds
 * 1 to the label's `unexpected` if that is more than it expects. [stripe held] */
void tsi_post_escapes(TsiArena* a, TsiInc* inc, TsiTotals live);

/* Calls the functions of the budgets in events->soft, and of those in the bits `hard` (TSI_BUDGET_*) as hard ones, the
 * phase's first. Does nothing inside of such a function, whose allocations tell nothing. *events stays as it is.
 * [own thread, no lock held, no bracket open] */
void tsi_budget_notify(TsiArena* a, const TsiBudgetEvents* events, unsigned hard);

/* Returns the index of the label that pending is for; it must be for one. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_pending_label(const TsiPending* pending) {
    return (uint32_t)tsi_load_relaxed(&pending->whose) - 1;
}
/* Makes pending a record of `label`, with all its sums 0, after emptying it into the label that it had
 * (tsi_pending_empty); its count of turns, the upper half of `whose`, rises by 1. [own thread, needs no lock] */
void tsi_pending_turn(TsiBinding* b, TsiPending* pending, uint32_t label);
/* Returns the thread's record of a label, one of TSI_PENDING_LABELS; a record that another label has is emptied into
 * that one first and becomes this one's (tsi_pending_turn). Good until the thread asks for another label's.
 * [own thread, needs no lock] */
TSI_INLINE TsiPending* tsi_pending_of(TsiBinding* b, uint32_t label) {
    TsiPending* pending = &b->pending[label % TSI_PENDING_LABELS];
    if (TSI_UNLIKELY((uint32_t)tsi_load_relaxed(&pending->whose) != label + 1)) tsi_pending_turn(b, pending, label);
    return pending;
}
/* Moves the committed bytes, sums and histograms of a pending record to its label, and gives its grant back to that:
 * all of these are 0 afterwards, and the record stays the label's. Counts the move in moves_begun and moves_ended. Does
 * nothing if the record is for no label. [own thread, needs no lock] */
void tsi_pending_empty(TsiBinding* b, TsiPending* pending);
/* Adds n to *sum, one of a pending record, by a plain store; tsi_pending_empty moves it to the label later.
 * [own thread, needs no lock] */
TSI_INLINE void tsi_pending_sum(_Atomic uint64_t* sum, uint64_t n) {
    /* release: pairs with the acquire in tsi_labels_begin: a reader that sees it sees whose it is, too */
    tsi_store_release(sum, tsi_load_relaxed(sum) + n);
}
/* Adds 1 to *bucket, of a histogram of pending; empties the whole record into its label as that comes near the end of
 * 32 bits. [own thread, needs no lock] */
TSI_INLINE void tsi_pending_count(TsiBinding* b, TsiPending* pending, _Atomic uint32_t* bucket) {
    uint32_t now = tsi_load_relaxed(bucket) + 1;
    tsi_store_release(bucket, now); /* as in tsi_pending_sum */
    if (TSI_UNLIKELY(now > UINT32_MAX / 2)) tsi_pending_empty(b, pending);
}
/* Adds the committed bytes of a pending record, which may be negative, to its label, whose peak rises with them, and
 * sets them to 0 there. Sums, histograms and grant stay. [own thread, needs no lock] */
void tsi_pending_push(TsiArena* a, TsiPending* pending);
/* Adds committed bytes, or takes them off if negative, in pending->bytes; moves all of them to the label as they reach
 * TSI_PENDING_BYTES (64 KiB) either way, which may raise its peak. [own thread, needs no lock] */
TSI_INLINE void tsi_pending_add(TsiArena* a, TsiPending* pending, int64_t bytes) {
    pending->bytes += bytes;
    if (TSI_UNLIKELY((uint64_t)(pending->bytes + TSI_PENDING_BYTES - 1) > 2 * TSI_PENDING_BYTES - 2))
        tsi_pending_push(a, pending);
}
/* Returns true if the label has a soft or a hard limit now, one that is not 0. A hint without the labels lock.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_label_has_budget(TsiLabel* label) {
    return (tsi_load_relaxed(&label->budget.soft) | tsi_load_relaxed(&label->budget.hard)) != 0;
}

/* Sets the limits of a budget, in bytes (0: none), and its function with ctx. Grants, and what is committed, stay as
 * they are: tsi_budget_change_locked does more. [labels lock held, or for a phase's budget the stripe] */
TSI_INLINE void tsi_budget_write(TsiBudget* budget, uint64_t soft, uint64_t hard, SlabBudgetFn fn, void* ctx) {
    budget->fn = (void (*)(void))fn;
    budget->ctx = ctx;
    tsi_store_relaxed(&budget->soft, soft);
    tsi_store_relaxed(&budget->hard, hard);
}
/* Sets a label's budget: limits in bytes (0: none), and fn with ctx, which is called as they are passed (NULL: none).
 * Everything granted to threads under the old limits goes back, and none is granted meanwhile. Committed bytes stay,
 * over the new limits too. [labels lock held] */
void tsi_budget_change_locked(TsiArena* a, uint32_t label, uint64_t soft, uint64_t hard, SlabBudgetFn fn, void* ctx);

enum { TSI_BUDGET_SHIFT = 40 }; /* label's record + 1 in TsiPending.grant */
#define TSI_BUDGET_BYTES ((1ull << TSI_BUDGET_SHIFT) - 1)

/* Takes `bytes` out of the thread's grant for the label, in pending->grant; the label has counted them as committed.
 * Returns true; false, and takes none, if the grant is less or another label's. pending: of tsi_pending_of for `label`.
 * [own thread, needs no lock] */
TSI_INLINE bool tsi_budget_use(TsiPending* pending, uint32_t label, uint64_t bytes) {
    uint64_t now = tsi_load_relaxed(&pending->grant);
    do {
        if (now >> TSI_BUDGET_SHIFT != label + 1 || (now & TSI_BUDGET_BYTES) < bytes) return false;
        /* seq_cst, like every move of grants: decides between this thread and one that takes it back */
    } while (!tsi_cas_seq(&pending->grant, &now, now - bytes));
    return true;
}
/* Gives back `bytes` of a phase whose label has a budget: to the thread's grant, if that stays within TSI_PENDING_BYTES
 * and the label is far from its limits, otherwise off label->committed. First pushes what pending had from before there
 * was a budget. pending: the thread's record for `label`. [own thread, needs no lock] */
void tsi_budget_give(TsiArena* a, TsiPending* pending, uint32_t label, uint64_t bytes);
/* Takes committed bytes off a label: off the thread's record of it, `pending`, or, if it has a budget, by
 * tsi_budget_give. pending: of tsi_pending_of for `label`. [own thread, needs no lock] */
TSI_INLINE void tsi_label_less(TsiBinding* b, TsiPending* pending, uint32_t label, uint64_t bytes) {
    if (TSI_LIKELY(!tsi_label_has_budget(tsi_label(&b->arena->phases.labels, label))))
        tsi_pending_add(b->arena, pending, -(int64_t)bytes);
    else tsi_budget_give(b->arena, pending, label, bytes);
}

/* Charges `bytes` of the first slab of a phase that nobody has touched since it was opened, so that it has no budget
 * and nothing charged. Returns true, with no tsi_charge_keep due; false, with nothing changed, if its label has a
 * budget and the thread's grant for it is less. [stripe held] */
TSI_INLINE bool tsi_charge_first_locked(TsiBinding* b, TsiInc* inc, uint64_t bytes) {
    TSI_HOLDS(tsi_inc_lock(inc));
    uint64_t was = tsi_load_relaxed(&inc->charge);
    uint32_t label = (uint32_t)(was >> TSI_CHARGE_BITS);
    TsiPending* pending = tsi_pending_of(b, label);
    TSI_ASSERT(((was & TSI_CHARGE_MASK) | tsi_load_relaxed(&inc->budget.hard) | tsi_load_relaxed(&inc->budget.soft)) ==
               0);
    if (TSI_LIKELY(!tsi_label_has_budget(tsi_label(&b->arena->phases.labels, label))))
        tsi_pending_add(b->arena, pending, (int64_t)bytes);
    else if (!tsi_budget_use(pending, label, bytes)) return false;
    tsi_store_relaxed(&inc->charge, was + bytes);
    return true;
}

/* Posts the objects of a phase's only region that were freed one by one, sum->issued less sum->live, as allocated and
 * as freed, to the thread's record of its label. The caller posts sum->live, those released.
 * [own thread, needs no lock] */
TSI_INLINE void tsi_post_freed(TsiPending* pending, const TsiRegionSum* sum) {
    uint64_t objects = sum->issued - sum->live, bytes = sum->issued_bytes - sum->live_bytes;
    tsi_pending_sum(&pending->sums.objects_allocated, objects);
    tsi_pending_sum(&pending->sums.bytes_allocated, bytes);
    tsi_pending_sum(&pending->sums.objects_freed, objects);
    tsi_pending_sum(&pending->sums.bytes_freed, bytes);
}
/* Adds a phase's peak, in bytes, and, unless since_ns is TSI_UNTIMED, its age, now_ns less since_ns or 0, to the
 * histograms of pending, the thread's record of its label. [own thread, needs no lock] */
TSI_INLINE void tsi_post_shape(TsiBinding* b, TsiPending* pending, uint64_t peak, uint64_t since_ns, uint64_t now_ns) {
    tsi_pending_count(b, pending, &pending->peaks[tsi_label_bucket(peak)]);
    if (TSI_UNLIKELY(since_ns == TSI_UNTIMED)) return;
    tsi_pending_count(b, pending, &pending->duration[tsi_label_bucket(now_ns > since_ns ? now_ns - since_ns : 0)]);
}

#endif
