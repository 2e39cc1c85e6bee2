/*
 * report_walk.h - the state of a report in the making: report_take.c walks, report_labels.c adds up labels.
 */
#ifndef TSI_STATS_REPORT_WALK_H
#define TSI_STATS_REPORT_WALK_H

#include "phase/draining.h"
#include "stats/report.h"

/* The sums of a walk over the slabs of one incarnation; by record index. */
typedef struct TsiPhaseSum {
    uint64_t slabs, empty, partial, full, bytes;
    TsiTotals live, issued;
    TsiHolding owned; /* by slabs that a heap still holds */
} TsiPhaseSum;

/* A copy of a record for a report, read under its stripe. */
typedef struct TsiPhaseCopy {
    /* epoch_era 0: nothing to report. Allocated: by slabs that have left, or are not walked over. */
    SlabPhaseStats row;
    unsigned state; /* TSI_INC_... */
    bool is_id;     /* its id names it still */
    bool used;
    uint32_t label; /* its record */
    uint32_t relabellings;
    TsiTotals released;   /* by slabs that have left, or are not walked over: */
    TsiTotals not_walked; /* live objects in those */
    uint64_t closed_slabs, pinned_slabs, slow, lock_fast, lock_contended; /* everything that was not posted */
    TsiTotals new_allocated, new_released, posted_freed;
    bool draining, over; /* has settled objects after its end; see TsiDraining, */
    TsiHolding settled;  /* with this */
} TsiPhaseCopy;

typedef struct TsiWalk {
    TsiArena* a;
    TsiReport* report;
    TsiPhaseCopy* copies;
    TsiPhaseSum* sums;
    uint32_t* copied; /* records with a copy: reading each of the others would fetch a page for it */
    uint32_t copies_made;
    uint32_t* seen;      /* by binding: the record that it was last counted in */
    TsiDrainSum* drains; /* by label's record */
    uint32_t incs, bindings;
    bool figures; /* settled phases are skipped: their labels know what they hold */
} TsiWalk;

/* Returns when the phase of *copy, which was used, took its first slab, in ns of the clock, not before its allocator
 * began; TSI_UNTIMED if it is not timed. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_walk_since(const TsiWalk* walk, const TsiPhaseCopy* copy) {
    uint64_t since = copy->row.open_since_ns, born = walk->a->born_ns;
    return since > born ? since : born; /* the first incarnation of id 0 was always open */
}

/* Fills the rows of labels from their accounts, the first of four steps, before any phase is read; tables_map has
 * mapped the tables. A label whose sums moved in each of TRIES readings gets the last reading, in which some may be
 * missing. [no other user of walk] */
void tsi_labels_begin(TsiWalk* walk);
/* Sets walk->drains, the sums of ended phases by label: what labels expect to escape, and by add_draining what phases'
 * orphans hold; the second of four steps, before the slabs are read. Takes stripes.
 * [no other user of walk, no stripe held] */
void tsi_labels_drains(TsiWalk* walk);
/* Adds the results of the walk over phases and slabs to the rows of labels, the third of four steps: what each copied
 * phase has that its label's account has not, and the figures of ended phases; if walk->figures, also the bytes of
 * settled slabs from walk->drains. [no other user of walk] */
void tsi_labels_add(TsiWalk* walk);
/* Computes the rest of the rows and the report's own sums, adds the reading to floors and marks for growth and pace
 * (tsi_growth_turn, tsi_pace_turn), sets growth, paces and limits, and sorts the rows by id: the last of four steps.
 * Takes the labels' lock and gives it back. [no other user of walk, labels' lock not held] */
void tsi_labels_end(TsiWalk* walk);

#endif
