/*
 * sweep.c - takes heaps from their owners and returns their slabs.
 *
 * A sweep works in two holds of the incarnation's stripe, with one membarrier between them if other threads own heaps
 * there:
 *
 *   1  set the state; others' LIVE and RETIRE heaps -> REVOKED, stamped with this sweep's ticket
 *   -  membarrier: from here on no owner enters a bracket on a revoked heap
 *   2  own heaps -> SEIZED, walk; of each with our ticket read the owner's busy: names nothing of the incarnation
 *      -> SEIZED, walk; names a slab of the heap -> SEIZED, walk all but that slab (`skip`); names the whole
 *      incarnation -> stays REVOKED, its owner walks it as it leaves (tsi_handover)
 *
 * Invariants
 *   S1  A slab is settled once: by the walk of its heap, or, when skipped, by the owner in handover.
 *   S2  What a walk does (trim, drain, release) follows the state read under the stripe, so a later,
 *       stronger close that finds a heap revoked by an earlier sweep need not wait for it.
 *   S3  A sweep leaves another thread's heap that another sweep has revoked to that sweep, by ticket: the owner's busy
 *       must be read after a barrier that followed the revocation. A sweep that looks at everything takes over, by its
 *       own ticket and barrier, heaps that one in passing has revoked (S5), for that may stop before it comes there.
 *       The sweeping thread takes its own heaps whoever revoked them, for it is inside no bracket, and likewise heaps
 *       of banks that it holds (bank.h). A sweep whose membarrier has failed takes heaps of fenced owners only
 *       (bracket.h) and gives its ticket back for the others: then they are any later sweep's, or their owner's.
 *   S4  A record is reused only when it has drained and nothing pins it; a sweep pins it.
 *   S5  A sweep that is a thread's own business (an end, a trim, the handover of its own heaps) looks at everything.
 *       Any other, which a thread does in passing, in an allocation or a free, stops after TSI_PIECE_BYTES. A heap that
 *       still has slabs then is put back as a trim puts it: nobody's, or its owner's to let go of. The incarnation is
 *       on the list of those that wait (finish.h).
 * Freers wait for a walk only if they empty a slab of an incarnation of the same stripe that has ended, or free a large
 * object of one; and, with fill_freed, where the slab is another thread's.
 */
#include "heap/sweep.h"

#include "state/bracket.h"
#include "heap/bump.h"
#include "heap/heap.h"
#include "threads/bank.h"
#include "heap/settle.h"
#include "mem/stock.h"

enum {
    LITTLE = 8,        /* slabs */
    TICKET_PASSING = 1 /* bit of the tickets of sweeps that stop after a piece; TSI_NO_TICKET has it, too */
};

_Atomic bool tsi_barrier_failed;

bool tsi_barrier(void) {
    if (!tsi_os.has_membarrier) return false; /* all are fenced */
    if (tsi_os.membarrier()) return true;
    tsi_store_seq(&tsi_barrier_failed, true); /* pairs with binding_make */
    return false;
}

/* Returns true if a heap with this word is the sweeping thread's, or a bank's that it holds.
 * [own thread, needs no lock] */
static bool is_mine(TsiSweep* sweep, uint64_t word) {
    uint32_t binding = tsi_heap_binding(word);
    return (sweep->b != NULL && binding == sweep->b->index) || tsi_banks_have(sweep->arena, sweep->banks, binding);
}

/* Returns true if a thread owns a heap with this word: it is LIVE, RETIRE or REVOKED. [any thread, needs no lock] */
static bool has_owner(uint64_t word) {
    unsigned state = tsi_heap_state(word);
    return state == TSI_HEAP_LIVE || state == TSI_HEAP_RETIRE || state == TSI_HEAP_REVOKED;
}

/* Does the first hold: makes LIVE and RETIRE heaps of other threads REVOKED, with this sweep's ticket, and lent ones
 * DETACHED; leaves alone heaps of threads that are not idle, for a sweep with `idle`. Sets sweep->others if a
 * membarrier must follow. only: NULL, or the binding whose heaps alone are meant. [stripe held] */
