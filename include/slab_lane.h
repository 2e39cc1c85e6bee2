/*
 * slab_lane.h - a phase as one thread allocates in it, with the fast path of the allocation inlined in the caller.
 *
 *     SlabLane lane;
 *     if (slab_lane_begin(&lane, a, "request")) {
 *         char* p = slab_lane_malloc(&lane, n);     // no call, for as long as the region lasts
 *         ...
 *         epoch_domain_end(lane.domain);
 *     }
 *
 * An object of a lane is an object of its domain: freed, resized, asked about and released by the same calls, from any
 * thread, and counted in the same figures. slab_lane_malloc allocates and refuses like epoch_domain_malloc. In addition
 * it refuses once the domain has gone on to another epoch (epoch_domain_reset, an exit that ended it): open the lane
 * again.
 *
 * When to use it: a loop that makes many objects of up to 4 KiB in one phase, on one thread. When not to: for a few
 * objects, since opening costs about what ten calls save; in an epoch of the ring (epoch_domain_wrap), whose objects
 * lie in size classes; where most objects are freed one by one before the phase ends; in a library that does not know
 * which allocator it gets. A lane is right there, too, but it calls, and costs more than the call alone.
 *
 * When it calls: on another thread than the one that opened it; while the phase is closed or detached; as a region is
 * used up; for more than 4 KiB; with the option `shared`, with stand-ins (`by_malloc`, AddressSanitizer), where the
 * kernel has no membarrier; in a thread that is leaving; where the processor is none of x86-64 and arm64; and where the
 * library has other records than this header knows (SLAB_LANE_VERSION). Then slab_lane_malloc is right and slower.
 *
 * A *run* goes further, in a domain that is one thread's alone (SLAB_DOMAIN_OWNER_ONLY): it has the rest of a region to
 * itself, and an allocation touches the run, two bytes of the region's map and nothing else.
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
 * Ownership: the lane is the caller's memory and owns nothing; forget it when the phase has ended, and do not use it
 * once the allocator is gone. Thread safety: a lane is for one thread at a time, and inlines on the one that opened it;
 * a thread may have several, also of one domain; each thread of a domain opens its own. Do not use a lane in a signal
 * handler. A fork child may go on with a lane of the thread that forked. Errors: those of epoch_domain_malloc.
 * Complexity: O(1).
 */
#ifndef SLAB_LANE_H
#define SLAB_LANE_H

#include "epoch_domain.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Version of the records below. A library with another version gives lanes that always call. */
#define SLAB_LANE_VERSION 1u

/* Whether this compiler inlines lanes; 0: each slab_lane_malloc is a call. */
#ifndef SLAB_LANE_INLINE
#if defined(__linux__) && defined(__LP64__) && defined(__GNUC__) && (defined(__x86_64__) || defined(__aarch64__))
#define SLAB_LANE_INLINE 1
#else
#define SLAB_LANE_INLINE 0
#endif
#endif

/* The beginnings of the library's own records, as far as the inlined path reads them. No program touches them. */
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

/* A lane. All 0: none, whose allocations are refused. May be copied. */
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
/* Allocates where the inlined path does not. Takes the lane's fields by value, so that the lane may live in
 * registers. */
SLAB_API SlabLaneGot slab_lane_malloc_called(epoch_domain_t* domain, uint64_t phase, uint64_t thread,
                                             struct SlabLaneHeap_* heap, uint64_t* busy, size_t size);
/* Hands over the heap in which the inlined path has allocated p, because another thread has asked for it. Returns p. */
SLAB_API void* slab_lane_left(struct SlabLaneHeap_* heap, uint64_t* busy, void* p);

/* Opens a lane of the domain's present epoch for the calling thread, which need not be inside of the domain. Returns
 * false, and a lane that is none, with EINVAL for NULL, ESTALE if the domain was destroyed or has ended. [any thread]
 * O(1). */
static inline bool slab_lane_open(SlabLane* lane, epoch_domain_t* d) {
    SlabLane made; /* so that the address of the caller's lane goes nowhere, and it may live in registers */
    bool ok = slab_lane_open_as(&made, d, SLAB_LANE_VERSION);
    *lane = made;
    return ok;
}

/* Begins a phase by epoch_domain_begin, in which lane->domain is the thread's innermost scope, and opens a lane of it.
 * epoch_domain_end(lane->domain) ends it. Returns false, and a lane that is none, where epoch_domain_begin fails. [any
 * thread] O(1). */
static inline bool slab_lane_begin(SlabLane* lane, SlabAllocator* a, const char* label) {
    SlabLane made;
    bool ok = slab_lane_begin_as(&made, a, label, SLAB_LANE_VERSION);
    *lane = made;
    return ok;
}

