/*
 * work_general.h - general work: objects are allocated and freed one by one. Included twice, timed
 * and checked (worker.c); so it has no include guard.
 */

static void ROW(pair)(const struct plan* plan, double* out) {
    uint64_t n = laps_of(plan, 10000000);
    bk_ref ref;
    BK(start)();
    for (int i = 0; i < 10000; i++) {
        TOUCH(BK(alloc)(HOT_SIZE, &ref));
        BK(free)(ref);
    }
    uint64_t start = now_ns();
    for (uint64_t i = 0; i < n; i++) {
        TOUCH(BK(alloc)(HOT_SIZE, &ref));
        BK(free)(ref);
    }
    out[0] = (double)(now_ns() - start) / (double)n;
}

/* ---- batches ---------------------------------------------------------------------------- */

static void ROW(batch_cycle)(bk_ref* list, int n) {
    for (int i = 0; i < n; i++) TOUCH(BK(alloc)(HOT_SIZE, &list[i]));
    for (int i = 0; i < n; i++) BK(free)(list[i]);
}

static void ROW(batch)(const struct plan* plan, double* out) {
    enum { BATCH = 100000 };
    bk_ref* list = touched(BATCH * sizeof *list);
    uint64_t cycles = laps_of(plan, 20);
    BK(start)();
    uint64_t start = now_ns();
    ROW(batch_cycle)(list, BATCH);
    out[1] = (double)(now_ns() - start) / BATCH;
    start = now_ns();
    for (uint64_t c = 0; c < cycles; c++) ROW(batch_cycle)(list, BATCH);
    out[0] = (double)(now_ns() - start) / BATCH / (double)cycles;
}

/* Each allocation and each free timed by itself; memory is in the steady state, the first cycle is not counted. */
static void ROW(batch_tail)(const struct plan* plan, double* out) {
    enum { BATCH = 100000 };
    static struct histogram allocs, frees;
    bk_ref* list = touched(BATCH * sizeof *list);
    memset(&allocs, 0, sizeof allocs);
    memset(&frees, 0, sizeof frees);
    struct timer timer = timer_calibrate();
    uint64_t cycles = laps_of(plan, 20);
    BK(start)();
    out[8] = mib((double)resident_bytes());
    ROW(batch_cycle)(list, BATCH);
    for (uint64_t c = 0; c < cycles; c++) {
        for (int i = 0; i < BATCH; i++) {
            uint64_t t = ticks();
            void* p = BK(alloc)(HOT_SIZE, &list[i]);
            hist_add(&allocs, timer_net(&timer, t, ticks()));
            TOUCH(p);
        }
        if (c == 0) out[9] = mib((double)resident_bytes());
        for (int i = 0; i < BATCH; i++) {
            uint64_t t = ticks();
            BK(free)(list[i]);
            hist_add(&frees, timer_net(&timer, t, ticks()));
        }
    }
    out[10] = mib((double)resident_bytes());
    static const double percents[4] = {50, 99, 99.9, 99.99};
    for (int k = 0; k < 4; k++) {
        out[k] = timer_ns(&timer, &allocs, percents[k]);
        out[4 + k] = timer_ns(&timer, &frees, percents[k]);
    }
}

/* ---- random replacement ----------------------------------------------------------------- */

enum { ROW(DRAWN) = 1 << 20 };

/* Replaces the object at[k], of the size sizes[k], for so many k; both arrays wrap. */
static double ROW(replace)(bk_ref* list, const uint32_t* at, const uint16_t* sizes, uint64_t n) {
    uint64_t start = now_ns();
    for (uint64_t k = 0; k < n; k++) {
        uint32_t i = at[k % ROW(DRAWN)];
        BK(free)(list[i]);
        TOUCH(BK(alloc)(sizes[k % ROW(DRAWN)], &list[i]));
    }
    return (double)(now_ns() - start) / (double)n;
}

static void ROW(mixed)(const struct plan* plan, double* out) {
    enum { SLOTS = 100000 };
    bk_ref* list = touched(SLOTS * sizeof *list);
    uint32_t* at = drawn(ROW(DRAWN), SLOTS, 1);
    uint16_t* sizes = touched(ROW(DRAWN) * sizeof *sizes);
    uint64_t random = seeded(2), n = laps_of(plan, 4000000);
    for (int i = 0; i < ROW(DRAWN); i++) sizes[i] = eight_sizes[next_random(&random) & 7];
    BK(start)();
    for (int i = 0; i < SLOTS; i++) TOUCH(BK(alloc)(sizes[i], &list[i]));
    if (plan->mode != PLAN_COUNTED) ROW(replace)(list, at, sizes, n / 4 + 1); /* into the steady state */
    out[0] = ROW(replace)(list, at, sizes, n);
}

/* What the machine asks for an object of so many in an array: nanoseconds to write to a random one. */
static double ROW(touches)(char* array, const uint32_t* at, uint64_t n) {
    uint64_t start = now_ns();
    for (uint64_t i = 0; i < n; i++) TOUCH(array + (size_t)at[i % ROW(DRAWN)] * HOT_SIZE);
    return (double)(now_ns() - start) / (double)n;
}

/* What an operation costs when more and more objects are live, and beside it what touching one of an array does. */
static void ROW(live)(const struct plan* plan, double* out) {
    uint32_t most = plan->full ? 10000000 : plan->mode == PLAN_CHECKED ? 10000 : 1000000;
    uint64_t n = laps_of(plan, 2000000);
    bk_ref* list = touched(most * sizeof *list);
    uint16_t* sizes = touched(ROW(DRAWN) * sizeof *sizes);
    for (int i = 0; i < ROW(DRAWN); i++) sizes[i] = HOT_SIZE;
    BK(start)();
    uint32_t live = 0;
    for (unsigned k = 0, due = 1000; due <= most; k++, due *= 10) {
        uint32_t* at = drawn(ROW(DRAWN), due, 10 + k);
        for (; live < due; live++) TOUCH(BK(alloc)(HOT_SIZE, &list[live]));
        ROW(replace)(list, at, sizes, n / 4 + 1);
        out[k] = ROW(replace)(list, at, sizes, n);
        munmap(at, ROW(DRAWN) * sizeof *at);
    }
    char* array = touched((size_t)most * HOT_SIZE);
    for (unsigned k = 0, due = 1000; due <= most; k++, due *= 10) {
        uint32_t* at = drawn(ROW(DRAWN), due, 10 + k);
        (void)ROW(touches)(array, at, n / 4 + 1);
        out[5 + k] = ROW(touches)(array, at, n);
        munmap(at, ROW(DRAWN) * sizeof *at);
    }
    munmap(array, (size_t)most * HOT_SIZE);
}
