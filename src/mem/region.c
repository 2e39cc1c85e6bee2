/*
 * region.c - lives, sums and maps of region.h.
 *
 * Maps are read many bytes at a time, as plain memory. Others may mark a byte at that moment, and either value will do,
 * since counts decide (R4) and a snapshot may see a free or miss it. A thread that counts beside a run reads the
 * bytes in the order of their addresses (R6).
 */
#include "mem/region.h"

#include <string.h>

_Alignas(TSI_MAP_READ) _Atomic uint8_t tsi_no_map[TSI_NO_MAP_BYTES];

enum { FEW = 64 }; /* granules for each object that its owner has freed: fewer such objects are found one by one */

/* Marks of 64 granules, a bit each. */
typedef struct Marks {
    uint64_t starts, live, other, gaps;
} Marks;

typedef uint8_t Bytes __attribute__((vector_size(16)));

/* Returns 16 map bytes, each read once, in any order. [any thread, needs no lock] */
TSI_TSAN_BLIND static Bytes load16(const uint8_t* map) {
    Bytes bytes;
#if defined(__SSE2__)
    bytes = (Bytes)_mm_loadu_si128((const __m128i*)(const void*)map);
    __asm__("" : "+x"(bytes)); /* not read again at its second use */
#else
    for (unsigned i = 0; i < 16; i++) bytes[i] = ((const volatile uint8_t*)map)[i];
#endif
    return bytes;
}

/* Returns 16 map bytes, from a multiple of 16 on, read after those of calls before, and the first before the last: by
 * one access where the processor has AVX (Intel SDM 3A, 9.1.1; AMD64 APM 2, 7.3.2). No older processor is known to read
 * the upper half first. [any thread, needs no lock] */
TSI_TSAN_BLIND static Bytes load16_in_order(const uint8_t* map) {
    Bytes bytes;
#if defined(__SSE2__)
    bytes = (Bytes)_mm_load_si128((const __m128i*)(const void*)map);
    __asm__ volatile("" : "+x"(bytes) : : "memory"); /* the compiler leaves its place to it, too */
#else
    const _Atomic uint64_t* words = (const _Atomic uint64_t*)(const void*)map;
    uint64_t both[2] = {tsi_load_acquire(&words[0]), 0}; /* acquire, both: before what is read next */
    both[1] = tsi_load_acquire(&words[1]);
    memcpy(&bytes, both, sizeof bytes);
#endif
    return bytes;
}

/* Returns a bit for each of 16 bytes, which are 0 or 0xff. [any thread, needs no lock] */
static uint64_t bits16(Bytes same) {
#if defined(__SSE2__)
    return (uint32_t)_mm_movemask_epi8((__m128i)same);
#else
    uint64_t bits = 0;
    for (unsigned i = 0; i < 16; i++) bits |= (uint64_t)(same[i] & 1) << i;
    return bits;
#endif
}

/* Returns a bit for each of 16 bytes that equals `byte`. [any thread, needs no lock] */
static uint64_t equal16(Bytes bytes, unsigned byte) { return bits16((Bytes)(bytes == (uint8_t)byte)); }

/* Returns a bit for each of 64 granules, from `map` on, whose byte under the mask is `byte`.
 * [any thread, needs no lock] */
static uint64_t equal64(const uint8_t* map, unsigned mask, unsigned byte) {
    uint64_t bits = 0;
    for (unsigned i = 0; i < TSI_MAP_READ; i += 16) bits |= equal16(load16(map + i) & (uint8_t)mask, byte) << i;
    return bits;
}

/* Returns the region's map as plain bytes, or zeros if its page has gone. [any thread, needs no lock] */
static const uint8_t* map_of(const TsiRegion* r) { return (const uint8_t*)tsi_region_map(r); }

/* Returns a word with the lowest n bits set; all of them from n = 64 on. [any thread, needs no lock] */
static uint64_t below(uint32_t n) { return n >= 64 ? ~0ull : (1ull << n) - 1; }

/* Returns the marks of the 64 granules from `at` on, a multiple of 64, that lie below `end`, read in order. at < end. A
 * byte that is marked at that moment counts as live or as marked, never as both or neither.
 * [any thread, needs no lock] */
