/*
 * ops_objects.h - allocating, resizing, freeing and asking about objects, each call checked at once.
 */
#ifndef MODEL_OPS_OBJECTS_H
#define MODEL_OPS_OBJECTS_H

#include <errno.h>

#include "births.h"
#include "observe/stand_in.h"

enum { MAX_LIVE = 4000 };
static const uint64_t max_live_bytes = 96u << 20;

static inline struct side* any_side(struct world* w) { return &w->side[chance(w, 88) ? 0 : 1]; }

static inline int side_index(const struct world* w, const struct side* s) { return (int)(s - w->side); }

static inline struct obj* any_obj(struct world* w, struct side* s) {
    return s->n_objs ? s->objs[below(w, s->n_objs)] : NULL;
}

static inline size_t any_size(struct world* w) {
    unsigned d = (unsigned)below(w, 1000);
    if (d < 500) return 1 + below(w, 256);
    if (d < 800) return 1 + below(w, 768);
    if (d < 900) return fixed_class[below(w, SLAB_FIXED_CLASSES)];
    if (d < 980) return 1 + below(w, 8 << 10);
    if (d < 995) return 1 + below(w, 64 << 10);
    if (d < 999) return 1 + below(w, 1 << 20);
    return 1 + below(w, 4 << 20);
}

/* ---- birth ------------------------------------------------------------------------------ */

static inline size_t granules_of(size_t bytes) { return (bytes + 15) / 16 * 16; }

/* Whether objects may be elsewhere than their slots, with what was asked for: they get no room to grow on. */
static inline bool are_blocks(const struct side* s) {
    return s->options.by_malloc == 1 || s->options.late_access || s->options.guard_period;
}

/* In a region an object has its own size; one that had to move to grow that of its class, unless it got a region alone. */
static inline void check_bumped(struct side* s, const struct obj* o, size_t align, bool grown) {
    size_t most = grown && !o->inc->ring ? ALONE_MOST : BUMPED_MOST;
    bool may = has_regions(s, o->inc) && o->asked <= most && align <= BUMPED_ALIGN;
    REQUIRE_OR(may, "an object of %zu bytes, aligned to %zu, of %s epoch is in a region", o->asked, align,
               o->inc->ring ? "a ring" : "a domain's");
    /* above 256 bytes with a quarter more, where no limit is */
    size_t more = !may_be_over(s, o->inc) && o->asked > 256 && o->asked <= BUMPED_MOST / 5 * 4 ? o->asked + o->asked / 4
                                                                                               : o->asked;
    size_t due = grown && o->asked <= BUMPED_MOST && !are_blocks(s) ? slab_good_size(s->a, more) : granules_of(o->asked);
    REQUIRE_OR(o->usable == due, "an object of %zu bytes in a region has %zu usable", o->asked, o->usable);
}

/* Whether all that was made in an incarnation was bumped by the actor under a limit, and none was refused: an empty region serves
 * again, however much was freed. Such a region may be a run's. */
static inline bool bumps_under_limit(const struct world* w, const struct inc* inc) {
    bool alone = inc->users == (uint64_t)1 << w->actor->slot;
    return alone && !inc->ring && !inc->unlimited && !inc->classed && !inc->tried && !inc->ran;
}

enum { REGIONS_LOOKED_AT = 16 };

/* Under a limit a class takes over from regions where objects of those were freed, but none is empty, or where not even the smallest region
 * that `o` fits in can be had: else slabs of its sizes reach the limit where regions would not. */
