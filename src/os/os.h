/*
 * os.h - the only door to the operating system.
 *
 * All calls of the allocator to the kernel go through one table of functions, so that tests can fail the k-th call,
 * fake the page size and record purges. The table is filled once, before the first allocator exists, and is read-only
 * afterwards (tests swap it while nothing runs).
 */
#ifndef TSI_OS_OS_H
#define TSI_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TSI_OS_NODES_MAX = 64 };
/* DONTNEED: the content is gone at once. LAZY: pages go when the system wants them, and keep their content until then.
 * UNCOMMIT: pages become as reserved, without access and without requests for huge pages or nodes. UNCHARGE: likewise,
 * but they can be read, as zeros. RENEW: pages lose these requests, and stay writable. */
typedef enum TsiPurgeHow {
    TSI_PURGE_DONTNEED,
    TSI_PURGE_LAZY,
    TSI_PURGE_UNCOMMIT,
    TSI_PURGE_UNCHARGE,
    TSI_PURGE_RENEW
} TsiPurgeHow;

/* A line of the process's memory map. */
typedef struct TsiMapping {
    uintptr_t low, high;
    uint64_t offset; /* in the file */
    bool readable, executable;
    char path[256]; /* empty unless the mapping is of a file whose path fits */
} TsiMapping;

/* Facts of the system, and its calls. Any thread may call each function; none needs a lock, takes one or allocates. */
typedef struct TsiOs {
    size_t page_bytes;    /* power of two, >= 4096 */
    bool strict_commit;   /* the kernel charges writable memory (overcommit_memory = 2) */
    bool has_membarrier;  /* private expedited membarrier is registered */
    unsigned nodes;       /* memory nodes, at least 1 */
    bool has_huge;        /* the kernel honours requests for huge pages of 2 MiB */
    uint64_t space_limit; /* bytes of address space that the process may have (RLIMIT_AS); UINT64_MAX: no limit */
    bool sparse;          /* reserved memory is a place without a mapping and counts against no limit */
    /* Reserves address space of `bytes` bytes without access or charge. Returns its address, which the caller unmaps,
     * or NULL. */
    void* (*reserve)(size_t bytes);
    /* Makes the whole pages of [p, p + bytes), of a reservation, readable and writable; those that are already, keep
     * their content. Returns 0 or an errno value. */
    int (*commit)(void* p, size_t bytes);
    /* Gives the whole pages of [p, p + bytes) back in the way `how`; their content becomes zero, with LAZY perhaps
     * later. Returns 0 or an errno value. Preserves errno. */
    int (*purge)(void* p, size_t bytes, TsiPurgeHow how);
    /* Unmaps the whole pages of [p, p + bytes); a failure is left alone. */
    void (*unmap)(void* p, size_t bytes);
    /* Moves whole pages that this process alone has to a range that has none yet, from the first one on; both ranges
     * may be written. Returns how many bytes have moved, which read as zeros at their old place. The others stay: all
     * of them if the system cannot, if a filter of system calls is on, or if a page is shared with a fork child. */
    size_t (*move)(void* to, void* from, size_t bytes);
    /* Asks for huge pages in the reserved range [p, p + bytes), where possible. Preserves errno. */
    void (*prefer_huge)(void* p, size_t bytes);
    /* Withdraws that request for [p, p + bytes): parts given back of a huge page do not come again. Preserves errno. */
    void (*avoid_huge)(void* p, size_t bytes);
    /* Asks that pages of the reserved range [p, p + bytes), when first touched from here on, come from the memory node,
     * below TSI_OS_NODES_MAX, while it has any. Preserves errno. */
    void (*prefer_node)(void* p, size_t bytes, unsigned node);
    /* Returns the memory node of the processor that runs this, 0 if the system does not tell; the thread may move right
     * after. */
    unsigned (*node)(void);
    /* Returns true if all other running threads of the process have passed a full barrier; if false, perhaps not. The
     * system may refuse a call after the registration at start: for want of memory, or by a filter installed since.
     * Preserves errno. */
    bool (*membarrier)(void);
    /* Returns CLOCK_MONOTONIC in ns. */
    uint64_t (*now_ns)(void);
    /* Returns a clock in ns that is within microseconds of CLOCK_MONOTONIC, and cheaper where possible; for durations.
     * Never goes back within a thread. */
    uint64_t (*quick_ns)(void);
    /* Returns CLOCK_MONOTONIC in ns at the last tick: some milliseconds behind, and cheaper. */
    uint64_t (*coarse_ns)(void);
    /* Returns the processor time of the calling thread in ns: a system call. */
    uint64_t (*thread_ns)(void);
    /* Returns the resident bytes of the process, 0 if the system does not tell. Reads a file. */
    uint64_t (*rss_bytes)(void);
    /* Returns how many bytes the process may still make writable under RLIMIT_DATA; UINT64_MAX without a limit. Reads a
     * file if there is one. */
    uint64_t (*data_room)(void);
    /* Calls fn(mapping, ctx) for each mapping of the process, by address, until it returns false; *mapping is valid
     * during the call only. Allocates nothing. */
    void (*each_mapping)(bool (*fn)(const TsiMapping* mapping, void* ctx), void* ctx);
    /* Returns true if the 8 bytes at p can be read now. p may be any address. Preserves errno. */
    bool (*is_readable)(const void* p);
    /* Returns 64 random bits, for the handle secret and the distance of samples. */
    uint64_t (*random)(void);
    /* Makes an empty file in memory that can be sealed. Returns a descriptor, which the caller closes, or -1 and
     * errno. */
    int (*memfd)(const char* name);
    /* Reserves the pages of [offset, offset + bytes) of the file fd, which grows to hold them. Returns 0 or an errno
     * value. */
    int (*reserve_file)(int fd, size_t offset, size_t bytes);
    /* Writes n bytes to standard error, in one call; a failure is left alone. No cancellation point. */
    void (*complain)(const char* bytes, size_t n);
} TsiOs;

