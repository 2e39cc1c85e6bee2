/* test_table.c - records that never move: growth, exhaustion, reuse, the reserve kept back, lack of memory. */
#include "fake_os.h"
#include "kit/inside.h"

#include "os/table.h"

enum { STRIDE = 192, CAPACITY = 3000 };

typedef struct Record {
    uint32_t number;
    uint32_t more;
    uint64_t rest[STRIDE / 8 - 1];
} Record;

static TsiTable table;

static void open_table(void) {
    fake_os_clear();
    /* as a table that is too large to be committed at once */
    fake_os_fail(FAKE_COMMIT, 1, false);
    REQUIRE(tsi_table_init(&table, STRIDE, CAPACITY));
    fake_os_clear();
}
static void close_table(void) { tsi_table_destroy(&table); }
static uint32_t take(void) {
    uint32_t index = UINT32_MAX;
    REQUIRE(tsi_table_take(&table, &index, 0));
    return index;
}

static void all_records_once(void) {
    uint32_t index;
    for (uint32_t i = 0; i < CAPACITY; i++) {
        REQUIRE_EQ(take(), i);
        Record* r = tsi_table_at(&table, i);
        REQUIRE_EQ(r->number, 0); /* fresh ones are zeroed */
        memset(r, 0xff, sizeof *r);
    }
    REQUIRE_EQ(tsi_table_used(&table), CAPACITY);
    REQUIRE(!tsi_table_take(&table, &index, 0));
    REQUIRE(table.bytes_committed <= table.bytes_reserved);
    tsi_table_give(&table, 77);
    REQUIRE_EQ(take(), 77);
    REQUIRE(!tsi_table_take(&table, &index, 0));
}

static void a_small_one_is_one_mapping(void) {
    tsi_table_destroy(&table);
    REQUIRE(tsi_table_init(&table, STRIDE, CAPACITY));
    REQUIRE_EQ(fake_os.calls[FAKE_COMMIT], 1);
    for (uint32_t i = 0; i < CAPACITY; i++) (void)take();
    REQUIRE_EQ(fake_os.calls[FAKE_COMMIT], 1);
}

static void growth_is_in_steps(void) {
    (void)take();
    REQUIRE_EQ(fake_os.calls[FAKE_COMMIT], 1);
    REQUIRE_EQ(table.bytes_committed, 64 << 10);
    for (unsigned i = 1; i < (64 << 10) / STRIDE; i++) (void)take();
    REQUIRE_EQ(fake_os.calls[FAKE_COMMIT], 1);
    (void)take();
    REQUIRE_EQ(fake_os.calls[FAKE_COMMIT], 2);
}

/* Once full, records come back in turn, whatever the order in which they were given. */
static void taken_in_turn(void) {
    for (uint32_t i = 0; i < CAPACITY; i++) (void)take();
    static const uint32_t given[] = {9, 3, 2999, 0, 50}, turn[] = {0, 3, 9, 50, 2999};
    for (unsigned i = 0; i < 5; i++) tsi_table_give(&table, given[i]);
    for (unsigned i = 0; i < 5; i++) REQUIRE_EQ(take(), turn[i]);
    for (unsigned i = 0; i < 5; i++) tsi_table_give(&table, given[4 - i]);
    REQUIRE_EQ(take(), 0);
    tsi_table_give(&table, 0); /* it has had its turn */
    for (unsigned i = 1; i < 5; i++) REQUIRE_EQ(take(), turn[i]);
    REQUIRE_EQ(take(), 0);
}

/* A record comes back late: not while there are fresh ones and few are free. */
static void reuse_is_late(void) {
    uint32_t first = take();
    ((Record*)tsi_table_at(&table, first))->number = 5;
    tsi_table_give(&table, first);
    REQUIRE_EQ(((Record*)tsi_table_at(&table, first))->number, 5); /* a stale reader sees what was there */
    for (unsigned i = 0; i < 60; i++) {
        uint32_t index = take();
        REQUIRE_NE(index, first);
        tsi_table_give(&table, index);
    }
    bool seen = false;
    for (unsigned i = 0; i < 200 && !seen; i++) {
        uint32_t index = take();
        seen = index == first;
        tsi_table_give(&table, index);
    }
    REQUIRE(seen);
    REQUIRE(tsi_table_used(&table) < 100); /* and the table does not grow for ever */
}

static void some_are_kept_back(void) {
    uint32_t index;
    for (uint32_t i = 0; i < CAPACITY - 10; i++) REQUIRE(tsi_table_take(&table, &index, 10));
    REQUIRE(!tsi_table_take(&table, &index, 10));
    for (uint32_t i = 0; i < 10; i++) (void)take();
    REQUIRE(!tsi_table_take(&table, &index, 0));
    for (uint32_t i = 0; i < 10; i++) tsi_table_give(&table, i);
    REQUIRE(!tsi_table_take(&table, &index, 10));
    tsi_table_give(&table, 10);
    REQUIRE(tsi_table_take(&table, &index, 10));
}

static void no_memory(void) {
    uint32_t index = 77;
    fake_os_fail(FAKE_COMMIT, 1, true);
    REQUIRE(!tsi_table_take(&table, &index, 0));
    REQUIRE_EQ(index, 77);
    REQUIRE_EQ(tsi_table_used(&table), 0);
    fake_os_heal();
    uint32_t full = (64 << 10) / STRIDE;
    for (uint32_t i = 0; i < full; i++) (void)take();
    fake_os_fail(FAKE_COMMIT, 1, true);
    REQUIRE(!tsi_table_take(&table, &index, 0));
    tsi_table_give(&table, 3);
    REQUIRE_EQ(take(), 3); /* rather an early reuse than a failure */
    REQUIRE(!tsi_table_take(&table, &index, 0));
    fake_os_heal();
    REQUIRE_EQ(take(), full);
    TsiTable other;
    fake_os_fail(FAKE_RESERVE, 1, false);
    REQUIRE(!tsi_table_init(&other, STRIDE, CAPACITY));
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

static void threads(void) {
    pthread_t t[3];
    uint32_t twice[3] = {0};
    for (unsigned i = 0; i < 3; i++) REQUIRE_EQ(pthread_create(&t[i], NULL, churn, &twice[i]), 0);
    for (unsigned i = 0; i < 3; i++) REQUIRE_EQ(pthread_join(t[i], NULL), 0);
    for (unsigned i = 0; i < 3; i++) REQUIRE_EQ(twice[i], 0);
    REQUIRE_EQ(table.taken, 0);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_table, close_table)
        TEST(all_records_once),           TEST(growth_is_in_steps), TEST(a_small_one_is_one_mapping),
        TEST(a_small_one_is_one_mapping), TEST(taken_in_turn),      TEST(reuse_is_late),
        TEST(some_are_kept_back),         TEST(no_memory),          TEST(threads),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
