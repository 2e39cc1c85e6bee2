/* records.c - see records.h. */
#include "heap/records.h"

#include "heap/heap.h"
#include "heap/registry.h"

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

void tsi_records_tidy_slow(TsiArena* a) { tidy(a, false); }

void tsi_records_trim(TsiArena* a, TsiBinding* b) {
    if (b != NULL) tsi_binding_flush_records(b);
    tidy(a, true);
    if (tsi_space_gives_back(&a->space)) tsi_space_trim(&a->space);
}
