/*
 * bump.h - objects in regions: the owner's fast paths inline, regions and the frees of others behind them.
 *
 * A heap of a domain's own epoch bumps: it puts each object behind the one before, in the region that the heap names. A
 * free only marks the object; its room is not handed out again. When a region is used up, the heap first uses regions
 * that have become empty again.
 *
 * The size classes take over for the rest of the phase if much has been freed and no region has become empty; or, in a
 * heap that is not large, if regions are empty again and again by the time they are used up. The next phase of that
 * label on the thread changes over after its first 64 KiB, since memory that was bumped stays where it is; unless one
 * of them was judged wrongly: it changed over, and did not use its slots again.
 *
 * A heap of an epoch of the ring begins likewise, but with at most TSI_RING_BYTES of regions of a page: a thread with
 * few objects there needs no slab of each class. When they are used up and none is empty, or were used over and over,
 * the classes take over for good, and its regions become slabs like others. Such a heap teaches later phases nothing,
 * has no huge pages, and gives no object a region alone.
 *
 * Regions that the classes have taken over from may still hold a few objects, as a cache that has shrunk does. Nothing
 * is added to them, so their pages without an object go back while the heap grows by class (tsi_bump_thin).
 *
 * An object that outlives a drained phase holds its region's page, or half page, and part of the region's map. Once
 * objects have outlived a phase, the label's next ones on the thread take many small regions, not a few large ones:
 * regions without survivors go back whole, without a system call for each page, and survivors of different phases share
 * pages.
 *
 * The last object of a region grows where it is, by realloc: in the current region, and an object beyond TSI_BUMP_MAX
 * that has a region alone. The heap remembers the former and where it ended, so that its next growth is as fast as an
 * allocation.
 *
 * Brackets follow bracket.h; the name in `busy` is the region's record, which stands for its slab.
 */
#ifndef TSI_HEAP_BUMP_H
#define TSI_HEAP_BUMP_H

#include "heap/fast.h"
#include "heap/scrub.h"
#include "state/liveness.h"
#include "mem/handle.h"
#include "mem/region.h"
#include "state/arena.h"

/* ---- the region in which a heap bumps ---- */

/* Makes the heap bump in r; tsi_no_region: in none. No object is the one that has grown last then, and b->region
 * follows where h is b's ambient heap. b: the owner, or NULL if that is not the caller. [owner, or heap seized] */
TSI_INLINE void tsi_heap_set_region(TsiBinding* b, TsiHeap* h, TsiRegion* r) {
    tsi_store_relaxed(&h->region, r);
    tsi_store_relaxed(&h->last, NULL);
    if (b != NULL && b->heap == h) b->region = r != &tsi_no_region ? r : NULL;
}
/* Makes the heap bump in no region, until it takes one: adds what was bumped in the current one to h->bumped, and sets
 * the list of its empty regions, the place of its next look and the number of its solo regions to 0. The regions stay
 * in the heap's chain. b: the owner, or NULL if that is not the caller. [owner, or heap seized] */
void tsi_bump_drop(TsiBinding* b, TsiHeap* h);

enum {
    TSI_BUMP_MAX = 4096, /* largest object that is bumped */
    TSI_BUMP_ALIGN_MAX = 1024,
    TSI_RING_BYTES = 12 << 10, /* bytes of regions that a heap of an epoch of the ring has at most */
    TSI_BIG_BYTES = 4 << 20,   /* bytes: a phase that needs more is worth huge pages */
    TSI_SOLO_MAX = 128 << 10   /* bytes of the largest growing object that gets a region alone */
};

/* Returns the region's name for `busy`. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_busy_region(const TsiRegion* r) { return (uint64_t)(uintptr_t)r; }

/* ---- objects ---- */

