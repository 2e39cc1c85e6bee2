/*
 * segment_find.c - from a process id to its segment.
 *
 * The segment has no name: it is an open file of the process, found in /proc/PID/fd. Opening a file there could block
 * (FIFO) or have effects (devices), so a link is checked by its text and by stat before, and the open file is checked
 * again. Even stat asks the file system, which may be a machine that is silent: the file's mount is read from /proc
 * first. The link's text does not tell the mount: a file at the top of a mount that is gone can be called like a memfd.
 */
#define _GNU_SOURCE
#include "api/segment.h"

#include "api/internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef F_GET_SEALS
#define F_GET_SEALS 1034
#define F_SEAL_SHRINK 2
#endif

bool tsi_process_poll(uint32_t pid, TsiProcess* out) {
    char path[64], text[4096];
    struct stat st;
    *out = (TsiProcess){.pid = pid, .inner_pid = pid};
    (void)snprintf(path, sizeof path, "/proc/%u/stat", pid);
    const char* at = strrchr(tsi_os_read_text(path, text, sizeof text), ')'); /* the name before it may hold anything */
    if (at == NULL || strchr("ZXx", at[1] != 0 ? at[2] : 0) != NULL) return false;
    out->stopped = strchr("Tt", at[1] != 0 ? at[2] : 0) != NULL && at[1] != 0 && at[2] != 0;

    for (int field = 2; at != NULL && field < 22; field++) at = strchr(at + 1, ' ');
    if (at == NULL) return false;
    out->start_time = strtoull(at, NULL, 10);

    (void)snprintf(path, sizeof path, "/proc/%u", pid);
    if (stat(path, &st) != 0) return false;
    out->uid = st.st_uid;

    (void)snprintf(path, sizeof path, "/proc/%u/status", pid);
    if ((at = strstr(tsi_os_read_text(path, text, sizeof text), "\nNSpid:")) == NULL) return true;
    size_t line = strcspn(at + 1, "\n");
    const char* last = at + 1 + line;
    while (last > at && last[-1] >= '0' && last[-1] <= '9') last--;
    out->inner_pid = strtoull(last, NULL, 10);
    return true;
}

/* Sets the sentence of slab_last_error by a format that takes `pid`, a process id. Returns `error`, an errno value,
 * for callers to return; errno itself stays. [any thread, no lock held] */
static int refuse(int error, const char* sentence, uint32_t pid) {
    tsi_set_error(sentence, pid);
    return error;
}

/* Checks that the open file segment->fd is a regular one of the process's user, closed to others, of a possible
 * length; sets segment->bytes, and maps it to segment->map if it is sealed against shrinking. Returns 0, with map
 * NULL, as on entry, if it was not mapped; or an errno value with a sentence, and the caller closes fd.
 * [no other user of segment] */
static int look_at_file(SlabSegment* segment, const TsiProcess* process) {
    struct stat st;
    if (fstat(segment->fd, &st) != 0 || !S_ISREG(st.st_mode))
        return refuse(EPROTO, "the segment of process %u is no regular file", process->pid);
    if (st.st_uid != process->uid)
        return refuse(EPROTO, "the segment of process %u belongs to another user than the process", process->pid);
    if ((st.st_mode & 077) != 0)
        return refuse(EPROTO, "the segment of process %u is open to other users", process->pid);
    if (st.st_size < SLAB_SEGMENT_HEADER_BYTES || st.st_size > INT32_MAX)
        return refuse(EPROTO, "the segment of process %u has an impossible length", process->pid);

    segment->bytes = (size_t)st.st_size;
    int seals = fcntl(segment->fd, F_GET_SEALS);
    if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return 0; /* it could shrink under a mapping */
    void* map = mmap(NULL, segment->bytes, PROT_READ, MAP_SHARED, segment->fd, 0);
    if (map != MAP_FAILED) segment->map = map;
    return 0;
}

/* Returns the number of the mount of an open file by `fdinfo`, the path of its file in /proc; -1 if that does not have
 * it. [any thread, needs no lock] */
static long mount_of(const char* fdinfo) {
    char text[1024];
    const char* at = strstr(tsi_os_read_text(fdinfo, text, sizeof text), "mnt_id:");
    return at != NULL ? strtol(at + strlen("mnt_id:"), NULL, 10) : -1;
}

/* Returns the number of the kernel's own mount, where all memfds are and which no list has, by a memfd made and closed
 * for that; -1 if there is none or /proc does not tell. [any thread, needs no lock] */
static long memory_mount(void) {
    char path[64];
    int fd = tsi_os.memfd("tslab-mount");
    if (fd < 0) return -1;
    (void)snprintf(path, sizeof path, "/proc/self/fdinfo/%d", fd);
    long mount = mount_of(path);
    (void)close(fd);
    return mount;
}

/* Returns true if `kind`, a line's rest that begins with the name of a file system, begins with one of the names of
 * those that may wait for another machine: fuse, nfs, cifs, smb, ceph, afs, 9p, autofs. [any thread, needs no lock] */
static bool is_slow(const char* kind) {
    static const char* const slow[] = {"fuse", "nfs", "cifs", "smb", "ceph", "afs", "9p", "autofs"};
    for (size_t n = 0; n < sizeof slow / sizeof *slow; n++)
        if (strncmp(kind, slow[n], strlen(slow[n])) == 0) return true;
    return false;
}

