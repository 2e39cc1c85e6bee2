/*
 * test_table_pages.c - pages of free records that go back: which, when, and what a stale reader, a taker and what was
 * put aside see.
 */
#include "fake_os.h"
#include "kit/inside.h"

#include "os/table.h"

enum { CAPACITY = 6000, STRIDES = 6 };
static const size_t strides[STRIDES] = {24, 192, 384, 512, 1600, 9000};

static TsiTable table;
static uint32_t vetoed = UINT32_MAX; /* a record that stays */
static uint8_t left[CAPACITY];       /* leave was called, stay was not */

/* The word of a record: its index and which taking of it this is, never 0. */
static uint64_t word_of(uint32_t index, uint32_t taking) { return (uint64_t)taking << 32 | (index + 1); }
static _Atomic uint64_t* word_at(uint32_t index) { return tsi_table_at(&table, index); }

static bool leave(TsiTable* t, uint32_t index) {
    REQUIRE_EQ(t, &table);
    REQUIRE(tsi_lock_is_held(&t->lock));
    if (index == vetoed) return false;
    REQUIRE_EQ(left[index], 0);
    left[index] = 1;
    if (t->aside) tsi_store_relaxed(tsi_table_aside(t, index), (uint16_t)(tsi_load_relaxed(word_at(index)) >> 32));
    return true;
}

static void stay(TsiTable* t, uint32_t index) {
    (void)t;
    REQUIRE_EQ(left[index], 1);
    left[index] = 0;
}

static void open_table(size_t stride, bool aside) {
    fake_os_clear();
    memset(left, 0, sizeof left);
    vetoed = UINT32_MAX;
    REQUIRE(aside ? tsi_table_init_aside(&table, stride, CAPACITY) : tsi_table_init(&table, stride, CAPACITY));
    table.leave = leave;
    table.stay = stay;
}

static uint32_t take(void) {
    uint32_t index;
    REQUIRE(tsi_table_take(&table, &index, 0));
    return index;
}

static uint64_t purges(void) { return fake_os.calls[FAKE_PURGE]; }

/* Of pages with something in them, and what the table says of them. */
static size_t pages_left(void) {
    size_t bytes = 0, told = 0;
    TsiTablePages some;
    for (uint32_t i = 0; i < tsi_table_used(&table); i += table.unit) {
        bool any = false;
        for (uint32_t k = i; k < i + table.unit && k < tsi_table_used(&table); k++)
            any |= tsi_load_relaxed(word_at(k)) != 0;
        bytes += any ? table.unit * table.stride : 0;
    }
    for (uint32_t at = 0; tsi_table_pages(&table, &at, &some);) told += some.bytes;
    REQUIRE(told >= bytes || told + table.unit * table.stride > bytes); /* the last may be cut */
    return bytes;
}

static void peak(uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t index = take();
        tsi_store_relaxed(word_at(index), word_of(index, 1));
    }
}

static void a_trim_gives_all_but_units_in_use(void) {
    for (unsigned s = 0; s < STRIDES; s++) {
        open_table(strides[s], false);
        uint32_t n = CAPACITY / 2 / table.unit * table.unit;
        if (n == 0) { /* of the smallest all share a large page */
            tsi_table_destroy(&table);
            continue;
        }
        peak(n);
        for (uint32_t i = 0; i < n; i++)
            if (i != n / 2) tsi_table_give(&table, i);
        tsi_table_tidy_slow(&table, true);
        uint32_t first = n / 2 / table.unit * table.unit;
        for (uint32_t i = 0; i < n; i++) {
            bool stays = i >= first && i < first + table.unit;
            REQUIRE_EQ(tsi_load_relaxed(word_at(i)), stays ? word_of(i, 1) : 0);
            REQUIRE_EQ(left[i], !stays);
        }
        REQUIRE_EQ(table.filled, table.unit);
        REQUIRE_EQ(table.taken, 1);
        REQUIRE_EQ(pages_left(), table.unit * table.stride);
        tsi_table_destroy(&table);
    }
}

/* What comes back is taken from the lowest, and reads as 0. */
static void what_returns_is_low_and_zero(void) {
    open_table(512, false);
    peak(5000);
    for (uint32_t i = 0; i < 5000; i++)
        if (i != 100) tsi_table_give(&table, i);
    tsi_table_tidy_slow(&table, true);
    for (unsigned i = 0; i < 3000; i++) {
        uint32_t index = take();
        REQUIRE(index < 3200);
        if (index / table.unit != 100 / table.unit) REQUIRE_EQ(tsi_load_relaxed(word_at(index)), 0);
    }
    tsi_table_destroy(&table);
}

