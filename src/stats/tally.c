/* tally.c - see tally.h. */
#include "stats/tally.h"

#include "threads/registry.h"
#include "observe/sample.h"
#include "heap/warm.h"
#include "mem/quarantine.h"

#include <string.h>

void tsi_tally_region(TsiArena* a, const TsiSlabView* view, TsiRegionTally* out) {
    const TsiSpace* s = &a->space;
    const TsiClass* shape = &s->classes->c[view->cls];
    memset(out, 0, sizeof *out);
    if (!tsi_class_is_region(view->cls) || view->sum.live.objects == 0) return;
    for (uint32_t i = 0, first = tsi_first_line(shape, view->slab_id); i < 1u << shape->lines_log2; i++) {
        for (uint64_t live = tsi_line_live(s, view->cls, first + i); live != 0; live &= live - 1) {
            size_t bytes = tsi_place_bytes(s, &(TsiPlace){first + i, view->slab_id, view->cls, tsi_ctz64(live)});
            unsigned cls = tsi_class_of(bytes);
            out->objects[cls <= TSI_SMALL_CLASSES ? cls : 0]++;
            out->bytes[cls <= TSI_SMALL_CLASSES ? cls : 0] += bytes;
        }
    }
}

uint64_t tsi_tally_live_of(const TsiSlabView* view, const TsiRegionTally* region, unsigned cls) {
    if (tsi_class_is_region(view->cls)) return cls <= TSI_SMALL_CLASSES ? region->objects[cls] : 0;
    return view->cls == cls ? view->sum.live.objects : 0;
}

bool tsi_tally_is_full(TsiArena* a, const TsiSlabView* view) {
    const TsiClass* shape = &a->space.classes->c[view->cls];
    if (tsi_class_is_region(view->cls)) return view->sum.live.bytes == view->bytes;
    return view->sum.live.objects == (uint64_t)shape->slots << shape->lines_log2; /* not by bytes: cells have tails */
}

/* ---- the allocator ---- */

/* Adds to *out the incarnations that are open and those that drain, and of the ring's those that its ids name, by their
 * state. [any thread, needs no lock] */
static void count_phases(TsiArena* a, SlabGlobalStats* out) {
    for (uint32_t n = 1; n < tsi_table_used(&a->phases.incs); n++) {
        TsiInc* inc = tsi_inc(&a->phases, n);
        if (tsi_inc_era(inc) == 0) continue;
        bool active = tsi_inc_state(inc) == TSI_INC_ACTIVE;
        bool holds = tsi_load_relaxed(&inc->heap_count) != 0 || tsi_load_relaxed(&inc->slab_count) != 0;
        bool ring = (tsi_load_relaxed(&inc->id) & TSI_DOMAIN_ID_BIT) == 0;
        if (active) out->open_phases++;
        else if (holds) out->draining_phases++;
        if (ring && tsi_phases_resolve(&a->phases, tsi_load_relaxed(&inc->id)) == tsi_ref(tsi_inc_era(inc), n)) {
            if (active) out->active_epoch_count++;
            else out->closing_epoch_count++;
        }
    }
}

/* Adds to total_repairs and the three counts by reason of *out how often allocations of all threads, living and gone,
 * have mended a queue (tsi_sample_repair); these are counted without sampling, too. Takes the registry lock.
 * [any thread, no lock held but the segment's] */
static void count_repairs(TsiArena* a, SlabGlobalStats* out) {
    uint64_t* sums[] = {&out->repairs_full_bitmap, &out->repairs_list_mismatch, &out->repairs_other};
    tsi_lock_take(&tsi_registry_lock);
    for (uint32_t n = 0; n <= tsi_table_used(&a->bindings); n++) {
        const TsiSamples* samples = n == 0 ? &a->samples : &((TsiBinding*)tsi_table_at(&a->bindings, n - 1))->samples;
        out->total_repairs += tsi_load_relaxed(&samples->sum[TSI_SAMPLE_REPAIR]);
        for (unsigned why = 0; why < 3; why++) *sums[why] += tsi_load_relaxed(&samples->sum[TSI_SAMPLE_REASON + why]);
    }
    tsi_lock_give(&tsi_registry_lock);
}

