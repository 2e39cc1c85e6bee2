/*
 * epoch_domain.h - domains: epochs that threads enter and leave.
 *
 * A domain lets threads enter and leave an epoch. While a thread is inside a domain, slab_malloc allocates in the
 * domain's epoch. A domain created by epoch_domain_create owns its epoch. A domain created by epoch_domain_wrap borrows
 * an epoch, which normally belongs to the ring. The ring is a fixed set of epoch ids, which the allocator reuses in
 * turn (epoch_advance).
 *
 * Terms
 *   scope          a thread's stay in a domain, from an entry to the matching exit. The scopes of a thread form a stack
 *   incarnation    one use of an epoch id; lasts until the epoch ends. Each incarnation has an era, a number that is
 *                  never reused
 *   phase          the part of a program that an incarnation stands for, such as a request, a frame or a batch
 *   receipt        the counts that a call writes when it ends a phase (EpochReceipt)
 *   release        to end a phase and free its live objects
 *   drain          to end a phase for new allocations only; live objects stay valid until they are freed
 *
 * Conventions, in addition to those of slab_alloc.h, unless a comment says otherwise
 *   thread safety  any thread may enter a domain, and several threads may be inside at the same time. A thread must
 *                  leave its scopes in reverse order. Scopes can be nested to any depth, even across allocators
 *   misuse         the library refuses and counts misuse, such as an exit out of order, the destruction of a domain
 *                  that a thread is inside, or a stale era. The program then continues, unless the option misuse_fatal
 *                  is set
 *   results        a call that returns bool returns true if it took effect. A call that fails changes nothing (see
 *                  epoch_domain_end for the exception), sets errno, and stores the reason for slab_last_error().
 *                  A call that succeeds changes neither errno nor that reason
 *   errno          EINVAL for NULL, or if the thread's innermost scope is not the required one. EBUSY if the domain has
 *                  other open scopes. ESTALE if the domain was destroyed or has ended, or if the ring has moved past
 *                  the borrowed epoch. ENOMEM if memory runs out
 *   cleanups       a cleanup (a function registered with epoch_domain_on_end) cannot end, reset or enter the domain
 *                  that is ending
 *   complexity     O(1), plus O(slabs of the epoch) if the call ends a phase
 *
 * Five ways to end a phase
 *   epoch_domain_end          leaves the scope, releases the phase, and destroys the domain
 *   epoch_domain_end_ex       acts like epoch_domain_end and writes a receipt; changes nothing if it fails
 *   epoch_domain_exit         leaves the scope. The last exit releases the phase; the domain can be entered again
 *   epoch_domain_reset        releases the phase and opens a fresh incarnation, for example at the end of a frame
 *   epoch_domain_drain        keeps live objects valid until they are freed. Each live object keeps its page committed,
 *                             so move objects that must outlive the phase (slab_move_outside)
 *
 * Other calls that end a phase change no scope: epoch_domain_destroy and epoch_domain_force_close (by domain),
 * epoch_close_ex (by id), and epoch_close_era (by era).
 */
#ifndef EPOCH_DOMAIN_H
#define EPOCH_DOMAIN_H

#include "slab_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A domain. Only the library creates and destroys domains. Programs may read the fields, and may set auto_close before
 * a thread first enters the domain. The field refcount is updated atomically, but its value may be out of date as soon
 * as it is read. */
typedef struct epoch_domain {
    SlabAllocator* alloc;
    EpochId epoch_id;   /* id of the current or last incarnation, for slab_malloc_epoch */
    uint64_t epoch_era; /* era of the current or last incarnation */
    uint32_t refcount;  /* number of open scopes, including detached ones */
    bool auto_close;    /* if true, the last exit ends the epoch */
    uint64_t private_[6];
} epoch_domain_t;

/* Creates a domain that owns its epoch, with auto_close set. On failure, returns NULL and sets errno to EINVAL if `a`
 * is NULL, or to ENOMEM if memory or records run out; slab_last_error() gives the reason. With the default
 * reserve_bytes, an allocator has about 262,000 records for domains and the same number for epochs. A smaller
 * reserve_bytes reduces both numbers. If a thread exits while it is inside a domain that it created, the domain remains
 * available to other threads. The allocator keeps the 256 domains that were most recently left behind in this way.
 * Domains left behind earlier are destroyed, unless auto_close is false or a thread has used them since. O(1). */
SLAB_API epoch_domain_t* epoch_domain_create(SlabAllocator* a);
/* Creates a domain like epoch_domain_create, and sets the domain's label to a copy of at most 31 bytes of `label`. NULL
 * means no label. */
