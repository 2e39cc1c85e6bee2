/*
 * stack.h - the chain of callers, by frame pointers.
 *
 * A function compiled with frame pointers starts by pushing its caller's and points at that: {caller's frame, return
 * address}. The walk follows such pairs while each lies above the one before, aligned, within the mapping that holds
 * the stack pointer. Neighbours make one mapping, a stack and memory above it, which may be gone since: so the kernel
 * is asked for each page before it is read. Code without frame pointers uses the register for anything, so the walk
 * ends early there, or, rarely, takes other data for a frame.
 */
#ifndef TSI_OS_STACK_H
#define TSI_OS_STACK_H

#include "os/os.h"

/* Keeps the frame of a function between the program and a walk: the chain leads through it. Readers of profiles leave
 * out such functions by their names, public ones that allocate and tsi_ ones. */
#define TSI_KEEP_FRAME() __asm__ volatile("" ::"r"(__builtin_frame_address(0)))

/* Finds the readable mapping that holds `in`, an address of this thread's stack, and sets [*low, *high) to it. Returns
 * true; false, with *low and *high set to 0, if the system does not tell. Reads a file: slow.
 * [any thread, needs no lock] */
bool tsi_stack_bounds(uintptr_t in, uintptr_t* low, uintptr_t* high);
/* Writes the return addresses of the frames from the one at fp on to `out`, which has room for `max`, innermost first.
 * The walk stays in [low, high) of tsi_stack_bounds; an fp outside gives none. Returns how many were written, 0 to
 * `max`; 0 on processors whose frames it does not know. [thread of the stack] */
unsigned tsi_stack_walk(uintptr_t fp, uintptr_t low, uintptr_t high, uintptr_t* out, unsigned max);

#endif
