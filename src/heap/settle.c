/*
 * settle.c - claims, totals and return of single slabs.
 *
 * The thread that moves a slab's tag to PURGING by compare-exchange returns the slab; the same exchange raises seq.
 * Then it exchanges the remote words for fresh ones under the new seq: a racing free either got its bit in before that
 * (it counts as freed) or fails its compare-exchange (it is refused). Words are reset only when the slab is taken
 * again.
 *
 * Orphans are chained on their incarnation under the stripe, and claimed and unlinked while it is held: whoever holds
 * the stripe can count them. Only PARTIAL ones, whose pages go meanwhile, are left alone by a sweep.
 */
#include "heap/settle.h"

#include "base/check.h"
#include "heap/late_frees.h"
#include "heap/partial.h"
#include "heap/put_off.h"
#include "heap/scrub.h"
#include "account/refuse.h"
#include "mem/handle.h"
#include "mem/large.h"
#include "mem/parts.h"
#include "mem/pool.h"
#include "mem/purge.h"
#include "mem/region.h"
#include "mem/stock.h"

/* ---- claims ---- */

/* Raises the slab's base of generations (gen_base) above every count used under old_seq, a region's by one, so that
 * handles of that incarnation never match again; at most to TSI_GEN_LIMIT, from where the slab issues no more.
 * [slab claimed] */
static void raise_generations(TsiArena* a, unsigned cls, uint32_t slab_id, uint32_t old_seq) {
    TsiSpace* s = &a->space;
    const TsiClass* shape = &s->classes->c[cls];
    uint32_t most = 0;
    if (tsi_class_is_region(cls)) { /* handles of a life have one generation */
        tsi_add_relaxed(&tsi_slab(s, slab_id)->gen_base, 1);
        return;
    }

    for (uint32_t i = 0, first = tsi_first_line(shape, slab_id); i < 1u << shape->lines_log2; i++) {
        _Atomic uint64_t* counts = tsi_counts(s, first + i);
        for (unsigned slot = 0; slot < TSI_LINE_SLOTS; slot++) {
            uint64_t w = tsi_load_relaxed(&counts[slot]);
            if ((uint32_t)(w >> 32) == (old_seq & TSI_INC_MASK) && (uint32_t)w > most) most = (uint32_t)w;
        }
    }

    TsiSlab* slab = tsi_slab(s, slab_id);
    uint64_t base = (uint64_t)tsi_load_relaxed(&slab->gen_base) + ((uint64_t)most + 1) / 2 + 1;
    /* release, after the claim: pairs with tsi_generation_of (state/names.c) */
    tsi_store_release(&slab->gen_base, base < TSI_GEN_LIMIT ? (uint32_t)base : TSI_GEN_LIMIT);
}

/* Returns the tag of a slab that has left the incarnation of tag `old` and is being returned. The tag keeps the flag of
 * handles until their generations are raised (names.h, N1). [any thread, needs no lock] */
static uint64_t purging(uint64_t old) {
    uint64_t handled = old & TSI_SLAB_HANDLED;
    return tsi_tag(tsi_seq_next(tsi_tag_seq(old)), tsi_tag_index(old), TSI_SLAB_PURGING) | handled;
}

/* Claims a slab in `state`: moves its tag to PURGING under the next seq. Sets *old to its tag before. Returns false if
 * it is in another state. [stripe held] */
static bool claim(TsiSpace* s, uint32_t slab_id, unsigned state, uint64_t* old) {
    _Atomic uint64_t* tag = &tsi_slab(s, slab_id)->tag;
    *old = tsi_load_seq(tag);
    while (tsi_tag_state(*old) == state)
        if (tsi_cas_seq(tag, old, purging(*old))) return true; /* decides who returns the slab */
    return false;
}

/* Takes the slab from its heap: sets heap_at, and of lines also home, to 0, so that from now on the owner's frees look
 * at the tag. The heap is SEIZED, or DEAD and the slab skipped. [stripe held, or fork child] */
