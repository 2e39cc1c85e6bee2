/*
 * finish.h - the work after a sweep: gives back what was taken, and sweeps again what was completed meanwhile.
 */
#ifndef TSI_HEAP_FINISH_H
#define TSI_HEAP_FINISH_H

#include "heap/sweep_totals.h"

/* Sweeps the incarnation of *sweep by tsi_sweep_locked, with `only` as there, and does all that follows; nothing if the
 * record is not open or holds nothing. Gives the stripe and the sweep's banks. [stripe held, and given] */
void tsi_sweep_whole(TsiSweep* sweep, TsiBinding* only);
/* Sweeps an incarnation that is no longer ACTIVE, in the mode of its state; does nothing if `era` has gone. `most`:
 * bytes of slabs to look at, and the rest waits on the list below; 0: all of them, and its orphans. Returns the number
 * of membarriers that interrupted other threads. [any thread, no lock held, no bracket open] */
unsigned tsi_inc_sweep(TsiArena* a, TsiBinding* b, TsiInc* inc, uint64_t era, uint64_t most);
/* Gives back pages without a live object of the next orphans, `most` bytes of them, of an incarnation that drains; 0:
 * of all. Does nothing if `era` has gone. [any thread, no lock held, no bracket open] */
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
/* Gives back what the sweep has taken: to stores, to the stock, or to the system.
 * [any thread, no lock held, no bracket open] */
void tsi_sweep_finish(TsiSweep* sweep);
/* Returns an ORPHAN slab, seen with `tag`, that a freer found complete or whose incarnation was released meanwhile;
 * does nothing if another thread does. [any thread, no lock held, no bracket open] */
void tsi_slab_complete(TsiArena* a, TsiBinding* b, uint32_t slab_id, uint64_t tag);

#endif
