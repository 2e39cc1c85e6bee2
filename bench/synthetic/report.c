/*
 * report.c - what was done, as text and as JSON.
 */
#include <inttypes.h>

#include <slab_stats.h>

#include "synthetic.h"

#define MIB 1048576.0

struct sums { /* over workers */
    struct histogram service, response, close_ns;
    uint64_t service_max, response_max;
    struct phase_log phases; /* without the histogram */
};

static void merge(struct histogram* into, const struct histogram* h) {
    into->total += h->total;
    for (unsigned n = 0; n < HIST_SIZE; n++) into->count[n] += h->count[n];
}

static void merge_log(struct sums* s, const struct phase_log* log) {
    s->phases.begun += log->begun;
    s->phases.ended += log->ended;
    s->phases.refused += log->refused;
    s->phases.slabs_returned += log->slabs_returned;
    s->phases.bytes_returned += log->bytes_returned;
    s->phases.slabs_deferred += log->slabs_deferred;
    s->phases.close_ns_sum += log->close_ns_sum;
    if (log->close_ns_max > s->phases.close_ns_max) s->phases.close_ns_max = log->close_ns_max;
    merge(&s->close_ns, &log->close_ns);
}

static const struct sums* sum_up(const struct run* r) {
    static struct sums s;
    memset(&s, 0, sizeof s);
    merge_log(&s, &r->ring.log);
    for (unsigned n = 0; n < r->s.threads; n++) {
        const struct worker* w = &r->workers[n];
        merge(&s.service, &w->service);
        merge(&s.response, &w->response);
        if (w->service_max > s.service_max) s.service_max = w->service_max;
        if (w->response_max > s.response_max) s.response_max = w->response_max;
        merge_log(&s, &w->log);
    }
    return &s;
}

static double seconds(const struct run* r) { return (double)(r->end_ns - r->begin_ns) / 1e9; }

/* The value below which that share lies; the highest bucket ends at the largest value seen. */
static double percentile(const struct histogram* h, uint64_t max, double percent) {
    if (h->total == 0) return 0;
    double v = hist_percentile(h, percent);
    return v < (double)max ? v : (double)max;
}

/* Slabs that ends of phases looked at, and those that live objects kept. */
static void closed_slabs(const struct run* r, uint64_t* closed, uint64_t* pinned) {
    SlabLabelStats rows[64]; /* far more than there are routes */
    size_t count = slab_stats_labels(r->a, rows, 64);
    *closed = *pinned = 0;
    for (size_t n = 0; n < count && n < 64; n++) {
        *closed += rows[n].closed_slabs;
        *pinned += rows[n].pinned_slabs;
    }
}

/* ---- text ---- */

static void text_times(FILE* f, const char* name, const struct histogram* h, uint64_t max) {
    fprintf(f, "%-10s p50 %.1f, p90 %.1f, p99 %.1f, p99.9 %.1f, max %.1f us\n", name, percentile(h, max, 50) / 1e3,
            percentile(h, max, 90) / 1e3, percentile(h, max, 99) / 1e3, percentile(h, max, 99.9) / 1e3,
            (double)max / 1e3);
}

static void text_head(const struct run* r, FILE* f) {
    const struct settings* s = &r->s;
    char size[32] = "mixed sizes", rate[48] = "unpaced", objects[48];
    if (s->size != 0) (void)snprintf(size, sizeof size, "%u bytes", s->size);
    if (s->req_rate > 0) (void)snprintf(rate, sizeof rate, "%.15g requests/s", s->req_rate);
    (void)snprintf(objects, sizeof objects, s->objs_min == s->objs_max ? "%u" : "%u to %u", s->objs_min, s->objs_max);
    fprintf(f, "pattern %s on %s: %u thread%s, %s, %s objects of %s, %s, %s, phases of the %s\n", s->pattern->name,
            s->use_malloc ? "malloc" : "tslab", s->threads, s->threads == 1 ? "" : "s", rate, objects, size,
            settings_epoch_policy(s), settings_free_policy(s), has_own_phases(r) ? "thread" : "ring");
}

