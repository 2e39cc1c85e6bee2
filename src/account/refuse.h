/*
 * refuse.h - the caller's misuse: counted, told to the callback, and a crash only with the option misuse_fatal, which
 * then says what it was.
 */
#ifndef TSI_ACCOUNT_REFUSE_H
#define TSI_ACCOUNT_REFUSE_H

#include "state/arena.h"

typedef struct TsiMisuse {
    SlabMisuse what;
    const void* where;     /* the offending pointer, or NULL */
    SlabHandle handle;     /* the offending handle, or 0 */
    TsiRef ref;            /* the phase, or 0: that of the slab that `where` points into; counted for its label */
    const TsiLabel* label; /* where there is no phase: only told, or NULL */
} TsiMisuse;

/* Counts the misuse, tells of it, and notes it as the thread's error (slab_error). No lock is held and no bracket open.
 * Preserves errno. */
void tsi_refuse_as(TsiArena* a, const TsiMisuse* m);
TSI_INLINE void tsi_refuse(TsiArena* a, SlabMisuse what, const void* where) {
    tsi_refuse_as(a, &(TsiMisuse){.what = what, .where = where});
}
/* One word, as the statistics have it; static storage. */
const char* tsi_misuse_name(SlabMisuse what);
/* Counts what is not the caller's fault: TSI_REFUSED_LATE, TSI_REFUSED_MEMORY, TSI_REFUSED_BUDGET. */
void tsi_refuse_count(TsiArena* a, unsigned what);
/* Sets errno and the thread's error, which follows from it. */
void tsi_error_set(int error);

#endif
