/* hard.c - see hard.h. */
#include "heap/hard.h"

#include "heap/alloc.h"
#include "heap/bump.h"
#include "heap/heap.h"
#include "heap/scrub.h"
#include "threads/registry.h"

/* Returns the thread's heap to which a call with `ref` (see TsiRequest) leads: b->heap for 0, which may have been asked
 * for; otherwise a LIVE one. Returns NULL if there is none, or for TSI_REF_CURRENT. [own thread, needs no lock] */
static TsiHeap* heap_of(TsiBinding* b, TsiRef ref) {
    if (ref == TSI_REF_CURRENT) return NULL;
    TsiHeap* h = ref != 0 ? tsi_heap_cached(b, ref) : b->heap;
    return h != &tsi_no_heap ? h : NULL;
}

/* Takes a ready slot of cur[cls], drawn by b->order_dice, which is not 0, into *out. Returns DONE or HANDOVER; MISSED
 * with *out as it was and the bracket open, as tsi_alloc_fast does. [owner, opens the bracket] */
static TsiFast take_any(TsiBinding* b, TsiHeap* h, TsiLine* const* cur, unsigned cls, void** out) {
    uint64_t live = b->live_word;
    TsiLine* l = cur[cls];
    tsi_bracket_name(b, tsi_busy_line(l));
    uint64_t avail = tsi_load_relaxed(&l->avail);
    if (TSI_UNLIKELY(avail == 0 || !tsi_word_is(&h->word, live))) return TSI_FAST_MISSED;

    /* xorshift64 (G. Marsaglia, 2003); the first ready slot from a random one on */
    uint64_t dice = b->order_dice;
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    b->order_dice = dice;
    unsigned turn = (unsigned)(dice >> 32) % TSI_LINE_SLOTS;
    unsigned slot = (tsi_ctz64(tsi_rotate_right(avail, turn)) + turn) % TSI_LINE_SLOTS;

    tsi_store_relaxed(&l->avail, avail & ~(1ull << slot));
    *out = l->base + ((uint64_t)slot << l->shift);
    tsi_bracket_clear(b);
    return TSI_LIKELY(tsi_word_is(&h->word, live)) ? TSI_FAST_DONE : TSI_FAST_HANDOVER;
}

void* tsi_hard_alloc(TsiBinding* b, size_t size, TsiRef ref) {
    TsiHeap* h = heap_of(b, ref);
    if (TSI_UNLIKELY(h == NULL || tsi_tls.exiting)) return NULL;
    if (b->guard_left != 0) {
        if (TSI_UNLIKELY(b->guard_left == 1)) return NULL; /* counted on the common way, which makes the guard */
        b->guard_left--;
    }

    TsiRegion* r = tsi_load_relaxed(&h->region);
    uint32_t rel, bytes = tsi_bump_bytes(size);
    unsigned cls = tsi_class_of(size);
    void* p;
    bool bumps = size <= TSI_BUMP_MAX && tsi_bump_fits(r, bytes, &rel);
    TsiFast fast = bumps                ? tsi_bump_fast(b, h, r, rel, bytes, &p)
                   : b->order_dice != 0 ? take_any(b, h, tsi_cur_of(h), cls, &p)
                                        : tsi_alloc_fast(b, h, tsi_cur_of(h), cls, &p);
    if (TSI_UNLIKELY(fast == TSI_FAST_HANDOVER)) (void)tsi_alloc_left(b, h, p);
    else if (TSI_UNLIKELY(fast != TSI_FAST_DONE)) {
        tsi_fast_leave(b, h);
        return NULL;
    }

    /* If it is not zero the common way decides what that means. */
    size_t usable = bumps ? bytes : b->classes->c[cls].size;
    if (b->arena->fill && TSI_UNLIKELY(!tsi_scrub_is_zero(p, usable))) tsi_scrub_given(b->arena, p);
    return p;
}

/* Zeroes the object of region r that starts at p, all of its granules. Returns false, and does nothing, if no live
 * object starts there. [owner, in bracket] */
static bool scrub_bumped(TsiRegion* r, void* p) {
    uint64_t at = (uint64_t)((uintptr_t)p - (uintptr_t)tsi_load_relaxed(&r->base));
    uint32_t granule = (uint32_t)(at >> TSI_GRANULE_SHIFT), rel = tsi_load_relaxed(&r->rel);
    if ((at & (TSI_GRANULE - 1)) != 0 || tsi_load_relaxed(&tsi_load_relaxed(&r->map)[granule]) != tsi_region_life(r))
        return false;
    tsi_scrub(p, (size_t)tsi_region_granules_in(r, granule, rel >> TSI_GRANULE_SHIFT, tsi_region_life(r))
                     << TSI_GRANULE_SHIFT);
    return true;
}

/* Zeroes the object of line l that starts at p, all of its class's size; p is in the payload. Returns false, and does
 * nothing, if no live object starts there. [owner, in bracket] */
static bool scrub_slot(TsiBinding* b, TsiLine* l, void* p) {
    uint64_t slot = tsi_rotate_right((uint64_t)((uintptr_t)p - (uintptr_t)l->base), l->shift);
    if (slot >= TSI_LINE_SLOTS) return false;
    uint64_t gone = tsi_load_relaxed(&l->freed) | tsi_load_relaxed(&l->avail) | tsi_remote_seen(l);
    if ((gone >> slot & 1) != 0) return false;
    uint64_t off = (uint64_t)((uintptr_t)p - (uintptr_t)b->base);
    tsi_scrub(p, tsi_key_class(b->classes, tsi_load_relaxed(&b->keys[off >> TSI_CHUNK_SHIFT]))->size);
    return true;
}

bool tsi_hard_end(TsiBinding* b, void* p) {
    if (!b->arena->fill) return true;
    uint64_t off = (uint64_t)((uintptr_t)p - (uintptr_t)b->base), live = b->live_word;
    if (TSI_UNLIKELY(off >= b->covered)) {
        b->covered = tsi_load_acquire(&b->arena->space.covered); /* as in free_never */
        if (off >= b->covered) return false;
    }

    uint32_t entry = tsi_load_acquire(&b->entries[off >> TSI_LINE_MIN_SHIFT]); /* as in tsi_free_fast */
    bool region = (entry & TSI_ENTRY_REGION) != 0;
    TsiRegion* r = (TsiRegion*)(void*)b->words + (entry & ~TSI_ENTRY_REGION);
    TsiLine* l = (TsiLine*)(void*)b->words + (entry & ~TSI_ENTRY_REGION);

    /* as in tsi_free_fast and tsi_bump_free */
    tsi_bracket_name(b, region ? tsi_busy_region(r) : tsi_busy_line(l));
    uint32_t heap_at = region ? tsi_load_relaxed(&r->heap_at) : tsi_load_relaxed(&l->heap_at);
    TsiHeap* h = (TsiHeap*)(void*)((uint8_t*)b->heaps_base + heap_at);
    bool own = tsi_word_is(&h->word, live) && (region ? scrub_bumped(r, p) : scrub_slot(b, l, p));
    if (TSI_UNLIKELY(!own)) {
        tsi_bracket_missed(b);
        return false;
    }

    tsi_bracket_clear(b);
    if (TSI_UNLIKELY(!tsi_word_is(&h->word, live))) tsi_handover(b, h);
    return true;
}
