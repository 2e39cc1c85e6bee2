/*
 * charge.h - committed bytes by phase and by label, budgets, and what a phase leaves in its label's account.
 *
 * A phase's word `charge` holds its label and its committed bytes, so a charge and a relabelling that race agree
 * about which label has the bytes. Labels without a budget are charged through a small store of the thread, up to
 * 64 KiB either way, so that threads that serve one route do not contend for its counter; `peak` of a label is exact
 * but for that.
 *
 * A label with a budget is charged before its phases are, in grants: a thread that has to go to the label takes up to
 * 64 KiB in advance, and keeps what its phases give back up to as much, as long as the label is far from both limits.
 *
 *   C1  What a label is charged with = the charges of its phases + the grants of all threads (and what is pending). A
 *       move between the two takes from one after it has given to the other, so a hard budget is never exceeded.
 *   C2  Before a charge is refused, or passes the soft budget, the grants of all threads go back to the label, under
 *       the labels' lock: of two who do so at a time the second finds what the first has returned. From before that
 *       until the charge is made no grant is given (`exact`). So only calls that are under way are missed, and near
 *       its limits a budget acts by exact figures. The same when a budget is changed.
 *
 * Model: tests/models/grants.pml.
 *
 * What phases post when they end is kept by the thread as well, in a record for each of the labels that it used last,
 * written by plain stores. A reader that finds, after reading, that the record has become another label's leaves it
 * out this time.
 *
 * Budgets are tested where a slab is taken: never in a fast path.
 */
#ifndef TSI_ACCOUNT_CHARGE_H
#define TSI_ACCOUNT_CHARGE_H

#include "state/arena.h"
#include "mem/region.h"

enum { TSI_PENDING_BYTES = 64 << 10 };

/* True where a hard budget of the phase or of its label, or max_bytes, may refuse memory. A hint. */
TSI_INLINE bool tsi_is_limited(TsiArena* a, TsiInc* i) {
    return (tsi_load_relaxed(&i->budget.hard) | tsi_load_relaxed(&tsi_label_of(a, i)->budget.hard) |
            a->space.config.max_bytes) != 0;
}

/* What a charge found: committed bytes before it, of the phase and, unless they are pending, of its label. */
typedef struct TsiCharge {
    uint64_t bytes, phase, of_label;
    uint32_t label;
    bool pending; /* or from a grant: the label does not know of it yet, or knew before */
} TsiCharge;

/* Adds the bytes of a slab that is about to be taken to the phase and its label. False when a hard budget forbids it:
 * nothing has changed then, and b->budget says whose it was. */
bool tsi_charge(TsiBinding* b, TsiInc* i, uint64_t bytes, TsiCharge* c);
/* The slab is there: the label's peak rises, and b->budget says which soft budgets were passed. Where there is none
 * tsi_charge_undo is called, and no peak has the bytes. */
void tsi_charge_keep(TsiBinding* b, TsiInc* i, const TsiCharge* c);
void tsi_charge_undo(TsiArena* a, TsiBinding* b, TsiInc* i, uint64_t bytes);
/* Takes bytes off that were kept. The incarnation is pinned. b may be NULL. */
void tsi_uncharge(TsiArena* a, TsiBinding* b, TsiInc* i, uint64_t bytes);
/* All that the phase still has, when it is over and nobody else charges it. Stripe held. */
void tsi_uncharge_all_locked(TsiArena* a, TsiBinding* b, TsiInc* i);
/* Thread exit: what is pending reaches the labels. */
void tsi_charges_flush(TsiBinding* b);

/* In a fork child, whose vanished threads may have been between a charge and its slab. Afterwards nothing is charged
 * or pending. */
void tsi_charges_forget(TsiArena* a);
/* Then, for each slab that a phase has. */
void tsi_charge_again(TsiArena* a, TsiInc* i, uint64_t bytes);

