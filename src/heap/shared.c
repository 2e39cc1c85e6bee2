/*
 * shared.c - one heap an incarnation, for all threads.
 *
 * The slabs of a shared heap are OWNED by it, and no thread owns it. All free slots are in the remote words of the
 * lines (avail stays 0 and freed has the holes only), where every free puts them; an allocation takes the lowest bit
 * out by compare-exchange. Everything else, lists, slabs, the region of a domain, happens under the incarnation's
 * stripe. Lines are handed out one at a time for each class and lane:
 *
 *   sequential   all threads take from lane 0: one line of a class is in use
 *   spread       a thread takes from the lane of its number: so many lines
 *
 * A controller for each class moves from the one to the other by the share of compare-exchanges that were
 * repeated (tsi_scan_note).
 *
 *   claim                                      sweeper
 *   busy = heap         (release)              word SHARED -> HELD       (seq_cst, stripe)
 *   -- compiler fence --                       membarrier
 *   word == SHARED, ref, ACTIVE ? else leave   for each binding: wait while busy == heap
 *   remote word: take a bit (compare-exchange) take the heap             (stripe)
 *   issued++; busy = 0  (release)
 *
 * Invariants
 *   H1  A bit is taken only in a bracket that saw SHARED, or under the stripe while the word is SHARED. So once the
 *       sweeper has waited, and holds the stripe, `issued` and the remote words agree and only frees change them:
 *       receipts are exact.
 *   H2  Inside the bracket nothing is waited for and no lock is taken (but the pool's, at the first handle of a chunk):
 *       the wait is for a few instructions of a thread that runs, or for its next turn on a processor. Who sees HELD
 *       does not name the heap, so nobody is waited for who came later.
 *   H3  A line of the heap is current in a lane, or listed, or used up; of a used-up line the token is in its remote
 *       word or with a freer on its way to tsi_shared_unpark (T1, T2, T4 of line.c). A current line may be listed as
 *       well. A snapshot that runs beside a claim leaves out objects that are not counted yet: `issued` never falls.
 *   H4  Who finds the word HELD while the incarnation is ACTIVE waits for the trim: it gives the stripe back, and the
 *       processor.
 *   H5  A thread uses a heap after it was entered there under the stripe, as `user` or in `many`: a sweep by the only
 *       one issues no barrier and waits for nobody.
 * Without membarrier `busy` is set and cleared by seq_cst exchanges, as in bracket.h.
 */
#include "heap/shared.h"

#include "heap/bracket.h"
#include "heap/bump.h"
#include "heap/heap.h"
#include "heap/issue.h"
#include "heap/lanes.h"
#include "heap/pin.h"
#include "heap/profile.h"
#include "heap/trim.h"

#include <string.h>

/* PARAMETERS of the controller: allocations between two looks, repeated ones per allocation, looks between two
 * changes. */
enum { SCAN_WINDOW = 1 << 18, SCAN_APART = 50, SCAN_NOTE = 1 << 10 };
enum { SCAN_SPREAD_ABOVE = 30, SCAN_GATHER_BELOW = 10 }; /* percent of the allocations that had to repeat */

/* ---- the controller ---- */

void tsi_scan_note(TsiArena* a, unsigned cls, uint64_t allocations, uint64_t retries) {
    TsiScan* s = &a->scan[cls];
    tsi_add_relaxed(&s->retries, retries);
    if (tsi_add_relaxed(&s->allocations, allocations) + allocations < SCAN_WINDOW) return;
    if (tsi_swap_acquire(&s->looking, 1) != 0) return; /* pairs with the release below */
    uint64_t n = tsi_load_relaxed(&s->allocations), again = tsi_load_relaxed(&s->retries);
    if (n >= SCAN_WINDOW) { /* else another thread has just looked */
        tsi_sub_relaxed(&s->allocations, n);
        tsi_sub_relaxed(&s->retries, again);
        uint32_t checks = tsi_load_relaxed(&s->checks) + 1, spread = tsi_load_relaxed(&s->spread);
        bool change = spread ? again * 100 < n * SCAN_GATHER_BELOW : again * 100 > n * SCAN_SPREAD_ABOVE;
        tsi_store_relaxed(&s->checks, checks);
        if (change && (s->changed_at == 0 || checks - s->changed_at >= SCAN_APART)) {
            s->changed_at = checks;
            tsi_store_relaxed(&s->spread, !spread);
            tsi_count(&s->switches);
        }
    }
    tsi_store_release(&s->looking, 0); /* pairs with the swap above */
}

