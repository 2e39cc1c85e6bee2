/*
 * finish.h - the work after a sweep: gives back what was taken, and sweeps again what was completed meanwhile.
 */
#ifndef TSI_HEAP_FINISH_H
#define TSI_HEAP_FINISH_H

#include "heap/sweep_totals.h"

/* Sweeps the incarnation of *sweep by tsi_sweep_locked, with `only` as there, and does all that follows: pins it
 * meanwhile, posts its figures, gives back what was taken, and puts it on the list below if sweep->more; cleanups may
 * run. Only gives the stripe and sweep->banks if the record is not open or holds nothing. [stripe held, and given] */
void tsi_sweep_whole(TsiSweep* sweep, TsiBinding* only);
/* Sweeps an incarnation that is no longer ACTIVE, in the mode of its state; does nothing if `era` has gone. `most`:
 * bytes of slabs to look at, and the rest waits on the list below; 0: all of them, and its orphans. Returns the number
 * of membarriers that interrupted other threads. [any thread, no lock held, no bracket open] */
unsigned tsi_inc_sweep(TsiArena* a, TsiBinding* b, TsiInc* inc, uint64_t era, uint64_t most);
/* Gives back pages without a live object of the next orphans, `most` bytes of them, of an incarnation that drains (0:
 * of all): it is ADVANCED or CLOSED and has orphans. Does nothing otherwise, or if its era is not `era`.
 * [any thread, no lock held, no bracket open] */
void tsi_inc_thin(TsiArena* a, TsiBinding* b, TsiInc* inc, uint64_t era, uint64_t most);

/* ---- the list of incarnations that wait for a sweep, each with a pin: those from which the ring has taken the id
 * while they held slabs, and those that a sweep in pieces has not finished (S5 in sweep.c). Allocations that miss and
 * threads that exit sweep a piece; ends and trims sweep all. ---- */

/* Puts a pinned incarnation on the list, which takes the pin over, also if it is there already.
 * [any thread, no lock held, no bracket open] */
void tsi_sweep_later(TsiArena* a, TsiBinding* b, TsiInc* inc);
/* Puts a pinned incarnation on the list. Returns false, and leaves the pin to the caller, if it is there already.
 * [ring lock held] */
bool tsi_unswept_put_locked(TsiArena* a, TsiInc* inc);
/* Sweeps all that is on the list. Returns the number of membarriers that took.
 * [any thread, no lock held, no bracket open] */
unsigned tsi_sweep_unswept(TsiArena* a, TsiBinding* b);
/* Sweeps a piece, TSI_PIECE_BYTES of slabs, of the first incarnation on the list, if there is one.
 * [any thread, no lock held, no bracket open] */
void tsi_sweep_piece(TsiArena* a, TsiBinding* b);
/* Gives back what the sweep has taken, and empties its chains: slabs to the quarantine, the warm store, the stock, or,
 * with at_once or for want of room, to the system; large objects; pages of PARTIAL slabs, which are orphans again
 * afterwards or, if they were completed meanwhile, returned. Then remembers pages put off, and counts what has gone in
 * inc->purged. The caller pins sweep->inc. [any thread, no lock held, no bracket open] */
void tsi_sweep_finish(TsiSweep* sweep);
/* Returns an ORPHAN slab, seen with `tag`, that a freer found complete or whose incarnation was released meanwhile;
 * runs the incarnation's cleanups if it was the last. Does nothing if another thread has claimed it. b: the calling
 * thread's binding, or NULL. [any thread, no lock held, no bracket open] */
void tsi_slab_complete(TsiArena* a, TsiBinding* b, uint32_t slab_id, uint64_t tag);

#endif