SLAB_API epoch_domain_t* epoch_domain_create_labeled(SlabAllocator* a, const char* label);
/* Options for epoch_domain_create_ex. Set struct_size to sizeof(SlabDomainOptions), and set the options that you do not
 * use to 0. */
typedef struct SlabDomainOptions {
    size_t struct_size;
    const char* label; /* at most 31 bytes are copied; NULL: no label */
    uint32_t flags;    /* any of the SLAB_DOMAIN_ flags */
    uint32_t reserved_;
    uint64_t soft_bytes, hard_bytes; /* budget of each incarnation (see slab_epoch_set_budget); 0: none */
    SlabBudgetFn budget_fn;          /* may be NULL */
    void* budget_ctx;
} SlabDomainOptions;
/* The domain's epoch stays open after the last exit. The epoch ends only when a call such as epoch_domain_end or
 * epoch_domain_reset ends it explicitly. */
#define SLAB_DOMAIN_KEEP 1u
/* Only the thread that creates the domain may use it. If another thread allocates in the domain, or enters, attaches or
 * resets it, the call is refused (EBUSY) and counted as one misuse. Other threads cannot end the domain or its phase
 * either, even by the id or the era of the phase. The domain's epochs cannot be borrowed with epoch_domain_wrap. Other
 * threads may free the domain's objects. If another thread calls slab_trim, the call skips the domain. When the
 * creating thread exits, the domain's phase is released, even if it was drained and still holds objects. If another
 * thread forks, the child process releases the phase. After either release, any thread may use or destroy the
 * domain. */
#define SLAB_DOMAIN_OWNER_ONLY 2u
/* The domain's phases have no age, so they are reported as leaks only with a threshold of 0 seconds. They are left out
 * of the histograms of durations. The clock is not read when a phase begins, or when epoch_domain_destroy or
 * epoch_domain_end ends a phase on the fast path. If a call writes a receipt, close_ns in the receipt is still set. */
#define SLAB_DOMAIN_UNTIMED 4u
/* Creates a domain that owns its epoch, with the given options. The budget and the flags apply to every incarnation of
 * the domain. Phases with a budget begin and end more slowly, because they cannot use the fast path. Returns NULL on
 * failure. Fails with ENOMEM if memory or records run out, like epoch_domain_create. Fails with EINVAL if the allocator
 * or `options` is NULL, or if struct_size is too small. Unknown flags, a nonzero value for an option of a later
 * version, and a soft budget above the hard budget also cause EINVAL. [any thread] O(1). */
SLAB_API epoch_domain_t* epoch_domain_create_ex(SlabAllocator* a, const SlabDomainOptions* options);
/* Creates a domain that borrows the incarnation currently named by `epoch`. If `auto_close` is true, the last exit from
 * the domain drains this incarnation, unless another domain has an open scope in it or `epoch` no longer names it.
 * Returns NULL on failure. Fails with EINVAL for a NULL allocator or an unknown id, and with ENOMEM if memory or
 * records run out. Fails with EBUSY if the epoch belongs to a domain with SLAB_DOMAIN_OWNER_ONLY, and with ESTALE if
 * the epoch belonged to a domain and has ended. */
SLAB_API epoch_domain_t* epoch_domain_wrap(SlabAllocator* a, EpochId epoch, bool auto_close);
/* Enters the domain. The new scope becomes the innermost scope of this thread. If the domain owns its epoch and the
 * epoch has ended, opens a fresh incarnation with the same label. On failure, returns false and leaves the thread's
 * scopes unchanged. Fails with ESTALE if the domain was destroyed or the ring has moved past the borrowed epoch. Fails
 * with EINVAL for NULL, and with ENOMEM if there is no memory for a record or a scope. */
SLAB_API bool epoch_domain_enter(epoch_domain_t* d);
/* Leaves this thread's innermost scope, which must be a scope of d. If auto_close is set, the last exit releases an
 * epoch that the domain owns, or drains an epoch that the domain borrows. On failure, returns false and leaves the
 * scope open. Fails with EINVAL if the innermost scope is not a scope of d, and with ESTALE if d was destroyed. */
SLAB_API bool epoch_domain_exit(epoch_domain_t* d);
/* Destroys the domain, and releases its epoch if the domain owns it. A borrowed epoch normally stays open. The call
 * drains a borrowed epoch only if auto_close is set and another domain's scope prevented the last exit from draining
 * the epoch. On failure, returns false and changes nothing. Fails with EBUSY if the domain has open scopes, including
 * detached ones, and with ESTALE if d was destroyed. */
