/*
 * options.c - one table of flags feeds the parser, its messages and --help.
 */
#include "options.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The build may name the directory of the handlers; without that they are beside this source. */
#ifndef TSLAB_DEMO_HANDLERS
#define TSLAB_DEMO_HANDLERS NULL
#endif

typedef enum FlagType { FLAG_NUMBER, FLAG_TEXT, FLAG_SWITCH } FlagType;

typedef struct Flag {
    const char *name, *argument, *help;
    FlagType type;
    size_t offset;
    uint64_t low, high, standard;
    const char* standard_text;
    bool internal; /* used between the processes of the demo; not in --help */
} Flag;

#define JSON_NAME "tslab_demo.json"
#define AT(member) offsetof(Options, member)

static const Flag FLAGS[] = {
    {"--requests", "N", "requests per run", FLAG_NUMBER, AT(requests), 1, 100000000, 12000, NULL, false},
    {"--threads", "N", "worker threads (default: one per processor, 2 to 8)", FLAG_NUMBER, AT(threads), 1, 256, 0, NULL,
     false},
    {"--sessions", "N", "sessions that the cache keeps", FLAG_NUMBER, AT(sessions), 1, 1000000, 1000, NULL, false},
    {"--seed", "N", "the same seed gives the same requests", FLAG_NUMBER, AT(seed), 0, UINT64_MAX, 1, NULL, false},
    {"--rounds", "N", "pairs of runs; medians are shown (default 5, with --leak 1)", FLAG_NUMBER, AT(rounds), 1, 99, 0,
     NULL, false},
    {"--leak", "", "one request in a hundred of one route leaks; the doctor is to name it", FLAG_SWITCH, AT(leak), 0, 0,
     0, NULL, false},
    {"--data", "DIR", "directory of the JSON files of iso-codes", FLAG_TEXT, AT(data_dir), 0, 0, 0,
     "/usr/share/iso-codes/json", false},
    {"--handlers", "DIR", "directory of the Lua handlers (default: that of the source)", FLAG_TEXT, AT(handlers_dir), 0,
     0, 0, TSLAB_DEMO_HANDLERS, false},
    {"--json", "FILE", "for the statistics of temporal-slab after a run; -: standard output", FLAG_TEXT, AT(json_file),
     0, 0, 0, NULL, false},
    {"--figures", "FILE", "write the figures of all runs to FILE, as JSON; -: standard output", FLAG_TEXT,
     AT(figures_file), 0, 0, 0, NULL, false},
    {"--backend", "NAME", "run only glibc or tslab, once, and print its figures as JSON", FLAG_TEXT, AT(backend), 0, 0,
     0, NULL, false},
    {"--result-fd", "N", "", FLAG_NUMBER, AT(result_fd), 1, 1 << 20, STDOUT_FILENO, NULL, true},
    {"--snapshot-fd", "N", "", FLAG_NUMBER, AT(snapshot_fd), 0, 1 << 20, 0, NULL, true},
    {"--sums-fd", "N", "", FLAG_NUMBER, AT(sums_fd), 0, 1 << 20, 0, NULL, true},
};

enum { FLAG_COUNT = sizeof FLAGS / sizeof FLAGS[0] };

void options_help(void) {
    printf("usage: tslab_demo [flags]\n\n"
           "A request server in one process, built from the unmodified libraries Lua and cJSON through their\n"
           "allocator hooks: one phase of temporal-slab per request, labelled with its route. Serves the same\n"
           "requests on glibc malloc and on temporal-slab and compares throughput, latency and memory.\n\n");
    for (int f = 0; f < FLAG_COUNT; f++) {
        const Flag* flag = &FLAGS[f];
        if (flag->internal) continue;
        printf("  %-10s %-5s %s", flag->name, flag->argument, flag->help);
        if (flag->type == FLAG_NUMBER && flag->standard) printf(" (default %" PRIu64 ")", flag->standard);
        if (flag->standard_text && flag->offset == AT(data_dir))
            printf("\n                   (default %s)", flag->standard_text);
        if (flag->offset == AT(json_file)) printf("\n                   (default " JSON_NAME " beside this program)");
        printf("\n");
    }
    printf("  --help           this text\n\n"
           "Exit status: 0 done; 1 failed, answers differ, or a file could not be written; 2 wrong flags;\n"
           "130 interrupted.\n");
}

static OptionsResult unknown(const char* name) {
    fprintf(stderr, "tslab_demo: there is no flag '%s'; the flags are", name);
    for (int f = 0; f < FLAG_COUNT; f++)
        if (!FLAGS[f].internal) fprintf(stderr, " %s", FLAGS[f].name);
    fprintf(stderr, " --help\n");
    return OPTIONS_BAD;
}

