/*
 * slab_stats.h - statistics: what an allocator holds and does.
 *
 * Snapshots are read from the words that the allocator works with: the allocation path touches no counter. A snapshot
 * is exact when nothing runs, and never negative while threads allocate. Conventions are as in slab_alloc.h. For a NULL
 * allocator or a bad class, the structures are filled with zeros.
 */
#ifndef SLAB_STATS_H
#define SLAB_STATS_H

#include "slab_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLAB_STATS_VERSION 3

/* The whole allocator. The compare-exchange fields of frees count frees by other threads. In shared mode, those of
 * allocations count allocations through a bank (attempts) and those that found the bank held (retries); otherwise they
 * are 0. The fields of current_partial are always 0. */
typedef struct SlabGlobalStats {
    uint32_t version, current_epoch, active_epoch_count, closing_epoch_count;
    uint64_t total_slabs_allocated, total_slabs_recycled;
    uint64_t net_slabs; /* slabs that hold memory now */
    uint64_t rss_bytes_current, estimated_slab_rss_bytes, total_slow_path_hits, total_cache_overflows,
        total_slow_cache_miss, total_slow_epoch_closed, total_madvise_calls, total_madvise_bytes,
        total_madvise_failures, total_bitmap_alloc_cas_retries, total_bitmap_free_cas_retries,
        total_current_partial_cas_failures, total_bitmap_alloc_attempts, total_bitmap_free_attempts,
        total_current_partial_cas_attempts;
    /* pages of the allocator's own tables that were written and not given back; these and the slabs are all that is
     * resident */
    uint64_t metadata_bytes;
    uint64_t committed_bytes; /* slabs in an epoch, and pages kept warm */
    uint64_t live_bytes, live_objects;
    uint64_t reserved_bytes;  /* address space */
    uint64_t open_phases;     /* incarnations that accept allocations */
    uint64_t draining_phases; /* incarnations that do not, and still hold slabs */
    /* Lists of lines that an allocation found wrong and repaired, by cause; counted even without sampling. */
    uint64_t total_repairs, repairs_full_bitmap, repairs_list_mismatch, repairs_other;
    /* Warm pages, which no epoch owns: the current budget, the bytes kept within it, and the part of these that no
     * thread or class has yet. The last field counts, since the start, bytes taken from the system again right after
     * they were given back for lack of budget. */
    uint64_t warm_budget_bytes, warm_bytes, warm_stock_bytes, warm_regretted_bytes;
    /* The nearest limit on the bytes of epochs: max_bytes, the reservation, or the rest of RLIMIT_DATA. limit_name
     * names that limit, and limit_used_bytes count against it. limit_ns is the time until the limit is reached, at the
     * pace at which growing memory is committed; 0 means more than a year. */
    uint64_t limit_bytes, limit_used_bytes, limit_ns;
    char limit_name[32];
    /* Growth of live bytes between the lowest readings of two stretches of time, and the time between the two; 0 ns
     * means that there are not two stretches yet. A stretch lasts an eighth of the allocator's age, 2 s to 1 h. The
     * pace is over stretches of at most 10 s if these grew too. Readings are made by slab_stats_labels,
     * slab_stats_phases, JSON, Prometheus, the doctor, and each publication in a segment. */
    uint64_t growth_bytes, growth_ns;
    double growth_per_second;
    uint64_t max_bytes; /* the option; 0: none */
    /* Change of live and committed bytes in bytes per second, negative where they fall: over the last 10 s, over the
     * last 100 s, and since the allocator was made. pace_10s_ns and pace_100s_ns are the true lengths: 10 to 20 s and
     * 100 to 200 s, or less in a younger allocator. If the previous reading was too long ago, these lengths and the
     * paces are 0. The readings are those that growth_bytes uses. */
    uint64_t pace_10s_ns, pace_100s_ns;
    double live_pace_10s, live_pace_100s, live_pace_ever;
    double committed_pace_10s, committed_pace_100s, committed_pace_ever;
    uint64_t quarantine_bytes; /* of ended phases, not yet reusable; part of warm_bytes, beyond its budget */
} SlabGlobalStats;

