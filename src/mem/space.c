/*
 * space.c - reservation and pool of space.h.
 *
 * Chunks are found by first fit in a bitmap, so a process that shrinks uses low chunks again. Slabs of a chunk are
 * handed out from its free list first, then in address order.
 */
#include "mem/space.h"

#include "mem/chunk_pages.h"
#include "mem/parts.h"
#include "mem/region.h"
#include "mem/stock.h"
#include "mem/written.h"

#include <string.h>

static TsiClassTable shared_classes;

void tsi_space_process_init(void) {
    tsi_size_lut_init();
    tsi_class_table_init(&shared_classes, tsi_os.page_bytes, 0);
}

const TsiClassTable* tsi_space_default_classes(void) { return &shared_classes; }

static size_t tables_bytes(uint32_t chunks) {
    return (size_t)chunks * (sizeof(TsiChunk) + sizeof(TsiChunkKey)) + 2 * (((size_t)chunks + 63) / 64 * 8) + 64;
}

enum { COVER_CHUNKS = 64 }; /* at once, 256 KiB of entries */

/* Makes the entries of chunks below `end` readable; false without memory. Pool lock held, or nobody knows of the
 * space yet. */
static bool cover(TsiSpace* s, uint32_t end) {
    uint32_t from = (uint32_t)(tsi_load_relaxed(&s->covered) >> TSI_CHUNK_SHIFT), to = from;
    if (end <= from) return true;
    while (to < end) to = s->chunk_count - to > COVER_CHUNKS ? to + COVER_CHUNKS : s->chunk_count;
    size_t bytes = tsi_align_up((size_t)(to - from) << TSI_ENTRIES_SHIFT, tsi_os.page_bytes);
    if (tsi_os.commit((uint8_t*)s->entries + ((size_t)from << TSI_ENTRIES_SHIFT), bytes) != 0) return false;
    tsi_store_release(&s->covered, (uint64_t)to << TSI_CHUNK_SHIFT); /* pairs with who asks what it may read */
    return true;
}

static size_t payload_align(const TsiSpaceConfig* config) {
    return (size_t)1 << (config->huge_pages ? TSI_HUGE_SHIFT : TSI_CHUNK_SHIFT);
}

static size_t mapping_bytes_for(const TsiSpaceConfig* config, uint64_t chunks) {
    size_t page = tsi_os.page_bytes;
    size_t bytes = chunks << TSI_CHUNK_SHIFT;
    bytes += tsi_align_up(chunks << TSI_META_SHIFT, page);
    bytes += chunks << TSI_COUNTS_SHIFT;
    bytes += chunks << TSI_REGIONS_SHIFT;
    bytes += page + tsi_align_up(chunks << TSI_ENTRIES_SHIFT, page);
    bytes += tsi_align_up(tables_bytes((uint32_t)chunks), page);
    return bytes + payload_align(config);
}

static bool map_tables(TsiSpace* s) {
    uint8_t* at = (uint8_t*)s->entries + tsi_align_up((size_t)s->chunk_count << TSI_ENTRIES_SHIFT, tsi_os.page_bytes);
    size_t bytes = tsi_align_up(tables_bytes(s->chunk_count), tsi_os.page_bytes);
    if (tsi_os.commit(at, bytes) != 0 || tsi_os.commit(s->words, tsi_os.page_bytes) != 0) return false;
    s->chunks = (TsiChunk*)(void*)at;
    at += (size_t)s->chunk_count * sizeof(TsiChunk);
    s->used = (uint64_t*)(void*)tsi_align_up((uint64_t)(uintptr_t)at, 8);
    s->stocked = s->used + (s->chunk_count + 63) / 64;
    s->keys = (TsiChunkKey*)(void*)(s->stocked + (s->chunk_count + 63) / 64);
    return true;
}

bool tsi_space_init(TsiSpace* s, const TsiSpaceConfig* config) {
    _Static_assert(sizeof *s % sizeof(uint64_t) == 0, "whole words");
    tsi_clear(s, sizeof *s);
    tsi_lock_init(&s->lock, TSI_LOCK_POOL);
    s->config = *config;
    if (config->slab_min_bytes == 0) {
        s->classes = &shared_classes;
    } else {
        tsi_class_table_init(&s->own_classes, tsi_os.page_bytes, config->slab_min_bytes);
        s->classes = &s->own_classes;
    }
    uint64_t chunks = config->reserve_bytes >> TSI_CHUNK_SHIFT;
    if (chunks > TSI_CHUNKS_MAX) chunks = TSI_CHUNKS_MAX;
    s->nodes = !config->numa_local ? 1 : tsi_os.nodes < TSI_NODES_MAX ? tsi_os.nodes : TSI_NODES_MAX;
    s->mapping_bytes = mapping_bytes_for(config, chunks);
    s->mapping = tsi_os.reserve(s->mapping_bytes);
    if (s->mapping == NULL) return false;
    s->chunk_count = (uint32_t)chunks;
    s->payload_bytes = chunks << TSI_CHUNK_SHIFT;
    s->base = (uint8_t*)(uintptr_t)tsi_align_up((uint64_t)(uintptr_t)s->mapping, payload_align(config));
    s->words = s->base + s->payload_bytes;
    s->meta = s->words + tsi_os.page_bytes;
    s->counts = s->meta + tsi_align_up(chunks << TSI_META_SHIFT, tsi_os.page_bytes);
    s->regions = s->counts + (chunks << TSI_COUNTS_SHIFT);
    s->entries = (TsiEntry*)(void*)(s->regions + (chunks << TSI_REGIONS_SHIFT));
    if (!map_tables(s) || !cover(s, 1)) {
        tsi_os.unmap(s->mapping, s->mapping_bytes);
        s->mapping = NULL;
        return false;
    }
    if (config->huge_pages) tsi_os.prefer_huge(s->base, s->payload_bytes);
    tsi_stock_init(s);
    return true;
}

