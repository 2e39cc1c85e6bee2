/*
 * sustained_phase_shifts - phases of shifting sizes for a long time: does anything creep?
 *
 *     sustained_phase_shifts CYCLES INTERVAL PINNED PRESSURE_MB STEP_MB
 *
 * A cycle is a phase of `--phase-kb` bytes; its sizes come from one of five bands, in turn. PINNED % of its objects live
 * on until the next cool-down, every INTERVAL cycles, or with --pin-cycles N for N cycles. At a cool-down the pinned are
 * freed, PRESSURE_MB of foreign memory are mapped in steps of STEP_MB, touched and unmapped, and resident memory is read,
 * split by kind. Sessions live through all of it and are replaced slowly, 2 % a cycle.
 *
 * With tslab a phase is an epoch, drained at its end. With --route isolated, sessions have a domain of their own, and what
 * is pinned to the next cool-down has one that is released there; with --pin-cycles it shares that of the sessions. With
 * --route mixed everything is allocated in the phase at hand. malloc knows no routes.
 *
 * Verdict, over at least 20 cool-downs, last against first: committed memory drifts less than 1 %, anonymous resident
 * memory less than 5 %. The harness's own memory is touched before the first cycle.
 */
#include "suite.h"

static uint64_t cycles, interval, pinned_pct, pressure_mb, step_mb, phase_kb, pin_cycles, sessions;
static const char* route;
static bool isolated;

enum { BANDS = 5, MOST_COOL_DOWNS = 1000, NEEDED_COOL_DOWNS = 20, SESSION_BYTES = 256 };
static const double most_committed_drift_pct = 1, most_anon_drift_pct = 5;
static const struct {
    size_t least, most;
} bands[BANDS] = {{64, 96}, {96, 192}, {192, 384}, {384, 512}, {512, 768}};

struct object {
    void* p;
    uint64_t number;
    uint32_t size, until; /* cycle at whose end it is freed */
};

struct cool_down {
    struct rss rss;
    uint64_t committed_kb, live_kb;
};

static struct {
    struct object *phase, *pinned, *session;
    uint64_t most_objects, most_pinned, n_pinned, number, random, live_bytes;
    epoch_domain_t *long_lived, *interval; /* with --route isolated */
    struct cool_down* cool;
    uint64_t n_cool;
} w;

/* domain NULL: where the phase at hand goes. */
static struct object make(size_t size, epoch_domain_t* domain, uint64_t until) {
    struct object o = {.size = (uint32_t)size, .number = w.number++, .until = (uint32_t)until};
    o.p = domain ? epoch_domain_malloc(domain, size) : heap_alloc(size);
    if (!o.p) suite_out_of_memory(size);
    suite_fill(o.p, size, o.number);
    w.live_bytes += size;
    return o;
}

static void let_go(struct object* o) {
    suite_check(o->p, o->size, o->number);
    heap_free(o->p);
    w.live_bytes -= o->size;
    o->p = NULL;
}

static void free_pinned(uint64_t cycle) {
    uint64_t kept = 0;
    for (uint64_t i = 0; i < w.n_pinned; i++) {
        if (w.pinned[i].until <= cycle) let_go(&w.pinned[i]);
        else w.pinned[kept++] = w.pinned[i];
    }
    w.n_pinned = kept;
}

static void replace_sessions(void) {
    for (uint64_t i = 0; i < (sessions + 49) / 50; i++) {
        struct object* o = &w.session[next_random(&w.random) % sessions];
        let_go(o);
        *o = make(SESSION_BYTES, w.long_lived, 0);
    }
}

static void play(uint64_t cycle) {
    uint64_t n = 0, bytes = 0, lasts = pin_cycles ? cycle + pin_cycles : cycle - cycle % interval + interval - 1;
    while (bytes < phase_kb * 1024 && n < w.most_objects) {
        size_t size = random_between(&w.random, bands[cycle % BANDS].least, bands[cycle % BANDS].most);
        bool pin = next_random(&w.random) % 100 < pinned_pct && w.n_pinned < w.most_pinned;
        struct object o = make(size, pin ? pin_cycles ? w.long_lived : w.interval : NULL, lasts);
        if (pin) w.pinned[w.n_pinned++] = o;
        else w.phase[n++] = o;
        bytes += size;
    }
    if (sessions) replace_sessions();
    for (uint64_t i = 0; i < n; i++) let_go(&w.phase[i]);
    heap_next_phase();
}

static void press(void) {
    for (uint64_t mb = 0; mb < pressure_mb; mb += step_mb) {
        size_t bytes = (size_t)(pressure_mb - mb < step_mb ? pressure_mb - mb : step_mb) << 20;
        char* p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED) suite_out_of_memory(bytes);
        for (size_t i = 0; i < bytes; i += 4096) ((volatile char*)p)[i] = 1;
        munmap(p, bytes);
    }
}

static void begin_interval(void) {
    if (!isolated || pin_cycles) return;
    if (w.interval) epoch_domain_destroy(w.interval);
    w.interval = epoch_domain_create_labeled(suite.a, "interval");
    if (!w.interval) suite_out_of_memory(0);
}

static void cool(uint64_t cycle) {
    free_pinned(cycle);
    begin_interval();
    press();
    csv_rss(cycle);
    struct cool_down now = {rss_now(), heap_committed_kb(), w.live_bytes / 1024};
    if (w.n_cool < MOST_COOL_DOWNS) w.cool[w.n_cool++] = now;
    else w.cool[MOST_COOL_DOWNS - 1] = now;
}

