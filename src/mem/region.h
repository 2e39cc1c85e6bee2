/*
 * region.h - slabs that are bumped: objects of any size lie one behind the other, 16-byte aligned. A region has no
 * slots; a map beside it says where its objects start, and one word counts the frees of other threads.
 *
 *   regions of a chunk:  [ map, a byte for each granule of 16 bytes, 64 KiB | 256 TsiRegion, 16 KiB ]
 *
 * Map byte   by_other:1 | by_owner:1 | gen:6. A byte with the region's present generation is the start of an object,
 *            live while neither mark is set; every other byte starts nothing. So a region ends by taking the next
 *            generation: no walk, no clearing. Generations are 1..63. When they are used up the word's generation is
 *            0, which matches no byte, and the map is cleared before the region is opened again.
 *            A start with both marks is no object's: there begins a gap, which an alignment has left, or the rest of
 *            what a run has.
 *
 * Word       gen:8 | entered:16 | objects:20 | granules:20, for frees by other threads. Such a free enters by
 *            compare-exchange under the generation that it sees, marks the byte by compare-exchange, which decides
 *            which thread frees the object, and leaves by compare-exchange under the same generation, counting object
 *            and granules. The thread that ends the region's life exchanges the word: each racing free has been
 *            counted before that, or fails and is refused. Freers that have entered and not left are added to `late`,
 *            and subtract themselves when they find the generation gone.
 *
 * A *run* (api/run.c) has the rest of a region to itself: the owner claims it as a gap, and puts objects there without
 * counting them in the record. Behind the last of them stands the start of the gap's rest, which bounds that object.
 * When the rest is given back the objects enter the counts.
 *
 * The largest regions are halves of huge pages, 1 MiB each: taken two at a time and given back together, so that the
 * page goes whole. Code that gives back part of one first withdraws the request for huge pages (space.h), or the system
 * makes the page whole again.
 *
 * Invariants
 *   R1  Bytes of the present generation lie below `rel`, except the one that its owner is writing, and the start of a
 *       gap that was given back, at `rel`: it bounds the last object for threads that have read `rel` before. So that
 *       object does not grow where it is (tsi_region_grows).
 *   R2  A map is cleared, and a generation used again, only while `late` is 0: so no freer that slept through an end
 *       can meet the generation that it knows. Where the chunk's pages go back, generations start over too
 *       (chunk_pages.c, G2).
 *   R3  Only the owner writes issued, freed, rel, lim, gap_granules, the mark by_owner and both marks of a gap, in its
 *       bracket (state/bracket.h) or its run, or the thread that has SEIZED the heap.
 *   R4  Counts are events: the region is empty when issued = freed + objects of the word. An owner and another thread
 *       that free one object at the same time are both counted; so emptiness is confirmed by the map before it is
 *       acted upon. A claimed region is never empty.
 *   R5  In a claimed region `rel` covers all its bytes, and the last start is that of the gap. `issued` and
 *       gap_granules are what they were before the claim; the other counts have the run's objects, too.
 *   R6  In a life `issued`, `freed` and gap_granules never fall, and `rel` falls only where a claim ends. Starts stay:
 *       in place of a gap's, at most, comes an object's. So a reader of rel, freed, issued and gap_granules, in this
 *       order, who finds rel below the region's end, has counted no object too many while the life goes on. Within a
 *       run the start behind an object is written before the object's own, and the start of an object that is bumped
 *       after all that was written before: a map read in the order of addresses shows for each object where it ends,
 *       unless the owner has bumped since (sum_by_map). A life that is ended by its word has its counts for a while:
 *       as they begin anew `gen` follows the word, and where the two differ a reader counts nothing.
 */
#ifndef TSI_MEM_REGION_H
#define TSI_MEM_REGION_H

#include "mem/space.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum {
    TSI_GRANULE_SHIFT = 4,
    TSI_GRANULE = 1 << TSI_GRANULE_SHIFT,
    TSI_MARK_OWN = 0x40,
    TSI_MARK_OTHER = 0x80,
    TSI_MARK_GAP = TSI_MARK_OWN | TSI_MARK_OTHER, /* a gap: no object */
    TSI_GEN_BYTE = 0x3f,                          /* of a map byte; also the last generation */
    TSI_REGION_GEN_SHIFT = 56
};
#define TSI_REGION_ENTERED (1ull << 40)
#define TSI_REGION_OBJECT (1ull << 20)

