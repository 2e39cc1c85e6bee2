/*
 * slab_lane.h - allocation by one thread in a phase, with the fast path inlined in the caller.
 *
 *     SlabLane lane;
 *     if (slab_lane_begin(&lane, a, "request")) {
 *         char* p = slab_lane_malloc(&lane, n);     // no call, for as long as the region lasts
 *         ...
 *         epoch_domain_end(lane.domain);
 *     }
 *
 * An object of a lane is an object of the lane's domain. The domain's calls free, resize, query and release it, from
 * any thread, and the domain's figures count it. slab_lane_malloc allocates and refuses like epoch_domain_malloc. In
 * addition, it refuses once the domain has moved on to another epoch (by epoch_domain_reset, or by an exit that ended
 * the old one); then open the lane again.
 *
 * Use a lane in a loop that makes many objects of up to 4 KiB in one phase, on one thread. Do not use it for a few
 * objects, since opening a lane costs about what ten calls save, or where most objects are freed singly before the
 * phase ends. Nor does it help in an epoch of the ring (epoch_domain_wrap), whose objects lie in size classes, or in a
 * library that does not know which allocator it gets. A lane works correctly there too, but it makes calls, and costs
 * more than a plain call.
 *
 * In these cases slab_lane_malloc calls the library, and is correct but slower:
 *   - on a thread other than the one that opened the lane, or on an exiting thread;
 *   - while the phase is closed or detached;
 *   - when a region is used up, or for more than 4 KiB;
 *   - with the option `shared` or with stand-ins (`by_malloc`, AddressSanitizer);
 *   - if the kernel has no membarrier, or the processor is neither x86-64 nor arm64;
 *   - if the library's records are not those of this header (SLAB_LANE_VERSION).
 *
 * A *run* goes further, in a domain that belongs to one thread alone (SLAB_DOMAIN_OWNER_ONLY). The run has the rest of
 * a region to itself, and an allocation touches only the run and two bytes of the region's map.
 *
 *     SlabDomainOptions o = {.struct_size = sizeof o, .label = "parse", .flags = SLAB_DOMAIN_OWNER_ONLY};
 *     epoch_domain_t* d = epoch_domain_create_ex(a, &o);
 *     SlabRun run;
 *     if (slab_run_begin(&run, d)) {
 *         char* p = slab_run_malloc(&run, n);
 *         ...
 *         slab_run_end(&run);
 *     }
 *     epoch_domain_destroy(d);
 *
 * Ownership: the lane is memory of the caller and owns nothing. Forget it when the phase has ended, and do not use it
 * once the allocator is gone. Thread safety: only one thread at a time may use a lane, and only on the thread that
 * opened it is the fast path inlined. Each thread of a domain opens a lane of its own; a thread may have several lanes,
 * even of one domain. Do not use a lane in a signal handler. A fork child may go on with a lane of the thread that
 * forked. Errors: those of epoch_domain_malloc. Complexity: O(1).
 */
#ifndef SLAB_LANE_H
#define SLAB_LANE_H

#include "epoch_domain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the records below. If the library has another version, its lanes always call. */
#define SLAB_LANE_VERSION 1u

/* 1 if this compiler inlines lanes; 0 if each slab_lane_malloc is a call. */
#ifndef SLAB_LANE_INLINE
#if defined(__linux__) && defined(__LP64__) && defined(__GNUC__) && (defined(__x86_64__) || defined(__aarch64__))
#define SLAB_LANE_INLINE 1
#else
#define SLAB_LANE_INLINE 0
#endif
#endif

/* The beginnings of the library's own records, as far as the inlined path reads them. Programs must not touch them. */
struct SlabLaneHeap_ {
    uint32_t unused_[2];
    uint64_t word, key, unused2_[2];
    struct SlabLaneRegion_* region;
};
struct SlabLaneRegion_ {
    uint64_t unused_;
    uint32_t issued, freed, rel, lim;
    uint8_t *base, *map;
    uint64_t unused2_[2];
    uint32_t unused3_;
    uint8_t life;
};

/* A lane, which may be copied. If all fields are 0, the lane is not open, and its allocations are refused. */
typedef struct SlabLane {
    epoch_domain_t* domain; /* may be read */
    uint64_t phase_, thread_;
    int64_t thread_at_;
    struct SlabLaneHeap_* heap_;
    uint64_t *busy_, live_, reserved_;
} SlabLane;

