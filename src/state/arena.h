/*
 * arena.h - the record of one allocator, of its threads and of their heaps.
 *
 *   TsiArena    everything behind one SlabAllocator; known by its serial, which is never reused
 *   TsiBinding  one thread in one arena: the bracket word, the ambient heap, what the thread keeps
 *   TsiHeap     one binding's slabs in one incarnation: the unit of ownership and of hand-over
 *   TsiRoom     a heap's lines to allocate from, by class; private to the owner, a cache
 *   TsiBank     in shared mode, a binding of no thread behind a lock: its holder is its thread (bank.h)
 *
 * Heap word    binding | state:8. Shared transitions are compare-exchanges, those out of SEIZED stores
 *              by the only holder; REVOKED -> SEIZED only
 *              under the stripe lock and by the sweep whose ticket the heap carries
 *
 *   FREE -> LIVE(b) -> REVOKED(b) -> SEIZED -> FREE | DEAD(b) | DETACHED | RETIRE(b)
 *             |  ^         ^
 *             |  +- DETACHED -> SEIZED
 *             +-> RETIRE(b) -> DETACHED | REVOKED(b)
 *             +-> LENT(b) -> LIVE(b) | DETACHED | LIVE(c)
 *
 *   LIVE      the binding's thread allocates and frees in it with plain stores
 *   RETIRE    the epoch was advanced: the thread is asked to let go; still its own
 *   REVOKED   a sweeper wants it; the thread enters no bracket on it any more
 *   SEIZED    a sweeper has it, holding the stripe lock
 *   DETACHED  nobody's; an ACTIVE incarnation's may be adopted
 *   LENT      nobody's as well, and its last owner takes it back without a lock (thread_heaps.h)
 *   DEAD      swept, waiting for its binding to unlink it
 *   STANDBY   in no incarnation, kept by its binding for the next phase with a region; STANDBY_EMPTY without it
 *             (ready.h)
 *
 * Locks: registry (registry.h), ring, stripe, pool, table. Fields say who may touch them:
 * [own] the binding's thread, or a sweeper that has SEIZED the heap; [stripe] under the
 * incarnation's stripe lock; others are atomic.
 */
#ifndef TSI_STATE_ARENA_H
#define TSI_STATE_ARENA_H

#include "state/closelog.h"
#include "state/profile_tables.h"
#include "mem/space.h"
#include "phase/epoch.h"

#include "epoch_domain.h"

enum {
    TSI_HEAP_FREE = 0,
    TSI_HEAP_LIVE = 1,
    TSI_HEAP_RETIRE = 2,
    TSI_HEAP_REVOKED = 3,
    TSI_HEAP_SEIZED = 4,
    TSI_HEAP_DETACHED = 5,
    TSI_HEAP_DEAD = 6,
    TSI_HEAP_STANDBY = 7,
    TSI_HEAP_STANDBY_EMPTY = 8,
    TSI_HEAP_LENT = 9
};
enum {
    TSI_BINDINGS_MAX = 1 << 14,
    TSI_HEAPS_MAX = 1 << 21,
    TSI_ROOMS_MAX = 1 << 18,
    TSI_HEAP_CACHE = 64,
    TSI_RECORD_CACHE = 32,
    TSI_LEFT_MAX = 256,
    TSI_LENDER_SHIFT = 40 /* in a LENT word: the last owner, above a binding that no thread has */
};
#define TSI_RESERVE_MAX (1ull << 36)
#define TSI_RESERVE_MIN (1ull << 24)
/* Values of SlabOptions.bump: no heap bumps; heaps of ring epochs do not. */
enum { TSI_BUMP_OFF = 2, TSI_BUMP_DOMAINS = 3 };
#define TSI_INBOX_CLOSED 0u /* 0, like a record whose page has gone: nothing is pushed there */
#define TSI_INBOX_EMPTY 0xffffffffu
#define TSI_FENCED UINT64_MAX /* a live_word that no heap has */
#define TSI_NO_TICKET UINT64_MAX

