/*
 * segment_text.c - text of a copied publication, by way of a report.
 *
 * The fields of TsiReport are filled from the metrics that bear their names, whatever else the segment has; derived
 * values are computed anew. Values that the writers use as more than a number are brought within their bounds.
 */
#include "api/segment.h"

#include "api/internal.h"
#include "stats/metrics.h"

#include <string.h>

#define NONE UINT32_MAX

/* Returns the number of the section's scope in the segment, by its name; NONE if it has none.
 * [any thread, needs no lock] */
static uint32_t scope_of(const SlabSegment* segment, TsiSection section) {
    for (uint32_t n = 0; n < segment->scope_count; n++)
        if (strcmp(segment->scopes[n].name, tsi_sections[section].name) == 0) return n;
    return NONE;
}

/* Returns the number of the metric with the key in the scope number `scope` of the segment, NONE if it has none.
 * [any thread, needs no lock] */
static uint32_t metric_of(const SlabSegment* segment, uint32_t scope, const char* key) {
    for (uint32_t n = 0; n < segment->metric_count; n++)
        if (segment->metrics[n].scope == scope && strcmp(segment->metrics[n].name, key) == 0) return n;
    return NONE;
}

/* Sets the field at `at`, of the metric's type, to a value read from a segment, of the same kind: a text cut to
 * metric->bytes - 1, an array to the entries that both have, a number to the field's largest. A text does not write
 * the 0 behind it: the field is 0 before. [no other user of at] */
static void set_field(const TsiMetric* metric, const SlabSegmentValue* value, char* at) {
    uint32_t word = value->u > UINT32_MAX ? UINT32_MAX : (uint32_t)value->u;
    if (metric->type == SLAB_SEGMENT_STRING) memcpy(at, value->text, strnlen(value->text, metric->bytes - 1u));
    else if (tsi_metric_is_array(metric))
        memcpy(at, value->counts,
               (value->entries < tsi_metric_entries(metric) ? value->entries : tsi_metric_entries(metric)) *
                   sizeof(uint64_t));
    else if (metric->type == SLAB_SEGMENT_F64) memcpy(at, &value->f, sizeof value->f);
    else if (metric->type == SLAB_SEGMENT_U64) memcpy(at, &value->u, sizeof value->u);
    else memcpy(at, &word, sizeof word);
}

/* Returns true if a value of `type` (SLAB_SEGMENT_...) still has the metric's kind, which a later version may change:
 * text, real, array or whole number. [any thread, needs no lock] */
static bool same_kind(const TsiMetric* metric, uint32_t type) {
    if (metric->type == SLAB_SEGMENT_STRING || type == SLAB_SEGMENT_STRING) return metric->type == type;
    if (metric->type == SLAB_SEGMENT_F64 || type == SLAB_SEGMENT_F64) return metric->type == type;
    return tsi_metric_is_array(metric) == (type > SLAB_SEGMENT_STATE);
}

/* Fills a section of the report from the scope number `scope` of the copy: as many rows as the copy has, or a single
 * row where a report has one, whatever form the segment gives it. The report has room for them; fields that the segment
 * lacks stay. [no other user of segment and report] */
static void fill_section(const SlabSegment* segment, TsiReport* report, TsiSection section, uint32_t scope) {
    TsiRows rows = tsi_report_rows(report, section);
    uint32_t count =
        (uint32_t)slab_segment_rows(segment, scope).count; /* rows.count may be a field that was just set */
    if (tsi_sections[section].form != SLAB_SEGMENT_ARRAY && count > 1) count = 1;
    for (unsigned i = 0; i < TSI_METRICS; i++) {
        const TsiMetric* metric = &tsi_metrics[i];
        uint32_t at =
            metric->section == section && metric->derive == NULL ? metric_of(segment, scope, metric->key) : NONE;
        if (at == NONE || !same_kind(metric, segment->metrics[at].type)) continue;
        for (uint32_t n = 0; n < count; n++) {
            SlabSegmentValue value;
            if (slab_segment_value(segment, at, n, &value))
                set_field(metric, &value, (char*)(uintptr_t)rows.first + n * rows.bytes + metric->offset);
        }
    }
}

/* Brings ids of labels, which index tables of the writers, within the bounds of these. [no other user of report] */
static void within_bounds(TsiReport* report) {
    for (uint32_t n = 0; n < report->label_count; n++) report->labels[n].label_id %= TSI_LABELS_MAX + 1; /* the rest */
    for (uint32_t n = 0; n < report->phase_count; n++) report->phases[n].label_id %= TSI_LABELS_MAX;
    for (uint32_t n = 0; n < report->epoch_rows; n++) report->epochs[n].label_id %= TSI_LABELS_MAX;
}

/* Sets the figures of the report that the reader alone knows: the ages of the publication's figures and of its phases,
 * in ns, 0 if the clock was set back; changed_since, true if something has changed since it; slot and state of the
 * process: "running", "stopped", "ended". [no other user of report] */
