/* records.c - see records.h. */
#include "heap/records.h"

#include "heap/thread_heaps.h"
#include "threads/registry.h"
#include "heap/warm.h"
#include "mem/chunk.h"
#include "mem/pool.h"
#include "phase/eras.h"
#include "account/charge.h"
#include "threads/bank.h"

enum { SPARSE_CHUNKS = 8, SPARSE_BYTES = 64 << 10, MANY_PHASES = 1024 };

void tsi_records_tidy_slow(TsiArena* a, bool all) {
    TsiTable* const tables[] = {&a->phases.incs, &a->phases.ends, &a->heaps, &a->rooms, &a->domains};
    if (!tsi_space_gives_back(&a->space)) return;
    for (unsigned n = 0; n < sizeof tables / sizeof *tables; n++) {
        if (all) tsi_table_tidy_slow(tables[n], true);
        else tsi_table_tidy(tables[n]);
    }
    if (all || tsi_load_relaxed(&a->bindings.surplus)) tsi_registry_tidy(a, all);
    tsi_eras_tidy(&a->phases);
}

/* Returns true if little memory is committed, spread over many chunks: kept slabs then keep the bookkeeping of as many
 * chunks, twenty times as much. [any thread, needs no lock] */
static bool is_sparse(TsiArena* a) {
    uint64_t chunks = tsi_load_relaxed(&a->space.open_chunks);
    return chunks > SPARSE_CHUNKS && tsi_load_relaxed(&a->space.committed_bytes) < chunks * SPARSE_BYTES;
}

void tsi_ready_close(TsiBinding* b) {
    TsiArena* a = b->arena;
    uint32_t chain = 0;
    tsi_space_give_begin(&a->space); /* of what the store has no room for */

    for (unsigned rank = 0; rank < TSI_READY_RANKS; rank++) {
        while (b->ready_count[rank] != 0) {
            _Atomic uint32_t* at = &b->ready[rank][--b->ready_count[rank]];
            TsiHeap* h = tsi_heap(a, tsi_load_relaxed(at) - 1);
            uint32_t slab = tsi_ready_seize(b, h);
            tsi_store_relaxed(at, 0);
            if (slab != 0) {
                tsi_slab(&a->space, slab - 1)->next = chain;
                chain = slab;
            }
            tsi_heap_drop_own(b, h);
        }
    }

    tsi_warm_call_in(a, b);
    b->ready_bytes = 0;
    for (chain = tsi_warm_put(a, b, chain, false); chain != 0;) {
        uint32_t id = chain - 1;
        chain = tsi_slab(&a->space, id)->next;
        (void)tsi_space_purge(&a->space, &id, 1);
    }
    tsi_space_give_end(&a->space);
}

void tsi_binding_flush_records(TsiBinding* b) {
    TsiArena* a = b->arena;
    tsi_ready_close(b);
    while (b->inc_count != 0) tsi_table_give(&a->phases.incs, tsi_record_pop_inc(b));
    while (b->domain_count != 0) tsi_table_give(&a->domains, b->domain_cache[--b->domain_count]);
    while (b->heap_count != 0) tsi_table_give(&a->heaps, b->heap_cache[--b->heap_count]);
    while (b->room_count != 0) tsi_table_give(&a->rooms, b->room_cache[--b->room_count]);
}

/* Does what is due once a table has got a phase's record, so that more phases were open at once than threads keep
 * records for: sets a->records_learned if a table has learned, does tsi_warm_poll, and keeps the most phases open.
 * After MANY_PHASES, each time that the open ones have become a quarter, gives the thread's kept records back, and
 * where memory is sparse all warm memory: it may lie anywhere. [any thread, no lock held] */
static void phase_given(TsiArena* a) {
    uint32_t learned = tsi_load_relaxed(&a->phases.incs.learned) | tsi_load_relaxed(&a->heaps.learned) |
                       tsi_load_relaxed(&a->domains.learned);
    if (TSI_UNLIKELY(learned != 0)) tsi_store_relaxed(&a->records_learned, true);
    tsi_warm_poll(a); /* a phase without objects has no end that would */
    uint32_t stores = tsi_table_taken(&a->bindings) * TSI_RECORD_CACHE + a->phases.ring_size + 2;
    uint32_t taken = tsi_table_taken(&a->phases.incs), open = taken > stores ? taken - stores : 0;
    uint32_t most = tsi_load_relaxed(&a->most_phases);
    bool fewer = open < most / 4 && tsi_load_relaxed(&a->phases_fall);
    if (open > most || fewer) tsi_store_relaxed(&a->most_phases, open);
    if (open > most && open >= MANY_PHASES) tsi_store_relaxed(&a->phases_fall, true);
    if (open == 0 && most != 0) { /* they start over */
        tsi_store_relaxed(&a->most_phases, 0);
        tsi_store_relaxed(&a->phases_fall, false);
    }

    if (fewer) {
        TsiBinding* b = tsi_binding_get(a, false);
        if (b != NULL) tsi_binding_flush_records(b);
        if (is_sparse(a)) tsi_warm_give_up(a);
    }

    tsi_records_tidy(a);
}

void tsi_records_trim(TsiArena* a, TsiBinding* b) {
    if (b != NULL) tsi_binding_flush_records(b);
    tsi_records_tidy_slow(a, true);
    if (tsi_space_gives_back(&a->space)) tsi_chunks_leave(&a->space, 0);
}

/* ---- eras ---- */

