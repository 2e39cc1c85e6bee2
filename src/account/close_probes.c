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

void tsi_tell_close(TsiArena* a, EpochCloseMode mode, const EpochReceipt* r, TsiTotals escaped) {
    SlabAllocator* s = a->owner;
    const char* label = r->label;
    tsi_probe_epoch_close(s, r->epoch_id, r->epoch_era, label, mode, r->close_ns);
    tsi_probe_close_objects(s, r->epoch_era, label, r->objects_freed, r->objects_released, r->objects_escaped);
    tsi_probe_close_bytes(s, r->epoch_era, label, r->bytes_freed, r->bytes_released, r->bytes_escaped);
    tsi_probe_close_slabs(s, r->epoch_era, label, r->slabs_returned, r->bytes_returned, r->slabs_deferred);
    if (escaped.objects == 0) return;
    tsi_probe_escape(s, r->epoch_id, r->epoch_era, label, escaped.objects, escaped.bytes);
}