static unsigned lane_for(TsiBinding* b, unsigned cls) {
    return TSI_UNLIKELY(tsi_load_relaxed(&b->arena->scan[cls].spread) != 0) ? b->index % TSI_SHARED_LANES : 0;
}

/* ---- the heap of an incarnation ---- */

static bool lanes_take(TsiArena* a, TsiLanes** out) {
    uint32_t index;
    if (!tsi_table_take(&a->lanes, &index, 0)) return false;
    TsiLanes* l = tsi_table_at(&a->lanes, index);
    tsi_clear(l, sizeof *l);
    l->index = index;
    *out = l;
    return true;
}

static TsiBirth heap_make(TsiBinding* b, TsiRef ref, TsiHeap** out) {
    TsiArena* a = b->arena;
    TsiInc* i = tsi_inc(&a->phases, tsi_ref_index(ref));
    TsiLanes* lanes;
    uint32_t index;
    if (!lanes_take(a, &lanes)) return TSI_BIRTH_NO_MEMORY;
    if (!tsi_record_take(&a->heaps, b->heap_cache, &b->heap_count, &index)) {
        tsi_table_give(&a->lanes, lanes->index);
        return TSI_BIRTH_NO_MEMORY;
    }
    uint64_t now = tsi_inc_opening_ns(i, ref);
    tsi_inc_take(i);
    bool active = tsi_ref_is_active(&a->phases, ref), born = active && i->heaps == 0;
    if (born) *out = tsi_heap_birth_locked(a, i, ref, index, lanes, TSI_SHARED_WORD);
    else if (active) *out = tsi_heap(a, i->heaps - 1); /* there is but one */
    if (born) (*out)->user = b->index;
    else if (active) (*out)->many |= (*out)->user != b->index;
    if (active) tsi_inc_opened_locked(i, now);
    tsi_inc_give(i);
    if (!born) {
        tsi_table_give(&a->lanes, lanes->index);
        tsi_record_give(&a->heaps, b->heap_cache, &b->heap_count, index);
    }
    if (active) {
        b->by_inc[tsi_ref_index(ref) % TSI_HEAP_CACHE] = *out;
        b->by_ref[tsi_ref_index(ref) % TSI_HEAP_CACHE] = ref;
    }
    return active ? TSI_BIRTH_OK : TSI_BIRTH_STALE;
}

/* The incarnation's heap. What is found may have ended since: whoever uses it looks at its word and ref. The record's
 * own ref would not do here: it may serve this incarnation after an earlier one, and nobody knows of us in it (H5). */
static TsiBirth heap_of(TsiBinding* b, TsiRef ref, TsiHeap** out) {
    unsigned at = tsi_ref_index(ref) % TSI_HEAP_CACHE;
    *out = b->by_inc[at];
    return TSI_LIKELY(*out != NULL && b->by_ref[at] == ref) ? TSI_BIRTH_OK : heap_make(b, ref, out);
}

/* ---- claims ---- */

static bool enter(TsiBinding* b, TsiHeap* h, TsiRef ref) {
    if (TSI_UNLIKELY(tsi_load_relaxed(&h->word) != TSI_SHARED_WORD)) return false; /* H2 */
    if (b->live_word == TSI_FENCED) (void)tsi_swap_seq(&b->busy, tsi_busy_all(h));
    else tsi_bracket_name(b, tsi_busy_all(h));
    /* seq_cst: with the fenced form, pairs with the sweeper's compare-exchange. ref after it: a record that is born
     * again gets its ref before its word. */
    return tsi_load_seq(&h->word) == TSI_SHARED_WORD && tsi_load_relaxed(&h->ref) == ref &&
           tsi_ref_is_active(&b->arena->phases, ref);
}

static void leave(TsiBinding* b) {
    if (b->live_word == TSI_FENCED) (void)tsi_swap_seq(&b->busy, 0);
    else tsi_bracket_clear(b);
}

static TSI_NOINLINE void count_retry(TsiBinding* b, TsiRef ref, unsigned cls) {
    TsiArena* a = b->arena;
    unsigned lane = tsi_lane_of(a, tsi_inc(&a->phases, tsi_ref_index(ref)));
    tsi_count(&b->counters[cls].alloc_retries);
    tsi_add_relaxed(&a->alloc_retries_by_label[cls][lane], 1);
}

