/* table.c - see table.h. */
#include "os/table.h"

#include <string.h>

bool tsi_table_init(TsiTable* t, size_t stride, uint32_t capacity) {
    memset(t, 0, sizeof *t);
    t->stride = stride;
    t->capacity = capacity;
    t->bytes_reserved = tsi_align_up((uint64_t)stride * capacity, tsi_os.page_bytes);
    t->base = tsi_os.reserve(t->bytes_reserved);
    return t->base != NULL;
}

void tsi_table_destroy(TsiTable* t) {
    if (t->base != NULL) tsi_os.unmap(t->base, t->bytes_reserved);
    t->base = NULL;
}

/* Commits a little more each time, so that a small allocator stays small. */
static bool table_grow(TsiTable* t) {
    size_t need = ((size_t)tsi_load_relaxed(&t->used) + 1) * t->stride;
    if (need <= t->bytes_committed) return true;
    size_t step = t->bytes_committed < TSI_KIB(64) ? TSI_KIB(64) : t->bytes_committed;
    if (step > TSI_MIB(2)) step = TSI_MIB(2);
    size_t to = tsi_align_up(t->bytes_committed + step, tsi_os.page_bytes);
    if (to < need) to = tsi_align_up(need, tsi_os.page_bytes);
    if (to > t->bytes_reserved) to = t->bytes_reserved;
    if (tsi_os.commit(t->base + t->bytes_committed, to - t->bytes_committed) != 0) return false;
    t->bytes_committed = to;
    return true;
}

bool tsi_table_take(TsiTable* t, uint32_t* index, uint32_t keep) {
    bool ok = true;
    tsi_lock_take(&t->lock);
    uint32_t used = tsi_load_relaxed(&t->used);
    if (t->capacity - used + t->free_count <= keep) {
        ok = false;
    } else if (t->head != 0 && (t->free_count > 64 || used == t->capacity || !table_grow(t))) {
        *index = t->head - 1;
        t->head = *(uint32_t*)tsi_table_at(t, *index);
        if (t->head == 0) t->tail = 0;
        t->free_count--;
    } else if (used < t->capacity && table_grow(t)) {
        *index = used;
        tsi_store_release(&t->used, used + 1); /* pairs with tsi_table_used */
    } else {
        ok = false;
    }
    tsi_lock_give(&t->lock);
    return ok;
}

void tsi_table_give(TsiTable* t, uint32_t index) {
    tsi_lock_take(&t->lock);
    *(uint32_t*)tsi_table_at(t, index) = 0;
    if (t->tail != 0) *(uint32_t*)tsi_table_at(t, t->tail - 1) = index + 1;
    else t->head = index + 1;
    t->tail = index + 1;
    t->free_count++;
    tsi_lock_give(&t->lock);
}
