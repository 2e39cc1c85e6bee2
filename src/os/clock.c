/* clock.c - see clock.h. */
#include "os/clock.h"

_Thread_local uint64_t tsi_clock_told;

uint64_t tsi_clock_now(void) { return tsi_clock_forward(tsi_os.now_ns()); }
