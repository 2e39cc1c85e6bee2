/*
 * malloc.c - the malloc family, as glibc's manual and C23 say.
 *
 * Differences from slab_malloc and its kin: a size of 0 gives an object; every failure sets errno to ENOMEM; a call
 * that succeeds does not change errno; a pointer that is not ours goes to libc, which made it; a pointer of ours to no
 * live object is refused and counted.
 *
 * Objects for which the reservation has no room, because it is full or small (RLIMIT_AS), are asked of libc, too;
 * objects that a limit of the program's own (max_bytes) refuses, where errno is EDQUOT at first, are not.
 *
 * A thread's first call makes its record, and for that libc may call malloc (pthread_setspecific, when many keys are
 * taken): such a call from within is libc's.
 */
#define _GNU_SOURCE
#include "preload.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#define MOST_ALIGNMENT ((size_t)1 << 30) /* of slab_aligned_alloc */

static _Thread_local bool entering TSI_TLS_MODEL; /* the thread makes its record */

/* Returns true if libc must serve this call: the allocator is not there, or the thread is making its record. Returns
 * false otherwise; *first is then true if the thread's record is about to be made, and the caller calls `entered` when
 * it is done. Sets *first in either case. [own thread, no lock held] */
static bool is_for_libc(bool* first) {
    *first = false;
    if (TSI_UNLIKELY(!tsp_ready())) return true;
    if (TSI_LIKELY(!tsi_malloc_is_new_here())) return false;
    if (entering) return true;
    *first = entering = true;
    return false;
}

/* Ends the time in which the thread makes its record, if `first`, which is_for_libc has set, is true.
 * [own thread, needs no lock] */
static void entered(bool first) {
    if (first) entering = false;
}

/* ---- allocate ---- */

/* A search for room visits everything. So after a search without success, even for an object of a class, this number of
 * calls does not search. */
enum { LOOKS_LEFT_OUT = 1024 };
static _Atomic unsigned left_out;

/* Returns true if a search for room was without success lately, and counts this call as one that leaves the search out;
 * false otherwise. [any thread, needs no lock] */
static bool is_full(void) {
    unsigned n = tsi_load_relaxed(&left_out);
    if (TSI_UNLIKELY(n != 0)) tsi_store_relaxed(&left_out, n - 1); /* approximate: threads may count as one */
    return n != 0;
}

/* Has the next calls leave the search out if errno is ENOMEM and `size`, the bytes that found no room, is at most
 * TSI_SMALL_MAX. Leaves errno alone. [any thread, needs no lock] */
static TSI_COLD void note_full(size_t size) {
    if (errno == ENOMEM && size <= TSI_SMALL_MAX) tsi_store_relaxed(&left_out, LOOKS_LEFT_OUT);
}

TSI_NOINLINE void* tsp_malloc_more(size_t size, TsiBinding* b) {
    TSI_KEEP_FRAME();
    int saved = errno;
    bool first = false;
    void* p = NULL;
    if (b == NULL && is_for_libc(&first)) return __libc_malloc(size);

    bool full = TSI_UNLIKELY(is_full());
    if (full) { /* first libc, then a search: there may be room again */
        if (b != NULL) tsi_malloc_leave(b);
        p = __libc_malloc(size);
        b = NULL;
    }
    if (TSI_LIKELY(p == NULL)) {
        p = tsi_malloc_missed(&tsp_heap, size != 0 ? size : 1, b);
        if (TSI_UNLIKELY(p == NULL)) note_full(size);
    }

    entered(first);
    if (TSI_UNLIKELY(p == NULL) && !full && errno == ENOMEM) p = __libc_malloc(size);
    errno = p != NULL ? saved : ENOMEM;
    return p;
}

/* Defines malloc also under a name that no program takes over. */
__asm__(".globl tsp_malloc\n.hidden tsp_malloc\n.set tsp_malloc, malloc\n");

/* Allocates `size` bytes (0: as for 1) by the fast path or by tsp_malloc_more. Returns the object, ours or libc's, with
 * errno as it was, or NULL with ENOMEM. [any thread, no lock held] */
