/*
 * line.c - full lines, and how they come back into use.
 *
 * A line whose avail is empty is refilled from its freed and remote bits if they are `threshold` or more. With fewer it
 * waits at the back of its room's queue and gathers more. With none it is *parked*: it leaves the room, and its owner
 * must learn when slots are free. The owner's own first free there does not find heap_at and files the line. Frees of
 * other threads see the *token*, one bit of remote word 0, and deliver it when `threshold` slots are free.
 *
 * Invariants
 *   T1  The token of a line is in exactly one place: in the remote word (armed), with a freer or in an
 *       inbox (on its way), or with the owner. TSI_LINE_ARMED is set while it is not with the owner.
 *   T2  A thread that takes the token out of the word delivers the line: to the inbox of the heap's owner, or, when
 *       nobody owns the heap or the owner is leaving, back into the word, and then looks again.
 *   T3  Inboxes hold slabs. A slab is linked into at most one: its link is claimed by a compare-exchange from 0. A slab
 *       that was returned and reused meanwhile may still sit in an old inbox; the thread that pops it there looks at
 *       all its lines and passes it on as a freer would (tsi_line_notify). So a freer that sees, after its bit, that
 *       the link is claimed need not take the token. The thread that has claimed the link makes it 0, and then looks at
 *       the lines that the slab has then, which may be another incarnation's.
 *   T4  Arming and freeing cross: the owner arms, then counts again; a freer sets its bit, then looks for
 *       the token. Both are seq_cst, so at least one sees the other.
 * So of a parked line fewer than `threshold` slots, all freed by others, can stay unnoticed, until its owner frees one
 * there, others free more, or the epoch ends.
 */
#include "base/check.h"

#include "base/probes.h"
#include "state/bracket.h"
#include "heap/line.h"
#include "state/names.h"
#include "observe/profile.h"
#include "heap/room.h"

void tsi_room_turn(const TsiSpace* s, TsiRoom* room, unsigned cls) {
    for (uint32_t at = room->back[cls], next; at != 0; at = next) {
        TsiLine* l = tsi_line(s, at - 1);
        next = l->link;
        l->link = room->head[cls];
        room->head[cls] = at;
    }
    room->back[cls] = 0;
}

void tsi_line_freed(TsiBinding* b, TsiLine* l, unsigned slot) { tsi_line_freed_in(b, tsi_line_heap(b, l), l, slot); }

void tsi_counts_even(TsiSpace* s, TsiLine* l, uint32_t line_id, uint32_t seq, uint64_t slots) {
    _Atomic uint64_t* counts = tsi_counts(s, line_id);
    tsi_line_mark_handled(l);
    for (; slots != 0; slots &= slots - 1) {
        _Atomic uint64_t* w = &counts[tsi_ctz64(slots)];
        uint64_t now = tsi_count_now(tsi_load_relaxed(w), seq);
        bool spent = (uint32_t)now >= TSI_COUNT_MAX;
        /* release: who reads the count (names.c) finds the slot free, or handed out with it */
        tsi_store_release(w, TSI_UNLIKELY(spent) ? (now & ~(uint64_t)UINT32_MAX) | TSI_COUNT_MAX : (now | 1) + 1);
    }
}

void tsi_line_counts_even(TsiSpace* s, TsiLine* l, const TsiClass* shape, uint64_t slots) {
    uint32_t id = tsi_line_id(s, l);
    /* seq_cst, as `counted` before. The slab's mark, not the line's: frees that took the slow path have moved counts in
     * all its lines. */
    uint64_t tag = tsi_load_seq(&tsi_slab(s, tsi_slab_at(shape, id))->tag);
    if ((tag & TSI_SLAB_HANDLED) != 0) tsi_counts_even(s, l, id, tsi_tag_seq(tag), slots);
}

/* Moves slots that others have freed, by the remote words r (l->remote), into the line's freed word; those that were
 * freed there already are counted as refused (TSI_REFUSED_LATE), each. Returns the freed word. [owner, in bracket] */
