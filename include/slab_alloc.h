/*
 * slab_alloc.h - objects and epochs of temporal-slab.
 *
 * An allocator provides objects of any size. Each object is placed in an epoch, which stands for a phase of the
 * program, such as a request or a frame. Ending the epoch either frees its remaining objects in one step or leaves
 * them live until the program frees them (EpochCloseMode).
 *
 * Terms
 *   ring         The epochs with ids 0 to ring_size-1 (see SlabOptions). Exactly one of them is current, and
 *                epoch_advance makes the next one current.
 *   domain       A scope that threads enter and leave (see epoch_domain.h). Each domain has an epoch of its own or
 *                borrows an epoch of the ring.
 *   incarnation  One use of an epoch id. Every incarnation has an era, a number that the allocator never reuses.
 *   slab         A contiguous block of pages that is assigned to one incarnation and later returned to the allocator as
 *                a whole. All objects in a slab have the same size class, unless the slab is a region.
 *   region       A slab that stores objects of different sizes one after another.
 *   label        A name for a kind of phase, such as "GET /page". The program can read statistics and set budgets for
 *                each label.
 *
 * These conventions apply to every function below unless its comment says otherwise.
 *   units          Sizes are in bytes, and times are in nanoseconds (CLOCK_MONOTONIC).
 *   alignment      Every object is 16-byte aligned. An object whose size class is a power of two up to 256 KiB is
 *                  aligned to the size of the class. Objects of more than 256 KiB are aligned to 64 KiB. In a region,
 *                  only the 16-byte alignment is guaranteed.
 *   ownership      The caller owns an object until the end of its lifetime, that is, until the object is freed or its
 *                  epoch is released. The allocator never moves an object on its own. Objects have no headers.
 *   thread safety  Any thread may call any function at any time and may free any object.
 *   errors         A failed allocation returns NULL and sets errno. EINVAL means that the size is 0, that the
 *                  alignment, epoch id or pointer is bad, or that the allocator is NULL. ENOMEM means that memory ran
 *                  out or that the size is too large. ESTALE means that the epoch no longer accepts allocations. EDQUOT
 *                  means that the allocation would exceed a hard budget or max_bytes. EBUSY means that the epoch
 *                  belongs to another thread's SLAB_DOMAIN_OWNER_ONLY domain. Frees never change errno. Every function
 *                  accepts a NULL allocator.
 *   misuse         The library refuses and counts stale, foreign and forged pointers and handles, as well as double
 *                  frees (see slab_stats_refusals). A stale pointer is not detected if a new object uses its address.
 *                  Detected misuse crashes the program only if the option misuse_fatal is set.
 *   complexity     Every function takes constant time, O(1).
 *   unloading      A shared object that contains the static library stays loaded after dlclose, because threads that
 *                  have used the library run its code when they exit.
 */
#ifndef SLAB_ALLOC_H
#define SLAB_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
/* If SLAB_STATIC is defined, the names below have hidden visibility, so plugins and other binaries that contain the
 * static library do not export these names. The static library itself is compiled with SLAB_STATIC. A program that
 * links the static library may define SLAB_STATIC too, so that its position-independent code calls the library
 * directly. Never define SLAB_STATIC for a program that uses the shared library, because the program would not link. */
#ifdef SLAB_STATIC
#define SLAB_API __attribute__((visibility("hidden")))
#else
#define SLAB_API __attribute__((visibility("default")))
#endif
/* Attributes that describe the allocation functions to the compiler. The macro parameters n and m are argument
 * positions, counted from 1. The attribute `malloc` is omitted, because it promises that the object can be reached only
 * through the returned pointer. Relying on that promise, a compiler could drop stores to an object that the program
 * later reads through a handle (slab_handle_ptr) or a walk (slab_epoch_walk). The attributes name no deallocator, so
 * that compilers do not report a leak for objects that are freed by ending their epoch. */
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

/* Nominal page size. Call slab_page_size() for the page size of the system. SlabClassStats.slab_bytes contains the slab
 * size of a size class. */
#define SLAB_PAGE_SIZE 4096u

/* Number of size classes that keep their index and size in every version of the library. The sizes of classes 0 to 7
 * are 64, 96, 128, 192, 256, 384, 512 and 768 bytes. Other classes have higher indices. */
#define SLAB_FIXED_CLASSES 8u

/* Id of an epoch. Ring epochs have the ids 0 to ring_size-1. The id of an epoch that belongs to a domain has its top
 * bit set. */
typedef uint32_t EpochId;

/* State of an epoch. ACTIVE epochs accept allocations and frees; CLOSING epochs accept only frees. */
typedef enum EpochLifecycleState { EPOCH_ACTIVE = 0, EPOCH_CLOSING = 1 } EpochLifecycleState;

/* Ways to end an epoch. EPOCH_DRAIN keeps each live object valid until the program frees it. EPOCH_RELEASE frees every
 * live object immediately. */
typedef enum EpochCloseMode { EPOCH_DRAIN = 0, EPOCH_RELEASE = 1 } EpochCloseMode;

/* Checked reference to an object; 0 refers to no object. After the lifetime of the object has ended, the handle never
 * becomes valid again, even if a new object uses the same address. */
