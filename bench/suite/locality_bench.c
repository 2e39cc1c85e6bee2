/*
 * locality_bench - what an access costs on objects as the allocator laid them out.
 *
 * Each thread keeps a working set, replaces its objects one by one, first in, first out, among short-lived objects of
 * other sizes, and after each lap of replacements times one pass over the whole set, in the order of the set: a read and a
 * write on every cache line. Cycles are ticks of the time-stamp counter (of the clock where there is none).
 */
#include "suite.h"

static uint64_t threads, ops, working_set, size;

struct worker {
    _Alignas(64) uint64_t seed, done, accesses, ticks, work_ns;
    struct latency per_access; /* ticks of a pass over accesses of a pass, times 100 */
    void** set;
    uint64_t* number;
};

static void pass(struct worker* w) {
    uint64_t lines = (size + 63) / 64, t0 = ticks();
    for (uint64_t i = 0; i < working_set; i++)
        for (uint64_t k = 0; k < lines; k++) {
            uint64_t at = k * 64 + (k ? 0 : 8); /* beside the stamps */
            volatile char* p = (volatile char*)w->set[i] + at;
            if (at + 8 < size) *p = (char)(*p + 1);
        }
    uint64_t net = timer_net(&suite.timer, t0, ticks());
    w->ticks += net;
    w->accesses += working_set;
    uint64_t hundredths = net * 100 / working_set;
    hist_add(&w->per_access.h, hundredths);
}

static void* work(void* arg) {
    struct worker* w = arg;
    uint64_t random = w->seed, at = 0, start = now_ns();
    void* brief = NULL;
    for (uint64_t i = 0; i < working_set; i++) {
        w->set[i] = heap_need(size);
        w->number[i] = i;
        suite_fill(w->set[i], size, i);
    }
    for (; w->done < ops && !suite_stopped(); w->done++) {
        if (brief) heap_free(brief);
        brief = heap_need(random_between(&random, 64, 768));
        touch(brief);
        suite_check(w->set[at], size, w->number[at]);
        heap_free(w->set[at]);
        w->set[at] = heap_need(size);
        w->number[at] += working_set;
        suite_fill(w->set[at], size, w->number[at]);
        if (++at < working_set) continue;
        at = 0;
        pass(w);
    }
    for (uint64_t i = 0; i < working_set; i++) {
        suite_check(w->set[i], size, w->number[i]);
        heap_free(w->set[i]);
    }
    if (brief) heap_free(brief);
    w->work_ns = now_ns() - start;
    return NULL;
}

int main(int argc, char** argv) {
    struct flag args[] = {
        {.name = "--threads", .kind = FLAG_COUNT, .to = &threads, .least = 1, .most = 64, .preset = 4, .help = "threads"},
        {.name = "--ops", .kind = FLAG_COUNT, .to = &ops, .least = 1, .most = 1000000000, .preset = 1000000, .quick = 50000, .help = "replacements, all threads together"},
        {.name = "--working-set", .kind = FLAG_COUNT, .to = &working_set, .least = 1, .most = 1000000, .preset = 256, .help = "objects of a thread"},
        {.name = "--size", .kind = FLAG_COUNT, .to = &size, .least = 32, .most = 65536, .preset = 128, .help = "bytes of an object"},
        {.name = NULL},
    };
    static struct worker all[64];
    static struct latency merged;
    pthread_t ids[64];
    suite_start(argc, argv, "Times accesses to a working set that is replaced all the time.", args);
    ops = (ops + threads - 1) / threads;
    for (uint64_t i = 0; i < threads; i++) {
        all[i].seed = suite.seed + i;
        all[i].set = harness_memory(working_set * sizeof(void*));
        all[i].number = harness_memory(working_set * sizeof(uint64_t));
    }
    csv_header(CSV_LATENCY);
    uint64_t start = now_ns(), done = 0, accesses = 0, total = 0;
    for (uint64_t i = 0; i < threads; i++) ids[i] = suite_thread(work, &all[i]);
    for (uint64_t i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    uint64_t ns = now_ns() - start;
    for (uint64_t i = 0; i < threads; i++) {
        done += all[i].done;
        accesses += all[i].accesses;
        total += all[i].ticks;
        latency_merge(&merged, &all[i].per_access);
    }
    report_count("ops_done", done);
    report_number("ops_per_second", ns ? (double)done * 1e9 / (double)ns : NAN);
    report_open("access");
    report_count("accesses", accesses);
    report_number("cycles_per_access", accesses ? (double)total / (double)accesses : NAN);
    report_number("p50_cycles", merged.h.total ? hist_percentile(&merged.h, 50) / 100 : NAN);
    report_number("p99_cycles", merged.h.total ? hist_percentile(&merged.h, 99) / 100 : NAN);
    report_number("ns_per_cycle", suite.timer.ns_per_tick);
    report_close();
    if (suite.csv_to && accesses)
        fprintf(suite.csv_to, "%s,%llu,%llu,access,%.3f,%.3f,%.3f,%.3f,%.3f\n", csv_name(), (unsigned long long)threads,
                (unsigned long long)size, (double)total / (double)accesses * suite.timer.ns_per_tick,
                latency_at(&merged, 50) / 100, latency_at(&merged, 95) / 100, latency_at(&merged, 99) / 100,
                latency_at(&merged, 99.9) / 100);
    return suite_finish();
}
