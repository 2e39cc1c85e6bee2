/*
 * domain.c - domains: scopes bound to an incarnation.
 *
 * A domain of its own holds one pin on its incarnation's record from opening to end, and `ref` names it;
 * ref is 0 while the domain has ended. A borrowed domain keeps only the reference: its era tells
 * when the ring has moved on.
 *
 * The domain's lock decides which scope opens and which ends: the scope that makes refcount 0 takes `ref` away under
 * the lock and ends the incarnation after it, so a thread that enters meanwhile opens a fresh one and waits for
 * nothing. A thread's scopes are its own; only refcount and `detached` are shared.
 */
#include "api/domain.h"

#include "base/probes.h"
#include "account/charge.h"
#include "heap/close.h"
#include "account/close_probes.h"
#include "heap/thread_heaps.h"
#include "heap/ready.h"
#include "heap/records.h"
#include "heap/sweep_totals.h"

#include <inttypes.h>
#include <string.h>

/* ---- incarnations of a domain's own ---- */

/* Opens the record `index` as the incarnation, with that era and id, of a domain whose `special` is true: with its
 * label, with b's thread as owner if owner_only, without times if `untimed`, and with its budgets. Takes the stripe
 * and gives it back if there are budgets. [domain's lock held, or the domain is not alive yet] */
static TSI_NOINLINE void open_special(TsiArena* a, TsiBinding* b, const TsiDomain* d, uint32_t index, uint64_t era,
                                      EpochId id) {
    TsiInc* inc = tsi_inc(&a->phases, index);
    uint32_t owner = tsi_load_relaxed(&d->owner_only) ? b->thread->index + 1 : 0;
    tsi_inc_open(&a->phases, index, era, id, d->label_at, d->label, owner);
    if (d->untimed) tsi_store_relaxed(&inc->open_since_ns, TSI_UNTIMED);
    if ((d->soft_bytes | d->hard_bytes) == 0) return;
    tsi_phase_lock(inc); /* counted: a phase with a budget does not begin straight (ready.c) */
    tsi_budget_write(&inc->budget, d->soft_bytes, d->hard_bytes, d->budget_fn, d->budget_ctx);
    tsi_phase_unlock(inc);
}

/* Opens an incarnation of the domain's own, inlined: sets d's id, era and phase.ref to it, and lets phase.heap lead to
 * no heap. Returns true; false, and changes nothing, without memory.
 * [domain's lock held, or the domain is not alive yet] */
TSI_INLINE bool open_own(TsiArena* a, TsiBinding* b, TsiDomain* d) {
    uint32_t index;
    if (!tsi_record_take_inc(a, b, &index)) return false;
    uint64_t era = tsi_era_next(b, index);
    EpochId id = tsi_domain_id(&a->phases, index);
    if (TSI_UNLIKELY(d->special)) open_special(a, b, d, index, era, id);
    else tsi_inc_open(&a->phases, index, era, id, d->label_at, d->label, 0);
    tsi_store_relaxed(&tsi_inc(&a->phases, index)->domain, d->index + 1);
    if (TSI_UNLIKELY(d->label_at == TSI_LABEL_OTHER))
        tsi_add_relaxed(&tsi_label(&a->phases.labels, TSI_LABEL_OTHER)->swallowed, 1);
    d->pub.epoch_id = id;
    __atomic_store_n(&d->pub.epoch_era, era, __ATOMIC_RELAXED);
    tsi_store_relaxed(&d->phase.heap, &tsi_no_heap);
    tsi_store_release(&d->phase.ref, tsi_ref(era, index)); /* pairs with the acquire loads of ref */
    tsi_probe_epoch_open(d->pub.alloc, id, era, &d->label[0]);
    return true;
}

bool tsi_domain_open_own(TsiArena* a, TsiBinding* b, TsiDomain* d) { return open_own(a, b, d); }

void tsi_domain_note_ended_locked(TsiDomain* d, EpochId id, uint64_t era) {
    TSI_HOLDS(&d->lock);
    d->receipt.epoch_id = id;
    d->receipt.epoch_era = era;
    memcpy(d->receipt.label, d->label, sizeof d->label);
    d->has_receipt = d->empty_receipt = true;
}

/* Returns true if the end of the incarnation `ref` is still the domain's last. False: another has ended since, or the
 * domain was destroyed meanwhile, and perhaps made again. [domain's lock held] */
