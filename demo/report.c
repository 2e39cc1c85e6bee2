/*
 * report.c - prints the comparison on one screen, the verdict (report_verdict.c) first; every table with --tables. Each
 * figure shown is the median over a backend's complete runs (over its interrupted one when there is no other), each ratio
 * the median over pairs of runs. The figures of phases and labels are those of one run on temporal-slab: they hardly
 * differ from run to run.
 */
#include "compare.h"

#include "figures.h"
#include "routes.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- figures ------------------------------------------------------------------------------ */

/* The figures of a backend's usable runs in ascending order; returns their number. */
static int sorted_figures(const Comparison* c, BackendKind kind, const char* path, double out[RUNS_MAX]) {
    int n = 0;
    for (int pass = 0; pass < 2 && n == 0; pass++)
        for (int r = 0; r < c->run_count[kind]; r++)
            if (run_complete(c->runs[kind][r]) || (pass == 1 && figure(c->runs[kind][r], "done") > 0))
                out[n++] = figure(c->runs[kind][r], path);
    figures_sort(out, n);
    return n;
}

double report_median(const Comparison* c, BackendKind kind, const char* path) {
    double values[RUNS_MAX];
    int n = sorted_figures(c, kind, path, values);
    return figures_median(values, n);
}

/* ---- the parts of the report -------------------------------------------------------------- */

static void print_row(const char* name, double glibc, double tslab, double ratio, Unit unit) {
    char left[32], right[32], text[32] = "";
    if (!isnan(ratio)) snprintf(text, sizeof text, "%.2f", ratio);
    printf("  %-34s %14s %14s %8s\n", name, shown(glibc, unit, left), shown(tslab, unit, right), text);
}

static void print_overall(const Comparison* c) {
    static const struct {
        const char *name, *path;
        Unit unit;
    } ROWS[] = {
        {"requests per second", "requests_per_second", UNIT_COUNT},
        {"processor time", "cpu_seconds", UNIT_SECONDS},
        {"page faults", "page_faults", UNIT_COUNT},
        {"latency, mean", "latency_ns.mean", UNIT_TIME},
        {"latency, p50", "latency_ns.p50", UNIT_TIME},
        {"latency, p99", "latency_ns.p99", UNIT_TIME},
        {"latency, p99.9", "latency_ns.p999", UNIT_TIME},
        {"latency, longest", "latency_ns.max", UNIT_TIME},
        {"resident at the start", "rss.start", UNIT_SIZE},
        {"resident, reference data loaded", "rss.loaded", UNIT_SIZE},
        {"resident at the peak", "rss.peak", UNIT_SIZE},
        {"resident after the last phase", "rss.end", UNIT_SIZE},
        {"live then, by the allocator's count", "live_bytes", UNIT_SIZE},
        {"sessions kept then", "sessions.kept", UNIT_COUNT},
    };
    printf("  %-34s %14s %14s %8s\n", "", "glibc malloc", "temporal-slab", "ratio");
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++)
        print_row(ROWS[i].name, report_median(c, BACKEND_GLIBC, ROWS[i].path),
                  report_median(c, BACKEND_TSLAB, ROWS[i].path), report_ratio(c, ROWS[i].path), ROWS[i].unit);
    for (int k = 0; k < BACKEND_COUNT; k++) {
        double values[RUNS_MAX];
        char low[32], high[32];
        int n = sorted_figures(c, (BackendKind)k, "requests_per_second", values);
        if (n > 1)
            printf("  spread of requests per second on %s over %d runs: %s to %s\n", backend_name((BackendKind)k), n,
                   grouped(values[0], low), grouped(values[n - 1], high));
    }
}

static double of_route(const cJSON* run, int route, const char* name) {
    char path[64];
    snprintf(path, sizeof path, "routes.%d.%s", route, name);
    return figure(run, path);
}

