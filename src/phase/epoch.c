/*
 * epoch.c - records, ids and the ring of epoch.h.
 *
 * A record whose page was given back reads as 0: no era is 0, and eras belong to the allocator, so its next content
 * matches no old reference. Ids have only 13 bits of the record's count of openings, so these stay aside. A number that
 * started anew, or above all that were used, could meet an id that is kept at once; this way 8192 openings of the
 * record lie between, and records are taken in turn (U4 in os/table.h), at least 16 to a thread.
 */
#include "phase/epoch.h"

#include "base/check.h"

#include <string.h>

struct TsiStripe tsi_stripes[TSI_STRIPES];
const char tsi_no_label[TSI_LABEL_BYTES];

/* Keeps the record's count of openings, `reuse`, in the table's value aside before its page leaves; 0 is not written.
 * The bit above those of ids means that all of them were used. Returns true: the page may go. [table lock held] */
static bool put_reuse_aside(TsiTable* table, uint32_t index) {
    uint32_t reuse = tsi_load_relaxed(&((TsiInc*)tsi_table_at(table, index))->reuse);
    uint32_t kept = reuse <= TSI_REUSE_MASK ? reuse : (reuse & TSI_REUSE_MASK) | (TSI_REUSE_MASK + 1);
    if (kept != 0) tsi_store_relaxed(tsi_table_aside(table, index), (uint16_t)kept);
    return true;
}

/* Sets the record's `reuse`, which reads as 0 as its page had gone, to the value aside that put_reuse_aside has left;
 * the record is just being taken. [table lock held] */
static void take_reuse_back(TsiTable* table, uint32_t index) {
    tsi_store_relaxed(&((TsiInc*)tsi_table_at(table, index))->reuse, tsi_load_relaxed(tsi_table_aside(table, index)));
}

size_t tsi_phases_room(uint32_t inc_capacity, uint32_t label_capacity) {
    return tsi_table_room(TSI_INC_STRIDE, inc_capacity, true) + tsi_table_room(sizeof(TsiEnd), inc_capacity, false) +
           tsi_table_room(sizeof(TsiLabel), label_capacity, false);
}

bool tsi_phases_init(TsiPhases* phases, TsiGround* ground, uint32_t ring_size, uint32_t inc_capacity,
                     uint32_t label_capacity) {
    _Static_assert(sizeof *phases % sizeof(uint64_t) == 0, "whole words");
    tsi_clear(phases, sizeof *phases);
    tsi_lock_init(&phases->ring_lock, TSI_LOCK_RING);
    tsi_lock_init(&phases->eras.lock, TSI_LOCK_ERAS);
    for (unsigned n = 0; n < TSI_STRIPES; n++) tsi_lock_init(&tsi_stripes[n].lock, TSI_LOCK_STRIPE);

    tsi_table_init_in(&phases->incs, ground, TSI_INC_STRIDE, inc_capacity, true);
    phases->incs.leave = put_reuse_aside;
    phases->incs.back = take_reuse_back;
    tsi_table_init_in(&phases->ends, ground, sizeof(TsiEnd), inc_capacity, false);
    if (!tsi_labels_init(&phases->labels, ground, label_capacity)) return false;

    phases->ring_size = ring_size;
    tsi_store_relaxed(&phases->era_next, 1);
    uint32_t index = 0;
    if (!tsi_table_take(&phases->incs, &index, 0)) return false; /* index 0 stays unused: a reference is never 0 */
    for (uint32_t n = 0; n < ring_size; n++) {
        if (!tsi_table_take(&phases->incs, &index, 0)) return false;
        uint64_t era = tsi_add_relaxed(&phases->era_next, 1);
        tsi_inc_open(phases, index, era, n, TSI_LABEL_NONE, tsi_no_label, 0);
        tsi_store_relaxed(&phases->ring[n], tsi_ref(era, index));
    }
    if (!tsi_table_take(&phases->incs, &index, 0)) return false;
    phases->spare = index + 1;
    return true;
}

void tsi_phases_destroy(TsiPhases* phases) {
    tsi_table_destroy(&phases->incs);
    tsi_table_destroy(&phases->ends);
    tsi_labels_destroy(&phases->labels);
    tsi_os_drop(phases->eras.slots, phases->eras.size * sizeof *phases->eras.slots);
}