SLAB_API bool epoch_domain_destroy(epoch_domain_t* d);
/* Releases the domain's epoch immediately, even if the epoch is borrowed, and keeps the domain. On failure, returns
 * false and changes nothing. Fails with EBUSY if the domain has open scopes, including detached ones, and with ESTALE
 * if a call on the domain has ended the epoch or the ring has moved past it. If the epoch was ended by its id, releases
 * what lives in it. */
SLAB_API bool epoch_domain_force_close(epoch_domain_t* d);
/* Creates a domain with the given label and enters it, in one step. Returns the domain, which is then this thread's
 * innermost scope. On failure, returns NULL and sets errno; slab_last_error() gives the reason. */
SLAB_API epoch_domain_t* epoch_domain_begin(SlabAllocator* a, const char* label);
/* Leaves this thread's innermost scope, which must be a scope of d, and destroys the domain, in one step. If several
 * threads end d at the same time, the last thread destroys it. Returns false and changes nothing if d is not this
 * thread's innermost scope (EINVAL) or was destroyed (ESTALE). If d has other open scopes, leaves this thread's
 * scope, keeps the domain, and returns false (EBUSY). If a run is open in d, changes nothing and returns false
 * (EBUSY). Each of these failures is counted as one misuse. */
SLAB_API bool epoch_domain_end(epoch_domain_t* d);
/* Leaves this thread's innermost scope, which must be a scope of d, ends the domain, and writes the receipt to *out
 * (may be NULL). Releases the epoch if the domain owns it, even if auto_close is false. Drains a borrowed epoch if
 * epoch_domain_exit would drain it. If a borrowed epoch stays open, *out is the receipt of the domain's most recently
 * ended incarnation. If no incarnation of the domain has ended, all fields of *out except `version` are 0. On failure,
 * returns false and changes nothing. Fails with EINVAL if d is not this thread's innermost scope, and with ESTALE if d
 * was destroyed. Fails with EBUSY if d has other open scopes, including detached ones. */
SLAB_API bool epoch_domain_end_ex(epoch_domain_t* d, EpochReceipt* out);
/* Destroys the domain like epoch_domain_destroy, and writes a receipt to *out (may be NULL) like epoch_domain_end_ex.
 * If the domain's epoch has already ended, *out is the receipt of the domain's last incarnation. On failure, returns
 * false and changes nothing. Fails with EBUSY if d has open scopes, including detached ones, and with ESTALE if d was
 * destroyed. */
SLAB_API bool epoch_domain_destroy_ex(epoch_domain_t* d, EpochReceipt* out);

/* Amounts of memory that a domain holds. Set struct_size to sizeof(SlabDomainStats). */
typedef struct SlabDomainStats {
    size_t struct_size;
    EpochId epoch_id;         /* id of the open incarnation */
    uint64_t epoch_era;       /* era of the open incarnation */
    uint64_t live_objects;    /* objects that any thread allocated and that are not freed yet */
    uint64_t live_bytes;      /* usable bytes of the live objects */
    uint64_t committed_bytes; /* bytes of slabs and large objects, used or not; budgets limit this amount */
    uint64_t slabs;           /* number of slabs; a large object counts as one slab */
} SlabDomainStats;
/* Fills *out with the amounts of memory that the domain holds, for example to decide whether a request may use more
 * memory. The figures are exact if no thread allocates or frees in the phase during the call. Otherwise, objects that
 * are allocated or freed during the call may or may not be counted. The call interrupts no thread and does not delay
 * the end of this phase, but the end of another phase may have to wait for the call. On failure, returns false and
 * leaves *out unchanged. Fails with EINVAL if d or out is NULL, or if struct_size is too small. Fails with ESTALE if
 * the domain was destroyed or has no open phase. A call on a domain without an open phase is not counted as misuse.
 * [any thread] O(slabs of the phase), plus one byte read for every 16 bytes of regions in which objects were freed. */
SLAB_API bool epoch_domain_stats(epoch_domain_t* d, SlabDomainStats* out);
/* Ends the domain and drains its epoch. Later allocations in the epoch are refused, but live objects stay valid until
 * they are freed. Any thread may free the objects with slab_free; when the last object of a slab is freed, the slab is
 * returned to the allocator. The call destroys d. Afterwards, epoch_close_era can still release the epoch. The cleanups
 * of the epoch run when the epoch becomes empty. The calling thread may be outside d, or d may be its innermost scope,
 * which the call then leaves. Apart from that scope, d must have no open scopes. Writes the receipt to *out (may be
 * NULL); objects_escaped counts the objects that are still live. If the domain's epoch has already ended, *out is the
 * receipt of the domain's last incarnation. On failure, returns false and changes nothing. Fails with EBUSY if d has
 * another open scope, or if another domain that borrows the same epoch has one. Fails with ESTALE if d was destroyed or
 * the ring has moved past the borrowed epoch. O(slabs of the epoch). */
