/*
 * run.c - one run: loads the data, lets the workers serve, watches, measures. See run.h.
 *
 * Threads: the workers take request numbers from one counter; the main thread samples the resident
 * size every 5 ms and tells stderr how far it is every 2 s. When the last request has ended the
 * workers stay alive until the final size is read and the allocator has given account of the run: a
 * server that idles, not one that has gone.
 *
 * What the harness itself needs (latencies, checksums) is mapped and touched before the first
 * sample, so that it is the same constant part of every resident size.
 */
#define _GNU_SOURCE
#include "run.h"

#include "serve.h"
#include "traffic.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SAMPLE_NS 5000000L
#define PROGRESS_NS 2000000000u
#define LOOK_NS 500000000u /* for a leak */

atomic_bool run_stop;

typedef struct Run Run;

typedef struct Worker {
    Run* run;
    pthread_t thread;
    uint64_t finished_ns;
    RouteFigures figures[ROUTE_COUNT];
    bool has_receipt;
    EpochReceipt receipt;
} __attribute__((aligned(128))) Worker;

struct Run {
    const Options* options;
    Server server;
    Traffic traffic;
    uint32_t* latency; /* by request number; 0 = not served */
    uint64_t* sums;
    uint64_t receipt_request;
    uint64_t started_ns;
    int statm;
    RunFigures result;
    Worker* workers;
    bool json_failed;
    pthread_barrier_t leave;
    _Alignas(128) atomic_uint_fast64_t next;
    atomic_uint finished;
};

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t resident(Run* run) {
    char text[128];
    ssize_t n = pread(run->statm, text, sizeof text - 1, 0);
    unsigned long long pages = 0;
    text[n > 0 ? n : 0] = '\0';
    if (sscanf(text, "%*u %llu", &pages) != 1) return 0;
    uint64_t bytes = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
    if (bytes > run->result.rss.peak) run->result.rss.peak = bytes;
    return bytes;
}

static void most(uint64_t* slot, uint64_t value) {
    if (value > *slot) *slot = value;
}

static void account(RouteFigures* f, const Answer* answer) {
    f->requests++;
    f->answer_bytes += answer->len;
    f->failed += answer->status >= 500;
    f->leaked += answer->leaked;
    if (!answer->has_receipt) return;
    const EpochReceipt* r = &answer->receipt;
    uint64_t held = r->bytes_returned + r->bytes_deferred;
    f->phases++;
    f->objects += r->objects_allocated;
    f->bytes += r->bytes_allocated;
    f->objects_freed += r->objects_freed;
    f->bytes_freed += r->bytes_freed;
    f->objects_released += r->objects_released;
    f->bytes_released += r->bytes_released;
    f->escaped += r->objects_escaped;
    f->bytes_escaped += r->bytes_escaped;
    f->held_bytes += held;
    f->close_ns += r->close_ns;
    f->deferred_slabs += r->slabs_deferred;
    most(&f->max_objects, r->objects_allocated);
    most(&f->max_bytes, r->bytes_allocated);
    most(&f->max_held_bytes, held);
}

static void* work(void* arg) {
    Worker* worker = arg;
    Run* run = worker->run;
    char text[TRAFFIC_TEXT_MAX];
    Answer answer;
    while (!atomic_load_explicit(&run_stop, memory_order_relaxed)) {
        uint64_t index = atomic_fetch_add_explicit(&run->next, 1, memory_order_relaxed);
        if (index >= run->options->requests) break;
        size_t len = traffic_request(&run->traffic, index, text);
        uint64_t begin = now_ns();
        serve(&run->server, text, len, &answer);
        uint64_t took = now_ns() - begin;
        run->latency[index] = took > UINT32_MAX ? UINT32_MAX : took ? (uint32_t)took : 1;
        run->sums[index] = answer.checksum;
        account(&worker->figures[answer.route], &answer);
        if (index == run->receipt_request) {
            worker->has_receipt = answer.has_receipt;
            worker->receipt = answer.receipt;
        }
    }
    worker->finished_ns = now_ns();
    atomic_fetch_add(&run->finished, 1);
    pthread_barrier_wait(&run->leave);
    return NULL;
}

static void progress(Run* run, uint64_t rss, const char* word) {
    uint64_t all = run->options->requests;
    uint64_t taken = atomic_load(&run->next);
    double seconds = (double)(now_ns() - run->started_ns) / 1e9;
    if (taken > all) taken = all;
    fprintf(stderr, "  %s: %s%" PRIu64 " of %" PRIu64 " requests (%.0f %%), %.0f/s, %.1f MB resident\n",
            backend_name(run->result.backend), word, taken, all, 100.0 * (double)taken / (double)all,
            seconds > 0 ? (double)taken / seconds : 0.0, (double)rss / 1e6);
}

