/*
 * domain_objects.c - objects outside of the thread's ambient phase: in a named domain, or outside of every scope.
 */
#include "api/domain.h"
#include "api/alloc_paths.h"

#include "account/charge.h"
#include "heap/thread_heaps.h"
#include "heap/records.h"
#include "heap/ready.h"
#include "threads/registry.h"

/* ---- into a domain ---- */

/* Returns d->phase.ref, which the domain's calls use; 0, with errno, if it is 0 (no open phase, ESTALE), the domain
 * was destroyed (ESTALE), which both are counted, or d is NULL (EINVAL).
 * [any thread, no lock held, no bracket open] */
static TsiRef ref_of(TsiDomain* d) {
    bool there = tsi_domain_usable(d);
    TsiRef ref = there ? tsi_load_acquire(&d->phase.ref) : 0; /* pairs with tsi_domain_open_own */
    if (TSI_LIKELY(ref != 0)) return ref;
    if (there) (void)tsi_domain_refuse(d, TSI_DOMAIN_CLOSED);
    return 0;
}

/* Allocates `size` bytes in a domain that had no open phase, which is refused, unless it has got one since. d may be
 * NULL or destroyed, which is refused. Returns the object, or NULL with errno.
 * [own thread, no lock held, no bracket open] */
static TSI_NOINLINE void* malloc_any(TsiDomain* d, size_t size) {
    TsiRef ref = ref_of(d);
    return ref != 0 ? tsi_alloc_ref(d->pub.alloc, size, ref) : NULL;
}

/* Allocates the first object, of `size` bytes, of the domain's phase `ref` from a heap that waits for one;
 * d->phase.heap then leads to that heap. Returns the object; NULL, and changes nothing, if no heap waits or it lacks
 * room: try another way. [own thread, no lock held, no bracket open] */
TSI_INLINE void* ready_first(TsiBinding* b, TsiDomain* d, size_t size, TsiRef ref) {
    void* p = tsi_ready_first(b, ref, tsi_bump_bytes(size));
    if (TSI_UNLIKELY(p == NULL)) return NULL;
    tsi_store_relaxed(&d->phase.heap, tsi_binding_led(b, tsi_binding_inc(b, ref))); /* as in first_in_scope */
    tsi_segment_tick(b->arena);
    return p;
}

/* Allocates `size` bytes, 1 to TSI_LUT_MAX, in the domain's phase `ref` where d->phase.heap is no heap of the thread
 * there: from a heap that waits for a phase if it is tsi_no_heap, as in a phase that has just begun, otherwise from
 * another heap of the thread in `ref`, to which d->phase.heap then leads, or by tsi_alloc_any. Returns the object, or
 * NULL with errno. [own thread, no lock held, no bracket open] */
static TSI_NOINLINE void* malloc_first(TsiBinding* b, TsiDomain* d, size_t size, TsiRef ref) {
    void* p = tsi_load_relaxed(&d->phase.heap) == &tsi_no_heap && d->own ? ready_first(b, d, size, ref) : NULL;
    if (TSI_LIKELY(p != NULL)) return p;
    TsiHeap* h = tsi_phase_heap(b, &d->phase, ref);
    if (h != NULL && tsi_heap_is_at(b, h, ref)) return tsi_alloc_in(b, h, size, ref, false);
    return tsi_alloc_any(b->arena, size, 1, ref, false, NULL);
}

/* Allocates `size` bytes, any number, in the incarnation that ref, not 0, names: the value of d->phase.ref that the
 * caller has read; if it has ended since, the call is refused. Returns the object, or NULL with errno.
 * [own thread, no lock held, no bracket open] */
TSI_INLINE void* malloc_at(TsiDomain* d, size_t size, TsiRef ref) {
    SlabAllocator* allocator = d->pub.alloc;
    if (TSI_UNLIKELY(!tsi_word_is(&tsi_tls.record->owner, allocator) || size - 1 >= TSI_LUT_MAX))
        return tsi_alloc_far(allocator, size, ref, false, NULL);
    TsiBinding* b = tsi_tls.binding;
    TsiHeap* h = tsi_load_relaxed(&d->phase.heap);
    if (tsi_heap_is_at(b, h, ref)) return tsi_alloc_in(b, h, size, ref, false);
    return malloc_first(b, d, size, ref);
}

/* A domain that has ended, or is none any more, names no incarnation. */
void* epoch_domain_malloc(epoch_domain_t* domain, size_t size) {
    TsiDomain* d = tsi_domain_of(domain);
    TsiRef ref = TSI_LIKELY(d != NULL) ? tsi_load_acquire(&d->phase.ref) : 0; /* pairs with tsi_domain_open_own */
    return TSI_LIKELY(ref != 0) ? malloc_at(d, size, ref) : malloc_any(d, size);
}

void* tsi_domain_malloc(TsiDomain* d, size_t size, TsiRef ref) { return malloc_at(d, size, ref); }

void* epoch_domain_calloc(epoch_domain_t* d, size_t n, size_t size) {
    TSI_KEEP_FRAME();
    TsiRef ref = ref_of(tsi_domain_of(d));
    return ref != 0 ? tsi_alloc_zeroed(d->alloc, n, size, ref) : NULL;
}

