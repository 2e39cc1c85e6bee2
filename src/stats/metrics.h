/*
 * metrics.h - the lines of metrics.def at run time.
 *
 * The writers of a report, json.c and prometheus.c, walk this table and know no field by name. Questions are for
 * readers of docs/metrics.md and not kept here.
 */
#ifndef TSI_STATS_METRICS_H
#define TSI_STATS_METRICS_H

#include "stats/report.h"

#include "slab_segment.h" /* forms, types, kinds and units: the words of metrics.def after SLAB_SEGMENT_ */

typedef enum TsiSection {
#define SECTION(section, Row, key, form, title, labels, about) TSI_SECTION_##section,
#include "stats/metrics.def"
    TSI_SECTIONS
} TsiSection;

#define SECTION(section, Row, key, form, title, labels, about) typedef Row TsiRow_##section;
#include "stats/metrics.def"

#define METRIC_ONE(...) +1
enum {
#define RENAMED METRIC_ONE
#define DERIVED METRIC_ONE
    TSI_METRICS = 0
#include "stats/metrics.def"
};
#undef METRIC_ONE

#define TSI_METRIC_PREFIX "temporal_slab_"

/* By type: u for U32, U64, FLAG and STATE, f for F64, s for STRING, a for the arrays. */
typedef union TsiValue {
    uint64_t u;
    double f;
    const char* s;
    const uint64_t* a;
} TsiValue;

typedef struct TsiMetric {
    const char *key, *family, *help;     /* family NULL: JSON only */
    TsiValue (*derive)(const void* row); /* NULL: the field at `offset` */
    uint16_t offset, bytes;
    uint8_t section, type, kind, unit;
} TsiMetric;

typedef struct TsiSectionInfo {
    const char *name, *key, *labels;
    SlabSegmentForm form;
    size_t row_bytes, first,
        count;     /* offsets in a report: of the row, or of the pointer to an ARRAY and of its length */
    uint32_t most; /* rows that a segment has room for */
} TsiSectionInfo;

/* Rows of a report in a section. */
typedef struct TsiRows {
    const char* first;
    size_t bytes; /* of a row */
    uint32_t count;
} TsiRows;

extern const TsiMetric tsi_metrics[TSI_METRICS];
extern const TsiSectionInfo tsi_sections[TSI_SECTIONS];

/* Returns true if the metric is an array of numbers, false if it is one value. [any thread, needs no lock] */
TSI_INLINE bool tsi_metric_is_array(const TsiMetric* metric) {
    return metric->type == SLAB_SEGMENT_BY_LABEL || metric->type == SLAB_SEGMENT_DOUBLING ||
           metric->type == SLAB_SEGMENT_LATENCY || metric->type == SLAB_SEGMENT_LIST;
}
/* Returns true if the metric is an array of buckets, whose tops tsi_metric_bucket_top tells; false for other arrays and
 * for single values. [any thread, needs no lock] */
TSI_INLINE bool tsi_metric_has_buckets(const TsiMetric* metric) {
    return metric->type == SLAB_SEGMENT_DOUBLING || metric->type == SLAB_SEGMENT_LATENCY;
}
/* Returns the number of entries of an array, by its bytes; 1 for a field of 8 bytes. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_metric_entries(const TsiMetric* metric) { return metric->bytes / sizeof(uint64_t); }
/* Returns the metric's value in `row`, a row of its section: the field, or what `derive` computes: f of a real number,
 * u of any other number, s of a text, a of an array. Texts and arrays are not copied, but lie in the row.
 * [any thread, needs no lock] */
TsiValue tsi_metric_value(const TsiMetric* metric, const void* row);
/* Returns the name of `state`, an EpochLifecycleState: "ACTIVE" for EPOCH_ACTIVE, "CLOSING" for every other value.
 * [any thread, needs no lock] */
const char* tsi_metric_state(uint64_t state);
/* Returns the largest value that bucket i, from 0, of an array of `type`, SLAB_SEGMENT_DOUBLING or
 * SLAB_SEGMENT_LATENCY, counts; the last bucket has no such bound. [any thread, needs no lock] */
uint64_t tsi_metric_bucket_top(unsigned type, unsigned i);
/* Returns the help of a line's family: that of its FAMILY line, if there is one, otherwise the metric's own.
 * metric->family is not NULL. [any thread, needs no lock] */
const char* tsi_metric_family_help(const TsiMetric* metric);
/* Returns the rows of a report in a section: of an ARRAY those that it has, first NULL if it has none; of any other
 * form the single one. They stay the report's. [any thread, needs no lock] */
TsiRows tsi_report_rows(const TsiReport* report, TsiSection section);
/* Sets the rows of an ARRAY section to `count` rows at `first`, which stay the caller's; first may be NULL if count is
 * 0. The rows before are not dropped. [no other user of report] */
void tsi_report_set_rows(TsiReport* report, TsiSection section, void* first, uint32_t count);

#endif
