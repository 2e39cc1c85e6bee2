/* taken.c - see taken.h. */
#include "heap/taken.h"

void tsi_sweep_count(TsiSweep* w, size_t field, unsigned cls, uint64_t n) {
    cls = tsi_class_row(cls);
    TsiClassCounters* c = w->b != NULL ? &w->b->counters[cls] : &w->arena->counters[cls];
    _Atomic uint64_t* sum = (_Atomic uint64_t*)(void*)((char*)c + field);
    if (w->b != NULL) tsi_store_relaxed(sum, tsi_load_relaxed(sum) + n);
    else tsi_add_relaxed(sum, n);
}

void tsi_sweep_purged(TsiSweep* w, unsigned cls, size_t bytes) {
    if (w->tally != NULL && tsi_space_gives_back(&w->arena->space)) w->tally->c[tsi_class_row(cls)].bytes += bytes;
}

void tsi_sweep_look(TsiSweep* w, unsigned cls) {
    tsi_sweep_count(w, offsetof(TsiClassCounters, close_scanned), cls, 1);
    if (w->tally != NULL) w->tally->c[tsi_class_row(cls)].scanned++;
    w->inc->closed_slabs++;
}