SLAB_API bool epoch_domain_drain(epoch_domain_t* d, EpochReceipt* out);
/* Returns the domain of this thread's innermost scope, in any allocator. Returns NULL if the thread is in no scope, or
 * if the innermost scope is an outer scope (slab_scope_outer). */
SLAB_API epoch_domain_t* epoch_domain_current(void);
/* Enters an outer scope. In an outer scope, allocations that name no epoch go to the ring's current epoch, even if the
 * thread is inside domains and even after the ring advances. Use an outer scope to fill a cache, or to create a global
 * object, while a request is being processed. The thread may enter domains inside an outer scope, and must leave all
 * scopes in reverse order. Like other scopes, an outer scope ends when its thread exits, and stays open in the child if
 * its thread forks. Returns false and sets errno to EINVAL for NULL, or to ENOMEM if memory runs out. O(1). */
SLAB_API bool slab_scope_outer(SlabAllocator* a);
/* Leaves this thread's innermost scope, which must be an outer scope of allocator `a`. If the thread's innermost scope
 * is not such a scope, changes nothing, counts the call as one misuse, sets errno to EINVAL, and returns false.
 * O(1). */
SLAB_API bool slab_scope_outer_leave(SlabAllocator* a);
/* Returns the allocator of the domain that epoch_domain_current() returns, or NULL if there is no such domain. */
SLAB_API SlabAllocator* epoch_domain_allocator(void);
/* Allocates `size` bytes in the domain's incarnation, regardless of the thread's scopes. Returns NULL on failure. Fails
 * like slab_malloc, and with ESTALE if the incarnation has ended or the domain was destroyed. */
SLAB_API void* epoch_domain_malloc(epoch_domain_t* d, size_t size) SLAB_ALLOC_SIZE(2);
/* Allocates a zeroed array in the domain's incarnation, like slab_calloc. Fails like epoch_domain_malloc. */
SLAB_API void* epoch_domain_calloc(epoch_domain_t* d, size_t n, size_t size) SLAB_ALLOC_ARRAY(2, 3);
/* Resizes an object of d's allocator, like slab_realloc_epoch. If the object must move, the new object is allocated in
 * the domain. If p is NULL, allocates a new object in the domain. If `size` is 0, frees p and returns NULL, even if the
 * domain's incarnation has ended. With any other size, a call after the incarnation has ended fails with ESTALE and
 * leaves the object unchanged. O(size) if the object is copied. */
SLAB_API void* epoch_domain_realloc(epoch_domain_t* d, void* p, size_t size) SLAB_REALLOC_SIZE(3);
/* Allocates an aligned object in the domain's incarnation. `alignment` must be a power of two, at most 1 GiB. */
SLAB_API void* epoch_domain_aligned_alloc(epoch_domain_t* d, size_t alignment, size_t size) SLAB_ALLOC_ALIGNED(2, 3);
/* Allocates an object in the domain's incarnation and writes its handle to *out (may be NULL), or 0 on failure. Unlike
 * alloc_obj_epoch, takes an alignment and accepts any size. The alignment must be a power of two, at most 1 GiB. Every
 * object is 16-byte aligned, so smaller alignments have no effect. */
SLAB_API void* epoch_domain_alloc_obj(epoch_domain_t* d, size_t size, size_t alignment, SlabHandle* out)
    SLAB_ALLOC_SIZE(2);
/* Moves a live object into the domain `to`, for example the result of a query into the domain of a transaction. The
 * object must belong to the allocator of `to`. Copies the usable bytes to a new, 16-byte aligned object and frees the
 * old object, like slab_move_outside. Returns the new object, or p if the object is already in the domain's
 * incarnation. On failure, returns NULL and leaves the object unchanged. Fails with ESTALE if the domain's incarnation
 * or the object's phase has ended. O(size). */
SLAB_API void* epoch_domain_move(epoch_domain_t* to, void* p) SLAB_ALLOC;
/* The four functions below act like slab_strdup, slab_strndup, slab_memdup and slab_asprintf, but allocate in the
 * domain's incarnation. */
