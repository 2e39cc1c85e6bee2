/* orphan.c - see orphan.h. */
#include "heap/orphan.h"

#include "heap/late.h"
#include "mem/parts.h"
#include "mem/purge.h"

void tsi_orphan_unlink_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, TsiTotals issued) {
    TSI_HOLDS(tsi_inc_lock(i));
    i->orphaned.objects -= issued.objects;
    i->orphaned.bytes -= issued.bytes;
    TsiSlab* b = tsi_slab(&a->space, slab_id);
    if (b->prev != 0) tsi_slab(&a->space, b->prev - 1)->next = b->next;
    else i->orphans = b->next;
    if (b->next != 0) tsi_slab(&a->space, b->next - 1)->prev = b->prev;
    if (i->thin_next == slab_id + 1) i->thin_next = b->next;
    tsi_late_leave_locked(a, i, slab_id);
    tsi_sub_relaxed(&i->slab_count, 1);
}

void tsi_orphan_link_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, const TsiSlabSum* sum) {
    TSI_HOLDS(tsi_inc_lock(i));
    i->orphaned.objects += sum->issued.objects;
    i->orphaned.bytes += sum->issued.bytes;
    TsiSlab* b = tsi_slab(&a->space, slab_id);
    b->prev = 0;
    b->next = i->orphans;
    if (b->next != 0) tsi_slab(&a->space, b->next - 1)->prev = slab_id + 1;
    i->orphans = slab_id + 1;
    tsi_late_join_locked(a, i, slab_id, sum->live);
    tsi_add_relaxed(&i->slab_count, 1);
}

void tsi_skipped_add_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, int n) {
    TSI_HOLDS(tsi_inc_lock(i));
    uint64_t bytes = tsi_slab_bytes(&a->space, tsi_class_of_slab(&a->space, slab_id), slab_id);
    tsi_add_relaxed(&i->slab_count, (uint32_t)n);
    i->skipped += (uint32_t)n;
    i->skipped_bytes += (uint64_t)n * bytes;
}

void tsi_slab_retire(TsiArena* a, uint32_t slab_id) {
    TsiSpace* s = &a->space;
    const TsiClass* c = tsi_slab_class(s, slab_id);
    _Atomic uint64_t* tag = &tsi_slab(s, slab_id)->tag;
    if (tsi_slab_shares(s, slab_id)) {
        tsi_parts_retire(s, slab_id);
    } else {
        tsi_space_purge_pages(s, tsi_slab_payload(s, c, slab_id), c->slab_bytes);
        tsi_store_relaxed(tag, tsi_tag(tsi_tag_seq(tsi_load_relaxed(tag)), 0, TSI_SLAB_RETIRED));
        tsi_sub_relaxed(&s->committed_bytes, c->slab_bytes);
    }
    tsi_add_relaxed(&a->retired_slabs, 1);
}
