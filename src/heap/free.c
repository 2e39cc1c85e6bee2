/*
 * free.c - frees other than the plain one: in other threads' slabs, in full lines, by handles.
 *
 * A remote free is one compare-exchange of the slot's bit into the remote word, under the seq that the slab had when
 * the call looked at it first. If the slab has left that incarnation, the exchange fails and the free is refused; it is
 * never tried again under a later one. Before it, all three words are read in the direction bits move (invariant F), so
 * a slot that is free is seen to be.
 *
 * In a slab that has issued handles every free, by pointer or handle, first makes the slot's count odd
 * by compare-exchange: that decides among racing frees and makes the handle stale. The owner makes it
 * even again when it takes the slot in (tsi_line_refill).
 */
#include "heap/free.h"

#include "heap/bump.h"
#include "heap/decay.h"
#include "heap/finish.h"
#include "heap/late_frees.h"
#include "heap/line.h"
#include "state/names.h"
#include "heap/ownerless.h"
#include "heap/partial.h"
#include "account/refuse.h"
#include "threads/registry.h"
#include "heap/room.h"
#include "heap/scrub.h"
#include "observe/stand_in.h"
#include "os/os.h"

/* ---- the owner ---- */

/* Frees an object, whose slab's tag was `tag`, in the thread's own heap, in a bracket of all of it; zeroes it first
 * where the allocator fills. Returns true with *result, TSI_FREE_OK or a SlabMisuse, uncounted; false, with *result as
 * it was, if the heap is not (any longer) the thread's: free remotely. [own thread, no lock held, no bracket open] */
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
        if (*result == TSI_FREE_OK) {
            if (TSI_UNLIKELY(a->fill)) tsi_scrub(tsi_place_address(s, at), s->classes->c[at->cls].size);
            tsi_line_freed(b, tsi_line(s, at->line_id), at->slot);
        }
    }
    tsi_bracket_leave(b, h);
    return ours;
}

/* Leaves the open bracket (tsi_bracket_missed) and frees from the pointer, like tsi_free_pointer with any size. Returns
 * true if p is freed, false if refused, which is counted and told. [own thread, in the open bracket] */
static TSI_NOINLINE bool free_missed(TsiBinding* b, void* p) {
    TsiArena* a = b->arena;
    tsi_bracket_missed(b);
    return tsi_free_pointer(a, p, 0);
}

bool tsi_free_left(TsiBinding* b, TsiHeap* h) {
    tsi_handover(b, h);
    return true;
}

/* Makes the slot's count odd in a line with handles, where that decides (handles.h). Returns true if this free is the
 * one. [owner, in bracket] */
static TSI_NOINLINE bool count_moves(TsiBinding* b, TsiLine* l, unsigned slot) {
    TsiSpace* s = &b->arena->space;
    _Atomic uint64_t* at = &tsi_counts(s, tsi_line_id(s, l))[slot];
    return tsi_count_move(at, tsi_remote_seq(0, tsi_load_relaxed(&l->remote[0])), tsi_load_relaxed(at));
}

/* Frees p in the line l, which b->busy names and which is in h, a LIVE heap of the thread's: a parked line is filed,
 * and in a line with handles the slot's count becomes odd. Closes the bracket, hands h over if it was asked for, or
 * else counts a step for decay.h. Returns true if it is freed, false if refused, which is counted and told.
 * [owner, in the open bracket] */
static TSI_NOINLINE bool free_own(TsiBinding* b, TsiHeap* h, TsiLine* l, void* p) {
    uint64_t slot = tsi_rotate_right((uint64_t)((uintptr_t)p - (uintptr_t)l->base), l->shift);
    if (slot >= TSI_LINE_SLOTS) return free_missed(b, p);
    uint64_t gone = tsi_load_relaxed(&l->freed) | tsi_load_relaxed(&l->avail) | tsi_remote_seen(l);
    if ((gone >> slot & 1) != 0) return free_missed(b, p);
    if (TSI_UNLIKELY(tsi_line_is_handled(l)) && !count_moves(b, l, (unsigned)slot)) return free_missed(b, p);
    tsi_line_freed_in(b, h, l, (unsigned)slot);
    tsi_bracket_clear(b);
    if (TSI_UNLIKELY(tsi_load_relaxed(&h->word) != b->live_word)) return tsi_free_left(b, h);
    tsi_decay_step(b);
    return true;
}

