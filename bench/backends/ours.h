/*
 * ours.h - what temporal-slab by pointer and by handle have in common: one allocator with default options, the current
 * epoch of the ring under a label, a phase is a labelled domain.
 *
 *   TSLAB_SAMPLED     the library times one slow allocation in SAMPLING_PERIOD
 *   TSLAB_UNLABELLED  nothing has a label: what labels cost
 *   TSLAB_LANE        allocations in a phase are inlined, by its lane
 *   TSLAB_RUN         a phase is its thread's alone, and its allocations are inlined by a run
 */
#ifndef BENCH_OURS_H
#define BENCH_OURS_H

#include "epoch_domain.h"
#include "slab_alloc.h"
#include "slab_lane.h"
#include "slab_stats.h"

#define BK_PHASES 1
#define BK_PHASE_FREE 1
#define BK_SCOPES 1
#define BK_OURS 1
#define BK_HANDS_OVER 1

#ifdef TSLAB_UNLABELLED
#define RING_LABEL NULL
#define LABEL NULL
#else
#define RING_LABEL "background"
#define LABEL "GET /items"
#endif

static SlabAllocator* bk_allocator;

static const char* bk_version(void) { return slab_version(); }

static inline SlabAllocator* bk_new_allocator(void) {
#ifdef TSLAB_SAMPLED
    SlabOptions options = {.struct_size = sizeof options, .sampling_period = SAMPLING_PERIOD};
    SlabAllocator* a = slab_allocator_create_with(&options);
#else
    SlabAllocator* a = slab_allocator_create();
#endif
    if (!a) cannot(slab_last_error());
    slab_epoch_set_label(a, epoch_current(a), RING_LABEL);
    return a;
}

/* The ring moves on; the id of the epoch that it leaves. */
static inline EpochId bk_advance(void) {
    EpochId old = epoch_current(bk_allocator);
    epoch_advance(bk_allocator);
    slab_epoch_set_label(bk_allocator, epoch_current(bk_allocator), RING_LABEL);
    return old;
}

struct bk_phase {
    epoch_domain_t* domain;
#ifdef TSLAB_LANE
    SlabLane lane;
#endif
#ifdef TSLAB_RUN
    SlabRun run;
#endif
};

static const char* bk_phase_label = LABEL;
#ifndef TSLAB_UNLABELLED
#define BK_PHASE_LABEL(text) (bk_phase_label = (text)) /* of phases that are opened from here on */
#endif

static inline void bk_open_lane(struct bk_phase* ph) {
#ifdef TSLAB_LANE
    if (!slab_lane_open(&ph->lane, ph->domain)) cannot("no lane");
#endif
    (void)ph;
}

#ifdef TSLAB_RUN
static inline void bk_open_run(struct bk_phase* ph) {
    SlabDomainOptions o = {.struct_size = sizeof o, .label = bk_phase_label, .flags = SLAB_DOMAIN_OWNER_ONLY};
    if (!(ph->domain = epoch_domain_create_ex(bk_allocator, &o)) || !slab_run_begin(&ph->run, ph->domain))
        cannot("no run");
}
#endif

static inline void bk_phase_open(struct bk_phase* ph, size_t hint) {
    (void)hint;
#ifdef TSLAB_RUN
    bk_open_run(ph);
    return;
#endif
    if (!(ph->domain = epoch_domain_create_labeled(bk_allocator, bk_phase_label))) cannot("no domain");
    bk_open_lane(ph);
}

/* As the thread's scope: allocations need not name it. */
static inline void bk_scope_begin(struct bk_phase* ph, size_t hint) {
    (void)hint;
#ifdef TSLAB_LANE
    if (!slab_lane_begin(&ph->lane, bk_allocator, LABEL)) cannot("no domain");
    ph->domain = ph->lane.domain;
#elif defined(TSLAB_RUN)
    bk_open_run(ph); /* allocations name it, so nobody need be inside */
#else
    if (!(ph->domain = epoch_domain_begin(bk_allocator, LABEL))) cannot("no domain");
#endif
}

static inline void bk_hand_over(struct bk_phase* ph) {
    if (!epoch_domain_detach(ph->domain)) corrupt("a scope could not be detached");
}

static inline void bk_take_over(struct bk_phase* ph) {
    if (!epoch_domain_attach(ph->domain)) corrupt("a scope could not be attached");
    bk_open_lane(ph); /* of this thread */
}

static inline uint64_t bk_held_bytes(void) {
    SlabGlobalStats g;
    slab_stats_global(bk_allocator, &g);
    return g.committed_bytes;
}

#endif
