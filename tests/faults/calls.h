/*
 * calls.h - calls to the system and to libc that fail on request: the k-th of a kind, or all from the k-th on.
 *
 * A program that includes this defines the functions by which the library reaches the system: its calls come here, those
 * inside of libc do not. A call that is to fail is not made, and errno is what the kind says. tsi_os (unit/fake_os.h)
 * fails at the library's own door; this is one door further out, so that what stands behind the table is tried as well.
 */
#ifndef TESTS_FAULTS_CALLS_H
#define TESTS_FAULTS_CALLS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

typedef enum Call {
    CALL_MMAP,
    CALL_MUNMAP,
    CALL_MPROTECT,
    CALL_MADVISE,
    CALL_MEMBARRIER,
    CALL_MEMFD,
    CALL_RANDOM,
    CALL_NODES,  /* mbind, getcpu */
    CALL_FAULTS, /* userfaultfd */
    CALL_PRCTL,
    CALL_RLIMIT,
    CALL_OPEN,
    CALL_READ,
    CALL_STAT,
    CALL_FCHMOD,
    CALL_FTRUNCATE,
    CALL_FCNTL,
    CALL_FALLOCATE,
    CALL_MKDIR,
    CALL_OPENAT,
    CALL_UNLINKAT,
    CALL_READLINKAT,
    CALL_OPENDIR,
    CALL_FOPEN,
    CALL_KEY,
    CALL_SPECIFIC,
    CALL_ATFORK,
    CALL_MALLOC,
    CALLS
} Call;

/* Allocations may be refused only where memory itself is. */
static const struct {
    const char* name;
    int error;
    bool memory; /* an allocation of objects may be refused for it */
} call_kinds[CALLS] = {
    [CALL_MMAP] = {"mmap", ENOMEM, true},
    [CALL_MUNMAP] = {"munmap", ENOMEM, false},
    [CALL_MPROTECT] = {"mprotect", ENOMEM, true},
    [CALL_MADVISE] = {"madvise", EAGAIN, false},
    [CALL_MEMBARRIER] = {"membarrier", ENOMEM, false},
    [CALL_MEMFD] = {"memfd_create", EMFILE, false},
    [CALL_RANDOM] = {"getrandom", EAGAIN, false},
    [CALL_NODES] = {"getcpu", ENOSYS, false},
    [CALL_FAULTS] = {"userfaultfd", EPERM, false},
    [CALL_PRCTL] = {"prctl", EINVAL, false},
    [CALL_RLIMIT] = {"getrlimit", EPERM, false},
    [CALL_OPEN] = {"open", EMFILE, false},
    [CALL_READ] = {"read", EIO, false},
    [CALL_STAT] = {"fstat", ENOMEM, false},
    [CALL_FCHMOD] = {"fchmod", EROFS, false},
    [CALL_FTRUNCATE] = {"ftruncate", ENOSPC, false},
    [CALL_FCNTL] = {"fcntl", EPERM, false},
    [CALL_FALLOCATE] = {"posix_fallocate", ENOSPC, false},
    [CALL_MKDIR] = {"mkdir", EROFS, false},
    [CALL_OPENAT] = {"openat", EROFS, false},
    [CALL_UNLINKAT] = {"unlinkat", EROFS, false},
    [CALL_READLINKAT] = {"readlinkat", EACCES, false},
    [CALL_OPENDIR] = {"opendir", EMFILE, false},
    [CALL_FOPEN] = {"fopen", EMFILE, false},
    [CALL_KEY] = {"pthread_key_create", EAGAIN, false},
    [CALL_SPECIFIC] = {"pthread_setspecific", ENOMEM, false},
    [CALL_ATFORK] = {"pthread_atfork", ENOMEM, false},
    [CALL_MALLOC] = {"malloc", ENOMEM, false},
};

static struct {
    _Atomic int kind; /* that fails; -1: none */
    _Atomic uint64_t count, first, last, failed;
} calls = {.kind = -1};
static bool calls_lie;      /* mprotect says that it was done */
static bool calls_no_memfd; /* there are none in this kernel: the library has files instead */
/* malloc is libc's own tool, too: it fails only where a test says so. */
static _Thread_local bool calls_malloc;

/* Fails the k-th call of the kind from now, k from 1; `on`: all from the k-th on. */
static inline void calls_fail(Call kind, uint64_t k, bool on) {
    atomic_store(&calls.kind, -1);
    atomic_store(&calls.count, 0);
    atomic_store(&calls.failed, 0);
    atomic_store(&calls.first, k);
    atomic_store(&calls.last, on ? UINT64_MAX : k);
    atomic_store(&calls.kind, (int)kind);
}
/* Ends the fault. */
static inline void calls_heal(void) { atomic_store(&calls.kind, -1); }
/* Returns true if a call has failed since calls_fail. */
static inline bool calls_struck(void) { return atomic_load(&calls.failed) != 0; }

static bool call_fails(Call kind) {
    if (atomic_load(&calls.kind) != (int)kind) return false;
    uint64_t n = atomic_fetch_add(&calls.count, 1) + 1;
    if (n < atomic_load(&calls.first) || n > atomic_load(&calls.last)) return false;
    atomic_fetch_add(&calls.failed, 1);
    errno = call_kinds[kind].error;
    return true;
}

