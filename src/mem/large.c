/*
 * large.c - see large.h.
 *
 * A position is the number of a unit in the payload. A chunk is open to large objects while it is free or serves them
 * already and has units left (`open`).
 */
#include "mem/large.h"

#include "base/check.h"
#include "mem/chunk.h"
#include "mem/chunk_pages.h"
#include "mem/purge.h"
#include "mem/region.h"
#include "mem/stock.h"

#define NOWHERE UINT32_MAX

enum {
    ROOM_FACTOR = 16, /* an object that grows is given room for as many times its size */
    ROOM_PART = 8,    /* but for no more than this part of the free chunks */
    LARGE_LEFT = 64   /* objects given back between two looks at the bookkeeping of chunks that nobody uses */
};

/* ---- huge pages ---- */

/* The first of two free chunks that a huge page would fill, with nothing of the stock in them; chunk_count when there
 * is none. `anywhere`: on the side of small pages, too. */
static uint32_t pair_find(const TsiSpace* s, bool anywhere) {
    const uint64_t firsts = 0x5555555555555555u;
    for (uint32_t word = s->used_hint / 64; word < (s->chunk_count + 63) / 64; word++) {
        uint64_t free = ~(s->bits[word].used | s->bits[word].stocked);
        if (!anywhere) free &= tsi_chunk_huge_side(word);
        for (uint64_t pairs = free & free >> 1 & firsts; pairs != 0; pairs &= pairs - 1) {
            uint32_t first = word * 64 + tsi_ctz64(pairs);
            if (first + 2 <= s->chunk_count) return first;
        }
    }
    return s->chunk_count;
}

/* Where small pages were, tables for them are left behind, and no huge page comes: the addresses are mapped anew. */
static bool pair_ask(TsiSpace* s, uint32_t first) {
    uint8_t* p = tsi_chunk_base(s, first);
    size_t bytes = (size_t)2 << TSI_CHUNK_SHIFT;
    if (s->chunks[first].huge && s->chunks[first + 1].huge) return true;
    bool had = first < tsi_load_relaxed(&s->chunk_high);
    if (had && tsi_os.purge(p, bytes, TSI_PURGE_RENEW) != 0) return false;
    for (uint32_t i = first; had && i < first + 2; i++) {
        tsi_store_relaxed(&s->chunks[i].dirty, 0);
        s->chunks[i].asked_node = 0;
    }
    tsi_os.prefer_huge(p, bytes);
    s->chunks[first].huge = s->chunks[first + 1].huge = true;
    return true;
}

bool tsi_space_take_huge(TsiSpace* s, unsigned lane, uint32_t slab_ids[2]) {
    const TsiClass* c = &s->classes->c[TSI_CLASS_HUGE];
    unsigned node = tsi_space_node_here(s);
    tsi_space_lock_counted(s, TSI_CLASS_HUGE, lane);
    bool over = tsi_space_is_over(s, 2 * (size_t)c->slab_bytes);
    uint32_t first = over ? s->chunk_count : pair_find(s, false);
    if (first == s->chunk_count && !over) first = pair_find(s, true);
    bool ok = first != s->chunk_count && tsi_space_cover(s, first + 2);
    if (over) slab_ids[0] = TSI_SPACE_OVER;
    for (uint32_t i = first; ok && i < first + 2; i++)
        ok = tsi_chunk_commit(s, i) && tsi_regions_prepare(s, i, TSI_CLASS_HUGE);
    ok = ok && pair_ask(s, first);
    if (ok) {
        tsi_chunks_prefer_node(s, first, 2, node);
        for (uint32_t i = first; i < first + 2; i++) {
            tsi_chunk_begin(s, i, TSI_CLASS_HUGE, 0);
            s->chunks[i].fresh = 1;
            slab_ids[i - first] = tsi_slab_id(i, 0);
            tsi_floors_apply(s, TSI_CLASS_HUGE, tsi_slab_id(i, 0));
            tsi_chunk_set_class(s, i, TSI_CLASS_HUGE);
        }
        tsi_add_relaxed(&s->committed_bytes, 2 * (uint64_t)c->slab_bytes);
    }
    tsi_lock_give_probed(&s->lock);
    return ok;
}

/* ---- units ---- */

static unsigned unit_shift(const TsiSpace* s) { return s->classes->c[TSI_CLASS_LARGE].line_shift; }
static unsigned chunk_units_log2(const TsiSpace* s) { return TSI_CHUNK_SHIFT - unit_shift(s); }
static uint32_t all_units(const TsiSpace* s) { return (1u << (1u << chunk_units_log2(s))) - 1; }
uint32_t tsi_large_units(const TsiSpace* s, size_t bytes) {
    return (uint32_t)((bytes + ((size_t)1 << unit_shift(s)) - 1) >> unit_shift(s));
}

