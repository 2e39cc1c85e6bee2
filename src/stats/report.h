/*
 * report.h - one snapshot of everything, and what writes it out.
 *
 * tsi_report_take walks the slabs once and fills every table from that walk, so the rows of a report agree
 * with each other as far as threads stand still. The tables are in one mapping of the system, not on
 * anybody's heap: a report must work inside a program whose malloc is this library.
 */
#ifndef TSI_STATS_REPORT_H
#define TSI_STATS_REPORT_H

#include "heap/arena.h"

#include "slab_stats.h"

/* An epoch as `epochs` of the JSON document has it: all its classes together. */
typedef struct TsiEpochRow {
    EpochId epoch_id;
    uint64_t epoch_era;
    uint32_t state; /* EpochLifecycleState */
    double age_sec;
    uint64_t refcount;
    char label[32];
    uint32_t label_id;
    uint64_t total_partial_slabs, total_full_slabs, total_reclaimable_slabs, reclaimable_slab_count, alloc_count,
        estimated_rss_bytes, open_since_ns, rss_before_close, rss_after_close;
    double rss_delta_mb;
    uint64_t madvise_bytes;
} TsiEpochRow;

typedef struct TsiReport {
    uint64_t timestamp_ns; /* wall clock, since 1970 */
    uint64_t uptime_ns;    /* since the allocator was made */
    uint32_t pid, page_size, epoch_count /* of the ring */, max_labels;
    uint64_t segment_publications, segment_failures;
    SlabGlobalStats global;
    SlabRefusals refusals;
    SlabSamplingStats sampling;
    SlabClassStats* classes;
    uint32_t class_count;
    TsiEpochRow* epochs; /* ring ids that hold or held something, and whatever else holds slabs, by era */
    uint32_t epoch_rows;
    SlabPhaseStats* phases;
    uint32_t phase_count;
    SlabLabelStats* labels;
    uint32_t label_count;
    void* mapping;
    size_t mapping_bytes;
} TsiReport;

/* False with errno ENOMEM. */
bool tsi_report_take(TsiArena* a, TsiReport* out);
void tsi_report_drop(TsiReport* r);

typedef bool (*TsiWriteFn)(void* ctx, const char* bytes, size_t n);
/* Both return false as soon as `write` does. */
bool tsi_report_json(const TsiReport* r, TsiWriteFn write, void* ctx);
bool tsi_report_prometheus(const TsiReport* r, TsiWriteFn write, void* ctx);

#endif
