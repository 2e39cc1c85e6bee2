/*
 * accounts.h - the reference's books by label.
 *
 * A label gets its account when a call names it first, as the library gives it an id; without room everything goes to
 * "(other)". What happens to an object or incarnation is booked under the label that its incarnation has in that
 * moment; a relabelling takes along what lives and leaves the past where it was.
 */
#ifndef MODEL_ACCOUNTS_H
#define MODEL_ACCOUNTS_H

#include "world.h"

enum { ACCOUNT_NONE = 0, ACCOUNT_OTHER = 1 };

/* How far a hard limit may be passed. */
static inline uint64_t limit_slack(const struct limit* l) {
    return (l->allowed > l->hard ? l->allowed - l->hard : 0) + l->late;
}

/* What is kept of a label: 31 bytes, cut where a character begins. */
static inline void ref_label(char out[32], const char* label) {
    size_t n = label ? strlen(label) : 0;
    if (n > 31) {
        n = 31;
        while (n > 0 && ((unsigned char)label[n] & 0xc0) == 0x80) n--;
    }
    memset(out, 0, 32);
    if (label) memcpy(out, label, n);
}

static inline void accounts_open(struct side* s, unsigned max_labels) {
    s->max_labels = max_labels, s->n_accounts = 2;
    snprintf(s->accounts[ACCOUNT_NONE].name, 32, "(unlabeled)");
    snprintf(s->accounts[ACCOUNT_OTHER].name, 32, "(other)");
}

/* The account of a name as ref_label made it; n_accounts when it has none. */
static inline unsigned account_known(const struct side* s, const char name[32]) {
    unsigned k = 0;
    while (k < s->n_accounts && memcmp(s->accounts[k].name, name, 32) != 0) k++;
    return k;
}

/* The same; opened when there is room. */
static inline unsigned account_find(struct side* s, const char name[32]) {
    if (name[0] == 0) return ACCOUNT_NONE;
    unsigned k = account_known(s, name);
    if (k < s->n_accounts) return k;
    if (s->n_accounts == s->max_labels) return ACCOUNT_OTHER;
    memcpy(s->accounts[s->n_accounts].name, name, 32);
    return s->n_accounts++;
}

/* Public id: 0 unlabeled, then in order of first use, the highest "(other)". */
static inline uint32_t account_id(const struct side* s, unsigned k) {
    return k == ACCOUNT_NONE ? 0 : k == ACCOUNT_OTHER ? s->max_labels - 1 : k - 1;
}

static inline struct account* account_of(struct side* s, const struct inc* inc) { return &s->accounts[inc->account]; }

/* ---- incarnations ----------------------------------------------------------------------- */

static inline void book_opened(struct side* s, struct inc* inc) {
    inc->account = account_find(s, inc->label);
    account_of(s, inc)->open++, account_of(s, inc)->opened_most++;
    if (inc->account == ACCOUNT_OTHER) account_of(s, inc)->swallowed++;
}

/* It leaves ACTIVE. */
static inline void book_ended(struct side* s, struct inc* inc) {
    struct account* a = account_of(s, inc);
    a->open--, a->ended++;
    if (inc->objects.allocated > 0) a->ended_held++, a->ended_timed += !inc->untimed;
}

/* Slabs that the live objects are in at least: each size has its own, but in regions. */
static inline uint64_t slabs_least(const struct side* s, const struct inc* inc) {
    uint64_t sizes = 0, n = inc->large_live;
    for (size_t i = 0; i < s->n_objs && inc->objects.live > inc->large_live; i++) {
        const struct obj* o = s->objs[i];
        if (o->inc != inc || o->large) continue;
        unsigned log = 63 - (unsigned)__builtin_clzll(o->usable);
        sizes |= (uint64_t)1 << (o->bumped ? 0 : log);
    }
    return n + (uint64_t)__builtin_popcountll(sizes);
}

/* A close, by draining or not. Slabs of an open incarnation are first looked at by its end. */
static inline void book_closed(struct side* s, struct inc* inc, bool drains) {
    struct account* a = account_of(s, inc);
    uint64_t slabs = inc->state == INC_ACTIVE ? slabs_least(s, inc) : 0;
    a->closed_least += slabs, a->pinned_least += drains ? slabs : 0;
    if (!drains || inc->drained || inc->state == INC_RELEASED) return;
    inc->drained = true;
    a->objects_escaped += inc->objects.live, a->bytes_escaped += inc->bytes.live;
}

static inline void book_relabelled(struct side* s, struct inc* inc, const char* label) {
    struct account *from = account_of(s, inc), *to;
    ref_label(inc->label, label);
    unsigned k = account_find(s, inc->label);
    if (k == inc->account) return;
    inc->account = k;
    to = &s->accounts[k];
    if (inc->state == INC_ACTIVE) from->open--, to->open++;
    to->opened_most++;
    if (k == ACCOUNT_OTHER) to->swallowed++;
    from->objects.live -= inc->objects.live, to->objects.live += inc->objects.live;
    from->bytes.live -= inc->bytes.live, to->bytes.live += inc->bytes.live;
    if (to->bytes.live > to->most_live) to->most_live = to->bytes.live;
}

/* ---- objects ---------------------------------------------------------------------------- */

static inline void book_birth(struct side* s, struct inc* inc, size_t usable, bool large) {
    struct account* a = account_of(s, inc);
    if (inc->objects.allocated == 0) inc->used_ns = slab_now_ns();
    inc->objects.allocated++, inc->objects.live++;
    inc->bytes.allocated += usable, inc->bytes.live += usable;
    inc->large_live += large;
    if (inc->bytes.live > inc->most_live) inc->most_live = inc->bytes.live;
    a->objects.allocated++, a->objects.live++;
    a->bytes.allocated += usable, a->bytes.live += usable;
    a->large += large;
    if (a->bytes.live > a->most_live) a->most_live = a->bytes.live;
}

/* It became larger where it is. */
static inline void book_grown(struct side* s, struct inc* inc, size_t bytes) {
    struct account* a = account_of(s, inc);
    inc->bytes.allocated += bytes, inc->bytes.live += bytes;
    a->bytes.allocated += bytes, a->bytes.live += bytes;
    if (inc->bytes.live > inc->most_live) inc->most_live = inc->bytes.live;
    if (a->bytes.live > a->most_live) a->most_live = a->bytes.live;
}

static inline void book_freed(struct side* s, struct inc* inc, size_t usable, bool large) {
    struct account* a = account_of(s, inc);
    inc->objects.freed++, inc->objects.live--;
    inc->bytes.freed += usable, inc->bytes.live -= usable;
    inc->large_live -= large;
    a->objects.freed++, a->objects.live--;
    a->bytes.freed += usable, a->bytes.live -= usable;
}

/* All that lives ends in bulk. */
static inline void book_released(struct side* s, struct inc* inc) {
    struct account* a = account_of(s, inc);
    a->objects.released += inc->objects.live, a->objects.live -= inc->objects.live;
    a->bytes.released += inc->bytes.live, a->bytes.live -= inc->bytes.live;
    inc->objects.released += inc->objects.live, inc->objects.live = 0;
    inc->bytes.released += inc->bytes.live, inc->bytes.live = 0;
    inc->large_live = 0;
}

#endif
