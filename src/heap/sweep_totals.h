/*
 * sweep_totals.h - the slabs that a sweep has taken from an incarnation, and the figures that it counts.
 */
#ifndef TSI_HEAP_SWEEP_TOTALS_H
#define TSI_HEAP_SWEEP_TOTALS_H

#include "state/liveness.h"

/* The state of a sweep, with what it has taken and must give back once it holds no lock. Chains of slab id + 1. */
typedef struct TsiSweep {
    TsiArena* arena;
    TsiBinding* b; /* the sweeping thread's, or NULL */
    TsiInc* inc;
    uint64_t ticket;
    bool others;      /* other threads own heaps here */
    unsigned banks;   /* shared mode: bits of the banks that the sweeping thread holds */
    bool proven;      /* threads inside of a bracket are seen; else fenced owners only */
    bool closing;     /* not a trim */
    bool at_once;     /* the program has chosen this moment: nothing is kept */
    bool puts_off;    /* the end of a scope: few pages of slabs that stay do not go now (put_off.h) */
    uint32_t put_off; /* bytes of these */
    bool lends;       /* what was emptied stays for a while: the phase goes on (decay.h) */
    bool learns;      /* the end of a scope: memory that goes for want of budget may be missed soon */
    uint64_t most;    /* bytes of slabs to look at, at least one; 0: all of them */
    uint64_t looked;  /* bytes of slabs, counted against `most` */
    bool gives;       /* it has begun to give memory back (tsi_space_give_begin) */
    bool more;        /* it stopped at `most`, and nobody else is about to take the rest */
    bool idle;        /* heaps of threads that are not idle (decay.h) are theirs to trim */
    bool leaves;      /* the thread lets go of its heaps: of a phase that is not closed their empty slabs go */
    uint32_t out;     /* by `next`: slabs for the warm store or the pool */
    uint32_t large;   /* by `next` */
    uint32_t partial; /* by `extra`: claimed PARTIAL, some pages to give back */
    uint64_t slabs, bytes, deferred, deferred_bytes;
    uint32_t regions;     /* of `slabs` */
    uint32_t interrupts;  /* membarriers issued */
    uint64_t uncharged;   /* bytes of slabs that have left the incarnation */
    uint64_t purged;      /* bytes given back to the system */
    TsiTotals escaped;    /* at the first close that drains */
    TsiCloseTally* tally; /* by class, for the close log; or NULL */
} TsiSweep;

enum { TSI_PIECE_BYTES = 256 << 10 };

/* Returns true if the sweep has looked at as many bytes as it may. [own thread, needs no lock] */
TSI_INLINE bool tsi_sweep_is_through(const TsiSweep* sweep) { return sweep->most != 0 && sweep->looked >= sweep->most; }

/* Adds n for the class in the field of TsiClassCounters at byte offset `field`. [own thread, needs no lock] */
void tsi_sweep_count(TsiSweep* sweep, size_t field, unsigned cls, uint64_t n);
/* Adds `bytes` that the system is given back to the class's row of sweep->tally, for the close log; does nothing
 * without a tally, or where pages are kept by policy. [own thread, needs no lock] */
void tsi_sweep_purged(TsiSweep* sweep, unsigned cls, size_t bytes);
/* Counts a slab of the class that an end has looked at: in the class's counters, in sweep->tally, unless NULL, and in
 * inc->closed_slabs. [stripe held] */
void tsi_sweep_poll(TsiSweep* sweep, unsigned cls);
/* Takes the bytes of slabs in the sweep's hands (sweep->uncharged, which is 0 then) off the charges of the incarnation
 * and its label; under the stripe in the hold in which they left the incarnation, or a thread that looks for room under
 * a budget would find neither the slabs nor their room. [own thread, needs no lock] */
void tsi_sweep_uncharge(TsiSweep* sweep);
/* Fills in what the phase was, as it ends: version, id, era, label, and objects and bytes allocated, freed, released,
 * and escaped, which are `live`. All other fields stay. [stripe held] */
void tsi_receipt_fill_locked(TsiInc* inc, TsiTotals live, EpochReceipt* receipt);
/* Sets the whole receipt of an end that has met nothing: version, id, era and label as given, and zeros.
 * [any thread, needs no lock] */
void tsi_receipt_blank(EpochReceipt* receipt, EpochId id, uint64_t era, const char label[TSI_LABEL_BYTES]);
/* Fills in what the sweep has returned and left: slabs, regions and bytes returned, slabs and bytes deferred, and
 * membarriers. All other fields stay. [own thread, needs no lock] */
void tsi_receipt_returned(const TsiSweep* sweep, EpochReceipt* receipt);

#endif
