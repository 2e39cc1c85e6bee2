/*
 * thread_heaps.h - the heaps that a thread has, how it finds them, and the few records and rooms that it keeps.
 *
 * A phase remembers ("leads to") the heap that was found there last: in the domain, and in the incarnation for calls
 * that know its reference or id. So a thread may have any number of phases open. Where several threads have heaps in a
 * phase, it leads to the first one as long as that is in use; the other threads find theirs in a table of their own.
 *
 * Invariants
 *   H1  The way to a heap is a hint, and always names a record of the arena's table, or tsi_no_heap: its reader
 *       compares the heap's key with the reference, and then its word with its own. Only its owner makes a heap LIVE,
 *       and sets the key as it does so. So to the thread that finds its own word, the key that it has read before is
 *       the one it set itself.
 *   H2  At most one LIVE heap of a thread has the key of an incarnation: its primary there. The others share the
 *       primary's room, and no allocation starts from them.
 *   H3  An owner lends a heap outside of brackets, where the heap has no room and no other heap of the thread in the
 *       incarnation shares it; it is in no thread's chain then. So all that it needs stands in its record and in those
 *       of its regions, and the thread that changes the word has it whole. Nobody is inside: the owner has left its
 *       brackets, and enters none until it has the heap back. A sweep needs no membarrier for it.
 *   H4  While a thread's heap in an incarnation is lent by it the thread has none there. The thread takes that heap
 *       back before it looks for another (B5 in bracket.h).
 *   H5  No heap is LENT after the first hold of an end's sweep, or its owner could take it back between the holds.
 *
 * Model: tests/models/lent.pml.
 */
#ifndef TSI_HEAP_THREAD_HEAPS_H
#define TSI_HEAP_THREAD_HEAPS_H

#include "state/arena.h"

/* Returns the record of the incarnation that `ref` names. [any thread, needs no lock] */
TSI_INLINE TsiInc* tsi_binding_inc(const TsiBinding* b, TsiRef ref) {
    return (TsiInc*)(void*)(b->incs_base + (size_t)tsi_ref_index(ref) * TSI_INC_STRIDE);
}
/* Returns the heap that the incarnation leads to: a hint (H1). [any thread, needs no lock] */
TSI_INLINE TsiHeap* tsi_binding_led(const TsiBinding* b, TsiInc* inc) {
    return (TsiHeap*)(void*)((uint8_t*)b->heaps_base + tsi_load_relaxed(&inc->heap_at));
}
/* Returns true if h is the binding's primary in the incarnation, LIVE, and its brackets are not fenced (H1). ref: not
 * 0. If h is not the thread's, its record's page may have gone. [own thread, needs no lock] */
TSI_INLINE bool tsi_heap_is_at(const TsiBinding* b, TsiHeap* h, TsiRef ref) {
    return TSI_LIKELY(tsi_word_is(&h->key, ref) && tsi_word_is(&h->word, b->live_word));
}
/* Returns the binding's LIVE primary in the incarnation `ref`, not 0, to which the incarnation or b's table leads,
 * whether its brackets are fenced or not; NULL if neither leads to it, though there may be one (tsi_heap_make finds
 * it). Changes nothing. [own thread, needs no lock] */
TSI_INLINE TsiHeap* tsi_heap_cached(const TsiBinding* b, TsiRef ref) {
    uint64_t live = tsi_heap_word(b->index, TSI_HEAP_LIVE);
    uint32_t at = tsi_load_relaxed(&tsi_binding_inc(b, ref)->heap_at);
    TsiHeap* h = (TsiHeap*)(void*)((uint8_t*)b->heaps_base + at);
    if (at == 0) return NULL; /* nobody has found one since the record was new */
    if (TSI_LIKELY(tsi_word_is(&h->key, ref) && tsi_word_is(&h->word, live))) return h;
    h = b->by_inc[tsi_ref_index(ref) % TSI_HEAP_CACHE];
    return tsi_word_is(&h->key, ref) && tsi_word_is(&h->word, live) ? h : NULL;
}
/* Makes the incarnation `ref` lead to h, the binding's primary there, or where it leads to another LIVE primary, b's
 * table (by_inc), whose entry may have been another incarnation's. [own thread, needs no lock] */
void tsi_heap_found(TsiBinding* b, TsiHeap* h, TsiRef ref);
/* Makes the domain whose words these are lead to h in the incarnation `ref`, unless a LIVE primary of that incarnation
 * is where it leads. [own thread, needs no lock] */
void tsi_phase_leads_on(TsiPhaseWords* words, TsiHeap* h, TsiRef ref);
/* Makes the domain lead to h in the incarnation, like tsi_phase_leads_on, if it does not already.
 * [own thread, needs no lock] */
