/*
 * pprof.h - the heap profile as a pprof profile.
 *
 * The format is profile.proto (github.com/google/pprof), not compressed: a few message types of varints and byte
 * strings, written here by hand. A sample has four values (objects and bytes allocated, objects and bytes in use; with
 * the option escape_stacks two more, objects and bytes that have escaped), the addresses of its stack, and labels.
 * Addresses are not names: the mappings of the process are there, so that pprof finds names in the program's files.
 */
#ifndef TSI_STATS_PPROF_H
#define TSI_STATS_PPROF_H

#include "state/arena.h"

/* Writes the heap profile in pieces to write(ctx, bytes, n), with no lock held. Returns the bytes that it took; 0 when
 * it refused some, and with errno ENOMEM without memory. There is a profile. Takes the profile's lock for a copy
 * before. [any thread, no lock held] */
size_t tsi_pprof_write(TsiArena* a, bool (*write)(void* ctx, const char* bytes, size_t n), void* ctx);

#endif
