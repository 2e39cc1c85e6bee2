/* metrics.c - see metrics.h; also computes the DERIVED lines of metrics.def. */
#include "stats/metrics.h"

#include "phase/draining.h"

#include <string.h>

/* ---- derived values ---- */

/* Returns a + b, or UINT64_MAX if that is more. [any thread, needs no lock] */
static uint64_t sum(uint64_t a, uint64_t b) { return a > UINT64_MAX - b ? UINT64_MAX : a + b; }

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)
/* Returns the library's version, "1.2.3", whatever the report. [any thread, needs no lock] */
static TsiValue DOCUMENT_version(const TsiReport* report) {
    (void)report;
    return (TsiValue){.s = VERSION_TEXT(TSLAB_VERSION_MAJOR, TSLAB_VERSION_MINOR, TSLAB_VERSION_PATCH)};
}

/* Returns how often locks of the class were taken, at once or after waiting. [any thread, needs no lock] */
static TsiValue CLASS_lock_acquisitions(const SlabClassStats* stats) {
    return (TsiValue){.u = sum(stats->lock_fast_acquire, stats->lock_contended)};
}

/* Returns the percentage of lock acquisitions of the class that waited, 0 if there were none.
 * [any thread, needs no lock] */
static TsiValue CLASS_lock_contention_pct(const SlabClassStats* stats) {
    return (TsiValue){.f = tsi_ratio(stats->lock_contended, CLASS_lock_acquisitions(stats).u, 100.0)};
}

/* Returns the retries of compare-exchanges to each attempt of the class's allocations, 0 if there were none.
 * [any thread, needs no lock] */
static TsiValue CLASS_cas_retry_rate(const SlabClassStats* stats) {
    return (TsiValue){.f = tsi_ratio(stats->bitmap_alloc_cas_retries, stats->bitmap_alloc_attempts, 1.0)};
}

/* Returns the bytes of the epoch's slabs, counted as resident. [any thread, needs no lock] */
static TsiValue EPOCH_rss_bytes(const TsiEpochRow* row) { return (TsiValue){.u = row->estimated_rss_bytes}; }

/* Returns the age of a phase that has ended, in ns; 0 if it is open. [any thread, needs no lock] */
static TsiValue PHASE_draining_age_ns(const SlabPhaseStats* phase) {
    return (TsiValue){.u = phase->state == EPOCH_CLOSING ? phase->age_ns : 0};
}

/* Returns the committed bytes of a phase that has ended; 0 if it is open. [any thread, needs no lock] */
static TsiValue PHASE_draining_bytes(const SlabPhaseStats* phase) {
    return (TsiValue){.u = phase->state == EPOCH_CLOSING ? phase->committed_bytes : 0};
}

/* Returns the bytes left of `limit` when `used` are used, 0 if more are. [any thread, needs no lock] */
static TsiValue left(uint64_t limit, uint64_t used) { return (TsiValue){.u = limit > used ? limit - used : 0}; }

/* Returns the bytes left of the allocator's nearest limit; 0 without one. [any thread, needs no lock] */
static TsiValue GLOBAL_limit_left_bytes(const SlabGlobalStats* stats) {
    return left(stats->limit_bytes, stats->limit_used_bytes);
}

/* Returns the bytes left of the label's nearest limit; 0 without one. [any thread, needs no lock] */
static TsiValue LABEL_limit_left_bytes(const SlabLabelStats* stats) {
    return left(stats->limit_bytes, stats->limit_used_bytes);
}

/* Returns 1 if slow allocations are sampled (the period in *sampling is not 0), otherwise 0.
 * [any thread, needs no lock] */
static TsiValue SAMPLING_enabled(const SlabSamplingStats* sampling) { return (TsiValue){.u = sampling->period != 0}; }
#define MEAN(key, total, count)                                                   \
    static TsiValue SAMPLING_##key(const SlabSamplingStats* sampling) {           \
        return (TsiValue){.f = tsi_ratio(sampling->total, sampling->count, 1.0)}; \
    }
MEAN(avg_wall_ns, sum.alloc_wall_ns_sum, sum.alloc_samples)
MEAN(avg_cpu_ns, sum.alloc_cpu_ns_sum, sum.alloc_samples)
MEAN(avg_wait_ns, sum.alloc_wait_ns_sum, sum.alloc_samples)
MEAN(avg_repair_cpu_ns, sum.repair_cpu_ns_sum, sum.repair_count)
MEAN(avg_repair_wait_ns, sum.repair_wait_ns_sum, sum.repair_count)

/* Calls it with the row's type hidden. */
#define DERIVED(section, key, type, kind, unit, family, help, question) \
    static TsiValue derive_##section##_##key(const void* row) { return section##_##key((const TsiRow_##section*)row); }
#include "stats/metrics.def"

/* ---- the tables ---- */

