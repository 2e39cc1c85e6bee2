/*
 * slab_alloc.h - objects and epochs of temporal-slab.
 *
 * An allocator hands out objects of any size and files each under an epoch, the phase of the program to which it
 * belongs. Ending the epoch returns its memory in one step.
 *
 * Conventions for every function below, unless its comment says otherwise
 *   units          sizes in bytes, times in nanoseconds (CLOCK_MONOTONIC)
 *   alignment      every object is 16-byte aligned. In a size class that is a power of two up to 256 KiB, an object is
 *                  aligned to its size; larger objects are aligned to 64 KiB. In a region, objects have no larger
 *                  alignment
 *   ownership      the caller owns an object from the call that returned it until the object is freed or its epoch is
 *                  released. No object ever moves, and none has a header
 *   thread safety  any thread may call anything at any time; any thread may free an object
 *   errors         a failed allocation returns NULL and sets errno to ENOMEM if there is no memory, and to EINVAL for
 *                  size 0, a bad alignment, epoch id or pointer, or a NULL allocator. The value is ESTALE if the epoch
 *                  no longer accepts allocations, and EDQUOT if a hard budget or max_bytes would be exceeded. Frees
 *                  never change errno. A stale, doubled, foreign or forged pointer or handle is refused and counted
 *                  (slab_stats_refusals); it never causes a crash. Every function accepts a NULL allocator.
 *   complexity     O(1) unless stated
 *   unloading      does not happen: a shared object that contains the static library stays loaded after dlclose,
 *                  because threads that have used the library run its code when they exit
 */
#ifndef SLAB_ALLOC_H
#define SLAB_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
/* If SLAB_STATIC is defined, the names below are hidden: a binary that contains the static library, such as a plugin,
 * does not export them. The static library itself is compiled with SLAB_STATIC. Its callers need not define it, but if
 * they do, their calls from position-independent code are direct. Never define it for a program that uses the shared
 * library, because the program would not link. */
#ifdef SLAB_STATIC
#define SLAB_API __attribute__((visibility("hidden")))
#else
#define SLAB_API __attribute__((visibility("default")))
#endif
/* Attributes that tell compilers about the allocation functions; n and m are the positions of arguments. The attribute
 * `malloc` is not among them, because it promises that only the returned pointer leads to the object. With it,
 * compilers would drop stores to an object that is then read through its handle (slab_handle_ptr) or found by a walk
 * (slab_epoch_walk). No deallocator is named, because objects that end with their epoch are not leaks. */
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

/* Nominal page size. The page size of the system is slab_page_size(), and the slab size of a class is
 * SlabClassStats.slab_bytes. */
#define SLAB_PAGE_SIZE 4096u

/* Number of size classes whose index and size never change: 0..7 = 64, 96, 128, 192, 256, 384, 512, 768 bytes. Further
 * classes follow after index 7. */
#define SLAB_FIXED_CLASSES 8u

/* Names an epoch: a ring id (0 .. ring_size-1), or the id of a domain's own epoch (top bit set). */
typedef uint32_t EpochId;

/* ACTIVE epochs accept allocations; CLOSING ones only frees. */
typedef enum EpochLifecycleState { EPOCH_ACTIVE = 0, EPOCH_CLOSING = 1 } EpochLifecycleState;

/* DRAIN: live objects stay valid, and their memory is returned as they are freed. RELEASE: every live object ends
 * immediately. */
typedef enum EpochCloseMode { EPOCH_DRAIN = 0, EPOCH_RELEASE = 1 } EpochCloseMode;

/* A checked name for an object; 0 names none. The handle of an object that has ended never matches again, even if a new
 * object uses the address. */
typedef uint64_t SlabHandle;

/* Storage of an allocator, which the caller embeds or allocates; the objects' memory is elsewhere. The storage must not
 * be moved or copied between allocator_init and allocator_destroy. */
typedef struct SlabAllocator {
    uint64_t opaque_[4];
} __attribute__((aligned(16))) SlabAllocator;

/* How empty pages are given back to the system. */
typedef enum SlabPurgePolicy {
    SLAB_PURGE_DONTNEED = 0, /* resident size falls immediately */
    SLAB_PURGE_FREE = 1,     /* MADV_FREE: cheaper, but resident size falls only under memory pressure */
    SLAB_PURGE_NEVER = 2     /* keep pages; memory is still reused */
} SlabPurgePolicy;

