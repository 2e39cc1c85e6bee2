/*
 * report_labels.c - the labels of a report; see report_walk.h.
 *
 * A label's sums are its account and the sums that phases have not posted yet. Its figures of ended phases are its own
 * (phase/draining.h), except for slabs of ended phases that heaps still hold: those of epochs that the ring has moved
 * past and nobody has swept, few, which every walk sees.
 */
#include "stats/growth.h"
#include "stats/pace.h"
#include "stats/report_walk.h"

#include <string.h>

enum { TRIES = 64 };

/* Adds the sums of a shard or of a thread, *sums, to a label's row; each straight end counts in all the sums that a
 * phase of one slab changes. Writers may be at work: each sum is one that it had, and different ones may be of
 * different times. [any thread, needs no lock] */
static void sums_add(SlabLabelStats* out, const TsiLabelSums* sums) {
    /* acquire: pairs with tsi_sum_add, tsi_pending_sum and move_sum */
    uint64_t straight = tsi_load_acquire(&sums->straight), objects = tsi_load_acquire(&sums->straight_objects),
             bytes = tsi_load_acquire(&sums->straight_bytes);

    out->phases_ended += tsi_load_acquire(&sums->ended) + straight;
    out->objects_allocated += tsi_load_acquire(&sums->objects_allocated) + objects;
    out->bytes_allocated += tsi_load_acquire(&sums->bytes_allocated) + bytes;
    out->objects_released += tsi_load_acquire(&sums->objects_released) + objects;
    out->bytes_released += tsi_load_acquire(&sums->bytes_released) + bytes;
    out->objects_freed += tsi_load_acquire(&sums->objects_freed);
    out->bytes_freed += tsi_load_acquire(&sums->bytes_freed);

    out->closed_slabs += tsi_load_acquire(&sums->closed_slabs) + straight;
    out->pinned_slabs += tsi_load_acquire(&sums->pinned_slabs);
    out->slow_path_hits += tsi_load_acquire(&sums->slow) + straight;
    out->lock_fast_acquire += tsi_load_acquire(&sums->lock_fast) + 2 * straight;
    out->lock_contended += tsi_load_acquire(&sums->lock_contended);
    out->outside_objects += tsi_load_acquire(&sums->outside_objects);
    out->outside_bytes += tsi_load_acquire(&sums->outside_bytes);
}

/* Adds a thread's pending sums to *stats, the row of the label with the record `at`, if pending->whose names that
 * label before and after they are read; otherwise leaves the row alone. [any thread, needs no lock] */
static void pending_add(SlabLabelStats* stats, uint32_t at, const TsiPending* pending) {
    /* acquire: pairs with tsi_pending_turn. Before the sums, which are the label's or 0 from then on */
    uint64_t whose = tsi_load_acquire(&pending->whose);
    if ((uint32_t)whose != at + 1) return;
    SlabLabelStats with = *stats;
    sums_add(&with, &pending->sums);
    for (unsigned b = 0; b < TSI_LABEL_BUCKETS; b++) {
        with.duration_ns[b] += tsi_load_acquire(&pending->duration[b]); /* as in sums_add */
        with.peak_bytes_hist[b] += tsi_load_acquire(&pending->peaks[b]);
    }
    if (tsi_load_relaxed(&pending->whose) == whose) *stats = with; /* otherwise some may be another label's */
}

/* Sets *out to the row of the label with the record `at`, from its shards and the threads' records, before any phase
 * is read. Returns true; false if label->moves_begun shows that sums moved among these during it: *out then means
 * nothing, and the caller calls again. [no other user of out] */
