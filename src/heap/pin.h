/*
 * pin.h - incarnations that somebody holds on to, and what happens when the last lets go.
 */
#ifndef TSI_HEAP_PIN_H
#define TSI_HEAP_PIN_H

#include "state/arena.h"

/* Lets go of a record; when it has drained, its cleanups run and nothing pins it, it is reused. */
void tsi_inc_unpin(TsiArena* a, TsiBinding* b, TsiInc* i);
/* Registers a cleanup. */
bool tsi_inc_on_end(TsiArena* a, TsiRef ref, void (*fn)(void*), void* arg);

#endif
