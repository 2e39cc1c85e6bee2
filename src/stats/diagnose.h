/*
 * diagnose.h - the figures behind the reports: what ended phases still hold, why allocations were slow,
 * what lives where.
 *
 * Nothing here allocates from a heap: tables are mappings of their own, so a report works inside a program whose
 * malloc is this library.
 */
#ifndef TSI_STATS_DIAGNOSE_H
#define TSI_STATS_DIAGNOSE_H

#include "state/arena.h"
#include "stats/snapshot.h"

#include "slab_diagnostics.h"

typedef struct TsiLeakRow {
    EpochLeakCandidate c;
    TsiRef ref;
    uint64_t refcount;         /* scopes inside and slab_epoch_inc_refcount */
    bool old;                  /* by tsi_leaks_by_label */
    bool expected;             /* of a phase that has let no more escape than its label may */
    uint32_t phases, unclosed; /* incarnations; those that the ring has moved past and nobody has closed */
} TsiLeakRow;

typedef struct TsiLeaks {
    TsiLeakRow* rows; /* largest first */
    uint32_t count, capacity;
} TsiLeaks;

/* Live objects of incarnations that accept no more, are at least threshold_sec old, and have let more escape than their
 * label may; one row a class. False with errno
 * ENOMEM and nothing to drop. O(slabs, and rows times log of rows). */
bool tsi_leaks_take(TsiArena* a, uint32_t threshold_sec, TsiLeaks* out);
/* Makes one row of all phases with the same label, for each class: sums, and era, id and age of the oldest. Rows of
 * at least old_sec stay apart from younger ones and come first. */
void tsi_leaks_by_label(TsiLeaks* l, uint32_t old_sec);
void tsi_leaks_drop(TsiLeaks* l);

/* Shares and recommendation from the counts in *s; `warm_share`: of the slabs taken, percent that were warm. */
void tsi_slow_path_judge(SlowPathAttribution* s, unsigned warm_share);
/* Fills rows for classes with hits; returns how many. */
uint32_t tsi_slow_path_take(TsiArena* a, SlowPathAttribution out[TSI_CLASSES]);

/* Calls fn for each live object of an incarnation until it returns false; returns the number of calls. */
uint64_t tsi_walk(TsiArena* a, TsiRef ref, bool (*fn)(const SlabLiveObject*, void*), void* ctx);

#endif
