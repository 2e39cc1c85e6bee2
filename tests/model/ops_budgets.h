/*
 * ops_budgets.h - budgets of epochs and labels, and what their functions are told.
 *
 * A function is called inside an allocation, so it finds in w->birth which one: the phase must be the one that
 * allocates, with the budget that it was given last, by a call or by its domain; the label that phase's; and the bytes
 * must be above a soft limit or not above a hard one. One that is told of a hard limit makes room now and then. What a
 * refusal must look like is in births.h.
 */
#ifndef MODEL_OPS_BUDGETS_H
#define MODEL_OPS_BUDGETS_H

#include "ops_epochs.h"

static struct world* budget_world; /* one at a time; functions are given an account or an incarnation */

static inline void make_room(struct world* w, struct side* s, const struct inc* inc) {
    if (w->in_cleanup || !chance(w, 50)) return;
    w->birth->made_room = true;
    w->in_cleanup = true;
    for (uint64_t n = 1 + below(w, 60); n > 0; n--) {
        struct obj* o = any_obj(w, s);
        if (o && o != w->in_call && (o->inc == inc || chance(w, 5)) && !o->inc->releasing && !o->inc->n_cleanups)
            free_one(w, s, o);
    }
    w->in_cleanup = false;
}

/* What an allocation of a run calls must leave the run alone, as it must its phase: refused, and the run goes on. */
static inline void run_called(struct world* w, struct dom* d) {
    unsigned how = (unsigned)below(w, 6);
    SlabRun copy = d->run; /* a run that could not be ended is none */
    errno = 0;
    bool done = how == 0   ? slab_run_malloc(&d->run, 64) != NULL
                : how == 1 ? slab_run_end(&copy)
                : how == 2 ? slab_run_malloc(&d->run, 5000) != NULL
                : how == 3 ? epoch_domain_reset(d->d)
                           : epoch_close_era(w->side[d->side].a, d->inc->era, any_mode(w), NULL);
    note(w, "  tries way %u to use the run that allocates", how);
    refused_as_anothers(&w->side[d->side], done, errno);
}

static inline void told(struct limit* l, unsigned* soft, unsigned* hard, uint64_t bytes, bool is_hard) {
    struct world* w = budget_world;
    note(w, "  told of a %s budget, %llu bytes", is_hard ? "hard" : "soft", (unsigned long long)bytes);
    REQUIRE_OR(!l->mute, "a budget without a function told somebody");
    if (w->in_run && chance(w, 50)) run_called(w, w->in_run);
    if (is_hard) {
        REQUIRE_OR(l->hard && bytes <= l->hard + limit_slack(l), "told of %llu bytes, hard %llu",
                   (unsigned long long)bytes, (unsigned long long)l->hard);
        ++*hard;
        make_room(w, w->birth->s, w->birth->inc);
    } else {
        REQUIRE_OR(l->soft && bytes > l->soft, "told of %llu bytes, soft %llu", (unsigned long long)bytes,
                   (unsigned long long)l->soft);
        ++*soft, l->told_soft++;
    }
}

static inline void check_birth(struct world* w, SlabAllocator* a, EpochId epoch, const struct birth* b) {
    REQUIRE_OR(b, "told of a budget outside of an allocation");
    REQUIRE_OR(b->s->a == a && b->inc->id == epoch, "told of epoch %#x, allocating in %#x", epoch, b->inc->id);
    REQUIRE_OR(pthread_equal(pthread_self(), w->actor->thread), "told of a budget on another thread");
}

static void phase_told(SlabAllocator* a, EpochId epoch, uint64_t bytes, bool hard, void* ctx) {
    struct birth* b = budget_world->birth;
    check_birth(budget_world, a, epoch, b);
    REQUIRE_OR(ctx == b->inc->limit.ctx, "told of another phase's budget, or of one that it had");
    told(&b->inc->limit, &b->soft_phase, &b->hard_phase, bytes, hard);
}

static void label_told(SlabAllocator* a, EpochId epoch, uint64_t bytes, bool hard, void* ctx) {
    struct birth* b = budget_world->birth;
    check_birth(budget_world, a, epoch, b);
    REQUIRE_OR(ctx == account_of(b->s, b->inc), "told of another label's budget");
    told(&account_of(b->s, b->inc)->limit, &b->soft_label, &b->hard_label, bytes, hard);
}