/* Returns the bytes of a region that an object of `size` takes. size <= TSI_BUMP_MAX. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_bump_bytes(size_t size) { return ((uint32_t)size + TSI_GRANULE - 1) & ~(TSI_GRANULE - 1u); }
/* Sets *rel to where the region's next object would begin. Returns true if `bytes` fit there. Both hold as long as the
 * heap is the thread's and the thread does nothing else in it. [owner, in or out of the bracket] */
TSI_INLINE bool tsi_bump_fits(const TsiRegion* r, uint32_t bytes, uint32_t* rel) {
    *rel = tsi_load_relaxed(&r->rel);
    return tsi_half_reaches(&r->lim, *rel + bytes);
}
/* Takes the region's next `bytes`, which begin at `rel`, both of tsi_bump_fits, and fit: marks their start in the map,
 * raises r->rel by `bytes` and r->issued by one. Returns their address. [owner, in bracket] */
TSI_INLINE void* tsi_bump_take(TsiRegion* r, uint32_t rel, uint32_t bytes) {
    /* release: pairs with load16_in_order. A reader that sees it sees that the run before it has ended. */
    tsi_store_release(&tsi_load_relaxed(&r->map)[rel >> TSI_GRANULE_SHIFT], tsi_region_life(r));
    tsi_store_release(&r->rel, rel + bytes); /* pairs with used_granules in region.c */
    tsi_count_half_release(&r->issued);      /* last: pairs with tsi_region_sum */
    return tsi_load_relaxed(&r->base) + rel;
}

/* Allocates `bytes` (tsi_bump_bytes), which fit at `rel` by tsi_bump_fits in r, h's current region, in *out. Returns
 * DONE; HANDOVER: done, too, and the caller hands h over; MISSED: nothing done, *out as it was, and the bracket open
 * with r in `busy`, since h's word is not b->live_word. [owner, opens the bracket] */
TSI_INLINE TsiFast tsi_bump_fast(TsiBinding* b, TsiHeap* h, TsiRegion* r, uint32_t rel, uint32_t bytes, void** out) {
    uint64_t live = b->live_word;
    tsi_bracket_name(b, tsi_busy_region(r));
    if (TSI_UNLIKELY(!tsi_word_is(&h->word, live))) return TSI_FAST_MISSED;
    *out = tsi_bump_take(r, rel, bytes);
    tsi_bracket_clear(b);
    return TSI_LIKELY(tsi_word_is(&h->word, live)) ? TSI_FAST_DONE : TSI_FAST_HANDOVER;
}

enum { TSI_SIZED_MAX = 17 << TSI_GRANULE_SHIFT }; /* largest size that tsi_bump_holds takes */
/* Returns true if the object at byte `at` of its region, which starts at *byte of the map, has at least `size` bytes;
 * 1 <= size <= TSI_SIZED_MAX. gen: the region's life. [owner, in bracket] */
TSI_INLINE bool tsi_bump_holds(const TsiRegion* r, const _Atomic uint8_t* byte, uint64_t at, size_t size, uint8_t gen) {
    return at + size <= tsi_load_relaxed(&r->rel) &&
           tsi_starts_none(byte + 1, (unsigned)(size - 1) >> TSI_GRANULE_SHIFT, gen);
}
/* Returns true if the object at byte `at` of its region, a multiple of TSI_GRANULE where a live object starts, has at
 * least `size` bytes, whatever the size. gen: r->gen. [owner, in bracket] */
bool tsi_bump_holds_any(const TsiRegion* r, uint64_t at, size_t size, uint8_t gen);
/* Frees an object in a region; `entry` is the one that tsi_free_fast has read, and heap_at is read as there. Returns
 * MISSED if nothing was done, with the bracket open, and *out and *of as they were; with `sized` also if the object has
 * fewer than `least` bytes, or least is 0 or above TSI_SIZED_MAX. Otherwise the object is freed and the bracket closed,
 * with the heap in *out and its region in *of: DONE; HANDOVER, where the caller hands the heap over; REGION_EMPTY, if
 * the region, which is not the current one, looks empty: tsi_bump_keep_empty follows.
 * [own thread, opens the bracket] */
