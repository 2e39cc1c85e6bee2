/*
 * settle.c - claims, totals and return of single slabs.
 *
 * A slab is returned by whoever moves its tag to PURGING by compare-exchange; the same exchange
 * raises seq. Then the remote words are exchanged for fresh ones under the new seq: a racing free
 * either got its bit in before that exchange (it counts as freed) or fails its compare-exchange
 * (it is refused). Words are reset only when the slab is taken again.
 *
 * Orphans are chained on their incarnation under the stripe. A freer that completes one claims it
 * first and unlinks it under the stripe; a sweep that meets a claimed slab leaves it alone.
 */
#include "heap/settle.h"

#include "base/check.h"
#include "heap/charge.h"
#include "heap/close.h"
#include "heap/late.h"
#include "heap/partial.h"
#include "heap/refuse.h"
#include "heap/warm.h"
#include "mem/handle.h"
#include "mem/large.h"
#include "mem/parts.h"
#include "mem/pool.h"
#include "mem/purge.h"
#include "mem/region.h"
#include "mem/stock.h"

/* ---- claims ---- */

/* Handles of the incarnation that ends must never match again: the base passes every count used. */
static void raise_generations(TsiArena* a, unsigned cls, uint32_t slab_id, uint32_t old_seq) {
    TsiSpace* s = &a->space;
    const TsiClass* c = &s->classes->c[cls];
    uint32_t most = 0;
    if (tsi_class_is_region(cls)) { /* handles of a life have one generation */
        tsi_add_relaxed(&tsi_slab(s, slab_id)->gen_base, 1);
        return;
    }
    for (uint32_t i = 0, first = tsi_first_line(c, slab_id); i < 1u << c->lines_log2; i++) {
        _Atomic uint64_t* counts = tsi_counts(s, first + i);
        for (unsigned slot = 0; slot < TSI_LINE_SLOTS; slot++) {
            uint64_t w = tsi_load_relaxed(&counts[slot]);
            if ((uint32_t)(w >> 32) == (old_seq & TSI_INC_MASK) && (uint32_t)w > most) most = (uint32_t)w;
        }
    }
    TsiSlab* b = tsi_slab(s, slab_id);
    uint64_t base = (uint64_t)tsi_load_relaxed(&b->gen_base) + ((uint64_t)most + 1) / 2 + 1;
    tsi_store_relaxed(&b->gen_base, base < TSI_GEN_LIMIT ? (uint32_t)base : TSI_GEN_LIMIT);
}

/* Moves the tag to PURGING under the next seq if it is in `state`; *old is the tag it had. */
static bool claim(TsiSpace* s, uint32_t slab_id, unsigned state, uint64_t* old) {
    _Atomic uint64_t* tag = &tsi_slab(s, slab_id)->tag;
    *old = tsi_load_seq(tag);
    while (tsi_tag_state(*old) == state) {
        uint64_t to = tsi_tag(tsi_seq_next(tsi_tag_seq(*old)), tsi_tag_index(*old), TSI_SLAB_PURGING);
        if (tsi_cas_seq(tag, old, to)) return true; /* decides who returns the slab */
    }
    return false;
}

/* The slab leaves its heap: from now on the owner's frees look at the tag. The heap is SEIZED, or DEAD and skipped. */
static void end_plain_frees(TsiSpace* s, unsigned cls, uint32_t slab_id) {
    const TsiClass* c = &s->classes->c[cls];
    bool region = tsi_class_is_region(cls);
    if (region) tsi_store_relaxed(&tsi_region(s, slab_id)->heap_at, 0);
    for (uint32_t i = 0, first = tsi_first_line(c, slab_id); !region && i < 1u << c->lines_log2; i++) {
        tsi_store_relaxed(&tsi_line(s, first + i)->heap_at, 0);
        tsi_store_relaxed(&tsi_line(s, first + i)->home, 0);
    }
}

