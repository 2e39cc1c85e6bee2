/*
 * domain.h - a domain's record, for the files that work on it.
 */
#ifndef TSI_API_DOMAIN_H
#define TSI_API_DOMAIN_H

#include "api/internal.h"
#include "base/check.h"

#define TSI_DOMAIN_ALIVE 0x646f6d31u

/* What a phase of one thread alone reads and writes lies in the first three cache lines, what an allocation reads in
 * the first one. */
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
    _Atomic bool shows_scopes; /* `own` for other threads: the others add theirs to the incarnation */
    bool entered, drained;     /* borrowed: entered once; drained by this domain */
    bool has_receipt;
    bool empty_receipt; /* only id, era and label of `receipt` are set; the rest is 0 */
    uint32_t index;     /* of this record */
    uint32_t label_at;  /* its record */
    char label[TSI_LABEL_BYTES];
    _Atomic uint64_t maker; /* number of the thread that made it */
    _Atomic uint32_t left;  /* see tsi_domain_leave_behind; 0 mostly */
    /* What each incarnation that it opens is to have; `special`: anything but 0. */
    bool special;
    bool drains; /* drained as its last thread exits inside: others hold objects of it */
    bool untimed;
    _Atomic bool owner_only; /* its maker's alone, until that is gone */
    _Atomic uint8_t runs;    /* then: TSI_RUN_..., of that thread in its phase; NONE in each new domain */
    uint64_t soft_bytes, hard_bytes;
    SlabBudgetFn budget_fn;
    void* budget_ctx;
    EpochReceipt receipt;
} TsiDomain;

_Static_assert(sizeof((epoch_domain_t*)0)->private_ >= sizeof(TsiPhaseWords), "the phase's words have room");

enum { TSI_RUN_NONE, TSI_RUN_OPEN, TSI_RUN_CALLED /* open, and inside of a call of its own */ };

#define TSI_DOMAIN_GOING UINT32_MAX /* `left` of one that is being ended for good, until it is none any more */
#define TSI_DOMAIN_OWNED \
    (UINT32_MAX - 1u) /* and of one that is `owner_only`: whoever looks for it asks for that, too */

enum { TSI_DOMAIN_STRIDE = (sizeof(TsiDomain) + 63) & ~63u };

TSI_INLINE TsiDomain* tsi_domain_of(epoch_domain_t* d) { return (TsiDomain*)(void*)d; }
/* acquire: pairs with the release that makes a record a domain, or none any more */
TSI_INLINE bool tsi_domain_is_alive(TsiDomain* d) {
    return d != NULL && tsi_load_acquire(&d->alive) == TSI_DOMAIN_ALIVE;
}
/* Why a call on a domain is refused. Each stands for a misuse, an errno and a sentence (domain.c). */
typedef enum TsiDomainWhy {
    TSI_DOMAIN_NOT_INNERMOST,
    TSI_DOMAIN_NOT_DETACHED,
    TSI_DOMAIN_INSIDE,   /* another scope than those that the call may take away */
    TSI_DOMAIN_BORROWED, /* and the call needs an epoch of the domain's own */
    TSI_DOMAIN_PASSED,   /* the ring has moved past the epoch that it borrows */
    TSI_DOMAIN_ENDED,
    TSI_DOMAIN_ANOTHERS,
    TSI_DOMAIN_RUNS,   /* a run is open in its phase */
    TSI_DOMAIN_CALLED, /* that run is inside of a call of its own */
    TSI_DOMAIN_CLOSED, /* allocation and registration in an epoch that has ended */
} TsiDomainWhy;
/* Counts the refusal, sets errno and the sentence of slab_last_error, and returns false. [no lock, no bracket] */
TSI_COLD bool tsi_domain_refuse(TsiDomain* d, TsiDomainWhy why);
/* Does so for NULL, which is not counted, and for a domain that was destroyed, is another thread's alone, or has a run
 * open. */
TSI_COLD bool tsi_domain_refuse_destroyed(TsiDomain* d);
/* Sets errno and the sentence: a record or the scope found no memory. Counts it where a is not NULL. Returns false. */
TSI_COLD bool tsi_domain_no_memory(TsiArena* a);
/* Returns true for a domain that is alive; refuses any other. */
TSI_INLINE bool tsi_domain_usable(TsiDomain* d) {
    return TSI_LIKELY(tsi_domain_is_alive(d)) || tsi_domain_refuse_destroyed(d);
}
/* Returns true for a domain that is another thread's alone. */
TSI_INLINE bool tsi_domain_is_anothers(TsiDomain* d) {
    if (TSI_LIKELY(!tsi_load_relaxed(&d->owner_only))) return false;
    return tsi_tls.thread == NULL || tsi_load_relaxed(&d->maker) != tsi_tls.thread->number;
}
/* Returns true for a domain of the calling thread's alone in whose phase it has a run open: the phase goes on, and the
 * thread stays in it. */