TSI_INLINE TsiFast tsi_bump_free(TsiBinding* b, const void* p, uint32_t entry, bool sized, size_t least, TsiHeap** out,
                                 TsiRegion** of) {
    uint64_t live = b->live_word;
    TsiRegion* r = (TsiRegion*)(void*)b->words + (entry & ~TSI_ENTRY_REGION);
    tsi_bracket_name(b, tsi_busy_region(r));
    TsiHeap* h = (TsiHeap*)(void*)((uint8_t*)b->heaps_base + tsi_load_relaxed(&r->heap_at));
    if (TSI_UNLIKELY(!tsi_word_is(&h->word, live))) return TSI_FAST_MISSED;

    uint8_t gen = tsi_region_life(r);
    uint64_t at = (uint64_t)((uintptr_t)p - (uintptr_t)tsi_load_relaxed(&r->base));
    _Atomic uint8_t* byte = tsi_load_relaxed(&r->map) + (at >> TSI_GRANULE_SHIFT);
    if (TSI_UNLIKELY(tsi_load_relaxed(byte) != gen || (at & (TSI_GRANULE - 1)) != 0)) return TSI_FAST_MISSED;

    if (sized && TSI_UNLIKELY(least - 1 >= TSI_SIZED_MAX || !tsi_bump_holds(r, byte, at, least, gen)))
        return TSI_FAST_MISSED;
    tsi_store_relaxed(byte, (uint8_t)(gen | TSI_MARK_OWN));
    uint32_t freed = tsi_load_relaxed(&r->freed) + 1;
    tsi_store_release(&r->freed, freed); /* pairs with tsi_region_sum */
    bool empty = freed == tsi_load_relaxed(&r->issued);
    tsi_bracket_clear(b);
    *out = h;
    *of = r;
    if (TSI_UNLIKELY(!tsi_word_is(&h->word, live))) return TSI_FAST_HANDOVER;
    return TSI_UNLIKELY(empty) && r != tsi_load_relaxed(&h->region) ? TSI_FAST_REGION_EMPTY : TSI_FAST_DONE;
}

/* Makes the last object of region r, which starts at byte `start` and ends at `rel` (r->rel), `size` bytes long,
 * rounded up to granules; 1 <= size <= TSI_SMALL_MAX. No run has ended there: a claim forgets the object that has grown
 * last, and regions of one object are not claimed. An object that has that already, and uses half of it at least,
 * stays as it is. Returns true with r's new end in *end; false, changing nothing in r, if the object does not live,
 * there is no room, or it would shrink to less than half. [owner, in bracket] */
TSI_INLINE bool tsi_bump_extend(TsiRegion* r, uint32_t start, uint32_t rel, size_t size, uint32_t* end) {
    const _Atomic uint8_t* byte = &tsi_load_relaxed(&r->map)[start >> TSI_GRANULE_SHIFT];
    if (TSI_UNLIKELY(tsi_load_relaxed(byte) != tsi_region_life(r))) return false;
    uint32_t to = start + (((uint32_t)size + TSI_GRANULE - 1) & ~(TSI_GRANULE - 1u));
    *end = rel;
    if (TSI_UNLIKELY(to <= rel)) return size >= (rel - start) / 2;
    if (TSI_UNLIKELY(to > tsi_load_relaxed(&r->lim))) return false;
    tsi_store_release(&r->rel, *end = to); /* as in tsi_bump_take */
    return true;
}
/* Grows p, in place, to `size` bytes, if it is the object that has grown last (h->last) in h, the ambient heap, and
 * still ends its region; shrinks nothing. 1 <= size <= TSI_SMALL_MAX. Returns DONE; HANDOVER: done, and the caller
 * hands h over; MISSED: nothing done, the bracket is open with h's region in `busy`. [own thread, opens the bracket] */
