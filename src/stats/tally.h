/*
 * tally.h - how a slab that a walk has seen adds to the statistics of the allocator and of its class.
 *
 * begin fills in the counters and zeroes the rest; add takes one slab of tsi_snapshot_slabs; end computes rates.
 */
#ifndef TSI_STATS_TALLY_H
#define TSI_STATS_TALLY_H

#include "stats/snapshot.h"

/* Returns the class of a public index; 0 for a bad one. The last two indices are regions, of all sizes, and large
 * objects. [any thread] */
TSI_INLINE unsigned tsi_class_number(uint32_t index) { return index < TSI_CLASS_LARGE ? index + 1 : 0; }
/* Returns the usable bytes of an object of the class; 0 if each object has its own size. [any thread] */
TSI_INLINE uint32_t tsi_class_object_size(const TsiArena* a, unsigned cls) {
    return cls <= TSI_SMALL_CLASSES ? a->space.classes->c[cls].size : 0;
}
/* Live objects of a region, by the class of their usable bytes. */
typedef struct TsiRegionTally {
    uint32_t objects[TSI_SMALL_CLASSES + 1];
    uint64_t bytes[TSI_SMALL_CLASSES + 1];
} TsiRegionTally;
/* Counts the live objects of a region by class; all 0 for a slab that is not a region. The figures are of now, and may
 * be others than the view's. [any thread] */
void tsi_tally_region(TsiArena* a, const TsiSlabView* view, TsiRegionTally* out);
/* Returns the live objects of class `cls` in a slab. Objects in regions count under the class of their usable bytes,
 * the region itself under the class of regions. `region`: by tsi_tally_region, read for regions only.
 * [any thread] */
uint64_t tsi_tally_live_of(const TsiSlabView* view, const TsiRegionTally* region, unsigned cls);
/* Returns true if no further object of the slab's class would fit. [any thread] */
bool tsi_tally_is_full(TsiArena* a, const TsiSlabView* view);

/* Fills *out with the allocator's counters, and with zeros where slabs are counted. Takes the registry lock.
 * [any thread, no lock but the segment's] */
void tsi_tally_global_begin(TsiArena* a, SlabGlobalStats* out);
/* Adds a slab that holds memory to the allocator's sums. [no other user of out] */
void tsi_tally_global_add(SlabGlobalStats* out, const TsiSlabView* view);
/* Fills *out with the counters of the class with a public index, and with zeros where slabs are counted. Takes the
 * registry lock. [any thread, no lock but the segment's] */
void tsi_tally_class_begin(TsiArena* a, uint32_t index, SlabClassStats* out);
/* Adds a slab to the sums of the class of *out, if it or objects in it are of that class. `region`: by
 * tsi_tally_region, read for regions only. [no other user of out] */
void tsi_tally_class_add(TsiArena* a, SlabClassStats* out, const TsiSlabView* view, const TsiRegionTally* region);
/* Computes the rates of a class from its sums. [no other user of out] */
void tsi_tally_class_end(SlabClassStats* out);
/* Sums the samples of all threads, living and gone; zeros if sampling is off. Takes the registry lock.
 * [any thread, no lock but the segment's] */
void tsi_tally_sampling(TsiArena* a, SlabSamplingStats* out);
/* Sums the refusals of all threads, living and gone. Takes the registry lock.
 * [any thread, no lock but the segment's] */
void tsi_tally_refusals(TsiArena* a, SlabRefusals* out);

#endif
