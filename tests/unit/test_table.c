/* test_table.c - records that never move: growth, exhaustion, reuse, the reserve kept back, lack of memory. */
#include "fake_os.h"
#include "unit.h"

#include "os/table.h"

enum { STRIDE = 192, CAPACITY = 3000 };

typedef struct Record {
    uint32_t number;
    uint32_t more;
    uint64_t rest[STRIDE / 8 - 1];
} Record;

static TsiTable table;

static int open_table(void** state) {
    (void)state;
    fake_os_clear();
    return tsi_table_init(&table, STRIDE, CAPACITY) ? 0 : -1;
}
static int close_table(void** state) {
    (void)state;
    tsi_table_destroy(&table);
    return 0;
}
static uint32_t take(void) {
    uint32_t index = UINT32_MAX;
    assert_true(tsi_table_take(&table, &index, 0));
    return index;
}

static void all_records_once(void** state) {
    (void)state;
    uint32_t index;
    for (uint32_t i = 0; i < CAPACITY; i++) {
        assert_int_equal(take(), i);
        Record* r = tsi_table_at(&table, i);
        assert_int_equal(r->number, 0); /* fresh ones are zeroed */
        memset(r, 0xff, sizeof *r);
    }
    assert_int_equal(tsi_table_used(&table), CAPACITY);
    assert_false(tsi_table_take(&table, &index, 0));
    assert_true(table.bytes_committed <= table.bytes_reserved);
    tsi_table_give(&table, 77);
    assert_int_equal(take(), 77);
    assert_false(tsi_table_take(&table, &index, 0));
}

static void growth_is_in_steps(void** state) {
    (void)state;
    (void)take();
    assert_int_equal(fake_os.calls[FAKE_COMMIT], 1);
    assert_int_equal(table.bytes_committed, 64 << 10);
    for (unsigned i = 1; i < (64 << 10) / STRIDE; i++) (void)take();
    assert_int_equal(fake_os.calls[FAKE_COMMIT], 1);
    (void)take();
    assert_int_equal(fake_os.calls[FAKE_COMMIT], 2);
}

/* Once full, records come back in turn, whatever the order in which they were given. */
static void taken_in_turn(void** state) {
    (void)state;
    for (uint32_t i = 0; i < CAPACITY; i++) (void)take();
    static const uint32_t given[] = {9, 3, 2999, 0, 50}, turn[] = {0, 3, 9, 50, 2999};
    for (unsigned i = 0; i < 5; i++) tsi_table_give(&table, given[i]);
    for (unsigned i = 0; i < 5; i++) assert_int_equal(take(), turn[i]);
    for (unsigned i = 0; i < 5; i++) tsi_table_give(&table, given[4 - i]);
    assert_int_equal(take(), 0);
    tsi_table_give(&table, 0); /* it has had its turn */
    for (unsigned i = 1; i < 5; i++) assert_int_equal(take(), turn[i]);
    assert_int_equal(take(), 0);
}

/* A record comes back late: not while there are fresh ones and few are free. */
static void reuse_is_late(void** state) {
    (void)state;
    uint32_t first = take();
    ((Record*)tsi_table_at(&table, first))->number = 5;
    tsi_table_give(&table, first);
    assert_int_equal(((Record*)tsi_table_at(&table, first))->number, 5); /* a stale reader sees what was there */
    for (unsigned i = 0; i < 60; i++) {
        uint32_t index = take();
        assert_int_not_equal(index, first);
        tsi_table_give(&table, index);
    }
    bool seen = false;
    for (unsigned i = 0; i < 200 && !seen; i++) {
        uint32_t index = take();
        seen = index == first;
        tsi_table_give(&table, index);
    }
    assert_true(seen);
    assert_true(tsi_table_used(&table) < 100); /* and the table does not grow for ever */
}

static void some_are_kept_back(void** state) {
    (void)state;
    uint32_t index;
    for (uint32_t i = 0; i < CAPACITY - 10; i++) assert_true(tsi_table_take(&table, &index, 10));
    assert_false(tsi_table_take(&table, &index, 10));
    for (uint32_t i = 0; i < 10; i++) (void)take();
    assert_false(tsi_table_take(&table, &index, 0));
    for (uint32_t i = 0; i < 10; i++) tsi_table_give(&table, i);
    assert_false(tsi_table_take(&table, &index, 10));
    tsi_table_give(&table, 10);
    assert_true(tsi_table_take(&table, &index, 10));
}

static void no_memory(void** state) {
    (void)state;
    uint32_t index = 77;
    fake_os_fail(FAKE_COMMIT, 1, true);
    assert_false(tsi_table_take(&table, &index, 0));
    assert_int_equal(index, 77);
    assert_int_equal(tsi_table_used(&table), 0);
    fake_os_heal();
    uint32_t full = (64 << 10) / STRIDE;
    for (uint32_t i = 0; i < full; i++) (void)take();
    fake_os_fail(FAKE_COMMIT, 1, true);
    assert_false(tsi_table_take(&table, &index, 0));
    tsi_table_give(&table, 3);
    assert_int_equal(take(), 3); /* rather an early reuse than a failure */
    assert_false(tsi_table_take(&table, &index, 0));
    fake_os_heal();
    assert_int_equal(take(), full);
    TsiTable other;
    fake_os_fail(FAKE_RESERVE, 1, false);
    assert_false(tsi_table_init(&other, STRIDE, CAPACITY));
    tsi_table_destroy(&other);
    fake_os_heal();
}

static void* churn(void* arg) {
    uint32_t* held = arg;
    for (unsigned i = 0; i < 5000; i++) {
        uint32_t index;
        if (!tsi_table_take(&table, &index, 0)) continue;
        Record* r = tsi_table_at(&table, index);
        if (__atomic_exchange_n(&r->number, 1, __ATOMIC_ACQ_REL) != 0) *held += 1; /* somebody else has it */
        __atomic_store_n(&r->number, 0, __ATOMIC_RELEASE);
        tsi_table_give(&table, index);
    }
    return NULL;
}

static void threads(void** state) {
    (void)state;
    pthread_t t[3];
    uint32_t twice[3] = {0};
    for (unsigned i = 0; i < 3; i++) assert_int_equal(pthread_create(&t[i], NULL, churn, &twice[i]), 0);
    for (unsigned i = 0; i < 3; i++) assert_int_equal(pthread_join(t[i], NULL), 0);
    for (unsigned i = 0; i < 3; i++) assert_int_equal(twice[i], 0);
    assert_int_equal(table.taken, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_table, close_table)
        TEST(all_records_once), TEST(growth_is_in_steps), TEST(taken_in_turn),
        TEST(reuse_is_late),    TEST(some_are_kept_back), TEST(no_memory),
        TEST(threads),
    };
    fake_os_install(0, false, false);
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
