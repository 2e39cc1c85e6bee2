/*
 * own.h - the heaps that a thread has, how it finds them, and their records and rooms, which it keeps some of.
 *
 * A phase leads to the heap that was found there last: the domain does, and the incarnation for calls that know its
 * reference or id. So there is no bound on the phases that a thread has open at a time. Where several threads have
 * heaps in a phase, it leads to the first one for as long as that is in use, and the others find theirs in a table of
 * each thread's.
 *
 * Invariants
 *   H1  What leads to a heap is a hint, and names a record of the arena's table, or tsi_no_heap, at any time: whoever
 *       reads it compares the heap's key with the reference, and then its word with its own. Only its owner makes a
 *       heap LIVE, and sets the key as it does so. So to the thread that finds its own word the key that it has read
 *       before is what it set itself.
 *   H2  At most one LIVE heap of a thread has the key of an incarnation: its primary there. The others share the
 *       primary's room, and nothing is to be allocated from them by themselves.
 *   H3  A heap is lent by its owner outside of brackets, where it has no room and no other heap of the thread in the
 *       incarnation shares it, and it is in no thread's chain then. So all that it needs stands in its record and in
 *       those of its regions, and whoever changes the word has it whole. Nobody is inside: the owner has left its
 *       brackets, and enters none until it has the heap back. A sweep needs no membarrier for it.
 *   H4  While a thread's heap in an incarnation is lent by it the thread has none there. It takes that one back before
 *       it looks for another (B5 in bracket.h).
 *   H5  No heap is LENT after the first hold of an end's sweep, or its owner could take it back between the holds.
 *
 * Model: tests/models/lent.pml.
 */
#ifndef TSI_HEAP_OWN_H
#define TSI_HEAP_OWN_H

#include "state/arena.h"

/* The incarnation's record. */
TSI_INLINE TsiInc* tsi_binding_inc(const TsiBinding* b, TsiRef ref) {
    return (TsiInc*)(void*)(b->incs_base + (size_t)tsi_ref_index(ref) * TSI_INC_STRIDE);
}
/* The heap that it leads to. */
TSI_INLINE TsiHeap* tsi_binding_led(const TsiBinding* b, TsiInc* i) {
    return (TsiHeap*)(void*)((uint8_t*)b->heaps_base + tsi_load_relaxed(&i->heap_at));
}
/* True if the heap is the binding's primary in the incarnation, LIVE, and its brackets are not fenced (H1). ref: not
 * 0. Of a heap that is not the thread's the record's page may have gone, and with it what else it says. */
TSI_INLINE bool tsi_heap_is_at(const TsiBinding* b, TsiHeap* h, TsiRef ref) {
    return TSI_LIKELY(tsi_word_is(&h->key, ref) && tsi_word_is(&h->word, b->live_word));
}
/* The binding's primary in an incarnation, or NULL if nothing leads to it, also with fenced brackets. */
TSI_INLINE TsiHeap* tsi_heap_cached(const TsiBinding* b, TsiRef ref) {
    uint64_t live = tsi_heap_word(b->index, TSI_HEAP_LIVE);
    uint32_t at = tsi_load_relaxed(&tsi_binding_inc(b, ref)->heap_at);
    TsiHeap* h = (TsiHeap*)(void*)((uint8_t*)b->heaps_base + at);
    if (at == 0) return NULL; /* nobody has found one since the record was new */
    if (TSI_LIKELY(tsi_word_is(&h->key, ref) && tsi_word_is(&h->word, live))) return h;
    h = b->by_inc[tsi_ref_index(ref) % TSI_HEAP_CACHE];
    return tsi_word_is(&h->key, ref) && tsi_word_is(&h->word, live) ? h : NULL;
}
/* The incarnation leads to the binding's primary, or the binding's table does. */
void tsi_heap_found(TsiBinding* b, TsiHeap* h, TsiRef ref);
/* The domain leads to the heap in the incarnation, unless another one is in use there. */
void tsi_phase_leads_on(TsiPhaseWords* w, TsiHeap* h, TsiRef ref);
TSI_INLINE void tsi_phase_leads_to(TsiPhaseWords* w, TsiHeap* h, TsiRef ref) {
    if (TSI_UNLIKELY(tsi_load_relaxed(&w->heap) != h)) tsi_phase_leads_on(w, h, ref);
}
/* A heap joins its owner's chain, and leaves it. Own thread only. */
void tsi_own_link(TsiBinding* b, TsiHeap* h);
void tsi_own_unlink(TsiBinding* b, TsiHeap* h);
/* Takes the heap back if the binding has lent it and it is in the incarnation. [own thread, outside of brackets] */
TSI_INLINE bool tsi_heap_take_back(TsiBinding* b, TsiHeap* h, TsiRef ref) {
    uint64_t lent = tsi_lent_word(b->index);
    if (!tsi_word_is(&h->key, ref) || !tsi_word_is(&h->word, lent)) return false; /* H1 holds of its own LENT, too */
    /* seq_cst: decides between us and whoever wants it under the stripe */
    if (!tsi_cas_seq(&h->word, &lent, tsi_heap_word(b->index, TSI_HEAP_LIVE))) return false;
    tsi_own_link(b, h);
    return true;
}
/* The stripe of the heap's incarnation is held: what is lent is DETACHED from here on. Returns true if it was lent. */
bool tsi_heap_recall_locked(TsiArena* a, TsiHeap* h);
/* Finds the binding's primary by the incarnation, to which the domain leads from then on; or NULL. */
TsiHeap* tsi_phase_heap_slow(TsiBinding* b, TsiPhaseWords* w, TsiRef ref);
/* Finds it by the domain, where it may be lent, else by the incarnation; or NULL. */
TSI_INLINE TsiHeap* tsi_phase_heap(TsiBinding* b, TsiPhaseWords* w, TsiRef ref) {
    TsiHeap* h = tsi_load_relaxed(&w->heap);
    if (tsi_heap_is_at(b, h, ref) || tsi_heap_take_back(b, h, ref)) return h;
    return tsi_phase_heap_slow(b, w, ref);
}

/* Records through the thread's own small stores. */
TSI_INLINE bool tsi_record_take(TsiTable* t, uint32_t* cache, uint32_t* count, uint32_t* index) {
    if (TSI_UNLIKELY(*count == 0)) return tsi_table_take(t, index, 0);
    *index = cache[--*count];
    return true;
}
void tsi_record_give(TsiTable* t, uint32_t* cache, uint32_t* count, uint32_t index);
/* Own thread only, as all below. */
void tsi_room_give(TsiArena* a, TsiBinding* b, TsiHeap* h);
/* Unlinks from the owner's chain and frees the record. Own thread only. */
void tsi_heap_drop_own(TsiBinding* b, TsiHeap* h);
/* Frees a record that is in nobody's chain. */
void tsi_heap_free(TsiArena* a, TsiBinding* b, TsiHeap* h);
/* Own thread: frees the records of heaps that others have swept. */
void tsi_heaps_prune(TsiBinding* b);
/* Puts a heap at the front of the binding's ambient slot. */
void tsi_binding_set_ambient(TsiBinding* b, TsiHeap* h);

#endif
