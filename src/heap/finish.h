/*
 * finish.h - the work after a sweep: gives back what was taken, and sweeps again what was completed meanwhile.
 */
#ifndef TSI_HEAP_FINISH_H
#define TSI_HEAP_FINISH_H

#include "heap/sweep_totals.h"

/* ---- below: [no lock, no bracket] unless stated ---- */

/* Sweeps w's incarnation by tsi_sweep_locked and does all that follows. Gives the stripe and w's banks. [stripe
 * held] */
void tsi_sweep_whole(TsiSweep* sweep, TsiBinding* only);
/* Sweeps an incarnation that is no longer ACTIVE, in the mode of its state; does nothing if `era` has gone. `most`:
 * bytes of slabs to look at, and the rest waits on the list below; 0: all of them, and its orphans. Returns how many
 * membarriers interrupted other threads. */
unsigned tsi_inc_sweep(TsiArena* a, TsiBinding* b, TsiInc* inc, uint64_t era, uint64_t most);
/* Gives back pages without a live object of the next orphans, `most` bytes of them, of an incarnation that drains; 0:
 * of all. */
void tsi_inc_thin(TsiArena* a, TsiBinding* b, TsiInc* inc, uint64_t era, uint64_t most);

/* ---- the list of incarnations that wait for a sweep, each with a pin: those from which the ring has taken the id
 * while they held slabs, and those that a sweep in pieces has not finished (S5 in sweep.c). Allocations that miss and
 * threads that exit sweep a piece; ends and trims sweep all. ---- */

/* Puts a pinned incarnation on the list, which takes the pin over. */
void tsi_sweep_later(TsiArena* a, TsiBinding* b, TsiInc* inc);
/* Puts a pinned incarnation on the list. Returns false, and leaves the pin to the caller, if it is there already. [ring
 * lock] */
bool tsi_unswept_put_locked(TsiArena* a, TsiInc* inc);
/* Sweeps all that is on the list. Returns how many membarriers that took. */
unsigned tsi_sweep_unswept(TsiArena* a, TsiBinding* b);
/* Sweeps a piece of the first incarnation on the list. */
void tsi_sweep_piece(TsiArena* a, TsiBinding* b);
/* Gives back what the sweep has taken. */
void tsi_sweep_finish(TsiSweep* sweep);
/* Returns an ORPHAN slab, seen with `tag`, that a freer found complete or whose incarnation was released meanwhile. */
void tsi_slab_complete(TsiArena* a, TsiBinding* b, uint32_t slab_id, uint64_t tag);

#endif