/* Returns the generation in a region's word: 1..63, or 0 while no life is open. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_region_gen(uint64_t word) { return (unsigned)(word >> TSI_REGION_GEN_SHIFT); }
/* Returns the generation of the region's life, 1..63, as its owner has it; 0 if none has been open.
 * [owner, SEIZED, or only holder] */
TSI_INLINE uint8_t tsi_region_life(const TsiRegion* r) { return tsi_load_relaxed(&r->gen); }
/* Returns the number of freers inside of the region, from its word. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_region_entered(uint64_t word) { return (uint32_t)(word >> 40) & 0xffff; }
/* Returns the number of objects that other threads have freed in this life, from the region's word.
 * [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_region_objects(uint64_t word) { return (uint32_t)(word >> 20) & 0xfffff; }
/* Returns the granules of the objects that other threads have freed in this life, from the region's word.
 * [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_region_granules(uint64_t word) { return (uint32_t)word & 0xfffff; }

/* Returns the maps of a chunk's regions, and behind them their records. [any thread, needs no lock] */
TSI_INLINE uint8_t* tsi_regions_of(const TsiSpace* s, uint32_t chunk) {
    return s->regions + ((size_t)chunk << TSI_REGIONS_SHIFT);
}
/* Returns the region record of a slab; readable once its chunk has served a class of regions.
 * [any thread, needs no lock] */
TSI_INLINE TsiRegion* tsi_region(const TsiSpace* s, uint32_t slab_id) {
    return (TsiRegion*)(void*)(tsi_regions_of(s, tsi_slab_chunk(slab_id)) + TSI_REGIONS_MAP) + tsi_slab_number(slab_id);
}
/* Returns the map byte of the granule at byte `offset` of the payload. [any thread, needs no lock] */
TSI_INLINE _Atomic uint8_t* tsi_region_byte(const TsiSpace* s, uint64_t offset) {
    uint32_t in_chunk = (uint32_t)offset & ((1u << TSI_CHUNK_SHIFT) - 1);
    return (_Atomic uint8_t*)tsi_regions_of(s, (uint32_t)(offset >> TSI_CHUNK_SHIFT)) + (in_chunk >> TSI_GRANULE_SHIFT);
}
/* Zeros, which start nothing, in place of a map whose page has gone. A reader that had the granule of an object before
 * the page went may ask for any granule of the largest region, and reads 64 bytes from there. */
enum {
    TSI_REGION_MAX = TSI_REGION_MIN << 2 * (TSI_RANK_HUGE - TSI_RANK_PAGE),
    TSI_MAP_READ = 64,
    TSI_NO_MAP_BYTES = (TSI_REGION_MAX >> TSI_GRANULE_SHIFT) + TSI_MAP_READ
};
_Static_assert((int)TSI_REGION_MAX == 1 << TSI_CHUNK_SHIFT, "no region is larger than its chunk");
_Static_assert(TSI_PART_BYTES >> TSI_GRANULE_SHIFT >= TSI_MAP_READ, "each map begins where a read may");
_Static_assert(TSI_REGIONS_MAP == 1 << (TSI_CHUNK_SHIFT - TSI_GRANULE_SHIFT), "a map byte for each granule of a chunk");
_Static_assert(TSI_REGIONS_END - TSI_REGIONS_MAP >= TSI_MAP_READ, "reads from the last granules end among the records");
_Static_assert(TSI_REGION_OBJECT / (TSI_REGION_MAX >> TSI_GRANULE_SHIFT) > 1, "a word counts all granules of a region");
extern _Alignas(TSI_MAP_READ) _Atomic uint8_t tsi_no_map[TSI_NO_MAP_BYTES];
/* Returns the region's map, or tsi_no_map where the record's page has gone. [any thread, needs no lock] */
TSI_INLINE _Atomic uint8_t* tsi_region_map(const TsiRegion* r) {
    _Atomic uint8_t* map = tsi_load_relaxed(&r->map);
    return map != NULL ? map : tsi_no_map;
}
/* Returns the bytes of a region that objects may use: all, in half of a huge page a granule less, so that counts have
 * 16 bits (heap/late_frees.c). [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_region_room(const TsiRegion* r) {
    uint32_t bytes = 1u << tsi_load_relaxed(&r->size_log2);
    return bytes < 1u << TSI_CHUNK_SHIFT ? bytes : bytes - TSI_GRANULE;
}
/* Returns the granule, counted from its region's start, that the place *at names: line ids there count the region's
 * KiB, and slots the granules in one. at->cls is one of regions. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_region_granule(const TsiSpace* s, const TsiPlace* at) {
    uint32_t first = tsi_first_line(&s->classes->c[at->cls], at->slab_id);
    return (at->line_id - first) << 6 | at->slot;
}

/* Returns the slab whose record r is. [any thread, needs no lock] */
TSI_INLINE TsiSlab* tsi_region_slab(const TsiSpace* s, const TsiRegion* r) {
    size_t d = (size_t)((const uint8_t*)r - s->regions), chunk = d >> TSI_REGIONS_SHIFT << TSI_META_SHIFT,
           at = (d & ((1u << TSI_REGIONS_SHIFT) - 1)) - TSI_REGIONS_MAP;
    return (TsiSlab*)(void*)(s->meta + chunk + at / sizeof(TsiRegion) * sizeof(TsiSlab));
}

