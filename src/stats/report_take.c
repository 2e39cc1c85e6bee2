/*
 * report_take.c - one walk, every table. See report.h.
 *
 * A report of figures alone reads slabs that heaps hold and the phases that these are in; for the rest labels know the
 * sums. Rows of phases and epochs, and the share of ended phases in classes, are those of the last full walk.
 *
 * The order keeps sums from counting anything twice: label accounts, then phases, then slabs. Sums that move between
 * two readings (a slab settled into its phase, a phase posted to its label) are missed, and TsiLabel.shown keeps the
 * sums from going back until the next report.
 *
 * Rows do not contradict themselves. A phase has allocated the objects that its slabs, present and former, have issued.
 * A slab's issued and live objects are read together, so they are missed together. A label's live objects follow from
 * its sums, see phase/label.h.
 */
#include "stats/report.h"

#include "heap/late_frees.h"
#include "threads/registry.h"
#include "os/clock.h"
#include "stats/pace.h"
#include "stats/report_walk.h"
#include "stats/tally.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- phases ---- */

/* Returns true if h has slabs and is the first such heap of its thread in the phase with the record n, and sets
 * walk->seen[binding] to n: the thread may own several. Returns false, with nothing set, in shared mode, for a heap
 * that no thread owns, and for threads newer than the walk. [stripe held] */
static bool is_further_owner(TsiWalk* walk, TsiHeap* h, uint32_t n) {
    uint64_t word = tsi_load_relaxed(&h->word);
    uint32_t binding = tsi_heap_binding(word);
    bool nobodys = tsi_heap_state(word) == TSI_HEAP_DETACHED || tsi_heap_state(word) == TSI_HEAP_LENT;
    bool of_a_thread = !nobodys && !walk->a->options.shared;
    if (!of_a_thread || tsi_load_relaxed(&h->slab_count) == 0) return false;
    if (binding >= walk->bindings || walk->seen[binding] == n) return false;
    walk->seen[binding] = n;
    return true;
}

/* Sets the sums of *copy that the phase's label does not have yet, from *inc; copy->row has allocated objects and bytes
 * already. [stripe held] */
static void copy_unposted(TsiPhaseCopy* copy, const TsiInc* inc) {
    /* These two may be below 0, until the slabs are added. */
    copy->new_allocated.objects = copy->row.objects_allocated - inc->posted.objects_allocated;
    copy->new_allocated.bytes = copy->row.bytes_allocated - inc->posted.bytes_allocated;
    copy->new_released.objects = inc->released.objects - inc->posted.objects_released;
    copy->new_released.bytes = inc->released.bytes - inc->posted.bytes_released;
    copy->posted_freed = (TsiTotals){inc->posted.objects_freed, inc->posted.bytes_freed};
    copy->closed_slabs = inc->closed_slabs - inc->posted.closed_slabs;
    copy->pinned_slabs = inc->pinned_slabs - inc->posted.pinned_slabs;
    copy->slow = inc->slow - inc->posted.slow;
    copy->lock_fast = inc->lock_fast - inc->posted.lock_fast;
    copy->lock_contended = inc->lock_contended - inc->posted.lock_contended;
}

/* Copies the incarnation's record n to walk->copies[n], 0 before, and appends n to walk->copied. Does neither for a
 * free record, nor, if walk->figures, for an ended one without heaps, whose sums its label has. Counts in row.threads
 * the threads that own heaps with slabs of it, each once. Takes and gives back the stripe.
 * [no other user of walk, no stripe held] */
