/*
 * expect.h - what the library must say, compared with the reference.
 *
 * After every operation: each refusal counter rose exactly as announced, and the misuse callback
 * was told the same. Every few hundred operations: totals, per class and per epoch figures, the
 * library's own invariant checker, the contents of every live object.
 */
#ifndef MODEL_EXPECT_H
#define MODEL_EXPECT_H

#include "reference.h"
#include "stats/check.h"

static const uint32_t fixed_class[SLAB_FIXED_CLASSES] = {64, 96, 128, 192, 256, 384, 512, 768};

static const char* const cause_name[CAUSE_COUNT] = {
    "stale_handle",     "bad_handle",    "double_free",   "stale_free",     "interior_pointer", "foreign_pointer",
    "size_mismatch",    "bad_epoch",     "closed_epoch",  "bad_size",       "domain_order",     "domain_stale",
    "late_double_free", "out_of_memory", "retired_slabs", "bad_environment"};

/* ---- refusals --------------------------------------------------------------------------- */

static inline void read_refusals(SlabAllocator* a, uint64_t out[CAUSE_COUNT]) {
    SlabRefusals r;
    slab_stats_refusals(a, &r);
    const uint64_t all[CAUSE_COUNT] = {r.stale_handle,     r.bad_handle,      r.double_free,   r.stale_free,
                                       r.interior_pointer, r.foreign_pointer, r.size_mismatch, r.bad_epoch,
                                       r.closed_epoch,     r.bad_size,        r.domain_order,  r.domain_stale,
                                       r.late_double_free, r.out_of_memory,   r.retired_slabs, r.bad_environment};
    memcpy(out, all, sizeof all);
}

/* Announces that the running operation adds between min and max refusals among the causes in mask. */
static inline void want(struct side* s, uint32_t mask, unsigned min, unsigned max) {
    s->want_mask |= mask;
    s->want_min += min;
    s->want_max += max;
}

static inline void want_one(struct side* s, uint32_t mask) { want(s, mask, 1, 1); }

static inline void check_refusals(struct world* w, struct side* s) {
    uint64_t now[CAUSE_COUNT];
    read_refusals(s->a, now);
    uint64_t added = 0;
    uint32_t hit = 0;
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        if (now[c] == s->seen[c] || c == CAUSE_RETIRED) continue;
        REQUIRE(w, s->want_mask & BIT(c), "refusal counter %s went %llu -> %llu, none was due", cause_name[c],
                (unsigned long long)s->seen[c], (unsigned long long)now[c]);
        added += now[c] - s->seen[c];
        hit |= BIT(c);
    }
    REQUIRE(w, added >= s->want_min && added <= s->want_max,
            "%llu refusals counted (causes %#x), %u..%u were due among causes %#x", (unsigned long long)added, hit,
            s->want_min, s->want_max, s->want_mask);
    for (unsigned c = 0; c < SLAB_MISUSE_COUNT; c++)
        REQUIRE(w, s->told[c] == now[c], "misuse callback told of %s %llu times, counter says %llu", cause_name[c],
                (unsigned long long)s->told[c], (unsigned long long)now[c]);
    memcpy(s->seen, now, sizeof now);
    s->want_mask = 0, s->want_min = 0, s->want_max = 0;
}

/* ---- cleanups --------------------------------------------------------------------------- */

static inline void check_cleanups(struct world* w, const struct inc* inc) {
    if (inc->n_cleanups == 0) return;
    bool ended = inc_ended(inc);
    bool maybe = inc->state == INC_ADVANCED && inc->objects.live == 0; /* empty: when the library next looks */
    if (ended)
        REQUIRE(w, inc->n_ran == inc->n_cleanups, "era %llu ended (state %d, named %d), %u of %u cleanups ran",
                (unsigned long long)inc->era, inc->state, inc->named, inc->n_ran, inc->n_cleanups);
    else if (!maybe)
        REQUIRE(w, inc->n_ran == 0, "era %llu (state %d, %llu live): %u cleanups ran too early",
                (unsigned long long)inc->era, inc->state, (unsigned long long)inc->objects.live, inc->n_ran);
}

