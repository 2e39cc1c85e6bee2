/*
 * ops_moves.h - objects that go to another phase, what is made outside of every scope, and scopes that change hands.
 *
 * Each call here is booked like those of ops_objects.h and ops_domains.h that it consists of: a move is a birth and a
 * free, a switch is a detach and an attach or an enter, destroy_ex is a destroy that shows its receipt.
 */
#ifndef MODEL_OPS_MOVES_H
#define MODEL_OPS_MOVES_H

#include "ops_domains.h"

/* A domain of the side, or NULL. */
static inline struct dom* any_dom_of(struct world* w, const struct side* s) {
    struct dom* d = any_dom(w);
    return d && &w->side[d->side] == s ? d : NULL;
}

/* The refusal of a call that names a domain whose incarnation takes nothing. */
static inline void domain_refused(struct side* s, const void* p) {
    REQUIRE_OR(p == NULL && errno == ESTALE, "a closed incarnation gave %p, errno %d", p, errno);
    want_one(s, BIT(SLAB_MISUSE_CLOSED_EPOCH) | BIT(SLAB_MISUSE_DOMAIN_STALE));
}

/* Books an object that was made outside of every scope. It counts for the label of the phase that the thread is in, unless
 * the object is in that phase; a phase that has ended may have no label any more. */
static inline void book_outside(struct world* w, struct side* s, size_t bytes) {
    const struct dom* in = innermost(w->actor, side_index(w, s));
    if (!in || in->inc == s->ring[s->current]) return;
    s->outside_most.objects++, s->outside_most.bytes += bytes;
    if (in->inc->state == INC_ACTIVE) s->outside_least.objects++, s->outside_least.bytes += bytes;
}

/* ---- moves ------------------------------------------------------------------------------ */

static inline void op_move(struct world* w) {
    struct side* s = any_side(w);
    struct obj* o = any_obj(w, s);
    struct dom* d = chance(w, 60) ? any_dom_of(w, s) : NULL;
    if (!o || s->live_bytes + o->usable > max_live_bytes) return;
    struct inc *to = d ? d->inc : s->ring[s->current], *from = o->inc;
    note(w, "move s%d %p usable %zu era %llu -> %s era %llu", side_index(w, s), (void*)o->p, o->usable,
         (unsigned long long)from->era, d ? "domain" : "outside", (unsigned long long)to->era);
    check_contents(o);
    bool stays = to == from && to->state == INC_ACTIVE;
    struct birth b;
    w->in_call = o;
    birth_begin(w, &b, s, to);
    b.old = stays ? o->p : NULL;
    unsigned char* p = d ? epoch_domain_move(d->d, o->p) : slab_move_outside(s->a, o->p);
    w->in_call = NULL;
    if (!birth_end(w, &b, p, o->reach, 1)) {
        if (stays) {
            REQUIRE_OR(p == o->p, "an object that is in the phase already moved from %p to %p", (void*)o->p, (void*)p);
        } else if (to->state == INC_ACTIVE) {
            REQUIRE_OR(p && p != o->p, "move of %p gave %p, errno %d", (void*)o->p, (void*)p, errno);
            check_kept(o, p, o->reach);
            const struct obj* fresh =
                obj_born(w, s, to, p, o->reach, 0, 0, false); /* before the old one ends: no address is shared */
            if (!d) book_outside(w, s, fresh->reach);
            ref_freed(w, o);
            return;
        } else {
            domain_refused(s, p);
        }
    }
    check_contents(o);
    check_identity(s, o);
}

/* No call moves what is no object. */
static inline void op_move_dead(struct world* w) {
    struct side* s = any_side(w);
    if (s->n_dead == 0) return;
    const struct dead* dead = &s->dead[below(w, s->n_dead < DEAD_KEPT ? s->n_dead : DEAD_KEPT)];
    if (obj_covering(s, dead->p) || is_issued_again(s, dead->p)) return;
    struct dom* d = any_dom_of(w, s);
    if (d && d->inc->state != INC_ACTIVE) d = NULL;
    note(w, "misuse: move of dead %p", dead->p);
    errno = 0;
    void* p = d ? epoch_domain_move(d->d, dead->p) : slab_move_outside(s->a, dead->p);
    REQUIRE_OR(p == NULL && errno == EINVAL, "move of dead %p gave %p, errno %d", dead->p, p, errno);
    want_one(s, BIT(SLAB_MISUSE_DOUBLE_FREE) | BIT(SLAB_MISUSE_STALE_FREE) | BIT(SLAB_MISUSE_INTERIOR_POINTER) |
                    BIT(SLAB_MISUSE_FOREIGN_POINTER));
}