typedef uint64_t SlabHandle;

/* Storage for an allocator, but not for its objects. Do not move or copy the storage between allocator_init and
 * allocator_destroy. */
typedef struct SlabAllocator {
    uint64_t opaque_[4];
} __attribute__((aligned(16))) SlabAllocator;

/* Policies for returning empty pages to the system. */
typedef enum SlabPurgePolicy {
    SLAB_PURGE_DONTNEED = 0, /* MADV_DONTNEED: the resident size falls immediately */
    SLAB_PURGE_FREE = 1,     /* MADV_FREE: cheap, but the resident size falls only under memory pressure */
    SLAB_PURGE_NEVER = 2     /* pages are not returned, but the allocator reuses them */
} SlabPurgePolicy;

/* Kinds of misuse. Each misuse is counted (see slab_stats_refusals) and reported to the misuse callback, if one is
 * set. */
typedef enum SlabMisuse {
    SLAB_MISUSE_STALE_HANDLE = 0, /* a handle to an object that no longer exists */
    SLAB_MISUSE_BAD_HANDLE,       /* a forged handle, or a handle of another allocator */
    SLAB_MISUSE_DOUBLE_FREE,      /* a free of an object that is already free */
    SLAB_MISUSE_STALE_FREE,       /* a free of an object whose epoch was released or whose slab was taken back */
    SLAB_MISUSE_INTERIOR_POINTER, /* a pointer that is not the start of an object */
    SLAB_MISUSE_FOREIGN_POINTER,  /* a pointer that is outside the memory of this allocator */
    SLAB_MISUSE_SIZE_MISMATCH,    /* a size, passed to slab_free_sized, that is larger than the object */
    SLAB_MISUSE_BAD_EPOCH,        /* an epoch id or era that does not exist */
    SLAB_MISUSE_CLOSED_EPOCH,     /* an allocation in an epoch that is not ACTIVE */
    SLAB_MISUSE_BAD_SIZE,         /* size 0, a size over PTRDIFF_MAX, an n * size that overflows, or a bad alignment */
    SLAB_MISUSE_DOMAIN_ORDER,     /* a domain call out of order, such as an exit without an enter */
    SLAB_MISUSE_DOMAIN_STALE,     /* a domain that has ended, or whose borrowed ring epoch is no longer current */
    /* a write to an object whose lifetime has ended (option fill_freed). The library detects the write when it reuses
     * the memory for another object, and reports the address of that object */
    SLAB_MISUSE_WRITE_AFTER_END,
    SLAB_MISUSE_COUNT
} SlabMisuse;

/* Returns the one-word name of a kind of misuse, such as "double_free", or "unknown" if `what` is not a kind of misuse.
 * Statistics and reports use the same names. The string is in static storage. */
SLAB_API const char* slab_misuse_name(SlabMisuse what);

/* Causes of refused calls, in more detail than errno. See slab_error. */
typedef enum SlabError {
    SLAB_ERROR_NONE = 0,  /* no call has been refused on this thread yet */
    SLAB_ERROR_NO_MEMORY, /* a lack of memory or of internal records (ENOMEM) */
    SLAB_ERROR_BUDGET,    /* an allocation that would exceed a hard budget or max_bytes (EDQUOT) */
    /* a NULL argument, a bad option, an allocator whose initialization failed, or a call that this kind of domain or
     * allocator does not support (EINVAL) */
    SLAB_ERROR_ARGUMENT,
    SLAB_ERROR_SIZE,   /* size 0, a size that is too large or overflows, or a bad alignment (EINVAL, ENOMEM) */
    SLAB_ERROR_OBJECT, /* a pointer or handle that does not refer to a live object, or a wrong size (EINVAL) */
    SLAB_ERROR_EPOCH,  /* an epoch id or era that does not exist (EINVAL) */
    SLAB_ERROR_ENDED,  /* an epoch that accepts no more allocations, or a domain that has ended (ESTALE) */
    SLAB_ERROR_BUSY,   /* a domain that another scope or thread is using (EBUSY) */
    SLAB_ERROR_ORDER   /* a domain that is not the thread's innermost scope, or has no detached scope (EINVAL) */
} SlabError;

/* Misuse callback. The library calls this function for each misuse, on the offending thread, with no lock held. `where`
 * is the offending pointer or NULL. Misuse inside the callback is counted, but the callback is not called for it. The
 * callback must not destroy the allocator. */
typedef void (*SlabMisuseFn)(SlabAllocator* a, SlabMisuse what, const void* where, void* ctx);

/* Leak callback. If leak_report is set, the library calls this function when an allocator is destroyed, once for each
 * epoch that still has live objects. */
typedef void (*SlabLeakFn)(SlabAllocator* a, const char* label, uint64_t era, uint64_t objects, uint64_t bytes,
                           void* ctx);

