/*
 * chunk_pages.h - giving back the bookkeeping of a chunk that has no slab in use.
 */
#ifndef TSI_MEM_CHUNK_PAGES_H
#define TSI_MEM_CHUNK_PAGES_H

#include "mem/space.h"

/* The chunk serves no class, and all of its slabs are in the pool. What cannot go now goes when the chunk is left
 * again, or at a trim. Pool lock held. */
void tsi_chunk_leave(TsiSpace* s, uint32_t chunk);
/* None of its bookkeeping has pages, as far as is known; counts of handles apart. */
bool tsi_chunk_has_left(const TsiSpace* s, uint32_t chunk);

#endif
