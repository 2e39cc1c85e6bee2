/* waiting.c - see waiting.h. */
#include "heap/waiting.h"

#include "mem/pool.h"
#include "mem/stock.h"

void tsi_warm_call_in(TsiBinding* b) {
    uint64_t lent = tsi_swap_seq(&b->warm.lent, 0); /* decides who returns it */
    if (lent != 0) tsi_stock_unreserve(&b->arena->space, lent);
}

static bool waits(uint32_t binding, uint64_t word) {
    return tsi_heap_binding(word) == binding && tsi_heap_state(word) == TSI_HEAP_READY;
}

uint64_t tsi_ready_bytes(const TsiArena* a, uint32_t binding) {
    /* It may be made just now: nothing but atomics is read of it. */
    TsiBinding* b = tsi_table_at(&a->bindings, binding);
    uint64_t bytes = 0;
    for (unsigned rank = 0; rank < TSI_READY_RANKS; rank++) {
        for (unsigned k = 0; k < TSI_READY_HEAPS; k++) {
            uint32_t at = tsi_load_relaxed(&b->ready[rank][k]);
            if (at != 0 && waits(binding, tsi_load_relaxed(&tsi_heap(a, at - 1)->word)))
                bytes += a->space.classes->c[tsi_region_class(rank)].slab_bytes;
        }
    }
    return bytes;
}

uint32_t tsi_ready_seize(TsiBinding* b, TsiHeap* h) {
    uint64_t word = tsi_load_acquire(&h->word); /* pairs with put in ready.c */
    if (!waits(b->index, word)) return 0;
    /* seq_cst: decides between those who flush and the heap's thread; the word says which region it is */
    bool ours = tsi_cas_seq(&h->word, &word, tsi_heap_word(b->index, TSI_HEAP_BARE));
    return ours ? (uint32_t)(word >> TSI_READY_SLAB_SHIFT) + 1 : 0;
}

void tsi_ready_flush(TsiBinding* b) {
    TsiArena* a = b->arena;
    tsi_warm_call_in(b); /* be it nothing: an end that had asked before the last call may have kept a heap after it */
    for (unsigned rank = 0; rank < TSI_READY_RANKS; rank++) {
        uint32_t ids[TSI_READY_HEAPS];
        unsigned n = 0;
        for (unsigned k = 0; k < TSI_READY_HEAPS; k++) {
            uint32_t at = tsi_load_acquire(&b->ready[rank][k]); /* pairs with put in ready.c */
            uint32_t slab = at != 0 ? tsi_ready_seize(b, tsi_heap(a, at - 1)) : 0;
            if (slab != 0) ids[n++] = slab - 1;
        }
        if (n != 0) (void)tsi_space_purge(&a->space, ids, n);
    }
}
