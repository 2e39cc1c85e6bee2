/*
 * slab_stats.h - what an allocator holds and does.
 *
 * Snapshots are read from the allocator's own words: no counter is touched on the allocation path.
 * A snapshot is exact when nothing runs, and never negative while threads allocate. Conventions as
 * slab_alloc.h. NULL allocators and bad classes give zeroed structures.
 */
#ifndef SLAB_STATS_H
#define SLAB_STATS_H

#include "slab_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLAB_STATS_VERSION 3

/* The whole allocator. Of the fields on compare-exchanges those of frees count those by other threads; those of
 * allocations count, in shared mode, allocations through a bank (attempts) and those that found it held (retries), else
 * 0; those of current_partial read 0. */
typedef struct SlabGlobalStats {
    uint32_t version, current_epoch, active_epoch_count, closing_epoch_count;
    uint64_t total_slabs_allocated, total_slabs_recycled;
    uint64_t net_slabs; /* slabs holding memory now */
    uint64_t rss_bytes_current, estimated_slab_rss_bytes, total_slow_path_hits, total_cache_overflows,
        total_slow_cache_miss, total_slow_epoch_closed, total_madvise_calls, total_madvise_bytes,
        total_madvise_failures, total_bitmap_alloc_cas_retries, total_bitmap_free_cas_retries,
        total_current_partial_cas_failures, total_bitmap_alloc_attempts, total_bitmap_free_attempts,
        total_current_partial_cas_attempts;
    /* pages of its own tables that were written and not given back; with the slabs: what is resident */
    uint64_t metadata_bytes;
    uint64_t committed_bytes; /* slabs in an epoch, and what is kept warm */
    uint64_t live_bytes, live_objects;
    uint64_t reserved_bytes;  /* address space */
    uint64_t open_phases;     /* incarnations that accept allocations */
    uint64_t draining_phases; /* incarnations that do not, and still hold slabs */
    /* Lists of lines that an allocation found wrong and mended, and why; counted without sampling, too. */
    uint64_t total_repairs, repairs_full_bitmap, repairs_list_mismatch, repairs_other;
    /* Pages of no epoch that are kept: the budget in force, what is kept within it, and of that what no thread and no
     * class has yet; and, since the start, bytes taken from the system again right after they were given back for want
     * of budget. */
    uint64_t warm_budget_bytes, warm_bytes, warm_stock_bytes, warm_regretted_bytes;
    /* The nearest limit on what epochs can hold: max_bytes, the reservation, or what RLIMIT_DATA leaves. limit_name
     * names it, limit_used_bytes count against it, limit_ns is the time to it at the pace of growth; 0: it is not in
     * sight within a year. */
    uint64_t limit_bytes, limit_used_bytes, limit_ns;
    char limit_name[32];
    /* Live bytes that came between two stretches of readings, of each the least that was seen, and the time between
     * them; 0 ns: there were not two yet. A stretch takes an eighth of the allocator's age, 2 s to 1 h. The pace is
     * that of stretches of at most 10 s, where these grew, too. slab_stats_labels, slab_stats_phases, JSON, Prometheus
     * and the doctor make a reading, and each publication in a segment. */
    uint64_t growth_bytes, growth_ns;
    double growth_per_second;
    uint64_t max_bytes; /* the option; 0: none */
    /* How live and committed bytes have changed, in bytes a second, negative where there are less: over the last 10 s,
     * the last 100 s, and since the allocator was made. pace_10s_ns and pace_100s_ns are the times that these are of:
     * 10 to 20 s and 100 to 200 s; less in an allocator that is younger; 0, and the paces 0, where the reading before
     * was too long ago. Readings are those of growth. */
    uint64_t pace_10s_ns, pace_100s_ns;
    double live_pace_10s, live_pace_100s, live_pace_ever;
    double committed_pace_10s, committed_pace_100s, committed_pace_ever;
} SlabGlobalStats;

/* One size class. cache_size: slabs that threads keep warm; cache_capacity: slabs of the class that the warm budget in
 * force would hold if it held no others, 0 for regions and large objects, which have no one size; cache_overflow_len
 * reads 0: there is no second cache. scan_*: of the allocator, the same
 * in each class: the controller of shared mode, which spreads threads over four banks while they meet (scan_mode 1);
 * else 0.
 * object_size is 0 where each object has its own. Indices go on after the sizes to regions (whose objects count
 * under the class of their usable size) and large objects; the first bad index gives version 0. */