/* ---- outside of every scope ------------------------------------------------------------- */

static const char letters[] = "a text of eight and sixty bytes, that is copied as a whole or in parts";

static inline void op_outside(struct world* w) {
    struct side* s = any_side(w);
    struct inc* inc = s->ring[s->current];
    if (s->n_objs >= MAX_LIVE) return;
    unsigned how = (unsigned)below(w, 4);
    size_t size = how == 1 ? sizeof letters : how == 2 ? 1 + below(w, 40) : any_size(w);
    if (s->live_bytes + size > max_live_bytes) return;
    note(w, "outside s%d %zu bytes by way %u era %llu", side_index(w, s), size, how, (unsigned long long)inc->era);
    struct birth b;
    birth_begin(w, &b, s, inc);
    char* p = how == 0   ? slab_malloc_outside(s->a, size)
              : how == 1 ? slab_strdup_outside(s->a, letters)
              : how == 2 ? slab_asprintf_outside(s->a, "%.*s", (int)size - 1, letters)
                         : slab_realloc_outside(s->a, NULL, size);
    if (birth_end(w, &b, p, size, 1)) return;
    REQUIRE_OR(p && inc->state == INC_ACTIVE, "an allocation outside of scopes failed with errno %d", errno);
    if (how == 1 || how == 2)
        REQUIRE_OR(strncmp(p, letters, size - 1) == 0 && p[size - 1] == 0, "a copy of the text is another: %.80s", p);
    book_outside(w, s, size);
    obj_born(w, s, inc, p, size, 0, 0, false);
}

/* An outer scope from its beginning to its end: objects without an epoch go to the ring, wherever that moves. */
static inline void op_outer(struct world* w) {
    struct side* s = any_side(w);
    struct dom* top = top_dom(w);
    note(w, "outer scope s%d", side_index(w, s));
    REQUIRE_OR(slab_scope_outer(s->a), "no outer scope: errno %d", errno);
    REQUIRE_OR(epoch_domain_current() == NULL, "the domain below an outer scope is the innermost");
    for (uint64_t n = 1 + below(w, 8); n > 0 && s->n_objs < MAX_LIVE; n--) {
        struct inc* inc = s->ring[s->current];
        size_t size = 1 + below(w, 768);
        struct birth b;
        birth_begin(w, &b, s, inc);
        void* p = slab_malloc(s->a, size);
        if (birth_end(w, &b, p, size, 1)) continue;
        REQUIRE_OR(p, "an allocation in an outer scope failed with errno %d", errno);
        obj_born(w, s, inc, p, size, 0, 0, false);
        if (chance(w, 10)) {
            epoch_advance(s->a);
            check_named(s, ref_ring_moved(w, s));
        }
    }
    if (top && chance(w, 50)) {
        REQUIRE_OR(!epoch_domain_exit(top->d), "a domain below an outer scope was left");
        want_one(&w->side[top->side], BIT(SLAB_MISUSE_DOMAIN_ORDER));
    }
    if (chance(w, 20)) {
        struct side* other = &w->side[1 - side_index(w, s)];
        REQUIRE_OR(!slab_scope_outer_leave(other->a), "another allocator's outer scope was left");
        want_one(other, BIT(SLAB_MISUSE_DOMAIN_ORDER));
    }
    REQUIRE_OR(slab_scope_outer_leave(s->a), "the outer scope could not be left, errno %d", errno);
    check_scopes(w);
    if (chance(w, 80)) return;
    REQUIRE_OR(!slab_scope_outer_leave(s->a), "an outer scope was left twice");
    want_one(s, BIT(SLAB_MISUSE_DOMAIN_ORDER));
}

/* ---- in a domain, by each of its calls -------------------------------------------------- */

enum { BY_CALLOC, BY_ALIGNED, BY_HANDLE, BY_REALLOC, BY_STRDUP, BY_STRNDUP, BY_MEMDUP, BY_PRINTF, DOMAIN_WAYS };

