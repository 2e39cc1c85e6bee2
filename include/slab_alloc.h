/*
 * slab_alloc.h - objects and epochs of temporal-slab.
 *
 * An allocator hands out objects of any size and files each under an epoch: the phase of the
 * program it belongs to. Ending the epoch returns its memory in one step.
 *
 * Conventions for every function below, unless its comment says otherwise
 *   units          sizes in bytes, times in nanoseconds (CLOCK_MONOTONIC)
 *   alignment      every object is 16-byte aligned; in a size class that is a power of two it is
 *                  aligned to its size (up to 256 KiB; larger objects to 64 KiB), in a region it is not
 *   ownership      the caller owns an object from the call that returned it until it is freed or
 *                  its epoch is released; no object ever moves and none carries a header
 *   thread safety  any thread may call anything at any time; any thread may free an object
 *   errors         allocation: NULL and errno = ENOMEM (no memory), EINVAL (size 0, bad alignment, bad epoch id, bad
 *                  pointer, NULL allocator), ESTALE (the epoch no longer accepts allocations), EDQUOT (over a hard
 *                  budget or max_bytes). Frees never change errno; a stale, doubled, foreign or forged pointer or
 *                  handle is refused and counted (slab_stats_refusals), never a crash. NULL allocators are accepted
 *                  everywhere.
 *   complexity     O(1) unless stated
 *   unloading      never: a shared object with the static library inside stays loaded after dlclose, because
 *                  threads that have used the library run its code as they exit
 */
#ifndef SLAB_ALLOC_H
#define SLAB_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
/* With SLAB_STATIC defined the names below are hidden: the binary that has the static library inside, a plugin perhaps,
 * does not export them. The static library is compiled so. Its callers need not define it; with it, calls from position
 * independent code are direct. Never define it for a program that uses the shared library: it would not link. */
#ifdef SLAB_STATIC
#define SLAB_API __attribute__((visibility("hidden")))
#else
#define SLAB_API __attribute__((visibility("default")))
#endif
/* Attributes by which compilers know the allocation functions; n and m are the numbers of arguments. The attribute
 * `malloc` is not among them, because it promises that nothing but the returned pointer leads to the object: compilers
 * drop stores to an object that is then read through its handle (slab_handle_ptr) or found by a walk (slab_epoch_walk).
 * No deallocator is named, because objects that end with their epoch are no leaks. */
#define SLAB_ALLOC __attribute__((assume_aligned(16)))
#define SLAB_ALLOC_SIZE(n) SLAB_ALLOC __attribute__((alloc_size(n)))
#define SLAB_ALLOC_ARRAY(n, m) SLAB_ALLOC __attribute__((alloc_size(n, m)))
#define SLAB_ALLOC_ALIGNED(n, m) SLAB_ALLOC __attribute__((alloc_align(n), alloc_size(m)))
#define SLAB_REALLOC_SIZE(n) __attribute__((assume_aligned(16), alloc_size(n), warn_unused_result))
#define SLAB_FORMAT(n, m) __attribute__((format(printf, n, m)))
#else
#define SLAB_API
#define SLAB_ALLOC
#define SLAB_ALLOC_SIZE(n)
#define SLAB_ALLOC_ARRAY(n, m)
#define SLAB_ALLOC_ALIGNED(n, m)
#define SLAB_REALLOC_SIZE(n)
#define SLAB_FORMAT(n, m)
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define TSLAB_VERSION_MAJOR 0
#define TSLAB_VERSION_MINOR 3
#define TSLAB_VERSION_PATCH 0

/* Nominal page size. The page size in force is slab_page_size(); the bytes of a class's slabs are
 * SlabClassStats.slab_bytes. */
#define SLAB_PAGE_SIZE 4096u

/* Number of size classes whose index and size never change: 0..7 = 64, 96, 128, 192, 256, 384, 512, 768 bytes. Further
 * classes follow after index 7. */
#define SLAB_FIXED_CLASSES 8u

/* Names an epoch: a ring id (0 .. ring_size-1), or the id of a domain's own epoch (top bit set). */
typedef uint32_t EpochId;

/* ACTIVE epochs accept allocations; CLOSING ones only frees. */
typedef enum EpochLifecycleState { EPOCH_ACTIVE = 0, EPOCH_CLOSING = 1 } EpochLifecycleState;

/* DRAIN: live objects stay valid, their memory goes back as they are freed.
 * RELEASE: every live object ends now. */
