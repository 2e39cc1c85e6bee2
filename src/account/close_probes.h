/*
 * close_probes.h - the probes of a phase's end, which fire only if a tool listens.
 *
 * These alone have semaphores, words that a tool raises while it is attached (src/base/probes.h): they report how long
 * the end took, and reading a clock costs a tenth of the end of a small phase. All places where they fire are in one
 * file, because tools take the first place's semaphore for all.
 */
#ifndef TSI_ACCOUNT_CLOSE_PROBES_H
#define TSI_ACCOUNT_CLOSE_PROBES_H

#include "base/probes.h"
#include "state/arena.h"

#ifdef TSI_USDT
/* Tools that listen to each. Escapes are left out: their ends have read the clock anyway. */
#define TSI_LISTENERS(name) extern volatile unsigned short tsi_listen_##name __attribute__((visibility("hidden")))
TSI_LISTENERS(epoch_close);
TSI_LISTENERS(close_objects);
TSI_LISTENERS(close_bytes);
TSI_LISTENERS(close_slabs);
/* Returns true if a tool listens to ends of phases. [any thread, needs no lock] */
TSI_INLINE bool tsi_closes_are_watched(void) {
    return (tsi_listen_epoch_close | tsi_listen_close_objects | tsi_listen_close_bytes | tsi_listen_close_slabs) != 0;
}
#else
/* Returns false: this build has no probes. [any thread, needs no lock] */
TSI_INLINE bool tsi_closes_are_watched(void) { return false; }
#endif

/* Fires the probe epoch_close for the end of a phase that never held anything, as a release of 0 ns; no other probe.
 * label: TSI_LABEL_BYTES, with zeros behind the text. [any thread, needs no lock] */
void tsi_tell_empty_close(TsiArena* a, EpochId id, uint64_t era, const char* label);
/* Fires the probes of an end, epoch_close first and then those of the receipt's figures; if escaped.objects is not 0,
 * escape too. escaped: live objects, at the first close that drains; otherwise 0. [any thread, needs no lock] */
void tsi_tell_close(TsiArena* a, EpochCloseMode mode, const EpochReceipt* receipt, TsiTotals escaped);

#endif
