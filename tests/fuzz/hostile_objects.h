/*
 * hostile_objects.h - object calls with arguments a fuzzer makes up: any size, alignment, product, pointer and
 * handle. The reference says of each whether it names a live object; everything else must be refused.
 *
 * The model's own operations (tests/model/ops_*.h) do what programs do; these do what no program should.
 * Sizes over `most_kept` that are granted are given back at once, because writing them would take seconds.
 */
#ifndef FUZZ_HOSTILE_OBJECTS_H
#define FUZZ_HOSTILE_OBJECTS_H

#include "model/ops_misuse.h"

static const size_t most_kept = 256u << 10;       /* larger objects end at once */
static const size_t sure_to_fit = 16u << 20;      /* an allocation up to this cannot fail */
static const size_t never_fits = (size_t)1 << 40; /* more than any reservation */

static const uint32_t closed_causes =
    BIT(SLAB_MISUSE_CLOSED_EPOCH) | BIT(SLAB_MISUSE_BAD_EPOCH) | BIT(SLAB_MISUSE_DOMAIN_STALE);

/* ---- numbers ---------------------------------------------------------------------------- */

/* Near a power of two, near the ends of the range, or any bits at all. */
static inline uint64_t any_number(struct world* w) {
    uint64_t near = (uint64_t)1 << below(w, 64);
    switch (below(w, 6)) {
    case 0:
        return below(w, 256);
    case 1:
        return near;
    case 2:
        return near + below(w, 64) - 32;
    case 3:
        return UINT64_MAX - below(w, 256);
    case 4:
        return (uint64_t)PTRDIFF_MAX + below(w, 16) - 8;
    default:
        return roll(w);
    }
}

static inline EpochId drawn_id(struct world* w, struct side* s) {
    const struct dom* d = w->n_doms ? w->doms[below(w, w->n_doms)] : NULL;
    switch (below(w, 5)) {
    case 0:
        return (EpochId)below(w, s->ring_size);
    case 1:
        return s->ring_size + (EpochId)below(w, 4);
    case 2:
        return d ? d->inc->id : 0x80000000u;
    case 3:
        return (d ? d->inc->id : 0x80000000u) ^ 1u << below(w, 32);
    default:
        return (EpochId)any_number(w);
    }
}

/* An epoch id: of the ring, just past it, a live domain's with bits changed, or any bits. That of a domain which was drained
 * and destroyed may or may not be answered: not asked. */
static inline EpochId any_id(struct world* w, struct side* s) {
    EpochId id = drawn_id(w, s);
    for (size_t i = 0; i < s->n_incs; i++)
        if (!s->incs[i]->named && !s->incs[i]->ring && s->incs[i]->id == id) return 0;
    return id;
}

/* The incarnation that the id names, if any. */
static inline struct inc* inc_by_id(const struct side* s, EpochId id) {
    for (size_t i = 0; i < s->n_incs; i++)
        if (s->incs[i]->named && s->incs[i]->id == id) return s->incs[i];
    return NULL;
}

/* ---- birth ------------------------------------------------------------------------------ */

/* An allocation that ran out of memory trimmed the allocator first: see op_upkeep. */
static inline void ran_out(struct side* s) {
    for (size_t i = 0; i < s->n_incs; i++)
        if (!s->incs[i]->named && s->incs[i]->state == INC_ADVANCED) s->incs[i]->state = INC_CLOSED;
    want_one(s, BIT(CAUSE_NO_MEMORY));
}

/* Keeps a new object, or checks and frees it when it is too large to be kept. */
static inline void keep_or_end(struct world* w, struct side* s, struct inc* inc, unsigned char* p, size_t size,
                               size_t align) {
    size_t usable = slab_usable_size(s->a, p);
    REQUIRE_OR(usable >= size, "new object %p of %zu bytes has %zu usable", (void*)p, size, usable);
    REQUIRE_OR(((uintptr_t)p & (align - 1)) == 0, "object %p is not aligned to %zu", (void*)p, align);
    if (usable <= most_kept && s->n_objs < MAX_LIVE && s->live_bytes < max_live_bytes) {
        obj_born(w, s, inc, p, size, align, 0, false);
        return;
    }
    size_t i = sorted_find(s, p);
    REQUIRE_OR(i == s->n_objs || s->sorted[i]->p >= p + usable, "new object %p +%zu overlaps live %p", (void*)p, usable,
               (void*)s->sorted[i]->p);
    p[0] = p[usable - 1] = 0x5a;
    REQUIRE_OR(slab_free_checked(s->a, p), "free of the live object %p was refused", (void*)p);
    book_birth(s, inc, usable, usable > LARGE_OVER || align > LARGE_OVER);
    book_freed(s, inc, usable, usable > LARGE_OVER || align > LARGE_OVER);
}