/* A claimed slab's remote words get the new seq; what was live at that instant is summed. */
static TsiSlabSum renew_words(TsiSweep* w, unsigned cls, uint32_t slab_id, uint64_t old) {
    TsiSpace* s = &w->arena->space;
    const TsiClass* c = &s->classes->c[cls];
    uint32_t seq = tsi_seq_next(tsi_tag_seq(old));
    TsiSlabSum sum = {{0, 0}, {0, 0}, 0};
    bool region = tsi_class_is_region(cls);
    if (region) sum = tsi_region_told(tsi_region_end(s, slab_id));
    for (uint32_t i = 0, first = tsi_first_line(c, slab_id); !region && i < 1u << c->lines_log2; i++) {
        _Atomic uint64_t* r = tsi_remote(s, first + i);
        uint64_t w0 = tsi_swap_seq(&r[0], tsi_remote_fresh(0, seq)); /* decides each racing free */
        uint64_t w1 = tsi_swap_seq(&r[1], tsi_remote_fresh(1, seq));
        uint64_t issued = tsi_line_handed_out(tsi_line(s, first + i));
        tsi_line_sum(s, cls, first + i, issued, tsi_remote_bits(w0, w1), &sum);
    }
    for (; sum.twice != 0; sum.twice--) tsi_refuse_count(w->arena, TSI_REFUSED_LATE);
    if ((old & TSI_SLAB_HANDLED) != 0) raise_generations(w->arena, cls, slab_id, tsi_tag_seq(old));
    return sum;
}

void tsi_sweep_count(TsiSweep* w, size_t field, unsigned cls, uint64_t n) {
    cls = tsi_class_row(cls);
    TsiClassCounters* c = w->b != NULL ? &w->b->counters[cls] : &w->arena->counters[cls];
    _Atomic uint64_t* sum = (_Atomic uint64_t*)(void*)((char*)c + field);
    if (w->b != NULL) tsi_store_relaxed(sum, tsi_load_relaxed(sum) + n);
    else tsi_add_relaxed(sum, n);
}

static void take_out(TsiSweep* w, unsigned cls, uint32_t slab_id) {
    TsiSlab* b = tsi_slab(&w->arena->space, slab_id);
    uint32_t* chain = cls == TSI_CLASS_LARGE ? &w->large : &w->out;
    b->next = *chain;
    *chain = slab_id + 1;
    if (w->closing) tsi_sweep_count(w, offsetof(TsiClassCounters, close_returned), cls, 1);
    size_t bytes = tsi_slab_bytes(&w->arena->space, cls, slab_id);
    if (w->tally != NULL) w->tally->c[tsi_class_row(cls)].returned++;
    w->slabs++;
    w->regions += tsi_class_is_region(cls);
    w->bytes += bytes;
    w->uncharged += bytes;
}

static void add(TsiTotals* t, TsiTotals more) {
    t->objects += more.objects;
    t->bytes += more.bytes;
}

void tsi_settle_release(TsiSweep* w, uint32_t slab_id) {
    unsigned cls = tsi_chunk_class(&w->arena->space, slab_id >> 8);
    uint64_t old;
    bool ok = claim(&w->arena->space, slab_id, TSI_SLAB_OWNED, &old);
    TSI_CHECK(ok);
    end_plain_frees(&w->arena->space, cls, slab_id);
    TsiSlabSum sum = renew_words(w, cls, slab_id, old);
    add(&w->inc->allocated, sum.issued);
    add(&w->inc->released, sum.live);
    take_out(w, cls, slab_id);
}

bool tsi_settle_if_empty(TsiSweep* w, uint32_t slab_id) {
    TsiSpace* s = &w->arena->space;
    unsigned cls = tsi_chunk_class(s, slab_id >> 8);
    uint64_t old;
    if (!tsi_slab_is_empty(s, cls, slab_id) || !claim(s, slab_id, TSI_SLAB_OWNED, &old)) return false;
    end_plain_frees(s, cls, slab_id);
    add(&w->inc->allocated, renew_words(w, cls, slab_id, old).issued);
    take_out(w, cls, slab_id);
    return true;
}

void tsi_skipped_add_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, int n) {
    TSI_HOLDS(tsi_inc_lock(i));
    uint64_t bytes = tsi_slab_bytes(&a->space, tsi_chunk_class(&a->space, slab_id >> 8), slab_id);
    tsi_add_relaxed(&i->slab_count, (uint32_t)n);
    i->skipped += (uint32_t)n;
    i->skipped_bytes += (uint64_t)n * bytes;
}

/* ---- orphans ---- */

/* issued: by the slab; what it was counted with as it became an orphan. */
static void orphan_unlink_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, TsiTotals issued) {
    TSI_HOLDS(tsi_inc_lock(i));
    i->orphaned.objects -= issued.objects;
    i->orphaned.bytes -= issued.bytes;
    TsiSlab* b = tsi_slab(&a->space, slab_id);
    if (b->prev != 0) tsi_slab(&a->space, b->prev - 1)->next = b->next;
    else i->orphans = b->next;
    if (b->next != 0) tsi_slab(&a->space, b->next - 1)->prev = b->prev;
    tsi_late_leave_locked(a, i, slab_id);
    tsi_sub_relaxed(&i->slab_count, 1);
}