static uint64_t take_remote(TsiBinding* b, TsiLine* l, _Atomic uint64_t* r) {
    uint64_t freed = tsi_load_relaxed(&l->freed);
    for (unsigned half = 0; half < 2; half++) {
        uint64_t w = tsi_load_acquire(&r[half]); /* pairs with the freer's compare-exchange */
        uint64_t theirs = w & tsi_remote_mask(half), bits = theirs << 32 | theirs >> 32;
        if (bits == 0) continue;
        uint64_t twice = freed & bits;
        for (unsigned n = tsi_popcount(twice); n != 0; n--) {
            tsi_count(&b->refused[TSI_REFUSED_LATE]);
            tsi_probe_refusal(b->arena->owner, TSI_REFUSED_LATE, NULL);
        }
        freed |= bits;
        tsi_store_release(&l->freed, freed); /* invariant F: before the bits leave the remote word */
        while (!tsi_cas_seq(&r[half], &w, w & ~theirs)) {}
    }
    return freed;
}

unsigned tsi_line_refill(TsiBinding* b, TsiLine* l, const TsiClass* shape, unsigned least) {
    TsiSpace* s = &b->arena->space;
    uint64_t freed = tsi_load_relaxed(&l->freed);
    uint64_t others = tsi_remote_bits(tsi_load_seq(&l->remote[0]), tsi_load_seq(&l->remote[1])); /* T4 */
    unsigned n = tsi_popcount((freed | others) & shape->full);
    if (n < least) return 0;
    if (TSI_UNLIKELY(others != 0)) {
        freed = take_remote(b, l, l->remote);
        n = tsi_popcount(freed & shape->full);
    }

    uint64_t out = freed & shape->full;
    if (TSI_UNLIKELY(n > tsi_line_batch(l, shape))) out = tsi_lowest_bits(out, n = shape->batch);
    if (TSI_UNLIKELY(b->profile_mean != 0)) {
        out = tsi_profile_cut(b, l, shape->size, out);
        n = tsi_popcount(out);
    }

    /* seq_cst, after the remote bits were taken: a mark set before a free that did not see it is seen here */
    if (TSI_UNLIKELY(tsi_load_seq(&s->counted))) tsi_line_counts_even(s, l, shape, out);
    tsi_line_hand_out(l, out, freed & ~out, n);
    return n;
}

bool tsi_line_leave(TsiBinding* b, unsigned cls, TsiLine* l) {
    TsiArena* a = b->arena;
    const TsiClass* shape = &b->classes->c[cls];
    uint8_t flags = tsi_load_relaxed(&l->flags);
    uint64_t free = tsi_line_ready(l, shape);
    if (free == 0 && (flags & TSI_LINE_ARMED) == 0) {
        uint32_t id = tsi_line_id(&a->space, l);
        flags |= TSI_LINE_ARMED;
        tsi_store_relaxed(&l->flags, flags);
        (void)tsi_line_arm(&a->space, id,
                           tsi_tag_seq(tsi_load_relaxed(&tsi_slab(&a->space, tsi_slab_at(shape, id))->tag)));
        free = tsi_line_free_bits(&a->space, l, id); /* T4: slots may have been freed while we armed */
    }

    if (free == 0) {
        tsi_line_park(b, cls, l);
        return true;
    }

    if (tsi_popcount(free) >= shape->threshold) return false;
    tsi_room_push(a, tsi_heap(a, tsi_line_heap(b, l)->primary)->room, cls, l, false);
    return true;
}

/* ---- inbox ---- */

typedef enum Push { PUSHED, PUSH_CLOSED, PUSH_LINKED } Push;

/* Links a slab into b's inbox, by its own link. Returns PUSHED; PUSH_LINKED: its link is in use, since it is in an
 * inbox already, or about to be; PUSH_CLOSED: the thread has left, and the link is 0 again.
 * [any thread, needs no lock] */
static Push inbox_push(TsiSpace* s, TsiBinding* b, uint32_t slab_id) {
    TsiSlab* slab = tsi_slab(s, slab_id);
    uint32_t none = 0;
    if (!tsi_cas_seq(&slab->inbox, &none, 1)) return PUSH_LINKED; /* T3 */
    uint32_t head = tsi_load_acquire(&b->inbox);                  /* pairs with binding_make: open again */
    do {
        if (head == TSI_INBOX_CLOSED) {
            tsi_store_seq(&slab->inbox, 0); /* pairs with the next pusher's compare-exchange */
            return PUSH_CLOSED;
        }
        tsi_store_relaxed(&slab->inbox, head == TSI_INBOX_EMPTY ? 1 : head);
    } while (!tsi_cas_seq(&b->inbox, &head, slab_id + 2));
    return PUSHED;
}

/* Returns true if the heap has no owner, or one that is leaving: the next owner looks at all its lines. The word alone
 * would not do: a binding may have left and come back meanwhile. [any thread, needs no lock] */
