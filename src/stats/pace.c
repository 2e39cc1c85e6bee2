/* pace.c - see pace.h. */
#include "stats/pace.h"

static const uint64_t span_ns[TSI_SPANS] = {[TSI_SPAN_10S] = 10000000000u, [TSI_SPAN_100S] = 100000000000u};

/* Puts `newest` before the marks at[0] on of a span; the oldest goes. [labels' lock held] */
static void push(uint64_t at[TSI_SPAN_MARKS], uint64_t newest) {
    for (unsigned n = TSI_SPAN_MARKS - 1; n > 0; n--) at[n] = at[n - 1];
    at[0] = newest;
}

unsigned tsi_pace_turn(TsiMarks* marks, uint64_t age_ns, uint64_t live, uint64_t committed) {
    unsigned turned = 0;
    for (unsigned span = 0; span < TSI_SPANS; span++) {
        uint64_t* at = marks->at_ns[span];
        if (age_ns < at[0] || age_ns - at[0] < span_ns[span] / 2) continue;
        push(at, age_ns);
        turned |= 1u << span;
    }
    tsi_pace_note(&marks->all, turned, live, committed);
    return turned;
}

void tsi_pace_note(TsiPast* past, unsigned turned, uint64_t live, uint64_t committed) {
    for (unsigned span = 0; span < TSI_SPANS; span++) {
        if ((turned & 1u << span) == 0) continue;
        push(past->live[span], live);
        push(past->committed[span], committed);
    }
}

/* Returns the paces over `ns`, above 0, in bytes a second: of live bytes from live_then to `live`, of committed bytes
 * from committed_then to `committed`. [any thread, needs no lock] */
static TsiPace between(uint64_t ns, uint64_t live, uint64_t live_then, uint64_t committed, uint64_t committed_then) {
    double seconds = (double)ns / 1e9;
    return (TsiPace){ns, ((double)live - (double)live_then) / seconds,
                     ((double)committed - (double)committed_then) / seconds};
}

TsiPace tsi_pace_told(const TsiMarks* marks, const TsiPast* past, unsigned span, uint64_t age_ns, uint64_t live,
                      uint64_t committed) {
    const uint64_t *at = marks->at_ns[span], length = span_ns[span];
    unsigned n = 0;
    while (n + 1 < TSI_SPAN_MARKS && (at[n] > age_ns || age_ns - at[n] < length)) n++;
    uint64_t ns = age_ns > at[n] ? age_ns - at[n] : 0;
    bool known = ns != 0 && ns <= 2 * length && (ns >= length || at[n] == 0);
    if (!known) return (TsiPace){0, 0, 0};
    return between(ns, live, past->live[span][n], committed, past->committed[span][n]);
}

void tsi_pace_tell_locked(TsiArena* a, uint64_t age_ns, SlabGlobalStats* stats) {
    TSI_HOLDS(&a->phases.labels.lock);
    const TsiMarks* marks = &a->marks;
    uint64_t live = stats->live_bytes, committed = stats->committed_bytes;
    TsiPace few = tsi_pace_told(marks, &marks->all, TSI_SPAN_10S, age_ns, live, committed);
    TsiPace many = tsi_pace_told(marks, &marks->all, TSI_SPAN_100S, age_ns, live, committed);
    TsiPace ever = age_ns != 0 ? between(age_ns, live, 0, committed, 0) : (TsiPace){0, 0, 0};

    stats->pace_10s_ns = few.ns;
    stats->pace_100s_ns = many.ns;
    stats->live_pace_10s = few.live;
    stats->live_pace_100s = many.live;
    stats->live_pace_ever = ever.live;
    stats->committed_pace_10s = few.committed;
    stats->committed_pace_100s = many.committed;
    stats->committed_pace_ever = ever.committed;
}

void tsi_pace_label_locked(TsiArena* a, TsiPast* past, unsigned turned, uint64_t age_ns, SlabLabelStats* stats) {
    TSI_HOLDS(&a->phases.labels.lock);
    const TsiMarks* marks = &a->marks;
    uint64_t live = stats->live_bytes, committed = stats->committed_bytes;

    tsi_pace_note(past, turned, live, committed);
    TsiPace few = tsi_pace_told(marks, past, TSI_SPAN_10S, age_ns, live, committed);
    TsiPace many = tsi_pace_told(marks, past, TSI_SPAN_100S, age_ns, live, committed);
    TsiPace ever = age_ns != 0 ? between(age_ns, live, 0, committed, 0) : (TsiPace){0, 0, 0};
    stats->live_pace_10s = few.live;
    stats->live_pace_100s = many.live;
    stats->live_pace_ever = ever.live;
    stats->committed_pace_10s = few.committed;
    stats->committed_pace_100s = many.committed;
    stats->committed_pace_ever = ever.committed;
}