static bool ended_here_locked(TsiDomain* d, TsiRef ref) {
    TSI_HOLDS(&d->lock);
    return tsi_domain_is_alive(d) &&
           (d->own ? d->has_receipt && d->receipt.epoch_era == tsi_ref_era(ref) : d->pub.epoch_era == tsi_ref_era(ref));
}

/* Sets the label in the receipt of the end of `ref`, which held nothing, to `label`, which the phase may have got since
 * the receipt was noted; the rest is right. Does nothing if that end is no longer the domain's last. Takes the domain's
 * lock. [any thread, no lock held] */
static TSI_NOINLINE void note_label(TsiDomain* d, TsiRef ref, const char label[TSI_LABEL_BYTES]) {
    tsi_lock_take(&d->lock);
    if (ended_here_locked(d, ref)) memcpy(d->receipt.label, label, TSI_LABEL_BYTES);
    tsi_lock_give(&d->lock);
}

void tsi_domain_end_ref(TsiArena* a, TsiDomain* d, TsiRef ref, EpochCloseMode mode, bool own,
                        const char noted[TSI_LABEL_BYTES]) {
    EpochReceipt receipt;
    TsiBinding* b = tsi_binding_get(a, false);
    bool empty = own && tsi_load_relaxed(&tsi_inc(&a->phases, tsi_ref_index(ref))->heap_count) == 0; /* a hint */
    if (empty && tsi_inc_end_empty(a, b, ref, &receipt.epoch_id, receipt.label)) {
        if (TSI_UNLIKELY(memcmp(receipt.label, noted, TSI_LABEL_BYTES) != 0)) note_label(d, ref, receipt.label);
        return;
    }

    bool held =
        own ? tsi_inc_end_own(a, b, ref, mode, &receipt) : tsi_epoch_close(a, ref, mode, TSI_END_SCOPE, &receipt);
    if (!held && (!own || receipt.epoch_era == 0)) return; /* it had ended before */

    tsi_lock_take(&d->lock);
    if (TSI_LIKELY(ended_here_locked(d, ref))) {
        d->receipt = receipt;
        d->has_receipt = true;
        d->empty_receipt = false;
    }
    tsi_lock_give(&d->lock);
    if (held) tsi_closed(a);
}

/* ---- create, wrap, destroy ---- */

static const char no_allocator[] = "the allocator is NULL, or was not created";

/* Sets d->label and d->label_at, its record's index; label NULL: it has none. A label that is new gets a record;
 * TSI_LABEL_OTHER if there is no room for one. Keeps both in b, because a thread normally opens phases of the label it
 * had last; not TSI_LABEL_OTHER, for which there may be room later.
 * [own thread, no lock held, before the domain is alive] */
TSI_INLINE void name_it(TsiArena* a, TsiBinding* b, TsiDomain* d, const char* label) {
    if (label == NULL || (b->label[0] != 0 && strncmp(label, b->label, TSI_LABEL_BYTES) == 0)) {
        memcpy(d->label, label != NULL ? b->label : tsi_no_label, sizeof d->label);
        d->label_at = label != NULL ? b->label_at : TSI_LABEL_NONE;
        return;
    }
    tsi_label_copy(d->label, label);
    d->label_at = tsi_label_find(&a->phases.labels, d->label);
    if (d->label_at == TSI_LABEL_OTHER) return; /* there may be room for it later */
    memcpy(b->label, d->label, sizeof b->label);
    b->label_at = d->label_at;
}

/* Sets errno and the sentence for a domain that cannot be made: EINVAL for no allocator (a is NULL), ENOMEM for no
 * binding (b is NULL), or no record. Counts nothing. Returns NULL, for callers to return.
 * [any thread, needs no lock] */
static TSI_COLD void* make_failed(TsiArena* a, TsiBinding* b) {
    if (a == NULL) return tsi_failed(EINVAL, no_allocator);
    if (b == NULL) return tsi_failed(ENOMEM, "no memory, or no record, for one more thread in the allocator");
    return tsi_failed(ENOMEM, "no memory, or no record, for one more domain");
}

/* Makes a domain's record with the label (NULL: none): locked by nobody, with auto_close, without scopes, and not
 * alive yet, so that no other thread finds it; sets *b to the thread's binding. Neither id nor reference is set, nor
 * are `own` and `shows_scopes`, which the caller sets. Returns it; NULL with errno, and then *b means nothing.
 * [own thread, no lock held, no bracket open] */
