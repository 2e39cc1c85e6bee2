/*
 * hostile_epochs.h - epoch, domain and statistics calls with any id, era, mode, label and class, and on domains
 * that were destroyed. Those that hit something real are booked like any other; the rest must change nothing.
 */
#ifndef FUZZ_HOSTILE_EPOCHS_H
#define FUZZ_HOSTILE_EPOCHS_H

#include "hostile_objects.h"
#include "model/ops_lanes.h"

enum { LABEL_MOST = 48 };

/* Bytes of the input, all of 1..255. */
static inline const char* any_label(struct world* w, char out[LABEL_MOST + 1]) {
    size_t n = below(w, LABEL_MOST + 2);
    if (n > LABEL_MOST) return NULL;
    for (size_t i = 0; i < n; i++) out[i] = (char)(1 + below(w, 255));
    out[n] = 0;
    return out;
}

/* A domain that has ended may or may not answer to its id: not asked. */
static inline bool unsure(const struct inc* inc) { return inc && !inc->ring && inc->state == INC_RELEASED; }

/* ---- ids and eras ----------------------------------------------------------------------- */

static inline void judge_close(struct world* w, struct side* s, struct inc* inc, EpochCloseMode mode, bool done,
                               const EpochReceipt* r, uint64_t bytes) {
    REQUIRE_OR(done == (inc != NULL), "close of %s epoch said %d", inc ? "an" : "no", done);
    if (!inc) {
        want_one(s, closed_causes);
        return;
    }
    ended(w, inc, mode);
    if (r) check_receipt(r, inc, mode == EPOCH_RELEASE ? bytes : 0);
}

/* Whether a close of the incarnation is refused: another thread's alone, or kept by a run. Then it has `done` nothing. */
static inline bool is_kept(const struct world* w, const struct inc* inc) {
    return inc && (is_anothers_inc(w, inc) || kept_by_run(w, inc));
}

static inline void hostile_close(struct world* w) {
    struct side* s = any_side(w);
    EpochId id = any_id(w, s);
    struct inc* inc = inc_by_id(s, id);
    volatile unsigned bits = (unsigned)below(w, 256);
    EpochCloseMode mode = (EpochCloseMode)bits;
    bool quiet = chance(w, 20);
    if (unsure(inc)) return;
    note(w, "hostile close s%d %#x mode %u", side_index(w, s), id, (unsigned)mode);
    EpochReceipt r;
    errno = 0;
    if (is_kept(w, inc)) {
        bool closed = epoch_close_ex(s->a, id, mode, quiet ? NULL : &r);
        refused_as_anothers(s, closed, errno);
        return;
    }
    if (inc) asked(inc);
    uint64_t bytes = inc ? ending(inc) : 0;
    bool done = epoch_close_ex(s->a, id, mode, quiet ? NULL : &r);
    judge_close(w, s, inc, mode, done, quiet ? NULL : &r, bytes);
}

static inline void hostile_close_era(struct world* w) {
    struct side* s = any_side(w);
    uint64_t era = chance(w, 70) ? s->max_era + below(w, 256) - 128 : any_number(w);
    struct inc* inc = inc_by_era(s, era);
    if (inc && !inc->named && inc->objects.live == 0) return; /* may be gone or not: op_close_era */
    if (unsure(inc)) return;
    for (uint64_t i = 0; i < s->n_gone && i < GONE_KEPT; i++)
        if (s->gone[i].era == era) return; /* op_close_gone */
    if (!inc && era / 8 < s->eras_known && s->era_used[era / 8] >> era % 8 & 1) return;
    note(w, "hostile close s%d era %llu", side_index(w, s), (unsigned long long)era);
    EpochReceipt r;
    EpochCloseMode mode = any_mode(w);
    errno = 0;
    if (is_kept(w, inc)) {
        bool closed = epoch_close_era(s->a, era, mode, &r);
        refused_as_anothers(s, closed, errno);
        return;
    }
    uint64_t bytes = inc ? ending(inc) : 0;
    if (inc) asked(inc);
    bool done = epoch_close_era(s->a, era, mode, &r);
    judge_close(w, s, inc, mode, done, &r, bytes);
}

