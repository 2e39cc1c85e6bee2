/* units.c - see units.h. */
#include "mem/units.h"

#include "base/check.h"
#include "mem/chunk.h"
#include "mem/chunk_pages.h"
#include "mem/purge.h"

enum {
    ROOM_FACTOR = 16, /* a growing object gets addresses for this many times its size */
    ROOM_PART = 8     /* but for at most this part of the free chunks */
};

/* ---- units ---- */

unsigned tsi_unit_shift(const TsiSpace* s) { return s->classes->c[TSI_CLASS_LARGE].line_shift; }
unsigned tsi_units_log2(const TsiSpace* s) { return TSI_CHUNK_SHIFT - tsi_unit_shift(s); }
/* Returns the units of a chunk, a bit each. [any thread, needs no lock] */
static uint32_t all_units(const TsiSpace* s) { return (1u << (1u << tsi_units_log2(s))) - 1; }
uint32_t tsi_large_units(const TsiSpace* s, size_t bytes) {
    return (uint32_t)((bytes + ((size_t)1 << tsi_unit_shift(s)) - 1) >> tsi_unit_shift(s));
}

uint32_t tsi_unit_position(const TsiSpace* s, uint32_t slab_id) {
    return (tsi_slab_chunk(slab_id) << tsi_units_log2(s)) + tsi_slab_number(slab_id);
}
uint32_t tsi_unit_slab(const TsiSpace* s, uint32_t position) {
    unsigned log2 = tsi_units_log2(s);
    return tsi_slab_id(position >> log2, position & ((1u << log2) - 1));
}

/* Returns the units of a chunk that lie in [from, end), which are positions and touch the chunk, a bit each.
 * [any thread, needs no lock] */
static uint32_t units_in(const TsiSpace* s, uint32_t chunk, uint32_t from, uint32_t end) {
    unsigned log2 = tsi_units_log2(s);
    uint32_t low = chunk << log2, high = low + (1u << log2);
    if (from > low) low = from;
    if (end < high) high = end;
    uint32_t n = high - low;
    return ((1u << n) - 1) << (low - (chunk << log2));
}

/* Returns the units of a chunk that a large object may take, a bit each: all if the chunk is free, those that no object
 * has if it is open and not held; otherwise 0. [pool lock held] */
static uint32_t free_units(const TsiSpace* s, uint32_t chunk) {
    if (!tsi_chunk_is_used(s, chunk)) return all_units(s);
    return tsi_chunk_is_open(s, chunk) && !s->chunks[chunk].held ? all_units(s) & ~s->chunks[chunk].units : 0;
}

uint32_t tsi_units_free_from(const TsiSpace* s, uint32_t position, uint32_t most) {
    unsigned log2 = tsi_units_log2(s);
    uint32_t found = 0, units = 1u << log2;
    for (uint32_t at = position; found < most && at >> log2 < s->chunk_count;) {
        uint32_t in = at & (units - 1), taken = ~free_units(s, at >> log2) >> in;
        uint32_t here = tsi_ctz64((uint64_t)taken | 1ull << (units - in));
        found += here;
        at += here;
        if ((at & (units - 1)) != 0 || here == 0) break;
    }
    return found < most ? found : most;
}

uint32_t tsi_units_find(const TsiSpace* s, uint32_t n, size_t align, bool anywhere) {
    unsigned log2 = tsi_units_log2(s);
    uint32_t step = align >> tsi_unit_shift(s) > 1 ? (uint32_t)(align >> tsi_unit_shift(s)) : 1;
    uint32_t skew = (uint32_t)((uintptr_t)s->base >> tsi_unit_shift(s)) & (step - 1);
    uint32_t begin = 0, end = TSI_NOWHERE; /* run of free units that the search has reached */

    for (uint32_t word = 0; word < (s->chunk_count + 63) / 64; word++) {
        uint64_t some = ~s->bits[word].used | s->bits[word].open;
        if (!anywhere && s->huge_apart) some &= ~tsi_chunk_huge_side(word);
        for (; some != 0; some &= some - 1) {
            uint32_t chunk = word * 64 + tsi_ctz64(some);
            if (chunk >= s->chunk_count) break;
            for (uint32_t left = free_units(s, chunk), in; left != 0;) {
                in = tsi_ctz64(left);
                uint32_t at = (chunk << log2) + in, here = tsi_ctz64(~((uint64_t)left >> in));
                if (at != end) begin = at + ((step - ((at + skew) & (step - 1))) & (step - 1));
                end = at + here;
                if (end > begin && end - begin >= n) return begin;
                left &= ~(((1u << here) - 1) << in);
            }
        }
    }
    return TSI_NOWHERE;
}

/* Raises the words of a unit that gets used to the chunk's floors (tsi_floors_apply), and sets its tag to INSIDE if
 * `inside`; otherwise the tag stays POOL. [pool lock held] */
static void unit_begin(TsiSpace* s, uint32_t slab_id, bool inside) {
    _Atomic uint64_t* tag = &tsi_slab(s, slab_id)->tag;
    tsi_floors_apply(s, TSI_CLASS_LARGE, slab_id);
    if (inside) tsi_store_relaxed(tag, tsi_tag(tsi_tag_seq(tsi_load_relaxed(tag)), 0, TSI_SLAB_INSIDE));
}

/* Sets which units of a chunk objects have, a bit each, and whether it is open: some but not all of them. Class and
 * tags are the caller's. [pool lock held] */
static void set_units(TsiSpace* s, uint32_t chunk, uint32_t units) {
    s->chunks[chunk].units = (uint16_t)units;
    tsi_word_set(&s->bits[chunk / 64].open, chunk % 64, units != 0 && units != all_units(s));
}

