/* fault.c - see fault.h. */
#define _GNU_SOURCE
#include "os/fault.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

static TsiFaultFn* told;
static struct sigaction before;

/* Returns the address of the instruction that was interrupted, read from `context`, the ucontext_t of a signal handler;
 * 0 if it is not known on this processor. [signal handler] */
static uintptr_t pc_of(const void* context) {
#if defined(__x86_64__) && defined(REG_RIP)
    return (uintptr_t)((const ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__) && defined(__linux__)
    return (uintptr_t)((const ucontext_t*)context)->uc_mcontext.pc;
#else
    (void)context;
    return 0;
#endif
}

/* Does what happened to the signal before our handler was installed, with number, info and context as ours got them. If
 * a handler was installed, calls it. Otherwise puts the default, or that it is ignored, back for the process: after a
 * fault the instruction faults again and meets it. A signal that a process has sent does not come again: if it was
 * ignored, nothing happens; if not, it is raised once more. [signal handler] */
static void go_on(int number, siginfo_t* info, void* context) {
    bool sent = info->si_code <= 0; /* by kill, raise or sigqueue */
    if ((before.sa_flags & SA_SIGINFO) != 0) before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) before.sa_handler(number);
    else if (!sent || before.sa_handler == SIG_DFL) {
        (void)sigaction(number, &before, NULL);
        if (sent) (void)raise(number); /* is blocked until the handler returns */
    }
}

/* Handles SIGSEGV, which `number` is: calls the function of tsi_os_on_fault, which is set, with the address in *info
 * and the instruction in *context if the kernel sent the signal (no kill); then the earlier handler, for which errno is
 * as it was. [signal handler, on the thread that touched the page] */
static void on_signal(int number, siginfo_t* info, void* context) {
    int saved = errno;
    if (info->si_code > 0) told(info->si_addr, pc_of(context)); /* from the kernel, not kill */
    errno = saved;
    go_on(number, info, context);
}

bool tsi_os_on_fault(TsiFaultFn* fn) {
    struct sigaction on;
    if (told != NULL) return true;
    told = fn; /* before the handler, which calls it */
    memset(&on, 0, sizeof on);
    on.sa_sigaction = on_signal;
    on.sa_flags = SA_SIGINFO | SA_ONSTACK;
    (void)sigemptyset(&on.sa_mask);
    if (sigaction(SIGSEGV, &on, &before) == 0) return true;
    told = NULL;
    return false;
}

size_t tsi_os_code_name(uintptr_t pc, char* out, size_t n) {
    Dl_info of;
    const char* file = NULL;
    int length;
    if (dladdr((void*)pc, &of) == 0 || of.dli_fname == NULL) length = snprintf(out, n, "0x%zx", (size_t)pc);
    else {
        file = strrchr(of.dli_fname, '/');
        file = file != NULL ? file + 1 : of.dli_fname;
        size_t in_file = pc - (uintptr_t)of.dli_fbase;
        if (of.dli_sname != NULL)
            length = snprintf(out, n, "%s+0x%zx (%s+0x%zx)", of.dli_sname, (size_t)(pc - (uintptr_t)of.dli_saddr), file,
                              in_file);
        else length = snprintf(out, n, "%s+0x%zx", file, in_file);
    }
    return length < 0 ? 0 : (size_t)length < n ? (size_t)length : n - 1;
}
