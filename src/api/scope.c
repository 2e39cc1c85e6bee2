/*
 * scope.c - scopes: a thread inside of a domain, and what happens to its scopes when the thread or the process ends.
 *
 * A thread's scopes are its own stack; only refcount and `detached` of their domains are shared. The scope that makes
 * refcount 0 ends the domain's epoch (domain.c).
 */
#include "api/as_malloc.h"
#include "api/domain.h"

#include "heap/fork.h"
#include "heap/heap.h"
#include "heap/records.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* ---- the thread's stack ---- */

/* Returns the heap of b's thread in the incarnation that the domain d has now, to which d->phase.heap then leads;
 * tsi_no_heap, and changes nothing, if there is none, which is normal in a phase that has just begun.
 * [own thread, no bracket open] */
TSI_INLINE TsiHeap* heap_in(TsiBinding* b, TsiDomain* d) {
    TsiRef ref = tsi_load_relaxed(&d->phase.ref);
    if (ref == 0 || tsi_load_relaxed(&tsi_binding_inc(b, ref)->heap_count) == 0) return &tsi_no_heap;
    TsiHeap* h = tsi_phase_heap(b, &d->phase, ref);
    return h != NULL ? h : &tsi_no_heap;
}

void tsi_scope_ambient(TsiBinding* b) {
    if (b->scope != 0) {
        tsi_binding_set_ambient(b, heap_in(b, b->thread->scopes[b->scope - 1].domain));
        return;
    }
    TsiHeap* h = tsi_heap_cached(b, tsi_phases_current(&b->arena->phases));
    tsi_binding_set_ambient(b, h != NULL ? h : &tsi_no_heap);
}

/* Refreshes first, or scopes of destroyed allocators would pile up. */
TSI_NOINLINE bool tsi_scopes_make_room(TsiThread* thread) {
    tsi_scopes_refresh(thread);
    return thread->scope_count != thread->scope_capacity || tsi_scopes_grow(thread);
}

/* Puts a scope of the domain on top of the calling thread's stack, whose binding in `a` is b, and sets b's ambient
 * heap to its heap there or tsi_no_heap, so that plain calls go there. Does not change the domain's count of scopes.
 * Returns true; false, and changes nothing, without memory. [own thread, no lock held, no bracket open] */
TSI_INLINE bool push(TsiArena* a, TsiBinding* b, TsiDomain* d) {
    if (TSI_UNLIKELY(!tsi_scope_put(a, b, d))) return false;
    tsi_binding_set_ambient(b, heap_in(b, d));
    return true;
}

uint32_t tsi_scopes_inside(const TsiThread* thread, const TsiDomain* d) {
    uint32_t inside = 0;
    for (uint32_t n = 0; n < thread->scope_count; n++) inside += tsi_scope_is_of(&thread->scopes[n], d);
    return inside;
}

void tsi_scope_pop(TsiScope* top) {
    TsiBinding* b = top->binding;
    b->scope = top->outer;
    b->thread->scope_count--;
    tsi_scope_ambient(b);
}

void tsi_scopes_add(TsiArena* a, TsiDomain* d, int n) {
    if (d->own) return;
    TsiRef ref = tsi_load_acquire(&d->phase.ref); /* pairs with wrap */
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    if (ref == 0) return;
    tsi_phase_lock(inc);
    if (tsi_inc_era(inc) == tsi_ref_era(ref)) tsi_add_relaxed(&inc->scopes, (uint32_t)n);
    tsi_phase_unlock(inc);
}

/* Enters the domain: adds 1 to its count of scopes, and of a borrowed one to its epoch's, and puts the scope on the
 * thread's stack. Opens an incarnation first if the domain has none, or if its own was closed by its id and nobody is
 * inside. domain may be NULL or destroyed, which is refused. Returns true; false after a refusal or without memory,
 * with errno, and the domain and the stack are as before. [own thread, no lock held, no bracket open] */