void tsi_units_place(TsiSpace* s, uint32_t from, uint32_t end, bool starts) {
    unsigned log2 = tsi_units_log2(s);

    for (uint32_t chunk = from >> log2; chunk << log2 < end; chunk++) {
        TsiChunk* record = &s->chunks[chunk];
        uint32_t units = units_in(s, chunk, from, end);
        bool free = !tsi_chunk_is_used(s, chunk), first = starts && chunk == from >> log2;
        if (free) {
            if (TSI_UNLIKELY(record->huge)) tsi_space_avoid_huge(s, chunk);
            record->units = 0;
            record->last_class = TSI_CLASS_LARGE; /* pages of free units beside it may be in the stock */
            tsi_chunk_set_used(s, chunk, true);
        }
        if (units == all_units(s) && !first) {
            tsi_chunk_set_class(s, chunk, TSI_CLASS_CONT);
            continue;
        }
        for (uint32_t left = units; left != 0; left &= left - 1) {
            uint32_t id = tsi_slab_id(chunk, tsi_ctz64(left));
            unit_begin(s, id, !first || tsi_unit_position(s, id) != from);
        }
        set_units(s, chunk, record->units | units);
        if (free) tsi_chunk_set_class(s, chunk, TSI_CLASS_LARGE);
    }
}

/* Frees a chunk in which no large object has a unit any more: raises its floors if it was LARGE, takes its class, and,
 * unless it is held, marks it as free; then its words go if they were kept, and without pages in the stock it counts as
 * zero. [pool lock held] */
static void close(TsiSpace* s, uint32_t chunk) {
    TsiChunk* record = &s->chunks[chunk];
    if (tsi_chunk_class(s, chunk) == TSI_CLASS_LARGE) tsi_floors_raise(s, chunk, 1u << tsi_units_log2(s));
    tsi_chunk_set_class(s, chunk, 0);
    record->last_class = TSI_CLASS_LARGE;
    if (record->held) return; /* tsi_chunk_unhold_locked does it */
    if (record->meta_kept) tsi_chunk_give_words(s, chunk);
    else if (!tsi_chunk_has_stock(record)) tsi_space_mark_gone(record);
    tsi_chunk_set_used(s, chunk, false);
}

void tsi_units_leave(TsiSpace* s, uint32_t from, uint32_t end) {
    unsigned log2 = tsi_units_log2(s);
    for (uint32_t chunk = from >> log2; chunk << log2 < end; chunk++) {
        uint32_t units = units_in(s, chunk, from, end);
        if (tsi_chunk_class(s, chunk) == TSI_CLASS_CONT) {
            TSI_ASSERT(units == all_units(s));
            close(s, chunk);
            continue;
        }
        for (uint32_t left = units; left != 0; left &= left - 1)
            tsi_slab_turn(tsi_slab(s, tsi_slab_id(chunk, tsi_ctz64(left))), TSI_SLAB_POOL);
        set_units(s, chunk, s->chunks[chunk].units & ~units);
        if (s->chunks[chunk].units == 0) close(s, chunk);
    }
}

/* ---- room to grow ---- */

void tsi_units_set_span(TsiSpace* s, uint32_t slab_id, uint32_t units) {
    _Atomic uint32_t* word = &tsi_slab(s, slab_id)->gone;
    uint32_t was = tsi_load_relaxed(word);
    /* An end may set LOOKED at this moment. */
    while (!atomic_compare_exchange_weak_explicit(word, &was, units << TSI_LARGE_UNITS_SHIFT | (was & TSI_LARGE_FLAGS),
                                                  memory_order_relaxed, memory_order_relaxed)) {}
}

uint32_t tsi_units_room(const TsiSpace* s, uint32_t n) {
    uint32_t most = ((s->chunk_count - s->chunks_used) / ROOM_PART) << tsi_units_log2(s);
    if (tsi_os.strict_commit || n >= most) return n;
    return n > most / ROOM_FACTOR ? most : n * ROOM_FACTOR;
}

bool tsi_units_reclaim_locked(TsiSpace* s) {
    TSI_HOLDS(&s->lock);
    bool any = false;
    for (uint32_t chunk = 0; s->set_aside != 0 && chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        if (tsi_chunk_class(s, chunk) != TSI_CLASS_LARGE) continue;
        for (uint32_t left = s->chunks[chunk].units; left != 0; left &= left - 1) {
            uint32_t id = tsi_slab_id(chunk, tsi_ctz64(left)), from = tsi_unit_position(s, id);
            if (tsi_tag_state(tsi_load_relaxed(&tsi_slab(s, id)->tag)) == TSI_SLAB_INSIDE) continue;

            uint32_t n = tsi_large_units(s, tsi_slab_bytes(s, TSI_CLASS_LARGE, id)), span = tsi_large_span(s, id);
            /* From a chunk's beginning on: a chunk that the object fills has no words for its units. */
            uint32_t aside = tsi_units_aside(s, from, n, span);
            if (aside == 0) continue;

            tsi_units_set_span(s, id, span - aside);
            s->set_aside -= aside;
            tsi_units_leave(s, from + span - aside, from + span);
            any = true;
        }
    }
    return any;
}

uint64_t tsi_large_bytes(const TsiSpace* s, uint32_t chunk) {
    uint64_t bytes = 0;
    for (uint32_t left = s->chunks[chunk].units; left != 0; left &= left - 1) {
        uint32_t id = tsi_slab_id(chunk, tsi_ctz64(left));
        bool inside = tsi_tag_state(tsi_load_relaxed(&tsi_slab(s, id)->tag)) == TSI_SLAB_INSIDE;
        if (!inside) bytes += tsi_slab_bytes(s, TSI_CLASS_LARGE, id);
    }
    return bytes;
}
