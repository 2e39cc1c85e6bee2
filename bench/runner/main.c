/*
 * main.c - tslab_bench: which cells, how often, in which order.
 *
 * Each cell is first checked (a small run with contents verified), then timed in every repetition; the
 * order of the backends turns with the repetition. On ctrl-C the worker that runs is ended and what has been measured is
 * reported.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "machine.h"
#include "runner/backends.h"
#include "runner/child.h"
#include "runner/options.h"

enum { CELL_SECONDS = 60, FULL_CELL_SECONDS = 240, COUNT_SECONDS = 120 };
enum { FULL_REPETITIONS = 7, QUICK_REPETITIONS = 3, QUICK_PART = 5 };

static struct results results;
static unsigned cells_due, cells_done;

static void on_signal(int signal) {
    (void)signal;
    interrupted = 1;
}

/* One line that is written over on a terminal; elsewhere a line for each row. */
static void progress(const char* doing, unsigned row, const struct backend* b) {
    cells_done++;
    if (isatty(2)) fprintf(stderr, "\r\033[K[%u/%u] %s: %s, %s", cells_done, cells_due, doing, rows[row].name, b->name);
}

static void progress_row(const char* doing, unsigned row) {
    if (!isatty(2)) fprintf(stderr, "[%u/%u] %s: %s\n", cells_done, cells_due, doing, rows[row].name);
}

static bool runnable(const struct results* r, unsigned row, unsigned b) {
    enum state s = r->cells[row][b].state;
    return s == STATE_OK || s == STATE_FAILED;
}

/* One run of one cell. */
static void run_worker(const struct backend* b, unsigned row, const char* mode, unsigned number, uint64_t seed,
                       unsigned seconds, struct child_result* out) {
    char path[1280], text[16], drawn[24];
    worker_path(b, path, sizeof path);
    snprintf(text, sizeof text, "%u", number * b->slower);
    snprintf(drawn, sizeof drawn, "%" PRIu64, seed);
    const char* const words[] = {path, rows[row].name, mode, text, drawn, NULL};
    child_run(words, b, seconds, out);
}

/* What the run says of the cell, whatever the mode. */
static void take_state(struct cell* cell, const struct child_result* result) {
    static const enum state states[] = {STATE_OK, STATE_CANNOT, STATE_CORRUPT, STATE_FAILED, STATE_FAILED};
    cell->state = states[result->state];
    snprintf(cell->reason, sizeof cell->reason, "%s", result->text);
}

/* ---- the three passes ---------------------------------------------------------------------- */

/* Contents are verified; rows without a checked pass only learn there whether the backend can do them. */
static void check_all(struct results* r) {
    static struct child_result result;
    for (unsigned row = 0; row < ROW_COUNT; row++) {
        if (!r->wanted[row]) continue;
        progress_row("checking contents", row);
        for (unsigned b = 0; b < r->n_backends && !interrupted; b++) {
            if (!runnable(r, row, b) || rows[row].unchecked) continue;
            progress("checking contents", row, &r->backends[b]);
            run_worker(&r->backends[b], row, "checked", 1, r->seeds[1], CELL_SECONDS, &result);
            if (result.state == CHILD_INTERRUPTED) return;
            take_state(&r->cells[row][b], &result);
            if (result.state == CHILD_FAILED) r->cells[row][b].failures = repetitions_of(r, row);
        }
    }
}

static void time_one(struct results* r, unsigned row, unsigned b, unsigned repetition) {
    static struct child_result result;
    struct cell* cell = &r->cells[row][b];
    if (cell->failures == repetitions_of(r, row)) return; /* failed when it was checked */
    run_worker(&r->backends[b], row, r->quick ? "timed" : "full", r->part, r->seeds[repetition % 2],
               r->quick ? CELL_SECONDS : FULL_CELL_SECONDS, &result);
    if (result.state == CHILD_INTERRUPTED) return;
    if (result.state == CHILD_DONE) {
        for (unsigned m = 0; m < MAX_METRICS; m++) cell->value[m][repetition] = result.value[m];
        return;
    }
    take_state(cell, &result);
    cell->failures += result.state == CHILD_FAILED;
}

static void time_repetition(struct results* r, unsigned repetition) {
    char doing[64];
    snprintf(doing, sizeof doing, "repetition %u of %u", repetition + 1, r->repetitions);
    for (unsigned row = 0; row < ROW_COUNT; row++) {
        if (!r->wanted[row] || repetition >= repetitions_of(r, row)) continue;
        progress_row(doing, row);
        for (unsigned k = 0; k < r->n_backends && !interrupted; k++) {
            unsigned b = (k + repetition) % r->n_backends;
            if (!runnable(r, row, b)) continue;
            progress(doing, row, &r->backends[b]);
            time_one(r, row, b, repetition);
        }
    }
}

