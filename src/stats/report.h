/*
 * report.h - one snapshot of everything: taking it and writing it out.
 *
 * tsi_report_take walks the slabs once and fills every table from that walk, so the rows of a report agree with each
 * other if threads stand still.
 *
 * The tables are in one mapping of the system, not on a heap: a report must work inside a program whose malloc is this
 * library.
 */
#ifndef TSI_STATS_REPORT_H
#define TSI_STATS_REPORT_H

#include "state/arena.h"

#include "slab_stats.h"

/* An epoch, a row of `epochs` in the JSON document: all its classes together. */
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
    uint64_t publication;           /* read from a segment: its number; otherwise 0 */
    uint64_t figures_ns, phases_ns; /* monotonic clock of global, class and label figures, and of rows of phases */
    uint64_t figures_age_ns, phases_age_ns; /* 0 in the process itself */
    char process_state[32];                 /* running, stopped, ended */
    uint64_t phases_left_out, epochs_left_out, labels_left_out;
    uint32_t allocator;     /* read from a segment: its slot; otherwise 0 */
    uint32_t allocators;    /* of the process */
    uint32_t changed_since; /* 1: newer figures were not published */
    uint64_t objects_allocated, bytes_allocated, objects_freed, objects_released, objects_escaped, phases_opened,
        phases_ended, draining_objects, draining_bytes; /* of all labels */
    SlabGlobalStats global;
    SlabRefusals refusals;
    SlabSamplingStats sampling;
    SlabClassStats* classes;
    uint32_t class_count;
    TsiEpochRow* epochs; /* ring ids that hold or held something, and other epochs with slabs, by era */
    uint32_t epoch_rows;
    SlabPhaseStats* phases;
    uint32_t phase_count;
    SlabLabelStats* labels;
    uint32_t label_count; /* rows, one of the rest included */
    uint32_t label_ids;   /* labels that have an id */
    TsiCloseRow* closes;  /* newest first */
    uint32_t close_count;
    SlabClassStats* settled; /* the part of `classes` of slabs that no heap has, without large objects */
    void* mapping;
    size_t mapping_bytes;
} TsiReport;

/* Results of a walk over all slabs and phases, for reports of figures alone. */
enum { TSI_KEPT_PHASES = 256, TSI_KEPT_EPOCHS = 256 };
typedef struct TsiKept {
    SlabClassStats settled[TSI_CLASS_LARGE];
    uint64_t metadata_bytes, phases_ns, phases_left_out, epochs_left_out;
    uint32_t phase_count, epoch_rows;
    SlabPhaseStats phases[TSI_KEPT_PHASES];
    TsiEpochRow epochs[TSI_KEPT_EPOCHS];
} TsiKept;

/* ---- report_take.c ---- */

/* Sets *out to a report of everything, with all rows. Returns true, and *out to drop; false with errno ENOMEM and
 * nothing to drop. O(slabs + incarnations). Takes stripes, and the registry's and the labels' locks.
 * [any thread, no lock held but the segment's] */
bool tsi_report_take(TsiArena* a, TsiReport* out);
/* Sets *out to a report of everything, with the rows of phases and epochs that tsi_report_choose keeps with `each`.
 * Returns true, and *out to drop; false with errno ENOMEM and nothing to drop. O(slabs + incarnations). Takes stripes,
 * and the registry's and the labels' locks. [any thread, no lock held but the segment's] */
bool tsi_report_take_rows(TsiArena* a, int each, TsiReport* out);
/* Sets *out to figures without the phases that have ended and settled; rows of phases and epochs, figures of settled
 * slabs and metadata come from *kept, which tsi_report_keep has filled and which must stay while the report is used.
 * Returns true, and *out for tsi_report_drop; false with errno ENOMEM and nothing to drop. O(labels + incarnation
 * records + slabs of heaps). Takes stripes, and the registry's and the labels' locks.
 * [any thread, no lock held but the segment's] */
bool tsi_report_figures(TsiArena* a, TsiKept* kept, TsiReport* out);
/* Copies to *out the results of a report's walk, which has at most TSI_KEPT_PHASES and TSI_KEPT_EPOCHS rows; rows of
 * *out beyond them stay. [no other user of out] */
