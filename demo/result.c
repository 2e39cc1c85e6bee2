/*
 * result.c - the figures of a run as one line of JSON; times in nanoseconds, sizes in bytes.
 */
#include "run.h"

#include <inttypes.h>

static void write_latency(FILE* out, const char* name, const Latency* l) {
    fprintf(out, "\"%s\":{\"mean\":%.0f,\"p50\":%u,\"p99\":%u,\"p999\":%u,\"max\":%u}", name, l->mean_ns, l->p50_ns,
            l->p99_ns, l->p999_ns, l->max_ns);
}

static void write_number(FILE* out, const char* name, uint64_t value) {
    fprintf(out, "\"%s\":%" PRIu64 ",", name, value);
}

/* JSON text of `text`; what is below a space goes as \u00XX. */
static void write_text(FILE* out, const char* text) {
    fputc('"', out);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fprintf(out, "\\%c", *text);
        else if ((unsigned char)*text < ' ')
            fprintf(out, "\\u%04x", (unsigned)*text);
        else
            fputc(*text, out);
    }
    fputc('"', out);
}

static void write_route(FILE* out, const RunFigures* run, int r) {
    const RouteFigures* f = &run->figures[r];
    fprintf(out, "{\"label\":\"%s\",", ROUTES[r].label);
    write_number(out, "requests", f->requests);
    write_number(out, "failed", f->failed);
    write_number(out, "answer_bytes", f->answer_bytes);
    write_number(out, "leaked", f->leaked);
    write_number(out, "phases", f->phases);
    write_number(out, "objects", f->objects);
    write_number(out, "bytes", f->bytes);
    write_number(out, "objects_freed", f->objects_freed);
    write_number(out, "bytes_freed", f->bytes_freed);
    write_number(out, "objects_released", f->objects_released);
    write_number(out, "bytes_released", f->bytes_released);
    write_number(out, "objects_escaped", f->escaped);
    write_number(out, "bytes_escaped", f->bytes_escaped);
    write_number(out, "held_bytes", f->held_bytes);
    write_number(out, "deferred_slabs", f->deferred_slabs);
    write_number(out, "close_ns", f->close_ns);
    write_number(out, "max_objects", f->max_objects);
    write_number(out, "max_bytes", f->max_bytes);
    write_number(out, "max_held_bytes", f->max_held_bytes);
    write_latency(out, "latency_ns", &run->route[r]);
    fprintf(out, "}");
}

static void write_receipt(FILE* out, const RunFigures* run) {
    const EpochReceipt* r = &run->receipt;
    fprintf(out, "\"receipt\":{");
    write_number(out, "request", run->receipt_request);
    write_number(out, "version", r->version);
    write_number(out, "epoch_id", r->epoch_id);
    write_number(out, "epoch_era", r->epoch_era);
    fprintf(out, "\"label\":\"%.31s\",", r->label);
    write_number(out, "objects_allocated", r->objects_allocated);
    write_number(out, "objects_freed", r->objects_freed);
    write_number(out, "objects_released", r->objects_released);
    write_number(out, "objects_escaped", r->objects_escaped);
    write_number(out, "bytes_allocated", r->bytes_allocated);
    write_number(out, "bytes_freed", r->bytes_freed);
    write_number(out, "bytes_released", r->bytes_released);
    write_number(out, "bytes_escaped", r->bytes_escaped);
    write_number(out, "slabs_returned", r->slabs_returned);
    write_number(out, "bytes_returned", r->bytes_returned);
    write_number(out, "slabs_deferred", r->slabs_deferred);
    write_number(out, "bytes_deferred", r->bytes_deferred);
    write_number(out, "rss_before", r->rss_before);
    write_number(out, "rss_after", r->rss_after);
    fprintf(out, "\"close_ns\":%" PRIu64 "},", r->close_ns);
}

static void write_label(FILE* out, const SlabLabelStats* l) {
    fprintf(out, "{\"label\":");
    write_text(out, l->label);
    fputc(',', out);
    write_number(out, "phases", l->phases_opened);
    write_number(out, "objects", l->objects_allocated);
    write_number(out, "bytes", l->bytes_allocated);
    write_number(out, "objects_escaped", l->objects_escaped);
    write_number(out, "live_objects", l->live_objects);
    write_number(out, "committed_bytes", l->committed_bytes);
    write_number(out, "peak_bytes", l->peak_bytes);
    write_number(out, "slow_path_hits", l->slow_path_hits);
    write_number(out, "samples", l->alloc_samples);
    write_number(out, "sampled_cpu_ns", l->alloc_cpu_ns_sum);
    fprintf(out, "\"sampled_wait_ns\":%" PRIu64 "}", l->alloc_wait_ns_sum);
}

/* What the allocator says, and by what it differs from the figures of the routes. */
static void write_accounts(FILE* out, const RunFigures* run) {
    const Accounts* a = &run->accounts;
    fprintf(out, "\"accounts_differing\":%u,", run->accounts_differing);
    write_number(out, "accounts_compared", run->accounts_compared);
    write_number(out, "sampling_period", a->sampling_period);
    fprintf(out, "\"labels\":[");
    for (size_t i = 0; i < a->label_count; i++) {
        if (i) fputc(',', out);
        write_label(out, &a->labels[i]);
    }
    fprintf(out, "],\"doctor\":");
    write_text(out, a->doctor);
    fputc(',', out);
    if (!run->leak_label[0]) return;
    fprintf(out, "\"leak\":{\"label\":");
    write_text(out, run->leak_label);
    fprintf(out, ",\"named_seconds\":%.3f},", run->leak_named_seconds);
}

void result_write(FILE* out, const RunFigures* run) {
    fprintf(out, "{\"backend\":\"%s\",\"interrupted\":%s,", backend_name(run->backend),
            run->interrupted ? "true" : "false");
    write_number(out, "requests", run->requests);
    write_number(out, "done", run->done);
    write_number(out, "threads", run->threads);
    fprintf(out, "\"seconds\":%.6f,\"cpu_seconds\":%.6f,\"requests_per_second\":%.1f,", run->seconds, run->cpu_seconds,
            run->seconds > 0 ? (double)run->done / run->seconds : 0.0);
    write_number(out, "page_faults", run->page_faults);
    write_number(out, "live_bytes", run->live_bytes);
    write_number(out, "refusals", run->refusals);
    write_latency(out, "latency_ns", &run->all);
    fprintf(out, ",\"rss\":{");
    write_number(out, "start", run->rss.start);
    write_number(out, "loaded", run->rss.loaded);
    write_number(out, "peak", run->rss.peak);
    fprintf(out, "\"end\":%" PRIu64 "},\"sessions\":{", run->rss.end);
    write_number(out, "kept", run->sessions.kept);
    write_number(out, "hits", run->sessions.hits);
    write_number(out, "misses", run->sessions.misses);
    fprintf(out, "\"evictions\":%" PRIu64 "},", run->sessions.evictions);
    if (run->accounts.doctor) write_accounts(out, run);
    if (run->has_receipt) write_receipt(out, run);
    fprintf(out, "\"routes\":[");
    for (int r = 0; r < ROUTE_COUNT; r++) {
        if (r) fprintf(out, ",");
        write_route(out, run, r);
    }
    fprintf(out, "]}\n");
}