/* No call where a load takes and gives the same again and again, one or many at a time; a peak goes at once, but for
 * what is kept. */
static void only_a_peak_calls_the_system(void) {
    for (unsigned s = 1; s < STRIDES; s++) { /* of the smallest all are kept */
        open_table(strides[s], false);
        if (table.unit > CAPACITY / 8) { /* so large that hardly any is idle */
            tsi_table_destroy(&table);
            continue;
        }
        uint32_t held[CAPACITY], many = table.keep - table.spare;
        for (unsigned lap = 0; lap < 300; lap++) {
            uint32_t n = lap < 100 ? 1 : lap < 200 ? lap % many + 1 : many;
            for (uint32_t i = 0; i < n; i++) {
                held[i] = take();
                tsi_store_relaxed(word_at(held[i]), word_of(held[i], 1));
            }
            for (uint32_t i = 0; i < n; i++) tsi_table_give(&table, held[i]);
            tsi_table_tidy(&table);
        }
        REQUIRE_EQ(purges(), 0);
        REQUIRE(!tsi_load_relaxed(&table.surplus));
        uint32_t n = CAPACITY - 1000;
        for (uint32_t i = 0; i < n; i++) {
            held[i] = take();
            tsi_store_relaxed(word_at(held[i]), word_of(held[i], 1));
        }
        for (uint32_t i = 0; i < n; i++) { /* in no order: 7919 is prime */
            tsi_table_give(&table, held[(uint64_t)i * 7919 % n]);
            tsi_table_tidy(&table);
            REQUIRE(table.idle <= 2 * table.taken + table.keep);
        }
        REQUIRE(purges() > 0);
        REQUIRE(table.filled <= table.keep);
        REQUIRE(pages_left() <= (256 << 10) + 3 * table.unit * table.stride || pages_left() <= 64 * table.stride);
        tsi_table_destroy(&table);
    }
}

static uint64_t told_ns;
static uint64_t told_clock(void) { return told_ns; }

/* n records taken, written, given and tidied after each. */
static void burst(uint32_t n) {
    static uint32_t held[CAPACITY];
    for (uint32_t i = 0; i < n; i++) {
        held[i] = take();
        tsi_store_relaxed(word_at(held[i]), word_of(held[i], 1));
    }
    for (uint32_t i = 0; i < n; i++) {
        tsi_table_give(&table, held[i]);
        tsi_table_tidy(&table);
    }
}

/* Records that are filled again within a tenth of a second were given back in vain: as many more stay. What was learned
 * falls by half for each second in which less than half of it was needed. */
static void what_goes_in_vain_is_kept(void) {
    uint64_t (*coarse_ns)(void) = tsi_os.coarse_ns;
    uint32_t n = CAPACITY - 1000;
    tsi_os.coarse_ns = told_clock;
    told_ns = 5000000000000;
    open_table(384, false);
    table.leave = NULL;
    table.stay = NULL;
    burst(n);
    burst(n); /* it may not learn */
    REQUIRE_EQ(tsi_load_relaxed(&table.learned), 0);
    table.learned_most = n / 2;
    burst(n);
    told_ns += 100000001;
    burst(n); /* too long ago */
    REQUIRE_EQ(tsi_load_relaxed(&table.learned), 0);
    told_ns += 100000000;
    burst(n);
    REQUIRE_EQ(tsi_load_relaxed(&table.learned), n / 2);
    REQUIRE(table.filled >= n / 2 && table.filled < n);
    table.learned_most = CAPACITY;
    burst(n);
    REQUIRE(tsi_load_relaxed(&table.learned) > n / 2);
    for (unsigned lap = 0; lap < 10; lap++) burst(n);
    uint64_t calls = purges();
    burst(n);
    REQUIRE_EQ(purges(), calls);
    uint32_t learned = tsi_load_relaxed(&table.learned);
    told_ns += 999999999;
    tsi_table_poll(&table, told_ns);
    REQUIRE_EQ(tsi_load_relaxed(&table.learned), learned);
    burst(n); /* it is needed */
    told_ns += 2500000000;
    tsi_table_poll(&table, told_ns);
    tsi_table_poll(&table, told_ns);
    REQUIRE_EQ(tsi_load_relaxed(&table.learned), learned / 4);
    tsi_table_tidy(&table);
    REQUIRE(table.filled <= learned / 4 + table.keep);
    told_ns += 13000000000;
    tsi_table_poll(&table, told_ns);
    REQUIRE_EQ(tsi_load_relaxed(&table.learned), 0);
    tsi_table_tidy(&table);
    REQUIRE(table.filled <= table.keep);
    burst(n);
    tsi_table_tidy_slow(&table, true); /* as asked for: not in vain */
    burst(n / 2);
    REQUIRE_EQ(tsi_load_relaxed(&table.learned), 0);
    tsi_table_destroy(&table);
    tsi_os.coarse_ns = coarse_ns;
}

