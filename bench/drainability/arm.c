/*
 * arm.c - one load, run and measured.
 *
 * Three streams of random numbers with seeds of their own decide sizes, which sessions are replaced, and how they are
 * routed; each is drawn from equally often whatever p is. So arms with the same seed do the same work, and the sessions
 * routed wrongly at one p are among those at a larger p.
 *
 * Epoch e ends with epoch_advance; then epoch e - lag is closed. At most SAMPLES epochs, evenly spread, are measured:
 * the slabs of an epoch as it ends, what its close leaves, and the whole allocator after that. Epochs whose boundary
 * lies behind the end of the arm are never closed.
 *
 * Defects: a close that leaves more slabs than objects live in the epoch, or slabs of another class than the sessions';
 * a receipt that does not balance; closed epochs that hold more slabs than there are sessions; a refused free.
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <epoch_domain.h>
#include <slab_stats.h>

#include "measure.h"
#include "drainability.h"

enum { SESSION_CLASS = 4, PHASES = 16384, MOST_SESSIONS = 8192, MOST_EPOCHS = 32768 };
enum { CLASSES = 64 }; /* no fewer than there are */

struct world {
    struct arm* arm;
    const struct load* load;
    SlabAllocator* a;
    epoch_domain_t* sessions;
    uint64_t sizes, draws, coin; /* states of the streams */
    void* session[MOST_SESSIONS];
    unsigned n_sessions;
    double due; /* replacements */
    uint64_t era[MOST_EPOCHS];
    unsigned end_slabs[MOST_EPOCHS], end_class_slabs[MOST_EPOCHS];
    uint64_t rss_start;
    unsigned stride; /* every so many epochs are measured */
    uint64_t close_slabs;
    SlabPhaseStats phase[PHASES];
};

static struct world world; /* in place and touched before resident sizes are read */

static void defect(struct arm* arm, const char* format, ...) __attribute__((format(printf, 2, 3)));

static void defect(struct arm* arm, const char* format, ...) {
    if (arm->defects++ != 0) return;
    va_list args;
    va_start(args, format);
    vsnprintf(arm->defect, sizeof arm->defect, format, args);
    va_end(args);
}

static void* or_die(void* p) {
    if (p) return p;
    fprintf(stderr, "tslab_drainability: out of memory\n");
    _exit(1);
}

/* ---- the load --------------------------------------------------------------------------- */

static void* take(struct world* w, size_t bytes) {
    char* p = or_die(w->a ? slab_malloc(w->a, bytes) : malloc(bytes));
    touch(p);
    touch(p + bytes - 1);
    return p;
}

static void give(struct world* w, void* p) {
    if (w->a)
        slab_free(w->a, p);
    else
        free(p);
}

static void* take_session(struct world* w) {
    double r = w->load->libc_coin ? rand() / (RAND_MAX + 1.0) : next_random(&w->coin) / 2147483648.0;
    if (!w->a || r < w->load->p) return take(w, SESSION_BYTES);
    char* p = or_die(epoch_domain_malloc(w->sessions, SESSION_BYTES));
    touch(p);
    touch(p + SESSION_BYTES - 1);
    return p;
}

static void add_session(struct world* w) {
    if (w->n_sessions < MOST_SESSIONS) w->session[w->n_sessions++] = take_session(w);
}

static void serve_request(struct world* w, unsigned number) {
    const struct load* l = w->load;
    void* object[REQUEST_OBJECTS];
    for (unsigned i = 0; i < REQUEST_OBJECTS; i++)
        object[i] =
            take(w, REQUEST_LEAST_BYTES + next_random(&w->sizes) % (REQUEST_MOST_BYTES - REQUEST_LEAST_BYTES + 1));
    for (w->due += l->replaced; w->due >= 1; w->due--) {
        unsigned i = next_random(&w->draws) % POOL;
        give(w, w->session[i]);
        w->session[i] = take_session(w);
    }
    for (unsigned n = l->endless * (number + 1) / l->batch - l->endless * number / l->batch; n > 0; n--) add_session(w);
    for (unsigned i = 0; i < REQUEST_OBJECTS; i++) give(w, object[i]);
}

/* ---- measuring -------------------------------------------------------------------------- */

static size_t read_phases(struct world* w) {
    size_t n = slab_stats_phases(w->a, w->phase, PHASES);
    if (n <= PHASES) return n;
    fprintf(stderr, "tslab_drainability: more than %d epochs hold memory\n", PHASES);
    _exit(1);
}

