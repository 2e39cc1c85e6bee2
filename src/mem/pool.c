/*
 * pool.c - see pool.h. Chunks are found by first fit in a bitmap, so a process that shrinks uses low chunks again.
 * Slabs of a chunk are handed out from its free list first, then in address order.
 */
#include "mem/pool.h"

#include "mem/chunk.h"
#include "mem/parts.h"
#include "mem/purge.h"
#include "mem/region.h"
#include "mem/stock.h"
#include "mem/units.h"

#include <string.h>

/* Returns the first free chunk (tsi_chunk_find); if there is none, first takes back addresses that large objects were
 * given to grow into, which may free chunks. Returns chunk_count if there is none even so. Takes none.
 * [pool lock held] */
static uint32_t chunk_find(TsiSpace* s) {
    uint32_t chunk = tsi_chunk_find(s);
    return chunk == s->chunk_count && tsi_units_reclaim_locked(s) ? tsi_chunk_find(s) : chunk;
}

/* Returns the first free chunk whose regions can serve the class, after tsi_regions_prepare; chunk_count if there is
 * none, or no memory. Passes over chunks where a freer sleeps in a region of another class: they count as used until
 * the search is over. Takes none. [pool lock held] */
static uint32_t region_chunk_find(TsiSpace* s, unsigned cls) {
    uint32_t chunk, passed = 0; /* passed chunks + 1, linked by `next`, which only chunks with a class need */
    for (;;) {
        chunk = chunk_find(s);
        if (chunk == s->chunk_count || tsi_regions_prepare(s, chunk, cls)) break;
        if (s->chunks[chunk].region_class == 0) { /* no memory */
            chunk = s->chunk_count;
            break;
        }
        tsi_chunk_set_used(s, chunk, true);
        s->chunks[chunk].next = passed;
        passed = chunk + 1;
    }

    for (; passed != 0; passed = s->chunks[passed - 1].next) tsi_chunk_set_used(s, passed - 1, false);
    return chunk;
}

/* Returns a free chunk for the class, prepared if it is one of regions (tsi_regions_prepare): one with kept pages that
 * the node may use, otherwise the first; chunk_count if there is none, or no memory for regions. Takes none.
 * [pool lock held] */
static uint32_t chunk_choose(TsiSpace* s, unsigned cls, unsigned node) {
    bool region = tsi_class_is_region(cls);
    uint32_t chunk = tsi_stock_chunk_locked(s, cls, node);
    if (chunk != TSI_STOCK_NONE && (!region || tsi_regions_prepare(s, chunk, cls))) return chunk;
    return region ? region_chunk_find(s, cls) : chunk_find(s);
}

/* Opens a free chunk for the class, for threads of the node: makes its bookkeeping usable, puts all its slabs, as fresh
 * ones, into the pool, and lists it under its class and node. A chunk of a huge page becomes one of small pages.
 * Returns false if there is no free chunk or no memory; the chunk is still free then. [pool lock held] */
static bool chunk_open(TsiSpace* s, unsigned cls, unsigned node) {
    uint32_t chunk = chunk_choose(s, cls, node);
    if (chunk == s->chunk_count) return false;
    tsi_chunks_prefer_node(s, chunk, 1, node);
    if (!tsi_space_cover(s, chunk + 1)) return false;
    if (!tsi_chunk_commit(s, chunk)) return false;
    TsiChunk* record = &s->chunks[chunk];
    tsi_chunk_begin(s, chunk, cls, tsi_chunk_slab_count(s, cls));
    if (tsi_parts_share(s, cls)) memset(record->parts, 0xff, sizeof record->parts);
    if (TSI_UNLIKELY(record->huge)) tsi_space_avoid_huge(s, chunk);
    tsi_chunk_link(s, chunk, cls);
    tsi_chunk_set_class(s, chunk, cls);
    return true;
}

/* ---- pool ---- */

/* Makes a slab's payload usable where the system charges writable memory (elsewhere the chunk's is already), and writes
 * a 0 into each of its pages if the allocator prefaults. Returns false if the system refuses. [pool lock held] */
static bool slab_commit(TsiSpace* s, const TsiClass* shape, uint32_t id) {
    /* Parts do not exist there. */
    if (tsi_os.strict_commit && tsi_os.commit(tsi_slab_payload(s, shape, id), shape->slab_bytes) != 0) return false;
    if (s->config.prefault) {
        volatile uint8_t* p = tsi_slab_payload(s, shape, id);
        for (size_t i = 0; i < shape->slab_bytes; i += tsi_os.page_bytes) p[i] = 0;
    }
    return true;
}

/* Returns a chunk of the class with slabs in the pool, + 1: of the node; if it has none, a free one that is opened for
 * it; if that fails, of any node. Returns 0 if there is none. [pool lock held] */
static uint32_t chunk_with_free(TsiSpace* s, unsigned cls, unsigned node) {
    const uint32_t* own = &s->with_free[node % s->nodes][cls];
    if (*own != 0 || chunk_open(s, cls, node)) return *own;
    for (unsigned other = 0; other < s->nodes; other++)
        if (s->with_free[other][cls] != 0) return s->with_free[other][cls];
    return 0;
}