static inline void* by_way(struct dom* d, unsigned how, size_t size, size_t align, SlabHandle* h) {
    switch (how) {
    case BY_CALLOC:
        return epoch_domain_calloc(d->d, size, 1);
    case BY_ALIGNED:
        return epoch_domain_aligned_alloc(d->d, align, size);
    case BY_HANDLE:
        return epoch_domain_alloc_obj(d->d, size, align, h);
    case BY_REALLOC:
        return epoch_domain_realloc(d->d, NULL, size);
    case BY_STRDUP:
        return epoch_domain_strdup(d->d, letters);
    case BY_STRNDUP:
        return epoch_domain_strndup(d->d, letters, size - 1);
    case BY_MEMDUP:
        return epoch_domain_memdup(d->d, letters, size);
    default:
        return epoch_domain_asprintf(d->d, "%.*s", (int)size - 1, letters);
    }
}

static inline void op_domain_ways(struct world* w) {
    struct dom* d = any_dom(w);
    if (!d || w->side[d->side].n_objs >= MAX_LIVE) return;
    struct side* s = &w->side[d->side];
    unsigned how = (unsigned)below(w, DOMAIN_WAYS);
    bool text = how >= BY_STRDUP, aligned = how == BY_ALIGNED || how == BY_HANDLE;
    size_t size = how == BY_STRDUP ? sizeof letters : 1 + below(w, text ? sizeof letters : chance(w, 90) ? 900 : 9000);
    size_t align = aligned ? (size_t)1 << below(w, 13) : 1;
    note(w, "domain way %u s%d %zu bytes align %zu era %llu state %d", how, d->side, size, align,
         (unsigned long long)d->inc->era, d->inc->state);
    SlabHandle h = 0x5555;
    struct birth b;
    birth_begin(w, &b, s, d->inc);
    char* p = by_way(d, how, size, align, &h);
    if (how != BY_HANDLE) h = 0;
    bool over = birth_end(w, &b, p, size, align);
    REQUIRE_OR(how != BY_HANDLE || !h == !p, "object %p has handle %#llx", (void*)p, (unsigned long long)h);
    if (over) return;
    if (d->inc->state != INC_ACTIVE) {
        domain_refused(s, p);
        return;
    }
    REQUIRE_OR(p, "way %u failed with errno %d", how, errno);
    if (how == BY_CALLOC) check_zeroed((unsigned char*)p, size);
    if (text) REQUIRE_OR(strncmp(p, letters, size - 1) == 0, "a copy of the text is another: %.80s", p);
    if (text && how != BY_MEMDUP) REQUIRE_OR(p[size - 1] == 0, "a copy of the text has no end");
    obj_born(w, s, d->inc, p, size, align, h, false);
}

/* What admission control reads. */
static inline void op_domain_stats(struct world* w) {
    struct dom* d = any_dom(w);
    if (!d) return;
    const struct inc* inc = d->inc;
    note(w, "stats s%d %s era %llu state %d", d->side, d->own ? "own" : "borrowed", (unsigned long long)inc->era,
         inc->state);
    SlabDomainStats t = {.struct_size = sizeof t};
    errno = 0;
    bool there = epoch_domain_stats(d->d, &t);
    REQUIRE_OR(there || (errno == ESTALE && inc->state != INC_ACTIVE),
               "no statistics of era %llu in state %d, errno %d", (unsigned long long)inc->era, inc->state, errno);
    REQUIRE_EQ(epoch_domain_era(d->d), inc->era);
    if (!there) return;
    REQUIRE_EQ(t.epoch_era, inc->era);
    REQUIRE_EQ(t.live_objects, inc->objects.live);
    REQUIRE_EQ(t.live_bytes, inc->bytes.live);
    REQUIRE_LE(t.live_bytes, t.committed_bytes);
    REQUIRE_EQ(t.slabs == 0, t.committed_bytes == 0);
}

/* ---- making and ending by options ------------------------------------------------------- */

static uint64_t budget_keys;

