/*
 * epoch_domain.h - scopes bound to an epoch.
 *
 * A domain made by epoch_domain_create has an epoch of its own: what is allocated while it is
 * entered ends with it. A domain made by epoch_domain_wrap borrows a ring epoch and drains it.
 *
 * Thread safety: any thread may enter, several at once; enter/exit pairs belong to one thread and
 * nest in LIFO order, without a limit and across allocators. Misuse (exit out of order or without
 * enter, destroy while entered, a stale era, a domain that is gone) is refused and counted, never an abort;
 * NULL is refused. Calls that give bool say whether they did what they are for. False: nothing was done (but see
 * epoch_domain_end), slab_last_error() has the reason, and errno is EINVAL (NULL, or the thread is not where the call
 * needs it), EBUSY (somebody else is inside), ESTALE (the domain was destroyed or has ended, or the ring has moved
 * past the epoch that it borrows) or ENOMEM. A call that succeeds leaves both alone. A cleanup that ends, resets or
 * enters the domain that is being ended is refused. Complexity: O(1), plus O(slabs of the epoch) where a phase ends.
 * Conventions as slab_alloc.h.
 *
 * Five ways to end a phase
 *   epoch_domain_end          leaves the scope, releases what was allocated, and the domain is gone
 *   epoch_domain_end_ex       the same with a receipt, all of it or nothing
 *   epoch_domain_exit         leaves the scope; the last one out releases, and the domain can be entered again
 *   epoch_domain_reset        releases and goes on in a fresh incarnation: a frame loop
 *   epoch_domain_drain        keeps live objects valid; each goes back as it is freed. An object that stays holds the
 *                             page that it lies in: move what is to outlive the phase (slab_move_outside)
 * Others end it by its domain, id or era while the thread is elsewhere: epoch_domain_destroy, epoch_domain_force_close,
 * epoch_close_ex, epoch_close_era.
 */
#ifndef EPOCH_DOMAIN_H
#define EPOCH_DOMAIN_H

#include "slab_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A domain. Owned by the library from create/wrap to destroy. The fields may be read; refcount is
 * updated atomically and is a hint; auto_close may be set before the first enter. */
typedef struct epoch_domain {
    SlabAllocator* alloc;
    EpochId epoch_id;   /* for slab_malloc_epoch(d->alloc, n, d->epoch_id) */
    uint64_t epoch_era; /* incarnation the domain is bound to */
    uint32_t refcount;  /* scopes inside now */
    bool auto_close;    /* end the epoch when the last scope leaves */
    uint64_t private_[6];
} epoch_domain_t;

/* Makes a domain with an epoch of its own; auto_close is true. NULL and errno ENOMEM when records
 * run out (about 262,000 at once; fewer with a smaller reservation); slab_last_error() has the reason. Of those that
 * their makers are still inside of as they exit the last 256 stay, if nobody uses them. O(1). */
SLAB_API epoch_domain_t* epoch_domain_create(SlabAllocator* a);
/* Same with a label (31 bytes, copied, NULL for none). */
SLAB_API epoch_domain_t* epoch_domain_create_labeled(SlabAllocator* a, const char* label);
/* How epoch_domain_create_ex makes a domain. Set struct_size to sizeof(SlabDomainOptions), and all that is not wanted
 * to 0. */
typedef struct SlabDomainOptions {
    size_t struct_size;
    const char* label; /* 31 bytes, copied, NULL for none */
    uint32_t flags;    /* SLAB_DOMAIN_... */
    uint32_t reserved_;
    uint64_t soft_bytes, hard_bytes; /* budget of each of its epochs, as slab_epoch_set_budget; 0 for none */
    SlabBudgetFn budget_fn;          /* may be NULL */
    void* budget_ctx;
} SlabDomainOptions;
/* No exit ends it: destroy, end, drain, reset or force_close does. */
#define SLAB_DOMAIN_KEEP 1u
/* It is its maker's thread's alone: others are refused (EBUSY, one misuse counted) when they allocate in it, enter,
 * attach, reset or end it, in whatever way, by its id and era, too; nobody may borrow its epochs. They may free its
 * objects. A trim by another thread passes it by. When that thread exits the phase is released, and in a fork child
 * that the thread is not in; the domain is then anybody's to destroy or to use. */