/* A size class. cache_size is the number of slabs that threads keep warm or that are in quarantine. cache_capacity is
 * the number of slabs of the class that the current warm budget would hold alone, or 0 for regions and large objects,
 * which have no single size. cache_overflow_len is always 0, because there is no second cache. The scan_* fields belong
 * to the whole allocator and are equal in all classes. They show the controller of shared mode, which spreads threads
 * over four banks while they meet (scan_mode 1), and are 0 otherwise. object_size is 0 where each object has a size of
 * its own. After the sizes, indices go on to regions, whose objects count under the class of their usable size, and to
 * large objects. The first bad index gives version 0. */
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
    uint64_t slab_bytes; /* bytes of one slab; of a page for regions, of a chunk for large objects */
} SlabClassStats;

/* A class within the incarnation that an epoch id names now. */
typedef struct SlabEpochStats {
    uint32_t version, class_index, object_size;
    EpochId epoch_id;
    uint64_t epoch_era;
    EpochLifecycleState state;
    uint64_t open_since_ns; /* 0 for the first incarnation of id 0 and before the first slab */
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
    uint64_t out_of_memory;    /* allocations refused for lack of memory */
    uint64_t retired_slabs;    /* slabs whose handle generations ran out */
    uint64_t bad_environment;  /* options of TSLAB_OPTIONS that were ignored */
    uint64_t over_budget;      /* allocations refused by a hard budget or max_bytes */
    uint64_t write_after_end;  /* new objects whose memory was written to after an earlier one's end */
} SlabRefusals;

enum {
    /* bucket i counts values from 2^i to 2^(i+1) - 1; bucket 0 counts 0 and 1; the last counts all above */
    SLAB_HISTOGRAM_BUCKETS = 48,
    SLAB_LATENCY_BUCKETS =
        96 /* four buckets per doubling: values 0..3 singly, then 4 * floor(log2 v) + the next two bits - 4 */
};

/* Everything attributed to one label since the allocator was made. Id 0 is "(unlabeled)"; the other labels follow in
 * order of first use. The highest id is "(other)", which takes the phases whose label found no room. When a live epoch
 * is relabelled, past counters stay with the old label, and live amounts move. At any moment allocated = freed +
 * released + live, for objects and for bytes, unless an epoch with live objects was relabelled. Under the new label,
 * those objects end without having been allocated there. While threads work, sums may miss what moves between two
 * readings, but they never exceed the truth and never fall. */
