/*
 * heap.c - birth, look-up, adoption and end of heaps.
 *
 * A heap is born under its incarnation's stripe, which checks the state: either a close sees the heap in the list, or
 * the birth sees the close. Rooms are caches, thrown away when a heap changes hands and rebuilt by a walk over its
 * slabs. A thread may own several heaps of one incarnation (adopted ones); the first, its primary, has the room that
 * all of them allocate from.
 */
#include "heap/heap.h"

#include "base/check.h"
#include "state/bracket.h"
#include "heap/bump.h"
#include "heap/fast.h"
#include "heap/line.h"
#include "heap/room.h"

#include <string.h>

enum { LITTLE = 8 /* slabs */ };

TsiHeap tsi_no_heap;
static TsiLine no_line;
TsiLine* tsi_no_cur[TSI_SMALL_CLASSES + 1];

void tsi_heap_init(void) {
    for (unsigned i = 0; i <= TSI_SMALL_CLASSES; i++) tsi_no_cur[i] = &no_line;
    tsi_store_relaxed(&tsi_no_heap.region, &tsi_no_region);
}

/* ---- rooms ---- */

bool tsi_heap_ensure_room(TsiBinding* b, TsiHeap* h) {
    uint32_t index;
    if (h->room != NULL) return true;
    if (!tsi_record_take(&b->arena->rooms, b->room_cache, &b->room_count, &index)) return false;
    TsiRoom* room = tsi_table_at(&b->arena->rooms, index);
    room->index = index;
    memcpy(room->cur, tsi_no_cur, sizeof room->cur);
    memset(room->head, 0, sizeof room->head);
    memset(room->back, 0, sizeof room->back);
    memset(room->served, 0, sizeof room->served);
    h->room = room;
    if (b->heap == h) b->cur = room->cur;
    return true;
}

void tsi_heap_rebuild_room(TsiBinding* b, TsiHeap* h) {
    TsiArena* a = b->arena;
    const TsiSpace* s = &a->space;
    TsiRoom* room = tsi_heap(a, h->primary)->room;

    for (uint32_t at = tsi_load_relaxed(&h->slabs); at != 0; at = tsi_slab(s, at - 1)->next) {
        uint32_t id = at - 1;
        unsigned cls = tsi_class_of_slab(s, id);
        if (cls > TSI_SMALL_CLASSES) continue;
        const TsiClass* shape = &s->classes->c[cls];
        for (uint32_t i = 0, first = tsi_first_line(shape, id); i < 1u << shape->lines_log2; i++) {
            TsiLine* l = tsi_line(s, first + i);
            uint8_t flags = tsi_load_relaxed(&l->flags) & (uint8_t) ~(TSI_LINE_LISTED | TSI_LINE_PARKED);
            tsi_store_relaxed(&l->flags, flags);
            if ((flags & TSI_LINE_RETIRED) != 0) tsi_store_relaxed(&l->flags, flags | TSI_LINE_PARKED);
            else if (tsi_load_relaxed(&l->avail) != 0 || !tsi_line_leave(b, cls, l))
                tsi_room_push(a, room, cls, l, false);
        }
    }
}

/* ---- birth, look-up, adoption ---- */

/* Puts the heap at the head of the incarnation's list. [stripe held] */
static void heap_join_locked(TsiArena* a, TsiInc* inc, TsiHeap* h) {
    TSI_HOLDS(tsi_inc_lock(inc));
    h->inc_prev = 0;
    h->inc_next = inc->heaps;
    if (h->inc_next != 0) tsi_heap(a, h->inc_next - 1)->inc_prev = h->index + 1;
    inc->heaps = h->index + 1;
    tsi_store_relaxed(&inc->heap_count, tsi_load_relaxed(&inc->heap_count) + 1);
}

/* Adopts the first ownerless (DETACHED) heap of the incarnation that has room for the class; with cls 0 any heap, also
 * a lent one, since a lent heap has room for none. Lowers the incarnation's `detached`. Returns it, LIVE for b but in
 * no chain yet, or NULL if there is none. [own thread, stripe held] */