/* Kinds of misuse, which are reported to a misuse callback and counted by slab_stats_refusals. */
typedef enum SlabMisuse {
    SLAB_MISUSE_STALE_HANDLE = 0, /* handle of an object that has ended */
    SLAB_MISUSE_BAD_HANDLE,       /* forged bits or another allocator's handle */
    SLAB_MISUSE_DOUBLE_FREE,      /* the object is free already */
    SLAB_MISUSE_STALE_FREE,       /* the object's epoch was released, or its slab was returned */
    SLAB_MISUSE_INTERIOR_POINTER, /* not the start of an object */
    SLAB_MISUSE_FOREIGN_POINTER,  /* not of this allocator */
    SLAB_MISUSE_SIZE_MISMATCH,    /* slab_free_sized with a size the object cannot have */
    SLAB_MISUSE_BAD_EPOCH,        /* no such epoch id or era */
    SLAB_MISUSE_CLOSED_EPOCH,     /* allocation in an epoch that is not ACTIVE */
    SLAB_MISUSE_BAD_SIZE,         /* size 0 or over PTRDIFF_MAX, or n * size overflows */
    SLAB_MISUSE_DOMAIN_ORDER,     /* exit out of order or without enter; destroy while entered */
    SLAB_MISUSE_DOMAIN_STALE,     /* the domain's epoch has moved on */
    /* an object was written to after its end (option fill_freed); found before the memory is used again, and reported
     * with the address of the next object there */
    SLAB_MISUSE_WRITE_AFTER_END,
    SLAB_MISUSE_COUNT
} SlabMisuse;

/* Returns the one-word name of a kind of misuse, as in slab_stats_refusals and the outputs ("double_free"), or
 * "unknown" for any other number. The string is in static storage. */
SLAB_API const char* slab_misuse_name(SlabMisuse what);

/* Causes of refused calls, in more detail than errno gives; slab_error returns them. */
typedef enum SlabError {
    SLAB_ERROR_NONE = 0,  /* nothing has been refused on this thread yet */
    SLAB_ERROR_NO_MEMORY, /* memory or records ran out (ENOMEM) */
    SLAB_ERROR_BUDGET,    /* a hard budget or max_bytes would be exceeded (EDQUOT) */
    /* NULL, a bad option, an inert allocator, or a call that the object does not support (EINVAL) */
    SLAB_ERROR_ARGUMENT,
    SLAB_ERROR_SIZE,   /* size 0, too large or overflowing; a bad alignment (EINVAL, ENOMEM) */
    SLAB_ERROR_OBJECT, /* the pointer or handle is not a live object's, or the size is wrong (EINVAL) */
    SLAB_ERROR_EPOCH,  /* no such epoch id or era (EINVAL) */
    SLAB_ERROR_ENDED,  /* the epoch no longer accepts allocations, or the domain is gone (ESTALE) */
    SLAB_ERROR_BUSY,   /* another scope is inside the domain (EBUSY) */
    SLAB_ERROR_ORDER   /* the domain is not the thread's innermost scope, or not detached (EINVAL) */
} SlabError;

/* Called for each misuse, on the offending thread, with no lock held. `where` is the offending pointer or NULL. Misuse
 * by the function itself is counted, but does not call it again. The function must not destroy the allocator. */
typedef void (*SlabMisuseFn)(SlabAllocator* a, SlabMisuse what, const void* where, void* ctx);

/* Called when an allocator is destroyed, once for each epoch with live objects, if leak_report is set. */
typedef void (*SlabLeakFn)(SlabAllocator* a, const char* label, uint64_t era, uint64_t objects, uint64_t bytes,
                           void* ctx);

/* Options of an allocator. Fill it with zeros, set struct_size to sizeof(SlabOptions), and set the options that you
 * need; 0 means the default. The environment variable TSLAB_OPTIONS="name=value,..." overrides them, except in
 * set-user-id programs; sizes there may end with k, m or g. An unknown word or a value out of range is ignored, and
 * slab_last_error() names it after the allocator is created. A line on standard error names it too, once per process,
 * unless `quiet` or `misuse_fn` is set. See docs/options.md. */
