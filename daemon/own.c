/*
 * own.c - an allocator in this process. Its load is a run of bench/load, the same that synthetic_bench measures;
 * without a pattern nothing is allocated, and the numbers are those of an allocator at rest.
 *
 * What the load did by its own count goes into the metrics beside the library's numbers, so that both can be compared
 * from outside.
 */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <slab_diagnostics.h>
#include <slab_stats.h>

#include "common/flags.h"
#include "load/load.h"
#include "measure.h"
#include "own.h"
#include "self.h"

static struct own {
    struct source source;
    const struct options* o;
    SlabAllocator* a;
    struct run run;
    bool loaded, running;
    _Atomic uint64_t served, moved_ns; /* requests when it was last looked, and since when they are as many */
} own;

/* Writes what the load did by its own count as metrics. [no other user of t] */
static void write_load(struct own* w, struct text* t) {
    self_family(t, "load_info", "gauge", "The pattern of the load is the label; the value is always 1.");
    text_format(t, "tslabd_load_info{pattern=\"%s\"} 1\n", w->source.name);
    struct totals sum = {0};
    if (w->loaded) sum = totals_now(&w->run);
    self_family(t, "load_requests_total", "counter", "Requests that the load has served.");
    text_format(t, "tslabd_load_requests_total %" PRIu64 "\n", sum.requests);
    const struct {
        const char* outcome;
        uint64_t count;
    } rows[] = {{"allocated", sum.allocated}, {"freed", sum.freed}, {"leaked", sum.leaked}, {"failed", sum.failed}};
    self_family(t, "load_objects_total", "counter", "Objects by outcome, as counted by the load.");
    for (size_t n = 0; n < sizeof rows / sizeof *rows; n++)
        text_format(t, "tslabd_load_objects_total{outcome=\"%s\"} %" PRIu64 "\n", rows[n].outcome, rows[n].count);
}

/* Writes the metrics of allocator and load. Returns false if the text has failed. [main thread] */
static bool own_metrics(void* self, struct text* t) {
    struct own* w = self;
    if (!slab_stats_prometheus(w->a, text_write, t)) return false;
    write_load(w, t);
    return !t->failed;
}

/* Writes the statistics as JSON. Returns false if the text has failed. [main thread] */
static bool own_stats(void* self, struct text* t) {
    return slab_stats_json(((struct own*)self)->a, text_write, t) && text_write(t, "\n", 1);
}

/* Writes the diagnosis. Returns false if the text has failed. [main thread] */
static bool own_doctor(void* self, struct text* t) {
    struct own* w = self;
    return slab_doctor_ex(w->a, w->o->leak_threshold_s, text_write, t);
}

void own_look(struct source* s) {
    struct own* w = s->self;
    uint64_t served = w->loaded ? totals_now(&w->run).requests : 0;
    if (served == atomic_load(&w->served)) return;
    atomic_store(&w->served, served);
    atomic_store(&w->moved_ns, now_ns());
}

/* Returns true if the load serves requests, or there is none; false, with a sentence in `why` of `size` bytes, if it
 * has stood still for stale_after_s. The numbers are taken when they are asked for, so they are old only where nothing
 * happens that should. [main thread] */
static bool own_moves(void* self, char* why, size_t size) {
    struct own* w = self;
    own_look(&w->source);
    double still_s = (double)(now_ns() - atomic_load(&w->moved_ns)) / 1e9;
    if (!w->loaded || w->o->stale_after_s == 0 || still_s < w->o->stale_after_s) return true;
    (void)snprintf(why, size, "the load is stuck: it has served no request for %.1f s", still_s);
    return false;
}

/* Returns true from when the load has started until it is stopped. [main thread] */
static bool own_ready(void* self) { return ((struct own*)self)->running; }

/* Makes the allocator. Returns false after a complaint. [main thread] */
static bool make_allocator(struct own* w) {
    SlabOptions o = {.struct_size = sizeof o,
                     .max_bytes = w->o->max_bytes,
                     .sampling_period = w->o->sampling_period,
                     .segment = 1,           /* for tslab web and its like */
                     .profile_bytes = 65536, /* which of its code holds what lives */
                     .warm_bytes = w->loaded && w->o->load.pattern->keep_nothing_warm ? UINT64_MAX : 0};
    w->a = slab_allocator_create_with(&o);
    if (w->a == NULL) fprintf(stderr, "%s: no allocator: %s\n", program_name, slab_last_error());
    return w->a != NULL;
}

struct source* own_begin(const struct options* o) {
    own.o = o;
    own.loaded = o->load.pattern != NULL;
    own.source = (struct source){.name = own.loaded ? o->load.pattern->name : "idle",
                                 .self = &own,
                                 .metrics = own_metrics,
                                 .stats = own_stats,
                                 .doctor = own_doctor,
                                 .ready = own_ready,
                                 .moves = own_moves};

    if (!make_allocator(&own)) return NULL;
    if (own.loaded) {
        own.run.s = o->load;
        own.run.a = own.a;
        if (!run_prepare(&own.run) || !run_start(&own.run)) return NULL;
    }

    atomic_store(&own.moved_ns, now_ns());
    own.running = true;
    return &own.source;
}

void own_end_phase(struct source* s) {
    struct own* w = s->self;
    if (w->loaded) run_end_phase(&w->run);
}

void own_end(struct source* s) {
    struct own* w = s->self;
    w->running = false;
    if (w->loaded) {
        run_stop(&w->run);
        for (unsigned n = 0; n < w->run.s.threads; n++) worker_free_live(&w->run.workers[n]);
    }
    slab_allocator_free(w->a);
}
