/* own.c - see own.h. */
#include "heap/own.h"

#include "base/check.h"

void tsi_record_give(TsiTable* t, uint32_t* cache, uint32_t* count, uint32_t index) {
    if (*count < TSI_RECORD_CACHE) cache[(*count)++] = index;
    else tsi_table_give(t, index);
}

void tsi_room_give(TsiArena* a, TsiBinding* b, TsiHeap* h) {
    if (h->room == NULL) return;
    if (b != NULL) tsi_record_give(&a->rooms, b->room_cache, &b->room_count, h->room->index);
    else tsi_table_give(&a->rooms, h->room->index);
    h->room = NULL;
}

void tsi_binding_set_ambient(TsiBinding* b, TsiHeap* h) {
    b->heap = h;
    b->cur = h->room != NULL ? h->room->cur : tsi_no_cur;
    TsiRegion* r = tsi_load_relaxed(&h->region);
    b->region = r != &tsi_no_region ? r : NULL;
}

void tsi_own_link(TsiBinding* b, TsiHeap* h) {
    h->own_prev = 0;
    h->own_next = b->own_heaps;
    if (h->own_next != 0) tsi_heap(b->arena, h->own_next - 1)->own_prev = h->index + 1;
    b->own_heaps = h->index + 1;
}

void tsi_own_unlink(TsiBinding* b, TsiHeap* h) {
    if (h->own_prev != 0) tsi_heap(b->arena, h->own_prev - 1)->own_next = h->own_next;
    else b->own_heaps = h->own_next;
    if (h->own_next != 0) tsi_heap(b->arena, h->own_next - 1)->own_prev = h->own_prev;
    if (b->by_inc[tsi_ref_index(tsi_load_relaxed(&h->ref)) % TSI_HEAP_CACHE] == h)
        b->by_inc[tsi_ref_index(tsi_load_relaxed(&h->ref)) % TSI_HEAP_CACHE] = &tsi_no_heap;
    for (unsigned n = 0; n < TSI_ID_CACHE; n++) /* another thread may have it next, in the epoch of the same id */
        if (b->by_id[n] == h) b->by_id[n] = &tsi_no_heap;
    if (b->heap == h) tsi_binding_set_ambient(b, &tsi_no_heap);
}

void tsi_heap_free(TsiArena* a, TsiBinding* b, TsiHeap* h) {
    tsi_room_give(a, b, h);
    tsi_store_relaxed(&h->ref, 0);
    tsi_store_release(&h->word, TSI_HEAP_FREE); /* pairs with readers of a stale index */
    if (b != NULL) tsi_record_give(&a->heaps, b->heap_cache, &b->heap_count, h->index);
    else tsi_table_give(&a->heaps, h->index);
}

void tsi_heap_drop_own(TsiBinding* b, TsiHeap* h) {
    tsi_own_unlink(b, h);
    tsi_heap_free(b->arena, b, h);
}

void tsi_heaps_prune(TsiBinding* b) {
    if (tsi_load_relaxed(&b->dead_heaps) == 0) return;
    (void)tsi_swap_seq(&b->dead_heaps, 0); /* before the walk: pairs with seize_locked */
    for (uint32_t at = b->own_heaps, next; at != 0; at = next) {
        TsiHeap* h = tsi_heap(b->arena, at - 1);
        next = h->own_next;
        /* acquire: pairs with the release of the sweep that left it DEAD */
        if (tsi_heap_state(tsi_load_acquire(&h->word)) != TSI_HEAP_DEAD) continue;
        TSI_CHECK(h->skip == 0); /* B3: settled before the call that was inside of it returned */
        tsi_heap_drop_own(b, h);
    }
}
