/*
 * steady_state_churn - a steady population, a part of which is replaced at random in every cycle: does memory creep?
 *
 * The victims of a cycle are drawn before its clock starts. They are all freed, then as many objects are allocated.
 */
#include "suite.h"

static uint64_t size, steady_state, churn_size, cycles;

struct object {
    void* p;
    uint64_t number;
};

/* Distinct victims: the first churn_size places of a shuffle that goes on from cycle to cycle. */
static void draw(uint32_t* order, uint64_t* random) {
    for (uint64_t i = 0; i < churn_size; i++) {
        uint64_t k = i + next_random(random) % (steady_state - i);
        uint32_t kept = order[i];
        order[i] = order[k];
        order[k] = kept;
    }
}

static uint64_t churn(struct object* o, const uint32_t* order, uint64_t* next_number) {
    for (uint64_t i = 0; i < churn_size; i++) suite_check(o[order[i]].p, size, o[order[i]].number);
    uint64_t start = now_ns();
    for (uint64_t i = 0; i < churn_size; i++) heap_free(o[order[i]].p);
    for (uint64_t i = 0; i < churn_size; i++) {
        o[order[i]].p = heap_need(size);
        touch(o[order[i]].p);
    }
    uint64_t ns = now_ns() - start;
    for (uint64_t i = 0; i < churn_size; i++) {
        o[order[i]].number = (*next_number)++;
        suite_fill(o[order[i]].p, size, o[order[i]].number);
    }
    return ns;
}

int main(int argc, char** argv) {
    struct flag args[] = {
        {.name = "--size", .kind = FLAG_COUNT, .to = &size, .least = 16, .most = 1 << 20, .preset = 128, .help = "bytes of an object"},
        {.name = "--steady-state", .kind = FLAG_COUNT, .to = &steady_state, .least = 1, .most = 100000000, .preset = 100000, .quick = 20000, .help = "live objects"},
        {.name = "--churn-size", .kind = FLAG_COUNT, .to = &churn_size, .least = 1, .most = 100000000, .preset = 10000, .quick = 2000, .help = "objects replaced in a cycle"},
        {.name = "--cycles", .kind = FLAG_COUNT, .to = &cycles, .least = 1, .most = 100000000, .preset = 100, .quick = 20, .help = "cycles"},
        {.name = NULL},
    };
    suite_start(argc, argv, "Keeps a steady population and replaces a random part of it in every cycle.", args);
    if (churn_size > steady_state) {
        fprintf(stderr, "%s: --churn-size is at most --steady-state\n", suite.program);
        return 2;
    }
    struct object* o = harness_memory(steady_state * sizeof *o);
    uint32_t* order = harness_memory(steady_state * sizeof *order);
    uint64_t random = suite.seed, number = 0, ns = 0, done = 0, warm = 0, peak = 0, last = 0, committed = 0;
    for (uint64_t i = 0; i < steady_state; i++) {
        order[i] = (uint32_t)i;
        o[i] = (struct object){heap_need(size), number++};
        suite_fill(o[i].p, size, o[i].number);
    }
    csv_header(CSV_RSS);
    for (; done < cycles && !suite_stopped(); done++) {
        draw(order, &random);
        ns += churn(o, order, &number);
        csv_rss(done);
        last = rss_now().total;
        if (last > peak) peak = last;
        if (done == cycles / 10) {
            warm = peak = last;
            committed = heap_committed_kb();
        }
    }
    for (uint64_t i = 0; i < steady_state; i++) suite_check(o[i].p, size, o[i].number);
    double ops = 2.0 * (double)done * (double)churn_size;
    report_count("cycles_done", done);
    report_number("ns_per_op", ops > 0 ? (double)ns / ops : NAN);
    report_open("rss");
    report_count("steady_state_kb", warm);
    report_count("peak_kb", peak);
    report_count("final_kb", last);
    report_number("growth_pct", growth_pct((double)warm, (double)last));
    report_number("peak_growth_pct", growth_pct((double)warm, (double)peak));
    report_number("payload_kb", (double)(steady_state * size) / 1024.0);
    report_close();
    report_open("committed");
    report_word("is", heap_committed_is());
    report_count("steady_state_kb", committed);
    report_count("final_kb", heap_committed_kb());
    report_number("growth_pct", growth_pct((double)committed, (double)heap_committed_kb()));
    report_close();
    return suite_finish();
}
