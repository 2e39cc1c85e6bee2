/*
 * grow.c - see grow.h.
 *
 * A large object is an orphan from birth, and its freer returns it by a claim on its tag. Growing claims it as a sweep
 * does that gives pages of an orphan back (partial.c): the tag says PARTIAL, so nobody else returns the object, and the
 * thread that lets go looks whether it was freed meanwhile. The stripe is held throughout: no sweep sees the claim.
 * Pages move under the same claim: otherwise they would be another's once the object was freed and its units taken
 * again.
 */
#include "heap/grow.h"

#include "account/charge.h"
#include "heap/finish.h"
#include "heap/late_frees.h"
#include "heap/partial.h"
#include "observe/profile.h"
#include "mem/large.h"
#include "mem/stock.h"

/* Claims the live large object at *at of inc, which must be ACTIVE, so that others do not return it: its tag says
 * PARTIAL then, until large_let_go. Returns false, changing nothing, if it is not one, or another thread was first.
 * [stripe held] */
static bool large_claim_locked(TsiArena* a, TsiInc* inc, const TsiPlace* at) {
    TSI_HOLDS(tsi_inc_lock(inc));
    uint64_t tag;
    if (!tsi_place_is_live(a, at, &tag) || tsi_tag_state(tag) != TSI_SLAB_ORPHAN) return false;
    if (tsi_tag_index(tag) != inc->index || tsi_inc_state(inc) != TSI_INC_ACTIVE) return false;
    /* seq_cst: as in tsi_partial_claim */
    return tsi_cas_seq(&tsi_slab(&a->space, at->slab_id)->tag, &tag,
                       (tag & ~(uint64_t)TSI_SLAB_STATE) | TSI_SLAB_PARTIAL);
}

/* Grows a claimed object (large_claim_locked) to `bytes`, whole pages and more than it has, charges that, and adds it
 * to the incarnation's allocated bytes. Returns false, changing nothing but b->budget, if there is no room or a budget
 * forbids it. [own thread, stripe held] */
static bool large_grow_locked(TsiBinding* b, TsiInc* inc, uint32_t slab_id, size_t bytes) {
    TSI_HOLDS(tsi_inc_lock(inc));
    TsiArena* a = b->arena;
    TsiSpace* s = &a->space;
    size_t more = bytes - tsi_slab_bytes(s, TSI_CLASS_LARGE, slab_id);
    TsiCharge charge;
    if (!tsi_charge(b, inc, more, &charge)) return false;
    tsi_late_leave_locked(a, inc, slab_id); /* counted with its old size */
    bool grown = tsi_space_grow_large(s, slab_id, bytes);
    tsi_late_join_locked(a, inc, slab_id, (TsiTotals){1, tsi_slab_bytes(s, TSI_CLASS_LARGE, slab_id)});
    if (!grown) {
        tsi_charge_undo(a, b, inc, more);
        return false;
    }

    inc->orphaned.bytes += more;
    inc->allocated.bytes += more;
    tsi_charge_keep(b, inc, &charge);
    return true;
}

/* Makes a claimed object an ORPHAN again and gives the stripe; returns the object's slab if it was freed meanwhile:
 * then cleanups may run. [own thread, stripe held, and given before that] */
static void large_let_go(TsiBinding* b, TsiInc* inc, uint32_t slab_id) {
    TsiArena* a = b->arena;
    /* before the stripe is given: a sweep that met the claim would pass the object by */
    uint64_t tag = tsi_partial_let_go(&a->space, slab_id);
    tsi_phase_unlock(inc);
    if (tsi_slab_is_empty(&a->space, TSI_CLASS_LARGE, slab_id)) tsi_slab_complete(a, b, slab_id, tag);
}

bool tsi_large_grow(TsiBinding* b, const TsiPlace* at, size_t size) {
    TsiArena* a = b->arena;
    uint64_t tag = tsi_load_seq(&tsi_slab(&a->space, at->slab_id)->tag);
    if (tsi_tag_state(tag) != TSI_SLAB_ORPHAN || size > a->space.payload_bytes) return false;

    TsiInc* inc = tsi_inc(&a->phases, tsi_tag_index(tag));
    size_t bytes = tsi_align_up(size, tsi_os.page_bytes);
    b->budget.soft = b->budget.hard = 0;
    tsi_phase_lock(inc);
    bool claimed = large_claim_locked(a, inc, at);
    size_t had = claimed ? tsi_slab_bytes(&a->space, TSI_CLASS_LARGE, at->slab_id) : 0;
    bool grown = claimed && bytes > had && large_grow_locked(b, inc, at->slab_id, bytes);
    if (claimed) large_let_go(b, inc, at->slab_id);
    else tsi_phase_unlock(inc);
    if (!grown) return false;
    tsi_stock_grown(&a->space);
    tsi_profile_one(b, bytes - had);
    return true;
}

size_t tsi_large_move(TsiBinding* b, const TsiPlace* at, void* to, size_t bytes) {
    enum { PIECE = 32 << 20 }; /* some 0.6 ms, in which others wait for the phase */
    TsiSpace* s = &b->arena->space;
    uint8_t* from = s->base + ((size_t)tsi_unit_position(s, at->slab_id) << tsi_unit_shift(s));
    uint64_t tag = tsi_load_relaxed(&tsi_slab(s, at->slab_id)->tag); /* a hint: the claim looks again */
    size_t done = 0, moved = 0;
    if (tsi_tag_state(tag) != TSI_SLAB_ORPHAN) return 0;

    TsiInc* inc = tsi_inc(&b->arena->phases, tsi_tag_index(tag));
    bytes &= ~(tsi_os.page_bytes - 1);
    do {
        size_t piece = bytes - done < PIECE ? bytes - done : PIECE;
        tsi_phase_lock(inc);
        if (!large_claim_locked(b->arena, inc, at)) {
            tsi_phase_unlock(inc);
            break;
        }
        moved = tsi_os.move((uint8_t*)to + done, from + done, piece);
        /* relaxed: a thread that returns the object claims it after us */
        if (moved != 0)
            (void)atomic_fetch_or_explicit(&tsi_slab(s, at->slab_id)->gone, TSI_LARGE_MOVED, memory_order_relaxed);
        large_let_go(b, inc, at->slab_id);
        done += moved;
    } while (moved == PIECE && done < bytes);
    return done;
}
