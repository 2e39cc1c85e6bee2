/*
 * epoch.h - incarnations: what an epoch id names at one time.
 *
 * An incarnation is one record (TsiInc) with an era, a number that is never used again. A reference {era:46, index:18}
 * names it exactly; a stale reference is recognised because the record's word carries its era.
 *
 *   ACTIVE -> ADVANCED -> CLOSED -> RELEASED     (any may be skipped, none is undone)
 *
 * ACTIVE accepts allocations. ADVANCED (the ring moved on) and CLOSED (drained) accept none; in both, a slab returns
 * when its last object is freed. RELEASED: every object has ended. An incarnation that is CLOSED or RELEASED and holds
 * no heap and no slab has *drained*: its cleanups run, and its record is reused when nothing pins it any more.
 *
 * Locks. The stripe lock of a record guards its state changes, its heap list, its orphan list and its totals. State is
 * read without it where a stale answer is found out later. The ring lock serialises advances and is taken before a
 * stripe.
 */
#ifndef TSI_PHASE_EPOCH_H
#define TSI_PHASE_EPOCH_H

#include "phase/label.h"
#include "slab_alloc.h"

#include <string.h>

#define TSI_UNTIMED UINT64_MAX /* later than any time */
enum { TSI_INC_ACTIVE = 0, TSI_INC_ADVANCED = 1, TSI_INC_CLOSED = 2, TSI_INC_RELEASED = 3, TSI_INC_STATE = 3 };
enum { TSI_INC_BITS = 18, TSI_INC_MAX = (1 << TSI_INC_BITS) - 1, TSI_RING_MAX = 1024, TSI_STRIPES = 64 };
enum { TSI_REUSE_BITS = 13, TSI_REUSE_MASK = (1 << TSI_REUSE_BITS) - 1, TSI_CHARGE_BITS = 48 };
_Static_assert(TSI_REUSE_BITS + TSI_INC_BITS + 1 == 8 * sizeof(EpochId), "a domain's id: its mark, reuse and record");
_Static_assert(TSI_LABELS_MAX + 2 <= 1 << (64 - TSI_CHARGE_BITS), "a charge names every label");
#define TSI_CHARGE_MASK ((1ull << TSI_CHARGE_BITS) - 1)
#define TSI_DOMAIN_ID_BIT 0x80000000u

typedef struct TsiPhases TsiPhases;
typedef uint64_t TsiRef; /* era << 18 | index; 0 = none */

/* Returns the reference to the incarnation with this era in record `index`. [any thread, needs no lock] */
TSI_INLINE TsiRef tsi_ref(uint64_t era, uint32_t index) { return era << TSI_INC_BITS | index; }
/* Returns the index of the record in a reference. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_ref_index(TsiRef ref) { return (uint32_t)ref & ((1u << TSI_INC_BITS) - 1); }
/* Returns the era in a reference; 0 for no reference. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_ref_era(TsiRef ref) { return ref >> TSI_INC_BITS; }

/* An ended phase's settled objects and slabs, see draining.h; all 0 while it does not drain. */
typedef struct TsiDraining {
    uint64_t since_ns;
    TsiHolding held;
    uint16_t label; /* record + 1; 0: does not drain */
    bool over;      /* has held more than its label expects to escape; stays until the phase has drained */
} TsiDraining;

