/* test_ticks.c - a clock drawn by lines: near the system's, and never back. */
#include "kit/inside.h"

#include "os/clock.h"
#include "os/ticks.h"

/* A counter of 2.5 to a nanosecond, and a system clock that is slewed against it. */
enum { QUARTER = 4 };
static TsiTicks ticks;
static uint64_t count, system_ns, last;

static void start(void) {
    memset(&ticks, 0, sizeof ticks);
    count = 123456789, system_ns = 5000000000u, last = 0;
}

/* ppm: how much faster the system's clock goes than it should by the counter. */
static void pass(uint64_t ns, int ppm) {
    count += ns * 10 / QUARTER;
    system_ns += ns + (uint64_t)((int64_t)ns * ppm / 1000000);
}

static uint64_t ask(void) {
    uint64_t ns;
    if (!tsi_ticks_at(&ticks, count, &ns)) ns = tsi_ticks_draw(&ticks, count, system_ns);
    REQUIRE(ns >= last);
    return last = ns;
}

static uint64_t off(void) {
    uint64_t ns = ask();
    return ns > system_ns ? ns - system_ns : system_ns - ns;
}

static void calibrate(void) {
    start();
    for (int n = 0; n < 1000; n++, pass(100000, 0)) (void)ask();
    REQUIRE(tsi_load_relaxed(&ticks.lines) >= 3);
}

static void is_the_system_s_until_its_rate_is_known(void) {
    start();
    for (int n = 0; n < 20; n++, pass(50000, 0)) REQUIRE(off() == 0 && tsi_load_relaxed(&ticks.lines) == 0);
}

static void keeps_near(void) {
    calibrate();
    for (int n = 0; n < 100000; n++, pass(1000 + (uint64_t)n % 45000 * 2, 0)) REQUIRE(off() <= 20);
    uint64_t drawn = tsi_load_relaxed(&ticks.lines);
    for (int n = 0; n < 1000; n++, pass(10, 0)) (void)ask();
    REQUIRE(tsi_load_relaxed(&ticks.lines) <= drawn + 1); /* a line is good for a while */
}

static void follows_a_clock_that_is_slewed(void) {
    calibrate();
    for (int k = 0; k < 40; k++)
        for (int n = 0; n < 2000; n++, pass(50000, k % 2 ? 500 : -500))
            REQUIRE(off() <= 60000); /* 500 ppm of two lines */
    for (int n = 0; n < 20000; n++, pass(50000, 0)) (void)ask();
    REQUIRE(off() <= 100);
}

/* The clock goes slower than the counter: each line ends ahead of it. */
static void does_not_go_back_where_lines_meet(void) {
    calibrate();
    for (int k = 0; k < 50; k++) {
        uint64_t end = tsi_load_relaxed(&ticks.line[tsi_load_relaxed(&ticks.lines) & 1].count) + TSI_TICKS_SPAN;
        uint64_t ns = (end - 1 - count) * QUARTER / 10;
        system_ns += ns - ns / (k < 25 ? 2000 : 1000000);
        count = end - 1;
        uint64_t drawn = tsi_load_relaxed(&ticks.lines);
        (void)ask();
        count += 2;
        (void)ask();
        REQUIRE_EQ(tsi_load_relaxed(&ticks.lines), drawn + 1);
    }
}

static void is_level_again_after_rests(void) {
    calibrate();
    for (int k = 0; k < 50; k++) {
        pass(UINT64_C(7200000000000), 3); /* two hours */
        REQUIRE(off() <= 100);
        pass(30000000, 0);
        REQUIRE(off() <= 1000);
    }
    count += UINT64_C(1) << 40; /* suspended: the counter went on, the clock did not */
    REQUIRE(off() <= 60000000);
    for (int n = 0; n < 4000; n++, pass(50000, 0)) (void)ask();
    REQUIRE(off() <= 1000);
}

static void gives_a_counter_up_that_cannot_be_believed(void) {
    calibrate();
    for (int n = 0; n < 5000 && !tsi_load_relaxed(&ticks.off); n++) {
        pass(100000, 0);
        count += n % 2 ? 100000000 : -(uint64_t)90000000; /* as on two processors */
        uint64_t ns;
        if (!tsi_ticks_at(&ticks, count, &ns)) (void)tsi_ticks_draw(&ticks, count, system_ns);
    }
    REQUIRE(tsi_load_relaxed(&ticks.off));
}

static void waits_for_nobody_who_draws(void) {
    calibrate();
    pass(40000000, 0);
    tsi_store_relaxed(&ticks.taken, 1); /* and was stopped */
    for (int n = 0; n < 100; n++, pass(1000000, 0)) REQUIRE(off() <= 1000);
    tsi_ticks_child(&ticks);
    uint64_t drawn = tsi_load_relaxed(&ticks.lines);
    (void)ask();
    REQUIRE(tsi_load_relaxed(&ticks.lines) == drawn + 1);
}

static uint64_t told_ns;
static uint64_t tell(void) { return told_ns; }

/* Two clocks that are a little apart are one for a thread: what it stamps lies between what it is told before and after. */
static void what_a_thread_is_told_and_stamps_does_not_go_back(void) {
    TsiOs saved = tsi_os;
    uint64_t (*system)(void) = tell;
    tsi_os.now_ns = tsi_os.quick_ns = system;
    tsi_clock_told = 0;
    told_ns = 5000000000u;
    REQUIRE(tsi_clock_now() == 5000000000u);
    told_ns -= 900;
    REQUIRE(tsi_clock_stamp() == 5000000000u); /* the quick one is behind */
    told_ns += 1900;
    REQUIRE(tsi_clock_stamp() == 5000001000u); /* ahead */
    told_ns -= 500;
    REQUIRE(tsi_clock_now() == 5000001000u);
    told_ns += 600;
    REQUIRE(tsi_clock_now() == 5000001100u);
    told_ns -= TSI_CLOCK_APART; /* as far back as that: it is another clock */
    REQUIRE(tsi_clock_now() == told_ns);
    tsi_clock_told = 0;
    tsi_os = saved;
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(what_a_thread_is_told_and_stamps_does_not_go_back),
        CHECK_CASE(is_the_system_s_until_its_rate_is_known),
        CHECK_CASE(keeps_near),
        CHECK_CASE(follows_a_clock_that_is_slewed),
        CHECK_CASE(does_not_go_back_where_lines_meet),
        CHECK_CASE(is_level_again_after_rests),
        CHECK_CASE(gives_a_counter_up_that_cannot_be_believed),
        CHECK_CASE(waits_for_nobody_who_draws),
    };
    return CHECK_RUN(argc, argv, tests);
}
