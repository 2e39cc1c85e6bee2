/* finish.c - see finish.h. */
#include "heap/finish.h"

#include "account/charge.h"
#include "threads/bank.h"
#include "heap/late_frees.h"
#include "heap/partial.h"
#include "heap/records.h"
#include "heap/put_off.h"
#include "heap/settle.h"
#include "heap/sweep.h"
#include "heap/warm.h"
#include "mem/handle.h"
#include "mem/large.h"
#include "mem/parts.h"
#include "mem/pool.h"
#include "mem/purge.h"
#include "mem/quarantine.h"
#include "mem/stock.h"

#include <string.h>

/* ---- giving back ---- */

enum { BATCH = 256 };

/* Counts bytes of a slab of the class that go to the system, for the close log and the incarnation.
 * [own thread, needs no lock] */
static void count_bytes(TsiSweep* sweep, unsigned cls, size_t bytes) {
    tsi_sweep_purged(sweep, cls, bytes);
    sweep->purged += bytes;
}

/* Counts a slab whose pages are about to go to the system; a page that it shares is counted when it goes.
 * [own thread, needs no lock] */
static void count_gone(TsiSweep* sweep, uint32_t slab_id) {
    TsiSpace* s = &sweep->arena->space;
    unsigned cls = tsi_class_of_slab(s, slab_id);
    if (tsi_parts_share(s, cls)) return;
    tsi_add_relaxed(&sweep->arena->overflowed[tsi_class_row(cls)], 1);
    count_bytes(sweep, cls, s->classes->c[cls].slab_bytes);
}

/* Gives the n slabs to the stock as far as the budget allows, with at_once none, the others to the system; counts these
 * in a->overflowed and sweep->purged, and for sweep->lends lends the stock their bytes first. Changes the order of the
 * ids. [holder of the slabs, no lock held] */
static void give_slabs(TsiSweep* sweep, uint32_t* ids, unsigned n) {
    TsiSpace* s = &sweep->arena->space;
    if (sweep->lends) {
        uint64_t bytes = 0;
        for (unsigned i = 0; i < n; i++) bytes += tsi_slab_class(s, ids[i])->slab_bytes;
        tsi_stock_lend(s, bytes);
    }
    unsigned kept = sweep->at_once ? 0 : tsi_stock_choose(s, ids, n, sweep->learns);
    for (unsigned i = kept; i < n; i++) count_gone(sweep, ids[i]);
    size_t shared =
        sweep->at_once ? tsi_space_purge(s, ids, n) : tsi_space_release(s, ids + kept, n - kept, sweep->learns);
    if (shared != 0) {
        tsi_add_relaxed(&sweep->arena->overflowed[TSI_CLASS_REGION], shared / tsi_os.page_bytes);
        count_bytes(sweep, TSI_CLASS_PART, shared);
    }
    if (kept != 0) tsi_space_keep(s, ids, kept);
}

/* Returns true if a slab of the chunk is next to ids[i], whose order is that of addresses.
 * [any thread, needs no lock] */
static bool is_beside(const uint32_t* ids, unsigned n, unsigned i, uint32_t chunk) {
    if (i > 0 && tsi_slab_chunk(ids[i - 1]) == chunk) return true;
    return i + 1 < n && tsi_slab_chunk(ids[i + 1]) == chunk;
}

/* Gives n halves of huge pages back to the system, counted as gone; they are never kept. A half that goes without the
 * other breaks its page, and the system must not join it again (tsi_space_avoid_huge). Sorts the ids.
 * [holder of the slabs, no lock held] */
static void give_huge(TsiSweep* sweep, uint32_t* ids, unsigned n) {
    TsiSpace* s = &sweep->arena->space;
    tsi_sort_ids(ids, n);
    for (unsigned i = 0; i < n; i++) {
        bool whole = is_beside(ids, n, i, tsi_space_other_half(tsi_slab_chunk(ids[i])));
        if (!whole && s->chunks[tsi_slab_chunk(ids[i])].huge) tsi_space_avoid_huge(s, tsi_slab_chunk(ids[i]));
        count_gone(sweep, ids[i]);
    }
    (void)tsi_space_purge(s, ids, n);
}

/* Gives back the first n slabs of ids, and halves of huge pages from `halves` to the end of the batch.
 * [holder of the slabs, no lock held] */
static void give_all(TsiSweep* sweep, uint32_t* ids, unsigned n, unsigned halves) {
    if (n != 0) give_slabs(sweep, ids, n);
    if (halves != BATCH) give_huge(sweep, ids + halves, BATCH - halves);
}

/* ---- pages that drains have left: put_off.h ---- */

/* Gives back the pages of the phase that the thread has remembered longest, and forgets it; b->put_off_count is not 0.
 * The phase may have ended since, and its record be another's: then nothing goes.
 * [own thread, no lock held, no bracket open] */
static void thin_oldest(TsiBinding* b) {
    TsiPutOff put_off = b->put_off[b->put_off_first];
    b->put_off_first = (uint8_t)((b->put_off_first + 1) % TSI_PUT_OFF_PHASES);
    b->put_off_count--;
    b->put_off_bytes -= put_off.bytes;
    tsi_inc_thin(b->arena, b, tsi_inc(&b->arena->phases, put_off.index), put_off.era, 0);
}

