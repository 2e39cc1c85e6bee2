/*
 * alloc.c - allocation when the current line has no slot ready.
 *
 * An allocation tries in order: the current line, refilled from what was freed; the next line with room; an ownerless
 * heap of the same incarnation; a slab (warm, pooled, fresh). A heap that bumps does that first (bump.c), for sizes up
 * to 4 KiB.
 *
 * All of it runs inside the bracket that names the whole incarnation, system calls for fresh memory included: a close
 * meanwhile leaves the heap to this thread.
 */
#include "heap/alloc.h"

#include "base/check.h"
#include "base/probes.h"
#include "heap/bump.h"
#include "account/charge.h"
#include "heap/decay.h"
#include "heap/finish.h"
#include "heap/free.h"
#include "heap/handles.h"
#include "heap/heap.h"
#include "threads/bank.h"
#include "heap/leave.h"
#include "heap/line.h"
#include "state/liveness.h"
#include "observe/profile.h"
#include "heap/ready.h"
#include "account/refuse.h"
#include "threads/registry.h"
#include "heap/room.h"
#include "heap/scrub.h"
#include "observe/sample.h"
#include "heap/search.h"
#include "observe/sheets.h"
#include "observe/stand_in.h"
#include "heap/take.h"
#include "heap/trim.h"
#include "heap/warm.h"
#include "os/stack.h"

#include <errno.h>

enum {
    LARGE_HEAP = 4 << 20, /* bytes of slabs: from here on memory counts for more than changes of lines */
    EMPTIED_PART = 32,    /* part of a heap's bytes: a look needs as much taken, and as much freed in */
    EMPTIED_LOOKS = 16,   /* slabs taken, from one test to the next */
    PATIENCE_MOST = 2,
    SCAVENGE_LEAST = 256 /* slabs: smaller heaps are not looked at */
};

/* The result of one try. */
typedef struct TsiAllocResult {
    void* p;
    TsiIssue issue;          /* where the request asks for a handle */
    TsiBudgetEvents budgets; /* those passed or in the way */
} TsiAllocResult;

/* ---- lines ---- */

/* Takes the lowest ready slot of the line, which has one. Returns its address. [owner, in bracket] */
static void* line_pop(TsiBinding* b, TsiLine* l, unsigned cls) {
    uint64_t avail = tsi_load_relaxed(&l->avail);
    unsigned slot = tsi_ctz64(avail);
    tsi_store_relaxed(&l->avail, avail & (avail - 1));
    return l->base + tsi_class_offset(&b->classes->c[cls], slot);
}

/* Issues the handle of the line's lowest ready slot, which stays ready, into *issue. Returns false if there is none
 * (*issue says why): a line without generations is set aside (tsi_line_retire) and no longer h's current one.
 * [owner, in bracket] */
static bool issue_next(TsiBinding* b, TsiHeap* h, TsiLine* l, unsigned cls, TsiIssue* issue) {
    TsiPlace at = {.line_id = tsi_line_id(&b->arena->space, l), .cls = cls};
    at.slab_id = tsi_slab_at(&b->classes->c[cls], at.line_id);
    at.slot = tsi_ctz64(tsi_load_relaxed(&l->avail));
    if (tsi_handle_issue_held(b->arena, &at, issue)) return true;
    if (issue->spent) tsi_line_retire(b->arena, h, l, cls);
    return false;
}

/* Refills a line that is used up because the profile has cut its refill. Returns true if it did; such an allocation
 * does not count as slow. [owner, in bracket] */
static TSI_COLD bool cut_refill(TsiBinding* b, TsiLine* l, unsigned cls) {
    bool cut = (tsi_load_relaxed(&l->flags) & TSI_LINE_CUT) != 0 && tsi_load_relaxed(&l->avail) == 0;
    return cut && tsi_line_refill(b, l, &b->classes->c[cls], 1) != 0;
}

/* Counts a line l, just taken out of the room's queue, that should not have been in it, as a repair, and leaves it
 * where adoption or the next free finds it: a line of h's, or of a heap whose primary h is, is filed or parked again.
 * Reached by fault injection only. [owner, in bracket] */
static TSI_COLD void line_mend(TsiBinding* b, const TsiHeap* h, TsiLine* l, unsigned cls) {
    bool ours = tsi_line_heap(b, l)->primary == h->index;
    TsiStopwatch watch = b->period != 0 ? tsi_sample_start() : (TsiStopwatch){0, 0, 0};
    if (ours) (void)tsi_line_leave(b, cls, l);
    tsi_sample_repair(b, ours ? 0 : 1, watch);
}

/* Returns the class that a request counts under: its own, or LARGE. [any thread, needs no lock] */
static unsigned counted_as(const TsiRequest* request) { return request->cls != 0 ? request->cls : TSI_CLASS_LARGE; }

/* Counts an allocation of the class that was refused since its phase accepts no more, which no heap counts, as a slow
 * path of the binding's, and fires the probe. [own thread, needs no lock] */