static void copy_phase(TsiWalk* walk, uint32_t n) {
    TsiArena* a = walk->a;
    TsiInc* inc = tsi_inc(&a->phases, n);
    TsiPhaseCopy* copy = &walk->copies[n];
    if (tsi_inc_era(inc) == 0) return;
    bool settled = tsi_inc_state(inc) != TSI_INC_ACTIVE && tsi_load_relaxed(&inc->heap_count) == 0;
    if (walk->figures && settled) return; /* its label has the sums */

    tsi_lock_take(tsi_inc_lock(inc)); /* not counted: the wait is the report's */
    SlabPhaseStats* row = &copy->row;
    row->epoch_era = tsi_inc_era(inc);
    if (row->epoch_era == 0) { /* being reused: its fields are another phase's */
        tsi_lock_give(tsi_inc_lock(inc));
        return;
    }

    copy->state = tsi_inc_state(inc);
    copy->label = tsi_inc_label(inc);
    copy->relabellings = tsi_load_relaxed(&inc->relabellings);
    row->version = SLAB_STATS_VERSION;
    row->epoch_id = tsi_load_relaxed(&inc->id);
    row->state = copy->state == TSI_INC_ACTIVE ? EPOCH_ACTIVE : EPOCH_CLOSING;
    row->label_id = tsi_label_id(&a->phases.labels, copy->label);
    memcpy(row->label, inc->label, sizeof row->label);

    row->open_since_ns = tsi_load_relaxed(&inc->open_since_ns);
    row->refcount = tsi_snapshot_refcount(a, inc);
    row->peak_bytes = tsi_inc_peak(inc);
    row->purged_bytes = tsi_load_relaxed(&inc->purged);
    row->budget_soft_bytes = tsi_load_relaxed(&inc->budget.soft);
    row->budget_hard_bytes = tsi_load_relaxed(&inc->budget.hard);
    row->rss_before_close = inc->rss_before;
    row->rss_after_close = inc->rss_after;

    bool walked = !walk->figures || copy->state == TSI_INC_ACTIVE; /* its orphans, too */
    row->objects_allocated = inc->allocated.objects - (walked ? inc->orphaned.objects : 0);
    row->bytes_allocated = inc->allocated.bytes - (walked ? inc->orphaned.bytes : 0);
    if (!walked) copy->not_walked = (TsiTotals){inc->holding.objects, inc->holding.live_bytes};
    copy->released = inc->released;

    copy_unposted(copy, inc);
    copy->draining = inc->draining.label != 0;
    copy->settled = inc->draining.held;
    copy->over = inc->draining.over;
    for (uint32_t at = inc->heaps; at != 0; at = tsi_heap(a, at - 1)->inc_next) {
        TsiHeap* h = tsi_heap(a, at - 1);
        copy->slow += tsi_load_relaxed(&h->slow);
        row->threads += is_further_owner(walk, h, n);
    }

    tsi_lock_give(tsi_inc_lock(inc));
    walk->copied[walk->copies_made++] = n;
    copy->is_id = tsi_phases_resolve(&a->phases, row->epoch_id) == tsi_ref(row->epoch_era, n);
    copy->used = row->peak_bytes != 0;
}

/* Adds a slab to the row of its class, in report->settled if it is an ORPHAN or PARTIAL and not large, otherwise in
 * report->classes, and a region's objects to the rows of their classes there. [no other user of walk] */
static void add_to_classes(TsiWalk* walk, const TsiSlabView* view) {
    bool kept = view->cls != TSI_CLASS_LARGE && (view->state == TSI_SLAB_ORPHAN || view->state == TSI_SLAB_PARTIAL);
    SlabClassStats* rows = kept ? walk->report->settled : walk->report->classes;
    unsigned row = tsi_class_row(view->cls);
    TsiRegionTally region;
    if (row == TSI_CLASS_REGION) {
        tsi_tally_region(walk->a, view, &region);
        for (unsigned cls = 1; cls <= TSI_SMALL_CLASSES; cls++) /* the classes of its objects */
            tsi_tally_class_add(walk->a, &rows[cls - 1], view, &region);
    }
    tsi_tally_class_add(walk->a, &rows[row - 1], view, &region);
}

/* Adds the slab *view to the sums of the TsiWalk ctx: to its class and, but for large objects of ended phases if
 * walk->figures, the report's global figures; then, if its phase was copied to walk->copies, to walk->sums of that:
 * live and issued objects, bytes, and 1 to the empty, full or partial slabs. [no other user of ctx] */