bool tsi_segment_is_far(long mount, long memory, const char* mountinfo) {
    bool listed = false, slow = false;
    char* line = NULL;
    size_t room = 0;
    if (memory >= 0 && mount == memory) return false;
    FILE* f = fopen(mountinfo, "re");
    while (f != NULL && !listed && getline(&line, &room, f) > 0) {
        const char* kind = strstr(line, " - ");
        listed = kind != NULL && strtol(line, NULL, 10) == mount;
        slow = listed && is_slow(kind + 3);
    }
    free(line);
    if (f != NULL) (void)fclose(f);
    return listed ? slow : memory >= 0;
}

/* Returns true if even a stat of the process's open file, by its number, the text `name`, may wait on another machine
 * without end: by tsi_segment_is_far, from the file's mount in fdinfo and the process's list of mounts.
 * [any thread, no lock held] */
static bool is_far(const TsiProcess* process, const char* name) {
    char fdinfo[64], mountinfo[64];
    (void)snprintf(fdinfo, sizeof fdinfo, "/proc/%u/fdinfo/%.16s", process->pid, name);
    (void)snprintf(mountinfo, sizeof mountinfo, "/proc/%u/mountinfo", process->pid);
    return tsi_segment_is_far(mount_of(fdinfo), memory_mount(), mountinfo);
}

/* Tries a descriptor of the process, by its number, the text `name`, in `dir`, its open /proc/PID/fd. Returns 0 for the
 * segment, which *segment then is; -1 for another file, or an errno value with a sentence, and the caller drops
 * *segment. [no other user of segment] */
static int try_link(SlabSegment* segment, const TsiProcess* process, int dir, const char* name) {
    char text[512];
    struct stat st;
    ssize_t n = readlinkat(dir, name, text, sizeof text - 1);
    if (n <= 0) return -1;
    text[n] = 0;
    if (strstr(text, "temporal-slab") == NULL || (strstr(text, "/memfd:") != text && strstr(text, "/segment.") == NULL))
        return -1;
    if (is_far(process, name))
        return refuse(EPROTO, "what looks like the segment of process %u lies on a file system that may not answer",
                      process->pid);
    if (fstatat(dir, name, &st, 0) != 0 || !S_ISREG(st.st_mode)) return -1;

    segment->fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (segment->fd < 0) return refuse(errno, "the segment of process %u cannot be opened", process->pid);
    int error = look_at_file(segment, process);
    return error != 0 ? error : tsi_segment_try(segment, process);
}

/* Unmaps and closes all that *segment has, and empties it (fd -1); does no more than that if it is empty.
 * [no other user of segment] */
static void drop(SlabSegment* segment) {
    if (segment->map != NULL) (void)munmap((void*)(uintptr_t)segment->map, segment->bytes); /* const for us only */
    if (segment->memory != NULL) (void)munmap(segment->memory, segment->memory_bytes);
    if (segment->fd >= 0) (void)close(segment->fd);
    *segment = (SlabSegment){.fd = -1};
}

/* Finds the segment among the descriptors that `links` lists, and sets *segment, empty on entry, to it. Returns 0;
 * otherwise the last complaint, an errno value with a sentence, ENOENT if there was none, and *segment is empty.
 * [no other user of segment and links] */
static int find(SlabSegment* segment, const TsiProcess* process, DIR* links) {
    int complaint = 0;
    for (struct dirent* e; (e = readdir(links)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        int result = try_link(segment, process, dirfd(links), e->d_name);
        if (result == 0) return 0;
        drop(segment);
        if (result > 0) complaint = result;
    }
    if (complaint != 0) return complaint;
    return refuse(ENOENT, "process %u shows no statistics: it has no allocator with the option segment=1",
                  process->pid);
}

/* Finds the segment of the process `pid`, checks it, and sets *segment, empty on entry, to it. Returns 0, or an errno
 * value with a sentence; the caller drops *segment then. [no other user of segment] */
static int open_of(SlabSegment* segment, uint32_t pid) {
    TsiProcess process;
    char path[64];
    if (!tsi_process_poll(pid, &process)) return refuse(ESRCH, "there is no process %u", pid);
    if (process.uid != geteuid() && geteuid() != 0) return refuse(EACCES, "process %u is another user's", pid);
    (void)snprintf(path, sizeof path, "/proc/%u/fd", pid);
    DIR* links = opendir(path);
    if (links == NULL) return refuse(errno, "the open files of process %u cannot be seen", pid);

    segment->pid = pid;
    int error = find(segment, &process, links);
    (void)closedir(links);
    segment->pid = pid;
    return error;
}

SlabSegment* slab_segment_open(uint32_t pid) {
    SlabSegment found = {.fd = -1};
    tsi_process_init();
    int error = open_of(&found, pid);
    SlabSegment* segment = error == 0 ? malloc(sizeof *segment) : NULL;
    if (segment == NULL) {
        drop(&found);
        if (error == 0) error = refuse(ENOMEM, "no memory to read the segment of process %u", pid);
        errno = error;
        return NULL;
    }
    *segment = found;
    tsi_clear_error();
    return segment;
}

void slab_segment_close(SlabSegment* segment) {
    if (segment == NULL) return;
    drop(segment);
    free(segment);
}

SlabProcessState slab_segment_process(const SlabSegment* segment) {
    TsiProcess process;
    if (segment == NULL || !tsi_process_poll(segment->pid, &process) ||
        process.start_time != segment->header.start_time)
        return SLAB_PROCESS_ENDED;
    return process.stopped ? SLAB_PROCESS_STOPPED : SLAB_PROCESS_RUNNING;
}

bool slab_segment_alive(const SlabSegment* segment) { return slab_segment_process(segment) != SLAB_PROCESS_ENDED; }