static void count_closed(TsiBinding* b, unsigned cls) {
    tsi_count(&b->counters[cls].slow);
    tsi_count(&b->counters[cls].slow_by[TSI_SLOW_CLOSED]);
    tsi_probe_slow_path(b->arena->owner, cls - 1, b->classes->c[cls].size, TSI_SLOW_CLOSED);
}

/* Refills a used-up line from its owner's frees alone, the common case: makes all its n freed slots ready. Returns
 * false, changing nothing, if none is freed, others have freed here, n is above the line's batch (tsi_line_batch), or
 * there is a profile: call tsi_line_refill then. [owner, in bracket] */
TSI_INLINE bool refill_plain(TsiBinding* b, TsiLine* l, const TsiClass* shape, unsigned n) {
    TsiSpace* s = &b->arena->space;
    uint64_t out = tsi_load_relaxed(&l->freed) & shape->full;
    if (TSI_UNLIKELY(out == 0 || tsi_remote_seen(l) != 0 || b->profile_mean != 0)) return false;
    if (TSI_UNLIKELY(n > tsi_line_batch(l, shape))) return false;
    if (TSI_UNLIKELY(tsi_load_seq(&s->counted))) tsi_line_counts_even(s, l, shape, out);
    tsi_line_hand_out(l, out, ~shape->full, n);
    return true;
}

/* Gives a line of the queue, with n slots ready, ready slots if it has none. Returns true if it has some.
 * [owner, in bracket] */
TSI_INLINE bool hands_out(TsiBinding* b, TsiLine* l, const TsiClass* shape, unsigned n) {
    if (tsi_load_relaxed(&l->avail) != 0) return true;
    return refill_plain(b, l, shape, n) || tsi_line_refill(b, l, shape, 1) != 0;
}

/* Makes a line of h's queue current (h->room->cur[cls]) that has a slot ready or at least `least` free slots, which are
 * handed out; in a heap of LARGE_HEAP bytes or more, half as many do in the second half of the looks. A line of the
 * queue that is no more h's or its room's is counted and mended, and the next one tried. Returns true, with
 * h->room->served[cls] one higher; false if the queue has no more or the first TSI_ROOM_LOOKS lines have fewer: these
 * go to the back. [owner, in bracket] */
TSI_INLINE bool next_listed(TsiBinding* b, TsiHeap* h, unsigned cls, unsigned least) {
    const TsiClass* shape = &b->classes->c[cls];
    bool large = tsi_load_relaxed(&h->slab_bytes) >= LARGE_HEAP;
    for (;;) {
        unsigned n;
        TsiLine* l = tsi_room_pop(&b->arena->space, h->room, shape, cls, least, large ? (least + 1) / 2u : least, &n);
        if (l == NULL) return false;
        bool ours = tsi_line_heap(b, l)->primary == h->index;
        if (TSI_LIKELY(ours && hands_out(b, l, shape, n))) {
            h->room->cur[cls] = l;
            h->room->served[cls]++;
            return true;
        }
        line_mend(b, h, l, cls);
    }
}

/* Takes a slab for the heap, whose room is there, makes its first line current and puts its others at the front of the
 * class's queue. First gives back pages of a region that the classes have taken over from (tsi_bump_thin). Returns
 * false, with nothing taken, without memory or against a budget, which b->budget.hard names. [owner, in bracket] */
static bool next_slab(TsiBinding* b, TsiHeap* h, unsigned cls) {
    TsiSpace* s = &b->arena->space;
    uint32_t slab_id;
    tsi_bump_thin(b, h);
    if (!tsi_slab_take(b, h, cls, &slab_id)) return false;
    const TsiClass* shape = &b->classes->c[cls];
    uint32_t first = tsi_first_line(shape, slab_id);
    for (uint32_t n = (1u << shape->lines_log2) - 1; n != 0; n--)
        tsi_room_push(b->arena, h->room, cls, tsi_line(s, first + n), true);
    h->room->cur[cls] = tsi_line(s, first);
    return true;
}

/* Finds or makes a line with a free slot, makes it h's current one of the class, and pops its lowest slot; *issue,
 * unless NULL, gets its handle. The search tries the current line, refilled or else filed or parked; the queue, unless
 * `looked`, which says that the queue has just been searched; ownerless heaps of the incarnation; a new slab. h->room
 * is there. Returns the address, counted as a slow path under `cause`, a TSI_SLOW_*, or under TSI_SLOW_MISS once the
 * first three had nothing. Returns NULL, uncounted, without memory or against a budget (b->budget.hard), or without a
 * handle (*issue says why). [owner, in bracket of the whole heap] */