/* Whether the library names a leak while requests are served, as a monitor beside a server would ask. */
static void look_for_leak(Run* run) {
    RunFigures* result = &run->result;
    if (!run->options->leak || result->leak_label[0] || !accounts_find_leak(result->leak_label)) return;
    result->leak_named_seconds = (double)(now_ns() - run->started_ns) / 1e9;
    fprintf(stderr, "  %s: after %.1f s the library names a leak: %s\n", backend_name(result->backend),
            result->leak_named_seconds, result->leak_label);
}

static void watch(Run* run) {
    const struct timespec pause = {0, SAMPLE_NS};
    uint64_t next_word = run->started_ns + PROGRESS_NS, next_look = run->started_ns + LOOK_NS;
    while (atomic_load(&run->finished) < run->options->threads) {
        nanosleep(&pause, NULL);
        uint64_t rss = resident(run);
        if (now_ns() >= next_look) {
            look_for_leak(run);
            next_look += LOOK_NS;
        }
        if (now_ns() < next_word) continue;
        progress(run, rss, "");
        next_word += PROGRESS_NS;
    }
}

/* The statistics as JSON: to the parent's file, or to one that the user has named. */
static bool write_json(const Options* o) {
    int fd = (int)o->snapshot_fd;
    if (!fd && !o->json_file) return true;
    if (!fd) fd = open(o->json_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    bool ok = fd >= 0 && accounts_write_json(fd);
    if (!ok) fprintf(stderr, "tslab_demo: cannot write %s: %s\n", o->json_file, strerror(errno));
    if (!o->snapshot_fd && fd >= 0) close(fd);
    return ok || (o->snapshot_fd && ftruncate(fd, 0) == 0); /* the parent has a run without statistics, not none */
}

/* What the allocator says of the run. False when the run has to fail for it. */
static bool take_accounts(Run* run) {
    if (!accounts_take(&run->result.accounts)) {
        fprintf(stderr, "tslab_demo: no memory for the allocator's accounts\n");
        return false;
    }
    run->json_failed = backend_slab() && !write_json(run->options);
    return true;
}

/* Starts the workers, waits for the last request, and measures while everything is still there. */
static bool serve_all(Run* run) {
    unsigned threads = (unsigned)run->options->threads;
    struct rusage before, after;
    run->workers = aligned_alloc(128, threads * sizeof(Worker));
    if (!run->workers || pthread_barrier_init(&run->leave, NULL, threads + 1) != 0) return false;
    memset(run->workers, 0, threads * sizeof(Worker));
    getrusage(RUSAGE_SELF, &before);
    run->started_ns = now_ns();
    for (unsigned t = 0; t < threads; t++) {
        run->workers[t].run = run;
        if (pthread_create(&run->workers[t].thread, NULL, work, &run->workers[t]) != 0) {
            fprintf(stderr, "tslab_demo: cannot start thread %u of %u; try fewer --threads\n", t + 1, threads);
            _exit(1);
        }
    }
    watch(run);
    getrusage(RUSAGE_SELF, &after);
    RunFigures* result = &run->result;
    result->rss.end = resident(run);
    if (!run->options->sums_fd) progress(run, result->rss.end, "served "); /* else the comparison follows */
    result->live_bytes = backend_live_bytes();
    result->sessions = sessions_count(&run->server.sessions);
    result->cpu_seconds =
        (double)(after.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_utime.tv_sec - before.ru_stime.tv_sec) +
        (double)(after.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_utime.tv_usec - before.ru_stime.tv_usec) /
            1e6;
    result->page_faults = (uint64_t)(after.ru_minflt - before.ru_minflt);
    bool ok = take_accounts(run);
    pthread_barrier_wait(&run->leave);
    for (unsigned t = 0; t < threads; t++) pthread_join(run->workers[t].thread, NULL);
    pthread_barrier_destroy(&run->leave);
    return ok;
}

static int compare_latency(const void* left, const void* right) {
    uint32_t a = *(const uint32_t*)left, b = *(const uint32_t*)right;
    return (a > b) - (a < b);
}

/* Sorts and reads off; nearest rank. */
static Latency summarize(uint32_t* values, size_t n) {
    Latency l = {0, 0, 0, 0, 0};
    if (!n) return l;
    qsort(values, n, sizeof *values, compare_latency);
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += values[i];
    l.mean_ns = sum / (double)n;
    l.p50_ns = values[(n * 500 + 999) / 1000 - 1];
    l.p99_ns = values[(n * 990 + 999) / 1000 - 1];
    l.p999_ns = values[(n * 999 + 999) / 1000 - 1];
    l.max_ns = values[n - 1];
    return l;
}

static void add_figures(RouteFigures* to, const RouteFigures* from) {
    to->requests += from->requests;
    to->failed += from->failed;
    to->answer_bytes += from->answer_bytes;
    to->leaked += from->leaked;
    to->phases += from->phases;
    to->objects += from->objects;
    to->bytes += from->bytes;
    to->objects_freed += from->objects_freed;
    to->bytes_freed += from->bytes_freed;
    to->objects_released += from->objects_released;
    to->bytes_released += from->bytes_released;
    to->escaped += from->escaped;
    to->bytes_escaped += from->bytes_escaped;
    to->held_bytes += from->held_bytes;
    to->close_ns += from->close_ns;
    to->deferred_slabs += from->deferred_slabs;
    most(&to->max_objects, from->max_objects);
    most(&to->max_bytes, from->max_bytes);
    most(&to->max_held_bytes, from->max_held_bytes);
}

static bool sum_up(Run* run) {
    RunFigures* result = &run->result;
    uint64_t requests = run->options->requests, last = run->started_ns;
    for (unsigned t = 0; t < run->options->threads; t++) {
        const Worker* worker = &run->workers[t];
        most(&last, worker->finished_ns);
        for (int r = 0; r < ROUTE_COUNT; r++) add_figures(&result->figures[r], &worker->figures[r]);
        if (worker->has_receipt) {
            result->has_receipt = true;
            result->receipt = worker->receipt;
        }
    }
    result->accounts_differing = accounts_differ(&result->accounts, result->figures, &result->accounts_compared);
    result->seconds = (double)(last - run->started_ns) / 1e9;
    uint32_t* values = malloc(requests * sizeof *values);
    if (!values) return false;
    for (int r = 0; r <= ROUTE_COUNT; r++) { /* the last turn takes all routes together */
        size_t n = 0;
        for (uint64_t i = 0; i < requests; i++)
            if (run->latency[i] && (r == ROUTE_COUNT || traffic_route(&run->traffic, i) == (RouteId)r))
                values[n++] = run->latency[i];
        *(r == ROUTE_COUNT ? &result->all : &result->route[r]) = summarize(values, n);
        result->done = n;
    }
    free(values);
    return true;
}

static void* map_touched(uint64_t bytes, int fd) {
    if (fd > 0 && ftruncate(fd, (off_t)bytes) != 0) return NULL;
    int flags = fd > 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
    void* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd > 0 ? fd : -1, 0);
    if (p == MAP_FAILED) return NULL;
    memset(p, 0, bytes);
    return p;
}

