/* growth.c - see growth.h. */
#include "stats/growth.h"

#include "stats/pace.h"

#include <string.h>

static const uint64_t most_ns[TSI_GROWTHS] = {[TSI_GROWTH_SHORT] = 10000000000u, [TSI_GROWTH_LONG] = 3600000000000u};

unsigned tsi_growth_turn(TsiStretch stretches[TSI_GROWTHS], uint64_t age_ns, uint64_t now, uint64_t live) {
    unsigned turned = 0;
    for (unsigned which = 0; which < TSI_GROWTHS; which++) {
        TsiStretch* stretch = &stretches[which];
        uint64_t length = age_ns / 8 < most_ns[which] ? age_ns / 8 : most_ns[which];
        if (length < TSI_GROWTH_LEAST_NS) length = TSI_GROWTH_LEAST_NS;

        if (stretch->begun_ns > now + length) /* the clock was set back */
            stretch->begun_ns = stretch->before_ns = stretch->older_ns = 0;
        bool due = stretch->begun_ns == 0 ? live != 0 : now > stretch->begun_ns && now - stretch->begun_ns >= length;
        if (due) {
            stretch->older_ns = stretch->before_ns;
            stretch->before_ns = stretch->begun_ns;
            stretch->begun_ns = now;
            stretch->readings_before = stretch->readings;
            stretch->readings = 0;
            turned |= 1u << which;
        }

        stretch->readings++;
        tsi_growth_note(&stretch->all, which, turned, live);
    }
    return turned;
}

void tsi_growth_note(TsiFloor* floor, unsigned which, unsigned turned, uint64_t live) {
    if ((turned & 1u << which) != 0) *floor = (TsiFloor){live, floor->now, floor->before};
    else if (live < floor->now) floor->now = live;
}

/* Returns the growth of the least live bytes of the present stretch over those of the one before, by *stretch and its
 * *floor, at a reading of `live` bytes at `now`, ns of the clock; if the present one has fewer than half the readings
 * of the one before, that of the two before. All 0 if there are not two yet; bytes 0 if nothing has grown, or has gone
 * on growing. [labels' lock held] */
static TsiGrown told(const TsiStretch* stretch, const TsiFloor* floor, uint64_t now, uint64_t live) {
    bool few = stretch->readings * 2 < stretch->readings_before;
    uint64_t from_ns = few ? stretch->older_ns : stretch->before_ns,
             to_ns = few ? stretch->before_ns : stretch->begun_ns;
    uint64_t from = few ? floor->older : floor->before, to = few ? floor->before : floor->now;
    if (from_ns == 0) return (TsiGrown){0, 0, 0};

    bool goes_on = live > to || now - to_ns < (to_ns - from_ns) / 4;
    if (!goes_on || to <= from) return (TsiGrown){0, to_ns - from_ns, 0};
    return (TsiGrown){to - from, to_ns - from_ns, (double)(to - from) * 1e9 / (double)(to_ns - from_ns)};
}

TsiGrown tsi_growth_told(const TsiStretch stretches[TSI_GROWTHS], const TsiFloor* const of[TSI_GROWTHS], uint64_t now,
                         uint64_t live) {
    TsiGrown g[TSI_GROWTHS];
    for (unsigned which = 0; which < TSI_GROWTHS; which++) g[which] = told(&stretches[which], of[which], now, live);
    if (g[TSI_GROWTH_SHORT].bytes != 0) g[TSI_GROWTH_LONG].per_second = g[TSI_GROWTH_SHORT].per_second;
    return g[TSI_GROWTH_LONG];
}

TsiGrown tsi_growth_held(TsiGrown grown, double live, double committed, double most) {
    if (grown.per_second <= 0 || live <= 0) return grown;
    double held = grown.per_second * committed / live;
    if (held > most) held = most;
    if (held > grown.per_second) grown.per_second = held;
    return grown;
}

TsiLimit tsi_growth_limit(uint64_t bytes, uint64_t used, const TsiGrown* grown, uint64_t age_ns) {
    TsiLimit limit = {bytes, used, 0};
    double per_second = grown->per_second;
    if (bytes == 0) return (TsiLimit){0, 0, 0};
    if (grown->ns == 0 && used >= bytes / 2 && age_ns != 0) per_second = (double)used * 1e9 / (double)age_ns;
    if (per_second <= 0) return limit;
    double ns = used < bytes ? (double)(bytes - used) / per_second * 1e9 : 0;
    if (ns < (double)TSI_GROWTH_YEAR_NS) limit.ns = ns < 1 ? 1 : (uint64_t)ns;
    return limit;
}

bool tsi_growth_is_nearer(const TsiLimit* limit, const TsiLimit* than) {
    if (limit->bytes == 0 || than->bytes == 0) return than->bytes == 0 && limit->bytes != 0;
    if ((limit->ns | than->ns) != 0) return limit->ns != 0 && (than->ns == 0 || limit->ns < than->ns);
    return (double)limit->used / (double)limit->bytes > (double)than->used / (double)than->bytes;
}

/* Sets *limit to the nearest limit, in bytes, on the bytes of epochs, of which `used` are. kept: bytes kept warm, for
 * no epoch. Returns its name, a literal. Asks the system. [any thread, needs no lock] */
static const char* nearest(const TsiArena* a, uint64_t used, uint64_t kept, uint64_t* limit) {
    const char* name = "reserve_bytes";
    uint64_t room = tsi_os.data_room();
    *limit = a->space.payload_bytes;
    if (a->options.max_bytes != 0 && a->options.max_bytes < *limit) {
        *limit = a->options.max_bytes;
        name = "max_bytes";
    }
    if (room < UINT64_MAX - used - kept && used + kept + room < *limit) {
        *limit = used + kept + room;
        name = "RLIMIT_DATA";
    }
    return name;
}

void tsi_growth_tell_locked(TsiArena* a, uint64_t now, SlabGlobalStats* stats) {
    TSI_HOLDS(&a->phases.labels.lock);
    const TsiFloor* const of[TSI_GROWTHS] = {&a->stretches[TSI_GROWTH_SHORT].all, &a->stretches[TSI_GROWTH_LONG].all};

    TsiGrown grown = tsi_growth_told(a->stretches, of, now, stats->live_bytes);
    uint64_t used = stats->committed_bytes > stats->warm_bytes ? stats->committed_bytes - stats->warm_bytes : 0, limit;
    const char* name = nearest(a, used, stats->warm_bytes, &limit);
    double most =
        stats->committed_pace_10s < stats->committed_pace_100s ? stats->committed_pace_10s : stats->committed_pace_100s;
    /* Committed bytes include those that are kept warm, which no limit counts. No more than all that it counts has come
     * within the span. */
    double all = stats->pace_100s_ns != 0 ? (double)used * 1e9 / (double)stats->pace_100s_ns : most;
    if (all < most) most = all;

    TsiGrown held = tsi_growth_held(grown, stats->live_pace_10s, stats->committed_pace_10s, most);
    TsiLimit bound = tsi_growth_limit(limit, used, &held, tsi_pace_age(a, now));

    memcpy(stats->limit_name, name, strlen(name) + 1);
    stats->max_bytes = a->options.max_bytes;
    stats->limit_bytes = bound.bytes;
    stats->limit_used_bytes = bound.used;
    stats->limit_ns = bound.ns;
    stats->growth_bytes = grown.bytes;
    stats->growth_ns = grown.ns;
    stats->growth_per_second = grown.per_second;
}
