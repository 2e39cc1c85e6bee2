/* segment_rows.c - see segment_rows.h. */
#include "stats/segment_rows.h"

#include "stats/report.h"

#include <string.h>

enum { TEXT_BYTES = 32 };

/* ---- the layout is what docs/segment.md says ---- */

#define AT(type, field, offset) _Static_assert(offsetof(type, field) == (offset), #type "." #field)
_Static_assert(sizeof(SlabSegmentHeader) == SLAB_SEGMENT_HEADER_BYTES, "header");
_Static_assert(sizeof(SlabSegmentScope) == 136, "scope");
_Static_assert(sizeof(SlabSegmentMetric) == 352, "metric");
_Static_assert(sizeof(SlabSegmentSlot) == 128, "slot");
_Static_assert(sizeof(SlabSegmentBuffer) == 32 && sizeof(SlabSegmentRows) == 16, "buffer");
AT(SlabSegmentHeader, total_bytes, 24);
AT(SlabSegmentHeader, boot_id, 48);
AT(SlabSegmentHeader, heartbeat_ns, 96);
AT(SlabSegmentHeader, scopes, 120);
AT(SlabSegmentHeader, slots, 152);
AT(SlabSegmentScope, form, 112);
AT(SlabSegmentScope, offset, 128);
AT(SlabSegmentMetric, scope, 320);
AT(SlabSegmentMetric, bytes, 340);
AT(SlabSegmentSlot, sequence, 16);
AT(SlabSegmentSlot, buffer, 64);

#define FITS(text, IN) \
    _Static_assert(sizeof text <= sizeof((SlabSegmentMetric*)0)->IN, "metrics.def: no room in the segment for a text")
#define TEXTS_FIT(NAME, FAMILY_NAME, HELP) \
    FITS(NAME, name);                      \
    FITS(FAMILY_NAME, family);             \
    FITS(HELP, help);
#define JSON_ONLY ""
#define RENAMED(section, field, key, type, kind, unit, family, help, question) TEXTS_FIT(key, family, help)
#define DERIVED(section, key, type, kind, unit, family, help, question) TEXTS_FIT(#key, family, help)
#include "stats/metrics.def"

/* ---- places ---- */

/* Returns the bytes that a metric's value takes in a row of the segment, a multiple of 8.
 * [any thread, needs no lock] */
static uint32_t value_bytes(const TsiMetric* metric) {
    if (metric->type == SLAB_SEGMENT_STRING) return TEXT_BYTES;
    return tsi_metric_is_array(metric) ? metric->bytes : (uint32_t)sizeof(uint64_t);
}

void tsi_plan_make(TsiPlan* plan, size_t page_bytes) {
    memset(plan, 0, sizeof *plan);
    for (unsigned i = 0; i < TSI_METRICS; i++) {
        unsigned s = tsi_metrics[i].section;
        plan->metric_bytes[i] = value_bytes(&tsi_metrics[i]);
        plan->metric_offset[i] = plan->row_bytes[s];
        plan->row_bytes[s] += plan->metric_bytes[i];
    }

    size_t at = sizeof(SlabSegmentBuffer) + TSI_SECTIONS * sizeof(SlabSegmentRows);
    for (unsigned s = 0; s < TSI_SECTIONS; s++) {
        plan->capacity[s] = tsi_sections[s].most;
        plan->rows[s] = at;
        at += (size_t)plan->capacity[s] * plan->row_bytes[s];
    }

    plan->buffer_bytes = tsi_align_up(at, page_bytes);
    plan->scopes = SLAB_SEGMENT_HEADER_BYTES;
    plan->metrics = plan->scopes + TSI_SECTIONS * sizeof(SlabSegmentScope);
    plan->slots = tsi_align_up(plan->metrics + TSI_METRICS * sizeof(SlabSegmentMetric), 128);
    plan->buffers = tsi_align_up(plan->slots + SLAB_SEGMENT_SLOTS * sizeof(SlabSegmentSlot), page_bytes);
    plan->total_bytes = tsi_plan_buffer(plan, SLAB_SEGMENT_SLOTS, 0);
}

/* Copies the text `from`, cut to n - 1 bytes, to the n bytes at `to`, which are zero. [no other user of to] */
static void put_text(char* to, size_t n, const char* from) {
    size_t len = strlen(from);
    memcpy(to, from, len < n ? len : n - 1);
}

