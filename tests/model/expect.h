/*
 * expect.h - what the library must say, compared with the reference.
 *
 * After every operation: each refusal counter rose exactly as announced, and the misuse callback
 * was told the same. After closes: the receipt. What is asked every few hundred operations is in expect_report.h
 * and expect_labels.h.
 */
#ifndef MODEL_EXPECT_H
#define MODEL_EXPECT_H

#include "reference.h"
#include "stats/check.h"

enum { REGION_INDEX = 53, LARGE_INDEX = 54 }; /* as docs/semantics.md has them */

static const uint32_t fixed_class[SLAB_FIXED_CLASSES] = {64, 96, 128, 192, 256, 384, 512, 768};
/* Between them, from BETWEEN on. */
enum { BETWEEN = 44, BETWEEN_COUNT = REGION_INDEX - BETWEEN };
static const uint32_t between_class[BETWEEN_COUNT] = {80, 112, 160, 224, 320, 448, 640, 288, 4608};

static const char* const cause_name[CAUSE_COUNT] = {
    "stale_handle",    "bad_handle",       "double_free",   "stale_free",    "interior_pointer", "foreign_pointer",
    "size_mismatch",   "bad_epoch",        "closed_epoch",  "bad_size",      "domain_order",     "domain_stale",
    "write_after_end", "late_double_free", "out_of_memory", "retired_slabs", "bad_environment",  "over_budget"};

/* ---- refusals --------------------------------------------------------------------------- */

static inline void read_refusals(SlabAllocator* a, uint64_t out[CAUSE_COUNT]) {
    SlabRefusals r;
    slab_stats_refusals(a, &r);
    const uint64_t all[CAUSE_COUNT] = {
        r.stale_handle,    r.bad_handle,       r.double_free,   r.stale_free,    r.interior_pointer, r.foreign_pointer,
        r.size_mismatch,   r.bad_epoch,        r.closed_epoch,  r.bad_size,      r.domain_order,     r.domain_stale,
        r.write_after_end, r.late_double_free, r.out_of_memory, r.retired_slabs, r.bad_environment,  r.over_budget};
    memcpy(out, all, sizeof all);
}

/* Announces that the running operation adds between min and max refusals among the causes in mask. */
static inline void want(struct side* s, uint32_t mask, unsigned min, unsigned max) {
    s->want_mask |= mask;
    s->want_min += min;
    s->want_max += max;
}

static inline void want_one(struct side* s, uint32_t mask) { want(s, mask, 1, 1); }

static inline void check_refusals(struct side* s) {
    uint64_t now[CAUSE_COUNT];
    read_refusals(s->a, now);
    uint64_t added = 0;
    uint32_t hit = 0;
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        if (now[c] == s->seen[c] || c == CAUSE_RETIRED) continue;
        REQUIRE_OR(s->want_mask & BIT(c), "refusal counter %s went %llu -> %llu, none was due", cause_name[c],
                   (unsigned long long)s->seen[c], (unsigned long long)now[c]);
        added += now[c] - s->seen[c];
        hit |= BIT(c);
    }
    REQUIRE_OR(added >= s->want_min && added <= s->want_max,
               "%llu refusals counted (causes %#x), %u..%u were due among causes %#x", (unsigned long long)added, hit,
               s->want_min, s->want_max, s->want_mask);
    for (unsigned c = 0; c < SLAB_MISUSE_COUNT; c++)
        REQUIRE_OR(s->told[c] == now[c], "misuse callback told of %s %llu times, counter says %llu", cause_name[c],
                   (unsigned long long)s->told[c], (unsigned long long)now[c]);
    memcpy(s->seen, now, sizeof now);
    s->want_mask = 0, s->want_min = 0, s->want_max = 0;
}

/* ---- cleanups --------------------------------------------------------------------------- */

static inline void check_cleanups(const struct inc* inc) {
    if (inc->n_cleanups == 0) return;
    bool ended = inc_ended(inc);
    bool maybe = inc->state == INC_ADVANCED && inc->objects.live == 0; /* empty: when the library next looks */
    if (ended)
        REQUIRE_OR(inc->n_ran == inc->n_cleanups, "era %llu ended (state %d, named %d), %u of %u cleanups ran",
                   (unsigned long long)inc->era, inc->state, inc->named, inc->n_ran, inc->n_cleanups);
    else if (!maybe)
        REQUIRE_OR(inc->n_ran == 0, "era %llu (state %d, %llu live): %u cleanups ran too early",
                   (unsigned long long)inc->era, inc->state, (unsigned long long)inc->objects.live, inc->n_ran);
}

/* After every operation. */
static inline void settle(struct world* w) {
    for (int i = 0; i < SIDES; i++) {
        struct side* s = &w->side[i];
        check_refusals(s);
        for (size_t k = 0; k < s->n_incs; k++) check_cleanups(s->incs[k]);
        ref_forget(s);
    }
}

/* ---- receipts --------------------------------------------------------------------------- */

