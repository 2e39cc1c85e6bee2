/*
 * segment_rows.h - the tables of a segment and the rows of a report as words of shared memory.
 *
 * Both follow from metrics.def: a scope is a SECTION, a metric any line of it, derived ones included, and a row has its
 * values one after the other. Writers keep their own copy of the places (TsiPlan): shared memory is never read back.
 * Here is also how often segment.c and segment_profile.c write.
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

/* Lays out a segment: replaces all places and sizes of *plan, in bytes from the segment's start or, of rows, from a
 * buffer's, by the sections and metrics of metrics.def. page_bytes: of the system, a power of two, to which buffers
 * are aligned. [no other user of plan] */
void tsi_plan_make(TsiPlan* plan, size_t page_bytes);
/* Returns the place of the buffer `which`, 0 or 1, of the slot number `slot`, in bytes from the start of the segment.
 * [any thread, needs no lock] */
TSI_INLINE size_t tsi_plan_buffer(const TsiPlan* plan, unsigned slot, unsigned which) {
    return plan->buffers + (2 * slot + which) * plan->buffer_bytes;
}
/* Writes the tables of scopes and metrics at plan->scopes and plan->metrics; texts that are too long are cut. plan:
 * made by tsi_plan_make; base: the start of the segment, whose bytes there are zero.
 * [segment lock held, before readers know of the segment] */
void tsi_plan_tables(const TsiPlan* plan, uint8_t* base);
/* Writes counts and rows of the report into `buffer`, the start of one, behind its own words, at the places of *plan,
 * each word by a release store: of each section the first plan->capacity rows, with the number of those left out, here
 * or before; of labels only the chosen ones, which changes the report (tsi_report_choose_labels).
 * [segment lock held] */
void tsi_plan_rows(const TsiPlan* plan, TsiReport* report, uint8_t* buffer);

/* ---- how often a process publishes, so that it costs little of its time ---- */

#define TSI_SEGMENT_PERIOD_NS 100000000u /* between publications of one allocator, at least */
enum {
    TSI_SEGMENT_SHARE = 100, /* after each, the process pauses for its duration times this, */
    TSI_SEGMENT_EACH = 128   /* rows of the phases that hold most, and as many of the oldest */
};
/* The longest pause, shared by the allocators, so that each publishes once a second; and the longest one after a walk
 * over all phases: a process stopped in the middle of one would be silent for hours. */
#define TSI_SEGMENT_PAUSE_NS 900000000u
#define TSI_SEGMENT_WALK_NS 60000000000u

/* Returns the pause, in ns, after a walk over all phases, or a profile, that took took_ns: TSI_SEGMENT_SHARE times
 * that, TSI_SEGMENT_WALK_NS (a minute) at most. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_segment_walk_pause(uint64_t took_ns) {
    uint64_t pause = TSI_SEGMENT_SHARE * took_ns;
    return pause < TSI_SEGMENT_WALK_NS ? pause : TSI_SEGMENT_WALK_NS;
}

#endif
