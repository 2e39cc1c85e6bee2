/*
 * main.c - synthetic_bench: starts the workers, watches, and tells what came out.
 *
 * The main thread takes all signals and sleeps for the next one or for what is due next: a sample of the resident size,
 * the statistics file, a line of progress, a look for the leak, the end.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include <slab_diagnostics.h>
#include <slab_stats.h>

#include "synthetic.h"

#define SECOND 1000000000ull
#define NEVER UINT64_MAX
#define LOOK_NS (SECOND / 4) /* for a leak */

static struct run run;

struct timetable { /* when each is due; NEVER: not */
    uint64_t end, rss, stats, progress, leak;
};

/* ---- what is done now and then ---- */

static void sample_rss(struct run* r) {
    uint64_t now = resident_bytes();
    r->rss_samples++;
    if (now > r->rss_peak) r->rss_peak = now;
}

static void write_stats(struct run* r) {
    bool ok = stats_write(r, r->s.stats_file);
    if (!ok && r->stats_failed == 0) fprintf(stderr, "synthetic_bench: %s: %s\n", r->s.stats_file, strerror(errno));
    r->stats_written += ok;
    r->stats_failed += !ok;
}

static void print_progress(const struct run* r) {
    struct totals t = totals_now(r);
    double time = (double)(now_ns() - r->begin_ns) / 1e9;
    fprintf(stderr,
            "%5.0f s: %" PRIu64 " requests, %.0f per second; %" PRIu64 " objects allocated, %" PRIu64
            " leaked; RSS %.1f MiB\n",
            time, t.requests, (double)t.requests / time, t.allocated, t.leaked, (double)resident_bytes() / 1048576);
}

/* Remembers when the library first tells of a leak, and under which label most of it is. */
static void look_for_leak(struct run* r) {
    EpochLeakReport found;
    if (slab_detect_epoch_leaks(r->a, r->s.leak_threshold_s, 1, &found) != 0 && found.top_count != 0) {
        r->leak_named_s = (double)(now_ns() - r->begin_ns) / 1e9;
        (void)snprintf(r->leak_named, sizeof r->leak_named, "%s", found.candidates[0].label);
    }
    free(found.candidates);
}

static void do_what_is_due(struct run* r, struct timetable* t, uint64_t now) {
    if (now >= t->rss) {
        sample_rss(r);
        t->rss = now + r->s.rss_sample_ms * (SECOND / 1000);
    }
    if (now >= t->stats) {
        write_stats(r);
        t->stats = now + (uint64_t)(r->s.stats_s * 1e9);
    }
    if (now >= t->progress) {
        print_progress(r);
        t->progress = now + (uint64_t)(r->s.progress_s * 1e9);
    }
    if (now >= t->leak) {
        look_for_leak(r);
        t->leak = r->leak_named_s < 0 ? now + LOOK_NS : NEVER;
    }
}

static uint64_t earliest(const struct timetable* t) {
    uint64_t due = t->end;
    if (t->rss < due) due = t->rss;
    if (t->stats < due) due = t->stats;
    if (t->progress < due) due = t->progress;
    return t->leak < due ? t->leak : due;
}

/* ---- the run ---- */

static void watch(struct run* r, const sigset_t* signals) {
    const struct settings* s = &r->s;
    struct timetable t = {NEVER, NEVER, NEVER, NEVER, NEVER};
    if (s->duration_s > 0) t.end = r->begin_ns + (uint64_t)(s->duration_s * 1e9);
    if (s->rss_sample_ms != 0) t.rss = r->begin_ns;
    if (s->stats_file != NULL && s->stats_s > 0) t.stats = r->begin_ns + (uint64_t)(s->stats_s * 1e9);
    if (s->progress_s > 0) t.progress = r->begin_ns + (uint64_t)(s->progress_s * 1e9);
    if (r->a != NULL && s->free_policy == FREE_LEAK) t.leak = r->begin_ns + s->leak_threshold_s * SECOND + LOOK_NS;
    for (uint64_t now = now_ns(); now < t.end && atomic_load(&r->running) != 0; now = now_ns()) {
        do_what_is_due(r, &t, now);
        uint64_t due = earliest(&t), ns = due > (now = now_ns()) ? due - now : 0;
        if (ns > 3600 * SECOND) ns = 3600 * SECOND;
        int signal = sigtimedwait(signals, NULL, &(struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)});
        if (signal == SIGUSR1) {
            atomic_fetch_add(&r->phase_ends_wanted, 1);
            if (!has_own_phases(r)) ring_turn(r);
        }
        if (signal == SIGINT || signal == SIGTERM) {
            r->interrupted = true;
            sigset_t again; /* the next one kills; SIGUSR1 and SIGUSR2 go nowhere any more */
            sigemptyset(&again);
            sigaddset(&again, SIGINT);
            sigaddset(&again, SIGTERM);
            (void)pthread_sigmask(SIG_UNBLOCK, &again, NULL);
            break;
        }
    }
}