typedef struct SlabOptions {
    size_t struct_size;       /* sizeof(SlabOptions) of the caller */
    uint32_t ring_size;       /* ring epochs: 2..1024, default 16 */
    uint32_t purge_policy;    /* SlabPurgePolicy, default DONTNEED */
    uint64_t reserve_bytes;   /* address space for objects: 16 MiB..64 GiB, default 64 GiB; halved
                               until the system grants it */
    uint64_t warm_bytes;      /* fixed budget of pages that no epoch owns, kept for reuse; UINT64_MAX: keep none;
                               0: the budget starts at 1 MiB and adapts */
    uint32_t slab_bytes;      /* minimum bytes of a slab, a power of two 4 KiB..64 KiB; default: by class */
    uint8_t prefault;         /* 1: touch pages as they are committed */
    uint8_t misuse_fatal;     /* 1: on misuse print its kind to standard error and abort() */
    uint8_t leak_report;      /* 1: call leak_fn for every epoch with live objects at destroy */
    uint8_t huge_pages;       /* 1: ask for transparent huge pages for objects */
    uint32_t max_labels;      /* label ids, "(unlabeled)" and "(other)" included: 3..4096, default 256 */
    uint32_t sampling_period; /* slow allocations per timed one, see slab_stats.h; 0: none timed, else 16..1048576 */
    /* maximum bytes of slabs and large objects committed at a time, at least 64 KiB; 0: no limit */
    uint64_t max_bytes;
    SlabMisuseFn misuse_fn;
    void* misuse_ctx;
    SlabLeakFn leak_fn;
    void* leak_ctx;
    uint8_t numa_local; /* 1: slabs come from the memory node of the thread that takes them */
    uint8_t segment;    /* 1: show the statistics to other processes of the user, see slab_segment.h */
    uint8_t shared;     /* 1: threads take turns with slabs that none owns, to save memory */
    /* where objects are packed in regions, one after another. 0 or 1: in domains, and the first 12 KiB of each thread
     * in each ring epoch. 2: nowhere, so that all are in size classes. 3: in domains only */
    uint8_t bump;
    /* 1: each object is a malloc block, so that tools see it; 2: never; 0: only under AddressSanitizer, LeakSanitizer,
     * MemorySanitizer or Valgrind's memcheck, see docs/sanitizers.md */
    uint8_t by_malloc;
    /* 1, for tests: pages of a released phase cannot be touched. An access prints to standard error which phase it was,
     * how long ago the phase ended, and where the object was allocated, see docs/late-access.md */
    uint8_t late_access;
    /* 1: the heap profile counts objects that outlive the end of their phase by the stack that made them. With
     * profile_bytes it counts sampled objects; otherwise every object of a domain, and nothing else. See
     * docs/profile.md */
    uint8_t escape_stacks;
    uint8_t reserved_[1];
    /* mean bytes allocated between two profiled allocations, see slab_profile_write; 0: no profile, else 512..2^40 */
    uint64_t profile_bytes;
    uint64_t warm_limit_bytes; /* upper limit of the adaptive warm budget, at least 1 MiB, default 64 MiB */
    uint8_t quiet;             /* 1: no line on standard error about ignored words of TSLAB_OPTIONS */
    /* milliseconds between searches for empty slabs of open epochs, which are then returned: 1..86400000; 0: empty
     * slabs stay until slab_trim or the end. Slow paths of allocations and frees search, and so do readers of
     * statistics */
    uint32_t decay_ms;
    /* allocations per guarded one: 1..1048576; 0: none. A guarded object lies on pages of its own before a guard page,
     * and any access after its end faults, see docs/late-access.md */
    uint32_t guard_period;
    /* 1: objects are zeroed when they end, and their memory is checked before it is used again, see docs/hardened.md */
    uint8_t fill_freed;
    uint8_t random_order; /* 1: an object takes a random ready slot instead of the next one; implies bump 2 */
    /* 1: turns on fill_freed, random_order, guard_sampling 5000 and quarantine_bytes 4 MiB, unless these options are
     * set */
    uint8_t hardened;
    /* mean allocations between two guarded ones, of which at most 256 exist at a time: 16..1048576; 0: none. Guarded
     * objects lie on pages of their own before a guard page, and any access after their end faults, see
     * docs/hardened.md */
    uint32_t guard_sampling;
    /* bytes of slabs of ended phases that are held back from reuse, see docs/hardened.md: 64 KiB..64 GiB; 0: none */
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

/* Receipt of an epoch's end: what the epoch held and what its end did. The equation objects_allocated == objects_freed
 * + objects_released + objects_escaped holds exactly, and so does the one for bytes. "Deferred" slabs were held by a
 * thread inside a call when the epoch was closed; that thread returns them when it leaves the call. Until then, no term
 * includes the objects in a deferred slab that its owner held. Bytes are usable bytes. */
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
    uint64_t close_ns;              /* duration of the close without measuring; 0 when the epoch held nothing */
    uint32_t interrupts;            /* times this close interrupted the process's running threads (membarrier) */
    uint32_t regions_returned;      /* those of slabs_returned that are regions */
} EpochReceipt;

