/* ticks.c - see ticks.h. */
#include "os/ticks.h"

enum {
    /* between the first reading and the first line, whose rate is then off by less than one in 10,000 */
    FIRST_NS = 2000000,
    LONG_NS = 1000000000, /* after this the process may have been suspended: the rate is kept if it disagrees */
    STRIKES_MAX = 3,
    SLOWER_MAX_LOG2 = 1 /* a line goes at least at half the clock's rate */
};

/* Returns the rate, ns * 2^32 to a count, at which `counts` counts take `ns` nanoseconds. counts > 0.
 * [any thread, needs no lock] */
static uint64_t rate_of(uint64_t ns, uint64_t counts) { return (uint64_t)((double)ns / (double)counts * 4294967296.0); }

/* Returns true if `rate` differs from the rate `with` by less than an eighth of `with`. [any thread, needs no lock] */
static bool agrees(uint64_t rate, uint64_t with) { return rate > with - with / 8 && rate < with + with / 8; }

/* Returns the most, in ns, that the line was read as until `count`, which may be past its end: the line's value there,
 * but no more than two spans after its beginning. The line is drawn.
 * [thread that draws, or checks `lines` afterwards] */
static uint64_t line_ns(const TsiTickLine* line, uint64_t count) {
    /* acquire, all: before `lines` is read again, as in tsi_ticks_at */
    uint64_t d = count - tsi_load_acquire(&line->count);
    if (d > 2 * TSI_TICKS_SPAN) d = 2 * TSI_TICKS_SPAN;
    return tsi_load_acquire(&line->base_ns) + (d * tsi_load_acquire(&line->rate) >> 32);
}

/* Judges the counter by the system's clock: adds a strike to ticks->strikes if its rate since the last line is not the
 * one before, and clears them if it is. Returns the rate to draw with; 0 if none can be believed, after which the
 * caller gives the counter up. count, ns: counter and system's clock read together.
 * [thread that draws: holds `taken`] */
static uint64_t next_rate(TsiTicks* ticks, uint64_t count, uint64_t ns) {
    uint64_t counts = count - ticks->seen_count, took = ns - ticks->seen_ns;
    bool forward = (int64_t)counts > 0 && (int64_t)took > 0;
    uint64_t rate = forward ? rate_of(took, counts) : 0;
    if (ticks->rate == 0) return rate >> 36 == 0 && rate >> 26 != 0 ? rate : 0; /* 16 ns to 1/64 ns */
    if (agrees(rate, ticks->rate)) {
        ticks->strikes = 0;
        return rate;
    }
    if (!forward || took < LONG_NS) ticks->strikes++;
    return ticks->strikes < STRIKES_MAX ? ticks->rate : 0;
}

/* Publishes the line that is base_ns at `count` and goes at `rate`, ns * 2^32 to a count, as the next of ticks->lines,
 * in the place of the last but one. [thread that draws: holds `taken`] */
static void draw(TsiTicks* ticks, uint64_t count, uint64_t base_ns, uint64_t rate) {
    uint64_t n = tsi_load_relaxed(&ticks->lines) + 1;
    TsiTickLine* line = &ticks->line[n & 1];
    /* release: pair with tsi_ticks_at: a thread that reads one of these finds at least line n - 1 drawn */
    tsi_store_release(&line->count, count);
    tsi_store_release(&line->base_ns, base_ns);
    tsi_store_release(&line->rate, rate);
    tsi_store_release(&ticks->lines, n);
}

/* Draws the next line, and sets seen_count and seen_ns to `count` and system_ns; the very first reading is only noted
 * there. Does neither if that was less than FIRST_NS ago, or if another thread has just drawn a line. Turns the counter
 * off (`off`) if it cannot be trusted. Returns the clock at `count`, in ns, never less than a reader was told.
 * system_ns: the system's clock at `count`. [thread that draws: holds `taken`] */
static uint64_t draw_taken(TsiTicks* ticks, uint64_t count, uint64_t system_ns) {
    TsiTickLine* line = &ticks->line[tsi_load_relaxed(&ticks->lines) & 1];
    uint64_t told = ticks->rate != 0 ? line_ns(line, count) : 0;
    if (ticks->seen_ns == 0) { /* the very first reading */
        ticks->seen_count = count;
        ticks->seen_ns = system_ns;
    }
    if (ticks->rate == 0 && system_ns - ticks->seen_ns < FIRST_NS) return system_ns;
    /* another thread has just drawn one */
    if (ticks->rate != 0 && count - tsi_load_relaxed(&line->count) < TSI_TICKS_SPAN) return told;

    uint64_t rate = next_rate(ticks, count, system_ns), base = told > system_ns ? told : system_ns;
    ticks->seen_count = count;
    ticks->seen_ns = system_ns;
    ticks->rate = rate;
    if (rate == 0) {
        tsi_store_relaxed(&ticks->off, true);
        return base;
    }

    uint64_t span_ns = TSI_TICKS_SPAN * rate >> 32, ahead = base - system_ns, most = rate >> SLOWER_MAX_LOG2;
    uint64_t off = ahead < span_ns ? (uint64_t)((double)rate * (double)ahead / (double)span_ns) : most;
    draw(ticks, count, base, rate - (off < most ? off : most));
    return base;
}

uint64_t tsi_ticks_draw(TsiTicks* ticks, uint64_t count, uint64_t system_ns) {
    uint32_t free = 0;
    if (!tsi_cas_seq(&ticks->taken, &free, 1)) {            /* decides which thread draws */
        uint64_t n = tsi_load_acquire(&ticks->lines), told; /* pairs with draw */
        TsiTickLine* line = &ticks->line[n & 1];
        told = tsi_load_acquire(&line->rate) != 0 ? line_ns(line, count) : 0;
        return tsi_load_acquire(&ticks->lines) == n && told > system_ns ? told : system_ns;
    }
    uint64_t ns = draw_taken(ticks, count, system_ns);
    tsi_store_release(&ticks->taken, 0); /* publishes the fields that only the thread that draws writes */
    return ns;
}

void tsi_ticks_child(TsiTicks* ticks) { tsi_store_relaxed(&ticks->taken, 0); }
