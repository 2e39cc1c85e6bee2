/*
 * bank.h - shared mode (option `shared`): threads allocate in the name of one of a few threads that do not exist.
 *
 * A bank is a binding of no thread behind a lock. The lock's holder acts as the binding's thread, and allocates and
 * frees there by the ordinary path: heaps, rooms, brackets, inboxes, warm slabs and their rules are those of owned
 * mode, because the lock hands everything that a thread keeps from one holder to the next. A thread's own binding keeps
 * its scopes, domains and samples, but no heap. So a free that finds the bank held does not wait: it frees like another
 * thread, by one compare-exchange.
 *
 *   gathered   all threads allocate in bank 0: few slabs
 *   spread     a thread allocates in the bank of its number, of four
 *
 * A controller moves the allocator between the two by the share of allocations that had to wait for their bank.
 *
 * Invariants
 *   L1  A thread holds one bank, or, in a sweep, those that tsi_banks_take has given it. No function of the program
 *       runs while it does: cleanups run between tsi_bank_pause and tsi_bank_resume. Others may have used the bank's
 *       binding in between, as if a cleanup had allocated in owned mode.
 *   L2  A sweep that holds a bank is inside none of its brackets, and nobody else is: the bank's heaps are the
 *       sweeper's own (S3 of sweep.c), so its receipt is exact and needs no membarrier.
 *   L3  Every wait for a bank ends: an allocation goes on to another bank, and a sweep does without, as in owned mode,
 *       where it leaves an owner what the owner is inside of. So a thread that is stopped inside of a bank holds up
 *       others for moments. (Allocations wait only when stopped threads hold all four, and a thread that has run a
 *       function of the program waits for its own bank.)
 *   L4  The contents of a bank do not belong to the thread that forks: a child drops the banks, whose heaps lose their
 *       owner there.
 */
#ifndef TSI_THREADS_BANK_H
#define TSI_THREADS_BANK_H

#include "threads/registry.h"

/* Returns the bank's binding, NULL if it was never used. [bank held] */
TSI_INLINE TsiBinding* tsi_bank_binding(const TsiBank* bank) { return tsi_load_relaxed(&bank->binding); }

/* Returns the bank that the thread with the binding `own` allocates in: by own->bank, the banks it has passed over,
 * and, while scan.spread is set, its index too. Does not take it. [own thread, needs no lock] */
TSI_INLINE TsiBank* tsi_bank_chosen(const TsiBinding* own) {
    TsiArena* a = own->arena;
    uint32_t n = TSI_UNLIKELY(tsi_load_relaxed(&a->scan.spread) != 0) ? own->index : 0;
    return &a->bank[(n + own->bank) % TSI_SHARED_BANKS];
}
/* Makes the bank's binding tsi_tls.binding, and keeps the thread's own, which is at hand, in tsi_tls.own; sets
 * tsi_tls.bank. The thread has just taken the bank's lock, and holds no other bank; tsi_bank_leave undoes both.
 * [bank held] */
TSI_INLINE void tsi_bank_begin(TsiBank* bank) {
    TSI_ASSERT(tsi_tls.bank == NULL && tsi_tls.serial == tsi_tls.binding->arena->serial);
    tsi_tls.own = tsi_tls.binding;
    tsi_tls.binding = tsi_bank_binding(bank);
    tsi_tls.bank = bank;
}
/* Takes the lock of the bank that tsi_bank_chosen names, and enters it (tsi_bank_begin), if it is free and has a
 * binding; never waits. Returns true; false, with nothing taken, if not, or if the thread holds a bank. *out is that
 * bank either way. [own thread, needs no lock] */
TSI_INLINE bool tsi_bank_try(const TsiBinding* own, TsiBank** out) {
    TsiBank* bank = *out = tsi_bank_chosen(own);
    if (tsi_tls.bank != NULL || tsi_load_relaxed(&bank->binding) == NULL || !tsi_lock_try(&bank->lock)) return false;
    tsi_bank_begin(bank);
    return true;
}
/* Waits for the bank that tsi_bank_chosen names and takes its lock; passes on to the next bank, for good, if a thread
 * keeps it for 20 ms. Makes the bank's binding if it has none, and makes it tsi_tls.binding in place of `own`, the
 * calling thread's. A wait counts for class `cls` and phase `target`. Returns the bank, which tsi_bank_leave gives
 * back; NULL, with no lock held, without memory. [own thread, no lock held] */
