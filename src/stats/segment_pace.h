/*
 * segment_pace.h - how often a process publishes, so that it costs little of its time.
 */
#ifndef TSI_STATS_SEGMENT_PACE_H
#define TSI_STATS_SEGMENT_PACE_H

#include "base/bits.h"

#define TSI_SEGMENT_PERIOD_NS 100000000u /* between publications of one allocator, at least */
enum {
    TSI_SEGMENT_SHARE = 100, /* after each, the process makes none for so many times what it took, */
    TSI_SEGMENT_EACH = 128   /* rows of phases that hold most, and as many of the oldest */
};
/* But for no longer than this, shared by its allocators, so that each comes once a second; walks over all phases
 * likewise: a process that was stopped in the midst of one would be silent for hours. */
#define TSI_SEGMENT_PAUSE_NS 900000000u
#define TSI_SEGMENT_WALK_NS 60000000000u

/* After a walk over all phases, or a profile, that took so many ns. */
TSI_INLINE uint64_t tsi_segment_walk_pause(uint64_t took_ns) {
    uint64_t pause = TSI_SEGMENT_SHARE * took_ns;
    return pause < TSI_SEGMENT_WALK_NS ? pause : TSI_SEGMENT_WALK_NS;
}

#endif