void tsi_space_destroy(TsiSpace* s) {
    if (s->mapping != NULL) tsi_os.unmap(s->mapping, s->mapping_bytes);
    s->mapping = NULL;
}

unsigned tsi_chunk_slab_count(const TsiSpace* s, unsigned cls) {
    if (cls == TSI_CLASS_LARGE || cls == TSI_CLASS_CONT) return 1;
    unsigned n = (1u << TSI_CHUNK_SHIFT) / s->classes->c[cls].slab_bytes;
    return n < TSI_CHUNK_SLABS ? n : TSI_CHUNK_SLABS;
}

TsiPlaceResult tsi_space_locate(const TsiSpace* s, const void* p, TsiPlace* out) {
    uint64_t off = (uint64_t)((uintptr_t)p - (uintptr_t)s->base);
    if (off >= s->payload_bytes) return TSI_PLACE_FOREIGN;
    uint32_t chunk = (uint32_t)(off >> TSI_CHUNK_SHIFT);
    out->cls = tsi_chunk_class(s, chunk);
    if (out->cls == 0) return chunk < tsi_load_relaxed(&s->chunk_high) ? TSI_PLACE_GONE : TSI_PLACE_FOREIGN;
    const TsiClass* c = &s->classes->c[out->cls];
    uint32_t in_chunk = (uint32_t)off & ((1u << TSI_CHUNK_SHIFT) - 1);
    uint32_t line = in_chunk >> c->line_shift;
    uint32_t in_line = in_chunk & c->line_mask;
    if (TSI_UNLIKELY(!tsi_line_has_slab(c, line))) return TSI_PLACE_GONE;
    out->line_id = chunk << 10 | line;
    out->slab_id = chunk << 8 | line >> c->lines_log2;
    out->slot = tsi_class_slot(c, in_line);
    return tsi_class_starts(c, in_line) ? TSI_PLACE_OK : TSI_PLACE_INTERIOR;
}

/* ---- chunks ---- */

static bool chunk_is_used(const TsiSpace* s, uint32_t chunk) { return s->used[chunk >> 6] >> (chunk & 63) & 1; }

static void chunk_set_used(TsiSpace* s, uint32_t first, uint32_t n, bool used) {
    for (uint32_t i = first; i < first + n; i++) {
        if (used) s->used[i >> 6] |= 1ull << (i & 63);
        else s->used[i >> 6] &= ~(1ull << (i & 63));
    }
    if (!used && first < s->used_hint) s->used_hint = first;
    if (used && first + n > tsi_load_relaxed(&s->chunk_high)) tsi_store_relaxed(&s->chunk_high, first + n);
}

/* First fit of n free chunks whose first address is aligned; chunk_count when there is none. */
static uint32_t chunk_find(TsiSpace* s, uint32_t n, size_t align) {
    while (s->used_hint < s->chunk_count && chunk_is_used(s, s->used_hint)) {
        s->used_hint = s->used[s->used_hint >> 6] == ~0ull ? (s->used_hint | 63) + 1 : s->used_hint + 1;
    }
    uint32_t step = align >> TSI_CHUNK_SHIFT > 1 ? (uint32_t)(align >> TSI_CHUNK_SHIFT) : 1;
    uint32_t skew = (uint32_t)(((uintptr_t)s->base >> TSI_CHUNK_SHIFT) & (step - 1));
    uint32_t first = s->used_hint;
    first += (step - ((first + skew) & (step - 1))) & (step - 1);
    while (n <= s->chunk_count && first <= s->chunk_count - n) {
        uint32_t i = 0;
        while (i < n && !chunk_is_used(s, first + i)) i++;
        if (i == n) return first;
        first += (i / step + 1) * step;
    }
    return s->chunk_count;
}

