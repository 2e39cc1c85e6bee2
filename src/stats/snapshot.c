/* snapshot.c - see snapshot.h. */
#include "stats/snapshot.h"

#include "observe/profile.h"
#include "threads/registry.h"
#include "mem/chunk_pages.h"

#include <string.h>

/* Reads the slab number slab_id, of class `cls`, into *view. Sums and ref are 0 for a slab that is WARM or PURGING.
 * Returns true if it holds memory and its tag was the same before and after; false if it is in the pool, retired, the
 * inside of a large object, changed in each of three tries, or its chunk serves another class by now: *view means
 * nothing then. [any thread, needs no lock] */
static bool view_slab(TsiArena* a, uint32_t slab_id, unsigned cls, TsiSlabView* view) {
    TsiSpace* s = &a->space;
    for (int tries = 0; tries < 3; tries++) {
        uint64_t tag = tsi_load_seq(&tsi_slab(s, slab_id)->tag);
        unsigned state = tsi_tag_state(tag);
        if (state == TSI_SLAB_POOL || state == TSI_SLAB_RETIRED || state == TSI_SLAB_INSIDE) return false;
        /* After the tag: the chunk may have come to serve another class, but not while this slab is in use. */
        if (tsi_class_of_slab(s, slab_id) != cls) return false;

        size_t bytes = tsi_slab_bytes_seen(s, cls, slab_id);
        *view = (TsiSlabView){slab_id, tsi_tag_seq(tag), cls, state, bytes, 0, {{0, 0}, {0, 0}, 0}};
        if (state == TSI_SLAB_WARM || state == TSI_SLAB_PURGING) return true;

        view->sum = tsi_slab_sum(s, cls, slab_id);
        if (state == TSI_SLAB_OWNED) {
            view->ref = tsi_load_acquire(&tsi_heap(a, tsi_tag_index(tag))->ref); /* before the tag is read again */
        } else {
            TsiInc* inc = tsi_inc(&a->phases, tsi_tag_index(tag));
            view->ref = tsi_ref(tsi_inc_era(inc), tsi_tag_index(tag));
        }
        if (tsi_load_seq(&tsi_slab(s, slab_id)->tag) == tag) return true;
    }
    return false;
}

/* Returns true if neither a heap nor a thread's store of warm slabs has the slab number slab_id, by its tag alone.
 * [any thread, needs no lock] */
static bool is_settled(TsiArena* a, uint32_t slab_id) {
    unsigned state = tsi_tag_state(tsi_load_relaxed(&tsi_slab(&a->space, slab_id)->tag));
    return state != TSI_SLAB_OWNED && state != TSI_SLAB_WARM;
}

/* Calls fn(view, ctx) for every slab that view_slab returns true for, in the order of addresses; if `settled` is
 * false, of these only for slabs that a heap owns or that are WARM, and for large objects. *view lasts for the call.
 * [any thread, needs no lock] */
static void walk(TsiArena* a, bool settled, void (*fn)(const TsiSlabView*, void*), void* ctx) {
    TsiSpace* s = &a->space;
    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        unsigned cls = tsi_chunk_class(s, chunk);
        if (cls == 0 || cls == TSI_CLASS_CONT) continue;
        for (uint32_t k = 0; k < tsi_chunk_slab_count(s, cls); k++) {
            TsiSlabView view;
            if (!settled && cls != TSI_CLASS_LARGE && is_settled(a, tsi_slab_id(chunk, k))) continue;
            if (view_slab(a, tsi_slab_id(chunk, k), cls, &view)) fn(&view, ctx);
        }
    }
}

void tsi_snapshot_slabs(TsiArena* a, void (*fn)(const TsiSlabView*, void*), void* ctx) { walk(a, true, fn, ctx); }
void tsi_snapshot_unsettled(TsiArena* a, void (*fn)(const TsiSlabView*, void*), void* ctx) { walk(a, false, fn, ctx); }

/* Calls fn(view, ctx) for the slabs of a chain that are of the incarnation `ref`. at: the first slab's number + 1, 0
 * for none. [stripe held] */