static void end_plain_frees(TsiSpace* s, unsigned cls, uint32_t slab_id) {
    const TsiClass* shape = &s->classes->c[cls];
    bool region = tsi_class_is_region(cls);
    if (region) tsi_store_relaxed(&tsi_region(s, slab_id)->heap_at, 0);
    for (uint32_t i = 0, first = tsi_first_line(shape, slab_id); !region && i < 1u << shape->lines_log2; i++) {
        tsi_store_relaxed(&tsi_line(s, first + i)->heap_at, 0);
        tsi_store_relaxed(&tsi_line(s, first + i)->home, 0);
    }
}

/* Gives a claimed slab's remote words the new seq, or ends its region's life, and raises its generations if it has
 * issued handles. Zeroes what lives there where the allocator fills, and counts frees that met as refused. old: its tag
 * before. Returns the sum of what it held at that instant, with `twice` 0. [slab claimed] */
static TsiSlabSum renew_words(TsiSweep* sweep, unsigned cls, uint32_t slab_id, uint64_t old) {
    TsiSpace* s = &sweep->arena->space;
    const TsiClass* shape = &s->classes->c[cls];
    uint32_t seq = tsi_seq_next(tsi_tag_seq(old));
    TsiSlabSum sum = {{0, 0}, {0, 0}, 0};
    bool region = tsi_class_is_region(cls);
    if (TSI_UNLIKELY(sweep->arena->fill)) tsi_scrub_live(s, cls, slab_id);
    if (region) sum = tsi_region_told(tsi_region_end(s, slab_id));

    for (uint32_t i = 0, first = tsi_first_line(shape, slab_id); !region && i < 1u << shape->lines_log2; i++) {
        _Atomic uint64_t* r = tsi_remote(s, first + i);
        uint64_t w0 = tsi_swap_seq(&r[0], tsi_remote_fresh(0, seq)); /* decides each racing free */
        uint64_t w1 = tsi_swap_seq(&r[1], tsi_remote_fresh(1, seq));
        uint64_t issued = tsi_line_handed_out(tsi_line(s, first + i));
        tsi_line_sum(s, cls, first + i, issued, tsi_remote_bits(w0, w1), &sum);
    }

    for (; sum.twice != 0; sum.twice--) tsi_refuse_count(sweep->arena, TSI_REFUSED_LATE);
    if ((old & TSI_SLAB_HANDLED) != 0) raise_generations(sweep->arena, cls, slab_id, tsi_tag_seq(old));
    return sum;
}

/* Puts a claimed slab into the hands of the sweep, sweep->out or sweep->large, and counts it there: `slabs`, `regions`,
 * `bytes` and `uncharged`, and for an end its class. tsi_sweep_finish gives it back. [stripe held, slab claimed] */
static void take_out(TsiSweep* sweep, unsigned cls, uint32_t slab_id) {
    if (!sweep->gives) tsi_space_give_begin(&sweep->arena->space);
    sweep->gives = true;
    TsiSlab* slab = tsi_slab(&sweep->arena->space, slab_id);
    uint32_t* chain = cls == TSI_CLASS_LARGE ? &sweep->large : &sweep->out;
    slab->next = *chain;
    *chain = slab_id + 1;
    if (sweep->closing) tsi_sweep_count(sweep, offsetof(TsiClassCounters, close_returned), cls, 1);
    size_t bytes = tsi_slab_bytes(&sweep->arena->space, cls, slab_id);
    if (sweep->tally != NULL) sweep->tally->c[tsi_class_row(cls)].returned++;
    sweep->slabs++;
    sweep->regions += tsi_class_is_region(cls);
    sweep->bytes += bytes;
    sweep->uncharged += bytes;
}

void tsi_settle_release(TsiSweep* sweep, uint32_t slab_id) {
    unsigned cls = tsi_class_of_slab(&sweep->arena->space, slab_id);
    uint64_t old;
    bool ok = claim(&sweep->arena->space, slab_id, TSI_SLAB_OWNED, &old);
    TSI_CHECK(ok);
    end_plain_frees(&sweep->arena->space, cls, slab_id);
    TsiSlabSum sum = renew_words(sweep, cls, slab_id, old);
    tsi_totals_add(&sweep->inc->allocated, sum.issued);
    tsi_totals_add(&sweep->inc->released, sum.live);
    take_out(sweep, cls, slab_id);
}

