/*
 * churn_fixed - objects of one size, replaced first in, first out; each call timed by itself.
 *
 * A cycle replaces churn-size objects, the oldest first. The first tenth of the cycles brings memory into its steady
 * state and is not timed; resident memory is read after every cycle.
 */
#include "suite.h"

static uint64_t size, objects, cycles, churn_size;

struct memory {
    uint64_t steady, peak, last;
};

static void replace(void** list, uint64_t* number, uint64_t at, bool timed, struct latency* a, struct latency* f) {
    void* old = list[at];
    suite_check(old, size, number[at]);
    uint64_t t0 = ticks();
    heap_free(old);
    uint64_t t1 = ticks();
    void* p = heap_alloc(size);
    uint64_t t2 = ticks();
    if (!p) suite_out_of_memory(size);
    if (timed) {
        latency_add(f, t0, t1);
        latency_add(a, t1, t2);
    }
    number[at] += objects;
    suite_fill(p, size, number[at]);
    list[at] = p;
}

static uint64_t run(void** list, uint64_t* number, struct latency* a, struct latency* f, struct memory* m) {
    uint64_t warm = cycles / 10, oldest = 0, done = 0;
    csv_header(CSV_LATENCY);
    for (; done < cycles && !suite_stopped(); done++) {
        if (done == warm) m->steady = m->peak = rss_now().total;
        for (uint64_t k = 0; k < churn_size; k++) {
            replace(list, number, oldest, done >= warm, a, f);
            oldest = oldest + 1 == objects ? 0 : oldest + 1;
        }
        m->last = rss_now().total;
        if (m->last > m->peak) m->peak = m->last;
    }
    if (done <= warm) m->steady = m->peak = m->last; /* interrupted that early */
    return done;
}

int main(int argc, char** argv) {
    struct flag args[] = {
        {.name = "--size", .kind = FLAG_COUNT, .to = &size, .least = 16, .most = 1 << 20, .preset = 128, .help = "bytes of an object"},
        {.name = "--objects", .kind = FLAG_COUNT, .to = &objects, .least = 1, .most = 100000000, .preset = 100000, .quick = 20000, .help = "live objects"},
        {.name = "--cycles", .kind = FLAG_COUNT, .to = &cycles, .least = 1, .most = 100000000, .preset = 1000, .quick = 50, .help = "cycles"},
        {.name = "--churn-size", .kind = FLAG_COUNT, .to = &churn_size, .most = 100000000, .help = "objects replaced in a cycle, 0: a tenth of the objects (default 0)"},
        {.name = NULL},
    };
    static struct latency a, f;
    struct memory m = {0};
    suite_start(argc, argv, "Replaces objects of one size first in, first out and times each call.", args);
    if (churn_size == 0) churn_size = objects < 10 ? 1 : objects / 10;
    void** list = harness_memory(objects * sizeof *list);
    uint64_t* number = harness_memory(objects * sizeof *number);
    uint64_t before = rss_now().total;
    for (uint64_t i = 0; i < objects; i++) {
        list[i] = heap_need(size);
        number[i] = i;
        suite_fill(list[i], size, i);
    }
    uint64_t done = run(list, number, &a, &f, &m);
    csv_latency(1, size, "alloc", &a);
    csv_latency(1, size, "free", &f);
    for (uint64_t i = 0; i < objects; i++) suite_check(list[i], size, number[i]);

    report_count("cycles_done", done);
    report_open("latency");
    report_latency("alloc", &a);
    report_latency("free", &f);
    report_histograms(&a, &f);
    report_close();
    report_open("rss");
    report_count("before_kb", before);
    report_count("steady_state_kb", m.steady);
    report_count("peak_kb", m.peak);
    report_count("final_kb", m.last);
    report_number("growth_pct", growth_pct((double)m.steady, (double)m.last));
    report_number("peak_growth_pct", growth_pct((double)m.steady, (double)m.peak));
    report_number("payload_kb", (double)(objects * size) / 1024.0);
    report_close();
    return suite_finish();
}
