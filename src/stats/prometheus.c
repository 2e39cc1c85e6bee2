/*
 * prometheus.c - a report in the Prometheus text format.
 *
 * Families are those of metrics.def, in its order; each is written whole before the next. How rows become series
 * depends on the section only:
 *
 *   CLASS, LABEL  one series a row
 *   EPOCH         one series a ring id, of the incarnation the id names now. Earlier ones and epochs of domains have
 *                 none: there may be tens of thousands
 *   PHASE         rows are added up by label id (PEAK: the largest counts)
 *   the others    one row, no labels
 *
 * The row of the rest has gauges only: labels move between it and rows of their own, so its counters may fall. The
 * document's own counters are of all labels.
 *
 * So the number of series is bounded by classes, ring ids and label ids. A label is the registry's, never the
 * string of a phase. No two label ids show the same text: see write_label. Nothing is allocated; sums by label are
 * made for CHUNK ids at a time.
 */
#include "stats/metrics.h"
#include "stats/out.h"

#include <string.h>

enum { CHUNK = 256 };

typedef struct Page {
    TsiOut* out;
    const TsiReport* report;
    bool named;                    /* one of several allocators: series say which */
    bool labelled;                 /* the present line has a label */
    uint32_t newest[TSI_RING_MAX]; /* ring id -> row of `epochs` + 1 */
} Page;

/* ---- pieces of a line ---- */

/* Begins a line, without labels so far (page->labelled is false): TSI_METRIC_PREFIX, the metric's family up to its
 * '{', and `suffix`. [no other user of page] */
static void write_name(Page* page, const TsiMetric* metric, const char* suffix) {
    page->labelled = false;
    tsi_out_text(page->out, TSI_METRIC_PREFIX);
    tsi_out_bytes(page->out, metric->family, strcspn(metric->family, "{"));
    tsi_out_text(page->out, suffix);
}

static TsiOut* begin_label(Page* page, const char* name);

/* Begins a series by write_name, with `suffix` behind the family's name, and the label "allocator" with the report's
 * number if page->named. [no other user of page] */
static void write_start(Page* page, const TsiMetric* metric, const char* suffix) {
    write_name(page, metric, suffix);
    if (!page->named) return;
    tsi_out_u64(begin_label(page, "allocator"), page->report->allocator);
    tsi_out_char(page->out, '"');
}

/* Begins a label of the present line, by its name up to a '=', if there is one. Returns where its value goes; the
 * caller writes the last quote. [no other user of page] */
static TsiOut* begin_label(Page* page, const char* name) {
    tsi_out_char(page->out, page->labelled ? ',' : '{');
    page->labelled = true;
    tsi_out_bytes(page->out, name, strcspn(name, "="));
    tsi_out_text(page->out, "=\"");
    return page->out;
}

/* Writes the label `name` with the number v as its value. [no other user of page] */
static void write_number_label(Page* page, const char* name, uint64_t v) {
    tsi_out_u64(begin_label(page, name), v);
    tsi_out_char(page->out, '"');
}

/* Writes the label `name` with n bytes of `text` as its value, which need no escape. [no other user of page] */
static void write_text_label(Page* page, const char* name, const char* text, size_t n) {
    tsi_out_bytes(begin_label(page, name), text, n);
    tsi_out_char(page->out, '"');
}

/* Returns the row of the label with the id `id`, or NULL if it has none. [any thread, needs no lock] */
static const SlabLabelStats* find_label(const TsiReport* report, uint32_t id) {
    if (id < report->label_count && report->labels[id].label_id == id) return &report->labels[id];
    for (uint32_t i = 0; i < report->label_count; i++)
        if (report->labels[i].label_id == id) return &report->labels[i];
    return NULL;
}

/* Returns the label id of the last row, which is the rest's if labels were left out; 0 without rows.
 * [any thread, needs no lock] */
static uint32_t last_label(const TsiReport* report) {
    return report->label_count != 0 ? report->labels[report->label_count - 1].label_id : 0;
}

/* Returns the id under which the label `id` is shown: its own if it has a row, otherwise the last one.
 * [any thread, needs no lock] */