static void print_route_latency(const Comparison* c) {
    static const char* const names[2] = {"p50", "p99"};
    char path[64], text[4][32];
    printf("\nLatency by route                          p50                         p99\n"
           "  %-22s %6s %12s %12s    %12s %12s\n",
           "", "share", "glibc", "tslab", "glibc", "tslab");
    for (int r = 0; r < ROUTE_COUNT; r++) {
        for (int i = 0; i < 4; i++) {
            snprintf(path, sizeof path, "routes.%d.latency_ns.%s", r, names[i / 2]);
            double value = report_median(c, i % 2 ? BACKEND_TSLAB : BACKEND_GLIBC, path);
            shown(value > 0 ? value : NAN, UNIT_TIME, text[i]);
        }
        printf("  %-22s %4.1f %% %12s %12s    %12s %12s\n", ROUTES[r].label, ROUTES[r].weight / 10.0, text[0], text[1],
               text[2], text[3]);
    }
}

static void print_phases(const cJSON* run) {
    printf("\nPhases by route, from their receipts, of the same run; figures are those of one phase\n"
           "                               objects               bytes          pages held      ended     end\n"
           "  %-22s %7s %7s %10s %10s %9s %9s %8s %8s\n",
           "", "mean", "most", "mean", "most", "mean", "most", "in bulk", "takes");
    for (int r = 0; r < ROUTE_COUNT; r++) {
        char text[7][32];
        double phases = of_route(run, r, "phases");
        if (!(phases > 0)) continue;
        printf("  %-22s %7s %7s %10s %10s %9s %9s %6.1f %% %8s\n", ROUTES[r].label,
               grouped(of_route(run, r, "objects") / phases, text[0]),
               grouped(of_route(run, r, "max_objects"), text[1]),
               shown(of_route(run, r, "bytes") / phases, UNIT_SIZE, text[2]),
               shown(of_route(run, r, "max_bytes"), UNIT_SIZE, text[3]),
               shown(of_route(run, r, "held_bytes") / phases, UNIT_SIZE, text[4]),
               shown(of_route(run, r, "max_held_bytes"), UNIT_SIZE, text[5]),
               100 * of_route(run, r, "objects_released") / of_route(run, r, "objects"),
               shown(of_route(run, r, "close_ns") / phases, UNIT_TIME, text[6]));
    }
    printf("  bytes: everything the phase allocated; pages held: what its end gave back, which is its peak,\n"
           "  since an open phase keeps its slabs; in bulk: objects that nobody freed singly\n");
}

static void print_receipt(const cJSON* run) {
    const cJSON* receipt = cJSON_GetObjectItemCaseSensitive(run, "receipt");
    if (!receipt) return;
    char text[32];
    printf("\nThe receipt of one request (number %s)\n", grouped(figure(receipt, "request"), text));
    const cJSON* field;
    cJSON_ArrayForEach(field, receipt) {
        if (cJSON_IsString(field)) printf("  %-20s %s\n", field->string, field->valuestring);
        else if (!strcmp(field->string, "epoch_id"))
            printf("  %-20s 0x%08" PRIx32 "\n", field->string, (uint32_t)field->valuedouble);
        else if (strcmp(field->string, "request") != 0) printf("  %-20s %.0f\n", field->string, field->valuedouble);
    }
}

/* What is wrong with a run, a sentence each. */
static bool print_faults(const cJSON* run, BackendKind kind, int number) {
    double failed = 0;
    for (int route = 0; route < ROUTE_COUNT; route++) failed += of_route(run, route, "failed");
    double refused = figure(run, "refusals"), differing = figure(run, "accounts_differing");
    const char* name = backend_name(kind);
    if (failed > 0) printf("Run %d on %s: requests that FAILED (status 5xx): %.0f.\n", number, name, failed);
    if (refused > 0) printf("Run %d on %s: calls that the allocator REFUSED: %.0f.\n", number, name, refused);
    if (differing > 0)
        printf("Run %d on %s: figures of labels that DIFFER from the receipts of their phases: %.0f.\n", number, name,
               differing);
    if (!run_complete(run))
        printf("Run %d on %s was interrupted after %.0f of %.0f requests.\n", number, backend_name(kind),
               figure(run, "done"), figure(run, "requests"));
    return failed > 0 || refused > 0 || differing > 0;
}

