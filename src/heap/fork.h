/*
 * fork.h - a child process in which only the forking thread lives on.
 */
#ifndef TSI_HEAP_FORK_H
#define TSI_HEAP_FORK_H

#include "os/lock.h"

/* Installs the fork handlers. [once per process] */
void tsi_fork_init(void);
/* set by the domain layer: in the child, scopes of the threads that are gone leave their domains */
extern void (*tsi_fork_drop_scopes)(void);
/* held while statistics are published; outermost of all locks; only a fork waits for it */
extern TsiLock tsi_segment_lock;
/* set by the publisher: in the child, the segment is the parent's */
extern void (*tsi_fork_drop_segment)(void);

#endif
