/*
 * segment_profile.h - the heap profile of allocators in shared memory; the layout is that of slab_segment.h.
 *
 * A second file beside the segment, made when an allocator with both options publishes, because its buffers are large
 * and few processes take a profile: pages are charged as far as they are needed. The copy is of the tables of
 * observe/profile.h, not a pprof document: names of functions and mappings are the reader's business, which finds them
 * in /proc without the process.
 *
 * All is called by segment.c and under its rules: the lock, the protocol of a publication, and slots, which are the
 * segment's.
 */
#ifndef TSI_STATS_SEGMENT_PROFILE_H
#define TSI_STATS_SEGMENT_PROFILE_H

#include "state/arena.h"

#include "slab_segment.h"

/* A buffer with every table full, see segment_profile.c. */
size_t tsi_share_profile_most(void);

/* Publishes the profile of the allocator whose rows in a slot were just published, unless the last one took too long
 * for that. `like`: what the file's header says of the process. An errno value, and *what has failed. Under
 * tsi_segment_lock. */
int tsi_share_profile(TsiArena* a, unsigned slot, const SlabSegmentHeader* like, const char** what);
/* The slot is another allocator's from now on. Under tsi_segment_lock. */
void tsi_share_profile_vacate(unsigned slot);
/* The allocator that has published in the slot ends. */
void tsi_share_profile_end(unsigned slot, uint64_t now);
/* In a fork child. */
void tsi_share_profile_forget(void);

#endif
