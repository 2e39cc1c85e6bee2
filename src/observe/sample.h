/*
 * sample.h - slow allocations timed end to end, one in so many.
 *
 * Slow are those that leave the fast path: a line is used up, a region is full, a phase allocates for the first time or
 * its heap is looked for, an object is large, the profile has a mark. They alone wait for locks, the kernel or memory.
 * Each thread counts its own and times one in `period`. A fast one takes less time than to read a clock: it is not
 * timed.
 *
 * The thread's cpu clock is read outside, the wall clock inside; what the readings cost (calibrated once, the
 * least of many) is taken off, and nothing goes below 0. wait = wall - cpu - time slept for our own locks, which
 * is told apart. Where the thread lost the processor as the first reading returned, the switch is in the cpu time
 * and not in the wall clock: cpu is at most wall. A sample with 50 microseconds more cpu than wall met a clock that
 * jumped and is dropped.
 *
 * Reading the cpu clock makes the kernel look whether the thread's time slice is over, so nearly every loss of
 * the processor happens as that reading returns. Between the two readings' looks lies exactly the cpu time that
 * was read, and a slice ends anywhere in it: so a third reading of the wall clock, after the second of the cpu clock,
 * measures what was waited there, and the allocation is charged its part: that of its cpu time in the cpu
 * time read, over all samples so far.
 */
#ifndef TSI_OBSERVE_SAMPLE_H
#define TSI_OBSERVE_SAMPLE_H

#include "state/arena.h"

typedef struct TsiStopwatch {
    uint64_t cpu, wall, slept;
} TsiStopwatch;

/* Once per process, when an allocator samples. */
void tsi_sample_calibrate(void);
TsiStopwatch tsi_sample_start(void);
/* Wall, cpu and wait of the sample to ns; false when it is dropped. */
bool tsi_sample_stop_alloc(TsiBinding* b, TsiStopwatch since, uint64_t ns[3]);
/* Adds it to the label of a phase; to "(unlabeled)" for 0, and when the phase's record serves another one by now. */
void tsi_sample_label(TsiBinding* b, TsiRef of, const uint64_t ns[3]);
/* why: 0 no free slot, 1 not of this owner or class, 2 other. `since` counts when sampling is on. */
void tsi_sample_repair(TsiBinding* b, unsigned why, TsiStopwatch since);
/* Counts a slow path of the thread; true when it is to be timed. Sampling is on. */
bool tsi_sample_due(TsiBinding* b);
/* Adds a thread's samples to the arena's, for threads that leave. Registry lock. */
void tsi_samples_fold(TsiSamples* to, TsiSamples* from);

#endif