/* ---- other threads ---- */

/* Completes a free in a slab of no heap, with `tag`, read after the free: returns an ORPHAN if nothing lives there;
 * otherwise marks the slab for tsi_late_count, and once late frees have left TSI_LATE_PAGES_BYTES of dead pages in the
 * phase, gives pages of its next TSI_LATE_LOOK_BYTES of orphans back. b may be NULL.
 * [any thread, no lock held, no bracket open] */
static TSI_NOINLINE void after_orphans_free(TsiArena* a, TsiBinding* b, TsiPlace at, uint64_t tag) {
    /* if claimed instead: the claimer looks at the words afterwards */
    bool orphan = tsi_tag_state(tag) == TSI_SLAB_ORPHAN;
    if (orphan && tsi_slab_is_empty(&a->space, at.cls, at.slab_id)) {
        tsi_slab_complete(a, b, at.slab_id, tag);
        return;
    }
    tsi_late_mark(a, at.slab_id);
    TsiInc* inc;
    uint64_t era;
    if (orphan && tsi_partial_page_freed(a, &at, tag, &inc, &era)) tsi_inc_thin(a, b, inc, era, TSI_LATE_LOOK_BYTES);
}

/* Returns true, as for most late frees, if another object lives in the line and page of the freed slot, so that neither
 * slab nor page can go. [any thread, needs no lock] */
TSI_INLINE bool neighbour_lives(const TsiClass* shape, TsiLine* l, unsigned slot) {
    uint64_t w0 = tsi_load_seq(&l->remote[0]); /* as in tsi_slab_is_empty: of two last freers one sees both bits */
    uint64_t gone = tsi_remote_bits(w0, tsi_load_seq(&l->remote[1]));
    gone |= tsi_load_acquire(&l->freed); /* invariant F: remote, freed, avail */
    gone |= tsi_load_acquire(&l->avail);
    return (shape->full & ~gone & tsi_partial_slots(shape, slot)) != 0;
}

/* Completes a free in a slab of a heap of `inc`, which accepts no more; ref: the heap's, 0 if it has none. Where an end
 * has begun, its thread, or the heap's owner as it hands over, looks at the slab after this free's bit: its tag is
 * still OWNED after it. Where the ring has only moved on, and where the phase waits for a sweep, nobody may: the free
 * sweeps a piece, and the rest waits for the next ones (S5 in sweep.c). [any thread, no lock held, no bracket open] */
static TSI_NOINLINE void after_late_free(TsiArena* a, TsiBinding* b, TsiPlace at, TsiInc* inc, TsiRef ref) {
    bool nobodys = ref != 0 && (tsi_inc_state(inc) == TSI_INC_ADVANCED || tsi_load_relaxed(&inc->unswept));
    if (nobodys && tsi_slab_is_empty(&a->space, at.cls, at.slab_id))
        (void)tsi_inc_sweep(a, b, inc, tsi_ref_era(ref), TSI_PIECE_BYTES);
}

/* Completes a free in a slab with `tag`, read after the free: if the object was its last, or of its page, returns what
 * can go; in a slab of no heap marks it for tsi_late_count, in a heap that nobody owns notes its room. Cleanups may
 * run. b: the calling thread's binding, or NULL. [any thread, no lock held, no bracket open] */
TSI_INLINE void after_free(TsiArena* a, TsiBinding* b, const TsiPlace* at, uint64_t tag) {
    if (TSI_UNLIKELY(tsi_tag_state(tag) != TSI_SLAB_OWNED)) {
        bool neighbour = at->cls <= TSI_SMALL_CLASSES &&
                         neighbour_lives(&a->space.classes->c[at->cls], tsi_line(&a->space, at->line_id), at->slot);
        if (TSI_LIKELY(neighbour)) tsi_late_mark(a, at->slab_id);
        else after_orphans_free(a, b, *at, tag);
        return;
    }
    TsiHeap* h = tsi_heap(a, tsi_tag_index(tag));
    TsiRef ref = tsi_load_relaxed(&h->ref);
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    if (TSI_UNLIKELY(tsi_inc_state(inc) != TSI_INC_ACTIVE)) after_late_free(a, b, *at, inc, ref);
    /* seq_cst, after the bit: pairs with whoever lets go of the heap, see ownerless.h */
    else if (TSI_UNLIKELY(tsi_heap_state(tsi_load_seq(&h->word)) != TSI_HEAP_LIVE && ref != 0))
        tsi_ownerless_freed(a, b, at, h, ref);
}

