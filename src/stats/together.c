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

static bool takes_largest(const TsiMetric* m) {
    bool largest = m->kind == SLAB_SEGMENT_PEAK || m->kind == SLAB_SEGMENT_COPY;
    for (unsigned i = 0; i < sizeof shared / sizeof *shared; i++) largest |= strcmp(m->key, shared[i]) == 0;
    return largest;
}

static bool is_limit(const TsiMetric* m) {
    return m->section == TSI_SECTION_GLOBAL && strncmp(m->key, "limit_", strlen("limit_")) == 0;
}

/* Returns the report that reaches its limit first; if none is on its way, the fullest. Each allocator has limits of its
 * own. */
static const TsiReport* nearest(const TsiReport* reports, unsigned count) {
    const TsiReport* found = reports;
    for (unsigned i = 1; i < count; i++) {
        const SlabGlobalStats *one = &reports[i].global, *other = &found->global;
        bool sooner = one->limit_ns != 0 && (other->limit_ns == 0 || one->limit_ns < other->limit_ns);
        bool fuller = (double)one->limit_used_bytes * (double)other->limit_bytes >
                      (double)other->limit_used_bytes * (double)one->limit_bytes;
        if (sooner || (one->limit_ns == 0 && other->limit_ns == 0 && fuller)) found = &reports[i];
    }
    return found;
}

static uint64_t add(uint64_t a, uint64_t b) { return b > UINT64_MAX - a ? UINT64_MAX : a + b; }

static void merge_word(const TsiMetric* m, uint64_t v, char* to) {
    bool largest = takes_largest(m);
    if (m->type == SLAB_SEGMENT_U64) {
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

/* Adds a field of another report to `to`, which has the sum of those before. */
static void merge(const TsiMetric* m, const char* row, char* to) {
    TsiValue v = tsi_metric_value(m, row);
    if (tsi_metric_is_array(m)) {
        uint64_t* sums = (uint64_t*)(void*)to;
        for (unsigned i = 0; i < tsi_metric_entries(m); i++) sums[i] = add(sums[i], v.a[i]);
    } else if (m->type == SLAB_SEGMENT_F64) { /* bytes a second: all others are derived */
        double had;
        memcpy(&had, to, sizeof had);
        had += v.f;
        memcpy(to, &had, sizeof had);
    } else {
        merge_word(m, v.u, to);
    }
}

void tsi_reports_together(const TsiReport* reports, unsigned count, TsiReport* out) {
    const TsiReport* limits = nearest(reports, count);
    *out = reports[0];
    for (unsigned section = 0; section < TSI_SECTIONS; section++)
        if (tsi_sections[section].form == SLAB_SEGMENT_ARRAY) tsi_report_set_rows(out, (TsiSection)section, NULL, 0);
    out->mapping = NULL;
    for (unsigned i = 0; i < TSI_METRICS; i++) {
        const TsiMetric* m = &tsi_metrics[i];
        TsiSection section = (TsiSection)m->section;
        if (tsi_sections[section].form == SLAB_SEGMENT_ARRAY || m->derive != NULL) continue;
        char* to = (char*)(uintptr_t)tsi_report_rows(out, section).first + m->offset;
        if (is_limit(m)) memcpy(to, tsi_report_rows(limits, section).first + m->offset, m->bytes);
        else if (m->type != SLAB_SEGMENT_STRING && m->kind != SLAB_SEGMENT_IDENTITY && m->unit != SLAB_SEGMENT_ID)
            for (unsigned n = 1; n < count; n++) merge(m, tsi_report_rows(&reports[n], section).first, to);
    }
}