TSI_INLINE TsiDomain* make(SlabAllocator* allocator, const char* label, TsiBinding** b) {
    TsiArena* a = tsi_arena(allocator);
    uint32_t index;
    *b = a != NULL ? tsi_binding_get(a, true) : NULL;
    if (TSI_UNLIKELY(*b == NULL || !tsi_record_take(&a->domains, (*b)->domain_cache, &(*b)->domain_count, &index)))
        return make_failed(a, *b);

    TsiDomain* d = (TsiDomain*)(void*)(a->domains.base + (size_t)index * TSI_DOMAIN_STRIDE);
    tsi_lock_init(&d->lock, TSI_LOCK_DOMAIN);
    d->index = index;
    d->pub.alloc = allocator;
    d->arena = a;
    tsi_domain_refs_set(d, 0);
    d->pub.auto_close = true;
    tsi_store_relaxed(&d->detached, 0);
    d->entered = d->drained = d->has_receipt = d->special = d->drains = false;
    tsi_store_relaxed(&d->owner_only, false);
    tsi_store_relaxed(&d->maker, (*b)->thread->number);
    tsi_store_relaxed(&d->left, 0);
    name_it(a, *b, d, label);
    return d;
}

/* Sets phase.ref to 0, so that calls of the domain are refused, marks the record as not alive, and gives it back,
 * through b (NULL: to the table); its epoch is left alone.
 * [the one thread that ends the domain, or has just made it; no lock held] */
TSI_INLINE void discard(TsiArena* a, TsiBinding* b, TsiDomain* d) {
    tsi_store_relaxed(&d->phase.ref, 0); /* so that epoch_domain_malloc refuses */
    tsi_store_release(&d->alive, 0);     /* pairs with tsi_domain_is_alive */
    tsi_record_give_domain(a, b, d->index);
}

void tsi_domain_discard(TsiArena* a, TsiDomain* d) { discard(a, tsi_binding_get(a, false), d); }

/* Gives back the record of a new domain whose epoch could not be opened; counts nothing. Returns NULL with errno
 * ENOMEM and the sentence, for callers to return. [own thread, no lock held, before the domain is alive] */
static TSI_NOINLINE epoch_domain_t* create_failed(TsiBinding* b, TsiDomain* d) {
    discard(b->arena, b, d);
    return tsi_failed(ENOMEM, "no memory, or no record, for one more phase: end some, or let the ended ones drain");
}

/* Releases a new domain's epoch and gives the domain's record back, because there is no memory for its scope; adds 1
 * to the refusals for lack of memory. Returns NULL with errno ENOMEM and the sentence, for callers to return.
 * [own thread, no lock held, before the domain is alive] */
static TSI_NOINLINE epoch_domain_t* enter_failed(TsiBinding* b, TsiDomain* d) {
    TsiArena* a = b->arena;
    tsi_refuse_count(a, TSI_REFUSED_MEMORY);
    (void)tsi_inc_end_own(a, b, tsi_load_relaxed(&d->phase.ref), EPOCH_RELEASE, NULL);
    discard(a, b, d);
    return tsi_failed(ENOMEM, "no memory for the thread's scopes");
}

/* Sets what the options, not NULL and checked, ask of a new domain and of each incarnation that it opens: auto_close,
 * times, budgets, one owner. Sets d->special: true if its incarnations need more than plain ones; and marks the calling
 * thread if it owns the domain. [own thread, before the domain is alive] */
TSI_INLINE void set_special(TsiDomain* d, const SlabDomainOptions* options) {
    d->pub.auto_close = (options->flags & SLAB_DOMAIN_KEEP) == 0;
    d->untimed = (options->flags & SLAB_DOMAIN_UNTIMED) != 0;
    d->soft_bytes = options->soft_bytes;
    d->hard_bytes = options->hard_bytes;
    d->budget_fn = options->budget_fn;
    d->budget_ctx = options->budget_ctx;
    bool owned = (options->flags & SLAB_DOMAIN_OWNER_ONLY) != 0;
    tsi_store_relaxed(&d->owner_only, owned);
    if (owned) tsi_store_relaxed(&d->left, TSI_DOMAIN_OWNED);
    if (owned) tsi_tls.thread->owns = true;
    d->special = d->untimed || owned || (d->soft_bytes | d->hard_bytes) != 0;
}

