/*
 * stay.h - the library stays loaded.
 *
 * A thread that has used the library runs its code as it exits. A plugin with the static library inside may be unloaded
 * before that, by a program that knows nothing of the library: the thread would jump to unmapped memory. So the library
 * asks the loader to keep the object that it lies in until the process ends.
 *
 * The library asks while that object is being loaded, from a constructor (heap/leave.c): the thread holds the loader's
 * lock then, so it waits for nobody. Later, at a thread's first allocation, another thread could hold that lock and
 * wait for this one. Where nothing needs keeping it does not ask: in programs, and in objects linked with -z nodelete.
 */
#ifndef TSI_OS_STAY_H
#define TSI_OS_STAY_H

/* Makes the loader keep the object that this code lies in until the process ends. Does nothing in a program, in an
 * object that is kept anyway, where there is no loader, and if the loader refuses.
 * [while the object is being loaded] */
void tsi_stay(void);

#endif
