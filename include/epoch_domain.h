/*
 * epoch_domain.h - scopes bound to an epoch.
 *
 * A domain made by epoch_domain_create has an epoch of its own: objects allocated while it is entered end with it. A
 * domain made by epoch_domain_wrap borrows a ring epoch and drains it.
 *
 * Thread safety: any thread may enter, several at once; enter/exit pairs belong to one thread and nest in LIFO order,
 * without a limit and across allocators. Misuse (exit out of order or without enter, destroy while entered, a stale
 * era, a domain that is gone) is refused and counted, never an abort; NULL is refused. Calls that return bool say
 * whether they took effect. After false nothing has changed (but see epoch_domain_end), slab_last_error() has the
 * reason, and errno is EINVAL (NULL, or the thread is not where the call needs it), EBUSY (another thread or scope is
 * inside), ESTALE (the domain was destroyed or has ended, or the ring has moved past the epoch that it borrows) or
 * ENOMEM. A call that succeeds changes neither. A cleanup that ends, resets or enters the domain that is being ended is
 * refused. Complexity: O(1), plus O(slabs of the epoch) where a phase ends. Conventions as slab_alloc.h.
 *
 * Five ways to end a phase
 *   epoch_domain_end          leaves the scope, releases its objects, and the domain is gone
 *   epoch_domain_end_ex       the same with a receipt, all of it or nothing
 *   epoch_domain_exit         leaves the scope; the last one out releases, and the domain can be entered again
 *   epoch_domain_reset        releases and goes on in a fresh incarnation: a frame loop
 *   epoch_domain_drain        keeps live objects valid; each goes back as it is freed. A live object keeps its page:
 *                             move objects that must outlive the phase (slab_move_outside)
 * Calls that end it by its domain, id or era while the thread is elsewhere: epoch_domain_destroy,
 * epoch_domain_force_close, epoch_close_ex, epoch_close_era.
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

/* Makes a domain with an epoch of its own; auto_close is true. Returns NULL with ENOMEM when records run out (about
 * 262,000 at once; fewer with a smaller reservation); slab_last_error() has the reason. Domains that their makers are
 * still inside of as they exit stay, the last 256 of them, if nobody uses them. O(1). */
SLAB_API epoch_domain_t* epoch_domain_create(SlabAllocator* a);
/* Makes a domain like epoch_domain_create, with a label (31 bytes, copied, NULL for none). */
SLAB_API epoch_domain_t* epoch_domain_create_labeled(SlabAllocator* a, const char* label);
/* How epoch_domain_create_ex makes a domain. Set struct_size to sizeof(SlabDomainOptions), and fields that are not
 * wanted to 0. */
typedef struct SlabDomainOptions {
    size_t struct_size;
    const char* label; /* 31 bytes, copied, NULL for none */
    uint32_t flags;    /* SLAB_DOMAIN_... */
    uint32_t reserved_;
    uint64_t soft_bytes, hard_bytes; /* budget of each of its epochs, see slab_epoch_set_budget; 0 for none */
    SlabBudgetFn budget_fn;          /* may be NULL */
    void* budget_ctx;
} SlabDomainOptions;
/* No exit ends it: destroy, end, drain, reset or force_close does. */
#define SLAB_DOMAIN_KEEP 1u
/* The domain belongs to its maker's thread alone. Other threads are refused (EBUSY, one misuse counted) when they
 * allocate in it, enter, attach, reset or end it, in whatever way, by its id and era, too; its epochs cannot be
 * borrowed. Other threads may free its objects; their trims pass it by. When the thread exits the phase is released,
 * and so it is in a fork child without that thread; any thread may then destroy or use the domain. */
#define SLAB_DOMAIN_OWNER_ONLY 2u
/* Its phases have no age, are no leak however long they live, and are in no histogram of durations: no clock is read as
 * they begin, nor when epoch_domain_destroy and epoch_domain_end end them by the shortest way. A receipt still says how
 * long the end took. */
#define SLAB_DOMAIN_UNTIMED 4u
/* Makes a domain with an epoch of its own by options. Returns NULL with EINVAL for NULL, for a struct_size that is too
 * small, for options of a later version that are not 0, for unknown flags, and for a soft budget over the hard one;
 * with ENOMEM like epoch_domain_create. Each incarnation that the domain opens has the budget and the flags. A phase
 * with a budget does not begin and end by the shortest way. [any thread] O(1). */