static bool store(const Flag* flag, const char* text, Options* o) {
    void* member = (char*)o + flag->offset;
    if (flag->type == FLAG_SWITCH) {
        *(bool*)member = true;
        return text == NULL;
    }
    if (flag->type == FLAG_TEXT) {
        *(const char**)member = text;
        return *text != '\0';
    }
    char* end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || number < flag->low || number > flag->high) return false;
    *(uint64_t*)member = number;
    return true;
}

static OptionsResult bad_value(const Flag* flag, const char* text) {
    if (flag->type == FLAG_SWITCH)
        fprintf(stderr, "tslab_demo: %s takes no value\n", flag->name);
    else if (flag->type == FLAG_TEXT)
        fprintf(stderr, "tslab_demo: %s needs a %s: %s %s\n", flag->name, flag->argument, flag->name, flag->argument);
    else
        fprintf(stderr, "tslab_demo: %s '%s': a whole number from %" PRIu64 " to %" PRIu64 " is expected\n", flag->name,
                text, flag->low, flag->high);
    return OPTIONS_BAD;
}

static const char* handlers_beside_source(void) {
    static char path[4096];
    const char* slash = strrchr(__FILE__, '/');
    snprintf(path, sizeof path, "%.*shandlers", slash ? (int)(slash + 1 - __FILE__) : 0, __FILE__);
    return path;
}

static void set_defaults(Options* o) {
    memset(o, 0, sizeof *o);
    for (int f = 0; f < FLAG_COUNT; f++) {
        void* member = (char*)o + FLAGS[f].offset;
        if (FLAGS[f].type == FLAG_TEXT)
            *(const char**)member = FLAGS[f].standard_text;
        else if (FLAGS[f].type == FLAG_NUMBER)
            *(uint64_t*)member = FLAGS[f].standard;
    }
    if (!o->handlers_dir) o->handlers_dir = handlers_beside_source();
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    o->threads = processors < 2 ? 2 : processors > 8 ? 8 : (uint64_t)processors;
}

/* Beside the program as it was called; in the current directory when it was found by its name alone. */
static const char* json_beside_program(const char* program) {
    static char path[4096];
    const char* slash = strrchr(program, '/');
    snprintf(path, sizeof path, "%.*s" JSON_NAME, slash ? (int)(slash + 1 - program) : 0, program);
    return path;
}

/* What the flags leave open, and what does not go together. */
static OptionsResult settle(const char* program, Options* o) {
    if (!o->rounds) o->rounds = o->leak ? 1 : 5;
    if (!o->backend && o->json_file && o->figures_file && !strcmp(o->json_file, "-") && !strcmp(o->figures_file, "-")) {
        fprintf(stderr, "tslab_demo: --json - and --figures -: standard output takes one of them\n");
        return OPTIONS_BAD;
    }
    if (!o->backend) {
        if (!o->json_file) o->json_file = json_beside_program(program);
        return OPTIONS_OK;
    }
    bool glibc = strcmp(o->backend, "glibc") == 0;
    if (!glibc && strcmp(o->backend, "tslab") != 0)
        fprintf(stderr, "tslab_demo: --backend %s: it is glibc or tslab\n", o->backend);
    else if (o->figures_file)
        fprintf(stderr, "tslab_demo: --figures: with --backend they go to standard output\n");
    else if (o->json_file && (glibc || !strcmp(o->json_file, "-")))
        fprintf(stderr, "tslab_demo: --json %s: %s\n", o->json_file,
                glibc ? "glibc has no statistics to write" : "with --backend standard output has the figures");
    else
        return OPTIONS_OK;
    return OPTIONS_BAD;
}

OptionsResult options_parse(int argc, char** argv, Options* o) {
    set_defaults(o);
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) return OPTIONS_HELP;
        size_t len = strcspn(argv[i], "="); /* --name value and --name=value */
        int f = 0;
        while (f < FLAG_COUNT && (strlen(FLAGS[f].name) != len || strncmp(FLAGS[f].name, argv[i], len) != 0)) f++;
        if (f == FLAG_COUNT) return unknown(argv[i]);
        const char* value = argv[i][len] ? argv[i] + len + 1 : NULL;
        if (!value && FLAGS[f].type != FLAG_SWITCH) value = i + 1 < argc ? argv[++i] : "";
        if (!store(&FLAGS[f], value, o)) return bad_value(&FLAGS[f], value);
    }
    return settle(argc ? argv[0] : "", o);
}
