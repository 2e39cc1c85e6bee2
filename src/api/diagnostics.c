/* diagnostics.c - the public reports. Their arrays come from malloc: the caller frees them. */
#include "api/internal.h"
#include "heap/records.h"

#include "stats/diagnose.h"
#include "stats/doctor.h"
#include "stats/pprof.h"
#include "stats/report.h"

#include <stdlib.h>
#include <string.h>

/* Copies `count` rows of bytes_each bytes into a block of malloc, the caller's to free. Returns it; NULL for no rows,
 * and with ENOMEM without memory. [any thread, no lock held] */
static void* copy_out(const void* rows, size_t count, size_t bytes_each) {
    void* p = count != 0 ? malloc(count * bytes_each) : NULL;
    if (p != NULL) memcpy(p, rows, count * bytes_each);
    else if (count != 0) tsi_error_set(ENOMEM);
    return p;
}

uint32_t slab_detect_epoch_leaks(SlabAllocator* allocator, uint32_t threshold_sec, uint32_t max_top,
                                 EpochLeakReport* out) {
    TsiArena* a = tsi_arena(allocator);
    TsiLeaks leaks;
    if (out != NULL) *out = (EpochLeakReport){.version = SLAB_DIAGNOSTICS_VERSION, .threshold_sec = threshold_sec};
    if (a == NULL || !tsi_leaks_take(a, threshold_sec, &leaks)) return 0;

    uint32_t found = leaks.count, top = found < max_top ? found : max_top;
    if (out != NULL && top != 0) {
        out->candidates = malloc(top * sizeof *out->candidates);
        if (out->candidates == NULL) {
            tsi_error_set(ENOMEM);
            found = top = 0;
        }
        for (uint32_t n = 0; n < top; n++) out->candidates[n] = leaks.rows[n].c;
        out->top_count = top;
    }

    if (out != NULL) out->candidate_count = found;
    tsi_leaks_drop(&leaks);
    return found;
}

void slab_analyze_slow_path(SlabAllocator* allocator, SlowPathReport* out) {
    TsiArena* a = tsi_arena(allocator);
    SlowPathAttribution rows[TSI_CLASSES];
    if (out == NULL) return;
    *out = (SlowPathReport){.version = SLAB_DIAGNOSTICS_VERSION};
    uint32_t n = a != NULL ? tsi_slow_path_take(a, rows) : 0;
    out->classes = copy_out(rows, n, sizeof rows[0]);
    out->class_count = out->classes != NULL ? n : 0;
}

void slab_analyze_reclamation(SlabAllocator* allocator, ReclamationReport* out) {
    TsiArena* a = tsi_arena(allocator);
    if (out == NULL) return;
    *out = (ReclamationReport){.version = SLAB_DIAGNOSTICS_VERSION};
    if (a == NULL) return;
    out->total_madvise_calls = tsi_load_relaxed(&a->space.purge_calls);
    out->total_madvise_bytes = tsi_load_relaxed(&a->space.purge_bytes);
    out->total_madvise_failures = tsi_load_relaxed(&a->space.purge_failures);

    EpochReclamation* rows = tsi_os_map(TSI_CLOSELOG_ROWS * sizeof *rows);
    if (rows == NULL) return;
    uint32_t n = tsi_closelog_copy(&a->closed_log, rows);
    out->epochs = copy_out(rows, n, sizeof *rows);
    out->epoch_count = out->epochs != NULL ? n : 0;
    tsi_os_drop(rows, TSI_CLOSELOG_ROWS * sizeof *rows);
}

uint64_t slab_epoch_walk(SlabAllocator* allocator, EpochId epoch, bool (*fn)(const SlabLiveObject*, void*), void* ctx) {
    TsiArena* a = tsi_arena(allocator);
    return a != NULL ? tsi_walk(a, tsi_phases_resolve(&a->phases, epoch), fn, ctx) : 0;
}

uint64_t slab_epoch_walk_era(SlabAllocator* allocator, uint64_t era, bool (*fn)(const SlabLiveObject*, void*),
                             void* ctx) {
    TsiArena* a = tsi_arena(allocator);
    return a != NULL ? tsi_walk(a, tsi_era_find(a, era), fn, ctx) : 0;
}

/* Figures that the doctor reads besides the report. */
typedef struct Chart {
    SlowPathAttribution slow[TSI_CLASSES];
    EpochReclamation closes[TSI_CLOSELOG_ROWS];
} Chart;

bool slab_doctor(SlabAllocator* allocator, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx) {
    return slab_doctor_ex(allocator, TSI_DOCTOR_LEAK_SECONDS, write, ctx);
}

bool slab_doctor_ex(SlabAllocator* allocator, uint32_t leak_sec, bool (*write)(void* ctx, const char* bytes, size_t n),
                    void* ctx) {
    TsiArena* a = tsi_arena(allocator);
    TsiReport report;
    TsiLeaks leaks;
    bool ok = false;
    if (a == NULL || write == NULL) return tsi_error_set(EINVAL), false;

    Chart* chart = tsi_os_map(sizeof *chart);
    if (chart == NULL) return false;
    if (tsi_leaks_take(a, 0, &leaks)) {
        tsi_leaks_by_label(&leaks, leak_sec);
        if (tsi_report_take(a, &report)) {
            TsiDoctorView view = {.report = &report,
                                  .leaks = &leaks,
                                  .leak_sec = leak_sec,
                                  .slow = chart->slow,
                                  .closes = chart->closes,
                                  .purge_policy = a->options.purge_policy,
                                  .segment = tsi_segment_health(a)};
            view.slow_count = tsi_slow_path_take(a, chart->slow);
            view.close_count = tsi_closelog_copy(&a->closed_log, chart->closes);
            ok = tsi_doctor_write(&view, write, ctx);
            tsi_report_drop(&report);
        }
        tsi_leaks_drop(&leaks);
    }

    tsi_os_drop(chart, sizeof *chart);
    return ok;
}

size_t slab_profile_write(SlabAllocator* allocator, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx) {
    TsiArena* a = tsi_arena(allocator);
    if (a == NULL || write == NULL || a->profile.mean == 0) return tsi_error_set(EINVAL), 0;
    return tsi_pprof_write(a, write, ctx);
}
