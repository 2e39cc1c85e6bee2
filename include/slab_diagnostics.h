/*
 * slab_diagnostics.h - reports that answer a question: which phase leaks, why allocations are slow, whether the kernel
 * took the pages back, which objects escaped.
 *
 * Arrays in reports are the caller's: free() them (NULL when empty). Conventions as slab_alloc.h: any thread, NULL
 * allocators give empty reports, without memory the arrays are NULL and the counts 0 with errno ENOMEM.
 */
#ifndef SLAB_DIAGNOSTICS_H
#define SLAB_DIAGNOSTICS_H

#include "slab_alloc.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SLAB_DIAGNOSTICS_VERSION 1

/* A class of an epoch that no longer accepts allocations, with the objects that still live there. */
typedef struct EpochLeakCandidate {
    uint32_t class_index, object_size;
    EpochId epoch_id;
    uint64_t epoch_era;
    char label[32];
    uint64_t age_sec, alloc_count, estimated_rss_bytes; /* age since its first slab; live objects; their slabs */
    uint32_t partial_slab_count, full_slab_count, reclaimable_slab_count;
} EpochLeakCandidate;

typedef struct EpochLeakReport {
    uint32_t version, threshold_sec;
    uint32_t candidate_count; /* found */
    uint32_t top_count;       /* in the array: the largest */
    EpochLeakCandidate* candidates;
} EpochLeakReport;

/* Lists the CLOSING epochs at least `threshold_sec` old in which objects live, by bytes, largest first, in at most
 * `max_top` rows. Returns candidate_count. O(slabs). */
SLAB_API uint32_t slab_detect_epoch_leaks(SlabAllocator* a, uint32_t threshold_sec, uint32_t max_top,
                                          EpochLeakReport* out);

/* Why allocations of a class left the fast path. The four causes are exclusive and sum to the hits. */
typedef struct SlowPathAttribution {
    uint32_t class_index, object_size;
    uint64_t total_slow_path_hits, cache_miss_count, epoch_closed_count, partial_null_count, partial_full_count;
    double cache_miss_pct, epoch_closed_pct, partial_null_pct, partial_full_pct;
    char recommendation[128];
} SlowPathAttribution;

typedef struct SlowPathReport {
    uint32_t version, class_count;
    SlowPathAttribution* classes; /* classes with hits */
} SlowPathReport;

/* Counts the slow paths of each class by cause. O(threads + slabs). */
SLAB_API void slab_analyze_slow_path(SlabAllocator* a, SlowPathReport* out);

/* A class of a closed incarnation. */
typedef struct EpochReclamation {
    uint32_t class_index;
    EpochId epoch_id;
    uint64_t epoch_era, slabs_recycled, bytes_madvised, rss_before, rss_after;
    int64_t rss_delta; /* before - after: positive when it fell */
    char label[32];
    bool was_closed;
} EpochReclamation;

typedef struct ReclamationReport {
    uint32_t version;
    uint64_t total_madvise_calls, total_madvise_bytes, total_madvise_failures;
    uint32_t epoch_count;     /* rows */
    EpochReclamation* epochs; /* oldest first: the last 256 closes by id or era, not ends of domains */
} ReclamationReport;

/* Lists pages given back to the system, by close. O(1). */
SLAB_API void slab_analyze_reclamation(SlabAllocator* a, ReclamationReport* out);

/* A live object. */
typedef struct SlabLiveObject {
    void* address;
    size_t usable_bytes;
    uint32_t class_index;
} SlabLiveObject;

/* Calls `fn` for each live object of the incarnation an epoch id names now (any state), until fn returns false. Returns
 * the number of calls. Exact while no thread allocates or frees there. Otherwise an object allocated or freed during
 * the walk may be left out, or freed already when `fn` is called for it. `fn` may not free the object it is called
 * for. O(slabs). */
SLAB_API uint64_t slab_epoch_walk(SlabAllocator* a, EpochId epoch, bool (*fn)(const SlabLiveObject* object, void* ctx),
                                  void* ctx);
/* Walks like slab_epoch_walk over the incarnation with this era, also if the ring has moved past it. */
SLAB_API uint64_t slab_epoch_walk_era(SlabAllocator* a, uint64_t era,
                                      bool (*fn)(const SlabLiveObject* object, void* ctx), void* ctx);

/* Writes the three reports and the health of locks and samples as text with ACTION lines: what to do, and about which
 * label. `write` is called as by slab_stats_json. Returns false with EINVAL for a NULL allocator or `write`. An ended
 * phase in which objects live is called a leak when it is 60 s old, and until then too young to judge. */
SLAB_API bool slab_doctor(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);
/* Writes like slab_doctor, but calls a phase a leak from an age of `leak_sec`, for programs whose phases drain sooner;
 * 0 if no phase is expected to drain any more. */
SLAB_API bool slab_doctor_ex(SlabAllocator* a, uint32_t leak_sec, bool (*write)(void* ctx, const char* bytes, size_t n),
                             void* ctx);

/* Limits of slab_gate. */
typedef struct SlabGateOptions {
    size_t struct_size;      /* sizeof(SlabGateOptions) */
    const char* label;       /* this label alone; NULL: each */
    uint32_t warm_up;        /* rounds before the first that counts: caches fill, libraries make their globals; 0: 3 */
    uint32_t rounds;         /* that count; 0: 5 */
    uint64_t objects, bytes; /* that a round may leave behind more than any before it */
} SlabGateOptions;

/* Tests for leaks: calls round(ctx), which may run any number of phases, and returns true if after none of the counted
 * rounds a label retains more than after any round before: objects that live in its open phases and its ended ones,
 * beyond `objects`, or a quarter more of their usable bytes, beyond `bytes` (the same objects take up to a quarter more
 * elsewhere). So a leak is found by the first round that leaves something on top, in a program that may keep other
 * things. options may be NULL: every label, nothing more. Returns false with ERANGE if a label retains more; with
 * EINVAL (NULL, bad options) and ENOMEM; `why` (may be NULL) then has a sentence of at most `why_bytes`, with the
 * label. Figures are exact where no other thread works. No lock is held while `round` runs. O(rounds * (slabs +
 * incarnations + labels)). */
SLAB_API bool slab_gate(SlabAllocator* a, const SlabGateOptions* options, void (*round)(void* ctx), void* ctx,
                        char* why, size_t why_bytes);

/* Writes the heap profile, option profile_bytes, in the format of pprof (profile.proto, not compressed): objects and
 * bytes allocated since the allocator was made, and in use now, by stack, by the label of their phase, and by that of
 * the scope that made them by slab_malloc_outside; docs/profile.md. `write` is called as by slab_stats_json. Returns
 * the bytes written; 0 if `write` refused some, with EINVAL for a NULL allocator or `write` and where no profile is
 * taken, with ENOMEM without memory. O(samples). */
SLAB_API size_t slab_profile_write(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);

#ifdef __cplusplus
}
#endif
#endif
