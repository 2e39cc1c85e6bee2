/* ready.c - see ready.h. */
#include "heap/ready.h"

#include "base/check.h"
#include "base/probes.h"
#include "heap/bump.h"
#include "account/charge.h"
#include "heap/finish.h"
#include "heap/heap.h"
#include "heap/records.h"
#include "account/refuse.h"
#include "threads/registry.h"
#include "heap/sweep.h"
#include "heap/warm.h"
#include "mem/pool.h"
#include "mem/region.h"

#include <string.h>

/* Returns the word of a heap of the binding that waits with the region that is slab slab_id.
 * [any thread, needs no lock] */
static uint64_t ready_word(const TsiBinding* b, uint32_t slab_id) {
    return (uint64_t)slab_id << TSI_STANDBY_SLAB_SHIFT | tsi_heap_word(b->index, TSI_HEAP_STANDBY);
}

/* ---- a phase begins ---- */

/* Frees a heap that has lost its region, and was in the list of `rank`: takes it out of b's chain and its bytes off
 * b->ready_bytes. [own thread, needs no lock] */
static void drop_bare(TsiBinding* b, TsiHeap* h, unsigned rank) {
    tsi_heap_drop_own(b, h);
    b->ready_bytes -= b->ready_size[rank];
}

/* Enters h, a heap of the thread's that waited and has an empty region, into an incarnation without a heap, which `ref`
 * names: inc's list and heap_at have h, h's key and ref name inc, and the region's slab is OWNED. The caller has made h
 * LIVE, and charges. [own thread, stripe held] */
TSI_INLINE void enter_locked(TsiBinding* b, TsiInc* inc, TsiHeap* h, TsiRef ref) {
    TSI_HOLDS(tsi_inc_lock(inc));
    TsiRegion* r = tsi_load_relaxed(&h->region);
    TsiSlab* slab = tsi_slab(&b->arena->space, tsi_load_relaxed(&h->slabs) - 1);
    TSI_ASSERT(!h->ring); /* heaps wait for domains, and come from them */
    TSI_ASSERT(h->bumps && h->ranked && h->revoker == 0);
    TSI_ASSERT(tsi_load_relaxed(&h->takes) == 1);
    TSI_ASSERT((h->empty_regions | h->looked | h->skip | h->solo | h->inc_next | h->inc_prev) == 0);

    h->bumped = h->again = 0; /* thin_at is 0: it bumps */
    h->born = ++b->begun;
    tsi_store_relaxed(&h->last, NULL); /* it grew in another life */
    tsi_store_relaxed(&h->slow, 1);    /* this one */
    tsi_store_relaxed(&h->key, ref);
    tsi_store_release(&h->ref, ref);                  /* as in tsi_heap_birth_locked */
    tsi_store_relaxed(&inc->heap_at, tsi_heap_at(h)); /* as in tsi_heap_found */

    inc->heaps = h->index + 1;
    tsi_store_relaxed(&inc->heap_count, 1);

    if (TSI_UNLIKELY(b->profile_mean != 0)) tsi_store_relaxed(&r->lim, 0); /* what is bumped first draws a mark */
    tsi_store_relaxed(&r->heap_at, tsi_heap_at(h));
    tsi_store_relaxed(&slab->gone, 0);
    /* release: see slab_open in take.c */
    tsi_store_release(&slab->tag, tsi_tag(tsi_tag_seq(tsi_load_relaxed(&slab->tag)), h->index, TSI_SLAB_OWNED));
}

/* Counts the begin of a phase by a waiting heap, like tsi_count_slow; h has its counts already.
 * [own thread, needs no lock] */
TSI_INLINE void count_begun(TsiBinding* b) {
    tsi_count(&b->counters[TSI_CLASS_REGION].straight_begun);
    tsi_probe_slow_path(b->arena->owner, TSI_CLASS_REGION - 1, b->classes->c[TSI_CLASS_REGION].size, TSI_SLOW_MISS);
}

/* Undoes a take, as the heap could not be had: `seen` is the word that it had instead, `rank` its list; `charged`: the
 * phase has been, and is no more. Gives the stripe. A heap whose region was flushed (STANDBY_EMPTY) goes off the list,
 * and is freed. Returns NULL. [own thread, stripe held, and given] */