static void view_chain(TsiArena* a, uint32_t at, TsiRef ref, void (*fn)(const TsiSlabView*, void*), void* ctx) {
    TsiSpace* s = &a->space;
    for (TsiSlabView view; at != 0; at = tsi_slab(s, at - 1)->next)
        if (view_slab(a, at - 1, tsi_class_of_slab(s, at - 1), &view) && view.ref == ref) fn(&view, ctx);
}

/* Slabs stay in a chain during the walk: they leave chains under the stripe, and owners only put some in front. */
bool tsi_snapshot_phase(TsiArena* a, TsiRef ref, void (*fn)(const TsiSlabView*, void*), void* ctx) {
    TsiInc* inc = tsi_inc(&a->phases, tsi_ref_index(ref));
    tsi_lock_take(tsi_inc_lock(inc)); /* not counted, so that a phase ends as without this walk */
    bool active = tsi_ref_is_active(&a->phases, ref);

    for (uint32_t at = active ? inc->heaps : 0; at != 0; at = tsi_heap(a, at - 1)->inc_next)
        view_chain(a, tsi_load_acquire(&tsi_heap(a, at - 1)->slabs), ref, fn, ctx); /* pairs with join in take.c */
    if (active) view_chain(a, inc->orphans, ref, fn, ctx);

    tsi_lock_give(tsi_inc_lock(inc));
    return active;
}

/* ---- bookkeeping ---- */

/* Returns the bytes of those whole pages that have a word other than 0 in the `bytes` bytes at `from`. Bookkeeping
 * comes from the system as zeros and keeps something other than 0 wherever it was written, so these are the pages that
 * the process is charged for. The words belong to their writers and are read unordered: a write of this instant may be
 * missed. [any thread, needs no lock] */
TSI_TSAN_BLIND static uint64_t filled_pages(const void* from, size_t bytes) {
    size_t page = tsi_os.page_bytes;
    uintptr_t at = (uintptr_t)from & ~(uintptr_t)7, end = (uintptr_t)from + bytes;
    uint64_t filled = 0;
    while (at < end) {
        uintptr_t next = (at & ~(uintptr_t)(page - 1)) + page, stop = next < end ? next : end;
        const volatile uint64_t* word = (const volatile uint64_t*)at;
        while ((uintptr_t)word < stop && *word == 0) word++;
        if ((uintptr_t)word < stop) filled += page;
        at = next;
    }
    return filled;
}

/* Returns the bytes of a table's filled pages, those of its bookkeeping and of its records.
 * [any thread, needs no lock] */
static uint64_t table_pages(TsiTable* table) {
    uint64_t bytes = filled_pages(table->bits, tsi_table_bits_bytes(table));
    TsiTablePages some;
    for (uint32_t at = 0; tsi_table_pages(table, &at, &some);) bytes += filled_pages(some.from, some.bytes);
    return bytes;
}

/* Returns the bytes of the filled pages of the three adjacent tables with rows for `chunks` chunks, which share one
 * page in a small space: that counts once. [any thread, needs no lock] */
static uint64_t chunk_table_pages(const TsiSpace* s, uint32_t chunks) {
    const struct {
        const void* from;
        size_t bytes;
    } tables[] = {{s->chunks, chunks * sizeof *s->chunks},
                  {s->bits, (chunks + 63) / 64 * sizeof *s->bits},
                  {s->keys, chunks * sizeof *s->keys}};

    uintptr_t counted = 0;
    uint64_t bytes = 0;
    for (unsigned n = 0; n < 3; n++) {
        uintptr_t from = (uintptr_t)tables[n].from, end = from + tables[n].bytes;
        if (from < counted) from = counted;
        if (from < end) bytes += filled_pages((const void*)from, end - from);
        counted = tsi_align_up(end, tsi_os.page_bytes);
    }
    return bytes;
}

uint64_t tsi_snapshot_metadata_bytes(TsiArena* a) {
    TsiSpace* s = &a->space;
    uint32_t chunks = tsi_load_relaxed(&s->chunk_high);
    uint64_t bytes = filled_pages(a, sizeof *a) + table_pages(&a->heaps) + table_pages(&a->rooms) +
                     table_pages(&a->domains) + table_pages(&a->bindings) + table_pages(&a->phases.incs) +
                     table_pages(&a->phases.ends) + table_pages(&a->phases.labels.records);
    if (tsi_load_relaxed(&((TsiPublic*)(void*)a->owner)->holders) != 0) bytes += tsi_os.page_bytes;
    bytes += chunk_table_pages(s, chunks) + tsi_written_entries(s, chunks);
    for (uint32_t chunk = 0; chunk < chunks; chunk++) bytes += tsi_written_bytes(s, chunk);
    return bytes + tsi_profile_bytes(a);
}

