/*
 * slab_lane.h - lanes and runs: fast allocation by one thread in one phase, inlined in the caller.
 *
 * A lane (SlabLane) lets one thread allocate in a domain (epoch_domain.h) without a function call.
 *
 *     SlabLane lane;
 *     if (slab_lane_begin(&lane, a, "request")) {
 *         char* p = slab_lane_malloc(&lane, n);     // no function call while the region has room
 *         ...
 *         epoch_domain_end(lane.domain);
 *     }
 *
 * Objects allocated through a lane are ordinary objects of the lane's domain. Any thread can free, resize or query
 * these objects. They end with the domain's phase and are included in the domain's statistics. slab_lane_malloc behaves
 * like epoch_domain_malloc, except that it fails once the domain has moved on to another epoch. The domain moves on
 * after epoch_domain_reset, or after an exit that ended the old epoch. In that case, open the lane again.
 *
 * Use a lane in a loop that allocates many objects of up to 4 KiB in one phase, on one thread. Opening a lane costs
 * about as much time as the lane saves in ten allocations. Do not use a lane in these cases:
 *   - The phase allocates only a few objects.
 *   - Most objects are freed one by one before the phase ends.
 *   - The epoch is a ring epoch (epoch_domain_wrap), whose objects lie in size classes.
 *   - The code is a library that works with any allocator that its callers pass.
 *
 * A lane still works correctly in these cases. In the last two cases, however, slab_lane_malloc can become a call to
 * the library, which costs more than epoch_domain_malloc.
 *
 * slab_lane_malloc calls the library, which is slower but correct, in these cases:
 *   - on a thread other than the one that opened the lane, or on an exiting thread;
 *   - while the phase is closed or detached;
 *   - when a region (the block of memory that the lane allocates from) is used up, or for objects of more than 4 KiB;
 *   - with the option `shared`, or with the option `hardened` or one of its parts (docs/hardened.md);
 *   - if each object is a malloc block (the option `by_malloc`, or AddressSanitizer);
 *   - if the kernel has no membarrier, or the processor is neither x86-64 nor arm64;
 *   - if the program and the library have different values of SLAB_LANE_VERSION.
 *
 * A run (SlabRun) is faster still, but needs a domain that belongs to one thread alone (SLAB_DOMAIN_OWNER_ONLY). A run
 * reserves the unused part of a region for itself. An allocation then touches only the run and two bytes of the
 * region's map, which marks where objects start.
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
 * Ownership: the caller provides the SlabLane structure. A lane owns nothing and need not be closed; stop using the
 * lane when the phase has ended. Do not use a lane after its allocator has been destroyed.
 *
 * Thread safety: only one thread at a time may use a lane, and only the thread that opened the lane takes the inlined
 * fast path. If several threads allocate in a domain, each of them should open its own lane. A thread may have several
 * lanes, even in one domain. Do not use a lane in a signal handler. After a fork, the child may continue to use a lane
 * of the thread that forked.
 *
 * Errors: the same as for epoch_domain_malloc. Complexity: O(1).
 */
#ifndef SLAB_LANE_H
#define SLAB_LANE_H

#include "epoch_domain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the structures below. If the library's version differs, every allocation through a lane calls the
 * library. */
#define SLAB_LANE_VERSION 1u

/* 1 if this compiler inlines the fast path; 0 if every call of slab_lane_malloc calls the library. */
#ifndef SLAB_LANE_INLINE
#if defined(__linux__) && defined(__LP64__) && defined(__GNUC__) && (defined(__x86_64__) || defined(__aarch64__))
#define SLAB_LANE_INLINE 1
#else
#define SLAB_LANE_INLINE 0
#endif
#endif

/* The first fields of two internal structures of the library, up to the last field that the inlined path uses. Programs
 * must not access these structures. */
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

/* A lane. Programs may copy a lane. If all fields are 0, the lane is not open and refuses allocations. */
typedef struct SlabLane {
    epoch_domain_t* domain; /* programs may read this field */
    uint64_t phase_, thread_;
    int64_t thread_at_;
    struct SlabLaneHeap_* heap_;
    uint64_t *busy_, live_, reserved_;
} SlabLane;

/* Open a lane on behalf of the inline functions below. `version` is the SLAB_LANE_VERSION that the caller was compiled
 * with. */
SLAB_API bool slab_lane_open_as(SlabLane* lane, epoch_domain_t* d, uint32_t version);
SLAB_API bool slab_lane_begin_as(SlabLane* lane, SlabAllocator* a, const char* label, uint32_t version);
/* Result of slab_lane_malloc_called: the object, and the internal heap that the lane allocates from afterwards. */
typedef struct SlabLaneGot {
    void* p;
    struct SlabLaneHeap_* heap_;
} SlabLaneGot;
/* Allocates when the inlined path cannot. Takes the lane's fields by value, so that compilers can keep the lane in
 * registers. */