typedef struct SlabLabelStats {
    uint32_t version, label_id;
    char label[32];
    uint64_t phases_opened, phases_ended;  /* ended: closed or released, drained or not */
    uint64_t phases_open, phases_draining; /* now; draining: ended, but with live objects */
    uint64_t objects_allocated, bytes_allocated;
    uint64_t objects_freed, bytes_freed;       /* singly */
    uint64_t objects_released, bytes_released; /* ended in bulk */
    uint64_t objects_escaped, bytes_escaped;   /* live when their epoch was closed by draining, summed over closes */
    uint64_t live_objects, live_bytes;
    uint64_t committed_bytes; /* slabs and large objects held now */
    uint64_t peak_bytes;      /* most committed_bytes ever */
    uint64_t slow_path_hits, refusals;
    /* as in ThreadStats; 0 without sampling */
    uint64_t alloc_samples, alloc_wall_ns_sum, alloc_cpu_ns_sum, alloc_wait_ns_sum;
    uint64_t lock_fast_acquire, lock_contended; /* of the locks that its slow paths and ends took */
    uint64_t cas_retries;                       /* of frees by other threads */
    /* Budgets of 0 bytes mean none. Refusals are those by the label's hard budget, by those of its phases, and by
     * max_bytes. */
    uint64_t budget_soft_bytes, budget_hard_bytes, budget_warnings, budget_refusals;
    /* slabs and large objects that ends examined; the part that live objects kept from going back */
    uint64_t closed_slabs, pinned_slabs;
    double drainability;                          /* 1 - pinned / closed; 1 when nothing ended */
    uint64_t swallowed;                           /* "(other)" only: phases opened under a label that found no room */
    uint64_t duration_ns[SLAB_HISTOGRAM_BUCKETS]; /* ended phases that had held something, first slab to end */
    uint64_t peak_bytes_hist[SLAB_HISTOGRAM_BUCKETS]; /* ended phases that had held something, by their peak */
    /* Ended phases with live objects: the numbers of these phases and objects, and the bytes of slabs and large objects
     * that they hold. Then come the time since the first slab of the oldest (0: none) and a histogram of their ages.
     * The library keeps these figures; they are exact except for operations under way, and are read without visiting
     * the phases. */
    uint64_t draining_phases, draining_objects, draining_bytes, oldest_draining_ns;
    uint64_t draining_age_ns[SLAB_HISTOGRAM_BUCKETS];
    /* The three draining phases that hold the most bytes, largest first; era 0: none. */
    uint64_t worst_eras[3], worst_bytes[3], worst_objects[3], worst_ages_ns[3];
    uint64_t open_objects, open_bytes; /* live ones in its open phases */
    /* Objects made by slab_malloc_outside inside a scope of the label, and the bytes asked for. These objects live in
     * the ring's epoch and count under that epoch's label. */
    uint64_t outside_objects, outside_bytes;
    uint64_t growth_bytes, growth_ns; /* of live_bytes, as in SlabGlobalStats */
    double growth_per_second;
    /* The nearest limit among the label's hard budget and those of its open phases, as in SlabGlobalStats; 0: there is
     * none. */
    uint64_t limit_bytes, limit_used_bytes, limit_ns;
    /* Escapes allowed to each phase of the label (slab_label_expect_escapes). If both amounts are 0, none are allowed,
     * and every escape is unexpected. unexpected_phases counts, since the allocator was made, phases that let more
     * escape when they were drained. unexpected_draining_* and oldest_unexpected_ns describe the unexpected phases that
     * are still draining, like the figures of all draining phases above. */
    uint64_t expected_objects, expected_bytes, unexpected_phases;
    uint64_t unexpected_draining_phases, unexpected_draining_objects, unexpected_draining_bytes, oldest_unexpected_ns;
    /* as in SlabGlobalStats, which has the lengths of time */
    double live_pace_10s, live_pace_100s, live_pace_ever;
    double committed_pace_10s, committed_pace_100s, committed_pace_ever;
} SlabLabelStats;

/* An incarnation that is open or draining. */
typedef struct SlabPhaseStats {
    uint32_t version;
    EpochId epoch_id; /* may name a later incarnation by now: compare the era */
    uint64_t epoch_era;
    char label[32];
    uint32_t label_id;
    EpochLifecycleState state;
    /* since its first slab, both 0 before; the first incarnation of id 0 is open from the start of the allocator */
    uint64_t open_since_ns, age_ns;
    uint64_t refcount; /* scopes inside and slab_epoch_inc_refcount */
    uint32_t threads;  /* threads that own slabs of the phase */
    uint64_t objects_allocated, bytes_allocated, live_objects, live_bytes;
    uint64_t slabs, empty_slabs, committed_bytes, peak_bytes;
    uint64_t purged_bytes; /* given back to the system by its closes */
    uint64_t budget_soft_bytes, budget_hard_bytes;
    uint64_t rss_before_close, rss_after_close; /* of the process; 0 when not measured */
} SlabPhaseStats;

/* Sampled allocations of one thread: one in `sampling_period` (an option) of those that leave the fast path. An
 * allocation leaves that path if a line or region is used up, a phase allocates for the first time, or the object is
 * large. Only such allocations can wait for a lock, the kernel or memory. wait is wall - cpu, less the cost of the
 * clocks, and never below 0. Samples in which cpu exceeds wall are dropped. */
