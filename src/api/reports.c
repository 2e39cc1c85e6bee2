/* reports.c - everything about an allocator as text. */
#include "api/internal.h"

#include "slab_stats.h"
#include "stats/report.h"
#include "stats/segment.h"

enum { TOP_ROWS = 256 };

static bool write_report(SlabAllocator* s, TsiWriteFn write, void* ctx, int each,
                         bool (*text)(const TsiReport*, TsiWriteFn, void*)) {
    TsiArena* a = tsi_arena(s);
    TsiReport r;
    if (a == NULL || write == NULL) return errno = EINVAL, false;
    if (!tsi_report_take_rows(a, each, &r)) return false;
    bool whole = text(&r, write, ctx);
    tsi_report_drop(&r);
    return whole;
}

bool slab_stats_json(SlabAllocator* s, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx) {
    return write_report(s, write, ctx, TOP_ROWS, tsi_report_json);
}

bool slab_stats_json_all(SlabAllocator* s, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx) {
    return write_report(s, write, ctx, TSI_ROWS_ALL, tsi_report_json);
}

bool slab_stats_prometheus(SlabAllocator* s, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx) {
    return write_report(s, write, ctx, TSI_ROWS_ALL, tsi_report_prometheus);
}

bool slab_stats_publish(SlabAllocator* s) {
    TsiArena* a = tsi_arena(s);
    return a != NULL && tsi_segment_publish(a);
}
