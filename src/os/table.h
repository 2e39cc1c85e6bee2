/*
 * table.h - records that never move and are never unmapped while the allocator lives.
 *
 * A table reserves room for all its records and commits them in steps. A record that is given
 * back keeps its memory and its last content, so a thread that still holds its index reads stale
 * words, never a fault; whoever uses records that way keeps a never-reused number in them. Free
 * records are reused oldest first. The first word of a free record is the free list's.
 */
#ifndef TSI_OS_TABLE_H
#define TSI_OS_TABLE_H

#include "os/lock.h"
#include "os/os.h"

typedef struct TsiTable {
    uint8_t* base;
    size_t stride;
    size_t bytes_reserved, bytes_committed;
    uint32_t capacity;
    _Atomic uint32_t used; /* records ever handed out; all below it are committed */
    TsiLock lock; /* below */
    uint32_t head, tail; /* free list, index + 1 */
    uint32_t free_count;
} TsiTable;

/* Reserves room for `capacity` records; false when the system refuses. */
bool tsi_table_init(TsiTable* t, size_t stride, uint32_t capacity);
void tsi_table_destroy(TsiTable* t);
/* A zeroed or formerly used record; false when fewer than `keep` + 1 are left. */
bool tsi_table_take(TsiTable* t, uint32_t* index, uint32_t keep);
void tsi_table_give(TsiTable* t, uint32_t index);

/* Records that may be looked at. */
TSI_INLINE uint32_t tsi_table_used(const TsiTable* t) {
    /* acquire: pairs with the release in tsi_table_take: the record is committed */
    return tsi_load_acquire(&t->used);
}
TSI_INLINE void* tsi_table_at(const TsiTable* t, uint32_t index) { return t->base + (size_t)index * t->stride; }

#endif
