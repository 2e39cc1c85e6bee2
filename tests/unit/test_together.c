/* test_together.c - the figures of several allocators together: sums, the largest, what is of the first, the limit. */
#include "kit/inside.h"

#include "stats/metrics.h"

static TsiReport parts[3], all;

static void clear(void) {
    memset(parts, 0, sizeof parts);
    for (unsigned i = 0; i < 3; i++) {
        parts[i].pid = 77;
        parts[i].allocator = i + 5;
    }
}

static void together(unsigned count) { tsi_reports_together(parts, count, &all); }

static void counts_and_bytes_add_up(void) {
    for (unsigned i = 0; i < 3; i++) {
        parts[i].objects_allocated = 10 + i;
        parts[i].global.live_bytes = 1000 + i;
        parts[i].global.growth_per_second = 0.5;
        parts[i].refusals.double_free = i;
        parts[i].sampling.sum.alloc_samples = i + 1;
        parts[i].label_ids = 2;
    }
    together(3);
    REQUIRE_EQ(all.objects_allocated, 33);
    REQUIRE_EQ(all.global.live_bytes, 3003);
    REQUIRE(all.global.growth_per_second == 1.5);
    REQUIRE_EQ(all.refusals.double_free, 3);
    REQUIRE_EQ(all.sampling.sum.alloc_samples, 6);
    REQUIRE_EQ(all.label_ids, 6);
    together(1);
    REQUIRE_EQ(all.objects_allocated, 10);
}

static void sums_stay_at_the_top(void) {
    parts[0].objects_allocated = UINT64_MAX - 1;
    parts[0].label_ids = UINT32_MAX - 1;
    parts[1].objects_allocated = parts[1].label_ids = 5;
    together(2);
    REQUIRE_EQ(all.objects_allocated, UINT64_MAX);
    REQUIRE_EQ(all.label_ids, UINT32_MAX);
}

/* The process's own figures are told by each allocator. */
static void of_the_process_the_largest_counts(void) {
    parts[0].global.rss_bytes_current = 7, parts[1].global.rss_bytes_current = 9;
    parts[0].figures_age_ns = 90, parts[1].figures_age_ns = 70;
    parts[0].allocators = 1, parts[1].allocators = 2;
    parts[1].changed_since = 1;
    parts[0].page_size = parts[1].page_size = 4096;
    together(2);
    REQUIRE_EQ(all.global.rss_bytes_current, 9);
    REQUIRE_EQ(all.figures_age_ns, 90);
    REQUIRE_EQ(all.allocators, 2);
    REQUIRE_EQ(all.changed_since, 1);
    REQUIRE_EQ(all.page_size, 4096);
    REQUIRE_EQ(all.pid, 77);
    REQUIRE_EQ(all.allocator, 5);
}

static void limit(unsigned n, const char* name, uint64_t bytes, uint64_t used, uint64_t ns) {
    SlabGlobalStats* g = &parts[n].global;
    g->limit_bytes = bytes, g->limit_used_bytes = used, g->limit_ns = ns;
    (void)snprintf(g->limit_name, sizeof g->limit_name, "%s", name);
}

/* The one that is reached first; where none is on its way, of the fullest. */
static void one_limit_is_told(void) {
    limit(0, "reserve_bytes", 1000, 100, 0);
    limit(1, "max_bytes", 200, 30, 0);
    limit(2, "reserve_bytes", 3000, 30, 0);
    together(3);
    REQUIRE_STR(all.global.limit_name, "max_bytes");
    REQUIRE_EQ(all.global.limit_bytes, 200);
    REQUIRE_EQ(all.global.limit_used_bytes, 30);
    parts[2].global.limit_ns = 8;
    parts[0].global.limit_ns = 9;
    together(3);
    REQUIRE_EQ(all.global.limit_bytes, 3000);
    REQUIRE_EQ(all.global.limit_ns, 8);
}

static void there_are_no_rows(void) {
    SlabLabelStats label;
    memset(&label, 0, sizeof label);
    parts[0].labels = parts[1].labels = &label;
    parts[0].label_count = parts[1].label_count = 1;
    together(2);
    for (unsigned n = 0; n < TSI_SECTIONS; n++)
        if (tsi_sections[n].form == SLAB_SEGMENT_ARRAY) REQUIRE_EQ(tsi_report_rows(&all, (TsiSection)n).count, 0);
}

int main(int argc, char** argv) {
    const CheckCase tests[] = {
#define TEST(name) CHECK_CASE_WITH(name, clear, NULL)
        TEST(counts_and_bytes_add_up), TEST(sums_stay_at_the_top), TEST(of_the_process_the_largest_counts),
        TEST(one_limit_is_told),       TEST(there_are_no_rows),
    };
    return CHECK_RUN(argc, argv, tests);
}
