/*
 * free.h - freeing: the fast path inline, the rest behind tsi_free_place.
 */
#ifndef TSI_HEAP_FREE_H
#define TSI_HEAP_FREE_H

#include "heap/fast.h"
#include "state/liveness.h"

/* Frees the object at *at, a place that tsi_space_locate or a handle has given. `seq` is the slab incarnation it must
 * belong to, 0 for the present one. `handled`: the caller has made the slot's count odd (tsi_count_move returned true).
 * Does all that follows: tells an owner that waits for slots, gives back an empty slab that nobody owns. Returns
 * TSI_FREE_OK or the SlabMisuse as which it is refused, which the caller reports. b: the calling thread's binding, or
 * NULL. [any thread, no lock held, no bracket open] */
int tsi_free_place(TsiArena* a, TsiBinding* b, const TsiPlace* at, uint32_t seq, bool handled);
/* Frees the object at *at in a region, by another thread's way, and returns what empties by that: `seq`, not 0, is the
 * slab incarnation it must belong to, `generation` the handle's, or UINT32_MAX for a pointer. Zeroes it first where the
 * allocator fills. Returns TSI_FREE_OK or the SlabMisuse as which it is refused, which the caller reports. b: the
 * calling thread's binding, which counts the free, or NULL. [any thread, no lock held, no bracket open] */
int tsi_free_in_region(TsiArena* a, TsiBinding* b, const TsiPlace* at, uint32_t seq, uint32_t generation);
/* Frees a pointer into a region that tsi_bump_free missed, with the region still in b->busy; the allocator does not
 * fill. Closes the bracket, with a handover if the region's heap is the thread's and was asked for. Returns true if p
 * is freed, false if refused, which is counted and told. [own thread, in the open bracket] */
bool tsi_free_bumped(TsiBinding* b, void* p);
/* Frees p, of this allocator, whose object must have at least `least` usable bytes; 0: any. Where programs have
 * stand-ins p is one, and goes with its slot. Returns true if it is freed; false if refused, also for NULL, an interior
 * or foreign pointer or a smaller object (SLAB_MISUSE_SIZE_MISMATCH), which is counted and told (tsi_refuse).
 * [any thread, no lock held, no bracket open] */
bool tsi_free_pointer(TsiArena* a, void* p, size_t least);
/* Clears the first word of `slot`, the place *at, whose object has the guarded block `block`, by tsi_stand_in_unlink;
 * where pages of an ended phase cannot be written, under the stripe, and not at all if the slab is in no phase.
 * [any thread, no lock held, no bracket open] */
void tsi_unlink_block(TsiArena* a, const TsiPlace* at, void* slot, void* block);
/* Returns the misuse as which a free is refused whose object tsi_space_locate did not find: `r` is its answer, *at the
 * place. [any thread, needs no lock] */
SlabMisuse tsi_misuse_of(const TsiArena* a, TsiPlaceResult r, const TsiPlace* at);
/*
 * Frees a slot of an ordinary line of the thread's. Returns DONE; HANDOVER: done, and the caller hands over *out, the
 * heap. Nothing is done otherwise: MISSED: the bracket is open; IS_REGION: p is in a region, *at its entry; NOT_FOUND:
 * p is not in the payload.
 *
 * heap_at is read inside the bracket, before the heap's word. A slab that has left heap h has its heap_at cleared
 * before h's word leaves SEIZED or DEAD, and only this thread makes the word LIVE for itself again. So "heap_at names
 * h, and h is LIVE and mine" means that the slab is in h. Then it has been there since before this call, its chunk has
 * had its class as long, and the entry that led here is the chunk's: the line holds p. [own thread, opens the bracket]
 */
TSI_INLINE TsiFast tsi_free_fast(TsiBinding* b, const void* p, TsiHeap** out, unsigned* at) {
    uint64_t off = (uint64_t)((uintptr_t)p - (uintptr_t)b->base);
    if (TSI_UNLIKELY(off >= b->covered)) return TSI_FAST_NOT_FOUND;
    uint32_t entry = tsi_load_acquire(&b->entries[off >> TSI_LINE_MIN_SHIFT]); /* pairs with entries_set */
    *at = entry;
    if (TSI_UNLIKELY((entry & TSI_ENTRY_REGION) != 0)) return TSI_FAST_IS_REGION;

    uint64_t live = b->live_word;
    TsiLine* l = (TsiLine*)(void*)b->words + entry;
    tsi_bracket_name(b, tsi_busy_line(l));
    TsiHeap* h = (TsiHeap*)(void*)((uint8_t*)b->heaps_base + tsi_load_relaxed(&l->heap_at));
    if (TSI_UNLIKELY(!tsi_word_is(&h->word, live))) return TSI_FAST_MISSED;

    /* An interior pointer's low bits are turned to the top. */
    uint64_t slot = tsi_rotate_right((uint64_t)((uintptr_t)p - (uintptr_t)l->base), l->shift);
    if (TSI_UNLIKELY(slot >= TSI_LINE_SLOTS)) return TSI_FAST_MISSED;

    uint64_t freed = tsi_load_relaxed(&l->freed), gone = tsi_or_word(freed, &l->avail) | tsi_remote_seen(l);
    if (TSI_UNLIKELY(gone >> slot & 1)) return TSI_FAST_MISSED;
    tsi_store_relaxed(&l->freed, freed | 1ull << slot);
    tsi_bracket_clear(b);
    *out = h;
    return TSI_LIKELY(tsi_word_is(&h->word, live)) ? TSI_FAST_DONE : TSI_FAST_HANDOVER;
}

/* Frees a pointer that tsi_free_fast missed, with the line still in b->busy: the line is the thread's, and this is its
 * first free since it was parked, or it has issued handles; or the slab is another thread's, or nobody's. Closes the
 * bracket, with a handover if the line's heap is the thread's and was asked for. Returns true if it is freed, false if
 * refused, which is counted and told. [own thread, in the open bracket] */
bool tsi_free_missed(TsiBinding* b, void* p);
/* Hands over h after a free in it that ended with HANDOVER. Returns true.
 * [own thread, no lock held, no bracket open] */
bool tsi_free_left(TsiBinding* b, TsiHeap* h);

/* Frees p for a thread without a binding, which has no heap and only frees; the allocator does not fill. Returns true
 * if it is freed, or p is NULL; false if refused, which is counted and told.
 * [any thread, no lock held, no bracket open] */
bool tsi_free_unbound(TsiArena* a, void* p);

#endif