/* Starts a life of a slab of the region class cls for the heap at heap_at (0: none), with no object; sets base, map and
 * size of its record first. Its chunk has had tsi_regions_prepare for cls. Returns true; false, with no life begun and
 * no room, if generations are used up and a freer sleeps in the region (R2): then tsi_rest is due. [only holder] */
bool tsi_region_open(TsiSpace* s, unsigned cls, uint32_t slab_id, uint32_t heap_at);

typedef struct TsiRegionSum {
    uint64_t issued, issued_bytes, live, live_bytes;
    uint32_t twice; /* objects that both the owner and another thread have freed */
} TsiRegionSum;
/* Ends the life of the region's word: frees that have not left fail from here on. Returns what the region held at that
 * instant, zeros if it was in no life. Ends a run's claim first. Issued counts stay until it is opened again.
 * [owner, or SEIZED] */
TsiRegionSum tsi_region_end(TsiSpace* s, uint32_t slab_id);
/* Sets the region's counts of issued and freed objects, of gaps' granules and its bytes used (`rel`) to 0. The map and
 * the word stay. [owner, or SEIZED] */
TSI_INLINE void tsi_region_count_nothing(TsiRegion* r) {
    tsi_store_release(&r->issued, 0); /* first: a reader of it sees an empty region */
    /* release, all: pair with tsi_region_sum. A reader that sees no frees sees no objects; one that sees no gaps sees
     * no bytes. */
    tsi_store_release(&r->freed, 0);
    tsi_store_release(&r->rel, 0);
    tsi_store_release(&r->gap_granules, 0);
}
/* Starts the next life, of generation gen, which the region's word has already: no object, no claim, no part gone, all
 * room the owner's to bump in, for the heap at heap_at (0: none). [owner, or only holder] */
TSI_INLINE void tsi_region_start(TsiRegion* r, unsigned gen, uint32_t heap_at) {
    r->in_empties = r->solo = false;
    tsi_store_relaxed(&r->claimed, false);
    tsi_region_count_nothing(r);
    tsi_store_relaxed(&r->gone, 0);
    tsi_store_relaxed(&r->lim, tsi_region_room(r));
    tsi_store_relaxed(&r->heap_at, heap_at);
    /* release, last: pairs with tsi_region_sum, which reads no counts of the old life */
    tsi_store_release(&r->gen, (uint8_t)gen);
}
/* Returns the bytes of all objects issued, by the counts; the region is not claimed. [owner, or SEIZED] */
TSI_INLINE uint32_t tsi_region_bytes(const TsiRegion* r) {
    return tsi_load_relaxed(&r->rel) - (tsi_load_relaxed(&r->gap_granules) << TSI_GRANULE_SHIFT);
}
/* Finishes tsi_region_turn where objects were freed, freers are inside, or generations are used up. gen, word: of the
 * life that has just ended, as swapped out. Sets *sum to what it held. Returns true with the next life begun, heap_at
 * 0; false, without one, if a freer of an earlier use is still inside. [owner, or SEIZED] */
bool tsi_region_turn_slow(TsiRegion* r, unsigned gen, uint64_t word, TsiRegionSum* sum);
/* Ends the life like tsi_region_end, with *sum as what that returns, and starts the next at once, with heap_at 0.
 * Returns true; false, with *sum set and no life begun, if a freer of an earlier use is still inside, as
 * tsi_region_open does. The region is not claimed. [owner, or SEIZED] */
