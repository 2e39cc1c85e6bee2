/*
 * shared.h - memory that other processes of the same user can read: the statistics segment and the profile lie in it.
 *
 * The memory is a memfd that can neither shrink nor grow; where the kernel has none, a file in a folder of the user
 * that nobody else may enter, without a name once it is open. Either is kept open, because readers find it in
 * /proc/PID/fd. Pages are reserved before they are touched, so a full file system is an error and no signal. Fork
 * children do not have it mapped, except for ranges that are made so.
 */
#ifndef TSI_OS_SHARED_H
#define TSI_OS_SHARED_H

#include <stddef.h>
#include <stdint.h>

typedef struct TsiShared {
    uint8_t* base;
    size_t bytes;
    int fd;
    size_t inherited, inherited_bytes; /* range that fork children have mapped */
    uint64_t dev, ino;                 /* of fd: the program may have closed it and opened another file */
} TsiShared;

/* Sets *shared to a memory of `bytes` zeros, of which the first `reserve` may be touched. Readers know it by the name
 * of the memfd, or of the file, FILE.PID.NUMBER. Returns 0; otherwise an errno value, *what as the words for the step
 * that failed, and *shared empty (base NULL, fd -1). *what is set in either case. [no other user of *shared] */
int tsi_shared_open(TsiShared* shared, const char* memfd, const char* file, size_t bytes, size_t reserve,
                    const char** what);
/* Keeps the pages of [offset, offset + bytes) of the open memory mapped in fork children, from the beginning of the
 * first page on, and notes the range in *shared; one range at a time. Returns 0, or an errno value with *shared
 * unchanged. [no other user of *shared] */
int tsi_shared_inherit(TsiShared* shared, size_t offset, size_t bytes);
/* Reserves the pages of [offset, offset + bytes), counted from the start of the memory, which may then be touched.
 * Returns 0, or an errno value. Reads *shared only. [any thread, needs no lock] */
int tsi_shared_reserve(const TsiShared* shared, size_t offset, size_t bytes);
/* Closes the inherited descriptor, if it is still this file's, unmaps the inherited range, if there is one, and empties
 * *shared (base NULL, fd -1). Does no more than that if *shared is empty. [fork child] */
void tsi_shared_forget(TsiShared* shared);

#endif
