/*
 * temporal_slab/sqlite3.h - all memory of SQLite in one domain. Header only; SQLite 3.
 *
 *     epoch_domain_t* domain = epoch_domain_create_labeled(allocator, "sqlite");
 *     tslab_sqlite3_config(domain);       // before the first use of SQLite, or after sqlite3_shutdown()
 *
 * The hooks are global to the process. Everything goes to that domain, whatever scope a thread is in: connections, page
 * caches, statements, sqlite3_malloc. The phases of threads would be wrong. Page caches, schemas and the data that
 * connections to one file share grow within any statement, and would end with the phase that happened to be open. So
 * this phase is as long as the use of SQLite. The figures of its label are those of SQLite, a budget
 * (slab_epoch_set_budget) limits its memory, and the receipt shows leaks.
 *
 * No thread has to enter the domain. Before one does, set auto_close to false; otherwise the last exit ends the domain.
 *
 * To end SQLite: close the connections, call sqlite3_shutdown(), then end the domain (epoch_domain_destroy). Objects
 * never given to sqlite3_free end there. A program that then goes on with SQLite must first call tslab_sqlite3_config
 * with another domain.
 *
 * You may not
 *   - end, drain or reset the domain, or free its allocator, before sqlite3_shutdown() has returned;
 *   - free text of sqlite3_mprintf, sqlite3_expanded_sql and similar calls with free(): use sqlite3_free;
 *   - use text or blobs of SQLite after the end: copy them out (slab_strdup).
 *
 * Errors: if memory runs out or a hard budget of the domain would be exceeded, SQLite returns SQLITE_NOMEM; the
 * connection stays usable. sqlite3_memory_used counts usable bytes. SQLITE_CONFIG_MEMSTATUS 0 switches this count off,
 * and saves a size look-up and a lock in each call.
 * Thread safety: like sqlite3_config, call tslab_sqlite3_config while no other thread uses SQLite. The source file that
 * makes the call remembers the domain; the last call in the process applies.
 * Complexity: a hook costs an epoch_domain_malloc, epoch_domain_realloc, slab_free or slab_usable_size.
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

/* SQLite asks for at least 1 byte, and resizes only blocks of its own. */
static inline void* tslab_sqlite3_malloc(int size) {
    return epoch_domain_malloc(*tslab_sqlite3_domain_(), (size_t)size);
}

static inline void tslab_sqlite3_free(void* p) { slab_free((*tslab_sqlite3_domain_())->alloc, p); }

static inline void* tslab_sqlite3_realloc(void* p, int size) {
    return epoch_domain_realloc(*tslab_sqlite3_domain_(), p, (size_t)size);
}

static inline int tslab_sqlite3_size(void* p) { return (int)slab_usable_size((*tslab_sqlite3_domain_())->alloc, p); }

/* Returns the minimum number of usable bytes of an object of this size. Many objects have exactly that number, so
 * SQLite often knows without a call that a block is large enough already. */
static inline int tslab_sqlite3_roundup(int size) { return (size + 15) & ~15; }

static inline int tslab_sqlite3_begin(void* unused) {
    (void)unused;
    return SQLITE_OK;
}

static inline void tslab_sqlite3_end(void* unused) { (void)unused; }

/* Gives SQLite the domain, which stays the caller's; end the domain after sqlite3_shutdown(). Returns SQLITE_OK. If d
 * is NULL or SQLite is in use, returns SQLITE_MISUSE and changes nothing. O(1). */
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