static bool nobody_to_tell(TsiArena* a, uint64_t word) {
    unsigned state = tsi_heap_state(word);
    bool owned = state == TSI_HEAP_LIVE || state == TSI_HEAP_RETIRE || state == TSI_HEAP_REVOKED;
    return !owned || tsi_load_seq(&tsi_binding_at(a, word)->inbox) == TSI_INBOX_CLOSED;
}

/* Returns the number of lines of a slab of a size class, with its class in *cls and its first line in *first; 0, with
 * *first as it was, if the slab is none any more. [any thread, needs no lock] */
static uint32_t lines_of(const TsiSpace* s, uint32_t slab_id, unsigned* cls, uint32_t* first) {
    *cls = tsi_class_of_slab(s, slab_id);
    if (*cls == 0 || *cls > TSI_SMALL_CLASSES || tsi_slab_number(slab_id) >= tsi_chunk_slab_count(s, *cls)) return 0;
    *first = tsi_first_line(&s->classes->c[*cls], slab_id);
    return 1u << s->classes->c[*cls].lines_log2;
}

/* Takes the line's token out of its word if `threshold` slots are free, in the slab incarnation `seq`, and links the
 * slab into the inbox of the heap's owner; where nobody owns the heap, or the slab is in an inbox, puts the token back.
 * Returns true if the slab's link was claimed for nothing meanwhile: then the slab's other lines must be looked at.
 * [any thread, no bracket open] */
static bool line_deliver(TsiArena* a, uint32_t line_id, uint32_t slab_id, uint32_t seq) {
    TsiSpace* s = &a->space;
    unsigned threshold = tsi_slab_class(s, slab_id)->threshold;
    bool others = false;

    while (tsi_line_disarm(s, line_id, seq, threshold)) {
        uint64_t tag = tsi_load_seq(&tsi_slab(s, slab_id)->tag);
        /* Nobody allocates here any more. */
        if (tsi_tag_seq(tag) != seq || tsi_tag_state(tag) != TSI_SLAB_OWNED) return false;
        _Atomic uint64_t* heap_word = &tsi_heap(a, tsi_tag_index(tag))->word;
        uint64_t word = tsi_load_seq(heap_word);
        unsigned state = tsi_heap_state(word);
        /* SEIZED counts as nobody's: the trim may have looked at the line before our bit, and nobody looks later. */
        bool owned = state == TSI_HEAP_LIVE || state == TSI_HEAP_RETIRE || state == TSI_HEAP_REVOKED;
        Push p = owned ? inbox_push(s, tsi_binding_at(a, word), slab_id) : PUSH_CLOSED;
        if (p == PUSHED) return others;
        if (!tsi_line_arm(s, line_id, seq)) return owned && p == PUSH_CLOSED; /* T2 */
        /* look again: was the line popped, or the heap adopted, before the token was back? */
        if (p == PUSH_LINKED && tsi_load_seq(&tsi_slab(s, slab_id)->inbox) != 0) return others;
        if (p == PUSH_CLOSED && nobody_to_tell(a, tsi_load_seq(heap_word))) return others;
        if (p == PUSH_CLOSED) others = true;
    }

    return others;
}

void tsi_line_notify(TsiArena* a, uint32_t line_id, uint32_t slab_id, uint32_t seq) {
    tsi_changed(a);
    if (TSI_LIKELY(!line_deliver(a, line_id, slab_id, seq))) return;
    /* Freers of the slab's other lines found the link claimed by us and did nothing more. Where the slab has gone on
     * to another incarnation, which is why the token was void, so did freers of that one. */
    for (bool again = true; again;) {
        unsigned cls;
        uint32_t first = 0;
        uint64_t tag = tsi_load_seq(&tsi_slab(&a->space, slab_id)->tag);
        uint32_t lines = tsi_tag_state(tag) == TSI_SLAB_OWNED ? lines_of(&a->space, slab_id, &cls, &first) : 0;
        again = false;
        for (uint32_t i = 0; i < lines; i++) again |= line_deliver(a, first + i, slab_id, tsi_tag_seq(tag));
    }
}

