/*
 * settings.c - synthetic_bench's own flags, beside those of the load. The pattern is looked for first and sets everything
 * else; every other flag overrides its preset, wherever it stands on the command line.
 */
#include <string.h>

#include "load/words.h"
#include "synthetic.h"

enum {
    FLAG_ALLOCATOR,
    FLAG_DURATION,
    FLAG_REQUESTS,
    FLAG_RSS,
    FLAG_STATS_FILE,
    FLAG_JSON,
    FLAG_DOCTOR,
    FLAG_LEAK_THRESHOLD,
    FLAG_STATS_S,
    FLAG_PROGRESS_S,
    FLAG_HELP,
    FLAG_VERSION,
    FLAGS
};

static const struct flag flags[FLAGS] = {
    [FLAG_ALLOCATOR] = {"--allocator", "NAME",
                        "tslab (default), or malloc: whatever the process has, LD_PRELOAD included", 0, 0},
    [FLAG_DURATION] = {"--duration_s", "S", "how long it runs; 0: until SIGINT or SIGTERM (default: 60)", 0, 1e7},
    [FLAG_REQUESTS] = {"--requests", "N", "ends after N requests, if that is sooner; 0: no such limit (default)", 0,
                       1e15},
    [FLAG_RSS] = {"--rss_sample_ms", "MS",
                  "how often the resident size is read for its peak; 0: at start and end only (default: 100)", 0,
                  3600000},
    [FLAG_STATS_FILE] =
        {"--stats-file", "FILE",
         "now and then and at the end: statistics as JSON, with benchmark_* counters; replaced by rename", 0, 0},
    [FLAG_JSON] = {"--json", "FILE", "settings and results as JSON, at the end", 0, 0},
    [FLAG_DOCTOR] = {"--doctor", NULL, "the library's diagnosis on standard error, at the end", 0, 0},
    [FLAG_LEAK_THRESHOLD] =
        {"--leak_threshold_s", "S",
         "age from which an ended phase that holds objects is a leak, also to the doctor (default: 30)", 0, 1000000},
    [FLAG_STATS_S] = {"--stats_s", "S", "how often the statistics file is written; 0: at the end only (default: 5)", 0,
                      1e6},
    [FLAG_PROGRESS_S] = {"--progress_s", "S", "how often a line of progress is printed; 0: never (default: 10)", 0,
                         1e6},
    [FLAG_HELP] = {"--help", NULL, "", 0, 0},
    [FLAG_VERSION] = {"--version", NULL, "", 0, 0},
};

static bool is_fraction(int id) { return id == FLAG_DURATION || id == FLAG_STATS_S || id == FLAG_PROGRESS_S; }

static bool set_number(struct bench* b, int id, const char* value) {
    double v = 0;
    if (!number(flags[id].name, value, flags[id].low, flags[id].high, !is_fraction(id), &v)) return false;
    switch (id) {
    case FLAG_DURATION:
        b->plan.duration_s = v;
        break;
    case FLAG_REQUESTS:
        b->run.s.requests = (uint64_t)v;
        break;
    case FLAG_STATS_S:
        b->plan.stats_s = v;
        break;
    case FLAG_PROGRESS_S:
        b->plan.progress_s = v;
        break;
    case FLAG_RSS:
        b->plan.rss_sample_ms = (unsigned)v;
        break;
    default:
        b->plan.leak_threshold_s = (unsigned)v;
        break;
    }
    return true;
}

static bool set_own(struct bench* b, int id, const char* value) {
    static const char* const allocators[] = {"tslab", "malloc"};
    int index = 0;
    switch (id) {
    case FLAG_ALLOCATOR:
        index = word_index("allocator", value, allocators, 2);
        b->run.s.use_malloc = index == 1;
        return index >= 0;
    case FLAG_STATS_FILE:
        b->plan.stats_file = value;
        return true;
    case FLAG_JSON:
        b->plan.json_file = value;
        return true;
    case FLAG_DOCTOR:
        return b->plan.doctor = true;
    default:
        return set_number(b, id, value);
    }
}

static void print_help(void) {
    printf(
        "NAME\n  synthetic_bench - load of a server's shape on temporal-slab, or on malloc for comparison\n\n"
        "SYNOPSIS\n  synthetic_bench [--allocator=tslab|malloc] [--pattern=NAME] [flag]...\n\n"
        "DESCRIPTION\n"
        "  Threads serve requests at a rate, or as fast as they can. A request allocates some objects, writes to each\n"
        "  cache line of them, and frees them as the free policy says. Requests belong to phases, which carry their "
        "route\n"
        "  as a label. At the end the program compares its own counts with each other and with the library's.\n\n"
        "  Progress goes to standard error. SIGINT and SIGTERM end the run, and what was done is\n"
        "  printed; SIGUSR1 ends the phase.\n\nOPTIONS\n");
    flags_print(&(struct flag_table){flags, FLAGS});
    flags_print(&load_flags);
    printf("  --help, --version\n\nPATTERNS\n");
    patterns_print();
    printf("\nEXIT STATUS\n  0  done, also after SIGINT and SIGTERM\n  1  counts do not agree, or something could not "
           "be made or written\n"
           "  2  wrong command line\n");
}

int settings_read(struct bench* b, int argc, char** argv) {
    const struct flag_table tables[] = {{flags, FLAGS}, load_flags};
    const struct pattern* p = pattern_default();
    const char* value = NULL;
    for (int i = 1; i < argc; i++) {
        const struct flag* f = flag_take(tables, 2, argc, argv, &i, &value);
        if (f == NULL) return 2;
        if (f == &flags[FLAG_HELP]) return print_help(), 0;
        if (f == &flags[FLAG_VERSION]) return printf("synthetic_bench %s\n", slab_version()) < 0;
        if (f == pattern_flag && !pattern_named(value, NULL, &p)) return 2;
    }
    settings_preset(&b->run.s, p);
    b->plan =
        (struct plan){.duration_s = 60, .rss_sample_ms = 100, .leak_threshold_s = 30, .stats_s = 5, .progress_s = 10};
    for (int i = 1; i < argc; i++) {
        const struct flag* f = flag_take(tables, 2, argc, argv, &i, &value);
        bool own = f >= flags && f < flags + FLAGS;
        if (f == pattern_flag) continue;
        if (!(own ? set_own(b, (int)(f - flags), value) : settings_set(&b->run.s, f, value))) return 2;
    }
    return settings_settle(&b->run.s) ? -1 : 2;
}
