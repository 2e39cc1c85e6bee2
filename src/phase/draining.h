/*
 * draining.h - the ended phases of a label in which objects live, and the figures that are reported of them.
 *
 * Each label has a tree of these phases, ordered by the time since which they are in use, so that sums, ages and the
 * largest are found without visiting every phase: a treap (Seidel and Aragon, "Randomized Search Trees", 1996) whose
 * nodes lie in the incarnations' records and have the sums of the nodes below. A phase joins when it has ended and
 * holds settled objects, changes as its slabs leave, and goes with the last of them. Allocations never do this, and
 * frees only where a slab is returned.
 *
 * A phase that has held more than its label expects to escape is marked (`over`) until it has drained. The label has
 * the sums of the marked ones, and a node says whether there is one below, so that the oldest is found.
 *
 * Locks. A thread that changes a tree holds the stripe of the incarnation, or the labels' lock where all its marks
 * change, so a fork finds trees whole, and within it the label's drain_lock, which guards the nodes; readers take the
 * latter alone.
 */
#ifndef TSI_PHASE_DRAINING_H
#define TSI_PHASE_DRAINING_H

#include "phase/epoch.h"

enum { TSI_DRAIN_WORST = 3 };

/* A phase; over: it has held more than its label expects. */
typedef struct TsiDrainRow {
    uint64_t era, since_ns;
    TsiHolding held;
    bool over;
} TsiDrainRow;

typedef struct TsiDrainSum {
    uint64_t phases, oldest_ns;
    TsiHolding held;
    uint64_t ages[TSI_LABEL_BUCKETS];
    TsiDrainRow worst[TSI_DRAIN_WORST]; /* by bytes of slabs, largest first; era 0: none */
    TsiExpected expected;
    uint64_t over_phases, over_oldest_ns; /* phases that have held more, like over_held */
    TsiHolding over_held;
} TsiDrainSum;

/* Sets what the incarnation holds that counts as draining under its label; objects 0: nothing. O(log of phases).
 * [stripe] */
void tsi_draining_set_locked(TsiPhases* phases, TsiInc* inc, uint64_t since_ns, TsiHolding held);
/* Sets what phases of the label may let escape. Judges phases that drain anew, by their current holding. O(phases that
 * drain). [no lock, no bracket] */
void tsi_draining_expect(TsiPhases* phases, uint32_t label_at, TsiExpected expected);
/* Counts the phase under its label if more escaped from it than the label expects. [any thread] */
void tsi_draining_judge(TsiLabel* label, TsiTotals escaped);
/* Fills *out with the figures of the label's tree. O(log of phases). [no drain_lock] */
void tsi_draining_tell(TsiPhases* phases, uint32_t label_at, uint64_t now_ns, TsiDrainSum* out);
/* Adds a phase that is in no tree to the sum. */
void tsi_draining_add(TsiDrainSum* sum, const TsiDrainRow* row, uint64_t now_ns);
/* Adds `more` to a phase that the sum has as `row`. */
void tsi_draining_more(TsiDrainSum* sum, TsiDrainRow row, TsiHolding more, uint64_t now_ns);

#endif
