/*
 * ops_misuse.h - what a caller must not do. Each attempt is refused, leaves everything as it was
 * and is counted under the cause the contract names; where the contract leaves room (the history
 * of an address decides whether a second free is "double" or "stale") the causes are a set.
 */
#ifndef MODEL_OPS_MISUSE_H
#define MODEL_OPS_MISUSE_H

#include "ops_objects.h"

static const uint32_t dead_pointer = BIT(SLAB_MISUSE_DOUBLE_FREE) | BIT(SLAB_MISUSE_STALE_FREE) |
                                     BIT(SLAB_MISUSE_INTERIOR_POINTER) | BIT(SLAB_MISUSE_FOREIGN_POINTER);

/* Tries a pointer that is no live object, by one of the ways to free. */
static inline void try_free(struct world* w, struct side* s, void* p, uint32_t causes) {
    unsigned how = (unsigned)below(w, 4);
    errno = 77;
    switch (how) {
    case 0:
        slab_free(s->a, p);
        break;
    case 1:
        REQUIRE_OR(!slab_free_checked(s->a, p), "free of %p was accepted", p);
        break;
    case 2:
        slab_free_sized(s->a, p, 1);
        break;
    default:
        REQUIRE_OR(slab_realloc(s->a, p, 100) == NULL, "realloc of %p was accepted", p);
        REQUIRE_OR(errno == EINVAL, "realloc of a bad pointer: errno %d", errno);
        errno = 77;
        causes |= BIT(SLAB_MISUSE_STALE_FREE); /* realloc does not say in which way the block is dead */
        break;
    }
    REQUIRE_OR(errno == 77, "a refused free changed errno to %d", errno);
    want_one(s, causes);
}

/* An object of a phase that goes on, freed a moment ago: where no thread owned its slab and it was the last, the slab
 * has gone back. */
static const uint32_t freed_before = BIT(SLAB_MISUSE_DOUBLE_FREE) | BIT(SLAB_MISUSE_STALE_FREE);

static inline void misuse_double_free(struct world* w, struct side* s) {
    if (s->n_dead == 0) return;
    uint64_t known = s->n_dead < DEAD_KEPT ? s->n_dead : DEAD_KEPT;
    bool last = chance(w, 50);
    const struct dead* d = &s->dead[last ? (s->n_dead - 1) % DEAD_KEPT : below(w, known)];
    if (d->h && chance(w, 40)) {
        note(w, "misuse s%d: dead handle %#llx", side_index(w, s), (unsigned long long)d->h);
        REQUIRE_OR(!free_obj(s->a, d->h), "dead handle %#llx was freed", (unsigned long long)d->h);
        want_one(s, BIT(SLAB_MISUSE_STALE_HANDLE));
        return;
    }
    if (is_issued_again(s, d->p)) return; /* the address was issued again: a legitimate free */
    bool plain = d->plain && d->op + 1 >= w->op && last && d->usable <= 768;
    note(w, "misuse s%d: dead pointer %p (died at #%llu)", side_index(w, s), d->p, (unsigned long long)d->op);
    try_free(w, s, d->p, plain ? freed_before : dead_pointer);
}

/* A free followed at once by a second one, the pointer or the handle first. */
static inline void misuse_free_twice(struct world* w, struct side* s) {
    struct obj* o = any_obj(w, s);
    if (!o) return;
    SlabHandle h = o->h;
    void* p = o->p;
    uint32_t causes = o->inc->state == INC_ACTIVE && o->usable <= 768 ? freed_before : dead_pointer;
    free_one(w, s, o);
    for (size_t k = 0; k < SIDES; k++)
        if (obj_covering(&w->side[k], p)) return; /* cannot be: nothing was allocated since */
    note(w, "misuse s%d: %p freed twice", side_index(w, s), p);
    if (h && chance(w, 50)) {
        REQUIRE_OR(!free_obj(s->a, h), "handle %#llx freed twice", (unsigned long long)h);
        want_one(s, BIT(SLAB_MISUSE_STALE_HANDLE));
    }
    try_free(w, s, p, causes);
}

static inline void misuse_interior(struct world* w, struct side* s) {
    struct obj* o = any_obj(w, s);
    if (!o || o->reach < 2) return;
    static const size_t near[] = {1, 2, 8, 16, 32, 64, 128};
    size_t off = chance(w, 50) ? near[below(w, 7)] : 1 + below(w, o->reach - 1);
    if (off >= o->reach) off = o->reach - 1;
    note(w, "misuse s%d: interior pointer %p + %zu", side_index(w, s), (void*)o->p, off);
    /* beyond its first unit, the beginning of an object without a class is not looked for */
    account_of(s, o->inc)->refused_least += o->usable <= (256u << 10) || off < (64u << 10);
    try_free(w, s, o->p + off, BIT(SLAB_MISUSE_INTERIOR_POINTER));
}

