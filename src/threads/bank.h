/*
 * bank.h - shared mode (option `shared`): threads allocate as one of a few threads that nobody is.
 *
 * A bank is a binding of no thread behind a lock. Who holds the lock is the binding's thread, and allocates and frees
 * there by the ordinary path: heaps, rooms, brackets, inboxes and warm slabs are those of owned mode, and what holds
 * there holds here, because the lock hands everything that a thread keeps from one holder to the next. A thread's own
 * binding keeps its scopes, domains and samples. It has no heap; so a free that finds the bank held does not wait: it
 * is another thread's, one compare-exchange.
 *
 *   gathered   all threads allocate in bank 0: few slabs
 *   spread     a thread allocates in the bank of its number, of four
 *
 * A controller moves the allocator from the one to the other by the share of allocations that had to wait for their
 * bank.
 *
 * Invariants
 *   L1  A thread holds one bank, or, in a sweep, those that tsi_banks_take has given it. No function of the program
 *       runs while it does: cleanups run between tsi_bank_pause and tsi_bank_resume. The bank's binding may have been
 *       used meanwhile, as where a cleanup has allocated in owned mode.
 *   L2  A sweep that holds a bank is inside none of its brackets, and nobody else is: the bank's heaps are the
 *       sweeper's own (S3 of sweep.c), so its receipt is exact and needs no membarrier.
 *   L3  Nobody waits for a bank for ever: an allocation goes on to another one, and a sweep does without, as in owned
 *       mode, where what an owner is inside of is left to it. So a thread that is stopped inside of a bank holds up
 *       others for moments. (Only when all four are held by stopped threads do allocations wait, and who has run a
 *       function of the program waits for its own bank.)
 *   L4  What is in a bank is not the thread's that forks: a child drops the banks, whose heaps lose their owner there.
 */
#ifndef TSI_THREADS_BANK_H
#define TSI_THREADS_BANK_H

#include "threads/registry.h"

/* The bank's binding; its holder's. */
TSI_INLINE TsiBinding* tsi_bank_binding(const TsiBank* l) { return tsi_load_relaxed(&l->binding); }

TSI_INLINE TsiBank* tsi_bank_chosen(const TsiBinding* own) {
    TsiArena* a = own->arena;
    uint32_t n = TSI_UNLIKELY(tsi_load_relaxed(&a->scan.spread) != 0) ? own->index : 0;
    return &a->bank[(n + own->bank) % TSI_SHARED_BANKS];
}
/* The thread whose own binding is at hand has the bank's lock. */
TSI_INLINE void tsi_bank_begin(TsiBank* l) {
    TSI_ASSERT(tsi_tls.bank == NULL && tsi_tls.serial == tsi_tls.binding->arena->serial);
    tsi_tls.own = tsi_tls.binding;
    tsi_tls.binding = tsi_bank_binding(l);
    tsi_tls.bank = l;
}
/* The bank of the thread with this binding, if it is free, has been used, and the thread holds none. */
TSI_INLINE bool tsi_bank_try(const TsiBinding* own, TsiBank** out) {
    TsiBank* l = *out = tsi_bank_chosen(own);
    if (tsi_tls.bank != NULL || tsi_load_relaxed(&l->binding) == NULL || !tsi_lock_try(&l->lock)) return false;
    tsi_bank_begin(l);
    return true;
}
/* Waits for one, for an allocation of a class in a phase; NULL without memory. */
TsiBank* tsi_bank_enter(TsiBinding* own, unsigned cls, TsiRef target);
TSI_INLINE void tsi_bank_leave(TsiBank* l) {
    tsi_tls.binding = tsi_tls.own;
    tsi_tls.bank = NULL;
    tsi_lock_give(&l->lock);
}
/* Around functions of the program: the bank that the thread holds, if it holds one, is free for others. */
typedef struct TsiBankPause {
    TsiBank* bank;
    TsiBinding* own;
} TsiBankPause;
TsiBankPause tsi_bank_pause(void);
void tsi_bank_resume(TsiBankPause p);

/* Bank's holder: since this last said so, so many full lines of the bank were freed in that half of its slabs may be
 * empty. */
bool tsi_bank_is_emptied(TsiBinding* bank, uint32_t slabs);
/* Full lines that were freed in, of all banks so far. */
uint64_t tsi_banks_opened(TsiArena* a);

enum { TSI_BANK_NOTE = 1 << 10 };
/* The controller: so many allocations more, and of those so many that have waited. */
void tsi_bank_note(TsiArena* a, uint64_t allocations, uint64_t waits);
/* One allocation in the bank. */
TSI_INLINE void tsi_bank_count(TsiBinding* b, TsiBank* l, unsigned cls) {
    tsi_count(&b->counters[cls].alloc_tries);
    if (TSI_LIKELY(++l->allocations < TSI_BANK_NOTE))
        return; /* more: in a fork child, whose banks may be as they were */
    tsi_bank_note(b->arena, TSI_BANK_NOTE, l->waits);
    l->allocations = l->waits = 0;
}

/* For a sweep: the banks that could be had in time, a bit each; 0 but in shared mode, and where the thread holds one.
 */
unsigned tsi_banks_take(TsiArena* a);
void tsi_banks_give(TsiArena* a, unsigned banks);
/* Is it the binding of one of these banks? */
TSI_INLINE bool tsi_banks_have(const TsiArena* a, unsigned banks, uint32_t binding) {
    for (; TSI_UNLIKELY(banks != 0); banks &= banks - 1)
        if (tsi_bank_binding(&a->bank[tsi_ctz64(banks)])->index == binding) return true;
    return false;
}
/* In a fork child. */
void tsi_banks_child(TsiArena* a);

#endif
