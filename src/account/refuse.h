/*
 * refuse.h - the caller's misuse: counted, reported to the callback, and a crash only with the option misuse_fatal,
 * after one line that says which misuse it was.
 */
#ifndef TSI_ACCOUNT_REFUSE_H
#define TSI_ACCOUNT_REFUSE_H

#include "state/arena.h"

typedef struct TsiMisuse {
    SlabMisuse what;
    const void* where;     /* the offending pointer, or NULL */
    SlabHandle handle;     /* the offending handle, or 0 */
    TsiRef ref;            /* the phase, or 0: that of the slab that `where` points into; counted for its label */
    const TsiLabel* label; /* if there is no phase: for that line only, or NULL */
} TsiMisuse;

/* Counts the misuse for the allocator and its label, calls the program's callback, unless the call comes from one, and
 * sets the thread's error (slab_error); with the option misuse_fatal prints a line and aborts instead of returning.
 * Preserves errno. [any thread, no lock held, no bracket open] */
void tsi_refuse_as(TsiArena* a, const TsiMisuse* misuse);
/* Refuses, as tsi_refuse_as does, a misuse `what` of which the pointer `where`, or NULL, is all that is known: its
 * label is that of the slab which the pointer is in, if any. [any thread, no lock held, no bracket open] */
TSI_INLINE void tsi_refuse(TsiArena* a, SlabMisuse what, const void* where) {
    tsi_refuse_as(a, &(TsiMisuse){.what = what, .where = where});
}
/* Returns the misuse's name in the statistics, a word; static storage. [any thread, needs no lock] */
const char* tsi_misuse_name(SlabMisuse what);
/* Counts a refusal that is not the caller's mistake, and fires its probe: what is TSI_REFUSED_LATE, TSI_REFUSED_MEMORY
 * or TSI_REFUSED_BUDGET. Sets no error and calls nothing of the program. [any thread, needs no lock] */
void tsi_refuse_count(TsiArena* a, unsigned what);
/* Sets errno to `error`, and the thread's error for slab_error: by ENOMEM NO_MEMORY, by EDQUOT BUDGET, by ESTALE ENDED,
 * by EBUSY BUSY, by any other ARGUMENT. Counts nothing. [any thread, needs no lock] */
void tsi_error_set(int error);

#endif
