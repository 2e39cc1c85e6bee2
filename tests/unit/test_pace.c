/* test_pace.c - the pace of live and committed bytes over 10 s and 100 s, from readings that come as they like. */
#include "clock.h"

#include "slab_diagnostics.h"
#include "slab_stats.h"
#include "stats/pace.h"

#define SECOND 1000000000ull

typedef struct Reader {
    TsiMarks marks;
    uint64_t age;
} Reader;

/* A reading `seconds` after the last one. */
static TsiPace reading(Reader* r, unsigned seconds, unsigned span, uint64_t live, uint64_t committed) {
    r->age += seconds * SECOND;
    (void)tsi_pace_turn(&r->marks, r->age, live, committed);
    return tsi_pace_told(&r->marks, &r->marks.all, span, r->age, live, committed);
}

static void young_ones_are_judged_since_they_began(void) {
    Reader r = {.age = 0};
    TsiPace p = reading(&r, 4, TSI_SPAN_10S, 4000, 8000);
    REQUIRE_EQ(p.ns, 4 * SECOND);
    REQUIRE(p.live == 1000 && p.committed == 2000);
    p = reading(&r, 4, TSI_SPAN_100S, 4000, 8000);
    REQUIRE_EQ(p.ns, 8 * SECOND);
    REQUIRE(p.live == 500 && p.committed == 1000);
}

/* The time told is from one span to one and a half where readings are near each other, and the pace is of that time. */
static void steady_growth_has_one_pace(void) {
    static const uint64_t spans[TSI_SPANS] = {[TSI_SPAN_10S] = 10 * SECOND, [TSI_SPAN_100S] = 100 * SECOND};
    for (unsigned span = 0; span < TSI_SPANS; span++) {
        Reader r = {.age = 0};
        for (uint64_t n = 1; n < 400; n++) {
            TsiPace p = reading(&r, 1, span, n * 512, n * 4096);
            REQUIRE(p.live == 512 && p.committed == 4096);
            if (n * SECOND > 2 * spans[span])
                REQUIRE(p.ns >= spans[span] && p.ns <= spans[span] + spans[span] / 2 + SECOND);
        }
    }
}

static void what_has_ended_growing_stands_still(void) {
    Reader r = {.age = 0};
    for (uint64_t n = 1; n <= 30; n++) (void)reading(&r, 1, TSI_SPAN_10S, n << 20, n << 20);
    for (int n = 0; n < 16; n++) (void)reading(&r, 1, TSI_SPAN_10S, 30 << 20, 30 << 20);
    TsiPace p = reading(&r, 1, TSI_SPAN_10S, 30 << 20, 30 << 20);
    REQUIRE(p.ns != 0 && p.live == 0 && p.committed == 0);
    TsiPace slow = tsi_pace_told(&r.marks, &r.marks.all, TSI_SPAN_100S, r.age, 30 << 20, 30 << 20);
    REQUIRE(slow.ns != 0 && slow.live > 0);
}

static void less_is_a_negative_pace(void) {
    Reader r = {.age = 0};
    for (uint64_t n = 0; n < 100; n++) (void)reading(&r, 1, TSI_SPAN_10S, (1000 - n) * 1000, 0);
    TsiPace p = reading(&r, 1, TSI_SPAN_10S, 900 * 1000, 0);
    REQUIRE(p.live == -1000 && p.committed == 0);
}

/* A mark of an hour ago says nothing of the last ten seconds. */
static void a_long_silence_is_not_told(void) {
    Reader r = {.age = 0};
    for (int n = 0; n < 60; n++) (void)reading(&r, 1, TSI_SPAN_10S, 1 << 20, 1 << 20);
    TsiPace p = reading(&r, 3600, TSI_SPAN_10S, 2 << 20, 2 << 20);
    REQUIRE(p.ns == 0 && p.live == 0 && p.committed == 0);
    REQUIRE_EQ(tsi_pace_told(&r.marks, &r.marks.all, TSI_SPAN_100S, r.age, 0, 0).ns, 0);
    p = reading(&r, 15, TSI_SPAN_10S, 3 << 20, 2 << 20);
    REQUIRE_EQ(p.ns, 15 * SECOND);
    REQUIRE(p.live > 0 && p.committed == 0);
}

static void time_that_stands_or_goes_back(void) {
    Reader r = {.age = 0};
    for (int n = 0; n < 10; n++) REQUIRE_EQ(reading(&r, 0, TSI_SPAN_10S, 1 << 20, 0).ns, 0);
    r.age = 50 * SECOND;
    (void)reading(&r, 0, TSI_SPAN_10S, 1 << 20, 0);
    r.age = 20 * SECOND;
    TsiPace p = reading(&r, 0, TSI_SPAN_10S, 2 << 20, 0);
    REQUIRE(p.ns == 0 || p.live >= 0);
}

/* ---- what programs are told ---- */

static void keep(epoch_domain_t* d, size_t bytes) {
    for (size_t n = 0; n < bytes; n += 1024) REQUIRE(epoch_domain_malloc(d, 1024) != NULL);
}

static const SlabLabelStats* row_of(const SlabLabelStats* rows, uint32_t n, const char* label) {
    for (uint32_t k = 0; k < n; k++)
        if (strcmp(rows[k].label, label) == 0) return &rows[k];
    REQUIRE_OR(false, "no row of %s", label);
    return NULL;
}

static void each_label_has_its_own(void) {
    SlabOptions o = {.struct_size = sizeof o, .max_bytes = 64 << 20};
    SlabAllocator* a = kit_create_with(&o);
    epoch_domain_t* grows = epoch_domain_create_labeled(a, "grows");
    epoch_domain_t* stays = epoch_domain_create_labeled(a, "stays");
    SlabLabelStats rows[8];
    keep(stays, 1 << 20);
    for (int n = 0; n < 40; n++) {
        pass_seconds(1);
        keep(grows, 64 << 10);
        (void)slab_stats_labels(a, rows, 8);
    }
    uint32_t count = slab_stats_labels(a, rows, 8);
    const SlabLabelStats *g = row_of(rows, count, "grows"), *s = row_of(rows, count, "stays");
    REQUIRE(g->live_pace_10s >= 60000 && g->live_pace_10s <= 72000);
    REQUIRE(g->live_pace_ever >= 60000 && g->live_pace_ever <= 72000);
    REQUIRE(g->committed_pace_10s > 0 && g->committed_pace_100s > 0);
    REQUIRE(s->live_pace_10s == 0 && s->committed_pace_10s == 0);
    REQUIRE(s->live_pace_ever > 0);
    SlabGlobalStats all;
    slab_stats_global(a, &all);
    REQUIRE_EQ(all.max_bytes, 64 << 20);
    REQUIRE(all.pace_10s_ns >= 10 * SECOND && all.pace_10s_ns <= 20 * SECOND);
    REQUIRE(all.live_pace_10s >= 60000 && all.live_pace_10s <= 72000);
    slab_allocator_free(a);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
        TEST(young_ones_are_judged_since_they_began),
        TEST(steady_growth_has_one_pace),
        TEST(what_has_ended_growing_stands_still),
        TEST(less_is_a_negative_pace),
        TEST(a_long_silence_is_not_told),
        TEST(time_that_stands_or_goes_back),
        TEST(each_label_has_its_own),
    };
    return CHECK_RUN(argc, argv, tests);
}
