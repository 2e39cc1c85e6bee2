/*
 * test_waits.c - who waits for another thread sleeps, so that a thread of lower priority gets the processor, too.
 *
 * The main thread pretends to be in the way, in a bank, or of an exit. It goes out of it when the kernel has
 * seen the waiter sleep some more times: one that merely yields never sleeps. Sleeps are counted, nothing is timed.
 */
#define _GNU_SOURCE
#include "kit/inside.h"

#include "threads/bank.h"

enum { SIZE = 1024, HERE = 5, SLEEPS = 20, PATIENCE = 6000 /* looks, 10 ms apart */ };

static SlabAllocator* a;
static void* object;
static _Atomic int waiter; /* its thread id */
static _Atomic bool over;

static void open_allocator(void) {
    SlabOptions o = kit_options();
    o.shared = 1;
    REQUIRE((a = slab_allocator_create_with(&o)) != NULL);
    REQUIRE((object = slab_malloc_epoch(a, SIZE, HERE)) != NULL);
    atomic_store(&waiter, 0);
    atomic_store(&over, false);
}
static void close_allocator(void) {
    kit_check(a);
    slab_allocator_free(a);
}

/* How often the waiter has slept; a yield is no such switch. */
static unsigned long sleeps(void) {
    char name[64], line[128];
    unsigned long n = 0;
    snprintf(name, sizeof name, "/proc/self/task/%d/status", atomic_load(&waiter));
    FILE* f = fopen(name, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL)
        if (sscanf(line, "voluntary_ctxt_switches: %lu", &n) == 1) break;
    if (f != NULL) (void)fclose(f);
    return n;
}

static void* wait_in(void* call) {
    atomic_store(&waiter, (int)gettid());
    (*(void (**)(void))call)();
    atomic_store(&over, true);
    return NULL;
}

/* The call waits until `let_go`, and sleeps again and again before that. */
static void expect_sleeps(void (*call)(void), void (*let_go)(void)) {
    pthread_t t;
    REQUIRE_EQ(pthread_create(&t, NULL, wait_in, &call), 0);
    while (atomic_load(&waiter) == 0) (void)usleep(100);
    unsigned long before = sleeps();
    bool slept = false;
    for (unsigned looks = 0; looks < PATIENCE && !slept && !atomic_load(&over); looks++) {
        (void)usleep(10000);
        slept = sleeps() >= before + SLEEPS;
    }
    bool early = atomic_load(&over);
    let_go();
    REQUIRE_EQ(pthread_join(t, NULL), 0);
    REQUIRE(!early);
    REQUIRE(slept);
}

/* ---- who waits ---- */

static void alloc(void) { (void)slab_malloc_epoch(a, SIZE, HERE); }
static void destroy(void) { slab_allocator_free(a); }

static void end_banks(void) {
    for (unsigned n = 0; n < TSI_SHARED_BANKS; n++) tsi_lock_give(&tsi_arena(a)->bank[n].lock);
}
static void end_exit(void) { atomic_store(&tsi_arena(a)->exiting, 0); }

/* All of them are in use: then it goes on from one to the next. */
static void an_allocation_sleeps_until_a_bank_is_free(void) {
    for (unsigned n = 0; n < TSI_SHARED_BANKS; n++) REQUIRE(tsi_lock_try(&tsi_arena(a)->bank[n].lock));
    expect_sleeps(alloc, end_banks);
}

static void a_destroy_sleeps_until_threads_have_left(void) {
    atomic_store(&tsi_arena(a)->exiting, 1);
    expect_sleeps(destroy, end_exit);
    open_allocator(); /* for the teardown */
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE_WITH(an_allocation_sleeps_until_a_bank_is_free, open_allocator, close_allocator),
        CHECK_CASE_WITH(a_destroy_sleeps_until_threads_have_left, open_allocator, close_allocator),
    };
    return CHECK_RUN(argc, argv, tests);
}
