/* parts.c - see parts.h. */
#include "mem/parts.h"

#include "mem/chunk.h"
#include "mem/purge.h"
#include "mem/stock.h"

#define EVEN 0x5555555555555555ull

/* Returns true if the slab is in the pool, by the bits of its chunk. [pool lock held, or fork child] */
static bool is_in(const TsiChunk* record, uint32_t slab_id) {
    return tsi_bit_is(record->parts, tsi_slab_number(slab_id));
}
/* Returns the address of the page that the slab shares. [any thread, needs no lock] */
static uint8_t* page_of(const TsiSpace* s, uint32_t slab_id) {
    return tsi_slab_payload(s, &s->classes->c[TSI_CLASS_PART], slab_id & ~1u);
}

/* ---- taking ---- */

unsigned tsi_parts_next(const TsiChunk* chunk) {
    unsigned first = TSI_CHUNK_SLABS;
    for (unsigned n = 0; n < TSI_CHUNK_SLABS / 64; n++) {
        uint64_t in = chunk->parts[n], other = (in >> 1 & EVEN) | (in & EVEN) << 1, alone = in & ~other;
        if (alone != 0) return n * 64 + tsi_ctz64(alone);
        if (in != 0 && first == TSI_CHUNK_SLABS) first = n * 64 + tsi_ctz64(in);
    }
    return first;
}

size_t tsi_parts_take_locked(TsiSpace* s, uint32_t slab_id) {
    TSI_HOLDS(&s->lock);
    TsiChunk* chunk = &s->chunks[tsi_slab_chunk(slab_id)];
    tsi_bit_set(chunk->parts, tsi_slab_number(slab_id), false);
    return is_in(chunk, slab_id ^ 1) ? tsi_stock_take_locked(s, page_of(s, slab_id), tsi_os.page_bytes, false) : 0;
}

/* ---- giving ---- */

/* Returns true if the slab is never used again. [pool lock held, or fork child] */
static bool is_retired(const TsiSpace* s, uint32_t slab_id) {
    return tsi_tag_state(tsi_load_relaxed(&tsi_slab(s, slab_id)->tag)) == TSI_SLAB_RETIRED;
}

/* Claims the slab's page for purging if its other half is in the pool, which it takes out of that, or is retired (Q1,
 * Q4). Returns true if the page is claimed: unclaim_locked is due then; false, with nothing changed, if that half is in
 * use. [pool lock held, holder of the slab] */
static bool claim_locked(TsiSpace* s, uint32_t slab_id) {
    TSI_HOLDS(&s->lock);
    uint32_t other = slab_id ^ 1;
    TsiChunk* chunk = &s->chunks[tsi_slab_chunk(slab_id)];
    if (!is_in(chunk, other)) return is_retired(s, other);
    tsi_bit_set(chunk->parts, tsi_slab_number(other), false);
    chunk->free_count--;
    tsi_chunk_settle(s, tsi_slab_chunk(slab_id), TSI_CLASS_PART);
    return true;
}

/* Puts both halves of a claimed page, except retired ones, into the pool, their chunk to the head of its list if
 * `kept`: the page is in the stock; otherwise it has gone. Stock and committed_bytes are the caller's.
 * [pool lock held, page claimed] */
static void unclaim_locked(TsiSpace* s, uint32_t slab_id, bool kept) {
    TSI_HOLDS(&s->lock);
    if (!is_retired(s, slab_id ^ 1)) tsi_chunk_put_locked(s, slab_id ^ 1, kept);
    if (!is_retired(s, slab_id)) tsi_chunk_put_locked(s, slab_id, kept);
}

/* Gives the pages of n slabs, in ascending order and of different pages, back to the system, adjoining pages in one
 * call. Bits, stock and committed_bytes are the caller's. [pages claimed, no pool lock held] */
static void purge_pages(TsiSpace* s, const uint32_t* slab_ids, unsigned n) {
    for (unsigned i = 0, j; i < n; i = j) {
        uint8_t *from = page_of(s, slab_ids[i]), *to = from + tsi_os.page_bytes;
        for (j = i + 1; j < n && page_of(s, slab_ids[j]) == to; j++) to += tsi_os.page_bytes;
        (void)tsi_space_purge_range(s, TSI_CLASS_PART, from, (size_t)(to - from), true);
    }
}

/* Puts the claimed page into the stock, and both its halves into the pool, if *room, the bytes of budget that the
 * caller has taken, is at least a page, by which it falls then. Adds TSI_PART_BYTES to committed_bytes: all of the page
 * counts there; before, only the half that is given did. Returns false, and changes nothing, if there is no room,
 * max_bytes forbids it, or the other half is retired. [pool lock held, page claimed] */