typedef struct ThreadStats {
    uint64_t alloc_samples, alloc_wall_ns_sum, alloc_cpu_ns_sum, alloc_wait_ns_sum, alloc_wall_ns_max, alloc_cpu_ns_max,
        alloc_wait_ns_max, repair_count, repair_wall_ns_sum, repair_cpu_ns_sum, repair_wait_ns_sum, repair_wall_ns_max,
        repair_cpu_ns_max, repair_wait_ns_max, repair_reason_full_bitmap, repair_reason_list_mismatch,
        repair_reason_other;
} ThreadStats;

/* Samples of all threads of an allocator and of its locks. */
typedef struct SlabSamplingStats {
    uint32_t version;
    uint32_t period; /* slow allocations per sample; 0: off */
    ThreadStats sum;
    uint64_t dropped; /* samples with more cpu than wall */
    uint64_t lock_samples, lock_wait_ns_sum, lock_wait_ns_max, lock_hold_ns_sum, lock_hold_ns_max;
    uint64_t alloc_wall_ns[SLAB_LATENCY_BUCKETS], lock_wait_ns[SLAB_LATENCY_BUCKETS],
        lock_hold_ns[SLAB_LATENCY_BUCKETS];
} SlabSamplingStats;

/* Fills *out with the figures of the whole allocator. O(threads + slabs of the allocator). */
SLAB_API void slab_stats_global(SlabAllocator* a, SlabGlobalStats* out);
/* Fills *out with the figures of a class. O(threads + slabs of the allocator). */
SLAB_API void slab_stats_class(SlabAllocator* a, uint32_t size_class, SlabClassStats* out);
/* Fills *out with the figures of a class in an epoch, or with zeros for a bad class or id. O(slabs of the
 * allocator). */
SLAB_API void slab_stats_epoch(SlabAllocator* a, uint32_t size_class, EpochId epoch, SlabEpochStats* out);
/* Fills *out with the refused calls by cause. O(threads). */
SLAB_API void slab_stats_refusals(SlabAllocator* a, SlabRefusals* out);
/* Fills up to `capacity` rows of `out`, ordered by label_id; if `capacity` is 0, out may be NULL. Returns the number of
 * labels. O(slabs + incarnations + labels). */
SLAB_API size_t slab_stats_labels(SlabAllocator* a, SlabLabelStats* out, size_t capacity);
/* Fills up to `capacity` rows of `out`, ordered by era, with the incarnations that are draining or that are open and
 * were used. Returns the number of these incarnations. O(slabs + incarnations). */
SLAB_API size_t slab_stats_phases(SlabAllocator* a, SlabPhaseStats* out, size_t capacity);
/* Returns the calling thread's samples in all allocators. */
SLAB_API ThreadStats slab_stats_thread(void);
/* Fills *out with the samples of all threads, or with zeros if sampling is off. O(threads). */
SLAB_API void slab_stats_sampling(SlabAllocator* a, SlabSamplingStats* out);

/* Writes everything above as one JSON document (schema: share/temporal-slab/stats.schema.json). `write` receives the
 * text in pieces, on the calling thread, with no lock held; if it returns false, the call stops and returns false. On
 * failure, returns false and sets errno: EINVAL if a or `write` is NULL, ENOMEM if there is no memory for the snapshot.
 * The document has the 256 phases and the 256 epochs that hold the most, and as many of the oldest (half of these
 * draining). The document says how many it leaves out; the sums of labels include them all. */
SLAB_API bool slab_stats_json(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);
/* Writes like slab_stats_json, but with every phase and epoch. */
SLAB_API bool slab_stats_json_all(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);
/* Writes like slab_stats_json, in the Prometheus text format. */
SLAB_API bool slab_stats_prometheus(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);

/* Copies the statistics to the segment now (option `segment`, slab_segment.h). Idle programs need this call; busy ones
 * publish as they run. Waits while another thread publishes. Returns false if there is no segment or no room in it.
 * O(labels + slabs of open phases). */
SLAB_API bool slab_stats_publish(SlabAllocator* a);

#ifdef __cplusplus
}
#endif
#endif
