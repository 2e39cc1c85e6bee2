/*
 * preload.h - this library as the malloc of a program that knows nothing of it.
 *
 *   malloc.c     the malloc family: fast paths, what C says of sizes and errors, whose pointer it is
 *   operators.c  those of C++
 *   start.c      when the allocator is made, and who serves until then
 *   dlopen.c     dlopen without RTLD_DEEPBIND, and outside of phases
 *   phases.c     phases that a program begins and ends by <temporal_slab/phase.h>
 *   outside.c    functions of libc that keep what they make: outside of phases
 *   figures.c    malloc_trim, mallinfo2 and the like
 *
 * Of the library these files include its public headers and one door, src/api/as_malloc.h.
 *
 * The allocator is made by the first call of malloc that finds the environment, at the latest by the constructor:
 * before any other library can register handlers for fork, so that these may allocate. Before, while it is made, and
 * where it cannot be made or has no room, malloc is libc's own (__libc_malloc), which works as soon as libc is
 * relocated. So there are two kinds of pointers as long as the process lives, and an address tells which one it is:
 * within the reservation it is ours, everything else is libc's.
 */
#ifndef TSP_PRELOAD_H
#define TSP_PRELOAD_H

#include "api/as_malloc.h"

#include <stddef.h>

/* A name that programs are to find; all others are hidden (exports.map). */
#define TSP_API __attribute__((visibility("default")))

/* libc's own, under names that nobody interposes. */
extern void* __libc_malloc(size_t size);
extern void* __libc_calloc(size_t n, size_t size);
extern void* __libc_realloc(void* p, size_t size);
extern void* __libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void* p);

extern SlabAllocator tsp_heap;

typedef enum TspState { TSP_NEW, TSP_STARTING, TSP_READY, TSP_OFF /* malloc stays libc's */ } TspState;
extern _Atomic int tsp_state;

/* Makes the allocator if it is time. True: it is there. */
bool tsp_start(void);
TSI_INLINE bool tsp_ready(void) {
    /* acquire: pairs with the release in tsp_start: the allocator is made */
    return TSI_LIKELY(tsi_load_acquire(&tsp_state) == TSP_READY) || tsp_start();
}
TSI_INLINE bool tsp_is_ours(const void* p) {
    /* acquire: as above */
    return tsi_load_acquire(&tsp_state) == TSP_READY && tsi_malloc_owns(&tsp_heap, p);
}

/* malloc beyond its fast path: NULL with errno ENOMEM. */
void* tsp_malloc_more(size_t size, TsiBinding* b);

/* Leaves all phases for as long as libc makes something that it keeps. Returns true if tsp_outside_leave must be told
 * so. [own thread] */
bool tsp_outside_enter(void);
void tsp_outside_leave(bool in);
extern bool tsp_libc_in_phases; /* TSLAB_PRELOAD_LIBC=phase */

/* The definition of a name that comes after this library's, or NULL. `caller`: an address in whoever asks; its own
 * libraries are searched where the program's have none. */
void* tsp_next(const char* name, const void* caller);

#endif