struct wish {
    size_t size, align;
    bool explicit_epoch, overflows;
    EpochId id;
};

/* What came of an allocation with any arguments at all. */
static inline void judge_birth(struct world* w, struct side* s, const struct wish* q, unsigned char* p, int error) {
    struct inc* inc = q->explicit_epoch ? inc_by_id(s, q->id) : implicit_target(w->actor, side_index(w, s));
    bool aligns = (q->align & (q->align - 1)) == 0 && q->align > 0 && q->align <= (size_t)1 << 30;
    bool sized = q->size > 0 && q->size <= PTRDIFF_MAX && !q->overflows;
    bool anothers = inc && is_anothers_inc(w, inc), open = inc && inc->state == INC_ACTIVE && !anothers;
    if (inc) used_by(w, inc);
    if (p) {
        REQUIRE_OR(aligns && sized && open, "%zu bytes aligned to %zu in epoch %#x gave %p", q->size, q->align, q->id,
                   (void*)p);
        keep_or_end(w, s, inc, p, q->size, q->align);
        return;
    }
    if (!aligns || !sized || !open) {
        REQUIRE_OR(error == EINVAL || error == ENOMEM || error == (anothers ? EBUSY : ESTALE), "errno %d", error);
        REQUIRE_OR(error != ESTALE || !open, "ESTALE although the epoch is open");
        REQUIRE_OR(aligns || !open || error == EINVAL, "a bad alignment gave errno %d", error);
        REQUIRE_OR(q->size || q->overflows || !open || error == EINVAL, "size 0 gave errno %d", error);
        want_one(s, BIT(SLAB_MISUSE_BAD_SIZE) | (anothers ? BIT(SLAB_MISUSE_DOMAIN_ORDER) : open ? 0 : closed_causes));
        return;
    }
    REQUIRE_OR(error == ENOMEM, "allocation of %zu bytes aligned to %zu failed with errno %d", q->size, q->align,
               error);
    REQUIRE_OR(q->size > sure_to_fit || q->align > sure_to_fit, "no memory for %zu bytes aligned to %zu", q->size,
               q->align);
    inc->tried = true;
    ran_out(s);
}

static inline void hostile_malloc(struct world* w) {
    struct side* s = any_side(w);
    struct wish q = {.size = any_number(w), .align = 1, .explicit_epoch = chance(w, 50)};
    if (q.explicit_epoch) q.id = any_id(w, s);
    note(w, "hostile malloc s%d %zu bytes epoch %#x", side_index(w, s), q.size, q.id);
    errno = 0;
    unsigned char* p = q.explicit_epoch ? slab_malloc_epoch(s->a, q.size, q.id) : slab_malloc(s->a, q.size);
    judge_birth(w, s, &q, p, errno);
}

static inline void hostile_aligned(struct world* w) {
    struct side* s = any_side(w);
    struct wish q = {.size = any_number(w), .explicit_epoch = chance(w, 50)};
    q.align = chance(w, 70) ? (size_t)1 << (chance(w, 50) ? below(w, 34) : 29 + below(w, 4)) : any_number(w);
    if (chance(w, 50)) q.size = 1 + q.size % 100000;
    if (q.explicit_epoch) q.id = any_id(w, s);
    note(w, "hostile aligned s%d %zu bytes to %zu epoch %#x", side_index(w, s), q.size, q.align, q.id);
    errno = 0;
    unsigned char* p = q.explicit_epoch ? slab_aligned_alloc_epoch(s->a, q.align, q.size, q.id)
                                        : slab_aligned_alloc(s->a, q.align, q.size);
    judge_birth(w, s, &q, p, errno);
}