static bool label_begin(TsiArena* a, uint32_t at, SlabLabelStats* out) {
    TsiLabels* ls = &a->phases.labels;
    TsiLabel* label = tsi_label(ls, at);
    uint64_t moves = tsi_load_acquire(&label->moves_ended); /* pairs with tsi_pending_empty */
    *out = (SlabLabelStats){.version = SLAB_STATS_VERSION, .label_id = tsi_label_id(ls, at)};
    memcpy(out->label, label->name, sizeof out->label);

    for (unsigned n = 0; n < TSI_LABEL_SHARDS; n++) {
        TsiLabelShard* shard = &label->shard[n];
        sums_add(out, &shard->sums);
        out->alloc_samples += tsi_load_relaxed(&shard->samples);
        out->alloc_wall_ns_sum += tsi_load_relaxed(&shard->sample_ns[0]);
        out->alloc_cpu_ns_sum += tsi_load_relaxed(&shard->sample_ns[1]);
        out->alloc_wait_ns_sum += tsi_load_relaxed(&shard->sample_ns[2]);
        for (unsigned b = 0; b < TSI_LABEL_BUCKETS; b++) {
            out->duration_ns[b] += tsi_load_acquire(&shard->duration[b]); /* as in sums_add */
            out->peak_bytes_hist[b] += tsi_load_acquire(&shard->peaks[b]);
        }
    }

    for (uint32_t n = 0; n < tsi_table_used(&a->bindings); n++) {
        const TsiBinding* b = tsi_table_at(&a->bindings, n);
        pending_add(out, at, &b->pending[at % TSI_PENDING_LABELS]);
    }

    bool whole = tsi_load_relaxed(&label->moves_begun) == moves;
    out->objects_escaped = tsi_load_relaxed(&label->objects_escaped);
    out->bytes_escaped = tsi_load_relaxed(&label->bytes_escaped);
    out->refusals = tsi_load_relaxed(&label->refusals);
    out->cas_retries = tsi_load_relaxed(&label->retries);
    out->swallowed = tsi_load_relaxed(&label->swallowed);
    out->unexpected_phases = tsi_load_relaxed(&label->unexpected);

    out->budget_soft_bytes = tsi_load_relaxed(&label->budget.soft);
    out->budget_hard_bytes = tsi_load_relaxed(&label->budget.hard);
    out->budget_warnings = tsi_load_relaxed(&label->warnings);
    out->budget_refusals = tsi_load_relaxed(&label->over);
    out->peak_bytes = tsi_load_relaxed(&label->peak);
    return whole;
}

/* Returns true if the record n has another era or state than as it was copied, or has got another label since: the
 * account of a label may have its slabs' issued objects. A label that comes later counts all that this report has seen.
 * [any thread, needs no lock] */
static bool has_moved(TsiWalk* walk, uint32_t n) {
    const TsiPhaseCopy* copy = &walk->copies[n];
    TsiInc* inc = tsi_inc(&walk->a->phases, n);
    /* seq_cst: pairs with slab_epoch_set_label, which adds, then looks at the slabs */
    return tsi_load_seq(&inc->relabellings) != copy->relabellings || tsi_inc_era(inc) != copy->row.epoch_era ||
           tsi_inc_state(inc) != copy->state;
}

/* Returns how many of `allocated` were freed one by one and are not `posted` yet: neither live nor released; 0 if there
 * are none. The parts are read one after the other: what moves in between is missing. [any thread, needs no lock] */
static uint64_t freed(uint64_t allocated, uint64_t released, uint64_t live, uint64_t posted) {
    uint64_t gone = released + live + posted;
    return allocated > gone ? allocated - gone : 0;
}

/* Returns `not_posted`, or 0 if it is below 0 as a signed number: sums that a relabelling has posted ahead may be
 * settled after the phase was copied, or issued and not counted yet; missed, this time. [any thread, needs no lock] */
static uint64_t more(uint64_t not_posted) { return (int64_t)not_posted > 0 ? not_posted : 0; }

/* Adds the sums of the phase with the record n that its label's account does not have to the label's row; nothing for
 * a free record, and for a label younger than the report. Objects and bytes allocated and freed are left out if
 * has_moved returns true: the phase has got another label, state or era since it was copied.
 * [no other user of walk] */
