/*
 * shared_files.c - the segment's files on a file system that is full, read-only, or cannot be used at all: the allocator
 * works without them, says why, tries again, and shows its statistics once there is room.
 *
 * Where the kernel has no memfd the segment is a file in a folder of the user. Here that folder is on a file system of
 * the test's own, mounted in a namespace that ends with the process: as root, or where users may make namespaces. Then
 * the folder is /dev/shm itself, so a full or read-only /dev/shm is that of the name. Otherwise the system's answers come
 * through the library's table (os/os.h).
 */
#define _GNU_SOURCE
#include "kit/inside.h"

#include "slab_diagnostics.h"
#include "slab_segment.h"
#include "slab_stats.h"

#include "stats/segment.h"

#include <sched.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static int no_memfd(const char* name) {
    (void)name;
    errno = ENOSYS;
    return -1;
}

/* The clock moves on by a second with each reading: a publication is always due. */
static _Atomic uint64_t second;
static uint64_t hurried(void) { return atomic_fetch_add(&second, 1000000000); }

static SlabAllocator* a;
static void make(void) {
    SlabOptions o = kit_options();
    o.segment = 1;
    o.profile_bytes = 4096;
    (void)slab_page_size(); /* the table is filled */
    atomic_store(&second, tsi_os.coarse_ns());
    tsi_os.coarse_ns = tsi_os.now_ns = tsi_os.quick_ns = hurried;
    tsi_os.memfd = no_memfd;
    a = kit_create_with(&o);
}

/* All that a program does; polls of the segment come in between. */
static void works(void) {
    void* p[200];
    EpochReceipt r;
    uint64_t out = kit_refusals(a).out_of_memory;
    for (unsigned n = 0; n < 5; n++) {
        epoch_domain_t* d = epoch_domain_begin(a, "without files");
        REQUIRE(d != NULL);
        kit_take(a, 700, p, 200);
        for (unsigned i = 0; i < 100; i++) REQUIRE(slab_free_checked(a, p[i]));
        REQUIRE(epoch_domain_end_ex(d, &r));
        KIT_BALANCED(&r);
        kit_take(a, 3000, p, 50);
        for (unsigned i = 0; i < 50; i++) REQUIRE(slab_free_checked(a, p[i]));
        epoch_advance(a);
        slab_trim(a);
    }
    REQUIRE_EQ(kit_live(a), 0);
    REQUIRE_EQ(kit_refused_frees(a), 0);
    REQUIRE_EQ(kit_refusals(a).out_of_memory, out);
    kit_check(a);
}

static bool swallow(void* ctx, const char* text, size_t n) {
    *(uint64_t*)ctx += n + (text[0] == 0);
    return true;
}
static void is_shown(void) {
    SlabSegmentView view;
    uint64_t n = 0;
    REQUIRE(slab_stats_publish(a));
    SlabSegment* s = slab_segment_open((uint32_t)getpid());
    REQUIRE_OR(s != NULL, "%s", slab_last_error());
    REQUIRE_EQ(slab_segment_read(s, 0, &view), SLAB_SEGMENT_OK);
    REQUIRE(slab_segment_json(s, swallow, &n));
    slab_segment_close(s);
}
static void is_not_shown(void) {
    REQUIRE(!slab_stats_publish(a));
    REQUIRE_NULL(slab_segment_open((uint32_t)getpid()));
    REQUIRE_EQ(errno, ENOENT);
    uint64_t n = 0;
    REQUIRE(slab_stats_json(a, swallow, &n)); /* asked by itself it answers as ever */
    REQUIRE_GT(tsi_segment_health(tsi_arena(a)).failures, 0);
}

/* ---- a file system of the test's own ---- */

static const char folder[] = "/dev/shm";