static bool make_allocator(struct run* r) {
    SlabOptions o = {.struct_size = sizeof o};
    if (r->s.use_malloc) return true;
    if (r->s.pattern->keep_nothing_warm) o.warm_bytes = UINT64_MAX;
    r->a = slab_allocator_create_with(&o);
    if (r->a == NULL) fprintf(stderr, "synthetic_bench: no allocator: %s\n", slab_last_error());
    return r->a != NULL;
}

static bool prepare(struct run* r) {
    pthread_mutex_init(&r->ring.lock, NULL);
    r->ring.random = r->s.seed + 1;
    r->leak_named_s = -1;
    r->controller = pthread_self();
    r->workers = map_memory(r->s.threads * sizeof *r->workers);
    bool ok = r->workers != NULL;
    for (unsigned n = 0; ok && n < r->s.threads; n++) ok = worker_prepare(&r->workers[n], r, n);
    if (!ok) fprintf(stderr, "synthetic_bench: no memory for the lists of objects\n");
    return ok && make_allocator(r);
}

static bool start(struct run* r) {
    atomic_store(&r->running, r->s.threads);
    pthread_barrier_init(&r->start, NULL, r->s.threads + 1);
    ring_begin(r);
    r->rss_start = r->rss_peak = resident_bytes();
    r->rss_samples = 1;
    for (unsigned n = 0; n < r->s.threads; n++) {
        int error = pthread_create(&r->workers[n].thread, NULL, worker_main, &r->workers[n]);
        if (error == 0) continue;
        fprintf(stderr, "synthetic_bench: thread %u of %u: %s\n", n + 1, r->s.threads, strerror(error));
        return false;
    }
    r->begin_ns = now_ns();
    pthread_barrier_wait(&r->start);
    return true;
}

static void finish(struct run* r) {
    atomic_store(&r->stop, true);
    for (unsigned n = 0; n < r->s.threads; n++) pthread_join(r->workers[n].thread, NULL);
    r->end_ns = now_ns();
    sample_rss(r);
    r->rss_end = resident_bytes();
    if (r->rss_end > r->rss_peak) r->rss_peak = r->rss_end;
    if (r->s.stats_file != NULL) write_stats(r);
}

/* ---- what came out ---- */

static bool to_file(void* ctx, const char* bytes, size_t n) { return fwrite(bytes, 1, n, ctx) == n; }

/* The exit status. */
static int tell(struct run* r, struct out_file* json) {
    struct totals t;
    unsigned complaints = outcome_check(r, &t);
    int status = 0;
    if (r->s.doctor && r->a != NULL) (void)slab_doctor_ex(r->a, r->s.leak_threshold_s, to_file, stderr);
    struct last_close last = outcome_close(r, &complaints);
    report_text(r, &t, &last, stdout);
    if (json->f != NULL) {
        bool ok = report_json(r, &t, &last, complaints, json->f);
        if (!out_close(json, ok)) {
            fprintf(stderr, "synthetic_bench: %s: %s\n", json->name, strerror(errno));
            status = 1;
        }
    }
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "synthetic_bench: standard output: %s\n", strerror(errno != 0 ? errno : EIO));
        status = 1;
    }
    return complaints != 0 || r->stats_failed != 0 ? 1 : status;
}

/* Files that cannot be written are told of before the run, not after it. */
static bool open_files(struct run* r, struct out_file* json) {
    struct out_file stats;
    if (r->s.stats_file != NULL && (!out_open(&stats, r->s.stats_file) || !out_close(&stats, false))) {
        fprintf(stderr, "synthetic_bench: %s: %s\n", r->s.stats_file, strerror(errno));
        return false;
    }
    if (r->s.json_file != NULL && !out_open(json, r->s.json_file)) {
        fprintf(stderr, "synthetic_bench: %s: %s\n", r->s.json_file, strerror(errno));
        return false;
    }
    return true;
}

int main(int argc, char** argv) {
    struct out_file json = {0};
    sigset_t signals;
    int status = settings_read(&run.s, argc, argv);
    if (status == 0 && (fflush(stdout) != 0 || ferror(stdout))) status = 1;
    if (status >= 0) return status;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2); /* from the last worker */
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    if (!open_files(&run, &json)) return 1;
    if (!prepare(&run) || !start(&run)) {
        if (json.f != NULL) (void)out_close(&json, false);
        return 1;
    }
    watch(&run, &signals);
    finish(&run);
    status = tell(&run, &json);
    for (unsigned n = 0; run.a == NULL && n < run.s.threads; n++) worker_forgive(&run.workers[n]);
    slab_allocator_free(run.a);
    return status;
}
