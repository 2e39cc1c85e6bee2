/*
 * slab_stats.h - statistics: the memory that an allocator holds and the work that it has done.
 *
 * The allocation fast path does not update statistics. Instead, snapshots are computed from the allocator's own
 * bookkeeping. A snapshot that is taken while no other thread uses the allocator is exact. While threads allocate, a
 * snapshot is approximate, but its counts are never negative. The conventions of slab_alloc.h apply. Functions that
 * fill a structure fill it with zeros if the allocator is NULL or the class index is invalid.
 *
 * Terms used below
 *   incarnation  one use of an epoch id by a phase of the program, from the opening of the phase to its end. Each
 *                incarnation has an era, a number that is never reused
 *   draining     ended, but still holding memory because of objects that the program has not freed yet
 *   escape       an object that is live when its phase is drained (ended without freeing its live objects)
 *   slab         contiguous pages that belong to one thread in one incarnation
 *   line         up to 64 equal slots of a slab, each with room for one object
 *   region       a slab without slots, in which objects of any size lie next to each other
 *   bank         with the option `shared`, a set of slabs that threads use in turn, protected by one lock
 */
#ifndef SLAB_STATS_H
#define SLAB_STATS_H

#include "slab_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLAB_STATS_VERSION 3

/* The whole allocator. Frees by threads that do not own the slab use compare-exchange operations.
 * total_bitmap_free_attempts counts these frees, and total_bitmap_free_cas_retries counts how often a compare-exchange
 * had to be repeated. With the option `shared`, total_bitmap_alloc_attempts counts allocations through a bank, and
 * total_bitmap_alloc_cas_retries counts allocations that found the bank locked. Without this option, both
 * total_bitmap_alloc_* fields are 0. The total_current_partial_* fields are always 0. */
typedef struct SlabGlobalStats {
    uint32_t version, current_epoch, active_epoch_count, closing_epoch_count;
    uint64_t total_slabs_allocated, total_slabs_recycled;
    uint64_t net_slabs; /* slabs that currently hold memory */
    uint64_t rss_bytes_current, estimated_slab_rss_bytes, total_slow_path_hits, total_cache_overflows,
        total_slow_cache_miss, total_slow_epoch_closed, total_madvise_calls, total_madvise_bytes,
        total_madvise_failures, total_bitmap_alloc_cas_retries, total_bitmap_free_cas_retries,
        total_current_partial_cas_failures, total_bitmap_alloc_attempts, total_bitmap_free_attempts,
        total_current_partial_cas_attempts;
    /* Bytes of the allocator's own tables, counted as pages that were written and not returned to the system. From a
     * slab's first handle on, all pages with counts of its handles are included, resident or not. All other resident
     * memory of the allocator is in slabs, large objects and warm pages. */
    uint64_t metadata_bytes;
    uint64_t committed_bytes; /* slabs and large objects in epochs, and pages kept warm */
    uint64_t live_bytes, live_objects;
    uint64_t reserved_bytes;  /* address space */
    uint64_t open_phases;     /* incarnations that accept allocations */
    uint64_t draining_phases; /* ended incarnations that still hold slabs */
    /* Repairs by cause. An allocation that finds a line in the wrong list repairs that list. Repairs are counted even
     * if sampling is off. */
    uint64_t total_repairs, repairs_full_bitmap, repairs_list_mismatch, repairs_other;
    /* Warm pages belong to no epoch and are kept for reuse. warm_budget_bytes is the current limit on them, and
     * warm_bytes is their current amount. warm_stock_bytes is the part of warm_bytes that no thread and no size class
     * holds. warm_regretted_bytes counts bytes that were returned to the system because the budget was too small, and
     * that were needed again within about 100 ms. */
    uint64_t warm_budget_bytes, warm_bytes, warm_stock_bytes, warm_regretted_bytes;
    /* The nearest limit on the slabs and large objects in epochs. limit_name is "max_bytes" (the option),
     * "reserve_bytes" (the reservation), or "RLIMIT_DATA" (the memory that this resource limit still allows).
     * limit_used_bytes is the part of limit_bytes that is in use. limit_ns is the estimated time until the limit is
     * reached if committed memory continues to grow at its current rate. A limit_ns of 0 means that the limit is more
     * than a year away or that committed memory is not growing. */
    uint64_t limit_bytes, limit_used_bytes, limit_ns;
    char limit_name[32];
    /* Growth of live bytes, computed from two consecutive intervals. growth_bytes is the difference between the lowest
     * readings in the two intervals, or 0 if live bytes do not keep growing. growth_ns is the time between the starts
     * of the intervals, or 0 while there is only one interval. An interval lasts an eighth of the allocator's age, but
     * at least 2 s and at most 1 h. growth_per_second is computed from growth_bytes and growth_ns, or, if live bytes
     * have also grown over shorter intervals of at most 10 s, from those shorter intervals. Readings are taken by
     * slab_stats_labels, slab_stats_phases, slab_doctor, the JSON and Prometheus functions, and each publication in a
     * segment. */
    uint64_t growth_bytes, growth_ns;
    double growth_per_second;
    uint64_t max_bytes; /* the option max_bytes; 0: no limit */
    /* Growth of live and of committed bytes, in bytes per second; negative if the bytes fall. The *_10s fields cover
     * the last 10 s, the *_100s fields cover the last 100 s, and the *_ever fields cover the time since the allocator
     * was made. pace_10s_ns and pace_100s_ns are the lengths of time that were actually measured: 10 to 20 s and 100 to
     * 200 s, or less in a younger allocator. If there is no reading of that age, the length and its *_10s or *_100s
     * fields are 0. The readings are taken by the same functions as the readings for growth_bytes. */
    uint64_t pace_10s_ns, pace_100s_ns;
    double live_pace_10s, live_pace_100s, live_pace_ever;
    double committed_pace_10s, committed_pace_100s, committed_pace_ever;
    /* Memory of ended phases that is in quarantine and cannot be reused yet (option quarantine_bytes). warm_bytes
     * includes this memory, but warm_budget_bytes does not limit it. */
    uint64_t quarantine_bytes;
} SlabGlobalStats;

