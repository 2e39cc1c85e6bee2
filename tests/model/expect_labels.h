/*
 * expect_labels.h - rows of labels, samples, and the reports that explain, compared with the reference.
 *
 * What the library keeps back of a label's committed bytes, up to 64 KiB a thread where there is no budget, is the
 * only slack that its peak has. Refusals are attributed where the pointer leads to a slab or the epoch is known.
 */
#ifndef MODEL_EXPECT_LABELS_H
#define MODEL_EXPECT_LABELS_H

#include "expect_report.h"
#include "slab_diagnostics.h"
#include "stats/report.h"

enum { PENDING_BYTES = 64 << 10 };

/* ---- labels ----------------------------------------------------------------------------- */

static inline void check_label_balance(const SlabLabelStats* l, const struct account* a) {
    REQUIRE_EQ(l->objects_allocated, a->objects.allocated);
    REQUIRE_EQ(l->bytes_allocated, a->bytes.allocated);
    REQUIRE_EQ(l->objects_freed, a->objects.freed);
    REQUIRE_EQ(l->bytes_freed, a->bytes.freed);
    REQUIRE_EQ(l->objects_released, a->objects.released);
    REQUIRE_EQ(l->bytes_released, a->bytes.released);
    REQUIRE_EQ(l->objects_escaped, a->objects_escaped);
    REQUIRE_EQ(l->bytes_escaped, a->bytes_escaped);
    REQUIRE_EQ(l->live_objects, a->objects.live);
    REQUIRE_EQ(l->live_bytes, a->bytes.live);
}

static inline uint64_t histogram_sum(const uint64_t h[SLAB_HISTOGRAM_BUCKETS]) {
    uint64_t n = 0;
    for (unsigned b = 0; b < SLAB_HISTOGRAM_BUCKETS; b++) n += h[b];
    return n;
}

static inline void check_label_ends(const SlabLabelStats* l, const struct account* a) {
    REQUIRE_LE(a->closed_least, l->closed_slabs);
    REQUIRE_LE(a->pinned_least, l->pinned_slabs);
    REQUIRE_LE(l->pinned_slabs, l->closed_slabs);
    double due = l->closed_slabs ? 1.0 - (double)l->pinned_slabs / (double)l->closed_slabs : 1.0;
    REQUIRE_OR(l->drainability == due, "drainability is %g, due %g", l->drainability, due);
    REQUIRE_EQ(histogram_sum(l->duration_ns), a->ended_timed);
    REQUIRE_EQ(histogram_sum(l->peak_bytes_hist), a->ended_held);
    size_t least = slab_page_size() == 4096 ? 2048 : slab_page_size(); /* bytes of the smallest region */
    for (unsigned b = 0; 2u << b <= least; b++) REQUIRE_EQ(l->peak_bytes_hist[b], 0);
}

static inline void check_label_limits(struct world* w, struct side* s, const SlabLabelStats* l,
                                      const struct account* a) {
    REQUIRE_EQ(l->budget_soft_bytes, a->limit.soft);
    REQUIRE_EQ(l->budget_hard_bytes, a->limit.hard);
    check_limit(&a->limit, l->committed_bytes, "committed_bytes of a label under a budget");
    REQUIRE_OR(a->muted ? l->budget_warnings >= a->limit.told_soft : l->budget_warnings == a->limit.told_soft,
               "budget_warnings is %llu, told of %llu", (unsigned long long)l->budget_warnings,
               (unsigned long long)a->limit.told_soft);
    REQUIRE_EQ(l->budget_refusals, a->over);
    REQUIRE_LE(a->limit.hard != 0, l->limit_bytes != 0);
    REQUIRE_LE(l->live_bytes, l->committed_bytes);
    REQUIRE_LE(l->committed_bytes, l->peak_bytes);
    REQUIRE_LE(a->most_live, l->peak_bytes + (uint64_t)PENDING_BYTES * (unsigned)w->threads);
    if (s->options.max_bytes && a->opened_most == a->ended + a->open && !w->strangers)
        REQUIRE_LE(l->peak_bytes, s->options.max_bytes + (uint64_t)PENDING_BYTES * (unsigned)w->threads);
}