#if SLAB_LANE_INLINE
#ifdef __cplusplus
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wold-style-cast" /* it is C */
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
/* Returns true on the thread with the number `thread`. `at` is where a thread keeps its number, from its thread
 * pointer, which is read anew each time: a coroutine may go on on another thread. */
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
/* Compare or add in one instruction each, where compilers load an atomic into a register first, and the address of a
 * word in memory, too: so the offsets stand here. */
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
    __asm__("" : "+r"(h)); /* a lane of zeros is refused before this; inlined, it would look like a read of NULL */
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

/* Allocates `size` bytes, 16-byte aligned, in the lane's phase, like epoch_domain_malloc. Returns NULL with EINVAL for
 * size 0 or a lane that is none, ESTALE if its phase has ended, ENOMEM, EDQUOT. O(1). */
SLAB_ALLOC_SIZE(2) static inline void* slab_lane_malloc(SlabLane* lane, size_t size) {
#if SLAB_LANE_INLINE
    /* The library's own fast path, word for word: tsi_bump_fast (src/heap/bump.h) has its invariants, and the partner
     * of each order. The check for room stands inside of the bracket, so that the region of a heap that the thread no
     * longer owns is not touched. */
    struct SlabLaneHeap_* h = lane->heap_;
    uint64_t *busy = lane->busy_, live = lane->live_;
    size_t last = (size - 1) | 15; /* of its bytes; 0 becomes the largest */
    if (SLAB_LANE_UNLIKELY_(last >= 4096 || !slab_lane_on_thread_(lane->thread_at_, lane->thread_) ||
                            !slab_lane_is_of_(h, lane->phase_)))
        return slab_lane_call_(lane, size);
    if (h == NULL) __builtin_unreachable(); /* only in a lane that is none, which no thread passes: for compilers */
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

/* A run. All 0: none, whose allocations are refused. Must not be copied: each copy would hand out the same memory. */
typedef struct SlabRun {
    epoch_domain_t* domain; /* may be read */
    uintptr_t at_, end_, map_, life_, gap_;
    uint64_t count_, phase_, thread_;
    int64_t thread_at_;
    void *region_, *got_;
    uint32_t from_, reserved_;
} SlabRun;

/* Begins a run. `version` as above. */
SLAB_API bool slab_run_begin_as(SlabRun* run, epoch_domain_t* d, uint32_t version);
/* Allocates where the inlined path does not. Takes and returns the run by value, so that it may live in registers; the
 * object is in got_. */
SLAB_API SlabRun slab_run_malloc_called(SlabRun run, size_t size);
/* Ends a run. */
SLAB_API bool slab_run_end_as(SlabRun run);

/* Begins a run in the domain's present epoch. Until slab_run_end the thread stays with that epoch: ending, resetting,
 * detaching and entering it, and an exit that would end it, are refused (EBUSY, one misuse). The domain's other calls
 * work as before, and objects of the run are freed, resized and asked about like others, from any thread. The
 * allocator's figures count them once their region is used up, or the run ends; live objects count at once. Returns
 * false, and a run that is none, with EINVAL for NULL and for a domain without SLAB_DOMAIN_OWNER_ONLY, EBUSY on another
 * thread than the domain's or while it has a run already, ESTALE if it has ended. O(1). */
static inline bool slab_run_begin(SlabRun* run, epoch_domain_t* d) {
    SlabRun made;
    bool ok = slab_run_begin_as(&made, d, SLAB_LANE_VERSION);
    *run = made;
    return ok;
}

/* Allocates `size` bytes, 16-byte aligned, like epoch_domain_malloc. Call it only on the thread that began the run, and
 * not once the run has ended: that is checked (NULL, EBUSY, ESTALE) where the path is not inlined, and where NDEBUG is
 * not defined; unchecked, it would hand out memory that is in use. Functions that an allocation of the run calls, that
 * of a budget among them, must not touch the run: using or ending it is refused (EBUSY, one misuse). Returns NULL with
 * EINVAL for size 0 or a run that is none, ENOMEM, EDQUOT. A fork child may go on with the run of the thread that
 * forked. O(1). */
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
        run->at_ = run->end_ = 0; /* so that functions which the call runs are refused, too */
        *run = slab_run_malloc_called(was, size);
        return run->got_;
    }
    uintptr_t end = at + last + 1;
    run->at_ = end;
    run->count_++;
    /* First the start of the rest, which bounds the object. release: pairs with tsi_byte_check, which then finds
     * both. */
    __atomic_store_n((uint8_t*)(run->map_ + (end >> 4)), (uint8_t)run->gap_, __ATOMIC_RELAXED);
    __atomic_store_n((uint8_t*)(run->map_ + (at >> 4)), (uint8_t)run->life_, __ATOMIC_RELEASE);
    return (void*)at;
}

/* Ends the run; its objects stay, and the domain may end. Returns false with EINVAL for a run that is none, EBUSY on
 * another thread, ESTALE if its epoch has ended, as it does where a thread exits with a run open. The run is then none.
 * O(1). */
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
