/* large.c - see large.h. */
#include "mem/large.h"

#include "mem/chunk.h"
#include "mem/purge.h"
#include "mem/region.h"
#include "mem/stock.h"
#include "mem/units.h"

enum { LARGE_LEFT = 64 /* objects given back between two looks at the bookkeeping of chunks that nobody uses */ };

/* ---- huge pages ---- */

/* Returns the first of two free chunks that a huge page would fill, so an even one, neither with pages in the stock;
 * chunk_count if there is none. anywhere: also on the side of small pages (chunk.h). Takes none. [pool lock held] */
static uint32_t pair_find(const TsiSpace* s, bool anywhere) {
    const uint64_t firsts = 0x5555555555555555u;
    for (uint32_t word = s->used_hint / 64; word < (s->chunk_count + 63) / 64; word++) {
        uint64_t free = ~(s->bits[word].used | s->bits[word].stocked);
        if (!anywhere && s->huge_apart) free &= tsi_chunk_huge_side(word);
        for (uint64_t pairs = free & free >> 1 & firsts; pairs != 0; pairs &= pairs - 1) {
            uint32_t first = word * 64 + tsi_ctz64(pairs);
            if (first + 2 <= s->chunk_count) return first;
        }
    }
    return s->chunk_count;
}

/* Asks the system for a huge page in chunks `first` and the next, both free, and sets their `huge`; nothing if that is
 * set already. Tables that small pages left would prevent it, so addresses that were used are mapped anew: then the
 * chunks are zero and their node is to be asked for again. Returns false if that mapping fails. [pool lock held] */
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

bool tsi_space_take_huge(TsiSpace* s, unsigned column, uint32_t slab_ids[2]) {
    const TsiClass* shape = &s->classes->c[TSI_CLASS_HUGE];
    unsigned node = tsi_space_node_here(s);
    tsi_space_lock_counted(s, TSI_CLASS_HUGE, column);
    bool over = tsi_space_is_over(s, 2 * (size_t)shape->slab_bytes);
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
        tsi_add_relaxed(&s->committed_bytes, 2 * (uint64_t)shape->slab_bytes);
    }

    tsi_lock_give_probed(&s->lock);
    return ok;
}

/* ---- large objects ---- */

/* Makes the words of the chunks where units [from, end) begin and end usable, and the payload; where the system charges
 * payload, `bytes` at p alone. Returns false if the system refuses; some of it may be usable then. [pool lock held] */
static bool commit(TsiSpace* s, uint32_t from, uint32_t end, uint8_t* p, size_t bytes) {
    unsigned log2 = tsi_units_log2(s);
    uint32_t first = from >> log2, last = (end - 1) >> log2;
    if (!tsi_space_cover(s, last + 1)) return false;
    for (uint32_t chunk = first;; chunk = last) { /* chunks between first and last have no words */
        if (!tsi_chunk_commit(s, chunk)) return false;
        if (chunk == last) break;
    }
    return !tsi_os.strict_commit || tsi_os.commit(p, bytes) == 0;
}

/* Finds n free units with up to *room - n more behind them, at `align`: fewer and fewer until some are free, on the
 * side of small pages. Only for n alone looks on the other side, and last takes back room that other objects were
 * given. Returns the position, with *room set to what is free there, n at least; TSI_NOWHERE, with *room set to n, if
 * there is none. Takes none. [pool lock held] */
static uint32_t find_room(TsiSpace* s, uint32_t n, uint32_t* room, size_t align) {
    uint32_t at = TSI_NOWHERE;
    for (; at == TSI_NOWHERE && *room > n; *room = at == TSI_NOWHERE ? n + (*room - n) / 2 : *room)
        at = tsi_units_find(s, *room, align, false);
    if (at == TSI_NOWHERE) at = tsi_units_find(s, n, align, false);
    if (at == TSI_NOWHERE) at = tsi_units_find(s, n, align, true);
    if (at == TSI_NOWHERE && tsi_units_reclaim_locked(s)) at = tsi_units_find(s, n, align, true);
    return at;
}

/* Asks for the node's memory for the free chunks that units [from, end) touch, in runs (tsi_chunks_prefer_node); used
 * ones keep their node. Does nothing unless the allocator tells nodes apart. [pool lock held] */
static void prefer_node(TsiSpace* s, uint32_t from, uint32_t end, unsigned node) {
    unsigned log2 = tsi_units_log2(s);
    uint32_t first = from >> log2, last = (end - 1) >> log2;
    for (uint32_t to; s->nodes != 1 && first <= last; first = to + 1) {
        for (to = first; to <= last && !tsi_chunk_is_used(s, to);) to++;
        if (to != first) tsi_chunks_prefer_node(s, first, to - first, node);
    }
}