/* Writes the receipt as one line without a newline. The line has the label, epoch, era, objects and bytes, the amounts
 * returned and deferred, interrupts, time in nanoseconds, and resident bytes if they were measured. Writes at most n -
 * 1 bytes and a 0 to out, which may be NULL if n is 0. Returns the length of the whole text without the 0, like
 * snprintf; a result of n or more means that the text was cut. Returns 0 if r is NULL. The text does not depend on the
 * locale, and control characters in the label are shown as '?'. Allocates nothing. */
SLAB_API size_t epoch_receipt_text(const EpochReceipt* r, char* out, size_t n);
/* Writes the text of epoch_receipt_text on lines of at most `width` bytes, for a terminal. Newlines replace some of the
 * spaces, so the length is unchanged. A word longer than `width` has a line of its own. The parameters out and n and
 * the result are those of epoch_receipt_text. */
SLAB_API size_t epoch_receipt_lines(const EpochReceipt* r, size_t width, char* out, size_t n);

/* ---- allocators ------------------------------------------------------------------------- */

/* Creates an allocator with default options. Returns NULL and sets errno if the system grants no memory;
 * slab_last_error() gives the reason. Free the allocator with slab_allocator_free. O(1), a few system calls. */
SLAB_API SlabAllocator* slab_allocator_create(void);
/* Creates an allocator with the given options; NULL means defaults. Returns NULL and sets errno to EINVAL for a bad
 * option; otherwise fails like slab_allocator_create. */
SLAB_API SlabAllocator* slab_allocator_create_with(const SlabOptions* options);
/* Gives up one hold on an allocator made by slab_allocator_create*. Giving up the last hold (see slab_allocator_retain)
 * destroys the allocator, which ends all its objects. Does nothing for NULL. No thread may be inside a call on the
 * allocator when it is destroyed, but threads that used it may live on. O(epochs). */
SLAB_API void slab_allocator_free(SlabAllocator* a);
/* Adds a hold on an allocator that was made by slab_allocator_create* and that the caller holds. Destroying the
 * allocator then takes one more slab_allocator_free. Returns a. If a is NULL or was made by allocator_init, returns
 * NULL and sets errno to EINVAL. */
SLAB_API SlabAllocator* slab_allocator_retain(SlabAllocator* a);
/* Initialises caller-owned storage with default options. After a failure the allocator is valid but inert: every call
 * on it returns NULL, false or 0. */
SLAB_API void allocator_init(SlabAllocator* a);
/* Initialises caller-owned storage with the given options. On failure, returns false, and slab_last_error() gives the
 * reason. */
SLAB_API bool allocator_init_with(SlabAllocator* a, const SlabOptions* options);
/* Ends an allocator made by allocator_init*. The storage may then be initialised again. */
SLAB_API void allocator_destroy(SlabAllocator* a);

/* ---- objects ---------------------------------------------------------------------------- */

/* Allocates in the named epoch and writes the object's handle to *out (0 on failure; out may be NULL). Returns the
 * object; on failure, returns NULL and sets errno. */
SLAB_API void* alloc_obj_epoch(SlabAllocator* a, uint32_t size, EpochId epoch, SlabHandle* out) SLAB_ALLOC_SIZE(2);
/* Allocates like alloc_obj_epoch, in the innermost domain of `a` on this thread, or in the current epoch if there is
 * none. */
