/*
 * own.h - the heaps that a thread has, and their records and rooms, which it keeps some of.
 */
#ifndef TSI_HEAP_OWN_H
#define TSI_HEAP_OWN_H

#include "heap/arena.h"

/* Records through the thread's own small stores. */
TSI_INLINE bool tsi_record_take(TsiTable* t, uint32_t* cache, uint32_t* count, uint32_t* index) {
    if (TSI_UNLIKELY(*count == 0)) return tsi_table_take(t, index, 0);
    *index = cache[--*count];
    return true;
}
void tsi_record_give(TsiTable* t, uint32_t* cache, uint32_t* count, uint32_t index);
/* A heap joins its owner's chain, and leaves it. Own thread only, as all below. */
void tsi_own_link(TsiBinding* b, TsiHeap* h);
void tsi_own_unlink(TsiBinding* b, TsiHeap* h);
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
