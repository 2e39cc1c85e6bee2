/* take.c - see take.h. */
#include "heap/take.h"

#include "heap/charge.h"
#include "heap/settle.h"
#include "heap/warm.h"

/* ---- slabs ---- */

/* A line of an owned slab of a class comes with its first refill, unless refills are cut for samples. */
static void line_init(TsiSpace* s, const TsiClass* c, unsigned cls, uint32_t line_id, uint32_t seq, uint32_t gen_base, uint32_t heap_at,
                      TsiOpen how, uint64_t ready) {
    TsiLine* l = tsi_line(s, line_id);
    bool mixed = cls == TSI_CLASS_MIXED;
    uint64_t others = how == TSI_OPEN_SHARED && !mixed ? c->full : 0;
    uint64_t offset = ((uint64_t)(line_id >> 10) << TSI_CHUNK_SHIFT) +
                      ((uint64_t)(line_id & (TSI_CHUNK_LINES - 1)) << c->line_shift);
    tsi_store_relaxed(&l->avail, mixed ? ~0ull : ready);
    tsi_store_relaxed(&l->freed, mixed ? 0 : c->full & ~(ready | others));
    tsi_store_relaxed(&l->issued, ready != 0 ? c->slots : 0);
    l->base = s->base + offset;
    tsi_store_relaxed(&l->heap_at, heap_at);
    l->link = 0;
    tsi_store_relaxed(&l->flags, mixed ? TSI_LINE_MIXED : 0);
    tsi_store_relaxed(&l->special, mixed ? TSI_SPECIAL_MIXED : 0);
    l->gen_base = gen_base;
    if (mixed) {
        tsi_store_relaxed(&tsi_mixed(s, line_id)->starts, 0);
        tsi_store_relaxed(&tsi_mixed(s, line_id)->ends, 0);
    }
    tsi_store_relaxed(&tsi_remote(s, line_id)[0], tsi_remote_fresh(seq) | (uint32_t)others);
    tsi_store_relaxed(&tsi_remote(s, line_id)[1], tsi_remote_fresh(seq) | others >> 32);
}

/* Words of a slab that only the caller holds, and its new tag. */
static void slab_open(TsiSpace* s, unsigned cls, uint32_t slab_id, uint32_t index, unsigned state, TsiOpen how, bool ready) {
    const TsiClass* c = &s->classes->c[cls];
    uint32_t heap_at = state == TSI_SLAB_OWNED ? index * (uint32_t)sizeof(TsiHeap) : 0;
    TsiSlab* slab = tsi_slab(s, slab_id);
    uint32_t seq = tsi_tag_seq(tsi_load_relaxed(&slab->tag));
    if (seq == 0) seq = 1;
    uint32_t gen_base = tsi_load_relaxed(&slab->gen_base);
    tsi_store_relaxed(&slab->gone, 0);
    for (uint32_t i = 0, first = tsi_first_line(c, slab_id); i < 1u << c->lines_log2; i++)
        line_init(s, c, cls, first + i, seq, gen_base, heap_at, how, ready ? c->full : 0);
    tsi_store_seq(&slab->tag, tsi_tag(seq, index, state)); /* publishes the words to freers */
}

unsigned tsi_lane_of(TsiArena* a, TsiInc* i) {
    return tsi_label_lane(&a->phases.labels, tsi_inc_label(i));
}

/* The space gave nothing: was it max_bytes? */
static void note_over(TsiBinding* b, uint32_t why) {
    if (why == TSI_SPACE_OVER) b->budget.hard = TSI_BUDGET_SPACE;
}

bool tsi_slab_take(TsiBinding* b, TsiHeap* h, unsigned cls, TsiOpen how, uint32_t* slab_id) {
    TsiSpace* s = &b->arena->space;
    TsiInc* i = tsi_heap_inc(b->arena, h);
    size_t bytes = s->classes->c[cls].slab_bytes;
    TsiCharge charge;
    *slab_id = 0;
    if (!tsi_charge(b, i, bytes, &charge)) return false;
    bool warm = tsi_warm_take(b, cls, slab_id);
    if (!warm && !tsi_space_take(s, cls, tsi_lane_of(b->arena, i), slab_id)) {
        tsi_uncharge(b->arena, b, i, bytes);
        note_over(b, *slab_id);
        return false;
    }
    tsi_count(&b->counters[cls].new_slab);
    if (warm) tsi_count(&b->counters[cls].recycled);
    tsi_charge_keep(b, i, &charge);
    bool ready = cls <= TSI_SMALL_CLASSES && how == TSI_OPEN_OWNED && !b->cuts;
    slab_open(s, cls, *slab_id, h->index, TSI_SLAB_OWNED, how, ready);
    tsi_slab(s, *slab_id)->next = h->slabs;
    h->slabs = *slab_id + 1; /* after next: a walk in a fork child is always whole */
    tsi_store_relaxed(&h->slab_count, tsi_load_relaxed(&h->slab_count) + 1);
    tsi_store_relaxed(&h->slab_bytes, tsi_load_relaxed(&h->slab_bytes) + s->classes->c[cls].slab_bytes);
    h->takes++;
    return true;
}