/* Remembers the phase of a sweep that has put sweep->put_off bytes of pages off, and sets that to 0; before that gives
 * back pages of the oldest ones while TSI_PUT_OFF_PHASES are remembered or the bytes would pass TSI_PUT_OFF_BYTES.
 * sweep->b is not NULL. [own thread, no lock held, no bracket open] */
static void remember(TsiSweep* sweep) {
    TsiBinding* b = sweep->b;
    uint32_t bytes = sweep->put_off;
    sweep->put_off = 0;
    while (b->put_off_count == TSI_PUT_OFF_PHASES || b->put_off_bytes + bytes > TSI_PUT_OFF_BYTES) thin_oldest(b);
    unsigned at = (b->put_off_first + b->put_off_count++) % TSI_PUT_OFF_PHASES;
    b->put_off[at] = (TsiPutOff){tsi_inc_era(sweep->inc), sweep->inc->index, bytes};
    b->put_off_bytes += bytes;
}

void tsi_put_off_no_more(TsiBinding* b) {
    while (b->put_off_count != 0) thin_oldest(b);
}

/* ---- the end of a sweep ---- */

/* Returns a slab, an orphan again with `tag`, that others have completed or released while its pages went.
 * [any thread, no lock held, no bracket open] */
static void look_again(TsiSweep* sweep, uint32_t slab_id, uint64_t tag) {
    TsiSpace* s = &sweep->arena->space;
    bool released = tsi_inc_state(sweep->inc) == TSI_INC_RELEASED;
    if (released || tsi_slab_is_empty(s, tsi_class_of_slab(s, slab_id), slab_id))
        tsi_slab_complete(sweep->arena, sweep->b, slab_id, tag);
}

void tsi_sweep_finish(TsiSweep* sweep) {
    TsiArena* a = sweep->arena;
    TsiSpace* s = &a->space;
    uint32_t ids[BATCH];
    unsigned n = 0, halves = BATCH; /* halves of huge pages from the end on */
    tsi_sweep_uncharge(sweep);
    tsi_warm_poll(a);

    if (TSI_UNLIKELY(s->quarantine.most != 0)) sweep->out = tsi_quarantine_pass(s, sweep->out, false);
    /* lent slabs are anybody's: a store would keep them for its classes */
    if (!sweep->at_once && !sweep->lends) sweep->out = tsi_warm_put(a, sweep->b, sweep->out, sweep->learns);
    while (sweep->out != 0) {
        uint32_t id = sweep->out - 1;
        sweep->out = tsi_slab(s, id)->next;
        if (tsi_load_relaxed(&tsi_slab(s, id)->gen_base) >= TSI_GEN_LIMIT) {
            count_gone(sweep, id);
            tsi_slab_retire(a, id);
            continue;
        }
        if (tsi_class_of_slab(s, id) == TSI_CLASS_HUGE) ids[--halves] = id;
        else ids[n++] = id;
        if (n < halves) continue;
        give_all(sweep, ids, n, halves);
        n = 0;
        halves = BATCH;
    }
    give_all(sweep, ids, n, halves);

    while (sweep->large != 0) {
        uint32_t id = sweep->large - 1;
        sweep->large = tsi_slab(s, id)->next;
        uint64_t gone = tsi_space_give_large(s, id, sweep->learns);
        sweep->purged += gone;
        tsi_sweep_purged(sweep, TSI_CLASS_LARGE, gone);
    }

    if (sweep->gives) tsi_space_give_end(s);
    sweep->gives = false;
    while (sweep->partial != 0) {
        for (n = 0; sweep->partial != 0 && n < BATCH; n++) {
            ids[n] = sweep->partial - 1;
            sweep->partial = tsi_load_relaxed(&tsi_slab(s, ids[n])->extra);
        }
        tsi_sort_ids(ids, n);
        tsi_partial_give(sweep, ids, n);
        for (unsigned k = 0; k < n; k++) look_again(sweep, ids[k], tsi_partial_let_go(s, ids[k]));
    }

    if (sweep->put_off != 0) remember(sweep);
    if (sweep->purged != 0 && tsi_space_gives_back(s)) tsi_add_relaxed(&sweep->inc->purged, sweep->purged);
    sweep->purged = 0;
}

void tsi_slab_complete(TsiArena* a, TsiBinding* b, uint32_t slab_id, uint64_t tag) {
    TsiSweep sweep = {.arena = a, .b = b, .inc = tsi_inc(&a->phases, tsi_tag_index(tag))};
    /* A program that frees large objects singly takes others soon: if memory that went back is missed, the budget
     * rises. */
    sweep.learns = tsi_class_of_slab(&a->space, slab_id) == TSI_CLASS_LARGE;
    if (!tsi_settle_complete(&sweep, slab_id, tag)) return;
    tsi_sweep_finish(&sweep);
    tsi_changed(a);
    tsi_inc_unpin(a, b, sweep.inc);
}

/* ---- once more ---- */

