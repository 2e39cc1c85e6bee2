/*
 * reports.c - leaks by label, the last receipts, and phases, as JSON.
 *
 * The library's reports have a row for each incarnation and class. A leak of one object in a hundred is a row of a few
 * kilobytes in each of thousands of phases, so rows are added up by label here; receipts, which have a row a class, are
 * added up by incarnation.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <slab_diagnostics.h>
#include <slab_stats.h>

#include "reports.h"

enum { LEAKS_MAX = 10, LABELS_MAX = 256, RECEIPTS_MAX = 16, OLDEST = 16, NEWEST = 32 };

/* ---- leaks ---- */

struct leak {
    char label[32];
    uint64_t phases, objects, bytes, oldest_s, last_era;
};

static int more_bytes_first(const void* a, const void* b) {
    uint64_t x = ((const struct leak*)a)->bytes, y = ((const struct leak*)b)->bytes;
    return x < y ? 1 : x > y ? -1 : 0;
}

static size_t add_up(const EpochLeakReport* found, struct leak* leaks) {
    size_t count = 0;
    for (uint32_t n = 0; n < found->top_count; n++) {
        const EpochLeakCandidate* c = &found->candidates[n];
        size_t k = 0;
        while (k < count && strcmp(leaks[k].label, c->label) != 0) k++;
        if (k == LABELS_MAX) k--; /* far more labels than anybody reads: the last takes the rest */
        if (k == count) {
            leaks[count++] = (struct leak){.last_era = UINT64_MAX};
            memcpy(leaks[k].label, c->label, sizeof c->label);
        }
        leaks[k].phases += leaks[k].last_era != c->epoch_era;
        leaks[k].last_era = c->epoch_era;
        leaks[k].objects += c->alloc_count;
        leaks[k].bytes += c->estimated_rss_bytes;
        if (c->age_sec > leaks[k].oldest_s) leaks[k].oldest_s = c->age_sec;
    }
    qsort(leaks, count, sizeof *leaks, more_bytes_first);
    return count;
}

static bool write_leaks(SlabAllocator* a, uint32_t threshold_s, struct text* t) {
    struct leak leaks[LABELS_MAX];
    EpochLeakReport found;
    errno = 0;
    (void)slab_detect_epoch_leaks(a, threshold_s, UINT32_MAX, &found);
    if (found.candidates == NULL && errno == ENOMEM) return false;
    size_t count = add_up(&found, leaks);
    free(found.candidates);
    text_format(t, "\"leak_threshold_s\":%" PRIu32 ",\"leaks\":[", threshold_s);
    for (size_t n = 0; n < count && n < LEAKS_MAX; n++) {
        text_put(t, n ? ",{\"label\":" : "{\"label\":");
        text_json_string(t, leaks[n].label);
        text_format(t,
                    ",\"phases\":%" PRIu64 ",\"objects\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"oldest_s\":%" PRIu64 "}",
                    leaks[n].phases, leaks[n].objects, leaks[n].bytes, leaks[n].oldest_s);
    }
    text_put(t, "]");
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
