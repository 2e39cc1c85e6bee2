/*
 * leave.h - a thread leaves: what it has in each arena goes back, and the process begins.
 */
#ifndef TSI_HEAP_LEAVE_H
#define TSI_HEAP_LEAVE_H

#include "threads/registry.h"

/* Around calls that a thread may make past its destructor: the outermost lets go of everything, unless a scope
 * is open. */
void tsi_thread_late_leave_slow(void);
TSI_INLINE void tsi_thread_late_enter(void) {
    if (TSI_UNLIKELY(tsi_tls.exiting)) tsi_tls.late++;
}
TSI_INLINE void tsi_thread_late_leave(void) {
    if (TSI_UNLIKELY(tsi_tls.exiting)) tsi_thread_late_leave_slow();
}
/* Set by the domain layer: ends the scopes of an exiting thread, innermost first. */
extern void (*tsi_thread_end_scopes)(TsiThread*);

/* Once per process: key, fork handlers, system table. */
void tsi_process_init(void);

#endif
