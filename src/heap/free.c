/*
 * free.c - frees that are not the plain one: other threads' slabs, full lines, handles.
 *
 * A remote free is one compare-exchange of the slot's bit into the remote word, under the seq that
 * the slab had when the call looked at it first. If the slab has left that incarnation the exchange
 * fails and the free is refused; it is never tried again under a later one. Before it, all three
 * words are read in the direction bits move (invariant F), so a slot that is free is seen to be.
 *
 * In a slab that has issued handles every free, by pointer or handle, first makes the slot's count odd
 * by compare-exchange: that decides among racing frees and makes the handle stale. The owner makes it
 * even again when it takes the slot in (tsi_line_refill).
 */
#include "heap/free.h"

#include "heap/bump.h"
#include "heap/finish.h"
#include "heap/late.h"
#include "heap/line.h"
#include "heap/names.h"
#include "heap/partial.h"
#include "heap/refuse.h"
#include "heap/registry.h"
#include "heap/room.h"

/* ---- the owner ---- */

/* Frees as the owner. False when the heap is not (any longer) the thread's: free remotely. */
static bool free_as_owner(TsiArena* a, TsiBinding* b, const TsiPlace* at, uint64_t tag, int* result) {
    TsiSpace* s = &a->space;
    TsiHeap* h = tsi_heap(a, tsi_tag_index(tag));
    if (tsi_load_relaxed(&h->word) != tsi_heap_word(b->index, TSI_HEAP_LIVE)) return false;
    uint64_t name = tsi_busy_all(h); /* the room may change */
    if (!tsi_bracket_enter(b, h, name)) return false;
    uint64_t now = tsi_load_relaxed(&tsi_slab(s, at->slab_id)->tag), remote;
    bool ours =
        tsi_tag_state(now) == TSI_SLAB_OWNED && tsi_tag_seq(now) == tsi_tag_seq(tag) && tsi_tag_index(now) == h->index;
    if (ours) {
        *result = tsi_slot_check(s, at, tsi_tag_seq(tag), &remote);
        if (*result == TSI_FREE_OK) tsi_line_freed(b, tsi_line(s, at->line_id), at->slot);
    }
    tsi_bracket_leave(b, h);
    return ours;
}

/* In a line that has issued handles. As free_here. */
static TSI_NOINLINE TsiFast free_counted(TsiBinding* b, TsiHeap* h, TsiLine* l, unsigned slot) {
    TsiSpace* s = &b->arena->space;
    _Atomic uint64_t* at = &tsi_counts(s, tsi_line_id(s, l))[slot];
    uint32_t seq = tsi_remote_seq(0, tsi_load_relaxed(&l->remote[0]));
    bool gone = ((tsi_load_relaxed(&l->avail) | tsi_load_relaxed(&l->freed) | tsi_remote_seen(l)) >> slot & 1) != 0;
    if (gone || !tsi_count_move(at, seq, tsi_load_relaxed(at))) return TSI_FAST_MISSED;
    tsi_line_freed(b, l, slot);
    tsi_bracket_clear(b);
    return TSI_LIKELY(tsi_load_relaxed(&h->word) == b->live_word) ? TSI_FAST_DONE : TSI_FAST_LEFT;
}

/* ---- other threads ---- */

static TSI_NOINLINE void after_orphans_free(TsiArena* a, TsiBinding* b, TsiPlace at, uint64_t tag) {
    /* Else claimed: whoever has it looks at the words afterwards. */
    bool orphan = tsi_tag_state(tag) == TSI_SLAB_ORPHAN;
    if (orphan && tsi_slab_is_empty(&a->space, at.cls, at.slab_id)) {
        tsi_slab_complete(a, b, at.slab_id, tag);
        return;
    }
    tsi_late_mark(a, at.slab_id);
    TsiInc* i;
    uint64_t era;
    if (orphan && tsi_partial_page_freed(a, &at, tag, &i, &era)) tsi_inc_sweep(a, b, i, era);
}

/* Another object lives in the page of the one that was freed, and in its line: then neither its slab nor that page
 * can go. This is what most late frees find. */