/* What phases say, added up by label. */
struct by_label {
    uint64_t draining, committed, open_objects, open_bytes;
    uint64_t drain_objects, drain_bytes, oldest,
        worst; /* of those that drain; worst: bytes of the one that holds most */
};

/* What a label tells of ended phases is the sum of the phases that have ended and hold objects. */
static inline void check_label_drains(const SlabLabelStats* l, const struct by_label* phases) {
    uint64_t counted = 0, objects = 0;
    REQUIRE_EQ(l->phases_draining, phases->draining);
    REQUIRE_EQ(l->draining_phases, phases->draining);
    REQUIRE_EQ(l->draining_objects, phases->drain_objects);
    REQUIRE_EQ(l->draining_bytes, phases->drain_bytes);
    REQUIRE_EQ(l->oldest_draining_ns, phases->oldest);
    /* Nothing was said of any label: each escape is unexpected. */
    REQUIRE_EQ(l->expected_objects + l->expected_bytes, 0);
    REQUIRE_EQ(l->unexpected_draining_phases, phases->draining);
    REQUIRE_EQ(l->unexpected_draining_objects, phases->drain_objects);
    REQUIRE_EQ(l->unexpected_draining_bytes, phases->drain_bytes);
    REQUIRE_EQ(l->oldest_unexpected_ns, phases->oldest);
    REQUIRE_LE(l->unexpected_phases, l->objects_escaped);
    for (unsigned b = 0; b < SLAB_HISTOGRAM_BUCKETS; b++) counted += l->draining_age_ns[b];
    REQUIRE_EQ(counted, phases->draining);
    REQUIRE_EQ(l->worst_bytes[0], phases->worst);
    for (unsigned n = 0; n < 3; n++) {
        REQUIRE_EQ(l->worst_eras[n] != 0, n < phases->draining);
        if (n != 0) REQUIRE_LE(l->worst_bytes[n], l->worst_bytes[n - 1]);
        objects += l->worst_objects[n];
    }
    REQUIRE_LE(objects, l->draining_objects);
}

static inline void check_label_row(struct world* w, struct side* s, const SlabLabelStats* l, unsigned k,
                                   const struct by_label* phases) {
    const struct account* a = &s->accounts[k];
    about(w, "label", account_id(s, k), a->name);
    REQUIRE_EQ(l->version, SLAB_STATS_VERSION);
    REQUIRE_EQ(l->label_id, account_id(s, k));
    REQUIRE_OR(memcmp(l->label, a->name, 32) == 0, "label '%.31s', due '%s'", l->label, a->name);
    REQUIRE_EQ(l->phases_open, a->open);
    REQUIRE_EQ(l->phases_ended, a->ended);
    check_label_drains(l, phases);
    REQUIRE_OR(l->phases_opened >= a->open + a->ended && l->phases_opened <= a->opened_most,
               "phases_opened is %llu, due %llu..%llu", (unsigned long long)l->phases_opened,
               (unsigned long long)(a->open + a->ended), (unsigned long long)a->opened_most);
    REQUIRE_EQ(l->swallowed, a->swallowed);
    REQUIRE_EQ(l->committed_bytes, phases->committed);
    REQUIRE_EQ(l->open_objects, phases->open_objects);
    REQUIRE_EQ(l->open_bytes, phases->open_bytes);
    check_label_balance(l, a);
    check_label_ends(l, a);
    check_label_limits(w, s, l, a);
}