SLAB_API epoch_domain_t* epoch_domain_create_ex(SlabAllocator* a, const SlabDomainOptions* options);
/* Makes a domain over the incarnation that a ring id names now. With auto_close its last exit
 * drains that incarnation, if the id still names it and no other domain is inside. */
SLAB_API epoch_domain_t* epoch_domain_wrap(SlabAllocator* a, EpochId epoch, bool auto_close);
/* Makes the domain the innermost scope of this thread. Entering an ended domain with an epoch of its own opens a fresh
 * incarnation under the same label. Returns false, and has not entered, with EINVAL, ESTALE, or ENOMEM for a record or
 * a scope. */
SLAB_API bool epoch_domain_enter(epoch_domain_t* d);
/* Leaves the innermost scope, d. With auto_close the last exit releases an epoch of its own and drains a borrowed one.
 * Returns false, and has not left, if d is not this thread's innermost scope (EINVAL) or is gone (ESTALE). */
SLAB_API bool epoch_domain_exit(epoch_domain_t* d);
/* Ends the domain. Releases an epoch of its own; drains a borrowed one with auto_close that was entered if its last
 * exit could not (another scope was inside), and otherwise leaves it alone. Returns false, and d stays, if a thread is
 * inside or a scope is detached (EBUSY), or d is gone (ESTALE). */
SLAB_API bool epoch_domain_destroy(epoch_domain_t* d);
/* Releases the epoch now. Returns false, and has done nothing, if a thread is inside (EBUSY) or the era no longer
 * matches (ESTALE). */
SLAB_API bool epoch_domain_force_close(epoch_domain_t* d);
/* Makes a labeled domain and enters it. Returns NULL with errno and slab_last_error on failure. */
SLAB_API epoch_domain_t* epoch_domain_begin(SlabAllocator* a, const char* label);
/* Leaves the innermost scope, d, and destroys the domain, in one step: of several threads that end d at once the last
 * one destroys it. Returns false if d is not this thread's innermost scope, and leaves d as it was (EINVAL; ESTALE when
 * it is gone), or if others are inside: then only the scope was left (EBUSY). Either way one misuse is counted. */
SLAB_API bool epoch_domain_end(epoch_domain_t* d);
/* Leaves the innermost scope, d, ends the domain and writes the receipt of that end to *out (may be NULL): all of it or
 * nothing. Refused, returning false with d as it was, unless d is the innermost scope of this thread and no other scope
 * is inside, detached ones included. Releases an epoch of its own, also when auto_close is false; drains a borrowed one
 * where epoch_domain_exit would. Where a borrowed epoch goes on, *out is that of epoch_domain_receipt, or all 0 but for
 * its version. EINVAL, EBUSY, ESTALE. */
SLAB_API bool epoch_domain_end_ex(epoch_domain_t* d, EpochReceipt* out);
/* Destroys like epoch_domain_destroy and writes the receipt of the end to *out (may be NULL), like epoch_domain_end_ex;
 * where the domain has ended already, that of its last end. Returns false, refused, with d as it was, if a thread is
 * inside (EBUSY) or d is gone (ESTALE). */
SLAB_API bool epoch_domain_destroy_ex(epoch_domain_t* d, EpochReceipt* out);

/* Amounts that a domain holds now. Set struct_size to sizeof(SlabDomainStats). */
typedef struct SlabDomainStats {
    size_t struct_size;
    EpochId epoch_id;         /* of the phase that is open */
    uint64_t epoch_era;       /* of the phase that is open */
    uint64_t live_objects;    /* allocated and not freed, by all threads */
    uint64_t live_bytes;      /* usable bytes of the live objects */
    uint64_t committed_bytes; /* of its slabs and large objects, used or not: what budgets limit */
    uint64_t slabs;           /* large objects among them */
} SlabDomainStats;
/* Fills *out, for admission control: "may this request have more?". Exact while no thread allocates or frees in the
 * phase; otherwise objects that come or go meanwhile may be missed. Interrupts no thread, and does not slow the phase's
 * end. Returns false, and leaves *out as it was, if struct_size is too small (EINVAL), or the domain has no phase open
 * (ESTALE; no misuse is counted) or was destroyed. [any thread] O(slabs of the phase), plus a byte read for each 16 of
 * regions in which objects were freed; ends of other phases may wait for it. */
