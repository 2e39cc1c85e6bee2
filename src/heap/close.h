/*
 * close.h - the end of incarnations, and what their records go through afterwards.
 */
#ifndef TSI_HEAP_CLOSE_H
#define TSI_HEAP_CLOSE_H

#include "account/close_tell.h"
#include "heap/ready.h"

/* SCOPE: the end of a scope. OWN: the same, and the caller's pin goes with it. ASKED: the program asks for it by the
 * epoch's id; then everything goes back at once, and resident size and time are measured, where the incarnation holds
 * something: both cost more than an empty close. */
typedef enum TsiEnding { TSI_END_SCOPE, TSI_END_OWN, TSI_END_ASKED } TsiEnding;
/* Ends an incarnation; false, and nothing done, when the reference is stale. Fills *out when not NULL. */
bool tsi_epoch_end(TsiArena* a, TsiRef ref, EpochCloseMode mode, TsiEnding how, EpochReceipt* out);
/* As tsi_epoch_end, of one that may be the ring's current: the ring moves on first, so that calls without an epoch
 * find the next. */
bool tsi_epoch_close(TsiArena* a, TsiRef ref, EpochCloseMode mode, TsiEnding how, EpochReceipt* out);
/* Ends an incarnation that never held anything, has no cleanups and is pinned by the caller alone. Its record is free
 * afterwards. Returns false, and has done nothing, if it is not so. id and label: what it had, for a receipt, the rest
 * of which is zeros. */
bool tsi_inc_end_empty(TsiArena* a, TsiBinding* b, TsiRef ref, EpochId* id, char label[TSI_LABEL_BYTES]);
/* As tsi_inc_end_own, which has tried the straight end where that is the thread's own and nobody listens. */
bool tsi_inc_end_common(TsiArena* a, TsiBinding* b, TsiRef ref, EpochCloseMode mode, EpochReceipt* out);
/* Ends the incarnation of a domain's own, whose pin goes with it, by the shortest way there is: straight
 * (heap/ready.h); without a sweep, where it has never held anything; or as tsi_epoch_end. b: NULL where the thread has
 * none. Fills *out when not NULL: with zeros where the incarnation had ended before. Returns true if it held something.
 * [no lock, no bracket] */
TSI_INLINE bool tsi_inc_end_own(TsiArena* a, TsiBinding* b, TsiRef ref, EpochCloseMode mode, EpochReceipt* out) {
    /* In shared mode its heap is a bank's; stand-ins end by the sweep. */
    bool own = b != NULL && mode == EPOCH_RELEASE && !a->none_at_hand && !tsi_closes_are_watched();
    return (TSI_LIKELY(own) && tsi_ready_end(b, ref, out)) || tsi_inc_end_common(a, b, ref, mode, out);
}
/* Moves the ring on; where `from` is not 0, only while that is current. Returns the current id afterwards. */
EpochId tsi_epoch_advance(TsiArena* a, TsiRef from);

#endif