static TSI_NOINLINE void* class_search(TsiBinding* b, TsiHeap* h, unsigned cls, unsigned cause, bool looked,
                                       TsiIssue* issue) {
    const TsiClass* shape = &b->classes->c[cls];
    TsiRoom* room = h->room;

    for (;; looked = false) {
        TsiLine* l = room->cur[cls];
        if (l != tsi_no_cur[0]) {
            if (tsi_load_relaxed(&l->avail) != 0 || tsi_line_refill(b, l, shape, shape->threshold) != 0) {
                if (issue != NULL && !issue_next(b, h, l, cls, issue)) return NULL;
                tsi_count_slow(b, h, cls, cause);
                return line_pop(b, l, cls);
            }
            if (!tsi_line_leave(b, cls, l)) continue;
            room->cur[cls] = tsi_no_cur[0];
        }
        if ((!looked && next_listed(b, h, cls, shape->threshold)) || tsi_heap_adopt_more(b, h, cls)) continue;
        cause = TSI_SLOW_MISS;
        if (room->served[cls] >= TSI_ROOM_SETTLED && next_listed(b, h, cls, (shape->threshold + 1) / 2u)) continue;
        room->served[cls] = 0;
        /* Without memory few free slots will do. */
        if (!next_slab(b, h, cls) && !next_listed(b, h, cls, 1)) return NULL;
    }
}

/* Allocates a slot of the class in the heap, which gets a room if it has none, in a line or a new slab; *issue, unless
 * NULL, gets its handle. Counts a slow path, except where the profile had cut the current line's refill. Returns the
 * address, or NULL without memory, against a budget (b->budget.hard says which) or without a handle (*issue says why).
 * [owner, in bracket of the whole heap] */
static TSI_NOINLINE void* class_alloc(TsiBinding* b, TsiHeap* h, unsigned cls, TsiIssue* issue) {
    if (!tsi_heap_ensure_room(b, h)) return NULL;
    TsiLine* l = h->room->cur[cls];
    if (TSI_UNLIKELY(b->profile_mean != 0) && cut_refill(b, l, cls))
        return issue == NULL || issue_next(b, h, l, cls, issue) ? line_pop(b, l, cls) : NULL;
    return class_search(b, h, cls, l == tsi_no_cur[0] ? TSI_SLOW_NULL : TSI_SLOW_FULL, false, issue);
}

/* Allocates like class_alloc where suits_next has returned true for l, the current line: parks l, makes the queue's
 * next line current or goes on by class_search, and pops a slot, counted as TSI_SLOW_FULL or as class_search does.
 * Returns the slot's address, or NULL without memory or against a budget. [owner, in bracket of the whole heap] */
static TSI_NOINLINE void* class_next(TsiBinding* b, TsiHeap* h, unsigned cls, TsiLine* l) {
    tsi_line_park(b, cls, l);
    h->room->cur[cls] = tsi_no_cur[0];
    if (TSI_UNLIKELY(!next_listed(b, h, cls, b->classes->c[cls].threshold)))
        return class_search(b, h, cls, TSI_SLOW_FULL, true, NULL);
    tsi_count_slow(b, h, cls, TSI_SLOW_FULL);
    return line_pop(b, h->room->cur[cls], cls);
}

/* ---- the slow path ---- */

TsiRef tsi_ambient_ref(const TsiBinding* b) {
    if (b->scope != 0) return tsi_load_relaxed(&b->thread->scopes[b->scope - 1].phase->ref);
    return tsi_phases_current(&b->arena->phases);
}

/* Returns the phase in which an allocation with this `ref` (see TsiRequest) goes now; 0: none.
 * [own thread, needs no lock] */
static TsiRef target_of(TsiBinding* b, TsiRef ref) {
    if (ref == TSI_REF_CURRENT) return tsi_phases_current(&b->arena->phases);
    return ref != 0 ? ref : tsi_ambient_ref(b);
}

/* Allocates in the line that b->busy names, one of h's room, if that is used up, its owner has freed `threshold` slots
 * or more there, and no inbox or sweep waits: the commonest miss. Refills the line and counts TSI_SLOW_FULL. Returns
 * the object, with the bracket closed and *handle set unless NULL; otherwise NULL, and the bracket stays open. *handle
 * may be 0 then, and the line refilled. [own thread, in the open bracket] */
TSI_INLINE void* alloc_again(TsiBinding* b, TsiHeap* h, unsigned cls, SlabHandle* handle) {
    TsiLine* l = (TsiLine*)(uintptr_t)tsi_load_relaxed(&b->busy);
    const TsiClass* shape = &b->classes->c[cls];
    uint64_t freed = tsi_load_relaxed(&l->freed) & shape->full;
    if (freed == 0) return NULL; /* the commonest case */
    unsigned n = tsi_popcount(freed);

    bool plain = tsi_load_relaxed(&h->word) == b->live_word && tsi_load_relaxed(&l->avail) == 0 && !b->watched;
    plain = plain && n >= shape->threshold;
    bool waiting = tsi_load_relaxed(&b->inbox) != TSI_INBOX_EMPTY || tsi_load_relaxed(&b->arena->has_unswept);
    if (!plain || waiting) return NULL;
    if (handle != NULL && !tsi_line_is_handled(l)) return NULL;
    if (!refill_plain(b, l, shape, n)) return NULL;
    if (handle != NULL && (*handle = tsi_handle_here(b, shape, l, tsi_ctz64(freed))) == 0) return NULL;

    tsi_count_slow(b, h, cls, TSI_SLOW_FULL);
    void* p = line_pop(b, l, cls);
    tsi_bracket_clear(b);
    return TSI_LIKELY(tsi_load_relaxed(&h->word) == b->live_word) ? p : tsi_alloc_left(b, h, p);
}

