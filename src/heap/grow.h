/*
 * grow.h - growth of large objects where they are, or by moving their pages.
 */
#ifndef TSI_HEAP_GROW_H
#define TSI_HEAP_GROW_H

#include "state/liveness.h"

/* Grows, in place, a live large object of a phase that goes on, at *at, to `size` bytes, rounded up to pages, and
 * charges that. Returns true if it did; false, changing nothing, if it has as much, another thread is at it, room is
 * short, or a budget or the system is in the way. b->budget.soft and hard say which budgets were passed or forbade it.
 * O(1), and O(units) of the growth. [own thread, no lock held, no bracket open] */
bool tsi_large_grow(TsiBinding* b, const TsiPlace* at, size_t size);
/* Moves the first pages of a live large object of a phase that goes on, at *at, with what is in them, to `to`, those of
 * another large object, which is new and has at least `bytes`. Returns the number of bytes moved: whole pages, up to
 * `bytes`, fewer, or 0, where the system refuses or the object is freed meanwhile. Their old places read as zeros, and
 * are not kept when the object is freed. [own thread, no lock held, no bracket open] */
size_t tsi_large_move(TsiBinding* b, const TsiPlace* at, void* to, size_t bytes);

#endif