static TsiHeap* adopt_locked(TsiBinding* b, TsiInc* inc, unsigned cls) {
    TSI_HOLDS(tsi_inc_lock(inc));
    for (uint32_t at = inc->heaps; at != 0 && (cls == 0 || tsi_load_relaxed(&inc->detached) != 0);) {
        TsiHeap* h = tsi_heap(b->arena, at - 1);
        if (cls == 0) (void)tsi_heap_recall_locked(b->arena, h);
        uint64_t seen = tsi_detached_word();
        bool suits = cls == 0 || (tsi_load_seq(&h->roomy) & tsi_class_bit(cls)) != 0; /* O2 */
        /* seq_cst: pairs with the detacher's; its plain stores to the heap are before ours */
        if (suits && tsi_cas_seq(&h->word, &seen, tsi_heap_word(b->index, TSI_HEAP_LIVE))) {
            tsi_sub_relaxed(&inc->detached, 1);
            return h;
        }
        at = h->inc_next;
    }
    return NULL;
}

TsiHeap* tsi_heap_birth_locked(TsiArena* a, TsiInc* inc, TsiRef ref, uint32_t index, uint64_t word) {
    TSI_HOLDS(tsi_inc_lock(inc));
    TsiHeap* h = tsi_heap(a, index);
    h->index = index;
    h->room = NULL;
    tsi_store_relaxed(&h->region, &tsi_no_region);
    h->empty_regions = h->looked = h->solo = 0;
    h->bumped = 0;
    h->ranked = false;

    tsi_store_relaxed(&h->key, ref);
    h->ring = (tsi_load_relaxed(&inc->id) & TSI_DOMAIN_ID_BIT) == 0;
    /* in shared mode threads share a few heaps in such an epoch: there is nothing to save */
    bool classes = h->ring && (a->options.shared || a->options.bump == TSI_BUMP_DOMAINS);
    h->bumps = a->options.bump != TSI_BUMP_OFF && !classes;
    h->regions = h->again = 0;
    h->thin_at = 0;

    tsi_store_relaxed(&h->slabs, 0);
    tsi_store_relaxed(&h->slab_count, 0);
    tsi_store_relaxed(&h->slab_bytes, 0);
    h->primary = index;
    tsi_store_relaxed(&h->takes, 0);
    h->adopted = 0;
    h->skip = 0;
    h->revoker = 0;
    tsi_store_relaxed(&h->slow, 0);
    /* release: pairs with view_slab and tsi_slab_ref: the tags of slabs that the record had before have changed */
    tsi_store_release(&h->ref, ref);

    heap_join_locked(a, inc, h);
    tsi_store_release(&h->word, word); /* publishes the fields; who takes it from its owner holds the stripe */
    return h;
}

/* Returns the binding's primary in the incarnation, LIVE, or the heap there that it has lent, taken back into its
 * chain; or NULL: then *asked is a heap of its own there that is not LIVE, since it was asked for, or NULL. After a
 * heap *asked means nothing. [own thread, stripe held] */
static TsiHeap* find_own_locked(TsiBinding* b, TsiInc* inc, TsiHeap** asked) {
    TSI_HOLDS(tsi_inc_lock(inc));
    *asked = NULL;

    for (uint32_t at = inc->heaps; at != 0;) {
        TsiHeap* h = tsi_heap(b->arena, at - 1);
        uint64_t word = tsi_load_relaxed(&h->word);
        bool live = tsi_heap_state(word) == TSI_HEAP_LIVE;
        at = h->inc_next;
        if (tsi_heap_state(word) == TSI_HEAP_LENT) {
            if (tsi_heap_take_back(b, h, tsi_load_relaxed(&h->ref))) return h; /* H4 */
            continue;
        }
        if (tsi_heap_binding(word) != b->index) continue;
        if (live && h->primary == h->index) return h;
        if (!live) *asked = h;
    }

    return NULL;
}

