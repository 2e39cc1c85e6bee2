/*
 * test_huge.c - regions on huge pages: who gets them, that they go back whole, and what is asked of the system when they do not.
 */
#include "fake_os.h"
#include "kit/one.h"

#include "mem/chunk.h"
#include "mem/region.h"
#include "mem/stock.h"

enum { SIZE = 512 };
#define MIB ((uint64_t)1 << 20)

static void open_allocator(void) {
    tsi_os.has_huge = true;
    kit_open_with(kit_options());
    fake_os_clear();
}

static void* last;
static epoch_domain_t* begin(const char* label, uint64_t bytes) {
    epoch_domain_t* d = epoch_domain_create_labeled(a, label);
    REQUIRE(d != NULL);
    for (uint64_t n = 0; n < bytes / SIZE; n++) REQUIRE((last = epoch_domain_malloc(d, SIZE)) != NULL);
    return d;
}
static void phase(const char* label, uint64_t bytes) { epoch_domain_destroy(begin(label, bytes)); }

static unsigned wishes(int what, uint64_t bytes) {
    unsigned n = 0;
    for (unsigned i = 0; i < fake_os.wish_count; i++) {
        if (fake_os.wishes[i].node != what) continue;
        REQUIRE_EQ(fake_os.wishes[i].bytes, bytes);
        REQUIRE_EQ((uintptr_t)fake_os.wishes[i].from & (bytes - 1), 0);
        n++;
    }
    return n;
}
static unsigned purges_of(uint64_t bytes) {
    unsigned n = 0;
    for (unsigned i = 0; i < fake_os.run_count; i++)
        n += fake_os.runs[i].bytes % bytes == 0 && (fake_os.runs[i].from & (bytes - 1)) == 0;
    return n;
}
static bool is_huge(const void* p) { return kit_place(a, p).cls == TSI_CLASS_HUGE; }

/* In its first phase from 4 MiB on, then from the label's second phase on nearly all of it. */
static void big_phases_get_them(void) {
    epoch_domain_t* d = begin("big", 4 * MIB);
    REQUIRE(!is_huge(last));
    epoch_domain_destroy(d);
    phase("big", 12 * MIB);
    REQUIRE_EQ(wishes(-1, 2 * MIB), 4);
    fake_os_clear();
    d = begin("big", 12 * MIB);
    REQUIRE(is_huge(last));
    kit_check(a);
    uint64_t regretted = tsi_load_relaxed(&space->stock.regretted);
    fake_os_clear();
    epoch_domain_destroy(d);
    REQUIRE(purges_of(2 * MIB) != 0);
    REQUIRE_EQ(wishes(-2, MIB), 0);
    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&space->chunk_high); chunk++)
        if (space->chunks[chunk].huge) REQUIRE_EQ(tsi_chunk_is_stocked(space, chunk), 0);
    fake_os_clear();
    phase("big", 12 * MIB);
    REQUIRE_EQ(tsi_load_relaxed(&space->stock.regretted), regretted); /* they never count as given back in vain */
    REQUIRE_EQ(wishes(-1, 2 * MIB), 0);                               /* the addresses are what they were asked to be */
}

static void others_do_not(void) {
    phase("big", 12 * MIB);
    fake_os_clear();
    for (unsigned n = 0; n < 10; n++) phase("small", 3 * MIB);
    REQUIRE(!is_huge(epoch_domain_malloc(begin("big", 100000), SIZE))); /* not before it has needed something */
    tsi_os.has_huge = false;
    epoch_domain_t* d = begin("big", 12 * MIB);
    REQUIRE(!is_huge(last));
    epoch_domain_destroy(d);
    REQUIRE_EQ(wishes(-1, 2 * MIB), 0);
}

/* Where a budget has no room for 2 MiB it has some for less. */
static void a_budget_gets_smaller_ones(void) {
    phase("big", 12 * MIB);
    epoch_domain_t* d = epoch_domain_create_labeled(a, "big");
    REQUIRE(slab_epoch_set_budget(a, d->epoch_id, 0, 5 * MIB, NULL, NULL));
    uint64_t bytes = 0;
    for (void* p; (p = epoch_domain_malloc(d, SIZE)) != NULL;) bytes += SIZE;
    REQUIRE_BETWEEN(bytes, 5 * MIB - 64 * 1024, 5 * MIB);
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_RELEASE, &r));
    KIT_BALANCED(&r);
    epoch_domain_destroy(d);
}

