/* draining.c - the trees of draining.h. */
#include "phase/draining.h"

#include "base/check.h"

#include <string.h>

/* ---- nodes: records of incarnations by index, 0 = none ---- */

static TsiDraining* node(const TsiPhases* phases, uint32_t at) { return &tsi_inc(phases, at)->draining; }

static uint32_t rank_of(uint32_t at) { return at * 0x9e3779b1u ^ (at * 0x85ebca6bu) >> 15; }

static bool is_before(const TsiPhases* phases, uint32_t at, uint64_t since_ns, uint32_t index) {
    uint64_t its = node(phases, at)->since_ns;
    return its < since_ns || (its == since_ns && at < index);
}

/* Sums a node's own figures and its children's. */
static void sum_up(const TsiPhases* phases, uint32_t at) {
    TsiDraining* draining = node(phases, at);
    draining->count = 1;
    draining->sum = draining->held;
    draining->max_bytes = draining->held.slab_bytes;
    draining->over_below = draining->over;
    for (unsigned side = 0; side < 2; side++) {
        if (draining->child[side] == 0) continue;
        const TsiDraining* other = node(phases, draining->child[side]);
        draining->count += other->count;
        tsi_holding_add(&draining->sum, other->sum);
        if (other->max_bytes > draining->max_bytes) draining->max_bytes = other->max_bytes;
        draining->over_below |= other->over_below;
    }
}

/* Joins two trees, of which all of `older` comes before all of `younger`. Returns the root. */
static uint32_t join(const TsiPhases* phases, uint32_t older, uint32_t younger) {
    if (older == 0 || younger == 0) return older | younger;
    uint32_t top = rank_of(older) > rank_of(younger) ? older : younger;
    TsiDraining* draining = node(phases, top);
    if (top == older) draining->child[1] = join(phases, draining->child[1], younger);
    else draining->child[0] = join(phases, older, draining->child[0]);
    sum_up(phases, top);
    return top;
}

/* Splits a tree into the nodes before a place and those after it. */
static void part(const TsiPhases* phases, uint32_t at, uint64_t since_ns, uint32_t index, uint32_t* older,
                 uint32_t* younger) {
    if (at == 0) {
        *older = *younger = 0;
        return;
    }
    TsiDraining* draining = node(phases, at);
    if (is_before(phases, at, since_ns, index)) {
        part(phases, draining->child[1], since_ns, index, &draining->child[1], younger);
        *older = at;
    } else {
        part(phases, draining->child[0], since_ns, index, older, &draining->child[0]);
        *younger = at;
    }
    sum_up(phases, at);
}

/* Removes the node `index` from a tree. Returns the root. */
static uint32_t without(const TsiPhases* phases, uint32_t at, uint64_t since_ns, uint32_t index) {
    TSI_CHECK(at != 0);
    TsiDraining* draining = node(phases, at);
    if (at == index) return join(phases, draining->child[0], draining->child[1]);
    unsigned side = is_before(phases, at, since_ns, index);
    draining->child[side] = without(phases, draining->child[side], since_ns, index);
    sum_up(phases, at);
    return at;
}

/* Recomputes the sums from the changed node up. */
static void sum_path(const TsiPhases* phases, uint32_t at, uint64_t since_ns, uint32_t index) {
    if (at != index) sum_path(phases, node(phases, at)->child[is_before(phases, at, since_ns, index)], since_ns, index);
    sum_up(phases, at);
}

/* ---- changes ---- */

TSI_INLINE bool holds_more(const TsiLabel* label, const TsiHolding* held) {
    return tsi_is_unexpected(&label->expected, held->objects, held->live_bytes);
}

/* Adds a node to its label's figures of those that are over, or with sign -1 subtracts it. */
static void count_over(TsiLabel* label, const TsiDraining* draining, int sign) {
    if (!draining->over) return;
    label->over_phases += (uint64_t)sign;
    label->over_held.objects += (uint64_t)sign * draining->held.objects;
    label->over_held.live_bytes += (uint64_t)sign * draining->held.live_bytes;
    label->over_held.slab_bytes += (uint64_t)sign * draining->held.slab_bytes;
}