TSP_API void* malloc(size_t size) { return tsi_malloc_quick(&tsp_heap, size, tsp_malloc_more); }

/* Allocates `bytes` zeroed bytes, more than TSI_SMALL_MAX. Returns the object, ours or libc's, with errno as it was, or
 * NULL with ENOMEM. [own thread, no lock held, no bracket open] */
static TSI_NOINLINE void* calloc_large(size_t bytes) {
    TSI_KEEP_FRAME();
    int saved = errno;
    bool first;
    if (is_for_libc(&first)) return __libc_calloc(1, bytes);
    void* p = slab_calloc(&tsp_heap, 1, bytes);
    entered(first);
    if (TSI_UNLIKELY(p == NULL) && errno == ENOMEM) p = __libc_calloc(1, bytes);
    errno = p != NULL ? saved : ENOMEM;
    return p;
}

/* Allocates `size` bytes after calloc's fast path, by tsp_malloc_more, with its b. caller: the return address of
 * calloc, for the profile: calloc keeps no frame and cannot end with a jump to here. Returns the object, not zeroed, or
 * NULL with ENOMEM. [own thread, no lock held; in bracket unless b is NULL] */
static TSI_NOINLINE void* calloc_more(size_t size, TsiBinding* b, const void* caller) {
    TSI_KEEP_FRAME();
    tsi_malloc_past((uintptr_t)caller);
    void* p = tsp_malloc_more(size, b);
    tsi_malloc_past(0);
    return p;
}

/* Allocates `size` bytes after calloc's fast path, for the caller of the function that this is inlined in. b: the
 * thread's binding, whose bracket is open and is closed, or NULL if none was opened. Returns the object, not zeroed, or
 * NULL with ENOMEM. [own thread, no lock held; in bracket unless b is NULL] */
TSI_INLINE void* calloc_missed(size_t size, TsiBinding* b) { return calloc_more(size, b, __builtin_return_address(0)); }

/* Allocates n zeroed elements of `size` bytes (no bytes: as for 1). Returns the object with errno as it was, or NULL
 * with ENOMEM, also if the product overflows. [any thread, no lock held] */
TSP_API void* calloc(size_t n, size_t size) {
    size_t bytes;
    if (TSI_UNLIKELY(__builtin_mul_overflow(n, size, &bytes))) return errno = ENOMEM, NULL;
    if (TSI_UNLIKELY(bytes > TSI_SMALL_MAX)) return calloc_large(bytes);
    void* p = tsi_malloc_quick(&tsp_heap, bytes, calloc_missed);
    return TSI_LIKELY(p != NULL) ? memset(p, 0, bytes) : NULL;
}

/* Allocates `size` bytes (0: as for 1) aligned to `align` bytes, a power of two or 0. Returns the object, ours or
 * libc's, with errno as it was, or NULL with ENOMEM. [any thread, no lock held] */
static void* aligned(size_t align, size_t size) {
    TSI_KEEP_FRAME();
    int saved = errno;
    bool first;
    if (align <= 16) return tsi_malloc_quick(&tsp_heap, size, tsp_malloc_more);
    if (is_for_libc(&first)) return __libc_memalign(align, size);
    errno = ENOMEM;
    void* p = align <= MOST_ALIGNMENT ? slab_aligned_alloc(&tsp_heap, align, size != 0 ? size : 1) : NULL;
    entered(first);
    if (TSI_UNLIKELY(p == NULL) && errno == ENOMEM) p = __libc_memalign(align, size);
    errno = p != NULL ? saved : ENOMEM;
    return p;
}

/* Allocates `size` bytes aligned to `align` bytes, rounded up to a power of two like in glibc. Returns the object, or
 * NULL with ENOMEM, or with EINVAL for an alignment beyond PTRDIFF_MAX. [any thread, no lock held] */
TSP_API void* memalign(size_t align, size_t size) {
    if (TSI_UNLIKELY(align > PTRDIFF_MAX)) return errno = EINVAL, NULL;
    return aligned(tsi_ceil_pow2(align), size);
}

