/*
 * expect_report.h - one report of an allocator, compared with the reference while nobody moves: the document, the
 * whole allocator, classes, phases and epochs. Labels are in expect_labels.h; decided.h says what has to be somewhere.
 *
 * Figures of slabs are the library's own affair; what is demanded of them is that parts add up to the whole, that
 * what is live fits into them, and that budgets hold.
 */
#ifndef MODEL_EXPECT_REPORT_H
#define MODEL_EXPECT_REPORT_H

#include <time.h>
#include <unistd.h>

#include "decided.h"
#include "expect.h"

_Static_assert((int)REGION_INDEX == (int)TSI_CLASS_REGION - 1 && (int)LARGE_INDEX == (int)TSI_CLASS_LARGE - 1,
               "the last two classes");

enum { SCAN_WINDOW = 1 << 18 }; /* allocations of a class between two looks of shared mode's controller */
enum { REGION_PART = 2 << 10, REGION_LEAST = 4 << 10, REGION_MOST = 1 << 20 };

static inline TsiArena* arena_of(const struct side* s) { return ((TsiPublic*)(void*)s->a)->arena; }

/* ---- what only grows -------------------------------------------------------------------- */

/* The rows told last, of the sections whose rows stay. */
struct last {
    struct rows {
        char* first;
        uint32_t count;
    } rows[TSI_SECTIONS];
};

static const TsiSection lasting[] = {TSI_SECTION_GLOBAL, TSI_SECTION_CLASS, TSI_SECTION_SAMPLING, TSI_SECTION_REFUSAL,
                                     TSI_SECTION_LABEL};
enum { LASTING = sizeof lasting / sizeof *lasting };

static inline void check_not_less(const TsiMetric* m, const char* was, const char* now) {
    TsiValue old = tsi_metric_value(m, was), new = tsi_metric_value(m, now);
    unsigned entries = tsi_metric_is_array(m) ? tsi_metric_entries(m) : 1;
    if (strcmp(m->key, "draining_age_ns") == 0) return; /* of those that drain now */
    for (unsigned i = 0; i < entries; i++) {
        uint64_t o = tsi_metric_is_array(m) ? old.a[i] : old.u, n = tsi_metric_is_array(m) ? new.a[i] : new.u;
        REQUIRE_OR(n >= o, "%s of \"%s\" fell from %llu to %llu (entry %u)", m->key, tsi_sections[m->section].key,
                   (unsigned long long)o, (unsigned long long)n, i);
    }
}

static inline void check_zero(const TsiMetric* m, const char* row) {
    TsiValue v = tsi_metric_value(m, row);
    bool zero = m->type == SLAB_SEGMENT_F64 ? v.f == 0.0 : v.u == 0;
    if (tsi_metric_is_array(m)) {
        zero = true;
        for (unsigned i = 0; i < tsi_metric_entries(m); i++) zero = zero && v.a[i] == 0;
    }
    REQUIRE_OR(zero, "%s of \"%s\" is not 0", m->key, tsi_sections[m->section].key);
}

static inline bool only_grows(const TsiMetric* m) {
    bool peak = m->section == TSI_SECTION_LABEL && strcmp(m->key, "peak_bytes") == 0;
    return peak || m->kind == SLAB_SEGMENT_COUNTER || m->kind == SLAB_SEGMENT_HISTOGRAM || m->kind == SLAB_SEGMENT_SUM;
}

/* The row that was told last of what is in this one: new labels come before "(other)", the last row. */
static inline const char* row_before(const struct rows* last, TsiSection section, TsiRows now, uint32_t n) {
    if (section == TSI_SECTION_LABEL && n + 1 == now.count) n = last->count - 1;
    else if (section == TSI_SECTION_LABEL && n + 1 >= last->count) return NULL;
    return last->first + (size_t)n * now.bytes;
}