/* Takes a free slot out of the line; false when there is none. H1 */
static bool claim(TsiBinding* b, TsiRef ref, unsigned cls, TsiLine* l, unsigned* slot) {
    for (unsigned half = 0; half < 2; half++) {
        uint64_t w = tsi_load_relaxed(&l->remote[half]);
        uint64_t mask = tsi_remote_mask(half);
        while ((w & mask) != 0) {
            unsigned bit = tsi_ctz64(w & mask);
            *slot = bit ^ 32;
            /* seq_cst: pairs with the freer's exchange, whose use of the object is over, and comes before the look at
             * the tag */
            if (tsi_cas_seq(&l->remote[half], &w, w & ~(1ull << bit))) {
                /* pairs with tsi_line_handed_out, which knows of no object that still looks free */
                tsi_add_release(&l->issued, 1);
                return true;
            }
            count_retry(b, ref, cls);
        }
    }
    return false;
}

/* The object in a claimed slot. Where claims are allowed. */
static void* object_at(TsiBinding* b, unsigned cls, TsiLine* l, unsigned slot, TsiIssue* issue) {
    TsiSpace* s = &b->arena->space;
    const TsiClass* c = &b->classes->c[cls];
    TsiClassCounters* n = &b->counters[cls];
    uint32_t id = tsi_line_id(s, l);
    void* p = l->base + tsi_class_offset(c, slot);
    /* seq_cst, after the claim: a mark that was set before the free of the slot's last object is seen */
    uint64_t tag = tsi_load_seq(&tsi_slab(s, tsi_slab_of_line(s, id))->tag);
    if (TSI_UNLIKELY((tag & TSI_SLAB_HANDLED) != 0)) tsi_counts_even(s, l, id, tsi_tag_seq(tag), 1ull << slot);
    if (TSI_UNLIKELY(b->cuts)) tsi_profile_one(b, c->size);
    if (TSI_UNLIKELY(issue != NULL)) tsi_handle_issue_held(b->arena, p, issue);
    tsi_count(&n->alloc_tries);
    if (TSI_UNLIKELY(tsi_load_relaxed(&n->alloc_tries) % SCAN_NOTE == 0)) {
        uint64_t retries = tsi_load_relaxed(&n->alloc_retries);
        tsi_scan_note(b->arena, cls, SCAN_NOTE, retries - n->noted_retries);
        n->noted_retries = retries;
    }
    return p;
}

/* From the lane's current line; NULL when it is used up or the heap is not to be used. *seen: that line, id + 1, or
 * 0. */
static void* from_current(TsiBinding* b, TsiHeap* h, TsiRef ref, unsigned cls, unsigned lane, uint32_t* seen,
                          TsiIssue* issue) {
    void* p = NULL;
    unsigned slot;
    *seen = 0;
    if (TSI_LIKELY(enter(b, h, ref))) {
        /* pairs with the release in next_line: the line's words are set */
        *seen = tsi_load_acquire(&h->lanes->cur[lane][cls]);
        TsiLine* l = *seen != 0 ? tsi_line(&b->arena->space, *seen - 1) : NULL;
        if (TSI_LIKELY(l != NULL && claim(b, ref, cls, l, &slot))) p = object_at(b, cls, l, slot, issue);
    }
    leave(b);
    return p;
}

/* ---- lines; the stripe is held and the word SHARED ---- */

/* A listed line, or the line of another lane when threads are no longer spread; 0 when there is none. */
static uint32_t take_listed(TsiArena* a, TsiLanes* lanes, unsigned cls, unsigned lane) {
    for (unsigned n = 1; lane == 0 && n < TSI_SHARED_LANES && tsi_load_relaxed(&a->scan[cls].spread) == 0; n++) {
        uint32_t at = tsi_load_relaxed(&lanes->cur[n][cls]);
        tsi_store_relaxed(&lanes->cur[n][cls], 0);
        if (at != 0) return at;
    }
    uint32_t at = lanes->head[cls];
    if (at == 0) return 0;
    TsiLine* l = tsi_line(&a->space, at - 1);
    lanes->head[cls] = l->link;
    tsi_store_relaxed(&l->flags, tsi_load_relaxed(&l->flags) & (uint8_t)~TSI_LINE_LISTED);
    return at;
}