static Marks marks_at(const uint8_t* map, unsigned gen, uint32_t at, uint32_t end) {
    Marks marks = {0, 0, 0, 0};
    for (unsigned i = 0; i < TSI_MAP_READ; i += 16) {
        Bytes bytes = load16_in_order(map + at + i);
        marks.starts |= equal16(bytes & TSI_GEN_BYTE, gen) << i;
        marks.live |= equal16(bytes, gen) << i;
        marks.other |= equal16(bytes, gen | TSI_MARK_OTHER) << i;
        marks.gaps |= equal16(bytes, gen | TSI_MARK_GAP) << i;
    }
    uint64_t mask = below(end - at);
    return (Marks){marks.starts & mask, marks.live & mask, marks.other & mask, marks.gaps & mask};
}

typedef struct Count {
    uint32_t objects, live, live_granules, other, other_granules, gap_granules;
    uint32_t last; /* granule of the last start, an object's or a gap's */
} Count;

/* Returns the granules, of 64, that the objects beginning at `from` cover, a bit each. starts: of all objects; each
 * reaches to the next one's start. open: an object that began before the 64 covers the first ones too. within: bits of
 * granules in use. [any thread, needs no lock] */
static uint64_t covered(uint64_t starts, uint64_t from, bool open, uint64_t within) {
    uint64_t between = within & ~starts;            /* where no object begins: stretches of ones */
    uint64_t behind = (from << 1 | open) & between; /* the first of each stretch behind one of `from` */
    return from | (between & ~(between + behind));  /* the sum carries through these stretches, and clears them */
}

/* Returns true if the last object that begins in these granules is one of `from`; `open` if none begins.
 * [any thread, needs no lock] */
static bool stays_open(uint64_t starts, uint64_t from, bool open) {
    return starts == 0 ? open : (from >> tsi_log2(starts) & 1) != 0;
}

/* Returns the number of objects of the life `gen` that start below granule `end`, of those that live and of those that
 * another thread has freed, with the granules of these two, and the granules of gaps; each object or gap reaches to the
 * next start, or to `end`.
 * Costs time by granules, 64 at a time, however many objects there are. A moment old beside owner and freers.
 * [any thread, needs no lock] */
static Count count_map(const TsiRegion* r, unsigned gen, uint32_t end) {
    const uint8_t* map = map_of(r);
    Count count = {0, 0, 0, 0, 0, 0, 0};
    bool live = false, other = false, gap = false; /* what the last start before is */

    for (uint32_t at = 0; at < end; at += 64) {
        Marks marks = marks_at(map, gen, at, end);
        uint64_t within = below(end - at);
        count.objects += tsi_popcount(marks.starts & ~marks.gaps);
        count.live += tsi_popcount(marks.live);
        if (marks.starts != 0) count.last = at + tsi_log2(marks.starts);
        count.live_granules += tsi_popcount(covered(marks.starts, marks.live, live, within));
        live = stays_open(marks.starts, marks.live, live);

        if (TSI_LIKELY(marks.other == 0 && !other && marks.gaps == 0 && !gap)) continue;
        count.gap_granules += tsi_popcount(covered(marks.starts, marks.gaps, gap, within));
        gap = stays_open(marks.starts, marks.gaps, gap);
        count.other += tsi_popcount(marks.other);
        count.other_granules += tsi_popcount(covered(marks.starts, marks.other, other, within));
        other = stays_open(marks.starts, marks.other, other);
    }
    return count;
}

typedef struct Part {
    uint32_t objects, granules;
} Part;

/* Returns what lives of a life whose map has been counted: what other threads have marked, but not counted in `word`
 * yet, too. Such a free fails if the life ends now. word: the region's, read before the map, or as it was swapped out.
 * [any thread, needs no lock] */
static Part live_of(const Count* count, uint64_t word) {
    uint32_t objects = tsi_region_objects(word), granules = tsi_region_granules(word);
    return (Part){count->live + (count->other > objects ? count->other - objects : 0),
                  count->live_granules + (count->other_granules > granules ? count->other_granules - granules : 0)};
}

/* Returns the granules of the n objects below granule `end` that the owner has freed, found one by one.
 * [any thread, needs no lock] */
