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

typedef struct TsiLock {
    _Atomic uint32_t word;
} TsiLock;

void tsi_lock_slow(TsiLock* l);
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

TSI_INLINE bool tsi_lock_is_held(TsiLock* l) { return tsi_load_relaxed(&l->word) != 0; }

#endif