static inline void check_label_rows(struct world* w, struct side* s, const TsiReport* r, const struct sums* sum) {
    struct by_label phases[MOST_LABELS] = {{0}};
    const SlabRefusals* f = &r->refusals;
    uint64_t slow = 0, refused = 0, refused_least = 0, looked = 0, outside_objects = 0, outside_bytes = 0;
    ThreadStats sampled = {.alloc_samples = 0};
    REQUIRE_EQ(r->label_count, s->n_accounts);
    for (size_t i = 0; i < s->n_incs; i++) {
        const struct inc* inc = s->incs[i];
        const SlabPhaseStats* p = phase_row(r, inc->era);
        struct by_label* sum_of = &phases[inc->account];
        if (p) sum_of->committed += p->committed_bytes;
        if (inc->state == INC_ACTIVE) sum_of->open_objects += inc->objects.live, sum_of->open_bytes += inc->bytes.live;
        if (p == NULL || inc->state == INC_ACTIVE || inc->objects.live == 0) continue;
        sum_of->draining++;
        sum_of->drain_objects += inc->objects.live;
        sum_of->drain_bytes += p->committed_bytes;
        if (p->age_ns > sum_of->oldest) sum_of->oldest = p->age_ns;
        if (p->committed_bytes > sum_of->worst) sum_of->worst = p->committed_bytes;
    }
    for (unsigned n = 0; n < s->n_accounts; n++) {
        unsigned k = n == 0 ? ACCOUNT_NONE : n + 1 == s->n_accounts ? ACCOUNT_OTHER : n + 1;
        const SlabLabelStats* l = &r->labels[n];
        check_label_row(w, s, l, k, &phases[k]);
        REQUIRE_OR(l->refusals >= s->accounts[k].refused_least, "refusals of a label are %llu, %llu at least",
                   (unsigned long long)l->refusals, (unsigned long long)s->accounts[k].refused_least);
        sampled.alloc_samples += l->alloc_samples, sampled.alloc_wall_ns_sum += l->alloc_wall_ns_sum;
        sampled.alloc_cpu_ns_sum += l->alloc_cpu_ns_sum, sampled.alloc_wait_ns_sum += l->alloc_wait_ns_sum;
        slow += l->slow_path_hits, looked += l->closed_slabs;
        refused += l->refusals, refused_least += s->accounts[k].refused_least;
        outside_objects += l->outside_objects, outside_bytes += l->outside_bytes;
    }
    REQUIRE_LE(s->outside_least.objects, outside_objects);
    REQUIRE_LE(outside_objects, s->outside_most.objects);
    REQUIRE_LE(s->outside_least.bytes, outside_bytes);
    REQUIRE_LE(outside_bytes, s->outside_most.bytes);
    REQUIRE_EQ(slow, sum->hits - sum->closed);
    REQUIRE_EQ(looked, sum->looked);
    REQUIRE_EQ(sampled.alloc_samples, r->sampling.sum.alloc_samples);
    REQUIRE_EQ(sampled.alloc_wall_ns_sum, r->sampling.sum.alloc_wall_ns_sum);
    REQUIRE_EQ(sampled.alloc_cpu_ns_sum, r->sampling.sum.alloc_cpu_ns_sum);
    REQUIRE_EQ(sampled.alloc_wait_ns_sum, r->sampling.sum.alloc_wait_ns_sum);
    uint64_t attributable = f->double_free + f->stale_free + f->interior_pointer + f->size_mismatch + f->closed_epoch;
    REQUIRE_LE(refused, attributable);
    REQUIRE_LE(refused_least, refused);
}

/* ---- samples ---------------------------------------------------------------------------- */

static inline uint64_t latency_sum(const uint64_t h[SLAB_LATENCY_BUCKETS]) {
    uint64_t n = 0;
    for (unsigned b = 0; b < SLAB_LATENCY_BUCKETS; b++) n += h[b];
    return n;
}