SLAB_API SlabLaneGot slab_lane_malloc_called(epoch_domain_t* domain, uint64_t phase, uint64_t thread,
                                             struct SlabLaneHeap_* heap, uint64_t* busy, size_t size);
/* Hands the heap over to another thread that requested it while the inlined path was allocating p. Returns p. */
SLAB_API void* slab_lane_left(struct SlabLaneHeap_* heap, uint64_t* busy, void* p);

/* Opens a lane in the domain's current epoch for the calling thread, which need not be inside the domain. On failure,
 * returns false, sets all fields of *lane to 0, and sets errno: EINVAL if d is NULL, and ESTALE if the domain was
 * destroyed or has ended. [any thread] O(1). */
static inline bool slab_lane_open(SlabLane* lane, epoch_domain_t* d) {
    SlabLane made; /* the address of the caller's lane does not escape, so compilers can keep the lane in registers */
    bool ok = slab_lane_open_as(&made, d, SLAB_LANE_VERSION);
    *lane = made;
    return ok;
}

/* Begins a phase with epoch_domain_begin and opens a lane in it. Afterwards, lane->domain is the thread's innermost
 * scope. End the phase with epoch_domain_end(lane->domain). If epoch_domain_begin fails, returns false and sets all
 * fields of *lane to 0. [any thread] O(1). */
static inline bool slab_lane_begin(SlabLane* lane, SlabAllocator* a, const char* label) {
    SlabLane made;
    bool ok = slab_lane_begin_as(&made, a, label, SLAB_LANE_VERSION);
    *lane = made;
    return ok;
}

#if SLAB_LANE_INLINE
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* this header is C code */
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
/* Returns true if the calling thread has the number `thread`. `at` is the distance from the thread pointer to the
 * thread's number. Each call reads the thread pointer anew, because a coroutine can resume on another thread. */
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
/* Each of the functions below compares or adds in one instruction. If these functions used C atomics, the compiler
 * would first put the field's value and the field's address into registers. The assembly code avoids this step by using
 * the offsets of the fields. */
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
    __asm__("" : "+r"(h)); /* hides a possible NULL from compilers; a lane of zeros has already been refused */
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

/* Allocates by calling the library, and updates the lane's heap. */
static inline void* slab_lane_call_(SlabLane* lane, size_t size) {
    SlabLaneGot got =
        slab_lane_malloc_called(lane->domain, lane->phase_, lane->thread_, lane->heap_, lane->busy_, size);
    lane->heap_ = got.heap_;
    return got.p;
}

/* Allocates `size` bytes in the lane's phase, aligned to 16 bytes, like epoch_domain_malloc. On failure, returns NULL
 * and sets errno: EINVAL if `size` is 0 or the lane is not open, ESTALE if the lane's phase has ended, ENOMEM if memory
 * runs out, and EDQUOT if a budget would be exceeded. O(1). */