static inline void misuse_foreign(struct world* w, struct side* s) {
    static char in_data[64];
    char on_stack[64];
    char* on_heap = malloc(64);
    struct obj* strange = any_obj(w, &w->side[1 - side_index(w, s)]);
    void* candidates[] = {in_data,
                          on_stack,
                          on_heap,
                          (void*)(uintptr_t)8,
                          (void*)(uintptr_t)(0x7fffffff0000u + below(w, 1u << 20)),
                          (void*)UINTPTR_MAX,
                          (void*)s->a,
                          strange ? (void*)strange->p : in_data + 16};
    void* p = candidates[below(w, sizeof candidates / sizeof *candidates)];
    note(w, "misuse s%d: foreign pointer %p", side_index(w, s), p);
    REQUIRE_OR(!slab_owns(s->a, p), "allocator claims the foreign pointer %p", p);
    REQUIRE_OR(slab_usable_size(s->a, p) == 0, "foreign pointer %p has a size", p);
    /* What malloc has given out may have been an object of this allocator before. */
    try_free(w, s, p, are_blocks(s) ? dead_pointer : BIT(SLAB_MISUSE_FOREIGN_POINTER));
    free(on_heap);
}

static inline void misuse_handle(struct world* w, struct side* s) {
    struct obj* o = any_obj(w, s);
    struct obj* strange = any_obj(w, &w->side[1 - side_index(w, s)]);
    SlabHandle h = roll(w);
    uint32_t causes = BIT(SLAB_MISUSE_STALE_HANDLE) | BIT(SLAB_MISUSE_BAD_HANDLE);
    unsigned kind = (unsigned)below(w, 4);
    if (kind == 0) h = 0;
    if (kind == 1 && o && o->h) h = o->h ^ ((uint64_t)1 << below(w, 64));
    if (kind == 2 && strange && strange->h) h = strange->h;
    note(w, "misuse s%d: forged handle %#llx", side_index(w, s), (unsigned long long)h);
    REQUIRE_OR(slab_handle_ptr(s->a, h) == NULL, "forged handle %#llx leads to an object", (unsigned long long)h);
    REQUIRE_OR(!free_obj(s->a, h), "forged handle %#llx was freed", (unsigned long long)h);
    want(s, causes, h ? 1 : 0, 1);
}

static inline void misuse_sizes(struct world* w, struct side* s) {
    volatile size_t zero = 0, huge = SIZE_MAX - below(w, 1u << 20), half = SIZE_MAX / 2 + 2, bad_align = 24;
    struct obj* o = any_obj(w, s);
    unsigned kind = (unsigned)below(w, 7);
    SlabHandle h = 1;
    void* p = NULL;
    note(w, "misuse s%d: bad size, kind %u", side_index(w, s), kind);
    errno = 0;
    switch (kind) {
    case 0:
        p = slab_malloc(s->a, zero);
        break;
    case 1:
        p = alloc_obj(s->a, 0, &h);
        break;
    case 2:
        p = slab_malloc(s->a, huge);
        break;
    case 3:
        p = slab_calloc(s->a, half, 2);
        break;
    case 4:
        p = slab_aligned_alloc(s->a, bad_align, 64);
        break;
    case 5:
        p = slab_malloc_epoch(s->a, zero, s->current);
        break;
    default:
        if (!o) return;
        slab_free_sized(s->a, o->p, o->reach + 1);
        account_of(s, o->inc)->refused_least++;
        want_one(s, BIT(SLAB_MISUSE_SIZE_MISMATCH));
        check_identity(s, o);
        check_contents(o);
        return;
    }
    REQUIRE_OR(p == NULL, "a senseless size gave %p", p);
    REQUIRE_OR(errno == EINVAL || errno == ENOMEM, "a senseless size gave errno %d", errno);
    REQUIRE_OR(kind != 1 || h == 0, "a refused allocation left a handle");
    REQUIRE_OR(slab_good_size(s->a, huge) == 0 && slab_good_size(s->a, zero) == 0, "a good size for a senseless one");
    want(s, BIT(SLAB_MISUSE_BAD_SIZE) | BIT(CAUSE_NO_MEMORY), kind == 4 ? 0 : 1, 1);
}