/* Causes of slow paths. */
enum { TSI_SLOW_NULL, TSI_SLOW_FULL, TSI_SLOW_MISS, TSI_SLOW_CLOSED, TSI_SLOW_CAUSES };
/* Causes of refusals: SlabMisuse, then those that are not the caller's mistake. */
enum { TSI_REFUSED_LATE = SLAB_MISUSE_COUNT, TSI_REFUSED_MEMORY, TSI_REFUSED_BUDGET, TSI_REFUSED_COUNT };

/* A phase whose drain has kept pages without an object: see put_off.h. */
typedef struct TsiPutOff {
    uint64_t era;
    uint32_t index; /* of its record */
    uint32_t bytes;
} TsiPutOff;
enum { TSI_PUT_OFF_PHASES = 16 };

typedef struct TsiRoom {
    uint32_t index;
    TsiLine* cur[TSI_SMALL_CLASSES + 1];
    /* A queue in two stacks, of line id + 1. Lines are put at the back; the back is turned over when the front is
     * empty. So filing a line writes only that line's own words. */
    uint32_t head[TSI_SMALL_CLASSES + 1];
    uint32_t back[TSI_SMALL_CLASSES + 1];
    uint32_t served[TSI_SMALL_CLASSES + 1]; /* lines that the queue has given since the last new slab */
} TsiRoom;

/* The first two cache lines have all that a phase with one region reads and writes. */
typedef struct TsiHeap {
    uint32_t index;
    _Atomic uint32_t slab_count;
    _Atomic uint64_t word;      /* binding << 8 | state; of STANDBY, LENT: see tsi_lent_word */
    _Atomic TsiRef key;         /* [own] of a primary: its incarnation; 0: in the thread's other heaps there */
    _Atomic TsiRef ref;         /* incarnation; 0 while free */
    TsiRoom* room;              /* [own] NULL until the first slab of a class */
    _Atomic(TsiRegion*) region; /* [own] the one that objects are bumped in, or tsi_no_region */
    _Atomic uint32_t slabs;     /* slab id + 1; its owner puts slabs in front, and under the stripe they leave */
    uint32_t primary;           /* [own] heap index whose room takes this heap's lines */
    _Atomic uint64_t slab_bytes;

    uint32_t inc_next, inc_prev; /* [stripe] heap index + 1 */
    uint32_t own_next, own_prev; /* the owner's chain; only its thread */
    _Atomic uint32_t takes;      /* [own] of a primary: slabs taken, and lines and regions of adopted heaps that the
                                  * owner has begun to free or emptied, since the last scavenge. A sweep resets it, also
                                  * while the owner is inside of another of its heaps: a hint */
    uint32_t empty_regions;      /* [own] its empty regions, slab id + 1, by `prev` */
    uint32_t regions;            /* [own] taken and not given back */
    uint32_t solo;               /* [own] regions of a single object, see bump.h */
    uint64_t bumped;             /* [own] bytes used of regions before the current one */
    _Atomic uint64_t slow;       /* allocations that left the fast path; owner writes */
    _Atomic(const void*) last;   /* the object that grew last in the current region, or NULL; the last object while rel
                                  * is last_end */
    uint32_t again;              /* [own] bytes used of regions that were empty again when they filled up: how much the
                                  * phase churns */
    uint32_t born;               /* [own] phases that its owner had begun when the heap was born */
    uint8_t rank;                /* [own] of the next region, once one was taken: `ranked` */
    bool ranked, bumps;          /* [own] */
    bool ring;                   /* of a ring epoch: only what it allocates first is bumped, see bump.h */

    _Atomic uint32_t last_end;
    uint32_t skip;    /* [stripe] slab id + 1 that the owner settles itself */
    uint32_t mark;    /* [own] the profile's next one in the current region, see profile.h */
    uint32_t looked;  /* [own] slab id + 1 where the search of regions goes on: for one that others have emptied or,
                       * once the classes have taken over, for pages without an object */
    uint64_t revoker; /* [stripe] ticket of the sweep that revoked it; TSI_NO_TICKET: of one that could not
                       * prove enough, so any sweep may take it */
    uint64_t thin_at; /* [own] bytes of slabs at which regions that are left are looked at again, see bump.h */
    uint32_t adopted; /* [own] of a primary: slabs of the heaps that it has adopted beside its own */
    /* Without an owner, written by freers and the holder of SEIZED, see ownerless.h: */
    _Atomic uint64_t emptied;           /* bytes of slabs that frees have emptied since it was walked last */
    _Atomic uint64_t roomy;             /* a bit for each class that may have a line to allocate from */
} __attribute__((aligned(64))) TsiHeap; /* an array as well as a table: the stride is the size */

