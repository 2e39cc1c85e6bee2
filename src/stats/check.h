/*
 * check.h - recomputes what the allocator caches, for tests and debugging.
 */
#ifndef TSI_STATS_CHECK_H
#define TSI_STATS_CHECK_H

#include "slab_alloc.h"

/* Recomputes every invariant of the tables, lists, rooms and counts; counts anew first what lives in orphans after late
 * frees, and otherwise only reads. Returns true if all hold, and for an allocator without an arena; then `why` is left
 * alone. Returns false otherwise, with the first that does not hold in `why`, of why_len bytes (0: not written).
 * O(slabs + records). [no other thread in the allocator, no lock held] */
bool tsi_check_allocator(SlabAllocator* a, char* why, size_t why_len);

#ifdef TSI_DEBUG
/* Checks the allocator behind `owner` by tsi_check_allocator after a close, if libc says that the process has one
 * thread; stops the process, after a line on standard error, if something does not hold. Does nothing for an owner
 * without an arena, and skips most closes in one of many slabs and phases, so that checks cost at most a constant
 * factor of closes. [any thread, no lock held, no bracket open] */
void tsi_check_closed(SlabAllocator* a);
#endif

#endif
