/*
 * epoch_domain.h - scopes bound to an epoch.
 *
 * A domain made by epoch_domain_create has an epoch of its own: objects allocated while it is entered end with it. A
 * domain made by epoch_domain_wrap borrows a ring epoch and drains it.
 *
 * Thread safety: any thread may enter a domain, and several may be inside at the same time. Enter/exit pairs belong to
 * one thread and nest in LIFO order, without a limit and across allocators. Misuse (exit out of order or without enter,
 * destroy while entered, a stale era, a domain that is gone) is refused and counted; it never aborts the program. NULL
 * is refused. Calls that return bool say whether they took effect. If a call returns false, nothing has changed (but
 * see epoch_domain_end), and slab_last_error() gives the reason. Then errno is EINVAL for NULL or if the thread is not
 * where the call needs it, and EBUSY if another thread or scope is inside. If the domain was destroyed or has ended, or
 * the ring has moved past its borrowed epoch, errno is ESTALE; if memory runs out, errno is ENOMEM. A call that
 * succeeds changes neither errno nor that reason. A cleanup may not end, reset or enter the domain that is being ended:
 * the call is refused. Complexity: O(1), plus O(slabs of the epoch) where a phase ends. Conventions are as in
 * slab_alloc.h.
 *
 * Five ways to end a phase
 *   epoch_domain_end          leaves the scope, releases its objects and destroys the domain
 *   epoch_domain_end_ex       does the same and writes a receipt, or does nothing at all
 *   epoch_domain_exit         leaves the scope; the last exit releases the objects, and the domain can be entered again
 *   epoch_domain_reset        releases the objects and goes on in a fresh incarnation, as for a frame loop
 *   epoch_domain_drain        keeps live objects valid until they are freed. A live object keeps its page, so move
 *                             objects that must outlive the phase (slab_move_outside)
 * Calls that end a phase by its domain, id or era while the thread is elsewhere: epoch_domain_destroy,
 * epoch_domain_force_close, epoch_close_ex, epoch_close_era.
 */
#ifndef EPOCH_DOMAIN_H
#define EPOCH_DOMAIN_H

#include "slab_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A domain. The library owns it from create or wrap to destroy. The fields may be read. refcount is updated atomically
 * and is only a hint; auto_close may be set before the first enter. */
typedef struct epoch_domain {
    SlabAllocator* alloc;
    EpochId epoch_id;   /* for slab_malloc_epoch(d->alloc, n, d->epoch_id) */
    uint64_t epoch_era; /* incarnation the domain is bound to */
    uint32_t refcount;  /* scopes inside now */
    bool auto_close;    /* end the epoch when the last scope leaves */
    uint64_t private_[6];
} epoch_domain_t;

/* Makes a domain with an epoch of its own; auto_close is true. On failure, returns NULL, and slab_last_error() gives
 * the reason. errno is ENOMEM if records run out: there are about 262,000, and fewer with a smaller reservation. A
 * thread that exits inside a domain that it made leaves the domain behind for other threads. The last 256 domains left
 * behind stay; older ones are destroyed if no thread has used them since. O(1). */
SLAB_API epoch_domain_t* epoch_domain_create(SlabAllocator* a);
/* Makes a domain like epoch_domain_create, with a label, of which at most 31 bytes are copied; NULL means none. */
SLAB_API epoch_domain_t* epoch_domain_create_labeled(SlabAllocator* a, const char* label);
/* Options of epoch_domain_create_ex. Set struct_size to sizeof(SlabDomainOptions), and the fields that you do not need
 * to 0. */
typedef struct SlabDomainOptions {
    size_t struct_size;
    const char* label; /* 31 bytes, copied, NULL for none */
    uint32_t flags;    /* SLAB_DOMAIN_... */
    uint32_t reserved_;
    uint64_t soft_bytes, hard_bytes; /* budget of each of its epochs, see slab_epoch_set_budget; 0 for none */
    SlabBudgetFn budget_fn;          /* may be NULL */
    void* budget_ctx;
} SlabDomainOptions;
/* No exit ends the domain's epoch; only destroy, end, drain, reset and force_close do. */
#define SLAB_DOMAIN_KEEP 1u
/* The domain belongs to its maker's thread alone. Other threads are refused (EBUSY, one misuse counted) if they
 * allocate in it, enter, attach or reset it, or end it in any way, including by id or era. Its epochs cannot be
 * borrowed. Other threads may free its objects; their trims skip the domain. When the thread exits, the phase is
 * released; so it is in a fork child that does not have that thread. After that, any thread may use or destroy the
 * domain. */