static void print_agreement(const Comparison* c) {
    double differing = 0, phases = 0;
    char text[32];
    for (int r = 0; r < c->run_count[BACKEND_TSLAB]; r++) {
        differing += figure(c->runs[BACKEND_TSLAB][r], "accounts_differing");
        phases += figure(c->runs[BACKEND_TSLAB][r], "accounts_compared");
    }
    if (phases > 0 && differing == 0)
        printf("Accounts: those of the labels agree with the receipts of all %s phases.\n", grouped(phases, text));
}

static void print_checks(Comparison* c) {
    char first[32], second[32];
    int runs = c->run_count[BACKEND_GLIBC] + c->run_count[BACKEND_TSLAB];
    if (c->options->tables) printf("\n");
    if (runs > 1 && c->differing == 0)
        printf("Answers: all %s compared over %d runs are identical on both backends.\n",
               grouped((double)c->compared, first), runs);
    else if (runs > 1)
        printf("Answers: %s of %s DIFFER between runs; the first is request %" PRIu64 ".\n",
               grouped((double)c->differing, first), grouped((double)c->compared, second), c->first_differing);
    for (int k = 0; k < BACKEND_COUNT; k++)
        for (int r = 0; r < c->run_count[k]; r++) c->unsound |= print_faults(c->runs[k][r], (BackendKind)k, r + 1);
    print_agreement(c);
    if (c->out_of_time)
        printf("Rounds were left out to stay under a minute; take fewer --requests for more --rounds.\n");
    if (c->interrupted) printf("Interrupted: the figures are those of what was done.\n");
}

static void print_tables(const Comparison* c) {
    printf("\nEvery figure, medians of all runs; the ratio is the median over pairs of runs\n");
    print_overall(c);
    print_route_latency(c);
    if (!c->shown) return;
    report_labels(c->shown);
    print_phases(c->shown);
    print_receipt(c->shown);
    report_doctor(c->shown);
}

void report_print(Comparison* c) {
    const Options* o = c->options;
    char requests[32];
    if (c->run_count[BACKEND_GLIBC] + c->run_count[BACKEND_TSLAB] == 0) {
        printf("%s\n", c->interrupted ? "Interrupted before the first run was done: there is nothing to show."
                                      : "No run was done.");
        return;
    }
    printf("\nA request server on Lua and cJSON, a phase for each request: %s requests on %" PRIu64 " thread%s\n",
           grouped((double)o->requests, requests), o->threads, o->threads == 1 ? "" : "s");
    if (c->shown && o->leak) report_leak(c->shown, c->runs[BACKEND_GLIBC][0]);
    if (!o->leak || o->rounds > 1 || o->tables) report_verdict(c);
    if (c->shown && !o->tables && !o->leak) {
        report_labels_briefly(c->shown);
        report_doctor_briefly(c->shown, false);
    }
    if (o->tables) print_tables(c);
    print_checks(c);
    if (!o->tables)
        printf("More: --tables (latency by route, phases, a receipt, every figure); %s\n",
               o->leak ? "without --leak: a comparison" : "--leak");
    fflush(stdout);
}

bool report_write_json(FILE* out, const void* ctx) {
    const Comparison* c = ctx;
    cJSON* root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "answers_compared", (double)c->compared);
    cJSON_AddNumberToObject(root, "answers_differing", (double)c->differing);
    cJSON_AddBoolToObject(root, "interrupted", c->interrupted);
    cJSON_AddNumberToObject(root, "requests", (double)c->options->requests);
    cJSON_AddNumberToObject(root, "threads", (double)c->options->threads);
    cJSON_AddNumberToObject(root, "sessions", (double)c->options->sessions);
    cJSON_AddNumberToObject(root, "seed", (double)c->options->seed);
    cJSON* runs = cJSON_AddArrayToObject(root, "runs");
    for (int k = 0; k < BACKEND_COUNT; k++)
        for (int r = 0; r < c->run_count[k]; r++) cJSON_AddItemReferenceToArray(runs, c->runs[k][r]);
    char* text = cJSON_Print(root);
    cJSON_Delete(root);
    bool ok = text && fputs(text, out) >= 0 && fputc('\n', out) != EOF;
    cJSON_free(text);
    return ok;
}
