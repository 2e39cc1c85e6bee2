/*
 * sample.h - slow allocations timed end to end, one in `period`.
 *
 * An allocation is slow if it leaves the fast path: a line is used up, a region is full, a phase allocates for the
 * first time or its heap is searched for, an object is large, the profile has a mark. Slow ones alone wait for locks,
 * the kernel or memory. Each thread times one in `period` of its own. A fast one takes less time than reading a clock.
 *
 * The thread's cpu clock is read outside, the wall clock inside; the cost of the readings (calibrated once, the least
 * of many) is subtracted, and nothing goes below 0. wait = wall - cpu - time slept for our own locks, which is reported
 * separately. If the thread lost the processor as the first reading returned, the switch is in the cpu time and not in
 * the wall clock: cpu is set to at most wall. A sample with 50 microseconds more cpu than wall met a clock that jumped
 * and is dropped.
 *
 * Reading the cpu clock makes the kernel check whether the thread's time slice is over, so nearly every loss of the
 * processor happens as that reading returns. Exactly the cpu time that was read lies between the checks of the two
 * readings, and a slice ends anywhere in it. So a third reading of the wall clock, after the second of the cpu clock,
 * measures the wait there, and the allocation is charged its share: its cpu time by the cpu time read, over all samples
 * so far.
 */
#ifndef TSI_OBSERVE_SAMPLE_H
#define TSI_OBSERVE_SAMPLE_H

#include "state/arena.h"

typedef struct TsiStopwatch {
    uint64_t cpu, wall, slept;
} TsiStopwatch;

/* Measures the cost of reading the clocks, once per process, when an allocator samples; a thread that comes meanwhile
 * waits, and later calls do nothing. [any thread, no lock held] */
void tsi_sample_calibrate(void);
/* Returns the readings, in ns, at the beginning of a sample: processor time and wall clock, and the time that the
 * thread has slept for our locks. [own thread, needs no lock] */
TsiStopwatch tsi_sample_start(void);
/* Ends the sample of an allocation that began with the readings `since`: adds it to the thread's sums, number and
 * histogram of wall times, and sets ns to its wall, cpu and wait time. Returns true; false if the clocks cannot be
 * believed: it is counted as dropped, and ns is left alone. [own thread, needs no lock] */
bool tsi_sample_stop_alloc(TsiBinding* b, TsiStopwatch since, uint64_t ns[3]);
/* Adds a sample, ns its wall, cpu and wait time, to samples and sample_ns of the label of the phase `of`; of
 * "(unlabeled)" if `of` is 0 or its record serves another phase by now. [own thread, needs no lock] */
void tsi_sample_label(TsiBinding* b, TsiRef of, const uint64_t ns[3]);
/* Counts a repair: an allocation has found a line in a queue where it must not be, and has mended that. why: 0 no free
 * slot, 1 not of this owner or class, 2 other. If sampling is on, also adds its times, from the readings `since` on;
 * otherwise `since` is not read. [own thread, needs no lock] */
void tsi_sample_repair(TsiBinding* b, unsigned why, TsiStopwatch since);
/* Takes 1 off b->slow_left, for a slow path of the thread. Returns true if that reaches 0: this one is to be timed,
 * and slow_left is drawn anew: b->period, more or less by up to a quarter. Sampling is on (b->period is not 0).
 * [own thread, needs no lock] */
bool tsi_sample_due(TsiBinding* b);
/* Adds the samples of *from, which is read only, to those of *to, and raises the maxima of *to to those of *from.
 * Another thread may be writing *from: its figures may be a moment old.
 * [the one writer of *to: its own, or registry lock held] */
void tsi_samples_fold(TsiSamples* to, TsiSamples* from);

#endif
