/*
 * run.c - runs: the rest of a region in the hands of the one thread that may allocate in its phase. The path that puts
 * an object there is in slab_lane.h, inlined in the program; the rest is here.
 *
 * A run has no bracket: nobody revokes the region that it writes in, because
 *
 *   Z1  The phase is one thread's alone for as long as it is active (epoch.h, `owner`): others are refused an end, an
 *       allocation and an adoption there, and a trim passes it by.
 *   Z2  The domain remembers that a run is open (`runs`), of which there is one at most, and calls that would end the
 *       phase or take the thread from it are refused. When the thread itself exits the phase is released, and the run
 *       with it.
 *   Z3  The region is claimed (R5 in region.h), so it is not empty to any thread that asks: it is not renewed, not
 *       given back by a trim of the thread's own, and no page of it goes. Frees of others in a heap that such a trim
 *       has left without an owner look at it in the same way.
 *   Z4  The owner's counts in the record are written in the owner's bracket, or under the stripe where a trim of the
 *       thread's own has left its heap without an owner: frees of others look at it there.
 *   Z5  The start of the rest of the gap stands behind the last object before that object's own start does, and both
 *       before the object is handed out: so a thread that frees it, or asks how large it is, finds where it ends. That
 *       start stays when the rest is given back, until the next object's does (R1): threads may have read earlier how
 *       much of the region is used.
 *   Z6  A call has the run by value, and functions of the program that it calls (of a budget, cleanups, of misuses)
 *       find the old run. So the run is refused to them (TSI_RUN_CALLED), and its place is empty meanwhile, so that the
 *       inlined path calls.
 */
#include "slab_lane.h"

#include "api/domain.h"
#include "api/alloc_paths.h"

#include "state/bracket.h"
#include "heap/thread_heaps.h"
#include "mem/region.h"

_Static_assert(TSI_GRANULE == 16 && TSI_BUMP_MAX == 4096, "slab_lane.h knows them");
_Static_assert(sizeof(SlabRun) == 96, "programs that were built before have runs of this size");

/* Returns the library's record of a run's domain, NULL if the run is none. [any thread, needs no lock] */
static TsiDomain* domain_of(const SlabRun* run) { return tsi_domain_of(run->domain); }

/* ---- the rest of a region ---- */

/* Claims for the run the rest of the region in which h bumps: the run's region_, at_, end_, map_, life_ and gap_ then
 * describe it, and count_ is 0; the heap bumps there no more. Leaves the run alone if h does not bump, its bracket
 * cannot be opened, or nothing is left. Opens and closes a bracket. [owner, no lock held, no bracket open] */
static void claim(SlabRun* run, TsiBinding* b, TsiHeap* h) {
    TsiRegion* r = tsi_load_relaxed(&h->region);
    if (r == &tsi_no_region || !tsi_bracket_enter(b, h, tsi_busy_region(r))) return;
    uint32_t from, bytes = tsi_region_claim(r, &from);
    if (bytes != 0) {
        tsi_store_relaxed(&h->last, NULL); /* behind it stands a gap's start from now on (tsi_bump_extend) */
        uintptr_t base = (uintptr_t)tsi_load_relaxed(&r->base);
        run->region_ = r;
        run->at_ = base + from;
        run->end_ = run->at_ + bytes;
        run->map_ = (uintptr_t)tsi_load_relaxed(&r->map) - (base >> TSI_GRANULE_SHIFT);
        run->life_ = tsi_region_life(r);
        run->gap_ = tsi_region_life(r) | TSI_MARK_GAP;
        run->count_ = 0;
    }
    tsi_bracket_leave(b, h);
}

/* Claims for the run, by `claim`, the rest of a region of the heap to which the domain d leads, in the phase `ref`;
 * leaves the run alone if it leads to none or the run's inlined path must always call (its thread_ is 0).
 * [owner, no lock held, no bracket open] */
static void claim_there(SlabRun* run, TsiDomain* d, TsiRef ref) {
    if (run->thread_ == 0 || tsi_load_relaxed(&d->phase.heap) == &tsi_no_heap) return;
    TsiBinding* b = tsi_binding_get(d->arena, false);
    TsiHeap* h = tsi_phase_heap(b, &d->phase, ref);
    if (h != NULL) claim(run, b, h);
}

/* Gives the rest of the run's region back, counts the objects that were made there as allocated, and sets the run's
 * region_, at_, end_ and count_ to 0; does nothing if the run has no region. ref: its phase, that of d. Opens and
 * closes a bracket, or takes the stripe and gives it back if the heap is not the thread's any more (Z4).
 * [owner, no lock held, no bracket open] */