/* The first two cache lines have all that a phase of one thread reads and writes from begin to end. */
typedef struct TsiInc {
    _Atomic uint64_t word; /* era << 2 | state; state changes under the stripe */
    _Atomic EpochId id;
    _Atomic uint32_t reuse;  /* times the record was opened: part of a domain's id; 0: its page has gone, see epoch.c */
    _Atomic uint64_t charge; /* label record << 48 | committed bytes, see account/charge.h */
    uint32_t index;
    _Atomic uint32_t domain; /* record + 1 of the domain that owns or owned it, which knows */
    char label[TSI_LABEL_BYTES];

    /* second line; guarded by the stripe, except atomics: */
    uint32_t pins;               /* ring, domains and calls that hold the record */
    uint32_t heaps;              /* heap index + 1 */
    _Atomic uint32_t heap_count; /* written under the stripe, read without it */
    bool clean;                  /* ended as it was opened: all fields that tsi_inc_reset sets are 0 */
    bool drained;
    bool escapes_posted;      /* its first close that drains has posted them */
    bool named;               /* a domain refers to it; used only in a fork child */
    _Atomic bool unswept;     /* ring lock; frees look without it: a hint */
    bool owned;               /* `owner` is set: checked as the stripe is first taken */
    _Atomic bool told;        /* set under the profile's lock: it has counted what escapes, see observe/profile.h */
    _Atomic uint32_t heap_at; /* heap found last, as in a line or region, 0: none; a hint, see heap/thread_heaps.h */
    _Atomic uint64_t open_since_ns;     /* 0: not yet; TSI_UNTIMED: not timed */
    uint64_t lock_fast, lock_contended; /* counted like `allocated` */
    _Atomic uint64_t late_bytes;        /* pages of orphans that late frees have left without a live slot */
    _Atomic uint64_t user_refs;         /* slab_epoch_inc_refcount */
    _Atomic uint64_t peak;              /* most committed bytes before some left, see tsi_inc_peak */

    uint32_t thin_next;         /* orphan whose pages late frees look at next, slab id + 1; 0: the first */
    uint32_t next_unswept;      /* ring lock: on the list of finish.h, if `unswept` */
    _Atomic uint32_t room_look; /* latest look for room (heap/trim.h) that came by: a hint */
    _Atomic uint32_t detached;  /* heaps without an owner: a reason to look under the lock */
    _Atomic uint32_t scopes;    /* scopes inside of domains that borrow it */
    uint32_t orphans;           /* first orphan, slab id + 1 */
    uint32_t ends;              /* cleanups, record index + 1 */
    /* slabs, including orphans, PARTIAL ones too, and skipped ones */
    _Atomic uint32_t slab_count;
    uint32_t skipped;       /* slabs that sweeps have left to their owners */
    _Atomic uint32_t owner; /* index + 1 of the only thread that may allocate in it and end it; 0: any */
    uint64_t skipped_bytes;
    TsiTotals allocated; /* counted by slabs settled so far */
    TsiTotals released;
    TsiTotals orphaned; /* part of `allocated` in slabs that are orphans */
    TsiHolding holding; /* held by the orphans, as last counted */
    TsiDraining draining;
    uint64_t rss_before, rss_after;
    _Atomic uint64_t purged; /* bytes given back to the system by its closes */
    TsiBudget budget;        /* fn and ctx: stripe */
    _Atomic uint64_t roomy;  /* classes that some heap without an owner may have room for, a bit each */
    uint64_t closed_slabs, pinned_slabs, slow; /* stripe; counted like `allocated` */
    struct {
        uint64_t objects_allocated, bytes_allocated, objects_released, bytes_released, closed_slabs, pinned_slabs, slow,
            lock_fast, lock_contended, objects_freed, bytes_freed;
    } posted;                      /* stripe: counts that the label's account has */
    _Atomic uint32_t relabellings; /* begun, of all phases that had the record; written under the stripe */
} TsiInc;

enum { TSI_INC_STRIDE = 512 };
_Static_assert(sizeof(TsiInc) <= TSI_INC_STRIDE, "neighbours have different stripes");

typedef struct TsiEnd {
    uint32_t next;
    void (*fn)(void*);
    void* arg;
} TsiEnd;

enum { TSI_ERA_BLOCK = 256 };

/* The table of eras.h. */
typedef struct TsiEras {
    TsiLock lock;
    uint32_t* slots; /* record, 0 = none */
    uint32_t size;   /* of slots, a power of two; 0: there is no table */
    uint32_t filled;
    bool partial; /* an entry found no memory: search every record until a rebuild finds them all */
} TsiEras;

struct TsiPhases {
    TsiTable incs;
    TsiTable ends;
    TsiLabels labels;
    TsiEras eras;
    uint32_t ring_size;
    TsiLock ring_lock; /* advances; `spare` */
    uint32_t spare;    /* index + 1 of a record kept ready so that advance does not fail */
    _Atomic uint32_t current;
    _Atomic uint64_t era_next;
    _Atomic uint64_t advances_refused;
    _Atomic uint64_t ring[TSI_RING_MAX]; /* TsiRef */
};

/* Stripes of the process; a fork takes all of them. */
extern struct TsiStripe {
    _Alignas(64) TsiLock lock; /* threads that end phases of their own normally share no cache line */
} tsi_stripes[TSI_STRIPES];

/* Returns the record with an index that was handed out; record 0 is nobody's. Records stay readable.
 * [any thread, needs no lock] */