static inline void check_growth(struct side* s, const TsiReport* r) {
    if (!s->last) s->last = must_alloc(sizeof *s->last);
    for (unsigned n = 0; n < TSI_METRICS; n++) {
        const TsiMetric* m = &tsi_metrics[n];
        TsiRows now = tsi_report_rows(r, m->section);
        const struct rows* last = &s->last->rows[m->section];
        for (uint32_t k = 0; k < now.count; k++) {
            const char* row = now.first + (size_t)k * now.bytes;
            if (verdicts[n] == NOTHING || (verdicts[n] == SHARED && !s->options.shared)) check_zero(m, row);
            if (!last->first || !only_grows(m)) continue;
            const char* was = row_before(last, m->section, now, k);
            if (was) check_not_less(m, was, row);
        }
    }
    for (unsigned i = 0; i < LASTING; i++) {
        struct rows* last = &s->last->rows[lasting[i]];
        TsiRows now = tsi_report_rows(r, lasting[i]);
        last->first = realloc(last->first, (size_t)now.count * now.bytes);
        if (!last->first) _Exit(2);
        memcpy(last->first, now.first, (size_t)now.count * now.bytes);
        last->count = now.count;
    }
}

static inline void growth_forget(struct side* s) {
    for (unsigned i = 0; s->last && i < LASTING; i++) free(s->last->rows[lasting[i]].first);
    free(s->last);
}

/* ---- classes ---------------------------------------------------------------------------- */

enum { WARM_START = 1 << 20, WARM_LIMIT = 64 << 20 };

/* The budget of what may stay warm learns from the reference on; a fixed one, and that of pages which never go back, does not. */
static inline bool warm_learns(const struct side* s) {
    return s->options.warm_bytes == 0 && s->options.purge_policy != SLAB_PURGE_NEVER;
}

/* Bytes that the budget is at first. */
static inline uint64_t warm_start(const struct side* s) {
    uint64_t asked = s->options.warm_bytes;
    return asked == 0 ? WARM_START : asked == UINT64_MAX ? 0 : asked;
}

static inline void check_warm(struct side* s, const SlabGlobalStats* g) {
    uint64_t most = warm_start(s) + g->warm_regretted_bytes;
    if (warm_learns(s)) {
        REQUIRE_LE(warm_start(s), g->warm_budget_bytes);
        REQUIRE_LE(g->warm_budget_bytes, most < WARM_LIMIT ? most : WARM_LIMIT);
    } else {
        REQUIRE_EQ(g->warm_budget_bytes, warm_start(s));
        REQUIRE_EQ(g->warm_stock_bytes, 0);
        REQUIRE_EQ(g->warm_regretted_bytes, 0);
    }
    REQUIRE_LE(g->warm_regretted_bytes, g->total_madvise_bytes);
    REQUIRE_LE(g->warm_stock_bytes, g->warm_bytes);
    REQUIRE_LE(g->warm_bytes - g->quarantine_bytes, g->warm_budget_bytes);
    REQUIRE_LE(g->quarantine_bytes, s->options.quarantine_bytes);
}

/* Sums over the rows of classes and of phases. */
struct sums {
    uint64_t hits, closed, miss, taken, recycled, overflowed, net, committed, madvise_calls, madvise_bytes, tries,
        looked;
    uint64_t warm_slabs, warm_regions, warm_bytes; /* the last: but of regions */
    uint64_t phase_slabs, phase_bytes, purged;
};

/* Slabs are taken with the pool's lock held, by the label of the phase; warm ones are not. In shared mode the lock of the phase
 * is counted as well, whenever an allocation finds no current line. */
