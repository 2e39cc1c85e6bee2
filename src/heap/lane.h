/*
 * lane.h - shared mode (option `shared`): threads allocate as one of a few threads that nobody is.
 *
 * A lane is a binding of no thread behind a lock. Who holds the lock is the binding's thread, and allocates and frees
 * there by the ordinary path: heaps, rooms, brackets, inboxes and warm slabs are those of owned mode, and what holds
 * there holds here, because the lock hands everything that a thread keeps from one holder to the next. A thread's own
 * binding keeps its scopes, domains and samples. It has no heap; so a free that finds the lane held does not wait: it
 * is another thread's, one compare-exchange.
 *
 *   gathered   all threads allocate in lane 0: few slabs
 *   spread     a thread allocates in the lane of its number, of four
 *
 * A controller moves the allocator from the one to the other by the share of allocations that had to wait for their
 * lane.
 *
 * Invariants
 *   L1  A thread holds one lane, or, in a sweep, those that tsi_lanes_take has given it. No function of the program
 *       runs while it does: cleanups run between tsi_lane_pause and tsi_lane_resume. The lane's binding may have been
 *       used meanwhile, as where a cleanup has allocated in owned mode.
 *   L2  A sweep that holds a lane is inside none of its brackets, and nobody else is: the lane's heaps are the
 *       sweeper's own (S3 of sweep.c), so its receipt is exact and needs no membarrier.
 *   L3  Nobody waits for a lane for ever: an allocation goes on to another one, and a sweep does without, as in owned
 *       mode, where what an owner is inside of is left to it. So a thread that is stopped inside of a lane holds up
 *       others for moments. (Only when all four are held by stopped threads do allocations wait, and who has run a
 *       function of the program waits for its own lane.)
 *   L4  What is in a lane is not the thread's that forks: a child drops the lanes, whose heaps lose their owner there.
 */
#ifndef TSI_HEAP_LANE_H
#define TSI_HEAP_LANE_H

#include "heap/registry.h"

/* The lane's binding; its holder's. */
TSI_INLINE TsiBinding* tsi_lane_binding(const TsiLane* l) { return tsi_load_relaxed(&l->binding); }

TSI_INLINE TsiLane* tsi_lane_chosen(const TsiBinding* own) {
    TsiArena* a = own->arena;
    uint32_t n = TSI_UNLIKELY(tsi_load_relaxed(&a->scan.spread) != 0) ? own->index : 0;
    return &a->lane[(n + own->lane) % TSI_SHARED_LANES];
}
/* The thread whose own binding is at hand has the lane's lock. */
TSI_INLINE void tsi_lane_begin(TsiLane* l) {
    TSI_ASSERT(tsi_tls.lane == NULL && tsi_tls.serial == tsi_tls.binding->arena->serial);
    tsi_tls.own = tsi_tls.binding;
    tsi_tls.binding = tsi_lane_binding(l);
    tsi_tls.lane = l;
}
/* The lane of the thread with this binding, if it is free, has been used, and the thread holds none. */
TSI_INLINE bool tsi_lane_try(const TsiBinding* own, TsiLane** out) {
    TsiLane* l = *out = tsi_lane_chosen(own);
    if (tsi_tls.lane != NULL || tsi_load_relaxed(&l->binding) == NULL || !tsi_lock_try(&l->lock)) return false;
    tsi_lane_begin(l);
    return true;
}
/* Waits for one, for an allocation of a class in a phase; NULL without memory. */
TsiLane* tsi_lane_enter(TsiBinding* own, unsigned cls, TsiRef target);
TSI_INLINE void tsi_lane_leave(TsiLane* l) {
    tsi_tls.binding = tsi_tls.own;
    tsi_tls.lane = NULL;
    tsi_lock_give(&l->lock);
}
/* Around functions of the program: the lane that the thread holds, if it holds one, is free for others. */
typedef struct TsiLanePause {
    TsiLane* lane;
    TsiBinding* own;
} TsiLanePause;
TsiLanePause tsi_lane_pause(void);
void tsi_lane_resume(TsiLanePause p);

/* Lane's holder: since this last said so, so many full lines of the lane were freed in that half of its slabs may be
 * empty. */
bool tsi_lane_is_emptied(TsiBinding* lane, uint32_t slabs);
/* Full lines that were freed in, of all lanes so far. */
uint64_t tsi_lanes_opened(TsiArena* a);

enum { TSI_LANE_NOTE = 1 << 10 };
/* The controller: so many allocations more, and of those so many that have waited. */
void tsi_lane_note(TsiArena* a, uint64_t allocations, uint64_t waits);
/* One allocation in the lane. */
TSI_INLINE void tsi_lane_count(TsiBinding* b, TsiLane* l, unsigned cls) {
    tsi_count(&b->counters[cls].alloc_tries);
    if (TSI_LIKELY(++l->allocations < TSI_LANE_NOTE))
        return; /* more: in a fork child, whose lanes may be as they were */
    tsi_lane_note(b->arena, TSI_LANE_NOTE, l->waits);
    l->allocations = l->waits = 0;
}

/* For a sweep: the lanes that could be had in time, a bit each; 0 but in shared mode, and where the thread holds one.
 */
unsigned tsi_lanes_take(TsiArena* a);
void tsi_lanes_give(TsiArena* a, unsigned lanes);
/* Is it the binding of one of these lanes? */
TSI_INLINE bool tsi_lanes_have(const TsiArena* a, unsigned lanes, uint32_t binding) {
    for (; TSI_UNLIKELY(lanes != 0); lanes &= lanes - 1)
        if (tsi_lane_binding(&a->lane[tsi_ctz64(lanes)])->index == binding) return true;
    return false;
}
/* In a fork child. */
void tsi_lanes_child(TsiArena* a);

#endif