void tsi_report_keep(const TsiReport* report, TsiKept* out);
/* Gives the tables back and sets report->mapping to NULL; does nothing if that is NULL. [no other user of report] */
void tsi_report_drop(TsiReport* report);

/* ---- report_rows.c: which rows of a list a report keeps, and their order ---- */

enum { TSI_ROWS_ALL = -1, TSI_CHOSEN_LABELS = 512 };
/* Keeps, if there are more than 2 * `each` rows of phases, or of epochs, the `each` that hold most bytes, and as many
 * that are oldest, half of these among those that drain; counts the others in phases_left_out and epochs_left_out.
 * TSI_ROWS_ALL keeps all; `each` counts as 256 at most. Epochs of the ring come before others. Then sorts both by era,
 * lowest first. [no other user of report] */
void tsi_report_choose(TsiReport* report, int each);
/* The label of the row with the sums of all labels without a row. Its id is the number of labels, which no label
 * has. */
#define TSI_REST_LABEL "(rest)"
/* Keeps, by id, the rows of the first and the last label, of those whose ended phases hold most, and of those that hold
 * most: TSI_CHOSEN_LABELS rows at most. With more labels than rows, the row of the rest comes last; otherwise nothing
 * changes. The rows are sorted by id. [no other user of report] */
void tsi_report_choose_labels(TsiReport* report);

/* Returns the share, 0 to 1, of the slabs met by ends of the label's phases that these took back; 1 if they met none.
 * [any thread, needs no lock] */
TSI_INLINE double tsi_label_drainability(const SlabLabelStats* stats) {
    return stats->closed_slabs != 0 ? 1.0 - (double)stats->pinned_slabs / (double)stats->closed_slabs : 1.0;
}

/* Sorts rows of at most TSI_ROW_MAX bytes; no two of them are equal. */
enum { TSI_ROW_MAX = 512 };
/* Sorts `count` rows of `size` bytes, at most TSI_ROW_MAX, so that goes_before(row, next) is true for each and the
 * next; no two of them are equal. O(n log n), in place. [no other user of table] */
void tsi_rows_sort(void* table, uint32_t count, size_t size, bool (*goes_before)(const void*, const void*));

/* ---- together.c ---- */

/* Sets *out to the sums of the figures of `count` allocators of a process, at least 1, without rows of lists; it has
 * nothing to drop. The reports are read only. [no other user of out] */
void tsi_reports_together(const TsiReport* reports, unsigned count, TsiReport* out);

/* ---- json.c, prometheus.c ---- */

typedef bool (*TsiWriteFn)(void* ctx, const char* bytes, size_t n);
/* Writes a report as one JSON document, in pieces, to write(ctx, bytes, n). Returns true, or false as soon as `write`
 * does; it is not called again then. [any thread, needs no lock] */
bool tsi_report_json(const TsiReport* report, TsiWriteFn write, void* ctx);
/* Writes `count` reports of a process, at least 1, as one JSON document, with their sums if there are several. Returns
 * true, or false as soon as `write` does; it is not called again then. [any thread, needs no lock] */
bool tsi_reports_json(const TsiReport* reports, unsigned count, TsiWriteFn write, void* ctx);
/* Writes `count` reports of allocators of a process, 1 to SLAB_SEGMENT_SLOTS, from reports[0] on, as one page of
 * OpenMetrics text: each family's head once, then the series of all reports, each with the label `allocator`. Goes in
 * pieces to write(ctx, bytes, n). Returns true, or false as soon as `write` does; it is not called again then.
 * [any thread, needs no lock] */
bool tsi_reports_prometheus(const TsiReport* reports, unsigned count, TsiWriteFn write, void* ctx);
/* Writes one allocator as Prometheus text, without the label `allocator`. Returns true, or false as soon as `write`
 * does; it is not called again then. [any thread, needs no lock] */
bool tsi_report_prometheus(const TsiReport* report, TsiWriteFn write, void* ctx);

#endif
