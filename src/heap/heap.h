/*
 * heap.h - heaps: birth, look-up, adoption, rooms.
 */
#ifndef TSI_HEAP_HEAP_H
#define TSI_HEAP_HEAP_H

#include "heap/own.h"
#include "os/clock.h"

/* Once per process. */
void tsi_heap_init(void);

typedef enum TsiBirth { TSI_BIRTH_OK, TSI_BIRTH_STALE, TSI_BIRTH_NO_MEMORY } TsiBirth;

/* The binding's heap in an incarnation for which it has none cached: another one of its own, adopted, or made. */
TsiBirth tsi_heap_make(TsiBinding* b, TsiRef ref, TsiHeap** out);
/* Enters a new heap into the incarnation, in `word`'s state; the stripe is held. */
TsiHeap* tsi_heap_birth_locked(TsiArena* a, TsiInc* i, TsiRef ref, uint32_t index, uint64_t word);
/* The time, where it has to be read because the incarnation is about to be used for the first time, else 0. */
TSI_INLINE uint64_t tsi_inc_opening_ns(TsiInc* i, TsiRef ref) {
    /* The first incarnation of id 0 has always been open: its time is 0. */
    return tsi_load_relaxed(&i->open_since_ns) == 0 && tsi_ref_era(ref) != 1 ? tsi_clock_stamp() : 0;
}
TSI_INLINE void tsi_inc_opened_locked(TsiInc* i, uint64_t now_ns) {
    TSI_HOLDS(tsi_inc_lock(i));
    if (now_ns != 0 && tsi_load_relaxed(&i->open_since_ns) == 0) tsi_store_relaxed(&i->open_since_ns, now_ns);
}
/* Takes over an ownerless heap of the same incarnation that has room for the class. False if none has. Inside the
 * heap's bracket. */
bool tsi_heap_adopt_more(TsiBinding* b, TsiHeap* h, unsigned cls);
/* Files every line of h that has room in the room of its primary and parks the others; inside the bracket. */
void tsi_heap_rebuild_room(TsiBinding* b, TsiHeap* h);
/* Gives the heap a room; false without memory. */
bool tsi_heap_ensure_room(TsiBinding* b, TsiHeap* h);
/* Thread exit: no heap has this owner afterwards. */
void tsi_heaps_detach_all(TsiBinding* b);
/* Lends the binding's primary in the incarnation of the domain, if it has one and that may be lent (H3 in own.h).
 * Returns false, and changes nothing, if it is not so, or somebody has asked for the heap. label: the phase's. [own
 * thread, outside of brackets] */
bool tsi_heap_lend(TsiBinding* b, TsiPhaseWords* w, TsiRef ref, uint32_t label);
/* Own thread, outside of brackets: its heap in an incarnation, if it has one, is anybody's from here on. */
void tsi_heap_let_go(TsiBinding* b, TsiRef ref);
/* The owner lets go of a heap that is not being swept; the stripe is held. */
void tsi_heap_detach_locked(TsiBinding* b, TsiHeap* h);

#endif
