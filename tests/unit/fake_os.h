/*
 * fake_os.h - the operating system as tests want it.
 *
 * Swaps the function table tsi_os for one that forwards to the real functions and can
 *
 *   count     reserve, commit, purge and membarrier calls
 *   fail      the k-th such call, or all from the k-th on, with ENOMEM
 *   pretend   larger pages, a kernel that charges what is writable, a kernel without membarrier
 *   record    wishes for huge pages and memory nodes, and pretend nodes
 *   interrupt the next membarrier, reserve, commit or purge, once, by a function
 *   record    purges, shown as runs "[0x3-0x5]" and as a string of pages "..xxx."
 *
 * Page sizes are multiples of the real one, so that real mprotect and madvise still work; every
 * range is checked against the pretended page, which the real kernel would not notice. The page size
 * must be set before the process makes its first allocator: a program tries several by running
 * itself again (see kit_rerun).
 */
#ifndef TESTS_UNIT_FAKE_OS_H
#define TESTS_UNIT_FAKE_OS_H

#include "os/os.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

typedef enum FakeCall { FAKE_RESERVE, FAKE_COMMIT, FAKE_PURGE, FAKE_BARRIER, FAKE_CALLS } FakeCall;

enum { FAKE_RUNS_MAX = 8192, FAKE_ALIGN = 64 << 10, FAKE_TEXT_MAX = 4096, FAKE_WISHES_MAX = 64 };

typedef struct FakeRun {
    uintptr_t from;
    size_t bytes;
    TsiPurgeHow how;
} FakeRun;

typedef struct FakeWish {
    uint8_t* from;
    size_t bytes;
    int node; /* -1: huge pages, -2: none of them */
} FakeWish;

typedef struct FakeOs {
    TsiOs real;
    pthread_mutex_t lock; /* all below */
    uint64_t calls[FAKE_CALLS];
    uint64_t fail_first[FAKE_CALLS], fail_last[FAKE_CALLS]; /* numbers of calls; 0 = none */
    uint64_t failed[FAKE_CALLS];
    uint64_t barriers;
    void (*at_barrier)(void*); /* called by the next one */
    void* at_barrier_arg;
    void (*at_call[FAKE_CALLS])(void*);
    void* at_call_arg[FAKE_CALLS];
    unsigned node; /* where everybody runs */
    FakeWish wishes[FAKE_WISHES_MAX];
    unsigned wish_count;
    uint64_t misaligned; /* ranges that are not whole pretended pages */
    unsigned run_count;
    FakeRun runs[FAKE_RUNS_MAX];
    char text[FAKE_TEXT_MAX];
} FakeOs;

static FakeOs fake_os = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Counts a call and says whether it has to fail. */
static bool fake_enter(FakeCall what, const void* p, size_t bytes) {
    pthread_mutex_lock(&fake_os.lock);
    uint64_t n = ++fake_os.calls[what];
    bool fail = n >= fake_os.fail_first[what] && n <= fake_os.fail_last[what];
    if (fail) fake_os.failed[what]++;
    if ((((uintptr_t)p | bytes) & (tsi_os.page_bytes - 1)) != 0 || bytes == 0) fake_os.misaligned++;
    void (*then)(void*) = fake_os.at_call[what];
    fake_os.at_call[what] = NULL;
    pthread_mutex_unlock(&fake_os.lock);
    if (then != NULL) then(fake_os.at_call_arg[what]);
    return fail;
}

static void* fake_reserve(size_t bytes) {
    if (fake_enter(FAKE_RESERVE, NULL, bytes)) return NULL;
    uint8_t* p = fake_os.real.reserve(bytes + FAKE_ALIGN);
    if (p == NULL) return NULL;
    size_t head = (FAKE_ALIGN - ((uintptr_t)p & (FAKE_ALIGN - 1))) & (FAKE_ALIGN - 1);
    if (head != 0) fake_os.real.unmap(p, head);
    fake_os.real.unmap(p + head + bytes, FAKE_ALIGN - head);
    return p + head;
}

static int fake_commit(void* p, size_t bytes) {
    return fake_enter(FAKE_COMMIT, p, bytes) ? ENOMEM : fake_os.real.commit(p, bytes);
}

static int fake_purge(void* p, size_t bytes, TsiPurgeHow how) {
    if (fake_enter(FAKE_PURGE, p, bytes)) return ENOMEM;
    pthread_mutex_lock(&fake_os.lock);
    if (fake_os.run_count < FAKE_RUNS_MAX) fake_os.runs[fake_os.run_count++] = (FakeRun){(uintptr_t)p, bytes, how};
    pthread_mutex_unlock(&fake_os.lock);
    return fake_os.real.purge(p, bytes, how);
}

static void fake_wish(void* p, size_t bytes, int node) {
    pthread_mutex_lock(&fake_os.lock);
    if ((((uintptr_t)p | bytes) & (tsi_os.page_bytes - 1)) != 0 || bytes == 0) fake_os.misaligned++;
    if (fake_os.wish_count < FAKE_WISHES_MAX) fake_os.wishes[fake_os.wish_count++] = (FakeWish){p, bytes, node};
    pthread_mutex_unlock(&fake_os.lock);
}
static void fake_prefer_huge(void* p, size_t bytes) { fake_wish(p, bytes, -1); }
static void fake_avoid_huge(void* p, size_t bytes) { fake_wish(p, bytes, -2); }
static void fake_prefer_node(void* p, size_t bytes, unsigned node) { fake_wish(p, bytes, (int)node); }
static unsigned fake_node(void) { return fake_os.node; }