/* A size class. The last two indices stand for regions and large objects, which have an object_size of 0 because each
 * object has its own size. live_bytes counts the objects in regions under the class of their usable size. For an index
 * after the last class, slab_stats_class sets `version` to 0. cache_size is the number of slabs of the class that
 * threads keep warm or that are in quarantine. cache_capacity is the number of slabs of the class that would fill the
 * current warm budget, or 0 for regions and large objects. cache_overflow_len is always 0. Each scan_* field has the
 * same value in all classes, and is 0 without the option `shared`. With this option, scan_adapt_checks counts how
 * often the allocator checked the number of banks that threads use, scan_adapt_switches counts how often it changed
 * this number, and scan_mode is the current choice. A scan_mode of 0 means that all threads use one bank. A scan_mode
 * of 1 means that the threads are spread over four banks because too many allocations had to wait. */
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
        bitmap_free_cas_retries_by_label[16]; /* index 0: unlabeled; 1 to 14: the first labels; 15: all other labels */
    uint32_t cache_size, cache_capacity, cache_overflow_len, total_partial_slabs, total_full_slabs;
    double recycle_rate_pct;
    uint64_t net_slabs, estimated_rss_bytes;
    uint64_t slab_bytes; /* size of one slab; for regions, of one page; for large objects, of one allocation unit */
} SlabClassStats;

/* A size class in the incarnation that an epoch id currently names. */
typedef struct SlabEpochStats {
    uint32_t version, class_index, object_size;
    EpochId epoch_id;
    uint64_t epoch_era;
    EpochLifecycleState state;
    uint64_t open_since_ns; /* as in SlabPhaseStats; 0 before the first slab */
    uint64_t alloc_count;   /* live objects */
    char label[32];
    uint64_t rss_before_close, rss_after_close;
    uint32_t partial_slab_count, full_slab_count;
    uint64_t estimated_rss_bytes;
    uint32_t reclaimable_slab_count; /* slabs without a live object */
    uint64_t reclaimable_bytes;
} SlabEpochStats;

