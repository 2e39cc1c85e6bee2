/* ready.c - see ready.h. */
#include "heap/ready.h"

#include "heap/bump.h"
#include "heap/charge.h"
#include "heap/grant.h"
#include "heap/heap.h"
#include "heap/refuse.h"
#include "heap/take.h"
#include "heap/warm.h"

enum { SLAB_SHIFT = 40 }; /* slab ids have 24 bits */

static uint64_t ready_word(const TsiBinding* b, uint32_t slab_id) {
    return (uint64_t)slab_id << SLAB_SHIFT | tsi_heap_word(b->index, TSI_HEAP_READY);
}

static size_t region_bytes(const TsiBinding* b, unsigned rank) { return b->classes->c[tsi_region_class(rank)].slab_bytes; }

/* ---- a phase begins ---- */

/* A heap without its region. */
static void drop_bare(TsiBinding* b, TsiHeap* h, unsigned rank) {
    tsi_heap_drop_own(b, h);
    b->ready_bytes -= region_bytes(b, rank);
}

static void enter_locked(TsiBinding* b, TsiInc* i, TsiHeap* h, TsiRef ref, unsigned rank) {
    TsiRegion* r = tsi_load_relaxed(&h->region);
    TsiSlab* slab = tsi_slab(&b->arena->space, h->slabs - 1);
    h->bumped = 0;
    h->spare = h->looked = h->skip = h->alone = 0;
    tsi_store_relaxed(&h->last, NULL); /* it grew in another life */
    h->ranked = true;
    h->rank = (uint8_t)(rank + 1);
    h->bumps = true;
    h->takes = 1;
    h->revoker = 0;
    h->inc_next = h->inc_prev = 0;
    tsi_store_relaxed(&h->slow, 0);
    tsi_store_relaxed(&h->named, tsi_named(tsi_load_relaxed(&i->id)));
    tsi_store_relaxed(&h->ref, ref);
    i->heaps = h->index + 1;
    tsi_store_relaxed(&i->heap_count, 1);
    if (TSI_UNLIKELY(b->cuts)) tsi_store_relaxed(&r->lim, 0); /* what is bumped first opens a grant */
    tsi_store_relaxed(&r->heap_at, tsi_heap_at(h));
    tsi_store_relaxed(&slab->gone, 0);
    /* release: as in slab_open of take.c */
    tsi_store_release(&slab->tag, tsi_tag(tsi_tag_seq(tsi_load_relaxed(&slab->tag)), h->index, TSI_SLAB_OWNED));
}

TsiHeap* tsi_ready_take(TsiBinding* b, TsiRef ref) {
    TsiArena* a = b->arena;
    TsiInc* i = tsi_inc(&a->phases, tsi_ref_index(ref));
    unsigned rank = tsi_bump_first_rank(b, tsi_inc_label(i));
    if (b->ready_count[rank] == 0) return NULL;
    TsiHeap* h = tsi_heap(a, tsi_load_relaxed(&b->ready[rank][b->ready_count[rank] - 1]) - 1);
    uint64_t now = tsi_inc_opening_ns(i, ref), seen = ready_word(b, h->slabs - 1);
    tsi_inc_take(i);
    bool first = tsi_ref_is_active(&a->phases, ref) && i->heaps == 0 && (tsi_load_relaxed(&i->id) & TSI_DOMAIN_ID_BIT) != 0;
    bool charged = first && tsi_charge_first_locked(b, i, region_bytes(b, rank));
    /* seq_cst: decides between us and who flushes */
    bool mine = charged && tsi_cas_seq(&h->word, &seen, tsi_heap_word(b->index, TSI_HEAP_LIVE));
    if (charged && !mine) tsi_uncharge_all_locked(a, b, i);
    if (mine) {
        enter_locked(b, i, h, ref, rank);
        tsi_inc_opened_locked(i, now);
    }
    tsi_inc_give(i);
    if (mine || tsi_heap_state(seen) == TSI_HEAP_BARE) tsi_store_relaxed(&b->ready[rank][--b->ready_count[rank]], 0);
    if (!mine && tsi_heap_state(seen) == TSI_HEAP_BARE) drop_bare(b, h, rank);
    if (!mine) return NULL;
    b->ready_bytes -= region_bytes(b, rank);
    tsi_count(&b->counters[TSI_CLASS_REGION].new_slab);
    tsi_count(&b->counters[TSI_CLASS_REGION].recycled);
    tsi_count_slow(b, h, TSI_CLASS_REGION, TSI_SLOW_MISS);
    return h;
}

