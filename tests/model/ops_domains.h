/*
 * ops_domains.h - scopes: own and borrowed epochs, nesting across allocators and threads, misuse.
 *
 * What the contract leaves open is observed instead of demanded, and then held against the library:
 * whether entering a domain whose epoch was drained by hand opens a fresh incarnation, whether a
 * domain over a closed ring epoch may be made, whether a reset counts detached scopes.
 */
#ifndef MODEL_OPS_DOMAINS_H
#define MODEL_OPS_DOMAINS_H

#include "ops_budgets.h"

static const uint32_t domain_misuse = BIT(SLAB_MISUSE_DOMAIN_ORDER) | BIT(SLAB_MISUSE_DOMAIN_STALE);

static inline struct dom* any_dom(struct world* w) { return w->n_doms ? w->doms[below(w, w->n_doms)] : NULL; }

static inline struct dom* top_dom(const struct world* w) {
    return w->actor->depth ? w->actor->stack[w->actor->depth - 1] : NULL;
}

static inline bool dom_stale(const struct dom* d) { return !d->own && !d->inc->named; }

/* What the public fields and the thread's view must say. */
static inline void check_dom(struct world* w, const struct dom* d) {
    REQUIRE_OR(d->d->alloc == w->side[d->side].a, "domain %p names another allocator", (void*)d->d);
    REQUIRE_OR(d->d->epoch_id == d->inc->id && d->d->epoch_era == d->inc->era,
               "domain %p is in %#x era %llu, due %#x era %llu", (void*)d->d, d->d->epoch_id,
               (unsigned long long)d->d->epoch_era, d->inc->id, (unsigned long long)d->inc->era);
    REQUIRE_OR(d->d->refcount == d->refcount, "domain %p: refcount %u, due %u", (void*)d->d, d->d->refcount,
               d->refcount);
    REQUIRE_OR(d->d->auto_close == d->auto_close, "domain %p: auto_close changed", (void*)d->d);
}

static inline void check_scopes(struct world* w) {
    const struct dom* top = top_dom(w);
    REQUIRE_OR(epoch_domain_current() == (top ? top->d : NULL), "innermost domain is %p, due %p",
               (void*)epoch_domain_current(), top ? (void*)top->d : NULL);
    REQUIRE_OR(epoch_domain_allocator() == (top ? w->side[top->side].a : NULL), "innermost domain's allocator");
    for (unsigned i = 0; i < w->actor->depth; i++) {
        check_dom(w, w->actor->stack[i]);
        used_by(w, w->actor->stack[i]->inc); /* a scope takes a heap that was lent to the phase, before any allocation */
    }
}

/* A domain's own incarnation may have been replaced: takes note of the fresh one. */
static inline void follow(struct world* w, struct dom* d) {
    REQUIRE_OR(d->d->epoch_id & 0x80000000u, "a domain's own epoch has id %#x", d->d->epoch_id);
    char label[32];
    SlabEpochStats e;
    slab_stats_epoch(w->side[d->side].a, 0, d->d->epoch_id, &e);
    memcpy(label, e.label, sizeof label);
    REQUIRE_OR(strcmp(label, d->label) == 0 || (d->inc && strcmp(label, d->inc->label) == 0),
               "a fresh incarnation is labelled '%s', the domain '%s'", label, d->label);
    dom_bind(d, ref_open(w, d->side, d->d->epoch_era, d->d->epoch_id, false, label));
    d->vanished = false;
    d->inc->owner = d->owner, d->inc->untimed = d->untimed, d->inc->limit = d->budget;
}

/* Whether `refused` is true, so that the call on the domain has `done` nothing, and set `error` to EBUSY. */
static inline bool refused_as_kept(struct world* w, const struct dom* d, bool refused, bool done, int error) {
    if (!refused) return false;
    refused_as_anothers(&w->side[d->side], done, error);
    check_dom(w, d);
    check_scopes(w);
    return true;
}

