/*
 * finish.h - what follows a sweep: what was taken goes back, and what was completed meanwhile is swept again.
 */
#ifndef TSI_HEAP_FINISH_H
#define TSI_HEAP_FINISH_H

#include "heap/taken.h"

/* Sweeps w's incarnation, as tsi_sweep_locked, and sees to all that follows. Its stripe is held on entry and given, as
 * are w's banks. */
void tsi_sweep_whole(TsiSweep* w, TsiBinding* only);
/* Sweeps an incarnation that is no longer ACTIVE, in the mode of its state; nothing when the era has gone. most: bytes
 * of slabs to look at, the rest waits on the list below; 0: all of them, and its orphans. Returns how often that
 * interrupted other threads. */
unsigned tsi_inc_sweep(TsiArena* a, TsiBinding* b, TsiInc* i, uint64_t era, uint64_t most);
/* Gives back pages without a live object of the next orphans, `most` bytes of them, of an incarnation that drains. */
void tsi_inc_thin(TsiArena* a, TsiBinding* b, TsiInc* i, uint64_t era, uint64_t most);

/* The list of incarnations that wait for a sweep, each with a pin: what the ring has taken the id from while it held
 * slabs, and what a sweep in pieces has not finished (S5 in sweep.c). Allocations that miss and threads that exit
 * sweep a piece; ends and trims sweep all. */

/* Puts a pinned incarnation on the list, which takes the pin over. */
void tsi_sweep_later(TsiArena* a, TsiBinding* b, TsiInc* i);
/* The same under the ring's lock. Returns false, and leaves the pin to the caller, if it is there already. */
bool tsi_unswept_put_locked(TsiArena* a, TsiInc* i);
/* Sweeps all that is on the list. Returns how often that interrupted other threads. */
unsigned tsi_sweep_unswept(TsiArena* a, TsiBinding* b);
/* Sweeps a piece of what is on the list. */
void tsi_sweep_piece(TsiArena* a, TsiBinding* b);
/* Gives back what the sweep has taken. No lock held. */
void tsi_sweep_finish(TsiSweep* w);
/* A freer found an ORPHAN slab complete, or its incarnation was released meanwhile. */
void tsi_slab_complete(TsiArena* a, TsiBinding* b, uint32_t slab_id, uint64_t tag);

#endif
