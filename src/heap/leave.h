/*
 * leave.h - the exit of a thread, which gives back what it has in each arena, and the start of a process.
 */
#ifndef TSI_HEAP_LEAVE_H
#define TSI_HEAP_LEAVE_H

#include "threads/registry.h"

/* Does tsi_thread_late_leave for a thread past its destructor. [own thread, no lock held, no bracket open] */
void tsi_thread_late_leave_slow(void);
/* Begins a call that a thread may make past its destructor: counts it in tsi_tls.late then, and otherwise does nothing.
 * tsi_thread_late_leave must follow. [own thread, needs no lock] */
TSI_INLINE void tsi_thread_late_enter(void) {
    if (TSI_UNLIKELY(tsi_tls.exiting)) tsi_tls.late++;
}
/* Ends a call begun by tsi_thread_late_enter: past the destructor the outermost one lets go of all that the thread has,
 * unless a scope is open. [own thread, no lock held, no bracket open] */
TSI_INLINE void tsi_thread_late_leave(void) {
    if (TSI_UNLIKELY(tsi_tls.exiting)) tsi_thread_late_leave_slow();
}
/* set by the domain layer: ends the scopes of an exiting thread, innermost first */
extern void (*tsi_thread_end_scopes)(TsiThread*);

/* Prepares system table, key and fork handlers, once per process. [any thread, no lock held] */
void tsi_process_init(void);

#endif