/* Makes a domain with the label (NULL: none) and an epoch of its own. inside: true if the calling thread enters it at
 * once, while no other knows of it. options: checked ones, or NULL for the defaults; their label is not read. Returns
 * the domain, or NULL with errno. [own thread, no lock held, no bracket open] */
TSI_INLINE epoch_domain_t* create(SlabAllocator* allocator, const char* label, bool inside,
                                  const SlabDomainOptions* options) {
    TsiBinding* b;
    TsiDomain* d = make(allocator, label, &b);
    if (TSI_UNLIKELY(d == NULL)) return NULL;
    d->own = true;
    tsi_store_relaxed(&d->shows_scopes, true);
    if (options != NULL) set_special(d, options);

    if (TSI_UNLIKELY(!open_own(b->arena, b, d))) return create_failed(b, d);
    if (inside) {
        if (TSI_UNLIKELY(!tsi_scope_put(b->arena, b, d))) return enter_failed(b, d);
        tsi_domain_refs_set(d, 1);
        d->entered = true;
        tsi_binding_set_ambient(b, &tsi_no_heap);
    }
    tsi_store_release(&d->alive, TSI_DOMAIN_ALIVE); /* pairs with tsi_domain_is_alive */
    return &d->pub;
}

/* Makes a domain by `create`, from destructors of thread-specific data: past its destructor the thread lets go of all
 * that it has afterwards, unless a scope is open. inside: true if the thread enters the domain at once; label and
 * options may be NULL. Returns the domain, or NULL with errno. [exiting thread, no lock held, no bracket open] */
static TSI_NOINLINE epoch_domain_t* create_late(SlabAllocator* allocator, const char* label, bool inside,
                                                const SlabDomainOptions* options) {
    tsi_thread_late_enter();
    epoch_domain_t* d = create(allocator, label, inside, options);
    tsi_thread_late_leave();
    return d;
}

epoch_domain_t* epoch_domain_create_labeled(SlabAllocator* allocator, const char* label) {
    return TSI_UNLIKELY(tsi_tls.exiting) ? create_late(allocator, label, false, NULL)
                                         : create(allocator, label, false, NULL);
}

epoch_domain_t* epoch_domain_begin(SlabAllocator* allocator, const char* label) {
    return TSI_UNLIKELY(tsi_tls.exiting) ? create_late(allocator, label, true, NULL)
                                         : create(allocator, label, true, NULL);
}

/* Copies the program's options *in to *options, as far as both versions know them; members that `in` lacks are 0.
 * Returns NULL; otherwise a sentence, a literal, that says what is bad, also if in is NULL, and *options means nothing.
 * [any thread, needs no lock] */
static const char* options_read(const SlabDomainOptions* in, SlabDomainOptions* options) {
    if (in == NULL) return "the options are NULL";
    if (in->struct_size < offsetof(SlabDomainOptions, reserved_) || in->struct_size > 4096)
        return "set SlabDomainOptions.struct_size to sizeof(SlabDomainOptions)";
    memset(options, 0, sizeof *options);
    memcpy(options, in, in->struct_size < sizeof *options ? in->struct_size : sizeof *options);
    for (size_t n = sizeof *options; n < in->struct_size; n++)
        if (((const unsigned char*)in)[n] != 0) return "an option of a later version of the library is set";
    if ((options->flags & ~(SLAB_DOMAIN_KEEP | SLAB_DOMAIN_OWNER_ONLY | SLAB_DOMAIN_UNTIMED)) != 0 ||
        options->reserved_ != 0)
        return "a flag is set that there is not";
    return options->hard_bytes != 0 && options->soft_bytes > options->hard_bytes
               ? "the soft budget is over the hard one"
               : NULL;
}

epoch_domain_t* epoch_domain_create_ex(SlabAllocator* allocator, const SlabDomainOptions* options) {
    SlabDomainOptions given;
    const char* wrong = options_read(options, &given);
    if (wrong != NULL) return tsi_failed(EINVAL, wrong);
    return TSI_UNLIKELY(tsi_tls.exiting) ? create_late(allocator, given.label, false, &given)
                                         : create(allocator, given.label, false, &given);
}

epoch_domain_t* epoch_domain_create(SlabAllocator* allocator) { return epoch_domain_create_labeled(allocator, NULL); }

/* Makes a domain that borrows the ring epoch or domain's epoch that the id names. auto_close: whether its last exit
 * drains that. Returns the domain, or NULL with errno. [own thread, no lock held, no bracket open] */
