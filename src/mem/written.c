/* written.c - see written.h. */
#include "mem/written.h"

/* Pages that [from, to) of a chunk's bookkeeping touches, a bit each. */
static uint32_t meta_bits(size_t from, size_t to) {
    unsigned shift = tsi_log2(tsi_os.page_bytes);
    return (uint32_t)((2ull << ((to - 1) >> shift)) - (1ull << (from >> shift)));
}

void tsi_written_slab(TsiSpace* s, unsigned cls, uint32_t slab_id) {
    TsiChunk* k = &s->chunks[tsi_slab_chunk(slab_id)];
    size_t slab = tsi_slab_number(slab_id), lines = (size_t)1 << s->classes->c[cls].lines_log2;
    size_t from = slab * lines * sizeof(TsiLine), to = from + lines * sizeof(TsiLine);
    uint32_t bits = meta_bits(slab * sizeof(TsiSlab), (slab + 1) * sizeof(TsiSlab));
    if (tsi_class_is_region(cls)) { /* the bytes of a KiB are as many as a line */
        size_t record = TSI_REGIONS_MAP + slab * sizeof(TsiRegion);
        uint32_t own = meta_bits(from, to) | meta_bits(record, record + sizeof(TsiRegion));
        tsi_store_relaxed(&k->region_pages, tsi_load_relaxed(&k->region_pages) | own);
    } else {
        bits |= meta_bits(TSI_META_LINES + from, TSI_META_LINES + to);
    }
    tsi_store_relaxed(&k->meta_pages, tsi_load_relaxed(&k->meta_pages) | bits);
}

void tsi_written_counts(TsiSpace* s, uint32_t slab_id) {
    const TsiClass* c = tsi_slab_class(s, slab_id);
    unsigned shift = tsi_log2(tsi_os.page_bytes);
    size_t line_bytes = ((size_t)1 << TSI_COUNTS_SHIFT) / TSI_CHUNK_LINES;
    size_t from = tsi_line_number(tsi_first_line(c, slab_id)) * line_bytes, to = from + (line_bytes << c->lines_log2);
    /* a sum for readers of statistics: nothing is ordered by it */
    for (size_t page = from >> shift; page << shift < to; page++)
        atomic_fetch_or_explicit(&s->chunks[tsi_slab_chunk(slab_id)].counts_pages[page >> 6], 1ull << (page & 63),
                                 memory_order_relaxed);
}

void tsi_written_forget_lines(TsiChunk* k) {
    tsi_store_relaxed(&k->meta_pages, tsi_load_relaxed(&k->meta_pages) & ~meta_bits(TSI_META_LINES, TSI_META_END));
}

void tsi_written_forget_maps(TsiChunk* k) {
    tsi_store_relaxed(&k->region_pages, tsi_load_relaxed(&k->region_pages) & ~meta_bits(0, TSI_REGIONS_MAP));
}

void tsi_written_forget_meta(TsiChunk* k) { tsi_store_relaxed(&k->meta_pages, 0); }
void tsi_written_forget_regions(TsiChunk* k) { tsi_store_relaxed(&k->region_pages, 0); }

void tsi_written_forget_counts(TsiChunk* k) {
    for (unsigned n = 0; n < 2; n++) tsi_store_relaxed(&k->counts_pages[n], 0);
}

size_t tsi_written_bytes(const TsiSpace* s, uint32_t chunk) {
    TsiChunk* k = &s->chunks[chunk];
    unsigned pages = tsi_popcount(tsi_load_relaxed(&k->meta_pages)) + tsi_popcount(tsi_load_relaxed(&k->region_pages));
    for (unsigned n = 0; n < 2; n++) pages += tsi_popcount(tsi_load_relaxed(&k->counts_pages[n]));
    size_t entries = tsi_load_relaxed(&k->entries_class) != 0 ? (size_t)1 << TSI_ENTRIES_SHIFT : 0;
    return pages * tsi_os.page_bytes + entries;
}