/* Bookkeeping of n chunks, in one call. With large pages that of neighbours shares pages: round outwards. */
static bool meta_commit(TsiSpace* s, uint32_t first, uint32_t n) {
    uintptr_t page = tsi_os.page_bytes, from = (uintptr_t)tsi_meta_of(s, first) & ~(page - 1);
    size_t bytes = tsi_align_up((uintptr_t)tsi_meta_of(s, first + n), page) - from;
    if (tsi_os.commit((void*)from, bytes) != 0) return false;
    for (uint32_t i = first; i < first + n; i++) s->chunks[i].meta_committed = 1;
    return true;
}

/* A wish, once for as long as the chunks stay with the node; before they are touched. */
static void chunks_prefer_node(TsiSpace* s, uint32_t first, uint32_t n, unsigned node) {
    if (s->nodes == 1) return;
    bool asked = true;
    for (uint32_t i = first; i < first + n; i++) {
        asked = asked && s->chunks[i].asked_node == node + 1;
        s->chunks[i].node = (uint8_t)(node % s->nodes);
        s->chunks[i].asked_node = (uint8_t)(node + 1);
    }
    if (asked) return;
    tsi_os.prefer_node(s->base + ((size_t)first << TSI_CHUNK_SHIFT), (size_t)n << TSI_CHUNK_SHIFT, node);
    if (tsi_os.page_bytes <= TSI_META_LINES)
        tsi_os.prefer_node(tsi_meta_of(s, first), (size_t)n << TSI_META_SHIFT, node);
}

/* A huge page is filled only where all of it may be written: the neighbour of a chunk is committed with it. */
static bool payload_commit(TsiSpace* s, uint32_t chunk) {
    uint32_t first = chunk, n = 1, pair = 1u << (TSI_HUGE_SHIFT - TSI_CHUNK_SHIFT);
    if (s->config.huge_pages && (chunk ^ (pair - 1)) < s->chunk_count &&
        !s->chunks[chunk ^ (pair - 1)].payload_committed) {
        first = chunk & ~(pair - 1);
        n = pair;
    }
    if (tsi_os.commit(s->base + ((size_t)first << TSI_CHUNK_SHIFT), (size_t)n << TSI_CHUNK_SHIFT) != 0) return false;
    for (uint32_t i = first; i < first + n; i++) s->chunks[i].payload_committed = 1;
    return true;
}

/* Commits bookkeeping and payload of a chunk as far as it is not; false leaves it as it was. */
static bool chunk_commit(TsiSpace* s, uint32_t chunk, bool payload) {
    const TsiChunk* k = &s->chunks[chunk];
    if (!k->meta_committed && !meta_commit(s, chunk, 1)) return false;
    return !payload || k->payload_committed || payload_commit(s, chunk);
}

static void chunk_link(TsiSpace* s, uint32_t chunk, unsigned cls) {
    TsiChunk* k = &s->chunks[chunk];
    k->prev = 0;
    uint32_t* head = &s->with_free[k->node][cls];
    k->next = *head;
    if (k->next != 0) s->chunks[k->next - 1].prev = chunk + 1;
    *head = chunk + 1;
    k->listed = 1;
}

static void chunk_unlink(TsiSpace* s, uint32_t chunk, unsigned cls) {
    TsiChunk* k = &s->chunks[chunk];
    if (k->prev != 0) s->chunks[k->prev - 1].next = k->next;
    else s->with_free[k->node][cls] = k->next;
    if (k->next != 0) s->chunks[k->next - 1].prev = k->prev;
    k->listed = 0;
}

/* Tags and generations belong to slab ids, remote words and counts to lines, and a class decides which
 * slab a line is part of. So when a chunk changes class every slab starts above whatever any
 * slab of the chunk has used: no old word and no old handle can match a new one. */
static void floors_raise(TsiSpace* s, uint32_t chunk, uint32_t slabs) {
    TsiChunk* k = &s->chunks[chunk];
    for (uint32_t i = 0; i < slabs; i++) {
        TsiSlab* b = tsi_slab(s, chunk << 8 | i);
        uint32_t seq = tsi_tag_seq(tsi_load_relaxed(&b->tag)), gen = tsi_load_relaxed(&b->gen_base);
        if (seq > k->seq_floor) k->seq_floor = seq;
        if (gen > tsi_load_relaxed(&k->gen_floor)) tsi_store_relaxed(&k->gen_floor, gen);
    }
}

static void floors_apply(TsiSpace* s, uint32_t slab_id) {
    TsiChunk* k = &s->chunks[slab_id >> 8];
    TsiSlab* b = tsi_slab(s, slab_id);
    if (tsi_tag_seq(tsi_load_relaxed(&b->tag)) < k->seq_floor)
        tsi_store_relaxed(&b->tag, tsi_tag(k->seq_floor, 0, TSI_SLAB_POOL));
    uint32_t gen = tsi_load_relaxed(&k->gen_floor);
    if (tsi_load_relaxed(&b->gen_base) < gen) tsi_store_relaxed(&b->gen_base, gen);
}


