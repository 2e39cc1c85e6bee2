/*
 * closelog.h - the latest ends: a ring of rows, one for each class of a closed incarnation, and a ring of whole ends.
 *
 * Closes that measure the resident size write both; domains that leave live objects behind write whole ends (other
 * domains do not: they end too often). Read by slab_analyze_reclamation and by every report. The lock is a leaf:
 * nothing is locked or allocated under it.
 */
#ifndef TSI_STATE_CLOSELOG_H
#define TSI_STATE_CLOSELOG_H

#include "mem/size_class.h"
#include "os/lock.h"

#include "slab_diagnostics.h"

enum { TSI_CLOSELOG_ROWS = 256, TSI_CLOSES = 64 };

/* An end, a row of `closes` in the JSON document. */
typedef struct TsiCloseRow {
    uint64_t closed_ns; /* monotonic clock */
    EpochId epoch_id;
    uint64_t epoch_era;
    char label[32];
    uint64_t objects_freed, objects_released, objects_escaped, bytes_freed, bytes_released, bytes_escaped,
        slabs_returned, bytes_returned, slabs_deferred, bytes_madvised, rss_before_close, rss_after_close, close_ns;
} TsiCloseRow;

typedef struct TsiCloseLog {
    TsiLock lock; /* all below */
    uint64_t added;
    EpochReclamation rows[TSI_CLOSELOG_ROWS]; /* row k is at k % TSI_CLOSELOG_ROWS */
    uint64_t closed;
    TsiCloseRow closes[TSI_CLOSES]; /* end k is at k % TSI_CLOSES */
} TsiCloseLog;

/* The results of a close by class; kept by its sweep. */
typedef struct TsiCloseTally {
    struct {
        uint64_t scanned, returned, bytes; /* slabs; slabs; asked of the system */
    } c[TSI_CLASSES];
} TsiCloseTally;

/* Copies the rows that the log has, at most TSI_CLOSELOG_ROWS, oldest first, to the beginning of `out`; the rest of it
 * stays. Returns their number. Takes the log's lock; the log stays. [any thread, needs no lock] */
uint32_t tsi_closelog_copy(TsiCloseLog* log, EpochReclamation out[TSI_CLOSELOG_ROWS]);
/* Copies *row into the log as its newest end, in place of the oldest if it has TSI_CLOSES. Takes the log's lock.
 * [any thread, needs no lock] */
void tsi_closelog_end(TsiCloseLog* log, const TsiCloseRow* row);
/* Copies the ends that the log has, at most TSI_CLOSES, newest first, to the beginning of `out`; the rest of it stays.
 * Returns their number. Takes the log's lock; the log stays. [any thread, needs no lock] */
uint32_t tsi_closelog_ends(TsiCloseLog* log, TsiCloseRow out[TSI_CLOSES]);
/* Adds a row to the log for each class of which the close has looked at a slab, returned one or given bytes back;
 * without any, none. `row` has the fields that classes share; class and figures are set here. The newest
 * TSI_CLOSELOG_ROWS stay. Takes the log's lock. [any thread, needs no lock] */
void tsi_closelog_note(TsiCloseLog* log, EpochReclamation row, const TsiCloseTally* tally);

#endif