static TSI_NOINLINE TsiHeap* not_taken(TsiBinding* b, TsiInc* inc, TsiHeap* h, unsigned rank, uint64_t seen,
                                       bool charged) {
    if (charged) tsi_uncharge_all_locked(b->arena, b, inc);
    tsi_phase_unlock(inc);
    if (!charged || tsi_heap_state(seen) != TSI_HEAP_STANDBY_EMPTY) return NULL;
    tsi_store_relaxed(&b->ready[rank][--b->ready_count[rank]], 0);
    drop_bare(b, h, rank);
    return NULL;
}

/* Returns true if the incarnation, which has an only owner, is not the calling thread's. [stripe held] */
static TSI_NOINLINE bool owner_is_another(TsiInc* inc) {
    return tsi_load_relaxed(&inc->owner) != tsi_tls.thread->index + 1;
}

/* Returns true if the incarnation, which is open, is another thread's alone. [stripe held] */
TSI_INLINE bool is_anothers_locked(TsiInc* inc) {
    TSI_HOLDS(tsi_inc_lock(inc));
    return TSI_UNLIKELY(inc->owned) && owner_is_another(inc);
}

/* Takes the last waiting heap of the rank that the phase's label begins with (instead of a part, a page where no part
 * waits) into the phase, which has had none, and charges its region to it. Returns it, LIVE and off the list; or NULL
 * if none waits, the heap was flushed (its record is freed then), or the phase is no domain's, was touched, closed, is
 * another thread's alone or cannot be charged. [own thread, no lock held, no bracket open] */
TSI_INLINE TsiHeap* take(TsiBinding* b, TsiRef ref) {
    TsiInc* inc = tsi_inc(&b->arena->phases, tsi_ref_index(ref));
    unsigned rank = tsi_bump_first_rank(b, tsi_inc_label(inc));
    /* a page that is there is better than taking part of one */
    if (rank == TSI_RANK_PART && b->ready_count[rank] == 0) rank = TSI_RANK_PAGE;
    uint32_t count = b->ready_count[rank];
    /* the id may already be a later incarnation's */
    if (TSI_UNLIKELY(count == 0 || (tsi_load_relaxed(&inc->id) & TSI_DOMAIN_ID_BIT) == 0)) return NULL;

    _Atomic uint32_t* at = &b->ready[rank][count - 1];
    TsiHeap* h = b->heaps_base + (tsi_load_relaxed(at) - 1);
    size_t bytes = b->ready_size[rank];
    uint64_t now = tsi_inc_opening_ns(inc, ref), seen = ready_word(b, tsi_load_relaxed(&h->slabs) - 1);

    tsi_phase_lock(inc);
    /* The first to take the stripe: nobody has closed the phase, and it has no heap, slab or budget. */
    bool first = tsi_load_relaxed(&inc->word) == (tsi_ref_era(ref) << 2 | TSI_INC_ACTIVE) &&
                 ((inc->lock_fast ^ 1) | inc->lock_contended) == 0 && !is_anothers_locked(inc);
    bool charged = TSI_LIKELY(first) && tsi_charge_first_locked(b, inc, bytes);
    /* seq_cst: decides between us and a thread that flushes */
    if (TSI_UNLIKELY(!charged || !tsi_cas_seq(&h->word, &seen, tsi_heap_word(b->index, TSI_HEAP_LIVE))))
        return not_taken(b, inc, h, rank, seen, charged);

    enter_locked(b, inc, h, ref);
    tsi_inc_opened_locked(inc, now);
    tsi_phase_unlock(inc);
    tsi_store_relaxed(at, 0);
    b->ready_count[rank] = count - 1;
    b->ready_bytes -= bytes;
    count_begun(b);
    return h;
}

TsiBirth tsi_ready_heap(TsiBinding* b, TsiRef ref, bool bumps, TsiHeap** out) {
    *out = tsi_heap_cached(b, ref);
    if (*out != NULL) return TSI_BIRTH_OK;
    tsi_heaps_prune(b);
    *out = bumps ? take(b, ref) : NULL;
    return *out != NULL ? TSI_BIRTH_OK : tsi_heap_make(b, ref, out);
}