static bool domain_enter(epoch_domain_t* domain) {
    TsiDomain* d = tsi_domain_of(domain);
    if (!tsi_domain_usable(d)) return false;
    if (!tsi_domain_found(d)) return tsi_domain_refuse_destroyed(d);
    TsiArena* a = d->arena;
    TsiBinding* b = tsi_binding_get(a, true);
    if (b == NULL) return tsi_domain_no_memory(NULL);
    if (!d->own &&
        tsi_phases_resolve(&a->phases, domain->epoch_id) != tsi_load_acquire(&d->phase.ref)) /* pairs with wrap */
        return tsi_domain_refuse(d, TSI_DOMAIN_PASSED);
    /* Before it counts: from then on only an exit takes it back. */
    if (!tsi_scopes_have_room(b->thread)) return tsi_domain_no_memory(a);

    tsi_lock_take(&d->lock);
    TsiRef ended = d->own && tsi_domain_refs(d) == 0 ? tsi_load_relaxed(&d->phase.ref) : 0;
    if (ended != 0 && tsi_ref_is_active(&a->phases, ended)) ended = 0;
    if (ended != 0) tsi_store_release(&d->phase.ref, 0); /* it was closed by its id: open a fresh one */
    bool open = tsi_load_relaxed(&d->phase.ref) != 0 || tsi_domain_open_own(a, b, d);
    if (open) {
        tsi_domain_refs_set(d, tsi_domain_refs(d) + 1);
        d->entered = true;
    }
    tsi_lock_give(&d->lock);

    if (open) { /* before cleanups of the program, which may enter others */
        tsi_scope_put_in_room(a, b, d);
        tsi_binding_set_ambient(b, heap_in(b, d));
        tsi_scopes_add(a, d, 1);
    }
    if (ended != 0) tsi_inc_unpin(a, b, tsi_inc(&a->phases, tsi_ref_index(ended)));
    return open || tsi_domain_no_memory(a);
}

/* Takes one scope off the domain's count, which is above 0, and, of a borrowed one, off its epoch's. The last one ends
 * the epoch if auto_close is set: releases one of the domain's own, whose next scope opens a fresh one; drains a
 * borrowed one only if tsi_domain_may_drain returns true, and otherwise leaves it open. Takes the domain's lock.
 * [thread of the scope, which is off its stack; no lock held, no bracket open] */
static void leave(TsiArena* a, TsiDomain* d) {
    TsiRef end = 0;
    bool own = d->own;
    char label[TSI_LABEL_BYTES];
    tsi_scopes_add(a, d, -1);

    tsi_lock_take(&d->lock);
    tsi_domain_refs_set(d, tsi_domain_refs(d) - 1);
    if (tsi_domain_refs(d) == 0 && d->pub.auto_close) {
        memcpy(label, d->label, sizeof label);
        if (own) {
            end = tsi_load_relaxed(&d->phase.ref);
            tsi_store_release(&d->phase.ref, 0); /* a thread that enters from now on opens a fresh one */
            if (end != 0) tsi_domain_note_ended_locked(d, d->pub.epoch_id, d->pub.epoch_era);
        } else if (tsi_domain_may_drain(a, d)) {
            end = tsi_load_relaxed(&d->phase.ref);
            d->drained = true;
        }
    }
    tsi_lock_give(&d->lock);

    if (end != 0) tsi_domain_end_ref(a, d, end, own ? EPOCH_RELEASE : EPOCH_DRAIN, own, label);
}

/* Takes the domain's scope, the thread's innermost, off the stack, and off the count by `leave`, which may end its
 * epoch. domain may be NULL or destroyed, which is refused, as is the exit that would end the epoch while a run is
 * open there. Returns true; false after a refusal, with errno, and the thread is where it was.
 * [own thread, no lock held, no bracket open] */
