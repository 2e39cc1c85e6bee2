/* ownerless.c - see ownerless.h. */
#include "heap/ownerless.h"

#include "heap/decay.h"
#include "heap/finish.h"
#include "heap/heap.h"
#include "heap/late_frees.h"
#include "heap/thread_heaps.h"
#include "heap/records.h"
#include "heap/sweep.h"
#include "threads/registry.h"

enum { TAKES = 64 /* frees in heaps that are nobody's, for each attempt to adopt one */ };

/* Takes the empty slabs of h, a heap that nobody owns or that is lent, and gives them back, if the incarnation of `ref`
 * is ACTIVE and h still in it; h is freed if it has no others. b: the calling thread's binding, or NULL.
 * [any thread, no lock held, no bracket open] */
static void take_empty(TsiArena* a, TsiBinding* b, TsiHeap* h, TsiRef ref) {
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    TsiSweep sweep = {.arena = a, .b = b, .inc = inc, .learns = true};
    tsi_phase_lock(inc);
    bool here = tsi_ref_is_active(&a->phases, ref) && tsi_load_relaxed(&h->ref) == ref;
    if (here) {
        inc->pins++;
        (void)tsi_heap_recall_locked(a, h);
        tsi_sweep_ownerless_locked(&sweep, h);
        tsi_sweep_uncharge(&sweep);
    }
    tsi_phase_unlock(inc);
    if (!here) return;
    tsi_sweep_finish(&sweep);
    tsi_inc_unpin(a, b, inc);
}

void tsi_ownerless_freed(TsiArena* a, TsiBinding* b, const TsiPlace* at, TsiHeap* h, TsiRef ref) {
    TsiSpace* s = &a->space;
    uint64_t bit = tsi_class_bit(at->cls);
    if (bit != 0 && (tsi_load_seq(&h->roomy) & bit) == 0 && tsi_slab_has_room(s, at->cls, at->slab_id)) {
        (void)tsi_or_seq(&h->roomy, bit); /* O2: before the incarnation's, which a search clears and then looks here */
        (void)tsi_or_seq(&tsi_inc(&a->phases, tsi_ref_index(ref))->roomy, bit);
    }
    if (!tsi_slab_is_empty(s, at->cls, at->slab_id)) return;
    size_t bytes = tsi_slab_bytes(s, at->cls, at->slab_id);
    uint64_t emptied = tsi_add_seq(&h->emptied, bytes) + bytes; /* O1: before the word, as in ownerless.h */
    unsigned state = tsi_heap_state(tsi_load_seq(&h->word));
    bool nobodys = state == TSI_HEAP_DETACHED || state == TSI_HEAP_LENT;
    if (nobodys && tsi_ownerless_is_due(h, emptied)) take_empty(a, b, h, ref);
}

void tsi_ownerless_again(TsiBinding* b, TsiRef ref) {
    TsiArena* a = b->arena;
    b->ownerless_frees++;
    if (b->ownerless_frees % TAKES != 0 || !tsi_decay_is_on(a)) return;
    if (a->options.shared || tsi_tls.exiting) return;
    bool ring = (tsi_load_relaxed(&tsi_inc(&a->phases, tsi_ref_index(ref))->id) & TSI_DOMAIN_ID_BIT) == 0;
    TsiHeap* taken;
    if (ring && tsi_heap_cached(b, ref) == NULL) (void)tsi_heap_make(b, ref, &taken);
}
