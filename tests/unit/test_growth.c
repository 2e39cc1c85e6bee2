/* test_growth.c - growth between stretches of readings, the time to a limit, and what the doctor says of both. */
#include "clock.h"

#include "slab_diagnostics.h"
#include "stats/growth.h"
#include "stats/words.h"

/* ---- stretches ---- */

#define SECOND 1000000000ull

typedef struct Reader {
    TsiStretch stretches[TSI_GROWTHS];
    uint64_t now;
} Reader;

/* A reading `seconds` after the last one. */
static TsiGrown reading(Reader* r, unsigned seconds, uint64_t live) {
    r->now += seconds * SECOND;
    (void)tsi_growth_turn(r->stretches, r->now, r->now, live);
    const TsiFloor* const of[TSI_GROWTHS] = {&r->stretches[TSI_GROWTH_SHORT].all, &r->stretches[TSI_GROWTH_LONG].all};
    return tsi_growth_told(r->stretches, of, r->now, live);
}

static void it_takes_two_stretches(void) {
    Reader r = {.now = SECOND};
    REQUIRE_EQ(reading(&r, 0, 0).ns, 0); /* nothing lives yet: that is no beginning */
    REQUIRE_EQ(reading(&r, 1, 1000).ns, 0);
    REQUIRE_EQ(reading(&r, 1, 2000).ns, 0);
    TsiGrown g = reading(&r, 1, 3000);
    REQUIRE_EQ(g.ns, 2 * SECOND);
    REQUIRE_EQ(g.bytes, 2000);
    REQUIRE(g.per_second == 1000);
}

static void what_comes_and_goes_does_not_grow(void) {
    Reader r = {.now = 100 * SECOND};
    for (int n = 0; n < 1000; n++) {
        TsiGrown g = reading(&r, 1, n % 3 == 0 ? 5000 : 1000000);
        REQUIRE(g.bytes == 0 && g.per_second == 0);
    }
}

static void a_leak_below_what_comes_and_goes(void) {
    Reader r = {.now = 100 * SECOND};
    TsiGrown g = {0, 0, 0};
    for (uint64_t n = 0; n < 300; n++) g = reading(&r, 1, (n % 3) * 1000000 + n * 1000);
    g = reading(&r, 1, 300 * 1000);
    for (uint64_t n = 301; g.bytes == 0 && n < 310; n++) g = reading(&r, 1, 1000000 + n * 1000);
    REQUIRE_GE(g.per_second, 500);
    REQUIRE_GE(1500, g.per_second);
}

/* A process that was moved to another machine: what was read by the other clock is forgotten, and growth is told again
 * after two stretches. */
static void a_clock_that_is_set_back_begins_anew(void) {
    Reader r = {.now = 1000 * SECOND};
    for (uint64_t n = 0; n < 300; n++) (void)reading(&r, 1, n << 20);
    r.now = 10 * SECOND;
    TsiGrown g = {0, 0, 0};
    for (uint64_t n = 300; n < 310; n++) {
        g = reading(&r, 1, n << 20);
        REQUIRE_LE(g.ns, 20 * SECOND);
    }
    REQUIRE_GE(g.bytes, 1 << 20);
}

/* A start that is over, and a process that stands still. */
static void growth_ends(void) {
    Reader r = {.now = SECOND};
    for (uint64_t n = 0; n < 10; n++) (void)reading(&r, 1, n << 20);
    REQUIRE_GE(reading(&r, 1, 10 << 20).bytes, 1 << 20);
    (void)reading(&r, 10, 10 << 20);
    TsiGrown g = reading(&r, 5, 10 << 20);
    REQUIRE(g.bytes == 0 && g.per_second == 0 && g.ns != 0);
}

static void less_is_no_growth(void) {
    Reader r = {.now = SECOND};
    for (uint64_t n = 0; n < 100; n++) {
        TsiGrown g = reading(&r, 5, (100 - n) << 20);
        REQUIRE(g.bytes == 0 && g.per_second == 0);
    }
}

/* A clock that stands, or goes back, begins nothing. */
static void time_that_stands_still(void) {
    Reader r = {.now = 100 * SECOND};
    for (uint64_t n = 1; n < 100; n++) REQUIRE_EQ(reading(&r, 0, n << 20).ns, 0);
    r.now -= 50 * SECOND;
    REQUIRE_EQ(reading(&r, 0, 1 << 20).ns, 0);
}

/* ---- limits ---- */