/* After every operation. */
static inline void settle(struct world* w) {
    for (int i = 0; i < SIDES; i++) {
        struct side* s = &w->side[i];
        check_refusals(w, s);
        for (size_t k = 0; k < s->n_incs; k++) check_cleanups(w, s->incs[k]);
        ref_forget(s);
    }
}

/* ---- receipts --------------------------------------------------------------------------- */

static inline void check_balance(struct world* w, const char* what, const struct balance* want_, uint64_t allocated,
                                 uint64_t freed, uint64_t released, uint64_t escaped) {
    REQUIRE(w,
            allocated == want_->allocated && freed == want_->freed && released == want_->released &&
                escaped == want_->live,
            "receipt %s: allocated %llu freed %llu released %llu escaped %llu; due %llu %llu %llu %llu", what,
            (unsigned long long)allocated, (unsigned long long)freed, (unsigned long long)released,
            (unsigned long long)escaped, (unsigned long long)want_->allocated, (unsigned long long)want_->freed,
            (unsigned long long)want_->released, (unsigned long long)want_->live);
}

static inline void check_sums(struct world* w, const EpochReceipt* r, const struct balance* objects,
                              const struct balance* bytes) {
    REQUIRE(w, r->version == 1, "receipt version %u", r->version);
    check_balance(w, "objects", objects, r->objects_allocated, r->objects_freed, r->objects_released,
                  r->objects_escaped);
    check_balance(w, "bytes", bytes, r->bytes_allocated, r->bytes_freed, r->bytes_released, r->bytes_escaped);
    REQUIRE(w, r->slabs_deferred == 0 && r->bytes_deferred == 0,
            "receipt defers %llu slabs although no thread is inside a call", (unsigned long long)r->slabs_deferred);
}

/* The receipt of a close that has just been applied to the reference. `released_now` are the bytes it ended. */
static inline void check_receipt(struct world* w, const EpochReceipt* r, const struct inc* inc, uint64_t released_now) {
    REQUIRE(w, r->epoch_era == inc->era, "receipt of era %llu, closed era %llu", (unsigned long long)r->epoch_era,
            (unsigned long long)inc->era);
    REQUIRE(w, r->epoch_id == inc->id, "receipt of epoch %#x, closed epoch %#x", r->epoch_id, inc->id);
    REQUIRE(w, strcmp(r->label, inc->label) == 0, "receipt label '%s', due '%s'", r->label, inc->label);
    check_sums(w, r, &inc->objects, &inc->bytes);
    REQUIRE(w, r->bytes_returned >= released_now, "receipt returns %llu bytes, %llu bytes of objects ended",
            (unsigned long long)r->bytes_returned, (unsigned long long)released_now);
}

/* ---- objects ---------------------------------------------------------------------------- */

static inline void check_contents(struct world* w, const struct obj* o) {
    REQUIRE(w, pattern(o->p, o->usable, o->usable, o->seed, false),
            "contents of object %p (%zu asked, %zu usable, era %llu) changed", (void*)o->p, o->asked, o->usable,
            (unsigned long long)o->inc->era);
}

/* The answers the library must give about a live object. */
static inline void check_identity(struct world* w, struct side* s, const struct obj* o) {
    EpochId id = 0;
    uint64_t era = 0;
    REQUIRE(w, slab_usable_size(s->a, o->p) == o->usable, "usable size of %p became %zu, was %zu", (void*)o->p,
            slab_usable_size(s->a, o->p), o->usable);
    REQUIRE(w, slab_ptr_epoch(s->a, o->p, &id, &era), "no epoch for the live object %p", (void*)o->p);
    REQUIRE(w, id == o->inc->id && era == o->inc->era, "object %p is in epoch %#x era %llu, due %#x era %llu",
            (void*)o->p, id, (unsigned long long)era, o->inc->id, (unsigned long long)o->inc->era);
    REQUIRE(w, slab_owns(s->a, o->p), "allocator disowns the live object %p", (void*)o->p);
    if (o->h)
        REQUIRE(w, slab_handle_ptr(s->a, o->h) == o->p, "handle %#llx of %p leads to %p", (unsigned long long)o->h,
                (void*)o->p, slab_handle_ptr(s->a, o->h));
}