/* What the slabs of a phase say: objects issued by those that heaps still hold, and live ones of all. */
typedef struct TsiHeld {
    TsiTotals issued, live;
} TsiHeld;
/* All that is past stays with the old label. True when it has another one: then tsi_late_note_locked is due. Stripe
 * held. */
bool tsi_relabel_locked(TsiArena* a, TsiBinding* b, TsiInc* i, const char name[TSI_LABEL_BYTES], const TsiHeld* held);
/* Posts what the phase has accounted since it was posted last. Stripe held. */
void tsi_post_locked(TsiArena* a, TsiBinding* b, TsiInc* i);
/* The same, and the objects freed singly so far: no heap holds slabs of the phase, or it is over, has no orphans
 * either, and its record is about to be used again. Stripe held. */
void tsi_post_settled_locked(TsiArena* a, TsiBinding* b, TsiInc* i);
/* The phase leaves ACTIVE: counts it as ended. now_ns may be 0 when nothing was ever held. Stripe held. */
void tsi_post_end_locked(TsiArena* a, TsiBinding* b, TsiInc* i, uint64_t now_ns);

/* What was live when the phase was closed by draining. Stripe held. */
void tsi_post_escapes(TsiArena* a, TsiInc* i, TsiTotals live);

/* Calls the functions of the budgets; no lock held, no bracket open. Of hard ones only those in the bits `hard`. */
void tsi_budget_tell(TsiArena* a, const TsiBudgetEvents* e, unsigned hard);

/* Record of the label that it is for; it is for one. */
TSI_INLINE uint32_t tsi_pending_label(const TsiPending* p) { return (uint32_t)tsi_load_relaxed(&p->whose) - 1; }
/* Makes the record that label's; what it has goes to the one that it was for. */
void tsi_pending_turn(TsiBinding* b, TsiPending* p, uint32_t label);
/* The thread's record of a label. */
TSI_INLINE TsiPending* tsi_pending_of(TsiBinding* b, uint32_t label) {
    TsiPending* p = &b->pending[label % TSI_PENDING_LABELS];
    if (TSI_UNLIKELY((uint32_t)tsi_load_relaxed(&p->whose) != label + 1)) tsi_pending_turn(b, p, label);
    return p;
}
/* All that the thread has for the record's label goes to the label. */
void tsi_pending_empty(TsiBinding* b, TsiPending* p);
TSI_INLINE void tsi_pending_sum(_Atomic uint64_t* sum, uint64_t n) {
    /* release: pairs with the acquire in tsi_labels_begin: who reads it reads whose it is, too */
    tsi_store_release(sum, tsi_load_relaxed(sum) + n);
}
/* 32 bits are enough: a record that comes near their end goes to its label. */
TSI_INLINE void tsi_pending_count(TsiBinding* b, TsiPending* p, _Atomic uint32_t* bucket) {
    uint32_t now = tsi_load_relaxed(bucket) + 1;
    tsi_store_release(bucket, now); /* as above */
    if (TSI_UNLIKELY(now > UINT32_MAX / 2)) tsi_pending_empty(b, p);
}
/* What is pending of committed bytes goes to the label. */
void tsi_pending_push(TsiArena* a, TsiPending* p);
TSI_INLINE void tsi_pending_add(TsiArena* a, TsiPending* p, int64_t bytes) {
    p->bytes += bytes;
    if (TSI_UNLIKELY((uint64_t)(p->bytes + TSI_PENDING_BYTES - 1) > 2 * TSI_PENDING_BYTES - 2)) tsi_pending_push(a, p);
}
TSI_INLINE bool tsi_label_has_budget(TsiLabel* l) {
    return (tsi_load_relaxed(&l->budget.soft) | tsi_load_relaxed(&l->budget.hard)) != 0;
}

