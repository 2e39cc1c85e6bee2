/*
 * clock.h - one monotonic clock of two readings: the system's, for programs, and the quick one (os/ticks.h), with which
 * phases are stamped as they begin.
 *
 * The two are within microseconds of each other, and a program may compare them: a phase that it begins between two
 * readings of slab_now_ns has begun between them. So each thread keeps the latest reading or stamp, and never reads
 * less. A kept value ahead by more than APART is not believed: the clock was changed under us (a process moved to
 * another machine).
 */
#ifndef TSI_OS_CLOCK_H
#define TSI_OS_CLOCK_H

#include "base/bits.h"
#include "os/os.h"

#define TSI_CLOCK_APART 1000000u /* ns */

extern _Thread_local uint64_t tsi_clock_told;

/* Moves this thread's clock forward to ns, a reading of either clock in nanoseconds. Returns ns, and keeps it as the
 * thread's latest; or the latest, unchanged, if that is at or ahead of ns by less than TSI_CLOCK_APART.
 * [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_clock_forward(uint64_t ns) {
    if (TSI_UNLIKELY(tsi_clock_told - ns < TSI_CLOCK_APART)) return tsi_clock_told;
    return tsi_clock_told = ns;
}
/* Returns the ns from the reading since_ns to the reading now_ns; 0 if the clock was set back between them.
 * [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_clock_between(uint64_t since_ns, uint64_t now_ns) {
    return now_ns > since_ns ? now_ns - since_ns : 0;
}
/* Returns true at the reading now_ns from due_ns on, and if due_ns is ahead by more than twice wait_ns, all in ns: such
 * times are set at most wait_ns ahead, so the clock was set back since, and what is due would wait for as long as it
 * was set back. Twice, because another thread may have set the time after the reading of now_ns.
 * [any thread, needs no lock] */
TSI_INLINE bool tsi_clock_is_due(uint64_t now_ns, uint64_t due_ns, uint64_t wait_ns) {
    return now_ns >= due_ns || due_ns - now_ns > 2 * wait_ns;
}
/* Returns the program's clock, CLOCK_MONOTONIC in ns, and keeps it as this thread's latest reading; never less than the
 * thread has read or stamped before, unless that is ahead by TSI_CLOCK_APART or more. Out of line: files that use
 * vector registers call it, and those keep away from thread-local storage (CMakeLists.txt).
 * [any thread, needs no lock] */
uint64_t tsi_clock_now(void);
/* Returns the time in ns by the quick clock, to stamp on a beginning that the program may ask about, and keeps it as
 * this thread's latest; never less than the thread has read or stamped before, unless that is ahead by TSI_CLOCK_APART
 * or more. [any thread, needs no lock] */
TSI_INLINE uint64_t tsi_clock_stamp(void) { return tsi_clock_forward(tsi_os.quick_ns()); }

#endif