/* Slabs of the phase with this era now. */
static uint64_t slabs_of(struct world* w, uint64_t era) {
    size_t n = read_phases(w);
    for (size_t i = 0; i < n; i++)
        if (w->phase[i].epoch_era == era) return w->phase[i].slabs;
    return 0;
}

static unsigned class_slabs(struct world* w, EpochId epoch) {
    SlabEpochStats s;
    slab_stats_epoch(w->a, SESSION_CLASS, epoch, &s);
    return s.partial_slab_count + s.full_slab_count + s.reclaimable_slab_count;
}

static void measure_end(struct world* w, unsigned epoch) {
    EpochId id = epoch_current(w->a);
    w->end_slabs[epoch] = (unsigned)slabs_of(w, w->era[epoch]);
    w->end_class_slabs[epoch] = class_slabs(w, id);
}

static void check_receipt(struct world* w, const EpochReceipt* r) {
    if (r->objects_allocated != r->objects_freed + r->objects_released + r->objects_escaped)
        defect(w->arm, "era %llu: the receipt does not balance", (unsigned long long)r->epoch_era);
    if (r->slabs_deferred != 0) defect(w->arm, "era %llu: slabs deferred", (unsigned long long)r->epoch_era);
}

static void close_epoch(struct world* w, unsigned epoch, bool counted) {
    struct arm* arm = w->arm;
    EpochReceipt r;
    if (!epoch_close_era(w->a, w->era[epoch], EPOCH_DRAIN, &r)) {
        defect(arm, "epoch %u cannot be closed", epoch);
        return;
    }
    check_receipt(w, &r);
    arm->closes++;
    arm->drainable += r.objects_escaped == 0;
    arm->escaped += r.objects_escaped;
    arm->theory_drainable += theory_drains(w->load, epoch);
    w->close_slabs += r.slabs_returned;
    if (!counted) return;
    uint64_t left = slabs_of(w, w->era[epoch]);
    arm->counted++;
    arm->end_slabs += w->end_slabs[epoch];
    arm->left_slabs += left;
    arm->theory_left += theory_pinned(w->load, epoch, w->end_class_slabs[epoch]);
    if (left > r.objects_escaped)
        defect(arm, "epoch %u: %llu slabs left, %llu objects live", epoch, (unsigned long long)left,
               (unsigned long long)r.objects_escaped);
    if (left > 0 && epoch_era(w->a, r.epoch_id) == r.epoch_era && class_slabs(w, r.epoch_id) != left)
        defect(arm, "epoch %u: slabs without sessions left", epoch);
}

static void count_taken(struct world* w, struct sample* s) {
    for (unsigned i = 0; i < CLASSES; i++) {
        PerfCounters c;
        get_perf_counters(w->a, i, &c);
        s->reused_slabs += c.empty_slab_recycled;
        s->fresh_slabs += c.new_slab_count - c.empty_slab_recycled;
    }
}

/* What epochs up to the one with the era `last` hold. */
static void count_closed(struct world* w, struct sample* s, uint64_t last) {
    size_t n = read_phases(w);
    for (size_t i = 0; i < n; i++)
        if (w->phase[i].state == EPOCH_CLOSING && w->phase[i].epoch_era <= last) {
            s->closed_slabs += w->phase[i].slabs;
            s->closed_bytes += w->phase[i].committed_bytes;
        }
}

static void sample(struct world* w, unsigned epoch) {
    struct arm* arm = w->arm;
    if (arm->samples == SAMPLES) return;
    struct sample s = {.requests = (uint64_t)(epoch + 1) * w->load->batch};
    uint64_t rss = slab_rss_bytes();
    s.rss_bytes = rss > w->rss_start ? rss - w->rss_start : 0;
    s.closes = arm->closes;
    s.drainable = arm->drainable;
    s.close_slabs = w->close_slabs;
    if (w->a) {
        SlabGlobalStats g;
        slab_stats_global(w->a, &g);
        s.slabs = g.net_slabs;
        s.committed_bytes = g.committed_bytes;
        s.live_bytes = g.live_bytes;
        s.metadata_bytes = g.metadata_bytes;
        count_taken(w, &s);
        count_closed(w, &s, epoch >= w->load->lag ? w->era[epoch - w->load->lag] : 0);
        if (s.closed_slabs > arm->most_closed_slabs) arm->most_closed_slabs = s.closed_slabs;
        if (s.closed_slabs > w->n_sessions)
            defect(arm, "closed epochs hold %llu slabs for %u sessions", (unsigned long long)s.closed_slabs,
                   w->n_sessions);
    }
    arm->sample[arm->samples++] = s;
}