SLAB_API void* alloc_obj(SlabAllocator* a, uint32_t size, SlabHandle* out) SLAB_ALLOC_SIZE(2);
/* Frees the object that handle h names. Returns true exactly once per object, however many threads try. Returns false
 * for 0 and for a handle that is stale, forged or another allocator's. */
SLAB_API bool free_obj(SlabAllocator* a, SlabHandle h);

/* Allocates `size` bytes in the named epoch. On failure, this function and those below return NULL and set errno. */
SLAB_API void* slab_malloc_epoch(SlabAllocator* a, size_t size, EpochId epoch) SLAB_ALLOC_SIZE(2);
/* Allocates `size` bytes in the innermost domain of `a` on this thread, or in the current epoch if there is none. The
 * allocation is never refused because the ring advanced meanwhile. */
SLAB_API void* slab_malloc(SlabAllocator* a, size_t size) SLAB_ALLOC_SIZE(2);
/* Allocates like slab_malloc, but size 0 counts as 1. */
SLAB_API void* slab_malloc0(SlabAllocator* a, size_t size) SLAB_ALLOC;
/* Allocates `size` bytes in the current ring epoch, whatever scope the thread is in, for example for a session that a
 * request makes. If the ring advances during the call, the allocation is not refused for that reason. */
SLAB_API void* slab_malloc_outside(SlabAllocator* a, size_t size) SLAB_ALLOC_SIZE(2);
/* Frees an object. Does nothing for NULL; refuses and counts a pointer that is not a live object. */
SLAB_API void slab_free(SlabAllocator* a, void* p);
/* Frees like slab_free. Returns true, also for NULL, unless the free was refused. */
SLAB_API bool slab_free_checked(SlabAllocator* a, void* p);
/* Frees like slab_free, but refuses if the object is smaller than `size`, the size that was asked for. O(1), plus one
 * byte read for every 16 bytes of an object in a region. */
SLAB_API void slab_free_sized(SlabAllocator* a, void* p, size_t size);
/* Frees like slab_free_sized. Returns true, also for NULL, unless the free was refused. */
SLAB_API bool slab_free_sized_checked(SlabAllocator* a, void* p, size_t size);
/* Allocates a zeroed array of n times `size` bytes. Returns NULL and sets errno to EINVAL if the product is 0, or to
 * ENOMEM if it overflows. An array of more than 256 KiB becomes resident only where it is touched, and costs no more
 * than slab_malloc. Under the purge policies `free` and `never`, memory that was in use before is purged, or read and
 * zeroed where it is not zero. */
SLAB_API void* slab_calloc(SlabAllocator* a, size_t n, size_t size) SLAB_ALLOC_ARRAY(2, 3);
/* Allocates like slab_calloc, in the named epoch. */
SLAB_API void* slab_calloc_epoch(SlabAllocator* a, size_t n, size_t size, EpochId epoch) SLAB_ALLOC_ARRAY(2, 3);
/* Resizes the block at p to `size` bytes. If p is NULL, allocates. If `size` is 0, frees p and returns NULL. On
 * failure, returns NULL, sets errno (EINVAL if p is not a live object) and leaves the block as it was. The new block
 * stays in the old one's epoch while that epoch is ACTIVE; afterwards it goes where slab_malloc would put it. A block
 * over 128 KiB that grows gets spare room: O(1) while the room lasts, O(size) when the block is copied. */
SLAB_API void* slab_realloc(SlabAllocator* a, void* p, size_t size) SLAB_REALLOC_SIZE(3);
/* Resizes like slab_realloc, but a block that has to move goes to the named epoch. */
SLAB_API void* slab_realloc_epoch(SlabAllocator* a, void* p, size_t size, EpochId epoch) SLAB_REALLOC_SIZE(3);
/* Allocates `size` bytes at a multiple of `alignment`, a power of two up to 1 GiB. */
SLAB_API void* slab_aligned_alloc(SlabAllocator* a, size_t alignment, size_t size) SLAB_ALLOC_ALIGNED(2, 3);
/* Allocates like slab_aligned_alloc, in the named epoch. */
SLAB_API void* slab_aligned_alloc_epoch(SlabAllocator* a, size_t alignment, size_t size, EpochId epoch)
    SLAB_ALLOC_ALIGNED(2, 3);
