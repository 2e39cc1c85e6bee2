/* warm.c - see warm.h. */
#include "heap/warm.h"

#include "threads/bank.h"
#include "mem/handle.h"
#include "mem/pool.h"
#include "mem/purge.h"
#include "mem/quarantine.h"
#include "mem/rest.h"
#include "mem/stock.h"
#include "os/clock.h"

enum {
    GRANT_BYTES = 64 << 10,
    LEND_BYTES = 64 << 10,
    EVICT_BYTES = 64 << 10,
    FLUSH_BATCH = 128,
    LOOK = 4 * FLUSH_BATCH
};

/* Takes at least `need` more bytes of the budget for the store, 64 KiB if there are as many: warm->quota rises. Returns
 * false, changing nothing, if the thread would have more than half of the first budget, or the budget has no room.
 * [store lock held] */
static bool grant(TsiArena* a, TsiWarm* warm, size_t need) {
    /* At most half of the initial budget to one thread, so that the next one finds some; what the budget has learned on
     * top is no thread's to take. */
    if (warm->quota + tsi_load_relaxed(&warm->lent) + need > a->space.stock.start / 2) return false;
    uint64_t got = tsi_stock_reserve(&a->space, need > GRANT_BYTES ? need : GRANT_BYTES, 1);
    if (got < need) {
        tsi_stock_unreserve(&a->space, got);
        return false;
    }
    warm->quota += got;
    return true;
}

/* Keeps the slabs of a chain that fit in the store, with more of the budget where that has room: they are WARM and the
 * first of their class there. Returns the others, chained; *rest_bytes: the bytes of those that lacked room, without
 * huge ones. [store lock held] */
static uint32_t keep(TsiArena* a, TsiWarm* warm, uint32_t chain, size_t* rest_bytes) {
    TsiSpace* s = &a->space;
    uint32_t rest = 0;
    uint64_t bytes = tsi_load_relaxed(&warm->bytes);

    *rest_bytes = 0;
    while (chain != 0) {
        uint32_t at = chain, id = at - 1;
        TsiSlab* slab = tsi_slab(s, id);
        unsigned cls = tsi_class_of_slab(s, id);
        size_t size = s->classes->c[cls].slab_bytes;
        chain = slab->next;
        bool huge = cls == TSI_CLASS_HUGE, fits = !huge && (bytes + size <= warm->quota || grant(a, warm, size));
        if (!fits || tsi_load_relaxed(&slab->gen_base) >= TSI_GEN_LIMIT) {
            slab->next = rest;
            rest = at;
            if (!fits && !huge) *rest_bytes += size;
            continue;
        }
        bytes += size;
        tsi_slab_turn(slab, TSI_SLAB_WARM);
        slab->next = warm->head[cls];
        warm->head[cls] = at;
    }

    tsi_store_relaxed(&warm->bytes, bytes);
    return rest;
}

/* Takes up to `max` slabs, and up to half, from the far end of the first LOOK of a class's list, where the oldest are,
 * into `ids`; none from a list of one. Returns their number. A large store must not be walked through for each phase
 * that ends. [store lock held] */
static unsigned cut(TsiSpace* s, TsiWarm* warm, unsigned cls, uint32_t* ids, unsigned max) {
    unsigned length = 0, n = 0;
    for (uint32_t at = warm->head[cls]; at != 0 && length < LOOK; at = tsi_slab(s, at - 1)->next) length++;
    if (length < 2) return 0;
    unsigned take = length / 2 < max ? length / 2 : max;
    uint32_t* from = &warm->head[cls];
    for (unsigned stay = length - take; stay != 0; stay--) from = &tsi_slab(s, *from - 1)->next;
    uint32_t at = *from;
    for (; n < take; at = tsi_slab(s, at - 1)->next) ids[n++] = at - 1;
    *from = at;
    return n;
}

/* Moves n slabs of a store, whose order in `ids` changes, to the system, or with `keep` to the stock as far as there is
 * room; those that lack room count in a->overflowed. learn: as in TsiSweep. [holder of the slabs, no pool lock held] */
static void move_out(TsiArena* a, uint32_t* ids, unsigned n, bool keep, bool learn) {
    TsiSpace* s = &a->space;
    if (!keep) {
        (void)tsi_space_purge(s, ids, n);
        return;
    }
    unsigned kept = tsi_stock_choose(s, ids, n, learn);
    for (unsigned i = kept; i < n; i++) {
        unsigned cls = tsi_class_of_slab(s, ids[i]);
        if (!tsi_parts_share(s, cls)) tsi_add_relaxed(&a->overflowed[tsi_class_row(cls)], 1);
    }
    size_t shared = tsi_space_release(s, ids + kept, n - kept, learn);
    tsi_add_relaxed(&a->overflowed[TSI_CLASS_REGION], shared / tsi_os.page_bytes); /* a shared page counts as one */
    if (kept != 0) tsi_space_keep(s, ids, kept);
}

