/*
 * pages.c - a kernel with larger pages, in front of a program that is linked dynamically (LD_PRELOAD).
 *
 *   TSLAB_TEST_PAGE=BYTES     size of a page, a power of two and a multiple of the real one, which is 4096
 *   TSLAB_TEST_UNLIMITED=1    a limit of the address space (RLIMIT_AS) is not told of, though it is in force
 *
 * What the program and its libraries call of libc to learn of pages and to change them is answered here as such a kernel
 * does: mappings begin at whole pages and have whole pages, lengths are rounded up, so that a purge of half a page takes
 * the other half with it. A call with an address inside of a page is EINVAL for a kernel; here it ends the program by
 * SIGABRT with a line that names the call, because who makes it may count on nothing but luck. /proc/self/statm and
 * pagemap are read in these pages; /proc/PID/stat is the kernel's own, of the first thread, also in an emulator, which has
 * a text of its own for the process itself: there a child of fork has begun when its parent did.
 *
 * Not as there: a page that is touched brings 4 KiB into memory, not all of it; libc's own mappings, the program's and the
 * stacks keep their places.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { REAL = 4096, PAGEMAP_WORD = 8 };
enum { IOCTL_USERFAULTS = 0xaa, WATCH = 0, MOVE = 5 }; /* of linux/userfaultfd.h */

typedef long SystemCall(long number, ...);

static size_t page_bytes;
static SystemCall* kernel;
static _Atomic int pagemap = -1; /* the descriptor that was opened last */

static void start(void) {
    const char* text = getenv("TSLAB_TEST_PAGE");
    size_t bytes = text != NULL ? strtoull(text, NULL, 10) : 0;
    if (bytes < REAL || (bytes & (bytes - 1)) != 0) {
        static const char said[] = "pages.c: TSLAB_TEST_PAGE is a power of two from 4096 on\n";
        (void)!write(STDERR_FILENO, said, sizeof said - 1);
        _exit(2);
    }
    *(void**)&kernel = dlsym(RTLD_NEXT, "syscall");
    page_bytes = bytes;
    /* An emulator that the program starts for itself is not of this processor; it is told again by the runner's words. */
    if (getenv("TSLAB_TEST_RUNNER") != NULL) (void)unsetenv("LD_PRELOAD");
}
static size_t page(void) {
    if (page_bytes == 0) start();
    return page_bytes;
}
__attribute__((constructor)) static void at_start(void) { (void)page(); }

static size_t up(size_t bytes) { return (bytes + page() - 1) & ~(page() - 1); }

static void whole(const char* call, const void* at) {
    char text[160];
    if (((uintptr_t)at & (page() - 1)) == 0) return;
    int n =
        snprintf(text, sizeof text, "pages.c: %s of %p, which is inside of a page of %zu bytes\n", call, at, page());
    (void)!write(STDERR_FILENO, text, (size_t)n);
    abort();
}

/* ---- how large a page is ---- */

long sysconf(int name) {
    static long (*next)(int name);
    if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "sysconf");
    if (name == _SC_PAGESIZE) return (long)page();
    long value = next(name);
    return (name == _SC_PHYS_PAGES || name == _SC_AVPHYS_PAGES) && value > 0 ? value / (long)(page() / REAL) : value;
}
int getpagesize(void) { return (int)page(); }
unsigned long getauxval(unsigned long type) {
    static unsigned long (*next)(unsigned long type);
    if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "getauxval");
    return type == AT_PAGESZ ? page() : next(type);
}

int getrlimit(__rlimit_resource_t which, struct rlimit* limit) {
    (void)page();
    if (kernel(SYS_prlimit64, 0, (int)which, NULL, limit) != 0) return -1;
    if (which == RLIMIT_AS && getenv("TSLAB_TEST_UNLIMITED") != NULL) limit->rlim_cur = limit->rlim_max = RLIM_INFINITY;
    return 0;
}
int getrlimit64(__rlimit_resource_t, struct rlimit64*) __attribute__((alias("getrlimit")));

/* ---- mappings ---- */

static void* map(void* at, size_t bytes, int access, int flags, int fd, off_t from) {
    return (void*)kernel(SYS_mmap, at, bytes, access, flags, fd, from);
}