/* Allocates an object of `size` bytes, whose class is cls, in a region if the heap bumps, otherwise in a line; *issue,
 * unless NULL, gets its handle. Returns its address, or NULL without memory, against a budget or without a handle.
 * b->budget.hard then names the budget in the way of the smallest region, if there is one, otherwise of the slab;
 * *issue says why there is no handle. [owner, in bracket of the whole heap] */
static void* slab_alloc(TsiBinding* b, TsiHeap* h, size_t size, unsigned cls, size_t align, TsiIssue* issue) {
    void* p = tsi_bump_alloc(b, h, size, align, issue != NULL);
    if (p != NULL && issue != NULL) {
        TsiPlace at;
        (void)tsi_space_locate(&b->arena->space, p, &at);
        bool issued = tsi_handle_issue_held(b->arena, &at, issue);
        TSI_CHECK(issued); /* the region has generations, and needs no counts */
    }
    if (p != NULL) return p;
    /* Report the budget in the way of the smallest region that would do, not the one that a slab lacked. */
    unsigned hard = b->budget.hard;
    p = class_alloc(b, h, cls, issue);
    if (p == NULL && hard != 0) b->budget.hard = (uint8_t)hard;
    return p;
}

/* Returns true if h, of `slabs` slabs, has grown by 1/EMPTIED_PART of them, doubled for each step of b->patience, and
 * lines with as large a part of its bytes have been freed in for the first time since they were full: an empty slab has
 * no full line. Then notes these bytes in b->opened_bytes and raises b->patience, up to PATIENCE_MOST. Tests on each
 * EMPTIED_LOOKS-th take only. [owner, in bracket] */
static bool is_emptied(TsiBinding* b, const TsiHeap* h, uint32_t slabs) {
    uint32_t takes = tsi_load_relaxed(&h->takes);
    if (takes % EMPTIED_LOOKS != 0 || takes >> b->patience <= slabs / EMPTIED_PART) return false;
    uint64_t opened = 0;
    for (unsigned cls = 1; cls <= TSI_SMALL_CLASSES; cls++)
        opened += tsi_load_relaxed(&b->counters[cls].unparked) << b->classes->c[cls].line_shift;
    if (opened - b->opened_bytes < tsi_load_relaxed(&h->slab_bytes) / EMPTIED_PART) return false;
    b->opened_bytes = opened;
    if (b->patience < PATIENCE_MOST) b->patience++; /* until the look has found something */
    return true;
}

/* Returns true if a look for empty slabs is due: slabs of one class that stay empty while another grows must go back,
 * and those that the thread has emptied in adopted heaps. A look is due once h->takes is half of the heap's slabs, or
 * by is_emptied or tsi_bank_is_emptied; then h->takes begins again at 0, and the result is false all the same up to
 * SCAVENGE_LEAST slabs. O(1) per slab taken or emptied. [owner, in bracket] */
static TSI_NOINLINE bool scavenges(TsiBinding* b, TsiHeap* h) {
    uint32_t slabs = tsi_load_relaxed(&h->slab_count) + h->adopted;
    bool large = slabs > SCAVENGE_LEAST && tsi_load_relaxed(&h->slab_bytes) >= LARGE_HEAP;
    uint32_t takes = tsi_load_relaxed(&h->takes);
    bool asks = large && !b->arena->options.shared;
    bool many = takes > slabs / 2 || (asks && is_emptied(b, h, slabs));
    if (!many && b->arena->options.shared) many = takes > slabs / 8 && tsi_bank_is_emptied(b, slabs);
    if (many) tsi_store_relaxed(&h->takes, 0);
    return many && slabs > SCAVENGE_LEAST;
}

/* Gives the empty slabs back that the thread has in h's incarnation (tsi_heap_scavenge). Where h has lost a 64th of its
 * slab bytes or more by that, sets b->patience to 0, so that is_emptied asks again soon.
 * [own thread, no lock held, no bracket open] */
static TSI_NOINLINE void look_for_empty(TsiBinding* b, TsiHeap* h) {
    uint64_t before = tsi_load_relaxed(&h->slab_bytes);
    tsi_heap_scavenge(b, h);
    if (before - tsi_load_relaxed(&h->slab_bytes) >= before / (2 * EMPTIED_PART)) b->patience = 0; /* a hint */
}

/* Closes the bracket of the whole of h in which something was allocated, with a handover if h was asked for, then gives
 * empty slabs back if more than 64 slabs were taken or emptied and `scavenges` says so. h may be gone afterwards.
 * [owner, in bracket] */
