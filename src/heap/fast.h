/*
 * fast.h - the ways in which a fast path ends; those paths are in alloc.h, free.h, bump.h and handles.h.
 */
#ifndef TSI_HEAP_FAST_H
#define TSI_HEAP_FAST_H

#include "state/bracket.h"

/* stands for an alignment: of an object that has grown, and may again */
enum { TSI_ALIGN_GROWS = 0 };

/* The way a fast path has ended. */
typedef enum TsiFast {
    TSI_FAST_DONE,
    TSI_FAST_HANDOVER,     /* done; the caller tail-calls what hands over */
    TSI_FAST_MISSED,       /* busy still names the line: the caller tail-calls what starts with tsi_bracket_missed */
    TSI_FAST_NOT_FOUND,    /* nothing was entered */
    TSI_FAST_REGION_EMPTY, /* done; the region looks empty, see bump.h */
    TSI_FAST_IS_REGION     /* nothing was entered; it is a region's, see bump.h */
} TsiFast;

/* Hands over h, which was asked for, after an allocation in it has succeeded. Returns p, the object.
 * [own thread, no lock held, no bracket open] */
TSI_COLD void* tsi_alloc_left(TsiBinding* b, TsiHeap* h, void* p);
/* Leaves the bracket of a fast path that has missed in h, if it is still open, whatever it names, and hands over what
 * was asked for. [own thread, no lock held] */
void tsi_fast_leave(TsiBinding* b, TsiHeap* h);

#endif