/* Returns true if `threshold` slots are free in an armed line, so that its owner must be told (as tsi_line_disarm would
 * find), and nobody does so now (T3). seq_cst, after the bit: T4. [any thread, needs no lock] */
TSI_INLINE bool owner_waits(TsiSlab* slab, TsiLine* l, const TsiClass* shape) {
    uint64_t w0 = tsi_load_seq(&l->remote[0]);
    if (TSI_LIKELY((w0 & TSI_REMOTE_TOKEN) == 0) || tsi_load_seq(&slab->inbox) != 0) return false;
    uint64_t others = tsi_remote_bits(w0, tsi_load_seq(&l->remote[1]));
    /* Invariant F: remote before freed. */
    return tsi_popcount((others | tsi_load_acquire(&l->freed)) & shape->full) >= shape->threshold;
}

/* Completes a free whose bit was set under `seq` in l, a line of `slab`: tells an owner that waits for free slots, then
 * does what after_free does. Does nothing if the slab has left that incarnation: the thread that took it does the rest.
 * b may be NULL. [any thread, no lock held, no bracket open] */
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
    TsiInc* held = TSI_UNLIKELY(a->fill) ? tsi_scrub_hold(a, at->slab_id, seq) : NULL;
    int result = tsi_bump_free_shared(a, at, seq, generation, held != NULL, &tag);
    if (TSI_UNLIKELY(held != NULL)) tsi_scrub_let_go(held);
    if (b != NULL && result == TSI_FREE_OK) tsi_count(&b->counters[TSI_CLASS_REGION].free_tries);
    if (result == TSI_FREE_OK && tsi_tag_seq(tag) == seq) after_free(a, b, at, tag);
    return result;
}

/* Counts a retry, for the class of *at and its phase's label, or the one of no label if the phase has gone: another
 * thread changed the word between our look and our exchange. b: the thread's binding, or NULL.
 * [any thread, needs no lock] */
static TSI_NOINLINE void count_retry(TsiArena* a, TsiBinding* b, TsiPlace at) {
    tsi_sum_add(b, &tsi_counters(a, b, at.cls)->free_retries, 1);
    TsiRef ref;
    uint32_t label = TSI_LABEL_NONE;
    if (tsi_place_ref(a, &at, &ref)) label = tsi_inc_label(tsi_inc(&a->phases, tsi_ref_index(ref)));
    tsi_add_relaxed(&tsi_label(&a->phases.labels, label)->retries, 1);
    tsi_add_relaxed(&a->free_retries_by_label[at.cls][tsi_label_column(&a->phases.labels, label)], 1);
}

/* Returns true if a slab with this tag is OWNED or ORPHAN and has issued no handle, so that a bit alone frees.
 * [any thread, needs no lock] */
TSI_INLINE bool frees_by_bit(uint64_t tag) {
    _Static_assert(TSI_SLAB_OWNED == 1 && TSI_SLAB_ORPHAN == 2, "one comparison");
    return ((unsigned)tag & (TSI_SLAB_STATE | TSI_SLAB_HANDLED)) - 1u <= 1;
}

/* The place of a pointer into a chunk that serves a class with lines. */
typedef struct Spot {
    TsiLine* line;
    TsiSlab* slab;
    const TsiChunkKey* key_at;
    uint32_t key;
    unsigned slot;
} Spot;

/* Finds the place of the payload's byte `off`, in *out, by the bookkeeping at `meta` (TsiSpace's). Returns false, with
 * *out undefined, if the chunk serves no class with lines, or no slot begins there. The chunk may change class
 * afterwards: spot_is_live asks again. [any thread, needs no lock] */
