/*
 * refuse.h - the caller's misuse: counted, told to the callback, never a crash.
 */
#ifndef TSI_HEAP_REFUSE_H
#define TSI_HEAP_REFUSE_H

#include "heap/arena.h"

/* No lock is held and no bracket open. Preserves errno. */
void tsi_refuse(TsiArena* a, SlabMisuse what, const void* where);
/* Counts what is not the caller's fault: TSI_REFUSED_LATE, TSI_REFUSED_MEMORY. */
void tsi_refuse_count(TsiArena* a, unsigned what);

#endif