#define SLAB_DOMAIN_OWNER_ONLY 2u
/* The domain's phases have no age, are never reported as leaks and are in no histogram of durations. No clock is read
 * when they begin, nor when epoch_domain_destroy and epoch_domain_end end them on the shortest path. A receipt still
 * says how long the end took. */
#define SLAB_DOMAIN_UNTIMED 4u
/* Makes a domain with an epoch of its own and the given options. Returns NULL and sets errno to EINVAL for NULL, a
 * struct_size that is too small, or a nonzero option of a later version. Unknown flags give EINVAL too, and so does a
 * soft budget over the hard one. Fails with ENOMEM like epoch_domain_create. Each incarnation that the domain opens has
 * the budget and the flags. A phase with a budget does not begin and end on the shortest path. [any thread] O(1). */
SLAB_API epoch_domain_t* epoch_domain_create_ex(SlabAllocator* a, const SlabDomainOptions* options);
/* Makes a domain over the incarnation that a ring id names now. With auto_close, the domain's last exit drains that
 * incarnation if the id still names it and no scope of another domain is inside. */
SLAB_API epoch_domain_t* epoch_domain_wrap(SlabAllocator* a, EpochId epoch, bool auto_close);
/* Makes the domain the innermost scope of this thread. Entering an ended domain with an epoch of its own opens a fresh
 * incarnation under the same label. On failure, returns false, does not enter, and sets errno to EINVAL, ESTALE, or
 * ENOMEM if there is no memory for a record or a scope. */
SLAB_API bool epoch_domain_enter(epoch_domain_t* d);
/* Leaves the innermost scope, which must be d. With auto_close, the last exit releases the domain's own epoch or drains
 * a borrowed one. Returns false and does not leave if d is not this thread's innermost scope (EINVAL) or is gone
 * (ESTALE). */
SLAB_API bool epoch_domain_exit(epoch_domain_t* d);
/* Destroys the domain. Releases the domain's own epoch. Drains a borrowed epoch with auto_close if the last exit should
 * have drained it but could not, because another scope was inside; otherwise leaves a borrowed epoch alone. Returns
 * false, and d stays, if a thread is inside or a scope is detached (EBUSY), or if d is gone (ESTALE). */
SLAB_API bool epoch_domain_destroy(epoch_domain_t* d);
/* Releases the epoch now. Returns false and does nothing if a thread is inside (EBUSY) or the era no longer matches
 * (ESTALE). */
SLAB_API bool epoch_domain_force_close(epoch_domain_t* d);
/* Makes a labeled domain and enters it. On failure, returns NULL and sets errno; slab_last_error() gives the reason. */
SLAB_API epoch_domain_t* epoch_domain_begin(SlabAllocator* a, const char* label);
/* Leaves the innermost scope, which must be d, and destroys the domain, in one step. If several threads end d at the
 * same time, the last one destroys it. Returns false and leaves d as it was if d is not this thread's innermost scope
 * (EINVAL) or is gone (ESTALE). If others are inside, only leaves the scope and returns false (EBUSY). Either failure
 * counts one misuse. */
SLAB_API bool epoch_domain_end(epoch_domain_t* d);
/* Leaves the innermost scope, which must be d, ends the domain and writes the receipt of that end to *out (may be
 * NULL). Does all of this, or does nothing and returns false. That happens if d is not this thread's innermost scope
 * (EINVAL), if another scope is inside, even a detached one (EBUSY), or if d is gone (ESTALE). Releases the domain's
 * own epoch, even if auto_close is false; drains a borrowed one where epoch_domain_exit would. If a borrowed epoch goes
 * on, *out is the receipt of epoch_domain_receipt, or all 0 except for its version. */
SLAB_API bool epoch_domain_end_ex(epoch_domain_t* d, EpochReceipt* out);
/* Destroys the domain like epoch_domain_destroy and writes the receipt of the end to *out (may be NULL), like
 * epoch_domain_end_ex. If the domain has ended already, the receipt is that of its last end. Returns false and leaves d
 * as it was if a thread is inside (EBUSY) or d is gone (ESTALE). */
SLAB_API bool epoch_domain_destroy_ex(epoch_domain_t* d, EpochReceipt* out);

