/*
 * ops_epochs.h - the ring, closing by id and by era, labels, counts, cleanups, upkeep.
 */
#ifndef MODEL_OPS_EPOCHS_H
#define MODEL_OPS_EPOCHS_H

#include "ops_objects.h"

static inline EpochCloseMode any_mode(struct world* w) { return chance(w, 75) ? EPOCH_DRAIN : EPOCH_RELEASE; }

/* Brackets a library call that ends an incarnation: cleanups that run inside must leave it alone. */
static inline uint64_t ending(struct inc* inc) {
    inc->releasing = true;
    return inc->state == INC_RELEASED ? 0 : inc->bytes.live;
}

/* A close by id or era: such closes look at the resident size, when there is something to end. */
static inline void asked(struct inc* inc) { inc->asked = true, inc->measured |= inc->objects.live > 0; }

static inline void ended(struct world* w, struct inc* inc, EpochCloseMode mode) {
    ref_close(w, inc, mode);
    inc->releasing = false;
}

static inline void op_advance(struct world* w) {
    struct side* s = any_side(w);
    note(w, "advance s%d from %u", side_index(w, s), s->current);
    EpochId next = (s->current + 1) % s->ring_size;
    if (chance(w, 50)) {
        EpochId told = epoch_advance_id(s->a);
        REQUIRE_OR(told == next, "advanced to %u, due %u", told, next);
    } else {
        epoch_advance(s->a);
    }
    check_named(s, ref_ring_moved(w, s));
}

static inline void op_close(struct world* w) {
    struct side* s = any_side(w);
    struct inc* inc = s->ring[below(w, s->ring_size)]; /* the current one, too: then the ring moves on */
    if (chance(w, 25)) inc = s->ring[(s->current + s->ring_size - 1) % s->ring_size];
    EpochCloseMode mode = any_mode(w);
    bool plain = mode == EPOCH_DRAIN && chance(w, 30);
    asked(inc);
    note(w, "close s%d epoch %u era %llu %s, %llu live", side_index(w, s), inc->id, (unsigned long long)inc->era,
         mode == EPOCH_DRAIN ? "drain" : "release", (unsigned long long)inc->objects.live);
    uint64_t bytes = ending(inc);
    EpochReceipt r;
    if (plain)
        epoch_close(s->a, inc->id);
    else
        REQUIRE_OR(epoch_close_ex(s->a, inc->id, mode, &r), "close of ring epoch %u refused", inc->id);
    ended(w, inc, mode);
    if (!plain) check_receipt(&r, inc, mode == EPOCH_RELEASE ? bytes : 0);
    check_named(s, inc);
    if (chance(w, 30)) check_held(s, inc);
}

/* Closes any remembered incarnation by its era: ring, moved past, or a domain's. */
static inline void op_close_era(struct world* w) {
    struct side* s = any_side(w);
    struct inc* inc = s->incs[below(w, s->n_incs)];
    for (int tries = 0; tries < 6 && (inc->named || inc->objects.live == 0); tries++)
        inc = s->incs[below(w, s->n_incs)];
    if (!inc->ring && inc->named && chance(w, 80)) return;
    EpochCloseMode mode = any_mode(w);
    struct dom* kept = kept_by_run(w, inc);
    bool sure = inc->objects.live > 0 || (inc->ring && inc->named) || inc->state == INC_ACTIVE;
    bool anothers = is_anothers_inc(w, inc);
    if (!anothers && !kept) asked(inc);
    note(w, "close s%d era %llu (%s) %s, %llu live", side_index(w, s), (unsigned long long)inc->era,
         inc->named ? "named" : "moved past", mode == EPOCH_DRAIN ? "drain" : "release",
         (unsigned long long)inc->objects.live);
    EpochReceipt r;
    if (anothers || kept) {
        errno = 0;
        bool closed = epoch_close_era(s->a, inc->era, mode, &r);
        refused_as_anothers(s, closed, errno);
        return;
    }
    uint64_t bytes = ending(inc);
    bool done = epoch_close_era(s->a, inc->era, mode, &r);
    REQUIRE_OR(done || !sure, "close of era %llu refused with %llu live objects", (unsigned long long)inc->era,
               (unsigned long long)inc->objects.live);
    if (!done) {
        inc->releasing = false;
        want(s, BIT(SLAB_MISUSE_BAD_EPOCH), 0, 1);
        return;
    }
    ended(w, inc, mode);
    check_receipt(&r, inc, mode == EPOCH_RELEASE ? bytes : 0);
}