/* Options of an allocator. Fill the struct with zeros, set struct_size to sizeof(SlabOptions), and set the options that
 * you need. A field that is 0 selects the default.
 *
 * The environment variable TSLAB_OPTIONS="name=value,..." overrides the options that it names, except in set-user-id
 * and set-group-id programs. Sizes in the variable may end with k, m or g. The value 0 selects the default of an option
 * whose range lacks 0. The library ignores unknown words and other out-of-range values in the variable. After the
 * allocator is created, slab_last_error() names the ignored words and values. The library also prints these words and
 * values to standard error, once per process, unless `quiet` or `misuse_fn` is set. See docs/options.md. */
typedef struct SlabOptions {
    size_t struct_size;       /* sizeof(SlabOptions) of the caller */
    uint32_t ring_size;       /* number of ring epochs: 2..1024, default 16 */
    uint32_t purge_policy;    /* a SlabPurgePolicy, default SLAB_PURGE_DONTNEED */
    uint64_t reserve_bytes;   /* address space to reserve for objects: 16 MiB..64 GiB, default 64 GiB; if the system
                               refuses the reservation, the library tries half, a quarter, and so on */
    uint64_t warm_bytes;      /* maximum bytes of unused pages to keep for reuse; UINT64_MAX: keep none;
                               0: an adaptive maximum that starts at 1 MiB */
    uint32_t slab_bytes;      /* minimum slab size: a power of two from 4 KiB to 64 KiB; 0: depends on the class */
    uint8_t prefault;         /* 1: touch pages when they are committed */
    uint8_t misuse_fatal;     /* 1: on misuse, print its kind to standard error and call abort() */
    uint8_t leak_report;      /* 1: when the allocator is destroyed, call leak_fn for every epoch with live objects */
    uint8_t huge_pages;       /* 1: request transparent huge pages for objects */
    uint32_t max_labels;      /* maximum label count, including "(unlabeled)" and "(other)": 3..4096, default 256 */
    uint32_t sampling_period; /* time one of every N slow allocations, N = 16..1048576; 0: none. See slab_stats.h */
    /* limit on the memory committed for slabs and large objects, in bytes: at least 64 KiB; 0: no limit */
    uint64_t max_bytes;
    SlabMisuseFn misuse_fn;
    void* misuse_ctx;
    SlabLeakFn leak_fn;
    void* leak_ctx;
    uint8_t numa_local; /* 1: take slabs from the NUMA node of the calling thread */
    uint8_t segment;    /* 1: publish the statistics to other processes of the same user. See slab_segment.h */
    uint8_t shared;     /* 1: let threads share slabs under a lock, which saves memory but costs speed */
    /* use of regions for objects of up to 4 KiB. 0 or 1: in domains, and for the first 12 KiB that each thread
     * allocates in each ring epoch. 2: never. 3: in domains only */
    uint8_t bump;
    /* 1: allocate each object with malloc, so that memory checkers see it. 2: never. 0: only under AddressSanitizer,
     * LeakSanitizer, MemorySanitizer or Valgrind's memcheck. See docs/sanitizers.md */
    uint8_t by_malloc;
    /* 1, for tests: an access to a page of an ended phase faults if the page has no live objects. A report on standard
     * error names the phase, the time since its end, and the code that allocated the accessed object. See
     * docs/late-access.md */
    uint8_t late_access;
    /* 1: the heap profile counts objects that outlive their phase, grouped by allocation stack. If profile_bytes is
     * set, only sampled objects are counted. Otherwise, only objects in domains are counted, without sampling. See
     * docs/profile.md */
    uint8_t escape_stacks;
    uint8_t reserved_[1];
    /* mean number of bytes between two profiled allocations (slab_profile_write): 512..2^40; 0: no sampling */
    uint64_t profile_bytes;
    uint64_t warm_limit_bytes; /* limit on the adaptive maximum (warm_bytes = 0): at least 1 MiB, default 64 MiB */
    uint8_t quiet;             /* 1: do not print ignored words of TSLAB_OPTIONS to standard error */
    /* milliseconds between searches for empty slabs of open epochs: 1..86400000. The library takes back the slabs that
     * it finds. The searches run during slow paths of allocations and frees, and when statistics are read. If decay_ms
     * is 0, the library does not search, and empty slabs normally stay in their epoch until slab_trim or
     * slab_thread_flush is called or the epoch ends */
    uint32_t decay_ms;
    /* guard one in N allocations, N = 1..1048576; 0: none. A guarded object has its own pages, followed by a guard
     * page. Any access to the object faults after the object's lifetime has ended. See docs/late-access.md */
    uint32_t guard_period;
    /* 1: fill each object with zeros at the end of its lifetime, and verify before reuse that the memory is still zero.
     * See docs/hardened.md */
    uint8_t fill_freed;
    uint8_t random_order; /* 1: place each object in a random free slot, not in the next one; implies bump = 2 */
    /* 1: turn on fill_freed and random_order. If guard_sampling is 0, set it to 5000; if quarantine_bytes is 0, set it
     * to 4 MiB */
    uint8_t hardened;
    /* guard random allocations, on average one in N, N = 16..1048576; 0: none. At most 256 guarded objects exist at a
     * time. A guarded object has its own pages, followed by a guard page. Any access to the object faults after the
     * object's lifetime has ended. See docs/hardened.md */
    uint32_t guard_sampling;
    /* memory of ended phases to withhold from reuse, in bytes: 64 KiB..64 GiB; 0: none. See docs/hardened.md */
    uint64_t quarantine_bytes;
} SlabOptions;