TSI_INLINE bool neighbour_lives(const TsiSpace* s, const TsiPlace* at) {
    if (at->cls > TSI_SMALL_CLASSES) return false;
    const TsiClass* c = &s->classes->c[at->cls];
    TsiLine* l = tsi_line(s, at->line_id);
    uint64_t w0 = tsi_load_seq(&l->remote[0]); /* as in tsi_slab_is_empty: of two last freers one sees both bits */
    uint64_t gone = tsi_remote_bits(w0, tsi_load_seq(&l->remote[1]));
    gone |= tsi_load_acquire(&l->freed); /* invariant F: remote, freed, avail */
    gone |= tsi_load_acquire(&l->avail);
    return (c->full & ~gone & tsi_partial_slots(c, at->slot)) != 0;
}

static TSI_NOINLINE void after_late_free(TsiArena* a, TsiBinding* b, TsiPlace at, TsiInc* i, TsiRef ref) {
    if (ref != 0 && tsi_slab_is_empty(&a->space, at.cls, at.slab_id)) tsi_inc_sweep(a, b, i, tsi_ref_era(ref));
}

/* The freed object may have been the last of its slab; tag: the slab's, read after the free. */
TSI_INLINE void after_free(TsiArena* a, TsiBinding* b, const TsiPlace* at, uint64_t tag) {
    if (TSI_UNLIKELY(tsi_tag_state(tag) != TSI_SLAB_OWNED)) {
        if (neighbour_lives(&a->space, at)) tsi_late_mark(a, at->slab_id);
        else after_orphans_free(a, b, *at, tag);
        return;
    }
    TsiRef ref = tsi_load_relaxed(&tsi_heap(a, tsi_tag_index(tag))->ref);
    TsiInc* i = tsi_inc(&a->phases, tsi_ref_index(ref));
    if (TSI_UNLIKELY(tsi_inc_state(i) != TSI_INC_ACTIVE)) after_late_free(a, b, *at, i, ref);
}

/* True when so much is free in an armed line that its owner is to be told (what tsi_line_disarm would find), and
 * nobody does so now (T3). seq_cst, after the bit: T4. */
TSI_INLINE bool owner_waits(TsiSlab* slab, TsiLine* l, const TsiClass* c) {
    uint64_t w0 = tsi_load_seq(&l->remote[0]);
    if (TSI_LIKELY((w0 & TSI_REMOTE_TOKEN) == 0) || tsi_load_seq(&slab->inbox) != 0) return false;
    uint64_t others = tsi_remote_bits(w0, tsi_load_seq(&l->remote[1]));
    /* Invariant F: remote before freed. */
    return tsi_popcount((others | tsi_load_acquire(&l->freed)) & c->full) >= c->threshold;
}

/* The same, or one that an owner waits for. */
TSI_INLINE void after_remote_free(TsiArena* a, TsiBinding* b, const TsiPlace* at, TsiSlab* slab, TsiLine* l,
                                  uint32_t seq) {
    /* seq_cst, after the bit: pairs with tsi_settle_drain, which changes the tag, then reads the bits */
    uint64_t tag = tsi_load_seq(&slab->tag);
    if (TSI_UNLIKELY(tsi_tag_seq(tag) != seq)) return;
    bool told = tsi_tag_state(tag) == TSI_SLAB_OWNED && at->cls <= TSI_SMALL_CLASSES;
    if (told && TSI_UNLIKELY(owner_waits(slab, l, &a->space.classes->c[at->cls])))
        tsi_line_notify(a, at->line_id, at->slab_id, seq);
    after_free(a, b, at, tag);
}

int tsi_free_in_region(TsiArena* a, TsiBinding* b, const TsiPlace* at, uint32_t seq, uint32_t generation) {
    uint64_t tag;
    int result = tsi_bump_free_shared(a, at, seq, generation, &tag);
    if (b != NULL && result == TSI_FREE_OK) tsi_count(&b->counters[TSI_CLASS_REGION].free_tries);
    if (result == TSI_FREE_OK && tsi_tag_seq(tag) == seq) after_free(a, b, at, tag);
    return result;
}

