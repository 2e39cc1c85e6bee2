/*
 * charge.h - committed bytes by phase and by label, budgets, and what a phase leaves in its label's account.
 *
 * A phase's word `charge` holds its label and its committed bytes, so a charge and a relabelling that race
 * agree about which label has the bytes. Labels without a budget are charged through a small store of the thread, up to
 * 64 KiB either way, so that threads that serve one route do not meet on its counter; `peak` of a
 * label is exact but for that. Labels with a budget are charged at once.
 *
 * What phases post when they end is kept by the thread as well, in a record for each of the labels that it used last, written
 * by plain stores. A reader that finds the record to be another label's after reading than before leaves it out this time.
 *
 * Budgets are tested where a slab is taken: never in a fast path.
 */
#ifndef TSI_HEAP_CHARGE_H
#define TSI_HEAP_CHARGE_H

#include "heap/arena.h"

enum { TSI_PENDING_BYTES = 64 << 10 };

/* What a charge found: committed bytes before it, of the phase and, unless they are pending, of its label. */
typedef struct TsiCharge {
    uint64_t bytes, phase, of_label;
    uint32_t label;
    bool pending;
} TsiCharge;

/* Adds the bytes of a slab that is about to be taken to the phase and its label. False when a hard budget forbids it:
 * nothing has changed then, and b->budget says whose it was. */
bool tsi_charge(TsiBinding* b, TsiInc* i, uint64_t bytes, TsiCharge* c);
/* Charges the first slab of a phase that no heap is in, and where no budget is in the way; false, and nothing done, else. Stripe held. */
bool tsi_charge_first_locked(TsiBinding* b, TsiInc* i, uint64_t bytes);
/* The slab is there: the label's peak rises, and b->budget says which soft budgets were passed. Else tsi_charge_undo, and no peak has it. */
void tsi_charge_keep(TsiBinding* b, TsiInc* i, const TsiCharge* c);
void tsi_charge_undo(TsiArena* a, TsiBinding* b, TsiInc* i, uint64_t bytes);
/* Takes bytes off that were kept. The incarnation is pinned. b may be NULL. */
void tsi_uncharge(TsiArena* a, TsiBinding* b, TsiInc* i, uint64_t bytes);
/* All that the phase still has, when it is over and nobody else charges it. Stripe held. */
void tsi_uncharge_all_locked(TsiArena* a, TsiBinding* b, TsiInc* i);
/* Thread exit: what is pending reaches the labels. */
void tsi_charges_flush(TsiBinding* b);

/* In a fork child, whose vanished threads may have been between a charge and its slab: nothing is charged, or pending. */
void tsi_charges_forget(TsiArena* a);
/* Then, for each slab that a phase has. */
void tsi_charge_again(TsiArena* a, TsiInc* i, uint64_t bytes);

/* What the slabs of a phase say: objects issued by those that heaps still hold, and live ones of all. */
typedef struct TsiHeld {
    TsiTotals issued, live;
} TsiHeld;
/* All that is past stays with the old label. Stripe held. */
void tsi_relabel_locked(TsiArena* a, TsiBinding* b, TsiInc* i, const char name[TSI_LABEL_BYTES], const TsiHeld* held);
/* Posts what the phase has accounted since it was posted last. Stripe held. */
void tsi_post_locked(TsiArena* a, TsiBinding* b, TsiInc* i);
/* The same, and the objects freed singly so far: no heap holds slabs of the phase. Stripe held. */
void tsi_post_settled_locked(TsiArena* a, TsiInc* i);
/* The same, and the objects freed singly: the phase is over and its record about to be used again. Stripe held. */
void tsi_post_last_locked(TsiArena* a, TsiBinding* b, TsiInc* i);
/* The phase leaves ACTIVE: counts it as ended. now_ns may be 0 when nothing was ever held. Stripe held. */
void tsi_post_end_locked(TsiArena* a, TsiBinding* b, TsiInc* i, uint64_t now_ns);

/* A phase that is over, which only this thread has had: all of the above, and tsi_uncharge_all_locked. Its era ends in the same hold of
 * the stripe. */
void tsi_post_alone_locked(TsiArena* a, TsiBinding* b, TsiInc* i, uint64_t now_ns);
/* What was live when the phase was closed by draining. Stripe held. */
void tsi_post_escapes(TsiArena* a, TsiInc* i, TsiTotals live);

/* Calls the functions of the budgets; no lock held, no bracket open. Of hard ones only those in the bits `hard`. */
void tsi_budget_tell(TsiArena* a, const TsiBudgetEvents* e, unsigned hard);

/* Record of the label that it is for; it is for one. */
TSI_INLINE uint32_t tsi_pending_label(const TsiPending* p) { return (uint32_t)tsi_load_relaxed(&p->whose) - 1; }

TSI_INLINE TsiLabel* tsi_label_of(TsiArena* a, TsiInc* i) {
    return tsi_label(&a->phases.labels, tsi_inc_label(i));
}

#endif