static inline void check_balance(const char* what, const struct balance* want_, uint64_t allocated, uint64_t freed,
                                 uint64_t released, uint64_t escaped) {
    REQUIRE_OR(allocated == want_->allocated && freed == want_->freed && released == want_->released &&
                   escaped == want_->live,
               "receipt %s: allocated %llu freed %llu released %llu escaped %llu; due %llu %llu %llu %llu", what,
               (unsigned long long)allocated, (unsigned long long)freed, (unsigned long long)released,
               (unsigned long long)escaped, (unsigned long long)want_->allocated, (unsigned long long)want_->freed,
               (unsigned long long)want_->released, (unsigned long long)want_->live);
}

static inline void check_sums(const EpochReceipt* r, const struct balance* objects, const struct balance* bytes) {
    REQUIRE_OR(r->version == 2, "receipt version %u", r->version);
    check_balance("objects", objects, r->objects_allocated, r->objects_freed, r->objects_released, r->objects_escaped);
    check_balance("bytes", bytes, r->bytes_allocated, r->bytes_freed, r->bytes_released, r->bytes_escaped);
    REQUIRE_OR(r->slabs_deferred == 0 && r->bytes_deferred == 0,
               "receipt defers %llu slabs although no thread is inside a call", (unsigned long long)r->slabs_deferred);
}

/* The receipt of a close that has just been applied to the reference. `released_now` are the bytes it ended. */
static inline void check_receipt(const EpochReceipt* r, const struct inc* inc, uint64_t released_now) {
    REQUIRE_OR(r->epoch_era == inc->era, "receipt of era %llu, closed era %llu", (unsigned long long)r->epoch_era,
               (unsigned long long)inc->era);
    REQUIRE_OR(r->epoch_id == inc->id, "receipt of epoch %#x, closed epoch %#x", r->epoch_id, inc->id);
    REQUIRE_OR(strcmp(r->label, inc->label) == 0, "receipt label '%s', due '%s'", r->label, inc->label);
    check_sums(r, &inc->objects, &inc->bytes);
    REQUIRE_OR(r->bytes_returned >= released_now, "receipt returns %llu bytes, %llu bytes of objects ended",
               (unsigned long long)r->bytes_returned, (unsigned long long)released_now);
}

/* ---- objects ---------------------------------------------------------------------------- */

static inline void check_contents(const struct obj* o) {
    REQUIRE_OR(pattern(o->p, o->reach, o->reach, o->seed, false),
               "contents of object %p (%zu asked, %zu usable, era %llu) changed", (void*)o->p, o->asked, o->usable,
               (unsigned long long)o->inc->era);
}

/* The answers the library must give about a live object. */
static inline void check_identity(struct side* s, const struct obj* o) {
    EpochId id = 0;
    uint64_t era = 0;
    REQUIRE_OR(slab_usable_size(s->a, o->p) == o->reach, "usable size of %p became %zu, was %zu", (void*)o->p,
               slab_usable_size(s->a, o->p), o->reach);
    REQUIRE_OR(slab_ptr_epoch(s->a, o->p, &id, &era), "no epoch for the live object %p", (void*)o->p);
    REQUIRE_OR(id == o->inc->id && era == o->inc->era, "object %p is in epoch %#x era %llu, due %#x era %llu",
               (void*)o->p, id, (unsigned long long)era, o->inc->id, (unsigned long long)o->inc->era);
    REQUIRE_OR(slab_owns(s->a, o->p), "allocator disowns the live object %p", (void*)o->p);
    if (o->h)
        REQUIRE_OR(slab_handle_ptr(s->a, o->h) == o->p, "handle %#llx of %p leads to %p", (unsigned long long)o->h,
                   (void*)o->p, slab_handle_ptr(s->a, o->h));
}

/* ---- statistics ------------------------------------------------------------------------- */

static inline size_t class_size(unsigned index) {
    static const size_t first[] = {64, 96, 128, 192, 256, 384, 512, 768, 16, 32, 48};
    if (index >= REGION_INDEX) return 0;
    if (index >= BETWEEN) return between_class[index - BETWEEN];
    return index < 11 ? first[index] : ((size_t)1024 << (index - 11) / 4) / 4 * (4 + (index - 11) % 4);
}

/* Index of the smallest class whose slots have so many bytes. */
static inline unsigned class_of_bytes(size_t bytes) {
    if (bytes > LARGE_OVER) return LARGE_INDEX;
    if (bytes <= 48) return 8 + (unsigned)((bytes - 1) / 16);
    unsigned k = 63 - (unsigned)__builtin_clzll(bytes - 1), found = 11;
    if (bytes > 1024) found = 12 + (k - 10) * 4 + (unsigned)((bytes - 1) >> (k - 2) & 3);
    for (unsigned c = SLAB_FIXED_CLASSES; c-- > 0;)
        if (bytes <= fixed_class[c]) found = c;
    for (unsigned m = 0; m < BETWEEN_COUNT; m++)
        if (bytes <= between_class[m] && between_class[m] < class_size(found)) found = BETWEEN + m;
    return found;
}

