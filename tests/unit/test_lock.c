/* test_lock.c - mutual exclusion with and without contention; sleeping and waking; what debug builds check. */
#include "fake_os.h"
#include "kit/inside.h"

#include "os/lock.h"

#include <signal.h>
#include <sys/wait.h>

enum { THREADS = 4, LAPS = 20000 };

static TsiLock lock;
static uint64_t plain; /* guarded by lock */
static _Atomic unsigned inside, worst;

static void one_thread(void) {
    TsiLock l = {0};
    REQUIRE(!tsi_lock_is_held(&l));
    tsi_lock_take(&l);
    REQUIRE(tsi_lock_is_held(&l));
    REQUIRE(!tsi_lock_try(&l));
    tsi_lock_give(&l);
    REQUIRE(tsi_lock_try(&l));
#ifndef TSI_DEBUG
    REQUIRE_EQ(sizeof l, 8);
#endif
    tsi_lock_disown(&l); /* as in a fork child: who had it is not there */
    tsi_lock_reset(&l);
    REQUIRE(tsi_lock_try(&l));
    tsi_lock_give(&l);
}

#ifdef TSI_DEBUG
static TsiLock pool = TSI_LOCK_OF(POOL), table = TSI_LOCK_OF(TABLE), other_table = TSI_LOCK_OF(TABLE);

static void in_order(void) {
    tsi_lock_take(&pool);
    tsi_lock_take(&table);
    tsi_lock_give(&pool); /* in any order */
    TSI_HOLDS(&table);
    REQUIRE(tsi_lock_try(&pool)); /* one that is only tried may come at any place */
    tsi_lock_give(&table);
    tsi_lock_give(&pool);
}
static void out_of_order(void) {
    tsi_lock_take(&table);
    tsi_lock_take(&pool);
}
static void two_of_a_kind(void) {
    tsi_lock_take(&table);
    tsi_lock_take(&other_table);
}
static void twice(void) {
    tsi_lock_take(&table);
    tsi_lock_take(&table);
}
static void not_held(void) { TSI_HOLDS(&pool); }
static void* take_pool(void* arg) {
    (void)arg;
    tsi_lock_take(&pool);
    return NULL;
}
static void held_by_another(void) {
    pthread_t t;
    if (pthread_create(&t, NULL, take_pool, NULL) != 0 || pthread_join(t, NULL) != 0) _exit(2);
    TSI_HOLDS(&pool);
}
static void given_twice(void) {
    tsi_lock_take(&pool);
    tsi_lock_give(&pool);
    tsi_lock_give(&pool);
}

/* Whether a process that does this is stopped. */
static bool stops(void (*what)(void)) {
    int status;
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
        for (int sig = 1; sig < NSIG; sig++) (void)signal(sig, SIG_DFL);
        what();
        _exit(0);
    }
    REQUIRE_EQ(waitpid(child, &status, 0), child);
    REQUIRE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    return WIFSIGNALED(status);
}

static void debug_builds_check(void) {
    in_order();
    REQUIRE(stops(out_of_order));
    REQUIRE(stops(two_of_a_kind));
    REQUIRE(stops(twice));
    REQUIRE(stops(not_held));
    REQUIRE(stops(held_by_another));
    REQUIRE(stops(given_twice));
    REQUIRE(!stops(in_order));
}
#endif

static void* contender(void* arg) {
    (void)arg;
    for (unsigned i = 0; i < LAPS; i++) {
        tsi_lock_take(&lock);
        unsigned n = tsi_add_relaxed(&inside, 1) + 1;
        if (n > tsi_load_relaxed(&worst)) tsi_store_relaxed(&worst, n);
        plain++;
        tsi_sub_relaxed(&inside, 1);
        tsi_lock_give(&lock);
    }
    return NULL;
}

static void contention(void) {
    pthread_t t[THREADS];
    for (unsigned i = 0; i < THREADS; i++) REQUIRE_EQ(pthread_create(&t[i], NULL, contender, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++) REQUIRE_EQ(pthread_join(t[i], NULL), 0);
    REQUIRE_EQ(plain, THREADS * LAPS);
    REQUIRE_EQ(worst, 1);
    REQUIRE(!tsi_lock_is_held(&lock));
}

/* Waiters that sleep in the kernel are all woken, one after the other. */
static void sleepers_are_woken(void) {
    pthread_t t[THREADS];
    plain = 0;
    tsi_lock_take(&lock);
    for (unsigned i = 0; i < THREADS; i++) REQUIRE_EQ(pthread_create(&t[i], NULL, contender, NULL), 0);
    while (tsi_load_relaxed(&lock.waiters) != THREADS) (void)usleep(100);
    REQUIRE_EQ(plain, 0);
    tsi_lock_give(&lock);
    for (unsigned i = 0; i < THREADS; i++) REQUIRE_EQ(pthread_join(t[i], NULL), 0);
    REQUIRE_EQ(plain, THREADS * LAPS);
}

static void* wait_for_it(void* arg) {
    (void)arg;
    tsi_lock_take(&lock);
    tsi_lock_give(&lock);
    return NULL;
}

/* The giver looks for waiters without a fence: each that waits has issued one for both. */
static void a_waiter_fences_for_both(void) {
    pthread_t t;
    fake_os_clear();
    tsi_lock_take(&lock);
    REQUIRE_EQ(pthread_create(&t, NULL, wait_for_it, NULL), 0);
    while (tsi_load_relaxed(&lock.waiters) == 0) (void)usleep(100);
    tsi_lock_give(&lock);
    REQUIRE_EQ(pthread_join(t, NULL), 0);
    REQUIRE_EQ(fake_os.barriers, tsi_os.has_membarrier);
}

int main(int argc, char** argv) {
    fake_os_install(0, false, false);
    tsi_process_init();
    const CheckCase tests[] = {
        CHECK_CASE(one_thread),
#ifdef TSI_DEBUG
        CHECK_CASE(debug_builds_check),
#endif
        CHECK_CASE(contention),         CHECK_CASE(sleepers_are_woken), CHECK_CASE(a_waiter_fences_for_both),
    };
    return CHECK_RUN(argc, argv, tests);
}