static void leave(TsiBinding* b, TsiHeap* h) {
    bool scavenge = TSI_UNLIKELY(tsi_load_relaxed(&h->takes) > 64) && scavenges(b, h);
    tsi_bracket_leave(b, h);
    if (scavenge) look_for_empty(b, h);
}

/* Allocates in h, a heap of the phase `ref`, in one bracket. Returns TSI_GOT with the object in got->p; TSI_AGAIN if h
 * is no longer the phase's or the thread's, or another line has handles left; TSI_OVER_BUDGET; or TSI_NO_MEMORY.
 * got->budgets: those passed or in the way. A cleanup in a handover may have freed h and reused its record for another
 * phase: hence the test of `ref`. [own thread, no bracket open] */
static TsiOutcome alloc_in_heap(TsiBinding* b, TsiHeap* h, TsiRef ref, const TsiRequest* request, TsiAllocResult* got) {
    unsigned cls = request->cls;
    TsiIssue* issue = request->handle != NULL ? &got->issue : NULL;
    if (!tsi_bracket_enter(b, h, tsi_busy_all(h))) return TSI_AGAIN;
    if (tsi_load_relaxed(&h->ref) != ref) {
        tsi_bracket_leave(b, h);
        return TSI_AGAIN;
    }

    void* p;
    bool nameless = false; /* only a handle is lacking */
    b->budget.soft = b->budget.hard = 0;
    if (cls == 0) {
        p = tsi_large_alloc(b, ref, request->size, request->align, issue);
        if (p == NULL && !tsi_heap_is_live(b, h)) {
            tsi_bracket_leave(b, h);
            return TSI_AGAIN;
        }
        if (p != NULL) tsi_count_slow(b, h, TSI_CLASS_LARGE, TSI_SLOW_MISS);
    } else {
        p = slab_alloc(b, h, request->size, cls, request->align, issue);
        nameless = p == NULL && issue != NULL && issue->tried;
    }

    /* Cleanups that run from here on may allocate. */
    if (TSI_UNLIKELY((b->budget.soft | b->budget.hard) != 0)) got->budgets = b->budget;
    leave(b, h);

    got->p = p;
    if (p != NULL) return TSI_GOT;
    if (nameless && issue->spent) return TSI_AGAIN; /* another line has generations left */
    return got->budgets.hard != 0 ? TSI_OVER_BUDGET : TSI_NO_MEMORY;
}

/* Returns true if a budget's function, called by this thread, has released the phase of the allocation, and so the
 * object. [own thread, needs no lock] */
static bool is_released(TsiArena* a, TsiRef ref) {
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    uint64_t word = tsi_load_relaxed(&inc->word); /* written by this thread, in that function */
    return word >> 2 != tsi_ref_era(ref) || (word & TSI_INC_STATE) == TSI_INC_RELEASED;
}

/* Returns true if class_next may go on from l: it is the heap's current line of the class, has nothing free, and its
 * token is out; and the heap does not bump. [owner, in bracket] */
TSI_INLINE bool suits_next(TsiBinding* b, const TsiHeap* h, unsigned cls, const TsiLine* l) {
    if (h->bumps || h->room == NULL || h->room->cur[cls] != l) return false;
    if ((tsi_load_relaxed(&l->flags) & TSI_LINE_ARMED) == 0) return false;
    return tsi_load_relaxed(&l->avail) == 0 && tsi_line_ready(l, &b->classes->c[cls]) == 0;
}

/* Allocates in other lines of h, a region or a slab: the next most common misses. b and h are those that the missed
 * fast path used; its line is still in b->busy. Closes that bracket, with a handover if the line's heap was asked for,
 * and opens one of the whole heap. Calls the functions of soft budgets that are passed. Returns the object, with the
 * bracket closed; or NULL if a heap was asked for, an inbox, a sweep or a sample waits, memory is short, or a budget's
 * function has released the phase: the bracket of the line may still be open then. [own thread, in the open bracket] */
static void* alloc_more(TsiBinding* b, TsiHeap* h, size_t size, unsigned cls) {
    TsiLine* l = (TsiLine*)(uintptr_t)tsi_load_relaxed(&b->busy);
    TsiHeap* of = l == tsi_no_cur[0] ? h : tsi_line_heap(b, l);
    bool owned = tsi_load_relaxed(&h->word) == b->live_word && tsi_load_relaxed(&of->word) == b->live_word;
    bool waiting = tsi_load_relaxed(&b->inbox) != TSI_INBOX_EMPTY || tsi_load_relaxed(&b->arena->has_unswept);
    if (!owned || waiting) return NULL;
    if (b->watched || tsi_tls.exiting) return NULL;

    tsi_bracket_clear(b); /* B4 */
    bool left = tsi_load_relaxed(&of->word) != b->live_word;
    if (TSI_UNLIKELY(left)) tsi_handover(b, of);
    if (left || !tsi_bracket_enter(b, h, tsi_busy_all(h))) return NULL;

    b->budget.soft = b->budget.hard = 0;
    void* p = suits_next(b, h, cls, l) ? class_next(b, h, cls, l) : slab_alloc(b, h, size, cls, 1, NULL);

    TsiBudgetEvents events;
    bool tell = TSI_UNLIKELY(b->budget.soft != 0) && p != NULL;
    if (tell) events = b->budget;
    leave(b, h);
    if (!tell) return p;
    tsi_budget_notify(b->arena, &events, 0);
    return is_released(b->arena, events.ref) ? NULL : p;
}

