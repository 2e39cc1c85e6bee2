/*
 * slab_diagnostics.h - reports on leaks, slow allocations, memory returned to the kernel, and objects that outlive
 * their phase.
 *
 * The caller owns the arrays in reports and must free() them; an empty array is NULL. Any thread may call these
 * functions. For a NULL allocator, reports are empty. If memory runs out, the arrays are NULL, the counts are 0, and
 * errno is ENOMEM. For all other conventions, see slab_alloc.h.
 */
#ifndef SLAB_DIAGNOSTICS_H
#define SLAB_DIAGNOSTICS_H

#include "slab_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLAB_DIAGNOSTICS_VERSION 1

/* Live objects of one size class in an epoch that no longer accepts allocations. */
typedef struct EpochLeakCandidate {
    uint32_t class_index, object_size;
    EpochId epoch_id;
    uint64_t epoch_era;
    char label[32];
    /* seconds since the epoch took its first slab, number of live objects, and bytes of the slabs that hold the
     * objects */
    uint64_t age_sec, alloc_count, estimated_rss_bytes;
    uint32_t partial_slab_count, full_slab_count, reclaimable_slab_count;
} EpochLeakCandidate;

typedef struct EpochLeakReport {
    uint32_t version, threshold_sec;
    uint32_t candidate_count;       /* number of leaks found; each size class of an epoch counts as one leak */
    uint32_t top_count;             /* number of rows in `candidates` */
    EpochLeakCandidate* candidates; /* the largest leaks, in descending order of estimated_rss_bytes */
} EpochLeakReport;

/* Lists epochs that are CLOSING, are at least `threshold_sec` seconds old, and have live objects. Each row describes
 * one size class of an epoch. Writes at most `max_top` rows, in descending order of estimated_rss_bytes. Returns
 * candidate_count. O(slabs). */
SLAB_API uint32_t slab_detect_epoch_leaks(SlabAllocator* a, uint32_t threshold_sec, uint32_t max_top,
                                          EpochLeakReport* out);

/* Slow-path allocations of a size class, by cause. Each allocation has exactly one of the four causes, so the four
 * counts add up to total_slow_path_hits. */
typedef struct SlowPathAttribution {
    uint32_t class_index, object_size;
    uint64_t total_slow_path_hits, cache_miss_count, epoch_closed_count, partial_null_count, partial_full_count;
    double cache_miss_pct, epoch_closed_pct, partial_null_pct, partial_full_pct;
    char recommendation[128];
} SlowPathAttribution;

typedef struct SlowPathReport {
    uint32_t version, class_count;
    SlowPathAttribution* classes; /* one row for each size class that has slow-path allocations */
} SlowPathReport;

/* Counts the slow-path allocations of each size class by cause. O(threads + slabs). */
SLAB_API void slab_analyze_slow_path(SlabAllocator* a, SlowPathReport* out);

/* Effect that closing an incarnation (one use of an epoch id) had on one size class. */
typedef struct EpochReclamation {
    uint32_t class_index;
    EpochId epoch_id;
    uint64_t epoch_era, slabs_recycled, bytes_madvised, rss_before, rss_after;
    int64_t rss_delta; /* rss_before - rss_after; positive if the resident size fell */
    char label[32];
    bool was_closed;
} EpochReclamation;

typedef struct ReclamationReport {
    uint32_t version;
    uint64_t total_madvise_calls, total_madvise_bytes, total_madvise_failures;
    uint32_t epoch_count;     /* number of rows in `epochs` */
    EpochReclamation* epochs; /* the last 256 rows, oldest first; a close adds one row per size class */
} ReclamationReport;

/* Lists, by size class, the memory that was returned to the system when epochs were closed by their id or era. Ends of
 * domains are not listed; total_madvise_bytes covers all memory that the allocator has returned. O(1). */
SLAB_API void slab_analyze_reclamation(SlabAllocator* a, ReclamationReport* out);

/* A live object. */
typedef struct SlabLiveObject {
    void* address;
    size_t usable_bytes;
    uint32_t class_index;
} SlabLiveObject;

/* Calls `fn` for each live object of the incarnation that the id `epoch` currently names, and stops when `fn` returns
 * false. Returns the number of calls. The incarnation may be in any state. The walk is exact if no thread allocates or
 * frees in the incarnation during the walk. Otherwise, the walk may miss objects that are allocated or freed during the
 * walk, and an object may be freed before `fn` receives it. `fn` must not free the object that it receives.
 * O(slabs). */
