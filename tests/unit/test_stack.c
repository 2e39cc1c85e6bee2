/*
 * test_stack.c - walks by frame pointers where the chain leads to memory that is gone.
 *
 * A chain of frames is made by hand in a mapping that stands for a stack, and goes on in its upper half. Neighbours
 * are one mapping for the kernel, so bounds that were looked up once still have that half when it is no longer there.
 */
#include "unit.h"

#include "os/stack.h"

#include <sys/mman.h>

enum { FRAMES = 8, HALF = 1 << 16 };

typedef struct Frame {
    uintptr_t up, back;
} Frame;

static Frame* map_chain(uint8_t** at) {
    *at = mmap(NULL, 2 * HALF, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(*at != MAP_FAILED);
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

static void what_was_above_the_stack_is_gone(void** state) {
    (void)state;
    tsi_process_init();
    uint8_t* at;
    uintptr_t low, high, out[FRAMES];
    Frame* first = map_chain(&at);
    assert_true(tsi_stack_bounds((uintptr_t)first, &low, &high));
    assert_true(low <= (uintptr_t)at && high >= (uintptr_t)at + 2 * HALF);
#if defined(__x86_64__) || defined(__aarch64__)
    assert_int_equal(walk(first, low, high, out), 4);
    assert_int_equal(out[3], 1004);
    errno = 77;
    assert_int_equal(mprotect(at + HALF, HALF, PROT_NONE), 0);
    assert_int_equal(walk(first, low, high, out), 2);
    assert_int_equal(munmap(at + HALF, HALF), 0);
    assert_int_equal(walk(first, low, high, out), 2);
    assert_int_equal(out[1], 1002);
    /* A frame that begins in the last word there is. */
    Frame* edge = (Frame*)(void*)(at + HALF - sizeof(uintptr_t));
    first[1].up = (uintptr_t)edge;
    assert_int_equal(walk(first, low, high, out), 2);
    assert_int_equal(errno, 77);
#else
    assert_int_equal(walk(first, low, high, out), 0);
    assert_int_equal(munmap(at + HALF, HALF), 0);
#endif
    assert_int_equal(munmap(at, HALF), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_above_the_stack_is_gone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