static void revoke_locked(TsiSweep* sweep, TsiBinding* only) {
    TSI_HOLDS(tsi_inc_lock(sweep->inc));
    TsiArena* a = sweep->arena;

    for (uint32_t at = sweep->inc->heaps; at != 0; at = tsi_heap(a, at - 1)->inc_next) {
        TsiHeap* h = tsi_heap(a, at - 1);
        (void)tsi_heap_recall_locked(a, h); /* H5; whosever it was */
        uint64_t word = tsi_load_seq(&h->word);
        unsigned state = tsi_heap_state(word);
        if ((only != NULL && tsi_heap_binding(word) != only->index) || is_mine(sweep, word)) continue;
        if (sweep->idle && has_owner(word) && !tsi_load_relaxed(&tsi_binding_at(a, word)->idle)) continue;
        bool passing = (h->revoker & TICKET_PASSING) != 0 && sweep->most == 0; /* S3 */
        if (state == TSI_HEAP_REVOKED && (passing || h->revoker == TSI_NO_TICKET)) h->revoker = sweep->ticket;
        while (state == TSI_HEAP_LIVE || state == TSI_HEAP_RETIRE) {
            h->revoker = sweep->ticket;
            /* seq_cst: before the membarrier, and pairs with tsi_heap_is_live in the fenced form */
            if (tsi_cas_seq(&h->word, &word, tsi_heap_word(tsi_heap_binding(word), TSI_HEAP_REVOKED))) break;
            state = tsi_heap_state(word);
        }
        if (state != TSI_HEAP_DETACHED) sweep->others = true;
    }
}

/* Takes the heap out of its incarnation's list; inc->heap_count is one less, and h's count of slow paths is added to
 * inc->slow. [stripe held] */
static void heap_leave_inc_locked(TsiArena* a, TsiInc* inc, TsiHeap* h) {
    TSI_HOLDS(tsi_inc_lock(inc));
    if (h->inc_prev != 0) tsi_heap(a, h->inc_prev - 1)->inc_next = h->inc_next;
    else inc->heaps = h->inc_next;
    if (h->inc_next != 0) tsi_heap(a, h->inc_next - 1)->inc_prev = h->inc_prev;
    tsi_store_relaxed(&inc->heap_count, tsi_load_relaxed(&inc->heap_count) - 1);
    inc->slow += tsi_load_relaxed(&h->slow);
}

/* Settles every slab but `skip` (id + 1; 0: none) of a SEIZED heap, or of one that the caller is letting go of, as
 * `state` asks: RELEASED, all go; ACTIVE, only the empty ones; otherwise the empty ones, and the others become orphans.
 * An end stops after sweep->most bytes, with sweep->more. Leaves the heap the slabs that stay, with its counts of
 * these, its `roomy` for an ACTIVE phase, and its current region only if that stays. [stripe held] */