static inline void check_limited(const struct world* w, struct side* s, const struct obj* o) {
    const struct inc* inc = o->inc;
    const struct account* a = account_of(s, inc);
    size_t least = slab_page_size() > REGION_LEAST ? slab_page_size() : REGION_LEAST;
    bool young = !inc->ring && !inc->unlimited && inc->objects.freed == 0 && !(inc->classed >> class_of(o) & 1);
    bool bumps = bumps_under_limit(w, inc) && o->asked <= REGION_PART;
    if ((!young && !bumps) || !has_regions(s, inc) || o->asked > BUMPED_MOST) return;
    struct committed now = committed_now(s, inc, inc->account);
    /* What it takes the place of has ended since, and may have been the last of its region. */
    unsigned left = w->moved && w->moved->inc == inc && w->moved->bumped;
    bool all_seen = now.slabs <= REGIONS_LOOKED_AT; /* those that frees by handle have emptied are looked for */
    REQUIRE_OR(!bumps || !all_seen || now.empty_slabs <= left, "%zu bytes in a class, of a phase under a limit with %llu empty regions",
               o->asked, (unsigned long long)now.empty_slabs);
    if (!young) return;
    bool full = inc->limit.hard && now.phase + least > inc->limit.hard;
    full |= a->limit.hard && now.label + least + a->limit.late > a->limit.hard;
    full |= s->options.max_bytes && now.all + least > s->options.max_bytes;
    REQUIRE_OR(full, "%zu bytes in a class, of a phase that has freed nothing and has room for a region (%llu of %llu)",
               o->asked, (unsigned long long)now.phase, (unsigned long long)inc->limit.hard);
}

static inline void check_size_of_new(const struct world* w, struct side* s, const struct obj* o, size_t align,
                                     bool grown) {
    size_t good = slab_good_size(s->a, o->asked), due = align < 16 ? 16 : align;
    bool units = grown && o->asked > ALONE_MOST; /* whole pages, beside others */
    REQUIRE_OR(good >= o->asked, "asked %zu, good size %zu", o->asked, good);
    if (o->bumped) {
        check_bumped(s, o, align, grown);
    } else {
        bool more = grown && !are_blocks(s) && class_may_serve(s, o->inc, o->asked + o->asked / 4, align); /* what it asks for then */
        REQUIRE_OR(class_may_serve(s, o->inc, o->asked, align) || more || may_be_over(s, o->inc),
                   "an object of %zu bytes in a young %s (%llu bytes so far, %llu objects freed) is in no region",
                   o->asked, o->inc->ring ? "ring epoch" : "domain", (unsigned long long)o->inc->bytes.allocated,
                   (unsigned long long)o->inc->objects.freed);
        if (may_be_over(s, o->inc) && align <= 16 && !grown) check_limited(w, s, o);
        REQUIRE_OR(o->usable >= good || align > 16 || units, "asked %zu, good size %zu, usable %zu", o->asked, good,
                   o->usable);
        if (align <= 16 && o->asked <= 768) {
            size_t more = grown && !are_blocks(s) && o->asked > 256 && !may_be_over(s, o->inc) ? o->asked + o->asked / 4 : o->asked;
            bool right = o->asked <= 64 ? o->usable <= 64 : o->usable == class_size(class_of_bytes(more));
            REQUIRE_OR(right, "an object of %zu bytes has %zu usable", o->asked, o->usable);
        } else if (align <= 16) {
            REQUIRE_OR(o->usable <= 2 * o->asked, "an object of %zu bytes has %zu usable", o->asked, o->usable);
        }
        bool natural = (o->usable & (o->usable - 1)) == 0 && o->usable <= (256u << 10) && !units;
        if (natural && o->usable > due && !o->slot) due = o->usable;
    }
    REQUIRE_OR((uintptr_t)o->p % due == 0, "object %p (%zu asked, %zu usable) is not aligned to %zu", (void*)o->p,
               o->asked, o->usable, due);
}

/* Where it lies, and whether its user has it there. */
static inline void place_of(struct side* s, struct obj* o, bool grown) {
    TsiArena* a = arena_of(s);
    TsiPlace at = {0, 0, 0, 0};
    void* slot = tsi_slot_of(a, o->p);
    REQUIRE_OR(tsi_space_locate(&a->space, slot, &at) == TSI_PLACE_OK, "new object %p has no place", (void*)o->p);
    o->reach = slab_usable_size(s->a, o->p);
    o->usable = tsi_place_bytes(&a->space, &at);
    o->slot = slot != o->p ? slot : NULL;
    o->bumped = tsi_class_is_region(at.cls);
    bool grows = grown && !are_blocks(s) && o->asked <= BUMPED_MOST; /* what has grown asks for more */
    REQUIRE_OR(o->reach == (o->slot && !grows ? o->asked : o->usable), "%zu bytes asked, %zu usable, %zu of the place", o->asked,
               o->reach, o->usable);
}