typedef enum EpochCloseMode { EPOCH_DRAIN = 0, EPOCH_RELEASE = 1 } EpochCloseMode;

/* A checked name for an object; 0 = none. A handle of an object that has ended never matches
 * again, even when its address is in use by a new object. */
typedef uint64_t SlabHandle;

/* Storage of an allocator, which the caller embeds or allocates; the objects' memory is elsewhere. Must not be moved or
 * copied between allocator_init and allocator_destroy. */
typedef struct SlabAllocator {
    uint64_t opaque_[4];
} __attribute__((aligned(16))) SlabAllocator;

/* How empty pages are given back to the system. */
typedef enum SlabPurgePolicy {
    SLAB_PURGE_DONTNEED = 0, /* resident size falls at once */
    SLAB_PURGE_FREE = 1,     /* MADV_FREE: cheaper, but resident size falls only under pressure */
    SLAB_PURGE_NEVER = 2     /* keep pages; memory is still reused */
} SlabPurgePolicy;

/* Kinds of misuse, as told to a misuse callback and counted by slab_stats_refusals. */
typedef enum SlabMisuse {
    SLAB_MISUSE_STALE_HANDLE = 0, /* handle of an object that has ended */
    SLAB_MISUSE_BAD_HANDLE,       /* forged bits or another allocator's handle */
    SLAB_MISUSE_DOUBLE_FREE,      /* the object is free already */
    SLAB_MISUSE_STALE_FREE,       /* the object's epoch was released, or its slab returned */
    SLAB_MISUSE_INTERIOR_POINTER, /* not the start of an object */
    SLAB_MISUSE_FOREIGN_POINTER,  /* not of this allocator */
    SLAB_MISUSE_SIZE_MISMATCH,    /* slab_free_sized with a size the object cannot have */
    SLAB_MISUSE_BAD_EPOCH,        /* no such epoch id or era */
    SLAB_MISUSE_CLOSED_EPOCH,     /* allocation in an epoch that is not ACTIVE */
    SLAB_MISUSE_BAD_SIZE,         /* size 0, over PTRDIFF_MAX, or n * size overflows */
    SLAB_MISUSE_DOMAIN_ORDER,     /* exit out of order, without enter, destroy while entered */
    SLAB_MISUSE_DOMAIN_STALE,     /* the domain's epoch has moved on */
    /* an object was written to after its end, and is found so before its memory is an object again: option fill_freed;
     * told of the next object there */
    SLAB_MISUSE_WRITE_AFTER_END,
    SLAB_MISUSE_COUNT
} SlabMisuse;

/* Returns the one-word name of a kind of misuse, as in slab_stats_refusals and the outputs ("double_free"); "unknown"
 * for any other number. Static storage. */
SLAB_API const char* slab_misuse_name(SlabMisuse what);

/* Causes of a refused call, in more detail than errno has; slab_error returns them. */
typedef enum SlabError {
    SLAB_ERROR_NONE = 0,  /* nothing was refused on this thread yet */
    SLAB_ERROR_NO_MEMORY, /* no memory, or no record (ENOMEM) */
    SLAB_ERROR_BUDGET,    /* over a hard budget or max_bytes (EDQUOT) */
    SLAB_ERROR_ARGUMENT,  /* NULL, an option, an inert allocator, a call that the object does not support (EINVAL) */
    SLAB_ERROR_SIZE,      /* size 0, too large or overflowing; a bad alignment (EINVAL, ENOMEM) */
    SLAB_ERROR_OBJECT, /* the pointer or handle names no live object of the allocator, or the size is wrong (EINVAL) */
    SLAB_ERROR_EPOCH,  /* no such epoch id or era (EINVAL) */
    SLAB_ERROR_ENDED,  /* the epoch accepts nothing any more, or the domain is gone (ESTALE) */
    SLAB_ERROR_BUSY,   /* another scope is inside of the domain (EBUSY) */
    SLAB_ERROR_ORDER   /* the domain is not the thread's innermost scope, or not detached (EINVAL) */
} SlabError;

/* Called for each misuse, on the offending thread, with no lock held. `where` is the offending pointer or NULL. Misuse
 * by the function itself is counted, without another call. Must not destroy the allocator. */
typedef void (*SlabMisuseFn)(SlabAllocator* a, SlabMisuse what, const void* where, void* ctx);