/* Another thread changed the word between our look and our exchange. */
static TSI_NOINLINE void count_retry(TsiArena* a, TsiBinding* b, TsiPlace at) {
    if (b != NULL) tsi_count(&b->counters[at.cls].free_retries);
    else tsi_add_relaxed(&a->counters[at.cls].free_retries, 1);
    TsiRef ref;
    uint32_t label = TSI_LABEL_NONE;
    if (tsi_place_ref(a, &at, &ref)) label = tsi_inc_label(tsi_inc(&a->phases, tsi_ref_index(ref)));
    tsi_add_relaxed(&tsi_label(&a->phases.labels, label)->retries, 1);
    tsi_add_relaxed(&a->free_retries_by_label[at.cls][tsi_label_lane(&a->phases.labels, label)], 1);
}

/* The line in `busy` is in h, which is the thread's. */
TSI_INLINE TsiFast free_here(TsiBinding* b, TsiHeap* h, TsiLine* l, const void* p) {
    uint64_t slot = tsi_rotate_right((uint64_t)((uintptr_t)p - (uintptr_t)l->base), l->shift);
    if (slot >= TSI_LINE_SLOTS) return TSI_FAST_MISSED;
    if (tsi_line_is_handled(l)) return free_counted(b, h, l, (unsigned)slot);
    uint64_t gone = tsi_load_relaxed(&l->freed) | tsi_load_relaxed(&l->avail) | tsi_remote_seen(l);
    if ((gone >> slot & 1) != 0) return TSI_FAST_MISSED;
    tsi_line_freed_in(b, h, l, (unsigned)slot);
    tsi_bracket_clear(b);
    return TSI_LIKELY(tsi_load_relaxed(&h->word) == b->live_word) ? TSI_FAST_DONE : TSI_FAST_LEFT;
}

/* A slot of a slab that is no heap's of the caller's, its tag read before. DONE, or NEVER: nothing done. */
TSI_INLINE TsiFast free_slot(TsiArena* a, TsiBinding* b, const TsiPlace* at, TsiSlab* slab, uint64_t tag) {
    TsiSpace* s = &a->space;
    TsiLine* l = tsi_line(s, at->line_id);
    uint64_t word;
    /* Read after the tag, as in tsi_free_place. */
    if (tsi_chunk_class(s, at->line_id >> 10) != at->cls) return TSI_FAST_NEVER;
    if (tsi_line_check(l, at->slot, tsi_tag_seq(tag), &word) != TSI_FREE_OK) return TSI_FAST_NEVER;
    if (b != NULL) tsi_count(&b->counters[at->cls].free_tries);
    /* As in free_as_other, which goes on. */
    if (TSI_UNLIKELY(!tsi_cas_seq(&l->remote[at->slot >> 5], &word, word | tsi_remote_bit(at->slot)))) {
        count_retry(a, b, *at);
        return TSI_FAST_NEVER;
    }
    after_remote_free(a, b, at, slab, l, tsi_tag_seq(tag));
    return TSI_FAST_DONE;
}

/* The slot of a pointer in a chunk of a class with lines; false when it starts none. */
TSI_INLINE bool slot_in_chunk(const TsiClass* c, uint32_t chunk, uint32_t in_chunk, TsiPlace* at) {
    uint32_t line = in_chunk >> c->line_shift, in_line = in_chunk & c->line_mask;
    at->line_id = chunk << 10 | line;
    at->slab_id = chunk << 8 | line >> c->lines_log2;
    at->slot = tsi_class_slot(c, in_line);
    return tsi_class_starts(c, in_line);
}

TSI_INLINE bool frees_by_bit(uint64_t tag) {
    return (tsi_tag_state(tag) == TSI_SLAB_OWNED || tsi_tag_state(tag) == TSI_SLAB_ORPHAN) &&
           (tag & TSI_SLAB_HANDLED) == 0;
}