/* Puts another line in the place of the lane's current one; false without memory. */
static bool next_line(TsiBinding* b, TsiHeap* h, unsigned cls, unsigned lane, unsigned* cause) {
    TsiArena* a = b->arena;
    TsiLanes* lanes = h->lanes;
    uint32_t was = tsi_load_relaxed(&lanes->cur[lane][cls]), at = take_listed(a, lanes, cls, lane);
    if (was != 0) {
        tsi_store_relaxed(&lanes->cur[lane][cls], 0);
        if (tsi_lanes_put_aside(a, lanes, cls, was - 1)) tsi_count(&b->counters[cls].parked);
    }
    if (at == 0) {
        uint32_t slab_id;
        *cause = TSI_SLOW_MISS;
        if (!tsi_slab_take(b, h, cls, TSI_OPEN_SHARED, &slab_id)) return false;
        const TsiClass* c = &b->classes->c[cls];
        uint32_t first = tsi_first_line(c, slab_id);
        for (uint32_t n = (1u << c->lines_log2) - 1; n != 0; n--)
            (void)tsi_lanes_list(a, lanes, cls, tsi_line(&a->space, first + n));
        at = first + 1;
    }
    /* the next one, then */
    if ((tsi_load_relaxed(&tsi_line(&a->space, at - 1)->flags) & TSI_LINE_RETIRED) != 0) return true;
    tsi_store_release(&lanes->cur[lane][cls], at); /* pairs with the acquire in from_current */
    return true;
}

/* Until this thread has a slot of its own, or there is no memory. */
static void* from_lines(TsiBinding* b, TsiHeap* h, TsiRef ref, unsigned cls, unsigned lane, uint32_t seen,
                        TsiIssue* issue) {
    _Atomic uint32_t* cur = &h->lanes->cur[lane][cls];
    unsigned cause = seen == 0 ? TSI_SLOW_NULL : TSI_SLOW_FULL, slot;
    tsi_count(&b->counters[cls].line_tries);
    if (tsi_load_relaxed(cur) != seen) tsi_count(&b->counters[cls].line_lost); /* another thread was first */
    for (;;) {
        uint32_t at = tsi_load_relaxed(cur);
        TsiLine* l = at != 0 ? tsi_line(&b->arena->space, at - 1) : NULL;
        if (l != NULL && claim(b, ref, cls, l, &slot)) {
            tsi_count_slow(b, h, cls, cause);
            return object_at(b, cls, l, slot, issue);
        }
        if (next_line(b, h, cls, lane, &cause)) continue;
        tsi_count_slow(b, h, cls, TSI_SLOW_MISS);
        return NULL;
    }
}

/* ---- the allocation ---- */

/* The stripe, counted for the class as well. */
static void stripe_take(TsiArena* a, TsiInc* i, unsigned cls) {
    bool fast = tsi_inc_take(i);
    tsi_add_relaxed(&(fast ? a->space.lock_fast : a->space.lock_contended)[cls][tsi_lane_of(a, i)], 1);
}

/* Stripe held: may a slot be claimed here? */
static TsiOutcome usable_locked(TsiBinding* b, TsiHeap* h, TsiRef ref) {
    TSI_HOLDS(tsi_inc_lock(tsi_inc(&b->arena->phases, tsi_ref_index(ref))));
    if (!tsi_ref_is_active(&b->arena->phases, ref)) return TSI_STALE;
    /* seq_cst as in enter; the sweeper changes the word under this stripe too, so what is seen here holds until it is
     * given back */
    return tsi_load_relaxed(&h->ref) == ref && tsi_load_seq(&h->word) == TSI_SHARED_WORD ? TSI_GOT : TSI_AGAIN;
}

/* Before cleanups run, which may allocate. */
static void keep_events(TsiBinding* b, TsiBudgetEvents* e) {
    if (TSI_UNLIKELY((b->budget.soft | b->budget.hard) != 0)) *e = b->budget;
}

static TsiOutcome alloc_in_stripe(TsiBinding* b, TsiHeap* h, TsiRef ref, size_t size, unsigned cls, size_t align,
                               uint32_t seen, void** out, TsiIssue* issue, TsiBudgetEvents* e) {
    TsiArena* a = b->arena;
    TsiInc* i = tsi_inc(&a->phases, tsi_ref_index(ref));
    unsigned lane = lane_for(b, cls);
    stripe_take(a, i, cls);
    TsiOutcome o = usable_locked(b, h, ref);
    bool scavenge = false;
    if (o == TSI_GOT) {
        *out = tsi_bump_alloc(b, h, size, align);
        if (*out != NULL && issue != NULL) tsi_handle_issue_held(a, *out, issue);
        unsigned hard = b->budget.hard; /* told of before what a slab lacks, as by slab_alloc in alloc.c */
        if (*out == NULL) *out = from_lines(b, h, ref, cls, lane, seen, issue);
        if (*out == NULL && hard != 0) b->budget.hard = (uint8_t)hard;
        scavenge =
            h->takes > 64 && h->takes > tsi_load_relaxed(&h->slab_count) / 2 && tsi_load_relaxed(&h->slab_count) > 256;
        if (scavenge) h->takes = 0;
    }
    tsi_inc_give(i);
    if (o == TSI_AGAIN) tsi_os_yield(&b->turn); /* H4 */
    else b->turn = 0;
    keep_events(b, e);
    if (scavenge) tsi_trim_inc(a, b, i);
    if (o != TSI_GOT || *out != NULL) return o;
    return e->hard != 0 ? TSI_OVER : TSI_NO_MEMORY;
}

