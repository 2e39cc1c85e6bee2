/*
 * report_walk.h - what the making of a report has in its hands: report_take.c walks, report_labels.c adds up labels.
 */
#ifndef TSI_STATS_REPORT_WALK_H
#define TSI_STATS_REPORT_WALK_H

#include "phase/draining.h"
#include "stats/report.h"

/* What a walk finds of one incarnation; by record index. */
typedef struct TsiPhaseSum {
    uint64_t slabs, empty, partial, full, bytes;
    TsiTotals live, issued;
    TsiHolding owned; /* by slabs that a heap still holds */
} TsiPhaseSum;

/* What a report needs of a record, read under its stripe. */
typedef struct TsiPhaseCopy {
    /* epoch_era 0: nothing to tell of. Allocated: by slabs that have left, or are not walked over. */
    SlabPhaseStats row;
    unsigned state; /* TSI_INC_... */
    bool is_id;     /* its id still names it */
    bool used;
    uint32_t label;       /* its record */
    TsiTotals released;   /* by slabs that have left, or are not walked over: */
    TsiTotals not_walked; /* what lives in those */
    uint64_t closed_slabs, pinned_slabs, slow, lock_fast, lock_contended; /* all that was not posted */
    TsiTotals new_allocated, new_released, posted_freed;
    bool draining, over; /* in the tree of its label; see TsiDraining, */
    TsiHolding settled;  /* with this */
} TsiPhaseCopy;

typedef struct TsiWalk {
    TsiArena* a;
    TsiReport* r;
    TsiPhaseCopy* copies;
    TsiPhaseSum* sums;
    uint32_t* copied; /* records that have a copy: a look at each of the others would fetch a page for it */
    uint32_t copies_made;
    uint32_t* seen;      /* by binding: the record in which it was counted last */
    TsiDrainSum* drains; /* by label's record */
    uint32_t incs, bindings;
    bool figures; /* phases that have settled are not looked at: their labels know what they hold */
} TsiWalk;

/* Time since the first slab of a phase that was used. */
TSI_INLINE uint64_t tsi_walk_since(const TsiWalk* w, const TsiPhaseCopy* c) {
    uint64_t since = c->row.open_since_ns, born = w->a->born_ns;
    return since > born ? since : born; /* the first incarnation of id 0 was always open */
}

/* In this order: what the accounts have, before any phase is read; what labels know of ended phases, before the slabs
 * are; what the walk has found; what is computed from it, in the order of ids. */
void tsi_labels_begin(TsiWalk* w);
void tsi_labels_drains(TsiWalk* w);
void tsi_labels_add(TsiWalk* w);
void tsi_labels_end(TsiWalk* w);

#endif