/* Like it if the domain is another thread's alone. */
static inline bool refused_to_others(struct world* w, const struct dom* d, bool done, int error) {
    return refused_as_kept(w, d, is_anothers_dom(w, d), done, error);
}

/* Like it also if a run is open in the domain, for a call that would enter, reset, detach or end it. */
static inline bool refused_to_end(struct world* w, const struct dom* d, bool done, int error) {
    return refused_as_kept(w, d, is_anothers_dom(w, d) || is_kept_by_run(w, d), done, error);
}

static inline void check_dom_receipt(struct dom* d, const struct inc* inc, uint64_t released_now) {
    EpochReceipt r;
    REQUIRE_OR(epoch_domain_receipt(d->d, &r), "no receipt of a domain that has ended");
    check_receipt(&r, inc, released_now);
}

/* ---- making ----------------------------------------------------------------------------- */

static inline struct dom* dom_new(struct world* w, struct side* s, epoch_domain_t* raw, bool own, const char* label) {
    struct dom* d = must_alloc(sizeof *d);
    d->d = raw, d->side = side_index(w, s), d->own = own, d->auto_close = raw->auto_close;
    ref_label(d->label, label);
    (void)account_find(s, d->label); /* a label is known from the making of its domain */
    w->doms[w->n_doms++] = d;
    return d;
}

static inline void op_domain_create(struct world* w) {
    struct side* s = any_side(w);
    if (w->n_doms == MAX_DOMAINS) return;
    char text[NAME_BYTES];
    const char* label = any_name(w, s, text);
    bool begin = chance(w, 40) && w->actor->depth < MAX_STACK;
    note(w, "domain %s s%d '%s'", begin ? "begin" : "create", side_index(w, s), label ? label : "(null)");
    epoch_domain_t* raw = begin   ? epoch_domain_begin(s->a, label)
                          : label ? epoch_domain_create_labeled(s->a, label)
                                  : epoch_domain_create(s->a);
    REQUIRE_OR(raw, "no domain, errno %d", errno);
    struct dom* d = dom_new(w, s, raw, true, label);
    REQUIRE_OR(d->auto_close, "auto_close is not the default");
    EpochReceipt r;
    REQUIRE_OR(!epoch_domain_receipt(raw, &r), "a receipt before any end");
    follow(w, d);
    if (begin) ref_enter(w->actor, d);
    if (!begin && chance(w, 20)) d->auto_close = d->d->auto_close = false;
    check_dom(w, d);
    check_scopes(w);
}

static inline void op_domain_wrap(struct world* w) {
    struct side* s = any_side(w);
    if (w->n_doms == MAX_DOMAINS) return;
    struct inc* inc = s->ring[chance(w, 60) ? s->current : below(w, s->ring_size)];
    bool auto_close = chance(w, 50);
    note(w, "wrap s%d epoch %u era %llu auto %d", side_index(w, s), inc->id, (unsigned long long)inc->era, auto_close);
    epoch_domain_t* raw = epoch_domain_wrap(s->a, inc->id, auto_close);
    if (!raw) {
        REQUIRE_OR(inc->state != INC_ACTIVE, "no domain over an open epoch, errno %d", errno);
        want(s, BIT(SLAB_MISUSE_CLOSED_EPOCH), 0, 1);
        return;
    }
    struct dom* d = dom_new(w, s, raw, false, NULL);
    REQUIRE_OR(d->auto_close == auto_close, "auto_close of a borrowed domain");
    dom_bind(d, inc);
    check_dom(w, d);
}

/* ---- entering and leaving --------------------------------------------------------------- */

