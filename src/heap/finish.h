/*
 * finish.h - what follows a sweep: what was taken goes back, and what was completed meanwhile is swept again.
 */
#ifndef TSI_HEAP_FINISH_H
#define TSI_HEAP_FINISH_H

#include "heap/taken.h"

/* Sweeps w's incarnation, as tsi_sweep_locked, and sees to all that follows. Its stripe is held on entry and given, as
 * are w's lanes. */
void tsi_sweep_whole(TsiSweep* w, TsiBinding* only);
/* Sweeps an incarnation that is no longer ACTIVE, in the mode of its state; nothing when the era has gone. How often
 * that interrupted other threads. */
unsigned tsi_inc_sweep(TsiArena* a, TsiBinding* b, TsiInc* i, uint64_t era);
/* Sweeps incarnations that lost their ring id while they still held slabs. How often that interrupted other threads. */
unsigned tsi_sweep_displaced(TsiArena* a, TsiBinding* b);
/* Gives back what the sweep has taken. No lock held. */
void tsi_sweep_finish(TsiSweep* w);
/* A freer found an ORPHAN slab complete. */
void tsi_slab_complete(TsiArena* a, TsiBinding* b, uint32_t slab_id, uint64_t tag);

#endif