void tsi_orphan_link_locked(TsiArena* a, TsiInc* i, uint32_t slab_id, const TsiSlabSum* sum) {
    TSI_HOLDS(tsi_inc_lock(i));
    add(&i->orphaned, sum->issued);
    TsiSlab* b = tsi_slab(&a->space, slab_id);
    b->prev = 0;
    b->next = i->orphans;
    if (b->next != 0) tsi_slab(&a->space, b->next - 1)->prev = slab_id + 1;
    i->orphans = slab_id + 1;
    tsi_late_join_locked(a, i, slab_id, sum->live);
    tsi_add_relaxed(&i->slab_count, 1);
}

/* The tag goes from OWNED to ORPHAN of the incarnation; *sum is what the slab holds after that. */
static uint64_t make_orphan(TsiArena* a, TsiInc* i, unsigned cls, uint32_t slab_id, TsiSlabSum* sum) {
    TsiSpace* s = &a->space;
    _Atomic uint64_t* tag = &tsi_slab(s, slab_id)->tag;
    uint64_t old = tsi_load_seq(tag), flags;
    end_plain_frees(s, cls, slab_id);
    do {
        flags = old & TSI_SLAB_HANDLED;
        /* seq_cst, then the words: a freer sets its bit, then looks at the tag; one of us sees both */
    } while (!tsi_cas_seq(tag, &old, tsi_tag(tsi_tag_seq(old), i->index, TSI_SLAB_ORPHAN) | flags));
    *sum = tsi_slab_sum(s, cls, slab_id);
    add(&i->allocated, sum->issued);
    return old;
}

void tsi_slab_to_orphan(TsiArena* a, TsiInc* i, uint32_t slab_id) {
    TsiSlabSum sum;
    (void)make_orphan(a, i, tsi_chunk_class(&a->space, slab_id >> 8), slab_id, &sum);
    tsi_orphan_link_locked(a, i, slab_id, &sum);
}

void tsi_settle_drain(TsiSweep* w, uint32_t slab_id) {
    if (tsi_settle_if_empty(w, slab_id)) return;
    TsiArena* a = w->arena;
    TsiSpace* s = &a->space;
    unsigned cls = tsi_chunk_class(s, slab_id >> 8);
    TsiSlabSum sum;
    uint64_t old = make_orphan(a, w->inc, cls, slab_id, &sum);
    /* By counts: in a region marks come before them. */
    if (tsi_slab_is_empty(s, cls, slab_id) && claim(s, slab_id, TSI_SLAB_ORPHAN, &old)) {
        (void)renew_words(w, cls, slab_id, old);
        take_out(w, cls, slab_id);
        return;
    }
    tsi_orphan_link_locked(a, w->inc, slab_id, &sum);
    w->inc->pinned_slabs++;
    tsi_partial_claim(w, cls, slab_id);
}

void tsi_sweep_look(TsiSweep* w, unsigned cls) {
    tsi_sweep_count(w, offsetof(TsiClassCounters, close_scanned), cls, 1);
    if (w->tally != NULL) w->tally->c[tsi_class_row(cls)].scanned++;
    w->inc->closed_slabs++;
}

/* Other slabs are looked at in their heaps, and once; a large object is an orphan from birth. True the first time. */
static bool look_at_large(TsiSweep* w, unsigned cls, uint32_t slab_id) {
    _Atomic uint32_t* looked = &tsi_slab(&w->arena->space, slab_id)->gone;
    if (cls != TSI_CLASS_LARGE || tsi_load_relaxed(looked) != 0) return false;
    tsi_store_relaxed(looked, 1);
    tsi_sweep_look(w, cls);
    return true;
}

void tsi_settle_orphan_pages(TsiSweep* w) {
    TsiSpace* s = &w->arena->space;
    for (uint32_t at = w->inc->orphans; at != 0; at = tsi_slab(s, at - 1)->next) {
        unsigned cls = tsi_chunk_class(s, (at - 1) >> 8);
        w->inc->pinned_slabs += look_at_large(w, cls, at - 1);
        tsi_partial_claim(w, cls, at - 1);
    }
}

