/*
 * reference.h - the naive allocator: tables and sums, no library calls but the clock.
 *
 * Every object is in two arrays of its side, one in any order (to choose at random) and one sorted
 * by address (to find overlaps and to tell whether an address is alive). An object's life moves
 * its incarnation's balance: allocated = freed + released + live at every moment, live being what
 * a receipt calls escaped; accounts.h keeps the same by label. An incarnation is forgotten when
 * nothing can ask about it any more; its last balance stays in a short list, because its era may
 * still be answered for a while.
 */
#ifndef MODEL_REFERENCE_H
#define MODEL_REFERENCE_H

#include "accounts.h"

/* ---- contents --------------------------------------------------------------------------- */

/* Objects up to this size are written and checked whole; of larger ones both ends and one word a page. */
enum { WHOLE = 8192, ENDS = 1024, STRIDE = 4096 };

static inline uint64_t pattern_word(uint64_t seed, size_t offset) {
    return (seed + offset) * 0x9e3779b97f4a7c15u ^ (seed >> 7);
}

static inline bool pattern_range(unsigned char* p, size_t from, size_t to, uint64_t seed, bool write) {
    for (size_t at = from; at < to; at += 8) {
        uint64_t word = pattern_word(seed, at);
        size_t n = to - at < 8 ? to - at : 8;
        if (write)
            memcpy(p + at, &word, n);
        else if (memcmp(p + at, &word, n) != 0)
            return false;
    }
    return true;
}

/* Writes or checks the pattern of an object of `size` usable bytes, as far as `upto`. */
static inline bool pattern(unsigned char* p, size_t size, size_t upto, uint64_t seed, bool write) {
    if (size <= WHOLE) return pattern_range(p, 0, upto, seed, write);
    if (!pattern_range(p, 0, upto < ENDS ? upto : ENDS, seed, write)) return false;
    size_t tail = (size - ENDS) & ~(size_t)7;
    for (size_t at = STRIDE; at + 8 <= tail && at + 8 <= upto; at += STRIDE)
        if (!pattern_range(p, at, at + 8, seed, write)) return false;
    return upto <= tail || pattern_range(p, tail, upto, seed, write);
}

/* ---- objects by address ----------------------------------------------------------------- */

