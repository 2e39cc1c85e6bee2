/*
 * grow.h - large objects that grow where they are.
 */
#ifndef TSI_HEAP_GROW_H
#define TSI_HEAP_GROW_H

#include "heap/living.h"

/* Makes a live large object of a phase that goes on larger where it is. Returns false, and has changed nothing, where
 * that cannot be: there is no room, or a budget or the system is in the way. b->budget.soft says which soft budgets
 * were passed. O(1), and O(units) of what it gains. [no lock, no bracket] */
bool tsi_large_grow(TsiBinding* b, const TsiPlace* at, size_t size);

#endif