void* tsi_ready_first(TsiBinding* b, TsiRef ref, uint32_t bytes) {
    /* All that a slow path must do before it allocates, except tsi_warm_poll, which ends do, too. */
    bool waiting = tsi_load_relaxed(&b->inbox) != TSI_INBOX_EMPTY || tsi_load_relaxed(&b->arena->has_unswept);
    waiting = waiting || tsi_load_relaxed(&b->dead_heaps) != 0 || tsi_load_relaxed(&tsi_barrier_failed);
    if (waiting || b->watched || tsi_tls.exiting) return NULL;
    TsiHeap* h = take(b, ref);
    if (TSI_UNLIKELY(h == NULL)) return NULL;
    void* p;
    TsiFast fast =
        tsi_bump_fast(b, h, tsi_load_relaxed(&h->region), 0, bytes, &p); /* it fits: all of the region is free */
    if (TSI_LIKELY(fast == TSI_FAST_DONE)) return p;
    if (fast == TSI_FAST_HANDOVER) return tsi_alloc_left(b, h, p);
    tsi_fast_leave(b, h);
    return NULL;
}

/* ---- a phase ends ---- */

/* Returns true if the binding may keep `bytes` more with heaps that wait: b->ready_bytes and `bytes` are within
 * b->warm.lent, which rises by a block from the warm store if it must and can. [own thread, needs no lock] */
static bool has_budget(TsiBinding* b, size_t bytes) {
    if (TSI_LIKELY(b->ready_bytes + bytes <= tsi_load_relaxed(&b->warm.lent))) return true;
    return tsi_warm_lend(b, bytes) && b->ready_bytes + bytes <= tsi_load_relaxed(&b->warm.lent);
}

/* Ends the life of r, the region of `slab`, with *sum: what it held; counts frees that met as refused, and ends the
 * generation of handles where some were issued. Returns true if the next life has begun: the tag is WARM under the next
 * seq. Returns false if none can begin now, since generations or lives are used up or a freer is inside: the tag is as
 * it was, and all objects have ended. [owner, stripe held] */
TSI_INLINE bool renew_region(TsiArena* a, TsiRegion* r, TsiSlab* slab, TsiRegionSum* sum) {
    bool turned = tsi_region_turn(r, sum);
    for (; TSI_UNLIKELY(sum->twice != 0); sum->twice--) tsi_refuse_count(a, TSI_REFUSED_LATE);
    /* seq_cst, after the word was exchanged: a thread that has set the flag meanwhile looks at the word then, and
     * issues no handle. */
    uint64_t tag = tsi_load_seq(&slab->tag);
    /* before a next life: handles of this one match none */
    if (TSI_UNLIKELY((tag & TSI_SLAB_HANDLED) != 0)) tsi_add_relaxed(&slab->gen_base, 1);
    if (TSI_UNLIKELY(tsi_load_relaxed(&slab->gen_base) >= TSI_GEN_LIMIT || !turned)) return false;
    tsi_store_release(&slab->tag, tsi_tag(tsi_seq_next(tsi_tag_seq(tag)), 0, TSI_SLAB_WARM));
    return true;
}

/* Lets the heap wait (STANDBY), with its region, whose next life has begun, as entry `count` (b->ready_count[rank]) of
 * the list of `rank`; raises b->ready_count and b->ready_bytes. b has no ambient heap then, if it was this one. bytes:
 * the region's. [own thread, stripe held] */
TSI_INLINE void put(TsiBinding* b, TsiHeap* h, unsigned rank, uint32_t count, size_t bytes) {
    tsi_store_relaxed(&h->ref, 0);
    if (b->heap == h) tsi_binding_set_ambient(b, &tsi_no_heap);
    tsi_store_release(&b->ready[rank][count], h->index + 1); /* pairs with tsi_ready_flush, with the word */
    b->ready_count[rank] = count + 1;
    b->ready_bytes += bytes;
    tsi_store_relaxed(&b->warm.used, true);
    tsi_store_release(&h->word,
                      ready_word(b, tsi_load_relaxed(&h->slabs) - 1)); /* publishes the region to its flushers */
}

/* Returns true if the thread has taken the stripe to begin the phase and to end it, and nobody else has taken it. So
 * nobody has closed the phase or its heap, has a heap or a slab in it, registered a cleanup, pinned or relabelled it,
 * or posted anything of it. Other words can be changed without the stripe. [own thread, stripe held] */
