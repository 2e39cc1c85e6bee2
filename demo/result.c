/*
 * result.c - the figures of a run as one line of JSON; times in nanoseconds, sizes in bytes.
 */
#include "run.h"

#include "common/json.h"

/* A member that has the name of the field. */
#define COUNT(from, field) json_count(j, #field, (from)->field)

static void put_latency(struct json* j, const Latency* l) {
    json_object(j, "latency_ns");
    json_fixed(j, "mean", l->mean_ns, 0);
    json_count(j, "p50", l->p50_ns);
    json_count(j, "p99", l->p99_ns);
    json_count(j, "p999", l->p999_ns);
    json_count(j, "max", l->max_ns);
    json_close(j);
}

static void put_route(struct json* j, const RunFigures* run, int r) {
    const RouteFigures* f = &run->figures[r];
    json_object(j, NULL);
    json_text(j, "label", ROUTES[r].label);
    COUNT(f, requests), COUNT(f, failed), COUNT(f, answer_bytes), COUNT(f, leaked), COUNT(f, phases);
    COUNT(f, objects), COUNT(f, bytes), COUNT(f, objects_freed), COUNT(f, bytes_freed), COUNT(f, objects_released);
    COUNT(f, bytes_released);
    json_count(j, "objects_escaped", f->escaped);
    COUNT(f, bytes_escaped), COUNT(f, held_bytes), COUNT(f, deferred_slabs), COUNT(f, close_ns);
    COUNT(f, max_objects), COUNT(f, max_bytes), COUNT(f, max_held_bytes);
    put_latency(j, &run->route[r]);
    json_close(j);
}

static void put_receipt(struct json* j, const RunFigures* run) {
    const EpochReceipt* r = &run->receipt;
    json_object(j, "receipt");
    json_count(j, "request", run->receipt_request);
    COUNT(r, version), COUNT(r, epoch_id), COUNT(r, epoch_era);
    json_text(j, "label", r->label);
    COUNT(r, objects_allocated), COUNT(r, objects_freed), COUNT(r, objects_released), COUNT(r, objects_escaped);
    COUNT(r, bytes_allocated), COUNT(r, bytes_freed), COUNT(r, bytes_released), COUNT(r, bytes_escaped);
    COUNT(r, slabs_returned), COUNT(r, bytes_returned), COUNT(r, slabs_deferred), COUNT(r, bytes_deferred);
    COUNT(r, rss_before), COUNT(r, rss_after), COUNT(r, close_ns);
    json_close(j);
}

static void put_label(struct json* j, const SlabLabelStats* l) {
    json_object(j, NULL);
    json_text(j, "label", l->label);
    json_count(j, "phases", l->phases_opened);
    json_count(j, "objects", l->objects_allocated);
    json_count(j, "bytes", l->bytes_allocated);
    COUNT(l, objects_escaped), COUNT(l, live_objects), COUNT(l, committed_bytes), COUNT(l, peak_bytes);
    COUNT(l, slow_path_hits);
    json_count(j, "samples", l->alloc_samples);
    json_count(j, "sampled_cpu_ns", l->alloc_cpu_ns_sum);
    json_count(j, "sampled_wait_ns", l->alloc_wait_ns_sum);
    json_close(j);
}

/* What the allocator says, and by what it differs from the figures of the routes. */
static void put_accounts(struct json* j, const RunFigures* run) {
    const Accounts* a = &run->accounts;
    COUNT(run, accounts_differing), COUNT(run, accounts_compared), COUNT(a, sampling_period);
    json_array(j, "labels");
    for (size_t i = 0; i < a->label_count; i++) put_label(j, &a->labels[i]);
    json_close(j);
    json_text(j, "doctor", a->doctor);
    if (!run->leak_label[0]) return;
    json_object(j, "leak");
    json_text(j, "label", run->leak_label);
    json_fixed(j, "named_seconds", run->leak_named_seconds, 3);
    json_close(j);
}

static void put_memory(struct json* j, const RunFigures* run) {
    json_object(j, "rss");
    COUNT(&run->rss, start), COUNT(&run->rss, loaded), COUNT(&run->rss, peak), COUNT(&run->rss, end);
    json_close(j);
    json_object(j, "sessions");
    COUNT(&run->sessions, kept), COUNT(&run->sessions, hits), COUNT(&run->sessions, misses);
    COUNT(&run->sessions, evictions);
    json_close(j);
}

void result_write(FILE* out, const RunFigures* run) {
    struct json writer = {.write = json_file, .ctx = out, .tight = true}, *j = &writer;
    json_object(j, NULL);
    json_text(j, "backend", backend_name(run->backend));
    json_bool(j, "interrupted", run->interrupted);
    COUNT(run, requests), COUNT(run, done), COUNT(run, threads);
    json_fixed(j, "seconds", run->seconds, 6);
    json_fixed(j, "cpu_seconds", run->cpu_seconds, 6);
    json_fixed(j, "requests_per_second", run->seconds > 0 ? (double)run->done / run->seconds : 0.0, 1);
    COUNT(run, page_faults), COUNT(run, live_bytes), COUNT(run, refusals);
    put_latency(j, &run->all);
    put_memory(j, run);
    if (run->accounts.doctor) put_accounts(j, run);
    if (run->has_receipt) put_receipt(j, run);
    json_array(j, "routes");
    for (int r = 0; r < ROUTE_COUNT; r++) put_route(j, run, r);
    json_close(j);
    json_close(j);
    fputc('\n', out);
}