/* Copy a string, at most n bytes of a string (adding a 0), or n bytes, to where slab_malloc would put them. The copy is
 * owned like any object. On failure, return NULL and set errno like slab_malloc. If text or p is NULL, or slab_memdup
 * gets 0 bytes, errno is EINVAL and a bad size is counted. O(n). */
SLAB_API char* slab_strdup(SlabAllocator* a, const char* text) SLAB_ALLOC;
SLAB_API char* slab_strndup(SlabAllocator* a, const char* text, size_t n) SLAB_ALLOC;
SLAB_API void* slab_memdup(SlabAllocator* a, const void* p, size_t n) SLAB_ALLOC_SIZE(3);
/* Formats text like printf into an object of exactly its size. On failure, returns NULL and sets errno like
 * slab_malloc; if the format cannot be written, errno is that of vsnprintf. */
SLAB_API char* slab_asprintf(SlabAllocator* a, const char* format, ...) SLAB_ALLOC SLAB_FORMAT(2, 3);
/* Act like slab_strdup, slab_asprintf and slab_realloc, but outside every scope, like slab_malloc_outside. Use them for
 * objects of a request that must outlive it. A block that need not move stays in its epoch. */
SLAB_API char* slab_strdup_outside(SlabAllocator* a, const char* text) SLAB_ALLOC;
SLAB_API char* slab_asprintf_outside(SlabAllocator* a, const char* format, ...) SLAB_ALLOC SLAB_FORMAT(2, 3);
SLAB_API void* slab_realloc_outside(SlabAllocator* a, void* p, size_t size) SLAB_REALLOC_SIZE(3);
/* Moves a live object out of its phase, into the ring's current epoch. Copies the object's usable bytes to a new,
 * 16-byte aligned object, and frees the old one, whose handles end. An object that stays in a drained phase keeps its
 * page committed; moving the object avoids that. Returns the new object, or p if it is in the current epoch already. On
 * failure, returns NULL and leaves p as it was. Then errno is EINVAL (p is NULL or not a live object of a), ESTALE (p's
 * phase has ended meanwhile), ENOMEM or EDQUOT. O(size). epoch_domain_move moves an object into a domain. */
SLAB_API void* slab_move_outside(SlabAllocator* a, void* p) SLAB_ALLOC;
/* Returns the number of usable bytes of a live object, or 0 for any other pointer. Compilers hold a program to the size
 * that it asked for (alloc_size, _FORTIFY_SOURCE); to use all bytes, ask for a size from slab_good_size. */
SLAB_API size_t slab_usable_size(SlabAllocator* a, const void* p);
/* Returns the size to ask for instead of `size` so that no byte of the object goes unused. An object of the returned
 * size has exactly that number of usable bytes, in every epoch. In a region, where sizes are only rounded up to 16, an
 * object of `size` bytes may have fewer. Returns 0 for sizes that cannot be served. */
SLAB_API size_t slab_good_size(SlabAllocator* a, size_t size);
/* Returns true if p lies where this allocator keeps or has kept objects, so that p can only be freed with this
 * allocator. Does not check that a live object starts at p. */
SLAB_API bool slab_owns(SlabAllocator* a, const void* p);
/* Writes the epoch of a live object to *id and *era, which may be NULL. Returns false for any other pointer. */
SLAB_API bool slab_ptr_epoch(SlabAllocator* a, const void* p, EpochId* id, uint64_t* era);
/* Returns the object that handle h names, or NULL if it has ended. Another thread may free the object before the caller
 * uses the answer. */
SLAB_API void* slab_handle_ptr(SlabAllocator* a, SlabHandle h);
/* Returns the handle of a live object; 0 for any other pointer, or if there is no memory for handles. O(1). If the
 * object is in another thread's slab that has no handles yet, the call interrupts the process's running threads once
 * (membarrier). */
SLAB_API SlabHandle slab_ptr_handle(SlabAllocator* a, const void* p);
/* Gives empty slabs of all epochs and all warm pages back to the system. Interrupts running threads once
 * for each epoch in which other threads own slabs. O(slabs + epochs). */
