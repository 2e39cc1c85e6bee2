/* pin.c - see pin.h. */
#include "heap/pin.h"

#include "account/charge.h"
#include "threads/bank.h"
#include "heap/records.h"

static uint32_t take_ends_if_drained_locked(TsiInc* i) {
    TSI_HOLDS(tsi_inc_lock(i));
    unsigned state = tsi_inc_state(i);
    if (i->drained || state < TSI_INC_CLOSED || i->heaps != 0 || tsi_load_relaxed(&i->slab_count) != 0) return 0;
    i->drained = true;
    uint32_t ends = i->ends;
    i->ends = 0;
    return ends;
}

/* Runs the cleanups, which are the program's: no bank is held meanwhile, and the binding may have been anywhere when
 * this returns, as after allocations. */
static void run_ends(TsiArena* a, uint32_t at) {
    TsiBankPause pause = tsi_bank_pause();
    while (at != 0) {
        TsiEnd e = *(TsiEnd*)tsi_table_at(&a->phases.ends, at - 1);
        tsi_table_give(&a->phases.ends, at - 1);
        e.fn(e.arg);
        at = e.next;
    }
    tsi_bank_resume(pause);
}

void tsi_inc_unpin(TsiArena* a, TsiBinding* b, TsiInc* i) {
    TsiLock* lock = tsi_inc_lock(i);
    tsi_inc_take(i);
    uint32_t ends = take_ends_if_drained_locked(i);
    if (ends != 0) {
        tsi_lock_give_probed(lock); /* still pinned by the caller */
        run_ends(a, ends);
        tsi_lock_take(lock);
    }
    bool reuse = --i->pins == 0 && i->drained;
    if (reuse) tsi_post_settled_locked(a, b, i);
    if (reuse) tsi_store_release(&i->word, TSI_INC_RELEASED); /* era 0: matches no reference */
    tsi_lock_give_probed(lock);
    if (reuse) tsi_record_give_inc(a, b, i->index);
}

bool tsi_inc_on_end(TsiArena* a, TsiRef ref, void (*fn)(void*), void* arg) {
    TsiInc* i = tsi_inc(&a->phases, tsi_ref_index(ref));
    uint32_t index;
    if (!tsi_table_take(&a->phases.ends, &index, 0)) return false;
    TsiEnd* e = tsi_table_at(&a->phases.ends, index);
    e->fn = fn;
    e->arg = arg;
    tsi_inc_take(i);
    bool ok = tsi_inc_era(i) == tsi_ref_era(ref) && tsi_inc_state(i) <= TSI_INC_ADVANCED;
    if (ok) {
        e->next = i->ends;
        i->ends = index + 1;
    }
    tsi_inc_give(i);
    if (!ok) tsi_table_give(&a->phases.ends, index);
    return ok;
}
