/*
 * rows.h - what tslab_bench measures: the vocabulary that runner and workers share.
 *
 * A row is a workload that can be asked for by name; it yields one or several metrics, each a line of
 * the table. A plan says how a worker is to do it: timed, in full or in part; checked, small and with
 * contents verified; or counted, a fixed number of laps under callgrind. Runner and workers compile the
 * same table, so a number needs no more than its index on the way between them.
 */
#ifndef BENCH_ROWS_H
#define BENCH_ROWS_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MAX_METRICS = 12, SAMPLING_PERIOD = 64 };

enum row_id {
    ROW_PAIR,
    ROW_BATCH,
    ROW_BATCH_TAIL,
    ROW_MIXED,
    ROW_LIVE,
    ROW_THREADS,
    ROW_XTHREAD,
    ROW_FEW_OBJECTS,
    ROW_THREAD_BURSTS,
    ROW_LATE_FREES,
    ROW_REQUEST,
    ROW_REQUEST_OWN,
    ROW_REQUEST_BULK,
    ROW_SHARED_ALLOCATOR,
    ROW_IN_DOMAIN,
    ROW_PHASE10,
    ROW_LABELS,
    ROW_EVENT_LOOP,
    ROW_PHASE100,
    ROW_BIG_PHASE,
    ROW_REALLOC_GROW,
    ROW_GROW_LARGE,
    ROW_HANDED_ON,
    ROW_END_TAIL,
    ROW_REQUEST_TAIL,
    ROW_DOMAIN,
    ROW_DOMAIN_SHARED,
    ROW_OPEN_PHASES,
    ROW_LEFT_OVER,
    ROW_BIG_PHASES,
    ROW_CHURN_APART,
    ROW_CHURN_LEFT,
    ROW_SURVIVORS,
    ROW_RSS,
    ROW_DRIFT,
    ROW_CLOSE_EMPTY,
    ROW_CLOSE_SLABS,
    ROW_CLOSE_COST,
    ROW_SNAPSHOT,
    ROW_COUNT
};

enum plan_mode { PLAN_TIMED, PLAN_CHECKED, PLAN_COUNTED };

struct plan {
    enum plan_mode mode;
    unsigned divisor; /* timed: laps are divided by it */
    bool full;        /* timed: sizes that only the full form has */
    unsigned laps;    /* counted: how many */
};

/* Which is better; PLAIN says how it was, and is nothing to win. */
enum sense { LESS, MORE, PLAIN };

struct metric {
    const char* name;
    const char* unit;
    enum sense sense;
};

struct row {
    const char* name;
    const char* what;
    struct metric metrics[MAX_METRICS];
    /* For callgrind: laps of the short run (the long one has twice as many) and operations in a lap; 0: not counted. */
    unsigned count_laps, count_ops;
    bool heavy;     /* the quick form does it in its first repetition only */
    bool unchecked; /* keeps no contents of its own: there is no checked pass */
    bool drawn;     /* what it does is drawn from the seed */
};

extern const struct row rows[ROW_COUNT];

static inline unsigned row_metrics(const struct row* row) {
    unsigned n = 0;
    while (n < MAX_METRICS && row->metrics[n].name) n++;
    return n;
}

/* Index of the row of that name; ROW_COUNT when there is none. */
unsigned row_find(const char* name);

#endif