static void label_add(TsiWalk* walk, uint32_t n) {
    const TsiPhaseCopy* copy = &walk->copies[n];
    const TsiPhaseSum* sum = &walk->sums[n];
    if (copy->row.epoch_era == 0 || copy->label >= walk->report->label_count)
        return; /* a label younger than this report */
    SlabLabelStats* out = &walk->report->labels[copy->label];

    if (copy->state == TSI_INC_ACTIVE) {
        out->phases_open++;
        out->open_objects += sum->live.objects;
        out->open_bytes += sum->live.bytes;
    }

    if (!has_moved(walk, n)) { /* otherwise missed, this time: a label's figures are never taken back */
        out->objects_allocated += more(copy->new_allocated.objects + sum->issued.objects);
        out->bytes_allocated += more(copy->new_allocated.bytes + sum->issued.bytes);
        uint64_t objects = sum->live.objects + copy->not_walked.objects,
                 bytes = sum->live.bytes + copy->not_walked.bytes;
        out->objects_freed += freed(copy->row.objects_allocated + sum->issued.objects, copy->released.objects, objects,
                                    copy->posted_freed.objects);
        out->bytes_freed +=
            freed(copy->row.bytes_allocated + sum->issued.bytes, copy->released.bytes, bytes, copy->posted_freed.bytes);
    }

    out->objects_released += copy->new_released.objects;
    out->bytes_released += copy->new_released.bytes;
    out->closed_slabs += copy->closed_slabs;
    out->pinned_slabs += copy->pinned_slabs;
    out->slow_path_hits += copy->slow;
    out->lock_fast_acquire += copy->lock_fast;
    out->lock_contended += copy->lock_contended;
    out->committed_bytes += sum->bytes;
}

/* Returns the live part of a label's sum: *allocated + *moved - ended. Where that would be below 0, raises *shown and
 * *allocated first, to make it 0: all sums are lower bounds, and so is the one that they set for *allocated. ended:
 * freed and released; *moved: brought along by relabelled phases, minus taken away, read only. [labels' lock held] */
static uint64_t live_by(uint64_t* shown, uint64_t* allocated, uint64_t ended, _Atomic int64_t* moved) {
    int64_t brought = tsi_load_relaxed(moved), least = (int64_t)ended - brought;
    if ((int64_t)*allocated < least) *shown = *allocated = (uint64_t)least;
    return *allocated + (uint64_t)brought - ended;
}

/* Completes a label's row from its sums. Raises those of its 13 sums that are below label->shown to that, and sets
 * label->shown to them, so that no figure goes back; computes live figures, drainability and limits between figures;
 * raises the label's peak to the committed bytes. [labels' lock held] */
static void label_end(TsiLabel* label, SlabLabelStats* out) {
    uint64_t* shown = label->shown;
    out->phases_opened = out->phases_ended + out->phases_open;

    uint64_t* const sums[TSI_LABEL_SHOWN] = {&out->phases_opened,     &out->objects_allocated, &out->bytes_allocated,
                                             &out->slow_path_hits,    &out->objects_freed,     &out->bytes_freed,
                                             &out->lock_fast_acquire, &out->lock_contended,    &out->phases_ended,
                                             &out->objects_released,  &out->bytes_released,    &out->outside_objects,
                                             &out->outside_bytes};

    for (unsigned n = 0; n < TSI_LABEL_SHOWN; n++) { /* a figure shown once does not go back */
        if (*sums[n] < shown[n]) *sums[n] = shown[n];
        shown[n] = *sums[n];
    }

    uint64_t objects_ended = out->objects_freed + out->objects_released;
    uint64_t bytes_ended = out->bytes_freed + out->bytes_released;
    out->live_objects = live_by(&shown[1], &out->objects_allocated, objects_ended, &label->moved_objects);
    out->live_bytes = live_by(&shown[2], &out->bytes_allocated, bytes_ended, &label->moved_bytes);

    /* Slabs have threads' pending bytes already: a peak shown once stays. */
    while (out->peak_bytes < out->committed_bytes &&
           !tsi_cas_seq(&label->peak, &out->peak_bytes, out->committed_bytes)) {}
    /* live objects lie in slabs, whether the walk has seen these or not */
    if (out->committed_bytes < out->live_bytes) out->committed_bytes = out->live_bytes;
    if (out->peak_bytes < out->committed_bytes) out->peak_bytes = out->committed_bytes;

    if (out->pinned_slabs > out->closed_slabs) out->pinned_slabs = out->closed_slabs; /* read one after the other */
    out->drainability = tsi_label_drainability(out);
    /* Live objects of open phases are among those live by the sums, which are lower bounds. */
    if (out->open_objects > out->live_objects) out->open_objects = out->live_objects;
    if (out->open_bytes > out->live_bytes) out->open_bytes = out->live_bytes;
}