static bool domain_exit(epoch_domain_t* domain) {
    TsiDomain* d = tsi_domain_of(domain);
    if (!tsi_domain_usable(d)) return false;
    TsiArena* a = d->arena;
    TsiScope* top = tsi_scope_top(d);
    if (top == NULL) return tsi_domain_refuse(d, TSI_DOMAIN_NOT_INNERMOST);
    if (tsi_domain_runs(d) && d->pub.auto_close && tsi_domain_refs(d) == 1)
        return tsi_domain_refuse(d, TSI_DOMAIN_RUNS);
    tsi_scope_pop(top);
    leave(a, d);
    return true;
}

/* Takes the innermost scope, `top`, which has a domain, off the stack. If it was the thread's last in a domain with an
 * epoch of its own, lends the thread's heap there to the domain's phase, or lets go of it if it cannot be lent. The
 * domain's count of scopes stays, and `detached` does not count it yet. [own thread, no lock held, no bracket open] */
static void set_aside(TsiScope* top) {
    TsiBinding* b = top->binding;
    TsiDomain* d = top->domain;
    tsi_scope_pop(top);
    TsiRef ref = tsi_load_relaxed(&d->phase.ref);
    /* so that the thread that ends it need not interrupt this one */
    if (d->own && tsi_scopes_inside(b->thread, d) == 0 && !tsi_heap_lend(b, &d->phase, ref, d->label_at))
        tsi_heap_let_go(b, ref);
}

/* Takes the domain's scope, the thread's innermost, off the stack by set_aside, as one that any thread may attach.
 * domain may be NULL or destroyed, which is refused, as is one in whose phase a run is open. Returns true; false after
 * a refusal, with errno, and the thread is where it was. [own thread, no lock held, no bracket open] */
static bool domain_detach(epoch_domain_t* domain) {
    TsiDomain* d = tsi_domain_of(domain);
    if (!tsi_domain_usable(d)) return false;
    TsiScope* top = tsi_scope_top(d);
    if (top == NULL) return tsi_domain_refuse(d, TSI_DOMAIN_NOT_INNERMOST);
    if (tsi_domain_runs(d)) return tsi_domain_refuse(d, TSI_DOMAIN_RUNS);
    set_aside(top);
    tsi_add_seq(&d->detached, 1); /* publishes the scope to the thread that attaches it */
    return true;
}

/* Takes 1 off the domain's `detached` if it is not 0: the caller has that scope then, and puts it on its stack or adds
 * the 1 again. Returns true; false, with nothing changed, if no scope is detached. [any thread, needs no lock] */
static bool claim(TsiDomain* d) {
    uint32_t n = tsi_load_seq(&d->detached);                   /* pairs with detach */
    while (n != 0 && !tsi_cas_seq(&d->detached, &n, n - 1)) {} /* decides among those that attach: once per detach */
    return n != 0;
}

/* Puts a detached scope of the domain on the thread's stack. domain may be NULL or destroyed, which is refused, as is
 * one without a detached scope. Returns true; false after a refusal or without memory, with errno, and the thread is
 * where it was. [own thread, no lock held, no bracket open] */
static bool domain_attach(epoch_domain_t* domain) {
    TsiDomain* d = tsi_domain_of(domain);
    if (!tsi_domain_usable(d)) return false;
    if (TSI_UNLIKELY(tsi_domain_is_anothers(d))) return tsi_domain_refuse(d, TSI_DOMAIN_ANOTHERS);
    TsiArena* a = d->arena;
    if (!claim(d)) return tsi_domain_refuse(d, TSI_DOMAIN_NOT_DETACHED);
    TsiBinding* b = tsi_binding_get(a, true);
    if (b != NULL && push(a, b, d)) return true;
    tsi_add_seq(&d->detached, 1);
    return tsi_domain_no_memory(a);
}

/* Destructors of thread-specific data may still call these. */

TSI_NOINLINE bool tsi_domain_late(bool (*fn)(epoch_domain_t*), epoch_domain_t* d) {
    tsi_thread_late_enter();
    bool done = fn(d);
    tsi_thread_late_leave();
    return done;
}