static uint32_t position_of(const TsiSpace* s, uint32_t slab_id) {
    return (tsi_slab_chunk(slab_id) << chunk_units_log2(s)) + tsi_slab_number(slab_id);
}
static uint32_t slab_at(const TsiSpace* s, uint32_t position) {
    unsigned log2 = chunk_units_log2(s);
    return tsi_slab_id(position >> log2, position & ((1u << log2) - 1));
}

/* Units of a chunk that lie in [from, end), a bit each. */
static uint32_t units_in(const TsiSpace* s, uint32_t chunk, uint32_t from, uint32_t end) {
    unsigned log2 = chunk_units_log2(s);
    uint32_t low = chunk << log2, high = low + (1u << log2);
    if (from > low) low = from;
    if (end < high) high = end;
    uint32_t n = high - low;
    return ((1u << n) - 1) << (low - (chunk << log2));
}

/* Units of a chunk that a large object may take. */
static uint32_t free_units(const TsiSpace* s, uint32_t chunk) {
    if (!tsi_chunk_is_used(s, chunk)) return all_units(s);
    return tsi_chunk_is_open(s, chunk) && !s->chunks[chunk].held ? all_units(s) & ~s->chunks[chunk].units : 0;
}

/* Free units from a position on, `most` at the most. */
static uint32_t free_from(const TsiSpace* s, uint32_t position, uint32_t most) {
    unsigned log2 = chunk_units_log2(s);
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

/* First fit: the position of n free units in a row whose address is aligned. `anywhere`: on the side of huge pages,
 * too. O(chunks / 64), and O(units) of the chunks that are open. */
static uint32_t find(const TsiSpace* s, uint32_t n, size_t align, bool anywhere) {
    unsigned log2 = chunk_units_log2(s);
    uint32_t step = align >> unit_shift(s) > 1 ? (uint32_t)(align >> unit_shift(s)) : 1;
    uint32_t skew = (uint32_t)((uintptr_t)s->base >> unit_shift(s)) & (step - 1);
    uint32_t begin = 0, end = NOWHERE; /* of the run that ends where the search has come to */
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
    return NOWHERE;
}

/* The words of a unit that is used begin above the chunk's floors. */
static void unit_begin(TsiSpace* s, uint32_t slab_id, bool inside) {
    _Atomic uint64_t* tag = &tsi_slab(s, slab_id)->tag;
    tsi_floors_apply(s, TSI_CLASS_LARGE, slab_id);
    if (inside) tsi_store_relaxed(tag, tsi_tag(tsi_tag_seq(tsi_load_relaxed(tag)), 0, TSI_SLAB_INSIDE));
}

static void set_units(TsiSpace* s, uint32_t chunk, uint32_t units) {
    s->chunks[chunk].units = (uint16_t)units;
    tsi_word_set(&s->bits[chunk / 64].open, chunk % 64, units != 0 && units != all_units(s));
}

/* Units [from, end) become an object's, which begins at `from` if `starts`. Chunks that it fills are CONT, so that
 * nothing is written for them; the one where it begins is not. */
static void place(TsiSpace* s, uint32_t from, uint32_t end, bool starts) {
    unsigned log2 = chunk_units_log2(s);
    for (uint32_t chunk = from >> log2; chunk << log2 < end; chunk++) {
        TsiChunk* k = &s->chunks[chunk];
        uint32_t units = units_in(s, chunk, from, end);
        bool free = !tsi_chunk_is_used(s, chunk), first = starts && chunk == from >> log2;
        if (free) {
            if (TSI_UNLIKELY(k->huge)) tsi_space_avoid_huge(s, chunk);
            k->units = 0;
            tsi_chunk_set_used(s, chunk, true);
        }
        if (units == all_units(s) && !first) {
            tsi_chunk_set_class(s, chunk, TSI_CLASS_CONT);
            continue;
        }
        for (uint32_t left = units; left != 0; left &= left - 1) {
            uint32_t id = tsi_slab_id(chunk, tsi_ctz64(left));
            unit_begin(s, id, !first || position_of(s, id) != from);
        }
        set_units(s, chunk, k->units | units);
        if (free) tsi_chunk_set_class(s, chunk, TSI_CLASS_LARGE);
    }
}

/* A chunk that no large object uses any more. */
static void close(TsiSpace* s, uint32_t chunk) {
    TsiChunk* k = &s->chunks[chunk];
    if (tsi_chunk_class(s, chunk) == TSI_CLASS_LARGE) tsi_floors_raise(s, chunk, 1u << chunk_units_log2(s));
    tsi_chunk_set_class(s, chunk, 0);
    k->last_class = TSI_CLASS_LARGE;
    if (k->held) return; /* settled as it is given free */
    if (k->meta_kept) tsi_chunk_give_words(s, chunk);
    else if (!tsi_chunk_has_stock(k)) tsi_space_mark_gone(k);
    tsi_chunk_set_used(s, chunk, false);
}

/* Units [from, end) are nobody's any more. */
static void leave(TsiSpace* s, uint32_t from, uint32_t end) {
    unsigned log2 = chunk_units_log2(s);
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

static void set_span(TsiSpace* s, uint32_t slab_id, uint32_t units) {
    _Atomic uint32_t* word = &tsi_slab(s, slab_id)->gone;
    uint32_t was = tsi_load_relaxed(word);
    /* An end may say at this moment that it has looked. */
    while (!atomic_compare_exchange_weak_explicit(word, &was, units << TSI_LARGE_UNITS_SHIFT | (was & TSI_LARGE_LOOKED),
                                                  memory_order_relaxed, memory_order_relaxed)) {}
}

/* Units that an object of n is to have where it grows. None beyond n where writable memory is charged. */
static uint32_t room_for(const TsiSpace* s, uint32_t n) {
    uint32_t most = ((s->chunk_count - s->chunks_used) / ROOM_PART) << chunk_units_log2(s);
    if (tsi_os.strict_commit || n >= most) return n;
    return n > most / ROOM_FACTOR ? most : n * ROOM_FACTOR;
}

bool tsi_large_reclaim_locked(TsiSpace* s) {
    TSI_HOLDS(&s->lock);
    unsigned log2 = chunk_units_log2(s);
    bool any = false;
    for (uint32_t chunk = 0; s->set_aside != 0 && chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        if (tsi_chunk_class(s, chunk) != TSI_CLASS_LARGE) continue;
        for (uint32_t left = s->chunks[chunk].units; left != 0; left &= left - 1) {
            uint32_t id = tsi_slab_id(chunk, tsi_ctz64(left)), from = position_of(s, id);
            if (tsi_tag_state(tsi_load_relaxed(&tsi_slab(s, id)->tag)) == TSI_SLAB_INSIDE) continue;
            uint32_t n = tsi_large_units(s, tsi_slab_bytes(s, TSI_CLASS_LARGE, id)), end = from + tsi_large_span(s, id);
            /* to the end of a chunk: one that the object fills has no words for its units */
            uint32_t to = (from + n + (1u << log2) - 1) >> log2 << log2;
            if (to >= end) continue;
            set_span(s, id, to - from);
            s->set_aside -= end - to;
            leave(s, to, end);
            any = true;
        }
    }
    return any;
}

/* ---- large objects ---- */

/* Words and payload of units [from, end). Payload of what is charged: `bytes` from the first on. */
static bool commit(TsiSpace* s, uint32_t from, uint32_t end, uint8_t* p, size_t bytes) {
    unsigned log2 = chunk_units_log2(s);
    uint32_t first = from >> log2, last = (end - 1) >> log2;
    if (!tsi_space_cover(s, last + 1)) return false;
    for (uint32_t chunk = first;; chunk = last) { /* chunks between them have no words */
        if (!tsi_chunk_commit(s, chunk)) return false;
        if (chunk == last) break;
    }
    return !tsi_os.strict_commit || tsi_os.commit(p, bytes) == 0;
}

/* Units for n of them and, as far as there are some, for as many as `room`. */
static uint32_t find_room(TsiSpace* s, uint32_t n, uint32_t* room, size_t align) {
    uint32_t at = NOWHERE;
    for (; at == NOWHERE && *room > n; *room = at == NOWHERE ? n + (*room - n) / 2 : *room)
        at = find(s, *room, align, false);
    if (at == NOWHERE) at = find(s, n, align, false);
    if (at == NOWHERE) at = find(s, n, align, true);
    if (at == NOWHERE && tsi_large_reclaim_locked(s)) at = find(s, n, align, true);
    return at;
}

/* Free chunks of [from, end), in runs. */
static void prefer_node(TsiSpace* s, uint32_t from, uint32_t end, unsigned node) {
    unsigned log2 = chunk_units_log2(s);
    uint32_t first = from >> log2, last = (end - 1) >> log2;
    for (uint32_t to; s->nodes != 1 && first <= last; first = to + 1) {
        for (to = first; to <= last && !tsi_chunk_is_used(s, to);) to++;
        if (to != first) tsi_chunks_prefer_node(s, first, to - first, node);
    }
}

bool tsi_space_take_large(TsiSpace* s, size_t bytes, size_t align, bool grows, unsigned lane, uint32_t* slab_id) {
    bool fits = bytes <= s->payload_bytes;
    uint32_t n = fits ? tsi_large_units(s, bytes) : 0;
    bytes = tsi_align_up(bytes, tsi_os.page_bytes);
    unsigned node = tsi_space_node_here(s);
    tsi_space_lock_counted(s, TSI_CLASS_LARGE, lane);
    bool over = tsi_space_is_over(s, bytes);
    uint32_t room = fits && grows ? room_for(s, n) : n, from = fits && !over ? find_room(s, n, &room, align) : NOWHERE;
    if (over) *slab_id = TSI_SPACE_OVER;
    uint8_t* p = s->base + ((size_t)from << unit_shift(s));
    bool ok = from != NOWHERE;
    if (ok && room > n && !commit(s, from, from + room, p, bytes)) room = n;
    ok = ok && (room > n || commit(s, from, from + n, p, bytes));
    if (ok) {
        uint32_t id = slab_at(s, from);
        prefer_node(s, from, from + room, node);
        place(s, from, from + room, true);
        tsi_store_relaxed(&tsi_slab(s, id)->extra, (uint32_t)(bytes >> 10));
        tsi_store_relaxed(&tsi_slab(s, id)->gone, room << TSI_LARGE_UNITS_SHIFT);
        s->set_aside += room - n;
        tsi_add_relaxed(&s->committed_bytes, bytes - tsi_stock_take_locked(s, p, bytes));
        *slab_id = id;
    }
    tsi_lock_give_probed(&s->lock);
    return ok;
}

bool tsi_space_grow_large(TsiSpace* s, uint32_t slab_id, size_t bytes) {
    uint32_t from = position_of(s, slab_id), n = tsi_large_units(s, bytes), have;
    size_t had = tsi_slab_bytes(s, TSI_CLASS_LARGE, slab_id);
    uint8_t* p = s->base + ((size_t)from << unit_shift(s));
    bytes = tsi_align_up(bytes, tsi_os.page_bytes);
    tsi_lock_take(&s->lock);
    uint32_t used = tsi_large_units(s, had), more = 0;
    have = tsi_large_span(s, slab_id);
    bool ok = !tsi_space_is_over(s, bytes - had);
    if (ok && n > have) {
        more = free_from(s, from + have, room_for(s, n) - have);
        ok = have + more >= n;
    }
    ok = ok && commit(s, from, from + have + more, p + had, bytes - had);
    if (ok) {
        if (more != 0) place(s, from + have, from + have + more, false);
        set_span(s, slab_id, have + more);
        s->set_aside += more + used - n;
        tsi_store_relaxed(&tsi_slab(s, slab_id)->extra, (uint32_t)(bytes >> 10));
        tsi_add_relaxed(&s->committed_bytes, bytes - had - tsi_stock_take_locked(s, p + had, bytes - had));
    }
    tsi_lock_give(&s->lock);
    return ok;
}

uint64_t tsi_space_give_large(TsiSpace* s, uint32_t slab_id, bool keep) {
    uint32_t from = position_of(s, slab_id);
    uint8_t* payload = s->base + ((size_t)from << unit_shift(s));
    size_t bytes = tsi_slab_bytes(s, TSI_CLASS_LARGE, slab_id), kept = 0;
    if (keep && tsi_stock_learns(s)) {
        kept = tsi_stock_reserve(s, bytes, tsi_os.page_bytes);
        if (kept < bytes) tsi_stock_note_gone(s, bytes - kept);
    }
    if (kept < bytes) tsi_space_purge_range(s, TSI_CLASS_LARGE, payload + kept, bytes - kept, true);
    tsi_lock_take(&s->lock);
    if (kept != 0) tsi_stock_put_locked(s, payload, kept);
    tsi_sub_relaxed(&s->committed_bytes, bytes - kept);
    uint32_t span = tsi_large_span(s, slab_id);
    s->set_aside -= span - tsi_large_units(s, bytes);
    leave(s, from, from + span);
    bool look = ++s->large_gives % LARGE_LEFT == 0;
    tsi_lock_give(&s->lock);
    if (look) tsi_chunks_leave(s, LARGE_LEFT);
    return bytes - kept;
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