void tsi_settle_release_orphans(TsiSweep* w) {
    TsiSpace* s = &w->arena->space;
    for (uint32_t at = w->inc->orphans, next; at != 0; at = next) {
        uint32_t slab_id = at - 1;
        unsigned cls = tsi_chunk_class(s, slab_id >> 8);
        uint64_t old;
        next = tsi_slab(s, slab_id)->next;
        if (!claim(s, slab_id, TSI_SLAB_ORPHAN, &old)) {
            w->deferred++; /* a freer returns it, or a drain that is giving pages back looks again */
            w->deferred_bytes += tsi_slab_bytes(s, cls, slab_id);
            continue;
        }
        w->closing = look_at_large(w, cls, slab_id); /* others were counted when a heap was swept */
        TsiSlabSum sum = renew_words(w, cls, slab_id, old);
        orphan_unlink_locked(w->arena, w->inc, slab_id, sum.issued);
        add(&w->inc->released, sum.live);
        take_out(w, cls, slab_id);
    }
}

void tsi_slab_complete(TsiArena* a, TsiBinding* b, uint32_t slab_id, uint64_t tag) {
    TsiInc* i = tsi_inc(&a->phases, tsi_tag_index(tag));
    TsiSweep w = {.arena = a, .b = b, .inc = i};
    unsigned cls = tsi_chunk_class(&a->space, slab_id >> 8);
    uint32_t seq = tsi_tag_seq(tag);
    uint64_t to = tsi_tag(tsi_seq_next(seq), tsi_tag_index(tag), TSI_SLAB_PURGING);
    do { /* again if only the mark of an issued handle was added meanwhile */
        if (tsi_tag_state(tag) != TSI_SLAB_ORPHAN || tsi_tag_seq(tag) != seq) return;
    } while (!tsi_cas_seq(&tsi_slab(&a->space, slab_id)->tag, &tag, to));
    /* The claim keeps the incarnation's record: it counts this slab until we unlink it. */
    TsiSlabSum sum = renew_words(&w, cls, slab_id, tag);
    tsi_inc_take(i);
    i->pins++;
    orphan_unlink_locked(a, i, slab_id, sum.issued);
    tsi_late_note_locked(a, i);
    tsi_inc_give(i);
    take_out(&w, cls, slab_id);
    tsi_sweep_finish(&w);
    tsi_inc_unpin(a, b, i);
}

/* ---- giving back ---- */

enum { BATCH = 256 };

