/* reports.c - everything about an allocator as text. */
#include "api/internal.h"

#include "slab_stats.h"
#include "stats/report.h"

static bool write_report(SlabAllocator* s, TsiWriteFn write, void* ctx,
                         bool (*text)(const TsiReport*, TsiWriteFn, void*)) {
    TsiArena* a = tsi_arena(s);
    TsiReport r;
    if (a == NULL || write == NULL) return errno = EINVAL, false;
    if (!tsi_report_take(a, &r)) return false;
    bool whole = text(&r, write, ctx);
    tsi_report_drop(&r);
    return whole;
}

bool slab_stats_json(SlabAllocator* s, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx) {
    return write_report(s, write, ctx, tsi_report_json);
}

bool slab_stats_prometheus(SlabAllocator* s, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx) {
    return write_report(s, write, ctx, tsi_report_prometheus);
}
