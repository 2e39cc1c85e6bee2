/*
 * check.h - our own bugs. A broken invariant of the library stops the process; misuse by the caller and failures of the
 * system never come here.
 */
#ifndef TSI_BASE_CHECK_H
#define TSI_BASE_CHECK_H

#include "base/bits.h"

/* Stops the process if cond is false, in every build: guards memory safety on slow paths. */
#define TSI_CHECK(cond)                              \
    do {                                             \
        if (TSI_UNLIKELY(!(cond))) __builtin_trap(); \
    } while (0)

/* Stops the process if cond is false, in debug builds. */
#ifdef TSI_DEBUG
#define TSI_ASSERT(cond) TSI_CHECK(cond)
#else
#define TSI_ASSERT(cond) ((void)sizeof(cond))
#endif

#endif