/* A line whose handles have run out hands out no more. */
static void retire_line(TsiBinding* b, TsiRef ref, const TsiIssue* issue) {
    TsiArena* a = b->arena;
    TsiInc* i = tsi_inc(&a->phases, tsi_ref_index(ref));
    TsiHeap* h;
    tsi_inc_take(i);
    if (tsi_lanes_heap_of(a, issue->at.slab_id, issue->seq, &h) && tsi_load_relaxed(&h->ref) == ref &&
        issue->at.cls <= TSI_SMALL_CLASSES) {
        TsiLine* l = tsi_line(&a->space, issue->at.line_id);
        tsi_store_relaxed(&l->flags, tsi_load_relaxed(&l->flags) | TSI_LINE_RETIRED);
        tsi_store_relaxed(&l->heap_at, 0);
        for (unsigned n = 0; n < TSI_SHARED_LANES; n++) {
            _Atomic uint32_t* cur = &h->lanes->cur[n][issue->at.cls];
            if (tsi_load_relaxed(cur) == issue->at.line_id + 1) tsi_store_relaxed(cur, 0);
        }
    }
    tsi_inc_give(i);
}

/* The record is pinned: nothing is entered that would keep it. */
static TsiOutcome alloc_large(TsiBinding* b, TsiRef ref, size_t size, size_t align, void** out, TsiIssue* issue,
                              TsiBudgetEvents* e) {
    TsiArena* a = b->arena;
    TsiInc* i = tsi_inc(&a->phases, tsi_ref_index(ref));
    TsiClassCounters* n = &b->counters[TSI_CLASS_LARGE];
    uint64_t now = tsi_inc_opening_ns(i, ref);
    tsi_inc_take(i); /* the class counts one of its own, of the pool */
    bool active = tsi_ref_is_active(&a->phases, ref);
    if (active) {
        tsi_inc_opened_locked(i, now);
        i->pins++;
        i->slow++;
    }
    tsi_inc_give(i);
    if (!active) return TSI_STALE;
    tsi_count(&n->slow);
    tsi_count(&n->slow_by[TSI_SLOW_MISS]);
    *out = tsi_large_alloc(b, ref, size, align, issue);
    active = tsi_ref_is_active(&a->phases, ref);
    keep_events(b, e);
    tsi_inc_unpin(a, b, i);
    if (*out != NULL) return TSI_GOT;
    if (e->hard != 0) return TSI_OVER;
    return active ? TSI_NO_MEMORY : TSI_STALE;
}

TsiOutcome tsi_shared_alloc(TsiBinding* b, TsiRef ref, size_t size, unsigned cls, size_t align, void** out,
                            TsiIssue* issue, TsiBudgetEvents* e) {
    TsiHeap* h;
    uint32_t seen;
    e->soft = e->hard = b->budget.soft = b->budget.hard = 0;
    *out = NULL;
    TsiOutcome o = TSI_GOT;
    if (cls == 0) {
        o = alloc_large(b, ref, size, align, out, issue, e);
    } else {
        TsiBirth birth = heap_of(b, ref, &h);
        if (birth != TSI_BIRTH_OK) return birth == TSI_BIRTH_STALE ? TSI_STALE : TSI_NO_MEMORY;
        *out = from_current(b, h, ref, cls, lane_for(b, cls), &seen, issue);
        if (*out == NULL) o = alloc_in_stripe(b, h, ref, size, cls, align, seen, out, issue, e);
        if (o == TSI_AGAIN) b->by_inc[tsi_ref_index(ref) % TSI_HEAP_CACHE] = NULL; /* found anew, if it is there */
    }
    if (*out != NULL && issue != NULL && issue->spent) retire_line(b, ref, issue);
    return o;
}