/* Counts of refused calls by cause, and of related events, since the allocator was made. */
typedef struct SlabRefusals {
    uint32_t version;
    uint64_t stale_handle, bad_handle, double_free, stale_free, interior_pointer, foreign_pointer, size_mismatch,
        bad_epoch, closed_epoch, bad_size, domain_order, domain_stale;
    uint64_t late_double_free; /* double frees by two threads at once, found only after both frees had succeeded */
    uint64_t out_of_memory;    /* allocations refused for lack of memory */
    uint64_t retired_slabs;    /* slabs taken out of use because a slot or region had issued its last possible handle */
    uint64_t bad_environment;  /* options in TSLAB_OPTIONS that were ignored */
    uint64_t over_budget;      /* allocations refused by a hard budget or max_bytes */
    uint64_t write_after_end;  /* new objects in memory that was written to after its previous object had ended */
} SlabRefusals;

enum {
    /* Bucket i counts values from 2^i to 2^(i+1) - 1. Bucket 0 also counts 0, and the last bucket also counts all
     * larger values. */
    SLAB_HISTOGRAM_BUCKETS = 48,
    SLAB_LATENCY_BUCKETS =
        96 /* v < 4 is in bucket v; v >= 4 is in bucket 4 * floor(log2 v) - 4 + (the two bits after v's top bit) */
};

/* Statistics of one label since the allocator was made. Id 0 is "(unlabeled)", and the other labels follow in order of
 * first use. The highest id is "(other)", which counts the phases whose labels were first used after all other ids were
 * taken. If a live epoch is relabeled, its past counts stay with the old label, and its live amounts move to the new
 * label. At any moment, allocated = freed + released + live, both in objects and in bytes, unless an epoch with live
 * objects has been relabeled: these objects end under the new label but were allocated under the old one. While threads
 * are running, cumulative counts can be slightly too low, but they are never too high and never decrease. */
typedef struct SlabLabelStats {
    uint32_t version, label_id;
    char label[32];
    uint64_t phases_opened, phases_ended;  /* phases_ended counts closed and released phases, including draining ones */
    uint64_t phases_open, phases_draining; /* current numbers; phases_draining counts ended phases with live objects */
    uint64_t objects_allocated, bytes_allocated;
    uint64_t objects_freed, bytes_freed;       /* freed one by one */
    uint64_t objects_released, bytes_released; /* ended in bulk with their phase */
    uint64_t objects_escaped, bytes_escaped;   /* live when their epoch was drained, summed over all drains */
    uint64_t live_objects, live_bytes;
    uint64_t committed_bytes; /* slabs and large objects held now */
    uint64_t peak_bytes;      /* highest committed_bytes so far */
    uint64_t slow_path_hits, refusals;
    /* as in ThreadStats; 0 if sampling is off */
    uint64_t alloc_samples, alloc_wall_ns_sum, alloc_cpu_ns_sum, alloc_wait_ns_sum;
    /* Acquisitions of locks on slow paths and at phase ends: without waiting, and after waiting. */
    uint64_t lock_fast_acquire, lock_contended;
    uint64_t cas_retries; /* compare-exchanges repeated in frees by threads that do not own the slab */
    /* A budget of 0 bytes means that no budget is set. budget_refusals counts the allocations refused by the label's
     * hard budget, by the hard budget of a phase, or by max_bytes. */
    uint64_t budget_soft_bytes, budget_hard_bytes, budget_warnings, budget_refusals;
    /* closed_slabs counts slabs and large objects that were examined when phases ended. pinned_slabs counts slabs and
     * large objects that could not be returned at that time because of live objects. */
    uint64_t closed_slabs, pinned_slabs;
    double drainability; /* 1 - pinned_slabs / closed_slabs; 1 if closed_slabs is 0 */
    uint64_t swallowed;  /* phases for whose labels no id was free; nonzero only in "(other)" */
    /* Histograms of ended phases that had slabs: by the time from a phase's first slab to its end, and by its peak
     * size. */
    uint64_t duration_ns[SLAB_HISTOGRAM_BUCKETS];
    uint64_t peak_bytes_hist[SLAB_HISTOGRAM_BUCKETS];
    /* draining_phases counts ended phases that still have live objects. draining_objects counts these objects, and
     * draining_bytes is the size of the slabs and large objects that the phases hold. The age of a phase is the time
     * since it took its first slab: oldest_draining_ns is the age of the oldest such phase (0: none), and
     * draining_age_ns is a histogram of the ages. A snapshot reads one phase after the other, so a phase that ends
     * meanwhile may be missing; otherwise the figures are exact, except for operations in progress. */
    uint64_t draining_phases, draining_objects, draining_bytes, oldest_draining_ns;
    uint64_t draining_age_ns[SLAB_HISTOGRAM_BUCKETS];
    /* The three draining phases that hold the most bytes, largest first. An era of 0 marks an unused entry. The age of
     * a phase is the time since the phase took its first slab. */
    uint64_t worst_eras[3], worst_bytes[3], worst_objects[3], worst_ages_ns[3];
    uint64_t open_objects, open_bytes; /* live objects in the label's open phases */
    /* Objects that slab_malloc_outside allocated inside a scope of the label, and the bytes that were requested. Such
     * objects live in the allocator's current epoch (epoch_current). All other fields count them under the label of
     * that epoch. */
    uint64_t outside_objects, outside_bytes;
    uint64_t growth_bytes, growth_ns; /* growth of live_bytes, as in SlabGlobalStats */
    double growth_per_second;
    /* The hard budget of the label or of one of its open phases, whichever is reached first. The fields are as in
     * SlabGlobalStats; a limit_bytes of 0 means that there is no hard budget. */
    uint64_t limit_bytes, limit_used_bytes, limit_ns;
    /* The escapes that slab_label_expect_escapes allows each phase of the label: up to expected_objects objects, with
     * up to expected_bytes bytes in total. If both are 0, every escape is unexpected. unexpected_phases counts the
     * phases from which more has escaped than is allowed. unexpected_draining_* and oldest_unexpected_ns correspond to
     * draining_* and oldest_draining_ns, but include only such phases. */
    uint64_t expected_objects, expected_bytes, unexpected_phases;
    uint64_t unexpected_draining_phases, unexpected_draining_objects, unexpected_draining_bytes, oldest_unexpected_ns;
    /* as in SlabGlobalStats, whose pace_10s_ns and pace_100s_ns also apply here */
    double live_pace_10s, live_pace_100s, live_pace_ever;
    double committed_pace_10s, committed_pace_100s, committed_pace_ever;
} SlabLabelStats;

