/*
 * free.h - freeing: the fast path inline, the rest behind tsi_free_place.
 */
#ifndef TSI_HEAP_FREE_H
#define TSI_HEAP_FREE_H

#include "heap/bracket.h"

enum { TSI_FREE_OK = -1 }; /* else a SlabMisuse */

/* Frees the object at a place. seq: the slab incarnation it must belong to, 0 for "the present one".
 * handled: the caller has won the slot's count already. Returns TSI_FREE_OK or a SlabMisuse. */
int tsi_free_place(TsiArena* a, TsiBinding* b, const TsiPlace* at, uint32_t seq, bool handled);
/* Frees a pointer, counts and tells a refusal. least: the object must have so many usable bytes. */
bool tsi_free_pointer(TsiArena* a, void* p, size_t least);
/* What a pointer that is not a live object is refused as. */
SlabMisuse tsi_misuse_of(TsiPlaceResult r);
/* Frees by handle, counts and tells a refusal. */
bool tsi_free_handle(TsiArena* a, SlabHandle h);
/* Handle of a live object, counting it as issued; 0 when it is not live or its generations ran out
 * (*spent then). */
SlabHandle tsi_handle_issue(TsiArena* a, const TsiPlace* at, bool* spent);
/* Place of the object a handle names; false when it has ended. */
bool tsi_handle_find(TsiArena* a, SlabHandle h, TsiPlace* at);
/* TSI_FREE_OK when the place holds a live object now, else what a free of it is refused as; *tag is its slab's. */
int tsi_place_check(TsiArena* a, const TsiPlace* at, uint64_t* tag);
TSI_INLINE bool tsi_place_is_live(TsiArena* a, const TsiPlace* at, uint64_t* tag) {
    return tsi_place_check(a, at, tag) == TSI_FREE_OK;
}
/* Incarnation of a live object. */
bool tsi_place_ref(TsiArena* a, const TsiPlace* at, TsiRef* ref);
/* The line hands out no more slots: its handle generations are spent. Owner only, else nothing. */
void tsi_line_retire(TsiArena* a, const TsiPlace* at);

/* The owner's free of a slot of an ordinary line; false sends the caller to tsi_free_pointer. */
TSI_INLINE bool tsi_free_fast(TsiBinding* b, const void* p) {
    uint64_t off = (uint64_t)((uintptr_t)p - (uintptr_t)b->base);
    if (TSI_UNLIKELY(off >= b->payload_bytes)) return false;
    uint32_t chunk = (uint32_t)(off >> TSI_CHUNK_SHIFT);
    const TsiClass* c = &b->classes->c[tsi_load_acquire(&b->chunk_class[chunk])]; /* pairs with chunk_open */
    uint32_t in_chunk = (uint32_t)off & ((1u << TSI_CHUNK_SHIFT) - 1);
    uint32_t line = in_chunk >> c->line_shift;
    uint32_t in_line = in_chunk & ((1u << c->line_shift) - 1);
    unsigned slot = tsi_class_slot(c, in_line);
    if (TSI_UNLIKELY(c->offs[slot] != in_line)) return false;
    uint8_t* meta = b->meta + ((size_t)chunk << TSI_META_SHIFT);
    TsiSlab* slab = (TsiSlab*)(void*)meta + (line >> c->lines_log2);
    TsiLine* l = (TsiLine*)(void*)(meta + TSI_META_LINES) + line;
    const _Atomic uint64_t* r = (_Atomic uint64_t*)(void*)(meta + TSI_META_REMOTE) + 2 * line;
    TsiHeap* h = NULL;
    bool done = false;
    tsi_bracket_name(b, tsi_busy_line(l));
    uint64_t tag = tsi_load_relaxed(&slab->tag);
    if (TSI_LIKELY(tsi_tag_state(tag) == TSI_SLAB_OWNED)) {
        h = b->heaps_base + tsi_tag_index(tag);
        if (TSI_LIKELY(tsi_load_relaxed(&h->word) == b->live_word && (tag & TSI_SLAB_HANDLED) == 0)) {
            uint64_t bit = 1ull << slot, freed = tsi_load_relaxed(&l->freed);
            uint64_t gone = (tsi_load_relaxed(&l->avail) | freed) & bit;
            gone |= tsi_load_relaxed(&r[slot >> 5]) >> (slot & 31) & 1;
            if (TSI_LIKELY(gone == 0 && (tsi_load_relaxed(&l->where) & (TSI_LINE_PARKED | TSI_LINE_MIXED)) == 0)) {
                tsi_store_relaxed(&l->freed, freed | bit);
                done = true;
            }
        }
    }
    tsi_bracket_clear(b);
    if (h != NULL && TSI_UNLIKELY(tsi_load_relaxed(&h->word) != b->live_word)) {
        if ((uint32_t)(tsi_load_relaxed(&h->word) >> 8) == b->index) tsi_handover(b, h);
    }
    return done;
}

#endif
