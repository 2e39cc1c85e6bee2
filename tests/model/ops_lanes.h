/*
 * ops_lanes.h - allocating through lanes and runs (slab_lane.h).
 *
 * Both stay open from operation to operation. A lane is used by whoever has the turn, on the thread that opened it and
 * on others, as its domain goes on to other phases, is drained or destroyed: it allocates in the phase that it was
 * opened in, or refuses. A run keeps its domain in its phase (is_kept_by_run, refused_to_end in ops_domains.h) until the
 * thread that began it ends the run, or exits, which ends the phase; other threads are refused.
 */
#ifndef MODEL_OPS_LANES_H
#define MODEL_OPS_LANES_H

#include "mem/region.h"
#include "ops_moves.h"

static inline size_t lane_size(struct world* w) { return chance(w, 95) ? 1 + below(w, 400) : 1 + below(w, 9000); }

/* Books an object of a lane or a run. False when the allocation was refused. */
static inline bool lane_born(struct world* w, const struct birth* b, void* p, size_t size) {
    if (birth_end(w, b, p, size, 1)) return false;
    REQUIRE_OR(p, "an allocation of %zu bytes through a lane or run failed with errno %d", size, errno);
    obj_born(w, b->s, b->inc, p, size, 0, 0, false);
    return true;
}

/* ---- lanes ------------------------------------------------------------------------------ */

/* The domain of a lane, or NULL if that was destroyed. It may be another one by now, in the same record. */
static inline struct dom* dom_of(const struct world* w, const struct lane* lane) {
    for (unsigned i = 0; i < w->n_doms; i++)
        if (w->doms[i]->d == lane->d) return w->doms[i];
    return NULL;
}

/* Opens the lane in a domain, in a new one that is begun, or as a copy of another lane. */
static inline void lane_opened(struct world* w, struct lane* lane) {
    if (chance(w, 15)) {
        const struct lane* other = &w->lanes[below(w, LANES_KEPT)];
        note(w, "  a copy of the lane of era %llu", (unsigned long long)other->era);
        *lane = *other;
        return;
    }
    if (chance(w, 20) && w->n_doms < MAX_DOMAINS && w->actor->depth < MAX_STACK) {
        struct side* s = any_side(w);
        char text[NAME_BYTES];
        const char* label = any_name(w, s, text);
        REQUIRE_OR(slab_lane_begin(&lane->lane, s->a, label), "no lane could be begun, errno %d", errno);
        struct dom* d = dom_new(w, s, lane->lane.domain, true, label);
        follow(w, d);
        ref_enter(w->actor, d);
        lane->d = d->d, lane->side = d->side, lane->era = d->inc->era;
        note(w, "  begins a domain, era %llu", (unsigned long long)lane->era);
        check_dom(w, d);
        check_scopes(w);
        return;
    }
    struct dom* d = any_dom(w);
    if (!d) return;
    errno = 0;
    bool done = slab_lane_open(&lane->lane, d->d);
    REQUIRE_OR(done || (d->inc->state != INC_ACTIVE && errno == ESTALE), "no lane, errno %d", errno);
    if (!done) want_one(&w->side[d->side], BIT(SLAB_MISUSE_CLOSED_EPOCH) | BIT(SLAB_MISUSE_DOMAIN_STALE));
    REQUIRE_OR(lane->lane.domain == (done ? d->d : NULL), "a lane is in another domain");
    lane->d = done ? d->d : NULL, lane->side = d->side, lane->era = d->inc->era;
    note(w, "  opened in era %llu", (unsigned long long)lane->era);
}

static inline void op_lane(struct world* w) {
    struct lane* lane = &w->lanes[below(w, LANES_KEPT)];
    bool kept = chance(w, lane->d ? 60 : 5);
    note(w, "lane of s%d era %llu%s", lane->side, (unsigned long long)lane->era, kept ? "" : ", anew");
    if (!kept) lane_opened(w, lane);
    struct side* s = &w->side[lane->side];
    struct dom* d = dom_of(w, lane);
    errno = 0;
    if (!lane->d) {
        REQUIRE_OR(!slab_lane_malloc(&lane->lane, 64) && errno == EINVAL, "a lane that is none, errno %d", errno);
        return;
    }
    if (!d || d->inc->era != lane->era || d->inc->state != INC_ACTIVE) {
        domain_refused(s, slab_lane_malloc(&lane->lane, lane_size(w)));
        return;
    }
    for (uint64_t n = 1 + below(w, chance(w, 20) ? 200 : 20); n > 0 && s->n_objs < MAX_LIVE; n--) {
        size_t size = lane_size(w);
        struct birth b;
        birth_begin(w, &b, s, d->inc);
        void* p = slab_lane_malloc(&lane->lane, size);
        if (!lane_born(w, &b, p, size)) return;
        if (chance(w, 10)) free_one(w, s, any_obj(w, s));
    }
}