/* Enters a new object in the books and writes all of it. grown: realloc has moved it for more bytes. */
static inline struct obj* obj_born(struct world* w, struct side* s, struct inc* inc, void* p, size_t asked,
                                   size_t align, SlabHandle h, bool grown) {
    struct obj* o = must_alloc(sizeof *o);
    o->p = p, o->asked = asked, o->seed = kit_mix(w->seed + ++w->born), o->h = h, o->inc = inc;
    place_of(s, o, grown);
    o->large = o->usable > LARGE_OVER || align > LARGE_OVER || (grown && o->asked > ALONE_MOST);
    REQUIRE_OR(o->reach >= asked, "new object %p of %zu bytes has %zu usable", p, asked, o->reach);
    size_t i = sorted_find(s, p);
    REQUIRE_OR(i == s->n_objs || s->sorted[i]->p >= o->p + o->reach, "new object %p +%zu overlaps live %p +%zu", p,
               o->reach, (void*)s->sorted[i]->p, s->sorted[i]->reach);
    check_size_of_new(w, s, o, align, grown);
    if (!o->bumped) inc->classed |= (uint64_t)1 << class_of(o);
    if (o->bumped && align > 16) inc->gaps_most += align - 16;
    ref_add(s, o);
    if (s->n_objs > w->most_live) w->most_live = s->n_objs;
    check_identity(s, o);
    pattern(o->p, o->reach, o->reach, o->seed, true);
    return o;
}

static inline void check_zeroed(const unsigned char* p, size_t n) {
    for (size_t i = 0; i < n; i++)
        REQUIRE_OR(p[i] == 0, "calloc: byte %zu of %zu at %p is %#x", i, n, (const void*)p, p[i]);
}

/* An epoch id to name explicitly: the current one, any of the ring, or a domain's own. */
static inline struct inc* any_named(struct world* w, struct side* s) {
    unsigned d = (unsigned)below(w, 100);
    if (d < 50) return s->ring[s->current];
    if (d < 75 || w->n_doms == 0) return s->ring[below(w, s->ring_size)];
    const struct dom* dom = w->doms[below(w, w->n_doms)];
    bool usable = dom->own && &w->side[dom->side] == s && dom->inc->state != INC_RELEASED;
    return usable ? dom->inc : s->ring[s->current];
}

struct request {
    size_t size, align;
    bool by_handle, zeroed, explicit_epoch;
    struct inc* inc;
};

static inline void* do_request(struct side* s, const struct request* q, SlabHandle* h) {
    size_t parts = q->size % 8 == 0 ? 8 : 1;
    EpochId id = q->inc->id;
    if (q->by_handle)
        return q->explicit_epoch ? alloc_obj_epoch(s->a, (uint32_t)q->size, id, h)
                                 : alloc_obj(s->a, (uint32_t)q->size, h);
    if (q->zeroed)
        return q->explicit_epoch ? slab_calloc_epoch(s->a, parts, q->size / parts, id)
                                 : slab_calloc(s->a, parts, q->size / parts);
    if (q->align)
        return q->explicit_epoch ? slab_aligned_alloc_epoch(s->a, q->align, q->size, id)
                                 : slab_aligned_alloc(s->a, q->align, q->size);
    return q->explicit_epoch ? slab_malloc_epoch(s->a, q->size, id) : slab_malloc(s->a, q->size);
}