void tsi_inc_reset(TsiInc* inc) {
    inc->heaps = inc->orphans = inc->ends = inc->thin_next = 0;
    inc->drained = inc->escapes_posted = false;
    tsi_store_relaxed(&inc->told, false);

    tsi_store_relaxed(&inc->heap_count, 0);
    tsi_store_relaxed(&inc->detached, 0);
    tsi_store_relaxed(&inc->roomy, 0);
    tsi_store_relaxed(&inc->slab_count, 0);

    inc->allocated = inc->released = (TsiTotals){0, 0};
    inc->holding = (TsiHolding){0, 0, 0};
    inc->rss_before = inc->rss_after = 0;

    tsi_store_relaxed(&inc->open_since_ns, 0);
    tsi_store_relaxed(&inc->user_refs, 0);
    tsi_store_relaxed(&inc->scopes, 0);
    tsi_inc_disown(inc);
    tsi_store_relaxed(&inc->peak, 0);
    tsi_store_relaxed(&inc->purged, 0);
    tsi_store_relaxed(&inc->budget.soft, 0);
    tsi_store_relaxed(&inc->budget.hard, 0);

    inc->closed_slabs = inc->pinned_slabs = inc->slow = 0;
    memset(&inc->posted, 0, sizeof inc->posted);
}

TsiRef tsi_phases_resolve(const TsiPhases* phases, EpochId id) {
    if (!(id & TSI_DOMAIN_ID_BIT)) return id < phases->ring_size ? tsi_load_acquire(&phases->ring[id]) : 0;
    uint32_t index = id & ((1u << TSI_INC_BITS) - 1);
    if (index == 0 || index >= tsi_table_used(&phases->incs)) return 0;
    TsiInc* inc = tsi_inc(phases, index);
    uint64_t era = tsi_inc_era(inc);
    /* The record may be reopened between the two reads: the era, read first, then names an ended incarnation and is
     * refused where it is used. */
    return era != 0 && tsi_load_relaxed(&inc->id) == id ? tsi_ref(era, index) : 0;
}

bool tsi_phases_was_domain(const TsiPhases* phases, EpochId id) {
    uint32_t index = id & TSI_INC_MAX, reuse = id >> TSI_INC_BITS & TSI_REUSE_MASK;
    if (!(id & TSI_DOMAIN_ID_BIT) || index == 0 || index >= tsi_table_used(&phases->incs)) return false;
    /* The record, or the count aside if its page has gone: they only tell one refusal from another. */
    uint32_t most = tsi_load_relaxed(&tsi_inc(phases, index)->reuse);
    uint32_t aside = tsi_load_relaxed(tsi_table_aside(&phases->incs, index));
    return reuse != 0 && (reuse <= most || reuse <= aside);
}

bool tsi_phases_step_locked(TsiPhases* phases, TsiRef* was_current, TsiRef* displaced) {
    TSI_HOLDS(&phases->ring_lock);
    TSI_ASSERT(tsi_lock_is_held(&phases->ring_lock));
    uint32_t now = tsi_load_relaxed(&phases->current), next = now + 1 == phases->ring_size ? 0 : now + 1;
    uint32_t index = 0;

    if (phases->spare == 0 && tsi_table_take(&phases->incs, &index, 0)) phases->spare = index + 1;
    if (phases->spare == 0) {
        tsi_add_relaxed(&phases->advances_refused, 1);
        return false;
    }

    index = phases->spare - 1;
    *was_current = tsi_load_relaxed(&phases->ring[now]);
    *displaced = tsi_load_relaxed(&phases->ring[next]);
    uint64_t era = tsi_add_relaxed(&phases->era_next, 1);
    tsi_inc_open(phases, index, era, next, TSI_LABEL_NONE, tsi_no_label, 0);

    /* release, ring before current: pairs with the acquires in tsi_phases_current and _resolve */
    tsi_store_release(&phases->ring[next], tsi_ref(era, index));
    tsi_store_release(&phases->current, next);
    phases->spare = tsi_table_take(&phases->incs, &index, 0) ? index + 1 : 0;
    return true;
}