/* ---- runs ------------------------------------------------------------------------------- */

/* One call that an open run forbids: it changes nothing. */
static inline void run_forbids(struct world* w, struct dom* d) {
    struct side* s = &w->side[d->side];
    unsigned how = (unsigned)below(w, 9);
    SlabRun second;
    EpochReceipt r;
    epoch_domain_t* from;
    bool done;
    note(w, "  tries way %u to end what a run is open in", how);
    errno = 0;
    switch (how) {
    case 0:
        done = epoch_domain_enter(d->d);
        break;
    case 1:
        done = epoch_domain_destroy(d->d);
        break;
    case 2:
        done = epoch_domain_reset(d->d);
        break;
    case 3:
        done = epoch_domain_force_close(d->d);
        break;
    case 4:
        done = epoch_close_ex(s->a, d->d->epoch_id, any_mode(w), &r);
        break;
    case 5:
        done = epoch_close_era(s->a, d->inc->era, any_mode(w), &r);
        break;
    case 6:
        done = epoch_domain_drain(d->d, &r);
        break;
    case 7:
        done = slab_run_begin(&second, d->d);
        break;
    default:
        if (top_dom(w) != d) return;
        done = chance(w, 50) ? epoch_domain_detach(d->d) : epoch_domain_switch(NULL, &from);
        break;
    }
    REQUIRE_OR(!done && errno == EBUSY, "way %u while a run was open said %d, errno %d", how, done, errno);
    want_one(s, BIT(SLAB_MISUSE_DOMAIN_ORDER));
    check_dom(w, d);
    check_scopes(w);
}

/* The count of the run's objects in its region: 0 after a call of the library that has counted them, or one more. */
static inline void run_counts(const struct dom* d, uint64_t before, bool born) {
    uint64_t now = d->run.count_;
    REQUIRE_OR(now == 0 || now == before || (now == before + 1 && born), "a run of %llu objects has %llu next",
               (unsigned long long)before, (unsigned long long)now);
}

/* Frees an object at p or shortly before it. */
static inline void free_near(struct world* w, struct side* s, const void* p) {
    size_t at = sorted_find(s, p), back = below(w, 12);
    if (at < s->n_objs) free_one(w, s, s->sorted[at > back ? at - back : 0]);
}

/* What the run has claimed of a region counts as bumped, though it is given back, if the heap bumps elsewhere meanwhile. */
static inline void run_claims(struct dom* d) {
    const SlabRun* run = &d->run;
    const TsiRegion* r = run->region_;
    if (r && (r != d->run_region || run->at_ < d->run_at)) d->inc->gaps_most += tsi_region_room(r);
    d->run_region = r, d->run_at = run->at_;
}

/* Allocates by the run, and tries meanwhile what an open run forbids. */
static inline void run_goes_on(struct world* w, struct dom* d) {
    struct side* s = &w->side[d->side];
    for (uint64_t n = below(w, chance(w, 20) ? 200 : 20); n > 0 && s->n_objs < MAX_LIVE; n--) {
        size_t size = lane_size(w);
        uint64_t before = d->run.count_;
        struct birth b;
        birth_begin(w, &b, s, d->inc);
        w->in_run = d;
        void* p = slab_run_malloc(&d->run, size);
        w->in_run = NULL;
        bool born = lane_born(w, &b, p, size);
        run_counts(d, before, born);
        run_claims(d);
        if (born && chance(w, 15)) free_one(w, s, any_obj(w, s));
        if (chance(w, 10)) run_forbids(w, d);
        if (born && chance(w, 15)) free_near(w, s, p);
    }
}

static inline void run_ends(struct world* w, struct dom* d) {
    REQUIRE_OR(slab_run_end(&d->run), "a run could not be ended, errno %d", errno);
    d->run_state = RUN_NONE, d->run_region = NULL;
    if (chance(w, 80)) return;
    errno = 0;
    REQUIRE_OR(!slab_run_malloc(&d->run, 16) && errno == EINVAL, "a run that has ended allocates, errno %d", errno);
    REQUIRE_OR(!slab_run_end(&d->run), "a run was ended twice");
}

/* A domain that is the actor's alone. */
static inline struct dom* owned_made(struct world* w) {
    struct side* s = any_side(w);
    char text[NAME_BYTES];
    SlabDomainOptions o = {.struct_size = sizeof o, .label = any_name(w, s, text)};
    o.flags = SLAB_DOMAIN_OWNER_ONLY | (chance(w, 50) ? SLAB_DOMAIN_KEEP : 0);
    note(w, "domain for a run s%d flags %#x", side_index(w, s), o.flags);
    epoch_domain_t* raw = epoch_domain_create_ex(s->a, &o);
    REQUIRE_OR(raw, "no domain, errno %d", errno);
    struct dom* d = dom_new(w, s, raw, true, o.label);
    d->owner = (unsigned)w->actor->slot + 1;
    follow(w, d);
    check_dom(w, d);
    return d;
}