/* Refusals of an allocation in an incarnation that takes none. */
static inline void expect_refused(struct world* w, struct side* s, const struct inc* inc) {
    REQUIRE_OR(errno == ESTALE, "allocation in closed era %llu: errno %d", (unsigned long long)inc->era, errno);
    w->turned_away++;
    bool there = inc->objects.live > 0 || (inc->named && (inc->ring || inc->state != INC_RELEASED));
    account_of(s, inc)->refused_least += there; /* else the record may be another's by now */
    want_one(s, BIT(SLAB_MISUSE_CLOSED_EPOCH) | (inc->named ? 0 : BIT(SLAB_MISUSE_DOMAIN_STALE)));
}

static inline void op_alloc(struct world* w) {
    struct side* s = any_side(w);
    struct request q = {.size = any_size(w), .explicit_epoch = chance(w, 45)};
    if (s->n_objs >= MAX_LIVE || s->live_bytes + q.size > max_live_bytes) return;
    unsigned kind = (unsigned)below(w, 100);
    q.by_handle = kind < 25;
    q.zeroed = kind >= 25 && kind < 35;
    if (kind >= 35 && kind < 42) q.align = (size_t)1 << below(w, chance(w, 3) ? 22 : 13);
    q.inc = q.explicit_epoch ? any_named(w, s) : implicit_target(w->actor, side_index(w, s));
    bool open = q.inc->state == INC_ACTIVE;
    SlabHandle h = 0x5555;
    SlabHandle* out = q.by_handle && chance(w, 90) ? &h : NULL;
    note(w, "alloc s%d %zu bytes align %zu %s%s%s era %llu", side_index(w, s), q.size, q.align,
         q.by_handle ? "handle " : "", q.zeroed ? "zeroed " : "", q.explicit_epoch ? "explicit" : "implicit",
         (unsigned long long)q.inc->era);
    struct birth b;
    birth_begin(w, &b, s, q.inc);
    unsigned char* p = do_request(s, &q, out);
    if (birth_end(w, &b, p, q.size, q.align)) {
        REQUIRE_OR(!out || h == 0, "a refused allocation left handle %#llx", (unsigned long long)h);
        return;
    }
    if (!open) {
        REQUIRE_OR(p == NULL, "allocated %p in era %llu which is closed", (void*)p, (unsigned long long)q.inc->era);
        REQUIRE_OR(!out || h == 0, "a refused allocation left handle %#llx", (unsigned long long)h);
        expect_refused(w, s, q.inc);
        return;
    }
    REQUIRE_OR(p != NULL, "allocation of %zu bytes failed with errno %d", q.size, errno);
    REQUIRE_OR(!out || h != 0, "no handle for %p", (void*)p);
    if (q.zeroed) check_zeroed(p, q.size);
    obj_born(w, s, q.inc, p, q.size, q.align, out ? h : 0, false);
}

/* A burst into one place: fills slabs and regions. */
static inline void op_alloc_many(struct world* w) {
    struct side* s = any_side(w);
    bool named = chance(w, 30), by_handle = chance(w, 25), one_size = chance(w, 50);
    struct inc* inc = named ? any_named(w, s) : implicit_target(w->actor, side_index(w, s));
    size_t n = 1 + below(w, chance(w, 10) ? 600 : 80), size = 1 + below(w, 768);
    if (inc->state != INC_ACTIVE || s->n_objs + n > MAX_LIVE) return;
    note(w, "alloc s%d burst of %zu, %zu bytes%s%s era %llu", side_index(w, s), n, size, one_size ? "" : " and others",
         by_handle ? " by handle" : "", (unsigned long long)inc->era);
    for (; n > 0; n--) {
        SlabHandle h = 0;
        void* p;
        struct birth b;
        if (!one_size) size = 1 + below(w, 768);
        birth_begin(w, &b, s, inc);
        if (by_handle)
            p = named ? alloc_obj_epoch(s->a, (uint32_t)size, inc->id, &h) : alloc_obj(s->a, (uint32_t)size, &h);
        else p = named ? slab_malloc_epoch(s->a, size, inc->id) : slab_malloc(s->a, size);
        if (birth_end(w, &b, p, size, 1)) return;
        REQUIRE_OR(p && !by_handle == !h, "allocation of %zu bytes failed with errno %d", size, errno);
        obj_born(w, s, inc, p, size, 0, h, false);
    }
}