TSI_INLINE bool spot_find(uint8_t* meta, const TsiChunkKey* keys, const TsiClassTable* classes, uint64_t off,
                          Spot* out) {
    out->key_at = &keys[off >> TSI_CHUNK_SHIFT];
    out->key = tsi_load_acquire(out->key_at); /* as in tsi_chunk_class */
    /* a chunk that was never used has key 0, and no words to read */
    if (TSI_UNLIKELY(out->key - sizeof(TsiClass) >= TSI_SMALL_CLASSES * sizeof(TsiClass))) return false;
    const TsiClass* shape = tsi_key_class(classes, out->key);
    uint32_t in_chunk = (uint32_t)off & ((1u << TSI_CHUNK_SHIFT) - 1), line = in_chunk >> tsi_key_line_shift(out->key);
    uint8_t* words = meta + (off >> TSI_CHUNK_SHIFT << TSI_META_SHIFT);
    out->line = (TsiLine*)(void*)(words + TSI_META_LINES) + line;
    out->slab = (TsiSlab*)(void*)words + (line >> shape->lines_log2);
    uint64_t slot = tsi_rotate_right(in_chunk & shape->line_mask, shape->unit_shift); /* as in tsi_free_fast */
    out->slot = (unsigned)slot;
    return slot < TSI_LINE_SLOTS;
}

/* Returns true if the slot, which spot_find has found, holds an object of the slab with this tag, read after that, that
 * a bit alone frees; then sets *word to its remote word, for set_bit. *word means nothing after false. Reads the class
 * again after the tag, as tsi_free_place does. [any thread, needs no lock] */
TSI_INLINE bool spot_is_live(const Spot* spot, uint64_t tag, uint64_t* word) {
    TsiLine* l = spot->line;
    if (TSI_UNLIKELY(!frees_by_bit(tag) || tsi_load_acquire(spot->key_at) != spot->key)) return false;
    /* acquire, and in this order, as in tsi_line_check; the compare-exchange does that for the last one */
    *word = tsi_load_acquire(&l->remote[spot->slot >> 5]);
    if (TSI_UNLIKELY(!tsi_remote_is(spot->slot >> 5, *word, tsi_tag_seq(tag)))) return false;
    uint64_t freed = tsi_load_acquire(&l->freed); /* a statement of its own: before avail */
    uint64_t gone = tsi_or_word(freed, &l->avail);
    return (gone >> spot->slot & 1) == 0 && (*word & tsi_remote_bit(spot->slot)) == 0;
}

/* Returns the place of a slot of line l, whose chunk has the key. [any thread, needs no lock] */
static TsiPlace place_of(const TsiSpace* s, const TsiLine* l, uint32_t key, unsigned slot) {
    uint32_t line_id = tsi_line_id(s, l);
    return (TsiPlace){line_id, tsi_slab_at(tsi_key_class(s->classes, key), line_id), key / sizeof(TsiClass), slot};
}

/* Frees a slot remotely by setting its bit, if its remote word still is *word. Returns false if that has changed, with
 * the present one in *word: no bit is set. Counts the try if b is not NULL. [any thread, needs no lock] */
TSI_INLINE bool set_bit(TsiBinding* b, TsiLine* l, unsigned cls, unsigned slot, uint64_t* word) {
    if (b != NULL) tsi_count_word(&b->counters[cls].free_tries);
    /* seq_cst: publishes the caller's use of the object to the next owner (merge: acquire), and
     * orders the bit before the tag we read next */
    return tsi_cas_seq(&l->remote[slot >> 5], word, *word | tsi_remote_bit(slot));
}

/* Counts a retry and frees from the slot, in line l in a chunk with `key`, after set_bit has failed there. Returns true
 * if it is freed, false if refused, which is counted and told. a: the arena where b is NULL, otherwise not read.
 * [any thread, no lock held, no bracket open] */
static TSI_NOINLINE bool free_again(TsiArena* a, TsiBinding* b, TsiLine* l, uint32_t key, unsigned slot) {
    if (b != NULL) a = b->arena;
    TsiPlace at = place_of(&a->space, l, key, slot);
    count_retry(a, b, at);
    return tsi_free_pointer(a, tsi_place_address(&a->space, &at), 0);
}

/* Completes a free of a slot of line l whose bit was set under this tag. Returns true. a: for a thread without a
 * binding. [any thread, no lock held, no bracket open] */
static TSI_NOINLINE bool freed(TsiArena* a, TsiBinding* b, TsiLine* l, uint32_t key, unsigned slot, uint64_t tag) {
    if (b != NULL) a = b->arena;
    TsiPlace at = place_of(&a->space, l, key, slot);
    after_remote_free(a, b, &at, tsi_slab(&a->space, at.slab_id), l, tsi_tag_seq(tag));
    return true;
}