static inline void op_domain_enter(struct world* w) {
    struct dom* d = any_dom(w);
    if (!d || w->actor->depth == MAX_STACK) return;
    struct inc* before = d->inc;
    note(w, "enter s%d %s era %llu state %d refcount %u", d->side, d->own ? "own" : "borrowed",
         (unsigned long long)before->era, before->state, d->refcount);
    errno = 0;
    bool done = epoch_domain_enter(d->d);
    if (refused_to_end(w, d, done, errno)) return;
    if (dom_stale(d)) {
        want_one(&w->side[d->side], domain_misuse);
        check_scopes(w);
        return;
    }
    bool fresh = d->d->epoch_era != before->era;
    REQUIRE_OR(!fresh || (d->own && before->state != INC_ACTIVE), "entering an open epoch changed its era");
    REQUIRE_OR(fresh || !d->own || before->state != INC_RELEASED || d->refcount > 0,
               "entering an ended domain opened no fresh incarnation");
    if (fresh) follow(w, d);
    ref_enter(w->actor, d);
    check_scopes(w);
}

/* Leaves the actor's innermost scope, in the library and in the books. */
static inline void exit_top(struct world* w) {
    struct dom* d = top_dom(w);
    struct inc* inc = d->inc;
    bool ends = d->refcount == 1 && d->auto_close;
    note(w, "exit s%d %s era %llu state %d refcount %u", d->side, d->own ? "own" : "borrowed",
         (unsigned long long)inc->era, inc->state, d->refcount);
    uint64_t bytes = ends ? ending(inc) : 0;
    epoch_domain_exit(d->d);
    bool open = inc->state == INC_ACTIVE;
    bool closed = ref_exit(w->actor);
    inc->releasing = false;
    if (dom_stale(d)) want(&w->side[d->side], BIT(SLAB_MISUSE_DOMAIN_STALE), 0, 1);
    if (closed && d->own)
        check_dom_receipt(d, inc, bytes);
    else if (closed && open)
        check_dom_receipt(d, inc, 0);
    check_dom(w, d);
    check_scopes(w);
}

/* An exit that would end what an open run keeps. */
static inline bool exit_refused(struct world* w, struct dom* d) {
    if (!is_kept_by_run(w, d) || d->refcount != 1 || !d->auto_close) return false;
    note(w, "exit s%d era %llu, where a run is open", d->side, (unsigned long long)d->inc->era);
    errno = 0;
    bool done = epoch_domain_exit(d->d);
    return refused_as_kept(w, d, true, done, errno);
}

static inline void op_domain_exit(struct world* w) {
    struct dom* d = top_dom(w);
    if (d && chance(w, 85)) {
        if (!exit_refused(w, d)) exit_top(w);
        return;
    }
    d = any_dom(w);
    if (!d || d == top_dom(w)) return;
    note(w, "misuse: exit of a domain that is not innermost");
    epoch_domain_exit(d->d);
    want_one(&w->side[d->side], BIT(SLAB_MISUSE_DOMAIN_ORDER));
    check_dom(w, d);
    check_scopes(w);
}

static inline void op_domain_end(struct world* w) {
    struct dom* d = top_dom(w);
    if (!d || (!d->own && !d->inc->named)) return;
    struct inc* inc = d->inc;
    note(w, "end s%d %s era %llu refcount %u", d->side, d->own ? "own" : "borrowed", (unsigned long long)inc->era,
         d->refcount);
    bool last = d->refcount == 1, kept = is_kept_by_run(w, d);
    if (last && !kept) ending(inc);
    errno = 0;
    bool done = epoch_domain_end(d->d);
    if (refused_as_kept(w, d, kept, done, errno)) return;
    REQUIRE_OR(done == last, "the end of a domain with %u scopes said %d", d->refcount, done);
    ref_exit(w->actor);
    if (last && d->own) ref_release(w, inc);
    inc->releasing = false;
    if (last)
        ref_dom_drop(w, d);
    else
        want_one(&w->side[d->side], BIT(SLAB_MISUSE_DOMAIN_ORDER));
    check_scopes(w);
}