/* Called as an allocator is destroyed, once for each epoch with live objects, if leak_report is set. */
typedef void (*SlabLeakFn)(SlabAllocator* a, const char* label, uint64_t era, uint64_t objects, uint64_t bytes,
                           void* ctx);

/* Options of an allocator. Zero-fill, set struct_size = sizeof(SlabOptions), set what matters; a 0 means the default.
 * The environment variable TSLAB_OPTIONS="name=value,..." overrides (ignored in set-user-id programs); sizes there take
 * k, m and g. An unknown word or a value out of range is ignored: slab_last_error() says so after the create, and once
 * a process a line on standard error does, unless `quiet` or `misuse_fn` is set. See docs/options.md. */
typedef struct SlabOptions {
    size_t struct_size;       /* sizeof(SlabOptions) of the caller */
    uint32_t ring_size;       /* ring epochs: 2..1024, default 16 */
    uint32_t purge_policy;    /* SlabPurgePolicy, default DONTNEED */
    uint64_t reserve_bytes;   /* address space for objects: 16 MiB..64 GiB, default 64 GiB; halved
                               until the system grants it */
    uint64_t warm_bytes;      /* fixed budget of pages that no epoch owns, kept for reuse; UINT64_MAX: keep none;
                               0: the budget starts at 1 MiB and adapts */
    uint32_t slab_bytes;      /* least bytes of a slab, a power of two 4 KiB..64 KiB; default: by class */
    uint8_t prefault;         /* 1: touch pages as they are committed */
    uint8_t misuse_fatal;     /* 1: on misuse print its kind to standard error and abort() */
    uint8_t leak_report;      /* 1: call leak_fn for every epoch with live objects at destroy */
    uint8_t huge_pages;       /* 1: ask for transparent huge pages for objects */
    uint32_t max_labels;      /* label ids, "(unlabeled)" and "(other)" included: 3..4096, default 256 */
    uint32_t sampling_period; /* slow allocations per timed one, see slab_stats.h; 0: none timed, else 16..1048576 */
    /* most bytes of slabs and large objects committed at a time, 64 KiB at least; 0: no limit */
    uint64_t max_bytes;
    SlabMisuseFn misuse_fn;
    void* misuse_ctx;
    SlabLeakFn leak_fn;
    void* leak_ctx;
    uint8_t numa_local; /* 1: slabs come from the memory node of the thread that takes them */
    uint8_t segment;    /* 1: show the statistics to other processes of the user, see slab_segment.h */
    uint8_t shared;     /* 1: threads take turns at slabs that no thread owns: least memory */
    /* where objects are packed in regions, one behind the other; 0 or 1: in domains, and the first 12 KiB of a thread
     * in each epoch of the ring; 2: nowhere, all by size class; 3: in domains only */
    uint8_t bump;
    /* 1: each object is a block of malloc, so that tools see it; 2: never; 0: where AddressSanitizer, LeakSanitizer,
     * MemorySanitizer or Valgrind's memcheck is there, see docs/sanitizers.md */
    uint8_t by_malloc;
    /* 1: pages of a released phase cannot be touched: an access prints to standard error which phase it was, how long
     * ago it ended and where the object was allocated, see docs/late-access.md. For tests */
    uint8_t late_access;
    /* 1: objects that outlive the end of their phase are counted by the stack that made them, in the heap profile:
     * without profile_bytes each object of a domain, and nothing else; with it the sampled ones. See docs/profile.md */
    uint8_t escape_stacks;
    uint8_t reserved_[1];
    /* mean bytes allocated between two profiled allocations, see slab_profile_write; 0: no profile, else 512..2^40 */
    uint64_t profile_bytes;
    uint64_t warm_limit_bytes; /* most that the budget of warm pages may learn, 1 MiB at least, default 64 MiB */
    uint8_t quiet;             /* 1: no line on standard error about words of TSLAB_OPTIONS that are ignored */
    /* milliseconds between searches for empty slabs of open epochs, which then go back; slow paths of allocations and
     * frees and readers of statistics search: 1..86400000; 0: they stay until slab_trim or the end */
    uint32_t decay_ms;
    /* allocations per one that lies on pages of its own before a guard page, and faults after its end, see
     * docs/late-access.md: 1..1048576; 0: none */
    uint32_t guard_period;
    /* 1: objects are zeroed as they end, and their memory is looked at before it is an object again, see
     * docs/hardened.md */
    uint8_t fill_freed;
    uint8_t random_order; /* 1: a slot is any of those that are ready, not the next; implies bump 2 */
    /* 1: fill_freed, random_order, guard_sampling 5000 and quarantine_bytes 4 MiB, except those that are set */
    uint8_t hardened;
    /* mean allocations between two that lie on pages of their own before a guard page, and fault after their end; at
     * most 256 at a time, see docs/hardened.md: 16..1048576; 0: none */
    uint32_t guard_sampling;
    /* bytes of slabs of ended phases that are kept from being used again, see docs/hardened.md: 64 KiB..64 GiB; 0:
     * none */
    uint64_t quarantine_bytes;
} SlabOptions;