/* They stay when the chunk loses its class: what they lead to is nobody's by then. */
static void entries_set(TsiSpace* s, uint32_t chunk, unsigned cls) {
    if (tsi_load_relaxed(&s->chunks[chunk].entries_class) == cls) return;
    bool region = tsi_class_is_region(cls);
    TsiEntry* at = tsi_entries_of(s, chunk);
    unsigned shift = region ? tsi_log2(s->classes->c[cls].slab_bytes) : s->classes->c[cls].line_shift;
    const uint8_t* first = region ? (uint8_t*)tsi_region(s, chunk << 8) : (uint8_t*)tsi_line(s, chunk << 10);
    uint32_t entry = (uint32_t)((size_t)(first - s->words) / sizeof(TsiLine)) | (region ? TSI_ENTRY_REGION : 0);
    uint32_t end = region ? tsi_chunk_slab_count(s, cls) << (shift - TSI_LINE_MIN_SHIFT) : TSI_CHUNK_LINES;
    for (uint32_t kib = 0; kib < 1u << (TSI_CHUNK_SHIFT - TSI_LINE_MIN_SHIFT); kib++)
        /* release: pairs with the acquire in tsi_free_fast: the words are committed */
        tsi_store_release(&at[kib], kib < end ? entry + (kib >> (shift - TSI_LINE_MIN_SHIFT)) : 0);
    tsi_store_relaxed(&s->chunks[chunk].entries_class, (uint8_t)cls);
}

static void set_class(TsiSpace* s, uint32_t chunk, unsigned cls) {
    if (cls != 0 && cls != TSI_CLASS_LARGE && cls != TSI_CLASS_CONT) entries_set(s, chunk, cls);
    /* release: pairs with tsi_chunk_class; the bookkeeping is committed before the class shows */
    uint32_t low = tsi_class_is_region(cls) ? TSI_KEY_REGION : s->classes->c[cls].line_shift;
    tsi_store_release(&s->keys[chunk], (uint32_t)(cls * sizeof(TsiClass)) | low);
}

/* One whose pages are kept, else the first; chunk_count when there is none, or no memory for regions. */
static uint32_t chunk_choose(TsiSpace* s, unsigned cls, unsigned node) {
    bool region = tsi_class_is_region(cls);
    uint32_t chunk = tsi_stock_chunk_locked(s, cls, node);
    if (chunk != TSI_STOCK_NONE && (!region || tsi_regions_prepare(s, chunk, cls))) return chunk;
    for (;;) {
        chunk = chunk_find(s, 1, 1);
        if (chunk == s->chunk_count || !region || tsi_regions_prepare(s, chunk, cls)) return chunk;
        if (s->chunks[chunk].region_class == 0 || !cover(s, chunk + 1)) return s->chunk_count; /* no memory */
        /* Set aside for good: a thread was stopped while it freed in it, many lives ago. */
        chunk_set_used(s, chunk, 1, true);
    }
}

enum { WORDS_KEPT = 2 };

static void words_kept(TsiSpace* s, TsiChunk* k, bool kept) {
    s->words_kept += (uint32_t)kept - (uint32_t)k->meta_kept;
    k->meta_kept = kept;
}

static bool chunk_open(TsiSpace* s, unsigned cls, unsigned node) {
    uint32_t chunk = chunk_choose(s, cls, node);
    if (chunk == s->chunk_count) return false;
    chunks_prefer_node(s, chunk, 1, node);
    if (!cover(s, chunk + 1)) return false;
    if (!chunk_commit(s, chunk, !tsi_os.strict_commit)) return false;
    TsiChunk* k = &s->chunks[chunk];
    k->free_head = 0;
    k->fresh = 0;
    k->free_count = (uint16_t)tsi_chunk_slab_count(s, cls);
    if (tsi_parts_share(s, cls)) memset(k->parts, 0xff, sizeof k->parts);
    k->last_class = (uint8_t)cls;
    if (k->meta_kept) words_kept(s, k, false);
    tsi_store_relaxed(&s->open_chunks, tsi_load_relaxed(&s->open_chunks) + 1);
    if (TSI_UNLIKELY(k->huge)) tsi_space_avoid_huge(s, chunk);
    chunk_set_used(s, chunk, 1, true);
    chunk_link(s, chunk, cls);
    set_class(s, chunk, cls);
    return true;
}

static bool has_stock(const TsiChunk* k) { return (k->stock[0] | k->stock[1] | k->stock[2] | k->stock[3]) != 0; }

/* Gives the bookkeeping of a chunk without a class back, unless its pages are kept. Old words and handles are judged
 * by the floors. */
static void words_give(TsiSpace* s, uint32_t chunk) {
    TsiChunk* k = &s->chunks[chunk];
    words_kept(s, k, false);
    /* Twice as many as the kept pages would fill, and some more: kept pages may be scattered over every chunk. */
    if (has_stock(k) && s->words_kept < (tsi_load_relaxed(&s->stock.bytes) >> (TSI_CHUNK_SHIFT - 1)) + WORDS_KEPT) {
        words_kept(s, k, true);
        return;
    }
    if (!has_stock(k)) tsi_space_mark_gone(k);
    tsi_chunk_leave(s, chunk);
}

