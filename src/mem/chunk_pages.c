/*
 * chunk_pages.c - pages of the bookkeeping: which are written, and how they go back.
 *
 * All bookkeeping of a chunk goes when no slab of it is in use: words of slabs and lines, records and maps of regions,
 * counts of handles, entries. Old addresses and handles are judged by the chunk's floors (chunk.h), and zeros match
 * none of them: a tag of 0 is in the pool, no remote word has a seq of 0, and a region's generation 0 is nobody's. Two
 * things outlive a slab, and keep their pages until they are over:
 *
 *   G1  A slab's link in an inbox. The thread that gives the pages back claims the links of all of the chunk's slabs,
 *       like a freer that pushes (heap/line.c, T3): so none is in an inbox, and a freer about to push claims its link
 *       before that, which keeps the page, or after it.
 *   G2  A freer inside of a region or late in it (mem/region.h, R2): generations start over, and it would meet its own.
 *       The word of each region is exchanged for generation 0, which nobody enters, while nobody is inside; then nobody
 *       is late either, and nobody will be.
 */
#include "mem/chunk_pages.h"

#include "mem/region.h"

/* ---- what is written ---- */

/* Returns the pages of the system that hold bytes [from, to) of a chunk's bookkeeping, from < to, a bit each, counted
 * from the bookkeeping's start. [any thread, needs no lock] */
static uint32_t meta_bits(size_t from, size_t to) {
    unsigned shift = tsi_log2(tsi_os.page_bytes);
    return (uint32_t)((2ull << ((to - 1) >> shift)) - (1ull << (from >> shift)));
}

void tsi_written_slab(TsiSpace* s, unsigned cls, uint32_t slab_id) {
    TsiChunk* chunk = &s->chunks[tsi_slab_chunk(slab_id)];
    size_t slab = tsi_slab_number(slab_id), lines = (size_t)1 << s->classes->c[cls].lines_log2;
    size_t from = slab * lines * sizeof(TsiLine), to = from + lines * sizeof(TsiLine);
    uint32_t bits = meta_bits(slab * sizeof(TsiSlab), (slab + 1) * sizeof(TsiSlab));
    if (tsi_class_is_region(cls)) { /* a KiB has as many map bytes as a line has */
        size_t record = TSI_REGIONS_MAP + slab * sizeof(TsiRegion);
        uint32_t own = meta_bits(from, to) | meta_bits(record, record + sizeof(TsiRegion));
        tsi_store_relaxed(&chunk->region_pages, tsi_load_relaxed(&chunk->region_pages) | own);
    } else {
        bits |= meta_bits(TSI_META_LINES + from, TSI_META_LINES + to);
    }
    tsi_store_relaxed(&chunk->meta_pages, tsi_load_relaxed(&chunk->meta_pages) | bits);
}

void tsi_written_counts(TsiSpace* s, uint32_t slab_id) {
    const TsiClass* shape = tsi_slab_class(s, slab_id);
    unsigned shift = tsi_log2(tsi_os.page_bytes);
    size_t line_bytes = ((size_t)1 << TSI_COUNTS_SHIFT) / TSI_CHUNK_LINES;
    size_t from = tsi_line_number(tsi_first_line(shape, slab_id)) * line_bytes,
           to = from + (line_bytes << shape->lines_log2);
    /* a sum for readers of statistics: nothing is ordered by it */
    for (size_t page = from >> shift; page << shift < to; page++)
        atomic_fetch_or_explicit(&s->chunks[tsi_slab_chunk(slab_id)].counts_pages[page >> 6], 1ull << (page & 63),
                                 memory_order_relaxed);
}

size_t tsi_written_bytes(const TsiSpace* s, uint32_t chunk) {
    TsiChunk* record = &s->chunks[chunk];
    unsigned pages =
        tsi_popcount(tsi_load_relaxed(&record->meta_pages)) + tsi_popcount(tsi_load_relaxed(&record->region_pages));
    for (unsigned n = 0; n < 2; n++) pages += tsi_popcount(tsi_load_relaxed(&record->counts_pages[n]));
    return pages * tsi_os.page_bytes;
}

/* Returns the number of chunks whose entries share a page of the system: 1 with pages of 4 KiB.
 * [any thread, needs no lock] */
static uint32_t entries_per_page(void) { return (uint32_t)(tsi_os.page_bytes >> TSI_ENTRIES_SHIFT); }