TSI_INLINE bool tsi_region_turn(TsiRegion* r, TsiRegionSum* sum) {
    unsigned gen = tsi_region_life(r);
    uint64_t next = gen == TSI_GEN_BYTE ? 0 : gen + 1u;
    /* seq_cst: decides each racing free, and publishes nothing else */
    uint64_t word = tsi_swap_seq(&r->word, next << TSI_REGION_GEN_SHIFT);
    TSI_ASSERT(!tsi_load_relaxed(&r->claimed));
    /* nobody is inside, and all is live */
    bool whole = word == (uint64_t)gen << TSI_REGION_GEN_SHIFT && tsi_load_relaxed(&r->freed) == 0;
    if (TSI_UNLIKELY(!whole || next == 0)) return tsi_region_turn_slow(r, gen, word, sum);
    sum->issued = sum->live = tsi_load_relaxed(&r->issued);
    sum->issued_bytes = sum->live_bytes = tsi_region_bytes(r);
    sum->twice = 0;
    tsi_region_start(r, (unsigned)next, 0);
    return true;
}
/* Ends the life of a region that its owner has just seen empty, by counts and map, and starts the next for the heap at
 * heap_at (0: none), with no object. Sets *ended to what had been issued, with frees that came twice and nothing live;
 * to zeros if it had no life. Returns true; false, with the old life ended, *ended set and no life begun, if
 * generations are used up and a freer sleeps in the region. [owner, in bracket] */
bool tsi_region_renew(TsiSpace* s, uint32_t slab_id, uint32_t heap_at, TsiRegionSum* ended);
/* Returns the objects and bytes that the region's life has issued and those of them that live; all 0 if it is in no
 * life or has issued nothing; `twice` is always 0. Exact while its owner and freers are idle. Beside them it may miss
 * what is issued or freed meanwhile, and counts nothing as issued, or as freed, that is not. Looks again, at most
 * twice, if the life ends meanwhile, and returns 0 if it does so each time; and as often as a run ends, or an object is
 * issued, while the region looks full.
 * O(granules / 64) if something was freed, or the region is full or has a run; otherwise O(1).
 * [any thread, needs no lock] */
TsiRegionSum tsi_region_sum(const TsiSpace* s, uint32_t slab_id);
/* Returns true if no object is live (R4), also if the region is in no life; false while a run has claimed its rest.
 * Exact for the owner, and for all if there is none; a hint for others. [any thread, needs no lock] */
bool tsi_region_is_empty(const TsiSpace* s, uint32_t slab_id);
/* Claims the rest of the region, from its next free byte on, as a gap for a run: sets *from to that byte, and moves
 * `rel` to the region's end, so that the owner bumps here no more. Returns the bytes that objects may fill, up to lim
 * and at least a granule before the end; 0, with *from and all else unchanged, if that is none or a run has claimed it.
 * [owner, in bracket] */
uint32_t tsi_region_claim(TsiRegion* r, uint32_t* from);
/* Returns true if the object that ends at rel, where the region's used bytes end, may grow there: false if a run has
 * ended there, whose gap still bounds the object (R1). rel is below the region's end. [owner, in bracket] */
TSI_INLINE bool tsi_region_grows(const TsiRegion* r, uint32_t rel) {
    return tsi_load_relaxed(&tsi_load_relaxed(&r->map)[rel >> TSI_GRANULE_SHIFT]) !=
           (tsi_region_life(r) | TSI_MARK_GAP);
}
/* Ends a claim, of tsi_region_claim: the run has put `objects` objects there, up to byte `at`. They are counted, and
 * `rel` becomes `at`, so that the owner goes on there. The gap's start stays in the map (R1). [owner, in bracket] */
void tsi_region_unclaim(TsiRegion* r, uint32_t at, uint32_t objects);
/* Returns the usable bytes of the object, live or freed, that starts at `granule` of the region's present life: up to
 * the next start or the end of what is used, so a multiple of 16. The caller knows that one starts there.
 * [any thread, needs no lock] */
size_t tsi_region_size_at(const TsiSpace* s, uint32_t slab_id, uint32_t granule);
/* Returns the granules of the object or gap that starts at `granule` in the life `gen`: up to the next start, or to
 * `end`, where the used granules end; 0 if that is not behind it. Looks at the map 64 granules at a time.
 * [any thread, needs no lock] */
