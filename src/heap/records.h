/*
 * records.h - pages of free records go back to the system.
 *
 * Each table says when it has more free records than are worth keeping (os/table.h). Threads keep a few of each kind
 * for themselves; these count as taken.
 */
#ifndef TSI_HEAP_RECORDS_H
#define TSI_HEAP_RECORDS_H

#include "state/arena.h"

/* Gives back pages of free records of all tables, of bindings and of eras: `all` of them, or only those that are not
 * worth keeping. Does nothing where pages stay by policy. [any thread, no lock held] */
void tsi_records_tidy_slow(TsiArena* a, bool all);
/* Gives back pages of free records if a table has too many. Called after giving records. [any thread, no lock held] */
TSI_INLINE void tsi_records_tidy(TsiArena* a) {
    const TsiPhases* phases = &a->phases;
    bool surplus = tsi_load_relaxed(&phases->incs.surplus) || tsi_load_relaxed(&phases->ends.surplus);
    surplus = surplus || tsi_load_relaxed(&a->heaps.surplus) || tsi_load_relaxed(&a->rooms.surplus);
    surplus = surplus || tsi_load_relaxed(&a->domains.surplus) || tsi_load_relaxed(&a->bindings.surplus);
    if (TSI_UNLIKELY(surplus)) tsi_records_tidy_slow(a, false);
}
/* Gives back all pages of free records, and the records that this thread keeps. b: its binding, or NULL.
 * [any thread, no lock held] */
void tsi_records_trim(TsiArena* a, TsiBinding* b);

/* Frees the records of the thread's heaps that wait, and empties their lists; their regions go to the warm store, or to
 * the system, and what is lent for them to the budget. [own thread, no lock held] */
void tsi_ready_close(TsiBinding* b);
/* Frees the thread's heaps that wait, like tsi_ready_close, and gives all records that it keeps to their tables.
 * [own thread, no lock held] */
void tsi_binding_flush_records(TsiBinding* b);

/* ---- domain and incarnation records, through the thread's own small stores ---- */

/* Takes a record of an incarnation from the table, as long as that leaves ring_size + 1 for the ring, or else from the
 * thread's store, into *index. Returns false, with *index undefined, if there is none in either.
 * [own thread, no lock held but a domain's] */
bool tsi_record_take_inc_slow(TsiArena* a, TsiBinding* b, uint32_t* index);
/* Gives a record, of an incarnation or a domain, to `table`, its own, and pages of free records back if there are too
 * many. For an incarnation also notes how many phases are open and, when these have become a quarter of many, gives
 * back the thread's kept records and perhaps all warm memory. [any thread, no lock held] */
void tsi_record_give_slow(TsiArena* a, TsiTable* table, uint32_t index);
/* Takes a record of an incarnation from the thread's store, which has one: first in, first out, so that a domain's id
 * comes back late. Returns its index. [own thread, needs no lock] */
TSI_INLINE uint32_t tsi_record_pop_inc(TsiBinding* b) {
    uint32_t index = b->inc_cache[b->inc_first];
    b->inc_first = (b->inc_first + 1) % TSI_RECORD_CACHE;
    b->inc_count--;
    return index;
}
/* Takes a record of an incarnation into *index: from the thread's store if that is half full, otherwise from the table
 * first. Returns false, with *index undefined, if there is none. [own thread, no lock held but a domain's] */
TSI_INLINE bool tsi_record_take_inc(TsiArena* a, TsiBinding* b, uint32_t* index) {
    if (TSI_UNLIKELY(b->inc_count < TSI_RECORD_CACHE / 2)) return tsi_record_take_inc_slow(a, b, index);
    *index = tsi_record_pop_inc(b);
    return true;
}
/* Frees a record of an incarnation, to the thread's store if it fits. b: its binding, or NULL.
 * [any thread, no lock held] */
TSI_INLINE void tsi_record_give_inc(TsiArena* a, TsiBinding* b, uint32_t index) {
    if (TSI_LIKELY(b != NULL && b->inc_count < TSI_RECORD_CACHE))
        b->inc_cache[(b->inc_first + b->inc_count++) % TSI_RECORD_CACHE] = index;
    else tsi_record_give_slow(a, &a->phases.incs, index);
}
/* Frees a record of a domain, to the thread's store if it fits. b: its binding, or NULL. [any thread, no lock held] */
TSI_INLINE void tsi_record_give_domain(TsiArena* a, TsiBinding* b, uint32_t index) {
    if (TSI_LIKELY(b != NULL && b->domain_count < TSI_RECORD_CACHE)) b->domain_cache[b->domain_count++] = index;
    else tsi_record_give_slow(a, &a->domains, index);
}

/* Puts those of the thread's phases that have eras of its present block and are still in use into the table of eras,
 * and gives the block up: the next tsi_era_next takes another. [own thread, no lock held but a domain's] */
void tsi_eras_leave(TsiBinding* b);
/* Does tsi_eras_leave and takes the next block of eras. [own thread, no lock held but a domain's] */
void tsi_eras_block(TsiBinding* b);
/* Returns the next era of the thread's block, or of a new one where that is used up, for a phase that is about to open
 * in record `index`, and notes that record for tsi_era_find. [own thread, no lock held but a domain's] */
TSI_INLINE uint64_t tsi_era_next(TsiBinding* b, uint32_t index) {
    if (TSI_UNLIKELY(b->era == b->era_end)) tsi_eras_block(b);
    /* release: pairs with the acquire in tsi_era_find; what was there before is in the table (E1) */
    tsi_store_release(&b->era_record[b->era % TSI_ERA_BLOCK], index);
    return b->era++;
}
/* Returns the open or draining incarnation that has the era, or 0. [any thread, no lock held] */
TsiRef tsi_era_find(TsiArena* a, uint64_t era);

/* Takes one pin of the caller's off a record. If the incarnation is closed and holds nothing, and nobody has begun it
 * yet, runs its cleanups, which are the program's, with no lock held; then frees the record if nothing pins it any
 * more, and the reference is stale. b: the thread's binding, whose store may get the record, or NULL.
 * [any thread, no lock held, no bracket open] */
void tsi_inc_unpin(TsiArena* a, TsiBinding* b, TsiInc* inc);
/* Registers a cleanup, fn(arg), which runs once, in whatever thread finds the incarnation drained, with no lock held;
 * the last one registered runs first. Returns false, registering nothing, if `ref` is stale, closed or released, or
 * memory is short. [any thread, no lock held] */
bool tsi_inc_on_end(TsiArena* a, TsiRef ref, void (*fn)(void*), void* arg);

#endif