/* Ends a domain whole, with a receipt: as often as not from inside. */
static inline void end_whole(struct world* w, struct dom* d, EpochCloseMode mode) {
    struct inc* inc = d->inc;
    bool inside = d == top_dom(w), kept = is_anothers_dom(w, d) || is_kept_by_run(w, d);
    bool alone = !kept && d->refcount == (inside ? 1 : 0) && (inside || mode == EPOCH_DRAIN);
    bool drains = mode == EPOCH_DRAIN, before = inc->state == INC_RELEASED && d->own && !inside;
    if (!d->own && drains) alone = alone && inc->named && inc->scopes == (inside ? 1 : 0);
    if (!d->own && !drains && alone) {
        unsigned others = inc->scopes - 1;
        drains = d->auto_close && !d->drained && inc->named && others == 0;
    }
    note(w, "%s s%d %s era %llu state %d refcount %u", mode == EPOCH_DRAIN ? "drain" : "end_ex", d->side, d->own ? "own" : "borrowed",
         (unsigned long long)inc->era, inc->state, d->refcount);
    uint64_t bytes = alone && d->own && !drains ? ending(inc) : 0;
    if (alone && drains) (void)ending(inc);
    EpochReceipt r;
    errno = 0;
    bool done = mode == EPOCH_DRAIN ? epoch_domain_drain(d->d, &r) : epoch_domain_end_ex(d->d, &r);
    if (refused_as_kept(w, d, kept, done, errno)) return;
    REQUIRE_OR(done == alone, "the whole end of a domain said %d, due %d", done, alone);
    if (!done) {
        want_one(&w->side[d->side], domain_misuse);
        check_dom(w, d);
        check_scopes(w);
        return;
    }
    if (inside) {
        w->actor->depth--;
        d->refcount--;
        inc->scopes--;
    }
    if (d->own || drains) ended(w, inc, drains ? EPOCH_DRAIN : EPOCH_RELEASE);
    if (before || d->own || drains) {
        if (!d->vanished) check_receipt(&r, inc, bytes);
    } else
        REQUIRE_OR(r.version == 2 && (r.epoch_era == 0 || r.epoch_era == inc->era), "a receipt of era %llu",
                   (unsigned long long)r.epoch_era);
    ref_dom_drop(w, d);
    check_scopes(w);
}

static inline void op_domain_end_ex(struct world* w) {
    struct dom* d = chance(w, 80) ? top_dom(w) : any_dom(w);
    if (d) end_whole(w, d, EPOCH_RELEASE);
}

static inline void op_domain_drain(struct world* w) {
    struct dom* d = chance(w, 60) ? top_dom(w) : any_dom(w);
    if (d) end_whole(w, d, EPOCH_DRAIN);
}

/* ---- ending from outside ---------------------------------------------------------------- */

/* Destroys a domain that nobody is inside. A borrowed one makes up for a drain that its last exit could not do. */
static inline void destroy_dom(struct world* w, struct dom* d) {
    struct inc* inc = d->inc;
    bool drains = !d->own && d->auto_close && d->entered && !d->drained && inc->named && inc->scopes == 0;
    if (d->own || drains) ending(inc);
    epoch_domain_destroy(d->d);
    if (d->own || drains) ended(w, inc, d->own ? EPOCH_RELEASE : EPOCH_DRAIN);
    ref_dom_drop(w, d);
}

static inline void op_domain_destroy(struct world* w) {
    struct dom* d = any_dom(w);
    if (!d) return;
    note(w, "destroy s%d %s era %llu refcount %u", d->side, d->own ? "own" : "borrowed",
         (unsigned long long)d->inc->era, d->refcount);
    if (d->refcount == 0 && !is_anothers_dom(w, d) && !is_kept_by_run(w, d)) {
        destroy_dom(w, d);
        return;
    }
    errno = 0;
    bool done = epoch_domain_destroy(d->d);
    if (refused_to_end(w, d, done, errno)) return;
    want_one(&w->side[d->side], BIT(SLAB_MISUSE_DOMAIN_ORDER));
    check_dom(w, d);
}