/* ---- a phase ends ---- */

/* The rank of the only region of the heap, which is all that it has, or TSI_READY_RANKS. */
static unsigned rank_of(TsiBinding* b, const TsiHeap* h, const TsiRegion* r) {
    if (r == &tsi_no_region || h->room != NULL) return TSI_READY_RANKS;
    uint32_t id = tsi_region_id(&b->arena->space, r);
    if (h->slabs != id + 1 || tsi_slab(&b->arena->space, id)->next != 0) return TSI_READY_RANKS;
    unsigned rank = 0;
    while (rank < TSI_READY_RANKS && region_bytes(b, rank) != (size_t)1 << r->size_log2) rank++;
    return rank;
}

static bool has_budget(TsiBinding* b, size_t bytes) {
    if (TSI_LIKELY(b->ready_bytes + bytes <= tsi_load_relaxed(&b->warm.lent))) return true;
    return tsi_warm_lend(b, bytes) && b->ready_bytes + bytes <= tsi_load_relaxed(&b->warm.lent);
}

/* Ends the region's life and begins the next. False when that is not possible now. */
static bool renew_region(TsiSweep* w, TsiRegion* r, uint32_t id) {
    TsiSpace* s = &w->arena->space;
    TsiSlab* slab = tsi_slab(s, id);
    TsiRegionSum sum = tsi_region_end(s, id);
    w->inc->allocated.objects += sum.issued;
    w->inc->allocated.bytes += sum.issued_bytes;
    w->inc->released.objects += sum.live;
    w->inc->released.bytes += sum.live_bytes;
    for (; sum.twice != 0; sum.twice--) tsi_refuse_count(w->arena, TSI_REFUSED_LATE);
    /* seq_cst, after the word was exchanged: who has set the flag meanwhile looks at the word then, and issues no handle */
    uint64_t tag = tsi_load_seq(&slab->tag);
    if ((tag & TSI_SLAB_HANDLED) != 0) tsi_add_relaxed(&slab->gen_base, 1); /* before a next life: handles of this one match none */
    if (tsi_load_relaxed(&slab->gen_base) >= TSI_GEN_LIMIT || !tsi_region_rest(r)) return false;
    tsi_store_release(&slab->tag, tsi_tag(tsi_seq_next(tsi_tag_seq(tag)), 0, TSI_SLAB_WARM));
    return true;
}

bool tsi_ready_put_locked(TsiSweep* w, TsiHeap* h) {
    TsiBinding* b = w->b;
    TsiInc* i = w->inc;
    TsiRegion* r = tsi_load_relaxed(&h->region);
    unsigned rank = rank_of(b, h, r);
    if (rank == TSI_READY_RANKS || b->ready_count[rank] == TSI_READY_HEAPS || !has_budget(b, region_bytes(b, rank))) return false;
    if (h->ranked) tsi_bump_learn(b, h, tsi_inc_label(i));
    if (TSI_UNLIKELY(h->granter != NULL)) tsi_grant_end(h, r);
    if (!renew_region(w, r, h->slabs - 1)) return false;
    w->closing = true;
    tsi_sweep_look(w, TSI_CLASS_REGION);
    tsi_count(&b->counters[TSI_CLASS_REGION].close_returned);
    w->slabs = w->regions = 1;
    w->bytes = region_bytes(b, rank);
    i->heaps = 0;
    tsi_store_relaxed(&i->heap_count, 0);
    i->slow += tsi_load_relaxed(&h->slow);
    tsi_store_relaxed(&h->ref, 0);
    if (b->heap == h) tsi_binding_set_ambient(b, &tsi_no_heap);
    tsi_store_release(&b->ready[rank][b->ready_count[rank]++], h->index + 1); /* pairs with tsi_ready_flush, with the word */
    b->ready_bytes += w->bytes;
    tsi_store_relaxed(&b->warm.used, true);
    tsi_store_release(&h->word, ready_word(b, h->slabs - 1)); /* publishes the region to who flushes */
    return true;
}

