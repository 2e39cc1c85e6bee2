/*
 * lock.h - a small mutual-exclusion lock that is given back without an atomic read-modify-write.
 *
 * word is 0 or 1, waiters the number of threads that sleep or are about to. Most locks are never waited for, so the
 * fence between the giver's store and its read of waiters is left to the waiters (the asymmetric fence of
 * src/state/bracket.h):
 *
 *   give                               wait
 *   word = 0          (release)        waiters++
 *   -- compiler fence --               membarrier
 *   waiters != 0 ? wake one            repeat: take word, or sleep while it is 1
 *
 * After the membarrier every later give sees the waiter; a give that read waiters before has its store visible, so the
 * waiter does not sleep on it. A thread that takes the lock in between gives it back after the membarrier. Without
 * membarrier give is an exchange; a waiter whose membarrier has failed sleeps a millisecond at a time. Sleeping is by
 * futex, as in U. Drepper, "Futexes Are Tricky" (2011). The lock is not recursive; it has 8 bytes, and zero is free, so
 * a fork child can reset it by storing 0. Model: tests/models/lock_give.pml.
 *
 * A lock may lie in a record whose page goes back (os/table.h): the thread that gives the page back holds it, and it
 * reads as free afterwards. A waiter that came meanwhile is no longer counted. So nobody sleeps longer than some
 * milliseconds at a time, and a waiter that is no longer counted does not count itself off.
 *
 * The order in which locks are taken is in locks.def. Debug builds list the locks that a thread holds: a lock that is
 * waited for comes after all of them, and a lock that is given, or that TSI_HOLDS names, is among them. A lock that is
 * only tried may come at any place.
 *
 * A lock is held for bounded work only. The pool's, the tables', the eras' and the registry's may cover a system call
 * that commits memory or gives bookkeeping back, and a bank's all of an allocation; a lock under which a phase ends may
 * cover the return of up to 64 KiB that make room for its heap to wait (ready.h). The others cover no system call.
 */
#ifndef TSI_OS_LOCK_H
#define TSI_OS_LOCK_H

#include "base/atomics.h"
#include "base/bits.h"
#include "base/check.h"
#include "os/os.h"

enum { TSI_LATENCY_BUCKETS = 96 };
/* Returns the bucket of a time in ns, 0 to TSI_LATENCY_BUCKETS - 1, four to a doubling: 0..3 have one each, longer
 * times go by the highest bit and the two below it; the last bucket takes all times beyond it.
 * [any thread, needs no lock] */
TSI_INLINE unsigned tsi_latency_bucket(uint64_t ns) {
    if (ns < 4) return (unsigned)ns;
    unsigned top = tsi_log2(ns), at = 4 * top + (unsigned)(ns >> (top - 2) & 3) - 4;
    return at < TSI_LATENCY_BUCKETS ? at : TSI_LATENCY_BUCKETS - 1;
}

/* Sampled waits for locks and the time they were held; written by one thread. */
typedef struct TsiLockStats {
    _Atomic uint64_t samples, wait_sum, wait_max, hold_sum, hold_max;
    _Atomic uint64_t wait[TSI_LATENCY_BUCKETS], hold[TSI_LATENCY_BUCKETS];
    uint32_t period, tick; /* one lock in `period` is sampled */
    struct TsiLock* held;  /* the sampled lock, while held */
    uint64_t held_since;
} TsiLockStats;

typedef enum TsiLockRank {
    TSI_LOCK_NONE, /* rank of a record in zeros, whose page went back */
#define TSI_LOCK(name, what, where) TSI_LOCK_##name,
#include "os/locks.def"
#undef TSI_LOCK
} TsiLockRank;

typedef struct TsiLock {
    _Atomic uint32_t word;
    _Atomic uint32_t waiters;
#ifdef TSI_DEBUG
    _Atomic uint32_t rank;
    uint32_t unused; /* whole words, as in release builds */
#endif
} TsiLock;