static epoch_domain_t* wrap(SlabAllocator* allocator, EpochId epoch, bool auto_close) {
    TsiArena* a = tsi_arena(allocator);
    TsiBinding* b;
    TsiRef ref = a != NULL ? tsi_resolve(a, epoch) : 0;
    bool lends = ref != 0 && tsi_load_relaxed(&tsi_inc(&a->phases, tsi_ref_index(ref))->owner) == 0;
    TsiDomain* d = lends ? make(allocator, NULL, &b) : NULL;

    if (ref != 0 && !lends) return tsi_failed(EBUSY, "the epoch is of a domain that one thread has alone");
    if (a == NULL) return tsi_failed(EINVAL, no_allocator);
    if (ref == 0) tsi_set_error("no epoch has the id %" PRIu32, epoch);
    if (d == NULL) return NULL;

    d->own = false;
    tsi_store_relaxed(&d->shows_scopes, false);
    d->pub.auto_close = auto_close;
    d->pub.epoch_id = epoch;
    d->pub.epoch_era = tsi_ref_era(ref);
    tsi_store_relaxed(&d->phase.heap, &tsi_no_heap);
    tsi_store_release(&d->phase.ref, ref);          /* as in tsi_domain_open_own */
    tsi_store_release(&d->alive, TSI_DOMAIN_ALIVE); /* pairs with tsi_domain_is_alive */
    return &d->pub;
}

epoch_domain_t* epoch_domain_wrap(SlabAllocator* allocator, EpochId epoch, bool auto_close) {
    bool late = TSI_UNLIKELY(tsi_tls.exiting);
    if (late) tsi_thread_late_enter(); /* as in create_late */
    epoch_domain_t* d = wrap(allocator, epoch, auto_close);
    if (late) tsi_thread_late_leave();
    return d;
}

bool tsi_domain_may_drain(TsiArena* a, TsiDomain* d) {
    TsiRef ref = tsi_load_acquire(&d->phase.ref); /* pairs with wrap */
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    return ref != 0 && tsi_phases_resolve(&a->phases, d->pub.epoch_id) == ref && tsi_load_relaxed(&inc->scopes) == 0;
}

/* Drains the incarnation `ref` that the domain borrows if tsi_domain_owes_drain returns true; otherwise leaves it as
 * it is, and does nothing for a domain of its own, which has no open phase then.
 * [the one thread that may end the domain, see destroy; no lock held] */
static TSI_NOINLINE void end_borrowed(TsiArena* a, TsiDomain* d, TsiRef ref) {
    if (tsi_domain_owes_drain(a, d)) tsi_domain_end_ref(a, d, ref, EPOCH_DRAIN, false, tsi_no_label);
}

/* Releases the phase of the domain's own, if it is open; drains a borrowed one only if tsi_domain_owes_drain returns
 * true, and leaves it open otherwise. Gives the domain's record back: it is none afterwards. Nobody is inside, and the
 * caller has taken the last scope off, or no scope is there to take.
 * [the one thread that ends the domain, no lock held, no bracket open] */
TSI_INLINE void destroy(TsiDomain* d) {
    TsiArena* a = d->arena;
    tsi_store_relaxed(&d->left, TSI_DOMAIN_GOING); /* a cleanup that asks for it again is refused */
    TsiRef ref = tsi_load_acquire(&d->phase.ref);  /* pairs with tsi_domain_open_own */
    TsiBinding* b = tsi_binding_get(a, false);
    if (TSI_UNLIKELY(!d->own || ref == 0)) end_borrowed(a, d, ref);
    else if (tsi_inc_end_own(a, b, ref, EPOCH_RELEASE, NULL)) tsi_closed(a);
    discard(a, b, d);
}

/* Refuses the end of a domain, with errno: if `found` is true because somebody is inside, otherwise because the thread
 * must not use it (tsi_domain_found). [any thread, no lock held, no bracket open] */
static TSI_NOINLINE void refuse_destroy(TsiDomain* d, bool found) {
    if (!found) (void)tsi_domain_refuse_destroyed(d);
    else (void)tsi_domain_refuse(d, TSI_DOMAIN_INSIDE);
}

/* Destroys the domain by `destroy` if it is alive, tsi_domain_found returns true and nobody is inside. d may be NULL,
 * which is refused. Returns true if it has; false after a refusal, with errno, and nothing has changed but that a
 * domain that was left behind is so no longer. [any thread, no lock held, no bracket open] */