void* tsi_alloc_nearby(TsiBinding* b, TsiHeap* h, size_t size, SlabHandle* handle) {
    unsigned cls = tsi_class_of(size);
    bool has_line = tsi_load_relaxed(&b->busy) != tsi_busy_line(tsi_no_cur[0]);
    void* p = has_line ? alloc_again(b, h, cls, handle) : NULL;
    if (p == NULL && handle == NULL) p = alloc_more(b, h, size, cls);
    if (p != NULL) tsi_decay_step(b);
    return p;
}

/* ---- one try ---- */

/* Allocates in the binding's heap of the phase `target`, which is found, adopted or made; a domain's phase may get a
 * heap that waits. `ambient`: that becomes b's ambient heap, and the domain of the innermost scope leads to it. Returns
 * the outcome like alloc_in_heap; TSI_STALE if the phase accepts no more.
 * [own thread, no lock held, no bracket open] */
TSI_INLINE TsiOutcome alloc_owned(TsiBinding* b, TsiRef target, bool ambient, const TsiRequest* request,
                                  TsiAllocResult* got) {
    TsiHeap* h;
    TsiBirth birth =
        tsi_ready_heap(b, target, request->size <= TSI_BUMP_MAX && request->align <= TSI_BUMP_ALIGN_MAX, &h);
    if (birth != TSI_BIRTH_OK) return birth == TSI_BIRTH_STALE ? TSI_STALE : TSI_NO_MEMORY;
    if (ambient && tsi_heap_is_live(b, h) && tsi_load_relaxed(&h->ref) == target) {
        tsi_binding_set_ambient(b, h);
        if (b->scope != 0) tsi_phase_leads_to(b->thread->scopes[b->scope - 1].phase, h, target);
    }
    return alloc_in_heap(b, h, target, request, got);
}

/* ---- shared mode ---- */

/* Allocates `bytes` of h's region, if they fit and, for a handle, the region has issued handles; otherwise a slot of
 * the class that is ready in its current line. Returns the object, with *handle set unless NULL; or NULL, with nothing
 * taken, if that was not ready. h is handed over if it was asked for; no bracket is open afterwards.
 * [own thread, no lock held, no bracket open] */
TSI_INLINE void* take_ready(TsiBinding* b, TsiHeap* h, uint32_t bytes, unsigned cls, SlabHandle* handle) {
    TsiRegion* r = tsi_load_relaxed(&h->region);
    uint32_t rel;
    bool bumps = tsi_bump_fits(r, bytes, &rel) && (handle == NULL || tsi_load_relaxed(&r->heap_at) == 0);
    void* p;
    TsiFast fast = bumps && handle != NULL ? tsi_bump_handle_fast(b, h, r, rel, bytes, &p, handle)
                   : bumps                 ? tsi_bump_fast(b, h, r, rel, bytes, &p)
                   : handle != NULL        ? tsi_obj_fast(b, h, tsi_cur_of(h), cls, &p, handle)
                                           : tsi_alloc_fast(b, h, tsi_cur_of(h), cls, &p);
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return p;
    if (fast == TSI_FAST_HANDOVER) return tsi_alloc_left(b, h, p);
    tsi_fast_leave(b, h);
    return NULL;
}

void* tsi_alloc_ready(TsiBinding* own, size_t size, TsiRef ref, SlabHandle* handle) {
    TsiBank* bank;
    unsigned cls = tsi_class_near(size);
    TsiRef target = target_of(own, ref);
    bool waiting = tsi_load_relaxed(&own->arena->has_unswept) || own->watched || tsi_tls.exiting;
    waiting = waiting || tsi_ref_is_anothers(&own->arena->phases, target, own->thread->index + 1);
    if (TSI_UNLIKELY(waiting) || !tsi_bank_try(own, &bank)) return NULL;

    TsiBinding* b = tsi_bank_binding(bank);
    TsiHeap* h = tsi_heap_cached(b, target);
    void* p = NULL;
    if (TSI_LIKELY(h != NULL && tsi_load_relaxed(&b->inbox) == TSI_INBOX_EMPTY))
        p = take_ready(b, h, tsi_bump_bytes(size), cls, handle);
    else if (h == NULL && handle == NULL) p = tsi_ready_first(b, target, tsi_bump_bytes(size));
    if (TSI_LIKELY(p != NULL)) tsi_bank_count(b, bank, cls);
    tsi_bank_leave(bank);
    tsi_decay_step(own);
    return p;
}

