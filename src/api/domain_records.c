/*
 * domain_records.c - records of domains whose pages go back, and calls on domains that no longer exist.
 *
 * A thread that ends a domain's epoch takes the domain's lock once more to write the receipt, and the domain may have
 * been destroyed meanwhile. So a page goes back only with the locks of all its records taken: a thread that comes then
 * waits, and finds the lock free and the domain dead, in zeros or by its word.
 */
#include "api/domain.h"

#include "threads/registry.h"

/* Takes the lock of the domain with the record `index`, so that its page can go, and with it the lock. Returns true;
 * false, with nothing changed, if a thread holds the lock or waits for it: the page stays then. [table lock held] */
static bool leave(TsiTable* table, uint32_t index) {
    TsiDomain* d = tsi_table_at(table, index);
    if (tsi_load_relaxed(&d->lock.waiters) != 0 || !tsi_lock_try(&d->lock)) return false;
    tsi_lock_disown(&d->lock); /* it goes with its page */
    return true;
}

/* Gives the lock that `leave` has taken of the domain with the record `index` back: its page stays after all.
 * [table lock held] */
static void stay(TsiTable* table, uint32_t index) {
    TsiDomain* d = tsi_table_at(table, index);
    tsi_lock_own(&d->lock);
    tsi_lock_give(&d->lock);
}

void tsi_domain_table_init(TsiTable* table, TsiGround* ground, uint32_t capacity) {
    tsi_table_init_in(table, ground, TSI_DOMAIN_STRIDE, capacity, false);
    table->leave = leave;
    table->stay = stay;
}

/* Counts a call on the record d, whose domain was destroyed, with its label, if its allocator lives; otherwise does
 * nothing. [any thread, no lock held, no bracket open] */
static void count_destroyed(TsiDomain* d) {
    TsiArena* a = tsi_registry_hold_domain(d); /* the record may read as 0 */
    if (a == NULL) return;
    /* A child that the program's function forks counts only its own thread among those that hold the allocator. */
    TsiThread* thread = tsi_tls.thread;
    TsiArena* held = thread != NULL ? thread->held : NULL;
    if (thread != NULL) thread->held = a;
    const TsiLabel* label = d->own ? tsi_label(&a->phases.labels, d->label_at) : NULL;
    tsi_refuse_as(a, &(TsiMisuse){.what = SLAB_MISUSE_DOMAIN_STALE, .where = d, .label = label});
    if (thread != NULL) thread->held = held;
    tsi_registry_unhold(a);
}

bool tsi_domain_refuse_destroyed(TsiDomain* d) {
    if (d == NULL) return tsi_failed_bool(EINVAL, "the domain is NULL");
    if (tsi_domain_is_alive(d) && tsi_domain_is_anothers(d)) return tsi_domain_refuse(d, TSI_DOMAIN_ANOTHERS);
    if (tsi_domain_is_alive(d) && tsi_domain_runs(d)) return tsi_domain_refuse(d, TSI_DOMAIN_RUNS);
    count_destroyed(d);
    return tsi_failed_bool(ESTALE, "the domain was destroyed");
}