/* ---- statistics ------------------------------------------------------------------------- */

static inline void check_totals(struct world* w, struct side* s) {
    SlabGlobalStats g;
    slab_stats_global(s->a, &g);
    REQUIRE(w, g.version == SLAB_STATS_VERSION, "statistics version %u", g.version);
    REQUIRE(w, g.live_objects == s->n_objs, "live_objects %llu, due %zu", (unsigned long long)g.live_objects,
            s->n_objs);
    REQUIRE(w, g.live_bytes == s->live_bytes, "live_bytes %llu, due %llu", (unsigned long long)g.live_bytes,
            (unsigned long long)s->live_bytes);
    REQUIRE(w, g.current_epoch == s->current && epoch_current(s->a) == s->current, "current epoch %u, due %u",
            g.current_epoch, s->current);
    REQUIRE(w, g.committed_bytes >= g.live_bytes, "committed %llu < live %llu", (unsigned long long)g.committed_bytes,
            (unsigned long long)g.live_bytes);
    uint64_t open = 0, draining_least = 0, draining_most = 0;
    for (size_t i = 0; i < s->n_incs; i++) {
        const struct inc* inc = s->incs[i];
        open += inc->state == INC_ACTIVE;
        draining_least += inc->state != INC_ACTIVE && inc->objects.live > 0;
        draining_most += inc->state == INC_ADVANCED || (inc->state != INC_ACTIVE && inc->objects.live > 0);
    }
    REQUIRE(w, g.open_phases == open, "open_phases %llu, due %llu", (unsigned long long)g.open_phases,
            (unsigned long long)open);
    REQUIRE(w, g.draining_phases >= draining_least && g.draining_phases <= draining_most,
            "draining_phases %llu, due %llu..%llu", (unsigned long long)g.draining_phases,
            (unsigned long long)draining_least, (unsigned long long)draining_most);
}

/* Objects of domains may lie side by side in slabs of no fixed class; the sum over all classes is exact. */
static inline void check_classes(struct world* w, struct side* s) {
    uint64_t bytes = 0;
    for (unsigned c = 0; c < MOST_CLASSES; c++) {
        SlabClassStats k;
        slab_stats_class(s->a, c, &k);
        if (k.version == 0) break;
        bytes += k.live_bytes;
        if (c >= SLAB_FIXED_CLASSES) continue;
        REQUIRE(w,
                k.slow_path_hits ==
                    k.slow_path_cache_miss + k.slow_path_epoch_closed + k.current_partial_null + k.current_partial_full,
                "class %u: %llu slow paths, causes %llu + %llu + %llu + %llu", c, (unsigned long long)k.slow_path_hits,
                (unsigned long long)k.slow_path_cache_miss, (unsigned long long)k.slow_path_epoch_closed,
                (unsigned long long)k.current_partial_null, (unsigned long long)k.current_partial_full);
        uint64_t ring = 0, all = 0;
        for (size_t i = 0; i < s->n_objs; i++) {
            if (s->objs[i]->usable != fixed_class[c]) continue;
            all += fixed_class[c];
            if (s->objs[i]->inc->ring) ring += fixed_class[c];
        }
        REQUIRE(w, k.object_size == fixed_class[c] && k.class_index == c, "class %u has size %u", c, k.object_size);
        REQUIRE(w, k.live_bytes >= ring && k.live_bytes <= all, "class %u: live_bytes %llu, due %llu..%llu", c,
                (unsigned long long)k.live_bytes, (unsigned long long)ring, (unsigned long long)all);
    }
    REQUIRE(w, bytes == s->live_bytes, "the classes' live_bytes add up to %llu, due %llu", (unsigned long long)bytes,
            (unsigned long long)s->live_bytes);
}

static inline uint64_t live_of(const struct side* s, const struct inc* inc, size_t usable) {
    uint64_t n = 0;
    for (size_t i = 0; i < s->n_objs; i++) n += s->objs[i]->inc == inc && s->objs[i]->usable == usable;
    return n;
}

