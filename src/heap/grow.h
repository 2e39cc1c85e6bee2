/*
 * grow.h - large objects that grow where they are, or whose pages move.
 */
#ifndef TSI_HEAP_GROW_H
#define TSI_HEAP_GROW_H

#include "state/living.h"

/* Makes a live large object of a phase that goes on larger where it is. Returns false, and has changed nothing, where
 * that cannot be: there is no room, or a budget or the system is in the way. b->budget.soft says which soft budgets
 * were passed. O(1), and O(units) of what it gains. [no lock, no bracket] */
bool tsi_large_grow(TsiBinding* b, const TsiPlace* at, size_t size);
/* Moves the first pages of a live large object of a phase that goes on, with what is in them, to `to`: those of another
 * large object, which is new. Up to `bytes`; returns how many bytes have moved, whole pages. What the object has left
 * of them reads as zeros, and is not kept when it is freed. [no lock, no bracket] */
size_t tsi_large_move(TsiBinding* b, const TsiPlace* at, void* to, size_t bytes);

#endif