/* A domain's copy of where its phase is. */
typedef struct TsiPhaseWords {
    _Atomic TsiRef ref;     /* 0 once the phase has ended, or the domain */
    _Atomic(TsiHeap*) heap; /* the heap last allocated from there, a hint; or tsi_no_heap */
} TsiPhaseWords;

/* Counters that one thread after the other keeps, by relaxed stores, and readers sum. */
typedef struct TsiClassCounters {
    _Atomic uint64_t slow, slow_by[TSI_SLOW_CAUSES], new_slab, parked, unparked, recycled, close_scanned,
        close_returned, closes, close_ns, free_tries, free_retries;
    _Atomic uint64_t alloc_tries, alloc_retries; /* shared mode: through a bank; after a wait for it */
    /* Phases that began with a heap that waited: each a miss and a recycled slab, which the counts above do not have;
     * and those whose heap waits again after the straight end (ready.h): each a slab that a close has met and
     * returned. */
    _Atomic uint64_t straight_begun, straight_ended;
} TsiClassCounters;

/* Shared mode's controller, see tsi_bank_note. */
typedef struct TsiScan {
    _Atomic uint64_t allocations, waits; /* since the last look */
    _Atomic uint32_t looking;            /* a thread is looking: it alone writes the fields below */
    _Atomic uint32_t spread, checks, switches;
    uint32_t changed_at; /* checks then; 0: never */
} TsiScan;

enum { TSI_SHARED_BANKS = 4 };
/* See bank.h. */
typedef struct TsiBank {
    TsiLock lock;
    _Atomic(struct TsiBinding*) binding; /* set under the lock; NULL until first used */
    uint32_t allocations, waits;         /* [lock] not yet reported to the controller */
    _Atomic bool stood;                  /* a sweep has waited for it without success: the next ones only try */
} __attribute__((aligned(64))) TsiBank;

typedef struct TsiWarm {
    _Atomic uint32_t busy;      /* try-lock: the owner never waits */
    uint32_t head[TSI_CLASSES]; /* slab id + 1 */
    _Atomic uint64_t bytes;
    uint64_t quota;        /* bytes granted from the arena's budget */
    _Atomic uint64_t lent; /* bytes granted to heaps that wait for a phase, see ready.h; its thread adds, a flush takes
                            * all */
    _Atomic bool used;     /* something was taken or put since the last look */
} TsiWarm;

/* Takes the lock of a thread's store of warm slabs if it is free; never waits. Returns true if the caller holds it now,
 * and tsi_warm_unlock is due; false if another thread has it. [any thread, needs no lock] */
TSI_INLINE bool tsi_warm_lock(TsiWarm* warm) {
    return tsi_load_relaxed(&warm->busy) == 0 && tsi_swap_acquire(&warm->busy, 1) == 0; /* pairs with tsi_warm_unlock */
}
/* Gives the lock of the store, of tsi_warm_lock, back; no thread is woken, as none waits. [its holder] */
TSI_INLINE void tsi_warm_unlock(TsiWarm* warm) { tsi_store_release(&warm->busy, 0); /* pairs with tsi_warm_lock */ }

typedef struct TsiArena TsiArena;

/* Budgets that charges of one allocation have passed (soft) or would have exceeded (hard); a bit each. Their functions
 * are called once no lock is held and no bracket open. */
enum { TSI_RECEIPT_VERSION = 2 };
enum { TSI_BUDGET_PHASE = 1, TSI_BUDGET_LABEL = 2, TSI_BUDGET_SPACE = 4 /* max_bytes: hard, without a function */ };
typedef struct TsiBudgetEvents {
    uint8_t soft, hard;
    uint32_t label;
    EpochId id;
    TsiRef ref;
    uint64_t phase_bytes, label_bytes; /* committed when a soft budget was passed */
} TsiBudgetEvents;