/* ---- death ------------------------------------------------------------------------------ */

static inline void free_one(struct world* w, struct side* s, struct obj* o) {
    check_contents(o);
    unsigned how = (unsigned)below(w, o->h ? 6 : 4);
    note(w, "free s%d %p usable %zu era %llu by way %u", side_index(w, s), (void*)o->p, o->usable,
         (unsigned long long)o->inc->era, how);
    const struct obj* outer = w->in_call;
    w->in_call = o;
    errno = 77;
    switch (how) {
    case 0:
        slab_free(s->a, o->p);
        break;
    case 1:
        REQUIRE_OR(slab_free_checked(s->a, o->p), "free of the live object %p was refused", (void*)o->p);
        break;
    case 2:
        slab_free_sized(s->a, o->p, chance(w, 50) ? o->asked : o->reach);
        break;
    case 3:
        REQUIRE_OR(slab_realloc(s->a, o->p, 0) == NULL, "realloc to 0 returned memory");
        errno = 77;
        break;
    default:
        REQUIRE_OR(free_obj(s->a, o->h), "free of the live handle %#llx was refused", (unsigned long long)o->h);
        break;
    }
    REQUIRE_OR(errno == 77, "a free changed errno to %d", errno);
    w->in_call = outer;
    ref_freed(w, o);
}

static inline void op_free(struct world* w) {
    struct side* s = any_side(w);
    struct obj* o = any_obj(w, s);
    if (o) free_one(w, s, o);
}

/* Frees a run of neighbours, or most of one incarnation: slabs become empty. */
static inline void op_free_many(struct world* w) {
    struct side* s = any_side(w);
    struct obj* o = any_obj(w, s);
    if (!o || (w->mood >= 50 && chance(w, 80))) return;
    if (chance(w, 50)) {
        size_t at = sorted_find(s, o->p), n = 1 + below(w, 60);
        while (n-- > 0 && at < s->n_objs) free_one(w, s, s->sorted[at]);
        return;
    }
    struct inc* inc = o->inc;
    for (size_t i = s->n_objs, budget = 150; i-- > 0 && budget > 0;)
        if (i < s->n_objs && s->objs[i]->inc == inc) {
            free_one(w, s, s->objs[i]);
            budget--;
        }
}

/* ---- resizing --------------------------------------------------------------------------- */

static inline void check_kept(const struct obj* o, unsigned char* p, size_t upto) {
    REQUIRE_OR(pattern(p, o->reach, upto, o->seed, false), "realloc of %p to %p lost contents", (void*)o->p, (void*)p);
}

/* An object at the end of its region, or one with pages of its own, became larger where it is. */
static inline void grown(struct side* s, struct obj* o, size_t size, const struct inc* to) {
    size_t usable = slab_usable_size(s->a, o->p), i = sorted_find(s, o->p);
    size_t page = slab_page_size(), due = o->bumped ? granules_of(size) : (size + page - 1) / page * page;
    REQUIRE_OR((o->bumped || o->large) && to == o->inc && to->state == INC_ACTIVE && usable == due,
               "realloc in place to %zu made %zu usable bytes of %zu", size, usable, o->usable);
    REQUIRE_OR(i + 1 == s->n_objs || s->sorted[i + 1]->p >= o->p + usable, "grown object %p +%zu overlaps live %p",
               (void*)o->p, usable, (void*)s->sorted[i + 1]->p);
    book_grown(s, o->inc, usable - o->usable);
    s->live_bytes += usable - o->usable;
    o->usable = o->reach = usable;
}