bool tsi_settle_if_empty(TsiSweep* sweep, uint32_t slab_id) {
    TsiSpace* s = &sweep->arena->space;
    unsigned cls = tsi_class_of_slab(s, slab_id);
    uint64_t old;
    if (!tsi_slab_is_empty(s, cls, slab_id) || !claim(s, slab_id, TSI_SLAB_OWNED, &old)) return false;
    end_plain_frees(s, cls, slab_id);
    tsi_totals_add(&sweep->inc->allocated, renew_words(sweep, cls, slab_id, old).issued);
    take_out(sweep, cls, slab_id);
    return true;
}

/* ---- orphans ---- */

/* Makes an OWNED slab an ORPHAN of the incarnation, which is on no list yet, with frees of its owner by the tag from
 * now on; adds what was issued to inc->allocated. *sum is what it holds after that. Returns its tag before.
 * [stripe held, or fork child] */
static uint64_t make_orphan(TsiArena* a, TsiInc* inc, unsigned cls, uint32_t slab_id, TsiSlabSum* sum) {
    TsiSpace* s = &a->space;
    _Atomic uint64_t* tag = &tsi_slab(s, slab_id)->tag;
    uint64_t old = tsi_load_seq(tag), flags;
    end_plain_frees(s, cls, slab_id);
    do {
        flags = old & TSI_SLAB_HANDLED;
        /* seq_cst, then the words: a freer sets its bit, then looks at the tag; one of us sees both */
    } while (!tsi_cas_seq(tag, &old, tsi_tag(tsi_tag_seq(old), inc->index, TSI_SLAB_ORPHAN) | flags));
    *sum = tsi_slab_sum(s, cls, slab_id); /* whoever frees the last object waits for the stripe */
    tsi_totals_add(&inc->allocated, sum->issued);
    return old;
}

void tsi_slab_to_orphan(TsiArena* a, TsiInc* inc, uint32_t slab_id) {
    TsiSlabSum sum;
    (void)make_orphan(a, inc, tsi_class_of_slab(&a->space, slab_id), slab_id, &sum);
    tsi_orphan_link_locked(a, inc, slab_id, &sum);
}

void tsi_settle_drain(TsiSweep* sweep, uint32_t slab_id) {
    if (tsi_settle_if_empty(sweep, slab_id)) return;
    TsiArena* a = sweep->arena;
    TsiSpace* s = &a->space;
    unsigned cls = tsi_class_of_slab(s, slab_id);
    TsiSlabSum sum;
    uint64_t old = make_orphan(a, sweep->inc, cls, slab_id, &sum);
    /* By counts: in a region marks come before them. */
    if (tsi_slab_is_empty(s, cls, slab_id) && claim(s, slab_id, TSI_SLAB_ORPHAN, &old)) {
        (void)renew_words(sweep, cls, slab_id, old);
        take_out(sweep, cls, slab_id);
        return;
    }
    tsi_orphan_link_locked(a, sweep->inc, slab_id, &sum);
    sweep->inc->pinned_slabs++;
    if (!sweep->puts_off) tsi_partial_claim(sweep, cls, slab_id); /* else with all orphans: tsi_settle_orphan_pages */
}

/* Counts a large object, an orphan from birth, as looked at. Returns true the first time, false for it later and for
 * other slabs, which are looked at in their heaps, and once. [stripe held] */
static bool look_at_large(TsiSweep* sweep, unsigned cls, uint32_t slab_id) {
    _Atomic uint32_t* looked = &tsi_slab(&sweep->arena->space, slab_id)->gone;
    if (cls != TSI_CLASS_LARGE || (tsi_load_relaxed(looked) & TSI_LARGE_LOOKED) != 0) return false;
    /* relaxed: a flag for the stripe's holders; the units beside it change under the pool's lock */
    (void)atomic_fetch_or_explicit(looked, TSI_LARGE_LOOKED, memory_order_relaxed);
    tsi_sweep_poll(sweep, cls);
    return true;
}