bool epoch_domain_enter(epoch_domain_t* d) {
    return TSI_UNLIKELY(tsi_tls.exiting) ? tsi_domain_late(domain_enter, d) : domain_enter(d);
}
bool epoch_domain_exit(epoch_domain_t* d) {
    return TSI_UNLIKELY(tsi_tls.exiting) ? tsi_domain_late(domain_exit, d) : domain_exit(d);
}
bool epoch_domain_detach(epoch_domain_t* d) {
    return TSI_UNLIKELY(tsi_tls.exiting) ? tsi_domain_late(domain_detach, d) : domain_detach(d);
}
bool epoch_domain_attach(epoch_domain_t* d) {
    return TSI_UNLIKELY(tsi_tls.exiting) ? tsi_domain_late(domain_attach, d) : domain_attach(d);
}

/* Takes the thread from its innermost scope, `top` (NULL: it is in none, or in an outer one), which is then detached,
 * to a detached scope of `to`, or to a new one if no scope of it is open (NULL: to none); one of them is not NULL.
 * Returns true; false, with errno, and with all scopes as before, if `to` has scopes and none is detached, if it
 * cannot be entered, or without memory. [own thread, no lock held, no bracket open] */
static bool switch_to(TsiScope* top, TsiDomain* to) {
    TsiDomain* old = top != NULL ? top->domain : NULL;
    TsiBinding *ours = top != NULL ? top->binding : NULL, *theirs = NULL;
    bool claimed = to != NULL && claim(to);
    if (to != NULL && !claimed && tsi_domain_refs(to) != 0) return tsi_domain_refuse(to, TSI_DOMAIN_NOT_DETACHED);
    if (claimed) theirs = tsi_binding_get(to->arena, true);
    if (claimed && theirs == NULL) {
        tsi_add_seq(&to->detached, 1);
        return tsi_domain_no_memory(to->arena);
    }

    if (old != NULL) set_aside(top);
    bool in = to == NULL || (claimed ? push(to->arena, theirs, to) : domain_enter(&to->pub));

    /* Only now may another thread attach the old one: where this has failed, its place on the stack is still there. */
    if (in && old != NULL) tsi_add_seq(&old->detached, 1); /* as in detach */
    if (!in && claimed) tsi_add_seq(&to->detached, 1);
    if (!in && old != NULL) (void)push(old->arena, ours, old);
    return in || (claimed ? tsi_domain_no_memory(to->arena) : false);
}

/* Takes the thread from its innermost scope to the domain `to` by switch_to, after checks; does nothing if it is there.
 * to may be NULL: to none. Returns true, with the domain of the earlier scope, or NULL, in *from, unless from is NULL;
 * false, with errno, and with all scopes and *from as before, after a refusal or without memory.
 * [own thread, no lock held, no bracket open] */
static bool switch_asked(epoch_domain_t* to, epoch_domain_t** from) {
    TsiDomain* d = tsi_domain_of(to);
    if (to != NULL && !tsi_domain_usable(d)) return false;
    if (to != NULL && tsi_domain_is_anothers(d)) return tsi_domain_refuse(d, TSI_DOMAIN_ANOTHERS);
    epoch_domain_t* old = epoch_domain_current();
    TsiThread* thread = tsi_tls.thread;
    TsiScope* top = old != NULL ? &thread->scopes[thread->scope_count - 1] : NULL;
    if (to != old && old != NULL && tsi_domain_runs(tsi_domain_of(old)))
        return tsi_domain_refuse(tsi_domain_of(old), TSI_DOMAIN_RUNS);
    if (to != old && !switch_to(top, d)) return false;
    if (from != NULL) *from = old;
    return true;
}

bool epoch_domain_switch(epoch_domain_t* to, epoch_domain_t** from) {
    bool late = TSI_UNLIKELY(tsi_tls.exiting);
    if (late) tsi_thread_late_enter(); /* as in tsi_domain_late: between two scopes the thread keeps what it has */
    bool done = switch_asked(to, from);
    if (late) tsi_thread_late_leave();
    return done;
}