static bool fake_membarrier(void) {
    bool fail = fake_enter(FAKE_BARRIER, NULL, tsi_os.page_bytes);
    pthread_mutex_lock(&fake_os.lock);
    fake_os.barriers++;
    void (*then)(void*) = fake_os.at_barrier;
    fake_os.at_barrier = NULL;
    pthread_mutex_unlock(&fake_os.lock);
    bool done = !fail && fake_os.real.membarrier();
    if (then != NULL) then(fake_os.at_barrier_arg);
    return done;
}

/* Between the two holds of the next sweep that meets another thread. */
static inline void fake_os_interrupt(void (*fn)(void*), void* arg) {
    pthread_mutex_lock(&fake_os.lock);
    fake_os.at_barrier = fn;
    fake_os.at_barrier_arg = arg;
    pthread_mutex_unlock(&fake_os.lock);
}

/* Before the next such call. */
static inline void fake_os_interrupt_call(FakeCall what, void (*fn)(void*), void* arg) {
    pthread_mutex_lock(&fake_os.lock);
    fake_os.at_call[what] = fn;
    fake_os.at_call_arg[what] = arg;
    pthread_mutex_unlock(&fake_os.lock);
}

/* Before the first allocator; the real page size stays if it is as large, and with 0. */
static inline void fake_os_install(size_t page_bytes, bool strict_commit, bool fenced) {
    if (fake_os.real.reserve == NULL) {
        tsi_os_init();
        fake_os.real = tsi_os;
    }
    if (page_bytes > tsi_os.page_bytes) tsi_os.page_bytes = page_bytes;
    tsi_os.has_huge = false; /* whatever the system says */
    tsi_os.strict_commit = strict_commit;
    if (fenced) tsi_os.has_membarrier = false;
    tsi_os.reserve = fake_reserve;
    tsi_os.commit = fake_commit;
    tsi_os.purge = fake_purge;
    tsi_os.membarrier = fake_membarrier;
    tsi_os.prefer_huge = fake_prefer_huge;
    tsi_os.avoid_huge = fake_avoid_huge;
    tsi_os.prefer_node = fake_prefer_node;
    tsi_os.node = fake_node;
}

/* Forgets counts, faults and purges. */
static inline void fake_os_clear(void) {
    pthread_mutex_lock(&fake_os.lock);
    memset(fake_os.calls, 0, sizeof fake_os.calls);
    memset(fake_os.fail_first, 0, sizeof fake_os.fail_first);
    memset(fake_os.fail_last, 0, sizeof fake_os.fail_last);
    memset(fake_os.failed, 0, sizeof fake_os.failed);
    fake_os.barriers = 0;
    fake_os.at_barrier = NULL;
    memset(fake_os.at_call, 0, sizeof fake_os.at_call);
    fake_os.wish_count = 0;
    fake_os.run_count = 0;
    pthread_mutex_unlock(&fake_os.lock);
}

/* Fails the k-th call from now (k from 1), or with `on` all from the k-th. */
static inline void fake_os_fail(FakeCall what, uint64_t k, bool on) {
    pthread_mutex_lock(&fake_os.lock);
    fake_os.fail_first[what] = fake_os.calls[what] + k;
    fake_os.fail_last[what] = on ? UINT64_MAX : fake_os.calls[what] + k;
    pthread_mutex_unlock(&fake_os.lock);
}

/* Ends the fault; true when it has struck. */
static inline bool fake_os_heal(void) {
    bool struck = false;
    pthread_mutex_lock(&fake_os.lock);
    for (unsigned i = 0; i < FAKE_CALLS; i++) {
        struck |= fake_os.failed[i] != 0;
        fake_os.fail_first[i] = fake_os.fail_last[i] = fake_os.failed[i] = 0;
    }
    pthread_mutex_unlock(&fake_os.lock);
    return struck;
}

/* Purges since the last clear within [base, base + bytes), in the order made: "[first page-last page]" each. */
static inline const char* fake_os_runs(const void* base, size_t bytes) {
    size_t page = tsi_os.page_bytes, at = 0;
    fake_os.text[0] = 0;
    for (unsigned i = 0; i < fake_os.run_count && at + 48 < sizeof fake_os.text; i++) {
        uintptr_t off = fake_os.runs[i].from - (uintptr_t)base;
        if (off >= bytes) continue;
        at += (size_t)snprintf(fake_os.text + at, sizeof fake_os.text - at, "[0x%zx-0x%zx]", (size_t)(off / page),
                               (size_t)((off + fake_os.runs[i].bytes) / page - 1));
    }
    return fake_os.text;
}

/* The same as a string: one character a page, 'x' purged. */
static inline const char* fake_os_pages(const void* base, unsigned pages) {
    size_t page = tsi_os.page_bytes;
    if (pages >= sizeof fake_os.text) pages = sizeof fake_os.text - 1;
    memset(fake_os.text, '.', pages);
    fake_os.text[pages] = 0;
    for (unsigned i = 0; i < fake_os.run_count; i++) {
        for (size_t b = 0; b < fake_os.runs[i].bytes; b += page) {
            uintptr_t off = fake_os.runs[i].from + b - (uintptr_t)base;
            if (off < pages * page) fake_os.text[off / page] = 'x';
        }
    }
    return fake_os.text;
}

#endif
