/*
 * births.h - allocations under budgets: what a call that allocates must be bracketed with, and when a refusal is right.
 *
 * The reference does not know which slabs the library takes, so it asks: a refusal is right when what is committed
 * now, after the library has given back what it could, and the slab that the object needs are together more than a
 * limit allows. Who was told meanwhile is noted in w->birth by the functions of ops_budgets.h.
 */
#ifndef MODEL_BIRTHS_H
#define MODEL_BIRTHS_H

#include <errno.h>

#include "expect_labels.h"
#include "stats/report.h"

/* An allocation that is under way, and who was told of budgets meanwhile. */
struct birth {
    struct side* s;
    struct inc* inc;
    unsigned soft_phase, soft_label, hard_phase, hard_label;
    bool made_room;  /* by freeing something */
    const void* old; /* what a call that may leave it in its place was given; NULL: nothing */
};

static inline bool may_be_over(struct side* s, const struct inc* inc) {
    return inc->limit.hard || account_of(s, inc)->limit.hard || s->options.max_bytes;
}

/* Whether heaps of the incarnation have regions at all. */
static inline bool has_regions(const struct side* s, const struct inc* inc) {
    return s->options.bump != BUMP_OFF && !(inc->ring && (s->options.bump == BUMP_DOMAINS || s->options.shared));
}

/* Whether anything was freed, in the incarnation or in another before, whatever its label is by now. */
static inline bool has_freed(const struct side* s, const struct inc* inc) {
    bool freed = inc->objects.freed > 0;
    for (unsigned n = 0; n < s->n_accounts; n++) freed |= s->accounts[n].objects.freed > 0;
    return freed;
}

/* Whether an object of a size may be in a slab of its class. Regions have the objects of a domain's own epoch until much was
 * bumped (from then on it depends on what was freed, there or in phases of the label before), and in an epoch of the ring the first
 * ones of a thread, three regions of a page: each has been used up when the next object did not fit, so the first two have more than
 * a page. But a line of the class that is there for other reasons is used where a region ends. */
static inline bool class_may_serve(const struct side* s, const struct inc* inc, size_t size, size_t align) {
    bool bumps = has_regions(s, inc) && size <= BUMPED_MOST && align <= BUMPED_ALIGN;
    if (!bumps || (inc->classed >> class_of_bytes(size) & 1)) return true;
    for (unsigned c = 0; align > 16 && c < REGION_INDEX; c++) /* aligned: a larger class may be the first that is, too */
        if ((inc->classed >> c & 1) && class_size(c) >= size && class_size(c) % align == 0) return true;
    if (inc->ring && slab_page_size() > REGION_LEAST) return true; /* a heap has one region there, which may have gone */
    if (inc->ring) return inc->bytes.allocated + inc->gaps_most > REGION_LEAST;
    return inc->bytes.allocated + inc->gaps_most >= SETTLED && has_freed(s, inc);
}

/* Bytes of the slab or pages that an object would have needed: of the smallest that would do. With an alignment, of the largest
 * it could be. */
static inline uint64_t bytes_needed(struct side* s, const struct inc* inc, size_t size, size_t align) {
    SlabClassStats k;
    size_t page = slab_page_size();
    if (size > LARGE_OVER || align > LARGE_OVER) return (size + page - 1) / page * page;
    if (!class_may_serve(s, inc, size, align)) return page > REGION_LEAST ? page : REGION_LEAST;
    slab_stats_class(s->a, align > 16 ? BETWEEN - 1 : class_of_bytes(size), &k);
    return k.slab_bytes;
}

/* Committed bytes as the library has them: of the whole, of an incarnation (or NULL) and under a label. */
struct committed {
    uint64_t all, phase, label, slabs, empty_slabs; /* the last two: of the incarnation */
};

static inline struct committed committed_now(struct side* s, const struct inc* inc, unsigned account) {
    TsiReport r;
    REQUIRE_OR(tsi_report_take(arena_of(s), &r), "no report");
    const SlabPhaseStats* row = inc ? phase_row(&r, inc->era) : NULL;
    struct committed now = {r.global.committed_bytes, row ? row->committed_bytes : 0, UINT64_MAX,
                            row ? row->slabs : 0, row ? row->empty_slabs : 0};
    for (uint32_t n = 0; n < r.label_count; n++)
        if (r.labels[n].label_id == account_id(s, account)) now.label = r.labels[n].committed_bytes;
    tsi_report_drop(&r);
    REQUIRE_OR(now.label != UINT64_MAX, "no row of label '%s'", s->accounts[account].name);
    return now;
}

enum { JUDGED_MOST = 100, JUDGED_ONE_IN = 16 }; /* a report takes its time: the first refusals of a run, then some */

/* Bytes of the smallest region: half of a page, where that is 4 KiB. */
static inline size_t region_least(void) { return slab_page_size() > REGION_LEAST ? slab_page_size() : REGION_PART; }