/* What is left of a page that is broken must not be mended by the system. */
static void survivors_keep_no_huge_page(void) {
    phase("big", 12 * MIB);
    epoch_domain_t* d = begin("big", 3 * MIB);
    REQUIRE(is_huge(last));
    void* survivor = last;
    memset(survivor, 7, SIZE);
    for (unsigned n = 0; n < 2 * MIB / SIZE; n++) (void)epoch_domain_malloc(d, SIZE);
    fake_os_clear();
    EpochReceipt r;
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, &r));
    kit_check(a);
    REQUIRE_EQ(((uint8_t*)survivor)[SIZE - 1], 7);
    REQUIRE(slab_free_checked(a, survivor));
    epoch_domain_destroy(d);
}

static void one_that_lives_alone(void) {
    static void* p[6 * MIB / SIZE];
    phase("big", 12 * MIB);
    epoch_domain_t* d = epoch_domain_create_labeled(a, "big");
    for (unsigned n = 0; n < 6 * MIB / SIZE; n++) REQUIRE((p[n] = epoch_domain_malloc(d, SIZE)) != NULL);
    unsigned lives = 4 * MIB / SIZE;
    REQUIRE(is_huge(p[lives]));
    for (unsigned n = 0; n < 6 * MIB / SIZE; n++)
        if (n != lives) slab_free(a, p[n]);
    fake_os_clear();
    REQUIRE(epoch_close_ex(a, d->epoch_id, EPOCH_DRAIN, NULL));
    REQUIRE(wishes(-2, MIB) >= 1); /* the half that it is in, and the other, which went without it */
    REQUIRE(kit_committed_now(a) <= 2 * MIB);
    kit_check(a);
    slab_free(a, p[lives]);
    REQUIRE_EQ(kit_live(a), 0);
    epoch_domain_destroy(d);
    slab_trim(a);
    REQUIRE_EQ(kit_committed_now(a), 0);
    fake_os_clear();
    phase("big", 12 * MIB); /* asked for again where it was taken back */
    REQUIRE(wishes(-1, 2 * MIB) >= 1);
}

/* Addresses that were made for huge pages serve other classes and large objects as any. */
static void other_classes_use_the_addresses(void) {
    static void* p[64];
    space->huge_apart = false; /* as in a reservation whose other side is full */
    phase("big", 12 * MIB);
    slab_trim(a);
    fake_os_clear();
    for (unsigned n = 0; n < 64; n++) {
        REQUIRE((p[n] = slab_calloc(a, 1, 300000)) != NULL);
        REQUIRE_EQ(((uint8_t*)p[n])[299999], 0);
    }
    REQUIRE(wishes(-2, MIB) >= 8);
    for (unsigned n = 0; n < 64; n++) slab_free(a, p[n]);
    fake_os_clear();
    phase("big", 12 * MIB);
    REQUIRE(wishes(-1, 2 * MIB) >= 4);
}

/* Small pages and huge ones lie on sides of their own: few mappings, whatever comes in turn. */
static void sides_are_apart(void) {
    TsiSpace* s = space;
    uint32_t turns = 0;
    for (unsigned n = 0; n < 8; n++) {
        (void)begin("big", 12 * MIB);
        REQUIRE(slab_malloc(a, 300000) != NULL);
        for (unsigned i = 0; i < 20; i++) REQUIRE(slab_malloc(a, 60000) != NULL);
    }
    bool was = false;
    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        bool side = tsi_chunk_huge_side(chunk / 64) >> chunk % 64 & 1;
        turns += side != was;
        was = side;
        if (s->chunks[chunk].huge) REQUIRE(side);
        if (tsi_chunk_is_used(s, chunk) && !s->chunks[chunk].huge) REQUIRE(!side);
    }
    REQUIRE(turns <= 12);
    kit_check(a);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, open_allocator, kit_close)
        TEST(big_phases_get_them),
        TEST(others_do_not),
        TEST(a_budget_gets_smaller_ones),
        TEST(survivors_keep_no_huge_page),
        TEST(one_that_lives_alone),
        TEST(other_classes_use_the_addresses),
        TEST(sides_are_apart),
    };
    fake_os_install(0, false, false);
    return CHECK_RUN(argc, argv, tests);
}