uint64_t tsi_written_entries(const TsiSpace* s, uint32_t chunks) {
    uint32_t per_page = entries_per_page();
    uint64_t bytes = 0;
    for (uint32_t from = 0; from < chunks; from += per_page) {
        bool written = false;
        for (uint32_t chunk = from; chunk < from + per_page && chunk < chunks; chunk++)
            written |= tsi_load_relaxed(&s->chunks[chunk].entries_class) != 0;
        if (written) bytes += tsi_os.page_bytes;
    }
    return bytes;
}

/* ---- giving back ---- */

/* Returns true if the page at byte `offset` is among `pages`, those that were written, a bit each.
 * [any thread, needs no lock] */
static bool is_written(uint32_t pages, size_t offset) { return pages >> (offset / tsi_os.page_bytes) & 1; }

/* Gives whole pages from `from`, at a page, on back to the system, `bytes` rounded up to pages; they read as 0 then.
 * Returns false, with the pages as they were, if the system refuses. Counts nothing. [pool lock held, pages claimed] */
static bool purge(uint8_t* from, size_t bytes) {
    return tsi_os.purge(from, tsi_align_up(bytes, tsi_os.page_bytes), TSI_PURGE_DONTNEED) == 0;
}

/* ---- slabs and lines ---- */

/* Sets the links to inboxes that links_claim has taken of the chunk's first n slabs to 0: a freer may push these again.
 * pages: as links_claim was given. [pool lock held, links claimed] */
static void links_release(TsiSpace* s, uint32_t chunk, uint32_t n, uint32_t pages) {
    for (uint32_t i = 0; i < n; i++)
        if (is_written(pages, i * sizeof(TsiSlab)))
            tsi_store_seq(&tsi_slab(s, tsi_slab_id(chunk, i))->inbox,
                          0); /* pairs with the next pusher's compare-exchange */
}

/* Claims the links to inboxes of all slabs of the chunk whose words were written (G1): sets them from 0 to 1, so that
 * no freer can push these. pages: those of its bookkeeping that were written. Returns true if it has all: links_release
 * gives them up; false, and holds none, if a slab is in an inbox.
 * [pool lock held, all slabs of the chunk in the pool] */
static bool links_claim(TsiSpace* s, uint32_t chunk, uint32_t pages) {
    for (uint32_t i = 0; i < TSI_CHUNK_SLABS; i++) {
        if (!is_written(pages, i * sizeof(TsiSlab))) continue;
        uint32_t none = 0;
        /* seq_cst: like inbox_push in heap/line.c */
        if (tsi_cas_seq(&tsi_slab(s, tsi_slab_id(chunk, i))->inbox, &none, 1)) continue;
        links_release(s, chunk, i, pages);
        return false;
    }
    return true;
}

/* Gives back the pages of the chunk's words of slabs and lines, and claims its links to inboxes, which read as 0 then;
 * of lines alone if a slab is in an inbox. Pages that do not go stay marked in meta_pages; where pages of the system
 * are larger than a chunk's words, none goes. [pool lock held, all slabs of the chunk in the pool] */
static void leave_meta(TsiSpace* s, uint32_t chunk) {
    TsiChunk* record = &s->chunks[chunk];
    uint32_t pages = tsi_load_relaxed(&record->meta_pages);
    if (tsi_os.page_bytes <= (size_t)1 << TSI_META_SHIFT && links_claim(s, chunk, pages)) {
        if (purge(tsi_meta_of(s, chunk), TSI_META_END)) tsi_store_relaxed(&record->meta_pages, 0);
        else links_release(s, chunk, TSI_CHUNK_SLABS, pages);
    } else if (tsi_os.page_bytes <= TSI_META_LINES) {
        if (purge(tsi_meta_of(s, chunk) + TSI_META_LINES, TSI_META_END - TSI_META_LINES))
            tsi_store_relaxed(&record->meta_pages, pages & ~meta_bits(TSI_META_LINES, TSI_META_END));
    }
}

/* ---- regions ---- */

/* Moves every region of the chunk whose record was written to generation 0 (G2), by its word. pages: of records, those
 * that were written. Returns true if all are; false, having moved some perhaps, if a freer is inside (its word) or
 * late. [pool lock held, all slabs of the chunk in the pool] */