static void mount_shm(unsigned long flags, const char* with) {
    REQUIRE_OR(mount("none", folder, "tmpfs", flags, with) == 0, "mount %s: %s", with, strerror(errno));
}
/* Enters namespaces in which mounts are this process's own. */
static void need_mounts(void) {
    uid_t uid = geteuid();
    char map[64];
    if (unshare(uid == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) != 0)
        SKIP("no namespace for mounts: %s", strerror(errno));
    if (uid != 0) {
        FILE* f = fopen("/proc/self/uid_map", "w");
        (void)snprintf(map, sizeof map, "%u %u 1", (unsigned)uid, (unsigned)uid);
        bool ok = f != NULL && fputs(map, f) >= 0;
        if (f != NULL) ok = fclose(f) == 0 && ok;
        if (!ok) SKIP("no map of users: %s", strerror(errno));
    }
    if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        SKIP("mounts cannot be made private: %s", strerror(errno));
    if (mount("none", folder, "tmpfs", 0, "mode=700") != 0) SKIP("no mount on %s: %s", folder, strerror(errno));
    REQUIRE_EQ(umount(folder), 0);
    REQUIRE_EQ(setenv("XDG_RUNTIME_DIR", folder, 1), 0);
}

static void full(void* arg) {
    (void)arg;
    need_mounts();
    mount_shm(0, "size=64k,mode=700");
    make();
    works();
    is_not_shown();
    mount_shm(MS_REMOUNT, "size=64m,mode=700");
    works(); /* a retry is due by the clock */
    is_shown();
    /* Full again: what is reserved is there, what grows is not, and the rest goes on being published. */
    mount_shm(MS_REMOUNT, "size=16m,mode=700");
    int fd = open("/dev/shm/filler", O_RDWR | O_CREAT, 0600);
    REQUIRE(fd >= 0);
    for (off_t at = 0; posix_fallocate(fd, at, 4096) == 0;) at += 4096;
    close(fd);
    works();
    is_shown();
    SlabAllocator* first = a;
    make(); /* a second one: its profile has no room */
    works();
    slab_allocator_free(a);
    a = first;
    works();
    is_shown();
    slab_allocator_free(a);
    REQUIRE_EQ(unlink("/dev/shm/filler"), 0);
}

static void read_only(void* arg) {
    (void)arg;
    need_mounts();
    mount_shm(0, "size=64m,mode=700");
    mount_shm(MS_REMOUNT | MS_RDONLY, "size=64m,mode=700");
    /* /tmp, which comes next, is read-only as well. */
    REQUIRE_EQ(mount("none", "/tmp", "tmpfs", MS_RDONLY, "size=64m"), 0);
    make();
    works();
    is_not_shown();
    mount_shm(MS_REMOUNT, "size=64m,mode=700");
    works();
    is_shown();
    /* Read-only once more, with the file open: it can still be written. */
    works();
    is_shown();
    slab_allocator_free(a);
}

static void no_inodes(void* arg) {
    (void)arg;
    need_mounts();
    mount_shm(0, "size=64m,nr_inodes=1,mode=700"); /* the folder itself is one */
    REQUIRE_EQ(mount("none", "/tmp", "tmpfs", 0, "size=64m,nr_inodes=1"), 0);
    make();
    works();
    is_not_shown();
    mount_shm(MS_REMOUNT, "size=64m,nr_inodes=100,mode=700");
    works();
    is_shown();
    slab_allocator_free(a);
}

static void a_full_file_system(void) { check_child(full, NULL); }
static void a_read_only_file_system(void) { check_child(read_only, NULL); }
static void no_file_can_be_made(void) { check_child(no_inodes, NULL); }

/* ---- by the table, where there are memfds or no namespaces ---- */

static int errors;
static int (*real_reserve)(int, size_t, size_t);
static int (*real_memfd)(const char*);
static int refusing_reserve(int fd, size_t offset, size_t bytes) {
    return errors > 0 ? ENOSPC : real_reserve(fd, offset, bytes);
}
static int refusing_memfd(const char* name) {
    if (errors == 0) return real_memfd(name);
    errno = errors == 1 ? EMFILE : ENOMEM;
    return -1;
}

