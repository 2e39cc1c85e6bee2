/*
 * report_rows.c - which rows of a list a report keeps, see report.h.
 *
 * Labels are sums, so those without a row are added up in one: sums over the rows are right whether there was room for
 * all or not.
 *
 * Nothing here asks for memory: the largest are found with a heap of places on the stack, and sorting is in place.
 */
#include "stats/report.h"

#include "stats/metrics.h"

#include <string.h>

/* Exchanges the rows number n and m, of `size` bytes, at most TSI_ROW_MAX, of the table at `rows`; n may be m.
 * [no other user of rows] */
static void swap_rows(uint8_t* rows, size_t size, uint32_t n, uint32_t m) {
    uint8_t row[TSI_ROW_MAX];
    memcpy(row, rows + n * size, size);
    memcpy(rows + n * size, rows + m * size, size);
    memcpy(rows + m * size, row, size);
}

/* Sorts by heapsort (J. W. J. Williams, Algorithm 232, 1964): in place, because qsort may ask for memory. */
void tsi_rows_sort(void* table, uint32_t count, size_t size, bool (*goes_before)(const void*, const void*)) {
    uint8_t* rows = table;
    for (uint32_t built = count / 2, end = count; end > 1;) {
        uint32_t root = 0;
        if (built > 0) root = --built;
        else swap_rows(rows, size, 0, --end);
        for (uint32_t child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && goes_before(rows + child * size, rows + (child + 1) * size)) child++;
            if (!goes_before(rows + root * size, rows + child * size)) break;
            swap_rows(rows, size, root, child);
        }
    }
}

_Static_assert(sizeof(SlabPhaseStats) <= TSI_ROW_MAX && sizeof(TsiEpochRow) <= TSI_ROW_MAX, "rows can be sorted");

/* Returns true if the phase *x has a lower era than *y. [any thread, needs no lock] */
static bool older_phase(const void* x, const void* y) {
    return ((const SlabPhaseStats*)x)->epoch_era < ((const SlabPhaseStats*)y)->epoch_era;
}

/* Returns true if the epoch *x has a lower era than *y. [any thread, needs no lock] */
static bool older_epoch(const void* x, const void* y) {
    return ((const TsiEpochRow*)x)->epoch_era < ((const TsiEpochRow*)y)->epoch_era;
}

/* ---- the largest ---- */

enum { EACH_MAX = 256 };

typedef uint64_t (*Key)(const void* row);

/* Places of the rows with the largest keys, the first of equal ones: a heap, the least at its root. */
typedef struct Best {
    const uint8_t* rows;
    size_t size;
    Key key;
    uint32_t most, count, place[2 * EACH_MAX];
} Best;

/* Returns true if row number x has a smaller key than row number y, or an equal one and stands behind it.
 * [any thread, needs no lock] */
static bool is_worse(const Best* best, uint32_t x, uint32_t y) {
    uint64_t kx = best->key(best->rows + x * best->size), ky = best->key(best->rows + y * best->size);
    return kx != ky ? kx < ky : x > y;
}

/* Restores the heap of best->place, no place above worse ones below it, after the one at the index `at` was replaced
 * by a better one, by moving that down. [no other user of best] */
static void sink(Best* best, uint32_t at) {
    for (uint32_t child; (child = 2 * at + 1) < best->count; at = child) {
        if (child + 1 < best->count && is_worse(best, best->place[child + 1], best->place[child])) child++;
        if (!is_worse(best, best->place[child], best->place[at])) return;
        uint32_t t = best->place[at];
        best->place[at] = best->place[child];
        best->place[child] = t;
    }
}

/* Keeps the row number `place` in best->place if fewer than best->most are kept, or instead of the worst of them if
 * is_worse says that this is worse. Once full, best->place is a heap with the worst at 0. [no other user of best] */
static void offer(Best* best, uint32_t place) {
    if (best->count < best->most) {
        best->place[best->count++] = place;
        if (best->count == best->most)
            for (uint32_t at = best->count / 2; at-- > 0;) sink(best, at);
    } else if (is_worse(best, best->place[0], place)) {
        best->place[0] = place;
        sink(best, 0);
    }
}