static TSI_NOINLINE uint32_t own_granules(const TsiRegion* r, unsigned gen, uint32_t end, uint32_t n) {
    const uint8_t* map = map_of(r);
    uint32_t granules = 0;
    for (uint32_t at = 0; at < end && n != 0; at += 64) {
        Bytes own[TSI_MAP_READ / 16], any = {0};
        for (unsigned i = 0; i < TSI_MAP_READ / 16; i++) {
            own[i] = (Bytes)(load16(map + at + 16 * i) == (uint8_t)(gen | TSI_MARK_OWN));
            any |= own[i];
        }
        if (TSI_LIKELY(bits16(any) == 0)) continue;
        uint64_t found = 0;
        for (unsigned i = 0; i < TSI_MAP_READ / 16; i++) found |= bits16(own[i]) << 16 * i;
        for (found &= below(end - at); found != 0 && n != 0; found &= found - 1, n--)
            granules += tsi_region_granules_in(r, at + tsi_ctz64(found), end, gen);
    }
    return granules;
}

/* Returns the first granule from `at` on whose byte under the mask is `byte`, or `end` if there is none below it.
 * [any thread, needs no lock] */
static uint32_t first_of(const TsiRegion* r, unsigned mask, unsigned byte, uint32_t at, uint32_t end) {
    const uint8_t* map = map_of(r);
    for (; at < end; at += 64) {
        uint64_t found = equal64(map + at, mask, byte) & below(end - at);
        if (found != 0) return at + tsi_ctz64(found);
    }
    return end;
}

/* Returns true if a live object of the life `gen` starts below granule `end`. [any thread, needs no lock] */
static bool any_live(const TsiRegion* r, unsigned gen, uint32_t end) { return first_of(r, 0xff, gen, 0, end) < end; }

/* Returns the number of granules in use, from the region's start on. [any thread, needs no lock] */
static uint32_t used_granules(const TsiRegion* r) {
    return tsi_load_acquire(&r->rel) >> TSI_GRANULE_SHIFT; /* pairs with the bump: the starts below are visible */
}

/* ---- lives ---- */

/* Adds the freers that were inside when a life ended with this word, its count of `entered`, to r->late, the number
 * that sleep in ended lives; each takes itself off as it leaves. [owner, or SEIZED] */
static void note_inside(TsiRegion* r, uint64_t word) {
    if (tsi_region_entered(word) != 0) tsi_add_relaxed(&r->late, tsi_region_entered(word));
}

/* Ends the region's life: swaps its word for one of the next generation (0 after the last) without counts, and adds the
 * freers that were inside to `late`. r->gen stays. Returns the old word, which no free changes any more.
 * [owner, or SEIZED] */
static uint64_t take_word(TsiRegion* r) {
    uint64_t next = tsi_region_life(r) == TSI_GEN_BYTE ? 0 : tsi_region_life(r) + 1u;
    /* seq_cst: decides each racing free, and publishes nothing else */
    uint64_t word = tsi_swap_seq(&r->word, next << TSI_REGION_GEN_SHIFT);
    note_inside(r, word);
    return word;
}

/* Zeroes n map bytes from `map` on, writing only words that are not zero; n and the address are multiples of 8. A
 * thread that looks up a pointer or handle may read a byte at that moment; either value will do.
 * [only holder, no freer asleep] */
static void clear_map(void* map, size_t n) {
    _Atomic uint64_t* words = map;
    for (size_t k = 0; k < n / sizeof *words; k++)
        if (tsi_load_relaxed(&words[k]) != 0) tsi_store_relaxed(&words[k], 0);
}

/* Starts the next life of a region whose base, map and size are set, for the heap at heap_at (0: none): the generation
 * of its word, or 1, with a cleared map, if that is 0. Returns false, with nothing begun and lim set to rel, while a
 * freer of an earlier use is still in it (late is not 0). [owner, SEIZED, or only holder] */
static bool begin_life(TsiRegion* r, uint32_t heap_at) {
    unsigned gen = tsi_region_gen(tsi_load_relaxed(&r->word));
    uint32_t bytes = 1u << tsi_load_relaxed(&r->size_log2);

    if (gen == 0) {
        /* acquire: pairs with the release of the last freer, after which it writes no byte (R2) */
        if (tsi_load_acquire(&r->late) != 0) {
            tsi_store_relaxed(&r->lim, tsi_load_relaxed(&r->rel)); /* its heap bumps here no more */
            return false;
        }
        if (tsi_region_life(r) != 0) clear_map(tsi_load_relaxed(&r->map), bytes >> TSI_GRANULE_SHIFT);
        gen = 1;
        /* Nobody enters a word of generation 0. release: pairs with the acquire of threads that enter from now on; the
         * map is clear */
        tsi_store_release(&r->word, 1ull << TSI_REGION_GEN_SHIFT);
    }

    tsi_region_start(r, gen, heap_at);
    return true;
}

