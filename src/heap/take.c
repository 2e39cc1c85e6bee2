/* take.c - see take.h. */
#include "heap/take.h"

#include "account/charge.h"
#include "heap/settle.h"
#include "observe/profile.h"
#include "heap/warm.h"
#include "mem/large.h"
#include "mem/pool.h"
#include "mem/region.h"
#include "mem/rest.h"
#include "mem/stock.h"

/* ---- slabs ---- */

/* Makes the words of a line of a slab that is being opened: of incarnation `seq`, in the heap at heap_at (0: none),
 * with the slots `ready`, a bit each, handed out and counted as issued, and all others freed; no flags, no handles, no
 * token. In an owned slab of a class it comes with its first refill, unless there is a profile. [only holder] */
static void line_init(TsiSpace* s, const TsiClass* shape, uint32_t line_id, uint32_t seq, uint32_t heap_at,
                      uint64_t ready) {
    TsiLine* l = tsi_line(s, line_id);
    uint64_t offset = ((uint64_t)tsi_line_chunk(line_id) << TSI_CHUNK_SHIFT) +
                      ((uint64_t)tsi_line_number(line_id) << shape->line_shift);
    tsi_store_relaxed(&l->avail, ready);
    tsi_store_relaxed(&l->freed, ~ready); /* holes, too */
    tsi_store_relaxed(&l->issued, tsi_popcount(ready));
    l->base = s->base + offset;
    tsi_store_relaxed(&l->heap_at, heap_at);
    tsi_store_relaxed(&l->home, heap_at);
    tsi_store_relaxed(&l->flags, 0);
    tsi_store_relaxed(&l->handled, 0);
    l->shift = shape->unit_shift;
    tsi_store_relaxed(&tsi_remote(s, line_id)[0], tsi_remote_fresh(0, seq));
    tsi_store_relaxed(&tsi_remote(s, line_id)[1], tsi_remote_fresh(1, seq));
}

/* Opens a slab: makes its words, and then its new tag, `state` in heap or incarnation `index`, under the seq that the
 * tag has, 1 if it is 0. ready: its lines come with a first refill, of the batch's lowest slots. Returns false, with
 * the tag as it was, for a region that cannot be used yet (region.h, R2): the caller lets it rest. [only holder] */
static bool slab_open(TsiSpace* s, unsigned cls, uint32_t slab_id, uint32_t index, unsigned state, bool ready) {
    const TsiClass* shape = &s->classes->c[cls];
    uint32_t heap_at = state == TSI_SLAB_OWNED ? index * (uint32_t)sizeof(TsiHeap) : 0;
    TsiSlab* slab = tsi_slab(s, slab_id);
    uint32_t seq = tsi_tag_seq(tsi_load_relaxed(&slab->tag));
    if (seq == 0) seq = 1;
    if (cls != TSI_CLASS_LARGE) tsi_store_relaxed(&slab->gone, 0);
    bool region = tsi_class_is_region(cls);
    if (region && !tsi_region_open(s, cls, slab_id, heap_at)) return false;
    for (uint32_t i = 0, first = tsi_first_line(shape, slab_id); !region && i < 1u << shape->lines_log2; i++)
        line_init(s, shape, first + i, seq, heap_at, ready ? tsi_lowest_bits(shape->full, shape->batch) : 0);
    tsi_store_release(&slab->tag, tsi_tag(seq, index, state)); /* publishes the words to freers, which acquire it */
    return true;
}

unsigned tsi_column_of(TsiArena* a, TsiInc* inc) { return tsi_label_column(&a->phases.labels, tsi_inc_label(inc)); }

/* Notes that max_bytes is in the way, if `why`, an id that a take has left, says so. [own thread, needs no lock] */
static void note_over(TsiBinding* b, uint32_t why) {
    if (why == TSI_SPACE_OVER) b->budget.hard = TSI_BUDGET_SPACE;
}

/* Adds an open slab to the heap, at the head of its chain: raises h's slab_count, slab_bytes and takes, counts it for
 * the class, and reads b->covered anew, so that the thread's frees find the slab. [owner, in bracket] */
