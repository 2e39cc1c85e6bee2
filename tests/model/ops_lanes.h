/*
 * ops_lanes.h - allocating through lanes and runs (slab_lane.h).
 *
 * A domain's lane is kept from operation to operation: other threads use it too, by turns, and once the domain has gone
 * on to another phase it refuses. A run begins and ends within one operation, which tries meanwhile what an open run
 * forbids; counts of allocations are exact again when it has ended.
 */
#ifndef MODEL_OPS_LANES_H
#define MODEL_OPS_LANES_H

#include "ops_moves.h"

static inline size_t lane_size(struct world* w) { return chance(w, 95) ? 1 + below(w, 400) : 1 + below(w, 9000); }

/* Books an object of a lane or a run. False when the allocation was refused. */
static inline bool lane_born(struct world* w, const struct birth* b, void* p, size_t size) {
    if (birth_end(w, b, p, size, 1)) return false;
    REQUIRE_OR(p, "an allocation of %zu bytes through a lane or run failed with errno %d", size, errno);
    obj_born(w, b->s, b->inc, p, size, 0, 0, false);
    return true;
}

static inline void op_lane(struct world* w) {
    struct dom* d = any_dom(w);
    if (!d) return;
    struct side* s = &w->side[d->side];
    struct inc* inc = d->inc;
    bool kept = d->lane_era != 0 && chance(w, 50);
    note(w, "lane s%d era %llu state %d, %s of era %llu", d->side, (unsigned long long)inc->era, inc->state,
         kept ? "that" : "not that", (unsigned long long)d->lane_era);
    errno = 0;
    if (!kept && !slab_lane_open(&d->lane, d->d)) {
        REQUIRE_OR(inc->state != INC_ACTIVE && errno == ESTALE, "no lane, errno %d", errno);
        want_one(s, BIT(SLAB_MISUSE_CLOSED_EPOCH) | BIT(SLAB_MISUSE_DOMAIN_STALE));
        d->lane_era = 0;
        return;
    }
    if (!kept) d->lane_era = inc->era;
    if (d->lane_era != inc->era || inc->state != INC_ACTIVE) {
        domain_refused(s, slab_lane_malloc(&d->lane, 64));
        return;
    }
    for (uint64_t n = 1 + below(w, chance(w, 20) ? 200 : 20); n > 0 && s->n_objs < MAX_LIVE; n--) {
        size_t size = lane_size(w);
        struct birth b;
        birth_begin(w, &b, s, inc);
        void* p = slab_lane_malloc(&d->lane, size);
        if (!lane_born(w, &b, p, size)) return;
        if (chance(w, 10)) free_one(w, s, any_obj(w, s));
    }
}

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

static inline void op_run(struct world* w) {
    struct dom* d = any_dom(w);
    for (int tries = 0; d && d->owner != (unsigned)w->actor->slot + 1 && tries < 20; tries++) d = any_dom(w);
    if (!d) return;
    struct side* s = &w->side[d->side];
    struct inc* inc = d->inc;
    SlabRun run;
    note(w, "run s%d era %llu state %d of thread %d", d->side, (unsigned long long)inc->era, inc->state,
         (int)d->owner - 1);
    errno = 0;
    bool done = slab_run_begin(&run, d->d);
    if (refused_to_others(w, d, done, errno)) return;
    REQUIRE_OR(done == (d->owner != 0 && inc->state == INC_ACTIVE), "a run of a domain in state %d said %d, errno %d",
               inc->state, done, errno);
    if (!done) {
        REQUIRE_OR(errno == (d->owner ? ESTALE : EINVAL), "a run was refused with errno %d", errno);
        if (d->owner) want_one(s, BIT(SLAB_MISUSE_CLOSED_EPOCH) | BIT(SLAB_MISUSE_DOMAIN_STALE));
        return;
    }
    for (uint64_t n = below(w, chance(w, 20) ? 200 : 20); n > 0 && s->n_objs < MAX_LIVE; n--) {
        size_t size = lane_size(w);
        struct birth b;
        birth_begin(w, &b, s, inc);
        void* p = slab_run_malloc(&run, size);
        if (lane_born(w, &b, p, size) && chance(w, 15)) free_one(w, s, any_obj(w, s));
        if (chance(w, 10)) run_forbids(w, d);
    }
    REQUIRE_OR(slab_run_end(&run), "a run could not be ended, errno %d", errno);
    if (chance(w, 80)) return;
    errno = 0;
    REQUIRE_OR(!slab_run_malloc(&run, 16) && errno == EINVAL, "a run that has ended allocates, errno %d", errno);
    REQUIRE_OR(!slab_run_end(&run), "a run was ended twice");
}

#endif