TsiTaken tsi_space_take(TsiSpace* s, unsigned cls, unsigned column, uint32_t* slab_id) {
    const TsiClass* shape = &s->classes->c[cls];
    unsigned node = tsi_space_node_here(s);
    tsi_space_lock_counted(s, cls, column);
    bool over = tsi_space_is_over(s, shape->slab_bytes); /* decided here, under the lock */
    uint32_t from = !over ? chunk_with_free(s, cls, node) : 0;
    TsiTaken taken = TSI_TAKEN_NOT;
    if (over) *slab_id = TSI_SPACE_OVER;

    if (from != 0) {
        uint32_t chunk = from - 1;
        TsiChunk* record = &s->chunks[chunk];
        bool part = tsi_parts_share(s, cls);
        uint32_t id = part                     ? tsi_slab_id(chunk, tsi_parts_next(record))
                      : record->free_head != 0 ? record->free_head - 1
                                               : tsi_slab_id(chunk, record->fresh);
        if (slab_commit(s, shape, id)) {
            uint32_t slab = tsi_slab_number(id);
            if (!part && slab != record->fresh) record->free_head = tsi_slab(s, id)->next;
            /* More than one, if a half that was never used is on its way out with its page. */
            for (; record->fresh <= slab; record->fresh++) {
                tsi_floors_apply(s, cls, tsi_slab_id(chunk, record->fresh));
            }
            if (--record->free_count == 0) tsi_chunk_unlink(s, chunk, cls);
            size_t kept = part ? tsi_parts_take_locked(s, id)
                               : tsi_stock_take_locked(s, tsi_slab_payload(s, shape, id), shape->slab_bytes, false);
            tsi_add_relaxed(&s->committed_bytes, shape->slab_bytes - kept);
            taken = 2 * kept >= shape->slab_bytes ? TSI_TAKEN_KEPT : TSI_TAKEN_FRESH;
            *slab_id = id;
        }
    }

    tsi_lock_give_probed(&s->lock);
    return taken;
}

/* ---- giving back ---- */

/* Puts slabs into the pool, with the tag POOL: with `keep`, their pages into the stock, where the caller has taken
 * room, and their chunks to the heads of their lists, so that the first slab is taken first; otherwise their pages have
 * gone, and their bytes leave committed_bytes. [holder of the slabs, no pool lock held] */
static void give(TsiSpace* s, const uint32_t* slab_ids, unsigned n, bool keep) {
    uint64_t bytes = 0;
    tsi_lock_take(&s->lock);
    for (unsigned i = 0; i < n; i++) {
        /* The first of the kept slabs is taken first. */
        uint32_t id = slab_ids[keep ? n - 1 - i : i];
        const TsiClass* shape = tsi_slab_class(s, id);
        if (keep) tsi_stock_put_locked(s, tsi_slab_payload(s, shape, id), shape->slab_bytes);
        else bytes += shape->slab_bytes;
        tsi_chunk_put_locked(s, id, keep);
    }
    if (bytes != 0) tsi_sub_relaxed(&s->committed_bytes, bytes);
    tsi_lock_give(&s->lock);
}

void tsi_space_give(TsiSpace* s, const uint32_t* slab_ids, unsigned n) { give(s, slab_ids, n, false); }
void tsi_space_keep(TsiSpace* s, const uint32_t* slab_ids, unsigned n) { give(s, slab_ids, n, true); }

/* Gives the pages of n slabs that share none, in ascending order, back to the system, those of adjoining slabs in one
 * call, and puts the slabs into the pool with the tag POOL; their bytes leave committed_bytes.
 * [holder of the slabs, no pool lock held] */
static void purge_whole(TsiSpace* s, const uint32_t* slab_ids, unsigned n) {
    for (unsigned i = 0, j; i < n; i = j) {
        uint8_t *from = tsi_slab_payload(s, tsi_slab_class(s, slab_ids[i]), slab_ids[i]), *to = from;
        for (j = i; j < n; j++) {
            const TsiClass* shape = tsi_slab_class(s, slab_ids[j]);
            if (tsi_slab_payload(s, shape, slab_ids[j]) != to) break;
            to += shape->slab_bytes;
        }
        /* A run over chunks counts for the first one's class. */
        (void)tsi_space_purge_range(s, tsi_class_of_slab(s, slab_ids[i]), from, (size_t)(to - from), true);
    }
    give(s, slab_ids, n, false);
}

/* Gives the pages of n slabs back to the system, or, where slabs share pages, as `how` says, and puts the slabs into
 * the pool. Sorts the ids, and those that share pages are lost. Returns the bytes that went to the system of shared
 * pages alone. [holder of the slabs, no pool lock held] */
static size_t leave(TsiSpace* s, uint32_t* slab_ids, unsigned n, TsiPartsHow how) {
    size_t bytes = 0;
    tsi_sort_ids(slab_ids, n);
    for (unsigned i = 0, end; i < n; i = end) {
        bool part = tsi_slab_shares(s, slab_ids[i]);
        for (end = i + 1; end < n && tsi_slab_shares(s, slab_ids[end]) == part;) end++;
        if (part) bytes += tsi_parts_give(s, slab_ids + i, end - i, how);
        else purge_whole(s, slab_ids + i, end - i);
    }
    return bytes;
}