bool tsi_region_open(TsiSpace* s, unsigned cls, uint32_t slab_id, uint32_t heap_at) {
    TsiRegion* r = tsi_region(s, slab_id);
    const TsiClass* shape = &s->classes->c[cls];
    uint8_t* base = tsi_slab_payload(s, shape, slab_id);
    tsi_store_relaxed(&r->base, base);
    tsi_store_relaxed(&r->map, tsi_region_byte(s, (uint64_t)(base - s->base)));
    tsi_store_relaxed(&r->size_log2, (uint8_t)tsi_log2(shape->slab_bytes));
    return begin_life(r, heap_at);
}

/* Returns a sum of what the life has issued, by its counts, with nothing live; the region is not claimed.
 * [owner, or SEIZED] */
static TsiRegionSum issued_by(const TsiRegion* r) {
    return (TsiRegionSum){tsi_load_relaxed(&r->issued), tsi_region_bytes(r), 0, 0, 0};
}

bool tsi_region_renew(TsiSpace* s, uint32_t slab_id, uint32_t heap_at, TsiRegionSum* ended) {
    TsiRegion* r = tsi_region(s, slab_id);
    uint32_t issued = tsi_load_relaxed(&r->issued), freed = tsi_load_relaxed(&r->freed);
    *ended = issued_by(r);
    tsi_region_count_nothing(r); /* before the word: a snapshot takes none of its objects for live */
    uint64_t word = take_word(r);
    if (tsi_region_gen(word) == 0) *ended = (TsiRegionSum){0, 0, 0, 0, 0}; /* not opened since its last end */
    else ended->twice = freed + tsi_region_objects(word) - issued;
    return begin_life(r, heap_at);
}

/* ---- what a run has ---- */

uint32_t tsi_region_claim(TsiRegion* r, uint32_t* from) {
    uint32_t rel = tsi_load_relaxed(&r->rel), room = tsi_region_room(r), lim = tsi_load_relaxed(&r->lim);
    uint32_t end = lim < room - TSI_GRANULE ? lim : room - TSI_GRANULE; /* the gap begins within the region */
    if (tsi_load_relaxed(&r->claimed) || rel >= end) return 0;

    tsi_store_relaxed(&r->claimed, true);
    tsi_store_relaxed(&tsi_load_relaxed(&r->map)[rel >> TSI_GRANULE_SHIFT],
                      (uint8_t)(tsi_region_life(r) | TSI_MARK_GAP));
    tsi_store_release(&r->rel, room); /* last: tsi_region_recount, and as in tsi_bump_take */

    *from = rel;
    return end - rel;
}

void tsi_region_unclaim(TsiRegion* r, uint32_t at, uint32_t objects) {
    tsi_store_release(&r->rel, at); /* first: tsi_region_recount, and as in tsi_bump_take */
    tsi_store_release(&r->issued, tsi_load_relaxed(&r->issued) + objects); /* as in tsi_bump_take */
    tsi_store_release(&r->claimed, false); /* pairs with tsi_region_is_empty; after `rel`: tsi_region_recount */
}

/* Ends the claim of a run whose thread has vanished (tsi_region_unclaim), in the life `gen`, by the map alone: all its
 * objects are counted, gaps that the run may have left on its way as well, and `rel` becomes the last start.
 * [owner, or SEIZED] */
static TSI_COLD void unclaim_by_map(TsiRegion* r, unsigned gen) {
    uint32_t end = tsi_region_room(r) >> TSI_GRANULE_SHIFT;
    Count count = count_map(r, gen, end);
    tsi_store_relaxed(&r->gap_granules, count.gap_granules - (end - count.last)); /* the last start is a gap's (R5) */
    tsi_region_unclaim(r, count.last << TSI_GRANULE_SHIFT, count.objects - tsi_load_relaxed(&r->issued));
}

/* Returns what the life `gen` held that ended with `word`, the region's word as it was swapped out: objects and bytes
 * issued and live, and frees that came twice. All 0 if word has generation 0. Ends the claim of a run that still has
 * the region first, so that its objects count. [owner, or SEIZED] */
