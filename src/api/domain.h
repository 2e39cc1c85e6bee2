/*
 * domain.h - a domain's record and a thread's scopes, for the files that work on them.
 */
#ifndef TSI_API_DOMAIN_H
#define TSI_API_DOMAIN_H

#include "api/internal.h"
#include "base/check.h"

#define TSI_DOMAIN_ALIVE 0x646f6d31u

/* A domain. The words that a phase of one thread alone reads and writes lie in the first three cache lines, those that
 * an allocation reads in the first one. */
typedef struct TsiDomain {
    union {
        epoch_domain_t pub;
        struct {
            uint8_t public_[offsetof(epoch_domain_t, private_)];
            TsiPhaseWords phase; /* in place of the private words */
        };
    };
    TsiArena* arena;
    _Atomic uint32_t alive; /* TSI_DOMAIN_ALIVE; a record of a destroyed domain stays readable */
    TsiLock lock;           /* opening, ending, the receipt */
    _Atomic uint32_t detached;
    bool own;
    _Atomic bool shows_scopes; /* `own` for other threads: scopes of borrowed domains count in the incarnation */
    bool entered, drained;     /* borrowed: entered once; drained by this domain */
    bool has_receipt;
    bool empty_receipt; /* only id, era and label of `receipt` are set; the rest is 0 */
    uint32_t index;     /* of this record */
    uint32_t label_at;  /* the label's record */
    char label[TSI_LABEL_BYTES];
    _Atomic uint64_t maker; /* number of the thread that made it */
    _Atomic uint32_t left;  /* number under which it was left (tsi_domain_leave_behind), or below; normally 0 */
    /* Properties of each incarnation that it opens; `special`: any is not 0. */
    bool special;
    bool drains; /* drained as its last thread exits inside: others hold objects of it */
    bool untimed;
    _Atomic bool owner_only; /* its maker's alone, until that is gone */
    _Atomic uint8_t runs;    /* TSI_RUN_..., of that thread in its phase; NONE in each new domain */
    uint64_t soft_bytes, hard_bytes;
    SlabBudgetFn budget_fn;
    void* budget_ctx;
    EpochReceipt receipt;
} TsiDomain;

_Static_assert(sizeof((epoch_domain_t*)0)->private_ >= sizeof(TsiPhaseWords), "the phase's words have room");

enum { TSI_RUN_NONE, TSI_RUN_OPEN, TSI_RUN_CALLED /* open, and inside of a call of its own */ };

#define TSI_DOMAIN_GOING UINT32_MAX /* `left` of a domain that is being ended for good, until it is none any more */
#define TSI_DOMAIN_OWNED \
    (UINT32_MAX - 1u) /* `left` of an `owner_only` domain: tsi_domain_found then checks the thread, too */

enum { TSI_DOMAIN_STRIDE = (sizeof(TsiDomain) + 63) & ~63u };

/* Returns the library's record of a domain; NULL for NULL. [any thread, needs no lock] */
TSI_INLINE TsiDomain* tsi_domain_of(epoch_domain_t* d) { return (TsiDomain*)(void*)d; }
/* Returns true if d is a domain that was not destroyed; false for NULL. Reads d's record, which stays readable while
 * its allocator lives. acquire: pairs with the release that makes a record a domain, or none any more.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_domain_is_alive(TsiDomain* d) {
    return d != NULL && tsi_load_acquire(&d->alive) == TSI_DOMAIN_ALIVE;
}
/* Reasons to refuse a call on a domain. Each stands for a misuse, an errno and a sentence (domain.c). */
typedef enum TsiDomainWhy {
    TSI_DOMAIN_NOT_INNERMOST,
    TSI_DOMAIN_NOT_DETACHED,
    TSI_DOMAIN_INSIDE,   /* a scope is inside that the call may not take away */
    TSI_DOMAIN_BORROWED, /* and the call needs an epoch of the domain's own */
    TSI_DOMAIN_PASSED,   /* the ring has moved past the epoch that it borrows */
    TSI_DOMAIN_ENDED,
    TSI_DOMAIN_ANOTHERS,
    TSI_DOMAIN_RUNS,   /* a run is open in its phase */
    TSI_DOMAIN_CALLED, /* that run is inside of a call of its own */
    TSI_DOMAIN_CLOSED, /* allocation and registration in an epoch that has ended */
} TsiDomainWhy;
/* Counts the refusal for the reason `why`, with the label of the domain or, if it borrows its epoch, of that, and sets
 * errno (EINVAL, EBUSY or ESTALE by the reason), slab_error and the sentence of slab_last_error. d's allocator lives;
 * d may have ended. Returns false, for callers to return. [any thread, no lock held, no bracket open] */