/* ---- mixed slabs ---- */

void* tsi_mixed_alloc(TsiBinding* b, TsiHeap* h, const TsiClass* of) {
    if (h->mixed == NULL) {
        bool domain = (tsi_load_relaxed(&tsi_heap_inc(b->arena, h)->id) & TSI_DOMAIN_ID_BIT) != 0;
        uint32_t slab_id;
        if (!domain || h->slabs != 0 || b->large_phases || !tsi_slab_take(b, h, TSI_CLASS_MIXED, TSI_OPEN_OWNED, &slab_id)) return NULL;
        const TsiClass* c = &b->classes->c[TSI_CLASS_MIXED];
        h->mixed = tsi_line(&b->arena->space, tsi_first_line(c, slab_id));
        h->mixed_lines = (1u << c->lines_log2) - 1;
    }
    for (;;) {
        void* p = tsi_mixed_bump(h->mixed, of);
        if (TSI_UNLIKELY(b->cuts) && p != NULL) tsi_profile_one(b, (uint64_t)of->granules * TSI_GRANULE);
        if (p != NULL) return p;
        uint64_t avail = tsi_load_relaxed(&h->mixed->avail);
        if (h->mixed_lines == 0) {
            if (tsi_popcount(avail) < 8) h->mixed = NULL; /* nearly used up: stop asking */
            return NULL;
        }
        h->mixed_lines--;
        h->mixed++;
    }
}

/* ---- large objects ---- */

void* tsi_large_alloc(TsiBinding* b, TsiRef ref, size_t size, size_t align, TsiIssue* issue) {
    TsiArena* a = b->arena;
    TsiSpace* s = &a->space;
    TsiInc* i = tsi_inc(&a->phases, tsi_ref_index(ref));
    uint32_t slab_id = 0;
    if (size > s->payload_bytes) { /* before it is charged: charges have 48 bits */
        if (tsi_space_is_over(s, size)) note_over(b, TSI_SPACE_OVER);
        return NULL;
    }
    size_t bytes = tsi_align_up(size, tsi_os.page_bytes);
    TsiCharge charge;
    if (!tsi_charge(b, i, bytes, &charge)) return NULL;
    if (!tsi_space_take_large(s, size, align, tsi_lane_of(a, i), &slab_id)) {
        tsi_uncharge(a, b, i, bytes);
        note_over(b, slab_id);
        return NULL;
    }
    uint32_t line_id = slab_id >> 8 << 10;
    tsi_inc_take(i);
    bool active = tsi_ref_is_active(&a->phases, ref);
    if (active) {
        slab_open(s, TSI_CLASS_LARGE, slab_id, i->index, TSI_SLAB_ORPHAN, TSI_OPEN_OWNED, false);
        TsiLine* l = tsi_line(s, line_id);
        tsi_store_relaxed(&l->issued, 1);
        tsi_store_seq(&l->freed, 0); /* from here on the object is live */
        TsiTotals one = {1, tsi_slab_bytes(s, TSI_CLASS_LARGE, slab_id)};
        tsi_orphan_link_locked(a, i, slab_id, &(TsiSlabSum){one, one, 0});
        i->allocated.objects += one.objects;
        i->allocated.bytes += one.bytes;
        if (issue != NULL) tsi_handle_issue_held(a, b->base + ((size_t)(slab_id >> 8) << TSI_CHUNK_SHIFT), issue);
    }
    tsi_inc_give(i);
    if (!active) {
        tsi_uncharge(a, b, i, bytes);
        tsi_space_give_large(s, slab_id);
        return NULL;
    }
    tsi_count(&b->counters[TSI_CLASS_LARGE].new_slab);
    tsi_charge_keep(b, i, &charge);
    if (b->cuts) tsi_profile_one(b, bytes);
    return b->base + ((size_t)(slab_id >> 8) << TSI_CHUNK_SHIFT);
}
