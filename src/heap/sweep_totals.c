/* sweep_totals.c - see sweep_totals.h. */
#include "heap/sweep_totals.h"

#include "account/charge.h"

#include <string.h>

void tsi_sweep_count(TsiSweep* w, size_t field, unsigned cls, uint64_t n) {
    char* counters = (char*)tsi_counters(w->arena, w->b, tsi_class_row(cls));
    tsi_sum_add(w->b, (_Atomic uint64_t*)(void*)(counters + field), n);
}

void tsi_sweep_purged(TsiSweep* w, unsigned cls, size_t bytes) {
    if (w->tally != NULL && tsi_space_gives_back(&w->arena->space)) w->tally->c[tsi_class_row(cls)].bytes += bytes;
}

void tsi_sweep_poll(TsiSweep* w, unsigned cls) {
    tsi_sweep_count(w, offsetof(TsiClassCounters, close_scanned), cls, 1);
    if (w->tally != NULL) w->tally->c[tsi_class_row(cls)].scanned++;
    w->inc->closed_slabs++;
}

void tsi_sweep_uncharge(TsiSweep* w) {
    tsi_uncharge(w->arena, w->b, w->inc, w->uncharged);
    w->uncharged = 0;
}

void tsi_receipt_fill_locked(TsiInc* i, TsiTotals live, EpochReceipt* r) {
    TSI_HOLDS(tsi_inc_lock(i));
    r->version = TSI_RECEIPT_VERSION;
    r->epoch_id = tsi_load_relaxed(&i->id);
    r->epoch_era = tsi_inc_era(i);
    memcpy(r->label, i->label, sizeof r->label);
    r->objects_allocated = i->allocated.objects;
    r->bytes_allocated = i->allocated.bytes;
    r->objects_released = i->released.objects;
    r->bytes_released = i->released.bytes;
    r->objects_escaped = live.objects;
    r->bytes_escaped = live.bytes;
    r->objects_freed = r->objects_allocated - r->objects_released - r->objects_escaped;
    r->bytes_freed = r->bytes_allocated - r->bytes_released - r->bytes_escaped;
}

void tsi_receipt_blank(EpochReceipt* r, EpochId id, uint64_t era, const char label[TSI_LABEL_BYTES]) {
    *r = (EpochReceipt){.version = TSI_RECEIPT_VERSION, .epoch_id = id, .epoch_era = era};
    memcpy(r->label, label, sizeof r->label);
}

void tsi_receipt_returned(const TsiSweep* w, EpochReceipt* r) {
    r->slabs_returned = w->slabs;
    r->regions_returned = w->regions;
    r->interrupts = w->interrupts;
    r->bytes_returned = w->bytes;
    r->slabs_deferred = w->deferred;
    r->bytes_deferred = w->deferred_bytes;
}
