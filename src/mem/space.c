/* space.c - see space.h. */
#include "mem/space.h"

static TsiClassTable shared_classes;

void tsi_space_process_init(void) {
    tsi_size_lut_init();
    tsi_class_table_init(&shared_classes, tsi_os.page_bytes, 0);
}

const TsiClassTable* tsi_space_default_classes(void) { return &shared_classes; }

enum {
    PAYLOAD_ALIGN = 1 << TSI_HUGE_SHIFT, /* because pairs of chunks are huge pages */
    COVER_CHUNKS = 64,                   /* chunks covered at once: 256 KiB of entries */
    AHEAD_PART = 4,
    AHEAD_PART_LIMITED = 32, /* where usable memory that is not used is missed elsewhere */
    AHEAD_LEAST = 4,         /* chunks beyond those asked for: this many and a quarter, or 1/32 where limited */
    WHOLE_BYTES = 64 << 20   /* largest payload that is usable from the start, with its tables */
};

bool tsi_space_cover(TsiSpace* s, uint32_t end) {
    uint32_t from = (uint32_t)(tsi_load_relaxed(&s->covered) >> TSI_CHUNK_SHIFT), to = from;
    if (end <= from) return true;
    while (to < end) to = s->chunk_count - to > COVER_CHUNKS ? to + COVER_CHUNKS : s->chunk_count;
    size_t bytes = tsi_align_up((size_t)(to - from) << TSI_ENTRIES_SHIFT, tsi_os.page_bytes);
    if (tsi_os.commit((uint8_t*)s->entries + ((size_t)from << TSI_ENTRIES_SHIFT), bytes) != 0) return false;
    /* release: pairs with the acquire of threads that ask which entries they may read */
    tsi_store_release(&s->covered, (uint64_t)to << TSI_CHUNK_SHIFT);
    return true;
}

/* Makes the whole pages that [p, p + bytes) touches usable: large pages hold pieces of several chunks. Returns false if
 * the system refuses. `usable` of the strip is the caller's to raise. [pool lock held, or space not shared yet] */
static bool commit(uint8_t* p, size_t bytes) {
    uintptr_t page = tsi_os.page_bytes, from = (uintptr_t)p & ~(page - 1);
    return tsi_os.commit((void*)from, tsi_align_up((uintptr_t)p + bytes, page) - from) == 0;
}

bool tsi_space_extend(TsiSpace* s, TsiStrip strip, uint32_t first, uint32_t n) {
    static const uint8_t shifts[TSI_STRIPS] = {TSI_CHUNK_SHIFT, TSI_META_SHIFT, TSI_COUNTS_SHIFT, TSI_REGIONS_SHIFT};
    uint8_t* bases[TSI_STRIPS] = {s->base, s->meta, s->counts, s->regions};
    uint8_t* base = bases[strip];
    unsigned shift = shifts[strip];
    if (tsi_os.strict_commit) return commit(base + ((size_t)first << shift), (size_t)n << shift);

    uint32_t from = s->usable[strip], end = first + n;
    if (end <= from) return true;

    /* A huge page is filled only if all of it may be written: chunks go by pairs. */
    if (s->config.huge_pages && end < s->chunk_count) end += end & 1;
    uint32_t ahead = (end / (s->limited ? AHEAD_PART_LIMITED : AHEAD_PART) + AHEAD_LEAST) & ~1u,
             to = s->chunk_count - end > ahead ? end + ahead : s->chunk_count;
    uint8_t* at = base + ((size_t)from << shift);
    if (!commit(at, (size_t)(to - from) << shift)) { /* a limit of the process is near */
        to = end;
        if (!commit(at, (size_t)(to - from) << shift)) return false;
    }
    s->usable[strip] = to;
    return true;
}

/* Sets base, words, meta, counts, regions, entries, chunks, bits and keys of the space as they lie if the payload
 * begins at address `at`; chunk_count is set. Maps and commits nothing. Returns the address behind the last table, at a
 * page. [no other user] */