/* Open a lane for the inline functions below. `version` is SLAB_LANE_VERSION of the caller's header. */
SLAB_API bool slab_lane_open_as(SlabLane* lane, epoch_domain_t* d, uint32_t version);
SLAB_API bool slab_lane_begin_as(SlabLane* lane, SlabAllocator* a, const char* label, uint32_t version);
/* Result of slab_lane_malloc_called: the object, and the heap that the lane leads to from then on. */
typedef struct SlabLaneGot {
    void* p;
    struct SlabLaneHeap_* heap_;
} SlabLaneGot;
/* Allocates if the inlined path does not. Takes the lane's fields by value, so that the lane can live in registers. */
SLAB_API SlabLaneGot slab_lane_malloc_called(epoch_domain_t* domain, uint64_t phase, uint64_t thread,
                                             struct SlabLaneHeap_* heap, uint64_t* busy, size_t size);
/* Hands over the heap in which the inlined path has allocated p, because another thread has asked for it. Returns p. */
SLAB_API void* slab_lane_left(struct SlabLaneHeap_* heap, uint64_t* busy, void* p);

/* Opens a lane of the domain's current epoch for the calling thread, which need not be inside the domain. On failure,
 * returns false, leaves *lane not open, and sets errno to EINVAL for NULL, or to ESTALE if the domain was destroyed or
 * has ended. [any thread] O(1). */
static inline bool slab_lane_open(SlabLane* lane, epoch_domain_t* d) {
    SlabLane made; /* keeps the address of the caller's lane private, so that the lane can live in registers */
    bool ok = slab_lane_open_as(&made, d, SLAB_LANE_VERSION);
    *lane = made;
    return ok;
}

/* Begins a phase by epoch_domain_begin and opens a lane of it; lane->domain is then the thread's innermost scope.
 * epoch_domain_end(lane->domain) ends the phase. Returns false and leaves *lane not open if epoch_domain_begin fails.
 * [any thread] O(1). */
static inline bool slab_lane_begin(SlabLane* lane, SlabAllocator* a, const char* label) {
    SlabLane made;
    bool ok = slab_lane_begin_as(&made, a, label, SLAB_LANE_VERSION);
    *lane = made;
    return ok;
}

#if SLAB_LANE_INLINE
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this code is C */
#endif
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SLAB_LANE_WATCHED_ 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define SLAB_LANE_WATCHED_ 1
#endif

#if defined(__x86_64__)
/* Returns true on the thread with the number `thread`. `at` is the offset of a thread's number from its thread pointer.
 * The thread pointer is read anew each time, because a coroutine may continue on another thread. */
static inline bool slab_lane_on_thread_(int64_t at, uint64_t thread) {
    bool same;
    __asm__ __volatile__("cmp{q %%fs:(%1), %2| %2, QWORD PTR fs:[%1]}" : "=@cce"(same) : "r"(at), "r"(thread));
    return same;
}
#else
static inline bool slab_lane_on_thread_(int64_t at, uint64_t thread) {
    const char* pointer;
    __asm__ __volatile__("mrs %0, tpidr_el0" : "=r"(pointer));
    return *(const uint64_t*)(const void*)(pointer + at) == thread;
}
#endif
#if defined(__x86_64__) && !defined(SLAB_LANE_WATCHED_)
/* Compare or add in one instruction each. Compilers would first load an atomic into a register, and the address of a
 * memory word too, so the offsets are written out here. */
#define SLAB_LANE_CMP_(condition, letter, size, base, at, v, out)                 \
    __asm__ __volatile__("cmp{" letter " %2, %c3(%1)| " size " PTR [%1+%c3], %2}" \
                         : "=@cc" condition(out)                                  \
                         : "r"(base), "r"(v), "i"(at))