TSI_INLINE bool is_untouched_locked(TsiBinding* b, TsiInc* inc, TsiRef ref, const TsiHeap* h) {
    TSI_HOLDS(tsi_inc_lock(inc));
    bool here = tsi_load_relaxed(&inc->word) == (tsi_ref_era(ref) << 2 | TSI_INC_ACTIVE) &&
                tsi_load_relaxed(&h->word) == tsi_heap_word(b->index, TSI_HEAP_LIVE);
    uint64_t more =
        (inc->lock_fast ^ 2) | inc->lock_contended | tsi_load_relaxed(&inc->peak) | tsi_load_relaxed(&inc->user_refs);
    if (!here || more != 0) return false;
    TSI_ASSERT((tsi_load_relaxed(&inc->budget.soft) | tsi_load_relaxed(&inc->budget.hard)) == 0);
    TSI_ASSERT(h->inc_next == 0 && inc->pins == 1 &&
               (inc->orphans | inc->ends | tsi_load_relaxed(&inc->slab_count) | inc->allocated.objects) == 0);
    TSI_ASSERT((inc->posted.lock_fast | inc->pinned_slabs | inc->closed_slabs | inc->slow |
                tsi_load_relaxed(&inc->scopes)) == 0);
    return true;
}

/* Resets the record of a phase that has ended straight to the state that tsi_inc_open leaves (inc->clean), but for its
 * label and times: no heap, no charge, no only owner. [stripe held] */
TSI_INLINE void clean_locked(TsiInc* inc, uint32_t label) {
    TSI_HOLDS(tsi_inc_lock(inc));
    inc->heaps = 0;
    tsi_store_relaxed(&inc->heap_count, 0);
    tsi_store_relaxed(&inc->open_since_ns, 0);
    tsi_store_relaxed(&inc->charge, (uint64_t)label << TSI_CHARGE_BITS);
    if (TSI_UNLIKELY(inc->owned)) tsi_inc_disown(inc);
    inc->clean = true;
}

/* The sums of a phase that ends. */
typedef struct TsiEnded {
    TsiRegionSum sum; /* of its slabs; live objects are released */
    uint64_t slow, slabs, now_ns;
} TsiEnded;

/* Posts a phase that ends straight to its label's account, through the binding's store of the label: objects and bytes,
 * slow paths, slabs, size and age. Takes the phase's bytes off the label, not off inc->charge.
 * [own thread, stripe held] */
TSI_INLINE void post_locked(TsiBinding* b, TsiInc* inc, const TsiEnded* ended) {
    TSI_HOLDS(tsi_inc_lock(inc));
    uint64_t charge = tsi_load_relaxed(&inc->charge), since = tsi_load_relaxed(&inc->open_since_ns);
    uint64_t bytes = charge & TSI_CHARGE_MASK;
    uint32_t label = (uint32_t)(charge >> TSI_CHARGE_BITS);
    TSI_ASSERT(ended->slow != 0 && ended->slabs != 0);
    TsiPending* pending = tsi_pending_of(b, label);
    tsi_pending_sum(&pending->sums.straight, 1);
    tsi_pending_sum(&pending->sums.straight_objects, ended->sum.live);
    tsi_pending_sum(&pending->sums.straight_bytes, ended->sum.live_bytes);
    if (ended->sum.issued != ended->sum.live) tsi_post_freed(pending, &ended->sum);
    if (TSI_UNLIKELY(ended->slow != 1)) tsi_pending_sum(&pending->sums.slow, ended->slow - 1);
    if (TSI_UNLIKELY(ended->slabs != 1)) tsi_pending_sum(&pending->sums.closed_slabs, ended->slabs - 1);
    tsi_post_shape(b, pending, bytes, since, ended->now_ns);
    tsi_label_less(b, pending, label, bytes);
}

/* Returns true if `bytes` need a page, and no more than one. [any thread, needs no lock] */
TSI_INLINE bool is_of_a_page(uint32_t bytes) { return bytes > TSI_PART_BYTES && bytes <= TSI_REGION_MIN; }

/* Learns like tsi_bump_learn, from a phase that has had one region, r; changes nothing where b->learned says for the
 * label that part of a page, or a page, is enough, and it was. [own thread, stripe held] */
TSI_INLINE void learn(TsiBinding* b, const TsiHeap* h, const TsiRegion* r, uint32_t label) {
    TsiLearned* learned = &b->learned[label % TSI_LEARNED];
    uint32_t rel = tsi_load_relaxed(&r->rel);
    bool part = learned->rank == TSI_RANK_PART + 1 && rel <= TSI_PART_BYTES;
    bool page = learned->rank == TSI_RANK_PAGE + 1 && learned->small == 0 && is_of_a_page(rel);
    bool taught = learned->label == label && (part || page);
    if (TSI_LIKELY(taught && learned->traits == 0 && h->bumped == 0)) return;
    tsi_bump_learn(b, h, label);
}

