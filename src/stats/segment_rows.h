/*
 * segment_rows.h - the tables of a segment and the rows of a report as words of shared memory.
 *
 * Both follow from metrics.def: a scope is a SECTION, a metric any line of it, derived ones included, and a row has
 * its values one after the other. Everything that writes keeps its own copy of where things are (TsiPlan): what
 * lies in shared memory is never read back. And when: the pace of segment.c and segment_profile.c.
 */
#ifndef TSI_STATS_SEGMENT_ROWS_H
#define TSI_STATS_SEGMENT_ROWS_H

#include "stats/metrics.h"

typedef _Atomic uint64_t TsiShareWord;

/* Places, in bytes. */
typedef struct TsiPlan {
    uint32_t metric_offset[TSI_METRICS], metric_bytes[TSI_METRICS]; /* in a row */
    uint32_t row_bytes[TSI_SECTIONS], capacity[TSI_SECTIONS];
    size_t rows[TSI_SECTIONS]; /* from the start of a buffer */
    size_t buffer_bytes;
    size_t scopes, metrics, slots, buffers; /* from the start of the segment */
    size_t total_bytes;
} TsiPlan;

void tsi_plan_make(TsiPlan* p, size_t page_bytes);
TSI_INLINE size_t tsi_plan_buffer(const TsiPlan* p, unsigned slot, unsigned which) {
    return p->buffers + (2 * slot + which) * p->buffer_bytes;
}
/* Writes both tables: `base` is the start of the segment. */
void tsi_plan_tables(const TsiPlan* p, uint8_t* base);
/* Writes counts and rows into a buffer, each word by a release store; of labels those that are chosen. */
void tsi_plan_rows(const TsiPlan* p, TsiReport* r, uint8_t* buffer);

/* ---- how often a process publishes, so that it costs little of its time ---- */

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