/* Allocates `size` bytes aligned to `align` bytes, rounded up to a power of two; size need not be a multiple of it.
 * Returns the object, or NULL with ENOMEM, or with EINVAL for an alignment beyond PTRDIFF_MAX.
 * [any thread, no lock held] */
TSP_API void* aligned_alloc(size_t align, size_t size) { return memalign(align, size); }

/* Allocates `size` bytes aligned to `align` bytes and sets *out to the object. Returns 0; ENOMEM; EINVAL unless the
 * alignment is a power of two and a multiple of a pointer's size. *out is left alone unless 0 is returned. Preserves
 * errno. [any thread, no lock held] */
TSP_API int posix_memalign(void** out, size_t align, size_t size) {
    TSI_KEEP_FRAME();
    int saved = errno;
    if (!tsi_is_pow2(align) || align % sizeof(void*) != 0) return EINVAL;
    void* p = aligned(align, size);
    errno = saved;
    if (p == NULL) return ENOMEM;
    *out = p;
    return 0;
}

/* Allocates `size` bytes at the start of a page. Returns the object, or NULL with ENOMEM. [any thread, no lock held] */
TSP_API void* valloc(size_t size) { return aligned(slab_page_size(), size); }

/* Allocates whole pages, as many as `size` bytes take and at least one, at the start of a page. Returns the object, or
 * NULL with ENOMEM. [any thread, no lock held] */
TSP_API void* pvalloc(size_t size) {
    size_t page = slab_page_size();
    if (TSI_UNLIKELY(size > PTRDIFF_MAX)) return errno = ENOMEM, NULL;
    return aligned(page, size != 0 ? tsi_align_up(size, page) : page);
}

/* Copies n bytes of text to an object and adds a 0. libc's strdup would do, but hides its caller from the profile.
 * Returns the copy, which the caller frees, or NULL with ENOMEM. [any thread, no lock held] */
static char* copied(const char* text, size_t n) {
    char* p = malloc(n + 1);
    if (p == NULL) return NULL;
    p[n] = 0;
    return memcpy(p, text, n);
}

/* Copies a text that ends with 0 to an object. Returns the copy, which the caller frees, or NULL with ENOMEM.
 * [any thread, no lock held] */
TSP_API char* strdup(const char* text) {
    TSI_KEEP_FRAME();
    return copied(text, strlen(text));
}

/* Copies a text, cut to `most` bytes, to an object and ends it with 0. Returns the copy, which the caller frees, or
 * NULL with ENOMEM. [any thread, no lock held] */
TSP_API char* strndup(const char* text, size_t most) {
    TSI_KEEP_FRAME();
    return copied(text, strnlen(text, most));
}

/* ---- free ---- */

/* Frees a pointer of libc's, or one of ours that the thread has no fast path for; does nothing for NULL. A pointer of
 * ours to no live object is refused and counted. [any thread, no lock held, no bracket open] */
static TSI_NOINLINE void free_more(void* p) {
    if (p == NULL) return;
    if (TSI_LIKELY(tsp_is_ours(p))) slab_free(&tsp_heap, p);
    else __libc_free(p);
}

__asm__(".globl tsp_free\n.hidden tsp_free\n.set tsp_free, free\n");
extern void tsp_free(void* p) __attribute__((visibility("hidden")));

/* Searches for empty slabs if the clock says that is due, and frees p by free, with which it comes from.
 * [own thread, no lock held, no bracket open] */
static TSI_NOINLINE void free_look(void* p) {
    tsi_malloc_poll();
    tsp_free(p); /* counts once more */
}

/* Frees an object of ours or libc's; NULL does nothing. A pointer of ours to no live object is refused and counted.
 * [any thread, no lock held] */
TSP_API void free(void* p) { tsi_free_quick(&tsp_heap, p, free_more, free_look); }

/* Frees an object of ours or libc's, known by its address alone (C23); NULL does nothing. size: the bytes that the
 * program asked for, not used. [any thread, no lock held] */
TSP_API void free_sized(void* p, size_t size) {
    (void)size;
    tsi_free_quick(&tsp_heap, p, free_more, free_look);
}