/* Counters of one size class. A line is a group of up to 64 slots in a slab; each slot has room for one object. An
 * allocation normally uses the thread's current line. */
typedef struct PerfCounters {
    uint64_t slow_path_hits;            /* allocations that left the fast path */
    uint64_t new_slab_count;            /* slabs taken by epochs */
    uint64_t list_move_partial_to_full; /* lines set aside because they were full */
    uint64_t list_move_full_to_partial; /* full lines put back into use after frees */
    uint64_t current_partial_null;      /* slow-path allocations by threads without a current line */
    uint64_t current_partial_full;      /* slow-path allocations by threads whose current line was used up */
    uint64_t empty_slab_recycled;       /* slabs taken without requesting pages from the system */
    uint64_t empty_slab_overflowed;     /* slabs whose pages were returned to the system */
} PerfCounters;

/* Receipt: the figures that epoch_close_ex and similar functions report when they end an epoch. The fields up to
 * bytes_escaped cover the whole life of the incarnation; the fields after bytes_escaped describe only this close. A
 * receipt always satisfies objects_allocated == objects_freed + objects_released + objects_escaped, and the byte counts
 * satisfy the same equation. Byte counts are in usable bytes. `objects_freed` counts the objects that the program freed
 * one by one before the close. `objects_escaped` counts the objects that were still live when the epoch was drained.
 *
 * A slab is deferred if, at the time of the close, another thread is inside a call that uses the slab. That thread
 * finishes closing the slab before its call ends. If a thread owned the deferred slab, the receipt does not count the
 * objects in the slab. */
typedef struct EpochReceipt {
    uint32_t version; /* 2 */
    EpochId epoch_id;
    uint64_t epoch_era;
    char label[32];
    uint64_t objects_allocated, objects_freed, objects_released, objects_escaped;
    uint64_t bytes_allocated, bytes_freed, bytes_released, bytes_escaped;
    uint64_t slabs_returned, bytes_returned; /* slabs that this close took back from the epoch */
    uint64_t slabs_deferred, bytes_deferred;
    uint64_t rss_before, rss_after; /* resident bytes of the process; 0 if not measured */
    uint64_t close_ns;              /* duration of the close, excluding RSS measurements; 0 if the epoch was unused */
    uint32_t interrupts;            /* how often this close interrupted the process's running threads (membarrier) */
    uint32_t regions_returned;      /* number of regions among the returned slabs */
} EpochReceipt;

/* Writes the receipt to `out` as one line of text without a newline. The line contains the label, the epoch id, the
 * era, all counts, and the duration of the close in nanoseconds. If resident bytes were measured, the line contains
 * them too. Writes at most n - 1 bytes and a terminating 0. `out` may be NULL if n is 0. Like snprintf, returns the
 * length of the whole text without the 0. If the result is n or more, the text was truncated. Returns 0 if r is NULL.
 * The text does not depend on the locale. Control characters in the label appear as '?'. Allocates nothing. */
SLAB_API size_t epoch_receipt_text(const EpochReceipt* r, char* out, size_t n);
/* Writes the receipt like epoch_receipt_text, but breaks the text into lines of at most `width` bytes, for display on a
 * terminal. Newlines replace some of the spaces, so the length is unchanged. A word that is longer than `width` gets a
 * line of its own. */
SLAB_API size_t epoch_receipt_lines(const EpochReceipt* r, size_t width, char* out, size_t n);

/* ---- allocators ------------------------------------------------------------------------- */

/* Creates an allocator with default options. On failure, returns NULL and sets errno to ENOMEM; slab_last_error()
 * returns the reason. The caller destroys the allocator with slab_allocator_free. O(1), with a few system calls. */
SLAB_API SlabAllocator* slab_allocator_create(void);
/* Creates an allocator like slab_allocator_create, but with the given options. NULL selects the defaults. For a bad
 * option, returns NULL and sets errno to EINVAL. */
SLAB_API SlabAllocator* slab_allocator_create_with(const SlabOptions* options);
/* Drops one reference to an allocator that was made by slab_allocator_create or slab_allocator_create_with. Dropping
 * the last reference destroys the allocator and frees all its objects. Does nothing for NULL. When the allocator is
 * destroyed, no thread may be inside a call on it, but threads that have used it may continue to run. O(epochs). */
SLAB_API void slab_allocator_free(SlabAllocator* a);
/* Adds a reference to an allocator that was made by slab_allocator_create or slab_allocator_create_with. The caller
 * must already have a reference. Drop each reference with slab_allocator_free. Returns `a`. If `a` is NULL or was made
 * by allocator_init, returns NULL and sets errno to EINVAL. */
SLAB_API SlabAllocator* slab_allocator_retain(SlabAllocator* a);
/* Initializes an allocator in the caller's storage, with default options. If initialization fails, every later call on
 * the allocator is safe and returns NULL, false or 0. */
SLAB_API void allocator_init(SlabAllocator* a);
/* Initializes an allocator in the caller's storage, with the given options; NULL selects the defaults. Returns true on
 * success. On failure, returns false and sets errno; slab_last_error() returns the reason. */
