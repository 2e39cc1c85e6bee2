/* epochs.c - the public calls on ring epochs. */
#include "api/domain.h"

#include "account/charge.h"
#include "heap/close.h"
#include "heap/late_frees.h"
#include "phase/draining.h"
#include "stats/snapshot.h"
#include "heap/finish.h"
#include "heap/records.h"

TsiRef tsi_resolve(TsiArena* a, EpochId id) {
    TsiRef ref = tsi_phases_resolve(&a->phases, id);
    if (TSI_UNLIKELY(ref == 0)) {
        bool ended = tsi_phases_was_domain(&a->phases, id);
        tsi_refuse(a, ended ? SLAB_MISUSE_CLOSED_EPOCH : SLAB_MISUSE_BAD_EPOCH, NULL);
        errno = ended ? ESTALE : EINVAL;
    }
    return ref;
}

/* An incarnation that an id names; inc is NULL if there is none, which was refused. */
typedef struct Named {
    TsiArena* a;
    TsiRef ref;
    TsiInc* inc;
} Named;

/* Returns the arena, the reference and the record of the incarnation that an id names. inc is NULL and ref 0 if there
 * is none, which is refused with errno and counted; a is NULL, too, without an allocator, which is not counted and
 * leaves errno alone. [any thread, no lock held, no bracket open] */
static Named named(SlabAllocator* allocator, EpochId id) {
    TsiArena* a = tsi_arena(allocator);
    TsiRef ref = a != NULL ? tsi_resolve(a, id) : 0;
    return (Named){a, ref, ref != 0 ? tsi_inc(&a->phases, tsi_ref_index(ref)) : NULL};
}

EpochId epoch_current(SlabAllocator* allocator) {
    TsiArena* a = tsi_arena(allocator);
    return a != NULL ? tsi_load_acquire(&a->phases.current) : 0; /* pairs with tsi_phases_step_locked */
}

EpochId epoch_advance_id(SlabAllocator* allocator) {
    TsiArena* a = tsi_arena(allocator);
    if (a == NULL) return 0;
    EpochId id = tsi_epoch_advance(a, 0);
    tsi_closed(a);
    return id;
}

void epoch_advance(SlabAllocator* allocator) { (void)epoch_advance_id(allocator); }

/* Returns the domain of the incarnation `ref` if that is active and one thread's alone and a run is open there; else
 * NULL. ref is one that the calling thread may use: tsi_ref_is_anothers returned false. [own thread, needs no lock] */
static TsiDomain* that_runs(TsiArena* a, TsiRef ref) {
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    uint32_t domain = tsi_load_relaxed(&inc->domain);
    if (TSI_LIKELY(tsi_load_relaxed(&inc->owner) == 0) || domain == 0 || !tsi_ref_is_active(&a->phases, ref))
        return NULL;
    TsiDomain* d = tsi_table_at(&a->domains, domain - 1);
    return tsi_domain_runs(d) && tsi_load_relaxed(&d->phase.ref) == ref ? d : NULL;
}

/* Ends the phase `ref`, not 0, in `mode`, unless it is another thread's alone or has a run open: that is refused with
 * EBUSY, and counted. Publishes the statistics if that is due. Returns true, with the receipt in *out (may be NULL),
 * if this call has ended it; false, with *out left alone, after a refusal, or if it had ended before.
 * [any thread, no lock held, no bracket open] */
static bool end(TsiArena* a, TsiRef ref, EpochCloseMode mode, EpochReceipt* out) {
    uint32_t thread = tsi_tls.thread != NULL ? tsi_tls.thread->index + 1 : 0;
    if (tsi_ref_is_anothers(&a->phases, ref, thread)) {
        tsi_refuse(a, SLAB_MISUSE_DOMAIN_ORDER, NULL);
        return tsi_failed_bool(EBUSY, "the phase is of a domain that is another thread's alone");
    }
    TsiDomain* d = that_runs(a, ref);
    if (TSI_UNLIKELY(d != NULL)) return tsi_domain_refuse(d, TSI_DOMAIN_RUNS);
    bool ended = tsi_epoch_close(a, ref, mode, TSI_END_ASKED, out);
    tsi_closed(a);
    return ended;
}