uint32_t tsi_region_granules_far(const TsiRegion* r, uint32_t granule, uint32_t end, unsigned gen);
/* Returns the granules of the object or gap that starts at `granule` in the life `gen`: up to the next start, or to
 * `end` if none comes before it. Looks at the next 16 granules, where the next start normally is, and then asks
 * tsi_region_granules_far. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_region_granules_in(const TsiRegion* r, uint32_t granule, uint32_t end, unsigned gen) {
#if defined(__SSE2__) && !TSI_WATCHED_THREADS
    /* The next start is normally near. */
    const uint8_t* from = (const uint8_t*)tsi_region_map(r) + granule + 1;
    __m128i bytes = _mm_loadu_si128((const __m128i*)(const void*)from);
    bytes = _mm_cmpeq_epi8(_mm_and_si128(bytes, _mm_set1_epi8(TSI_GEN_BYTE)), _mm_set1_epi8((char)gen));
    unsigned starts = (unsigned)_mm_movemask_epi8(bytes);
    /* A start beyond the end is another region's, or its owner is writing it. */
    uint32_t next = granule + 1 + tsi_ctz64(starts | 1u << 16);
    if (TSI_LIKELY(starts != 0)) return (next < end ? next : end) - granule;
#endif
    return tsi_region_granules_far(r, granule, end, gen);
}
/* Returns true if no object of the life `gen` starts among the n granules, at most 16, whose map bytes begin at `from`;
 * 16 bytes there are readable. [any thread, needs no lock] */
TSI_INLINE bool tsi_starts_none(const _Atomic uint8_t* from, unsigned n, uint8_t gen) {
#if defined(__SSE2__) && !TSI_WATCHED_THREADS
    __m128i bytes = _mm_loadu_si128((const __m128i*)(const void*)from);
    bytes = _mm_cmpeq_epi8(_mm_and_si128(bytes, _mm_set1_epi8(TSI_GEN_BYTE)), _mm_set1_epi8((char)gen));
    return ((unsigned)_mm_movemask_epi8(bytes) & ((1u << n) - 1)) == 0;
#else
    for (unsigned k = 0; k < n; k++)
        if ((tsi_load_relaxed(&from[k]) & TSI_GEN_BYTE) == gen) return false;
    return true;
#endif
}
/* Returns the live starts among the 64 granules from `granule` on, a bit each; 0 beyond what is used, or if the region
 * is in no life. A hint beside the owner. [any thread, needs no lock] */
uint64_t tsi_region_live64(const TsiSpace* s, uint32_t slab_id, uint32_t granule);
/* Returns the equal parts of the slab, a bit each, that no live object touches and that have not gone back (`gone`);
 * sets *part_bytes to the bytes of one: a page, or a 64th of the slab if that is more. Clears nothing. cls: the slab's
 * class. A hint beside the owner. [any thread, needs no lock] */
uint64_t tsi_region_dead_parts(const TsiSpace* s, unsigned cls, uint32_t slab_id, size_t* part_bytes);
enum { TSI_REGION_PAGES = (1 << TSI_CHUNK_SHIFT) / TSI_REGION_MIN };
/* Sets the bits of the region's pages that a live object of its present life touches, and clears all others, by pages
 * of the system from the region's start on. A hint beside the owner. [any thread, needs no lock] */
void tsi_region_live_pages(const TsiSpace* s, uint32_t slab_id, uint64_t live[TSI_REGION_PAGES / 64]);
/* Clears the counts of freers inside and late, who have vanished. With `holds` (the slab's tag says that it holds
 * objects) also sets the counts of issued, freed and gaps, and those of other threads' frees, anew from the map, clears
 * a start that a vanished owner was about to hand out, and ends a claim whose own steps it was within; what R5 names
 * stays while a run has the region. [fork child] */
void tsi_region_recount(TsiSpace* s, uint32_t slab_id, bool holds);
/* Makes records and maps of a free chunk's regions usable for class cls, and sets region_class to it. If they were of
 * another class and are not clear yet, zeroes the maps and ends each region's life at generation 0. Returns false, and
 * changes nothing, without memory, or while a freer sleeps in a region of another class. [pool lock held] */
bool tsi_regions_prepare(TsiSpace* s, uint32_t chunk, unsigned cls);

/* Returns the id of the slab whose record r is. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_region_id(const TsiSpace* s, const TsiRegion* r) {
    size_t at = (size_t)((const uint8_t*)r - s->regions);
    uint32_t in_chunk = (uint32_t)(at & ((1u << TSI_REGIONS_SHIFT) - 1)) - TSI_REGIONS_MAP;
    return tsi_slab_id((uint32_t)(at >> TSI_REGIONS_SHIFT), in_chunk / (uint32_t)sizeof(TsiRegion));
}

#endif