/* An incarnation that is over: either unknown by now, or its balance is what it was. */
static inline void op_close_gone(struct world* w) {
    struct side* s = any_side(w);
    if (s->n_gone == 0) return;
    const struct gone* g = &s->gone[below(w, s->n_gone < GONE_KEPT ? s->n_gone : GONE_KEPT)];
    EpochReceipt r;
    note(w, "close s%d gone era %llu", side_index(w, s), (unsigned long long)g->era);
    if (epoch_close_era(s->a, g->era, any_mode(w), &r))
        check_sums(&r, &g->objects, &g->bytes);
    else
        want(s, BIT(SLAB_MISUSE_BAD_EPOCH), 0, 1);
}

/* ---- labels and counts ------------------------------------------------------------------ */

enum { NAME_BYTES = 64 };

/* Names that programs use, names that nobody should, and enough of them to run out of ids. Those with a hard budget
 * come more often. */
static inline const char* any_name(struct world* w, const struct side* s, char text[NAME_BYTES]) {
    static const char nothing_to_cut_at[] = "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80"
                                            "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80";
    static const char* const samples[] = {"",
                                          "GET /index",
                                          "worker-7",
                                          "request",
                                          "query",
                                          "a label that is longer than thirty-one bytes",
                                          "thirty-one bytes and an umlaut\xc3\xa4z",
                                          "exactly thirty-one bytes long..",
                                          "quote \" backslash \\ line\n tab\t",
                                          "\xff\xfe no text \x01\x7f",
                                          nothing_to_cut_at,
                                          "(other)",
                                          "(unlabeled)"};
    enum { SAMPLES = sizeof samples / sizeof *samples };
    const struct account* known = &s->accounts[below(w, s->n_accounts)];
    if (known->limit.hard) return known->name;
    unsigned k = (unsigned)below(w, SAMPLES + 4);
    if (k < SAMPLES) return samples[k];
    if (k == SAMPLES) return NULL;
    snprintf(text, NAME_BYTES, "route %u", (unsigned)below(w, 40));
    return text;
}

/* What moves to a label may break its budget, and nobody is told. */
static inline void label_moved(struct side* s, const struct inc* inc) {
    struct limit* l = &account_of(s, inc)->limit;
    if (!l->soft && !l->hard) return;
    uint64_t committed = committed_now(s, NULL, inc->account).label;
    if (committed > l->allowed) l->allowed = committed;
    l->passed |= committed > l->soft;
}

static inline void op_label(struct world* w) {
    struct side* s = any_side(w);
    struct inc* inc = any_named(w, s);
    char text[NAME_BYTES];
    const char* label = any_name(w, s, text);
    note(w, "label s%d epoch %#x '%s'", side_index(w, s), inc->id, label ? label : "(null)");
    slab_epoch_set_label(s->a, inc->id, label);
    book_relabelled(s, inc, label);
    label_moved(s, inc);
    check_named(s, inc);
}

static inline void op_refcount(struct world* w) {
    struct side* s = any_side(w);
    struct inc* inc = s->ring[below(w, s->ring_size)];
    note(w, "refcount s%d epoch %u", side_index(w, s), inc->id);
    if (chance(w, 50)) {
        slab_epoch_inc_refcount(s->a, inc->id);
        inc->refcount++;
    } else {
        slab_epoch_dec_refcount(s->a, inc->id);
        if (inc->refcount > 0) inc->refcount--;
    }
    REQUIRE_OR(slab_epoch_get_refcount(s->a, inc->id) == inc->refcount, "refcount of epoch %u", inc->id);
}

/* ---- cleanups --------------------------------------------------------------------------- */

/* Runs inside the library call that ends an incarnation; sometimes frees an object of another one. */
static void cleanup_runs(void* arg) {
    struct cleanup* c = arg;
    struct world* w = c->w;
    struct inc* inc = c->inc;
    note(w, "  cleanup %u of era %llu", c->index, (unsigned long long)inc->era);
    REQUIRE_OR(c->index == inc->n_cleanups - inc->n_ran - 1, "cleanup %u of era %llu ran as number %u of %u", c->index,
               (unsigned long long)inc->era, inc->n_ran, inc->n_cleanups);
    REQUIRE_OR(pthread_equal(pthread_self(), w->actor->thread), "a cleanup ran on a thread that was not called");
    inc->n_ran++;
    w->cleanups_ran++;
    struct side* s = &w->side[inc->side];
    struct obj* o = chance(w, 30) ? any_obj(w, s) : NULL;
    if (!o || o == w->in_call || o->inc->releasing || o->inc->n_cleanups || w->in_cleanup) return;
    w->in_cleanup = true;
    free_one(w, s, o);
    dead_moved(w, s); /* what the operation does after its cleanups may give the slab back */
    w->in_cleanup = false;
}