static void time_to_a_limit(void) {
    TsiGrown none = {0, SECOND, 0}, some = {1000, SECOND, 1000}, unknown = {0, 0, 0};
    REQUIRE_EQ(tsi_growth_limit(0, 5, &some, SECOND).bytes, 0);
    REQUIRE_EQ(tsi_growth_limit(61000, 1000, &some, SECOND).ns, 60 * SECOND);
    REQUIRE_EQ(tsi_growth_limit(61000, 1000, &none, SECOND).ns, 0);
    REQUIRE_EQ(tsi_growth_limit(1000, 1000, &some, SECOND).ns, 1); /* now */
    REQUIRE_EQ(tsi_growth_limit(1000, 5000, &some, SECOND).ns, 1);
    REQUIRE_EQ(tsi_growth_limit(UINT64_MAX, 0, &some, SECOND).ns, 0); /* not in sight */
    /* The first reading: from half of the limit on. */
    REQUIRE_EQ(tsi_growth_limit(1000, 499, &unknown, 10 * SECOND).ns, 0);
    REQUIRE_EQ(tsi_growth_limit(1000, 500, &unknown, 10 * SECOND).ns, 10 * SECOND);
    REQUIRE_EQ(tsi_growth_limit(1000, 500, &unknown, 0).ns, 0);
}

/* Each live byte that stays holds four more; never more than committed bytes have grown by lately. */
static void what_is_held_grows_faster(void) {
    const TsiGrown grown = {1000, SECOND, 100}, none = {0, SECOND, 0};
    REQUIRE_EQ((long)tsi_growth_held(grown, 100, 500, 600).per_second, 500);
    REQUIRE_EQ((long)tsi_growth_held(grown, 100, 500, 300).per_second, 300);
    REQUIRE_EQ((long)tsi_growth_held(grown, 1, 500, 600).per_second, 600);  /* live bytes hardly move: noise */
    REQUIRE_EQ((long)tsi_growth_held(grown, 100, 500, 50).per_second, 100); /* what grows is held at least */
    REQUIRE_EQ((long)tsi_growth_held(grown, 100, 500, 0).per_second, 100);  /* not known */
    REQUIRE_EQ((long)tsi_growth_held(grown, -5, 500, 600).per_second, 100);
    REQUIRE_EQ((long)tsi_growth_held(grown, 200, 100, 600).per_second, 100);
    REQUIRE_EQ((long)tsi_growth_held(none, 100, 500, 600).per_second, 0);
}

static void the_nearer_limit(void) {
    TsiLimit none = {0, 0, 0}, far = {1000, 100, 0}, fuller = {2000, 900, 0}, soon = {9000, 1, 60},
             sooner = {9000, 1, 5};
    TsiLimit order[] = {sooner, soon, fuller, far, none};
    for (unsigned i = 0; i < 5; i++)
        for (unsigned j = 0; j < 5; j++) REQUIRE_EQ(tsi_growth_is_nearer(&order[i], &order[j]), i < j);
}

/* ---- what the doctor says ---- */

typedef struct Text {
    char at[1 << 15];
    size_t used;
} Text;

static bool collect(void* ctx, const char* bytes, size_t n) {
    Text* t = ctx;
    REQUIRE(t->used + n < sizeof t->at);
    memcpy(t->at + t->used, bytes, n);
    t->at[t->used += n] = 0;
    return true;
}

static const char* doctor(SlabAllocator* a) {
    static Text t;
    t.used = 0;
    REQUIRE(slab_doctor(a, collect, &t));
    return t.at;
}

static void fill(SlabAllocator* a, epoch_domain_t* d, size_t bytes) {
    for (size_t n = 0; n < bytes; n += 1024)
        REQUIRE(d != NULL ? epoch_domain_malloc(d, 1024) : slab_malloc_epoch(a, 1024, epoch_current(a)));
}

typedef enum Limited { MAX_BYTES, LABEL, PHASE, RESERVATION, LIMITED } Limited;

