/*
 * handles.h - objects by handle: issue, find, free; the owner's paths inline.
 *
 * A slot's count word is described in mem/handle.h. The thread that makes it odd, by compare-exchange, has the right to
 * free the slot; until its owner takes the slot in again nobody else of that incarnation moves it. The owner's paths
 * work inside the bracket of its plain ones: there the line's slab cannot leave its incarnation, so its seq and base
 * stand still.
 *
 * A slab whose tag has the flag HANDLED has counts: refills make them even. A thread that asks for a handle sets the
 * flag. The mark `handled` of a line says that its owner knows: it alone sets it, inside its bracket, and only then
 * issues and frees on its own. Before that its plain frees do not count, and a handle that another thread asked for
 * ends at the refill; that thread makes sure, by a membarrier after setting the flag, that a free which it does not see
 * is followed by a refill that sees the flag. Where the membarrier fails there is no handle, unless the owner's
 * brackets are fenced.
 */
#ifndef TSI_HEAP_HANDLES_H
#define TSI_HEAP_HANDLES_H

#include "heap/fast.h"
#include "state/names.h"

/* Frees an object by its handle, any value, with its stand-in where programs have these. Returns true if it is freed,
 * false if refused, which is counted and told (tsi_refuse_as). [any thread, no lock held, no bracket open] */
bool tsi_free_handle(TsiArena* a, SlabHandle handle);

/* Returns the handle that `slot` of l, a line of b's of the class `shape`, has now or will have once it is taken; 0 if
 * the line has issued none yet, the slot was freed since its last refill, or it can issue no more.
 * [owner, in bracket] */
TSI_INLINE SlabHandle tsi_handle_here(const TsiBinding* b, const TsiClass* shape, const TsiLine* l, unsigned slot) {
    if (TSI_UNLIKELY(!tsi_line_is_handled(l))) return 0;
    uint64_t off = (uint64_t)(l->base - b->base);
    uint32_t in_chunk = (uint32_t)off & ((1u << TSI_CHUNK_SHIFT) - 1);
    uint32_t id = tsi_line_at((uint32_t)(off >> TSI_CHUNK_SHIFT), in_chunk >> shape->line_shift);
    uint32_t place = tsi_handle_place(id, slot), seq = tsi_remote_seq(0, tsi_load_relaxed(&l->remote[0]));
    uint32_t count = tsi_count_of(tsi_load_relaxed(&b->counts[place]), seq);
    uint32_t generation = tsi_load_relaxed(&tsi_slab(&b->arena->space, tsi_slab_at(shape, id))->gen_base) + count / 2;
    if (TSI_UNLIKELY((count & 1) != 0)) return 0; /* two branches: joined, they are six instructions */
    if (TSI_UNLIKELY(generation >= TSI_GEN_LIMIT)) return 0;
    return tsi_handle_make(b->secret, place, generation);
}

/* Allocates like tsi_alloc_fast, with *handle, which stays as it is unless the result is DONE or HANDOVER. Returns like
 * that; MISSED also for a line that has not issued handles yet, or whose next slot has no generations left.
 * [owner, opens the bracket] */
TSI_INLINE TsiFast tsi_obj_fast(TsiBinding* b, TsiHeap* h, TsiLine* const* cur, unsigned cls, void** out,
                                SlabHandle* handle) {
    TsiLine* l = cur[cls];
    tsi_bracket_name(b, tsi_busy_line(l));
    uint64_t avail = tsi_load_relaxed(&l->avail);
    if (TSI_UNLIKELY(avail == 0)) return TSI_FAST_MISSED;
    if (TSI_UNLIKELY(tsi_load_relaxed(&h->word) != b->live_word)) return TSI_FAST_MISSED;
    const TsiClass* shape = &b->classes->c[cls];
    unsigned slot = tsi_ctz64(avail);
    SlabHandle its = tsi_handle_here(b, shape, l, slot);
    if (TSI_UNLIKELY(its == 0)) return TSI_FAST_MISSED;
    *handle = its;
    tsi_store_relaxed(&l->avail, avail & (avail - 1));
    *out = l->base + tsi_class_offset(shape, slot);
    tsi_bracket_clear(b);
    return TSI_LIKELY(tsi_load_relaxed(&h->word) == b->live_word) ? TSI_FAST_DONE : TSI_FAST_HANDOVER;
}