static inline void check_columns(struct side* s, const SlabClassStats* k) {
    uint64_t all = 0, large[16] = {0};
    bool failures = s->options.max_bytes || s->seen[CAUSE_NO_MEMORY];
    for (unsigned n = 0; n < s->n_accounts; n++) {
        uint32_t id = account_id(s, n);
        large[id < 15 ? id : 15] += s->accounts[n].large;
    }
    for (unsigned column = 0; column < 16; column++) {
        uint64_t here = k->lock_fast_acquire_by_label[column];
        all += here;
        if (k->class_index == LARGE_INDEX)
            REQUIRE_OR(failures ? here >= large[column] : here == large[column],
                       "label column %u took the lock %llu times for %llu large objects", column,
                       (unsigned long long)here, (unsigned long long)large[column]);
        bool known = column == 0 || column == 15 || column + 1 < s->n_accounts || column == s->max_labels - 1;
        if (!known) REQUIRE_EQ(here, 0);
    }
    REQUIRE_EQ(all, k->lock_fast_acquire);
    uint64_t pooled = k->new_slab_count - k->empty_slab_recycled;
    bool more = failures || s->options.shared || warm_learns(s); /* what comes from the stock takes the lock as well */
    REQUIRE_OR(more ? all >= pooled : all == pooled, "class %u: the lock was taken %llu times for %llu slabs",
               k->class_index, (unsigned long long)all, (unsigned long long)pooled);
    if (!failures && !s->options.shared) REQUIRE_LE(all, k->new_slab_count);
}

/* Regions have six sizes: half of a page, where that is 4 KiB, a page, and each further one four times the one before. */
static inline void check_region_bytes(uint64_t bytes, uint64_t regions, const char* what) {
    uint64_t least = slab_page_size() > REGION_LEAST ? slab_page_size() : REGION_PART;
    uint64_t most = slab_page_size() > REGION_MOST ? slab_page_size() : REGION_MOST;
    REQUIRE_OR(bytes >= regions * least && bytes <= regions * most && bytes % least == 0,
               "%s are %llu, of %llu regions", what, (unsigned long long)bytes, (unsigned long long)regions);
}

static inline void check_class_row(struct world* w, struct side* s, const SlabClassStats* k, uint64_t live) {
    bool large = k->class_index == LARGE_INDEX;
    about(w, "class", k->class_index, "");
    REQUIRE_EQ(k->version, SLAB_STATS_VERSION);
    REQUIRE_EQ(k->object_size, class_size(k->class_index));
    REQUIRE_EQ(k->live_bytes, live);
    REQUIRE_EQ(k->slow_path_hits,
               k->slow_path_cache_miss + k->slow_path_epoch_closed + k->current_partial_null + k->current_partial_full);
    REQUIRE_EQ(k->empty_slabs_count + k->total_partial_slabs + k->total_full_slabs, k->net_slabs);
    REQUIRE_EQ(k->estimated_rss_bytes, k->committed_bytes);
    bool regions = k->class_index == REGION_INDEX;
    if (!large && !regions) REQUIRE_EQ(k->committed_bytes, k->net_slabs * k->slab_bytes);
    if (regions) check_region_bytes(k->committed_bytes, k->net_slabs, "committed_bytes of regions");
    if (regions && s->options.bump == BUMP_OFF) REQUIRE_EQ(k->new_slab_count, 0);
    if (large) REQUIRE_EQ(k->committed_bytes, k->live_bytes);
    if (!regions && !large) REQUIRE_LE(s->options.slab_bytes, k->slab_bytes);
    /* Each slab that was taken is in a phase, warm, or has gone: to the pool, or by way of a warm store to a phase. */
    uint64_t again =
        warm_learns(s) ? 0 : k->empty_slab_recycled; /* what comes from the stock may have been another class's */
    REQUIRE_LE(k->net_slabs + k->empty_slab_overflowed + again, k->new_slab_count);
    REQUIRE_LE(k->cache_size, k->empty_slabs_count);
    REQUIRE_OR((k->madvise_calls == 0) == (k->madvise_bytes == 0) && k->madvise_bytes % slab_page_size() == 0,
               "%llu madvise calls gave %llu bytes", (unsigned long long)k->madvise_calls,
               (unsigned long long)k->madvise_bytes);
    REQUIRE_LE(k->epoch_close_recycled_slabs, k->epoch_close_scanned_slabs);
    REQUIRE_LE(k->epoch_close_calls, k->epoch_close_scanned_slabs);
    REQUIRE_OR(k->epoch_close_calls || !k->epoch_close_total_ns, "closes took time and there were none");
    double rate = k->new_slab_count ? 100.0 * (double)k->empty_slab_recycled / (double)k->new_slab_count : 0.0;
    REQUIRE_OR(k->recycle_rate_pct == rate, "recycle_rate_pct is %g, due %g", k->recycle_rate_pct, rate);
    check_columns(s, k);
}