static TsiRegionSum sum_of_life(TsiRegion* r, unsigned gen, uint64_t word) {
    if (TSI_UNLIKELY(tsi_load_relaxed(&r->claimed)) && tsi_region_gen(word) != 0) unclaim_by_map(r, gen);

    uint32_t objects = tsi_region_objects(word);
    uint32_t issued = tsi_load_relaxed(&r->issued), freed = tsi_load_relaxed(&r->freed);
    uint32_t end = tsi_load_relaxed(&r->rel) >> TSI_GRANULE_SHIFT;
    TsiRegionSum sum = issued_by(r);

    if (tsi_region_gen(word) == 0) {
        sum = (TsiRegionSum){0, 0, 0, 0, 0}; /* ended before, and not opened since */
    } else if ((freed | objects) == 0) {     /* nothing was freed singly */
        sum.live = sum.issued;
        sum.live_bytes = sum.issued_bytes;
    } else if (objects == 0 && freed <= end / FEW) {
        sum.live = issued - freed;
        sum.live_bytes = sum.issued_bytes - ((uint64_t)own_granules(r, gen, end, freed) << TSI_GRANULE_SHIFT);
    } else if (freed + objects != issued || (objects != 0 && any_live(r, gen, end))) { /* owners free nothing twice */
        Count count = count_map(r, gen, end);
        Part live = live_of(&count, word);
        sum.live = live.objects;
        sum.live_bytes = (uint64_t)live.granules << TSI_GRANULE_SHIFT;
        if (issued - sum.live < (uint64_t)freed + objects)
            sum.twice = (uint32_t)(freed + objects - (issued - sum.live));
    }
    return sum;
}

TsiRegionSum tsi_region_end(TsiSpace* s, uint32_t slab_id) {
    TsiRegion* r = tsi_region(s, slab_id);
    unsigned gen = tsi_region_life(r);
    return sum_of_life(r, gen, take_word(r));
}

bool tsi_region_turn_slow(TsiRegion* r, unsigned gen, uint64_t word, TsiRegionSum* sum) {
    note_inside(r, word);
    *sum = sum_of_life(r, gen, word);
    return begin_life(r, 0);
}

/* Sets *sum as tsi_region_sum does, by the map, in the life whose word was `word`. Returns true; false if *sum may be
 * wrong: a run has ended meanwhile, and its owner has bumped. issued: read before. [any thread, needs no lock] */
static bool sum_by_map(const TsiRegion* r, uint64_t word, uint32_t issued, TsiRegionSum* sum) {
    /* after issued: if it is the room, each object seen by then has a start behind it */
    uint32_t end = used_granules(r);
    Count count = count_map(r, tsi_region_gen(word), end);
    Part live = live_of(&count, word);
    sum->issued = count.objects;
    sum->issued_bytes = (uint64_t)(end - count.gap_granules) << TSI_GRANULE_SHIFT;
    sum->live = live.objects < sum->issued ? live.objects : sum->issued;
    sum->live_bytes = (uint64_t)live.granules << TSI_GRANULE_SHIFT;
    if (sum->live_bytes > sum->issued_bytes) sum->live_bytes = sum->issued_bytes;
    if (end != tsi_region_room(r) >> TSI_GRANULE_SHIFT) return true; /* what lies below stays (R6) */
    /* An object that was bumped since has no start behind it yet, or one that the count has missed. acquire, both: pair
     * with the bump */
    return used_granules(r) == end && tsi_load_acquire(&r->issued) == issued;
}

/* tests/models/region_run.pml, region_sum.pml */
TsiRegionSum tsi_region_sum(const TsiSpace* s, uint32_t slab_id) {
    const TsiRegion* r = tsi_region(s, slab_id);
    TsiRegionSum nothing = {0, 0, 0, 0, 0}, sum = nothing;
    for (int tries = 0; tries < 3;) {
        /* pairs with the freer's compare-exchange: sees the tag first, or the word */
        uint64_t word = tsi_load_seq(&r->word);
        unsigned gen = tsi_region_gen(word);
        /* acquire: pairs with tsi_region_start. Until then the counts are those of a life that has ended */
        if (gen == 0 || tsi_load_acquire(&r->gen) != gen) return nothing;
        /* acquire, before issued: pairs with tsi_region_count_nothing */
        uint32_t end = used_granules(r), freed = tsi_load_acquire(&r->freed);
        uint32_t issued = tsi_load_acquire(&r->issued); /* pairs with the bump */
        /* acquire: pairs with tsi_region_count_nothing, which has set `rel` to 0 before */
        uint32_t gap_granules = tsi_load_acquire(&r->gap_granules), again = used_granules(r);
        bool counted = true, full = end == tsi_region_room(r) >> TSI_GRANULE_SHIFT; /* or a run has the rest */

        if (freed != 0 || tsi_region_objects(word) != 0 || full) {
            counted = sum_by_map(r, word, issued, &sum);
        } else { /* R6 */
            if (issued == 0) return nothing;
            if (again < end) end = again;
            uint32_t granules = end > gap_granules ? end - gap_granules : 0;
            sum.issued = sum.live = issued;
            sum.issued_bytes = sum.live_bytes = (uint64_t)granules << TSI_GRANULE_SHIFT;
        }

        /* acquire: pairs with take_word and begin_life; after the counts and the map */
        bool same = tsi_region_gen(tsi_load_acquire(&r->word)) == gen;
        if (same && counted) return sum;
        if (!same) tries++; /* it ended since, and may be another's */
    }
    return nothing;
}