/* Takes addresses at whole pages, more than needed at first; the mapping comes over them. */
static void* map_somewhere(void* hint, size_t bytes, int access, int flags, int fd, off_t from) {
    enum { PLACE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };
    uint8_t* room = map(hint, bytes + page() - REAL, PROT_NONE, PLACE, -1, 0);
    if (room == MAP_FAILED) return MAP_FAILED;
    uint8_t* p = (uint8_t*)up((uintptr_t)room);
    if (p != room) (void)kernel(SYS_munmap, room, (size_t)(p - room));
    size_t behind = page() - REAL - (size_t)(p - room);
    if (behind != 0) (void)kernel(SYS_munmap, p + bytes, behind);

    void* got = map(p, bytes, access, flags | MAP_FIXED, fd, from);
    int error = errno;
    if (got == MAP_FAILED) (void)kernel(SYS_munmap, p, bytes);
    errno = error;
    return got;
}

void* mmap(void* at, size_t bytes, int access, int flags, int fd, off_t from) {
    size_t size = up(bytes);
    whole("mmap of a part", (void*)(uintptr_t)from);
    if ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0) {
        whole("mmap", at);
        return map(at, size, access, flags, fd, from);
    }
    if (bytes == 0 || size < bytes || size > SIZE_MAX / 2) { /* the kernel's errors */
        errno = bytes == 0 ? EINVAL : ENOMEM;
        return MAP_FAILED;
    }
    return map_somewhere((void*)((uintptr_t)at & ~(page() - 1)), size, access, flags, fd, from);
}
void* mmap64(void*, size_t, int, int, int, off_t) __attribute__((alias("mmap")));

int munmap(void* at, size_t bytes) {
    whole("munmap", at);
    return (int)kernel(SYS_munmap, at, up(bytes));
}
int mprotect(void* at, size_t bytes, int access) {
    whole("mprotect", at);
    int result = (int)kernel(SYS_mprotect, at, up(bytes), access);
    bool cut = result != 0 && errno == ENOMEM; /* the program's own segments end at the kernel's pages */
    return cut ? (int)kernel(SYS_mprotect, at, bytes, access) : result;
}
int madvise(void* at, size_t bytes, int advice) {
    whole("madvise", at);
    return (int)kernel(SYS_madvise, at, up(bytes), advice);
}
int msync(void* at, size_t bytes, int flags) {
    whole("msync", at);
    return (int)kernel(SYS_msync, at, up(bytes), flags);
}

/* The kernel rounds these down. */
static int lock(long number, const void* at, size_t bytes) {
    uintptr_t from = (uintptr_t)at & ~(page() - 1);
    return (int)kernel(number, from, up((uintptr_t)at + bytes) - from);
}
int mlock(const void* at, size_t bytes) { return lock(SYS_mlock, at, bytes); }
int munlock(const void* at, size_t bytes) { return lock(SYS_munlock, at, bytes); }

/* A page is there if any part of it is. */
int mincore(void* at, size_t bytes, unsigned char* there) {
    whole("mincore", at);
    for (size_t done = 0; done < bytes; done += page(), there++) {
        *there = 0;
        for (size_t part = 0; part < page(); part += REAL) {
            unsigned char one = 0;
            if (kernel(SYS_mincore, (uint8_t*)at + done + part, (size_t)REAL, &one) != 0) return -1;
            *there |= one;
        }
    }
    return 0;
}

void* mremap(void* at, size_t bytes, size_t more, int flags, ...) {
    (void)bytes, (void)more, (void)flags;
    static const char said[] = "pages.c: no mremap here\n";
    (void)!write(STDERR_FILENO, said, sizeof said - 1);
    whole("mremap", (uint8_t*)((uintptr_t)at | 1));
    return MAP_FAILED;
}

/* What userfaultfd is asked: to watch a range, or to move one. */
typedef struct Move {
    uint64_t to, from, bytes, mode;
    int64_t moved;
} Move;
static bool is_faults(unsigned long request, unsigned number) {
    return (request >> 8 & 0xff) == IOCTL_USERFAULTS && (request & 0xff) == number;
}

/* The kernel may stop after some of its own pages, at one that was never touched; here it stops after whole ones. */
static long move_whole(long fd, unsigned long request, Move* m) {
    whole("a move to", (void*)(uintptr_t)m->to);
    whole("a move from", (void*)(uintptr_t)m->from);
    whole("a move of bytes up", (void*)(uintptr_t)m->bytes);
    long result = kernel(SYS_ioctl, fd, request, m);
    int error = errno;
    while (m->moved > 0 && ((size_t)m->moved & (page() - 1)) != 0) {
        size_t done = (size_t)m->moved;
        Move rest = {m->to + done, m->from + done, up(done) - done, m->mode, 0};
        if (kernel(SYS_ioctl, fd, request, &rest) != 0 && errno == ENOENT) *(volatile char*)(uintptr_t)rest.from = 0;
        if (rest.moved > 0) m->moved += rest.moved;
    }
    errno = error;
    return result;
}

