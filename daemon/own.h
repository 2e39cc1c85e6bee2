/*
 * own.h - the source that is an allocator in this process, with a load on it or idle.
 */
#ifndef TSLABD_OWN_H
#define TSLABD_OWN_H

#include "options.h"
#include "source.h"

/* The one there is; NULL after a complaint on standard error. The load runs from here on. */
struct source* own_begin(const struct options* o);
/* SIGUSR1: the load ends its phase. */
void own_end_phase(struct source* s);
/* Looks whether the load has moved. Any thread; once a second by one, or `moves` of the source knows too little. */
void own_look(struct source* s);
/* Stops the load and ends the allocator; no function of the source runs or is called any more. */
void own_end(struct source* s);

#endif