static uint32_t shown_label(const TsiReport* report, uint32_t id) {
    return find_label(report, id) != NULL ? id : last_label(report);
}

/* Returns true if the row *stats of the report has the sums of the labels without a row. [any thread, needs no lock] */
static bool is_rest(const TsiReport* report, const SlabLabelStats* stats) {
    return report->labels_left_out != 0 && stats->label_id == report->label_ids;
}

/* Appends the label "label" with the string of the label id `id`, or of the highest id if it has no row. Strings that
 * are not UTF-8 may look equal after repair, and two equal series would spoil the page: " #" and the id follow these,
 * a string like a repaired one, and one like that of the rest. [no other user of page] */
static void write_label(Page* page, uint32_t id) {
    const SlabLabelStats* stats = find_label(page->report, id = shown_label(page->report, id));
    TsiOut* out = begin_label(page, "label");
    bool taken = stats != NULL && !is_rest(page->report, stats) &&
                 strncmp(stats->label, TSI_REST_LABEL, sizeof stats->label) == 0;
    if (stats == NULL || tsi_out_label_value(out, stats->label, sizeof stats->label) || taken) {
        tsi_out_text(out, " #");
        tsi_out_u64(out, id);
    }
    tsi_out_char(out, '"');
}

/* Appends the labels of the series of `row`, a row of the metric's section, to the line that is begun, with '{' before
 * the first; end_line closes them: class and object_size of a class; epoch, state and label of an epoch; a label's
 * own; the fixed one in metric->family; and an INFO's text under metric->key. [no other user of page] */
static void write_labels(Page* page, const TsiMetric* metric, const void* row) {
    const char* fixed = strchr(metric->family, '{'); /* "name{word=value}" */

    if (metric->section == TSI_SECTION_CLASS) {
        const SlabClassStats* stats = row;
        write_number_label(page, "class", stats->class_index);
        write_number_label(page, "object_size", stats->object_size);
    } else if (metric->section == TSI_SECTION_EPOCH) {
        const TsiEpochRow* epoch_row = row;
        const char* state = tsi_metric_state(epoch_row->state);
        write_number_label(page, "epoch", epoch_row->epoch_id);
        write_text_label(page, "state", state, strlen(state));
        write_label(page, epoch_row->label_id);
    } else if (metric->section == TSI_SECTION_LABEL) {
        write_label(page, ((const SlabLabelStats*)row)->label_id);
    }

    if (fixed != NULL) {
        const char* value = strchr(fixed, '=') + 1;
        write_text_label(page, fixed + 1, value, strcspn(value, "}"));
    }

    if (metric->kind == SLAB_SEGMENT_INFO) {
        (void)tsi_out_label_value(begin_label(page, metric->key), tsi_metric_value(metric, row).s, SIZE_MAX);
        tsi_out_char(page->out, '"');
    }
}

/* Writes v; NaN and infinities by the names that Prometheus has for them. [no other user of out] */
static void write_f64(TsiOut* out, double v) {
    if (v != v) tsi_out_text(out, "NaN");
    else if (v - v != 0) tsi_out_text(out, v > 0 ? "+Inf" : "-Inf");
    else tsi_out_f64(out, v);
}

/* Writes the metric's value in the unit that the page has: ns as seconds by tsi_out_seconds, percent divided by 100, 1
 * for an INFO, all others as they are: whole numbers in decimal, real ones by write_f64. [no other user of out] */
static void write_in_unit(TsiOut* out, const TsiMetric* metric, TsiValue value) {
    if (metric->kind == SLAB_SEGMENT_INFO) tsi_out_char(out, '1');
    else if (metric->type == SLAB_SEGMENT_F64)
        write_f64(out, metric->unit == SLAB_SEGMENT_PERCENT ? value.f / 100.0 : value.f);
    else if (metric->unit == SLAB_SEGMENT_NS) tsi_out_seconds(out, value.u);
    else tsi_out_u64(out, value.u);
}