/* A run is begun; it goes on in this operation, and as often as not in later ones. */
static inline void op_run(struct world* w) {
    unsigned mine = (unsigned)w->actor->slot + 1;
    struct dom* d = any_dom(w);
    for (int tries = 0; d && d->owner != mine && tries < 20; tries++) d = any_dom(w);
    if ((!d || d->owner != mine) && w->n_doms < MAX_DOMAINS && chance(w, 70)) d = owned_made(w);
    if (!d) return;
    struct side* s = &w->side[d->side];
    struct inc* inc = d->inc;
    SlabRun second, *run = d->run_state == RUN_OPEN ? &second : &d->run;
    note(w, "run s%d era %llu state %d of thread %d", d->side, (unsigned long long)inc->era, inc->state,
         (int)d->owner - 1);
    errno = 0;
    bool done = slab_run_begin(run, d->d);
    if (run == &d->run) d->run_state = done ? RUN_OPEN : RUN_NONE;
    if (!done) REQUIRE_OR(!run->domain && !run->at_ && !run->count_, "a run that was refused is one");
    if (refused_as_kept(w, d, is_anothers_dom(w, d) || run == &second, done, errno)) return;
    REQUIRE_OR(done == (d->owner != 0 && inc->state == INC_ACTIVE), "a run of a domain in state %d said %d, errno %d",
               inc->state, done, errno);
    if (!done) {
        REQUIRE_OR(errno == (d->owner ? ESTALE : EINVAL), "a run was refused with errno %d", errno);
        if (d->owner) want_one(s, BIT(SLAB_MISUSE_CLOSED_EPOCH) | BIT(SLAB_MISUSE_DOMAIN_STALE));
        return;
    }
    inc->ran = true;
    run_claims(d);
    run_goes_on(w, d);
    if (chance(w, 40)) run_ends(w, d);
}

/* A run whose thread has gone, or another thread's: no call of it does anything but set `error`. Both are refused. */
static inline void run_refuses(struct world* w, struct dom* d, int error) {
    struct side* s = &w->side[d->side];
    SlabRun copy = d->run; /* ended by a call that fails, too */
    bool ends = chance(w, 50);
    errno = 0;
    bool done = ends ? slab_run_end(&copy) : slab_run_malloc(&copy, lane_size(w)) != NULL;
    REQUIRE_OR(!done && errno == error, "a run that is not the thread's %s, errno %d", ends ? "ended" : "allocated",
               errno);
    want_one(s, error == EBUSY ? BIT(SLAB_MISUSE_DOMAIN_ORDER)
                               : BIT(SLAB_MISUSE_CLOSED_EPOCH) | BIT(SLAB_MISUSE_DOMAIN_STALE));
    if (!ends) return;
    errno = 0;
    REQUIRE_OR(!slab_run_malloc(&copy, 16) && errno == EINVAL, "a run that could not be ended allocates, errno %d",
               errno);
}

/* A run that was begun in an earlier operation. */
static inline void op_run_on(struct world* w) {
    unsigned from = (unsigned)below(w, MAX_DOMAINS);
    struct dom* d = NULL;
    for (unsigned i = 0; i < w->n_doms && !d; i++) {
        struct dom* next = w->doms[(from + i) % w->n_doms];
        if (next->run_state != RUN_NONE) d = next;
    }
    if (!d) return;
    bool anothers = is_anothers_dom(w, d), lost = d->run_state == RUN_LOST;
    note(w, "run on s%d era %llu, %s", d->side, (unsigned long long)d->inc->era,
         lost       ? "whose thread has gone"
         : anothers ? "another thread's"
                    : "its thread's");
    if (lost || anothers) {
        run_refuses(w, d, lost ? ESTALE : EBUSY);
        return;
    }
    REQUIRE_OR(d->inc->state == INC_ACTIVE, "a run is open in a phase in state %d", d->inc->state);
    w->runs_on++;
    if (chance(w, 75)) run_goes_on(w, d);
    if (chance(w, 8)) settle(w), check_invariants(w);
    if (chance(w, 35)) run_ends(w, d);
}

/* Ends the actor's runs. */
static inline void runs_end(struct world* w) {
    for (unsigned i = 0; i < w->n_doms; i++)
        if (is_kept_by_run(w, w->doms[i]) && w->doms[i]->run_state == RUN_OPEN) run_ends(w, w->doms[i]);
}

#endif
