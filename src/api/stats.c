/* stats.c - the public snapshots, and all of them as text. */
#include "api/domain.h"

#include "heap/decay.h"
#include "observe/sample.h"
#include "os/clock.h"
#include "stats/growth.h"
#include "stats/metrics.h"
#include "stats/pace.h"
#include "stats/tally.h"

#include <string.h>

/* Zeroes *out, of `bytes` bytes, unless out is NULL. Returns the arena to fill it from, or NULL if there is nothing to
 * do: no out or no allocator. [any thread, needs no lock] */
static TsiArena* begin(SlabAllocator* allocator, void* out, size_t bytes) {
    if (out == NULL) return NULL;
    memset(out, 0, bytes);
    return tsi_arena(allocator);
}

/* Zeroes *out, of `bytes` bytes, unless out is NULL, for a walk over everything, and searches for empty slabs of open
 * phases, if that is due. Returns the arena to fill it from, or NULL if there is nothing to do: no out or no allocator.
 * [any thread, no lock held, no bracket open] */
static TsiArena* begin_walk(SlabAllocator* allocator, void* out, size_t bytes) {
    TsiArena* a = begin(allocator, out, bytes);
    if (a != NULL) tsi_decay_poll(a, tsi_binding_get(a, false));
    return a;
}

/* Adds the slab *view to the SlabGlobalStats *out. [no other user of out] */
static void add_global(const TsiSlabView* view, void* out) { tsi_tally_global_add(out, view); }

void slab_stats_global(SlabAllocator* allocator, SlabGlobalStats* out) {
    TsiArena* a = begin_walk(allocator, out, sizeof *out);
    if (a == NULL) return;
    tsi_tally_global_begin(a, out);
    out->metadata_bytes = tsi_snapshot_metadata_bytes(a);
    tsi_snapshot_slabs(a, add_global, out);
    tsi_lock_take(&a->phases.labels.lock);
    uint64_t now = tsi_clock_now();
    tsi_pace_tell_locked(a, tsi_pace_age(a, now), out);
    tsi_growth_tell_locked(a, now, out);
    tsi_lock_give(&a->phases.labels.lock);
}

typedef struct Walk {
    TsiArena* a;
    void* out; /* of the function */
    unsigned cls;
    TsiRef ref;
} Walk;

/* Adds the slab *view to the SlabClassStats walk->out of the Walk ctx, by tsi_tally_class_add, if it or objects in it
 * are of the class of that row. [no other user of ctx] */
static void add_class(const TsiSlabView* view, void* ctx) {
    Walk* walk = ctx;
    TsiRegionTally region;
    tsi_tally_region(walk->a, view, &region);
    tsi_tally_class_add(walk->a, walk->out, view, &region);
}

void slab_stats_class(SlabAllocator* allocator, uint32_t index, SlabClassStats* out) {
    TsiArena* a = begin_walk(allocator, out, sizeof *out);
    if (a == NULL || tsi_class_number(index) == 0) return;
    tsi_tally_class_begin(a, index, out);
    tsi_snapshot_slabs(a, add_class, &(Walk){.a = a, .out = out});
    tsi_tally_class_end(out);
}

/* Adds the slab *view to the SlabEpochStats walk->out of the Walk ctx, if view->ref is walk->ref: its live objects of
 * the class walk->cls; and, if the slab itself counts under that class, its bytes and 1 to the empty, full or partial
 * slabs. [no other user of ctx] */
static void add_epoch(const TsiSlabView* view, void* ctx) {
    Walk* walk = ctx;
    SlabEpochStats* out = walk->out;
    if (view->ref != walk->ref) return;
    TsiRegionTally region;
    tsi_tally_region(walk->a, view, &region);
    out->alloc_count += tsi_tally_live_of(view, &region, walk->cls);
    if (tsi_class_row(view->cls) != walk->cls) return;

    out->estimated_rss_bytes += view->bytes;
    if (view->sum.live.objects == 0) {
        out->reclaimable_slab_count++;
        out->reclaimable_bytes += view->bytes;
    } else if (tsi_tally_is_full(walk->a, view)) {
        out->full_slab_count++;
    } else {
        out->partial_slab_count++;
    }
}

