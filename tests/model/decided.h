/*
 * decided.h - what the model has to say about each number of src/stats/metrics.def.
 *
 *   EXACT    the reference knows it
 *   TIED     by equations and bounds to other numbers and to the reference
 *   NOTHING  0 in every run of the model: what needs two threads at once or a system that refuses
 *   SHARED   0 but in shared mode
 *   SANE     of clocks and of the whole process: within wide bounds
 *
 * A number that has no place here fails the run, so that adding one means deciding what is true of it. Those that may
 * only grow (counters, histograms and sums) are found by their kind and held to it.
 */
#ifndef MODEL_DECIDED_H
#define MODEL_DECIDED_H

#include "stats/metrics.h"
#include "world.h"

enum verdict { UNDECIDED, EXACT, TIED, NOTHING, SHARED, SANE };

static const struct {
    TsiSection section;
    enum verdict verdict;
    const char* keys; /* a space before and behind each */
} decided[] = {
    {TSI_SECTION_DOCUMENT, EXACT, " version pid page_size epoch_count "},
    {TSI_SECTION_DOCUMENT, SANE, " timestamp_ns uptime_ns figures_ns phases_ns process_state allocator allocators "},
    {TSI_SECTION_DOCUMENT, TIED,
     " objects_allocated bytes_allocated objects_freed objects_released objects_escaped phases_opened phases_ended "
     "draining_objects draining_bytes "},
    {TSI_SECTION_DOCUMENT, NOTHING,
     " segment_publications segment_failures publication figures_age_ns phases_age_ns phases_left_out epochs_left_out "
     "labels_left_out changed_since "},

    {TSI_SECTION_GLOBAL, EXACT,
     " schema_version current_epoch active_epoch_count closing_epoch_count live_bytes live_objects open_phases "},
    {TSI_SECTION_GLOBAL, TIED,
     " total_slabs_allocated total_slabs_recycled net_slabs estimated_slab_rss_bytes total_slow_path_hits "
     "total_cache_overflows total_slow_cache_miss total_slow_epoch_closed total_madvise_calls total_madvise_bytes "
     "total_bitmap_free_attempts metadata_bytes committed_bytes reserved_bytes draining_phases "
     "warm_budget_bytes warm_bytes warm_stock_bytes warm_regretted_bytes quarantine_bytes "},
    {TSI_SECTION_GLOBAL, NOTHING,
     " total_madvise_failures total_bitmap_alloc_cas_retries total_bitmap_free_cas_retries "
     "total_current_partial_cas_failures total_current_partial_cas_attempts total_repairs repairs_full_bitmap "
     "repairs_list_mismatch repairs_other "},
    {TSI_SECTION_GLOBAL, SHARED, " total_bitmap_alloc_attempts "},
    {TSI_SECTION_GLOBAL, TIED, " limit_bytes limit_used_bytes limit_name "},
    {TSI_SECTION_GLOBAL, SANE,
     " rss_bytes_current limit_ns growth_bytes growth_ns growth_per_second max_bytes limit_left_bytes pace_10s_ns "
     "pace_100s_ns live_pace_10s live_pace_100s live_pace_ever committed_pace_10s committed_pace_100s "
     "committed_pace_ever "},

    {TSI_SECTION_REGISTRY, EXACT, " count max_labels "},

    {TSI_SECTION_CLASS, EXACT, " version class_index object_size live_bytes "},
    {TSI_SECTION_CLASS, TIED,
     " slow_path_hits new_slab_count list_move_partial_to_full list_move_full_to_partial current_partial_null "
     "current_partial_full empty_slab_recycled empty_slab_overflowed slow_path_cache_miss slow_path_epoch_closed "
     "madvise_calls madvise_bytes epoch_close_calls epoch_close_scanned_slabs epoch_close_recycled_slabs "
     "epoch_close_total_ns bitmap_free_attempts lock_fast_acquire lock_acquisitions committed_bytes empty_slabs_count "
     "lock_fast_acquire_by_label cache_size cache_capacity total_partial_slabs total_full_slabs recycle_rate_pct "
     "net_slabs "
     "estimated_rss_bytes slab_bytes "},
    {TSI_SECTION_CLASS, NOTHING,
     " madvise_failures current_partial_cas_attempts bitmap_alloc_cas_retries bitmap_free_cas_retries "
     "current_partial_cas_failures "
     "lock_contended scan_adapt_switches "
     "scan_mode "
     "avg_alloc_cas_retries_per_attempt avg_free_cas_retries_per_attempt current_partial_cas_failure_rate "
     "lock_contention_rate lock_contention_pct cas_retry_rate lock_contended_by_label "
     "bitmap_alloc_cas_retries_by_label "
     "bitmap_free_cas_retries_by_label cache_overflow_len "},
    {TSI_SECTION_CLASS, SHARED, " bitmap_alloc_attempts scan_adapt_checks "},

    {TSI_SECTION_EPOCH, EXACT, " epoch_id epoch_era state refcount label label_id alloc_count "},
    {TSI_SECTION_EPOCH, TIED,
     " total_partial_slabs total_full_slabs total_reclaimable_slabs reclaimable_slab_count estimated_rss_bytes "
     "rss_bytes open_since_ns rss_before_close rss_after_close rss_delta_mb madvise_bytes "},
    {TSI_SECTION_EPOCH, SANE, " age_sec "},

    {TSI_SECTION_SAMPLING, EXACT,
     " version enabled period repair_count avg_repair_cpu_ns avg_repair_wait_ns repair_wall_ns_sum repair_cpu_ns_sum "
     "repair_wait_ns_sum max_repair_wall_ns max_repair_cpu_ns max_repair_wait_ns repair_reason_full_bitmap "
     "repair_reason_list_mismatch repair_reason_other "},
    {TSI_SECTION_SAMPLING, TIED,
     " samples wall_ns_sum cpu_ns_sum wait_ns_sum max_wall_ns max_cpu_ns max_wait_ns avg_wall_ns avg_cpu_ns "
     "avg_wait_ns alloc_wall_ns dropped lock_samples lock_wait_ns_sum lock_wait_ns lock_wait_ns_max lock_hold_ns_sum "
     "lock_hold_ns lock_hold_ns_max "},

    {TSI_SECTION_REFUSAL, EXACT,
     " version stale_handle bad_handle double_free stale_free interior_pointer foreign_pointer size_mismatch bad_epoch "
     "closed_epoch bad_size domain_order domain_stale out_of_memory over_budget write_after_end "},
    {TSI_SECTION_REFUSAL, NOTHING, " late_double_free retired_slabs bad_environment "},

    {TSI_SECTION_PHASE, EXACT,
     " version epoch_id epoch_era label label_id state refcount objects_allocated bytes_allocated live_objects "
     "live_bytes budget_soft_bytes budget_hard_bytes "},
    {TSI_SECTION_PHASE, TIED,
     " open_since_ns age_ns draining_age_ns threads slabs empty_slabs committed_bytes draining_bytes peak_bytes "
     "purged_bytes rss_before_close rss_after_close "},

    {TSI_SECTION_LABEL, EXACT,
     " version label_id label phases_ended phases_open phases_draining objects_allocated bytes_allocated objects_freed "
     "bytes_freed objects_released bytes_released objects_escaped bytes_escaped live_objects live_bytes "
     "budget_soft_bytes budget_hard_bytes budget_refusals swallowed draining_phases draining_objects open_objects "
     "open_bytes "},
    {TSI_SECTION_LABEL, SANE,
     " growth_bytes growth_ns growth_per_second limit_bytes limit_used_bytes limit_ns expected_objects "
     "expected_bytes limit_left_bytes live_pace_10s live_pace_100s live_pace_ever committed_pace_10s "
     "committed_pace_100s committed_pace_ever "},
    {TSI_SECTION_LABEL, TIED,
     " phases_opened committed_bytes peak_bytes slow_path_hits refusals lock_fast_acquire budget_warnings "
     "closed_slabs pinned_slabs drainability duration_ns peak_bytes_hist alloc_samples "
     "alloc_wall_ns_sum alloc_cpu_ns_sum alloc_wait_ns_sum draining_bytes oldest_draining_ns draining_age_ns "
     "worst_eras worst_bytes "
     "worst_objects worst_ages_ns unexpected_phases unexpected_draining_phases unexpected_draining_objects "
     "unexpected_draining_bytes oldest_unexpected_ns outside_objects outside_bytes "},
    {TSI_SECTION_LABEL, NOTHING, " lock_contended cas_retries "},

    {TSI_SECTION_CLOSE, SANE,
     " closed_ns epoch_id epoch_era label objects_freed bytes_freed objects_released bytes_released objects_escaped "
     "bytes_escaped "
     "slabs_returned bytes_returned slabs_deferred bytes_madvised rss_before_close rss_after_close close_ns "},
};

