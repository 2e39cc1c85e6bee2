/* chunk.c - see chunk.h. */
#include "mem/chunk.h"

#include "mem/chunk_pages.h"
#include "mem/purge.h"
#include "mem/region.h"

void tsi_space_lock_counted(TsiSpace* s, unsigned cls, unsigned column) {
    bool fast = tsi_lock_take_probed(&s->lock);
    cls = tsi_class_row(cls);
    /* Shared mode adds under stripes, so this is atomic. */
    tsi_add_relaxed(fast ? &s->lock_fast[cls][column] : &s->lock_contended[cls][column], 1);
}

void tsi_chunk_set_used(TsiSpace* s, uint32_t chunk, bool used) {
    if (tsi_chunk_is_used(s, chunk) != used) s->chunks_used += used ? 1u : ~0u;
    tsi_word_set(&s->bits[chunk / 64].used, chunk % 64, used);
    if (!used && chunk < s->used_hint) s->used_hint = chunk;
    if (used && chunk >= tsi_load_relaxed(&s->chunk_high)) tsi_store_relaxed(&s->chunk_high, chunk + 1);
}

uint32_t tsi_chunk_find(TsiSpace* s) {
    uint32_t words = (s->chunk_count + 63) / 64, hint = s->used_hint / 64;
    while (hint < words && s->bits[hint].used == ~0ull) hint++;
    s->used_hint = hint * 64;
    for (unsigned anywhere = !s->huge_apart; anywhere < 2; anywhere++) {
        for (uint32_t word = hint; word < words; word++) {
            uint64_t free = ~s->bits[word].used;
            if (anywhere == 0) free &= ~tsi_chunk_huge_side(word);
            uint32_t chunk = free != 0 ? word * 64 + tsi_ctz64(free) : s->chunk_count;
            if (chunk < s->chunk_count) return chunk;
        }
    }
    return s->chunk_count;
}

void tsi_chunks_prefer_node(TsiSpace* s, uint32_t first, uint32_t n, unsigned node) {
    if (s->nodes == 1) return;
    bool asked = true;
    for (uint32_t i = first; i < first + n; i++) {
        asked = asked && s->chunks[i].asked_node == node + 1;
        s->chunks[i].node = (uint8_t)(node % s->nodes);
        s->chunks[i].asked_node = (uint8_t)(node + 1);
    }
    if (asked) return;
    tsi_os.prefer_node(tsi_chunk_base(s, first), (size_t)n << TSI_CHUNK_SHIFT, node);
    if (tsi_os.page_bytes <= (size_t)1 << TSI_META_SHIFT)
        tsi_os.prefer_node(tsi_meta_of(s, first), (size_t)n << TSI_META_SHIFT, node);
}

bool tsi_chunk_commit(TsiSpace* s, uint32_t chunk) {
    TsiChunk* record = &s->chunks[chunk];
    if (!tsi_os.strict_commit && !tsi_space_extend(s, TSI_STRIP_PAYLOAD, chunk, 1)) return false;
    if (record->meta_committed) return true;
    record->meta_committed = tsi_space_extend(s, TSI_STRIP_META, chunk, 1);
    return record->meta_committed;
}

void tsi_chunk_link(TsiSpace* s, uint32_t chunk, unsigned cls) {
    TsiChunk* record = &s->chunks[chunk];
    record->prev = 0;
    uint32_t* head = &s->with_free[record->node][cls];
    record->next = *head;
    if (record->next != 0) s->chunks[record->next - 1].prev = chunk + 1;
    *head = chunk + 1;
    record->listed = 1;
}

void tsi_chunk_unlink(TsiSpace* s, uint32_t chunk, unsigned cls) {
    TsiChunk* record = &s->chunks[chunk];
    if (record->prev != 0) s->chunks[record->prev - 1].next = record->next;
    else s->with_free[record->node][cls] = record->next;
    if (record->next != 0) s->chunks[record->next - 1].prev = record->prev;
    record->listed = 0;
}