/* In the order of ThreadStats. */
enum { TSI_SAMPLE_ALLOC = 0, TSI_SAMPLE_REPAIR = 7, TSI_SAMPLE_REASON = 14, TSI_SAMPLE_SUMS = 17 };
typedef struct TsiSamples {
    _Atomic uint64_t sum[TSI_SAMPLE_SUMS];
    _Atomic uint64_t dropped;
    _Atomic uint64_t alloc_wall[TSI_LATENCY_BUCKETS];
    _Atomic uint64_t read[2]; /* CPU ns between the readings, their own cost included: allocations, repairs */
    TsiLockStats locks;
} TsiSamples;

enum { TSI_READY_RANKS = 4, TSI_READY_HEAPS = 16 };

enum { TSI_LEARNED = 16 };
/* A thread's knowledge of a label: the rank of the region that its last phase would have fitted in. A part of a page,
 * if some phase before would have fitted in one, too. */
typedef struct TsiLearned {
    uint32_t label;
    uint32_t begun; /* until a phase of the label has ended: the heap of the one that began last, index + 1 */
    uint32_t since; /* until then: phases that the thread had begun when it met the label */
    uint8_t rank;   /* + 1; 0: none has ended */
    uint8_t small;  /* consecutive phases that a part would have been enough for */
    int8_t general; /* above 0: taken for general work, which moves to the classes */
    uint8_t traits; /* BIG, APART, and OUTLIVED for each of the next phases that take small regions; normally 0 */
} TsiLearned;
enum {
    TSI_LEARNED_BIG = 1,     /* it needed more than TSI_BIG_BYTES */
    TSI_LEARNED_APART = 2,   /* the thread has begun many others between its beginning and its end, see bump.c */
    TSI_LEARNED_OUTLIVED = 4 /* a step of `traits`: objects have outlived one of the last phases, see bump.h */
};

enum { TSI_PENDING_LABELS = 16 };
/* Sums of a thread for a label that have not reached the label yet, see account/charge.h. Its thread writes. On one
 * page. */
typedef struct TsiPending {
    _Alignas(512) _Atomic uint64_t whose; /* times it changed labels << 32 | label's record + 1; 0: nobody's */
    int64_t bytes;                        /* committed */
    _Atomic uint64_t grant; /* from a budget: the label's record + 1 << 40 | bytes; 0: none. Others may take it back */
    TsiLabelSums sums;
    _Atomic uint32_t duration[TSI_LABEL_BUCKETS], peaks[TSI_LABEL_BUCKETS];
} TsiPending;