TSI_INLINE bool destroy_asked(TsiDomain* d) {
    if (!tsi_domain_usable(d)) return false;
    bool found = tsi_domain_found(d), may = found && tsi_domain_refs(d) == 0;
    if (TSI_LIKELY(may)) destroy(d);
    else refuse_destroy(d, found);
    return may;
}

/* ---- left behind ---- */

bool tsi_domain_found_slow(TsiDomain* d) {
    uint32_t left = tsi_load_relaxed(&d->left);
    if (left == TSI_DOMAIN_OWNED) return !tsi_domain_is_anothers(d) && !tsi_domain_runs(d);
    while (left != 0 && left != TSI_DOMAIN_GOING)
        if (tsi_cas_seq(&d->left, &left, 0)) return true; /* decides between the two that want it */
    return left == 0;
}

/* `left` is the number under which the domain was left. A thread that finds the domain makes it 0; one that would give
 * it up needs the number. */
void tsi_domain_leave_behind(TsiDomain* d) {
    TsiArena* a = d->arena;
    tsi_lock_take(&tsi_registry_lock);
    uint32_t number = a->left_count = a->left_count + 1 < TSI_DOMAIN_OWNED ? a->left_count + 1 : 1;
    uint64_t* place = &a->left[number % TSI_LEFT_MAX];
    uint32_t old_number = (uint32_t)(*place >> 32);
    TsiDomain* old = tsi_table_at(&a->domains, (uint32_t)*place);
    *place = (uint64_t)number << 32 | d->index;
    tsi_store_seq(&d->left, number); /* pairs with the compare-exchanges */
    tsi_lock_give(&tsi_registry_lock);
    if (old_number == 0 || !tsi_cas_seq(&old->left, &old_number, TSI_DOMAIN_GOING)) return;
    if (tsi_domain_is_alive(old) && tsi_domain_refs(old) == 0) destroy(old);
}

/* Destroys the domain d by destroy_asked, for tsi_domain_late. Returns true if it has; false after a refusal, with
 * errno. [exiting thread, no lock held, no bracket open] */
static TSI_NOINLINE bool destroy_known(epoch_domain_t* d) { return destroy_asked(tsi_domain_of(d)); }

bool epoch_domain_destroy(epoch_domain_t* d) {
    return TSI_UNLIKELY(tsi_tls.exiting) ? tsi_domain_late(destroy_known, d) : destroy_asked(tsi_domain_of(d));
}

/* ---- the rest ---- */

uint64_t epoch_domain_era(const epoch_domain_t* domain) {
    TsiDomain* d = tsi_domain_of((epoch_domain_t*)(uintptr_t)domain);
    if (!tsi_domain_is_alive(d)) return 0;
    TsiRef ref = tsi_load_acquire(&d->phase.ref); /* pairs with tsi_domain_open_own */
    return ref != 0 ? tsi_ref_era(ref) : __atomic_load_n(&d->pub.epoch_era, __ATOMIC_RELAXED);
}

bool epoch_domain_force_close(epoch_domain_t* domain) {
    TsiDomain* d = tsi_domain_of(domain);
    if (!tsi_domain_usable(d)) return false;
    if (tsi_domain_is_anothers(d)) return tsi_domain_refuse(d, TSI_DOMAIN_ANOTHERS);
    if (tsi_domain_runs(d)) return tsi_domain_refuse(d, TSI_DOMAIN_RUNS);

    TsiArena* a = d->arena;
    char label[TSI_LABEL_BYTES];
    tsi_lock_take(&d->lock);
    memcpy(label, d->label, sizeof label);
    TsiRef ref = tsi_load_relaxed(&d->phase.ref);
    bool inside = tsi_domain_refs(d) != 0;
    bool ended = ref == 0 || tsi_load_relaxed(&d->left) == TSI_DOMAIN_GOING;
    bool passed = !d->own && tsi_phases_resolve(&a->phases, domain->epoch_id) != ref;
    if (!inside && !ended && d->own) {
        tsi_store_release(&d->phase.ref, 0); /* as in leave, scope.c */
        tsi_domain_note_ended_locked(d, d->pub.epoch_id, d->pub.epoch_era);
    }
    tsi_lock_give(&d->lock);

    if (inside) return tsi_domain_refuse(d, TSI_DOMAIN_INSIDE);
    if (ended || passed) return tsi_domain_refuse(d, ended ? TSI_DOMAIN_ENDED : TSI_DOMAIN_PASSED);
    tsi_domain_end_ref(a, d, ref, EPOCH_RELEASE, d->own, label);
    return true;
}

