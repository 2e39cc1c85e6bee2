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

/* Finds another heap of the binding's in an incarnation to which nothing leads yet, or adopts or makes one, in *out.
 * Returns TSI_BIRTH_OK; otherwise STALE if the incarnation accepts no more, or NO_MEMORY, with *out NULL.
 * [own thread, no lock held, no bracket open] */
TsiBirth tsi_heap_make(TsiBinding* b, TsiRef ref, TsiHeap** out);
/* Makes a heap of record `index`, which is the caller's, in the incarnation of `ref`, with `word`. Returns it.
 * [stripe held] */
TsiHeap* tsi_heap_birth_locked(TsiArena* a, TsiInc* inc, TsiRef ref, uint32_t index, uint64_t word);
/* Returns the time, nanoseconds of tsi_clock_stamp, if the incarnation is about to be used for the first time, so that
 * it must be read; otherwise 0. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_inc_opening_ns(TsiInc* inc, TsiRef ref) {
    /* The first incarnation of id 0 has always been open: its time is 0. */
    return tsi_load_relaxed(&inc->open_since_ns) == 0 && tsi_ref_era(ref) != 1 ? tsi_clock_stamp() : 0;
}
/* Notes now_ns as the time since which the incarnation is open, unless it is 0 or one is noted. [stripe held] */
TSI_INLINE void tsi_inc_opened_locked(TsiInc* inc, uint64_t now_ns) {
    TSI_HOLDS(tsi_inc_lock(inc));
    if (now_ns != 0 && tsi_load_relaxed(&inc->open_since_ns) == 0) tsi_store_relaxed(&inc->open_since_ns, now_ns);
}
/* Adopts an ownerless heap of h's incarnation that has room for the class; its lines join h's room. Returns false if
 * none has, or without memory. [owner, in bracket of the whole heap] */
bool tsi_heap_adopt_more(TsiBinding* b, TsiHeap* h, unsigned cls);
/* Files every line of h that has room in the room of its primary, and parks the others. [owner, in bracket] */
void tsi_heap_rebuild_room(TsiBinding* b, TsiHeap* h);
/* Gives the heap a room, unless it has one. Returns false without memory. [owner, in bracket] */
bool tsi_heap_ensure_room(TsiBinding* b, TsiHeap* h);
/* Lets go of all heaps of an exiting thread: none has this owner afterwards.
 * [own thread, no lock held, no bracket open] */
void tsi_heaps_detach_all(TsiBinding* b);
/* Lends the binding's primary in the incarnation of the domain, if it has one that may be lent (H3 in thread_heaps.h).
 * Returns false, changing nothing, if not, or if the heap was asked for. label: the phase's.
 * [own thread, no lock held, no bracket open] */
bool tsi_heap_lend(TsiBinding* b, TsiPhaseWords* words, TsiRef ref, uint32_t label);
/* Lets go of the binding's heap in an incarnation, if it has one: any thread may adopt it.
 * [own thread, no lock held, no bracket open] */
void tsi_heap_let_go(TsiBinding* b, TsiRef ref);
/* Makes a heap that is not being swept DETACHED: takes it out of its owner's chain and frees its room.
 * [owner, stripe held] */
void tsi_heap_detach_locked(TsiBinding* b, TsiHeap* h);

#endif
