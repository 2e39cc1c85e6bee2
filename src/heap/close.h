/*
 * close.h - the ways in which an incarnation ends, and what becomes of its record afterwards.
 */
#ifndef TSI_HEAP_CLOSE_H
#define TSI_HEAP_CLOSE_H

#include "account/close_probes.h"
#include "heap/ready.h"

/* SCOPE: a scope ends. OWN: likewise, and the caller's pin goes with it. ASKED: the program asks for it by the epoch's
 * id; then everything goes back at once, and resident size and time are measured, where the incarnation holds
 * something: both cost more than an empty close. */
typedef enum TsiEnding { TSI_END_SCOPE, TSI_END_OWN, TSI_END_ASKED } TsiEnding;

/* Ends an incarnation: by EPOCH_RELEASE with every object in it, by EPOCH_DRAIN leaving those that live until they are
 * freed. Gives its memory back as far as it can go now, logs the end and tells its probes, runs its cleanups if nothing
 * is left, and fills *out, unless NULL. how: on whose behalf; TSI_END_OWN takes the caller's pin. Returns false, and
 * does nothing, with *out and the pin as they were, if the reference is stale.
 * [any thread, no lock held, no bracket open] */
bool tsi_epoch_end(TsiArena* a, TsiRef ref, EpochCloseMode mode, TsiEnding how, EpochReceipt* out);
/* Ends an incarnation like tsi_epoch_end, but one that may be the ring's current: moves the ring on first, so that
 * calls without an epoch find the next, and afterwards sweeps all that waits for it, whose membarriers out->interrupts
 * counts, too. Returns like that. [any thread, no lock held, no bracket open] */
bool tsi_epoch_close(TsiArena* a, TsiRef ref, EpochCloseMode mode, TsiEnding how, EpochReceipt* out);
/* Ends an incarnation that never held anything, has no cleanups and is pinned by the caller alone, and frees its
 * record, with that pin. Sets *id and label to what it had, for a receipt. Returns false, and does nothing, with both
 * as they were, if it is not so. b: the calling thread's binding, or NULL.
 * [any thread, no lock held, no bracket open] */
bool tsi_inc_end_empty(TsiArena* a, TsiBinding* b, TsiRef ref, EpochId* id, char label[TSI_LABEL_BYTES]);
/* Ends an incarnation like tsi_inc_end_own, which has tried the straight end already where b is not NULL, mode is
 * EPOCH_RELEASE, a->none_at_hand is false and no probe watches closes. Returns like that, with *out filled likewise.
 * [any thread, no lock held, no bracket open] */
bool tsi_inc_end_common(TsiArena* a, TsiBinding* b, TsiRef ref, EpochCloseMode mode, EpochReceipt* out);
/* Ends a domain's own incarnation, whose pin goes with it, by the shortest way: straight (heap/ready.h); without a
 * sweep, where it has never held anything; or like tsi_epoch_end. b: NULL where the thread has none. Fills *out, unless
 * NULL: with zeros where the incarnation had ended before. Returns true if it held something.
 * [any thread, no lock held, no bracket open] */
TSI_INLINE bool tsi_inc_end_own(TsiArena* a, TsiBinding* b, TsiRef ref, EpochCloseMode mode, EpochReceipt* out) {
    /* In shared mode its heap is a bank's; stand-ins end by the sweep. */
    bool released = b != NULL && mode == EPOCH_RELEASE;
    bool own = released && !a->none_at_hand && !tsi_closes_are_watched();
    return (TSI_LIKELY(own) && tsi_ready_end(b, ref, out)) || tsi_inc_end_common(a, b, ref, mode, out);
}
/* Makes the ring's next id current, with a new incarnation, and fires probes. The one that was current accepts no more;
 * the one that had the id is closed, and waits for a sweep (finish.h) if it has heaps; owners of heaps in both are
 * asked to let go (RETIRE). If `from` is not 0, does so only while that is current. Returns the current id afterwards;
 * the same as before if no record is left. [any thread, no lock held, no bracket open] */
EpochId tsi_epoch_advance(TsiArena* a, TsiRef from);

#endif