/* What the budget would hold of a class; none where slabs have no one size. */
static inline void check_capacity(const SlabClassStats* k, uint64_t budget, uint64_t held) {
    uint64_t capacity = k->class_index >= REGION_INDEX ? 0 : budget / k->slab_bytes;
    REQUIRE_EQ(k->cache_capacity, capacity < UINT32_MAX ? capacity : UINT32_MAX);
    if (k->class_index < REGION_INDEX) REQUIRE_LE(k->cache_size, k->cache_capacity + held / k->slab_bytes);
}

static inline void check_class_rows(struct world* w, struct side* s, const TsiReport* r, struct sums* sum) {
    uint64_t live[LARGE_INDEX + 1] = {0}, tries = 0;
    REQUIRE_EQ(r->class_count, LARGE_INDEX + 1);
    for (unsigned c = 0; c < r->class_count; c++) tries += r->classes[c].bitmap_alloc_attempts;
    for (size_t i = 0; i < s->n_objs; i++) live[class_of(s->objs[i])] += s->objs[i]->usable;
    for (unsigned c = 0; c < r->class_count; c++) {
        const SlabClassStats* k = &r->classes[c];
        REQUIRE_EQ(k->class_index, c);
        uint64_t looks = k->scan_adapt_checks; /* the allocator's, the same in each class */
        REQUIRE_OR(looks <= tries / SCAN_WINDOW && looks >= tries / SCAN_WINDOW / 2,
                   "the controller looked %llu times in %llu allocations", (unsigned long long)looks,
                   (unsigned long long)tries);
        check_class_row(w, s, k, live[c]);
        check_capacity(k, r->global.warm_budget_bytes, r->global.quarantine_bytes);
        sum->hits += k->slow_path_hits, sum->closed += k->slow_path_epoch_closed, sum->miss += k->slow_path_cache_miss;
        sum->taken += k->new_slab_count, sum->recycled += k->empty_slab_recycled;
        sum->overflowed += k->empty_slab_overflowed, sum->net += k->net_slabs, sum->committed += k->committed_bytes;
        sum->madvise_calls += k->madvise_calls, sum->madvise_bytes += k->madvise_bytes;
        sum->tries += k->bitmap_free_attempts, sum->looked += k->epoch_close_scanned_slabs;
        sum->warm_slabs += k->cache_size;
        if (c == REGION_INDEX) sum->warm_regions = k->cache_size;
        else sum->warm_bytes += k->cache_size * k->slab_bytes;
    }
}

/* ---- phases ----------------------------------------------------------------------------- */

/* A budget against what is committed under it. */
static inline void check_limit(const struct limit* l, uint64_t committed, const char* whose) {
    if (l->hard) REQUIRE_LE(committed, l->hard + limit_slack(l));
    if (l->soft && committed > l->soft && !l->passed && !l->mute)
        REQUIRE_OR(l->told_soft > l->told_before, "%s: %llu committed, soft %llu, and nobody was told", whose,
                   (unsigned long long)committed, (unsigned long long)l->soft);
}

static inline void check_phase_times(struct side* s, const SlabPhaseStats* p, const struct inc* inc, uint64_t before,
                                     uint64_t after) {
    if (p->epoch_era == 1) {
        REQUIRE_EQ(p->open_since_ns, 0);
        REQUIRE_LE(p->age_ns, after - s->created_ns + 1000000000u);
        return;
    }
    if (inc->untimed) {
        REQUIRE_EQ(p->open_since_ns, 0);
        REQUIRE_EQ(p->age_ns, 0);
        return;
    }
    REQUIRE_OR(p->open_since_ns >= inc->opened_ns && (!inc->used_ns || p->open_since_ns <= inc->used_ns),
               "era %llu is open since %llu, due %llu..%llu", (unsigned long long)inc->era,
               (unsigned long long)p->open_since_ns, (unsigned long long)inc->opened_ns,
               (unsigned long long)inc->used_ns);
    REQUIRE_OR(p->age_ns >= before - p->open_since_ns && p->age_ns <= after - p->open_since_ns,
               "era %llu is %llu ns old, due %llu..%llu", (unsigned long long)inc->era, (unsigned long long)p->age_ns,
               (unsigned long long)(before - p->open_since_ns), (unsigned long long)(after - p->open_since_ns));
}