static void chunk_close(TsiSpace* s, uint32_t chunk) {
    tsi_store_relaxed(&s->open_chunks, tsi_load_relaxed(&s->open_chunks) - 1);
    set_class(s, chunk, 0);
    floors_raise(s, chunk, s->chunks[chunk].fresh);
    words_give(s, chunk);
    chunk_set_used(s, chunk, 1, false);
}

void tsi_space_hold_locked(TsiSpace* s, uint32_t chunk) {
    TSI_HOLDS(&s->lock);
    unsigned cls = tsi_chunk_class(s, chunk);
    s->chunks[chunk].held = true;
    if (cls == 0) chunk_set_used(s, chunk, 1, true);
    else if (s->chunks[chunk].listed) chunk_unlink(s, chunk, cls);
}

/* What follows where the last slab of a chunk may have come back. */
static void chunk_settle(TsiSpace* s, uint32_t chunk, unsigned cls) {
    TsiChunk* k = &s->chunks[chunk];
    if (k->free_count == tsi_chunk_slab_count(s, cls)) {
        if (k->listed) chunk_unlink(s, chunk, cls);
        chunk_close(s, chunk);
    } else if (k->listed != (k->free_count != 0)) {
        if (k->listed) chunk_unlink(s, chunk, cls);
        else chunk_link(s, chunk, cls);
    }
}

void tsi_space_settle_locked(TsiSpace* s, uint32_t chunk) {
    TSI_HOLDS(&s->lock);
    if (!s->chunks[chunk].held) chunk_settle(s, chunk, tsi_chunk_class(s, chunk));
}

void tsi_space_unhold_locked(TsiSpace* s, uint32_t chunk) {
    TSI_HOLDS(&s->lock);
    unsigned cls = tsi_chunk_class(s, chunk);
    s->chunks[chunk].held = false;
    if (cls == 0) {
        words_give(s, chunk);
        chunk_set_used(s, chunk, 1, false);
    } else if (cls != TSI_CLASS_LARGE && cls != TSI_CLASS_CONT) {
        chunk_settle(s, chunk, cls);
    }
}

/* ---- pool ---- */

static bool slab_commit(TsiSpace* s, const TsiClass* c, uint32_t id) {
    /* No parts there. */
    if (tsi_os.strict_commit && tsi_os.commit(tsi_slab_payload(s, c, id), c->slab_bytes) != 0) return false;
    if (s->config.prefault) {
        volatile uint8_t* p = tsi_slab_payload(s, c, id);
        for (size_t i = 0; i < c->slab_bytes; i += tsi_os.page_bytes) p[i] = 0;
    }
    return true;
}

bool tsi_space_is_over(TsiSpace* s, size_t bytes) {
    return s->config.max_bytes != 0 && tsi_load_relaxed(&s->committed_bytes) + bytes > s->config.max_bytes;
}

static void take_counted(TsiSpace* s, unsigned cls, unsigned lane) {
    bool fast = tsi_lock_take_probed(&s->lock);
    cls = tsi_class_row(cls);
    /* Shared mode adds under stripes. */
    tsi_add_relaxed(fast ? &s->lock_fast[cls][lane] : &s->lock_contended[cls][lane], 1);
}

static unsigned node_here(const TsiSpace* s) { return s->nodes == 1 ? 0 : tsi_os.node() % TSI_OS_NODES_MAX; }

/* A chunk with pool slabs, as chunk + 1: one of the node, or a new one, or one of any node when there is no room.
 * Otherwise 0. */
static uint32_t chunk_with_free(TsiSpace* s, unsigned cls, unsigned node) {
    const uint32_t* own = &s->with_free[node % s->nodes][cls];
    if (*own != 0 || chunk_open(s, cls, node)) return *own;
    for (unsigned other = 0; other < s->nodes; other++)
        if (s->with_free[other][cls] != 0) return s->with_free[other][cls];
    return 0;
}

