/*
 * registry.h - the allocators and threads of the process.
 *
 * The registry maps live serials to arenas and lists the threads that have used one. Serials are never reused, so a
 * thread recognises its cached binding of a destroyed arena without touching it. Records of threads that have exited
 * are used again, or their pages go back.
 *
 * Each thread keeps a stack of domain scopes, across all arenas. Only its own thread touches it.
 *
 *   A1  A scope or a binding that a thread keeps is of an arena, or of one of its domains, only if the serials are
 *       equal. Equal addresses prove nothing: storage, arenas and records of domains lie where those of a destroyed
 *       allocator lay.
 *   A2  TsiThread.owner alone is compared by address. The end of an allocator takes its address out of all records
 *       before another can get it.
 */
#ifndef TSI_THREADS_REGISTRY_H
#define TSI_THREADS_REGISTRY_H

#include "state/arena.h"

typedef struct TsiScope {
    void* domain;         /* TsiDomain, known to the floor above */
    TsiPhaseWords* phase; /* the domain's */
    uint64_t serial;      /* of the domain's arena */
    TsiBinding* binding;
    uint32_t outer; /* the binding's scope below this one, index + 1 */
} TsiScope;

/* A binding by serial: the pointer is used only while that serial is alive. */
typedef struct TsiBindingRef {
    uint64_t serial; /* 0 = empty */
    TsiBinding* binding;
} TsiBindingRef;

enum { TSI_REFS_FIRST = 16, TSI_SCOPES_FIRST = 32 };

typedef struct TsiThread {
    uint64_t number; /* never used again */
    uint32_t index;
    bool alive; /* registry lock */
    /* The allocator, by address, whose calls may use the thread's `binding` without a further test, or TSI_NO_OWNER. A
     * destroyed allocator is taken out here in all records (but not in the threads' own storage: a thread that used its
     * first allocator in its last round of destructors has gone without notice), so that one made at its address
     * matches nobody. */
    _Atomic(SlabAllocator*) owner;
    TsiBindingRef* refs;              /* open addressing by serial; own thread only, like all below */
    uint32_t ref_count, ref_capacity; /* capacity: a power of two */
    TsiScope* scopes;
    uint32_t scope_count, scope_capacity;
    bool owns;              /* it has made domains that it alone uses */
    uint64_t seen_removals; /* of tsi_registry_removals */
    TsiArena* held;         /* the arena that the thread keeps from being freed, or NULL */
    TsiBindingRef first_refs[TSI_REFS_FIRST];
    TsiScope first_scopes[TSI_SCOPES_FIRST];
} TsiThread;

#define TSI_NO_OWNER ((SlabAllocator*)(uintptr_t)1) /* no allocator's address, nor NULL */

typedef struct TsiTls {
    TsiThread* record; /* `thread`, or one that has no owner */
    TsiBinding* binding;
    uint64_t serial; /* of `binding`; no arena has UINT64_MAX */
    TsiThread* thread;
    bool exiting;  /* the thread's destructor has run */
    uint32_t late; /* calls it is inside of since */
    TsiBank* bank; /* the bank that it holds, or NULL; then `binding` is the bank's, and this its own: */
    TsiBinding* own;
    TsiCaller caller; /* of the allocation that left the fast path last */
    uint8_t telling;  /* bits TSI_TELLS_...: functions of the program that the thread is inside of */
    uint8_t error;    /* enum SlabError: why the thread's last call was refused */
    uint64_t number;  /* of `thread`, until it leaves, then 0: read by programs, see api/lane.c */
} TsiTls;

/* A function for budgets, or for misuse, is not called again on the thread while it runs: its own calls would cause
 * calls without end. */
enum { TSI_TELLS_BUDGET = 1, TSI_TELLS_MISUSE = 2 };

/* Makes fast paths find no binding: the thread's `owner` is none, and tsi_tls.serial that of no arena, so that the next
 * call searches for one. tsi_tls.binding and the binding itself stay. [own thread, needs no lock] */
void tsi_tls_forget(void);

/* At a fixed distance from the thread's pointer, whatever the flags; a build with descriptors leaves it to them. */
#ifdef TSI_TLS_DESCRIPTORS
#define TSI_TLS_MODEL
#else
#define TSI_TLS_MODEL __attribute__((tls_model("initial-exec")))
#endif

extern TsiThread tsi_no_thread;
extern _Thread_local TsiTls tsi_tls TSI_TLS_MODEL;
extern TsiLock tsi_registry_lock;

/* Reserves the process's tables of arenas and threads, before anything of an arena, unless an earlier call has: for
 * THREADS_MAX threads, or by halves for fewer, THREADS_LEAST at least, so that a small allocator has room beside.
 * Returns true if they are there; false, with none reserved, if the system refuses, and a later call tries again.
 * [any thread, no registry lock held] */
bool tsi_registry_open(void);
/* Enters an arena in the registry, and sets a->serial, never used before, and a->slot. Returns true; false, with the
 * arena unchanged, without a free slot or memory. [any thread, no registry lock held] */
bool tsi_registry_add(TsiArena* a);
/* Takes the arena out of the registry, so that its serial is found no more; makes threads that have it as `owner`, or
 * at hand in the calling thread, forget it; adds 1 to tsi_registry_removals. Then waits until a->exiting is 0, that is
 * until threads that are leaving it, or hold it, are done. The arena stays to be freed. [any thread, no lock held] */
void tsi_registry_remove(TsiArena* a);
/* Returns the number of living allocators. [any thread, needs no lock] */
uint32_t tsi_registry_count(void);
/* Keeps the arena with this serial from being destroyed until tsi_registry_unhold, by adding 1 to its `exiting`.
 * Returns the arena, or NULL, with nothing held, if it has gone. [any thread, no registry lock held] */
