/*
 * fragmentation_adversary - sizes and survivors chosen to leave holes that the next round cannot use.
 *
 * A round draws sizes from one quarter of the range, the quarters in turn, allocates `count` objects, frees them in random
 * order but for every keep-th, and survivors of four rounds ago. So what lives is spread thinly over everything that was
 * ever in use, beside holes of other sizes. Measured: resident and committed memory over live bytes.
 */
#include "suite.h"

static uint64_t min_size, max_size, count, rounds, keep_every;
static bool phases;

enum { LAPS = 4 }; /* rounds that survivors live */

struct object {
    void* p;
    uint32_t size;
    uint64_t number;
};

struct population {
    struct object* round;       /* count */
    struct object* kept[LAPS];  /* survivors */
    uint64_t n_kept[LAPS], live_bytes, number, random;
};

static void let_go(struct population* w, struct object* o) {
    suite_check(o->p, o->size, o->number);
    heap_free(o->p);
    w->live_bytes -= o->size;
    o->p = NULL;
}

static void play(struct population* w, uint64_t r) {
    uint64_t quarter = (max_size - min_size) / 4, least = min_size + quarter * (r % 4);
    for (uint64_t i = 0; i < count; i++)
        w->round[i].size = (uint32_t)random_between(&w->random, least, least + quarter);
    for (uint64_t i = 0; i < count; i++) {
        struct object* o = &w->round[i];
        o->p = heap_need(o->size);
        o->number = w->number++;
        suite_fill(o->p, o->size, o->number);
        w->live_bytes += o->size;
    }
    uint64_t lap = r % LAPS;
    for (uint64_t i = 0; i < w->n_kept[lap]; i++) let_go(w, &w->kept[lap][i]);
    w->n_kept[lap] = 0;
    for (uint64_t i = 0; i < count; i += keep_every) {
        w->kept[lap][w->n_kept[lap]++] = w->round[i];
        w->round[i].p = NULL;
    }
    for (uint64_t i = count - 1; i > 0; i--) {
        uint64_t k = next_random(&w->random) % (i + 1);
        struct object o = w->round[i];
        w->round[i] = w->round[k];
        w->round[k] = o;
    }
    for (uint64_t i = 0; i < count; i++)
        if (w->round[i].p) let_go(w, &w->round[i]);
    if (phases) heap_next_phase();
}

static double over_live(double kb, const struct population* w) {
    return w->live_bytes ? kb * 1024.0 / (double)w->live_bytes : NAN;
}

int main(int argc, char** argv) {
    struct flag args[] = {
        {.name = "--min-size", .kind = FLAG_COUNT, .to = &min_size, .least = 16, .most = 1 << 20, .preset = 64, .help = "bytes of the smallest object"},
        {.name = "--max-size", .kind = FLAG_COUNT, .to = &max_size, .least = 16, .most = 1 << 20, .preset = 768, .help = "bytes of the largest"},
        {.name = "--count", .kind = FLAG_COUNT, .to = &count, .least = 1, .most = 50000000, .preset = 10000, .help = "objects of a round"},
        {.name = "--rounds", .kind = FLAG_COUNT, .to = &rounds, .least = 1, .most = 1000000, .preset = 100, .quick = 12, .help = "rounds"},
        {.name = "--keep-every", .kind = FLAG_COUNT, .to = &keep_every, .least = 1, .most = 1000000, .preset = 8, .help = "one object in so many survives its round"},
        {.name = "--phases", .kind = FLAG_SWITCH, .to = &phases, .help = "a round is a phase (tslab): closed by draining at its end"},
        {.name = NULL},
    };
    suite_start(argc, argv, "Leaves survivors among holes that the next sizes do not fit.", args);
    if (max_size < min_size) return flags_wrong("--max-size is at least --min-size"), 2;
    struct population w = {.random = suite.seed};
    w.round = harness_memory(count * sizeof *w.round);
    for (int i = 0; i < LAPS; i++) w.kept[i] = harness_memory((count / keep_every + 1) * sizeof *w.kept[i]);
    uint64_t before = rss_now().total, peak = 0, early = 0, done = 0, last = before;
    csv_header(CSV_RSS);
    for (; done < rounds && !suite_stopped(); done++) {
        play(&w, done);
        csv_rss(done);
        last = rss_now().total;
        if (last > peak) peak = last;
        if (done == 2 * LAPS - 1) early = last;
    }
    uint64_t committed = heap_committed_kb();
    report_count("rounds_done", done);
    report_count("live_bytes", w.live_bytes);
    report_open("rss");
    report_count("before_kb", before);
    report_count("after_eight_rounds_kb", early);
    report_count("peak_kb", peak);
    report_count("final_kb", last);
    report_number("growth_pct", growth_pct((double)early, (double)last));
    report_number("growth_over_start_pct", growth_pct((double)before, (double)last));
    report_number("final_less_before_over_live", over_live(last > before ? (double)(last - before) : 0, &w));
    report_close();
    report_open("committed");
    report_word("is", heap_committed_is());
    report_count("final_kb", committed);
    report_number("over_live", over_live((double)committed, &w));
    report_number("fragmentation_pct", w.live_bytes ? 100 * (1 - 1 / over_live((double)committed, &w)) : NAN);
    report_close();
    for (int lap = 0; lap < LAPS; lap++)
        for (uint64_t i = 0; i < w.n_kept[lap]; i++) let_go(&w, &w.kept[lap][i]);
    return suite_finish();
}