/* What an id says about the incarnation it names now. */
static inline void check_named(struct world* w, struct side* s, const struct inc* inc) {
    SlabEpochStats e;
    slab_stats_epoch(s->a, 0, inc->id, &e);
    REQUIRE(w, e.epoch_era == inc->era && epoch_era(s->a, inc->id) == inc->era, "epoch %#x is era %llu, due %llu",
            inc->id, (unsigned long long)e.epoch_era, (unsigned long long)inc->era);
    REQUIRE(w, (e.state == EPOCH_ACTIVE) == (inc->state == INC_ACTIVE), "epoch %#x is in state %d, due %d", inc->id,
            e.state, inc->state);
    REQUIRE(w, epoch_state(s->a, inc->id) == e.state, "epoch %#x is in two states", inc->id);
    REQUIRE(w, strcmp(e.label, inc->label) == 0, "epoch %#x: label '%s', due '%s'", inc->id, e.label, inc->label);
    REQUIRE(w, slab_epoch_get_refcount(s->a, inc->id) == inc->refcount, "refcount of epoch %#x is %llu, due %llu",
            inc->id, (unsigned long long)slab_epoch_get_refcount(s->a, inc->id), (unsigned long long)inc->refcount);
}

/* Its objects, class by class; a closed one holds no empty slab. */
static inline void check_held(struct world* w, struct side* s, const struct inc* inc) {
    uint64_t objects = 0;
    for (unsigned c = 0; c < MOST_CLASSES; c++) {
        SlabEpochStats e;
        slab_stats_epoch(s->a, c, inc->id, &e);
        if (e.version == 0 && c >= SLAB_FIXED_CLASSES) break;
        objects += e.alloc_count;
        if (inc->ring && c < SLAB_FIXED_CLASSES)
            REQUIRE(w, e.alloc_count == live_of(s, inc, fixed_class[c]),
                    "epoch %#x class %u: alloc_count %llu, due %llu", inc->id, c, (unsigned long long)e.alloc_count,
                    (unsigned long long)live_of(s, inc, fixed_class[c]));
        if (inc->state >= INC_CLOSED)
            REQUIRE(w, e.reclaimable_slab_count == 0 && e.reclaimable_bytes == 0,
                    "closed epoch %#x class %u still holds %u empty slabs", inc->id, c, e.reclaimable_slab_count);
    }
    REQUIRE(w, objects == inc->objects.live, "epoch %#x: alloc_count of all classes %llu, due %llu", inc->id,
            (unsigned long long)objects, (unsigned long long)inc->objects.live);
}

static inline void check_invariants(struct world* w) {
    char why[256] = "";
    for (int i = 0; i < SIDES; i++) {
        REQUIRE(w, tsi_check_allocator(w->side[i].a, why, sizeof why), "the allocator's own checker: %s", why);
        check_totals(w, &w->side[i]);
    }
    w->checks++;
}

static inline void check_everything(struct world* w) {
    check_invariants(w);
    for (int i = 0; i < SIDES; i++) {
        struct side* s = &w->side[i];
        for (size_t k = 0; k < s->n_objs; k++) {
            check_contents(w, s->sorted[k]);
            check_identity(w, s, s->sorted[k]);
            if (k > 0)
                REQUIRE(w, s->sorted[k - 1]->p + s->sorted[k - 1]->usable <= s->sorted[k]->p,
                        "objects %p and %p overlap", (void*)s->sorted[k - 1]->p, (void*)s->sorted[k]->p);
        }
        check_classes(w, s);
        unsigned held = 0;
        for (size_t k = 0; k < s->n_incs; k++) {
            const struct inc* inc = s->incs[(k + w->checks) % s->n_incs];
            if (!inc->named || (!inc->ring && inc->state != INC_ACTIVE)) continue;
            check_named(w, s, inc);
            if (held < 4 && (inc->objects.live > 0 || k % 8 == 0)) check_held(w, s, inc), held++;
        }
        check_refusals(w, s); /* questions are not misuse */
    }
}

#endif