static inline void hostile_label(struct world* w) {
    struct side* s = any_side(w);
    char text[LABEL_MOST + 1];
    EpochId id = any_id(w, s);
    struct inc* inc = inc_by_id(s, id);
    const char* label = any_label(w, text);
    if (unsure(inc)) return;
    note(w, "hostile label s%d %#x", side_index(w, s), id);
    slab_epoch_set_label(s->a, id, label);
    if (!inc) {
        want_one(s, closed_causes);
        return;
    }
    book_relabelled(s, inc, label);
    check_named(s, inc);
}

static inline void hostile_counts(struct world* w) {
    struct side* s = any_side(w);
    EpochId id = any_id(w, s);
    struct inc* inc = inc_by_id(s, id);
    if (unsure(inc)) return;
    note(w, "hostile refcount and cleanup s%d %#x", side_index(w, s), id);
    REQUIRE_OR(!slab_epoch_on_end(s->a, id, NULL, w), "a cleanup without a function was taken");
    slab_epoch_dec_refcount(s->a, id);
    slab_epoch_inc_refcount(s->a, id);
    if (inc) {
        inc->refcount += inc->refcount == 0;
        check_named(s, inc);
        return;
    }
    REQUIRE_OR(!slab_epoch_on_end(s->a, id, cleanup_runs, NULL), "a cleanup for no epoch was taken");
    REQUIRE_OR(slab_epoch_get_refcount(s->a, id) == 0 && epoch_era(s->a, id) == 0, "no epoch %#x answers", id);
    REQUIRE_OR(epoch_state(s->a, id) == EPOCH_CLOSING, "no epoch %#x is open", id);
    want(s, closed_causes, 4, 5);
}

/* ---- domains ---------------------------------------------------------------------------- */

static inline void hostile_create(struct world* w) {
    struct side* s = any_side(w);
    char text[LABEL_MOST + 1];
    const char* label = any_label(w, text);
    if (w->n_doms == MAX_DOMAINS) return;
    note(w, "hostile domain s%d", side_index(w, s));
    epoch_domain_t* raw = epoch_domain_create_labeled(s->a, label);
    REQUIRE_OR(raw, "no domain, errno %d", errno);
    struct dom* d = dom_new(w, s, raw, true, label);
    follow(w, d);
    check_dom(w, d);
}

static inline void hostile_wrap(struct world* w) {
    struct side* s = any_side(w);
    EpochId id = any_id(w, s);
    if (inc_by_id(s, id)) return; /* op_domain_wrap */
    note(w, "hostile wrap s%d %#x", side_index(w, s), id);
    errno = 0;
    REQUIRE_OR(!epoch_domain_wrap(s->a, id, chance(w, 50)), "a domain over no epoch");
    REQUIRE_OR(errno == EINVAL || errno == ESTALE, "wrap of no epoch: errno %d", errno);
    want_one(s, closed_causes);
}

/* Whatever is called on a destroyed domain, nothing happens but a refusal. */
static inline void hostile_dead_domain(struct world* w) {
    if (w->n_dead_doms == 0) return;
    unsigned which = (unsigned)below(w, w->n_dead_doms < DEAD_DOMAINS ? w->n_dead_doms : DEAD_DOMAINS);
    epoch_domain_t* raw = w->dead_doms[which].d;
    for (unsigned i = 0; i < w->n_doms; i++)
        if (w->doms[i]->d == raw) return; /* the record serves again */
    EpochReceipt r;
    SlabLane lane;
    SlabRun run;
    note(w, "hostile use of the dead domain %p", (void*)raw);
    bool done = false;
    unsigned how = (unsigned)below(w, 12);
    switch (how) {
    case 0:
        epoch_domain_enter(raw);
        break;
    case 1:
        epoch_domain_exit(raw);
        break;
    case 2:
        epoch_domain_destroy(raw);
        break;
    case 3:
        epoch_domain_force_close(raw);
        break;
    case 4:
        epoch_domain_end(raw);
        break;
    case 5:
        done = epoch_domain_malloc(raw, 1 + below(w, 256)) != NULL;
        break;
    case 6:
        done = epoch_domain_receipt(raw, &r);
        break;
    case 7:
        done = epoch_domain_reset(raw);
        break;
    case 8:
        done = epoch_domain_detach(raw);
        break;
    case 10:
        done = slab_run_begin(&run, raw) || run.domain;
        break;
    case 11:
        done = slab_lane_open(&lane, raw) || lane.domain;
        break;
    default:
        done = epoch_domain_attach(raw);
        break;
    }
    REQUIRE_OR(!done, "the dead domain %p obeys", (void*)raw);
    want(&w->side[w->dead_doms[which].side], BIT(SLAB_MISUSE_DOMAIN_STALE), 1, 1);
    check_scopes(w);
}