/* Checks of the locks that this thread holds; nothing in release builds. */
#ifdef TSI_DEBUG
#define TSI_LOCK_OF(r) \
    { .rank = TSI_LOCK_##r }
/* Sets the lock's place in the order of locks.def to `rank`, and nothing else: its other words are 0 already, so it is
 * free. [before the lock is shared] */
TSI_INLINE void tsi_lock_init(TsiLock* lock, TsiLockRank rank) { tsi_store_relaxed(&lock->rank, rank); }
/* Checks that the lock, about to be waited for, is not held by this thread and comes in locks.def after all locks that
 * are; stops the process otherwise. A lock of rank TSI_LOCK_NONE may come anywhere. Changes nothing.
 * [any thread, needs no lock] */
void tsi_lock_wanted(const TsiLock* lock);
/* Lists the lock as held by this thread: taken, or handed over by another thread. Stops the process if the list is
 * full; does nothing during tsi_lock_all(true). [its holder] */
void tsi_lock_own(const TsiLock* lock);
/* Takes the lock from this thread's list, before it is given or kept by no thread; stops the process if it is not
 * listed. Does nothing during tsi_lock_all(true). The lock's words stay. [its holder] */
void tsi_lock_disown(const TsiLock* lock);
/* Returns true if this thread's list has the lock, or during tsi_lock_all(true). [any thread, needs no lock] */
bool tsi_lock_is_mine(const TsiLock* lock);
/* Starts (`mine` is true) or ends (false) the time in which this thread, for a fork, has every lock of the process:
 * until then nothing is listed and every lock passes as this thread's. The list stays as it was. [thread that forks] */
void tsi_lock_all(bool mine);
#define TSI_HOLDS(l) TSI_CHECK(tsi_lock_is_mine(l))
#else
#define TSI_LOCK_OF(r) \
    { 0 }
/* Does nothing, and the next four functions do nothing either: release builds list and check no locks.
 * [any thread, needs no lock] */
TSI_INLINE void tsi_lock_init(TsiLock* lock, TsiLockRank rank) { (void)lock, (void)rank; }
TSI_INLINE void tsi_lock_wanted(const TsiLock* lock) { (void)lock; }
TSI_INLINE void tsi_lock_own(const TsiLock* lock) { (void)lock; }
TSI_INLINE void tsi_lock_disown(const TsiLock* lock) { (void)lock; }
TSI_INLINE void tsi_lock_all(bool mine) { (void)mine; }
#define TSI_HOLDS(l) ((void)sizeof(l))
#endif

/* Samples of this thread's probed locks; NULL: none. */
extern _Thread_local TsiLockStats* tsi_lock_stats;
/* ns that this thread has slept for locks. */
extern _Thread_local uint64_t tsi_lock_slept_ns;

/* Takes a lock that was held a moment ago, after tsi_lock_wanted: tries for some microseconds, then sleeps until it is
 * given. Adds the time asleep to tsi_lock_slept_ns. [any thread that does not hold it] */
void tsi_lock_slow(TsiLock* lock);
/* Takes a lock that was held a moment ago, after tsi_lock_wanted: tries for some microseconds, then sleeps, for about
 * `ns` nanoseconds at most (UINT64_MAX: without limit), and adds the time asleep to tsi_lock_slept_ns. Returns true if
 * it has the lock; false if others held it all the time, and it is not taken. [any thread that does not hold it] */
bool tsi_lock_slow_within(TsiLock* lock, uint64_t ns);
/* Takes the lock, waiting for it. Samples the call if it is the tsi_lock_stats->period-th since the last sample and no
 * sampled lock is held: counts its wait in *tsi_lock_stats, which is not NULL, and notes the lock there as held.
 * Returns true if it was free at once; the lock is held either way. [any thread that does not hold it] */
bool tsi_lock_probed(TsiLock* lock);
/* Ends the sample of a lock that is about to be given: adds the ns for which it was held to the sum, histogram and
 * maximum of *tsi_lock_stats, which is not NULL, and sets `held` there to NULL. Does nothing if the lock is not the
 * sampled one. Does not give it. [its holder] */
void tsi_lock_probe_end(TsiLock* lock);
/* Adds the counts and sums of *from, which is read only, to those of *to, and raises the maxima of *to to those of
 * *from. Period and held lock of *to stay. Another thread may be writing *from: its figures may be a moment old.
 * [the one writer of *to] */
void tsi_lock_stats_fold(TsiLockStats* to, TsiLockStats* from);
/* Wakes one thread that sleeps for the lock, if any does. The lock's words stay. [any thread, needs no lock] */
void tsi_lock_wake(TsiLock* lock);

/* Takes the lock if it is free, without waiting. Returns true if the caller holds it now; false if it was held, and
 * nothing has changed. [any thread, needs no lock] */
TSI_INLINE bool tsi_lock_try(TsiLock* lock) {
    uint32_t free = 0;
    /* acquire: pairs with the release in tsi_lock_give */
    bool got =
        atomic_compare_exchange_strong_explicit(&lock->word, &free, 1, memory_order_acquire, memory_order_relaxed);
    if (got) tsi_lock_own(lock);
    return got;
}

/* Takes the lock, waiting for it without limit. [any thread that does not hold it] */
TSI_INLINE void tsi_lock_take(TsiLock* lock) {
    tsi_lock_wanted(lock);
    if (TSI_UNLIKELY(!tsi_lock_try(lock))) tsi_lock_slow(lock);
}

/* Takes the lock, waiting about `ns` nanoseconds at most. Returns true if the caller holds it now; false if others held
 * it all the time, and it is not taken. [any thread that does not hold it] */
TSI_INLINE bool tsi_lock_take_within(TsiLock* lock, uint64_t ns) {
    tsi_lock_wanted(lock);
    return TSI_LIKELY(tsi_lock_try(lock)) || tsi_lock_slow_within(lock, ns);
}

/* Gives the lock back, and wakes a thread that sleeps for it, if there is one. Its sample, if it has one, goes on
 * (tsi_lock_give_probed ends it). [its holder] */
TSI_INLINE void tsi_lock_give(TsiLock* lock) {
    tsi_lock_disown(lock);
    /* release: publishes what the lock guards to the next holder */
    if (TSI_LIKELY(tsi_os.has_membarrier)) tsi_store_release(&lock->word, 0);
    else (void)tsi_swap_seq(&lock->word, 0); /* pairs with the waiter's seq_cst count */
    tsi_compiler_fence();                    /* pairs with the membarrier in tsi_lock_slow */
    if (TSI_UNLIKELY(tsi_load_seq(&lock->waiters) != 0)) tsi_lock_wake(lock);
}

/* Takes a lock whose contention is reported, waiting for it, and samples the wait if this thread samples
 * (tsi_lock_stats). Returns true if it was free at once; the lock is held either way. Given back with
 * tsi_lock_give_probed. [any thread that does not hold it] */
TSI_INLINE bool tsi_lock_take_probed(TsiLock* lock) {
    tsi_lock_wanted(lock);
    if (TSI_UNLIKELY(tsi_lock_stats != NULL)) return tsi_lock_probed(lock);
    bool fast = tsi_lock_try(lock);
    if (TSI_UNLIKELY(!fast)) tsi_lock_slow(lock);
    return fast;
}
/* Gives back a lock taken by tsi_lock_take_probed, ends its sample if it has one, and wakes a thread that sleeps for
 * it. [its holder] */
TSI_INLINE void tsi_lock_give_probed(TsiLock* lock) {
    if (TSI_UNLIKELY(tsi_lock_stats != NULL)) tsi_lock_probe_end(lock);
    tsi_lock_give(lock);
}

/* Frees the lock, whoever held it, and forgets its waiters; writes nothing if it is free and has none. [fork child] */
TSI_INLINE void tsi_lock_reset(TsiLock* lock) {
    if ((tsi_load_relaxed(&lock->word) | tsi_load_relaxed(&lock->waiters)) == 0)
        return; /* its page may be with the system */
    tsi_store_relaxed(&lock->word, 0);
    tsi_store_relaxed(&lock->waiters, 0);
}

/* Returns true if any thread held the lock at the moment of the read: a hint. [any thread, needs no lock] */
TSI_INLINE bool tsi_lock_is_held(TsiLock* lock) { return tsi_load_relaxed(&lock->word) != 0; }

#endif