/* Moves some of the store's oldest slabs out, EVICT_BYTES of them or somewhat more, FLUSH_BATCH slabs at most, to the
 * stock or the system; their bytes stay in warm->quota. Returns false if there are none. learn: as in TsiSweep.
 * [store lock held, no pool lock held] */
static bool evict(TsiArena* a, TsiWarm* warm, bool learn) {
    uint32_t ids[FLUSH_BATCH];
    unsigned n = 0;
    size_t bytes = 0;
    tsi_space_give_begin(&a->space);
    for (unsigned cls = 1; cls < TSI_CLASSES && bytes < EVICT_BYTES && n < FLUSH_BATCH; cls++) {
        if (warm->head[cls] == 0) continue;
        size_t size = a->space.classes->c[cls].slab_bytes, want = (EVICT_BYTES - bytes + size - 1) / size;
        unsigned more = cut(&a->space, warm, cls, ids + n, want < FLUSH_BATCH - n ? (unsigned)want : FLUSH_BATCH - n);
        bytes += more * size;
        n += more;
    }
    tsi_store_relaxed(&warm->bytes, tsi_load_relaxed(&warm->bytes) - bytes);
    if (n != 0) move_out(a, ids, n, true, learn);
    tsi_space_give_end(&a->space);
    return n != 0;
}

uint32_t tsi_warm_put(TsiArena* a, TsiBinding* b, uint32_t chain, bool learn) {
    /* in shared mode banks allocate; acquire: pairs with tsi_bank_enter; NULL before that */
    if (a->options.shared) b = tsi_load_acquire(&a->bank[0].binding);
    if (chain == 0 || b == NULL || !tsi_warm_lock(&b->warm)) return chain;
    size_t rest_bytes;
    uint32_t rest = keep(a, &b->warm, chain, &rest_bytes);
    /* a full store sees each small phase's slabs: a system call for each would cost more than it gives back */
    if (rest_bytes != 0 && rest_bytes < EVICT_BYTES && evict(a, &b->warm, learn))
        rest = keep(a, &b->warm, rest, &rest_bytes);
    tsi_store_relaxed(&b->warm.used, true);
    tsi_warm_unlock(&b->warm);
    return rest;
}

bool tsi_warm_lend(TsiBinding* b, size_t bytes) {
    TsiArena* a = b->arena;
    TsiWarm* warm = &b->warm;
    uint64_t lent = tsi_load_relaxed(&warm->lent);
    if (bytes < LEND_BYTES) bytes = LEND_BYTES;
    if (lent + bytes > a->space.stock.start / 4 || !tsi_warm_lock(warm)) return false;
    if (warm->quota < tsi_load_relaxed(&warm->bytes) + bytes && !grant(a, warm, bytes)) (void)evict(a, warm, false);
    bool ok = warm->quota >= tsi_load_relaxed(&warm->bytes) + bytes;
    if (ok) {
        warm->quota -= bytes;
        tsi_add_relaxed(&warm->lent, bytes);
    }
    tsi_warm_unlock(warm);
    return ok;
}

bool tsi_warm_take(TsiBinding* b, unsigned cls, uint32_t* slab_id) {
    TsiWarm* warm = &b->warm;
    if (tsi_load_relaxed(&warm->bytes) == 0 || !tsi_warm_lock(warm)) return false;
    uint32_t at = warm->head[cls];
    if (at != 0) {
        tsi_store_relaxed(&warm->used, true);
        *slab_id = at - 1;
        warm->head[cls] = tsi_slab(&b->arena->space, at - 1)->next;
        tsi_store_relaxed(&warm->bytes, tsi_load_relaxed(&warm->bytes) - b->arena->space.classes->c[cls].slab_bytes);
    }
    tsi_warm_unlock(warm);
    return at != 0;
}

/* ---- of heaps that wait ---- */

void tsi_warm_call_in(TsiArena* a, TsiBinding* b) {
    uint64_t lent = tsi_swap_seq(&b->warm.lent, 0); /* decides which thread returns it */
    if (lent != 0) tsi_stock_unreserve(&a->space, lent);
}

/* Returns true if a heap with this word waits with a region, for the binding with this index.
 * [any thread, needs no lock] */
static bool waits(uint32_t binding, uint64_t word) {
    return tsi_heap_binding(word) == binding && tsi_heap_state(word) == TSI_HEAP_STANDBY;
}