static void walk_locked(TsiSweep* sweep, TsiHeap* h, unsigned state, uint32_t skip) {
    TSI_HOLDS(tsi_inc_lock(sweep->inc));
    TsiSpace* s = &sweep->arena->space;
    /* seq_cst, before the slabs are looked at: O1 and O2 of ownerless.h */
    tsi_store_seq(&h->emptied, 0);
    tsi_store_seq(&h->roomy, 0);
    uint64_t roomy = 0;

    sweep->closing = state != TSI_INC_ACTIVE;
    TsiRegion* region = tsi_load_relaxed(&h->region);
    uint32_t kept = 0, kept_count = 0, kept_regions = 0;
    uint32_t current = region != &tsi_no_region ? tsi_region_id(s, region) + 1 : 0;
    uint64_t kept_bytes = 0;
    bool goes_on = false;

    uint32_t at = tsi_load_relaxed(&h->slabs), rest_count = tsi_load_relaxed(&h->slab_count), rest_regions = h->regions;
    uint64_t rest_bytes = tsi_load_relaxed(&h->slab_bytes);
    for (uint32_t next; at != 0 && (!sweep->closing || !tsi_sweep_is_through(sweep)); at = next) {
        next = tsi_slab(s, at - 1)->next;
        unsigned cls = tsi_class_of_slab(s, at - 1);
        size_t bytes = tsi_slab_bytes(s, cls, at - 1);
        sweep->looked += bytes;
        rest_count--;
        rest_bytes -= bytes;
        rest_regions -= tsi_class_is_region(cls);
        if (sweep->closing) tsi_sweep_poll(sweep, cls);
        if (at == skip) continue;
        if (state == TSI_INC_RELEASED) {
            tsi_settle_release(sweep, at - 1);
        } else if (state != TSI_INC_ACTIVE) {
            tsi_settle_drain(sweep, at - 1);
        } else if (!tsi_settle_if_empty(sweep, at - 1)) {
            tsi_slab(s, at - 1)->next = kept;
            kept = at;
            kept_count++;
            kept_regions += tsi_class_is_region(cls);
            goes_on |= at == current;
            kept_bytes += bytes;
            bool asks = (tsi_class_bit(cls) & ~roomy) != 0;
            if (asks && tsi_slab_has_room(s, cls, at - 1)) roomy |= tsi_class_bit(cls);
        }
    }

    if (at != 0) { /* S5 */
        kept = at;
        kept_count = rest_count;
        kept_bytes = rest_bytes;
        kept_regions = rest_regions;
        sweep->more = true;
    }

    if (roomy != 0) (void)tsi_or_seq(&h->roomy, roomy);
    tsi_store_relaxed(&h->slabs, kept);
    h->empty_regions = h->looked = h->solo = 0;
    if (!goes_on) tsi_bump_drop(sweep->b != NULL && sweep->b->heap == h ? sweep->b : NULL, h);
    tsi_store_relaxed(&h->takes, 0);
    h->regions = kept_regions;
    tsi_store_relaxed(&h->slab_count, kept_count);
    tsi_store_relaxed(&h->slab_bytes, kept_bytes);
}

void tsi_sweep_ownerless_locked(TsiSweep* sweep, TsiHeap* h) {
    TSI_HOLDS(tsi_inc_lock(sweep->inc));
    uint64_t word = tsi_detached_word(), seized = tsi_heap_word(TSI_BINDINGS_MAX, TSI_HEAP_SEIZED);
    /* O1: seq_cst, after the word was stored */
    while (tsi_ownerless_is_due(h, tsi_load_seq(&h->emptied))) {
        if (!tsi_cas_seq(&h->word, &word, seized)) return; /* another was first */
        walk_locked(sweep, h, TSI_INC_ACTIVE, 0);
        tsi_store_seq(&h->word, word);
    }
    if (tsi_load_relaxed(&h->slab_count) == 0 && tsi_cas_seq(&h->word, &word, seized)) {
        heap_leave_inc_locked(sweep->arena, sweep->inc, h);
        tsi_sub_relaxed(&sweep->inc->detached, 1);
        tsi_heap_free(sweep->arena, sweep->b, h);
        return;
    }
    (void)tsi_or_seq(&sweep->inc->roomy, tsi_load_seq(&h->roomy)); /* O2 */
}

/* Takes a heap that nobody is inside of, except on the slab `skip` (id + 1; 0: none), and settles its other slabs as
 * the incarnation's state asks. In a phase that goes on, or after a piece (S5), puts the heap back: DETACHED if it was
 * nobody's or the caller's own, else RETIRE. Otherwise takes the heap out of the incarnation and frees it, or leaves it
 * DEAD to its owner, who settles `skip`: h may be gone then. An end also teaches what the label's phases need. Does
 * nothing if the heap's word is no longer `word`: REVOKED or DETACHED, or the caller's own LIVE or RETIRE.
 * [stripe held] */