/* Ends the labels of a series, if it has any, and writes its value and a newline. [no other user of page] */
static void end_line(Page* page, const TsiMetric* metric, TsiValue value) {
    tsi_out_text(page->out, page->labelled ? "} " : " ");
    write_in_unit(page->out, metric, value);
    tsi_out_char(page->out, '\n');
}

/* ---- one family ---- */

/* Writes a series of `row`: the family of `metric` with a suffix, and `value` in the unit of the metric value_of.
 * [no other user of page] */
static void write_value(Page* page, const TsiMetric* metric, const TsiMetric* value_of, const char* suffix,
                        const void* row, TsiValue value) {
    write_start(page, metric, suffix);
    write_labels(page, metric, row);
    end_line(page, value_of, value);
}

/* Writes the series of a metric that is one value in `row`. [no other user of page] */
static void write_sample(Page* page, const TsiMetric* metric, const void* row) {
    write_value(page, metric, metric, "", row, tsi_metric_value(metric, row));
}

/* Writes the series of a bucket of the histogram `metric` of `row`, with the label "le": *top in the page's unit, or
 * "+Inf" with top NULL; its value is `count`, the number of all values up to that. [no other user of page] */
static void write_bucket(Page* page, const TsiMetric* metric, const void* row, const uint64_t* top, uint64_t count) {
    write_start(page, metric, "_bucket");
    write_labels(page, metric, row);
    TsiOut* out = begin_label(page, "le");
    if (top != NULL) write_in_unit(out, metric, (TsiValue){.u = *top});
    else tsi_out_text(out, "+Inf");
    tsi_out_text(out, "\"} ");
    tsi_out_u64(out, count);
    tsi_out_char(out, '\n');
}

/* Returns an estimate of the sum of the values that `counts`, a DOUBLING array of the metric, counts, in the page's
 * unit (seconds for ns), as if each were 1.5 * 2^i, the middle of its bucket i. [any thread, needs no lock] */
static double middle_sum(const TsiMetric* metric, const uint64_t* counts) {
    double sum = 0, per = metric->unit == SLAB_SEGMENT_NS ? 1e9 : 1;
    for (unsigned i = 0; i < tsi_metric_entries(metric); i++)
        sum += (double)counts[i] * 1.5 * (double)(1ull << i) / per;
    return sum;
}

/* Writes the histogram `metric` of `row`: its buckets, each with the values up to its bound, then _sum and _count;
 * nothing if it is empty. All buckets of a LATENCY array but each second one of a DOUBLING array, because each label
 * has one, are written; counts stop at UINT64_MAX. The sum is that of the values, by the metric `sum`, or, if nobody
 * has added them up (NULL), an estimate from the buckets: OpenMetrics knows no histogram with a count and no sum.
 * [no other user of page] */
static void write_histogram(Page* page, const TsiMetric* metric, const TsiMetric* sum, const void* row) {
    static const TsiMetric plain = {.type = SLAB_SEGMENT_U64, .unit = SLAB_SEGMENT_COUNT};
    static const TsiMetric real = {.type = SLAB_SEGMENT_F64, .unit = SLAB_SEGMENT_COUNT};
    const uint64_t* a = tsi_metric_value(metric, row).a;
    unsigned last = tsi_metric_entries(metric) - 1;
    uint64_t count = 0, all = 0;

    for (unsigned i = 0; i <= last; i++) all |= a[i];
    if (all == 0) return;

    for (unsigned i = 0; i < last && page->out->ok; i++) {
        uint64_t top = tsi_metric_bucket_top(metric->type, i);
        count = a[i] > UINT64_MAX - count ? UINT64_MAX : count + a[i];
        if (metric->type == SLAB_SEGMENT_LATENCY || i % 2 == 1) write_bucket(page, metric, row, &top, count);
    }

    count = a[last] > UINT64_MAX - count ? UINT64_MAX : count + a[last];
    write_bucket(page, metric, row, NULL, count);

    if (sum != NULL) write_value(page, metric, sum, "_sum", row, tsi_metric_value(sum, row));
    else write_value(page, metric, &real, "_sum", row, (TsiValue){.f = middle_sum(metric, a)});
    write_value(page, metric, &plain, "_count", row, (TsiValue){.u = count});
}