/* Completes a free in heap h, which nobody owns, of a slot of l in a chunk with `key`: notes in h and its phase that
 * the class has room, or that a slab is empty, and takes h's empty slabs out if they are enough (ownerless.h). Returns
 * true; false, and does nothing, if its phase does not go on. a is not NULL; b may be.
 * [any thread, no lock held, no bracket open] */
static TSI_NOINLINE bool freed_ownerless(TsiArena* a, TsiBinding* b, TsiHeap* h, TsiLine* l, uint32_t key,
                                         unsigned slot) {
    TsiRef ref = tsi_load_relaxed(&h->ref);
    if (ref == 0 || tsi_inc_state(tsi_inc(&a->phases, tsi_ref_index(ref))) != TSI_INC_ACTIVE) return false;
    TsiPlace at = place_of(&a->space, l, key, slot);
    bool known = (tsi_load_seq(&h->roomy) & tsi_class_bit(at.cls)) != 0;
    if (!known || !neighbour_lives(&a->space.classes->c[at.cls], l, slot)) tsi_ownerless_freed(a, b, &at, h, ref);
    if (b != NULL) tsi_ownerless_again(b, ref);
    return true;
}

/* Completes a free in a slab of a heap. Returns true. If nobody owns the heap and its phase goes on, its next owner
 * looks at all its lines: the token stays, and the class has room, or the slab is empty (ownerless.h).
 * [any thread, no lock held, no bracket open] */
static TSI_NOINLINE bool freed_in_heap(TsiArena* a, TsiBinding* b, TsiLine* l, uint32_t key, unsigned slot,
                                       uint64_t tag) {
    if (b != NULL) a = b->arena;
    TsiHeap* h = tsi_heap(a, tsi_tag_index(tag));
    /* seq_cst, after the bit: pairs with adopt_locked. The adopter looks at a line that was left before by a relaxed
     * load, and that is ordered after the word by the seq_cst loads in between: of the word in the bracket, of the
     * stripe's waiters. x86-64 and arm64 keep to that; the language does not say so. */
    bool nobodys = tsi_heap_state(tsi_load_seq(&h->word)) == TSI_HEAP_DETACHED;
    return (nobodys && freed_ownerless(a, b, h, l, key, slot)) || freed(a, b, l, key, slot, tag);
}

/* Completes a free with this tag after its bit, where the heap is not LIVE; an orphan normally gets a mark. Returns
 * true. [any thread, no lock held, no bracket open] */
static TSI_NOINLINE bool freed_unowned(TsiArena* a, TsiBinding* b, TsiLine* l, uint32_t key, unsigned slot,
                                       uint64_t tag) {
    if (tsi_tag_state(tag) != TSI_SLAB_ORPHAN) return freed_in_heap(a, b, l, key, slot, tag);
    TsiArena* of = b != NULL ? b->arena : a;
    TsiSpace* s = &of->space;
    const TsiClass* shape = tsi_key_class(s->classes, key);
    if (TSI_UNLIKELY(!neighbour_lives(shape, l, slot))) return freed(a, b, l, key, slot, tag);
    uint32_t chunk, line = tsi_line_find(s, l, &chunk);
    tsi_late_mark_in(of, chunk, line >> shape->lines_log2);
    return true;
}

/* Frees another thread's object, which spot_is_live has found with `tag` and `word`, the commonest way: one
 * compare-exchange, then a look at the tag, the heap and the token. a: for a thread without a binding. Returns true if
 * it is freed, false if refused.
 *
 * Nothing is left to do where the tag has not changed and the heap is LIVE. The slab is its owner's to look at: a
 * thread that takes the heap away, because the phase ends or the ring moves on, changes the heap's word first and looks
 * at the words of its slabs afterwards. seq_cst on both sides, so either our bit is seen there, or the change here.
 * Before the change the phase has not ended, as far as this free can tell, even if its state says so already. `home` is
 * the heap of the tag, or 0 when a sweep is about to change that; record 0 is not LIVE.
 * [any thread, no lock held, no bracket open] */