static uintptr_t lay_out(TsiSpace* s, uintptr_t at) {
    size_t page = tsi_os.page_bytes, chunks = s->chunk_count;
    s->base = (uint8_t*)at;
    s->words = (uint8_t*)(at += chunks << TSI_CHUNK_SHIFT);
    s->meta = (uint8_t*)(at += page);
    s->counts = (uint8_t*)(at += tsi_align_up(chunks << TSI_META_SHIFT, page));
    s->regions = (uint8_t*)(at += chunks << TSI_COUNTS_SHIFT);
    s->entries = (TsiEntry*)(at += chunks << TSI_REGIONS_SHIFT);
    s->chunks = (TsiChunk*)(at += tsi_align_up(chunks << TSI_ENTRIES_SHIFT, page));
    s->bits = (TsiChunkBits*)(at += chunks * sizeof(TsiChunk));
    s->keys = (TsiChunkKey*)(at += (chunks + 63) / 64 * sizeof(TsiChunkBits));
    return tsi_align_up(at + chunks * sizeof(TsiChunkKey), page);
}

/* Makes all of a small allocator's mapping usable at once, and sets `usable` and `covered` to all: the system counts
 * mappings, and a program may have thousands of allocators. Returns false, with nothing changed, if the payload is
 * above WHOLE_BYTES, or writable memory is charged, limited or refused. [no other user] */
static bool commit_whole(TsiSpace* s) {
    if (s->payload_bytes > WHOLE_BYTES || s->limited) return false;
    if (tsi_os.commit(s->mapping, tsi_align_up(s->mapping_bytes, tsi_os.page_bytes)) != 0) return false;
    for (unsigned strip = 0; strip < TSI_STRIPS; strip++) s->usable[strip] = s->chunk_count;
    tsi_store_release(&s->covered, s->payload_bytes); /* pairs as in tsi_space_cover */
    return true;
}

bool tsi_space_init(TsiSpace* s, const TsiSpaceConfig* config) {
    _Static_assert(sizeof *s % sizeof(uint64_t) == 0, "whole words");
    tsi_clear(s, sizeof *s);
    tsi_lock_init(&s->lock, TSI_LOCK_POOL);
    s->config = *config;
    s->quarantine.most = config->quarantine_bytes;
    if (config->slab_min_bytes == 0) {
        s->classes = &shared_classes;
    } else {
        tsi_class_table_init(&s->own_classes, tsi_os.page_bytes, config->slab_min_bytes);
        s->classes = &s->own_classes;
    }

    uint64_t chunks = config->reserve_bytes >> TSI_CHUNK_SHIFT;
    if (chunks > TSI_CHUNKS_MAX) chunks = TSI_CHUNKS_MAX;
    s->nodes = config->numa_local ? tsi_os_node_count() : 1;
    if (s->nodes > TSI_NODES_MAX) s->nodes = TSI_NODES_MAX;
    s->chunk_count = (uint32_t)chunks;
    s->limited = tsi_os_counts_writable();
    /* A side that waits for huge pages becomes usable with the memory behind it: under a limit it would take half. */
    s->huge_apart = tsi_os.has_huge && !s->limited && !config->huge_pages;

    s->payload_bytes = chunks << TSI_CHUNK_SHIFT;
    s->mapping_bytes = lay_out(s, 0) + PAYLOAD_ALIGN;
    s->mapping = tsi_os.reserve(s->mapping_bytes);
    if (s->mapping == NULL) return false;
    uintptr_t end = lay_out(s, tsi_align_up((uintptr_t)s->mapping, PAYLOAD_ALIGN));
    if (!commit_whole(s)) {
        bool ok = tsi_os.commit(s->chunks, end - (uintptr_t)s->chunks) == 0 &&
                  tsi_os.commit(s->words, tsi_os.page_bytes) == 0;
        if (!ok || !tsi_space_cover(s, 1)) {
            tsi_space_destroy(s);
            return false;
        }
    }

    if (config->huge_pages) tsi_os.prefer_huge(s->base, s->payload_bytes);

    /* Sets the budget of kept memory; stock.h has the rest. */
    TsiStock* stock = &s->stock;
    stock->start = config->warm_bytes > INT64_MAX ? INT64_MAX : config->warm_bytes;
    stock->limit =
        tsi_space_gives_back(s) ? config->warm_limit_bytes : 0; /* otherwise every page stays, budget or not */
    if (stock->limit > INT64_MAX) stock->limit = INT64_MAX;
    tsi_store_relaxed(&stock->budget, stock->start);
    tsi_store_relaxed(&stock->left, (int64_t)stock->start);
    return true;
}