static inline void check_samples(struct side* s, const SlabSamplingStats* m) {
    static const SlabSamplingStats none;
    const ThreadStats* t = &m->sum;
    if (s->options.sampling_period == 0) {
        REQUIRE_OR(memcmp(m, &none, sizeof none) == 0, "samples although sampling is off");
        return;
    }
    REQUIRE_EQ(m->version, SLAB_STATS_VERSION);
    REQUIRE_EQ(m->period, s->options.sampling_period);
    REQUIRE_EQ(latency_sum(m->alloc_wall_ns), t->alloc_samples);
    REQUIRE_LE(t->alloc_wall_ns_max, t->alloc_wall_ns_sum);
    REQUIRE_LE(t->alloc_cpu_ns_max, t->alloc_cpu_ns_sum);
    REQUIRE_LE(t->alloc_wait_ns_max, t->alloc_wait_ns_sum);
    REQUIRE_LE(t->alloc_cpu_ns_sum + t->alloc_wait_ns_sum, t->alloc_wall_ns_sum);
    REQUIRE_EQ(latency_sum(m->lock_wait_ns), m->lock_samples);
    REQUIRE_EQ(latency_sum(m->lock_hold_ns), m->lock_samples);
    REQUIRE_LE(m->lock_wait_ns_max, m->lock_wait_ns_sum);
    REQUIRE_LE(m->lock_hold_ns_max, m->lock_hold_ns_sum);
    ThreadStats repairs = *t; /* nothing is ever found wrong */
    memset(&repairs, 0, offsetof(ThreadStats, repair_count));
    REQUIRE_OR(memcmp(&repairs, &none.sum, sizeof repairs) == 0, "%llu repairs", (unsigned long long)t->repair_count);
    uint64_t allocated = 0;
    for (unsigned k = 0; k < s->n_accounts; k++) allocated += s->accounts[k].objects.allocated;
    REQUIRE_LE(t->alloc_samples + m->dropped,
               allocated + s->seen[CAUSE_BUDGET] + s->seen[CAUSE_NO_MEMORY] + s->seen[SLAB_MISUSE_CLOSED_EPOCH]);
}

static inline void add_samples(ThreadStats* to, const ThreadStats* more) {
    to->alloc_samples += more->alloc_samples;
    to->alloc_wall_ns_sum += more->alloc_wall_ns_sum;
    to->alloc_cpu_ns_sum += more->alloc_cpu_ns_sum;
    to->alloc_wait_ns_sum += more->alloc_wait_ns_sum;
    if (more->alloc_wall_ns_max > to->alloc_wall_ns_max) to->alloc_wall_ns_max = more->alloc_wall_ns_max;
    if (more->alloc_cpu_ns_max > to->alloc_cpu_ns_max) to->alloc_cpu_ns_max = more->alloc_cpu_ns_max;
    if (more->alloc_wait_ns_max > to->alloc_wait_ns_max) to->alloc_wait_ns_max = more->alloc_wait_ns_max;
}

/* What the threads say of themselves is what the allocators say together. */
static inline void check_threads(struct world* w) {
    ThreadStats threads = w->sampled_gone, sides = {.alloc_samples = 0};
    w->actor->sampled = slab_stats_thread();
    for (int i = 0; i < w->threads; i++)
        if (w->actors[i].alive) add_samples(&threads, &w->actors[i].sampled);
    for (int i = 0; i < SIDES; i++) {
        SlabSamplingStats m;
        slab_stats_sampling(w->side[i].a, &m);
        add_samples(&sides, &m.sum);
    }
    if (w->strangers) return;
    REQUIRE_OR(memcmp(&threads, &sides, sizeof sides) == 0, "the threads have %llu samples, the allocators %llu",
               (unsigned long long)threads.alloc_samples, (unsigned long long)sides.alloc_samples);
}

/* ---- reports that explain --------------------------------------------------------------- */

struct walk {
    struct world* w;
    struct side* s;
    const struct inc* inc;
    uint64_t number;
};