TSI_INLINE bool free_spot(TsiArena* a, TsiBinding* b, const Spot* spot, uint64_t tag, uint64_t word) {
    TsiLine* l = spot->line;
    if (TSI_UNLIKELY(!set_bit(b, l, spot->key / sizeof(TsiClass), spot->slot, &word)))
        return free_again(a, b, l, spot->key, spot->slot);
    bool same = tsi_load_seq(&spot->slab->tag) == tag; /* as in after_remote_free */
    TsiHeap* h = b != NULL ? b->heaps_base : tsi_heap(a, 0);
    h = (TsiHeap*)(void*)((uint8_t*)h + tsi_load_relaxed(&l->home));
    if (TSI_UNLIKELY(!same)) return freed(a, b, l, spot->key, spot->slot, tag);
    if (TSI_UNLIKELY(tsi_heap_state(tsi_load_seq(&h->word)) != TSI_HEAP_LIVE))
        return freed_unowned(a, b, l, spot->key, spot->slot, tag);
    const TsiClass* shape = tsi_key_class(b != NULL ? b->classes : a->space.classes, spot->key);
    return TSI_LIKELY(!owner_waits(spot->slab, l, shape)) || freed(a, b, l, spot->key, spot->slot, tag);
}

bool tsi_free_unbound(TsiArena* a, void* p) {
    TsiSpace* s = &a->space;
    uint64_t off = (uint64_t)((uintptr_t)p - (uintptr_t)s->base), tag, word;
    Spot spot;
    if (TSI_LIKELY(off < s->payload_bytes && spot_find(s->meta, s->keys, s->classes, off, &spot)) &&
        TSI_LIKELY(spot_is_live(&spot, tag = tsi_load_seq(&spot.slab->tag), &word)))
        return free_spot(a, NULL, &spot, tag, word);
    return p == NULL || tsi_free_pointer(a, p, 0);
}

bool tsi_free_missed(TsiBinding* b, void* p) {
    TsiLine* l = (TsiLine*)(uintptr_t)tsi_load_relaxed(&b->busy);
    TsiHeap* h = tsi_line_heap(b, l); /* as in tsi_free_fast, where it is the thread's */
    uint64_t owner = tsi_load_relaxed(&h->word), tag, word;
    if (owner == b->live_word) return free_own(b, h, l, p);

    Spot spot;
    /* By `home`: where that is not this thread's, no sweep has left the line to it, and it has not taken the line
     * since. */
    if (TSI_UNLIKELY(owner != 0 && tsi_heap_binding(owner) == b->index)) return free_missed(b, p);

    uint64_t off = (uint64_t)((uintptr_t)p - (uintptr_t)b->base);
    if (TSI_UNLIKELY(!spot_find((uint8_t*)b->lines - TSI_META_LINES, b->keys, b->classes, off, &spot)))
        return free_missed(b, p);
    /* The chunk may have changed class since the line was found: then p is in another of its lines, or in none. */
    if (TSI_UNLIKELY(spot.line != l)) return free_missed(b, p);
    if (TSI_UNLIKELY(!spot_is_live(&spot, tag = tsi_load_seq(&spot.slab->tag), &word))) return free_missed(b, p);
    tsi_bracket_clear(b);
    return free_spot(NULL, b, &spot, tag, word);
}

/* Zeroes the object at *at, unless it is large, and frees it by its bit, under the stripe of its phase (scrub.h, X2),
 * if it lives in the slab incarnation `seq`; then does what follows (after_remote_free). Returns TSI_FREE_OK or a
 * SlabMisuse, uncounted. b may be NULL. [any thread, no lock held, no bracket open] */
static TSI_COLD int free_filled(TsiArena* a, TsiBinding* b, const TsiPlace* at, uint32_t seq) {
    TsiLine* l = tsi_line(&a->space, at->line_id);
    TsiInc* held = tsi_scrub_hold(a, at->slab_id, seq);
    if (held == NULL) return SLAB_MISUSE_STALE_FREE;

    uint64_t word;
    int bad = tsi_line_check(l, at->slot, seq, &word);
    if (bad == TSI_FREE_OK && at->cls != TSI_CLASS_LARGE)
        tsi_scrub(tsi_place_address(&a->space, at), a->space.classes->c[at->cls].size);
    while (bad == TSI_FREE_OK && !set_bit(b, l, at->cls, at->slot, &word)) {
        count_retry(a, b, *at);
        bad = tsi_line_check(l, at->slot, seq, &word);
    }

    tsi_scrub_let_go(held);
    if (bad == TSI_FREE_OK) after_remote_free(a, b, at, tsi_slab(&a->space, at->slab_id), l, seq);
    return bad;
}