/* Amounts that a domain holds now. Set struct_size to sizeof(SlabDomainStats). */
typedef struct SlabDomainStats {
    size_t struct_size;
    EpochId epoch_id;         /* of the phase that is open */
    uint64_t epoch_era;       /* of the phase that is open */
    uint64_t live_objects;    /* allocated and not freed, by all threads */
    uint64_t live_bytes;      /* usable bytes of the live objects */
    uint64_t committed_bytes; /* of its slabs and large objects, used or not: what budgets limit */
    uint64_t slabs;           /* including large objects */
} SlabDomainStats;
/* Fills *out, for admission control: "may this request have more?". The figures are exact while no thread allocates or
 * frees in the phase; otherwise objects that come or go meanwhile may be missed. Interrupts no thread, and does not
 * slow the phase's end, but ends of other phases may wait for this call. Returns false and leaves *out as it was if
 * struct_size is too small (EINVAL), the domain has no open phase (ESTALE, no misuse counted), or the domain was
 * destroyed. [any thread] O(slabs of the phase), plus one byte read for every 16 bytes of regions in which objects were
 * freed. */
SLAB_API bool epoch_domain_stats(epoch_domain_t* d, SlabDomainStats* out);
/* Ends the domain by draining its epoch: no allocation that begins afterwards succeeds in the epoch. Live objects stay
 * valid until any thread frees them with slab_free, and the free that empties a slab returns the slab. d is gone when
 * the call returns. The epoch can still be reached by its era (epoch_close_era), and its cleanups run when it is empty.
 * Call epoch_domain_drain when nobody is inside d, or on the thread whose innermost scope is d; that scope is then
 * left. Writes the receipt to *out (may be NULL), in which objects_escaped counts the objects that live on. If the
 * domain has ended already, the receipt is that of the last end. Returns false and leaves d as it was if another scope
 * is inside d or another domain of its borrowed epoch (EBUSY), or the ring has moved past that epoch (ESTALE). O(slabs
 * of the epoch). */
SLAB_API bool epoch_domain_drain(epoch_domain_t* d, EpochReceipt* out);
/* Returns the innermost domain of this thread, of any allocator, or NULL if there is none or the innermost scope is an
 * outer one. */
SLAB_API epoch_domain_t* epoch_domain_current(void);
/* Enters an outer scope. Until slab_scope_outer_leave, this thread's allocations that name no epoch go to the ring's
 * current epoch, even after the ring advances and whatever domains the thread is inside. Use an outer scope to fill a
 * cache, or to make a global object, in the middle of a request. Outer scopes nest: domains may be entered inside them,
 * and scopes are left in reverse order. A thread's exit and a fork treat an outer scope like any other. Returns false
 * and sets errno to EINVAL for NULL, or to ENOMEM if memory runs out. O(1). */
SLAB_API bool slab_scope_outer(SlabAllocator* a);
/* Leaves the innermost scope, which must be an outer scope of the allocator. Otherwise changes nothing, counts a
 * refusal, sets errno to EINVAL and returns false. O(1). */
SLAB_API bool slab_scope_outer_leave(SlabAllocator* a);
/* Returns the allocator of the innermost domain, or NULL if there is none. */
SLAB_API SlabAllocator* epoch_domain_allocator(void);
/* Allocates in the domain's incarnation, whatever scope the thread is in. Returns NULL and sets errno to ESTALE if the
 * incarnation has ended or the domain was destroyed. Otherwise this call and those below act like slab_malloc,
 * slab_calloc and slab_realloc_epoch. */
SLAB_API void* epoch_domain_malloc(epoch_domain_t* d, size_t size) SLAB_ALLOC_SIZE(2);
/* Allocates a zeroed array in the domain's incarnation. */
SLAB_API void* epoch_domain_calloc(epoch_domain_t* d, size_t n, size_t size) SLAB_ALLOC_ARRAY(2, 3);
/* Resizes any object of d's allocator. A block that has to move goes to the domain. If p is NULL, allocates a new block
 * there. If `size` is 0, frees p and returns NULL, even if the domain has ended; any other size then fails with ESTALE,
 * and the block stays as it is. O(size) when the block is copied. */
SLAB_API void* epoch_domain_realloc(epoch_domain_t* d, void* p, size_t size) SLAB_REALLOC_SIZE(3);
/* Allocates an aligned object in the domain's incarnation; alignment is a power of two up to 1 GiB. */
SLAB_API void* epoch_domain_aligned_alloc(epoch_domain_t* d, size_t alignment, size_t size) SLAB_ALLOC_ALIGNED(2, 3);
/* Allocates an object in the domain's incarnation and writes its handle to *out (0 on failure; out may be NULL), like
 * alloc_obj_epoch, but with any size and alignment. The alignment is a power of two up to 1 GiB; values up to 16 change
 * nothing. */
SLAB_API void* epoch_domain_alloc_obj(epoch_domain_t* d, size_t size, size_t alignment, SlabHandle* out)
    SLAB_ALLOC_SIZE(2);