typedef struct SlabClassStats {
    uint32_t version, class_index, object_size;
    uint64_t slow_path_hits, new_slab_count, list_move_partial_to_full, list_move_full_to_partial, current_partial_null,
        current_partial_full, empty_slab_recycled, empty_slab_overflowed;
    uint64_t slow_path_cache_miss, slow_path_epoch_closed, madvise_calls, madvise_bytes, madvise_failures,
        epoch_close_calls, epoch_close_scanned_slabs, epoch_close_recycled_slabs, epoch_close_total_ns,
        bitmap_alloc_cas_retries, bitmap_free_cas_retries, current_partial_cas_failures, bitmap_alloc_attempts,
        bitmap_free_attempts, current_partial_cas_attempts, lock_fast_acquire, lock_contended;
    uint32_t scan_adapt_checks, scan_adapt_switches, scan_mode;
    uint64_t committed_bytes, live_bytes, empty_slabs_count;
    double avg_alloc_cas_retries_per_attempt, avg_free_cas_retries_per_attempt, current_partial_cas_failure_rate,
        lock_contention_rate;
    uint64_t lock_fast_acquire_by_label[16], lock_contended_by_label[16], bitmap_alloc_cas_retries_by_label[16],
        bitmap_free_cas_retries_by_label[16]; /* 0 unlabeled, 1-14 first labels, 15 the rest */
    uint32_t cache_size, cache_capacity, cache_overflow_len, total_partial_slabs, total_full_slabs;
    double recycle_rate_pct;
    uint64_t net_slabs, estimated_rss_bytes;
    uint64_t slab_bytes; /* bytes of one slab; of regions a page, of large objects a chunk */
} SlabClassStats;

/* One class within the incarnation an epoch id names now. */
typedef struct SlabEpochStats {
    uint32_t version, class_index, object_size;
    EpochId epoch_id;
    uint64_t epoch_era;
    EpochLifecycleState state;
    uint64_t open_since_ns; /* 0 for the first incarnation of id 0, and before the first slab */
    uint64_t alloc_count;   /* live objects */
    char label[32];
    uint64_t rss_before_close, rss_after_close;
    uint32_t partial_slab_count, full_slab_count;
    uint64_t estimated_rss_bytes;
    uint32_t reclaimable_slab_count; /* without a live object */
    uint64_t reclaimable_bytes;
} SlabEpochStats;

/* Refused calls by cause, since the allocator was made. */
typedef struct SlabRefusals {
    uint32_t version;
    uint64_t stale_handle, bad_handle, double_free, stale_free, interior_pointer, foreign_pointer, size_mismatch,
        bad_epoch, closed_epoch, bad_size, domain_order, domain_stale;
    uint64_t late_double_free; /* racing double frees found when a slab's words were merged */
    uint64_t out_of_memory;    /* allocations refused for want of memory */
    uint64_t retired_slabs;    /* slabs whose handle generations ran out */
    uint64_t bad_environment;  /* options of TSLAB_OPTIONS that were ignored */
    uint64_t over_budget;      /* allocations refused by a hard budget or max_bytes */
} SlabRefusals;

enum {
    /* bucket i counts values from 2^i to 2^(i+1) - 1; 0 counts 0 and 1; the last takes all above */
    SLAB_HISTOGRAM_BUCKETS = 48,
    SLAB_LATENCY_BUCKETS =
        96 /* four buckets to a doubling: values 0..3 singly, then 4 * floor(log2 v) + the next two bits - 4 */
};

/* Everything attributed to one label since the allocator was made. Ids: 0 "(unlabeled)", then labels in
 * order of first use, the highest "(other)", which takes the phases whose label found no room. Past
 * counters stay where they were when a live epoch is relabelled; what is live moves.
 * At any moment allocated = freed + released + live, objects and bytes, for as long as no epoch with live objects was
 * given another label: it takes those along, and under its new label they end without having been allocated there.
 * While threads work, sums may miss what moves between two readings; they never exceed the truth, and never go back. */