static inline void misuse_epoch_ids(struct world* w, struct side* s) {
    const EpochId bad[] = {s->ring_size, 1024, 0x7fffffff, 0x80000000u | 0x00345678u, 0xffffffffu};
    EpochId id = bad[below(w, 5)];
    note(w, "misuse s%d: epoch id %#x", side_index(w, s), id);
    EpochReceipt r;
    unsigned kind = (unsigned)below(w, 7);
    errno = 0;
    if (kind == 0) {
        REQUIRE_OR(!slab_malloc_epoch(s->a, 64, id) && errno == EINVAL, "allocated in bad epoch, errno %d", errno);
        want_one(s, BIT(SLAB_MISUSE_BAD_EPOCH));
        return;
    }
    switch (kind) {
    case 1:
        REQUIRE_OR(!epoch_close_ex(s->a, id, EPOCH_RELEASE, &r), "closed a bad epoch");
        break;
    case 2:
        epoch_close(s->a, id);
        break;
    case 3:
        slab_epoch_set_label(s->a, id, "nowhere");
        break;
    case 4:
        REQUIRE_OR(!epoch_close_era(s->a, s->max_era + 1000, EPOCH_DRAIN, &r), "closed a future era");
        break;
    case 5:
        REQUIRE_OR(epoch_domain_wrap(s->a, id, true) == NULL, "wrapped a bad epoch");
        break;
    default:
        slab_epoch_inc_refcount(s->a, id);
        slab_epoch_dec_refcount(s->a, id);
        REQUIRE_OR(slab_epoch_get_refcount(s->a, id) == 0, "refcount of a bad epoch");
        break;
    }
    REQUIRE_OR(epoch_era(s->a, id) == 0 && epoch_state(s->a, id) == EPOCH_CLOSING, "a bad epoch answers");
    want(s, BIT(SLAB_MISUSE_BAD_EPOCH), 0, 3);
}

/* No allocator at all: nothing happens, and nothing is counted anywhere. */
static inline void misuse_null(struct world* w) {
    SlabHandle h = 7;
    SlabGlobalStats g;
    struct obj* o = any_obj(w, &w->side[0]);
    note(w, "misuse: NULL allocator");
    REQUIRE_OR(!slab_malloc(NULL, 8) && !slab_malloc_epoch(NULL, 8, 0), "memory from NULL");
    REQUIRE_OR(!alloc_obj(NULL, 8, &h) && h == 0, "memory from NULL");
    REQUIRE_OR(!slab_calloc(NULL, 1, 8) && !slab_realloc(NULL, NULL, 8) && !slab_aligned_alloc(NULL, 64, 64),
               "memory from NULL");
    REQUIRE_OR(!free_obj(NULL, 12345) && !slab_handle_ptr(NULL, 12345), "a handle of NULL");
    REQUIRE_OR(!o || !slab_free_checked(NULL, o->p), "NULL allocator freed");
    slab_free(NULL, NULL);
    REQUIRE_OR(slab_free_checked(w->side[0].a, NULL), "free of NULL was refused");
    epoch_advance(NULL);
    epoch_close(NULL, 0);
    REQUIRE_OR(!epoch_close_ex(NULL, 0, EPOCH_DRAIN, NULL) && !epoch_close_era(NULL, 1, EPOCH_DRAIN, NULL),
               "closed NULL");
    REQUIRE_OR(epoch_era(NULL, 0) == 0 && !slab_epoch_on_end(NULL, 0, NULL, NULL), "an epoch of NULL");
    REQUIRE_OR(!epoch_domain_create(NULL) && !epoch_domain_wrap(NULL, 0, true) && !epoch_domain_begin(NULL, "x"),
               "a domain of NULL");
    epoch_domain_enter(NULL);
    epoch_domain_exit(NULL);
    epoch_domain_destroy(NULL);
    epoch_domain_force_close(NULL);
    epoch_domain_end(NULL);
    REQUIRE_OR(!epoch_domain_malloc(NULL, 8) && !epoch_domain_reset(NULL) && !epoch_domain_detach(NULL) &&
                   !epoch_domain_attach(NULL) && !epoch_domain_receipt(NULL, NULL),
               "a NULL domain obeys");
    slab_trim(NULL);
    slab_thread_flush(NULL);
    slab_stats_global(NULL, &g);
    REQUIRE_OR(g.live_objects == 0 && g.version == 0, "statistics of NULL");
}

static inline void op_misuse(struct world* w) {
    struct side* s = any_side(w);
    switch (below(w, 10)) {
    case 0:
    case 1:
        misuse_double_free(w, s);
        break;
    case 2:
    case 3:
        misuse_free_twice(w, s);
        break;
    case 4:
        misuse_interior(w, s);
        break;
    case 5:
        misuse_foreign(w, s);
        break;
    case 6:
        misuse_handle(w, s);
        break;
    case 7:
        misuse_sizes(w, s);
        break;
    case 8:
        misuse_epoch_ids(w, s);
        break;
    default:
        misuse_null(w);
        break;
    }
}

#endif