/* ---- growth and limits ---- */

/* Adds a reading of `live` bytes at `now`, ns of the clock, to the label's floors, one of each stretch, by
 * tsi_growth_note. Returns the growth by them; ns 0 if it is not known yet. turned: the bits that tsi_growth_turn has
 * returned. [labels' lock held] */
static TsiGrown grown_of(const TsiArena* a, TsiFloor floors[TSI_GROWTHS], unsigned turned, uint64_t now,
                         uint64_t live) {
    const TsiFloor* const of[TSI_GROWTHS] = {&floors[TSI_GROWTH_SHORT], &floors[TSI_GROWTH_LONG]};
    for (unsigned which = 0; which < TSI_GROWTHS; which++) tsi_growth_note(&floors[which], which, turned, live);
    return tsi_growth_told(a->stretches, of, now, live);
}

/* Returns the growth of the bytes that a budget counts, by tsi_growth_held from growth and paces in the label's row
 * *stats, which are set; `most` is the lower one of its two paces of committed bytes. [any thread, needs no lock] */
static TsiGrown held_told(const SlabLabelStats* stats) {
    TsiGrown grown = {stats->growth_bytes, stats->growth_ns, stats->growth_per_second};
    double most =
        stats->committed_pace_10s < stats->committed_pace_100s ? stats->committed_pace_10s : stats->committed_pace_100s;
    return tsi_growth_held(grown, stats->live_pace_10s, stats->committed_pace_10s, most);
}

/* Sets limit_bytes, limit_used_bytes and limit_ns of the row to `limit` if tsi_growth_is_nearer says that it is nearer
 * than theirs; otherwise leaves them alone. [no other user of out] */
static void limit_nearer(SlabLabelStats* out, TsiLimit limit) {
    if (!tsi_growth_is_nearer(&limit, &(TsiLimit){out->limit_bytes, out->limit_used_bytes, out->limit_ns})) return;
    out->limit_bytes = limit.bytes;
    out->limit_used_bytes = limit.used;
    out->limit_ns = limit.ns;
}

/* Sets limit_bytes, limit_used_bytes and limit_ns in the row of the label of the phase with the record n to those of
 * the phase's hard budget, if it is open, has one, and meets it sooner. A phase grows no faster than its label: at
 * most by its pace so far if other phases may grow, too. [no other user of walk] */
static void phase_limit(TsiWalk* walk, uint32_t n) {
    const TsiPhaseCopy* copy = &walk->copies[n];
    uint64_t since = tsi_walk_since(walk, copy), used = walk->sums[n].bytes, now = walk->report->figures_ns;
    if (copy->row.budget_hard_bytes == 0 || copy->state != TSI_INC_ACTIVE || copy->label >= walk->report->label_count)
        return;
    SlabLabelStats* out = &walk->report->labels[copy->label];
    TsiGrown grown = held_told(out);
    uint64_t age_ns = now > since ? now - since : 0;
    double pace = age_ns != 0 ? (double)used * 1e9 / (double)age_ns : 0;
    if (out->phases_open > 1 && grown.per_second > pace) grown.per_second = pace;
    limit_nearer(out, tsi_growth_limit(copy->row.budget_hard_bytes, used, &grown, age_ns));
}

/* Sets growth_bytes, growth_ns and growth_per_second in the row, after adding its live bytes to the label's floors,
 * and limit fields to the label's hard budget if that is met sooner than what they have. now: ns of the clock. turned:
 * the bits that tsi_growth_turn has returned. [labels' lock held] */