void tsi_floors_raise(TsiSpace* s, uint32_t chunk, uint32_t slabs) {
    TsiChunk* record = &s->chunks[chunk];
    for (uint32_t i = 0; i < slabs; i++) {
        TsiSlab* slab = tsi_slab(s, tsi_slab_id(chunk, i));
        uint32_t seq = tsi_tag_seq(tsi_load_relaxed(&slab->tag)), gen = tsi_load_relaxed(&slab->gen_base);
        if (seq > record->seq_floor) record->seq_floor = seq;
        if (gen > tsi_load_relaxed(&record->gen_floor)) tsi_store_relaxed(&record->gen_floor, gen);
    }
}

void tsi_floors_apply(TsiSpace* s, unsigned cls, uint32_t slab_id) {
    TsiChunk* chunk = &s->chunks[tsi_slab_chunk(slab_id)];
    TsiSlab* slab = tsi_slab(s, slab_id);
    if (tsi_tag_seq(tsi_load_relaxed(&slab->tag)) < chunk->seq_floor)
        tsi_store_relaxed(&slab->tag, tsi_tag(chunk->seq_floor, 0, TSI_SLAB_POOL));
    uint32_t gen = tsi_load_relaxed(&chunk->gen_floor);
    if (tsi_load_relaxed(&slab->gen_base) < gen) tsi_store_relaxed(&slab->gen_base, gen);
    tsi_written_slab(s, cls, slab_id);
}

/* Fills the chunk's entries for cls, a class with slots or regions, unless entries_class says that they are filled for
 * it; those behind the last slab become 0. They stay when the chunk loses the class: the words that they lead to are
 * nobody's then. [pool lock held, or fork child] */
static void entries_set(TsiSpace* s, uint32_t chunk, unsigned cls) {
    if (tsi_load_relaxed(&s->chunks[chunk].entries_class) == cls) return;
    bool region = tsi_class_is_region(cls);
    TsiEntry* at = tsi_entries_of(s, chunk);
    unsigned shift = region ? tsi_log2(s->classes->c[cls].slab_bytes) : s->classes->c[cls].line_shift;
    const uint8_t* first =
        region ? (uint8_t*)tsi_region(s, tsi_slab_id(chunk, 0)) : (uint8_t*)tsi_line(s, tsi_line_at(chunk, 0));
    uint32_t entry = (uint32_t)((size_t)(first - s->words) / sizeof(TsiLine)) | (region ? TSI_ENTRY_REGION : 0);
    uint32_t end = region ? tsi_chunk_slab_count(s, cls) << (shift - TSI_LINE_MIN_SHIFT) : TSI_CHUNK_LINES;

    for (uint32_t kib = 0; kib < 1u << (TSI_CHUNK_SHIFT - TSI_LINE_MIN_SHIFT); kib++)
        /* release: pairs with the acquire in tsi_free_fast: the words are committed */
        tsi_store_release(&at[kib], kib < end ? entry + (kib >> (shift - TSI_LINE_MIN_SHIFT)) : 0);
    tsi_store_relaxed(&s->chunks[chunk].entries_class, (uint8_t)cls);
}

void tsi_chunk_set_class(TsiSpace* s, uint32_t chunk, unsigned cls) {
    if (cls != 0 && cls != TSI_CLASS_LARGE && cls != TSI_CLASS_CONT) entries_set(s, chunk, cls);
    /* release: pairs with tsi_chunk_class; the bookkeeping is committed before the class shows */
    uint32_t low = tsi_class_is_region(cls) ? TSI_KEY_REGION : s->classes->c[cls].line_shift;
    tsi_store_release(&s->keys[chunk], (uint32_t)(cls * sizeof(TsiClass)) | low);
}

enum { WORDS_KEPT = 2 }; /* chunks whose words are kept in any case */

void tsi_chunk_begin(TsiSpace* s, uint32_t chunk, unsigned cls, unsigned slabs) {
    TsiChunk* record = &s->chunks[chunk];
    record->free_head = 0;
    record->fresh = 0;
    record->free_count = (uint16_t)slabs;
    record->last_class = (uint8_t)cls;
    s->words_kept -= record->meta_kept;
    record->meta_kept = false;
    tsi_store_relaxed(&s->open_chunks, tsi_load_relaxed(&s->open_chunks) + 1);
    tsi_chunk_set_used(s, chunk, true);
}