TSI_INLINE TsiFast tsi_bump_grow_last(TsiBinding* b, TsiHeap* h, const void* p, size_t size) {
    uint64_t live = b->live_word;
    TsiRegion* r = tsi_load_relaxed(&h->region);
    tsi_bracket_name(b, tsi_busy_region(r));
    if (TSI_UNLIKELY(!tsi_word_is(&h->word, live))) return TSI_FAST_MISSED;
    uint32_t rel = tsi_load_relaxed(&r->rel), end;
    if (TSI_UNLIKELY(rel != tsi_load_relaxed(&h->last_end) || p != tsi_load_relaxed(&h->last))) return TSI_FAST_MISSED;
    uint32_t start = (uint32_t)((const uint8_t*)p - tsi_load_relaxed(&r->base));
    if (TSI_UNLIKELY(!tsi_bump_extend(r, start, rel, size, &end))) return TSI_FAST_MISSED;
    tsi_store_relaxed(&h->last_end, end);
    tsi_bracket_clear(b);
    return TSI_LIKELY(tsi_word_is(&h->word, live)) ? TSI_FAST_DONE : TSI_FAST_HANDOVER;
}
/* Grows p, in place, to `size` bytes, like tsi_bump_grow_last, but in any heap of the thread's, which *out is
 * afterwards, and also an object that has a region alone. Returns like that; MISSED, with the bracket open and *out as
 * it was; NOT_FOUND, with no bracket entered, if p is in no region or size is 0 or above TSI_SMALL_MAX.
 * [own thread, opens the bracket] */
TSI_INLINE TsiFast tsi_bump_grow_fast(TsiBinding* b, const void* p, size_t size, TsiHeap** out) {
    uint64_t off = (uint64_t)((uintptr_t)p - (uintptr_t)b->base), live = b->live_word;
    if (TSI_UNLIKELY(off >= b->covered || size - 1 >= TSI_SMALL_MAX)) return TSI_FAST_NOT_FOUND;
    uint32_t entry = tsi_load_acquire(&b->entries[off >> TSI_LINE_MIN_SHIFT]), end; /* as in tsi_free_fast */
    if (TSI_UNLIKELY((entry & TSI_ENTRY_REGION) == 0)) return TSI_FAST_NOT_FOUND;

    TsiRegion* r = (TsiRegion*)(void*)b->words + (entry & ~TSI_ENTRY_REGION);
    tsi_bracket_name(b, tsi_busy_region(r));
    TsiHeap* h = (TsiHeap*)(void*)((uint8_t*)b->heaps_base + tsi_load_relaxed(&r->heap_at));
    if (TSI_UNLIKELY(!tsi_word_is(&h->word, live))) return TSI_FAST_MISSED;

    uint32_t start = (uint32_t)((uintptr_t)p - (uintptr_t)tsi_load_relaxed(&r->base)), rel = tsi_load_relaxed(&r->rel);
    /* if so, the region is current */
    bool current = p == tsi_load_relaxed(&h->last) && rel == tsi_load_relaxed(&h->last_end);
    if (TSI_UNLIKELY(!current && (start != 0 || !r->solo))) return TSI_FAST_MISSED;
    if (TSI_UNLIKELY(!tsi_bump_extend(r, start, rel, size, &end))) return TSI_FAST_MISSED;

    if (current) tsi_store_relaxed(&h->last_end, end);
    tsi_bracket_clear(b);
    *out = h;
    return TSI_LIKELY(tsi_word_is(&h->word, live)) ? TSI_FAST_DONE : TSI_FAST_HANDOVER;
}

/* Allocates like tsi_bump_fast, with *handle. Returns like that, with *handle as it was after MISSED; MISSED also if
 * the region has issued no handle in this life, or can issue no more. [owner, opens the bracket] */