/* Frees the object at *at by its bit, as any thread but the owner, if it lives in the slab incarnation `seq`, tried
 * again while other threads change the word; counts tries and retries, and does what follows (after_remote_free).
 * Returns TSI_FREE_OK or a SlabMisuse, uncounted. b: the calling thread's binding, or NULL.
 * [any thread, no lock held, no bracket open] */
static int free_as_other(TsiArena* a, TsiBinding* b, const TsiPlace* at, uint32_t seq) {
    if (TSI_UNLIKELY(a->fill)) return free_filled(a, b, at, seq);
    TsiLine* l = tsi_line(&a->space, at->line_id);
    for (uint64_t word;; count_retry(a, b, *at)) {
        int bad = tsi_line_check(l, at->slot, seq, &word);
        if (bad != TSI_FREE_OK) return bad;
        if (set_bit(b, l, at->cls, at->slot, &word)) break;
    }
    after_remote_free(a, b, at, tsi_slab(&a->space, at->slab_id), l, seq);
    return TSI_FREE_OK;
}

/* Returns true if other objects live in the region, by its counts, which are never too low (R4), and no page of it goes
 * alone. [any thread, needs no lock] */
TSI_INLINE bool neighbour_is_bumped(const TsiSpace* s, const TsiRegion* r, uint32_t slab_id) {
    uint64_t word = tsi_load_seq(&r->word); /* as in tsi_region_is_empty */
    uint32_t issued = tsi_load_acquire(&r->issued), gone = tsi_load_relaxed(&r->freed) + tsi_region_objects(word);
    return gone < issued && tsi_slab_class(s, slab_id)->slab_bytes <= tsi_os.page_bytes;
}

/* Completes a free of p in a region with `tag`, read after the free and of the same incarnation, like after_free.
 * Returns true. [own thread, no lock held, no bracket open] */
static TSI_NOINLINE bool freed_bumped_solo(TsiBinding* b, const TsiRegion* r, const void* p, uint64_t tag) {
    TsiArena* a = b->arena;
    TsiPlace at;
    bool found = tsi_space_locate(&a->space, p, &at) == TSI_PLACE_OK && tsi_class_is_region(at.cls);
    /* if it has left its incarnation, another thread does all that is left */
    if (found && at.slab_id == tsi_region_id(&a->space, r)) after_free(a, b, &at, tag);
    return true;
}

/* Completes a free of p in a region with `tag`, read after the free and of the same incarnation; normally only marks an
 * orphan. Returns true. [own thread, no lock held, no bracket open] */
static TSI_NOINLINE bool freed_bumped(TsiBinding* b, const TsiRegion* r, const void* p, uint64_t tag) {
    TsiArena* a = b->arena;
    uint32_t slab_id = tsi_region_id(&a->space, r);
    if (tsi_tag_state(tag) != TSI_SLAB_ORPHAN || !neighbour_is_bumped(&a->space, r, slab_id))
        return freed_bumped_solo(b, r, p, tag);
    tsi_late_mark(a, slab_id);
    return true;
}

bool tsi_free_bumped(TsiBinding* b, void* p) {
    TsiRegion* r = (TsiRegion*)(uintptr_t)tsi_load_relaxed(&b->busy);
    const TsiSpace* s = &b->arena->space;
    TsiSlab* slab = tsi_region_slab(s, r);
    uint64_t tag = tsi_load_seq(&slab->tag), now;
    bool orphan = tsi_tag_state(tag) == TSI_SLAB_ORPHAN;
    TsiHeap* h = orphan ? b->heaps_base : b->heaps_base + tsi_tag_index(tag);
    /* The slab that busy names is in no heap of the thread's, so its bracket ends without a handover. B3: only this
     * thread makes a heap its own, so the region was in none of its heaps all the while. An orphan's heap has been
     * swept, and the sweep did not leave the slab to a thread that named it: then it would still be OWNED. */
    bool others =
        orphan || (tsi_tag_state(tag) == TSI_SLAB_OWNED && tsi_heap_binding(tsi_load_relaxed(&h->word)) != b->index);
    if (TSI_UNLIKELY(!others || ((uintptr_t)p & (TSI_GRANULE - 1)) != 0)) return free_missed(b, p);

    tsi_bracket_clear(b);
    int result = tsi_bump_free_in_life(slab, r, p, tag, UINT32_MAX, false, &now);
    if (TSI_UNLIKELY(result != TSI_FREE_OK)) return tsi_free_pointer(b->arena, p, 0);

    tsi_count_word(&b->counters[TSI_CLASS_REGION].free_tries);
    /* see free_spot */
    if (TSI_UNLIKELY(now != tag)) return tsi_tag_seq(now) != tsi_tag_seq(tag) || freed_bumped(b, r, p, now);
    return TSI_LIKELY(tsi_heap_state(tsi_load_seq(&h->word)) == TSI_HEAP_LIVE) || freed_bumped(b, r, p, now);
}

