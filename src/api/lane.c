/*
 * lane.c - lanes: a phase as one thread allocates in it. The fast path is in slab_lane.h, inlined in the program; the
 * rest is here.
 *
 * A lane leads to a heap like a domain does (thread_heaps.h, H1), and to its thread's binding. The inlined path is
 * tsi_bump_fast with the same words, names, orders and checks, so it has the invariants of bracket.h and these:
 *
 *   Y1  Only the thread whose number the lane carries names anything in the binding's `busy`. Numbers of threads are
 *       never used again, and a thread keeps its binding for as long as it and the allocator live. A thread that is
 *       leaving has no number.
 *   Y2  A thread has no number once its brackets must be fenced, because the inlined path would not fence them.
 *   Y3  The key decides which phase the heap is in, and the word in the bracket whether it is the thread's: in this
 *       order, as H1 has it. The key is compared with the lane's reference, so a domain that has gone on to another
 *       incarnation does not match.
 *   Y4  A region is touched only after the check. A region that the heap named before may be gone.
 *   Y5  The records' beginnings are those of slab_lane.h, or the lane has been opened under another version, and calls.
 */
#include "slab_lane.h"

#include "api/domain.h"
#include "api/alloc_paths.h"

#include "heap/thread_heaps.h"

#define SAME(public_, its, type, own)                                            \
    _Static_assert(offsetof(struct public_, its) == offsetof(type, own) &&       \
                       sizeof((struct public_*)0)->its == sizeof((type*)0)->own, \
                   "slab_lane.h knows where it is: change SLAB_LANE_VERSION with it")
SAME(SlabLaneHeap_, word, TsiHeap, word);
SAME(SlabLaneHeap_, key, TsiHeap, key);
SAME(SlabLaneHeap_, region, TsiHeap, region);
SAME(SlabLaneRegion_, issued, TsiRegion, issued);
SAME(SlabLaneRegion_, freed, TsiRegion, freed);
SAME(SlabLaneRegion_, rel, TsiRegion, rel);
SAME(SlabLaneRegion_, lim, TsiRegion, lim);
SAME(SlabLaneRegion_, base, TsiRegion, base);
SAME(SlabLaneRegion_, map, TsiRegion, map);
SAME(SlabLaneRegion_, life, TsiRegion, gen);
_Static_assert(sizeof((TsiBinding*)0)->busy == sizeof *((SlabLane*)0)->busy_, "so does what it names");
_Static_assert(SLAB_LANE_VERSION == 1 && TSI_GRANULE == 16 && TSI_BUMP_MAX == 4096, "so does the inlined path");
_Static_assert(sizeof(SlabLane) == 64, "programs that were built before have lanes of this size");

/* Sets *at to the distance in bytes from the thread pointer to tsi_tls.number, one and the same for all threads.
 * Returns true; false, with *at left alone, where lanes are not inlined or the distance may differ between threads
 * (TLS descriptors). [any thread, needs no lock] */
static bool number_at(int64_t* at) {
#if !SLAB_LANE_INLINE || defined(TSI_TLS_DESCRIPTORS)
    (void)at;
    return false;
#else
    uintptr_t pointer;
#if defined(__x86_64__)
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
#else
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    *at = (int64_t)((uintptr_t)&tsi_tls.number - pointer);
    return true;
#endif
}

/* Returns the binding whose field `busy` is at the address that a lane carries. [any thread, needs no lock] */
static TsiBinding* binding_of(uint64_t* busy) {
    return (TsiBinding*)(void*)((uint8_t*)busy - offsetof(TsiBinding, busy));
}

/* Returns the heap behind the program's name for it. [any thread, needs no lock] */
static TsiHeap* heap_of(struct SlabLaneHeap_* heap) { return (TsiHeap*)(void*)heap; }

/* Returns true if h is the live heap of b's thread in the phase `ref` and has a region that is not tsi_no_region, so
 * that the inlined path would find room there, or another region soon. [owner, no bracket open] */
TSI_INLINE bool bumps(const TsiBinding* b, TsiHeap* h, TsiRef ref) {
    return tsi_heap_is_at(b, h, ref) && tsi_load_relaxed(&h->region) != &tsi_no_region;
}

/* Returns the heap of b's thread in the incarnation `ref` that tsi_heap_cached finds, if `bumps` returns true for it;
 * otherwise tsi_no_heap, so that the inlined path opens no bracket without use. [owner, no bracket open] */
static TSI_NOINLINE struct SlabLaneHeap_* lead_on(TsiBinding* b, TsiRef ref) {
    TsiHeap* h = tsi_heap_cached(b, ref);
    return (struct SlabLaneHeap_*)(void*)(h != NULL && bumps(b, h, ref) ? h : &tsi_no_heap);
}

/* Returns the heap that d->phase.heap leads to, if `bumps` returns true for it in the incarnation `ref`; otherwise
 * another heap of the thread in `ref`, by lead_on, or tsi_no_heap. [owner, no bracket open] */
