/*
 * diagnose.h - the figures behind the reports: objects that ended phases still hold, causes of slow allocations, live
 * objects by place.
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
    bool old;                  /* set by tsi_leaks_by_label */
    bool expected;             /* its phase has let no more escape than its label may */
    uint32_t phases, unclosed; /* incarnations; those of them that the ring has moved past and nobody has closed */
} TsiLeakRow;

typedef struct TsiLeaks {
    TsiLeakRow* rows; /* largest first */
    uint32_t count, capacity;
} TsiLeaks;

/* Collects the live objects of incarnations that accept no more, are at least threshold_sec seconds old, and have let
 * more escape than their label may; a row for each incarnation and class, the one with most bytes first. Returns true,
 * and *out for tsi_leaks_drop; false with errno ENOMEM, *out left alone and nothing to drop. Objects that begin or end
 * meanwhile may be missed or counted. O(slabs, and rows times log of rows). Takes stripes.
 * [any thread, no lock held] */
bool tsi_leaks_take(TsiArena* a, uint32_t threshold_sec, TsiLeaks* out);
/* Joins rows of phases with one label and one class that are all of at least old_sec seconds, or all younger: sums,
 * and era, id and age of the oldest. Sets `old` of the former, which come first; within both the larger before. Lowers
 * leaks->count to the rows that are left. [no other user of leaks] */
void tsi_leaks_by_label(TsiLeaks* leaks, uint32_t old_sec);
/* Gives the rows back and clears *leaks, which tsi_leaks_take has filled. [no other user of leaks] */
void tsi_leaks_drop(TsiLeaks* leaks);

/* Sets the four shares, in percent, and the recommendation of *slow from its counts and class index; the other fields
 * stay. warm_share: percent of the slabs taken that were warm. [no other user of slow] */
void tsi_slow_path_judge(SlowPathAttribution* slow, unsigned warm_share);
/* Fills a row for each class with slow allocations, from out[0] on, by class; further rows are left alone. Returns how
 * many rows. Takes the registry lock, once a class. [any thread, no lock held] */
uint32_t tsi_slow_path_take(TsiArena* a, SlowPathAttribution out[TSI_CLASSES]);

/* Calls fn(object, ctx) for each live object of the incarnation `ref` until it returns false, with no lock held; for
 * none if ref is 0 or fn NULL. *object is valid during the call only. Returns the number of calls. Objects that begin
 * or end meanwhile may be missed. [any thread, no lock held] */
uint64_t tsi_walk(TsiArena* a, TsiRef ref, bool (*fn)(const SlabLiveObject*, void*), void* ctx);

#endif