SLAB_API bool allocator_init_with(SlabAllocator* a, const SlabOptions* options);
/* Destroys an allocator made by allocator_init or allocator_init_with, and frees all its objects. During this call, no
 * thread may be inside another call on the allocator. The storage can then be initialized again. O(epochs). */
SLAB_API void allocator_destroy(SlabAllocator* a);

/* ---- objects ---------------------------------------------------------------------------- */

/* Allocates `size` bytes in the given epoch. Sets *out to the object's handle, or to 0 on failure; `out` may be NULL.
 * Returns the object, or NULL with errno set. */
SLAB_API void* alloc_obj_epoch(SlabAllocator* a, uint32_t size, EpochId epoch, SlabHandle* out) SLAB_ALLOC_SIZE(2);
/* Allocates like alloc_obj_epoch, but in the calling thread's innermost domain of `a`. If the thread is in no domain of
 * `a`, allocates in the current ring epoch. */
SLAB_API void* alloc_obj(SlabAllocator* a, uint32_t size, SlabHandle* out) SLAB_ALLOC_SIZE(2);
/* Frees the object that handle h refers to. If several threads free the same object, exactly one call returns true.
 * Returns false if h is 0, stale or forged, or belongs to another allocator. */
SLAB_API bool free_obj(SlabAllocator* a, SlabHandle h);

/* Allocates `size` bytes in the given epoch. On failure, returns NULL and sets errno, like all allocation functions
 * below. */
SLAB_API void* slab_malloc_epoch(SlabAllocator* a, size_t size, EpochId epoch) SLAB_ALLOC_SIZE(2);
/* Allocates `size` bytes in the calling thread's innermost domain of `a`. If the thread is in no domain of `a`,
 * allocates in the current ring epoch. If the ring advances during the call, the new current epoch is used. */
SLAB_API void* slab_malloc(SlabAllocator* a, size_t size) SLAB_ALLOC_SIZE(2);
/* Allocates like slab_malloc, but treats size 0 as 1. */
SLAB_API void* slab_malloc0(SlabAllocator* a, size_t size) SLAB_ALLOC;
/* Allocates `size` bytes in the current ring epoch, even if the thread is inside a domain. Use this function for
 * objects that must outlive the domain, such as a session that is created during a request. If the ring advances during
 * the call, the new current epoch is used. */
SLAB_API void* slab_malloc_outside(SlabAllocator* a, size_t size) SLAB_ALLOC_SIZE(2);
/* Frees an object. Does nothing for NULL. Refuses and counts a pointer that does not point to a live object. */
SLAB_API void slab_free(SlabAllocator* a, void* p);
/* Frees like slab_free. Returns true if the object was freed or p is NULL, and false if the free was refused. */
SLAB_API bool slab_free_checked(SlabAllocator* a, void* p);
/* Frees like slab_free, but refuses to free an object that is smaller than `size`. Pass the size that was requested for
 * the object. The call is O(1), except that it reads one byte for every 16 bytes of an object in a region. */
SLAB_API void slab_free_sized(SlabAllocator* a, void* p, size_t size);
/* Frees like slab_free_sized. Returns true if the object was freed or p is NULL, and false if the free was refused. */
SLAB_API bool slab_free_sized_checked(SlabAllocator* a, void* p, size_t size);
/* Allocates a zeroed array of n elements of `size` bytes each. Returns NULL and sets errno to EINVAL if n or `size` is
 * 0, or to ENOMEM if n * `size` overflows.
 *
 * For an array of more than 256 KiB, the call costs no more than slab_malloc, because the system supplies zeroed pages
 * when the array is first touched. If the purge policy is SLAB_PURGE_FREE or SLAB_PURGE_NEVER, however, the call must
 * clear memory that was used before. To clear such memory, the call either returns it to the system, or reads it and
 * overwrites the parts that are not zero. */
SLAB_API void* slab_calloc(SlabAllocator* a, size_t n, size_t size) SLAB_ALLOC_ARRAY(2, 3);
/* Allocates like slab_calloc, but in the given epoch. */
SLAB_API void* slab_calloc_epoch(SlabAllocator* a, size_t n, size_t size, EpochId epoch) SLAB_ALLOC_ARRAY(2, 3);
/* Resizes the object at p to `size` bytes and returns its new address. If p is NULL, allocates a new object. If `size`
 * is 0, frees p and returns NULL. On failure, returns NULL, sets errno, and leaves the object unchanged. If p is not a
 * live object, errno is EINVAL.
 *
 * The object stays in its epoch if that epoch is ACTIVE. Otherwise, if the object has to move, slab_realloc chooses the
 * epoch as slab_malloc does. When an object grows to more than 128 KiB, slab_realloc reserves spare room for it.
 * Growing into that room is O(1); copying the object is O(size). */