static void add_slab(const TsiSlabView* view, void* ctx) {
    TsiWalk* walk = ctx;
    add_to_classes(walk, view);
    uint32_t n = tsi_ref_index(view->ref);
    bool known = view->ref != 0 && n < walk->incs && walk->copies[n].row.epoch_era == tsi_ref_era(view->ref);
    bool ended = view->ref != 0 && (!known || walk->copies[n].state != TSI_INC_ACTIVE);

    if (walk->figures && view->cls == TSI_CLASS_LARGE && ended) return; /* its label counts it */
    tsi_tally_global_add(&walk->report->global, view);
    if (!known) return;

    TsiPhaseSum* sum = &walk->sums[n];
    sum->slabs++;
    sum->bytes += view->bytes;
    tsi_totals_add(&sum->live, view->sum.live);
    tsi_totals_add(&sum->issued, view->sum.issued);

    if (view->state == TSI_SLAB_OWNED)
        tsi_holding_add(&sum->owned, (TsiHolding){view->sum.live.objects, view->sum.live.bytes, view->bytes});
    if (view->sum.live.objects == 0) sum->empty++;
    else if (tsi_tally_is_full(walk->a, view)) sum->full++;
    else sum->partial++;
}

/* Returns the ns from the first slab of the phase of *copy to `now`, ns of the clock; 0 if it never took one.
 * [any thread, needs no lock] */
static uint64_t age_of(const TsiWalk* walk, const TsiPhaseCopy* copy, uint64_t now) {
    uint64_t since = tsi_walk_since(walk, copy);
    return copy->used && now > since ? now - since : 0;
}

/* Adds the row of the phase with the record n to the report, unless it never held anything or has ended and holds
 * nothing. now: ns of the clock. [no other user of walk] */
static void phase_row(TsiWalk* walk, uint32_t n, uint64_t now) {
    const TsiPhaseCopy* copy = &walk->copies[n];
    const TsiPhaseSum* sum = &walk->sums[n];
    if (!copy->used || (copy->state != TSI_INC_ACTIVE && sum->slabs == 0)) return;

    SlabPhaseStats* out = &walk->report->phases[walk->report->phase_count++];
    *out = copy->row;
    if (out->open_since_ns == TSI_UNTIMED) out->open_since_ns = 0;
    out->age_ns = age_of(walk, copy, now);
    out->objects_allocated += sum->issued.objects;
    out->bytes_allocated += sum->issued.bytes;
    out->live_objects = sum->live.objects;
    out->live_bytes = sum->live.bytes;
    out->slabs = sum->slabs;
    out->empty_slabs = sum->empty;
    out->committed_bytes = sum->bytes;
    if (sum->bytes > out->peak_bytes) out->peak_bytes = sum->bytes; /* a slab taken since the phase was copied */
}

/* Adds the row of the epoch with the record n to the report, if it has held something (copies[n].used), and its id in
 * the ring still names it or it holds slabs: figures of the copy and of walk->sums[n]. Domains' phases have rows only
 * while they hold slabs. now: ns of the clock. [no other user of walk] */
static void epoch_row(TsiWalk* walk, uint32_t n, uint64_t now) {
    const TsiPhaseCopy* copy = &walk->copies[n];
    const TsiPhaseSum* sum = &walk->sums[n];
    const SlabPhaseStats* row = &copy->row;
    bool ring = (row->epoch_id & TSI_DOMAIN_ID_BIT) == 0;
    bool is_named = ring && copy->is_id;
    if (!copy->used || (!is_named && sum->slabs == 0)) return;

    TsiEpochRow* out = &walk->report->epochs[walk->report->epoch_rows++];
    *out = (TsiEpochRow){.epoch_id = row->epoch_id, .epoch_era = row->epoch_era, .state = row->state};
    out->age_sec = (double)age_of(walk, copy, now) / 1e9;
    out->refcount = row->refcount;
    memcpy(out->label, row->label, sizeof out->label);
    out->label_id = row->label_id;

    out->total_partial_slabs = sum->partial;
    out->total_full_slabs = sum->full;
    out->total_reclaimable_slabs = out->reclaimable_slab_count = sum->empty;
    out->alloc_count = sum->live.objects;
    out->estimated_rss_bytes = sum->bytes;
    out->open_since_ns = row->open_since_ns != TSI_UNTIMED ? row->open_since_ns : 0;
    out->rss_before_close = row->rss_before_close;
    out->rss_after_close = row->rss_after_close;
    out->rss_delta_mb = ((double)row->rss_before_close - (double)row->rss_after_close) / (1 << 20); /* fell: positive */
    out->madvise_bytes = row->purged_bytes;
}

/* ---- the report ---- */

