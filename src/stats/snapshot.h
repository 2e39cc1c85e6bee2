/*
 * snapshot.h - one walk over the tags that every statistic is read from.
 *
 * Private lists are never walked: a slab is found by its tag, its words are read, and it counts only if the tag is
 * unchanged afterwards.
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

/* Calls fn(view, ctx) for every slab that holds memory, warm ones included, with no lock held; *view is valid during
 * the call only. O(slabs). [any thread, needs no lock] */
void tsi_snapshot_slabs(TsiArena* a, void (*fn)(const TsiSlabView*, void*), void* ctx);
/* Calls fn(view, ctx) for every slab that a heap or a thread's store of warm slabs has, and for large objects, with no
 * lock held; *view is valid during the call only. O(tags, and slabs of heaps). [any thread, needs no lock] */
void tsi_snapshot_unsettled(TsiArena* a, void (*fn)(const TsiSlabView*, void*), void* ctx);
/* Calls fn(view, ctx), under the stripe, for every slab of the incarnation `ref` if that is active; *view is valid
 * during the call only. Returns true; false, without a call, if it is not active. O(slabs of the incarnation).
 * [any thread that holds no stripe and no lock held behind it] */
bool tsi_snapshot_phase(TsiArena* a, TsiRef ref, void (*fn)(const TsiSlabView*, void*), void* ctx);
/* Returns the bytes of pages of the allocator's own tables that were written and not given back; writes of this instant
 * may be missed. O(pages). Takes the profile's lock. [any thread, no lock held but the segment's] */
uint64_t tsi_snapshot_metadata_bytes(TsiArena* a);
/* Returns how many references the incarnation `inc` has: scopes inside, those of its own domain and of domains that
 * borrow it, and those that the program counts with slab_epoch_inc_refcount. [stripe held] */
uint64_t tsi_snapshot_refcount(const TsiArena* a, TsiInc* inc);
/* Returns the sum of the refusal counter `what` (TSI_REFUSED_..., or a SlabMisuse) over all threads, living and gone.
 * Takes the registry lock. [any thread, no lock held but the segment's] */
uint64_t tsi_snapshot_refused(TsiArena* a, unsigned what);
/* Sets *out to the sums of the counters of class `cls` over all threads, living and gone; the other fields to 0. Takes
 * the registry lock. [any thread, no lock held but the segment's] */
void tsi_snapshot_class(TsiArena* a, unsigned cls, SlabClassStats* out);

#endif