/* Three parts, by who writes. */
typedef struct TsiBinding {
    struct { /* its thread alone; others may read what is atomic */
        uint32_t index;
        uint32_t inc_cache[TSI_RECORD_CACHE], inc_first, inc_count; /* first in, first out */
        uint32_t domain_cache[TSI_RECORD_CACHE], domain_count;
        uint32_t heap_cache[TSI_RECORD_CACHE], heap_count;
        uint32_t room_cache[TSI_RECORD_CACHE], room_count;
        /* Kept off the start of a page, where lines and chunks' keys begin, too: processors that predict the way of
         * their first cache from a hash of the address hold few such lines at once. */
        _Alignas(64) uint64_t live_word; /* of its live heaps; TSI_FENCED when brackets need fences */
        TsiHeap* heap;                   /* ambient heap, or tsi_no_heap */
        TsiLine** cur;                   /* its current lines by class */
        TsiRegion* region;               /* the one that it bumps, or NULL */
        /* 0, a TsiLine* or TsiRegion*, or a TsiHeap* | 1: all heaps that this thread has in that heap's incarnation. */
        _Atomic uint64_t busy;
        uint8_t* base;
        TsiHeap* heaps_base;
        const TsiClassTable* classes;
        /* second line */
        uint64_t covered; /* of the space when last read: the range that its frees may look up */
        const TsiEntry* entries;
        uint8_t* words;
        const TsiChunkKey* keys;
        TsiLine* lines; /* of chunk 0 */
        uint64_t payload_bytes;
        _Atomic uint64_t* counts;
        uint64_t secret;
        TsiArena* arena;
        uint8_t* incs_base; /* records of incarnations */
        _Atomic bool in_use;
        _Atomic bool fenced; /* live_word is TSI_FENCED: for others */
        bool watched; /* samples, a profile, stand-ins or the hardened form: every slow path goes by tsi_alloc_slow */
        bool profile_hit;         /* the profile samples this slow path's object */
        _Atomic uint32_t look_in; /* calls until it asks whether a look is due (decay.h); 0: 2^32 */
        struct TsiThread* thread;
        uint32_t scope;        /* index + 1 of the innermost scope of this arena on the thread's stack */
        uint32_t own_heaps;    /* chain, heap index + 1 */
        uint64_t era, era_end; /* eras granted and not used */
        /* First era of that block, and the records of those used: read by others (E1 in phase/eras.h). */
        _Atomic uint64_t era_block;
        _Atomic uint32_t era_record[TSI_ERA_BLOCK];
        uint64_t opened;          /* of a bank: full lines freed in, at the last look */
        uint64_t opened_bytes;    /* of full lines freed in, when a heap was last searched for empty slabs */
        uint32_t ownerless_frees; /* see tsi_ownerless_again */
        uint8_t patience;         /* consecutive such searches that found little; doubles the distance to the next */
        uint64_t profile_mean, profile_left, profile_dice; /* bytes; 0 = off; to the next mark */
        uintptr_t past; /* return address of a function between that keeps no frame; 0: none, see as_malloc.h */
        uint32_t ready_count[TSI_READY_RANKS], ready_size[TSI_READY_RANKS]; /* size: bytes of a region */
        /* By the rank of their regions: heap index + 1, see ready.h. */
        _Atomic uint32_t ready[TSI_READY_RANKS][TSI_READY_HEAPS];
        uint64_t ready_bytes; /* of their regions, and of those flushed and not met since */
        /* By incarnation, where other threads have heaps, too: this thread's heap, or another's, or tsi_no_heap. */
        TsiHeap* by_inc[TSI_HEAP_CACHE];
        TsiLearned learned[TSI_LEARNED];
        uint32_t begun;              /* phases that have taken a heap */
        bool apart;                  /* the phase last learned from was APART */
        char label[TSI_LABEL_BYTES]; /* of the domain made last, its record beside it */
        uint32_t label_at;
        uint32_t bank;                   /* shared mode: banks moved on since one was held for too long */
        uint32_t period;                 /* sampling; 0 = off */
        uint32_t slow_left, dice;        /* slow paths to the next sample, inclusive */
        uint64_t order_dice;             /* with random_order; 0: slots in their order */
        uint32_t guard_left;             /* allocations to the next guard, inclusive; 0: this one, or none at all */
        uintptr_t stack_low, stack_high; /* the mapping that the thread's stack was last seen in */
        TsiBudgetEvents budget;          /* of the allocation that is inside its bracket */
        uint32_t put_off_bytes;          /* of phases that it has drained and that keep pages: put_off.h */
        uint8_t put_off_first, put_off_count;
        TsiPutOff put_off[TSI_PUT_OFF_PHASES]; /* from the first on, in a ring */
        uint64_t looked_ns;                    /* when look_in was last 0 */
        _Atomic uint32_t looks;                /* times look_in was 0 */
    };
    struct {                                    /* others, too: each field says how */
        _Alignas(64) _Atomic uint32_t inbox;    /* slab id + 2, TSI_INBOX_EMPTY or TSI_INBOX_CLOSED */
        _Atomic uint32_t dead_heaps;            /* raised by sweeps */
        TsiWarm warm;                           /* its try-lock */
        _Atomic uint64_t look_seen;             /* looks and look_in at the last look of decay.h */
        _Atomic bool idle;                      /* no change since the look before: a hint */
        TsiPending pending[TSI_PENDING_LABELS]; /* others write the grants */
    };
    struct {                                         /* its thread writes, for observers alone */
        _Atomic uint64_t refused[TSI_REFUSED_COUNT]; /* by cause */
        TsiClassCounters counters[TSI_CLASSES];
        TsiSamples samples;
    };
} TsiBinding;

/* An allocator's place in the statistics segment, see stats/segment.h. Guarded by tsi_segment_lock, except the
 * atomics. */