void slab_stats_epoch(SlabAllocator* allocator, uint32_t index, EpochId epoch, SlabEpochStats* out) {
    TsiArena* a = begin_walk(allocator, out, sizeof *out);
    unsigned cls = tsi_class_number(index);
    TsiRef ref = a != NULL && cls != 0 ? tsi_phases_resolve(&a->phases, epoch) : 0;
    if (ref == 0) return;

    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    out->version = SLAB_STATS_VERSION;
    out->class_index = index;
    out->object_size = tsi_class_object_size(a, cls);
    out->epoch_id = epoch;

    tsi_phase_lock(inc);
    out->epoch_era = tsi_ref_era(ref);
    out->state = tsi_ref_is_active(&a->phases, ref) ? EPOCH_ACTIVE : EPOCH_CLOSING;
    uint64_t since = tsi_load_relaxed(&inc->open_since_ns);
    out->open_since_ns = since != TSI_UNTIMED ? since : 0;
    out->rss_before_close = inc->rss_before;
    out->rss_after_close = inc->rss_after;
    memcpy(out->label, inc->label, sizeof out->label);
    tsi_phase_unlock(inc);
    tsi_snapshot_slabs(a, add_epoch, &(Walk){a, out, cls, ref});
}

void slab_stats_refusals(SlabAllocator* allocator, SlabRefusals* out) {
    TsiArena* a = begin(allocator, out, sizeof *out);
    if (a != NULL) tsi_tally_refusals(a, out);
}

/* Takes a report and copies to `out`, unless NULL, the first `capacity` rows of its section, or as many as there are;
 * further places are left alone. Looks first for empty slabs of phases that go on, if that is due. Returns how many
 * rows there are, which may be more than `capacity`; 0 without an allocator or memory.
 * [any thread, no lock held, no bracket open] */
static size_t copy_rows(SlabAllocator* allocator, TsiSection section, void* out, size_t capacity) {
    TsiArena* a = tsi_arena(allocator);
    TsiReport report;
    if (a == NULL) return 0;
    tsi_decay_poll(a, tsi_binding_get(a, false));
    if (!tsi_report_take(a, &report)) return 0;
    TsiRows rows = tsi_report_rows(&report, section);
    size_t n = capacity < rows.count ? capacity : rows.count;
    if (out != NULL && n != 0) memcpy(out, rows.first, n * rows.bytes);
    tsi_report_drop(&report);
    return rows.count;
}

size_t slab_stats_labels(SlabAllocator* allocator, SlabLabelStats* out, size_t capacity) {
    return copy_rows(allocator, TSI_SECTION_LABEL, out, capacity);
}

size_t slab_stats_phases(SlabAllocator* allocator, SlabPhaseStats* out, size_t capacity) {
    return copy_rows(allocator, TSI_SECTION_PHASE, out, capacity);
}

ThreadStats slab_stats_thread(void) {
    ThreadStats out;
    TsiThread* thread = tsi_tls.thread;
    TsiSamples sum;
    memset((void*)&sum, 0, sizeof sum);
    for (uint32_t n = 0; thread != NULL && n < thread->ref_capacity; n++) {
        TsiArena* a = thread->refs[n].serial != 0 && thread->refs[n].binding != NULL
                          ? tsi_registry_hold(thread->refs[n].serial)
                          : NULL;
        if (a == NULL) continue;
        tsi_samples_fold(&sum, &thread->refs[n].binding->samples);
        tsi_registry_unhold(a);
    }
    memcpy(&out, (const void*)sum.sum, sizeof out);
    return out;
}

void slab_stats_sampling(SlabAllocator* allocator, SlabSamplingStats* out) {
    TsiArena* a = begin(allocator, out, sizeof *out);
    if (a != NULL) tsi_tally_sampling(a, out);
}