/* Leaves the calling thread's innermost scope, `top`, which is one of d's. Returns true if it was the only one inside:
 * d->left is TSI_DOMAIN_GOING then, calls of other threads are refused, and the caller must destroy the domain. That
 * is decided in the same step, so of several threads that end a domain at once the last one destroys it. Takes the
 * domain's lock. [own thread, no lock held, no bracket open] */
TSI_INLINE bool leave_to_end(TsiDomain* d, TsiScope* top) {
    tsi_scope_pop(top);
    tsi_scopes_add(d->arena, d, -1);
    tsi_lock_take(&d->lock);
    uint32_t others = tsi_domain_refs(d) - 1;
    tsi_domain_refs_set(d, others);
    if (others == 0) tsi_store_relaxed(&d->left, TSI_DOMAIN_GOING); /* as in leave_alone_locked, domain_end.c */
    tsi_lock_give(&d->lock);
    return others == 0;
}

/* Leaves the domain's scope, the thread's innermost, and destroys the domain by `destroy` if nobody else is inside. d
 * may be NULL. Returns true if it was destroyed; false after a refusal, with errno: the scope is not the innermost or
 * a run is open, and nothing has changed; or others are inside, and the caller has left.
 * [own thread, no lock held, no bracket open] */
TSI_INLINE bool end_asked(TsiDomain* d) {
    if (!tsi_domain_usable(d)) return false;
    TsiScope* top = tsi_scope_top(d);
    if (TSI_UNLIKELY(top == NULL))
        return tsi_domain_refuse(d, tsi_domain_is_anothers(d) ? TSI_DOMAIN_ANOTHERS : TSI_DOMAIN_NOT_INNERMOST);
    if (tsi_domain_runs(d)) return tsi_domain_refuse(d, TSI_DOMAIN_RUNS);
    if (TSI_UNLIKELY(!leave_to_end(d, top))) return tsi_domain_refuse(d, TSI_DOMAIN_INSIDE);
    destroy(d);
    return true;
}

/* Ends the domain d by end_asked, for tsi_domain_late. Returns true if it was destroyed; false after a refusal, with
 * errno. [exiting thread, no lock held, no bracket open] */
static TSI_NOINLINE bool end(epoch_domain_t* d) { return end_asked(tsi_domain_of(d)); }

bool epoch_domain_end(epoch_domain_t* d) {
    return TSI_UNLIKELY(tsi_tls.exiting) ? tsi_domain_late(end, d) : end_asked(tsi_domain_of(d));
}

/* ---- refusals ---- */

bool tsi_domain_refuse(TsiDomain* d, TsiDomainWhy why) {
    static const struct {
        SlabMisuse what;
        int error;
        const char* sentence;
    } rows[] = {
        [TSI_DOMAIN_NOT_INNERMOST] = {SLAB_MISUSE_DOMAIN_ORDER, EINVAL,
                                      "the domain is not the innermost scope of this thread"},
        [TSI_DOMAIN_NOT_DETACHED] = {SLAB_MISUSE_DOMAIN_ORDER, EINVAL, "no scope of the domain is detached"},
        [TSI_DOMAIN_INSIDE] = {SLAB_MISUSE_DOMAIN_ORDER, EBUSY, "a scope is inside the domain, or detached from it"},
        [TSI_DOMAIN_BORROWED] = {SLAB_MISUSE_DOMAIN_ORDER, EINVAL, "the domain borrows its epoch"},
        [TSI_DOMAIN_PASSED] = {SLAB_MISUSE_DOMAIN_STALE, ESTALE, "the ring has moved past the epoch of the domain"},
        [TSI_DOMAIN_ENDED] = {SLAB_MISUSE_DOMAIN_STALE, ESTALE, "the domain has ended, or is being ended"},
        [TSI_DOMAIN_ANOTHERS] = {SLAB_MISUSE_DOMAIN_ORDER, EBUSY, "the domain is another thread's alone"},
        [TSI_DOMAIN_RUNS] = {SLAB_MISUSE_DOMAIN_ORDER, EBUSY, "a run is open in the domain's phase: end it first"},
        [TSI_DOMAIN_CALLED] = {SLAB_MISUSE_DOMAIN_ORDER, EBUSY,
                               "the run is in an allocation: functions that this calls must leave it alone"},
        [TSI_DOMAIN_CLOSED] = {SLAB_MISUSE_CLOSED_EPOCH, ESTALE, "the epoch of the domain has ended"},
    };

    TsiPhases* phases = &d->arena->phases;
    TsiRef ref = tsi_load_relaxed(&d->phase.ref);
    const TsiLabel* label = d->own ? tsi_label(&phases->labels, d->label_at) : NULL;
    if (!d->own && tsi_ref_is_current(phases, ref)) label = tsi_label_of(d->arena, tsi_inc(phases, tsi_ref_index(ref)));
    tsi_refuse_as(d->arena, &(TsiMisuse){.what = rows[why].what, .where = d, .label = label});
    (void)tsi_failed_bool(rows[why].error, rows[why].sentence);
    if (why == TSI_DOMAIN_NOT_INNERMOST || why == TSI_DOMAIN_NOT_DETACHED) tsi_tls.error = SLAB_ERROR_ORDER;
    return false;
}