static inline bool slab_lane_is_of_(const struct SlabLaneHeap_* h, uint64_t phase) {
    bool same;
    SLAB_LANE_CMP_("e", "q", "QWORD", h, offsetof(struct SlabLaneHeap_, key), phase, same);
    return same;
}
static inline bool slab_lane_is_live_(const struct SlabLaneHeap_* h, uint64_t live) {
    bool same;
    SLAB_LANE_CMP_("e", "q", "QWORD", h, offsetof(struct SlabLaneHeap_, word), live, same);
    return same;
}
static inline bool slab_lane_reaches_(const struct SlabLaneRegion_* r, uint32_t end) {
    bool enough;
    SLAB_LANE_CMP_("ae", "l", "DWORD", r, offsetof(struct SlabLaneRegion_, lim), end, enough);
    return enough;
}
static inline void slab_lane_count_(struct SlabLaneRegion_* r) {
    __asm__ __volatile__("add{l $1, %c1(%0)| DWORD PTR [%0+%c1], 1}"
                         :
                         : "r"(r), "i"(offsetof(struct SlabLaneRegion_, issued))
                         : "cc", "memory");
}
#undef SLAB_LANE_CMP_
#else
static inline bool slab_lane_is_of_(const struct SlabLaneHeap_* h, uint64_t phase) {
    __asm__("" : "+r"(h)); /* a lane of zeros is refused before this, but compilers would see a read of NULL */
    return __atomic_load_n(&h->key, __ATOMIC_RELAXED) == phase;
}
static inline bool slab_lane_is_live_(const struct SlabLaneHeap_* h, uint64_t live) {
    return __atomic_load_n(&h->word, __ATOMIC_RELAXED) == live;
}
static inline bool slab_lane_reaches_(const struct SlabLaneRegion_* r, uint32_t end) {
    return __atomic_load_n(&r->lim, __ATOMIC_RELAXED) >= end;
}
static inline void slab_lane_count_(struct SlabLaneRegion_* r) {
    __atomic_store_n(&r->issued, __atomic_load_n(&r->issued, __ATOMIC_RELAXED) + 1, __ATOMIC_RELEASE);
}
#endif
#define SLAB_LANE_UNLIKELY_(x) __builtin_expect(!!(x), 0)
#else
#define SLAB_LANE_UNLIKELY_(x) (x)
#endif

/* Allocates by a call. */
static inline void* slab_lane_call_(SlabLane* lane, size_t size) {
    SlabLaneGot got =
        slab_lane_malloc_called(lane->domain, lane->phase_, lane->thread_, lane->heap_, lane->busy_, size);
    lane->heap_ = got.heap_;
    return got.p;
}

/* Allocates `size` bytes, 16-byte aligned, in the lane's phase, like epoch_domain_malloc. On failure, returns NULL and
 * sets errno to EINVAL (size 0, or the lane is not open), ESTALE (its phase has ended), ENOMEM or EDQUOT. O(1). */
SLAB_ALLOC_SIZE(2) static inline void* slab_lane_malloc(SlabLane* lane, size_t size) {
#if SLAB_LANE_INLINE
    /* This is the library's own fast path, word for word: tsi_bump_fast (src/heap/bump.h) states its invariants, and
     * the partner of each order. The check for room is inside the bracket, so that the region of a heap that the thread
     * no longer owns is not touched. */
    struct SlabLaneHeap_* h = lane->heap_;
    uint64_t *busy = lane->busy_, live = lane->live_;
    size_t last = (size - 1) | 15; /* of its bytes; 0 becomes the largest */
    if (SLAB_LANE_UNLIKELY_(last >= 4096 || !slab_lane_on_thread_(lane->thread_at_, lane->thread_) ||
                            !slab_lane_is_of_(h, lane->phase_)))
        return slab_lane_call_(lane, size);
    if (h == NULL) __builtin_unreachable(); /* for compilers: a lane that is not open fails the checks above */
    struct SlabLaneRegion_* r = __atomic_load_n(&h->region, __ATOMIC_RELAXED);
    __atomic_store_n(busy, (uint64_t)(uintptr_t)r, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SLAB_LANE_UNLIKELY_(!slab_lane_is_live_(h, live))) return slab_lane_call_(lane, size);
    uint32_t rel = __atomic_load_n(&r->rel, __ATOMIC_RELAXED), end = rel + (uint32_t)last + 1;
    if (SLAB_LANE_UNLIKELY_(!slab_lane_reaches_(r, end))) return slab_lane_call_(lane, size);
    __atomic_store_n(&r->map[rel >> 4], r->life, __ATOMIC_RELAXED);
    __atomic_store_n(&r->rel, end, __ATOMIC_RELEASE);
    slab_lane_count_(r);
    void* p = r->base + rel;
    __atomic_store_n(busy, 0, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SLAB_LANE_UNLIKELY_(!slab_lane_is_live_(h, live))) return slab_lane_left(h, busy, p);
    return p;
#else
    return slab_lane_call_(lane, size);
#endif
}

/* ---- runs ---- */