TsiTaken tsi_space_take(TsiSpace* s, unsigned cls, unsigned lane, uint32_t* slab_id) {
    const TsiClass* c = &s->classes->c[cls];
    unsigned node = node_here(s);
    take_counted(s, cls, lane);
    bool over = tsi_space_is_over(s, c->slab_bytes); /* here, where it decides: a moment later it may be otherwise */
    uint32_t from = !over ? chunk_with_free(s, cls, node) : 0;
    TsiTaken taken = TSI_TAKEN_NOT;
    if (over) *slab_id = TSI_SPACE_OVER;
    if (from != 0) {
        uint32_t chunk = from - 1;
        TsiChunk* k = &s->chunks[chunk];
        bool part = tsi_parts_share(s, cls);
        uint32_t id = part                ? chunk << 8 | tsi_parts_next(k)
                      : k->free_head != 0 ? k->free_head - 1
                                          : chunk << 8 | k->fresh;
        if (slab_commit(s, c, id)) {
            uint32_t slab = id & (TSI_CHUNK_SLABS - 1);
            if (!part && slab != k->fresh) k->free_head = tsi_slab(s, id)->next;
            /* More than one: a half that was never used is on its way with its page. */
            for (; k->fresh <= slab; k->fresh++) {
                floors_apply(s, chunk << 8 | k->fresh);
                tsi_written_slab(s, cls, chunk << 8 | k->fresh);
            }
            if (--k->free_count == 0) chunk_unlink(s, chunk, cls);
            size_t kept = part ? tsi_parts_take_locked(s, id)
                               : tsi_stock_take_locked(s, tsi_slab_payload(s, c, id), c->slab_bytes);
            tsi_add_relaxed(&s->committed_bytes, c->slab_bytes - kept);
            taken = 2 * kept >= c->slab_bytes ? TSI_TAKEN_KEPT : TSI_TAKEN_FRESH;
            *slab_id = id;
        }
    }
    tsi_lock_give_probed(&s->lock);
    return taken;
}

/* ---- huge pages ---- */

void tsi_space_avoid_huge(TsiSpace* s, uint32_t chunk) {
    s->chunks[chunk].huge = false;
    if (!s->config.huge_pages)
        tsi_os.avoid_huge(s->base + ((size_t)chunk << TSI_CHUNK_SHIFT), (size_t)1 << TSI_CHUNK_SHIFT);
}

/* The first of two free chunks that a huge page would fill, with nothing of the stock in them; chunk_count when there
 * is none. */
static uint32_t pair_find(const TsiSpace* s) {
    uint32_t first = s->used_hint;
    if ((((uintptr_t)s->base >> TSI_CHUNK_SHIFT) + first) % 2 != 0) first++;
    for (; first + 2 <= s->chunk_count; first += 2) {
        uint64_t both = 3ull << (first & 63), taken = s->used[first >> 6] | s->stocked[first >> 6];
        if ((first & 63) == 63)
            both = 1ull << 63, taken |= (s->used[(first >> 6) + 1] | s->stocked[(first >> 6) + 1]) << 63;
        if ((taken & both) == 0) return first;
    }
    return s->chunk_count;
}

/* Where small pages were, tables for them are left behind, and no huge page comes: the addresses are mapped anew. */
static bool pair_ask(TsiSpace* s, uint32_t first) {
    uint8_t* p = s->base + ((size_t)first << TSI_CHUNK_SHIFT);
    size_t bytes = (size_t)2 << TSI_CHUNK_SHIFT;
    if (s->chunks[first].huge && s->chunks[first + 1].huge) return true;
    bool had = s->chunks[first].payload_committed || s->chunks[first + 1].payload_committed;
    for (uint32_t i = first; had && i < first + 2; i++) s->chunks[i].payload_committed = s->chunks[i].asked_node = 0;
    if (had && tsi_os.purge(p, bytes, TSI_PURGE_UNCOMMIT) != 0) return false;
    for (uint32_t i = first; i < first + 2; i++) {
        tsi_store_relaxed(&s->chunks[i].dirty, 0);
        if (!s->chunks[i].payload_committed && !payload_commit(s, i)) return false;
    }
    tsi_os.prefer_huge(p, bytes);
    s->chunks[first].huge = s->chunks[first + 1].huge = true;
    return true;
}

bool tsi_space_take_huge(TsiSpace* s, unsigned lane, uint32_t slab_ids[2]) {
    const TsiClass* c = &s->classes->c[TSI_CLASS_HUGE];
    unsigned node = node_here(s);
    take_counted(s, TSI_CLASS_HUGE, lane);
    bool over = tsi_space_is_over(s, 2 * (size_t)c->slab_bytes);
    uint32_t first = over ? s->chunk_count : pair_find(s);
    bool ok = first != s->chunk_count && cover(s, first + 2);
    if (over) slab_ids[0] = TSI_SPACE_OVER;
    for (uint32_t i = first; ok && i < first + 2; i++)
        ok = chunk_commit(s, i, false) && tsi_regions_prepare(s, i, TSI_CLASS_HUGE);
    ok = ok && pair_ask(s, first);
    if (ok) {
        chunks_prefer_node(s, first, 2, node);
        chunk_set_used(s, first, 2, true);
        for (uint32_t i = first; i < first + 2; i++) {
            TsiChunk* k = &s->chunks[i];
            k->free_head = k->free_count = 0;
            k->listed = 0;
            k->fresh = 1;
            k->last_class = TSI_CLASS_HUGE;
            if (k->meta_kept) words_kept(s, k, false);
            tsi_store_relaxed(&s->open_chunks, tsi_load_relaxed(&s->open_chunks) + 1);
            slab_ids[i - first] = i << 8;
            floors_apply(s, i << 8);
            tsi_written_slab(s, TSI_CLASS_HUGE, i << 8);
            set_class(s, i, TSI_CLASS_HUGE);
        }
        tsi_add_relaxed(&s->committed_bytes, 2 * (uint64_t)c->slab_bytes);
    }
    tsi_lock_give_probed(&s->lock);
    return ok;
}

