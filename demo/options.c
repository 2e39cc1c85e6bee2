/*
 * options.c - the table of flags, what they leave open, and what does not go together.
 */
#include "options.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/flags.h"

#define JSON_NAME "tslab_demo.json"
#define DATA_DIR "/usr/share/iso-codes/json"

static void print_help(const struct command_line* c) {
    printf("usage: tslab_demo [flags]\n\n"
           "A request server in one process, built from the unmodified libraries Lua and cJSON through their\n"
           "allocator hooks: one phase of temporal-slab per request, labelled with its route. Serves the same\n"
           "requests on glibc malloc and on temporal-slab and compares processor time, page faults,\n"
           "memory, rate and latency.\n\n");
    flags_print(c, c->tables[0]);
    printf("  --help           this text\n\n"
           "Exit status: 0 done; 1 failed, answers differ, or a file could not be written; 2 wrong flags;\n"
           "130 interrupted.\n");
}

static void set_defaults(Options* o) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    *o = (Options){.threads = processors < 2   ? 2
                              : processors > 8 ? 8
                                               : (uint64_t)processors,
                   .data_dir = DATA_DIR,
                   .handlers_dir = TSLAB_DEMO_HANDLERS}; /* CMakeLists.txt */
}

/* Beside the program as it was called; in the current directory when it was found by its name alone. */
static const char* json_beside_program(const char* program) {
    static char path[4096];
    const char* slash = strrchr(program, '/');
    snprintf(path, sizeof path, "%.*s" JSON_NAME, slash ? (int)(slash + 1 - program) : 0, program);
    return path;
}

/* False after a complaint. */
static bool settle(const char* program, Options* o) {
    if (!o->rounds) o->rounds = o->leak ? 1 : 5;
    if (!o->backend) {
        if (o->json_file && o->figures_file && !strcmp(o->json_file, "-") && !strcmp(o->figures_file, "-"))
            return flags_wrong("--json - and --figures -: standard output takes one of them");
        if (!o->json_file) o->json_file = json_beside_program(program);
        return true;
    }
    bool glibc = strcmp(o->backend, "glibc") == 0;
    if (o->tables) return flags_wrong("--tables: with --backend the figures are JSON");
    if (o->figures_file) return flags_wrong("--figures: with --backend they go to standard output");
    if (o->json_file && (glibc || !strcmp(o->json_file, "-")))
        return flags_wrong("--json %s: %s", o->json_file,
                           glibc ? "glibc has no statistics to write"
                                 : "with --backend standard output has the figures");
    return true;
}

int options_read(int argc, char** argv, Options* o) {
    struct flag flags[] = {
        {"--requests", FLAG_COUNT, &o->requests, .least = 1, .most = 100000000, .preset = 12000,
         .help = "requests per run"},
        {"--threads", FLAG_COUNT, &o->threads, .least = 1, .most = 256,
         .help = "worker threads (default: one per processor, 2 to 8)"},
        {"--sessions", FLAG_COUNT, &o->sessions, .least = 1, .most = 1000000, .preset = 1000,
         .help = "sessions that the cache keeps"},
        {"--seed", FLAG_COUNT, &o->seed, .preset = 1, .help = "the same seed gives the same requests"},
        {"--rounds", FLAG_COUNT, &o->rounds, .least = 1, .most = 99,
         .help = "pairs of runs; medians are shown (default 5, with --leak 1)"},
        {"--leak", FLAG_SWITCH, &o->leak,
         .help = "one request in a hundred of one route leaks; the doctor is to name it"},
        {"--tables", FLAG_SWITCH, &o->tables,
         .help = "every figure: by route, by label, phases, a receipt, the doctor's text"},
        {"--data", FLAG_TEXT, &o->data_dir, .argument = "DIR",
         .help = "directory of the JSON files of iso-codes (default " DATA_DIR ")"},
        {"--handlers", FLAG_TEXT, &o->handlers_dir, .argument = "DIR",
         .help = "directory of the Lua handlers (default: that of the source)"},
        {"--json", FLAG_TEXT, &o->json_file, .argument = "FILE",
         .help = "for the statistics of temporal-slab after a run; -: standard output (default " JSON_NAME
                 " beside this program)"},
        {"--figures", FLAG_TEXT, &o->figures_file, .argument = "FILE",
         .help = "write the figures of all runs to FILE, as JSON; -: standard output"},
        {"--backend", FLAG_WORD, &o->backend, .words = FLAG_WORDS("glibc", "tslab"), .argument = "NAME",
         .help = "run only glibc or tslab, once, and print its figures as JSON"},
        /* Between the processes of the demo. */
        {"--result-fd", FLAG_COUNT, &o->result_fd, .least = 1, .most = 1 << 20, .preset = STDOUT_FILENO},
        {"--snapshot-fd", FLAG_COUNT, &o->snapshot_fd, .most = 1 << 20},
        {"--sums-fd", FLAG_COUNT, &o->sums_fd, .most = 1 << 20},
        {.name = NULL},
    };
    set_defaults(o);
    int status = flags_read(&(struct command_line){"tslab_demo", NULL, print_help, 19, ' ', {flags}, argc, argv});
    if (status < 0 && !settle(argc ? argv[0] : "", o)) status = 2;
    return status;
}
