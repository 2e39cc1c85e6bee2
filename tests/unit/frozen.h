/*
 * frozen.h - what the tests of the segment share: a clock that stands still but for what a test lets pass, a system that
 * has no room in a file, and a process that has made no segment yet.
 */
#ifndef TESTS_UNIT_FROZEN_H
#define TESTS_UNIT_FROZEN_H

#include "clock.h"

#include "heap/fork.h"
#include "stats/segment.h"

static uint64_t (*real_coarse)(void);
static int (*real_memfd)(const char*);
static int (*real_reserve_file)(int, size_t, size_t);
static unsigned reserve_calls, reserve_fails; /* the number of the call that fails; 0: none */

static int fake_reserve_file(int fd, size_t offset, size_t bytes) {
    return ++reserve_calls == reserve_fails ? ENOSPC : real_reserve_file(fd, offset, bytes);
}

static uint64_t frozen_at;
static uint64_t frozen_clock(void) { return frozen_at + clock_skip; }

/* As a child does: the process makes its segment once. */
static void start_over(void) { tsi_fork_drop_segment(); }

static void freeze(int (*memfd)(const char*)) {
    set_clock();
    tsi_segment_init();
    start_over();
    real_coarse = tsi_os.coarse_ns;
    real_memfd = tsi_os.memfd;
    real_reserve_file = tsi_os.reserve_file;
    frozen_at = real_now();
    tsi_os.now_ns = tsi_os.quick_ns = tsi_os.coarse_ns = frozen_clock;
    tsi_os.memfd = memfd;
    tsi_os.reserve_file = fake_reserve_file;
    reserve_calls = reserve_fails = 0;
}
static void thaw(void) {
    tsi_os.coarse_ns = real_coarse;
    tsi_os.memfd = real_memfd;
    tsi_os.reserve_file = real_reserve_file;
    reset_clock();
}

static uint64_t failures(SlabAllocator* a) { return tsi_segment_health(tsi_arena(a)).failures; }
static uint64_t publications(SlabAllocator* a) { return tsi_segment_health(tsi_arena(a)).publications; }

#endif
