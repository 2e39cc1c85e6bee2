/* run_glibc.c - the rows for the C library's malloc. */
#include "measure.h"

#include "backend_glibc.h"

#include "phases.h"

/* Phases of 5000 x 128 B, freed singly: does the process grow? */
static void work_drift(const struct plan* plan, double* out) {
    enum { OBJECTS = 5000 };
    void** list = touched(OBJECTS * sizeof *list);
    unsigned cycles = 2000 / plan->divisor;
    for (unsigned c = 1; c <= cycles; c++) {
        for (int i = 0; i < OBJECTS; i++) {
            list[i] = bk_alloc(HOT_SIZE);
            touch(list[i]);
        }
        for (int i = 0; i < OBJECTS; i++) bk_free(list[i]);
        if (c == cycles / 20) out[0] = (double)bk_held_bytes() / 1024.0;
    }
    out[1] = (double)bk_held_bytes() / 1024.0;
    out[2] = 100.0 * (out[1] - out[0]) / (out[0] > 0 ? out[0] : 1);
}

const struct backend BACKEND = {
    .name = BACKEND_NAME,
    .version = bk_version,
    .work = {[ROW_PAIR] = work_pair,
             [ROW_BATCH] = work_batch,
             [ROW_BATCH_TAIL] = work_batch_tail,
             [ROW_MIXED] = work_mixed,
             [ROW_REQUEST] = work_request,
             [ROW_REQUEST_BULK] = work_request_bulk,
             [ROW_HANDLE_PAIR] = work_pair,
             [ROW_THREADS] = work_threads,
             [ROW_XTHREAD] = work_xthread,
             [ROW_RSS_POINTER] = work_rss_pointer,
             [ROW_RSS_HANDLE] = work_rss_pointer,
             [ROW_DRIFT] = work_drift,
             [ROW_OPEN_PHASES] = work_open_phases},
};