/* Counters of one size class. */
typedef struct PerfCounters {
    uint64_t slow_path_hits;            /* allocations that left the fast path */
    uint64_t new_slab_count;            /* slabs taken by an epoch */
    uint64_t list_move_partial_to_full; /* lines set aside as full */
    uint64_t list_move_full_to_partial; /* lines put back for allocation */
    uint64_t current_partial_null;      /* slow path: no current line */
    uint64_t current_partial_full;      /* slow path: the current line was used up */
    uint64_t empty_slab_recycled;       /* slabs reused without fresh pages */
    uint64_t empty_slab_overflowed;     /* slabs whose pages went back to the system */
} PerfCounters;

/* Receipt of an epoch's end: what the epoch held and what its end did. Exact: objects_allocated == objects_freed +
 * objects_released + objects_escaped, and so for bytes. "deferred" slabs were held by a thread inside a call when the
 * epoch was closed; that thread returns them as it leaves the call. Objects in a slab that its owner held are in no
 * term until then. bytes are usable bytes. */
typedef struct EpochReceipt {
    uint32_t version; /* 2 */
    EpochId epoch_id;
    uint64_t epoch_era;
    char label[32];
    uint64_t objects_allocated, objects_freed, objects_released, objects_escaped;
    uint64_t bytes_allocated, bytes_freed, bytes_released, bytes_escaped;
    uint64_t slabs_returned, bytes_returned; /* what this close took back from the epoch */
    uint64_t slabs_deferred, bytes_deferred;
    uint64_t rss_before, rss_after; /* resident bytes of the process; 0 when not measured */
    uint64_t close_ns;              /* time the close took, without measuring; 0 when the epoch held nothing */
    uint32_t interrupts;            /* times this close interrupted the process's running threads (membarrier) */
    uint32_t regions_returned;      /* of slabs_returned: regions, where objects lie one behind the other */
} EpochReceipt;

/* Writes the receipt as one line without an end of line: label, epoch, era, objects and bytes, what was returned and
 * deferred, interrupts, time in nanoseconds, resident bytes where they were measured. Writes at most n - 1 bytes and a
 * 0 to out (which may be NULL when n is 0). Returns the bytes of the whole text, without the 0, like snprintf: n or
 * more means that it was cut. Returns 0 for r NULL. The text does not depend on the locale; control characters in the
 * label are shown as '?'. Allocates nothing. */
SLAB_API size_t epoch_receipt_text(const EpochReceipt* r, char* out, size_t n);
/* Writes the same text on lines of at most `width` bytes, for a terminal: an end of line takes the place of some
 * spaces, so the text is as long. A word longer than `width` has a line of its own. out, n and the result are those of
 * epoch_receipt_text. */
SLAB_API size_t epoch_receipt_lines(const EpochReceipt* r, size_t width, char* out, size_t n);

/* ---- allocators ------------------------------------------------------------------------- */

/* Creates an allocator with default options. Returns NULL with errno if the system grants no memory; slab_last_error()
 * has the reason. Free with slab_allocator_free. O(1), a few system calls. */
SLAB_API SlabAllocator* slab_allocator_create(void);
/* Creates an allocator with the given options; NULL means defaults. Returns NULL with EINVAL for a bad option, else
 * like slab_allocator_create. */
SLAB_API SlabAllocator* slab_allocator_create_with(const SlabOptions* options);
/* Gives up one hold on an allocator made by slab_allocator_create*; the last holder (slab_allocator_retain) destroys
 * it, which ends all its objects. Does nothing for NULL. No thread may be inside a call on the allocator then; threads
 * that used it may live on. O(epochs). */
SLAB_API void slab_allocator_free(SlabAllocator* a);
/* Adds a holder to an allocator made by slab_allocator_create*, which the caller holds: destroying it then takes one
 * slab_allocator_free more. Returns a, or NULL with EINVAL if a is NULL or made by allocator_init. */