/* Writes the metric over the phases with the label ids first .. first + CHUNK - 1, a series for each id that has a
 * phase: the sum, UINT64_MAX at most, or of a PEAK the largest. Phases of labels without a row count under the highest
 * id. [no other user of page] */
static void write_phase_sums(Page* page, const TsiMetric* metric, uint32_t first) {
    TsiRows rows = tsi_report_rows(page->report, TSI_SECTION_PHASE);
    uint64_t sums[CHUNK] = {0};
    bool seen[CHUNK] = {0};

    for (uint32_t i = 0; i < rows.count; i++) {
        const void* row = rows.first + i * rows.bytes;
        uint32_t id = ((const SlabPhaseStats*)row)->label_id;
        if ((id = shown_label(page->report, id)) < first || id - first >= CHUNK) continue;
        uint64_t v = tsi_metric_value(metric, row).u, *sum = &sums[id - first];
        if (metric->kind == SLAB_SEGMENT_PEAK) *sum = v > *sum ? v : *sum;
        else *sum = v > UINT64_MAX - *sum ? UINT64_MAX : *sum + v;
        seen[id - first] = true;
    }

    for (uint32_t k = 0; k < CHUNK && page->out->ok; k++) {
        if (!seen[k]) continue;
        write_start(page, metric, "");
        write_label(page, first + k);
        end_line(page, metric, (TsiValue){.u = sums[k]});
    }
}

/* Writes the series of a metric of phases, summed by label: one for each label that is shown and has a phase.
 * [no other user of page] */
static void write_phases(Page* page, const TsiMetric* metric) {
    uint32_t last = 0; /* of "(other)", whose row may lie before that of the rest */
    for (uint32_t i = 0; i < page->report->label_count; i++)
        if (page->report->labels[i].label_id > last) last = page->report->labels[i].label_id;
    for (uint64_t first = 0; first <= last && page->out->ok; first += CHUNK)
        write_phase_sums(page, metric, (uint32_t)first);
}

/* Writes the series of a metric of epochs, one for each id of the ring that has a row: of its newest epoch, by
 * page->newest, which index_epochs has set. [no other user of page] */
static void write_epochs(Page* page, const TsiMetric* metric) {
    for (uint32_t id = 0; id < TSI_RING_MAX && page->out->ok; id++)
        if (page->newest[id] != 0) write_sample(page, metric, &page->report->epochs[page->newest[id] - 1]);
}

/* Returns the type of a metric's family in words: "counter", "histogram", also for the sum of one, "gauge", or
 * "untyped" for a gauge whose name ends in "_count": promtool wants that kept for histograms, and users know these
 * names. [any thread, needs no lock] */
static const char* type_of(const TsiMetric* metric) {
    size_t n = strlen(metric->family);
    if (metric->kind == SLAB_SEGMENT_COUNTER) return "counter";
    if (metric->kind == SLAB_SEGMENT_HISTOGRAM || metric->kind == SLAB_SEGMENT_SUM) return "histogram";
    return n > 6 && strcmp(metric->family + n - 6, "_count") == 0 ? "untyped" : "gauge";
}

/* Returns true if the lines `metric` and `field` have one family, fixed labels aside. Both have one (family is not
 * NULL). [any thread, needs no lock] */
static bool same_family(const TsiMetric* metric, const TsiMetric* field) {
    size_t n = strcspn(metric->family, "{");
    return n == strcspn(field->family, "{") && memcmp(metric->family, field->family, n) == 0;
}

/* Writes the two comments above a metric's family, a line each: "# HELP name text" and "# TYPE name type", by
 * tsi_metric_family_help and type_of. [no other user of page] */
static void write_head(Page* page, const TsiMetric* metric) {
    tsi_out_text(page->out, "# HELP ");
    write_name(page, metric, " ");
    tsi_out_text(page->out, tsi_metric_family_help(metric));
    tsi_out_text(page->out, "\n# TYPE ");
    write_name(page, metric, " ");
    tsi_out_text(page->out, type_of(metric));
    tsi_out_char(page->out, '\n');
}

