/*
 * json.c - a report as one JSON document.
 *
 * The sections and their members are those of metrics.def, in its order. Two members have a shape of their own:
 * label_registry.labels, which pairs ids with labels, and classes[].contention_by_label, which repeats the BY_LABEL
 * arrays without their zeros. Integers are exact to 64 bits; numbers that are not finite are written as 0.
 *
 * The document of several allocators has their sums, and in by_allocator the document of each; rows of lists name their
 * allocator. The document of a single allocator has neither.
 */
#include "stats/metrics.h"
#include "stats/out.h"

#include <string.h>

#define BY_LABEL_SUFFIX "_by_label"

/* Writes the n numbers from a[0] on as a JSON array, [1,2,...], in decimal; [] for n 0. [no other user of out] */
static void write_array(TsiOut* out, const uint64_t* a, unsigned n) {
    tsi_out_char(out, '[');
    for (unsigned i = 0; i < n && out->ok; i++) {
        if (i != 0) tsi_out_char(out, ',');
        tsi_out_u64(out, a[i]);
    }
    tsi_out_char(out, ']');
}

/* Writes the metric's value in `row`, a row of its section: a number; true or false for a FLAG; a string for a STRING
 * and a STATE, in quotes; an array by write_array. [no other user of out] */
static void write_value(TsiOut* out, const TsiMetric* metric, const void* row) {
    TsiValue value = tsi_metric_value(metric, row);
    if (tsi_metric_is_array(metric)) write_array(out, value.a, tsi_metric_entries(metric));
    else if (metric->type == SLAB_SEGMENT_F64) tsi_out_f64(out, value.f);
    else if (metric->type == SLAB_SEGMENT_FLAG) tsi_out_text(out, value.u != 0 ? "true" : "false");
    else if (metric->type == SLAB_SEGMENT_STRING)
        tsi_out_json_string(out, value.s, metric->bytes != 0 ? metric->bytes : SIZE_MAX);
    else if (metric->type == SLAB_SEGMENT_STATE) tsi_out_json_string(out, tsi_metric_state(value.u), SIZE_MAX);
    else tsi_out_u64(out, value.u);
}

/* Writes "key": with the n bytes of `key`, which need no escape, after a comma if *comma is true on entry; sets *comma
 * to true. [no other user of out] */
static void write_key(TsiOut* out, bool* comma, const char* key, size_t n) {
    if (*comma) tsi_out_char(out, ',');
    *comma = true;
    tsi_out_char(out, '"');
    tsi_out_bytes(out, key, n);
    tsi_out_text(out, "\":");
}

/* Writes those of the n numbers from a[0] on that are not 0 as an object, {"index":number,...}, with indices from 0 in
 * decimal; {} if all are 0. [no other user of out] */
static void write_sparse(TsiOut* out, const uint64_t* a, unsigned n) {
    bool comma = false;
    tsi_out_char(out, '{');
    for (unsigned i = 0; i < n && out->ok; i++) {
        if (a[i] == 0) continue;
        if (comma) tsi_out_char(out, ',');
        comma = true;
        tsi_out_char(out, '"');
        tsi_out_u64(out, i);
        tsi_out_text(out, "\":");
        tsi_out_u64(out, a[i]);
    }
    tsi_out_char(out, '}');
}

/* Writes the member contention_by_label of `row`, a row of a class: an object with a member for each metric by label,
 * in write_sparse's form. Puts a comma before it if *comma is true on entry; sets *comma to true.
 * [no other user of out] */
static void write_contention(TsiOut* out, bool* comma, const void* row) {
    bool inner = false;
    write_key(out, comma, "contention_by_label", strlen("contention_by_label"));
    tsi_out_char(out, '{');
    for (unsigned i = 0; i < TSI_METRICS; i++) {
        const TsiMetric* metric = &tsi_metrics[i];
        if (metric->type != SLAB_SEGMENT_BY_LABEL) continue;
        write_key(out, &inner, metric->key, strlen(metric->key) - (sizeof BY_LABEL_SUFFIX - 1));
        write_sparse(out, tsi_metric_value(metric, row).a, tsi_metric_entries(metric));
    }
    tsi_out_char(out, '}');
}

/* The subject of a document: the figures of `all`, and the rows of `count` parts; `named`: each with its allocator. */
typedef struct Subject {
    const TsiReport *all, *parts;
    unsigned count;
    bool named;
} Subject;

/* Writes the member labels of label_registry, ids with labels, of all parts of the document `of`, after a comma if
 * *comma is true on entry; sets *comma to true. [no other user of out] */