/* What is computed from the row. */
static inline uint64_t phase_number(const SlabPhaseStats* p, const char* key) {
    for (unsigned n = 0; n < TSI_METRICS; n++)
        if (tsi_metrics[n].section == TSI_SECTION_PHASE && strcmp(tsi_metrics[n].key, key) == 0)
            return tsi_metric_value(&tsi_metrics[n], p).u;
    return UINT64_MAX;
}

static inline void check_phase_row(struct world* w, struct side* s, const SlabPhaseStats* p, const struct inc* inc) {
    about(w, "phase", inc->era, inc->label);
    REQUIRE_EQ(p->version, SLAB_STATS_VERSION);
    REQUIRE_EQ(p->epoch_id, inc->id);
    REQUIRE_OR(memcmp(p->label, inc->label, 32) == 0, "phase label '%.31s', due '%s'", p->label, inc->label);
    REQUIRE_EQ(p->label_id, account_id(s, inc->account));
    REQUIRE_EQ(p->state == EPOCH_ACTIVE, inc->state == INC_ACTIVE);
    bool over = inc->state != INC_ACTIVE;
    REQUIRE_EQ(phase_number(p, "draining_age_ns"), over ? p->age_ns : 0);
    REQUIRE_EQ(phase_number(p, "draining_bytes"), over ? p->committed_bytes : 0);
    REQUIRE_EQ(p->refcount, inc->refcount + inc->scopes);
    REQUIRE_LE(p->threads, __builtin_popcountll(inc->users));
    REQUIRE_EQ(p->objects_allocated, inc->objects.allocated);
    REQUIRE_EQ(p->bytes_allocated, inc->bytes.allocated);
    REQUIRE_EQ(p->live_objects, inc->objects.live);
    REQUIRE_EQ(p->live_bytes, inc->bytes.live);
    REQUIRE_LE(p->live_bytes, p->committed_bytes);
    REQUIRE_LE(p->committed_bytes, p->peak_bytes);
    REQUIRE_LE(inc->most_live, p->peak_bytes);
    if (s->options.max_bytes) REQUIRE_LE(p->peak_bytes, s->options.max_bytes);
    REQUIRE_LE(p->empty_slabs, p->slabs);
    REQUIRE_EQ(p->slabs == 0, p->committed_bytes == 0);
    REQUIRE_OR(p->live_objects == 0 || p->slabs > p->empty_slabs, "objects live in no slab");
    REQUIRE_OR(inc->state < INC_CLOSED || p->empty_slabs == 0, "era %llu was closed and holds %llu empty slabs",
               (unsigned long long)inc->era, (unsigned long long)p->empty_slabs);
    REQUIRE_OR(s->options.purge_policy != SLAB_PURGE_NEVER || p->purged_bytes == 0, "purged %llu bytes, policy never",
               (unsigned long long)p->purged_bytes);
    REQUIRE_EQ(p->budget_soft_bytes, inc->limit.soft);
    REQUIRE_EQ(p->budget_hard_bytes, inc->limit.hard);
    check_limit(&inc->limit, p->committed_bytes, "committed_bytes of a phase under a budget");
    check_rss_of(inc, p->rss_before_close, p->rss_after_close);
}

static inline const SlabPhaseStats* phase_row(const TsiReport* r, uint64_t era) {
    uint32_t low = 0, high = r->phase_count;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (r->phases[mid].epoch_era < era) low = mid + 1;
        else high = mid;
    }
    return low < r->phase_count && r->phases[low].epoch_era == era ? &r->phases[low] : NULL;
}

static inline const TsiEpochRow* epoch_row(const TsiReport* r, uint64_t era) {
    for (uint32_t n = 0; n < r->epoch_rows; n++)
        if (r->epochs[n].epoch_era == era) return &r->epochs[n];
    return NULL;
}

