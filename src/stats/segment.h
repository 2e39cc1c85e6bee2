/*
 * segment.h - an allocator's statistics in shared memory; the layout is that of slab_segment.h.
 *
 * What is published is a copy of a TsiReport, so nothing is ever counted in shared memory. Calls of the floor above
 * that have left the fast path, with no lock held and no bracket open, come by here as they return; one of them
 * publishes when it is time.
 */
#ifndef TSI_STATS_SEGMENT_H
#define TSI_STATS_SEGMENT_H

#include "state/arena.h"

void tsi_segment_init(void); /* takes effect once per process */
/* The first publication of a new allocator. */
void tsi_segment_begin(TsiArena* a);
/* Its slot may be another's, after a while. No other thread is inside of the allocator. */
void tsi_segment_end(TsiArena* a);

/* Publishes now; false when it cannot, or is not asked to. Waits for the one that is under way. */
bool tsi_segment_publish(TsiArena* a);
void tsi_segment_look(TsiArena* a);
/* Publishes when the option is set and it is time; else readers are told that something has changed. Leaves errno
 * alone. */
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