static void label_growth(const TsiArena* a, TsiLabel* label, unsigned turned, uint64_t now, SlabLabelStats* out) {
    TsiGrown grown = grown_of(a, label->floors, turned, now, out->live_bytes);
    out->growth_bytes = grown.bytes;
    out->growth_ns = grown.ns;
    out->growth_per_second = grown.per_second;
    TsiGrown held = held_told(out);
    limit_nearer(out, tsi_growth_limit(out->budget_hard_bytes, out->committed_bytes, &held, tsi_pace_age(a, now)));
}

/* ---- what drains ---- */

/* Sets the row's figures of draining phases, their ages, and its TSI_DRAIN_WORST worst phases to those of *sum; a
 * place without a phase has era 0 and age 0. Other fields stay. now: ns of the clock. [no other user of out] */
static void put_drains(SlabLabelStats* out, const TsiDrainSum* sum, uint64_t now) {
    out->draining_phases = out->phases_draining = sum->phases;
    out->draining_objects = sum->held.objects;
    out->draining_bytes = sum->held.slab_bytes;
    out->oldest_draining_ns = sum->oldest_ns;
    out->expected_objects = sum->expected.objects;
    out->expected_bytes = sum->expected.bytes;
    out->unexpected_draining_phases = sum->over_phases;
    out->unexpected_draining_objects = sum->over_held.objects;
    out->unexpected_draining_bytes = sum->over_held.slab_bytes;
    out->oldest_unexpected_ns = sum->over_oldest_ns;
    memcpy(out->draining_age_ns, sum->ages, sizeof out->draining_age_ns);

    for (unsigned n = 0; n < TSI_DRAIN_WORST; n++) {
        const TsiDrainRow* row = &sum->worst[n];
        out->worst_eras[n] = row->era;
        out->worst_bytes[n] = row->held.slab_bytes;
        out->worst_objects[n] = row->held.objects;
        out->worst_ages_ns[n] = row->era != 0 && now > row->since_ns ? now - row->since_ns : 0;
    }
}

/* Adds the incarnation `inc` to walk->drains of its label if it drains: inc->draining has a label, under which its
 * orphans are counted; nothing if it is free, open, or of a label younger than the report. Takes and gives back the
 * stripe. [no other user of walk, no stripe held] */
static void add_draining(TsiWalk* walk, TsiInc* inc) {
    if (tsi_inc_era(inc) == 0 || tsi_inc_state(inc) == TSI_INC_ACTIVE) return;
    tsi_lock_take(tsi_inc_lock(inc)); /* not counted: the wait is the report's */
    TsiDraining draining = inc->draining;
    uint64_t era = tsi_inc_era(inc);
    tsi_lock_give(tsi_inc_lock(inc));

    if (draining.label == 0 || draining.label > walk->report->label_count)
        return; /* a label younger than this report */
    TsiDrainRow row = {era, draining.since_ns, draining.held, draining.over};
    tsi_draining_add(&walk->drains[draining.label - 1], &row, walk->report->figures_ns);
}

void tsi_labels_drains(TsiWalk* walk) {
    TsiPhases* phases = &walk->a->phases;
    for (uint32_t at = 0; at < walk->report->label_count; at++)
        walk->drains[at] = (TsiDrainSum){.expected = tsi_draining_expected(tsi_label(&phases->labels, at))};
    for (uint32_t i = 1; i < walk->incs; i++) add_draining(walk, tsi_inc(phases, i));
}

/* Adds the ended phase with the record n, if heaps hold slabs of it, to its label's sum, which has it with other slabs,
 * or not at all. [no other user of walk] */
