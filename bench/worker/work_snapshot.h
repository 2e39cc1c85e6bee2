/*
 * work_snapshot.h - what a look at a heap of 100,000 objects costs the thread that looks. Objects come from sixteen call
 * paths, which a profiler tells apart by their depth, and under as many labels where there are labels. Included
 * twice, as work_general.h.
 */

enum { ROW(PATHS) = 16, ROW(WATCHED) = 100000 };

static __attribute__((noinline)) void* ROW(from_path)(unsigned depth, size_t size, bk_ref* ref) {
    void* p = depth ? ROW(from_path)(depth - 1, size, ref) : BK(alloc)(size, ref);
    keep(p); /* after the call, so that no caller leaves the stack early */
    return p;
}

/* Microseconds and KiB of a look; nothing where there is none. */
static void ROW(look)(const struct plan* plan, size_t (*look)(void), double* out) {
    uint64_t laps = laps_of(plan, 100);
    size_t bytes = look();
    if (bytes == 0) return;
    uint64_t start = now_ns();
    for (uint64_t i = 0; i < laps; i++) bytes = look();
    out[0] = (double)(now_ns() - start) / (double)laps / 1000.0;
    out[1] = (double)bytes / 1024.0;
}

static void ROW(snapshot)(const struct plan* plan, double* out) {
    unsigned n = objects_of(plan, ROW(WATCHED)), each = n / ROW(PATHS) + 1;
    bk_ref* list = touched(n * sizeof *list);
    BK(start)();
    for (unsigned i = 0; i < n; i++) {
        if (i % each == 0) bk_label(i / each);
        TOUCH(ROW(from_path)(i / each, eight_sizes[i & 7], &list[i]));
    }
#if BK_LABELS
    if (slab_stats_labels(bk_allocator, NULL, 0) < ROW(PATHS)) corrupt("labels are missing");
#endif
    ROW(look)(plan, look_statistics, out);
    ROW(look)(plan, look_profile, out + 2);
    if (isnan(out[0]) && isnan(out[2])) cannot("it says nothing of itself");
    for (unsigned i = 0; i < n; i++) BK(free)(list[i]);
}