bool tsi_domain_no_memory(TsiArena* a) {
    if (a != NULL) tsi_refuse_count(a, TSI_REFUSED_MEMORY);
    return tsi_failed_bool(ENOMEM, "no memory, or no record, for what the domain needs");
}

/* ---- receipts, and the frame loop ---- */

bool tsi_domain_last_receipt(TsiDomain* d, EpochReceipt* out) {
    tsi_lock_take(&d->lock);
    bool ok = d->has_receipt;
    if (ok && !d->empty_receipt) *out = d->receipt;
    else if (ok) tsi_receipt_blank(out, d->receipt.epoch_id, d->receipt.epoch_era, d->receipt.label);
    tsi_lock_give(&d->lock);
    return ok;
}

bool epoch_domain_receipt(epoch_domain_t* domain, EpochReceipt* out) {
    TsiDomain* d = tsi_domain_of(domain);
    if (!tsi_domain_usable(d)) return false;
    if (out == NULL) return tsi_failed_bool(EINVAL, "the receipt is NULL");
    return tsi_domain_last_receipt(d, out) || tsi_failed_bool(EINVAL, "nothing of the domain has ended yet");
}

/* Opens another incarnation of the domain's own, and releases the one before, if nobody but the calling thread is
 * inside. domain may be NULL or destroyed, which is refused. Returns true; false after a refusal or without memory,
 * with errno, and nothing has changed. [own thread, no lock held, no bracket open] */
static bool reset(epoch_domain_t* domain) {
    TsiDomain* d = tsi_domain_of(domain);
    if (!tsi_domain_usable(d)) return false;
    if (tsi_domain_is_anothers(d)) return tsi_domain_refuse(d, TSI_DOMAIN_ANOTHERS);
    if (tsi_domain_runs(d)) return tsi_domain_refuse(d, TSI_DOMAIN_RUNS);
    TsiArena* a = d->arena;
    TsiBinding* b = tsi_binding_get(a, true);
    if (b == NULL) return tsi_domain_no_memory(NULL);

    uint32_t mine = tsi_scopes_inside(b->thread, d);
    char label[TSI_LABEL_BYTES];

    tsi_lock_take(&d->lock);
    memcpy(label, d->label, sizeof label);
    TsiRef old = tsi_load_relaxed(&d->phase.ref);
    bool alone = tsi_domain_refs(d) == mine, going = tsi_load_relaxed(&d->left) == TSI_DOMAIN_GOING;
    bool ok = d->own && alone && !going;
    EpochId id = d->pub.epoch_id;
    uint64_t era = d->pub.epoch_era;
    bool opened = ok && tsi_domain_open_own(a, b, d);
    if (opened && old != 0) tsi_domain_note_ended_locked(d, id, era);
    tsi_lock_give(&d->lock);

    if (!ok) return tsi_domain_refuse(d, !d->own ? TSI_DOMAIN_BORROWED : alone ? TSI_DOMAIN_ENDED : TSI_DOMAIN_INSIDE);
    if (!opened) return tsi_domain_no_memory(NULL);
    if (old != 0) tsi_domain_end_ref(a, d, old, EPOCH_RELEASE, true, label);
    tsi_scope_ambient(b);
    return true;
}

bool epoch_domain_reset(epoch_domain_t* d) {
    return TSI_UNLIKELY(tsi_tls.exiting) ? tsi_domain_late(reset, d) : reset(d);
}