SLAB_API bool epoch_domain_stats(epoch_domain_t* d, SlabDomainStats* out);
/* Ends the domain by draining its epoch: no allocation that begins afterwards succeeds in it, live objects stay valid
 * until they are freed (by any thread, by slab_free), and the free that leaves a slab without one returns it. d is gone
 * when the call returns; the epoch can still be reached by its era (epoch_close_era), and its cleanups run when it is
 * empty. Call it on the thread whose innermost scope is d, which is left, or when nobody is inside. Writes the receipt
 * to *out (may be NULL): objects_escaped are those that live on; where the domain has ended already, the receipt is
 * that of the last end. Returns false, refused, with d as it was, if another scope is inside of d or of another domain
 * of the epoch that d borrows (EBUSY), or if the ring has moved past that epoch (ESTALE). O(slabs of the epoch). */
SLAB_API bool epoch_domain_drain(epoch_domain_t* d, EpochReceipt* out);
/* Returns the innermost domain of this thread, of any allocator; NULL if there is none, or an outer scope is
 * innermost. */
SLAB_API epoch_domain_t* epoch_domain_current(void);
/* Enters an outer scope: until slab_scope_outer_leave, allocations of this thread without an epoch go to the ring's
 * current epoch, wherever the ring moves to, whatever domains the thread is inside of. For a cache that is filled, or a
 * global that is made, in the middle of a request. Nests: domains may be entered inside of it, scopes are left in
 * reverse order, a thread's exit and a fork treat it like others. Returns false with EINVAL for NULL, ENOMEM. O(1). */
SLAB_API bool slab_scope_outer(SlabAllocator* a);
/* Leaves the innermost scope, an outer one. Returns false with EINVAL, counts a refusal and changes nothing if that is
 * not an outer scope of the allocator. O(1). */
SLAB_API bool slab_scope_outer_leave(SlabAllocator* a);
/* Returns the allocator of the innermost domain; NULL if there is none. */
SLAB_API SlabAllocator* epoch_domain_allocator(void);
/* Allocates in the domain's incarnation, whatever scope the thread is in. Returns NULL with ESTALE if that has ended or
 * the domain was destroyed. In all else this call and those below act like slab_malloc, slab_calloc and
 * slab_realloc_epoch. */
SLAB_API void* epoch_domain_malloc(epoch_domain_t* d, size_t size) SLAB_ALLOC_SIZE(2);
/* Allocates a zeroed array in the domain's incarnation. */
SLAB_API void* epoch_domain_calloc(epoch_domain_t* d, size_t n, size_t size) SLAB_ALLOC_ARRAY(2, 3);
/* Resizes any object of d's allocator. A block that has to move goes to the domain, and so does a new one (p NULL).
 * Size 0 frees and returns NULL, also when the domain has ended; any other size then gives ESTALE, and the block stays
 * as it is. O(size) when it copies. */
SLAB_API void* epoch_domain_realloc(epoch_domain_t* d, void* p, size_t size) SLAB_REALLOC_SIZE(3);
/* Allocates an aligned object in the domain's incarnation; alignment is a power of two up to 1 GiB. */
SLAB_API void* epoch_domain_aligned_alloc(epoch_domain_t* d, size_t alignment, size_t size) SLAB_ALLOC_ALIGNED(2, 3);
/* Allocates an object in the domain's incarnation and writes its handle to *out (0 on failure; out may be NULL), like
 * alloc_obj_epoch, but of any size and alignment: a power of two up to 1 GiB (up to 16 changes nothing). */
SLAB_API void* epoch_domain_alloc_obj(epoch_domain_t* d, size_t size, size_t alignment, SlabHandle* out)
    SLAB_ALLOC_SIZE(2);
/* Moves a live object of the allocator of `to` into that domain, like slab_move_outside moves it to the ring: a query's
 * result into its transaction. Returns the new object, or p if it is in the domain's incarnation already; NULL with
 * errno, and leaves p as it was, if it failed: ESTALE if that incarnation, or p's phase, has ended. O(size). */
