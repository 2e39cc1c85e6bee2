/* snapshot.c - see snapshot.h. */
#include "stats/snapshot.h"

#include "heap/registry.h"

#include <string.h>

static bool view_slab(TsiArena* a, uint32_t slab_id, unsigned cls, TsiSlabView* v) {
    TsiSpace* s = &a->space;
    for (int tries = 0; tries < 3; tries++) {
        uint64_t tag = tsi_load_seq(&tsi_slab(s, slab_id)->tag);
        unsigned state = tsi_tag_state(tag);
        if (state == TSI_SLAB_POOL || state == TSI_SLAB_RETIRED) return false;
        *v = (TsiSlabView){slab_id, tsi_tag_seq(tag), cls, state, tsi_slab_bytes(s, cls, slab_id), 0, {{0, 0}, {0, 0}, 0}};
        if (state == TSI_SLAB_WARM || state == TSI_SLAB_PURGING) return true;
        v->sum = tsi_slab_sum(s, cls, slab_id);
        if (state == TSI_SLAB_OWNED) {
            v->ref = tsi_load_relaxed(&tsi_heap(a, tsi_tag_index(tag))->ref);
        } else {
            TsiInc* i = tsi_inc(&a->phases, tsi_tag_index(tag));
            v->ref = tsi_ref(tsi_inc_era(i), tsi_tag_index(tag));
        }
        if (tsi_load_seq(&tsi_slab(s, slab_id)->tag) == tag) return true;
    }
    return false;
}

void tsi_snapshot_slabs(TsiArena* a, void (*fn)(const TsiSlabView*, void*), void* ctx) {
    TsiSpace* s = &a->space;
    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        unsigned cls = tsi_chunk_class(s, chunk);
        if (cls == 0 || cls == TSI_CLASS_CONT) continue;
        for (uint32_t k = 0; k < tsi_chunk_slab_count(s, cls); k++) {
            TsiSlabView v;
            if (view_slab(a, chunk << 8 | k, cls, &v)) fn(&v, ctx);
        }
    }
}

static size_t table_bytes(const TsiTable* t) { return (size_t)tsi_table_used(t) * t->stride; }

uint64_t tsi_snapshot_metadata_bytes(TsiArena* a) {
    TsiSpace* s = &a->space;
    uint64_t bytes = sizeof *a + table_bytes(&a->heaps) + table_bytes(&a->rooms) + table_bytes(&a->domains) +
                     table_bytes(&a->bindings) + table_bytes(&a->phases.incs) + table_bytes(&a->phases.ends);
    tsi_lock_take(&s->lock);
    for (uint32_t chunk = 0; chunk < tsi_load_relaxed(&s->chunk_high); chunk++) {
        unsigned cls = tsi_chunk_class(s, chunk);
        if (cls == 0 || cls == TSI_CLASS_CONT) continue;
        size_t lines = (size_t)1 << s->classes->c[cls].lines_log2;
        size_t slabs = cls == TSI_CLASS_LARGE ? 1 : s->chunks[chunk].fresh;
        size_t line_bytes = sizeof(TsiLine) + (cls == TSI_CLASS_MIXED ? sizeof(TsiMixed) : 0);
        bytes += slabs * (sizeof(TsiSlab) + lines * line_bytes);
        if (s->chunks[chunk].counts_committed) bytes += slabs * lines * TSI_LINE_SLOTS * 8;
    }
    tsi_lock_give(&s->lock);
    return bytes;
}

uint64_t tsi_snapshot_refcount(const TsiArena* a, TsiInc* i) {
    uint32_t domain = tsi_load_relaxed(&i->domain);
    uint64_t scopes = tsi_load_relaxed(&i->scopes);
    if (domain != 0) scopes += tsi_domain_scopes(a, domain - 1, tsi_ref(tsi_inc_era(i), i->index));
    return tsi_load_relaxed(&i->user_refs) + scopes;
}

uint64_t tsi_snapshot_refused(TsiArena* a, unsigned what) {
    tsi_lock_take(&tsi_registry_lock);
    uint64_t n = tsi_load_relaxed(&a->refused[what]) + tsi_load_relaxed(&a->gone.refused[what]);
    for (uint32_t k = 0; k < tsi_table_used(&a->bindings); k++) {
        TsiBinding* b = tsi_table_at(&a->bindings, k);
        n += tsi_load_relaxed(&b->refused[what]);
    }
    tsi_lock_give(&tsi_registry_lock);
    return n;
}

static void add_counters(TsiClassSum* out, TsiClassCounters* c) {
    out->perf.slow_path_hits += tsi_load_relaxed(&c->slow);
    out->perf.new_slab_count += tsi_load_relaxed(&c->new_slab);
    out->perf.list_move_partial_to_full += tsi_load_relaxed(&c->parked);
    out->perf.list_move_full_to_partial += tsi_load_relaxed(&c->unparked);
    out->perf.current_partial_null += tsi_load_relaxed(&c->null);
    out->perf.current_partial_full += tsi_load_relaxed(&c->full);
    out->perf.empty_slab_recycled += tsi_load_relaxed(&c->recycled);
    out->miss += tsi_load_relaxed(&c->miss);
    out->closed += tsi_load_relaxed(&c->closed);
    out->close_scanned += tsi_load_relaxed(&c->close_scanned);
    out->close_returned += tsi_load_relaxed(&c->close_returned);
    out->closes += tsi_load_relaxed(&c->closes);
    out->close_ns += tsi_load_relaxed(&c->close_ns);
    out->free_tries += tsi_load_relaxed(&c->free_tries);
    out->free_retries += tsi_load_relaxed(&c->free_retries);
}

void tsi_snapshot_class(TsiArena* a, unsigned cls, TsiClassSum* out) {
    memset(out, 0, sizeof *out);
    tsi_lock_take(&tsi_registry_lock);
    add_counters(out, &a->gone.counters[cls]);
    for (uint32_t k = 0; k < tsi_table_used(&a->bindings); k++) {
        TsiBinding* b = tsi_table_at(&a->bindings, k);
        add_counters(out, &b->counters[cls]);
    }
    tsi_lock_give(&tsi_registry_lock);
    out->perf.empty_slab_overflowed = tsi_load_relaxed(&a->overflowed[cls]);
}
