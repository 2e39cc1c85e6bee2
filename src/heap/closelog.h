/*
 * closelog.h - what the latest closes gave back: a ring of rows, one for each class of a closed incarnation.
 *
 * Written by closes that measure the resident size (not by the ends of domains: those come too often), read by
 * slab_analyze_reclamation. The lock is a leaf: nothing is locked or allocated under it.
 */
#ifndef TSI_HEAP_CLOSELOG_H
#define TSI_HEAP_CLOSELOG_H

#include "mem/size_class.h"
#include "os/lock.h"

#include "slab_diagnostics.h"

enum { TSI_CLOSELOG_ROWS = 256 };

typedef struct TsiCloseLog {
    TsiLock lock; /* all below */
    uint64_t added;
    EpochReclamation rows[TSI_CLOSELOG_ROWS]; /* row k is at k % TSI_CLOSELOG_ROWS */
} TsiCloseLog;

/* What one close did in each class; kept by its sweep. */
typedef struct TsiCloseTally {
    struct {
        uint64_t scanned, returned, bytes; /* slabs; slabs; asked of the system */
    } c[TSI_CLASSES];
} TsiCloseTally;

void tsi_closelog_add(TsiCloseLog* log, const EpochReclamation* row);
/* Copies the rows, oldest first; returns how many. */
uint32_t tsi_closelog_copy(TsiCloseLog* log, EpochReclamation out[TSI_CLOSELOG_ROWS]);
/* A row for each class with activity; `row` has what the classes share. */
void tsi_closelog_note(TsiCloseLog* log, EpochReclamation row, const TsiCloseTally* tally);

#endif