/* ---- giving back ---- */

static void give(TsiSpace* s, const uint32_t* slab_ids, unsigned n, bool keep) {
    uint64_t bytes = 0;
    tsi_lock_take(&s->lock);
    for (unsigned i = 0; i < n; i++) {
        /* Of those that are kept the first are taken first. */
        uint32_t id = slab_ids[keep ? n - 1 - i : i], chunk = id >> 8;
        unsigned cls = tsi_chunk_class(s, chunk);
        const TsiClass* c = &s->classes->c[cls];
        TsiChunk* k = &s->chunks[chunk];
        TsiSlab* b = tsi_slab(s, id);
        tsi_store_relaxed(&b->tag, tsi_tag(tsi_tag_seq(tsi_load_relaxed(&b->tag)), 0, TSI_SLAB_POOL));
        if (keep) tsi_stock_put_locked(s, tsi_slab_payload(s, c, id), c->slab_bytes);
        else bytes += c->slab_bytes;
        if (tsi_parts_share(s, cls)) {
            tsi_parts_in(k, id & (TSI_CHUNK_SLABS - 1));
        } else {
            b->next = k->free_head;
            k->free_head = id + 1;
        }
        k->free_count++;
        if (keep && k->listed && k->prev != 0) chunk_unlink(s, chunk, cls); /* to the head of its list */
        if (!k->held) chunk_settle(s, chunk, cls);
    }
    if (bytes != 0) tsi_sub_relaxed(&s->committed_bytes, bytes);
    tsi_lock_give(&s->lock);
}

void tsi_space_give(TsiSpace* s, const uint32_t* slab_ids, unsigned n) { give(s, slab_ids, n, false); }
void tsi_space_keep(TsiSpace* s, const uint32_t* slab_ids, unsigned n) { give(s, slab_ids, n, true); }

/* ---- large objects ---- */

/* Whole chunks where commits cost nothing, and bookkeeping that nobody needs of those behind the first: neighbours
 * then make one mapping for the kernel, which counts them. */
static bool large_commit(TsiSpace* s, uint32_t first, uint32_t n, size_t bytes) {
    uint8_t* payload = s->base + ((size_t)first << TSI_CHUNK_SHIFT);
    if (!chunk_commit(s, first, false)) return false;
    if (tsi_os.strict_commit) return tsi_os.commit(payload, bytes) == 0;
    bool meta = true;
    for (uint32_t i = 1; i < n; i++) meta = meta && s->chunks[first + i].meta_committed;
    if (!meta && !meta_commit(s, first, n)) return false;
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
    unsigned node = node_here(s);
    take_counted(s, TSI_CLASS_LARGE, lane);
    bool over = tsi_space_is_over(s, bytes);
    uint32_t n = (uint32_t)chunks, first = chunks <= s->chunk_count ? chunk_find(s, n, align) : s->chunk_count;
    bool ok = first != s->chunk_count && !over;
    if (over) *slab_id = TSI_SPACE_OVER;
    if (ok) chunks_prefer_node(s, first, n, node);
    ok = ok && cover(s, first + n) && large_commit(s, first, n, bytes);
    if (ok) {
        chunk_set_used(s, first, n, true);
        tsi_store_relaxed(&tsi_slab(s, first << 8)->extra, (uint32_t)(bytes >> 10));
        floors_apply(s, first << 8);
        tsi_written_slab(s, TSI_CLASS_LARGE, first << 8);
        for (uint32_t i = 1; i < n; i++) set_class(s, first + i, TSI_CLASS_CONT);
        s->chunks[first].run = n;
        tsi_add_relaxed(&s->committed_bytes,
                        bytes - tsi_stock_take_locked(s, s->base + ((size_t)first << TSI_CHUNK_SHIFT), bytes));
        for (uint32_t i = first; i < first + n; i++)
            if (TSI_UNLIKELY(s->chunks[i].huge)) tsi_space_avoid_huge(s, i);
        set_class(s, first, TSI_CLASS_LARGE);
        *slab_id = first << 8;
    }
    tsi_lock_give_probed(&s->lock);
    return ok;
}

enum { LARGE_LEFT = 64 };

/* Gives back the bookkeeping of chunks that nobody uses, where more than `most` of them have some. Bookkeeping of
 * large objects stays until then: who frees one mostly takes the next. */
static void leave_unused(TsiSpace* s, uint32_t most) {
    uint32_t n = 0;
    for (unsigned turn = 0; turn < 2 && (turn == 0 || n > most); turn++) {
        for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
            if (tsi_chunk_has_left(s, chunk)) continue; /* a hint */
            tsi_lock_take(&s->lock);
            bool unused = !chunk_is_used(s, chunk) && !has_stock(&s->chunks[chunk]);
            n += unused && turn == 0;
            if (unused && turn == 1) tsi_chunk_leave(s, chunk);
            tsi_lock_give(&s->lock);
        }
    }
}