SLAB_ALLOC_SIZE(2) static inline void* slab_lane_malloc(SlabLane* lane, size_t size) {
#if SLAB_LANE_INLINE
    /* A copy of tsi_bump_fast, the library's own fast path. The header src/heap/bump.h states the invariants and, for
     * each memory order, the access that it pairs with. The region is touched only after the check that the thread
     * still owns the heap. If another thread has taken the heap, the region may no longer exist. */
    struct SlabLaneHeap_* h = lane->heap_;
    uint64_t *busy = lane->busy_, live = lane->live_;
    size_t last = (size - 1) | 15; /* offset of the last byte, rounded up; SIZE_MAX if size is 0 */
    if (SLAB_LANE_UNLIKELY_(last >= 4096 || !slab_lane_on_thread_(lane->thread_at_, lane->thread_) ||
                            !slab_lane_is_of_(h, lane->phase_)))
        return slab_lane_call_(lane, size);
    if (h == NULL) __builtin_unreachable(); /* h is not NULL, because a lane that is not open fails the checks above */
    struct SlabLaneRegion_* r = __atomic_load_n(&h->region, __ATOMIC_RELAXED);
    __atomic_store_n(busy, (uint64_t)(uintptr_t)r, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (SLAB_LANE_UNLIKELY_(!slab_lane_is_live_(h, live))) return slab_lane_call_(lane, size);
    uint32_t rel = __atomic_load_n(&r->rel, __ATOMIC_RELAXED), end = rel + (uint32_t)last + 1;
    if (SLAB_LANE_UNLIKELY_(!slab_lane_reaches_(r, end))) return slab_lane_call_(lane, size);
    __atomic_store_n(&r->map[rel >> 4], r->life, __ATOMIC_RELEASE);
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

/* A run. If all fields are 0, the run is not open and refuses allocations. Never copy a run: each copy would hand out
 * the same memory. */
typedef struct SlabRun {
    epoch_domain_t* domain; /* programs may read this field */
    uintptr_t at_, end_, map_, life_, gap_;
    uint64_t count_, phase_, thread_;
    int64_t thread_at_;
    void *region_, *got_;
} SlabRun;

/* Begins a run on behalf of slab_run_begin. `version` is the SLAB_LANE_VERSION that the caller was compiled with. */
SLAB_API bool slab_run_begin_as(SlabRun* run, epoch_domain_t* d, uint32_t version);
/* Allocates when the inlined path cannot. Takes and returns the run by value, so that compilers can keep the run in
 * registers. The field got_ of the returned run is the object, or NULL. */
SLAB_API SlabRun slab_run_malloc_called(SlabRun run, size_t size);
/* Ends a run on behalf of slab_run_end, with the same result. */
SLAB_API bool slab_run_end_as(SlabRun run);

/* Begins a run in the domain's current epoch. Until slab_run_end, the domain keeps that epoch. Calls that end, reset,
 * detach or enter the domain are refused, and so is an exit that would end the epoch. Each refusal sets errno to EBUSY
 * and is counted as a misuse. All other functions of the domain still work, and any thread can free, resize or query
 * objects of the run. Objects of the run appear in the allocator's statistics immediately. An object at whose end a run
 * has ended moves when it grows. On failure, returns false, sets all fields of *run to 0, and sets errno: EINVAL if d
 * is NULL or lacks SLAB_DOMAIN_OWNER_ONLY, EBUSY if the domain belongs to another thread or already has a run, and
 * ESTALE if the domain has ended. O(1). */
static inline bool slab_run_begin(SlabRun* run, epoch_domain_t* d) {
    SlabRun made;
    bool ok = slab_run_begin_as(&made, d, SLAB_LANE_VERSION);
    *run = made;
    return ok;
}

/* Allocates `size` bytes in the run's epoch, aligned to 16 bytes as by epoch_domain_malloc. Call this function only on
 * the thread that began the run, and only before the run ends. If NDEBUG is not defined or the fast path is not
 * inlined, a call that breaks this rule returns NULL and sets errno to EBUSY or ESTALE. Otherwise, such a call can
 * return memory that is already in use. Functions that the library calls during an allocation, such as budget
 * functions, must not use or end the run. If they do, their call is refused with EBUSY and counted as a misuse. On
 * failure, returns NULL and sets errno: EINVAL if `size` is 0 or the run is not open, ENOMEM if memory runs out, and
 * EDQUOT if a budget would be exceeded. After a fork, the child may continue the run of the thread that forked. O(1).
 * */
SLAB_ALLOC_SIZE(2) static inline void* slab_run_malloc(SlabRun* run, size_t size) {
    size_t last = (size - 1) | 15; /* offset of the last byte, rounded up; SIZE_MAX if size is 0 */
    uintptr_t at = run->at_;
#if !defined(NDEBUG) && SLAB_LANE_INLINE
    bool mine = run->thread_ != 0 && slab_lane_on_thread_(run->thread_at_, run->thread_);
#else
    bool mine = true;
#endif
    if (!mine || last >= 4096 || last >= run->end_ - at) {
        SlabRun was = *run;
        run->at_ = run->end_ = 0; /* so that callbacks during this call cannot use the run */
        *run = slab_run_malloc_called(was, size);
        return run->got_;
    }
    uintptr_t end = at + last + 1;
    run->at_ = end;
    run->count_++;
    /* First stores the mark that follows the object and shows where the object ends. The release store pairs with
     * tsi_byte_check and load16_in_order: a thread that reads the mark of the object also sees the one that follows. */
    __atomic_store_n((uint8_t*)(run->map_ + (end >> 4)), (uint8_t)run->gap_, __ATOMIC_RELAXED);
    __atomic_store_n((uint8_t*)(run->map_ + (at >> 4)), (uint8_t)run->life_, __ATOMIC_RELEASE);
    return (void*)at;
}

/* Ends the run. The objects of the run stay valid. Calls that end, reset, detach or enter the domain are no longer
 * refused. Afterwards, *run is not open, even if the call fails. On failure, returns false and sets errno: EINVAL if
 * the run is not open, EBUSY on a thread that did not begin the run, and ESTALE if the run's epoch ended because the
 * thread that began the run exited. O(1). */
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