static void leave(TsiPhases* phases, TsiInc* inc) {
    TsiDraining* draining = &inc->draining;
    TsiLabel* label = tsi_label(&phases->labels, draining->label - 1);
    tsi_lock_take(&label->drain_lock);
    label->drain_root = without(phases, label->drain_root, draining->since_ns, inc->index);
    count_over(label, draining, -1);
    *draining = (TsiDraining){0};
    tsi_lock_give(&label->drain_lock);
}

static void enter(TsiPhases* phases, TsiInc* inc, uint32_t label_at, uint64_t since_ns, TsiHolding held) {
    TsiLabel* label = tsi_label(&phases->labels, label_at);
    uint32_t older, younger;
    tsi_lock_take(&label->drain_lock);
    inc->draining = (TsiDraining){.label = (uint16_t)(label_at + 1), .since_ns = since_ns, .held = held};
    inc->draining.over = holds_more(label, &held);
    count_over(label, &inc->draining, 1);
    sum_up(phases, inc->index);
    part(phases, label->drain_root, since_ns, inc->index, &older, &younger);
    label->drain_root = join(phases, join(phases, older, inc->index), younger);
    tsi_lock_give(&label->drain_lock);
}

static void change(TsiPhases* phases, TsiInc* inc, TsiHolding held) {
    TsiLabel* label = tsi_label(&phases->labels, inc->draining.label - 1);
    tsi_lock_take(&label->drain_lock);
    count_over(label, &inc->draining, -1);
    inc->draining.held = held;
    inc->draining.over |= holds_more(label, &held);
    count_over(label, &inc->draining, 1);
    sum_path(phases, label->drain_root, inc->draining.since_ns, inc->index);
    tsi_lock_give(&label->drain_lock);
}

void tsi_draining_set_locked(TsiPhases* phases, TsiInc* inc, uint64_t since_ns, TsiHolding held) {
    TSI_HOLDS(tsi_inc_lock(inc));
    TSI_ASSERT(tsi_lock_is_held(tsi_inc_lock(inc)));
    TsiDraining* draining = &inc->draining;
    uint32_t label_at = tsi_inc_label(inc);
    bool stays = held.objects != 0 && draining->label == label_at + 1 && draining->since_ns == since_ns;
    if (stays) {
        if (memcmp(&draining->held, &held, sizeof held) != 0) change(phases, inc, held);
        return;
    }
    if (draining->label != 0) leave(phases, inc);
    if (held.objects != 0) enter(phases, inc, label_at, since_ns, held);
}

/* ---- what a label expects ---- */

static void judge(const TsiPhases* phases, TsiLabel* label, uint32_t at) {
    if (at == 0) return;
    TsiDraining* draining = node(phases, at);
    judge(phases, label, draining->child[0]);
    judge(phases, label, draining->child[1]);
    draining->over = holds_more(label, &draining->held);
    count_over(label, draining, 1);
    sum_up(phases, at);
}

void tsi_draining_expect(TsiPhases* phases, uint32_t label_at, TsiExpected expected) {
    TsiLabel* label = tsi_label(&phases->labels, label_at);
    tsi_lock_take(&phases->labels.lock); /* a fork waits for it */
    tsi_lock_take(&label->drain_lock);
    label->expected = expected;
    label->over_phases = 0;
    label->over_held = (TsiHolding){0, 0, 0};
    judge(phases, label, label->drain_root);
    tsi_lock_give(&label->drain_lock);
    tsi_lock_give(&phases->labels.lock);
}

void tsi_draining_judge(TsiLabel* label, TsiTotals escaped) {
    tsi_lock_take(&label->drain_lock);
    bool more = tsi_is_unexpected(&label->expected, escaped.objects, escaped.bytes);
    tsi_lock_give(&label->drain_lock);
    if (more) tsi_add_relaxed(&label->unexpected, 1);
}

/* ---- telling ---- */

static uint64_t age(uint64_t since_ns, uint64_t now_ns) { return now_ns > since_ns ? now_ns - since_ns : 0; }

/* Counts the phases of at least the age least_ns. */
static uint64_t count_old(const TsiPhases* phases, uint32_t at, uint64_t now_ns, uint64_t least_ns) {
    uint64_t n = 0;
    while (at != 0) {
        const TsiDraining* draining = node(phases, at);
        bool old = age(draining->since_ns, now_ns) >= least_ns;
        if (old) n += draining->count - (draining->child[1] != 0 ? node(phases, draining->child[1])->count : 0);
        at = draining->child[old];
    }
    return n;
}