bool tsi_free_unbound(TsiArena* a, void* p) {
    TsiSpace* s = &a->space;
    uint64_t off = (uint64_t)((uintptr_t)p - (uintptr_t)s->base);
    uint32_t chunk = (uint32_t)(off >> TSI_CHUNK_SHIFT), in_chunk = (uint32_t)off & ((1u << TSI_CHUNK_SHIFT) - 1);
    TsiPlace at = {.cls = off < s->payload_bytes ? tsi_chunk_class(s, chunk) : 0};
    if (TSI_LIKELY(at.cls - 1 < TSI_SMALL_CLASSES) && slot_in_chunk(&s->classes->c[at.cls], chunk, in_chunk, &at)) {
        TsiSlab* slab = tsi_slab(s, at.slab_id);
        uint64_t tag = tsi_load_seq(&slab->tag);
        if (TSI_LIKELY(frees_by_bit(tag)) && free_slot(a, NULL, &at, slab, tag) == TSI_FAST_DONE) return true;
    }
    return tsi_free_pointer(a, p, 0);
}

/* The slab that busy names has this tag and is in no heap of the thread's, so its bracket ends without a handover.
 * B3: only this thread makes a heap its own, so the line or region was in none of its heaps all the while. An
 * orphan's heap has been swept, and the sweep did not leave the slab to whoever named it: then it would still be
 * OWNED. */
TSI_INLINE bool is_others(TsiArena* a, const TsiBinding* b, uint64_t tag) {
    if (tsi_tag_state(tag) == TSI_SLAB_ORPHAN) return true;
    return tsi_tag_state(tag) == TSI_SLAB_OWNED &&
           (uint32_t)(tsi_load_relaxed(&tsi_heap(a, tsi_tag_index(tag))->word) >> 8) != b->index;
}

/* It is in none of the thread's heaps. */
static TSI_NOINLINE TsiFast free_there(TsiBinding* b, TsiLine* l, const void* p) {
    TsiArena* a = b->arena;
    TsiSpace* s = &a->space;
    if ((uint8_t*)l == b->words) return TSI_FAST_MISSED;
    uint32_t line_id = tsi_line_id(s, l), chunk = line_id >> 10;
    TsiPlace at = {.cls = tsi_chunk_class(s, chunk)};
    uint32_t in_chunk = (uint32_t)((uintptr_t)p - (uintptr_t)b->base) & ((1u << TSI_CHUNK_SHIFT) - 1);
    /* The chunk may have changed class since the line was found: then p is in another of its lines, or in none. */
    if (!slot_in_chunk(&b->classes->c[at.cls], chunk, in_chunk, &at) || at.line_id != line_id) return TSI_FAST_MISSED;
    TsiSlab* slab = tsi_slab(s, at.slab_id);
    uint64_t tag = tsi_load_seq(&slab->tag);
    if (!frees_by_bit(tag)) return TSI_FAST_MISSED; /* its counts, too */
    if (!is_others(a, b, tag)) return TSI_FAST_MISSED;
    tsi_bracket_clear(b);
    return free_slot(a, b, &at, slab, tag);
}

TsiFast tsi_free_missed(TsiBinding* b, const void* p, TsiHeap** out) {
    TsiLine* l = (TsiLine*)(uintptr_t)tsi_load_relaxed(&b->busy);
    *out = tsi_line_heap(b, l); /* as in tsi_free_fast, where it is the thread's */
    return tsi_load_relaxed(&(*out)->word) == b->live_word ? free_here(b, *out, l, p) : free_there(b, l, p);
}

static int free_as_other(TsiArena* a, TsiBinding* b, const TsiPlace* at, uint32_t seq) {
    TsiLine* l = tsi_line(&a->space, at->line_id);
    _Atomic uint64_t* r = &l->remote[at->slot >> 5];
    for (;;) {
        uint64_t word;
        int bad = tsi_line_check(l, at->slot, seq, &word);
        if (bad != TSI_FREE_OK) return bad;
        if (b != NULL) tsi_count(&b->counters[at->cls].free_tries);
        /* seq_cst: publishes the caller's use of the object to the next owner (merge: acquire), and
         * orders the bit before the tag we read next */
        if (tsi_cas_seq(r, &word, word | tsi_remote_bit(at->slot))) {
            after_remote_free(a, b, at, tsi_slab(&a->space, at->slab_id), l, seq);
            return TSI_FREE_OK;
        }
        count_retry(a, b, *at);
    }
}