/* ---- memory back ---- */

static bool waits(TsiBinding* b, uint64_t word) { return (uint32_t)(word >> 8) == b->index && tsi_heap_state(word) == TSI_HEAP_READY; }

uint64_t tsi_ready_bytes(TsiBinding* b) {
    uint64_t bytes = 0;
    for (unsigned rank = 0; rank < TSI_READY_RANKS; rank++) {
        for (unsigned k = 0; k < TSI_READY_HEAPS; k++) {
            uint32_t at = tsi_load_relaxed(&b->ready[rank][k]);
            if (at != 0 && waits(b, tsi_load_relaxed(&tsi_heap(b->arena, at - 1)->word))) bytes += region_bytes(b, rank);
        }
    }
    return bytes;
}

/* The region of a heap that waits; slab id + 1, or 0. The heap is BARE after that. */
static uint32_t seize(TsiBinding* b, TsiHeap* h) {
    uint64_t word = tsi_load_acquire(&h->word); /* pairs with tsi_ready_put_locked */
    if (!waits(b, word)) return 0;
    /* seq_cst: decides between those who flush and the heap's thread; the word says which region it is */
    return tsi_cas_seq(&h->word, &word, tsi_heap_word(b->index, TSI_HEAP_BARE)) ? (uint32_t)(word >> SLAB_SHIFT) + 1 : 0;
}

void tsi_ready_flush(TsiBinding* b) {
    TsiArena* a = b->arena;
    if (tsi_load_relaxed(&b->warm.lent) == 0) return;
    tsi_warm_call_in(b);
    for (unsigned rank = 0; rank < TSI_READY_RANKS; rank++) {
        uint32_t ids[TSI_READY_HEAPS];
        unsigned n = 0;
        for (unsigned k = 0; k < TSI_READY_HEAPS; k++) {
            uint32_t at = tsi_load_acquire(&b->ready[rank][k]); /* pairs with tsi_ready_put_locked */
            uint32_t slab = at != 0 ? seize(b, tsi_heap(a, at - 1)) : 0;
            if (slab != 0) ids[n++] = slab - 1;
        }
        if (n != 0) tsi_space_purge(&a->space, ids, n);
    }
}

void tsi_ready_close(TsiBinding* b) {
    TsiArena* a = b->arena;
    uint32_t chain = 0;
    for (unsigned rank = 0; rank < TSI_READY_RANKS; rank++) {
        while (b->ready_count[rank] != 0) {
            _Atomic uint32_t* at = &b->ready[rank][--b->ready_count[rank]];
            TsiHeap* h = tsi_heap(a, tsi_load_relaxed(at) - 1);
            uint32_t slab = seize(b, h);
            tsi_store_relaxed(at, 0);
            if (slab != 0) {
                tsi_slab(&a->space, slab - 1)->next = chain;
                chain = slab;
            }
            tsi_heap_drop_own(b, h);
        }
    }
    tsi_warm_call_in(b);
    b->ready_bytes = 0;
    for (chain = tsi_warm_put(a, b, chain, false); chain != 0;) {
        uint32_t id = chain - 1;
        chain = tsi_slab(&a->space, id)->next;
        tsi_space_purge(&a->space, &id, 1);
    }
}

void tsi_ready_child(TsiArena* a, TsiHeap* h, bool own) {
    TsiBinding* b = tsi_binding_at(a, tsi_load_relaxed(&h->word));
    h->slabs = 0;
    tsi_store_relaxed(&h->region, &tsi_no_region);
    tsi_store_relaxed(&h->word, own ? tsi_heap_word(b->index, TSI_HEAP_BARE) : TSI_HEAP_FREE); /* else unused from here on */
}