TsiBirth tsi_heap_make(TsiBinding* b, TsiRef ref, TsiHeap** out) {
    TsiArena* a = b->arena;
    uint32_t index;
    *out = NULL;
    if (!tsi_record_take(&a->heaps, b->heap_cache, &b->heap_count, &index)) return TSI_BIRTH_NO_MEMORY;

    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    uint64_t now = tsi_inc_opening_ns(inc, ref), live = tsi_heap_word(b->index, TSI_HEAP_LIVE);
    bool born = false, adopted = false, active;
    for (TsiHeap* asked = NULL;;) {
        tsi_phase_lock(inc);
        active = tsi_ref_is_active(&a->phases, ref);
        if (active) *out = find_own_locked(b, inc, &asked);
        if (active && *out == NULL && asked != NULL) { /* B5 */
            tsi_phase_unlock(inc);
            tsi_handover(b, asked);
            continue;
        }
        if (active && *out == NULL) adopted = (*out = adopt_locked(b, inc, 0)) != NULL;
        if (active && *out == NULL) born = (*out = tsi_heap_birth_locked(a, inc, ref, index, live)) != NULL;
        if (active) tsi_inc_opened_locked(inc, now);
        tsi_phase_unlock(inc);
        break;
    }

    if (!born) tsi_record_give(&a->heaps, b->heap_cache, &b->heap_count, index);
    if (!active) return TSI_BIRTH_STALE;
    if (born || adopted) tsi_own_link(b, *out);
    if (born) b->begun++;
    if (born || adopted) (*out)->born = b->begun;
    if (adopted) tsi_store_relaxed(&(*out)->key, ref); /* H2: the first one here */

    tsi_heap_found(b, *out, ref);
    if (adopted && tsi_bracket_enter(b, *out, tsi_busy_all(*out))) {
        if (tsi_load_relaxed(&(*out)->ref) == ref) { /* as in alloc_in_heap */
            (*out)->primary = (*out)->index;
            /* regions need no room */
            bool bare = (*out)->regions == tsi_load_relaxed(&(*out)->slab_count);
            if (!bare && tsi_heap_ensure_room(b, *out)) tsi_heap_rebuild_room(b, *out);
        }
        tsi_bracket_leave(b, *out);
    }
    return TSI_BIRTH_OK;
}

bool tsi_heap_adopt_more(TsiBinding* b, TsiHeap* h, unsigned cls) {
    TsiArena* a = b->arena;
    TsiInc* inc = tsi_heap_inc(a, h);
    if (TSI_LIKELY((tsi_load_relaxed(&inc->roomy) & tsi_class_bit(cls)) == 0)) return false;
    if (!tsi_heap_ensure_room(b, h)) return false;

    tsi_phase_lock(inc);
    (void)tsi_and_seq(&inc->roomy, ~tsi_class_bit(cls)); /* O2: before the heaps are looked at */
    TsiHeap* more = tsi_ref_is_active(&a->phases, tsi_load_relaxed(&h->ref)) ? adopt_locked(b, inc, cls) : NULL;
    if (more != NULL) (void)tsi_or_seq(&inc->roomy, tsi_class_bit(cls)); /* there may be others */
    tsi_phase_unlock(inc);
    if (more == NULL) return false;

    h->adopted += tsi_load_relaxed(&more->slab_count);
    tsi_own_link(b, more);
    more->born = b->begun;
    more->primary = h->index;
    tsi_store_relaxed(&more->key, 0); /* H2: for hints from when it was another's first */
    /* Our bracket names all heaps of the incarnation, `more` from its compare-exchange on. */
    tsi_heap_rebuild_room(b, more);
    return true;
}

/* ---- letting go ---- */