static void put_worst(TsiDrainRow worst[TSI_DRAIN_WORST], const TsiDrainRow* row) {
    unsigned at = TSI_DRAIN_WORST;
    while (at > 0 && (worst[at - 1].era == 0 || worst[at - 1].held.slab_bytes < row->held.slab_bytes)) at--;
    for (unsigned n = TSI_DRAIN_WORST - 1; n > at; n--) worst[n] = worst[n - 1];
    if (at < TSI_DRAIN_WORST) worst[at] = *row;
}

/* Visits the larger half first: the other normally holds none of the worst. The older of equals stays. */
static void find_worst(const TsiPhases* phases, uint32_t at, TsiDrainRow worst[TSI_DRAIN_WORST]) {
    const TsiDrainRow* last = &worst[TSI_DRAIN_WORST - 1];
    if (at == 0 || (last->era != 0 && node(phases, at)->max_bytes <= last->held.slab_bytes)) return;
    const TsiDraining* draining = node(phases, at);
    uint64_t older = draining->child[0] != 0 ? node(phases, draining->child[0])->max_bytes : 0;
    uint64_t younger = draining->child[1] != 0 ? node(phases, draining->child[1])->max_bytes : 0;
    unsigned first = younger > older;
    find_worst(phases, draining->child[first], worst);
    put_worst(worst,
              &(TsiDrainRow){tsi_inc_era(tsi_inc(phases, at)), draining->since_ns, draining->held, draining->over});
    find_worst(phases, draining->child[!first], worst);
}

/* Returns the oldest phase from `at` down that is over. */
static uint32_t oldest_over(const TsiPhases* phases, uint32_t at) {
    for (;;) {
        const TsiDraining* draining = node(phases, at);
        if (draining->child[0] != 0 && node(phases, draining->child[0])->over_below) at = draining->child[0];
        else if (draining->over) return at;
        else at = draining->child[1];
    }
}

void tsi_draining_tell(TsiPhases* phases, uint32_t label_at, uint64_t now_ns, TsiDrainSum* out) {
    TsiLabel* label = tsi_label(&phases->labels, label_at);
    *out = (TsiDrainSum){0};
    tsi_lock_take(&label->drain_lock);
    uint32_t root = label->drain_root, oldest = root;
    out->expected = label->expected;

    if (root != 0) {
        while (node(phases, oldest)->child[0] != 0) oldest = node(phases, oldest)->child[0];
        out->phases = node(phases, root)->count;
        out->held = node(phases, root)->sum;
        out->oldest_ns = age(node(phases, oldest)->since_ns, now_ns);
        find_worst(phases, root, out->worst);
        out->over_phases = label->over_phases;
        out->over_held = label->over_held;
        if (out->over_phases != 0) out->over_oldest_ns = age(node(phases, oldest_over(phases, root))->since_ns, now_ns);
        uint64_t rest = out->phases;
        for (unsigned b = 0; b < TSI_LABEL_BUCKETS - 1 && rest != 0; b++) {
            uint64_t older = count_old(phases, root, now_ns, 2ull << b);
            out->ages[b] = rest - older;
            rest = older;
        }
        out->ages[TSI_LABEL_BUCKETS - 1] = rest;
    }

    tsi_lock_give(&label->drain_lock);
}

/* Counts a phase of the sum as over. */
static void put_over(TsiDrainSum* sum, TsiHolding held, uint64_t age_ns) {
    sum->over_phases++;
    tsi_holding_add(&sum->over_held, held);
    if (age_ns > sum->over_oldest_ns) sum->over_oldest_ns = age_ns;
}

void tsi_draining_add(TsiDrainSum* sum, const TsiDrainRow* row, uint64_t now_ns) {
    uint64_t its = age(row->since_ns, now_ns);
    if (tsi_is_unexpected(&sum->expected, row->held.objects, row->held.live_bytes)) put_over(sum, row->held, its);
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
    for (unsigned n = 0; n < TSI_DRAIN_WORST; n++)
        if (sum->worst[n].era != row.era) sum->worst[kept++] = sum->worst[n];
    if (kept < TSI_DRAIN_WORST) sum->worst[kept] = (TsiDrainRow){0};
    put_worst(sum->worst, &row);
}
