/*
 * phase_shift_retention - what stays resident when bursts are over.
 *
 * A burst has three phases of different sizes. Of each phase a part (40 %) is pinned: it lives until the cool-down that
 * follows the burst, when everything is freed. A phase is an epoch, closed by draining when it ends. Retention is
 * what resident memory keeps of the height of the burst: (cooled - before) / (peak - before); the mean over bursts.
 *
 * Run with tslab, the program first runs the same bursts on malloc in a child process, and compares.
 */
#include <sys/wait.h>

#include "suite.h"

static uint64_t bursts, objects, pinned_pct;
static bool alone;

enum { PHASES = 3 };
static const struct {
    size_t least, most;
} sizes[PHASES] = {{64, 192}, {192, 384}, {384, 768}};

struct object {
    void* p;
    uint32_t size;
    uint64_t number;
};

struct outcome {
    uint64_t bursts, before_kb, peak_kb, cooled_kb, committed_kb;
    double retention_pct;
};

static void let_go(struct object* o) {
    suite_check(o->p, o->size, o->number);
    heap_free(o->p);
    o->p = NULL;
}

/* Fills a phase and frees what is not pinned. */
static void play_phase(struct object* o, unsigned phase, uint64_t* random, uint64_t* number) {
    for (uint64_t i = 0; i < objects; i++) o[i].size = (uint32_t)random_between(random, sizes[phase].least, sizes[phase].most);
    for (uint64_t i = 0; i < objects; i++) {
        o[i].p = heap_need(o[i].size);
        o[i].number = (*number)++;
        suite_fill(o[i].p, o[i].size, o[i].number);
    }
}

static void end_phase(struct object* o, uint64_t* random) {
    for (uint64_t i = 0; i < objects; i++)
        if (next_random(random) % 100 >= pinned_pct) let_go(&o[i]);
    heap_next_phase();
}

static struct outcome run(bool rows) {
    struct outcome out = {0};
    uint64_t random = suite.seed, number = 0;
    double retained = 0;
    struct object* o = harness_memory(PHASES * objects * sizeof *o);
    out.before_kb = rss_now().total;
    for (; out.bursts < bursts && !suite_stopped(); out.bursts++) {
        uint64_t peak = 0;
        for (unsigned phase = 0; phase < PHASES; phase++) {
            play_phase(o + phase * objects, phase, &random, &number);
            uint64_t height = rss_now().total;
            if (height > peak) peak = height;
            end_phase(o + phase * objects, &random);
        }
        for (uint64_t i = 0; i < PHASES * objects; i++)
            if (o[i].p) let_go(&o[i]);
        out.cooled_kb = rss_now().total;
        if (peak > out.peak_kb) out.peak_kb = peak;
        if (peak > out.before_kb && out.cooled_kb > out.before_kb)
            retained += (double)(out.cooled_kb - out.before_kb) / (double)(peak - out.before_kb);
        if (rows) csv_rss(out.bursts);
    }
    out.committed_kb = heap_committed_kb();
    out.retention_pct = out.bursts ? 100 * retained / (double)out.bursts : NAN;
    return out;
}

/* The same on malloc, in a child; false when the child failed. */
static bool run_on_malloc(struct outcome* out) {
    int ends[2], status = 0;
    if (pipe(ends) != 0) return false;
    pid_t child = fork();
    if (child == 0) {
        suite.tslab = false;
        struct outcome mine = run(false);
        _exit(write(ends[1], &mine, sizeof mine) == (ssize_t)sizeof mine ? 0 : 1);
    }
    close(ends[1]);
    bool ok = child > 0 && read(ends[0], out, sizeof *out) == (ssize_t)sizeof *out;
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return ok && status == 0;
}

static void report_outcome(const struct outcome* o) {
    report_count("bursts_done", o->bursts);
    report_count("before_kb", o->before_kb);
    report_count("peak_kb", o->peak_kb);
    report_count("cooled_kb", o->cooled_kb);
    report_count("committed_kb", o->committed_kb);
    report_number("retention_pct", o->retention_pct);
}

int main(int argc, char** argv) {
    struct flag args[] = {
        {.name = "BURSTS", .kind = FLAG_COUNT, .to = &bursts, .least = 1, .most = 100000, .preset = 20, .quick = 4, .help = "bursts of three phases"},
        {.name = "--objects", .kind = FLAG_COUNT, .to = &objects, .least = 1, .most = 10000000, .preset = 20000, .help = "objects of a phase"},
        {.name = "--pinned-pct", .kind = FLAG_COUNT, .to = &pinned_pct, .most = 100, .preset = 40, .help = "part of a phase that lives until the cool-down, %"},
        {.name = "--alone", .kind = FLAG_SWITCH, .to = &alone, .help = "does not run malloc beside tslab"},
        {.name = NULL},
    };
    struct outcome other = {0};
    suite_start(argc, argv, "Runs bursts of phases with pinned objects and shows what stays resident after each.", args);
    bool compared = suite.tslab && !alone, ok = !compared || run_on_malloc(&other);
    csv_header(CSV_RSS);
    struct outcome mine = run(true);
    report_open("retention");
    report_outcome(&mine);
    report_close();
    if (compared) {
        report_open("malloc");
        report_outcome(&other);
        report_close();
        report_open("verdict");
        report_word("retention", !ok || mine.bursts == 0 || other.bursts == 0 ? "not compared"
                                 : mine.retention_pct <= other.retention_pct  ? "keeps no more than malloc"
                                                                              : "keeps more than malloc");
        report_close();
        if (!ok) fprintf(stderr, "%s: the run on malloc failed\n", suite.program), suite.failed = true;
    }
    return suite_finish();
}