/* The row of the JSON document for the same incarnation. A ring id keeps its row when nothing is left. */
static inline void check_epoch_row(struct side* s, const TsiEpochRow* e, const struct inc* inc,
                                   const SlabPhaseStats* p) {
    REQUIRE_EQ(e->epoch_id, inc->id);
    REQUIRE_EQ(e->state == EPOCH_ACTIVE, inc->state == INC_ACTIVE);
    REQUIRE_EQ(e->refcount, inc->refcount + inc->scopes);
    REQUIRE_EQ(e->label_id, account_id(s, inc->account));
    REQUIRE_EQ(e->alloc_count, inc->objects.live);
    REQUIRE_OR(memcmp(e->label, inc->label, 32) == 0, "row label '%.31s', due '%s'", e->label, inc->label);
    REQUIRE_EQ(e->total_reclaimable_slabs, e->reclaimable_slab_count);
    REQUIRE_EQ(e->total_partial_slabs + e->total_full_slabs + e->reclaimable_slab_count, p ? p->slabs : 0);
    REQUIRE_EQ(e->reclaimable_slab_count, p ? p->empty_slabs : 0);
    REQUIRE_EQ(e->estimated_rss_bytes, p ? p->committed_bytes : 0);
    if (p) REQUIRE_EQ(e->open_since_ns, p->open_since_ns);
    if (p) REQUIRE_EQ(e->madvise_bytes, p->purged_bytes);
    check_rss_of(inc, e->rss_before_close, e->rss_after_close);
    double delta = ((double)e->rss_before_close - (double)e->rss_after_close) / (1 << 20);
    REQUIRE_OR(e->rss_delta_mb == delta, "rss_delta_mb is %g, due %g", e->rss_delta_mb, delta);
    REQUIRE_OR(e->age_sec >= 0 && e->age_sec < 86400, "age_sec is %g", e->age_sec);
}

static inline void check_phase_rows(struct world* w, struct side* s, const TsiReport* r, struct sums* sum,
                                    uint64_t before, uint64_t after) {
    uint32_t rows = 0, epochs = 0;
    for (size_t i = 0; i < s->n_incs; i++) {
        const struct inc* inc = s->incs[i];
        bool used = inc->objects.allocated > 0, open = inc->state == INC_ACTIVE;
        const SlabPhaseStats* p = phase_row(r, inc->era);
        const TsiEpochRow* e = epoch_row(r, inc->era);
        REQUIRE_OR(p || !(used && (open || inc->objects.live)), "era %llu (state %d, %llu live) has no phase row",
                   (unsigned long long)inc->era, inc->state, (unsigned long long)inc->objects.live);
        REQUIRE_OR(!p || (used && (open || inc->objects.live || inc->state == INC_ADVANCED)),
                   "era %llu (state %d, %llu objects so far) has a phase row", (unsigned long long)inc->era, inc->state,
                   (unsigned long long)inc->objects.allocated);
        bool has = used && ((inc->ring && inc->named) || (p && p->slabs));
        REQUIRE_OR(has == (e != NULL), "era %llu (state %d, named %d) has %s epoch row", (unsigned long long)inc->era,
                   inc->state, inc->named, e ? "an" : "no");
        about(w, "epoch", inc->era, inc->label);
        if (e) check_epoch_row(s, e, inc, p), epochs++;
        if (!p) continue;
        check_phase_row(w, s, p, inc);
        check_phase_times(s, p, inc, before, after);
        sum->phase_slabs += p->slabs, sum->phase_bytes += p->committed_bytes, sum->purged += p->purged_bytes;
        rows++;
    }
    REQUIRE_EQ(rows, r->phase_count);
    REQUIRE_EQ(epochs, r->epoch_rows);
    for (uint32_t n = 1; n < r->phase_count; n++)
        REQUIRE_OR(r->phases[n - 1].epoch_era < r->phases[n].epoch_era, "phases are not sorted by era");
    for (uint32_t n = 1; n < r->epoch_rows; n++)
        REQUIRE_OR(r->epochs[n - 1].epoch_era < r->epochs[n].epoch_era, "epochs are not sorted by era");
}