uint64_t tsi_ready_bytes(const TsiArena* a, uint32_t binding) {
    /* Another thread may be making the binding, so only atomics are read of it. */
    TsiBinding* b = tsi_table_at(&a->bindings, binding);
    uint64_t bytes = 0;
    for (unsigned rank = 0; rank < TSI_READY_RANKS; rank++) {
        for (unsigned k = 0; k < TSI_READY_HEAPS; k++) {
            uint32_t at = tsi_load_relaxed(&b->ready[rank][k]);
            if (at != 0 && waits(binding, tsi_load_relaxed(&tsi_heap(a, at - 1)->word)))
                bytes += a->space.classes->c[tsi_region_class(rank)].slab_bytes;
        }
    }
    return bytes;
}

uint32_t tsi_ready_seize(TsiBinding* b, TsiHeap* h) {
    uint64_t word = tsi_load_acquire(&h->word); /* pairs with put in ready.c */
    if (!waits(b->index, word)) return 0;
    /* seq_cst: decides between those who flush and the heap's thread; the word says which region it is */
    bool ours = tsi_cas_seq(&h->word, &word, tsi_heap_word(b->index, TSI_HEAP_STANDBY_EMPTY));
    return ours ? (uint32_t)(word >> TSI_STANDBY_SLAB_SHIFT) + 1 : 0;
}

void tsi_ready_flush(TsiArena* a, TsiBinding* b) {
    tsi_space_give_begin(&a->space);
    tsi_warm_call_in(a, b); /* even of nothing: an end that asked before the last call may keep a heap after it */
    for (unsigned rank = 0; rank < TSI_READY_RANKS; rank++) {
        uint32_t ids[TSI_READY_HEAPS];
        unsigned n = 0;
        for (unsigned k = 0; k < TSI_READY_HEAPS; k++) {
            uint32_t at = tsi_load_acquire(&b->ready[rank][k]); /* pairs with put in ready.c */
            uint32_t slab = at != 0 ? tsi_ready_seize(b, tsi_heap(a, at - 1)) : 0;
            if (slab != 0) ids[n++] = slab - 1;
        }
        if (n != 0) (void)tsi_space_purge(&a->space, ids, n);
    }
    tsi_space_give_end(&a->space);
}

/* ---- giving back ---- */

/* Empties a store, to the system, or into the stock with `keep` as far as there is room, and gives its share of the
 * budget back; before that, the regions that wait with the binding's heaps. Returns false if the store is busy: only
 * those regions have gone. The binding's thread may have gone meanwhile, and its record's page: then all of it reads as
 * 0. While the store is locked the page stays (registry.c). [any thread, no lock held but the segment's] */
static bool empty_store(TsiArena* a, TsiBinding* b, bool keep) {
    TsiWarm* warm = &b->warm;
    uint32_t ids[FLUSH_BATCH];
    tsi_ready_flush(a, b); /* and what is lent */
    if (!tsi_warm_lock(warm)) return false;

    tsi_space_give_begin(&a->space);
    uint64_t bytes = tsi_load_relaxed(&warm->bytes);
    if (bytes < warm->quota) {
        tsi_stock_unreserve(&a->space, warm->quota - bytes);
        warm->quota = bytes;
    }

    for (unsigned cls = 1; cls < TSI_CLASSES && bytes != 0; cls++) {
        while (warm->head[cls] != 0) {
            unsigned n = 0;
            for (; warm->head[cls] != 0 && n < FLUSH_BATCH; n++) {
                ids[n] = warm->head[cls] - 1;
                warm->head[cls] = tsi_slab(&a->space, ids[n])->next;
            }
            for (unsigned i = 0; i < n; i++) tsi_stock_unreserve(&a->space, a->space.classes->c[cls].slab_bytes);
            move_out(a, ids, n, keep, keep);
        }
    }

    tsi_store_relaxed(&warm->bytes, 0);
    warm->quota = 0;
    tsi_space_give_end(&a->space);
    tsi_warm_unlock(warm);
    return true;
}

bool tsi_warm_flush(TsiArena* a, TsiBinding* b) { return empty_store(a, b, false); }
void tsi_warm_leave(TsiBinding* b) {
    unsigned turn = 0;
    /* Another thread may be emptying it. The record's page may go back soon, with whatever that thread has not seen
     * yet. */
    TsiArena* a = b->arena;
    while (!empty_store(a, b, tsi_stock_learns(&a->space))) tsi_os_yield(&turn);
}

/* Gives all stores back to the system, with regions that wait; or those not used since the last call, and all of them
 * while more is kept than the budget allows. Every store counts as unused afterwards. Returns false if one was busy.
 * [any thread, no lock held but the segment's] */
