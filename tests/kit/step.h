/*
 * step.h - a trap after each instruction of the thread: a test sees what is there between any two of them.
 *
 * Where the processor cannot trap, or the sanitizer's runtime would be trapped in as well, CAN_STEP is 0 and nothing
 * traps.
 *
 * A test that runs a call again for each place where it may be stopped takes one place in kit_stride(): the work is the
 * square of the call's length. All places have their turn in `make check`.
 */
#ifndef TESTS_KIT_STEP_H
#define TESTS_KIT_STEP_H

#include "kit/check.h"

#include <signal.h>
#include <string.h>

#if defined __has_feature
#if __has_feature(thread_sanitizer)
#define __SANITIZE_THREAD__ 1
#endif
#endif
#if defined __x86_64__ && !defined __SANITIZE_THREAD__
#define CAN_STEP 1
static inline void kit_trap(bool on) {
    if (on) __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
    else __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
}
#else
#define CAN_STEP 0
static inline void kit_trap(bool on) { (void)on; }
#endif

/* Returns the number of instructions from one place to the next: `wide` or, above scale 1, 1; four times as many below
 * scale 1; and several for one of ours where AddressSanitizer adds its own. */
static inline unsigned kit_stride(unsigned wide) {
    double scale = check_scale();
    if (scale > 1) return CHECK_ASAN ? 3 : 1;
    return (CHECK_ASAN ? 7 : 1) * (scale >= 1 ? wide : 4 * wide);
}
/* The first place, below `stride`: another one in each case, so that together they are at most places. */
static inline unsigned kit_first(unsigned stride, unsigned n) {
    uint64_t sum = n;
    for (const char* c = check_state.name; c != NULL && *c != '\0'; c++) sum = (sum + (unsigned char)*c) * 0x9e3779b97f4a7c15u;
    return (unsigned)((sum >> 32) % stride);
}

static struct sigaction kit_before_steps;
/* Calls `at_each` after each instruction until kit_steps_end. */
static inline void kit_steps_begin(void (*at_each)(int)) {
    struct sigaction sa;
    memset(&sa, 0, sizeof sa);
    sa.sa_handler = at_each;
    REQUIRE_EQ(sigaction(SIGTRAP, &sa, &kit_before_steps), 0);
    kit_trap(true);
}
static inline void kit_steps_end(void) {
    kit_trap(false);
    REQUIRE_EQ(sigaction(SIGTRAP, &kit_before_steps, NULL), 0);
}

#endif