/* Grows by 4 MiB in 10 s towards 32 MiB. */
static void a_limit_is_told_before_it_is_reached(void) {
    for (int n = 0; n < 2 * LIMITED; n++) {
        Limited by = (Limited)(n / 2);
        SlabOptions o = {.struct_size = sizeof o};
        if (by == MAX_BYTES) o.max_bytes = 32 << 20;
        if (by == RESERVATION) o.reserve_bytes = 32 << 20;
        SlabAllocator* a = kit_create_with(&o);
        epoch_domain_t* d = n % 2 == 0 ? epoch_domain_create_labeled(a, "session-table") : NULL; /* or in the ring */
        slab_epoch_set_label(a, epoch_current(a), "ring-table");
        const char* label = d != NULL ? "\"session-table\"" : "\"ring-table\"";
        if (by == LABEL) REQUIRE(slab_label_set_budget(a, d ? "session-table" : "ring-table", 0, 32 << 20, NULL, NULL));
        if (by == PHASE)
            REQUIRE(slab_epoch_set_budget(a, d != NULL ? d->epoch_id : epoch_current(a), 0, 32 << 20, NULL, NULL));
        fill(a, d, 4 << 20);
        REQUIRE_HAS(doctor(a), "8. Growth: unknown");
        REQUIRE_HAS(doctor(a), "Nothing needs attention.");
        pass_seconds(10);
        fill(a, d, 4 << 20);
        const char* text = doctor(a);
        REQUIRE_HAS(text, "8. Growth: 4.0 MiB more live than 10 s ago");
        const char* seconds = strstr(text, " is reached in ");
        REQUIRE_OR(seconds != NULL, "no time to the limit: %s", text);
        unsigned long in = strtoul(seconds + strlen(" is reached in "), NULL, 10);
        REQUIRE(in >= 45 && in <= 75); /* 24 MiB at 0.4 MiB/s, less what slabs hold more than objects */
        REQUIRE_HAS(text, label);
        REQUIRE_HAS(text, by == MAX_BYTES     ? " are left of max_bytes, "
                          : by == RESERVATION ? " are left of reserve_bytes, "
                                              : " are left of its budget, ");
        REQUIRE_HAS(text, "Open: ");
        REQUIRE_HAS(text, "ACTION: ");
        REQUIRE_HAS(text, by == MAX_BYTES     ? "ACTION: max_bytes allows 32.0 MiB"
                          : by == RESERVATION ? "ACTION: reserve_bytes allows 3"
                                              : "a hard budget allows 32.0 MiB");
        for (int still = 0; still < 3; still++) { /* no growth any more */
            pass_seconds(10);
            text = doctor(a);
        }
        REQUIRE_HAS(text, "8. Growth: none in total");
        REQUIRE_HAS(text, "Nothing needs attention.");
        slab_allocator_free(a);
    }
}

/* Pages that are kept warm as a program begins are committed once, and no limit counts them: a leak beside them is as far from its
 * limit as it is. */
static void what_is_kept_warm_does_not_count(void) {
    SlabOptions o = {.struct_size = sizeof o, .max_bytes = 256 << 20};
    SlabAllocator* a = kit_create_with(&o);
    for (int seconds = 0; seconds < 8; seconds++) {
        epoch_domain_t* d = epoch_domain_begin(a, "burst");
        for (int n = 0; n < 1000; n++) REQUIRE(slab_malloc(a, 4000) != NULL);
        for (int n = 0; n < 50; n++) REQUIRE(slab_malloc_outside(a, 200) != NULL);
        REQUIRE(epoch_domain_end(d));
        pass_seconds(1);
        (void)doctor(a);
    }
    SlabGlobalStats g;
    slab_stats_global(a, &g);
    REQUIRE(g.warm_bytes > 512 << 10 && g.growth_per_second > 5000 && g.committed_pace_10s > 5 * g.growth_per_second);
    double left = (double)(g.limit_bytes - g.limit_used_bytes) / g.growth_per_second, told = (double)g.limit_ns / 1e9;
    REQUIRE(told > left / 2 && told < left * 1.1);
    slab_allocator_free(a);
}

