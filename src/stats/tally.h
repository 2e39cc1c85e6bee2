/*
 * tally.h - how a slab that a walk has seen adds to the statistics of the allocator and of its class.
 *
 * begin fills in the counters and zeroes the rest; add takes one slab of tsi_snapshot_slabs; end computes rates.
 */
#ifndef TSI_STATS_TALLY_H
#define TSI_STATS_TALLY_H

#include "stats/snapshot.h"

/* Returns the class of a public index, index + 1; 0 for a bad one. The last two indices are regions, of all sizes, and
 * large objects. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_class_number(uint32_t index) { return index < TSI_CLASS_LARGE ? index + 1 : 0; }
/* Returns the usable bytes of an object of class `cls`; 0 for regions and large objects, where each object has its own
 * size. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_class_object_size(const TsiArena* a, unsigned cls) {
    return cls <= TSI_SMALL_CLASSES ? a->space.classes->c[cls].size : 0;
}
/* Live objects of a region, by the class of their usable bytes. */
typedef struct TsiRegionTally {
    uint32_t objects[TSI_SMALL_CLASSES + 1];
    uint64_t bytes[TSI_SMALL_CLASSES + 1];
} TsiRegionTally;
/* Sets *out to the live objects of the region *view by class, those beyond the classes in entry 0; all 0 for a slab
 * that is not a region, or was empty when it was viewed. The figures are of now, and may be others than the view's.
 * [any thread, needs no lock] */
void tsi_tally_region(TsiArena* a, const TsiSlabView* view, TsiRegionTally* out);
/* Returns the live objects of class `cls` in the slab *view. Objects in regions count under the class of their usable
 * bytes, the region itself under the class of regions. region: set by tsi_tally_region, read for regions only.
 * [any thread, needs no lock] */
uint64_t tsi_tally_live_of(const TsiSlabView* view, const TsiRegionTally* region, unsigned cls);
/* Returns true if no further object of the slab's class would fit, by the words that *view has.
 * [any thread, needs no lock] */
bool tsi_tally_is_full(TsiArena* a, const TsiSlabView* view);

/* Sets *out to the allocator's counters, budget, resident bytes of the process and numbers of phases, and to zeros
 * where slabs are counted, which tsi_tally_global_add fills. Adapts the warm budget first, if that is due. Reads while
 * others write: figures are of slightly different times. Takes the registry lock.
 * [any thread, no lock held but the segment's] */
void tsi_tally_global_begin(TsiArena* a, SlabGlobalStats* out);
/* Adds the slab *view, of which view_slab returned true, to net_slabs, estimated_slab_rss_bytes, live_objects and
 * live_bytes of *out. [no other user of out] */
void tsi_tally_global_add(SlabGlobalStats* out, const TsiSlabView* view);
/* Sets *out to the counters of the class with the public index `index`, of which tsi_class_number is not 0, its sizes,
 * rates and locks, and to zeros where slabs are counted, which tsi_tally_class_add fills. Takes the registry lock.
 * [any thread, no lock held but the segment's] */
void tsi_tally_class_begin(TsiArena* a, uint32_t index, SlabClassStats* out);
/* Adds the slab *view to the sums of the class of *out (class_index): its live bytes of that class, and, if the slab
 * itself counts under that class, its bytes, and 1 to the slabs, to the warm ones if it is, and to the empty, full or
 * partial ones; otherwise does nothing. region: set by tsi_tally_region, read for regions only.
 * [no other user of out] */
void tsi_tally_class_add(TsiArena* a, SlabClassStats* out, const TsiSlabView* view, const TsiRegionTally* region);
/* Sets the resident bytes and the recycle rate of *out from its sums, after all slabs. [no other user of out] */
void tsi_tally_class_end(SlabClassStats* out);
/* Sets *out to the sums of the samples of all threads, living and gone: numbers, ns, maxima in ns and histograms; to
 * zeros, `version` included, if sampling is off. Takes the registry lock.
 * [any thread, no lock held but the segment's] */
void tsi_tally_sampling(TsiArena* a, SlabSamplingStats* out);
/* Sets *out to the sums of the refusals of all threads, living and gone, by cause, and to the slabs taken out of use
 * and ignored words of TSLAB_OPTIONS of the allocator. Takes the registry lock, once a cause.
 * [any thread, no lock held but the segment's] */
void tsi_tally_refusals(TsiArena* a, SlabRefusals* out);

#endif