SLAB_API void slab_trim(SlabAllocator* a);
/* Gives back the warm pages and the empty slabs of the calling thread. O(its slabs + epochs). */
SLAB_API void slab_thread_flush(SlabAllocator* a);
/* Fills *out with the counters of a class, or with zeros for a bad class. O(threads). */
SLAB_API void get_perf_counters(SlabAllocator* a, uint32_t size_class, PerfCounters* out);
/* Returns the number of objects that a slab of the class for `size` holds with default slab_bytes, or 0 if no slab
 * class serves that size. */
SLAB_API uint32_t slab_object_count(uint32_t size);
/* Returns the page size of the system in bytes. */
SLAB_API size_t slab_page_size(void);
/* Returns the time of CLOCK_MONOTONIC in nanoseconds. */
SLAB_API uint64_t slab_now_ns(void);
/* Returns the resident bytes of the process as reported by the kernel, or 0 if they are unknown. */
SLAB_API uint64_t slab_rss_bytes(void);
/* Returns "major.minor.patch", a string in static storage. */
SLAB_API const char* slab_version(void);
/* Returns a sentence that says why this thread's last create, init or option call failed, or its last domain call that
 * returns bool or a domain; "" if none failed. After a create or init that succeeded, the sentence names the words of
 * TSLAB_OPTIONS that were ignored; "" if none were. A domain call that succeeds leaves the sentence unchanged. The
 * sentence is in thread-local storage and stays valid until the thread's next such call. */
SLAB_API const char* slab_last_error(void);
/* Returns the SlabError that says why this thread's last call that returned NULL or false was refused. A call that
 * succeeds leaves it unchanged, and so do calls that only ask (slab_owns, slab_ptr_epoch, slab_handle_ptr). Use it
 * where other code sets errno after the library's call. */
SLAB_API int slab_error(void);

/* ---- epochs ----------------------------------------------------------------------------- */

/* Returns the id of the current ring epoch. */
SLAB_API EpochId epoch_current(SlabAllocator* a);
/* Closes the current ring epoch to allocation and opens the next id as a new incarnation with a larger era. Reclaims
 * nothing, waits only for a short lock, and never fails while fewer than 262,000 epochs are open or draining. If it
 * fails, the current epoch stays. O(threads in the old epoch). */
SLAB_API void epoch_advance(SlabAllocator* a);
/* Advances like epoch_advance. Returns the new current id. */
SLAB_API EpochId epoch_advance_id(SlabAllocator* a);
/* Ends the incarnation that the id names now by draining it; see epoch_close_ex. */
SLAB_API void epoch_close(SlabAllocator* a, EpochId epoch);
/* Ends the incarnation that the id names now, in the given mode, and fills *out if it is not NULL. If that is the
 * current epoch, the ring advances first: allocations that name no epoch go on in the next epoch, and those that name
 * this one are refused. Never waits for another thread, but interrupts running threads once if they hold slabs of the
 * epoch. Returns false for a bad id. The epoch may be in any state, and may be closed any number of times. O(slabs of
 * the epoch). */
SLAB_API bool epoch_close_ex(SlabAllocator* a, EpochId epoch, EpochCloseMode mode, EpochReceipt* out);
/* Ends the incarnation with this era like epoch_close_ex, even if the ring has moved past it. Returns false if the
 * incarnation is gone. Finding it is O(ring epochs + threads), or O(open epochs) once memory for the table of eras has
 * run out. */
SLAB_API bool epoch_close_era(SlabAllocator* a, uint64_t era, EpochCloseMode mode, EpochReceipt* out);
/* Returns the era of the incarnation that the id names now, which is at least 1, or 0 if there is no such epoch. */
SLAB_API uint64_t epoch_era(SlabAllocator* a, EpochId epoch);
/* Returns the state of the incarnation that the id names now; CLOSING for a bad id. */
SLAB_API EpochLifecycleState epoch_state(SlabAllocator* a, EpochId epoch);
/* Sets the epoch's label to a copy of at most 31 bytes of `label`, cut at a UTF-8 boundary. NULL clears the label. */
SLAB_API void slab_epoch_set_label(SlabAllocator* a, EpochId epoch, const char* label);
/* Change and return a count that the program may keep with the incarnation; the decrement stops at 0. */
SLAB_API void slab_epoch_inc_refcount(SlabAllocator* a, EpochId epoch);
SLAB_API void slab_epoch_dec_refcount(SlabAllocator* a, EpochId epoch);
SLAB_API uint64_t slab_epoch_get_refcount(SlabAllocator* a, EpochId epoch);