#define SLAB_DOMAIN_OWNER_ONLY 2u
/* Its phases have no age, are no leak however long they live, and are in no histogram of durations: no clock is read
 * as they begin, nor as destroy and end end them by the shortest way. A receipt still says how long the end took. */
#define SLAB_DOMAIN_UNTIMED 4u
/* Makes a domain with an epoch of its own by options. NULL and EINVAL for NULL, for a struct_size that is too small,
 * for options of a later version that are not 0, for flags that there are not, and for a soft budget over the hard one;
 * ENOMEM as epoch_domain_create. Each incarnation that it opens has the budget and the flags. A phase with a budget
 * does not begin and end by the shortest way. O(1), from any thread. */
SLAB_API epoch_domain_t* epoch_domain_create_ex(SlabAllocator* a, const SlabDomainOptions* options);
/* Makes a domain over the incarnation that a ring id names now. With auto_close its last exit
 * drains that incarnation, if the id still names it and no other domain is inside. */
SLAB_API epoch_domain_t* epoch_domain_wrap(SlabAllocator* a, EpochId epoch, bool auto_close);
/* Makes the domain the innermost scope of this thread. Entering an ended domain of its own opens a
 * fresh incarnation under the same label. False, and not entered: EINVAL, ESTALE, or ENOMEM for a record or a
 * scope. */
SLAB_API bool epoch_domain_enter(epoch_domain_t* d);
/* Leaves the innermost scope. The last exit of a domain of its own with auto_close releases it;
 * of a borrowed one, drains. False, and not left: d is not this thread's innermost scope (EINVAL), or gone (ESTALE). */
SLAB_API bool epoch_domain_exit(epoch_domain_t* d);
/* Ends the domain; its own epoch is released; a borrowed one with auto_close that was entered is drained
 * if its last exit could not (somebody else was inside), else left as it is. False, and d stays: somebody
 * is inside, or a scope is detached (EBUSY); or it is gone (ESTALE). */
SLAB_API bool epoch_domain_destroy(epoch_domain_t* d);
/* Releases the epoch now. False, and nothing done: somebody is inside (EBUSY), or the era does not match any more
 * (ESTALE). */
SLAB_API bool epoch_domain_force_close(epoch_domain_t* d);
/* create_labeled + enter. NULL, errno and slab_last_error on failure. */
SLAB_API epoch_domain_t* epoch_domain_begin(SlabAllocator* a, const char* label);
/* exit + destroy, in one step: of several threads that end d at once the last one destroys it. False: d is not this
 * thread's innermost scope, and is as it was (EINVAL; ESTALE when it is gone); or others are inside, and the scope was
 * left, without more (EBUSY). Either way one misuse is counted. */
SLAB_API bool epoch_domain_end(epoch_domain_t* d);
/* exit + receipt + destroy, all of it or nothing: d is the innermost scope of this thread and nobody else is inside, no
 * detached scope either; else false, refused, and d is as it was. An epoch of its own is released, also when auto_close
 * is false; a borrowed one is drained where epoch_domain_exit would drain it. *out (may be NULL) is the receipt of that
 * end; where a borrowed epoch goes on, what epoch_domain_receipt has, else all 0 but for its version. EINVAL, EBUSY,
 * ESTALE. */
SLAB_API bool epoch_domain_end_ex(epoch_domain_t* d, EpochReceipt* out);
/* epoch_domain_destroy with the receipt of the end: nobody is inside, else false, refused, and d is as it was (EBUSY;
 * ESTALE). *out (may be NULL) as for epoch_domain_end_ex; where the domain has ended already, that of its last end. */
SLAB_API bool epoch_domain_destroy_ex(epoch_domain_t* d, EpochReceipt* out);

