/*
 * test_stand_ins.c - a phase is released beside a thread that makes a stand-in there.
 *
 * The program has its own malloc, which calls a function at a request of a certain size: the thread stands between its slot
 * and its stand-in, while another ends the phase, and gets the slot for an object of its own.
 */
#include "kit/one.h"

#include <stdlib.h>

#if defined __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#if defined __GLIBC__ && !defined __SANITIZE_ADDRESS__ && !defined __SANITIZE_THREAD__
#define CAN_INTERPOSE 1
void* __libc_malloc(size_t n);
static _Thread_local size_t interrupted_size;
static void (*at_malloc)(void);
void* malloc(size_t n) {
    if (n != 0 && n == interrupted_size) {
        interrupted_size = 0;
        at_malloc();
    }
    return __libc_malloc(n);
}
static void interrupt_malloc(size_t n, void (*fn)(void)) {
    at_malloc = fn;
    interrupted_size = n;
}
#else
#define CAN_INTERPOSE 0
static void interrupt_malloc(size_t n, void (*fn)(void)) {
    (void)n;
    (void)fn;
}
#endif

enum { SIZE = 104, OTHERS = 64 };

static epoch_domain_t* ended;
static struct {
    void* p;
    SlabHandle h;
} others[OTHERS];

static void open_allocator(void) {
    SlabOptions o = kit_options();
    o.by_malloc = 1;
    kit_open_with(o);
}

/* The other's objects have the released phase's memory. */
static void release_and_take(void* unused) {
    (void)unused;
    REQUIRE(epoch_close_era(a, ended->epoch_era, EPOCH_RELEASE, NULL));
    REQUIRE(epoch_domain_begin(a, "other") != NULL);
    for (unsigned n = 0; n < OTHERS; n++) REQUIRE((others[n].p = alloc_obj(a, SIZE, &others[n].h)) != NULL);
}
static KitWorker other;
static void take_elsewhere(void) { kit_worker_run(&other, release_and_take, NULL); }

static void an_ended_object_leaves_others_alone(void) {
    kit_worker_start(&other);
    ended = epoch_domain_create(a);
    REQUIRE(ended != NULL);
    (void)epoch_domain_malloc(ended, SIZE);
    interrupt_malloc(SIZE, take_elsewhere);
    REQUIRE(epoch_domain_malloc(ended, SIZE) != NULL);
    if (!CAN_INTERPOSE) take_elsewhere();
    for (unsigned n = 0; n < OTHERS; n++) {
        REQUIRE_EQ(slab_handle_ptr(a, others[n].h), others[n].p);
        REQUIRE_EQ(slab_ptr_handle(a, others[n].p), others[n].h);
    }
    for (unsigned n = 0; n < OTHERS; n++) REQUIRE(free_obj(a, others[n].h));
    for (unsigned n = 0; n < OTHERS; n++) REQUIRE(!slab_free_checked(a, others[n].p));
    kit_worker_stop(&other);
    epoch_domain_destroy(ended);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {CHECK_CASE_WITH(an_ended_object_leaves_others_alone, open_allocator, kit_close)};
    if (!CAN_INTERPOSE) puts("the program cannot have its own malloc here: the phase is released afterwards");
    return CHECK_RUN(argc, argv, tests);
}
