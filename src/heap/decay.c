/* decay.c - see decay.h. */
#include "heap/decay.h"

#include "heap/put_off.h"
#include "threads/registry.h"
#include "heap/trim.h"
#include "heap/warm.h"
#include "mem/stock.h"
#include "os/clock.h"

#include <errno.h>

enum {
    STEPS = 32,             /* of a thread in a hurry, to the next reading of the clock */
    AGAIN = 2,              /* of any other: a call goes on after the reading, and counts once more */
    HURRY_NS = 10000000,    /* it took less for the last ones */
    SHARE = 128,            /* of a processor's time, one part for looks */
    LEAST_BYTES = 256 << 10 /* committed in a domain's epoch: where it is less a look leaves it alone */
};
#define NS_PER_MS 1000000ull
#define LOOKING UINT64_MAX /* in place of the time of the next look */

/* Sets each binding's `idle`: whether its thread has made no call that counts (look_in, looks) since the last look,
 * which then may take empty slabs of its heaps. [any thread, needs no lock] */
static void note_idle(TsiArena* a) {
    for (uint32_t n = 0; n < tsi_table_used(&a->bindings); n++) {
        TsiBinding* other = tsi_table_at(&a->bindings, n);
        if (!tsi_load_acquire(&other->in_use)) continue; /* pairs with binding_open */
        uint64_t count = (uint64_t)tsi_load_relaxed(&other->looks) << 32 | tsi_load_relaxed(&other->look_in);
        tsi_store_relaxed(&other->idle, count == tsi_load_relaxed(&other->look_seen));
        tsi_store_relaxed(&other->look_seen, count);
    }
}

/* Returns true if a look trims the phase. Phases of the ring begin small and never end; small ones of domains end soon,
 * and their threads have heaps ready that a look would take apart. [any thread, needs no lock] */
static bool is_worth(TsiInc* inc) {
    if (tsi_inc_era(inc) == 0 || tsi_inc_state(inc) != TSI_INC_ACTIVE || tsi_load_relaxed(&inc->heap_count) == 0)
        return false;
    bool ring = (tsi_load_relaxed(&inc->id) & TSI_DOMAIN_ID_BIT) == 0;
    return ring || (tsi_load_relaxed(&inc->charge) & TSI_CHARGE_MASK) >= LEAST_BYTES;
}

/* Makes the next look due decay_ms and more_ns nanoseconds from now. [any thread, needs no lock] */
static void set_due(TsiArena* a, uint64_t more_ns) {
    uint64_t wait_ns = a->options.decay_ms * NS_PER_MS + more_ns;
    tsi_store_relaxed(&a->decay_wait_ns, wait_ns);
    tsi_store_release(&a->decay_due_ns, tsi_os.coarse_ns() + wait_ns); /* pairs with is_due: wait_ns comes first */
}

/* Returns true if a look is due at now_ns and no thread is at one. due_ns: when the next look is due, or LOOKING, as
 * the caller has read it. [any thread, needs no lock] */
static bool is_due(TsiArena* a, uint64_t now_ns, uint64_t due_ns) {
    return due_ns != LOOKING && tsi_clock_is_due(now_ns, due_ns, tsi_load_relaxed(&a->decay_wait_ns));
}

void tsi_decay_begin(TsiArena* a) { set_due(a, 0); }

/* Notes which threads are idle (note_idle), gives back pages that this thread has put off, takes back room that the
 * stock has lent, with as many bytes of its pages that nobody has touched since the last look, trims each phase that is
 * worth it (is_worth), and lowers and empties stores that nobody has used. May change errno. The caller has set
 * a->decay_due_ns to LOOKING, so that one thread looks at a time, and calls set_due afterwards. b: the thread's
 * binding, or NULL. [any thread, no lock held, no bracket open] */
static void look(TsiArena* a, TsiBinding* b) {
    note_idle(a);
    if (b != NULL) tsi_put_off_no_more(b);
    tsi_stock_settle(&a->space);
    for (uint32_t index = 1; index < tsi_table_used(&a->phases.incs); index++) {
        TsiInc* inc = tsi_inc(&a->phases, index);
        if (is_worth(inc)) tsi_trim_idle(a, b, inc);
    }
    tsi_warm_decay(a);
    tsi_stock_looked(&a->space);
}

void tsi_decay_poll(TsiArena* a, TsiBinding* b) {
    uint64_t due = tsi_load_acquire(&a->decay_due_ns); /* pairs with set_due, whose reading is not after ours */
    if (!tsi_decay_is_on(a) || !is_due(a, tsi_os.coarse_ns(), due)) return;
    /* relaxed: picks one of the threads that come together; the walks take the locks that they need */
    if (!atomic_compare_exchange_strong_explicit(&a->decay_due_ns, &due, LOOKING, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    uint64_t begun = tsi_os.thread_ns(); /* the processor's, which others may have for long meanwhile */
    int saved = errno; /* frees leave it alone, and so do allocations that succeed under a preloaded malloc */
    look(a, b);
    errno = saved;
    set_due(a, (tsi_os.thread_ns() - begun) * SHARE);
}

void tsi_decay_now(TsiBinding* b) {
    TsiArena* a = b->arena;
    tsi_store_relaxed(&b->looks, tsi_load_relaxed(&b->looks) + 1);
    if (!tsi_decay_is_on(a)) return; /* until it has counted all the way down again */
    uint64_t now = tsi_os.coarse_ns();
    tsi_store_relaxed(&b->look_in, now - b->looked_ns < HURRY_NS ? STEPS : AGAIN);
    b->looked_ns = now;
    uint64_t due = tsi_load_acquire(&a->decay_due_ns); /* pairs with set_due */
    if (TSI_UNLIKELY(is_due(a, now, due)) && !tsi_tls.exiting) tsi_decay_poll(a, b);
}
