/* test_lock.c - mutual exclusion with and without contention; sleeping and waking. */
#include "fake_os.h"
#include "unit.h"

#include "os/lock.h"

enum { THREADS = 4, LAPS = 20000 };

static TsiLock lock;
static uint64_t plain; /* guarded by lock */
static _Atomic unsigned inside, worst;

static void one_thread(void** state) {
    (void)state;
    TsiLock l = {0};
    assert_false(tsi_lock_is_held(&l));
    tsi_lock_take(&l);
    assert_true(tsi_lock_is_held(&l));
    assert_false(tsi_lock_try(&l));
    tsi_lock_give(&l);
    assert_true(tsi_lock_try(&l));
    assert_int_equal(sizeof l, 8);
    tsi_lock_reset(&l); /* as a fork child does */
    assert_true(tsi_lock_try(&l));
}

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

static void contention(void** state) {
    (void)state;
    pthread_t t[THREADS];
    for (unsigned i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, contender, NULL), 0);
    for (unsigned i = 0; i < THREADS; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
    assert_int_equal(plain, THREADS * LAPS);
    assert_int_equal(worst, 1);
    assert_false(tsi_lock_is_held(&lock));
}

/* Waiters that sleep in the kernel are all woken, one after the other. */
static void sleepers_are_woken(void** state) {
    (void)state;
    pthread_t t[THREADS];
    plain = 0;
    tsi_lock_take(&lock);
    for (unsigned i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&t[i], NULL, contender, NULL), 0);
    while (tsi_load_relaxed(&lock.waiters) != THREADS) (void)usleep(100);
    assert_int_equal(plain, 0);
    tsi_lock_give(&lock);
    for (unsigned i = 0; i < THREADS; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
    assert_int_equal(plain, THREADS * LAPS);
}

static void* wait_for_it(void* arg) {
    (void)arg;
    tsi_lock_take(&lock);
    tsi_lock_give(&lock);
    return NULL;
}

/* The giver looks for waiters without a fence: each that waits has issued one for both. */
static void a_waiter_fences_for_both(void** state) {
    (void)state;
    pthread_t t;
    fake_os_clear();
    tsi_lock_take(&lock);
    assert_int_equal(pthread_create(&t, NULL, wait_for_it, NULL), 0);
    while (tsi_load_relaxed(&lock.waiters) == 0) (void)usleep(100);
    tsi_lock_give(&lock);
    assert_int_equal(pthread_join(t, NULL), 0);
    assert_int_equal(fake_os.barriers, tsi_os.has_membarrier);
}

int main(void) {
    fake_os_install(0, false, false);
    tsi_process_init();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread),
        cmocka_unit_test(contention),
        cmocka_unit_test(sleepers_are_woken),
        cmocka_unit_test(a_waiter_fences_for_both),
    };
    return cmocka_run_group_tests_name("lock", tests, NULL, NULL);
}