TsiBank* tsi_bank_enter(TsiBinding* own, unsigned cls, TsiRef target);
/* Puts the thread's own binding, tsi_tls.own, at hand again, sets tsi_tls.bank to NULL, and gives the bank's lock back.
 * bank: the one that tsi_bank_begin has entered. [bank held] */
TSI_INLINE void tsi_bank_leave(TsiBank* bank) {
    tsi_tls.binding = tsi_tls.own;
    tsi_tls.bank = NULL;
    tsi_lock_give(&bank->lock);
}
/* The bank that a thread has left while a function of the program runs, and its own binding; NULL, both: none. */
typedef struct TsiBankPause {
    TsiBank* bank;
    TsiBinding* own;
} TsiBankPause;
/* Leaves the bank that the thread holds, if any, as tsi_bank_leave does, so that a function of the program can run.
 * Returns what tsi_bank_resume needs afterwards: the bank, or NULL, and the thread's own binding.
 * [own thread, needs no lock] */
TsiBankPause tsi_bank_pause(void);
/* Ends a pause, which tsi_bank_pause has returned: waits for the bank that it has left, without limit, puts the
 * thread's own binding at hand again and enters the bank (tsi_bank_begin). Does nothing if it left none.
 * [own thread, no lock held] */
void tsi_bank_resume(TsiBankPause p);

/* Returns true if more than half as many full lines as `slabs`, the slabs of the bank, were freed in since it last
 * returned true, so that half of these may be empty; then starts to count anew (bank->opened). bank: the bank's
 * binding. [bank held] */
bool tsi_bank_is_emptied(TsiBinding* bank, uint32_t slabs);
/* Returns the sum over the arena's banks of the counters `unparked`, full lines that were freed in, of all classes.
 * Rises only; a moment old. [any thread, needs no lock] */
uint64_t tsi_banks_opened(TsiArena* a);

enum { TSI_BANK_NOTE = 1 << 10 };
/* Adds to the counts of allocations and of those that waited. After SCAN_WINDOW allocations one thread starts them anew
 * and judges: scan->spread is set if more than SCAN_SPREAD_ABOVE percent waited, cleared if less than
 * SCAN_GATHER_BELOW, but not within SCAN_APART such looks of the last change. [any thread, needs no lock] */
void tsi_bank_note(TsiArena* a, uint64_t allocations, uint64_t waits);
/* Counts an allocation of class cls in the bank, whose binding is b; at each TSI_BANK_NOTE-th tells tsi_bank_note of
 * them and of the waits, which then count from 0. [bank held] */
TSI_INLINE void tsi_bank_count(TsiBinding* b, TsiBank* bank, unsigned cls) {
    tsi_count(&b->counters[cls].alloc_tries);
    if (TSI_LIKELY(++bank->allocations < TSI_BANK_NOTE))
        return; /* may be more in a fork child, whose banks are as they were */
    tsi_bank_note(b->arena, TSI_BANK_NOTE, bank->waits);
    bank->allocations = bank->waits = 0;
}

/* Takes the locks of the arena's banks, for a sweep, as far as each can be had within SWEEPS_NS; sets bank->stood for
 * one that cannot, which is then tried only briefly, and clears it when it can. Returns a bit for each bank taken, for
 * tsi_banks_give; 0 outside of shared mode or if the thread holds a bank. tsi_tls.binding stays.
 * [own thread, no stripe held, no bracket open] */
unsigned tsi_banks_take(TsiArena* a);
/* Gives the locks of the banks in `banks`, a bit each, of tsi_banks_take, back; 0 does nothing. [banks held] */
void tsi_banks_give(TsiArena* a, unsigned banks);
/* Returns true if `binding`, an index, is that of one of the banks in `banks`, of tsi_banks_take. [banks held] */
TSI_INLINE bool tsi_banks_have(const TsiArena* a, unsigned banks, uint32_t binding) {
    for (; TSI_UNLIKELY(banks != 0); banks &= banks - 1)
        if (tsi_bank_binding(&a->bank[tsi_ctz64(banks)])->index == binding) return true;
    return false;
}
/* Frees the locks of all banks and takes their bindings from them, which are then like those of vanished threads; a
 * bank gets a new one when it is next entered. Ends a look of the controller; its counts and mode stay. [fork child] */
void tsi_banks_child(TsiArena* a);

#endif
