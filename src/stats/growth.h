/*
 * growth.h - does what lives grow, how fast, and when is a limit reached?
 *
 * Each report that tells of labels is a reading. Readings are put together to stretches of time, and of each stretch
 * the least live bytes are kept: what comes and goes within a stretch is no growth. Growth is what the least of this
 * stretch has more than the least of the one before; until this stretch has half as many readings, what that one has
 * more than the one before it. There are stretches of two lengths: long ones, an eighth of the allocator's age, tell
 * growth from a start that is over; short ones, of 10 s at most, tell the pace.
 *
 * Allocations count nothing for it. A program whose statistics nobody takes has no readings: the first one knows the
 * pace since the allocator was made and nothing else, so it tells a time only where half of a limit is used.
 *
 * Stretches and floors are under the labels' lock.
 */
#ifndef TSI_STATS_GROWTH_H
#define TSI_STATS_GROWTH_H

#include "state/arena.h"

#include "slab_stats.h"

#define TSI_GROWTH_LEAST_NS 2000000000u
#define TSI_GROWTH_YEAR_NS (365u * 86400u * 1000000000ull)

typedef struct TsiGrown {
    uint64_t bytes, ns; /* 0 ns: not known */
    double per_second;
} TsiGrown;

/* A limit, what counts against it, and the time to it; bytes 0: there is none, ns 0: not in sight. */
typedef struct TsiLimit {
    uint64_t bytes, used, ns;
} TsiLimit;

/* Begins stretches that are due at a reading of `live` bytes in all, and notes these. Returns which began, a bit each.
 * The first ones begin once something lives. */
unsigned tsi_growth_turn(TsiStretch stretches[TSI_GROWTHS], uint64_t age_ns, uint64_t now, uint64_t live);
/* Notes the live bytes of a reading in floors; `turned` as tsi_growth_turn has returned it. */
void tsi_growth_note(TsiFloor* floor, unsigned which, unsigned turned, uint64_t live);
/* What a reading of `live` bytes and the floors `of` each stretch say. Nothing grows where `live` is the least of a
 * stretch that has lasted for a quarter of the one before: the growth is over. */
TsiGrown tsi_growth_told(const TsiStretch stretches[TSI_GROWTHS], const TsiFloor* const of[TSI_GROWTHS], uint64_t now,
                         uint64_t live);
/* Returns the growth of what holds the bytes that come to live: limits count committed bytes, and an object that pins
 * its page makes these grow by more than itself. `live` and `committed` are paces of the same span, `most` what
 * committed bytes have grown by over every span that is told, each in bytes a second; the result is at least `grown`
 * and otherwise at most `most`. */
TsiGrown tsi_growth_held(TsiGrown grown, double live, double committed, double most);
/* Time to a limit. `age_ns` of what grows is for the first reading, see above. */
TsiLimit tsi_growth_limit(uint64_t bytes, uint64_t used, const TsiGrown* grown, uint64_t age_ns);
/* Is `l` reached before `than`, or more of it used when neither is in sight? */
bool tsi_growth_is_nearer(const TsiLimit* l, const TsiLimit* than);
/* Fills growth and limit of the allocator from its other figures, paces among them. [labels' lock] */
void tsi_growth_tell_locked(TsiArena* a, uint64_t now, SlabGlobalStats* g);

#endif
