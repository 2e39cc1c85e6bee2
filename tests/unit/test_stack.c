/*
 * test_stack.c - walks by frame pointers where the chain leads to memory that is gone.
 *
 * A chain of frames is made by hand in a mapping that stands for a stack, and goes on in its upper half. Neighbours
 * are one mapping for the kernel, so bounds that were looked up once still have that half when it is no longer there.
 */
#include "kit/inside.h"

#include "observe/profile.h"
#include "observe/profile.h"
#include "os/stack.h"

#include <sys/mman.h>

enum { FRAMES = 8, HALF = 1 << 16 };

typedef struct Frame {
    uintptr_t up, back;
} Frame;

static Frame* map_chain(uint8_t** at) {
    *at = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    REQUIRE(*at != MAP_FAILED);
    Frame *low = (Frame*)(void*)(*at + 64), *high = (Frame*)(void*)(*at + HALF + 64);
    low[0] = (Frame){(uintptr_t)&low[1], 1001};
    low[1] = (Frame){(uintptr_t)high, 1002};
    high[0] = (Frame){(uintptr_t)&high[1], 1003};
    high[1] = (Frame){0, 1004};
    return low;
}

static unsigned walk(const Frame* from, uintptr_t low, uintptr_t high, uintptr_t out[FRAMES]) {
    memset(out, 0, FRAMES * sizeof *out);
    return tsi_stack_walk((uintptr_t)from, low, high, out, FRAMES);
}

static void what_was_above_the_stack_is_gone(void) {
    tsi_process_init();
    uint8_t* at;
    uintptr_t low, high, out[FRAMES];
    Frame* first = map_chain(&at);
    REQUIRE(tsi_stack_bounds((uintptr_t)first, &low, &high));
    REQUIRE(low <= (uintptr_t)at && high >= (uintptr_t)at + 2 * HALF);
#if defined(__x86_64__) || defined(__aarch64__)
    REQUIRE_EQ(walk(first, low, high, out), 4);
    REQUIRE_EQ(out[3], 1004);
    errno = 77;
    REQUIRE_EQ(mprotect(at + HALF, HALF, PROT_NONE), 0);
    REQUIRE_EQ(walk(first, low, high, out), 2);
    REQUIRE_EQ(munmap(at + HALF, HALF), 0);
    REQUIRE_EQ(walk(first, low, high, out), 2);
    REQUIRE_EQ(out[1], 1002);
    /* A frame that begins in the last word there is. */
    Frame* edge = (Frame*)(void*)(at + HALF - sizeof(uintptr_t));
    first[1].up = (uintptr_t)edge;
    REQUIRE_EQ(walk(first, low, high, out), 2);
    REQUIRE_EQ(errno, 77);
#else
    REQUIRE_EQ(walk(first, low, high, out), 0);
    REQUIRE_EQ(munmap(at + HALF, HALF), 0);
#endif
    REQUIRE_EQ(munmap(at, HALF), 0);
}

/* The caller of the third function, which is noted because that one keeps no frame, comes behind it: once, also where it
 * keeps one, and where there is room. */
static void who_called_without_a_frame_is_told_once(void) {
    tsi_process_init();
    static TsiBinding b;
    uintptr_t out[FRAMES];
#if defined(__x86_64__) || defined(__aarch64__)
    Frame chain[4];
    for (unsigned n = 0; n < 4; n++) chain[n] = (Frame){n < 3 ? (uintptr_t)&chain[n + 1] : 0, 101 + n};
    TsiCaller from = {100, (uintptr_t)&chain[0]};
    REQUIRE_EQ(tsi_profile_frames(&b, from, out, FRAMES), 5);
    b.past = 77;
    REQUIRE_EQ(tsi_profile_frames(&b, from, out, FRAMES), 6);
    REQUIRE(out[2] == 102 && out[3] == 77 && out[4] == 103 && out[5] == 104);
    REQUIRE_EQ(tsi_profile_frames(&b, from, out, 5), 5);
    REQUIRE(out[3] == 77 && out[4] == 103);
    REQUIRE_EQ(tsi_profile_frames(&b, from, out, 3), 3);
    b.past = 103;
    REQUIRE_EQ(tsi_profile_frames(&b, from, out, FRAMES), 5);
    REQUIRE(out[3] == 103 && out[4] == 104);
    chain[1].up = 0;
    REQUIRE_EQ(tsi_profile_frames(&b, from, out, FRAMES), 4);
    REQUIRE_EQ(out[3], 103);
#else
    REQUIRE_EQ(tsi_profile_frames(&b, (TsiCaller){100, 0}, out, FRAMES), 1);
#endif
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {CHECK_CASE(what_was_above_the_stack_is_gone),
                               CHECK_CASE(who_called_without_a_frame_is_told_once)};
    return CHECK_RUN(argc, argv, tests);
}