SLAB_API SlabAllocator* slab_allocator_retain(SlabAllocator* a);
/* Initialises caller-owned storage with default options. After a failure the allocator is valid and inert: every call
 * returns NULL, false or 0. */
SLAB_API void allocator_init(SlabAllocator* a);
/* Initialises with the given options. Returns false with slab_last_error() if it failed. */
SLAB_API bool allocator_init_with(SlabAllocator* a, const SlabOptions* options);
/* Ends an allocator made by allocator_init*; the storage may be initialised again. */
SLAB_API void allocator_destroy(SlabAllocator* a);

/* ---- objects ---------------------------------------------------------------------------- */

/* Allocates in the named epoch and writes the object's handle to *out (0 on failure; out may be NULL). Returns the
 * object, or NULL with errno. */
SLAB_API void* alloc_obj_epoch(SlabAllocator* a, uint32_t size, EpochId epoch, SlabHandle* out) SLAB_ALLOC_SIZE(2);
/* Allocates like alloc_obj_epoch, in the innermost domain of `a` on this thread, or in the current epoch if there is
 * none. */
SLAB_API void* alloc_obj(SlabAllocator* a, uint32_t size, SlabHandle* out) SLAB_ALLOC_SIZE(2);
/* Frees the object that handle h names. Returns true exactly once per object, however many threads try; false for 0 and
 * for a handle that is stale, forged or another allocator's. */
SLAB_API bool free_obj(SlabAllocator* a, SlabHandle h);

/* Allocates `size` bytes in the named epoch. Returns NULL with errno if it could not, here and below. */
SLAB_API void* slab_malloc_epoch(SlabAllocator* a, size_t size, EpochId epoch) SLAB_ALLOC_SIZE(2);
/* Allocates `size` bytes in the innermost domain of `a` on this thread, or in the current epoch if there is none. Never
 * refused because that epoch was advanced meanwhile. */
SLAB_API void* slab_malloc(SlabAllocator* a, size_t size) SLAB_ALLOC_SIZE(2);
/* Allocates like slab_malloc, but size 0 counts as 1. */
SLAB_API void* slab_malloc0(SlabAllocator* a, size_t size) SLAB_ALLOC;
/* Allocates `size` bytes in the current ring epoch, whatever scope the thread is in: a session made inside a request.
 * Never refused because that epoch was advanced meanwhile. */
SLAB_API void* slab_malloc_outside(SlabAllocator* a, size_t size) SLAB_ALLOC_SIZE(2);
/* Frees an object. Does nothing for NULL; refuses and counts a pointer that is no live object's. */
SLAB_API void slab_free(SlabAllocator* a, void* p);
/* Frees like slab_free. Returns false if the free was refused; true for NULL. */
SLAB_API bool slab_free_checked(SlabAllocator* a, void* p);
/* Frees like slab_free, and checks `size`, which was asked for: refused if the object is smaller. O(1), plus a byte
 * read for each 16 of an object in a region. */
SLAB_API void slab_free_sized(SlabAllocator* a, void* p, size_t size);
/* Frees like slab_free_sized. Returns false if the free was refused; true for NULL. */
SLAB_API bool slab_free_sized_checked(SlabAllocator* a, void* p, size_t size);
/* Allocates a zeroed array of n times `size` bytes. Returns NULL with EINVAL if the product is 0, ENOMEM if it
 * overflows. More than 256 KiB become resident only where they are touched, and cost no more than slab_malloc; under
 * the purge policies `free` and `never` memory that was in use before is purged, or read and zeroed where it is not
 * zero. */
SLAB_API void* slab_calloc(SlabAllocator* a, size_t n, size_t size) SLAB_ALLOC_ARRAY(2, 3);
/* Allocates like slab_calloc, in the named epoch. */
SLAB_API void* slab_calloc_epoch(SlabAllocator* a, size_t n, size_t size, EpochId epoch) SLAB_ALLOC_ARRAY(2, 3);
/* Resizes the block at p to `size` bytes. p NULL allocates; size 0 frees and returns NULL. Returns NULL with errno and
 * leaves the block as it was if it failed: EINVAL if p is no live object. The new block stays in the old one's epoch
 * while that is ACTIVE; afterwards it goes where slab_malloc would put it. A block over 128 KiB that grows has room
 * behind it: O(1) while that lasts, O(size) when it copies. */
