/* lanes.c - see lanes.h. */
#include "heap/lanes.h"

#include "heap/bracket.h"
#include "heap/registry.h"
#include "heap/token.h"

#include <string.h>

void tsi_lanes_give(TsiArena* a, TsiHeap* h) {
    if (h->lanes != NULL) tsi_table_give(&a->lanes, h->lanes->index);
    h->lanes = NULL;
}

bool tsi_lanes_list(TsiArena* a, TsiLanes* lanes, unsigned cls, TsiLine* l) {
    uint8_t flags = tsi_load_relaxed(&l->flags);
    if ((flags & (TSI_LINE_LISTED | TSI_LINE_RETIRED)) != 0) return false;
    tsi_store_relaxed(&l->flags, flags | TSI_LINE_LISTED);
    l->link = lanes->head[cls];
    lanes->head[cls] = tsi_line_id(&a->space, l) + 1;
    return true;
}

bool tsi_lanes_put_aside(TsiArena* a, TsiLanes* lanes, unsigned cls, uint32_t line_id) {
    TsiSpace* s = &a->space;
    uint32_t seq = tsi_remote_seq(0, tsi_load_relaxed(&tsi_remote(s, line_id)[0]));
    (void)tsi_line_arm(s, line_id, seq);
    if (!tsi_line_disarm(s, line_id, seq, s->classes->c[cls].threshold)) return true; /* T4 */
    (void)tsi_lanes_list(a, lanes, cls, tsi_line(s, line_id));
    return false;
}

bool tsi_shared_wait(TsiArena* a, const TsiHeap* h, const TsiBinding* b, bool proven) {
    bool waited = true;
    for (uint32_t n = 0; n < tsi_table_used(&a->bindings); n++) {
        TsiBinding* other = tsi_table_at(&a->bindings, n);
        /* in_use seq_cst: pairs with binding_make */
        if (!proven && other != b && tsi_load_seq(&other->in_use) && !tsi_binding_is_fenced(other)) waited = false;
        /* seq_cst: pairs with the releases in enter and leave, and with their exchanges in the fenced form */
        for (unsigned turn = 0; tsi_load_seq(&other->busy) == tsi_busy_all(h);) tsi_os_yield(&turn);
    }
    return waited;
}

void tsi_shared_rebuild(TsiArena* a, TsiHeap* h) {
    TsiSpace* s = &a->space;
    TsiLanes* lanes = h->lanes;
    for (unsigned n = 0; n < TSI_SHARED_LANES; n++)
        for (unsigned cls = 0; cls <= TSI_SMALL_CLASSES; cls++) tsi_store_relaxed(&lanes->cur[n][cls], 0);
    memset(lanes->head, 0, sizeof lanes->head);
    for (uint32_t at = h->slabs; at != 0; at = tsi_slab(s, at - 1)->next) {
        unsigned cls = tsi_chunk_class(s, (at - 1) >> 8);
        if (cls > TSI_SMALL_CLASSES) continue;
        const TsiClass* c = &s->classes->c[cls];
        for (uint32_t i = 0, id = tsi_first_line(c, at - 1); i < 1u << c->lines_log2; i++, id++) {
            TsiLine* l = tsi_line(s, id);
            tsi_store_relaxed(&l->flags, tsi_load_relaxed(&l->flags) & (uint8_t)~TSI_LINE_LISTED);
            if (tsi_line_free_bits(s, l, id) != 0) (void)tsi_lanes_list(a, lanes, cls, l);
            else (void)tsi_lanes_put_aside(a, lanes, cls, id);
        }
    }
}

bool tsi_lanes_heap_of(TsiArena* a, uint32_t slab_id, uint32_t seq, TsiHeap** h) {
    /* seq_cst: pairs with the exchanges of settle.c that end an incarnation; a slab seen OWNED under the stripe stays
     * so there */
    uint64_t tag = tsi_load_seq(&tsi_slab(&a->space, slab_id)->tag);
    if (tsi_tag_state(tag) != TSI_SLAB_OWNED || tsi_tag_seq(tag) != seq) return false;
    *h = tsi_heap(a, tsi_tag_index(tag));
    return true;
}

void tsi_shared_unpark(TsiArena* a, uint32_t line_id, uint32_t slab_id, uint32_t seq) {
    TsiHeap *h, *now;
    if (!tsi_lanes_heap_of(a, slab_id, seq, &h)) return;
    TsiInc* i = tsi_heap_inc(a, h);
    unsigned cls = tsi_chunk_class(&a->space, line_id >> 10);
    bool listed = false;
    tsi_inc_take(i);
    /* Once more under the lock, where slabs leave heaps. HELD: a trim lists it, and what it lists stays listed. */
    if (tsi_lanes_heap_of(a, slab_id, seq, &now) && now == h && tsi_heap_inc(a, h) == i)
        listed = tsi_lanes_list(a, h->lanes, cls, tsi_line(&a->space, line_id));
    tsi_inc_give(i);
    if (!listed) return;
    TsiBinding* b = tsi_binding_get(a, false);
    if (b != NULL) tsi_count(&b->counters[cls].unparked);
    else tsi_add_relaxed(&a->counters[cls].unparked, 1);
}