static inline void hostile_calloc(struct world* w) {
    struct side* s = any_side(w);
    size_t n = any_number(w), size = any_number(w);
    struct wish q = {.align = 1, .explicit_epoch = chance(w, 50)};
    q.overflows = __builtin_mul_overflow(n, size, &q.size);
    if (!q.overflows && q.size > most_kept && q.size < never_fits) return; /* seconds of zeroing */
    if (q.explicit_epoch) q.id = any_id(w, s);
    note(w, "hostile calloc s%d %zu x %zu epoch %#x", side_index(w, s), n, size, q.id);
    errno = 0;
    unsigned char* p = q.explicit_epoch ? slab_calloc_epoch(s->a, n, size, q.id) : slab_calloc(s->a, n, size);
    if (p) check_zeroed(p, q.size);
    judge_birth(w, s, &q, p, errno);
}

static inline void hostile_obj(struct world* w) {
    struct side* s = any_side(w);
    struct wish q = {.size = (uint32_t)any_number(w), .align = 1, .explicit_epoch = chance(w, 50)};
    SlabHandle h = 0x5555, *out = chance(w, 80) ? &h : NULL;
    if (q.explicit_epoch) q.id = any_id(w, s);
    note(w, "hostile alloc_obj s%d %zu bytes epoch %#x", side_index(w, s), q.size, q.id);
    errno = 0;
    unsigned char* p =
        q.explicit_epoch ? alloc_obj_epoch(s->a, (uint32_t)q.size, q.id, out) : alloc_obj(s->a, (uint32_t)q.size, out);
    REQUIRE_OR(!out || !p == !h, "object %p with handle %#llx", (void*)p, (unsigned long long)h);
    REQUIRE_OR(!p || !out || slab_handle_ptr(s->a, h) == p, "handle %#llx of %p leads elsewhere", (unsigned long long)h,
               (void*)p);
    judge_birth(w, s, &q, p, errno);
}

/* ---- resizing --------------------------------------------------------------------------- */

/* Sizes that are cheap to copy, or cannot be. */
static inline void hostile_realloc(struct world* w) {
    struct side* s = any_side(w);
    struct obj* o = any_obj(w, s);
    size_t size = any_number(w);
    bool named = chance(w, 50);
    if (!o || (size > most_kept && size < never_fits) || s->n_objs >= MAX_LIVE) return;
    EpochId id = named ? any_id(w, s) : 0;
    struct inc* home = o->inc->state == INC_ACTIVE ? o->inc : implicit_target(w->actor, side_index(w, s));
    struct inc* to = named ? inc_by_id(s, id) : home;
    note(w, "hostile realloc s%d %p %zu -> %zu epoch %#x", side_index(w, s), (void*)o->p, o->asked, size, id);
    check_contents(o);
    if (to) used_by(w, to);
    w->in_call = o;
    errno = 0;
    unsigned char* p = named ? slab_realloc_epoch(s->a, o->p, size, id) : slab_realloc(s->a, o->p, size);
    int error = errno;
    w->in_call = NULL;
    if (p) {
        REQUIRE_OR(size > 0 && size < never_fits && to, "realloc to %zu bytes gave %p", size, (void*)p);
        resized(w, s, o, p, size, to);
        return;
    }
    if (size == 0) {
        ref_freed(w, o);
        return;
    }
    bool anothers = to && is_anothers_inc(w, to), open = to && to->state == INC_ACTIVE && !anothers;
    REQUIRE_OR(!open || size >= never_fits, "realloc of %zu bytes failed with errno %d", size, error);
    REQUIRE_OR(error == EINVAL || error == (anothers ? EBUSY : ESTALE) || error == ENOMEM,
               "realloc failed with errno %d", error);
    if (anothers) want_one(s, BIT(SLAB_MISUSE_DOMAIN_ORDER) | BIT(SLAB_MISUSE_BAD_SIZE));
    else if (open && size <= PTRDIFF_MAX) to->tried = true, ran_out(s);
    else want_one(s, open ? BIT(SLAB_MISUSE_BAD_SIZE) : closed_causes | BIT(SLAB_MISUSE_BAD_SIZE));
    check_contents(o);
    check_identity(s, o);
}

/* ---- pointers and handles --------------------------------------------------------------- */

