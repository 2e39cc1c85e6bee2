/*
 * warm.h - slabs of no epoch that keep their pages, so that the next phase need not fault them in.
 *
 * Each binding keeps its own, up to a share of the arena's byte budget that it is granted in blocks.
 * When that is used up and little is to be put, the oldest slabs go to the system together.
 * The store is behind a try-lock that nobody waits for: a thread that does not get it goes to the
 * pool instead, so a trim can empty the stores of idle threads.
 */
#ifndef TSI_HEAP_WARM_H
#define TSI_HEAP_WARM_H

#include "heap/arena.h"

/* Takes a chain of returned slabs (by `next`) and gives back what it did not keep. b may be NULL. */
uint32_t tsi_warm_put(TsiArena* a, TsiBinding* b, uint32_t chain);
bool tsi_warm_take(TsiBinding* b, unsigned cls, uint32_t* slab_id);
/* Purges what a binding keeps and returns its share of the budget. Any thread; false when busy. */
bool tsi_warm_flush(TsiBinding* b);
/* In a fork child: a vanished thread's store is empty; its slabs are found by their tags. */
void tsi_warm_forget(TsiBinding* b);

#endif