static inline bool walk_meets(const SlabLiveObject* o, void* ctx) {
    struct walk* k = ctx;
    struct obj* known = obj_covering(k->s, o->address);
    REQUIRE_OR(known && known->p == o->address && known->inc == k->inc && known->walk != k->number,
               "a walk over era %llu met %p", (unsigned long long)k->inc->era, o->address);
    REQUIRE_OR(o->usable_bytes == known->reach && o->class_index == class_of(known),
               "a walk met %p with %zu bytes of class %u, %zu are usable", o->address, o->usable_bytes, o->class_index,
               known->reach);
    known->walk = k->number;
    return true;
}

static inline void check_walk(struct world* w, struct side* s, const struct inc* inc) {
    struct walk k = {w, s, inc, ++s->walks};
    uint64_t met = inc->named && s->walks % 2 ? slab_epoch_walk(s->a, inc->id, walk_meets, &k)
                                              : slab_epoch_walk_era(s->a, inc->era, walk_meets, &k);
    REQUIRE_EQ(met, inc->objects.live);
}

static inline void check_leaks(struct side* s, const TsiReport* r) {
    EpochLeakReport leaks;
    uint64_t due = 0, found = 0;
    for (size_t i = 0; i < s->n_incs; i++) due += s->incs[i]->state == INC_ACTIVE ? 0 : s->incs[i]->objects.live;
    uint32_t n = slab_detect_epoch_leaks(s->a, 0, UINT32_MAX, &leaks);
    REQUIRE_OR(n == leaks.candidate_count && n == leaks.top_count, "%u leaks, %u rows", n, leaks.top_count);
    for (uint32_t i = 0; i < n; i++) {
        const EpochLeakCandidate* c = &leaks.candidates[i];
        const struct inc* inc = inc_by_era(s, c->epoch_era);
        const SlabPhaseStats* p = phase_row(r, c->epoch_era);
        uint64_t live = 0;
        REQUIRE_OR(inc && p && inc->state != INC_ACTIVE, "era %llu leaks", (unsigned long long)c->epoch_era);
        for (size_t k = 0; k < s->n_objs; k++) live += s->objs[k]->inc == inc && class_of(s->objs[k]) == c->class_index;
        REQUIRE_EQ(c->alloc_count, live);
        REQUIRE_EQ(c->object_size, class_size(c->class_index));
        REQUIRE_EQ(c->epoch_id, inc->id);
        REQUIRE_OR(memcmp(c->label, inc->label, 32) == 0, "label of a leak '%.31s', due '%s'", c->label, inc->label);
        REQUIRE_LE(c->estimated_rss_bytes, p->committed_bytes);
        REQUIRE_LE(c->partial_slab_count + c->full_slab_count + c->reclaimable_slab_count, p->slabs);
        REQUIRE_OR(i == 0 || c[-1].estimated_rss_bytes >= c->estimated_rss_bytes, "leaks are not sorted by bytes");
        found += c->alloc_count;
    }
    REQUIRE_EQ(found, due);
    free(leaks.candidates);
}

static inline void check_slow_path(struct side* s, const TsiReport* r) {
    SlowPathReport slow;
    uint64_t hits = 0;
    slab_analyze_slow_path(s->a, &slow);
    for (uint32_t i = 0; i < slow.class_count; i++) {
        const SlowPathAttribution* c = &slow.classes[i];
        const SlabClassStats* k = &r->classes[c->class_index];
        REQUIRE_EQ(c->object_size, k->object_size);
        REQUIRE_EQ(c->total_slow_path_hits, k->slow_path_hits);
        REQUIRE_EQ(c->cache_miss_count, k->slow_path_cache_miss);
        REQUIRE_EQ(c->epoch_closed_count, k->slow_path_epoch_closed);
        REQUIRE_EQ(c->partial_null_count, k->current_partial_null);
        REQUIRE_EQ(c->partial_full_count, k->current_partial_full);
        double all = c->cache_miss_pct + c->epoch_closed_pct + c->partial_null_pct + c->partial_full_pct;
        REQUIRE_OR(all > 99.999 && all < 100.001, "the causes of slow paths add up to %g %%", all);
        hits += c->total_slow_path_hits;
    }
    REQUIRE_EQ(hits, r->global.total_slow_path_hits);
    free(slow.classes);
}