size_t tsi_space_purge(TsiSpace* s, uint32_t* slab_ids, unsigned n) { return leave(s, slab_ids, n, TSI_PARTS_GO); }
size_t tsi_space_release(TsiSpace* s, uint32_t* slab_ids, unsigned n, bool learn) {
    return leave(s, slab_ids, n, learn ? TSI_PARTS_LEARN : TSI_PARTS_KEEP);
}

/* Returns the bytes of the chunk's slabs that are neither in the pool nor retired. Sets *lost to true if slabs tagged
 * POOL may be in no list (their number is not free_count's), if slabs share pages, or if the chunk is held; never to
 * false. [fork child] */
static uint64_t chunk_look(TsiSpace* s, uint32_t chunk, unsigned cls, bool* lost) {
    const TsiChunk* record = &s->chunks[chunk];
    uint32_t pooled = 0, used = 0;
    for (uint32_t n = 0; n < record->fresh; n++) {
        unsigned state = tsi_tag_state(tsi_load_relaxed(&tsi_slab(s, tsi_slab_id(chunk, n))->tag));
        pooled += state == TSI_SLAB_POOL;
        used += state != TSI_SLAB_POOL && state != TSI_SLAB_RETIRED;
    }
    *lost |= record->held || tsi_parts_share(s, cls) ||
             pooled + tsi_chunk_slab_count(s, cls) - record->fresh != record->free_count;
    return (uint64_t)used * s->classes->c[cls].slab_bytes;
}

/* Makes the chunk's list of slabs in the pool, and its free_count, anew by the slabs' tags: those tagged POOL, and
 * those never used, are in the pool. Then tsi_chunk_settle lists the chunk, or closes it if these are all.
 * [fork child] */
static void chunk_rebuild(TsiSpace* s, uint32_t chunk, unsigned cls) {
    TsiChunk* record = &s->chunks[chunk];
    unsigned slabs = tsi_chunk_slab_count(s, cls);
    record->free_head = 0;
    record->free_count = (uint16_t)(slabs - record->fresh);
    record->listed = 0;
    if (tsi_parts_share(s, cls)) memset(record->parts, 0xff, sizeof record->parts);

    for (uint32_t n = 0; n < record->fresh; n++) {
        unsigned state = tsi_tag_state(tsi_load_relaxed(&tsi_slab(s, tsi_slab_id(chunk, n))->tag));
        if (tsi_parts_share(s, cls)) tsi_bit_set(record->parts, n, false);
        if (state == TSI_SLAB_POOL) tsi_chunk_add(s, chunk, cls, n);
    }
    tsi_chunk_settle(s, chunk, cls);
}

/* Returns true if a chunk of this class has slabs in the pool's lists: any class but none, LARGE and CONT.
 * [any thread, needs no lock] */
static bool serves_slabs(unsigned cls) { return cls != 0 && cls != TSI_CLASS_LARGE && cls != TSI_CLASS_CONT; }

/* Makes all lists of chunks and slabs in the pool anew from the tags. Chunks that vanished threads held are held no
 * more, and count as dirty, as their pages have not gone. [fork child] */
static void lists_rebuild(TsiSpace* s) {
    memset(s->with_free, 0, sizeof s->with_free);
    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        unsigned cls = tsi_chunk_class(s, chunk);
        if (s->chunks[chunk].held) { /* its pages have not gone */
            if (cls == 0) tsi_chunk_set_used(s, chunk, false);
            tsi_store_relaxed(&s->chunks[chunk].dirty, TSI_DIRTY);
            s->chunks[chunk].held = false;
        }
        if (serves_slabs(cls)) chunk_rebuild(s, chunk, cls);
    }
}

void tsi_space_rebuild(TsiSpace* s) {
    uint64_t bytes = 0;
    bool lost = false;
    s->quarantine.first = s->quarantine.last = 0; /* its slabs were given by their tags */
    tsi_store_relaxed(&s->quarantine.bytes, 0);
    tsi_store_relaxed(&s->giving, 0);  /* threads that were giving memory back have vanished */
    tsi_store_relaxed(&s->resting, 0); /* no freer sleeps here, and resting regions were given by their tags */

    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        unsigned cls = tsi_chunk_class(s, chunk);
        lost |= s->chunks[chunk].held;
        if (cls == TSI_CLASS_LARGE) bytes += tsi_large_bytes(s, chunk);
        else if (serves_slabs(cls)) bytes += chunk_look(s, chunk, cls, &lost);
    }
    if (lost) lists_rebuild(s);

    /* The stock, bits and sum, changes under the lock alone; no thread has a grant. */
    uint64_t kept = tsi_load_relaxed(&s->stock.bytes), budget = tsi_load_relaxed(&s->stock.budget);
    tsi_store_relaxed(&s->stock.left, (int64_t)budget - (int64_t)kept);
    tsi_store_relaxed(&s->committed_bytes, bytes + kept);
}