/* ---- lanes and runs --------------------------------------------------------------------- */

/* Any size by a lane that its phase still takes. */
static inline void hostile_lane(struct world* w) {
    struct lane* lane = &w->lanes[below(w, LANES_KEPT)];
    struct dom* d = lane->d ? dom_of(w, lane) : NULL;
    struct wish q = {.size = any_number(w), .align = 1, .explicit_epoch = true};
    if (!d || d->inc->era != lane->era || d->inc->state != INC_ACTIVE) return;
    q.id = d->inc->id;
    note(w, "hostile lane s%d era %llu %zu bytes", d->side, (unsigned long long)lane->era, q.size);
    errno = 0;
    unsigned char* p = slab_lane_malloc(&lane->lane, q.size);
    judge_birth(w, &w->side[d->side], &q, p, errno);
}

/* Any size by a run of the actor's. */
static inline void hostile_run(struct world* w) {
    struct dom* d = any_dom(w);
    struct wish q = {.size = any_number(w), .align = 1, .explicit_epoch = true};
    for (unsigned i = 0; i < w->n_doms && !is_kept_by_run(w, d); i++) d = w->doms[i];
    if (!d || !is_kept_by_run(w, d)) return;
    struct side* s = &w->side[d->side];
    uint64_t before = d->run.count_;
    q.id = d->inc->id;
    note(w, "hostile run s%d era %llu %zu bytes", d->side, (unsigned long long)d->inc->era, q.size);
    errno = 0;
    unsigned char* p = slab_run_malloc(&d->run, q.size);
    int error = errno;
    run_counts(d, before, p ? slab_usable_size(s->a, p) : 0);
    run_claims(d);
    judge_birth(w, s, &q, p, error);
}

/* ---- questions -------------------------------------------------------------------------- */

static inline void hostile_questions(struct world* w) {
    struct side* s = any_side(w);
    uint64_t n = any_number(w);
    EpochId id = any_id(w, s);
    SlabClassStats k;
    SlabEpochStats e;
    PerfCounters p;
    note(w, "hostile questions s%d %#llx %#x", side_index(w, s), (unsigned long long)n, id);
    slab_stats_class(s->a, (uint32_t)n, &k);
    slab_stats_epoch(s->a, (uint32_t)n, id, &e);
    get_perf_counters(s->a, (uint32_t)n, &p);
    REQUIRE_OR(k.version == 0 || k.class_index == (uint32_t)n, "class %u answers for another", (uint32_t)n);
    struct inc* inc = inc_by_id(s, id);
    REQUIRE_OR(inc || e.version == 0, "statistics of no epoch %#x", id);
    slab_stats_class(s->a, (uint32_t)n, NULL);
    slab_stats_epoch(s->a, (uint32_t)n, id, NULL);
    slab_stats_global(s->a, NULL);
    slab_stats_refusals(s->a, NULL);
    get_perf_counters(s->a, (uint32_t)n, NULL);
    size_t good = slab_good_size(s->a, n);
    REQUIRE_OR(good == 0 ? n == 0 || n > sure_to_fit : good >= n, "good size of %llu is %zu", (unsigned long long)n,
               good);
    (void)slab_object_count((uint32_t)n);
    REQUIRE_OR(slab_now_ns() > 0 && slab_rss_bytes() > 0 && slab_page_size() >= 4096, "the basics");
    if (w->n_doms) REQUIRE_OR(!epoch_domain_receipt(w->doms[0]->d, NULL), "a receipt into nothing");
}

#endif