TSI_INLINE TsiInc* tsi_inc(const TsiPhases* phases, uint32_t index) {
    return (TsiInc*)(void*)(phases->incs.base + (size_t)index * TSI_INC_STRIDE);
}
/* Returns the record's stripe, by address: fields may be changing. [any thread, needs no lock] */
TSI_INLINE TsiLock* tsi_inc_lock(const TsiInc* inc) {
    return &tsi_stripes[(uintptr_t)inc / TSI_INC_STRIDE % TSI_STRIPES].lock;
}
/* Returns the record index of the incarnation's label. [any thread, needs no lock] */
TSI_INLINE uint32_t tsi_inc_label(TsiInc* inc) { return (uint32_t)(tsi_load_relaxed(&inc->charge) >> TSI_CHARGE_BITS); }
/* Returns the most bytes that the incarnation had committed at once so far, those of now included. Reads `charge`
 * first: bytes leave it after `peak` has them, or while nobody else reads, so none is missed.
 * [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_inc_peak(TsiInc* inc) {
    uint64_t now = tsi_load_acquire(&inc->charge) & TSI_CHARGE_MASK; /* pairs with tsi_uncharge */
    uint64_t peak = tsi_load_relaxed(&inc->peak);
    return now > peak ? now : peak;
}
/* Gives the record's stripe back, and ends its sample if waits for locks are sampled.
 * [stripe held, by tsi_phase_lock] */
TSI_INLINE void tsi_phase_unlock(TsiInc* inc) { tsi_lock_give_probed(tsi_inc_lock(inc)); }
/* Returns the record's era, or 0 if no incarnation has it. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_inc_era(TsiInc* inc) { return tsi_load_acquire(&inc->word) >> 2; }
/* Takes the record's stripe, waiting for it, and counts that in the record unless no incarnation has it: then the
 * record belongs to the thread that opens it next, which sets the counts without the lock. Returns true if the lock was
 * free at once. [any thread, no stripe held] */
TSI_INLINE bool tsi_phase_lock(TsiInc* inc) {
    bool fast = tsi_lock_take_probed(tsi_inc_lock(inc));
    if (tsi_inc_era(inc) == 0) return fast;
    if (TSI_LIKELY(fast)) inc->lock_fast++;
    else inc->lock_contended++;
    return fast;
}
/* Returns the record's state, TSI_INC_*; stays as it is only under the stripe. [any thread, needs no lock] */
TSI_INLINE unsigned tsi_inc_state(TsiInc* inc) { return (unsigned)tsi_load_seq(&inc->word) & TSI_INC_STATE; }
/* Returns true if the reference, which is not 0, still names this record's incarnation and that accepts allocations
 * (ACTIVE). A moment old without the stripe. [any thread, needs no lock] */
TSI_INLINE bool tsi_ref_is_active(const TsiPhases* phases, TsiRef ref) {
    /* acquire: pairs with the release in tsi_inc_open: the record's fields are set */
    return tsi_load_acquire(&tsi_inc(phases, tsi_ref_index(ref))->word) == (tsi_ref_era(ref) << 2 | TSI_INC_ACTIVE);
}
/* Returns true if the incarnation is active and another thread's alone (SLAB_DOMAIN_OWNER_ONLY). thread: index + 1 of
 * the caller's record, or 0. [any thread, needs no lock] */
TSI_INLINE bool tsi_ref_is_anothers(const TsiPhases* phases, TsiRef ref, uint32_t thread) {
    uint32_t owner = tsi_load_relaxed(&tsi_inc(phases, tsi_ref_index(ref))->owner);
    return TSI_UNLIKELY(owner != 0) && owner != thread && tsi_ref_is_active(phases, ref);
}
/* Returns true if the reference still names this record, in any state. [any thread, needs no lock] */
TSI_INLINE bool tsi_ref_is_current(const TsiPhases* phases, TsiRef ref) {
    return ref != 0 && tsi_inc_era(tsi_inc(phases, tsi_ref_index(ref))) == tsi_ref_era(ref);
}

/* Clears *phases, makes its tables in `ground`, which has tsi_phases_room for them, and a ring of ring_size open,
 * unlabelled epochs, of which id 0 is current; takes one record more as the spare of the next step. Returns false if
 * the system refuses; then tsi_phases_destroy is still due. [no other user] */
bool tsi_phases_init(TsiPhases* phases, TsiGround* ground, uint32_t ring_size, uint32_t inc_capacity,
                     uint32_t label_capacity);
/* Returns the bytes of a ground that tsi_phases_init takes for these capacities. [any thread, needs no lock] */
size_t tsi_phases_room(uint32_t inc_capacity, uint32_t label_capacity);
/* Unmaps the table of eras, and those of incarnations, ends and labels that are in no ground; due after a
 * tsi_phases_init that has failed, too. Locks need no more. [no other user] */
