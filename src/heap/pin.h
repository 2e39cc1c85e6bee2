/*
 * pin.h - pins: records of incarnations that somebody holds on to, and what happens when the last one lets go.
 */
#ifndef TSI_HEAP_PIN_H
#define TSI_HEAP_PIN_H

#include "state/arena.h"

/* Lets go of a record. If it has drained, runs its cleanups; the record is reused once nothing pins it. [no lock, no
 * bracket] */
void tsi_inc_unpin(TsiArena* a, TsiBinding* b, TsiInc* i);
/* Registers a cleanup. Returns false if the incarnation is closed or memory is short. [no lock] */
bool tsi_inc_on_end(TsiArena* a, TsiRef ref, void (*fn)(void*), void* arg);

#endif