static void seize_locked(TsiSweep* sweep, TsiHeap* h, uint64_t word, uint32_t skip) {
    TSI_HOLDS(tsi_inc_lock(sweep->inc));
    TsiArena* a = sweep->arena;
    bool detached = tsi_heap_state(word) == TSI_HEAP_DETACHED, mine = !detached && is_mine(sweep, word);
    bool active = tsi_inc_state(sweep->inc) == TSI_INC_ACTIVE;
    TsiBinding* owner = detached ? NULL : tsi_binding_at(a, word);
    if (!tsi_cas_seq(&h->word, &word, tsi_heap_word(tsi_heap_binding(word), TSI_HEAP_SEIZED))) return;

    TsiBinding* learns = mine ? owner : sweep->b; /* likely to have the label's next phase */
    bool teaches = !active && learns != NULL && h->ranked;
    uint64_t pinned = sweep->inc->pinned_slabs;
    if (teaches) tsi_bump_learn(learns, h, tsi_inc_label(sweep->inc));
    if (!active) h->ranked = false; /* once, if the walk stops and goes on later */

    walk_locked(sweep, h, tsi_inc_state(sweep->inc), skip);
    if (teaches && sweep->inc->pinned_slabs != pinned) tsi_bump_outlived(learns, tsi_inc_label(sweep->inc));

    if (active || h->slabs != 0) { /* a trim: the heap goes on and needs a new room; or S5 */
        if (mine) {
            tsi_store_seq(&h->word, tsi_heap_word(owner->index, TSI_HEAP_RETIRE));
            tsi_heap_detach_locked(owner, h);
        } else {
            tsi_store_seq(&h->word,
                          tsi_heap_word(tsi_heap_binding(word), detached ? TSI_HEAP_DETACHED : TSI_HEAP_RETIRE));
        }
        if (active && (mine || detached)) tsi_sweep_ownerless_locked(sweep, h);
        return;
    }

    heap_leave_inc_locked(a, sweep->inc, h);
    if (detached) {
        tsi_sub_relaxed(&sweep->inc->detached, 1);
        tsi_heap_free(a, sweep->b, h);
    } else if (mine) {
        tsi_heap_drop_own(owner, h);
    } else {
        h->skip = skip;
        if (skip != 0) tsi_skipped_add_locked(a, sweep->inc, skip - 1, 1);
        tsi_store_seq(&h->word, tsi_heap_word(owner->index, TSI_HEAP_DEAD)); /* pairs with tsi_heaps_prune */
        tsi_add_seq(&owner->dead_heaps, 1); /* after the word: a prune that misses the one sees the other */
    }
}

TsiHeap* tsi_busy_heap(TsiArena* a, uint64_t busy, uint32_t* slab_id) {
    TsiSpace* s = &a->space;
    bool region = busy - (uint64_t)(uintptr_t)s->regions < (uint64_t)s->chunk_count << TSI_REGIONS_SHIFT;
    /* no_line */
    if (!region && busy - (uint64_t)(uintptr_t)s->meta >= (uint64_t)s->chunk_count << TSI_META_SHIFT) return NULL;

    uint32_t line_id = region ? 0 : tsi_line_id(s, (const TsiLine*)(uintptr_t)busy);
    uint32_t named = region ? tsi_region_id(s, (const TsiRegion*)(uintptr_t)busy) : 0,
             chunk = region ? tsi_slab_chunk(named) : tsi_line_chunk(line_id);
    unsigned cls = tsi_chunk_class(s, chunk);
    if (cls == 0 || cls == TSI_CLASS_LARGE || cls == TSI_CLASS_CONT) return NULL;
    if (tsi_class_is_region(cls) != region) return NULL;

    /* The chunk may have changed class since the line was found: the line need not be one of this class's. */
    uint32_t slab = region ? tsi_slab_number(named) : tsi_line_number(line_id) >> s->classes->c[cls].lines_log2;
    if (slab >= tsi_chunk_slab_count(s, cls)) return NULL;
    *slab_id = tsi_slab_id(chunk, slab);

    uint64_t tag = tsi_load_seq(&tsi_slab(s, *slab_id)->tag);
    return tsi_tag_state(tag) == TSI_SLAB_OWNED ? tsi_heap(a, tsi_tag_index(tag)) : NULL;
}

void tsi_bracket_missed(TsiBinding* b) {
    uint64_t busy = tsi_load_relaxed(&b->busy);
    uint32_t slab_id;
    /* seq_cst, then the word: a sweep that has seen the name, which a fast path sets without a fence, has changed the
     * word before, and leaves the slab to this thread. Pairs with revoke_locked */
    if (TSI_UNLIKELY(b->live_word == TSI_FENCED)) (void)tsi_swap_seq(&b->busy, 0);
    else tsi_bracket_clear(b);
    TsiHeap* h = tsi_busy_heap(b->arena, busy, &slab_id);
    uint64_t word = h != NULL ? tsi_load_seq(&h->word) : 0; /* as in tsi_heap_is_live */
    /* B3 */
    if (h != NULL && tsi_heap_binding(word) == b->index && tsi_heap_state(word) != TSI_HEAP_LIVE) tsi_handover(b, h);
}