typedef struct TsiSeat {
    uint32_t slot;             /* + 1; 0: none */
    uint32_t segment;          /* the process's segment that has the slot */
    bool left_out;             /* counted as left out */
    bool has_profile;          /* in the segment's second file */
    uint64_t profile_retry_ns; /* after a failure */
    _Atomic uint64_t due_ns;   /* the next publication, at the earliest */
    uint64_t walk_due_ns;      /* the next walk over everything, at the earliest */
    struct TsiKept* kept;      /* results of the last walk, see stats/report.h; NULL: none yet */
    _Atomic uint64_t publications, failures;
    _Atomic uint32_t marked; /* the slot + 1 whose mark slow paths set, or 0; see tsi_changed */
} TsiSeat;

/* Stretches of readings, see stats/growth.h. */
typedef struct TsiStretch {
    uint64_t begun_ns, before_ns, older_ns; /* of this stretch and the two before; 0: none */
    uint64_t readings, readings_before;
    TsiFloor all; /* of the allocator */
} TsiStretch;

/* When marks were made, the newest first, and what the allocator held then, see stats/pace.h. */
typedef struct TsiMarks {
    uint64_t at_ns[TSI_SPANS][TSI_SPAN_MARKS];
    TsiPast all;
} TsiMarks;

/* The mark of each slot of the segment, by slot + 1: a word that tells readers that the allocator has changed since it
 * published. NULL for none; in a fork child all are. */
enum { TSI_MARKS = 17 };
extern _Atomic(_Atomic uint64_t*) tsi_marks[TSI_MARKS];

struct TsiArena {
    TsiSpace space;
    TsiPhases phases;
    TsiTable heaps, rooms, domains, bindings;
    TsiGround ground; /* of these tables, and of those of phases */
    uint64_t serial;
    uint64_t secret;
    SlabAllocator* owner;
    SlabOptions options;
    uint32_t bad_environment;
    _Atomic uint64_t warm_look_ns;  /* when unused warm stores were last searched for */
    _Atomic uint64_t decay_due_ns;  /* when the next look of decay.h is due */
    _Atomic uint64_t decay_wait_ns; /* how long before that time it was set */
    _Atomic uint64_t tickets;
    _Atomic uint64_t refused[TSI_REFUSED_COUNT]; /* by threads without a binding */
    _Atomic uint64_t retired_slabs, barriers;
    _Atomic uint64_t overflowed[TSI_CLASSES];
    _Atomic uint64_t opened;     /* full lines freed in, of all banks, when a thread last left and had them trimmed */
    _Atomic uint32_t room_looks; /* times that max_bytes was in the way, see tsi_trim_for_room */
    _Atomic bool has_unswept;
    _Atomic uint64_t stood;       /* TsiSpace.giving when an allocation had waited for those threads without success */
    _Atomic uint32_t most_phases; /* open at once since their number fell to a quarter, see records.c */
    _Atomic bool phases_fall;     /* their number falls, from many */
    _Atomic bool records_learned; /* tables of records may have learned: worth a look once a second */
    uint32_t left_count;          /* registry lock, both: domains that exiting threads left, number << 32 | record */
    uint64_t left[TSI_LEFT_MAX];
    uint32_t unswept; /* incarnations waiting for a sweep: index of the first, chained by next_unswept; ring lock */
    _Atomic uint32_t exiting; /* threads that are leaving: destroy waits for them */
    uint32_t slot;            /* in the registry */
    bool inert;
    bool watched;                  /* slow paths check for samples, a profile, stand-ins or the hardened form */
    bool none_at_hand;             /* fast paths find no binding: shared mode, stand-ins, or hardened */
    bool banks_at_hand;            /* shared mode without stand-ins: fast paths try a bank */
    bool hard_at_hand;             /* hardened, without stand-ins for all and not shared: heap/hard.h */
    bool fill;                     /* objects are zeroed as they end (heap/scrub.h) */
    bool samples_guards;           /* stand-ins are for sampled objects alone: the others are as without */
    struct TsiStandIns* stand_ins; /* NULL: objects are in their slots, see stand_in.h */
    uint64_t born_ns;
    TsiSeat seat;
    TsiStretch stretches[TSI_GROWTHS]; /* the labels' lock */
    TsiMarks marks;                    /* the labels' lock */
    TsiCloseLog closed_log;
    TsiProfile profile;
    _Atomic uint64_t free_retries_by_label[TSI_CLASSES][TSI_LABEL_COLUMNS]; /* lost compare-exchanges of remote frees */
    _Atomic uint64_t alloc_retries_by_label[TSI_CLASSES][TSI_LABEL_COLUMNS]; /* in shared mode, waits for banks */
    TsiScan scan;
    TsiBank bank[TSI_SHARED_BANKS];
    TsiClassCounters counters[TSI_CLASSES]; /* by threads without a binding */
    TsiSamples samples;                     /* of threads that left; under the registry lock */
};