/* The next definition of a function: libc's. */
static void* call_next(const char* name, void* _Atomic* kept) {
    void* fn = atomic_load(kept);
    if (fn == NULL) atomic_store(kept, fn = dlsym(RTLD_NEXT, name));
    return fn;
}
#define NEXT(fn, ...)                             \
    __extension__({                               \
        static void* _Atomic next_;               \
        __typeof__(fn)* real_;                    \
        *(void**)&real_ = call_next(#fn, &next_); \
        real_(__VA_ARGS__);                       \
    })

void* mmap(void* at, size_t bytes, int prot, int flags, int fd, off_t from) {
    if (call_fails(CALL_MMAP)) return MAP_FAILED;
    return NEXT(mmap, at, bytes, prot, flags, fd, from);
}
int munmap(void* at, size_t bytes) { return call_fails(CALL_MUNMAP) ? -1 : NEXT(munmap, at, bytes); }
int mprotect(void* at, size_t bytes, int prot) {
    return call_fails(CALL_MPROTECT) ? -!calls_lie : NEXT(mprotect, at, bytes, prot);
}
int madvise(void* at, size_t bytes, int how) { return call_fails(CALL_MADVISE) ? -1 : NEXT(madvise, at, bytes, how); }

long syscall(long number, ...) {
    long with[6];
    va_list args;
    va_start(args, number);
    for (unsigned n = 0; n < 6; n++) with[n] = va_arg(args, long);
    va_end(args);
    bool fails = (number == SYS_membarrier && call_fails(CALL_MEMBARRIER)) ||
                 (number == SYS_memfd_create && call_fails(CALL_MEMFD)) ||
                 (number == SYS_getrandom && call_fails(CALL_RANDOM)) ||
                 ((number == SYS_getcpu || number == SYS_mbind) && call_fails(CALL_NODES));
#ifdef SYS_userfaultfd
    fails = fails || (number == SYS_userfaultfd && call_fails(CALL_FAULTS));
#endif
    if (number == SYS_memfd_create && calls_no_memfd) {
        errno = ENOSYS;
        fails = true;
    }
    return fails ? -1 : NEXT(syscall, number, with[0], with[1], with[2], with[3], with[4], with[5]);
}

int prctl(int what, ...) {
    unsigned long with[4];
    va_list args;
    va_start(args, what);
    for (unsigned n = 0; n < 4; n++) with[n] = va_arg(args, unsigned long);
    va_end(args);
    return call_fails(CALL_PRCTL) ? -1 : NEXT(prctl, what, with[0], with[1], with[2], with[3]);
}
int getrlimit(__rlimit_resource_t what, struct rlimit* out) {
    return call_fails(CALL_RLIMIT) ? -1 : NEXT(getrlimit, what, out);
}

int open(const char* path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return call_fails(CALL_OPEN) ? -1 : NEXT(open, path, flags, mode);
}
int openat(int dir, const char* path, int flags, ...) {
    va_list args;
    va_start(args, flags);
    mode_t mode = (flags & O_CREAT) != 0 ? va_arg(args, mode_t) : 0;
    va_end(args);
    return call_fails(CALL_OPENAT) ? -1 : NEXT(openat, dir, path, flags, mode);
}
ssize_t read(int fd, void* to, size_t n) { return call_fails(CALL_READ) ? -1 : NEXT(read, fd, to, n); }
int fstat(int fd, struct stat* out) { return call_fails(CALL_STAT) ? -1 : NEXT(fstat, fd, out); }
int fchmod(int fd, mode_t mode) { return call_fails(CALL_FCHMOD) ? -1 : NEXT(fchmod, fd, mode); }
int ftruncate(int fd, off_t bytes) { return call_fails(CALL_FTRUNCATE) ? -1 : NEXT(ftruncate, fd, bytes); }
int fcntl(int fd, int what, ...) {
    va_list args;
    va_start(args, what);
    void* with = va_arg(args, void*);
    va_end(args);
    return call_fails(CALL_FCNTL) ? -1 : NEXT(fcntl, fd, what, with);
}
int posix_fallocate(int fd, off_t from, off_t bytes) {
    return call_fails(CALL_FALLOCATE) ? call_kinds[CALL_FALLOCATE].error : NEXT(posix_fallocate, fd, from, bytes);
}
int mkdir(const char* path, mode_t mode) { return call_fails(CALL_MKDIR) ? -1 : NEXT(mkdir, path, mode); }
int unlinkat(int dir, const char* path, int flags) {
    return call_fails(CALL_UNLINKAT) ? -1 : NEXT(unlinkat, dir, path, flags);
}
ssize_t readlinkat(int dir, const char* path, char* to, size_t n) {
    return call_fails(CALL_READLINKAT) ? -1 : NEXT(readlinkat, dir, path, to, n);
}
DIR* opendir(const char* path) { return call_fails(CALL_OPENDIR) ? NULL : NEXT(opendir, path); }
FILE* fopen(const char* path, const char* how) { return call_fails(CALL_FOPEN) ? NULL : NEXT(fopen, path, how); }

int pthread_key_create(pthread_key_t* key, void (*end)(void*)) {
    return call_fails(CALL_KEY) ? call_kinds[CALL_KEY].error : NEXT(pthread_key_create, key, end);
}
int pthread_setspecific(pthread_key_t key, const void* value) {
    return call_fails(CALL_SPECIFIC) ? call_kinds[CALL_SPECIFIC].error : NEXT(pthread_setspecific, key, value);
}

#if defined(__GLIBC__)
/* pthread_atfork itself is in no shared library. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void*);
int pthread_atfork(void (*before)(void), void (*parent)(void), void (*child)(void)) {
    return call_fails(CALL_ATFORK) ? call_kinds[CALL_ATFORK].error : __register_atfork(before, parent, child, NULL);
}
extern void* __libc_malloc(size_t);
void* malloc(size_t n) { return calls_malloc && call_fails(CALL_MALLOC) ? NULL : __libc_malloc(n); }
#endif

#undef NEXT
#endif
