/*
 * growth.h - whether live bytes grow, how fast, and when a limit is reached.
 *
 * Each report with labels is a reading. Readings are gathered into stretches of time, and the least live bytes of each
 * are kept: objects that come and go within a stretch are not growth. Growth is the least of this stretch less the
 * least of the one before; until this stretch has half as many readings, that of the two before. There are stretches of
 * two lengths: long ones, an eighth of the allocator's age, tell growth from a start that is over; short ones, of 10 s
 * at most, tell the pace.
 *
 * Allocations count nothing for it. A program whose statistics nobody takes has no readings: the first one knows only
 * the pace since the allocator was made, so it gives a time only if half of a limit is used.
 *
 * The labels' lock guards stretches and floors.
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

/* A limit, the bytes that count against it, and the time to it; bytes 0: no limit, ns 0: not in sight. */
typedef struct TsiLimit {
    uint64_t bytes, used, ns;
} TsiLimit;

/* Begins the stretches that are due at a reading of `live` bytes at `now`, ns of the clock, counts the reading in each
 * and adds it to the stretch's own floor, `all`; forgets a stretch that begins in the future, because the clock was
 * set back. age_ns: the allocator's age, of which a stretch lasts an eighth, within bounds. Returns which began, bit 1
 * << TSI_GROWTH_... each; the first ones begin once something lives. [labels' lock held] */
unsigned tsi_growth_turn(TsiStretch stretches[TSI_GROWTHS], uint64_t age_ns, uint64_t now, uint64_t live);
/* Adds a reading of `live` bytes to *floor, a floor of the stretch `which` (TSI_GROWTH_...). If `turned`, the bits
 * that tsi_growth_turn has returned, has the stretch's bit, the floor's leasts move on by one, `older` goes, and `now`
 * becomes `live`; otherwise lowers `now` to `live` if that is less. [labels' lock held] */
void tsi_growth_note(TsiFloor* floor, unsigned which, unsigned turned, uint64_t live);
/* Returns the growth by a reading of `live` bytes at `now`, ns of the clock, by the stretches and the floors `of` each:
 * none, with bytes 0, if `live` is the least of a stretch that has lasted for a quarter of the one before; ns 0 if it
 * is not known yet. Changes nothing. [labels' lock held] */
TsiGrown tsi_growth_told(const TsiStretch stretches[TSI_GROWTHS], const TsiFloor* const of[TSI_GROWTHS], uint64_t now,
                         uint64_t live);
/* Returns the growth of the memory that live bytes hold: limits count committed bytes, and an object that pins its page
 * makes these grow by more than itself. live, committed: paces of one span, and `most` the least pace of committed
 * bytes over the spans, in bytes a second. Only per_second differs from `grown`: it lies between grown.per_second and
 * `most`, and is grown.per_second if that is more. [any thread, needs no lock] */
TsiGrown tsi_growth_held(TsiGrown grown, double live, double committed, double most);
/* Returns a limit of `bytes`, of which `used` are, with the ns until it is reached at the growth *grown, at least 1; ns
 * 0 if it is more than a year away or nothing grows, all 0 if bytes is 0 (no limit). age_ns: age of what grows; while
 * the growth is not known, `used` over it is the pace, if half of the limit is used. [any thread, needs no lock] */
TsiLimit tsi_growth_limit(uint64_t bytes, uint64_t used, const TsiGrown* grown, uint64_t age_ns);
/* Returns true if *limit is reached before *than, or has more of it used when neither is in sight; a limit of 0 bytes
 * is none, and farther than any. [any thread, needs no lock] */
bool tsi_growth_is_nearer(const TsiLimit* limit, const TsiLimit* than);
/* Sets growth and limit of the allocator in *stats, with the limit's name and max_bytes, from its other figures there,
 * which are set: live, warm and committed bytes and all paces. The limit is the nearest of reserve_bytes, max_bytes
 * and RLIMIT_DATA, which the system is asked for. now: ns of the clock. [labels' lock held] */
void tsi_growth_tell_locked(TsiArena* a, uint64_t now, SlabGlobalStats* stats);

#endif
