/*
 * registry.h - the process: its allocators and its threads.
 *
 * The registry maps live serials to arenas and lists the threads that have used one. Serials are
 * never reused, so a thread's cached binding of a destroyed arena is recognised without touching
 * it. Records of threads that have exited are used again, or their pages go back.
 *
 * Each thread keeps a stack of domain scopes, across all arenas. Only its own thread touches it.
 *
 *   A1  A scope or a binding that a thread keeps is of an arena, or of one of its domains, only if the serials are
 *       equal. Equal addresses prove nothing: storage, arenas and records of domains lie where those of a destroyed
 *       allocator lay.
 *   A2  TsiThread.owner alone is compared by address. The end of an allocator takes it out of all records, before its
 *       address can be another's.
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
    /* Whose calls may use the thread's `binding` without a further look: the arena's allocator, by address, or
     * TSI_NO_OWNER. An allocator that is destroyed is taken out here in all records (not in the threads' own storage: a
     * thread that used its first allocator in its last round of destructors has gone without a word), so that one which
     * is made at its address matches nobody. */
    _Atomic(SlabAllocator*) owner;
    TsiBindingRef* refs;              /* open addressing by serial; own thread only, like all below */
    uint32_t ref_count, ref_capacity; /* capacity: a power of two */
    TsiScope* scopes;
    uint32_t scope_count, scope_capacity;
    bool owns;              /* it has made domains that are its alone */
    uint64_t seen_removals; /* of tsi_registry_removals */
    TsiArena* held;         /* the arena that the exiting thread is leaving, or NULL */
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
    TsiBank* bank; /* that it holds, or NULL; then `binding` is the bank's, and this its own: */
    TsiBinding* own;
    TsiCaller caller; /* of the allocation that left the fast path last */
    uint8_t telling;  /* bits TSI_TELLS_...: functions of the program that the thread is inside of */
    uint8_t error;    /* enum SlabError: why the thread's last call was refused */
    uint64_t number;  /* of `thread`, until it leaves, else 0: read by programs, see api/lane.c */
} TsiTls;

/* A function that is told of budgets, or of misuse, is not called again on the thread while it runs: what it does
 * itself would tell it without end. */
enum { TSI_TELLS_BUDGET = 1, TSI_TELLS_MISUSE = 2 };

/* Own thread: no binding is at hand any more. */
void tsi_tls_forget(void);

/* By a fixed distance from the thread's pointer, whatever the flags; a build with descriptors leaves it to them. */
#ifdef TSI_TLS_DESCRIPTORS
#define TSI_TLS_MODEL
#else
#define TSI_TLS_MODEL __attribute__((tls_model("initial-exec")))
#endif

extern TsiThread tsi_no_thread;
extern _Thread_local TsiTls tsi_tls TSI_TLS_MODEL;
extern TsiLock tsi_registry_lock;

/* Makes room for what the process keeps; before anything of an arena. False when the system refuses. */
bool tsi_registry_open(void);
/* Makes an arena known; false when a slot or memory is missing. Gives it its serial. */
bool tsi_registry_add(TsiArena* a);
/* Forgets it and waits for threads that are leaving it. */
void tsi_registry_remove(TsiArena* a);
/* The allocators that live now. */
uint32_t tsi_registry_count(void);
/* Keeps the arena with this serial from being destroyed until unhold; NULL when it is gone. */
TsiArena* tsi_registry_hold(uint64_t serial);
void tsi_registry_unhold(TsiArena* a);
/* As tsi_registry_hold, of the allocator with the next serial; NULL when there is none. O(allocators) */
TsiArena* tsi_registry_hold_after(uint64_t serial);
/* The same of the one among whose domains the address lies. */
TsiArena* tsi_registry_hold_domain(const void* record);
/* The arenas, one after the other from *at = 0 on; NULL after the last. Registry lock held. */
TsiArena* tsi_registry_next(uint32_t* at);

TsiBinding* tsi_binding_find(TsiArena* a, bool make);
/* A binding of no thread, for a bank (bank.h); NULL without memory. */
TsiBinding* tsi_binding_of_nobody(TsiArena* a);
/* This thread's binding in the arena, made when `make`; NULL otherwise or without memory. */
TSI_INLINE TsiBinding* tsi_binding_get(TsiArena* a, bool make) {
    return TSI_LIKELY(tsi_tls.serial == a->serial) ? tsi_tls.binding : tsi_binding_find(a, make);
}
/* What is called with a thread's record as the thread exits. Once per process. */
void tsi_registry_at_exit(void (*fn)(void*));
/* The calling thread's record goes back: it has left every arena. */
void tsi_thread_give(TsiThread* t);
/* In a fork child: the other threads are gone. */
void tsi_registry_child(void);
/* Pages of records of threads that have exited, and of an arena's bindings: all, or what is more than is worth keeping.
 * Counters of bindings go to the arena. No lock held. */
void tsi_registry_tidy(TsiArena* a, bool all);
/* An arena's table of bindings. */
void tsi_bindings_init(TsiTable* t, TsiGround* g, uint32_t capacity);
size_t tsi_bindings_room(uint32_t capacity);
/* Allocators destroyed so far: scopes of theirs may be on any thread's stack. */
extern _Atomic uint64_t tsi_registry_removals;
/* Drops scopes of destroyed allocators from the top of the stack; those under a living one go when they come to
 * the top. Own thread. */
void tsi_scopes_refresh_slow(TsiThread* t, uint64_t removals);
TSI_INLINE void tsi_scopes_refresh(TsiThread* t) {
    uint64_t now = tsi_load_relaxed(&tsi_registry_removals);
    if (TSI_UNLIKELY(t->seen_removals != now)) tsi_scopes_refresh_slow(t, now);
}
/* Makes room for one more scope; false without memory. */
bool tsi_scopes_grow(TsiThread* t);
/* Whose is what the thread makes outside of its phases: the label of its innermost scope of this arena, record + 1; 0
 * without a scope, and where that borrows the ring's current epoch: nothing is outside of it. Own thread. */
uint32_t tsi_scope_maker(const TsiBinding* b);

/* Set by the domain layer: scopes inside of a domain's own incarnation. */
extern uint32_t (*tsi_domain_scopes)(const TsiArena*, uint32_t domain, TsiRef ref);

#endif
