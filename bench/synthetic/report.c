/*
 * report.c - what was done, as text and as JSON.
 */
#include <inttypes.h>

#include <slab_stats.h>

#include "common/json.h"
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

static void put_settings(struct json* j, const struct bench* b) {
    const struct settings* s = &b->run.s;
    json_object(j, "settings");
    json_short(j, "duration_s", b->plan.duration_s, 15);
    json_count(j, "requests", s->requests);
    json_count(j, "threads", s->threads);
    json_short(j, "req_rate", s->req_rate, 15);
    json_count(j, "objs_min", s->objs_min);
    json_count(j, "objs_max", s->objs_max);
    if (s->size != 0)
        json_count(j, "size", s->size);
    else
        json_text(j, "size", "mixed");
    json_text(j, "epoch_policy", settings_epoch_policy(s));
    json_text(j, "free_policy", settings_free_policy(s));
    json_text(j, "phases", has_own_phases(&b->run) ? "domain" : "ring");
    json_count(j, "rss_sample_ms", b->plan.rss_sample_ms);
    json_count(j, "leak_threshold_s", b->plan.leak_threshold_s);
    json_count(j, "seed", s->seed);
    json_close(j);
}

static void put_times(struct json* j, const char* name, const struct histogram* h, uint64_t max) {
    json_object(j, name);
    json_count(j, "count", h->total);
    json_fixed(j, "p50", percentile(h, max, 50), 0);
    json_fixed(j, "p90", percentile(h, max, 90), 0);
    json_fixed(j, "p99", percentile(h, max, 99), 0);
    json_fixed(j, "p999", percentile(h, max, 99.9), 0);
    json_count(j, "max", max);
    json_close(j);
}

/* A member that has the name of the field. */
#define COUNT(from, field) json_count(j, #field, (from)->field)

static void put_objects(struct json* j, const struct totals* t) {
    json_object(j, "objects");
    COUNT(t, allocated), COUNT(t, freed), COUNT(t, leaked), COUNT(t, live), COUNT(t, failed);
    json_close(j);
}

static void put_phases(struct json* j, const struct phase_log* p) {
    json_object(j, "phases");
    COUNT(p, begun), COUNT(p, ended), COUNT(p, refused), COUNT(p, close_ns_sum), COUNT(p, slabs_returned);
    COUNT(p, bytes_returned), COUNT(p, slabs_deferred);
    json_close(j);
}

static void put_routes(struct json* j, const struct run* r, const struct totals* t) {
    json_array(j, "routes");
    for (unsigned n = 0; n < ROUTES; n++) {
        json_object(j, NULL);
        json_text(j, "route", r->s.pattern->routes[n]);
        COUNT(&t->route[n], allocated), COUNT(&t->route[n], freed), COUNT(&t->route[n], leaked);
        json_close(j);
    }
    json_close(j);
}

static void put_library(struct json* j, const struct run* r) {
    SlabGlobalStats g;
    uint64_t closed, pinned;
    slab_stats_global(r->a, &g);
    closed_slabs(r, &closed, &pinned);
    json_object(j, "library");
    json_text(j, "version", slab_version());
    json_count(j, "slow_path_hits", g.total_slow_path_hits);
    json_count(j, "closed_slabs", closed);
    json_count(j, "pinned_slabs", pinned);
    json_count(j, "madvise_calls", g.total_madvise_calls);
    json_count(j, "madvise_bytes", g.total_madvise_bytes);
    json_count(j, "madvise_failures", g.total_madvise_failures);
    json_count(j, "committed_bytes", g.committed_bytes);
    json_count(j, "metadata_bytes", g.metadata_bytes);
    json_close(j);
}

static void put_end(struct json* j, const struct seen* seen, const struct last_close* last) {
    json_object(j, "last_close");
    COUNT(last, freed), COUNT(last, bytes_returned), COUNT(last, close_ns), COUNT(last, rss_before);
    COUNT(last, rss_after);
    if (last->drop_ns != 0)
        json_count(j, "drop_ns", last->drop_ns);
    else
        json_text(j, "drop_ns", NULL);
    json_close(j);
    if (seen->leak_named_s < 0) {
        json_text(j, "leak_named", NULL);
        return;
    }
    json_object(j, "leak_named");
    json_text(j, "label", seen->leak_named);
    json_fixed(j, "after_s", seen->leak_named_s, 3);
    json_close(j);
}

static void put_resident(struct json* j, const struct seen* seen, const struct last_close* last) {
    json_object(j, "stats_file");
    json_count(j, "written", seen->stats_written);
    json_count(j, "failed", seen->stats_failed);
    json_close(j);
    json_object(j, "rss");
    json_count(j, "start", seen->rss_start);
    json_count(j, "peak", seen->rss_peak);
    json_count(j, "end", seen->rss_end);
    json_count(j, "after_close", last->rss_after);
    json_count(j, "samples", seen->rss_samples);
    json_close(j);
}

bool report_json(const struct bench* b, const struct totals* t, const struct last_close* last, unsigned complaints,
                 FILE* f) {
    const struct run* r = &b->run;
    const struct sums* s = sum_up(r);
    double time = seconds(r);
    struct json writer = {.write = json_file, .ctx = f, .lines = 1, .indent = 1}, *j = &writer;
    json_object(j, NULL);
    json_text(j, "allocator", r->s.use_malloc ? "malloc" : "tslab");
    json_text(j, "pattern", r->s.pattern->name);
    put_settings(j, b);
    json_bool(j, "interrupted", b->seen.interrupted);
    json_bool(j, "balanced", complaints == 0);
    json_fixed(j, "elapsed_s", time, 6);
    json_count(j, "requests", t->requests);
    json_fixed(j, "requests_per_s", time > 0 ? (double)t->requests / time : 0, 3);
    put_objects(j, t);
    json_fixed(j, "allocations_per_s", time > 0 ? (double)t->allocated / time : 0, 3);
    put_times(j, "latency_ns", &s->service, s->service_max);
    put_times(j, "since_due_ns", &s->response, s->response_max);
    put_times(j, "close_ns", &s->close_ns, s->phases.close_ns_max);
    put_phases(j, &s->phases);
    put_routes(j, r, t);
    if (r->a != NULL) put_library(j, r), put_end(j, &b->seen, last);
    put_resident(j, &b->seen, last);
    json_close(j);
    fputc('\n', f);
    return !ferror(f);
}