static bool prepare(Run* run) {
    const Options* o = run->options;
    run->statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    run->latency = map_touched(o->requests * sizeof *run->latency, -1);
    run->sums = map_touched(o->requests * sizeof *run->sums, (int)o->sums_fd);
    if (!run->latency || !run->sums) {
        fprintf(stderr, "tslab_demo: no memory for the figures of %" PRIu64 " requests\n", o->requests);
        return false;
    }
    if (!backend_start(run->result.backend)) return false;
    run->result.rss.start = resident(run);
    if (!server_compile(&run->server, o->handlers_dir) || !data_load(&run->server.data, o->data_dir)) return false;
    if (!sessions_open(&run->server.sessions, o->sessions)) {
        fprintf(stderr, "tslab_demo: no memory for %" PRIu64 " sessions\n", o->sessions);
        return false;
    }
    run->result.rss.loaded = resident(run);
    run->traffic = (Traffic){o->seed, &run->server.data, 4 * o->sessions};
    run->receipt_request = o->requests / 2; /* of the first search in the second half */
    while (run->receipt_request + 1 < o->requests && traffic_route(&run->traffic, run->receipt_request) != ROUTE_SEARCH)
        run->receipt_request++;
    return true;
}

static void on_signal(int number) {
    (void)number;
    atomic_store(&run_stop, true);
}

int run_backend(const Options* o) {
    static Run run; /* large, and one to a process */
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    run.options = o;
    run.result.backend = strcmp(o->backend, "tslab") ? BACKEND_GLIBC : BACKEND_TSLAB;
    run.result.requests = o->requests;
    run.result.threads = o->threads;
    run.server.leak.on = o->leak;
    if (!prepare(&run) || !serve_all(&run) || !sum_up(&run)) return 1;
    sessions_close(&run.server.sessions);
    data_unload(&run.server.data);
    run.result.refusals = backend_refusals();
    backend_stop();
    server_forget_scripts(&run.server);
    free(run.workers);
    run.result.interrupted = atomic_load(&run_stop);
    run.result.receipt_request = run.receipt_request;
    FILE* out = fdopen((int)o->result_fd, "w");
    if (!out) return 1;
    result_write(out, &run.result);
    accounts_drop(&run.result.accounts);
    munmap(run.latency, o->requests * sizeof *run.latency);
    munmap(run.sums, o->requests * sizeof *run.sums);
    close(run.statm);
    return fclose(out) == 0 && !run.json_failed ? 0 : 1;
}