TsiArena* tsi_registry_hold(uint64_t serial);
/* Ends a hold of the arena, of tsi_registry_hold, _hold_after or _hold_domain, by taking 1 off its `exiting`: it may be
 * destroyed at once, so the caller reads it no more. [any thread, needs no lock] */
void tsi_registry_unhold(TsiArena* a);
/* Keeps the living allocator with the lowest serial above `serial` from being destroyed until tsi_registry_unhold, by
 * adding 1 to its `exiting`. Returns its arena, or NULL, with nothing held, if there is none. O(allocators)
 * [any thread, no registry lock held] */
TsiArena* tsi_registry_hold_after(uint64_t serial);
/* Keeps the allocator whose table of domains includes the address `record`, which is not read, from being destroyed
 * until tsi_registry_unhold. Returns its arena, or NULL, with nothing held, if no living one has it. O(allocators)
 * [any thread, no registry lock held] */
TsiArena* tsi_registry_hold_domain(const void* record);
/* Returns the arenas one after the other, one at each call, and moves *at, 0 before the first call, behind it; NULL
 * after the last. The lock is held from the first call to the last use of what it returns. [registry lock held] */
TsiArena* tsi_registry_next(uint32_t* at);

/* Finds the calling thread's binding in the arena, makes it if `make` and there is none, and puts it at hand: sets
 * tsi_tls.binding and .serial, and the thread's `owner` to the allocator, or to TSI_NO_OWNER if a->none_at_hand.
 * Returns it; NULL, with what is at hand unchanged, if there is none, or without memory.
 * [own thread, no registry lock held] */
TsiBinding* tsi_binding_find(TsiArena* a, bool make);
/* Returns a new binding of no thread, for a bank (bank.h), or NULL without memory. [bank held] */
TsiBinding* tsi_binding_of_nobody(TsiArena* a);
/* Returns this thread's binding in the arena, made if `make`; NULL if it has none or without memory.
 * [own thread, needs no lock] */
TSI_INLINE TsiBinding* tsi_binding_get(TsiArena* a, bool make) {
    return TSI_LIKELY(tsi_tls.serial == a->serial) ? tsi_tls.binding : tsi_binding_find(a, make);
}
/* Sets the function that is called with a thread's record as the thread exits. Without a key of the system's threads it
 * is never called; no error is told. [once per process] */
void tsi_registry_at_exit(void (*fn)(void*));
/* Gives back the record of the calling thread, which has left every arena, and unmaps its tables of bindings and
 * scopes; tsi_tls has no record, binding and allocator at hand afterwards. Pages of the table of threads may go to the
 * system. [own thread, no registry lock held] */
void tsi_thread_give(TsiThread* thread);
/* Gives back the records of all other threads, which have vanished. Arrays outside of these stay mapped, as they may
 * have been about to grow; bindings are the caller's to clear. [fork child] */
void tsi_registry_child(void);
/* Gives pages of free records back to the system: with `all`, all of those of exited threads and of the arena's free
 * bindings; otherwise of bindings alone, if more are free than are worth keeping. Counters of bindings whose pages go
 * move to the arena, so that sums stay. [any thread, no lock held] */
void tsi_registry_tidy(TsiArena* a, bool all);
/* Makes an arena's table of at most `capacity` bindings in the ground, which has tsi_bindings_room for it, and sets the
 * functions by which counters of bindings whose pages go move to the arena. *table is the arena's own.
 * [no other user] */
void tsi_bindings_init(TsiTable* table, TsiGround* ground, uint32_t capacity);
/* Returns the bytes of a ground that an arena's table of bindings takes. [any thread, needs no lock] */
size_t tsi_bindings_room(uint32_t capacity);
/* Allocators destroyed so far: their scopes may be on any thread's stack. */
extern _Atomic uint64_t tsi_registry_removals;
/* Drops scopes of destroyed allocators from the top of the thread's stack of scopes; those under a living one stay
 * until they reach the top. Sets seen_removals to `removals`, tsi_registry_removals as just read, unless such ones are
 * left. [own thread, no registry lock held] */
void tsi_scopes_refresh_slow(TsiThread* thread, uint64_t removals);
/* Calls tsi_scopes_refresh_slow, which drops scopes of destroyed allocators from the top of the thread's stack, if an
 * allocator was destroyed since that was last done with none left. [own thread, no registry lock held] */
TSI_INLINE void tsi_scopes_refresh(TsiThread* thread) {
    uint64_t now = tsi_load_relaxed(&tsi_registry_removals);
    if (TSI_UNLIKELY(thread->seen_removals != now)) tsi_scopes_refresh_slow(thread, now);
}
/* Doubles the room for the thread's scopes, which keep their order but move: pointers into thread->scopes are stale.
 * Returns false, with the old room left, without memory. [own thread, needs no lock] */
bool tsi_scopes_grow(TsiThread* thread);
/* Returns who counts as the maker of objects that the thread makes outside of its phases: the label of its innermost
 * scope of b's arena, record index + 1. Returns 0 if there is no scope, if the scope's phase has ended, or if the scope
 * borrows the ring's current epoch, outside of which nothing is made. [own thread, needs no lock] */
uint32_t tsi_scope_maker(const TsiBinding* b);

/* Returns the scopes inside of a domain's own incarnation; set by the domain layer. */
extern uint32_t (*tsi_domain_scopes)(const TsiArena*, uint32_t domain, TsiRef ref);

#endif