SLAB_API char* epoch_domain_strdup(epoch_domain_t* d, const char* text) SLAB_ALLOC;
SLAB_API char* epoch_domain_strndup(epoch_domain_t* d, const char* text, size_t n) SLAB_ALLOC;
SLAB_API void* epoch_domain_memdup(epoch_domain_t* d, const void* p, size_t n) SLAB_ALLOC_SIZE(3);
SLAB_API char* epoch_domain_asprintf(epoch_domain_t* d, const char* format, ...) SLAB_ALLOC SLAB_FORMAT(2, 3);
/* Registers a cleanup: fn(arg) runs when the domain's incarnation ends, as described for slab_epoch_on_end. Returns
 * false and sets errno to ESTALE if the incarnation has ended, to ENOMEM if memory runs out, or to EINVAL if d or fn is
 * NULL. */
SLAB_API bool epoch_domain_on_end(epoch_domain_t* d, void (*fn)(void* arg), void* arg);
/* Writes the receipt of the domain's most recently ended incarnation to *out. Returns false and sets errno to EINVAL if
 * no incarnation has ended or if out is NULL. In the child of a fork, phases that end because their thread does not
 * exist there (SLAB_DOMAIN_OWNER_ONLY) leave no receipt. */
SLAB_API bool epoch_domain_receipt(epoch_domain_t* d, EpochReceipt* out);
/* Releases all objects of the domain and opens a fresh incarnation with the same label, for example at the end of each
 * frame. On failure, returns false and changes nothing. Fails with EINVAL if the domain borrows its epoch, and with
 * EBUSY if the domain has a detached scope or a scope of another thread. Fails with ESTALE if the domain is being
 * ended, and with ENOMEM if records run out. */
SLAB_API bool epoch_domain_reset(epoch_domain_t* d);
/* Detaches this thread's innermost scope, which must be a scope of d: removes the scope from the thread's stack without
 * ending it. Detached scopes are still counted in refcount. Returns false and sets errno to EINVAL if d is not the
 * innermost domain. */
SLAB_API bool epoch_domain_detach(epoch_domain_t* d);
/* Attaches a detached scope of d to this thread, as the innermost scope. Each detached scope can be attached once.
 * Returns false and sets errno to EINVAL if d has no detached scope, or to ENOMEM if memory runs out. */
SLAB_API bool epoch_domain_attach(epoch_domain_t* d);
/* Switches this thread from its innermost domain to the domain `to`, as executors do between tasks. Detaches the
 * innermost scope, as epoch_domain_detach does, and attaches a detached scope of `to`. If `to` has no open scope,
 * enters `to` instead, like epoch_domain_enter. If `to` is NULL, only detaches the innermost scope. If `to` is already
 * the innermost domain, changes no scope. Sets *from (may be NULL) to the domain that was innermost before the call, or
 * to NULL if there was none. On failure, returns false and changes nothing. Fails with EINVAL if `to` has open scopes
 * but none is detached, and with ENOMEM if memory runs out. Fails with ESTALE if `to` was destroyed, or if the ring has
 * moved past the epoch that `to` borrows. */
SLAB_API bool epoch_domain_switch(epoch_domain_t* to, epoch_domain_t** from);
/* Returns the era of the domain's current incarnation, or of the last one if none is open. The era can change at any
 * time if other threads use the domain. Returns 0 if d is NULL or was destroyed. */
SLAB_API uint64_t epoch_domain_era(const epoch_domain_t* d);

#if defined(__GNUC__)
/* Ends the domain that SLAB_SCOPE began. Does nothing if no domain was begun. */
static inline void slab_scope_end_(epoch_domain_t* const* d) {
    if (*d != NULL) (void)epoch_domain_end(*d);
}
#define SLAB_SCOPE_JOIN_(a, b) a##b
#define SLAB_SCOPE_NAME_(line) SLAB_SCOPE_JOIN_(slab_scope_, line)
/* Begins a domain like epoch_domain_begin, and ends the domain when control leaves the enclosing block, for example at
 * the closing brace or by return. The domain does not end if the program leaves the block by longjmp or exit. Without
 * -fexceptions, the domain also stays open if the thread ends inside the block. Inside the block,
 * epoch_domain_current() returns the domain. If the domain cannot be created, the block runs in the enclosing scope,
 * and slab_last_error() gives the reason. Use at most one SLAB_SCOPE per source line. The macro requires the cleanup
 * attribute of gcc and clang. */
#define SLAB_SCOPE(a, label)                                                                             \
    epoch_domain_t* const SLAB_SCOPE_NAME_(__LINE__) __attribute__((cleanup(slab_scope_end_), unused)) = \
        epoch_domain_begin((a), (label))
#endif

#ifdef __cplusplus
}
#endif
#endif
