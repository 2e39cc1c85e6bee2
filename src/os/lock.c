/* lock.c - the contended side of lock.h. */
#define _GNU_SOURCE
#include "os/lock.h"

#include "os/clock.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Numbers of linux/futex.h: the kernel's headers are not where every C library's are. */
enum { FUTEX_WAIT = 0, FUTEX_WAKE = 1, FUTEX_PRIVATE_FLAG = 128 };

/* With op FUTEX_WAIT sleeps while the lock's word is `value`, for the time *most at most (NULL: without limit); with
 * FUTEX_WAKE wakes up to `value` sleepers, and `most` is NULL. May end early: callers look again. Preserves errno.
 * [any thread, needs no lock] */
static void futex(TsiLock* lock, int op, uint32_t value, const struct timespec* most) {
    int saved = errno;
    (void)syscall(SYS_futex, &lock->word, op | FUTEX_PRIVATE_FLAG, value, most, NULL, 0);
    errno = saved;
}

_Thread_local TsiLockStats* tsi_lock_stats;
_Thread_local uint64_t tsi_lock_slept_ns;

#ifdef TSI_DEBUG
/* More locks than a thread ever holds. */
enum { HELD = 16 };
static _Thread_local const TsiLock* held[HELD];
static _Thread_local unsigned held_count;
static _Thread_local bool all_mine;

bool tsi_lock_is_mine(const TsiLock* lock) {
    for (unsigned n = 0; n < held_count; n++)
        if (held[n] == lock) return true;
    return all_mine;
}

void tsi_lock_wanted(const TsiLock* lock) {
    uint32_t rank = tsi_load_relaxed(&lock->rank);
    for (unsigned n = 0; n < held_count && !all_mine; n++) {
        TSI_CHECK(held[n] != lock);
        TSI_CHECK(rank == TSI_LOCK_NONE || tsi_load_relaxed(&held[n]->rank) < rank);
    }
}

void tsi_lock_own(const TsiLock* lock) {
    if (all_mine) return;
    TSI_CHECK(held_count < HELD);
    held[held_count++] = lock;
}

void tsi_lock_disown(const TsiLock* lock) {
    unsigned n = held_count;
    if (all_mine) return;
    while (n > 0 && held[n - 1] != lock) n--;
    TSI_CHECK(n > 0);
    held[n - 1] = held[--held_count];
}

void tsi_lock_all(bool mine) { all_mine = mine; }
#endif

/* How often a waiter tries before it sleeps; later tries have a pause between them. Together they take some
 * microseconds: as long as most locks are held, and less than the membarrier and the sleep cost, which also interrupt
 * the holder. */
enum { LOOKS = 300, CLOSE_LOOKS = 100 };

/* Tells the processor that this is a loop that waits: a hint of some cycles, nothing on other processors.
 * [any thread, needs no lock] */
static void pause_for_other(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

bool tsi_lock_slow_within(TsiLock* lock, uint64_t ns) {
    for (int look = 0; look < LOOKS; look++) {
        if (tsi_load_relaxed(&lock->word) == 0 && tsi_lock_try(lock)) return true;
        if (look >= CLOSE_LOOKS) pause_for_other();
    }

    uint64_t since = tsi_os.now_ns(), now = since;
    bool got;
    tsi_add_seq(&lock->waiters, 1); /* pairs with the read in tsi_lock_give */
    const struct timespec nap = {0, 1000000}, sleep = {0, 20000000};
    bool seen = !tsi_os.has_membarrier || tsi_os.membarrier(); /* see lock.h */

    while (!(got = tsi_lock_try(lock)) && now - since < ns) {
        futex(lock, FUTEX_WAIT, 1, seen && ns == UINT64_MAX ? &sleep : &nap);
        now = tsi_os.now_ns();
        if (now < since) since = now; /* the clock was set back */
    }

    uint32_t waiters = tsi_load_relaxed(&lock->waiters);
    /* seq_cst where relaxed would do: this is rare. */
    while (waiters != 0 && !tsi_cas_seq(&lock->waiters, &waiters, waiters - 1)) {}
    tsi_lock_slept_ns += now - since;
    return got;
}

void tsi_lock_slow(TsiLock* lock) { (void)tsi_lock_slow_within(lock, UINT64_MAX); }

void tsi_lock_wake(TsiLock* lock) { futex(lock, FUTEX_WAKE, 1, NULL); }

/* Adds v to *sum. If v is 0 nothing is written: that would fetch a page. [the one writer of *sum] */
static void add(_Atomic uint64_t* sum, uint64_t v) {
    if (v != 0) tsi_store_relaxed(sum, tsi_load_relaxed(sum) + v);
}

/* Raises *max to v if it is less; otherwise writes nothing. [the one writer of *max] */
static void rise(_Atomic uint64_t* max, uint64_t v) {
    if (v > tsi_load_relaxed(max)) tsi_store_relaxed(max, v);
}

bool tsi_lock_probed(TsiLock* lock) {
    TsiLockStats* stats = tsi_lock_stats;
    bool chosen = stats->held == NULL && ++stats->tick >= stats->period;
    uint64_t since = chosen ? tsi_os.now_ns() : 0;
    bool fast = tsi_lock_try(lock);
    if (!fast) tsi_lock_slow(lock);

    if (!chosen) return fast;
    stats->tick = 0;
    stats->held = lock;
    stats->held_since = tsi_os.now_ns();
    uint64_t wait = fast ? 0 : tsi_clock_between(since, stats->held_since);
    add(&stats->samples, 1);
    add(&stats->wait_sum, wait);
    rise(&stats->wait_max, wait);
    add(&stats->wait[tsi_latency_bucket(wait)], 1);
    return fast;
}

void tsi_lock_probe_end(TsiLock* lock) {
    TsiLockStats* stats = tsi_lock_stats;
    if (stats->held != lock) return;
    uint64_t hold = tsi_clock_between(stats->held_since, tsi_os.now_ns());
    stats->held = NULL;
    add(&stats->hold_sum, hold);
    rise(&stats->hold_max, hold);
    add(&stats->hold[tsi_latency_bucket(hold)], 1);
}

void tsi_lock_stats_fold(TsiLockStats* to, TsiLockStats* from) {
    add(&to->samples, tsi_load_relaxed(&from->samples));
    add(&to->wait_sum, tsi_load_relaxed(&from->wait_sum));
    add(&to->hold_sum, tsi_load_relaxed(&from->hold_sum));
    rise(&to->wait_max, tsi_load_relaxed(&from->wait_max));
    rise(&to->hold_max, tsi_load_relaxed(&from->hold_max));
    for (unsigned n = 0; n < TSI_LATENCY_BUCKETS; n++) {
        add(&to->wait[n], tsi_load_relaxed(&from->wait[n]));
        add(&to->hold[n], tsi_load_relaxed(&from->hold[n]));
    }
}
