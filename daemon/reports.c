/*
 * reports.c - leaks by label, the last receipts, and phases, as JSON.
 *
 * What leaks is judged by what labels know of their ended phases, as the doctors and alerts judge. Receipts, which have
 * a row a class, are added up by incarnation.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <slab_diagnostics.h>
#include <slab_stats.h>

#include "common/json.h"
#include "reports.h"

enum { RECEIPTS_MAX = 16, OLDEST = 16, NEWEST = 32 };

/* ---- leaks ---- */

static int more_bytes_first(const void* a, const void* b) {
    uint64_t x = ((const SlabLabelStats*)a)->unexpected_draining_bytes;
    uint64_t y = ((const SlabLabelStats*)b)->unexpected_draining_bytes;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void write_leak(const SlabLabelStats* l, struct json* j) {
    json_object(j, NULL);
    json_text(j, "label", l->label);
    json_count(j, "phases", l->unexpected_draining_phases);
    json_count(j, "objects", l->unexpected_draining_objects);
    json_count(j, "bytes", l->unexpected_draining_bytes);
    json_count(j, "oldest_s", l->oldest_unexpected_ns / 1000000000u);
    json_close(j);
}

static bool write_leaks(SlabAllocator* a, uint32_t threshold_s, struct json* j) {
    size_t room = slab_stats_labels(a, NULL, 0) + 16, count, leaks = 0; /* some more may come meanwhile */
    SlabLabelStats* rows = malloc(room * sizeof *rows);
    if (rows == NULL) return false;
    count = slab_stats_labels(a, rows, room);
    for (size_t n = 0; n < count && n < room; n++)
        if (rows[n].unexpected_draining_objects != 0 && rows[n].oldest_unexpected_ns / 1000000000u >= threshold_s)
            rows[leaks++] = rows[n];
    qsort(rows, leaks, sizeof *rows, more_bytes_first);
    json_count(j, "leak_threshold_s", threshold_s);
    json_array(j, "leaks");
    for (size_t n = 0; n < leaks && n < DOCTOR_ROWS; n++) write_leak(&rows[n], j);
    json_close(j);
    json_count(j, "leaking_labels", leaks);
    free(rows);
    return true;
}

/* ---- receipts ---- */

static bool write_receipts(SlabAllocator* a, struct json* j) {
    ReclamationReport r;
    errno = 0;
    slab_analyze_reclamation(a, &r);
    if (r.epochs == NULL && errno == ENOMEM) return false;
    json_array(j, "receipts");
    uint32_t end = r.epoch_count;
    /* Rows of one close stand together, the oldest close first. */
    for (unsigned written = 0; end != 0 && written < RECEIPTS_MAX; written++) {
        uint32_t begin = end - 1;
        uint64_t slabs = r.epochs[begin].slabs_recycled, bytes = r.epochs[begin].bytes_madvised;
        while (begin != 0 && r.epochs[begin - 1].epoch_era == r.epochs[begin].epoch_era) {
            begin--;
            slabs += r.epochs[begin].slabs_recycled;
            bytes += r.epochs[begin].bytes_madvised;
        }
        const EpochReclamation* e = &r.epochs[begin];
        json_object(j, NULL);
        json_text(j, "label", e->label);
        json_count(j, "era", e->epoch_era);
        json_count(j, "slabs", slabs);
        json_count(j, "madvise_bytes", bytes);
        json_count(j, "rss_before", e->rss_before);
        json_count(j, "rss_after", e->rss_after);
        json_close(j);
        end = begin;
    }
    json_close(j);
    free(r.epochs);
    return true;
}

/* ---- phases ---- */

static void write_phase(const SlabPhaseStats* p, struct json* j) {
    json_object(j, NULL);
    json_text(j, "label", p->label);
    json_count(j, "era", p->epoch_era);
    json_bool(j, "open", p->state == EPOCH_ACTIVE);
    json_fixed(j, "age_s", (double)p->age_ns / 1e9, 3);
    json_count(j, "live_objects", p->live_objects);
    json_count(j, "live_bytes", p->live_bytes);
    json_count(j, "committed_bytes", p->committed_bytes);
    json_count(j, "refcount", p->refcount);
    json_close(j);
}

static bool write_phases(SlabAllocator* a, struct json* j) {
    size_t room = slab_stats_phases(a, NULL, 0) + 64, count; /* some more may begin meanwhile */
    SlabPhaseStats* rows = malloc(room * sizeof *rows);
    if (rows == NULL) return false;
    count = slab_stats_phases(a, rows, room);
    size_t filled = count < room ? count : room;
    json_count(j, "phase_count", count);
    json_array(j, "phases");
    for (size_t n = 0; n < filled; n++) {
        if (n >= OLDEST && n + NEWEST < filled) n = filled - NEWEST;
        write_phase(&rows[n], j);
    }
    json_close(j);
    free(rows);
    return true;
}

bool reports_write(SlabAllocator* a, uint32_t leak_threshold_s, struct json* j) {
    return write_leaks(a, leak_threshold_s, j) && write_receipts(a, j) && write_phases(a, j);
}