/* Books a realloc that succeeded. */
static inline void resized(struct world* w, struct side* s, struct obj* o, unsigned char* p, size_t size,
                           struct inc* to) {
    size_t kept = o->asked < size ? o->asked : size;
    check_kept(o, p, kept);
    if (p == o->p) {
        if (size > o->reach) grown(s, o, size, to);
        REQUIRE_OR(slab_usable_size(s->a, p) == o->reach, "realloc in place changed usable %zu to %zu", o->reach,
                   slab_usable_size(s->a, p));
        REQUIRE_OR(o->reach >= size, "realloc in place to %zu with %zu usable", size, o->reach);
        o->asked = size;
        pattern(o->p, o->reach, o->reach, o->seed, true);
        return;
    }
    REQUIRE_OR(to->state == INC_ACTIVE, "realloc moved %p into closed era %llu", (void*)o->p,
               (unsigned long long)to->era);
    struct inc* from = o->inc;
    /* The new object was born before the old one ended, so no address can be shared. */
    w->moved = o;
    struct obj* fresh = obj_born(w, s, to, p, size, 0, 0, size > o->reach);
    w->moved = NULL;
    note(w, "  moved era %llu -> %llu, %p -> %p", (unsigned long long)from->era, (unsigned long long)to->era,
         (void*)o->p, (void*)fresh->p);
    ref_freed(w, o);
}

/* Resizes an object, in the phase `to`, by that one's id if it is `named`. */
static inline void resize(struct world* w, struct side* s, struct obj* o, size_t size, struct inc* to, bool named) {
    note(w, "realloc s%d %p %zu -> %zu era %llu, goes to era %llu%s", side_index(w, s), (void*)o->p, o->asked, size,
         (unsigned long long)o->inc->era, (unsigned long long)to->era, named ? " explicit" : "");
    check_contents(o);
    w->in_call = o;
    struct birth b;
    birth_begin(w, &b, s, to);
    b.old = o->p;
    unsigned char* p = named ? slab_realloc_epoch(s->a, o->p, size, to->id) : slab_realloc(s->a, o->p, size);
    w->in_call = NULL;
    bool over = birth_end(w, &b, p, size, 1);
    if (p) {
        /* One that its thread finds at hand stays, where guards are few, as if there were none. */
        bool fits = s->options.guard_period && !o->slot && errno == 0;
        bool shrinks = size < o->reach / 2 || o->slot || (are_blocks(s) && !fits);
        bool moves = shrinks && to->state == INC_ACTIVE && (named || o->inc->state == INC_ACTIVE);
        if (is_anothers_inc(w, to)) REQUIRE_OR(size <= o->reach, "grew in a phase that is another thread's alone");
        else if (moves && p == o->p) judge_over(w, &b, size, 1);
        REQUIRE_OR(!named || to == o->inc || p != o->p || size <= o->reach, "realloc to another epoch grew in place");
        resized(w, s, o, p, size, to);
        return;
    }
    if (over) {
        REQUIRE_OR(size > o->reach, "realloc to %zu failed although %zu are usable", size, o->reach);
        check_contents(o);
        check_identity(s, o);
        return;
    }
    REQUIRE_OR(to->state != INC_ACTIVE, "realloc of %zu bytes failed with errno %d", size, errno);
    REQUIRE_OR(named || size > o->reach, "realloc to %zu failed although %zu are usable", size, o->reach);
    expect_refused(w, s, to);
    check_contents(o);
    check_identity(s, o);
}

static inline void op_realloc(struct world* w) {
    struct side* s = any_side(w);
    struct obj* o = any_obj(w, s);
    size_t size = any_size(w);
    if (!o || s->live_bytes + size > max_live_bytes) return;
    if (chance(w, 30)) size = 1 + below(w, o->reach);
    bool named = chance(w, 30);
    struct inc* to =
        named ? any_named(w, s) : (o->inc->state == INC_ACTIVE ? o->inc : implicit_target(w->actor, side_index(w, s)));
    resize(w, s, o, size, to, named);
}

/* An object with pages of its own becomes somewhat larger: where it is, if the pages behind are free. */
static inline void op_grow_large(struct world* w) {
    struct side* s = any_side(w);
    struct obj* o = any_obj(w, s);
    for (int tries = 0; o && !o->large && tries < 100; tries++) o = any_obj(w, s);
    size_t more = 1 + below(w, chance(w, 50) ? 8 << 10 : 128 << 10);
    if (!o || !o->large || o->inc->state != INC_ACTIVE || s->live_bytes + o->usable + more > max_live_bytes) return;
    resize(w, s, o, o->usable + more, o->inc, o->inc->named && chance(w, 30));
}

