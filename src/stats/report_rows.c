/*
 * report_rows.c - see report_rows.h.
 *
 * Nothing here asks for memory: the largest are found with a heap of places on the stack, and sorting is in place.
 */
#include "stats/report_rows.h"

#include <string.h>

enum { ROW_MAX = 512 };

static uint64_t era_at(const uint8_t* rows, size_t size, size_t era_offset, uint32_t n) {
    uint64_t era;
    memcpy(&era, rows + n * size + era_offset, sizeof era);
    return era;
}

static void swap_rows(uint8_t* rows, size_t size, uint32_t n, uint32_t m) {
    uint8_t row[ROW_MAX];
    memcpy(row, rows + n * size, size);
    memcpy(rows + n * size, rows + m * size, size);
    memcpy(rows + m * size, row, size);
}

/* Heapsort: in place, because qsort may ask for memory. (J. W. J. Williams, Algorithm 232, 1964) */
static void sort_by_era(void* table, uint32_t count, size_t size, size_t era_offset) {
    uint8_t* rows = table;
    for (uint32_t built = count / 2, end = count; end > 1;) {
        uint32_t root;
        if (built > 0) {
            root = --built;
        } else {
            swap_rows(rows, size, 0, --end);
            root = 0;
        }
        for (uint32_t child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && era_at(rows, size, era_offset, child) < era_at(rows, size, era_offset, child + 1)) child++;
            if (era_at(rows, size, era_offset, root) >= era_at(rows, size, era_offset, child)) break;
            swap_rows(rows, size, root, child);
        }
    }
}

/* ---- the largest ---- */

enum { EACH_MAX = 256 };

typedef uint64_t (*Key)(const void* row);

/* Places of the rows with the largest keys, of equals the first: a heap, the least of them at its root. */
typedef struct Best {
    const uint8_t* rows;
    size_t size;
    Key key;
    uint32_t most, count, place[EACH_MAX];
} Best;

static bool is_worse(const Best* b, uint32_t x, uint32_t y) {
    uint64_t kx = b->key(b->rows + x * b->size), ky = b->key(b->rows + y * b->size);
    return kx != ky ? kx < ky : x > y;
}

static void sink(Best* b, uint32_t at) {
    for (uint32_t child; (child = 2 * at + 1) < b->count; at = child) {
        if (child + 1 < b->count && is_worse(b, b->place[child + 1], b->place[child])) child++;
        if (!is_worse(b, b->place[child], b->place[at])) return;
        uint32_t t = b->place[at];
        b->place[at] = b->place[child];
        b->place[child] = t;
    }
}

static void offer(Best* b, uint32_t place) {
    if (b->count < b->most) {
        b->place[b->count++] = place;
        if (b->count == b->most)
            for (uint32_t at = b->count / 2; at-- > 0;) sink(b, at);
    } else if (is_worse(b, b->place[0], place)) {
        b->place[0] = place;
        sink(b, 0);
    }
}

static void by_place(uint32_t* place, uint32_t count) {
    for (uint32_t n = 1; n < count; n++) {
        uint32_t its = place[n], at = n;
        for (; at > 0 && place[at - 1] > its; at--) place[at] = place[at - 1];
        place[at] = its;
    }
}

/* Moves `each` rows with the largest keys of one kind, and of the others as many of the other kind, in their order, to the front;
 * returns how many. */
static uint32_t choose(void* table, uint32_t count, size_t size, uint32_t each, Key first, Key second) {
    Best best = {.rows = table, .size = size, .key = first, .most = each};
    uint8_t* rows = table;
    uint32_t chosen[2 * EACH_MAX], n, kept = 0;
    for (uint32_t k = 0; k < count; k++) offer(&best, k);
    n = best.count;
    by_place(best.place, n);
    memcpy(chosen, best.place, n * sizeof *chosen);
    best.key = second;
    best.count = 0;
    for (uint32_t k = 0, at = 0; k < count; k++) {
        if (at < n && chosen[at] == k) at++;
        else offer(&best, k);
    }
    memcpy(chosen + n, best.place, best.count * sizeof *chosen);
    by_place(chosen, n += best.count);
    for (; kept < n; kept++)
        if (kept != chosen[kept]) memcpy(rows + kept * size, rows + chosen[kept] * size, size);
    return kept;
}

static uint64_t phase_bytes(const void* row) { return ((const SlabPhaseStats*)row)->committed_bytes; }
static uint64_t phase_age(const void* row) { return ((const SlabPhaseStats*)row)->age_ns; }
static uint64_t epoch_bytes(const void* row) {
    const TsiEpochRow* e = row;
    return (e->epoch_id & TSI_DOMAIN_ID_BIT) == 0 ? UINT64_MAX : e->estimated_rss_bytes;
}
static uint64_t epoch_age(const void* row) { return (uint64_t)((const TsiEpochRow*)row)->age_sec; }

void tsi_report_choose(TsiReport* r, int each) {
    uint32_t phases = r->phase_count, epochs = r->epoch_rows;
    uint32_t most = each > EACH_MAX ? (uint32_t)EACH_MAX : (uint32_t)each;
    if (each != TSI_ROWS_ALL) {
        if (phases > 2 * most) r->phase_count = choose(r->phases, phases, sizeof *r->phases, most, phase_bytes, phase_age);
        if (epochs > 2 * most) r->epoch_rows = choose(r->epochs, epochs, sizeof *r->epochs, most, epoch_bytes, epoch_age);
    }
    r->phases_left_out = phases - r->phase_count;
    r->epochs_left_out = epochs - r->epoch_rows;
    sort_by_era(r->phases, r->phase_count, sizeof *r->phases, offsetof(SlabPhaseStats, epoch_era));
    sort_by_era(r->epochs, r->epoch_rows, sizeof *r->epochs, offsetof(TsiEpochRow, epoch_era));
}

static uint64_t label_drains(const void* row) { return ((const SlabLabelStats*)row)->draining_bytes; }
static uint64_t label_bytes(const void* row) { return ((const SlabLabelStats*)row)->committed_bytes; }

uint32_t tsi_report_choose_labels(TsiReport* r) {
    uint32_t inner = r->label_count - 2;
    if (r->label_count <= TSI_CHOSEN_LABELS) return r->label_count;
    uint32_t n = 1 + choose(r->labels + 1, inner, sizeof *r->labels, TSI_CHOSEN_LABELS / 2 - 1, label_drains, label_bytes);
    r->labels[n] = r->labels[r->label_count - 1];
    return n + 1;
}
