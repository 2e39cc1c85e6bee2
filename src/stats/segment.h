/*
 * segment.h - an allocator's statistics in shared memory; the layout is that of slab_segment.h.
 *
 * What is published is a copy of a TsiReport, so nothing is ever counted in shared memory. Calls of the floor above
 * that have left the fast path, with no lock held and no bracket open, come by here as they return; one of them
 * publishes when it is time.
 */
#ifndef TSI_STATS_SEGMENT_H
#define TSI_STATS_SEGMENT_H

#include "heap/arena.h"

#define TSI_SEGMENT_PERIOD_NS 100000000u /* between publications of one allocator, at least */
enum {
    TSI_SEGMENT_SHARE = 100, /* after each, the process makes none for so many times what it took, */
    TSI_SEGMENT_EACH = 128   /* rows of phases that hold most, and as many of the oldest */
};
/* But for no longer than this, shared by its allocators, so that each comes once a second; walks over all phases
 * likewise: a process that was stopped in the midst of one would be silent for hours. */
#define TSI_SEGMENT_PAUSE_NS 900000000u
#define TSI_SEGMENT_WALK_NS 60000000000u

void tsi_segment_init(void); /* takes effect once per process */
/* The first publication of a new allocator. */
void tsi_segment_begin(TsiArena* a);
/* Its slot may be another's, after a while. No other thread is inside of the allocator. */
void tsi_segment_end(TsiArena* a);

/* Publishes now; false when it cannot, or is not asked to. Waits for the one that is under way. */
bool tsi_segment_publish(TsiArena* a);
void tsi_segment_look(TsiArena* a);
/* Publishes when the option is set and it is time. Leaves errno alone. */
TSI_INLINE void tsi_segment_tick(TsiArena* a) {
    if (TSI_UNLIKELY(a->options.segment != 0)) tsi_segment_look(a);
}

/* How it stands with an allocator's publications. */
typedef struct TsiSegmentHealth {
    bool asked;
    uint64_t publications, failures;
    const char* what; /* what failed last in the process; NULL when nothing did */
    int error;        /* errno value, or 0 */
} TsiSegmentHealth;
TsiSegmentHealth tsi_segment_health(TsiArena* a);

#endif