void tsi_plan_tables(const TsiPlan* plan, uint8_t* base) {
    for (unsigned s = 0; s < TSI_SECTIONS; s++) {
        SlabSegmentScope row = {.form = (uint32_t)tsi_sections[s].form,
                                .row_bytes = plan->row_bytes[s],
                                .capacity = plan->capacity[s],
                                .offset = plan->rows[s]};
        put_text(row.name, sizeof row.name, tsi_sections[s].name);
        put_text(row.key, sizeof row.key, tsi_sections[s].key);
        put_text(row.labels, sizeof row.labels, tsi_sections[s].labels);
        memcpy(base + plan->scopes + s * sizeof row, &row, sizeof row);
    }

    for (unsigned i = 0; i < TSI_METRICS; i++) {
        const TsiMetric* metric = &tsi_metrics[i];
        SlabSegmentMetric row = {.scope = metric->section,
                                 .type = metric->type,
                                 .kind = metric->kind,
                                 .unit = metric->unit,
                                 .offset = plan->metric_offset[i],
                                 .bytes = plan->metric_bytes[i]};
        put_text(row.name, sizeof row.name, metric->key);
        put_text(row.family, sizeof row.family, metric->family != NULL ? metric->family : "");
        put_text(row.help, sizeof row.help, metric->help);
        memcpy(base + plan->metrics + i * sizeof row, &row, sizeof row);
    }
}

/* ---- rows ---- */

/* Writes the word v at `at`, a place in the segment. release: pairs with the reader's acquire load of the word
 * (segment.c). [segment lock held] */
static void put(uint8_t* at, uint64_t v) { tsi_store_release((TsiShareWord*)(void*)at, v); }

/* Writes the metric's value in `row`, a row of a report, to `at`, its place in the buffer, word by word.
 * [segment lock held] */
static void put_value(const TsiMetric* metric, const void* row, uint8_t* at) {
    TsiValue value = tsi_metric_value(metric, row);
    uint64_t text[TEXT_BYTES / sizeof(uint64_t)] = {0}, word = value.u;
    if (metric->type == SLAB_SEGMENT_STRING) {
        size_t most = metric->bytes != 0 && metric->bytes < TEXT_BYTES ? metric->bytes : TEXT_BYTES - 1;
        memcpy(text, value.s, strnlen(value.s, most));
        for (unsigned n = 0; n < TEXT_BYTES / sizeof *text; n++) put(at + n * sizeof *text, text[n]);
    } else if (tsi_metric_is_array(metric)) {
        for (unsigned n = 0; n < tsi_metric_entries(metric); n++) put(at + n * sizeof word, value.a[n]);
    } else {
        if (metric->type == SLAB_SEGMENT_F64) memcpy(&word, &value.f, sizeof word);
        put(at, word);
    }
}

/* Returns how many rows of the section the report itself has left out; 0 for sections that it has whole.
 * [any thread, needs no lock] */
static uint64_t left_out_before(const TsiReport* report, TsiSection s) {
    return s == TSI_SECTION_PHASE   ? report->phases_left_out
           : s == TSI_SECTION_EPOCH ? report->epochs_left_out
           : s == TSI_SECTION_LABEL ? report->labels_left_out
                                    : 0;
}

void tsi_plan_rows(const TsiPlan* plan, TsiReport* report, uint8_t* buffer) {
    tsi_report_choose_labels(report); /* before the document's own row, which counts those left out */
    for (unsigned s = 0; s < TSI_SECTIONS; s++) {
        TsiRows rows = tsi_report_rows(report, (TsiSection)s);
        uint32_t count = rows.count < plan->capacity[s] ? rows.count : plan->capacity[s];
        uint8_t* head = buffer + sizeof(SlabSegmentBuffer) + s * sizeof(SlabSegmentRows);
        put(head, count);
        put(head + sizeof(uint64_t), rows.count - count + left_out_before(report, (TsiSection)s));
        for (unsigned i = 0; i < TSI_METRICS; i++) {
            if (tsi_metrics[i].section != s) continue;
            for (uint32_t n = 0; n < count; n++)
                put_value(&tsi_metrics[i], rows.first + n * rows.bytes,
                          buffer + plan->rows[s] + (size_t)n * plan->row_bytes[s] + plan->metric_offset[i]);
        }
    }
}