/* Returns the rank of the heap's region if the heap may wait: the region is all that it has taken, it still bumps
 * there, that rank's list has room, there is no profile, and the region's bytes fit in what the warm store has lent or
 * now lends (has_budget). Otherwise returns TSI_READY_RANKS. [own thread, stripe held] */
TSI_INLINE unsigned waits_at(TsiBinding* b, const TsiHeap* h) {
    unsigned rank = h->rank - 1u;
    if (tsi_load_relaxed(&h->slab_count) != 1 || h->room != NULL) return TSI_READY_RANKS;
    if (!h->ranked || !h->bumps) return TSI_READY_RANKS;
    if (TSI_UNLIKELY(tsi_load_relaxed(&h->region) == &tsi_no_region)) return TSI_READY_RANKS;
    if (rank >= TSI_READY_RANKS || b->ready_count[rank] == TSI_READY_HEAPS) return TSI_READY_RANKS;
    return TSI_UNLIKELY(b->profile_mean != 0) || !has_budget(b, b->ready_size[rank]) ? TSI_READY_RANKS : rank;
}

/* Sets the whole receipt of a phase that held *sum, with zeros for the time and the memory that has gone back.
 * [stripe held] */
TSI_INLINE void fill_locked(TsiInc* inc, const TsiRegionSum* sum, EpochReceipt* out) {
    TSI_HOLDS(tsi_inc_lock(inc));
    *out = (EpochReceipt){.version = TSI_RECEIPT_VERSION,
                          .epoch_id = tsi_load_relaxed(&inc->id),
                          .epoch_era = tsi_inc_era(inc),
                          .objects_allocated = sum->issued,
                          .objects_freed = sum->issued - sum->live,
                          .objects_released = sum->live,
                          .bytes_allocated = sum->issued_bytes,
                          .bytes_freed = sum->issued_bytes - sum->live_bytes,
                          .bytes_released = sum->live_bytes};
    memcpy(out->label, inc->label, sizeof out->label);
}

/* Sets the receipt's close_ns to the time since since_ns, of the quick clock. [any thread, needs no lock] */
static void tell_time(uint64_t since_ns, EpochReceipt* out) {
    uint64_t end = tsi_os.quick_ns();
    out->close_ns = end > since_ns ? end - since_ns : 0;
}

/* Returns the time, nanoseconds of the quick clock, if the receipt or the phase's age needs it; otherwise 0.
 * [stripe held] */
TSI_INLINE uint64_t end_ns(TsiInc* inc, const EpochReceipt* out) {
    bool asked = out != NULL || tsi_load_relaxed(&inc->open_since_ns) != TSI_UNTIMED;
    return TSI_LIKELY(asked) ? tsi_os.quick_ns() : 0;
}

/* Ends a phase straight whose heap does not wait: its slabs go, as from a sweep, and the heap is freed; the record is
 * the caller's to free. Fills *out, unless NULL. Gives the stripe. Returns true; false, and ends nothing, with *out as
 * it was, if the phase never held a slab: an allocation that found no room was charged to nobody, and the account has
 * neither its size nor its age. [own thread, stripe held, and given] */
static TSI_NOINLINE bool end_without_heap(TsiBinding* b, TsiInc* inc, TsiHeap* h, EpochReceipt* out) {
    TSI_HOLDS(tsi_inc_lock(inc));
    if (tsi_load_relaxed(&h->slab_count) == 0) { /* and none has gone: peak is 0 (is_untouched_locked) */
        tsi_phase_unlock(inc);
        return false;
    }

    TsiSweep sweep = {.arena = b->arena, .b = b, .inc = inc, .learns = true};
    /* for the sweep; release: as in end_with_heap */
    tsi_store_release(&inc->word, tsi_inc_era(inc) << 2 | TSI_INC_RELEASED);
    TsiEnded ended = {.now_ns = end_ns(inc, out)};
    tsi_sweep_own_locked(&sweep, h);
    ended.sum =
        (TsiRegionSum){inc->allocated.objects, inc->allocated.bytes, inc->released.objects, inc->released.bytes, 0};
    ended.slow = inc->slow;
    ended.slabs = inc->closed_slabs;
    if (out != NULL) fill_locked(inc, &ended.sum, out);

    tsi_store_release(&inc->word, TSI_INC_RELEASED); /* era 0, as in end_with_heap */
    post_locked(b, inc, &ended);
    sweep.uncharged = 0; /* with the post */
    tsi_store_relaxed(&inc->charge, tsi_load_relaxed(&inc->charge) & ~TSI_CHARGE_MASK);

    tsi_phase_unlock(inc);
    tsi_sweep_finish(&sweep);
    if (out == NULL) return true;
    tsi_receipt_returned(&sweep, out);
    tell_time(ended.now_ns, out);
    return true;
}

