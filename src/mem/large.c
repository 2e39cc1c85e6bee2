/* large.c - see large.h. */
#include "mem/large.h"

#include "mem/chunk.h"
#include "mem/purge.h"
#include "mem/region.h"
#include "mem/stock.h"

/* ---- huge pages ---- */

/* The first of two free chunks that a huge page would fill, with nothing of the stock in them; chunk_count when there
 * is none. */
static uint32_t pair_find(const TsiSpace* s) {
    uint32_t first = s->used_hint;
    if ((((uintptr_t)s->base >> TSI_CHUNK_SHIFT) + first) % 2 != 0) first++;
    for (; first + 2 <= s->chunk_count; first += 2) {
        bool taken = false;
        for (uint32_t i = first; i < first + 2; i++) taken |= tsi_bit_is(s->used, i) || tsi_bit_is(s->stocked, i);
        if (!taken) return first;
    }
    return s->chunk_count;
}

/* Where small pages were, tables for them are left behind, and no huge page comes: the addresses are mapped anew. */
static bool pair_ask(TsiSpace* s, uint32_t first) {
    uint8_t* p = tsi_chunk_base(s, first);
    size_t bytes = (size_t)2 << TSI_CHUNK_SHIFT;
    if (s->chunks[first].huge && s->chunks[first + 1].huge) return true;
    bool had = s->chunks[first].payload_committed || s->chunks[first + 1].payload_committed;
    for (uint32_t i = first; had && i < first + 2; i++) s->chunks[i].payload_committed = s->chunks[i].asked_node = 0;
    if (had && tsi_os.purge(p, bytes, TSI_PURGE_UNCOMMIT) != 0) return false;
    for (uint32_t i = first; i < first + 2; i++) {
        tsi_store_relaxed(&s->chunks[i].dirty, 0);
        if (!s->chunks[i].payload_committed && !tsi_chunk_commit_payload(s, i)) return false;
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
    uint32_t first = over ? s->chunk_count : pair_find(s);
    bool ok = first != s->chunk_count && tsi_space_cover(s, first + 2);
    if (over) slab_ids[0] = TSI_SPACE_OVER;
    for (uint32_t i = first; ok && i < first + 2; i++)
        ok = tsi_chunk_commit(s, i, false) && tsi_regions_prepare(s, i, TSI_CLASS_HUGE);
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

/* ---- large objects ---- */

/* Whole chunks where commits cost nothing, and bookkeeping that nobody needs of those behind the first: neighbours
 * then make one mapping for the kernel, which counts them. */
static bool large_commit(TsiSpace* s, uint32_t first, uint32_t n, size_t bytes) {
    uint8_t* payload = tsi_chunk_base(s, first);
    if (!tsi_chunk_commit(s, first, false)) return false;
    if (tsi_os.strict_commit) return tsi_os.commit(payload, bytes) == 0;
    bool meta = true;
    for (uint32_t i = 1; i < n; i++) meta = meta && s->chunks[first + i].meta_committed;
    if (!meta && !tsi_chunks_commit_meta(s, first, n)) return false;
    for (uint32_t i = 0; i < n;) { /* in runs, for one object of gigabytes is one call */
        uint32_t end = i;
        while (end < n && !s->chunks[first + end].payload_committed) end++;
        if (end > i &&
            tsi_os.commit(payload + ((size_t)i << TSI_CHUNK_SHIFT), (size_t)(end - i) << TSI_CHUNK_SHIFT) != 0)
            return false;
        for (; i < end; i++) s->chunks[first + i].payload_committed = 1;
        i++;
    }
    return true;
}

bool tsi_space_take_large(TsiSpace* s, size_t bytes, size_t align, unsigned lane, uint32_t* slab_id) {
    uint64_t chunks = (bytes + (1u << TSI_CHUNK_SHIFT) - 1) >> TSI_CHUNK_SHIFT;
    bytes = tsi_align_up(bytes, tsi_os.page_bytes);
    unsigned node = tsi_space_node_here(s);
    tsi_space_lock_counted(s, TSI_CLASS_LARGE, lane);
    bool over = tsi_space_is_over(s, bytes);
    uint32_t n = (uint32_t)chunks, first = chunks <= s->chunk_count ? tsi_chunk_find(s, n, align) : s->chunk_count;
    bool ok = first != s->chunk_count && !over;
    if (over) *slab_id = TSI_SPACE_OVER;
    if (ok) tsi_chunks_prefer_node(s, first, n, node);
    ok = ok && tsi_space_cover(s, first + n) && large_commit(s, first, n, bytes);
    if (ok) {
        tsi_chunk_set_used(s, first, n, true);
        tsi_store_relaxed(&tsi_slab(s, tsi_slab_id(first, 0))->extra, (uint32_t)(bytes >> 10));
        tsi_floors_apply(s, TSI_CLASS_LARGE, tsi_slab_id(first, 0));
        for (uint32_t i = 1; i < n; i++) tsi_chunk_set_class(s, first + i, TSI_CLASS_CONT);
        s->chunks[first].run = n;
        tsi_add_relaxed(&s->committed_bytes, bytes - tsi_stock_take_locked(s, tsi_chunk_base(s, first), bytes));
        for (uint32_t i = first; i < first + n; i++)
            if (TSI_UNLIKELY(s->chunks[i].huge)) tsi_space_avoid_huge(s, i);
        tsi_chunk_set_class(s, first, TSI_CLASS_LARGE);
        *slab_id = tsi_slab_id(first, 0);
    }
    tsi_lock_give_probed(&s->lock);
    return ok;
}

enum { LARGE_LEFT = 64 };

uint64_t tsi_space_give_large(TsiSpace* s, uint32_t slab_id, bool keep) {
    uint32_t first = tsi_slab_chunk(slab_id), n = s->chunks[first].run;
    uint8_t* payload = tsi_chunk_base(s, first);
    size_t bytes = tsi_slab_bytes(s, TSI_CLASS_LARGE, slab_id), kept = 0;
    if (keep && tsi_stock_learns(s)) {
        kept = tsi_stock_reserve(s, bytes, tsi_os.page_bytes);
        if (kept < bytes) tsi_stock_note_gone(s, bytes - kept);
    }
    if (kept < bytes) tsi_space_purge_range(s, TSI_CLASS_LARGE, payload + kept, bytes - kept, true);
    tsi_lock_take(&s->lock);
    tsi_slab_turn(tsi_slab(s, slab_id), TSI_SLAB_POOL);
    tsi_floors_raise(s, first, 1);
    if (kept != 0) tsi_stock_put_locked(s, payload, kept);
    tsi_sub_relaxed(&s->committed_bytes, bytes - kept);
    for (uint32_t i = first; i < first + n; i++) {
        tsi_chunk_set_class(s, i, 0);
        s->chunks[i].last_class = TSI_CLASS_LARGE;
        if (s->chunks[i].held) continue; /* settled as it is given free */
        if (s->chunks[i].meta_kept) tsi_chunk_give_words(s, i);
        else if (!tsi_chunk_has_stock(&s->chunks[i])) tsi_space_mark_gone(&s->chunks[i]);
        tsi_chunk_set_used(s, i, 1, false);
    }
    bool look = ++s->large_gives % LARGE_LEFT == 0;
    tsi_lock_give(&s->lock);
    if (look) tsi_chunks_leave(s, LARGE_LEFT);
    return bytes - kept;
}
