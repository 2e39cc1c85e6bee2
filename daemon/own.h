/*
 * own.h - the source that is an allocator in this process, with a load on it or idle.
 */
#ifndef TSLABD_OWN_H
#define TSLABD_OWN_H

#include "options.h"
#include "source.h"

/* Makes the allocator and starts its load. Returns the one source there is; NULL after a complaint on standard error.
 * [main thread] */
struct source* own_begin(const struct options* o);
/* Has the load end its phase, for SIGUSR1. [main thread] */
void own_end_phase(struct source* s);
/* Looks whether the load has moved. Once a second by one thread, or `moves` of the source knows too little.
 * [any thread, needs no lock] */
void own_look(struct source* s);
/* Stops the load and ends the allocator; no function of the source runs or is called any more. [main thread] */
void own_end(struct source* s);

#endif