static inline void op_domain_force_close(struct world* w) {
    struct dom* d = any_dom(w);
    if (!d || (d->refcount == 0 && d->inc->scopes > 0)) return; /* another domain is inside: left open */
    struct inc* inc = d->inc;
    struct side* s = &w->side[d->side];
    note(w, "force_close s%d %s era %llu state %d refcount %u", d->side, d->own ? "own" : "borrowed",
         (unsigned long long)inc->era, inc->state, d->refcount);
    bool refused = d->refcount > 0 || dom_stale(d) || is_anothers_dom(w, d) || is_kept_by_run(w, d);
    uint64_t bytes = refused ? 0 : ending(inc);
    bool again = inc->state == INC_RELEASED;
    errno = 0;
    bool done = epoch_domain_force_close(d->d);
    if (refused_to_end(w, d, done, errno)) return;
    if (refused) {
        want_one(s, domain_misuse);
    } else {
        ended(w, inc, EPOCH_RELEASE);
        if (again)
            want(s, domain_misuse, 0, 1);
        else
            check_dom_receipt(d, inc, bytes);
    }
    check_dom(w, d);
}

static inline void op_domain_reset(struct world* w) {
    struct dom* d = chance(w, 60) ? top_dom(w) : any_dom(w);
    if (!d) return;
    struct inc* inc = d->inc;
    unsigned mine = scopes_of(w->actor, d);
    bool others = d->refcount - d->detached > mine;
    note(w, "reset s%d %s era %llu state %d refcount %u mine %u", d->side, d->own ? "own" : "borrowed",
         (unsigned long long)inc->era, inc->state, d->refcount, mine);
    uint64_t bytes = is_anothers_dom(w, d) || is_kept_by_run(w, d) ? 0 : ending(inc);
    errno = 0;
    bool done = epoch_domain_reset(d->d);
    inc->releasing = false;
    if (refused_to_end(w, d, done, errno)) return;
    REQUIRE_OR(!done || (d->own && !others), "reset of a %s domain succeeded", d->own ? "shared" : "borrowed");
    REQUIRE_OR(done || !d->own || others || d->detached || inc->state != INC_ACTIVE, "reset was refused");
    if (done) {
        inc->pins++;
        ref_release(w, inc);
        REQUIRE_OR(d->d->epoch_era != inc->era, "reset kept the era");
        bool told = !d->vanished;
        follow(w, d);
        if (told) check_dom_receipt(d, inc, bytes);
        inc->pins--;
    } else {
        want(&w->side[d->side], domain_misuse, 0, 1);
    }
    check_dom(w, d);
    check_scopes(w);
}

/* ---- handing over ----------------------------------------------------------------------- */

static inline void op_domain_detach(struct world* w) {
    struct dom* top = top_dom(w);
    struct dom* d = chance(w, 80) ? top : any_dom(w);
    if (!d) return;
    note(w, "detach s%d era %llu refcount %u", d->side, (unsigned long long)d->inc->era, d->refcount);
    errno = 0;
    bool done = epoch_domain_detach(d->d);
    if (refused_as_kept(w, d, d == top && is_kept_by_run(w, d), done, errno)) return;
    REQUIRE_OR(done == (d == top), "detach of %s said %d", d == top ? "the innermost scope" : "another scope", done);
    if (done) {
        w->actor->depth--;
        d->detached++;
    } else {
        want(&w->side[d->side], domain_misuse, 0, 1);
    }
    check_dom(w, d);
    check_scopes(w);
}

