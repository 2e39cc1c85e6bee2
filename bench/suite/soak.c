/*
 * soak - threads that allocate, free and verify until the time is up.
 *
 * All threads share a table of places. A thread draws a place and a size, fills a new object, exchanges it with what is in
 * the place, and verifies and frees what it took out, which another thread may have put there. Most sizes are up to 768
 * bytes, one in 64 up to 64 KiB, one in 4096 up to 1 MiB. With tslab each thread also opens a domain now and then, fills it
 * and ends it in bulk, and the first thread advances and closes the ring's epochs, live objects and all. At the end the
 * table is emptied; the allocator must then count no live object.
 */
#include "suite.h"

static uint64_t threads, seconds, places;

enum { MOST = 64, DOMAIN_EVERY = 1024, DOMAIN_OBJECTS = 100, CLOSE_EVERY = 8192 };

/* What is in a place: the object knows its size and number itself. */
struct object {
    uint64_t stamp, number; /* the stamp is the library's of suite_fill */
    uint64_t size, check;
};

static _Atomic(struct object*)* table;
static _Atomic bool over;

struct worker {
    _Alignas(64) uint64_t random;
    _Atomic uint64_t ops, bytes;
    unsigned index;
};

static struct object* make(uint64_t size, uint64_t number) {
    struct object* o = heap_need(size);
    suite_fill(o, size, number);
    o->number = number;
    o->size = size;
    o->check = number ^ size;
    return o;
}

static void let_go(struct object* o) {
    if (o->check != (o->number ^ o->size) || o->size > 1 << 20) {
        fprintf(stderr, "%s: an object at %p was damaged\n", suite.program, (void*)o);
        exit(1);
    }
    suite_check(o, o->size, o->number);
    heap_free(o);
}

static uint64_t draw_size(uint64_t* random) {
    uint32_t kind = next_random(random) % 4096;
    return random_between(random, 64, kind == 0 ? 1 << 20 : kind < 64 ? 1 << 16 : 768);
}

static void one_domain(struct worker* w) {
    struct object* o[DOMAIN_OBJECTS];
    epoch_domain_t* d = epoch_domain_begin(suite.a, "soak");
    if (!d) suite_out_of_memory(0);
    for (int i = 0; i < DOMAIN_OBJECTS; i++) o[i] = make(random_between(&w->random, 64, 768), (uint64_t)i);
    for (int i = 0; i < DOMAIN_OBJECTS; i++) suite_check(o[i], o[i]->size, (uint64_t)i);
    for (int i = 0; i < DOMAIN_OBJECTS; i += 3) let_go(o[i]);
    epoch_domain_end(d);
}

static void* work(void* arg) {
    struct worker* w = arg;
    for (uint64_t i = 1; !over && !suite_stopped(); i++) {
        uint64_t size = draw_size(&w->random), place = next_random(&w->random) % places;
        struct object* fresh = make(size, i * MOST + w->index);
        struct object* old = atomic_exchange(&table[place], fresh);
        if (old) let_go(old);
        w->ops += 1 + (old != NULL);
        w->bytes += size;
        if (!suite.tslab) continue;
        if (i % DOMAIN_EVERY == 0) one_domain(w);
        if (w->index == 0 && i % CLOSE_EVERY == 0) heap_next_phase();
    }
    return NULL;
}

static uint64_t total(struct worker* all, bool bytes) {
    uint64_t sum = 0;
    for (uint64_t t = 0; t < threads; t++) sum += bytes ? all[t].bytes : all[t].ops;
    return sum;
}

static void check_empty(void) {
    SlabGlobalStats g;
    if (!suite.tslab) return;
    slab_stats_global(suite.a, &g);
    report_count("live_objects_at_end", g.live_objects);
    if (g.live_objects == 0) return;
    fprintf(stderr, "%s: everything is freed, and %llu objects are said to live\n", suite.program, (unsigned long long)g.live_objects);
    suite.failed = true;
}

int main(int argc, char** argv) {
    struct flag args[] = {
        {.name = "--threads", .kind = FLAG_COUNT, .to = &threads, .least = 1, .most = MOST, .preset = 8, .help = "threads"},
        {.name = "--seconds", .kind = FLAG_COUNT, .to = &seconds, .least = 1, .most = 10000000, .preset = 60, .quick = 2, .help = "how long"},
        {.name = "--places", .kind = FLAG_COUNT, .to = &places, .least = 1, .most = 100000000, .preset = 20000, .help = "objects that live at a time, at most"},
        {.name = NULL},
    };
    static struct worker all[MOST];
    pthread_t ids[MOST];
    suite_start(argc, argv, "Allocates, frees and verifies on many threads until the time is up.", args);
    table = harness_memory(places * sizeof *table);
    csv_header(CSV_RSS);
    uint64_t start = now_ns(), first_kb = 0, last_kb = 0, peak_kb = 0, second = 0;
    for (uint64_t t = 0; t < threads; t++) {
        all[t].random = suite.seed * MOST + t;
        all[t].index = (unsigned)t;
    }
    for (uint64_t t = 0; t < threads; t++) ids[t] = suite_thread(work, &all[t]);
    for (; second < seconds && !suite_stopped(); second++) {
        uint64_t due = start + (second + 1) * 1000000000u;
        while (now_ns() < due && !suite_stopped()) usleep(20000);
        csv_rss(second);
        last_kb = rss_now().total;
        if (second == seconds / 10) first_kb = last_kb;
        if (last_kb > peak_kb) peak_kb = last_kb;
    }
    over = true;
    for (uint64_t t = 0; t < threads; t++) pthread_join(ids[t], NULL);
    double elapsed = (double)(now_ns() - start) / 1e9;
    for (uint64_t i = 0; i < places; i++)
        if (table[i]) let_go(table[i]);
    report_number("seconds_done", elapsed);
    report_count("operations", total(all, false));
    report_number("operations_per_second", (double)total(all, false) / elapsed);
    report_number("allocated_mb", (double)total(all, true) / 1048576);
    check_empty();
    report_open("rss");
    report_count("after_a_tenth_kb", first_kb);
    report_count("peak_kb", peak_kb);
    report_count("final_kb", last_kb);
    report_number("growth_pct", growth_pct((double)first_kb, (double)last_kb));
    report_close();
    return suite_finish();
}