TSI_INLINE TsiFast tsi_bump_handle_fast(TsiBinding* b, TsiHeap* h, TsiRegion* r, uint32_t rel, uint32_t bytes,
                                        void** out, SlabHandle* handle) {
    uint64_t live = b->live_word;
    tsi_bracket_name(b, tsi_busy_region(r));
    if (TSI_UNLIKELY(!tsi_word_is(&h->word, live))) return TSI_FAST_MISSED;
    const TsiSpace* s = &b->arena->space;
    TsiSlab* slab = tsi_slab(s, tsi_region_id(s, r));
    uint32_t generation = tsi_load_relaxed(&slab->gen_base);
    /* The tag, not heap_at, says that handles were issued: a thread that asked for one in an earlier life may come late
     * and clear heap_at in this one. */
    if (TSI_UNLIKELY((tsi_load_relaxed(&slab->tag) & TSI_SLAB_HANDLED) == 0 || generation >= TSI_GEN_LIMIT))
        return TSI_FAST_MISSED;
    *out = tsi_bump_take(r, rel, bytes);
    *handle =
        tsi_handle_make(b->secret, (uint32_t)((uint64_t)((uint8_t*)*out - b->base) >> TSI_GRANULE_SHIFT), generation);
    tsi_bracket_clear(b);
    return TSI_LIKELY(tsi_word_is(&h->word, live)) ? TSI_FAST_DONE : TSI_FAST_HANDOVER;
}

/* Returns true if the handle's place is in a chunk of regions: a hint. [any thread, needs no lock] */
TSI_INLINE bool tsi_handle_is_bumped(const TsiBinding* b, SlabHandle handle) {
    uint32_t chunk = tsi_line_chunk(tsi_place_line(tsi_handle_place_of(handle)));
    if (TSI_UNLIKELY((uint64_t)chunk << TSI_CHUNK_SHIFT >= b->covered)) return false;
    return (tsi_load_relaxed(&b->keys[chunk]) & TSI_KEY_REGION) != 0;
}
/* Frees an object in a region by its handle. Like tsi_bump_free, but a compare-exchange decides among racing frees, and
 * the slab's tag says whose the region is, since handles clear heap_at.
 *
 * The argument is that of tsi_free_fast: a slab that leaves heap h gets another tag before h's word leaves SEIZED or
 * DEAD. So if the tag names h, and then, in the bracket, h is LIVE and mine, the slab has been in h since before this
 * call. Its generation and its life stand still then: this thread alone renews them. The generation is compared first,
 * since the byte of a renewed life may be the start of another object.
 *
 * A region that it empties is found when the heap looks for its next. Returns DONE, HANDOVER and MISSED like
 * tsi_bump_free; IS_REGION if the region is in no heap of the thread's; NOT_FOUND if it may be no region at all. The
 * last two enter no bracket. [own thread, opens the bracket]
 */