/* Instructions of one run under callgrind; NAN when it does not run there. */
static double collected(const struct backend* b, unsigned row, unsigned laps, uint64_t seed) {
    static struct child_result result;
    char path[1280], text[16], drawn[24];
    worker_path(b, path, sizeof path);
    snprintf(text, sizeof text, "%u", laps);
    snprintf(drawn, sizeof drawn, "%" PRIu64, seed);
    const char* const words[] = {
        "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", path, rows[row].name, "counted", text, drawn,
        NULL};
    child_run(words, b, COUNT_SECONDS, &result);
    return result.state == CHILD_DONE ? result.collected : NAN;
}

static void count_all(struct results* r) {
    for (unsigned row = 0; row < ROW_COUNT; row++) {
        if (!r->wanted[row] || rows[row].count_laps == 0) continue;
        progress_row("counting instructions", row);
        for (unsigned b = 0; b < r->n_backends && !interrupted; b++) {
            if (!runnable(r, row, b)) continue;
            progress("counting instructions", row, &r->backends[b]);
            unsigned laps = (rows[row].count_laps + r->backends[b].slower - 1) / r->backends[b].slower;
            double once = collected(&r->backends[b], row, laps, r->seeds[0]);
            double twice = collected(&r->backends[b], row, 2 * laps, r->seeds[0]);
            r->cells[row][b].instructions = (twice - once) / laps / rows[row].count_ops;
            r->cells[row][b].uncountable = !interrupted && isnan(twice - once);
        }
    }
}

/* ---- making ready -------------------------------------------------------------------------- */

static void prepare_cells(struct results* r, bool instructions) {
    unsigned to_do = 0;
    for (unsigned row = 0; row < ROW_COUNT; row++)
        for (unsigned b = 0; b < r->n_backends; b++) {
            const struct backend* backend = &r->backends[b];
            struct cell* cell = &r->cells[row][b];
            *cell = (struct cell){.instructions = NAN};
            for (unsigned m = 0; m < MAX_METRICS; m++)
                for (unsigned i = 0; i < MAX_REPETITIONS; i++) cell->value[m][i] = NAN;
            if (!r->wanted[row] || !backend->wanted) continue;
            cell->state = !backend->available                        ? STATE_MISSING
                          : backend->has_only && !backend->only[row] ? STATE_NONE
                                                                     : STATE_OK;
            if (cell->state == STATE_MISSING) snprintf(cell->reason, sizeof cell->reason, "%s", backend->reason);
            if (cell->state == STATE_OK)
                to_do += 1 + repetitions_of(r, row) + (instructions && rows[row].count_laps > 0);
        }
    cells_due = to_do;
}

static bool write_files(const struct results* r, const struct options* o) {
    bool ok = true;
    if (o->json && !report_json(r, o->json))
        ok = false, fprintf(stderr, "tslab_bench: cannot write '%s': %s\n", o->json, strerror(errno));
    if (o->csv && !report_csv(r, o->csv))
        ok = false, fprintf(stderr, "tslab_bench: cannot write '%s': %s\n", o->csv, strerror(errno));
    return ok;
}

/* 1 when a cell failed or is corrupt. */
static int verdict(const struct results* r) {
    for (unsigned row = 0; row < ROW_COUNT; row++)
        for (unsigned b = 0; b < r->n_backends; b++)
            if (r->cells[row][b].failures || r->cells[row][b].state == STATE_CORRUPT) return 1;
    return 0;
}

/* One that nobody can tune for: it is not known before. */
static uint64_t random_seed(void) {
    uint32_t n = 0;
    if (getrandom(&n, sizeof n, GRND_NONBLOCK) != (ssize_t)sizeof n) n = (uint32_t)time(NULL);
    return n > 1 ? n : 2;
}

int main(int argc, char** argv) {
    struct options o = {0};
    struct results* r = &results;
    int code = options_read(argc, argv, &o, r);
    if (code >= 0) return code;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND}; /* a second one ends it all */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);

    r->quick = o.quick;
    r->repetitions = o.repetitions ? o.repetitions : o.quick ? QUICK_REPETITIONS : FULL_REPETITIONS;
    r->part = o.part ? o.part : o.quick ? QUICK_PART : 1;
    r->seeds[0] = o.seeds[0] ? o.seeds[0] : 1;
    r->seeds[1] = o.seeds[1] ? o.seeds[1] : random_seed();
    r->command = command_text(argc, argv);
    time_t start = time(NULL);
    backends_identify(r);
    prepare_cells(r, o.instructions);
    check_all(r);
    for (unsigned i = 0; i < r->repetitions && !interrupted; i++) time_repetition(r, i);
    if (o.instructions && !interrupted) count_all(r);
    r->complete = !interrupted;
    r->seconds = (long)(time(NULL) - start);
    if (isatty(2)) fprintf(stderr, "\r\033[K");
    report_table(r);
    if (!write_files(r, &o)) return 1;
    return interrupted ? 130 : verdict(r);
}