TSI_COLD bool tsi_domain_refuse(TsiDomain* d, TsiDomainWhy why);
/* Refuses a call on d with a reason found here: NULL (EINVAL), which is not counted; another thread's alone or with a
 * run open (EBUSY), counted; otherwise a domain that was destroyed or is being destroyed (ESTALE), counted if its
 * allocator lives. Sets errno and the sentence. Returns false, for callers to return.
 * [any thread, no lock held, no bracket open] */
TSI_COLD bool tsi_domain_refuse_destroyed(TsiDomain* d);
/* Sets errno to ENOMEM and the sentence for a record or a scope that found no memory, and adds 1 to the allocator's
 * refusals for lack of memory if a is not NULL. Returns false, for callers to return. [any thread, needs no lock] */
TSI_COLD bool tsi_domain_no_memory(TsiArena* a);
/* Calls fn(d), from destructors of thread-specific data: past its destructor the thread lets go of all that it has
 * afterwards, unless a scope is open. Returns what fn returns. [exiting thread, no lock held, no bracket open] */
bool tsi_domain_late(bool (*fn)(epoch_domain_t*), epoch_domain_t* d);
/* Returns true if the domain is alive; otherwise, and for NULL, refuses it with errno and the sentence and returns
 * false. [any thread, no lock held, no bracket open] */
TSI_INLINE bool tsi_domain_usable(TsiDomain* d) {
    return TSI_LIKELY(tsi_domain_is_alive(d)) || tsi_domain_refuse_destroyed(d);
}
/* Returns true if the domain, which is alive, is another thread's alone; false if it is the calling thread's or no
 * one's. [any thread, needs no lock] */
TSI_INLINE bool tsi_domain_is_anothers(TsiDomain* d) {
    if (TSI_LIKELY(!tsi_load_relaxed(&d->owner_only))) return false;
    return tsi_tls.thread == NULL || tsi_load_relaxed(&d->maker) != tsi_tls.thread->number;
}
/* Returns true if the domain, which is alive, is one thread's alone and its field `runs` is not TSI_RUN_NONE: a run is
 * open in its phase, which goes on, and that thread stays in it. [any thread, needs no lock] */
TSI_INLINE bool tsi_domain_runs(TsiDomain* d) {
    return TSI_UNLIKELY(tsi_load_relaxed(&d->left) == TSI_DOMAIN_OWNED) && tsi_load_relaxed(&d->runs) != TSI_RUN_NONE;
}
/* Opens a domain whose owner_only is true to all threads, because its own thread is gone: sets owner_only to false,
 * `runs` to TSI_RUN_NONE, and `left` to 0 if it is TSI_DOMAIN_OWNED. Leaves the phase and its scopes alone.
 * [its maker as it exits, or fork child] */
TSI_INLINE void tsi_domain_disown(TsiDomain* d) {
    uint32_t owned = TSI_DOMAIN_OWNED;
    (void)tsi_cas_seq(&d->left, &owned, 0); /* unless it was left behind, or goes */
    tsi_store_relaxed(&d->owner_only, false);
    tsi_store_relaxed(&d->runs, TSI_RUN_NONE);
}
/* Sets *table to an empty table of domains, with `capacity` records in the ground, which has room for them. Pages of
 * records go back when nobody is inside of their locks. [before the table is shared] */
void tsi_domain_table_init(TsiTable* table, TsiGround* ground, uint32_t capacity);
/* Returns the number of scopes inside the domain, detached ones included. Changed under the domain's lock. acquire and
 * release pair with each other. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_domain_refs(TsiDomain* d) { return __atomic_load_n(&d->pub.refcount, __ATOMIC_ACQUIRE); }
/* Sets the number of scopes inside the domain to n.
 * [domain's lock held; or before the domain is alive, or fork child] */
TSI_INLINE void tsi_domain_refs_set(TsiDomain* d, uint32_t n) {
    __atomic_store_n(&d->pub.refcount, n, __ATOMIC_RELEASE);
}

/* Allocates `size` bytes, any number, in the incarnation that ref, not 0, names, which was the domain's when the caller
 * read it. Returns the object, or NULL with errno. [own thread, no lock held, no bracket open] */