/* Frees an object of ours or libc's, known by its address alone (C23); NULL does nothing. align and size: the bytes
 * that the program asked for, not used. [any thread, no lock held] */
TSP_API void free_aligned_sized(void* p, size_t align, size_t size) {
    (void)align, (void)size;
    tsi_free_quick(&tsp_heap, p, free_more, free_look);
}

/* ---- resize ---- */

/* Resizes where slab_realloc does not: allocates `size` bytes if p is NULL, passes libc's blocks to libc, and frees p,
 * one of ours, for size 0. Returns the block, or NULL: freed, or with ENOMEM. [any thread, no lock held] */
static TSI_NOINLINE void* realloc_more(void* p, size_t size) {
    if (p == NULL) return tsi_malloc_quick(&tsp_heap, size, tsp_malloc_more);
    if (!tsp_is_ours(p)) return __libc_realloc(p, size);
    free(p); /* of no bytes: freed, as glibc does */
    return NULL;
}

/* Resizes the block p, one of ours, to `size` bytes where the allocator has no room: a block that shrinks stays, one
 * that grows is copied to libc and freed. Returns the block; NULL, and leaves p as it was, if libc has no room either
 * or p is no live object. [any thread, no lock held] */
static TSI_COLD void* realloc_at_libc(void* p, size_t size) {
    size_t had = slab_usable_size(&tsp_heap, p);
    if (size <= had) return p;
    void* q = had != 0 ? __libc_malloc(size) : NULL;
    if (q == NULL) return NULL;
    memcpy(q, p, had);
    slab_free(&tsp_heap, p);
    return q;
}

/* Resizes the block at p (NULL: allocates one) to `size` bytes, and moves it where it must. Returns the block with
 * errno as it was; NULL for size 0, which frees it; NULL with ENOMEM, and leaves the block as it was.
 * [any thread, no lock held] */
TSP_API void* realloc(void* p, size_t size) {
    TSI_KEEP_FRAME();
    if (TSI_UNLIKELY(p == NULL || size == 0 || !tsp_is_ours(p))) return realloc_more(p, size);
    int saved = errno;
    bool first;
    if (TSI_UNLIKELY(is_for_libc(&first))) return errno = ENOMEM, NULL; /* from within a record's making */

    void* q = NULL;
    bool full = is_full();
    errno = 0;
    if (TSI_LIKELY(!full)) q = slab_realloc(&tsp_heap, p, size);
    if (TSI_UNLIKELY(errno == ENOMEM)) note_full(size); /* a block that should shrink stays, and that is no failure */

    entered(first);
    if (TSI_UNLIKELY(q == NULL) && (full || errno == ENOMEM)) q = realloc_at_libc(p, size);
    errno = q != NULL ? saved : ENOMEM;
    return q;
}

/* Resizes the block at p (NULL: allocates one) to n elements of `size` bytes. Returns the block; NULL for no bytes,
 * which frees it; NULL with ENOMEM, and leaves the block as it was, also if the product overflows.
 * [any thread, no lock held] */
TSP_API void* reallocarray(void* p, size_t n, size_t size) {
    size_t bytes;
    if (TSI_UNLIKELY(__builtin_mul_overflow(n, size, &bytes))) return errno = ENOMEM, NULL;
    return realloc(p, bytes);
}

/* ---- ask ---- */

/* Returns the bytes of a block, ours or libc's, that the program may use; 0 for NULL and for pointers of ours to no
 * live object. [any thread, no lock held] */
TSP_API size_t malloc_usable_size(void* p) {
    typedef size_t Usable(void*);
    static _Atomic(Usable*) next;
    if (p == NULL) return 0;
    if (TSI_LIKELY(tsp_is_ours(p))) return slab_usable_size(&tsp_heap, p);
    Usable* of_libc = tsi_load_relaxed(&next);
    if (of_libc == NULL) {
        *(void**)&of_libc = tsp_next("malloc_usable_size", NULL);
        tsi_store_relaxed(&next, of_libc); /* every thread finds the same */
    }
    return of_libc != NULL ? of_libc(p) : 0;
}