bool epoch_close_ex(SlabAllocator* allocator, EpochId id, EpochCloseMode mode, EpochReceipt* out) {
    for (Named by_name; (by_name = named(allocator, id)).inc != NULL;) {
        if (end(by_name.a, by_name.ref, mode, out)) return true;
        if (tsi_phases_resolve(&by_name.a->phases, id) == by_name.ref)
            return false; /* otherwise the id was taken over meanwhile */
    }
    return false;
}

void epoch_close(SlabAllocator* allocator, EpochId id) { (void)epoch_close_ex(allocator, id, EPOCH_DRAIN, NULL); }

bool epoch_close_era(SlabAllocator* allocator, uint64_t era, EpochCloseMode mode, EpochReceipt* out) {
    TsiArena* a = tsi_arena(allocator);
    if (a != NULL) tsi_sweep_unswept(a, tsi_binding_get(a, false)); /* or a drained one would still be found */
    TsiRef ref = a != NULL ? tsi_era_find(a, era) : 0;
    if (ref != 0) return end(a, ref, mode, out);
    if (a != NULL) tsi_refuse(a, SLAB_MISUSE_BAD_EPOCH, NULL);
    return false;
}

uint64_t epoch_era(SlabAllocator* allocator, EpochId id) {
    TsiArena* a = tsi_arena(allocator);
    return a != NULL ? tsi_ref_era(tsi_phases_resolve(&a->phases, id)) : 0;
}

EpochLifecycleState epoch_state(SlabAllocator* allocator, EpochId id) {
    TsiArena* a = tsi_arena(allocator);
    TsiRef ref = a != NULL ? tsi_phases_resolve(&a->phases, id) : 0;
    return ref != 0 && tsi_ref_is_active(&a->phases, ref) ? EPOCH_ACTIVE : EPOCH_CLOSING;
}

typedef struct HeldWalk {
    TsiRef ref;
    TsiHeld held;
} HeldWalk;

/* Adds the slab *view to the HeldWalk ctx if view->ref is its phase: its live objects, and, if a heap owns the slab,
 * the objects issued there; otherwise does nothing. [no other user of ctx] */
static void add_held(const TsiSlabView* view, void* ctx) {
    HeldWalk* walk = ctx;
    if (view->ref != walk->ref) return;
    tsi_totals_add(&walk->held.live, view->sum.live);
    if (view->state == TSI_SLAB_OWNED) tsi_totals_add(&walk->held.issued, view->sum.issued);
}

void slab_epoch_set_label(SlabAllocator* allocator, EpochId id, const char* label) {
    Named by_name = named(allocator, id);
    TsiInc* inc = by_name.inc;
    char name[TSI_LABEL_BYTES];
    if (inc == NULL) return;
    tsi_label_copy(name, label);
    HeldWalk walk = {.ref = by_name.ref};

    tsi_phase_lock(inc);
    if (tsi_inc_era(inc) == tsi_ref_era(by_name.ref)) {
        /* seq_cst, before slabs are read: pairs with has_moved in report_labels.c */
        tsi_add_seq(&inc->relabellings, 1);
        if (inc->heaps != 0 || inc->orphans != 0) tsi_snapshot_slabs(by_name.a, add_held, &walk);
        if (tsi_relabel_locked(by_name.a, tsi_binding_get(by_name.a, false), inc, name, &walk.held))
            tsi_late_note_locked(by_name.a, inc);
    }
    tsi_phase_unlock(inc);
}

/* Adds 1 to user_refs of the epoch that the id names, the references that the program counts, if `up` is true;
 * otherwise takes 1 off, or nothing if there are none. An id that names none is refused, which is counted, and nothing
 * changes; nor does it if the epoch ends meanwhile. Takes and gives back the stripe.
 * [any thread, no lock held, no bracket open] */
