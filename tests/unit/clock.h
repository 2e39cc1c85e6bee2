/*
 * clock.h - a clock that a test moves on: what is before and after each case is set_clock and reset_clock.
 */
#ifndef TESTS_UNIT_CLOCK_H
#define TESTS_UNIT_CLOCK_H

#include "kit/inside.h"

static uint64_t clock_skip;
static uint64_t (*real_now)(void), (*real_quick)(void);
static uint64_t later(void) { return real_now() + clock_skip; }

static void set_clock(void) {
    (void)slab_page_size(); /* the table is filled */
    real_now = tsi_os.now_ns;
    real_quick = tsi_os.quick_ns;
    tsi_os.now_ns = tsi_os.quick_ns = later;
    clock_skip = 0;
}
static void reset_clock(void) {
    tsi_os.now_ns = real_now;
    tsi_os.quick_ns = real_quick;
}
static void pass_seconds(unsigned n) { clock_skip += n * 1000000000ull; }

#define TEST(fn) CHECK_CASE_WITH(fn, set_clock, reset_clock)

#endif
