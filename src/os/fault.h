/*
 * fault.h - reports accesses to pages that may not be touched, and names code.
 */
#ifndef TSI_OS_FAULT_H
#define TSI_OS_FAULT_H

#include "os/os.h"

/* Called in a signal handler on the thread that has touched `address`, by the instruction at pc (0: not known). The
 * handler that was installed before runs when it returns. */
typedef void TsiFaultFn(const void* address, uintptr_t pc);
/* Has fn, which is not NULL, called for each SIGSEGV of the process that the kernel raises, before the handler
 * installed until now, which runs afterwards. Works once for the process: later calls change nothing and return true. A
 * handler that the program installs later replaces it. Returns true, or false if the system refuses.
 * [one thread at a time: the caller holds a lock] */
bool tsi_os_on_fault(TsiFaultFn* fn);
/* Writes "function+0x12 (library.so+0x345)" for the code at pc into `out` of n bytes, n at least 1, cut to n - 1 bytes
 * and ended by 0; without a known function "library.so+0x345", without a known file pc as "0x...". Returns the length
 * without the 0, at most n - 1. [any thread, needs no lock; signal handler] */
size_t tsi_os_code_name(uintptr_t pc, char* out, size_t n);

#endif
