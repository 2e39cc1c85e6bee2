/* close_probes.c - see close_probes.h. */
#define TSI_PROBE_SEMAPHORES
#include "base/probes.h"

#include "account/close_probes.h"

#ifdef TSI_USDT
/* The names that <sys/sdt.h> puts into the notes; other files know them by ours. */
#define SEMAPHORE(name) \
    static volatile unsigned short temporal_slab_##name##_semaphore __attribute__((section(".probes"), used))
#define KNOWN_AS(name)                               \
    extern volatile unsigned short tsi_listen_##name \
        __attribute__((visibility("hidden"), alias("temporal_slab_" #name "_semaphore")))
SEMAPHORE(epoch_close);
SEMAPHORE(close_objects);
SEMAPHORE(close_bytes);
SEMAPHORE(close_slabs);
SEMAPHORE(escape);
KNOWN_AS(epoch_close);
KNOWN_AS(close_objects);
KNOWN_AS(close_bytes);
KNOWN_AS(close_slabs);
#endif

void tsi_tell_empty_close(TsiArena* a, EpochId id, uint64_t era, const char* label) {
    tsi_probe_epoch_close(a->owner, id, era, label, EPOCH_RELEASE, 0);
}

void tsi_tell_close(TsiArena* a, EpochCloseMode mode, const EpochReceipt* receipt, TsiTotals escaped) {
    SlabAllocator* allocator = a->owner;
    const char* label = receipt->label;
    tsi_probe_epoch_close(allocator, receipt->epoch_id, receipt->epoch_era, label, mode, receipt->close_ns);
    tsi_probe_close_objects(allocator, receipt->epoch_era, label, receipt->objects_freed, receipt->objects_released,
                            receipt->objects_escaped);
    tsi_probe_close_bytes(allocator, receipt->epoch_era, label, receipt->bytes_freed, receipt->bytes_released,
                          receipt->bytes_escaped);
    tsi_probe_close_slabs(allocator, receipt->epoch_era, label, receipt->slabs_returned, receipt->bytes_returned,
                          receipt->slabs_deferred);
    if (escaped.objects == 0) return;
    tsi_probe_escape(allocator, receipt->epoch_id, receipt->epoch_era, label, escaped.objects, escaped.bytes);
}
