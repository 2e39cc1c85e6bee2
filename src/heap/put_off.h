/*
 * put_off.h - pages that the drain of a small phase does not give back at once.
 *
 * Objects that outlive a phase are often freed a moment later: a response, a line of a log. If the drain gave back the
 * pages in which nothing lives, each would be filled anew for one of the next phases, at the cost of a system call and
 * of page faults. So a drain counts these bytes, and where they are few it leaves them, and the thread remembers the
 * phase. Once it has put off more than a bound, it gives back the pages of the phases that it drained first; by then
 * most of those have no slab any more.
 *
 *   drain:  bytes of pages without an object  >= PHASE: they go at once
 *                                             <  PHASE: the phase is remembered, the bytes added to the thread's
 *   then :  the thread's bytes > THREAD, or PHASES remembered: the oldest are thinned (tsi_inc_thin), if still there
 *
 * Late frees, looks (decay.h), trims and the thread's exit give these pages back as they do others.
 *
 * Invariants
 *   D1  Only the thread of the binding reads and writes what it has put off. A phase is remembered by its era, so an
 *       entry whose phase has gone leads to nothing.
 *   D2  `put_off_bytes` is the sum of the entries, and at most TSI_PUT_OFF_BYTES.
 */
#ifndef TSI_HEAP_PUT_OFF_H
#define TSI_HEAP_PUT_OFF_H

#include "heap/sweep_totals.h"

enum { TSI_PUT_OFF_PHASE_BYTES = 128 << 10, TSI_PUT_OFF_BYTES = 256 << 10 };

/* Gives back the pages of all phases that the thread remembers. [own thread, no lock held, no bracket open] */
void tsi_put_off_no_more(TsiBinding* b);

#endif
