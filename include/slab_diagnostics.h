/*
 * slab_diagnostics.h - reports that answer questions: which phase leaks, why allocations are slow, whether the kernel
 * took the pages back, and which objects escaped.
 *
 * Arrays in reports belong to the caller, who must free() them; an empty array is NULL. Conventions are as in
 * slab_alloc.h: any thread may call these functions, and a NULL allocator gives empty reports. If memory runs out, the
 * arrays are NULL, the counts are 0 and errno is ENOMEM.
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
    /* age since the first slab; live objects; bytes of their slabs */
    uint64_t age_sec, alloc_count, estimated_rss_bytes;
    uint32_t partial_slab_count, full_slab_count, reclaimable_slab_count;
} EpochLeakCandidate;

typedef struct EpochLeakReport {
    uint32_t version, threshold_sec;
    uint32_t candidate_count; /* found */
    uint32_t top_count;       /* in the array, which has the largest */
    EpochLeakCandidate* candidates;
} EpochLeakReport;

/* Lists the CLOSING epochs that are at least `threshold_sec` old and have live objects, in at most `max_top` rows, with
 * the largest number of bytes first. Returns candidate_count. O(slabs). */
SLAB_API uint32_t slab_detect_epoch_leaks(SlabAllocator* a, uint32_t threshold_sec, uint32_t max_top,
                                          EpochLeakReport* out);

/* Causes by which allocations of a class left the fast path. The four causes exclude each other and sum to the hits. */
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
    int64_t rss_delta; /* before - after; positive if it fell */
    char label[32];
    bool was_closed;
} EpochReclamation;

typedef struct ReclamationReport {
    uint32_t version;
    uint64_t total_madvise_calls, total_madvise_bytes, total_madvise_failures;
    uint32_t epoch_count;     /* rows */
    EpochReclamation* epochs; /* the last 256 closes by id or era, oldest first; ends of domains are not included */
} ReclamationReport;

/* Lists the pages given back to the system by each close. O(1). */
SLAB_API void slab_analyze_reclamation(SlabAllocator* a, ReclamationReport* out);

/* A live object. */
typedef struct SlabLiveObject {
    void* address;
    size_t usable_bytes;
    uint32_t class_index;
} SlabLiveObject;

/* Calls `fn` for each live object of the incarnation that an epoch id names now, in any state, until `fn` returns
 * false. Returns the number of calls. The walk is exact while no thread allocates or frees there. Otherwise, an object
 * allocated or freed during the walk may be left out, or may be freed already when `fn` is called for it. `fn` must not
 * free the object for which it is called. O(slabs). */
SLAB_API uint64_t slab_epoch_walk(SlabAllocator* a, EpochId epoch, bool (*fn)(const SlabLiveObject* object, void* ctx),
                                  void* ctx);
/* Walks like slab_epoch_walk over the incarnation with this era, even if the ring has moved past it. */
SLAB_API uint64_t slab_epoch_walk_era(SlabAllocator* a, uint64_t era,
                                      bool (*fn)(const SlabLiveObject* object, void* ctx), void* ctx);

/* Writes the three reports and the health of locks and samples as text, with ACTION lines that say what to do, and
 * about which label. Calls `write` like slab_stats_json. Returns false and sets errno to EINVAL if the allocator or
 * `write` is NULL. The text calls an ended phase with live objects a leak once it is 60 s old, and until then too young
 * to judge. */
SLAB_API bool slab_doctor(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);
/* Writes like slab_doctor, but calls a phase a leak from an age of `leak_sec` on, for programs whose phases drain
 * sooner. Pass 0 if no phase is expected to drain any more. */
SLAB_API bool slab_doctor_ex(SlabAllocator* a, uint32_t leak_sec, bool (*write)(void* ctx, const char* bytes, size_t n),
                             void* ctx);

/* Limits of slab_gate. */
typedef struct SlabGateOptions {
    size_t struct_size; /* sizeof(SlabGateOptions) */
    const char* label;  /* this label only; NULL: every label */
    /* rounds before the first that counts, in which caches fill and libraries make their globals; 0: 3 */
    uint32_t warm_up;
    uint32_t rounds;         /* rounds that count; 0: 5 */
    uint64_t objects, bytes; /* amounts that a round may leave behind beyond those of any earlier round */
} SlabGateOptions;

/* Tests for leaks: calls round(ctx), which may run any number of phases, and compares what each label retains after
 * each counted round with what it retained after every earlier round. A label retains the objects that live in its open
 * and its ended phases. The label fails if it retains more objects by more than `objects`, or more usable bytes by more
 * than a quarter plus `bytes` (in another place, the same objects take up to a quarter more). So the first round that
 * leaves more behind reveals a leak, even in a program that keeps other things. If options is NULL, every label is
 * tested and nothing more may remain. Returns true if no label fails. Otherwise returns false and sets errno: ERANGE if
 * a label retains more, EINVAL for NULL or bad options, ENOMEM if memory runs out. `why` (may be NULL) then gets a
 * sentence of at most `why_bytes` bytes that names the label. The figures are exact if no other thread works. No lock
 * is held while `round` runs. O(rounds * (slabs + incarnations + labels)). */
SLAB_API bool slab_gate(SlabAllocator* a, const SlabGateOptions* options, void (*round)(void* ctx), void* ctx,
                        char* why, size_t why_bytes);

/* Writes the heap profile (option profile_bytes, docs/profile.md) in the format of pprof (profile.proto, not
 * compressed). The profile has the objects and bytes allocated since the allocator was made, and those in use now, by
 * stack and by the label of their phase. For objects made by slab_malloc_outside, it also has the label of the scope
 * that made them. Calls `write` like slab_stats_json. Returns the number of bytes written, or 0 if `write` refused
 * some. On failure, returns 0 and sets errno: EINVAL if the allocator or `write` is NULL or no profile is taken, ENOMEM
 * if memory runs out. O(samples). */
SLAB_API size_t slab_profile_write(SlabAllocator* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);

#ifdef __cplusplus
}
#endif
#endif
