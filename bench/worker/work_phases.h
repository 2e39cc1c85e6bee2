/*
 * work_phases.h - work in phases. A backend without phases of its own frees the objects of a phase
 * one by one (BK_BULK 0): the caller keeps the list. Included twice, as work_general.h.
 *
 * A scope is a phase that is the thread's own while it lasts, where there is such a thing; a phase is
 * named at each allocation.
 */

/* What the caller keeps of an object in a phase that ends in bulk: nothing. */
#define KEPT(place) (BK_BULK ? NULL : (place))

/* ---- requests --------------------------------------------------------------------------- */

struct ROW(request_job) {
    uint64_t laps;
    const uint16_t* sizes;
};

#if BK_GENERAL
static void ROW(requests_singly)(const struct ROW(request_job) * job, uint64_t laps) {
    bk_ref list[REQUEST_OBJECTS];
    for (uint64_t r = 0; r < laps; r++) {
        for (unsigned i = 0; i < REQUEST_OBJECTS; i++) TOUCH_LINES(BK(alloc)(job->sizes[i], &list[i]), job->sizes[i]);
        for (unsigned i = 0; i < REQUEST_OBJECTS; i++) BK(free)(list[i]);
    }
}
#endif

/* In a phase of its own, every object freed. */
#if BK_PHASE_FREE
static void ROW(requests_own)(const struct ROW(request_job) * job, uint64_t laps) {
    bk_ref list[REQUEST_OBJECTS];
    for (uint64_t r = 0; r < laps; r++) {
        struct BK(phase) ph;
        BK(scope_begin)(&ph, REQUEST_BYTES);
        for (unsigned i = 0; i < REQUEST_OBJECTS; i++)
            TOUCH_LINES(BK(scope_alloc)(&ph, job->sizes[i], &list[i]), job->sizes[i]);
        for (unsigned i = 0; i < REQUEST_OBJECTS; i++) BK(scope_free)(&ph, list[i]);
        BK(scope_end)(&ph, list, 0);
    }
}
#endif

static void ROW(requests_bulk)(const struct ROW(request_job) * job, uint64_t laps) {
    bk_ref list[REQUEST_OBJECTS];
    for (uint64_t r = 0; r < laps; r++) {
        struct BK(phase) ph;
        BK(scope_begin)(&ph, REQUEST_BYTES);
        for (unsigned i = 0; i < REQUEST_OBJECTS; i++)
            TOUCH_LINES(BK(scope_alloc)(&ph, job->sizes[i], KEPT(&list[i])), job->sizes[i]);
        BK(scope_end)(&ph, list, REQUEST_OBJECTS);
    }
}

typedef void (*ROW(requests_fn))(const struct ROW(request_job) *, uint64_t);

static ROW(requests_fn) ROW(requests_run);

static void ROW(requests_warm)(unsigned index, void* arg) {
    struct ROW(request_job)* job = arg;
    (void)index;
    ROW(requests_run)(job, job->laps / 10 + 1);
}

static void ROW(requests_body)(unsigned index, void* arg) {
    struct ROW(request_job)* job = arg;
    (void)index;
    ROW(requests_run)(job, job->laps);
}

static void ROW(requests)(const struct plan* plan, double* out, ROW(requests_fn) run) {
    uint16_t sizes[REQUEST_OBJECTS];
    struct ROW(request_job) job = {.laps = laps_of(plan, 30000), .sizes = sizes};
    draw_sizes(sizes, REQUEST_OBJECTS);
    ROW(requests_run) = run;
    BK(start)();
    if (plan->mode == PLAN_COUNTED) {
        run(&job, job.laps);
        return;
    }
    run(&job, job.laps / 10 + 1);
    uint64_t start = now_ns();
    run(&job, job.laps);
    out[0] = (double)(now_ns() - start) / (double)job.laps / 1000.0;
    struct crew crew = {.threads = 2, .warm = ROW(requests_warm), .body = ROW(requests_body), .arg = &job};
    out[1] = crew_run(&crew) / (double)job.laps / 1000.0;
}

#if BK_GENERAL
static void ROW(request)(const struct plan* plan, double* out) { ROW(requests)(plan, out, ROW(requests_singly)); }
#endif

#if BK_PHASE_FREE
static void ROW(request_own)(const struct plan* plan, double* out) { ROW(requests)(plan, out, ROW(requests_own)); }
#endif

static void ROW(request_bulk)(const struct plan* plan, double* out) { ROW(requests)(plan, out, ROW(requests_bulk)); }

/* ---- small and empty phases ------------------------------------------------------------- */

static void ROW(phases_of_100)(uint64_t laps) {
    bk_ref list[100];
    for (uint64_t r = 0; r < laps; r++) {
        struct BK(phase) ph;
        BK(scope_begin)(&ph, 6400);
        for (unsigned i = 0; i < 100; i++) TOUCH(BK(scope_alloc)(&ph, 64, KEPT(&list[i])));
        BK(scope_end)(&ph, list, 100);
    }
}

