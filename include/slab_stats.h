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

/* The whole allocator. Fields that only the shared mode gives meaning (compare-exchange retries,
 * attempts and current_partial counts) read 0: slabs are owned by threads. */
typedef struct SlabGlobalStats {
    uint32_t version, current_epoch, active_epoch_count, closing_epoch_count;
    uint64_t total_slabs_allocated, total_slabs_recycled;
    uint64_t net_slabs; /* slabs holding memory now */
    uint64_t rss_bytes_current, estimated_slab_rss_bytes, total_slow_path_hits, total_cache_overflows,
        total_slow_cache_miss, total_slow_epoch_closed, total_madvise_calls, total_madvise_bytes,
        total_madvise_failures, total_bitmap_alloc_cas_retries, total_bitmap_free_cas_retries,
        total_current_partial_cas_failures, total_bitmap_alloc_attempts, total_bitmap_free_attempts,
        total_current_partial_cas_attempts;
    uint64_t metadata_bytes;  /* committed for bookkeeping */
    uint64_t committed_bytes; /* slabs in an epoch or kept warm */
    uint64_t live_bytes, live_objects;
    uint64_t reserved_bytes; /* address space */
    uint64_t open_phases;    /* incarnations that accept allocations */
    uint64_t draining_phases; /* incarnations that do not, and still hold slabs */
} SlabGlobalStats;

/* One size class. Fields of features that do not exist yet (per-class madvise, calls and time of
 * epoch_close, lock and cache capacity figures) read 0. Indices go on after the sizes to mixed slabs (whose objects count under the
 * class of their usable size) and large objects; the first bad index gives version 0. */
typedef struct SlabClassStats {
    uint32_t version, class_index, object_size;
    uint64_t slow_path_hits, new_slab_count, list_move_partial_to_full, list_move_full_to_partial,
        current_partial_null, current_partial_full, empty_slab_recycled, empty_slab_overflowed;
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
    uint64_t slab_bytes; /* bytes of one slab */
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
} SlabRefusals;

/* O(threads + slabs of the allocator). */
SLAB_API void slab_stats_global(SlabAllocator* a, SlabGlobalStats* out);
/* O(threads + slabs of the allocator). */
SLAB_API void slab_stats_class(SlabAllocator* a, uint32_t size_class, SlabClassStats* out);
/* O(slabs of the allocator). A bad class or id gives a zeroed structure. */
SLAB_API void slab_stats_epoch(SlabAllocator* a, uint32_t size_class, EpochId epoch, SlabEpochStats* out);
/* O(threads). */
SLAB_API void slab_stats_refusals(SlabAllocator* a, SlabRefusals* out);

#ifdef __cplusplus
}
#endif
#endif
