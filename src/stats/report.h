/*
 * report.h - one snapshot of everything: what takes it and what writes it out.
 *
 * tsi_report_take walks the slabs once and fills every table from that walk, so the rows of a report agree with each
 * other as far as threads stand still.
 *
 * The tables are in one mapping of the system, not on anybody's heap: a report must work inside a program whose malloc
 * is this library.
 */
#ifndef TSI_STATS_REPORT_H
#define TSI_STATS_REPORT_H

#include "state/arena.h"

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
    uint64_t publication;           /* read from a segment: its number; else 0 */
    uint64_t figures_ns, phases_ns; /* monotonic clock of global, class and label figures, and of rows of phases */
    uint64_t figures_age_ns, phases_age_ns; /* 0 in the process itself */
    char process_state[32];                 /* running, stopped, ended */
    uint64_t phases_left_out, epochs_left_out, labels_left_out;
    uint32_t allocator;     /* read from a segment: its slot; else 0 */
    uint32_t allocators;    /* of the process */
    uint32_t changed_since; /* 1: newer figures were not published */
    uint64_t objects_allocated, bytes_allocated, objects_freed, objects_released, objects_escaped, phases_opened,
        phases_ended, draining_objects, draining_bytes; /* of all labels */
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
    uint32_t label_count; /* rows, perhaps with one of the rest */
    uint32_t label_ids;   /* labels that have an id */
    TsiCloseRow* closes;  /* newest first */
    uint32_t close_count;
    SlabClassStats* settled; /* what slabs that no heap has add to `classes`, but large objects */
    void* mapping;
    size_t mapping_bytes;
} TsiReport;

/* What a walk over all slabs and phases has found, for reports of figures alone. */
enum { TSI_KEPT_PHASES = 256, TSI_KEPT_EPOCHS = 256 };
typedef struct TsiKept {
    SlabClassStats settled[TSI_CLASS_LARGE];
    uint64_t metadata_bytes, phases_ns, phases_left_out, epochs_left_out;
    uint32_t phase_count, epoch_rows;
    SlabPhaseStats phases[TSI_KEPT_PHASES];
    TsiEpochRow epochs[TSI_KEPT_EPOCHS];
} TsiKept;

/* ---- report_take.c ---- */

/* Everything, with all rows. False with errno ENOMEM. O(slabs + incarnations). */
bool tsi_report_take(TsiArena* a, TsiReport* out);
/* The same, with the rows of tsi_report_choose. */
bool tsi_report_take_rows(TsiArena* a, int each, TsiReport* out);
/* Figures without a look at phases that have ended and settled; the rest as it was kept, and `kept` must stay while the
 * report is used. O(labels + incarnation records + slabs of heaps). */
bool tsi_report_figures(TsiArena* a, TsiKept* kept, TsiReport* out);
/* The report has at most as many rows as there is room for. */
void tsi_report_keep(const TsiReport* r, TsiKept* out);
void tsi_report_drop(TsiReport* r);

/* ---- report_rows.c: which rows of a list a report keeps, and their order ---- */

enum { TSI_ROWS_ALL = -1, TSI_CHOSEN_LABELS = 512 };
/* Keeps the rows of the phases and epochs that hold most bytes, `each` of them, and as many that are oldest, half of
 * these of those that drain; the rest is counted as left out. All: TSI_ROWS_ALL. Epochs of the ring come before others.
 * Then both are by era. */
void tsi_report_choose(TsiReport* r, int each);
/* The label of the row that has the sums of all labels without a row of their own. Its id is the number of labels,
 * which no label has. */
#define TSI_REST_LABEL "(rest)"
/* Keeps the rows of the labels whose ended phases hold most, and of those that hold most, by id, the first and the last
 * id among them. Where there are more labels than rows, the row of the rest comes last. */
void tsi_report_choose_labels(TsiReport* r);

/* Share of the slabs that ends of phases met and took back; 1 where they met none. */
TSI_INLINE double tsi_label_drainability(const SlabLabelStats* l) {
    return l->closed_slabs != 0 ? 1.0 - (double)l->pinned_slabs / (double)l->closed_slabs : 1.0;
}

/* Sorts rows of at most TSI_ROW_MAX bytes; no two of them are equal. */
enum { TSI_ROW_MAX = 512 };
void tsi_rows_sort(void* table, uint32_t count, size_t size, bool (*goes_before)(const void*, const void*));

/* ---- together.c ---- */

/* Figures of 1 and more allocators of a process together, without rows of lists; nothing is to be dropped. */
void tsi_reports_together(const TsiReport* reports, unsigned count, TsiReport* out);

/* ---- json.c, prometheus.c ---- */

typedef bool (*TsiWriteFn)(void* ctx, const char* bytes, size_t n);
/* Both return false as soon as `write` does. */
bool tsi_report_json(const TsiReport* r, TsiWriteFn write, void* ctx);
bool tsi_reports_json(const TsiReport* reports, unsigned count, TsiWriteFn write, void* ctx);
/* Of 1 to SLAB_SEGMENT_SLOTS allocators of a process: each series has the label `allocator`. */
bool tsi_reports_prometheus(const TsiReport* reports, unsigned count, TsiWriteFn write, void* ctx);
bool tsi_report_prometheus(const TsiReport* r, TsiWriteFn write, void* ctx);

#endif