/* realloc of nothing allocates. */
static inline void op_realloc_null(struct world* w) {
    struct side* s = any_side(w);
    struct inc* inc = implicit_target(w->actor, side_index(w, s));
    size_t size = 1 + below(w, 768);
    if (s->n_objs >= MAX_LIVE) return;
    note(w, "realloc NULL to %zu", size);
    struct birth b;
    birth_begin(w, &b, s, inc);
    unsigned char* p = slab_realloc(s->a, NULL, size);
    if (birth_end(w, &b, p, size, 1)) return;
    if (inc->state != INC_ACTIVE) {
        REQUIRE_OR(p == NULL, "allocated in closed era %llu", (unsigned long long)inc->era);
        expect_refused(w, s, inc);
        return;
    }
    REQUIRE_OR(p != NULL, "allocation failed with errno %d", errno);
    obj_born(w, s, inc, p, size, 0, 0, false);
}

/* ---- questions -------------------------------------------------------------------------- */

static inline void op_ask(struct world* w) {
    struct side* s = any_side(w);
    struct obj* o = any_obj(w, s);
    if (!o) return;
    note(w, "ask s%d about %p era %llu", side_index(w, s), (void*)o->p, (unsigned long long)o->inc->era);
    check_contents(o);
    check_identity(s, o);
    if (chance(w, 40)) {
        SlabHandle h = slab_ptr_handle(s->a, o->p);
        REQUIRE_OR(h != 0, "no handle for the live object %p", (void*)o->p);
        REQUIRE_OR(o->h == 0 || o->h == h, "handle of %p was %#llx, is %#llx", (void*)o->p, (unsigned long long)o->h,
                   (unsigned long long)h);
        o->h = h;
        REQUIRE_OR(slab_handle_ptr(s->a, h) == o->p, "handle of %p leads to %p", (void*)o->p, slab_handle_ptr(s->a, h));
    }
    struct side* other = &w->side[1 - side_index(w, s)];
    REQUIRE_OR(!slab_owns(other->a, o->p), "another allocator claims %p", (void*)o->p);
    REQUIRE_OR(slab_usable_size(other->a, o->p) == 0, "another allocator knows a size for %p", (void*)o->p);
    if (o->reach > 1) {
        unsigned char* inside = o->p + 1 + below(w, o->reach - 1);
        REQUIRE_OR(slab_usable_size(s->a, inside) == 0, "interior pointer %p has a size", (void*)inside);
        REQUIRE_OR(!slab_ptr_epoch(s->a, inside, NULL, NULL), "interior pointer %p has an epoch", (void*)inside);
        REQUIRE_OR(slab_ptr_handle(s->a, inside) == 0, "interior pointer %p has a handle", (void*)inside);
    }
}

/* The dead stay dead: their handles for ever, their addresses until issued again. */
static inline void op_ask_dead(struct world* w) {
    struct side* s = any_side(w);
    if (s->n_dead == 0) return;
    uint64_t known = s->n_dead < DEAD_KEPT ? s->n_dead : DEAD_KEPT;
    const struct dead* d = &s->dead[below(w, known)];
    note(w, "ask s%d about dead %p", side_index(w, s), d->p);
    if (d->h)
        REQUIRE_OR(slab_handle_ptr(s->a, d->h) == NULL, "dead handle %#llx leads to an object",
                   (unsigned long long)d->h);
    if (is_issued_again(s, d->p)) return;
    REQUIRE_OR(slab_usable_size(s->a, d->p) == 0, "dead object %p has a size", d->p);
    REQUIRE_OR(!slab_ptr_epoch(s->a, d->p, NULL, NULL), "dead object %p has an epoch", d->p);
    REQUIRE_OR(slab_ptr_handle(s->a, d->p) == 0, "dead object %p has a handle", d->p);
}

#endif