static bool regions_shut(TsiSpace* s, uint32_t chunk, uint32_t pages) {
    for (uint32_t i = 0; i < TSI_CHUNK_SLABS; i++) {
        if (!is_written(pages, TSI_REGIONS_MAP + i * sizeof(TsiRegion))) continue;
        TsiRegion* r = tsi_region(s, tsi_slab_id(chunk, i));
        uint64_t word = tsi_load_relaxed(&r->word);
        /* acquire: pairs with the release of the last freer, after which it writes nothing */
        if (tsi_load_acquire(&r->late) != 0) return false;
        do {
            if (tsi_region_entered(word) != 0) return false;
            /* seq_cst: as in take_word, region.c */
        } while (tsi_region_gen(word) != 0 && !tsi_cas_seq(&r->word, &word, 0));
    }
    return true;
}

/* Gives back the pages of the chunk's region records and maps, with all regions in generation 0 (G2), and notes that
 * they read as 0; only the maps if a freer is inside or late, or if the system refuses both. Pages that do not go stay
 * marked in region_pages for a later call. [pool lock held, all slabs of the chunk in the pool] */
static void leave_regions(TsiSpace* s, uint32_t chunk) {
    TsiChunk* record = &s->chunks[chunk];
    uint32_t pages = tsi_load_relaxed(&record->region_pages);
    bool all = tsi_os.page_bytes <= (size_t)1 << TSI_REGIONS_SHIFT && regions_shut(s, chunk, pages);
    if (all && purge(tsi_regions_of(s, chunk), TSI_REGIONS_END)) {
        tsi_store_relaxed(&record->region_pages, 0);
        record->regions_clear = true;
    } else if (tsi_os.page_bytes <= TSI_REGIONS_MAP && purge(tsi_regions_of(s, chunk), TSI_REGIONS_MAP)) {
        tsi_store_relaxed(&record->region_pages, pages & ~meta_bits(0, TSI_REGIONS_MAP));
    }
}

/* ---- entries ---- */

/* Returns true if frees may ask for the chunk's entries, or if its words wait to go, and its entries with them.
 * [pool lock held] */
static bool needs_entries(const TsiSpace* s, uint32_t chunk) {
    const TsiChunk* record = &s->chunks[chunk];
    unsigned cls = tsi_chunk_class(s, chunk);
    bool waits = (tsi_load_relaxed(&record->meta_pages) | tsi_load_relaxed(&record->region_pages)) != 0;
    if (waits) return true;
    return cls != 0 && cls != TSI_CLASS_LARGE && cls != TSI_CLASS_CONT;
}

/* Gives back the page of the chunk's entries, if it is filled, and sets entries_class to 0. Above 4 KiB it has those of
 * neighbours too: it stays while needs_entries is true for one of them, and otherwise theirs go with it.
 * [pool lock held] */
static void leave_entries(TsiSpace* s, uint32_t chunk) {
    uint32_t per_page = entries_per_page(), from = chunk & ~(per_page - 1), high = tsi_load_relaxed(&s->chunk_high);
    bool written = false;
    for (uint32_t n = from; n < from + per_page && n < high; n++) {
        if (n != chunk && needs_entries(s, n)) return;
        written |= tsi_load_relaxed(&s->chunks[n].entries_class) != 0;
    }

    if (!written || !purge((uint8_t*)tsi_entries_of(s, from), tsi_os.page_bytes)) return;
    for (uint32_t n = from; n < from + per_page && n < high; n++) tsi_store_relaxed(&s->chunks[n].entries_class, 0);
}

/* ---- all ---- */

void tsi_chunk_release_metadata(TsiSpace* s, uint32_t chunk) {
    TsiChunk* record = &s->chunks[chunk];
    if (!tsi_space_gives_back(s)) return;
    if (tsi_load_relaxed(&record->meta_pages) != 0) leave_meta(s, chunk);
    if (tsi_load_relaxed(&record->region_pages) != 0) leave_regions(s, chunk);

    leave_entries(s, chunk);

    uint8_t* counts = s->counts + ((size_t)chunk << TSI_COUNTS_SHIFT);
    bool went = record->counts_committed && purge(counts, (size_t)1 << TSI_COUNTS_SHIFT);
    for (unsigned n = 0; went && n < 2; n++) tsi_store_relaxed(&record->counts_pages[n], 0);
}