/* A run. If all fields are 0, the run is not open, and its allocations are refused. A run must not be copied, because
 * each copy would hand out the same memory. */
typedef struct SlabRun {
    epoch_domain_t* domain; /* may be read */
    uintptr_t at_, end_, map_, life_, gap_;
    uint64_t count_, phase_, thread_;
    int64_t thread_at_;
    void *region_, *got_;
    uint32_t from_, reserved_;
} SlabRun;

/* Begins a run. `version` is SLAB_LANE_VERSION of the caller's header. */
SLAB_API bool slab_run_begin_as(SlabRun* run, epoch_domain_t* d, uint32_t version);
/* Allocates if the inlined path does not. Takes and returns the run by value, so that the run can live in registers;
 * the object is in got_. */
SLAB_API SlabRun slab_run_malloc_called(SlabRun run, size_t size);
/* Ends a run. */
SLAB_API bool slab_run_end_as(SlabRun run);

/* Begins a run in the domain's current epoch. Until slab_run_end, the thread stays with that epoch: calls that end,
 * reset, detach or enter the domain, and an exit that would end its epoch, are refused (EBUSY, one misuse). The
 * domain's other calls work as before, and objects of the run are freed, resized and queried like others, from any
 * thread. The allocator's figures count allocations of the run once their region is used up or the run ends; live
 * objects count immediately. On failure, returns false, leaves *run not open and sets errno. EINVAL: d is NULL, or
 * lacks SLAB_DOMAIN_OWNER_ONLY. EBUSY: the domain is another thread's, or has a run already. ESTALE: the domain has
 * ended. O(1). */
static inline bool slab_run_begin(SlabRun* run, epoch_domain_t* d) {
    SlabRun made;
    bool ok = slab_run_begin_as(&made, d, SLAB_LANE_VERSION);
    *run = made;
    return ok;
}

/* Allocates `size` bytes, 16-byte aligned, like epoch_domain_malloc. Call it only on the thread that began the run, and
 * only until the run ends. This is checked (NULL, EBUSY, ESTALE) if the path is not inlined or NDEBUG is not defined;
 * otherwise a wrong call would hand out memory that is in use. Functions that an allocation of the run calls, such as a
 * budget function, must not touch the run: using or ending it is refused (EBUSY, one misuse). On failure, returns NULL
 * and sets errno to EINVAL (size 0, or the run is not open), ENOMEM or EDQUOT. A fork child may go on with the run of
 * the thread that forked. O(1). */
SLAB_ALLOC_SIZE(2) static inline void* slab_run_malloc(SlabRun* run, size_t size) {
    size_t last = (size - 1) | 15; /* of its bytes; 0 becomes the largest */
    uintptr_t at = run->at_;
#if !defined(NDEBUG) && SLAB_LANE_INLINE
    bool mine = run->thread_ != 0 && slab_lane_on_thread_(run->thread_at_, run->thread_);
#else
    bool mine = true;
#endif
    if (!mine || last >= 4096 || last >= run->end_ - at) {
        SlabRun was = *run;
        run->at_ = run->end_ = 0; /* so that functions that the call runs are refused too */
        *run = slab_run_malloc_called(was, size);
        return run->got_;
    }
    uintptr_t end = at + last + 1;
    run->at_ = end;
    run->count_++;
    /* The start of the rest, which bounds the object, is stored first. release: pairs with tsi_byte_check, which then
     * finds both. */
    __atomic_store_n((uint8_t*)(run->map_ + (end >> 4)), (uint8_t)run->gap_, __ATOMIC_RELAXED);
    __atomic_store_n((uint8_t*)(run->map_ + (at >> 4)), (uint8_t)run->life_, __ATOMIC_RELEASE);
    return (void*)at;
}

/* Ends the run; its objects stay, and the domain may end. In any case, *run is not open afterwards. On failure, returns
 * false and sets errno: EINVAL if the run is not open, EBUSY on another thread, ESTALE if its epoch has ended. The
 * epoch has ended if its thread exited with the run open. O(1). */
static inline bool slab_run_end(SlabRun* run) {
    SlabRun ended = *run;
    run->domain = NULL;
    run->at_ = run->end_ = 0;
    run->thread_ = 0;
    return slab_run_end_as(ended);
}

#if SLAB_LANE_INLINE && defined(__cplusplus)
#pragma GCC diagnostic pop
#endif

#ifdef __cplusplus
}
#endif

#endif