long syscall(long number, ...) {
    long word[6];
    va_list args;
    va_start(args, number);
    for (int n = 0; n < 6; n++) word[n] = va_arg(args, long);
    va_end(args);
    (void)page();
    if (number == SYS_mbind) whole("mbind", (void*)word[0]);
    if (number == SYS_ioctl && is_faults((unsigned long)word[1], WATCH)) {
        const uint64_t* range = (const uint64_t*)word[2];
        whole("a watch", (void*)(uintptr_t)range[0]);
        whole("a watch of bytes up", (void*)(uintptr_t)range[1]);
    }
    if (number == SYS_ioctl && is_faults((unsigned long)word[1], MOVE))
        return move_whole(word[0], (unsigned long)word[1], (Move*)word[2]);
    return kernel(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}

/* ---- numbers of pages in /proc ---- */

/* Makes a file with the numbers of statm, each in these pages. */
static int statm(void) {
    char from[256] = "", to[256], *at = from;
    int fd = (int)kernel(SYS_openat, AT_FDCWD, "/proc/self/statm", O_RDONLY | O_CLOEXEC), n = 0;
    if (fd < 0) return fd;
    (void)!kernel(SYS_read, fd, from, sizeof from - 1);
    (void)kernel(SYS_close, fd);
    while (*at >= '0' && *at <= '9') {
        uint64_t pages = strtoull(at, &at, 10), ratio = page() / REAL;
        n += snprintf(to + n, sizeof to - (size_t)n, "%llu%c", (unsigned long long)((pages + ratio - 1) / ratio), *at);
        at += *at == ' ';
    }
    fd = (int)kernel(SYS_memfd_create, "statm", 1u);
    if (fd < 0) return fd;
    (void)!kernel(SYS_write, fd, to, (size_t)n);
    (void)kernel(SYS_lseek, fd, 0L, SEEK_SET);
    return fd;
}

/* Writes the name of the first thread's own stat, which an emulator does not answer, if path is /proc/PID/stat; the start
 * time there is the process's. */
static bool stat_of_leader(const char* path, char* to, size_t bytes) {
    unsigned pid = 0;
    int end = 0;
    if (strcmp(path, "/proc/self/stat") == 0) pid = (unsigned)getpid();
    else if (sscanf(path, "/proc/%u/stat%n", &pid, &end) != 1 || end == 0 || path[end] != 0) return false;
    return (size_t)snprintf(to, bytes, "/proc/%u/task/%u/stat", pid, pid) < bytes;
}

int open(const char* path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(args, int) : 0;
    va_end(args);
    (void)page();
    if (strcmp(path, "/proc/self/statm") == 0) return statm();
    char other[64];
    if (stat_of_leader(path, other, sizeof other)) path = other;
    int fd = (int)kernel(SYS_openat, AT_FDCWD, path, flags, mode);
    if (fd >= 0 && strcmp(path, "/proc/self/pagemap") == 0) pagemap = fd;
    return fd;
}
int open64(const char*, int, ...) __attribute__((alias("open")));

FILE* fopen(const char* path, const char* mode) {
    static FILE* (*next)(const char* path, const char* mode);
    if (next == NULL) *(void**)&next = dlsym(RTLD_NEXT, "fopen");
    if (strcmp(path, "/proc/self/statm") == 0) return fdopen(statm(), mode);
    char other[64];
    return next(stat_of_leader(path, other, sizeof other) ? other : path, mode);
}
FILE* fopen64(const char*, const char*) __attribute__((alias("fopen")));

/* Reads one word of pagemap: that of the first part of the page that is there, or of the first. */
static ssize_t read_pagemap(int fd, uint64_t* to, off_t at) {
    size_t ratio = page() / REAL;
    ssize_t got = 0;
    for (size_t part = ratio; part-- > 0;) {
        uint64_t word = 0;
        got = kernel(SYS_pread64, fd, &word, (size_t)PAGEMAP_WORD, at * (off_t)ratio + (off_t)(part * PAGEMAP_WORD));
        if (got != PAGEMAP_WORD) return got;
        if (part == ratio - 1 || word >> 63 != 0 || *to >> 63 == 0) *to = word;
    }
    return got;
}
ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
    (void)page();
    if (fd == pagemap && bytes == PAGEMAP_WORD) return read_pagemap(fd, to, at);
    return kernel(SYS_pread64, fd, to, bytes, at);
}
ssize_t pread64(int, void*, size_t, off_t) __attribute__((alias("pread")));
