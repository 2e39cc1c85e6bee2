/*
 * drainability.h - the vocabulary of tslab_drainability.
 *
 * Requests allocate short-lived objects and free them before they end. Beside them live *sessions*, which outlive
 * requests by far. Requests are served in ring epochs, `batch` of them in each; an epoch is closed `lag` epochs after
 * it ended: its *boundary*. The question is where the sessions are allocated: *rightly*, in a domain of their own, or
 * *wrongly*, in the epoch of the request that happens to run. A wrongly routed session that lives at the boundary pins
 * the slab it lies in.
 *
 *   drainable   a close after which no object of the epoch lives
 *   DSR         drainable closes / closes
 *   slab DSR    1 - slabs still held after the close / slabs held when the epoch ended
 *
 * Nothing here is estimated: objects are told by receipts, slabs and bytes by slab_stats_*. What theory says of the
 * same load is in theory.c and is printed beside it.
 *
 * An *arm* is one load run from start to end in a child process; its results lie in memory shared with the parent, so
 * what was done before an interrupt can be reported.
 */
#ifndef DRAINABILITY_H
#define DRAINABILITY_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum {
    POOL = 4000,
    SESSION_BYTES = 256,
    REQUEST_OBJECTS = 200,
    REQUEST_LEAST_BYTES = 96,
    REQUEST_MOST_BYTES = 480,
    SAMPLES = 200, /* of an arm, at most */
    TEXT = 160
};

/* What an arm does. Sessions are a pool of POOL objects of which random ones are replaced; or, with `endless`, so many
 * new ones per epoch that live to the end of the arm. */
struct load {
    const char* name;
    bool glibc;      /* malloc and free: no epochs, only the resident size is of interest */
    bool libc_coin;  /* decide the routing with rand(): see sweep.c */
    double p;        /* share of the sessions that are routed wrongly */
    double replaced; /* sessions of the pool replaced per request */
    unsigned endless, batch, epochs, lag;
    uint64_t seed;
};

/* After an epoch and the close that followed it. "closed": by epochs that have been closed. */
struct sample {
    uint64_t requests;
    uint64_t rss_bytes; /* above the start of the arm */
    uint64_t slabs, committed_bytes, live_bytes, metadata_bytes;
    uint64_t closed_slabs, closed_bytes;
    uint64_t fresh_slabs, reused_slabs; /* so far: taken with fresh pages, and without */
    uint64_t close_slabs;               /* so far: slabs_returned of receipts */
    uint64_t closes, drainable;
};

struct arm {
    struct load load;
    bool started, finished;
    uint64_t closes, drainable, escaped; /* escaped: live objects at boundaries */
    /* Over the closes of which slabs were counted, at most SAMPLES of them. */
    uint64_t counted, end_slabs, left_slabs;
    double theory_drainable, theory_left; /* expected: drainable closes of all, left slabs of the counted ones */
    uint64_t most_closed_slabs;
    uint64_t label_slabs, label_pinned; /* SlabLabelStats of the requests */
    double label_drainability;
    unsigned samples;
    struct sample sample[SAMPLES];
    uint64_t defects;  /* what must not be */
    char defect[TEXT]; /* the first */
};

/* Slabs of which every slot was one decision. */
struct granule {
    unsigned size, per_slab;
    double p;
    bool finished;
    uint64_t slabs, left_slabs;
    double theory; /* slab DSR */
    double label_drainability;
    uint64_t defects;
    char defect[TEXT];
};

enum {
    ARM_MIXED,
    ARM_ISOLATED,
    ARM_GLIBC,
    ROUTING_ARMS,
    LIFETIMES = 8,
    SWEEPS = 3,
    SWEEP_STEPS = 7,
    GRANULE_SIZES = 4,
};
enum { SECTION_ROUTING, SECTION_LIFETIMES, SECTION_SWEEP, SECTION_GRANULES, SECTIONS };

extern const double sweep_steps[SWEEP_STEPS];
extern const double published_dsr[SWEEP_STEPS];
extern const char* const section_names[SECTIONS + 1]; /* NULL ends them */

struct results {
    volatile sig_atomic_t stop; /* set by the parent's signal handler, looked at after each epoch */
    bool quick, wanted[SECTIONS];
    uint64_t seed;
    uint64_t requests;             /* of an arm of routing and lifetimes */
    unsigned failures;             /* children that died */
    const char *command, *options; /* TSLAB_OPTIONS, or NULL */
    struct arm routing[ROUTING_ARMS];
    struct arm lifetimes[LIFETIMES][ROUTING_ARMS];
    struct arm sweep[SWEEPS][SWEEP_STEPS];
    struct granule granules[GRANULE_SIZES][SWEEP_STEPS];
};

/* arm.c, granule.c: in the child. */
void arm_run(struct arm* arm, const volatile sig_atomic_t* stop);
void granule_run(struct granule* g, bool quick, uint64_t seed);

/* plan.c */
void plan_fill(struct results* r);

/* theory.c */
double theory_drains(const struct load* l, unsigned epoch);
double theory_pinned(const struct load* l, unsigned epoch, double slabs);
double theory_slab(double p, unsigned per_slab);

/* report.c, export.c */
void report_text(const struct results* r);
void export_json(const struct results* r, FILE* f);
void export_csv(const struct results* r, FILE* f);
uint64_t results_defects(const struct results* r, const char** first);

static inline double ratio(double a, double b) { return b != 0 ? a / b : 0; }
static inline double arm_dsr(const struct arm* a) { return ratio((double)a->drainable, (double)a->closes); }
static inline double arm_slab_dsr(const struct arm* a) {
    return 1 - ratio((double)a->left_slabs, (double)a->end_slabs);
}

#endif