bool tsi_free_bumped(TsiBinding* b, const void* p) {
    TsiArena* a = b->arena;
    TsiSpace* s = &a->space;
    const TsiRegion* r = (const TsiRegion*)(uintptr_t)tsi_load_relaxed(&b->busy);
    TsiPlace at;
    uint64_t tag = 0;
    bool found = tsi_space_locate(s, p, &at) == TSI_PLACE_OK && tsi_class_is_region(at.cls);
    if (found) tag = tsi_load_seq(&tsi_slab(s, at.slab_id)->tag);
    if (found && at.slab_id == tsi_region_id(s, r) && is_others(a, b, tag)) tsi_bracket_clear(b);
    else tsi_bracket_missed(b);
    /* The class after the tag, as in tsi_free_place. */
    if (!found || !tsi_state_holds_objects(tag) || tsi_chunk_class(s, at.line_id >> 10) != at.cls) return false;
    return tsi_free_in_region(a, b, &at, tsi_tag_seq(tag), UINT32_MAX) == TSI_FREE_OK;
}

int tsi_free_place(TsiArena* a, TsiBinding* b, const TsiPlace* at, uint32_t seq, bool handled) {
    TsiSpace* s = &a->space;
    uint64_t tag = tsi_load_seq(&tsi_slab(s, at->slab_id)->tag);
    if (seq == 0) seq = tsi_tag_seq(tag);
    /* The class is read again after the tag: a chunk changes class only when all its slabs have left. */
    if (!tsi_state_holds_objects(tag) || tsi_tag_seq(tag) != seq || tsi_chunk_class(s, at->line_id >> 10) != at->cls)
        return SLAB_MISUSE_STALE_FREE;
    if (tsi_class_is_region(at->cls)) return tsi_free_in_region(a, b, at, seq, UINT32_MAX);
    if ((tag & TSI_SLAB_HANDLED) != 0 && !handled) {
        uint64_t remote, word = tsi_load_seq(&tsi_counts(s, at->line_id)[at->slot]);
        int bad = tsi_slot_check(s, at, seq, &remote);
        if (bad != TSI_FREE_OK) return bad;
        if (!tsi_count_move(&tsi_counts(s, at->line_id)[at->slot], seq, word)) return SLAB_MISUSE_DOUBLE_FREE;
    }
    int result;
    if (tsi_tag_state(tag) == TSI_SLAB_OWNED && b != NULL && free_as_owner(a, b, at, tag, &result)) return result;
    return free_as_other(a, b, at, seq);
}

SlabMisuse tsi_misuse_of(TsiPlaceResult r) {
    if (r == TSI_PLACE_INTERIOR) return SLAB_MISUSE_INTERIOR_POINTER;
    return r == TSI_PLACE_FOREIGN ? SLAB_MISUSE_FOREIGN_POINTER : SLAB_MISUSE_STALE_FREE;
}

bool tsi_free_pointer(TsiArena* a, void* p, size_t least) {
    TsiPlace at;
    TsiPlaceResult where = tsi_space_locate(&a->space, p, &at);
    int bad = where == TSI_PLACE_OK ? TSI_FREE_OK : (int)tsi_misuse_of(where);
    if (bad == TSI_FREE_OK && least != 0) {
        uint64_t tag;
        if (tsi_place_is_live(a, &at, &tag) && least > tsi_place_bytes(&a->space, &at)) bad = SLAB_MISUSE_SIZE_MISMATCH;
    }
    if (bad == TSI_FREE_OK) bad = tsi_free_place(a, tsi_binding_get(a, false), &at, 0, false);
    if (bad != TSI_FREE_OK) tsi_refuse(a, (SlabMisuse)bad, p);
    return bad == TSI_FREE_OK;
}