static bool flush_stores(TsiArena* a, bool all) {
    bool whole = true;
    for (uint32_t n = 0; n < tsi_table_used(&a->bindings); n++) {
        TsiBinding* b = tsi_table_at(&a->bindings, n);
        if (!tsi_load_acquire(&b->in_use)) continue; /* pairs with binding_make */
        if (all || !tsi_load_relaxed(&b->warm.used) || tsi_load_relaxed(&a->space.stock.left) < 0)
            whole &= tsi_warm_flush(a, b);
        tsi_store_relaxed(&b->warm.used, false);
    }
    return whole;
}

/* Gives all slabs of the quarantine to the system. [any thread, no lock held] */
static void empty_quarantine(TsiSpace* s) {
    if (TSI_LIKELY(tsi_quarantine_bytes(s) == 0)) return;
    uint32_t ids[FLUSH_BATCH];
    tsi_space_give_begin(s);
    for (uint32_t at = tsi_quarantine_pass(s, 0, true); at != 0;) {
        unsigned n = 0;
        for (; at != 0 && n < FLUSH_BATCH; at = tsi_slab(s, at - 1)->next) {
            uint32_t chunk = tsi_slab_chunk(at - 1);
            if (s->chunks[chunk].huge) tsi_space_avoid_huge(s, chunk); /* as in rest.c */
            ids[n++] = at - 1;
        }
        (void)tsi_space_purge(s, ids, n);
    }
    tsi_space_give_end(s);
}

bool tsi_warm_give_up(TsiArena* a) {
    bool whole = flush_stores(a, true);
    empty_quarantine(&a->space);
    tsi_rest_poll(&a->space);
    (void)tsi_stock_give_back(&a->space, UINT64_MAX);
    return whole;
}

/* Lowers what tables of records have learned, and gives pages back that are no longer worth keeping; once they have
 * learned nothing a->records_learned is false. ns: tsi_os.coarse_ns. [any thread, no lock held but the segment's] */
static void look_at_records(TsiArena* a, uint64_t ns) {
    TsiTable* const tables[] = {&a->phases.incs, &a->heaps, &a->domains};
    bool learned = false;
    for (unsigned n = 0; n < sizeof tables / sizeof *tables; n++) {
        tsi_table_poll(tables[n], ns);
        tsi_table_tidy(tables[n]);
        learned |= tsi_load_relaxed(&tables[n]->learned) != 0;
    }
    if (!learned) tsi_store_relaxed(&a->records_learned, false); /* the next record given sets it again */
}

/* Lets the budget fall if it has risen. Then, once a second, or while more is kept than the budget allows, for one of
 * the threads that come: lowers what tables have learned, and, if the budget has risen, or with `stores`, gives back
 * stores that nobody has used since the last time. [any thread, no lock held but the segment's, no bracket open] */
static void look_now(TsiArena* a, bool stores) {
    TsiStock* stock = &a->space.stock;
    bool risen = tsi_load_relaxed(&stock->budget) > stock->start;
    uint64_t ns = tsi_os.coarse_ns(), looked = tsi_load_relaxed(&a->warm_look_ns);
    if (risen) tsi_stock_poll(&a->space, ns);
    bool due = tsi_clock_is_due(ns, looked + TSI_STOCK_SECOND, TSI_STOCK_SECOND);
    if (!due && tsi_load_relaxed(&stock->left) >= 0) return;
    if (!atomic_compare_exchange_strong_explicit(&a->warm_look_ns, &looked, ns, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    if (looked == 0) return;
    if (risen || stores) (void)flush_stores(a, false);
    look_at_records(a, ns);
}

void tsi_warm_look_now(TsiArena* a) { look_now(a, false); }
void tsi_warm_decay(TsiArena* a) { look_now(a, true); }

uint64_t tsi_warm_bytes(TsiArena* a) {
    uint64_t bytes = 0;
    for (uint32_t n = 0; n < tsi_table_used(&a->bindings); n++) {
        TsiBinding* b = tsi_table_at(&a->bindings, n);
        bytes += tsi_load_relaxed(&b->warm.bytes) + tsi_ready_bytes(a, n);
    }
    return bytes;
}

void tsi_warm_forget(TsiBinding* b) {
    TsiWarm* warm = &b->warm;
    for (unsigned cls = 0; cls < TSI_CLASSES; cls++) warm->head[cls] = 0;
    tsi_store_relaxed(&warm->bytes, 0);
    warm->quota = 0;
    tsi_store_relaxed(&warm->lent, 0);
    tsi_warm_unlock(warm);
}
