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

/* Returns the bytes of a buffer with every table full, not rounded; see segment_profile.c.
 * [any thread, needs no lock] */
size_t tsi_share_profile_most(void);

/* Publishes the profile of the allocator whose rows in the slot number `slot` were just published; does nothing if it
 * has none, or the pause after the last one of the process, or after its own failure, is not over. like: the header's
 * words about the process. Sets seat->has_profile and prof.due_ns after a success, seat->profile_retry_ns after a
 * failure. Returns 0; otherwise an errno value and *what as the words for the step that failed. *what means nothing
 * with 0. [segment lock held] */
int tsi_share_profile(TsiArena* a, unsigned slot, const SlabSegmentHeader* like, const char** what);
/* Marks the profile of the slot number `slot` as SLAB_SEGMENT_FREE, if there is a file of profiles: the slot is
 * another allocator's from now on, which has not published one. [segment lock held] */
void tsi_share_profile_vacate(unsigned slot);
/* Marks the profile of the slot number `slot` as ended at `now`, ns of the clock: its allocator, which has published
 * one, ends. [no other thread in the allocator] */
void tsi_share_profile_end(unsigned slot, uint64_t now);
/* Forgets the file of another process, if there is one: unmaps it, drops its descriptor, and empties all slots.
 * [segment lock held, or fork child] */
void tsi_share_profile_forget(void);

#endif