void tsi_line_take_in(TsiBinding* b, const TsiHeap* h, unsigned cls, uint32_t line_id, uint32_t seq) {
    TsiSpace* s = &b->arena->space;
    const TsiClass* shape = &s->classes->c[cls];
    TsiLine* l = tsi_line(s, line_id);
    TsiRoom* room = tsi_heap(b->arena, h->primary)->room;
    uint8_t flags = tsi_load_relaxed(&l->flags);
    bool armed = (tsi_load_seq(&tsi_remote(s, line_id)[0]) & TSI_REMOTE_TOKEN) != 0;
    if (armed && tsi_line_disarm(s, line_id, seq, shape->threshold)) armed = false;
    if ((flags & TSI_LINE_ARMED) == 0 || armed) return;
    flags &= (uint8_t)~TSI_LINE_ARMED;
    tsi_store_relaxed(&l->flags, flags);
    if ((flags & TSI_LINE_PARKED) == 0 || room == NULL || (flags & TSI_LINE_RETIRED) != 0) return;
    /* since it was told of, its owner's free may have filed it, and it was used up and parked again */
    if (!tsi_line_leave(b, cls, l)) tsi_room_push(b->arena, room, cls, l, false);
    tsi_count(&b->counters[cls].unparked);
}

/* Takes in the tokens of a slab that was in the inbox, with its link 0 again: files its lines that have room, if its
 * heap is LIVE and the thread's. A heap of the thread's that was asked for is handed over first. Otherwise puts a token
 * into each line's word and passes it on as a freer would (tsi_line_notify). Does nothing for a slab that is OWNED no
 * more. [own thread, no lock held, no bracket open] */
static void inbox_take_in(TsiBinding* b, uint32_t slab_id) {
    TsiArena* a = b->arena;
    TsiSpace* s = &a->space;
    unsigned cls;
    uint32_t first, lines = lines_of(s, slab_id, &cls, &first);
    if (lines == 0) return;

    uint64_t tag = tsi_load_seq(&tsi_slab(s, slab_id)->tag);
    if (tsi_tag_state(tag) != TSI_SLAB_OWNED) return;
    TsiHeap* h = tsi_heap(a, tsi_tag_index(tag));

    /* Let go first of a heap that was asked for, or the tokens would keep coming back to this inbox. */
    uint64_t word = tsi_load_seq(&h->word);
    bool asked = tsi_heap_state(word) == TSI_HEAP_RETIRE || tsi_heap_state(word) == TSI_HEAP_REVOKED;
    if (asked && tsi_heap_binding(word) == b->index) tsi_handover(b, h);

    /* No bracket on another thread's heap: it would make sweeps leave our own heaps of that incarnation to us. */
    bool ours = tsi_load_seq(&h->word) == tsi_heap_word(b->index, TSI_HEAP_LIVE);
    if (!ours || !tsi_bracket_enter(b, h, tsi_busy_all(h))) {
        /* The slab is not ours (T3), or being taken from us: the tokens go back into the words, and on to the heap's
         * present owner. A token too many is harmless: lines that are not armed ignore it. */
        for (uint32_t i = 0; i < lines; i++) {
            (void)tsi_line_arm(s, first + i, tsi_tag_seq(tag));
            tsi_line_notify(a, first + i, slab_id, tsi_tag_seq(tag));
        }
        return;
    }

    if (tsi_tag_seq(tsi_load_relaxed(&tsi_slab(s, slab_id)->tag)) == tsi_tag_seq(tag)) {
        for (uint32_t i = 0; i < lines; i++) tsi_line_take_in(b, h, cls, first + i, tsi_tag_seq(tag));
    }
    tsi_bracket_leave(b, h);
}

/* Takes in each slab of a chain that was the inbox (inbox_take_in), its link 0 again. at: the chain's head, slab id +
 * 2, or the inbox's EMPTY or CLOSED, of which there is nothing to take. [own thread, no lock held, no bracket open] */
static void inbox_empty(TsiBinding* b, uint32_t at) {
    while (at >= 2 && at != TSI_INBOX_EMPTY) {
        uint32_t slab_id = at - 2;
        TsiSlab* slab = tsi_slab(&b->arena->space, slab_id);
        at = tsi_load_relaxed(&slab->inbox); /* set before the push that our swap acquired */
        tsi_store_seq(&slab->inbox, 0);      /* T3: may be linked again */
        inbox_take_in(b, slab_id);
    }
}

void tsi_inbox_drain(TsiBinding* b) {
    if (TSI_LIKELY(tsi_load_relaxed(&b->inbox) == TSI_INBOX_EMPTY)) return;
    inbox_empty(b, tsi_swap_acquire(&b->inbox, TSI_INBOX_EMPTY)); /* pairs with the pushers' compare-exchange */
}

void tsi_inbox_close(TsiBinding* b) { inbox_empty(b, tsi_swap_seq(&b->inbox, TSI_INBOX_CLOSED)); }