/* Returns 0 if `owner`, the binding that has h, a heap with our ticket, is inside nothing of it; id + 1 if inside a
 * slab of it; UINT32_MAX if inside all of the incarnation's heaps. [stripe held, after a membarrier] */
static uint32_t busy_in(TsiArena* a, TsiHeap* h, TsiBinding* owner) {
    /* acquire: pairs with the releases in bracket.h; after our membarrier it names what the owner is in.
     * seq_cst for the fenced form. */
    uint64_t busy = tsi_load_seq(&owner->busy);
    if (busy == 0) return 0;
    if ((busy & 1) != 0) {
        TsiHeap* named = (TsiHeap*)(uintptr_t)(busy & ~1ull);
        return tsi_load_relaxed(&named->ref) == tsi_load_relaxed(&h->ref) ? UINT32_MAX : 0;
    }
    uint32_t slab_id;
    return tsi_busy_heap(a, busy, &slab_id) == h ? slab_id + 1 : 0;
}

/* Does the second hold: seizes the heaps that are this sweep's to take (S3), and counts in sweep->deferred and
 * deferred_bytes the slabs of revoked ones that it leaves to their owners or to other sweeps. Once it has looked at
 * sweep->most bytes, leaves the rest, with sweep->more. [stripe held] */
static void seize_all_locked(TsiSweep* sweep) {
    TSI_HOLDS(tsi_inc_lock(sweep->inc));
    TsiArena* a = sweep->arena;
    bool active = tsi_inc_state(sweep->inc) == TSI_INC_ACTIVE;
    for (uint32_t at = sweep->inc->heaps, next; at != 0; at = next) {
        TsiHeap* h = tsi_heap(a, at - 1);
        next = h->inc_next;
        uint64_t word = tsi_load_seq(&h->word);
        unsigned state = tsi_heap_state(word);

        uint32_t skip = 0;
        bool mine = state != TSI_HEAP_DETACHED && is_mine(sweep, word), revoked = state == TSI_HEAP_REVOKED && !mine;
        bool by_us = revoked && h->revoker == sweep->ticket; /* S3 */
        bool ours = state == TSI_HEAP_DETACHED || mine || by_us;
        if (ours && revoked) {
            bool unseen = !sweep->proven && !tsi_binding_is_fenced(tsi_binding_at(a, word));
            if (unseen) h->revoker = TSI_NO_TICKET; /* a thread may be inside unseen */
            skip = unseen ? UINT32_MAX : busy_in(a, h, tsi_binding_at(a, word));
        }

        if (ours && tsi_sweep_is_through(sweep)) { /* S5 */
            if (revoked) h->revoker = TSI_NO_TICKET;
            sweep->more = true;
            continue;
        }

        /* a heap that goes on does so with all its slabs: it stays its owner's to let go of */
        bool stays = skip != 0 && (active || sweep->most != 0);
        if (!ours || skip == UINT32_MAX || stays) {
            if (revoked) {
                uint32_t slabs = tsi_load_relaxed(&h->slab_count);
                sweep->deferred += slabs != 0 ? slabs : 1; /* its owner may be about to have one */
                sweep->deferred_bytes += tsi_load_relaxed(&h->slab_bytes);
            }
            continue;
        }
        seize_locked(sweep, h, word, skip);
    }
}

void tsi_sweep_locked(TsiSweep* sweep, TsiBinding* only) {
    TSI_HOLDS(tsi_inc_lock(sweep->inc));
    TsiLock* lock = tsi_inc_lock(sweep->inc);
    sweep->ticket = (tsi_add_relaxed(&sweep->arena->tickets, 1) + 1) * 2 + (sweep->most != 0 ? TICKET_PASSING : 0);
    revoke_locked(sweep, only);
    if (sweep->others) {
        tsi_lock_give_probed(lock);
        sweep->proven = tsi_barrier();
        sweep->interrupts += sweep->proven;
        tsi_add_relaxed(&sweep->arena->barriers, 1);
        tsi_lock_take(lock);
    }

    seize_all_locked(sweep);
    if (sweep->most != 0) return; /* orphans are complete or wait for nothing (tsi_slab_complete, tsi_inc_thin) */
    unsigned state = tsi_inc_state(sweep->inc);
    if (state == TSI_INC_RELEASED) tsi_settle_release_orphans(sweep);
    else if (state != TSI_INC_ACTIVE) tsi_settle_orphan_pages(sweep);
}