/* Returns true if the metric in `row` counts up (a COUNTER or HISTOGRAM) and `row` is that of the rest, where the sum
 * falls when a label gets a row of its own. [any thread, needs no lock] */
static bool goes_back(const TsiReport* report, const TsiMetric* metric, const void* row) {
    bool rises = metric->kind == SLAB_SEGMENT_COUNTER || metric->kind == SLAB_SEGMENT_HISTOGRAM;
    return rises && metric->section == TSI_SECTION_LABEL && is_rest(report, row);
}

/* Writes the series of a metric, of all its rows, those of phases summed by label and those of epochs by id. sum: the
 * metric with the sum of a histogram's values, or NULL. Leaves out counters of the row of the rest, which could fall.
 * [no other user of page] */
static void write_series(Page* page, const TsiMetric* metric, const TsiMetric* sum) {
    TsiRows rows = tsi_report_rows(page->report, (TsiSection)metric->section);
    if (metric->section == TSI_SECTION_PHASE) {
        write_phases(page, metric);
    } else if (metric->section == TSI_SECTION_EPOCH) {
        write_epochs(page, metric);
    } else {
        for (uint32_t i = 0; i < rows.count && page->out->ok; i++) {
            const void* row = rows.first + i * rows.bytes;
            if (goes_back(page->report, metric, row)) continue;
            if (metric->kind == SLAB_SEGMENT_HISTOGRAM) write_histogram(page, metric, sum, row);
            else write_sample(page, metric, row);
        }
    }
}

/* Sets page->newest, of TSI_RING_MAX entries that are 0, by the report's epochs: for each id of the ring the row + 1
 * of its epoch with the highest era; 0 stays for ids without one. [no other user of page] */
static void index_epochs(Page* page) {
    const TsiReport* report = page->report;
    for (uint32_t i = 0; i < report->epoch_rows; i++) {
        EpochId id = report->epochs[i].epoch_id;
        if (id >= TSI_RING_MAX) continue;
        uint32_t* row = &page->newest[id];
        if (*row == 0 || report->epochs[*row - 1].epoch_era <= report->epochs[i].epoch_era) *row = i + 1;
    }
}

/* Writes all families, each of all `count` pages, at least 1, which share one TsiOut, and ends that. Returns true if
 * the callback took everything. [no other user of pages] */
static bool write_pages(Page* pages, unsigned count) {
    TsiOut* out = pages[0].out;
    const TsiMetric* before = NULL; /* the line of a family above this one */
    for (unsigned n = 0; n < count; n++) index_epochs(&pages[n]);

    for (unsigned i = 0; i < TSI_METRICS && out->ok; i++) {
        const TsiMetric* metric = &tsi_metrics[i];
        if (metric->family == NULL) continue;
        bool same = before != NULL && same_family(before, metric);
        const TsiMetric* sum =
            same && before->kind == SLAB_SEGMENT_SUM ? before : NULL; /* stands above its histogram */
        before = metric;
        if (metric->kind == SLAB_SEGMENT_SUM) continue;
        if (!same || sum != NULL) write_head(&pages[0], metric);
        for (unsigned n = 0; n < count; n++) write_series(&pages[n], metric, sum);
    }
    return tsi_out_end(out);
}

bool tsi_report_prometheus(const TsiReport* report, TsiWriteFn write, void* ctx) {
    TsiOut out;
    Page page = {.out = &out, .report = report};
    tsi_out_begin(&out, write, ctx);
    return write_pages(&page, 1);
}

bool tsi_reports_prometheus(const TsiReport* reports, unsigned count, TsiWriteFn write, void* ctx) {
    TsiOut out;
    Page pages[SLAB_SEGMENT_SLOTS];
    memset(pages, 0, sizeof pages);
    for (unsigned n = 0; n < count; n++) {
        pages[n].out = &out;
        pages[n].report = &reports[n];
        pages[n].named = true;
    }
    tsi_out_begin(&out, write, ctx);
    return write_pages(pages, count);
}