/* Sets the mark of the allocator's slot in the segment, which tells readers that its latest publication is out of date.
 * Called at the end of a slow path, after its changes. Does nothing if the allocator is not published.
 * [any thread, needs no lock] */
TSI_INLINE void tsi_changed(TsiArena* a) {
    uint32_t at = tsi_load_relaxed(&a->seat.marked);
    if (TSI_LIKELY(at == 0)) return;
    _Atomic uint64_t* mark = tsi_load_relaxed(&tsi_marks[at]);
    /* seq_cst, a read-modify-write: pairs with the exchange in mark_clear (segment.c), which synchronizes with the
     * marks of all threads before it. So the figures taken after it have what was changed before a mark it clears. */
    if (mark != NULL) (void)tsi_or_seq(mark, 1);
}

/* The contents of a SlabAllocator's storage. */
typedef struct TsiPublic {
    TsiArena* arena;
    uint64_t serial;
    uint64_t magic;
    _Atomic uint64_t holders; /* made by slab_allocator_create: its owners, the last of which frees it; otherwise 0 */
} TsiPublic;

/* Bounds of records, and the words that name them. */
_Static_assert((uint64_t)TSI_HEAPS_MAX * sizeof(TsiHeap) <= 1ull << 32, "heap_at and home hold every heap's offset");
_Static_assert(TSI_HEAPS_MAX <= 1 << 24 && TSI_INC_MAX < 1 << 24, "a tag's index names every heap and incarnation");
_Static_assert(TSI_RESERVE_MAX >> TSI_CHUNK_SHIFT == TSI_CHUNKS_MAX, "the largest reservation has the most chunks");
_Static_assert(TSI_RESERVE_MAX < TSI_CHARGE_MASK, "a charge holds all that can be committed");
_Static_assert((int)TSI_COLUMNS == (int)TSI_LABEL_COLUMNS, "slabs taken are counted by a label's column");

extern TsiHeap tsi_no_heap;
extern TsiRegion tsi_no_region; /* used up */
extern TsiLine* tsi_no_cur[TSI_SMALL_CLASSES + 1];
_Static_assert(sizeof tsi_no_cur == sizeof((TsiRoom*)0)->cur, "it stands for the lines of a room");

/* Returns the heap record with an index that was handed out, free ones included: records stay readable.
 * [any thread, needs no lock] */
TSI_INLINE TsiHeap* tsi_heap(const TsiArena* a, uint32_t index) { return tsi_table_at(&a->heaps, index); }
/* Makes a value for TsiHeap.word: the binding with the index `binding` is the owner (TSI_BINDINGS_MAX: nobody), the
 * state is one of TSI_HEAP_*. Returns it. Words of lent and waiting heaps have more bits, which their makers add.
 * [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_heap_word(uint32_t binding, unsigned state) { return (uint64_t)binding << 8 | state; }
/* Returns the state TSI_HEAP_* in a heap word. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_heap_state(uint64_t word) { return (unsigned)word & 0xff; }
/* Returns true if a heap in this state has a thread that may be inside of it, or must settle what a sweep has left to
 * it: LIVE, RETIRE, REVOKED or DEAD. [any thread, needs no lock] */
