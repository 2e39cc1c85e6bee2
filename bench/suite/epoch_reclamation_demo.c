/*
 * epoch_reclamation_demo - resident memory cycle by cycle: fill a phase, free it, close it.
 *
 * With malloc a cycle ends with its frees; what the C library gives back then is its own decision.
 */
#include "suite.h"

static uint64_t cycles, objects, size;

struct cycle {
    uint64_t start_kb, full_kb, freed_kb, closed_kb, close_ns;
};

static struct cycle play(void** list, uint64_t c) {
    struct cycle out = {.start_kb = rss_now().total};
    for (uint64_t i = 0; i < objects; i++) {
        list[i] = heap_need(size);
        suite_fill(list[i], size, c * objects + i);
    }
    out.full_kb = rss_now().total;
    for (uint64_t i = 0; i < objects; i++) {
        suite_check(list[i], size, c * objects + i);
        heap_free(list[i]);
    }
    out.freed_kb = rss_now().total;
    uint64_t start = now_ns();
    heap_next_phase();
    out.close_ns = now_ns() - start;
    out.closed_kb = rss_now().total;
    return out;
}

int main(int argc, char** argv) {
    struct flag args[] = {
        {.name = "--cycles", .kind = FLAG_COUNT, .to = &cycles, .least = 1, .most = 1000, .preset = 20, .quick = 8, .help = "cycles"},
        {.name = "--objects", .kind = FLAG_COUNT, .to = &objects, .least = 1, .most = 50000000, .preset = 50000, .help = "objects of a cycle"},
        {.name = "--size", .kind = FLAG_COUNT, .to = &size, .least = 16, .most = 1 << 20, .preset = 128, .help = "bytes of an object"},
        {.name = NULL},
    };
    suite_start(argc, argv, "Shows what a closed phase gives back, cycle by cycle.", args);
    void** list = harness_memory(objects * sizeof *list);
    struct cycle* all = harness_memory(cycles * sizeof *all);
    uint64_t done = 0, before = rss_now().total;
    csv_header(CSV_RSS);
    for (; done < cycles && !suite_stopped(); done++) {
        all[done] = play(list, done);
        csv_rss(done);
    }
    report_list("cycles");
    for (uint64_t c = 0; c < done; c++) {
        report_open(NULL);
        report_count("cycle", c);
        report_count("start_kb", all[c].start_kb);
        report_count("full_kb", all[c].full_kb);
        report_count("freed_kb", all[c].freed_kb);
        report_count("closed_kb", all[c].closed_kb);
        report_count("close_ns", suite.tslab ? all[c].close_ns : 0);
        report_close();
    }
    report_close();
    report_count("cycles_done", done);
    report_open("rss");
    report_count("before_kb", before);
    report_count("first_closed_kb", done ? all[0].closed_kb : before);
    report_count("last_closed_kb", done ? all[done - 1].closed_kb : before);
    report_number("growth_pct", done ? growth_pct((double)all[0].closed_kb, (double)all[done - 1].closed_kb) : NAN);
    double used = done ? (double)all[done - 1].full_kb - (double)before : 0;
    report_number("given_back_pct", used > 0 ? 100.0 * ((double)all[done - 1].full_kb - (double)all[done - 1].closed_kb) / used : NAN);
    report_close();
    return suite_finish();
}