/* ---- phases of a preloaded malloc ---- */

epoch_domain_t* tsi_malloc_begin(SlabAllocator* allocator, const char* label) {
    TsiArena* a = tsi_arena(allocator);
    if (a != NULL)
        tsi_segment_tick(a); /* before anything is under way: after a pause readers see what the last ones left */
    epoch_domain_t* d = epoch_domain_begin(allocator, label);
    if (d == NULL) return NULL; /* no other thread knows of it yet */
    d->auto_close = false;
    tsi_domain_of(d)->drains = true;
    return d;
}

bool tsi_malloc_in_phase(SlabAllocator* allocator) {
    TsiBinding* b = tsi_tls.thread != NULL && !tsi_tls.exiting ? tsi_binding_get(tsi_arena(allocator), false) : NULL;
    return b != NULL && b->scope != 0;
}

/* ---- outer scopes: the stack has them without a domain ---- */

bool slab_scope_outer(SlabAllocator* allocator) {
    TsiArena* a = tsi_arena(allocator);
    if (a == NULL) return tsi_failed_bool(EINVAL, "the allocator is NULL, or was not created");
    bool late = TSI_UNLIKELY(tsi_tls.exiting);
    if (late) tsi_thread_late_enter();
    TsiBinding* b = tsi_binding_get(a, true);
    bool in = b != NULL && tsi_scope_put(a, b, NULL);
    if (in) tsi_scope_ambient(b);
    if (late) tsi_thread_late_leave();
    return in || tsi_domain_no_memory(a);
}

bool slab_scope_outer_leave(SlabAllocator* allocator) {
    TsiArena* a = tsi_arena(allocator);
    if (a == NULL) return tsi_failed_bool(EINVAL, "the allocator is NULL, or was not created");

    TsiThread* thread = tsi_tls.thread;
    if (thread != NULL) tsi_scopes_refresh(thread);
    TsiScope* top = thread != NULL && thread->scope_count != 0 ? &thread->scopes[thread->scope_count - 1] : NULL;
    if (top != NULL && top->domain == NULL && top->serial == a->serial) {
        bool late = TSI_UNLIKELY(tsi_tls.exiting);
        if (late) tsi_thread_late_enter();
        tsi_scope_pop(top);
        if (late) tsi_thread_late_leave();
        return true;
    }

    tsi_refuse_as(a, &(TsiMisuse){.what = SLAB_MISUSE_DOMAIN_ORDER});
    (void)tsi_failed_bool(EINVAL, "the innermost scope of this thread is not an outer one of the allocator");
    tsi_tls.error = SLAB_ERROR_ORDER;
    return false;
}

epoch_domain_t* epoch_domain_current(void) {
    TsiThread* thread = tsi_tls.thread;
    if (thread != NULL) tsi_scopes_refresh(thread);
    TsiDomain* d = thread != NULL && thread->scope_count != 0 ? thread->scopes[thread->scope_count - 1].domain : NULL;
    return d != NULL ? &d->pub : NULL;
}

SlabAllocator* epoch_domain_allocator(void) {
    epoch_domain_t* d = epoch_domain_current();
    return d != NULL ? d->alloc : NULL;
}

/* ---- threads that go ---- */

/* Drains and destroys the domain d if its `drains` is true and nobody is inside any more. Otherwise gives it to
 * tsi_domain_leave_behind, which may destroy it later, if the exiting thread, whose scope of it was just ended, has
 * made it and nobody is inside; not one with an epoch of its own that stays open (auto_close is false). No other
 * thread may know of it, so its record must not stay for good. [exiting thread, no lock held, no bracket open] */
static void leave_with_maker(TsiThread* thread, TsiDomain* d) {
    if (d->drains && tsi_domain_refs(d) == 0) { /* also when another thread made it */
        tsi_domain_drain_left(d);
        return;
    }
    bool stays = d->own && !d->pub.auto_close;
    if (tsi_load_relaxed(&d->maker) != thread->number || tsi_domain_refs(d) != 0 || stays) return;
    if (tsi_load_relaxed(&d->owner_only)) tsi_domain_disown(d); /* its phase has just ended */
    tsi_domain_leave_behind(d);
}

