/*
 * request_bench - latency of requests and resident memory under four policies of closing and two of recycling.
 *
 * Every arm (policy x recycling) runs in a child process with an allocator of its own, so that no arm finds the memory of
 * another; its result comes back through shared memory. See request_load.h for what a request does, request_http.h for
 * --http.
 */
#include <sys/wait.h>

#include "request_http.h"

static uint64_t requests, threads;
static const char *policy, *recycling;
static bool http;

struct arm_result {
    struct latency latency;
    uint64_t before_kb, after_kb, closed_kb, peak_kb, committed_kb, phases_closed, refusals, ns, finished;
};

static struct latency* latencies; /* one a thread */

static void* direct_worker(void* arg) {
    struct latency* l = arg;
    uint64_t r;
    while (load_take(&r)) {
        uint64_t t = ticks();
        (void)load_serve(r);
        latency_add(l, t, ticks());
    }
    return NULL;
}

static void run_direct(void) {
    pthread_t ids[MOST_THREADS];
    for (uint64_t i = 0; i < threads; i++) ids[i] = suite_thread(direct_worker, &latencies[i]);
    for (uint64_t i = 0; i < threads; i++) pthread_join(ids[i], NULL);
}

/* In the child. */
static void run_arm(unsigned which, bool deferred, struct arm_result* out) {
    if (suite.tslab && !(suite.a = slab_allocator_create())) suite_out_of_memory(0);
    load_begin(which, deferred);
    out->before_kb = rss_now().total;
    uint64_t start = now_ns();
    if (http) http_run(threads, latencies);
    else run_direct();
    out->ns = now_ns() - start;
    out->after_kb = rss_now().total;
    out->committed_kb = heap_committed_kb();
    out->peak_kb = rss_now().peak;
    out->finished = load.finished;
    out->phases_closed = load.phases_closed;
    load_free_held();
    heap_next_phase();
    out->closed_kb = rss_now().total;
    out->refusals = suite.tslab ? suite_refusals() : 0;
    for (uint64_t i = 0; i < threads; i++) latency_merge(&out->latency, &latencies[i]);
}

static void report_arm(unsigned which, bool deferred, const struct arm_result* r) {
    char op[64];
    report_open(NULL);
    report_word("policy", policy_names[which]);
    report_word("recycling", deferred ? "deferred" : "continuous");
    report_count("requests", r->finished);
    report_number("requests_per_second", r->ns ? (double)r->finished * 1e9 / (double)r->ns : NAN);
    report_number("mean_us", latency_avg(&r->latency) / 1000);
    report_number("p50_us", latency_at(&r->latency, 50) / 1000);
    report_number("p95_us", latency_at(&r->latency, 95) / 1000);
    report_number("p99_us", latency_at(&r->latency, 99) / 1000);
    report_number("max_us", latency_max(&r->latency) / 1000);
    report_count("phases_closed", r->phases_closed);
    report_count("refusals", r->refusals);
    report_count("rss_before_kb", r->before_kb);
    report_count("rss_peak_kb", r->peak_kb);
    report_count("rss_after_kb", r->after_kb);
    report_count("rss_closed_kb", r->closed_kb);
    report_count("committed_kb", r->committed_kb);
    report_histogram("histogram", &r->latency);
    report_close();
    (void)snprintf(op, sizeof op, "%s:%s:%s", http ? "http" : "request", policy_names[which], deferred ? "deferred" : "continuous");
    csv_latency(threads, 0, op, &r->latency);
}

/* The exit status of the child. */
static int fork_arm(unsigned which, bool deferred, struct arm_result* out) {
    int status = 0;
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) return 3;
    if (child == 0) {
        run_arm(which, deferred, out);
        _exit(0);
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_all(struct arm_result* shared) {
    report_list("arms");
    for (unsigned which = 0; which < POLICIES; which++) {
        for (int deferred = 0; deferred < 2; deferred++) {
            bool wanted = (!strcmp(policy, "all") || !strcmp(policy, policy_names[which])) &&
                          (!strcmp(recycling, "both") || !strcmp(recycling, deferred ? "deferred" : "continuous"));
            if (!wanted || suite_stopped()) continue;
            memset(shared, 0, sizeof *shared);
            int status = fork_arm(which, deferred, shared);
            if (status != 0 && !suite_stopped()) {
                fprintf(stderr, "%s: %s, %s: status %d\n", suite.program, policy_names[which], deferred ? "deferred" : "continuous", status);
                return status;
            }
            report_arm(which, deferred, shared);
            suite.failed |= shared->refusals != 0;
        }
    }
    report_close();
    return 0;
}

int main(int argc, char** argv) {
    struct flag args[] = {
        {.name = "--requests", .kind = FLAG_COUNT, .to = &requests, .least = 1, .most = MOST_REQUESTS, .preset = 1200, .quick = 400, .help = "requests of an arm"},
        {.name = "--threads", .kind = FLAG_COUNT, .to = &threads, .least = 1, .most = MOST_THREADS, .preset = 4, .help = "threads, or connections with --http"},
        {.name = "--policy", .kind = FLAG_WORD, .to = &policy, .words = FLAG_WORDS("all", "never", "per-request", "batch-100", "batch-1000"), .help = "when phases are closed"},
        {.name = "--recycling", .kind = FLAG_WORD, .to = &recycling, .words = FLAG_WORDS("both", "continuous", "deferred"), .help = "when freed memory can be used again"},
        {.name = "--http", .kind = FLAG_SWITCH, .to = &http, .help = "through HTTP/1.1 on 127.0.0.1"},
        {.name = NULL},
    };
    suite_start(argc, argv, "Serves requests of 225 objects each and shows latency and resident memory.", args);
    load_prepare(requests);
    latencies = harness_memory(threads * sizeof *latencies);
    struct arm_result* shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) suite_out_of_memory(sizeof *shared);
    csv_header(CSV_LATENCY);
    int status = run_all(shared);
    return status != 0 ? status : suite_finish();
}
