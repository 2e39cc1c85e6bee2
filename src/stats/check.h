/*
 * check.h - recomputes what the allocator caches. For tests and debugging.
 */
#ifndef TSI_STATS_CHECK_H
#define TSI_STATS_CHECK_H

#include "slab_alloc.h"

/* True when every invariant of the tables, lists, rooms and counts holds. No other thread may be
 * inside a call on the allocator. On false, `why` says what is wrong. O(slabs + records). */
bool tsi_check_allocator(SlabAllocator* a, char* why, size_t why_len);

#endif
