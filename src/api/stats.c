/* stats.c - the public snapshots. */
#include "api/internal.h"

#include "slab_stats.h"
#include "stats/snapshot.h"

#include <string.h>

/* Class number behind a public index; 0 for a bad one. The last two indices are mixed slabs and large objects. */
static unsigned class_number(uint32_t index) { return index < TSI_CLASS_LARGE ? index + 1 : 0; }

/* Live objects of class `cls` in a slab. Objects in mixed slabs count under the class of their
 * usable size, the slab itself under the mixed class. */
static uint64_t live_of(TsiArena* a, const TsiSlabView* v, unsigned cls) {
    if (v->cls == TSI_CLASS_MIXED && cls <= TSI_FIXED_CLASSES && v->sum.live.objects != 0)
        return tsi_mixed_live_of(&a->space, v->slab_id, a->space.classes->c[cls].size);
    return v->cls == cls && cls != TSI_CLASS_MIXED ? v->sum.live.objects : 0;
}

static void count_phases(TsiArena* a, SlabGlobalStats* out) {
    for (uint32_t n = 1; n < tsi_table_used(&a->phases.incs); n++) {
        TsiInc* i = tsi_inc(&a->phases, n);
        if (tsi_inc_era(i) == 0) continue;
        bool active = tsi_inc_state(i) == TSI_INC_ACTIVE;
        bool holds = tsi_load_relaxed(&i->heap_count) != 0 || tsi_load_relaxed(&i->slab_count) != 0;
        bool ring = (tsi_load_relaxed(&i->id) & TSI_DOMAIN_ID_BIT) == 0;
        if (active) out->open_phases++;
        else if (holds) out->draining_phases++;
        if (ring && tsi_phases_resolve(&a->phases, tsi_load_relaxed(&i->id)) == tsi_ref(tsi_inc_era(i), n)) {
            if (active) out->active_epoch_count++;
            else out->closing_epoch_count++;
        }
    }
}

static void add_global(const TsiSlabView* v, void* ctx) {
    SlabGlobalStats* out = ctx;
    out->net_slabs++;
    out->estimated_slab_rss_bytes += v->bytes;
    out->live_objects += v->sum.live.objects;
    out->live_bytes += v->sum.live.bytes;
}

void slab_stats_global(SlabAllocator* s, SlabGlobalStats* out) {
    TsiArena* a = tsi_arena(s);
    if (out == NULL) return;
    memset(out, 0, sizeof *out);
    if (a == NULL) return;
    out->version = SLAB_STATS_VERSION;
    out->current_epoch = tsi_load_acquire(&a->phases.current);
    count_phases(a, out);
    tsi_snapshot_slabs(a, add_global, out);
    for (unsigned cls = 1; cls < TSI_CLASSES; cls++) {
        TsiClassSum c;
        tsi_snapshot_class(a, cls, &c);
        out->total_slow_epoch_closed += c.closed;
        out->total_slow_path_hits += c.perf.slow_path_hits;
        out->total_cache_overflows += c.perf.empty_slab_overflowed;
        out->total_slow_cache_miss += c.miss;
        out->total_slabs_recycled += c.perf.empty_slab_recycled;
    }
    out->total_slabs_allocated = tsi_load_relaxed(&a->space.slabs_taken);
    out->rss_bytes_current = tsi_os.rss_bytes();
    out->total_madvise_calls = tsi_load_relaxed(&a->space.purge_calls);
    out->total_madvise_bytes = tsi_load_relaxed(&a->space.purge_bytes);
    out->total_madvise_failures = tsi_load_relaxed(&a->space.purge_failures);
    out->metadata_bytes = tsi_snapshot_metadata_bytes(a);
    out->committed_bytes = tsi_load_relaxed(&a->space.committed_bytes);
    out->reserved_bytes = a->space.payload_bytes;
}

typedef struct ClassSum {
    TsiArena* a;
    SlabClassStats* out;
    unsigned cls;
} ClassSum;

static void add_class(const TsiSlabView* v, void* ctx) {
    ClassSum* sum = ctx;
    SlabClassStats* out = sum->out;
    uint64_t live = live_of(sum->a, v, sum->cls);
    out->live_bytes += sum->cls == TSI_CLASS_LARGE ? (live != 0 ? v->sum.live.bytes : 0) : live * out->object_size;
    if (v->cls != sum->cls) return;
    out->net_slabs++;
    out->committed_bytes += v->bytes;
    if (v->state == TSI_SLAB_WARM) out->cache_size++;
    if (v->sum.live.objects == 0) out->empty_slabs_count++;
    else if (v->sum.live.bytes + out->object_size > v->bytes) out->total_full_slabs++;
    else out->total_partial_slabs++;
}