/* Returns the ns since 1970, by the system's clock. [any thread, needs no lock] */
static uint64_t wall_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Maps all tables of the report and the walk at once, all 0, and sets the pointers to them and the mapping; the walk's
 * own come last. The counts are set before: class_count and label_count of the report, incs, bindings and figures of
 * the walk; with `figures` there is no room for rows of phases and epochs. Returns true; false with errno ENOMEM, and
 * nothing to drop. [no other user of walk] */
static bool tables_map(TsiWalk* walk) {
    TsiReport* report = walk->report;
    uint32_t incs = walk->incs, labels = report->label_count, classes = report->class_count,
             rows = walk->figures ? 0 : incs;
    const struct {
        void* where; /* the pointer to it */
        size_t count, each;
    } tables[] = {
        {&report->classes, classes, sizeof *report->classes}, {&report->settled, classes, sizeof *report->settled},
        {&report->labels, labels, sizeof *report->labels},    {&report->closes, TSI_CLOSES, sizeof *report->closes},
        {&report->epochs, rows, sizeof *report->epochs},      {&report->phases, rows, sizeof *report->phases},
        {&walk->copies, incs, sizeof *walk->copies},          {&walk->sums, incs, sizeof *walk->sums},
        {&walk->drains, labels, sizeof *walk->drains},        {&walk->copied, incs, sizeof *walk->copied},
        {&walk->seen, walk->bindings, sizeof *walk->seen}};

    enum { TABLES = sizeof tables / sizeof tables[0] };
    for (unsigned n = 0; n < TABLES; n++) report->mapping_bytes += tsi_align_up(tables[n].count * tables[n].each, 64);
    uint8_t* at = report->mapping = tsi_os_map(report->mapping_bytes);
    for (unsigned n = 0; n < TABLES && at != NULL; n++) {
        memcpy(tables[n].where, &at, sizeof at);
        at += tsi_align_up(tables[n].count * tables[n].each, 64);
    }
    return at != NULL;
}

/* Adds *more, figures of the slabs of a class that no heap has, to the row *to of the class: live and committed bytes,
 * slabs, and the empty, full and partial ones; other fields stay. [no other user of to] */
static void add_settled(SlabClassStats* to, const SlabClassStats* more) {
    to->live_bytes += more->live_bytes;
    to->net_slabs += more->net_slabs;
    to->committed_bytes += more->committed_bytes;
    to->empty_slabs_count += more->empty_slabs_count;
    to->total_full_slabs += more->total_full_slabs;
    to->total_partial_slabs += more->total_partial_slabs;
}

/* Adds to the report's global figures the live objects and bytes that settled slabs of ended phases hold, from
 * walk->drains, and replaces net_slabs and estimated_slab_rss_bytes by the sums over the classes and the stock.
 * [no other user of walk] */
static void add_drains(TsiWalk* walk) {
    SlabGlobalStats* stats = &walk->report->global;
    stats->net_slabs = 0;
    stats->estimated_slab_rss_bytes = stats->warm_stock_bytes;
    for (uint32_t n = 0; n < walk->report->class_count; n++) {
        stats->net_slabs += walk->report->classes[n].net_slabs;
        stats->estimated_slab_rss_bytes += walk->report->classes[n].committed_bytes;
    }
    for (uint32_t at = 0; at < walk->report->label_count; at++) {
        stats->live_objects += walk->drains[at].held.objects;
        stats->live_bytes += walk->drains[at].held.live_bytes;
    }
}

/* Fills the report, whose tables tables_map has mapped, all 0. kept: results of an earlier walk, for a report of
 * figures alone, without rows of phases and epochs, or NULL for one of everything. Takes stripes, and the registry's
 * and the labels' locks. [no other user of walk, no lock held but the segment's] */