uint64_t tsi_space_give_large(TsiSpace* s, uint32_t slab_id, bool keep) {
    uint32_t first = slab_id >> 8, n = s->chunks[first].run;
    uint8_t* payload = s->base + ((size_t)first << TSI_CHUNK_SHIFT);
    size_t bytes = tsi_slab_bytes(s, TSI_CLASS_LARGE, slab_id), kept = 0;
    if (keep && tsi_stock_learns(s)) {
        kept = tsi_stock_reserve(s, bytes, tsi_os.page_bytes);
        if (kept < bytes) tsi_stock_note_gone(s, bytes - kept);
    }
    if (kept < bytes) tsi_space_purge_range(s, TSI_CLASS_LARGE, payload + kept, bytes - kept, true);
    tsi_lock_take(&s->lock);
    TsiSlab* b = tsi_slab(s, slab_id);
    tsi_store_relaxed(&b->tag, tsi_tag(tsi_tag_seq(tsi_load_relaxed(&b->tag)), 0, TSI_SLAB_POOL));
    floors_raise(s, first, 1);
    if (kept != 0) tsi_stock_put_locked(s, payload, kept);
    tsi_sub_relaxed(&s->committed_bytes, bytes - kept);
    for (uint32_t i = first; i < first + n; i++) {
        set_class(s, i, 0);
        s->chunks[i].last_class = TSI_CLASS_LARGE;
        if (s->chunks[i].held) continue; /* settled as it is given free */
        if (s->chunks[i].meta_kept) words_give(s, i);
        else if (!has_stock(&s->chunks[i])) tsi_space_mark_gone(&s->chunks[i]);
        chunk_set_used(s, i, 1, false);
    }
    bool look = ++s->large_gives % LARGE_LEFT == 0;
    tsi_lock_give(&s->lock);
    if (look) leave_unused(s, LARGE_LEFT);
    return bytes - kept;
}

void tsi_space_trim(TsiSpace* s) { leave_unused(s, 0); }

static uint64_t chunk_rebuild(TsiSpace* s, uint32_t chunk, unsigned cls) {
    TsiChunk* k = &s->chunks[chunk];
    uint64_t bytes = 0;
    unsigned slabs = tsi_chunk_slab_count(s, cls);
    k->free_head = 0;
    k->free_count = (uint16_t)(slabs - k->fresh);
    k->listed = 0;
    if (tsi_parts_share(s, cls)) memset(k->parts, 0xff, sizeof k->parts);
    for (uint32_t n = 0; n < k->fresh; n++) {
        TsiSlab* b = tsi_slab(s, chunk << 8 | n);
        unsigned state = tsi_tag_state(tsi_load_relaxed(&b->tag));
        if (state != TSI_SLAB_POOL) {
            if (state != TSI_SLAB_RETIRED) bytes += s->classes->c[cls].slab_bytes;
            if (tsi_parts_share(s, cls)) tsi_parts_out(k, n);
            continue;
        }
        b->next = k->free_head;
        k->free_head = (chunk << 8 | n) + 1;
        k->free_count++;
    }
    chunk_settle(s, chunk, cls);
    return bytes;
}

void tsi_space_rebuild(TsiSpace* s) {
    uint64_t bytes = 0;
    memset(s->with_free, 0, sizeof s->with_free);
    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        unsigned cls = tsi_chunk_class(s, chunk);
        if (s->chunks[chunk].held) { /* its pages are here yet */
            if (cls == 0) chunk_set_used(s, chunk, 1, false);
            tsi_store_relaxed(&s->chunks[chunk].dirty, TSI_DIRTY);
            s->chunks[chunk].held = false;
        }
        if (cls == TSI_CLASS_LARGE) bytes += tsi_slab_bytes(s, cls, chunk << 8);
        else if (cls != 0 && cls != TSI_CLASS_CONT) bytes += chunk_rebuild(s, chunk, cls);
    }
    tsi_stock_rebuild(s);
    tsi_store_relaxed(&s->committed_bytes, bytes + tsi_load_relaxed(&s->stock.bytes));
}

bool tsi_space_commit_counts(TsiSpace* s, uint32_t chunk) {
    TsiChunk* k = &s->chunks[chunk];
    /* acquire: pairs with the release below */
    if (TSI_LIKELY(tsi_load_acquire(&k->counts_committed) != 0)) return true;
    tsi_lock_take(&s->lock);
    bool ok = tsi_load_relaxed(&k->counts_committed) != 0;
    if (!ok && tsi_os.commit(s->counts + ((size_t)chunk << TSI_COUNTS_SHIFT), (size_t)1 << TSI_COUNTS_SHIFT) == 0) {
        tsi_store_release(&k->counts_committed, 1);
        ok = true;
    }
    tsi_lock_give(&s->lock);
    return ok;
}
