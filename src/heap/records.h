/*
 * records.h - pages of free records go back to the system.
 *
 * Each table says when it has more than is worth keeping (os/table.h). Threads keep some records of each kind to
 * themselves; these count as taken.
 */
#ifndef TSI_HEAP_RECORDS_H
#define TSI_HEAP_RECORDS_H

#include "state/arena.h"

/* all: not only what is more than is worth keeping. */
void tsi_records_tidy_slow(TsiArena* a, bool all);
/* Where records have just been given to a table. No lock held. */
TSI_INLINE void tsi_records_tidy(TsiArena* a) {
    const TsiPhases* p = &a->phases;
    bool surplus = tsi_load_relaxed(&p->incs.surplus) || tsi_load_relaxed(&p->ends.surplus) ||
                   tsi_load_relaxed(&a->heaps.surplus) || tsi_load_relaxed(&a->rooms.surplus) ||
                   tsi_load_relaxed(&a->domains.surplus) || tsi_load_relaxed(&a->bindings.surplus);
    if (TSI_UNLIKELY(surplus)) tsi_records_tidy_slow(a, false);
}
/* All pages of free records, and what this thread has kept. b may be NULL. No lock held. */
void tsi_records_trim(TsiArena* a, TsiBinding* b);

/* The thread leaves: its heaps are freed, and their regions are in the warm store. */
void tsi_ready_close(TsiBinding* b);
void tsi_binding_flush_records(TsiBinding* b);

/* Domain and incarnation records through the thread's own small stores. */
bool tsi_record_take_inc_slow(TsiArena* a, TsiBinding* b, uint32_t* index);
void tsi_record_give_slow(TsiArena* a, TsiTable* t, uint32_t index);
/* Incarnations first in, first out, so that a domain's id comes back late. The thread has one. */
TSI_INLINE uint32_t tsi_record_pop_inc(TsiBinding* b) {
    uint32_t index = b->inc_cache[b->inc_first];
    b->inc_first = (b->inc_first + 1) % TSI_RECORD_CACHE;
    b->inc_count--;
    return index;
}
TSI_INLINE bool tsi_record_take_inc(TsiArena* a, TsiBinding* b, uint32_t* index) {
    if (TSI_UNLIKELY(b->inc_count < TSI_RECORD_CACHE / 2)) return tsi_record_take_inc_slow(a, b, index);
    *index = tsi_record_pop_inc(b);
    return true;
}
/* b may be NULL. */
TSI_INLINE void tsi_record_give_inc(TsiArena* a, TsiBinding* b, uint32_t index) {
    if (TSI_LIKELY(b != NULL && b->inc_count < TSI_RECORD_CACHE))
        b->inc_cache[(b->inc_first + b->inc_count++) % TSI_RECORD_CACHE] = index;
    else tsi_record_give_slow(a, &a->phases.incs, index);
}
TSI_INLINE void tsi_record_give_domain(TsiArena* a, TsiBinding* b, uint32_t index) {
    if (TSI_LIKELY(b != NULL && b->domain_count < TSI_RECORD_CACHE)) b->domain_cache[b->domain_count++] = index;
    else tsi_record_give_slow(a, &a->domains, index);
}

/* Puts the thread's phases of its block of eras that are still there into the table; the block is used up. [own thread]
 */
void tsi_eras_leave(TsiBinding* b);
/* The same, and takes the next block. [own thread] */
void tsi_eras_block(TsiBinding* b);
/* Returns the next era, for a phase that is about to open in the record. [own thread] */
TSI_INLINE uint64_t tsi_era_next(TsiBinding* b, uint32_t index) {
    if (TSI_UNLIKELY(b->era == b->era_end)) tsi_eras_block(b);
    /* release: pairs with the acquire in tsi_era_find; what was there before is in the table (E1) */
    tsi_store_release(&b->era_record[b->era % TSI_ERA_BLOCK], index);
    return b->era++;
}
/* Returns the open or draining incarnation that has the era, or 0. [any thread, no lock] */
TsiRef tsi_era_find(TsiArena* a, uint64_t era);

#endif