void* tsi_domain_malloc(TsiDomain* d, size_t size, TsiRef ref);
/* Opens an incarnation of the domain's own, by the domain's label and properties: sets its id, its era and phase.ref,
 * which then names it. The one before is no longer named. Returns true; false, and changes nothing, without memory.
 * [domain's lock held, or the domain is not alive yet] */
bool tsi_domain_open_own(TsiArena* a, TsiBinding* b, TsiDomain* d);
/* Makes a receipt with id, era and the domain's label, and all else 0, the domain's last one: has_receipt and
 * empty_receipt become true. For an incarnation that held nothing, or until tsi_domain_end_ref replaces it by a fuller
 * one. [domain's lock held] */
void tsi_domain_note_ended_locked(TsiDomain* d, EpochId id, uint64_t era);
/* Ends the incarnation that ref, not 0, names, in the `mode` released or drained, and sets the domain's receipt,
 * unless the domain has ended another one since. Another thread may destroy the domain meanwhile: its record stays,
 * and ended_here_locked tells. own: true if the domain opened it, whose pin is given back then. noted: the label that
 * its receipt has already. An own one without heaps is ended without a receipt of its own: only its label is set, if
 * it is not `noted`. Does nothing more if it had ended before. [any thread, no lock held, no bracket open] */
void tsi_domain_end_ref(TsiArena* a, TsiDomain* d, TsiRef ref, EpochCloseMode mode, bool own,
                        const char noted[TSI_LABEL_BYTES]);
/* Drains the phase of a domain whose `drains` is true, and that nobody is inside of, and destroys the domain. If a
 * thread has entered it or ends it meanwhile, leaves it alone, and only counts a refusal and sets errno.
 * [exiting thread, no lock held, no bracket open] */
void tsi_domain_drain_left(TsiDomain* d);
/* Returns true if the domain, a borrowed one, borrows an incarnation that its id still names, d->phase.ref, and that
 * no scope of any domain is in. False once the ring has moved past it. [any thread, needs no lock] */
bool tsi_domain_may_drain(TsiArena* a, TsiDomain* d);

/* Returns true if the end of a borrowed domain must drain its epoch: a thread has entered it (`entered`), auto_close
 * is set, this domain has not drained the epoch (`drained`), and tsi_domain_may_drain returns true. False for a domain
 * with an epoch of its own. [any thread, needs no lock] */
TSI_INLINE bool tsi_domain_owes_drain(TsiArena* a, TsiDomain* d) {
    if (d->own || !d->entered) return false;
    return d->pub.auto_close && !d->drained && tsi_domain_may_drain(a, d);
}

/* Returns true if the scope is one of d, which is alive. The serial decides, not the address alone: a scope of a
 * destroyed allocator stays on its thread's stack until it comes to the top, and a later allocator's domain may lie at
 * the same record (registry.h A1). [own thread, needs no lock] */
TSI_INLINE bool tsi_scope_is_of(const TsiScope* scope, const TsiDomain* d) {
    return scope->domain == d && scope->serial == d->arena->serial;
}
/* Returns how many scopes of the domain, which is alive, are on the stack of `thread`, the calling one.
 * [own thread, needs no lock] */
uint32_t tsi_scopes_inside(const TsiThread* thread, const TsiDomain* d);
/* Returns the calling thread's innermost scope if it is one of the domain's, else NULL. Takes scopes of destroyed
 * allocators off the top first. [own thread, no lock held] */
TSI_INLINE TsiScope* tsi_scope_top(TsiDomain* d) {
    TsiThread* thread = tsi_tls.thread;
    if (thread != NULL) tsi_scopes_refresh(thread);
    TsiScope* top = thread != NULL && thread->scope_count != 0 ? &thread->scopes[thread->scope_count - 1] : NULL;
    /* After the refresh it is of a living allocator, so one that has the domain's address is the domain's. */
    TSI_ASSERT(top == NULL || top->domain != d || tsi_scope_is_of(top, d));
    return top != NULL && top->domain == d ? top : NULL;
}
/* Makes room for one scope more on the calling thread's stack, first by taking scopes of destroyed allocators off its
 * top. The stack may move: pointers into thread->scopes are stale afterwards. Returns true, or false without memory;
 * the room is as it was then, though scopes may have been taken off. [own thread, no lock held] */