static inline void op_domain_attach(struct world* w) {
    struct dom* d = any_dom(w);
    for (int tries = 0; d && !d->detached && tries < 10; tries++) d = any_dom(w);
    if (!d || w->actor->depth == MAX_STACK) return;
    note(w, "attach s%d era %llu detached %u", d->side, (unsigned long long)d->inc->era, d->detached);
    bool done = epoch_domain_attach(d->d);
    if (refused_to_others(w, d, done, errno)) return;
    REQUIRE_OR(done == (d->detached > 0), "attach with %u detached scopes said %d", d->detached, done);
    if (done) {
        w->actor->stack[w->actor->depth++] = d;
        d->detached--;
    } else {
        want(&w->side[d->side], domain_misuse, 0, 1);
    }
    check_dom(w, d);
    check_scopes(w);
}

/* ---- using ------------------------------------------------------------------------------ */

static inline void op_domain_malloc(struct world* w) {
    struct dom* d = any_dom(w);
    size_t size = 1 + below(w, 900);
    if (!d || w->side[d->side].n_objs >= MAX_LIVE) return;
    struct side* s = &w->side[d->side];
    note(w, "domain_malloc s%d %zu bytes era %llu state %d", d->side, size, (unsigned long long)d->inc->era,
         d->inc->state);
    struct birth b;
    birth_begin(w, &b, s, d->inc);
    unsigned char* p = epoch_domain_malloc(d->d, size);
    if (birth_end(w, &b, p, size, 1)) return;
    if (d->inc->state == INC_ACTIVE) {
        REQUIRE_OR(p, "domain_malloc failed with errno %d", errno);
        obj_born(w, s, d->inc, p, size, 0, 0, false);
        return;
    }
    REQUIRE_OR(!p && errno == ESTALE, "domain_malloc in a closed incarnation: %p, errno %d", (void*)p, errno);
    want_one(s, BIT(SLAB_MISUSE_CLOSED_EPOCH) | BIT(SLAB_MISUSE_DOMAIN_STALE));
}

/* A domain's own epoch answers to the calls for epochs. */
static inline void op_domain_close_ex(struct world* w) {
    struct dom* d = any_dom(w);
    if (!d || !d->own || d->inc->state == INC_RELEASED) return;
    struct inc* inc = d->inc;
    EpochCloseMode mode = any_mode(w);
    bool kept = is_anothers_inc(w, inc) || is_kept_by_run(w, d);
    if (!kept) asked(inc);
    note(w, "close s%d domain epoch %#x era %llu %s refcount %u", d->side, inc->id, (unsigned long long)inc->era,
         mode == EPOCH_DRAIN ? "drain" : "release", d->refcount);
    EpochReceipt r;
    if (kept) {
        errno = 0;
        bool done = epoch_close_ex(w->side[d->side].a, inc->id, mode, &r);
        (void)refused_as_kept(w, d, true, done, errno);
        return;
    }
    uint64_t bytes = ending(inc);
    REQUIRE_OR(epoch_close_ex(w->side[d->side].a, inc->id, mode, &r), "close of a domain's epoch refused");
    ended(w, inc, mode);
    check_receipt(&r, inc, mode == EPOCH_RELEASE ? bytes : 0);
    check_dom(w, d);
}

/* The actor is about to end, and with it the phases that are its alone. */
static inline void owned_end(struct world* w, const struct actor* t) {
    for (unsigned i = 0; i < w->n_doms; i++)
        if (w->doms[i]->owner == (unsigned)t->slot + 1) (void)ending(w->doms[i]->inc);
}

/* The thread of this actor has ended with scopes open: they were left innermost first. What was its alone has ended,
 * and is anybody's. */
static inline void leave_all(struct world* w, struct actor* t) {
    while (t->depth > 0) {
        struct inc* inc = t->stack[t->depth - 1]->inc;
        ref_exit(t);
        inc->releasing = false;
    }
    for (unsigned i = 0; i < w->n_doms; i++)
        if (w->doms[i]->owner == (unsigned)t->slot + 1) ref_disown(w, w->doms[i]);
    for (unsigned i = 0; i < w->n_doms; i++) check_dom(w, w->doms[i]);
}

#endif