static void text_library(const struct bench* b, const struct totals* t, const struct last_close* last, FILE* f) {
    const struct run* r = &b->run;
    SlabGlobalStats g;
    uint64_t closed, pinned;
    slab_stats_global(r->a, &g);
    closed_slabs(r, &closed, &pinned);
    fprintf(f, "slow path  %.3f %% of allocations\n",
            t->allocated ? 100.0 * (double)g.total_slow_path_hits / (double)t->allocated : 0.0);
    fprintf(f,
            "reclaimed  %.1f %% of the %" PRIu64 " slabs that ends of phases looked at; %" PRIu64
            " madvise calls, %.1f MiB, %" PRIu64 " failed\n",
            closed ? 100.0 * (double)(closed - pinned) / (double)closed : 100.0, closed, g.total_madvise_calls,
            (double)g.total_madvise_bytes / MIB, g.total_madvise_failures);
    fprintf(f, "last close %" PRIu64 " live objects freed, %.2f MiB returned in %.1f us, RSS %.2f to %.2f MiB",
            last->freed, (double)last->bytes_returned / MIB, (double)last->close_ns / 1e3,
            (double)last->rss_before / MIB, (double)last->rss_after / MIB);
    if (last->drop_ns != 0) fprintf(f, ", fallen after %.1f us", (double)last->drop_ns / 1e3);
    fputc('\n', f);
    if (b->seen.leak_named_s >= 0)
        fprintf(f, "leak       \"%s\" named after %.1f s\n", b->seen.leak_named, b->seen.leak_named_s);
}

void report_text(const struct bench* b, const struct totals* t, const struct last_close* last, FILE* f) {
    const struct run* r = &b->run;
    const struct sums* s = sum_up(r);
    double time = seconds(r);
    text_head(r, f);
    fprintf(f, "elapsed    %.3f s%s\n", time, b->seen.interrupted ? ", interrupted" : "");
    fprintf(f, "requests   %" PRIu64 ", %.1f per second\n", t->requests, time > 0 ? (double)t->requests / time : 0);
    fprintf(f,
            "objects    %" PRIu64 " allocated, %" PRIu64 " freed, %" PRIu64 " leaked, %" PRIu64
            " live; %.1f allocations per second\n",
            t->allocated, t->freed, t->leaked, t->live, time > 0 ? (double)t->allocated / time : 0);
    if (t->failed != 0) fprintf(f, "           %" PRIu64 " allocations failed\n", t->failed);
    text_times(f, "latency", &s->service, s->service_max);
    if (r->s.req_rate > 0) text_times(f, "since due", &s->response, s->response_max);
    fprintf(f, "phases     %" PRIu64 " begun, %" PRIu64 " ended", s->phases.begun, s->phases.ended);
    if (r->a != NULL && s->phases.ended != 0)
        fprintf(f, " in %.1f us on average, p99 %.1f, max %.1f us",
                (double)s->phases.close_ns_sum / (double)s->phases.ended / 1e3,
                percentile(&s->close_ns, s->phases.close_ns_max, 99) / 1e3, (double)s->phases.close_ns_max / 1e3);
    fprintf(f, s->phases.refused ? "; %" PRIu64 " not begun for want of records\n" : "\n", s->phases.refused);
    fprintf(f, "RSS        start %.2f, peak %.2f, end %.2f MiB; %" PRIu64 " samples\n", (double)b->seen.rss_start / MIB,
            (double)b->seen.rss_peak / MIB, (double)b->seen.rss_end / MIB, b->seen.rss_samples);
    if (r->a != NULL) text_library(b, t, last, f);
}

/* ---- JSON ---- */

static void json_settings(const struct bench* b, FILE* f) {
    const struct settings* s = &b->run.s;
    fprintf(f,
            "{\n \"allocator\": \"%s\",\n \"pattern\": \"%s\",\n \"settings\": {\"duration_s\": %.15g, \"requests\": "
            "%" PRIu64 ", \"threads\": %u, \"req_rate\": %.15g, \"objs_min\": %u, \"objs_max\": %u, \"size\": ",
            s->use_malloc ? "malloc" : "tslab", s->pattern->name, b->plan.duration_s, s->requests, s->threads,
            s->req_rate, s->objs_min, s->objs_max);
    fprintf(f, s->size != 0 ? "%u" : "\"mixed\"", s->size);
    fprintf(f,
            ", \"epoch_policy\": \"%s\", \"free_policy\": \"%s\", \"phases\": \"%s\", \"rss_sample_ms\": %u, "
            "\"leak_threshold_s\": %u, \"seed\": %" PRIu64 "},\n",
            settings_epoch_policy(s), settings_free_policy(s), has_own_phases(&b->run) ? "domain" : "ring",
            b->plan.rss_sample_ms, b->plan.leak_threshold_s, s->seed);
}

static void json_times(FILE* f, const char* name, const struct histogram* h, uint64_t max) {
    fprintf(f,
            " \"%s\": {\"count\": %" PRIu64
            ", \"p50\": %.0f, \"p90\": %.0f, \"p99\": %.0f, \"p999\": %.0f, \"max\": %" PRIu64 "},\n",
            name, h->total, percentile(h, max, 50), percentile(h, max, 90), percentile(h, max, 99),
            percentile(h, max, 99.9), max);
}

