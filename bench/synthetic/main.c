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

#include "common/flags.h"
#include "synthetic.h"

#define SECOND 1000000000ull
#define NEVER UINT64_MAX
#define LOOK_NS (SECOND / 4) /* for a leak */

static struct bench bench;

struct timetable { /* when each is due; NEVER: not */
    uint64_t end, rss, stats, progress, leak;
};

/* ---- what is done now and then ---- */

static void sample_rss(struct bench* b) {
    uint64_t now = resident_bytes();
    b->seen.rss_samples++;
    if (now > b->seen.rss_peak) b->seen.rss_peak = now;
}

static void write_stats(struct bench* b) {
    bool ok = stats_write(&b->run, b->plan.stats_file);
    if (!ok && b->seen.stats_failed == 0)
        fprintf(stderr, "%s: %s: %s\n", program_name, b->plan.stats_file, strerror(errno));
    b->seen.stats_written += ok;
    b->seen.stats_failed += !ok;
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
static void look_for_leak(struct bench* b) {
    EpochLeakReport found;
    if (slab_detect_epoch_leaks(b->run.a, b->plan.leak_threshold_s, 1, &found) != 0 && found.top_count != 0) {
        b->seen.leak_named_s = (double)(now_ns() - b->run.begin_ns) / 1e9;
        (void)snprintf(b->seen.leak_named, sizeof b->seen.leak_named, "%s", found.candidates[0].label);
    }
    free(found.candidates);
}

static void do_what_is_due(struct bench* b, struct timetable* t, uint64_t now) {
    if (now >= t->rss) {
        sample_rss(b);
        t->rss = now + b->plan.rss_sample_ms * (SECOND / 1000);
    }
    if (now >= t->stats) {
        write_stats(b);
        t->stats = now + (uint64_t)(b->plan.stats_s * 1e9);
    }
    if (now >= t->progress) {
        print_progress(&b->run);
        t->progress = now + (uint64_t)(b->plan.progress_s * 1e9);
    }
    if (now >= t->leak) {
        look_for_leak(b);
        t->leak = b->seen.leak_named_s < 0 ? now + LOOK_NS : NEVER;
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

static void watch(struct bench* b, const sigset_t* signals) {
    const struct plan* p = &b->plan;
    struct run* r = &b->run;
    struct timetable t = {NEVER, NEVER, NEVER, NEVER, NEVER};
    if (p->duration_s > 0) t.end = r->begin_ns + (uint64_t)(p->duration_s * 1e9);
    if (p->rss_sample_ms != 0) t.rss = r->begin_ns;
    if (p->stats_file != NULL && p->stats_s > 0) t.stats = r->begin_ns + (uint64_t)(p->stats_s * 1e9);
    if (p->progress_s > 0) t.progress = r->begin_ns + (uint64_t)(p->progress_s * 1e9);
    if (r->a != NULL && r->s.free_policy == FREE_LEAK) t.leak = r->begin_ns + p->leak_threshold_s * SECOND + LOOK_NS;
    for (uint64_t now = now_ns(); now < t.end && atomic_load(&r->running) != 0; now = now_ns()) {
        do_what_is_due(b, &t, now);
        uint64_t due = earliest(&t), ns = due > (now = now_ns()) ? due - now : 0;
        if (ns > 3600 * SECOND) ns = 3600 * SECOND;
        int signal = sigtimedwait(signals, NULL, &(struct timespec){(time_t)(ns / SECOND), (long)(ns % SECOND)});
        if (signal == SIGUSR1) run_end_phase(r);
        if (signal == SIGINT || signal == SIGTERM) {
            b->seen.interrupted = true;
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
    if (r->a == NULL) fprintf(stderr, "%s: no allocator: %s\n", program_name, slab_last_error());
    return r->a != NULL;
}

static bool start(struct bench* b) {
    b->seen.leak_named_s = -1;
    if (!run_prepare(&b->run) || !make_allocator(&b->run)) return false;
    b->seen.rss_start = b->seen.rss_peak = resident_bytes();
    b->seen.rss_samples = 1;
    return run_start(&b->run);
}

static void finish(struct bench* b) {
    run_stop(&b->run);
    sample_rss(b);
    b->seen.rss_end = resident_bytes();
    if (b->seen.rss_end > b->seen.rss_peak) b->seen.rss_peak = b->seen.rss_end;
    if (b->plan.stats_file != NULL) write_stats(b);
}

/* ---- what came out ---- */

static bool to_file(void* ctx, const char* bytes, size_t n) { return fwrite(bytes, 1, n, ctx) == n; }

/* The exit status. */
static int tell(struct bench* b, struct out_file* json) {
    struct run* r = &b->run;
    struct totals t;
    unsigned complaints = outcome_check(r, &t);
    int status = 0;
    if (b->plan.doctor && r->a != NULL) (void)slab_doctor_ex(r->a, b->plan.leak_threshold_s, to_file, stderr);
    struct last_close last = outcome_close(r, &complaints);
    report_text(b, &t, &last, stdout);
    if (json->f != NULL) {
        bool ok = report_json(b, &t, &last, complaints, json->f);
        if (!out_close(json, ok)) {
            fprintf(stderr, "%s: %s: %s\n", program_name, json->name, strerror(errno));
            status = 1;
        }
    }
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "%s: standard output: %s\n", program_name, strerror(errno != 0 ? errno : EIO));
        status = 1;
    }
    return complaints != 0 || b->seen.stats_failed != 0 ? 1 : status;
}

/* Files that cannot be written are told of before the run, not after it. */
static bool open_files(struct bench* b, struct out_file* json) {
    struct out_file stats;
    if (b->plan.stats_file != NULL && (!out_open(&stats, b->plan.stats_file) || !out_close(&stats, false))) {
        fprintf(stderr, "%s: %s: %s\n", program_name, b->plan.stats_file, strerror(errno));
        return false;
    }
    if (b->plan.json_file != NULL && !out_open(json, b->plan.json_file)) {
        fprintf(stderr, "%s: %s: %s\n", program_name, b->plan.json_file, strerror(errno));
        return false;
    }
    return true;
}

int main(int argc, char** argv) {
    struct out_file json = {0};
    sigset_t signals;
    int status = settings_read(&bench, argc, argv);
    if (status >= 0) return status;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGUSR2); /* from the last worker */
    (void)pthread_sigmask(SIG_BLOCK, &signals, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    if (!open_files(&bench, &json)) return 1;
    if (!start(&bench)) {
        if (json.f != NULL) (void)out_close(&json, false);
        return 1;
    }
    watch(&bench, &signals);
    finish(&bench);
    status = tell(&bench, &json);
    for (unsigned n = 0; bench.run.a == NULL && n < bench.run.s.threads; n++) worker_forgive(&bench.run.workers[n]);
    slab_allocator_free(bench.run.a);
    return status;
}