static void ROW(phase100)(const struct plan* plan, double* out) {
    uint64_t n = laps_of(plan, 100000);
    BK(start)();
    if (plan->mode != PLAN_COUNTED) ROW(phases_of_100)(n / 10 + 1);
    uint64_t start = now_ns();
    ROW(phases_of_100)(n);
    out[0] = (double)(now_ns() - start) / (double)n / 1000.0;
}

static void ROW(empty_phases)(uint64_t n, const char* label) {
    for (uint64_t i = 0; i < n; i++) {
#if BK_OURS
        epoch_domain_t* d =
            label ? epoch_domain_create_labeled(bk_allocator, label) : epoch_domain_create(bk_allocator);
        epoch_domain_enter(d);
        epoch_domain_exit(d);
        epoch_domain_destroy(d);
#else
        (void)label;
        struct BK(phase) ph;
        BK(scope_begin)(&ph, 0);
        keep(&ph);
        BK(scope_end)(&ph, NULL, 0);
#endif
    }
}

static void ROW(domain)(const struct plan* plan, double* out) {
    static const char* const labels[2] = {NULL, "GET /index"};
    uint64_t n = laps_of(plan, 1000000);
    BK(start)();
    for (int k = 0; k < (plan->mode == PLAN_COUNTED ? 1 : 1 + BK_OURS); k++) {
        if (plan->mode != PLAN_COUNTED) ROW(empty_phases)(n / 10 + 1, labels[k]);
        uint64_t start = now_ns();
        ROW(empty_phases)(n, labels[k]);
        out[k] = (double)(now_ns() - start) / (double)n;
    }
}

/* ---- many phases open ------------------------------------------------------------------- */

static void ROW(fill_phase)(struct BK(phase) * ph, size_t hint, const uint16_t* sizes, unsigned n, bk_ref* list) {
    BK(phase_open)(ph, hint);
    for (unsigned i = 0; i < n; i++) TOUCH_LINES(BK(phase_alloc)(ph, sizes[i], KEPT(&list[i])), sizes[i]);
}

static void ROW(open_phases)(const struct plan* plan, double* out) {
    unsigned n = objects_of(plan, 10000);
    struct BK(phase)* phases = touched(n * sizeof *phases);
    bk_ref* lists = touched(n * SMALL_OBJECTS * sizeof *lists);
    BK(start)();
    for (int lap = 0; lap < 8; lap++) { /* the last is what a server sees whose bursts are alike */
        uint64_t before = resident_bytes(), start = now_ns();
        for (unsigned i = 0; i < n; i++) {
            ROW(fill_phase)(&phases[i], SMALL_BYTES, small_sizes, SMALL_OBJECTS, &lists[i * SMALL_OBJECTS]);
            if (i % 1024 == 1023) guard_memory("with phases open");
        }
        uint64_t opened = now_ns(), high = resident_bytes(), end = now_ns();
        for (unsigned i = 0; i < n; i++) BK(phase_end)(&phases[i], &lists[i * SMALL_OBJECTS], SMALL_OBJECTS);
        uint64_t done = now_ns();
        if (lap == 0) out[0] = ((double)high - (double)before) / n;
        out[lap < 2 ? 1 + lap : 3] = (double)(opened - start + done - end) / n;
        out[4] = (double)(done - end) / n;
    }
}

static void ROW(big_phases)(const struct plan* plan, double* out) {
    unsigned n = objects_of(plan, 1000);
    uint16_t sizes[BIG_OBJECTS];
    struct BK(phase)* phases = touched(n * sizeof *phases);
    bk_ref* lists = touched(BK_BULK ? 1 : (size_t)n * BIG_OBJECTS * sizeof *lists);
    draw_sizes(sizes, BIG_OBJECTS);
    BK(start)();
    uint64_t before = resident_bytes(), start = now_ns();
    for (unsigned i = 0; i < n; i++) {
        ROW(fill_phase)(&phases[i], BIG_BYTES, sizes, BIG_OBJECTS, BK_BULK ? lists : &lists[i * BIG_OBJECTS]);
        if (i % 128 == 127) guard_memory("with phases open");
    }
    uint64_t opened = now_ns(), high = resident_bytes(), end = now_ns();
    for (unsigned i = 0; i < n; i++) BK(phase_end)(&phases[i], BK_BULK ? lists : &lists[i * BIG_OBJECTS], BIG_OBJECTS);
    out[2] = (double)(opened - start + now_ns() - end) / n / 1000.0;
    out[0] = mib_over(high, before);
    out[1] = mib_over(resident_bytes(), before);
}

/* A phase of 300,000 x 128 B: resident memory above the start, at its height and after its end. */
static void ROW(rss)(const struct plan* plan, double* out) {
    unsigned n = objects_of(plan, 300000);
    bk_ref* list = touched(n * sizeof *list);
    struct BK(phase) ph;
    BK(start)();
    uint64_t before = resident_bytes();
    BK(phase_open)(&ph, (size_t)n * HOT_SIZE);
    for (unsigned i = 0; i < n; i++) TOUCH_LINES(BK(phase_alloc)(&ph, HOT_SIZE, KEPT(&list[i])), HOT_SIZE);
    uint64_t high = resident_bytes();
    BK(phase_end)(&ph, list, n);
    out[0] = mib_over(high, before);
    out[1] = mib_over(resident_bytes(), before);
}

#undef KEPT