void tsi_sweep_purged(TsiSweep* w, unsigned cls, size_t bytes) {
    if (w->tally != NULL && tsi_space_gives_back(&w->arena->space)) w->tally->c[tsi_class_row(cls)].bytes += bytes;
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

static void count_bytes(TsiSweep* w, unsigned cls, size_t bytes) {
    tsi_sweep_purged(w, cls, bytes);
    w->purged += bytes;
}

/* The slab's pages are about to go to the system; a page that it shares is counted when it goes. */
static void count_gone(TsiSweep* w, uint32_t slab_id) {
    TsiSpace* s = &w->arena->space;
    unsigned cls = tsi_chunk_class(s, slab_id >> 8);
    tsi_add_relaxed(&w->arena->overflowed[tsi_class_row(cls)], 1);
    if (!tsi_parts_share(s, cls)) count_bytes(w, cls, s->classes->c[cls].slab_bytes);
}

/* To the stock as far as the budget allows, the others to the system. */
static void give_slabs(TsiSweep* w, uint32_t* ids, unsigned n) {
    TsiSpace* s = &w->arena->space;
    unsigned kept = w->at_once ? 0 : tsi_stock_choose(s, ids, n, w->learns);
    for (unsigned i = kept; i < n; i++) count_gone(w, ids[i]);
    if (kept < n) count_bytes(w, TSI_CLASS_PART, tsi_space_purge(s, ids + kept, n - kept));
    if (kept != 0) tsi_space_keep(s, ids, kept);
}

/* Halves of huge pages are never kept. One that goes without the other breaks its page, and the system must not join
 * it again. */
static void give_huge(TsiSweep* w, uint32_t* ids, unsigned n) {
    TsiSpace* s = &w->arena->space;
    tsi_sort_ids(ids, n);
    for (unsigned i = 0; i < n; i++) {
        uint32_t other = tsi_space_other_half(s, ids[i] >> 8);
        bool whole = (i > 0 && ids[i - 1] >> 8 == other) || (i + 1 < n && ids[i + 1] >> 8 == other);
        if (!whole && s->chunks[ids[i] >> 8].huge) tsi_space_avoid_huge(s, ids[i] >> 8);
        count_gone(w, ids[i]);
    }
    (void)tsi_space_purge(s, ids, n);
}

/* The first n, and halves of huge pages from there to the end. */
static void give_all(TsiSweep* w, uint32_t* ids, unsigned n, unsigned halves) {
    if (n != 0) give_slabs(w, ids, n);
    if (halves != BATCH) give_huge(w, ids + halves, BATCH - halves);
}

void tsi_sweep_finish(TsiSweep* w) {
    TsiArena* a = w->arena;
    TsiSpace* s = &a->space;
    uint32_t ids[BATCH];
    unsigned n = 0, halves = BATCH; /* halves of huge pages from the end on */
    tsi_uncharge(a, w->b, w->inc, w->uncharged);
    w->uncharged = 0;
    tsi_warm_look(a);
    if (!w->at_once) w->out = tsi_warm_put(a, w->b, w->out, w->learns);
    while (w->out != 0) {
        uint32_t id = w->out - 1;
        w->out = tsi_slab(s, id)->next;
        if (tsi_load_relaxed(&tsi_slab(s, id)->gen_base) >= TSI_GEN_LIMIT) {
            count_gone(w, id);
            tsi_slab_retire(a, id);
            continue;
        }
        if (tsi_chunk_class(s, id >> 8) == TSI_CLASS_HUGE) ids[--halves] = id;
        else ids[n++] = id;
        if (n < halves) continue;
        give_all(w, ids, n, halves);
        n = 0;
        halves = BATCH;
    }
    give_all(w, ids, n, halves);
    while (w->large != 0) {
        uint32_t id = w->large - 1;
        w->large = tsi_slab(s, id)->next;
        uint64_t gone = tsi_space_give_large(s, id, w->learns);
        w->purged += gone;
        tsi_sweep_purged(w, TSI_CLASS_LARGE, gone);
    }
    while (w->partial != 0) {
        for (n = 0; w->partial != 0 && n < BATCH; n++) {
            ids[n] = w->partial - 1;
            w->partial = tsi_load_relaxed(&tsi_slab(s, ids[n])->extra);
        }
        tsi_sort_ids(ids, n);
        tsi_partial_give(w, ids, n);
    }
    if (w->purged != 0 && tsi_space_gives_back(s)) tsi_add_relaxed(&w->inc->purged, w->purged);
    w->purged = 0;
}

/* ---- what vanished threads had claimed ---- */

void tsi_unlink_claimed(TsiArena* a, TsiInc* i) {
    for (uint32_t at = tsi_inc_era(i) != 0 ? i->orphans : 0, next; at != 0; at = next) {
        next = tsi_slab(&a->space, at - 1)->next;
        if (tsi_tag_state(tsi_load_relaxed(&tsi_slab(&a->space, at - 1)->tag)) != TSI_SLAB_PURGING) continue;
        unsigned cls = tsi_chunk_class(&a->space, (at - 1) >> 8);
        /* A region's life may have been ended by then. */
        TsiSlabSum sum = tsi_class_is_region(cls) ? tsi_region_told(tsi_region_issued(&a->space, at - 1))
                                                  : tsi_slab_sum(&a->space, cls, at - 1);
        orphan_unlink_locked(a, i, at - 1, sum.issued);
    }
}

void tsi_return_claimed(TsiArena* a, uint32_t slab_id) {
    TsiSpace* s = &a->space;
    unsigned cls = tsi_chunk_class(s, slab_id >> 8);
    uint32_t seq = tsi_tag_seq(tsi_load_relaxed(&tsi_slab(s, slab_id)->tag));
    /* Perhaps for a second time: who claimed it may have vanished before. */
    if (tsi_class_is_region(cls)) (void)tsi_region_end(s, slab_id);
    /* The claim dropped the flag that says whether handles were issued: look at the counts. */
    if (tsi_class_is_region(cls) || tsi_load_relaxed(&s->chunks[slab_id >> 8].counts_committed) != 0)
        raise_generations(a, cls, slab_id, ((seq - 1) & TSI_INC_MASK) == 0 ? seq - 2 : seq - 1);
    if (cls == TSI_CLASS_LARGE) (void)tsi_space_give_large(s, slab_id, false);
    else (void)tsi_space_purge(s, &slab_id, 1);
}