static void join(TsiBinding* b, TsiHeap* h, unsigned cls, uint32_t slab_id) {
    TsiSpace* s = &b->arena->space;
    tsi_count(&b->counters[tsi_class_row(cls)].new_slab);
    b->covered = tsi_load_acquire(&s->covered); /* pairs with cover in space.c */
    tsi_slab(s, slab_id)->next = tsi_load_relaxed(&h->slabs);
    /* release: pairs with tsi_snapshot_phase; and a walk in a fork child is always whole */
    tsi_store_release(&h->slabs, slab_id + 1);
    tsi_store_relaxed(&h->slab_count, tsi_load_relaxed(&h->slab_count) + 1);
    tsi_store_relaxed(&h->slab_bytes, tsi_load_relaxed(&h->slab_bytes) + s->classes->c[cls].slab_bytes);
    tsi_count(&h->takes);
}

bool tsi_slab_take(TsiBinding* b, TsiHeap* h, unsigned cls, uint32_t* slab_id) {
    TsiSpace* s = &b->arena->space;
    TsiInc* inc = tsi_heap_inc(b->arena, h);
    size_t bytes = s->classes->c[cls].slab_bytes;
    TsiCharge charge;
    *slab_id = 0;
    if (!tsi_charge(b, inc, bytes, &charge)) return false;

    bool ready = cls <= TSI_SMALL_CLASSES && b->profile_mean == 0, warm;
    unsigned column = tsi_column_of(b->arena, inc);
    TsiClassCounters* counters = &b->counters[tsi_class_row(cls)];

    tsi_rest_poll(s);
    for (;;) {
        warm = tsi_warm_take(b, cls, slab_id);
        TsiTaken taken = warm ? TSI_TAKEN_KEPT : tsi_space_take(s, cls, column, slab_id);
        if (taken == TSI_TAKEN_NOT && *slab_id == TSI_SPACE_OVER && tsi_stock_give_back(s, bytes) != 0)
            taken = tsi_space_take(s, cls, column, slab_id);
        if (taken == TSI_TAKEN_NOT) {
            tsi_charge_undo(b->arena, b, inc, bytes);
            note_over(b, *slab_id);
            return false;
        }
        warm = taken == TSI_TAKEN_KEPT;
        if (slab_open(s, cls, *slab_id, h->index, TSI_SLAB_OWNED, ready)) break;
        tsi_rest(s, *slab_id);
    }

    if (warm) tsi_count(&counters->recycled);
    else tsi_stock_grown(s);
    tsi_charge_keep(b, inc, &charge);
    join(b, h, cls, *slab_id);
    return true;
}

bool tsi_huge_take(TsiBinding* b, TsiHeap* h, uint32_t slab_ids[2]) {
    TsiSpace* s = &b->arena->space;
    TsiInc* inc = tsi_heap_inc(b->arena, h);
    size_t bytes = 2 * (size_t)s->classes->c[TSI_CLASS_HUGE].slab_bytes;
    TsiCharge charge;
    TsiBudgetEvents was = b->budget; /* a smaller region may still fit */
    slab_ids[0] = 0;
    if (!tsi_charge(b, inc, bytes, &charge)) {
        b->budget = was;
        return false;
    }

    tsi_rest_poll(s);
    bool taken = tsi_space_take_huge(s, tsi_column_of(b->arena, inc), slab_ids);
    bool open[2] = {false, false};
    for (unsigned n = 0; taken && n < 2; n++) {
        open[n] = slab_open(s, TSI_CLASS_HUGE, slab_ids[n], h->index, TSI_SLAB_OWNED, false);
        if (open[n]) join(b, h, TSI_CLASS_HUGE, slab_ids[n]);
        else tsi_rest(s, slab_ids[n]);
    }

    if (!open[0] || !open[1]) tsi_charge_undo(b->arena, b, inc, !open[0] && !open[1] ? bytes : bytes / 2);
    if (!open[0]) slab_ids[0] = slab_ids[1];
    if (!open[0] && !open[1]) return false;
    tsi_charge_keep(b, inc, &charge);
    if (!open[0] || !open[1]) slab_ids[1] = slab_ids[0];
    return true;
}

/* ---- large objects ---- */

