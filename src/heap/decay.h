/*
 * decay.h - empty slabs of phases that go on go back by time (option decay_ms): there is no end that would give them.
 *
 * Nothing runs by itself. Threads count down (TsiBinding.look_in): slow paths of allocations and of frees and, where
 * this library is a process's malloc, frees of any kind. The thread that comes to 0 reads the clock, and the first
 * thread for which a look is due takes it: it trims the phases of the ring, and others that hold much, like tsi_trim,
 * but
 *
 *   - a heap whose thread has counted since the last look is left to that thread, which takes its own;
 *   - pages stay in the stock until the next look, which gives back those that nobody has touched, or until the
 *     allocator would grow beyond what it had at the look (mem/stock.h). Memory that goes and is missed raises the
 *     budget, which falls again by time. A heap that grows and looks for its empty slabs itself (heap/alloc.c) does
 *     likewise.
 *
 * So a process with no calls at all keeps what it has: the next call, or a reader of statistics, looks. A thread that
 * has counted quickly counts down from STEPS (decay.c), so if it becomes idle it makes as many calls before it asks for
 * the time again; a slow one asks each time.
 *
 * A look costs a walk over all slabs. The next one is due decay_ms after its end, and 128 times later than the
 * processor time that it took: looks take less than a hundredth of a processor, however large the heap is.
 */
#ifndef TSI_HEAP_DECAY_H
#define TSI_HEAP_DECAY_H

#include "state/arena.h"

/* Returns true if there are looks: decay_ms is set, and pages go back at all. [any thread, needs no lock] */
TSI_INLINE bool tsi_decay_is_on(const TsiArena* a) {
    return a->options.decay_ms != 0 && tsi_space_gives_back(&a->space);
}
/* Makes the first look due decay_ms after the coarse clock's present time; in a fork child, too, where a look may have
 * been under way. Does so also where there are no looks. The options are set, and no other thread is at a look: the
 * allocator is being made, or this is the only thread. [no other user] */
void tsi_decay_begin(TsiArena* a);
/* Counts a look of the thread (b->looks), as it has counted down to 0; where there are looks, reads the clock, sets the
 * count anew, to 32 if the last countdown took less than 10 ms, else to 2, and does tsi_decay_poll if that is due, but
 * not as the thread exits. [own thread, no lock held, no bracket open] */
void tsi_decay_now(TsiBinding* b);
/* Counts a call down, or some of the thread's slow paths, and at 0 does tsi_decay_now.
 * [own thread, no lock held, no bracket open] */
TSI_INLINE void tsi_decay_step(TsiBinding* b) {
    if (TSI_UNLIKELY(tsi_count_down(&b->look_in))) tsi_decay_now(b);
}
/* Trims phases that go on (tsi_trim_idle) and gives back pages by time, if that is due and no other thread does so;
 * then sets when the next look is due. Leaves errno as it was; cleanups may run. Does nothing if there are no looks. b:
 * the calling thread's binding, or NULL. [any thread, no lock held, no bracket open] */
void tsi_decay_poll(TsiArena* a, TsiBinding* b);

#endif