static inline void check_reclamation(struct side* s, const TsiReport* r) {
    ReclamationReport back;
    slab_analyze_reclamation(s->a, &back);
    REQUIRE_EQ(back.total_madvise_calls, r->global.total_madvise_calls);
    REQUIRE_EQ(back.total_madvise_bytes, r->global.total_madvise_bytes);
    for (uint32_t i = 0; i < back.epoch_count; i++) {
        const EpochReclamation* e = &back.epochs[i];
        const struct inc* inc = inc_by_era(s, e->epoch_era);
        REQUIRE_OR(e->was_closed && e->rss_delta == (int64_t)(e->rss_before - e->rss_after), "a row of a close");
        REQUIRE_OR(!inc || inc->asked, "era %llu was not closed", (unsigned long long)e->epoch_era);
    }
    free(back.epochs);
}

/* ---- all of it -------------------------------------------------------------------------- */

/* The public calls say what the report says. */
static inline void check_public(struct side* s, const TsiReport* r) {
    SlabGlobalStats g;
    SlabRefusals f;
    SlabLabelStats* labels = must_alloc(MOST_LABELS * sizeof *labels);
    slab_stats_global(s->a, &g);
    g.rss_bytes_current = r->global.rss_bytes_current;
    g.metadata_bytes = r->global.metadata_bytes; /* the report may have touched some itself */
    /* These are of the reading. */
    g.limit_ns = r->global.limit_ns, g.growth_bytes = r->global.growth_bytes, g.growth_ns = r->global.growth_ns;
    g.growth_per_second = r->global.growth_per_second;
    g.pace_10s_ns = r->global.pace_10s_ns, g.pace_100s_ns = r->global.pace_100s_ns;
    g.live_pace_10s = r->global.live_pace_10s, g.live_pace_100s = r->global.live_pace_100s;
    g.live_pace_ever = r->global.live_pace_ever, g.committed_pace_10s = r->global.committed_pace_10s;
    g.committed_pace_100s = r->global.committed_pace_100s, g.committed_pace_ever = r->global.committed_pace_ever;
    REQUIRE_OR(memcmp(&g, &r->global, sizeof g) == 0, "slab_stats_global and the report differ");
    slab_stats_refusals(s->a, &f);
    REQUIRE_OR(memcmp(&f, &r->refusals, sizeof f) == 0, "slab_stats_refusals and the report differ");
    for (unsigned c = 0; c <= r->class_count; c++) {
        SlabClassStats k;
        PerfCounters p;
        slab_stats_class(s->a, c, &k);
        get_perf_counters(s->a, c, &p);
        REQUIRE_OR((k.version == 0) == (c == r->class_count), "class %u has version %u", c, k.version);
        if (c == r->class_count) break;
        REQUIRE_OR(memcmp(&k, &r->classes[c], sizeof k) == 0, "slab_stats_class and the report differ in class %u", c);
        REQUIRE_OR(memcmp(&p, &k.slow_path_hits, sizeof p) == 0, "get_perf_counters and the report differ");
    }
    REQUIRE_EQ(slab_stats_labels(s->a, labels, MOST_LABELS), r->label_count);
    for (uint32_t n = 0; n < r->label_count; n++) { /* time has passed */
        const SlabLabelStats* told = &r->labels[n];
        labels[n].oldest_draining_ns = told->oldest_draining_ns;
        labels[n].oldest_unexpected_ns = told->oldest_unexpected_ns;
        memcpy(labels[n].draining_age_ns, told->draining_age_ns, sizeof told->draining_age_ns);
        memcpy(labels[n].worst_ages_ns, told->worst_ages_ns, sizeof told->worst_ages_ns);
        labels[n].growth_bytes = told->growth_bytes, labels[n].growth_ns = told->growth_ns;
        labels[n].growth_per_second = told->growth_per_second;
        labels[n].limit_bytes = told->limit_bytes, labels[n].limit_used_bytes = told->limit_used_bytes;
        labels[n].limit_ns = told->limit_ns;
        labels[n].live_pace_10s = told->live_pace_10s, labels[n].live_pace_100s = told->live_pace_100s;
        labels[n].live_pace_ever = told->live_pace_ever, labels[n].committed_pace_10s = told->committed_pace_10s;
        labels[n].committed_pace_100s = told->committed_pace_100s;
        labels[n].committed_pace_ever = told->committed_pace_ever;
    }
    REQUIRE_OR(memcmp(labels, r->labels, r->label_count * sizeof *labels) == 0, "slab_stats_labels differs");
    SlabPhaseStats row;
    REQUIRE_EQ(slab_stats_phases(s->a, &row, 1), r->phase_count);
    if (r->phase_count) REQUIRE_EQ(row.epoch_era, r->phases[0].epoch_era);
    free(labels);
}

