/* draining.c - see draining.h. */
#include "phase/draining.h"

#include "base/check.h"

/* ---- changes ---- */

TsiExpected tsi_draining_expected(TsiLabel* label) {
    tsi_lock_take(&label->drain_lock);
    TsiExpected expected = label->expected;
    tsi_lock_give(&label->drain_lock);
    return expected;
}

/* Returns true if *held, of one phase of the label, is more objects or live bytes than the label expects to escape
 * (tsi_draining_expect). Takes the label's drain_lock. [any thread, no drain_lock held] */
static bool holds_more(TsiLabel* label, const TsiHolding* held) {
    TsiExpected expected = tsi_draining_expected(label);
    return tsi_is_unexpected(&expected, held->objects, held->live_bytes);
}

void tsi_draining_set_locked(TsiPhases* phases, TsiInc* inc, uint64_t since_ns, TsiHolding held) {
    TSI_HOLDS(tsi_inc_lock(inc));
    TSI_ASSERT(tsi_lock_is_held(tsi_inc_lock(inc)));
    TsiDraining* draining = &inc->draining;
    uint32_t label = tsi_inc_label(inc);
    bool stays = draining->label == label + 1 && draining->since_ns == since_ns;

    if (held.objects != 0) {
        bool over = (stays && draining->over) || holds_more(tsi_label(&phases->labels, label), &held);
        *draining = (TsiDraining){since_ns, held, (uint16_t)(label + 1), over};
    } else if (draining->label != 0) { /* otherwise it is not written */
        *draining = (TsiDraining){0};
    }
}

void tsi_draining_expect(TsiPhases* phases, uint32_t label_at, TsiExpected expected) {
    TsiLabel* label = tsi_label(&phases->labels, label_at);
    tsi_lock_take(&phases->labels.lock); /* a fork waits for it */
    tsi_lock_take(&label->drain_lock);
    label->expected = expected;
    tsi_lock_give(&label->drain_lock);
    tsi_lock_give(&phases->labels.lock);

    for (uint32_t i = 1; i < tsi_table_used(&phases->incs); i++) {
        TsiInc* inc = tsi_inc(phases, i);
        if (tsi_inc_era(inc) == 0) continue;
        tsi_lock_take(tsi_inc_lock(inc));
        TsiDraining* draining = &inc->draining;
        /* by what is expected now: another thread may have set it since */
        if (draining->label == label_at + 1) draining->over = holds_more(label, &draining->held);
        tsi_lock_give(tsi_inc_lock(inc));
    }
}

void tsi_draining_judge(TsiLabel* label, TsiTotals escaped) {
    TsiExpected expected = tsi_draining_expected(label);
    if (tsi_is_unexpected(&expected, escaped.objects, escaped.bytes)) tsi_add_relaxed(&label->unexpected, 1);
}

/* ---- sums ---- */

/* Returns the nanoseconds from since_ns to now_ns; 0 if since_ns is later. [any thread, needs no lock] */
static uint64_t age(uint64_t since_ns, uint64_t now_ns) { return now_ns > since_ns ? now_ns - since_ns : 0; }

/* Returns true if `row` holds more bytes than `than`, which may be none, or as many and for longer.
 * [any thread, needs no lock] */
static bool is_worse(const TsiDrainRow* row, const TsiDrainRow* than) {
    if (than->era == 0) return true;
    if (row->held.slab_bytes != than->held.slab_bytes) return row->held.slab_bytes > than->held.slab_bytes;
    return row->since_ns < than->since_ns;
}

/* Puts the row into the list, which is sorted, the largest first (is_worse), if it is among the TSI_DRAIN_WORST worst;
 * the last row then falls out. Otherwise the list stays. [no other user] */
static void put_worst(TsiDrainRow worst[TSI_DRAIN_WORST], const TsiDrainRow* row) {
    unsigned at = TSI_DRAIN_WORST;
    while (at > 0 && is_worse(row, &worst[at - 1])) at--;
    for (unsigned i = TSI_DRAIN_WORST - 1; i > at; i--) worst[i] = worst[i - 1];
    if (at < TSI_DRAIN_WORST) worst[at] = *row;
}

/* Counts a phase in the sum as one that has held more than its label expects: over_phases, over_held, and
 * over_oldest_ns if it is older. age_ns: ns since its end. [no other user] */
static void put_over(TsiDrainSum* sum, TsiHolding held, uint64_t age_ns) {
    sum->over_phases++;
    tsi_holding_add(&sum->over_held, held);
    if (age_ns > sum->over_oldest_ns) sum->over_oldest_ns = age_ns;
}

void tsi_draining_add(TsiDrainSum* sum, const TsiDrainRow* row, uint64_t now_ns) {
    uint64_t its = age(row->since_ns, now_ns);
    if (row->over) put_over(sum, row->held, its);
    sum->phases++;
    tsi_holding_add(&sum->held, row->held);
    sum->ages[tsi_label_bucket(its)]++;
    if (its > sum->oldest_ns) sum->oldest_ns = its;
    put_worst(sum->worst, row);
}

void tsi_draining_more(TsiDrainSum* sum, TsiDrainRow row, TsiHolding more, uint64_t now_ns) {
    unsigned kept = 0;
    tsi_holding_add(&sum->held, more);
    tsi_holding_add(&row.held, more);
    if (row.over) tsi_holding_add(&sum->over_held, more);
    else if (tsi_is_unexpected(&sum->expected, row.held.objects, row.held.live_bytes))
        put_over(sum, row.held, age(row.since_ns, now_ns));
    for (unsigned i = 0; i < TSI_DRAIN_WORST; i++)
        if (sum->worst[i].era != row.era) sum->worst[kept++] = sum->worst[i];
    if (kept < TSI_DRAIN_WORST) sum->worst[kept] = (TsiDrainRow){0};
    put_worst(sum->worst, &row);
}