/* What a domain holds now. Set struct_size to sizeof(SlabDomainStats). */
typedef struct SlabDomainStats {
    size_t struct_size;
    EpochId epoch_id;         /* of the phase that is open */
    uint64_t epoch_era;       /* of the phase that is open */
    uint64_t live_objects;    /* allocated and not freed, by all threads */
    uint64_t live_bytes;      /* usable bytes of those */
    uint64_t committed_bytes; /* of its slabs and large objects, used or not: what budgets limit */
    uint64_t slabs;           /* large objects among them */
} SlabDomainStats;
/* Fills *out, for admission control: "may this request have more?". Exact while no thread allocates or frees in the
 * phase; beside threads that do, objects that come or go meanwhile may be missed. From any thread; it interrupts none,
 * and a phase that is asked about ends as fast as any. False, and *out is as it was, for a struct_size that is too
 * small (EINVAL), and when the domain has no phase open (ESTALE; no misuse is counted) or was destroyed. O(slabs of the
 * phase), plus a byte read for each 16 of regions in which objects were freed; ends of other phases may wait for it. */
SLAB_API bool epoch_domain_stats(epoch_domain_t* d, SlabDomainStats* out);
/* Ends the domain by draining its epoch: no allocation that begins afterwards succeeds in it, live objects stay valid
 * until they are freed (by any thread, by slab_free), and the free that leaves a slab without one returns it. d is gone
 * when the call returns; the epoch can still be reached by its era (epoch_close_era), and its cleanups run when it is
 * empty. Called by the thread whose innermost scope d is, which is left, or when nobody is inside. *out (may be NULL)
 * is the receipt: objects_escaped is what lives on. Where the domain has ended already it is that of the last end.
 * False, refused, and d is as it was: somebody else is inside (of d, or by another domain of the epoch that d borrows),
 * or d borrows an epoch that the ring has moved past. EBUSY, ESTALE. O(slabs of the epoch). */
SLAB_API bool epoch_domain_drain(epoch_domain_t* d, EpochReceipt* out);
/* Innermost domain of this thread, of any allocator; NULL when there is none, or an outer scope is innermost. */
SLAB_API epoch_domain_t* epoch_domain_current(void);
/* Until slab_scope_outer_leave, what this thread allocates without an epoch goes to the ring's current epoch, wherever
 * the ring moves to, whatever domains it is inside of: for a cache that is filled, or a global that is made, in the
 * middle of a request. A scope like others: it nests, domains may be entered inside of it, scopes are left in reverse
 * order, a thread's exit and a fork leave it as they leave others. False and EINVAL for NULL, ENOMEM. O(1). */
SLAB_API bool slab_scope_outer(SlabAllocator* a);
/* Leaves it. False, EINVAL and a refusal when the innermost scope of this thread is not an outer one of the allocator:
 * nothing has changed. O(1). */
SLAB_API bool slab_scope_outer_leave(SlabAllocator* a);
/* Allocator of the innermost domain; NULL when none. */
SLAB_API SlabAllocator* epoch_domain_allocator(void);
/* Allocates in the domain's incarnation, whatever scope the thread is in; ESTALE when that has ended, or the domain was
 * destroyed. What is not said of these calls is as with slab_malloc, slab_calloc and slab_realloc_epoch. */
SLAB_API void* epoch_domain_malloc(epoch_domain_t* d, size_t size) SLAB_ALLOC_SIZE(2);
/* A zeroed array there. */
SLAB_API void* epoch_domain_calloc(epoch_domain_t* d, size_t n, size_t size) SLAB_ALLOC_ARRAY(2, 3);
/* Resizes any object of d's allocator; one that has to move, and p NULL, goes to the domain. size 0 frees and returns
 * NULL, also when the domain has ended; else ESTALE then, and the block stays as it is. O(size) when it copies. */
SLAB_API void* epoch_domain_realloc(epoch_domain_t* d, void* p, size_t size) SLAB_REALLOC_SIZE(3);
/* An aligned object there; alignment is a power of two up to 1 GiB. */
SLAB_API void* epoch_domain_aligned_alloc(epoch_domain_t* d, size_t alignment, size_t size) SLAB_ALLOC_ALIGNED(2, 3);
/* An object there with its handle in *out (0 on failure; out may be NULL), as alloc_obj_epoch, of any size and
 * alignment: a power of two up to 1 GiB, of which up to 16 every object has. */
SLAB_API void* epoch_domain_alloc_obj(epoch_domain_t* d, size_t size, size_t alignment, SlabHandle* out)
    SLAB_ALLOC_SIZE(2);
