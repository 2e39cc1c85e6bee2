/* sweep_totals.c - see sweep_totals.h. */
#include "heap/sweep_totals.h"

#include "account/charge.h"

#include <string.h>

void tsi_sweep_count(TsiSweep* sweep, size_t field, unsigned cls, uint64_t n) {
    char* counters = (char*)tsi_counters(sweep->arena, sweep->b, tsi_class_row(cls));
    tsi_sum_add(sweep->b, (_Atomic uint64_t*)(void*)(counters + field), n);
}

void tsi_sweep_purged(TsiSweep* sweep, unsigned cls, size_t bytes) {
    if (sweep->tally != NULL && tsi_space_gives_back(&sweep->arena->space))
        sweep->tally->c[tsi_class_row(cls)].bytes += bytes;
}

void tsi_sweep_poll(TsiSweep* sweep, unsigned cls) {
    tsi_sweep_count(sweep, offsetof(TsiClassCounters, close_scanned), cls, 1);
    if (sweep->tally != NULL) sweep->tally->c[tsi_class_row(cls)].scanned++;
    sweep->inc->closed_slabs++;
}

void tsi_sweep_uncharge(TsiSweep* sweep) {
    tsi_uncharge(sweep->arena, sweep->b, sweep->inc, sweep->uncharged);
    sweep->uncharged = 0;
}

void tsi_receipt_fill_locked(TsiInc* inc, TsiTotals live, EpochReceipt* receipt) {
    TSI_HOLDS(tsi_inc_lock(inc));
    receipt->version = TSI_RECEIPT_VERSION;
    receipt->epoch_id = tsi_load_relaxed(&inc->id);
    receipt->epoch_era = tsi_inc_era(inc);
    memcpy(receipt->label, inc->label, sizeof receipt->label);
    receipt->objects_allocated = inc->allocated.objects;
    receipt->bytes_allocated = inc->allocated.bytes;
    receipt->objects_released = inc->released.objects;
    receipt->bytes_released = inc->released.bytes;
    receipt->objects_escaped = live.objects;
    receipt->bytes_escaped = live.bytes;
    receipt->objects_freed = receipt->objects_allocated - receipt->objects_released - receipt->objects_escaped;
    receipt->bytes_freed = receipt->bytes_allocated - receipt->bytes_released - receipt->bytes_escaped;
}

void tsi_receipt_blank(EpochReceipt* receipt, EpochId id, uint64_t era, const char label[TSI_LABEL_BYTES]) {
    *receipt = (EpochReceipt){.version = TSI_RECEIPT_VERSION, .epoch_id = id, .epoch_era = era};
    memcpy(receipt->label, label, sizeof receipt->label);
}

void tsi_receipt_returned(const TsiSweep* sweep, EpochReceipt* receipt) {
    receipt->slabs_returned = sweep->slabs;
    receipt->regions_returned = sweep->regions;
    receipt->interrupts = sweep->interrupts;
    receipt->bytes_returned = sweep->bytes;
    receipt->slabs_deferred = sweep->deferred;
    receipt->bytes_deferred = sweep->deferred_bytes;
}