static void json_routes(const struct run* r, const struct totals* t, FILE* f) {
    fprintf(f, " \"routes\": [");
    for (unsigned n = 0; n < ROUTES; n++)
        fprintf(f, "%s{\"route\": \"%s\", \"allocated\": %" PRIu64 ", \"freed\": %" PRIu64 ", \"leaked\": %" PRIu64 "}",
                n ? ", " : "", r->s.pattern->routes[n], t->route[n].allocated, t->route[n].freed, t->route[n].leaked);
    fprintf(f, "],\n");
}

static void json_library(const struct bench* b, const struct last_close* last, FILE* f) {
    const struct run* r = &b->run;
    SlabGlobalStats g;
    uint64_t closed, pinned;
    slab_stats_global(r->a, &g);
    closed_slabs(r, &closed, &pinned);
    fprintf(f,
            " \"library\": {\"version\": \"%s\", \"slow_path_hits\": %" PRIu64 ", \"closed_slabs\": %" PRIu64
            ", \"pinned_slabs\": %" PRIu64 ", \"madvise_calls\": %" PRIu64 ", \"madvise_bytes\": %" PRIu64
            ", \"madvise_failures\": %" PRIu64 ", \"committed_bytes\": %" PRIu64 ", \"metadata_bytes\": %" PRIu64
            "},\n",
            slab_version(), g.total_slow_path_hits, closed, pinned, g.total_madvise_calls, g.total_madvise_bytes,
            g.total_madvise_failures, g.committed_bytes, g.metadata_bytes);
    fprintf(f,
            " \"last_close\": {\"freed\": %" PRIu64 ", \"bytes_returned\": %" PRIu64 ", \"close_ns\": %" PRIu64
            ", \"rss_before\": %" PRIu64 ", \"rss_after\": %" PRIu64 ", \"drop_ns\": ",
            last->freed, last->bytes_returned, last->close_ns, last->rss_before, last->rss_after);
    fprintf(f, last->drop_ns ? "%" PRIu64 "},\n" : "null},\n", last->drop_ns);
    if (b->seen.leak_named_s >= 0)
        fprintf(f, " \"leak_named\": {\"label\": \"%s\", \"after_s\": %.3f},\n", b->seen.leak_named,
                b->seen.leak_named_s);
    else
        fprintf(f, " \"leak_named\": null,\n");
}

bool report_json(const struct bench* b, const struct totals* t, const struct last_close* last, unsigned complaints,
                 FILE* f) {
    const struct run* r = &b->run;
    const struct sums* s = sum_up(r);
    double time = seconds(r);
    json_settings(b, f);
    fprintf(f,
            " \"interrupted\": %s,\n \"balanced\": %s,\n \"elapsed_s\": %.6f,\n \"requests\": %" PRIu64
            ",\n \"requests_per_s\": %.3f,\n",
            b->seen.interrupted ? "true" : "false", complaints == 0 ? "true" : "false", time, t->requests,
            time > 0 ? (double)t->requests / time : 0);
    fprintf(f,
            " \"objects\": {\"allocated\": %" PRIu64 ", \"freed\": %" PRIu64 ", \"leaked\": %" PRIu64
            ", \"live\": %" PRIu64 ", \"failed\": %" PRIu64 "},\n \"allocations_per_s\": %.3f,\n",
            t->allocated, t->freed, t->leaked, t->live, t->failed, time > 0 ? (double)t->allocated / time : 0);
    json_times(f, "latency_ns", &s->service, s->service_max);
    json_times(f, "since_due_ns", &s->response, s->response_max);
    json_times(f, "close_ns", &s->close_ns, s->phases.close_ns_max);
    fprintf(f,
            " \"phases\": {\"begun\": %" PRIu64 ", \"ended\": %" PRIu64 ", \"refused\": %" PRIu64
            ", \"close_ns_sum\": %" PRIu64 ", \"slabs_returned\": %" PRIu64 ", \"bytes_returned\": %" PRIu64
            ", \"slabs_deferred\": %" PRIu64 "},\n",
            s->phases.begun, s->phases.ended, s->phases.refused, s->phases.close_ns_sum, s->phases.slabs_returned,
            s->phases.bytes_returned, s->phases.slabs_deferred);
    json_routes(r, t, f);
    if (r->a != NULL) json_library(b, last, f);
    fprintf(f,
            " \"stats_file\": {\"written\": %" PRIu64 ", \"failed\": %" PRIu64 "},\n \"rss\": {\"start\": %" PRIu64
            ", \"peak\": %" PRIu64 ", \"end\": %" PRIu64 ", \"after_close\": %" PRIu64 ", \"samples\": %" PRIu64
            "}\n}\n",
            b->seen.stats_written, b->seen.stats_failed, b->seen.rss_start, b->seen.rss_peak, b->seen.rss_end,
            last->rss_after, b->seen.rss_samples);
    return !ferror(f);
}