bool tsi_space_take_large(TsiSpace* s, size_t bytes, size_t align, bool grows, unsigned column, uint32_t* slab_id) {
    bool fits = bytes <= s->payload_bytes;
    uint32_t n = fits ? tsi_large_units(s, bytes) : 0;
    bytes = tsi_align_up(bytes, tsi_os.page_bytes);

    unsigned node = tsi_space_node_here(s);
    tsi_space_lock_counted(s, TSI_CLASS_LARGE, column);
    bool over = tsi_space_is_over(s, bytes);
    uint32_t room = fits && grows ? tsi_units_room(s, n) : n,
             from = fits && !over ? find_room(s, n, &room, align) : TSI_NOWHERE;
    if (over) *slab_id = TSI_SPACE_OVER;

    bool ok = from != TSI_NOWHERE;
    uint8_t* p = ok ? s->base + ((size_t)from << tsi_unit_shift(s)) : NULL;
    if (ok && room > n && !commit(s, from, from + room, p, bytes)) room = n;
    ok = ok && (room > n || commit(s, from, from + n, p, bytes));

    if (ok) {
        uint32_t id = tsi_unit_slab(s, from);
        prefer_node(s, from, from + room, node);
        tsi_units_place(s, from, from + room, true);
        /* release: pairs with tsi_slab_bytes_seen: the tag of the object before has changed */
        tsi_store_release(&tsi_slab(s, id)->extra, (uint32_t)(bytes >> 10));
        tsi_store_relaxed(&tsi_slab(s, id)->gone, room << TSI_LARGE_UNITS_SHIFT);
        s->set_aside += tsi_units_aside(s, from, n, room);
        tsi_add_relaxed(&s->committed_bytes, bytes - tsi_stock_take_locked(s, p, bytes, true));
        *slab_id = id;
    }

    tsi_lock_give_probed(&s->lock);
    return ok;
}

/* Returns true if a chunk that [p, p + bytes) touches is held, so that kept pages of it may be on their way to the
 * system (stock.h, K3). bytes is not 0. [pool lock held] */
static bool is_held(const TsiSpace* s, const uint8_t* p, size_t bytes) {
    uint32_t chunk = (uint32_t)((size_t)(p - s->base) >> TSI_CHUNK_SHIFT);
    uint32_t last = (uint32_t)((size_t)(p + bytes - 1 - s->base) >> TSI_CHUNK_SHIFT);
    for (; chunk <= last; chunk++)
        if (s->chunks[chunk].held) return true;
    return false;
}

bool tsi_space_grow_large(TsiSpace* s, uint32_t slab_id, size_t bytes) {
    uint32_t from = tsi_unit_position(s, slab_id), n = tsi_large_units(s, bytes), have;
    size_t had = tsi_slab_bytes(s, TSI_CLASS_LARGE, slab_id);
    uint8_t* p = s->base + ((size_t)from << tsi_unit_shift(s));
    bytes = tsi_align_up(bytes, tsi_os.page_bytes);

    tsi_lock_take(&s->lock);
    uint32_t used = tsi_large_units(s, had), more = 0;
    have = tsi_large_span(s, slab_id);
    bool ok = !tsi_space_is_over(s, bytes - had) && (size_t)(p - s->base) + bytes <= s->payload_bytes &&
              !is_held(s, p + had, bytes - had);

    if (ok && n > have) {
        more = tsi_units_free_from(s, from + have, tsi_units_room(s, n) - have);
        ok = have + more >= n;
    }
    ok = ok && commit(s, from, from + have + more, p + had, bytes - had);

    if (ok) {
        if (more != 0) tsi_units_place(s, from + have, from + have + more, false);
        tsi_units_set_span(s, slab_id, have + more);
        s->set_aside += tsi_units_aside(s, from, n, have + more) - tsi_units_aside(s, from, used, have);
        tsi_store_release(&tsi_slab(s, slab_id)->extra, (uint32_t)(bytes >> 10)); /* as in tsi_space_take_large */
        tsi_add_relaxed(&s->committed_bytes, bytes - had - tsi_stock_take_locked(s, p + had, bytes - had, true));
    }

    tsi_lock_give(&s->lock);
    return ok;
}

uint64_t tsi_space_give_large(TsiSpace* s, uint32_t slab_id, bool keep) {
    uint32_t from = tsi_unit_position(s, slab_id);
    uint8_t* payload = s->base + ((size_t)from << tsi_unit_shift(s));
    size_t bytes = tsi_slab_bytes(s, TSI_CLASS_LARGE, slab_id), kept = 0;
    bool moved = (tsi_load_relaxed(&tsi_slab(s, slab_id)->gone) & TSI_LARGE_MOVED) != 0; /* nothing to keep */

    if (s->config.fill) keep = false;
    if (keep && !moved && tsi_stock_learns(s)) {
        kept = tsi_stock_reserve(s, bytes, tsi_os.page_bytes);
        if (kept < bytes) tsi_stock_note_gone(s, bytes - kept);
    }
    bool gone = kept < bytes && tsi_space_purge_range(s, TSI_CLASS_LARGE, payload + kept, bytes - kept, true);
    if (TSI_UNLIKELY(s->config.fill) && !gone) tsi_clear(payload, bytes);

    tsi_lock_take(&s->lock);
    if (kept != 0) tsi_stock_put_locked(s, payload, kept);
    tsi_sub_relaxed(&s->committed_bytes, bytes - kept);
    uint32_t span = tsi_large_span(s, slab_id);
    s->set_aside -= tsi_units_aside(s, from, tsi_large_units(s, bytes), span);
    tsi_units_leave(s, from, from + span);
    bool look = ++s->large_gives % LARGE_LEFT == 0;
    tsi_lock_give(&s->lock);
    if (look) tsi_chunks_leave(s, LARGE_LEFT);
    return bytes - kept;
}
