/*
 * leave.h - the exit of a thread, which gives back what it has in each arena, and the start of a process.
 */
#ifndef TSI_HEAP_LEAVE_H
#define TSI_HEAP_LEAVE_H

#include "threads/registry.h"

/* Stand around calls that a thread may make past its destructor: the outermost _leave lets go of everything, unless a
 * scope is open. [own thread] */
void tsi_thread_late_leave_slow(void);
TSI_INLINE void tsi_thread_late_enter(void) {
    if (TSI_UNLIKELY(tsi_tls.exiting)) tsi_tls.late++;
}
TSI_INLINE void tsi_thread_late_leave(void) {
    if (TSI_UNLIKELY(tsi_tls.exiting)) tsi_thread_late_leave_slow();
}
/* set by the domain layer: ends the scopes of an exiting thread, innermost first */
extern void (*tsi_thread_end_scopes)(TsiThread*);

/* Prepares system table, key and fork handlers. [any thread; acts once per process] */
void tsi_process_init(void);

#endif
