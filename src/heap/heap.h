/*
 * heap.h - heaps: birth, look-up, adoption, rooms; lines: refill, park, inbox.
 */
#ifndef TSI_HEAP_HEAP_H
#define TSI_HEAP_HEAP_H

#include "heap/arena.h"
#include "os/clock.h"

/* Once per process. */
void tsi_heap_init(void);

typedef enum TsiBirth { TSI_BIRTH_OK, TSI_BIRTH_STALE, TSI_BIRTH_NO_MEMORY } TsiBirth;

/* The binding's heap in an incarnation; made or adopted when it has none. bumps: for an object of a region, so a heap
 * that waits with its region will do. */
TsiBirth tsi_heap_get(TsiBinding* b, TsiRef ref, bool bumps, TsiHeap** out);
/* The same without making one; NULL when it has none cached. */
TSI_INLINE TsiHeap* tsi_heap_cached(TsiBinding* b, TsiRef ref) {
    TsiHeap* h = b->by_inc[tsi_ref_index(ref) % TSI_HEAP_CACHE];
    if (h != NULL && tsi_load_relaxed(&h->ref) == ref &&
        tsi_load_relaxed(&h->word) == tsi_heap_word(b->index, TSI_HEAP_LIVE))
        return h;
    return NULL;
}
/* Enters a new heap into the incarnation, in `word`'s state; the stripe is held. */
TsiHeap* tsi_heap_birth_locked(TsiArena* a, TsiInc* i, TsiRef ref, uint32_t index, TsiLanes* lanes, uint64_t word);
/* The time, where it has to be read because the incarnation is about to be used for the first time, else 0. */
TSI_INLINE uint64_t tsi_inc_opening_ns(TsiInc* i, TsiRef ref) {
    /* The first incarnation of id 0 has always been open: its time is 0. */
    return tsi_load_relaxed(&i->open_since_ns) == 0 && tsi_ref_era(ref) != 1 ? tsi_clock_stamp() : 0;
}
TSI_INLINE void tsi_inc_opened_locked(TsiInc* i, uint64_t now_ns) {
    TSI_HOLDS(tsi_inc_lock(i));
    if (now_ns != 0 && tsi_load_relaxed(&i->open_since_ns) == 0) tsi_store_relaxed(&i->open_since_ns, now_ns);
}
/* Takes over an ownerless heap of the same incarnation, for its slabs with room. Inside the heap's bracket. */
bool tsi_heap_adopt_more(TsiBinding* b, TsiHeap* h);
/* Files every line of h that has room in the room of its primary and parks the others; inside the bracket. */
void tsi_heap_rebuild_room(TsiBinding* b, TsiHeap* h);
/* Gives the heap a room; false without memory. */
bool tsi_heap_ensure_room(TsiBinding* b, TsiHeap* h);
void tsi_room_give(TsiArena* a, TsiBinding* b, TsiHeap* h);
/* Unlinks from the owner's chain and frees the record. Own thread only. */
void tsi_heap_drop_own(TsiBinding* b, TsiHeap* h);
/* Frees a record that is in nobody's chain. */
void tsi_heap_free(TsiArena* a, TsiBinding* b, TsiHeap* h);
/* Own thread: frees the records of heaps that others have swept. */
void tsi_heaps_prune(TsiBinding* b);
/* Thread exit: no heap has this owner afterwards. */
void tsi_heaps_detach_all(TsiBinding* b);
/* Own thread, outside of brackets: its heap in an incarnation, if it has one, is anybody's from here on. */
void tsi_heap_let_go(TsiBinding* b, TsiRef ref);
/* The owner lets go of a heap that is not being swept; the stripe is held. */
void tsi_heap_detach_locked(TsiBinding* b, TsiHeap* h);
/* Puts a heap at the front of the binding's ambient slot. */
void tsi_binding_set_ambient(TsiBinding* b, TsiHeap* h);