/* Small objects that escape hold a page each: the limit counts pages, and the time to it is of these. */
static void pages_that_escapes_hold_reach_the_limit(void) {
    SlabOptions o = {.struct_size = sizeof o, .max_bytes = 32 << 20};
    SlabAllocator* a = kit_create_with(&o);
    REQUIRE(slab_label_set_budget(a, "orders", 0, 32 << 20, NULL, NULL));
    uint64_t begun_ns = tsi_os.now_ns(); /* real time passes as well, on a slow machine as much again */
    for (int seconds = 0; seconds < 30; seconds++) {
        for (int n = 0; n < 100; n++) {
            epoch_domain_t* d = epoch_domain_begin(a, "orders");
            REQUIRE(d != NULL && slab_malloc(a, 64) != NULL && epoch_domain_drain(d, NULL));
        }
        pass_seconds(1);
        (void)doctor(a);
    }
    SlabGlobalStats g;
    SlabLabelStats labels[8];
    slab_stats_global(a, &g);
    size_t count = slab_stats_labels(a, labels, 8), at = 0;
    while (at < count && strcmp(labels[at].label, "orders") != 0) at++;
    REQUIRE(at < count && g.growth_per_second > 0 && g.growth_per_second < 20000);
    double pace = (double)g.limit_used_bytes / ((double)(tsi_os.now_ns() - begun_ns) / 1e9), left = (double)(g.limit_bytes - g.limit_used_bytes) / pace;
    REQUIRE(g.limit_used_bytes > 30 * 150000); /* 100 phases a second that hold 2 KiB at least */
    double told = (double)g.limit_ns / 1e9, of_label = (double)labels[at].limit_ns / 1e9;
    REQUIRE(told > left / 1.3 && told < left * 1.3);
    REQUIRE(of_label > left / 1.3 && of_label < left * 1.3);
    slab_allocator_free(a);
}

/* Nobody has looked before: what has filled half of it so fast may fill all of it. */
static void the_first_reading_near_a_limit(void) {
    SlabOptions o = {.struct_size = sizeof o, .max_bytes = 32 << 20};
    SlabAllocator* a = kit_create_with(&o);
    fill(a, NULL, 24 << 20);
    pass_seconds(30);
    REQUIRE_HAS(doctor(a), "ACTION: max_bytes allows 32.0 MiB");
    pass_seconds(86400);
    REQUIRE_NULL(strstr(doctor(a), "ACTION: max_bytes"));
    slab_allocator_free(a);
}

/* One object a request is kept outside; nothing limits it. */
static void what_is_made_outside_has_a_name(void) {
    SlabAllocator* a = kit_create();
    for (int round = 0; round < 3; round++) {
        for (int n = 0; n < 1000; n++) {
            epoch_domain_t* d = epoch_domain_begin(a, n % 4 == 0 ? "POST /login" : "GET /items");
            REQUIRE(slab_malloc(a, 500) != NULL);
            REQUIRE(slab_malloc_outside(a, 1000) != NULL);
            REQUIRE(epoch_domain_end(d));
        }
        if (round != 0) pass_seconds(10);
        if (round != 2) REQUIRE_HAS(doctor(a), "Allocated outside of scopes so far: ");
    }
    const char* text = doctor(a);
    REQUIRE_HAS(text, "ACTION: \"(unlabeled)\" grows by ");
    REQUIRE_HAS(text, "most bytes allocated outside of scopes come from \"GET /items\" (75 %), \"POST /login\" (25 %)");
    REQUIRE_NULL(strstr(text, "Nothing needs attention."));
    SlabLabelStats rows[8];
    REQUIRE(slab_stats_labels(a, rows, 8) >= 3);
    REQUIRE_GE(rows[0].growth_bytes, 1000 * 1000);
    slab_allocator_free(a);
}

static void who_is_refused_has_a_name(void) {
    SlabOptions o = {.struct_size = sizeof o, .max_bytes = 1 << 20};
    SlabAllocator* a = kit_create_with(&o);
    epoch_domain_t* d = epoch_domain_create_labeled(a, "session-table");
    while (epoch_domain_malloc(d, 1024) != NULL) {}
    for (int n = 0; n < 10000; n++) REQUIRE_NULL(epoch_domain_malloc(d, 1024));
    const char* text = doctor(a);
    REQUIRE_HAS(text, "over_budget 10001: ");
    REQUIRE_HAS(text, "; most under \"session-table\" (10001)");
    REQUIRE_NULL(strstr(text, tsi_advice_cold));
    slab_allocator_free(a);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        TEST(it_takes_two_stretches),
        TEST(what_comes_and_goes_does_not_grow),
        TEST(a_leak_below_what_comes_and_goes),
        TEST(a_clock_that_is_set_back_begins_anew),
        TEST(growth_ends),
        TEST(less_is_no_growth),
        TEST(time_that_stands_still),
        TEST(time_to_a_limit),
        TEST(what_is_held_grows_faster),
        TEST(the_nearer_limit),
        TEST(a_limit_is_told_before_it_is_reached),
        TEST(what_is_kept_warm_does_not_count),
        TEST(pages_that_escapes_hold_reach_the_limit),
        TEST(the_first_reading_near_a_limit),
        TEST(what_is_made_outside_has_a_name),
        TEST(who_is_refused_has_a_name),
    };
    return CHECK_RUN(argc, argv, tests);
}