/* A field must be what its line says: of the type's size, and F64 exactly when it is a double. */
#define BYTES_U32 sizeof(uint32_t)
#define BYTES_STATE sizeof(uint32_t)
#define BYTES_FLAG sizeof(uint32_t)
#define BYTES_U64 sizeof(uint64_t)
#define BYTES_F64 sizeof(double)
#define BYTES_STRING sizeof((SlabLabelStats*)0)->label
#define BYTES_BY_LABEL (TSI_LABEL_COLUMNS * sizeof(uint64_t))
#define BYTES_DOUBLING (SLAB_HISTOGRAM_BUCKETS * sizeof(uint64_t))
#define BYTES_LIST (TSI_DRAIN_WORST * sizeof(uint64_t))
#define BYTES_LATENCY (SLAB_LATENCY_BUCKETS * sizeof(uint64_t))
#define FIELD(section, field) ((TsiRow_##section*)0)->field
#define IS_DOUBLE(x) _Generic(x, double : true, default : false)
#define RENAMED(section, field, key, type, kind, unit, family, help, question)                        \
    _Static_assert(sizeof FIELD(section, field) == BYTES_##type &&                                    \
                       IS_DOUBLE(FIELD(section, field)) == (SLAB_SEGMENT_##type == SLAB_SEGMENT_F64), \
                   "metrics.def: " #section "." #field " is no " #type);
#include "stats/metrics.def"

#define JSON_ONLY NULL
#define WORDS(section, type, kind, unit) \
    TSI_SECTION_##section, SLAB_SEGMENT_##type, SLAB_SEGMENT_##kind, SLAB_SEGMENT_##unit
#define PLACE(section, field) offsetof(TsiRow_##section, field), sizeof FIELD(section, field)
#define RENAMED(section, field, key, type, kind, unit, family, help, question) \
    {key, family, help, NULL, PLACE(section, field), WORDS(section, type, kind, unit)},
#define DERIVED(section, key, type, kind, unit, family, help, question) \
    {#key, family, help, derive_##section##_##key, 0, 0, WORDS(section, type, kind, unit)},
const TsiMetric tsi_metrics[TSI_METRICS] = {
#include "stats/metrics.def"
};

#define FAMILY(family, help) {family, help},
static const struct {
    const char *family, *help;
} families[] = {
#include "stats/metrics.def"
};

/* Where a report has a section's rows, and how many a segment has room for. */
#define ROW(field) offsetof(TsiReport, field), 0, 1
#define ROWS(field, count, most) offsetof(TsiReport, field), offsetof(TsiReport, count), most
#define ROWS_DOCUMENT 0, 0, 1
#define ROWS_REGISTRY 0, 0, 1
#define ROWS_GLOBAL ROW(global)
#define ROWS_REFUSAL ROW(refusals)
#define ROWS_SAMPLING ROW(sampling)
#define ROWS_CLASS ROWS(classes, class_count, TSI_CLASS_LARGE)
#define ROWS_EPOCH ROWS(epochs, epoch_rows, TSI_KEPT_EPOCHS)
#define ROWS_PHASE ROWS(phases, phase_count, TSI_KEPT_PHASES)
#define ROWS_LABEL ROWS(labels, label_count, TSI_CHOSEN_LABELS)
#define ROWS_CLOSE ROWS(closes, close_count, TSI_CLOSES)
#define SECTION(section, Row, key, form, title, labels, about) \
    {#section, key, labels, SLAB_SEGMENT_##form, sizeof(Row), ROWS_##section},
const TsiSectionInfo tsi_sections[TSI_SECTIONS] = {
#include "stats/metrics.def"
};

/* ---- access ---- */

TsiValue tsi_metric_value(const TsiMetric* metric, const void* row) {
    const char* at = (const char*)row + metric->offset;
    TsiValue value = {0};
    uint32_t word;
    if (metric->derive != NULL) return metric->derive(row);
    if (metric->type == SLAB_SEGMENT_STRING) return (TsiValue){.s = at};
    if (tsi_metric_is_array(metric)) return (TsiValue){.a = (const uint64_t*)(const void*)at};
    if (metric->type == SLAB_SEGMENT_F64) return memcpy(&value.f, at, sizeof value.f), value;
    if (metric->type == SLAB_SEGMENT_U64) return memcpy(&value.u, at, sizeof value.u), value;
    memcpy(&word, at, sizeof word);
    return (TsiValue){.u = word};
}

const char* tsi_metric_state(uint64_t state) { return state == EPOCH_ACTIVE ? "ACTIVE" : "CLOSING"; }

uint64_t tsi_metric_bucket_top(unsigned type, unsigned i) {
    if (type == SLAB_SEGMENT_DOUBLING) return (2ull << i) - 1;
    return i < 4 ? i : ((5ull + i % 4) << (i / 4 - 1)) - 1;
}

const char* tsi_metric_family_help(const TsiMetric* metric) {
    size_t n = strcspn(metric->family, "{");
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strlen(families[i].family) == n && memcmp(families[i].family, metric->family, n) == 0)
            return families[i].help;
    return metric->help;
}

TsiRows tsi_report_rows(const TsiReport* report, TsiSection section) {
    const TsiSectionInfo* info = &tsi_sections[section];
    TsiRows rows = {(const char*)report + info->first, info->row_bytes, 1};
    if (info->form != SLAB_SEGMENT_ARRAY) return rows;
    memcpy(&rows.first, (const char*)report + info->first, sizeof rows.first);
    memcpy(&rows.count, (const char*)report + info->count, sizeof rows.count);
    return rows;
}

void tsi_report_set_rows(TsiReport* report, TsiSection section, void* first, uint32_t count) {
    memcpy((char*)report + tsi_sections[section].first, &first, sizeof first);
    memcpy((char*)report + tsi_sections[section].count, &count, sizeof count);
}
