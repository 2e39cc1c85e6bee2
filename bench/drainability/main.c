/*
 * main.c - tslab_drainability: flags, children, exit code.
 *
 * Each arm runs in a child process of its own, so that resident sizes start from the same place, and writes into memory
 * shared with the parent. An interrupt sets a flag that the children look at after each epoch; what is done by then is
 * reported, and the rest is left out.
 *
 * Exit code: 0; 1 for a defect (see arm.c), a child that died, or a file that cannot be written; 2 for wrong usage; 130
 * after an interrupt.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/flags.h"
#include "drainability.h"
#include "machine.h"

enum { LEAST_REQUESTS = 10000, MOST_REQUESTS = 300000, REQUEST_STEP = 1000 };

static struct results* results; /* shared */

static void on_interrupt(int signal_number) {
    (void)signal_number;
    results->stop = 1;
}

/* ---- children --------------------------------------------------------------------------- */

/* Runs in a child: an arm, or a granule when arm is NULL. */
static void run_child(struct arm* arm, struct granule* granule) {
    if (results->stop) return;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGINT, SIG_IGN); /* the parent's handler sets the flag */
        signal(SIGTERM, SIG_IGN);
        if (arm)
            arm_run(arm, &results->stop);
        else
            granule_run(granule, results->quick, results->seed);
        _exit(0);
    }
    int status = 0;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    results->failures++;
    fprintf(stderr, "tslab_drainability: %s %s\n", arm ? arm->load.name : "granules",
            child < 0             ? "could not be started"
            : WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                  : "failed");
}

static void run_all(struct results* r) {
    for (unsigned k = 0; r->wanted[SECTION_ROUTING] && k < ROUTING_ARMS; k++) run_child(&r->routing[k], NULL);
    for (unsigned i = 0; r->wanted[SECTION_LIFETIMES] && i < LIFETIMES; i++)
        for (unsigned k = 0; k < ROUTING_ARMS; k++)
            if (r->lifetimes[i][k].load.name) run_child(&r->lifetimes[i][k], NULL);
    for (unsigned i = 0; r->wanted[SECTION_SWEEP] && i < SWEEPS; i++)
        for (unsigned k = 0; k < SWEEP_STEPS; k++) run_child(&r->sweep[i][k], NULL);
    for (unsigned i = 0; r->wanted[SECTION_GRANULES] && i < GRANULE_SIZES; i++)
        for (unsigned k = 0; k < SWEEP_STEPS; k++) run_child(NULL, &r->granules[i][k]);
    if (isatty(2)) fprintf(stderr, "\r\033[K");
}

/* ---- command line ----------------------------------------------------------------------- */

struct arguments {
    const char *json, *csv;
};

static void print_help(const struct command_line* c) {
    printf("usage: tslab_drainability [--quick] [--only SECTION]... [--requests N] [--seed N]\n"
           "                          [--json FILE] [--csv FILE] [--help]\n"
           "Which closes of an epoch find it empty when long-lived objects are allocated in it, and what those pin.\n");
    flags_print(c, c->tables[0]);
    printf("Exit code 1: more slabs were held than live objects can pin, or a receipt did not balance.\n");
}

static bool want_section(void* wanted, const char* name) {
    for (unsigned i = 0; i < SECTIONS; i++) ((bool*)wanted)[i] |= strcmp(section_names[i], name) == 0;
    return true;
}

/* -1: go on, else the exit code. */
static int parse(int argc, char** argv, struct results* r, struct arguments* args) {
    bool some = false;
    struct flag flags[] = {
        {"--quick", FLAG_SWITCH, &r->quick, .help = "10,000 requests, fewer loads and epochs"},
        {"--only", FLAG_WORD, r->wanted, want_section, .words = section_names, .argument = "SECTION",
         .help = "routing, lifetimes, sweep or granules; may be repeated"},
        {"--requests", FLAG_COUNT, &r->requests, .least = LEAST_REQUESTS, .most = MOST_REQUESTS,
         .help = "length of each arm of routing and lifetimes, 10000 to 300000 in steps of 1000 (default 200000)"},
        {"--seed", FLAG_COUNT, &r->seed, .most = UINT32_MAX,
         .help = "of all random choices, 0 to 4294967295 (default 42)"},
        {"--json", FLAG_TEXT, &args->json, .argument = "FILE", .help = "writes all results"},
        {"--csv", FLAG_TEXT, &args->csv, .argument = "FILE",
         .help = "writes the course of each arm of routing and lifetimes"},
        {.name = NULL},
    };
    r->seed = 42;
    int code = flags_read(&(struct command_line){"tslab_drainability", NULL, print_help, 18, ' ', {flags}, argc, argv});
    if (code >= 0) return code;
    if (r->requests % REQUEST_STEP != 0)
        return flags_wrong("--requests goes in steps of %d, not '%" PRIu64 "'", REQUEST_STEP, r->requests), 2;
    for (unsigned i = 0; i < SECTIONS; i++) some |= r->wanted[i];
    for (unsigned i = 0; i < SECTIONS; i++) r->wanted[i] |= !some;
    return -1;
}

/* ---- files ------------------------------------------------------------------------------ */

/* Opened before the work begins, so that a wrong path is not found out after it. */
static FILE* open_output(const char* path) {
    FILE* f = path ? fopen(path, "w") : NULL;
    if (f || !path) return f;
    fprintf(stderr, "tslab_drainability: cannot write '%s': %s\n", path, strerror(errno));
    exit(1);
}

static bool close_output(FILE* f, const char* path) {
    if (!f) return true;
    bool ok = !ferror(f);
    if (fclose(f) == 0 && ok) return true;
    fprintf(stderr, "tslab_drainability: cannot write '%s': %s\n", path, strerror(errno));
    return false;
}

static int verdict(const struct results* r, bool written) {
    const char* first = "";
    uint64_t defects = results_defects(r, &first);
    if (defects > 0)
        fprintf(stderr, "tslab_drainability: DEFECT: %s (%llu in all)\n", first, (unsigned long long)defects);
    if (defects > 0 || r->failures > 0 || !written) return 1;
    return r->stop ? 130 : 0;
}

int main(int argc, char** argv) {
    results = mmap(NULL, sizeof *results, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (results == MAP_FAILED) {
        fprintf(stderr, "tslab_drainability: %s\n", strerror(errno));
        return 1;
    }
    struct results* r = results;
    struct arguments args = {0};
    int code = parse(argc, argv, r, &args);
    if (code >= 0) return code;
    r->command = command_text(argc, argv);
    r->options = getenv("TSLAB_OPTIONS");
    plan_fill(r);

    struct sigaction on = {.sa_handler = on_interrupt};
    sigaction(SIGINT, &on, NULL);
    sigaction(SIGTERM, &on, NULL);
    FILE *json = open_output(args.json), *csv = open_output(args.csv);
    run_all(r);

    report_text(r);
    if (json) export_json(r, json);
    if (csv) export_csv(r, csv);
    bool written = close_output(json, args.json);
    written &= close_output(csv, args.csv);
    if (fflush(stdout) != 0) {
        fprintf(stderr, "tslab_drainability: standard output: %s\n", strerror(errno));
        written = false;
    }
    return verdict(r, written);
}
