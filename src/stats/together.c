/*
 * together.c - the allocators of one process as one report.
 *
 * Fields of single rows are added up by their kinds in metrics.def, derived values are computed from the sums, and the
 * report has no rows of lists. The command tslab does the same (tslab/internal/snapshot/together.go).
 */
#include "stats/metrics.h"

#include <string.h>

/* Figures of the process that each allocator reports, ages, and switches: the largest counts. */
static const char* const shared[] = {"rss_bytes_current", "page_size",     "allocators",  "uptime_ns", "timestamp_ns",
                                     "figures_age_ns",    "phases_age_ns", "epoch_count", "period",    "enabled",
                                     "changed_since"};

/* Returns true if the allocators' largest value of the metric counts for the process; false if they are added up.
 * [any thread, needs no lock] */
static bool takes_largest(const TsiMetric* metric) {
    bool largest = metric->kind == SLAB_SEGMENT_PEAK || metric->kind == SLAB_SEGMENT_COPY;
    for (unsigned i = 0; i < sizeof shared / sizeof *shared; i++) largest |= strcmp(metric->key, shared[i]) == 0;
    return largest;
}

/* Returns true if the metric is a figure of the allocator's limit, which is taken from one allocator whole.
 * [any thread, needs no lock] */
static bool is_limit(const TsiMetric* metric) {
    return metric->section == TSI_SECTION_GLOBAL && strncmp(metric->key, "limit_", strlen("limit_")) == 0;
}

/* Returns the one of `count` reports, at least 1, that reaches its limit first by limit_ns; if none is on its way, the
 * one with the largest share of its limit in use; the first of equal ones. Each allocator has limits of its own.
 * [any thread, needs no lock] */
static const TsiReport* nearest(const TsiReport* reports, unsigned count) {
    const TsiReport* found = reports;
    for (unsigned i = 1; i < count; i++) {
        const SlabGlobalStats *one = &reports[i].global, *other = &found->global;
        bool sooner = one->limit_ns != 0 && (other->limit_ns == 0 || one->limit_ns < other->limit_ns);
        bool fuller = (double)one->limit_used_bytes * (double)other->limit_bytes >
                      (double)other->limit_used_bytes * (double)one->limit_bytes;
        bool neither = (one->limit_ns | other->limit_ns) == 0;
        if (sooner || (neither && fuller)) found = &reports[i];
    }
    return found;
}

/* Returns a + b, or UINT64_MAX if that is more. [any thread, needs no lock] */
static uint64_t add(uint64_t a, uint64_t b) { return b > UINT64_MAX - a ? UINT64_MAX : a + b; }

/* Adds v to the metric's word at `to`, or replaces it by v if the largest counts and v is larger; a word that would
 * overflow becomes its largest value. [no other user of to] */
static void merge_word(const TsiMetric* metric, uint64_t v, char* to) {
    bool largest = takes_largest(metric);
    if (metric->type == SLAB_SEGMENT_U64) {
        uint64_t had;
        memcpy(&had, to, sizeof had);
        had = !largest ? add(had, v) : v > had ? v : had;
        memcpy(to, &had, sizeof had);
    } else {
        uint32_t had;
        memcpy(&had, to, sizeof had);
        uint64_t sum = !largest ? (uint64_t)had + v : v > had ? v : had;
        had = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
        memcpy(to, &had, sizeof had);
    }
}

/* Adds the metric's field in `row`, a row of another report, to the field at `to`, which has the sum of those before.
 * [no other user of to] */
static void merge(const TsiMetric* metric, const char* row, char* to) {
    TsiValue value = tsi_metric_value(metric, row);
    if (tsi_metric_is_array(metric)) {
        uint64_t* sums = (uint64_t*)(void*)to;
        for (unsigned i = 0; i < tsi_metric_entries(metric); i++) sums[i] = add(sums[i], value.a[i]);
    } else if (metric->type == SLAB_SEGMENT_F64) { /* bytes a second: all others are derived */
        double had;
        memcpy(&had, to, sizeof had);
        had += value.f;
        memcpy(to, &had, sizeof had);
    } else {
        merge_word(metric, value.u, to);
    }
}

void tsi_reports_together(const TsiReport* reports, unsigned count, TsiReport* out) {
    const TsiReport* limits = nearest(reports, count);
    *out = reports[0];
    for (unsigned section = 0; section < TSI_SECTIONS; section++)
        if (tsi_sections[section].form == SLAB_SEGMENT_ARRAY) tsi_report_set_rows(out, (TsiSection)section, NULL, 0);
    out->mapping = NULL;

    for (unsigned i = 0; i < TSI_METRICS; i++) {
        const TsiMetric* metric = &tsi_metrics[i];
        TsiSection section = (TsiSection)metric->section;
        if (tsi_sections[section].form == SLAB_SEGMENT_ARRAY || metric->derive != NULL) continue;
        char* to = (char*)(uintptr_t)tsi_report_rows(out, section).first + metric->offset;
        if (is_limit(metric)) memcpy(to, tsi_report_rows(limits, section).first + metric->offset, metric->bytes);
        else if (metric->type != SLAB_SEGMENT_STRING && metric->kind != SLAB_SEGMENT_IDENTITY &&
                 metric->unit != SLAB_SEGMENT_ID)
            for (unsigned n = 1; n < count; n++) merge(metric, tsi_report_rows(&reports[n], section).first, to);
    }
}
