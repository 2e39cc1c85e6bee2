/*
 * chunk_pages.c - pages of the bookkeeping of chunks that have no slab in use.
 *
 * All of it goes: words of slabs and lines, records and maps of regions, counts of handles, entries. What old addresses
 * and handles are judged by is in the chunk's floors (chunk.h), and zeros match none of them: a tag of 0 is in the
 * pool, a remote word has no seq of 0, a region's generation 0 is nobody's. Two things outlive a slab, and keep their
 * pages until they are over:
 *
 *   G1 A slab's link in an inbox. Whoever gives the pages back claims the links of all of the chunk's slabs, as a
 *       freer does that pushes (heap/line.c, T3): so none is in an inbox, and who is about to push claims its link
 *       before that, which keeps the page, or after it. G2 A freer inside of a region or late in it (mem/region.h,
 *       R2): generations start over, and it would meet its own. The word of each region is exchanged for generation
 *       0, which nobody enters, while nobody is inside; then nobody is late either, and nobody will be.
 */
#include "mem/chunk_pages.h"

#include "mem/region.h"
#include "mem/written.h"

/* A page of the bookkeeping, counted from where its part begins, was written. */
static bool is_written(uint32_t pages, size_t offset) { return pages >> (offset / tsi_os.page_bytes) & 1; }

static bool purge(uint8_t* from, size_t bytes) {
    return tsi_os.purge(from, tsi_align_up(bytes, tsi_os.page_bytes), TSI_PURGE_DONTNEED) == 0;
}

/* ---- slabs and lines ---- */

static void links_release(TsiSpace* s, uint32_t chunk, uint32_t n, uint32_t pages) {
    for (uint32_t i = 0; i < n; i++)
        if (is_written(pages, i * sizeof(TsiSlab)))
            tsi_store_seq(&tsi_slab(s, tsi_slab_id(chunk, i))->inbox,
                          0); /* pairs with the next pusher's compare-exchange */
}

/* G1. */
static bool links_claim(TsiSpace* s, uint32_t chunk, uint32_t pages) {
    for (uint32_t i = 0; i < TSI_CHUNK_SLABS; i++) {
        if (!is_written(pages, i * sizeof(TsiSlab))) continue;
        uint32_t none = 0;
        /* seq_cst: as inbox_push in heap/line.c */
        if (tsi_cas_seq(&tsi_slab(s, tsi_slab_id(chunk, i))->inbox, &none, 1)) continue;
        links_release(s, chunk, i, pages);
        return false;
    }
    return true;
}

static void leave_meta(TsiSpace* s, uint32_t chunk) {
    TsiChunk* k = &s->chunks[chunk];
    uint32_t pages = tsi_load_relaxed(&k->meta_pages);
    if (tsi_os.page_bytes <= (size_t)1 << TSI_META_SHIFT && links_claim(s, chunk, pages)) {
        if (purge(tsi_meta_of(s, chunk), TSI_META_END)) tsi_written_forget_meta(k);
        else links_release(s, chunk, TSI_CHUNK_SLABS, pages);
    } else if (tsi_os.page_bytes <= TSI_META_LINES) {
        if (purge(tsi_meta_of(s, chunk) + TSI_META_LINES, TSI_META_END - TSI_META_LINES)) tsi_written_forget_lines(k);
    }
}

/* ---- regions ---- */

/* G2. */
static bool regions_shut(TsiSpace* s, uint32_t chunk, uint32_t pages) {
    for (uint32_t i = 0; i < TSI_CHUNK_SLABS; i++) {
        if (!is_written(pages, TSI_REGIONS_MAP + i * sizeof(TsiRegion))) continue;
        TsiRegion* r = tsi_region(s, tsi_slab_id(chunk, i));
        uint64_t word = tsi_load_relaxed(&r->word);
        /* acquire: pairs with the release of the last of them, after which it writes nothing */
        if (tsi_load_acquire(&r->late) != 0) return false;
        do {
            if (tsi_region_entered(word) != 0) return false;
            /* seq_cst: as in take_word, region.c */
        } while (tsi_region_gen(word) != 0 && !tsi_cas_seq(&r->word, &word, 0));
    }
    return true;
}

static void leave_regions(TsiSpace* s, uint32_t chunk) {
    TsiChunk* k = &s->chunks[chunk];
    uint32_t pages = tsi_load_relaxed(&k->region_pages);
    bool all = tsi_os.page_bytes <= (size_t)1 << TSI_REGIONS_SHIFT && regions_shut(s, chunk, pages);
    if (all && purge(tsi_regions_of(s, chunk), TSI_REGIONS_END)) {
        tsi_written_forget_regions(k);
        k->regions_clear = true;
    } else if (tsi_os.page_bytes <= TSI_REGIONS_MAP && purge(tsi_regions_of(s, chunk), TSI_REGIONS_MAP)) {
        tsi_written_forget_maps(k);
    }
}

/* ---- all ---- */

bool tsi_chunk_has_left(const TsiSpace* s, uint32_t chunk) {
    const TsiChunk* k = &s->chunks[chunk];
    return (tsi_load_relaxed(&k->meta_pages) | tsi_load_relaxed(&k->region_pages)) == 0;
}

void tsi_chunk_leave(TsiSpace* s, uint32_t chunk) {
    TsiChunk* k = &s->chunks[chunk];
    if (!tsi_space_gives_back(s)) return;
    if (tsi_load_relaxed(&k->meta_pages) != 0) leave_meta(s, chunk);
    if (tsi_load_relaxed(&k->region_pages) != 0) leave_regions(s, chunk);
    bool page = tsi_os.page_bytes == (size_t)1 << TSI_ENTRIES_SHIFT, has = tsi_load_relaxed(&k->entries_class) != 0;
    if (page && has && purge((uint8_t*)tsi_entries_of(s, chunk), tsi_os.page_bytes))
        tsi_store_relaxed(&k->entries_class, 0);
    uint8_t* counts = s->counts + ((size_t)chunk << TSI_COUNTS_SHIFT);
    if (k->counts_committed && purge(counts, (size_t)1 << TSI_COUNTS_SHIFT)) tsi_written_forget_counts(k);
}
