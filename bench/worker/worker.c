/*
 * worker.c - one backend as a program: does one row once, and says the numbers on stdout.
 *
 * Compiled once per backend, with BACKEND_HEADER naming its header in backends/. That header gives
 *
 *   bk_ref                        what the caller keeps of an object: its pointer, or a handle
 *   BK_GENERAL 0|1                objects outside phases: bk_alloc, bk_free
 *   BK_PHASES 0|1                 phases of its own: struct bk_phase, bk_phase_open, _alloc, _free, _end
 *   BK_PHASE_FREE 0|1             bk_phase_free frees one object of a phase
 *   BK_BULK 0|1                   bk_phase_end ends all objects; else it frees the list that it is given
 *   BK_SCOPES 0|1                 phases can be the thread's scope: bk_scope_begin, _alloc, _free, _end
 *   BK_REALLOC 0|1                bk_scope_realloc; else a larger object is allocated, and the contents copied
 *   BK_HANDS_OVER 0|1             a phase may be ended by another thread than the one that began it
 *   BK_OURS 0|1                   temporal-slab: epochs, labels, reports
 *   BK_LABELS 0|1                 bk_label(k) labels what the thread allocates from there on
 *   bk_start, bk_ptr, bk_version  making ready; pointer of a kept reference; NULL or the version
 *
 * and the work_*.h are compiled twice against it: once as they stand (row_*) and once through check.h
 * (check_row_*), where every object is filled with a pattern and verified.
 *
 * Usage: WORKER ROW MODE NUMBER SEED   MODE: timed (NUMBER: divisor), full (the same), checked, counted (NUMBER: laps)
 *        WORKER --identify
 * Lines out: "malloc FILE", "version TEXT", "profiler TEXT", "value INDEX NUMBER", "cannot TEXT", "corrupt TEXT", "done".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "peers/identify.h"
#include "rows.h"
#include "measure.h"
#include "worker/kit.h"

#include BACKEND_HEADER

#pragma GCC diagnostic ignored "-Wunused-function" /* no backend does every row */

#include "worker/backend_check.h"
#include "worker/calls.h"
#include "worker/look.h"

/* As they stand. */
#define BK(name) bk_##name
#define ROW(name) row_##name
#define TOUCH(p) touch(p)
#define TOUCH_LINES(p, size) touch_lines(p, size)
#define CHECKING 0
#include "worker/table.h"
#undef BK
#undef ROW
#undef TOUCH
#undef TOUCH_LINES
#undef CHECKING

/* Through the checks. The pattern is all the writing that objects get. */
#define BK(name) ck_##name
#define ROW(name) check_row_##name
#define TOUCH(p) keep(p)
#define TOUCH_LINES(p, size) keep(p)
#define CHECKING 1
#include "worker/check.h"
#include "worker/table.h"

static _Noreturn void identify(void) {
    char version[64];
    const char* own = bk_version();
    identify_version(version, sizeof version);
    printf("malloc %s\n", identify_file_of("malloc"));
    printf("version %s\n", own ? own : version);
    identify_profiler(version, sizeof version);
    printf("profiler %s\n", version);
    printf("done\n");
    fflush(stdout);
    _exit(0); /* no heap profile is written behind our back */
}

int main(int argc, char** argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc == 2 && strcmp(argv[1], "--identify") == 0) identify();
    unsigned row = argc == 5 ? row_find(argv[1]) : ROW_COUNT;
    if (row == ROW_COUNT) {
        fprintf(stderr, "usage: %s ROW timed|full|checked|counted NUMBER SEED, or --identify\n", argv[0]);
        return 2;
    }
    unsigned number = (unsigned)strtoul(argv[3], NULL, 10);
    work_seed = strtoull(argv[4], NULL, 10);
    shuffle_sizes(small_sizes, SMALL_OBJECTS, 6);
    struct plan plan = {.divisor = number ? number : 1, .laps = number, .full = strcmp(argv[2], "full") == 0};
    plan.mode = strcmp(argv[2], "checked") == 0   ? PLAN_CHECKED
                : strcmp(argv[2], "counted") == 0 ? PLAN_COUNTED
                                                  : PLAN_TIMED;
    const work_fn* table = plan.mode == PLAN_CHECKED ? check_row_table : row_table;
    double out[MAX_METRICS];
    for (unsigned i = 0; i < MAX_METRICS; i++) out[i] = NAN;
    if (!table[row]) cannot("it has no such thing");
    if (plan.mode != PLAN_COUNTED) pin_to_last();
    table[row](&plan, out);
    if (plan.mode == PLAN_CHECKED) ck_finish();
    for (unsigned i = 0; i < MAX_METRICS; i++)
        if (!isnan(out[i])) printf("value %u %.9g\n", i, out[i]);
    printf("done\n");
    fflush(stdout);
    _exit(0); /* what the row left open is left to the kernel */
}