enum { MOST_METRICS = 512 };
static enum verdict verdicts[MOST_METRICS]; /* by index in tsi_metrics; check_decided fills it */

static inline enum verdict verdict_on(const TsiMetric* m) {
    char word[80];
    enum verdict found = UNDECIDED;
    snprintf(word, sizeof word, " %s ", m->key);
    for (size_t i = 0; i < sizeof decided / sizeof *decided; i++)
        if (decided[i].section == m->section && strstr(decided[i].keys, word)) {
            if (found != UNDECIDED) return UNDECIDED; /* twice */
            found = decided[i].verdict;
        }
    return found;
}

/* Every number has one verdict, and every verdict a number. */
static inline void check_decided(void) {
    unsigned words = 0, bad = (unsigned)TSI_METRICS > MOST_METRICS;
    for (size_t i = 0; i < sizeof decided / sizeof *decided; i++)
        for (const char* at = decided[i].keys; at[1]; at++) words += *at == ' ';
    for (unsigned n = 0; n < TSI_METRICS && n < MOST_METRICS; n++) {
        verdicts[n] = verdict_on(&tsi_metrics[n]);
        if (verdicts[n] != UNDECIDED) continue;
        fprintf(stderr, "FAILED: decided.h has no place, or more than one, for %s of \"%s\"\n", tsi_metrics[n].key,
                tsi_sections[tsi_metrics[n].section].key);
        bad++;
    }
    if (words != TSI_METRICS) fprintf(stderr, "FAILED: decided.h names %u numbers, there are %u\n", words, TSI_METRICS);
    if (bad || words != TSI_METRICS) _Exit(1);
}

#endif