TSI_INLINE bool tsi_domain_runs(TsiDomain* d) {
    return TSI_UNLIKELY(tsi_load_relaxed(&d->left) == TSI_DOMAIN_OWNED) && tsi_load_relaxed(&d->runs) != TSI_RUN_NONE;
}
/* The domain's thread is gone: it is anybody's. */
TSI_INLINE void tsi_domain_disown(TsiDomain* d) {
    uint32_t owned = TSI_DOMAIN_OWNED;
    (void)tsi_cas_seq(&d->left, &owned, 0); /* unless it was left behind, or goes */
    tsi_store_relaxed(&d->owner_only, false);
    tsi_store_relaxed(&d->runs, TSI_RUN_NONE);
}
/* The table of domains: their pages go back when nobody is inside of their locks. */
void tsi_domain_table_init(TsiTable* t, TsiGround* g, uint32_t capacity);
/* Scopes inside; the domain's lock is held by whoever changes them. acquire and release pair with each other. */
TSI_INLINE uint32_t tsi_domain_refs(TsiDomain* d) { return __atomic_load_n(&d->pub.refcount, __ATOMIC_ACQUIRE); }
TSI_INLINE void tsi_domain_refs_set(TsiDomain* d, uint32_t n) {
    __atomic_store_n(&d->pub.refcount, n, __ATOMIC_RELEASE);
}

/* Allocates in the incarnation that ref names, the domain's at the time of asking, as epoch_domain_malloc. NULL with
 * errno. [no lock, no bracket] */
void* tsi_domain_malloc(TsiDomain* d, size_t size, TsiRef ref);
/* Opens an incarnation of the domain's own; false without memory. Lock held, or the domain is not alive yet. */
bool tsi_domain_open_own(TsiArena* a, TsiBinding* b, TsiDomain* d);
/* The receipt of an incarnation that held nothing, until a fuller one replaces it. Lock held. */
void tsi_domain_note_ended_locked(TsiDomain* d, EpochId id, uint64_t era);
/* Ends what ref named, and leaves the receipt in the domain. The domain's lock is not held, so another thread may
 * destroy the domain meanwhile. `own`: the domain's pin goes with it. noted: the label that its receipt has
 * already. */
void tsi_domain_end_ref(TsiArena* a, TsiDomain* d, TsiRef ref, EpochCloseMode mode, bool own,
                        const char noted[TSI_LABEL_BYTES]);
/* Drains a domain that `drains`, and that nobody is inside of; it is gone then. [exiting thread] */
void tsi_domain_drain_left(TsiDomain* d);
/* True when nobody else's scope is in the borrowed incarnation and the id still names it. */
bool tsi_domain_may_drain(TsiArena* a, TsiDomain* d);

/* True for a scope of this domain. The serial decides, not the address alone: a scope of a destroyed allocator stays on
 * its thread's stack until it comes to the top, and a later allocator's domain may lie at the same record (registry.h
 * A1). */
TSI_INLINE bool tsi_scope_is_of(const TsiScope* s, const TsiDomain* d) {
    return s->domain == d && s->serial == d->arena->serial;
}
/* Counts the scopes of the domain on the calling thread's stack. */
uint32_t tsi_scopes_inside(const TsiThread* t, const TsiDomain* d);
/* The calling thread's innermost scope when it is one of the domain's, else NULL. */
TSI_INLINE TsiScope* tsi_scope_top(TsiDomain* d) {
    TsiThread* t = tsi_tls.thread;
    if (t != NULL) tsi_scopes_refresh(t);
    TsiScope* top = t != NULL && t->scope_count != 0 ? &t->scopes[t->scope_count - 1] : NULL;
    /* After the refresh it is of a living allocator, so one that has the domain's address is the domain's. */
    TSI_ASSERT(top == NULL || top->domain != d || tsi_scope_is_of(top, d));
    return top != NULL && top->domain == d ? top : NULL;
}
/* Makes room for one scope more of the calling thread. */
bool tsi_scopes_make_room(TsiThread* t);
/* Puts a scope of the domain, or with NULL an outer one, on top of the calling thread's stack, of which its plain calls
 * do not know yet. Returns false without memory. */
TSI_INLINE bool tsi_scope_put(TsiArena* a, TsiBinding* b, TsiDomain* d) {
    TsiThread* t = b->thread;
    if (TSI_UNLIKELY(t->scope_count == t->scope_capacity) && !tsi_scopes_make_room(t)) return false;
    t->scopes[t->scope_count++] = (TsiScope){d, d != NULL ? &d->phase : NULL, a->serial, b, b->scope};
    b->scope = d != NULL ? t->scope_count : 0;
    return true;
}
/* Takes the innermost scope of its thread off its stack; what its domain says of it stays. */
void tsi_scope_pop(TsiScope* top);
/* n scopes more in the epoch that the domain borrows; nothing for one of its own. */
void tsi_scopes_add(TsiArena* a, TsiDomain* d, int n);
/* The thread's plain calls go to its innermost scope, or to the current epoch. */
void tsi_scope_ambient(TsiBinding* b);
/* The domain is none any more; its epoch is not looked at. */
void tsi_domain_discard(TsiArena* a, TsiDomain* d);
/* What epoch_domain_receipt tells: false when nothing has ended. */
bool tsi_domain_last_receipt(TsiDomain* d, EpochReceipt* out);
/* A domain that its maker was inside of as it exited: it stays until TSI_LEFT_MAX others were left behind after it. */
void tsi_domain_leave_behind(TsiDomain* d);
/* Somebody uses or destroys a domain, which perhaps was left behind: it is his. False: it is being destroyed, is
 * another thread's alone, or has a run open. */
bool tsi_domain_found_slow(TsiDomain* d);
TSI_INLINE bool tsi_domain_found(TsiDomain* d) {
    return TSI_LIKELY(tsi_load_relaxed(&d->left) == 0) || tsi_domain_found_slow(d);
}
/* Scopes of exiting and vanished threads; works once per process. */
void tsi_scope_init(void);

#endif