/* Frees the object that a handle names in a line of the thread's that has issued handles and is not parked, like
 * tsi_free_fast: looks at the same places in the same order; the slot's count becomes odd. Returns DONE; HANDOVER:
 * done, and the caller hands it over; in both *out is the heap. Returns MISSED: nothing done, the bracket is open;
 * NOT_FOUND: no bracket was entered, since the handle names no line's slot. [own thread, opens the bracket] */
TSI_INLINE TsiFast tsi_free_handle_fast(TsiBinding* b, SlabHandle handle, TsiHeap** out) {
    uint32_t place = tsi_handle_place_of(handle), id = tsi_place_line(place);
    uint32_t chunk = tsi_line_chunk(id), line = tsi_line_number(id);
    unsigned slot = tsi_place_slot(place);
    if (TSI_UNLIKELY((handle & 3) != TSI_HANDLE_VERSION || (uint64_t)chunk << TSI_CHUNK_SHIFT >= b->payload_bytes))
        return TSI_FAST_NOT_FOUND;
    uint32_t key = tsi_load_acquire(&b->keys[chunk]); /* pairs with set_class */
    if (TSI_UNLIKELY((key & TSI_KEY_REGION) != 0)) return TSI_FAST_NOT_FOUND;

    const TsiClass* shape = tsi_key_class(b->classes, key);
    if (TSI_UNLIKELY(line >= (1u << TSI_CHUNK_SHIFT) >> tsi_key_line_shift(key) || (shape->full >> slot & 1) == 0))
        return TSI_FAST_NOT_FOUND;
    TsiLine* l = b->lines + (size_t)chunk * TSI_META_STRIDE + line;
    tsi_bracket_name(b, tsi_busy_line(l));
    TsiHeap* h = tsi_line_heap(b, l);
    bool counts = tsi_line_is_handled(l) && (tsi_load_relaxed(&l->flags) & TSI_LINE_PARKED) == 0;
    if (TSI_UNLIKELY(tsi_load_relaxed(&h->word) != b->live_word || !counts)) return TSI_FAST_MISSED;

    uint64_t gone = tsi_load_relaxed(&l->avail) | tsi_load_relaxed(&l->freed) | tsi_remote_seen(l);
    if (TSI_UNLIKELY(gone >> slot & 1)) return TSI_FAST_MISSED;
    uint32_t seq = tsi_remote_seq(0, tsi_load_relaxed(&l->remote[0]));
    _Atomic uint64_t* at = &b->counts[place];
    uint64_t word = tsi_load_relaxed(at), now = tsi_count_now(word, seq);
    uint32_t generation =
        tsi_load_relaxed(&tsi_slab(&b->arena->space, tsi_slab_at(shape, id))->gen_base) + (uint32_t)now / 2;
    if (TSI_UNLIKELY(tsi_handle_stamp(b->secret, place, generation) != tsi_handle_stamp_of(handle) ||
                     generation >= TSI_GEN_LIMIT))
        return TSI_FAST_MISSED;
    /* decides among racing frees, as tsi_count_move, which the slow path asks when it fails */
    if (TSI_UNLIKELY((now & 1) != 0 || !tsi_cas_seq(at, &word, now + 1))) return TSI_FAST_MISSED;

    /* pairs with the acquire in tsi_slot_check */
    tsi_store_release(&l->freed, tsi_load_relaxed(&l->freed) | 1ull << slot);
    tsi_bracket_clear(b);
    *out = h;
    return TSI_LIKELY(tsi_load_relaxed(&h->word) == b->live_word) ? TSI_FAST_DONE : TSI_FAST_HANDOVER;
}

#endif
