/*
 * os.h - the only door to the operating system.
 *
 * Everything the allocator asks of the kernel goes through one table of functions, so that tests
 * can fail the k-th call, fake the page size and record purges. The table is filled once, before
 * the first allocator exists, and is read-only afterwards (tests swap it while nothing runs).
 */
#ifndef TSI_OS_OS_H
#define TSI_OS_OS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TSI_OS_NODES_MAX = 64 };
/* UNCOMMIT: as reserved, without wishes. RENEW: the same, but writable. */
typedef enum TsiPurgeHow { TSI_PURGE_DONTNEED, TSI_PURGE_LAZY, TSI_PURGE_UNCOMMIT, TSI_PURGE_RENEW } TsiPurgeHow;

/* A line of the process's memory map. */
typedef struct TsiMapping {
    uintptr_t low, high;
    uint64_t offset; /* in the file */
    bool readable, executable;
    char path[256]; /* cut; empty when it is no file's */
} TsiMapping;

typedef struct TsiOs {
    size_t page_bytes;    /* power of two, >= 4096 */
    bool strict_commit;   /* the kernel charges what is writable (overcommit_memory = 2) */
    bool has_membarrier;  /* private expedited membarrier is registered */
    unsigned nodes;       /* memory nodes, 1 at least */
    bool has_huge;        /* a wish for huge pages of 2 MiB is heard */
    uint64_t space_limit; /* bytes of address space that the process may have (RLIMIT_AS); UINT64_MAX: no limit */
    bool sparse;          /* what is reserved is a place without a mapping and counts against no limit */
    /* Address space without access or charge, or NULL. */
    void* (*reserve)(size_t bytes);
    /* Makes whole pages readable and writable; 0 or an errno value. */
    int (*commit)(void* p, size_t bytes);
    /* Gives whole pages back; their content becomes zero. 0 or an errno value. */
    int (*purge)(void* p, size_t bytes, TsiPurgeHow how);
    void (*unmap)(void* p, size_t bytes);
    /* Moves whole pages that this process alone has to where it has none yet, from the first one on; both ranges may be
     * written. Returns how many bytes have moved, which read as zeros where they were. The others are as before: 0
     * where the system cannot, where a filter of system calls is on, where a page is shared with a fork child. */
    size_t (*move)(void* to, void* from, size_t bytes);
    /* Of a reserved range: fill it with huge pages where it can be; a wish. */
    void (*prefer_huge)(void* p, size_t bytes);
    /* The wish is taken back: what was given back of a huge page does not come again. */
    void (*avoid_huge)(void* p, size_t bytes);
    /* Of a reserved range: pages touched for the first time from here on come from that memory node, as long as it has
     * any; a wish. */
    void (*prefer_node)(void* p, size_t bytes, unsigned node);
    /* Memory node of the processor that runs this; it may run elsewhere right after. */
    unsigned (*node)(void);
    /* All other running threads of the process have passed a full barrier when this returns true. False: perhaps not.
     * The system may refuse a call after the registration at start: for want of memory, or by a filter installed
     * since. */
    bool (*membarrier)(void);
    /* CLOCK_MONOTONIC */
    uint64_t (*now_ns)(void);
    /* Within microseconds of it, where that is cheaper; for how long something took. A thread never sees it go back. */
    uint64_t (*quick_ns)(void);
    /* The same clock as of the last tick: some milliseconds behind, and cheaper. */
    uint64_t (*coarse_ns)(void);
    /* Processor time of the calling thread: a system call. */
    uint64_t (*thread_ns)(void);
    uint64_t (*rss_bytes)(void);
    /* Bytes that the process may still make writable under RLIMIT_DATA; UINT64_MAX without a limit. */
    uint64_t (*data_room)(void);
    /* Calls fn for each mapping of the process until it returns false. Allocates nothing. */
    void (*each_mapping)(bool (*fn)(const TsiMapping* m, void* ctx), void* ctx);
    /* Can the 8 bytes at an address be read now? */
    bool (*is_readable)(const void* p);
    /* 64 random bits, for the handle secret and the distance of samples. */
    uint64_t (*random)(void);
    /* A file in memory that can be sealed; a descriptor, or -1 and errno. */
    int (*memfd)(const char* name);
    /* Gives pages of a file to it; 0 or an errno value. */
    int (*reserve_file)(int fd, size_t offset, size_t bytes);
    /* Last words, to standard error in one call. Not a cancellation point. */
    void (*complain)(const char* bytes, size_t n);
} TsiOs;

extern TsiOs tsi_os;
/* Set before tsi_os is filled: a start that asks the system for as little as it can. It takes the machine to have one
 * memory node until numa_local is asked for, and no huge pages, and reads the system's clock for the quick one. */
extern bool tsi_os_lean;

/* Fills tsi_os. Idempotent; called under the registry's once. */
void tsi_os_init(void);
/* Returns true if the process has had no other thread, as far as libc knows; false where libc does not tell. */
bool tsi_os_is_alone(void);
/* Renews per-process kernel registrations in a fork child. */
void tsi_os_after_fork(void);
/* Lets other threads run while the caller waits. *turn counts its turns, from 0: from the 64th on it sleeps for 50 us,
 * so that a thread of lower priority gets the processor, too. Not a cancellation point. */
void tsi_os_yield(unsigned* turn);
/* Zeros in whole pages of their own; NULL with errno ENOMEM. For what is neither an object nor bookkeeping in steps. */
void* tsi_os_map(size_t bytes);
/* Gives back what tsi_os_map has given; NULL is nothing. */
void tsi_os_drop(void* p, size_t bytes);
/* The beginning of a file as text: what there is room for and one read tells; empty when there is none. Not a
 * cancellation point. */
const char* tsi_os_read_text(const char* path, char* to, size_t n);
/* Memory nodes of the machine, 1 at least. */
unsigned tsi_os_node_count(void);
/* Returns whether memory costs something as soon as it may be written: the system charges it, or the process has a
 * limit for it now. May ask the system. */
bool tsi_os_counts_writable(void);
/* Environment variable, NULL in set-user-id programs. */
const char* tsi_os_getenv(const char* name);

#endif
