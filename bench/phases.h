/*
 * phases.h - work in phases, as far as every backend can do it. Compiled once per backend; a
 * backend without phases frees singly.
 */
#ifndef PHASES_H
#define PHASES_H

#include "workloads.h"

static void work_request_bulk(const struct plan* plan, double* out) {
    uint16_t sizes[REQUEST_OBJECTS];
    void* list[REQUEST_OBJECTS];
    unsigned n = 30000 / plan->divisor;
    request_sizes(sizes);
    bk_start();
    uint64_t start = 0;
    for (unsigned r = 0; r < n + n / 10; r++) {
        if (r == n / 10) start = now_ns();
        struct bk_phase ph;
        bk_scope_begin(&ph, list);
        for (unsigned i = 0; i < REQUEST_OBJECTS; i++) touch_lines(bk_scope_alloc(&ph, sizes[i]), sizes[i]);
        bk_scope_end(&ph);
    }
    out[0] = (double)(now_ns() - start) / n / 1000.0;
}

/* A phase of 300,000 x 128 B: resident memory above the start, at its height and after its end. */
static void work_rss_pointer(const struct plan* plan, double* out) {
    enum { OBJECTS = 300000 };
    (void)plan;
    void** list = touched(OBJECTS * sizeof *list);
    struct bk_phase ph;
    bk_start();
    bk_free(bk_alloc(HOT_SIZE));
    uint64_t before = resident_bytes();
    bk_phase_open(&ph, list);
    for (int i = 0; i < OBJECTS; i++) touch_lines(bk_phase_alloc(&ph, HOT_SIZE), HOT_SIZE);
    uint64_t high = resident_bytes();
    bk_phase_end(&ph);
    uint64_t after = resident_bytes();
    out[0] = ((double)high - (double)before) / 1048576.0;
    out[1] = ((double)after - (double)before) / 1048576.0;
}

/* Ten thousand phases open at once, ten small objects in each. */
static void work_open_phases(const struct plan* plan, double* out) {
    enum { PHASES = 10000, EACH = 10 };
    static const uint16_t sizes[EACH] = {64, 256, 96, 128, 384, 64, 192, 128, 256, 192}; /* 1760 bytes */
    unsigned n = PHASES / plan->divisor;
    struct bk_phase* phases = touched(PHASES * sizeof *phases);
    void** lists = touched(PHASES * EACH * sizeof *lists);
    bk_start();
    bk_free(bk_alloc(HOT_SIZE));
    for (int lap = 0; lap < 2; lap++) { /* the second lap is what a server in its steady state sees */
        uint64_t before = resident_bytes(), start = now_ns();
        for (unsigned i = 0; i < n; i++) {
            bk_phase_open(&phases[i], &lists[i * EACH]);
            for (unsigned k = 0; k < EACH; k++) touch_lines(bk_phase_alloc(&phases[i], sizes[k]), sizes[k]);
        }
        uint64_t opened = now_ns(), high = resident_bytes(), end = now_ns();
        for (unsigned i = 0; i < n; i++) bk_phase_end(&phases[i]);
        uint64_t done = now_ns();
        if (lap == 0) {
            out[0] = ((double)high - (double)before) / n;
            out[1] = (double)(opened - start + done - end) / n;
        } else {
            out[2] = (double)(opened - start) / n;
            out[3] = (double)(done - end) / n;
        }
    }
}

#endif