/* Under the lock of whose it is. */
TSI_INLINE void tsi_budget_write(TsiBudget* budget, uint64_t soft, uint64_t hard, SlabBudgetFn fn, void* ctx) {
    budget->fn = (void (*)(void))fn;
    budget->ctx = ctx;
    tsi_store_relaxed(&budget->soft, soft);
    tsi_store_relaxed(&budget->hard, hard);
}
/* Of a label: what was granted by the limits before goes back. The labels' lock is held. */
void tsi_budget_change_locked(TsiArena* a, uint32_t label, uint64_t soft, uint64_t hard, SlabBudgetFn fn, void* ctx);

enum { TSI_BUDGET_SHIFT = 40 }; /* of TsiPending.grant */
#define TSI_BUDGET_BYTES ((1ull << TSI_BUDGET_SHIFT) - 1)

/* Takes so much out of the thread's grant of the label, whose record p is. */
TSI_INLINE bool tsi_budget_use(TsiPending* p, uint32_t label, uint64_t bytes) {
    uint64_t now = tsi_load_relaxed(&p->grant);
    do {
        if (now >> TSI_BUDGET_SHIFT != label + 1 || (now & TSI_BUDGET_BYTES) < bytes) return false;
        /* seq_cst, as all that moves grants: decides between us and who takes it back */
    } while (!tsi_cas_seq(&p->grant, &now, now - bytes));
    return true;
}
/* What a phase of a label with a budget gives back: into the thread's grant, or to the label. */
void tsi_budget_give(TsiArena* a, TsiPending* p, uint32_t label, uint64_t bytes);
/* Takes committed bytes off a label that is p's. */
TSI_INLINE void tsi_label_less(TsiBinding* b, TsiPending* p, uint32_t label, uint64_t bytes) {
    if (TSI_LIKELY(!tsi_label_has_budget(tsi_label(&b->arena->phases.labels, label))))
        tsi_pending_add(b->arena, p, -(int64_t)bytes);
    else tsi_budget_give(b->arena, p, label, bytes);
}

/* Charges the first slab of a phase that nobody has touched since it was opened: it has no budget. False, and nothing
 * done, where its label has one and the thread no grant. Stripe held. */
TSI_INLINE bool tsi_charge_first_locked(TsiBinding* b, TsiInc* i, uint64_t bytes) {
    TSI_HOLDS(tsi_inc_lock(i));
    uint64_t was = tsi_load_relaxed(&i->charge);
    uint32_t label = (uint32_t)(was >> TSI_CHARGE_BITS);
    TsiPending* p = tsi_pending_of(b, label);
    TSI_ASSERT(((was & TSI_CHARGE_MASK) | tsi_load_relaxed(&i->budget.hard) | tsi_load_relaxed(&i->budget.soft)) == 0);
    if (TSI_LIKELY(!tsi_label_has_budget(tsi_label(&b->arena->phases.labels, label))))
        tsi_pending_add(b->arena, p, (int64_t)bytes);
    else if (!tsi_budget_use(p, label, bytes)) return false;
    tsi_store_relaxed(&i->charge, was + bytes);
    return true;
}

/* Posts what was freed singly of a phase that has posted what was released, as allocated, too. */
TSI_INLINE void tsi_post_freed(TsiPending* p, const TsiRegionSum* sum) {
    uint64_t objects = sum->issued - sum->live, bytes = sum->issued_bytes - sum->live_bytes;
    tsi_pending_sum(&p->sums.objects_allocated, objects);
    tsi_pending_sum(&p->sums.bytes_allocated, bytes);
    tsi_pending_sum(&p->sums.objects_freed, objects);
    tsi_pending_sum(&p->sums.bytes_freed, bytes);
}
/* Posts its size and, unless it is untimed, its age. */
TSI_INLINE void tsi_post_shape(TsiBinding* b, TsiPending* p, uint64_t peak, uint64_t since_ns, uint64_t now_ns) {
    tsi_pending_count(b, p, &p->peaks[tsi_label_bucket(peak)]);
    if (TSI_UNLIKELY(since_ns == TSI_UNTIMED)) return;
    tsi_pending_count(b, p, &p->duration[tsi_label_bucket(now_ns > since_ns ? now_ns - since_ns : 0)]);
}

#endif