typedef struct SlabLabelStats {
    uint32_t version, label_id;
    char label[32];
    uint64_t phases_opened, phases_ended;  /* ended: closed or released, drained or not */
    uint64_t phases_open, phases_draining; /* now; draining: ended, and objects live on */
    uint64_t objects_allocated, bytes_allocated;
    uint64_t objects_freed, bytes_freed;       /* singly */
    uint64_t objects_released, bytes_released; /* ended in bulk */
    uint64_t objects_escaped, bytes_escaped;   /* live when their epoch was closed by draining, summed over closes */
    uint64_t live_objects, live_bytes;
    uint64_t committed_bytes; /* slabs and large objects held now */
    uint64_t peak_bytes;      /* most committed_bytes ever */
    uint64_t slow_path_hits, refusals;
    /* as ThreadStats; 0 without sampling */
    uint64_t alloc_samples, alloc_wall_ns_sum, alloc_cpu_ns_sum, alloc_wait_ns_sum;
    uint64_t lock_fast_acquire, lock_contended; /* of the locks that its slow paths and ends took */
    uint64_t cas_retries;                       /* of frees by other threads */
    /* 0 bytes: no budget. Refusals: by its hard budget, those of its phases, and max_bytes. */
    uint64_t budget_soft_bytes, budget_hard_bytes, budget_warnings, budget_refusals;
    /* slabs and large objects looked at by ends; those that live objects kept from going back */
    uint64_t closed_slabs, pinned_slabs;
    double drainability;                          /* 1 - pinned / closed; 1 when nothing ended */
    uint64_t swallowed;                           /* "(other)" only: phases opened under a label that found no room */
    uint64_t duration_ns[SLAB_HISTOGRAM_BUCKETS]; /* ended phases that had held something, first slab to end */
    uint64_t peak_bytes_hist[SLAB_HISTOGRAM_BUCKETS]; /* ended phases that had held something, by their peak */
    /* Phases that have ended and in which objects live: how many, their live objects, the slabs and large objects they
     * hold, the time since the first slab of the oldest (0: none), and how many are how old. Kept by the library, exact
     * but for what is under way, and told without a look at the phases. */
    uint64_t draining_phases, draining_objects, draining_bytes, oldest_draining_ns;
    uint64_t draining_age_ns[SLAB_HISTOGRAM_BUCKETS];
    /* Of the three that hold most bytes, largest first; era 0: none. */
    uint64_t worst_eras[3], worst_bytes[3], worst_objects[3], worst_ages_ns[3];
    uint64_t open_objects, open_bytes; /* live ones in its open phases */
    /* Made by slab_malloc_outside inside of a scope of the label: how many, and bytes asked for. They live in the
     * ring's epoch and count there under its label. */
    uint64_t outside_objects, outside_bytes;
    uint64_t growth_bytes, growth_ns; /* of live_bytes, as in SlabGlobalStats */
    double growth_per_second;
    /* The nearest of its hard budget and those of its open phases, as in SlabGlobalStats; 0: there is none. */
    uint64_t limit_bytes, limit_used_bytes, limit_ns;
    /* What a phase of the label may let escape without alarm (slab_label_expect_escapes); both 0: nothing was said, and
     * each escape is unexpected. How many phases let more escape as they were drained, since the allocator was made. Of
     * the phases that drain now, those that have let more escape: how many, what they hold, and how old the oldest is,
     * as in the figures of all that drain. */
    uint64_t expected_objects, expected_bytes, unexpected_phases;
    uint64_t unexpected_draining_phases, unexpected_draining_objects, unexpected_draining_bytes, oldest_unexpected_ns;
    /* as in SlabGlobalStats, over the times that stand there */
    double live_pace_10s, live_pace_100s, live_pace_ever;
    double committed_pace_10s, committed_pace_100s, committed_pace_ever;
} SlabLabelStats;

/* One incarnation that is open or draining. */
typedef struct SlabPhaseStats {
    uint32_t version;
    EpochId epoch_id; /* may name a later incarnation by now: the era tells */
    uint64_t epoch_era;
    char label[32];
    uint32_t label_id;
    EpochLifecycleState state;
    /* from its first slab; both 0 before; the first of id 0 was open from the allocator's birth */
    uint64_t open_since_ns, age_ns;
    uint64_t refcount; /* scopes inside and slab_epoch_inc_refcount */
    uint32_t threads;  /* that own slabs of it */
    uint64_t objects_allocated, bytes_allocated, live_objects, live_bytes;
    uint64_t slabs, empty_slabs, committed_bytes, peak_bytes;
    uint64_t purged_bytes; /* given back to the system by its closes */
    uint64_t budget_soft_bytes, budget_hard_bytes;
    uint64_t rss_before_close, rss_after_close; /* of the process; 0 when not measured */
} SlabPhaseStats;