static void refcount_add(SlabAllocator* allocator, EpochId id, bool up) {
    Named by_name = named(allocator, id);
    if (by_name.inc == NULL) return;
    tsi_lock_take(tsi_inc_lock(by_name.inc));
    uint64_t refs = tsi_load_relaxed(&by_name.inc->user_refs);
    if (tsi_inc_era(by_name.inc) == tsi_ref_era(by_name.ref) && (up || refs != 0))
        tsi_store_relaxed(&by_name.inc->user_refs, up ? refs + 1 : refs - 1);
    tsi_phase_unlock(by_name.inc);
}

void slab_epoch_inc_refcount(SlabAllocator* allocator, EpochId id) { refcount_add(allocator, id, true); }
void slab_epoch_dec_refcount(SlabAllocator* allocator, EpochId id) { refcount_add(allocator, id, false); }

uint64_t slab_epoch_get_refcount(SlabAllocator* allocator, EpochId id) {
    TsiInc* inc = named(allocator, id).inc;
    return inc != NULL ? tsi_load_relaxed(&inc->user_refs) : 0;
}

/* Returns true if the budgets in bytes, 0 for none, fit: hard is 0 or not below soft. Otherwise sets errno to EINVAL
 * and returns false. [any thread, needs no lock] */
static bool budget_fits(size_t soft, size_t hard) {
    return hard == 0 || hard >= soft || (tsi_error_set(EINVAL), false);
}

bool slab_epoch_set_budget(SlabAllocator* allocator, EpochId id, size_t soft, size_t hard, SlabBudgetFn fn, void* ctx) {
    Named by_name = named(allocator, id);
    if (by_name.a == NULL) return tsi_error_set(EINVAL), false;
    if (by_name.inc == NULL || !budget_fits(soft, hard)) return false;
    tsi_phase_lock(by_name.inc);
    bool ok = tsi_inc_era(by_name.inc) == tsi_ref_era(by_name.ref);
    if (ok) tsi_budget_write(&by_name.inc->budget, soft, hard, fn, ctx);
    tsi_phase_unlock(by_name.inc);
    if (!ok) tsi_error_set(ESTALE);
    return ok;
}

bool slab_label_set_budget(SlabAllocator* allocator, const char* label, size_t soft, size_t hard, SlabBudgetFn fn,
                           void* ctx) {
    TsiArena* a = tsi_arena(allocator);
    char name[TSI_LABEL_BYTES];
    tsi_label_copy(name, label);
    if (a == NULL || name[0] == 0) return tsi_error_set(EINVAL), false;
    if (!budget_fits(soft, hard)) return false;

    uint32_t at = tsi_label_find(&a->phases.labels, name);
    if (at == TSI_LABEL_OTHER) return tsi_error_set(ENOMEM), false;
    tsi_lock_take(&a->phases.labels.lock);
    tsi_budget_change_locked(a, at, soft, hard, fn, ctx);
    tsi_lock_give(&a->phases.labels.lock);
    return true;
}

bool slab_label_expect_escapes(SlabAllocator* allocator, const char* label, uint32_t objects, uint64_t bytes) {
    TsiArena* a = tsi_arena(allocator);
    char name[TSI_LABEL_BYTES];
    tsi_label_copy(name, label);
    if (a == NULL || name[0] == 0) return tsi_error_set(EINVAL), false;
    uint32_t at = tsi_label_find(&a->phases.labels, name);
    if (at == TSI_LABEL_OTHER) return tsi_error_set(ENOMEM), false;
    tsi_draining_expect(&a->phases, at, (TsiExpected){objects, bytes});
    return true;
}

bool slab_epoch_on_end(SlabAllocator* allocator, EpochId id, void (*fn)(void*), void* arg) {
    Named by_name = fn != NULL ? named(allocator, id) : (Named){NULL, 0, NULL};
    if (by_name.a == NULL) return tsi_error_set(EINVAL), false;
    return by_name.inc != NULL && tsi_inc_on_end(by_name.a, by_name.ref, fn, arg);
}