/* Returns true if the pages of the orphans without an object are fewer than TSI_PUT_OFF_PHASE_BYTES, and sets
 * sweep->put_off to their bytes; false, with put_off as it was, otherwise. [stripe held] */
static bool puts_off(TsiSweep* sweep) {
    TsiSpace* s = &sweep->arena->space;
    size_t bytes = 0;
    for (uint32_t at = sweep->inc->orphans; at != 0 && bytes < TSI_PUT_OFF_PHASE_BYTES; at = tsi_slab(s, at - 1)->next)
        bytes += tsi_partial_dead_bytes(s, tsi_class_of_slab(s, at - 1), at - 1);
    if (bytes >= TSI_PUT_OFF_PHASE_BYTES) return false;
    sweep->put_off = (uint32_t)bytes;
    return true;
}

void tsi_settle_orphan_pages(TsiSweep* sweep) {
    TsiSpace* s = &sweep->arena->space;
    bool later = sweep->puts_off && puts_off(sweep);
    uint32_t at = sweep->most != 0 && sweep->inc->thin_next != 0 ? sweep->inc->thin_next : sweep->inc->orphans;
    for (; at != 0 && !tsi_sweep_is_through(sweep); at = tsi_slab(s, at - 1)->next) {
        unsigned cls = tsi_class_of_slab(s, at - 1);
        sweep->looked += tsi_slab_bytes(s, cls, at - 1);
        sweep->inc->pinned_slabs += look_at_large(sweep, cls, at - 1);
        if (!later) tsi_partial_claim(sweep, cls, at - 1);
    }
    sweep->inc->thin_next = at;
}

void tsi_settle_release_orphans(TsiSweep* sweep) {
    TsiSpace* s = &sweep->arena->space;
    for (uint32_t at = sweep->inc->orphans, next; at != 0; at = next) {
        uint32_t slab_id = at - 1;
        unsigned cls = tsi_class_of_slab(s, slab_id);
        uint64_t old;

        next = tsi_slab(s, slab_id)->next;
        if (!claim(s, slab_id, TSI_SLAB_ORPHAN, &old)) {
            sweep->deferred++; /* a drain is giving pages back, and looks again */
            sweep->deferred_bytes += tsi_slab_bytes(s, cls, slab_id);
            continue;
        }

        sweep->closing = look_at_large(sweep, cls, slab_id); /* others were counted when a heap was swept */
        TsiSlabSum sum = renew_words(sweep, cls, slab_id, old);
        tsi_orphan_unlink_locked(sweep->arena, sweep->inc, slab_id, sum.issued);
        tsi_totals_add(&sweep->inc->released, sum.live);
        take_out(sweep, cls, slab_id);
    }
}

bool tsi_settle_complete(TsiSweep* sweep, uint32_t slab_id, uint64_t tag) {
    TsiArena* a = sweep->arena;
    unsigned cls = tsi_class_of_slab(&a->space, slab_id);
    _Atomic uint64_t* now = &tsi_slab(&a->space, slab_id)->tag;
    uint32_t seq = tsi_tag_seq(tag);
    tsi_space_give_begin(&a->space);
    sweep->gives = true;
    bool fast = tsi_lock_take_probed(tsi_inc_lock(sweep->inc));

    do { /* again if only the mark of an issued handle was added meanwhile */
        if (tsi_tag_state(tag) != TSI_SLAB_ORPHAN || tsi_tag_seq(tag) != seq) {
            tsi_phase_unlock(sweep->inc);
            tsi_space_give_end(&a->space);
            return false;
        }
    } while (!tsi_cas_seq(now, &tag, purging(tag)));

    if (fast) sweep->inc->lock_fast++; /* the record may have been another phase's until now */
    else sweep->inc->lock_contended++;
    TsiSlabSum sum = renew_words(sweep, cls, slab_id, tag);
    sweep->inc->pins++;
    tsi_orphan_unlink_locked(a, sweep->inc, slab_id, sum.issued);
    tsi_totals_add(&sweep->inc->released, sum.live); /* 0 but for a released one */
    tsi_late_post_locked(a, sweep->inc);
    take_out(sweep, cls, slab_id);
    tsi_sweep_uncharge(sweep);
    tsi_phase_unlock(sweep->inc);
    return true;
}