static void set_ages(const SlabSegment* segment, TsiReport* report) {
    static const char* const words[] = {"running", "stopped", "ended"};
    uint64_t now = tsi_os.now_ns();
    SlabProcessState state = segment->state == SLAB_SEGMENT_ENDED ? SLAB_PROCESS_ENDED : slab_segment_process(segment);
    memset(report->process_state, 0, sizeof report->process_state);
    memcpy(report->process_state, words[state], strlen(words[state]));
    report->allocator = segment->slot;
    report->changed_since = segment->changed;
    report->figures_age_ns = now > report->figures_ns ? now - report->figures_ns : 0;
    report->phases_age_ns = now > report->phases_ns ? now - report->phases_ns : 0;
}

/* Sets *report to a report of the publication that slab_segment_read has copied; sections that the segment lacks are 0
 * or have no rows. Returns true, and *report for tsi_report_drop; false with errno ENOMEM and nothing to drop.
 * [no other user of segment and report] */
static bool report_make(const SlabSegment* segment, TsiReport* report) {
    uint32_t scopes[TSI_SECTIONS], counts[TSI_SECTIONS] = {0};
    memset(report, 0, sizeof *report);
    report->mapping_bytes = 1;

    for (unsigned n = 0; n < TSI_SECTIONS; n++) {
        scopes[n] = scope_of(segment, (TsiSection)n);
        if (scopes[n] == NONE || tsi_sections[n].form != SLAB_SEGMENT_ARRAY) continue;
        counts[n] = (uint32_t)slab_segment_rows(segment, scopes[n]).count; /* below 2^32 by its capacity */
        report->mapping_bytes += counts[n] * tsi_sections[n].row_bytes;
    }

    char* at = report->mapping = tsi_os_map(report->mapping_bytes);
    if (at == NULL) return false;
    for (unsigned n = 0; n < TSI_SECTIONS; n++) {
        if (tsi_sections[n].form != SLAB_SEGMENT_ARRAY) continue;
        tsi_report_set_rows(report, (TsiSection)n, at, counts[n]);
        at += counts[n] * tsi_sections[n].row_bytes; /* all rows are multiples of 8 bytes */
    }

    for (unsigned n = 0; n < TSI_SECTIONS; n++)
        if (scopes[n] != NONE) fill_section(segment, report, (TsiSection)n, scopes[n]);
    within_bounds(report);
    set_ages(segment, report);
    return true;
}

/* Writes the copied publication by `text`, to write(ctx, bytes, n). Returns true; false with EINVAL without a segment,
 * a copy or `write`, with ENOMEM, or as soon as `write` refuses. [no other user of segment] */
static bool write_copy(const SlabSegment* segment, TsiWriteFn write, void* ctx,
                       bool (*text)(const TsiReport*, TsiWriteFn, void*)) {
    TsiReport report;
    if (segment == NULL || !segment->filled || write == NULL) return errno = EINVAL, false;
    if (!report_make(segment, &report)) return false;
    bool whole = text(&report, write, ctx);
    tsi_report_drop(&report);
    return whole;
}

bool slab_segment_json(const SlabSegment* segment, TsiWriteFn write, void* ctx) {
    return write_copy(segment, write, ctx, tsi_report_json);
}

bool slab_segment_prometheus(const SlabSegment* segment, TsiWriteFn write, void* ctx) {
    return write_copy(segment, write, ctx, tsi_report_prometheus);
}

/* Reads all live allocators of the segment and writes them by `text` as one document, to write(ctx, bytes, n). The
 * segment's copy is another one afterwards. Returns true; false with EINVAL without a segment or `write`, with ENOENT
 * if no allocator is live, with ENOMEM, or as soon as `write` refuses. [no other user of segment] */
static bool write_all(SlabSegment* segment, TsiWriteFn write, void* ctx,
                      bool (*text)(const TsiReport*, unsigned, TsiWriteFn, void*)) {
    TsiReport reports[SLAB_SEGMENT_SLOTS];
    unsigned count = 0;
    bool whole = segment != NULL && write != NULL;
    if (!whole) return errno = EINVAL, false;
    for (uint32_t n = 0; n < slab_segment_slots(segment) && count < SLAB_SEGMENT_SLOTS && whole; n++) {
        if (slab_segment_read(segment, n, NULL) != SLAB_SEGMENT_OK || segment->state != SLAB_SEGMENT_LIVE) continue;
        whole = report_make(segment, &reports[count]);
        count += whole;
    }
    if (whole && count == 0) whole = false, errno = ENOENT;
    else if (whole) whole = text(reports, count, write, ctx);
    for (unsigned n = 0; n < count; n++) tsi_report_drop(&reports[n]);
    return whole;
}

bool slab_segment_json_all(SlabSegment* segment, TsiWriteFn write, void* ctx) {
    return write_all(segment, write, ctx, tsi_reports_json);
}

bool slab_segment_prometheus_all(SlabSegment* segment, TsiWriteFn write, void* ctx) {
    return write_all(segment, write, ctx, tsi_reports_prometheus);
}