static void add_unsettled(TsiWalk* walk, uint32_t n) {
    const TsiPhaseCopy* copy = &walk->copies[n];
    const TsiHolding* owned = &walk->sums[n].owned;
    bool ended = copy->row.epoch_era != 0 && (copy->state == TSI_INC_ADVANCED || copy->state == TSI_INC_CLOSED);
    bool holds = owned->objects != 0 || copy->draining;
    if (!ended || !holds || copy->label >= walk->report->label_count) return; /* or a label younger than this report */
    TsiDrainSum* sum = &walk->drains[copy->label];
    TsiDrainRow row = {copy->row.epoch_era, tsi_walk_since(walk, copy), copy->settled, copy->over};

    if (copy->draining) {
        tsi_draining_more(sum, row, *owned, walk->report->figures_ns);
        return;
    }
    row.held = *owned;
    row.over = tsi_is_unexpected(&sum->expected, owned->objects, owned->live_bytes);
    tsi_draining_add(sum, &row, walk->report->figures_ns);
}

/* ---- all labels ---- */

void tsi_labels_begin(TsiWalk* walk) {
    TsiArena* a = walk->a;
    TsiReport* report = walk->report;
    for (uint32_t at = 0; at < report->label_count; at++) {
        unsigned tries = 0;
        while (!label_begin(a, at, &report->labels[at]) && ++tries < TRIES) {}
    }
}

void tsi_labels_add(TsiWalk* walk) {
    TsiReport* report = walk->report;
    for (uint32_t at = 0; walk->figures && at < report->label_count; at++)
        report->labels[at].committed_bytes += walk->drains[at].held.slab_bytes;
    for (uint32_t k = 0; k < walk->copies_made; k++) {
        label_add(walk, walk->copied[k]);
        add_unsettled(walk, walk->copied[k]);
    }
    for (uint32_t at = 0; at < report->label_count; at++)
        put_drains(&report->labels[at], &walk->drains[at], report->figures_ns);
}

/* Sorts the rows, which are by record, by id: records 0 and 1 come first, but record 1 has the highest id.
 * [no other user of report] */
static void labels_by_id(TsiReport* report) {
    SlabLabelStats other = report->labels[TSI_LABEL_OTHER];
    for (uint32_t n = TSI_LABEL_OTHER; n + 1 < report->label_count; n++) report->labels[n] = report->labels[n + 1];
    report->labels[report->label_count - 1] = other;
}

/* Adds what the rows of all labels have allocated, freed, released, let escape, opened, ended and drain to the
 * report's own sums, which are 0, before rows are chosen or left out. [no other user of report] */
static void add_totals(TsiReport* report) {
    for (uint32_t n = 0; n < report->label_count; n++) {
        const SlabLabelStats* stats = &report->labels[n];
        report->objects_allocated += stats->objects_allocated;
        report->bytes_allocated += stats->bytes_allocated;
        report->objects_freed += stats->objects_freed;
        report->objects_released += stats->objects_released;
        report->objects_escaped += stats->objects_escaped;
        report->phases_opened += stats->phases_opened;
        report->phases_ended += stats->phases_ended;
        report->draining_objects += stats->draining_objects;
        report->draining_bytes += stats->draining_bytes;
    }
}

void tsi_labels_end(TsiWalk* walk) {
    TsiLabels* labels = &walk->a->phases.labels;
    TsiReport* report = walk->report;
    tsi_lock_take(&labels->lock);
    unsigned turned =
        tsi_growth_turn(walk->a->stretches, report->uptime_ns, report->figures_ns, report->global.live_bytes);
    uint64_t age_ns = tsi_pace_age(walk->a, report->figures_ns);
    unsigned marked = tsi_pace_turn(&walk->a->marks, age_ns, report->global.live_bytes, report->global.committed_bytes);

    for (uint32_t at = 0; at < report->label_count; at++) {
        TsiLabel* label = tsi_label(labels, at);
        label_end(label, &report->labels[at]);
        tsi_pace_label_locked(walk->a, &label->past, marked, age_ns, &report->labels[at]);
        label_growth(walk->a, label, turned, report->figures_ns, &report->labels[at]);
    }

    tsi_pace_tell_locked(walk->a, age_ns, &report->global);
    tsi_growth_tell_locked(walk->a, report->figures_ns, &report->global);
    tsi_lock_give(&labels->lock);

    for (uint32_t k = 0; k < walk->copies_made; k++) phase_limit(walk, walk->copied[k]);
    labels_by_id(walk->report);
    add_totals(walk->report);
}