SLAB_API void* slab_realloc(SlabAllocator* a, void* p, size_t size) SLAB_REALLOC_SIZE(3);
/* Resizes like slab_realloc, but a block that has to move goes to the named epoch. */
SLAB_API void* slab_realloc_epoch(SlabAllocator* a, void* p, size_t size, EpochId epoch) SLAB_REALLOC_SIZE(3);
/* Allocates `size` bytes at a multiple of `alignment`, a power of two up to 1 GiB. */
SLAB_API void* slab_aligned_alloc(SlabAllocator* a, size_t alignment, size_t size) SLAB_ALLOC_ALIGNED(2, 3);
/* Allocates like slab_aligned_alloc, in the named epoch. */
SLAB_API void* slab_aligned_alloc_epoch(SlabAllocator* a, size_t alignment, size_t size, EpochId epoch)
    SLAB_ALLOC_ALIGNED(2, 3);
/* Copy a string, a string of at most n bytes (and add a 0), or n bytes, to where slab_malloc would put them; the copy
 * is owned like any object. Return NULL with errno like slab_malloc; with EINVAL, counted as a bad size, if text or p
 * is NULL, and for memdup of 0 bytes. O(n). */
SLAB_API char* slab_strdup(SlabAllocator* a, const char* text) SLAB_ALLOC;
SLAB_API char* slab_strndup(SlabAllocator* a, const char* text, size_t n) SLAB_ALLOC;
SLAB_API void* slab_memdup(SlabAllocator* a, const void* p, size_t n) SLAB_ALLOC_SIZE(3);
/* Allocates the text that printf would write, of exactly its size. Returns NULL with errno like slab_malloc, and with
 * vsnprintf's errno if the format cannot be written. */
SLAB_API char* slab_asprintf(SlabAllocator* a, const char* format, ...) SLAB_ALLOC SLAB_FORMAT(2, 3);
/* Act like slab_strdup, slab_asprintf and slab_realloc, but outside of every scope like slab_malloc_outside: for
 * objects of a request that must outlive it. A block that need not move stays in its epoch. */
SLAB_API char* slab_strdup_outside(SlabAllocator* a, const char* text) SLAB_ALLOC;
SLAB_API char* slab_asprintf_outside(SlabAllocator* a, const char* format, ...) SLAB_ALLOC SLAB_FORMAT(2, 3);
SLAB_API void* slab_realloc_outside(SlabAllocator* a, void* p, size_t size) SLAB_REALLOC_SIZE(3);
/* Moves a live object out of its phase: copies its usable bytes to a new object, 16-byte aligned, in the ring's current
 * epoch and frees the old one, whose handles end. An object that outlives a drained phase in its old place keeps its
 * page committed; moving it avoids that. Returns the new object, or p if it is in the current epoch already; NULL with
 * errno, and leaves p as it was, if it failed: EINVAL (NULL, or no live object of a), ESTALE (p's phase ended
 * meanwhile), ENOMEM, EDQUOT. O(size). epoch_domain_move moves into a domain. */
SLAB_API void* slab_move_outside(SlabAllocator* a, void* p) SLAB_ALLOC;
/* Returns the usable bytes of a live object; 0 for any other pointer. Compilers hold a program to the size that it
 * asked for (alloc_size, _FORTIFY_SOURCE): to use all bytes, ask for slab_good_size. */
SLAB_API size_t slab_usable_size(SlabAllocator* a, const void* p);
/* Returns the size to ask for instead of `size` so that no byte of the object goes unused: such an object has exactly
 * that number of usable bytes, in every epoch. (An object asked for with `size` may have fewer in a region, where sizes
 * are only rounded to 16.) Returns 0 for sizes that cannot be served. */
SLAB_API size_t slab_good_size(SlabAllocator* a, size_t size);
/* Returns true if p lies where this allocator keeps or has kept objects: tells which allocator a pointer must be freed
 * with. Does not check whether an object starts there, or lives. */
SLAB_API bool slab_owns(SlabAllocator* a, const void* p);
/* Writes the epoch of a live object to *id and *era, which may be NULL. Returns false for any other pointer. */
SLAB_API bool slab_ptr_epoch(SlabAllocator* a, const void* p, EpochId* id, uint64_t* era);
/* Returns the object that handle h names, or NULL if it has ended. Another thread's free can overtake the answer. */
SLAB_API void* slab_handle_ptr(SlabAllocator* a, SlabHandle h);
/* Returns the handle of a live object; 0 for any other pointer, and without memory for handles. O(1); the first call
 * for an object in another thread's slab without handles interrupts the process's running threads once (membarrier). */