static void unclaim(SlabRun* run, TsiDomain* d, TsiRef ref) {
    TsiArena* a = d->arena;
    TsiRegion* r = run->region_;
    if (r == NULL) return;
    TsiBinding* b = tsi_binding_get(a, false);
    TsiHeap* h = tsi_heap(a, tsi_tag_index(tsi_load_relaxed(&tsi_region_slab(&a->space, r)->tag)));
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    uintptr_t at = run->at_ - (uintptr_t)tsi_load_relaxed(&r->base);

    bool live = tsi_bracket_enter(b, h, tsi_busy_region(r)); /* Z4 */
    if (!live) tsi_phase_lock(inc);
    tsi_region_unclaim(r, (uint32_t)at, (uint32_t)run->count_);
    if (live) tsi_bracket_leave(b, h);
    else tsi_phase_unlock(inc);

    run->region_ = NULL;
    run->at_ = run->end_ = 0;
    run->count_ = 0;
}

/* ---- the calls ---- */

bool slab_run_begin_as(SlabRun* run, epoch_domain_t* domain, uint32_t version) {
    TsiDomain* d = tsi_domain_of(domain);
    *run = (SlabRun){.domain = NULL};
    if (!tsi_domain_usable(d)) return false;
    if (tsi_domain_is_anothers(d)) return tsi_domain_refuse(d, TSI_DOMAIN_ANOTHERS);
    if (!tsi_load_relaxed(&d->owner_only))
        return tsi_failed_bool(EINVAL, "a run needs a domain with SLAB_DOMAIN_OWNER_ONLY");
    if (!tsi_domain_found(d)) return tsi_domain_refuse_destroyed(d);

    TsiRef ref = tsi_load_relaxed(&d->phase.ref);
    if (ref == 0 || !tsi_ref_is_active(&d->arena->phases, ref)) return tsi_domain_refuse(d, TSI_DOMAIN_CLOSED);

    SlabLane lane; /* in another version, with stand-ins, in shared mode it calls, and so does the run */
    if (!slab_lane_open_as(&lane, domain, version)) return false;
    *run = (SlabRun){.domain = domain, .phase_ = ref, .thread_ = lane.thread_, .thread_at_ = lane.thread_at_};
    tsi_store_relaxed(&d->runs, TSI_RUN_OPEN);
    claim_there(run, d, ref);
    return true;
}

/* Returns true if the run is the calling thread's, its phase goes on, and no call of it is under way (Z6); otherwise
 * refuses the call and returns false, with errno: EINVAL (no run, or its domain is none), EBUSY (another thread's, or
 * a call is under way), ESTALE (the phase has ended). [any thread, no lock held, no bracket open] */
static bool is_usable(const SlabRun* run) {
    TsiDomain* d = domain_of(run);
    if (d == NULL) return tsi_failed_bool(EINVAL, "the run is none");
    if (!tsi_domain_usable(d)) return false;
    if (tsi_domain_is_anothers(d)) return tsi_domain_refuse(d, TSI_DOMAIN_ANOTHERS);
    if (tsi_load_relaxed(&d->phase.ref) != run->phase_ || !tsi_domain_runs(d))
        return tsi_domain_refuse(d, TSI_DOMAIN_CLOSED);
    return tsi_load_relaxed(&d->runs) == TSI_RUN_OPEN || tsi_domain_refuse(d, TSI_DOMAIN_CALLED);
}

SlabRun slab_run_malloc_called(SlabRun run, size_t size) {
    TSI_KEEP_FRAME();
    run.got_ = NULL;
    if (!is_usable(&run)) return run;
    TsiDomain* d = domain_of(&run);
    bool fits = size - 1 < TSI_BUMP_MAX;
    tsi_store_relaxed(&d->runs, TSI_RUN_CALLED);
    if (fits) unclaim(&run, d, run.phase_);
    run.got_ = tsi_domain_malloc(d, size, run.phase_);
    if (fits) claim_there(&run, d, run.phase_);
    tsi_store_relaxed(&d->runs, TSI_RUN_OPEN);
    return run;
}

bool slab_run_end_as(SlabRun run) {
    if (!is_usable(&run)) return false;
    TsiDomain* d = domain_of(&run);
    unclaim(&run, d, run.phase_);
    tsi_store_relaxed(&d->runs, TSI_RUN_NONE);
    return true;
}
