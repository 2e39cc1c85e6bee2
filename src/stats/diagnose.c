/*
 * diagnose.c - see diagnose.h.
 *
 * Leaks are collected in one walk over the slabs into a hash table by incarnation and class. The number of rows is not
 * known before, so a table that runs full is dropped and the walk repeated with one of twice the size. A row belongs to
 * one incarnation for certain, because its reference carries the era; incarnations reused by the time the label is read
 * are left out.
 *
 * Objects in regions count under the class of their usable size. A region itself counts with the class
 * that has most bytes alive in it, so the rows of an incarnation add up to what it holds.
 */
#include "stats/diagnose.h"

#include "observe/stand_in.h"
#include "mem/region.h"
#include "os/clock.h"
#include "phase/draining.h"
#include "stats/report.h"
#include "stats/tally.h"
#include "stats/words.h"

#include <stdio.h>
#include <string.h>

/* ---- leaks ---- */

enum { FIRST_ROWS = 512 };

typedef struct Collect {
    TsiArena* a;
    TsiLeakRow* rows; /* open addressing; ref 0 = free */
    uint32_t capacity, used;
    uint64_t now_ns, threshold_ns;
    bool full;
} Collect;

/* Returns the age of the incarnation `inc` at collect->now_ns, in ns, since it opened, or since its allocator was made
 * if that was later, as for the first one of id 0; 0 if it opened after now_ns. [any thread, needs no lock] */
static uint64_t age_ns(const Collect* collect, TsiInc* inc) {
    uint64_t since = tsi_load_relaxed(&inc->open_since_ns);
    if (since < collect->a->born_ns) since = collect->a->born_ns;
    return collect->now_ns > since ? collect->now_ns - since : 0;
}

/* Returns the row of the incarnation `ref` and the class `cls` in collect->rows, or, if there is none, the free one
 * (its ref is 0) where row_of makes it: row_of never lets the table be full. [no other user of collect] */
static TsiLeakRow* find_row(const Collect* collect, TsiRef ref, unsigned cls) {
    uint64_t hash = (ref ^ (uint64_t)cls << 56) * 0x9e3779b97f4a7c15ull;
    for (uint32_t at = (uint32_t)(hash >> 32) & (collect->capacity - 1);; at = (at + 1) & (collect->capacity - 1)) {
        TsiLeakRow* row = &collect->rows[at];
        if (row->ref == 0 || (row->ref == ref && row->c.class_index == cls - 1)) return row;
    }
}

/* Returns the row of the incarnation `ref` and the class `cls`, made with zeros if it is new. Returns NULL, and sets
 * collect->full, if it is new and three quarters of the table are used. [no other user of collect] */
static TsiLeakRow* row_of(Collect* collect, TsiRef ref, unsigned cls) {
    TsiLeakRow* row = find_row(collect, ref, cls);
    if (row->ref != 0) return row;
    collect->full = collect->used >= collect->capacity / 4 * 3;
    if (collect->full) return NULL;
    collect->used++;
    row->ref = ref;
    row->c.class_index = cls - 1;
    row->c.object_size = tsi_class_object_size(collect->a, cls);
    return row;
}

/* Adds the bytes of the slab *view to a row, and 1 to its slabs by their fill: reclaimable without live objects, full
 * if another object of object_bytes would not fit, otherwise partial. Does nothing if row is NULL.
 * [no other user of row] */
static void add_slab(TsiLeakRow* row, const TsiSlabView* view, uint64_t object_bytes) {
    if (row == NULL) return;
    row->c.estimated_rss_bytes += view->bytes;
    if (view->sum.live.objects == 0) row->c.reclaimable_slab_count++;
    else if (view->sum.live.bytes + object_bytes > view->bytes) row->c.full_slab_count++;
    else row->c.partial_slab_count++;
}

/* Adds the region *view with live objects to the rows: objects count under the class of their size, the region itself
 * under the class that has most bytes there; larger objects than the classes have are not counted. Sets collect->full
 * where there is no room for a row; does nothing without live objects. [no other user of collect] */
static void add_region(Collect* collect, const TsiSlabView* view) {
    TsiRegionTally region;
    unsigned most = 0;
    if (view->sum.live.objects == 0) return; /* without live objects there is no leak */
    tsi_tally_region(collect->a, view, &region);
    for (unsigned cls = 1; cls <= TSI_SMALL_CLASSES; cls++) {
        if (region.objects[cls] == 0) continue;
        TsiLeakRow* row = row_of(collect, view->ref, cls);
        if (row != NULL) row->c.alloc_count += region.objects[cls];
        if (most == 0 || region.bytes[cls] > region.bytes[most]) most = cls;
    }
    if (most != 0) add_slab(row_of(collect, view->ref, most), view, TSI_GRANULE);
}

