/*
 * room.h - a room's queue of lines with free slots, and how many each has. Inlined, since each used-up line needs it.
 * All inside the owner's bracket.
 */
#ifndef TSI_HEAP_ROOM_H
#define TSI_HEAP_ROOM_H

#include "state/arena.h"

/* LOOKS: lines looked at in a row. SETTLED: lines that the queue must have given before the room counts as settled:
 * objects come and go, and as many live as before. Then a few poor lines in a row are chance, so a settled room takes a
 * new slab only where the next lines do not have half of the slots asked for either. */
enum { TSI_ROOM_LOOKS = 8, TSI_ROOM_SETTLED = 4096 };
enum { TSI_LINE_YOUNG = 64 /* slots handed out */ };

/* Returns the slots, a bit each, that a refill could hand out, as far as the owner sees: those freed by itself or by
 * others, without the ones in avail. [owner, in bracket] */
TSI_INLINE uint64_t tsi_line_ready(const TsiLine* l, const TsiClass* shape) {
    return (tsi_load_relaxed(&l->freed) | tsi_remote_seen(l)) & shape->full;
}

/* Returns the number of slots that a refill hands out at most. A line that has handed out few may be of large objects
 * that live one at a time: then a freed slot is used again before pages that nobody has touched. [owner, in bracket] */
TSI_INLINE unsigned tsi_line_batch(const TsiLine* l, const TsiClass* shape) {
    return tsi_load_relaxed(&l->issued) < TSI_LINE_YOUNG ? shape->batch : TSI_LINE_SLOTS;
}

/* Files a line that has free slots, and is in no queue, in the room's queue of its class: as the next one if `front`,
 * otherwise at the back. The line is LISTED and not parked then, and unless it has issued handles its heap_at is its
 * home, so that the owner's fast frees find it again. [owner, in bracket] */
TSI_INLINE void tsi_room_push(TsiArena* a, TsiRoom* room, unsigned cls, TsiLine* l, bool front) {
    uint32_t* stack = front ? &room->head[cls] : &room->back[cls];
    tsi_store_relaxed(&l->flags, (uint8_t)((tsi_load_relaxed(&l->flags) & ~TSI_LINE_PARKED) | TSI_LINE_LISTED));
    if (!tsi_line_is_handled(l)) tsi_store_relaxed(&l->heap_at, tsi_load_relaxed(&l->home));
    l->link = *stack;
    *stack = tsi_line_id(&a->space, l) + 1;
}

/* Frees a slot, which the caller has checked, in a line of h: sets its bit in `freed`. Puts a parked line, unless it is
 * retired, at the back of its queue in the room of the heap's primary, if that has a room, and counts it as unparked;
 * where h is not its own primary, also counts in the primary's `takes`. [owner, in bracket] */
TSI_INLINE void tsi_line_freed_in(TsiBinding* b, const TsiHeap* h, TsiLine* l, unsigned slot) {
    /* release: pairs with the acquire in tsi_slot_check */
    tsi_store_release(&l->freed, tsi_load_relaxed(&l->freed) | 1ull << slot);
    if ((tsi_load_relaxed(&l->flags) & (TSI_LINE_PARKED | TSI_LINE_RETIRED)) != TSI_LINE_PARKED) return;
    TsiArena* a = b->arena;
    TsiRoom* room = h->room;
    if (TSI_UNLIKELY(h->primary != h->index)) {
        TsiHeap* primary = tsi_heap(a, h->primary);
        tsi_count(&primary->takes);
        room = primary->room;
    }
    unsigned cls = tsi_class_of_line(&a->space, tsi_line_id(&a->space, l));
    if (room == NULL) return;
    tsi_room_push(a, room, cls, l, false);
    tsi_count(&b->counters[cls].unparked);
    tsi_changed(a);
}

/* Parks a used-up line without a free slot, whose token is not with the owner (TSI_LINE_ARMED), and counts it. From
 * here on a freer sees the token, or a heap_at of 0. The caller takes it out of the room's current lines.
 * [owner, in bracket] */
TSI_INLINE void tsi_line_park(TsiBinding* b, unsigned cls, TsiLine* l) {
    tsi_store_relaxed(&l->flags, tsi_load_relaxed(&l->flags) | TSI_LINE_PARKED);
    tsi_store_relaxed(&l->heap_at, 0);
    tsi_count(&b->counters[cls].parked);
}

/* Moves the back of the class's queue to its front, which is empty, in the order in which its lines came; the back is
 * empty then. [owner, in bracket] */
void tsi_room_turn(const TsiSpace* s, TsiRoom* room, unsigned cls);

/* Takes out the line of the class's queue that has waited longest of those with slots ready, or with `least` free, or
 * in the second half of the looks `lower`; a line without any comes out, too: it is in the queue wrongly. Looks at
 * TSI_ROOM_LOOKS at most; those with less go to the back. Returns the line, not LISTED any more, or NULL if none has
 * enough. Sets *n to the number of free slots of the last line looked at, if there was one. [owner, in bracket] */
TSI_INLINE TsiLine* tsi_room_pop(const TsiSpace* s, TsiRoom* room, const TsiClass* shape, unsigned cls, unsigned least,
                                 unsigned lower, unsigned* n) {
    for (unsigned looks = 0; looks < TSI_ROOM_LOOKS; looks++) {
        if (room->head[cls] == 0) tsi_room_turn(s, room, cls);
        uint32_t at = room->head[cls];
        if (at == 0) return NULL;
        TsiLine* l = tsi_line(s, at - 1);
        room->head[cls] = l->link;
        uint64_t free = tsi_line_ready(l, shape);
        *n = tsi_popcount(free);
        if (looks == TSI_ROOM_LOOKS / 2) least = lower;
        if (tsi_load_relaxed(&l->avail) != 0 || free == 0 || *n >= least) { /* 0: a list that is wrong */
            tsi_store_relaxed(&l->flags, tsi_load_relaxed(&l->flags) & (uint8_t)~TSI_LINE_LISTED);
            if (l->link != 0) __builtin_prefetch(tsi_line(s, l->link - 1), 1); /* not touched for long */
            return l;
        }
        l->link = room->back[cls];
        room->back[cls] = at;
    }

    return NULL;
}

#endif