static inline void op_domain_create_ex(struct world* w) {
    struct side* s = any_side(w);
    if (w->n_doms == MAX_DOMAINS) return;
    char text[NAME_BYTES];
    SlabDomainOptions o = {.struct_size = sizeof o, .label = any_name(w, s, text)};
    unsigned wrong = chance(w, 25) ? 1 + (unsigned)below(w, 3) : 0;
    o.flags = (chance(w, 50) ? SLAB_DOMAIN_KEEP : 0) | (chance(w, 50) ? SLAB_DOMAIN_OWNER_ONLY : 0) |
              (chance(w, 30) ? SLAB_DOMAIN_UNTIMED : 0);
    struct limits l = {0, 0};
    bool mute = chance(w, 10);
    uint64_t key = ++budget_keys; /* what its function is told: the domain is not there yet */
    if (w->budgets && chance(w, 50)) l = any_limits(w, 0);
    if (l.hard && l.soft > l.hard) l.soft = l.hard;
    o.soft_bytes = l.soft, o.hard_bytes = l.hard;
    o.budget_fn = mute ? NULL : phase_told, o.budget_ctx = (void*)(uintptr_t)key;
    if (wrong == 1) o.struct_size = 8;
    if (wrong == 2) o.flags |= 1u << 31;
    if (wrong == 3) o.soft_bytes = 2, o.hard_bytes = 1;
    note(w, "domain create_ex s%d '%s' flags %#x soft %llu hard %llu wrong %u", side_index(w, s),
         o.label ? o.label : "(null)", o.flags, (unsigned long long)o.soft_bytes, (unsigned long long)o.hard_bytes,
         wrong);
    budget_world = w;
    errno = 0;
    epoch_domain_t* raw = epoch_domain_create_ex(s->a, &o);
    REQUIRE_OR(!raw == !!wrong && (raw || errno == EINVAL), "create_ex, wrong %u, gave %p, errno %d", wrong, (void*)raw,
               errno);
    if (!raw) return;
    struct dom* d = dom_new(w, s, raw, true, o.label);
    REQUIRE_OR(d->auto_close == !(o.flags & SLAB_DOMAIN_KEEP), "auto_close of a domain with flags %#x", o.flags);
    if (o.flags & SLAB_DOMAIN_OWNER_ONLY) d->owner = (unsigned)w->actor->slot + 1;
    d->untimed = (o.flags & SLAB_DOMAIN_UNTIMED) != 0;
    limit_set(&d->budget, &l, mute, o.budget_ctx, 0, 0);
    follow(w, d);
    check_dom(w, d);
}

/* Objects that are replaced in turn in a phase that is under a limit from its first one on: its regions serve them all, where
 * a class for each size would reach the limit. */
static inline void op_churn(struct world* w) {
    struct side* s = any_side(w);
    char text[NAME_BYTES];
    struct limits l = {0, (8 + below(w, 64)) << 10};
    uint64_t n = chance(w, 15) ? 1000 + below(w, 1500) : below(w, 60), key = ++budget_keys;
    SlabDomainOptions o = {.struct_size = sizeof o, .label = any_name(w, s, text), .hard_bytes = l.hard};
    o.budget_fn = phase_told, o.budget_ctx = (void*)(uintptr_t)key;
    if (!w->budgets || w->n_doms == MAX_DOMAINS) return;
    note(w, "churn s%d '%s' %llu objects, hard %llu", side_index(w, s), o.label ? o.label : "(null)",
         (unsigned long long)n, (unsigned long long)l.hard);
    budget_world = w;
    epoch_domain_t* raw = epoch_domain_create_ex(s->a, &o);
    REQUIRE_OR(raw, "no domain, errno %d", errno);
    struct dom* d = dom_new(w, s, raw, true, o.label);
    limit_set(&d->budget, &l, false, o.budget_ctx, 0, 0);
    follow(w, d);
    void* live[24] = {NULL}; /* a function that is told of the budget may free some */
    for (uint64_t stay = 1 + below(w, 24); n > 0 && s->n_objs < MAX_LIVE; n--) {
        size_t size = 1 + below(w, chance(w, 95) ? 2048 : 4096);
        struct obj* old = obj_covering(s, live[n % stay]);
        if (old && old->p == live[n % stay] && old->inc == d->inc) free_one(w, s, old);
        struct birth b;
        birth_begin(w, &b, s, d->inc);
        void* p = epoch_domain_malloc(d->d, size);
        if (birth_end(w, &b, p, size, 1)) break;
        REQUIRE_OR(p, "domain_malloc failed with errno %d", errno);
        live[n % stay] = obj_born(w, s, d->inc, p, size, 0, 0, false)->p;
    }
    check_dom(w, d);
}