/* The pages of a memfd have no room, by a limit of the memory that files may take; then they have, and have not. */
static void memfds_without_room(void* arg) {
    (void)arg;
    SlabOptions o = kit_options();
    o.segment = 1;
    o.profile_bytes = 4096;
    (void)slab_page_size();
    real_reserve = tsi_os.reserve_file;
    tsi_os.reserve_file = refusing_reserve;
    atomic_store(&second, tsi_os.coarse_ns());
    tsi_os.coarse_ns = tsi_os.now_ns = tsi_os.quick_ns = hurried;
    errors = 1;
    a = kit_create_with(&o);
    works();
    is_not_shown();
    errors = 0;
    works();
    is_shown();
    errors = 1;
    works();
    is_shown();
    slab_allocator_free(a);
}
static void a_memfd_without_room(void) { check_child(memfds_without_room, NULL); }

/* The kernel refuses to let children have the segment's figures (MADV_DOFORK), at first: what was mapped for them goes. */
static bool no_children;
int madvise(void* at, size_t bytes, int how) {
    if (no_children && how == MADV_DOFORK) {
        errno = ENOMEM;
        return -1;
    }
    return (int)syscall(SYS_madvise, at, bytes, how);
}
static unsigned segments_mapped(void) {
    char line[1024];
    unsigned n = 0;
    FILE* f = fopen("/proc/self/maps", "r");
    REQUIRE(f != NULL);
    while (fgets(line, sizeof line, f) != NULL) n += strstr(line, "memfd:temporal-slab") != NULL;
    REQUIRE_EQ(fclose(f), 0);
    return n;
}
static void nothing_for_children(void* arg) {
    (void)arg;
    SlabOptions o = kit_options();
    o.segment = 1;
    (void)slab_page_size();
    atomic_store(&second, tsi_os.coarse_ns());
    tsi_os.coarse_ns = tsi_os.now_ns = tsi_os.quick_ns = hurried;
    no_children = true;
    a = kit_create_with(&o);
    works();
    is_not_shown();
    REQUIRE_EQ(segments_mapped(), 0);
    no_children = false;
    works();
    is_shown();
    REQUIRE_GT(segments_mapped(), 0);
    slab_allocator_free(a);
}
static void without_advice_for_children(void) { check_child(nothing_for_children, NULL); }

/* No memfd, and no folder: the process has no descriptor left, or the machine no memory. */
static void no_descriptors(void* arg) {
    SlabOptions o = kit_options();
    o.segment = 1;
    (void)slab_page_size();
    real_memfd = tsi_os.memfd;
    tsi_os.memfd = refusing_memfd;
    REQUIRE_EQ(setenv("XDG_RUNTIME_DIR", "/proc/self/no-such-folder", 1), 0);
    atomic_store(&second, tsi_os.coarse_ns());
    tsi_os.coarse_ns = tsi_os.now_ns = tsi_os.quick_ns = hurried;
    errors = *(int*)arg;
    struct rlimit r;
    REQUIRE_EQ(getrlimit(RLIMIT_NOFILE, &r), 0);
    rlim_t was = r.rlim_cur;
    r.rlim_cur = 3;
    REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
    a = kit_create_with(&o);
    works();
    REQUIRE(!slab_stats_publish(a));
    r.rlim_cur = was;
    REQUIRE_EQ(setrlimit(RLIMIT_NOFILE, &r), 0);
    errors = 0;
    works();
    is_shown();
    slab_allocator_free(a);
}
static void without_descriptors(void) {
    int how[] = {1, 2};
    check_child(no_descriptors, &how[0]);
    check_child(no_descriptors, &how[1]);
}

static const CheckCase cases[] = {
    CHECK_CASE(a_full_file_system),   CHECK_CASE(a_read_only_file_system), CHECK_CASE(no_file_can_be_made),
    CHECK_CASE(a_memfd_without_room), CHECK_CASE(without_descriptors),
    CHECK_CASE(without_advice_for_children),
};
CHECK_MAIN(cases)