/* ---- what vanished threads had claimed ---- */

void tsi_return_claimed(TsiArena* a, uint32_t slab_id) {
    TsiSpace* s = &a->space;
    unsigned cls = tsi_class_of_slab(s, slab_id);
    uint64_t tag = tsi_load_relaxed(&tsi_slab(s, slab_id)->tag);
    /* both perhaps for a second time: the claimer may have vanished behind them */
    if (tsi_class_is_region(cls)) (void)tsi_region_end(s, slab_id);
    if ((tag & TSI_SLAB_HANDLED) != 0) raise_generations(a, cls, slab_id, tsi_seq_before(tsi_tag_seq(tag)));
    if (cls == TSI_CLASS_LARGE) (void)tsi_space_give_large(s, slab_id, false);
    else (void)tsi_space_purge(s, &slab_id, 1);
}

void tsi_orphan_unlink_locked(TsiArena* a, TsiInc* inc, uint32_t slab_id, TsiTotals issued) {
    TSI_HOLDS(tsi_inc_lock(inc));
    inc->orphaned.objects -= issued.objects;
    inc->orphaned.bytes -= issued.bytes;
    TsiSlab* slab = tsi_slab(&a->space, slab_id);
    if (slab->prev != 0) tsi_slab(&a->space, slab->prev - 1)->next = slab->next;
    else inc->orphans = slab->next;
    if (slab->next != 0) tsi_slab(&a->space, slab->next - 1)->prev = slab->prev;
    if (inc->thin_next == slab_id + 1) inc->thin_next = slab->next;
    tsi_late_leave_locked(a, inc, slab_id);
    tsi_sub_relaxed(&inc->slab_count, 1);
}

void tsi_orphan_link_locked(TsiArena* a, TsiInc* inc, uint32_t slab_id, const TsiSlabSum* sum) {
    TSI_HOLDS(tsi_inc_lock(inc));
    inc->orphaned.objects += sum->issued.objects;
    inc->orphaned.bytes += sum->issued.bytes;
    TsiSlab* slab = tsi_slab(&a->space, slab_id);
    slab->prev = 0;
    slab->next = inc->orphans;
    if (slab->next != 0) tsi_slab(&a->space, slab->next - 1)->prev = slab_id + 1;
    inc->orphans = slab_id + 1;
    tsi_late_join_locked(a, inc, slab_id, sum->live);
    tsi_add_relaxed(&inc->slab_count, 1);
}

void tsi_skipped_add_locked(TsiArena* a, TsiInc* inc, uint32_t slab_id, int n) {
    TSI_HOLDS(tsi_inc_lock(inc));
    uint64_t bytes = tsi_slab_bytes(&a->space, tsi_class_of_slab(&a->space, slab_id), slab_id);
    tsi_add_relaxed(&inc->slab_count, (uint32_t)n);
    inc->skipped += (uint32_t)n;
    inc->skipped_bytes += (uint64_t)n * bytes;
}

void tsi_slab_retire(TsiArena* a, uint32_t slab_id) {
    TsiSpace* s = &a->space;
    const TsiClass* shape = tsi_slab_class(s, slab_id);
    _Atomic uint64_t* tag = &tsi_slab(s, slab_id)->tag;
    if (tsi_slab_shares(s, slab_id)) {
        tsi_parts_retire(s, slab_id);
    } else {
        tsi_space_purge_pages(s, tsi_slab_payload(s, shape, slab_id), shape->slab_bytes);
        /* release: as in tsi_slab_turn */
        tsi_store_release(tag, tsi_tag(tsi_tag_seq(tsi_load_relaxed(tag)), 0, TSI_SLAB_RETIRED));
        tsi_sub_relaxed(&s->committed_bytes, shape->slab_bytes);
    }
    tsi_add_relaxed(&a->retired_slabs, 1);
}
