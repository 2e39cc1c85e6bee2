/*
 * snapshot.h - one walk over the tags that every statistic is read from.
 *
 * Private lists are never walked: a slab is found by its tag, its words are read, and it counts only
 * if the tag is the same afterwards.
 */
#ifndef TSI_STATS_SNAPSHOT_H
#define TSI_STATS_SNAPSHOT_H

#include "state/arena.h"
#include "heap/settle.h"

#include "slab_stats.h"

typedef struct TsiSlabView {
    uint32_t slab_id, seq;
    unsigned cls, state;
    size_t bytes;
    TsiRef ref; /* its incarnation; 0 when warm */
    TsiSlabSum sum;
} TsiSlabView;

/* Calls fn for every slab that holds memory. O(slabs). */
void tsi_snapshot_slabs(TsiArena* a, void (*fn)(const TsiSlabView*, void*), void* ctx);
/* The same without those that no heap has any more, but large objects. O(tags, and slabs of heaps). */
void tsi_snapshot_unsettled(TsiArena* a, void (*fn)(const TsiSlabView*, void*), void* ctx);
/* Calls fn for every slab of an incarnation, which is active, under its stripe. Returns false if it is not, and calls
 * nothing. O(slabs of the incarnation). */
bool tsi_snapshot_phase(TsiArena* a, TsiRef ref, void (*fn)(const TsiSlabView*, void*), void* ctx);
/* Pages of the allocator's own tables that were written and not given back. O(pages). */
uint64_t tsi_snapshot_metadata_bytes(TsiArena* a);
/* Who declares an interest in an incarnation: scopes inside, and what the program counts. Its stripe is held. */
uint64_t tsi_snapshot_refcount(const TsiArena* a, TsiInc* i);
/* Sum of a refusal counter over all threads, living and gone. */
uint64_t tsi_snapshot_refused(TsiArena* a, unsigned what);
/* Sums of a class's counters over all threads, under their names; the rest is 0. */
void tsi_snapshot_class(TsiArena* a, unsigned cls, SlabClassStats* out);

#endif
