// Written by scripts/rust-bindings.sh; do not edit. The C headers have the words.

pub type EpochId = u32;
pub type EpochLifecycleState = ::core::ffi::c_uint;
pub type EpochCloseMode = ::core::ffi::c_uint;
pub type SlabHandle = u64;
pub type SlabPurgePolicy = ::core::ffi::c_uint;
pub type SlabMisuse = ::core::ffi::c_uint;
pub type SlabError = ::core::ffi::c_uint;
pub type SlabMisuseFn = ::core::option::Option<
    unsafe extern "C" fn(
        a: *mut SlabAllocator,
        what: SlabMisuse,
        where_: *const ::core::ffi::c_void,
        ctx: *mut ::core::ffi::c_void,
    ),
>;
pub type SlabLeakFn = ::core::option::Option<
    unsafe extern "C" fn(
        a: *mut SlabAllocator,
        label: *const ::core::ffi::c_char,
        era: u64,
        objects: u64,
        bytes: u64,
        ctx: *mut ::core::ffi::c_void,
    ),
>;
pub type SlabBudgetFn = ::core::option::Option<
    unsafe extern "C" fn(a: *mut SlabAllocator, epoch: EpochId, bytes: u64, hard: bool, ctx: *mut ::core::ffi::c_void),
>;
pub type epoch_domain_t = epoch_domain;
pub type _bindgen_ty_1 = ::core::ffi::c_uint;
pub type SlabSegmentForm = ::core::ffi::c_uint;
pub type SlabSegmentType = ::core::ffi::c_uint;
pub type SlabSegmentKind = ::core::ffi::c_uint;
pub type SlabSegmentUnit = ::core::ffi::c_uint;
pub type SlabSegmentState = ::core::ffi::c_uint;
pub type SlabSegmentResult = ::core::ffi::c_uint;
pub type SlabProcessState = ::core::ffi::c_uint;
pub type _bindgen_ty_2 = ::core::ffi::c_uint;
#[repr(C)]
#[repr(align(16))]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabAllocator {
    pub opaque_: [u64; 4usize],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabOptions {
    pub struct_size: usize,
    pub ring_size: u32,
    pub purge_policy: u32,
    pub reserve_bytes: u64,
    pub warm_bytes: u64,
    pub slab_bytes: u32,
    pub prefault: u8,
    pub misuse_fatal: u8,
    pub leak_report: u8,
    pub huge_pages: u8,
    pub max_labels: u32,
    pub sampling_period: u32,
    pub max_bytes: u64,
    pub misuse_fn: SlabMisuseFn,
    pub misuse_ctx: *mut ::core::ffi::c_void,
    pub leak_fn: SlabLeakFn,
    pub leak_ctx: *mut ::core::ffi::c_void,
    pub numa_local: u8,
    pub segment: u8,
    pub shared: u8,
    pub bump: u8,
    pub by_malloc: u8,
    pub late_access: u8,
    pub escape_stacks: u8,
    pub reserved_: [u8; 1usize],
    pub profile_bytes: u64,
    pub warm_limit_bytes: u64,
    pub quiet: u8,
    pub decay_ms: u32,
    pub guard_period: u32,
    pub fill_freed: u8,
    pub random_order: u8,
    pub hardened: u8,
    pub guard_sampling: u32,
    pub quarantine_bytes: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct PerfCounters {
    pub slow_path_hits: u64,
    pub new_slab_count: u64,
    pub list_move_partial_to_full: u64,
    pub list_move_full_to_partial: u64,
    pub current_partial_null: u64,
    pub current_partial_full: u64,
    pub empty_slab_recycled: u64,
    pub empty_slab_overflowed: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct EpochReceipt {
    pub version: u32,
    pub epoch_id: EpochId,
    pub epoch_era: u64,
    pub label: [::core::ffi::c_char; 32usize],
    pub objects_allocated: u64,
    pub objects_freed: u64,
    pub objects_released: u64,
    pub objects_escaped: u64,
    pub bytes_allocated: u64,
    pub bytes_freed: u64,
    pub bytes_released: u64,
    pub bytes_escaped: u64,
    pub slabs_returned: u64,
    pub bytes_returned: u64,
    pub slabs_deferred: u64,
    pub bytes_deferred: u64,
    pub rss_before: u64,
    pub rss_after: u64,
    pub close_ns: u64,
    pub interrupts: u32,
    pub regions_returned: u32,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct epoch_domain {
    pub alloc: *mut SlabAllocator,
    pub epoch_id: EpochId,
    pub epoch_era: u64,
    pub refcount: u32,
    pub auto_close: bool,
    pub private_: [u64; 6usize],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabDomainOptions {
    pub struct_size: usize,
    pub label: *const ::core::ffi::c_char,
    pub flags: u32,
    pub reserved_: u32,
    pub soft_bytes: u64,
    pub hard_bytes: u64,
    pub budget_fn: SlabBudgetFn,
    pub budget_ctx: *mut ::core::ffi::c_void,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabDomainStats {
    pub struct_size: usize,
    pub epoch_id: EpochId,
    pub epoch_era: u64,
    pub live_objects: u64,
    pub live_bytes: u64,
    pub committed_bytes: u64,
    pub slabs: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct EpochLeakCandidate {
    pub class_index: u32,
    pub object_size: u32,
    pub epoch_id: EpochId,
    pub epoch_era: u64,
    pub label: [::core::ffi::c_char; 32usize],
    pub age_sec: u64,
    pub alloc_count: u64,
    pub estimated_rss_bytes: u64,
    pub partial_slab_count: u32,
    pub full_slab_count: u32,
    pub reclaimable_slab_count: u32,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct EpochLeakReport {
    pub version: u32,
    pub threshold_sec: u32,
    pub candidate_count: u32,
    pub top_count: u32,
    pub candidates: *mut EpochLeakCandidate,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlowPathAttribution {
    pub class_index: u32,
    pub object_size: u32,
    pub total_slow_path_hits: u64,
    pub cache_miss_count: u64,
    pub epoch_closed_count: u64,
    pub partial_null_count: u64,
    pub partial_full_count: u64,
    pub cache_miss_pct: f64,
    pub epoch_closed_pct: f64,
    pub partial_null_pct: f64,
    pub partial_full_pct: f64,
    pub recommendation: [::core::ffi::c_char; 128usize],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlowPathReport {
    pub version: u32,
    pub class_count: u32,
    pub classes: *mut SlowPathAttribution,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct EpochReclamation {
    pub class_index: u32,
    pub epoch_id: EpochId,
    pub epoch_era: u64,
    pub slabs_recycled: u64,
    pub bytes_madvised: u64,
    pub rss_before: u64,
    pub rss_after: u64,
    pub rss_delta: i64,
    pub label: [::core::ffi::c_char; 32usize],
    pub was_closed: bool,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct ReclamationReport {
    pub version: u32,
    pub total_madvise_calls: u64,
    pub total_madvise_bytes: u64,
    pub total_madvise_failures: u64,
    pub epoch_count: u32,
    pub epochs: *mut EpochReclamation,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabLiveObject {
    pub address: *mut ::core::ffi::c_void,
    pub usable_bytes: usize,
    pub class_index: u32,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabGateOptions {
    pub struct_size: usize,
    pub label: *const ::core::ffi::c_char,
    pub warm_up: u32,
    pub rounds: u32,
    pub objects: u64,
    pub bytes: u64,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabLaneHeap_ {
    pub unused_: [u32; 2usize],
    pub word: u64,
    pub key: u64,
    pub unused2_: [u64; 2usize],
    pub region: *mut SlabLaneRegion_,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabLaneRegion_ {
    pub unused_: u64,
    pub issued: u32,
    pub freed: u32,
    pub rel: u32,
    pub lim: u32,
    pub base: *mut u8,
    pub map: *mut u8,
    pub unused2_: [u64; 2usize],
    pub unused3_: u32,
    pub life: u8,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabLane {
    pub domain: *mut epoch_domain_t,
    pub phase_: u64,
    pub thread_: u64,
    pub thread_at_: i64,
    pub heap_: *mut SlabLaneHeap_,
    pub busy_: *mut u64,
    pub live_: u64,
    pub reserved_: u64,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabLaneGot {
    pub p: *mut ::core::ffi::c_void,
    pub heap_: *mut SlabLaneHeap_,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabRun {
    pub domain: *mut epoch_domain_t,
    pub at_: usize,
    pub end_: usize,
    pub map_: usize,
    pub life_: usize,
    pub gap_: usize,
    pub count_: u64,
    pub phase_: u64,
    pub thread_: u64,
    pub thread_at_: i64,
    pub region_: *mut ::core::ffi::c_void,
    pub got_: *mut ::core::ffi::c_void,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabSegmentTable {
    pub offset: u64,
    pub count: u32,
    pub stride: u32,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabSegmentHeader {
    pub magic: [::core::ffi::c_char; 8usize],
    pub endian: u32,
    pub major: u16,
    pub minor: u16,
    pub header_bytes: u32,
    pub reserved: u32,
    pub total_bytes: u64,
    pub pid: u64,
    pub start_time: u64,
    pub boot_id: [::core::ffi::c_char; 40usize],
    pub created_ns: u64,
    pub heartbeat_ns: u64,
    pub publications: u64,
    pub allocators_left_out: u64,
    pub scopes: SlabSegmentTable,
    pub metrics: SlabSegmentTable,
    pub slots: SlabSegmentTable,
    pub zero: [u8; 88usize],
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabSegmentScope {
    pub name: [::core::ffi::c_char; 32usize],
    pub key: [::core::ffi::c_char; 32usize],
    pub labels: [::core::ffi::c_char; 48usize],
    pub form: u32,
    pub row_bytes: u32,
    pub capacity: u32,
    pub reserved: u32,
    pub offset: u64,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabSegmentMetric {
    pub name: [::core::ffi::c_char; 64usize],
    pub family: [::core::ffi::c_char; 96usize],
    pub help: [::core::ffi::c_char; 160usize],
    pub scope: u32,
    pub type_: u32,
    pub kind: u32,
    pub unit: u32,
    pub offset: u32,
    pub bytes: u32,
    pub reserved: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabSegmentSlot {
    pub state: u64,
    pub serial: u64,
    pub sequence: u64,
    pub published_ns: u64,
    pub since_ns: u64,
    pub ended_ns: u64,
    pub cost_ns: u64,
    pub buffer_bytes: u64,
    pub buffer: [u64; 2usize],
    pub changed: u64,
    pub reserved: [u64; 5usize],
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabSegmentRows {
    pub count: u64,
    pub left_out: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabSegmentBuffer {
    pub number: u64,
    pub serial: u64,
    pub begun_ns: u64,
    pub reserved: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabProfileBuffer {
    pub number: u64,
    pub serial: u64,
    pub begun_ns: u64,
    pub bytes: u64,
    pub period: u64,
    pub samples: u64,
    pub lost_stacks: u64,
    pub lost_live: u64,
    pub stacks: u64,
    pub live: u64,
    pub makers: u64,
    pub escapes: u32,
    pub escape_stacks: u32,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabProfileLive {
    pub bytes: u64,
    pub era: u64,
    pub stack: u32,
    pub size_class: u16,
    pub escaped: u16,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabProfileStack {
    pub label: [::core::ffi::c_char; 32usize],
    pub objects: f64,
    pub bytes: f64,
    pub depth: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabProfileMaker {
    pub stack: u64,
    pub label: [::core::ffi::c_char; 32usize],
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabProfileEscape {
    pub stack: u64,
    pub objects: f64,
    pub bytes: f64,
}
#[repr(C)]
#[derive(Debug)]
pub struct SlabSegment {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabSegmentView {
    pub slot: u32,
    pub state: u32,
    pub serial: u64,
    pub number: u64,
    pub begun_ns: u64,
    pub published_ns: u64,
    pub cost_ns: u64,
    pub changed: bool,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabSegmentValue {
    pub u: u64,
    pub f: f64,
    pub text: *const ::core::ffi::c_char,
    pub counts: *const u64,
    pub entries: u32,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabGlobalStats {
    pub version: u32,
    pub current_epoch: u32,
    pub active_epoch_count: u32,
    pub closing_epoch_count: u32,
    pub total_slabs_allocated: u64,
    pub total_slabs_recycled: u64,
    pub net_slabs: u64,
    pub rss_bytes_current: u64,
    pub estimated_slab_rss_bytes: u64,
    pub total_slow_path_hits: u64,
    pub total_cache_overflows: u64,
    pub total_slow_cache_miss: u64,
    pub total_slow_epoch_closed: u64,
    pub total_madvise_calls: u64,
    pub total_madvise_bytes: u64,
    pub total_madvise_failures: u64,
    pub total_bitmap_alloc_cas_retries: u64,
    pub total_bitmap_free_cas_retries: u64,
    pub total_current_partial_cas_failures: u64,
    pub total_bitmap_alloc_attempts: u64,
    pub total_bitmap_free_attempts: u64,
    pub total_current_partial_cas_attempts: u64,
    pub metadata_bytes: u64,
    pub committed_bytes: u64,
    pub live_bytes: u64,
    pub live_objects: u64,
    pub reserved_bytes: u64,
    pub open_phases: u64,
    pub draining_phases: u64,
    pub total_repairs: u64,
    pub repairs_full_bitmap: u64,
    pub repairs_list_mismatch: u64,
    pub repairs_other: u64,
    pub warm_budget_bytes: u64,
    pub warm_bytes: u64,
    pub warm_stock_bytes: u64,
    pub warm_regretted_bytes: u64,
    pub limit_bytes: u64,
    pub limit_used_bytes: u64,
    pub limit_ns: u64,
    pub limit_name: [::core::ffi::c_char; 32usize],
    pub growth_bytes: u64,
    pub growth_ns: u64,
    pub growth_per_second: f64,
    pub max_bytes: u64,
    pub pace_10s_ns: u64,
    pub pace_100s_ns: u64,
    pub live_pace_10s: f64,
    pub live_pace_100s: f64,
    pub live_pace_ever: f64,
    pub committed_pace_10s: f64,
    pub committed_pace_100s: f64,
    pub committed_pace_ever: f64,
    pub quarantine_bytes: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabClassStats {
    pub version: u32,
    pub class_index: u32,
    pub object_size: u32,
    pub slow_path_hits: u64,
    pub new_slab_count: u64,
    pub list_move_partial_to_full: u64,
    pub list_move_full_to_partial: u64,
    pub current_partial_null: u64,
    pub current_partial_full: u64,
    pub empty_slab_recycled: u64,
    pub empty_slab_overflowed: u64,
    pub slow_path_cache_miss: u64,
    pub slow_path_epoch_closed: u64,
    pub madvise_calls: u64,
    pub madvise_bytes: u64,
    pub madvise_failures: u64,
    pub epoch_close_calls: u64,
    pub epoch_close_scanned_slabs: u64,
    pub epoch_close_recycled_slabs: u64,
    pub epoch_close_total_ns: u64,
    pub bitmap_alloc_cas_retries: u64,
    pub bitmap_free_cas_retries: u64,
    pub current_partial_cas_failures: u64,
    pub bitmap_alloc_attempts: u64,
    pub bitmap_free_attempts: u64,
    pub current_partial_cas_attempts: u64,
    pub lock_fast_acquire: u64,
    pub lock_contended: u64,
    pub scan_adapt_checks: u32,
    pub scan_adapt_switches: u32,
    pub scan_mode: u32,
    pub committed_bytes: u64,
    pub live_bytes: u64,
    pub empty_slabs_count: u64,
    pub avg_alloc_cas_retries_per_attempt: f64,
    pub avg_free_cas_retries_per_attempt: f64,
    pub current_partial_cas_failure_rate: f64,
    pub lock_contention_rate: f64,
    pub lock_fast_acquire_by_label: [u64; 16usize],
    pub lock_contended_by_label: [u64; 16usize],
    pub bitmap_alloc_cas_retries_by_label: [u64; 16usize],
    pub bitmap_free_cas_retries_by_label: [u64; 16usize],
    pub cache_size: u32,
    pub cache_capacity: u32,
    pub cache_overflow_len: u32,
    pub total_partial_slabs: u32,
    pub total_full_slabs: u32,
    pub recycle_rate_pct: f64,
    pub net_slabs: u64,
    pub estimated_rss_bytes: u64,
    pub slab_bytes: u64,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabEpochStats {
    pub version: u32,
    pub class_index: u32,
    pub object_size: u32,
    pub epoch_id: EpochId,
    pub epoch_era: u64,
    pub state: EpochLifecycleState,
    pub open_since_ns: u64,
    pub alloc_count: u64,
    pub label: [::core::ffi::c_char; 32usize],
    pub rss_before_close: u64,
    pub rss_after_close: u64,
    pub partial_slab_count: u32,
    pub full_slab_count: u32,
    pub estimated_rss_bytes: u64,
    pub reclaimable_slab_count: u32,
    pub reclaimable_bytes: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct SlabRefusals {
    pub version: u32,
    pub stale_handle: u64,
    pub bad_handle: u64,
    pub double_free: u64,
    pub stale_free: u64,
    pub interior_pointer: u64,
    pub foreign_pointer: u64,
    pub size_mismatch: u64,
    pub bad_epoch: u64,
    pub closed_epoch: u64,
    pub bad_size: u64,
    pub domain_order: u64,
    pub domain_stale: u64,
    pub late_double_free: u64,
    pub out_of_memory: u64,
    pub retired_slabs: u64,
    pub bad_environment: u64,
    pub over_budget: u64,
    pub write_after_end: u64,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabLabelStats {
    pub version: u32,
    pub label_id: u32,
    pub label: [::core::ffi::c_char; 32usize],
    pub phases_opened: u64,
    pub phases_ended: u64,
    pub phases_open: u64,
    pub phases_draining: u64,
    pub objects_allocated: u64,
    pub bytes_allocated: u64,
    pub objects_freed: u64,
    pub bytes_freed: u64,
    pub objects_released: u64,
    pub bytes_released: u64,
    pub objects_escaped: u64,
    pub bytes_escaped: u64,
    pub live_objects: u64,
    pub live_bytes: u64,
    pub committed_bytes: u64,
    pub peak_bytes: u64,
    pub slow_path_hits: u64,
    pub refusals: u64,
    pub alloc_samples: u64,
    pub alloc_wall_ns_sum: u64,
    pub alloc_cpu_ns_sum: u64,
    pub alloc_wait_ns_sum: u64,
    pub lock_fast_acquire: u64,
    pub lock_contended: u64,
    pub cas_retries: u64,
    pub budget_soft_bytes: u64,
    pub budget_hard_bytes: u64,
    pub budget_warnings: u64,
    pub budget_refusals: u64,
    pub closed_slabs: u64,
    pub pinned_slabs: u64,
    pub drainability: f64,
    pub swallowed: u64,
    pub duration_ns: [u64; 48usize],
    pub peak_bytes_hist: [u64; 48usize],
    pub draining_phases: u64,
    pub draining_objects: u64,
    pub draining_bytes: u64,
    pub oldest_draining_ns: u64,
    pub draining_age_ns: [u64; 48usize],
    pub worst_eras: [u64; 3usize],
    pub worst_bytes: [u64; 3usize],
    pub worst_objects: [u64; 3usize],
    pub worst_ages_ns: [u64; 3usize],
    pub open_objects: u64,
    pub open_bytes: u64,
    pub outside_objects: u64,
    pub outside_bytes: u64,
    pub growth_bytes: u64,
    pub growth_ns: u64,
    pub growth_per_second: f64,
    pub limit_bytes: u64,
    pub limit_used_bytes: u64,
    pub limit_ns: u64,
    pub expected_objects: u64,
    pub expected_bytes: u64,
    pub unexpected_phases: u64,
    pub unexpected_draining_phases: u64,
    pub unexpected_draining_objects: u64,
    pub unexpected_draining_bytes: u64,
    pub oldest_unexpected_ns: u64,
    pub live_pace_10s: f64,
    pub live_pace_100s: f64,
    pub live_pace_ever: f64,
    pub committed_pace_10s: f64,
    pub committed_pace_100s: f64,
    pub committed_pace_ever: f64,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabPhaseStats {
    pub version: u32,
    pub epoch_id: EpochId,
    pub epoch_era: u64,
    pub label: [::core::ffi::c_char; 32usize],
    pub label_id: u32,
    pub state: EpochLifecycleState,
    pub open_since_ns: u64,
    pub age_ns: u64,
    pub refcount: u64,
    pub threads: u32,
    pub objects_allocated: u64,
    pub bytes_allocated: u64,
    pub live_objects: u64,
    pub live_bytes: u64,
    pub slabs: u64,
    pub empty_slabs: u64,
    pub committed_bytes: u64,
    pub peak_bytes: u64,
    pub purged_bytes: u64,
    pub budget_soft_bytes: u64,
    pub budget_hard_bytes: u64,
    pub rss_before_close: u64,
    pub rss_after_close: u64,
}
#[repr(C)]
#[derive(Debug, Default, Copy, Clone)]
pub struct ThreadStats {
    pub alloc_samples: u64,
    pub alloc_wall_ns_sum: u64,
    pub alloc_cpu_ns_sum: u64,
    pub alloc_wait_ns_sum: u64,
    pub alloc_wall_ns_max: u64,
    pub alloc_cpu_ns_max: u64,
    pub alloc_wait_ns_max: u64,
    pub repair_count: u64,
    pub repair_wall_ns_sum: u64,
    pub repair_cpu_ns_sum: u64,
    pub repair_wait_ns_sum: u64,
    pub repair_wall_ns_max: u64,
    pub repair_cpu_ns_max: u64,
    pub repair_wait_ns_max: u64,
    pub repair_reason_full_bitmap: u64,
    pub repair_reason_list_mismatch: u64,
    pub repair_reason_other: u64,
}
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct SlabSamplingStats {
    pub version: u32,
    pub period: u32,
    pub sum: ThreadStats,
    pub dropped: u64,
    pub lock_samples: u64,
    pub lock_wait_ns_sum: u64,
    pub lock_wait_ns_max: u64,
    pub lock_hold_ns_sum: u64,
    pub lock_hold_ns_max: u64,
    pub alloc_wall_ns: [u64; 96usize],
    pub lock_wait_ns: [u64; 96usize],
    pub lock_hold_ns: [u64; 96usize],
}
pub const TSLAB_VERSION_MAJOR: u32 = 0;
pub const TSLAB_VERSION_MINOR: u32 = 3;
pub const TSLAB_VERSION_PATCH: u32 = 0;
pub const SLAB_PAGE_SIZE: u32 = 4096;
pub const SLAB_FIXED_CLASSES: u32 = 8;
pub const SLAB_DOMAIN_KEEP: u32 = 1;
pub const SLAB_DOMAIN_OWNER_ONLY: u32 = 2;
pub const SLAB_DOMAIN_UNTIMED: u32 = 4;
pub const SLAB_DIAGNOSTICS_VERSION: u32 = 1;
pub const SLAB_LANE_VERSION: u32 = 1;
pub const SLAB_LANE_INLINE: u32 = 1;
pub const SLAB_SEGMENT_MAGIC: &[u8; 9] = b"TSLABSEG\0";
pub const SLAB_SEGMENT_ENDIAN: u32 = 16909060;
pub const SLAB_SEGMENT_MAJOR: u32 = 1;
pub const SLAB_SEGMENT_MINOR: u32 = 3;
pub const SLAB_PROFILE_MAGIC: &[u8; 9] = b"TSLABPRF\0";
pub const SLAB_STATS_VERSION: u32 = 3;
pub const EPOCH_ACTIVE: EpochLifecycleState = 0;
pub const EPOCH_CLOSING: EpochLifecycleState = 1;
pub const EPOCH_DRAIN: EpochCloseMode = 0;
pub const EPOCH_RELEASE: EpochCloseMode = 1;
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabAllocator"][::core::mem::size_of::<SlabAllocator>() - 32usize];
    ["Alignment of SlabAllocator"][::core::mem::align_of::<SlabAllocator>() - 16usize];
    ["Offset of field: SlabAllocator::opaque_"][::core::mem::offset_of!(SlabAllocator, opaque_) - 0usize];
};
pub const SLAB_PURGE_DONTNEED: SlabPurgePolicy = 0;
pub const SLAB_PURGE_FREE: SlabPurgePolicy = 1;
pub const SLAB_PURGE_NEVER: SlabPurgePolicy = 2;
pub const SLAB_MISUSE_STALE_HANDLE: SlabMisuse = 0;
pub const SLAB_MISUSE_BAD_HANDLE: SlabMisuse = 1;
pub const SLAB_MISUSE_DOUBLE_FREE: SlabMisuse = 2;
pub const SLAB_MISUSE_STALE_FREE: SlabMisuse = 3;
pub const SLAB_MISUSE_INTERIOR_POINTER: SlabMisuse = 4;
pub const SLAB_MISUSE_FOREIGN_POINTER: SlabMisuse = 5;
pub const SLAB_MISUSE_SIZE_MISMATCH: SlabMisuse = 6;
pub const SLAB_MISUSE_BAD_EPOCH: SlabMisuse = 7;
pub const SLAB_MISUSE_CLOSED_EPOCH: SlabMisuse = 8;
pub const SLAB_MISUSE_BAD_SIZE: SlabMisuse = 9;
pub const SLAB_MISUSE_DOMAIN_ORDER: SlabMisuse = 10;
pub const SLAB_MISUSE_DOMAIN_STALE: SlabMisuse = 11;
pub const SLAB_MISUSE_WRITE_AFTER_END: SlabMisuse = 12;
pub const SLAB_MISUSE_COUNT: SlabMisuse = 13;
pub const SLAB_ERROR_NONE: SlabError = 0;
pub const SLAB_ERROR_NO_MEMORY: SlabError = 1;
pub const SLAB_ERROR_BUDGET: SlabError = 2;
pub const SLAB_ERROR_ARGUMENT: SlabError = 3;
pub const SLAB_ERROR_SIZE: SlabError = 4;
pub const SLAB_ERROR_OBJECT: SlabError = 5;
pub const SLAB_ERROR_EPOCH: SlabError = 6;
pub const SLAB_ERROR_ENDED: SlabError = 7;
pub const SLAB_ERROR_BUSY: SlabError = 8;
pub const SLAB_ERROR_ORDER: SlabError = 9;
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabOptions"][::core::mem::size_of::<SlabOptions>() - 144usize];
    ["Alignment of SlabOptions"][::core::mem::align_of::<SlabOptions>() - 8usize];
    ["Offset of field: SlabOptions::struct_size"][::core::mem::offset_of!(SlabOptions, struct_size) - 0usize];
    ["Offset of field: SlabOptions::ring_size"][::core::mem::offset_of!(SlabOptions, ring_size) - 8usize];
    ["Offset of field: SlabOptions::purge_policy"][::core::mem::offset_of!(SlabOptions, purge_policy) - 12usize];
    ["Offset of field: SlabOptions::reserve_bytes"][::core::mem::offset_of!(SlabOptions, reserve_bytes) - 16usize];
    ["Offset of field: SlabOptions::warm_bytes"][::core::mem::offset_of!(SlabOptions, warm_bytes) - 24usize];
    ["Offset of field: SlabOptions::slab_bytes"][::core::mem::offset_of!(SlabOptions, slab_bytes) - 32usize];
    ["Offset of field: SlabOptions::prefault"][::core::mem::offset_of!(SlabOptions, prefault) - 36usize];
    ["Offset of field: SlabOptions::misuse_fatal"][::core::mem::offset_of!(SlabOptions, misuse_fatal) - 37usize];
    ["Offset of field: SlabOptions::leak_report"][::core::mem::offset_of!(SlabOptions, leak_report) - 38usize];
    ["Offset of field: SlabOptions::huge_pages"][::core::mem::offset_of!(SlabOptions, huge_pages) - 39usize];
    ["Offset of field: SlabOptions::max_labels"][::core::mem::offset_of!(SlabOptions, max_labels) - 40usize];
    ["Offset of field: SlabOptions::sampling_period"][::core::mem::offset_of!(SlabOptions, sampling_period) - 44usize];
    ["Offset of field: SlabOptions::max_bytes"][::core::mem::offset_of!(SlabOptions, max_bytes) - 48usize];
    ["Offset of field: SlabOptions::misuse_fn"][::core::mem::offset_of!(SlabOptions, misuse_fn) - 56usize];
    ["Offset of field: SlabOptions::misuse_ctx"][::core::mem::offset_of!(SlabOptions, misuse_ctx) - 64usize];
    ["Offset of field: SlabOptions::leak_fn"][::core::mem::offset_of!(SlabOptions, leak_fn) - 72usize];
    ["Offset of field: SlabOptions::leak_ctx"][::core::mem::offset_of!(SlabOptions, leak_ctx) - 80usize];
    ["Offset of field: SlabOptions::numa_local"][::core::mem::offset_of!(SlabOptions, numa_local) - 88usize];
    ["Offset of field: SlabOptions::segment"][::core::mem::offset_of!(SlabOptions, segment) - 89usize];
    ["Offset of field: SlabOptions::shared"][::core::mem::offset_of!(SlabOptions, shared) - 90usize];
    ["Offset of field: SlabOptions::bump"][::core::mem::offset_of!(SlabOptions, bump) - 91usize];
    ["Offset of field: SlabOptions::by_malloc"][::core::mem::offset_of!(SlabOptions, by_malloc) - 92usize];
    ["Offset of field: SlabOptions::late_access"][::core::mem::offset_of!(SlabOptions, late_access) - 93usize];
    ["Offset of field: SlabOptions::escape_stacks"][::core::mem::offset_of!(SlabOptions, escape_stacks) - 94usize];
    ["Offset of field: SlabOptions::reserved_"][::core::mem::offset_of!(SlabOptions, reserved_) - 95usize];
    ["Offset of field: SlabOptions::profile_bytes"][::core::mem::offset_of!(SlabOptions, profile_bytes) - 96usize];
    ["Offset of field: SlabOptions::warm_limit_bytes"]
        [::core::mem::offset_of!(SlabOptions, warm_limit_bytes) - 104usize];
    ["Offset of field: SlabOptions::quiet"][::core::mem::offset_of!(SlabOptions, quiet) - 112usize];
    ["Offset of field: SlabOptions::decay_ms"][::core::mem::offset_of!(SlabOptions, decay_ms) - 116usize];
    ["Offset of field: SlabOptions::guard_period"][::core::mem::offset_of!(SlabOptions, guard_period) - 120usize];
    ["Offset of field: SlabOptions::fill_freed"][::core::mem::offset_of!(SlabOptions, fill_freed) - 124usize];
    ["Offset of field: SlabOptions::random_order"][::core::mem::offset_of!(SlabOptions, random_order) - 125usize];
    ["Offset of field: SlabOptions::hardened"][::core::mem::offset_of!(SlabOptions, hardened) - 126usize];
    ["Offset of field: SlabOptions::guard_sampling"][::core::mem::offset_of!(SlabOptions, guard_sampling) - 128usize];
    ["Offset of field: SlabOptions::quarantine_bytes"]
        [::core::mem::offset_of!(SlabOptions, quarantine_bytes) - 136usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of PerfCounters"][::core::mem::size_of::<PerfCounters>() - 64usize];
    ["Alignment of PerfCounters"][::core::mem::align_of::<PerfCounters>() - 8usize];
    ["Offset of field: PerfCounters::slow_path_hits"][::core::mem::offset_of!(PerfCounters, slow_path_hits) - 0usize];
    ["Offset of field: PerfCounters::new_slab_count"][::core::mem::offset_of!(PerfCounters, new_slab_count) - 8usize];
    ["Offset of field: PerfCounters::list_move_partial_to_full"]
        [::core::mem::offset_of!(PerfCounters, list_move_partial_to_full) - 16usize];
    ["Offset of field: PerfCounters::list_move_full_to_partial"]
        [::core::mem::offset_of!(PerfCounters, list_move_full_to_partial) - 24usize];
    ["Offset of field: PerfCounters::current_partial_null"]
        [::core::mem::offset_of!(PerfCounters, current_partial_null) - 32usize];
    ["Offset of field: PerfCounters::current_partial_full"]
        [::core::mem::offset_of!(PerfCounters, current_partial_full) - 40usize];
    ["Offset of field: PerfCounters::empty_slab_recycled"]
        [::core::mem::offset_of!(PerfCounters, empty_slab_recycled) - 48usize];
    ["Offset of field: PerfCounters::empty_slab_overflowed"]
        [::core::mem::offset_of!(PerfCounters, empty_slab_overflowed) - 56usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of EpochReceipt"][::core::mem::size_of::<EpochReceipt>() - 176usize];
    ["Alignment of EpochReceipt"][::core::mem::align_of::<EpochReceipt>() - 8usize];
    ["Offset of field: EpochReceipt::version"][::core::mem::offset_of!(EpochReceipt, version) - 0usize];
    ["Offset of field: EpochReceipt::epoch_id"][::core::mem::offset_of!(EpochReceipt, epoch_id) - 4usize];
    ["Offset of field: EpochReceipt::epoch_era"][::core::mem::offset_of!(EpochReceipt, epoch_era) - 8usize];
    ["Offset of field: EpochReceipt::label"][::core::mem::offset_of!(EpochReceipt, label) - 16usize];
    ["Offset of field: EpochReceipt::objects_allocated"]
        [::core::mem::offset_of!(EpochReceipt, objects_allocated) - 48usize];
    ["Offset of field: EpochReceipt::objects_freed"][::core::mem::offset_of!(EpochReceipt, objects_freed) - 56usize];
    ["Offset of field: EpochReceipt::objects_released"]
        [::core::mem::offset_of!(EpochReceipt, objects_released) - 64usize];
    ["Offset of field: EpochReceipt::objects_escaped"]
        [::core::mem::offset_of!(EpochReceipt, objects_escaped) - 72usize];
    ["Offset of field: EpochReceipt::bytes_allocated"]
        [::core::mem::offset_of!(EpochReceipt, bytes_allocated) - 80usize];
    ["Offset of field: EpochReceipt::bytes_freed"][::core::mem::offset_of!(EpochReceipt, bytes_freed) - 88usize];
    ["Offset of field: EpochReceipt::bytes_released"][::core::mem::offset_of!(EpochReceipt, bytes_released) - 96usize];
    ["Offset of field: EpochReceipt::bytes_escaped"][::core::mem::offset_of!(EpochReceipt, bytes_escaped) - 104usize];
    ["Offset of field: EpochReceipt::slabs_returned"][::core::mem::offset_of!(EpochReceipt, slabs_returned) - 112usize];
    ["Offset of field: EpochReceipt::bytes_returned"][::core::mem::offset_of!(EpochReceipt, bytes_returned) - 120usize];
    ["Offset of field: EpochReceipt::slabs_deferred"][::core::mem::offset_of!(EpochReceipt, slabs_deferred) - 128usize];
    ["Offset of field: EpochReceipt::bytes_deferred"][::core::mem::offset_of!(EpochReceipt, bytes_deferred) - 136usize];
    ["Offset of field: EpochReceipt::rss_before"][::core::mem::offset_of!(EpochReceipt, rss_before) - 144usize];
    ["Offset of field: EpochReceipt::rss_after"][::core::mem::offset_of!(EpochReceipt, rss_after) - 152usize];
    ["Offset of field: EpochReceipt::close_ns"][::core::mem::offset_of!(EpochReceipt, close_ns) - 160usize];
    ["Offset of field: EpochReceipt::interrupts"][::core::mem::offset_of!(EpochReceipt, interrupts) - 168usize];
    ["Offset of field: EpochReceipt::regions_returned"]
        [::core::mem::offset_of!(EpochReceipt, regions_returned) - 172usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of epoch_domain"][::core::mem::size_of::<epoch_domain>() - 80usize];
    ["Alignment of epoch_domain"][::core::mem::align_of::<epoch_domain>() - 8usize];
    ["Offset of field: epoch_domain::alloc"][::core::mem::offset_of!(epoch_domain, alloc) - 0usize];
    ["Offset of field: epoch_domain::epoch_id"][::core::mem::offset_of!(epoch_domain, epoch_id) - 8usize];
    ["Offset of field: epoch_domain::epoch_era"][::core::mem::offset_of!(epoch_domain, epoch_era) - 16usize];
    ["Offset of field: epoch_domain::refcount"][::core::mem::offset_of!(epoch_domain, refcount) - 24usize];
    ["Offset of field: epoch_domain::auto_close"][::core::mem::offset_of!(epoch_domain, auto_close) - 28usize];
    ["Offset of field: epoch_domain::private_"][::core::mem::offset_of!(epoch_domain, private_) - 32usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabDomainOptions"][::core::mem::size_of::<SlabDomainOptions>() - 56usize];
    ["Alignment of SlabDomainOptions"][::core::mem::align_of::<SlabDomainOptions>() - 8usize];
    ["Offset of field: SlabDomainOptions::struct_size"]
        [::core::mem::offset_of!(SlabDomainOptions, struct_size) - 0usize];
    ["Offset of field: SlabDomainOptions::label"][::core::mem::offset_of!(SlabDomainOptions, label) - 8usize];
    ["Offset of field: SlabDomainOptions::flags"][::core::mem::offset_of!(SlabDomainOptions, flags) - 16usize];
    ["Offset of field: SlabDomainOptions::reserved_"][::core::mem::offset_of!(SlabDomainOptions, reserved_) - 20usize];
    ["Offset of field: SlabDomainOptions::soft_bytes"]
        [::core::mem::offset_of!(SlabDomainOptions, soft_bytes) - 24usize];
    ["Offset of field: SlabDomainOptions::hard_bytes"]
        [::core::mem::offset_of!(SlabDomainOptions, hard_bytes) - 32usize];
    ["Offset of field: SlabDomainOptions::budget_fn"][::core::mem::offset_of!(SlabDomainOptions, budget_fn) - 40usize];
    ["Offset of field: SlabDomainOptions::budget_ctx"]
        [::core::mem::offset_of!(SlabDomainOptions, budget_ctx) - 48usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabDomainStats"][::core::mem::size_of::<SlabDomainStats>() - 56usize];
    ["Alignment of SlabDomainStats"][::core::mem::align_of::<SlabDomainStats>() - 8usize];
    ["Offset of field: SlabDomainStats::struct_size"][::core::mem::offset_of!(SlabDomainStats, struct_size) - 0usize];
    ["Offset of field: SlabDomainStats::epoch_id"][::core::mem::offset_of!(SlabDomainStats, epoch_id) - 8usize];
    ["Offset of field: SlabDomainStats::epoch_era"][::core::mem::offset_of!(SlabDomainStats, epoch_era) - 16usize];
    ["Offset of field: SlabDomainStats::live_objects"]
        [::core::mem::offset_of!(SlabDomainStats, live_objects) - 24usize];
    ["Offset of field: SlabDomainStats::live_bytes"][::core::mem::offset_of!(SlabDomainStats, live_bytes) - 32usize];
    ["Offset of field: SlabDomainStats::committed_bytes"]
        [::core::mem::offset_of!(SlabDomainStats, committed_bytes) - 40usize];
    ["Offset of field: SlabDomainStats::slabs"][::core::mem::offset_of!(SlabDomainStats, slabs) - 48usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of EpochLeakCandidate"][::core::mem::size_of::<EpochLeakCandidate>() - 96usize];
    ["Alignment of EpochLeakCandidate"][::core::mem::align_of::<EpochLeakCandidate>() - 8usize];
    ["Offset of field: EpochLeakCandidate::class_index"]
        [::core::mem::offset_of!(EpochLeakCandidate, class_index) - 0usize];
    ["Offset of field: EpochLeakCandidate::object_size"]
        [::core::mem::offset_of!(EpochLeakCandidate, object_size) - 4usize];
    ["Offset of field: EpochLeakCandidate::epoch_id"][::core::mem::offset_of!(EpochLeakCandidate, epoch_id) - 8usize];
    ["Offset of field: EpochLeakCandidate::epoch_era"]
        [::core::mem::offset_of!(EpochLeakCandidate, epoch_era) - 16usize];
    ["Offset of field: EpochLeakCandidate::label"][::core::mem::offset_of!(EpochLeakCandidate, label) - 24usize];
    ["Offset of field: EpochLeakCandidate::age_sec"][::core::mem::offset_of!(EpochLeakCandidate, age_sec) - 56usize];
    ["Offset of field: EpochLeakCandidate::alloc_count"]
        [::core::mem::offset_of!(EpochLeakCandidate, alloc_count) - 64usize];
    ["Offset of field: EpochLeakCandidate::estimated_rss_bytes"]
        [::core::mem::offset_of!(EpochLeakCandidate, estimated_rss_bytes) - 72usize];
    ["Offset of field: EpochLeakCandidate::partial_slab_count"]
        [::core::mem::offset_of!(EpochLeakCandidate, partial_slab_count) - 80usize];
    ["Offset of field: EpochLeakCandidate::full_slab_count"]
        [::core::mem::offset_of!(EpochLeakCandidate, full_slab_count) - 84usize];
    ["Offset of field: EpochLeakCandidate::reclaimable_slab_count"]
        [::core::mem::offset_of!(EpochLeakCandidate, reclaimable_slab_count) - 88usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of EpochLeakReport"][::core::mem::size_of::<EpochLeakReport>() - 24usize];
    ["Alignment of EpochLeakReport"][::core::mem::align_of::<EpochLeakReport>() - 8usize];
    ["Offset of field: EpochLeakReport::version"][::core::mem::offset_of!(EpochLeakReport, version) - 0usize];
    ["Offset of field: EpochLeakReport::threshold_sec"]
        [::core::mem::offset_of!(EpochLeakReport, threshold_sec) - 4usize];
    ["Offset of field: EpochLeakReport::candidate_count"]
        [::core::mem::offset_of!(EpochLeakReport, candidate_count) - 8usize];
    ["Offset of field: EpochLeakReport::top_count"][::core::mem::offset_of!(EpochLeakReport, top_count) - 12usize];
    ["Offset of field: EpochLeakReport::candidates"][::core::mem::offset_of!(EpochLeakReport, candidates) - 16usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlowPathAttribution"][::core::mem::size_of::<SlowPathAttribution>() - 208usize];
    ["Alignment of SlowPathAttribution"][::core::mem::align_of::<SlowPathAttribution>() - 8usize];
    ["Offset of field: SlowPathAttribution::class_index"]
        [::core::mem::offset_of!(SlowPathAttribution, class_index) - 0usize];
    ["Offset of field: SlowPathAttribution::object_size"]
        [::core::mem::offset_of!(SlowPathAttribution, object_size) - 4usize];
    ["Offset of field: SlowPathAttribution::total_slow_path_hits"]
        [::core::mem::offset_of!(SlowPathAttribution, total_slow_path_hits) - 8usize];
    ["Offset of field: SlowPathAttribution::cache_miss_count"]
        [::core::mem::offset_of!(SlowPathAttribution, cache_miss_count) - 16usize];
    ["Offset of field: SlowPathAttribution::epoch_closed_count"]
        [::core::mem::offset_of!(SlowPathAttribution, epoch_closed_count) - 24usize];
    ["Offset of field: SlowPathAttribution::partial_null_count"]
        [::core::mem::offset_of!(SlowPathAttribution, partial_null_count) - 32usize];
    ["Offset of field: SlowPathAttribution::partial_full_count"]
        [::core::mem::offset_of!(SlowPathAttribution, partial_full_count) - 40usize];
    ["Offset of field: SlowPathAttribution::cache_miss_pct"]
        [::core::mem::offset_of!(SlowPathAttribution, cache_miss_pct) - 48usize];
    ["Offset of field: SlowPathAttribution::epoch_closed_pct"]
        [::core::mem::offset_of!(SlowPathAttribution, epoch_closed_pct) - 56usize];
    ["Offset of field: SlowPathAttribution::partial_null_pct"]
        [::core::mem::offset_of!(SlowPathAttribution, partial_null_pct) - 64usize];
    ["Offset of field: SlowPathAttribution::partial_full_pct"]
        [::core::mem::offset_of!(SlowPathAttribution, partial_full_pct) - 72usize];
    ["Offset of field: SlowPathAttribution::recommendation"]
        [::core::mem::offset_of!(SlowPathAttribution, recommendation) - 80usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlowPathReport"][::core::mem::size_of::<SlowPathReport>() - 16usize];
    ["Alignment of SlowPathReport"][::core::mem::align_of::<SlowPathReport>() - 8usize];
    ["Offset of field: SlowPathReport::version"][::core::mem::offset_of!(SlowPathReport, version) - 0usize];
    ["Offset of field: SlowPathReport::class_count"][::core::mem::offset_of!(SlowPathReport, class_count) - 4usize];
    ["Offset of field: SlowPathReport::classes"][::core::mem::offset_of!(SlowPathReport, classes) - 8usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of EpochReclamation"][::core::mem::size_of::<EpochReclamation>() - 96usize];
    ["Alignment of EpochReclamation"][::core::mem::align_of::<EpochReclamation>() - 8usize];
    ["Offset of field: EpochReclamation::class_index"][::core::mem::offset_of!(EpochReclamation, class_index) - 0usize];
    ["Offset of field: EpochReclamation::epoch_id"][::core::mem::offset_of!(EpochReclamation, epoch_id) - 4usize];
    ["Offset of field: EpochReclamation::epoch_era"][::core::mem::offset_of!(EpochReclamation, epoch_era) - 8usize];
    ["Offset of field: EpochReclamation::slabs_recycled"]
        [::core::mem::offset_of!(EpochReclamation, slabs_recycled) - 16usize];
    ["Offset of field: EpochReclamation::bytes_madvised"]
        [::core::mem::offset_of!(EpochReclamation, bytes_madvised) - 24usize];
    ["Offset of field: EpochReclamation::rss_before"][::core::mem::offset_of!(EpochReclamation, rss_before) - 32usize];
    ["Offset of field: EpochReclamation::rss_after"][::core::mem::offset_of!(EpochReclamation, rss_after) - 40usize];
    ["Offset of field: EpochReclamation::rss_delta"][::core::mem::offset_of!(EpochReclamation, rss_delta) - 48usize];
    ["Offset of field: EpochReclamation::label"][::core::mem::offset_of!(EpochReclamation, label) - 56usize];
    ["Offset of field: EpochReclamation::was_closed"][::core::mem::offset_of!(EpochReclamation, was_closed) - 88usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ReclamationReport"][::core::mem::size_of::<ReclamationReport>() - 48usize];
    ["Alignment of ReclamationReport"][::core::mem::align_of::<ReclamationReport>() - 8usize];
    ["Offset of field: ReclamationReport::version"][::core::mem::offset_of!(ReclamationReport, version) - 0usize];
    ["Offset of field: ReclamationReport::total_madvise_calls"]
        [::core::mem::offset_of!(ReclamationReport, total_madvise_calls) - 8usize];
    ["Offset of field: ReclamationReport::total_madvise_bytes"]
        [::core::mem::offset_of!(ReclamationReport, total_madvise_bytes) - 16usize];
    ["Offset of field: ReclamationReport::total_madvise_failures"]
        [::core::mem::offset_of!(ReclamationReport, total_madvise_failures) - 24usize];
    ["Offset of field: ReclamationReport::epoch_count"]
        [::core::mem::offset_of!(ReclamationReport, epoch_count) - 32usize];
    ["Offset of field: ReclamationReport::epochs"][::core::mem::offset_of!(ReclamationReport, epochs) - 40usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabLiveObject"][::core::mem::size_of::<SlabLiveObject>() - 24usize];
    ["Alignment of SlabLiveObject"][::core::mem::align_of::<SlabLiveObject>() - 8usize];
    ["Offset of field: SlabLiveObject::address"][::core::mem::offset_of!(SlabLiveObject, address) - 0usize];
    ["Offset of field: SlabLiveObject::usable_bytes"][::core::mem::offset_of!(SlabLiveObject, usable_bytes) - 8usize];
    ["Offset of field: SlabLiveObject::class_index"][::core::mem::offset_of!(SlabLiveObject, class_index) - 16usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabGateOptions"][::core::mem::size_of::<SlabGateOptions>() - 40usize];
    ["Alignment of SlabGateOptions"][::core::mem::align_of::<SlabGateOptions>() - 8usize];
    ["Offset of field: SlabGateOptions::struct_size"][::core::mem::offset_of!(SlabGateOptions, struct_size) - 0usize];
    ["Offset of field: SlabGateOptions::label"][::core::mem::offset_of!(SlabGateOptions, label) - 8usize];
    ["Offset of field: SlabGateOptions::warm_up"][::core::mem::offset_of!(SlabGateOptions, warm_up) - 16usize];
    ["Offset of field: SlabGateOptions::rounds"][::core::mem::offset_of!(SlabGateOptions, rounds) - 20usize];
    ["Offset of field: SlabGateOptions::objects"][::core::mem::offset_of!(SlabGateOptions, objects) - 24usize];
    ["Offset of field: SlabGateOptions::bytes"][::core::mem::offset_of!(SlabGateOptions, bytes) - 32usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabLaneHeap_"][::core::mem::size_of::<SlabLaneHeap_>() - 48usize];
    ["Alignment of SlabLaneHeap_"][::core::mem::align_of::<SlabLaneHeap_>() - 8usize];
    ["Offset of field: SlabLaneHeap_::unused_"][::core::mem::offset_of!(SlabLaneHeap_, unused_) - 0usize];
    ["Offset of field: SlabLaneHeap_::word"][::core::mem::offset_of!(SlabLaneHeap_, word) - 8usize];
    ["Offset of field: SlabLaneHeap_::key"][::core::mem::offset_of!(SlabLaneHeap_, key) - 16usize];
    ["Offset of field: SlabLaneHeap_::unused2_"][::core::mem::offset_of!(SlabLaneHeap_, unused2_) - 24usize];
    ["Offset of field: SlabLaneHeap_::region"][::core::mem::offset_of!(SlabLaneHeap_, region) - 40usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabLaneRegion_"][::core::mem::size_of::<SlabLaneRegion_>() - 64usize];
    ["Alignment of SlabLaneRegion_"][::core::mem::align_of::<SlabLaneRegion_>() - 8usize];
    ["Offset of field: SlabLaneRegion_::unused_"][::core::mem::offset_of!(SlabLaneRegion_, unused_) - 0usize];
    ["Offset of field: SlabLaneRegion_::issued"][::core::mem::offset_of!(SlabLaneRegion_, issued) - 8usize];
    ["Offset of field: SlabLaneRegion_::freed"][::core::mem::offset_of!(SlabLaneRegion_, freed) - 12usize];
    ["Offset of field: SlabLaneRegion_::rel"][::core::mem::offset_of!(SlabLaneRegion_, rel) - 16usize];
    ["Offset of field: SlabLaneRegion_::lim"][::core::mem::offset_of!(SlabLaneRegion_, lim) - 20usize];
    ["Offset of field: SlabLaneRegion_::base"][::core::mem::offset_of!(SlabLaneRegion_, base) - 24usize];
    ["Offset of field: SlabLaneRegion_::map"][::core::mem::offset_of!(SlabLaneRegion_, map) - 32usize];
    ["Offset of field: SlabLaneRegion_::unused2_"][::core::mem::offset_of!(SlabLaneRegion_, unused2_) - 40usize];
    ["Offset of field: SlabLaneRegion_::unused3_"][::core::mem::offset_of!(SlabLaneRegion_, unused3_) - 56usize];
    ["Offset of field: SlabLaneRegion_::life"][::core::mem::offset_of!(SlabLaneRegion_, life) - 60usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabLane"][::core::mem::size_of::<SlabLane>() - 64usize];
    ["Alignment of SlabLane"][::core::mem::align_of::<SlabLane>() - 8usize];
    ["Offset of field: SlabLane::domain"][::core::mem::offset_of!(SlabLane, domain) - 0usize];
    ["Offset of field: SlabLane::phase_"][::core::mem::offset_of!(SlabLane, phase_) - 8usize];
    ["Offset of field: SlabLane::thread_"][::core::mem::offset_of!(SlabLane, thread_) - 16usize];
    ["Offset of field: SlabLane::thread_at_"][::core::mem::offset_of!(SlabLane, thread_at_) - 24usize];
    ["Offset of field: SlabLane::heap_"][::core::mem::offset_of!(SlabLane, heap_) - 32usize];
    ["Offset of field: SlabLane::busy_"][::core::mem::offset_of!(SlabLane, busy_) - 40usize];
    ["Offset of field: SlabLane::live_"][::core::mem::offset_of!(SlabLane, live_) - 48usize];
    ["Offset of field: SlabLane::reserved_"][::core::mem::offset_of!(SlabLane, reserved_) - 56usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabLaneGot"][::core::mem::size_of::<SlabLaneGot>() - 16usize];
    ["Alignment of SlabLaneGot"][::core::mem::align_of::<SlabLaneGot>() - 8usize];
    ["Offset of field: SlabLaneGot::p"][::core::mem::offset_of!(SlabLaneGot, p) - 0usize];
    ["Offset of field: SlabLaneGot::heap_"][::core::mem::offset_of!(SlabLaneGot, heap_) - 8usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabRun"][::core::mem::size_of::<SlabRun>() - 96usize];
    ["Alignment of SlabRun"][::core::mem::align_of::<SlabRun>() - 8usize];
    ["Offset of field: SlabRun::domain"][::core::mem::offset_of!(SlabRun, domain) - 0usize];
    ["Offset of field: SlabRun::at_"][::core::mem::offset_of!(SlabRun, at_) - 8usize];
    ["Offset of field: SlabRun::end_"][::core::mem::offset_of!(SlabRun, end_) - 16usize];
    ["Offset of field: SlabRun::map_"][::core::mem::offset_of!(SlabRun, map_) - 24usize];
    ["Offset of field: SlabRun::life_"][::core::mem::offset_of!(SlabRun, life_) - 32usize];
    ["Offset of field: SlabRun::gap_"][::core::mem::offset_of!(SlabRun, gap_) - 40usize];
    ["Offset of field: SlabRun::count_"][::core::mem::offset_of!(SlabRun, count_) - 48usize];
    ["Offset of field: SlabRun::phase_"][::core::mem::offset_of!(SlabRun, phase_) - 56usize];
    ["Offset of field: SlabRun::thread_"][::core::mem::offset_of!(SlabRun, thread_) - 64usize];
    ["Offset of field: SlabRun::thread_at_"][::core::mem::offset_of!(SlabRun, thread_at_) - 72usize];
    ["Offset of field: SlabRun::region_"][::core::mem::offset_of!(SlabRun, region_) - 80usize];
    ["Offset of field: SlabRun::got_"][::core::mem::offset_of!(SlabRun, got_) - 88usize];
};
pub const SLAB_SEGMENT_HEADER_BYTES: _bindgen_ty_1 = 256;
pub const SLAB_SEGMENT_SLOTS: _bindgen_ty_1 = 16;
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabSegmentTable"][::core::mem::size_of::<SlabSegmentTable>() - 16usize];
    ["Alignment of SlabSegmentTable"][::core::mem::align_of::<SlabSegmentTable>() - 8usize];
    ["Offset of field: SlabSegmentTable::offset"][::core::mem::offset_of!(SlabSegmentTable, offset) - 0usize];
    ["Offset of field: SlabSegmentTable::count"][::core::mem::offset_of!(SlabSegmentTable, count) - 8usize];
    ["Offset of field: SlabSegmentTable::stride"][::core::mem::offset_of!(SlabSegmentTable, stride) - 12usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabSegmentHeader"][::core::mem::size_of::<SlabSegmentHeader>() - 256usize];
    ["Alignment of SlabSegmentHeader"][::core::mem::align_of::<SlabSegmentHeader>() - 8usize];
    ["Offset of field: SlabSegmentHeader::magic"][::core::mem::offset_of!(SlabSegmentHeader, magic) - 0usize];
    ["Offset of field: SlabSegmentHeader::endian"][::core::mem::offset_of!(SlabSegmentHeader, endian) - 8usize];
    ["Offset of field: SlabSegmentHeader::major"][::core::mem::offset_of!(SlabSegmentHeader, major) - 12usize];
    ["Offset of field: SlabSegmentHeader::minor"][::core::mem::offset_of!(SlabSegmentHeader, minor) - 14usize];
    ["Offset of field: SlabSegmentHeader::header_bytes"]
        [::core::mem::offset_of!(SlabSegmentHeader, header_bytes) - 16usize];
    ["Offset of field: SlabSegmentHeader::reserved"][::core::mem::offset_of!(SlabSegmentHeader, reserved) - 20usize];
    ["Offset of field: SlabSegmentHeader::total_bytes"]
        [::core::mem::offset_of!(SlabSegmentHeader, total_bytes) - 24usize];
    ["Offset of field: SlabSegmentHeader::pid"][::core::mem::offset_of!(SlabSegmentHeader, pid) - 32usize];
    ["Offset of field: SlabSegmentHeader::start_time"]
        [::core::mem::offset_of!(SlabSegmentHeader, start_time) - 40usize];
    ["Offset of field: SlabSegmentHeader::boot_id"][::core::mem::offset_of!(SlabSegmentHeader, boot_id) - 48usize];
    ["Offset of field: SlabSegmentHeader::created_ns"]
        [::core::mem::offset_of!(SlabSegmentHeader, created_ns) - 88usize];
    ["Offset of field: SlabSegmentHeader::heartbeat_ns"]
        [::core::mem::offset_of!(SlabSegmentHeader, heartbeat_ns) - 96usize];
    ["Offset of field: SlabSegmentHeader::publications"]
        [::core::mem::offset_of!(SlabSegmentHeader, publications) - 104usize];
    ["Offset of field: SlabSegmentHeader::allocators_left_out"]
        [::core::mem::offset_of!(SlabSegmentHeader, allocators_left_out) - 112usize];
    ["Offset of field: SlabSegmentHeader::scopes"][::core::mem::offset_of!(SlabSegmentHeader, scopes) - 120usize];
    ["Offset of field: SlabSegmentHeader::metrics"][::core::mem::offset_of!(SlabSegmentHeader, metrics) - 136usize];
    ["Offset of field: SlabSegmentHeader::slots"][::core::mem::offset_of!(SlabSegmentHeader, slots) - 152usize];
    ["Offset of field: SlabSegmentHeader::zero"][::core::mem::offset_of!(SlabSegmentHeader, zero) - 168usize];
};
pub const SLAB_SEGMENT_TOP: SlabSegmentForm = 0;
pub const SLAB_SEGMENT_OBJECT: SlabSegmentForm = 1;
pub const SLAB_SEGMENT_ARRAY: SlabSegmentForm = 2;
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabSegmentScope"][::core::mem::size_of::<SlabSegmentScope>() - 136usize];
    ["Alignment of SlabSegmentScope"][::core::mem::align_of::<SlabSegmentScope>() - 8usize];
    ["Offset of field: SlabSegmentScope::name"][::core::mem::offset_of!(SlabSegmentScope, name) - 0usize];
    ["Offset of field: SlabSegmentScope::key"][::core::mem::offset_of!(SlabSegmentScope, key) - 32usize];
    ["Offset of field: SlabSegmentScope::labels"][::core::mem::offset_of!(SlabSegmentScope, labels) - 64usize];
    ["Offset of field: SlabSegmentScope::form"][::core::mem::offset_of!(SlabSegmentScope, form) - 112usize];
    ["Offset of field: SlabSegmentScope::row_bytes"][::core::mem::offset_of!(SlabSegmentScope, row_bytes) - 116usize];
    ["Offset of field: SlabSegmentScope::capacity"][::core::mem::offset_of!(SlabSegmentScope, capacity) - 120usize];
    ["Offset of field: SlabSegmentScope::reserved"][::core::mem::offset_of!(SlabSegmentScope, reserved) - 124usize];
    ["Offset of field: SlabSegmentScope::offset"][::core::mem::offset_of!(SlabSegmentScope, offset) - 128usize];
};
pub const SLAB_SEGMENT_U32: SlabSegmentType = 0;
pub const SLAB_SEGMENT_U64: SlabSegmentType = 1;
pub const SLAB_SEGMENT_F64: SlabSegmentType = 2;
pub const SLAB_SEGMENT_FLAG: SlabSegmentType = 3;
pub const SLAB_SEGMENT_STRING: SlabSegmentType = 4;
pub const SLAB_SEGMENT_STATE: SlabSegmentType = 5;
pub const SLAB_SEGMENT_BY_LABEL: SlabSegmentType = 6;
pub const SLAB_SEGMENT_DOUBLING: SlabSegmentType = 7;
pub const SLAB_SEGMENT_LATENCY: SlabSegmentType = 8;
pub const SLAB_SEGMENT_LIST: SlabSegmentType = 9;
pub const SLAB_SEGMENT_COUNTER: SlabSegmentKind = 0;
pub const SLAB_SEGMENT_GAUGE: SlabSegmentKind = 1;
pub const SLAB_SEGMENT_PEAK: SlabSegmentKind = 2;
pub const SLAB_SEGMENT_HISTOGRAM: SlabSegmentKind = 3;
pub const SLAB_SEGMENT_SUM: SlabSegmentKind = 4;
pub const SLAB_SEGMENT_INFO: SlabSegmentKind = 5;
pub const SLAB_SEGMENT_IDENTITY: SlabSegmentKind = 6;
pub const SLAB_SEGMENT_COPY: SlabSegmentKind = 7;
pub const SLAB_SEGMENT_COUNT: SlabSegmentUnit = 0;
pub const SLAB_SEGMENT_BYTES: SlabSegmentUnit = 1;
pub const SLAB_SEGMENT_NS: SlabSegmentUnit = 2;
pub const SLAB_SEGMENT_SECONDS: SlabSegmentUnit = 3;
pub const SLAB_SEGMENT_PERCENT: SlabSegmentUnit = 4;
pub const SLAB_SEGMENT_RATIO: SlabSegmentUnit = 5;
pub const SLAB_SEGMENT_MIB: SlabSegmentUnit = 6;
pub const SLAB_SEGMENT_ID: SlabSegmentUnit = 7;
pub const SLAB_SEGMENT_TEXT: SlabSegmentUnit = 8;
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabSegmentMetric"][::core::mem::size_of::<SlabSegmentMetric>() - 352usize];
    ["Alignment of SlabSegmentMetric"][::core::mem::align_of::<SlabSegmentMetric>() - 8usize];
    ["Offset of field: SlabSegmentMetric::name"][::core::mem::offset_of!(SlabSegmentMetric, name) - 0usize];
    ["Offset of field: SlabSegmentMetric::family"][::core::mem::offset_of!(SlabSegmentMetric, family) - 64usize];
    ["Offset of field: SlabSegmentMetric::help"][::core::mem::offset_of!(SlabSegmentMetric, help) - 160usize];
    ["Offset of field: SlabSegmentMetric::scope"][::core::mem::offset_of!(SlabSegmentMetric, scope) - 320usize];
    ["Offset of field: SlabSegmentMetric::type_"][::core::mem::offset_of!(SlabSegmentMetric, type_) - 324usize];
    ["Offset of field: SlabSegmentMetric::kind"][::core::mem::offset_of!(SlabSegmentMetric, kind) - 328usize];
    ["Offset of field: SlabSegmentMetric::unit"][::core::mem::offset_of!(SlabSegmentMetric, unit) - 332usize];
    ["Offset of field: SlabSegmentMetric::offset"][::core::mem::offset_of!(SlabSegmentMetric, offset) - 336usize];
    ["Offset of field: SlabSegmentMetric::bytes"][::core::mem::offset_of!(SlabSegmentMetric, bytes) - 340usize];
    ["Offset of field: SlabSegmentMetric::reserved"][::core::mem::offset_of!(SlabSegmentMetric, reserved) - 344usize];
};
pub const SLAB_SEGMENT_FREE: SlabSegmentState = 0;
pub const SLAB_SEGMENT_LIVE: SlabSegmentState = 1;
pub const SLAB_SEGMENT_ENDED: SlabSegmentState = 2;
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabSegmentSlot"][::core::mem::size_of::<SlabSegmentSlot>() - 128usize];
    ["Alignment of SlabSegmentSlot"][::core::mem::align_of::<SlabSegmentSlot>() - 8usize];
    ["Offset of field: SlabSegmentSlot::state"][::core::mem::offset_of!(SlabSegmentSlot, state) - 0usize];
    ["Offset of field: SlabSegmentSlot::serial"][::core::mem::offset_of!(SlabSegmentSlot, serial) - 8usize];
    ["Offset of field: SlabSegmentSlot::sequence"][::core::mem::offset_of!(SlabSegmentSlot, sequence) - 16usize];
    ["Offset of field: SlabSegmentSlot::published_ns"]
        [::core::mem::offset_of!(SlabSegmentSlot, published_ns) - 24usize];
    ["Offset of field: SlabSegmentSlot::since_ns"][::core::mem::offset_of!(SlabSegmentSlot, since_ns) - 32usize];
    ["Offset of field: SlabSegmentSlot::ended_ns"][::core::mem::offset_of!(SlabSegmentSlot, ended_ns) - 40usize];
    ["Offset of field: SlabSegmentSlot::cost_ns"][::core::mem::offset_of!(SlabSegmentSlot, cost_ns) - 48usize];
    ["Offset of field: SlabSegmentSlot::buffer_bytes"]
        [::core::mem::offset_of!(SlabSegmentSlot, buffer_bytes) - 56usize];
    ["Offset of field: SlabSegmentSlot::buffer"][::core::mem::offset_of!(SlabSegmentSlot, buffer) - 64usize];
    ["Offset of field: SlabSegmentSlot::changed"][::core::mem::offset_of!(SlabSegmentSlot, changed) - 80usize];
    ["Offset of field: SlabSegmentSlot::reserved"][::core::mem::offset_of!(SlabSegmentSlot, reserved) - 88usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabSegmentRows"][::core::mem::size_of::<SlabSegmentRows>() - 16usize];
    ["Alignment of SlabSegmentRows"][::core::mem::align_of::<SlabSegmentRows>() - 8usize];
    ["Offset of field: SlabSegmentRows::count"][::core::mem::offset_of!(SlabSegmentRows, count) - 0usize];
    ["Offset of field: SlabSegmentRows::left_out"][::core::mem::offset_of!(SlabSegmentRows, left_out) - 8usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabSegmentBuffer"][::core::mem::size_of::<SlabSegmentBuffer>() - 32usize];
    ["Alignment of SlabSegmentBuffer"][::core::mem::align_of::<SlabSegmentBuffer>() - 8usize];
    ["Offset of field: SlabSegmentBuffer::number"][::core::mem::offset_of!(SlabSegmentBuffer, number) - 0usize];
    ["Offset of field: SlabSegmentBuffer::serial"][::core::mem::offset_of!(SlabSegmentBuffer, serial) - 8usize];
    ["Offset of field: SlabSegmentBuffer::begun_ns"][::core::mem::offset_of!(SlabSegmentBuffer, begun_ns) - 16usize];
    ["Offset of field: SlabSegmentBuffer::reserved"][::core::mem::offset_of!(SlabSegmentBuffer, reserved) - 24usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabProfileBuffer"][::core::mem::size_of::<SlabProfileBuffer>() - 96usize];
    ["Alignment of SlabProfileBuffer"][::core::mem::align_of::<SlabProfileBuffer>() - 8usize];
    ["Offset of field: SlabProfileBuffer::number"][::core::mem::offset_of!(SlabProfileBuffer, number) - 0usize];
    ["Offset of field: SlabProfileBuffer::serial"][::core::mem::offset_of!(SlabProfileBuffer, serial) - 8usize];
    ["Offset of field: SlabProfileBuffer::begun_ns"][::core::mem::offset_of!(SlabProfileBuffer, begun_ns) - 16usize];
    ["Offset of field: SlabProfileBuffer::bytes"][::core::mem::offset_of!(SlabProfileBuffer, bytes) - 24usize];
    ["Offset of field: SlabProfileBuffer::period"][::core::mem::offset_of!(SlabProfileBuffer, period) - 32usize];
    ["Offset of field: SlabProfileBuffer::samples"][::core::mem::offset_of!(SlabProfileBuffer, samples) - 40usize];
    ["Offset of field: SlabProfileBuffer::lost_stacks"]
        [::core::mem::offset_of!(SlabProfileBuffer, lost_stacks) - 48usize];
    ["Offset of field: SlabProfileBuffer::lost_live"][::core::mem::offset_of!(SlabProfileBuffer, lost_live) - 56usize];
    ["Offset of field: SlabProfileBuffer::stacks"][::core::mem::offset_of!(SlabProfileBuffer, stacks) - 64usize];
    ["Offset of field: SlabProfileBuffer::live"][::core::mem::offset_of!(SlabProfileBuffer, live) - 72usize];
    ["Offset of field: SlabProfileBuffer::makers"][::core::mem::offset_of!(SlabProfileBuffer, makers) - 80usize];
    ["Offset of field: SlabProfileBuffer::escapes"][::core::mem::offset_of!(SlabProfileBuffer, escapes) - 88usize];
    ["Offset of field: SlabProfileBuffer::escape_stacks"]
        [::core::mem::offset_of!(SlabProfileBuffer, escape_stacks) - 92usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabProfileLive"][::core::mem::size_of::<SlabProfileLive>() - 24usize];
    ["Alignment of SlabProfileLive"][::core::mem::align_of::<SlabProfileLive>() - 8usize];
    ["Offset of field: SlabProfileLive::bytes"][::core::mem::offset_of!(SlabProfileLive, bytes) - 0usize];
    ["Offset of field: SlabProfileLive::era"][::core::mem::offset_of!(SlabProfileLive, era) - 8usize];
    ["Offset of field: SlabProfileLive::stack"][::core::mem::offset_of!(SlabProfileLive, stack) - 16usize];
    ["Offset of field: SlabProfileLive::size_class"][::core::mem::offset_of!(SlabProfileLive, size_class) - 20usize];
    ["Offset of field: SlabProfileLive::escaped"][::core::mem::offset_of!(SlabProfileLive, escaped) - 22usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabProfileStack"][::core::mem::size_of::<SlabProfileStack>() - 56usize];
    ["Alignment of SlabProfileStack"][::core::mem::align_of::<SlabProfileStack>() - 8usize];
    ["Offset of field: SlabProfileStack::label"][::core::mem::offset_of!(SlabProfileStack, label) - 0usize];
    ["Offset of field: SlabProfileStack::objects"][::core::mem::offset_of!(SlabProfileStack, objects) - 32usize];
    ["Offset of field: SlabProfileStack::bytes"][::core::mem::offset_of!(SlabProfileStack, bytes) - 40usize];
    ["Offset of field: SlabProfileStack::depth"][::core::mem::offset_of!(SlabProfileStack, depth) - 48usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabProfileMaker"][::core::mem::size_of::<SlabProfileMaker>() - 40usize];
    ["Alignment of SlabProfileMaker"][::core::mem::align_of::<SlabProfileMaker>() - 8usize];
    ["Offset of field: SlabProfileMaker::stack"][::core::mem::offset_of!(SlabProfileMaker, stack) - 0usize];
    ["Offset of field: SlabProfileMaker::label"][::core::mem::offset_of!(SlabProfileMaker, label) - 8usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabProfileEscape"][::core::mem::size_of::<SlabProfileEscape>() - 24usize];
    ["Alignment of SlabProfileEscape"][::core::mem::align_of::<SlabProfileEscape>() - 8usize];
    ["Offset of field: SlabProfileEscape::stack"][::core::mem::offset_of!(SlabProfileEscape, stack) - 0usize];
    ["Offset of field: SlabProfileEscape::objects"][::core::mem::offset_of!(SlabProfileEscape, objects) - 8usize];
    ["Offset of field: SlabProfileEscape::bytes"][::core::mem::offset_of!(SlabProfileEscape, bytes) - 16usize];
};
pub const SLAB_SEGMENT_OK: SlabSegmentResult = 0;
pub const SLAB_SEGMENT_NOTHING: SlabSegmentResult = 1;
pub const SLAB_SEGMENT_INCONSISTENT: SlabSegmentResult = 2;
pub const SLAB_SEGMENT_NO_MEMORY: SlabSegmentResult = 3;
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabSegmentView"][::core::mem::size_of::<SlabSegmentView>() - 56usize];
    ["Alignment of SlabSegmentView"][::core::mem::align_of::<SlabSegmentView>() - 8usize];
    ["Offset of field: SlabSegmentView::slot"][::core::mem::offset_of!(SlabSegmentView, slot) - 0usize];
    ["Offset of field: SlabSegmentView::state"][::core::mem::offset_of!(SlabSegmentView, state) - 4usize];
    ["Offset of field: SlabSegmentView::serial"][::core::mem::offset_of!(SlabSegmentView, serial) - 8usize];
    ["Offset of field: SlabSegmentView::number"][::core::mem::offset_of!(SlabSegmentView, number) - 16usize];
    ["Offset of field: SlabSegmentView::begun_ns"][::core::mem::offset_of!(SlabSegmentView, begun_ns) - 24usize];
    ["Offset of field: SlabSegmentView::published_ns"]
        [::core::mem::offset_of!(SlabSegmentView, published_ns) - 32usize];
    ["Offset of field: SlabSegmentView::cost_ns"][::core::mem::offset_of!(SlabSegmentView, cost_ns) - 40usize];
    ["Offset of field: SlabSegmentView::changed"][::core::mem::offset_of!(SlabSegmentView, changed) - 48usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabSegmentValue"][::core::mem::size_of::<SlabSegmentValue>() - 40usize];
    ["Alignment of SlabSegmentValue"][::core::mem::align_of::<SlabSegmentValue>() - 8usize];
    ["Offset of field: SlabSegmentValue::u"][::core::mem::offset_of!(SlabSegmentValue, u) - 0usize];
    ["Offset of field: SlabSegmentValue::f"][::core::mem::offset_of!(SlabSegmentValue, f) - 8usize];
    ["Offset of field: SlabSegmentValue::text"][::core::mem::offset_of!(SlabSegmentValue, text) - 16usize];
    ["Offset of field: SlabSegmentValue::counts"][::core::mem::offset_of!(SlabSegmentValue, counts) - 24usize];
    ["Offset of field: SlabSegmentValue::entries"][::core::mem::offset_of!(SlabSegmentValue, entries) - 32usize];
};
pub const SLAB_PROCESS_RUNNING: SlabProcessState = 0;
pub const SLAB_PROCESS_STOPPED: SlabProcessState = 1;
pub const SLAB_PROCESS_ENDED: SlabProcessState = 2;
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabGlobalStats"][::core::mem::size_of::<SlabGlobalStats>() - 440usize];
    ["Alignment of SlabGlobalStats"][::core::mem::align_of::<SlabGlobalStats>() - 8usize];
    ["Offset of field: SlabGlobalStats::version"][::core::mem::offset_of!(SlabGlobalStats, version) - 0usize];
    ["Offset of field: SlabGlobalStats::current_epoch"]
        [::core::mem::offset_of!(SlabGlobalStats, current_epoch) - 4usize];
    ["Offset of field: SlabGlobalStats::active_epoch_count"]
        [::core::mem::offset_of!(SlabGlobalStats, active_epoch_count) - 8usize];
    ["Offset of field: SlabGlobalStats::closing_epoch_count"]
        [::core::mem::offset_of!(SlabGlobalStats, closing_epoch_count) - 12usize];
    ["Offset of field: SlabGlobalStats::total_slabs_allocated"]
        [::core::mem::offset_of!(SlabGlobalStats, total_slabs_allocated) - 16usize];
    ["Offset of field: SlabGlobalStats::total_slabs_recycled"]
        [::core::mem::offset_of!(SlabGlobalStats, total_slabs_recycled) - 24usize];
    ["Offset of field: SlabGlobalStats::net_slabs"][::core::mem::offset_of!(SlabGlobalStats, net_slabs) - 32usize];
    ["Offset of field: SlabGlobalStats::rss_bytes_current"]
        [::core::mem::offset_of!(SlabGlobalStats, rss_bytes_current) - 40usize];
    ["Offset of field: SlabGlobalStats::estimated_slab_rss_bytes"]
        [::core::mem::offset_of!(SlabGlobalStats, estimated_slab_rss_bytes) - 48usize];
    ["Offset of field: SlabGlobalStats::total_slow_path_hits"]
        [::core::mem::offset_of!(SlabGlobalStats, total_slow_path_hits) - 56usize];
    ["Offset of field: SlabGlobalStats::total_cache_overflows"]
        [::core::mem::offset_of!(SlabGlobalStats, total_cache_overflows) - 64usize];
    ["Offset of field: SlabGlobalStats::total_slow_cache_miss"]
        [::core::mem::offset_of!(SlabGlobalStats, total_slow_cache_miss) - 72usize];
    ["Offset of field: SlabGlobalStats::total_slow_epoch_closed"]
        [::core::mem::offset_of!(SlabGlobalStats, total_slow_epoch_closed) - 80usize];
    ["Offset of field: SlabGlobalStats::total_madvise_calls"]
        [::core::mem::offset_of!(SlabGlobalStats, total_madvise_calls) - 88usize];
    ["Offset of field: SlabGlobalStats::total_madvise_bytes"]
        [::core::mem::offset_of!(SlabGlobalStats, total_madvise_bytes) - 96usize];
    ["Offset of field: SlabGlobalStats::total_madvise_failures"]
        [::core::mem::offset_of!(SlabGlobalStats, total_madvise_failures) - 104usize];
    ["Offset of field: SlabGlobalStats::total_bitmap_alloc_cas_retries"]
        [::core::mem::offset_of!(SlabGlobalStats, total_bitmap_alloc_cas_retries) - 112usize];
    ["Offset of field: SlabGlobalStats::total_bitmap_free_cas_retries"]
        [::core::mem::offset_of!(SlabGlobalStats, total_bitmap_free_cas_retries) - 120usize];
    ["Offset of field: SlabGlobalStats::total_current_partial_cas_failures"]
        [::core::mem::offset_of!(SlabGlobalStats, total_current_partial_cas_failures) - 128usize];
    ["Offset of field: SlabGlobalStats::total_bitmap_alloc_attempts"]
        [::core::mem::offset_of!(SlabGlobalStats, total_bitmap_alloc_attempts) - 136usize];
    ["Offset of field: SlabGlobalStats::total_bitmap_free_attempts"]
        [::core::mem::offset_of!(SlabGlobalStats, total_bitmap_free_attempts) - 144usize];
    ["Offset of field: SlabGlobalStats::total_current_partial_cas_attempts"]
        [::core::mem::offset_of!(SlabGlobalStats, total_current_partial_cas_attempts) - 152usize];
    ["Offset of field: SlabGlobalStats::metadata_bytes"]
        [::core::mem::offset_of!(SlabGlobalStats, metadata_bytes) - 160usize];
    ["Offset of field: SlabGlobalStats::committed_bytes"]
        [::core::mem::offset_of!(SlabGlobalStats, committed_bytes) - 168usize];
    ["Offset of field: SlabGlobalStats::live_bytes"][::core::mem::offset_of!(SlabGlobalStats, live_bytes) - 176usize];
    ["Offset of field: SlabGlobalStats::live_objects"]
        [::core::mem::offset_of!(SlabGlobalStats, live_objects) - 184usize];
    ["Offset of field: SlabGlobalStats::reserved_bytes"]
        [::core::mem::offset_of!(SlabGlobalStats, reserved_bytes) - 192usize];
    ["Offset of field: SlabGlobalStats::open_phases"][::core::mem::offset_of!(SlabGlobalStats, open_phases) - 200usize];
    ["Offset of field: SlabGlobalStats::draining_phases"]
        [::core::mem::offset_of!(SlabGlobalStats, draining_phases) - 208usize];
    ["Offset of field: SlabGlobalStats::total_repairs"]
        [::core::mem::offset_of!(SlabGlobalStats, total_repairs) - 216usize];
    ["Offset of field: SlabGlobalStats::repairs_full_bitmap"]
        [::core::mem::offset_of!(SlabGlobalStats, repairs_full_bitmap) - 224usize];
    ["Offset of field: SlabGlobalStats::repairs_list_mismatch"]
        [::core::mem::offset_of!(SlabGlobalStats, repairs_list_mismatch) - 232usize];
    ["Offset of field: SlabGlobalStats::repairs_other"]
        [::core::mem::offset_of!(SlabGlobalStats, repairs_other) - 240usize];
    ["Offset of field: SlabGlobalStats::warm_budget_bytes"]
        [::core::mem::offset_of!(SlabGlobalStats, warm_budget_bytes) - 248usize];
    ["Offset of field: SlabGlobalStats::warm_bytes"][::core::mem::offset_of!(SlabGlobalStats, warm_bytes) - 256usize];
    ["Offset of field: SlabGlobalStats::warm_stock_bytes"]
        [::core::mem::offset_of!(SlabGlobalStats, warm_stock_bytes) - 264usize];
    ["Offset of field: SlabGlobalStats::warm_regretted_bytes"]
        [::core::mem::offset_of!(SlabGlobalStats, warm_regretted_bytes) - 272usize];
    ["Offset of field: SlabGlobalStats::limit_bytes"][::core::mem::offset_of!(SlabGlobalStats, limit_bytes) - 280usize];
    ["Offset of field: SlabGlobalStats::limit_used_bytes"]
        [::core::mem::offset_of!(SlabGlobalStats, limit_used_bytes) - 288usize];
    ["Offset of field: SlabGlobalStats::limit_ns"][::core::mem::offset_of!(SlabGlobalStats, limit_ns) - 296usize];
    ["Offset of field: SlabGlobalStats::limit_name"][::core::mem::offset_of!(SlabGlobalStats, limit_name) - 304usize];
    ["Offset of field: SlabGlobalStats::growth_bytes"]
        [::core::mem::offset_of!(SlabGlobalStats, growth_bytes) - 336usize];
    ["Offset of field: SlabGlobalStats::growth_ns"][::core::mem::offset_of!(SlabGlobalStats, growth_ns) - 344usize];
    ["Offset of field: SlabGlobalStats::growth_per_second"]
        [::core::mem::offset_of!(SlabGlobalStats, growth_per_second) - 352usize];
    ["Offset of field: SlabGlobalStats::max_bytes"][::core::mem::offset_of!(SlabGlobalStats, max_bytes) - 360usize];
    ["Offset of field: SlabGlobalStats::pace_10s_ns"][::core::mem::offset_of!(SlabGlobalStats, pace_10s_ns) - 368usize];
    ["Offset of field: SlabGlobalStats::pace_100s_ns"]
        [::core::mem::offset_of!(SlabGlobalStats, pace_100s_ns) - 376usize];
    ["Offset of field: SlabGlobalStats::live_pace_10s"]
        [::core::mem::offset_of!(SlabGlobalStats, live_pace_10s) - 384usize];
    ["Offset of field: SlabGlobalStats::live_pace_100s"]
        [::core::mem::offset_of!(SlabGlobalStats, live_pace_100s) - 392usize];
    ["Offset of field: SlabGlobalStats::live_pace_ever"]
        [::core::mem::offset_of!(SlabGlobalStats, live_pace_ever) - 400usize];
    ["Offset of field: SlabGlobalStats::committed_pace_10s"]
        [::core::mem::offset_of!(SlabGlobalStats, committed_pace_10s) - 408usize];
    ["Offset of field: SlabGlobalStats::committed_pace_100s"]
        [::core::mem::offset_of!(SlabGlobalStats, committed_pace_100s) - 416usize];
    ["Offset of field: SlabGlobalStats::committed_pace_ever"]
        [::core::mem::offset_of!(SlabGlobalStats, committed_pace_ever) - 424usize];
    ["Offset of field: SlabGlobalStats::quarantine_bytes"]
        [::core::mem::offset_of!(SlabGlobalStats, quarantine_bytes) - 432usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabClassStats"][::core::mem::size_of::<SlabClassStats>() - 856usize];
    ["Alignment of SlabClassStats"][::core::mem::align_of::<SlabClassStats>() - 8usize];
    ["Offset of field: SlabClassStats::version"][::core::mem::offset_of!(SlabClassStats, version) - 0usize];
    ["Offset of field: SlabClassStats::class_index"][::core::mem::offset_of!(SlabClassStats, class_index) - 4usize];
    ["Offset of field: SlabClassStats::object_size"][::core::mem::offset_of!(SlabClassStats, object_size) - 8usize];
    ["Offset of field: SlabClassStats::slow_path_hits"]
        [::core::mem::offset_of!(SlabClassStats, slow_path_hits) - 16usize];
    ["Offset of field: SlabClassStats::new_slab_count"]
        [::core::mem::offset_of!(SlabClassStats, new_slab_count) - 24usize];
    ["Offset of field: SlabClassStats::list_move_partial_to_full"]
        [::core::mem::offset_of!(SlabClassStats, list_move_partial_to_full) - 32usize];
    ["Offset of field: SlabClassStats::list_move_full_to_partial"]
        [::core::mem::offset_of!(SlabClassStats, list_move_full_to_partial) - 40usize];
    ["Offset of field: SlabClassStats::current_partial_null"]
        [::core::mem::offset_of!(SlabClassStats, current_partial_null) - 48usize];
    ["Offset of field: SlabClassStats::current_partial_full"]
        [::core::mem::offset_of!(SlabClassStats, current_partial_full) - 56usize];
    ["Offset of field: SlabClassStats::empty_slab_recycled"]
        [::core::mem::offset_of!(SlabClassStats, empty_slab_recycled) - 64usize];
    ["Offset of field: SlabClassStats::empty_slab_overflowed"]
        [::core::mem::offset_of!(SlabClassStats, empty_slab_overflowed) - 72usize];
    ["Offset of field: SlabClassStats::slow_path_cache_miss"]
        [::core::mem::offset_of!(SlabClassStats, slow_path_cache_miss) - 80usize];
    ["Offset of field: SlabClassStats::slow_path_epoch_closed"]
        [::core::mem::offset_of!(SlabClassStats, slow_path_epoch_closed) - 88usize];
    ["Offset of field: SlabClassStats::madvise_calls"]
        [::core::mem::offset_of!(SlabClassStats, madvise_calls) - 96usize];
    ["Offset of field: SlabClassStats::madvise_bytes"]
        [::core::mem::offset_of!(SlabClassStats, madvise_bytes) - 104usize];
    ["Offset of field: SlabClassStats::madvise_failures"]
        [::core::mem::offset_of!(SlabClassStats, madvise_failures) - 112usize];
    ["Offset of field: SlabClassStats::epoch_close_calls"]
        [::core::mem::offset_of!(SlabClassStats, epoch_close_calls) - 120usize];
    ["Offset of field: SlabClassStats::epoch_close_scanned_slabs"]
        [::core::mem::offset_of!(SlabClassStats, epoch_close_scanned_slabs) - 128usize];
    ["Offset of field: SlabClassStats::epoch_close_recycled_slabs"]
        [::core::mem::offset_of!(SlabClassStats, epoch_close_recycled_slabs) - 136usize];
    ["Offset of field: SlabClassStats::epoch_close_total_ns"]
        [::core::mem::offset_of!(SlabClassStats, epoch_close_total_ns) - 144usize];
    ["Offset of field: SlabClassStats::bitmap_alloc_cas_retries"]
        [::core::mem::offset_of!(SlabClassStats, bitmap_alloc_cas_retries) - 152usize];
    ["Offset of field: SlabClassStats::bitmap_free_cas_retries"]
        [::core::mem::offset_of!(SlabClassStats, bitmap_free_cas_retries) - 160usize];
    ["Offset of field: SlabClassStats::current_partial_cas_failures"]
        [::core::mem::offset_of!(SlabClassStats, current_partial_cas_failures) - 168usize];
    ["Offset of field: SlabClassStats::bitmap_alloc_attempts"]
        [::core::mem::offset_of!(SlabClassStats, bitmap_alloc_attempts) - 176usize];
    ["Offset of field: SlabClassStats::bitmap_free_attempts"]
        [::core::mem::offset_of!(SlabClassStats, bitmap_free_attempts) - 184usize];
    ["Offset of field: SlabClassStats::current_partial_cas_attempts"]
        [::core::mem::offset_of!(SlabClassStats, current_partial_cas_attempts) - 192usize];
    ["Offset of field: SlabClassStats::lock_fast_acquire"]
        [::core::mem::offset_of!(SlabClassStats, lock_fast_acquire) - 200usize];
    ["Offset of field: SlabClassStats::lock_contended"]
        [::core::mem::offset_of!(SlabClassStats, lock_contended) - 208usize];
    ["Offset of field: SlabClassStats::scan_adapt_checks"]
        [::core::mem::offset_of!(SlabClassStats, scan_adapt_checks) - 216usize];
    ["Offset of field: SlabClassStats::scan_adapt_switches"]
        [::core::mem::offset_of!(SlabClassStats, scan_adapt_switches) - 220usize];
    ["Offset of field: SlabClassStats::scan_mode"][::core::mem::offset_of!(SlabClassStats, scan_mode) - 224usize];
    ["Offset of field: SlabClassStats::committed_bytes"]
        [::core::mem::offset_of!(SlabClassStats, committed_bytes) - 232usize];
    ["Offset of field: SlabClassStats::live_bytes"][::core::mem::offset_of!(SlabClassStats, live_bytes) - 240usize];
    ["Offset of field: SlabClassStats::empty_slabs_count"]
        [::core::mem::offset_of!(SlabClassStats, empty_slabs_count) - 248usize];
    ["Offset of field: SlabClassStats::avg_alloc_cas_retries_per_attempt"]
        [::core::mem::offset_of!(SlabClassStats, avg_alloc_cas_retries_per_attempt) - 256usize];
    ["Offset of field: SlabClassStats::avg_free_cas_retries_per_attempt"]
        [::core::mem::offset_of!(SlabClassStats, avg_free_cas_retries_per_attempt) - 264usize];
    ["Offset of field: SlabClassStats::current_partial_cas_failure_rate"]
        [::core::mem::offset_of!(SlabClassStats, current_partial_cas_failure_rate) - 272usize];
    ["Offset of field: SlabClassStats::lock_contention_rate"]
        [::core::mem::offset_of!(SlabClassStats, lock_contention_rate) - 280usize];
    ["Offset of field: SlabClassStats::lock_fast_acquire_by_label"]
        [::core::mem::offset_of!(SlabClassStats, lock_fast_acquire_by_label) - 288usize];
    ["Offset of field: SlabClassStats::lock_contended_by_label"]
        [::core::mem::offset_of!(SlabClassStats, lock_contended_by_label) - 416usize];
    ["Offset of field: SlabClassStats::bitmap_alloc_cas_retries_by_label"]
        [::core::mem::offset_of!(SlabClassStats, bitmap_alloc_cas_retries_by_label) - 544usize];
    ["Offset of field: SlabClassStats::bitmap_free_cas_retries_by_label"]
        [::core::mem::offset_of!(SlabClassStats, bitmap_free_cas_retries_by_label) - 672usize];
    ["Offset of field: SlabClassStats::cache_size"][::core::mem::offset_of!(SlabClassStats, cache_size) - 800usize];
    ["Offset of field: SlabClassStats::cache_capacity"]
        [::core::mem::offset_of!(SlabClassStats, cache_capacity) - 804usize];
    ["Offset of field: SlabClassStats::cache_overflow_len"]
        [::core::mem::offset_of!(SlabClassStats, cache_overflow_len) - 808usize];
    ["Offset of field: SlabClassStats::total_partial_slabs"]
        [::core::mem::offset_of!(SlabClassStats, total_partial_slabs) - 812usize];
    ["Offset of field: SlabClassStats::total_full_slabs"]
        [::core::mem::offset_of!(SlabClassStats, total_full_slabs) - 816usize];
    ["Offset of field: SlabClassStats::recycle_rate_pct"]
        [::core::mem::offset_of!(SlabClassStats, recycle_rate_pct) - 824usize];
    ["Offset of field: SlabClassStats::net_slabs"][::core::mem::offset_of!(SlabClassStats, net_slabs) - 832usize];
    ["Offset of field: SlabClassStats::estimated_rss_bytes"]
        [::core::mem::offset_of!(SlabClassStats, estimated_rss_bytes) - 840usize];
    ["Offset of field: SlabClassStats::slab_bytes"][::core::mem::offset_of!(SlabClassStats, slab_bytes) - 848usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabEpochStats"][::core::mem::size_of::<SlabEpochStats>() - 128usize];
    ["Alignment of SlabEpochStats"][::core::mem::align_of::<SlabEpochStats>() - 8usize];
    ["Offset of field: SlabEpochStats::version"][::core::mem::offset_of!(SlabEpochStats, version) - 0usize];
    ["Offset of field: SlabEpochStats::class_index"][::core::mem::offset_of!(SlabEpochStats, class_index) - 4usize];
    ["Offset of field: SlabEpochStats::object_size"][::core::mem::offset_of!(SlabEpochStats, object_size) - 8usize];
    ["Offset of field: SlabEpochStats::epoch_id"][::core::mem::offset_of!(SlabEpochStats, epoch_id) - 12usize];
    ["Offset of field: SlabEpochStats::epoch_era"][::core::mem::offset_of!(SlabEpochStats, epoch_era) - 16usize];
    ["Offset of field: SlabEpochStats::state"][::core::mem::offset_of!(SlabEpochStats, state) - 24usize];
    ["Offset of field: SlabEpochStats::open_since_ns"]
        [::core::mem::offset_of!(SlabEpochStats, open_since_ns) - 32usize];
    ["Offset of field: SlabEpochStats::alloc_count"][::core::mem::offset_of!(SlabEpochStats, alloc_count) - 40usize];
    ["Offset of field: SlabEpochStats::label"][::core::mem::offset_of!(SlabEpochStats, label) - 48usize];
    ["Offset of field: SlabEpochStats::rss_before_close"]
        [::core::mem::offset_of!(SlabEpochStats, rss_before_close) - 80usize];
    ["Offset of field: SlabEpochStats::rss_after_close"]
        [::core::mem::offset_of!(SlabEpochStats, rss_after_close) - 88usize];
    ["Offset of field: SlabEpochStats::partial_slab_count"]
        [::core::mem::offset_of!(SlabEpochStats, partial_slab_count) - 96usize];
    ["Offset of field: SlabEpochStats::full_slab_count"]
        [::core::mem::offset_of!(SlabEpochStats, full_slab_count) - 100usize];
    ["Offset of field: SlabEpochStats::estimated_rss_bytes"]
        [::core::mem::offset_of!(SlabEpochStats, estimated_rss_bytes) - 104usize];
    ["Offset of field: SlabEpochStats::reclaimable_slab_count"]
        [::core::mem::offset_of!(SlabEpochStats, reclaimable_slab_count) - 112usize];
    ["Offset of field: SlabEpochStats::reclaimable_bytes"]
        [::core::mem::offset_of!(SlabEpochStats, reclaimable_bytes) - 120usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabRefusals"][::core::mem::size_of::<SlabRefusals>() - 152usize];
    ["Alignment of SlabRefusals"][::core::mem::align_of::<SlabRefusals>() - 8usize];
    ["Offset of field: SlabRefusals::version"][::core::mem::offset_of!(SlabRefusals, version) - 0usize];
    ["Offset of field: SlabRefusals::stale_handle"][::core::mem::offset_of!(SlabRefusals, stale_handle) - 8usize];
    ["Offset of field: SlabRefusals::bad_handle"][::core::mem::offset_of!(SlabRefusals, bad_handle) - 16usize];
    ["Offset of field: SlabRefusals::double_free"][::core::mem::offset_of!(SlabRefusals, double_free) - 24usize];
    ["Offset of field: SlabRefusals::stale_free"][::core::mem::offset_of!(SlabRefusals, stale_free) - 32usize];
    ["Offset of field: SlabRefusals::interior_pointer"]
        [::core::mem::offset_of!(SlabRefusals, interior_pointer) - 40usize];
    ["Offset of field: SlabRefusals::foreign_pointer"]
        [::core::mem::offset_of!(SlabRefusals, foreign_pointer) - 48usize];
    ["Offset of field: SlabRefusals::size_mismatch"][::core::mem::offset_of!(SlabRefusals, size_mismatch) - 56usize];
    ["Offset of field: SlabRefusals::bad_epoch"][::core::mem::offset_of!(SlabRefusals, bad_epoch) - 64usize];
    ["Offset of field: SlabRefusals::closed_epoch"][::core::mem::offset_of!(SlabRefusals, closed_epoch) - 72usize];
    ["Offset of field: SlabRefusals::bad_size"][::core::mem::offset_of!(SlabRefusals, bad_size) - 80usize];
    ["Offset of field: SlabRefusals::domain_order"][::core::mem::offset_of!(SlabRefusals, domain_order) - 88usize];
    ["Offset of field: SlabRefusals::domain_stale"][::core::mem::offset_of!(SlabRefusals, domain_stale) - 96usize];
    ["Offset of field: SlabRefusals::late_double_free"]
        [::core::mem::offset_of!(SlabRefusals, late_double_free) - 104usize];
    ["Offset of field: SlabRefusals::out_of_memory"][::core::mem::offset_of!(SlabRefusals, out_of_memory) - 112usize];
    ["Offset of field: SlabRefusals::retired_slabs"][::core::mem::offset_of!(SlabRefusals, retired_slabs) - 120usize];
    ["Offset of field: SlabRefusals::bad_environment"]
        [::core::mem::offset_of!(SlabRefusals, bad_environment) - 128usize];
    ["Offset of field: SlabRefusals::over_budget"][::core::mem::offset_of!(SlabRefusals, over_budget) - 136usize];
    ["Offset of field: SlabRefusals::write_after_end"]
        [::core::mem::offset_of!(SlabRefusals, write_after_end) - 144usize];
};
pub const SLAB_HISTOGRAM_BUCKETS: _bindgen_ty_2 = 48;
pub const SLAB_LATENCY_BUCKETS: _bindgen_ty_2 = 96;
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabLabelStats"][::core::mem::size_of::<SlabLabelStats>() - 1768usize];
    ["Alignment of SlabLabelStats"][::core::mem::align_of::<SlabLabelStats>() - 8usize];
    ["Offset of field: SlabLabelStats::version"][::core::mem::offset_of!(SlabLabelStats, version) - 0usize];
    ["Offset of field: SlabLabelStats::label_id"][::core::mem::offset_of!(SlabLabelStats, label_id) - 4usize];
    ["Offset of field: SlabLabelStats::label"][::core::mem::offset_of!(SlabLabelStats, label) - 8usize];
    ["Offset of field: SlabLabelStats::phases_opened"]
        [::core::mem::offset_of!(SlabLabelStats, phases_opened) - 40usize];
    ["Offset of field: SlabLabelStats::phases_ended"][::core::mem::offset_of!(SlabLabelStats, phases_ended) - 48usize];
    ["Offset of field: SlabLabelStats::phases_open"][::core::mem::offset_of!(SlabLabelStats, phases_open) - 56usize];
    ["Offset of field: SlabLabelStats::phases_draining"]
        [::core::mem::offset_of!(SlabLabelStats, phases_draining) - 64usize];
    ["Offset of field: SlabLabelStats::objects_allocated"]
        [::core::mem::offset_of!(SlabLabelStats, objects_allocated) - 72usize];
    ["Offset of field: SlabLabelStats::bytes_allocated"]
        [::core::mem::offset_of!(SlabLabelStats, bytes_allocated) - 80usize];
    ["Offset of field: SlabLabelStats::objects_freed"]
        [::core::mem::offset_of!(SlabLabelStats, objects_freed) - 88usize];
    ["Offset of field: SlabLabelStats::bytes_freed"][::core::mem::offset_of!(SlabLabelStats, bytes_freed) - 96usize];
    ["Offset of field: SlabLabelStats::objects_released"]
        [::core::mem::offset_of!(SlabLabelStats, objects_released) - 104usize];
    ["Offset of field: SlabLabelStats::bytes_released"]
        [::core::mem::offset_of!(SlabLabelStats, bytes_released) - 112usize];
    ["Offset of field: SlabLabelStats::objects_escaped"]
        [::core::mem::offset_of!(SlabLabelStats, objects_escaped) - 120usize];
    ["Offset of field: SlabLabelStats::bytes_escaped"]
        [::core::mem::offset_of!(SlabLabelStats, bytes_escaped) - 128usize];
    ["Offset of field: SlabLabelStats::live_objects"][::core::mem::offset_of!(SlabLabelStats, live_objects) - 136usize];
    ["Offset of field: SlabLabelStats::live_bytes"][::core::mem::offset_of!(SlabLabelStats, live_bytes) - 144usize];
    ["Offset of field: SlabLabelStats::committed_bytes"]
        [::core::mem::offset_of!(SlabLabelStats, committed_bytes) - 152usize];
    ["Offset of field: SlabLabelStats::peak_bytes"][::core::mem::offset_of!(SlabLabelStats, peak_bytes) - 160usize];
    ["Offset of field: SlabLabelStats::slow_path_hits"]
        [::core::mem::offset_of!(SlabLabelStats, slow_path_hits) - 168usize];
    ["Offset of field: SlabLabelStats::refusals"][::core::mem::offset_of!(SlabLabelStats, refusals) - 176usize];
    ["Offset of field: SlabLabelStats::alloc_samples"]
        [::core::mem::offset_of!(SlabLabelStats, alloc_samples) - 184usize];
    ["Offset of field: SlabLabelStats::alloc_wall_ns_sum"]
        [::core::mem::offset_of!(SlabLabelStats, alloc_wall_ns_sum) - 192usize];
    ["Offset of field: SlabLabelStats::alloc_cpu_ns_sum"]
        [::core::mem::offset_of!(SlabLabelStats, alloc_cpu_ns_sum) - 200usize];
    ["Offset of field: SlabLabelStats::alloc_wait_ns_sum"]
        [::core::mem::offset_of!(SlabLabelStats, alloc_wait_ns_sum) - 208usize];
    ["Offset of field: SlabLabelStats::lock_fast_acquire"]
        [::core::mem::offset_of!(SlabLabelStats, lock_fast_acquire) - 216usize];
    ["Offset of field: SlabLabelStats::lock_contended"]
        [::core::mem::offset_of!(SlabLabelStats, lock_contended) - 224usize];
    ["Offset of field: SlabLabelStats::cas_retries"][::core::mem::offset_of!(SlabLabelStats, cas_retries) - 232usize];
    ["Offset of field: SlabLabelStats::budget_soft_bytes"]
        [::core::mem::offset_of!(SlabLabelStats, budget_soft_bytes) - 240usize];
    ["Offset of field: SlabLabelStats::budget_hard_bytes"]
        [::core::mem::offset_of!(SlabLabelStats, budget_hard_bytes) - 248usize];
    ["Offset of field: SlabLabelStats::budget_warnings"]
        [::core::mem::offset_of!(SlabLabelStats, budget_warnings) - 256usize];
    ["Offset of field: SlabLabelStats::budget_refusals"]
        [::core::mem::offset_of!(SlabLabelStats, budget_refusals) - 264usize];
    ["Offset of field: SlabLabelStats::closed_slabs"][::core::mem::offset_of!(SlabLabelStats, closed_slabs) - 272usize];
    ["Offset of field: SlabLabelStats::pinned_slabs"][::core::mem::offset_of!(SlabLabelStats, pinned_slabs) - 280usize];
    ["Offset of field: SlabLabelStats::drainability"][::core::mem::offset_of!(SlabLabelStats, drainability) - 288usize];
    ["Offset of field: SlabLabelStats::swallowed"][::core::mem::offset_of!(SlabLabelStats, swallowed) - 296usize];
    ["Offset of field: SlabLabelStats::duration_ns"][::core::mem::offset_of!(SlabLabelStats, duration_ns) - 304usize];
    ["Offset of field: SlabLabelStats::peak_bytes_hist"]
        [::core::mem::offset_of!(SlabLabelStats, peak_bytes_hist) - 688usize];
    ["Offset of field: SlabLabelStats::draining_phases"]
        [::core::mem::offset_of!(SlabLabelStats, draining_phases) - 1072usize];
    ["Offset of field: SlabLabelStats::draining_objects"]
        [::core::mem::offset_of!(SlabLabelStats, draining_objects) - 1080usize];
    ["Offset of field: SlabLabelStats::draining_bytes"]
        [::core::mem::offset_of!(SlabLabelStats, draining_bytes) - 1088usize];
    ["Offset of field: SlabLabelStats::oldest_draining_ns"]
        [::core::mem::offset_of!(SlabLabelStats, oldest_draining_ns) - 1096usize];
    ["Offset of field: SlabLabelStats::draining_age_ns"]
        [::core::mem::offset_of!(SlabLabelStats, draining_age_ns) - 1104usize];
    ["Offset of field: SlabLabelStats::worst_eras"][::core::mem::offset_of!(SlabLabelStats, worst_eras) - 1488usize];
    ["Offset of field: SlabLabelStats::worst_bytes"][::core::mem::offset_of!(SlabLabelStats, worst_bytes) - 1512usize];
    ["Offset of field: SlabLabelStats::worst_objects"]
        [::core::mem::offset_of!(SlabLabelStats, worst_objects) - 1536usize];
    ["Offset of field: SlabLabelStats::worst_ages_ns"]
        [::core::mem::offset_of!(SlabLabelStats, worst_ages_ns) - 1560usize];
    ["Offset of field: SlabLabelStats::open_objects"]
        [::core::mem::offset_of!(SlabLabelStats, open_objects) - 1584usize];
    ["Offset of field: SlabLabelStats::open_bytes"][::core::mem::offset_of!(SlabLabelStats, open_bytes) - 1592usize];
    ["Offset of field: SlabLabelStats::outside_objects"]
        [::core::mem::offset_of!(SlabLabelStats, outside_objects) - 1600usize];
    ["Offset of field: SlabLabelStats::outside_bytes"]
        [::core::mem::offset_of!(SlabLabelStats, outside_bytes) - 1608usize];
    ["Offset of field: SlabLabelStats::growth_bytes"]
        [::core::mem::offset_of!(SlabLabelStats, growth_bytes) - 1616usize];
    ["Offset of field: SlabLabelStats::growth_ns"][::core::mem::offset_of!(SlabLabelStats, growth_ns) - 1624usize];
    ["Offset of field: SlabLabelStats::growth_per_second"]
        [::core::mem::offset_of!(SlabLabelStats, growth_per_second) - 1632usize];
    ["Offset of field: SlabLabelStats::limit_bytes"][::core::mem::offset_of!(SlabLabelStats, limit_bytes) - 1640usize];
    ["Offset of field: SlabLabelStats::limit_used_bytes"]
        [::core::mem::offset_of!(SlabLabelStats, limit_used_bytes) - 1648usize];
    ["Offset of field: SlabLabelStats::limit_ns"][::core::mem::offset_of!(SlabLabelStats, limit_ns) - 1656usize];
    ["Offset of field: SlabLabelStats::expected_objects"]
        [::core::mem::offset_of!(SlabLabelStats, expected_objects) - 1664usize];
    ["Offset of field: SlabLabelStats::expected_bytes"]
        [::core::mem::offset_of!(SlabLabelStats, expected_bytes) - 1672usize];
    ["Offset of field: SlabLabelStats::unexpected_phases"]
        [::core::mem::offset_of!(SlabLabelStats, unexpected_phases) - 1680usize];
    ["Offset of field: SlabLabelStats::unexpected_draining_phases"]
        [::core::mem::offset_of!(SlabLabelStats, unexpected_draining_phases) - 1688usize];
    ["Offset of field: SlabLabelStats::unexpected_draining_objects"]
        [::core::mem::offset_of!(SlabLabelStats, unexpected_draining_objects) - 1696usize];
    ["Offset of field: SlabLabelStats::unexpected_draining_bytes"]
        [::core::mem::offset_of!(SlabLabelStats, unexpected_draining_bytes) - 1704usize];
    ["Offset of field: SlabLabelStats::oldest_unexpected_ns"]
        [::core::mem::offset_of!(SlabLabelStats, oldest_unexpected_ns) - 1712usize];
    ["Offset of field: SlabLabelStats::live_pace_10s"]
        [::core::mem::offset_of!(SlabLabelStats, live_pace_10s) - 1720usize];
    ["Offset of field: SlabLabelStats::live_pace_100s"]
        [::core::mem::offset_of!(SlabLabelStats, live_pace_100s) - 1728usize];
    ["Offset of field: SlabLabelStats::live_pace_ever"]
        [::core::mem::offset_of!(SlabLabelStats, live_pace_ever) - 1736usize];
    ["Offset of field: SlabLabelStats::committed_pace_10s"]
        [::core::mem::offset_of!(SlabLabelStats, committed_pace_10s) - 1744usize];
    ["Offset of field: SlabLabelStats::committed_pace_100s"]
        [::core::mem::offset_of!(SlabLabelStats, committed_pace_100s) - 1752usize];
    ["Offset of field: SlabLabelStats::committed_pace_ever"]
        [::core::mem::offset_of!(SlabLabelStats, committed_pace_ever) - 1760usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabPhaseStats"][::core::mem::size_of::<SlabPhaseStats>() - 192usize];
    ["Alignment of SlabPhaseStats"][::core::mem::align_of::<SlabPhaseStats>() - 8usize];
    ["Offset of field: SlabPhaseStats::version"][::core::mem::offset_of!(SlabPhaseStats, version) - 0usize];
    ["Offset of field: SlabPhaseStats::epoch_id"][::core::mem::offset_of!(SlabPhaseStats, epoch_id) - 4usize];
    ["Offset of field: SlabPhaseStats::epoch_era"][::core::mem::offset_of!(SlabPhaseStats, epoch_era) - 8usize];
    ["Offset of field: SlabPhaseStats::label"][::core::mem::offset_of!(SlabPhaseStats, label) - 16usize];
    ["Offset of field: SlabPhaseStats::label_id"][::core::mem::offset_of!(SlabPhaseStats, label_id) - 48usize];
    ["Offset of field: SlabPhaseStats::state"][::core::mem::offset_of!(SlabPhaseStats, state) - 52usize];
    ["Offset of field: SlabPhaseStats::open_since_ns"]
        [::core::mem::offset_of!(SlabPhaseStats, open_since_ns) - 56usize];
    ["Offset of field: SlabPhaseStats::age_ns"][::core::mem::offset_of!(SlabPhaseStats, age_ns) - 64usize];
    ["Offset of field: SlabPhaseStats::refcount"][::core::mem::offset_of!(SlabPhaseStats, refcount) - 72usize];
    ["Offset of field: SlabPhaseStats::threads"][::core::mem::offset_of!(SlabPhaseStats, threads) - 80usize];
    ["Offset of field: SlabPhaseStats::objects_allocated"]
        [::core::mem::offset_of!(SlabPhaseStats, objects_allocated) - 88usize];
    ["Offset of field: SlabPhaseStats::bytes_allocated"]
        [::core::mem::offset_of!(SlabPhaseStats, bytes_allocated) - 96usize];
    ["Offset of field: SlabPhaseStats::live_objects"][::core::mem::offset_of!(SlabPhaseStats, live_objects) - 104usize];
    ["Offset of field: SlabPhaseStats::live_bytes"][::core::mem::offset_of!(SlabPhaseStats, live_bytes) - 112usize];
    ["Offset of field: SlabPhaseStats::slabs"][::core::mem::offset_of!(SlabPhaseStats, slabs) - 120usize];
    ["Offset of field: SlabPhaseStats::empty_slabs"][::core::mem::offset_of!(SlabPhaseStats, empty_slabs) - 128usize];
    ["Offset of field: SlabPhaseStats::committed_bytes"]
        [::core::mem::offset_of!(SlabPhaseStats, committed_bytes) - 136usize];
    ["Offset of field: SlabPhaseStats::peak_bytes"][::core::mem::offset_of!(SlabPhaseStats, peak_bytes) - 144usize];
    ["Offset of field: SlabPhaseStats::purged_bytes"][::core::mem::offset_of!(SlabPhaseStats, purged_bytes) - 152usize];
    ["Offset of field: SlabPhaseStats::budget_soft_bytes"]
        [::core::mem::offset_of!(SlabPhaseStats, budget_soft_bytes) - 160usize];
    ["Offset of field: SlabPhaseStats::budget_hard_bytes"]
        [::core::mem::offset_of!(SlabPhaseStats, budget_hard_bytes) - 168usize];
    ["Offset of field: SlabPhaseStats::rss_before_close"]
        [::core::mem::offset_of!(SlabPhaseStats, rss_before_close) - 176usize];
    ["Offset of field: SlabPhaseStats::rss_after_close"]
        [::core::mem::offset_of!(SlabPhaseStats, rss_after_close) - 184usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of ThreadStats"][::core::mem::size_of::<ThreadStats>() - 136usize];
    ["Alignment of ThreadStats"][::core::mem::align_of::<ThreadStats>() - 8usize];
    ["Offset of field: ThreadStats::alloc_samples"][::core::mem::offset_of!(ThreadStats, alloc_samples) - 0usize];
    ["Offset of field: ThreadStats::alloc_wall_ns_sum"]
        [::core::mem::offset_of!(ThreadStats, alloc_wall_ns_sum) - 8usize];
    ["Offset of field: ThreadStats::alloc_cpu_ns_sum"]
        [::core::mem::offset_of!(ThreadStats, alloc_cpu_ns_sum) - 16usize];
    ["Offset of field: ThreadStats::alloc_wait_ns_sum"]
        [::core::mem::offset_of!(ThreadStats, alloc_wait_ns_sum) - 24usize];
    ["Offset of field: ThreadStats::alloc_wall_ns_max"]
        [::core::mem::offset_of!(ThreadStats, alloc_wall_ns_max) - 32usize];
    ["Offset of field: ThreadStats::alloc_cpu_ns_max"]
        [::core::mem::offset_of!(ThreadStats, alloc_cpu_ns_max) - 40usize];
    ["Offset of field: ThreadStats::alloc_wait_ns_max"]
        [::core::mem::offset_of!(ThreadStats, alloc_wait_ns_max) - 48usize];
    ["Offset of field: ThreadStats::repair_count"][::core::mem::offset_of!(ThreadStats, repair_count) - 56usize];
    ["Offset of field: ThreadStats::repair_wall_ns_sum"]
        [::core::mem::offset_of!(ThreadStats, repair_wall_ns_sum) - 64usize];
    ["Offset of field: ThreadStats::repair_cpu_ns_sum"]
        [::core::mem::offset_of!(ThreadStats, repair_cpu_ns_sum) - 72usize];
    ["Offset of field: ThreadStats::repair_wait_ns_sum"]
        [::core::mem::offset_of!(ThreadStats, repair_wait_ns_sum) - 80usize];
    ["Offset of field: ThreadStats::repair_wall_ns_max"]
        [::core::mem::offset_of!(ThreadStats, repair_wall_ns_max) - 88usize];
    ["Offset of field: ThreadStats::repair_cpu_ns_max"]
        [::core::mem::offset_of!(ThreadStats, repair_cpu_ns_max) - 96usize];
    ["Offset of field: ThreadStats::repair_wait_ns_max"]
        [::core::mem::offset_of!(ThreadStats, repair_wait_ns_max) - 104usize];
    ["Offset of field: ThreadStats::repair_reason_full_bitmap"]
        [::core::mem::offset_of!(ThreadStats, repair_reason_full_bitmap) - 112usize];
    ["Offset of field: ThreadStats::repair_reason_list_mismatch"]
        [::core::mem::offset_of!(ThreadStats, repair_reason_list_mismatch) - 120usize];
    ["Offset of field: ThreadStats::repair_reason_other"]
        [::core::mem::offset_of!(ThreadStats, repair_reason_other) - 128usize];
};
#[allow(clippy::unnecessary_operation, clippy::identity_op)]
const _: () = {
    ["Size of SlabSamplingStats"][::core::mem::size_of::<SlabSamplingStats>() - 2496usize];
    ["Alignment of SlabSamplingStats"][::core::mem::align_of::<SlabSamplingStats>() - 8usize];
    ["Offset of field: SlabSamplingStats::version"][::core::mem::offset_of!(SlabSamplingStats, version) - 0usize];
    ["Offset of field: SlabSamplingStats::period"][::core::mem::offset_of!(SlabSamplingStats, period) - 4usize];
    ["Offset of field: SlabSamplingStats::sum"][::core::mem::offset_of!(SlabSamplingStats, sum) - 8usize];
    ["Offset of field: SlabSamplingStats::dropped"][::core::mem::offset_of!(SlabSamplingStats, dropped) - 144usize];
    ["Offset of field: SlabSamplingStats::lock_samples"]
        [::core::mem::offset_of!(SlabSamplingStats, lock_samples) - 152usize];
    ["Offset of field: SlabSamplingStats::lock_wait_ns_sum"]
        [::core::mem::offset_of!(SlabSamplingStats, lock_wait_ns_sum) - 160usize];
    ["Offset of field: SlabSamplingStats::lock_wait_ns_max"]
        [::core::mem::offset_of!(SlabSamplingStats, lock_wait_ns_max) - 168usize];
    ["Offset of field: SlabSamplingStats::lock_hold_ns_sum"]
        [::core::mem::offset_of!(SlabSamplingStats, lock_hold_ns_sum) - 176usize];
    ["Offset of field: SlabSamplingStats::lock_hold_ns_max"]
        [::core::mem::offset_of!(SlabSamplingStats, lock_hold_ns_max) - 184usize];
    ["Offset of field: SlabSamplingStats::alloc_wall_ns"]
        [::core::mem::offset_of!(SlabSamplingStats, alloc_wall_ns) - 192usize];
    ["Offset of field: SlabSamplingStats::lock_wait_ns"]
        [::core::mem::offset_of!(SlabSamplingStats, lock_wait_ns) - 960usize];
    ["Offset of field: SlabSamplingStats::lock_hold_ns"]
        [::core::mem::offset_of!(SlabSamplingStats, lock_hold_ns) - 1728usize];
};
impl Default for SlabOptions {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for epoch_domain {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabDomainOptions {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for EpochLeakReport {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlowPathAttribution {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlowPathReport {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for ReclamationReport {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabLiveObject {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabGateOptions {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabLaneHeap_ {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabLaneRegion_ {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabLane {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabLaneGot {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabRun {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabSegmentHeader {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabSegmentScope {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabSegmentMetric {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabSegmentValue {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabEpochStats {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabLabelStats {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabPhaseStats {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
impl Default for SlabSamplingStats {
    fn default() -> Self {
        let mut s = ::core::mem::MaybeUninit::<Self>::uninit();
        unsafe {
            ::core::ptr::write_bytes(s.as_mut_ptr(), 0, 1);
            s.assume_init()
        }
    }
}
extern "C" {
    pub fn slab_misuse_name(what: SlabMisuse) -> *const ::core::ffi::c_char;
    pub fn epoch_receipt_text(r: *const EpochReceipt, out: *mut ::core::ffi::c_char, n: usize) -> usize;
    pub fn epoch_receipt_lines(r: *const EpochReceipt, width: usize, out: *mut ::core::ffi::c_char, n: usize) -> usize;
    pub fn slab_allocator_create() -> *mut SlabAllocator;
    pub fn slab_allocator_create_with(options: *const SlabOptions) -> *mut SlabAllocator;
    pub fn slab_allocator_free(a: *mut SlabAllocator);
    pub fn slab_allocator_retain(a: *mut SlabAllocator) -> *mut SlabAllocator;
    pub fn allocator_init(a: *mut SlabAllocator);
    pub fn allocator_init_with(a: *mut SlabAllocator, options: *const SlabOptions) -> bool;
    pub fn allocator_destroy(a: *mut SlabAllocator);
    pub fn alloc_obj_epoch(
        a: *mut SlabAllocator,
        size: u32,
        epoch: EpochId,
        out: *mut SlabHandle,
    ) -> *mut ::core::ffi::c_void;
    pub fn alloc_obj(a: *mut SlabAllocator, size: u32, out: *mut SlabHandle) -> *mut ::core::ffi::c_void;
    pub fn free_obj(a: *mut SlabAllocator, h: SlabHandle) -> bool;
    pub fn slab_malloc_epoch(a: *mut SlabAllocator, size: usize, epoch: EpochId) -> *mut ::core::ffi::c_void;
    pub fn slab_malloc(a: *mut SlabAllocator, size: usize) -> *mut ::core::ffi::c_void;
    pub fn slab_malloc0(a: *mut SlabAllocator, size: usize) -> *mut ::core::ffi::c_void;
    pub fn slab_malloc_outside(a: *mut SlabAllocator, size: usize) -> *mut ::core::ffi::c_void;
    pub fn slab_free(a: *mut SlabAllocator, p: *mut ::core::ffi::c_void);
    pub fn slab_free_checked(a: *mut SlabAllocator, p: *mut ::core::ffi::c_void) -> bool;
    pub fn slab_free_sized(a: *mut SlabAllocator, p: *mut ::core::ffi::c_void, size: usize);
    pub fn slab_free_sized_checked(a: *mut SlabAllocator, p: *mut ::core::ffi::c_void, size: usize) -> bool;
    pub fn slab_calloc(a: *mut SlabAllocator, n: usize, size: usize) -> *mut ::core::ffi::c_void;
    pub fn slab_calloc_epoch(a: *mut SlabAllocator, n: usize, size: usize, epoch: EpochId) -> *mut ::core::ffi::c_void;
    pub fn slab_realloc(a: *mut SlabAllocator, p: *mut ::core::ffi::c_void, size: usize) -> *mut ::core::ffi::c_void;
    pub fn slab_realloc_epoch(
        a: *mut SlabAllocator,
        p: *mut ::core::ffi::c_void,
        size: usize,
        epoch: EpochId,
    ) -> *mut ::core::ffi::c_void;
    pub fn slab_aligned_alloc(a: *mut SlabAllocator, alignment: usize, size: usize) -> *mut ::core::ffi::c_void;
    pub fn slab_aligned_alloc_epoch(
        a: *mut SlabAllocator,
        alignment: usize,
        size: usize,
        epoch: EpochId,
    ) -> *mut ::core::ffi::c_void;
    pub fn slab_strdup(a: *mut SlabAllocator, text: *const ::core::ffi::c_char) -> *mut ::core::ffi::c_char;
    pub fn slab_strndup(a: *mut SlabAllocator, text: *const ::core::ffi::c_char, n: usize) -> *mut ::core::ffi::c_char;
    pub fn slab_memdup(a: *mut SlabAllocator, p: *const ::core::ffi::c_void, n: usize) -> *mut ::core::ffi::c_void;
    pub fn slab_asprintf(a: *mut SlabAllocator, format: *const ::core::ffi::c_char, ...) -> *mut ::core::ffi::c_char;
    pub fn slab_strdup_outside(a: *mut SlabAllocator, text: *const ::core::ffi::c_char) -> *mut ::core::ffi::c_char;
    pub fn slab_asprintf_outside(
        a: *mut SlabAllocator,
        format: *const ::core::ffi::c_char,
        ...
    ) -> *mut ::core::ffi::c_char;
    pub fn slab_realloc_outside(
        a: *mut SlabAllocator,
        p: *mut ::core::ffi::c_void,
        size: usize,
    ) -> *mut ::core::ffi::c_void;
    pub fn slab_move_outside(a: *mut SlabAllocator, p: *mut ::core::ffi::c_void) -> *mut ::core::ffi::c_void;
    pub fn slab_usable_size(a: *mut SlabAllocator, p: *const ::core::ffi::c_void) -> usize;
    pub fn slab_good_size(a: *mut SlabAllocator, size: usize) -> usize;
    pub fn slab_owns(a: *mut SlabAllocator, p: *const ::core::ffi::c_void) -> bool;
    pub fn slab_ptr_epoch(
        a: *mut SlabAllocator,
        p: *const ::core::ffi::c_void,
        id: *mut EpochId,
        era: *mut u64,
    ) -> bool;
    pub fn slab_handle_ptr(a: *mut SlabAllocator, h: SlabHandle) -> *mut ::core::ffi::c_void;
    pub fn slab_ptr_handle(a: *mut SlabAllocator, p: *const ::core::ffi::c_void) -> SlabHandle;
    pub fn slab_trim(a: *mut SlabAllocator);
    pub fn slab_thread_flush(a: *mut SlabAllocator);
    pub fn get_perf_counters(a: *mut SlabAllocator, size_class: u32, out: *mut PerfCounters);
    pub fn slab_object_count(size: u32) -> u32;
    pub fn slab_page_size() -> usize;
    pub fn slab_now_ns() -> u64;
    pub fn slab_rss_bytes() -> u64;
    pub fn slab_version() -> *const ::core::ffi::c_char;
    pub fn slab_last_error() -> *const ::core::ffi::c_char;
    pub fn slab_error() -> ::core::ffi::c_int;
    pub fn epoch_current(a: *mut SlabAllocator) -> EpochId;
    pub fn epoch_advance(a: *mut SlabAllocator);
    pub fn epoch_advance_id(a: *mut SlabAllocator) -> EpochId;
    pub fn epoch_close(a: *mut SlabAllocator, epoch: EpochId);
    pub fn epoch_close_ex(a: *mut SlabAllocator, epoch: EpochId, mode: EpochCloseMode, out: *mut EpochReceipt) -> bool;
    pub fn epoch_close_era(a: *mut SlabAllocator, era: u64, mode: EpochCloseMode, out: *mut EpochReceipt) -> bool;
    pub fn epoch_era(a: *mut SlabAllocator, epoch: EpochId) -> u64;
    pub fn epoch_state(a: *mut SlabAllocator, epoch: EpochId) -> EpochLifecycleState;
    pub fn slab_epoch_set_label(a: *mut SlabAllocator, epoch: EpochId, label: *const ::core::ffi::c_char);
    pub fn slab_epoch_inc_refcount(a: *mut SlabAllocator, epoch: EpochId);
    pub fn slab_epoch_dec_refcount(a: *mut SlabAllocator, epoch: EpochId);
    pub fn slab_epoch_get_refcount(a: *mut SlabAllocator, epoch: EpochId) -> u64;
    pub fn slab_epoch_on_end(
        a: *mut SlabAllocator,
        epoch: EpochId,
        fn_: ::core::option::Option<unsafe extern "C" fn(arg: *mut ::core::ffi::c_void)>,
        arg: *mut ::core::ffi::c_void,
    ) -> bool;
    pub fn slab_epoch_set_budget(
        a: *mut SlabAllocator,
        epoch: EpochId,
        soft: usize,
        hard: usize,
        fn_: SlabBudgetFn,
        ctx: *mut ::core::ffi::c_void,
    ) -> bool;
    pub fn slab_label_set_budget(
        a: *mut SlabAllocator,
        label: *const ::core::ffi::c_char,
        soft: usize,
        hard: usize,
        fn_: SlabBudgetFn,
        ctx: *mut ::core::ffi::c_void,
    ) -> bool;
    pub fn slab_label_expect_escapes(
        a: *mut SlabAllocator,
        label: *const ::core::ffi::c_char,
        objects: u32,
        bytes: u64,
    ) -> bool;
    pub fn epoch_domain_create(a: *mut SlabAllocator) -> *mut epoch_domain_t;
    pub fn epoch_domain_create_labeled(a: *mut SlabAllocator, label: *const ::core::ffi::c_char)
        -> *mut epoch_domain_t;
    pub fn epoch_domain_create_ex(a: *mut SlabAllocator, options: *const SlabDomainOptions) -> *mut epoch_domain_t;
    pub fn epoch_domain_wrap(a: *mut SlabAllocator, epoch: EpochId, auto_close: bool) -> *mut epoch_domain_t;
    pub fn epoch_domain_enter(d: *mut epoch_domain_t) -> bool;
    pub fn epoch_domain_exit(d: *mut epoch_domain_t) -> bool;
    pub fn epoch_domain_destroy(d: *mut epoch_domain_t) -> bool;
    pub fn epoch_domain_force_close(d: *mut epoch_domain_t) -> bool;
    pub fn epoch_domain_begin(a: *mut SlabAllocator, label: *const ::core::ffi::c_char) -> *mut epoch_domain_t;
    pub fn epoch_domain_end(d: *mut epoch_domain_t) -> bool;
    pub fn epoch_domain_end_ex(d: *mut epoch_domain_t, out: *mut EpochReceipt) -> bool;
    pub fn epoch_domain_destroy_ex(d: *mut epoch_domain_t, out: *mut EpochReceipt) -> bool;
    pub fn epoch_domain_stats(d: *mut epoch_domain_t, out: *mut SlabDomainStats) -> bool;
    pub fn epoch_domain_drain(d: *mut epoch_domain_t, out: *mut EpochReceipt) -> bool;
    pub fn epoch_domain_current() -> *mut epoch_domain_t;
    pub fn slab_scope_outer(a: *mut SlabAllocator) -> bool;
    pub fn slab_scope_outer_leave(a: *mut SlabAllocator) -> bool;
    pub fn epoch_domain_allocator() -> *mut SlabAllocator;
    pub fn epoch_domain_malloc(d: *mut epoch_domain_t, size: usize) -> *mut ::core::ffi::c_void;
    pub fn epoch_domain_calloc(d: *mut epoch_domain_t, n: usize, size: usize) -> *mut ::core::ffi::c_void;
    pub fn epoch_domain_realloc(
        d: *mut epoch_domain_t,
        p: *mut ::core::ffi::c_void,
        size: usize,
    ) -> *mut ::core::ffi::c_void;
    pub fn epoch_domain_aligned_alloc(
        d: *mut epoch_domain_t,
        alignment: usize,
        size: usize,
    ) -> *mut ::core::ffi::c_void;
    pub fn epoch_domain_alloc_obj(
        d: *mut epoch_domain_t,
        size: usize,
        alignment: usize,
        out: *mut SlabHandle,
    ) -> *mut ::core::ffi::c_void;
    pub fn epoch_domain_move(to: *mut epoch_domain_t, p: *mut ::core::ffi::c_void) -> *mut ::core::ffi::c_void;
    pub fn epoch_domain_strdup(d: *mut epoch_domain_t, text: *const ::core::ffi::c_char) -> *mut ::core::ffi::c_char;
    pub fn epoch_domain_strndup(
        d: *mut epoch_domain_t,
        text: *const ::core::ffi::c_char,
        n: usize,
    ) -> *mut ::core::ffi::c_char;
    pub fn epoch_domain_memdup(
        d: *mut epoch_domain_t,
        p: *const ::core::ffi::c_void,
        n: usize,
    ) -> *mut ::core::ffi::c_void;
    pub fn epoch_domain_asprintf(
        d: *mut epoch_domain_t,
        format: *const ::core::ffi::c_char,
        ...
    ) -> *mut ::core::ffi::c_char;
    pub fn epoch_domain_on_end(
        d: *mut epoch_domain_t,
        fn_: ::core::option::Option<unsafe extern "C" fn(arg: *mut ::core::ffi::c_void)>,
        arg: *mut ::core::ffi::c_void,
    ) -> bool;
    pub fn epoch_domain_receipt(d: *mut epoch_domain_t, out: *mut EpochReceipt) -> bool;
    pub fn epoch_domain_reset(d: *mut epoch_domain_t) -> bool;
    pub fn epoch_domain_detach(d: *mut epoch_domain_t) -> bool;
    pub fn epoch_domain_attach(d: *mut epoch_domain_t) -> bool;
    pub fn epoch_domain_switch(to: *mut epoch_domain_t, from: *mut *mut epoch_domain_t) -> bool;
    pub fn epoch_domain_era(d: *const epoch_domain_t) -> u64;
    pub fn slab_detect_epoch_leaks(
        a: *mut SlabAllocator,
        threshold_sec: u32,
        max_top: u32,
        out: *mut EpochLeakReport,
    ) -> u32;
    pub fn slab_analyze_slow_path(a: *mut SlabAllocator, out: *mut SlowPathReport);
    pub fn slab_analyze_reclamation(a: *mut SlabAllocator, out: *mut ReclamationReport);
    pub fn slab_epoch_walk(
        a: *mut SlabAllocator,
        epoch: EpochId,
        fn_: ::core::option::Option<
            unsafe extern "C" fn(object: *const SlabLiveObject, ctx: *mut ::core::ffi::c_void) -> bool,
        >,
        ctx: *mut ::core::ffi::c_void,
    ) -> u64;
    pub fn slab_epoch_walk_era(
        a: *mut SlabAllocator,
        era: u64,
        fn_: ::core::option::Option<
            unsafe extern "C" fn(object: *const SlabLiveObject, ctx: *mut ::core::ffi::c_void) -> bool,
        >,
        ctx: *mut ::core::ffi::c_void,
    ) -> u64;
    pub fn slab_doctor(
        a: *mut SlabAllocator,
        write: ::core::option::Option<
            unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void, bytes: *const ::core::ffi::c_char, n: usize) -> bool,
        >,
        ctx: *mut ::core::ffi::c_void,
    ) -> bool;
    pub fn slab_doctor_ex(
        a: *mut SlabAllocator,
        leak_sec: u32,
        write: ::core::option::Option<
            unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void, bytes: *const ::core::ffi::c_char, n: usize) -> bool,
        >,
        ctx: *mut ::core::ffi::c_void,
    ) -> bool;
    pub fn slab_gate(
        a: *mut SlabAllocator,
        options: *const SlabGateOptions,
        round: ::core::option::Option<unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void)>,
        ctx: *mut ::core::ffi::c_void,
        why: *mut ::core::ffi::c_char,
        why_bytes: usize,
    ) -> bool;
    pub fn slab_profile_write(
        a: *mut SlabAllocator,
        write: ::core::option::Option<
            unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void, bytes: *const ::core::ffi::c_char, n: usize) -> bool,
        >,
        ctx: *mut ::core::ffi::c_void,
    ) -> usize;
    pub fn slab_lane_open_as(lane: *mut SlabLane, d: *mut epoch_domain_t, version: u32) -> bool;
    pub fn slab_lane_begin_as(
        lane: *mut SlabLane,
        a: *mut SlabAllocator,
        label: *const ::core::ffi::c_char,
        version: u32,
    ) -> bool;
    pub fn slab_lane_malloc_called(
        domain: *mut epoch_domain_t,
        phase: u64,
        thread: u64,
        heap: *mut SlabLaneHeap_,
        busy: *mut u64,
        size: usize,
    ) -> SlabLaneGot;
    pub fn slab_lane_left(
        heap: *mut SlabLaneHeap_,
        busy: *mut u64,
        p: *mut ::core::ffi::c_void,
    ) -> *mut ::core::ffi::c_void;
    pub fn slab_run_begin_as(run: *mut SlabRun, d: *mut epoch_domain_t, version: u32) -> bool;
    pub fn slab_run_malloc_called(run: SlabRun, size: usize) -> SlabRun;
    pub fn slab_run_end_as(run: SlabRun) -> bool;
    pub fn slab_segment_open(pid: u32) -> *mut SlabSegment;
    pub fn slab_segment_close(s: *mut SlabSegment);
    pub fn slab_segment_header(s: *mut SlabSegment, out: *mut SlabSegmentHeader) -> bool;
    pub fn slab_segment_alive(s: *const SlabSegment) -> bool;
    pub fn slab_segment_process(s: *const SlabSegment) -> SlabProcessState;
    pub fn slab_segment_scopes(s: *const SlabSegment, rows: *mut *const SlabSegmentScope) -> u32;
    pub fn slab_segment_metrics(s: *const SlabSegment, rows: *mut *const SlabSegmentMetric) -> u32;
    pub fn slab_segment_slots(s: *const SlabSegment) -> u32;
    pub fn slab_segment_read(s: *mut SlabSegment, slot: u32, out: *mut SlabSegmentView) -> SlabSegmentResult;
    pub fn slab_segment_rows(s: *const SlabSegment, scope: u32) -> SlabSegmentRows;
    pub fn slab_segment_value(s: *const SlabSegment, metric: u32, row: u32, out: *mut SlabSegmentValue) -> bool;
    pub fn slab_segment_json(
        s: *const SlabSegment,
        write: ::core::option::Option<
            unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void, bytes: *const ::core::ffi::c_char, n: usize) -> bool,
        >,
        ctx: *mut ::core::ffi::c_void,
    ) -> bool;
    pub fn slab_segment_prometheus(
        s: *const SlabSegment,
        write: ::core::option::Option<
            unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void, bytes: *const ::core::ffi::c_char, n: usize) -> bool,
        >,
        ctx: *mut ::core::ffi::c_void,
    ) -> bool;
    pub fn slab_segment_json_all(
        s: *mut SlabSegment,
        write: ::core::option::Option<
            unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void, bytes: *const ::core::ffi::c_char, n: usize) -> bool,
        >,
        ctx: *mut ::core::ffi::c_void,
    ) -> bool;
    pub fn slab_segment_prometheus_all(
        s: *mut SlabSegment,
        write: ::core::option::Option<
            unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void, bytes: *const ::core::ffi::c_char, n: usize) -> bool,
        >,
        ctx: *mut ::core::ffi::c_void,
    ) -> bool;
    pub fn slab_stats_global(a: *mut SlabAllocator, out: *mut SlabGlobalStats);
    pub fn slab_stats_class(a: *mut SlabAllocator, size_class: u32, out: *mut SlabClassStats);
    pub fn slab_stats_epoch(a: *mut SlabAllocator, size_class: u32, epoch: EpochId, out: *mut SlabEpochStats);
    pub fn slab_stats_refusals(a: *mut SlabAllocator, out: *mut SlabRefusals);
    pub fn slab_stats_labels(a: *mut SlabAllocator, out: *mut SlabLabelStats, capacity: usize) -> usize;
    pub fn slab_stats_phases(a: *mut SlabAllocator, out: *mut SlabPhaseStats, capacity: usize) -> usize;
    pub fn slab_stats_thread() -> ThreadStats;
    pub fn slab_stats_sampling(a: *mut SlabAllocator, out: *mut SlabSamplingStats);
    pub fn slab_stats_json(
        a: *mut SlabAllocator,
        write: ::core::option::Option<
            unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void, bytes: *const ::core::ffi::c_char, n: usize) -> bool,
        >,
        ctx: *mut ::core::ffi::c_void,
    ) -> bool;
    pub fn slab_stats_json_all(
        a: *mut SlabAllocator,
        write: ::core::option::Option<
            unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void, bytes: *const ::core::ffi::c_char, n: usize) -> bool,
        >,
        ctx: *mut ::core::ffi::c_void,
    ) -> bool;
    pub fn slab_stats_prometheus(
        a: *mut SlabAllocator,
        write: ::core::option::Option<
            unsafe extern "C" fn(ctx: *mut ::core::ffi::c_void, bytes: *const ::core::ffi::c_char, n: usize) -> bool,
        >,
        ctx: *mut ::core::ffi::c_void,
    ) -> bool;
    pub fn slab_stats_publish(a: *mut SlabAllocator) -> bool;
}
