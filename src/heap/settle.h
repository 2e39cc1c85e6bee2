/*
 * settle.h - one slab leaves its heap or its incarnation. Internal to the sweep and the remote free.
 */
#ifndef TSI_HEAP_SETTLE_H
#define TSI_HEAP_SETTLE_H

#include "heap/living.h"

/* What a sweep has taken and must give back once it holds no lock. Chains of slab id + 1. */
typedef struct TsiSweep {
    TsiArena* arena;
    TsiBinding* b; /* the sweeping thread's, or NULL */
    TsiInc* inc;
    uint64_t ticket;
    bool others;      /* other threads own heaps here */
    TsiHeap* held;    /* a shared heap that others may be inside of, or NULL */
    bool proven;      /* whoever is inside of a bracket is seen; else fenced owners only */
    bool waited;      /* nobody is inside of `held` */
    bool closing;     /* not a trim */
    bool at_once;     /* the program has chosen this moment: nothing is kept */
    bool learns;      /* the end of a scope: what goes for want of budget may have gone in vain */
    uint32_t out;     /* by `next`: slabs for the warm store or the pool */
    uint32_t large;   /* by `next` */
    uint32_t partial; /* by `extra`: claimed PARTIAL, some pages to give back */
    uint64_t slabs, bytes, deferred, deferred_bytes;
    uint32_t regions;    /* of `slabs` */
    uint32_t interrupts; /* membarriers issued */
    uint64_t uncharged; /* bytes of slabs that have left the incarnation */
    uint64_t purged;    /* bytes given back to the system */
    TsiTotals escaped;  /* at the first close that drains */
    TsiCloseTally* tally; /* by class, for the close log; or NULL */
} TsiSweep;

/* The slab joins, or with n = -1 leaves, those that a sweep has left to their owner. Stripe held. */
void tsi_skipped_add_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, int n);
/* Adds n for the class in a field of TsiClassCounters. */
void tsi_sweep_count(TsiSweep* w, size_t field, unsigned cls, uint64_t n);
/* Notes bytes that the system is given back, for the class in the close log. */
void tsi_sweep_purged(TsiSweep* w, unsigned cls, size_t bytes);
/* An end has looked at a slab of the class. Stripe held. */
void tsi_sweep_look(TsiSweep* w, unsigned cls);
/* The slab's heap is SEIZED, the stripe held. Adds to the incarnation's totals. */
void tsi_settle_release(TsiSweep* w, uint32_t slab_id);
void tsi_settle_drain(TsiSweep* w, uint32_t slab_id);
/* Takes the slab if it is empty; true then. */
bool tsi_settle_if_empty(TsiSweep* w, uint32_t slab_id);
/* Looks at every orphan, and claims those that have pages without a live slot; the stripe is held. */
void tsi_settle_orphan_pages(TsiSweep* w);
/* Ends every orphan; the stripe is held. */
void tsi_settle_release_orphans(TsiSweep* w);
/* In a fork child: an OWNED slab joins the orphans. Stripe held. */
void tsi_slab_to_orphan(TsiArena* a, TsiInc* i, uint32_t slab_id);
/* In a fork child: a claimed slab leaves its orphan list, then goes back to the pool. */
void tsi_unlink_claimed(TsiArena* a, TsiInc* i);
void tsi_return_claimed(TsiArena* a, uint32_t slab_id);
/* A slab of no epoch is never used again; its pages go back. */
void tsi_slab_retire(TsiArena* a, uint32_t slab_id);
/* Gives back what the sweep has taken. No lock held. */
void tsi_sweep_finish(TsiSweep* w);
/* A freer found an ORPHAN slab complete. */
void tsi_slab_complete(TsiArena* a, TsiBinding* b, uint32_t slab_id, uint64_t tag);
/* Puts an orphan on its incarnation's list; sum: what it holds, and adds to the totals, which have it. Stripe held. */
void tsi_orphan_link_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, const TsiSlabSum* sum);

#endif