bool tsi_scopes_make_room(TsiThread* thread);
/* Returns true if one scope more fits on the calling thread's stack, after tsi_scopes_make_room if it was full; false
 * without memory. [own thread, no lock held] */
TSI_INLINE bool tsi_scopes_have_room(TsiThread* thread) {
    return TSI_LIKELY(thread->scope_count != thread->scope_capacity) || tsi_scopes_make_room(thread);
}
/* Puts a scope of the domain d, or with d NULL an outer one, on top of the calling thread's stack, where there is room,
 * whose binding in `a` is b, and sets b->scope; the caller then redirects its plain calls (tsi_scope_ambient).
 * [own thread] */
TSI_INLINE void tsi_scope_put_in_room(TsiArena* a, TsiBinding* b, TsiDomain* d) {
    TsiThread* thread = b->thread;
    thread->scopes[thread->scope_count++] = (TsiScope){d, d != NULL ? &d->phase : NULL, a->serial, b, b->scope};
    b->scope = d != NULL ? thread->scope_count : 0;
}
/* Does what tsi_scope_put_in_room does if there is room by tsi_scopes_have_room. Returns true; false, and puts none,
 * without memory. [own thread, no lock held] */
TSI_INLINE bool tsi_scope_put(TsiArena* a, TsiBinding* b, TsiDomain* d) {
    if (!tsi_scopes_have_room(b->thread)) return false;
    tsi_scope_put_in_room(a, b, d);
    return true;
}
/* Takes the innermost scope, `top`, off its thread's stack, and sends the thread's plain calls to where
 * tsi_scope_ambient sends them from the next one. *top means nothing afterwards. Does not change the domain's count of
 * scopes. [own thread, no bracket open] */
void tsi_scope_pop(TsiScope* top);
/* Adds n, which may be below 0, to the field `scopes` of the incarnation that the domain borrows, if d->phase.ref
 * still names it; does nothing for a domain with an epoch of its own. Takes the stripe and gives it back.
 * [any thread, no stripe held] */
void tsi_scopes_add(TsiArena* a, TsiDomain* d, int n);
/* Sets b->heap, where plain calls of b's thread allocate: the thread's heap in the domain of its innermost scope in
 * b's allocator; if there is none, or an outer one, its heap in the ring's current epoch; tsi_no_heap if it has none
 * there, so that the next plain call finds or makes one. [own thread, no bracket open] */
void tsi_scope_ambient(TsiBinding* b);
/* Ends the record's life as a domain and gives it back, without touching its epoch: it reads as not alive, with
 * phase.ref 0. [the one thread that has set d->left to TSI_DOMAIN_GOING, no lock held] */
void tsi_domain_discard(TsiArena* a, TsiDomain* d);
/* Sets *out to the receipt of the domain's incarnation that ended last. Returns true; false, with *out left alone, if
 * none has ended. Takes the domain's lock. [any thread, no lock held] */
bool tsi_domain_last_receipt(TsiDomain* d, EpochReceipt* out);
/* Puts the domain, which nobody is inside of, into a->left, the TSI_LEFT_MAX domains left last, under a new number, to
 * which it sets d->left. Destroys the domain that it takes the place of, if nobody is inside of that and no thread has
 * found it since: a call that finds a domain makes its `left` 0. Takes the registry lock, and gives it back before
 * anything is destroyed. [exiting thread, no lock held] */
void tsi_domain_leave_behind(TsiDomain* d);
/* Returns true if the calling thread may use or destroy the domain, after d->left was read as not 0: it was left
 * behind, and d->left is made 0 first, so that only calls and no other thread's exit end it; or it is this thread's
 * alone and has no run open. Returns false, and changes nothing, if it is being destroyed, is another thread's alone,
 * or has a run open. [any thread, needs no lock] */
bool tsi_domain_found_slow(TsiDomain* d);
/* Returns true if the calling thread may use or destroy the domain, which is alive; one that was left behind is no
 * longer so then: d->left becomes 0. Normally one load. Returns false, and changes nothing, if it is being destroyed,
 * is another thread's alone, or has a run open; tsi_domain_refuse_destroyed tells which.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_domain_found(TsiDomain* d) {
    return TSI_LIKELY(tsi_load_relaxed(&d->left) == 0) || tsi_domain_found_slow(d);
}
/* Installs the functions that end scopes of exiting and vanished threads; a second call does nothing.
 * [any thread, no lock held] */
void tsi_scope_init(void);

#endif
