/* bank.c - see bank.h. */
#include "threads/bank.h"

/* PARAMETERS of the controller: allocations between two looks, looks between two changes. */
enum { SCAN_WINDOW = 1 << 18, SCAN_APART = 50 };
enum { SCAN_SPREAD_ABOVE = 30, SCAN_GATHER_BELOW = 10 }; /* percent of the allocations that had to wait */
/* Limits of waiting for a bank: of an allocation, which has others to go to, and of a sweep, which can do without.
 * Longer than the work in one, and than most turns of other threads on its processor. */
enum { ALLOCATES_NS = 20000000, SWEEPS_NS = 100000000 };
/* Before that: looks at the lock, and times that the processor is given away. A bank is held for no longer than a few
 * looks take, or its holder has lost its processor; sleeping would cost a membarrier. */
enum { LOOKS = 50, TURNS = 16 };

void tsi_bank_note(TsiArena* a, uint64_t allocations, uint64_t waits) {
    TsiScan* scan = &a->scan;
    tsi_add_relaxed(&scan->waits, waits);
    if (tsi_add_relaxed(&scan->allocations, allocations) + allocations < SCAN_WINDOW) return;

    if (tsi_swap_acquire(&scan->looking, 1) != 0) return; /* pairs with the release below */

    uint64_t n = tsi_load_relaxed(&scan->allocations), waited = tsi_load_relaxed(&scan->waits);
    if (n >= SCAN_WINDOW) { /* otherwise another thread has just looked */
        tsi_sub_relaxed(&scan->allocations, n);
        tsi_sub_relaxed(&scan->waits, waited);
        uint32_t checks = tsi_load_relaxed(&scan->checks) + 1, spread = tsi_load_relaxed(&scan->spread);
        bool change = spread ? waited * 100 < n * SCAN_GATHER_BELOW : waited * 100 > n * SCAN_SPREAD_ABOVE;
        tsi_store_relaxed(&scan->checks, checks);
        if (change && (scan->changed_at == 0 || checks - scan->changed_at >= SCAN_APART)) {
            scan->changed_at = checks;
            tsi_store_relaxed(&scan->spread, !spread);
            tsi_count(&scan->switches);
        }
    }

    tsi_store_release(&scan->looking, 0); /* pairs with the swap above */
}

/* Counts an allocation of class cls in the phase `target` that has found its bank held: in bank->waits, alloc_retries
 * of b, the bank's binding, and the arena's by class and label. [bank held] */
static void count_wait(TsiBinding* b, TsiBank* bank, unsigned cls, TsiRef target) {
    TsiArena* a = b->arena;
    uint32_t label = tsi_inc_label(tsi_inc(&a->phases, tsi_ref_index(target)));
    bank->waits++;
    tsi_count(&b->counters[cls].alloc_retries);
    tsi_add_relaxed(&a->alloc_retries_by_label[cls][tsi_label_column(&a->phases.labels, label)], 1);
}

/* Tries to take a lock for `turns` turns of LOOKS looks, without sleeping before it has yielded that often. Returns
 * true if the caller holds it now; false if it was held at each look. [any thread, needs no lock] */
static bool look_for(TsiLock* lock, unsigned turns) {
    for (unsigned turn = 0; turn < turns; tsi_os_yield(&turn))
        for (unsigned look = 0; look < LOOKS; look++)
            if (!tsi_lock_is_held(lock) && tsi_lock_try(lock)) return true;
    return false;
}

/* Puts the thread's own binding at hand again: sets tsi_tls.binding and .serial, and makes its `owner` none, as a
 * function of the program may have used another allocator, and no other's calls may find it.
 * [own thread, needs no lock] */
static void take_up(TsiBinding* own) {
    tsi_tls_forget();
    tsi_tls.binding = own;
    tsi_tls.serial = own->arena->serial;
}

