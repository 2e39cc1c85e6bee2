/* shared.c - see shared.h. */
#define _GNU_SOURCE
#include "os/shared.h"

#include "os/os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_SEAL_SEAL 1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16
#endif

/* Opens the user's own folder `path`, making it if there is none. Returns a descriptor, which the caller closes, or -1
 * with errno if it cannot be had or is not the user's alone (EPERM). /tmp is everybody's, so it is checked, not
 * trusted: a link is not followed, and owner and mode are those of the open folder. [any thread, needs no lock] */
static int folder_open(const char* path) {
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) return -1;
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0) return -1;
    if (fstat(dir, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 077) == 0) return dir;
    (void)close(dir);
    errno = EPERM;
    return -1;
}

/* Opens the user's folder for segments, making it if there is none: in XDG_RUNTIME_DIR, otherwise in /tmp. Returns a
 * descriptor, which the caller closes, or -1 with errno. [any thread, needs no lock] */
static int folder_any(void) {
    char path[512];
    const char* runtime = tsi_os_getenv("XDG_RUNTIME_DIR");
    if (runtime != NULL && runtime[0] == '/') {
        int n = snprintf(path, sizeof path, "%s/temporal-slab", runtime);
        int dir = n > 0 && (size_t)n < sizeof path ? folder_open(path) : -1;
        if (dir >= 0) return dir;
    }
    (void)snprintf(path, sizeof path, "/tmp/temporal-slab-%u", (unsigned)geteuid());
    return folder_open(path);
}

/* Makes an empty file "OF.PID.NUMBER" in the user's folder, opens it and takes its name away. `of`: the first part of
 * its name. Returns a descriptor, or -1 with errno. Sets *what to the words for the last step tried, which is the one
 * that failed with -1. [any thread, needs no lock] */
static int file_open(const char* of, const char** what) {
    char name[64];
    int dir = folder_any();
    *what = "folder of the user for segments";
    if (dir < 0) return -1;
    (void)snprintf(name, sizeof name, "%s.%u.%llx", of, (unsigned)getpid(), (unsigned long long)tsi_os.random());
    *what = "file of shared memory";
    int fd = openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int error = errno;
    if (fd >= 0) (void)unlinkat(dir, name, 0); /* found by the descriptor, so nothing is left behind */
    (void)close(dir);
    errno = error;
    return fd;
}

/* Moves a descriptor 0, 1 or 2 above 2 and closes the old one: a program that has closed its standard streams must not
 * find ours there. Returns the descriptor to use from here on: fd itself if it is above 2; -1 with errno if it cannot
 * be moved (it is closed then) or if fd was -1. [holder of fd] */
static int above_streams(int fd) {
    if (fd < 0 || fd > 2) return fd;
    int up = fcntl(fd, F_DUPFD_CLOEXEC, 3), error = errno;
    (void)close(fd);
    errno = error;
    return up;
}

/* Returns true if a file of `bytes` bytes is beyond the process's limit (RLIMIT_FSIZE), where ftruncate would raise a
 * signal. [any thread, needs no lock] */
static bool is_too_long(size_t bytes) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < bytes;
}

/* Gives the file shared->fd the length shared->bytes, seals (if `sealed`: it is a memfd), the first `reserve` bytes of
 * pages, and its mapping, and sets the remaining fields of *shared except the inherited range. Returns 0, or an errno
 * value; the caller unmaps (if shared->base is not NULL) and closes then. Sets *what to the words for the last step
 * tried. [no other user of *shared] */
static int fill_in(TsiShared* shared, bool sealed, size_t reserve, const char** what) {
    struct stat st;
    *what = "fchmod";
    if (fchmod(shared->fd, 0600) != 0 || fstat(shared->fd, &st) != 0) return errno;
    shared->dev = st.st_dev;
    shared->ino = st.st_ino;

    *what = "ftruncate";
    if (ftruncate(shared->fd, (off_t)shared->bytes) != 0) return errno;

    *what = "seals";
    if (sealed && fcntl(shared->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return errno;

    *what = "reserving its pages";
    int error = tsi_shared_reserve(shared, 0, reserve);
    if (error != 0) return error;

    *what = "mmap";
    void* p = mmap(NULL, shared->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared->fd, 0);
    if (p == MAP_FAILED) return errno;
    shared->base = p;
    *what = "MADV_DONTFORK";
    if (madvise(p, shared->bytes, MADV_DONTFORK) != 0) return errno;

    if (sealed) { /* nobody else writes from here on; kernels before 5.1 do not know it */
        (void)fcntl(shared->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
        (void)fcntl(shared->fd, F_ADD_SEALS, F_SEAL_SEAL);
    }
    return 0;
}

int tsi_shared_open(TsiShared* shared, const char* memfd, const char* file, size_t bytes, size_t reserve,
                    const char** what) {
    *shared = (TsiShared){.bytes = bytes, .fd = -1};
    *what = "limit on the size of files (RLIMIT_FSIZE)";
    if (is_too_long(bytes)) return EFBIG;

    shared->fd = above_streams(tsi_os.memfd(memfd));
    bool sealed = shared->fd >= 0;
    if (!sealed) shared->fd = above_streams(file_open(file, what));
    if (shared->fd < 0) return errno;

    int error = fill_in(shared, sealed, reserve, what);
    if (error == 0) return 0;
    if (shared->base != NULL) (void)munmap(shared->base, shared->bytes);
    (void)close(shared->fd);
    *shared = (TsiShared){.fd = -1};
    return error;
}

int tsi_shared_reserve(const TsiShared* shared, size_t offset, size_t bytes) {
    int error = EINTR;
    for (int tries = 0; error == EINTR && tries < 16; tries++) error = tsi_os.reserve_file(shared->fd, offset, bytes);
    return error;
}

int tsi_shared_inherit(TsiShared* shared, size_t offset, size_t bytes) {
    size_t before = offset & (tsi_os.page_bytes - 1); /* bytes of its first page before it */
    if (madvise(shared->base + offset - before, bytes + before, MADV_DOFORK) != 0) return errno;
    shared->inherited = offset - before;
    shared->inherited_bytes = bytes + before;
    return 0;
}

void tsi_shared_forget(TsiShared* shared) {
    struct stat st;
    if (shared->base != NULL && shared->inherited_bytes != 0)
        (void)munmap(shared->base + shared->inherited, shared->inherited_bytes);
    bool open = shared->fd >= 0 && fstat(shared->fd, &st) == 0;
    if (open && st.st_dev == shared->dev && st.st_ino == shared->ino) (void)close(shared->fd);
    *shared = (TsiShared){.fd = -1};
}