TSI_INLINE void tsi_phase_leads_to(TsiPhaseWords* words, TsiHeap* h, TsiRef ref) {
    if (TSI_UNLIKELY(tsi_load_relaxed(&words->heap) != h)) tsi_phase_leads_on(words, h, ref);
}
/* Puts a heap at the head of its owner's chain. [own thread, needs no lock] */
void tsi_own_link(TsiBinding* b, TsiHeap* h);
/* Takes a heap out of its owner's chain; the owner's ambient heap is none then, if it was this one.
 * [own thread, needs no lock] */
void tsi_own_unlink(TsiBinding* b, TsiHeap* h);
/* Takes the heap back if the binding has lent it and its key is `ref`: LIVE, at the head of b's chain. Returns true if
 * it did; false, changing nothing, if it is not lent by b, or a thread with the stripe was first.
 * [own thread, no bracket open] */
TSI_INLINE bool tsi_heap_take_back(TsiBinding* b, TsiHeap* h, TsiRef ref) {
    uint64_t lent = tsi_lent_word(b->index);
    if (!tsi_word_is(&h->key, ref) || !tsi_word_is(&h->word, lent)) return false; /* H1 holds of its own LENT, too */
    /* seq_cst: decides between us and a thread that wants it under the stripe */
    if (!tsi_cas_seq(&h->word, &lent, tsi_heap_word(b->index, TSI_HEAP_LIVE))) return false;
    tsi_own_link(b, h);
    return true;
}
/* Makes a lent heap DETACHED, and raises its incarnation's `detached`, whose stripe is the one held. Returns true if it
 * was lent; false, changing nothing, otherwise. [stripe held] */
bool tsi_heap_recall_locked(TsiArena* a, TsiHeap* h);
/* Returns the binding's primary, found by the incarnation, and makes the domain lead to it; NULL if nothing leads to
 * one. [own thread, needs no lock] */
TsiHeap* tsi_phase_heap_slow(TsiBinding* b, TsiPhaseWords* words, TsiRef ref);
/* Returns the binding's primary in the incarnation `ref`, not 0: the one that `words`, its domain's, lead to, taken
 * back if b has lent it; or the one that the incarnation or b's table leads to, and then the domain may lead there,
 * too. Returns NULL if nothing leads to one. [own thread, no bracket open] */
TSI_INLINE TsiHeap* tsi_phase_heap(TsiBinding* b, TsiPhaseWords* words, TsiRef ref) {
    TsiHeap* h = tsi_load_relaxed(&words->heap);
    if (tsi_heap_is_at(b, h, ref) || tsi_heap_take_back(b, h, ref)) return h;
    return tsi_phase_heap_slow(b, words, ref);
}

/* Takes a record into *index: from the thread's small store, `cache` with *count entries, whose last one goes, or where
 * that is empty from the table. Returns false, with *index undefined, if there is none.
 * [own thread, no table lock held] */
TSI_INLINE bool tsi_record_take(TsiTable* table, uint32_t* cache, uint32_t* count, uint32_t* index) {
    if (TSI_UNLIKELY(*count == 0)) return tsi_table_take(table, index, 0);
    *index = cache[--*count];
    return true;
}
/* Frees a record: to the thread's small store, `cache` with *count entries, as long as that is below TSI_RECORD_CACHE,
 * otherwise to the table. [own thread, no table lock held] */
void tsi_record_give(TsiTable* table, uint32_t* cache, uint32_t* count, uint32_t index);
/* Frees the heap's room, if it has one. b: the calling thread's binding, or NULL. [holder of the heap] */
void tsi_room_give(TsiArena* a, TsiBinding* b, TsiHeap* h);
/* Unlinks the heap from its owner's chain and frees its record and room. [own thread, needs no lock] */
void tsi_heap_drop_own(TsiBinding* b, TsiHeap* h);
/* Frees the record and room of a heap that is in nobody's chain and in no incarnation's list: its word is FREE, and h
 * is another's at once. b: the calling thread's binding, whose stores get them, or NULL: the tables.
 * [holder of the heap] */
void tsi_heap_free(TsiArena* a, TsiBinding* b, TsiHeap* h);
/* Frees the records of the heaps in b's chain that are DEAD, since others have swept them; does nothing if
 * b->dead_heaps is 0. [own thread, no bracket open] */
void tsi_heaps_prune(TsiBinding* b);
/* Makes h, which may be tsi_no_heap, the heap of the binding's ambient allocations: sets b->heap, and b->cur and
 * b->region to its current lines and region. [own thread, needs no lock] */
void tsi_binding_set_ambient(TsiBinding* b, TsiHeap* h);

#endif
