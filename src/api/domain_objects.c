/*
 * domain_objects.c - objects that go elsewhere than where the thread is: into a domain that is named, or outside of
 * every scope.
 */
#include "api/domain.h"

#include "heap/alloc.h"
#include "heap/bump.h"
#include "heap/heap.h"
#include "heap/pin.h"

/* ---- into a domain ---- */

/* What the domain's calls go to; 0 with errno when it has ended, or is none. */
static TsiRef ref_of(TsiDomain* d) {
    bool there = tsi_domain_usable(d);
    TsiRef ref = there ? tsi_load_acquire(&d->ref) : 0; /* pairs with tsi_domain_open_own */
    if (TSI_LIKELY(ref != 0)) return ref;
    if (there) tsi_domain_refuse(d, SLAB_MISUSE_CLOSED_EPOCH);
    errno = there ? ESTALE : EINVAL;
    return 0;
}

static TSI_NOINLINE void* malloc_any(TsiDomain* d, size_t size) {
    TsiRef ref = ref_of(d);
    return ref != 0 ? tsi_alloc_ref(d->pub.alloc, size, ref) : NULL;
}

static TSI_NOINLINE void* malloc_missed(TsiBinding* b, TsiHeap* h, TsiDomain* d, size_t size) {
    tsi_bracket_missed(b);
    if (!tsi_heap_is_live(b, h)) tsi_handover(b, h);
    return malloc_any(d, size);
}

/* The fast path of what lies in a region. A domain that has ended, or is none any more, names no incarnation. */
void* epoch_domain_malloc(epoch_domain_t* p, size_t size) {
    TsiDomain* d = tsi_domain_of(p);
    void* out;
    if (TSI_UNLIKELY(d == NULL)) return malloc_any(d, size);
    TsiRef ref = tsi_load_acquire(&d->ref); /* pairs with tsi_domain_open_own */
    if (TSI_UNLIKELY(ref == 0 || !tsi_word_is(&tsi_tls.record->owner, p->alloc) || size - 1 >= TSI_LUT_MAX))
        return malloc_any(d, size);
    TsiBinding* b = tsi_tls.binding;
    TsiHeap* h = tsi_heap_of_ref(b, ref);
    /* As in alloc_ref of objects.c. */
    if (TSI_UNLIKELY(h == NULL || !tsi_word_is(&h->word, b->live_word))) return tsi_alloc_first(b, size, ref, false);
    TsiRegion* r = tsi_load_relaxed(&h->region);
    if (TSI_UNLIKELY(!tsi_bump_fits(r, tsi_bump_bytes(size)))) return malloc_any(d, size);
    TsiFast f = tsi_bump_fast(b, h, r, tsi_bump_bytes(size), &out);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return out;
    return f == TSI_FAST_LEFT ? tsi_alloc_left(b, h, out) : malloc_missed(b, h, d, size);
}

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

bool epoch_domain_on_end(epoch_domain_t* d, void (*fn)(void* arg), void* arg) {
    TsiRef ref = ref_of(tsi_domain_of(d));
    return fn != NULL && ref != 0 && tsi_inc_on_end(tsi_domain_of(d)->arena, ref, fn, arg);
}

/* ---- outside of every scope ---- */

static TSI_NOINLINE void* outside_missed(TsiBinding* b, TsiHeap* h, size_t size) {
    TsiArena* a = b->arena;
    tsi_bracket_missed(b);
    if (!tsi_heap_is_live(b, h)) tsi_handover(b, h);
    return tsi_alloc_any(a, size, 1, TSI_REF_CURRENT, false, NULL);
}

void* slab_malloc_outside(SlabAllocator* s, size_t size) {
    void* p;
    if (TSI_UNLIKELY(tsi_load_relaxed(&tsi_tls.record->owner) != s))
        return tsi_alloc_any(tsi_arena(s), size, 1, TSI_REF_CURRENT, false, NULL);
    TsiBinding* b = tsi_tls.binding;
    if (b->scope == 0) return slab_malloc(s, size);
    TsiHeap* h = tsi_heap_cached(b, tsi_phases_current(&b->arena->phases));
    if (h == NULL || size - 1 >= TSI_LUT_MAX) return tsi_alloc_any(b->arena, size, 1, TSI_REF_CURRENT, false, NULL);
    TsiRegion* r = tsi_load_relaxed(&h->region);
    bool fits = tsi_bump_fits(r, tsi_bump_bytes(size));
    if (!fits && h->room == NULL) return tsi_alloc_any(b->arena, size, 1, TSI_REF_CURRENT, false, NULL);
    TsiFast f = fits ? tsi_bump_fast(b, h, r, tsi_bump_bytes(size), &p)
                     : tsi_alloc_fast(b, h, h->room->cur, tsi_size_lut[((size - 1) >> 4) + 1], &p);
    if (TSI_LIKELY(f == TSI_FAST_DONE)) return p;
    return f == TSI_FAST_LEFT ? tsi_alloc_left(b, h, p) : outside_missed(b, h, size);
}
