/*
 * os_linux.c - Linux behind os.h.
 *
 * Reservations are PROT_NONE and MAP_NORESERVE: they cost address space only. Under
 * overcommit_memory=2 writable pages are charged for as long as they are writable, so pages are
 * given back by mapping read-only ones over them and are committed again before use. A thread whose
 * phase another one ends may still look at them.
 */
#define _GNU_SOURCE
#include "os/os.h"

#include "os/ticks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#ifndef MADV_FREE
#define MADV_FREE 8
#endif
enum { MPOL_PREFERRED = 1 };
enum {
    MEMBARRIER_GLOBAL = 1 << 0,
    MEMBARRIER_PRIVATE_EXPEDITED = 1 << 3,
    MEMBARRIER_REGISTER_PRIVATE_EXPEDITED = 1 << 4
};

/* Maps `bytes` of zeros, whole pages, that are charged only as touched, with the protection `access` (PROT_...): where
 * the system likes (at NULL, flags 0), or with flags MAP_FIXED at `at` in place of what is there. Asks for no huge
 * pages there. Returns their address, or NULL with errno. [any thread, needs no lock] */
static void* map_reserved(void* at, size_t bytes, int access, int flags) {
    void* p = mmap(at, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
    if (p == MAP_FAILED) return NULL;
#ifdef MADV_NOHUGEPAGE
    /* A huge page would keep 2 MiB resident for one live object. Best effort. */
    (void)madvise(p, bytes, MADV_NOHUGEPAGE);
#endif
    return p;
}

/*
 * Where RLIMIT_AS limits the address space, a reservation would use up all of it. There a large one is a place where
 * nothing is mapped, far from the addresses that the system chooses: it searches from below the stack downwards, or
 * with an unlimited stack from a third of the space upwards, and the heap lies behind the program. Pieces are mapped as
 * they are committed, without replacing anything: foreign mappings there are left alone, and the commit fails. Places
 * are used once.
 */
#if defined(__LP64__) && (defined(__x86_64__) || defined(__aarch64__)) && !TSI_WATCHED_THREADS && \
    !defined(__SANITIZE_ADDRESS__) && !TSI_WATCHED_VALUES
enum { HAS_PLACES = 1 };
#else
enum { HAS_PLACES = 0 };
#endif
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#define PLACES_FROM 0x110000000000ull /* 17 TiB */
#define PLACES_END 0x280000000000ull  /* 40 TiB */
enum { PLACE_LEAST = 1 << 20, PLACE_STEP = 1 << 21, PLACE_DICE = 1 << 20 };
static _Atomic uint64_t place_next;

/* Returns true if p lies among the places. [any thread, needs no lock] */
static bool is_place(const void* p) { return (uintptr_t)p >= PLACES_FROM && (uintptr_t)p < PLACES_END; }

/* Takes addresses for `bytes` that no caller has had before, by moving place_next on; nothing is mapped there. Returns
 * their start, a multiple of PLACE_STEP (2 MiB) behind the first place, or NULL if too few are left.
 * [any thread, needs no lock] */
static void* place_take(size_t bytes) {
    uint64_t size = tsi_align_up((uint64_t)bytes, PLACE_STEP), at = tsi_add_relaxed(&place_next, size);
    return at + size <= PLACES_END ? (void*)(uintptr_t)at : NULL;
}

/* Maps [p, p + bytes) of a place, whole pages, readable and writable, replacing nothing. Returns 0, or an errno value:
 * EEXIST if part of it is mapped, and then nothing was mapped. [any thread, needs no lock] */
static int map_at(void* p, size_t bytes) {
    void* got = mmap(p, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == MAP_FAILED) return errno;
    if (got != p) { /* a kernel before 4.17 takes the address for a hint */
        (void)munmap(got, bytes);
        return ENOMEM;
    }
#ifdef MADV_NOHUGEPAGE
    (void)madvise(p, bytes, MADV_NOHUGEPAGE);
#endif
    return 0;
}

/* Makes [p, p + bytes) of a place, whole pages, readable and writable; a neighbour that shares its first pages may have
 * mapped those already, and their content stays. Returns 0, or an errno value, ENOMEM if something foreign lies in it;
 * pages may have become writable before that. [any thread, needs no lock] */
static int map_rest(uint8_t* p, size_t bytes) {
    int error = map_at(p, bytes);
    if (error != EEXIST || mprotect(p, bytes, PROT_READ | PROT_WRITE) == 0) return error == EEXIST ? 0 : error;
    for (size_t page = tsi_os.page_bytes; error == EEXIST && bytes > page; bytes -= page) {
        if (mprotect(p, page, PROT_READ | PROT_WRITE) != 0) break;
        p += page;
        error = map_at(p, bytes - page);
    }
    return error == EEXIST ? ENOMEM : error;
}

/* Reserves `bytes` of address space, whole pages, without access or charge: a place if address space is limited and the
 * range has PLACE_LEAST bytes (1 MiB), otherwise or without a place an inaccessible mapping. Returns its address, or
 * NULL if the system refuses. [any thread, needs no lock] */
static void* os_reserve(size_t bytes) {
    void* place = tsi_os.sparse && bytes >= PLACE_LEAST ? place_take(bytes) : NULL;
    return place != NULL ? place : map_reserved(NULL, bytes, PROT_NONE, 0);
}

/* Makes [p, p + bytes), whole pages of a reservation, readable and writable. Returns 0, or an errno value.
 * [any thread, needs no lock] */
static int os_commit(void* p, size_t bytes) {
    if (is_place(p)) return map_rest(p, bytes);
    return mprotect(p, bytes, PROT_READ | PROT_WRITE) == 0 ? 0 : errno;
}

/* Gives [p, p + bytes), whole pages, back in the way `how`; they read as zeros when touched again (LAZY: perhaps only
 * later). After UNCOMMIT they have no access, and in a place nothing is mapped there, which would count against the
 * limit. Returns 0, or an errno value. Preserves errno, as frees do. [no other thread writes the pages] */
static int os_purge(void* p, size_t bytes, TsiPurgeHow how) {
    int saved = errno, error = 0; /* frees preserve errno */
    if (how == TSI_PURGE_UNCOMMIT && is_place(p)) {
        if (munmap(p, bytes) != 0) error = errno;
    } else if (how == TSI_PURGE_UNCOMMIT || how == TSI_PURGE_UNCHARGE || how == TSI_PURGE_RENEW) {
        int access = how == TSI_PURGE_RENEW      ? PROT_READ | PROT_WRITE
                     : how == TSI_PURGE_UNCHARGE ? PROT_READ
                                                 : PROT_NONE;
        if (map_reserved(p, bytes, access, MAP_FIXED) == NULL) error = errno;
    } else if (madvise(p, bytes, how == TSI_PURGE_LAZY ? MADV_FREE : MADV_DONTNEED) != 0) {
        error = errno;
    }
    errno = saved;
    return error;
}

/* Unmaps [p, p + bytes), whole pages; a failure is left alone, with errno set. [no other thread uses the pages] */
static void os_unmap(void* p, size_t bytes) { (void)munmap(p, bytes); }

/* Structures and numbers of linux/userfaultfd.h, which may be too old for the last one. */
typedef struct FaultsApi {
    uint64_t api, features, ioctls;
} FaultsApi;
typedef struct FaultsWatched {
    uint64_t at, bytes, mode, ioctls;
} FaultsWatched;
typedef struct FaultsMoved {
    uint64_t to, from, bytes, mode;
    int64_t moved;
} FaultsMoved;
enum {
    FAULTS_OF_PROGRAM = 1,
    FAULTS_MISSING = 1,
    FAULTS_LEAVE_HOLES = 2, /* UFFDIO_MOVE_MODE_ALLOW_SRC_HOLES of Linux 6.8 */
    FAULTS_API = 0xaa,
    FAULTS_CAN_MOVE = 1 << 16
};

/* Moves `bytes` of whole pages from `from` to `to`, a range that has none, by fd, a descriptor of userfaultfd that is
 * new. Returns the bytes moved from the first page on, 0 if the kernel cannot; fd stays open. Uses system calls by
 * number, because the type of ioctl's second parameter differs among libcs. [no other thread uses the pages] */
static size_t move_watched(int fd, void* to, void* from, size_t bytes) {
    FaultsApi api = {FAULTS_API, FAULTS_CAN_MOVE, 0};
    FaultsWatched watched = {(uintptr_t)to, bytes, FAULTS_MISSING, 0};
    if (syscall(SYS_ioctl, fd, _IOWR(FAULTS_API, 0x3f, FaultsApi), &api) != 0) return 0;
    if (syscall(SYS_ioctl, fd, _IOWR(FAULTS_API, 0, FaultsWatched), &watched) != 0) return 0;
    size_t done = 0;
    for (int64_t moved = 1; done < bytes && moved > 0; done += moved > 0 ? (size_t)moved : 0) {
        FaultsMoved m = {(uintptr_t)to + done, (uintptr_t)from + done, bytes - done, FAULTS_LEAVE_HOLES, 0};
        (void)syscall(SYS_ioctl, fd, _IOWR(FAULTS_API, 5, FaultsMoved), &m);
        moved = m.moved;
    }
    return done;
}

/* Moves `bytes` of whole pages from `from` to `to`, a range that has none. Returns the bytes moved from the first page
 * on: 0 if the kernel cannot, and under a filter of system calls, which may end the process for a call that it does not
 * know. Preserves errno. [no other thread uses the pages] */
static size_t os_move(void* to, void* from, size_t bytes) {
#ifdef SYS_userfaultfd
    int saved = errno;
    int fd = prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0 ? (int)syscall(SYS_userfaultfd, O_CLOEXEC | FAULTS_OF_PROGRAM) : -1;
    size_t moved = fd >= 0 ? move_watched(fd, to, from, bytes) : 0;
    if (fd >= 0) (void)syscall(SYS_close, fd); /* libc's function would be a cancellation point */
    errno = saved;
    return moved;
#else
    (void)to, (void)from, (void)bytes;
    return 0;
#endif
}

/* Gives the kernel an advice (MADV_...) about [p, p + bytes), whole pages; a refusal is left alone. Preserves errno.
 * [any thread, needs no lock] */
static void wish(void* p, size_t bytes, int advice) {
    int saved = errno;
    (void)madvise(p, bytes, advice);
    errno = saved;
}

/* Asks for huge pages in the reserved range [p, p + bytes); a refusal is left alone. Preserves errno.
 * [any thread, needs no lock] */
static void os_prefer_huge(void* p, size_t bytes) { wish(p, bytes, MADV_HUGEPAGE); }

/* Withdraws the request for huge pages in [p, p + bytes); a refusal is left alone. Preserves errno.
 * [any thread, needs no lock] */
static void os_avoid_huge(void* p, size_t bytes) { wish(p, bytes, MADV_NOHUGEPAGE); }

/* Asks that pages of [p, p + bytes), whole ones, come from the memory node, below TSI_OS_NODES_MAX, when first touched;
 * a refusal is left alone. Preserves errno. Calls mbind by number: libnuma is not needed.
 * [any thread, needs no lock] */
static void os_prefer_node(void* p, size_t bytes, unsigned node) {
    int saved = errno;
    unsigned long mask[TSI_OS_NODES_MAX / (8 * sizeof(unsigned long))] = {0};
    mask[node / (8 * sizeof *mask)] = 1ul << node % (8 * sizeof *mask);
    (void)syscall(SYS_mbind, p, bytes, MPOL_PREFERRED, mask, (unsigned long)TSI_OS_NODES_MAX + 1, 0);
    errno = saved;
}

/* Returns the memory node of the processor that runs this, where the thread may not stay; 0 if the kernel does not
 * tell. [any thread, needs no lock] */
static unsigned os_node(void) {
    unsigned cpu = 0, node = 0;
    return syscall(SYS_getcpu, &cpu, &node, NULL) == 0 ? node : 0; /* some libcs have no getcpu */
}

/* Has all other running threads of the process pass a full barrier. Returns true if they have. Tries the barrier for
 * all processes second: it takes milliseconds, but neither memory nor a registration. Preserves errno.
 * [any thread, needs no lock] */
static bool os_membarrier(void) {
    int saved = errno;
    bool done = syscall(SYS_membarrier, MEMBARRIER_PRIVATE_EXPEDITED, 0) == 0 ||
                syscall(SYS_membarrier, MEMBARRIER_GLOBAL, 0) == 0;
    errno = saved;
    return done;
}

/* Returns the time in ns of `clock`, a clock that the system has. [any thread, needs no lock] */
static uint64_t read_clock(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Returns CLOCK_MONOTONIC in ns. [any thread, needs no lock] */
static uint64_t os_now_ns(void) { return read_clock(CLOCK_MONOTONIC); }

/* The processor's counter, used if it runs at one rate whatever the processor does. */
#if defined(__x86_64__)
static TsiTicks ticks;
static bool has_ticks;

/* Returns the processor's time-stamp counter, in counts. [any thread; where the process may read it] */
static uint64_t read_count(void) { return __builtin_ia32_rdtsc(); }

/* Reads counter and system clock together and draws the next line of the quick clock from them; the process may read
 * the counter. Returns the clock in ns; the system's own, with no line drawn, if interrupts came between the readings
 * each time. [any thread, needs no lock] */
static TSI_NOINLINE uint64_t draw_ticks(void) {
    enum { TRIES = 4, NEAR = 1 << 12 };
    uint64_t ns = 0, from = 0, to = 0;
    for (int n = 0; n < TRIES && (n == 0 || to - from > NEAR); n++) { /* no interrupt between the readings */
        from = read_count();
        ns = os_now_ns();
        to = read_count();
    }
    return to - from <= NEAR ? tsi_ticks_draw(&ticks, from + (to - from) / 2, ns) : ns;
}

/* Returns the monotonic clock in ns, by the processor's counter where that can be trusted, otherwise from the system.
 * [any thread, needs no lock] */
static uint64_t os_quick_ns(void) {
    uint64_t ns;
    if (TSI_UNLIKELY(!has_ticks || tsi_load_relaxed(&ticks.off))) return os_now_ns();
    return tsi_ticks_at(&ticks, read_count(), &ns) ? ns : draw_ticks();
}
#else
/* Returns the monotonic clock in ns, from the system: no counter is known here. [any thread, needs no lock] */
static uint64_t os_quick_ns(void) { return os_now_ns(); }
#endif

/* Returns CLOCK_MONOTONIC in ns at the last tick, some milliseconds behind. [any thread, needs no lock] */
static uint64_t os_coarse_ns(void) { return read_clock(CLOCK_MONOTONIC_COARSE); }

/* Returns the processor time of the calling thread in ns, by a system call. [any thread, needs no lock] */
static uint64_t os_thread_ns(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

/* Reads the beginning of the file `path`, n bytes at most and in one read, into `to`; no 0 is added. Returns the bytes
 * read, or -1 if it cannot be opened or read. Preserves errno. No cancellation point: callers hold things that a
 * cancelled thread would keep. [any thread, needs no lock] */
static ssize_t read_file(const char* path, char* to, size_t n) {
    int state, saved = errno;
    ssize_t got = -1;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        got = read(fd, to, n);
        (void)close(fd);
    }
    (void)pthread_setcancelstate(state, NULL);
    errno = saved;
    return got;
}

const char* tsi_os_read_text(const char* path, char* to, size_t n) {
    ssize_t got = read_file(path, to, n - 1);
    to[got > 0 ? got : 0] = 0;
    return to;
}

/* Returns the resident bytes of the process, the second number of /proc/self/statm times the kernel's page size; 0 if
 * the file does not tell. [any thread, needs no lock] */
static uint64_t os_rss_bytes(void) {
    char buf[128], *end;
    (void)strtoull(tsi_os_read_text("/proc/self/statm", buf, sizeof buf), &end, 10);
    return strtoull(end, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Returns the bytes that may still be made writable under RLIMIT_DATA: 0 if it is used up, UINT64_MAX without a limit.
 * Compares the sixth number of /proc/self/statm, data and stacks in pages, with the limit.
 * [any thread, needs no lock] */
static uint64_t os_data_room(void) {
    struct rlimit limit;
    char buf[128], *at = buf;
    if (getrlimit(RLIMIT_DATA, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UINT64_MAX;
    (void)tsi_os_read_text("/proc/self/statm", buf, sizeof buf);
    for (unsigned n = 0; n < 5; n++) (void)strtoull(at, &at, 10);
    uint64_t used = strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

/* Sets all fields of *mapping from `line`, "low-high perms offset device inode path" of /proc/self/maps. The path is
 * empty unless it begins with '/' and has less than 256 bytes. [any thread, needs no lock] */
static void parse_mapping(const char* line, TsiMapping* mapping) {
    char* at;
    mapping->low = (uintptr_t)strtoull(line, &at, 16);
    mapping->high = (uintptr_t)strtoull(*at == '-' ? at + 1 : at, &at, 16);
    mapping->readable = at[0] == ' ' && at[1] == 'r';
    mapping->executable = mapping->readable && at[2] != 0 && at[3] == 'x';

    const char* word = at;
    for (unsigned n = 0; n < 4; n++) { /* perms, offset, device, inode */
        while (*word == ' ') word++;
        if (n == 1) mapping->offset = strtoull(word, NULL, 16);
        while (*word != ' ' && *word != 0) word++;
    }
    while (*word == ' ') word++;

    size_t n = *word == '/' ? strlen(word) : 0;
    if (n >= sizeof mapping->path) n = 0;
    memcpy(mapping->path, word, n);
    mapping->path[n] = 0;
}

/* Calls fn(mapping, ctx) for each line of /proc/self/maps that can be read from fd, parsed, until fn returns false; a
 * read may end in the middle of a line. Lines are cut to 511 bytes; an unfinished last line is left out. fd stays open.
 * [any thread, needs no lock] */
static void each_line(int fd, bool (*fn)(const TsiMapping* mapping, void* ctx), void* ctx) {
    char buf[1024], line[512];
    size_t used = 0;
    TsiMapping mapping;
    for (ssize_t got; (got = read(fd, buf, sizeof buf)) > 0;) {
        for (ssize_t n = 0; n < got; n++) {
            if (buf[n] != '\n') {
                if (used < sizeof line - 1) line[used++] = buf[n];
                continue;
            }
            line[used] = 0;
            used = 0;
            parse_mapping(line, &mapping);
            if (!fn(&mapping, ctx)) return;
        }
    }
}

/* Calls fn(mapping, ctx) for each mapping of the process, by address, until fn returns false; for none if /proc cannot
 * be read. Preserves errno, whatever fn sets it to. No cancellation point. [any thread, needs no lock] */
static void os_each_mapping(bool (*fn)(const TsiMapping* mapping, void* ctx), void* ctx) {
    int state, saved = errno;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state); /* as in read_file */
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        each_line(fd, fn, ctx);
        (void)close(fd);
    }
    (void)pthread_setcancelstate(state, NULL);
    errno = saved;
}

/* Returns true if the 8 bytes at p can be read now. Passes p as a signal set, which the kernel copies before it looks
 * at the first argument, which is invalid: so no signal is blocked. Preserves errno. [any thread, needs no lock] */
static bool os_is_readable(const void* p) {
    int saved = errno;
    bool readable = syscall(SYS_rt_sigprocmask, -1, p, NULL, sizeof(uint64_t)) == 0 || errno != EFAULT;
    errno = saved;
    return readable;
}

/* Returns 64 random bits: the kernel's, or mixed from the clock where the kernel has none yet.
 * [any thread, needs no lock] */
static uint64_t os_random(void) {
    uint64_t v = 0;
    /* libc's function would be a cancellation point */
    if (syscall(SYS_getrandom, &v, sizeof v, GRND_NONBLOCK) != (long)sizeof v)
        v = os_now_ns() * 0x9e3779b97f4a7c15ull ^ (uint64_t)(uintptr_t)&v;
    return v;
}

/* Makes an empty file in memory, with `name` for /proc, that can be sealed and is closed by exec. Returns a descriptor,
 * or -1 with errno. Called by number: a C library older than the call would not link. [any thread, needs no lock] */
static int os_memfd(const char* name) {
    enum { CLOEXEC = 1, ALLOW_SEALING = 2 };
    return (int)syscall(SYS_memfd_create, name, CLOEXEC | ALLOW_SEALING);
}

/* Reserves the pages of [offset, offset + bytes) of the file fd, so that touching them cannot fail. Returns 0, or an
 * errno value. [any thread, needs no lock] */
static int os_reserve_file(int fd, size_t offset, size_t bytes) {
    return posix_fallocate(fd, (off_t)offset, (off_t)bytes);
}

/* Writes n bytes to standard error in one call; a failure is left alone, with errno set. [any thread, needs no lock] */
static void os_complain(const char* bytes, size_t n) { (void)!syscall(SYS_write, STDERR_FILENO, bytes, n); }

TsiOs tsi_os = {
    .page_bytes = 0,
    .reserve = os_reserve,
    .commit = os_commit,
    .purge = os_purge,
    .unmap = os_unmap,
    .move = os_move,
    .prefer_huge = os_prefer_huge,
    .avoid_huge = os_avoid_huge,
    .prefer_node = os_prefer_node,
    .node = os_node,
    .membarrier = os_membarrier,
    .now_ns = os_now_ns,
    .quick_ns = os_quick_ns,
    .coarse_ns = os_coarse_ns,
    .thread_ns = os_thread_ns,
    .rss_bytes = os_rss_bytes,
    .data_room = os_data_room,
    .each_mapping = os_each_mapping,
    .is_readable = os_is_readable,
    .random = os_random,
    .memfd = os_memfd,
    .reserve_file = os_reserve_file,
    .complain = os_complain,
};

/* Returns true if the kernel charges writable memory: overcommit_memory is 2. False if the file cannot be read.
 * [tsi_os_init] */
static bool read_strict_commit(void) {
    char c = 0;
    return read_file("/proc/sys/vm/overcommit_memory", &c, 1) == 1 && c == '2';
}

/* Returns true if the kernel honours requests for huge pages of 2 MiB (2^21 bytes). Reads the setting of the system,
 * then that of the size where the kernel has one for each, then that of the process. [tsi_os_init] */
static bool read_huge(void) {
#define HUGE_PAGES "/sys/kernel/mm/transparent_hugepage/"
    char text[128];
    if (strtoull(tsi_os_read_text(HUGE_PAGES "hpage_pmd_size", text, sizeof text), NULL, 10) != 2 << 20) return false;
    (void)tsi_os_read_text(HUGE_PAGES "enabled", text, sizeof text);
    bool on = strstr(text, "[madvise]") != NULL || strstr(text, "[always]") != NULL;
    (void)tsi_os_read_text(HUGE_PAGES "hugepages-2048kB/enabled", text, sizeof text);
    if (text[0] != 0 && strstr(text, "[inherit]") == NULL) on = strstr(text, "[never]") == NULL;
    return on && prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 0;
}

/* Returns the highest number of a memory node that is online, + 1, at most TSI_OS_NODES_MAX; 1 if the system does not
 * tell. Reads a file with "0-1" or "0,2-3". [any thread, needs no lock] */
static unsigned read_nodes(void) {
    char buf[64];
    unsigned long last = 0;
    for (const char* at = tsi_os_read_text("/sys/devices/system/node/online", buf, sizeof buf); *at != 0;) {
        char* end;
        last = strtoul(at, &end, 10);
        at = *end != 0 ? end + 1 : end;
    }
    return last < TSI_OS_NODES_MAX ? (unsigned)last + 1 : TSI_OS_NODES_MAX;
}

#if defined(__x86_64__)
/* Sets has_ticks: the counter is trusted if it is invariant, the kernel uses it too, and the process may read it.
 * [tsi_os_init] */
static void init_ticks(void) {
    unsigned a, b, c, d;
    char source[8] = "";
    int may = 0;
    bool invariant = __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & 1 << 8) != 0;
    bool trusted = read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", source, 4) == 4 &&
                   memcmp(source, "tsc\n", 4) == 0;
    bool allowed = prctl(PR_GET_TSC, &may, 0, 0, 0) == 0 && may == PR_TSC_ENABLE;
    has_ticks = invariant && trusted && allowed;
}
#else
/* Does nothing: no counter is known here. [tsi_os_init] */
static void init_ticks(void) {}
#endif

void tsi_os_after_fork(void) {
#if defined(__x86_64__)
    tsi_ticks_child(&ticks);
#endif
    tsi_os.has_membarrier = syscall(SYS_membarrier, MEMBARRIER_REGISTER_PRIVATE_EXPEDITED, 0) == 0;
}

/* Chooses where places begin, by chance: sets place_next. Returns true if places can be had: a page mapped in one, as a
 * test and unmapped again, went where it was asked for. tsi_os.page_bytes is set. [tsi_os_init] */
static bool init_places(void) {
    uint64_t dice = tsi_os.random() % PLACE_DICE;
    tsi_store_relaxed(&place_next, PLACES_FROM + dice * PLACE_STEP);
    void* p = place_take(tsi_os.page_bytes);
    bool can = map_at(p, tsi_os.page_bytes) == 0;
    if (can) (void)munmap(p, tsi_os.page_bytes);
    return can;
}

bool tsi_os_lean;

extern char __libc_single_threaded __attribute__((weak)); /* glibc 2.32 */
bool tsi_os_is_alone(void) { return &__libc_single_threaded != NULL && __libc_single_threaded != 0; }

void tsi_os_init(void) {
    struct rlimit space;
    if (tsi_os.page_bytes != 0) return;
    tsi_os.page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    tsi_os.strict_commit = read_strict_commit();

    bool limited = getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
    tsi_os.space_limit = limited ? space.rlim_cur : UINT64_MAX;
    tsi_os.sparse = limited && HAS_PLACES && init_places();

    if (!tsi_os_lean) {
        tsi_os.nodes = read_nodes();
        tsi_os.has_huge = !tsi_os.strict_commit && read_huge();
        init_ticks();
    }
    tsi_os_after_fork();
}

unsigned tsi_os_node_count(void) { return tsi_os.nodes != 0 ? tsi_os.nodes : read_nodes(); }

void tsi_os_yield(unsigned* turn) {
    enum { YIELDS = 64, NAP_NS = 50000 };
    struct timespec nap = {0, NAP_NS};
    int state;
    if (*turn < YIELDS) {
        (void)sched_yield();
        ++*turn;
        return;
    }
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state); /* as in read_file */
    (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
    (void)pthread_setcancelstate(state, NULL);
}

void* tsi_os_map(size_t bytes) {
    size_t whole = tsi_align_up(bytes, tsi_os.page_bytes);
    void* p = tsi_os.reserve(whole);
    if (p != NULL && tsi_os.commit(p, whole) == 0) return p;
    tsi_os_drop(p, bytes);
    errno = ENOMEM;
    return NULL;
}

void tsi_os_drop(void* p, size_t bytes) {
    if (p != NULL) tsi_os.unmap(p, tsi_align_up(bytes, tsi_os.page_bytes));
}

bool tsi_os_counts_writable(void) { return tsi_os.strict_commit || tsi_os.sparse || tsi_os.data_room() != UINT64_MAX; }

const char* tsi_os_getenv(const char* name) { return secure_getenv(name); }