SLAB_API uint64_t slab_epoch_walk(SlabAllocator* a, EpochId epoch, bool (*fn)(const SlabLiveObject* object, void* ctx),
                                  void* ctx);
/* Walks the incarnation with the given era, like slab_epoch_walk, even if the ring has moved past it. Returns the
 * number of calls. */
SLAB_API uint64_t slab_epoch_walk_era(SlabAllocator* a, uint64_t era,
                                      bool (*fn)(const SlabLiveObject* object, void* ctx), void* ctx);

/* Writes a diagnosis of the allocator as text. The text covers the three reports above, lock contention, and sampled
 * allocation times. Lines that begin with ACTION recommend a change and name the label concerned. Calls `write` as
 * slab_stats_json does (slab_stats.h). Returns false and sets errno to EINVAL if the allocator or `write` is NULL. An
 * ended phase that has live objects is reported as a leak if it began at least 60 s ago. Younger phases are reported as
 * too young to judge. */
SLAB_API bool slab_doctor(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);
/* Writes the same text as slab_doctor, but uses `leak_sec` seconds instead of 60 s. If phases normally drain less than
 * 60 s after they begin, a smaller value finds leaks sooner. Pass 0 to report every ended phase that has live
 * objects. */
SLAB_API bool slab_doctor_ex(SlabAllocator* a, uint32_t leak_sec, bool (*write)(void* ctx, const char* bytes, size_t n),
                             void* ctx);

/* Options for slab_gate. */
typedef struct SlabGateOptions {
    size_t struct_size; /* sizeof(SlabGateOptions) */
    const char* label;  /* label to test; NULL: all labels */
    /* uncounted rounds at the start, in which caches fill and libraries create their global objects; 0: 3 rounds */
    uint32_t warm_up;
    uint32_t rounds;         /* counted rounds; 0: 5 rounds */
    uint64_t objects, bytes; /* tolerated increase in retained objects and bytes over their earlier maximum */
} SlabGateOptions;

/* Tests a program for leaks: calls round(ctx) several times and checks whether the memory that each label retains grows
 * from round to round. `round` may run any number of phases. A label retains the objects that are live in its open and
 * ended phases. The figures of a label, its retained objects and bytes, are first read after the uncounted rounds, so
 * objects that the program keeps from these rounds are not reported. After each counted round, the figures of each
 * label are compared with their earlier maximum. A label fails if its number of retained objects exceeds the earlier
 * maximum by more than `objects`. A label also fails if its retained bytes exceed their earlier maximum by more than
 * `bytes` plus a quarter of that maximum. The quarter allows for objects that move from a region to a size class, where
 * they can take up to a quarter more memory. The test stops after the first counted round in which a label fails.
 *
 * If `options` is NULL, tests all labels and tolerates no additional objects. Returns true if no label fails.
 * Otherwise, returns false and sets errno. ERANGE means that a label failed. ENOENT means that no phase has had the
 * label of the options. EINVAL means that the allocator or `round` is NULL, or that an option is bad. ENOMEM means that
 * memory ran out. If `why` is not NULL, it receives the reason for a failure as a sentence, truncated to fit into
 * `why_bytes` bytes. For ERANGE, the sentence names the label. The figures are exact if no other thread uses the
 * allocator while they are read. No lock is held while `round` runs. O(rounds * (slabs + incarnations + labels)). */
SLAB_API bool slab_gate(SlabAllocator* a, const SlabGateOptions* options, void (*round)(void* ctx), void* ctx,
                        char* why, size_t why_bytes);

/* Writes the heap profile (option profile_bytes, see docs/profile.md) in the uncompressed pprof format (profile.proto).
 * The profile contains the objects and bytes allocated since the allocator was created, and the objects and bytes in
 * use. The figures are grouped by allocation stack and by the label of the phase. For objects allocated by
 * slab_malloc_outside, the profile also contains the label of the thread's scope at the time of the allocation. Calls
 * `write` as slab_stats_json does (slab_stats.h). Returns the number of bytes written, or 0 if `write` returned false.
 * On failure, returns 0 and sets errno. Fails with EINVAL if the allocator or `write` is NULL, or if neither
 * profile_bytes nor escape_stacks is set. Fails with ENOMEM if memory runs out. O(samples). */
SLAB_API size_t slab_profile_write(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);

#ifdef __cplusplus
}
#endif
#endif