static void read_label(struct world* w) {
    static SlabLabelStats label[8];
    size_t n = slab_stats_labels(w->a, label, 8);
    for (size_t i = 0; i < n && i < 8; i++)
        if (strcmp(label[i].label, "requests") == 0) {
            w->arm->label_slabs = label[i].closed_slabs;
            w->arm->label_pinned = label[i].pinned_slabs;
            w->arm->label_drainability = label[i].drainability;
        }
}

static void check_refusals(struct world* w) {
    SlabRefusals r;
    slab_stats_refusals(w->a, &r);
    uint64_t n = r.double_free + r.stale_free + r.interior_pointer + r.foreign_pointer + r.closed_epoch + r.bad_epoch;
    if (n != 0) defect(w->arm, "%llu calls refused", (unsigned long long)n);
}

/* ---- the run ---------------------------------------------------------------------------- */

static void begin(struct world* w, struct arm* arm) {
    memset(w, 0, sizeof *w);
    memset(arm->sample, 0, sizeof arm->sample);
    w->arm = arm;
    w->load = &arm->load;
    w->stride = (arm->load.epochs + SAMPLES - 1) / SAMPLES;
    w->sizes = arm->load.seed * 3 + 1;
    w->draws = arm->load.seed * 3 + 2;
    w->coin = arm->load.seed * 3 + 3;
    for (unsigned i = 0; i < 8; i++) { /* neighbouring seeds drift apart */
        (void)next_random(&w->sizes);
        (void)next_random(&w->draws);
        (void)next_random(&w->coin);
    }
    srand((unsigned)arm->load.seed);
    memset(w->phase, 1, sizeof w->phase); /* not with the zero page */
    (void)slab_rss_bytes();               /* what reading it touches belongs to the start */
    w->rss_start = slab_rss_bytes();
    if (!arm->load.glibc) {
        /* By size class: what is measured, and the theory, are of slabs of one class. */
        const SlabOptions by_class = {.struct_size = sizeof by_class, .bump = 3};
        w->a = or_die(slab_allocator_create_with(&by_class));
        w->sessions = or_die(epoch_domain_create_labeled(w->a, "sessions"));
        slab_epoch_set_label(w->a, epoch_current(w->a), "requests");
    }
    for (unsigned i = 0; !arm->load.endless && i < POOL; i++) add_session(w);
}

static bool is_counted(const struct world* w, unsigned epoch) { return epoch % w->stride == w->stride - 1; }

/* What happens at the end of an epoch, its requests served. */
static void end_epoch(struct world* w, unsigned epoch) {
    bool counted = is_counted(w, epoch);
    if (w->a) {
        if (counted) measure_end(w, epoch);
        slab_epoch_set_label(w->a, epoch_advance_id(w->a), "requests");
        unsigned lag = w->load->lag;
        if (epoch >= lag) close_epoch(w, epoch - lag, is_counted(w, epoch - lag));
    }
    if (counted || epoch + 1 == w->load->epochs) sample(w, epoch);
}

void arm_run(struct arm* arm, const volatile sig_atomic_t* stop) {
    struct world* w = &world;
    const struct load* l = &arm->load;
    bool shown = isatty(2);
    arm->started = true;
    begin(w, arm);
    for (unsigned e = 0; e < l->epochs && e < MOST_EPOCHS && !*stop; e++) {
        if (w->a) w->era[e] = epoch_era(w->a, epoch_current(w->a));
        for (unsigned i = 0; i < l->batch; i++) serve_request(w, i);
        end_epoch(w, e);
        if (shown && is_counted(w, e))
            fprintf(stderr, "\r\033[K%s, p %g, %g replaced per request: epoch %u of %u", l->name, l->p, l->replaced,
                    e + 1, l->epochs);
    }
    arm->finished = !*stop;
    if (w->a) read_label(w);
    for (unsigned i = 0; i < w->n_sessions; i++) give(w, w->session[i]);
    if (w->a) {
        check_refusals(w);
        epoch_domain_destroy(w->sessions);
        slab_allocator_free(w->a);
    }
}