void* tsi_large_alloc(TsiBinding* b, TsiRef ref, size_t size, size_t align, TsiIssue* issue) {
    TsiArena* a = b->arena;
    TsiSpace* s = &a->space;
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    uint32_t slab_id = 0;
    if (size > s->payload_bytes) { /* before it is charged: charges have 48 bits */
        b->budget.label = tsi_inc_label(inc);
        if (tsi_space_is_over(s, size)) note_over(b, TSI_SPACE_OVER);
        return NULL;
    }

    size_t bytes = tsi_align_up(size, tsi_os.page_bytes);
    bool grows = align == TSI_ALIGN_GROWS;
    TsiCharge charge;
    if (!tsi_charge(b, inc, bytes, &charge)) return NULL;

    tsi_rest_poll(s);
    bool taken = tsi_space_take_large(s, size, align, grows, tsi_column_of(a, inc), &slab_id);
    if (!taken && slab_id == TSI_SPACE_OVER && tsi_stock_give_back(s, bytes) != 0)
        taken = tsi_space_take_large(s, size, align, grows, tsi_column_of(a, inc), &slab_id);
    if (!taken) {
        tsi_charge_undo(a, b, inc, bytes);
        note_over(b, slab_id);
        return NULL;
    }

    TsiPlace at = tsi_large_place(slab_id);
    bool named = issue == NULL || (tsi_space_commit_counts(s, tsi_slab_chunk(slab_id)) &&
                                   tsi_load_relaxed(&tsi_slab(s, slab_id)->gen_base) < TSI_GEN_LIMIT);

    tsi_phase_lock(inc);
    bool active = named && tsi_ref_is_active(&a->phases, ref); /* take.h, I1 */
    if (active) {
        (void)slab_open(s, TSI_CLASS_LARGE, slab_id, inc->index, TSI_SLAB_ORPHAN, false);
        TsiLine* l = tsi_line(s, at.line_id);
        tsi_store_relaxed(&l->issued, 1);
        tsi_store_seq(&l->freed, ~s->classes->c[TSI_CLASS_LARGE].full); /* from here on the object is live */
        TsiTotals one = {1, tsi_slab_bytes(s, TSI_CLASS_LARGE, slab_id)};
        tsi_orphan_link_locked(a, inc, slab_id, &(TsiSlabSum){one, one, 0});
        inc->allocated.objects += one.objects;
        inc->allocated.bytes += one.bytes;
        if (issue != NULL) (void)tsi_handle_issue_held(a, &at, issue);
    }

    tsi_phase_unlock(inc);
    if (!active) {
        tsi_charge_undo(a, b, inc, bytes);
        (void)tsi_space_give_large(s, slab_id, false);
        return NULL;
    }

    tsi_stock_grown(s);
    tsi_count(&b->counters[TSI_CLASS_LARGE].new_slab);
    tsi_charge_keep(b, inc, &charge);
    tsi_profile_one(b, bytes);
    return tsi_place_address(s, &at);
}

bool tsi_handle_issue_held(TsiArena* a, const TsiPlace* at, TsiIssue* out) {
    TsiSpace* s = &a->space;
    uint64_t generation, word;
    *out = (TsiIssue){.tried = true};
    _Atomic uint64_t* tag_word = &tsi_slab(s, at->slab_id)->tag;
    bool region = tsi_class_is_region(at->cls);
    if (!region && !tsi_space_commit_counts(s, tsi_line_chunk(at->line_id))) return false;
    if (!tsi_handle_flag_slab(s, at->slab_id, tsi_tag_seq(tsi_load_relaxed(tag_word)))) return false;

    if (region) /* frees by handle and by pointer meet in the map byte */
        tsi_store_relaxed(&tsi_region(s, at->slab_id)->heap_at, 0);
    else tsi_line_mark_handled(tsi_line(s, at->line_id));

    if (!tsi_generation_of(a, at, tsi_load_seq(tag_word), &generation, &word)) return false;
    out->spent = generation >= TSI_GEN_LIMIT;
    if (!out->spent)
        out->handle = tsi_handle_make(a->secret, tsi_handle_place(at->line_id, at->slot), (uint32_t)generation);
    return !out->spent;
}

void tsi_line_retire(TsiArena* a, TsiHeap* h, TsiLine* l, unsigned cls) {
    TsiRoom* room = tsi_heap(a, h->primary)->room;
    if (room != NULL && room->cur[cls] == l) room->cur[cls] = tsi_no_cur[0];
    tsi_store_relaxed(&l->flags, tsi_load_relaxed(&l->flags) | TSI_LINE_PARKED | TSI_LINE_RETIRED);
    tsi_store_relaxed(&l->heap_at, 0);
}
