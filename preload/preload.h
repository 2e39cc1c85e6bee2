/*
 * preload.h - this library as the malloc of a program that was not built for it.
 *
 *   malloc.c     the malloc family: fast paths, sizes and errors by the rules of C, owners of pointers
 *   operators.c  new and delete of C++
 *   start.c      when the allocator is made, and which malloc serves until then
 *   dlopen.c     dlopen without RTLD_DEEPBIND, and outside of phases
 *   phases.c     phases that a program begins and ends by <temporal_slab/phase.h>
 *   outside.c    functions of libc that keep what they allocate: outside of phases
 *   figures.c    malloc_trim, mallinfo2 and the like
 *
 * These files include the library's public headers and one internal header, src/api/as_malloc.h.
 *
 * The allocator is made by the first call of malloc that finds the environment, at the latest by the constructor:
 * before any other library can register handlers for fork, so that these may allocate. Before, while it is made, and
 * where it cannot be made or has no room, malloc is libc's own (__libc_malloc), which works as soon as libc is
 * relocated. So there are two kinds of pointers as long as the process lives, told apart by the address: within the
 * reservation it is ours, everything else is libc's.
 */
#ifndef TSP_PRELOAD_H
#define TSP_PRELOAD_H

#include "api/as_malloc.h"

#include <stddef.h>

/* Marks a name that programs must find; all others are hidden (exports.map). */
#define TSP_API __attribute__((visibility("default")))

/* libc's own functions, under names that no library interposes. */
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t n, size_t size);
extern void* __libc_realloc(void* p, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void* p);

extern SlabAllocator tsp_heap;

typedef enum TspState { TSP_NEW, TSP_STARTING, TSP_READY, TSP_OFF /* malloc stays libc's */ } TspState;
extern _Atomic int tsp_state;

/* Makes the allocator if no call has tried to and libc has the environment. Returns true if it is there; false before
 * libc is ready, while a thread makes it, and for good where it cannot be made: libc's malloc serves then. Preserves
 * errno. [any thread, no lock held] */
bool tsp_start(void);
/* Returns true if the allocator is there, after making it if it is time; false, and libc's malloc must serve,
 * otherwise. Preserves errno. [any thread, no lock held] */
TSI_INLINE bool tsp_ready(void) {
    /* acquire: pairs with the release in tsp_start: the allocator is made */
    return TSI_LIKELY(tsi_load_acquire(&tsp_state) == TSP_READY) || tsp_start();
}
/* Returns true if p lies in the allocator's reservation, whether an object lives there or not; false for NULL, for
 * libc's pointers, and before the allocator is there. [any thread, needs no lock] */
TSI_INLINE bool tsp_is_ours(const void* p) {
    /* acquire: see tsp_ready */
    return tsi_load_acquire(&tsp_state) == TSP_READY && tsi_malloc_owns(&tsp_heap, p);
}

/* Allocates `size` bytes (0: as for 1) where malloc's fast path does not. b: the thread's binding, whose bracket is
 * open and is closed here, or NULL if no bracket was opened. Returns the object, ours or libc's, with errno as it was,
 * or NULL with ENOMEM. [own thread, no lock held; in bracket unless b is NULL] */
void* tsp_malloc_more(size_t size, TsiBinding* b);

/* Leaves all phases while libc makes something that it keeps. Returns true if it did, and the caller passes that to
 * tsp_outside_leave; false if the thread was in none, without memory, or with TSLAB_PRELOAD_LIBC=phase. Preserves
 * errno. [own thread, no lock held, no bracket open] */
bool tsp_outside_enter(void);
/* Goes back into the phases that tsp_outside_enter has left, if `in`, which that call returned, is true; otherwise does
 * nothing. Preserves errno. [own thread, no lock held, no bracket open] */
void tsp_outside_leave(bool in);
extern bool tsp_libc_in_phases; /* TSLAB_PRELOAD_LIBC=phase */

/* Returns the definition of a name that comes after this library's, or NULL. caller: an address in the calling library,
 * whose own libraries are searched if the program's have no such name, or NULL: these are not searched.
 * [any thread, no lock held] */
void* tsp_next(const char* name, const void* caller);

#endif