TSI_INLINE TsiFast tsi_bump_handle_free(TsiBinding* b, SlabHandle handle, TsiHeap** out) {
    uint64_t live = b->live_word;
    uint32_t place = tsi_handle_place_of(handle);
    uint64_t off = (uint64_t)place << TSI_GRANULE_SHIFT;
    if (TSI_UNLIKELY((handle & 3) != TSI_HANDLE_VERSION || off >= b->covered)) return TSI_FAST_NOT_FOUND;

    uint32_t entry = tsi_load_acquire(&b->entries[off >> TSI_LINE_MIN_SHIFT]); /* as in tsi_free_fast */
    if (TSI_UNLIKELY((entry & TSI_ENTRY_REGION) == 0)) return TSI_FAST_NOT_FOUND;
    TsiRegion* r = (TsiRegion*)(void*)b->words + (entry & ~TSI_ENTRY_REGION);
    const TsiSpace* s = &b->arena->space;
    TsiSlab* slab = tsi_slab(s, tsi_region_id(s, r));
    uint64_t tag = tsi_load_relaxed(&slab->tag);
    TsiHeap* h = b->heaps_base + tsi_tag_index(tag);
    bool handled = (tag & (TSI_SLAB_STATE | TSI_SLAB_HANDLED)) == (TSI_SLAB_OWNED | TSI_SLAB_HANDLED);
    if (TSI_UNLIKELY(!handled || tsi_heap_binding(tsi_load_relaxed(&h->word)) != b->index)) return TSI_FAST_IS_REGION;

    tsi_bracket_name(b, tsi_busy_region(r));
    if (TSI_UNLIKELY(!tsi_word_is(&h->word, live))) return TSI_FAST_MISSED;
    uint32_t generation = tsi_load_relaxed(&slab->gen_base);
    bool its = tsi_handle_stamp(b->secret, place, generation) == tsi_handle_stamp_of(handle);
    if (TSI_UNLIKELY(!its || generation >= TSI_GEN_LIMIT)) return TSI_FAST_MISSED;

    uint8_t gen = tsi_region_life(r), byte = gen;
    uint64_t at = off - (uint64_t)(tsi_load_relaxed(&r->base) - b->base);
    /* seq_cst: decides among racing frees, as in tsi_bump_free_shared */
    if (TSI_UNLIKELY(
            !tsi_cas_seq(&tsi_load_relaxed(&r->map)[at >> TSI_GRANULE_SHIFT], &byte, (uint8_t)(gen | TSI_MARK_OWN))))
        return TSI_FAST_MISSED;
    tsi_store_release(&r->freed, tsi_load_relaxed(&r->freed) + 1); /* pairs with tsi_region_sum */
    tsi_bracket_clear(b);
    *out = h;
    return TSI_LIKELY(tsi_word_is(&h->word, live)) ? TSI_FAST_DONE : TSI_FAST_HANDOVER;
}

/* Allocates `size` bytes at `align`, a power of two or TSI_ALIGN_GROWS, in the current region, or in another, new or
 * empty, that becomes current. An object beyond TSI_BUMP_MAX that grows gets a region alone. `named`: the region must
 * have generations of handles left. Returns the object. Returns NULL if the heap does not bump or stops here (h->bumps
 * becomes false), the object is larger, align > TSI_BUMP_ALIGN_MAX, there is no memory, or a budget is in the way
 * (b->budget.hard). [owner, in bracket of the whole heap] */
void* tsi_bump_alloc(TsiBinding* b, TsiHeap* h, size_t size, size_t align, bool named);
/* Gives back, as a class takes a slab, pages without an object of the next region with few objects that the classes
 * have taken over from: of one at most, among 64 slabs from h->looked on. After the last slab looks again only once
 * h->slab_bytes has grown by a quarter. Does nothing while h bumps, in a heap of the ring, and without regions.
 * [owner, in bracket] */
void tsi_bump_thin(TsiBinding* b, TsiHeap* h);
/* Puts an empty region that tsi_bump_free has reported (TSI_FAST_REGION_EMPTY) into h->empty_regions, for the heap to
 * use again. Where the heap does not bump or is not its thread's primary, only counts in h's or the primary's `takes`,
 * and the region stays empty until a scavenge; where h is no longer the thread's, does nothing. Returns true.
 * [own thread, no lock held, no bracket open] */
bool tsi_bump_keep_empty(TsiBinding* b, TsiHeap* h, TsiRegion* r);
/* Returns the rank of the region that a phase of this label begins with on this thread; a page's where it knows
 * nothing. [own thread, needs no lock] */
TSI_INLINE unsigned tsi_bump_first_rank(const TsiBinding* b, uint32_t label) {
    const TsiLearned* learned = &b->learned[label % TSI_LEARNED];
    return learned->label == label && learned->rank != 0 ? learned->rank - 1u : TSI_RANK_PAGE;
}
/* Sets b->learned for the label, from what heap h has needed: the rank of the next phase's first region, whether its
 * work is general, whether it is worth huge pages, and whether many such phases are open at a time (b->apart, too,
 * where h is b's). An entry of another label at the same place is lost. Changes nothing where the entry says part of a
 * page and h has needed no more. h: the thread's, or SEIZED by it. [own thread, needs no lock] */