void get_perf_counters(SlabAllocator* allocator, uint32_t size_class, PerfCounters* out) {
    TsiArena* a = begin(allocator, out, sizeof *out);
    unsigned cls = tsi_class_number(size_class);
    SlabClassStats stats;
    if (a == NULL || cls == 0) return;
    tsi_snapshot_class(a, cls, &stats);
    memcpy(out, &stats.slow_path_hits, sizeof *out); /* in the same order */
}

/* ---- as text ---- */

enum { TOP_ROWS = 256 };

/* Writes a report with the rows that tsi_report_choose keeps with `each` by `text`, tsi_report_json or its like, to
 * write(ctx, bytes, n). Looks first for empty slabs of phases that go on, if that is due. Returns true; false with
 * EINVAL (no allocator, `write` NULL), with ENOMEM, or as soon as `write` refuses.
 * [any thread, no lock held, no bracket open] */
static bool write_report(SlabAllocator* allocator, TsiWriteFn write, void* ctx, int each,
                         bool (*text)(const TsiReport*, TsiWriteFn, void*)) {
    TsiArena* a = tsi_arena(allocator);
    TsiReport report;
    if (a == NULL || write == NULL) return tsi_error_set(EINVAL), false;
    tsi_decay_poll(a, tsi_binding_get(a, false));
    if (!tsi_report_take_rows(a, each, &report)) return false;
    bool whole = text(&report, write, ctx);
    tsi_report_drop(&report);
    return whole;
}

bool slab_stats_json(SlabAllocator* allocator, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx) {
    return write_report(allocator, write, ctx, TOP_ROWS, tsi_report_json);
}

bool slab_stats_json_all(SlabAllocator* allocator, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx) {
    return write_report(allocator, write, ctx, TSI_ROWS_ALL, tsi_report_json);
}

bool slab_stats_prometheus(SlabAllocator* allocator, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx) {
    return write_report(allocator, write, ctx, TSI_ROWS_ALL, tsi_report_prometheus);
}

bool slab_stats_publish(SlabAllocator* allocator) {
    TsiArena* a = tsi_arena(allocator);
    if (a != NULL) tsi_decay_poll(a, tsi_binding_get(a, false));
    return a != NULL && tsi_segment_publish(a);
}

/* ---- of one domain ---- */

/* Adds the slab *view, which is of the domain's phase, to the SlabDomainStats ctx: its live objects and bytes, its own
 * bytes, and 1 to the slabs. [no other user of ctx] */
static void add_to_domain(const TsiSlabView* view, void* ctx) {
    SlabDomainStats* out = ctx;
    out->live_objects += view->sum.live.objects;
    out->live_bytes += view->sum.live.bytes;
    out->committed_bytes += view->bytes;
    out->slabs++;
}

bool epoch_domain_stats(epoch_domain_t* domain, SlabDomainStats* out) {
    TsiDomain* d = tsi_domain_of(domain);
    if (out == NULL || out->struct_size < sizeof *out)
        return tsi_failed_bool(EINVAL, "set SlabDomainStats.struct_size to sizeof(SlabDomainStats)");
    if (!tsi_domain_usable(d)) return false;
    for (TsiRef ref; (ref = tsi_load_acquire(&d->phase.ref)) != 0;) { /* pairs with tsi_domain_open_own */
        TsiArena* a = d->arena;
        SlabDomainStats s = {.struct_size = sizeof s, .epoch_era = tsi_ref_era(ref)};
        s.epoch_id = tsi_load_relaxed(&tsi_inc(&a->phases, tsi_ref_index(ref))->id);
        if (tsi_snapshot_phase(a, ref, add_to_domain, &s)) {
            *out = s;
            return true;
        }
        if (tsi_load_acquire(&d->phase.ref) == ref) break; /* a thread has ended it by its id or era */
    }
    return tsi_failed_bool(ESTALE, "the epoch of the domain has ended"); /* no misuse: a reader may come late */
}