void* epoch_domain_realloc(epoch_domain_t* d, void* p, size_t size) {
    TSI_KEEP_FRAME();
    if (p != NULL && size == 0 && tsi_domain_is_alive(tsi_domain_of(d))) return tsi_resize(d->alloc, p, 0, 0);
    TsiRef ref = ref_of(tsi_domain_of(d));
    return ref != 0 ? tsi_resize(d->alloc, p, size, ref) : NULL;
}

void* epoch_domain_aligned_alloc(epoch_domain_t* d, size_t alignment, size_t size) {
    TSI_KEEP_FRAME();
    TsiRef ref = ref_of(tsi_domain_of(d));
    return ref != 0 ? tsi_alloc_aligned(d->alloc, alignment, size, ref, NULL) : NULL;
}

void* epoch_domain_alloc_obj(epoch_domain_t* d, size_t size, size_t alignment, SlabHandle* out) {
    TSI_KEEP_FRAME();
    if (out != NULL) *out = 0;
    TsiRef ref = ref_of(tsi_domain_of(d));
    if (ref == 0) return NULL;
    bool plain = alignment <= 16 && tsi_is_pow2(alignment);
    return plain ? tsi_alloc_obj(d->alloc, size, ref, out) : tsi_alloc_aligned(d->alloc, alignment, size, ref, out);
}

void* epoch_domain_move(epoch_domain_t* to, void* p) {
    TSI_KEEP_FRAME();
    TsiRef ref = ref_of(tsi_domain_of(to));
    return ref != 0 ? tsi_move(to->alloc, p, ref) : NULL;
}

bool epoch_domain_on_end(epoch_domain_t* d, void (*fn)(void* arg), void* arg) {
    if (!tsi_domain_usable(tsi_domain_of(d))) return false;
    if (fn == NULL) return tsi_failed_bool(EINVAL, "the function is NULL");
    TsiRef ref = ref_of(tsi_domain_of(d));
    if (ref == 0) return false;
    TsiArena* a = tsi_domain_of(d)->arena;
    if (tsi_inc_on_end(a, ref, fn, arg)) return true;
    return tsi_ref_is_active(&a->phases, ref) ? tsi_domain_no_memory(NULL)
                                              : tsi_failed_bool(ESTALE, "the epoch of the domain has ended");
}

/* ---- outside of every scope ---- */

/* Adds an object of `size` bytes to outside_objects and outside_bytes of the label of the thread's innermost scope, in
 * the thread's own pending sums, by plain stores (label.h); does nothing if the thread is in no scope, or is exiting.
 * [own thread, no lock held, no bracket open] */
static void count_outside(TsiArena* a, size_t size) {
    TsiBinding* b = tsi_binding_get(a, false); /* none where the thread is leaving */
    uint32_t maker = b != NULL ? tsi_scope_maker(b) : 0;
    if (maker == 0) return;
    TsiPending* pending = tsi_pending_of(b, maker - 1);
    tsi_pending_sum(&pending->sums.outside_objects, 1);
    tsi_pending_sum(&pending->sums.outside_bytes, size);
}

/* Allocates `size` bytes, any number, in the ring's current epoch, past the scopes that the thread is in, and adds
 * them to what the label of its innermost scope has made outside. allocator may be NULL, which is refused. Returns the
 * object, or NULL with errno. [own thread, no lock held, no bracket open] */
static TSI_NOINLINE void* tsi_malloc_outside(SlabAllocator* allocator, size_t size) {
    TSI_KEEP_FRAME();
    TsiArena* a = tsi_arena(allocator);
    bool near = tsi_load_relaxed(&tsi_tls.record->owner) == allocator && size - 1 < TSI_LUT_MAX;
    TsiHeap* h = near ? tsi_heap_cached(tsi_tls.binding, tsi_phases_current(&a->phases)) : NULL;
    void* p = h != NULL ? tsi_alloc_in(tsi_tls.binding, h, size, TSI_REF_CURRENT, false)
                        : tsi_alloc_any(a, size, 1, TSI_REF_CURRENT, false, NULL);
    if (p != NULL) count_outside(a, size);
    return p;
}

void* slab_move_outside(SlabAllocator* allocator, void* p) {
    TSI_KEEP_FRAME();
    void* q = tsi_move(allocator, p, TSI_REF_CURRENT);
    if (q != NULL && q != p) count_outside(tsi_arena(allocator), slab_usable_size(allocator, q));
    return q;
}

void* slab_realloc_outside(SlabAllocator* allocator, void* p, size_t size) {
    TSI_KEEP_FRAME();
    if (p == NULL) return slab_malloc_outside(allocator, size);
    if (size == 0) return tsi_resize(allocator, p, 0, 0);
    void* q = tsi_resize(allocator, p, size, TSI_REF_CURRENT);
    if (q != NULL && q != p) count_outside(tsi_arena(allocator), size);
    return q;
}

void* slab_malloc_outside(SlabAllocator* allocator, size_t size) {
    bool at_hand = tsi_load_relaxed(&tsi_tls.record->owner) == allocator;
    return at_hand && tsi_tls.binding->scope == 0 ? slab_malloc(allocator, size) : tsi_malloc_outside(allocator, size);
}