/* Under which it counts; objects of regions under that of their size. */
static inline unsigned class_of(const struct obj* o) { return o->large ? LARGE_INDEX : class_of_bytes(o->usable); }

static inline void check_rss_of(const struct inc* inc, uint64_t before, uint64_t after) {
    REQUIRE_OR((before == 0) == (after == 0), "resident size before a close %llu, after %llu",
               (unsigned long long)before, (unsigned long long)after);
    REQUIRE_OR(before || !inc->measured, "era %llu was closed holding objects, and nothing measured",
               (unsigned long long)inc->era);
    REQUIRE_OR(!before || inc->asked, "era %llu was not closed by id or era, and was measured",
               (unsigned long long)inc->era);
}

/* What an id says about the incarnation it names now. */
static inline void check_named(struct side* s, const struct inc* inc) {
    SlabEpochStats e;
    slab_stats_epoch(s->a, 0, inc->id, &e);
    REQUIRE_OR(e.epoch_era == inc->era && epoch_era(s->a, inc->id) == inc->era, "epoch %#x is era %llu, due %llu",
               inc->id, (unsigned long long)e.epoch_era, (unsigned long long)inc->era);
    REQUIRE_OR((e.state == EPOCH_ACTIVE) == (inc->state == INC_ACTIVE), "epoch %#x is in state %d, due %d", inc->id,
               e.state, inc->state);
    REQUIRE_OR(epoch_state(s->a, inc->id) == e.state, "epoch %#x is in two states", inc->id);
    REQUIRE_OR(strcmp(e.label, inc->label) == 0, "epoch %#x: label '%s', due '%s'", inc->id, e.label, inc->label);
    bool before_first = inc->objects.allocated == 0 && !inc->tried;
    REQUIRE_OR((!before_first && inc->era != 1 && !inc->untimed) || e.open_since_ns == 0,
               "epoch %#x is open since %llu", inc->id, (unsigned long long)e.open_since_ns);
    REQUIRE_OR(slab_epoch_get_refcount(s->a, inc->id) == inc->refcount, "refcount of epoch %#x is %llu, due %llu",
               inc->id, (unsigned long long)slab_epoch_get_refcount(s->a, inc->id), (unsigned long long)inc->refcount);
}

/* Its objects, class by class; a closed one holds no empty slab. Objects of regions count under the class of their size. */
static inline void check_held(struct side* s, const struct inc* inc) {
    uint64_t live[LARGE_INDEX + 1] = {0}, bytes = 0, objects = 0;
    for (size_t i = 0; i < s->n_objs; i++)
        if (s->objs[i]->inc == inc) live[class_of(s->objs[i])]++;
    for (unsigned c = 0; c <= LARGE_INDEX; c++) {
        SlabEpochStats e;
        slab_stats_epoch(s->a, c, inc->id, &e);
        REQUIRE_OR(e.version == SLAB_STATS_VERSION && e.class_index == c && e.object_size == class_size(c),
                   "class %u of an epoch: version %u, index %u, size %u", c, e.version, e.class_index, e.object_size);
        REQUIRE_OR(e.epoch_id == inc->id && e.epoch_era == inc->era && strcmp(e.label, inc->label) == 0,
                   "class %u of epoch %#x: another epoch", c, inc->id);
        REQUIRE_OR(e.alloc_count == live[c], "epoch %#x class %u: alloc_count %llu, due %llu", inc->id, c,
                   (unsigned long long)e.alloc_count, (unsigned long long)live[c]);
        REQUIRE_OR(e.reclaimable_bytes <= e.estimated_rss_bytes && !e.reclaimable_bytes == !e.reclaimable_slab_count,
                   "epoch %#x class %u: %u slabs of %llu bytes are empty, of %llu", inc->id, c,
                   e.reclaimable_slab_count, (unsigned long long)e.reclaimable_bytes,
                   (unsigned long long)e.estimated_rss_bytes);
        REQUIRE_OR(!e.estimated_rss_bytes == !(e.partial_slab_count + e.full_slab_count + e.reclaimable_slab_count),
                   "epoch %#x class %u: bytes without slabs", inc->id, c);
        if (inc->state >= INC_CLOSED)
            REQUIRE_OR(e.reclaimable_slab_count == 0, "closed epoch %#x class %u still holds %u empty slabs", inc->id,
                       c, e.reclaimable_slab_count);
        check_rss_of(inc, e.rss_before_close, e.rss_after_close);
        bytes += e.estimated_rss_bytes, objects += live[c];
    }
    REQUIRE_OR(objects == inc->objects.live && bytes >= inc->bytes.live, "epoch %#x holds %llu bytes, %llu are live",
               inc->id, (unsigned long long)bytes, (unsigned long long)inc->bytes.live);
}

#endif
