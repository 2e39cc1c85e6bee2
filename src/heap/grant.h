/*
 * grant.h - regions while allocations are sampled or profiled: how far their owner bumps before it looks again.
 *
 * A grant ends a region's `lim` before the next allocation that is wanted, so that the one after it misses; that one is
 * timed or recorded, and the next grant begins behind it. No fast path has a branch for it.
 *
 * Profile. Marks lie on the bytes of a region: a life begins with a distance of its own, as does what follows a mark.
 *   Distances are exponential, so what is behind the last object when a life ends may be forgotten: no object is more
 *   or less likely to be hit for it. `mark` is the next one.
 * Samples are one in so many objects, and a grant is of bytes. So it reaches for three quarters of the objects that are
 *   left, by the size of those that were bumped last; the last few are granted none. When smaller ones come, the sample
 *   is late, and the next one earlier by as much. What was bumped is `issued` less `noted`. It is counted by the owner
 *   as it comes by, or by who takes the region from the heap, for the owner (`bumped_elsewhere`): a phase that ends
 *   within a grant counts what it has used of it, and no more.
 *
 * [own] as in arena.h. Bindings of lanes take no samples: there is nothing to grant, but regions have marks.
 */
#ifndef TSI_HEAP_GRANT_H
#define TSI_HEAP_GRANT_H

#include "heap/arena.h"

/* Counts what was bumped in the current region since the last look. True when the next object is to be timed. */
bool tsi_grant_settle(TsiBinding* b, TsiHeap* h);
/* An object of so many bytes was bumped: b->profile_hit when it is sampled, and the next grant of its region. fresh:
 * the region's life has begun with it. */
void tsi_grant_open(TsiBinding* b, TsiHeap* h, uint32_t bytes, bool fresh);
/* The same of an object that has a region alone. Samples count it as slow. */
void tsi_grant_alone(TsiBinding* b, TsiRegion* r, uint32_t bytes);
/* The last object of a region is about to reach to `end`: b->profile_hit when what it gains is sampled. */
void tsi_grant_grown(TsiBinding* b, TsiHeap* h, TsiRegion* r, uint32_t end);
/* The region has left the heap, which has a granter. */
void tsi_grant_end(TsiHeap* h, const TsiRegion* was);

#endif
