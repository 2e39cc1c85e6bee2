/* records.c - see records.h. */
#include "heap/records.h"

#include "heap/heap.h"
#include "heap/registry.h"
#include "heap/warm.h"
#include "mem/chunk.h"
#include "mem/stock.h"

enum { SPARSE_CHUNKS = 8, SPARSE_BYTES = 64 << 10, MANY_PHASES = 1024 };

static void tidy(TsiArena* a, bool all) {
    TsiTable* const tables[] = {&a->phases.incs, &a->phases.ends, &a->heaps, &a->rooms, &a->lanes, &a->domains};
    if (!tsi_space_gives_back(&a->space)) return;
    for (unsigned n = 0; n < sizeof tables / sizeof *tables; n++) {
        if (tables[n]->base == NULL) continue; /* rooms or lanes */
        if (all) tsi_table_tidy_slow(tables[n], true);
        else tsi_table_tidy(tables[n]);
    }
    if (all || tsi_load_relaxed(&a->bindings.surplus)) tsi_registry_tidy(a, all);
}

/* Slabs and pages that are kept warm in many chunks. */
static void give_up_kept(TsiArena* a) {
    for (uint32_t n = 0; n < tsi_table_used(&a->bindings); n++) {
        TsiBinding* b = tsi_table_at(&a->bindings, n);
        if (tsi_load_acquire(&b->in_use)) (void)tsi_warm_flush(b); /* pairs with binding_make */
    }
    (void)tsi_stock_give_back(&a->space, UINT64_MAX);
}

void tsi_records_tidy_slow(TsiArena* a) { tidy(a, false); }

/* A few slabs that are kept warm, one here and one there, keep the bookkeeping of as many chunks, twenty times as
 * much. */
static bool is_sparse(TsiArena* a) {
    uint64_t chunks = tsi_load_relaxed(&a->space.open_chunks);
    return chunks > SPARSE_CHUNKS && tsi_load_relaxed(&a->space.committed_bytes) < chunks * SPARSE_BYTES;
}

/* After many phases, each time that those which are open have become a quarter: what was kept of the first that ended
 * may lie anywhere. */
void tsi_records_phase_given(TsiArena* a) {
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
        if (is_sparse(a)) give_up_kept(a);
    }
    tsi_records_tidy(a);
}

void tsi_records_trim(TsiArena* a, TsiBinding* b) {
    if (b != NULL) tsi_binding_flush_records(b);
    tidy(a, true);
    if (tsi_space_gives_back(&a->space)) tsi_chunks_leave(&a->space, 0);
}