static void fill(TsiWalk* walk, const TsiKept* kept) {
    TsiArena* a = walk->a;
    TsiReport* report = walk->report;
    tsi_late_count(a);
    tsi_labels_begin(walk);
    tsi_tally_global_begin(a, &report->global);
    for (uint32_t n = 1; n < walk->incs; n++) copy_phase(walk, n);
    tsi_labels_drains(walk);

    for (uint32_t n = 0; n < report->class_count; n++) {
        tsi_tally_class_begin(a, n, &report->classes[n]);
        SlabClassStats nothing = {.class_index = n, .object_size = report->classes[n].object_size};
        report->settled[n] = kept != NULL ? kept->settled[n] : nothing;
    }

    if (walk->figures) tsi_snapshot_unsettled(a, add_slab, walk);
    else tsi_snapshot_slabs(a, add_slab, walk);
    for (uint32_t n = 0; n < report->class_count; n++) {
        add_settled(&report->classes[n], &report->settled[n]);
        tsi_tally_class_end(&report->classes[n]);
    }

    if (walk->figures) add_drains(walk);
    report->global.metadata_bytes = kept != NULL ? kept->metadata_bytes : tsi_snapshot_metadata_bytes(a);
    for (uint32_t k = 0; k < walk->copies_made && !walk->figures; k++) {
        phase_row(walk, walk->copied[k], report->figures_ns);
        epoch_row(walk, walk->copied[k], report->figures_ns);
    }

    tsi_labels_add(walk);
    tsi_labels_end(walk);
    report->close_count = tsi_closelog_ends(&a->closed_log, report->closes);
    tsi_tally_refusals(a, &report->refusals);
    tsi_tally_sampling(a, &report->sampling);
}

/* Sets *out to a report; kept: results of an earlier walk, for a report of figures alone, or NULL for one of
 * everything. Returns true, and *out for tsi_report_drop; false with errno ENOMEM and nothing to drop. Takes stripes,
 * and the registry's and the labels' locks. [any thread, no lock held but the segment's] */
static bool take(TsiArena* a, const TsiKept* kept, TsiReport* out) {
    memset(out, 0, sizeof *out);
    TsiWalk walk = {.a = a, .report = out, .figures = kept != NULL};
    walk.incs = tsi_table_used(&a->phases.incs);
    walk.bindings = tsi_table_used(&a->bindings);
    out->class_count = TSI_CLASS_LARGE;
    out->label_count = out->label_ids = tsi_label_count(&a->phases.labels);

    if (!tables_map(&walk)) return false;

    out->timestamp_ns = wall_ns();
    out->figures_ns = tsi_clock_now();
    out->uptime_ns = tsi_pace_age(a, out->figures_ns);
    out->pid = (uint32_t)getpid();
    out->page_size = (uint32_t)tsi_os.page_bytes;
    out->epoch_count = a->phases.ring_size;
    out->max_labels = a->phases.labels.capacity;
    out->segment_publications = tsi_load_relaxed(&a->seat.publications);
    out->segment_failures = tsi_load_relaxed(&a->seat.failures);
    out->allocators = tsi_registry_count();
    memcpy(out->process_state, "running", sizeof "running");
    fill(&walk, kept);
    return true;
}

bool tsi_report_take_rows(TsiArena* a, int each, TsiReport* out) {
    if (!take(a, NULL, out)) return false;
    out->phases_ns = out->figures_ns;
    tsi_report_choose(out, each);
    return true;
}

bool tsi_report_take(TsiArena* a, TsiReport* out) { return tsi_report_take_rows(a, TSI_ROWS_ALL, out); }

bool tsi_report_figures(TsiArena* a, TsiKept* kept, TsiReport* out) {
    if (!take(a, kept, out)) return false;
    out->phases = kept->phases;
    out->phase_count = kept->phase_count;
    out->epochs = kept->epochs;
    out->epoch_rows = kept->epoch_rows;
    out->phases_ns = kept->phases_ns;
    out->phases_left_out = kept->phases_left_out;
    out->epochs_left_out = kept->epochs_left_out;
    return true;
}

void tsi_report_keep(const TsiReport* report, TsiKept* out) {
    memcpy(out->settled, report->settled, report->class_count * sizeof *report->settled);
    out->metadata_bytes = report->global.metadata_bytes;
    out->phases_ns = report->phases_ns;
    out->phases_left_out = report->phases_left_out;
    out->epochs_left_out = report->epochs_left_out;
    out->phase_count = report->phase_count;
    out->epoch_rows = report->epoch_rows;
    memcpy(out->phases, report->phases, report->phase_count * sizeof *report->phases);
    memcpy(out->epochs, report->epochs, report->epoch_rows * sizeof *report->epochs);
}

void tsi_report_drop(TsiReport* report) {
    tsi_os_drop(report->mapping, report->mapping_bytes);
    report->mapping = NULL;
}