static void write_registry(TsiOut* out, bool* comma, const Subject* of) {
    bool inner = false;
    write_key(out, comma, "labels", strlen("labels"));
    tsi_out_char(out, '[');
    for (unsigned n = 0; n < of->count; n++) {
        for (uint32_t i = 0; i < of->parts[n].label_count && out->ok; i++) {
            const SlabLabelStats* stats = &of->parts[n].labels[i];
            tsi_out_text(out, inner ? ",\n{\"id\":" : "\n{\"id\":");
            inner = true;
            tsi_out_u64(out, stats->label_id);
            tsi_out_text(out, ",\"label\":");
            tsi_out_json_string(out, stats->label, sizeof stats->label);
            tsi_out_char(out, '}');
        }
    }
    tsi_out_char(out, ']');
}

/* Writes the members of `row`, a row of the section, those of the document itself on a line each, the first after a
 * comma if *comma is true on entry; sets *comma to true if there is a member. of: the document.
 * [no other user of out] */
static void write_members(TsiOut* out, bool* comma, const Subject* of, TsiSection section, const void* row) {
    bool top = tsi_sections[section].form == SLAB_SEGMENT_TOP;
    for (unsigned i = 0; i < TSI_METRICS && out->ok; i++) {
        const TsiMetric* metric = &tsi_metrics[i];
        if (metric->section != section) continue;
        write_key(out, comma, metric->key, strlen(metric->key));
        write_value(out, metric, row);
        if (top) tsi_out_char(out, '\n');
    }
    if (section == TSI_SECTION_CLASS) write_contention(out, comma, row);
    if (section == TSI_SECTION_REGISTRY) write_registry(out, comma, of);
}

/* Writes `row`, a row of the section, as an object. of: the document; allocator: the report whose number the row bears,
 * or NULL if it bears none. [no other user of out] */
static void write_row(TsiOut* out, const Subject* of, TsiSection section, const void* row, const TsiReport* allocator) {
    bool comma = false;
    tsi_out_char(out, '{');
    if (allocator != NULL) {
        write_key(out, &comma, "allocator", strlen("allocator"));
        tsi_out_u64(out, allocator->allocator);
    }
    write_members(out, &comma, of, section, row);
    tsi_out_char(out, '}');
}

/* Writes the rows of an ARRAY section, of all parts of the document `of`, as an array; each bears its allocator's
 * number if of->named. [no other user of out] */
static void write_list(TsiOut* out, const Subject* of, TsiSection section) {
    bool comma = false;
    tsi_out_char(out, '[');
    for (unsigned n = 0; n < of->count; n++) {
        const TsiReport* part = &of->parts[n];
        TsiRows rows = tsi_report_rows(part, section);
        for (uint32_t i = 0; i < rows.count && out->ok; i++) {
            tsi_out_text(out, comma ? ",\n" : "\n");
            comma = true;
            write_row(out, of, section, rows.first + i * rows.bytes, of->named ? part : NULL);
        }
    }
    tsi_out_char(out, ']');
}

/* Writes a section of the document `of` under its key, after a comma if *comma is true on entry; the members of a TOP
 * section stand in the document itself. Sets *comma to true. [no other user of out] */
static void write_section(TsiOut* out, bool* comma, const Subject* of, TsiSection section) {
    const TsiSectionInfo* info = &tsi_sections[section];
    const char* row = tsi_report_rows(of->all, section).first;
    if (info->form == SLAB_SEGMENT_TOP) {
        write_members(out, comma, of, section, row);
        return;
    }
    write_key(out, comma, info->key, strlen(info->key));
    if (info->form == SLAB_SEGMENT_ARRAY) write_list(out, of, section);
    else write_row(out, of, section, row, NULL);
    tsi_out_char(out, '\n');
}

/* Writes the first brace and all sections of the document `of`; the caller writes the last brace.
 * [no other user of out] */
static void write_document(TsiOut* out, const Subject* of) {
    bool comma = false;
    tsi_out_char(out, '{');
    for (unsigned i = 0; i < TSI_SECTIONS && out->ok; i++) write_section(out, &comma, of, (TsiSection)i);
}

bool tsi_report_json(const TsiReport* report, TsiWriteFn write, void* ctx) {
    return tsi_reports_json(report, 1, write, ctx);
}

bool tsi_reports_json(const TsiReport* reports, unsigned count, TsiWriteFn write, void* ctx) {
    TsiOut out;
    TsiReport sums;
    tsi_out_begin(&out, write, ctx);
    if (count > 1) {
        tsi_reports_together(reports, count, &sums);
        write_document(&out, &(Subject){&sums, reports, count, true});
    }

    for (unsigned n = 0; n < count && out.ok; n++) {
        if (count > 1) tsi_out_text(&out, n != 0 ? ",\n" : ",\"by_allocator\":[\n");
        write_document(&out, &(Subject){&reports[n], &reports[n], 1, count > 1});
        tsi_out_text(&out, "}\n");
    }

    if (count > 1) tsi_out_text(&out, "]\n}\n");
    return tsi_out_end(&out);
}