/* A phase (an incarnation of an epoch) that is open or draining. */
typedef struct SlabPhaseStats {
    uint32_t version;
    EpochId epoch_id; /* may name a later incarnation by now; epoch_era identifies this one */
    uint64_t epoch_era;
    char label[32];
    uint32_t label_id;
    EpochLifecycleState state;
    /* CLOCK_MONOTONIC when the phase took its first slab, and the time since then. Both are 0 in a phase without a
     * clock (SLAB_DOMAIN_UNTIMED). In the first incarnation of id 0, open_since_ns is 0, and age_ns is the allocator's
     * age. */
    uint64_t open_since_ns, age_ns;
    uint64_t refcount; /* open scopes of the phase, plus references taken with slab_epoch_inc_refcount */
    uint32_t threads;  /* threads that own slabs of the phase */
    uint64_t objects_allocated, bytes_allocated, live_objects, live_bytes;
    uint64_t slabs, empty_slabs, committed_bytes, peak_bytes;
    uint64_t purged_bytes; /* bytes returned to the system when the phase was closed */
    uint64_t budget_soft_bytes, budget_hard_bytes;
    uint64_t rss_before_close, rss_after_close; /* resident bytes of the process; 0 if not measured */
} SlabPhaseStats;

/* Sampled allocations of one thread. On average, the library samples one in `sampling_period` (an option) of the
 * allocations that leave the fast path. An allocation leaves the fast path if, for example, a line or region is used
 * up, the thread has not allocated in the phase before, or the object is large. Only such allocations can wait for a
 * lock, the kernel or memory. `wall` is elapsed time and `cpu` is processor time, both less the cost of reading the
 * clocks. `wait` is wall - cpu, less the time asleep in the allocator's own locks, and never below 0. A sample is
 * dropped if `cpu` exceeds the elapsed time by more than 50 us. */
typedef struct ThreadStats {
    uint64_t alloc_samples, alloc_wall_ns_sum, alloc_cpu_ns_sum, alloc_wait_ns_sum, alloc_wall_ns_max, alloc_cpu_ns_max,
        alloc_wait_ns_max, repair_count, repair_wall_ns_sum, repair_cpu_ns_sum, repair_wait_ns_sum, repair_wall_ns_max,
        repair_cpu_ns_max, repair_wait_ns_max, repair_reason_full_bitmap, repair_reason_list_mismatch,
        repair_reason_other;
} ThreadStats;

