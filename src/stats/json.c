/*
 * json.c - a report as one JSON document.
 *
 * The sections and their members are those of metrics.def, in its order. Two members have a shape of their own:
 * label_registry.labels, which pairs ids with labels, and classes[].contention_by_label, which repeats the BY_LABEL
 * arrays without their zeros. Integers are exact to 64 bits; numbers that are not finite are written as 0.
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

/* {"id": count} of an array, without zeros. */
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

static void write_registry(TsiOut* o, bool* comma, const TsiReport* r) {
    write_key(o, comma, "labels", strlen("labels"));
    tsi_out_char(o, '[');
    for (uint32_t i = 0; i < r->label_count && o->ok; i++) {
        const SlabLabelStats* l = &r->labels[i];
        tsi_out_text(o, i != 0 ? ",\n{\"id\":" : "\n{\"id\":");
        tsi_out_u64(o, l->label_id);
        tsi_out_text(o, ",\"label\":");
        tsi_out_json_string(o, l->label, sizeof l->label);
        tsi_out_char(o, '}');
    }
    tsi_out_char(o, ']');
}

/* The members of one row. Those of the document itself are a line each. */
static void write_members(TsiOut* o, bool* comma, const TsiReport* r, TsiSection section, const void* row) {
    bool top = tsi_sections[section].form == SLAB_SEGMENT_TOP;
    for (unsigned i = 0; i < TSI_METRICS && o->ok; i++) {
        const TsiMetric* m = &tsi_metrics[i];
        if (m->section != section) continue;
        write_key(o, comma, m->key, strlen(m->key));
        write_value(o, m, row);
        if (top) tsi_out_char(o, '\n');
    }
    if (section == TSI_SECTION_CLASS) write_contention(o, comma, row);
    if (section == TSI_SECTION_REGISTRY) write_registry(o, comma, r);
}

static void write_row(TsiOut* o, const TsiReport* r, TsiSection section, const void* row) {
    bool comma = false;
    tsi_out_char(o, '{');
    write_members(o, &comma, r, section, row);
    tsi_out_char(o, '}');
}

static void write_section(TsiOut* o, bool* comma, const TsiReport* r, TsiSection section) {
    const TsiSectionInfo* s = &tsi_sections[section];
    TsiRows rows = tsi_report_rows(r, section);
    if (s->form == SLAB_SEGMENT_TOP) {
        write_members(o, comma, r, section, rows.first);
        return;
    }
    write_key(o, comma, s->key, strlen(s->key));
    bool list = s->form == SLAB_SEGMENT_ARRAY;
    if (list) tsi_out_char(o, '[');
    for (uint32_t i = 0; i < rows.count && o->ok; i++) {
        if (list) tsi_out_text(o, i != 0 ? ",\n" : "\n");
        write_row(o, r, section, rows.first + i * rows.bytes);
    }
    if (list) tsi_out_char(o, ']');
    tsi_out_char(o, '\n');
}

bool tsi_report_json(const TsiReport* r, TsiWriteFn write, void* ctx) {
    TsiOut o;
    bool comma = false;
    tsi_out_begin(&o, write, ctx);
    tsi_out_char(&o, '{');
    for (unsigned i = 0; i < TSI_SECTIONS && o.ok; i++) write_section(&o, &comma, r, (TsiSection)i);
    tsi_out_text(&o, "}\n");
    return tsi_out_end(&o);
}
