/*
 * epoch_domain.h - scopes bound to an epoch.
 *
 * A domain made by epoch_domain_create has an epoch of its own: what is allocated while it is
 * entered ends with it. A domain made by epoch_domain_wrap borrows a ring epoch and drains it.
 *
 * Thread safety: any thread may enter, several at once; enter/exit pairs belong to one thread and
 * nest in LIFO order, without a limit and across allocators. Misuse (exit out of order or without
 * enter, destroy while entered, NULL, a stale era) is refused and counted, never an abort.
 * Complexity: O(1), plus O(slabs of the epoch) where a phase ends. Conventions as slab_alloc.h.
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
 * run out (about 262,000 at once; fewer with a smaller reservation). Of those that their makers are
 * still inside of as they exit the last 256 stay, if nobody uses them. O(1). */
SLAB_API epoch_domain_t* epoch_domain_create(SlabAllocator* a);
/* Same with a label (31 bytes, copied, NULL for none). */
SLAB_API epoch_domain_t* epoch_domain_create_labeled(SlabAllocator* a, const char* label);
/* Makes a domain over the incarnation that a ring id names now. With auto_close its last exit
 * drains that incarnation, if the id still names it and no other domain is inside. */
SLAB_API epoch_domain_t* epoch_domain_wrap(SlabAllocator* a, EpochId epoch, bool auto_close);
/* Makes the domain the innermost scope of this thread. Entering an ended domain of its own opens a
 * fresh incarnation under the same label. */
SLAB_API void epoch_domain_enter(epoch_domain_t* d);
/* Leaves the innermost scope. The last exit of a domain of its own with auto_close releases it;
 * of a borrowed one, drains. */
SLAB_API void epoch_domain_exit(epoch_domain_t* d);
/* Ends the domain; its own epoch is released; a borrowed one with auto_close that was entered is drained
 * if its last exit could not (somebody else was inside), else left as it is. Refused while anybody
 * is inside. NULL is fine. */
SLAB_API void epoch_domain_destroy(epoch_domain_t* d);
/* Releases the epoch now, if the era still matches; refused with anybody inside. */
SLAB_API void epoch_domain_force_close(epoch_domain_t* d);
/* create_labeled + enter. NULL and errno on failure. */
SLAB_API epoch_domain_t* epoch_domain_begin(SlabAllocator* a, const char* label);
/* exit + destroy. */
SLAB_API void epoch_domain_end(epoch_domain_t* d);
/* Innermost domain of this thread, of any allocator; NULL when none. */
SLAB_API epoch_domain_t* epoch_domain_current(void);
/* Allocator of the innermost domain; NULL when none. */
SLAB_API SlabAllocator* epoch_domain_allocator(void);
/* Allocates in the domain's incarnation; ESTALE when that has ended. */
SLAB_API void* epoch_domain_malloc(epoch_domain_t* d, size_t size) SLAB_ALLOC_SIZE(2);
/* Receipt of the incarnation that ended last; false when none has. */
SLAB_API bool epoch_domain_receipt(epoch_domain_t* d, EpochReceipt* out);
/* Releases what is allocated and starts a fresh incarnation under the same label: the frame loop.
 * False (nothing done) for a borrowed domain, or when another thread is inside. */
SLAB_API bool epoch_domain_reset(epoch_domain_t* d);
/* Takes the scope off the top of this thread's stack without ending it; refcount stays. */
SLAB_API bool epoch_domain_detach(epoch_domain_t* d);
/* Puts a detached scope on this thread's stack; once per detach. */
SLAB_API bool epoch_domain_attach(epoch_domain_t* d);

#ifdef __cplusplus
}
#endif
#endif