/* Adds the slab *view to the rows of the Collect ctx if its incarnation is known, has ended, and is threshold_ns or
 * more old: its live objects, and the slab itself, under its class, a region's by add_region. Otherwise, and once the
 * table is full, does nothing. [no other user of ctx] */
static void collect_slab(const TsiSlabView* view, void* ctx) {
    Collect* collect = ctx;
    if (view->ref == 0 || collect->full) return;
    TsiInc* inc = tsi_inc(&collect->a->phases, tsi_ref_index(view->ref));
    if (!tsi_ref_is_current(&collect->a->phases, view->ref) || tsi_inc_state(inc) == TSI_INC_ACTIVE) return;
    if (age_ns(collect, inc) < collect->threshold_ns) return;
    if (tsi_class_is_region(view->cls)) {
        add_region(collect, view);
        return;
    }
    TsiLeakRow* row = row_of(collect, view->ref, view->cls);
    if (row != NULL) row->c.alloc_count += view->sum.live.objects;
    add_slab(row, view, collect->a->space.classes->c[view->cls].size);
}

/* Returns the live objects in all rows of *collect of the incarnation `ref`, and their usable bytes; for regions and
 * large objects, whose classes have no one size, the bytes of their slabs. [no other user of collect] */
static TsiTotals held_by(const Collect* collect, TsiRef ref) {
    TsiTotals held = {0, 0};
    for (unsigned cls = 1; cls < TSI_CLASSES; cls++) {
        const TsiLeakRow* row = find_row(collect, ref, cls);
        if (row->ref == 0) continue;
        uint64_t bytes = row->c.object_size != 0 ? row->c.alloc_count * row->c.object_size : row->c.estimated_rss_bytes;
        tsi_totals_add(&held, (TsiTotals){row->c.alloc_count, bytes});
    }
    return held;
}

/* Returns true if the label of the incarnation `ref` expects escapes, and the incarnation has let no more escape: by
 * inc->draining where its orphans are counted, otherwise by the rows that were collected. Takes the stripe.
 * [any thread, no lock held] */
static bool is_expected(const Collect* collect, TsiRef ref) {
    TsiInc* inc = tsi_inc(&collect->a->phases, tsi_ref_index(ref));
    TsiLabel* label = tsi_label(&collect->a->phases.labels, tsi_inc_label(inc));
    TsiExpected expected = tsi_draining_expected(label);
    if ((expected.objects | expected.bytes) == 0) return false;
    tsi_lock_take(tsi_inc_lock(inc));
    bool known = inc->draining.label != 0, over = inc->draining.over;
    tsi_lock_give(tsi_inc_lock(inc));
    if (known) return !over;
    TsiTotals held = held_by(collect, ref);
    return !tsi_is_unexpected(&expected, held.objects, held.bytes);
}

/* Sets id, label, age in seconds, references and state of a row of *collect, whose ref names its incarnation, from
 * that one's record, and its era; phases becomes 1. Returns true; false if the row is free (ref 0), nothing lives in
 * it, row->expected is true, or the record was released or reused in between: the row is not for the report then.
 * Takes and gives back the stripe. [any thread, no lock held] */
static bool complete_row(Collect* collect, TsiLeakRow* row) {
    TsiInc* inc = tsi_inc(&collect->a->phases, tsi_ref_index(row->ref));
    if (row->ref == 0 || row->c.alloc_count == 0 || row->expected) return false;
    tsi_lock_take(tsi_inc_lock(inc));
    bool same = tsi_inc_era(inc) == tsi_ref_era(row->ref) && tsi_inc_state(inc) != TSI_INC_RELEASED;
    if (same) {
        row->c.epoch_id = tsi_load_relaxed(&inc->id);
        memcpy(row->c.label, inc->label, sizeof row->c.label);
        row->c.age_sec = age_ns(collect, inc) / 1000000000u;
        row->refcount = tsi_snapshot_refcount(collect->a, inc);
        row->phases = 1;
        row->unclosed = tsi_inc_state(inc) < TSI_INC_CLOSED;
    }
    tsi_lock_give(tsi_inc_lock(inc));
    row->c.epoch_era = tsi_ref_era(row->ref);
    return same;
}

/* Returns true if the TsiLeakRow *one goes before *other: old ones first, then those with more bytes, then with more
 * objects, then of lower eras, then of lower classes. [any thread, needs no lock] */
static bool is_larger(const void* one, const void* other) {
    const TsiLeakRow *row = one, *y = other;
    if (row->old != y->old) return row->old;
    if (row->c.estimated_rss_bytes != y->c.estimated_rss_bytes)
        return row->c.estimated_rss_bytes > y->c.estimated_rss_bytes;
    if (row->c.alloc_count != y->c.alloc_count) return row->c.alloc_count > y->c.alloc_count;
    if (row->c.epoch_era != y->c.epoch_era) return row->c.epoch_era < y->c.epoch_era;
    return row->c.class_index < y->c.class_index;
}