void tsi_phases_destroy(TsiPhases* phases);
/* Zeroes the fields of the record that a phase may have changed, so that the next incarnation begins with none of it:
 * lists, counts, sums, times, owner, peak and the limits of its budget. Leaves those that tsi_inc_open sets (index, id,
 * reuse, label, pins, lock counts, word), `draining`, `relabellings`, and fn and ctx of the budget, without limits now.
 * [only holder] */
void tsi_inc_reset(TsiInc* inc);
/* Sets the record's `owner` to 0 and `owned` to false: every thread may allocate in it and end it.
 * [only holder, or stripe held] */
TSI_INLINE void tsi_inc_disown(TsiInc* inc) {
    tsi_store_relaxed(&inc->owner, 0);
    inc->owned = false;
}
/* Opens record `index`, which tsi_table_take has given, as a new ACTIVE incarnation with one pin, the caller's, under
 * the label record label_at and its text; resets it first unless `clean` says that it is. owner: for TsiInc.owner,
 * index + 1 of the only thread that may use it, 0: every thread. Adds 1 to `reuse`. [only holder] */
TSI_INLINE void tsi_inc_open(TsiPhases* phases, uint32_t index, uint64_t era, EpochId id, uint32_t label_at,
                             const char text[TSI_LABEL_BYTES], uint32_t owner) {
    TsiInc* inc = tsi_inc(phases, index);
    inc->index = index;

    tsi_store_relaxed(&inc->id, id);
    tsi_store_relaxed(&inc->reuse, tsi_load_relaxed(&inc->reuse) + 1);
    tsi_store_relaxed(&inc->charge, (uint64_t)label_at << TSI_CHARGE_BITS);
    memcpy(inc->label, text, sizeof inc->label);

    inc->pins = 1;
    if (TSI_UNLIKELY(!inc->clean)) tsi_inc_reset(inc);

    /* Threads with an old reference add to these before they see that it is old. */
    inc->lock_fast = inc->lock_contended = 0;
    if (TSI_UNLIKELY(owner != 0)) {
        tsi_store_relaxed(&inc->owner, owner);
        inc->owned = true;
    }

    tsi_store_relaxed(&inc->late_bytes, 0);
    inc->clean = false;
    /* release: pairs with the acquire loads of word: a thread that sees the era sees the fields */
    tsi_store_release(&inc->word, era << 2 | TSI_INC_ACTIVE);
}
extern const char tsi_no_label[TSI_LABEL_BYTES];
/* Returns the id that a domain's own epoch gets when record `index` is opened next. [only holder] */
TSI_INLINE EpochId tsi_domain_id(const TsiPhases* phases, uint32_t index) {
    uint32_t reuse = (tsi_load_relaxed(&tsi_inc(phases, index)->reuse) + 1) & TSI_REUSE_MASK;
    return TSI_DOMAIN_ID_BIT | reuse << TSI_INC_BITS | index;
}
/* Returns the incarnation that an id names now: of the ring, or of a domain's own epoch; 0 for an id that never was or
 * whose epoch has ended. The incarnation may have ended by the time of the return: its era tells. Pins nothing.
 * [any thread, needs no lock] */
TsiRef tsi_phases_resolve(const TsiPhases* phases, EpochId id);
/* Returns true for an id that an own epoch of a domain has had, as far as the record's count of openings tells: where
 * tsi_phases_resolve returns 0, its epoch has ended. False for ids of the ring and ids that never were.
 * [any thread, needs no lock] */
bool tsi_phases_was_domain(const TsiPhases* phases, EpochId id);
/* Returns the reference of the ring's current epoch, by its id now; pins nothing. Another thread may have advanced the
 * ring, and ended that epoch, by the return. [any thread, needs no lock] */
TSI_INLINE TsiRef tsi_phases_current(const TsiPhases* phases) {
    /* acquire: pairs with the release in tsi_phases_step_locked */
    return tsi_load_acquire(&phases->ring[tsi_load_acquire(&phases->current)]);
}
/* Makes the next id of the ring current, with a new, unlabelled incarnation in the spare record, and takes the next
 * spare. Sets *was_current to the incarnation that was current and *displaced to the one that lost its id; both go on
 * until the caller ends them. Returns false if no record is left: then only advances_refused has risen.
 * [ring lock held] */
bool tsi_phases_step_locked(TsiPhases* phases, TsiRef* was_current, TsiRef* displaced);
#endif