void tsi_eras_leave(TsiBinding* b) {
    TsiPhases* phases = &b->arena->phases;
    uint64_t era = tsi_load_relaxed(&b->era_block);
    for (; era != 0 && era < b->era; era++) {
        uint32_t index = tsi_load_relaxed(&b->era_record[era % TSI_ERA_BLOCK]);
        if (tsi_inc_era(tsi_inc(phases, index)) == era) tsi_eras_add(phases, index);
    }
    b->era = b->era_end;
    tsi_store_release(&b->era_block, 0); /* pairs with the acquire in tsi_era_find: they are in the table */
}

void tsi_eras_block(TsiBinding* b) {
    tsi_eras_leave(b);
    b->era = tsi_add_relaxed(&b->arena->phases.era_next, TSI_ERA_BLOCK);
    b->era_end = b->era + TSI_ERA_BLOCK;
    tsi_store_release(&b->era_block, b->era); /* as in tsi_eras_leave */
}

/* Returns the incarnation that has the era, of those in the threads' present blocks of eras, or 0.
 * [any thread, needs no lock] */
static TsiRef find_begun(TsiArena* a, uint64_t era) {
    for (uint32_t n = 0; n < tsi_table_used(&a->bindings); n++) {
        const TsiBinding* b = tsi_table_at(&a->bindings, n);
        /* acquire, both: a reader that no longer finds a record here finds it in the table */
        uint64_t block = tsi_load_acquire(&b->era_block);
        if (block == 0 || era - block >= TSI_ERA_BLOCK) continue;
        uint32_t index = tsi_load_acquire(&b->era_record[era % TSI_ERA_BLOCK]);
        return index != 0 && tsi_inc_era(tsi_inc(&a->phases, index)) == era ? tsi_ref(era, index) : 0;
    }
    return 0;
}

TsiRef tsi_era_find(TsiArena* a, uint64_t era) {
    TsiRef ref = tsi_phases_find_era(&a->phases, era);
    if (ref == 0 && era != 0) ref = find_begun(a, era);
    return ref != 0 ? ref : tsi_phases_find_era(&a->phases, era); /* it may have gone there meanwhile */
}

/* ---- stores ---- */

void tsi_record_give_slow(TsiArena* a, TsiTable* table, uint32_t index) {
    tsi_table_give(table, index);
    if (table == &a->phases.incs) phase_given(a);
    else tsi_records_tidy(a);
}

bool tsi_record_take_inc_slow(TsiArena* a, TsiBinding* b, uint32_t* index) {
    /* The ring keeps enough for one turn: advance must not fail because domains took every record. */
    if (tsi_table_take(&a->phases.incs, index, a->phases.ring_size + 1)) return true;
    if (b->inc_count == 0) return false;
    *index = tsi_record_pop_inc(b);
    return true;
}

/* Marks the incarnation as drained if it is CLOSED or RELEASED, holds neither heaps nor slabs, and was not marked
 * before. Returns its cleanups then, the first one's record index + 1, which the caller must run, and which it has no
 * more; otherwise 0, which may also mean that it has none. [stripe held] */
static uint32_t take_ends_if_drained_locked(TsiInc* inc) {
    TSI_HOLDS(tsi_inc_lock(inc));
    unsigned state = tsi_inc_state(inc);
    if (inc->drained || state < TSI_INC_CLOSED) return 0;
    if (inc->heaps != 0 || tsi_load_relaxed(&inc->slab_count) != 0) return 0;
    inc->drained = true;
    uint32_t ends = inc->ends;
    inc->ends = 0;
    return ends;
}

/* Runs the cleanups of a chain, from record `at` on (index + 1; 0: none), and frees their records. They are the
 * program's: no bank is held meanwhile, and the binding may have been anywhere when this returns, as after allocations.
 * [any thread, no lock held but a bank's, no bracket open] */
static void run_ends(TsiArena* a, uint32_t at) {
    TsiBankPause pause = tsi_bank_pause();
    while (at != 0) {
        TsiEnd end = *(TsiEnd*)tsi_table_at(&a->phases.ends, at - 1);
        tsi_table_give(&a->phases.ends, at - 1);
        end.fn(end.arg);
        at = end.next;
    }
    tsi_bank_resume(pause);
}

void tsi_inc_unpin(TsiArena* a, TsiBinding* b, TsiInc* inc) {
    TsiLock* lock = tsi_inc_lock(inc);
    tsi_phase_lock(inc);
    uint32_t ends = take_ends_if_drained_locked(inc);
    if (ends != 0) {
        tsi_lock_give_probed(lock); /* still pinned by the caller */
        run_ends(a, ends);
        tsi_lock_take(lock);
    }
    bool reuse = --inc->pins == 0 && inc->drained;
    if (reuse) tsi_post_settled_locked(a, b, inc);
    if (reuse) tsi_store_release(&inc->word, TSI_INC_RELEASED); /* era 0: matches no reference */
    tsi_lock_give_probed(lock);
    if (reuse) tsi_record_give_inc(a, b, inc->index);
}

bool tsi_inc_on_end(TsiArena* a, TsiRef ref, void (*fn)(void*), void* arg) {
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    uint32_t index;
    if (!tsi_table_take(&a->phases.ends, &index, 0)) return false;
    TsiEnd* end = tsi_table_at(&a->phases.ends, index);
    end->fn = fn;
    end->arg = arg;
    tsi_phase_lock(inc);
    bool ok = tsi_inc_era(inc) == tsi_ref_era(ref) && tsi_inc_state(inc) <= TSI_INC_ADVANCED;
    if (ok) {
        end->next = inc->ends;
        inc->ends = index + 1;
    }
    tsi_phase_unlock(inc);
    if (!ok) tsi_table_give(&a->phases.ends, index);
    return ok;
}