_Static_assert(sizeof(TsiLeakRow) <= TSI_ROW_MAX, "rows can be sorted");

/* Sorts n rows by is_larger, in place. [no other user of rows] */
static void sort_by_size(TsiLeakRow* rows, uint32_t n) { tsi_rows_sort(rows, n, sizeof *rows, is_larger); }

bool tsi_leaks_take(TsiArena* a, uint32_t threshold_sec, TsiLeaks* out) {
    Collect collect = {.a = a, .threshold_ns = (uint64_t)threshold_sec * 1000000000u, .capacity = FIRST_ROWS};
    for (;; collect.capacity *= 2) {
        collect.rows = tsi_os_map(collect.capacity * sizeof *collect.rows);
        if (collect.rows == NULL) return false;
        collect.used = 0;
        collect.full = false;
        collect.now_ns = tsi_clock_now();
        tsi_snapshot_slabs(a, collect_slab, &collect);
        if (!collect.full) break;
        tsi_os_drop(collect.rows, collect.capacity * sizeof *collect.rows);
    }

    for (uint32_t n = 0; n < collect.capacity; n++) /* before rows move */
        collect.rows[n].expected = collect.rows[n].ref != 0 && is_expected(&collect, collect.rows[n].ref);
    *out = (TsiLeaks){.rows = collect.rows, .capacity = collect.capacity};
    for (uint32_t n = 0; n < collect.capacity; n++)
        if (complete_row(&collect, &collect.rows[n])) out->rows[out->count++] = collect.rows[n];
    sort_by_size(out->rows, out->count);
    return true;
}

/* Returns true if the TsiLeakRow *one goes before *other by label, then class, then age, the oldest first, then era.
 * [any thread, needs no lock] */
static bool by_label(const void* one, const void* other) {
    const TsiLeakRow *row = one, *y = other;
    int order = memcmp(row->c.label, y->c.label, sizeof row->c.label);
    if (order != 0) return order < 0;
    if (row->c.class_index != y->c.class_index) return row->c.class_index < y->c.class_index;
    if (row->c.age_sec != y->c.age_sec) return row->c.age_sec > y->c.age_sec;
    return row->c.epoch_era < y->c.epoch_era;
}

/* Adds the counts of *row, objects, bytes, slabs, references and phases, to those of *to, a row of the same label and
 * class; era, id, age and the other fields of *to stay. [no other user of to] */
static void join(TsiLeakRow* to, const TsiLeakRow* row) {
    to->c.alloc_count += row->c.alloc_count;
    to->c.estimated_rss_bytes += row->c.estimated_rss_bytes;
    to->c.partial_slab_count += row->c.partial_slab_count;
    to->c.full_slab_count += row->c.full_slab_count;
    to->c.reclaimable_slab_count += row->c.reclaimable_slab_count;
    to->refcount += row->refcount;
    to->phases += row->phases;
    to->unclosed += row->unclosed;
}

void tsi_leaks_by_label(TsiLeaks* leaks, uint32_t old_sec) {
    TsiLeakRow* last = NULL;
    uint32_t n = leaks->count;
    tsi_rows_sort(leaks->rows, n, sizeof *leaks->rows, by_label); /* the oldest of a label and class first */

    leaks->count = 0;
    for (uint32_t k = 0; k < n; k++) {
        TsiLeakRow* row = &leaks->rows[k];
        row->old = row->c.age_sec >= old_sec;
        bool alike = last != NULL && last->c.class_index == row->c.class_index && last->old == row->old;
        if (alike && memcmp(last->c.label, row->c.label, sizeof row->c.label) == 0) {
            join(last, row);
        } else {
            last = &leaks->rows[leaks->count++];
            *last = *row;
        }
    }
    sort_by_size(leaks->rows, leaks->count);
}

void tsi_leaks_drop(TsiLeaks* leaks) {
    tsi_os_drop(leaks->rows, leaks->capacity * sizeof *leaks->rows);
    memset(leaks, 0, sizeof *leaks);
}

/* ---- the slow path ---- */

#define ADVICE(name, words)                                                                     \
    _Static_assert(sizeof tsi_advice_##name <= sizeof((SlowPathAttribution*)0)->recommendation, \
                   "a recommendation fits its field");
#include "stats/words.def"

