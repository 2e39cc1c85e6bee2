/*
 * check.h - recomputes what the allocator caches, for tests and debugging.
 */
#ifndef TSI_STATS_CHECK_H
#define TSI_STATS_CHECK_H

#include "slab_alloc.h"

/* Recomputes every invariant of the tables, lists, rooms and counts. Returns true if all hold; otherwise `why`, of
 * why_len bytes, says which does not. O(slabs + records). [no other thread in the allocator, no lock] */
bool tsi_check_allocator(SlabAllocator* a, char* why, size_t why_len);

#ifdef TSI_DEBUG
/* Checks the allocator after a close, if the process has one thread; stops the process if something does not hold.
 * Skips most closes in an allocator of many slabs and phases, so that checks cost at most a constant factor of closes.
 * [any thread, no lock, no bracket] */
void tsi_check_closed(SlabAllocator* a);
#endif

#endif
