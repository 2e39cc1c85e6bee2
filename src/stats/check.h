/*
 * check.h - recomputes what the allocator caches. For tests and debugging.
 */
#ifndef TSI_STATS_CHECK_H
#define TSI_STATS_CHECK_H

#include "slab_alloc.h"

/* True when every invariant of the tables, lists, rooms and counts holds. No other thread may be
 * inside a call on the allocator. On false, `why` says what is wrong. O(slabs + records). */
bool tsi_check_allocator(SlabAllocator* a, char* why, size_t why_len);

#ifdef TSI_DEBUG
/* The same after a close, where the process has one thread: stops it when something does not hold. Not each time in an
 * allocator of many slabs and phases: the looks of a program cost as much as its closes, times a constant. */
void tsi_check_closed(SlabAllocator* a);
#endif

#endif