/* Moves a live object of the allocator of `to` into that domain, like slab_move_outside moves it to the ring. For
 * example, this moves a query's result into its transaction. Returns the new object, or p if it is in the domain's
 * incarnation already. On failure, returns NULL, leaves p as it was and sets errno (ESTALE if that incarnation or p's
 * phase has ended). O(size). */
SLAB_API void* epoch_domain_move(epoch_domain_t* to, void* p) SLAB_ALLOC;
/* Act like slab_strdup, slab_strndup, slab_memdup and slab_asprintf, in the domain's incarnation. */
SLAB_API char* epoch_domain_strdup(epoch_domain_t* d, const char* text) SLAB_ALLOC;
SLAB_API char* epoch_domain_strndup(epoch_domain_t* d, const char* text, size_t n) SLAB_ALLOC;
SLAB_API void* epoch_domain_memdup(epoch_domain_t* d, const void* p, size_t n) SLAB_ALLOC_SIZE(3);
SLAB_API char* epoch_domain_asprintf(epoch_domain_t* d, const char* format, ...) SLAB_ALLOC SLAB_FORMAT(2, 3);
/* Registers fn(arg) to run when the domain's incarnation ends, like slab_epoch_on_end. Returns false if the incarnation
 * has ended (ESTALE), memory runs out (ENOMEM), or fn is NULL (EINVAL). */
SLAB_API bool epoch_domain_on_end(epoch_domain_t* d, void (*fn)(void* arg), void* arg);
/* Writes the receipt of the incarnation that ended last to *out. Returns false if none has ended, or out is NULL
 * (EINVAL). */
SLAB_API bool epoch_domain_receipt(epoch_domain_t* d, EpochReceipt* out);
/* Releases all objects and starts a fresh incarnation under the same label, as in a frame loop. Returns false and does
 * nothing if the domain borrows its epoch (EINVAL) or if a scope of another thread or a detached scope is inside
 * (EBUSY). Fails too while the domain is being ended (ESTALE) and if records run out (ENOMEM). */
SLAB_API bool epoch_domain_reset(epoch_domain_t* d);
/* Takes the scope of d off the top of this thread's stack without ending the scope; refcount stays the same. Returns
 * false if d is not the innermost domain (EINVAL). */
SLAB_API bool epoch_domain_detach(epoch_domain_t* d);
/* Puts a detached scope of d on this thread's stack, once per detach. Returns false if no scope is detached (EINVAL) or
 * memory runs out (ENOMEM). */
SLAB_API bool epoch_domain_attach(epoch_domain_t* d);
/* Replaces the innermost scope of this thread with one of `to`. Executors use this in place of a detach and an attach.
 * Takes the innermost scope off the stack like epoch_domain_detach and puts a detached scope of `to` there. If nobody
 * is inside `to`, puts a new scope there like epoch_domain_enter; if `to` is NULL, puts none there. Changes nothing if
 * `to` is the innermost domain. Sets *from (may be NULL) to the domain of the scope that was taken off, or to NULL.
 * Returns false and changes nothing if scopes of `to` are inside but none is detached (EINVAL) or if memory runs out
 * (ENOMEM). Fails with ESTALE if `to` is gone or the ring has moved past its borrowed epoch. */
SLAB_API bool epoch_domain_switch(epoch_domain_t* to, epoch_domain_t** from);
/* Returns the era of the domain's current or last incarnation; other threads may open and end incarnations meanwhile.
 * Returns 0 for NULL and for a domain that is gone. */
SLAB_API uint64_t epoch_domain_era(const epoch_domain_t* d);

#if defined(__GNUC__)
/* Ends the domain of SLAB_SCOPE if one was begun. */
static inline void slab_scope_end_(epoch_domain_t* const* d) {
    if (*d != NULL) (void)epoch_domain_end(*d);
}
#define SLAB_SCOPE_JOIN_(a, b) a##b
#define SLAB_SCOPE_NAME_(line) SLAB_SCOPE_JOIN_(slab_scope_, line)
/* Declares a scope: begins a domain (epoch_domain_begin) that ends at the closing brace of the block. The domain ends
 * however the block is left, except by longjmp, by exit and, without -fexceptions, by the end of the thread.
 * epoch_domain_current() returns the domain. If the domain cannot be begun, slab_last_error() says why, and the block
 * runs in the enclosing scope. At most one SLAB_SCOPE may stand on a line. The macro needs the cleanup attribute of gcc
 * and clang. */
#define SLAB_SCOPE(a, label)                                                                             \
    epoch_domain_t* const SLAB_SCOPE_NAME_(__LINE__) __attribute__((cleanup(slab_scope_end_), unused)) = \
        epoch_domain_begin((a), (label))
#endif

#ifdef __cplusplus
}
#endif
#endif