/* Releases the phases in `a` of domains that are the exiting thread's alone (owner_only, and made by it), with their
 * scopes, and opens these domains to all threads by tsi_domain_disown; a domain without a phase is only opened. Its
 * count of scopes is 0 then. [exiting thread, no lock held, no bracket open] */
static void end_owned(TsiThread* thread, TsiArena* a) {
    for (uint32_t n = 0; n < tsi_table_used(&a->domains); n++) {
        TsiDomain* d = tsi_table_at(&a->domains, n);
        if (!tsi_domain_is_alive(d) || !tsi_load_relaxed(&d->owner_only) ||
            tsi_load_relaxed(&d->maker) != thread->number)
            continue;

        char label[TSI_LABEL_BYTES];
        tsi_lock_take(&d->lock);
        memcpy(label, d->label, sizeof label);
        TsiRef ref = tsi_load_relaxed(&d->phase.ref);
        tsi_domain_refs_set(d, 0);
        tsi_store_relaxed(&d->detached, 0);
        tsi_store_release(&d->phase.ref, 0); /* as in leave */
        tsi_domain_disown(d);
        d->special = d->untimed || (d->soft_bytes | d->hard_bytes) != 0;
        if (ref != 0) tsi_domain_note_ended_locked(d, d->pub.epoch_id, d->pub.epoch_era);
        tsi_lock_give(&d->lock);

        if (ref != 0) tsi_domain_end_ref(a, d, ref, EPOCH_RELEASE, true, label);
    }
}

/* Clears thread->owns and calls end_owned for all living allocators, not only those that the thread has used: cleanups
 * that run meanwhile may use any. [exiting thread, no lock held, no bracket open] */
static void end_all_owned(TsiThread* thread) {
    thread->owns = false;
    for (uint64_t serial = 0;;) {
        TsiArena* a = tsi_registry_hold_after(serial);
        if (a == NULL) return;
        serial = a->serial;
        thread->held = a;
        end_owned(thread, a);
        thread->held = NULL;
        tsi_tls_forget(); /* as in end_scopes */
        tsi_registry_unhold(a);
    }
}

/* Leaves all scopes of the thread, the innermost first, as an exit does each; the last one in a domain may end its
 * epoch, and a domain that the thread has made goes by leave_with_maker. Scopes of allocators that are gone are only
 * taken off. Does not look for scopes that cleanups enter once the stack is empty.
 * [exiting thread, no lock held, no bracket open] */
static void end_scopes_once(TsiThread* thread) {
    while (thread->scope_count != 0) {
        TsiScope top = thread->scopes[thread->scope_count - 1];
        TsiArena* a = tsi_registry_hold(top.serial);
        if (a == NULL) { /* its allocator is gone, and the domain with it */
            thread->scope_count--;
            continue;
        }

        thread->held = a;
        tsi_scope_pop(&thread->scopes[thread->scope_count - 1]);
        if (tsi_domain_is_alive(top.domain)) {
            leave(a, top.domain);
            leave_with_maker(thread, top.domain);
        }

        thread->held = NULL;
        tsi_tls_forget(); /* the arena may be gone at once, with its owner's address */
        tsi_registry_unhold(a);
    }
}

/* Ends the thread's scopes, and releases the phases that are the thread's alone (thread->owns), until none is left:
 * cleanups of phases may leave the thread inside of a domain, or with one that is its alone.
 * [exiting thread, no lock held, no bracket open] */
static void end_scopes(TsiThread* thread) {
    do {
        end_scopes_once(thread);
        if (thread->owns) end_all_owned(thread);
    } while (thread->scope_count != 0 || thread->owns);
}