static inline void* any_pointer(struct world* w, struct side* s) {
    struct side* t = &w->side[below(w, SIDES)];
    struct obj* o = any_obj(w, t);
    const struct dead* d = t->n_dead ? &t->dead[below(w, t->n_dead < DEAD_KEPT ? t->n_dead : DEAD_KEPT)] : NULL;
    uintptr_t base = 0, step[] = {0, 1, 16, 64, 4096, 1 << 20};
    switch (below(w, 7)) {
    case 0:
        return (void*)(uintptr_t)any_number(w);
    case 1:
        base = (uintptr_t)s->a;
        break;
    case 2:
        if (w->n_doms) {
            const struct dom* d = w->doms[below(w, w->n_doms)];
            base = d->run_state == RUN_OPEN && d->run.at_ ? d->run.at_ : (uintptr_t)d->d;
        } else base = (uintptr_t)&base;
        break;
    case 3:
    case 4:
        base = d ? (uintptr_t)d->p : (uintptr_t)w;
        break;
    default:
        base = o ? (uintptr_t)o->p : (uintptr_t)&base;
        break;
    }
    uintptr_t off = step[below(w, 6)] * below(w, 256);
    return (void*)(chance(w, 50) ? base + off : base - off);
}

/* Frees or asks about any address: an object's own start is good, nothing else is. */
static inline void hostile_pointer(struct world* w) {
    struct side* s = any_side(w);
    void* p = any_pointer(w, s);
    struct obj* o = p ? obj_covering(s, p) : NULL;
    if (!p) return;
    note(w, "hostile pointer s%d %p%s", side_index(w, s), p, o ? o->p == p ? ", live" : ", inside a live one" : "");
    if (o && o->p == p) {
        check_identity(s, o);
        if (chance(w, 50)) free_one(w, s, o);
        return;
    }
    REQUIRE_OR(slab_usable_size(s->a, p) == 0, "%p is no object and has a size", p);
    REQUIRE_OR(!slab_ptr_epoch(s->a, p, NULL, NULL), "%p is no object and has an epoch", p);
    REQUIRE_OR(slab_ptr_handle(s->a, p) == 0, "%p is no object and has a handle", p);
    REQUIRE_OR(!o || slab_owns(s->a, p), "the inside of %p is disowned", (void*)o->p);
    (void)slab_owns(s->a, p);
    try_free(w, s, p, o ? BIT(SLAB_MISUSE_INTERIOR_POINTER) : dead_pointer);
}

/* A handle with bits changed, of an object alive or dead, here or elsewhere. */
static inline void hostile_handle(struct world* w) {
    struct side* s = any_side(w);
    struct side* t = &w->side[below(w, SIDES)];
    struct obj* o = any_obj(w, t);
    const struct dead* d = t->n_dead ? &t->dead[below(w, t->n_dead < DEAD_KEPT ? t->n_dead : DEAD_KEPT)] : NULL;
    SlabHandle h = chance(w, 50) ? (o ? o->h : 0) : (d ? d->h : 0);
    static const unsigned from[] = {0, 2, 8, 18, 34}, to[] = {2, 8, 18, 34, 64}; /* the fields of mem/handle.h */
    for (uint64_t n = below(w, 4); n > 0; n--) {
        unsigned f = (unsigned)below(w, 5);
        h ^= (SlabHandle)1 << (from[f] + below(w, to[f] - from[f]));
    }
    note(w, "hostile handle s%d %#llx", side_index(w, s), (unsigned long long)h);
    if (t == s && o && h && h == o->h) {
        REQUIRE_OR(slab_handle_ptr(s->a, h) == o->p, "handle %#llx leads elsewhere", (unsigned long long)h);
        free_one(w, s, o);
        return;
    }
    REQUIRE_OR(!slab_handle_ptr(s->a, h), "forged handle %#llx leads to an object", (unsigned long long)h);
    errno = 77;
    REQUIRE_OR(!free_obj(s->a, h), "forged handle %#llx was freed", (unsigned long long)h);
    REQUIRE_OR(errno == 77, "a refused free changed errno to %d", errno);
    want(s, BIT(SLAB_MISUSE_STALE_HANDLE) | BIT(SLAB_MISUSE_BAD_HANDLE), h ? 1 : 0, h ? 1 : 0);
}

static inline void hostile_sized(struct world* w) {
    struct side* s = any_side(w);
    struct obj* o = any_obj(w, s);
    size_t size = o && chance(w, 60) ? o->usable + below(w, 5) - 2 : any_number(w);
    if (!o) return;
    note(w, "hostile free_sized s%d %p %zu", side_index(w, s), (void*)o->p, size);
    check_contents(o);
    w->in_call = o;
    slab_free_sized(s->a, o->p, size);
    w->in_call = NULL;
    if (size <= o->usable) {
        ref_freed(w, o);
        return;
    }
    want_one(s, BIT(SLAB_MISUSE_SIZE_MISMATCH));
    check_identity(s, o);
}

#endif
