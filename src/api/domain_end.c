/*
 * domain_end.c - ends of a whole domain in one call, with a receipt: released or drained.
 *
 * Both decide under the domain's lock that nobody but the caller is inside, and only then leave. So a call that is
 * refused has done nothing. After that the domain is the caller's, as in destroy: entering it meanwhile is a race of
 * the program's own.
 *
 * `ref` stays in the record until the record is discarded. A fork child releases an incarnation that no domain refers
 * to and that no close has begun on (child_sweep in fork.c). An incarnation that is about to be drained must not look
 * like that, or the objects that escape would end there.
 */
#include "api/domain.h"

#include "heap/close.h"
#include "heap/sweep_totals.h"

#include <string.h>

/* Claims the domain for the caller, who has `mine` (0 or 1) of its scopes, so that it can be ended in `mode`: sets its
 * count of scopes to 0 and `left` to TSI_DOMAIN_GOING. Returns true if no other scope is inside; false, and changes
 * nothing, with *why set to the reason: scopes are inside, of the domain or, to drain a borrowed epoch, of another
 * domain in that; another call has claimed it; the ring has moved past its epoch. *why means nothing with true.
 * [domain's lock held] */
static bool leave_alone_locked(TsiArena* a, TsiDomain* d, uint32_t mine, EpochCloseMode mode, TsiDomainWhy* why) {
    TSI_HOLDS(&d->lock);
    *why = TSI_DOMAIN_INSIDE;
    if (tsi_domain_refs(d) != mine) return false;

    *why = TSI_DOMAIN_ENDED;
    if (tsi_load_relaxed(&d->left) == TSI_DOMAIN_GOING) return false; /* another such call was first */

    if (!d->own && mode == EPOCH_DRAIN) {
        TsiRef ref = tsi_load_relaxed(&d->phase.ref);
        bool named = ref != 0 && tsi_phases_resolve(&a->phases, d->pub.epoch_id) == ref;
        *why = named ? TSI_DOMAIN_INSIDE : TSI_DOMAIN_PASSED;
        if (!named || tsi_load_relaxed(&tsi_inc(&a->phases, tsi_ref_index(ref))->scopes) != mine) return false;
    }

    tsi_domain_refs_set(d, 0);
    tsi_store_relaxed(&d->left, TSI_DOMAIN_GOING); /* no enter, end or reset from now on: cleanups may try */
    return true;
}

/* Ends a domain without an open phase of its own: drains the epoch that it borrows, if `mode` is EPOCH_DRAIN or
 * tsi_domain_owes_drain returns true. Sets *out (may be NULL) to the receipt; if nothing is drained, to the domain's
 * last one, blank if it has none. mode: the one that was asked for.
 * [the one thread for which leave_alone_locked returned true, no lock held] */
static TSI_NOINLINE void end_otherwise(TsiArena* a, TsiDomain* d, EpochCloseMode mode, EpochReceipt* out) {
    EpochReceipt unwanted;
    if (out == NULL) out = &unwanted;
    tsi_receipt_blank(out, 0, 0, tsi_no_label);
    bool drains = (!d->own && mode == EPOCH_DRAIN) || tsi_domain_owes_drain(a, d);
    if (!drains) (void)tsi_domain_last_receipt(d, out);
    else /* the ring may have moved on meanwhile: blank */
        (void)tsi_epoch_close(a, tsi_load_relaxed(&d->phase.ref), EPOCH_DRAIN, TSI_END_SCOPE, out);
}

/* Where the caller must be: inside, anywhere, or outside with nobody inside. */
typedef enum TsiWhere { INSIDE, ANYWHERE, OUTSIDE } TsiWhere;

/* Ends the domain for good in `mode`, and discards it. EPOCH_RELEASE: an epoch of its own is released, one that it
 * borrows is drained if tsi_domain_owes_drain returns true, and otherwise stays open; EPOCH_DRAIN: either is drained.
 * where: the place in which the caller must be. Returns true, with the receipt in *out (may be NULL), the domain's
 * last one or blank if nothing was left to end; false after a refusal that has changed nothing, *out included.
 * [own thread, no lock held, no bracket open] */
static bool end_whole(TsiDomain* d, EpochCloseMode mode, TsiWhere where, EpochReceipt* out) {
    TsiDomainWhy why = TSI_DOMAIN_NOT_INNERMOST;
    if (!tsi_domain_usable(d)) return false;
    TsiScope* top = where != OUTSIDE ? tsi_scope_top(d) : NULL;
    if (!tsi_domain_found(d)) return tsi_domain_refuse_destroyed(d);
    TsiArena* a = d->arena;

    tsi_lock_take(&d->lock);
    bool ok = (top != NULL || where != INSIDE) && leave_alone_locked(a, d, top != NULL, mode, &why);
    tsi_lock_give(&d->lock);
    if (!ok) return tsi_domain_refuse(d, why);
    if (top != NULL) {
        tsi_scope_pop(top);
        tsi_scopes_add(a, d, -1);
    }

    TsiRef ref = tsi_load_acquire(&d->phase.ref); /* pairs with tsi_domain_open_own */
    if (TSI_LIKELY(d->own && ref != 0)) (void)tsi_inc_end_own(a, tsi_binding_get(a, false), ref, mode, out);
    else end_otherwise(a, d, mode, out);
    tsi_domain_discard(a, d);
    tsi_closed(a);
    return true;
}

void tsi_domain_drain_left(TsiDomain* d) { (void)end_whole(d, EPOCH_DRAIN, OUTSIDE, NULL); }

/* Ends the domain in `mode` by end_whole on a thread that runs destructors of thread-specific data: past the library's
 * own destructor the thread lets go of all that it has afterwards, unless a scope is open. where: the place in which
 * the caller must be; out: receives the receipt, may be NULL. Returns true if it has ended; false after a refusal,
 * with *out left alone. [exiting thread, no lock held, no bracket open] */
static TSI_NOINLINE bool end_late(epoch_domain_t* d, EpochCloseMode mode, TsiWhere where, EpochReceipt* out) {
    tsi_thread_late_enter();
    bool done = end_whole(tsi_domain_of(d), mode, where, out);
    tsi_thread_late_leave();
    return done;
}

/* Ends the domain in `mode` by end_whole, or by end_late on a thread that exits. where: the place in which the caller
 * must be; out: receives the receipt, may be NULL. Returns true if it has ended; false after a refusal, with *out left
 * alone. [own thread, no lock held, no bracket open] */
TSI_INLINE bool end_asked(epoch_domain_t* d, EpochCloseMode mode, TsiWhere where, EpochReceipt* out) {
    return TSI_UNLIKELY(tsi_tls.exiting) ? end_late(d, mode, where, out)
                                         : end_whole(tsi_domain_of(d), mode, where, out);
}

bool epoch_domain_end_ex(epoch_domain_t* d, EpochReceipt* out) { return end_asked(d, EPOCH_RELEASE, INSIDE, out); }
bool epoch_domain_destroy_ex(epoch_domain_t* d, EpochReceipt* out) { return end_asked(d, EPOCH_RELEASE, OUTSIDE, out); }
bool epoch_domain_drain(epoch_domain_t* d, EpochReceipt* out) { return end_asked(d, EPOCH_DRAIN, ANYWHERE, out); }