int tsi_free_place(TsiArena* a, TsiBinding* b, const TsiPlace* at, uint32_t seq, bool handled) {
    TsiSpace* s = &a->space;
    uint64_t tag = tsi_load_seq(&tsi_slab(s, at->slab_id)->tag);
    if (seq == 0) seq = tsi_tag_seq(tag);
    /* The class is read again after the tag: a chunk changes class only when all its slabs have left. */
    if (!tsi_state_holds_objects(tag) || tsi_tag_seq(tag) != seq || tsi_class_of_line(s, at->line_id) != at->cls)
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

SlabMisuse tsi_misuse_of(const TsiArena* a, TsiPlaceResult r, const TsiPlace* at) {
    if (r == TSI_PLACE_FOREIGN) return SLAB_MISUSE_FOREIGN_POINTER;
    if (r == TSI_PLACE_GONE) return SLAB_MISUSE_STALE_FREE;
    if (at->cls == TSI_CLASS_CONT) return SLAB_MISUSE_INTERIOR_POINTER;
    /* Where the slab holds no object, the pointer is inside of none: the chunk serves another class by now. */
    uint64_t tag = tsi_load_relaxed(&tsi_slab(&a->space, at->slab_id)->tag);
    bool holds = tsi_state_holds_objects(tag) || tsi_tag_state(tag) == TSI_SLAB_INSIDE;
    return holds ? SLAB_MISUSE_INTERIOR_POINTER : SLAB_MISUSE_STALE_FREE;
}

void tsi_unlink_block(TsiArena* a, const TsiPlace* at, void* slot, void* block) {
    if (TSI_LIKELY(!tsi_os.strict_commit)) {
        tsi_stand_in_unlink(a, slot, block);
        return;
    }
    /* relaxed: read again under the stripe, which decides */
    uint32_t seq = tsi_tag_seq(tsi_load_relaxed(&tsi_slab(&a->space, at->slab_id)->tag));
    TsiInc* held = tsi_scrub_hold(a, at->slab_id, seq);
    if (held == NULL) return;
    tsi_stand_in_unlink(a, slot, block);
    tsi_scrub_let_go(held);
}

bool tsi_free_pointer(TsiArena* a, void* p, size_t least) {
    TsiPlace at;
    uint32_t seq = 0;
    void* slot = TSI_LIKELY(a->stand_ins == NULL) ? p : tsi_stand_in_slot(a, p, &seq);
    TsiPlaceResult where = tsi_space_locate(&a->space, slot, &at);
    int bad = where == TSI_PLACE_OK ? TSI_FREE_OK : (int)tsi_misuse_of(a, where, &at);
    if (bad == TSI_FREE_OK && least != 0) {
        uint64_t tag;
        bool small = tsi_place_is_live(a, &at, &tag) && least > tsi_object_bytes(a, &at);
        uint64_t now;
        /* the size was the object's only if it has not ended meanwhile */
        if (small && tsi_place_is_live(a, &at, &now) && tsi_tag_seq(now) == tsi_tag_seq(tag))
            bad = SLAB_MISUSE_SIZE_MISMATCH;
    }

    if (TSI_UNLIKELY(slot != p) && bad == TSI_FREE_OK) tsi_unlink_block(a, &at, slot, p);
    if (bad == TSI_FREE_OK) bad = tsi_free_place(a, tsi_binding_get(a, false), &at, seq, false);
    if (bad != TSI_FREE_OK) tsi_refuse(a, tsi_stand_in_misuse(a, p, (SlabMisuse)bad), p);
    else if (TSI_UNLIKELY(slot != p)) tsi_stand_in_drop(a, p, slot);
    return bad == TSI_FREE_OK;
}
