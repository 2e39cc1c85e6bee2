/*
 * refuse.c - system calls that fail on request, in front of the preload library.
 *
 *   REFUSE=CALL   mmap, madvise or mprotect; only calls of libraries and programs, not those inside of libc
 *   REFUSE_AT=K   the K-th such call fails with ENOMEM; REFUSE_EVER: all after it, too
 *   REFUSE_LIES   it says that it was done
 *   REFUSED=FILE  made when the first is refused
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

extern char** environ;
static const char* setting(const char* name) { /* getenv may not be there yet */
    for (char** e = environ; e && *e; e++) {
        size_t n = 0;
        while (name[n] && (*e)[n] == name[n]) n++;
        if (!name[n] && (*e)[n] == '=') return *e + n + 1;
    }
    return NULL;
}
static int same(const char* a, const char* b) {
    while (*a && *a == *b) a++, b++;
    return *a == *b;
}
static int refuse(const char* call) {
    static int count;
    const char* which = setting("REFUSE");
    if (!which || !same(which, call)) return 0;
    int at = 0;
    for (const char* d = setting("REFUSE_AT"); *d; d++) at = 10 * at + (*d - '0');
    int n = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    if (n < at || (n > at && !setting("REFUSE_EVER"))) return 0;
    syscall(SYS_close, syscall(SYS_open, setting("REFUSED"), O_CREAT | O_WRONLY, 0600));
    errno = ENOMEM;
    return 1;
}
static int failed(void) { return setting("REFUSE_LIES") ? 0 : -1; }

void* mmap(void* at, size_t bytes, int prot, int flags, int fd, off_t from) {
    if (refuse("mmap")) return MAP_FAILED;
    return (void*)syscall(SYS_mmap, at, bytes, prot, flags, fd, from);
}
void* mmap64(void*, size_t, int, int, int, off_t) __attribute__((alias("mmap")));
int madvise(void* at, size_t bytes, int how) {
    return refuse("madvise") ? failed() : (int)syscall(SYS_madvise, at, bytes, how);
}
int mprotect(void* at, size_t bytes, int prot) {
    return refuse("mprotect") ? failed() : (int)syscall(SYS_mprotect, at, bytes, prot);
}