void tsi_space_destroy(TsiSpace* s) {
    if (s->mapping != NULL) tsi_os.unmap(s->mapping, s->mapping_bytes);
    s->mapping = NULL;
}

unsigned tsi_chunk_slab_count(const TsiSpace* s, unsigned cls) {
    if (cls == TSI_CLASS_CONT) return 1;
    unsigned n = (1u << TSI_CHUNK_SHIFT) / s->classes->c[cls].slab_bytes;
    return n < TSI_CHUNK_SLABS ? n : TSI_CHUNK_SLABS;
}

TsiPlaceResult tsi_space_locate(const TsiSpace* s, const void* p, TsiPlace* out) {
    uint64_t off = (uint64_t)((uintptr_t)p - (uintptr_t)s->base);
    if (off >= s->payload_bytes) return TSI_PLACE_FOREIGN;
    uint32_t chunk = (uint32_t)(off >> TSI_CHUNK_SHIFT);
    out->cls = tsi_chunk_class(s, chunk);
    if (out->cls == 0) return chunk < tsi_load_relaxed(&s->chunk_high) ? TSI_PLACE_GONE : TSI_PLACE_FOREIGN;

    const TsiClass* shape = &s->classes->c[out->cls];
    uint32_t in_chunk = (uint32_t)off & ((1u << TSI_CHUNK_SHIFT) - 1);
    uint32_t line = in_chunk >> shape->line_shift;
    uint32_t in_line = in_chunk & shape->line_mask;
    if (TSI_UNLIKELY(!tsi_line_has_slab(shape, line))) return TSI_PLACE_GONE;
    out->line_id = tsi_line_at(chunk, line);
    out->slab_id = tsi_slab_id(chunk, line >> shape->lines_log2);
    out->slot = tsi_class_slot(shape, in_line);
    if (TSI_UNLIKELY(out->cls == TSI_CLASS_LARGE)) {
        unsigned state = tsi_tag_state(tsi_load_acquire(&tsi_slab(s, out->slab_id)->tag)); /* pairs with slab_open */
        if (state == TSI_SLAB_POOL) return TSI_PLACE_GONE;
        if (state == TSI_SLAB_INSIDE) return TSI_PLACE_INTERIOR;
    }
    return tsi_class_starts(shape, in_line) ? TSI_PLACE_OK : TSI_PLACE_INTERIOR;
}

bool tsi_space_commit_counts(TsiSpace* s, uint32_t chunk) {
    TsiChunk* record = &s->chunks[chunk];
    /* acquire: pairs with the release below */
    if (TSI_LIKELY(tsi_load_acquire(&record->counts_committed) != 0)) return true;
    tsi_lock_take(&s->lock);
    bool ok = tsi_load_relaxed(&record->counts_committed) != 0;
    if (!ok && tsi_space_extend(s, TSI_STRIP_COUNTS, chunk, 1)) {
        tsi_store_release(&record->counts_committed, 1);
        ok = true;
    }
    tsi_lock_give(&s->lock);
    return ok;
}
