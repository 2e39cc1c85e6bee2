/*
 * take.h - what a heap takes from the space: slabs, regions among them, and large objects; and the first handle of an
 * object that is being made, by the rules of handles.h.
 *
 * Invariant
 *   I1  A call that asks for a handle and gets none leaves no trace of an object: the handle is there before the object
 *       is taken. So it is in a line, where the slot stays ready; a large object goes back before it is linked; a
 *       region whose generations are used up is passed over.
 */
#ifndef TSI_HEAP_TAKE_H
#define TSI_HEAP_TAKE_H

#include "base/probes.h"
#include "heap/fast.h"
#include "state/names.h"

/* The first handle of an object. */
typedef struct TsiIssue {
    SlabHandle handle; /* 0: its generations ran out (spent), or there is no memory for counts */
    bool spent;
    bool tried; /* the object was there, or about to be: only its handle was lacking */
} TsiIssue;

/* Takes a slab of the class for the heap, warm, pooled or fresh, opens it, charges it to the incarnation and puts it at
 * the head of the heap's chain: *slab_id. Its lines of a size class come with a first refill, unless there is a
 * profile. Returns false, charging nothing and with *slab_id undefined, if there is no memory or a budget forbids it;
 * b->budget.hard names the budget, TSI_BUDGET_SPACE for max_bytes. b->budget.soft: soft budgets that the take passed.
 * [owner, in bracket] */
bool tsi_slab_take(TsiBinding* b, TsiHeap* h, unsigned cls, uint32_t* slab_id);
/* Takes two regions that are the halves of a huge page, like tsi_slab_take: their ids in slab_ids; one id twice, and
 * half of the bytes charged, if the other half cannot be used yet. Returns false, charging nothing and with b->budget
 * as it was, if there is no such page, no memory, a budget in the way, or neither half can be used; slab_ids are
 * undefined then. [owner, in bracket] */
bool tsi_huge_take(TsiBinding* b, TsiHeap* h, uint32_t slab_ids[2]);
/* Allocates a large object of `size` bytes at `align`, a power of two or TSI_ALIGN_GROWS, in the incarnation `ref`: an
 * orphan from birth, in whole pages, which it is charged; its handle goes into *issue, unless NULL. Returns its
 * address. Returns NULL, charging nothing, without memory, against a budget (b->budget.hard names it), without a
 * handle, or if ref is not ACTIVE any more. The caller keeps the record from being reused.
 * [own thread, no stripe held] */
void* tsi_large_alloc(TsiBinding* b, TsiRef ref, size_t size, size_t align, TsiIssue* issue);
/* Returns which of a class's counters by label the incarnation counts in. [any thread, needs no lock] */
unsigned tsi_column_of(TsiArena* a, TsiInc* inc);

/* Counts an allocation of the class (a row of b->counters) that left the fast path, for the binding and for heap h, by
 * its cause TSI_SLOW_*, and fires the probe. [owner] */
TSI_INLINE void tsi_count_slow(TsiBinding* b, TsiHeap* h, unsigned cls, unsigned cause) {
    TsiClassCounters* counters = &b->counters[cls];
    tsi_count(&counters->slow);
    tsi_count(&h->slow);
    tsi_count(&counters->slow_by[cause]);
    tsi_probe_slow_path(b->arena->owner, cls - 1, b->classes->c[cls].size, cause);
}

/* Issues the handle of the object at *at, which is being made, or of a slot that is ready and about to be taken, into
 * *out. Nobody can end it meanwhile. Marks its slab, and its line or region, as one that has issued handles, so that
 * each free counts. Returns false, with out->handle 0, if there is none: out->spent if the generations are used up,
 * otherwise there is no memory. [owner, in bracket, or stripe held] */
bool tsi_handle_issue_held(TsiArena* a, const TsiPlace* at, TsiIssue* out);
/* Sets aside a line whose generations are used up: it hands out no more slots, is in no queue and not h's current one
 * of the class; its frees take the slow path. Its ready slots stay ready. [owner, in bracket] */
void tsi_line_retire(TsiArena* a, TsiHeap* h, TsiLine* l, unsigned cls);

#endif
