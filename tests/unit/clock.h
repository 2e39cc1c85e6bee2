/*
 * clock.h - a clock that a test moves on: set_clock and reset_clock are cmocka's setup and teardown.
 */
#ifndef TESTS_UNIT_CLOCK_H
#define TESTS_UNIT_CLOCK_H

#include "unit.h"

static uint64_t clock_skip;
static uint64_t (*real_now)(void), (*real_quick)(void);
static uint64_t later(void) { return real_now() + clock_skip; }

static int set_clock(void** state) {
    (void)state;
    (void)slab_page_size(); /* the table is filled */
    real_now = tsi_os.now_ns;
    real_quick = tsi_os.quick_ns;
    tsi_os.now_ns = tsi_os.quick_ns = later;
    clock_skip = 0;
    return 0;
}
static int reset_clock(void** state) {
    (void)state;
    tsi_os.now_ns = real_now;
    tsi_os.quick_ns = real_quick;
    return 0;
}
static void pass_seconds(unsigned n) { clock_skip += n * 1000000000ull; }

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_clock, reset_clock)

#endif