/* A little more than is committed, or some kilobytes to some megabytes; 0 now and then. */
static inline uint64_t any_limit(struct world* w, uint64_t committed) {
    if (chance(w, 20)) return 0;
    if (chance(w, 50)) return committed + below(w, 64 << 10);
    if (chance(w, 50)) return committed + (1 + below(w, 64)) * 4096; /* slabs may fill it to the last byte */
    return ((uint64_t)8192 << below(w, 11)) + (chance(w, 50) ? below(w, 8192) : 0);
}

struct limits {
    uint64_t soft, hard;
};

static inline struct limits any_limits(struct world* w, uint64_t committed) {
    struct limits l = {any_limit(w, committed), any_limit(w, committed)};
    if (l.hard && l.soft > l.hard && chance(w, 90)) l.soft = below(w, l.hard + 1);
    return l;
}

/* `late`: by how much the library's sum may differ from `committed`. */
static inline void limit_set(struct limit* l, const struct limits* to, bool mute, const void* ctx, uint64_t committed,
                             uint64_t late) {
    l->soft = to->soft, l->hard = to->hard, l->mute = mute, l->ctx = ctx;
    l->allowed = committed, l->late = late;
    l->passed = committed + late > to->soft;
    l->told_before = l->told_soft;
}

static inline void budget_of_label(struct world* w, struct side* s, bool mute) {
    char text[NAME_BYTES], name[32];
    const char* label = any_name(w, s, text);
    ref_label(name, label);
    unsigned k = name[0] ? account_known(s, name) : ACCOUNT_NONE;
    uint64_t committed = k < s->n_accounts ? committed_now(s, NULL, k).label : 0;
    struct limits l = any_limits(w, committed);
    bool sane = name[0] && (l.hard == 0 || l.hard >= l.soft);
    note(w, "budget s%d label '%s' soft %llu hard %llu", side_index(w, s), name, (unsigned long long)l.soft,
         (unsigned long long)l.hard);
    if (sane) k = account_find(s, name);
    errno = 0;
    bool done = slab_label_set_budget(s->a, label, l.soft, l.hard, mute ? NULL : label_told, &s->accounts[k]);
    REQUIRE_OR(done == (sane && k != ACCOUNT_OTHER), "a budget of label '%s' said %d", name, done);
    REQUIRE_OR(done || errno == (sane ? ENOMEM : EINVAL), "a refused budget gave errno %d", errno);
    if (!done) return;
    struct account* a = &s->accounts[k];
    a->muted |= mute;
    /* a thread's own is counted before its next slab is */
    bool pending = a->opened_most && (w->threads > 1 || s->options.shared);
    limit_set(&a->limit, &l, mute, a, committed, pending ? (uint64_t)PENDING_BYTES * (unsigned)w->threads : 0);
}

static inline void budget_of_epoch(struct world* w, struct side* s, bool mute) {
    struct inc* inc = any_named(w, s);
    uint64_t committed = committed_now(s, inc, 0).phase;
    struct limits l = any_limits(w, committed);
    note(w, "budget s%d epoch %#x soft %llu hard %llu", side_index(w, s), inc->id, (unsigned long long)l.soft,
         (unsigned long long)l.hard);
    errno = 0;
    bool done = slab_epoch_set_budget(s->a, inc->id, l.soft, l.hard, mute ? NULL : phase_told, inc);
    REQUIRE_OR(done == (l.hard == 0 || l.hard >= l.soft), "a budget of epoch %#x said %d", inc->id, done);
    REQUIRE_OR(done || errno == EINVAL, "a refused budget gave errno %d", errno);
    if (done) limit_set(&inc->limit, &l, mute, inc, committed, 0);
}

static inline void op_budget(struct world* w) {
    struct side* s = any_side(w);
    bool mute = chance(w, 10);
    if (!w->budgets) return;
    budget_world = w;
    if (chance(w, 50))
        budget_of_label(w, s, mute);
    else
        budget_of_epoch(w, s, mute);
}

#endif
