/*
 * test_stand_ins.c - a phase is released beside a thread that makes a stand-in there.
 *
 * The program has its own malloc, which calls a function at a request of a certain size: the thread stands between its slot
 * and its stand-in, while another ends the phase, and gets the slot for an object of its own. Sampled guards have no blocks
 * of malloc, and others take slots without the lock of stand-ins: the thread stands at each instruction.
 */
#include "kit/one.h"
#include "kit/step.h"

#include "observe/stand_in.h"

#include <pthread.h>
#include <sched.h>
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

/* ---- sampled guards ---- */

enum { NEVER = 1 << 20 };

static void open_sampling(void) {
    SlabOptions o = kit_options();
    o.by_malloc = 2;
    o.guard_sampling = NEVER;
    o.bump = TSI_BUMP_OFF;
    o.warm_bytes = UINT64_MAX; /* what is returned is anybody's at once */
    kit_open_with(o);
}

static uint8_t* slot;
static const _Atomic uint64_t* tag; /* of its slab */
static TsiRef slots_phase;
static unsigned count, at_count, taken, hold;
static bool held;
static pthread_t ender;
static _Atomic bool released;

static void* release(void* unused) {
    (void)unused;
    CHECK(epoch_close_era(a, tsi_ref_era(slots_phase), EPOCH_RELEASE, NULL));
    atomic_store(&released, true);
    return NULL;
}
/* The end is over, or waits for the stopped thread. */
static bool has_come_far(void) {
    TsiLock* stripe = tsi_inc_lock(tsi_inc(&arena->phases, tsi_ref_index(slots_phase)));
    return atomic_load(&released) || (tsi_load_seq(&stripe->waiters) | tsi_load_seq(&tsi_stand_in_lock.waiters)) != 0;
}
/* The other's objects, once the slot is nobody's. */
static void take_the_slot(void* unused) {
    (void)unused;
    memset(others, 0, sizeof others);
    while (!has_come_far()) sched_yield();
    if (tsi_tag_state(tsi_load_seq(tag)) == TSI_SLAB_OWNED) return;
    REQUIRE(epoch_domain_begin(a, "other") != NULL);
    kit_binding(a)->guard_left = NEVER;
    for (unsigned n = 0; n < OTHERS; n++) {
        REQUIRE((others[n].p = slab_malloc(a, SIZE)) != NULL);
        memset(others[n].p, 0x5a, SIZE);
        taken += others[n].p == slot;
    }
}
static void give_all(void* unused) {
    (void)unused;
    for (unsigned n = 0; n < OTHERS && others[n].p != NULL; n++)
        for (unsigned k = 0; k < SIZE; k++) REQUIRE_EQ(((uint8_t*)others[n].p)[k], 0x5a);
    if (epoch_domain_current() != NULL) REQUIRE(epoch_domain_end(epoch_domain_current()));
}

/* From the end of the second hold of the lock on, which was for the block, to the third one's. */
static void end_here(int sig) {
    bool holds = tsi_lock_is_held(&tsi_stand_in_lock);
    (void)sig;
    hold += holds && !held;
    held = holds;
    if (hold < 2 || (hold == 2 && holds) || ++count != at_count) return;
    REQUIRE_EQ(pthread_create(&ender, NULL, release, NULL), 0);
    kit_worker_run(&other, take_the_slot, NULL);
}

static void a_guard_leaves_others_alone(void) {
    TsiPlace at;
    kit_worker_start(&other);
    unsigned stride = kit_stride(1);
    for (at_count = 1 + kit_first(stride, 0);; at_count += stride) {
        ended = epoch_domain_create(a);
        REQUIRE((slot = epoch_domain_malloc(ended, SIZE)) != NULL);
        at = kit_place(a, slot);
        REQUIRE(tsi_place_ref(arena, &at, &slots_phase));
        tag = &tsi_slab(space, at.slab_id)->tag;
        kit_binding(a)->guard_left = NEVER;

        count = hold = 0;
        atomic_store(&released, false);
        kit_steps_begin(end_here);
        (void)kit_hide(tsi_stand_in_make(arena, slot, slots_phase, SIZE, 16, true));
        kit_steps_end();
        if (count < at_count) break; /* it was made before */
        pthread_join(ender, NULL);
        kit_worker_run(&other, give_all, NULL);
        epoch_domain_destroy(ended);
    }
    epoch_domain_destroy(ended);
    kit_worker_stop(&other);
#if CAN_STEP
    REQUIRE_BETWEEN(taken, 1, at_count);
#endif
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE_WITH(an_ended_object_leaves_others_alone, open_allocator, kit_close),
        CHECK_CASE_WITH(a_guard_leaves_others_alone, open_sampling, kit_close),
    };
    if (!CAN_INTERPOSE) puts("the program cannot have its own malloc here: the phase is released afterwards");
    return CHECK_RUN(argc, argv, tests);
}