void tsi_slow_path_judge(SlowPathAttribution* slow, unsigned warm_share) {
    uint64_t hits = slow->total_slow_path_hits;
    const char* advice = tsi_advice_none;
    slow->cache_miss_pct = tsi_ratio(slow->cache_miss_count, hits, 100.0);
    slow->epoch_closed_pct = tsi_ratio(slow->epoch_closed_count, hits, 100.0);
    slow->partial_null_pct = tsi_ratio(slow->partial_null_count, hits, 100.0);
    slow->partial_full_pct = tsi_ratio(slow->partial_full_count, hits, 100.0);
    if (slow->epoch_closed_pct > TSI_DOCTOR_PREVAILS) advice = tsi_advice_closed;
    else if (slow->cache_miss_pct > TSI_DOCTOR_PREVAILS && slow->class_index == TSI_CLASS_LARGE - 1)
        advice = tsi_advice_large;
    else if (slow->cache_miss_pct > TSI_DOCTOR_PREVAILS)
        advice = warm_share >= TSI_DOCTOR_WARM_SHARE ? tsi_advice_warm : tsi_advice_cold;
    else if (slow->partial_null_pct > TSI_DOCTOR_PREVAILS) advice = tsi_advice_null;
    else if (slow->partial_full_pct > TSI_DOCTOR_PREVAILS) advice = tsi_advice_full;
    (void)snprintf(slow->recommendation, sizeof slow->recommendation, "%s", advice);
}

uint32_t tsi_slow_path_take(TsiArena* a, SlowPathAttribution out[TSI_CLASSES]) {
    uint32_t n = 0;
    for (unsigned cls = 1; cls <= TSI_CLASS_LARGE; cls++) {
        SlabClassStats stats;
        tsi_snapshot_class(a, cls, &stats);
        if (stats.slow_path_hits == 0) continue;

        SlowPathAttribution* slow = &out[n++];
        memset(slow, 0, sizeof *slow);
        slow->class_index = cls - 1;
        slow->object_size = tsi_class_object_size(a, cls);
        slow->total_slow_path_hits = stats.slow_path_hits;
        slow->cache_miss_count = stats.slow_path_cache_miss;
        slow->epoch_closed_count = stats.slow_path_epoch_closed;
        slow->partial_null_count = stats.current_partial_null;
        slow->partial_full_count = stats.current_partial_full;
        tsi_slow_path_judge(slow, (unsigned)tsi_ratio(stats.empty_slab_recycled, stats.new_slab_count, 100.0));
    }
    return n;
}

/* ---- the walk ---- */

typedef struct Walk {
    TsiArena* a;
    TsiRef ref;
    bool (*fn)(const SlabLiveObject*, void*);
    void* ctx;
    uint64_t calls;
    bool stop;
} Walk;

/* Calls walk->fn for the live objects of a line and counts the calls. at: the line's place; live: bits of the slots
 * with live objects. Returns true; false as soon as fn does. [any thread, no lock held] */
static bool walk_line(Walk* walk, TsiPlace at, uint64_t live) {
    const TsiSpace* s = &walk->a->space;
    for (; live != 0; live &= live - 1) {
        at.slot = tsi_ctz64(live);
        size_t bytes = tsi_place_bytes(s, &at);
        unsigned cls = tsi_class_is_region(at.cls) ? tsi_class_of(bytes) : at.cls;
        if (bytes == 0 || cls == 0) continue; /* began this instant */
        walk->calls++;
        SlabLiveObject object = {tsi_object_at(walk->a, &at), tsi_object_bytes(walk->a, &at), cls - 1};
        if (!walk->fn(&object, walk->ctx)) return false;
    }
    return true;
}

/* Calls fn for the live objects of the slab *view, if it is of the incarnation of the Walk ctx; sets walk->stop when fn
 * has returned false, and does nothing from then on. [any thread, no lock held] */
static void walk_slab(const TsiSlabView* view, void* ctx) {
    Walk* walk = ctx;
    const TsiSpace* s = &walk->a->space;
    if (walk->stop || view->ref != walk->ref) return;
    const TsiClass* shape = &s->classes->c[view->cls];
    for (uint32_t i = 0, first = tsi_first_line(shape, view->slab_id); i < 1u << shape->lines_log2; i++) {
        uint64_t live = tsi_line_live(s, view->cls, first + i);
        /* The slab may have moved on since it was viewed, and its words with it. */
        uint64_t tag = tsi_load_seq(&tsi_slab(s, view->slab_id)->tag);
        if (live == 0) continue;
        if (tsi_tag_seq(tag) != view->seq) return;
        walk->stop = !walk_line(walk, (TsiPlace){first + i, view->slab_id, view->cls, 0}, live);
        if (walk->stop) return;
    }
}

uint64_t tsi_walk(TsiArena* a, TsiRef ref, bool (*fn)(const SlabLiveObject*, void*), void* ctx) {
    Walk walk = {.a = a, .ref = ref, .fn = fn, .ctx = ctx};
    if (ref != 0 && fn != NULL) tsi_snapshot_slabs(a, walk_slab, &walk);
    return walk.calls;
}