/* Registers fn(arg) to run once when the incarnation is released or has drained. Functions run in reverse order of
 * registration, on the thread that ends the incarnation, with no lock held. fn may free but must not allocate in that
 * epoch. Returns false if the epoch is unknown or already closed, or if memory runs out. */
SLAB_API bool slab_epoch_on_end(SlabAllocator* a, EpochId epoch, void (*fn)(void* arg), void* arg);

/* Called when a budget is exceeded; `bytes` is the amount committed now. The function runs on the allocating thread
 * with no lock held. There it may allocate, free, reset, close and end epochs and domains, and change labels and
 * budgets. Budgets limit its own allocations too, but no budget function is called while it runs. Afterwards, the
 * allocation goes on in the scope that the thread is in then. An object in a phase that the function has released is
 * not returned, but allocated again or refused with ESTALE. */
typedef void (*SlabBudgetFn)(SlabAllocator* a, EpochId epoch, uint64_t bytes, bool hard, void* ctx);
/* Limit the bytes that an epoch, or all epochs of a label together, may commit for slabs and large objects, whether or
 * not their slots are in use. So a budget acts in steps of a slab (SlabClassStats.slab_bytes), and `hard` is never
 * exceeded. 0 means no limit. fn, which may be NULL, is called once each time the amount rises past `soft`. Before an
 * allocation fails with EDQUOT because of `hard`, empty slabs of the epoch are returned and fn is called once. If
 * memory was returned meanwhile, the allocation goes on. A later call replaces the budget. The budget of an epoch ends
 * with the incarnation, that of a label with the allocator. A label's budget is exact if it is set before the label is
 * in use. If it is set later, up to 64 KiB per thread count only from the thread's next slab on. The bytes that a
 * relabelled epoch brings along are never refused. Return false and set errno to EINVAL for a bad id or label or if
 * hard < soft, and to ENOMEM for a label that found no room. */
SLAB_API bool slab_epoch_set_budget(SlabAllocator* a, EpochId epoch, size_t soft, size_t hard, SlabBudgetFn fn,
                                    void* ctx);
SLAB_API bool slab_label_set_budget(SlabAllocator* a, const char* label, size_t soft, size_t hard, SlabBudgetFn fn,
                                    void* ctx);

/* Lets each phase of the label leave behind, without an alarm, up to `objects` objects with `bytes` usable bytes in
 * total when it is drained. Examples are a response that is still being sent and a cache entry. The doctor and the
 * alerts report only phases that let more escape, until they have drained; such phases are counted
 * (SlabLabelStats.unexpected_phases). Phases that are draining already are judged by what they hold at this call.
 * Escaped objects are counted and shown as before. If both amounts are 0, the allowance is withdrawn. Returns false and
 * sets errno to EINVAL if a is NULL or the label is NULL or empty, and to ENOMEM if the label found no room. [any
 * thread] O(draining phases of the label). */
SLAB_API bool slab_label_expect_escapes(SlabAllocator* a, const char* label, uint32_t objects, uint64_t bytes);

/* ---- typed allocation ------------------------------------------------------------------- */

/* Allocates for SLAB_NEW and SLAB_NEW_ARRAY. */
static inline void* slab_new_(SlabAllocator* a, size_t n, size_t size, size_t alignment) {
    const size_t most = PTRDIFF_MAX;                                  /* no cast: this is also C++ */
    if (size != 0 && n > most / size) return slab_calloc(a, n, size); /* slab_calloc refuses it */
    return alignment <= 16 ? slab_malloc(a, n * size) : slab_aligned_alloc(a, alignment, n * size);
}

/* Allocate an object of a type, or an array of n, with the type's alignment, where slab_malloc would put it. Yield a
 * pointer to the type. On failure, yield NULL and set errno to EINVAL if n is 0, or to ENOMEM if the size overflows.
 * The bytes are not initialised, and no constructor runs. */
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