void tsi_sweep_whole(TsiSweep* sweep, TsiBinding* only) {
    TsiInc* inc = sweep->inc;
    TSI_HOLDS(tsi_inc_lock(inc));
    /* a record without era belongs to the thread that opens it next, which sets its fields without the lock */
    bool any = tsi_inc_era(inc) != 0 && (inc->heaps != 0 || inc->orphans != 0);
    if (any) {
        inc->pins++;
        tsi_sweep_locked(sweep, only);
        if (tsi_inc_state(inc) != TSI_INC_ACTIVE) tsi_post_swept_locked(sweep->arena, sweep->b, inc);
        tsi_late_note_locked(sweep->arena, inc);
        tsi_sweep_uncharge(sweep);
    }

    tsi_phase_unlock(inc);
    tsi_banks_give(sweep->arena, sweep->banks);
    if (!any) return;
    tsi_sweep_finish(sweep);
    if (sweep->more) tsi_sweep_later(sweep->arena, sweep->b, inc);
    else tsi_inc_unpin(sweep->arena, sweep->b, inc);
}

unsigned tsi_inc_sweep(TsiArena* a, TsiBinding* b, TsiInc* inc, uint64_t era, uint64_t most) {
    TsiSweep sweep = {.arena = a, .b = b, .inc = inc, .most = most};
    tsi_phase_lock(inc);
    bool ended = tsi_inc_era(inc) == era && era != 0 && tsi_inc_state(inc) != TSI_INC_ACTIVE;
    if (ended) tsi_sweep_whole(&sweep, NULL);
    else tsi_phase_unlock(inc);
    return sweep.interrupts;
}

void tsi_inc_thin(TsiArena* a, TsiBinding* b, TsiInc* inc, uint64_t era, uint64_t most) {
    TsiSweep sweep = {.arena = a, .b = b, .inc = inc, .most = most};
    tsi_phase_lock(inc);
    unsigned state = tsi_inc_state(inc);
    bool drains = tsi_inc_era(inc) == era && (state == TSI_INC_ADVANCED || state == TSI_INC_CLOSED);
    drains = drains && era != 0 && inc->orphans != 0;
    if (drains) {
        inc->pins++;
        tsi_settle_orphan_pages(&sweep);
    }
    tsi_phase_unlock(inc);
    if (!drains) return;
    tsi_sweep_finish(&sweep);
    tsi_inc_unpin(a, b, inc);
}

/* ---- incarnations that wait for a sweep ---- */

bool tsi_unswept_put_locked(TsiArena* a, TsiInc* inc) {
    TSI_HOLDS(&a->phases.ring_lock);
    if (tsi_load_relaxed(&inc->unswept)) return false;
    tsi_store_relaxed(&inc->unswept, true);
    inc->next_unswept = a->unswept;
    a->unswept = inc->index;
    tsi_store_relaxed(&a->has_unswept, true);
    return true;
}

void tsi_sweep_later(TsiArena* a, TsiBinding* b, TsiInc* inc) {
    tsi_lock_take(&a->phases.ring_lock);
    bool put = tsi_unswept_put_locked(a, inc);
    tsi_lock_give(&a->phases.ring_lock);
    if (!put) tsi_inc_unpin(a, b, inc);
}

/* Takes the incarnation that was put last off the list, with its pin, which the caller must drop. Returns it, or NULL
 * if there is none; takes no lock then, as far as has_unswept tells. [any thread, no ring lock held] */
static TsiInc* unswept_take(TsiArena* a) {
    if (TSI_LIKELY(!tsi_load_relaxed(&a->has_unswept))) return NULL;
    tsi_lock_take(&a->phases.ring_lock);
    TsiInc* inc = a->unswept != 0 ? tsi_inc(&a->phases, a->unswept) : NULL;
    if (inc != NULL) {
        a->unswept = inc->next_unswept;
        tsi_store_relaxed(&inc->unswept, false);
    }
    if (a->unswept == 0) tsi_store_relaxed(&a->has_unswept, false);
    tsi_lock_give(&a->phases.ring_lock);
    return inc;
}

/* Sweeps an incarnation taken from the list, or `most` bytes of it (0: all), and drops the list's pin. Returns the
 * number of membarriers that took. [any thread, no lock held, no bracket open] */
static unsigned sweep_unswept(TsiArena* a, TsiBinding* b, TsiInc* inc, uint64_t most) {
    unsigned interrupts = tsi_inc_sweep(a, b, inc, tsi_inc_era(inc), most);
    tsi_inc_unpin(a, NULL, inc); /* the list's pin; to the table, where the ring takes the next one */
    return interrupts;
}

unsigned tsi_sweep_unswept(TsiArena* a, TsiBinding* b) {
    unsigned interrupts = 0;
    for (TsiInc* inc; (inc = unswept_take(a)) != NULL;) interrupts += sweep_unswept(a, b, inc, 0);
    return interrupts;
}

void tsi_sweep_piece(TsiArena* a, TsiBinding* b) {
    TsiInc* inc = unswept_take(a);
    if (TSI_UNLIKELY(inc != NULL)) (void)sweep_unswept(a, b, inc, TSI_PIECE_BYTES);
}