/* A refusal for a budget that the allocation would have broken. Nothing but the counter has changed. */
static inline void judge_over(struct world* w, const struct birth* b, size_t size, size_t align) {
    struct side* s = b->s;
    struct account* a = account_of(s, b->inc);
    uint64_t hard = b->inc->limit.hard, most = s->options.max_bytes, late = a->limit.late;
    b->inc->tried = true;
    a->over++;
    want_one(s, BIT(CAUSE_BUDGET));
    if (w->over++ >= JUDGED_MOST && w->over % JUDGED_ONE_IN) return;
    struct committed now = committed_now(s, b->inc, b->inc->account);
    uint64_t need = bytes_needed(s, b->inc, size, align);
    bool of_phase = hard && now.phase + need > hard, of_all = most && now.all + need > most;
    bool of_label = a->limit.hard && now.label + need + late > a->limit.hard;
    REQUIRE_OR(
        of_phase || of_label || of_all,
        "%zu bytes refused, for %llu more than %llu of %llu in the phase, %llu of %llu under '%s', %llu of %llu in all",
        size, (unsigned long long)need, (unsigned long long)now.phase, (unsigned long long)hard,
        (unsigned long long)now.label, (unsigned long long)a->limit.hard, a->name, (unsigned long long)now.all,
        (unsigned long long)most);
    bool claimed = kept_by_run(w, b->inc) != NULL; /* the run's region stays, and is told as empty */
    REQUIRE_OR(b->made_room || now.empty_slabs <= claimed,
               "%zu bytes were refused, and %llu slabs of the phase are empty", size,
               (unsigned long long)now.empty_slabs);
    bool exact = align <= 16 && !of_all, mute = b->inc->limit.mute || a->limit.mute;
    /* Where a heap may bump still, whoever is in the way of the smallest region is told; that may be the label alone, which may be mute. */
    bool label = b->hard_label > 0 || a->limit.mute;
    size_t bumped = b->old && !b->inc->ring ? ALONE_MOST : BUMPED_MOST; /* what grows may have a region alone */
    bool region = has_regions(s, b->inc) && size <= bumped && need > region_least() && label;
    REQUIRE_OR(!exact || !of_phase || region || b->inc->limit.mute || b->hard_phase,
               "the phase's budget of %llu told nobody (%llu held, %llu needed)", (unsigned long long)hard,
               (unsigned long long)now.phase, (unsigned long long)need);
    REQUIRE_OR(!exact || of_phase || a->limit.mute || b->hard_label,
               "the label's budget of %llu told nobody (%llu held, %llu late, %llu needed; the phase's: %llu of %llu, "
               "told %u)",
               (unsigned long long)a->limit.hard, (unsigned long long)now.label, (unsigned long long)late,
               (unsigned long long)need, (unsigned long long)now.phase, (unsigned long long)hard, b->hard_phase);
    REQUIRE_OR(of_all || mute || b->hard_phase + b->hard_label > 0, "no budget told anybody");
}

/* Who tries to allocate adopts heaps, even if it gets nothing. */
static inline void used_by(struct world* w, struct inc* inc) { inc->users |= (uint64_t)1 << w->actor->slot; }

static inline void birth_begin(struct world* w, struct birth* b, struct side* s, struct inc* inc) {
    *b = (struct birth){.s = s, .inc = inc};
    used_by(w, inc);
    inc->unlimited |= !may_be_over(s, inc);
    w->birth = b;
    errno = 0;
}

/* The refusal of a call that needs another thread's phase, or ends what an open run keeps: it has `done` nothing, set
 * `error`, and raised the counter. */
static inline void refused_as_anothers(struct side* s, bool done, int error) {
    REQUIRE_OR(!done && error == EBUSY, "use of what another thread or a run keeps: said %d, errno %d", done, error);
    want_one(s, BIT(SLAB_MISUSE_DOMAIN_ORDER));
}

/* True when the allocation was refused: for a budget, or because the phase is another thread's alone. */
static inline bool birth_end(struct world* w, const struct birth* b, const void* p, size_t size, size_t align) {
    int error = errno;
    w->birth = NULL;
    dead_moved(w, b->s);
    REQUIRE_OR(b->soft_phase < 2 && b->soft_label < 2 && b->hard_phase < 2 && b->hard_label < 2,
               "told twice of a budget in one call");
    if (is_anothers_inc(w, b->inc)) {
        REQUIRE_OR(!p || p == b->old, "allocated %p in a phase that is another thread's alone", p);
        if (!p) refused_as_anothers(b->s, false, error);
        return !p;
    }
    if (p || error != EDQUOT || b->inc->state != INC_ACTIVE) return false;
    REQUIRE_OR(may_be_over(b->s, b->inc), "EDQUOT without a budget");
    judge_over(w, b, size, align);
    return true;
}

#endif