static bool keep_locked(TsiSpace* s, uint32_t slab_id, uint64_t* room) {
    TSI_HOLDS(&s->lock);
    if (*room < tsi_os.page_bytes || tsi_space_is_over(s, TSI_PART_BYTES)) return false;
    if (is_retired(s, slab_id ^ 1)) return false; /* taking a half takes the page out */
    *room -= tsi_os.page_bytes;
    tsi_stock_put_locked(s, page_of(s, slab_id), tsi_os.page_bytes);
    unclaim_locked(s, slab_id, true);
    tsi_add_relaxed(&s->committed_bytes, TSI_PART_BYTES);
    return true;
}

size_t tsi_parts_give(TsiSpace* s, uint32_t* slab_ids, unsigned n, TsiPartsHow how) {
    uint64_t bytes = s->classes->c[TSI_CLASS_PART].slab_bytes, room = 0;
    unsigned pages = 0, wanted = 0; /* pages to purge; those of them for want of budget */
    if (!tsi_stock_learns(s)) how = TSI_PARTS_GO;
    if (how != TSI_PARTS_GO) { /* each may complete a page; normally two do */
        room = tsi_stock_room(s, tsi_align_up(n * bytes, tsi_os.page_bytes), how == TSI_PARTS_LEARN);
        room += tsi_stock_reserve(s, n * bytes, tsi_os.page_bytes);
    }

    tsi_lock_take(&s->lock);
    for (unsigned i = 0; i < n; i++) {
        bool page = claim_locked(s, slab_ids[i]);
        if (page && keep_locked(s, slab_ids[i], &room)) continue;
        if (page) {
            wanted += room < tsi_os.page_bytes;
            slab_ids[pages++] = slab_ids[i];
            continue;
        }
        tsi_chunk_put_locked(s, slab_ids[i], false);
        tsi_sub_relaxed(&s->committed_bytes, bytes);
    }
    tsi_lock_give(&s->lock);
    if (room != 0) tsi_stock_unreserve(s, room);

    if (pages == 0) return 0;
    if (how == TSI_PARTS_LEARN && wanted != 0) tsi_stock_note_gone(s, wanted * tsi_os.page_bytes);
    purge_pages(s, slab_ids, pages);
    tsi_lock_take(&s->lock);
    for (unsigned i = 0; i < pages; i++) unclaim_locked(s, slab_ids[i], false);
    tsi_sub_relaxed(&s->committed_bytes, pages * bytes);
    tsi_lock_give(&s->lock);
    return pages * tsi_os.page_bytes;
}

void tsi_parts_retire(TsiSpace* s, uint32_t slab_id) {
    tsi_lock_take(&s->lock);
    tsi_slab_turn(tsi_slab(s, slab_id), TSI_SLAB_RETIRED);
    tsi_sub_relaxed(&s->committed_bytes, s->classes->c[TSI_CLASS_PART].slab_bytes);
    bool page = claim_locked(s, slab_id);
    tsi_lock_give(&s->lock);
    if (!page) return;
    purge_pages(s, &slab_id, 1);
    tsi_lock_take(&s->lock);
    unclaim_locked(s, slab_id, false);
    tsi_lock_give(&s->lock);
}

/* Puts the half into its chunk's pool if its tag is POOL; free_count was set to 0 before. Sets *known to false if its
 * bit disagrees with the tag; never to true. Returns true if it is in the pool or retired, so that no object is in it.
 * [fork child] */
static bool put_by_tag(TsiSpace* s, uint32_t slab_id, bool* known) {
    TsiChunk* chunk = &s->chunks[tsi_slab_chunk(slab_id)];
    bool in = tsi_tag_state(tsi_load_relaxed(&tsi_slab(s, slab_id)->tag)) == TSI_SLAB_POOL;
    if (in != is_in(chunk, slab_id)) *known = false;
    if (!in) return is_retired(s, slab_id);
    tsi_chunk_add(s, tsi_slab_chunk(slab_id), TSI_CLASS_PART, tsi_slab_number(slab_id));
    return true;
}

void tsi_parts_child(TsiSpace* s) {
    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        TsiChunk* record = &s->chunks[chunk];
        if (!tsi_parts_share(s, tsi_chunk_class(s, chunk))) continue;
        record->free_count = 0;
        for (uint32_t n = 0; n < TSI_CHUNK_SLABS; n += 2) {
            uint32_t id = tsi_slab_id(chunk, n);
            bool known = true, first = put_by_tag(s, id, &known), second = put_by_tag(s, id + 1, &known);
            if (first && second && !known) purge_pages(s, &id, 1); /* a vanished thread held one of them */
        }
    }
}
