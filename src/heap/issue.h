/*
 * issue.h - the first handle of an object that is being made. The rules are those of handles.h.
 */
#ifndef TSI_HEAP_ISSUE_H
#define TSI_HEAP_ISSUE_H

#include "heap/names.h"

/* An object's first handle. */
typedef struct TsiIssue {
    SlabHandle handle; /* 0: its generations ran out (spent), or there is no memory for counts */
    bool spent;
    TsiPlace at; /* the object, and the seq of its slab */
    uint32_t seq;
} TsiIssue;
/* For the object at p, which nobody can end meanwhile: its owner's bracket is open, or its stripe taken. Spent lines
 * are set aside. */
void tsi_handle_issue_held(TsiArena* a, void* p, TsiIssue* out);

#endif