bool tsi_region_is_empty(const TsiSpace* s, uint32_t slab_id) {
    const TsiRegion* r = tsi_region(s, slab_id);
    uint64_t word = tsi_load_seq(&r->word); /* as in tsi_region_sum */
    if (tsi_region_gen(word) == 0) return true;
    /* acquire, before issued: pairs with tsi_region_unclaim */
    if (TSI_UNLIKELY(tsi_load_acquire(&r->claimed))) return false;
    /* acquire: pairs with the bump, as in tsi_region_sum */
    uint32_t issued = tsi_load_acquire(&r->issued), freed = tsi_load_relaxed(&r->freed);
    if (issued == 0) return true;
    return freed + tsi_region_objects(word) >= issued && !any_live(r, tsi_region_gen(word), used_granules(r));
}

uint32_t tsi_region_granules_far(const TsiRegion* r, uint32_t granule, uint32_t end, unsigned gen) {
    uint32_t next = first_of(r, TSI_GEN_BYTE, gen, granule + 1, end);
    return next > granule ? next - granule : 0;
}

size_t tsi_region_size_at(const TsiSpace* s, uint32_t slab_id, uint32_t granule) {
    const TsiRegion* r = tsi_region(s, slab_id);
    uint32_t end = used_granules(r);
    unsigned gen = tsi_region_gen(tsi_load_acquire(&r->word)); /* pairs with tsi_region_open */
    return (size_t)tsi_region_granules_far(r, granule, end, gen) << TSI_GRANULE_SHIFT;
}

uint64_t tsi_region_live64(const TsiSpace* s, uint32_t slab_id, uint32_t granule) {
    const TsiRegion* r = tsi_region(s, slab_id);
    uint32_t end = used_granules(r);
    unsigned gen = tsi_region_gen(tsi_load_acquire(&r->word)); /* as above */
    return gen != 0 && granule < end ? equal64(map_of(r) + granule, 0xff, gen) & below(end - granule) : 0;
}

/* Sets in `live` the bits of the region's parts, of per_part granules each, that a live object touches; clears none.
 * [any thread, needs no lock] */
static void find_live(const TsiRegion* r, uint32_t per_part, uint64_t* live) {
    uint32_t end = used_granules(r), from = 0;
    unsigned gen = tsi_region_gen(tsi_load_acquire(&r->word)); /* as above */
    const uint8_t* map = map_of(r);
    bool was_live = false;
    for (uint32_t at = 0; at < end && gen != 0; at += 64) {
        Marks marks = marks_at(map, gen, at, end);
        for (uint64_t rest = marks.starts; rest != 0; rest &= rest - 1) {
            unsigned bit = tsi_ctz64(rest);
            for (uint32_t p = from / per_part; was_live && p <= (at + bit - 1) / per_part; p++)
                tsi_bit_set(live, p, true);
            from = at + bit;
            was_live = marks.live >> bit & 1;
        }
    }
    for (uint32_t p = from / per_part; was_live && p <= (end - 1) / per_part; p++) tsi_bit_set(live, p, true);
}

uint64_t tsi_region_dead_parts(const TsiSpace* s, unsigned cls, uint32_t slab_id, size_t* part_bytes) {
    const TsiRegion* r = tsi_region(s, slab_id);
    size_t bytes = s->classes->c[cls].slab_bytes,
           part = bytes / 64 > tsi_os.page_bytes ? bytes / 64 : tsi_os.page_bytes;
    uint64_t live = 0;
    *part_bytes = part;
    find_live(r, (uint32_t)(part >> TSI_GRANULE_SHIFT), &live);
    return ~live & below((uint32_t)(bytes / part)) & ~tsi_load_relaxed(&r->gone);
}

