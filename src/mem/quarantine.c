/* quarantine.c - see quarantine.h. */
#include "mem/quarantine.h"

#include "mem/handle.h"

/* Returns the payload bytes of a slab of a class or region. [any thread, needs no lock] */
static uint32_t bytes_of(const TsiSpace* s, uint32_t slab_id) { return tsi_slab_class(s, slab_id)->slab_bytes; }

/* Appends a slab, which is in no list, to the quarantine: sets its tag to WARM and adds its bytes to quarantine.bytes.
 * [pool lock held] */
static void put_locked(TsiSpace* s, uint32_t slab_id) {
    TSI_HOLDS(&s->lock);
    TsiQuarantine* quarantine = &s->quarantine;
    TsiSlab* slab = tsi_slab(s, slab_id);
    tsi_slab_turn(slab, TSI_SLAB_WARM);
    slab->next = 0;
    if (quarantine->last != 0) tsi_slab(s, quarantine->last - 1)->next = slab_id + 1;
    else quarantine->first = slab_id + 1;
    quarantine->last = slab_id + 1;
    tsi_store_relaxed(&quarantine->bytes, tsi_load_relaxed(&quarantine->bytes) + bytes_of(s, slab_id));
}

/* Takes the first slabs off the quarantine, as many as leave at most `most` bytes; their tags stay WARM. Returns their
 * chain, slab id + 1 by `next`, with the chain `rest` behind it; `rest` alone if none has to go. [pool lock held] */
static uint32_t take_locked(TsiSpace* s, uint64_t most, uint32_t rest) {
    TSI_HOLDS(&s->lock);
    TsiQuarantine* quarantine = &s->quarantine;
    uint32_t first = quarantine->first, last = 0;
    uint64_t bytes = tsi_load_relaxed(&quarantine->bytes);
    for (; bytes > most; quarantine->first = tsi_slab(s, last - 1)->next) {
        last = quarantine->first;
        bytes -= bytes_of(s, last - 1);
    }

    tsi_store_relaxed(&quarantine->bytes, bytes);
    if (quarantine->first == 0) quarantine->last = 0;
    if (last == 0) return rest;
    tsi_slab(s, last - 1)->next = rest;
    return first;
}

uint32_t tsi_quarantine_pass(TsiSpace* s, uint32_t chain, bool all) {
    uint32_t spent = 0; /* slabs without generations left are never used again */
    tsi_lock_take(&s->lock);
    for (uint32_t at = chain, next; at != 0; at = next) {
        TsiSlab* slab = tsi_slab(s, at - 1);
        next = slab->next;
        if (tsi_load_relaxed(&slab->gen_base) < TSI_GEN_LIMIT) {
            put_locked(s, at - 1);
        } else {
            slab->next = spent;
            spent = at;
        }
    }

    uint32_t out = take_locked(s, all ? 0 : s->quarantine.most, spent);
    tsi_lock_give(&s->lock);
    return out;
}