void tsi_bump_learn(TsiBinding* b, const TsiHeap* h, uint32_t label);
/* Returns true if the phase has needed more so far than the thread knows of its label: a thread that begins phases and
 * hands them on learns while it has them. A phase that ends on the thread teaches in any case. [owner, in bracket] */
TSI_INLINE bool tsi_bump_teaches(const TsiBinding* b, const TsiHeap* h, uint32_t label) {
    const TsiLearned* learned = &b->learned[label % TSI_LEARNED];
    bool known = learned->label == label && learned->rank != 0;
    if (!h->ranked) return false;
    return !known || (h->bumped != 0 && h->rank > learned->rank);
}
/* Notes, after tsi_bump_learn, that objects outlive phases of the label: its next 8 phases on the thread begin with
 * part of a page, or a page where parts are not allowed. Does nothing if another label has the entry by now.
 * [own thread, needs no lock] */
void tsi_bump_outlived(TsiBinding* b, uint32_t label);
/* Grows p to `size` bytes where it is, after tsi_bump_grow_fast has returned MISSED for it, normally because it has not
 * grown before or is large enough; its region is in b->busy. Returns DONE or HANDOVER, with the heap in *out and the
 * bracket closed: p had the room, and half of it is used at least, or it is the last object of its heap's current
 * region, is longer now, and is the heap's object that has grown last. Returns MISSED, with the bracket open and *out
 * as it was, otherwise. [own thread, in the open bracket] */
TsiFast tsi_bump_grow_missed(TsiBinding* b, const void* p, size_t size, TsiHeap** out);
/* Makes the object at *at, which tsi_space_locate has found in a region, longer where it is, to `size` bytes, rounded
 * up to granules; where its region is current it is the heap's object that has grown last. Returns false, changing
 * nothing, if the region is not the thread's, the object does not live or is not the last of the current region or of
 * one that it has alone, `size` is not more than it has, or there is no room. Sets b->profile_hit if the growth must be
 * recorded. [own thread, no lock held, no bracket open] */
bool tsi_bump_grow(TsiBinding* b, const TsiPlace* at, size_t size);

/* ---- frees of others ---- */

/* Enters the region's present life as a freer, which keeps its place and map until tsi_bump_leave; *gen is its
 * generation, for that call. Returns false, with nothing to leave and *gen 0, if the life has ended.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_bump_enter(TsiRegion* r, unsigned* gen) {
    uint64_t word = tsi_load_acquire(&r->word); /* pairs with tsi_region_open */
    do {
        *gen = tsi_region_gen(word);
        if (TSI_UNLIKELY(*gen == 0)) return false;
        /* seq_cst: before the tag and the generation of handles are read again */
    } while (TSI_UNLIKELY(!tsi_cas_seq(&r->word, &word, word + TSI_REGION_ENTERED)));
    return true;
}

/* Leaves the life that tsi_bump_enter has entered with `gen`, and adds `counted` to the region's word:
 * TSI_REGION_OBJECT and the granules of an object freed, or 0. Returns false, uncounted, if the life has ended
 * meanwhile: r->late is one less then. [any thread, needs no lock] */
TSI_INLINE bool tsi_bump_leave(TsiRegion* r, unsigned gen, uint64_t counted) {
    uint64_t word = tsi_load_relaxed(&r->word);
    do {
        if (TSI_UNLIKELY(tsi_region_gen(word) != gen)) {
            atomic_fetch_sub_explicit(&r->late, 1,
                                      memory_order_release); /* pairs with tsi_region_open: we write no byte any more */
            return false;
        }
        /* seq_cst: decides between this free and the end; before the tag that the caller looks at */
    } while (TSI_UNLIKELY(!tsi_cas_seq(&r->word, &word, word - TSI_REGION_ENTERED + counted)));
    return true;
}