void tsi_tally_global_begin(TsiArena* a, SlabGlobalStats* out) {
    tsi_warm_poll(a);
    memset(out, 0, sizeof *out);
    out->version = SLAB_STATS_VERSION;
    out->current_epoch = tsi_load_acquire(&a->phases.current); /* pairs with tsi_phases_step_locked */
    count_phases(a, out);

    for (unsigned cls = 1; cls < TSI_CLASSES; cls++) {
        SlabClassStats stats;
        tsi_snapshot_class(a, cls, &stats);
        out->total_slow_epoch_closed += stats.slow_path_epoch_closed;
        out->total_slow_path_hits += stats.slow_path_hits;
        out->total_cache_overflows += stats.empty_slab_overflowed;
        out->total_slow_cache_miss += stats.slow_path_cache_miss;
        out->total_slabs_allocated += stats.new_slab_count;
        out->total_slabs_recycled += stats.empty_slab_recycled;
        out->total_bitmap_free_attempts += stats.bitmap_free_attempts;
        out->total_bitmap_free_cas_retries += stats.bitmap_free_cas_retries;
        out->total_bitmap_alloc_attempts += stats.bitmap_alloc_attempts;
        out->total_bitmap_alloc_cas_retries += stats.bitmap_alloc_cas_retries;
    }

    out->rss_bytes_current = tsi_os.rss_bytes();
    out->total_madvise_calls = tsi_load_relaxed(&a->space.purge_calls);
    out->total_madvise_bytes = tsi_load_relaxed(&a->space.purge_bytes);
    out->total_madvise_failures = tsi_load_relaxed(&a->space.purge_failures);
    out->committed_bytes = tsi_load_relaxed(&a->space.committed_bytes);

    out->warm_budget_bytes = tsi_load_relaxed(&a->space.stock.budget);
    out->warm_stock_bytes = out->estimated_slab_rss_bytes = tsi_load_relaxed(&a->space.stock.bytes);
    out->quarantine_bytes = tsi_quarantine_bytes(&a->space);
    out->warm_bytes = out->warm_stock_bytes + tsi_warm_bytes(a) + out->quarantine_bytes;
    out->warm_regretted_bytes = tsi_load_relaxed(&a->space.stock.regretted);
    out->reserved_bytes = a->space.payload_bytes;
    count_repairs(a, out);
}

void tsi_tally_global_add(SlabGlobalStats* out, const TsiSlabView* view) {
    out->net_slabs++;
    out->estimated_slab_rss_bytes += view->bytes;
    out->live_objects += view->sum.live.objects;
    out->live_bytes += view->sum.live.bytes;
}

/* ---- a class ---- */

/* Sets the counts of locks and retries of class `cls` by label, and lock_contention_rate, the share of locks that
 * waited, 0 to 1; adds the counts of locks to lock_fast_acquire and lock_contended of *out, which are 0.
 * [any thread, needs no lock] */
static void class_locks(TsiArena* a, unsigned cls, SlabClassStats* out) {
    TsiSpace* s = &a->space;
    for (unsigned column = 0; column < TSI_COLUMNS; column++) {
        out->lock_fast_acquire_by_label[column] = tsi_load_relaxed(&s->lock_fast[cls][column]);
        out->lock_contended_by_label[column] = tsi_load_relaxed(&s->lock_contended[cls][column]);
        out->bitmap_free_cas_retries_by_label[column] = tsi_load_relaxed(&a->free_retries_by_label[cls][column]);
        out->bitmap_alloc_cas_retries_by_label[column] = tsi_load_relaxed(&a->alloc_retries_by_label[cls][column]);
        out->lock_fast_acquire += out->lock_fast_acquire_by_label[column];
        out->lock_contended += out->lock_contended_by_label[column];
    }
    out->lock_contention_rate = tsi_ratio(out->lock_contended, out->lock_fast_acquire + out->lock_contended, 1.0);
}

void tsi_tally_class_begin(TsiArena* a, uint32_t index, SlabClassStats* out) {
    unsigned cls = tsi_class_number(index);
    tsi_snapshot_class(a, cls, out);
    out->version = SLAB_STATS_VERSION;
    out->class_index = index;
    out->object_size = tsi_class_object_size(a, cls);
    out->slab_bytes = a->space.classes->c[cls].slab_bytes;

    out->madvise_calls = tsi_load_relaxed(&a->space.purges[cls]);
    out->madvise_bytes = tsi_load_relaxed(&a->space.purged[cls]);
    out->madvise_failures = tsi_load_relaxed(&a->space.purges_failed[cls]);

    uint64_t capacity = cls > TSI_SMALL_CLASSES ? 0 : tsi_load_relaxed(&a->space.stock.budget) / out->slab_bytes;
    out->cache_capacity = capacity < UINT32_MAX ? (uint32_t)capacity : UINT32_MAX;
    out->avg_free_cas_retries_per_attempt = tsi_ratio(out->bitmap_free_cas_retries, out->bitmap_free_attempts, 1.0);
    out->avg_alloc_cas_retries_per_attempt = tsi_ratio(out->bitmap_alloc_cas_retries, out->bitmap_alloc_attempts, 1.0);

    const TsiScan* scan = &a->scan;
    out->scan_adapt_checks = tsi_load_relaxed(&scan->checks);
    out->scan_adapt_switches = tsi_load_relaxed(&scan->switches);
    out->scan_mode = tsi_load_relaxed(&scan->spread);
    class_locks(a, cls, out);
}

