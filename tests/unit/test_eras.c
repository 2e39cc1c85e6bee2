/*
 * test_eras.c - phases by their era: in the ring, among those that a thread has just begun, in the table.
 */
#include "fake_os.h"
#include "kit/one.h"

#include "heap/records.h"

enum { MANY = 5000 };

static uint64_t eras[MANY];
static epoch_domain_t* domains[MANY];

static TsiEras* table(void) { return &arena->phases.eras; }
static bool is_found(uint64_t era) {
    TsiRef ref = tsi_era_find(arena, era);
    REQUIRE(ref == 0 || tsi_ref_era(ref) == era);
    return ref != 0;
}
static void open_many(unsigned n) {
    for (unsigned k = 0; k < n; k++) {
        REQUIRE((domains[k] = epoch_domain_create_labeled(a, "kept")) != NULL);
        eras[k] = domains[k]->epoch_era;
    }
}
/* None of the ways looks at all records: the table has every phase that it ought to have. */
static void check_table(void) { REQUIRE(!table()->partial && table()->filled <= table()->size / 2); }

static void open_phases_are_found(void) {
    open_many(MANY);
    for (unsigned k = 0; k < MANY; k++) REQUIRE(is_found(eras[k]));
    check_table();
    REQUIRE(table()->filled >= MANY - TSI_ERA_BLOCK);
    for (unsigned k = 0; k < MANY; k += 2) REQUIRE(epoch_domain_destroy(domains[k]));
    for (unsigned k = 0; k < MANY; k++) REQUIRE_EQ(is_found(eras[k]), k % 2 == 1);
    for (unsigned k = 1; k < MANY; k += 2) REQUIRE(epoch_domain_destroy(domains[k]));
    for (unsigned k = 0; k < MANY; k++) REQUIRE(!is_found(eras[k]));
    REQUIRE(!is_found(0));
    REQUIRE(!is_found(UINT64_MAX));
}

static void drained_phases_end_by_era(void) {
    for (unsigned k = 0; k < MANY; k++) {
        EpochReceipt r;
        epoch_domain_t* d = epoch_domain_begin(a, "request");
        REQUIRE(d != NULL && slab_malloc(a, 100) != NULL);
        REQUIRE(epoch_domain_drain(d, &r));
        eras[k] = r.epoch_era;
    }
    check_table();
    for (unsigned k = 0; k < MANY; k++) REQUIRE(epoch_close_era(a, eras[MANY - 1 - k], EPOCH_RELEASE, NULL));
    for (unsigned k = 0; k < MANY; k++) REQUIRE(!epoch_close_era(a, eras[k], EPOCH_RELEASE, NULL));
    REQUIRE_EQ(kit_live(a), 0);
}

/* Short phases put nothing in. */
static void what_ends_at_once_is_in_no_table(void) {
    for (unsigned k = 0; k < MANY; k++) {
        epoch_domain_t* d = epoch_domain_create(a);
        REQUIRE(d != NULL && is_found(d->epoch_era));
        REQUIRE(epoch_domain_destroy(d));
    }
    REQUIRE_EQ(table()->size, 0);
}

static void* open_and_go(void* n) {
    open_many(*(unsigned*)n);
    return NULL;
}
static void phases_of_a_thread_that_is_gone(void) {
    unsigned n = TSI_ERA_BLOCK / 2;
    kit_on_thread(open_and_go, &n);
    for (unsigned k = 0; k < n; k++) REQUIRE(is_found(eras[k]));
    kit_on_thread(open_and_go, &(unsigned){1}); /* its record may be the same, and eras[0] is another */
    for (unsigned k = 0; k < n; k++) REQUIRE(is_found(eras[k]));
}

static void epochs_of_the_ring(void) {
    uint64_t first = epoch_era(a, 0), now = epoch_era(a, epoch_current(a));
    REQUIRE_EQ(first, now);
    void* p = slab_malloc(a, 100);
    REQUIRE(is_found(first));
    for (EpochId id = 1; id != 0;) id = epoch_advance_id(a);
    REQUIRE(is_found(first)); /* without an id, and not swept yet */
    REQUIRE(is_found(epoch_era(a, epoch_current(a))));
    slab_trim(a);
    REQUIRE(is_found(first)); /* it drains */
    REQUIRE(slab_free_checked(a, p));
    REQUIRE(!is_found(first));
}

static void the_table_shrinks_and_goes(void) {
    open_many(MANY);
    uint32_t most = table()->size;
    REQUIRE(most >= 2 * (MANY - TSI_ERA_BLOCK));
    for (unsigned k = 0; k < MANY - 100; k++) REQUIRE(epoch_domain_destroy(domains[k]));
    slab_trim(a);
    REQUIRE(table()->size < most);
    for (unsigned k = MANY - 100; k < MANY; k++) REQUIRE(is_found(eras[k]));
    for (unsigned k = MANY - 100; k < MANY; k++) REQUIRE(epoch_domain_destroy(domains[k]));
    slab_trim(a);
    REQUIRE_EQ(table()->size, 0);
}

/* Without memory for the table every record is looked at, until there is some. */
static void without_memory(void) {
    kit_on_thread(open_and_go, &(unsigned){1}); /* the first table, and the bookkeeping of domains */
    slab_trim(a);
    fake_os_clear();
    fake_os_fail(FAKE_RESERVE, 1, true);
    open_many(MANY);
    for (unsigned k = 0; k < MANY; k += 97) REQUIRE(is_found(eras[k]));
    REQUIRE(table()->partial);
    REQUIRE(fake_os_heal());
    for (unsigned k = 0; k < 2 * TSI_ERA_BLOCK; k++) REQUIRE(epoch_domain_create(a) != NULL);
    check_table();
    for (unsigned k = 0; k < MANY; k++) REQUIRE(is_found(eras[k]));
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, kit_open_cold, kit_close)
        TEST(open_phases_are_found),
        TEST(drained_phases_end_by_era),
        TEST(what_ends_at_once_is_in_no_table),
        TEST(phases_of_a_thread_that_is_gone),
        TEST(epochs_of_the_ring),
        TEST(the_table_shrinks_and_goes),
        TEST(without_memory),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