/* Sampled allocations of one thread, option sampling_period: one in so many of those that leave the fast path (a line
 * or region is used up, a phase allocates for the first time, the object is large). They alone can wait for a lock, the
 * kernel or memory. wait = wall - cpu, what the clocks themselves cost taken off, never below 0; samples in which cpu
 * exceeds wall are dropped. */
typedef struct ThreadStats {
    uint64_t alloc_samples, alloc_wall_ns_sum, alloc_cpu_ns_sum, alloc_wait_ns_sum, alloc_wall_ns_max, alloc_cpu_ns_max,
        alloc_wait_ns_max, repair_count, repair_wall_ns_sum, repair_cpu_ns_sum, repair_wait_ns_sum, repair_wall_ns_max,
        repair_cpu_ns_max, repair_wait_ns_max, repair_reason_full_bitmap, repair_reason_list_mismatch,
        repair_reason_other;
} ThreadStats;

/* Samples of all threads of an allocator, and its locks. */
typedef struct SlabSamplingStats {
    uint32_t version;
    uint32_t period; /* one slow allocation in so many is sampled; 0: off */
    ThreadStats sum;
    uint64_t dropped; /* samples with more cpu than wall */
    uint64_t lock_samples, lock_wait_ns_sum, lock_wait_ns_max, lock_hold_ns_sum, lock_hold_ns_max;
    uint64_t alloc_wall_ns[SLAB_LATENCY_BUCKETS], lock_wait_ns[SLAB_LATENCY_BUCKETS],
        lock_hold_ns[SLAB_LATENCY_BUCKETS];
} SlabSamplingStats;

/* O(threads + slabs of the allocator). */
SLAB_API void slab_stats_global(SlabAllocator* a, SlabGlobalStats* out);
/* O(threads + slabs of the allocator). */
SLAB_API void slab_stats_class(SlabAllocator* a, uint32_t size_class, SlabClassStats* out);
/* O(slabs of the allocator). A bad class or id gives a zeroed structure. */
SLAB_API void slab_stats_epoch(SlabAllocator* a, uint32_t size_class, EpochId epoch, SlabEpochStats* out);
/* O(threads). */
SLAB_API void slab_stats_refusals(SlabAllocator* a, SlabRefusals* out);
/* Fills up to `capacity` rows (out may be NULL with 0) and returns how many labels there are. Rows are by
 * label_id. O(slabs + incarnations + labels). */
SLAB_API size_t slab_stats_labels(SlabAllocator* a, SlabLabelStats* out, size_t capacity);
/* The same for incarnations that are open and were used, or that drain. By era. O(slabs + incarnations). */
SLAB_API size_t slab_stats_phases(SlabAllocator* a, SlabPhaseStats* out, size_t capacity);
/* The calling thread's samples in all allocators. */
SLAB_API ThreadStats slab_stats_thread(void);
/* Zeroed when sampling is off. O(threads). */
SLAB_API void slab_stats_sampling(SlabAllocator* a, SlabSamplingStats* out);

/* NULL allocator or `write`: false with EINVAL. Everything above as one JSON document (schema:
 * share/temporal-slab/stats.schema.json) or in the Prometheus text format. `write` receives the text in pieces, on the
 * calling thread, no lock held; when it returns false the call stops and returns false. False with errno ENOMEM without
 * memory for the snapshot. slab_stats_json has the phases and epochs that hold most, 256 of each, and as many that are
 * oldest, half of these of those that drain, and says how many it leaves out; sums of labels have them all. */
SLAB_API bool slab_stats_json(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);
/* The same with every phase and epoch. */
SLAB_API bool slab_stats_json_all(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);
SLAB_API bool slab_stats_prometheus(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);

/* Copies the statistics to the segment now (option `segment`, slab_segment.h), for programs that are idle: others
 * publish as they go by. Waits while another thread publishes. False when there is no segment, or no room in it.
 * O(labels + slabs of open phases). */
SLAB_API bool slab_stats_publish(SlabAllocator* a);

#ifdef __cplusplus
}
#endif
#endif
