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

/* Puts the count of openings aside as the record's page leaves. The bit above those of ids says that all of them were
 * used. */
static bool put_reuse_aside(TsiTable* t, uint32_t index) {
    uint32_t reuse = tsi_load_relaxed(&((TsiInc*)tsi_table_at(t, index))->reuse);
    uint32_t kept = reuse <= TSI_REUSE_MASK ? reuse : (reuse & TSI_REUSE_MASK) | (TSI_REUSE_MASK + 1);
    if (kept != 0) tsi_store_relaxed(tsi_table_aside(t, index), (uint16_t)kept);
    return true;
}

static void take_reuse_back(TsiTable* t, uint32_t index) {
    tsi_store_relaxed(&((TsiInc*)tsi_table_at(t, index))->reuse, tsi_load_relaxed(tsi_table_aside(t, index)));
}

size_t tsi_phases_room(uint32_t inc_capacity, uint32_t label_capacity) {
    return tsi_table_room(TSI_INC_STRIDE, inc_capacity, true) + tsi_table_room(sizeof(TsiEnd), inc_capacity, false) +
           tsi_table_room(sizeof(TsiLabel), label_capacity, false);
}

bool tsi_phases_init(TsiPhases* p, TsiGround* g, uint32_t ring_size, uint32_t inc_capacity, uint32_t label_capacity) {
    _Static_assert(sizeof *p % sizeof(uint64_t) == 0, "whole words");
    tsi_clear(p, sizeof *p);
    tsi_lock_init(&p->ring_lock, TSI_LOCK_RING);
    tsi_lock_init(&p->eras.lock, TSI_LOCK_ERAS);
    for (unsigned n = 0; n < TSI_STRIPES; n++) tsi_lock_init(&tsi_stripes[n].lock, TSI_LOCK_STRIPE);

    tsi_table_init_in(&p->incs, g, TSI_INC_STRIDE, inc_capacity, true);
    p->incs.leave = put_reuse_aside;
    p->incs.back = take_reuse_back;
    tsi_table_init_in(&p->ends, g, sizeof(TsiEnd), inc_capacity, false);
    if (!tsi_labels_init(&p->labels, g, label_capacity)) return false;

    p->ring_size = ring_size;
    tsi_store_relaxed(&p->era_next, 1);
    uint32_t index = 0;
    if (!tsi_table_take(&p->incs, &index, 0)) return false; /* index 0 stays unused: a reference is never 0 */
    for (uint32_t n = 0; n < ring_size; n++) {
        if (!tsi_table_take(&p->incs, &index, 0)) return false;
        uint64_t era = tsi_add_relaxed(&p->era_next, 1);
        tsi_inc_open(p, index, era, n, TSI_LABEL_NONE, tsi_no_label, 0);
        tsi_store_relaxed(&p->ring[n], tsi_ref(era, index));
    }
    if (!tsi_table_take(&p->incs, &index, 0)) return false;
    p->spare = index + 1;
    return true;
}

void tsi_phases_destroy(TsiPhases* p) {
    tsi_table_destroy(&p->incs);
    tsi_table_destroy(&p->ends);
    tsi_labels_destroy(&p->labels);
    tsi_os_drop(p->eras.slots, p->eras.size * sizeof *p->eras.slots);
}

void tsi_inc_reset(TsiInc* i) {
    i->heaps = i->orphans = i->ends = i->thin_next = 0;
    i->drained = i->escapes_posted = false;
    tsi_store_relaxed(&i->told, false);
    tsi_store_relaxed(&i->heap_count, 0);
    tsi_store_relaxed(&i->detached, 0);
    tsi_store_relaxed(&i->roomy, 0);
    tsi_store_relaxed(&i->slab_count, 0);
    i->allocated = i->released = (TsiTotals){0, 0};
    i->holding = (TsiHolding){0, 0, 0};
    i->rss_before = i->rss_after = 0;
    tsi_store_relaxed(&i->open_since_ns, 0);
    tsi_store_relaxed(&i->user_refs, 0);
    tsi_store_relaxed(&i->scopes, 0);
    tsi_inc_disown(i);
    tsi_store_relaxed(&i->peak, 0);
    tsi_store_relaxed(&i->purged, 0);
    tsi_store_relaxed(&i->budget.soft, 0);
    tsi_store_relaxed(&i->budget.hard, 0);
    i->closed_slabs = i->pinned_slabs = i->slow = 0;
    memset(&i->posted, 0, sizeof i->posted);
}

TsiRef tsi_phases_resolve(const TsiPhases* p, EpochId id) {
    if (!(id & TSI_DOMAIN_ID_BIT)) return id < p->ring_size ? tsi_load_acquire(&p->ring[id]) : 0;
    uint32_t index = id & ((1u << TSI_INC_BITS) - 1);
    if (index == 0 || index >= tsi_table_used(&p->incs)) return 0;
    TsiInc* i = tsi_inc(p, index);
    uint64_t era = tsi_inc_era(i);
    /* The record may be reopened between the two reads: the era, read first, then names an ended incarnation and is
     * refused where it is used. */
    return era != 0 && tsi_load_relaxed(&i->id) == id ? tsi_ref(era, index) : 0;
}

bool tsi_phases_was_domain(const TsiPhases* p, EpochId id) {
    uint32_t index = id & TSI_INC_MAX, reuse = id >> TSI_INC_BITS & TSI_REUSE_MASK;
    if (!(id & TSI_DOMAIN_ID_BIT) || index == 0 || index >= tsi_table_used(&p->incs)) return false;
    /* The record, or the count aside if its page has gone: they only tell one refusal from another. */
    uint32_t most = tsi_load_relaxed(&tsi_inc(p, index)->reuse);
    uint32_t aside = tsi_load_relaxed(tsi_table_aside(&p->incs, index));
    return reuse != 0 && (reuse <= most || reuse <= aside);
}

bool tsi_phases_step_locked(TsiPhases* p, TsiRef* was_current, TsiRef* displaced) {
    TSI_HOLDS(&p->ring_lock);
    TSI_ASSERT(tsi_lock_is_held(&p->ring_lock));
    uint32_t now = tsi_load_relaxed(&p->current), next = now + 1 == p->ring_size ? 0 : now + 1;
    uint32_t index = 0;

    if (p->spare == 0 && tsi_table_take(&p->incs, &index, 0)) p->spare = index + 1;
    if (p->spare == 0) {
        tsi_add_relaxed(&p->advances_refused, 1);
        return false;
    }

    index = p->spare - 1;
    *was_current = tsi_load_relaxed(&p->ring[now]);
    *displaced = tsi_load_relaxed(&p->ring[next]);
    uint64_t era = tsi_add_relaxed(&p->era_next, 1);
    tsi_inc_open(p, index, era, next, TSI_LABEL_NONE, tsi_no_label, 0);

    /* release, ring before current: pairs with the acquires in tsi_phases_current and _resolve */
    tsi_store_release(&p->ring[next], tsi_ref(era, index));
    tsi_store_release(&p->current, next);
    p->spare = tsi_table_take(&p->incs, &index, 0) ? index + 1 : 0;
    return true;
}