void tsi_chunk_give_words(TsiSpace* s, uint32_t chunk) {
    TsiChunk* record = &s->chunks[chunk];
    /* Twice the chunks that kept pages would fill, plus a few: kept pages may be scattered over every chunk. */
    uint64_t most = (tsi_load_relaxed(&s->stock.bytes) >> (TSI_CHUNK_SHIFT - 1)) + WORDS_KEPT;
    s->words_kept -= record->meta_kept;
    record->meta_kept = tsi_chunk_has_stock(record) && s->words_kept < most;
    s->words_kept += record->meta_kept;
    if (record->meta_kept) return;
    if (!tsi_chunk_has_stock(record)) tsi_space_mark_gone(record);
    tsi_chunk_release_metadata(s, chunk);
}

void tsi_chunk_hold_locked(TsiSpace* s, uint32_t chunk) {
    TSI_HOLDS(&s->lock);
    unsigned cls = tsi_chunk_class(s, chunk);
    s->chunks[chunk].held = true;
    if (cls == 0) tsi_chunk_set_used(s, chunk, true);
    else if (s->chunks[chunk].listed) tsi_chunk_unlink(s, chunk, cls);
}

void tsi_chunk_settle(TsiSpace* s, uint32_t chunk, unsigned cls) {
    TsiChunk* record = &s->chunks[chunk];
    if (record->held) return;
    bool close = record->free_count == tsi_chunk_slab_count(s, cls), list = !close && record->free_count != 0;
    if (record->listed && !list) tsi_chunk_unlink(s, chunk, cls);
    if (!record->listed && list) tsi_chunk_link(s, chunk, cls);
    if (!close) return;
    tsi_store_relaxed(&s->open_chunks, tsi_load_relaxed(&s->open_chunks) - 1);
    tsi_floors_raise(s, chunk, record->fresh); /* before the class goes: state/names.h, N1 */
    tsi_chunk_set_class(s, chunk, 0);
    tsi_chunk_give_words(s, chunk);
    tsi_chunk_set_used(s, chunk, false);
}

void tsi_chunk_add(TsiSpace* s, uint32_t chunk, unsigned cls, unsigned slab) {
    TsiChunk* record = &s->chunks[chunk];
    uint32_t id = tsi_slab_id(chunk, slab);
    record->free_count++;
    if (tsi_parts_share(s, cls)) {
        tsi_bit_set(record->parts, slab, true);
    } else {
        tsi_slab(s, id)->next = record->free_head;
        record->free_head = id + 1;
    }
}

void tsi_chunk_put_locked(TsiSpace* s, uint32_t slab_id, bool first) {
    TSI_HOLDS(&s->lock);
    uint32_t chunk = tsi_slab_chunk(slab_id);
    unsigned cls = tsi_chunk_class(s, chunk);
    const TsiChunk* record = &s->chunks[chunk];
    tsi_slab_turn(tsi_slab(s, slab_id), TSI_SLAB_POOL);
    tsi_chunk_add(s, chunk, cls, tsi_slab_number(slab_id));
    if (first && record->listed && record->prev != 0) tsi_chunk_unlink(s, chunk, cls); /* to the head of its list */
    tsi_chunk_settle(s, chunk, cls);
}

void tsi_chunk_unhold_locked(TsiSpace* s, uint32_t chunk) {
    TSI_HOLDS(&s->lock);
    unsigned cls = tsi_chunk_class(s, chunk);
    s->chunks[chunk].held = false;
    if (cls == 0) {
        tsi_chunk_give_words(s, chunk);
        tsi_chunk_set_used(s, chunk, false);
    } else if (cls != TSI_CLASS_LARGE && cls != TSI_CLASS_CONT) {
        tsi_chunk_settle(s, chunk, cls);
    }
}

void tsi_chunks_leave(TsiSpace* s, uint32_t most) {
    uint32_t n = 0;
    for (unsigned turn = 0; turn < 2 && (turn == 0 || n > most); turn++) {
        for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
            const TsiChunk* record = &s->chunks[chunk];
            /* apart from counts of handles, none of its pages is filled; a hint */
            if ((tsi_load_relaxed(&record->meta_pages) | tsi_load_relaxed(&record->region_pages)) == 0) continue;
            tsi_lock_take(&s->lock);
            bool unused = !tsi_chunk_is_used(s, chunk) && !tsi_chunk_has_stock(record);
            n += unused && turn == 0;
            if (unused && turn == 1) tsi_chunk_release_metadata(s, chunk);
            tsi_lock_give(&s->lock);
        }
    }
}
