/*
 * draining.h - the ended phases of a label in which objects live, and the figures that are reported of them.
 *
 * An incarnation's record has what the phase holds by settled slabs, from its end until the last of them goes. A
 * report adds these up in one walk over the records, which it makes anyway. Allocations never write there, and frees
 * only where a slab is returned.
 *
 * A phase that has held more than its label expects to escape is marked (`over`) until it has drained.
 *
 * Locks. The stripe guards what an incarnation holds and its mark; the label's drain_lock guards what the label
 * expects. A change of the latter marks phase after phase anew, so a fork child of another thread may find some that
 * are still marked by the former.
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
    TsiDrainRow worst[TSI_DRAIN_WORST]; /* by bytes of slabs, largest first, of equals the oldest; era 0: none */
    TsiExpected expected;
    uint64_t over_phases, over_oldest_ns; /* phases that have held more, like over_held */
    TsiHolding over_held;
} TsiDrainSum;

/* Replaces what the incarnation holds as a draining one, under its present label since since_ns; held.objects 0: it
 * drains no more, and its record is cleared. Sets `over` if that is more than the label expects; `over` stays set while
 * label and since_ns do. [stripe held] */
void tsi_draining_set_locked(TsiPhases* phases, TsiInc* inc, uint64_t since_ns, TsiHolding held);
/* Sets what phases of the label may let escape, from here on, and sets or clears `over` anew of those that drain under
 * it, by what they hold now. The label's `unexpected` stays. O(records of incarnations).
 * [any thread, no stripe held, no labels lock held] */
void tsi_draining_expect(TsiPhases* phases, uint32_t label_at, TsiExpected expected);
/* Returns what phases of the label may let escape, of the last tsi_draining_expect; 0 objects and bytes if nothing was
 * set. Takes the label's drain_lock, under which no other is taken. [any thread, no drain_lock held] */
TsiExpected tsi_draining_expected(TsiLabel* label);
/* Adds 1 to the label's `unexpected` if `escaped`, of one phase, is more objects or bytes than the label expects;
 * otherwise changes nothing. [any thread, no drain_lock held] */
void tsi_draining_judge(TsiLabel* label, TsiTotals escaped);
/* Adds a draining phase to the sum of its label: its holding, its age in the histogram and as the oldest, its part in
 * the figures of phases over what is expected if row->over, and its row among the TSI_DRAIN_WORST worst. now_ns: when
 * the sum is taken, on the clock of row->since_ns. [no other user of sum] */
void tsi_draining_add(TsiDrainSum* sum, const TsiDrainRow* row, uint64_t now_ns);
/* Adds `more` to what the phase holds that tsi_draining_add has put into *sum as `row`: to the totals, to those of
 * phases over what is expected if it was or has become one, and to its row among the worst. The number of phases stays.
 * now_ns: as there. [no other user of sum] */
void tsi_draining_more(TsiDrainSum* sum, TsiDrainRow row, TsiHolding more, uint64_t now_ns);

#endif