/* ---- the whole -------------------------------------------------------------------------- */

static inline void check_document(struct side* s, const TsiReport* r) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    REQUIRE_EQ(r->pid, getpid());
    REQUIRE_EQ(r->page_size, slab_page_size());
    REQUIRE_EQ(r->epoch_count, s->ring_size);
    REQUIRE_EQ(r->max_labels, s->max_labels);
    REQUIRE_LE(r->uptime_ns, slab_now_ns() - s->created_ns + 1000000000u);
    REQUIRE_OR(llabs((long long)(r->timestamp_ns / 1000000000u) - (long long)t.tv_sec) < 86400, "timestamp_ns is %llu",
               (unsigned long long)r->timestamp_ns);
}

static inline void check_phase_counts(struct side* s, const SlabGlobalStats* g) {
    uint64_t open = 0, draining_least = 0, draining_most = 0, active_ids = 0;
    for (size_t i = 0; i < s->n_incs; i++) {
        const struct inc* inc = s->incs[i];
        open += inc->state == INC_ACTIVE;
        draining_least += inc->state != INC_ACTIVE && inc->objects.live > 0;
        draining_most += inc->state == INC_ADVANCED || (inc->state != INC_ACTIVE && inc->objects.live > 0);
    }
    for (uint32_t id = 0; id < s->ring_size; id++) active_ids += s->ring[id]->state == INC_ACTIVE;
    REQUIRE_EQ(g->open_phases, open);
    REQUIRE_OR(g->draining_phases >= draining_least && g->draining_phases <= draining_most,
               "draining_phases %llu, due %llu..%llu", (unsigned long long)g->draining_phases,
               (unsigned long long)draining_least, (unsigned long long)draining_most);
    REQUIRE_EQ(g->active_epoch_count, active_ids);
    REQUIRE_EQ(g->closing_epoch_count, s->ring_size - active_ids);
}

static inline void check_global(struct side* s, const SlabGlobalStats* g) {
    REQUIRE_EQ(g->version, SLAB_STATS_VERSION);
    REQUIRE_EQ(g->live_objects, s->n_objs);
    REQUIRE_EQ(g->live_bytes, s->live_bytes);
    REQUIRE_EQ(g->current_epoch, s->current);
    REQUIRE_EQ(epoch_current(s->a), s->current);
    REQUIRE_LE(g->live_bytes, g->committed_bytes);
    if (s->options.max_bytes) REQUIRE_LE(g->committed_bytes, s->options.max_bytes);
    check_phase_counts(s, g);
}

/* The document's sums are those of its labels. */
static inline void check_document_sums(const TsiReport* r) {
    SlabLabelStats sum = {.version = 0};
    for (uint32_t n = 0; n < r->label_count; n++) {
        const SlabLabelStats* l = &r->labels[n];
        sum.objects_allocated += l->objects_allocated, sum.bytes_allocated += l->bytes_allocated;
        sum.objects_freed += l->objects_freed, sum.objects_released += l->objects_released;
        sum.objects_escaped += l->objects_escaped;
        sum.phases_opened += l->phases_opened, sum.phases_ended += l->phases_ended;
        sum.draining_objects += l->draining_objects, sum.draining_bytes += l->draining_bytes;
    }
    REQUIRE_EQ(r->objects_allocated, sum.objects_allocated);
    REQUIRE_EQ(r->bytes_allocated, sum.bytes_allocated);
    REQUIRE_EQ(r->objects_freed, sum.objects_freed);
    REQUIRE_EQ(r->objects_released, sum.objects_released);
    REQUIRE_EQ(r->objects_escaped, sum.objects_escaped);
    REQUIRE_EQ(r->phases_opened, sum.phases_opened);
    REQUIRE_EQ(r->phases_ended, sum.phases_ended);
    REQUIRE_EQ(r->draining_objects, sum.draining_objects);
    REQUIRE_EQ(r->draining_bytes, sum.draining_bytes);
}

