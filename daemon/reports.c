/*
 * reports.c - leaks by label, the last receipts, and phases, as JSON.
 *
 * What leaks is judged by what labels know of their ended phases, as the doctors and alerts judge. Receipts, which have
 * a row a class, are added up by incarnation.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <slab_diagnostics.h>
#include <slab_stats.h>

#include "reports.h"

enum { LEAKS_MAX = 10, RECEIPTS_MAX = 16, OLDEST = 16, NEWEST = 32 };

/* ---- leaks ---- */

static int more_bytes_first(const void* a, const void* b) {
    uint64_t x = ((const SlabLabelStats*)a)->draining_bytes, y = ((const SlabLabelStats*)b)->draining_bytes;
    return x < y ? 1 : x > y ? -1 : 0;
}

static void write_leak(const SlabLabelStats* l, bool first, struct text* t) {
    text_put(t, first ? "{\"label\":" : ",{\"label\":");
    text_json_string(t, l->label);
    text_format(t, ",\"phases\":%" PRIu64 ",\"objects\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"oldest_s\":%" PRIu64 "}",
                l->draining_phases, l->draining_objects, l->draining_bytes, l->oldest_draining_ns / 1000000000u);
}

static bool write_leaks(SlabAllocator* a, uint32_t threshold_s, struct text* t) {
    size_t room = slab_stats_labels(a, NULL, 0) + 16, count, leaks = 0; /* some more may come meanwhile */
    SlabLabelStats* rows = malloc(room * sizeof *rows);
    if (rows == NULL) return false;
    count = slab_stats_labels(a, rows, room);
    for (size_t n = 0; n < count && n < room; n++)
        if (rows[n].draining_objects != 0 && rows[n].oldest_draining_ns / 1000000000u >= threshold_s)
            rows[leaks++] = rows[n];
    qsort(rows, leaks, sizeof *rows, more_bytes_first);
    text_format(t, "\"leak_threshold_s\":%" PRIu32 ",\"leaks\":[", threshold_s);
    for (size_t n = 0; n < leaks && n < LEAKS_MAX; n++) write_leak(&rows[n], n == 0, t);
    text_format(t, "],\"leaking_labels\":%zu", leaks);
    free(rows);
    return true;
}

/* ---- receipts ---- */

static bool write_receipts(SlabAllocator* a, struct text* t) {
    ReclamationReport r;
    errno = 0;
    slab_analyze_reclamation(a, &r);
    if (r.epochs == NULL && errno == ENOMEM) return false;
    text_put(t, ",\"receipts\":[");
    uint32_t end = r.epoch_count, written = 0;
    while (end != 0 && written < RECEIPTS_MAX) { /* rows of one close stand together, the oldest close first */
        uint32_t begin = end - 1;
        uint64_t slabs = r.epochs[begin].slabs_recycled, bytes = r.epochs[begin].bytes_madvised;
        while (begin != 0 && r.epochs[begin - 1].epoch_era == r.epochs[begin].epoch_era) {
            begin--;
            slabs += r.epochs[begin].slabs_recycled;
            bytes += r.epochs[begin].bytes_madvised;
        }
        const EpochReclamation* e = &r.epochs[begin];
        text_put(t, written++ ? ",{\"label\":" : "{\"label\":");
        text_json_string(t, e->label);
        text_format(t,
                    ",\"era\":%" PRIu64 ",\"slabs\":%" PRIu64 ",\"madvise_bytes\":%" PRIu64 ",\"rss_before\":%" PRIu64
                    ",\"rss_after\":%" PRIu64 "}",
                    e->epoch_era, slabs, bytes, e->rss_before, e->rss_after);
        end = begin;
    }
    text_put(t, "]");
    free(r.epochs);
    return true;
}

/* ---- phases ---- */

static void write_phase(const SlabPhaseStats* p, bool first, struct text* t) {
    text_put(t, first ? "{\"label\":" : ",{\"label\":");
    text_json_string(t, p->label);
    text_format(t,
                ",\"era\":%" PRIu64 ",\"open\":%s,\"age_s\":%.3f,\"live_objects\":%" PRIu64 ",\"live_bytes\":%" PRIu64
                ",\"committed_bytes\":%" PRIu64 ",\"refcount\":%" PRIu64 "}",
                p->epoch_era, p->state == EPOCH_ACTIVE ? "true" : "false", (double)p->age_ns / 1e9, p->live_objects,
                p->live_bytes, p->committed_bytes, p->refcount);
}

static bool write_phases(SlabAllocator* a, struct text* t) {
    size_t room = slab_stats_phases(a, NULL, 0) + 64, count; /* some more may begin meanwhile */
    SlabPhaseStats* rows = malloc(room * sizeof *rows);
    if (rows == NULL) return false;
    count = slab_stats_phases(a, rows, room);
    size_t filled = count < room ? count : room;
    text_format(t, ",\"phase_count\":%zu,\"phases\":[", count);
    for (size_t n = 0, written = 0; n < filled; n++) {
        if (n >= OLDEST && n + NEWEST < filled) n = filled - NEWEST;
        write_phase(&rows[n], written++ == 0, t);
    }
    text_put(t, "]");
    free(rows);
    return true;
}

bool reports_write(SlabAllocator* a, uint32_t leak_threshold_s, struct text* t) {
    return write_leaks(a, leak_threshold_s, t) && write_receipts(a, t) && write_phases(a, t) && !t->failed;
}