/* Allocates in a bank, whose lock it waits for and gives back, as the thread whose bank it is; takes in the bank's
 * inbox and sweeps a piece first. Counts the object for the bank, and for own's profile. own: the calling thread's own
 * binding. Returns the outcome like alloc_owned; TSI_NO_MEMORY also if there is no bank.
 * [own thread, no lock held, no bracket open] */
static TsiOutcome alloc_in_bank(TsiBinding* own, TsiRef target, const TsiRequest* request, TsiAllocResult* got) {
    TsiArena* a = own->arena;
    TsiBank* bank = tsi_bank_enter(own, tsi_class_row(counted_as(request)), target);
    if (bank == NULL) return TSI_NO_MEMORY;
    TsiBinding* b = tsi_bank_binding(bank);
    tsi_binding_apply_fence(b);
    tsi_inbox_drain(b);
    tsi_sweep_piece(a, b);
    TsiOutcome outcome = alloc_owned(b, target, false, request, got);
    if (outcome == TSI_GOT) tsi_bank_count(b, bank, counted_as(request));
    tsi_bank_leave(bank);
    TsiPlace at;
    if (TSI_UNLIKELY(own->profile_mean != 0) && outcome == TSI_GOT &&
        tsi_space_locate(&a->space, got->p, &at) == TSI_PLACE_OK)
        tsi_profile_one(own, tsi_place_bytes(&a->space, &at));
    return outcome;
}

/* ---- any mode ---- */

/* Decides what becomes of a request whose phase `target` accepts no more. Returns true if it goes elsewhere: with the
 * ring, whose current epoch is another by now, or from a phase that was only preferred, by request->ref = 0. Otherwise
 * counts a slow path and a misuse, told as SLAB_MISUSE_CLOSED_EPOCH, sets errno to ESTALE and returns false.
 * [own thread, no lock held, no bracket open] */
static bool stale_goes_on(TsiBinding* b, TsiRequest* request, TsiRef target) {
    bool follows = request->ref == TSI_REF_CURRENT || (request->ref == 0 && b->scope == 0);
    if (follows && target_of(b, request->ref) != target) return true;
    if (request->ref != 0 && request->prefer) {
        request->ref = 0;
        return true;
    }
    count_closed(b, counted_as(request));
    tsi_refuse_as(b->arena, &(TsiMisuse){.what = SLAB_MISUSE_CLOSED_EPOCH, .ref = target});
    errno = ESTALE;
    return false;
}

/* Refuses an allocation for want of memory (error: ENOMEM) or because of a budget (EDQUOT): counts it for the arena and
 * sets errno to that. Returns NULL. [any thread, needs no lock] */
static void* refused(TsiArena* a, int error) {
    tsi_refuse_count(a, error == EDQUOT ? TSI_REFUSED_BUDGET : TSI_REFUSED_MEMORY);
    tsi_error_set(error);
    return NULL;
}

/* Refuses an allocation, since the phase is another thread's alone: counts and tells SLAB_MISUSE_DOMAIN_ORDER and sets
 * errno to EBUSY. Returns NULL. [any thread, no lock held, no bracket open] */
static TSI_COLD void* refused_to_others(TsiArena* a) {
    tsi_refuse(a, SLAB_MISUSE_DOMAIN_ORDER, NULL);
    tsi_error_set(EBUSY);
    return NULL;
}

/* Allocates: each turn tries once, in a bank in shared mode, and removes what is in the way between two. An object
 * whose phase a budget's function has released is lost, and the request tried again. Returns like tsi_alloc_slow.
 * [any thread, no lock held, no bracket open] */
static void* alloc_untimed(TsiArena* a, TsiRequest* request) {
    TsiSearch search = {.looked = false};
    bool lost = false;
    for (;;) {
        TsiAllocResult got = {.p = NULL};
        TsiBinding* b = tsi_binding_get(a, true);
        if (b == NULL) return refused(a, ENOMEM);
        tsi_binding_apply_fence(b);
        tsi_inbox_drain(b);
        tsi_sweep_piece(a, b);
        tsi_warm_poll(a);

        TsiRef target = target_of(b, request->ref);
        if (tsi_ref_is_anothers(&a->phases, target, b->thread->index + 1)) return refused_to_others(a);
        TsiOutcome outcome = a->options.shared ? alloc_in_bank(b, target, request, &got)
                                               : alloc_owned(b, target, request->ref == 0, request, &got);
        if (outcome == TSI_STALE) {
            if (stale_goes_on(b, request, target)) continue;
            return NULL;
        }

        if (TSI_UNLIKELY(lost)) got.budgets.soft = 0; /* call it once: it may release each phase */
        bool events = (got.budgets.soft | got.budgets.hard) != 0 || outcome == TSI_NO_MEMORY;
        bool again = TSI_UNLIKELY(events) && tsi_search(b, outcome, &got.budgets, &search);
        if (outcome == TSI_GOT && TSI_UNLIKELY(got.budgets.soft != 0) && is_released(a, target)) {
            lost = true;
            continue;
        }

        if (outcome == TSI_GOT) {
            if (request->handle != NULL) *request->handle = got.issue.handle;
            request->ref = target;
            tsi_decay_step(b);
            return got.p;
        }
        if (outcome == TSI_OVER_BUDGET && !again) return refused(a, EDQUOT);
        if (outcome == TSI_NO_MEMORY && !again) return refused(a, ENOMEM);
    }
}