/* Nobody borrows a phase that is one thread's alone, not even that thread. Counted as nothing. */
static inline void op_wrap_owned(struct world* w) {
    struct dom* d = any_dom(w);
    for (int tries = 0; d && !d->owner && tries < 10; tries++) d = any_dom(w);
    if (!d || !d->owner || d->inc->state != INC_ACTIVE) return;
    note(w, "wrap s%d era %llu, which is one thread's alone", d->side, (unsigned long long)d->inc->era);
    errno = 0;
    REQUIRE_OR(!epoch_domain_wrap(w->side[d->side].a, d->inc->id, chance(w, 50)) && errno == EBUSY,
               "a phase that is one thread's alone was borrowed, errno %d", errno);
    check_dom(w, d);
}

static inline void op_domain_destroy_ex(struct world* w) {
    struct dom* d = any_dom(w);
    if (!d) return;
    struct inc* inc = d->inc;
    note(w, "destroy_ex s%d %s era %llu state %d refcount %u", d->side, d->own ? "own" : "borrowed",
         (unsigned long long)inc->era, inc->state, d->refcount);
    EpochReceipt r;
    if (d->refcount > 0 || is_anothers_dom(w, d) || is_kept_by_run(w, d)) {
        errno = 0;
        REQUIRE_OR(!epoch_domain_destroy_ex(d->d, &r) && errno == EBUSY,
                   "destroyed with others inside, or with a run open, errno %d", errno);
        want_one(&w->side[d->side], BIT(SLAB_MISUSE_DOMAIN_ORDER));
        check_dom(w, d);
        return;
    }
    bool drains = !d->own && d->auto_close && d->entered && !d->drained && inc->named && inc->scopes == 0;
    uint64_t bytes = d->own ? ending(inc) : 0;
    if (drains) (void)ending(inc);
    REQUIRE_OR(epoch_domain_destroy_ex(d->d, &r), "destroy of a domain that nobody is inside was refused");
    if (d->own || drains) {
        ended(w, inc, d->own ? EPOCH_RELEASE : EPOCH_DRAIN);
        if (!d->vanished) check_receipt(&r, inc, bytes);
    } else {
        REQUIRE_OR(r.version == 2 && (r.epoch_era == 0 || r.epoch_era == inc->era), "a receipt of era %llu",
                   (unsigned long long)r.epoch_era);
    }
    ref_dom_drop(w, d);
}

/* ---- switches --------------------------------------------------------------------------- */

static inline void switched(struct world* w, struct dom* old, struct dom* to, bool claimed) {
    struct actor* t = w->actor;
    if (old) t->depth--, old->detached++;
    if (!to) return;
    if (claimed) {
        t->stack[t->depth++] = to;
        to->detached--;
        return;
    }
    if (to->d->epoch_era != to->inc->era) follow(w, to);
    ref_enter(t, to);
}

static inline void op_domain_switch(struct world* w) {
    struct dom *old = top_dom(w), *to = chance(w, 90) ? any_dom(w) : NULL;
    if (w->actor->depth == MAX_STACK) return;
    bool claimed = to && to->detached > 0, same = to == old;
    bool anothers = to && is_anothers_dom(w, to), kept = !same && old && is_kept_by_run(w, old);
    bool runs = to && !same && !claimed && to->refcount == 0 && is_kept_by_run(w, to); /* it would be entered */
    bool may = !kept && !runs && (!to || same || claimed || (to->refcount == 0 && !dom_stale(to)));
    note(w, "switch to s%d era %llu detached %u refcount %u%s", to ? to->side : -1,
         to ? (unsigned long long)to->inc->era : 0, to ? to->detached : 0, to ? to->refcount : 0,
         same ? " (same)" : "");
    epoch_domain_t* from = (epoch_domain_t*)(void*)w;
    errno = 0;
    bool done = epoch_domain_switch(to ? to->d : NULL, &from);
    if (anothers || kept || runs)
        REQUIRE_OR(!done && errno == EBUSY, "a switch from or to what others or a run keep said %d, errno %d", done,
                   errno);
    else REQUIRE_OR(done == may, "a switch said %d, due %d", done, may);
    REQUIRE_OR(from == (done ? old ? old->d : NULL : (epoch_domain_t*)(void*)w), "a switch came from %p", (void*)from);
    if (!done) want_one(&w->side[anothers || !kept ? to->side : old->side], domain_misuse);
    else if (!same) switched(w, old, to, claimed);
    if (old) check_dom(w, old);
    if (to) check_dom(w, to);
    check_scopes(w);
}

#endif