/* Domain and incarnation records through the thread's own small stores. */
bool tsi_record_take_inc_slow(TsiArena* a, TsiBinding* b, uint32_t* index);
/* b may be NULL. */
void tsi_record_give_inc_slow(TsiArena* a, uint32_t index);
void tsi_record_give_domain_slow(TsiArena* a, uint32_t index);
/* Incarnations first in, first out, so that a domain's id comes back late. */
TSI_INLINE bool tsi_record_take_inc(TsiArena* a, TsiBinding* b, uint32_t* index) {
    if (TSI_UNLIKELY(b->inc_count < TSI_RECORD_CACHE / 2)) return tsi_record_take_inc_slow(a, b, index);
    *index = b->inc_cache[b->inc_first];
    b->inc_first = (b->inc_first + 1) % TSI_RECORD_CACHE;
    b->inc_count--;
    return true;
}
TSI_INLINE void tsi_record_give_inc(TsiArena* a, TsiBinding* b, uint32_t index) {
    if (TSI_LIKELY(b != NULL && b->inc_count < TSI_RECORD_CACHE))
        b->inc_cache[(b->inc_first + b->inc_count++) % TSI_RECORD_CACHE] = index;
    else tsi_record_give_inc_slow(a, index);
}
TSI_INLINE void tsi_record_give_domain(TsiArena* a, TsiBinding* b, uint32_t index) {
    if (TSI_LIKELY(b != NULL && b->domain_count < TSI_RECORD_CACHE)) b->domain_cache[b->domain_count++] = index;
    else tsi_record_give_domain_slow(a, index);
}
TSI_INLINE bool tsi_record_take(TsiTable* t, uint32_t* cache, uint32_t* count, uint32_t* index) {
    if (TSI_UNLIKELY(*count == 0)) return tsi_table_take(t, index, 0);
    *index = cache[--*count];
    return true;
}
void tsi_record_give(TsiTable* t, uint32_t* cache, uint32_t* count, uint32_t index);
void tsi_binding_flush_records(TsiBinding* b);

/* ---- lines; all inside the owner's bracket unless stated ---- */

/* Free slots that the owner could have: freed and remote ones. Anyone; a hint for others. */
uint64_t tsi_line_free_bits(const TsiSpace* s, TsiLine* l, uint32_t line_id);
/* Moves remote and freed slots to avail if there are at least `least`; returns how many avail has. */
unsigned tsi_line_refill(TsiBinding* b, TsiLine* l, const TsiClass* c, unsigned least);
/* Puts a used-up line where its free slots will be found: at the back of the room's queue when it has some free
 * slots, otherwise it is parked. False when it has enough for a refill. */
bool tsi_line_leave(TsiBinding* b, unsigned cls, TsiLine* l);
/* Where slots of a line are handed out in whose slab a handle may have been issued: their counts become even again. */
void tsi_line_counts_even(TsiSpace* s, TsiLine* l, const TsiClass* c, uint64_t slots);
/* The owner's free of a slot: its bit, and a parked line goes into its room. */
void tsi_line_freed(TsiBinding* b, TsiLine* l, unsigned slot);
/* Puts the token into the remote word, see line.c; false when the slab has left its incarnation. Any thread. */
bool tsi_line_arm(TsiSpace* s, uint32_t line_id, uint32_t seq);
/* Takes the token out of the word if enough slots are free; true: the caller has it. Any thread. */
bool tsi_line_disarm(TsiSpace* s, uint32_t line_id, uint32_t seq, unsigned threshold);
/* A thread that freed slots of a parked line tells its owner; any thread. `seq` is the slab's when freed. */
void tsi_line_notify(TsiArena* a, uint32_t line_id, uint32_t slab_id, uint32_t seq);
/* The owner takes in slabs others have told it of. */
void tsi_inbox_drain(TsiBinding* b);
void tsi_inbox_close(TsiBinding* b);

#endif