void tsi_tally_class_add(TsiArena* a, SlabClassStats* out, const TsiSlabView* view, const TsiRegionTally* region) {
    unsigned cls = tsi_class_number(out->class_index);
    if (tsi_class_is_region(view->cls) && cls <= TSI_SMALL_CLASSES) out->live_bytes += region->bytes[cls];
    else if (view->cls == cls && cls != TSI_CLASS_REGION) out->live_bytes += view->sum.live.bytes;
    if (tsi_class_row(view->cls) != cls) return;
    out->net_slabs++;
    out->committed_bytes += view->bytes;
    if (view->state == TSI_SLAB_WARM) out->cache_size++;
    if (view->sum.live.objects == 0) out->empty_slabs_count++;
    else if (tsi_tally_is_full(a, view)) out->total_full_slabs++;
    else out->total_partial_slabs++;
}

void tsi_tally_class_end(SlabClassStats* out) {
    out->estimated_rss_bytes = out->committed_bytes;
    out->recycle_rate_pct = tsi_ratio(out->empty_slab_recycled, out->new_slab_count, 100.0);
}

/* ---- samples ---- */

_Static_assert(sizeof(ThreadStats) == TSI_SAMPLE_SUMS * sizeof(uint64_t), "sums are in the order of ThreadStats");
_Static_assert((int)TSI_LATENCY_BUCKETS == (int)SLAB_LATENCY_BUCKETS &&
                   (int)TSI_LABEL_BUCKETS == (int)SLAB_HISTOGRAM_BUCKETS,
               "the same buckets");

void tsi_tally_sampling(TsiArena* a, SlabSamplingStats* out) {
    TsiSamples sum;
    memset(out, 0, sizeof *out);
    if (a->options.sampling_period == 0) return;
    memset((void*)&sum, 0, sizeof sum);

    tsi_lock_take(&tsi_registry_lock);
    tsi_samples_fold(&sum, &a->samples);
    for (uint32_t n = 0; n < tsi_table_used(&a->bindings); n++) {
        TsiBinding* b = tsi_table_at(&a->bindings, n);
        tsi_samples_fold(&sum, &b->samples);
    }
    tsi_lock_give(&tsi_registry_lock);

    out->version = SLAB_STATS_VERSION;
    out->period = a->options.sampling_period;
    memcpy(&out->sum, (const void*)sum.sum, sizeof out->sum);
    out->dropped = tsi_load_relaxed(&sum.dropped);

    out->lock_samples = tsi_load_relaxed(&sum.locks.samples);
    out->lock_wait_ns_sum = tsi_load_relaxed(&sum.locks.wait_sum);
    out->lock_wait_ns_max = tsi_load_relaxed(&sum.locks.wait_max);
    out->lock_hold_ns_sum = tsi_load_relaxed(&sum.locks.hold_sum);
    out->lock_hold_ns_max = tsi_load_relaxed(&sum.locks.hold_max);

    memcpy(out->alloc_wall_ns, (const void*)sum.alloc_wall, sizeof out->alloc_wall_ns);
    memcpy(out->lock_wait_ns, (const void*)sum.locks.wait, sizeof out->lock_wait_ns);
    memcpy(out->lock_hold_ns, (const void*)sum.locks.hold, sizeof out->lock_hold_ns);
}

/* ---- refusals ---- */

void tsi_tally_refusals(TsiArena* a, SlabRefusals* out) {
    memset(out, 0, sizeof *out);
    out->version = SLAB_STATS_VERSION;
    uint64_t* field = &out->stale_handle; /* in the order of SlabMisuse */
    for (unsigned what = 0; what <= SLAB_MISUSE_DOMAIN_STALE; what++) field[what] = tsi_snapshot_refused(a, what);
    out->write_after_end = tsi_snapshot_refused(a, SLAB_MISUSE_WRITE_AFTER_END);
    out->late_double_free = tsi_snapshot_refused(a, TSI_REFUSED_LATE);
    out->out_of_memory = tsi_snapshot_refused(a, TSI_REFUSED_MEMORY);
    out->over_budget = tsi_snapshot_refused(a, TSI_REFUSED_BUDGET);
    out->retired_slabs = tsi_load_relaxed(&a->retired_slabs);
    out->bad_environment = a->bad_environment;
}