static void prepare(void) {
    uint64_t kept = pin_cycles ? pin_cycles : interval;
    if (kept > cycles) kept = cycles;
    w.random = suite.seed;
    w.most_objects = phase_kb * 1024 / bands[0].least + 1;
    w.most_pinned = (w.most_objects * pinned_pct / 100 + 100) * 2 * (kept + 1);
    w.phase = harness_memory(w.most_objects * sizeof *w.phase);
    w.pinned = harness_memory(w.most_pinned * sizeof *w.pinned);
    w.session = harness_memory(sessions * sizeof *w.session);
    w.cool = harness_memory(MOST_COOL_DOWNS * sizeof *w.cool);
    isolated = suite.tslab && !strcmp(route, "isolated");
    w.long_lived = isolated ? epoch_domain_create_labeled(suite.a, "long-lived") : NULL;
    begin_interval();
    for (uint64_t i = 0; i < sessions; i++) w.session[i] = make(SESSION_BYTES, w.long_lived, 0);
}

static void report_cool_down(const char* key, const struct cool_down* c) {
    report_open(key);
    report_count("rss_kb", c->rss.total);
    report_count("anon_kb", c->rss.anon);
    report_count("file_kb", c->rss.file);
    report_count("shmem_kb", c->rss.shmem);
    report_count("committed_kb", c->committed_kb);
    report_count("live_kb", c->live_kb);
    report_close();
}

static const char* judge(bool enough, double drift, double most) {
    return !enough ? "too few cool-downs" : drift < most ? "flat" : "drifts";
}

static void report_verdict(void) {
    const struct cool_down *first = &w.cool[0], *last = &w.cool[w.n_cool ? w.n_cool - 1 : 0];
    double committed = growth_pct((double)first->committed_kb, (double)last->committed_kb);
    double anon = growth_pct((double)first->rss.anon, (double)last->rss.anon);
    bool enough = w.n_cool >= NEEDED_COOL_DOWNS;
    report_open("verdict");
    report_count("cool_downs", w.n_cool);
    report_count("cool_downs_needed", NEEDED_COOL_DOWNS);
    report_number("committed_drift_pct", committed);
    report_number("committed_drift_most_pct", most_committed_drift_pct);
    report_word("committed", judge(enough, committed, most_committed_drift_pct));
    report_number("anon_drift_pct", anon);
    report_number("anon_drift_most_pct", most_anon_drift_pct);
    report_word("anon", judge(enough, anon, most_anon_drift_pct));
    report_close();
}

int main(int argc, char** argv) {
    struct flag args[] = {
        {.name = "CYCLES", .kind = FLAG_COUNT, .to = &cycles, .least = 1, .most = 10000000, .preset = 2000, .quick = 100, .help = "phases"},
        {.name = "INTERVAL", .kind = FLAG_COUNT, .to = &interval, .least = 1, .most = 100000, .preset = 10, .quick = 5, .help = "phases from one cool-down to the next"},
        {.name = "PINNED", .kind = FLAG_COUNT, .to = &pinned_pct, .most = 100, .preset = 20, .help = "part of a phase that outlives it, %"},
        {.name = "PRESSURE_MB", .kind = FLAG_COUNT, .to = &pressure_mb, .most = 65536, .preset = 256, .quick = 16, .help = "foreign memory used at a cool-down"},
        {.name = "STEP_MB", .kind = FLAG_COUNT, .to = &step_mb, .least = 1, .most = 65536, .preset = 64, .quick = 16, .help = "in steps of"},
        {.name = "--phase-kb", .kind = FLAG_COUNT, .to = &phase_kb, .least = 1, .most = 1 << 22, .preset = 1024, .help = "bytes allocated in a phase, KiB"},
        {.name = "--pin-cycles", .kind = FLAG_COUNT, .to = &pin_cycles, .most = 1000, .help = "life of what is pinned, in phases; 0: to the next cool-down (default 0)"},
        {.name = "--sessions", .kind = FLAG_COUNT, .to = &sessions, .most = 10000000, .preset = 500, .help = "256 B objects that live on"},
        {.name = "--route", .kind = FLAG_WORD, .to = &route, .words = FLAG_WORDS("isolated", "mixed"), .help = "where tslab puts what outlives its phase"},
        {.name = NULL},
    };
    suite_start(argc, argv, "Runs phases of shifting sizes for a long time and judges whether memory drifts.", args);
    prepare();
    uint64_t done = 0;
    csv_header(CSV_RSS);
    for (; done < cycles && !suite_stopped(); done++) {
        play(done);
        if (pin_cycles) free_pinned(done);
        if (done % interval == interval - 1) cool(done);
    }
    report_count("cycles_done", done);
    report_word("committed_is", heap_committed_is());
    report_cool_down("first_cool_down", &w.cool[0]);
    report_cool_down("last_cool_down", &w.cool[w.n_cool ? w.n_cool - 1 : 0]);
    report_verdict();
    free_pinned(UINT32_MAX);
    for (uint64_t i = 0; i < sessions; i++) let_go(&w.session[i]);
    if (w.interval) epoch_domain_destroy(w.interval);
    if (w.long_lived) epoch_domain_destroy(w.long_lived);
    return suite_finish();
}
