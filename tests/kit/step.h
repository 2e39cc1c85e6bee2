/*
 * step.h - a trap after each instruction of the thread: a test sees what is there between any two of them.
 *
 * Where the processor cannot trap, or the sanitizer's runtime would be trapped in as well, CAN_STEP is 0 and nothing
 * traps.
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