SLAB_API SlabHandle slab_ptr_handle(SlabAllocator* a, const void* p);
/* Gives empty slabs of all epochs and all warm pages back to the system. Interrupts running threads once
 * for each epoch in which other threads own slabs. O(slabs + epochs). */
SLAB_API void slab_trim(SlabAllocator* a);
/* Gives back the warm pages and the empty slabs of the calling thread. O(its slabs + epochs). */
SLAB_API void slab_thread_flush(SlabAllocator* a);
/* Fills *out with the counters of a class; zeroes it for a bad class. O(threads). */
SLAB_API void get_perf_counters(SlabAllocator* a, uint32_t size_class, PerfCounters* out);
/* Returns how many objects a slab of the class serving `size` holds, with default slab_bytes; 0 if no slab class serves
 * it. */
SLAB_API uint32_t slab_object_count(uint32_t size);
/* Returns the page size of the system in bytes. */
SLAB_API size_t slab_page_size(void);
/* Returns the time of CLOCK_MONOTONIC in nanoseconds. */
SLAB_API uint64_t slab_now_ns(void);
/* Returns the resident bytes of the process, from the kernel; 0 when unknown. */
SLAB_API uint64_t slab_rss_bytes(void);
/* Returns "major.minor.patch"; static storage. */
SLAB_API const char* slab_version(void);
/* Returns a sentence that says why the last create, init or option call of this thread failed, or its last call on a
 * domain that returns bool or a domain; "" if none did. After a create or init that succeeded: the words of
 * TSLAB_OPTIONS that were ignored, "" if none were. A call on a domain that succeeds leaves the sentence unchanged.
 * Thread-local storage, valid until the thread's next such call. */
SLAB_API const char* slab_last_error(void);
/* Returns an enum SlabError: why the last call of this thread that returned NULL or false was refused. Thread-local. A
 * call that succeeds leaves it unchanged, and so do calls that only ask (slab_owns, slab_ptr_epoch, slab_handle_ptr).
 * For callers where other code sets errno after the library's call. */
SLAB_API int slab_error(void);

/* ---- epochs ----------------------------------------------------------------------------- */

/* Returns the id of the current ring epoch. */
SLAB_API EpochId epoch_current(SlabAllocator* a);
/* Closes the current ring epoch to allocation and opens the next id as a new incarnation with a
 * larger era. Reclaims nothing, waits for nothing but a short lock, and never fails while fewer than 262,000
 * epochs are open or draining (then the current one stays). O(threads in the old epoch). */
SLAB_API void epoch_advance(SlabAllocator* a);
/* Advances like epoch_advance. Returns the new current id. */
SLAB_API EpochId epoch_advance_id(SlabAllocator* a);
/* Ends the incarnation that the id names by draining it; see epoch_close_ex. */
SLAB_API void epoch_close(SlabAllocator* a, EpochId epoch);
/* Ends the incarnation that the id names now, in the given mode, and fills *out if it is not NULL. If that is the
 * current one, the ring advances first: allocations that name no epoch go on in the next, those that name this one are
 * refused. Never waits for another thread; interrupts running threads once when they hold slabs of the epoch. Returns
 * false for a bad id. May be called in any state, any number of times. O(slabs of the epoch). */
SLAB_API bool epoch_close_ex(SlabAllocator* a, EpochId epoch, EpochCloseMode mode, EpochReceipt* out);
/* Ends the incarnation with this era like epoch_close_ex, also if the ring has moved past it. Returns false if it is
 * gone. O(ring epochs + threads) to find it; O(open epochs) after memory for the table of eras was short. */
SLAB_API bool epoch_close_era(SlabAllocator* a, uint64_t era, EpochCloseMode mode, EpochReceipt* out);
/* Returns the era of the incarnation that the id names now, at least 1; 0 if there is no such epoch. */
SLAB_API uint64_t epoch_era(SlabAllocator* a, EpochId epoch);
/* Returns the state of the incarnation that the id names now; CLOSING for a bad id. */
SLAB_API EpochLifecycleState epoch_state(SlabAllocator* a, EpochId epoch);
/* Sets the epoch's label: a copy of at most 31 bytes, cut at a UTF-8 boundary; NULL clears it. */
SLAB_API void slab_epoch_set_label(SlabAllocator* a, EpochId epoch, const char* label);
/* Change and return a count that the program may keep with the incarnation; dec stops at 0. */
SLAB_API void slab_epoch_inc_refcount(SlabAllocator* a, EpochId epoch);
SLAB_API void slab_epoch_dec_refcount(SlabAllocator* a, EpochId epoch);
SLAB_API uint64_t slab_epoch_get_refcount(SlabAllocator* a, EpochId epoch);