uint64_t tsi_snapshot_refcount(const TsiArena* a, TsiInc* inc) {
    uint32_t domain = tsi_load_relaxed(&inc->domain);
    uint64_t scopes = tsi_load_relaxed(&inc->scopes);
    if (domain != 0) scopes += tsi_domain_scopes(a, domain - 1, tsi_ref(tsi_inc_era(inc), inc->index));
    return tsi_load_relaxed(&inc->user_refs) + scopes;
}

uint64_t tsi_snapshot_refused(TsiArena* a, unsigned what) {
    tsi_lock_take(&tsi_registry_lock);
    uint64_t n = tsi_load_relaxed(&a->refused[what]);
    for (uint32_t k = 0; k < tsi_table_used(&a->bindings); k++) {
        TsiBinding* b = tsi_table_at(&a->bindings, k);
        n += tsi_load_relaxed(&b->refused[what]);
    }
    tsi_lock_give(&tsi_registry_lock);
    return n;
}

/* Adds *counters, a thread's for a class or the arena's for threads that are gone, to *out; each straight begin of a
 * phase counts as a slow allocation that took a warm slab, each straight end as a slab that a close returned.
 * [any thread; registry lock held, so that none leaves] */
static void add_counters(SlabClassStats* out, TsiClassCounters* counters) {
    uint64_t begun = tsi_load_relaxed(&counters->straight_begun), ended = tsi_load_relaxed(&counters->straight_ended);

    out->slow_path_hits += tsi_load_relaxed(&counters->slow) + begun;
    out->new_slab_count += tsi_load_relaxed(&counters->new_slab) + begun;
    out->list_move_partial_to_full += tsi_load_relaxed(&counters->parked);
    out->list_move_full_to_partial += tsi_load_relaxed(&counters->unparked);
    out->current_partial_null += tsi_load_relaxed(&counters->slow_by[TSI_SLOW_NULL]);
    out->current_partial_full += tsi_load_relaxed(&counters->slow_by[TSI_SLOW_FULL]);
    out->empty_slab_recycled += tsi_load_relaxed(&counters->recycled) + begun;
    out->slow_path_cache_miss += tsi_load_relaxed(&counters->slow_by[TSI_SLOW_MISS]) + begun;
    out->slow_path_epoch_closed += tsi_load_relaxed(&counters->slow_by[TSI_SLOW_CLOSED]);

    out->epoch_close_scanned_slabs += tsi_load_relaxed(&counters->close_scanned) + ended;
    out->epoch_close_recycled_slabs += tsi_load_relaxed(&counters->close_returned) + ended;
    out->epoch_close_calls += tsi_load_relaxed(&counters->closes);
    out->epoch_close_total_ns += tsi_load_relaxed(&counters->close_ns);

    out->bitmap_free_attempts += tsi_load_relaxed(&counters->free_tries);
    out->bitmap_free_cas_retries += tsi_load_relaxed(&counters->free_retries);
    out->bitmap_alloc_attempts += tsi_load_relaxed(&counters->alloc_tries);
    out->bitmap_alloc_cas_retries += tsi_load_relaxed(&counters->alloc_retries);
}

void tsi_snapshot_class(TsiArena* a, unsigned cls, SlabClassStats* out) {
    memset(out, 0, sizeof *out);
    tsi_lock_take(&tsi_registry_lock);
    add_counters(out, &a->counters[cls]);
    for (uint32_t k = 0; k < tsi_table_used(&a->bindings); k++) {
        TsiBinding* b = tsi_table_at(&a->bindings, k);
        add_counters(out, &b->counters[cls]);
    }
    tsi_lock_give(&tsi_registry_lock);
    out->empty_slab_overflowed = tsi_load_relaxed(&a->overflowed[cls]);
}
