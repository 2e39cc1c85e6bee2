/*
 * records.h - pages of free records go back to the system.
 *
 * Each table says when it has more than is worth keeping (os/table.h). Threads keep some records of each kind to
 * themselves; these count as taken.
 */
#ifndef TSI_HEAP_RECORDS_H
#define TSI_HEAP_RECORDS_H

#include "heap/arena.h"

void tsi_records_tidy_slow(TsiArena* a);
/* Where records have just been given to a table. No lock held. */
TSI_INLINE void tsi_records_tidy(TsiArena* a) {
    const TsiPhases* p = &a->phases;
    bool surplus = tsi_load_relaxed(&p->incs.surplus) || tsi_load_relaxed(&p->ends.surplus) ||
                   tsi_load_relaxed(&a->heaps.surplus) || tsi_load_relaxed(&a->rooms.surplus) ||
                   tsi_load_relaxed(&a->lanes.surplus) || tsi_load_relaxed(&a->domains.surplus) ||
                   tsi_load_relaxed(&a->bindings.surplus);
    if (TSI_UNLIKELY(surplus)) tsi_records_tidy_slow(a);
}
/* Where the record of a phase has just been given to its table, so that many phases were open at once. No lock held. */
void tsi_records_phase_given(TsiArena* a);
/* All pages of free records, and what this thread has kept. b may be NULL. No lock held. */
void tsi_records_trim(TsiArena* a, TsiBinding* b);

#endif