/* Registers fn(arg) to run once when the incarnation is released or has drained: the last registered first, on the
 * thread that ends it, with no lock held. fn may free but must not allocate in that epoch. Returns false if the epoch
 * is closed already or unknown, or memory is short. */
SLAB_API bool slab_epoch_on_end(SlabAllocator* a, EpochId epoch, void (*fn)(void* arg), void* arg);

/* Called when a budget is exceeded; `bytes` is the amount committed now. Runs on the allocating thread with no lock
 * held, and may allocate, free, reset, close and end epochs and domains, and change labels and budgets. Budgets that
 * its own allocations exceed act, but without a call while it runs. The allocation goes on where the thread is then; an
 * object in a phase that the function has released is not given out, but made again, or refused with ESTALE. */
typedef void (*SlabBudgetFn)(SlabAllocator* a, EpochId epoch, uint64_t bytes, bool hard, void* ctx);
/* Limit the bytes that an epoch, or all epochs of a label together, may commit: slabs and large objects, whether their
 * slots are used or not. So a budget acts in steps of a slab (SlabClassStats.slab_bytes), and `hard` is never exceeded.
 * 0 = no limit. fn, which may be NULL, is called once each time the amount rises past `soft`. Before an allocation
 * fails with EDQUOT because of `hard`, empty slabs of the epoch go back and fn is called once; if memory went back
 * meanwhile the allocation goes on. A later call replaces the budget; an epoch's ends with the incarnation, a label's
 * with the allocator. A label's budget is exact if it is set before the label is in use; if set later, up to 64 KiB a
 * thread count only from its next slab on. The bytes that a relabelled epoch brings along are never refused. Return
 * false for a bad id or label, or hard < soft (EINVAL); for a label that found no room (ENOMEM). */
SLAB_API bool slab_epoch_set_budget(SlabAllocator* a, EpochId epoch, size_t soft, size_t hard, SlabBudgetFn fn,
                                    void* ctx);
SLAB_API bool slab_label_set_budget(SlabAllocator* a, const char* label, size_t soft, size_t hard, SlabBudgetFn fn,
                                    void* ctx);

/* Lets each phase of the label leave `objects` objects of together `bytes` usable bytes behind as it is drained,
 * without an alarm: a response that is still being sent, an entry of a cache. Doctor and alerts report only a phase
 * that lets more escape, until it has drained; such phases are counted (SlabLabelStats.unexpected_phases). Phases that
 * drain already are judged by what they hold at this call. Escaped objects are counted and shown as before. 0 and 0
 * take the allowance back. Returns false for NULL or no label (EINVAL), for a label that found no room (ENOMEM). [any
 * thread] O(phases of the label that drain). */
SLAB_API bool slab_label_expect_escapes(SlabAllocator* a, const char* label, uint32_t objects, uint64_t bytes);

/* ---- typed allocation ------------------------------------------------------------------- */

/* Allocates for SLAB_NEW and SLAB_NEW_ARRAY. */
static inline void* slab_new_(SlabAllocator* a, size_t n, size_t size, size_t alignment) {
    const size_t most = PTRDIFF_MAX;                                  /* no cast: this is C++, too */
    if (size != 0 && n > most / size) return slab_calloc(a, n, size); /* which refuses it */
    return alignment <= 16 ? slab_malloc(a, n * size) : slab_aligned_alloc(a, alignment, n * size);
}

/* Allocate an object of a type, or an array of n, with the type's alignment, where slab_malloc would put it. Give a
 * pointer to the type, or NULL with errno: ENOMEM if n objects have more bytes than can be, EINVAL if n is 0. The bytes
 * are not set and no constructor runs. */
#ifdef __cplusplus
#define SLAB_NEW_ARRAY(a, type, n) (static_cast<type*>(slab_new_((a), (n), sizeof(type), alignof(type))))
#else
#define SLAB_NEW_ARRAY(a, type, n) ((type*)slab_new_((a), (n), sizeof(type), _Alignof(type)))
#endif
#define SLAB_NEW(a, type) SLAB_NEW_ARRAY(a, type, 1)

#ifdef __cplusplus
}
#endif
#endif