/* Written pages of tables are resident. A slab counts all pages with its counts of handles at its first handle, so those
 * that still have none are left out. Not asked where pages are pretended (tests/platforms/pages.c): the kernel counts by its own. */
static inline void check_metadata(struct side* s, const SlabGlobalStats* g) {
    const char* pretended = getenv("TSLAB_TEST_PAGE");
    if (pretended != NULL && strcmp(pretended, "4096") != 0) return;
    TsiSpace* space = &tsi_arena(s->a)->space;
    uint64_t unwritten = 0;
    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&space->chunk_high); chunk++)
        for (unsigned n = 0; n < 2; n++)
            for (uint64_t m = tsi_load_relaxed(&space->chunks[chunk].counts_pages[n]); m != 0; m &= m - 1) {
                const uint64_t* page = (const uint64_t*)(const void*)(space->counts + ((size_t)chunk << TSI_COUNTS_SHIFT)) +
                                       (n * 64 + tsi_ctz64(m)) * (slab_page_size() / sizeof *page);
                size_t word = 0;
                while (word < slab_page_size() / sizeof *page && page[word] == 0) word++;
                if (word == slab_page_size() / sizeof *page) unwritten += slab_page_size();
            }
    REQUIRE_LE(g->metadata_bytes, g->rss_bytes_current + unwritten);
}

static inline void check_global_sums(struct side* s, const TsiReport* r, const struct sums* sum) {
    const SlabGlobalStats* g = &r->global;
    check_document_sums(r);
    uint64_t freed = 0, reserve = (uint64_t)64 << 30;
    for (unsigned k = 0; k < s->n_accounts; k++) freed += s->accounts[k].objects.freed;
    while (reserve > g->reserved_bytes) reserve /= 2;
    REQUIRE_EQ(g->reserved_bytes, reserve);
    REQUIRE_EQ(g->total_slabs_allocated, sum->taken);
    REQUIRE_EQ(g->total_slabs_recycled, sum->recycled);
    REQUIRE_EQ(g->net_slabs, sum->net);
    REQUIRE_EQ(g->net_slabs, sum->phase_slabs + sum->warm_slabs);
    REQUIRE_EQ(g->committed_bytes, sum->committed + g->warm_stock_bytes);
    uint64_t warm = g->committed_bytes - sum->phase_bytes;
    REQUIRE_LE(sum->phase_bytes + sum->warm_bytes, g->committed_bytes);
    REQUIRE_EQ(warm, g->warm_bytes);
    check_region_bytes(warm - g->warm_stock_bytes - sum->warm_bytes, sum->warm_regions, "bytes of warm regions");
    check_warm(s, g);
    REQUIRE_EQ(g->limit_used_bytes, g->committed_bytes - g->warm_bytes);
    REQUIRE_LE(g->limit_bytes, s->options.max_bytes ? s->options.max_bytes : g->reserved_bytes);
    REQUIRE_EQ(g->estimated_slab_rss_bytes, g->committed_bytes);
    REQUIRE_EQ(g->total_slow_path_hits, sum->hits);
    REQUIRE_EQ(g->total_slow_cache_miss, sum->miss);
    REQUIRE_EQ(g->total_slow_epoch_closed, sum->closed);
    REQUIRE_LE(sum->closed, r->refusals.closed_epoch);
    REQUIRE_EQ(g->total_cache_overflows, sum->overflowed);
    REQUIRE_EQ(g->total_madvise_calls, sum->madvise_calls);
    REQUIRE_EQ(g->total_madvise_bytes, sum->madvise_bytes);
    if (s->options.purge_policy == SLAB_PURGE_NEVER) REQUIRE_EQ(g->total_madvise_calls, 0);
    REQUIRE_LE(sum->purged, g->total_madvise_bytes);
    REQUIRE_EQ(g->total_bitmap_free_attempts, sum->tries);
    REQUIRE_LE(sum->tries, freed); /* nobody gets in the way: one attempt each */
    REQUIRE_OR(g->metadata_bytes > 0 && g->metadata_bytes % slab_page_size() == 0, "metadata_bytes is %llu",
               (unsigned long long)g->metadata_bytes);
    check_metadata(s, g);
}

#endif