static inline void check_report(struct world* w, struct side* s, bool everything) {
    TsiReport r;
    struct sums sum = {.hits = 0};
    uint64_t before = slab_now_ns();
    REQUIRE_OR(tsi_report_take(arena_of(s), &r), "no report");
    uint64_t after = slab_now_ns();
    check_document(s, &r);
    check_growth(s, &r);
    check_global(s, &r.global);
    check_class_rows(w, s, &r, &sum);
    check_phase_rows(w, s, &r, &sum, before, after);
    check_global_sums(s, &r, &sum);
    check_label_rows(w, s, &r, &sum);
    check_samples(s, &r.sampling);
    if (everything) {
        check_public(s, &r);
        check_leaks(s, &r);
        check_slow_path(s, &r);
        check_reclamation(s, &r);
        for (size_t i = 0; i < s->n_incs; i += 1 + s->n_incs / 4) check_walk(w, s, s->incs[i]);
    }
    about(w, NULL, 0, NULL);
    tsi_report_drop(&r);
}

static uint64_t stopped_ns;

static uint64_t stopped_clock(void) { return stopped_ns; }

/* The time of what is kept warm stands still meanwhile: else a second that ends between two questions gives memory back,
 * and their answers differ. */
static inline void check_both(struct world* w, bool everything) {
    uint64_t (*ticking)(void) = tsi_os.coarse_ns;
    stopped_ns = ticking();
    tsi_os.coarse_ns = stopped_clock;
    for (int i = 0; i < SIDES; i++) {
        kit_check(w->side[i].a);
        check_report(w, &w->side[i], everything);
    }
    tsi_os.coarse_ns = ticking;
    if (w->side[0].options.sampling_period || w->side[1].options.sampling_period) check_threads(w);
    w->checks++;
}

static inline void check_invariants(struct world* w) { check_both(w, false); }

static inline void check_everything(struct world* w) {
    check_both(w, true);
    for (int i = 0; i < SIDES; i++) {
        struct side* s = &w->side[i];
        for (size_t k = 0; k < s->n_objs; k++) {
            check_contents(s->sorted[k]);
            check_identity(s, s->sorted[k]);
            if (k > 0)
                REQUIRE_OR(s->sorted[k - 1]->p + s->sorted[k - 1]->reach <= s->sorted[k]->p,
                           "objects %p and %p overlap", (void*)s->sorted[k - 1]->p, (void*)s->sorted[k]->p);
        }
        unsigned held = 0;
        for (size_t k = 0; k < s->n_incs; k++) {
            const struct inc* inc = s->incs[(k + w->checks) % s->n_incs];
            if (!inc->named || (!inc->ring && inc->state != INC_ACTIVE)) continue;
            check_named(s, inc);
            if (held < (w->input ? 1 : 4) && (inc->objects.live > 0 || k % 8 == 0)) check_held(s, inc), held++;
        }
        check_refusals(s); /* questions are not misuse */
    }
}

#endif
