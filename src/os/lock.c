/* lock.c - the contended side of lock.h. */
#define _GNU_SOURCE
#include "os/lock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

static void futex(TsiLock* l, int op, uint32_t value) {
    int saved = errno;
    (void)syscall(SYS_futex, &l->word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
    errno = saved;
}

void tsi_lock_slow(TsiLock* l) {
    for (int spin = 0; spin < 100; spin++) {
        if (tsi_load_relaxed(&l->word) == 0 && tsi_lock_try(l)) return;
    }
    /* acquire: pairs with the release in tsi_lock_give; 2 announces a waiter */
    while (tsi_swap_acquire(&l->word, 2) != 0) futex(l, FUTEX_WAIT, 2);
}

void tsi_lock_wake(TsiLock* l) { futex(l, FUTEX_WAKE, 1); }