SLAB_API void* epoch_domain_move(epoch_domain_t* to, void* p) SLAB_ALLOC;
/* Act like slab_strdup, slab_strndup, slab_memdup and slab_asprintf, in the domain's incarnation. */
SLAB_API char* epoch_domain_strdup(epoch_domain_t* d, const char* text) SLAB_ALLOC;
SLAB_API char* epoch_domain_strndup(epoch_domain_t* d, const char* text, size_t n) SLAB_ALLOC;
SLAB_API void* epoch_domain_memdup(epoch_domain_t* d, const void* p, size_t n) SLAB_ALLOC_SIZE(3);
SLAB_API char* epoch_domain_asprintf(epoch_domain_t* d, const char* format, ...) SLAB_ALLOC SLAB_FORMAT(2, 3);
/* Registers fn(arg) to run when the domain's incarnation ends, like slab_epoch_on_end. Returns false if it has ended
 * (ESTALE), memory is short (ENOMEM), or fn is NULL (EINVAL). */
SLAB_API bool epoch_domain_on_end(epoch_domain_t* d, void (*fn)(void* arg), void* arg);
/* Writes the receipt of the incarnation that ended last to *out. Returns false if none has ended, or out is NULL
 * (EINVAL). */
SLAB_API bool epoch_domain_receipt(epoch_domain_t* d, EpochReceipt* out);
/* Releases all objects and starts a fresh incarnation under the same label: the frame loop. Returns false, and has done
 * nothing, for a borrowed domain (EINVAL), if another scope is inside, of another thread or detached (EBUSY), while the
 * domain is being ended (ESTALE), and without a record (ENOMEM). */
SLAB_API bool epoch_domain_reset(epoch_domain_t* d);
/* Takes the scope of d off the top of this thread's stack without ending it; refcount stays. Returns false if d is not
 * the innermost (EINVAL). */
SLAB_API bool epoch_domain_detach(epoch_domain_t* d);
/* Puts a detached scope of d on this thread's stack; once per detach. Returns false if none is detached (EINVAL), or
 * ENOMEM. */
SLAB_API bool epoch_domain_attach(epoch_domain_t* d);
/* Replaces the innermost scope of this thread by one of `to`; for executors, in place of a detach and an attach. Takes
 * the innermost scope off the stack like epoch_domain_detach and puts a detached scope of `to` there, or, if nobody is
 * inside of `to`, a new one like epoch_domain_enter. `to` NULL: puts none there. Changes nothing if `to` is the
 * innermost domain. *from (may be NULL) becomes the domain of the scope that was taken off, or NULL. Returns false, and
 * has changed nothing, if scopes of `to` are inside and none is detached (EINVAL), if `to` is gone or the ring has
 * moved past the epoch that it borrows (ESTALE), or ENOMEM. */
SLAB_API bool epoch_domain_switch(epoch_domain_t* to, epoch_domain_t** from);
/* Returns the era of the incarnation that the domain has, or had last; other threads may open and end it meanwhile. 0
 * for NULL and for a domain that is gone. */
SLAB_API uint64_t epoch_domain_era(const epoch_domain_t* d);

#if defined(__GNUC__)
/* Ends the domain of SLAB_SCOPE, if it was begun. */
static inline void slab_scope_end_(epoch_domain_t* const* d) {
    if (*d != NULL) (void)epoch_domain_end(*d);
}
#define SLAB_SCOPE_JOIN_(a, b) a##b
#define SLAB_SCOPE_NAME_(line) SLAB_SCOPE_JOIN_(slab_scope_, line)
/* Declares a scope: begins a domain (epoch_domain_begin) that ends at the closing brace of the block, however that is
 * left except by longjmp, exit and, without -fexceptions, the end of the thread. epoch_domain_current() is the domain.
 * If it could not be begun, slab_last_error() says why, and the block goes on in the scope around it. At most one on a
 * line. Needs the cleanup attribute of gcc and clang. */
#define SLAB_SCOPE(a, label)                                                                             \
    epoch_domain_t* const SLAB_SCOPE_NAME_(__LINE__) __attribute__((cleanup(slab_scope_end_), unused)) = \
        epoch_domain_begin((a), (label))
#endif

#ifdef __cplusplus
}
#endif
#endif