static inline void op_on_end(struct world* w) {
    struct side* s = any_side(w);
    struct inc* inc = any_named(w, s);
    if (inc->n_cleanups == MAX_CLEANUPS) return;
    struct cleanup* c = must_alloc(sizeof *c);
    *c = (struct cleanup){.w = w, .inc = inc, .index = inc->n_cleanups};
    note(w, "on_end s%d era %llu state %d", side_index(w, s), (unsigned long long)inc->era, inc->state);
    bool taken = slab_epoch_on_end(s->a, inc->id, cleanup_runs, c);
    REQUIRE_OR(taken || inc->state != INC_ACTIVE, "a cleanup for an open epoch was refused");
    REQUIRE_OR(!taken || inc->state < INC_CLOSED, "a cleanup for a closed epoch was taken");
    if (taken)
        inc->cleanups[inc->n_cleanups++] = c;
    else
        free(c);
    want(s, taken ? 0 : BIT(SLAB_MISUSE_CLOSED_EPOCH) | BIT(SLAB_MISUSE_BAD_EPOCH), 0, taken ? 0 : 1);
}

/* ---- upkeep ----------------------------------------------------------------------------- */

/* Whether the region that a run has claimed stays, though nothing may live in it: a run of the actor's own is open. */
static inline bool has_claims(const struct world* w, const struct side* s) {
    bool claims = false;
    for (unsigned i = 0; i < w->n_doms; i++) claims |= &w->side[w->doms[i]->side] == s && is_kept_by_run(w, w->doms[i]);
    return claims;
}

/* Whether a trim passes the domain by; sets *held to what its phase has committed then. */
static inline bool left_to_others(const struct world* w, const struct side* s, const struct dom* d, uint64_t* held) {
    SlabDomainStats t = {.struct_size = sizeof t};
    if (&w->side[d->side] != s || !d->own || !is_anothers_inc(w, d->inc)) return false;
    REQUIRE_OR(epoch_domain_stats(d->d, &t), "no statistics of another thread's domain, errno %d", errno);
    *held = t.committed_bytes;
    return true;
}

static inline void op_upkeep(struct world* w) {
    struct side* s = any_side(w);
    bool all = chance(w, 50);
    note(w, "%s s%d", all ? "trim" : "thread_flush", side_index(w, s));
    uint64_t held[MAX_DOMAINS] = {0};
    bool passes = has_claims(w, s);
    for (unsigned i = 0; all && i < w->n_doms; i++) passes |= left_to_others(w, s, w->doms[i], &held[i]);
    if (all)
        slab_trim(s->a);
    else
        slab_thread_flush(s->a);
    if (!all) return;
    /* Advancing reclaims nothing; a trim takes what lost its id for drained, as later slow paths may. */
    for (size_t i = 0; i < s->n_incs; i++)
        if (!s->incs[i]->named && s->incs[i]->state == INC_ADVANCED) s->incs[i]->state = INC_CLOSED;
    SlabGlobalStats g;
    slab_stats_global(s->a, &g);
    for (unsigned i = 0; i < w->n_doms; i++) {
        uint64_t now;
        if (left_to_others(w, s, w->doms[i], &now))
            REQUIRE_OR(now == held[i], "a trim changed %llu bytes of another thread's phase to %llu",
                       (unsigned long long)held[i], (unsigned long long)now);
    }
    if (!passes && s->n_objs == 0 && s->options.purge_policy == SLAB_PURGE_DONTNEED)
        REQUIRE_OR(g.committed_bytes == 0, "%llu bytes committed after a trim with nothing live",
                   (unsigned long long)g.committed_bytes);
}

static inline void op_small_questions(struct world* w) {
    struct side* s = any_side(w);
    PerfCounters p;
    SlabClassStats k;
    unsigned c = (unsigned)below(w, SLAB_FIXED_CLASSES);
    note(w, "counters of class %u", c);
    get_perf_counters(s->a, c, &p);
    slab_stats_class(s->a, c, &k);
    REQUIRE_OR(p.slow_path_hits == k.slow_path_hits && p.new_slab_count == k.new_slab_count, "class %u: two counts", c);
    get_perf_counters(s->a, 1u << 20, &p);
    REQUIRE_OR(p.slow_path_hits == 0, "a bad class has counters");
    REQUIRE_OR(slab_object_count(fixed_class[c]) >= 1, "no objects in a slab of class %u", c);
    REQUIRE_OR(slab_page_size() >= 4096 && slab_now_ns() > 0 && slab_version()[0] != 0, "the basics");
    SlabOptions bad = {.struct_size = sizeof bad, .ring_size = 1};
    REQUIRE_OR(slab_allocator_create_with(&bad) == NULL && slab_last_error()[0] != 0,
               "a ring of one epoch was accepted");
}

#endif