SLAB_API void* slab_realloc(SlabAllocator* a, void* p, size_t size) SLAB_REALLOC_SIZE(3);
/* Resizes like slab_realloc, but an object that has to move is placed in the given epoch. */
SLAB_API void* slab_realloc_epoch(SlabAllocator* a, void* p, size_t size, EpochId epoch) SLAB_REALLOC_SIZE(3);
/* Allocates `size` bytes at an address that is a multiple of `alignment`, a power of two up to 1 GiB. */
SLAB_API void* slab_aligned_alloc(SlabAllocator* a, size_t alignment, size_t size) SLAB_ALLOC_ALIGNED(2, 3);
/* Allocates like slab_aligned_alloc, but in the given epoch. */
SLAB_API void* slab_aligned_alloc_epoch(SlabAllocator* a, size_t alignment, size_t size, EpochId epoch)
    SLAB_ALLOC_ALIGNED(2, 3);
/* Copy a string (slab_strdup), at most n bytes of a string (slab_strndup), or n bytes (slab_memdup) into a new object
 * that slab_malloc allocates. A copy of a string always ends with a 0. The caller owns the copy. On failure, these
 * functions return NULL and set errno like slab_malloc. If the source is NULL, or n is 0 in slab_memdup, the call is
 * refused with EINVAL and counted as SLAB_MISUSE_BAD_SIZE. O(n). */
SLAB_API char* slab_strdup(SlabAllocator* a, const char* text) SLAB_ALLOC;
SLAB_API char* slab_strndup(SlabAllocator* a, const char* text, size_t n) SLAB_ALLOC;
SLAB_API void* slab_memdup(SlabAllocator* a, const void* p, size_t n) SLAB_ALLOC_SIZE(3);
/* Formats text like printf into a new object that is just large enough for the text. On failure, returns NULL and sets
 * errno like slab_malloc. If formatting fails, errno is the value that vsnprintf set. */
SLAB_API char* slab_asprintf(SlabAllocator* a, const char* format, ...) SLAB_ALLOC SLAB_FORMAT(2, 3);
/* Work like slab_strdup, slab_asprintf and slab_realloc, but allocate like slab_malloc_outside. Use these functions for
 * objects that are created during a request but must outlive it. If slab_realloc_outside does not need to move the
 * object, the object stays in its epoch. */
SLAB_API char* slab_strdup_outside(SlabAllocator* a, const char* text) SLAB_ALLOC;
SLAB_API char* slab_asprintf_outside(SlabAllocator* a, const char* format, ...) SLAB_ALLOC SLAB_FORMAT(2, 3);
SLAB_API void* slab_realloc_outside(SlabAllocator* a, void* p, size_t size) SLAB_REALLOC_SIZE(3);
/* Moves a live object out of its phase, into the current ring epoch. Copies the object's usable bytes to a new, 16-byte
 * aligned object and frees the old one, whose handles become stale. An object that stays in a drained phase keeps its
 * page committed, so move objects that must outlive the phase. Returns the new object, or p if p is already in the
 * current epoch. To move an object into a domain, use epoch_domain_move. O(size).
 *
 * On failure, returns NULL, leaves p unchanged, and sets errno. EINVAL means that p is NULL or not a live object of
 * `a`. ESTALE means that the phase of p ended during the call. ENOMEM and EDQUOT mean that the new object could not be
 * allocated. */
SLAB_API void* slab_move_outside(SlabAllocator* a, void* p) SLAB_ALLOC;
/* Returns the number of usable bytes of a live object, or 0 for any other pointer. A compiler may check that the
 * program uses no more than the requested size (alloc_size, _FORTIFY_SOURCE). To use all usable bytes of an object,
 * request a size that slab_good_size returned. */
SLAB_API size_t slab_usable_size(SlabAllocator* a, const void* p);
/* Returns `size` rounded up so that an object of the returned size has no unused bytes, or 0 if an object of `size`
 * bytes cannot be allocated. An object of the returned size has exactly the returned number of usable bytes, in every
 * epoch. In a region, an object of `size` bytes may have fewer usable bytes than the returned size, because sizes in
 * regions are rounded up only to a multiple of 16. */
SLAB_API size_t slab_good_size(SlabAllocator* a, size_t size);
/* Returns true if p points into memory that holds or has held objects of this allocator. No other allocator can free
 * such a pointer. Does not check that a live object starts at p. */
SLAB_API bool slab_owns(SlabAllocator* a, const void* p);
/* Writes the id and era of a live object's epoch to *id and *era, and returns true. `id` and `era` may be NULL. Returns
 * false if p does not point to a live object. */
SLAB_API bool slab_ptr_epoch(SlabAllocator* a, const void* p, EpochId* id, uint64_t* era);
/* Returns the object that handle h refers to, or NULL if the object no longer exists or h is bad. Another thread may
 * free the object before the caller uses the returned pointer. */
SLAB_API void* slab_handle_ptr(SlabAllocator* a, SlabHandle h);
/* Returns the handle of a live object. Returns 0 for any other pointer, or if memory for handles runs out. O(1).
 * Interrupts the process's running threads once (membarrier) if the object is in another thread's slab and no object in
 * that slab has a handle yet. */
SLAB_API SlabHandle slab_ptr_handle(SlabAllocator* a, const void* p);
/* Gives back to the system the empty slabs of all epochs and all pages that are kept for reuse. Interrupts the
 * process's running threads once for each epoch in which other threads own slabs. O(slabs + epochs). */