/* Moves a live object of d's allocator into the domain, as slab_move_outside moves it to the ring: a query's result
 * into its transaction. Where it is in the domain's incarnation already p is returned. ESTALE when that, or p's phase,
 * has ended; NULL leaves p as it was. O(size). */
SLAB_API void* epoch_domain_move(epoch_domain_t* to, void* p) SLAB_ALLOC;
/* slab_strdup, slab_strndup, slab_memdup and slab_asprintf there. */
SLAB_API char* epoch_domain_strdup(epoch_domain_t* d, const char* text) SLAB_ALLOC;
SLAB_API char* epoch_domain_strndup(epoch_domain_t* d, const char* text, size_t n) SLAB_ALLOC;
SLAB_API void* epoch_domain_memdup(epoch_domain_t* d, const void* p, size_t n) SLAB_ALLOC_SIZE(3);
SLAB_API char* epoch_domain_asprintf(epoch_domain_t* d, const char* format, ...) SLAB_ALLOC SLAB_FORMAT(2, 3);
/* slab_epoch_on_end of the domain's incarnation. False when that has ended (ESTALE), when memory
 * is short (ENOMEM), and for fn NULL (EINVAL). */
SLAB_API bool epoch_domain_on_end(epoch_domain_t* d, void (*fn)(void* arg), void* arg);
/* Receipt of the incarnation that ended last; false when none has, or out is NULL (EINVAL). */
SLAB_API bool epoch_domain_receipt(epoch_domain_t* d, EpochReceipt* out);
/* Releases what is allocated and starts a fresh incarnation under the same label: the frame loop.
 * False (nothing done) for a borrowed domain (EINVAL), when another scope is inside, of another thread or detached
 * (EBUSY), while the domain is being ended (ESTALE), and without a record (ENOMEM). */
SLAB_API bool epoch_domain_reset(epoch_domain_t* d);
/* Takes the scope off the top of this thread's stack without ending it; refcount stays. False: d is not the
 * innermost (EINVAL). */
SLAB_API bool epoch_domain_detach(epoch_domain_t* d);
/* Puts a detached scope on this thread's stack; once per detach. False: none is detached (EINVAL), or ENOMEM. */
SLAB_API bool epoch_domain_attach(epoch_domain_t* d);
/* For executors, in place of a detach and an attach: takes the innermost scope of this thread off its stack, as
 * epoch_domain_detach does, and puts one of `to` there: a detached one, or, where nobody is inside of `to`, a new
 * one, as epoch_domain_enter does. to NULL: none. Where `to` is the innermost domain nothing changes. *from (may be
 * NULL) becomes the domain of the scope that was taken off, or NULL. False, and nothing has changed: scopes of `to`
 * are inside, and none is detached (EINVAL); it is gone, or the ring has moved past the epoch that it borrows
 * (ESTALE); or ENOMEM. */
SLAB_API bool epoch_domain_switch(epoch_domain_t* to, epoch_domain_t** from);
/* The era of the incarnation that the domain has, or had last; other threads may open and end it meanwhile. 0 for NULL
 * and for a domain that is gone. */
SLAB_API uint64_t epoch_domain_era(const epoch_domain_t* d);

#if defined(__GNUC__)
static inline void slab_scope_end_(epoch_domain_t* const* d) {
    if (*d != NULL) (void)epoch_domain_end(*d);
}
#define SLAB_SCOPE_JOIN_(a, b) a##b
#define SLAB_SCOPE_NAME_(line) SLAB_SCOPE_JOIN_(slab_scope_, line)
/* A declaration: begins a domain (epoch_domain_begin), which ends at the closing brace of the block, however that is
 * left but by longjmp, exit and, without -fexceptions, the end of the thread. epoch_domain_current() is the domain.
 * Where it could not be begun, slab_last_error() says why, and the block goes on in the scope around it. One to a
 * line. Needs the cleanup attribute of gcc and clang. */
#define SLAB_SCOPE(a, label)                                                                             \
    epoch_domain_t* const SLAB_SCOPE_NAME_(__LINE__) __attribute__((cleanup(slab_scope_end_), unused)) = \
        epoch_domain_begin((a), (label))
#endif

#ifdef __cplusplus
}
#endif
#endif