/* Resets the domains of `a` in a fork child: vanished threads may have held any domain's lock, anywhere in a call.
 * Resets each domain's lock and lowers its count of scopes, and its phase's, to the detached ones; drop_scopes adds
 * this thread's. A domain that another thread had alone loses its scopes and its phase, and any thread may use it from
 * then on; if that thread was about to drain the phase, the phase goes on, and may be ended by its id. [fork child] */
static void child_domains(TsiArena* a) {
    for (uint32_t n = 1; n < tsi_table_used(&a->phases.incs); n++) {
        TsiInc* inc = tsi_inc(&a->phases, n);
        /* not written: its page may be with the system */
        if (tsi_load_relaxed(&inc->scopes) != 0) tsi_store_relaxed(&inc->scopes, 0);
        if (inc->named) inc->named = false;
    }

    for (uint32_t n = 0; n < tsi_table_used(&a->domains); n++) {
        TsiDomain* d = tsi_table_at(&a->domains, n);
        tsi_lock_reset(&d->lock);
        if (!tsi_domain_is_alive(d)) continue;
        TsiRef ref = tsi_load_relaxed(&d->phase.ref);
        uint32_t detached = tsi_load_relaxed(&d->detached);
        tsi_domain_refs_set(d, detached);
        tsi_scopes_add(a, d, (int)detached);

        /* Its thread is not here: its phase ends, since no domain names it. A phase that was about to be drained goes
         * on. */
        if (tsi_domain_is_anothers(d) && tsi_load_relaxed(&d->left) != TSI_DOMAIN_GOING) {
            tsi_domain_refs_set(d, 0);
            tsi_store_relaxed(&d->detached, 0);
            tsi_store_relaxed(&d->phase.ref, 0);
            tsi_domain_disown(d);
            continue;
        }

        if (!tsi_ref_is_current(&a->phases, ref)) continue;
        TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
        inc->named = true;
        if (tsi_domain_is_anothers(d)) { /* its thread was about to end it: now anybody may, by its id */
            tsi_inc_disown(inc);
            tsi_domain_disown(d);
        }
    }
}

/* Resets the domains of all allocators by child_domains, and adds 1 to the scopes of a domain, and of the phase that
 * it borrows, for each scope on the stack of this thread, the only one. Scopes of allocators that are gone stay on the
 * stack. [fork child] */
static void drop_scopes(void) {
    TsiArena* each;
    for (uint32_t at = 0; (each = tsi_registry_next(&at)) != NULL;) child_domains(each);
    TsiThread* thread = tsi_tls.thread;
    for (uint32_t n = 0; thread != NULL && n < thread->scope_count; n++) {
        TsiArena* a = tsi_registry_hold(thread->scopes[n].serial);
        TsiDomain* d = thread->scopes[n].domain;
        if (a == NULL) continue;
        if (tsi_domain_is_alive(d)) {
            tsi_domain_refs_set(d, tsi_domain_refs(d) + 1);
            tsi_scopes_add(a, d, 1);
        }
        tsi_registry_unhold(a);
    }
}

/* Returns the scopes inside the incarnation `ref` of a domain's own; 0 if the domain has another by now, or only
 * borrows it. domain: the index of the domain's record. [any thread, needs no lock] */
static uint32_t scopes_of(const TsiArena* a, uint32_t domain, TsiRef ref) {
    TsiDomain* d = tsi_table_at(&a->domains, domain);
    /* pairs with tsi_domain_open_own */
    return tsi_load_acquire(&d->phase.ref) == ref && tsi_load_relaxed(&d->shows_scopes) ? tsi_domain_refs(d) : 0;
}

/* Installs the functions by which other floors end scopes of exiting and vanished threads and count scopes.
 * [pthread_once] */
static void init_once(void) {
    tsi_domain_scopes = scopes_of;
    tsi_thread_end_scopes = end_scopes;
    tsi_fork_drop_scopes = drop_scopes;
}

void tsi_scope_init(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void)pthread_once(&once, init_once);
}
