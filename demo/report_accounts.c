/*
 * report_accounts.c - prints what the allocator itself says of a run: its accounts by label, and its doctor, whose
 * lines are broken where they would be wider than the page.
 */
#include "compare.h"
#include "figures.h"
#include "routes.h"

#include <math.h>
#include <string.h>

enum { PAGE_WIDTH = 100 };

/* ---- by label ----------------------------------------------------------------------------- */

static const char* name_of(const cJSON* l) {
    const char* name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(l, "label"));
    return name ? name : "";
}

static const cJSON* label_named(const cJSON* labels, const char* name) {
    const cJSON* l;
    cJSON_ArrayForEach(l, labels) if (strcmp(name_of(l), name) == 0) return l;
    return NULL;
}

static void print_label(const cJSON* l) {
    char text[8][32];
    double objects = figure(l, "objects"), samples = figure(l, "samples");
    if (!(objects > 0)) return;
    printf("  %-21s %7s %8s %8s %8s %7s %5.1f %% %7s %8s %8s\n", name_of(l), counted(figure(l, "phases"), 7, text[0]),
           counted(objects, 8, text[1]), shown(figure(l, "bytes"), UNIT_SIZE, text[2]),
           shown(figure(l, "peak_bytes"), UNIT_SIZE, text[3]), counted(figure(l, "objects_escaped"), 7, text[4]),
           100 * figure(l, "slow_path_hits") / objects, counted(samples, 7, text[5]),
           shown(samples > 0 ? figure(l, "sampled_cpu_ns") / samples : NAN, UNIT_TIME, text[6]),
           shown(samples > 0 ? figure(l, "sampled_wait_ns") / samples : NAN, UNIT_TIME, text[7]));
}

void report_labels(const cJSON* run) {
    const cJSON* labels = cJSON_GetObjectItemCaseSensitive(run, "labels");
    const cJSON* l;
    if (!labels) return;
    printf("\nBy label, from the allocator's own accounts (slab_stats_labels); sums of one run\n"
           "                                                                           sampled slow allocations\n"
           "  %-21s %7s %8s %8s %8s %7s %7s %7s %8s %8s\n",
           "", "phases", "objects", "bytes", "peak", "escaped", "slow", "number", "cpu", "wait");
    for (int r = 0; r < ROUTE_COUNT; r++)
        if ((l = label_named(labels, ROUTES[r].label))) print_label(l);
    cJSON_ArrayForEach(l, labels) if (route_find(name_of(l), strlen(name_of(l))) == ROUTE_COUNT) print_label(l);
    printf("  peak: most bytes of pages that its phases held at once; escaped: objects that outlived their\n"
           "  phase; slow: share of its allocations that left the fast path; cpu, wait: of one slow one in\n"
           "  %.0f, on average, the time that its thread ran and that it waited for a processor\n",
           figure(run, "sampling_period"));
}

static void print_label_briefly(const cJSON* l) {
    char text[5][32];
    if (!(figure(l, "objects") > 0)) return;
    printf("  %-31s %12s %14s %10s %10s %8s\n", name_of(l), grouped(figure(l, "phases"), text[0]),
           grouped(figure(l, "objects"), text[1]), shown(figure(l, "bytes"), UNIT_SIZE, text[2]),
           shown(figure(l, "peak_bytes"), UNIT_SIZE, text[3]), counted(figure(l, "objects_escaped"), 7, text[4]));
}

void report_labels_briefly(const cJSON* run) {
    const cJSON* labels = cJSON_GetObjectItemCaseSensitive(run, "labels");
    const cJSON* l;
    printf("\n  %-31s %12s %14s %10s %10s %8s\n", "by label, counted by the library", "phases", "objects", "bytes",
           "peak", "escaped");
    cJSON_ArrayForEach(l, labels) print_label_briefly(l);
}

/* ---- the doctor --------------------------------------------------------------------------- */

/* Prints a line; what is too wide goes on below, three columns further in than it began. */
static void print_folded(const char* line, size_t len) {
    size_t indent = strspn(line, " "), at = 0, room = PAGE_WIDTH - 2;
    while (len - at > room) {
        size_t end = at + room;
        while (end > at && line[end] != ' ') end--;
        if (end == at) end = at + room; /* one word, wider than the page */
        printf("%*s%.*s\n", at ? (int)indent + 5 : 2, "", (int)(end - at), line + at);
        at = end + strspn(line + end, " ");
        room = PAGE_WIDTH - 5 - indent;
    }
    printf("%*s%.*s\n", at ? (int)indent + 5 : 2, "", (int)(len - at), line + at);
}

static bool is_action(const char* line) { return strncmp(line + strspn(line, " "), "ACTION", 6) == 0; }

/* The rows of sections 2 and 3, classes and closes, would fill the page. */
static bool is_row(const char* line, char section) {
    return *line == ' ' && !is_action(line) && (section == '2' || section == '3');
}

void report_doctor(const cJSON* run) {
    const char* text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run, "doctor"));
    char section = '0';
    if (!text) return;
    printf("\nThe doctor (slab_doctor_ex) after the last request; rows by class and by close are left out\n");
    for (const char* line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (*line != ' ') section = *line;
        if (!is_row(line, section)) print_folded(line, strcspn(line, "\n"));
    }
}

void report_doctor_briefly(const cJSON* run, bool leaks) {
    const char* text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run, "doctor"));
    char section = '0';
    if (!text) return;
    if (!leaks) printf("\n");
    for (const char* line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (*line != ' ') section = *line;
        bool numbered = line[strspn(line, "0123456789")] == '.', verdict = !numbered && *line != ' ' && line != text;
        bool of_leaks = section == '1' && (numbered || *line == ' ');
        if (leaks ? of_leaks : verdict || is_action(line)) print_folded(line, strcspn(line, "\n"));
    }
}

void report_leak(const cJSON* run, const cJSON* on_glibc) {
    char text[32], path[64];
    const cJSON* leak = cJSON_GetObjectItemCaseSensitive(run, "leak");
    snprintf(path, sizeof path, "routes.%d.leaked", (int)LEAK_ROUTE);
    printf("Leak: %s request%s of %s left an object behind", grouped(figure(run, path), text),
           figure(run, path) == 1 ? "" : "s", ROUTES[LEAK_ROUTE].label);
    if (on_glibc) printf("; %s with glibc malloc, which reports nothing", grouped(figure(on_glibc, path), text));
    if (leak)
        printf(".\nWhile requests were served, the library named %s after %.1f s.\n", name_of(leak),
               figure(leak, "named_seconds"));
    else printf(".\nThe run was too short to ask the library while requests were served: more --requests.\n");
    printf("The doctor, after the last request:\n");
    report_doctor_briefly(run, true);
    printf("From outside, while it runs (`make tslab` builds the tool, with Go):\n"
           "  export TSLAB_OPTIONS=segment=1\n"
           "  build/demo/tslab_demo --backend tslab --leak --requests 9999999 >/dev/null 2>&1 & sleep 5\n"
           "  build/tslab doctor --pid $! --leak-age 1\n\n");
}