/* Returns true if the place *x is lower than *y. [any thread, needs no lock] */
static bool lower_place(const void* x, const void* y) { return *(const uint32_t*)x < *(const uint32_t*)y; }

/* A wish: the `most` rows with the largest keys of a kind, without those of key 0. */
typedef struct Wanted {
    Key key;
    uint32_t most;
} Wanted;

/* Moves the chosen ones of `count` rows of `size` bytes to the front of the table, in the table's order: for each of
 * the `wishes` wishes in `wanted` in turn, at most its `most` rows of largest `key` that no wish before has chosen;
 * never rows whose key is 0. The last wish also gets the places that others could not fill. Calls leave(row, ctx)
 * (leave may be NULL) with each row that was not chosen; rows behind the chosen ones are undefined afterwards. All
 * `most` together are at most 2 * EACH_MAX. Returns the number chosen. [no other user of table] */
static uint32_t choose(void* table, uint32_t count, size_t size, const Wanted* wanted, unsigned wishes,
                       void (*leave)(const void* row, void* ctx), void* ctx) {
    uint8_t* rows = table;
    uint32_t chosen[2 * EACH_MAX], n = 0, most = 0, kept = 0;
    for (unsigned w = 0; w < wishes; w++) {
        Best best = {.rows = table, .size = size, .key = wanted[w].key};
        most += wanted[w].most;
        best.most = w + 1 < wishes ? wanted[w].most : most - n;
        for (uint32_t k = 0, at = 0; k < count; k++) {
            if (at < n && chosen[at] == k) at++;
            else if (best.key(rows + k * size) != 0) offer(&best, k);
        }
        memcpy(chosen + n, best.place, best.count * sizeof *chosen);
        n += best.count;
        tsi_rows_sort(chosen, n, sizeof *chosen, lower_place);
    }

    for (uint32_t k = 0; k < count; k++) {
        bool is_chosen = kept < n && chosen[kept] == k;
        if (is_chosen && kept != k) memcpy(rows + kept * size, rows + k * size, size);
        if (is_chosen) kept++;
        else if (leave != NULL) leave(rows + k * size, ctx);
    }
    return kept;
}

/* Returns the key of a phase's row for choosing by bytes: twice its committed bytes, and 1 more if it is not open, so
 * that draining ones come before open ones of as many bytes; 0 only for an open one without bytes.
 * [any thread, needs no lock] */
static uint64_t phase_bytes(const void* row) {
    const SlabPhaseStats* phase = row;
    return phase->committed_bytes << 1 | (phase->state != EPOCH_ACTIVE);
}

/* Returns the key of a phase's row for choosing by age, never 0. [any thread, needs no lock] */
static uint64_t phase_age(const void* row) { return ((const SlabPhaseStats*)row)->age_ns + 1; }

/* Returns the key of a phase's row for choosing among those that have ended, by age; 0 if it is open.
 * [any thread, needs no lock] */
static uint64_t phase_drains(const void* row) {
    return ((const SlabPhaseStats*)row)->state != EPOCH_ACTIVE ? phase_age(row) : 0;
}

/* Returns the key of an epoch's row for choosing by bytes: UINT64_MAX for one of the ring; otherwise twice the bytes
 * of its slabs, and 1 more if it is not open. [any thread, needs no lock] */
static uint64_t epoch_bytes(const void* row) {
    const TsiEpochRow* epoch_row = row;
    bool ring = (epoch_row->epoch_id & TSI_DOMAIN_ID_BIT) == 0;
    return ring ? UINT64_MAX : epoch_row->estimated_rss_bytes << 1 | (epoch_row->state != EPOCH_ACTIVE);
}

/* Returns the key of an epoch's row for choosing by age, never 0. [any thread, needs no lock] */
static uint64_t epoch_age(const void* row) { return (uint64_t)(((const TsiEpochRow*)row)->age_sec * 1e9) + 1; }

/* Returns the key of an epoch's row for choosing among those that have ended, by age; 0 if it is open.
 * [any thread, needs no lock] */
static uint64_t epoch_drains(const void* row) {
    return ((const TsiEpochRow*)row)->state != EPOCH_ACTIVE ? epoch_age(row) : 0;
}