/* Index of the first object that ends after p. */
static inline size_t sorted_find(const struct side* s, const void* p) {
    size_t low = 0, high = s->n_objs;
    while (low < high) {
        size_t mid = (low + high) / 2;
        if ((uintptr_t)s->sorted[mid]->p + s->sorted[mid]->reach > (uintptr_t)p)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

/* The live object that p points into, or NULL. */
static inline struct obj* obj_covering(const struct side* s, const void* p) {
    size_t i = sorted_find(s, p);
    if (i == s->n_objs || (uintptr_t)s->sorted[i]->p > (uintptr_t)p) return NULL;
    return s->sorted[i];
}

/* Whether p is an object's again, or its slot, which the library takes for it. */
static inline bool is_issued_again(const struct side* s, const void* p) {
    const struct obj* cover = obj_covering(s, p);
    if (cover && cover->p == p) return true;
    for (size_t n = 0; n < s->n_objs; n++)
        if (s->objs[n]->slot == p) return true;
    return false;
}

static inline void objs_reserve(struct side* s) {
    if (s->n_objs < s->cap_objs) return;
    s->cap_objs = s->cap_objs ? 2 * s->cap_objs : 1024;
    s->objs = realloc(s->objs, s->cap_objs * sizeof *s->objs);
    s->sorted = realloc(s->sorted, s->cap_objs * sizeof *s->sorted);
    if (!s->objs || !s->sorted) _Exit(2);
}

static inline void ref_add(struct side* s, struct obj* o) {
    objs_reserve(s);
    size_t i = sorted_find(s, o->p);
    memmove(&s->sorted[i + 1], &s->sorted[i], (s->n_objs - i) * sizeof *s->sorted);
    s->sorted[i] = o;
    o->at = s->n_objs;
    s->objs[s->n_objs++] = o;
    s->live_bytes += o->usable;
    book_birth(s, o->inc, o->usable, o->large);
}

static inline void remember_dead(struct world* w, struct side* s, const struct obj* o, bool plain) {
    struct dead* d = &s->dead[s->n_dead++ % DEAD_KEPT];
    *d = (struct dead){.p = o->p, .h = o->h, .usable = o->usable, .op = w->op, .plain = plain};
}

/* What ended in this operation may be in slabs that have gone since: what a second free meets is not known. */
static inline void dead_moved(struct world* w, struct side* s) {
    for (uint64_t n = s->n_dead; n > 0 && s->n_dead - n < DEAD_KEPT && s->dead[(n - 1) % DEAD_KEPT].op == w->op; n--)
        s->dead[(n - 1) % DEAD_KEPT].plain = false;
}

static inline void ref_remove(struct side* s, struct obj* o) {
    size_t i = sorted_find(s, o->p);
    memmove(&s->sorted[i], &s->sorted[i + 1], (s->n_objs - i - 1) * sizeof *s->sorted);
    s->n_objs--;
    s->objs[o->at] = s->objs[s->n_objs];
    s->objs[o->at]->at = o->at;
    s->live_bytes -= o->usable;
}

/* ---- incarnations ----------------------------------------------------------------------- */

/* Eras of the ring rise; those of domains are only unique. */
static inline void era_is_new(struct side* s, uint64_t era, EpochId id, bool ring) {
    REQUIRE_OR(era > 0 && era < (1u << 28), "epoch %#x has era %llu", id, (unsigned long long)era);
    while (era / 8 >= s->eras_known) {
        uint64_t more = s->eras_known ? 2 * s->eras_known : 4096;
        s->era_used = realloc(s->era_used, more);
        if (!s->era_used) _Exit(2);
        memset(s->era_used + s->eras_known, 0, more - s->eras_known);
        s->eras_known = more;
    }
    REQUIRE_OR((s->era_used[era / 8] >> era % 8 & 1) == 0, "era %llu of epoch %#x was used before",
               (unsigned long long)era, id);
    s->era_used[era / 8] |= (uint8_t)(1u << era % 8);
    REQUIRE_OR(!ring || era > s->max_ring_era, "era %llu of ring epoch %u is not larger than %llu",
               (unsigned long long)era, id, (unsigned long long)s->max_ring_era);
    if (ring) s->max_ring_era = era;
    if (era > s->max_era) s->max_era = era;
}

static inline struct inc* ref_open(struct world* w, int side, uint64_t era, EpochId id, bool ring, const char* label) {
    struct side* s = &w->side[side];
    era_is_new(s, era, id, ring);
    w->phases++;
    struct inc* inc = must_alloc(sizeof *inc);
    inc->side = side, inc->era = era, inc->id = id, inc->ring = ring, inc->named = true;
    inc->opened_ns = slab_now_ns();
    ref_label(inc->label, label);
    book_opened(s, inc);
    if (s->n_incs == s->cap_incs) {
        s->cap_incs = s->cap_incs ? 2 * s->cap_incs : 64;
        s->incs = realloc(s->incs, s->cap_incs * sizeof *s->incs);
        if (!s->incs) _Exit(2);
    }
    s->incs[s->n_incs++] = inc;
    return inc;
}

/* True once the incarnation has ended: its cleanups are due. */
static inline bool inc_ended(const struct inc* inc) {
    return inc->state == INC_RELEASED || (inc->state == INC_CLOSED && inc->objects.live == 0);
}

/* Drops incarnations that nothing refers to; keeps their balance for late questions by era. */
static inline void ref_forget(struct side* s) {
    for (size_t i = 0; i < s->n_incs;) {
        struct inc* inc = s->incs[i];
        bool needed = inc->named || inc->state == INC_ADVANCED || /* may hold empty slabs until it is looked at */
                      inc->pins || inc->objects.live || inc->n_ran < inc->n_cleanups || inc->releasing;
        if (needed) {
            i++;
            continue;
        }
        s->gone[s->n_gone++ % GONE_KEPT] = (struct gone){.era = inc->era, .objects = inc->objects, .bytes = inc->bytes};
        for (unsigned c = 0; c < inc->n_cleanups; c++) free(inc->cleanups[c]);
        s->incs[i] = s->incs[--s->n_incs];
        free(inc);
    }
}

static inline struct inc* inc_by_era(const struct side* s, uint64_t era) {
    for (size_t i = 0; i < s->n_incs; i++)
        if (s->incs[i]->era == era) return s->incs[i];
    return NULL;
}

/* One object ended by a free. */
static inline void ref_freed(struct world* w, struct obj* o) {
    struct side* s = &w->side[o->inc->side];
    book_freed(s, o->inc, o->usable, o->large);
    remember_dead(w, s, o, o->inc->state == INC_ACTIVE);
    ref_remove(s, o);
    free(o);
}

/* All objects of the incarnation ended by a release. */
static inline void ref_release(struct world* w, struct inc* inc) {
    struct side* s = &w->side[inc->side];
    book_closed(s, inc, false);
    if (inc->state == INC_ACTIVE) book_ended(s, inc);
    inc->state = INC_RELEASED;
    if (inc->objects.live == 0) return;
    size_t kept = 0;
    for (size_t i = 0; i < s->n_objs; i++)
        if (s->sorted[i]->inc != inc) s->sorted[kept++] = s->sorted[i];
    kept = 0;
    for (size_t i = 0; i < s->n_objs; i++) {
        struct obj* o = s->objs[i];
        if (o->inc != inc) {
            o->at = kept;
            s->objs[kept++] = o;
            continue;
        }
        if (o->seed % 10 == 0) remember_dead(w, s, o, false); /* a sample */
        s->live_bytes -= o->usable;
        free(o);
    }
    s->n_objs = kept;
    book_released(s, inc);
}

/* The ring has moved past it. */
static inline void ref_advanced(struct side* s, struct inc* inc) {
    if (inc->state != INC_ACTIVE) return;
    book_ended(s, inc);
    inc->state = INC_ADVANCED;
}

/* The ring has moved on, which is asked of nobody but the era of what came. */
static inline struct inc* ref_ring_moved(struct world* w, struct side* s) {
    EpochId next = (s->current + 1) % s->ring_size;
    ref_advanced(s, s->ring[s->current]);
    s->current = next;
    s->ring[next]->named = false;
    ref_advanced(s, s->ring[next]);
    return s->ring[next] = ref_open(w, (int)(s - w->side), epoch_era(s->a, next), next, true, "");
}

static inline void ref_close(struct world* w, struct inc* inc, EpochCloseMode mode) {
    struct side* s = &w->side[inc->side];
    if (s->ring[s->current] == inc) (void)ref_ring_moved(w, s);
    if (mode == EPOCH_RELEASE) {
        ref_release(w, inc);
        return;
    }
    book_closed(s, inc, true);
    if (inc->state == INC_ACTIVE) book_ended(s, inc);
    if (inc->state != INC_RELEASED) inc->state = INC_CLOSED;
}

/* ---- domains ---------------------------------------------------------------------------- */

/* Whether it is another actor's alone: this one is refused any use of it. */
static inline bool is_anothers_dom(const struct world* w, const struct dom* d) {
    return d->owner != 0 && d->owner != (unsigned)w->actor->slot + 1;
}

/* Whether a run is open in it that the actor has begun: calls that would end its phase or take it from the thread are
 * refused, and so is one that enters it. */
static inline bool is_kept_by_run(const struct world* w, const struct dom* d) {
    return d->run_state == RUN_OPEN && !is_anothers_dom(w, d);
}

/* The domain of the actor's own whose open run keeps the incarnation, or NULL. */
static inline struct dom* kept_by_run(const struct world* w, const struct inc* inc) {
    for (unsigned i = 0; i < w->n_doms; i++)
        if (w->doms[i]->inc == inc && is_kept_by_run(w, w->doms[i])) return w->doms[i];
    return NULL;
}

static inline bool is_anothers_inc(const struct world* w, const struct inc* inc) {
    return inc->owner != 0 && inc->owner != (unsigned)w->actor->slot + 1 && inc->state == INC_ACTIVE;
}

/* Innermost scope of the side on the actor's stack, or NULL. */
static inline struct dom* innermost(const struct actor* t, int side) {
    for (unsigned i = t->depth; i-- > 0;)
        if (t->stack[i]->side == side) return t->stack[i];
    return NULL;
}

/* The incarnation an allocation without an epoch goes to. */
static inline struct inc* implicit_target(const struct actor* t, int side) {
    const struct dom* d = innermost(t, side);
    return d ? d->inc : t->w->side[side].ring[t->w->side[side].current];
}

static inline unsigned scopes_of(const struct actor* t, const struct dom* d) {
    unsigned n = 0;
    for (unsigned i = 0; i < t->depth; i++) n += t->stack[i] == d;
    return n;
}

static inline void dom_bind(struct dom* d, struct inc* inc) {
    if (d->inc) {
        d->inc->pins--;
        d->inc->scopes -= d->refcount;
        if (d->own) d->inc->named = false;
    }
    d->inc = inc;
    if (inc) inc->pins++, inc->scopes += d->refcount;
}

static inline void ref_enter(struct actor* t, struct dom* d) {
    t->stack[t->depth++] = d;
    d->refcount++;
    d->inc->scopes++;
    d->entered = true;
}

/* The ending that the last exit brings about, if any. True when the incarnation was ended by it. */
static inline bool ref_exit(struct actor* t) {
    struct dom* d = t->stack[--t->depth];
    d->refcount--;
    d->inc->scopes--;
    if (d->refcount > 0 || !d->auto_close) return false;
    if (d->own) {
        ref_release(t->w, d->inc);
        return true;
    }
    if (!d->inc->named || d->inc->scopes > 0) return false;
    ref_close(t->w, d->inc, EPOCH_DRAIN);
    d->drained = true;
    return true;
}

/* Takes all scopes off a domain whose actor is no more: its phase has been released, and it is anybody's. */
static inline void ref_disown(struct world* w, struct dom* d) {
    if (d->run_state == RUN_OPEN) d->run_state = RUN_LOST;
    d->inc->scopes -= d->refcount;
    d->refcount = d->detached = 0;
    d->owner = 0;
    ref_release(w, d->inc);
    d->inc->releasing = false;
}

static inline void ref_dom_drop(struct world* w, struct dom* d) {
    dom_bind(d, NULL);
    w->dead_doms[w->n_dead_doms % DEAD_DOMAINS].d = d->d;
    w->dead_doms[w->n_dead_doms++ % DEAD_DOMAINS].side = d->side;
    for (unsigned i = 0; i < w->n_doms; i++)
        if (w->doms[i] == d) {
            w->doms[i] = w->doms[--w->n_doms];
            break;
        }
    free(d);
}

#endif
