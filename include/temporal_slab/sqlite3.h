/*
 * temporal_slab/sqlite3.h - allocates all memory of SQLite in one domain. Header-only, for SQLite 3.
 *
 *     epoch_domain_t* domain = epoch_domain_create_labeled(allocator, "sqlite");
 *     tslab_sqlite3_config(domain);       // before the first use of SQLite, or after sqlite3_shutdown()
 *
 * SQLite's allocation hooks are global to the process. All connections, page caches, statements and blocks from
 * sqlite3_malloc are allocated in `domain`, even while a thread is inside another domain.
 *
 * SQLite must not allocate in the phases of the threads that call it. Any statement can enlarge page caches, schemas
 * and the data that connections to one file share. If such data were allocated in a thread's phase, it would end with
 * that phase. The domain must therefore exist as long as the program uses SQLite. The statistics of the domain's label
 * show how much memory SQLite uses. A budget (slab_epoch_set_budget) limits that memory. The receipt of
 * epoch_domain_destroy_ex shows how many objects SQLite has leaked.
 *
 * No thread needs to enter the domain. Before a thread enters the domain, set auto_close to false; otherwise, the last
 * exit releases the memory of SQLite.
 *
 * To stop using the domain, close all connections and call sqlite3_shutdown(). Then end the domain with
 * epoch_domain_destroy, which also frees objects that were never passed to sqlite3_free. To use SQLite again, first
 * call tslab_sqlite3_config with another domain.
 *
 * Rules:
 *
 *   - Before sqlite3_shutdown() has returned, do not end, drain or reset the domain, and do not free its allocator.
 *
 *   - Use sqlite3_free, never free(), for the text that sqlite3_mprintf, sqlite3_expanded_sql and similar functions
 *     return.
 *
 *   - Do not use text or blobs of SQLite after the domain has ended. Copy such data before the domain ends, for example
 *     with slab_strdup.
 *
 * Errors: if memory runs out or an allocation would exceed a hard budget of the domain, SQLite returns SQLITE_NOMEM.
 * The connection can still be used.
 *
 * Statistics: sqlite3_memory_used counts usable bytes. To save a size lookup and a lock in each allocation and free,
 * disable this count with sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0).
 *
 * Thread safety: call tslab_sqlite3_config while no other thread uses SQLite, as sqlite3_config itself requires. The
 * most recent call, from any source file, takes effect for the whole process.
 *
 * Complexity: each hook call costs one epoch_domain_malloc, epoch_domain_realloc, slab_free or slab_usable_size.
 */
#ifndef TEMPORAL_SLAB_SQLITE3_H
#define TEMPORAL_SLAB_SQLITE3_H

#include <epoch_domain.h>
#include <sqlite3.h>

#ifdef __cplusplus
extern "C" {
#endif

static inline epoch_domain_t** tslab_sqlite3_domain_(void) {
    static epoch_domain_t* domain;
    return &domain;
}

/* Allocates in the domain. SQLite always requests at least 1 byte, and resizes only blocks that it has allocated. */
static inline void* tslab_sqlite3_malloc(int size) {
    return epoch_domain_malloc(*tslab_sqlite3_domain_(), (size_t)size);
}

static inline void tslab_sqlite3_free(void* p) { slab_free((*tslab_sqlite3_domain_())->alloc, p); }

static inline void* tslab_sqlite3_realloc(void* p, int size) {
    return epoch_domain_realloc(*tslab_sqlite3_domain_(), p, (size_t)size);
}

static inline int tslab_sqlite3_size(void* p) { return (int)slab_usable_size((*tslab_sqlite3_domain_())->alloc, p); }

/* Returns `size` rounded up to a multiple of 16. An object of `size` bytes has at least this number of usable bytes,
 * and often exactly this number. SQLite can therefore often tell, without another call, that a block is already large
 * enough. */
static inline int tslab_sqlite3_roundup(int size) { return (size + 15) & ~15; }

static inline int tslab_sqlite3_begin(void* unused) {
    (void)unused;
    return SQLITE_OK;
}

static inline void tslab_sqlite3_end(void* unused) { (void)unused; }

/* Makes SQLite allocate in the domain. The caller owns the domain and must end it only after sqlite3_shutdown().
 * Returns SQLITE_OK on success. If d is NULL or SQLite is in use, returns SQLITE_MISUSE and changes nothing. O(1). */
static inline int tslab_sqlite3_config(epoch_domain_t* d) {
    sqlite3_mem_methods methods;
    if (d == NULL) return SQLITE_MISUSE;
    methods.xMalloc = tslab_sqlite3_malloc;
    methods.xFree = tslab_sqlite3_free;
    methods.xRealloc = tslab_sqlite3_realloc;
    methods.xSize = tslab_sqlite3_size;
    methods.xRoundup = tslab_sqlite3_roundup;
    methods.xInit = tslab_sqlite3_begin;
    methods.xShutdown = tslab_sqlite3_end;
    methods.pAppData = NULL;
    int status = sqlite3_config(SQLITE_CONFIG_MALLOC, &methods);
    if (status == SQLITE_OK) *tslab_sqlite3_domain_() = d;
    return status;
}

#ifdef __cplusplus
}
#endif
#endif