/* Ends an untouched phase straight and lets its heap wait with its region, at `rank` of waits_at: posts the phase to
 * its label, cleans the record for the caller to free, and gives the stripe. Fills *out, unless NULL. Returns false if
 * the region cannot be used again now: its objects have ended and are counted all the same, *out is not touched, and
 * the common way must end the phase. [own thread, stripe held, and given] */
TSI_INLINE bool end_with_heap(TsiBinding* b, TsiInc* inc, TsiHeap* h, unsigned rank, EpochReceipt* out) {
    TSI_HOLDS(tsi_inc_lock(inc));
    TsiArena* a = b->arena;
    uint32_t count = b->ready_count[rank], label = tsi_inc_label(inc);
    size_t bytes = b->ready_size[rank];
    TsiRegion* r = tsi_load_relaxed(&h->region);
    TsiSlab* slab = tsi_slab(&a->space, tsi_load_relaxed(&h->slabs) - 1);
    TsiEnded ended = {.slow = tsi_load_relaxed(&h->slow), .slabs = 1, .now_ns = end_ns(inc, out)};

    learn(b, h, r, label);
    if (TSI_UNLIKELY(!renew_region(a, r, slab, &ended.sum))) {
        inc->allocated = (TsiTotals){ended.sum.issued, ended.sum.issued_bytes};
        inc->released = (TsiTotals){ended.sum.live, ended.sum.live_bytes};
        tsi_phase_unlock(inc);
        return false;
    }

    if (TSI_UNLIKELY(out != NULL)) fill_locked(inc, &ended.sum, out);
    /* Era 0, which matches no reference, before the account has the phase (label.h): nobody sees the phase between the
     * two. The record is ours until it is given back. release: nobody enters its heap any more, and a thread that wants
     * to make one waits for the stripe. */
    tsi_store_release(&inc->word, TSI_INC_RELEASED);
    post_locked(b, inc, &ended);
    clean_locked(inc, label);
    tsi_count(&b->counters[TSI_CLASS_REGION].straight_ended);
    put(b, h, rank, count, bytes);
    tsi_phase_unlock(inc);

    if (TSI_LIKELY(out == NULL)) return true;
    out->slabs_returned = out->regions_returned = 1;
    out->bytes_returned = bytes;
    tell_time(ended.now_ns, out);
    return true;
}

bool tsi_ready_end(TsiBinding* b, TsiRef ref, EpochReceipt* out) {
    TsiArena* a = b->arena;
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    if (tsi_load_relaxed(&inc->heap_count) != 1) return false; /* a hint */
    tsi_phase_lock(inc); /* before reading anything of the heap's owner: a trim may be at it */
    TsiHeap* h = b->heaps_base + (inc->heaps - (inc->heaps != 0)); /* record 0 is nobody's */
    if (TSI_UNLIKELY(!is_untouched_locked(b, inc, ref, h))) {
        tsi_phase_unlock(inc);
        return false;
    }

    unsigned rank = waits_at(b, h);
    if (TSI_UNLIKELY(rank == TSI_READY_RANKS)) {
        if (!end_without_heap(b, inc, h, out)) return false;
    } else if (TSI_UNLIKELY(!end_with_heap(b, inc, h, rank, out))) return false;
    tsi_record_give_inc(a, b, inc->index);
    tsi_warm_poll(a);
    return true;
}

/* ---- memory back ---- */

void tsi_ready_child(TsiArena* a, TsiHeap* h, bool own) {
    TsiBinding* b = tsi_binding_at(a, tsi_load_relaxed(&h->word));
    tsi_store_relaxed(&h->slabs, 0);
    tsi_store_relaxed(&h->region, &tsi_no_region);
    /* another thread's stays unused */
    tsi_store_relaxed(&h->word, own ? tsi_heap_word(b->index, TSI_HEAP_STANDBY_EMPTY) : TSI_HEAP_FREE);
}
