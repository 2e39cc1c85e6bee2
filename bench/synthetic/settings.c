/*
 * settings.c - synthetic_bench's own flags, beside those of the load. The pattern is looked for first and sets
 * everything else; every other flag overrides its preset, wherever it stands on the command line.
 */
#include <string.h>

#include "common/flags.h"
#include "synthetic.h"

static void print_help(const struct command_line* c) {
    printf(
        "NAME\n  %s - load of a server's shape on temporal-slab, or on malloc for comparison\n\n"
        "SYNOPSIS\n  %s [--allocator=tslab|malloc] [--pattern=NAME] [flag]...\n\n"
        "DESCRIPTION\n"
        "  Threads serve requests at a rate, or as fast as they can. A request allocates some objects, writes to each\n"
        "  cache line of them, and frees them as the free policy says. Requests belong to phases, which carry their "
        "route\n"
        "  as a label. At the end the program compares its own counts with each other and with the library's.\n\n"
        "  Progress goes to standard error. SIGINT and SIGTERM end the run, and what was done is\n"
        "  printed; SIGUSR1 ends the phase.\n\nOPTIONS\n",
        program_name, program_name);
    flags_print(c, c->tables[0]);
    flags_print(c, c->tables[1]);
    printf("  --help, --version\n\nPATTERNS\n");
    patterns_print();
    printf("\nEXIT STATUS\n  0  done, also after SIGINT and SIGTERM\n  1  counts do not agree, or something could not "
           "be made or written\n"
           "  2  wrong command line\n");
}

int settings_read(struct bench* b, int argc, char** argv) {
    const char *allocator = "tslab", *pattern;
    struct plan* p = &b->plan;
    struct flag flags[] = {
        {"--allocator", FLAG_WORD, &allocator, .words = FLAG_WORDS("tslab", "malloc"), .argument = "NAME",
         .help = "tslab (default), or malloc: whatever the process has, LD_PRELOAD included"},
        {"--duration_s", FLAG_REAL, &p->duration_s, .most = 1e7, .argument = "S",
         .help = "how long it runs; 0: until SIGINT or SIGTERM (default: 60)"},
        {"--requests", FLAG_COUNT, &b->run.s.requests, .most = 1e15,
         .help = "ends after N requests, if that is sooner; 0: no such limit (default)"},
        {"--rss_sample_ms", FLAG_UNSIGNED, &p->rss_sample_ms, .most = 3600000, .argument = "MS",
         .help = "how often the resident size is read for its peak; 0: at start and end only (default: 100)"},
        {"--stats-file", FLAG_TEXT, &p->stats_file, .argument = "FILE",
         .help = "now and then and at the end: statistics as JSON, with benchmark_* counters; replaced by rename"},
        {"--json", FLAG_TEXT, &p->json_file, .argument = "FILE", .help = "settings and results as JSON, at the end"},
        {"--doctor", FLAG_SWITCH, &p->doctor, .help = "the library's diagnosis on standard error, at the end"},
        {"--leak_threshold_s", FLAG_UNSIGNED, &p->leak_threshold_s, .most = 1000000, .argument = "S",
         .help = "age from which an ended phase that holds objects is a leak, also to the doctor (default: 30)"},
        {"--stats_s", FLAG_REAL, &p->stats_s, .most = 1e6, .argument = "S",
         .help = "how often the statistics file is written; 0: at the end only (default: 5)"},
        {"--progress_s", FLAG_REAL, &p->progress_s, .most = 1e6, .argument = "S",
         .help = "how often a line of progress is printed; 0: never (default: 10)"},
        {.name = NULL},
    };
    const struct command_line c = {"synthetic_bench", slab_version(), print_help, 26, '=',
                                   {flags, settings_flags(&b->run.s, NULL)}, argc, argv};
    *p = (struct plan){.duration_s = 60, .rss_sample_ms = 100, .leak_threshold_s = 30, .stats_s = 5, .progress_s = 10};
    pattern = flags_value(&c, "--pattern");
    settings_preset(&b->run.s, pattern != NULL ? pattern : "burst");
    int status = flags_read(&c);
    if (status >= 0) return status;
    b->run.s.use_malloc = strcmp(allocator, "malloc") == 0;
    return settings_settle(&b->run.s) ? -1 : 2;
}
