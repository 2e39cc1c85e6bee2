/*
 * pace.h - how live and committed bytes have changed over the last 10 s and 100 s.
 *
 * A single look at a program must show how fast it grows. So each report with labels is a reading, like for growth.h,
 * and some readings are kept as marks. Growth is about bytes that stay and leaves out those that come and go; a pace is
 * plain: the bytes now less the bytes then, by the time between.
 *
 * A span has three marks. A reading becomes a mark once the newest one is half a span old, so the oldest of three is
 * between one span and one and a half old if somebody reads often enough. A pace is taken from the newest mark that is
 * a span old, or, in an allocator younger than a span, since it began, when it held nothing.
 *
 * Invariants:
 *   M1  Times of the marks of a span do not rise from the newest to the oldest; 0 is the allocator's beginning.
 *   M2  Marks of labels have the times of the allocator's: a label that did not exist then has 0 bytes there.
 *
 * The labels' lock guards marks.
 */
#ifndef TSI_STATS_PACE_H
#define TSI_STATS_PACE_H

#include "state/arena.h"

#include "slab_stats.h"

/* Bytes a second, negative if there is less now; ns: the time that the pace spans, 0: not known. */
typedef struct TsiPace {
    uint64_t ns;
    double live, committed;
} TsiPace;

/* Returns the allocator's age in ns at `now`, ns of the clock; 0 if it began later. [any thread, needs no lock] */
static inline uint64_t tsi_pace_age(const TsiArena* a, uint64_t now) { return now > a->born_ns ? now - a->born_ns : 0; }

/* Adds to *marks, for each span whose newest mark is at least half a span old, a mark at age_ns, the allocator's age,
 * and its `live` and `committed` bytes to marks->all; the oldest goes. Returns which spans have a new one, bit 1 <<
 * TSI_SPAN_... each. [labels' lock held] */
unsigned tsi_pace_turn(TsiMarks* marks, uint64_t age_ns, uint64_t live, uint64_t committed);
/* Puts a reading of `live` and `committed` bytes before the others of *past, for each span in `turned`, the bits that
 * tsi_pace_turn has returned; the oldest of TSI_SPAN_MARKS goes. Leaves other spans alone. [labels' lock held] */
void tsi_pace_note(TsiPast* past, unsigned turned, uint64_t live, uint64_t committed);
/* Returns the pace over the span (TSI_SPAN_...), in bytes a second, with its length in ns: from the newest of its
 * *marks that is a span old or older, with its bytes in *past, to a reading of `live` and `committed` bytes at age_ns,
 * the allocator's age; from the start in a younger allocator. All 0 if that mark is more than two spans old: the last
 * reading was long ago. [labels' lock held] */
TsiPace tsi_pace_told(const TsiMarks* marks, const TsiPast* past, unsigned span, uint64_t age_ns, uint64_t live,
                      uint64_t committed);
/* Sets the paces of the allocator in *stats from its live and committed bytes there. age_ns: the allocator's age.
 * [labels' lock held] */
void tsi_pace_tell_locked(TsiArena* a, uint64_t age_ns, SlabGlobalStats* stats);
/* Adds a label's live and committed bytes of *stats to *past, for the spans in `turned`, the bits that tsi_pace_turn
 * has returned, and sets its paces in *stats, in bytes a second; a pace that is not known is 0. age_ns: the
 * allocator's age. [labels' lock held] */
void tsi_pace_label_locked(TsiArena* a, TsiPast* past, unsigned turned, uint64_t age_ns, SlabLabelStats* stats);

#endif