void tsi_heap_detach_locked(TsiBinding* b, TsiHeap* h) {
    TSI_HOLDS(tsi_inc_lock(tsi_heap_inc(b->arena, h)));
    TsiArena* a = b->arena;
    tsi_own_unlink(b, h);
    tsi_room_give(a, b, h);
    h->primary = h->index;
    h->adopted = 0;
    tsi_add_relaxed(&tsi_heap_inc(a, h)->detached, 1);
    /* seq_cst: publishes the owner's plain stores to the next owner or sweeper */
    tsi_store_seq(&h->word, tsi_detached_word());
}

bool tsi_heap_lend(TsiBinding* b, TsiPhaseWords* words, TsiRef ref, uint32_t label) {
    TsiHeap* h = ref != 0 ? tsi_phase_heap(b, words, ref) : NULL;
    uint64_t live = tsi_heap_word(b->index, TSI_HEAP_LIVE);
    if (h == NULL || b->live_word != live) return false;
    /* in a bracket: another thread may be ending the phase */
    tsi_bracket_name(b, tsi_busy_all(h));
    bool lends = tsi_word_is(&h->word, live) && h->room == NULL && h->regions == tsi_load_relaxed(&h->slab_count);
    if (lends && TSI_UNLIKELY(tsi_bump_teaches(b, h, label))) tsi_bump_learn(b, h, label);
    tsi_bracket_clear(b);
    if (TSI_UNLIKELY(!tsi_word_is(&h->word, live))) {
        tsi_handover(b, h);
        return false;
    }

    if (TSI_UNLIKELY(!lends)) return false;
    tsi_own_unlink(b, h); /* before the exchange: after that another thread may have the chain's links */
    /* seq_cst: publishes the owner's plain stores to the taker; decides between us and a sweep */
    if (TSI_LIKELY(tsi_cas_seq(&h->word, &live, tsi_lent_word(b->index)))) return true;
    tsi_own_link(b, h);
    return false;
}

void tsi_heap_let_go(TsiBinding* b, TsiRef ref) {
    TsiHeap* h = ref != 0 ? tsi_heap_cached(b, ref) : NULL;
    if (h == NULL) return; /* in shared mode it is a bank's */
    /* The thread that ends the phase learns for its own next one; this one learns here what the phase has needed so
     * far. */
    if (h->ranked && tsi_bracket_enter(b, h, tsi_busy_all(h))) {
        tsi_bump_learn(b, h, tsi_inc_label(tsi_heap_inc(b->arena, h)));
        tsi_bracket_leave(b, h);
    }
    uint64_t live = tsi_heap_word(b->index, TSI_HEAP_LIVE);
    (void)tsi_cas_seq(&h->word, &live, tsi_heap_word(b->index, TSI_HEAP_RETIRE)); /* as in tsi_heaps_detach_all */
    /* A small heap keeps its slabs: a task that goes from thread to thread would take a slab for each turn. */
    if (tsi_load_relaxed(&h->slab_count) > LITTLE) tsi_handover_last(b, h);
    else tsi_handover(b, h);
}

void tsi_heaps_detach_all(TsiBinding* b) {
    while (b->own_heaps != 0) {
        TsiHeap* h = tsi_heap(b->arena, b->own_heaps - 1);
        if (tsi_heap_state(tsi_load_acquire(&h->word)) == TSI_HEAP_DEAD) { /* pairs with the sweep's store */
            tsi_heap_drop_own(b, h);
            continue;
        }
        uint64_t live = tsi_heap_word(b->index, TSI_HEAP_LIVE);
        /* LIVE -> RETIRE; any other state was set by a sweep or an advance */
        (void)tsi_cas_seq(&h->word, &live, tsi_heap_word(b->index, TSI_HEAP_RETIRE));
        tsi_handover_last(b, h);
    }
}

TSI_COLD void* tsi_alloc_left(TsiBinding* b, TsiHeap* h, void* p) {
    tsi_handover(b, h);
    return p;
}

void tsi_fast_leave(TsiBinding* b, TsiHeap* h) {
    tsi_bracket_missed(b);
    if (!tsi_heap_is_live(b, h)) tsi_handover(b, h); /* h was asked for, whatever busy named */
}