void tsi_region_live_pages(const TsiSpace* s, uint32_t slab_id, uint64_t live[TSI_REGION_PAGES / 64]) {
    for (unsigned n = 0; n < TSI_REGION_PAGES / 64; n++) live[n] = 0;
    find_live(tsi_region(s, slab_id), (uint32_t)(tsi_os.page_bytes >> TSI_GRANULE_SHIFT), live);
}

void tsi_region_recount(TsiSpace* s, uint32_t slab_id, bool holds) {
    TsiRegion* r = tsi_region(s, slab_id);
    uint64_t word = tsi_load_relaxed(&r->word);
    unsigned gen = tsi_region_gen(word);
    if (tsi_load_relaxed(&r->late) != 0) tsi_store_relaxed(&r->late, 0);
    if (tsi_region_entered(word) != 0) tsi_store_relaxed(&r->word, word &= ~(0xffffull * TSI_REGION_ENTERED));
    if (!holds || gen == 0) return;

    uint32_t end = tsi_load_relaxed(&r->rel) >> TSI_GRANULE_SHIFT;
    /* A start that a vanished owner was about to hand out belongs to nobody. */
    _Atomic uint8_t* map = tsi_load_relaxed(&r->map);
    if (end < 1u << (tsi_load_relaxed(&r->size_log2) - TSI_GRANULE_SHIFT) && tsi_load_relaxed(&map[end]) != 0)
        tsi_store_relaxed(&map[end], 0);

    /* A claim writes `rel` last, and its end writes that first: otherwise its owner has vanished within one of them. */
    bool claimed = tsi_load_relaxed(&r->claimed) && end == tsi_region_room(r) >> TSI_GRANULE_SHIFT;
    if (!claimed) tsi_store_relaxed(&r->claimed, false);

    Count count = count_map(r, gen, end);
    if (!claimed) { /* otherwise unchanged (R5): the run may be the forking thread's */
        tsi_store_relaxed(&r->issued, count.objects);
        tsi_store_relaxed(&r->gap_granules, count.gap_granules);
    }
    tsi_store_relaxed(&r->freed, count.objects - count.live - count.other);
    tsi_store_relaxed(&r->word,
                      (uint64_t)gen << TSI_REGION_GEN_SHIFT | count.other * TSI_REGION_OBJECT | count.other_granules);
}

/* ---- chunks ---- */

/* Returns true if a freer sleeps in an ended life of one of the chunk's regions: `late` of a record is not 0. The
 * records are usable. [pool lock held] */
static bool freer_sleeps(const TsiSpace* s, uint32_t chunk) {
    for (uint32_t i = 0; i < TSI_CHUNK_SLABS; i++)
        if (tsi_load_acquire(&tsi_region(s, tsi_slab_id(chunk, i))->late) != 0) return true; /* as in tsi_region_open */
    return false;
}

bool tsi_regions_prepare(TsiSpace* s, uint32_t chunk, unsigned cls) {
    TsiChunk* record = &s->chunks[chunk];
    uint8_t* regions = tsi_regions_of(s, chunk);
    bool ready = record->region_class == cls || record->regions_clear, had = record->region_class != 0;
    if (!had && !ready && !tsi_space_extend(s, TSI_STRIP_REGIONS, chunk, 1)) return false;
    if (had && !ready) {
        if (freer_sleeps(s, chunk)) return false;
        /* Bytes of the old regions would be objects of the new ones. */
        clear_map(regions, TSI_REGIONS_MAP);
        for (uint32_t i = 0; i < TSI_CHUNK_SLABS; i++) {
            TsiRegion* r = tsi_region(s, tsi_slab_id(chunk, i));
            /* seq_cst: as in take_word; a freer that entered since the last life ended finds the tag changed and marks
             * nothing */
            if (tsi_region_life(r) != 0) tsi_add_relaxed(&r->late, tsi_region_entered(tsi_swap_seq(&r->word, 0)));
            tsi_store_relaxed(&r->gen, 0);
        }
    }

    record->region_class = (uint8_t)cls;
    record->regions_clear = false;
    return true;
}