SLAB_API void slab_trim(SlabAllocator* a);
/* Gives back to the system the calling thread's empty slabs and the pages that this thread or the allocator keeps for
 * reuse. Does not interrupt other threads. O(slabs of the thread + epochs). */
SLAB_API void slab_thread_flush(SlabAllocator* a);
/* Fills *out with the counters of a size class, or with zeros if size_class is out of range. O(threads). */
SLAB_API void get_perf_counters(SlabAllocator* a, uint32_t size_class, PerfCounters* out);
/* Returns the number of objects of `size` bytes that fit in a slab with the default slab_bytes, or 0 if no size class
 * serves `size`. */
SLAB_API uint32_t slab_object_count(uint32_t size);
/* Returns the page size of the system in bytes. */
SLAB_API size_t slab_page_size(void);
/* Returns the current time of CLOCK_MONOTONIC in nanoseconds. */
SLAB_API uint64_t slab_now_ns(void);
/* Returns the number of resident bytes of the process, as reported by the kernel, or 0 if the number is unknown. */
SLAB_API uint64_t slab_rss_bytes(void);
/* Returns the library version as "major.minor.patch". The string is in static storage. */
SLAB_API const char* slab_version(void);
/* Returns a sentence that explains this thread's most recent failure, or "" if there was none. The sentence is set by
 * create and init functions, by domain functions that return bool or a domain, and by functions whose comments mention
 * slab_last_error. A domain function that succeeds leaves the sentence unchanged. After a create or init function
 * succeeds, the sentence names the words of TSLAB_OPTIONS that were ignored, or is "" if no words were ignored. The
 * string is in thread-local storage and is valid until the thread calls one of these functions again. */
SLAB_API const char* slab_last_error(void);
/* Returns the SlabError that describes this thread's most recent refused call. Successful calls and pure queries
 * (slab_owns, slab_ptr_epoch, slab_handle_ptr) leave the value unchanged. Use this function if other code may change
 * errno before the caller reads it. */
SLAB_API int slab_error(void);

/* ---- epochs ----------------------------------------------------------------------------- */

/* Returns the id of the current ring epoch. */
SLAB_API EpochId epoch_current(SlabAllocator* a);
/* Closes the current ring epoch to further allocations and makes the next id current, as a new incarnation with a
 * larger era. Reclaims no memory, and waits only for a lock that is held briefly. With the default reserve_bytes, an
 * advance cannot fail while fewer than 262,000 epochs are open or draining. On failure, the current epoch does not
 * change. O(threads that have used the old epoch). */
SLAB_API void epoch_advance(SlabAllocator* a);
/* Advances the ring like epoch_advance. Returns the id of the new current epoch. */
SLAB_API EpochId epoch_advance_id(SlabAllocator* a);
/* Drains the incarnation that `epoch` names, like epoch_close_ex with EPOCH_DRAIN. */
SLAB_API void epoch_close(SlabAllocator* a, EpochId epoch);
/* Ends, in the given mode, the incarnation that `epoch` names, and fills *out unless `out` is NULL. The incarnation may
 * be in any state and may be closed any number of times. If `epoch` is the current ring epoch, the ring advances first.
 * Outside of domains, slab_malloc then allocates in the next epoch; allocations in `epoch` are refused.
 *
 * Returns true if the incarnation was closed. Returns false if the id is bad. Returns false and sets errno to EBUSY if
 * the epoch belongs to another thread's SLAB_DOMAIN_OWNER_ONLY domain, or to a domain with an open SlabRun. If the
 * option `shared` is set, waits at most 0.4 seconds for threads that are inside a call. Otherwise, does not wait for
 * such threads. Interrupts the process's running threads once if other threads own slabs of the epoch. O(slabs of the
 * epoch). */
SLAB_API bool epoch_close_ex(SlabAllocator* a, EpochId epoch, EpochCloseMode mode, EpochReceipt* out);
/* Ends the incarnation with the given era like epoch_close_ex, even if the ring has moved past that incarnation.
 * Returns false if the incarnation no longer exists. The search for the incarnation is O(ring epochs + threads), or
 * O(open and draining epochs) if memory for a lookup table has run out. */
SLAB_API bool epoch_close_era(SlabAllocator* a, uint64_t era, EpochCloseMode mode, EpochReceipt* out);
/* Returns the era of the incarnation that `epoch` names, or 0 if the id is bad. Eras start at 1. */
SLAB_API uint64_t epoch_era(SlabAllocator* a, EpochId epoch);
/* Returns the state of the incarnation that `epoch` names, or EPOCH_CLOSING if the id is bad. */
SLAB_API EpochLifecycleState epoch_state(SlabAllocator* a, EpochId epoch);
/* Sets the epoch's label to a copy of `label`, truncated at a UTF-8 character boundary if it is longer than 31 bytes.
 * NULL removes the label. */
SLAB_API void slab_epoch_set_label(SlabAllocator* a, EpochId epoch, const char* label);
/* Increment, decrement and return, respectively, a reference count that the program can keep for an incarnation.
 * Decrementing 0 has no effect. */
