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

static void write_array(TsiOut* o, const uint64_t* a, unsigned n) {
    tsi_out_char(o, '[');
    for (unsigned i = 0; i < n && o->ok; i++) {
        if (i != 0) tsi_out_char(o, ',');
        tsi_out_u64(o, a[i]);
    }
    tsi_out_char(o, ']');
}

static void write_value(TsiOut* o, const TsiMetric* m, const void* row) {
    TsiValue v = tsi_metric_value(m, row);
    if (tsi_metric_is_array(m)) write_array(o, v.a, tsi_metric_entries(m));
    else if (m->type == SLAB_SEGMENT_F64) tsi_out_f64(o, v.f);
    else if (m->type == SLAB_SEGMENT_FLAG) tsi_out_text(o, v.u != 0 ? "true" : "false");
    else if (m->type == SLAB_SEGMENT_STRING) tsi_out_json_string(o, v.s, m->bytes != 0 ? m->bytes : SIZE_MAX);
    else if (m->type == SLAB_SEGMENT_STATE) tsi_out_json_string(o, tsi_metric_state(v.u), SIZE_MAX);
    else tsi_out_u64(o, v.u);
}

static void write_key(TsiOut* o, bool* comma, const char* key, size_t n) {
    if (*comma) tsi_out_char(o, ',');
    *comma = true;
    tsi_out_char(o, '"');
    tsi_out_bytes(o, key, n);
    tsi_out_text(o, "\":");
}

/* Writes an array as {"id": count}, without zeros. */
static void write_sparse(TsiOut* o, const uint64_t* a, unsigned n) {
    bool comma = false;
    tsi_out_char(o, '{');
    for (unsigned i = 0; i < n && o->ok; i++) {
        if (a[i] == 0) continue;
        if (comma) tsi_out_char(o, ',');
        comma = true;
        tsi_out_char(o, '"');
        tsi_out_u64(o, i);
        tsi_out_text(o, "\":");
        tsi_out_u64(o, a[i]);
    }
    tsi_out_char(o, '}');
}

static void write_contention(TsiOut* o, bool* comma, const void* row) {
    bool inner = false;
    write_key(o, comma, "contention_by_label", strlen("contention_by_label"));
    tsi_out_char(o, '{');
    for (unsigned i = 0; i < TSI_METRICS; i++) {
        const TsiMetric* m = &tsi_metrics[i];
        if (m->type != SLAB_SEGMENT_BY_LABEL) continue;
        write_key(o, &inner, m->key, strlen(m->key) - (sizeof BY_LABEL_SUFFIX - 1));
        write_sparse(o, tsi_metric_value(m, row).a, tsi_metric_entries(m));
    }
    tsi_out_char(o, '}');
}

/* The subject of a document: the figures of `all`, and the rows of `count` parts; `named`: each with its allocator. */
typedef struct Subject {
    const TsiReport *all, *parts;
    unsigned count;
    bool named;
} Subject;

static void write_registry(TsiOut* o, bool* comma, const Subject* of) {
    bool inner = false;
    write_key(o, comma, "labels", strlen("labels"));
    tsi_out_char(o, '[');
    for (unsigned n = 0; n < of->count; n++) {
        for (uint32_t i = 0; i < of->parts[n].label_count && o->ok; i++) {
            const SlabLabelStats* l = &of->parts[n].labels[i];
            tsi_out_text(o, inner ? ",\n{\"id\":" : "\n{\"id\":");
            inner = true;
            tsi_out_u64(o, l->label_id);
            tsi_out_text(o, ",\"label\":");
            tsi_out_json_string(o, l->label, sizeof l->label);
            tsi_out_char(o, '}');
        }
    }
    tsi_out_char(o, ']');
}

/* Writes the members of a row, those of the document itself on a line each. */
static void write_members(TsiOut* o, bool* comma, const Subject* of, TsiSection section, const void* row) {
    bool top = tsi_sections[section].form == SLAB_SEGMENT_TOP;
    for (unsigned i = 0; i < TSI_METRICS && o->ok; i++) {
        const TsiMetric* m = &tsi_metrics[i];
        if (m->section != section) continue;
        write_key(o, comma, m->key, strlen(m->key));
        write_value(o, m, row);
        if (top) tsi_out_char(o, '\n');
    }
    if (section == TSI_SECTION_CLASS) write_contention(o, comma, row);
    if (section == TSI_SECTION_REGISTRY) write_registry(o, comma, of);
}

/* Writes a row; allocator: the row's, or NULL if there is no other. */
static void write_row(TsiOut* o, const Subject* of, TsiSection section, const void* row, const TsiReport* allocator) {
    bool comma = false;
    tsi_out_char(o, '{');
    if (allocator != NULL) {
        write_key(o, &comma, "allocator", strlen("allocator"));
        tsi_out_u64(o, allocator->allocator);
    }
    write_members(o, &comma, of, section, row);
    tsi_out_char(o, '}');
}

static void write_list(TsiOut* o, const Subject* of, TsiSection section) {
    bool comma = false;
    tsi_out_char(o, '[');
    for (unsigned n = 0; n < of->count; n++) {
        const TsiReport* part = &of->parts[n];
        TsiRows rows = tsi_report_rows(part, section);
        for (uint32_t i = 0; i < rows.count && o->ok; i++) {
            tsi_out_text(o, comma ? ",\n" : "\n");
            comma = true;
            write_row(o, of, section, rows.first + i * rows.bytes, of->named ? part : NULL);
        }
    }
    tsi_out_char(o, ']');
}

static void write_section(TsiOut* o, bool* comma, const Subject* of, TsiSection section) {
    const TsiSectionInfo* s = &tsi_sections[section];
    const char* row = tsi_report_rows(of->all, section).first;
    if (s->form == SLAB_SEGMENT_TOP) {
        write_members(o, comma, of, section, row);
        return;
    }
    write_key(o, comma, s->key, strlen(s->key));
    if (s->form == SLAB_SEGMENT_ARRAY) write_list(o, of, section);
    else write_row(o, of, section, row, NULL);
    tsi_out_char(o, '\n');
}

/* Writes everything except the last brace. */
static void write_document(TsiOut* o, const Subject* of) {
    bool comma = false;
    tsi_out_char(o, '{');
    for (unsigned i = 0; i < TSI_SECTIONS && o->ok; i++) write_section(o, &comma, of, (TsiSection)i);
}

bool tsi_report_json(const TsiReport* r, TsiWriteFn write, void* ctx) { return tsi_reports_json(r, 1, write, ctx); }

bool tsi_reports_json(const TsiReport* reports, unsigned count, TsiWriteFn write, void* ctx) {
    TsiOut o;
    TsiReport sums;
    tsi_out_begin(&o, write, ctx);
    if (count > 1) {
        tsi_reports_together(reports, count, &sums);
        write_document(&o, &(Subject){&sums, reports, count, true});
    }
    for (unsigned n = 0; n < count && o.ok; n++) {
        if (count > 1) tsi_out_text(&o, n != 0 ? ",\n" : ",\"by_allocator\":[\n");
        write_document(&o, &(Subject){&reports[n], &reports[n], 1, count > 1});
        tsi_out_text(&o, "}\n");
    }
    if (count > 1) tsi_out_text(&o, "]\n}\n");
    return tsi_out_end(&o);
}
