/*
 * ticks.h - how long things take, by the monotonic clock read from the processor's counter, in half the time.
 *
 * A line is where the clock stood at one count and how fast it goes: ns = base + (count - its count) * rate. A line is
 * good for SPAN counts, some tens of milliseconds. A later reader asks the system and draws the next line, which begins
 * where the last one stands, or ahead of it where the clock is, and never behind: so the clock that is read does not go
 * back. A line ahead of the system's clock, normally by less than a microsecond, goes slower until it is level. Lines
 * are drawn in two places in turn, so that readers wait for nobody:
 *
 *   reader                           thread that draws line n
 *   n = lines     (acquire)          taken = 1, or leaves it      (compare-exchange)
 *   read place n & 1                 write place n & 1            (relaxed)
 *   lines == n ? else again          lines = n                    (release)
 *
 * A reader that sleeps while two lines are drawn finds `lines` changed. Where the counter cannot be trusted, `rate`
 * stays 0 and each reading asks the system.
 */
#ifndef TSI_OS_TICKS_H
#define TSI_OS_TICKS_H

#include "base/atomics.h"
#include "base/bits.h"

enum { TSI_TICKS_SPAN_LOG2 = 26 };
#define TSI_TICKS_SPAN (1ull << TSI_TICKS_SPAN_LOG2)

typedef struct TsiTickLine {
    _Atomic uint64_t count, base_ns, rate; /* rate: ns << 32 to a count */
} TsiTickLine;

typedef struct TsiTicks {
    _Atomic uint64_t lines; /* lines drawn; 0: none */
    TsiTickLine line[2];
    _Atomic uint32_t taken;       /* 1 while a thread draws: it alone writes the fields above, and below */
    uint64_t seen_count, seen_ns; /* the system's clock at the last line */
    uint64_t rate;                /* rate of the counter; a line's is less while it is ahead */
    unsigned strikes;             /* lines on which the counter and the clock disagreed */
    _Atomic bool off;             /* too many strikes: the counter is not used any more */
} TsiTicks;

/* Sets *ns to the clock at `count`, a reading of the counter just taken, by the latest line. Returns true if *ns is
 * good; false if a line must be drawn first (tsi_ticks_draw), and *ns means nothing then.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_ticks_at(TsiTicks* ticks, uint64_t count, uint64_t* ns) {
    uint64_t n = tsi_load_acquire(&ticks->lines);
    TsiTickLine* line = &ticks->line[n & 1];
    /* acquire: before the second read of lines; pairs with the release of the thread that draws the line after the next
     * here */
    uint64_t from = tsi_load_acquire(&line->count), base = tsi_load_acquire(&line->base_ns),
             rate = tsi_load_acquire(&line->rate);
    *ns = base + ((count - from) * rate >> 32);
    return TSI_LIKELY(count - from < TSI_TICKS_SPAN && rate != 0) && TSI_LIKELY(tsi_load_relaxed(&ticks->lines) == n);
}
/* Draws the next line, from the counter's `count` and the system's clock at that moment, system_ns, unless another
 * thread does or the latest line is still good; gives the counter up for good if the two disagree too often. Returns
 * the clock at `count` in ns, never less than a reader was told. [any thread, needs no lock] */
uint64_t tsi_ticks_draw(TsiTicks* ticks, uint64_t count, uint64_t system_ns);
/* Ends the drawing that a vanished thread may have been at, so that the child can draw; the lines stay. [fork child] */
void tsi_ticks_child(TsiTicks* ticks);
#endif
