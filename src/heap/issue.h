/*
 * issue.h - the first handle of an object that is being made, by the rules of handles.h.
 *
 *   I1  A call that asks for a handle and gets none leaves no trace of an object: the handle is there before the object
 *       is taken. So it is in a line, where the slot stays ready; a large object goes back before it is linked; a
 *       region whose generations are used up is passed over.
 */
#ifndef TSI_HEAP_ISSUE_H
#define TSI_HEAP_ISSUE_H

#include "state/names.h"

/* The first handle of an object. */
typedef struct TsiIssue {
    SlabHandle handle; /* 0: its generations ran out (spent), or there is no memory for counts */
    bool spent;
    bool tried; /* the object was there, or about to be: only its handle was lacking */
} TsiIssue;

/* Issues the handle of the object at *at, which is being made, or of a slot that is ready and about to be taken. Nobody
 * can end it meanwhile. Returns false if there is none. [owner, in bracket, or stripe held] */
bool tsi_handle_issue_held(TsiArena* a, const TsiPlace* at, TsiIssue* out);
/* Sets aside a line whose generations are used up: it hands out no more slots. [owner, in bracket] */
void tsi_line_retire(TsiArena* a, TsiHeap* h, TsiLine* l, unsigned cls);

#endif