SLAB_API void slab_epoch_inc_refcount(SlabAllocator* a, EpochId epoch);
SLAB_API void slab_epoch_dec_refcount(SlabAllocator* a, EpochId epoch);
SLAB_API uint64_t slab_epoch_get_refcount(SlabAllocator* a, EpochId epoch);

/* Registers a cleanup: fn(arg) runs once when the incarnation is released or has drained. Cleanups run in reverse order
 * of registration, with no lock held, on the thread that ends the incarnation, returns its last slab or destroys the
 * allocator. A cleanup may free objects but must not allocate in the epoch that is ending. Returns false if the epoch
 * is unknown or already closed, or if memory runs out. */
SLAB_API bool slab_epoch_on_end(SlabAllocator* a, EpochId epoch, void (*fn)(void* arg), void* arg);

/* Budget callback. The library calls this function when committed memory rises above the soft limit of a budget. The
 * library also calls this function, with `hard` set to true, before it refuses an allocation that would exceed the hard
 * limit. The argument `bytes` is the committed memory of the epoch or label. The callback runs on the allocating thread
 * with no lock held. The callback may allocate and free objects, may reset, close and end epochs and domains, and may
 * change labels and budgets. Budgets also limit the callback's own allocations, but no budget callback is called for
 * them.
 *
 * When the callback returns, the interrupted allocation continues in the scope that the thread is in at that time. If
 * the callback has released the phase of the new object, the library repeats the allocation, which can then fail with
 * ESTALE. */
typedef void (*SlabBudgetFn)(SlabAllocator* a, EpochId epoch, uint64_t bytes, bool hard, void* ctx);
/* Limit the memory that an epoch, or all epochs of a label together, may commit for slabs and large objects. Each slab
 * counts as a whole, including its unused slots, so committed memory changes in steps of one slab
 * (SlabClassStats.slab_bytes). No allocation raises committed memory above `hard`. A limit of 0 means no limit. If fn
 * is not NULL, the library calls fn once each time committed memory rises above `soft`. Before an allocation fails with
 * EDQUOT because of `hard`, the library takes back empty slabs of the epoch and calls fn once. If these steps free
 * enough memory, the allocation continues.
 *
 * A later call replaces the budget. The budget of an epoch ends with the incarnation, and the budget of a label ends
 * with the allocator. If the budget of a label is set before the label is used, the budget is enforced exactly. If it
 * is set later, up to 64 KiB per thread may remain uncounted until that thread takes its next slab. An epoch can always
 * be relabeled, even if the change makes the new label exceed its budget.
 *
 * These functions return true on success. On failure, they return false and set errno. EINVAL means that the id or
 * label is bad, or that `hard` is not 0 and is less than `soft`. ESTALE means that the epoch no longer exists. ENOMEM
 * means that there is no room for another label. */
SLAB_API bool slab_epoch_set_budget(SlabAllocator* a, EpochId epoch, size_t soft, size_t hard, SlabBudgetFn fn,
                                    void* ctx);
SLAB_API bool slab_label_set_budget(SlabAllocator* a, const char* label, size_t soft, size_t hard, SlabBudgetFn fn,
                                    void* ctx);

/* Sets an allowance for objects that are still live when a phase with this label is drained. Each phase may leave up to
 * `objects` live objects, with up to `bytes` usable bytes in total. Use this function for objects that are meant to
 * outlive the phase, such as cache entries or a response that is still being sent. Leak reports, slab_doctor and alerts
 * then report a phase only if it exceeds the allowance, and only until it has drained. SlabLabelStats.unexpected_phases
 * counts the phases that exceed the allowance. If a phase is already draining when this function is called, the objects
 * that the phase still holds are compared with the allowance. The allowance does not change how escaped objects are
 * counted and shown.
 *
 * If `objects` and `bytes` are both 0, the call withdraws the allowance. Returns true on success. On failure, returns
 * false and sets errno. EINVAL means that `a` is NULL, or that the label is NULL or empty. ENOMEM means that there is
 * no room for another label. [any thread] O(epochs). */
SLAB_API bool slab_label_expect_escapes(SlabAllocator* a, const char* label, uint32_t objects, uint64_t bytes);

/* ---- typed allocation ------------------------------------------------------------------- */

/* Allocates n objects of `size` bytes for SLAB_NEW and SLAB_NEW_ARRAY. */
static inline void* slab_new_(SlabAllocator* a, size_t n, size_t size, size_t alignment) {
    const size_t most = PTRDIFF_MAX;                                  /* no cast, because this is also C++ code */
    if (size != 0 && n > most / size) return slab_calloc(a, n, size); /* slab_calloc reports the overflow */
    return alignment <= 16 ? slab_malloc(a, n * size) : slab_aligned_alloc(a, alignment, n * size);
}

/* Allocate an object of type `type`, or an array of n such objects, like slab_malloc but with the alignment of the
 * type. These macros evaluate to a pointer to the type. On failure, they evaluate to NULL and set errno like
 * slab_malloc. If n is 0, errno is EINVAL; if the total size overflows, errno is ENOMEM. The objects are uninitialized,
 * and no constructor runs. */
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