static void a_record_that_stays_keeps_its_unit(void) {
    open_table(192, false);
    peak(640);
    for (uint32_t i = 0; i < 640; i++) tsi_table_give(&table, i);
    vetoed = 330;
    tsi_table_tidy_slow(&table, true);
    for (uint32_t i = 0; i < 640; i++) {
        bool stays = i / table.unit == 330 / table.unit;
        REQUIRE_EQ(tsi_load_relaxed(word_at(i)) != 0, stays);
        REQUIRE_EQ(left[i], !stays);
    }
    vetoed = UINT32_MAX;
    tsi_table_tidy_slow(&table, true);
    REQUIRE_EQ(table.filled, 0);
    tsi_table_destroy(&table);
}

static void a_refusal_of_the_system_changes_nothing(void) {
    open_table(384, false);
    peak(2000);
    for (uint32_t i = 0; i < 2000; i++) tsi_table_give(&table, i);
    fake_os_fail(FAKE_PURGE, 1, true);
    tsi_table_tidy_slow(&table, true);
    REQUIRE_EQ(purges(), 1); /* it is not asked again for each run */
    for (uint32_t i = 0; i < 2000; i++) {
        REQUIRE_EQ(tsi_load_relaxed(word_at(i)), word_of(i, 1));
        REQUIRE_EQ(left[i], 0);
    }
    tsi_table_tidy(&table);
    REQUIRE_EQ(purges(), 1);
    fake_os_heal();
    tsi_table_tidy_slow(&table, true);
    REQUIRE_EQ(table.filled, 0);
    tsi_table_destroy(&table);
}

/* Against an array: nobody gets what is taken, content is what was left there or 0, what is aside outlives it. */
static void as_a_plain_array(void) {
    uint64_t seed = 4711;
    for (unsigned s = 0; s < STRIDES; s++) {
        static uint32_t takings[CAPACITY];
        static bool taken[CAPACITY], gone[CAPACITY];
        uint32_t count = 0;
        memset(takings, 0, sizeof takings);
        memset(taken, 0, sizeof taken);
        memset(gone, 0, sizeof gone);
        open_table(strides[s], s % 2 == 1);
        for (unsigned step = 0; step < 60000; step++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint32_t dice = (uint32_t)(seed >> 40), index = dice % CAPACITY;
            bool grows = step / 5000 % 2 == 0;
            if (dice % 4096 == 0) {
                tsi_table_tidy_slow(&table, dice % 8192 == 0);
            } else if ((dice >> 12) % 4 < (grows ? 3 : 1)) {
                if (!tsi_table_take(&table, &index, 0)) continue;
                REQUIRE(!taken[index]);
                uint64_t word = tsi_load_relaxed(word_at(index));
                if (left[index] != 0)
                    REQUIRE_EQ(word, 0);
                else
                    REQUIRE_EQ(word, takings[index] != 0 ? word_of(index, takings[index]) : 0);
                if (table.aside && left[index] != 0)
                    REQUIRE_EQ(tsi_load_relaxed(tsi_table_aside(&table, index)), (uint16_t)takings[index]);
                left[index] = 0;
                taken[index] = true;
                tsi_store_relaxed(word_at(index), word_of(index, ++takings[index]));
                count++;
            } else {
                while (index < CAPACITY && !taken[index]) index++;
                if (index == CAPACITY) continue;
                REQUIRE_EQ(tsi_load_relaxed(word_at(index)), word_of(index, takings[index]));
                taken[index] = false;
                count--;
                tsi_table_give(&table, index);
                tsi_table_tidy(&table);
            }
            REQUIRE_EQ(table.taken, count);
        }
        tsi_table_destroy(&table);
    }
}

/* ---- beside others ---- */

static _Atomic bool stop;
static _Atomic uint32_t held_twice, torn, seen_zero, seen_old, done;

static pthread_barrier_t meet;

static void give_all(uint32_t* held, uint32_t* n) {
    for (; *n != 0; tsi_table_give(&table, held[--*n]))
        tsi_store_release(word_at(held[*n - 1]), word_of(held[*n - 1], 1)); /* pairs with the reader */
}