TSI_INLINE bool tsi_state_has_owner(unsigned state) {
    bool taken = state == TSI_HEAP_REVOKED || state == TSI_HEAP_DEAD;
    return state == TSI_HEAP_LIVE || state == TSI_HEAP_RETIRE || taken;
}
/* Returns the index of the owner in a heap word; TSI_BINDINGS_MAX, which no binding has, if it is DETACHED or
 * LENT. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_heap_binding(uint64_t word) { return (uint32_t)(word >> 8); }
/* Returns the word of a heap that the binding has lent. Its owner field has a binding that no thread has, so that no
 * thread takes the heap for its own by that; see H3 in thread_heaps.h. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_lent_word(uint32_t binding) {
    return (uint64_t)binding << TSI_LENDER_SHIFT | tsi_heap_word(TSI_BINDINGS_MAX, TSI_HEAP_LENT);
}
/* Returns the word of a heap that is nobody's: no thread takes it for its own. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_detached_word(void) { return tsi_heap_word(TSI_BINDINGS_MAX, TSI_HEAP_DETACHED); }
/* Returns the record of the binding that a heap word names. The heap must have an owner: no DETACHED, LENT or SEIZED
 * word. [any thread, needs no lock] */
TSI_INLINE TsiBinding* tsi_binding_at(const TsiArena* a, uint64_t heap_word) {
    return tsi_table_at(&a->bindings, tsi_heap_binding(heap_word));
}
/* Returns the record of the incarnation that the heap is in, by its reference now; record 0, which nobody uses, while
 * the heap is free. The record may have passed to another incarnation since. [any thread, needs no lock] */
TSI_INLINE TsiInc* tsi_heap_inc(const TsiArena* a, TsiHeap* h) {
    return tsi_inc(&a->phases, tsi_ref_index(tsi_load_relaxed(&h->ref)));
}
/* Returns a heap as heap_at and home of a line or region hold it. Record 0 is never handed out, so 0 is nobody's.
 * [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_heap_at(const TsiHeap* h) { return h->index * (uint32_t)sizeof(TsiHeap); }
/* Returns the heap that a line of the binding's arena is in, by `home` now, or record 0, which is nobody's.
 * [any thread, needs no lock] */
TSI_INLINE TsiHeap* tsi_line_heap(const TsiBinding* b, const TsiLine* l) {
    return (TsiHeap*)(void*)((uint8_t*)b->heaps_base + tsi_load_relaxed(&l->home));
}
/* Returns a slab's class as a bit of `roomy`; 0 for regions, LARGE and CONT. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_class_bit(unsigned cls) { return cls <= TSI_SMALL_CLASSES ? 1ull << cls : 0; }
/* Returns true if `emptied`, the bytes of slabs that frees have emptied in a heap without an owner, are not 0 and at
 * least an eighth of the heap's slab bytes: then a walk over it visits O(1) slabs for each that goes (ownerless.h).
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_ownerless_is_due(const TsiHeap* h, uint64_t emptied) {
    return emptied != 0 && emptied >= tsi_load_relaxed(&h->slab_bytes) / 8;
}
/* Adds 1 to a counter of one writer: a load and a store are enough. */
#define tsi_count(p) tsi_store_relaxed((p), tsi_load_relaxed(p) + 1)
/* Adds n to *sum: with b, the binding of the calling thread, to one of b's own, which that thread alone writes, by a
 * plain store; if b is NULL to one that threads share, atomically. [any thread, and with b its own thread] */
TSI_INLINE void tsi_sum_add(const TsiBinding* b, _Atomic uint64_t* sum, uint64_t n) {
    /* release: pairs with the acquire in tsi_labels_begin: a reader that sees a label's sum sees whose it is, too */
    if (b != NULL) tsi_store_release(sum, tsi_load_relaxed(sum) + n);
    else tsi_add_relaxed(sum, n);
}
/* Returns the counters of the class that the calling thread writes: those of b, its binding, or the arena's if b is
 * NULL. [any thread, needs no lock] */
TSI_INLINE TsiClassCounters* tsi_counters(TsiArena* a, TsiBinding* b, unsigned cls) {
    return b != NULL ? &b->counters[cls] : &a->counters[cls];
}
/* Returns the record of the incarnation's label. [any thread, needs no lock] */
TSI_INLINE TsiLabel* tsi_label_of(TsiArena* a, TsiInc* inc) { return tsi_label(&a->phases.labels, tsi_inc_label(inc)); }

#endif