void slab_stats_class(SlabAllocator* s, uint32_t index, SlabClassStats* out) {
    TsiArena* a = tsi_arena(s);
    unsigned cls = class_number(index);
    if (out == NULL) return;
    memset(out, 0, sizeof *out);
    if (a == NULL || cls == 0) return;
    TsiClassSum c;
    out->version = SLAB_STATS_VERSION;
    out->class_index = index;
    out->object_size = a->space.classes->c[cls].size;
    out->slab_bytes = a->space.classes->c[cls].slab_bytes;
    tsi_snapshot_class(a, cls, &c);
    memcpy(&out->slow_path_hits, &c.perf, sizeof c.perf);
    out->slow_path_cache_miss = c.miss;
    out->slow_path_epoch_closed = c.closed;
    out->epoch_close_scanned_slabs = c.close_scanned;
    out->epoch_close_recycled_slabs = c.close_returned;
    tsi_snapshot_slabs(a, add_class, &(ClassSum){a, out, cls});
    out->estimated_rss_bytes = out->committed_bytes;
    out->recycle_rate_pct = c.perf.new_slab_count != 0 ? 100.0 * (double)c.perf.empty_slab_recycled / (double)c.perf.new_slab_count : 0.0;
}

typedef struct EpochSum {
    TsiArena* a;
    SlabEpochStats* out;
    unsigned cls;
    TsiRef ref;
} EpochSum;

static void add_epoch(const TsiSlabView* v, void* ctx) {
    EpochSum* sum = ctx;
    SlabEpochStats* out = sum->out;
    if (v->ref != sum->ref) return;
    out->alloc_count += live_of(sum->a, v, sum->cls);
    if (v->cls != sum->cls) return;
    out->estimated_rss_bytes += v->bytes;
    if (v->sum.live.objects == 0) {
        out->reclaimable_slab_count++;
        out->reclaimable_bytes += v->bytes;
    } else if (v->sum.live.bytes + out->object_size > v->bytes) {
        out->full_slab_count++;
    } else {
        out->partial_slab_count++;
    }
}

void slab_stats_epoch(SlabAllocator* s, uint32_t index, EpochId epoch, SlabEpochStats* out) {
    TsiArena* a = tsi_arena(s);
    unsigned cls = class_number(index);
    if (out == NULL) return;
    memset(out, 0, sizeof *out);
    TsiRef ref = a != NULL && cls != 0 ? tsi_phases_resolve(&a->phases, epoch) : 0;
    if (ref == 0) return;
    TsiInc* i = tsi_inc(&a->phases, tsi_ref_index(ref));
    out->version = SLAB_STATS_VERSION;
    out->class_index = index;
    out->object_size = a->space.classes->c[cls].size;
    out->epoch_id = epoch;
    tsi_lock_take(tsi_inc_lock(i));
    out->epoch_era = tsi_ref_era(ref);
    out->state = tsi_ref_is_active(&a->phases, ref) ? EPOCH_ACTIVE : EPOCH_CLOSING;
    out->open_since_ns = tsi_load_relaxed(&i->open_since_ns);
    out->rss_before_close = i->rss_before;
    out->rss_after_close = i->rss_after;
    memcpy(out->label, i->label, sizeof out->label);
    tsi_lock_give(tsi_inc_lock(i));
    tsi_snapshot_slabs(a, add_epoch, &(EpochSum){a, out, cls, ref});
}

void slab_stats_refusals(SlabAllocator* s, SlabRefusals* out) {
    TsiArena* a = tsi_arena(s);
    if (out == NULL) return;
    memset(out, 0, sizeof *out);
    if (a == NULL) return;
    out->version = SLAB_STATS_VERSION;
    uint64_t* field = &out->stale_handle; /* in the order of SlabMisuse, then late double frees and memory */
    for (unsigned what = 0; what < SLAB_MISUSE_COUNT + 2; what++) field[what] = tsi_snapshot_refused(a, what);
    out->retired_slabs = tsi_load_relaxed(&a->retired_slabs);
    out->bad_environment = a->bad_environment;
}

void get_perf_counters(SlabAllocator* s, uint32_t size_class, PerfCounters* out) {
    TsiArena* a = tsi_arena(s);
    unsigned cls = class_number(size_class);
    TsiClassSum c;
    if (out == NULL) return;
    memset(out, 0, sizeof *out);
    if (a == NULL || cls == 0) return;
    tsi_snapshot_class(a, cls, &c);
    *out = c.perf;
}
