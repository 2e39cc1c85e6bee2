/*
 * lock.h - a small mutual-exclusion lock.
 *
 * Three states in one word (0 free, 1 held, 2 held with waiters), sleeping in the kernel when
 * contended: "mutex2" of U. Drepper, "Futexes Are Tricky" (2011). Not recursive, 4 bytes, zero is
 * free, so a fork child can reset it by storing 0.
 *
 * Lock order, outermost first: domain, registry, ring, incarnation stripe, pool, table, close log. A lock is held for
 * bounded work only; the pool's and the tables' may cover a system call that commits memory or gives
 * bookkeeping back, the others none.
 */
#ifndef TSI_OS_LOCK_H
#define TSI_OS_LOCK_H

#include "base/atomics.h"
#include "base/bits.h"

enum { TSI_LATENCY_BUCKETS = 96 };
/* Four buckets to a doubling: 0..3 singly, then by the highest bit and the two below it. */
TSI_INLINE unsigned tsi_latency_bucket(uint64_t ns) {
    if (ns < 4) return (unsigned)ns;
    unsigned top = tsi_log2(ns), at = 4 * top + (unsigned)(ns >> (top - 2) & 3) - 4;
    return at < TSI_LATENCY_BUCKETS ? at : TSI_LATENCY_BUCKETS - 1;
}

/* Sampled waits for locks and the time they were held; written by one thread. */
typedef struct TsiLockStats {
    _Atomic uint64_t samples, wait_sum, wait_max, hold_sum, hold_max;
    _Atomic uint64_t wait[TSI_LATENCY_BUCKETS], hold[TSI_LATENCY_BUCKETS];
    uint32_t period, tick;    /* one in so many */
    struct TsiLock* held;     /* the sampled lock that is held now */
    uint64_t held_since;
} TsiLockStats;

typedef struct TsiLock {
    _Atomic uint32_t word;
} TsiLock;

/* Where this thread's probed locks are sampled; NULL: nowhere. */
extern _Thread_local TsiLockStats* tsi_lock_stats;
/* Time this thread has slept for locks. */
extern _Thread_local uint64_t tsi_lock_slept_ns;

void tsi_lock_slow(TsiLock* l);
/* The same when tsi_lock_stats is set; true when it was free at once. */
bool tsi_lock_probed(TsiLock* l);
void tsi_lock_probe_end(TsiLock* l);
void tsi_lock_stats_fold(TsiLockStats* to, TsiLockStats* from);
void tsi_lock_wake(TsiLock* l);

TSI_INLINE bool tsi_lock_try(TsiLock* l) {
    uint32_t free = 0;
    /* acquire: pairs with the release in tsi_lock_give */
    return atomic_compare_exchange_strong_explicit(&l->word, &free, 1, memory_order_acquire, memory_order_relaxed);
}

TSI_INLINE void tsi_lock_take(TsiLock* l) {
    if (TSI_UNLIKELY(!tsi_lock_try(l))) tsi_lock_slow(l);
}

TSI_INLINE void tsi_lock_give(TsiLock* l) {
    /* release: publishes what the lock guards to the next holder */
    if (TSI_UNLIKELY(atomic_exchange_explicit(&l->word, 0, memory_order_release) == 2)) tsi_lock_wake(l);
}

/* For locks whose contention is reported: true when it was free at once. Given back with tsi_lock_give_probed. */
TSI_INLINE bool tsi_lock_take_probed(TsiLock* l) {
    if (TSI_UNLIKELY(tsi_lock_stats != NULL)) return tsi_lock_probed(l);
    bool fast = tsi_lock_try(l);
    if (TSI_UNLIKELY(!fast)) tsi_lock_slow(l);
    return fast;
}
TSI_INLINE void tsi_lock_give_probed(TsiLock* l) {
    if (TSI_UNLIKELY(tsi_lock_stats != NULL)) tsi_lock_probe_end(l);
    tsi_lock_give(l);
}

TSI_INLINE bool tsi_lock_is_held(TsiLock* l) { return tsi_load_relaxed(&l->word) != 0; }

#endif
