/*
 * stack.h - the chain of callers, by frame pointers.
 *
 * A function compiled with frame pointers starts by pushing its caller's and points at that: {caller's frame, return
 * address}. The walk follows such pairs as long as each lies above the one before, aligned, within the mapping that the
 * stack pointer lies in. Neighbours make one mapping, a stack and what lies above it, and that may be gone since: so
 * the kernel is asked for each page before it is read. Code without frame pointers uses the register for anything, so
 * the walk ends early there, or, rarely, takes for a frame what is none.
 */
#ifndef TSI_OS_STACK_H
#define TSI_OS_STACK_H

#include "os/os.h"

/* In functions between the program and a walk over frames: the chain leads through them. Readers of profiles leave them
 * out by their names: public ones that allocate, or tsi_. */
#define TSI_KEEP_FRAME() __asm__ volatile("" ::"r"(__builtin_frame_address(0)))

/* The readable mapping that an address of this thread's stack lies in; false when the system does not tell. */
bool tsi_stack_bounds(uintptr_t in, uintptr_t* low, uintptr_t* high);
/* Return addresses from the frame at fp on, which must lie in [low, high); how many, at most `max`. */
unsigned tsi_stack_walk(uintptr_t fp, uintptr_t low, uintptr_t high, uintptr_t* out, unsigned max);

#endif