/* Sampled allocations by all threads that use an allocator, and sampled acquisitions of its locks. */
typedef struct SlabSamplingStats {
    uint32_t version;
    uint32_t period; /* slow-path allocations per sample; 0: sampling is off */
    ThreadStats sum;
    uint64_t dropped; /* samples dropped because cpu exceeded the elapsed time */
    uint64_t lock_samples, lock_wait_ns_sum, lock_wait_ns_max, lock_hold_ns_sum, lock_hold_ns_max;
    uint64_t alloc_wall_ns[SLAB_LATENCY_BUCKETS], lock_wait_ns[SLAB_LATENCY_BUCKETS],
        lock_hold_ns[SLAB_LATENCY_BUCKETS];
} SlabSamplingStats;

/* Fills *out with the statistics of the whole allocator. O(threads + slabs). */
SLAB_API void slab_stats_global(SlabAllocator* a, SlabGlobalStats* out);
/* Fills *out with the statistics of a size class. O(threads + slabs). */
SLAB_API void slab_stats_class(SlabAllocator* a, uint32_t size_class, SlabClassStats* out);
/* Fills *out with the statistics of a size class in an epoch, or with zeros if the class or the id is invalid. O(slabs
 * of the allocator). */
SLAB_API void slab_stats_epoch(SlabAllocator* a, uint32_t size_class, EpochId epoch, SlabEpochStats* out);
/* Fills *out with the counts of refused calls. O(threads). */
SLAB_API void slab_stats_refusals(SlabAllocator* a, SlabRefusals* out);
/* Fills up to `capacity` rows of `out`, in order of label_id. If `capacity` is 0, `out` may be NULL. Returns the number
 * of labels, which can exceed `capacity`, or 0 if memory for the snapshot runs out. O(slabs + incarnations +
 * labels). */
SLAB_API size_t slab_stats_labels(SlabAllocator* a, SlabLabelStats* out, size_t capacity);
/* Fills up to `capacity` rows of `out`, in order of era. If `capacity` is 0, `out` may be NULL. There is a row for each
 * phase that is draining, and for each open phase that has held memory. Returns the number of such phases, which can
 * exceed `capacity`, or 0 if memory for the snapshot runs out. O(slabs + incarnations). */
SLAB_API size_t slab_stats_phases(SlabAllocator* a, SlabPhaseStats* out, size_t capacity);
/* Returns the calling thread's samples, combined over all allocators. */
SLAB_API ThreadStats slab_stats_thread(void);
/* Fills *out with the samples of all threads, or with zeros if sampling is off. O(threads). */
SLAB_API void slab_stats_sampling(SlabAllocator* a, SlabSamplingStats* out);

/* Writes all of these statistics as one JSON document (schema: share/temporal-slab/stats.schema.json). Passes the text
 * to `write` in pieces, on the calling thread, while holding no lock. Stops and returns false as soon as `write`
 * returns false. On error, returns false and sets errno: EINVAL if `a` or `write` is NULL, ENOMEM if memory for the
 * snapshot runs out. The document lists at most 512 phases: the 256 phases that hold the most memory, and the 256
 * oldest of the other phases. In the second group, 128 places are reserved for draining phases. Epochs are limited in
 * the same way, but ring epochs are chosen before all other epochs. The document states how many phases and epochs it
 * omits; the sums for each label include omitted phases and epochs. */
SLAB_API bool slab_stats_json(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);
/* Writes the document of slab_stats_json, but with every phase and epoch. */
SLAB_API bool slab_stats_json_all(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);
/* Writes the statistics like slab_stats_json, but in the Prometheus text format. */
SLAB_API bool slab_stats_prometheus(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);

/* Publishes the statistics in the segment now (option `segment`, slab_segment.h). Busy programs publish automatically
 * from time to time; an idle program must call this function to publish. Waits while another thread publishes. Returns
 * false if there is no segment, if the segment has no free slot, or if memory runs out. O(labels + slabs of open
 * phases). */
SLAB_API bool slab_stats_publish(SlabAllocator* a);

#ifdef __cplusplus
}
#endif
#endif