TSI_INLINE struct SlabLaneHeap_* lead(TsiBinding* b, TsiDomain* d, TsiRef ref) {
    TsiHeap* h = tsi_load_relaxed(&d->phase.heap);
    return TSI_LIKELY(bumps(b, h, ref)) ? (struct SlabLaneHeap_*)(void*)h : lead_on(b, ref);
}

/* Returns true if the program's inlined path may be used: a->none_at_hand is false (owned mode, no stand-ins, not
 * hardened), the thread is not exiting, and version, that of the header that the program was built with, is
 * SLAB_LANE_VERSION. [own thread, needs no lock] */
static bool may_inline(const TsiArena* a, uint32_t version) {
    return version == SLAB_LANE_VERSION && !a->none_at_hand && !tsi_tls.exiting;
}

/* Sets *lane to a lane of the domain's incarnation `ref`, with heap_ leading to no heap yet. thread_ stays 0, and
 * busy_ and live_ too, where the inlined path must always call: may_inline returns false, there is no memory for a
 * binding, or brackets need a fence. version: of the header that the program was built with.
 * [own thread, no lock held, no bracket open] */
TSI_INLINE void fill(SlabLane* lane, TsiDomain* d, TsiRef ref, uint32_t version) {
    *lane = (SlabLane){.domain = &d->pub, .phase_ = ref, .heap_ = (struct SlabLaneHeap_*)(void*)&tsi_no_heap};
    TsiBinding* b = may_inline(d->arena, version) ? tsi_binding_get(d->arena, true) : NULL;
    if (b == NULL || b->live_word == TSI_FENCED || !number_at(&lane->thread_at_)) return;
    lane->thread_ = tsi_tls.number;
    lane->busy_ = (uint64_t*)(void*)&b->busy;
    lane->live_ = b->live_word;
}

bool slab_lane_open_as(SlabLane* lane, epoch_domain_t* domain, uint32_t version) {
    TsiDomain* d = tsi_domain_of(domain);
    bool usable = tsi_domain_usable(d);
    TsiRef ref = usable ? tsi_load_acquire(&d->phase.ref) : 0; /* pairs with tsi_domain_open_own */
    if (ref == 0) {
        *lane = (SlabLane){.domain = NULL};
        return usable && tsi_domain_refuse(d, TSI_DOMAIN_CLOSED);
    }
    fill(lane, d, ref, version);
    if (lane->thread_ != 0) lane->heap_ = lead(binding_of(lane->busy_), d, ref);
    return true;
}

bool slab_lane_begin_as(SlabLane* lane, SlabAllocator* allocator, const char* label, uint32_t version) {
    TsiDomain* d = tsi_domain_of(epoch_domain_begin(allocator, label));
    if (TSI_LIKELY(d != NULL)) fill(lane, d, tsi_load_relaxed(&d->phase.ref), version);
    else *lane = (SlabLane){.domain = NULL};
    return d != NULL;
}

/* Refuses an allocation, with errno: EINVAL if the lane has no domain (d is NULL), ESTALE if that was destroyed or has
 * gone on from the lane's phase, which is counted. Returns NULL, for callers to return.
 * [any thread, no lock held, no bracket open] */
static TSI_COLD void* refuse(TsiDomain* d) {
    if (d == NULL) (void)tsi_failed_bool(EINVAL, "the lane is none");
    else if (!tsi_domain_is_alive(d)) (void)tsi_domain_refuse_destroyed(d);
    else (void)tsi_domain_refuse(d, TSI_DOMAIN_CLOSED);
    return NULL;
}

SlabLaneGot slab_lane_malloc_called(epoch_domain_t* domain, uint64_t phase, uint64_t thread, struct SlabLaneHeap_* heap,
                                    uint64_t* busy, size_t size) {
    TSI_KEEP_FRAME();
    TsiBinding* b = thread != 0 && thread == tsi_tls.number ? binding_of(busy) : NULL; /* Y1 */
    /* The inlined path may have missed in its bracket. */
    if (b != NULL && TSI_UNLIKELY(tsi_load_relaxed(&b->busy) != 0)) tsi_fast_leave(b, heap_of(heap));
    TsiDomain* d = tsi_domain_of(domain);
    TsiRef ref = TSI_LIKELY(d != NULL) ? tsi_load_acquire(&d->phase.ref) : 0; /* pairs with tsi_domain_open_own */
    if (TSI_UNLIKELY(ref == 0 || ref != phase)) return (SlabLaneGot){refuse(d), heap};
    void* got = tsi_domain_malloc(d, size, ref);
    return (SlabLaneGot){got, b != NULL ? lead(b, d, ref) : heap};
}

void* slab_lane_left(struct SlabLaneHeap_* heap, uint64_t* busy, void* p) {
    return tsi_alloc_left(binding_of(busy), heap_of(heap), p);
}