void tsi_report_choose(TsiReport* report, int each) {
    uint32_t phases = report->phase_count, epochs = report->epoch_rows;
    uint32_t most = each > EACH_MAX ? (uint32_t)EACH_MAX : (uint32_t)each, half = most / 2;
    if (each != TSI_ROWS_ALL) {
        const Wanted of_phases[] = {{phase_bytes, most}, {phase_drains, half}, {phase_age, most - half}};
        const Wanted of_epochs[] = {{epoch_bytes, most}, {epoch_drains, half}, {epoch_age, most - half}};
        if (phases > 2 * most)
            report->phase_count = choose(report->phases, phases, sizeof *report->phases, of_phases, 3, NULL, NULL);
        if (epochs > 2 * most)
            report->epoch_rows = choose(report->epochs, epochs, sizeof *report->epochs, of_epochs, 3, NULL, NULL);
    }
    report->phases_left_out = phases - report->phase_count;
    report->epochs_left_out = epochs - report->epoch_rows;
    tsi_rows_sort(report->phases, report->phase_count, sizeof *report->phases, older_phase);
    tsi_rows_sort(report->epochs, report->epoch_rows, sizeof *report->epochs, older_epoch);
}

/* Returns the key of a label's row for choosing by the bytes that its ended phases hold; 0 if they hold none.
 * [any thread, needs no lock] */
static uint64_t label_drains(const void* row) { return ((const SlabLabelStats*)row)->draining_bytes; }

/* Returns the key of a label's row for choosing by bytes, never 0. [any thread, needs no lock] */
static uint64_t label_bytes(const void* row) { return ((const SlabLabelStats*)row)->committed_bytes + 1; }

/* Adds the label's row *row to *rest, the SlabLabelStats of the rest, by metrics.def: counters, gauges, sums,
 * histograms and paces in bytes a second add up, peaks take the largest; other fields stay. [no other user of rest] */
static void add_to_rest(const void* row, void* rest) {
    for (unsigned i = 0; i < TSI_METRICS; i++) {
        const TsiMetric* metric = &tsi_metrics[i];
        bool sums = metric->kind == SLAB_SEGMENT_COUNTER || metric->kind == SLAB_SEGMENT_GAUGE ||
                    metric->kind == SLAB_SEGMENT_SUM || metric->kind == SLAB_SEGMENT_HISTOGRAM;
        bool whole = metric->type == SLAB_SEGMENT_U64 || tsi_metric_has_buckets(metric);

        if (metric->section == TSI_SECTION_LABEL && metric->type == SLAB_SEGMENT_F64 &&
            metric->unit == SLAB_SEGMENT_BYTES)
            *(double*)(void*)((char*)rest + metric->offset) +=
                *(const double*)(const void*)((const char*)row + metric->offset);

        bool adds = whole && (sums || metric->kind == SLAB_SEGMENT_PEAK);
        if (metric->section != TSI_SECTION_LABEL || !adds) continue;

        uint64_t* to = (uint64_t*)(void*)((char*)rest + metric->offset);
        const uint64_t* from = (const uint64_t*)(const void*)((const char*)row + metric->offset);
        for (unsigned n = 0; n < tsi_metric_entries(metric); n++)
            to[n] = sums ? to[n] + from[n] : from[n] > to[n] ? from[n] : to[n];
    }
}

void tsi_report_choose_labels(TsiReport* report) {
    enum { INNER = TSI_CHOSEN_LABELS - 3 }; /* without the first, the last and the rest */
    const Wanted wanted[] = {{label_drains, INNER / 2}, {label_bytes, INNER - INNER / 2}};
    uint32_t all = report->label_count;
    if (all <= TSI_CHOSEN_LABELS) return;
    SlabLabelStats rest = {.version = SLAB_STATS_VERSION, .label_id = all, .label = TSI_REST_LABEL};
    uint32_t n = 1 + choose(report->labels + 1, all - 2, sizeof *report->labels, wanted, 2, add_to_rest, &rest);
    rest.drainability = tsi_label_drainability(&rest);
    rest.limit_bytes = rest.limit_used_bytes = rest.limit_ns = 0; /* each label has its own */
    report->labels[n++] = report->labels[all - 1];
    report->labels_left_out = all - n;
    report->labels[n++] = rest;
    report->label_count = n;
}
