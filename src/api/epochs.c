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

void epoch_advance(SlabAllocator* s) { (void)epoch_advance_id(s); }

/* Returns the domain of the incarnation if it is the calling thread's alone and a run is open there; else NULL. */
static TsiDomain* that_runs(TsiArena* a, TsiRef ref) {
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    uint32_t domain = tsi_load_relaxed(&inc->domain);
    if (TSI_LIKELY(tsi_load_relaxed(&inc->owner) == 0) || domain == 0 || !tsi_ref_is_active(&a->phases, ref))
        return NULL;
    TsiDomain* d = tsi_table_at(&a->domains, domain - 1);
    return tsi_domain_runs(d) && tsi_load_relaxed(&d->phase.ref) == ref ? d : NULL;
}

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
    for (Named n; (n = named(allocator, id)).inc != NULL;) {
        if (end(n.a, n.ref, mode, out)) return true;
        if (tsi_phases_resolve(&n.a->phases, id) == n.ref) return false; /* otherwise the id was taken over meanwhile */
    }
    return false;
}

void epoch_close(SlabAllocator* s, EpochId id) { (void)epoch_close_ex(s, id, EPOCH_DRAIN, NULL); }

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

static void add_held(const TsiSlabView* view, void* ctx) {
    HeldWalk* w = ctx;
    if (view->ref != w->ref) return;
    tsi_totals_add(&w->held.live, view->sum.live);
    if (view->state == TSI_SLAB_OWNED) tsi_totals_add(&w->held.issued, view->sum.issued);
}

void slab_epoch_set_label(SlabAllocator* allocator, EpochId id, const char* label) {
    Named n = named(allocator, id);
    TsiInc* inc = n.inc;
    char name[TSI_LABEL_BYTES];
    if (inc == NULL) return;
    tsi_label_copy(name, label);
    HeldWalk w = {.ref = n.ref};
    tsi_phase_lock(inc);
    if (tsi_inc_era(inc) == tsi_ref_era(n.ref)) {
        if (inc->heaps != 0 || inc->orphans != 0) tsi_snapshot_slabs(n.a, add_held, &w);
        if (tsi_relabel_locked(n.a, tsi_binding_get(n.a, false), inc, name, &w.held)) tsi_late_note_locked(n.a, inc);
    }
    tsi_phase_unlock(inc);
}

static void refcount_add(SlabAllocator* allocator, EpochId id, bool up) {
    Named n = named(allocator, id);
    if (n.inc == NULL) return;
    tsi_lock_take(tsi_inc_lock(n.inc));
    uint64_t refs = tsi_load_relaxed(&n.inc->user_refs);
    if (tsi_inc_era(n.inc) == tsi_ref_era(n.ref) && (up || refs != 0))
        tsi_store_relaxed(&n.inc->user_refs, up ? refs + 1 : refs - 1);
    tsi_phase_unlock(n.inc);
}

void slab_epoch_inc_refcount(SlabAllocator* s, EpochId id) { refcount_add(s, id, true); }
void slab_epoch_dec_refcount(SlabAllocator* s, EpochId id) { refcount_add(s, id, false); }

uint64_t slab_epoch_get_refcount(SlabAllocator* allocator, EpochId id) {
    TsiInc* inc = named(allocator, id).inc;
    return inc != NULL ? tsi_load_relaxed(&inc->user_refs) : 0;
}

static bool budget_fits(size_t soft, size_t hard) {
    return hard == 0 || hard >= soft || (tsi_error_set(EINVAL), false);
}

bool slab_epoch_set_budget(SlabAllocator* allocator, EpochId id, size_t soft, size_t hard, SlabBudgetFn fn, void* ctx) {
    Named n = named(allocator, id);
    if (n.a == NULL) return tsi_error_set(EINVAL), false;
    if (n.inc == NULL || !budget_fits(soft, hard)) return false;
    tsi_phase_lock(n.inc);
    bool ok = tsi_inc_era(n.inc) == tsi_ref_era(n.ref);
    if (ok) tsi_budget_write(&n.inc->budget, soft, hard, fn, ctx);
    tsi_phase_unlock(n.inc);
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
    Named n = fn != NULL ? named(allocator, id) : (Named){NULL, 0, NULL};
    if (n.a == NULL) return tsi_error_set(EINVAL), false;
    return n.inc != NULL && tsi_inc_on_end(n.a, n.ref, fn, arg);
}
