/* thread_heaps.c - see thread_heaps.h. */
#include "heap/thread_heaps.h"

#include "base/check.h"

void tsi_record_give(TsiTable* table, uint32_t* cache, uint32_t* count, uint32_t index) {
    if (*count < TSI_RECORD_CACHE) cache[(*count)++] = index;
    else tsi_table_give(table, index);
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

/* Returns true if the heap is the primary of the incarnation `ref`, and its owner's to use.
 * [any thread, needs no lock] */
static bool is_used(TsiHeap* h, TsiRef ref) {
    return tsi_word_is(&h->key, ref) && tsi_heap_state(tsi_load_relaxed(&h->word)) == TSI_HEAP_LIVE;
}

void tsi_heap_found(TsiBinding* b, TsiHeap* h, TsiRef ref) {
    TsiInc* inc = tsi_binding_inc(b, ref);
    TsiHeap* first = tsi_binding_led(b, inc);
    if (first != h && is_used(first, ref)) b->by_inc[tsi_ref_index(ref) % TSI_HEAP_CACHE] = h;
    else tsi_store_relaxed(&inc->heap_at, tsi_heap_at(h));
}

void tsi_phase_leads_on(TsiPhaseWords* words, TsiHeap* h, TsiRef ref) {
    if (!is_used(tsi_load_relaxed(&words->heap), ref)) tsi_store_relaxed(&words->heap, h);
}

TsiHeap* tsi_phase_heap_slow(TsiBinding* b, TsiPhaseWords* words, TsiRef ref) {
    TsiHeap* h = tsi_heap_cached(b, ref);
    if (h != NULL) tsi_phase_leads_to(words, h, ref);
    return h;
}

bool tsi_heap_recall_locked(TsiArena* a, TsiHeap* h) {
    TSI_HOLDS(tsi_inc_lock(tsi_heap_inc(a, h)));
    for (uint64_t word = tsi_load_seq(&h->word); tsi_heap_state(word) == TSI_HEAP_LENT;) {
        /* seq_cst: its last owner's plain stores are before it; decides between us and that owner */
        if (!tsi_cas_seq(&h->word, &word, tsi_detached_word())) continue;
        tsi_add_relaxed(&tsi_heap_inc(a, h)->detached, 1);
        return true;
    }
    return false;
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
        TSI_CHECK(h->skip == 0); /* B3: settled before the call inside of it returned */
        tsi_heap_drop_own(b, h);
    }
}