extern TsiOs tsi_os;
/* Set before tsi_os is filled: a start with as few system calls as possible. Takes the machine to have one memory node
 * until numa_local is asked for, and no huge pages, and reads the system's clock for the quick one. */
extern bool tsi_os_lean;

/* Fills the plain fields of tsi_os from the system, registers for membarriers, and chooses the quick clock and places;
 * in a lean start (tsi_os_lean) without nodes, huge pages and quick clock. A second call does nothing.
 * [one thread at a time: the registry's once] */
void tsi_os_init(void);
/* Returns true if the process has no other thread than the caller, by libc's word; false if it may have one, or if libc
 * does not tell. [any thread, needs no lock] */
bool tsi_os_is_alone(void);
/* Registers the process anew for membarriers, and lets the quick clock be drawn again if a vanished thread was at it.
 * Sets tsi_os.has_membarrier: true if the system accepts, otherwise false. [fork child, or tsi_os_init] */
void tsi_os_after_fork(void);
/* Lets other threads run while the caller waits. *turn counts the caller's turns: 0 before the first, 1 more after
 * each, up to 64. Then it stays, and each call sleeps for 50 us, so that a thread of lower priority gets the processor
 * too. No cancellation point. [any thread, needs no lock] */
void tsi_os_yield(unsigned* turn);
/* Maps `bytes` writable zeros, rounded up to whole pages of their own, for data that is neither objects nor bookkeeping
 * in steps. tsi_os_init has run. Returns their address, which the caller owns until tsi_os_drop, or NULL with errno
 * ENOMEM if the system refuses. [any thread, needs no lock] */
void* tsi_os_map(size_t bytes);
/* Unmaps the range at p that tsi_os_map returned for the same `bytes`; does nothing if p is NULL.
 * [holder of the range] */
void tsi_os_drop(void* p, size_t bytes);
/* Reads the beginning of the file `path` into `to`, of n bytes, n at least 1: as much as n - 1 bytes and one read give,
 * ended by 0; an empty text if it cannot be read. Returns `to`. Preserves errno. No cancellation point.
 * [any thread, needs no lock] */
const char* tsi_os_read_text(const char* path, char* to, size_t n);
/* Returns the memory nodes of the machine, 1 to TSI_OS_NODES_MAX: those that tsi_os_init found, or in a lean start
 * those that a file tells now. [any thread, needs no lock] */
unsigned tsi_os_node_count(void);
/* Returns true if memory costs something once it may be written: the system charges it, or the process has a limit of
 * address space or data. May read the limit from the system. [any thread, needs no lock] */
bool tsi_os_counts_writable(void);
/* Returns the value of the environment variable `name`, which is the environment's own text; NULL if it is not set, and
 * in programs with more rights than their user (set-user-id). [any thread, needs no lock] */
const char* tsi_os_getenv(const char* name);

#endif