void tsi_sweep_own_locked(TsiSweep* sweep, TsiHeap* h) {
    TSI_HOLDS(tsi_inc_lock(sweep->inc));
    seize_locked(sweep, h, tsi_heap_word(sweep->b->index, TSI_HEAP_LIVE), 0);
}

/* Returns true if a heap's empty slabs must go as its thread lets go of it: where the thread leaves, and where it has
 * had little there, since the next owner does not use its regions, so they might stay for as long as the epoch.
 * [own thread, stripe held] */
static bool is_walked(const TsiSweep* sweep, const TsiHeap* h) {
    bool little = h->bumps && h->ring && tsi_load_relaxed(&h->slab_count) <= LITTLE;
    return sweep->leaves || (little && tsi_inc_state(sweep->inc) == TSI_INC_ACTIVE);
}

void tsi_sweep_handed_locked(TsiSweep* sweep, TsiBinding* b) {
    TSI_HOLDS(tsi_inc_lock(sweep->inc));

    /* all heaps of a binding in an incarnation share a room, so they go together */
    bool asked = false;
    for (uint32_t at = sweep->inc->heaps; at != 0 && !asked; at = tsi_heap(sweep->arena, at - 1)->inc_next) {
        uint64_t word = tsi_load_seq(&tsi_heap(sweep->arena, at - 1)->word);
        asked = tsi_heap_binding(word) == b->index &&
                (tsi_heap_state(word) == TSI_HEAP_RETIRE || tsi_heap_state(word) == TSI_HEAP_REVOKED);
    }

    for (uint32_t at = sweep->inc->heaps; at != 0 && asked; at = tsi_heap(sweep->arena, at - 1)->inc_next) {
        uint64_t live = tsi_heap_word(b->index, TSI_HEAP_LIVE);
        (void)tsi_cas_seq(&tsi_heap(sweep->arena, at - 1)->word, &live, tsi_heap_word(b->index, TSI_HEAP_RETIRE));
    }

    for (uint32_t at = sweep->inc->heaps, next; at != 0; at = next) {
        TsiHeap* h = tsi_heap(sweep->arena, at - 1);
        next = h->inc_next;
        uint64_t word = tsi_load_seq(&h->word);
        if (tsi_heap_binding(word) != b->index) continue;
        if (tsi_heap_state(word) == TSI_HEAP_RETIRE && tsi_inc_state(sweep->inc) <= TSI_INC_ADVANCED) {
            if (is_walked(sweep, h)) walk_locked(sweep, h, TSI_INC_ACTIVE, 0);
            else tsi_store_relaxed(&h->roomy, UINT64_MAX); /* nobody knows */
            tsi_heap_detach_locked(b, h);
            tsi_sweep_ownerless_locked(sweep, h);
        } else if (tsi_heap_state(word) == TSI_HEAP_RETIRE || tsi_heap_state(word) == TSI_HEAP_REVOKED) {
            seize_locked(sweep, h, word, 0);
        }
    }
}

void tsi_sweep_skipped_locked(TsiSweep* sweep, TsiBinding* b, TsiRef ref) {
    TSI_HOLDS(tsi_inc_lock(sweep->inc));
    for (uint32_t at = b->own_heaps; at != 0; at = tsi_heap(sweep->arena, at - 1)->own_next) {
        TsiHeap* h = tsi_heap(sweep->arena, at - 1);
        if (tsi_load_relaxed(&h->ref) != ref || h->skip == 0) continue;
        uint32_t slab_id = h->skip - 1;
        h->skip = 0;
        tsi_skipped_add_locked(sweep->arena, sweep->inc, slab_id, -1);
        if (tsi_inc_state(sweep->inc) == TSI_INC_RELEASED) tsi_settle_release(sweep, slab_id);
        else tsi_settle_drain(sweep, slab_id);
    }
}
