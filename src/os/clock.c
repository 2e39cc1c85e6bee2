/* clock.c - see clock.h. */
#include "os/clock.h"

_Thread_local uint64_t tsi_clock_told;