static void* churn(void* arg) {
    uint32_t held[700], n = 0;
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    for (unsigned i = 0; i < 40000; i++) {
        if (i == 20000) { /* everything goes once, with nobody but the reader about */
            give_all(held, &n);
            pthread_barrier_wait(&meet);
            pthread_barrier_wait(&meet);
        }
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        bool grows = i / 2000 % 2 == 0;
        uint32_t index;
        if ((seed >> 33) % 4 < (grows ? 3 : 1)) {
            if (n == 700 || !tsi_table_take(&table, &index, 0)) continue;
            uint64_t none = tsi_load_relaxed(word_at(index));
            if ((none >> 63) != 0) tsi_add_relaxed(&held_twice, 1);
            tsi_store_release(word_at(index), 1ull << 63 | word_of(index, i + 1)); /* pairs with the reader */
            held[n++] = index;
        } else if (n != 0) {
            index = held[--n];
            tsi_store_release(word_at(index), word_of(index, i + 1)); /* pairs with the reader */
            tsi_table_give(&table, index);
            tsi_table_tidy(&table);
        }
    }
    give_all(held, &n);
    tsi_add_relaxed(&done, 1);
    return NULL;
}

/* Holds old indices: what it reads is a word of that record, or 0. */
static void* read_stale(void* unused) {
    (void)unused;
    for (uint32_t i = 0; !tsi_load_relaxed(&stop); i = (i + 77) % CAPACITY) {
        if (i >= tsi_table_used(&table)) continue;
        uint64_t word = tsi_load_acquire(word_at(i)); /* pairs with churn */
        if (word == 0) tsi_add_relaxed(&seen_zero, 1);
        else if ((uint32_t)word == i + 1) tsi_add_relaxed(&seen_old, 1);
        else tsi_add_relaxed(&torn, 1);
    }
    return NULL;
}

static bool leave_beside(TsiTable* t, uint32_t index) {
    (void)t;
    if ((tsi_load_relaxed(word_at(index)) >> 63) != 0) tsi_add_relaxed(&held_twice, 1); /* U1 */
    return true;
}

static void beside_readers_and_takers(void) {
    for (unsigned s = 0; s < STRIDES; s++) {
        pthread_t t[3], reader;
        open_table(strides[s], false);
        table.leave = leave_beside;
        table.stay = NULL;
        tsi_store_relaxed(&stop, false);
        tsi_store_relaxed(&done, 0);
        REQUIRE_EQ(pthread_barrier_init(&meet, NULL, 4), 0);
        REQUIRE_EQ(pthread_create(&reader, NULL, read_stale, NULL), 0);
        for (uintptr_t i = 0; i < 3; i++) REQUIRE_EQ(pthread_create(&t[i], NULL, churn, (void*)(i + 1)), 0);
        pthread_barrier_wait(&meet);
        tsi_table_tidy_slow(&table, true);
        REQUIRE_EQ(table.filled, 0);
        pthread_barrier_wait(&meet);
        while (tsi_load_relaxed(&done) < 3) tsi_table_tidy_slow(&table, true);
        for (unsigned i = 0; i < 3; i++) REQUIRE_EQ(pthread_join(t[i], NULL), 0);
        tsi_store_relaxed(&stop, true);
        REQUIRE_EQ(pthread_join(reader, NULL), 0);
        REQUIRE_EQ(held_twice, 0);
        REQUIRE_EQ(torn, 0);
        REQUIRE_EQ(table.taken, 0);
        tsi_table_tidy_slow(&table, true);
        REQUIRE_EQ(table.filled, 0);
        tsi_table_destroy(&table);
    }
    REQUIRE(seen_zero > 0 && seen_old > 0);
}

static void with_large_pages(void) {
    REQUIRE_EQ(kit_rerun("16384"), 0);
    REQUIRE_EQ(kit_rerun("65536"), 0);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        CHECK_CASE(a_trim_gives_all_but_units_in_use),
        CHECK_CASE(what_returns_is_low_and_zero),
        CHECK_CASE(only_a_peak_calls_the_system),
        CHECK_CASE(what_goes_in_vain_is_kept),
        CHECK_CASE(a_record_that_stays_keeps_its_unit),
        CHECK_CASE(a_refusal_of_the_system_changes_nothing),
        CHECK_CASE(as_a_plain_array),
        CHECK_CASE(beside_readers_and_takers),
    };
    const CheckCase more[] = {CHECK_CASE(with_large_pages)};
    fake_os_install(argc > 1 ? (size_t)atoi(argv[1]) : 0, false, false);
    int failed = CHECK_RUN(0, NULL, tests);
    return argc > 1 ? failed : failed + CHECK_RUN(0, NULL, more);
}