/* Allocates like alloc_untimed, as a call that a thread may make past its destructor. Returns like tsi_alloc_slow.
 * [any thread, no lock held, no bracket open] */
static void* alloc_whole(TsiArena* a, TsiRequest* request) {
    tsi_thread_late_enter();
    void* p = alloc_untimed(a, request);
    tsi_thread_late_leave();
    return p;
}

/* Allocates like alloc_whole, timed if a sample is due; the locks that it waits for are sampled. Returns like
 * tsi_alloc_slow. [own thread, no lock held, no bracket open] */
static TSI_NOINLINE void* alloc_sampled(TsiBinding* b, TsiRequest* request) {
    TsiRef ref = request->ref;            /* as asked for */
    TsiLockStats* outer = tsi_lock_stats; /* a cleanup may allocate inside */
    bool chosen = tsi_sample_due(b);
    tsi_lock_stats = &b->samples.locks;
    TsiStopwatch watch = chosen ? tsi_sample_start() : (TsiStopwatch){0, 0, 0};
    void* p = alloc_whole(b->arena, request);
    bool still = tsi_tls.binding == b && tsi_tls.serial == b->arena->serial; /* not given back by a late leave */
    uint64_t ns[3];
    if (chosen && still && tsi_sample_stop_alloc(b, watch, ns))
        tsi_sample_label(b, p != NULL ? request->ref : target_of(b, ref), ns); /* or the intended one */
    tsi_lock_stats = outer;
    return p;
}

/* Allocates like alloc_whole, with samples if b->period is not 0, and records the object, with the callers from
 * tsi_tls.caller on, in the profile if that is its turn (b->profile_hit). Returns like tsi_alloc_slow.
 * [own thread, no lock held, no bracket open] */
static TSI_NOINLINE void* alloc_watched(TsiBinding* b, TsiRequest* request) {
    TsiRef ref = request->ref;       /* as in alloc_sampled */
    TsiCaller from = tsi_tls.caller; /* a cleanup may allocate inside, as in alloc_sampled */
    bool outer_hit = b->profile_hit;
    b->profile_hit = false;
    void* p = b->period != 0 ? alloc_sampled(b, request) : alloc_whole(b->arena, request);
    if (tsi_tls.binding != b || tsi_tls.serial != b->arena->serial) return p; /* as in alloc_sampled */
    bool hit = b->profile_hit;
    b->profile_hit = outer_hit;
    if (TSI_UNLIKELY(hit) && p != NULL) {
        uint32_t maker = ref == TSI_REF_CURRENT ? tsi_scope_maker(b) : 0;
        tsi_profile_record(b, p, 0, request->ref, maker, from);
    }
    return p;
}

/* Notes at most TSI_SHEET_FRAMES callers of an allocation, from the frame `from` on, with the sheet of `sheets` that
 * the stand-in `block` lies on. [own thread, needs no lock] */
static TSI_COLD void note_callers(TsiBinding* b, struct TsiSheets* sheets, const void* block, TsiCaller from) {
    uintptr_t frames[TSI_SHEET_FRAMES];
    tsi_sheet_note(sheets, block, frames, tsi_profile_frames(b, from, frames, TSI_SHEET_FRAMES));
}

void* tsi_alloc_slow(TsiArena* a, TsiRequest* request) {
    TSI_KEEP_FRAME();
    TsiBinding* b = a->watched ? tsi_binding_get(a, true) : NULL;
    if (TSI_LIKELY(b == NULL)) return alloc_whole(a, request);
    size_t size = request->size, align = request->align; /* before they are changed */
    TsiCaller from = tsi_tls.caller;                     /* as in alloc_sampled */
    void* slot = alloc_watched(b, request);
    if (slot != NULL && a->fill) tsi_scrub_given(a, slot);
    if (slot == NULL || a->stand_ins == NULL) return slot;
    bool still = tsi_tls.binding == b && tsi_tls.serial == a->serial; /* as in alloc_sampled */
    void* p = tsi_stand_in_make(a, slot, request->ref, size, align, tsi_stand_in_due(a, still ? b : NULL));
    if (p != NULL) {
        struct TsiSheets* sheets = tsi_stand_in_sheets(a);
        if (sheets != NULL && p != slot && still) note_callers(b, sheets, p, from);
        return p;
    }

    (void)tsi_free_pointer(a, slot, 0);
    if (request->handle != NULL) *request->handle = 0;
    return refused(a, ENOMEM);
}