/* Frees the object of r, slab's region, that starts at p, by compare-exchange, like tsi_bump_free_shared. `was`: the
 * slab's tag before, whose seq the slab must have still. Returns TSI_FREE_OK, with *tag: the slab's tag afterwards; or
 * the SlabMisuse as which it is refused, and *tag means nothing. fill: zeroes the object before it is counted as freed;
 * the caller holds its phase's stripe (scrub.h, X2). While a freer is inside, the region's place and map stay (R2), so
 * they are read there. [any thread, needs no lock] */
TSI_INLINE int tsi_bump_free_in_life(TsiSlab* slab, TsiRegion* r, const void* p, uint64_t was, uint32_t generation,
                                     bool fill, uint64_t* tag) {
    unsigned gen;
    if (TSI_UNLIKELY(!tsi_bump_enter(r, &gen))) return SLAB_MISUSE_STALE_FREE;
    *tag = tsi_load_seq(&slab->tag); /* again: the life that was entered is one of this incarnation */
    bool its = TSI_LIKELY(*tag == was) || tsi_tag_seq(*tag) == tsi_tag_seq(was);
    if (generation != UINT32_MAX && tsi_load_seq(&slab->gen_base) != generation) its = false; /* see renew */
    uint64_t at = (uint64_t)((uintptr_t)p - (uintptr_t)tsi_load_relaxed(&r->base)), counted = 0;
    uint32_t granule = (uint32_t)at >> TSI_GRANULE_SHIFT;
    /* acquire: pairs with tsi_bump_take: what has started lies below */
    uint32_t rel = tsi_load_acquire(&r->rel);
    int result = SLAB_MISUSE_STALE_FREE;
    if (TSI_LIKELY(its && at < rel && tsi_state_holds_objects(*tag))) result = tsi_byte_check(r, gen, granule);
    if (TSI_LIKELY(result == TSI_FREE_OK)) {
        uint8_t byte = (uint8_t)gen;
        uint32_t granules = tsi_region_granules_in(r, granule, rel >> TSI_GRANULE_SHIFT, gen);
        /* seq_cst: decides among racing frees; publishes the caller's use of the object to the thread that hands the
         * memory out again */
        if (TSI_LIKELY(tsi_cas_seq(&tsi_load_relaxed(&r->map)[granule], &byte, (uint8_t)(gen | TSI_MARK_OTHER)))) {
            counted = TSI_REGION_OBJECT + granules;
            if (fill) tsi_scrub((void*)(uintptr_t)p, (size_t)granules << TSI_GRANULE_SHIFT);
        } else result = SLAB_MISUSE_DOUBLE_FREE;
    }

    /* The life has ended: the changed byte may be an object of the next one. */
    if (TSI_UNLIKELY(!tsi_bump_leave(r, gen, counted))) return SLAB_MISUSE_STALE_FREE;
    /* seq_cst, after the count: pairs with make_orphan, which changes the tag, then reads the counts */
    *tag = tsi_load_seq(&slab->tag);
    return result;
}

/* Frees the object at *at in a region by compare-exchange, as any thread may. `seq` is the one that the region's slab
 * must have; `generation` is the one that its handles must have, or UINT32_MAX for a pointer. Returns TSI_FREE_OK, with
 * *tag: the slab's tag afterwards, by which the caller does what is left (after_free); or the SlabMisuse as which it is
 * refused, uncounted, and *tag means nothing. fill: as in tsi_bump_free_in_life. [any thread, needs no lock] */
int tsi_bump_free_shared(TsiArena* a, const TsiPlace* at, uint32_t seq, uint32_t generation, bool fill, uint64_t* tag);

#endif