TsiBank* tsi_bank_enter(TsiBinding* own, unsigned cls, TsiRef target) {
    bool waited = false;
    TsiBank* bank = tsi_bank_chosen(own);
    for (; !tsi_lock_try(&bank->lock); bank = tsi_bank_chosen(own)) {
        waited = true;
        if (look_for(&bank->lock, TURNS) || tsi_lock_take_within(&bank->lock, ALLOCATES_NS)) break;
        own->bank++; /* a thread is stopped there: L3 */
    }

    TsiBinding* b = tsi_bank_binding(bank);
    if (TSI_UNLIKELY(b == NULL)) {
        b = tsi_binding_of_nobody(own->arena);
        tsi_store_release(&bank->binding, b); /* pairs with tsi_banks_opened and tsi_banks_take */
    }
    if (b == NULL) {
        tsi_lock_give(&bank->lock);
        return NULL;
    }

    if (TSI_UNLIKELY(waited)) count_wait(b, bank, cls, target);
    if (TSI_UNLIKELY(tsi_tls.binding != own)) take_up(own); /* a cleanup, before this call */
    tsi_bank_begin(bank);
    return bank;
}

/* Returns the number of full lines that were ever freed in, of one bank's binding. [any thread, needs no lock] */
static uint64_t opened_in(const TsiBinding* b) {
    uint64_t opened = 0;
    for (unsigned cls = 1; cls <= TSI_SMALL_CLASSES; cls++) opened += tsi_load_relaxed(&b->counters[cls].unparked);
    return opened;
}

bool tsi_bank_is_emptied(TsiBinding* bank, uint32_t slabs) {
    uint64_t opened = opened_in(bank);
    bool emptied = opened - bank->opened > slabs / 2;
    if (emptied) bank->opened = opened;
    return emptied;
}

uint64_t tsi_banks_opened(TsiArena* a) {
    uint64_t opened = 0;
    for (unsigned n = 0; n < TSI_SHARED_BANKS; n++) {
        const TsiBinding* b = tsi_load_acquire(&a->bank[n].binding); /* pairs with tsi_bank_enter */
        if (b != NULL) opened += opened_in(b);
    }
    return opened;
}

TsiBankPause tsi_bank_pause(void) {
    TsiBankPause p = {tsi_tls.bank, tsi_tls.own};
    if (p.bank != NULL) tsi_bank_leave(p.bank);
    return p;
}

void tsi_bank_resume(TsiBankPause p) {
    if (p.bank == NULL) return;
    tsi_lock_take(&p.bank->lock);
    take_up(p.own);
    tsi_bank_begin(p.bank);
}

unsigned tsi_banks_take(TsiArena* a) {
    unsigned banks = 0;
    if (TSI_LIKELY(!a->options.shared) || tsi_tls.bank != NULL) return 0;
    for (unsigned n = 0; n < TSI_SHARED_BANKS; n++) {
        TsiBank* bank = &a->bank[n];
        /* acquire: the index of a binding that is there. A later one is another thread's. */
        if (tsi_load_acquire(&bank->binding) == NULL) continue;
        if (banks == 0) tsi_lock_wanted(&bank->lock); /* among banks, their order is that of their numbers */
        bool stood = tsi_load_relaxed(&bank->stood), got = tsi_lock_try(&bank->lock);
        if (!got) got = stood ? look_for(&bank->lock, 1) : tsi_lock_slow_within(&bank->lock, SWEEPS_NS);
        if (got) banks |= 1u << n;
        if (got == stood) tsi_store_relaxed(&bank->stood, !got);
    }
    return banks;
}

void tsi_banks_give(TsiArena* a, unsigned banks) {
    for (; banks != 0; banks &= banks - 1) tsi_lock_give(&a->bank[tsi_ctz64(banks)].lock);
}

void tsi_banks_child(TsiArena* a) {
    tsi_store_relaxed(&a->scan.looking, 0);
    for (unsigned n = 0; n < TSI_SHARED_BANKS; n++) {
        tsi_lock_reset(&a->bank[n].lock);
        tsi_store_relaxed(&a->bank[n].binding, NULL); /* its record is like those of vanished threads */
    }
}
