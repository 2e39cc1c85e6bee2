/*
 * heap.h - heaps: birth, look-up, adoption, rooms.
 */
#ifndef TSI_HEAP_HEAP_H
#define TSI_HEAP_HEAP_H

#include "heap/thread_heaps.h"
#include "os/clock.h"

/* Makes the records of no heap and no line. [once per process] */
void tsi_heap_init(void);

/* STALE: the incarnation accepts no more. */
typedef enum TsiBirth { TSI_BIRTH_OK, TSI_BIRTH_STALE, TSI_BIRTH_NO_MEMORY } TsiBirth;

/* Finds a heap of the binding's in the incarnation to which nothing leads yet, or else adopts one or makes one, without
 * slabs, in *out: LIVE, in b's chain, and led to from the incarnation or b's table. First hands over heaps of b's there
 * that were asked for, which may run cleanups. Returns TSI_BIRTH_OK; otherwise STALE if the incarnation accepts no
 * more, or NO_MEMORY, with *out NULL. [own thread, no lock held, no bracket open] */
TsiBirth tsi_heap_make(TsiBinding* b, TsiRef ref, TsiHeap** out);
/* Makes a heap without slabs and room of record `index`, which tsi_record_take has given the caller, in the list of
 * inc, the incarnation of `ref`, with `word` as its owner and state. The caller puts it into a chain. Returns it.
 * [stripe held] */
TsiHeap* tsi_heap_birth_locked(TsiArena* a, TsiInc* inc, TsiRef ref, uint32_t index, uint64_t word);
/* Returns the time, nanoseconds of tsi_clock_stamp, if inc, the incarnation of `ref`, has no opening time yet, so that
 * it may be about to be used for the first time; otherwise 0. For tsi_inc_opened_locked. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_inc_opening_ns(TsiInc* inc, TsiRef ref) {
    /* The first incarnation of id 0 has always been open: its time is 0. */
    return tsi_load_relaxed(&inc->open_since_ns) == 0 && tsi_ref_era(ref) != 1 ? tsi_clock_stamp() : 0;
}
/* Sets inc->open_since_ns to now_ns, of tsi_inc_opening_ns, unless that is 0 or the field is set. [stripe held] */
TSI_INLINE void tsi_inc_opened_locked(TsiInc* inc, uint64_t now_ns) {
    TSI_HOLDS(tsi_inc_lock(inc));
    if (now_ns != 0 && tsi_load_relaxed(&inc->open_since_ns) == 0) tsi_store_relaxed(&inc->open_since_ns, now_ns);
}
/* Adopts an ownerless heap of h's incarnation that has room for the class: it is LIVE, in b's chain, with h as its
 * primary, and its lines join h's room, which is made if there is none. Returns false if no heap has room, the phase is
 * over, or without memory. [owner, in bracket of the whole heap] */
bool tsi_heap_adopt_more(TsiBinding* b, TsiHeap* h, unsigned cls);
/* Puts each line of h that has free slots at the back of its class's queue in the room of h's primary, which is there,
 * and parks the others, with their tokens out; retired lines stay parked. [owner, in bracket] */
void tsi_heap_rebuild_room(TsiBinding* b, TsiHeap* h);
/* Gives the heap an empty room, unless it has one; b->cur follows where h is the ambient heap. Returns false without
 * memory for the record. [owner, in bracket] */
bool tsi_heap_ensure_room(TsiBinding* b, TsiHeap* h);
/* Lets go of all heaps of an exiting thread, with their empty slabs: b's chain is empty afterwards, and no heap has
 * this owner. Cleanups of the program may run. [own thread, no lock held, no bracket open] */
void tsi_heaps_detach_all(TsiBinding* b);
/* Lends the binding's primary in the incarnation `ref`, to which `words`, the domain's, lead, if it has one that may be
 * lent (H3 in thread_heaps.h): it is LENT and in no chain. The thread learns from it for the label. Returns false, with
 * the heap still b's, if there is none or it has a room; false, too, if the heap was asked for, and has been handed
 * over if that was in time. label: the phase's. [own thread, no lock held, no bracket open] */
bool tsi_heap_lend(TsiBinding* b, TsiPhaseWords* words, TsiRef ref, uint32_t label);
/* Lets go of the binding's heap in an incarnation, if it has one, and learns from it for the label: any thread may
 * adopt it. A heap of more than 8 slabs gives its empty ones back; a smaller one keeps all.
 * [own thread, no lock held, no bracket open] */
void tsi_heap_let_go(TsiBinding* b, TsiRef ref);
/* Makes a heap that is not being swept DETACHED: takes it out of the chain of b, its owner, frees its room, makes it
 * its own primary and raises the incarnation's `detached`. The caller has set h->roomy to the classes that it may have
 * room for. [owner, stripe held] */
void tsi_heap_detach_locked(TsiBinding* b, TsiHeap* h);

#endif
